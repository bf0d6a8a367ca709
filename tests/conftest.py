"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from testhost_fixture import TestHost, boot

# what is not to be skipped quietly: a word of the reason, and the title over the reasons at the end
LOUD = {"REAL TEST HOST": "THE REAL TEST HOST DID NOT RUN", "NO BROWSER": "THE BROWSER DID NOT RUN"}
SKIPS: list[tuple[str, str, str]] = []

HANGS = 300  # s that no test takes, on the slowest machine

# the files that take longest: they go first, so that no worker is left alone with one of them at the end
LONG = (
    "console/test_every_look.py",
    "decide/test_live.py",
    "decide/test_cuts.py",
    "console/test_every_screen.py",
    "tuning/test_random_changes.py",
    "tuning/test_change.py",
    "terminal/test_journey.py",
    "decide/test_two_hosts.py",
    "contract/test_changing.py",
    "decide/test_live_session.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors, for many tests wait: for a server that loads, for a link that is lost."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # xdist's own order: files of many tests first, however quick


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        rank = {Path(__file__).parent / name: number for number, name in enumerate(LONG)}
        items.sort(key=lambda item: (rank.get(item.path, len(LONG)), -tests[item.path]))


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Under CI a test that hangs fails, and does not take the whole run with it."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} hangs: it has run for {HANGS} s")

    if not os.environ.get("CI") or not hasattr(signal, "SIGALRM"):
        return (yield)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
