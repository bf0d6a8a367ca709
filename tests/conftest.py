"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from testhost_fixture import TestHost, boot

REALHOST_SKIPS: list[str] = []


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has XDG folders and a HOME of its own: nothing of the developer's is read or written."""
    home = tmp_path_factory.mktemp("home")
    for name, folder in (
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
    ):
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


@pytest.fixture(scope="module")
def testhost(request: pytest.FixtureRequest) -> Iterator[TestHost]:
    """A freshly booted real host, one for each test module."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    module = request.module.__name__.rpartition(".")[2]
    yield from boot(f"{worker}-{module}"[:40])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple) and "REAL TEST HOST" in report.longrepr[2]:
        REALHOST_SKIPS.append(report.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last thing `make test` says: whether the real host ran."""
    if REALHOST_SKIPS:
        skipped = terminalreporter.stats.get("skipped", [])
        reasons = {
            r.longrepr[2]
            for r in skipped
            if isinstance(r.longrepr, tuple) and "REAL TEST HOST" in r.longrepr[2]
        }
        terminalreporter.section("THE REAL TEST HOST DID NOT RUN", sep="!", red=True, bold=True)
        terminalreporter.write_line(f"{len(REALHOST_SKIPS)} tests that need it were skipped, because:")
        for reason in sorted(reasons):
            terminalreporter.write_line(f"  {reason.removeprefix('Skipped: ')}")
