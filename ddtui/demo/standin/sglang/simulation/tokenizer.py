"""A tokenizer of three to four characters a token: deterministic, and decoding gives back what was
encoded.

Known words (with or without a leading space) are one token; other words fall into pieces of up to four
letters, numbers into up to three digits, everything else into bytes. The vocabulary is a plain list, built
at start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from string import ascii_lowercase, ascii_uppercase, punctuation

from sglang.simulation.writing import vocabulary_sources

BYTES = 256
_PIECE = re.compile(r"\n+ *| +(?= )| ?[A-Za-z]+| ?[0-9]{1,3}| ?[!-/:-@\[-`{-~]{1,2}| |.", re.DOTALL)
PAIRS = 120  # frequent pairs of letters: two of them make a four-letter piece


def _words() -> list[str]:
    found: dict[str, None] = {}
    for text in vocabulary_sources():
        for piece in re.findall(r"[A-Za-z]{2,}", text):
            found[piece] = None
    return [form for word in found for form in (word, " " + word)]


def _frequent_pairs() -> list[str]:
    count: dict[str, int] = {}
    for text in vocabulary_sources():
        for word in re.findall(r"[a-z]{2,}", text):
            for pair in map(str.__add__, word, word[1:]):
                count[pair] = count.get(pair, 0) + 1
    return sorted(count, key=lambda pair: (-count[pair], pair))[:PAIRS]


def _pieces(letters: int) -> Iterable[str]:
    """Everything that is a token beside bytes and words."""
    slices = [
        "".join(run) for length in range(1, letters + 1) for run in product(ascii_lowercase, repeat=length)
    ]
    capitals = [head + rest for head in ascii_uppercase for rest in ["", *slices] if len(rest) < letters]
    numbers = [f"{n:0{width}d}" for width in (1, 2, 3) for n in range(10**width)]
    marks = [*punctuation, *(a + b for a in punctuation for b in punctuation)]
    for piece in (*slices, *capitals, *numbers, *marks):
        yield piece
        yield " " + piece
    for newlines in range(1, 4):
        for spaces in range(0, 33):
            yield "\n" * newlines + " " * spaces
    for spaces in range(1, 33):
        yield " " * spaces
    if letters > 2:
        for four in map("".join, product(_frequent_pairs(), repeat=2)):
            yield four
            yield " " + four


class Tokenizer:
    """`vocab_size` and `eos_id` are the model's: ids past the known pieces decode to nothing."""

    def __init__(self, vocab_size: int, eos_id: int | None = None) -> None:
        self.vocab_size = vocab_size
        self.words_from = BYTES
        words = _words()
        self.words_to = BYTES + len(words)
        seen = dict.fromkeys([*words, *_pieces(3 if vocab_size >= 100_000 else 2)])
        self.pieces = list(seen)[: int(vocab_size * 0.99) - BYTES]
        self._ids = {piece: BYTES + i for i, piece in enumerate(self.pieces)}
        self.eos_id = vocab_size - 2 if eos_id is None else eos_id

    def encode(self, text: str) -> list[int]:
        ids, known = [], self._ids
        for piece in _PIECE.findall(text):
            token = known.get(piece)
            if token is not None:
                ids.append(token)
            else:
                ids.extend(self._split(piece))
        return ids

    def _split(self, piece: str) -> list[int]:
        """The longest known pieces from the left, single characters as bytes where nothing is known."""
        ids, at, space = [], 0, piece[:1] == " "
        while at < len(piece):
            for length in range(5 if space and at == 0 else 4, 0, -1):
                token = self._ids.get(piece[at : at + length])
                if token is not None:
                    ids.append(token)
                    break
            else:
                length = 1
                ids.extend(piece[at].encode("utf-8", "surrogatepass"))
            at += length
        return ids

    def piece(self, token: int) -> str:
        """The text of one token; bytes of a longer character are given one by one as U+FFFD."""
        if token < BYTES:
            return chr(token) if token < 128 else "\ufffd"
        at = token - BYTES
        return self.pieces[at] if at < len(self.pieces) else ""

    def decode(self, ids: Sequence[int]) -> str:
        parts: list[str] = []
        pending = bytearray()
        for token in ids:
            if token < BYTES:
                pending.append(token)
                continue
            if pending:
                parts.append(pending.decode("utf-8", "replace"))
                pending.clear()
            at = token - BYTES
            if at < len(self.pieces):
                parts.append(self.pieces[at])
        if pending:
            parts.append(pending.decode("utf-8", "replace"))
        return "".join(parts)

    def kind(self, ids: Sequence[int]) -> str:
        """What a prompt is about, from its end: "code", "chat", "document" (long prose), "random" ids."""
        tail = ids[-600:]
        if not tail:
            return "chat"
        known = sum(self.words_from <= token < self.words_to for token in tail)
        text = self.decode(tail)
        if len(tail) >= 32 and known < 0.08 * len(tail):
            return "random"
        marks = sum(text.count(mark) for mark in ("(", ")", "=", "_", "    ", "def ", "return", "self.", "`"))
        if marks > 0.02 * len(text):
            return "code"
        return "document" if len(ids) > 3000 else "chat"
