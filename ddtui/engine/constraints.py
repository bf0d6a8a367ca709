"""What a rule looks at and what it says: the words that `rules` and `trees` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ddtui.engine.drafter import DrafterConfig
from ddtui.engine.flags import WINDOW, ResolvedFlags
from ddtui.engine.installation import Installation

DEFAULT_BLOCK = 16  # SGLang's, where neither a flag nor the drafter's config gives one


class Severity(StrEnum):
    ERROR = "error"  # SGLang refuses to start
    WARNING = "warning"  # it starts, and does something else than asked, or worse
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    sentence: str  # in SGLang's own words where they are known
    source: str  # where the rule comes from
    flag: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One command line with all that its rules may depend on."""

    flags: ResolvedFlags
    installation: Installation
    drafter: DrafterConfig | None
    env: Mapping[str, str]
    target_max_position: int | None
    concurrency: int | None
    captured_batch: int | None
    running: Mapping[str, Any]  # the running server's resolved arguments: what defaults come out as here

    @property
    def algorithm(self) -> str | None:
        value = self.flags.text("--speculative-algorithm")
        name = value.upper() if value else None
        return "EAGLE" if name == "NEXTN" else name

    @property
    def is_tree(self) -> bool:
        """Whether DDTree is on: by its algorithm, or by a switch of a fork's DFLASH."""
        ddtree = self.installation.ddtree
        if self.algorithm in ddtree.algorithms and self.algorithm != "DFLASH":
            return True
        return any(self.flags.get(flag) is not None for flag in ddtree.flags if "dflash" in flag)

    @property
    def is_dflash(self) -> bool:
        return self.algorithm == "DFLASH" or (self.is_tree and self.installation.has_dflash)

    @property
    def window(self) -> int | None:
        return self.flags.integer(WINDOW)

    @property
    def block(self) -> int:
        """The block that SGLang would take: flags, then the drafter's config, then 16."""
        for flag in (
            "--speculative-ddtree-block-size",
            "--speculative-dflash-block-size",
            "--speculative-num-draft-tokens",
        ):
            value = self.flags.integer(flag)
            if value is not None:
                return value
        return self.drafter.block_size if self.drafter and self.drafter.block_size else DEFAULT_BLOCK

    def backend(self, phase: str) -> str | None:
        """The target's attention backend for "prefill" or "decode": by its flags, else what runs now."""
        given = self.flags.text(f"--{phase}-attention-backend") or self.flags.text("--attention-backend")
        known = self.running.get(f"{phase}_attention_backend") or self.running.get("attention_backend")
        return given or (known if isinstance(known, str) else None)

    def say(
        self, severity: Severity, sentence: str, flag: str | None = None, *, known: bool = True
    ) -> Problem:
        source = f"SGLang {self.installation.version or 'as installed'}" if known else "how SGLang works"
        return Problem(severity, sentence, source, flag)
