"""Every way to start a server, with every kind of change: what is asked for happens, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

import pytest
from host.unit.offline import Offline
from host.unit.shapes import ARGUMENTS, SHAPES

from ddtui.host.unit.change import UnitChange, change_unit
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.flags import FlagTable
from ddtui.host.unit.read import UnitReading, read_unit
from ddtui.host.unit.tree import Tree

HOME = HostFacts(home="/home/u", user="u", uid=1000)


def tree_of(shape: str) -> Offline:
    return Offline(SHAPES[shape])


def read(tree: Tree) -> UnitReading:
    user = any(path.startswith("/home/u/") for path in tree.known_files())
    return read_unit(tree, "s.service", "user" if user else "system", HOME if user else HostFacts())


def arguments(reading: UnitReading) -> list[str]:
    """What the engine takes, the config file's entries first."""
    flags = reading.effective_flags if reading.effective_flags is not None else None
    if flags is not None:
        made: list[str] = []
        for name, value in flags.items():
            values = [] if value is True else value if isinstance(value, list) else [str(value)]
            made += [name, *values] if name != "--config" else []
        return made
    assert reading.launch_argv is not None
    return list(reading.launch_argv[reading.launch_argv.index("--model-path") :])


@dataclass(frozen=True)
class Spec:
    names: tuple[str, ...]
    nargs: str | int | None


class Table:
    """A flag table as the engine room gives it."""

    specs = (
        Spec(("--cuda-graph-bs",), "+"),
        Spec(("--enable-metrics",), 0),
        Spec(("--enable-x",), 0),
        Spec(("--speculative-ddtree-budget",), None),
        Spec(("--served-model-name", "--name"), None),
        Spec(("--model-path", "--model"), None),
        Spec(("--port",), None),
    )

    def find(self, name: str) -> Spec | None:
        exact = [s for s in self.specs if name in s.names]
        prefix = [s for s in self.specs if any(n.startswith(name) for n in s.names)]
        return exact[0] if exact else prefix[0] if len(prefix) == 1 else None

    def equivalent(self, a: str, b: str) -> bool:
        return self.find(a) is self.find(b)


TABLE: FlagTable = Table()


def wanted(*changes: tuple[str, list[str] | None]) -> list[str]:
    """The arguments with a flag's words replaced; None: the flag is gone; absent: at the end."""
    groups: list[list[str]] = []
    for word in ARGUMENTS:
        if word.startswith("--"):
            groups.append([word])
        else:
            groups[-1].append(word)
    for flag, values in changes:
        if values is None:
            groups = [g for g in groups if g[0] != flag]
        elif any(g[0] == flag for g in groups):
            groups = [[flag, *values] if g[0] == flag else g for g in groups]
        else:
            groups.append([flag, *values])
    return [word for group in groups for word in group]


TURNS = {
    "another value": (("--speculative-ddtree-budget", "set", "16"), ("--speculative-ddtree-budget", ["16"])),
    "a value with blanks": (
        ("--served-model-name", "set", 'it\'s "new" $1'),
        ("--served-model-name", ['it\'s "new" $1']),
    ),
    "as many values": (("--cuda-graph-bs", "set", "1 8 16"), ("--cuda-graph-bs", ["1", "8", "16"])),
    "more values": (
        ("--cuda-graph-bs", "set", "1 2 4 8 16"),
        ("--cuda-graph-bs", ["1", "2", "4", "8", "16"]),
    ),
    "fewer values": (("--cuda-graph-bs", "set", "1"), ("--cuda-graph-bs", ["1"])),
    "a new flag": (
        ("--speculative-draft-window-size", "set", "2048"),
        ("--speculative-draft-window-size", ["2048"]),
    ),
    "a new switch": (("--enable-x", "set", None), ("--enable-x", [])),
    "no switch": (("--enable-metrics", "unset", None), ("--enable-metrics", None)),
    "no value": (("--speculative-ddtree-budget", "unset", None), ("--speculative-ddtree-budget", None)),
    "no values": (("--cuda-graph-bs", "unset", None), ("--cuda-graph-bs", None)),
    "the last flag gone": (("--port", "unset", None), ("--port", None)),
    "the first flag gone": (("--served-model-name", "unset", None), ("--served-model-name", None)),
    "JSON": (
        ("--json-model-override-args", "set", '{"a": {"b": [1, "x y"]}}'),
        ("--json-model-override-args", ['{"a": {"b": [1, "x y"]}}']),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_is_read(shape: str) -> None:
    reading = read(tree_of(shape))
    assert reading.problems == ()
    assert reading.engine == "sglang"
    assert arguments(reading) == ARGUMENTS
    assert reading.line is not None and reading.file in SHAPES[shape]
    text = SHAPES[shape][reading.file].splitlines()[reading.line - 1]
    assert "8" in text, text


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_is_changed(shape: str, turn: str) -> None:
    (flag, op, value), change = TURNS[turn]
    tree = tree_of(shape)
    before = read(tree)
    made = change_unit(tree, before, [(flag, op, value)], TABLE)
    assert made.problems == ()
    now = read(tree.after(made))
    assert same(arguments(now), wanted(change)), arguments(now)
    assert now.launch_argv == made.launch_argv_after
    assert now.problems == () and now.env.keys() - {"PORT", "BUDGET"} == before.env.keys() - {
        "PORT",
        "BUDGET",
    }
    assert len(made.edits) == 1
    assert_small(made, shape)


def same(one: list[str], other: list[str]) -> bool:
    """The same flags; a new one may come anywhere but between another and its values."""
    return grouped(one) == grouped(other)


def grouped(words: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word
            assert name not in groups
            groups[name] = []
        else:
            groups[name].append(word)
    return groups


def assert_small(made: UnitChange, shape: str) -> None:
    """An operator's own file changes in few lines; ddtui's drop-in is small."""
    (edit,) = made.edits
    assert edit.after is not None
    if edit.ours:
        assert edit.path.endswith("ddtui.conf")
        return
    before, after = (edit.before or b"").decode().splitlines(), edit.after.decode().splitlines()
    blocks = [
        b for b in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if b[0] != "equal"
    ]
    assert len(blocks) <= 2, edit.after.decode()
    assert sum(max(b[2] - b[1], b[4] - b[3]) for b in blocks) <= 6, edit.after.decode()


@pytest.mark.parametrize("shape", SHAPES)
def test_two_turns_at_once_are_one_change(shape: str) -> None:
    tree = tree_of(shape)
    turns = [
        ("--speculative-ddtree-budget", "set", "16"),
        ("--enable-x", "set", None),
        ("--port", "set", "1"),
    ]
    made = change_unit(tree, read(tree), turns, TABLE)
    assert made.problems == ()
    now = read(tree.after(made))
    expected = wanted(("--speculative-ddtree-budget", ["16"]), ("--enable-x", []), ("--port", ["1"]))
    assert same(arguments(now), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_turn_to_the_value_that_is_there_changes_nothing(shape: str) -> None:
    tree = tree_of(shape)
    made = change_unit(
        tree, read(tree), [("--cuda-graph-bs", "set", "1 2 4"), ("--port", "set", "30000")], TABLE
    )
    assert made.edits == () and made.problems == () and made.mechanism == "none"
