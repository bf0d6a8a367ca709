"""The grammar of shell scripts, as far as launch scripts use it: a parser that keeps where every character
stands.

POSIX with the parts of bash that such scripts are written in: arrays, `[[ ]]`, `(( ))`, here-strings,
functions.
"""

from __future__ import annotations

import re

from ddtui.host.unit.shell_tree import (
    AndOr,
    Arithmetic,
    ArithmeticCommand,
    Assign,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Opaque,
    Parameter,
    Part,
    Pipeline,
    Redirect,
    ShellWord,
    Simple,
    Substitution,
    Test,
)
from ddtui.host.unit.text import Mark, Text
from ddtui.host.unit.words import unescape

_META = frozenset(" \t\n;&|<>()")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ASSIGN = re.compile(r"([A-Za-z_]\w*)(\[[^]\n]*\])?(\+?)=", re.ASCII)
_REDIRECT = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|&>>|&>)")
_SPECIAL = frozenset("@*#?-$!0123456789")
_CLOSING = frozenset({")", "}", ";;", ";&"})
_TEXTUAL = frozenset({"-", ":-", "=", ":=", "?", ":?", "+", ":+"})  # ${NAME:-text} and its like
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})


class ShellSyntaxError(ValueError):
    """A script that cannot be read. `mark` says where."""

    def __init__(self, message: str, mark: Mark | None) -> None:
        super().__init__(message)
        self.mark = mark


def parse(text: Text) -> tuple[AndOr, ...]:
    """Read a script. Raises ShellSyntaxError."""
    parser = _Parser(text)
    body = parser.body(())
    if parser.at < len(parser.s):
        raise parser.error(f"unexpected {parser.s[parser.at]!r}")
    return body


