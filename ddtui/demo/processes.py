"""The demo host's process table, and what /proc and the cgroup tree show of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddtui.demo.accounts import group_name, user_name
from ddtui.demo.clock import Clock
from ddtui.demo.filesystem import Node, made_up_dir, made_up_file, made_up_link

TICKS = 100  # getconf CLK_TCK
FIRST_SERVICE_PID = 41210


@dataclass
class Process:
    """One process as the host sees it. Times are unix seconds on the host's clock."""

    pid: int
    ppid: int
    argv: tuple[str, ...]
    comm: str
    uid: int
    gid: int
    started: float
    cgroup: str
    exe: str = ""
    cwd: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    rss: int = 12 << 20  # bytes
    read_bytes: int = 0  # from disk, so far
    padding: int = 0  # NULs behind argv: a process that shortened its title

    @property
    def command_line(self) -> str:
        """As journald quotes it."""
        return " ".join(_quoted(word) for word in self.argv)

    @property
    def cmdline(self) -> bytes:
        return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in self.argv) + bytes(
            self.padding
        )


def _quoted(word: str) -> str:
    """In double quotes where a shell would need them."""
    if word and not re.search(r"[\s\"'\\`$*?\[#~=%;&|<>(){}]", word):
        return word
    return '"' + re.sub(r'(["\\`$])', r"\\\1", word) + '"'


