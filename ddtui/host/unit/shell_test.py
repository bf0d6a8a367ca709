"""`test`, `[ … ]` and `[[ … ]]`: whether a condition holds, as far as that is known without running it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddtui.host.unit import shell_expansion
from ddtui.host.unit.shell_tree import Opaque, ShellWord
from ddtui.host.unit.text import Text, Word

if TYPE_CHECKING:
    from ddtui.host.unit.shell import Shell

Status = bool | None
_NUMBERS = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}


def single_bracket(shell: Shell, words: Sequence[Word]) -> Status:
    """`test` and `[`, without the closing bracket."""
    return _Condition(shell, [w.text for w in words], None).whole()


def double_bracket(shell: Shell, words: Sequence[ShellWord]) -> Status:
    """`[[ … ]]`: operands are not split, and the right side of `==` is a pattern."""
    return _Condition(shell, [shell.text(w) for w in words], words).whole()


class _Condition:
    def __init__(self, shell: Shell, operands: list[Text], words: Sequence[ShellWord] | None) -> None:
        self.shell, self.operands, self.words, self.at = shell, operands, words, 0

    def ahead(self, offset: int = 0) -> str | None:
        at = self.at + offset
        return self.operands[at].value if at < len(self.operands) else None

    def whole(self) -> Status:
        if not self.operands:
            return False
        status = self.any_of()
        return status if self.at >= len(self.operands) else None

    def any_of(self) -> Status:
        status = self.all_of()
        while self.ahead() in ("||", "-o"):
            self.at += 1
            other = self.all_of()
            status = True if status or other else None if status is None or other is None else False
        return status

    def all_of(self) -> Status:
        status = self.one()
        while self.ahead() in ("&&", "-a"):
            self.at += 1
            other = self.one()
            if status is False or other is False:
                status = False
            else:
                status = None if status is None or other is None else True
        return status

    def one(self) -> Status:
        first, second = self.ahead(), self.ahead(1)
        if first == "!" and second is not None:
            self.at += 1
            status = self.one()
            return None if status is None else not status
        if first == "(" and self.words is not None:
            self.at += 1
            status = self.any_of()
            self.at += 1
            return status
        if second in _BINARY and self.ahead(2) is not None:
            return self.binary()
        if (
            first is not None
            and re.fullmatch(r"-[a-zA-Z]", first)
            and second is not None
            and second not in _ENDS
        ):
            self.at += 2
            return self.unary(first, self.operands[self.at - 1])
        operand = self.operands[self.at] if self.at < len(self.operands) else Text()
        self.at += 1
        return bool(operand.value) if operand.known else None

    def unary(self, operator: str, operand: Text) -> Status:
        if operator == "-v":
            return operand.value in self.shell.variables
        if not operand.known:
            return None
        if operator == "-n":
            return bool(operand.value)
        if operator == "-z":
            return not operand.value
        if operator not in ("-e", "-f", "-d", "-r", "-s", "-x", "-a"):
            return None
        path = self.shell.seen_as(posixpath.join(self.shell.cwd, operand.value))
        kind = self.shell.tree.kind(path) if path and operand.value else None
        if kind is None:
            return None if self.shell.tree.partial or not path else False
        return {"-f": kind == "file", "-d": kind == "folder"}.get(operator, True)

    def binary(self) -> Status:
        left, operator, right = self.operands[self.at : self.at + 3]
        word = self.words[self.at + 2] if self.words is not None else None
        self.at += 3
        if not left.known or not right.known or (word and any(isinstance(p, Opaque) for p in word.parts)):
            return None
        if operator.value in _NUMBERS:
            number = shell_expansion.arithmetic(
                self.shell, f"({left.value or 0}) {_NUMBERS[operator.value]} ({right.value or 0})"
            )
            return None if number is None else bool(number)
        if operator.value == "=~":
            try:
                return re.search(right.value, left.value) is not None
            except re.error:
                return None
        if operator.value in ("<", ">"):
            return (left.value < right.value) == (operator.value == "<")
        if word is not None:
            same = shell_expansion.pattern(self.shell, word).fullmatch(left.value) is not None
        else:
            same = left.value == right.value
        return same != (operator.value == "!=")


_BINARY = frozenset({"=", "==", "!=", "=~", "<", ">", *_NUMBERS})
_ENDS = frozenset({"&&", "||", ")", "-a", "-o"})
