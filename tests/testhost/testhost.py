#!/usr/bin/env python3
"""testhost: a real, disposable inference host for ddtui's tests.

Boots a Debian root file system with its own systemd as PID 1, its own
journald, dbus, logind and OpenSSH sshd, in fresh pid/mount/uts/ipc/cgroup/net
namespaces.  Standard library only; needs root, `ip`, and (once, to build the
cached root file system) `mmdebstrap`.  See README.md.

    testhost.py build | up | down | info | status | exec -- CMD | ns -- CMD | ctl ...
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
STANDIN = HERE.parent.parent / "ddtui/demo/standin"  # the SGLang stand-in and its models
UNIT = "sglang-k26-ddtree.service"
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "libpam-systemd",
    "openssh-server",
    "python3",
    "sudo",
    "procps",
    "iproute2",
]
RECIPE = "5"  # bump to invalidate cached root file systems
CLIENT_IP, HOST_IP, PREFIX = "10.213.77.1", "10.213.77.2", 30
CLIENT_IF, HOST_IF = "cli0", "eth0"
HOSTNAME = "ddthost"
PASSWORD = "correct horse"  # user `asker`: sudo asks for it; password login too
DISK_MB = 192  # size of the host's whole writable disk

# --------------------------------------------------------------------------
# system calls that Python 3.11 has no wrapper for
# --------------------------------------------------------------------------
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWPID, NEWNET = (
    0x20000,
    0x2000000,
    0x4000000,
    0x8000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 4096, 16384, 1 << 18, 1 << 20
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
# sys_module sys_rawio sys_pacct sys_time mknod mac_override mac_admin syslog
# wake_alarm block_suspend perfmon bpf checkpoint_restore
DROP_CAPS = [16, 17, 20, 25, 27, 32, 33, 34, 35, 36, 38, 39, 40]


def _check(rc: int, what: str) -> None:
    if rc != 0:
        err = ctypes.get_errno()
        raise OSError(err, f"{what}: {os.strerror(err)}")


def unshare(flags: int) -> None:
    _check(libc.unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    _check(libc.setns(fd, flags), "setns")


def mount(src: str, dst, fstype: str | None, flags: int = 0, data: str | None = None) -> None:
    enc = lambda s: None if s is None else str(s).encode()  # noqa: E731
    _check(
        libc.mount(enc(src), enc(dst), enc(fstype), ctypes.c_ulong(flags), enc(data)),
        f"mount {fstype or 'bind'} on {dst}",
    )


def bind_ro(path: Path) -> None:
    if path.exists():
        mount(path, path, None, MS_BIND | MS_REC)
        mount("none", path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


# --------------------------------------------------------------------------
# the cached root file system
# --------------------------------------------------------------------------
def os_release() -> dict[str, str]:
    out = {}
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, val = line.partition("=")
        out[key] = val.strip('"')
    return out


def suite() -> str:
    want = os.environ.get("DDTUI_TESTHOST_SUITE")
    if want:
        return want
    rel = os_release()
    return rel.get("VERSION_CODENAME", "bookworm") if rel.get("ID") == "debian" else "bookworm"


def cache_dir() -> Path:
    env = os.environ.get("DDTUI_TESTHOST_CACHE")
    return Path(env) if env else Path(os.environ.get("XDG_CACHE_HOME") or "/var/cache") / "ddtui-testhost"


def rootfs_path() -> Path:
    if os.environ.get("DDTUI_TESTHOST_ROOTFS"):
        return Path(os.environ["DDTUI_TESTHOST_ROOTFS"])
    key = hashlib.sha256(json.dumps([RECIPE, suite(), PACKAGES, SETUP]).encode()).hexdigest()[:12]
    return cache_dir() / f"rootfs-{suite()}-{key}"


# run inside the new root file system, once, at build time
SETUP = r"""
set -e
export DEBIAN_FRONTEND=noninteractive
for u in tuner limited asker noisy; do useradd -m -s /bin/bash $u; done
usermod -aG systemd-journal tuner
usermod -aG systemd-journal asker
usermod -aG systemd-journal noisy
useradd --system --home-dir /opt/sglang --shell /usr/sbin/nologin sglang
echo "asker:@PASSWORD@" | chpasswd
for u in tuner noisy; do
  printf '%s ALL=(root) NOPASSWD: /usr/bin/systemctl, /usr/bin/tee, /usr/bin/install, /usr/bin/journalctl, /usr/bin/mkdir, /usr/bin/rm, /usr/bin/mv, /usr/bin/sync, /usr/bin/chmod, /usr/bin/chown\n' $u
