"""The demo host's files: a folder on this machine seen from `/`, with owners, modes and a few made-up places.

Owners and modes are kept beside the folder, since the files themselves belong to whoever runs ddtui. Paths
here are the host's own, absolute and as text; errors are OSError with the errno that Linux gives.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ddtui.demo.accounts import ROOT, User

MAX_LINKS = 40  # as in Linux
OLD_NS = 1_700_000_000_000_000_000  # when files that came with the machine were last changed


@dataclass(frozen=True, slots=True)
class Node:
    """One file, folder, symbolic link or device, as lstat sees it, with the ways to look inside."""

    mode: int  # with the type bits
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime_ns: int = 0
    inode: int = 1
    links: int = 1
    target: str = ""  # of a symbolic link
    real: Path | None = None
    content: Callable[[], bytes] | None = None  # of a file that is made up
    names: Callable[[], list[str]] | None = None  # of a folder that is made up
    read_only: bool = False

    @property
    def mtime(self) -> float:
        return self.mtime_ns / 1e9

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


Synthetic = Callable[[str], Node | None]


@dataclass
class _Meta:
    """What differs from a root-owned 0644 file or 0755 folder."""

    uid: int = 0
    gid: int = 0
    mode: int | None = None
    size: int | None = None  # of a file that only looks big


def error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


@dataclass
class Filesystem:
    """The tree below `root`; `mounts` are folders of this machine seen read-only at a path of the host."""

    root: Path
    metadata: Path
    mounts: Mapping[str, Path] = field(default_factory=dict)
    synthetic: Mapping[str, Synthetic] = field(default_factory=dict)  # by top folder: "/proc"
    _meta: dict[str, _Meta] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.metadata.exists():
            for path, values in json.loads(self.metadata.read_text()).items():
                self._meta[path] = _Meta(*values)

    def save(self) -> None:
        """Write owners and modes to disk. Every change does so by itself."""
        text = json.dumps({p: [m.uid, m.gid, m.mode, m.size] for p, m in self._meta.items()})
        new = self.metadata.with_suffix(".new")
        new.write_text(text)
        new.replace(self.metadata)

    # -- looking --------------------------------------------------------------------------------------------

    def real_path(self, path: str) -> Path:
        """Where a canonical path of the host lies on this machine."""
        for point, folder in self.mounts.items():
            if path == point or path.startswith(point + "/"):
                return folder / path[len(point) + 1 :]
        return self.root / path.lstrip("/")

    def at(self, path: str) -> Node | None:
        """The node at a canonical path, links not followed; None if there is none."""
        top = "/" + path.split("/", 2)[1]
        if top in self.synthetic:
            return self.synthetic[top](path)
        real = self.real_path(path)
        mounted = any(path == point or path.startswith(point + "/") for point in self.mounts)
        try:
            info = real.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        meta = self._meta.get(path, _Meta())
        kind = stat.S_IFMT(info.st_mode)
        if meta.mode is not None:
            mode = meta.mode
        elif kind == stat.S_IFLNK:
            mode = 0o777
        elif kind == stat.S_IFDIR:
            mode = 0o755
        else:
            mode = 0o644 | (stat.S_IMODE(info.st_mode) & 0o111 if mounted else 0)
        return Node(
            mode=kind | mode,
            uid=meta.uid,
            gid=meta.gid,
            size=info.st_size if meta.size is None else meta.size,
            mtime_ns=OLD_NS if mounted else info.st_mtime_ns,
            inode=info.st_ino,
            links=info.st_nlink,
            target=str(real.readlink()) if kind == stat.S_IFLNK else "",
            real=real,
            read_only=mounted,
        )

    def resolve(self, path: str, *, user: User = ROOT, follow: bool = True, base: str = "/") -> str:
        """The canonical path that `path` leads to. The last part need not exist; what is before it must."""
        if not path:
            raise error(errno.ENOENT, path)
        rest = [part for part in path.split("/") if part not in ("", ".")]
        must_be_folder = path.endswith(("/", "/."))
        at = "/" if path.startswith("/") else base
        hops = 0
        while rest:
            part = rest.pop(0)
            here = self.at(at)
            if here is None:
                raise error(errno.ENOENT, path)
            if not here.is_dir:
                raise error(errno.ENOTDIR, path)
            self._require(here, user, 1, path)
            if part == "..":
                at = posixpath.dirname(at)
                continue
            if len(part.encode()) > 255:
                raise error(errno.ENAMETOOLONG, path)
            step = posixpath.join(at, part)
            node = self.at(step)
            if node is not None and node.is_link and (rest or follow or must_be_folder):
                hops += 1
                if hops > MAX_LINKS:
                    raise error(errno.ELOOP, path)
                rest = [p for p in node.target.split("/") if p not in ("", ".")] + rest
                at = "/" if node.target.startswith("/") else at
                continue
            at = step
        if must_be_folder:
            node = self.at(at)
            if node is not None and not node.is_dir:
                raise error(errno.ENOTDIR, path)
        return at

    def lookup(self, path: str, *, user: User = ROOT, follow: bool = True, base: str = "/") -> Node:
        """The node that `path` leads to. Raises OSError."""
        node = self.at(self.resolve(path, user=user, follow=follow, base=base))
        if node is None:
            raise error(errno.ENOENT, path)
        return node

    def exists(self, path: str) -> bool:
        try:
            self.lookup(path)
        except OSError:
            return False
        return True

    def read(self, path: str, *, user: User = ROOT, base: str = "/") -> bytes:
        """The content of a file. Raises OSError."""
        node = self.lookup(path, user=user, base=base)
        if node.is_dir:
            raise error(errno.EISDIR, path)
        self._require(node, user, 4, path)
        if node.content is not None:
            return node.content()
        return node.real.read_bytes() if node.real is not None else b""

    def list(self, path: str, *, user: User = ROOT, base: str = "/") -> list[str]:
        """The names in a folder, sorted. Raises OSError."""
        canonical = self.resolve(path, user=user, base=base)
        node = self.at(canonical)
        if node is None:
            raise error(errno.ENOENT, path)
        if not node.is_dir:
            raise error(errno.ENOTDIR, path)
        self._require(node, user, 4, path)
        if node.names is not None:
            names = node.names()
        else:
            names = [entry.name for entry in node.real.iterdir()] if node.real else []
            folder = canonical.rstrip("/") + "/"
            places = [*self.mounts, *self.synthetic]
            names += [
                p[len(folder) :] for p in places if p.startswith(folder) and "/" not in p[len(folder) :]
            ]
        return sorted(set(names), key=os.fsencode)

    # -- changing -------------------------------------------------------------------------------------------

    def write(
        self,
        path: str,
        data: bytes,
        *,
        user: User = ROOT,
        append: bool = False,
        base: str = "/",
        mode: int = 0o644,
    ) -> None:
        """Create or overwrite a file, as open(O_CREAT|O_TRUNC) and write do. Raises OSError."""
        canonical = self.resolve(path, user=user, base=base)
        node = self.at(canonical)
        if node is None:
            self._require_writable_parent(canonical, user, path)
            real = self.real_path(canonical)
            real.write_bytes(data)
            self._own(canonical, user, mode)
            return
        if node.is_dir:
            raise error(errno.EISDIR, path)
        self._require(node, user, 2, path)
        if stat.S_ISCHR(node.mode):  # /dev/null takes everything
            return
        if node.content is not None:
            raise error(errno.EACCES, path)
        if node.read_only or node.real is None:
            raise error(errno.EROFS, path)
        with node.real.open("ab" if append else "wb") as file:
            file.write(data)

    def make_dir(self, path: str, *, user: User = ROOT, base: str = "/", mode: int = 0o755) -> None:
        """mkdir. Raises OSError."""
        canonical = self.resolve(path, user=user, base=base, follow=False)
        if self.at(canonical) is not None:
            raise error(errno.EEXIST, path)
        self._require_writable_parent(canonical, user, path)
        self.real_path(canonical).mkdir()
        self._own(canonical, user, mode)

    def make_link(self, target: str, path: str, *, user: User = ROOT, base: str = "/") -> None:
        """A symbolic link. Raises OSError."""
        canonical = self.resolve(path, user=user, base=base, follow=False)
        if self.at(canonical) is not None:
            raise error(errno.EEXIST, path)
        self._require_writable_parent(canonical, user, path)
        self.real_path(canonical).symlink_to(target)
        self._own(canonical, user, None)

    def make_hard_link(self, old: str, new: str, *, user: User = ROOT, base: str = "/") -> None:
        """link(2): atomic, fails where `new` exists. Raises OSError."""
        source = self.resolve(old, user=user, base=base, follow=False)
        node = self.at(source)
        if node is None:
            raise error(errno.ENOENT, old)
        if node.is_dir:
            raise error(errno.EPERM, old)
        canonical = self.resolve(new, user=user, base=base, follow=False)
        if self.at(canonical) is not None:
            raise error(errno.EEXIST, new)
        self._require_writable_parent(canonical, user, new)
        if node.read_only or node.real is None:
            raise error(errno.EXDEV, new)
        os.link(node.real, self.real_path(canonical), follow_symlinks=False)
        self._meta[canonical] = _Meta(node.uid, node.gid, stat.S_IMODE(node.mode))
        self.save()

    def remove(self, path: str, *, user: User = ROOT, base: str = "/") -> None:
        """unlink(2). Raises OSError."""
        canonical = self.resolve(path, user=user, base=base, follow=False)
        node = self.at(canonical)
        if node is None:
            raise error(errno.ENOENT, path)
        if node.is_dir:
            raise error(errno.EISDIR, path)
        self._require_writable_parent(canonical, user, path)
        if node.real is None:
            raise error(errno.EPERM, path)
        node.real.unlink()
        self._forget(canonical)

    def remove_dir(self, path: str, *, user: User = ROOT, base: str = "/") -> None:
        """rmdir(2). Raises OSError."""
        canonical = self.resolve(path, user=user, base=base, follow=False)
        node = self.at(canonical)
        if node is None:
            raise error(errno.ENOENT, path)
        if not node.is_dir:
            raise error(errno.ENOTDIR, path)
        self._require_writable_parent(canonical, user, path)
        if self.list(canonical):
            raise error(errno.ENOTEMPTY, path)
        if node.real is None:
            raise error(errno.EPERM, path)
        node.real.rmdir()
        self._forget(canonical)

    def rename(self, old: str, new: str, *, user: User = ROOT, base: str = "/") -> None:
        """rename(2): atomic, over an existing file. Raises OSError."""
        source = self.resolve(old, user=user, base=base, follow=False)
        target = self.resolve(new, user=user, base=base, follow=False)
        node, over = self.at(source), self.at(target)
        if node is None:
            raise error(errno.ENOENT, old)
        self._require_writable_parent(source, user, old)
        self._require_writable_parent(target, user, new)
        if over is not None and over.is_dir and not node.is_dir:
            raise error(errno.EISDIR, new)
        if over is not None and node.is_dir and not over.is_dir:
            raise error(errno.ENOTDIR, new)
        if node.is_dir and target.startswith(source + "/"):
            raise error(errno.EINVAL, new)
        if node.real is None:
            raise error(errno.EPERM, old)
        node.real.rename(self.real_path(target))
        if source == target:
            return
        self._meta.pop(target, None)
        for path in [p for p in self._meta if p == source or p.startswith(source + "/")]:
            self._meta[target + path[len(source) :]] = self._meta.pop(path)
        self.save()

    def set_mode(self, path: str, mode: int, *, user: User = ROOT, base: str = "/") -> None:
        """chmod(2). Raises OSError."""
        canonical, node = self._changeable(path, user, base)
        self._meta[canonical] = _Meta(node.uid, node.gid, mode, self._shown_size(canonical))
        self.save()

    def set_owner(
        self, path: str, uid: int | None, gid: int | None, *, user: User = ROOT, base: str = "/"
    ) -> None:
        """chown(2); None leaves that part as it is. Raises OSError."""
        canonical, node = self._changeable(path, user, base)
        new_uid, new_gid = node.uid if uid is None else uid, node.gid if gid is None else gid
        if not user.is_root and (new_uid != node.uid or new_gid not in user.groups):
            raise error(errno.EPERM, path)
        self._meta[canonical] = _Meta(new_uid, new_gid, stat.S_IMODE(node.mode), self._shown_size(canonical))
        self.save()

    def touch(self, path: str, *, user: User = ROOT, base: str = "/") -> None:
        """Create an empty file, or set the times of an existing one to now. Raises OSError."""
        canonical = self.resolve(path, user=user, base=base)
        node = self.at(canonical)
        if node is None:
            self.write(path, b"", user=user, base=base)
            return
        self._require(node, user, 2, path)
        if node.real is None or node.read_only:
            raise error(errno.EROFS, path)
        os.utime(node.real)

    def disguise(self, path: str, size: int) -> None:
        """Let an (empty) file look `size` bytes big: the demo's models have no weights."""
        meta = self._meta.setdefault(path, _Meta())
        meta.size = size

    def own(self, path: str, uid: int, gid: int, mode: int | None = None) -> None:
        """Owner and mode of a file of the image, not saved yet."""
        meta = self._meta.setdefault(path, _Meta())
        meta.uid, meta.gid, meta.mode = uid, gid, mode

    # -- rights ---------------------------------------------------------------------------------------------

    def allows(self, node: Node, user: User, want: int) -> bool:
        """Whether `user` may read (4), write (2) or execute (1) the node."""
        if user.is_root:
            return want != 1 or node.is_dir or bool(node.mode & 0o111)
        shift = 6 if user.uid == node.uid else 3 if node.gid in user.groups else 0
        return bool(node.mode >> shift & want)

    def _require(self, node: Node, user: User, want: int, path: str) -> None:
        if not self.allows(node, user, want):
            raise error(errno.EACCES, path)

    def _require_writable_parent(self, canonical: str, user: User, path: str) -> None:
        parent = self.at(posixpath.dirname(canonical))
        if parent is None:
            raise error(errno.ENOENT, path)
        if not parent.is_dir:
            raise error(errno.ENOTDIR, path)
        self._require(parent, user, 2, path)
        self._require(parent, user, 1, path)
        if parent.real is None or parent.read_only or canonical in self.mounts:
            raise error(errno.EROFS, path)
        node = self.at(canonical)
        sticky = parent.mode & stat.S_ISVTX
        if sticky and node is not None and not user.is_root and user.uid not in (node.uid, parent.uid):
            raise error(errno.EPERM, path)

    def _changeable(self, path: str, user: User, base: str) -> tuple[str, Node]:
        canonical = self.resolve(path, user=user, base=base)
        node = self.at(canonical)
        if node is None:
            raise error(errno.ENOENT, path)
        if node.real is None or node.read_only:
            raise error(errno.EROFS, path)
        if not user.is_root and user.uid != node.uid:
            raise error(errno.EPERM, path)
        return canonical, node

    def _own(self, canonical: str, user: User, mode: int | None) -> None:
        self._meta[canonical] = _Meta(user.uid, user.gid, mode)
        self.save()

    def _shown_size(self, canonical: str) -> int | None:
        meta = self._meta.get(canonical)
        return meta.size if meta else None

    def _forget(self, canonical: str) -> None:
        self._meta.pop(canonical, None)
        self.save()


