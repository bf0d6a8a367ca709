"""One story told to a real systemd and to the demo host's: what both say is the same, but for numbers and times.

The story installs a light unit, starts it, breaks it, kills it, hits its start limit and asks about it all the way.
"""

from __future__ import annotations

import json
import re

import asyncssh
import pytest
from demo.virtual_host import run
from testhost_fixture import TestHost

from ddtui.demo.machine import Machine
from ddtui.host import shell

pytestmark = pytest.mark.realhost

NAME = "light.service"
FILE = f"/etc/systemd/system/{NAME}"
DROP_IN = f"/etc/systemd/system/{NAME}.d/50-x.conf"
SHOW = (
    "Type,Restart,RestartUSec,MainPID,Result,NRestarts,ExecMainCode,ExecMainStatus,ExecStart,"
    "ControlGroup,Environment,KillMode,KillSignal,User,Id,Names,Description,LoadState,ActiveState,SubState,"
    "FragmentPath,SourcePath,DropInPaths,UnitFileState,NeedDaemonReload,LoadError,StartLimitBurst,InvocationID,"
    "ActiveEnterTimestamp,StateChangeTimestamp,ExecMainStartTimestamp,ExecMainExitTimestamp,WorkingDirectory"
)
UNIT = """\
[Unit]
Description=a light service
StartLimitIntervalSec=300
StartLimitBurst=4

[Service]
Environment=A=1 "B=two words"
ExecStart=/usr/bin/python3 -c "import time; time.sleep(1000)" "two words" $A
Restart=no
TimeoutStopSec=10
"""
FAILS = '[Service]\nExecStart=\nExecStart=/usr/bin/python3 -c "import sys; sys.exit(2)"\n'
SUDO = ("sudo", "-n", "--")
STORY: tuple[tuple[tuple[str, ...], bytes], ...] = (
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    (("systemctl", "cat", NAME), b""),
    (("systemctl", "is-active", NAME), b""),
    (("systemctl", "is-enabled", NAME), b""),
    ((*SUDO, "systemctl", "start", NAME), b""),
    ((*SUDO, "systemctl", "kill", NAME), b""),
    ((*SUDO, "systemctl", "reset-failed", NAME), b""),
    ((*SUDO, "tee", "--", FILE), UNIT.encode()),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    (("systemctl", "cat", NAME), b""),
    (("systemctl", "is-active", NAME), b""),
    (("systemctl", "is-enabled", NAME), b""),
    (("systemctl", "start", NAME), b""),
    (("systemctl", "daemon-reload"), b""),
    (("systemctl", "kill", NAME), b""),
    (("systemctl", "reset-failed", NAME), b""),
    ((*SUDO, "systemctl", "start", NAME), b""),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    (("systemctl", "show", NAME, "--value", "-p", "Id,ActiveState"), b""),
    (("systemctl", "is-active", NAME), b""),
    (("systemctl", "list-units", NAME, "--output=json"), b""),
    (("systemctl", "list-units", NAME, "--no-legend", "--plain"), b""),
    (("systemctl", "list-unit-files", NAME, "--no-pager"), b""),
    (
        ("busctl", "--json=short", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
         "org.freedesktop.systemd1.Manager", "GetUnit", "s", NAME),
        b"",
    ),
    (
        ("busctl", "--json=short", "get-property", "org.freedesktop.systemd1",
         "/org/freedesktop/systemd1/unit/light_2eservice", "org.freedesktop.systemd1.Service", "ExecStart", "MainPID",
         "Environment", "NRestarts"),
        b"",
    ),
    ((*SUDO, "mkdir", "-p", "--", DROP_IN.rpartition("/")[0]), b""),
    ((*SUDO, "tee", "--", DROP_IN), FAILS.encode()),
    (("systemd-analyze", "verify", NAME), b""),
    (("systemctl", "show", NAME, "-p", "NeedDaemonReload"), b""),
    ((*SUDO, "systemctl", "daemon-reload"), b""),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    ((*SUDO, "systemctl", "restart", NAME), b""),
    ((*SUDO, "sleep-a-little",), b""),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    (("systemctl", "is-failed", NAME), b""),
    ((*SUDO, "tee", "--", DROP_IN), b"[Service]\nExecStart=/bin/true\nNoSuchKey=1\nRestartSec=x\n"),
    (("systemctl", "cat", NAME), b""),
    (("systemd-analyze", "verify", NAME), b""),
    ((*SUDO, "systemctl", "daemon-reload"), b""),
    ((*SUDO, "systemctl", "restart", NAME), b""),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    ((*SUDO, "rm", "-f", "--", DROP_IN), b""),
    ((*SUDO, "systemctl", "daemon-reload"), b""),
    ((*SUDO, "systemctl", "reset-failed", NAME), b""),
    *(((*SUDO, "systemctl", "restart", NAME), b"") for _ in range(5)),
    (("systemctl", "show", NAME, "-p", SHOW, "--no-pager"), b""),
    ((*SUDO, "systemctl", "reset-failed", NAME), b""),
    (("systemctl", "is-active", NAME), b""),
    (("journalctl", "-u", NAME, "-o", "cat", "--no-pager", "_PID=1"), b""),
    (("journalctl", "-u", NAME, "-o", "json", "-n", "1", "--output-fields=MESSAGE,PRIORITY"), b""),
    (("journalctl", "-u", NAME, "--since=+1h"), b""),
    (("journalctl", "--after-cursor=x", "-u", NAME), b""),
    (("journalctl", "-u", NAME, "NOFIELD"), b""),
    (("journalctl", "-u", NAME, "-o", "nope"), b""),
    (("sudo", "-n", "-l", "--", "systemctl", "restart", NAME), b""),
    (("id", "-un"), b""),
    (("printenv", "HOME"), b""),
    (("getconf", "CLK_TCK"), b""),
)  # fmt: skip


