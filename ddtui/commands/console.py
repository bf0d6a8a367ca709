"""`ddtui [PROFILE]`: the console."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from ddtui.commands.failure import InputError

if TYPE_CHECKING:
    from ddtui.screens.pick import Offer


def run(args: argparse.Namespace) -> int:
    from ddtui.commands.config import usable

    found = usable()
    served = "TEXTUAL_DRIVER" in os.environ  # in a browser: its driver talks to the server through pipes
    if not served and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("the console needs a terminal; `ddtui --help` lists the commands that do not")
    from ddtui.app import DdtuiApp
    from ddtui.session import open_session

    profile = args.load(args.profile) if args.profile else None
    app = DdtuiApp(
        profile,
        settings=found,
        open_session=partial(open_session, read_only=args.read_only, refresh=found.refresh),
        offers=() if profile is not None else _offers(),
        load_profile=args.load,
    )
    app.run()
    return app.return_code or 0


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
