"""Setting or unsetting flags where they live, as file edits; every edit is read back before it is offered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.tree import Tree


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after. `before` None: it does not exist yet; `after` None: it is removed."""

    path: str
    before: bytes | None
    after: bytes | None
    ours: bool  # ddtui's own drop-in (no backup) or the operator's file (backup beside it)


@dataclass(frozen=True, slots=True)
class UnitChange:
    """What a change of flags does to the host's files."""

    edits: tuple[FileEdit, ...]
    launch_argv_after: tuple[str, ...] | None
    exec_start_after: tuple[tuple[str, ...], ...] | None
    mechanism: str  # "drop-in", "edit", "both", "none"
    notes: tuple[str, ...] = ()  # what to know: how it takes effect, who else reads the file
    problems: tuple[str, ...] = ()  # why it cannot be done: each a sentence; then there are no edits
    reload: bool = False  # systemd must daemon-reload for it


class FlagSpec(Protocol):
    """One flag of the installed SGLang."""

    @property
    def names(self) -> tuple[str, ...]: ...  # every spelling, the canonical one first

    @property
    def nargs(self) -> str | int | None: ...  # None: one value; 0: a switch; "?", "*", "+", or a number


class FlagTable(Protocol):
    """The flags of the installed SGLang, as far as this room needs them. The engine room's has this shape."""

    def find(self, name: str) -> FlagSpec | None: ...  # exact or a unique prefix; None: unknown


def change_unit(
    tree: Tree,
    reading: UnitReading,
    turns: Sequence[tuple[str, str, str | None]],
    flag_table: FlagTable | None = None,
) -> UnitChange:
    """Set or unset flags: turns are (flag, "set" | "unset", value | None).

    A flag may also be the name of an environment variable (no leading dash). Changes nothing itself. Like
    `read_unit`, the answer counts only once the tree wants nothing more.
    """
    raise NotImplementedError
