"""How a script leaves its course."""

from __future__ import annotations


class Exit(Exception):
    """The script ends here."""


class Return(Exception):
    """The function, or the file that is sourced, ends here."""


class Break(Exception):
    """The loop ends here."""


class Continue(Exception):
    """The loop begins anew."""


class Found(Exception):
    """The server's launch was reached."""

    def __init__(self, launch: object) -> None:
        self.launch = launch
