"""Setting or unsetting flags where they live, as file edits; every edit is read back before it is offered.

What stands in the unit or another's drop-in is changed by ddtui's own drop-in, which repeats it with one
token replaced; environment files, scripts, compose files, quadlets and SGLang's config file are edited in
place. For each turn several ways are tried, the least invasive first; the first whose result reads back
exactly as wanted is taken.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ddtui.host.unit import drop_in, edit, flags, layers, stale
from ddtui.host.unit.analysis import Analysis, UnitError, analyse
from ddtui.host.unit.drop_in import DropIn
from ddtui.host.unit.edit import Replacement
from ddtui.host.unit.environment import NAME, Variable
from ddtui.host.unit.flags import FlagTable, Occurrence
from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.syntax import Assignment
from ddtui.host.unit.text import Region, Text, Word
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.words import UnfitValue, quote

__all__ = ["FileEdit", "FlagTable", "UnitChange", "change_unit", "rebase"]

Turn = tuple[str, str, str | None]  # flag or variable, "set" or "unset", value


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after. `before` None: it does not exist yet; `after` None: it is removed."""

    path: str
    before: bytes | None
    after: bytes | None
    ours: bool  # ddtui's own drop-in (no backup) or the operator's file (backup beside it)
    like: str | None = None  # a new file gets the owner and mode of this one: what it repeats may be secret


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
    effective_flags_after: Mapping[str, flags.Value] | None = None  # with those of SGLang's --config file


class _Cannot(Exception):
    """A turn that cannot be made: one sentence."""


def change_unit(
    tree: Tree,
    reading: UnitReading,
    turns: Sequence[Turn],
    flag_table: FlagTable | None = None,
) -> UnitChange:
    """Set or unset flags: turns are (flag, "set" | "unset", value | None).

    A flag may also be the name of an environment variable (no leading dash). Several values are given in
    one text, apart by blanks. Changes nothing itself. Like `read_unit`, the answer counts only once the
    tree wants nothing.
    """
    changed = tree
    try:
        for flag, op, value in turns:
            changed = _turn(changed, reading, flag, op, value, flag_table)
    except (_Cannot, UnitError) as error:
        return UnitChange((), reading.launch_argv, reading.exec_start, "none", problems=(str(error),))
    return _result(tree, changed, reading, flag_table)


def rebase(tree: Tree, reading: UnitReading, flag_table: FlagTable | None = None) -> UnitChange:
    """Make ddtui's drop-in anew from what now stands below it, with the same turns in it."""
    found = analyse(tree, reading.asked, reading.scope, reading.facts, flag_table)
    file = drop_in.find(found.merged)
    if file is None:
        return _result(tree, tree, reading, flag_table)
    ours = drop_in.parse(file)
    changed = tree.with_files({file.path: None})
    try:
        for name in ours.turned:
            flag = name.removeprefix("!")
            op = "unset" if name.startswith("!") else "set"
            value: str | list[str] | None = None
            if op == "set" and not flag.startswith("-"):
                value = found.variables[flag].text if flag in found.variables else None
            elif op == "set":
                same = [o for o in found.occurrences if flags.same(o.name, flag, flag_table)]
                given = same[-1].value if same else None
                value = (
                    None
                    if given is True or given is None
                    else given
                    if isinstance(given, list)
                    else str(given)
                )
                op = "set" if same else "unset"
            changed = _turn(changed, reading, flag, op, value, flag_table)
    except (_Cannot, UnitError) as error:
        return UnitChange((), reading.launch_argv, reading.exec_start, "none", problems=(str(error),))
    return _result(tree, changed, reading, flag_table)


def _result(before: Tree, after: Tree, reading: UnitReading, table: FlagTable | None) -> UnitChange:
    found = analyse(after, reading.asked, reading.scope, reading.facts, table)
    known = after.known_files()
    edits: list[FileEdit] = []
    for path in sorted(known):
        old, new = before.read(path), known[path]
        if old != new:
            ours = drop_in.is_ours(path) and f"{found.merged.unit}.d/" in path
            edits.append(FileEdit(path, old, new, ours, _like(found) if old is None else None))
    kinds = {"drop-in" if one.ours else "edit" for one in edits}
    mechanism = "both" if len(kinds) == 2 else next(iter(kinds), "none")
    unit_files = {f.path for f in found.merged.files}
    quadlets = {f.path for f in (found.quadlet.file, *found.quadlet.drop_ins)} if found.quadlet else set()
    reload = any(one.ours or one.path in unit_files | quadlets for one in edits)
    return UnitChange(
        tuple(edits),
        found.launch.argv if found.launch else None,
        tuple(c.values for c in found.commands) if found.commands or found.merged.fragment else None,
        mechanism,
        _notes(found, edits),
        reload=reload,
        effective_flags_after=flags.values(found.occurrences) if found.config else None,
    )


