"""One line of SGLang's log, read: what kind it is and what it says.

Formats: the sources of 0.5.9 to 0.5.23 and real logs of 0.5.11. A line begins with `[DATE TIME RANKS] ` and
has no level; tqdm bars, tracebacks and Python warnings have no prefix. A tqdm bar is rewritten with `\\r`,
so one line of a file, or one journal entry, may hold hundreds of its states and a log line glued to the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    DECODE = "decode"
    PREFILL = "prefill"
    ARGUMENTS = "server_args"
    DISTRIBUTED = "distributed"
    LOAD_BEGIN = "load_begin"
    LOAD_SHARDS = "load_shards"
    LOAD_END = "load_end"
    KV_DTYPE = "kv_dtype"
    KV_POOL = "kv_pool"
    POOL_END = "pool_end"
    GRAPH_BEGIN = "graph_begin"
    GRAPH_SIZES = "graph_sizes"
    GRAPH_STEP = "graph_step"
    GRAPH_END = "graph_end"
    DRAFT_RUNNER = "draft_runner"
    DRAFT_READY = "draft_ready"
    DDTREE_WORKER = "ddtree_worker"
    BACKEND = "backend"  # which attention backend was chosen
    LIMITS = "limits"  # max_total_num_tokens=…
    HTTP_UP = "http_up"
    ACCESS = "access"
    READY = "ready"
    CACHE_FLUSHED = "cache_flushed"
    DRAINING = "draining"
    OVERRIDE = "override"  # an argument was changed, or has no effect
    USAGE = "usage"  # argparse's usage text
    ARGUMENT_ERROR = "argument_error"
    TRACEBACK = "traceback"  # Traceback…, and the lines in it
    EXCEPTION = "exception"  # SomeError: …
    SIGNAL = "signal"
    RETRACT = "retract"
    WARNING = "warning"
    PROGRESS = "progress"  # another tqdm bar
    OTHER = "other"


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, read. `level` is inferred from the text where SGLang does not write one."""

    kind: Kind
    text: str  # without the prefix; of a progress bar its last state
    level: Level = Level.INFO
    time: str | None = None  # as SGLang wrote it: the host's local time
    rank: str | None = None  # "DP0 TP1"; None: the main process, or a line without a prefix
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""


_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIX = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?)(?P<rank>(?: [A-Z][A-Z_]*\d+)*)\]"
    r" ?(?P<text>.*)",
    re.S,
)
_GLUED = re.compile(r"(?<=[\])])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\] )")
_BAR = re.compile(
    r"^(?P<label>.*?):?\s*(?P<percent>\d{1,3})%(?:\||\s*Completed)[^|]*\|?\s*(?P<done>\d+)/(?P<total>\d+)\b"
)
_PAIR = re.compile(r"(?P<key>[#\w][\w #()/.-]*?): (?P<value>[^,]*)")
_EQUALS = re.compile(r"(?P<key>[A-Za-z_][\w ]*?)=(?P<value>\[[^\]]*\]|[^,\s]+)")


def split(raw: str) -> tuple[str, ...]:
    """The pieces of one raw line: of each progress bar the last state, and log lines glued to it apart."""
    if "\r" not in raw and "]" not in raw:
        return (raw,) if raw.strip() else ()
    pieces: list[str] = []
    labels: list[str | None] = []
    for part in raw.split("\r"):
        for piece in _GLUED.split(part):
            if not piece.strip():
                continue
            bar = None if _PREFIX.match(piece) else _BAR.match(piece)
            label = bar["label"].split("(")[0].strip() if bar else None
            if label is not None and labels and labels[-1] in (label, ""):
                pieces[-1], labels[-1] = piece, label
            else:
                pieces.append(piece)
                labels.append(label)
    return tuple(pieces)


def parse(text: str) -> LogLine:
    """Read one line. If it holds several pieces, the last one counts."""
    pieces = split(text.rstrip("\n"))
    return _read(pieces[-1] if pieces else "")


def parse_all(lines: Iterable[str]) -> Iterator[LogLine]:
    """Read many raw lines, every piece of each."""
    for line in lines:
        for piece in split(line.rstrip("\n")):
            yield _read(piece)


