"""`ddtui [PROFILE]`: the console."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from ddtui.commands import ask
from ddtui.commands.failure import InputError

if TYPE_CHECKING:
    from ddtui.screens.pick import Offer

IN_A_BROWSER = "read-only in a browser: `ddtui serve --allow-changes` lets it write on this machine"


def run(args: argparse.Namespace) -> int:
    from ddtui.commands.config import usable

    found = usable()
    served = "TEXTUAL_DRIVER" in os.environ  # in a browser: its driver talks to the server through pipes
    if args.plain or (found.plain and not served):
        return _plain(args, found.refresh)
    if not served:
        if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
            raise InputError(
                "the console needs a terminal; --plain gives one line of text per event instead, and "
                "`ddtui --help` lists the commands that need none"
            )
        term = os.environ.get("TERM", "")
        if term in ("", "dumb", "unknown") and sys.platform != "win32":
            question = (
                f"This terminal (TERM={term}) cannot draw the console. One line of text per event instead?"
            )
            if asyncio.run(ask.confirm(question)):
                return _plain(args, found.refresh)
            raise InputError(f"TERM={term} cannot draw the console; --plain gives one line of text per event")
    from ddtui.app import DdtuiApp
    from ddtui.session import open_session
    from ddtui.widgets.colours import Colours, by_terminfo, of_terminal

    profile = args.load(args.profile) if args.profile else None
    colours = Colours.ALL if served else of_terminal(os.environ, by_terminfo(os.environ.get("TERM", "")))
    app = DdtuiApp(
        profile,
        settings=found,
        colours=colours,
        disk_closed=IN_A_BROWSER if served and args.read_only else None,
        open_session=partial(open_session, read_only=args.read_only, refresh=found.refresh),
        offers=() if profile is not None else _offers(),
        find_offers=_offers,
        load_profile=args.load,
    )
    app.run()
    return app.return_code or 0


def _plain(args: argparse.Namespace, refresh: float) -> int:
    from ddtui.plain import Plain
    from ddtui.session import open_session

    if not args.profile:
        raise InputError("say the profile: `ddtui PROFILE --plain`; `ddtui profiles` lists them")
    profile = args.load(args.profile)
    session = open_session(profile, read_only=args.read_only, refresh=refresh)
    console = Plain(profile, partial(print, flush=True))
    asyncio.run(console.run(session, ask.TerminalAsker()))
    return 0


def _offers() -> list[Offer]:
    """Every profile of the user's; one that cannot be used says why. The shipped ones are samples."""
    from ddtui import profile
    from ddtui.screens.pick import Offer

    offers: list[Offer] = []
    mine, _ = profile.folders()
    for name in profile.names():
        if profile.find(name).parent != mine:
            continue
        try:
            found = profile.load(name)
        except profile.ProfileError as error:
            offers.append(Offer(name, "", problem=str(error)))
        else:
            offers.append(Offer(name, found.connection.host, found.about))
    return offers