def timeless(text: str) -> str:
    """Without what differs from one machine and run to the next."""
    text = re.sub(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    text = re.sub(r'"__CURSOR":"[^"]*"', '"__CURSOR":"C"', text)
    text = re.sub(r"\b\d{9,}\b", "0", text)
    text = re.sub(r"(MainPID=|pid=|\"data\":)[1-9]\d*", r"\g<1>0", text)
    text = re.sub(r"(0,0,0,0,)[1-9]\d*", r"\g<1>0", text)
    return "\n".join(in_order(line) for line in text.split("\n"))


def in_order(line: str) -> str:
    """A JSON object with its keys sorted; anything else as it is."""
    try:
        return json.dumps(json.loads(line), sort_keys=True) if line.startswith("{") else line
    except ValueError:
        return line


async def test_both_say_the_same_all_through_the_story(machine: Machine, testhost: TestHost) -> None:
    info = testhost.info
    differences = []
    async with asyncssh.connect(
        info["host"],
        info["port"],
        username="tuner",
        client_keys=[info["key"]],
        known_hosts=info["known_hosts"],
        config=None,
        agent_path=None,
    ) as real:
        for argv, stdin in STORY:
            if argv[-1] == "sleep-a-little":
                argv = ("sleep", "0.7")
            script = shell.Script(shell.new_marker(), (argv,), single=True)
            done = await real.run(shell.encode(script), input=stdin, encoding=None)
            assert isinstance(done.stdout, bytes) and isinstance(done.stderr, bytes)
            out, err = (shell.after_marker(script.marker, data) for data in (done.stdout, done.stderr))
            assert out is not None and err is not None
            theirs = (done.exit_status, timeless(out.decode()), timeless(err.decode()))
            mine = await run(machine, *argv, stdin=stdin)
            ours = (mine.code, timeless(mine.out), timeless(mine.err))
            if ours != theirs:
                differences.append(f"$ {' '.join(argv)}\n   real {theirs}\n   demo {ours}")
    assert not differences, "\n".join(differences)
