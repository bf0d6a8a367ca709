"""Which programs the demo host has, and running one as a shell does."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from ddtui.demo.commands import change, look, system
from ddtui.demo.commands.bus import busctl, systemd_analyze
from ddtui.demo.commands.gpu import nvidia_smi
from ddtui.demo.commands.journalctl import journalctl
from ddtui.demo.commands.program import Call, Program, Usage
from ddtui.demo.commands.python import python
from ddtui.demo.commands.sudo import sudo
from ddtui.demo.commands.systemctl import systemctl

if TYPE_CHECKING:
    from ddtui.demo.machine import Machine

PROGRAMS: dict[str, Program] = {
    "[": look.test,
    "base64": look.base64,
    "busctl": busctl,
    "cat": look.cat,
    "chgrp": change.chown,
    "chmod": change.chmod,
    "chown": change.chown,
    "cp": change.cp,
    "date": system.date,
    "df": look.df,
    "echo": system.echo,
    "env": system.env,
    "false": system.false,
    "getconf": system.getconf,
    "getent": system.getent,
    "groups": system.groups,
    "head": look.head,
    "hostname": system.hostname,
    "id": system.id,
    "journalctl": journalctl,
    "kill": system.kill,
    "ln": change.ln,
    "ls": look.ls,
    "mkdir": change.mkdir,
    "mv": change.mv,
    "nproc": system.nproc,
    "nvidia-smi": nvidia_smi,
    "printenv": system.printenv,
    "printf": system.printf,
    "ps": system.ps,
    "pwd": system.pwd,
    "python3": python,
    "readlink": look.readlink,
    "realpath": look.realpath,
    "rm": change.rm,
    "rmdir": change.rmdir,
    "sha256sum": look.sha256sum,
    "sleep": system.sleep,
    "ss": system.ss,
    "stat": look.stat,
    "sudo": sudo,
    "sync": change.sync,
    "systemctl": systemctl,
    "systemd-analyze": systemd_analyze,
    "tail": look.tail,
    "tee": change.tee,
    "test": look.test,
    "touch": change.touch,
    "true": system.true,
    "uname": system.uname,
    "uptime": system.uptime,
    "which": system.which,
    "who": system.who,
    "whoami": system.whoami,
}
SIMPLE = {program for program in PROGRAMS.values() if program.__module__ in (look.__name__, change.__name__)}
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def find(machine: Machine, name: str) -> str | None:
    """The path of a program, by the shell's search; None if there is none."""
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in FOLDERS]
    for place in places:
        try:
            node = machine.files.lookup(place)
        except OSError:
            continue
        if node.is_file and node.mode & 0o111:
            return place
    return None


async def run(call: Call) -> int:
    """Run a program to its end, in the words of dash if there is none."""
    name = call.argv[0]
    path = find(call.machine, name)
    if path is None:
        if "/" in name:
            try:
                node = call.machine.files.lookup(name, user=call.user)
            except OSError as error:
                missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
                call.err(f"ddtui: {call.place}: {name}: {'not found' if missing else error.strerror}")
                return 127 if missing else 126
            del node
            call.err(f"ddtui: {call.place}: {name}: Permission denied")
            return 126
        call.err(f"ddtui: {call.place}: {name}: not found")
        return 127
    canonical = call.machine.files.resolve(path)
    program = PROGRAMS.get(canonical.rpartition("/")[2]) or PROGRAMS.get(name.rpartition("/")[2])
    if canonical.rpartition("/")[2].startswith("python3"):
        program = python
    if program is None:
        call.err(f"ddtui: {call.place}: {name}: Exec format error")
        return 126
    try:
        if call.argv[1:] == ("--version",) and program in SIMPLE:
            call.out(f"{call.name} (GNU coreutils) 9.1\n")
            return 0
        return await program(call)
    except Usage as usage:
        call.streams.err(str(usage).encode("utf-8", "surrogateescape") + b"\n")
        return usage.code
