"""What ddtui makes of servers that answer badly: every fault through every endpoint, in real bursts.

python benchmarks/faulty_servers.py

The table is that of tests/bench/test_faulty_servers.py. One burst for each endpoint meets every fault between
good answers; another one for each way in which the server is lost for all that comes after. The bar: each
request has its outcome, the good ones stay good, no burst hangs, and each says what happened.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench.test_faulty_servers import APIS, LOSSES, TABLE, WAVE, every_fault, lost

from ddtui.bench.model import BurstState


async def main(folder: Path) -> bool:
    good = True
    bursts = [await every_fault(api, folder) for api in APIS]
    print(f"{'fault':58}" + "".join(f"{api:22}" for api in APIS))
    for at, fault in enumerate(TABLE):
        outcomes = [seen.records[WAVE + 2 * at]["outcome"] for seen in bursts]
        good &= outcomes == [fault.outcome] * len(APIS)
        print(f"{f'{fault.kind}: {fault.name}':58}" + "".join(f"{outcome:22}" for outcome in outcomes))
    for loss in LOSSES:
        ends = []
        for api in APIS:
            seen = await lost(loss, api, folder)
            good &= seen.burst.state is BurstState.DONE and any(loss.says in m for m in seen.point.messages)
            ends.append(f"{seen.point.ok} ok, {seen.point.failed} failed")
        print(f"{loss.name:58}" + "".join(f"{end:22}" for end in ends))
    asked, told = (
        sum(len(of) for of in each) for each in zip(*((s.asked, s.records) for s in bursts), strict=True)
    )
    print(f"{len(TABLE)} faults x {len(APIS)} endpoints: {told} of {asked} requests have an outcome")
    return good and asked == told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.exit(not asyncio.run(main(Path(made))))
