"""Every failed start and crash is explained by its right cause, with the lines it rests on and what to try."""

from __future__ import annotations

from typing import Any

import pytest
from engine.captured import GOOD, LOGS, log
from engine.orders import new_order
from hypothesis import given
from hypothesis import strategies as st

from ddtui.engine import failure
from ddtui.engine.failure import Cause, Failure

WINDOW, DRAFT = "--speculative-dflash-draft-window-size", "--speculative-draft-model-path"
CAPTURED = [
    # log, cause, flag, value, words of the sentence, words of the evidence
    ("fail_unknown_flag", Cause.ARGUMENT, "--speculative-dflash-window", None, "does not know", "unrecognized"),
    ("fail_newer_window_flag", Cause.ARGUMENT, "--speculative-draft-window-size", None, "does not know", "2048"),
    ("fail_bad_int", Cause.ARGUMENT, WINDOW, "2k", "invalid int value", "'2k'"),
    ("fail_bad_algorithm", Cause.ARGUMENT, "--speculative-algorithm", "DDTREE", "cannot be DDTREE", "invalid choice"),
    ("fail_abbreviated_window_flag", Cause.RULE, WINDOW, "8", "must be >=", "window_size=8"),
    ("fail_window_lt_block", Cause.RULE, WINDOW, "8", "must be >=", "block_size=16"),
    ("fail_window_zero", Cause.RULE, WINDOW, "0", "to be positive, got 0", "ValueError"),
    ("fail_block_conflict", Cause.RULE, "--speculative-num-draft-tokens", "8", "they differ", "ValueError"),
    ("fail_no_draft_path", Cause.RULE, DRAFT, None, "requires setting", "ValueError"),
    ("fail_context_too_long", Cause.RULE, "--context-length", "131072", "greater than the derived", "ValueError"),
    ("fail_no_model", Cause.MISSING_MODEL, "--model-path", "/opt/models/no_such_target", "no target model at", "OSError"),
    ("fail_draft_path_missing_dir", Cause.MISSING_MODEL, DRAFT, "/opt/models/no_such_drafter", "no drafter at", "OSError"),
    ("fail_bad_target_layers", Cause.BAD_DRAFTER, DRAFT, "/opt/models/drafter_bad_layers", "out-of-range", "ValueError"),
    ("fail_bad_feature_count", Cause.BAD_DRAFTER, DRAFT, "/opt/models/drafter_bad_k", "fc.weight shape", "ValueError"),
    ("fail_mem_fraction_high", Cause.OUT_OF_MEMORY, "--mem-fraction-static", "0.9995",
     "allocating the drafter's KV pool (4.96 GiB wanted, 4.07 GiB free)", "torch.OutOfMemoryError"),
    ("fail_port_in_use", Cause.PORT_IN_USE, None, None, "Port 30000 on 127.0.0.1", "Errno 98"),
    ("crash_token_id_out_of_range", Cause.CRASH, None, None, "while serving", "device-side assert"),
    ("start_dflash_window2048", Cause.CHILD_KILLED, None, None, "killed with SIGKILL while serving", "exit code -9"),
]  # fmt: skip


def check(found: Failure | None, kind: Cause, words: str = "", quoted: str = "") -> Failure:
    assert found is not None
    assert found.kind is kind, found
    assert words in found.cause
    assert (
        found.cause.endswith(".")
        and "\n" not in found.cause
        and "{" not in found.cause.replace("{decode", "")
    )
    assert found.advice
    assert quoted in "\n".join(found.evidence)
    return found


@pytest.mark.parametrize(
    ("name", "kind", "flag", "value", "words", "quoted"), CAPTURED, ids=[row[0] for row in CAPTURED]
)
def test_captured_failures(
    name: str, kind: Cause, flag: str | None, value: str | None, words: str, quoted: str
) -> None:
    lines = log(name)
    found = check(failure.explain(lines), kind, words, quoted)
    assert (found.flag, found.value) == (flag, value)
    whole = "\n".join(lines)
    assert all(line in whole for line in found.evidence)


