"""What ddtui reads is what systemd runs, and what it writes is what /proc/PID/cmdline shows: asked of systemd itself."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from host.unit.offline import Offline
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from testhost_fixture import TestHost

from ddtui.host.unit import environment, merge, words
from ddtui.host.unit.analysis import Analysis, analyse
from ddtui.host.unit.change import change_unit
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.read import read_unit

pytestmark = pytest.mark.realhost

AGENT = (Path(__file__).parent / "agent.py").read_text()
OFTEN = settings(
    max_examples=3,
    phases=[Phase.generate],  # to shrink would take minutes; every argv of a failure is shown anyway
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


def ask(
    host: TestHost, files: Mapping[str, bytes | None], units: Sequence[str], *, exec_start: bool = False
) -> dict[str, Any]:
    """Put files on the host, load and start the units; what systemd made of each. None: a link to /dev/null."""
    encoded = {p: None if c is None else base64.b64encode(c).decode() for p, c in files.items()}
    job = {"files": encoded, "units": list(units), "exec_start": exec_start}
    done = host.exec("python3", "-c", AGENT, stdin=json.dumps(job).encode())
    answer: dict[str, Any] = json.loads(done.stdout)["units"]
    return answer


@pytest.fixture(scope="module")
def facts(testhost: TestHost) -> HostFacts:
    def out(*argv: str) -> str:
        return testhost.exec(*argv).stdout.decode().strip()

    return HostFacts(
        hostname=out("hostname"),
        boot_id=out("cat", "/proc/sys/kernel/random/boot_id").replace("-", ""),
        machine_id=out("cat", "/etc/machine-id"),
        kernel=out("uname", "-r"),
        architecture={"x86_64": "x86-64", "aarch64": "arm64"}.get(out("uname", "-m")),
        systemd=int(out("systemctl", "--version").split()[1]),
    )


# -- writing -----------------------------------------------------------------------------------------------------
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
hostile = st.sampled_from(
    [
        "",
        " ",
        "\\",
        '"',
        "'",
        "%",
        "%i",
        "%%",
        "$",
        "$A",
        "${A}",
        "$$",
        ";",
        "\\;",
        "#",
        "\n",
        "\t",
        "\x7f",
        "é",
        "\U0001f600",
    ]
)
argument = st.one_of(text, hostile, st.lists(hostile, min_size=1, max_size=5).map("".join))


@given(st.lists(st.lists(argument, max_size=6), min_size=50, max_size=50))
@OFTEN
def test_an_argv_that_is_written_is_the_argv_that_runs(testhost: TestHost, argvs: list[list[str]]) -> None:
    lines = []
    for number, argv in enumerate(argvs):
        expands = number % 2 == 0
        written = " ".join(words.quote_argument(one, expands=expands) for one in ["w.service", *argv])
        lines.append(f"ExecStart={'' if expands else ':'}/opt/test/record {written}")
    unit = "[Service]\nType=oneshot\nEnvironment=A=x\n" + "\n".join(lines) + "\n"
    answer = ask(testhost, {"/etc/systemd/system/w.service": unit.encode()}, ["w.service"])
    ran = ran_by(answer, "w.service")
    assert [one["argv"][2:] for one in ran] == argvs


def ran_by(answer: Mapping[str, Any], unit: str) -> list[dict[str, Any]]:
    assert answer[unit]["show"]["LoadState"] == "loaded", answer[unit]
    ran: list[dict[str, Any]] = answer[unit]["ran"]
    return ran


# -- reading -----------------------------------------------------------------------------------------------------
PIECES = [
    *("a", "b", " ", " ", "  ", "\t", '"', '"', "'", "'", "\\", "\\n", "\\s", "\\x41", "\\x20"),
    *("\\xc3\\xa9", "\\u00e9", "\\101", "\\q", '\\"', "\\'", "\\\\", "\\;", " ; ", ";", "%%"),
    *("%i", "%n", "%N", "%p", "%z", "%", "$", "$$", "${A}", "$A", "$B", "${B}", "${UNSET}", " $UNSET "),
    *("$(x)", "${A:-d}", "${A:-${B}}", " $A ", ' "$A" ', "x$A", "\\\n", "\\\n  ", "\\\n# c\n"),
    *("\\\n; c \\\n", "#", "é", "日本", '{"k":"v"}', "--flag", "=", "-", "@", "$", "{", "}", "\\x00"),
    *("\\U0001F600", "\\777", "\x01", "\x7f", "*", "?", "~", "|", "&", "<", "!", "\\ ", "\r\n\\\n"),
]
PREFIXES = ["", "", "", "-", ":", "-:", "+", "!"]


@pytest.mark.parametrize("seed", range(3))
def test_any_text_after_exec_start_is_read_as_systemd_reads_it(
    testhost: TestHost, facts: HostFacts, seed: int
) -> None:
    chance = random.Random(seed)

    def some(most: int) -> str:
        return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, most)))

    files: dict[str, bytes | None] = {}
    units = []
    for number in range(100):
        unit = f"r{number}.service" if chance.random() < 0.7 else f"r{number}@in-st\\x2dance.service"
        units.append(unit)
        fragment = unit if "@" not in unit else unit.partition("@")[0] + "@.service"
        content = (
            f'[Service]\nType=oneshot\nEnvironment="A=one two" "B=q\'x y\'z"\nEnvironment={some(6)}\n'
            f"EnvironmentFile=-/etc/test/{number}.env\n"
            f"ExecStart={chance.choice(PREFIXES)}/opt/test/record {unit} {some(14)}\nTimeoutStartSec=20\n"
        )
        files[f"/etc/systemd/system/{fragment}"] = content.encode()
        files[f"/etc/test/{number}.env"] = f"D={some(6)}\nB={some(6)}\n{some(6)}\nLAST=1\n".encode()
    answer = ask(testhost, files, units, exec_start=True)
    compared = 0
    for unit in units:
        found = analyse(Offline(files), unit, "system", facts)
        seen = answer[unit]
        if any("not known here" in w for w in found.warnings) or "LoadState" not in seen["show"]:
            continue  # what depends on more of the host, or is not UTF-8, so that D-Bus cannot carry it
        content = files[f"/etc/systemd/system/{found.merged.fragment.path.rpartition('/')[2]}"]  # type: ignore[union-attr]
        assert (seen["show"]["LoadState"] != "loaded") == bool(found.problems), (content, found.problems)
        if found.problems:
            continue
        assert [list(c.values) for c in found.commands] == seen["exec_start"], content
        ran = [one["argv"] for one in seen["ran"]]
        assert ran == commands_of(found)[: len(ran)], content
        if ran:
            env = dict(one.split("=", 1) for one in seen["ran"][0]["env"] if "=" in one)
            assert {n: v.text for n, v in found.variables.items()} == {
                n: env.get(n) for n in found.variables
            }, content
            compared += 1
    assert compared > 20


def commands_of(found: Analysis) -> list[list[str]]:
    """What ddtui says that systemd runs."""
    given_to = {**environment.base("system", None, None, None, {}), **found.variables}
    result = []
    for command in found.commands:
        argv = environment.expand_argv(command.argv, given_to)[0] if command.expands else command.argv
        if command.path == "/opt/test/record":
            result.append([word.value for word in argv])
    return result


@pytest.mark.parametrize("seed", range(2))
def test_drop_ins_of_all_folders_count_as_systemd_counts_them(
    testhost: TestHost, facts: HostFacts, seed: int
) -> None:
    chance = random.Random(1000 + seed)
    roots = [
        "/etc/systemd/system",
        "/run/systemd/system",
        "/usr/lib/systemd/system",
        "/usr/local/lib/systemd/system",
    ]
    names = [
        "10-a.conf",
        "20-b.conf",
        "Z.conf",
        "zz.conf",
        "é.conf",
        ".hidden.conf",
        "x.conf.new",
        "y.conf~",
        "sp ace.conf",
    ]
    files: dict[str, bytes | None] = {}
    units = []
    for number in range(25):
        stem = chance.choice(
            [f"d{number}", f"d{number}-x", f"d{number}-x-y", f"d{number}@in-st", f"d{number}-x@i"]
        )
        unit = f"{stem}.service"
        units.append(unit)
        template = stem.partition("@")[0] + "@.service" if "@" in stem else unit
        line = f"ExecStart=/opt/test/record {unit} one\n"
        files[f"{chance.choice(roots)}/{template}"] = f"[Service]\nType=oneshot\n{line}".encode()
        folders = [f"{unit}.d", f"{template}.d", f"d{number}-.service.d", f"d{number}-x-.service.d"]
        for count in range(chance.randint(0, 8)):
            path = f"{chance.choice(roots)}/{chance.choice(folders)}/{chance.choice(names)}"
            reset = chance.choice(
                ["", "ExecStart=\n", "ExecStart=\nExecStart=/opt/test/record " + unit + f" n{count}\n"]
            )
            body = f"[Service]\nEnvironment=LAST={count} V{count}=1\n{reset}"
            files[path] = chance.choice([body.encode()] * 6 + [b"", None])
    files["/etc/systemd/system/service.d/05-all.conf"] = b"[Service]\nEnvironment=ALL=1\n"
    files["/run/systemd/system/service.d/20-b.conf"] = b"[Service]\nEnvironment=ALL=2\n"
    answer = ask(testhost, files, units, exec_start=True)
    for unit in units:
        found = analyse(Offline({p: c or b"" for p, c in files.items()}), unit, "system", facts)
        shown = [one.replace("\\x20", " ") for one in words_of(answer[unit]["show"]["DropInPaths"])]
        mine = [file.path for file in found.merged.drop_ins]
        assert mine == shown, (unit, found.merged.hidden)
        refused = answer[unit]["show"]["LoadState"] != "loaded"
        assert refused == bool(found.problems), (unit, found.problems)
        if not refused:
            assert [list(c.values) for c in found.commands] == answer[unit]["exec_start"]


def words_of(line: str) -> list[str]:
    from ddtui.host.unit.text import Text

    return [word.value for word in words.split(Text(line))[0]]


# -- changing ----------------------------------------------------------------------------------------------------
HOSTILE = [
    "16",
    "",
    "two words",
    "it's",
    'say "hi"',
    "back\\slash",
    "trailing\\",
    "$HOME ${A} $A",
    "$(touch /tmp/owned) `touch /tmp/owned`",
    "a;b && c || d | e > /tmp/owned",
    "%i %n %%",
    "line\nbreak",
    "tab\there",
    '{"a": [1, 2], "b": {"c": "x\\"y"}}',
    "#comment",
    "ünï😀",
    "*?[a]~",
    "--looks-like-a-flag",
    "a=b",
    "\x7f\x01",
]
SHAPES = {
    "plain": 'ExecStart=/opt/test/sglang serve --model-path {n} --served-model-name "kimi k2" --port 1 $EXTRA ${{A}}',
    "equals": "ExecStart=/opt/test/sglang serve --model-path {n} '--served-model-name=kimi k2' --port 1 %i",
    "colon": "ExecStart=:/opt/test/sglang serve --model-path {n} --served-model-name kimi --port $A",
    "variable": 'Environment="NAME=kimi k2" A=x\nExecStart=/opt/test/sglang serve --model-path {n} --served-model-name ${{NAME}} --port 1',
    "words": "Environment=\"ARGS=--served-model-name 'kimi k2' --port 1\"\nExecStart=/opt/test/sglang serve --model-path {n} $ARGS",
    "file": "EnvironmentFile=/etc/test/{n}.env\nExecStart=/opt/test/sglang serve --model-path {n} --served-model-name ${{NAME}} $ARGS",
    "shell": "ExecStart=/bin/sh -c 'exec /opt/test/sglang serve --model-path {n} --served-model-name \"kimi k2\" --port $${{PORT:-1}}'",
    "script": "ExecStart=/bin/sh /opt/test/{n}.sh",
    "default": "ExecStart=/bin/sh /opt/test/{n}-default.sh",
    "absent": "ExecStart=/opt/test/sglang serve --model-path {n} --port 1",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_value_reaches_the_server_unchanged(
    testhost: TestHost, facts: HostFacts, shape: str
) -> None:
    before: dict[str, bytes | None] = {}
    for number, _ in enumerate(HOSTILE):
        name = f"{shape}{number}.service"
        unit = f"[Service]\nType=oneshot\nEnvironment=A=x\n{SHAPES[shape].format(n=name)}\n"
        before[f"/etc/systemd/system/{name}"] = unit.encode()
        if shape == "file":
            before[f"/etc/test/{name}.env"] = b'# names\nNAME="kimi k2"\nARGS=--port 1\n'
        if shape == "script":
            script = f"#!/bin/sh\nP=1\nexec /opt/test/sglang serve --model-path {name} \\\n  --served-model-name 'kimi k2' \\\n  --port $P\n"
            before[f"/opt/test/{name}.sh"] = script.encode()
        if shape == "default":
            script = f'#!/bin/sh\nexec /opt/test/sglang serve --model-path {name} --served-model-name "${{NAME:-kimi k2}}"\n'
            before[f"/opt/test/{name}-default.sh"] = script.encode()
    after = dict(before)
    expected: dict[str, tuple[str, ...]] = {}
    refused = []
    for number, value in enumerate(HOSTILE):
        unit = f"{shape}{number}.service"
        tree = Offline(before)
        reading = read_unit(tree, unit, "system", facts)
        assert reading.launch_argv is not None
        change = change_unit(tree, reading, [("--served-model-name", "set", value)])
        if change.problems:
            refused.append(value)
            continue
        assert change.launch_argv_after is not None
        assert value in change.launch_argv_after or f"--served-model-name={value}" in change.launch_argv_after
        expected[unit] = change.launch_argv_after
        after |= {edit.path: edit.after for edit in change.edits if edit.after is not None}
    answer = ask(testhost, after, list(expected))
    for unit, argv in expected.items():
        assert [one["argv"] for one in answer[unit]["ran"]] == [list(argv)], unit
    assert testhost.exec("ls", "/tmp").stdout.find(b"owned") < 0
    assert set(refused) <= {"line\nbreak"}  # one line of an environment file cannot hold it


def test_the_unit_path_is_systemds_own(testhost: TestHost) -> None:
    done = testhost.exec("systemd-analyze", "unit-paths").stdout.decode().split()
    merged = list(dict.fromkeys(f"/usr{p}" if p.startswith("/lib/") else p for p in done))
    mine = [p for p in merge.unit_path("system", HostFacts()) if not p.startswith("/lib/")]
    assert mine == merged