def _read(raw: str) -> LogLine:
    clean = _ANSI.sub("", raw)
    prefix = _PREFIX.match(clean)
    time, rank, text = (
        (prefix["time"], prefix["rank"].strip() or None, prefix["text"]) if prefix else (None, None, clean)
    )
    kind, level, fields = _classify(text, prefixed=bool(prefix))
    return LogLine(kind, text, level, time, rank, fields, raw)


def _classify(text: str, *, prefixed: bool) -> tuple[Kind, Level, dict[str, Any]]:
    if not prefixed:
        bare = _bare(text)
        if bare is not None:
            return bare
    for pattern, kind, level, reader in _RULES:
        match = pattern.search(text)
        if match:
            return kind, level, reader(text, match)
    if _OVERRIDE.search(text):
        return Kind.OVERRIDE, Level.WARNING, _overridden(text)
    if _ERROR.search(text):
        return Kind.OTHER, Level.ERROR, {}
    if _WARNING.search(text):
        return Kind.WARNING, Level.WARNING, {}
    return Kind.OTHER, Level.INFO, {}


def _bare(text: str) -> tuple[Kind, Level, dict[str, Any]] | None:
    """Lines that carry no prefix: bars, tracebacks, argparse."""
    bar = _BAR.match(text)
    if bar:
        fields: dict[str, Any] = {
            "done": int(bar["done"]),
            "total": int(bar["total"]),
            "percent": int(bar["percent"]),
        }
        label = bar["label"].strip()
        batch = re.search(r"\b(?:bs|num_tokens)=(\d+)", label)
        if batch:
            fields["size"] = int(batch[1])
        fields["label"] = label.split("(")[0].strip()
        if "shard" in label.lower() or label.lower().startswith("loading"):
            return Kind.LOAD_SHARDS, Level.INFO, fields
        if label.startswith(("Capturing", "Compiling")):
            return Kind.GRAPH_STEP, Level.INFO, fields
        return Kind.PROGRESS, Level.INFO, fields
    if text.startswith("usage: ") or re.match(r" {8,}\[-{1,2}[a-zA-Z]", text):
        return Kind.USAGE, Level.INFO, {}
    error = re.match(r"(?P<program>[\w./ -]{1,60}?): error: (?P<message>.*)", text)
    if error:
        return Kind.ARGUMENT_ERROR, Level.ERROR, _argument_error(error["message"])
    if text.startswith("Traceback (most recent call last)") or re.match(r'  File ".*", line \d+', text):
        return Kind.TRACEBACK, Level.ERROR, {}
    if text.startswith("The above exception was") or text.startswith(
        "During handling of the above exception"
    ):
        return Kind.TRACEBACK, Level.ERROR, {}
    warning = re.match(r"\S+:\d+: (?P<type>\w*Warning): ", text)
    if warning:
        return Kind.WARNING, Level.WARNING, {"type": warning["type"]}
    raised = re.match(
        r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure))"
        r"(?:: (?P<message>.*))?$",
        text,
    )
    if raised:
        return Kind.EXCEPTION, Level.ERROR, {"type": raised["type"], "message": raised["message"] or ""}
    return None


def _argument_error(message: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"message": message}
    named = re.match(r"argument (?P<flag>\S+): (?P<reason>.*)", message)
    if named:
        fields["flag"] = named["flag"].rstrip(",").split("/")[0]
        value = re.search(
            r"(?:invalid \S+ value|invalid choice|ignored explicit argument): '?(?P<value>[^']*)'?",
            named["reason"],
        )
        if value:
            fields["value"] = value["value"].split(" (choose")[0]
    unknown = re.match(r"unrecognized arguments: (?P<rest>.*)", message)
    if unknown:
        fields["flag"] = next((word for word in unknown["rest"].split() if word.startswith("-")), None)
    ambiguous = re.match(r"ambiguous option: (?P<flag>\S+) could match", message)
    if ambiguous:
        fields["flag"] = ambiguous["flag"]
    return fields


