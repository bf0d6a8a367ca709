"""Setting or unsetting one flag of the server."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

from ddtui.host.unit import edit, flags, layers
from ddtui.host.unit.analysis import Analysis
from ddtui.host.unit.edit import Replacement
from ddtui.host.unit.flags import Occurrence
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.text import Region, Text, Word
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.turning import Attempt, Turner
from ddtui.host.unit.words import UnfitValue, quote


class FlagTurner(Turner):
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
