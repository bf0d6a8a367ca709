"""What ddtui assumes of SGLang's releases, against their own sources: a release that breaks it fails by name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from engine import wheels
from engine.captured import CAPTURES

from ddtui.engine import installation, log
from ddtui.engine.flags import WINDOW
from ddtui.engine.installation import Flavour, Installation
from ddtui.engine.log import Kind

pytestmark = pytest.mark.wheels

OLD_WINDOW = "--speculative-dflash-draft-window-size"


@dataclass(frozen=True)
class Facts:
    """What holds for one release."""

    window: str | None  # the flag to write
    old_window: str  # absent, own, alias, deprecated: what the name of 0.5.11 is
    dflash: bool = True
    honours_layers: bool = True  # reads layer_types and hands sliding_window on
    reads_rope: bool = True
    overlap: bool | None = True
    annotated: bool = True  # the layout of its flags


NEWEST = Facts(WINDOW, "absent")
RELEASES: Mapping[str, Facts] = {
    "0.5.9": Facts(None, "absent", False, False, False, None, False),
    "0.5.10": Facts(None, "absent", False, False, False, None, False),
    "0.5.11": Facts(OLD_WINDOW, "own", True, False, False, False, False),
    "0.5.12": Facts(WINDOW, "alias", True, False, False, False, False),
    "0.5.13": Facts(WINDOW, "deprecated", True, False, True, False, False),
    "0.5.14": Facts(WINDOW, "deprecated"),
    "0.5.16": Facts(WINDOW, "deprecated"),
    "0.5.18": Facts(WINDOW, "deprecated"),
    "0.5.20": NEWEST,
    "0.5.22": NEWEST,
    "0.5.23": NEWEST,
    "newest": NEWEST,
}
EVERY = pytest.mark.parametrize("release", RELEASES)


def version_of(release: str) -> str:
    """The version, its sources at hand; skips with the reason when the index cannot be reached."""
    try:
        version = wheels.newest() if release == "newest" else release
        wheels.sources(version)
    except wheels.Unavailable as reason:
        pytest.skip(f"SGLang {release} cannot be fetched: {reason}")
    return version


@cache
def probed(version: str) -> Installation:
    argv = installation.probe_argv(sys.executable, paths=(str(wheels.sources(version)),))
    done = subprocess.run(argv, input=installation.probe_text(), capture_output=True, timeout=60, check=True)
    return installation.parse(done.stdout)


@EVERY
def test_the_window_flag_and_the_name_it_had(release: str) -> None:
    version, facts = version_of(release), RELEASES[release]
    table = probed(version).flags
    assert table.window_flag == facts.window, f"SGLang {version}: another window flag"
    old = table.find(OLD_WINDOW) if table.has(OLD_WINDOW) else None
    if old is None:
        state = "absent"
    else:
        state = "deprecated" if old.deprecated else "own" if old.name == OLD_WINDOW else "alias"
    assert state == facts.old_window, f"SGLang {version}: {OLD_WINDOW} is {state}"
    asked = ["--model-path", "m", f"{OLD_WINDOW}=2048"]
    if state == "absent":
        assert table.validate(asked) == [f"unrecognized arguments: {OLD_WINDOW}=2048"]
    else:
        assert table.resolve(asked).integer(WINDOW) == 2048 and table.validate(asked) == []


@EVERY
def test_the_speculative_flags_that_ddtui_speaks_of(release: str) -> None:
    version, facts = version_of(release), RELEASES[release]
    table = probed(version).flags
    integers = ["--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"]
    texts = [
        "--speculative-draft-model-path",
        "--speculative-algorithm",
        "--speculative-draft-attention-backend",
    ]
    if facts.dflash:
        integers.append("--speculative-dflash-block-size")
    for name in [*integers, *texts]:
        flag = table.find(name)
        assert flag and flag.name == name, f"SGLang {version}: no {name}"
        assert flag.type == ("int" if name in integers else "str") and flag.nargs is None
        assert flag.dest == name.lstrip("-").replace("-", "_")
    assert table.has("--speculative-dflash-block-size") is facts.dflash
    for name, kind in (
        ("--mem-fraction-static", "float"), ("--max-running-requests", "int"), ("--port", "int"), ("--tp-size", "int")
    ):  # fmt: skip
        assert (flag := table.find(name)) and flag.type == kind, f"SGLang {version}: {name}"
    assert table.accepted("--cuda-graph-max-bs") and table.accepted("--cuda-graph-bs")
    model = table.find("--model")
    assert model and model.required and model.name == "--model-path"


@EVERY
def test_every_declaration_of_a_flag_is_read(release: str) -> None:
    version, facts = version_of(release), RELEASES[release]
    found = probed(version)
    assert found.problems == (), f"SGLang {version}: {found.problems}"
    assert found.flags.complete and len(found.flags.flags) > 300
    names = [name for flag in found.flags for name in flag.names]
    assert len(names) == len(set(names)), f"SGLang {version}: a flag is declared twice"
    text = (wheels.sources(version) / "sglang/srt/server_args.py").read_text()
    declared = len(re.findall(r"\.add_argument\(\s*\"--", text))
    assert (len(found.flags.flags) > declared) is facts.annotated
    assert all(flag.nargs in (None, 0, "?", "*", "+") for flag in found.flags)
    assert not any("..." in (choice or "") for flag in found.flags for choice in flag.choices or ())


@EVERY
def test_what_the_draft_code_does_with_the_drafters_window(release: str) -> None:
    version, facts = version_of(release), RELEASES[release]
    found = probed(version)
    assert found.version == version
    assert found.has_dflash is facts.dflash
    assert found.honours_config_window is facts.honours_layers, f"SGLang {version}: layer_types"
    assert found.has_compact_cache is facts.dflash, f"SGLang {version}: the compact cache"
    assert found.reads_rope_parameters is facts.reads_rope
    assert found.overlap_with_dflash is facts.overlap
    assert found.ddtree.flavour is Flavour.NONE, f"SGLang {version} has a DDTree of its own now"
    assert found.algorithms and ("DFLASH" in found.algorithms) is facts.dflash


@EVERY
def test_the_line_that_proves_the_window(release: str) -> None:
    version, facts = version_of(release), RELEASES[release]
    text = probed(version).draft_runner_text
    assert (text is not None) is facts.dflash, f"SGLang {version}: the draft runner line"
    if text:
        line = log.parse("[2026-12-01 02:55:02 TP0] " + text.replace("...", "7"))
        assert line.kind is Kind.DRAFT_RUNNER
        assert {"draft_window_size", "compact_cache", "block_size", "attention_backend"} <= set(line.fields)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


# a phrase of a log line -> what the whole line begins with, and the kind that ddtui reads it as
FORMATS = {
    "Init ": (r"Init (?:torch distributed|parallel) (?:begin|ends)\.", Kind.DISTRIBUTED),
    "Load weight begin. ": (r"Load weight begin\. avail mem=", Kind.LOAD_BEGIN),
    "Load weight end. ": (r"Load weight end\. elapsed=", Kind.LOAD_END),
    "Using KV cache dtype: ": (r"Using KV cache dtype: ", Kind.KV_DTYPE),
    "#tokens: ": (r".*\. (?:dtype: \S+, )?#tokens: 7, (?:KV|K) size", Kind.KV_POOL),
    "Memory pool end. ": (r"Memory pool end\. avail mem=", Kind.POOL_END),
    "Capture ": (r"Capture .{3,60}(?:graph|7) (?:begin|end)\. ", None),
    "Capturing batches (": (r"Capturing batches \(", Kind.GRAPH_STEP),
    "max_total_num_tokens=": (r"max_total_num_tokens=7, chunked_prefill_size=", Kind.LIMITS),
    "Prefill batch": (r"Prefill batch7, ", Kind.PREFILL),
    "Decode batch": (r"Decode batch7, ", Kind.DECODE),
    "The server is fired up": (r"The server is fired up and ready to roll!$", Kind.READY),
    "KV cache pool is full. ": (r"KV cache pool is full\. Retract requests\.", Kind.RETRACT),
    "Cache flushed ": (r"Cache flushed successfully!", Kind.CACHE_FLUSHED),
    "Gracefully exiting": (r"Gracefully exiting\.\.\. Remaining", Kind.DRAINING),
}


def whole(text: str, kind: Kind | None) -> str:
    """A text of the source as a line: where all of a name varies, such as it is in a real log."""
    if kind is Kind.GRAPH_STEP:
        return f"{text}: 50%|#| 1/2 [00:01<00:01]"
    if kind is Kind.KV_POOL and text.startswith(
        "7"
    ):  # {cache_name} {'VA upper bound' if … else 'is allocated'}
        text = text.replace("7 7.", "KV Cache is allocated.", 1)
    if kind in (Kind.PREFILL, Kind.DECODE):  # {iter_msg}, usually empty
        text = text.replace("batch7", "batch", 1)
    if kind is None:  # {capture_name} {graph_backend}
        text = text.replace("7 7 ", "target verify CUDA graph ", 1)
    return f"[2026-12-01 02:55:02 TP0] {text}"


@EVERY
@pytest.mark.parametrize("phrase", FORMATS)
def test_log_lines_as_the_source_writes_them_are_read_as_their_kind(release: str, phrase: str) -> None:
    version = version_of(release)
    begins, kind = FORMATS[phrase]
    if kind is Kind.KV_DTYPE and _key(version) >= (0, 5, 13):
        assert not searched(version).lines[phrase], "it went with 0.5.13; nothing rests on it"
        return
    texts = [text for text in searched(version).lines[phrase] if re.match(begins, text)]
    assert texts, f"SGLang {version} no longer writes {begins!r}"
    for text in texts:
        wanted = kind or (Kind.GRAPH_BEGIN if " begin. " in text else Kind.GRAPH_END)
        read = log.parse(whole(text, kind))
        assert read.kind is wanted, f"SGLang {version}: {text!r} is read as {read.kind}"
        if kind is Kind.KV_POOL:
            assert read.fields["tokens"] == 7


SINCE = {  # texts that failures and decode lines are known by -> the first release that has them
    "Not enough memory. Please try to increase --mem-fraction-static": "0.5.9",
    "It usually means the child failed": "0.5.9",
    "memory capacity is unbalanced": "0.5.9",
    "Initialization failed. warmup error": "0.5.9",
    "hit an exception: {": "0.5.9",
    "couldn't get a response from detokenizer": "0.5.9",
    "No accelerator (CUDA": "0.5.9",
    "died during initialization": "0.5.10",
    "accept len: ": "0.5.9",
    "accept rate: ": "0.5.9",
    "gen throughput (token/s): ": "0.5.9",
    "#queue-req: ": "0.5.9",
    "Max running requests is reset to": "0.5.9",
    "DFLASH only supports speculative_eagle_topk == 1": "0.5.11",
    "DFLASH block size mismatch: using speculative_num_draft_tokens=": "0.5.11",
    "Disable DFLASH draft cuda graph": "0.5.14",
}
PATHS = {  # HTTP: path or key -> first release, first release without it
    '"/server_info"': ("0.5.9", None),
    '"/model_info"': ("0.5.9", None),
    '"/v1/loads"': ("0.5.9", None),
    '/get_load"': ("0.5.9", "0.5.22"),
    "spec_accept_token_num": ("0.5.9", "0.5.11"),
    "spec_accepted_drafts": ("0.5.11", "0.5.22"),
    "spec_num_correct_drafts": ("0.5.12", None),
    "avg_spec_accept_length": ("0.5.9", None),
    "effective_max_running_requests_per_dp": ("0.5.9", None),
}


def searched(version: str) -> wheels.Found:
    return wheels.search(version, tuple(FORMATS), (*SINCE, *PATHS))


@EVERY
def test_texts_and_keys_that_ddtui_looks_for_are_there(release: str) -> None:
    version = version_of(release)
    at = _key(version)
    for text, since in SINCE.items():
        assert (text in searched(version).texts) is (at >= _key(since)), f"SGLang {version}: {text!r}"
    for key, (since, until) in PATHS.items():
        there = at >= _key(since) and (until is None or at < _key(until))
        assert (key in searched(version).texts) is there, f"SGLang {version}: {key}"


# --- 0.5.11's table, completely ------------------------------------------------------------------------------


def usage() -> dict[str, str]:
    """Each option of the captured `launch_server --help`, by its first spelling, with what its usage shows."""
    text = (CAPTURES / "launch_server_help.txt").read_text()
    head = text[text.index("usage: ") : text.index("\n\n", text.index("usage: "))]
    head = re.sub(r"\s+", " ", head)
    found: dict[str, str] = {}
    for option in re.findall(r"\[(-[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]| (--model-path MODEL_PATH)", head):
        shown = option[0] or option[1]
        name, _, rest = shown.partition(" ")
        found[name] = rest.strip()
    return found


def test_the_flag_table_of_0_5_11_is_the_parsers_own_completely() -> None:
    table = probed(version_of("0.5.11")).flags
    shown = usage()
    shown.pop("-h")
    assert {flag.name for flag in table} == set(shown)
    for flag in table:
        said = shown[flag.name]
        if flag.switch:
            assert said == "" or "|" in said, flag.name
            continue
        assert said, f"{flag.name} takes a value"
        several = "..." in said
        assert several is (flag.nargs in ("*", "+")), flag.name
        assert said.startswith("[") is (flag.nargs in ("?", "*")), flag.name
        braces = re.search(r"\{([^}]*)\}", said)
        assert (braces is not None) is (flag.choices is not None), flag.name
        if braces and flag.choices is not None:
            assert tuple(braces[1].split(",")) == flag.choices, flag.name
    text = (CAPTURES / "launch_server_help.txt").read_text()
    for flag in table:  # the descriptions name every spelling
        assert all(re.search(rf"(?m)^  .*{re.escape(name)}\b", text) for name in flag.names), flag.names


def test_the_captured_failures_of_argparse_are_foretold() -> None:
    table = probed(version_of("0.5.11")).flags
    base = ["python", "-m", "sglang.launch_server", "--model-path", "/m", "--speculative-algorithm", "DFLASH"]
    for name, argv in {
        "fail_unknown_flag": ["--speculative-dflash-window", "2048", "--speculative-dflash-windw", "1"],
        "fail_newer_window_flag": ["--speculative-draft-window-size", "2048"],
        "fail_bad_int": [OLD_WINDOW, "2k"],
        "fail_bad_algorithm": ["--speculative-algorithm", "DDTREE"],
    }.items():
        last = (CAPTURES / "logs" / f"{name}.log").read_text().strip().splitlines()[-1]
        assert last == f"sglang serve: error: {table.validate([*base, *argv])[0]}"
    assert (
        table.validate([*base, "--speculative-dflash-draft-window", "8"]) == []
    )  # abbreviated, and accepted


def test_at_least_eight_releases_are_checked() -> None:
    assert len(RELEASES) >= 8 and Path(wheels.__file__).is_file()
