"""Before a start: what the old server held of the GPUs, and whether it is back."""

from __future__ import annotations

import pytest

from ddtui.host.gpu import Gpu, GpuProcess, GpuReading
from ddtui.tuning import ground
from ddtui.tuning.ground import Ground, Held


def gpus(*used: int | None) -> tuple[Gpu, ...]:
    return tuple(Gpu(at, f"GPU-{at}", "H200", 143_771, mib, 0, 40, 80.0) for at, mib in enumerate(used))


SERVING = GpuReading(
    gpus(126_706, 130_000, 500),
    (
        GpuProcess("GPU-0", 10, 120_000),
        GpuProcess("GPU-0", 11, 6_000),
        GpuProcess("GPU-1", 10, 90_000),
        GpuProcess("GPU-1", 99, 39_000),  # somebody else's
        GpuProcess("GPU-2", 99, 400),
    ),
)
BEFORE = {"GPU-0": Held(126_706, 126_000), "GPU-1": Held(130_000, 90_000)}


def test_only_what_the_services_own_processes_hold_is_counted() -> None:
    assert ground.held_by((10, 11), SERVING) == BEFORE


def test_where_the_driver_names_no_process_nothing_is_waited_for() -> None:
    assert ground.held_by((10, 11), GpuReading(SERVING.gpus)) == {}
    assert ground.held_by((10,), GpuReading(problem="no nvidia-smi")) == {}


@pytest.mark.parametrize(
    ("now", "unfreed"),
    [
        (gpus(700, 40_000, 500), 0),
        (gpus(126_706, 40_000, 500), 126_000),  # the first has not given anything back
        (gpus(126_706, 130_000, 500), 216_000),
        (gpus(20_000, 40_000, 500), 0),  # most is back, and another program may have begun
        (gpus(None, 40_000), 0),
        ((), 0),
    ],
)
def test_memory_is_missed_until_most_of_it_is_back(now: tuple[Gpu, ...], unfreed: int) -> None:
    assert ground.unfreed(BEFORE, GpuReading(now)) == unfreed


def test_memory_that_is_not_back_is_waited_for_but_is_no_certain_obstacle() -> None:
    found = Ground((), False, 0, 126_000)
    assert found.clear
    assert found.words(30000) == "123 GiB of GPU memory are not given back yet"
    stuck = Ground((7,), True, 2048, 126_000)
    assert not stuck.clear
    assert stuck.words(30000) == (
        "1 process of the old server live on with 2 GiB of GPU memory (pid 7); port 30000 is taken"
    )
