"""A sweep on the real host that is cut at random points: the console, its ssh, the host itself, each by kill -9 or a
power cut. After `--resume` the result is that of an undisturbed sweep in which cells were measured, and no cell was
measured twice. The number of cuts of each kind is DDTUI_CUTS (2), the seed DDTUI_SEED (1):

    DDTUI_CUTS=20 .venv/bin/pytest tests/decide/test_cuts.py -s
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from testhost_fixture import TestHost
from tuning.conftest import quick

from ddtui import locations, profile
from ddtui.store import runs, sweeps
from ddtui.store.history import History
from ddtui.tuning.ledger import Ledger

pytestmark = pytest.mark.realhost
CUTS = int(os.environ.get("DDTUI_CUTS", "2"))
SEED = int(os.environ.get("DDTUI_SEED", "1"))
GRID = {"budget": "4,8", **({"topk": "2,4"} if CUTS > 4 else {})}
CELLS = (1, 2) if CUTS > 4 else (4,)
SWEEP = (
    *(word for knob, values in GRID.items() for word in ("--grid", f"{knob}={values}")),
    "--concurrency", ",".join(map(str, CELLS)), "--context", "512", "--output", "4", "--requests", "32", "--max-seconds", "20",
    "--finish", "first", "--yes",
)  # fmt: skip
LONGEST = 600.0  # s, of everything


@pytest.fixture
def profile_file(testhost: TestHost, tmp_path: Path) -> Path:
    """The demo's profile, led to the real host."""
    data = yaml.safe_load(profile.find("demo").read_text())
    data["name"] = "real"
    data["connection"] = {
        "host": testhost.info["host"],
        "port": testhost.info["port"],
        "user": "tuner",
        "identity_file": testhost.info["key"],
        "known_hosts": testhost.info["known_hosts"],
        "config": "/dev/null",
        "keepalive": 1.0,
    }
    path = tmp_path / "real.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def console(file: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ddtui", "sweep", str(file), "--no-check", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("kind", ["console", "ssh", "host"])
def test_a_sweep_survives_cuts(kind: str, testhost: TestHost, profile_file: Path) -> None:
    testhost.wait_ssh()
    testhost.exec("sh", "-c", "rm -rf /etc/systemd/system/*.service.d/zzz-ddtui.conf /var/lib/ddtui")
    quick(testhost)
    # quick's drop-in is in /run: keep it over a power cut
    testhost.exec("sh", "-c", "cp -r /run/systemd/system/*.service.d /etc/systemd/system/")
    rng = random.Random(f"{SEED} {kind}")
    running = console(profile_file, *SWEEP)
    cuts, until, said = 0, time.monotonic() + LONGEST, ""
    while True:
        assert time.monotonic() < until, f"not done after {cuts} cuts: {said}"
        try:
            said, _ = running.communicate(timeout=rng.uniform(1.0, 8.0) if cuts < CUTS else LONGEST)
        except subprocess.TimeoutExpired:
            cuts += 1
            if kind == "console":
                running.kill()
                running.communicate()
            elif kind == "ssh":
                testhost.exec("pkill", "-KILL", "-f", "sshd.*: tuner", check=False)
                continue
            else:
                boots = testhost.info.get("boots", 0)
                testhost.ctl("crash")
                testhost.wait_ssh(boots + 1 if boots else 0)
                continue
        else:
            if running.returncode == 0:
                break
        begun = bool(swept())
        running = console(profile_file, *(("--resume",) if begun else SWEEP))
    print(f"{kind}: {cuts} cuts\n{said}")
    ended()


def swept() -> list[sweeps.StoredSweep]:
    if not (locations.data_dir() / "history.sqlite").exists():
        return []
    history = History.open()
    try:
        return sweeps.sweeps(history)
    finally:
        history.close()


def ended() -> None:
    """Every setting by every cell, all measured, each once."""
    history = History.open()
    try:
        (one,) = sweeps.sweeps(history)
        book = Ledger.find(history, one.host, one.unit, one.id)
        assert book.state == "done"
        table = {trial.setting: {cell.concurrency for cell in trial.runs} for trial in book.trials}
        assert len(book.trials) == len(table) == 2 ** len(GRID)
        assert all(trial.measured for trial in book.trials), [
            (trial.state, trial.text) for trial in book.trials
        ]
        assert all(cells == set(CELLS) for cells in table.values()), json.dumps(str(table))
        for trial in book.trials:
            clean = [run for run in runs.of_bursts(history, trial.bursts) if not run.point["marks"]]
            cells = [run.point["cell"]["concurrency"] for run in clean]
            assert len(cells) == len(set(cells)), (trial.setting, cells)
    finally:
        history.close()
