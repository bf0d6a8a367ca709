"""The journal pane as the operator uses it: earlier lines, time, bookmarks, markers, pins, files, filters."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from console.fakes import NOW, FakeSession, journal
from console.harness import Desk, console

from ddtui.screens.hosts import HostsDialog
from ddtui.session import JournalLine
from ddtui.widgets.journal_file import save
from ddtui.widgets.journal_filter import parse_filter
from ddtui.widgets.journal_memory import JournalMemory
from ddtui.widgets.journal_pane import FilterInput, JournalPane, Question
from ddtui.widgets.journal_store import JournalStore, Pin
from ddtui.widgets.journal_time import parse_time


def lines(*texts: str, at: float = NOW, cursor: str = "") -> list[JournalLine]:
    return [
        JournalLine(at + i, text, cursor=f"{cursor}{i}" if cursor else "") for i, text in enumerate(texts)
    ]


# the store: earlier lines, tracebacks, colours

TRACE = (
    "[2026-05-28 12:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/sglang/scheduler.py", line 12, in run',
    "    self.step()",
    "torch.OutOfMemoryError: CUDA out of memory.",
)


def test_a_traceback_takes_one_line_that_names_the_exception() -> None:
    store = JournalStore()
    store.append(lines("before", *TRACE, "after"))
    assert store.texts == [
        "before",
        "TP0 Scheduler hit an exception: Traceback (most recent call last): … "
        "torch.OutOfMemoryError: CUDA out of memory.",
        "after",
    ]
    assert store.folded == {1: list(TRACE[1:])}


def test_tracebacks_of_two_processes_are_told_apart() -> None:
    store = JournalStore()
    mixed = [JournalLine(NOW, text, pid=pid) for text in TRACE for pid in (10, 11)]
    store.append(mixed)
    assert len(store) == 2
    assert [len(body) for body in store.folded.values()] == [3, 3]


def test_a_chained_traceback_stays_one_and_names_the_last_exception() -> None:
    store = JournalStore()
    chain = ("", "During handling of the above exception, another exception occurred:", "")
    again = ("Traceback (most recent call last):", "  File x", "RuntimeError: worker died")
    store.append(lines(*TRACE, *chain, *again, "INFO:     shutting down"))
    assert len(store) == 2
    assert store.texts[0].endswith("RuntimeError: worker died")


def test_a_filter_finds_what_is_folded_away() -> None:
    store = JournalStore()
    store.append(lines("before", *TRACE))
    assert store.scan(parse_filter("scheduler.py"), range(0, 2)) == [1]


def test_earlier_lines_go_before_and_no_number_changes() -> None:
    store = JournalStore()
    store.append(lines("c", "d", cursor="k"))
    store.toggle_bookmark(1)
    store.prepend(lines("a", *TRACE, "b", at=NOW - 100, cursor="j"))
    assert (store.base, store.end) == (-3, 2)
    assert [store.texts[n - store.base] for n in (-3, -1, 0, 1)] == ["a", "b", "c", "d"]
    assert list(store.folded) == [-2]
    assert store.oldest == "j0"
    assert store.bookmarks == [1]


def test_when_lines_are_dropped_the_place_of_the_oldest_is_still_known() -> None:
    store = JournalStore(limit=1000)
    for i in range(5000):
        store.append([JournalLine(NOW, f"line {i}", cursor=f"c{i}")])
        assert len(store) <= 1000
    assert store.oldest == f"c{store.base}"
    assert store.texts[0] == f"line {store.base}"


@pytest.mark.parametrize(
    "text", ["needle", "Needle", "/ne+dle/", "!straw", "! straw", "straw >=info", "! needle"]
)
def test_a_quick_scan_finds_what_a_look_at_each_line_finds(text: str) -> None:
    store = JournalStore()
    store.append(
        lines(*("a needle" if i % 7 == 0 else "Needle" if i % 11 == 0 else "straw" for i in range(300)))
    )
    wanted = parse_filter(text)
    each = [n for n in range(300) if wanted.matches(store.texts[n], store.levels[n])]
    assert store.scan(wanted, range(0, 300)) == each


def size(store: JournalStore) -> int:
    return sum(map(len, store.texts)) + sum(len(text) for body in store.folded.values() for text in body)


def test_a_flood_of_huge_lines_and_open_tracebacks_stays_bounded() -> None:
    store = JournalStore(limit=100)
    for i in range(50):
        store.append([JournalLine(NOW, "x" * 1_000_000, pid=i), JournalLine(NOW, TRACE[0], pid=i)])
        store.append([JournalLine(NOW, f"  {'y' * 100_000}", pid=i) for _ in range(3)])
        assert size(store) == store._size <= 100 * 1000 + 5 * 70_000
    for i in range(1000):
        store.append([JournalLine(NOW, TRACE[0], pid=i)])
    assert len(store._traces) <= 100
    assert size(store) == store._size


def test_of_a_huge_line_it_is_said_how_much_is_left_out() -> None:
    store = JournalStore()
    store.append(lines("x" * 100_000))
    assert store.texts[0].endswith("… (34,464 characters more)")


def test_an_inverted_filter_shows_the_others_of_the_level() -> None:
    inverted = parse_filter("! decode batch >=info")
    assert not inverted.matches("Decode batch", 1)
    assert inverted.matches("Decode", 1)
    assert not inverted.matches("Prefill", 0)
    assert parse_filter("!/^dec/").matches("Prefill", 1)
    assert not parse_filter("!/^dec/").matches("Decode", 1)


def test_pins_count_what_comes_and_what_is_put_before() -> None:
    store = JournalStore()
    pin = Pin("retract", parse_filter("retract"))
    store.pins.append(pin)
    store.append(lines("Retract requests", "x"))
    store.prepend(lines("retract", "y", "retract"))
    assert pin.count == 3


# times

DAY = time.mktime((2026, 5, 28, 0, 0, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("12:01", DAY + 12 * 3600 + 60),
        ("12:01:30", DAY + 12 * 3600 + 90),
        ("23:00", DAY - 3600),  # not yet today: yesterday's
        ("2026-05-27 08:00", DAY - 16 * 3600),
        ("-5m", DAY + 36_000 - 300),
        ("+30s", DAY + 36_000 + 30),
        ("2h ago", DAY + 13 * 3600),
    ],
)
def test_times_as_they_are_written(text: str, at: float) -> None:
    assert parse_time(text, now=DAY + 15 * 3600, here=DAY + 36_000) == at


@pytest.mark.parametrize(
    "text", ["", "noon", "25:00", "12:61", "5m", "-5m ago", "2026-13-01 12:00", "9999999999d"]
)
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="no time"):
        parse_time(text, now=DAY, here=DAY)


# files and what is remembered


def test_saved_lines_are_redacted_and_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    assert save(path, [(0.0, "started"), (61.0, "run with --api-key hunter2secret")]) == 2
    first, second = path.read_text().splitlines()
    assert first == "1970-01-01T00:00:00Z started"
    assert second.startswith("1970-01-01T00:01:01Z run") and "hunter2secret" not in second
    with pytest.raises(FileExistsError):
        save(path, [(0.0, "other")])
    assert path.read_text().splitlines()[0] == first


def test_the_filter_is_remembered_per_host_and_unit() -> None:
    JournalMemory.of("gpu1", "a.service").use("decode")
    assert JournalMemory.of("gpu1", "a.service").filter == "decode"
    JournalMemory.of("gpu1", "a.service").use_level("error")
    assert JournalMemory.of("gpu1", "a.service").level == "error"
    assert JournalMemory.of("gpu2", "a.service").filter == ""
    assert JournalMemory.of("gpu2", "a.service").level == "info"


def test_a_broken_file_of_memories_is_as_none() -> None:
    memory = JournalMemory.of("gpu1", "../../x")
    memory.use("decode")
    assert memory.path is not None and memory.path.parent.name == "journal"
    memory.path.write_text("[1, 2")
    assert JournalMemory.of("gpu1", "../../x").filter == ""


# in the console


async def opened(desk: Desk) -> JournalPane:
    await desk.press("2")
    await desk.until(lambda: bool(desk.app.screen.query("#journal-full")))
    pane = desk.app.screen.query_one("#journal-full", JournalPane)
    await desk.until(lambda: pane.view.has_focus and pane.view._end == desk.app.desk.store.end)
    return pane


def session_with(*batches: list[JournalLine]) -> FakeSession:
    session = FakeSession()
    for batch in batches:
        session.lines.put_nowait(batch)
    return session


def top(pane: JournalPane) -> str:
    return pane.view.render_line(0).text.rstrip()[9:]


async def answer(desk: Desk, pane: JournalPane, key: str, text: str) -> None:
    await desk.press(key)
    question = pane.query_one(Question)
    await desk.until(lambda: question.has_focus)
    question.value = text
    await desk.press("enter")


async def test_scrolled_past_the_top_earlier_lines_come_from_the_host() -> None:
    session = session_with(lines(*(f"line {i}" for i in range(100)), cursor="n"))
    session.older["n0"] = lines(*(f"older {i}" for i in range(50)), at=NOW - 100, cursor="o")
    async with console(session) as desk:
        pane = await opened(desk)
        await desk.press("g")
        await desk.until(lambda: top(pane) == "line 0")
        await desk.press("k")
        await desk.until(lambda: desk.app.desk.store.base == -50 and pane.view._base == -50)
        assert top(pane) == "line 0"  # the place is kept
        await desk.press("k")
        await desk.until(lambda: top(pane) == "older 49")
        await desk.press("g", "g")
        await desk.until(lambda: desk.app.desk.store.whole)
        assert top(pane) == "older 0"


async def test_of_lines_of_another_day_the_day_is_said() -> None:
    async with console(session_with(lines("old", at=NOW - 3 * 86400), lines("new"))) as desk:
        await opened(desk)
        day = time.strftime("%a %d %b", time.localtime(NOW - 3 * 86400))
        await desk.press("g")
        await desk.until(lambda: day in desk.text())
        await desk.press("j")
        await desk.until(lambda: day not in desk.text())


async def test_a_jump_to_a_time_reads_back_to_it() -> None:
    session = session_with(lines(*(f"line {i}" for i in range(100)), cursor="n"))
    session.older["n0"] = lines(*(f"older {i}" for i in range(50)), at=NOW - 100, cursor="o")
    session.older["o0"] = lines(*(f"oldest {i}" for i in range(50)), at=NOW - 200, cursor="p")
    async with console(session) as desk:
        pane = await opened(desk)
        store = desk.app.desk.store
        here = store.times[(pane.view.here() or 0) - store.base]
        await answer(desk, pane, "at", f"-{here - (NOW - 190):.0f}s")
        await desk.until(lambda: pane.view.selected_lines() == ["oldest 10"])


async def test_bookmarks_and_errors_are_gone_through() -> None:
    texts = [f"line {i}" for i in range(200)]
    texts[20] = "RuntimeError: one"
    texts[120] = "RuntimeError: two"
    async with console(session_with(lines(*texts))) as desk:
        pane = await opened(desk)
        under = pane.view.selected_lines
        for key, text in (("e", texts[20]), ("e", texts[120]), ("E", texts[20])):
            await desk.press(key)
            await desk.until(lambda text=text: under() == [text])  # type: ignore[misc]
        await desk.press("B", "e")
        await desk.until(lambda: under() == [texts[120]])
        await desk.press("left_curly_bracket")
        await desk.until(lambda: under() == [texts[20]])
        assert desk.app.desk.store.bookmarks == [20]


async def test_a_marker_by_hand_has_both_clocks_and_is_inert() -> None:
    session = session_with(lines("line"))
    session.clock = NOW + 90
    async with console(session) as desk:
        pane = await opened(desk)
        await answer(desk, pane, "M", "before [red] the fix")
        store = desk.app.desk.store
        await desk.until(lambda: len(store) == 2)

        def clock(at: float) -> str:
            return time.strftime("%H:%M:%S UTC", time.gmtime(at))

        assert store.texts[-1] == f"── before [red] the fix ── host {clock(NOW + 90)}, here {clock(NOW)}"
        assert store.times[-1] == NOW + 90


async def test_a_pinned_pattern_counts_and_comes_back() -> None:
    session = session_with(lines("retract one", "x", "Retract two"))
    async with console(session) as desk:
        pane = await opened(desk)
        await answer(desk, pane, "P", "retract")
        await desk.until(lambda: "retract 2" in str(pane.query_one("#pins").render()))
        session.lines.put_nowait(lines("retract three"))
        await desk.until(lambda: "retract 3" in str(pane.query_one("#pins").render()))
        assert JournalMemory.of(session.profile.connection.host or "", session.profile.service.unit).pins == [
            "retract"
        ]
        await answer(desk, pane, "P", "retract")
        await desk.until(lambda: not pane.has_class("-pinned"))


async def test_what_is_shown_is_saved_under_a_new_name(tmp_path: Path) -> None:
    there = tmp_path / "there.log"
    there.write_text("mine")
    async with console(session_with(lines("one", "two", "three"))) as desk:
        pane = await opened(desk)
        await desk.press("slash", "t", "enter")
        await answer(desk, pane, "S", str(there))
        await desk.until(lambda: "exists" in str(pane.query_one("#question-fault").render()))
        pane.query_one(Question).value = str(tmp_path / "new.log")
        await desk.press("enter")
        await desk.until(lambda: (tmp_path / "new.log").exists() and pane.view.has_focus)
        await desk.until(lambda: len((tmp_path / "new.log").read_text().splitlines()) == 2)
        assert [line.split(" ", 1)[1] for line in (tmp_path / "new.log").read_text().splitlines()] == [
            "two",
            "three",
        ]
        assert there.read_text() == "mine"


async def test_the_filter_is_inverted_and_is_there_again_next_time() -> None:
    for start in range(2):
        async with console(session_with(lines("one", "two", "three"))) as desk:
            pane = await opened(desk)
            if not start:
                await desk.press("slash", "t", "enter")
                await desk.until(lambda pane=pane: len(pane.view.matches) == 2)  # type: ignore[misc]
                await desk.press("exclamation_mark")
            await desk.until(lambda pane=pane: pane.view.matches == [0])  # type: ignore[misc]
            assert pane.query_one(FilterInput).value == "! t"


async def test_an_expression_that_takes_too_long_is_given_up_and_that_is_said() -> None:
    async with console(session_with(lines("a" * 3000, "aab"))) as desk:
        pane = await opened(desk)
        await desk.press("slash")
        await desk.type("/(a|aa)+c/")
        await desk.until(lambda: "make it simpler" in desk.text())
        await desk.press("escape")
        await desk.until(lambda: pane.view.has_focus and "simpler" not in desk.text())


async def test_selected_lines_are_copied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console(session_with(lines(*(f"line {i}" for i in range(9))))) as desk:
        copied: list[str] = []
        monkeypatch.setattr(desk.app, "copy_to_clipboard", copied.append)
        pane = await opened(desk)
        await desk.press("k", "V", "k", "k")
        await desk.until(lambda: "3 selected" in desk.text())
        await desk.press("y")
        assert copied == ["line 6\nline 7\nline 8"]
        await desk.press("y")
        assert copied[1:] == ["line 6"] and pane.view.selected_from is None


async def test_a_traceback_is_opened_and_folded_again() -> None:
    async with console(session_with(lines("before", *TRACE, "after"))) as desk:
        pane = await opened(desk)
        view = pane.view

        def rows() -> list[str]:
            return [view.render_line(y).text.rstrip()[9:] for y in range(6)]

        assert rows()[1].endswith("▸ 3 lines") and rows()[2] == "after"
        await desk.press("e", "o")
        await desk.until(lambda: rows()[2] == TRACE[1])
        assert rows()[3:6] == [TRACE[2], TRACE[3], "after"]
        await desk.press("o")
        await desk.until(lambda: rows()[2] == "after")


async def test_colours_of_the_line_are_kept_as_styles() -> None:
    from ddtui.sanitize import styled

    text, spans = styled("[2026-05-28 12:00:00] a \x1b[31mred\x1b[0m word")
    async with console(session_with([JournalLine(NOW, text, spans=spans)])) as desk:
        pane = await opened(desk)
        segments = list(pane.view.render_line(0))
        assert "\x1b" not in "".join(segment.text for segment in segments)
        (red,) = [segment for segment in segments if segment.text == "red"]
        assert red.style is not None and red.style.color is not None and red.style.color.name == "red"


async def test_lines_flow_behind_a_dialog_and_are_there_after_a_resize() -> None:
    session = FakeSession()
    session.lines.put_nowait(journal())
    async with console(session, (160, 45)) as desk:
        await desk.until(lambda: "Decode batch" in desk.text())
        await desk.press("H")
        await desk.dialog(HostsDialog)
        session.lines.put_nowait([JournalLine(NOW, "a line behind the dialog")])
        await desk.pilot.resize_terminal(120, 36)

        def behind() -> str:
            strips = desk.tune._compositor.render_strips()
            return "\n".join(strip.text for strip in strips)

        await desk.until(lambda: "a line behind the" in behind())


async def test_a_filter_that_nothing_matches_says_so_where_the_lines_would_be() -> None:
    session = FakeSession()
    session.lines.put_nowait(journal())
    async with console(session) as desk:
        await desk.press("2", "slash")
        await desk.until(lambda: isinstance(desk.app.focused, FilterInput))
        assert "none of" not in desk.text()
        await desk.type("nowhere")
        await desk.until(lambda: "none of 65 lines: / changes the filter" in desk.text())
        assert "↵ keep it  escape clear it  ^q quit" in desk.text()
        await desk.press("escape")
        await desk.until(lambda: "none of" not in desk.text())
