"""Somebody who answers ddtui's questions, and remembers what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ddtui.host.base import HostKey


@dataclass
class Person:
    """Gives the answers of each purpose in turn (the last one again and again); None: refuses."""

    answers: dict[str, Sequence[str | None]] = field(default_factory=dict)
    trusts: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)  # (purpose, prompt)
    shown: list[HostKey] = field(default_factory=list)

    async def secret(self, prompt: str, *, purpose: str) -> str | None:
        before = len(self.asked_for(purpose))
        self.asked.append((purpose, prompt))
        answers = self.answers.get(purpose) or [None]
        return answers[min(before, len(answers) - 1)]

    async def trust(self, key: HostKey) -> bool:
        self.shown.append(key)
        return self.trusts

    def asked_for(self, purpose: str) -> list[str]:
        return [prompt for what, prompt in self.asked if what == purpose]
