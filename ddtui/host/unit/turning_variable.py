"""Setting or unsetting one variable of the server's environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ddtui.host.unit import edit
from ddtui.host.unit.analysis import Analysis
from ddtui.host.unit.drop_in import DropIn
from ddtui.host.unit.environment import Variable
from ddtui.host.unit.text import Word
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.turning import Attempt, Turner
from ddtui.host.unit.words import quote


class VariableTurner(Turner):
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