def test_every_captured_failure_is_in_the_table() -> None:
    assert {row[0] for row in CAPTURED} >= {name for name in LOGS if not name.startswith("start_")}


@pytest.mark.parametrize("name", [name for name in GOOD if name != "start_dflash_window2048"])
def test_nothing_failed_in_a_good_start_or_a_clean_stop(name: str) -> None:
    assert failure.explain(log(name)) is None
    # a clean stop ends with SIGKILL of its own
    stopped = "SIGTERM" in "\n".join(log(name))
    if stopped:
        assert failure.explain(log(name), result="signal", exit_status=9, active_state="failed") is None


def test_a_new_window_flag_on_an_old_version_gets_the_names_by_version() -> None:
    found = failure.explain(log("fail_newer_window_flag"))
    assert found and "--speculative-dflash-draft-window-size in 0.5.11" in found.advice


def test_up_and_not_ready_is_no_failure_until_time_is_up() -> None:
    lines = log("start_dflash_block8_topk4_steps3_window4096")
    assert failure.explain(lines) is None
    check(failure.explain(lines, timed_out=True), Cause.WARM_UP, "up and not ready")
    weights = new_order()[:12]
    check(failure.explain(weights, timed_out=True), Cause.TIMEOUT, "loading target weights")


AT = "[2026-12-01 02:54:32 TP0] "


def raised(error: str, *frames: str, head: str = "Scheduler hit an exception: ") -> list[str]:
    where = [f'  File "/opt/site/sglang/srt/{frame}.py", line 7, in f' for frame in frames]
    return [f"{AT}{head}Traceback (most recent call last):", *where, error, ""]


