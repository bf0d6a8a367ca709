"""The lines of a start that has ended: journald takes them late, and the cause is often the last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ddtui.host.journal import JournalEntry
from ddtui.tuning import starting


def entry(number: int, text: str) -> JournalEntry:
    return JournalEntry(cursor=f"s=x;i={number}", realtime_us=number, text=text, invocation="new")


@pytest.mark.parametrize("end_first", [True, False], ids=["systemd's word first", "systemd's word last"])
async def test_lines_that_journald_takes_after_the_end_are_waited_for(
    end_first: bool,
) -> None:
    ended = entry(1, "sglang.service: Main process exited, code=exited, status=1/FAILURE")
    cause = entry(2, "torch.OutOfMemoryError: CUDA out of memory.")

    async def late(*_: object, **__: object) -> AsyncIterator[JournalEntry]:
        for line in (ended, cause) if end_first else (cause, ended):
            await asyncio.sleep(starting.LAST_LINES / 4)
            yield line
        await asyncio.Event().wait()

    async def none_before(*_: object, **__: object) -> list[JournalEntry]:
        return []

    ctx = cast("Any", SimpleNamespace(host=None, supervisor=SimpleNamespace(follow=late, lines=none_before)))
    lines = starting.Lines(ctx)
    await lines.begin()
    await lines.settle("new")
    assert {line.text for line in lines.of("new", None)} == {ended.text, cause.text}
    await lines.end()


async def test_a_journal_that_says_nothing_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "LAST_WORD", 0.05)
    lines = starting.Lines(cast("Any", SimpleNamespace(host=None)))
    await lines.settle("new")
    assert lines.of("new", None) == []
