"""Making one turn: ways are tried, and the first whose result reads back as wanted is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ddtui.host.unit import drop_in, edit, stale
from ddtui.host.unit.analysis import Analysis, UnitError, analyse
from ddtui.host.unit.drop_in import DropIn
from ddtui.host.unit.edit import Replacement
from ddtui.host.unit.environment import Variable
from ddtui.host.unit.flags import FlagTable
from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.syntax import Assignment
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.words import UnfitValue


class Cannot(Exception):
    """A turn that cannot be made: one sentence."""


Attempt = Callable[[], Tree]


class Turner:
    """Tries ways until one reads back as wanted."""

    def __init__(
        self, tree: Tree, found: Analysis, name: str, table: FlagTable | None, reading: UnitReading
    ) -> None:
        self.tree, self.found, self.name, self.table, self.reading = tree, found, name, table, reading
        assert found.launch is not None
        self.launch = found.launch

    def first_right(self, attempts: Iterator[Attempt], right: Callable[[Analysis], bool]) -> Tree:
        why = ""
        for attempt in attempts:
            try:
                changed = attempt()
                after = self.analyse(changed)
            except (UnfitValue, UnitError) as error:
                why = why or str(error)
                continue
            if changed.wanted and not self.tree.wanted:
                self.note_wanted(changed)
                continue
            if not after.problems and after.launch is not None and right(after):
                return self.simplified(changed, after)
        reason = f": {why}" if why else ": no edit of its own reads back as wanted"
        raise Cannot(f"{self.name} cannot be changed where it stands in {self.place()}{reason}")

    def note_wanted(self, changed: Tree) -> None:
        for kind in ("files", "programs", "folders", "kinds", "links"):
            getattr(self.tree.wanted, kind).update(getattr(changed.wanted, kind))

    def analyse(self, tree: Tree) -> Analysis:
        return analyse(tree, self.reading.asked, self.reading.scope, self.reading.facts, self.table)

    def place(self) -> str:
        mark = next(
            (m for w in self.launch.words for m in (*w.text.marks, *w.raw.marks) if m and m.file), None
        )
        return mark.file if mark else "the unit"

    # -- writing ------------------------------------------------------------------------------------------
    def apply(self, changes: Sequence[Replacement]) -> Tree:
        """The tree with the replacements made: in ddtui's drop-in for what stands in units, else in place."""
        in_place: list[Replacement] = []
        by_setting: dict[int, tuple[Assignment, list[Replacement]]] = {}
        for one in changes:
            setting = self.setting(one)
            if setting is None:
                in_place.append(one)
            else:
                by_setting.setdefault(id(setting), (setting, []))[1].append(one)
        tree = edit.in_files(self.tree, in_place) if in_place else self.tree
        if not by_setting:
            return tree
        ours = self.ours()
        for setting, changed in by_setting.values():
            ours = self.overridden(ours, setting, changed)
        return self.with_ours(tree, ours)

    def setting(self, change: Replacement) -> Assignment | None:
        """The unit file's assignment that a replacement falls into (what it tidies may reach beyond).

        Raises UnfitValue for another part of a unit file: those are never edited.
        """
        for file in self.found.merged.files:
            if file.path != change.file:
                continue
            for setting in file.assignments:
                first = setting.value.marks[0] if setting.value.marks else None
                last = setting.value.marks[-1] if setting.value.marks else None
                if first and last and first.start <= change.start <= last.end:
                    return setting
            raise UnfitValue("it stands in no setting of the unit")
        return None

    def overridden(self, ours: DropIn, setting: Assignment, changes: list[Replacement]) -> DropIn:
        if setting.key == "ExecStart":
            settings = self.found.merged.settings("ExecStart")
            values = tuple(
                edit.in_value(s.value, changes) if s is setting else s.value.value for s in settings
            )
            origins = {**ours.origins}
            if not ours.exec_start:
                origins["ExecStart"] = drop_in.origin_of(settings)
            return replace(ours, exec_start=values, origins=origins)
        if setting.key != "Environment":
            raise UnfitValue(f"it stands in {setting.key}=")
        variable = next((v for v in self.found.variables.values() if self.holds(v, changes)), None)
        if variable is None or variable.word is None:
            raise UnfitValue("it is not the value that counts")
        return self.with_variable(ours, variable.name, edit.in_value(variable.word.raw, changes))

    def holds(self, variable: Variable, changes: list[Replacement]) -> bool:
        place = variable.word.place if variable.word else None
        return place is not None and all(
            place.file == c.file and place.start <= c.start and c.end <= place.end for c in changes
        )

    def with_variable(self, ours: DropIn, name: str, word: str) -> DropIn:
        origins = {**ours.origins}
        if name not in ours.environment:
            origins[name] = drop_in.origin_of_variable(stale.below(self.found), name)
        unset = tuple(n for n in ours.unset if n != name)
        return replace(ours, environment={**ours.environment, name: word}, origins=origins, unset=unset)

    def ours(self) -> DropIn:
        """ddtui's drop-in as it is, or an empty one."""
        file = drop_in.find(self.found.merged)
        if file is not None:
            return drop_in.parse(file)
        if not self.found.unit or self.found.quadlet:
            raise UnfitValue("there is no unit whose drop-in could hold it")
        if self.found.scope == "user" and self.found.facts.home is None:
            raise UnfitValue("the home folder of the unit's user is not known")
        return DropIn("")

    def with_ours(self, tree: Tree, ours: DropIn) -> Tree:
        """The tree with this drop-in, under a name that sorts after all others."""
        path = drop_in.choose_path(self.found.merged, self.found.facts)
        turned = tuple(t for t in ours.turned if t.removeprefix("!") != self.name)
        ours = replace(ours, turned=(*turned, self.turned()))
        files: dict[str, bytes | None] = {}
        if ours.path and ours.path != path:
            files[ours.path] = None
        files[path] = None if ours.empty else ours.render()
        return tree.with_files(files)

    def turned(self) -> str:
        return self.name

    def simplified(self, tree: Tree, after: Analysis) -> Tree:
        """The same without the parts of ddtui's drop-in that say what stands below it anyway."""
        file = drop_in.find(after.merged)
        if file is None:
            return tree
        ours = drop_in.parse(file)
        for smaller in _smaller(ours):
            if smaller.empty:
                trial = tree.with_files({file.path: None})
            else:
                trial = tree.with_files({file.path: smaller.render()})
            left_out = set(ours.environment) - set(smaller.environment) - set(ours.turned)
            if _alike(self.analyse(trial), after, left_out):
                return trial
        return tree


