"""One sweep shared between two real hosts of one kind: end to end, by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from testhost_fixture import TestHost
from tuning.conftest import UNIT, quick

from ddtui import profile
from ddtui.store import runs, sweeps
from ddtui.store.history import History
from ddtui.tuning.ledger import Ledger

pytestmark = pytest.mark.realhost
GRID = ("--grid", "budget=4,8", "--grid", "topk=2,4")
LOAD = ("--concurrency", "4", "--context", "512", "--output", "4", "--requests", "16", "--max-seconds", "20")


def profile_file(folder: Path, name: str, host: TestHost) -> Path:
    """The demo's profile, led to that host under a name of its own in an ssh_config."""
    info = host.info
    config = folder / f"{name}.ssh_config"
    config.write_text(f"Host {name}\n  HostName {info['host']}\n  Port {info['port']}\n  User tuner\n")
    data = yaml.safe_load(profile.find("demo").read_text())
    data |= {
        "name": name,
        "connection": {
            "host": name,
            "config": str(config),
            "identity_file": info["key"],
            "known_hosts": info["known_hosts"],
            "keepalive": 1.0,
        },
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def sweep(one: Path, other: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, what it wrote as JSON lines, and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "ddtui", "sweep", str(one), "--also", str(other), "--json", "--yes", *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def argv(host: TestHost) -> list[str]:
    """What runs there."""
    script = f"tr '\\0' '\\n' < /proc/$(systemctl show -P MainPID {UNIT})/cmdline"
    text: str = host.exec("sh", "-c", script).stdout.decode()
    return text.splitlines()


def value(words: list[str], flag: str) -> str:
    return words[words.index(flag) + 1]


def test_two_hosts_share_a_sweep(testhost: TestHost, second_testhost: TestHost, tmp_path: Path) -> None:
    hosts = {"gpu-a": testhost, "gpu-b": second_testhost}
    for host in hosts.values():
        quick(host)
    one, other = (profile_file(tmp_path, name, host) for name, host in hosts.items())
    code, told, said = sweep(one, other, *GRID, *LOAD, "--no-check")
    assert code == 0, said
    end = told[-1]
    assert end["schema"] == "ddtui/sweep/1" and end["state"] == "done"

    # shared: each took some; together all, each once
    trials = end["trials"]
    assert {trial["host"] for trial in trials} == {"gpu-a", "gpu-b"}
    settings = Counter((trial["setting"]["budget"], trial["setting"]["topk"]) for trial in trials)
    assert settings == {(budget, topk): 1 for budget in ("4", "8") for topk in ("2", "4")}
    assert all(trial["state"] == "measured" for trial in trials), trials

    # nothing measured twice, and each under the host that it was measured on
    history = History.open()
    (kept,) = sweeps.sweeps(history)
    book = Ledger.find(history, kept.host, kept.unit, kept.id)
    for trial in book.trials:
        found = [history.burst(id) for id in trial.bursts]
        assert {burst.host for burst in found if burst} == {trial.host}
        clean = [run for run in runs.of_bursts(history, trial.bursts) if not run.point["marks"]]
        assert len(clean) <= 1 and len(trial.runs) == 1
    history.close()

    # both are left on the best, as asked
    best = end["left"]
    for name, host in hosts.items():
        running = argv(host)
        assert value(running, "--speculative-ddtree-budget") == best["budget"], name
        assert value(running, "--speculative-ddtree-topk-cap") == best["topk"], name
    assert "gpu-a: " in end["left_text"] and "gpu-b: " in end["left_text"]


def test_one_host_under_two_profiles_is_refused(testhost: TestHost, tmp_path: Path) -> None:
    one = profile_file(tmp_path, "gpu-a", testhost)
    code, _, said = sweep(one, one, *GRID, *LOAD)
    assert code == 2 and "both lead to gpu-a" in said
