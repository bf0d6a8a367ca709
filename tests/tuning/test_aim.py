"""Where a burst reads the server's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtui import profile
from ddtui.host.base import NobodyToAsk
from ddtui.host.open import open_host
from ddtui.host.unit.read import read_unit
from ddtui.host.unit.tree import Tree
from ddtui.profile import Connection
from ddtui.tuning import aim
from ddtui.tuning.context import Tuning

UNIT = """[Service]
ExecStart=/usr/bin/python3 -m sglang.launch_server --model-path /m
StandardOutput={output}
"""
LINE = "[2026-12-01 02:55:04] Decode batch, #running-req: 1, gen throughput (token/s): 77.00, #queue-req: 0\n"


@pytest.mark.parametrize(("output", "found"), [("append:{log}", True), ("null", False)])
async def test_a_unit_that_writes_to_a_file_is_read_there(output: str, found: bool, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("a start\n" + LINE)
    ctx = Tuning(
        profile=profile.load("demo"), host=open_host(Connection(host="local"), NobodyToAsk()), history=None
    )
    text = UNIT.format(output=output.format(log=log)).encode()
    tree = Tree().with_known({f"/etc/systemd/system/{ctx.unit}": text}, {}, {}, {})
    unit = read_unit(tree, ctx.unit)
    lines = aim._lines(ctx, unit)
    assert (lines is not None) == found, unit.log
    if lines is not None:
        await ctx.host.connect()
        entries = await lines(0.0)
        await ctx.host.close()
        assert [entry.text for entry in entries] == ["a start", LINE.strip()]
