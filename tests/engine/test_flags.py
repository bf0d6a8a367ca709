"""How a command line is read: as argparse reads it, by the flags of the installed SGLang."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.engine import flags
from ddtui.engine.flags import Flag, FlagTable

TABLE = FlagTable(
    (
        Flag(("--model-path", "--model"), "model_path", required=True),
        Flag(("--speculative-algorithm",), "speculative_algorithm", choices=("DFLASH", "DDTREE")),
        Flag(("--speculative-draft-model-path", "--speculative-draft-model"), "speculative_draft_model_path"),
        Flag(("--speculative-dflash-draft-window-size",), "window", "int"),
        Flag(("--speculative-dflash-block-size",), "block", "int"),
        Flag(("--cuda-graph-bs",), "cuda_graph_bs", "int", "+"),
        Flag(("--cuda-graph-max-bs",), "cuda_graph_max_bs", "int"),
        Flag(("--lora-paths",), "lora_paths", nargs="*"),
        Flag(("--pair",), "pair", "float", 2),
        Flag(("--checksum",), "checksum", nargs="?"),
        Flag(("--trust-remote-code",), "trust_remote_code", "bool", 0),
        Flag(("--strict", "--no-strict"), "strict", "bool", 0),
        Flag(("--log-level",), "log_level", "int", choices=("0", "1", "2")),
        Flag(("--json-args",), "json_args", "json"),
        Flag(("--context-length",), "context_length", "human_int"),
        Flag(("--mem-fraction-static",), "mem_fraction_static", "float"),
    )
)
MODEL = ["--model-path", "m"]


def read(*argv: str) -> flags.ResolvedFlags:
    return TABLE.resolve([*MODEL, *argv])


def test_a_whole_command_line_is_read_from_where_sglang_begins() -> None:
    tail = ["--model", "m", "--trust-remote-code"]
    for head in (
        ["/opt/venv/bin/python3", "-m", "sglang.launch_server"],
        ["numactl", "--cpunodebind=0", "python", "-u", "-m", "sglang.launch_server"],
        ["/opt/venv/bin/sglang", "serve"],
        ["python", "/opt/sglang/python/sglang/launch_server.py"],
        [],
    ):
        assert flags.arguments_start(head + tail) == len(head)
        assert TABLE.resolve(head + tail).values == {"--model-path": "m", "--trust-remote-code": True}


def test_abbreviations_equals_aliases_and_repeats() -> None:
    found = read("--speculative-dflash-draft", "2048", "--speculative-draft-model=/d", "--cuda-graph-m=9")
    assert found.values["--speculative-dflash-draft-window-size"] == "2048"
    assert found.values["--speculative-draft-model-path"] == "/d"
    assert found.integer("--cuda-graph-max-bs") == 9
    again = read("--speculative-dflash-draft-window-size", "1", "--speculative-dflash-draft=2")
    assert again.integer("--speculative-dflash-draft-window-size") == 2
    assert [(seen.spelling, seen.values, seen.start, seen.end) for seen in again.occurrences[1:]] == [
        ("--speculative-dflash-draft-window-size", ("1",), 2, 4),
        ("--speculative-dflash-draft", ("2",), 4, 5),
    ]


def test_values_of_each_kind() -> None:
    found = read(
        "--cuda-graph-bs", "1", "2", "8", "--strict", "--no-strict", "--checksum", "--json-args", '{"a": -1}'
    )
    assert found.get("--cuda-graph-bs") == ("1", "2", "8") and found.text("--cuda-graph-bs") == "1 2 8"
    assert found.get("--strict") is False and found.text("--strict") == "off" and not found.on("--strict")
    assert found.get("--checksum") is True
    assert json.loads(str(found.get("--json-args"))) == {"a": -1}
    assert found.problems == ()
    assert read("--mem-fraction-static", "-1.5").text("--mem-fraction-static") == "-1.5"  # a negative number


REFUSED = [
    (["--speculative-dflash-window", "2048"], "unrecognized arguments: --speculative-dflash-window 2048"),
    (["--speculative-dflash-draft-window-size", "2k"],
     "argument --speculative-dflash-draft-window-size: invalid int value: '2k'"),
    (["--speculative-algorithm", "FOO"],
     "argument --speculative-algorithm: invalid choice: 'FOO' (choose from 'DFLASH', 'DDTREE')"),
    (["--speculative-d", "x"],
     "ambiguous option: --speculative-d could match --speculative-draft-model-path, --speculative-draft-model,"
     " --speculative-dflash-draft-window-size, --speculative-dflash-block-size"),
    (["--speculative-dflash-block-size"], "argument --speculative-dflash-block-size: expected one argument"),
    (["--cuda-graph-bs"], "argument --cuda-graph-bs: expected at least one argument"),
    (["--pair", "1"], "argument --pair: expected 2 arguments"),
    (["--trust-remote-code=yes"], "argument --trust-remote-code: ignored explicit argument 'yes'"),
    (["--log-level", "7"], "argument --log-level: invalid choice: 7 (choose from 0, 1, 2)"),
    (["--json-args", "{"], "argument --json-args: invalid loads value: '{'"),
    (["stray"], "unrecognized arguments: stray"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "words"), REFUSED, ids=[words[:40] for _, words in REFUSED])
def test_what_argparse_refuses_in_its_own_words(argv: list[str], words: str) -> None:
    assert TABLE.validate([*MODEL, *argv])[0] == words


def test_a_missing_model_is_refused_unless_a_config_file_may_give_it() -> None:
    assert TABLE.validate([]) == ["the following arguments are required: --model-path/--model"]
    table = FlagTable((*TABLE.flags, Flag(("--config",), "config")))
    assert table.validate(["--config", "/etc/sglang.yaml"]) == []


@pytest.mark.parametrize(
    ("text", "value"), [("4096", 4096), ("1k", 1000), ("25.6k", 25600), ("1Ki", 1024), (" 2M ", 2_000_000)]
)
def test_human_readable_integers(text: str, value: int) -> None:
    assert flags.human_int(text) == value
    assert read("--context-length", text).problems == ()


@pytest.mark.parametrize(
    ("text", "words"), [("1K", "Suffixes are case-sensitive"), ("1.5Ki", "Decimals are not")]
)
def test_bad_human_readable_integers(text: str, words: str) -> None:
    assert words in TABLE.validate([*MODEL, "--context-length", text])[0]


def test_the_windows_name_by_version() -> None:
    old = FlagTable((Flag(("--speculative-dflash-draft-window-size",), "w", "int"),))
    both = FlagTable(
        (Flag(("--speculative-draft-window-size", "--speculative-dflash-draft-window-size"), "w", "int"),)
    )
    deprecated = FlagTable(
        (
            Flag(("--speculative-draft-window-size",), "w", "int"),
            Flag(("--speculative-dflash-draft-window-size",), "w", "int", deprecated=True),
        )
    )
    new = FlagTable((Flag(("--speculative-draft-window-size",), "w", "int"),))
    assert old.window_flag == "--speculative-dflash-draft-window-size"
    assert both.window_flag == deprecated.window_flag == new.window_flag == "--speculative-draft-window-size"
    assert FlagTable((Flag(("--x",), "x"),)).window_flag is None
    asked = ["--speculative-dflash-draft-window-size", "64"]
    for table in (old, both, deprecated):
        assert table.resolve(asked).integer(flags.WINDOW) == 64
    assert new.validate(asked) == ["unrecognized arguments: --speculative-dflash-draft-window-size 64"]
    assert new.accepted("--speculative-dflash-draft-window-size") == "--speculative-draft-window-size"


def test_a_deprecated_switch_that_sets_a_constant_is_not_its_target() -> None:
    table = FlagTable(
        (
            Flag(("--backend-prefill",), "backend_prefill"),
            Flag(("--disable-piecewise",), "backend_prefill", "bool", 0, deprecated=True),
        )
    )
    assert table.canonical("--disable-piecewise") == "--disable-piecewise"


def test_without_a_table_what_follows_a_flag_is_its_value() -> None:
    found = FlagTable().resolve(
        ["python", "-m", "sglang.launch_server", "--a", "1", "2", "--b", "--c=x", "--d", "-1"]
    )
    assert found.values == {"--a": ("1", "2"), "--b": True, "--c": "x", "--d": "-1"}
    assert found.problems == () and FlagTable().accepted("--any") == "--any"
    assert flags.settings(["--b"]) == {"--b": True}


def test_sglang_serves_own_argument_is_no_flag_of_the_server() -> None:
    argv = ["sglang", "serve", "--model-type", "llm", "--model-path", "m"]
    assert TABLE.validate(argv) == [] and list(TABLE.resolve(argv).values) == ["--model-path"]
    by_module = ["python", "-m", "sglang.launch_server", *argv[2:]]
    assert TABLE.validate(by_module) == ["unrecognized arguments: --model-type llm"]


# --- against argparse itself --------------------------------------------------------------------------------

CONVERT: dict[str, Any] = {
    "int": int,
    "float": float,
    "json": json.loads,
    "str": str,
    "human_int": flags.human_int,
}


class Refused(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise Refused(message)

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        raise Refused("help")


def argparse_of(table: FlagTable) -> Parser:
    parser = Parser(prog="sglang serve")
    for flag in table:
        if flag.name == "--strict":
            parser.add_argument("--strict", action=argparse.BooleanOptionalAction, default=None)
        elif flag.switch:
            parser.add_argument(*flag.names, action="store_true", default=None)
        else:
            convert = CONVERT[flag.type]
            choices = [convert(choice) for choice in flag.choices] if flag.choices else None
            parser.add_argument(
                *flag.names,
                dest=flag.dest,
                type=convert,
                nargs=flag.nargs,
                choices=choices,
                required=flag.required,
            )
    return parser


spellings = st.sampled_from([name for flag in TABLE for name in flag.names])
prefixes = spellings.flatmap(lambda name: st.integers(3, len(name)).map(lambda n: name[:n]))
values = st.sampled_from(
    ["1", "2k", "DFLASH", "FOO", "-1", "-x", "0.5", "{}", "", "a b", "-", "m", "1k", "-- x"]
)
words = st.one_of(spellings, prefixes, values, st.tuples(prefixes, values).map("=".join), st.just("--bogus"))


@given(st.lists(words, max_size=7))
@settings(max_examples=600)
def test_it_accepts_what_argparse_accepts_with_the_same_values_and_refuses_the_rest(argv: list[str]) -> None:
    argv = [*MODEL, *argv]
    found = TABLE.resolve(argv)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            parsed = argparse_of(TABLE).parse_args(argv)
    except Refused as refused:
        assert found.problems, f"argparse refuses: {refused}"
        if "invalid human_int" not in str(refused):
            said = [problem.split(" (choose")[0] for problem in found.problems]  # it stops at the first
            assert str(refused).split(" (choose")[0] in said
        return
    assert found.problems == ()
    for flag in TABLE:
        value, ours = getattr(parsed, flag.dest), found.values.get(flag.name)
        if isinstance(value, list):
            assert isinstance(ours, tuple) and [CONVERT[flag.type](item) for item in ours] == value
        elif isinstance(value, bool) or ours is None or ours is True:
            assert ours == value or (ours is True and value is None) or (ours is None and value is None)
        else:
            assert CONVERT[flag.type](ours) == value
