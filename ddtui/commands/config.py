"""`ddtui config`: where the settings are, what is in force, what is wrong; the commented file; editing it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from collections.abc import Iterator

from ddtui import settings
from ddtui.actions.keymap import overlaps
from ddtui.commands.ask import somebody
from ddtui.commands.failure import InputError
from ddtui.commands.output import emit, note
from ddtui.settings import Settings, SettingsError


def run(args: argparse.Namespace) -> int:
    if args.write:
        _write()
    if args.edit:
        return _edit()
    found = usable()
    file = settings.path()
    report = {"path": file, "exists": file.exists(), "settings": found.model_dump(mode="json")}
    emit(args.json, "config", report, _lines(found))
    return 0


def usable() -> Settings:
    """The settings in force, checked whole. Raises SettingsError with a line for every fault."""
    found = settings.load()
    problems = [*key_problems(found), *theme_problems(found)]
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def key_problems(found: Settings) -> Iterator[str]:
    """Keys for actions that there are not, and keys that two actions would have, with their lines."""
    for problem in dict.fromkeys(overlaps(found.keys)):
        names = [name for name in found.keys if repr(name) in problem]
        key = f"keys.{names[-1]}" if names else "keys"
        what = problem.removeprefix("keymap: ")
        yield f"{_place(key)}: {key}: {what}; `ddtui help keys` lists the actions and their keys"


def theme_problems(found: Settings) -> Iterator[str]:
    from ddtui.themes import names

    known = names()
    if found.theme not in known:
        listed = ", ".join(known)
        yield f"{_place('theme')}: theme: there is no theme {found.theme!r}; there are {listed}"


def _place(key: str) -> str:
    file = settings.path()
    try:
        line = settings.line_of(file.read_text("utf-8-sig"), key)
    except OSError:
        line = None
    return f"{file}:{line}" if line else f"{file}"


def _lines(found: Settings) -> Iterator[str]:
    file = settings.path()
    there = "" if file.exists() else "  (not there: all defaults; `ddtui config --write` makes it)"
    yield f"{file}{there}"
    yield ""
    default = Settings()
    for name in Settings.model_fields:
        value, usual = getattr(found, name), getattr(default, name)
        if name == "notify":
            for part in type(value).model_fields:
                one, other = getattr(value, part), getattr(usual, part)
                yield _line(f"notify.{part}", one.value, one != other)
        elif name == "keys":
            for action, keys in value.items():
                yield _line(f"keys.{action}", keys, True)
        else:
            yield _line(name, value, value != usual)


def _line(name: str, value: object, changed: bool) -> str:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{name:<16} {shown:<16} {'' if changed else '(default)'}".rstrip()


def _write() -> None:
    """The commented file with every default; never over one that is there."""
    file = settings.path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as out:
            out.write(settings.DEFAULT_TEXT)
    except FileExistsError:
        raise InputError(f"{file} exists already; `ddtui config --edit` opens it") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None
    note(f"Made {file}: every setting is in it with its default.")


def _edit() -> int:
    """Open the file in the operator's editor, made first if need be; then check it."""
    if not somebody():
        raise InputError(f"an editor needs a terminal; the file is {settings.path()}")
    if not settings.path().exists():
        _write()
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(settings.path())]).returncode
    except (OSError, ValueError) as error:
        raise InputError(f"$EDITOR {editor!r} cannot be run: {error}") from None
    if code:
        raise InputError(f"{editor} ended with status {code}")
    usable()
    note("The settings are good.")
    return 0
