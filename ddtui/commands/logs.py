"""`ddtui logs PROFILE [-f]`: the journal, parsed."""

from __future__ import annotations

import argparse
import time

from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit_json
from ddtui.engine import log
from ddtui.host.journal import JournalEntry


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        if args.follow:
            async for entry in ctx.supervisor.follow(ctx.host, lines=args.lines):
                _show(entry, args)
        else:
            for entry in await ctx.supervisor.lines(ctx.host, since=args.since, lines=args.lines):
                _show(entry, args)
    return 0


def _show(entry: JournalEntry, args: argparse.Namespace) -> None:
    if args.grep:
        inverse, needle = args.grep.startswith("!"), args.grep.removeprefix("!")
        if (needle in entry.text) is inverse:
            return
    if args.json:
        parsed = log.parse(entry.text)
        emit_json(
            "logs",
            {
                "at": entry.realtime_us / 1e6,
                "priority": entry.priority,
                "pid": entry.pid,
                "invocation": entry.invocation,
                "kind": parsed.kind,
                "fields": parsed.fields,
                "text": entry.text,
            },
        )
    else:
        print(
            f"{time.strftime('%H:%M:%S', time.localtime(entry.realtime_us / 1e6))}  {entry.text}", flush=True
        )
