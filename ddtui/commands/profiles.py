"""`ddtui profiles [list|new|validate]`."""

from __future__ import annotations

import argparse

from ddtui import profile
from ddtui.commands.failure import InputError
from ddtui.commands.output import emit, note

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
    """A copy of the commented profile in the user's folder, to be edited; never over an existing file."""
    if len(args.names) != 1:
        raise InputError("say the new profile's name: ddtui profiles new my-host")
    (name,) = args.names
    text = profile.find(TEMPLATE).read_text("utf-8").replace(f"name: {TEMPLATE}", f"name: {name}", 1)
    path = profile.folders()[0] / f"{name}.yaml"
    profile.parse(text, path)  # refuses an unfit name
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} exists already; edit it, or take another name") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    note(f"Made {path}: set host and unit in it, then run `ddtui doctor {name}`.")
    emit(args.json, "profiles-new", {"name": name, "path": path}, [])
    return 0


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
