"""The words of the store: what the history gives back. All frozen, plain values only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# what a start of SGLang chooses or measures anew: no part of a setting
CHOSEN_ANEW = frozenset(
    [
        "port",
        "nccl_port",
        "random_seed",
        "api_key",
        "admin_api_key",
        "status",
        "version",
        "internal_states",
        "max_total_num_tokens",
        "max_req_input_len",
        "available_gpu_mem",
        "kv_events",
    ]
)


class HistoryError(Exception):
    """The history cannot be used: one sentence with the file and what to do. The file was not touched."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One complete setting of a service, as it was verified: what makes a step the same step."""

    knobs: Mapping[str, str | None]  # by knob name; None: unset
    flags: Mapping[str, Any]  # every resolved flag of the process
    engine: str = ""  # "0.5.11 (/opt/sglang)", with the commit where it is known
    drafter: str = ""  # name and hash of its config
    target: str = ""  # model path
    gpu: str = ""  # "8 x NVIDIA B200, driver 580.95"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Equal for settings that are the same but for what every start chooses anew. The GPUs are the
        host's, and nvidia-smi may fail to tell them for once: they make no other setting.
        """
        flags = {name: value for name, value in self.flags.items() if name not in CHOSEN_ANEW}
        whole = [self.knobs, flags, self.engine, self.drafter, self.target, self.environment]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Step:
    """One setting, applied and verified, with its number on this host and unit."""

    id: int
    number: int
    host: str
    unit: str
    identity: str
    at: float  # unix time of the first time
    setting: Setting
    verdicts: Sequence[Mapping[str, Any]] = ()
    simulated: bool = False
    bursts: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of the service."""

    at: float
    seconds: float | None  # to ready; None: it did not get there
    step: int | None
    result: str = "ready"


@dataclass(frozen=True, slots=True)
class StoredChange:
    """A change as it was recorded; `record` is the tuning room's ChangeRecord as plain values."""

    id: str
    host: str
    unit: str
    at: float
    phase: str
    result: str
    record: Mapping[str, Any]
    step: int | None = None


@dataclass(frozen=True, slots=True)
class StoredBurst:
    """A burst as it was kept; `burst` is the bench room's Burst as plain values (bench/kept.py)."""

    id: str
    host: str
    unit: str
    step: int | None
    at: float
    state: str
    burst: Mapping[str, Any]
    raw: str = ""
    simulated: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    id: int
    at: float
    subject: str  # "step", "burst", "change"
    of: str  # the step's id, the burst's or the change's
    text: str