def _like(found: Analysis) -> str | None:
    """The file that ddtui's drop-in repeats: the last that has a command, else the unit's own."""
    files = [f for f in found.merged.files if not drop_in.is_ours(f.path)]
    commands = [f.path for f in files if f.of("Service", "ExecStart")]
    return commands[-1] if commands else files[0].path if files else None


def _notes(found: Analysis, edits: Sequence[FileEdit]) -> tuple[str, ...]:
    notes: list[str] = []
    wrappers = found.launch.state.wrappers if found.launch else ()
    for one in edits:
        if one.ours:
            continue
        if one.path in found.environment_files:
            notes.append(f"{one.path} is read at each start: no daemon-reload is needed, only a restart")
        elif one.path.endswith(".container"):
            notes.append(f"the unit is generated anew from {one.path} by daemon-reload")
        elif "docker compose" in wrappers:
            service = (
                found.launch.state.compose["service"] if found.launch and found.launch.state.compose else ""
            )
            notes.append(
                f"a container keeps its command through a restart: `docker compose up -d {service}` "
                "makes it anew"
            )
        elif UnitName(found.merged.unit).instance and found.unit:
            notes.append(f"{one.path} is also read by the other instances of {UnitName(found.unit).template}")
    if found.merged.fragment is not None and (sentence := stale.judge(found)) is not None:
        notes.append(sentence)
    return tuple(dict.fromkeys(notes))


# -- one turn --------------------------------------------------------------------------------------------
def _turn(
    tree: Tree,
    reading: UnitReading,
    flag: str,
    op: str,
    value: str | list[str] | None,
    table: FlagTable | None,
) -> Tree:
    found = analyse(tree, reading.asked, reading.scope, reading.facts, table)
    if found.problems:
        raise _Cannot(f"the unit cannot be changed as it stands: {found.problems[0]}")
    if found.launch is None:
        raise _Cannot(
            f"no command that starts a server was found for {reading.asked}, so no flag can be changed"
        )
    if found.launch.engine != "sglang":
        raise _Cannot(f"this unit runs {found.launch.engine}, not SGLang: ddtui does not change it")
    if op not in ("set", "unset"):
        raise _Cannot(f"{op!r} is neither set nor unset")
    if flag.startswith("-"):
        return _Flag(tree, found, flag, table, reading).turn(op, value)
    if not NAME.match(flag):
        raise _Cannot(f"{flag!r} is neither a flag nor the name of an environment variable")
    return _Environment(tree, found, flag, table, reading).turn(op, value)


Attempt = Callable[[], Tree]


class _Turner:
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
        raise _Cannot(f"{self.name} cannot be changed where it stands in {self.place()}{reason}")

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


