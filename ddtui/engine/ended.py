"""What single lines, the death of a worker, and systemd's own words mean for a start that failed.

Texts from the sources of 0.5.9 to 0.5.23, from systemd, the kernel and shells, and from real failed starts.
"""

from __future__ import annotations

import re

from ddtui.engine.log import Kind, LogLine
from ddtui.engine.scene import Cause, Found, Scene, sentence

_LOWER = "Lower --mem-fraction-static, --cuda-graph-max-bs or --max-running-requests."


def line(scene: Scene) -> Found | None:
    for pattern, kind, cause, advice in _LINES:
        for line in scene.lines:
            match = pattern.search(line.text)
            if match and not _survived(scene, kind, line):
                values = {name: text or "" for name, text in match.groupdict().items()}
                return Found(kind, cause.format(line=sentence(line.text), **values), [line.raw], advice)
    return _killed_child(scene)


def _survived(scene: Scene, kind: Cause, line: LogLine) -> bool:
    """A port that was free in the end, memory that ran out for one request only."""
    if kind is Cause.PORT_IN_USE:
        return scene.ready
    return kind is Cause.EXEC and (scene.ready or scene.arguments is not None)


def _killed_child(scene: Scene) -> Found | None:
    for line in scene.lines:
        died = re.search(
            r"(?P<who>Rank \d+ scheduler|Subprocess \S+).*?(?:exit code:? ?)(?P<code>-?\d+)", line.text
        )
        if not died:
            continue
        code = int(died["code"])
        if scene.stopping or code in (0, -15):
            continue
        return _by_signal(died["who"], code, [line.raw], ready=scene.ready)
    for line in scene.lines:
        if line.kind is Kind.SIGNAL and not scene.stopping:
            return Found(
                Cause.CHILD_KILLED,
                "A worker process of the server died without leaving a word.",
                [line.raw],
                "Look in the kernel's log (journalctl -k) for the OOM killer or an Xid error of the GPU.",
            )
    return None


def _by_signal(who: str, code: int, evidence: list[str], *, ready: bool) -> Found:
    when = "while serving" if ready else "during the start"
    if code == -9:
        return Found(
            Cause.CHILD_KILLED,
            f"{who} was killed with SIGKILL {when}: by the kernel for want of host memory, or by someone.",
            evidence,
            "Look in the kernel's log (journalctl -k) for 'Killed process', and at MemoryMax=.",
        )
    names = {-11: "SIGSEGV", -6: "SIGABRT", -7: "SIGBUS", -4: "SIGILL", -3: "SIGQUIT"}
    how = f"crashed with {names[code]}" if code in names else f"ended with exit code {code}"
    advice = "Look at the lines before it, and in the kernel's log for an Xid error of the GPU."
    if code == -7:
        advice = "SIGBUS: /dev/shm is too small, or a weight file changed while it was mapped."
    return Found(Cause.CHILD_KILLED, f"{who} {how} {when}.", evidence, advice)


