"""nvidia-smi on eight simulated GPUs."""

from __future__ import annotations

from ddtui.demo.commands.program import Call, Usage
from ddtui.demo.gpus import COUNT, DRIVER, NAME, TOTAL_MIB


async def nvidia_smi(call: Call) -> int:
    given: dict[str, str] = {}
    words = list(call.argv[1:])
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if not equals and name in ("-i", "--id") and words:
            value = words.pop(0)
        given[{"--id": "-i"}.get(name, name)] = value
    shape = given.get("--format", "").split(",")
    if ("--query-gpu" in given or "--query-compute-apps" in given) and shape[0] != "csv":
        raise Usage('"--format=" switch is missing. Please run "nvidia-smi -h" for help.', 6)
    if "--query-gpu" in given:
        return _table(call, given, given["--query-gpu"].split(","), shape)
    if "--query-compute-apps" in given:
        return _apps(call, given["--query-compute-apps"].split(","), shape)
    if "-L" in given:
        for index in range(COUNT):
            (uuid,) = call.machine.gpus.row(index, ["uuid"], False)
            call.out(f"GPU {index}: {NAME} (UUID: {uuid})\n")
        return 0
    if given:
        raise Usage("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.", 6)
    call.out(f"NVIDIA-SMI {DRIVER} (simulated)\n")
    for index in range(COUNT):
        used, util, power = call.machine.gpus.row(
            index, ["memory.used", "utilization.gpu", "power.draw"], True
        )
        call.out(f"| {index}  {NAME} | {used} / {TOTAL_MIB} MiB | {util} | {power} |\n")
    return 0


def _table(call: Call, given: dict[str, str], fields: list[str], shape: list[str]) -> int:
    fields = [field.strip() for field in fields]
    units = "nounits" not in shape
    chosen = range(COUNT)
    if given.get("-i"):
        try:
            chosen = [int(index) for index in given["-i"].split(",")]  # type: ignore[assignment]
        except ValueError:
            raise Usage("No devices were found", 6) from None
    if any(index not in range(COUNT) for index in chosen):
        raise Usage("No devices were found", 6)
    try:
        rows = [call.machine.gpus.row(index, fields, units) for index in chosen]
    except KeyError as error:
        call.out(f'Field "{error.args[0]}" is not a valid field to query.\n\n')
        return 2
    if "noheader" not in shape:
        call.out(", ".join(_title(field, units) for field in fields) + "\n")
    for row in rows:
        call.out(", ".join(row) + "\n")
    return 0


def _title(field: str, units: bool) -> str:
    unit = {"memory": " [MiB]", "utiliz": " [%]", "power.": " [W]", "clocks": " [MHz]"}.get(field[:6], "")
    return field + (unit if units else "")


def _apps(call: Call, fields: list[str], shape: list[str]) -> int:
    if "noheader" not in shape:
        call.out(", ".join(fields) + "\n")
    machine = call.machine
    schedulers = [p for p in machine.processes.table.values() if p.comm.startswith("sglang::schedul")]
    for index, process in enumerate(schedulers[:COUNT]):
        (uuid, bus, used) = machine.gpus.row(index, ["uuid", "pci.bus_id", "memory.used"], False)
        values = {
            "pid": str(process.pid), "process_name": process.argv[0], "name": process.argv[0],
            "gpu_uuid": uuid,
            "gpu_bus_id": bus, "gpu_name": NAME, "gpu_serial": "[N/A]",
            "used_memory": used if "nounits" in shape else f"{used} MiB",
            "used_gpu_memory": used if "nounits" in shape else f"{used} MiB",
        }  # fmt: skip
        try:
            call.out(", ".join(values[field.strip()] for field in fields) + "\n")
        except KeyError as error:
            call.out(f'Field "{error.args[0]}" is not a valid field to query.\n\n')
            return 2
    return 0
