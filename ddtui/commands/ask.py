"""Questions to the person at the terminal; refused where nobody sits there."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Callable

from ddtui.host.base import HostKey


def somebody() -> bool:
    """Whether a person can answer: stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


class TerminalAsker:
    """Asks on the terminal; `before` clears it for a question."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._before = before

    async def secret(self, prompt: str, *, purpose: str) -> str | None:
        if not somebody():
            return None
        self._before()
        try:
            return await asyncio.to_thread(getpass.getpass, f"{prompt.rstrip(': ')}: ")
        except EOFError:
            return None

    async def trust(self, key: HostKey) -> bool:
        if not somebody():
            return False
        self._before()
        print(
            f"The key of {key.host} port {key.port} is not known yet.\n"
            f"  {key.algorithm}  {key.fingerprint}\n"
            "Compare it with what the host's owner tells you.",
            file=sys.stderr,
        )
        return await confirm("Trust and remember this key?")


async def confirm(question: str) -> bool:
    """Yes only for `y` or `yes`; no where nobody can answer."""
    if not somebody():
        return False
    answer = await asyncio.to_thread(_line, f"{question} [y/N] ")
    return answer.strip().lower() in ("y", "yes")


async def answer(question: str) -> str:
    """A line typed; empty where nobody can answer."""
    return (await asyncio.to_thread(_line, question)).strip() if somebody() else ""


def _line(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline()
