"""`ddtui serve [PROFILE]`: the console in a browser on this machine."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from ddtui.commands.failure import InputError
from ddtui.profile import Profile


def run(args: argparse.Namespace) -> int:
    try:
        import aiohttp  # noqa: F401
        import jinja2  # noqa: F401
        import textual_serve  # noqa: F401
    except ImportError:
        raise InputError(
            "the console in a browser needs one more package: pip install 'ddtui[serve]'"
        ) from None
    profile: Profile | None = args.load(args.profile) if args.profile else None
    with tempfile.TemporaryDirectory(prefix="ddtui-serve-") as folder:  # for this user's eyes only
        return _serve(args, profile, Path(folder))


def _serve(args: argparse.Namespace, profile: Profile | None, folder: Path) -> int:
    from ddtui.serve.server import WebConsole, serve

    argv = [sys.executable, "-m", "ddtui", "console"]
    if profile is not None:
        argv.append(str(_written(profile, folder)))
    if not args.allow_changes:
        argv.append("--read-only")
    title = f"ddtui {profile.name}" if profile is not None else "ddtui"
    console = WebConsole(argv, port=args.port, title=title, allow_changes=args.allow_changes)

    def tell(address: str) -> None:
        how = "changes allowed" if args.allow_changes else "read-only; --allow-changes for more"
        print(f"{title} in a browser on this machine ({how}):\n\n  {address}\n", flush=True)
        print("Whoever has this address has the console. Ctrl-C ends it and its consoles.", flush=True)

    try:
        asyncio.run(serve(console, tell))
    except OSError as error:
        raise InputError(
            f"port {args.port} cannot be served on: {os.strerror(error.errno or 0).lower()}; "
            "leave --port out for a free one"
        ) from None
    return 0


def _written(profile: Profile, folder: Path) -> Path:
    """The profile as a file that a console can be started on, wherever it came from."""
    path = folder / f"{profile.name}.yaml"
    path.write_text(profile.model_dump_json(exclude_defaults=True), encoding="utf-8")
    return path
