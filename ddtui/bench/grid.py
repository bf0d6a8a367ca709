"""A sweep as it is asked for: on the command line or in a YAML file, as an `ExperimentPlan`, and back. Pure.

grid: {budget: [4, 8, 16], topk: [1, 4], window: [off, 2048]}
concurrency: [1, 8, 32]
context: [1k, 8k]
order: halving     # or grid, model
finish: best       # or first, stay
check: true        # the winner's whole output, before it is left in force

`settings`, a list of mappings, stands in place of `grid` where not every combination is wanted; of a knob
that a setting does not name, the value that the host was found with is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ddtui.bench.experiment import OFF, ON, ExperimentPlan, Order, Setting
from ddtui.bench.model import Cell
from ddtui.bench.target import BenchError
from ddtui.profile import Bench

MOST = 4096  # settings of a grid: more is a slip


def parse(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`budget=4,8,16` and the like: by knob, its values. Raises BenchError."""
    grid: dict[str, tuple[str, ...]] = {}
    for word in words:
        knob, equals, values = word.partition("=")
        given = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
        if not equals or not knob.strip() or not given:
            raise BenchError(f"--grid {word!r}: write a knob and its values, like budget=4,8,16")
        if knob.strip() in grid:
            raise BenchError(f"--grid gives {knob.strip()} twice")
        grid[knob.strip()] = given
    return grid


def expand(grid: Mapping[str, Sequence[str]]) -> tuple[Setting, ...]:
    """Every combination, the last knob changing first. Raises BenchError."""
    count = 1
    for values in grid.values():
        count *= len(values)
    if count > MOST:
        raise BenchError(f"the grid has {count} settings, more than {MOST}: take fewer values")
    return tuple(tuple(zip(grid, values, strict=True)) for values in product(*grid.values()))


def values_of(settings: Sequence[Setting]) -> dict[str, tuple[str, ...]] | None:
    """The grid that these settings are, in any order. None: they are not every combination of anything."""
    grid: dict[str, dict[str, None]] = {}
    for one in settings:
        for knob, value in one:
            grid.setdefault(knob, {})[value] = None
    values = {knob: tuple(found) for knob, found in grid.items()}
    count = 1
    for found in values.values():
        count *= len(found)
    whole = count == len(settings) and all(len(one) == len(values) for one in settings)
    return values if whole and len({frozenset(one) for one in settings}) == count else None


def cells(concurrency: Sequence[int], context: Sequence[int], workload: str) -> tuple[Cell, ...]:
    """Every concurrency at every context length."""
    return tuple(Cell(c, length, workload) for length in context for c in concurrency)


def complete(settings: Sequence[Setting], found: Mapping[str, str]) -> tuple[Setting, ...]:
    """The settings with all knobs that any of them names, so that none depends on the one before it."""
    knobs = list(dict.fromkeys(knob for one in settings for knob, _ in one))
    whole = [tuple((knob, dict(one).get(knob, found.get(knob, OFF))) for knob in knobs) for one in settings]
    return tuple(dict.fromkeys(whole))


Count = int | str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    grid: dict[str, Any] | None = None
    settings: list[dict[str, Any]] | None = None
    concurrency: list[Count] | Count | None = None
    context: list[Count] | Count | None = None
    workload: str | None = None
    output: int | None = Field(default=None, ge=2, le=65536)
    at: Literal["host", "here"] | None = None
    temperature: float | None = Field(default=None, ge=0)
    max_seconds: float | None = Field(default=None, gt=0)
    requests: int | None = Field(default=None, gt=0)
    endpoint: Literal["generate", "completions", "chat"] = "generate"
    seed: int = 0
    order: Literal["grid", "halving", "model"] = "grid"
    trials: int | None = Field(default=None, gt=0)
    finish: Literal["best", "first", "stay"] = "best"
    check: bool = True
    objective: Literal["throughput", "per-user"] = "throughput"
    why: str = ""


