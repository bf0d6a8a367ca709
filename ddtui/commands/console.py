"""`ddtui [PROFILE]`: the console."""

from __future__ import annotations

import argparse


def run(args: argparse.Namespace) -> int:
    from ddtui.app import DdtuiApp

    profile = args.load(args.profile) if args.profile else None
    app = DdtuiApp(profile, read_only=args.read_only)
    app.run()
    return app.return_code or 0
