"""`ddtui inspect unit|drafter|log|server-info`: one layer from local files, offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ddtui.commands.failure import InputError
from ddtui.commands.output import emit


def run(args: argparse.Namespace) -> int:
    if args.what == "unit":
        from ddtui.host.unit import inspect as unit

        root = Path(args.root)
        if not root.is_dir():
            raise InputError(f"--root {root}: there is no such folder")
        report: dict[str, Any] = unit.inspect(root, args.name, args.sets, args.unsets)
        lines = unit.lines(report)
    else:
        from ddtui.engine import inspect as engine

        data = _read(Path(args.file))
        report, lines = {
            "drafter": engine.drafter,
            "log": engine.log,
            "server-info": engine.server_info,
        }[args.what](data, args.file)
    emit(args.json, f"inspect-{args.what}", report, lines)
    return 1 if report.get("problems") else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
