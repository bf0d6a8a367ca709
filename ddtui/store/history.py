"""The history: one SQLite file per user, safe with two consoles open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ddtui.store.model import Effect, Note, Setting, Start, Step, StoredBurst, StoredChange


class History:
    """All methods are quick and blocking; any thread may call them. Raise HistoryError."""

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """The history at `path`, else `data_dir()/history.sqlite`; made if absent, migrated if older.

        Raises HistoryError, without touching the file, if it is newer than this ddtui, corrupt, or not
        writable.
        """
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    # steps
    def step(
        self,
        host: str,
        unit: str,
        setting: Setting,
        *,
        verdicts: Sequence[Mapping[str, Any]] = (),
        simulated: bool = False,
        at: float | None = None,
    ) -> Step:
        """The step of that setting on this host and unit: the one that is there, or a new one with the next
        number.
        """
        raise NotImplementedError

    def steps(
        self, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = 1000
    ) -> list[Step]:
        """Newest first. `search`: words that must all be found in knobs, flags, versions or notes."""
        raise NotImplementedError

    def delete_step(self, step_id: int) -> None:
        """The step with its bursts, points, quality results and notes. Raw record files are left to the
        caller.
        """
        raise NotImplementedError

    # changes
    def save_change(
        self, host: str, unit: str, record: Mapping[str, Any], *, step: int | None = None
    ) -> None:
        """Insert or replace by the record's `id`. `step`: the step's number that it led to."""
        raise NotImplementedError

    def changes(
        self, host: str | None = None, unit: str | None = None, *, limit: int = 200
    ) -> list[StoredChange]:
        """Newest first."""
        raise NotImplementedError

    # starts
    def save_start(
        self,
        host: str,
        unit: str,
        seconds: float | None,
        *,
        step: int | None = None,
        result: str = "ready",
        at: float | None = None,
    ) -> None:
        raise NotImplementedError

    def last_starts(self, host: str, unit: str, *, limit: int = 5) -> list[Start]:
        """Those that got ready, newest first."""
        raise NotImplementedError

    # bursts
    def save_burst(self, host: str, unit: str, burst: Mapping[str, Any], *, note: str = "") -> None:
        """Insert or replace by id; `burst` is bench.kept.to_plain(burst), with the step's number in it."""
        raise NotImplementedError

    def bursts(
        self, host: str | None = None, unit: str | None = None, *, step: int | None = None, limit: int = 200
    ) -> list[StoredBurst]:
        """Newest first."""
        raise NotImplementedError

    def points(self, host: str, unit: str, *, steps: Sequence[int]) -> dict[int, list[Mapping[str, Any]]]:
        """By step number: its newest final point of every cell (what charts overlay and comparisons take)."""
        raise NotImplementedError

    def effects(self, host: str, unit: str, knob: str, cell: Mapping[str, Any]) -> list[Effect]:
        """What every value of this knob showed on this cell so far, best first."""
        raise NotImplementedError

    def save_quality(self, host: str, unit: str, step: int | None, result: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def quality(self, host: str, unit: str, *, step: int | None = None) -> list[Mapping[str, Any]]:
        """Newest first."""
        raise NotImplementedError

    def save_aa(
        self, host: str, unit: str, load: str, means: Mapping[str, float], *, at: float | None = None
    ) -> None:
        """One A/A run: the same setting after a restart. `load` names model and cell; `means` by metric."""
        raise NotImplementedError

    def aa_means(self, host: str, unit: str, load: str, metric: str) -> list[float]:
        """The means of this metric in all A/A runs of that load, oldest first."""
        raise NotImplementedError

    def add_note(self, subject: str, of: str, text: str) -> None:
        raise NotImplementedError

    def notes(self, subject: str, of: str) -> list[Note]:
        raise NotImplementedError
