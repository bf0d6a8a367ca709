"""Runs a script for the demo host's `python3`: `guest.py - ARGS` reads it from stdin, as `python3 -` does.

The script sees the host's interpreter path, the age of the host's files and its ports: a connection to a port
that the host's server listens on (`DDTUI_GUEST_PORTS`: PORT=PORT HERE …) leads there. Standard library only;
knows no ddtui.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from typing import Any

OLD = 1_700_000_000  # as the host's own commands show it


def lead_ports() -> None:
    """Connections to loopback lead to the host's ports; a port that is not in the list refuses."""
    pairs = (pair.split("=") for pair in os.environ.pop("DDTUI_GUEST_PORTS", "").split())
    ports = {int(theirs): int(here) for theirs, here in pairs}
    real_connect, real_connect_ex = socket.socket.connect, socket.socket.connect_ex

    def led(address: Any) -> Any:
        if not isinstance(address, tuple):
            return address
        if address[0] not in ("127.0.0.1", "localhost", "::1"):
            raise OSError(101, "Network is unreachable")
        if address[1] not in ports:
            raise ConnectionRefusedError(111, "Connection refused")
        return (address[0], ports[address[1]], *address[2:])

    def connect(self: socket.socket, address: Any, /) -> None:
        real_connect(self, led(address))

    def connect_ex(self: socket.socket, address: Any, /) -> int:
        try:
            return real_connect_ex(self, led(address))
        except OSError as error:
            return error.errno or 1

    socket.socket.connect = connect  # type: ignore[method-assign, assignment]
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign, assignment]


def age_files() -> None:
    """The files that came with the host (`DDTUI_GUEST_OLD`: their folders here) are older than it runs."""
    folders = tuple(one for one in os.environ.pop("DDTUI_GUEST_OLD", "").split(os.pathsep) if one)
    real_stat = os.stat

    def stat(path: Any, *args: Any, **how: Any) -> os.stat_result:
        found = real_stat(path, *args, **how)
        if not isinstance(path, str) or not path.startswith(folders):
            return found
        return os.stat_result((*found[:7], OLD, OLD, OLD))

    if folders:
        os.stat = stat


def main() -> None:
    lead_ports()
    age_files()
    sys.executable = os.environ.pop("DDTUI_GUEST_PYTHON", sys.executable)
    sys.argv = sys.argv[1:] or ["-"]
    sys.path[0] = ""
    what = sys.argv[0]
    if what == "-c":
        text = sys.argv.pop(1)
        sys.argv[0] = "-c"
    elif what == "-m":
        sys.argv.pop(0)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    elif what == "-":
        text = sys.stdin.buffer.read().decode()
    else:
        runpy.run_path(what, run_name="__main__")
        return
    module: dict[str, Any] = sys.modules["__main__"].__dict__
    for name in ("lead_ports", "age_files", "main", "runpy", "__file__"):
        module.pop(name, None)
    exec(compile(text, "<stdin>" if what == "-" else "<string>", "exec"), module)


if __name__ == "__main__":
    main()
