"""The SGLang that the service's own interpreter imports, as `probe_script` read it from its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ddtui.engine.flags import FlagTable


class InstallationError(Exception):
    """The probe gave nothing usable. `str()` is one sentence."""


class Flavour(StrEnum):
    """Which DDTree, by the flags and files that are there (there is none in any release up to 0.5.23)."""

    NONE = "none"
    CHAIN_OR_TREE = "PR 29907"  # DDTREE, --speculative-ddtree-budget; chain up to block-1, tree above
    V2 = "ddtree-v2"  # + --speculative-ddtree-block-size, prune, cuda-graph buckets
    DFLASH_TREE = "DFLASH tree"  # --speculative-dflash-enable-ddtree / -tree-budget
    TOPK_CAP = "topk cap"  # --speculative-ddtree-budget and --speculative-ddtree-topk-cap
    UNKNOWN = "unknown"  # DDTree is there, in a shape not known


@dataclass(frozen=True, slots=True)
class DDTree:
    flavour: Flavour = Flavour.NONE
    algorithms: tuple[str, ...] = ()  # names for --speculative-algorithm
    flags: tuple[str, ...] = ()  # its knobs
    environment: Mapping[str, Any] = field(default_factory=dict)  # variable -> default
    constants: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[str, ...] = ()  # its own rule and proof texts
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    version: str | None
    location: str  # the package folder
    python: str
    python_version: str
    editable: bool
    flags: FlagTable
    has_dflash: bool
    reads_layer_types: bool  # srt/models/dflash.py looks at config.layer_types
    reads_sliding_window: bool  # and hands a sliding window to its attention
    has_compact_cache: bool  # the worker keeps a compact cache: the window flag limits draft attention
    overlap_with_dflash: bool | None  # False: the overlap scheduler is off under DFLASH; None: not known
    ddtree: DDTree
    log_texts: Mapping[str, bool]  # which known log formats stand in the source
    algorithms: tuple[str, ...] | None  # accepted by --speculative-algorithm, where readable
    problems: tuple[str, ...] = ()
    digest: str = ""  # of the source files read: changes when they do

    @property
    def honours_config_window(self) -> bool:
        """Whether the drafter's own sliding layers are honoured by this code."""
        return self.reads_layer_types and self.reads_sliding_window


def probe_text() -> str:
    """The probe's source, for `python - ARGS` on the host, on stdin."""
    raise NotImplementedError


def probe_argv(python: str, *, paths: tuple[str, ...] = (), cwd: str | None = None) -> tuple[str, ...]:
    """The command that runs it. `paths`: entries of the service's PYTHONPATH; `cwd`: its working directory."""
    raise NotImplementedError


def parse(data: bytes) -> Installation:
    """What the probe printed. Raises InstallationError, one sentence."""
    raise NotImplementedError
