"""The operator's settings: ~/.config/ddtui/config.toml, read, checked and explained.

The file says what differs from the defaults; the variables `DDTUI_THEME`, `DDTUI_PLAIN` and `DDTUI_ASCII` go
before it. Which actions there are to give keys to, and which themes, is known to the rooms above: they check
`keys` and `theme`.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ddtui import locations


class SettingsError(Exception):
    """Settings that cannot be used: file, line, key, what is wrong, an example."""


class When(StrEnum):
    """Which events are told in one way."""

    ALL = "all"
    PROBLEMS = "problems"
    NEVER = "never"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Notify(_Model):
    """How the operator hears of a finished burst, a change that ended, a lost link."""

    toast: When = When.ALL
    bell: When = When.PROBLEMS
    osc9: When = When.NEVER


class Settings(_Model):
    """All settings, each with its default."""

    theme: str = "ddtui-dark"
    ascii: bool = False
    plain: bool = False
    refresh: Annotated[float, Field(ge=1, le=60)] = 2.0  # seconds
    journal_lines: Annotated[int, Field(ge=1000, le=5_000_000)] = 200_000
    notify: Notify = Notify()
    keys: Mapping[str, str] = Field(
        default_factory=dict
    )  # action -> key names as the console's table has them

    @field_validator("keys")
    @classmethod
    def _named(cls, keys: Mapping[str, str]) -> dict[str, str]:
        return {action: ",".join(map(key_name, split_keys(wanted))) for action, wanted in keys.items()}


def split_keys(text: str) -> list[str]:
    """Several keys in one string: by comma; a comma alone is the comma key."""
    return [","] if text.strip() == "," else [key.strip() for key in text.split(",") if key.strip()]


def key_name(key: str) -> str:
    """A key's name: `/` as `slash`, `^x` as `ctrl+x`; names are kept. Raises ValueError with a sentence."""
    if len(key) == 2 and key[0] == "^" and key[1].isalpha():
        key = f"ctrl+{key[1].lower()}"
    if len(key) == 1:
        if key.isalnum():
            return key
        name = unicodedata.name(key, "").lower().replace("-", "_").replace(" ", "_")
        key = _SHORTER.get(name, name)
    if not re.fullmatch(r"((ctrl|shift|alt|super|meta|hyper)\+)*([a-z0-9_]+|[A-Z])", key):
        raise ValueError(f"{key!r} is no key; write `x`, `X`, `/`, `ctrl+x`, `f5`, `enter`")
    if key in _SAME_BYTES:
        raise ValueError(f"{key} cannot be told from {_SAME_BYTES[key]} in a terminal; take another key")
    return key


_SHORTER = {
    "solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
    "plus_sign": "plus", "low_line": "underscore",
}  # fmt: skip
_SAME_BYTES = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+j": "newline", "ctrl+h": "backspace"}


DEFAULT_TEXT = """\
# Settings of ddtui. Each line shows its default: take the # away and change it.
# `ddtui config` prints what is in force, or says what is wrong and where.

# theme = "ddtui-dark"      # T in the console shows them all, and writes the one that is chosen below
# ascii = false             # true: only characters that every terminal and font has; so on the Linux console
# plain = false             # true: one line of text per event instead of the console (as --plain)
# refresh = 2.0             # seconds between two looks at the host, 1 to 60; the journal always comes at once
# journal_lines = 200000    # lines of the journal that the console keeps; older ones stay on the host

[notify]                    # a finished burst, a change that ended, a lost link: all, problems or never
# toast = "all"             # a box in the console
# bell = "problems"         # the terminal's bell
# osc9 = "never"            # a desktop notification by the terminal (iTerm2, WezTerm, Windows Terminal)

[keys]                      # keys of actions; several by comma. `ddtui help keys` lists all actions
# burst = "x"
# restart = "r"
"""

_EXAMPLES = {
    "theme": 'theme = "ddtui-dark"',
    "ascii": "ascii = true",
    "plain": "plain = true",
    "refresh": "refresh = 2.0",
    "journal_lines": "journal_lines = 200000",
    "notify": "[notify]",
    "notify.toast": 'toast = "all"',
    "notify.bell": 'bell = "problems"',
    "notify.osc9": 'osc9 = "never"',
    "keys": 'burst = "x"',
}


