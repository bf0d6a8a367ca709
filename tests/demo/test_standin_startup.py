"""A start of the stand-in against the captured starts of a real 0.5.11: the same lines, in the same order."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from demo.standin_process import (
    DDTREE,
    DFLASH,
    KIMI,
    KIMI_DRAFTER,
    PATIENCE,
    READY,
    STANDIN,
    log_text,
    stand_in,
    wording,
)

# Lines of the captures that come from that machine's packages, not from SGLang or its start.
ARTEFACTS = (
    "Tokenizer loaded as generic",
    "Loading tokenizer for",
    "Tokenizer for ",
    "Fail to set RLIMIT_NOFILE",
    "Compiling a graph for dynamic shape",
    "quant_api.py",
    "Configuration class for applying",
    "UserWarning",
    "sglang serve --model-path",
    "warnings.warn",
)


def start_lines(text: str) -> list[str]:
    """The wording of every line up to ready; the progress bars are compared on their own."""
    lines = []
    for line in text.split("\n"):
        # a bar in the captures may be followed by a logger line without a line break
        for part in re.split(r"(?<=[\]s])(?=\[\d{4}-)", line):
            if not part.strip() or "\r" in part or any(artefact in part for artefact in ARTEFACTS):
                continue
            lines.append("[] server_args=..." if "server_args=ServerArgs(" in part else wording(part))
            if READY in part:
                return lines
    raise AssertionError("never ready")


def without_clients(lines: list[str]) -> list[str]:
    """Health checks of whoever made the capture are not part of a start."""
    return [line for line in lines if "GET /health" not in line]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("start_dflash_nowindow", DFLASH),
        ("start_dflash_window2048", (*DFLASH, "--speculative-dflash-draft-window-size", "2048")),
        ("start_no_speculation", ()),
    ],
)
def test_the_lines_of_a_start_are_the_captured_ones_in_their_order(
    name: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    with stand_in(tmp_path, *flags, drafter=None if not flags else Path(DRAFTER)) as server:
        ours = without_clients(start_lines(server.log))
    assert ours == without_clients(start_lines(log_text(name)))


DRAFTER = str(Path(__file__).parent.parent / "captures/sglang-0.5.11/models/drafter")


def bars(text: str) -> list[str]:
    """Each progress bar's states, by the words before the colon, numbers taken out."""
    states = []
    for line in text.split("\n"):
        for state in line.split("\r")[1:]:
            head = re.match(
                r"(Multi-thread loading shards|Capturing batches|Capturing num tokens|  0%)", state
            )
            if head:
                states.append(
                    re.sub(r"[\d.]+|\?|[ ▏▎▍▌▋▊▉█]+(?=\|)", "N", re.sub(r"\d\d:\d\d", "T", state)).strip()
                )
    return sorted(set(states))


