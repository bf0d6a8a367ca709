"""The exact change of files as a unified diff that shows no secret."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from ddtui.redact import redact
from ddtui.sanitize import decode, sanitize
from ddtui.tuning.model import FileEdit

_MASK = re.compile(r"<secret:[0-9a-f]+>")
UNCHANGED = "(unchanged secret)"
CONTEXT = 3  # lines


def of(edits: Sequence[FileEdit]) -> str:
    """One unified diff of all edits. A secret that stays reads "(unchanged secret)"."""
    return "".join(one(edit) for edit in edits)


def one(edit: FileEdit) -> str:
    """The diff of one file."""
    before, after = _lines(edit.before), _lines(edit.after)
    kept = _masks(before) & _masks(after)

    def show(line: str) -> str:
        return _MASK.sub(lambda found: UNCHANGED if found[0] in kept else found[0], line)

    lines = difflib.unified_diff(
        before,
        after,
        "/dev/null" if edit.before is None else edit.path,
        "/dev/null" if edit.after is None else edit.path,
        n=CONTEXT,
        lineterm="",
    )
    return "".join(show(line) + "\n" for line in lines)


def _lines(content: bytes | None) -> list[str]:
    if content is None:
        return []
    lines = [sanitize(line) for line in redact(decode(content)).split("\n")]
    if lines and lines[-1] == "":
        lines.pop()
    elif lines:
        lines[-1] += "  (no newline at end of file)"
    return lines


def _masks(lines: Sequence[str]) -> set[str]:
    return {mask for line in lines for mask in _MASK.findall(line)}
