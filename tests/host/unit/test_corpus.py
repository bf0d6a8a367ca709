"""Twenty real shapes of launch set-ups, with the answers that systemd itself gave: read right, and changed right.

corpus/units/README.md says what the keys mean. Values are compared, not the text of drop-ins: many are right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ddtui.host.unit import inspect
from ddtui.host.unit.change import UnitChange, change_unit
from ddtui.host.unit.read import UnitReading, read_unit
from ddtui.host.unit.tree import Tree

CORPUS = Path(__file__).parents[2] / "corpus/units"
CASES = {
    path.name.removesuffix(".expected.json"): json.loads(path.read_text()) for path in CORPUS.glob("*.json")
}
READ = (
    "engine",
    "lives",
    "file",
    "line",
    "wrappers",
    "launch_argv",
    "flags",
    "env",
    "drop_ins",
    "secrets",
    "log",
)
MORE = ("launch_env", "repeats", "effective_flags", "container", "compose", "positional")
WRITES = [(name, number) for name, case in sorted(CASES.items()) for number, _ in enumerate(case["write"])]


def tree_of(name: str) -> Tree:
    return Tree.from_root(CORPUS / name / "root")


def asked(case: Mapping[str, Any]) -> str:
    """The unit, or for a case without one the compose service."""
    return str(case["unit"] or case["read"]["compose"]["service"])


def read(name: str) -> UnitReading:
    return read_unit(tree_of(name), asked(CASES[name]))


def plain(value: Any) -> Any:
    """As JSON holds it."""
    return json.loads(json.dumps(value, default=lambda v: dict(v) if isinstance(v, Mapping) else str(v)))


def test_the_corpus_is_whole() -> None:
    assert len(CASES) == 20
    assert len(WRITES) == 20


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_shape_is_read_right(name: str) -> None:
    expected = CASES[name]["read"]
    reading = read(name)
    for key in (*READ, *(k for k in MORE if k in expected)):
        assert plain(getattr(reading, key)) == expected[key], key
    assert reading.scope == CASES[name]["scope"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_command_is_what_systemd_holds_and_executes(name: str) -> None:
    case = CASES[name]
    reading = read(name)
    # the user manager was not asked over D-Bus when the answers were taken: there, what it executed is the answer
    if case["scope"] == "user":
        assert plain(reading.exec_start) == [case["read"]["launch_argv"]]
        assert plain(reading.argv) == case["read"]["launch_argv"]
    else:
        assert plain(reading.exec_start) == case["read"]["exec_start"]
        assert plain(reading.argv) == case["read"]["argv"]


@pytest.mark.parametrize(("name", "number"), WRITES)
def test_every_change_has_the_right_effect_and_no_other(name: str, number: int) -> None:
    case = CASES[name]
    write = case["write"][number]
    tree = tree_of(name)
    change = change_unit(
        tree, read_unit(tree, asked(case)), [(write["flag"], write["op"], write.get("value"))]
    )
    assert change.problems == ()
    assert change.mechanism == write["mechanism"]
    assert plain(change.launch_argv_after) == write["launch_argv_after"]
    if case["scope"] != "user":
        squeezed = [[squeeze(word) for word in one] for one in write["exec_start_after"] or []]
        assert [[squeeze(word) for word in one] for one in change.exec_start_after or ()] == squeezed
    if "effective_flags_after" in write:
        assert plain(change.effective_flags_after) == write["effective_flags_after"]
    if write["mechanism"] == "drop-in":
        (edit,) = change.edits
        folder = write["drop_in"]["path"].rpartition("/")[0]
        assert edit.ours and edit.before is None and edit.path.startswith(f"{folder}/")
        assert all(
            edit.path.rpartition("/")[2] > drop_in.rpartition("/")[2] for drop_in in case["read"]["drop_ins"]
        )
    else:
        assert lines_changed(change) == {
            (e["file"], e["line"], e["before"], e["after"]) for e in write["edits"]
        }
        assert not any(edit.ours for edit in change.edits)


def squeeze(word: str) -> str:
    """Blanks inside a shell string may differ."""
    return " ".join(word.split(" ")) if " -" not in word else " ".join(word.split())


def lines_changed(change: UnitChange) -> set[tuple[str, int, str, str]]:
    found = set()
    for edit in change.edits:
        before, after = (edit.before or b"").split(b"\n"), (edit.after or b"").split(b"\n")
        assert len(before) == len(after), edit.path
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
            if old != new:
                found.add((edit.path, number, old.decode(), new.decode()))
    return found


@pytest.mark.parametrize(("name", "number"), WRITES)
def test_every_change_turned_back_leaves_the_host_as_it_was(name: str, number: int) -> None:
    case = CASES[name]
    write = case["write"][number]
    tree = tree_of(name)
    before = read_unit(tree, asked(case))
    flag = write["flag"]
    there = change_unit(tree, before, [(flag, write["op"], write.get("value"))])
    changed = tree.with_files({edit.path: edit.after for edit in there.edits})
    old = (before.effective_flags or before.flags).get(flag)
    if old is None:
        turn = (flag, "unset", None)
    else:
        turn = (flag, "set", " ".join(old) if isinstance(old, list) else str(old))
    back = change_unit(changed, read_unit(changed, asked(case)), [turn])
    assert back.problems == ()
    whole = changed.with_files({edit.path: edit.after for edit in back.edits})
    if before.repeats:
        return  # of a repeated flag one is left
    if isinstance(old, list):  # comes back at the end of the line
        assert plain(read_unit(whole, asked(case)).flags) == plain(before.flags)
        return
    for edit in there.edits:
        assert whole.read(edit.path) == tree.read(edit.path), edit.path


@pytest.mark.parametrize("name", ["19-vllm-json", "20-llama-server"])
def test_other_engines_are_named_and_left_alone(name: str) -> None:
    tree = tree_of(name)
    change = change_unit(tree, read(name), [("--port", "set", "1")])
    assert change.edits == ()
    assert change.problems == (
        f"this unit runs {CASES[name]['read']['engine']}, not SGLang: ddtui does not change it",
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_inspect_reports_the_keys_of_the_corpus_without_any_secret(name: str) -> None:
    case = CASES[name]
    report = inspect.inspect(CORPUS / name / "root", asked(case), [], [])
    for key in (*READ, "exec_start", "argv", "warnings"):
        assert key in report
    shown = json.dumps(report)
    for secret in (
        "EXAMPLEEXAMPLE",
        "sk-local-EXAMPLE",
        "sk-admin",
        "EXAMPLEPASS",
        "EXAMPLE/EXAMPLE",
        '"EXAMPLE"',
    ):
        assert secret not in shown
    assert inspect.lines(report)


@pytest.mark.parametrize(("name", "number"), WRITES)
def test_inspect_with_a_turn_gives_the_new_files(name: str, number: int) -> None:
    case = CASES[name]
    write = case["write"][number]
    flag = write["flag"]
    sets = [f"{flag}={write['value']}"] if write["op"] == "set" else []
    report = inspect.inspect(CORPUS / name / "root", asked(case), sets, [flag] if not sets else [])
    assert report["files"]
    if not case["read"]["secrets"]:
        assert report["launch_argv_after"] == write["launch_argv_after"]
    tree = tree_of(name).with_files({p: c.encode() for p, c in report["files"].items()})
    assert plain(read_unit(tree, asked(case)).launch_argv) == write["launch_argv_after"]


@pytest.mark.parametrize(
    "name",
    [
        "sglang-server",
        "docker-compose.yml",
        "/srv/llm/docker-compose.yml",
        "/srv/llm",
        "docker-compose.yml:sglang-server",
    ],
)
def test_a_compose_service_without_a_unit_is_found_by(name: str) -> None:
    reading = read_unit(tree_of("13-compose-list"), name)
    assert reading.compose == {"files": ["/srv/llm/docker-compose.yml"], "service": "sglang-server"}
    several = any("several services start a server (sglang-server, embed)" in w for w in reading.warnings)
    assert several == ("sglang-server" not in name)


def test_the_other_service_of_a_compose_file_is_read_when_it_is_named() -> None:
    reading = read_unit(tree_of("13-compose-list"), "embed")
    assert reading.launch_argv is not None and reading.launch_argv[-1] == "30009"