def _overridden(text: str) -> dict[str, Any]:
    """Which argument a warning is about, by its field name, and what it became."""
    changed = re.search(r"overriding (?P<argument>\w+)=(?P<asked>\S+) to (?P<became>[\w-]+)", text)
    if changed:
        return _groups(text, changed)
    reset = re.search(
        r"^(?P<argument>[A-Z][\w -]+|[a-z_]+) is (?:reset|adjusted|set) to (?P<became>[\w-]+)", text
    )
    if reset:
        return _groups(text, reset) | {"argument": key(reset["argument"])}
    named = re.search(
        r"--(?P<flag>[a-z][a-z0-9-]+)|\b(?P<field>(?:speculative|disable|enable|max)_\w+)", text
    )
    if "overlap schedule" in text.lower():
        return {"argument": "disable_overlap_schedule", "became": True}
    return {"argument": (named["flag"] or named["field"]).replace("-", "_")} if named else {}


# --- fields -------------------------------------------------------------------------------------------------


def value(text: str) -> Any:
    """`8`, `0.19`, `True`, `None`, `[1, 2]`, or the text itself."""
    text = text.strip().rstrip(".") if re.fullmatch(r"\s*-?\d+(\.\d+)?\.\s*", text) else text.strip()
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.\d+(e[+-]?\d+)?|-?\d+e[+-]?\d+|-?inf|nan", text):
        return float(text)
    if text.startswith("[") and text.endswith("]"):
        return [value(item) for item in text[1:-1].split(",") if item.strip()]
    return text


def key(text: str) -> str:
    """`#running-req` → running_req, `gen throughput (token/s)` → gen_throughput."""
    return re.sub(r"\W+", "_", re.sub(r"\(.*?\)", "", text).strip(" #")).strip("_").lower()


def pairs(text: str) -> dict[str, Any]:
    """The `key: value` pairs of a batch line, in any order; unknown ones too."""
    return {key(pair["key"]): value(pair["value"]) for pair in _PAIR.finditer(text)}


def equals(text: str) -> dict[str, Any]:
    """The `key=value` pairs of a line; `avail mem=69.10 GB` is avail_mem, in GB."""
    return {
        key(pair["key"]): value(
            pair["value"].rstrip(".") if not pair["value"].endswith("...") else pair["value"]
        )
        for pair in _EQUALS.finditer(text)
    }


def _none(text: str, match: re.Match[str]) -> dict[str, Any]:
    return {}


def _groups(text: str, match: re.Match[str]) -> dict[str, Any]:
    return {name: value(found) for name, found in match.groupdict().items() if found is not None}


def _pairs(text: str, match: re.Match[str]) -> dict[str, Any]:
    return pairs(text[match.end() :])


def _equals(text: str, match: re.Match[str]) -> dict[str, Any]:
    return equals(text[match.end() :]) | _groups(text, match)


def _load_end(text: str, match: re.Match[str]) -> dict[str, Any]:
    fields = _equals(text, match)
    fields["drafter"] = bool(re.search(r"Draft|Eagle|NextN|MTP", str(fields.get("type", ""))))
    return fields


def _graph(text: str, match: re.Match[str]) -> dict[str, Any]:
    fields = _equals(text, match)
    elapsed = re.search(r"Time elapsed: ([\d.]+) s", text)
    if elapsed:
        fields["elapsed"] = float(elapsed[1])
    return fields


def _sizes(text: str, match: re.Match[str]) -> dict[str, Any]:
    return {"what": match["what"], "sizes": value(match["sizes"])}


def _rule(
    pattern: str, kind: Kind, reader: Any = _none, level: Level = Level.INFO
) -> tuple[re.Pattern[str], Kind, Level, Any]:
    return re.compile(pattern, re.S), kind, level, reader


