"""The coding tasks that ship: description, signature, a solution and unit tests, in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

FILES = ("coding_text.md", "coding_data.md", "coding_algorithms.md")
_TASK = re.compile(
    r"^## (?P<name>\w+)\n(?P<text>.+?)\n```python\n(?P<signature>.+?)\n```\n"
    r"```solution\n(?P<solution>.+?)\n```\n```tests\n(?P<tests>.+?)\n```$",
    re.S | re.M,
)


@dataclass(frozen=True, slots=True)
class Task:
    """One coding task."""

    name: str
    text: str
    signature: str
    solution: str
    tests: str

    @property
    def prompt(self) -> str:
        """The task as it is asked."""
        return (
            f"{self.text}\n\nAnswer with one Python code block that defines:\n"
            f"```python\n{self.signature}\n```\nUse only the standard library.\n"
        )


@cache
def coding_tasks() -> tuple[Task, ...]:
    """All of them, in the order of the files."""
    folder = resources.files("ddtui.bench") / "workloads"
    return tuple(
        Task(**{name: text.strip() for name, text in found.groupdict().items()})
        for file in FILES
        for found in _TASK.finditer((folder / file).read_text("utf-8"))
    )
