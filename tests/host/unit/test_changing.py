"""ddtui's own drop-in through its life: made, changed, undone, gone stale, made anew; and what is refused."""

from __future__ import annotations

import pytest
from host.unit.offline import Offline

from ddtui.host.unit.change import UnitChange, change_unit, rebase
from ddtui.host.unit.read import UnitReading, read_unit

PYTHON = "/opt/venv/bin/python3 -m sglang.launch_server"
UNIT = "/etc/systemd/system/s.service"
OURS = "/etc/systemd/system/s.service.d/zzz-ddtui.conf"


def unit(command: str, more: str = "") -> Offline:
    return Offline({UNIT: f"[Service]\n{more}ExecStart={PYTHON} {command}\n"})


def read(tree: Offline) -> UnitReading:
    return read_unit(tree, "s")


def turn(tree: Offline, *turns: tuple[str, str, str | None]) -> UnitChange:
    return change_unit(tree, read(tree), turns)


def turned(tree: Offline, *turns: tuple[str, str, str | None]) -> Offline:
    return tree.after(turn(tree, *turns))


def flags(tree: Offline) -> dict[str, object]:
    return dict(read(tree).flags)


# -- the drop-in's life ------------------------------------------------------------------------------------------
def test_several_turns_gather_in_one_drop_in_and_go_one_by_one() -> None:
    start = unit("--tp 8 --a 1 --b 2")
    one = turned(start, ("--a", "set", "5"))
    two = turned(one, ("--b", "set", "6"), ("--c", "set", "7"))
    assert flags(two) == {"--tp": "8", "--a": "5", "--b": "6", "--c": "7"}
    back = turned(two, ("--a", "set", "1"), ("--c", "unset", None))
    assert flags(back) == {"--tp": "8", "--a": "1", "--b": "6"}
    assert turned(back, ("--b", "set", "2")).read(OURS) is None


def test_the_operators_files_stay_byte_for_byte() -> None:
    start = unit("--tp 8", "# mine\n\n  Environment=A=1  \n")
    changed = turned(start, ("--tp", "set", "4"), ("--x", "set", None))
    assert changed.read(UNIT) == start.read(UNIT)


def test_variables_and_specifiers_stay_alive_in_what_is_repeated() -> None:
    start = unit("--model-path ${M} $EXTRA --name '%n %%' --tp 8", "Environment=M=/a\n")
    changed = turned(start, ("--tp", "set", "4"))
    content = (changed.read(OURS) or b"").decode()
    assert f"ExecStart={PYTHON} --model-path ${{M}} $EXTRA --name '%n %%' --tp 4\n" in content
    later = changed.with_files({UNIT: (start.read(UNIT) or b"").replace(b"M=/a", b"M=/b")})
    assert flags(later)["--model-path"] == "/b"


def test_every_command_of_a_oneshot_is_repeated() -> None:
    start = Offline(
        {
            UNIT: f"[Service]\nType=oneshot\nExecStart=/bin/true a\nExecStart={PYTHON} --tp 8\nExecStart=/bin/b\n"
        }
    )
    after = turn(start, ("--tp", "set", "4"))
    assert after.exec_start_after == (
        ("/bin/true", "a"),
        (*PYTHON.split(), "--tp", "4"),
        ("/bin/b",),
    )


@pytest.mark.parametrize(
    ("other", "ours"),
    [
        ("50-site.conf", "zzz-ddtui.conf"),
        ("zz-site.conf", "zzz-ddtui.conf"),
        ("zzz-site.conf", "zzzz-ddtui.conf"),
        ("zzz-ddtui-extra.conf", "zzz-ddtui.conf"),
        ("zzzzz.conf", "zzzzzz-ddtui.conf"),
        ("~last.conf", "~last_ddtui.conf"),
        ("ünï.conf", "ünï_ddtui.conf"),
    ],
)
def test_the_drop_in_sorts_after_every_other(other: str, ours: str) -> None:
    folder = "/etc/systemd/system/s.service.d"
    start = Offline(
        {
            UNIT: "[Service]\nExecStart=/bin/false\n",
            f"{folder}/{other}": f"[Service]\nExecStart=\nExecStart={PYTHON} --tp 8\n",
        }
    )
    after = turn(start, ("--tp", "set", "4"))
    (edit,) = after.edits
    assert edit.path == f"{folder}/{ours}"
    assert edit.path.encode() > f"{folder}/{other}".encode()


def test_a_drop_in_that_no_longer_comes_last_is_moved() -> None:
    changed = turned(unit("--tp 8 --a 1"), ("--tp", "set", "4"))
    later = "/etc/systemd/system/s.service.d/zzzz-site.conf"
    overridden = changed.with_files(
        {later: f"[Service]\nExecStart=\nExecStart={PYTHON} --tp 2 --a 1\n".encode()}
    )
    assert flags(overridden)["--tp"] == "2"
    assert "comes after" in (read(overridden).stale or "")
    again = turn(overridden, ("--tp", "set", "4"))
    assert {e.path.rpartition("/")[2]: e.after is None for e in again.edits} == {
        "zzz-ddtui.conf": True,
        "zzzzz-ddtui.conf": False,
    }
    assert flags(overridden.after(again))["--tp"] == "4"


