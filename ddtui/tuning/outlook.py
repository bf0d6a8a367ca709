"""What the unit will say after a change: the host room's pure code, fed until it wants no more files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ddtui.engine.flags import FlagTable
from ddtui.host.base import CommandFailed, Host
from ddtui.host.fetch import Request
from ddtui.host.service import ServiceReading
from ddtui.host.unit.change import FileEdit, UnitChange, change_unit, rebase
from ddtui.host.unit.read import UnitError, UnitReading, read_unit
from ddtui.host.unit.tree import Tree

T = TypeVar("T")
ROUNDS = 8  # how often files that lead to further files are followed


async def of_turns(
    host: Host,
    service: ServiceReading,
    turns: Sequence[tuple[str, str, str | None]],
    table: FlagTable | None,
) -> UnitChange:
    """The edits that set or unset these flags. Usually no round trip: the files are in the reading.

    A drop-in of ddtui's own that has gone stale is made anew first, from what stands below it now.
    """
    unit = service.unit
    assert unit is not None
    if unit.stale is None:
        return await _settled(host, service.tree, lambda tree: change_unit(tree, unit, turns, table))
    anew = await _settled(host, service.tree, lambda tree: rebase(tree, unit, table))
    if anew.problems:
        return anew
    rebased = service.tree.with_files({edit.path: edit.after for edit in anew.edits})
    after = await _settled(host, rebased, lambda tree: _read(tree, unit))
    change = await _settled(host, rebased, lambda tree: change_unit(tree, after, turns, table))
    if change.problems:
        return change
    return replace(change, edits=_joined(anew.edits, change.edits), notes=(*anew.notes, *change.notes))


def _joined(first: Sequence[FileEdit], then: Sequence[FileEdit]) -> tuple[FileEdit, ...]:
    """Two rounds of edits as one: the contents before the first, and after the last."""
    edits = {edit.path: edit for edit in first}
    for edit in then:
        known = edits.get(edit.path)
        edits[edit.path] = replace(known, after=edit.after) if known else edit
    return tuple(edit for edit in edits.values() if edit.before != edit.after)


def _read(tree: Tree, unit: UnitReading) -> UnitReading:
    return read_unit(tree, unit.asked, unit.scope, unit.facts, unit.knobs)


async def of_files(host: Host, service: ServiceReading, contents: Mapping[str, bytes | None]) -> UnitReading:
    """The unit as it reads once these files have these contents. CommandFailed if it cannot be read."""
    unit = service.unit
    assert unit is not None
    try:
        return await _settled(host, service.tree.with_files(contents), lambda tree: _read(tree, unit))
    except UnitError as error:
        raise CommandFailed(str(error)) from None


async def _settled(host: Host, tree: Tree, act: Callable[[Tree], T]) -> T:
    """What `act` gives once the tree holds every file that it asks for."""
    for _ in range(ROUNDS):
        tree = tree.with_known({}, {}, {}, {})  # nothing wanted yet
        found = act(tree)
        if not tree.wanted:
            return found
        request = Request.of(tree.wanted)
        tree = request.read(await host.batch(request.commands())).into(tree)
    return act(tree)
