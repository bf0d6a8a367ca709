"""Fetching what pure code wants of a host's files, in one round trip.

Commands: `head -c N -- FILE` for contents, `ls -1A -- FOLDER…` for names, `stat -L -c '%.9Y %F %n' --
FILE…` for times and kinds, `readlink -- LINK` for links.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ddtui.host.base import Command, Completed
from ddtui.host.unit.tree import FILE_LIMIT, PROGRAM_LIMIT, Tree, Wanted

STAT = "%.9Y %F %n"


@dataclass(slots=True)
class Fetched:
    """What came back of one request."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: dict[str, str | None] = field(default_factory=dict)
    links: dict[str, str | None] = field(default_factory=dict)
    changed_at: dict[str, float] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)  # may not be read by this user

    def into(self, tree: Tree) -> Tree:
        return tree.with_known(self.files, self.folders, self.kinds, self.links)


@dataclass(frozen=True, slots=True)
class Request:
    """Paths to fetch, as commands in a fixed order."""

    files: tuple[tuple[str, int], ...]  # path and how many bytes of it
    folders: tuple[str, ...] = ()
    looked_at: tuple[str, ...] = ()  # paths whose kind and time are asked for
    links: tuple[str, ...] = ()
    sudo: bool = False

    @classmethod
    def of(cls, wanted: Wanted, *, times: Iterable[str] = (), sudo: bool = False) -> Request:
        """What a tree wants; the times of the files that are read come with them."""
        files = [(path, FILE_LIMIT) for path in sorted(wanted.files)]
        files += [(path, PROGRAM_LIMIT) for path in sorted(wanted.programs - wanted.files)]
        looked_at = dict.fromkeys([*sorted(wanted.kinds), *(path for path, _ in files), *times])
        return cls(
            tuple(files), tuple(sorted(wanted.folders)), tuple(looked_at), tuple(sorted(wanted.links)), sudo
        )

    def commands(self) -> list[Command]:
        made = []
        if self.looked_at:  # before the files: what changes meanwhile has another time at the next look
            made.append(Command(("stat", "-L", "-c", STAT, "--", *self.looked_at)))
        made += [Command(("head", "-c", str(size), "--", path), sudo=self.sudo) for path, size in self.files]
        if self.folders:
            # a second folder that is never there: `ls` then heads each list with its folder's name
            made.append(Command(("ls", "-1A", "--", *self.folders, "/dev/null")))
        return made + [Command(("readlink", "--", path)) for path in self.links]

    def read(self, done: Sequence[Completed]) -> Fetched:
        """The answers to `commands`, in their order."""
        fetched = Fetched()
        answers = iter(done)
        if self.looked_at:
            _looked_at(self.looked_at, next(answers).stdout, fetched)
        for path, size in self.files:
            one = next(answers)
            fetched.files[path] = one.stdout if one.ok and len(one.stdout) <= size else None
            if not one.ok and ("ermission denied" in one.err or one.err.startswith("sudo:")):
                fetched.denied.add(path)
        if self.folders:
            fetched.folders = _folders(self.folders, next(answers).stdout)
        for path in self.links:
            one = next(answers)
            target = one.stdout.removesuffix(b"\n").decode("utf-8", "surrogateescape") if one.ok else ""
            absolute = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else None
            fetched.links[path] = absolute
        return fetched


def _folders(folders: Sequence[str], output: bytes) -> dict[str, tuple[str, ...]]:
    """`ls` of several folders: each begins with `FOLDER:`; those that are not there are left out."""
    found: dict[str, list[str]] = {folder: [] for folder in folders}
    current: list[str] | None = None
    begins = True  # a heading comes first, and after a blank line
    for line in output.decode("utf-8", "surrogateescape").split("\n"):
        if begins and line.endswith(":") and line[:-1] in found:
            current = found[line[:-1]]
        elif line and current is not None:
            current.append(line)
        begins = not line or (begins and line == "/dev/null")
    return {folder: tuple(names) for folder, names in found.items()}


_KINDS = {"regular file": "file", "regular empty file": "file", "directory": "folder"}


def _looked_at(paths: Sequence[str], output: bytes, fetched: Fetched) -> None:
    fetched.kinds = dict.fromkeys(paths)
    for path in paths:
        marker = f" {path}\n".encode("utf-8", "surrogateescape")
        for start in _lines_ending_with(output, marker):
            time, _, kind = start.partition(" ")
            try:
                fetched.changed_at[path] = float(time)
            except ValueError:
                continue
            fetched.kinds[path] = _KINDS.get(kind, "other")


def _lines_ending_with(output: bytes, marker: bytes) -> Iterable[str]:
    for line in output.splitlines(keepends=True):
        if line.endswith(marker):
            yield line[: -len(marker)].decode("utf-8", "replace")