def _smaller(ours: DropIn) -> Iterator[DropIn]:
    """The drop-in with parts left out, the emptiest first."""
    names = [*ours.environment, *(("ExecStart",) if ours.exec_start else ()), *(f"-{n}" for n in ours.unset)]
    for size in range(len(names) + 1):
        if size == len(names):
            return
        kept_sets = [names[i : i + size] for i in range(len(names))] if size else [[]]
        for kept in kept_sets:
            environment = {n: w for n, w in ours.environment.items() if n in kept}
            exec_start = ours.exec_start if "ExecStart" in kept else ()
            unset = tuple(n for n in ours.unset if f"-{n}" in kept)
            origins = {n: o for n, o in ours.origins.items() if n in kept}
            turned = ours.turned if kept else ()
            yield replace(
                ours,
                exec_start=exec_start,
                environment=environment,
                unset=unset,
                origins=origins,
                turned=turned,
            )


def _alike(one: Analysis, other: Analysis, left_out: set[str]) -> bool:
    """Whether two states are the same to systemd and to the server, with the same text still alive in them.

    `left_out`: variables that may be missing in `one` if the server gets the same arguments without them.
    """
    if one.problems or one.launch is None or other.launch is None:
        return False
    raw = [[[w.raw.value for w in c.argv] for c in found.commands] for found in (one, other)]
    mine, others = ({n: v.text for n, v in found.variables.items()} for found in (one, other))
    for name in left_out - set(mine):
        others.pop(name, None)
    return raw[0] == raw[1] and mine == others and one.launch.argv == other.launch.argv
