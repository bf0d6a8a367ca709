"""Runs on the test host: puts units there, starts them, says what systemd made of them. Reads a job on stdin.

{"files": {path: base64 | null for a masking link}, "units": [name], "exec_start": whether to ask D-Bus for it}
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH119, PTH120, PTH207, PTH211
import base64
import glob
import json
import os
import subprocess
import sys

# The program of every unit: keeps its command line and environment under its first argument, or, as `sglang serve
# --model-path NAME …`, under NAME
RECORDER = b"""#!/bin/sh
name=$1
[ "$1" = serve ] && name=$3
n=$(ls /run/recorded | wc -l)
cat /proc/$$/cmdline >"/run/recorded/$name.$n"
env -0 >"/run/recorded/$name.$n.env"
"""
DBUS = "org.freedesktop.systemd1"


def run(*argv):
    return subprocess.run(argv, capture_output=True, check=False)


def label(name):
    return "".join(
        c if c.isalpha() or (c.isdigit() and i) else "".join(f"_{b:02x}" for b in c.encode())
        for i, c in enumerate(name)
    )


def exec_start(unit):
    done = run(
        "busctl",
        "--json=short",
        "get-property",
        DBUS,
        "/org/freedesktop/systemd1/unit/" + label(unit),
        DBUS + ".Service",
        "ExecStart",
    )
    return [one[1] for one in json.loads(done.stdout)["data"]] if done.stdout else None


def show(units):
    """LoadState and the like of every unit, in one call."""
    done = run("systemctl", "show", "-p", "Id,LoadState,Result,DropInPaths,FragmentPath", "--", *units)
    blocks = done.stdout.decode("utf-8", "surrogateescape").split("\n\n")
    found = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in blocks]
    by_name = {one["Id"]: one for one in found if "Id" in one}
    return {unit: by_name.get(unit, {}) for unit in units}


def texts(words):
    return [word.decode("utf-8", "surrogateescape") for word in words]


def main():
    job = json.load(sys.stdin)
    made = []
    os.makedirs("/run/recorded", exist_ok=True)
    os.makedirs("/opt/test", exist_ok=True)
    for old in glob.glob("/run/recorded/*"):
        os.unlink(old)
    for program in ("/opt/test/record", "/opt/test/sglang"):
        with open(program, "wb") as file:
            file.write(RECORDER)
        os.chmod(program, 0o755)
    for path, content in job["files"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content is None:
            os.symlink("/dev/null", path)
        else:
            with open(path, "wb") as file:
                file.write(base64.b64decode(content))
        made.append(path)
    try:
        run("systemctl", "daemon-reload")
        loaded = show(job["units"])
        commands = {unit: exec_start(unit) if job["exec_start"] else None for unit in job["units"]}
        started = run(
            "systemctl", "start", *[u for u in job["units"] if loaded[u].get("LoadState") == "loaded"]
        )
        ran = {}
        recorded = [p for p in glob.glob("/run/recorded/*") if not p.endswith(".env")]
        for path in sorted(recorded, key=lambda p: int(p.rpartition(".")[2])):
            unit = os.path.basename(path).rpartition(".")[0]
            with open(path, "rb") as file:
                argv = file.read()[:-1].split(b"\0")[1:]
            with open(path + ".env", "rb") as file:
                env = file.read()[:-1].split(b"\0")
            ran.setdefault(unit, []).append({"argv": texts(argv), "env": texts(env)})
        answer = {
            unit: {"show": loaded[unit], "exec_start": commands[unit], "ran": ran.get(unit, [])}
            for unit in job["units"]
        }
        json.dump({"units": answer, "stderr": started.stderr.decode("utf-8", "replace")}, sys.stdout)
    finally:
        for path in made:
            os.unlink(path)
        for unit in job["units"]:
            run("systemctl", "reset-failed", unit)
        run("systemctl", "daemon-reload")


main()