ECHO = f"{AT}Received sigquit from a child process. It usually means the child failed."
SYNTHETIC: list[tuple[list[str], Cause, str]] = [
    (raised("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value:"
            " mem_fraction_static=0.5"), Cause.NO_ROOM_FOR_KV, "--mem-fraction-static 0.5"),
    (raised("Exception: Capture cuda graph failed: CUDA out of memory. Possible solutions: 1. set"
            " --mem-fraction-static to a smaller value", "model_executor/cuda_graph_runner"),
     Cause.OUT_OF_MEMORY, "Capturing CUDA graphs failed"),
    (raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "model_loader/loader"),
     Cause.OUT_OF_MEMORY, "loading the target's weights"),
    (raised("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity"
            " of 139 GiB of which 1.0 GiB is free. Process 4242 has 120.50 GiB memory in use."),
     Cause.GPU_HELD, "pid 4242 with 120.5 GiB"),
    (raised("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."),
     Cause.GPU_HELD, "unequal free memory"),
    (raised("RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA) is available.", head=""), Cause.NO_GPU, "No usable GPU"),
    (raised("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:268, unhandled cuda error"),
     Cause.NCCL, "could not talk to each other"),
    (raised("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address."
            " port: 29500, EADDRINUSE"), Cause.PORT_IN_USE, "A port is taken"),
    (raised("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata"),
     Cause.BAD_WEIGHTS, "damaged or cut off"),
    (raised("OSError: /srv/models/Kimi does not appear to have a file named config.json."), Cause.MISSING_MODEL, "Kimi"),
    (raised("RuntimeError: Cannot find any model weights with `/srv/models/Kimi`"), Cause.MISSING_MODEL, "missing"),
    (raised("huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo"), Cause.MISSING_MODEL, "missing"),
    (raised("ValueError: DFLASH sliding_attention layers require config.sliding_window.", "models/dflash"),
     Cause.BAD_DRAFTER, "require config.sliding_window"),
    (raised("ValueError: DFLASH config.layer_types must contain one entry per draft layer. Got 4", "models/dflash"),
     Cause.BAD_DRAFTER, "one entry per draft layer"),
    (raised("ValueError: --speculative-ddtree-budget must be >= 1, got 0.", "server_args", head=""),
     Cause.RULE, "--speculative-ddtree-budget"),
    (raised("ValueError: Unknown speculative algorithm name: FOO", "arg_groups/speculative_hook", head=""),
     Cause.RULE, "FOO"),
    (raised("ModuleNotFoundError: No module named 'torch'", "server_args", head=""), Cause.IMPORT, "No module named"),
    (raised("OSError: It looks like the config file at '/d/config.json' is not a valid JSON file."),
     Cause.BAD_DRAFTER, "not a valid JSON"),
    (raised("OSError: It looks like the config file at '/m/config.json' is not a valid JSON file."),
     Cause.BAD_WEIGHTS, "/m/config.json"),
    (raised("RuntimeError: Port 30000 is already in use", head=""), Cause.PORT_IN_USE, "A port is taken"),
    (raised("OSError: [Errno 28] No space left on device: '/var/cache'"), Cause.DISK_FULL, "disk is full"),
    (raised("PermissionError: [Errno 13] Permission denied: '/srv/models/x'"), Cause.PERMISSION, "may not"),
    (raised("RuntimeError: CUDA error: an illegal memory access was encountered"), Cause.CRASH, "CUDA error"),
    (raised("KeyError: 'model.layers.61.mlp.gate'", "models/deepseek_v2"), Cause.CRASH, "KeyError"),
    ([f"{AT}TP0 Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"], Cause.WATCHDOG, "300 s"),
    ([f"{AT}Initialization failed. warmup error: Traceback (most recent call last):", "  x", "AssertionError: res"],
     Cause.WARM_UP, "first request failed"),
    ([f"{AT}Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), ..."],
     Cause.CHILD_KILLED, "SIGKILL during the start"),
    ([f"{AT}Rank 3 scheduler died during initialization (exit code: -11)."], Cause.CHILD_KILLED, "SIGSEGV"),
    ([f"{AT}Subprocess scheduler_0 (pid=9) crashed with exit code -7. Triggering SIGQUIT for cleanup..."],
     Cause.CHILD_KILLED, "SIGBUS"),
    ([ECHO], Cause.CHILD_KILLED, "without leaving a word"),
    (["kernel: Out of memory: Killed process 77 (sglang::schedul) total-vm:1kB"], Cause.CHILD_KILLED, "host memory"),
    ([f"{AT}port at 30233 is not available in 60 seconds"], Cause.PORT_IN_USE, "port"),
    ([f"{AT}Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."],
     Cause.WATCHDOG, "detokenizer"),
    (["/usr/bin/python3: No module named sglang"], Cause.IMPORT, "has no sglang"),
    (["sglang.service: Failed at step EXEC spawning /opt/venv/bin/python: No such file or directory"],
     Cause.EXEC, "could not run /opt/venv/bin/python: No such file or directory"),
    (["sglang.service: Failed to locate executable /opt/x: No such file or directory"], Cause.EXEC, "found no /opt/x"),
    (["bash: line 1: exec: python: not found"], Cause.EXEC, "shell could not start"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "kind", "words"), SYNTHETIC, ids=[f"{kind}-{i}" for i, (_, kind, _) in enumerate(SYNTHETIC)]
)
def test_failures_known_from_the_sources(lines: list[str], kind: Cause, words: str) -> None:
    before, after = ([], []) if kind is Cause.EXEC else (new_order()[:6], [ECHO])
    check(failure.explain([*before, *lines, *after]), kind, words)


def test_the_first_ranks_exception_is_the_cause_and_the_others_echo_it() -> None:
    lines = [
        *raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB."),
        *raised("torch.distributed.DistBackendError: NCCL error: remote process exited"),
        ECHO,
    ]
    check(failure.explain(lines, result="signal", exit_status=9), Cause.OUT_OF_MEMORY)


def test_systemds_own_lines_are_no_part_of_a_message() -> None:
    lines = [
        "Started sglang.service - SGLang.",
        *log("fail_window_zero"),
        "sglang.service: Main process exited, code=exited, status=1/FAILURE",
        "sglang.service: Failed with result 'exit-code'.",
    ]
    found = check(
        failure.explain(lines, result="exit-code", exit_status=1, active_state="failed"), Cause.RULE
    )
    assert found.cause.endswith("to be positive, got 0.")


