"""How root rights are had on the host: being root, `sudo -n`, or sudo with a password that is asked for once.

`sudo -n -- COMMAND` is always tried first: it reads no password, so that a command whose stdin is a file's
content never loses its first line to sudo. A password is kept in memory only, and only sent after sudo was
seen asking for it. One wrong answer ends the attempt: more could lock the account. Where sudoers has
`requiretty`, the command runs on a pseudo-terminal that carries bytes unchanged.

Commands: `sudo -n -- COMMAND…`, `sudo -k -S -p MARK -- COMMAND…`, `sudo -n -l -- COMMAND…`, `id -u`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ddtui.host.base import Asker, Command, Completed, Host, NotPermitted


class Refusal(StrEnum):
    """Why sudo did not run a command."""

    PASSWORD = "a password is required"
    TERMINAL = "a terminal is required"
    DENIED = "not allowed"
    MISSING = "there is no sudo"


# the words of sudo 1.8 to 1.9 and of sudo-rs, in the C locale
_WORDS = (
    (Refusal.TERMINAL, rb"^sudo: .*you must have a tty"),
    (Refusal.PASSWORD, rb"^sudo(?:-rs)?: .*(?:a password is required|authentication is required)"),
    (Refusal.DENIED, rb"is not in the sudoers file|is not allowed to (?:execute|run)|may not run sudo"),
    (
        Refusal.DENIED,
        rb"^sudo(?:-rs)?: (?:I'm sorry|.*not allowed to)|no new privileges|must be owned by uid 0",
    ),
    (Refusal.DENIED, rb"^sudo(?:-rs)?: (?:\d+ incorrect password attempt|.*account|.*PAM )"),
)


def refusal(done: Completed) -> Refusal | None:
    """Why sudo refused, or None if it ran the command (which may have failed by itself)."""
    if done.exit_code == 127 and b"sudo" in done.stderr:
        return Refusal.MISSING
    if done.exit_code != 1:
        return None
    for why, words in _WORDS:
        if re.search(words, done.stderr, re.MULTILINE):
            return why
    return None


class Password:
    """The sudo password of one host: asked for once, kept in memory, forgotten when it turns out wrong."""

    def __init__(self, asker: Asker, host: str) -> None:
        self._asker = asker
        self._host = host
        self._known: str | None = None
        self._asking = asyncio.Lock()

    @property
    def known(self) -> bool:
        return self._known is not None

    async def get(self) -> str:
        """The password. Raises NotPermitted if nobody gives it."""
        async with self._asking:  # two commands at once: one question
            if self._known is None:
                answer = await self._asker.secret(f"sudo password on {self._host}", purpose="sudo")
                if answer is None:
                    raise NotPermitted(
                        f"sudo on {self._host} asks for a password, and none was given",
                        "`ddtui doctor` prints sudoers lines that need none.",
                    )
                self._known = answer
            return self._known

    def wrong(self) -> NotPermitted:
        """Forget it; the error to raise."""
        self._known = None
        return NotPermitted(
            f"sudo on {self._host} did not accept the password",
            "Nothing was run. Do it again to be asked again.",
        )


def denied(host: str, argv: Sequence[str], done: Completed) -> NotPermitted:
    """The error for a command that sudo does not allow."""
    if refusal(done) is Refusal.MISSING:
        return NotPermitted(f"there is no sudo on {host}", "Log in as root, or have sudo installed.")
    said = [line for line in done.err.splitlines() if line.strip()]
    return NotPermitted(
        f"sudo on {host} does not allow `{' '.join(argv)}`" + (f": {said[-1].strip()}" if said else ""),
        "`ddtui doctor` prints the sudoers lines that are needed.",
    )


class How(StrEnum):
    """What running a command as root takes."""

    ROOT = "we are root"
    FREE = "sudo, no password"
    PASSWORD = "sudo with a password"
    NOT_ALLOWED = "not allowed"


@dataclass(frozen=True, slots=True)
class Right:
    argv: tuple[str, ...]
    how: How


async def rights(host: Host, commands: Sequence[Sequence[str]]) -> list[Right]:
    """Whether each of exactly these commands may be run as root, without running or asking anything.

    PASSWORD also stands for an account that has to give its password before sudo tells what it allows.
    """
    argvs = [tuple(argv) for argv in commands]
    asked = [Command(("id", "-u")), *(Command(("sudo", "-n", "-l", "--", *argv)) for argv in argvs)]
    who, *answers = await host.batch(asked)
    if who.out.strip() == "0":
        return [Right(argv, How.ROOT) for argv in argvs]
    return [Right(argv, _how(answer)) for argv, answer in zip(argvs, answers, strict=True)]


def _how(listed: Completed) -> How:
    if listed.ok:
        return How.FREE
    return How.PASSWORD if refusal(listed) in (Refusal.PASSWORD, Refusal.TERMINAL) else How.NOT_ALLOWED
