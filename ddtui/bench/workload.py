"""The workloads: what is asked, of whom the text around it comes, and the prompts for a cell.

Each is grown to the cell's context length by `growing`; the server tokenizes, so lengths are exact.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ddtui.bench import growing, material
from ddtui.bench.growing import Ask, Ids, Prompts
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

CHARS_PER_TOKEN = 3.6  # where nobody can tell
MOST_CHARS_PER_TOKEN = 5
MOST_MATERIAL = 400_000  # tokens taken of the material for one cell
LEAST_MATERIAL = 40_000
AT_ONCE = 8  # texts that the server tokenizes at a time


async def build(
    cell: Cell, count: int, *, api: ApiKind, tokenize: Tokenize | None, salt: str, seed: int = 0
) -> Prompts:
    """`count` prompts of `cell.context` tokens. Raises BenchError for a workload that cannot be had.

    Token ids are used for /generate and /v1/completions when the server tokenizes; otherwise text of about
    the right length, and the note says so where it is an estimate. The chat endpoint takes text.
    """
    asks, documents = await asyncio.to_thread(_source, cell.workload)
    identity = await asyncio.to_thread(_identity, cell, asks, documents, api, seed)
    asks = asks[:count]
    texts = _material(documents, seed, 2 * cell.context)
    if tokenize is None or api == "chat":  # text: counted piece by piece
        size = int(growing.CHUNK * CHARS_PER_TOKEN)
        texts = [text[at : at + size] for text in texts for at in range(0, len(text), size)]
    wanted = [*texts, *{ask.before for ask in asks}, *{ask.after for ask in asks}]
    sizes = {"context": cell.context, "count": count, "seed": seed}
    if tokenize is None:
        guess = f"the server does not tokenize: contexts are estimates, {CHARS_PER_TOKEN} characters a token"
        tokens = {text: len(text) / CHARS_PER_TOKEN for text in wanted}
        return await asyncio.to_thread(
            growing.of_text, asks, texts, tokens, salt=salt, identity=identity, note=guess, **sizes
        )
    begin, ids = await _tokenized(tokenize, wanted)
    if not any(ids[text] for text in texts):
        raise BenchError("the server's tokenizer gave no tokens for the text that prompts are made of")
    if api == "chat":
        tokens = {text: float(len(ids[text])) for text in wanted}
        return await asyncio.to_thread(
            growing.of_text, asks, texts, tokens, salt=salt, identity=identity, note="", **sizes
        )
    return await asyncio.to_thread(
        growing.of_ids, asks, texts, ids, begin, salt=salt, identity=identity, **sizes
    )


def _material(documents: tuple[Document, ...], seed: int, tokens: int) -> list[str]:
    """Texts in an order of their own, enough for so many tokens even where a token has many characters."""
    mixed = list(documents)
    random.Random(f"material {seed}").shuffle(mixed)
    need, texts, have = MOST_CHARS_PER_TOKEN * min(MOST_MATERIAL, max(LEAST_MATERIAL, tokens)), [], 0
    for document in mixed:
        if have >= need:
            break
        texts.append(f"# file: {document.name}\n\n{document.text}\n")
        have += len(texts[-1])
    return texts


async def _tokenized(tokenize: Tokenize, texts: Iterable[str]) -> tuple[Ids, dict[str, Ids]]:
    """What the tokenizer puts before every text, and the tokens of each text without what it puts around
    it.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(text: str) -> tuple[int, ...]:
        async with slots:
            return tuple(await tokenize(text)) if text else ()

    x, seven = await one("x"), await one("7\n")
    begin = _shared(x, seven)
    end = len(_shared(x[len(begin) :][::-1], seven[len(begin) :][::-1]))
    each = list(dict.fromkeys(texts))
    found = await asyncio.gather(*map(one, each))
    return begin, {text: ids[len(begin) : len(ids) - end] for text, ids in zip(each, found, strict=True)}


def _shared(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Their common beginning."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return one[:n]


def _source(workload: str) -> tuple[list[Ask], tuple[Document, ...]]:
    if workload == "code":
        before = "# The files of this project that matter for the task follow.\n\n"
        asks = [
            Ask(task.name, before, f"\n\n# ----\n# Task: {task.name}\n\n{task.prompt}\nAnswer:\n```python\n")
            for task in coding_tasks()
        ]
        return asks, material.code()
    if workload == "completion":
        return [Ask("completion", "", "")], material.code()
    if workload == "chat":
        before = "Notes from our last conversations, for background:\n\n"
        lines = _lines("chat.txt")
        return [
            Ask(f"chat-{at}", before, f"\n\nUser: {line}\nAssistant:") for at, line in enumerate(lines, 1)
        ], material.prose()
    if workload == "document":
        lines = _lines("questions.txt")
        return [
            Ask(f"question-{at}", "Read this text.\n\n", f"\n\n{line}\nAnswer:")
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


def _own(path: Path) -> list[Ask]:
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
        asks.append(Ask(f"line-{number}", "", text))
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


def _identity(cell: Cell, asks: list[Ask], documents: tuple[Document, ...], api: str, seed: int) -> str:
    parts = [cell.workload, str(cell.context), api, str(seed), material.fingerprint(documents)]
    parts += [f"{ask.before}\0{ask.after}" for ask in asks]
    return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()[:16]
