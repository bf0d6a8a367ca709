#!/usr/bin/python3
"""Stands in for docker and docker compose where docker cannot run. A "container" is a transient systemd service
on the host's own files: a cgroup of its own, its log with docker's time stamps, thrown away with it."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

STATE = Path("/run/standin-docker")


def stamp() -> str:
    now = time.time_ns()
    whole = datetime.fromtimestamp(now // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{now % 10**9:09d}Z"


def state(folder: Path) -> dict:
    return json.loads((folder / "state").read_text())


def save(folder: Path, **changes: object) -> None:
    path = folder / "new"
    path.write_text(json.dumps({**(state(folder) if (folder / "state").exists() else {}), **changes}))
    path.rename(folder / "state")


def shim(folder: Path, argv: list[str]) -> None:
    """The container's main process, from its start to its end."""
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    save(folder, Status="running", Pid=child.pid, StartedAt=stamp())
    with (folder / "log").open("ab", buffering=0) as log:
        for line in child.stdout:
            log.write(stamp().encode() + b" " + line)
    code = child.wait()
    save(folder, Status="exited", Pid=0, ExitCode=code if code >= 0 else 128 - code, FinishedAt=stamp())


def up(file: str, service: str) -> None:
    text = Path(file).read_text()
    command = re.search(r"^    command: (.*)$", text, re.MULTILINE)[1].split()
    environment = re.findall(r"^      ([A-Z_]+): (.*)$", text, re.MULTILINE)
    folder = STATE / service
    if folder.exists():
        if state(folder)["Status"] == "running" and state(folder)["command"] == command:
            return
        subprocess.run(["systemctl", "stop", f"standin-{service}"], capture_output=True)
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / "log").touch()
    identity = hashlib.sha256(stamp().encode()).hexdigest()
    save(folder, Id=identity, file=file, command=command, Status="created", ExitCode=0, Pid=0)
    variables = [word for name, value in environment for word in ("-E", f"{name}={value}")]
    subprocess.run(
        ["systemd-run", "--quiet", "--collect", "--unit", f"standin-{service}", *variables, __file__, "shim",
         str(folder), *command],
        check=True,
    )  # fmt: skip
    while state(folder)["Status"] == "created":
        time.sleep(0.02)


def logs(service: str, words: list[str]) -> None:
    folder, since = STATE / service, words[words.index("--since") + 1] if "--since" in words else ""
    if since.isdigit():
        since = datetime.fromtimestamp(int(since), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    if not folder.exists():
        return
    with (folder / "log").open("rb") as log:
        while True:
            running = state(folder)["Status"] == "running"
            for line in log:
                if line.decode("latin-1") >= since:
                    sys.stdout.buffer.write(line)
            sys.stdout.flush()
            if "-f" not in words or not running:
                return
            time.sleep(0.05)


def compose(file: str, verb: str, words: list[str]) -> None:
    service = words[-1]
    if verb == "up":
        up(file, service)
    elif verb == "kill":
        pid = state(STATE / service)["Pid"]
        if pid:
            os.kill(pid, getattr(signal, words[1]))
    elif verb == "logs":
        logs(service, words)
    elif verb != "config" or "services:" not in Path(file).read_text():
        sys.exit(f"standin: {verb}?")


def pids(service: str) -> list[str]:
    listed = Path(f"/sys/fs/cgroup/system.slice/standin-{service}.service/cgroup.procs").read_text().split()
    return [pid for pid in listed if b"\0shim\0" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def main(words: list[str]) -> None:
    if words[0] == "shim":
        return shim(Path(words[1]), words[2:])
    if words[:2] == ["compose", "version"] or words[0] == "--version":
        return print("standin")
    if words[0] == "compose" and words[3] == "config":
        return compose(words[2], words[3], words[4:])
    if os.getuid():
        sys.exit("permission denied while trying to connect to the Docker daemon socket")
    if words[0] == "compose":
        return compose(words[2], words[3], words[4:])
    if words[0] == "ps" and "--filter" not in words:
        for folder in STATE.iterdir():
            made, name = state(folder), folder.name
            command = f'standin "{" ".join(made["command"])}"'
            print(made["Id"], f"sglang-{name}-1", made["Status"], made["file"], name, command, sep="\t")
        return None
    if words[0] == "ps":
        service = words[words.index("--filter") + 1].rpartition("=")[2]
        if (STATE / service).exists():
            found = state(STATE / service)
            if found["Status"] == "running" or "-a" in words:
                print(found["Id"] if "{{.ID}}" in words[-1] else service, found["file"], sep="\t")
        return None
    if words[0] == "inspect":
        (found,) = [s for s in map(state, STATE.iterdir()) if s["Id"] == words[-1]]
        return print(found["Id"], 0, json.dumps({**found, "OOMKilled": False}), sep="\t")
    if words[0] == "top":
        return print("PID", *pids(words[1]), sep="\n")
    if words[0] == "exec":
        environ = Path(f"/proc/{state(STATE / words[2])['Pid']}/environ").read_text().split("\0")
        os.execvpe(words[3], words[3:], dict(one.split("=", 1) for one in environ if "=" in one))
    sys.exit(f"standin: {words}?")


main(sys.argv[1:])
