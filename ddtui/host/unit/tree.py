"""A snapshot of a host's files, for pure code.

What is asked for and not there is noted, and answered as absent. A caller loops: run the pure code, fetch
what is `wanted` in one batch, run it again on the larger tree, until nothing is wanted any more.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM_LIMIT = 262_144  # bytes of an unknown program that are looked at, to see whether it is a script
FILE_LIMIT = 4_194_304  # bytes of any other file


@dataclass(slots=True)
class Wanted:
    """What the pure code asked for and the tree does not know."""

    files: set[str] = field(default_factory=set)  # whole contents
    programs: set[str] = field(default_factory=set)  # only the first PROGRAM_LIMIT bytes
    folders: set[str] = field(default_factory=set)  # the names in it
    kinds: set[str] = field(default_factory=set)  # whether it is there, and what it is
    links: set[str] = field(default_factory=set)  # where a symbolic link leads

    def __bool__(self) -> bool:
        return bool(self.files or self.programs or self.folders or self.kinds or self.links)


class Tree:
    """Files of a host by absolute path. Made with what is known; `with_files` gives a changed copy."""

    def __init__(
        self,
        files: Mapping[str, bytes | None] | None = None,
        folders: Mapping[str, tuple[str, ...]] | None = None,
        kinds: Mapping[str, str | None] | None = None,
        links: Mapping[str, str | None] | None = None,
    ) -> None:
        self._files: dict[str, bytes | None] = dict(files or {})
        self._folders: dict[str, tuple[str, ...]] = dict(folders or {})
        self._kinds: dict[str, str | None] = dict(kinds or {})
        self._links: dict[str, str | None] = dict(links or {})
        self._root: Path | None = None
        self.wanted = Wanted()

    @classmethod
    def from_root(cls, root: Path) -> Tree:
        """A tree over a local folder that is shaped like a host's root. Nothing is ever wanted of it."""
        tree = cls()
        tree._root = root.resolve()
        return tree

    @property
    def partial(self) -> bool:
        """Whether a file that is not here may well be on the host: a copied folder holds only some."""
        return self._root is not None

    def find(self, suffixes: tuple[str, ...], limit: int = 20_000) -> list[str]:
        """Every file whose name ends so, in a tree over a local folder; else only those already known."""
        if self._root is None:
            return sorted(p for p, data in self._files.items() if data is not None and p.endswith(suffixes))
        found: list[str] = []
        for seen, (folder, _, names) in enumerate(os.walk(self._root)):
            if seen > limit:
                break
            inside = "/" + str(Path(folder).relative_to(self._root)).removeprefix(".")
            found += [posixpath.normpath(f"{inside}/{name}") for name in names if name.endswith(suffixes)]
        return sorted(found)

    def read(self, path: str) -> bytes | None:
        """The content of a file, links followed; None: it is not there, or is no file, or cannot be read."""
        path = posixpath.normpath(path)
        if path not in self._files:
            if self._root is None:
                self.wanted.files.add(path)
                return None
            self._files[path] = self._load(path)
        return self._files[path]

    def program(self, path: str) -> bytes | None:
        """The content of an executable if it may be a script; a long binary need not be fetched whole."""
        path = posixpath.normpath(path)
        if path in self._files or self._root is not None:
            return self.read(path)
        self.wanted.programs.add(path)
        return None

    def list(self, folder: str) -> list[str]:
        """The names in a folder, sorted; empty if there is none."""
        folder = posixpath.normpath(folder)
        if folder not in self._folders:
            if self._root is None:
                self.wanted.folders.add(folder)
                return []
            self._folders[folder] = self._names(folder)
        return sorted(self._folders[folder])

    def kind(self, path: str) -> str | None:
        """`file`, `folder` or `other`, links followed; None: not there. No content is read."""
        path = posixpath.normpath(path)
        if self._files.get(path) is not None:
            return "file"
        if path not in self._kinds:
            if self._root is None:
                if self._folders.get(path):
                    return "folder"
                self.wanted.kinds.add(path)
                return None
            self._kinds[path] = _kind(self._resolve(path))
        return self._kinds[path]

    def link(self, path: str) -> str | None:
        """Where a symbolic link leads, as an absolute path; None: it is no link."""
        path = posixpath.normpath(path)
        if path not in self._links:
            if self._root is None:
                self.wanted.links.add(path)
                return None
            here = self._root / path.lstrip("/")
            target = str(here.readlink()) if here.is_symlink() else None
            self._links[path] = target and posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        return self._links[path]

    def with_files(self, files: Mapping[str, bytes | None]) -> Tree:
        """A copy in which these files have this content; None: they are gone. Folders follow."""
        tree = Tree(self._files, self._folders, self._kinds, self._links)
        tree._root = self._root
        for name, content in files.items():
            path = posixpath.normpath(name)
            folder, leaf = posixpath.split(path)
            known = set(tree.list(folder))
            tree._folders[folder] = tuple(sorted(known | {leaf} if content is not None else known - {leaf}))
            tree._files[path] = content
            tree._kinds[path] = None if content is None else "file"
        return tree

    def with_known(
        self,
        files: Mapping[str, bytes | None],
        folders: Mapping[str, tuple[str, ...]],
        kinds: Mapping[str, str | None],
        links: Mapping[str, str | None],
    ) -> Tree:
        """A copy that also knows these, as fetched from the host."""
        return Tree(
            {**self._files, **files},
            {**self._folders, **folders},
            {**self._kinds, **kinds},
            {**self._links, **links},
        )

    def known_files(self) -> dict[str, bytes | None]:
        """Every file that was asked for, with its content; None: it was not there."""
        return dict(self._files)

    def _resolve(self, path: str, depth: int = 0) -> Path | None:
        """The real place of a path under the root; links are the host's own and never lead out of it."""
        assert self._root is not None
        here, at = self._root, "/"
        parts = [part for part in path.split("/") if part]
        for i, part in enumerate(parts):
            here, at = here / part, posixpath.join(at, part)
            if here.is_symlink():
                if depth > 40:
                    return None
                target = posixpath.join(posixpath.dirname(at), str(here.readlink()), *parts[i + 1 :])
                return self._resolve(posixpath.normpath(target), depth + 1)
        return here

    def _load(self, path: str) -> bytes | None:
        if path == "/dev/null":
            return b""
        here = self._resolve(path)
        if here == Path(f"{self._root}/dev/null"):  # a masking link; the copied root has no devices
            return b""
        try:
            if here is None or not stat.S_ISREG(here.stat().st_mode):
                return None
            with here.open("rb") as file:
                return file.read(FILE_LIMIT)
        except OSError:
            return None

    def _names(self, folder: str) -> tuple[str, ...]:
        here = self._resolve(folder)
        try:
            return tuple(child.name for child in here.iterdir()) if here else ()
        except OSError:
            return ()


def _kind(here: Path | None) -> str | None:
    try:
        mode = here.stat().st_mode if here else 0
    except OSError:
        return None
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other" if mode else None