def made_up_file(
    path: str, content: Callable[[], bytes], *, uid: int = 0, gid: int = 0, mode: int = 0o444
) -> Node:
    """A file whose content is computed when it is read, as in /proc."""
    return Node(
        stat.S_IFREG | mode,
        uid,
        gid,
        0,
        time.time_ns(),
        zlib.crc32(path.encode()),
        1,
        content=content,
        read_only=True,
    )


def made_up_dir(path: str, names: Iterable[str], *, uid: int = 0, gid: int = 0, mode: int = 0o555) -> Node:
    """A folder whose names are computed, as in /proc."""
    fixed = list(names)
    return Node(
        stat.S_IFDIR | mode,
        uid,
        gid,
        0,
        time.time_ns(),
        zlib.crc32(path.encode()),
        2,
        names=lambda: list(fixed),
        read_only=True,
    )


def devices(path: str) -> Node | None:
    """The node at a path below /dev: there is only /dev/null."""
    if path == "/dev":
        return made_up_dir(path, ["null"], mode=0o755)
    if path != "/dev/null":
        return None
    return replace(made_up_file(path, lambda: b""), mode=stat.S_IFCHR | 0o666, mtime_ns=OLD_NS)


def made_up_link(path: str, target: str, *, uid: int = 0, gid: int = 0) -> Node:
    """A symbolic link as in /proc/PID/cwd."""
    return Node(
        stat.S_IFLNK | 0o777,
        uid,
        gid,
        0,
        time.time_ns(),
        zlib.crc32(path.encode()),
        1,
        target=target,
        read_only=True,
    )