# -- flags -----------------------------------------------------------------------------------------------
class _Flag(_Turner):
    """One flag of the server."""

    def turn(self, op: str, value: str | list[str] | None) -> Tree:
        self.op = op
        here = [o for o in self.found.occurrences if flags.same(o.name, self.name, self.table)]
        spec = self.table.find(self.name) if self.table else None
        if op == "set" and spec is not None and spec.nargs == 0 and isinstance(value, str):
            op = self.op = "unset" if value.lower() in ("false", "no", "off", "0") else "set"
            value = None
        if op == "unset":
            return self.removed(here) if here else self.tree
        values = self.values(value, here)
        if not here:
            return self.added(values)
        last = here[-1]
        now = [Word(v, v, ()).value for v in last.values]
        if len(here) == 1 and now == values:
            return self.tree
        return self.replaced(here, values)

    def turned(self) -> str:
        return ("!" if self.op == "unset" else "") + self.name

    def values(self, value: str | list[str] | None, here: Sequence[Occurrence]) -> list[str]:
        """The flag's values as words."""
        if value is None:
            return []
        if isinstance(value, list):
            return value
        several = flags.takes_several(self.name, self.table)
        if self.table is None or self.table.find(self.name) is None:
            several = several or (bool(here) and len(here[-1].values) > 1)
        if not several or value.lstrip().startswith(("{", "[")):
            return [value]
        try:
            return shlex.split(value)
        except ValueError:
            return value.split()

    def wanted(self, spans: Sequence[tuple[int, int, list[str]]]) -> list[str]:
        """The engine's arguments once these stretches of words are others."""
        values = [w.value for w in self.found.words]
        for start, end, new in sorted(spans, reverse=True):
            values[start:end] = new
        return values

    def right(self, wanted: list[str]) -> Callable[[Analysis], bool]:
        def check(after: Analysis) -> bool:
            return [w.value for w in after.words] == wanted

        return check

    def words(self, one: Occurrence) -> list[Word]:
        return list(self.found.words[one.start : one.end])

    def removed(self, here: Sequence[Occurrence]) -> Tree:
        wanted = self.wanted([(o.start, o.end, []) for o in here])
        gone = [word for one in here for word in self.words(one)]

        def attempts() -> Iterator[Attempt]:
            yield lambda: self.apply(self.removals(gone))

        return self.first_right(attempts(), self.right(wanted))

    def removals(self, words: Sequence[Word]) -> list[Replacement]:
        """Words go. In a config file the whole entry goes with its flag."""
        entries = [w.place for w in words if w.style == "entry"]
        kept = [
            w
            for w in words
            if w.style == "entry"
            or not any(
                e and (p := w.place) and e.file == p.file and e.start <= p.start < e.end for e in entries
            )
        ]
        return edit.remove(self.tree, [(self.to_remove(word, words), word.style) for word in kept])

    def to_remove(self, word: Word, words: Sequence[Word]) -> Region:
        """Of a variable's value: the variable's name, if all of its words go, else the word in the value."""
        standing, place = word.standing, word.place
        if standing is not None and standing != place:
            siblings = [w for w in self.found.words if w.standing == standing]
            if all(any(w is one for one in words) for w in siblings):
                return standing
        if place is None or not place.file:
            raise UnfitValue("it is pieced together from several places")
        return place

    def replaced(self, here: Sequence[Occurrence], values: list[str]) -> Tree:
        last, others = here[-1], here[:-1]
        words = self.words(last)
        gone = [word for one in others for word in self.words(one)]
        name = last.name
        equals = last.equals and len(values) == 1
        new = [f"{name}={values[0]}"] if equals else [name, *values]
        spans = [(o.start, o.end, list[str]()) for o in others]
        wanted = self.wanted([*spans, (last.start, last.end, new)])

        def removals() -> list[Replacement]:
            return self.removals(gone) if gone else []

        def attempts() -> Iterator[Attempt]:
            if equals:
                yield from self.one_value(last.values[0], words[0], values[0], new[0], removals)
            elif not last.equals and len(values) == len(words) - 1:
                yield from self.each_value(words[1:], last.values, values, removals)
            else:
                yield lambda: self.apply([*removals(), *self.regrouped(words, new, last)])

        return self.first_right(attempts(), self.right(wanted))

    def one_value(
        self, text: Text, word: Word, value: str, whole: str, removals: Callable[[], list[Replacement]]
    ) -> Iterator[Attempt]:
        if self.alone(text):
            if (name := self.default_name(text)) is not None:
                yield lambda: self.by_default(name, value, removals())
            yield lambda: self.apply([*removals(), edit.write_text(self.tree, text, value)])
        yield lambda: self.apply([*removals(), edit.write(self.tree, word, whole)])

    def each_value(
        self,
        words: Sequence[Word],
        texts: Sequence[Text],
        values: Sequence[str],
        removals: Callable[[], list[Replacement]],
    ) -> Iterator[Attempt]:
        """As many values as before: each in its own place."""
        if len(values) == 1 and self.alone(texts[0]) and (name := self.default_name(texts[0])) is not None:
            yield lambda: self.by_default(name, values[0], removals())
        triples = [
            (w, t, v) for w, t, v in zip(words, texts, values, strict=True) if Word(t, t, ()).value != v
        ]
        if all(self.alone(t) for _, t, _ in triples):
            yield lambda: self.apply(
                [*removals(), *(edit.write_text(self.tree, t, v) for _, t, v in triples)]
            )
        yield lambda: self.apply([*removals(), *(edit.write(self.tree, w, v) for w, _, v in triples)])

    def alone(self, text: Text) -> bool:
        """Whether a value's own place may be changed: it is not shared with other instances of a template."""
        mark = text.marks[0] if text.marks else None
        if mark is None or not UnitName(self.found.merged.unit).instance:
            return True
        shared = any(v.file == mark.file and not v.specific for v in self.found.variables.values())
        return not shared

    def default_name(self, text: Text) -> str | None:
        """The variable that would replace a value which a script only falls back to."""
        names = {m.default_of if m is not None else None for m in text.marks}
        name = next(iter(names), None)
        inside = self.launch.state.container is not None
        return name if len(names) == 1 and name and not inside and name not in self.found.variables else None

    def by_default(self, name: str, value: str, removals: list[Replacement]) -> Tree:
        if removals:
            raise UnfitValue("the flag stands more than once")
        word = quote(f"{name}={value}".replace("%", "%%"))
        return self.with_ours(self.tree, self.with_variable(self.ours(), name, word))

    def regrouped(self, words: Sequence[Word], new: Sequence[str], last: Occurrence) -> list[Replacement]:
        """Another number of values: those that stay are written, the rest is added or removed."""
        if last.equals:
            first = edit.write(self.tree, words[0], new[0])
            return [first, *([edit.append(self.tree, words[0], new[1:])] if len(new) > 1 else [])]
        if words[0].style == "entry":
            return self.config_values(words, new[1:])
        kept = min(len(words), len(new))
        made = [
            edit.write(self.tree, w, v)
            for w, v in zip(words[1:kept], new[1:kept], strict=True)
            if w.value != v
        ]
        if len(words) > kept:
            made += self.removals(words[kept:])
        if len(new) > kept:
            made.append(edit.append(self.tree, words[kept - 1], new[kept:], inside=True))
        return made

    def config_values(self, words: Sequence[Word], values: Sequence[str]) -> list[Replacement]:
        """An entry of SGLang's config file gets another number of values."""
        place = words[0].place
        if place is None:
            raise UnfitValue("it is pieced together from several places")
        key = words[0].text.value.removeprefix("--")
        written = [layers.encode(v, ("yaml:bare",)) for v in values]
        shown = "true" if not written else written[0] if len(written) == 1 else f"[{', '.join(written)}]"
        return [Replacement(place.file, place.start, place.end, f"{key}: {shown}")]

    def added(self, values: list[str]) -> Tree:
        dash = len(values) == 1 and values[0].startswith("-") and flags.is_flag(values[0])
        new = [f"{self.name}={values[0]}"] if dash else [self.name, *values]
        end = len(self.found.words)
        wanted = self.wanted([(end, end, new)])

        def attempts() -> Iterator[Attempt]:
            yield lambda: self.apply([edit.append(self.tree, self.launch.state.tail, new)])
            last = self.launch.words[-1]
            yield lambda: self.apply([edit.append(self.tree, last, new)])

        return self.first_right(attempts(), self.right(wanted))


