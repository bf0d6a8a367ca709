"""A small host as a dictionary of files, for tests of pure code."""

from __future__ import annotations

from collections.abc import Mapping

from ddtui.host.unit.change import UnitChange
from ddtui.host.unit.tree import Tree


class Offline(Tree):
    """A tree over a dictionary: what is not in it is not on the host. `links` are symbolic links."""

    def __init__(
        self, files: Mapping[str, bytes | str | None], links: Mapping[str, str] | None = None
    ) -> None:
        content = {p: c.encode() if isinstance(c, str) else c for p, c in files.items()}
        self.known_links = dict(links or {})
        for link, target in self.known_links.items():
            content[link] = b"" if target == "/dev/null" else content.get(target)
        folders: dict[str, set[str]] = {}
        for path, data in content.items():
            folder, _, name = path.rpartition("/")
            if data is not None:
                folders.setdefault(folder, set()).add(name)
        super().__init__(content, {f: tuple(n) for f, n in folders.items()})

    def read(self, path: str) -> bytes | None:
        found = super().read(path)
        self.wanted.files.clear()
        return found

    def program(self, path: str) -> bytes | None:
        return self.read(path)

    def list(self, folder: str) -> list[str]:
        found = super().list(folder)
        self.wanted.folders.clear()
        return found

    def kind(self, path: str) -> str | None:
        found = super().kind(path)
        self.wanted.kinds.clear()
        return found

    def link(self, path: str) -> str | None:
        return self.known_links.get(path)

    def with_files(self, files: Mapping[str, bytes | None]) -> Offline:
        return Offline({**self._files, **files}, self.known_links)

    def after(self, change: UnitChange) -> Offline:
        """The host once a change is made."""
        assert change.problems == (), change.problems
        return self.with_files({edit.path: edit.after for edit in change.edits})