def test_a_user_units_drop_in_is_the_users() -> None:
    tree = Offline({"/home/u/.config/systemd/user/s.service": f"[Service]\nExecStart={PYTHON} --tp 8\n"})
    from ddtui.host.unit.facts import HostFacts

    reading = read_unit(tree, "s", "user", HostFacts(home="/home/u", user="u", uid=1))
    (edit,) = change_unit(tree, reading, [("--tp", "set", "4")]).edits
    assert edit.path == "/home/u/.config/systemd/user/s.service.d/zzz-ddtui.conf"


def test_a_new_drop_in_takes_the_rights_of_what_it_repeats() -> None:
    (edit,) = turn(unit("--api-key secret --tp 8"), ("--tp", "set", "4")).edits
    assert edit.ours and edit.like == UNIT


def test_only_what_needs_it_asks_for_a_reload() -> None:
    assert turn(unit("--tp 8"), ("--tp", "set", "4")).reload
    files = {UNIT: f"[Service]\nEnvironmentFile=/e\nExecStart={PYTHON} $ARGS\n", "/e": "ARGS=--tp 8\n"}
    made = turn(Offline(files), ("--tp", "set", "4"))
    assert not made.reload and "no daemon-reload is needed" in made.notes[0]


# -- stale -------------------------------------------------------------------------------------------------------
def test_a_change_below_the_drop_in_is_noticed_and_taken_over_by_a_rebase() -> None:
    changed = turned(
        unit("--tp 8 --a 1 --b 2 --c 3"), ("--a", "set", "5"), ("--b", "unset", None), ("--new", "set", "x y")
    )
    assert read(changed).stale is None
    edited = changed.with_files(
        {UNIT: f"[Service]\nExecStart={PYTHON} --tp 4 --a 1 --b 2 --c 9 --d\n".encode()}
    )
    assert f"was made when ExecStart= in {UNIT}:2 was another" in (read(edited).stale or "")
    assert flags(edited)["--tp"] == "8"
    anew = edited.after(rebase(edited, read(edited)))
    assert read(anew).stale is None
    assert flags(anew) == {"--tp": "4", "--a": "5", "--c": "9", "--d": True, "--new": "x y"}


def test_a_changed_variable_below_is_noticed_too() -> None:
    changed = turned(unit("--budget ${B} --tp 8", "Environment=B=8\n"), ("--budget", "set", "16"))
    assert read(changed).stale is None
    edited = changed.with_files({UNIT: (changed.read(UNIT) or b"").replace(b"B=8", b"B=32")})
    assert "when the variable B in /etc/systemd/system/s.service:2 was another" in (read(edited).stale or "")
    anew = edited.after(rebase(edited, read(edited)))
    assert read(anew).stale is None and flags(anew)["--budget"] == "16"


def test_a_rebase_that_finds_the_same_below_needs_no_drop_in() -> None:
    changed = turned(unit("--tp 8"), ("--tp", "set", "4"))
    edited = changed.with_files({UNIT: f"[Service]\nExecStart={PYTHON} --tp 4\n".encode()})
    assert edited.after(rebase(edited, read(edited))).read(OURS) is None


def test_the_order_of_what_stands_below_may_change_without_making_it_stale() -> None:
    changed = turned(unit("--tp 8"), ("--tp", "set", "4"))
    edited = changed.with_files({UNIT: (changed.read(UNIT) or b"") + b"Restart=always\nEnvironment=X=1\n"})
    assert read(edited).stale is None


# -- flags -------------------------------------------------------------------------------------------------------
def test_of_a_repeated_flag_one_is_left_where_the_last_stood() -> None:
    after = turn(unit("--a 1 --b 2 --a 3 --c 4 --a=5 --d 6"), ("--a", "set", "9"))
    assert after.launch_argv_after == (*PYTHON.split(), "--b", "2", "--c", "4", "--a=9", "--d", "6")
    gone = turn(unit("--a 1 --b 2 --a=3"), ("--a", "unset", None))
    assert gone.launch_argv_after == (*PYTHON.split(), "--b", "2")


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("--speculative-algo", "--speculative-algorithm"),
        ("--model", "--model-path"),
        ("--tensor-parallel-size", "--tp"),
        ("--speculative-dflash-draft-window-size", "--speculative-draft-window-size"),
    ],
)
def test_another_spelling_of_a_flag_is_the_same_flag(written: str, asked: str) -> None:
    after = turn(unit(f"{written} old --x 1"), (asked, "set", "new"))
    assert after.launch_argv_after == (*PYTHON.split(), written, "new", "--x", "1")


