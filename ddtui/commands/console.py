"""`ddtui [PROFILE]`: the console."""

from __future__ import annotations

import argparse
import sys

from ddtui.commands.failure import InputError


def run(args: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("the console needs a terminal; `ddtui --help` lists the commands that do not")
    from ddtui.app import DdtuiApp

    profile = args.load(args.profile) if args.profile else None
    app = DdtuiApp(profile, read_only=args.read_only)
    app.run()
    return app.return_code or 0
