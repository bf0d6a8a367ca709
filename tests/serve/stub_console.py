"""A stand-in for the console behind a tab, in textual-serve's protocol: `stub_console.py [stubborn]`.

Says its pid, and what it is told; offers a download on `d`. Stubborn: it ignores every wish to end.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time

from textual._binary_encode import dump

STUBBORN = "stubborn" in sys.argv


def send(kind: bytes, payload: bytes) -> None:
    os.write(1, kind + struct.pack(">I", len(payload)) + payload)


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            while STUBBORN:
                time.sleep(1)
            sys.exit(0)
        data += piece
    return data


if STUBBORN:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"__GANGLION__\n")
send(b"D", f"pid {os.getpid()} ".encode())
while True:
    kind, size = struct.unpack(">cI", read(5))
    payload = read(size)
    if kind == b"D":
        send(b"D", b"told " + payload)
        if payload == b"d":
            offer = {
                "type": "deliver_file_start",
                "key": "k1",
                "path": "/tmp/journal.txt",
                "open_method": "download",
            }
            send(b"M", json.dumps({**offer, "mime_type": "text/plain", "encoding": "utf-8"}).encode())
            chunks = [b"the journal", b""]
        continue
    told = json.loads(payload)
    if told["type"] == "quit" and not STUBBORN:
        sys.exit(0)
    if told["type"] == "deliver_chunk_request":
        send(b"P", dump(("deliver_chunk", told["key"], chunks.pop(0))))
