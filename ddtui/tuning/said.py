"""What each layer says of one flag, as a value that can be compared and a line that can be shown. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddtui import redact
from ddtui.engine.flags import WINDOW, FlagTable, ResolvedFlags, other_names, settings
from ddtui.tuning.model import Evidence, Layer

if TYPE_CHECKING:
    from ddtui.host.unit.read import UnitReading
    from ddtui.tuning.survey import Survey

ON = "on"  # a switch that is given, as text


@dataclass(frozen=True, slots=True)
class Said:
    """One layer's word on one flag. `known` False: the layer was not read, or says nothing of it."""

    layer: Layer
    known: bool
    value: str | None = None  # None: not given there
    text: str = ""
    source: str = ""
    read_at: float | None = None

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.layer, self.text, self.source, self.read_at)


def table(survey: Survey) -> FlagTable:
    """The flags of the installed SGLang; an empty table if they could not be read."""
    return survey.engine.value.flags if survey.engine.value else FlagTable()


def is_window(flag: str) -> bool:
    """Whether a flag is the draft window under either of its names."""
    return flag == WINDOW or flag in other_names(WINDOW)


def same_flag(flags: FlagTable, a: str, b: str) -> bool:
    """Whether two spellings mean the same flag; the window's two names always do."""
    return a == b or flags.equivalent(a, b) or b in other_names(a)


def as_text(value: Any) -> str | None:
    """A value as text: None for not given, "on" for a switch that is on, values of several in one line."""
    match value:
        case None | False:
            return None
        case True:
            return ON
        case str():
            return value
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return " ".join(str(item) for item in value)
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case _:
            return str(value)


def safe(name: str, value: Any) -> str | None:
    """A value as text, masked if its name says that it is a secret. Masks of the same secret are the same."""
    text = as_text(value)
    return redact.value(name, text) if text else text


def same(a: str | None, b: str | None) -> bool:
    """Whether two values mean the same to SGLang: numbers by value, JSON by content, else as written."""
    if a is None or b is None:
        return a is None and b is None
    return a == b or _norm(a) == _norm(b)


def _norm(text: str) -> Any:
    if text.lower() in ("true", ON):
        return True
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text


def show(value: str | None) -> str:
    """A value in a sentence."""
    return "not set" if value is None else value


def resolved(survey: Survey) -> ResolvedFlags | None:
    """The running process's arguments as its own SGLang reads them."""
    process = survey.process.value
    return table(survey).resolve(process.argv) if process else None


def given(flags: Mapping[str, Any], table: FlagTable, flag: str) -> tuple[str, Any] | None:
    """The flag as it stands among others, under whatever name: (name, value)."""
    for name, value in flags.items():
        if same_flag(table, name, flag):
            return name, value
    return None


def flags_of(unit: UnitReading) -> Mapping[str, Any]:
    """The flags that a start of the unit gets, those of SGLang's --config file among them."""
    return unit.flags if unit.effective_flags is None else unit.effective_flags


def where_of(unit: UnitReading) -> str:
    """Where the unit's command stands."""
    if unit.file is None:
        return unit.fragment or ""
    return f"{unit.file}:{unit.line}" if unit.line else unit.file


def by_unit(survey: Survey, flag: str) -> Said:
    """The unit with its drop-ins, scripts and files: the value that the next start will get."""
    unit, at = survey.unit.value, survey.unit.read_at
    if unit is None:
        return Said(Layer.UNIT, False, None, survey.unit.problem or "not read", "", at)
    if unit.launch_argv is None:
        return Said(Layer.UNIT, False, None, "no launch command of SGLang was found in the unit", "", at)
    found = given(flags_of(unit), table(survey), flag)
    if found is None:
        return Said(Layer.UNIT, True, None, f"{flag} is not given", where_of(unit), at)
    name, value = found
    source = unit.flag_sources.get(name)
    where = str(source) if source else where_of(unit)
    text = safe(name, value)
    return Said(Layer.UNIT, True, text, f"{name} {text}".removesuffix(" on"), where, at)


def by_process(survey: Survey, flag: str) -> Said:
    """The argv of the real server process."""
    process, at = survey.process.value, survey.process.read_at
    if process is None:
        return Said(Layer.PROCESS, False, None, survey.process.problem or "not read", "", at)
    source = f"pid {process.pid}"
    arguments = resolved(survey)
    assert arguments is not None
    found = given(arguments.values, table(survey), flag)
    if found is None:  # a flag that the installed SGLang does not know, or that could not be read in it
        found = given(settings(process.argv), FlagTable(), flag)
    if found is not None:
        name, value = found
        text = safe(name, value)
        return Said(Layer.PROCESS, True, text, f"runs with {name} {text}".removesuffix(" on"), source, at)
    config = arguments.get("--config")
    unit = survey.unit.value
    if config is not None and unit is not None:
        entry = given(flags_of(unit), table(survey), flag)
        origin = unit.flag_sources.get(entry[0]) if entry else None
        if entry and origin and origin.file == config:
            text = safe(*entry)
            return Said(Layer.PROCESS, True, text, f"runs with --config {config}: {show(text)}", source, at)
    return Said(Layer.PROCESS, True, None, f"runs without {flag}", source, at)


def by_server(survey: Survey, flag: str) -> Said:
    """The server's own answer: its resolved arguments."""
    info, at = survey.server.value, survey.server.read_at
    if info is None:
        return Said(Layer.SERVER, False, None, survey.server.problem or "not read", "", at)
    return _from_arguments(Layer.SERVER, info.arguments, survey, flag, "GET /server_info", at)


def by_journal(survey: Survey, flag: str) -> Said:
    """The server_args line of this start."""
    journal, at = survey.journal.value, survey.journal.read_at
    if journal is None:
        return Said(Layer.JOURNAL, False, None, survey.journal.problem or "not read", "", at)
    if journal.server_args is None:
        return Said(Layer.JOURNAL, False, None, "the journal of this start has no server_args line", "", at)
    return _from_arguments(Layer.JOURNAL, journal.server_args, survey, flag, "server_args line", at)


def _from_arguments(
    layer: Layer, arguments: Mapping[str, Any], survey: Survey, flag: str, source: str, at: float | None
) -> Said:
    for name in fields(survey, flag):
        if name in arguments:
            text = safe(name, arguments[name])
            return Said(layer, True, text, f"{name} = {'null' if text is None else text}", source, at)
    return Said(layer, False, None, f"the answer has no field for {flag}", source, at)


def fields(survey: Survey, flag: str) -> Sequence[str]:
    """Under which names the flag stands in /server_info and in the server_args line."""
    known = table(survey).find(flag)
    names = [known.dest] if known else []
    names.append(flag.removeprefix("--").replace("-", "_"))
    names += [other.removeprefix("--").replace("-", "_") for other in other_names(flag)]
    return list(dict.fromkeys(names))
