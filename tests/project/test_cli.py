"""The command line: what it answers, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ddtui import cli, locations
from ddtui.commands import COMMANDS


def ddtui(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ddtui", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_help_lists_every_command_and_the_exit_codes() -> None:
    done = ddtui("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"\n    {command} " in done.stdout
    assert "exit codes: 0 done" in done.stdout


def test_version() -> None:
    assert ddtui("--version").stdout == f"ddtui {cli.__version__}\n"


def test_a_mistyped_command_is_told_apart_from_a_profile() -> None:
    done = ddtui("chekc", "demo")
    assert done.returncode == 2
    assert "chekc" in done.stderr and "did you mean `ddtui check`" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["bench", "--seconds", "10"],
            "ddtui bench: error: there is no option '--seconds'; did you mean --max-seconds?",
        ),
        (["plan", "x", "--zzz"], "ddtui plan: error: there is no option '--zzz'; see `ddtui plan --help`"),
        (
            ["inspect", "log", "a", "b"],
            "ddtui inspect log: error: 'b' is one word too many; see `ddtui inspect log --help`",
        ),
    ],
)
def test_a_command_says_itself_what_it_does_not_know(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.run(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize("command", ["check", "plan", "apply", "rollback", "logs", "doctor", "bench"])
def test_an_unknown_profile_is_one_sentence_and_exit_2(command: str) -> None:
    done = ddtui(command, "nosuch")
    assert done.returncode == 2
    assert done.stderr.startswith("ddtui: there is no profile named 'nosuch'")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_host_that_does_not_answer_is_one_sentence_and_exit_3(tmp_path: Path) -> None:
    profile = tmp_path / "x.yaml"
    profile.write_text(
        "connection: {host: 127.0.0.1, port: 1}\nservice: {unit: a.service}\nknobs: [{name: a, flag: --a}]\n"
    )
    done = ddtui("check", str(profile))
    assert done.returncode == 3, done.stderr
    assert "127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr


def test_profiles_lists_the_shipped_ones_as_json() -> None:
    done = ddtui("profiles", "--json")
    listed = json.loads(done.stdout)
    assert listed["schema"] == "ddtui/profiles/1"
    assert {row["name"] for row in listed["profiles"]} == {"demo", "kimi-k26-ddtree", "dflash", "eagle3"}


def test_a_new_profile_is_valid_and_never_overwrites() -> None:
    assert ddtui("profiles", "new", "mine").returncode == 0
    path = locations.config_dir() / "profiles/mine.yaml"
    assert "name: mine" in path.read_text()
    assert ddtui("profiles", "validate", "mine").returncode == 0
    again = ddtui("profiles", "new", "mine")
    assert again.returncode == 2
    assert "exists already" in again.stderr


def test_validate_names_every_fault_and_exits_2() -> None:
    folder = locations.config_dir() / "profiles"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_text("connection: {}\n")
    done = ddtui("profiles", "validate", "--json")
    assert done.returncode == 2
    assert "connection.host: is missing" in json.loads(done.stdout)["faults"]["bad"]


def test_a_change_without_a_wish_is_refused_before_anything_else() -> None:
    done = ddtui("plan", "nosuch")
    assert done.returncode == 2


def test_ddtui_without_a_terminal_says_so() -> None:
    done = ddtui("console", "demo")
    assert done.returncode == 2
    assert "terminal" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_expected_failure_of_the_rooms_has_an_exit_code() -> None:
    """Each class in the table exists, and none of the rooms' own errors is missing from it."""
    import importlib

    from ddtui.commands import failure

    for module, name, code in failure.CODES:
        kind = getattr(importlib.import_module(module), name)
        assert failure.code_of(kind.__new__(kind)) == code, name
