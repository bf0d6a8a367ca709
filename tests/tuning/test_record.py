"""The change record as text: what stands on top of what, and lines that a cut left half."""

from __future__ import annotations

import json

from ddtui.host.supervisors.systemd import Systemd
from ddtui.profile import Service
from ddtui.tuning import record
from ddtui.tuning.model import ChangeRecord, FileTrace, Op, Phase, Turn
from ddtui.tuning.place import Place

TRACE = FileTrace("/etc/systemd/system/x.service.d/zzz-ddtui.conf", None, "aa" * 32, True)


def entry(
    id: str, phase: Phase = Phase.VERIFIED, restores: str | None = None, files: bool = True
) -> ChangeRecord:
    return ChangeRecord(
        id=id,
        at=1000.0,
        who="ann@laptop:11",
        unit="x.service",
        turns=(Turn("budget", Op.SET, "16"),),
        why="",
        files=(TRACE,) if files else (),
        argv_before=("python", "--budget", "8"),
        argv_after=("python", "--budget", "16"),
        phase=phase,
        result="",
        restores=restores,
        timings={"target weights": 12.5},
    )


def text(*entries: ChangeRecord) -> bytes:
    return b"".join(b"\n" + json.dumps(record.plain(one)).encode() + b"\n" for one in entries)


def stack(*entries: ChangeRecord) -> list[str]:
    return [one.id for one in record.in_force(entries)]


def test_a_record_reads_back_as_it_was_written() -> None:
    assert record.parse(text(entry("a"))) == (entry("a"),)


def test_the_last_line_of_a_change_counts() -> None:
    (one,) = record.parse(text(entry("a", Phase.PLANNED), entry("a", Phase.STARTING)))
    assert one.phase is Phase.STARTING
    assert record.unfinished([one]) is one


def test_a_line_cut_in_the_middle_is_passed_over_and_the_next_one_is_read() -> None:
    whole = text(entry("a", Phase.PLANNED))
    torn = text(entry("a", Phase.WRITING))[:-40]
    assert record.parse(whole + torn)[0].phase is Phase.PLANNED
    assert record.parse(whole + torn + text(entry("a", Phase.VERIFIED)))[0].phase is Phase.VERIFIED


def test_lines_of_a_later_ddtui_or_of_no_sense_are_passed_over() -> None:
    assert record.parse(b'{"schema": "ddtui/change/9", "id": "x"}\n\xff\xfe\n[]\nnull\n') == ()
    assert record.parse(text(entry("a")).replace(b'"verified"', b'"dancing"')) == ()


def test_changes_stand_on_top_of_each_other() -> None:
    assert stack(entry("a"), entry("b")) == ["a", "b"]


def test_a_change_that_failed_or_was_rolled_back_leaves_nothing() -> None:
    assert stack(entry("a"), entry("b", Phase.ROLLED_BACK), entry("c", Phase.FAILED)) == ["a"]


def test_a_change_that_is_still_being_made_does_not_count_yet() -> None:
    assert stack(entry("a"), entry("b", Phase.STARTING)) == ["a"]


def test_a_roll_back_takes_away_all_above_the_change_it_went_to() -> None:
    assert stack(entry("a"), entry("b"), entry("c"), entry("d", restores="a")) == ["a"]
    assert stack(entry("a"), entry("b"), entry("c", restores="")) == []
    assert stack(entry("a"), entry("b"), entry("c", Phase.ROLLED_BACK, restores="a")) == ["a", "b"]


def test_a_plain_restart_is_no_setting() -> None:
    assert stack(entry("a"), entry("b", files=False)) == ["a"]


def test_the_way_back_quotes_what_a_shell_would_take_apart() -> None:
    hostile = ChangeRecord(
        **{
            **{name: getattr(entry("a"), name) for name in ChangeRecord.__slots__},
            "files": (FileTrace("/etc/a b/$(x).conf", "bb", "cc", False), TRACE),
        }
    )
    lines = record.shell_way_back(
        Place("/var/lib/ddtui/x.service", True, True), hostile, Systemd(Service(unit="x.service"))
    )
    assert lines[0] == "sudo cp /var/lib/ddtui/x.service/a/0.before '/etc/a b/$(x).conf'"
    assert lines[1] == f"sudo rm -f {TRACE.path}"
    assert lines[2:] == (
        "sudo systemctl daemon-reload",
        "sudo systemctl reset-failed x.service",
        "sudo systemctl restart x.service",
    )


def test_ids_sort_by_time() -> None:
    assert record.new_id(1000.0) < record.new_id(2000.0)


def test_what_systemd_loaded_is_compared_exactly_and_without_quotes_where_it_loses_them() -> None:
    planned = record.digest_argvs([["python", "--name", "kimi k2.6", "--budget", "8"]])
    assert record.loaded_as(planned, [["python", "--name", "kimi k2.6", "--budget", "8"]])
    assert record.loaded_as(planned, [["python", "--name", "kimi", "k2.6", "--budget", "8"]])
    assert not record.loaded_as(planned, [["python", "--name", "kimi", "k2.6", "--budget", "16"]])
    assert not record.loaded_as(planned, [["python", "--name kimi", "k2.6", "--budget", "8"]])
