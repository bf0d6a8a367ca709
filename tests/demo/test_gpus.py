"""The demo host's GPUs show what the server's log says that it does."""

from __future__ import annotations

import pytest
from demo.virtual_host import run

from ddtui.demo.gpus import COUNT, TOTAL_MIB, Gpus, listens_on
from ddtui.demo.machine import Machine


def used(gpus: Gpus) -> float:
    return float(gpus.row(0, ["memory.used"], units=False)[0])


def test_memory_fills_while_weights_load_and_is_back_when_the_server_has_gone() -> None:
    gpus = Gpus()
    seen = [used(gpus)]
    for percent in (0, 25, 50, 100):
        gpus.see(f"Loading safetensors checkpoint shards: {percent:3d}% Completed | 1/64 [00:01<00:03]")
        seen.append(used(gpus))
    gpus.see("[2026-01-01 00:00:00 TP0] Memory pool end. avail mem=11.24 GB")
    seen.append(used(gpus))
    assert seen == sorted(seen)
    assert seen[-1] == round(TOTAL_MIB - 11.24 * 1024)
    gpus.reset()
    assert used(gpus) == seen[0]


def test_load_and_power_follow_the_running_batch() -> None:
    gpus = Gpus()
    idle = [float(x) for x in gpus.row(0, ["utilization.gpu", "power.draw"], units=False)]
    gpus.see("[2026-01-01 00:00:00 TP0] Decode batch, #running-req: 8, #token: 4773, token usage: 0.00")
    busy = [float(x) for x in gpus.row(0, ["utilization.gpu", "power.draw"], units=False)]
    assert idle[0] == 0 < busy[0] < 100
    assert idle[1] < busy[1] < 700


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)", ("127.0.0.1", 30000)),
        ("INFO:     Uvicorn running on http://[::1]:8000 (Press CTRL+C to quit)", ("[::1]", 8000)),
        ("INFO:     Started server process [1]", None),
    ],
)
def test_the_port_is_open_from_uvicorns_line_on(line: str, address: tuple[str, int] | None) -> None:
    assert listens_on(line) == address


async def test_nvidia_smi_prints_one_row_for_each_gpu(machine: Machine) -> None:
    done = await run(
        machine,
        "nvidia-smi",
        "--query-gpu=index,name,memory.total,power.draw",
        "--format=csv,noheader,nounits",
    )
    rows = [line.split(", ") for line in done.out.splitlines()]
    assert [row[0] for row in rows] == [str(index) for index in range(COUNT)]
    assert {tuple(row[1:3]) for row in rows} == {("NVIDIA H200 (simulated)", str(TOTAL_MIB))}
    with_units = await run(machine, "nvidia-smi", "--query-gpu=memory.total", "--format=csv", "-i", "0")
    assert with_units.out == f"memory.total [MiB]\n{TOTAL_MIB} MiB\n"


async def test_nvidia_smi_refuses_a_field_that_it_does_not_know(machine: Machine) -> None:
    done = await run(machine, "nvidia-smi", "--query-gpu=nonsense", "--format=csv")
    assert (done.code, done.out.strip()) == (2, 'Field "nonsense" is not a valid field to query.')
    none = await run(machine, "nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader")
    assert (none.code, none.out) == (0, "")
