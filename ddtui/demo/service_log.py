"""What PID 1 and the services of the demo host write to the journal, with the fields that systemd 252 has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.demo.journal import Journal
from ddtui.demo.processes import Process
from ddtui.demo.unit import Unit

STARTED = "39f53479d3a045ac8e11786248231fbf"
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
FAILED_TO_START = "be02cf6855d2428ba40df7e9d022f03d"
DEACTIVATED = "7ad2d189f7e94e70a38c781354912448"
EXITED = "98e322203f7a4ed290d09fe03c09fe15"
FAILED = "d9b373ed55a64feb8242e02dbe79a49c"
RESTARTING = "5eb03494b6584870a536b337290809b3"

_PID_1 = {
    "TID": "1",
    "_TRANSPORT": "journal",
    "_PID": "1",
    "_UID": "0",
    "_GID": "0",
    "_COMM": "systemd",
    "_EXE": "/usr/lib/systemd/systemd",
    "_CMDLINE": "/sbin/init",
    "_CAP_EFFECTIVE": "1ffffffffff",
    "_SYSTEMD_CGROUP": "/init.scope",
    "_SYSTEMD_UNIT": "init.scope",
    "_SYSTEMD_SLICE": "-.slice",
}


@dataclass(frozen=True)
class ServiceLog:
    """Writes lines about services, and theirs."""

    journal: Journal

    def manager(self, text: str) -> None:
        """A line of PID 1 about no unit."""
        self._say({}, text, 6, {})

    def unit(self, unit: Unit, text: str, priority: int = 6, fields: Mapping[str, str] | None = None) -> None:
        """A line of PID 1 about a unit."""
        about = {"UNIT": unit.name}
        if unit.invocation:
            about["INVOCATION_ID"] = unit.invocation
        self._say(about, text, priority, fields or {})

    def failed(self, unit: Unit) -> None:
        fields = {"MESSAGE_ID": FAILED, "UNIT_RESULT": unit.result}
        self.unit(unit, f"{unit.name}: Failed with result '{unit.result}'.", 4, fields)

    def deactivated(self, unit: Unit) -> None:
        self.unit(unit, f"{unit.name}: Deactivated successfully.", 6, {"MESSAGE_ID": DEACTIVATED})

    def job(self, unit: Unit, message_id: str, text: str, kind: str, number: int) -> None:
        """A line about a job; which one it is follows from the message."""
        fields = {"MESSAGE_ID": message_id, "JOB_TYPE": kind, "JOB_ID": str(number)}
        failed = message_id == FAILED_TO_START
        if message_id != STOPPING:
            fields["JOB_RESULT"] = "failed" if failed else "done"
        self.unit(unit, text, 3 if failed else 6, fields)

    def _say(self, about: Mapping[str, str], text: str, priority: int, fields: Mapping[str, str]) -> None:
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": str(priority),
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": "systemd",
                **about,
                **fields,
                **_PID_1,
                **self.journal.common(),
            }
        )

    def child(self, unit: Unit, process: Process, text: str) -> None:
        """A line that systemd's child writes before it would have become the service."""
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": "3",
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": "systemd",
                "UNIT": unit.name,
                "INVOCATION_ID": unit.invocation,
                "_TRANSPORT": "journal",
                "_PID": str(process.pid),
                "_UID": "0",
                "_GID": "0",
                "_COMM": f"({process.comm})"[:15],
                **_of_unit(unit),
                **self.journal.common(),
            }
        )

    def line(self, unit: Unit, process: Process, text: str) -> None:
        """A line of the service, as journald takes it from its stdout and stderr: blank ones are dropped."""
        priority = "6"
        if len(text) > 2 and text[0] == "<" and text[2] == ">" and text[1] in "01234567":
            priority, text = text[1], text[3:]
        text = text.rstrip(" \t\r") or text
        if not text:
            return
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": priority,
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": _identifier(unit),
                "_TRANSPORT": "stdout",
                "_STREAM_ID": unit.invocation,
                "_PID": str(process.pid),
                "_UID": str(process.uid),
                "_GID": str(process.gid),
                "_COMM": process.comm,
                "_EXE": process.exe,
                "_CMDLINE": process.command_line,
                "_CAP_EFFECTIVE": "0",
                **_of_unit(unit),
                **self.journal.common(),
            }
        )


def _identifier(unit: Unit) -> str:
    """Of all lines of a service's stdout, whichever of its processes wrote them."""
    command = unit.commands_started[0].path.rpartition("/")[2] if unit.commands_started else "unknown"
    return unit.definition.get("Service.SyslogIdentifier") or command


def _of_unit(unit: Unit) -> dict[str, str]:
    return {
        "_SYSTEMD_CGROUP": unit.cgroup,
        "_SYSTEMD_UNIT": unit.name,
        "_SYSTEMD_SLICE": "system.slice",
        "_SYSTEMD_INVOCATION_ID": unit.invocation,
    }
