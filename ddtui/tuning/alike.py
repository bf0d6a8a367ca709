"""Whether hosts are of one kind: those that share a sweep must differ in nothing that moves the numbers."""

from __future__ import annotations

from ddtui.store.model import Setting


def differences(one: Setting, other: Setting) -> list[str]:
    """What tells two hosts apart, each in words: "GPU: 8 x NVIDIA B200 and 8 x NVIDIA H200"."""
    found = []
    for what, a, b in (
        ("GPU", one.gpu, other.gpu),
        ("model", one.target, other.target),
        ("SGLang", one.engine, other.engine),
        ("drafter", one.drafter, other.drafter),
    ):
        if a != b:
            found.append(f"{what}: {a or 'unknown'} and {b or 'unknown'}")
    return found
