"""Makes prompts: what is asked, grown to an exact length with natural text, begun with a salt.

A prompt is a list of pieces, and pieces are JSON fragments that are ready to be sent (token ids, or parts
of a JSON string): a context of 128k tokens is made of pieces that many prompts share, so that neither the
job nor the worker holds it more than once. The first piece differs in every prompt and run, so no prefix
cache is ever hit by accident.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ddtui.bench import material
from ddtui.bench.material import Document
from ddtui.bench.model import ApiKind, Cell
from ddtui.bench.target import BenchError
from ddtui.bench.tasks import coding_tasks

WORKLOADS = {
    "code": "coding tasks under files of source code",
    "completion": "go on in the middle of long source files",
    "chat": "questions of everyday life after a long talk",
    "document": "questions about a long document",
}
Tokenize = Callable[[str], Awaitable[Sequence[int]]]

CHUNK = 512  # tokens of material in a piece
CHARS_PER_TOKEN = 3.6  # where nobody can tell
MOST_MATERIAL = 400_000  # tokens taken of the material for one cell
LEAST_MATERIAL = 40_000


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


@dataclass(frozen=True, slots=True)
class _Ask:
    """One thing to ask: what stands before the material and after it."""

    name: str
    before: str
    after: str


async def build(
    cell: Cell, count: int, *, api: ApiKind, tokenize: Tokenize | None, salt: str, seed: int = 0
) -> Prompts:
    """`count` prompts of `cell.context` tokens. Raises BenchError for a workload that cannot be had.

    Token ids are used for /generate and /v1/completions when the server tokenizes; otherwise text of about
    the right length, and the note says so. The chat endpoint takes text.
    """
    asks, documents = _source(cell.workload)
    identity = _identity(cell, asks, documents, api, seed)
    if tokenize is not None and api != "chat":
        return await _of_ids(cell, count, asks, documents, tokenize, salt, seed, identity)
    ratio = await _chars_per_token(documents, tokenize)
    return _of_text(cell, count, asks, documents, ratio, salt, seed, identity, exact=tokenize is not None)


def _source(workload: str) -> tuple[list[_Ask], tuple[Document, ...]]:
    if workload == "code":
        before = "# The files of this project that matter for the task follow.\n\n"
        asks = [
            _Ask(task.name, before, f"\n\n# ----\n# Task: {task.name}\n\n{task.prompt}\nAnswer:\n```python\n")
            for task in coding_tasks()
        ]
        return asks, material.code()
    if workload == "completion":
        return [_Ask("completion", "", "")], material.code()
    if workload == "chat":
        before = "Notes from our last conversations, for background:\n\n"
        lines = _lines("chat.txt")
        return [
            _Ask(f"chat-{at}", before, f"\n\nUser: {line}\nAssistant:") for at, line in enumerate(lines, 1)
        ], material.prose()
    if workload == "document":
        lines = _lines("questions.txt")
        return [
            _Ask(f"question-{at}", "Read this text.\n\n", f"\n\n{line}\nAnswer:")
            for at, line in enumerate(lines, 1)
        ], material.prose()
    if workload.endswith((".jsonl", ".json")) or "/" in workload:
        return _own(Path(workload).expanduser()), material.code()
    raise BenchError(
        f"there is no workload {workload!r}: take {', '.join(WORKLOADS)}, or the path of a .jsonl file"
    )


def _lines(name: str) -> list[str]:
    text = (resources.files("ddtui.bench") / "workloads" / name).read_text("utf-8")
    return [line for line in text.splitlines() if line.strip()]


def _own(path: Path) -> list[_Ask]:
    """The user's prompts, one a line: a JSON object with "prompt", "text" or "messages", or a JSON string."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise BenchError(f"the workload {path} cannot be read: {reason}") from None
    asks = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            text = _asked(json.loads(line))
        except ValueError:
            text = None
        if not text:
            raise BenchError(
                f'{path}, line {number}: no prompt; a line is like {{"prompt": "…"}} or '
                '{"messages": [{"role": "user", "content": "…"}]}'
            )
        asks.append(_Ask(f"line-{number}", "", text))
    if not asks:
        raise BenchError(f"the workload {path} is empty")
    return asks