_LINES = [
    (re.compile(pattern, re.I), kind, cause, advice)
    for pattern, kind, cause, advice in (
        (
            r"\[Errno 98\] error while attempting to bind on address \('(?P<host>[^']*)', (?P<port>\d+)",
            Cause.PORT_IN_USE,
            "Port {port} on {host} is taken by another process; SGLang found out only after loading all,"
            " and now hangs with the GPU memory held.",
            "End this server with SIGKILL, find who listens on the port (ss -ltnp), then start again.",
        ),
        (
            r"(?:address already in use|is not available in \d+ seconds)",
            Cause.PORT_IN_USE,
            "A port is taken: {line}",
            "Find who listens there (ss -ltnp) and end it.",
        ),
        (
            r"watchdog timeout \(self\.watchdog_timeout=(?P<seconds>[\d.]+)",
            Cause.WATCHDOG,
            "One forward pass hung for more than {seconds} s, and SGLang's watchdog ended the server.",
            "A hung kernel or NCCL call: try without the last change, or --disable-cuda-graph to tell which.",
        ),
        (
            r"Initialization failed\. warmup error",
            Cause.WARM_UP,
            "The model was loaded, and the first request failed: {line}",
            "A kernel that does not fit this GPU is the usual cause: try another attention backend.",
        ),
        (
            r"memory capacity is unbalanced",
            Cause.GPU_HELD,
            "The GPUs have unequal free memory: some are held by other processes.",
            "Look at nvidia-smi, and end what is left over from a dead server.",
        ),
        (
            r"Not enough memory\. Please try to increase --mem-fraction-static",
            Cause.NO_ROOM_FOR_KV,
            "The weights leave no room for the KV cache.",
            "Raise --mem-fraction-static.",
        ),
        (
            r"Capture (?:cuda|CUDA) graph failed",
            Cause.OUT_OF_MEMORY,
            "Capturing CUDA graphs failed, usually for want of memory.",
            _LOWER,
        ),
        (
            r"Health check failed\. Server couldn't get a response from detokenizer",
            Cause.WATCHDOG,
            "The server hangs: its detokenizer does not answer.",
            "Restart it; it may need SIGKILL.",
        ),
        (
            r"memory leak detected",
            Cause.CRASH,
            "SGLang found its KV pool's books wrong: {line}",
            "Restart it.",
        ),
        (
            r"Out of memory: Killed process \d+ \((?P<name>[^)]*)\)|oom-kill|invoked oom-killer",
            Cause.CHILD_KILLED,
            "The kernel killed a process for want of host memory: {line}",
            "Give the service more host memory (MemoryMax=), or load with fewer workers.",
        ),
        (
            r"No module named '?sglang|while finding module specification for 'sglang",
            Cause.IMPORT,
            "The service's interpreter has no sglang: {line}",
            "Correct the interpreter's path in the unit, or install SGLang there.",
        ),
        (
            r"Failed at step (?P<step>\w+) spawning (?P<program>\S+): (?P<why>.+)$",
            Cause.EXEC,
            "systemd could not run {program}: {why} (at step {step}).",
            "Correct the path, user or folder in the unit.",
        ),
        (
            r"Failed to locate executable (?P<program>[^:]+): (?P<why>.+)$",
            Cause.EXEC,
            "systemd found no {program}: {why}.",
            "Correct ExecStart= in the unit.",
        ),
        (
            r"^(?:/\S*)?(?:ba|da|z)?sh: .*?(?:not found|No such file or directory|Permission denied)",
            Cause.EXEC,
            "The unit's shell could not start the server: {line}",
            "Correct the path or the script; systemd's PATH is short.",
        ),
    )
]

_STATUS = {
    200: ("CHDIR", "the working directory"),
    203: ("EXEC", "the program"),
    205: ("LIMITS", "the limits"),
    209: ("STDOUT", "the log file"),
    216: ("GROUP", "the group"),
    217: ("USER", "the user"),
    226: ("NAMESPACE", "the sandbox"),
    228: ("SECCOMP", "the system call filter"),
    233: ("RUNTIME_DIRECTORY", "the runtime directory"),
}


def by_systemd(scene: Scene, result: str | None, status: int | None) -> Found | None:
    """What only systemd knows: its own limits, and how the main process ended."""
    if result == "oom-kill":
        return Found(
            Cause.CHILD_KILLED,
            "The kernel killed a process of the service for want of host memory.",
            scene.last_lines(),
            "Give the service more host memory (MemoryMax=), or load with fewer workers.",
        )
    if result == "timeout":
        if scene.stopping:
            return Found(
                Cause.STOP_TIMEOUT,
                "The server did not stop in time, and systemd killed it; requests that were refused for their"
                " length can keep SGLang waiting for ever.",
                scene.lines_with("gracefully exiting")[-1:],
                "Nothing is wrong with the setting; check that no process of it is left.",
            )
        return Found(
            Cause.TIMEOUT,
            f"systemd ended the start for taking longer than TimeoutStartSec; it was at: {scene.start.text}.",
            scene.lines_with("timed out") or scene.last_lines(),
            "Raise TimeoutStartSec=, or use Type=exec: with it systemd does not wait for readiness.",
        )
    if result == "exit-code" and status in _STATUS:
        name, what = _STATUS[status]
        return Found(
            Cause.EXEC,
            f"systemd could not set up {what} (status {status}/{name}).",
            scene.last_lines(),
            "Correct the unit: its path, user or folder does not exist or may not be used.",
        )
    if result == "exit-code" and status in (126, 127):
        return Found(
            Cause.EXEC,
            f"The unit's command is not {'there' if status == 127 else 'executable'} (exit status {status}).",
            scene.last_lines(),
            "Correct the path in the unit or its script.",
        )
    if result in ("signal", "core-dump") and status in (6, 7, 11, 4) and not scene.stopping:
        return _by_signal("The server", -status, scene.last_lines(), ready=scene.ready)
    return None
