"""What is remembered of the journal, per host and unit: filter, level, earlier filters, pinned patterns."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from ddtui import locations
from ddtui.widgets.journal_lines import LEVEL_NAMES

RECENT = 30  # filters that are kept


@dataclass
class JournalMemory:
    """What the operator wants to see of one unit's journal. `version` grows when filter or level is set."""

    path: Path | None = None  # None: only until ddtui ends
    filter: str = ""
    level: str = "info"  # the least; what ddtui itself asks of the server is logged, and below that
    recent: list[str] = field(default_factory=list)  # filters, the newest last
    pins: list[str] = field(default_factory=list)
    version: int = 0

    @classmethod
    def of(cls, host: str, unit: str) -> JournalMemory:
        """What was kept for this unit. A file that cannot be read is taken as empty."""
        name = "".join(c if c.isalnum() or c in "-._@" else "_" for c in f"{host}--{unit}")[:200]
        path = locations.state_dir() / "journal" / f"{name}.json"
        try:
            kept = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return cls(path)
        if not isinstance(kept, dict):
            return cls(path)
        wanted, level = kept.get("filter"), kept.get("level")
        return cls(
            path,
            wanted if isinstance(wanted, str) else "",
            level if level in LEVEL_NAMES else cls.level,
            _texts(kept.get("recent")),
            _texts(kept.get("pins")),
        )

    def use(self, wanted: str) -> None:
        """This filter from now on."""
        if wanted != self.filter:
            self.filter = wanted
            self.version += 1
        if wanted:
            self.recent = [*(text for text in self.recent if text != wanted), wanted][-RECENT:]
        self.keep()

    def use_level(self, level: str) -> None:
        """This least level from now on."""
        self.level = level
        self.version += 1
        self.keep()

    def keep(self) -> None:
        """Write it down, whole or not at all. A disk that is full or read-only is no reason to stop."""
        if self.path is None:
            return
        fresh = self.path.with_suffix(f".{os.getpid()}")
        kept = {"filter": self.filter, "level": self.level, "recent": self.recent, "pins": self.pins}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
            fresh.replace(self.path)
        except OSError:
            fresh.unlink(missing_ok=True)


def _texts(kept: object) -> list[str]:
    return [text for text in kept if isinstance(text, str)] if isinstance(kept, list) else []