class _Parser:
    def __init__(self, text: Text) -> None:
        self.text, self.s, self.at = text, text.value, 0
        self.here: list[str] = []  # delimiters of here-documents that follow the line

    def error(self, message: str) -> ShellSyntaxError:
        marks = self.text.marks
        return ShellSyntaxError(message, marks[min(self.at, len(marks) - 1)] if marks else None)

    # -- blanks and tokens --------------------------------------------------------------------------------
    def blanks(self, newlines: bool = False) -> None:
        while self.at < len(self.s):
            c = self.s[self.at]
            if c in " \t\r":
                self.at += 1
            elif self.s.startswith("\\\n", self.at):
                self.at += 2
            elif self.s.startswith("\\\r\n", self.at):
                self.at += 3
            elif c == "#":
                end = self.s.find("\n", self.at)
                self.at = len(self.s) if end < 0 else end
            elif c == "\n" and newlines:
                self.newline()
            else:
                return

    def newline(self) -> None:
        self.at += 1
        for delimiter in self.here:
            while self.at < len(self.s):
                end = self.s.find("\n", self.at)
                end = len(self.s) if end < 0 else end
                line = self.s[self.at : end]
                self.at = min(end + 1, len(self.s))
                if line.lstrip("\t") == delimiter:
                    break
        self.here = []

    def peek(self, token: str) -> bool:
        return self.s.startswith(token, self.at)

    def keyword(self) -> str:
        """The plain word ahead, without taking it."""
        found = re.compile(r"[^\s;&|<>()'\"$`\\]+").match(self.s, self.at)
        if not found:
            return ""
        end = found.end()
        return found[0] if end >= len(self.s) or self.s[end] in _META or self.s[end] == "\r" else ""

    def take(self, word: str) -> None:
        self.blanks(newlines=True)
        if self.keyword() != word:
            raise self.error(f"{word!r} is missing")
        self.at += len(word)

    # -- lists --------------------------------------------------------------------------------------------
    def body(self, ends: tuple[str, ...]) -> tuple[AndOr, ...]:
        lists: list[AndOr] = []
        while True:
            self.blanks(newlines=True)
            if (
                self.at >= len(self.s)
                or self.keyword() in ends
                or any(self.peek(e) for e in ends if e in _CLOSING)
            ):
                return tuple(lists)
            before = self.at
            lists.append(self.and_or())
            if self.at == before:
                raise self.error(f"unexpected {self.s[self.at]!r}")

    def and_or(self) -> AndOr:
        first, rest, background = self.pipeline(), [], False
        while True:
            self.blanks()
            if self.peek("&&") or self.peek("||"):
                operator = self.s[self.at : self.at + 2]
                self.at += 2
                self.blanks(newlines=True)
                rest.append((operator, self.pipeline()))
                continue
            if self.peek(";;") or self.peek(";&"):
                break
            if self.peek(";") or self.peek("&"):
                background = self.s[self.at] == "&"
                self.at += 1
            elif self.peek("\n"):
                self.newline()
            break
        return AndOr(first, tuple(rest), background)

    def pipeline(self) -> Pipeline:
        negated = False
        while (word := self.keyword()) in ("!", "time"):
            negated ^= word == "!"
            self.at += len(word)
            self.blanks()
        commands: list[Command] = []
        redirects: list[Redirect] = []
        while True:
            commands.append(self.command())
            self.blanks()
            while not isinstance(commands[-1], Simple) and _REDIRECT.match(self.s, self.at):
                redirects.append(self.redirect())
                self.blanks()
            if not self.peek("|") or self.peek("||"):
                return Pipeline(tuple(commands), negated, tuple(redirects))
            self.at += 2 if self.peek("|&") else 1
            self.blanks(newlines=True)

    # -- commands -----------------------------------------------------------------------------------------
    def command(self) -> Command:
        self.blanks()
        start, word = self.at, self.keyword()
        if self.peek("(("):
            end = self.closing_parentheses(start + 2)
            self.at = end + 2
            return ArithmeticCommand(self.text[start + 2 : end])
        if self.peek("("):
            self.at += 1
            body = self.body((")",))
            self.expect(")")
            return Group(body, subshell=True)
        if word == "{":
            self.at += 1
            body = self.body(("}",))
            self.expect("}")
            return Group(body, subshell=False)
        if word == "[[":
            return self.test(start)
        if word == "if":
            return self.if_(start)
        if word in ("while", "until"):
            self.at += len(word)
            condition = self.body(("do",))
            return Loop(condition, word == "until", self.do_group())
        if word in ("for", "select"):
            return self.for_(word)
        if word == "case":
            return self.case()
        if word == "function" or re.compile(r"[A-Za-z_][\w:.-]*[ \t]*\([ \t]*\)").match(self.s, self.at):
            return self.function(word)
        return self.simple()

    def closing_parentheses(self, at: int) -> int:
        """Where the `))` of an arithmetic expression stands."""
        depth = 0
        while at < len(self.s):
            if depth == 0 and self.s.startswith("))", at):
                return at
            depth += {"(": 1, ")": -1}.get(self.s[at], 0)
            at += 1
        raise self.error("'))' is missing")

    def expect(self, token: str) -> None:
        if not self.peek(token):
            raise self.error(f"{token!r} is missing")
        self.at += len(token)

    def do_group(self) -> tuple[AndOr, ...]:
        self.blanks(newlines=True)
        if self.peek(";"):
            self.at += 1
        self.take("do")
        body = self.body(("done",))
        self.take("done")
        return body

    def if_(self, start: int) -> If:
        branches: list[tuple[tuple[AndOr, ...], tuple[AndOr, ...]]] = []
        otherwise: tuple[AndOr, ...] = ()
        word = "if"
        while word in ("if", "elif"):
            self.at += len(word)
            condition = self.body(("then",))
            self.take("then")
            branches.append((condition, self.body(("elif", "else", "fi"))))
            word = self.keyword()
        if word == "else":
            self.at += len("else")
            otherwise = self.body(("fi",))
        self.take("fi")
        return If(tuple(branches), otherwise, self.text[start : start + 1])

    def for_(self, word: str) -> Command:
        self.at += len(word)
        self.blanks()
        if self.peek("(("):
            end = self.s.find("))", self.at)
            if end < 0:
                raise self.error("'))' is missing")
            self.at = end + 2
            return Loop(None, False, self.do_group())
        found = _NAME.match(self.s, self.at)
        if not found:
            raise self.error("a name is missing after 'for'")
        self.at = found.end()
        self.blanks(newlines=True)
        words: list[ShellWord] | None = None
        if self.keyword() == "in":
            self.at += 2
            words = []
            self.blanks()
            while self.at < len(self.s) and self.s[self.at] not in ";\n":
                words.append(self.word())
                self.blanks()
        return For(found[0], None if words is None else tuple(words), self.do_group())

    def case(self) -> Case:
        self.at += len("case")
        self.blanks()
        word = self.word()
        self.take("in")
        items: list[tuple[tuple[ShellWord, ...], tuple[AndOr, ...], str]] = []
        while True:
            self.blanks(newlines=True)
            if self.keyword() == "esac":
                self.at += len("esac")
                return Case(word, tuple(items))
            if self.peek("("):
                self.at += 1
            patterns = []
            while True:
                self.blanks()
                patterns.append(self.word())
                self.blanks()
                if not self.peek("|"):
                    break
                self.at += 1
            self.expect(")")
            body = self.body(("esac", ";;", ";&"))
            ending = next((e for e in (";;&", ";;", ";&") if self.peek(e)), "")
            self.at += len(ending)
            items.append((tuple(patterns), body, ending))

    def function(self, word: str) -> Function:
        if word == "function":
            self.at += len(word)
            self.blanks()
        found = re.compile(r"[\w:.-]+").match(self.s, self.at)
        if not found:
            raise self.error("the function's name is missing")
        self.at = found.end()
        self.blanks()
        if self.peek("("):
            self.at += 1
            self.blanks()
            self.expect(")")
        self.blanks(newlines=True)
        return Function(found[0], self.command())

    def test(self, start: int) -> Test:
        self.at += 2
        words: list[ShellWord] = []
        while True:
            self.blanks(newlines=True)
            if self.at >= len(self.s):
                raise self.error("']]' is missing")
            here = self.at
            if self.keyword() == "]]":
                self.at += 2
                return Test(tuple(words), self.text[start : self.at])
            operator = next((o for o in ("&&", "||", "(", ")", "<", ">") if self.peek(o)), None)
            if operator:
                self.at += len(operator)
                raw = self.text[here : self.at]
                words.append(ShellWord((Literal(raw, False),), raw))
            else:
                regex = bool(words) and words[-1].literal == "=~"
                words.append(self.word(regex=regex))

    def simple(self) -> Simple:
        assigns: list[Assign] = []
        declares: list[Assign] = []
        words: list[ShellWord] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if self.at >= len(self.s) or (self.s[self.at] in ";\n)&|" and not self.peek("&>")):
                break
            if _REDIRECT.match(self.s, self.at) and not self.peek("<(") and not self.peek(">("):
                redirects.append(self.redirect())
                continue
            found = _ASSIGN.match(self.s, self.at)
            declaring = bool(words) and words[0].literal in _DECLARING
            if found and (not words or declaring):
                (declares if words else assigns).append(self.assign(found))
                continue
            if self.peek("("):
                raise self.error("unexpected '('")
            words.append(self.word())
        return Simple(tuple(assigns), tuple(words), tuple(redirects), tuple(declares))

    def assign(self, found: re.Match[str]) -> Assign:
        self.at = found.end()
        index = found[2][1:-1] if found[2] else None
        if not self.peek("("):
            if self.at >= len(self.s) or self.s[self.at] in _META:
                empty = ShellWord((), self.text[self.at : self.at])
                return Assign(found[1], index, bool(found[3]), empty, None)
            return Assign(found[1], index, bool(found[3]), self.word(), None)
        self.at += 1
        items: list[ShellWord] = []
        while True:
            self.blanks(newlines=True)
            if self.at >= len(self.s):
                raise self.error("the array is never closed")
            if self.peek(")"):
                self.at += 1
                return Assign(found[1], index, bool(found[3]), None, tuple(items))
            items.append(self.word())

    def redirect(self) -> Redirect:
        found = _REDIRECT.match(self.s, self.at)
        assert found
        self.at = found.end()
        self.blanks()
        target = self.word()
        if found[2] in ("<<", "<<-"):
            self.here.append("".join(p.text.value for p in target.parts if isinstance(p, Literal)))
            return Redirect(found[1], found[2], None)
        return Redirect(found[1], found[2], target)

    # -- words --------------------------------------------------------------------------------------------
    def word(self, regex: bool = False) -> ShellWord:
        start = self.at
        parts: list[Part] = []
        depth = 0
        while self.at < len(self.s):
            c = self.s[self.at]
            if regex and c in "()|":
                depth += {"(": 1, ")": -1}.get(c, 0)
            elif c in _META:
                if c in "<>" and self.s.startswith("(", self.at + 1):
                    begin = self.at
                    self.at += 2
                    self.body((")",))
                    self.expect(")")
                    parts.append(Opaque(self.text[begin : self.at]))
                    continue
                if c == "(" and parts and self.s[self.at - 1] in "?*+@!":  # extended pattern
                    self.at = self.s.find(")", self.at) + 1 or len(self.s)
                    parts.append(Literal(self.text[start : self.at].within("sh:bare"), False))
                    continue
                break
            parts += self.part(stop="")
        if self.at == start:
            raise self.error(f"unexpected {self.s[start : start + 1]!r}")
        return ShellWord(tuple(parts), self.text[start : self.at])

    def part(self, stop: str, double: bool = False) -> list[Part]:
        """One piece of a word. `double`: inside double quotes; `stop`: what ends it besides."""
        c, start = self.s[self.at], self.at
        brace = "-brace" if stop == "}" and double else ""
        layer = f"sh:double{brace}" if double else "sh:bare"
        if c == "\\":
            self.at += 2
            both = self.text[start : self.at]
            if both.value == "\\\n":
                return []
            if double and both.value[1:] not in set('$`"\\') | ({"}"} if brace else set()):
                return [Literal(both.within(layer), True)]
            return [Literal(both.becomes(both.value[1:]).within(layer), True)]
        if c == "'" and not double:
            end = self.s.find("'", start + 1)
            if end < 0:
                raise self.error("a quote ' that is never closed")
            self.at = end + 1
            return [Literal(self.text[start + 1 : end].within("sh:single"), True)]
        if c == '"' and not double:
            self.at += 1
            return self.double_quoted()
        if c == "$":
            if self.peek("$'") and not double:
                return [self.ansi()]
            if self.peek('$"') and not double:
                self.at += 1
                return self.part(stop)
            return [self.dollar(double)]
        if c == "`":
            return [self.backquoted(double)]
        self.at += 1
        ends = set("\\'\"$`") | _META | {stop}
        if double:
            ends = set('\\"$`') | ({stop} if stop else set())
        while self.at < len(self.s) and self.s[self.at] not in ends:
            self.at += 1
        return [Literal(self.text[start : self.at].within(layer), double)]

    def double_quoted(self) -> list[Part]:
        begin = self.at - 1
        parts: list[Part] = []
        while True:
            if self.at >= len(self.s):
                self.at = begin
                raise self.error('a quote " that is never closed')
            if self.s[self.at] == '"':
                self.at += 1
                return parts or [Literal(Text(), True)]
            parts += self.part(stop="", double=True)

    def ansi(self) -> Literal:
        self.at += 2
        pieces: list[Text] = []
        while self.at < len(self.s) and self.s[self.at] != "'":
            if self.s[self.at] == "\\" and self.at + 1 < len(self.s):
                made, length = unescape(self.s, self.at + 1)
                length = length or 1
                both = self.text[self.at : self.at + 1 + length]
                pieces.append(both.becomes(made) if made is not None else both)
                self.at += 1 + length
            else:
                pieces.append(self.text[self.at])
                self.at += 1
        self.at += 1
        return Literal(Text.join(pieces).within("sh:ansi"), True)

    def backquoted(self, quoted: bool) -> Substitution:
        start = self.at
        end = self.s.find("`", start + 1)
        if end < 0:
            raise self.error("a backquote that is never closed")
        self.at = end + 1
        return Substitution(self.text[start : self.at], parse(self.text[start + 1 : end]), quoted)

    def dollar(self, quoted: bool) -> Part:
        start = self.at
        following = self.s[start + 1 : start + 2]
        if self.peek("$(("):
            end = self.closing_parentheses(start + 3)
            self.at = end + 2
            return Arithmetic(self.text[start : self.at], self.text[start + 3 : end], quoted)
        if following == "(":
            self.at += 2
            body = self.body((")",))
            self.expect(")")
            return Substitution(self.text[start : self.at], body, quoted)
        if following == "{":
            return self.braces(quoted)
        if following and following in _SPECIAL:
            self.at += 2
            return Parameter(self.text[start : self.at], following, quoted)
        found = _NAME.match(self.s, start + 1)
        if found:
            self.at = found.end()
            return Parameter(self.text[start : self.at], found[0], quoted)
        self.at += 1
        return Literal(self.text[start : self.at].within("sh:double" if quoted else "sh:bare"), quoted)

    def braces(self, quoted: bool) -> Parameter:
        start = self.at
        self.at += 2
        length = self.peek("#") and not self.peek("#}")
        indirect = self.peek("!") and not self.peek("!}")
        self.at += length or indirect
        found = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!-]", re.ASCII).match(self.s, self.at)
        if not found:
            raise self.error("a variable's name is missing")
        self.at = found.end()
        index = None
        if self.peek("["):
            end = self.s.find("]", self.at)
            if end < 0:
                raise self.error("']' is missing")
            index = self.s[self.at + 1 : end]
            self.at = end + 1
        operator_found = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|@|:").match(self.s, self.at)
        operator, argument = "", None
        if operator_found:
            operator = operator_found[0]
            self.at = operator_found.end()
            begin, parts = self.at, list[Part]()
            text = (
                quoted and operator in _TEXTUAL
            )  # else the argument is a pattern, whatever quotes stand around
            while self.at < len(self.s) and self.s[self.at] != "}":
                if text:
                    nested = self.peek('"')
                    if nested:
                        self.at += 1
                        parts += self.double_quoted()
                    else:
                        parts += self.part(stop="}", double=True)
                elif self.s[self.at] in _META:
                    parts.append(Literal(self.text[self.at].within("sh:bare"), False))
                    self.at += 1
                else:
                    parts += self.part(stop="}")
            argument = ShellWord(tuple(parts), self.text[begin : self.at])
        if not self.peek("}"):
            self.at = start
            raise self.error("'${' is never closed")
        self.at += 1
        return Parameter(
            self.text[start : self.at], found[0], quoted, operator, argument, index, length, indirect
        )