def test_a_value_that_looks_like_a_flag_is_written_with_an_equals_sign() -> None:
    after = turn(unit("--x 1"), ("--y", "set", "--z"))
    assert after.launch_argv_after == (*PYTHON.split(), "--x", "1", "--y=--z")


def test_negative_numbers_are_values() -> None:
    assert turn(unit("--x -1"), ("--x", "set", "-2")).launch_argv_after == (*PYTHON.split(), "--x", "-2")


def test_a_shared_variable_is_left_alone() -> None:
    start = unit("--port ${P} --metrics-port ${P}", "Environment=P=1\n")
    after = turned(start, ("--port", "set", "2"))
    assert flags(after) == {"--port": "2", "--metrics-port": "1"}


def test_a_file_that_other_instances_read_is_left_alone() -> None:
    files = {
        "/etc/systemd/system/s@.service": f"[Service]\nEnvironmentFile=/etc/all.env\nExecStart={PYTHON} --budget ${{B}}\n",
        "/etc/all.env": "B=8\n",
    }
    tree = Offline(files)
    made = change_unit(tree, read_unit(tree, "s@a"), [("--budget", "set", "16")])
    assert [e.path for e in made.edits] == ["/etc/systemd/system/s@a.service.d/zzz-ddtui.conf"]
    assert made.launch_argv_after == (*PYTHON.split(), "--budget", "16")


def test_a_script_that_other_instances_run_is_changed_with_a_word_about_it() -> None:
    files = {
        "/etc/systemd/system/s@.service": "[Service]\nExecStart=/bin/sh /opt/run.sh %i\n",
        "/opt/run.sh": f"exec {PYTHON} --tp 8\n",
    }
    tree = Offline(files)
    made = change_unit(tree, read_unit(tree, "s@a"), [("--tp", "set", "4")])
    assert made.notes == ("/opt/run.sh is also read by the other instances of s@.service",)


def test_a_value_in_the_last_line_without_its_end_is_changed() -> None:
    files = {UNIT: f"[Service]\nEnvironmentFile=/e\nExecStart={PYTHON} $A", "/e": "A=--tp 8"}
    assert turned(Offline(files), ("--tp", "set", "4")).read("/e") == b"A=--tp 4"


# -- environment variables ---------------------------------------------------------------------------------------
def test_a_variable_is_set_and_taken_away() -> None:
    start = unit("--tp 8", "Environment=A=1\n")
    there = turned(start, ("SGLANG_X", "set", "a b%"))
    assert read(there).env == {"A": "1", "SGLANG_X": "a b%"}
    assert turned(there, ("SGLANG_X", "unset", None)).read(OURS) is None
    without = turned(start, ("A", "unset", None))
    assert read(without).env == {}
    assert turned(without, ("A", "set", "1")).read(OURS) is None


def test_a_variable_of_an_environment_file_is_changed_there() -> None:
    files = {UNIT: f"[Service]\nEnvironmentFile=/e\nExecStart={PYTHON}\n", "/e": "# x\nSGLANG_X=1\n"}
    assert turned(Offline(files), ("SGLANG_X", "set", "two words")).read("/e") == b"# x\nSGLANG_X=two words\n"


def test_a_variable_that_a_script_sets_is_changed_there() -> None:
    files = {UNIT: "[Service]\nExecStart=/opt/r.sh\n", "/opt/r.sh": f"#!/bin/sh\nexport X=1\nexec {PYTHON}\n"}
    assert (
        turned(Offline(files), ("X", "set", "2")).read("/opt/r.sh")
        == f"#!/bin/sh\nexport X=2\nexec {PYTHON}\n".encode()
    )


# -- what is refused ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["nul\0byte", "\udcff"])
def test_what_no_command_line_can_carry_is_refused(value: str) -> None:
    made = turn(unit("--tp 8"), ("--tp", "set", value))
    assert made.edits == () and len(made.problems) == 1


def test_nothing_is_changed_in_a_unit_that_systemd_refuses() -> None:
    tree = Offline({UNIT: f"[Service]\nExecStart={PYTHON}\nExecStart={PYTHON}\n"})
    assert turn(tree, ("--tp", "set", "1")).problems[0].startswith("the unit cannot be changed as it stands")


def test_a_container_that_is_only_started_is_out_of_reach() -> None:
    tree = Offline({UNIT: "[Service]\nExecStart=/usr/bin/docker start -a sglang\n"})
    assert any("was given when it was made" in w for w in read(tree).warnings)
    assert turn(tree, ("--tp", "set", "1")).problems


def test_one_turn_that_cannot_be_made_makes_none() -> None:
    made = turn(unit("--tp 8"), ("--tp", "set", "4"), ("--x", "set", "a\0"))
    assert made.edits == () and made.launch_argv_after == (*PYTHON.split(), "--tp", "8")


def test_something_that_is_no_flag_is_refused() -> None:
    assert turn(unit("--tp 8"), ("not a flag", "set", "4")).problems
