"""Flags in a command line, read as argparse does, with or without a table of what SGLang takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ddtui.host.unit.text import Text, Word

Value = str | bool | list[str]
_NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")
# Spellings of one flag since 0.5.9 (the window's: 0.5.11 to 0.5.19), for where no table is given
_SAME = (
    ("--model-path", "--model"),
    ("--tp-size", "--tensor-parallel-size", "--tp"),
    ("--pp-size", "--pipeline-parallel-size", "--pp"),
    ("--dp-size", "--data-parallel-size", "--dp"),
    ("--ep-size", "--expert-parallel-size", "--ep"),
    ("--speculative-algorithm", "--speculative-algo"),
    ("--speculative-draft-model-path", "--speculative-draft-model"),
    ("--speculative-draft-window-size", "--speculative-dflash-draft-window-size"),
)
# Flags with several values, by 0.5.11's own --help and parser; used where no table is given
_SEVERAL = frozenset(
    {
        *("--cuda-graph-bs", "--piecewise-cuda-graph-tokens", "--lora-paths", "--lora-target-modules"),
        *("--encoder-urls", "--numa-node", "--gc-threshold", "--log-requests-target"),
        *("--debug-tensor-dump-layers", "--bucket-time-to-first-token", "--bucket-inter-token-latency"),
        *("--prompt-tokens-buckets", "--generation-tokens-buckets"),
    }
)
_CANONICAL = {name: names[0] for names in _SAME for name in names}


class FlagSpec(Protocol):
    """One flag of the installed SGLang."""

    @property
    def names(self) -> tuple[str, ...]: ...  # every spelling, the canonical one first

    @property
    def nargs(self) -> str | int | None: ...  # None: one value; 0: a switch; "?", "*", "+", or a number


class FlagTable(Protocol):
    """The flags of the installed SGLang, as far as this room needs them. The engine room's has this shape."""

    def find(self, name: str) -> FlagSpec | None: ...  # exact or a unique prefix; None: unknown

    def equivalent(self, a: str, b: str) -> bool: ...  # whether two spellings set the same thing


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A flag as it stands in a command line."""

    name: str  # as written
    start: int  # index of its first word
    end: int  # index after its last word
    values: tuple[Text, ...]
    equals: bool  # --name=value

    @property
    def value(self) -> Value:
        if not self.values:
            return True
        texts = [_text(v) for v in self.values]
        return texts[0] if len(texts) == 1 else texts


def _text(text: Text) -> str:
    return Word(text, text, ()).value


def is_flag(word: str) -> bool:
    """Whether argparse takes the word for an option rather than a value."""
    if not word.startswith("-") or len(word) < 2 or _NUMBER.match(word):
        return False
    name = word.partition("=")[0]
    return " " not in name


def same(a: str, b: str, table: FlagTable | None) -> bool:
    """Whether two spellings are one flag: aliases, deprecated names, unique prefixes."""
    if table is not None and table.find(a) is not None and table.find(b) is not None:
        return table.equivalent(a, b)
    return _CANONICAL.get(a, a) == _CANONICAL.get(b, b)


def read(
    words: Sequence[Word], start: int, table: FlagTable | None = None
) -> tuple[list[Occurrence], list[int]]:
    """The flags from `start` on, in order, and the indices of words that belong to none."""
    found: list[Occurrence] = []
    loose: list[int] = []
    at = start
    while at < len(words):
        word = words[at].value
        if word == "--":
            loose += range(at + 1, len(words))
            break
        if not is_flag(word):
            loose.append(at)
            at += 1
            continue
        name, equals, value = word.partition("=")
        if equals and name.startswith("--"):
            text = words[at].text
            found.append(Occurrence(name, at, at + 1, (text[len(text) - len(_raw(text, value)) :],), True))
            at += 1
            continue
        end = at + 1
        most = _most(name, table)
        while (
            end < len(words)
            and end - at - 1 < most
            and words[end].value != "--"
            and not is_flag(words[end].value)
        ):
            end += 1
        found.append(Occurrence(word, at, end, tuple(w.text for w in words[at + 1 : end]), False))
        at = end
    return found, loose


def _raw(text: Text, value: str) -> str:
    """The part of a text that makes a value: escaped bytes count one by one in it."""
    return text.value.partition("=")[2] if not text.value.isascii() else value


def takes_several(name: str, table: FlagTable | None) -> bool:
    """Whether a flag takes more than one value."""
    spec = table.find(name) if table else None
    if spec is None:
        return name in _SEVERAL
    return spec.nargs in ("*", "+") or (str(spec.nargs).isdigit() and int(spec.nargs or 0) > 1)


def _most(name: str, table: FlagTable | None) -> int:
    """How many values a flag can take."""
    spec = table.find(name) if table else None
    if spec is None or spec.nargs in ("*", "+"):
        return 1_000_000
    if spec.nargs is None or spec.nargs == "?":
        return 1
    return int(spec.nargs) if str(spec.nargs).isdigit() else 1_000_000


def values(found: Sequence[Occurrence]) -> dict[str, Value]:
    """Each flag with its value; of a repeated one the last."""
    result: dict[str, Value] = {}
    for one in found:
        result.pop(one.name, None)
        result[one.name] = one.value
    return result


def repeats(found: Sequence[Occurrence]) -> Mapping[str, tuple[str, ...]]:
    """Every value of the flags that stand more than once."""
    grouped: dict[str, list[str]] = {}
    for one in found:
        value = one.value
        grouped.setdefault(one.name, []).append(" ".join(value) if isinstance(value, list) else str(value))
    return {name: tuple(given) for name, given in grouped.items() if len(given) > 1}
