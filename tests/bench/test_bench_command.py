"""`ddtui bench` as it is run: JSON lines, a table on a terminal, exit codes, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from bench.little_server import LittleServer, Reply, serving
from pty_terminal import Terminal

from ddtui import cli, locations, profile
from ddtui.commands import bench as bench_command
from ddtui.host.base import NotPermitted
from ddtui.store.history import History

WORDS = ["--concurrency", "2", "--context", "128", "--output", "17", "--requests", "8"]


async def bench(*words: str, interrupt: LittleServer | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. `interrupt`: Ctrl-C once that server answers two requests."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ddtui",
        "bench",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if interrupt is not None:
        await asyncio.wait_for(interrupt.until_running(2), 30)
        process.send_signal(signal.SIGINT)
    out, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), errors.decode()


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


async def test_json_lines_a_point_each_and_the_whole_at_the_end() -> None:
    async with serving(LittleServer(step=0.01)) as server:
        url = f"http://127.0.0.1:{server.port}"
        code, out, errors = await bench("--url", url, *WORDS, "--context", "64,128", "--json", "--note", "hi")
    told = lines(out)
    assert [one["schema"] for one in told] == ["ddtui/bench-point/1", "ddtui/bench-point/1", "ddtui/bench/1"]
    assert [one["point"]["cell"]["context"] for one in told[:2]] == [64, 128]
    assert told[2]["state"] == "done" and len(told[2]["points"]) == 2
    assert code == (1 if any(point["marks"] for point in told[2]["points"]) else 0)
    assert "C=2 ctx=64" in errors
    history = History.open()
    (kept,) = history.bursts()
    history.close()
    assert (kept.host, kept.step, kept.note) == (f"127.0.0.1:{server.port}", None, "hi")
    assert Path(kept.raw).parent == locations.data_dir() / "bursts"


async def test_ctrl_c_keeps_what_was_measured() -> None:
    async with serving(LittleServer(step=0.02, tokens=1)) as server:
        url = f"127.0.0.1:{server.port}"
        code, out, errors = await bench("--url", url, *WORDS, interrupt=server)
        assert server.running == 0
    assert code == 130 and "what was measured is kept" in errors
    whole = lines(out)[-1]
    assert whole["schema"] == "ddtui/bench/1" and whole["state"] == "cancelled"
    history = History.open()
    assert [kept.state for kept in history.bursts()] == ["cancelled"]
    history.close()


async def test_a_kill_loses_nothing_that_had_ended(tmp_path: Path) -> None:
    """SIGKILL in the second cell: the first is in the history, every answer of the second is on disk, and no
    process goes on asking the server.
    """
    async with serving(LittleServer(step=0.01, tokens=1)) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ddtui", "bench", "--url", f"127.0.0.1:{server.port}", *WORDS),
            *("--context", "64,128"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert json.loads(await process.stdout.readline())["schema"] == "ddtui/bench-point/1"
            first = len(server.requests)
            while len(server.requests) < first + 6 or server.running < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            process.kill()
            await process.wait()
            answered = len(server.requests) - first - server.running
            while server.running or not server.aborted:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    history = History.open()
    (kept,) = history.bursts()
    history.close()
    assert (kept.state, kept.burst["text"]) == ("cancelled", "ddtui ended before it was done")
    assert [point["cell"]["context"] for point in kept.burst["points"]] == [64]
    told = [json.loads(line) for line in Path(kept.raw).read_text().splitlines()]  # noqa: ASYNC240
    second = [one for one in told if one["kind"] == "record" and one["cell"][1] == 128]
    assert answered - 2 <= len(second) and all(one["outcome"] == "ok" for one in second)


async def test_a_server_that_is_not_there_is_exit_code_3(unused_tcp_port: int) -> None:
    code, out, errors = await bench("--url", f"127.0.0.1:{unused_tcp_port}", *WORDS)
    assert code == 3 and "nothing listens there" in errors and "Traceback" not in errors
    assert lines(out)[-1]["state"] == "failed"


async def test_failures_are_exit_code_1() -> None:
    async def script(reply: Reply) -> None:
        reply.close()

    async with serving(LittleServer(script=script)) as server:
        code, out, _ = await bench("--url", f"127.0.0.1:{server.port}", *WORDS)
    assert code == 1 and lines(out)[0]["point"]["ok"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give a profile or --url"),
        (["demo", "--url", "127.0.0.1:1"], "give a profile or --url"),
        (["--url", "https://example.org"], "http://HOST:PORT"),
        (["--url", "127.0.0.1"], "http://HOST:PORT"),
        (["--url", "127.0.0.1:1", "--context", "8q"], "'8q' is no count"),
        (["--url", "127.0.0.1:1", "--concurrency", "0"], "is no count"),
        (["--url", "127.0.0.1:1", "--output", "1"], "2 output tokens"),
        (["--url", "127.0.0.1:1", "--max-seconds", "-1"], "above 0"),
        (["--url", "127.0.0.1:1", "--context", "8"], "at least 16"),
    ],
)
def test_wrong_words_are_exit_code_2_in_a_sentence(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["bench", *words]) == 2
    assert says in capsys.readouterr().err


async def test_production_is_asked_for_and_refused_where_nobody_can_say_yes() -> None:
    production = profile.load("demo").model_copy(update={"production": True})
    with pytest.raises(NotPermitted, match="is in production: nothing was sent"):
        await bench_command._allowed(production, Namespace(yes=False))
    await bench_command._allowed(production, Namespace(yes=True))
    await bench_command._allowed(profile.load("demo"), Namespace(yes=False))


async def test_on_a_terminal_a_bar_while_it_runs_and_a_table() -> None:
    def watch(port: int) -> list[str]:
        words = [sys.executable, "-m", "ddtui", "bench", "--url", f"127.0.0.1:{port}", *WORDS]
        with Terminal(words, 120, 30) as terminal:
            terminal.wait_for("eta")
            terminal.wait_for("raw records")
            return list(terminal.screen.display)

    async with serving(LittleServer(step=0.05, tokens=1)) as server:
        shown = await asyncio.to_thread(watch, server.port)
    head, row = (line.split() for line in shown[:2])
    assert head[:4] == ["C", "context", "workload", "tok/s"] and row[:3] == ["2", "128", "code"]
    assert not any("▓" in line for line in shown), "the bar is gone"
