"""The SGLang that the service's own interpreter imports, as `ddtui.engine.probe` read it from its source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Any

from ddtui.engine.flags import Flag, FlagTable

FORMAT = 1  # of the probe's answer
PROBE_MODULES = ("source", "arguments", "drafting", "main")  # each imports only those before it

_BOOT = """# ddtui's probe: reads the source of the installed SGLang, prints JSON, changes nothing
import gc, sys, types
gc.disable()  # short-lived, and syntax trees are many objects
"""
_RUN = """
for name, text in SOURCES.items():
    sys.modules[name] = module = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules["ddtui.engine.probe.main"].main(sys.argv[1:])
"""


class InstallationError(Exception):
    """The probe gave nothing usable. `str()` is one sentence."""


class Flavour(StrEnum):
    """Which DDTree, by the flags and files that are there: no release up to 0.5.23 has one.

    They differ in flags and rules: pull request 29907, the ddtree-v2 fork, forks that extend DFLASH, and the
    one with --speculative-ddtree-topk-cap.
    """

    NONE = "none"
    BUDGET = "DDTREE with a budget"  # PR 29907: --speculative-ddtree-budget; chain up to block-1, tree above
    V2 = "DDTREE v2"  # + --speculative-ddtree-block-size, --is-ddtree-prune
    TOPK_CAP = "DDTREE with a topk cap"  # --speculative-ddtree-budget, --speculative-ddtree-topk-cap
    DFLASH_TREE = "DFLASH with a tree"  # --speculative-dflash-enable-ddtree or -tree-budget or -tree-verify
    UNKNOWN = "unknown"  # a DDTree is there, in a shape not known


@dataclass(frozen=True, slots=True)
class DDTree:
    flavour: Flavour = Flavour.NONE
    algorithms: tuple[str, ...] = ()  # names for --speculative-algorithm
    flags: tuple[str, ...] = ()  # its knobs
    environment: Mapping[str, Any] = field(default_factory=dict)  # variable -> default, None: not readable
    constants: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[str, ...] = ()  # what its code raises and logs, `...` for what varies
    workers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # class -> base classes
    files: tuple[str, ...] = ()
    overlap: bool | None = None  # False: its code says that the overlap scheduler is off

    @property
    def built_on_dflash(self) -> bool:
        """Its worker inherits DFlash's, and with it the window and the draft runner line in the journal."""
        return any("DFlash" in base for bases in self.workers.values() for base in bases)

    def says(self, *words: str) -> str | None:
        """The message of its code that holds all these words. None: it has none."""
        return _says(self.messages, words)


@dataclass(frozen=True, slots=True)
class Installation:
    """One installed SGLang, read from its source on the host."""

    version: str | None  # a checkout may call itself 0.0.0.dev0: go by what the code does
    location: str  # the package folder
    python: str
    python_version: str
    editable: bool
    flags: FlagTable
    has_dflash: bool
    reads_layer_types: bool  # srt/models/dflash.py looks at config.layer_types
    reads_sliding_window: bool  # and hands a sliding window to its attention
    has_compact_cache: bool  # the worker keeps a compact cache: the window flag limits draft attention
    reads_rope_parameters: bool  # the new spelling of RoPE; without it theta is 1e6 under Transformers 5
    overlap_with_dflash: bool | None  # False: the overlap scheduler is off under DFLASH; None: no DFLASH
    draft_runner_text: str | None  # the line that proves the window, as this code writes it
    draft_backends: tuple[str, ...] | None  # attention backends for drafting, where readable
    window_algorithms: (
        tuple[str, ...] | None
    )  # outside these it says the window has no effect; None: never says
    ddtree: DDTree
    algorithms: tuple[str, ...] | None  # known names for --speculative-algorithm, where readable
    rules: tuple[str, ...] = ()  # what its argument checks raise and log about speculation, `...` for values
    files: tuple[str, ...] = ()  # of DFLASH
    problems: tuple[str, ...] = ()
    commit: str | None = None  # of a checkout, or as pip or the version names it; None: not known
    digest: str = ""  # of the source files that were read: changes when they do
    changed_at: float | None = None  # the newest of these files, unix time by the host's clock

    @property
    def honours_config_window(self) -> bool:
        """Whether this code honours the drafter's own sliding layers: it reads both and hands them on."""
        return self.reads_layer_types and self.reads_sliding_window

    def says(self, *words: str) -> str | None:
        """The text of its argument checks that holds all these words. None: it has no such rule."""
        return _says(self.rules, words)

    @property
    def window_flag(self) -> str | None:
        return self.flags.window_flag


def _says(messages: tuple[str, ...], words: tuple[str, ...]) -> str | None:
    """`...` in a message may stand for an algorithm's name: forks write one text for several."""
    for message in messages:
        told = message.lower()
        for word in words:
            name, _, rest = word.lower().partition(" ")
            general = name in ("dflash", "ddtree") and f"... {rest}".rstrip() in told
            if word.lower() not in told and not general:
                break
        else:
            return message
    return None