def _asked(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return None
    for key in ("prompt", "text", "question", "instruction"):
        if isinstance(value.get(key), str):
            return str(value[key])
    talk = value.get("messages") or value.get("conversations")
    if isinstance(talk, list):
        said = [part.get("content") or part.get("value") for part in talk if isinstance(part, dict)]
        return "\n\n".join(part for part in said if isinstance(part, str))
    return None


def _identity(cell: Cell, asks: list[_Ask], documents: tuple[Document, ...], api: str, seed: int) -> str:
    parts = [cell.workload, str(cell.context), api, str(seed), material.fingerprint(documents)]
    parts += [f"{ask.before}\0{ask.after}" for ask in asks]
    return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()[:16]


def _salt(salt: str, index: int) -> str:
    """The first words of a prompt: their first characters differ from prompt to prompt and run to run."""
    return hashlib.sha256(f"{salt}/{index}".encode()).hexdigest()[:16] + "\n"


class _Tokens:
    """The server's tokenizer, without the special tokens that it puts around a text."""

    def __init__(self, tokenize: Tokenize, begin: tuple[int, ...], end: tuple[int, ...]) -> None:
        self._tokenize = tokenize
        self.begin = begin
        self._end = end
        self._known: dict[str, tuple[int, ...]] = {}

    @classmethod
    async def of(cls, tokenize: Tokenize) -> _Tokens:
        one, other = tuple(await tokenize("x")), tuple(await tokenize("7\n"))
        begin = _shared(one, other)
        end = _shared(one[len(begin) :][::-1], other[len(begin) :][::-1])[::-1]
        return cls(tokenize, begin, end)

    async def ids(self, text: str) -> tuple[int, ...]:
        known = self._known.get(text)
        if known is None:
            whole = tuple(await self._tokenize(text))
            known = self._known[text] = whole[len(self.begin) : len(whole) - len(self._end)]
        return known


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


class _Pieces:
    """Pieces, each held once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def put(self, piece: str) -> int:
        if piece not in self._at:
            self._at[piece] = len(self.all)
            self.all.append(piece)
        return self._at[piece]


async def _of_ids(
    cell: Cell,
    count: int,
    asks: list[_Ask],
    documents: tuple[Document, ...],
    tokenize: Tokenize,
    salt: str,
    seed: int,
    identity: str,
) -> Prompts:
    tokens = await _Tokens.of(tokenize)
    stream: list[int] = []
    need = min(MOST_MATERIAL, max(LEAST_MATERIAL, 2 * cell.context))
    for document in _shuffled(documents, seed):
        if len(stream) >= need:
            break
        stream += await tokens.ids(f"# file: {document.name}\n\n{document.text}\n")
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream) - CHUNK + 1, CHUNK)]
    if not chunks:
        raise BenchError("the server's tokenizer gave no tokens for the text that prompts are made of")
    pieces, prompts, skipped = _Pieces(), [], 0
    largest = max(stream, default=0)
    order = random.Random(seed)
    starts = [order.randrange(len(chunks)) for _ in range(count)]
    for index in range(count):
        ask = asks[index % len(asks)]
        head = [*tokens.begin, *await tokens.ids(_salt(salt, index)), *await tokens.ids(ask.before)]
        tail = list(await tokens.ids(ask.after))
        room = cell.context - len(head) - len(tail)
        if room < 0:  # what is asked stands at the end: the beginning is cut away
            skipped += 1
            tail = tail[max(0, len(head) + len(tail) - cell.context) :]
            head = head[: cell.context - len(tail)]
            room = 0
        largest = max(largest, *head, *tail, 0)
        parts = [pieces.put(_ids(head))]
        at = starts[index]
        while room:
            chunk = chunks[at % len(chunks)][:room]
            parts.append(pieces.put(_ids(chunk)))
            room -= len(chunk)
            at += 1
        if tail:
            parts.append(pieces.put(_ids(tail)))
        prompts.append(
            Prompt(index, tuple(part for part in parts if pieces.all[part]), cell.context, ask.name)
        )
    note = (
        f"{skipped} of {count} prompts are longer than {cell.context} tokens by themselves and were cut"
        if skipped
        else ""
    )
    return Prompts(tuple(pieces.all), tuple(prompts), True, identity, largest, note)


def _of_text(
    cell: Cell,
    count: int,
    asks: list[_Ask],
    documents: tuple[Document, ...],
    ratio: float,
    salt: str,
    seed: int,
    identity: str,
    *,
    exact: bool,
) -> Prompts:
    stream = "".join(f"# file: {d.name}\n\n{d.text}\n" for d in _shuffled(documents, seed))
    stream = stream[: int(ratio * min(MOST_MATERIAL, max(LEAST_MATERIAL, 2 * cell.context)))]
    size = int(CHUNK * ratio)
    chunks = [stream[at : at + size] for at in range(0, len(stream) - size + 1, size)]
    pieces, prompts = _Pieces(), []
    order = random.Random(seed)
    for index in range(count):
        ask = asks[index % len(asks)]
        head = _salt(salt, index) + ask.before
        room = int(cell.context * ratio) - len(head) - len(ask.after)
        parts = [pieces.put(_text(head))]
        at = order.randrange(len(chunks))
        while room > 0:
            chunk = chunks[at % len(chunks)][:room]
            parts.append(pieces.put(_text(chunk)))
            room -= len(chunk)
            at += 1
        if ask.after:
            parts.append(pieces.put(_text(ask.after)))
        prompts.append(Prompt(index, tuple(parts), None, ask.name))
    note = (
        ""
        if exact
        else f"the server does not tokenize: contexts are estimates, {CHARS_PER_TOKEN} characters a token"
    )
    return Prompts(tuple(pieces.all), tuple(prompts), False, identity, None, note)


async def _chars_per_token(documents: tuple[Document, ...], tokenize: Tokenize | None) -> float:
    if tokenize is None:
        return CHARS_PER_TOKEN
    sample = "".join(document.text[:4000] for document in documents[:8])
    return len(sample) / max(1, len(await tokenize(sample)))


def _shuffled(documents: tuple[Document, ...], seed: int) -> list[Document]:
    mixed = list(documents)
    random.Random(f"material {seed}").shuffle(mixed)
    return mixed


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _text(text: str) -> str:
    return json.dumps(text)[1:-1]
