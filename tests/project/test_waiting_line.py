"""A command that takes a moment says on a terminal what it waits for and how far that is; elsewhere nothing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ddtui.commands import status_line
from ddtui.commands.status_line import Part, Waiting, waited


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written on a terminal, with no patience at all."""
    written: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None: ...

    monkeypatch.setattr(status_line, "sys", SimpleNamespace(stderr=Terminal()))
    monkeypatch.setattr(status_line, "SOON", 0.0)
    monkeypatch.setattr(status_line, "OFTEN", 0.0)
    return written


def test_how_far_is_by_what_it_takes_or_by_what_is_done() -> None:
    assert waited("looking", 65.0) == "looking … 1:05"
    assert waited("reading", 1.0, 4.0) == "reading ▓▓▓▓▓░░░░░░░░░░░░░░░  25%  eta 0:03"
    assert waited("reading", 9.0, 4.0) == "reading ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░  95%  0:09"
    assert waited("importing", 3.0, part=0.5) == "importing ▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░  50%  eta 0:03"


async def test_a_wait_is_drawn_over_and_gone_when_it_is_over(terminal: list[str]) -> None:
    async with Waiting("connecting", 10.0) as wait:
        for _ in range(5):
            await asyncio.sleep(0)
        wait.stop()  # a question comes
        before = len(terminal)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(terminal) == before
    assert terminal[0].startswith("\r\x1b[2Kconnecting ") and terminal[-1] == "\r\x1b[2K"


def test_a_part_is_drawn_as_it_is_told(terminal: list[str]) -> None:
    told = Part("importing")
    told(0.25)
    told.end()
    assert "importing ▓▓▓▓▓░" in terminal[0] and terminal[-1] == "\r\x1b[2K"


async def test_elsewhere_than_on_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    async with Waiting("connecting"):
        await asyncio.sleep(0)
    Part("importing").end()
    assert capsys.readouterr().err == ""