@dataclass
class Processes:
    """All processes, by pid; `listening` is (address, port) → pid."""

    clock: Clock
    boot_id: str
    machine_id: str
    table: dict[int, Process] = field(default_factory=dict)
    listening: dict[tuple[str, int], int] = field(default_factory=dict)
    _next: int = FIRST_SERVICE_PID

    def new_pid(self) -> int:
        pid = self._next
        self._next += 1
        return pid

    def add(self, process: Process) -> Process:
        self.table[process.pid] = process
        return process

    def boot(self) -> None:
        """What runs beside the service."""
        at = self.clock.booted_at
        for pid, ppid, uid, argv, cgroup in (
            (1, 0, 0, "/sbin/init", "/init.scope"),
            (2, 0, 0, "[kthreadd]", "/"),
            (514, 1, 0, "/lib/systemd/systemd-journald", "/system.slice/systemd-journald.service"),
            (701, 1, 100, "/usr/bin/dbus-daemon --system --address=systemd:", "/system.slice/dbus.service"),
            (733, 1, 0, "/lib/systemd/systemd-logind", "/system.slice/systemd-logind.service"),
            (812, 1, 0, "/usr/sbin/sshd -D", "/system.slice/ssh.service"),
            (951, 1, 0, "/usr/bin/nvidia-persistenced --persistence-mode",
             "/system.slice/nvidia-persistenced.service"),
        ):  # fmt: skip
            words = tuple(argv.split())
            comm = "systemd" if pid == 1 else posixpath.basename(words[0]).strip("[]")[:15]
            self.add(
                Process(pid, ppid, words, comm, uid, uid, at + min(pid / 200, 6.0), cgroup, exe=words[0])
            )
        self.listening[("0.0.0.0", 22)] = 812
        self.listening[("[::]", 22)] = 812

    def end(self, pid: int) -> None:
        """The process is gone, and the ports that it listened on."""
        self.table.pop(pid, None)
        for address in [address for address, owner in self.listening.items() if owner == pid]:
            del self.listening[address]

    def in_cgroup(self, cgroup: str) -> list[Process]:
        return [process for _, process in sorted(self.table.items()) if process.cgroup == cgroup]

    def listener(self, host: str, port: int) -> int | None:
        """The pid that a connection to host:port (from the host itself) would reach."""
        names = {"localhost": ("127.0.0.1", "[::1]"), "::1": ("[::1]",)}.get(host, (host,))
        for name in names:
            any_address = "[::]" if ":" in name else "0.0.0.0"
            for address in (name, any_address, "[::]"):
                if (address, port) in self.listening:
                    return self.listening[(address, port)]
        return None

    # -- /proc ----------------------------------------------------------------------------------------------

    def proc(self, path: str) -> Node | None:
        """The node at a path below /proc."""
        parts = [part for part in path.split("/") if part][1:]
        if not parts:
            fixed = (
                "cmdline",
                "cpuinfo",
                "loadavg",
                "meminfo",
                "mounts",
                "self",
                "stat",
                "sys",
                "uptime",
                "version",
            )
            return made_up_dir(path, [*map(str, self.table), *fixed])
        if parts[0].isdigit():
            process = self.table.get(int(parts[0]))
            return self._of_process(path, process, parts[1:]) if process else None
        if parts[0] == "self":
            return made_up_link(path, "1") if len(parts) == 1 else self.proc("/proc/1/" + "/".join(parts[1:]))
        tree: dict[str, bytes | Sequence[str]] = {
            "stat": self._stat(),
            "uptime": f"{self.clock.monotonic():.2f} {self.clock.monotonic() * 190:.2f}\n".encode(),
            "loadavg": f"3.81 3.94 4.02 5/2817 {self._next}\n".encode(),
            "meminfo": b"MemTotal:       2113527120 kB\nMemFree:         371203844 kB\n"
            b"MemAvailable:   1873921004 kB\n",
            "cpuinfo": b"".join(
                f"processor\t: {n}\nmodel name\t: Simulated CPU\n\n".encode() for n in range(192)
            ),
            "version": b"Linux version 6.1.0-demo (simulated)\n",
            "cmdline": b"BOOT_IMAGE=/boot/vmlinuz-6.1.0-demo quiet\n",
            "mounts": b"/dev/nvme0n1p2 / ext4 rw,relatime 0 0\n",
            "sys": ("kernel",),
            "sys/kernel": ("hostname", "osrelease", "pid_max", "random"),
            "sys/kernel/hostname": b"demo\n",
            "sys/kernel/osrelease": b"6.1.0-demo\n",
            "sys/kernel/pid_max": b"4194304\n",
            "sys/kernel/random": ("boot_id", "uuid"),
            "sys/kernel/random/boot_id": (dashed(self.boot_id) + "\n").encode(),
        }
        found = tree.get("/".join(parts))
        if isinstance(found, bytes):
            content = found
            return made_up_file(path, lambda: content)
        return None if found is None else made_up_dir(path, found)

    def _stat(self) -> bytes:
        busy = int(self.clock.monotonic() * TICKS)
        return (
            f"cpu  {busy * 4} 0 {busy} {busy * 180} 0 0 0 0 0 0\nctxt 918273645\n"
            f"btime {int(self.clock.booted_at)}\nprocesses {self._next}\nprocs_running 3\nprocs_blocked 0\n"
        ).encode()

    def _of_process(self, path: str, process: Process, parts: list[str]) -> Node | None:
        uid, gid = process.uid, process.gid
        private = {"environ", "io", "cwd", "exe", "fd", "maps"}
        names = ["cgroup", "cmdline", "comm", "cwd", "environ", "exe", "fd", "io", "stat", "statm", "status"]
        if not parts:
            return made_up_dir(path, names, uid=uid, gid=gid)
        name = parts[0]
        if len(parts) > 1 or name not in names:
            return None
        if name == "cwd":
            return made_up_link(path, process.cwd, uid=uid, gid=gid)
        if name == "exe":
            return made_up_link(path, process.exe, uid=uid, gid=gid)
        if name == "fd":
            return made_up_dir(path, ["0", "1", "2"], uid=uid, gid=gid, mode=0o500)
        return made_up_file(
            path,
            lambda: self._content(process, name),
            uid=uid,
            gid=gid,
            mode=0o400 if name in private else 0o444,
        )

    def _content(self, process: Process, name: str) -> bytes:
        pages = process.rss // 4096
        started = int(max(0.0, process.started - self.clock.booted_at) * TICKS)
        if name == "cmdline":
            return b"" if process.comm == "kthreadd" else process.cmdline
        if name == "comm":
            return process.comm.encode() + b"\n"
        if name == "cgroup":
            return f"0::{process.cgroup}\n".encode()
        if name == "environ":
            return b"".join(
                f"{k}={v}".encode("utf-8", "surrogateescape") + b"\0" for k, v in process.environment.items()
            )
        if name == "io":
            n = process.read_bytes
            return (
                f"rchar: {n + 48_217_344}\nwchar: 1180203\nsyscr: {n // 131072 + 9120}\nsyscw: 4211\n"
                f"read_bytes: {n}\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
            ).encode()
        if name == "stat":
            cpu = int((self.clock.now() - process.started) * TICKS * process.threads / 40)
            ids = f"{process.ppid} {process.pid} {process.pid}"
            before = f"{process.pid} ({process.comm}) S {ids} 0 -1 4194560 2779 0 6"
            counts = f"0 {cpu} {cpu // 9} 0 0 20 0 {process.threads} 0 {started} {process.rss * 4} {pages}"
            after = "18446744073709551615 1 1 0 0 0 0 0 16781312 16386 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
            return f"{before} {counts} {after}\n".encode()
        if name == "statm":
            return f"{pages * 4} {pages} 2048 1 0 {pages} 0\n".encode()
        return (
            f"Name:\t{process.comm}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{process.pid}\nNgid:\t0\n"
            f"Pid:\t{process.pid}\nPPid:\t{process.ppid}\nTracerPid:\t0\n"
            f"Uid:\t{process.uid}\t{process.uid}\t{process.uid}\t{process.uid}\n"
            f"Gid:\t{process.gid}\t{process.gid}\t{process.gid}\t{process.gid}\n"
            f"FDSize:\t64\nGroups:\t{process.gid} \n"
            f"VmRSS:\t{process.rss // 1024} kB\nThreads:\t{process.threads}\n"
        ).encode()

    # -- /sys -----------------------------------------------------------------------------------------------

    def sys(self, path: str) -> Node | None:
        """The node at a path below /sys: the cgroup tree only."""
        below = path.removeprefix("/sys").strip("/")
        if below in ("", "fs"):
            return made_up_dir(path, ["fs"] if not below else ["cgroup"])
        if not (below == "fs/cgroup" or below.startswith("fs/cgroup/")):
            return None
        cgroup = "/" + below.removeprefix("fs/cgroup").strip("/")
        groups = {process.cgroup for process in self.table.values()}
        folder, name = posixpath.split(cgroup)
        files = ("cgroup.events", "cgroup.procs", "memory.current")
        if name in files:
            members = self.in_cgroup(folder)
            if folder not in groups and not any(
                group.startswith(folder.rstrip("/") + "/") for group in groups
            ):
                return None
            populated = any(g == folder or g.startswith(folder.rstrip("/") + "/") for g in groups)
            content = {
                "cgroup.procs": "".join(f"{process.pid}\n" for process in members),
                "cgroup.events": f"populated {int(populated)}\nfrozen 0\n",
                "memory.current": f"{sum(process.rss for process in members)}\n",
            }[name]
            return made_up_file(path, content.encode)
        below_it = {group[len(cgroup.rstrip("/")) + 1 :].split("/")[0] for group in groups
                    if group.startswith(cgroup.rstrip("/") + "/")}  # fmt: skip
        if cgroup != "/" and cgroup not in groups and not below_it:
            return None
        return made_up_dir(path, [*files, *sorted(below_it - {""})])


