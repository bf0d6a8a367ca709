"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from testhost_fixture import TestHost, boot

# what is not to be skipped quietly: a word of the reason, and the title over the reasons at the end
LOUD = {"REAL TEST HOST": "THE REAL TEST HOST DID NOT RUN", "NO BROWSER": "THE BROWSER DID NOT RUN"}
SKIPS: list[tuple[str, str, str]] = []


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


def _host_name(request: pytest.FixtureRequest) -> str:
    module = request.module.__name__.rpartition(".")[2]
    return f"{os.getpid()}-{module}"[:38]


@pytest.fixture(scope="module")
def testhost(request: pytest.FixtureRequest) -> Iterator[TestHost]:
    """A freshly booted real host, one for each test module."""
    yield from boot(_host_name(request))


@pytest.fixture(scope="module")
def second_testhost(request: pytest.FixtureRequest) -> Iterator[TestHost]:
    """Another one beside it, of the same kind."""
    yield from boot(_host_name(request) + "-2")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        for word in LOUD:
            if word in report.longrepr[2]:
                SKIPS.append((word, report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last thing `make test` says: whether the real host and the browser ran."""
    for word, title in LOUD.items():
        skipped = [(test, reason) for kind, test, reason in SKIPS if kind == word]
        if skipped:
            terminalreporter.section(title, sep="!", red=True, bold=True)
            terminalreporter.write_line(f"{len(skipped)} tests that need it were skipped, because:")
            for reason in sorted({reason for _, reason in skipped}):
                terminalreporter.write_line(f"  {reason}")
