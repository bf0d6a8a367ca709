"""The history: steps with numbers, bursts and points, two consoles at once, and files that it must not touch."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddtui import locations
from ddtui.store import schema
from ddtui.store.history import History
from ddtui.store.model import HistoryError, Setting

HOST, UNIT = "ct200", "sglang.service"


def setting(budget: int | None = 8, **what: Any) -> Setting:
    knobs = {"budget": None if budget is None else str(budget), "topk": "4"}
    flags = {"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": budget, **what.pop("flags", {})}
    return Setting(knobs=knobs, flags=flags, **{"engine": "0.5.11 (/opt/sglang)", **what})


def point(
    concurrency: int = 8, context: int = 512, rate: float | None = 500.0, at: float = 100.0, **what: Any
) -> dict[str, Any]:
    return {
        "cell": {"concurrency": concurrency, "context": context, "workload": "code"},
        "started_at": at,
        "final": True,
        "preview": False,
        "marks": [],
        "output_rate": None if rate is None else {"value": rate, "low": rate, "high": rate, "n": 40},
        "accept_length": {"value": 5.0, "low": 5.0, "high": 5.0, "n": 40},
        "step_ms": None,
        **what,
    }


def burst(name: str, step: int | None, *points: dict[str, Any], at: float = 100.0) -> dict[str, Any]:
    return {
        "id": name,
        "step": step,
        "started_at": at,
        "state": "done",
        "points": list(points),
        "raw": "r.jsonl",
    }


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = History.open(tmp_path / "deep" / "history.sqlite")
    yield made
    made.close()


class TestSteps:
    def test_the_same_setting_is_the_same_step(self, history: History) -> None:
        first = history.step(HOST, UNIT, setting(8))
        other = history.step(HOST, UNIT, setting(16))
        again = history.step(HOST, UNIT, setting(8), verdicts=[{"subject": "budget"}])
        assert (first.number, other.number, again.number) == (1, 2, 1)
        assert again.verdicts == [{"subject": "budget"}] and again.at == first.at

    def test_numbers_count_for_each_host_and_unit(self, history: History) -> None:
        history.step(HOST, UNIT, setting(8))
        assert history.step("other", UNIT, setting(8)).number == 1
        assert history.step(HOST, "b.service", setting(8)).number == 1

    @pytest.mark.parametrize("name", ["random_seed", "nccl_port", "port", "max_total_num_tokens"])
    def test_what_a_start_chooses_anew_is_no_other_step(self, name: str) -> None:
        assert setting(flags={name: 1}).identity == setting(flags={name: 2}).identity

    @pytest.mark.parametrize(
        "other",
        [
            setting(9),
            setting(flags={"page_size": 2}),
            setting(engine="0.5.12"),
            setting(drafter="x"),
        ],
    )
    def test_anything_else_is(self, other: Setting) -> None:
        assert other.identity != setting().identity

    def test_a_step_comes_back_as_it_was(self, history: History) -> None:
        kept = history.step(HOST, UNIT, setting(None, environment={"A": "b"}), simulated=True, at=5.0)
        (step,) = history.steps()
        assert step == kept and step.setting == setting(None, environment={"A": "b"})
        assert (step.host, step.unit, step.at, step.simulated) == (HOST, UNIT, 5.0, True)

    def test_search_finds_knobs_flags_versions_and_notes(self, history: History) -> None:
        for budget in (8, 16):
            history.step(HOST, UNIT, setting(budget))
        step = history.steps(search="budget=16")[0]
        history.add_note("step", str(step.id), "the 100% quiet one")
        for words, numbers in (
            ("--speculative-ddtree-budget=8", [1]),
            ("DDTREE 0.5.11", [2, 1]),
            ("100% quiet", [2]),
            ("100_", []),
            ("budget=8 budget=16", []),
        ):
            assert [found.number for found in history.steps(search=words)] == numbers, words

    def test_deleting_takes_all_that_hangs_on_it(self, history: History, tmp_path: Path) -> None:
        one, two = history.step(HOST, UNIT, setting(8)), history.step(HOST, UNIT, setting(16))
        gone, kept_records = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
        for name, step, raw in (("a", one, gone), ("b", two, kept_records), ("c", one, tmp_path / "lost")):
            history.save_burst(HOST, UNIT, {**burst(name, step.number, point()), "raw": str(raw)})
        gone.touch()
        kept_records.touch()
        assert history.delete_step(one.id) == 2
        assert not gone.exists() and kept_records.exists()
        assert [step.number for step in history.steps()] == [2]
        assert [kept.id for kept in history.bursts()] == ["b"]
        assert history.points(HOST, UNIT, steps=[1, 2]).keys() == {2}
        with pytest.raises(HistoryError, match="no step"):
            history.delete_step(one.id)


class TestBursts:
    def test_saving_again_replaces(self, history: History) -> None:
        history.save_burst(HOST, UNIT, burst("a", 1, point(rate=1.0)), note="quiet")
        history.save_burst(HOST, UNIT, burst("a", 1, point(rate=2.0), point(16, rate=3.0)))
        (kept,) = history.bursts()
        assert kept.note == "quiet" and len(kept.burst["points"]) == 2
        assert [p["output_rate"]["value"] for p in history.points(HOST, UNIT, steps=[1])[1]] == [2.0, 3.0]

    def test_newest_point_of_each_cell(self, history: History) -> None:
        history.save_burst(
            HOST, UNIT, burst("a", 1, point(rate=1.0, at=10), point(1, rate=7.0, at=11), at=10)
        )
        history.save_burst(
            HOST, UNIT, burst("b", 1, point(rate=2.0, at=20), point(8, rate=None, at=30), at=20)
        )
        found = history.points(HOST, UNIT, steps=[1])[1]
        assert [(p["cell"]["concurrency"], p["output_rate"]["value"]) for p in found] == [(1, 7.0), (8, 2.0)]

    def test_a_running_point_is_not_kept_as_a_result(self, history: History) -> None:
        history.save_burst(HOST, UNIT, burst("a", 1, point(final=False)))
        assert history.points(HOST, UNIT, steps=[1]) == {}

    def test_deleting_a_burst(self, history: History, tmp_path: Path) -> None:
        raw = tmp_path / "a.jsonl"
        raw.touch()
        history.save_burst(HOST, UNIT, {**burst("a", 1, point()), "raw": str(raw)})
        history.delete_burst("a")
        assert not raw.exists()
        assert history.bursts() == [] and history.points(HOST, UNIT, steps=[1]) == {}
        with pytest.raises(HistoryError, match="no burst"):
            history.delete_burst("a")


def test_changes_and_starts(history: History) -> None:
    history.save_change(HOST, UNIT, {"id": "1", "at": 1.0, "phase": "writing", "result": ""})
    history.save_change(HOST, UNIT, {"id": "1", "at": 1.0, "phase": "verified", "result": "ok"}, step=4)
    history.save_change(HOST, UNIT, {"id": "2", "at": 2.0, "phase": "rolled back", "result": "no"})
    assert [(c.id, c.phase, c.step) for c in history.changes(HOST)] == [
        ("2", "rolled back", None),
        ("1", "verified", 4),
    ]
    for at, seconds in ((1.0, 60.0), (2.0, None), (3.0, 45.5)):
        history.save_start(HOST, UNIT, seconds, step=1, at=at)
    assert [start.seconds for start in history.last_starts(HOST, UNIT)] == [45.5, 60.0]
    assert history.last_starts("other", UNIT) == []


def test_quality_and_aa_runs(history: History) -> None:
    history.save_quality(HOST, UNIT, 1, {"equal": True}, at=1.0)
    history.save_quality(HOST, UNIT, 2, {"equal": False}, at=2.0)
    assert history.quality(HOST, UNIT) == [{"equal": False}, {"equal": True}]
    assert history.quality(HOST, UNIT, step=1) == [{"equal": True}]
    for at, rate in ((2.0, 101.0), (1.0, 100.0)):
        history.save_aa(HOST, UNIT, "kimi/8x512", {"output_rate": rate}, at=at)
    assert history.aa_means(HOST, UNIT, "kimi/8x512", "output_rate") == [100.0, 101.0]
    assert history.aa_means(HOST, UNIT, "kimi/8x512", "ttft") == []


class TestFile:
    def test_its_place_is_the_data_folder(self) -> None:
        history = History.open()
        history.close()
        path = locations.data_dir() / "history.sqlite"
        assert path.is_file() and path.stat().st_mode & 0o077 == 0

    def test_opening_again_finds_everything(self, tmp_path: Path) -> None:
        path = tmp_path / "h.sqlite"
        history = History.open(path)
        history.step(HOST, UNIT, setting())
        history.close()
        again = History.open(path)
        assert len(again.steps()) == 1
        again.close()

    def test_a_newer_file_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "h.sqlite"
        History.open(path).close()
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        before = path.read_bytes()
        with pytest.raises(HistoryError, match="newer ddtui"):
            History.open(path)
        assert path.read_bytes() == before

    @pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 200, b"x"])
    def test_what_is_no_database_is_left_as_it_is(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "h.sqlite"
        path.write_bytes(content)
        with pytest.raises(HistoryError, match="not an SQLite file"):
            History.open(path)
        assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]

    def test_another_programs_database_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "h.sqlite"
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE moz_places (id INTEGER)")
        db.commit()
        db.close()
        before = path.read_bytes()
        with pytest.raises(HistoryError, match="another program"):
            History.open(path)
        assert path.read_bytes() == before

    def test_a_damaged_file_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = tmp_path / "h.sqlite"
        history = History.open(path)
        for number in range(300):
            history.save_burst(HOST, UNIT, burst(str(number), 1, point()))
        history.close()
        data = bytearray(path.read_bytes())
        for page in range(2, len(data) // 4096 - 1):
            data[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
        path.write_bytes(data)
        with pytest.raises(HistoryError, match=r"(damaged|cannot be used).*left as it is"):
            History.open(path)
        assert path.read_bytes() == bytes(data)

    def test_an_unfinished_empty_file_becomes_a_history(self, tmp_path: Path) -> None:
        path = tmp_path / "h.sqlite"
        path.touch()
        History.open(path).close()
        assert path.read_bytes().startswith(b"SQLite format 3")

    def test_a_folder_that_cannot_be_made_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(HistoryError, match="cannot be made"):
            History.open(tmp_path / "file" / "h.sqlite")


WRITER = """
import sys
from pathlib import Path
from ddtui.store.history import History
from ddtui.store.model import Setting
history = History.open(Path(sys.argv[1]))
for number in range(40):
    history.step("h", "u", Setting(knobs={"k": f"{sys.argv[2]}-{number}"}, flags={}))
    history.save_start("h", "u", 1.0)