def read(text: str, name: str, bench: Bench) -> ExperimentPlan:
    """A plan from YAML; what it leaves out is as the profile's bursts are. Raises BenchError with the
    place.
    """
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise BenchError(f"{name}{line}: is not valid YAML: {getattr(problem, 'problem', problem)}") from None
    if not isinstance(data, dict):
        raise BenchError(f"{name}: is empty or no mapping; begin it like `grid: {{budget: [4, 8, 16]}}`")
    try:
        file = _File.model_validate(data)
    except ValidationError as problem:
        fault = problem.errors()[0]
        where = ".".join(str(part) for part in fault["loc"][:1])
        what = "is no key of a plan" if fault["type"] == "extra_forbidden" else fault["msg"].lower()
        raise BenchError(f"{name}: {where}: {what}") from None
    if (file.grid is None) == (file.settings is None):
        raise BenchError(f"{name}: give `grid` or `settings`, one of them")
    if file.grid is not None:
        grid = {str(knob): _values(values) for knob, values in file.grid.items()}
        settings = expand(grid)
    else:
        settings = tuple(tuple((str(k), _word(v)) for k, v in one.items()) for one in file.settings or ())
    if not settings or not all(settings):
        raise BenchError(f"{name}: no setting is named; begin it like `grid: {{budget: [4, 8, 16]}}`")
    return ExperimentPlan(
        settings=settings,
        cells=cells(
            _counts(file.concurrency, name) or bench.concurrency,
            _counts(file.context, name) or bench.context,
            file.workload or bench.workload,
        ),
        order=Order(file.order),
        output=file.output or bench.output,
        at=file.at or bench.at,
        temperature=bench.temperature if file.temperature is None else file.temperature,
        max_seconds=file.max_seconds or bench.max_seconds,
        endpoint=file.endpoint,
        requests=file.requests,
        seed=file.seed,
        finish=file.finish,
        check=file.check,
        objective=file.objective,
        trials=file.trials,
        why=file.why,
    )


def write(plan: ExperimentPlan) -> str:
    """The plan as YAML, which `read` reads back as it is."""
    import yaml

    values = values_of(plan.settings)
    file: dict[str, Any] = (
        {"grid": {knob: list(map(_scalar, found)) for knob, found in values.items()}}
        if values is not None
        else {"settings": [{knob: _scalar(value) for knob, value in one} for one in plan.settings]}
    )
    file["concurrency"] = list(dict.fromkeys(cell.concurrency for cell in plan.cells))
    file["context"] = list(dict.fromkeys(cell.context for cell in plan.cells))
    file["workload"] = plan.cells[0].workload
    for name in [one for one in _File.model_fields if one not in ("grid", "settings", *file)]:
        if getattr(plan, name) not in (None, ""):
            file[name] = getattr(plan, name)
    file["order"] = plan.order.value
    text: str = yaml.safe_dump(file, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)
    return text


def _scalar(value: str) -> str | int:
    """A number is written as one."""
    return int(value) if value.isdecimal() and str(int(value)) == value else value


def _values(given: Any) -> tuple[str, ...]:
    values = given if isinstance(given, list) else [given]
    return tuple(dict.fromkeys(map(_word, values)))


def _word(value: Any) -> str:
    """YAML takes a bare off and on for false and true."""
    if value is None or value is False:
        return OFF
    return ON if value is True else str(value)


def _counts(given: list[Count] | Count | None, name: str) -> tuple[int, ...]:
    values = given if isinstance(given, list) else [] if given is None else [given]
    return tuple(count(value, name) for value in values)


def count(value: Count, name: str) -> int:
    """The number behind 512, 8k or 1M. Raises BenchError."""
    word = str(value).strip().lower()
    factor = {"k": 1024, "m": 1024 * 1024}.get(word[-1:], 1)
    digits = word[:-1] if factor > 1 else word
    if not digits.isdigit() or int(digits) == 0:
        raise BenchError(f"{name}: {value!r} is no count: write 512, 8k or 1M")
    return int(digits) * factor