def path() -> Path:
    """Where the settings are read from, whether or not the file is there."""
    return locations.config_dir() / "config.toml"


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises SettingsError with a line for every fault."""
    file = path()
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: is not UTF-8 text (byte {error.start} is invalid)") from None
    return with_environment(parse(text, file), os.environ if environment is None else environment)


def parse(text: str, file: Path) -> Settings:
    """Settings from TOML text; `file` names it in errors. Raises SettingsError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"^(.*?) \(at (?:line (\d+).*|end of document)\)$", str(error))
        line = (found[2] if found else None) or str(text.count("\n") + 1)
        raise SettingsError(f"{file}:{line}: is not valid TOML: {found[1] if found else error}") from None
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(text, file, dict(one)) for one in error.errors())) from None


def with_environment(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings with what DDTUI_… variables say. Raises SettingsError."""
    wishes: dict[str, Any] = {}
    for name in ("theme", "plain", "ascii"):
        value = environment.get(f"DDTUI_{name.upper()}")
        if value:
            wishes[name] = value
    if environment.get("TERM") == "linux" and "ascii" not in settings.model_fields_set:
        wishes.setdefault("ascii", True)  # the Linux console's fonts have none of the other characters
    try:
        return Settings.model_validate({**settings.model_dump(), **wishes}) if wishes else settings
    except ValidationError as error:
        names = ", ".join(f"DDTUI_{str(one['loc'][0]).upper()}" for one in error.errors())
        raise SettingsError(f"{names}: must be true or false") from None


def line_of(text: str, key: str) -> int | None:
    """The line of a dotted key in TOML text as people write it: tables, and keys below them."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if head:
            table = head[1].replace('"', "").replace(" ", "")
            if table == key:
                return number
            continue
        found = re.match(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[A-Za-z0-9_-]+)*)\s*=""", line)
        if found:
            name = found[1].replace('"', "").replace("'", "").replace(" ", "")
            if (f"{table}.{name}" if table else name) == key:
                return number
    return None


def keep_theme(name: str) -> None:
    """Write the theme into the file, whole or not at all; every other line stays as it is, comments too.

    Raises SettingsError with a sentence.
    """
    file = path().resolve()  # it may be a link into the operator's dotfiles
    try:
        text = file.read_bytes().decode("utf-8") if file.exists() else ""
        changed = with_theme(text, name)
        if parse(changed.removeprefix("\ufeff"), file).theme != name:
            raise SettingsError(f"{file}: its theme cannot be changed from here")
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_bytes(changed.encode())
        if file.exists():
            fresh.chmod(file.stat().st_mode & 0o7777)
        fresh.replace(file)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be written: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: is not UTF-8 text") from None


def with_theme(text: str, name: str) -> str:
    """The text of the settings with this theme: in its line, else below the line that shows the default."""
    lines = text.splitlines(keepends=True)
    ends = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    at = line_of(text.removeprefix("\ufeff"), "theme")
    if at is not None:
        old = r"""(=\s*)("[^"\n]*"|'[^'\n]*')"""
        lines[at - 1] = re.sub(old, lambda found: f'{found[1]}"{name}"', lines[at - 1], count=1)
        return "".join(lines)
    shown = [number for number, line in enumerate(lines, 1) if re.match(r"#\s*theme\s*=", line)]
    tables = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line)]
    before = min([*shown, *tables, len(lines)])
    if before and not lines[before - 1].endswith(("\n", "\r")):
        lines[before - 1] += ends
    lines.insert(before, f'theme = "{name}"{ends}')
    return "".join(lines)


def _explain(text: str, file: Path, fault: dict[str, Any]) -> str:
    """One fault as `file:line: key: what is wrong; example: …`."""
    key = ".".join(str(part) for part in fault["loc"])
    line = line_of(text, key)
    kind, given = fault["type"], fault["input"]
    if kind == "extra_forbidden":
        what = "is not a setting here" + _nearest(key)
    elif kind == "enum":
        what = f"must be one of {fault['ctx']['expected']}, but it is {given!r}"
    else:
        what = str(fault["msg"]).removeprefix("Value error, ")
        what = f"{what[:1].lower()}{what[1:]}" + ("" if key == "keys" else f", but it is {given!r}")
    general = "keys" if key.startswith("keys.") else key
    example = _EXAMPLES.get(general)
    return f"{file}:{line or 1}: {key}: {what}" + (f"; example: `{example}`" if example else "")


def _nearest(key: str) -> str:
    parent, _, name = key.rpartition(".")
    known = list((Notify if parent == "notify" else Settings).model_fields)
    close = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean `{close[0]}`?" if close else f"; there are {', '.join(known)}"