"""


def test_consoles_in_several_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    history = History.open(path)
    assert sorted(step.number for step in history.steps()) == list(range(1, 121))
    assert len(history.last_starts("h", "u", limit=1000)) == 120
    history.close()


def test_a_thousand_steps_and_twenty_thousand_bursts_list_by_index(tmp_path: Path) -> None:
    history = History.open(tmp_path / "h.sqlite")
    db = history._db
    for number in range(1000):
        history.step(HOST, UNIT, setting(number), at=float(number))
    db.execute("BEGIN")
    db.executemany(
        "INSERT INTO bursts (id, host, step, at, state, raw, simulated, note, burst) VALUES (?, 1, ?, ?, 'done', '', 0, '', ?)",
        [(str(n), n % 1000 + 1, float(n), '{"id":"x"}') for n in range(20_000)],
    )
    db.execute("COMMIT")
    for query in (
        "SELECT * FROM bursts WHERE host = 1 ORDER BY at DESC LIMIT 200",
        "SELECT * FROM bursts WHERE host = 1 AND step = 5 ORDER BY at DESC LIMIT 200",
        "SELECT * FROM bursts ORDER BY at DESC LIMIT 200",
        "SELECT * FROM steps ORDER BY at DESC LIMIT 200",
        "SELECT * FROM points WHERE host = 1 AND step IN (1, 2) GROUP BY step, concurrency, context, workload",
    ):
        plan = " ".join(row["detail"] for row in db.execute("EXPLAIN QUERY PLAN " + query))
        assert "USING INDEX" in plan and "TEMP B-TREE FOR ORDER" not in plan, (query, plan)
    began = time.perf_counter()
    assert len(history.steps(HOST, UNIT)) == 1000 and len(history.bursts(HOST, UNIT)) == 200
    print(f"listed in {time.perf_counter() - began:.3f} s")
    history.close()
