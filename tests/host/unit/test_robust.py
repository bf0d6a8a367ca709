"""Whatever stands in the files, reading and changing end in an answer or in one sentence, and soon."""

from __future__ import annotations

import random

import pytest
from host.unit.offline import Offline
from host.unit.shapes import SHAPES
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.host.unit import compose, environment, layers, shell_syntax, syntax, words, yaml_text
from ddtui.host.unit.change import change_unit
from ddtui.host.unit.read import UnitError, read_unit
from ddtui.host.unit.text import Text

JUNK = [
    b"\0",
    b"\xff",
    b"'",
    b'"',
    b"\\",
    b"\n",
    b"\\\n",
    b"$",
    b"${",
    b"}",
    b"$(",
    b")",
    b"`",
    b"%",
    b"=",
    b"[",
    b"]",
    b":",
]
JUNK += [
    b" ",
    b"\t",
    b"#",
    b";",
    b"&&",
    b"|",
    b"<<EOF\n",
    b"((",
    b"))",
    b"- ",
    b"> ",
    b"*a",
    b"&a ",
    b"!!",
    b"\xef\xbb\xbf",
    b"\r",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_damaged_files_are_read_or_refused(shape: str) -> None:
    chance = random.Random(shape)
    for _ in range(12):
        files = {path: bytearray(content.encode()) for path, content in SHAPES[shape].items()}
        for _ in range(chance.randint(1, 4)):
            data = files[chance.choice(sorted(files))]
            at = chance.randrange(len(data) + 1)
            data[at : at + chance.choice([0, 0, 1, 5])] = chance.choice(JUNK)
        tree = Offline({path: bytes(data) for path, data in files.items()})
        user = "user" if shape == "user unit" else "system"
        try:
            reading = read_unit(tree, "s.service", user)
        except UnitError as error:
            assert "\n" not in str(error)
            continue
        for flag, op, value in (
            ("--speculative-ddtree-budget", "set", "16"),
            ("--cuda-graph-bs", "unset", None),
        ):
            made = change_unit(tree, reading, [(flag, op, value)])
            assert made.problems == () or made.edits == ()
            if made.edits:  # what is offered reads back
                after = read_unit(tree.after(made), "s.service", user)
                assert after.launch_argv == made.launch_argv_after and not after.problems


text = st.text(
    st.sampled_from("ab'\"\\ \n\t$`{}()[]<>|&;#*?~!=-:,%@é\0\x7f") | st.characters(exclude_categories=["Cs"])
)


@given(text)
def test_a_quoted_word_is_the_word_again(value: str) -> None:
    if "\0" in value:
        with pytest.raises(words.UnfitValue):
            words.quote(value)
        return
    (word,), warnings = words.split(Text(words.quote(value)))
    assert word.value == value and warnings == []


@given(st.lists(text.filter(lambda v: "\0" not in v), max_size=6))
def test_a_quoted_line_is_the_words_again(values: list[str]) -> None:
    unit = f"[Service]\nExecStart=/x {' '.join(words.quote_argument(v) for v in values)}\n"
    (setting,) = syntax.parse("/u", unit.encode()).of("Service", "ExecStart")
    from ddtui.host.unit.exec_line import parse

    (command,), warnings, problems = parse(setting, {})
    argv, surprises = environment.expand_argv(command.argv, {})
    assert [w.value for w in argv[1:]] == values
    assert warnings == problems == [] and surprises == []


@given(text)
@settings(max_examples=300)
def test_every_place_takes_a_value_back_or_refuses_it(value: str) -> None:
    """Written for a place and read there again, a value is itself, for every kind of quotes there is."""

    def env_file(written: str) -> str:
        found, _ = environment.of_file("/e", f"A={written}\n".encode())
        return found[0].text

    def shell(written: str) -> str:
        from ddtui.host.unit.shell import Shell
        from ddtui.host.unit.tree import Tree

        seen: list[str] = []
        runner = Shell(Tree(), lambda w, _: seen.extend(x.value for x in w[1:]), lambda _: "", lambda p: p)
        runner.run(Text.of_file("/s", f"x {written}\n"))
        (one,) = seen
        return one

    def yaml(written: str) -> str:
        node = yaml_text.load("/y", f"k: {written}\n")
        assert isinstance(node, yaml_text.Map)
        (entry,) = node.entries
        assert isinstance(entry.value, yaml_text.Scalar)
        return entry.value.text.value

    def dotenv(written: str) -> str:
        (one,) = compose.of_dotenv("/d", f"A={written}\n".encode())
        return one.text

    def split(written: str) -> str:
        (one,) = words.split_variable(Text(written))
        return one.value

    places = {
        ("env-file:bare",): env_file,
        ("env-file:double",): lambda w: env_file(f'"{w}"'),
        ("env-file:single",): lambda w: env_file(f"'{w}'"),
        ("sh:bare",): shell,
        ("sh:double",): lambda w: shell(f'"{w}"'),
        ("sh:single",): lambda w: shell(f"'{w}'"),
        ("sh:ansi",): lambda w: shell(f"$'{w}'"),
        ("sh:double-brace",): lambda w: shell(f'"${{A:-{w}}}"'),
        ("yaml:bare",): yaml,
        ("yaml:item",): yaml,
        ("yaml:double",): lambda w: yaml(f'"{w}"'),
        ("yaml:single",): lambda w: yaml(f"'x{w}y'").removeprefix("x").removesuffix("y"),
        ("yaml:plain",): lambda w: yaml(f"x{w}y").removeprefix("x").removesuffix("y"),
        ("dotenv:bare",): dotenv,
        ("dotenv:double",): lambda w: dotenv(f'"{w}"'),
        ("dotenv:single",): lambda w: dotenv(f"'{w}'"),
        ("split:bare",): split,
        ("split:double",): lambda w: split(f'"{w}"'),
        ("split:single",): lambda w: split(f"'{w}'"),
        ("shlex:bare",): lambda w: compose.split_command(Text(w))[0].value,
        ("shlex:double",): lambda w: compose.split_command(Text(f'"{w}"'))[0].value,
    }
    for layer, read_back in places.items():
        try:
            written = layers.encode(value, layer)
        except words.UnfitValue as error:
            assert str(error)
            continue
        if layer[0].startswith("yaml") and ("\n" in value or "\r" in value):
            continue  # YAML folds line breaks, and a change that does not read back is not offered
        assert read_back(written) == value, (layer, written)


@given(st.text(st.sampled_from("ab'\"\\ \n\t$`{}()[]<>|&;#*?~!=-:,%@éifthendocase"), max_size=60))
@settings(max_examples=300)
def test_any_script_is_parsed_or_refused(script: str) -> None:
    try:
        shell_syntax.parse(Text.of_file("/s", script))
    except shell_syntax.ShellSyntaxError as error:
        assert str(error)


@given(st.binary(max_size=80) | text.map(lambda t: t.encode()))
@settings(max_examples=300)
def test_any_file_is_read_as_units_and_environment_files(data: bytes) -> None:
    syntax.parse("/u", data)
    compose.of_dotenv("/d", data)
    try:
        environment.of_file("/e", data)
    except ValueError as error:
        assert str(error) == "/e is not UTF-8"
    try:
        yaml_text.load("/y", syntax.decode(data))
    except yaml_text.YamlError as error:
        assert "\n" not in str(error) and str(error).startswith("/y")


def test_deep_nesting_and_endless_loops_end() -> None:
    for script in (
        "while true; do :; done; sglang serve --model-path x",
        "f() { f; }; f; sglang serve --model-path x",
        "for i in {1..100000}; do for j in {1..100000}; do :; done; done",
        "for i in {1..2000000000}; do echo {1..999}{1..999}{1..999}; done",
        ". /opt/r.sh",
        "eval 'eval \"eval x\"'",
        "(" * 500 + ")" * 500,
        "$(" * 300,
        "A=x; " + "A=$A$A; " * 40 + "sglang serve $A",
    ):
        files = {
            "/etc/systemd/system/s.service": "[Service]\nExecStart=/opt/r.sh\n",
            "/opt/r.sh": f"#!/bin/bash\n{script}\n",
        }
        read_unit(Offline(files), "s")
    deep = "a: " + "[" * 3000 + "]" * 3000
    files = {
        "/etc/systemd/system/s.service": "[Service]\nExecStart=/v/bin/sglang serve --config /c.yaml\n",
        "/c.yaml": deep,
    }
    assert "nested too deeply" in read_unit(Offline(files), "s").problems[0]
