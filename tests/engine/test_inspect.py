"""One layer from a local file: the same facts as an object and as lines of text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine.captured import CAPTURES, LOGS

from ddtui.engine import inspect


@pytest.mark.parametrize("name", LOGS)
def test_every_captured_log(name: str) -> None:
    report, lines = inspect.log((CAPTURES / "logs" / f"{name}.log").read_bytes(), f"{name}.log")
    json.dumps(report)
    assert lines and all("\r" not in line and "\x1b" not in line and "\n" not in line for line in lines)
    failed = not name.startswith("start_") or name == "start_dflash_window2048"
    assert bool(report["problems"]) is failed
    assert (report["failure"] is not None) is failed


def test_a_window_in_force_and_none() -> None:
    data = (CAPTURES / "logs" / "start_dflash_window2048.log").read_bytes()
    report, lines = inspect.log(data, "x")
    assert report["evidence"]["draft_window"] == 2048 and report["ready"]
    assert "draft window: 2048, in force (compact cache)" in lines
    _, lines = inspect.log((CAPTURES / "logs" / "start_dflash_nowindow.log").read_bytes(), "x")
    assert "draft window: none in force (no compact cache)" in lines


def test_a_drafter() -> None:
    path = CAPTURES / "models" / "drafter" / "config.json"
    report, lines = inspect.drafter(path.read_bytes(), str(path))
    json.dumps(report)
    assert report["file"] == str(path) and report["sliding_layers"] == 5 and report["window"] == 2048
    assert any("5 sliding, 1 full" in line for line in lines)
    report, lines = inspect.drafter(b"{", "/x")
    assert report["problems"] == lines and lines[0].startswith("/x is not valid JSON")


@pytest.mark.parametrize("name", ["idle_server_info", "loaded_server_info", "win_server_info"])
def test_a_saved_answer_of_server_info_with_its_http_head_or_without(name: str) -> None:
    raw = (CAPTURES / "http" / f"{name}.raw").read_bytes()
    report, lines = inspect.server_info(raw, "x")
    json.dumps(report)
    assert report["version"] == "0.5.11" and not report["problems"]
    again, _ = inspect.server_info(raw.partition(b"\r\n\r\n")[2], "x")
    assert again == report
    assert any(line.startswith("speculative_algorithm") and line.endswith("DFLASH") for line in lines)


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"{}", pytest.param(b"[" * 100_000, id="deep")])
def test_no_answer_at_all_is_a_problem_in_a_sentence(data: bytes) -> None:
    report, lines = inspect.server_info(data, "/tmp/x.json")
    assert report["problems"] == lines and lines[0].startswith("/tmp/x.json is not an answer of /server_info")


FILES = {
    "model info": CAPTURES / "http" / "idle_get_model_info.raw",
    "server info": CAPTURES / "http" / "idle_server_info.raw",
    "config": CAPTURES / "models" / "drafter" / "config.json",
    "log": CAPTURES / "logs" / "start_dflash_nowindow.log",
}


@pytest.mark.parametrize(
    ("inspector", "data", "said"),
    [
        (
            inspect.server_info,
            FILES["model info"].read_bytes(),
            "it is an answer of /model_info. Save one with",
        ),
        (inspect.server_info, FILES["config"].read_bytes(), "it is a model's config.json."),
        (inspect.server_info, FILES["log"].read_bytes(), "it is a server's log."),
        (inspect.server_info, b"<html>502</html>", "it is another text."),
        (
            inspect.log,
            FILES["config"].read_bytes(),
            "no line that SGLang writes: it is a model's config.json.",
        ),
        (inspect.log, FILES["server info"].read_bytes(), "it is an answer of /server_info."),
        (inspect.log, b"# A readme\n\nWarning: none\n", "it is another text. Give the server's log"),
        (inspect.log, b" \n", "is empty: save the log with `journalctl"),
        (inspect.log, b"\x7fELF\0\0", "it is a binary file."),
        (
            inspect.drafter,
            FILES["model info"].read_bytes().partition(b"\r\n\r\n")[2],
            "no drafter's config.json but an answer of /model_info.",
        ),
        (inspect.drafter, FILES["server info"].read_bytes(), "but an answer of /server_info."),
        (inspect.drafter, FILES["log"].read_bytes(), "but a server's log."),
        (
            inspect.drafter,
            FILES["server info"].read_bytes().partition(b"\r\n\r\n")[2],
            "no drafter's config.json but an answer of /server_info.",
        ),
        (inspect.drafter, b'{"version": "1.0", "added_tokens": []}', "but a tokenizer's file."),
        (inspect.drafter, b'{"eos_token_id": 2}', "but a JSON object with eos_token_id."),
        (inspect.drafter, b"{}", "but an empty JSON object."),
    ],
)
def test_another_kind_of_file_is_told_by_what_it_is(inspector: Any, data: bytes, said: str) -> None:
    report, lines = inspector(data, "/tmp/x")
    assert report["problems"] == lines and len(lines) == 1
    assert lines[0].startswith("/tmp/x ") and said in lines[0]
