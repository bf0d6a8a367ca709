"""`ddtui profiles [list|new|validate]`."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ddtui import profile
from ddtui.commands import ask
from ddtui.commands.failure import InputError
from ddtui.commands.output import emit, note

if TYPE_CHECKING:
    from ddtui.profile import Connection
    from ddtui.tuning.discovery import Found

TEMPLATE = "kimi-k26-ddtree"  # the shipped profile in which every key is commented


def run(args: argparse.Namespace) -> int:
    return {"list": _list, "new": _new, "validate": _validate}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    rows = []
    for name in profile.names():
        path = profile.find(name)
        try:
            rows.append({"name": name, "path": path, "about": profile.load(name).about, "problem": None})
        except profile.ProfileError as error:
            rows.append({"name": name, "path": path, "about": "", "problem": str(error)})
    width = max((len(str(row["name"])) for row in rows), default=0)
    lines = [
        f"{row['name']!s:<{width}}  {row['problem'] or row['about']}\n{'':<{width}}  {row['path']}"
        for row in rows
    ]
    emit(args.json, "profiles", {"profiles": rows}, lines)
    return 1 if any(row["problem"] for row in rows) else 0


def _new(args: argparse.Namespace) -> int:
    """From what is found on a host; without one, a copy of the commented profile to be edited."""
    if len(args.names) > 1:
        raise InputError("say the new profile's name: ddtui profiles new my-host")
    if not args.names and not args.host:
        args.host = asyncio.run(ask.answer("Host to look on (gpu-1, tuner@gpu-1:2222, local): "))
    if args.host:
        from ddtui.commands.opened import wait

        return wait(_from_host(args))
    if not args.names:
        raise InputError(
            "say the new profile's name, or the host to look on: ddtui profiles new my-host --host user@gpu-1"
        )
    (name,) = args.names
    text = profile.find(TEMPLATE).read_text("utf-8").replace(f"name: {TEMPLATE}", f"name: {name}", 1)
    path = profile.save_new(name, text)
    note(f"Made {path}: set host and unit in it, then run `ddtui doctor {name}`.")
    emit(args.json, "profiles-new", {"name": name, "path": path}, [])
    return 0


async def _from_host(args: argparse.Namespace) -> int:
    from ddtui.host.open import open_host
    from ddtui.tuning import discovery, written

    connection = connection_of(args)
    name = args.names[0] if args.names else profile.name_for(connection.host)
    profile.new_path(name)  # refused before the host is bothered
    host = open_host(connection, ask.TerminalAsker())
    try:
        note(f"Connecting to {args.host} …")
        await host.connect()
        note("Looking for services that run SGLang …")
        findings = await discovery.find(host)
        for word in findings.notes:
            note(f"  {word}")
        found = await _choose(findings.units, args.unit)
        made = discovery.draft(name, connection, found, production=args.production)
        note(f"Reading every layer of {found.unit} …")
        tested = await discovery.test(host, made)
    finally:
        await host.close()
    path = profile.save_new(name, written.as_yaml(tested.profile))
    lines = [
        f"service  {found.unit} ({found.by}, {found.active})",
        *([f"file     {found.compose.file}"] if found.compose else []),
        f"model    {found.model or 'not named'}",
        f"speculative decoding  {found.algorithm or 'none'}",
        f"drafter  {found.drafter or 'none'}",
        f"port     {found.port}",
        f"knobs    {', '.join(knob.name for knob in tested.profile.knobs)}",
        *(f"✓ {text}" for text in tested.good),
        *(f"! {text}" for text in tested.problems),
        f"Made {path}",
        f"`ddtui {name}` opens the console; `ddtui doctor {name}` says what a change would need.",
    ]
    report = {
        "name": name,
        "path": path,
        "found": findings.units,
        "notes": findings.notes,
        "read": tested.good,
        "problems": tested.problems,
        "profile": tested.profile.model_dump(mode="json"),
    }
    emit(args.json, "profiles-new", report, lines)
    return 1 if tested.problems else 0


async def _choose(units: tuple[Found, ...], wanted: str | None) -> Found:
    """The service that was named, the only one, or the one that the operator says."""
    if wanted is not None:
        for one in units:
            if one.unit in (wanted, f"{wanted}.service"):
                return one
        there = ", ".join(one.unit for one in units) or "none"
        raise InputError(f"no service {wanted} that runs SGLang was found on the host; found: {there}")
    if not units:
        from ddtui.tuning.discovery import NOTHING

        raise InputError(NOTHING)
    if len(units) == 1:
        return units[0]
    note("Several services run SGLang:")
    for number, one in enumerate(units, 1):
        note(f"  {number}  {one.unit}  {one.by}  {one.active}  {one.algorithm or 'no speculative decoding'}")
    said = await ask.answer("Which one? [1] ") or "1"
    if not ask.somebody():
        raise InputError("several services run SGLang: say which with --unit")
    if not said.isdigit() or not 1 <= int(said) <= len(units):
        raise InputError(f"{said!r} is none of them")
    return units[int(said) - 1]


def connection_of(args: argparse.Namespace) -> Connection:
    """The way to the host, from `--host user@host:port` and the files that were named. Raises InputError."""
    return profile.connection_from(
        args.host,
        identity_file=_file(args.identity_file),
        known_hosts=Path(args.known_hosts).expanduser() if args.known_hosts else None,
        config=_file(args.ssh_config),
    )


def _file(text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text).expanduser()
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    return path.absolute()


def _validate(args: argparse.Namespace) -> int:
    faults: dict[str, str] = {}
    names = args.names or profile.names()
    for name in names:
        try:
            profile.load(name)
        except profile.ProfileError as error:
            faults[name] = str(error)
    lines = [faults.get(name) or f"{name}: good" for name in names]
    emit(args.json, "profiles-validate", {"checked": names, "faults": faults}, lines)
    return 2 if faults else 0
