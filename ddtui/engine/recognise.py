"""What a file seems to be, for the sentence that refuses a wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ddtui.engine.answers import is_model_info, is_server_info
from ddtui.engine.log import Kind, LogLine, parse_all

# What another program's text may hold as well.
ANYBODYS = frozenset({Kind.OTHER, Kind.WARNING, Kind.TRACEBACK, Kind.EXCEPTION, Kind.PROGRESS, Kind.SIGNAL})
SERVER_INFO, MODEL_INFO, LOG = "an answer of /server_info", "an answer of /model_info", "a server's log"
OF_A_SERVER = frozenset({SERVER_INFO, MODEL_INFO, LOG})
CONFIG_KEYS = frozenset(
    {"model_type", "architectures", "num_hidden_layers", "hidden_size", "layer_types", "dflash_config"}
)


def body(data: bytes) -> Any:
    """The JSON in a file, with or without the HTTP head that `curl -i` puts before it. Raises ValueError."""
    head, blank, rest = data.partition(b"\r\n\r\n")
    text = rest if blank and head.startswith(b"HTTP/") else data
    try:
        return json.loads(text)
    except ValueError:
        start, end = text.find(b"{"), text.rfind(b"}")  # chunked framing around it
        return json.loads(text[start : end + 1])


def is_config(answer: Mapping[str, Any]) -> bool:
    """Whether it can be a model's config.json, of a drafter or not."""
    if is_server_info(answer) or is_model_info(answer):  # which name the model's type too
        return False
    nested = answer.get("text_config")
    return not CONFIG_KEYS.isdisjoint(answer) or isinstance(nested, dict)


def is_log(lines: Iterable[LogLine]) -> bool:
    """Whether one of these lines is SGLang's own."""
    return any(line.time is not None or line.kind not in ANYBODYS for line in lines)


def looks_like(data: bytes) -> str:
    """A noun with its article."""
    if not data.strip():
        return "an empty file"
    answer: Any = None
    with suppress(ValueError, RecursionError):
        answer = body(data)
    if isinstance(answer, dict):
        return _object(answer)
    if b"\0" in data[:4096]:
        return "a binary file"
    if isinstance(answer, list):
        return "a JSON list"
    return LOG if is_log(parse_all(data.decode("utf-8", "replace").split("\n"))) else "another text"


def _object(answer: Mapping[str, Any]) -> str:
    if is_server_info(answer):
        return SERVER_INFO
    if is_model_info(answer):
        return MODEL_INFO
    if "added_tokens" in answer or "tokenizer_class" in answer:
        return "a tokenizer's file"
    if is_config(answer):
        return "a model's config.json"
    keys = ", ".join(list(answer)[:3])
    return f"a JSON object with {keys}" if keys else "an empty JSON object"