def probe_text() -> bytes:
    """The probe, its modules in one text, for the stdin of `probe_argv` on the host."""
    sources = {
        f"ddtui.engine.probe.{name}": resources.files("ddtui.engine.probe")
        .joinpath(f"{name}.py")
        .read_text("utf-8")
        for name in PROBE_MODULES
    }
    return f"{_BOOT}SOURCES = {sources!r}\n{_RUN}".encode()


def probe_argv(python: str, *, paths: tuple[str, ...] = (), cwd: str | None = None) -> tuple[str, ...]:
    """`python - [--cwd DIR] [--path DIR]…`: `paths` the service's PYTHONPATH, `cwd` its WorkingDirectory."""
    argv = [python, "-"]
    if cwd:
        argv += ["--cwd", cwd]
    for path in paths:
        argv += ["--path", path]
    return tuple(argv)


def parse(data: bytes) -> Installation:
    """What the probe printed. Raises InstallationError, one sentence."""
    start = data.find(b'{"format":')  # a noisy start-up file of the interpreter may have printed before
    try:
        answer = json.loads(data[max(start, 0) :])
    except (ValueError, RecursionError):
        raise InstallationError("The probe of the installed SGLang did not answer with JSON.") from None
    if not isinstance(answer, dict) or answer.get("format") != FORMAT:
        raise InstallationError("The probe of the installed SGLang answered in an unknown form.")
    if answer.get("problem"):
        raise InstallationError(str(answer["problem"]))
    try:
        return _installation(answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InstallationError(
            f"The probe of the installed SGLang left out or garbled a field: {error!r}."
        ) from None


def _installation(answer: dict[str, Any]) -> Installation:
    dflash, unread = answer["dflash"], answer["unread"]
    flags = FlagTable(tuple(map(_flag, answer["flags"])), complete=not unread)
    problems = [f"{text}." for text in answer["broken"]]
    if unread:
        problems.append(
            f"{len(unread)} flag declarations cannot be read without running SGLang: {', '.join(unread)}."
        )
    if not flags:
        problems.append(f"No flags were found in {answer['location']}/srt/server_args.py.")
    return Installation(
        version=answer["version"],
        location=answer["location"],
        python=answer["python"],
        python_version=answer["python_version"],
        editable=bool(answer["editable"]),
        flags=flags,
        has_dflash=bool(dflash["has_dflash"]),
        reads_layer_types=bool(dflash["reads_layer_types"]),
        reads_sliding_window=bool(dflash["reads_sliding_window"]),
        has_compact_cache=bool(dflash["has_compact_cache"]),
        reads_rope_parameters=bool(dflash["reads_rope_parameters"]),
        overlap_with_dflash=dflash["overlap"],
        draft_runner_text=dflash["draft_runner_text"],
        draft_backends=tuple(dflash["draft_backends"]) if dflash["draft_backends"] else None,
        window_algorithms=tuple(dflash["window_algorithms"]) if dflash["window_algorithms"] else None,
        ddtree=_ddtree(answer["ddtree"]),
        algorithms=tuple(answer["algorithms"]) if answer["algorithms"] else None,
        rules=tuple(answer["rules"]),
        files=tuple(dflash["files"]),
        problems=tuple(problems),
        commit=answer.get("commit"),
        digest=answer["digest"],
        changed_at=float(answer["changed_at"]) or None,
    )


def _flag(item: dict[str, Any]) -> Flag:
    choices = item.get("choices")
    return Flag(
        names=tuple(item["names"]),
        dest=item["dest"],
        type=item.get("type") or ("bool" if item.get("nargs") == 0 else "str"),
        nargs=item.get("nargs"),
        choices=None if choices is None else tuple(str(choice) for choice in choices),
        default=item.get("default"),
        default_known=bool(item.get("default_known")),
        required=bool(item.get("required")),
        deprecated=bool(item.get("deprecated")),
        replaced_by=item.get("replaced_by"),
        help=item.get("help", ""),
        source=item.get("source", ""),
    )


def _ddtree(item: dict[str, Any]) -> DDTree:
    return DDTree(
        flavour=_flavour(item),
        algorithms=tuple(item["algorithms"]),
        flags=tuple(item["flags"]),
        environment=dict(item["environment"]),
        constants=dict(item["constants"]),
        messages=tuple(item["messages"]),
        workers={name: tuple(bases) for name, bases in item["workers"].items()},
        files=tuple(item["files"]),
        overlap=item["overlap"],
    )


def _flavour(item: dict[str, Any]) -> Flavour:
    flags = set(item["flags"])
    if "--speculative-ddtree-topk-cap" in flags:
        return Flavour.TOPK_CAP
    if flags & {"--speculative-ddtree-block-size", "--is-ddtree-prune", "--speculative-ddtree-cpu-build"}:
        return Flavour.V2
    if "--speculative-ddtree-budget" in flags:
        return Flavour.BUDGET
    if any("dflash" in flag for flag in flags):
        return Flavour.DFLASH_TREE
    return Flavour.UNKNOWN if flags or item["files"] or item["algorithms"] else Flavour.NONE
