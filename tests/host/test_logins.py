"""Who else is logged in on the host, by `who`."""

from __future__ import annotations

from ddtui.host.base import Completed
from ddtui.host.logins import WHO, parse

WORDS = """\
root     tty1         2026-12-01 09:00
ann      pts/0        2026-12-01 11:02 (10.0.0.5)
ann      pts/1        2026-12-01 11:30 (10.0.0.5)
bob      pts/2        2026-12-01 11:31 (desk-7.lan)
"""


def done(words: str, code: int = 0) -> Completed:
    return Completed(WHO, code, words.encode(), b"", 0.0)


def test_each_is_named_once_with_where_from() -> None:
    assert parse(done(WORDS)) == ("ann from 10.0.0.5", "bob from desk-7.lan", "root")


def test_nobody_or_no_such_program_is_nobody() -> None:
    assert parse(done("")) == ()
    assert parse(done("sh: who: not found", 127)) == ()


def test_what_a_login_says_of_itself_is_inert() -> None:
    (one,) = parse(done("x\x1b]52;c;QQ==\x07 pts/0 2026-12-01 11:02 ([red]\x1b[2J)\n"))
    assert one.isprintable() and "from [red]" in one
