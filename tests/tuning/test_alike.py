"""Which hosts may share a sweep: those that differ in nothing that moves the numbers."""

from __future__ import annotations

from dataclasses import replace

from ddtui.store.model import Setting
from ddtui.tuning.alike import differences

HERE = Setting(
    {"budget": "8"},
    {},
    engine="0.5.11 (/opt/sglang, 2ff6)",
    drafter="D",
    target="K2.6",
    gpu="8 x NVIDIA B200",
)


def test_hosts_that_differ_in_their_knobs_alone_are_of_one_kind() -> None:
    assert differences(HERE, replace(HERE, knobs={"budget": "16"}, flags={"tp_size": 8})) == []


def test_every_other_difference_is_named() -> None:
    other = replace(HERE, gpu="8 x NVIDIA H200", engine="0.5.10", drafter="", target="K2.5")
    assert differences(HERE, other) == [
        "GPU: 8 x NVIDIA B200 and 8 x NVIDIA H200",
        "model: K2.6 and K2.5",
        "SGLang: 0.5.11 (/opt/sglang, 2ff6) and 0.5.10",
        "drafter: D and unknown",
    ]
