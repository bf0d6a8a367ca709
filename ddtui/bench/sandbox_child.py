"""Inside of the sandbox's namespaces: shows only Python and one folder, gives every right away, runs the
program.

Started by `sandbox.py` as root of a user namespace of its own, with mount, network, process and IPC
namespaces. Arguments: the new root (an empty folder), the folder to work in, seconds of CPU time, bytes of
memory, folders to show read-only. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
KEPT = MS_NOSUID | MS_NODEV | MS_NOEXEC  # flags that a namespace must not take off again

libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [None if word is None else word.encode() for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode()):
        code = ctypes.get_errno()
        raise OSError(code, f"mount {source} on {target}: {os.strerror(code)}")


def show(path: str, root: str) -> None:
    """Bind a folder of the machine into the new root, read-only."""
    target = root + path
    if Path(path).is_symlink():
        Path(target).symlink_to(Path(path).readlink())
        return
    Path(target).mkdir(parents=True, exist_ok=True)
    mount(path, target, None, MS_BIND | MS_REC)
    flags = os.statvfs(target).f_flag & KEPT
    mount(path, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | flags)


def main() -> None:
    root, work, seconds, memory, *folders = sys.argv[1:]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=755")
    for folder in folders:
        show(folder, root)
    Path(root, "work").mkdir()
    mount(work, f"{root}/work", None, MS_BIND)
    mount(work, f"{root}/work", None, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV)
    os.chroot(root)
    os.chdir("/work")
    for limit, value in (
        (resource.RLIMIT_CPU, int(seconds)),
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_FSIZE, 1 << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0)
    os.execve(sys.executable, [sys.executable, "-I", "-S", "/work/program.py"], {"PATH": "/usr/bin:/bin"})


if __name__ == "__main__":
    main()
