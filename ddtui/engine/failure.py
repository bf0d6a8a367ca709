"""Why a start failed, or a server died: the cause in a sentence, the lines it rests on, what to try.

SGLang reports one failure many times: each rank's traceback, the launcher's `sigquit`, systemd's exit status.
The cause is the first exception of the right kind, not the last line. `raised` and `ended` know the texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddtui import redact
from ddtui.engine import ended, raised, startup
from ddtui.engine.log import Kind, LogLine, parse_all
from ddtui.engine.scene import Block, Cause, Found, Scene

__all__ = ["Cause", "Failure", "explain"]


_SYSTEMD = re.compile(
    r"[\w@:.\\-]+\.service: |(?:Start|Stopp)(?:ed|ing) |Failed to start |Scheduled restart "
)


@dataclass(frozen=True, slots=True)
class Failure:
    kind: Cause
    cause: str  # one sentence
    evidence: tuple[str, ...]  # log lines it rests on, as written
    advice: str  # what to try
    flag: str | None = None  # the offending argument, where there is one
    value: str | None = None


def explain(
    lines: Sequence[str],
    *,
    result: str | None = None,  # systemd's Result: exit-code, signal, oom-kill, timeout, start-limit-hit, …
    exit_status: int | None = None,  # ExecMainStatus: exit code, or the signal's number when Result is signal
    restarts: int = 0,  # NRestarts
    active_state: str | None = None,
    timed_out: bool = False,  # ddtui's own limit on the start was reached
) -> Failure | None:
    """The cause of a failed start or a crash. None: nothing failed in what is given."""
    scene = _scene(lines)
    found = _find(scene) or ended.by_systemd(scene, result, exit_status)
    if found is None and timed_out:
        found = _too_slow(scene)
    quick = scene.lines_with("start request repeated too quickly")
    limited = result == "start-limit-hit" or (bool(quick) and active_state == "failed")
    if found is None and limited:
        found = Found(
            Cause.START_LIMIT,
            "systemd refuses to start the service: it was started too often in a short time.",
            quick,
            "Reset the counter (systemctl reset-failed) and start once; ddtui does that before every start.",
        )
    failed = result not in (None, "", "success") or active_state == "failed"
    if found is None and failed and not scene.stopping:
        found = _unexplained(scene, result, exit_status)
    if found is None and restarts and active_state == "activating" and not scene.ready:
        found = Found(
            Cause.CRASH_LOOP,
            f"The service keeps ending, and systemd restarts it ({restarts} times now); no line says why.",
            scene.last_lines(),
            "Read the journal of the start before this one.",
        )
    looping = restarts if active_state == "activating" else 0
    return _failure(found, limited=limited, looping=looping) if found else None


def _failure(found: Found, *, limited: bool, looping: int) -> Failure:
    advice = found.advice
    if found.kind not in (Cause.START_LIMIT, Cause.CRASH_LOOP):
        if limited:
            advice += (
                " systemd has also given up after too many starts: reset-failed comes before the next one."
            )
        elif looping:
            advice += (
                f" systemd keeps restarting it meanwhile ({looping} times so far): stop the service first."
            )
    evidence = tuple(redact.redact(line.strip("\r\n")) for line in found.evidence)
    return Failure(found.kind, redact.redact(found.cause), evidence, advice, found.flag, found.value)


def _find(scene: Scene) -> Found | None:
    """The first cause in the order of belief; None: nothing fatal stands in the lines."""
    return raised.refused_argument(scene) or raised.exception(scene) or ended.line(scene)


def _scene(lines: Sequence[str]) -> Scene:
    """The lines, their tracebacks and how far the start had come when the first failed."""
    read = list(parse_all(lines))
    scene = Scene(read)
    start = startup.Start()
    index = 0
    in_request = False
    while index < len(read):
        line = read[index]
        start = start.see(line)
        if line.kind is Kind.READY:
            scene.ready = True
        if line.kind is Kind.ARGUMENTS:
            scene.arguments = line
        if line.kind is Kind.DRAINING:
            scene.stopping = True
        if "Exception in ASGI application" in line.text:  # one request's failure, not the server's
            in_request = True
        elif line.time is not None and "hit an exception" not in line.text:
            in_request = False
        if line.kind is Kind.TRACEBACK and "Traceback (most recent call last)" in line.text:
            end = _block_end(read, index)
            if not in_request or line.time is not None:
                block = Block(read[index:end], start.phase, scene.ready)
                if block.error is not None:
                    scene.blocks.append(block)
                in_request = False
            for inner in read[index + 1 : end]:
                start = start.see(inner)
            index = end
            continue
        index += 1
    scene.start = start
    return scene


def _block_end(read: list[LogLine], begin: int) -> int:
    """A traceback goes on until the next line with SGLang's prefix, a progress bar, argparse or systemd."""
    index = begin + 1
    while index < len(read):
        line = read[index]
        if line.time is not None or line.kind in (
            Kind.LOAD_SHARDS,
            Kind.GRAPH_STEP,
            Kind.PROGRESS,
            Kind.USAGE,
            Kind.ARGUMENT_ERROR,
        ):
            break
        if _SYSTEMD.match(line.text):
            break
        index += 1
    return index


def _too_slow(scene: Scene) -> Found:
    start = scene.start
    if start.http_up and not start.ready_line_seen:
        return Found(
            Cause.WARM_UP,
            "HTTP answers, but the server's own warm-up request has not returned: it is up and not ready.",
            scene.last_lines(),
            "Kernels may still be compiling: wait longer, or look at GPU use; else restart it with SIGKILL.",
        )
    return Found(
        Cause.TIMEOUT,
        f"The start did not get ready in the time allowed; it was at: {start.text}.",
        scene.last_lines(),
        "Raise start_timeout in the profile if the model is that large; else look at the last lines.",
    )


def _unexplained(scene: Scene, result: str | None, exit_status: int | None) -> Found | None:
    block = scene.blocks[0] if scene.blocks else None
    if block is not None and block.error is not None:
        return raised.crash(block)
    how = f"exit status {exit_status}" if exit_status is not None else result or "a failure"
    where = "" if scene.ready else f" while {scene.start.text}"
    return Found(
        Cause.UNKNOWN,
        f"The server ended with {how}{where}, and its lines name no cause.",
        scene.last_lines(),
        "Read the whole journal of this start.",
    )


def shortened(failure: Failure, lines: int = 6) -> Failure:
    """With at most so many lines of evidence, the first and the last ones."""
    if len(failure.evidence) <= lines:
        return failure
    head = lines // 2
    return replace(failure, evidence=(*failure.evidence[:head], *failure.evidence[-(lines - head) :]))
