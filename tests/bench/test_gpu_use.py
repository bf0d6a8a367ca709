"""GPUs while a cell runs: read as nvidia-smi writes it, summed up, said in a line, kept with the point."""

from __future__ import annotations

import pytest

from ddtui.bench import gpu_use
from ddtui.bench.gpu_use import in_words, uses
from ddtui.bench.model import GpuUse
from ddtui.host import gpu
from ddtui.host.base import Completed
from ddtui.host.gpu import GpuLoad


def answer(out: str, code: int = 0, err: str = "") -> Completed:
    return Completed(gpu.LOAD.argv, code, out.encode(), err.encode(), 0.1)


def test_what_nvidia_smi_writes_is_read() -> None:
    text = (
        "0, 118432, 143771, 97, 612.31, 700.00, 1755, 1980, 0x0000000000000004\n"
        "1, 118440, 143771, 0, 121.08, 700.00, 345, 1980, 0x0000000000000001\n"
    )
    loads, why = gpu.parse_load(answer(text))
    assert why == ""
    assert loads == (
        GpuLoad(0, 118432, 143771, 97, 612.31, 700.0, 1755, 1980, ("power cap",)),
        GpuLoad(1, 118440, 143771, 0, 121.08, 700.0, 345, 1980, ()),
    )


def test_what_the_driver_does_not_say_is_not_known() -> None:
    text = "0, [N/A], [N/A], [Not Supported], [N/A], [N/A], [N/A], [N/A], [N/A]\n"
    ((load,), _) = gpu.parse_load(answer(text))
    assert load == GpuLoad(0, None, None, None, None, None, None, None)


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ()),
        ("0x0000000000000024", ("power cap", "thermal (software)")),
        ("0x00000000000000C8", ("hardware slowdown", "thermal (hardware)", "power brake")),
        ("four", ()),
    ],
)
def test_what_holds_a_clock_down_has_a_name(mask: str, names: tuple[str, ...]) -> None:
    ((load,), _) = gpu.parse_load(answer(f"0, 1, 2, 3, 4, 5, 6, 7, {mask}\n"))
    assert load.throttles == names


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (answer("", 127, "sh: nvidia-smi: not found"), "no nvidia-smi"),
        (answer("NVIDIA-SMI has failed\x1b[2J because\n", 9), "nvidia-smi: NVIDIA-SMI has failed"),
        (answer(""), "nvidia-smi names no GPU"),
    ],
)
def test_why_nothing_is_known_is_one_clear_word(done: Completed, why: str) -> None:
    loads, said = gpu.parse_load(done)
    assert loads == ()
    assert said.startswith(why)
    assert "\x1b" not in said


def test_looks_come_to_means_the_most_memory_and_whatever_held_the_clock() -> None:
    looks = [
        (GpuLoad(0, 100, 200, 80, 500.0, 700.0, 1900, 1980),),
        (GpuLoad(0, 120, 200, 90, 600.0, 700.0, 1700, 1980, ("power cap",)),),
        (GpuLoad(0, 110, 200, None, None, 700.0, None, 1980),),
    ]
    assert uses(looks) == (GpuUse(0, 3, 120.0, 200.0, 85.0, 550.0, 700.0, 1800.0, 1980.0, ("power cap",)),)


def test_a_line_for_one_gpu_for_eight_and_for_none() -> None:
    one = GpuUse(0, 3, 118 * 1024.0, 140 * 1024.0, 86.0, 512.0, 700.0, 1980.0, 1980.0)
    assert in_words([one], "") == "1 GPU  busy 86 %  512 of 700 W  1980 of 1980 MHz  118 of 140 GiB"
    held = GpuUse(1, 3, 118 * 1024.0, 140 * 1024.0, 90.0, 690.0, 700.0, 1700.0, 1980.0, ("power cap",))
    line = in_words([one, held], "")
    assert line.startswith("2 GPUs  busy 86–90 %  512–690 of 700 W")
    assert line.endswith("held by power cap on 1")
    assert in_words([], "no nvidia-smi") == "GPU: no nvidia-smi"
    assert in_words([], "") == ""


def test_the_words_fit_half_a_wide_screen() -> None:
    eight = [GpuUse(i, 9, 1e5, 143771.0, 80.0 + i, 500.0 + i, 700.0, 1900.0, 1980.0) for i in range(8)]
    assert len(gpu_use.in_words(eight, "")) < 90