def dashed(identifier: str) -> str:
    """128 bits in hex as the kernel prints a UUID."""
    parts = (identifier[:8], identifier[8:12], identifier[12:16], identifier[16:20], identifier[20:])
    return "-".join(parts)


def listing(process: Process, columns: Sequence[str], clock: Clock) -> list[str]:
    """A process as `ps` shows it, by column."""
    age = max(0, int(clock.now() - process.started))
    days, rest = divmod(age, 86400)
    clocked = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    elapsed = f"{days}-{clocked}" if days else clocked if rest >= 3600 else clocked[3:]
    args = " ".join(process.argv)
    values = {
        "pid": str(process.pid), "ppid": str(process.ppid), "user": user_name(process.uid),
        "uid": str(process.uid), "gid": str(process.gid), "group": group_name(process.gid),
        "comm": process.comm, "args": args, "cmd": args, "command": args, "etime": elapsed,
        "etimes": str(age), "rss": str(process.rss // 1024), "vsz": str(process.rss // 256),
        "stat": "Ssl" if process.threads > 1 else "Ss", "s": "S", "tty": "?", "time": "00:00:00",
        "%cpu": "0.0", "pcpu": "0.0", "%mem": "0.0", "pmem": "0.0", "nlwp": str(process.threads), "c": "0",
    }  # fmt: skip
    return [values[column] for column in columns]
