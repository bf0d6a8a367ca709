"""Command strings: the same argv arrives in every login shell, and nothing in it is ever run by one."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.host import shell

SHELLS = ("bash", "dash", "zsh", "fish", "tcsh")

HOSTILE = [
    *("", " ", "  ", "a b", "\t", "\n", "a\nb", "\n\n", "a\n", "\r", "\r\n", "\x01", "\x1b[31m", "\x7f"),
    *("'", '"', "`", "''", '""', "'\"'", "a'b", 'a"b', "'a'", '"a"', "'; id; '", '"; id; "', "it's", "\\'"),
    *("\\", "\\\\", "\\n", "\\\n", "a\\", "\\ ", "\\$HOME", "$", "$$", "$HOME", "${HOME}", "$(id)", "`id`"),
    *(
        "$(touch /tmp/ddtui-pwned)",
        "`touch /tmp/ddtui-pwned`",
        "; touch /tmp/ddtui-pwned",
        "$((1+1))",
        "$'x'",
    ),
    *(";", "&", "&&", "|", "||", ">", "<", ">>", "<<EOF", "(", ")", "{", "}", "[", "]", "(id)", "{a,b}"),
    *("*", "?", "[a-z]", "~", "~root", "!", "!!", "!$", "a!b", "^a^b", "#", "# x", "%", "%i", "%n", "100%s"),
    *("=", "=ls", "a=b", "-", "--", "-n", "-e", "--x=a b", "@", ":", ",", "+", "^", "\u00e9", "日本", "😀"),
    *("\u202etxt", "\u200b", "\ufeff", "a\u0301", "/etc/passwd", "../..", "nul\\0", "base64", "exit", "exec"),
    *('{"a": "x\\"y"}', "{'a': 1}", '--json={"k": [1, 2]}', "x" * 5000, "'" * 50, "\\" * 50, "eval", "r"),
]


def test_there_are_enough_hostile_values() -> None:
    assert len(set(HOSTILE)) >= 88


@pytest.mark.parametrize("name", SHELLS)
def test_hostile_arguments_arrive_unchanged_whatever_the_login_shell(name: str) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed here")
    argv = ("printf", r"<%s>\0", *HOSTILE)
    single = shell.Script(shell.new_marker(), (argv,), single=True)
    several = shell.Script(shell.new_marker(), (("true",), argv, ("false",)), single=False)
    expected = b"".join(f"<{word}>".encode() + b"\0" for word in HOSTILE)

    done = subprocess.run([program, "-c", shell.encode(single)], capture_output=True)
    assert shell.after_marker(single.marker, done.stdout) == expected
    assert shell.after_marker(single.marker, done.stderr) == b""

    done = subprocess.run([program, "-c", shell.encode(several)], capture_output=True)
    results = shell.split_outputs(several.marker, done.stdout, done.stderr)
    assert results == [(0, b"", b""), (0, expected, b""), (1, b"", b"")]


@pytest.mark.parametrize("name", SHELLS)
def test_a_single_command_owns_stdin_and_gives_its_own_exit_code(name: str) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed here")
    payload = bytes(range(256)) * 300
    script = shell.Script(shell.new_marker(), (("sh", "-c", "cat; echo oops >&2; exit 41"),), single=True)
    done = subprocess.run([program, "-c", shell.encode(script)], capture_output=True, input=payload)
    assert done.returncode == 41
    assert shell.after_marker(script.marker, done.stdout) == payload
    assert shell.after_marker(script.marker, done.stderr) == b"oops\n"


def test_what_start_up_files_print_is_told_apart() -> None:
    script = shell.Script(shell.new_marker(), (("echo", "mine"),), single=True)
    noisy = f"echo Welcome; echo quota 93% >&2; {shell.encode(script)}"
    done = subprocess.run(["sh", "-c", noisy], capture_output=True)
    assert shell.after_marker(script.marker, done.stdout) == b"mine\n"
    assert shell.after_marker(script.marker, done.stderr) == b""


def test_a_missing_program_is_exit_code_127() -> None:
    for single in (True, False):
        script = shell.Script(shell.new_marker(), (("ddtui-no-such-program",),), single=single)
        done = subprocess.run(["sh", "-c", shell.encode(script)], capture_output=True)
        code = (
            done.returncode if single else shell.split_outputs(script.marker, done.stdout, done.stderr)[0][0]
        )
        assert code == 127


def test_a_batch_keeps_binary_output_and_the_exit_code_of_each_command() -> None:
    script = shell.Script(
        shell.new_marker(),
        (("printf", r"\0\377\n"), ("sh", "-c", "echo e >&2; exit 7"), ("printf", "no newline")),
        single=False,
    )
    done = subprocess.run(["sh", "-c", shell.encode(script)], capture_output=True)
    assert shell.split_outputs(script.marker, done.stdout, done.stderr) == [
        (0, b"\0\xff\n", b""),
        (7, b"", b"e\n"),
        (0, b"no newline", b""),
    ]


def test_a_batch_ends_where_sudo_asks_for_a_password(tmp_path) -> None:  # type: ignore[no-untyped-def]
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\necho "sudo: a password is required" >&2; exit 1\n')
    sudo.chmod(0o755)
    after = tmp_path / "after"
    script = shell.Script(
        shell.new_marker(), (("echo", "1"), ("sudo", "-n", "x"), ("touch", str(after))), single=False
    )
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", shell.encode(script)], capture_output=True, env={"PATH": path})
    results = shell.split_outputs(script.marker, done.stdout, done.stderr)
    assert [code for code, _, _ in results] == [0, 1]
    assert results[1][2] == b"sudo: a password is required\n"
    assert not after.exists()


words = st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=40)
programs = words.filter(lambda word: bool(word) and not word.startswith("-"))
argvs = st.tuples(programs).flatmap(lambda head: st.lists(words, max_size=6).map(lambda rest: (*head, *rest)))


@given(st.lists(argvs, min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_decode_is_the_inverse_of_encode_for_batches(commands: list[tuple[str, ...]]) -> None:
    script = shell.Script(shell.new_marker(), tuple(commands), single=False)
    assert shell.decode(shell.encode(script)) == script


@given(argvs)
@settings(max_examples=300, deadline=None)
def test_decode_is_the_inverse_of_encode_for_one_command(argv: tuple[str, ...]) -> None:
    script = shell.Script(shell.new_marker(), (argv,), single=True)
    assert shell.decode(shell.encode(script)) == script


@given(st.lists(words, min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_a_real_shell_agrees_with_decode(arguments: list[str]) -> None:
    script = shell.Script(shell.new_marker(), (("printf", r"%s\0", *arguments),), single=False)
    done = subprocess.run(["sh", "-c", shell.encode(script)], capture_output=True)
    [(code, out, err)] = shell.split_outputs(script.marker, done.stdout, done.stderr)
    assert (code, err) == (0, b"")
    assert out == b"".join(word.encode() + b"\0" for word in arguments)


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_decode_refuses_what_encode_did_not_make(text: str) -> None:
    with pytest.raises(ValueError):
        shell.decode(text)
    with pytest.raises(ValueError):
        shell.decode("/bin/sh -c 'eval \"$(echo $1 | base64 -d)\"' ddtui " + text)


@pytest.mark.parametrize(
    "argv",
    [("echo", "a\0b"), ("e\0cho",), ("echo", "\ud800"), (), ("",), ("-rf", "/")],
    ids=["NUL", "NUL in the program", "lone surrogate", "nothing", "empty program", "a flag for a program"],
)
def test_a_command_that_cannot_travel_is_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(shell.UnfitArgument):
        shell.encode(shell.Script(shell.new_marker(), (argv,), single=True))
    with pytest.raises(shell.UnfitArgument):
        shell.encode(shell.Script(shell.new_marker(), (("true",), argv), single=False))
    with pytest.raises(shell.UnfitArgument):
        list(shell.portions([argv]))


def test_a_long_batch_is_split_into_as_few_strings_as_fit() -> None:
    commands = [("cat", "--", f"/some/long/path/{'x' * 1000}/{n}'") for n in range(300)]
    scripts = list(shell.portions(commands))
    strings = [shell.encode(script) for script in scripts]
    assert [argv for script in scripts for argv in script.commands] == commands
    assert all(len(string) <= shell.LIMIT for string in strings)
    assert all(len(string) > shell.LIMIT * 0.9 for string in strings[:-1])


def test_one_command_that_is_too_long_is_refused_with_what_to_do() -> None:
    with pytest.raises(shell.UnfitArgument, match="stdin"):
        shell.encode(shell.Script(shell.new_marker(), (("echo", "x" * 200_000),), single=True))


def test_output_cut_off_in_the_middle_gives_only_what_ended() -> None:
    marker = shell.new_marker()
    out = f"{marker}\none\n{marker} 0\npart of tw".encode()
    err = f"{marker}\n\n{marker}\n".encode()
    assert shell.split_outputs(marker, out, err) == [(0, b"one", b"")]
    assert shell.split_outputs(marker, b"nothing", b"") == []
