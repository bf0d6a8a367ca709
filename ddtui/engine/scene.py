"""What is known of a start that failed: its lines, its tracebacks, how far it had come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ddtui.engine import startup
from ddtui.engine.evidence import server_arguments
from ddtui.engine.log import Kind, LogLine
from ddtui.engine.startup import Phase


class Cause(StrEnum):
    ARGUMENT = "argument"  # the parser refused
    RULE = "rule"  # parsed, then refused by a rule
    OUT_OF_MEMORY = "out of memory"
    NO_ROOM_FOR_KV = "no room for the KV cache"
    MISSING_MODEL = "missing model"
    BAD_WEIGHTS = "damaged weights"
    BAD_DRAFTER = "bad drafter"
    PORT_IN_USE = "port in use"
    NCCL = "nccl"
    CHILD_KILLED = "child killed"
    WATCHDOG = "watchdog"
    CRASH = "crash"
    NO_GPU = "no gpu"
    GPU_HELD = "gpu memory held"
    WARM_UP = "warm-up failed"
    START_LIMIT = "start limit"
    CRASH_LOOP = "crash loop"
    TIMEOUT = "timeout"
    STOP_TIMEOUT = "stop timeout"
    EXEC = "not started"  # systemd could not run it
    IMPORT = "import"
    DISK_FULL = "disk full"
    PERMISSION = "permission"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Found:
    kind: Cause
    cause: str
    evidence: Sequence[str]
    advice: str
    flag: str | None = None
    value: str | None = None


class Block:
    """One traceback with its exception, and where the start was."""

    def __init__(self, lines: Sequence[LogLine], phase: Phase, ready: bool) -> None:
        self.lines = lines
        self.phase = phase
        self.ready = ready
        self.error = next((line for line in reversed(lines) if line.kind is Kind.EXCEPTION), None)
        at = lines.index(self.error) if self.error else len(lines)
        more = [line.text for line in lines[at + 1 : at + 6] if line.text.strip() and line.time is None]
        self.type = str(self.error.fields["type"]).rsplit(".", 1)[-1] if self.error else ""
        self.message = " ".join([str(self.error.fields["message"]) if self.error else "", *more]).strip()
        self.frames = " ".join(line.text for line in lines if line.text.startswith("  File "))

    @property
    def evidence(self) -> list[str]:
        where = [line.raw for line in self.lines if line.text.startswith("  File ")][-1:]
        return [self.lines[0].raw, *where, *([self.error.raw] if self.error else [])]


@dataclass
class Scene:
    """All that is known of the start."""

    lines: Sequence[LogLine]
    blocks: list[Block] = field(default_factory=list)
    start: startup.Start = field(default_factory=startup.Start)
    arguments: LogLine | None = None
    ready: bool = False
    stopping: bool = False  # it was told to stop

    def lines_with(self, pattern: str, limit: int = 3) -> list[str]:
        found = re.compile(pattern, re.I)
        return [line.raw for line in self.lines if found.search(line.text)][:limit]

    def last_lines(self, count: int = 3) -> list[str]:
        telling = [line.raw for line in self.lines if line.text.strip() and line.kind is not Kind.USAGE]
        return telling[-count:]

    def argument(self, name: str) -> str | None:
        value = server_arguments(self.arguments.text).get(name) if self.arguments else None
        return None if value is None else str(value)

    @property
    def drafter(self) -> str | None:
        return self.argument("speculative_draft_model_path")


def sentence(text: str, limit: int = 400) -> str:
    """A message as one sentence: in one line, not too long, with one full stop."""
    text = re.sub(r"\s+", " ", text).strip()
    return (text if len(text) <= limit else text[: limit - 1] + "…").rstrip(".") + "."
