"""The stand-in's command line: the real one's names, defaults, refusals and words."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from demo.standin_process import (
    DDTREE,
    DFLASH,
    KIMI,
    KIMI_DRAFTER,
    STANDIN,
    TINY,
    TINY_DRAFTER,
    capture,
    captured_answer,
    log_text,
    stand_in,
)

FORK = {"--speculative-ddtree-budget", "--speculative-ddtree-topk-cap"}


def run(
    *flags: str, model: str = str(TINY), drafter: str | None = str(TINY_DRAFTER), **environment: str
) -> tuple[int, str]:
    argv = [sys.executable, "-S", "-m", "sglang.launch_server", "--model-path", model, *flags]
    if drafter:
        argv += ["--speculative-draft-model-path", drafter]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(STANDIN), "SGLANG_STANDIN_LOAD_SECONDS": "0", **environment},
    )
    return done.returncode, done.stdout


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def help_text() -> str:
    code, text = run("--help", drafter=None, COLUMNS="400")
    assert code == 0
    return text


def long_options(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text))


def test_help_names_a_real_installation_s_flags_and_the_fork_s(help_text: str) -> None:
    assert "usage: sglang serve [-h] --model-path MODEL_PATH" in help_text
    real = long_options(capture("launch_server_help.txt").decode())
    ours = long_options(help_text)
    assert ours - real == FORK
    assert {flag for flag in real if flag.startswith("--speculative-")} <= ours
    assert len(ours) > 120


def test_the_version_stands_where_a_real_installation_has_it() -> None:
    assert "'0.5.11'" in (STANDIN / "sglang/_version.py").read_text().replace('"', "'")
    code = "import sglang, sglang.version as v; print(sglang.__version__, v.__version__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(STANDIN)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0.5.11", "0.5.11"]


def test_server_args_has_the_real_layout() -> None:
    """One dataclass with annotated fields, one add_cli_args of add_argument calls: what a probe reads."""
    tree = ast.parse((STANDIN / "sglang/srt/server_args.py").read_text())
    (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ServerArgs"]
    fields = [
        node.target.id
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    (method,) = [
        node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "add_cli_args"
    ]
    calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
    flags = [arg.value for call in calls for arg in call.args if isinstance(arg, ast.Constant)]
    assert "speculative_dflash_draft_window_size" in fields
    assert set(flags) >= FORK | {"--speculative-dflash-draft-window-size", "--tp-size"}


def test_fields_come_in_the_real_order_with_the_real_defaults() -> None:
    real = captured_answer("idle_server_info").json["internal_states"][0]
    tree = ast.parse((STANDIN / "sglang/srt/server_args.py").read_text())
    (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ServerArgs"]
    ours = {
        node.target.id: ast.unparse(node.value) if node.value else None
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    common = [name for name in real if name in ours]
    assert [name for name in ours if name in real] == common
    assert {name for name in ours if name not in real} == {flag[2:].replace("-", "_") for flag in FORK}
    given = {
        "model_path",
        "host",
        "port",
        "enable_metrics",
        "speculative_algorithm",
        "speculative_draft_model_path",
    }
    for name in common:
        default = ours[name]
        if name not in given and default not in (None, "None") and not isinstance(real[name], list):
            value = eval(default) if "*" in str(default) else ast.literal_eval(str(default))
            if name not in (
                "load_balance_method",
                "disable_overlap_schedule",
                "disable_chunked_prefix_cache",
            ):
                assert value == real[name], name


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("fail_unknown_flag", ("--speculative-dflash-window", "2048", "--speculative-dflash-windw", "1")),
        ("fail_newer_window_flag", ("--speculative-draft-window-size", "2048")),
        ("fail_bad_int", ("--speculative-dflash-draft-window-size", "2k")),
    ],
)
def test_a_flag_that_cannot_be_read_ends_as_in_the_capture(name: str, flags: tuple[str, ...]) -> None:
    code, text = run(*DFLASH, *flags)
    assert code == 2
    assert last_line(text) == last_line(log_text(name))


def test_an_unknown_algorithm_is_refused_in_the_real_words() -> None:
    code, text = run("--speculative-algorithm", "FOO")
    assert code == 2
    assert (
        "error: argument --speculative-algorithm: invalid choice: 'FOO' (choose from 'DFLASH', 'DDTREE', "
        in text
    )


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("fail_window_zero", ("--speculative-dflash-draft-window-size", "0")),
        ("fail_window_lt_block", ("--speculative-dflash-draft-window-size", "8")),
        ("fail_abbreviated_window_flag", ("--speculative-dflash-draft-window", "8")),
        (
            "fail_block_conflict",
            ("--speculative-num-draft-tokens", "8", "--speculative-dflash-block-size", "16"),
        ),
        ("fail_context_too_long", ("--context-length", "131072")),
    ],
)
def test_values_that_do_not_fit_end_in_a_traceback_as_in_the_capture(
    name: str, flags: tuple[str, ...]
) -> None:
    code, text = run(*DFLASH, *flags)
    assert code == 1
    assert "Traceback (most recent call last):\n" in text
    assert last_line(text) == last_line(log_text(name))


def test_a_draft_model_is_required() -> None:
    code, text = run(*DFLASH, drafter=None)
    assert (code, last_line(text)) == (1, last_line(log_text("fail_no_draft_path")))


def test_a_missing_model_folder_ends_as_in_the_capture() -> None:
    code, text = run(*DFLASH, model="/opt/models/no_such_target")
    assert code == 1
    assert last_line(text) == last_line(log_text("fail_no_model"))
    assert "huggingface_hub.errors.HFValidationError: Repo id must be in the form" in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--speculative-ddtree-budget", "0"),
            "ValueError: --speculative-ddtree-budget must be >= 1, got 0.",
        ),
        (
            ("--speculative-ddtree-topk-cap", "0"),
            "ValueError: --speculative-ddtree-topk-cap must be >= 1, got 0.",
        ),
        (
            ("--page-size", "16"),
            "ValueError: DDTREE currently supports only page_size == 1. Got page_size=16.",
        ),
        (
            ("--speculative-ddtree-budget", "16", "--attention-backend", "fa3"),
            "ValueError: DDTREE full-tree mode currently supports only the triton attention backend for prefill and "
            "decode. Got prefill=fa3, decode=fa3.",
        ),
    ],
)
def test_the_fork_refuses_what_it_cannot_do(flags: tuple[str, ...], message: str) -> None:
    code, text = run(*DDTREE, *flags, model=str(KIMI), drafter=str(KIMI_DRAFTER))
    assert (code, last_line(text)) == (1, message)


def test_paths_are_read_below_the_root_and_printed_without_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "opt/models").mkdir(parents=True)
    (root / "opt/models/target").symlink_to(TINY)
    code, text = run(
        *DFLASH,
        "--speculative-dflash-draft-window",
        "0",
        model="/opt/models/target",
        SGLANG_STANDIN_ROOT=str(root),
    )
    assert code == 1 and "to be positive, got 0." in text
    code, text = run(*DFLASH, model="/opt/models/absent", SGLANG_STANDIN_ROOT=str(root))
    assert "'/opt/models/absent'" in text
    assert str(root) not in text and str(STANDIN) not in text


def test_a_config_file_comes_before_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(
        "speculative-dflash-draft-window-size: 1024  # too small? no\nenable-metrics: true\nport: 30001\n"
    )
    with stand_in(tmp_path, *DFLASH, "--config", str(path), "--port", "30002") as server:
        info = server.get("/server_info").json
    assert (info["speculative_dflash_draft_window_size"], info["port"]) == (1024, 30002)


def test_repeated_flags_and_equal_signs_are_resolved_as_argparse_does(tmp_path: Path) -> None:
    flags = (
        "--speculative-ddtree-bud=4",
        "--speculative-ddtree-budget",
        "12",
        "--max-total-tokens",
        "64k",
        "--tp-size",
        "8",
    )
    with stand_in(tmp_path, *DDTREE, *flags, model=KIMI, drafter=KIMI_DRAFTER) as server:
        info = server.get("/server_info").json
        assert info["speculative_ddtree_budget"] == 12
        assert info["max_total_num_tokens"] == 64_000
        assert info["speculative_num_draft_tokens"] == 8
        assert json.dumps(info)


def test_budget_flags_without_ddtree_are_said_to_have_no_effect(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, "--speculative-ddtree-budget", "8") as server:
        line = server.wait_for("has no effect with")
    assert (
        "--speculative-ddtree-budget has no effect with speculative_algorithm=DFLASH (honored by DDTREE)."
        in line
    )
