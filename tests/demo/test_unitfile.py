"""The demo host's own reader of units, on the cases that real systemd 252 and 257 have answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from demo.virtual_host import bare_files

from ddtui.demo import unitfile
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.unitwords import Unbalanced, environment_file, expand, split_words

CORPUS = Path(__file__).parents[1] / "corpus/units"


def cases() -> list[str]:
    """The cases whose command systemd itself holds and runs."""
    found = []
    for path in sorted(CORPUS.glob("*.expected.json")):
        case = json.loads(path.read_text())
        if case["unit"] and case["scope"] == "system" and case["read"].get("exec_start"):
            found.append(case["case"])
    return found


@pytest.mark.parametrize("name", cases())
def test_reads_what_systemd_read(name: str, tmp_path: Path) -> None:
    case: dict[str, Any] = json.loads((CORPUS / f"{name}.expected.json").read_text())
    files = Filesystem(CORPUS / name / "root", tmp_path / "metadata.json")
    unit = unitfile.load(files, case["unit"])
    read = case["read"]
    assert unit.load_state == "loaded"
    assert [list(command.argv) for command in unit.commands] == read["exec_start"]
    assert list(unit.drop_ins) == read["drop_ins"]
    environment = unitfile.environment_of(unit, files)
    assert environment == read["env"]
    if read["argv"] and "env" not in read["wrappers"]:  # there argv is what env(1) then ran
        (command,) = unit.commands
        argv = expand(command.argv, environment) if command.expand else list(command.argv)
        assert argv == read["argv"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("--x=\"a b\"'c'", ["--x=a bc"]),
        (r"a\x20b \u00e9 \s \t", ["a b", "é", " ", "\t"]),
        (r"""'{"a":"x\"y"}'""", ['{"a":"x"y"}']),
        (r"'\q'", [r"\q"]),
        ("'' x", ["", "x"]),
    ],
)
def test_words_are_quoted_and_escaped_as_in_systemd(text: str, words: list[str]) -> None:
    assert list(split_words(text)) == words


def test_an_open_quote_is_an_error() -> None:
    with pytest.raises(Unbalanced):
        list(split_words('a "b'))


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("$A", ["one", "two words"]),
        ("${A}", ["one 'two words'"]),
        ("x$A", ["x$A"]),
        ("x${A}y", ["xone 'two words'y"]),
        ("$NO", []),
        ("${NO}", [""]),
        ("$(nproc)", []),
        ("$$A", ["$A"]),
        ("${A:-d}", ["${A:-d}"]),
    ],
)
def test_variables_expand_as_in_systemd(word: str, expanded: list[str]) -> None:
    assert expand(["/bin/x", word], {"A": "one 'two words'"}) == ["/bin/x", *expanded]


def test_environment_files_take_quotes_and_comments_and_no_export() -> None:
    text = b"# c\nA=1\n; c\nB=\"x y\"\nexport C=3\nD='a\nb'\nE=one \\\ntwo\nF=$A\n"
    assert environment_file(text) == {"A": "1", "B": "x y", "D": "a\nb", "E": "one two", "F": "$A"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("1min 30s", 90),
        ("100ms", 0.1),
        ("1h", 3600),
        ("infinity", float("inf")),
        ("x", None),
        ("5x", None),
    ],
)
def test_time_spans(text: str, seconds: float | None) -> None:
    assert unitfile.parse_seconds(text) == seconds


def test_a_value_goes_on_over_comments_and_ends_at_a_blank_line(tmp_path: Path) -> None:
    files = bare_files(tmp_path)
    for folder in ("/etc", "/etc/systemd", "/etc/systemd/system"):
        files.make_dir(folder)
    text = "[Service]\nExecStart=/bin/x a \\\n# comment \\\n  b \\\n\nc\nRestart=always\n"
    files.write("/etc/systemd/system/x.service", text.encode())
    unit = unitfile.load(files, "x.service")
    assert unit.commands[0].argv == ("/bin/x", "a", "b")
    assert [str(problem) for problem in unit.problems] == [
        "/etc/systemd/system/x.service:6: Missing '=', ignoring line."
    ]
    assert unit.get("Service.Restart") == "always"
