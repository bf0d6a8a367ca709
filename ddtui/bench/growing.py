"""Grows what is asked to an exact length with natural text. Pure, and long enough work for a thread.

A prompt is a list of pieces, and pieces are JSON fragments that are ready to be sent (token ids, or parts
of a JSON string): a context of 128k tokens is made of pieces that many prompts share, so that neither the
job nor the worker holds it more than once. The first piece differs in every prompt and run, so no prefix
cache is ever hit by accident.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CHUNK = 512  # tokens of material in a piece
SALT = 6  # tokens, or words, that differ from prompt to prompt
HEAD = 8  # tokens that a chat template puts around a message, about
TEMPLATE = 128  # and at most
COUNTED, GUESSED = 0.05, 1.0  # by how much a text may have more tokens than were counted, or guessed
Ids = Sequence[int]
# short and common, one token each in most vocabularies: 6 of 64 make 7e10 beginnings
WORDS = (  # noqa: SIM905 (a list would take a page)
    "time year people way day man thing woman life child world school state family student group country "
    "problem hand part place case week company system program question work number night point home water "
    "room mother area money story fact month lot right study book eye job word business issue side kind "
    "head house service friend father power hour game line end member law car city name team"
).split()


@dataclass(frozen=True, slots=True)
class Prompt:
    index: int
    pieces: tuple[int, ...]
    tokens: int | None  # exact; None: estimated
    task: str  # what is asked, by name


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a cell."""

    pieces: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    ids: bool  # pieces are token ids, to be joined by commas; else parts of a JSON string
    identity: str  # equal: the same prompts but for the salt
    largest_id: int | None
    note: str = ""  # what is not as asked
    longest: int = 0  # tokens that one of them may have


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing to ask: what stands before the material and after it."""

    name: str
    before: str
    after: str


class Pieces:
    """Pieces, each held once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def put(self, piece: str) -> int:
        if piece not in self._at:
            self._at[piece] = len(self.all)
            self.all.append(piece)
        return self._at[piece]


def of_ids(
    asks: Sequence[Ask],
    texts: Sequence[str],
    ids: Mapping[str, Ids],
    begin: Ids,
    *,
    context: int,
    count: int,
    salt: str,
    seed: int,
    identity: str,
) -> Prompts:
    """`count` prompts of exactly `context` tokens. `texts`: the material; `ids`: the tokens of each text, of
    material and asks alike; `begin`: what stands before every prompt (a BOS token, or nothing).
    """
    stream = [token for text in texts for token in ids[text]]
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    pieces = Pieces()
    places = [pieces.put(_ids(chunk)) for chunk in chunks]
    known = sorted(set(stream))
    order = random.Random(seed)
    prompts, cut = [], 0
    for index in range(count):
        ask = asks[index % len(asks)]
        salted = random.Random(f"{salt}/{index}").choices(known, k=SALT)
        head, tail = [*begin, *salted, *ids[ask.before]], list(ids[ask.after])
        at, room = order.randrange(len(chunks)), context - len(head) - len(tail)
        if room < 0:  # what is asked matters most at its end: the beginning is cut away
            cut += 1
            tail = tail[max(0, len(head) + len(tail) - context) :]
            head, room = head[: context - len(tail)], 0
        parts = [pieces.put(_ids(head))]
        while room:
            chunk = chunks[at % len(chunks)]
            whole = len(chunk) <= room
            parts.append(places[at % len(chunks)] if whole else pieces.put(_ids(chunk[:room])))
            room -= min(room, len(chunk))
            at += 1
        if tail:
            parts.append(pieces.put(_ids(tail)))
        prompts.append(Prompt(index, tuple(parts), context, ask.name))
    note = (
        f"{cut} of {count} prompts are longer than {context} tokens by themselves and were cut" if cut else ""
    )
    largest = max((token for used in ids.values() for token in used), default=0)
    largest = max(largest, *begin, 0)
    return Prompts(tuple(pieces.all), tuple(prompts), True, identity, largest, note, context)


def of_text(
    asks: Sequence[Ask],
    texts: Sequence[str],
    tokens: Mapping[str, float],
    *,
    context: int,
    count: int,
    salt: str,
    seed: int,
    identity: str,
    note: str,
) -> Prompts:
    """`count` prompts of about `context` tokens, as text. `texts`: the material in pieces; `tokens`: how many
    each text has.
    """
    chunks = [(text, max(1.0, tokens[text])) for text in texts]
    pieces = Pieces()
    places = [pieces.put(as_json_text(chunk)) for chunk, _ in chunks]
    order = random.Random(seed)
    prompts = []
    for index in range(count):
        ask = asks[index % len(asks)]
        salted = " ".join(random.Random(f"{salt}/{index}").choices(WORDS, k=SALT)) + "\n"
        parts = [pieces.put(as_json_text(salted + ask.before))]
        at, room = (
            order.randrange(len(chunks)),
            context - SALT - HEAD - tokens[ask.before] - tokens[ask.after],
        )
        while room >= 1:
            chunk, size_in_tokens = chunks[at % len(chunks)]
            whole = size_in_tokens <= room
            part = chunk[: int(len(chunk) * room / size_in_tokens)]
            parts.append(places[at % len(chunks)] if whole else pieces.put(as_json_text(part)))
            room -= size_in_tokens
            at += 1
        if ask.after:
            parts.append(pieces.put(as_json_text(ask.after)))
        prompts.append(Prompt(index, tuple(parts), None, ask.name))
    most = max(context, *(SALT + HEAD + tokens[ask.before] + tokens[ask.after] for ask in asks))
    longest = math.ceil((1 + (GUESSED if note else COUNTED)) * most) + TEMPLATE
    return Prompts(tuple(pieces.all), tuple(prompts), False, identity, None, note, longest)


def as_json_text(text: str) -> str:
    """The text as it stands inside of a JSON string."""
    return json.dumps(text)[1:-1]


def _ids(ids: Ids) -> str:
    return ",".join(map(str, ids))