# -- environment variables -------------------------------------------------------------------------------
class _Environment(_Turner):
    """One variable of the server's environment."""

    def turn(self, op: str, value: str | list[str] | None) -> Tree:
        self.op = op
        if isinstance(value, list):
            value = " ".join(value)
        given = self.launch.state.environment.get(self.name)
        wanted = (value or "") if op == "set" else None
        if (given.text if given is not None else None) == wanted:
            return self.tree
        words = [w.value for w in self.found.words]

        def right(after: Analysis) -> bool:
            assert after.launch is not None
            now = after.launch.state.environment.get(self.name)
            same = [w.value for w in after.words] == words
            return (now.text if now is not None else None) == wanted and (same or self.used())

        return self.first_right(self.attempts(given, wanted), right)

    def used(self) -> bool:
        """Whether the command line rests on the variable, so that it follows it."""
        name = self.name
        return any(f"${name}" in c or f"${{{name}" in c for c in self.sources())

    def sources(self) -> Iterator[str]:
        for command in self.found.commands:
            yield command.assignment.value.value
        for data in self.tree.known_files().values():
            yield (data or b"").decode("utf-8", "replace")

    def turned(self) -> str:
        return ("!" if self.op == "unset" else "") + self.name

    def attempts(self, given: Variable | None, wanted: str | None) -> Iterator[Attempt]:
        inside = self.launch.state.container is not None
        if wanted is None:
            if not inside:
                yield lambda: self.with_ours(self.tree, self.without())
            return
        if given is not None and given.kind != "base":
            yield lambda: self.apply([edit.write_text(self.tree, given.value, wanted)])
            if given.raw:
                bare = ("env-file:bare",) if given.kind == "environment-file" else ("dotenv:bare",)
                yield lambda: self.apply([edit.write(self.tree, Word(given.value, given.raw, bare), wanted)])
        if not inside:
            word = quote(f"{self.name}={wanted}".replace("%", "%%"))
            yield lambda: self.with_ours(self.tree, self.with_variable(self.ours(), self.name, word))

    def without(self) -> DropIn:
        ours = self.ours()
        environment = {n: w for n, w in ours.environment.items() if n != self.name}
        origins = {n: o for n, o in ours.origins.items() if n != self.name}
        unset = ours.unset if self.name in ours.unset else (*ours.unset, self.name)
        return replace(ours, environment=environment, origins=origins, unset=unset)
