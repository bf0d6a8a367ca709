"""Starts, runs and stops of the stand-in that go wrong, as they went wrong with a real 0.5.11."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest
from demo.standin_process import (
    DDTREE,
    DFLASH,
    KIMI,
    KIMI_DRAFTER,
    READY,
    log_text,
    stand_in,
    wording,
)

KILLED = -signal.SIGKILL  # how SGLang ends, whatever the reason: it kills its own tree, itself last
CHILD_FAILED = "Received sigquit from a child process. It usually means the child failed."


@pytest.mark.parametrize(
    ("fraction", "error"),
    [
        ("0.9995", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"),
        (
            "0.30",
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.3",
        ),
    ],
)
def test_a_memory_fraction_that_does_not_fit_ends_the_start(
    fraction: str, error: str, tmp_path: Path
) -> None:
    flags = ("--tp-size", "8", "--mem-fraction-static", fraction)
    with stand_in(tmp_path, *DDTREE, *flags, model=KIMI, drafter=KIMI_DRAFTER, ready=False) as server:
        assert server.wait_for_end() == KILLED
    assert re.search(
        r"^\[[^\]]* TP0\] Scheduler hit an exception: Traceback \(most recent call last\):$", server.log, re.M
    )
    assert f"\n{error}" in server.log
    assert server.lines[-1].endswith(CHILD_FAILED)


def test_the_failure_s_lines_are_the_captured_ones(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": "oom"}, ready=False) as server:
        assert server.wait_for_end() == KILLED
    real = log_text("fail_mem_fraction_high").split("\n")
    for text in ("Scheduler hit an exception", "CUDA out of memory", CHILD_FAILED):
        (theirs,) = [wording(line) for line in real if text in line]
        (ours,) = [wording(line) for line in server.lines if text in line]
        assert ours == theirs


@pytest.mark.parametrize(
    ("failure", "text", "code"),
    [
        ("graph_oom", "RuntimeError: Capture cuda graph failed: CUDA out of memory.", KILLED),
        ("killed", "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).", 1),
        ("warmup_error", "Initialization failed. warmup error: Traceback (most recent call last):", KILLED),
        ("crash_after=0", "RuntimeError: CUDA error: device-side assert triggered", KILLED),
    ],
)
def test_switched_failures(failure: str, text: str, code: int, tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": failure}, ready=False) as server:
        assert server.wait_for_end() == code
    assert text in server.log
    assert (READY in server.log) == failure.startswith("crash")


def test_a_drafter_that_is_not_there_is_warned_of_and_then_ends_the_start(tmp_path: Path) -> None:
    absent = Path("/opt/models/no_such_drafter")
    with stand_in(tmp_path, *DFLASH, drafter=absent, ready=False) as server:
        assert server.wait_for_end() == KILLED
    real = log_text("fail_draft_path_missing_dir").split("\n")
    for text in ("Failed to infer DFLASH block_size", "defaulting to 16 for DFLASH", "\nOSError: Repo id"):
        text = text.lstrip("\n")
        (theirs,) = {wording(line) for line in real if text in line}
        (ours,) = {wording(line) for line in server.lines if text in line}
        assert ours == theirs


def test_a_drafter_for_another_target_ends_the_start_as_in_the_capture(tmp_path: Path) -> None:
    folder = tmp_path / "drafter"
    folder.mkdir()
    config = (Path(__file__).parent.parent / "captures/sglang-0.5.11/models/drafter/config.json").read_text()
    (folder / "config.json").write_text(config.replace("[1, 2, 3, 4, 5, 6]", "[1, 9, 3, 4, 5, 6]"))
    with stand_in(tmp_path, *DFLASH, drafter=folder, ready=False) as server:
        assert server.wait_for_end() == KILLED
    (theirs,) = [
        line for line in log_text("fail_bad_target_layers").split("\n") if line.startswith("ValueError")
    ]
    assert theirs in server.lines


def test_a_taken_port_is_noticed_after_the_whole_load_and_hangs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        environment = {"SGLANG_STANDIN_UDS": ""}
        with stand_in(tmp_path, *DFLASH, "--port", port, environment=environment, ready=False) as server:
            line = server.wait_for("[Errno")
            server.wait_for("Waiting for application shutdown.")
            assert server.process.poll() is None
            server.terminate()
            assert server.wait_for_end() == -signal.SIGTERM
    real = [wording(x) for x in log_text("fail_port_in_use").split("\n") if "Errno" in x]
    assert [wording(line).replace(port, "30000")] == real
    assert "max_total_num_tokens=" in server.log


def test_a_socket_that_somebody_listens_on_is_a_taken_port(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as first, stand_in(tmp_path, *DFLASH, ready=False) as second:
        assert "('127.0.0.1', 30000): address already in use" in second.wait_for("[Errno")
        assert first.get("/model_info").status == 200


def test_a_socket_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        path = server.uds
    assert path.exists()  # it was killed
    with stand_in(tmp_path, *DFLASH) as server:
        assert server.get("/model_info").status == 200


# --- stopping -----------------------------------------------------------------------------------------------


def test_sigterm_drains_and_ends_by_sigkill(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        server.terminate()
        assert server.wait_for_end() == KILLED
    assert [wording(line) for line in server.lines[-2:]] == [
        "[] SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        "[] Gracefully exiting... Remaining number of requests N. Remaining requests remaining_rids=[].",
    ]


def test_a_stop_waits_for_the_requests_that_run(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_SPEED": "2"}) as server:
        connection = server.connect()
        body = b'{"text": "a", "stream": true, "sampling_params": {"temperature": 0, "max_new_tokens": 120, "ignore_eos": true}}'
        connection.request("POST", "/generate", body)
        response = connection.getresponse()
        server.terminate()
        server.wait_for("SIGTERM received.")
        health = server.get("/health")
        text = response.read()
        assert server.wait_for_end() == KILLED
    assert health.status == 503
    assert text.endswith(b"data: [DONE]\n\n") and b'"completion_tokens":120' in text
    assert "Remaining number of requests 1. Remaining requests remaining_rids=['" in server.log
    assert "Health check request received during shutdown. Returning 503." in server.log


def test_a_refused_request_keeps_the_server_from_stopping(tmp_path: Path) -> None:
    """As with the real 0.5.11: a request that was refused for its length stays in its table for ever."""
    with stand_in(tmp_path, *DFLASH) as server:
        assert server.generate(list(range(300)) * 200, max_new_tokens=4).status == 400
        server.terminate()
        server.wait_for("Remaining number of requests 1.")
        assert server.process.poll() is None


def test_force_shutdown_does_not_wait(tmp_path: Path) -> None:
    with stand_in(
        tmp_path, *DFLASH, environment={"SGL_FORCE_SHUTDOWN": "1", "SGLANG_STANDIN_FAIL": "stop_hangs"}
    ) as server:
        server.terminate()
        assert server.wait_for_end() == KILLED
    assert "force shutdown flag set. Force exiting." in server.log


def test_a_stop_can_be_made_to_hang(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": "stop_hangs"}) as server:
        server.terminate()
        server.wait_for("Remaining number of requests 1.")
        assert server.process.poll() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the children have titles on Linux only")
def test_the_death_of_the_scheduler_ends_the_server(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        pid = server.child("sglang::scheduler")
        os.kill(pid, signal.SIGKILL)
        assert server.wait_for_end() == KILLED
    real = log_text("start_dflash_window2048").strip().split("\n")[-2:]
    assert [wording(line) for line in server.lines[-2:]] == list(map(wording, real))


@pytest.mark.skipif(sys.platform != "linux", reason="the children have titles on Linux only")
def test_the_process_tree_looks_like_the_real_one(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DDTREE, "--tp-size", "8", model=KIMI, drafter=KIMI_DRAFTER) as server:
        for rank in range(8):
            pid = server.child(f"sglang::scheduler_TP{rank}")
            assert Path(f"/proc/{pid}/comm").read_text() == "sglang::schedul\n"
            assert (
                Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
                == f"sglang::scheduler_TP{rank}".encode()
            )
        server.child("sglang::detokenizer")
        launcher = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().split(b"\0")
        assert b"sglang.launch_server" in launcher


def test_a_token_beyond_the_vocabulary_kills_the_server_without_an_answer(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:
        with pytest.raises((ConnectionError, OSError)):
            server.generate([1, 2, 999_999], max_new_tokens=4)
        assert server.wait_for_end() == KILLED
    assert "device-side assert triggered" in server.log


def test_a_hung_scheduler_answers_nothing_and_turns_unhealthy(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, environment={"SGLANG_STANDIN_FAIL": "hang"}) as server:
        assert server.get("/health").status == 503
        assert server.get("/model_info").status == 200
        connection = server.connect()
        connection.timeout = 0.2
        connection.connect()
        connection.sock.settimeout(0.2)
        connection.request("GET", "/server_info")
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        server.wait_for(
            "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."
        )
