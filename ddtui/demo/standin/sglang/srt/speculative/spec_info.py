"""Names of the algorithms, and who works for them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang.srt.speculative.dflash_worker import DFlashWorker


class SpeculativeAlgorithm(Enum):
    NONE = "NONE"
    DFLASH = "DFLASH"
    DDTREE = "DDTREE"
    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"
    STANDALONE = "STANDALONE"
    NGRAM = "NGRAM"

    @classmethod
    def from_string(cls, name: str | None) -> SpeculativeAlgorithm:
        return cls[name.upper()] if name else cls.NONE

    def is_none(self) -> bool:
        return self is SpeculativeAlgorithm.NONE

    def is_dflash(self) -> bool:
        """Whether a DFLASH drafter's blocks are drafted: as a chain or, by the fork, as a tree."""
        return self in (SpeculativeAlgorithm.DFLASH, SpeculativeAlgorithm.DDTREE)

    def worker_class(self) -> type[DFlashWorker]:
        from sglang.srt.speculative.ddtree_worker import DDTreeWorker
        from sglang.srt.speculative.dflash_worker import DFlashWorker

        return DDTreeWorker if self is SpeculativeAlgorithm.DDTREE else DFlashWorker