done > /etc/sudoers.d/ddt
printf 'asker ALL=(root) ALL\n' >> /etc/sudoers.d/ddt
chmod 440 /etc/sudoers.d/ddt
visudo -cq
# a login shell that chats on stdout and stderr even for `ssh host command`
sed -i '1i echo "Welcome to the cluster, $USER"; echo "quota: 93% used" >&2' /home/noisy/.bashrc
rm -f /etc/ssh/ssh_host_* /etc/machine-id /var/lib/dbus/machine-id
cat > /etc/ssh/sshd_config.d/ddt.conf <<E
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication yes
MaxSessions 10
MaxStartups 10:30:100
E
mkdir -p /var/log/journal /etc/systemd/journald.conf.d /etc/systemd/system.conf.d
printf '[Journal]\nStorage=persistent\nSystemMaxUse=48M\nSystemKeepFree=1M\nSystemMaxFileSize=8M\n' > /etc/systemd/journald.conf.d/ddt.conf
printf '[Manager]\nDefaultTimeoutStopSec=10s\n' > /etc/systemd/system.conf.d/ddt.conf
for u in getty@.service console-getty.service systemd-timesyncd.service systemd-udevd.service \
         apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
         e2scrub_reap.service fstrim.timer man-db.timer systemd-networkd-wait-online.service; do
  ln -sf /dev/null /etc/systemd/system/$u
done
ln -sf /lib/systemd/system/multi-user.target /etc/systemd/system/default.target
: > /etc/fstab
: > /etc/motd
"""


def apt_options() -> list[str]:
    """The machine's own apt transport settings, so the build uses the same registry the same way."""
    if not shutil.which("apt-config"):
        return []
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    return [
        "--aptopt=" + line
        for line in dump.splitlines()
        if re.match(r'Acquire::(http|https|Check)[\w:-]* "[^"]+";$', line)
    ]


def build(force: bool = False, log=sys.stderr) -> Path:
    dest = rootfs_path()
    if os.environ.get("DDTUI_TESTHOST_ROOTFS"):
        return dest
    dest.parent.mkdir(parents=True, exist_ok=True)
    with open(dest.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if dest.is_dir() and not force:
            return dest
        if not shutil.which("mmdebstrap"):
            sys.exit("testhost: mmdebstrap is missing: apt-get install -y --no-install-recommends mmdebstrap")
        began = time.monotonic()
        for old in dest.parent.glob("partial-*"):
            shutil.rmtree(old, ignore_errors=True)
        if force:
            shutil.rmtree(dest, ignore_errors=True)
        tmp = Path(tempfile.mkdtemp(prefix="partial-", dir=dest.parent))
        root = tmp / "root"
        cmd = [
            "mmdebstrap",
            "--variant=minbase",
            "--mode=root",
            "--include=" + ",".join(PACKAGES),
            '--aptopt=Acquire::Languages "none"',
            '--aptopt=APT::Install-Recommends "0"',
        ]
        cmd += ["--dpkgopt=force-unsafe-io", *apt_options()]
        cmd += [f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in ("man", "doc", "locale", "info")]
        cmd += [suite(), str(root)]
        deb822, classic = Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list")
        if os.environ.get("DDTUI_TESTHOST_MIRROR"):
            cmd.append(os.environ["DDTUI_TESTHOST_MIRROR"])
        elif os_release().get("ID") == "debian" and os_release().get("VERSION_CODENAME") == suite():
            cmd += [str(p) for p in (deb822, classic) if p.is_file() and p.stat().st_size]
        print("testhost: building root file system (once) ...", file=log, flush=True)
        with open(dest.parent / "build.log", "w") as out:
            rc = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
            if rc == 0:
                rc = subprocess.run(
                    ["chroot", str(root), "/bin/sh", "-c", SETUP.replace("@PASSWORD@", PASSWORD)],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=clean_env(),
                ).returncode
        if rc != 0:
            tail = (dest.parent / "build.log").read_text(errors="replace").splitlines()[-15:]
            shutil.rmtree(tmp, ignore_errors=True)
            sys.exit("testhost: building the root file system failed:\n" + "\n".join(tail))
        root.rename(dest)
        tmp.rmdir()
        print(f"testhost: root file system built in {time.monotonic() - began:.1f} s", file=log, flush=True)
    return dest


def clean_env() -> dict[str, str]:
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/root",
    }