def test_progress_bars_are_tqdm_s_redrawn_with_carriage_returns(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        raw = server.raw.decode()
    shards = [line for line in raw.split("\n") if "Multi-thread loading shards" in line]
    assert len(shards) == 2  # the target's and the drafter's, each one line that is written over and over
    assert re.fullmatch(
        r"\rMulti-thread loading shards:   0% Completed \| 0/1 \[00:00<\?, \?it/s\]",
        shards[0].split("\r")[1].join(["\r", ""]),
    )
    assert shards[0].endswith("it/s]") and "100% Completed | 1/1 [" in shards[0]
    batches = next(line for line in raw.split("\n") if "Capturing batches" in line)
    assert batches.startswith("\r  0%|          | 0/")
    assert re.search(
        r"\rCapturing batches \(bs=48 avail_mem=[\d.]+ GB\):   0%\|          \| 0/\d+ \[00:00<\?, \?it/s\]",
        batches,
    )
    assert re.search(r"100%\|██████████\| (\d+)/\1 \[", batches)
    captured = bars(log_text("start_dflash_nowindow"))
    ours = {re.sub(r"N+", "N", bar) for bar in bars(raw) if "loading" in bar}
    assert ours <= {re.sub(r"N+", "N", bar) for bar in captured}


def test_eight_gpus_print_with_their_ranks(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DDTREE, "--tp-size", "8", model=KIMI, drafter=KIMI_DRAFTER) as server:
        log = server.log
    for rank in range(8):
        assert re.search(rf"^\[[^\]]* TP{rank}\] Init torch distributed begin\.$", log, re.M)
    assert len(re.findall(r"Initialized DFLASH draft runner", log)) == 1
    assert re.search(
        r"^\[\S+ \S+ TP0\] max_total_num_tokens=\d+, chunked_prefill_size=8192, .*context_len=262144",
        log,
        re.M,
    )
    assert re.search(
        r"TP3\] KV Cache is allocated\. #tokens: \d+, KV size: [\d.]+ GB$", log, re.M
    )  # MLA: one size
    assert re.search(
        r"TP0\] KV Cache is allocated\. #tokens: \d+, K size: [\d.]+ GB, V size", log, re.M
    )  # drafter
    assert "INFO:     Uvicorn running on http://127.0.0.1:30000" in log
    assert '"POST /v1/chat/completions HTTP/1.1" 200 OK' in log  # a vision model warms up with a chat


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ((), "draft_window_size=None, compact_cache=False"),
        (("--speculative-dflash-draft-window-size", "2048"), "draft_window_size=2048, compact_cache=True"),
    ],
)
def test_only_the_flag_makes_the_draft_window_the_config_does_not(
    flags: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    with stand_in(tmp_path, *DDTREE, *flags, "--tp-size", "8", model=KIMI, drafter=KIMI_DRAFTER) as server:
        runner = server.wait_for("Initialized DFLASH draft runner.")
    assert runner.endswith(f"attention_backend=triton, model=DFlashDraftModel, block_size=8, {line}")


def test_the_fork_s_worker_says_what_tree_it_builds(tmp_path: Path) -> None:
    flags = ("--speculative-ddtree-budget", "12", "--speculative-ddtree-topk-cap", "4", "--tp-size", "8")
    with stand_in(tmp_path, *DDTREE, *flags, model=KIMI, drafter=KIMI_DRAFTER) as server:
        worker = server.wait_for("Initialized DDTree worker.")
    assert worker.endswith("block_size=8, tree_budget=12, max_tree_nodes=13, topk_cap=4")


def test_overridden_steps_and_a_smaller_block_are_warned_of_in_the_real_words(tmp_path: Path) -> None:
    flags = (
        *(
            "--speculative-num-draft-tokens",
            "8",
            "--speculative-eagle-topk",
            "4",
            "--speculative-num-steps",
            "3",
        ),
        *("--speculative-dflash-draft-window-size", "4096"),
    )
    name = "start_dflash_block8_topk4_steps3_window4096"
    real = [
        wording(line) for line in log_text(name).split("\n") if "overriding" in line or "mismatch" in line
    ]
    with stand_in(tmp_path, *DFLASH, *flags) as server:
        ours = [wording(line) for line in server.lines if "overriding" in line or "mismatch" in line]
        assert "attention_backend=flashinfer" in server.wait_for("Initialized DFLASH draft runner.")
    assert ours == real and len(real) == 3


def test_the_port_is_bound_only_after_loading(tmp_path: Path) -> None:
    with stand_in(
        tmp_path, *DFLASH, environment={"SGLANG_STANDIN_LOAD_SECONDS": "1.5"}, ready=False
    ) as server:
        server.wait_for("Load weight begin.")
        assert not server.uds.exists()
        server.wait_for("Uvicorn running on")
        assert server.get("/model_info").status == 200
        server.wait_for(READY)
        assert server.get("/health").status == 200


def test_sigterm_while_loading_ends_it_at_once(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": "nccl"}, ready=False) as server:
        server.wait_for("Init torch distributed begin.")
        server.terminate()
        assert server.wait_for_end() == -15
    assert "Init torch distributed ends." not in server.log


def test_a_start_that_hangs_in_its_first_request_stays_503(tmp_path: Path) -> None:
    with stand_in(
        tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": "hang_warmup"}, ready=False
    ) as server:
        server.wait_for('"GET /model_info HTTP/1.1" 200 OK')
        assert server.get("/model_info").status == 200
        answer = server.get("/health")
        assert (answer.status, answer.body) == (503, b"")


def test_milliseconds_are_logged_when_asked_for(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_LOG_MS": "1"}) as server:
        assert re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] ", server.wait_for("Load weight begin."))


def test_it_ends_when_the_pipe_on_its_standard_input_ends(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        argv = server.process.args
    assert isinstance(argv, list)
    process = subprocess.Popen(
        [sys.executable, *map(str, argv[1:])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            "PYTHONPATH": str(STANDIN),
            "SGLANG_STANDIN_LOAD_SECONDS": "0",
            "SGLANG_STANDIN_UDS": str(tmp_path / "x.sock"),
        },
    )
    assert process.stdin is not None and process.stdout is not None
    for line in process.stdout:
        if READY.encode() in line:
            break
    process.stdin.close()
    assert process.wait(PATIENCE) == -9
    process.stdout.read()  # and its children with it: the pipe ends
    process.stdout.close()


def test_bigger_budgets_take_more_graph_memory(tmp_path: Path) -> None:
    free = []
    for budget in ("8", "64", "256"):
        flags = ("--speculative-ddtree-budget", budget, "--tp-size", "8")
        with stand_in(tmp_path, *DDTREE, *flags, model=KIMI, drafter=KIMI_DRAFTER) as server:
            line = server.wait_for("max_total_num_tokens=")
            free.append(float(line.rpartition("=")[2].split()[0]))
    assert all(a > b for a, b in pairwise(free))