_GB = r"(?P<{}>[\d.]+) GB"
_RULES = (
    _rule(r"^Decode batch\b[^,]*, ", Kind.DECODE, _pairs),
    _rule(r"^Prefill batch\b[^,]*, ", Kind.PREFILL, _pairs),
    _rule(
        r"^INFO:\s+\S+ - \"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+\" (?P<status>\d{3})",
        Kind.ACCESS,
        _groups,
    ),
    _rule(r"^server_args=\w+\(", Kind.ARGUMENTS),
    _rule(r"^Init (?:torch distributed|parallel) (?P<edge>begin|ends)\.", Kind.DISTRIBUTED, _equals),
    _rule(r"^Load weight begin\.", Kind.LOAD_BEGIN, _equals),
    _rule(r"^Load weight end\.", Kind.LOAD_END, _load_end),
    _rule(r"^Using KV cache dtype: (?P<dtype>\S+)", Kind.KV_DTYPE, _groups),
    _rule(
        r"^(?P<label>.*?)(?: is allocated| VA upper bound| allocated)\. (?:dtype: (?P<dtype>\S+), )?"
        r"#tokens: (?P<tokens>\d+)"
        rf", (?:KV size: {_GB.format('kv')}|K size: {_GB.format('k')}, V size: {_GB.format('v')})",
        Kind.KV_POOL,
        _groups,
    ),
    _rule(r"^Memory pool end\.", Kind.POOL_END, _equals),
    _rule(
        r"^Capture (?P<what>cuda graph|.*graph) (?:bs|num tokens) (?P<sizes>\[.*\])", Kind.GRAPH_SIZES, _sizes
    ),
    _rule(r"^Capture (?P<what>.*?[gG]raph) begin\.", Kind.GRAPH_BEGIN, _graph),
    _rule(r"^Capture (?P<what>.*?[gG]raph) end\.", Kind.GRAPH_END, _graph),
    _rule(r"^Initialized DFLASH draft runner\. ", Kind.DRAFT_RUNNER, _equals),
    _rule(r"^DFLASH draft runner ready\. ", Kind.DRAFT_READY, _equals),
    _rule(
        r"^(?:Initialized (?P<worker>DDTree|DDTREE)(?: v2)? worker\. |Inferred speculative_ddtree)",
        Kind.DDTREE_WORKER,
        _equals,
    ),
    _rule(
        r"Attention backend not (?:specified|explicitly).*?Use (?P<backend>\w+)|^Use \w+ .*attention backend",
        Kind.BACKEND,
        _groups,
    ),
    _rule(r"^max_total_num_tokens=(?P<max_total_num_tokens>\d+), ", Kind.LIMITS, _equals),
    _rule(r"Uvicorn running on (?P<url>\S+)", Kind.HTTP_UP, _groups),
    _rule(r"^The server is fired up and ready to roll!", Kind.READY),
    _rule(r"^Cache flushed successfully", Kind.CACHE_FLUSHED),
    _rule(r"^Cache not flushed because", Kind.WARNING, level=Level.WARNING),
    _rule(r"Draining requests and shutting down", Kind.DRAINING, level=Level.WARNING),
    _rule(
        r"^Gracefully exiting\.\.\. Remaining number of requests (?P<remaining>\d+)",
        Kind.DRAINING,
        _groups,
        Level.WARNING,
    ),
    _rule(
        r"KV cache pool is full\. Retract requests\..*?#retracted_reqs: (?P<retracted>\d+)",
        Kind.RETRACT,
        _groups,
        Level.WARNING,
    ),
    _rule(r"KV cache pool is full", Kind.RETRACT, level=Level.WARNING),
    _rule(r"Traceback \(most recent call last\)", Kind.TRACEBACK, level=Level.ERROR),
    _rule(
        r"SIGQUIT received|sigquit from a child|Subprocess .* crashed with exit code",
        Kind.SIGNAL,
        level=Level.ERROR,
    ),
    _rule(r"^ERROR:\s+", Kind.OTHER, level=Level.ERROR),
    _rule(r"^WARNING:\s+", Kind.WARNING, level=Level.WARNING),
)
_OVERRIDE = re.compile(
    r"overrid(?:ing|den)|has no effect|is reset to|(?:is|are) disabled|is adjusted|block size mismatch"
    r"|differs from runtime target|Falling back to|defaulting |'--\S+' is deprecated|is set to .* by default",
    re.I,
)
_WARNING = re.compile(
    r"\bwarning\b|\bfail(?:ed|s)? to\b|\bfail to\b|unbalanced|not supported|\bdeprecated\b", re.I
)
_ERROR = re.compile(
    r"\bhit an exception\b|\bInitialization failed\b|watchdog timeout|out of memory|memory leak detected"
    r"|scheduler died during|Health check failed|^\[?\w*\]?\s*Error: ",
    re.I,
)