# --------------------------------------------------------------------------
# PID 1's side: from fork to exec of systemd
# --------------------------------------------------------------------------
def boot_main(spec_file: str) -> None:
    """Runs as a child of the supervisor; its exit status says how the host's PID 1 ended."""
    spec = json.loads(Path(spec_file).read_text())
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    unshare(NEWPID)
    pid = os.fork()
    if pid == 0:
        try:
            host_init(spec)
        except BaseException as exc:  # noqa: BLE001
            os.write(2, f"testhost: boot failed: {exc!r}\n".encode())
            os._exit(90)
    os.write(1, f"pid {pid}\n".encode())
    os.close(0), os.close(1)
    _, status = os.waitpid(pid, 0)
    sys.exit(100 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def host_init(spec: dict) -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    root = Path(spec["root"])
    Path(spec["cgroup"], "cgroup.procs").write_text("0")  # then the cgroup namespace is rooted there
    unshare(NEWNS | NEWUTS | NEWIPC | NEWCGROUP | NEWNET)
    os.write(1, b"netns\n")
    if os.read(0, 3) != b"go\n":  # the supervisor has plugged the cable in
        raise RuntimeError("supervisor went away")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    nosuid = MS_NOSUID | MS_NODEV | MS_NOEXEC
    # /dev
    dev = root / "dev"
    mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=755,size=4m")
    os.umask(0)
    for name, major, minor in (
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
    ):
        os.mknod(dev / name, 0o020666, os.makedev(major, minor))
    for name, target in (
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ):
        os.symlink(target, dev / name)
    for name in ("pts", "shm", "mqueue"):
        (dev / name).mkdir()
    mount("devpts", dev / "pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5")
    mount("tmpfs", dev / "shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=32m")
    (dev / "console").touch()
    mount(spec["console"], dev / "console", None, MS_BIND)
    os.umask(0o022)
    # /run, /sys, /proc
    mount("tmpfs", root / "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m")
    mount("sysfs", root / "sys", "sysfs", nosuid | MS_RDONLY)
    mount("cgroup2", root / "sys/fs/cgroup", "cgroup2", nosuid)
    proc = root / "proc"
    mount("proc", proc, "proc", nosuid)
    boot_id = root / "run/.boot_id"
    boot_id.write_text(str(uuid.uuid4()) + "\n")
    mount(proc / "sys/net", proc / "sys/net", None, MS_BIND)
    mount(proc / "sys", proc / "sys", None, MS_BIND | MS_REC)
    mount("none", proc / "sys", None, MS_BIND | MS_REMOUNT | MS_RDONLY | nosuid)
    mount(boot_id, proc / "sys/kernel/random/boot_id", None, MS_BIND)
    for name in ("sysrq-trigger", "acpi", "bus", "fs", "irq"):
        bind_ro(proc / name)
    for name in ("kmsg", "kcore"):
        if (proc / name).exists():
            mount(dev / "null", proc / name, None, MS_BIND)
    # become the root
    os.chdir(root)
    _check(libc.pivot_root(b".", b"."), "pivot_root")
    _check(libc.umount2(b".", MNT_DETACH), "umount old root")
    os.chdir("/")
    mount("none", "/", None, MS_REC | MS_SHARED)
    drop_caps()
    os.setsid()
    con = os.open("/dev/console", os.O_RDWR | os.O_NOCTTY)
    for fd in (0, 1, 2):
        os.dup2(con, fd)
    os.closerange(3, 256)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for sig in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(sig, signal.SIG_DFL)
    os.execve(
        "/lib/systemd/systemd",
        ["/lib/systemd/systemd", "systemd.unit=multi-user.target"],
        {"container": "ddtui-testhost", "PATH": clean_env()["PATH"], "TERM": "dumb"},
    )


# --------------------------------------------------------------------------
# the supervisor: owns the disk, the cable, the loopback forwarder, the power button
# --------------------------------------------------------------------------
class Supervisor:
    def __init__(self, name: str, state: Path, rootfs: Path, port: int, disk_mb: int):
        self.name, self.state, self.rootfs, self.port, self.disk_mb = name, state, rootfs, port, disk_mb
        self.root, self.cg = state / "root", state / "cg"
        self.init_pid = 0
        self.boots = 0
        self.want_on = True
        self.stopping = False
        self.delay = 0.0
        self.rate = ""
        self.links: set[tuple] = set()
        self.power = asyncio.Event()
        self.server: asyncio.Server | None = None
        self.proc: asyncio.subprocess.Process | None = None

    # -- set-up -------------------------------------------------------------
    def prepare(self) -> None:
        libc.prctl(PR_SET_PDEATHSIG, 0)
        self.machine_net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.listener = self.listen()
        self.port = self.listener.getsockname()[1]
        unshare(NEWNS | NEWNET)  # our own mounts; and the client's side of the cable
        self.client_net = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        self.ip("link", "set", "lo", "up")
        disk = self.state / "disk"
        for d in (disk, self.root, self.cg):
            d.mkdir(exist_ok=True)
        mount("tmpfs", disk, "tmpfs", 0, f"size={self.disk_mb}m,mode=755")
        (disk / "upper").mkdir(), (disk / "work").mkdir()
        mount(
            "overlay",
            self.root,
            "overlay",
            0,
            f"lowerdir={self.rootfs},upperdir={disk}/upper,workdir={disk}/work",
        )
        mount("cgroup2", self.cg, "cgroup2")
        self.group = self.cg / f"ddtui-testhost-{self.name}"
        remove_cgroup(self.group)
        (self.group / "sup").mkdir(parents=True)
        (self.group / "host").mkdir()
        (self.group / "sup/cgroup.procs").write_text("0")
        for ctl in (self.group / "cgroup.controllers").read_text().split():
            with contextlib.suppress(OSError):  # whatever this machine has on cgroup v2 (perhaps none)
                (self.group / "cgroup.subtree_control").write_text("+" + ctl)
        self.furnish()

    def listen(self) -> socket.socket:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        sock.listen(64)
        return sock

    def ip(self, *args: str, pid: int = 0, check: bool = True, tool: str = "ip") -> None:
        cmd = ["nsenter", "-t", str(pid), "-n", tool] if pid else [tool]
        done = subprocess.run(cmd + list(args), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()}")

    def furnish(self) -> None:
        """What differs per instance: identity, keys, and the inference unit."""
        r = self.root
        (r / "etc/machine-id").write_text(uuid.uuid4().hex + "\n")
        (r / "etc/hostname").write_text(HOSTNAME + "\n")
        (r / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {HOSTNAME}\n::1 localhost\n")
        key = self.state / "host_key"
        shutil.copy(key, r / "etc/ssh/ssh_host_ed25519_key")
        os.chmod(r / "etc/ssh/ssh_host_ed25519_key", 0o600)
        shutil.copy(key.with_suffix(".pub"), r / "etc/ssh/ssh_host_ed25519_key.pub")
        users = {f[0]: f for f in (line.split(":") for line in (r / "etc/passwd").read_text().splitlines())}
        for user in ("root", "tuner", "limited", "asker", "noisy"):
            _, _, uid, gid, _, home, _ = users[user]
            ssh = r / home.lstrip("/") / ".ssh"
            ssh.mkdir(mode=0o700, exist_ok=True)
            shutil.copy(self.state / "id_ed25519.pub", ssh / "authorized_keys")
            for p in (ssh, ssh / "authorized_keys"):
                os.chown(p, int(uid), int(gid))
        no_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(STANDIN / "sglang", r / "opt/sglang/sglang", ignore=no_caches)
        shutil.copytree(STANDIN / "models", r / "opt/models", ignore=no_caches)
        shutil.copy(HERE / UNIT, r / "etc/systemd/system" / UNIT)
        wants = r / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(exist_ok=True)
        os.symlink(f"/etc/systemd/system/{UNIT}", wants / UNIT)

    # -- power --------------------------------------------------------------
    async def power_loop(self) -> None:
        while True:
            await self.power.wait()
            self.power.clear()
            if not self.want_on or self.init_pid:
                continue
            how = await self.boot_once()
            print(f"host went down: {how}", flush=True)
            if how == "reboot" or (self.want_on and how in ("crash-reboot",)):
                self.power.set()
            else:
                self.want_on = False

    async def boot_once(self) -> str:
        master, slave = pty.openpty()
        console = os.ttyname(slave)
        loop = asyncio.get_running_loop()
        log = open(self.state / "console.log", "ab", buffering=0)

        def drain() -> None:
            try:
                log.write(os.read(master, 65536))
            except OSError:
                loop.remove_reader(master)

        loop.add_reader(master, drain)
        spec = self.state / "boot.json"
        spec.write_text(
            json.dumps({"root": str(self.root), "cgroup": str(self.group / "host"), "console": console})
        )
        self.after = None
        self.proc = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            __file__,
            "_boot",
            str(spec),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            words = {}
            while not ("pid" in words and "netns" in words):
                line = (await self.proc.stdout.readline()).decode().split()
                if not line:
                    return f"boot failed with status {await self.proc.wait()}"
                words[line[0]] = line[1:]
            pid = int(words["pid"][0])
            self.plug_in(pid)
            self.proc.stdin.write(b"go\n")
            await self.proc.stdin.drain()
            self.init_pid = pid
            self.boots += 1
            self.write_info()
            code = await self.proc.wait()
        finally:
            self.init_pid = 0
            self.write_info()
            with contextlib.suppress(Exception):
                loop.remove_reader(master)
            os.close(master), os.close(slave), log.close()
            kill_cgroup(self.group / "host")
        if self.after:
            return self.after
        # in a pid namespace the kernel turns reboot(2) into a signal: HUP = reboot, INT = power off
        return {100 + signal.SIGHUP: "reboot", 100 + signal.SIGINT: "poweroff"}.get(
            code, f"died, status {code}"
        )

    def plug_in(self, pid: int) -> None:
        self.ip("link", "del", CLIENT_IF, check=False)
        self.ip("link", "add", CLIENT_IF, "type", "veth", "peer", "name", HOST_IF, "netns", str(pid))
        self.ip("addr", "add", f"{CLIENT_IP}/{PREFIX}", "dev", CLIENT_IF)
        self.ip("link", "set", CLIENT_IF, "up")
        self.ip("link", "set", "lo", "up", pid=pid)
        self.ip("addr", "add", f"{HOST_IP}/{PREFIX}", "dev", HOST_IF, pid=pid)
        self.ip("link", "set", HOST_IF, "up", pid=pid)
        if self.rate:
            self.shape(self.rate)

    def shape(self, rate: str) -> None:
        self.rate = "" if rate == "off" else rate
        for dev, pid in ((CLIENT_IF, 0), (HOST_IF, self.init_pid)):
            if dev == HOST_IF and not pid:
                continue
            self.ip("qdisc", "del", "dev", dev, "root", pid=pid, check=False, tool="tc")
            if self.rate:
                self.ip(
                    "qdisc",
                    "add",
                    "dev",
                    dev,
                    "root",
                    "tbf",
                    "rate",
                    self.rate,
                    "burst",
                    "4kb",
                    "latency",
                    "400ms",
                    pid=pid,
                    tool="tc",
                )

    # -- the loopback forwarder: 127.0.0.1:port (machine) -> HOST_IP:22 (over the cable) ---
    async def serve(self) -> None:
        self.server = await asyncio.start_server(self.accept, sock=self.listener)

    async def accept(self, reader, writer) -> None:
        link = None
        try:
            far = await asyncio.open_connection(HOST_IP, 22)  # made in the client's namespace
            link = (writer, far[1])
            self.links.add(link)
            await asyncio.gather(self.pump(reader, far[1]), self.pump(far[0], writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.links.discard(link)
            for w in link or (writer,):
                w.close()

    async def pump(self, reader, writer) -> None:
        queue: asyncio.Queue = asyncio.Queue(64)
        loop = asyncio.get_running_loop()

        async def sender() -> None:
            while True:
                due, data = await queue.get()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                if not data:
                    with contextlib.suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()

        task = asyncio.ensure_future(sender())
        try:
            while not task.done():
                data = await reader.read(32768)
                await queue.put((loop.time() + self.delay, data))
                if not data:
                    break
            await task
        finally:
            task.cancel()

    # -- orders over the control socket ---------------------------------------
    async def order(self, words: list[str]) -> str:
        verb, arg = words[0], (words[1] if len(words) > 1 else "")
        if verb == "status":
            pass
        elif verb == "net" and arg in ("up", "down", "drop"):
            # down: the host's carrier is lost.  drop: both ends think all is well, and nothing arrives.
            self.ip("link", "set", HOST_IF, "down" if arg == "down" else "up", pid=self.init_pid)
            how = ["replace", "lladdr", "02:00:00:00:00:99", "nud", "permanent"] if arg == "drop" else ["del"]
            for peer, dev, pid in ((HOST_IP, CLIENT_IF, 0), (CLIENT_IP, HOST_IF, self.init_pid)):
                self.ip("neigh", how[0], peer, "dev", dev, *how[1:], pid=pid, check=arg == "drop")
        elif verb == "rate":
            self.shape(arg)
        elif verb == "delay":
            self.delay = 0.0 if arg == "off" else float(arg) / 1000
        elif verb == "reset":  # RST on both ends of every forwarded connection
            for link in list(self.links):
                for w in link:
                    sock = w.get_extra_info("socket")
                    if sock is not None:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    w.transport.abort()
        elif verb == "refuse" and arg in ("on", "off"):
            if arg == "on" and self.server:
                self.server.close()
                self.server = None
            elif arg == "off" and not self.server:
                setns(self.machine_net, NEWNET)
                try:
                    self.listener = self.listen()
                finally:
                    setns(self.client_net, NEWNET)
                await self.serve()
        elif verb in ("crash", "off"):  # pull the plug
            self.want_on = verb == "crash"
            self.after = "crash-reboot" if verb == "crash" else "power cut"
            if self.init_pid:
                os.kill(self.init_pid, signal.SIGKILL)
        elif verb == "on":
            self.want_on = True
            self.power.set()
        elif verb == "stop":
            self.stopping = True
            self.want_on = False
            self.after = "stopped"
            asyncio.get_running_loop().call_later(0.01, self.done.set)
        else:
            raise ValueError("unknown order: " + " ".join(words))
        return json.dumps(
            {
                "on": bool(self.init_pid),
                "ssh": await self.ssh_answers(),
                "init_pid": self.init_pid,
                "boots": self.boots,
                "connections": len(self.links),
                "delay_ms": self.delay * 1000,
                "rate": self.rate or None,
                "refusing": self.server is None,
            }
        )

    async def ssh_answers(self) -> bool:
        if not self.init_pid:
            return False
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(HOST_IP, 22), 0.5)
            try:
                return (await asyncio.wait_for(reader.readline(), 0.5)).startswith(b"SSH-")
            finally:
                writer.close()
        except (OSError, asyncio.TimeoutError):
            return False

    async def control(self, reader, writer) -> None:
        try:
            words = shlex.split((await reader.readline()).decode())
            answer = await self.order(words)
        except Exception as exc:  # noqa: BLE001
            answer = json.dumps({"error": f"{type(exc).__name__}: {exc}"})
        writer.write(answer.encode() + b"\n")
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    # -- life -----------------------------------------------------------------
    def write_info(self) -> None:
        st = self.state
        info = {
            "name": self.name,
            "host": "127.0.0.1",
            "port": self.port,
            "users": ["root", "tuner", "limited", "asker", "noisy"],
            "asker_password": PASSWORD,
            "key": str(st / "id_ed25519"),
            "known_hosts": str(st / "known_hosts"),
            "ssh_config": str(st / "ssh_config"),
            "unit": UNIT,
            "http": "127.0.0.1:30000 (on the host)",
            "direct": {"netns": f"/proc/{os.getpid()}/ns/net", "host": HOST_IP, "port": 22},
            "supervisor_pid": os.getpid(),
            "init_pid": self.init_pid,
            "boots": self.boots,
            "console_log": str(st / "console.log"),
            "state": str(st),
        }
        tmp = st / "info.json.new"
        tmp.write_text(json.dumps(info, indent=2) + "\n")
        tmp.rename(st / "info.json")

    async def run(self) -> None:
        self.done = asyncio.Event()
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(sig, self.done.set)
        await self.serve()
        ctl = await asyncio.start_unix_server(self.control, str(self.state / "control.sock"))
        self.power.set()
        power = asyncio.ensure_future(self.power_loop())
        await asyncio.wait(
            {power, asyncio.ensure_future(self.done.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        if power.done():
            power.result()
        self.want_on, self.after = False, "stopped"
        kill_cgroup(self.group / "host")
        for _ in range(200):
            if not self.init_pid:
                break
            await asyncio.sleep(0.02)
        ctl.close()


def kill_cgroup(group: Path) -> None:
    """Kill all that runs in a cgroup, and remove the groups below it."""
    if not group.is_dir():
        return
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")
    for _ in range(300):
        try:
            for path, dirs, _ in os.walk(group, topdown=False):
                for d in dirs:
                    os.rmdir(os.path.join(path, d))
            if not (group / "cgroup.procs").read_text().strip():
                return
        except OSError:
            pass
        time.sleep(0.01)


def remove_cgroup(group: Path) -> None:
    if group.is_dir():
        kill_cgroup(group)
        group.rmdir()


def supervise_main(a) -> None:
    global asyncio
    import asyncio  # here only: it is half of the time that `exec` takes

    sup = Supervisor(a.name, Path(a.state), Path(a.rootfs), a.port, a.disk_mb)
    sup.prepare()
    asyncio.run(sup.run())
    os._exit(0)  # mounts and namespaces end with us


# --------------------------------------------------------------------------
# commands
# --------------------------------------------------------------------------
def state_dir(a) -> Path:
    base = os.environ.get("DDTUI_TESTHOST_STATE") or os.path.join(tempfile.gettempdir(), "ddtui-testhost")
    return Path(base) / a.name


def info(a) -> dict:
    try:
        return json.loads((state_dir(a) / "info.json").read_text())
    except FileNotFoundError:
        sys.exit(f"testhost: no host named {a.name!r} is up")


def order(a, *words: str) -> dict:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(state_dir(a) / "control.sock"))
        s.sendall(shlex.join(words).encode() + b"\n")
        answer = json.loads(s.makefile().readline())
    if "error" in answer:
        sys.exit("testhost: " + answer["error"])
    return answer


def wait_ssh(a, timeout: float = 20.0, boots: int = 0) -> dict:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            now = order(a, "status")
            if now["ssh"] and now["boots"] >= boots:
                return info(a)
        time.sleep(0.05)
    sys.exit(f"testhost: ssh did not answer within {timeout:.0f} s")


def cmd_up(a) -> None:
    if os.geteuid() != 0:
        sys.exit("testhost: needs root (for a form without root, see README.md)")
    missing = [t for t in ("ip", "tc", "nsenter", "ssh-keygen") if not shutil.which(t)]
    if missing:
        sys.exit(
            f"testhost: missing {', '.join(missing)}: apt-get install -y iproute2 util-linux openssh-client"
        )
    st = state_dir(a)
    if (st / "supervisor.pid").exists():
        cmd_down(a)
    rootfs = build()
    began = time.monotonic()
    st.mkdir(parents=True, mode=0o700)
    for f in ("id_ed25519", "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f, "-f", str(st / f)], check=True
        )
    log = open(st / "supervisor.log", "ab")
    proc = subprocess.Popen(
        [
            sys.executable,
            "-I",
            __file__,
            "--name",
            a.name,
            "_supervise",
            "--state",
            str(st),
            "--rootfs",
            str(rootfs),
            "--port",
            str(a.port),
            "--disk-mb",
            str(a.disk_mb),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        cwd="/",
        env=clean_env(),
    )
    (st / "supervisor.pid").write_text(str(proc.pid))
    end = time.monotonic() + 30
    while not ((st / "info.json").exists() and json.loads((st / "info.json").read_text())["init_pid"]):
        if proc.poll() is not None or time.monotonic() > end:
            text = (st / "supervisor.log").read_text()
            cmd_down(a)
            sys.exit("testhost: the supervisor did not start the host:\n" + text[-3000:])
        time.sleep(0.02)
    port = info(a)["port"]
    pub = " ".join((st / "host_key.pub").read_text().split()[:2])
    (st / "known_hosts").write_text(f"[127.0.0.1]:{port} {pub}\n{HOST_IP} {pub}\n")
    (st / "ssh_config").write_text(
        f"Host ddthost\n  HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias [127.0.0.1]:{port}\n"
        f"Host ddthost-direct\n  HostName {HOST_IP}\n  Port 22\n"
        f"Host ddthost ddthost-direct\n  User tuner\n  IdentityFile {st}/id_ed25519\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {st}/known_hosts\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
    )
    try:
        i = wait_ssh(a)
    except SystemExit:
        console = (st / "console.log").read_text(errors="replace")
        cmd_down(a)
        sys.exit("testhost: ssh did not answer; the console's last lines:\n" + console[-2000:])
    if a.ready:
        subprocess.run(
            [
                sys.executable,
                "-I",
                __file__,
                "--name",
                a.name,
                "exec",
                "--",
                "sh",
                "-c",
                "systemctl is-system-running --wait; "
                f"for i in $(seq 100); do systemctl is-active -q {UNIT} && break; sleep .1; done",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=clean_env(),
            timeout=60,
        )
    i["up_seconds"] = round(time.monotonic() - began, 2)
    print(json.dumps(i, indent=2))


def cmd_down(a) -> None:
    st = state_dir(a)
    pid_file = st / "supervisor.pid"
    if pid_file.exists():
        pid = int(pid_file.read_text())
        cmdline = Path(f"/proc/{pid}/cmdline")
        mine = (
            cmdline.exists()
            and b"_supervise" in cmdline.read_bytes()
            and str(st).encode() in cmdline.read_bytes()
        )
        if mine:
            for sig, tries in ((signal.SIGTERM, 150), (signal.SIGKILL, 100)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sig)
                for _ in range(tries):
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
                    if not cmdline.exists() or not cmdline.read_bytes():
                        break
                    time.sleep(0.02)
                else:
                    continue
                break
    # the cgroups are the one thing that does not end with the supervisor
    st.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-I", __file__, "--name", a.name, "_sweep", "--state", str(st)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    shutil.rmtree(st, ignore_errors=False)
    with contextlib.suppress(OSError):
        st.parent.rmdir()


def sweep_main(a) -> None:
    unshare(NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    cg = Path(a.state) / "cg"
    cg.mkdir(exist_ok=True)
    mount("cgroup2", cg, "cgroup2")
    remove_cgroup(cg / f"ddtui-testhost-{a.name}")


def enter(i: dict) -> list[str]:
    return ["nsenter", "-t", str(i["init_pid"]), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--"]


def drop_caps() -> None:
    """Lose, for good, what could reach past the namespaces: the clock, kernel modules, device nodes ..."""
    for cap in DROP_CAPS:
        _check(libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), f"drop capability {cap}")


def cmd_exec(a) -> None:
    drop_caps()  # nsenter would hand over all that the machine's root has
    os.execvpe("nsenter", [*enter(info(a)), *a.argv], {**clean_env(), "TERM": os.environ.get("TERM", "dumb")})


def cmd_ns(a) -> None:
    """Run a command on the client's end of the cable (only the host can be reached from there)."""
    fd = os.open(info(a)["direct"]["netns"], os.O_RDONLY)
    setns(fd, NEWNET)
    os.close(fd)
    os.execvp(a.argv[0], a.argv)


def main() -> None:
    p = argparse.ArgumentParser(
        prog="testhost.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--name", default="main", help="several hosts can be up side by side")
    sub = p.add_subparsers(dest="cmd", required=True)
    b = sub.add_parser("build", help="build the cached root file system now")
    b.add_argument("--force", action="store_true")
    u = sub.add_parser("up", help="boot a fresh host; prints JSON")
    u.add_argument("--port", type=int, default=0, help="loopback port for ssh (default: a free one)")
    u.add_argument("--disk-mb", type=int, default=DISK_MB)
    u.add_argument(
        "--ready", action="store_true", help="wait until the boot is over and the unit is active too"
    )
    sub.add_parser("down", help="end it and leave nothing behind")
    sub.add_parser("info", help="what `up` printed")
    sub.add_parser("status")
    w = sub.add_parser("wait-ssh")
    w.add_argument("--boots", type=int, default=0, help="until at least so many boots have happened")
    w.add_argument("--timeout", type=float, default=20)
    for verb in ("exec", "ns", "ctl"):
        x = sub.add_parser(verb)
        x.add_argument("argv", nargs=argparse.REMAINDER)
    s = sub.add_parser("_supervise")
    s.add_argument("--state"), s.add_argument("--rootfs"), s.add_argument("--port", type=int)
    s.add_argument("--disk-mb", type=int)
    sub.add_parser("_sweep").add_argument("--state")
    sub.add_parser("_boot").add_argument("spec")
    a = p.parse_args()
    if getattr(a, "argv", None) and a.argv[0] == "--":
        a.argv = a.argv[1:]
    if a.cmd == "build":
        print(build(a.force))
    elif a.cmd == "up":
        cmd_up(a)
    elif a.cmd == "down":
        cmd_down(a)
    elif a.cmd == "info":
        print(json.dumps(info(a), indent=2))
    elif a.cmd == "status":
        print(json.dumps(order(a, "status")))
    elif a.cmd == "wait-ssh":
        print(json.dumps(wait_ssh(a, a.timeout, a.boots), indent=2))
    elif a.cmd == "ctl":
        print(json.dumps(order(a, *a.argv)))
    elif a.cmd == "exec":
        cmd_exec(a)
    elif a.cmd == "ns":
        cmd_ns(a)
    elif a.cmd == "_supervise":
        supervise_main(a)
    elif a.cmd == "_sweep":
        sweep_main(a)
    elif a.cmd == "_boot":
        boot_main(a.spec)


if __name__ == "__main__":
    main()
