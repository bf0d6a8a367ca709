"""Just enough of PNG to look at a screenshot: its pixels as an array of rows, columns and red-green-blue."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def pixels(png: bytes) -> np.ndarray:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    width = height = channels = 0
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colours in (2, 6), "a screenshot is RGB or RGBA in bytes"
            channels = {2: 3, 6: 4}[colours]
        elif kind == b"IDAT":
            data += body
        at += 12 + size
    raw = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    rows = np.zeros((height, width * channels), np.uint8)
    above = np.zeros(width * channels, np.uint8)
    for y in range(height):
        kind, line = int(raw[y, 0]), raw[y, 1:]
        if kind == 0:
            row = line.copy()
        elif kind == 1:  # each channel adds to the pixel before
            row = np.cumsum(line.reshape(-1, channels), axis=0, dtype=np.uint32).astype(np.uint8).reshape(-1)
        elif kind == 2:
            row = line + above
        else:
            row = _by_bytes(kind, line, above, channels)
        rows[y] = above = row
    return rows.reshape(height, width, channels)[:, :, :3]


def _by_bytes(kind: int, line: np.ndarray, above: np.ndarray, channels: int) -> np.ndarray:
    up, row = above.tolist(), line.tolist()
    for i, value in enumerate(row):
        a, b = (row[i - channels] if i >= channels else 0), up[i]
        if kind == 3:
            guess = (a + b) // 2
        else:
            c = up[i - channels] if i >= channels else 0
            p = a + b - c
            guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        row[i] = (value + guess) & 255
    return np.array(row, np.uint8)