def test_a_requests_own_exception_is_not_the_servers() -> None:
    request = [
        f"{AT}ERROR:    Exception in ASGI application",
        "Traceback (most recent call last):",
        '  File "/opt/site/uvicorn/x.py", line 1, in run',
        "AttributeError: 'x' object has no attribute 'path'",
    ]
    assert failure.explain([*new_order(), *request]) is None


SYSTEMD: list[tuple[dict[str, Any], list[str], Cause, str]] = [
    ({"result": "oom-kill"}, new_order(), Cause.CHILD_KILLED, "host memory"),
    ({"result": "exit-code", "exit_status": 203}, [], Cause.EXEC, "203/EXEC"),
    ({"result": "exit-code", "exit_status": 217}, [], Cause.EXEC, "the user"),
    ({"result": "exit-code", "exit_status": 200}, [], Cause.EXEC, "the working directory"),
    ({"result": "exit-code", "exit_status": 127}, [], Cause.EXEC, "127"),
    ({"result": "timeout"}, new_order()[:9], Cause.TIMEOUT, "TimeoutStartSec"),
    ({"result": "timeout"}, [*new_order(), f"{AT}SIGTERM received. Draining requests and shutting down..."],
     Cause.STOP_TIMEOUT, "did not stop in time"),
    ({"result": "core-dump", "exit_status": 11}, new_order(), Cause.CHILD_KILLED, "SIGSEGV while serving"),
    ({"result": "start-limit-hit"}, [], Cause.START_LIMIT, "started too often"),
    ({"restarts": 4, "active_state": "activating"}, [], Cause.CRASH_LOOP, "4 times"),
    ({"result": "exit-code", "exit_status": 1}, new_order()[:9], Cause.UNKNOWN, "exit status 1 while loading"),
    ({"result": "signal", "exit_status": 9}, new_order(), Cause.UNKNOWN, "exit status 9"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "lines", "kind", "words"), SYSTEMD)
def test_what_only_systemd_knows(state: dict[str, Any], lines: list[str], kind: Cause, words: str) -> None:
    check(failure.explain(lines, **state), kind, words)


def test_a_crash_loop_and_a_start_limit_keep_the_cause_behind_them() -> None:
    lines = log("fail_window_zero")
    looping = failure.explain(lines, restarts=7, active_state="activating", result="exit-code", exit_status=1)
    assert check(looping, Cause.RULE).advice.count("7 times") == 1
    limited = failure.explain(lines, result="start-limit-hit", active_state="failed", restarts=5)
    assert "reset-failed" in check(limited, Cause.RULE).advice
    quick = "sglang.service: Start request repeated too quickly."  # after a crash loop Result stays exit-code
    stuck = failure.explain(
        [*lines, quick], result="exit-code", exit_status=1, active_state="failed", restarts=5
    )
    assert "reset-failed" in check(stuck, Cause.RULE).advice
    check(
        failure.explain([quick], result="exit-code", exit_status=1, active_state="failed"), Cause.START_LIMIT
    )


def test_secrets_in_the_evidence_are_masked() -> None:
    line = "sglang serve: error: unrecognized arguments: --api-key=sk-0123456789abcdef --x"
    found = failure.explain([line])
    assert found and "0123456789" not in found.cause + "".join(found.evidence)


def test_long_evidence_can_be_shortened() -> None:
    long = Failure(Cause.CRASH, "x.", tuple(map(str, range(10))), "y")
    assert failure.shortened(long, 4).evidence == ("0", "1", "8", "9")


@given(st.lists(st.text(max_size=60), max_size=12), st.sampled_from([None, "exit-code", "signal", "timeout"]))
def test_no_lines_make_it_fail(lines: list[str], result: str | None) -> None:
    found = failure.explain(lines, result=result, exit_status=1)
    assert (found is None) <= (result is None)
