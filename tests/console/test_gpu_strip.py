"""The GPUs in one line: one or eight, in 78 columns too; what holds a clock down never goes."""

from __future__ import annotations

import pytest
from console.fakes import FakeSession, make_view
from console.harness import console

from ddtui.host.gpu import GpuLoad
from ddtui.widgets.gpu_strip import line


def gpu(index: int, **changes: object) -> GpuLoad:
    given: dict[str, object] = {
        "memory_used_mib": 118 * 1024, "memory_total_mib": 140 * 1024, "utilization": 80 + index,
        "power_w": 500.0 + index, "power_limit_w": 700.0, "clock_mhz": 1980, "clock_max_mhz": 1980,
    }  # fmt: skip
    return GpuLoad(index, **{**given, **changes})  # type: ignore[arg-type]


def test_one_gpu_in_numbers() -> None:
    text = line([gpu(0)], "", 150).plain
    assert text == "1 GPU   memory ▇ 118 of 140 GiB   busy ▆ 80 %   power 500 of 700 W   clock 1,980 MHz"


def test_eight_gpus_each_with_its_bar_and_the_span_of_all() -> None:
    text = line([gpu(i) for i in range(7)] + [gpu(7, utilization=0)], "", 150).plain
    assert text.startswith("8 GPUs   memory ▇▇▇▇▇▇▇▇ 118 of 140 GiB   busy ▆▆▇▇▇▇▇▁ 0–86 %")


@pytest.mark.parametrize("width", [10, 38, 78, 118, 198])
def test_it_fits_and_the_clocks_reason_stays_longest(width: int) -> None:
    gpus = [gpu(i, throttles=("power cap",) if i < 2 else ()) for i in range(8)]
    shown = line(gpus, "", width)
    assert shown.cell_length <= width
    if width >= 38:
        assert "! held by power cap on 2" in shown.plain


def test_what_is_not_known_is_said_in_a_word() -> None:
    assert line([], "no nvidia-smi", 78).plain == "GPU  no nvidia-smi"
    assert line([], "", 78).plain == "GPU  not read yet"
    unknown = GpuLoad(0, None, None, None, None, None, None, None)
    assert line([unknown], "", 78).plain == "1 GPU"


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_tune_screen_shows_the_gpus(size: tuple[int, int]) -> None:
    view = make_view(gpus=tuple(gpu(i) for i in range(8)))
    async with console(FakeSession(view=view), size) as desk:
        assert "8 GPUs" in desk.text()
        assert "busy ▆▆▇▇▇▇▇▇ 80–87 %" in desk.text()
