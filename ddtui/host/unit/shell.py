"""Following a shell script to the server that it starts, without running anything.

Variables, arrays, functions, conditions and loops are evaluated over text that remembers where it stands.
What only running the script could tell (`$(nproc)`, `date`, other programs) stays as written and is marked
unknown; a condition that rests on it is tried both ways. Commands with effects are passed over.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field

from ddtui.host.unit import shell_builtins, shell_expansion, shell_syntax, shell_test
from ddtui.host.unit import shell_tree as syntax
from ddtui.host.unit.environment import Environment, Variable
from ddtui.host.unit.shell_flow import Break, Continue, Exit, Found, Return
from ddtui.host.unit.shell_syntax import ShellSyntaxError
from ddtui.host.unit.shell_tree import AndOr, ShellWord
from ddtui.host.unit.syntax import decode
from ddtui.host.unit.text import Mark, Text, Word
from ddtui.host.unit.tree import Tree

_LIMIT = 50_000  # commands and words of theirs; a script that needs more is not followed to its end
_LOOPS = 500
_LONGEST = 100_000  # characters of a variable
_BARE = ("sh:bare",)

Status = bool | None  # of a command: None: only running it would tell
Value = Text | list[Word]


@dataclass(slots=True)
class Shell:
    """One shell, with its variables. `reach` gives the launch that a command line leads to, or None."""

    tree: Tree
    reach: Callable[[list[Word], Shell], object | None]
    where: Callable[[Mark | None], str]  # "file:line" of a character
    seen_as: Callable[[str], str | None]  # a path as the script sees it -> on the host; None: out of reach
    cwd: str = "/"
    name: str = "bash"
    positional: list[Word] = field(default_factory=list)
    variables: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # set by the script, not by its environment
    functions: dict[str, syntax.Command] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    log: str | None = None  # where its output goes, if it is redirected
    conda: str | None = None  # the conda environment that was activated
    conda_root: str | None = None  # where conda is installed
    all_export: bool = False
    steps: int = 0
    depth: int = 0
    tail: Word | None = None  # the last word of the command that is looked at, as it stands in its source
    temporary: dict[str, Text] = field(default_factory=dict)  # NAME=value before the command

    def start_with(self, environment: Environment) -> None:
        for name, variable in environment.items():
            self.variables[name] = variable.value
            self.exported.add(name)

    def environment(self) -> Environment:
        """What a program started now is given."""
        given = {n: v for n, v in self.variables.items() if n in self.exported and isinstance(v, Text)}
        return {n: Variable(n, v, kind="script") for n, v in {**given, **self.temporary}.items()}

    # -- running ------------------------------------------------------------------------------------------
    def run(self, text: Text) -> object | None:
        """Follow a script; gives the launch it reaches, or None. Raises ShellSyntaxError."""
        try:
            self.lists(shell_syntax.parse(text))
        except RecursionError:
            raise ShellSyntaxError("nested too deeply", text.marks[0] if text.marks else None) from None
        except Found as found:
            return found.launch
        except (Exit, Return, Break, Continue):
            pass
        return None

    def lists(self, body: tuple[AndOr, ...]) -> Status:
        status: Status = True
        for one in body:
            status = self.pipeline(one.first)
            for operator, following in one.rest:
                if (operator == "&&") == (status is not False):
                    status = self.pipeline(following)
        return status

    def pipeline(self, line: syntax.Pipeline) -> Status:
        outer = self.log
        for redirect in line.redirects:
            self.redirect(redirect)
        if len(line.commands) > 1:
            self.log = self.piped(line.commands[-1]) or self.log
        status: Status = True
        for command in line.commands:
            status = self.command(command)
        self.log = outer
        return status if not line.negated or status is None else not status

    def piped(self, last: syntax.Command) -> str | None:
        """Where the lines go that are piped into a command; None: on to where they went before (tee)."""
        if not isinstance(last, syntax.Simple) or not last.words:
            return None
        words = self.words(last.words)
        program = posixpath.basename(words[0].value) if words else ""
        return (
            None
            if program in ("tee", "ts", "cat", "stdbuf", "grep", "sed", "awk")
            else f"piped into {program}"
        )

    def command(self, command: syntax.Command) -> Status:
        self.steps += 1
        if self.steps > _LIMIT:
            raise Exit
        match command:
            case syntax.Simple():
                return self.simple(command)
            case syntax.Group(body=body, subshell=subshell):
                kept = (dict(self.variables), self.cwd) if subshell else None
                status = self.lists(body)
                if kept:
                    self.variables, self.cwd = kept
                return status
            case syntax.If():
                return self.if_(command)
            case syntax.Loop():
                return self.loop(command)
            case syntax.For():
                return self.for_(command)
            case syntax.Case():
                return self.case(command)
            case syntax.Test():
                return shell_test.double_bracket(self, command.words)
            case syntax.ArithmeticCommand(expression=expression):
                number = self.arithmetic(expression)
                return None if number is None else number != 0
            case syntax.Function(name=name, body=body_command):
                self.functions[name] = body_command
                return True

    def if_(self, command: syntax.If) -> Status:
        for condition, body in command.branches:
            status = self.lists(condition)
            if status:
                return self.lists(body)
            if status is None:
                self.warnings.append(
                    f"{self.where(command.raw.marks[0])}: whether this condition holds is known only when "
                    "the script runs; it is taken to hold unless the script would end there"
                )
                if self.attempt(body):
                    return True
        return self.lists(command.otherwise)

    def attempt(self, body: tuple[AndOr, ...]) -> bool:
        """Run a branch; where it ends the script without a launch, take it back and say no."""
        kept = (dict(self.variables), set(self.exported), set(self.own), list(self.positional), self.cwd)
        try:
            self.lists(body)
        except Exit:
            self.variables, self.exported, self.own, self.positional, self.cwd = kept
            return False
        return True

    def loop(self, command: syntax.Loop) -> Status:
        for _ in range(_LOOPS):
            status = True if command.condition is None else self.lists(command.condition)
            if status is not None and status == command.until:
                break
            try:
                self.lists(command.body)
            except Break:
                break
            except Continue:
                continue
            if status is None or command.condition is None:  # entered once: what follows may matter
                break
        return True

    def for_(self, command: syntax.For) -> Status:
        words = self.positional if command.words is None else self.words(command.words)
        for word in list(words)[:_LOOPS]:
            self.set(command.name, word.text)
            try:
                self.lists(command.body)
            except Break:
                break
            except Continue:
                continue
        return True

    def case(self, command: syntax.Case) -> Status:
        subject = self.text(command.word)
        falls = False
        for patterns, body, ending in command.items:
            if not falls and not any(
                shell_expansion.pattern(self, p).fullmatch(subject.value) for p in patterns
            ):
                continue
            status = self.lists(body)
            if ending == ";;" or not ending:
                return status
            falls = ending == ";&"
        return True

    def simple(self, command: syntax.Simple) -> Status:
        words = self.words(command.words)
        if not words:
            for assign in command.assigns:
                self.assign(assign)
            for redirect in command.redirects:
                self.text(redirect.target) if redirect.target else None
            return True
        name = words[0].value
        outer, before = self.log, self.temporary
        self.tail = Word(Text(), command.words[-1].raw, _BARE)
        self.temporary = {**before, **{a.name: self.assigned(a) for a in command.assigns}}
        try:
            if name in self.functions and self.depth < 50:
                return self.call(self.functions[name], words[1:])
            if (builtin := shell_builtins.BUILTINS.get(name)) is not None:
                return builtin(self, words[1:], command)
            for redirect in command.redirects:
                self.redirect(redirect)
            return self.external(words)
        finally:
            self.log = outer if name != "exec" else self.log
            self.temporary = before

    def external(self, words: list[Word]) -> Status:
        """A program. Raises Found if it leads to the server."""
        launch = self.reach(words, self)
        if launch is not None:
            raise Found(launch)
        return None if posixpath.basename(words[0].value) in _ASKING else True

    def call(self, body: syntax.Command, arguments: list[Word]) -> Status:
        kept, self.positional = self.positional, arguments
        self.depth += 1
        try:
            return self.command(body)
        except Return:
            return True
        finally:
            self.positional = kept
            self.depth -= 1

    def source(self, path: str, arguments: list[Word]) -> Status:
        """Read a file into this shell; False: it is not there."""
        host_path = self.seen_as(posixpath.join(self.cwd, path))
        data = self.tree.read(host_path) if host_path else None
        if data is None or host_path is None or self.depth > 20:
            return False
        kept = self.positional
        self.positional = arguments or self.positional
        self.depth += 1
        try:
            return self.lists(shell_syntax.parse(Text.of_file(host_path, decode(data))))
        except Return:
            return True
        except ShellSyntaxError as error:
            self.warnings.append(f"{self.where(error.mark)}: {error}; the rest of this file was not read")
            return None
        finally:
            self.positional = kept
            self.depth -= 1

    def redirect(self, redirect: syntax.Redirect) -> None:
        if redirect.target is None or ">" not in redirect.operator or redirect.operator == ">&":
            return
        if redirect.descriptor not in ("", "1", "2"):
            return
        target = self.text(redirect.target)
        if target.value == "/dev/null":
            self.log = "nowhere (/dev/null)" if redirect.descriptor != "2" else self.log
        elif target.value.startswith(">("):
            self.log = None
        else:
            self.log = "file:" + posixpath.join(self.cwd, target.value)

    # -- variables ----------------------------------------------------------------------------------------
    def set(self, name: str, value: Value, *, append: bool = False) -> None:
        before = self.variables.get(name)
        if append and before is not None:
            if isinstance(before, list):
                value = before + (value if isinstance(value, list) else [Word(value, value, _BARE)])
            else:
                value = before + value if isinstance(value, Text) else [Word(before, before, _BARE), *value]
        if isinstance(value, Text) and len(value) > _LONGEST:
            raise Exit
        self.variables[name] = value
        self.own.add(name)
        if self.all_export:
            self.exported.add(name)

    def assign(self, assign: syntax.Assign) -> None:
        if assign.array is not None:
            self.set(assign.name, self.words(assign.array), append=assign.append)
        elif assign.index is not None:
            self.set_item(assign)
        else:
            self.set(assign.name, self.assigned(assign), append=assign.append)

    def assigned(self, assign: syntax.Assign) -> Text:
        return self.text(assign.value) if assign.value else Text()

    def set_item(self, assign: syntax.Assign) -> None:
        items = self.variables.get(assign.name)
        items = list(items) if isinstance(items, list) else []
        word = Word(self.assigned(assign), assign.value.raw if assign.value else Text(), _BARE)
        if assign.index is not None and assign.index.isdigit() and int(assign.index) < len(items):
            items[int(assign.index)] = word
        else:
            items.append(word)
        self.set(assign.name, items)

    # -- expansion ----------------------------------------------------------------------------------------
    def words(self, words: tuple[ShellWord, ...]) -> list[Word]:
        made = [field for word in words for field in shell_expansion.fields(self, word)]
        self.steps += len(made)
        return made

    def text(self, word: ShellWord) -> Text:
        return shell_expansion.text(self, word)

    def arithmetic(self, expression: Text) -> int | None:
        return shell_expansion.arithmetic(self, expression.value)


_ASKING = frozenset(
    [
        "grep",
        "egrep",
        "rg",
        "nvidia-smi",
        "curl",
        "wget",
        "pgrep",
        "which",
        "test",
        "docker",
        "podman",
        "systemctl",
        "lsmod",
        "mountpoint",
        "nc",
        "ping",
        "git",
        "pip",
        "python",
        "python3",
        "diff",
        "cmp",
        "find",
        "timeout",
        "getent",
        "id",
        "whoami",
        "hostname",
        "uname",
        "date",
    ]
)
