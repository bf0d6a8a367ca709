"""The readers of a survey's layers. Each gives its fields of the `Survey`; none lets another one down.

Commands of its own: `stat -L -c '%F|%s|%.9Y|%n' -- FILE…`, `cat -- FILE`, and `PYTHON - ARGS` with the engine
room's probe on stdin; the last two by `docker exec -i NAME` where the server runs in a container.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from ddtui.engine import drafter as drafters
from ddtui.engine import evidence, installation
from ddtui.engine.api import Api, ApiError, ServerInfo
from ddtui.engine.drafter import DrafterConfig, DrafterError
from ddtui.engine.evidence import JournalEvidence
from ddtui.engine.installation import Installation, InstallationError
from ddtui.host import gpu
from ddtui.host import service as services
from ddtui.host.base import Command, Completed, Host, HostError, LinkLost, Unreachable
from ddtui.host.container import Container, on_host, published
from ddtui.host.container import python_of as python_inside
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceStatus
from ddtui.sanitize import sanitize
from ddtui.tuning import said
from ddtui.tuning.context import Tuning
from ddtui.tuning.file_times import STAT, drafter_files, engine_files, parse_stat, stat, unit_folders, watched
from ddtui.tuning.measured import Measured
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.survey import Survey

T = TypeVar("T")

PROBE_TIMEOUT = 30.0
HTTP_TIMEOUT = 10.0
GPU_TIMEOUT = 5.0
FIRST_MINUTES = 600.0  # of a start's journal; the rest is read only if the server was not ready by then


class Counted:
    """A host that counts its round trips."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.round_trips = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)

    async def run(self, argv: Sequence[str], **how: Any) -> Completed:
        self.round_trips += 1
        return await self.host.run(argv, **how)

    async def batch(self, commands: Sequence[Command], **how: Any) -> list[Completed]:
        self.round_trips += 1
        return await self.host.batch(commands, **how)


def counted(ctx: Tuning) -> tuple[Tuning, Counted]:
    """The context with a host that counts, and the counter."""
    counter = Counted(ctx.host.host if isinstance(ctx.host, Counted) else ctx.host)
    return replace(ctx, host=cast(Host, counter)), counter


async def _layer(layer: Layer, act: Callable[[], Awaitable[T]]) -> Reading[T]:
    """What `act` gives as that layer's reading; its failure is the layer's own. A lost link is raised."""
    try:
        value = await act()
    except (LinkLost, Unreachable):
        raise
    except TimeoutError:
        return Reading(
            layer, problem=f"the host did not answer in time when the {layer} was read", read_at=time.time()
        )
    except (HostError, DrafterError, InstallationError, ApiError) as error:
        return Reading(layer, problem=sanitize(str(error)), read_at=time.time())
    return Reading(layer, value=value, read_at=time.time())


class Missing(HostError):
    """A layer has nothing to read: one sentence."""


# what may have moved


async def look(ctx: Tuning, previous: Survey) -> tuple[Survey, frozenset[Layer]]:
    """A cheap look: systemd's status and the times of the files; what must be read again by that."""
    status, stamps = await asyncio.gather(ctx.supervisor.status(ctx.host), stat(ctx, watched(previous)))
    return replace(previous, status=status, stamps=stamps), moved(previous, status, stamps)


def moved(previous: Survey, status: services.ServiceStatus, stamps: Mapping[str, float]) -> frozenset[Layer]:
    """Which layers must be read again, by systemd's status and the files' times now."""
    again = {Layer.SERVER, Layer.MEASURED}
    if previous.status is None or state_of(previous.status) != state_of(status):
        again |= {Layer.UNIT, Layer.PROCESS, Layer.JOURNAL}
        if previous.unit.value and previous.unit.value.inside:
            again |= {Layer.ENGINE, Layer.DRAFTER}  # the container is another one
    before = previous.changed_at
    changed = {path for path, at in stamps.items() if path in before and before[path] != at}
    drafter, engine, start = previous.drafter.value, previous.engine.value, previous.journal.value
    if previous.unit.value is None or changed & {*previous.unit.value.files, *unit_folders(previous)}:
        again |= {Layer.UNIT, Layer.PROCESS}
    if previous.process.value is None:
        again.add(Layer.PROCESS)
    if drafter is None or changed & set(drafter_files(previous)):
        again.add(Layer.DRAFTER)
    if engine is None or changed & set(engine_files(engine)):
        again.add(Layer.ENGINE)
    if start is None or start.ready is None:
        again.add(Layer.JOURNAL)
    return frozenset(again)


def state_of(status: services.ServiceStatus) -> tuple[object, ...]:
    """What must stay the same for unit, process and journal to be still what they were."""
    return (
        status.load_state,
        status.active_state,
        status.sub_state,
        status.invocation_id,
        status.main_pid,
        status.n_restarts,
        status.need_daemon_reload,
        status.fragment_path,
        status.drop_in_paths,
    )


def follows(ctx: Tuning, survey: Survey, previous: Survey | None) -> frozenset[Layer]:
    """What else must be read again because unit or process are others now."""
    again = set()
    if previous is None or drafter_of(ctx, survey) != previous.drafter_path:
        again.add(Layer.DRAFTER)
    if previous is None or python_of(survey) != previous.python:
        again.add(Layer.ENGINE)
    return frozenset(again)


# unit and process


async def read_service(ctx: Tuning, survey: Survey) -> Survey:
    """The survey with systemd's status, the unit and the process. Raises what the link raises."""
    knobs = tuple(knob.flag for knob in ctx.profile.knobs if knob.flag)
    now = time.time()
    try:
        found = await ctx.supervisor.reading(ctx.host, knobs=knobs)
    except (LinkLost, Unreachable):
        raise
    except (HostError, TimeoutError) as error:
        problem = sanitize(str(error)) or "the host did not answer in time when the service was read"
        return replace(
            survey,
            unit=Reading(Layer.UNIT, problem=problem, read_at=now),
            process=Reading(Layer.PROCESS, problem=problem, read_at=now),
        )
    absent = f"systemd knows no unit {ctx.unit}" if not found.status.exists else ""
    unit, process = found.problems.get("unit"), found.problems.get("process")
    return replace(
        survey,
        status=found.status,
        service=found,
        stamps={**survey.stamps, **found.changed_at},
        unit=Reading(
            Layer.UNIT,
            found.unit,
            None if found.unit else unit or absent or "the unit could not be read",
            now,
        ),
        process=Reading(
            Layer.PROCESS,
            found.process,
            None if found.process else process or absent or "no server process runs under the unit",
            now,
        ),
    )


def argument(survey: Survey, flag: str) -> str | None:
    """A flag's value that counts now: the running process's, else the unit's, else the server's."""
    for word in (said.by_process(survey, flag), said.by_unit(survey, flag), said.by_server(survey, flag)):
        if word.known and word.value is not None:
            return word.value
    return None


# the drafter's config


def drafter_of(ctx: Tuning, survey: Survey) -> str | None:
    """The drafter's folder or repo id: what the flags name, else what the profile names. None: neither."""
    return argument(survey, "--speculative-draft-model-path") or ctx.profile.drafter


async def read_drafter(ctx: Tuning, survey: Survey) -> dict[str, Any]:
    """config.json of the drafter, from its folder or from the service's Hugging Face cache."""
    name = drafter_of(ctx, survey)

    async def act() -> DrafterConfig:
        if name is None:
            algorithm = argument(survey, "--speculative-algorithm")
            what = f"{algorithm} with no draft model" if algorithm else "no speculative decoding"
            raise Missing(f"the flags name no drafter ({what}), nor does the profile")
        if name.startswith("/"):
            folder = name
        else:
            folder = f"{_folder(survey)}/{name}"
            if drafters.is_repo_id(name):
                folder = await _of_repo(ctx, survey, name, folder, stamps)
        (place,) = _places(survey, [_config_of(folder)])
        times, done = await ctx.host.batch([place.stat, place.cat])  # a change in between is read again
        if not done.ok:
            raise Missing(f"the drafter's config cannot be read: {done.last_words}")
        stamps[place.shown] = max(parse_stat(times, [place.path]).values())
        return drafters.parse(done.stdout, place.shown)

    stamps: dict[str, float] = {}
    reading = await _layer(Layer.DRAFTER, act)
    return {"drafter": reading, "drafter_path": name, "stamps": stamps}


def _config_of(folder: str) -> str:
    return folder if folder.endswith(".json") else f"{folder.rstrip('/')}/config.json"


@dataclass(frozen=True, slots=True)
class _Place:
    """A file as the service sees it, and where it is had."""

    shown: str  # a path on the host, or NAME:PATH inside the container
    path: str  # where it is had
    cat: Command
    stat: Command


def _places(survey: Survey, paths: Sequence[str]) -> list[_Place]:
    """Where these files are: on the host (mounted into the container), or inside it. Raises Missing."""
    unit, container = survey.unit.value, _container(survey)
    mounts = unit.inside["mounts"] if unit and unit.inside else None
    found = []
    for path in paths:
        here = path if mounts is None else on_host(mounts, path)
        if here is not None:
            found.append(_Place(here, here, Command(("cat", "--", here)), Command((*STAT, here))))
        elif container is not None:
            commands = container.exec(("cat", "--", path)), container.exec((*STAT, path))
            found.append(_Place(f"{container.name}:{path}", path, *commands))
        else:
            raise Missing(f"{path} is inside a container that cannot be looked into: {_closed(survey)}")
    return found


def _container(survey: Survey) -> Container | None:
    """The container that the server runs in, if it does and may be looked into."""
    return survey.service.container if survey.service else None


def _closed(survey: Survey) -> str:
    return survey.process.problem or "it is not running"


def _folder(survey: Survey) -> str:
    """The folder that the service runs in."""
    process, unit = survey.process.value, survey.unit.value
    return ((process.cwd if process else None) or (unit.working_directory if unit else None) or "/").rstrip(
        "/"
    )


async def _of_repo(ctx: Tuning, survey: Survey, repo: str, here: str, stamps: dict[str, float]) -> str:
    """A folder of that name in the service's own folder, else the repo's snapshot in its Hugging Face cache.

    In the order of SGLang. The file that says which snapshot goes into `stamps`. Raises Missing.
    """
    unit = survey.unit.value
    inside = unit.inside if unit else None
    given = inside["env"] if inside else unit.environment if unit else {}
    env = {name: str(value) for name, value in given.items()}
    revision = argument(survey, "--speculative-draft-model-revision") or "main"
    account = unit.user if unit and not inside else None
    home = env.get("HOME") or (f"/home/{account}" if account and account != "root" else "/root")
    folders = drafters.hf_cache_candidates(repo, env, home=home)
    files = [_config_of(here), *(drafters.hf_ref(folder, revision) for folder in folders)]
    try:
        places = _places(survey, files)
    except Missing:  # the cache may be mounted where the rest is out of reach
        here, places = "", _places(survey, files[1:])
    asked = [command for place in places for command in (place.stat, place.cat)]
    done = await ctx.host.batch(asked)
    for at, found in enumerate(folder for folder in (here, *folders) if folder):
        times, cat = done[2 * at : 2 * at + 2]
        if cat.ok:
            stamps[places[at].shown] = max(parse_stat(times, [places[at].path]).values())
            return here if found == here else f"{found}/snapshots/{cat.out.strip()}"
    if len(revision) == 40:  # a commit: its snapshot stands under its own name
        return f"{folders[0]}/snapshots/{revision}"
    looked = ", ".join(folders)
    raise Missing(
        f"{repo} is not in the service's Hugging Face cache (looked for refs/{revision} in {looked})"
    )


# the engine's source


def python_of(survey: Survey) -> str | None:
    """The service's own interpreter. None: not known."""
    unit, process = survey.unit.value, survey.process.value
    if unit and unit.inside:
        container = _container(survey)
        return shlex.join(container.exec((_python_inside(survey),)).argv) if container else None
    if unit and unit.python:
        return unit.python
    first = process.argv[0] if process and process.argv else ""
    return first if first.startswith("/") and "python" in first.rpartition("/")[2] else None


async def read_engine(ctx: Tuning, survey: Survey) -> dict[str, Any]:
    """The SGLang that the service's interpreter imports, read from its source without importing it."""
    python = python_of(survey)
    unit, process = survey.unit.value, survey.process.value

    async def act() -> Installation:
        if python is None:
            raise Missing(_no_python(survey))
        cwd, container = process.cwd if process else None, _container(survey)
        if container is not None:  # whose environment `exec` has by itself
            command = container.exec(installation.probe_argv(_python_inside(survey), cwd=cwd))
        else:
            path = (unit.environment.get("PYTHONPATH", "") if unit else "").split(":")
            cwd = cwd or (unit.working_directory if unit else None)
            paths = tuple(part for part in path if part)
            command = Command(installation.probe_argv(python, paths=paths, cwd=cwd))
        done = await ctx.host.run(
            command.argv, stdin=installation.probe_text(), sudo=command.sudo, timeout=PROBE_TIMEOUT
        )
        if not done.ok and not done.stdout:
            raise Missing(f"the installed SGLang cannot be read with {python}: {done.last_words}")
        return installation.parse(done.stdout)

    return {"engine": await _layer(Layer.ENGINE, act), "python": python}


def _python_inside(survey: Survey) -> str:
    unit, process = survey.unit.value, survey.process.value
    assert unit is not None
    return python_inside(unit, process.argv if process else None)


def _no_python(survey: Survey) -> str:
    unit = survey.unit.value
    if unit and unit.inside:
        return f"the installed SGLang is inside a container that cannot be looked into: {_closed(survey)}"
    return "the service's Python is not known, so the installed SGLang cannot be read"


# the journal of this start


async def read_journal(ctx: Tuning, survey: Survey) -> dict[str, Any]:
    """What the journal of this start proves, by the invocation's own lines."""
    status = survey.status
    start = None if status is None else status.exec_main_start or status.active_enter

    async def act() -> JournalEvidence:
        if status is None or not status.exists:
            raise Missing(f"there is no journal without the unit {ctx.unit}")
        if not status.invocation_id:
            raise Missing("the service was never started since the host came up")
        lines = await _start_lines(ctx, status, FIRST_MINUTES)
        found = evidence.of_start(lines)
        if found.ready is None and start and len(lines) > 0:
            whole = await _start_lines(ctx, status, ctx.service.start_timeout)
            found = evidence.of_start(whole)
            lines = whole
        if not lines:
            raise Missing(_no_lines(survey))
        return found

    return {"journal": await _layer(Layer.JOURNAL, act)}


async def _start_lines(ctx: Tuning, status: ServiceStatus, seconds: float) -> list[str]:
    return [entry.text for entry in await start_entries(ctx, status, seconds)]


async def start_entries(
    ctx: Tuning, status: ServiceStatus, seconds: float = FIRST_MINUTES
) -> list[JournalEntry]:
    """The journal of the running invocation's first so many seconds. Raises HostError."""
    start = status.exec_main_start or status.active_enter
    until = start + seconds if start else None
    return await ctx.supervisor.lines(ctx.host, invocation=status.invocation_id, since=start, until=until)


def _no_lines(survey: Survey) -> str:
    unit = survey.unit.value
    if unit and unit.log != "journal":
        return f"the server's lines are not in the journal: {unit.log}"
    return (
        "the journal has no line of this start: it has been rotated away, or this user may not read it "
        "(group systemd-journal or adm)"
    )


# the server's answer


def address(ctx: Tuning, survey: Survey) -> tuple[str, int]:
    """Where the server listens as seen from the host."""
    port = ctx.service.port or int(argument(survey, "--port") or 30000)
    host = ctx.service.host or argument(survey, "--host") or "127.0.0.1"
    unit = survey.unit.value
    if unit and unit.inside and not ctx.service.port:
        port = published(unit, port)
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port


async def open_api(ctx: Tuning, survey: Survey, timeout: float = HTTP_TIMEOUT) -> Api:
    """A client for the service's server. Close it."""
    host, port = address(ctx, survey)
    return Api(await ctx.host.endpoint(port, host), ctx.api_key, timeout=timeout)


async def read_server(ctx: Tuning, survey: Survey) -> dict[str, Any]:
    """The server's own answer: its resolved arguments, if it is this service's server that answers."""

    async def act() -> ServerInfo:
        if survey.status is not None and survey.process.value is None and not survey.status.running:
            raise Missing("the service is not running, so no server can answer")
        if isinstance(ctx.host, Counted):
            ctx.host.round_trips += 2  # a channel and a request
        async with await open_api(ctx, survey) as api:
            info = await api.server_info()
        ours = said.by_process(survey, "--model-path").value
        theirs = info.arguments.get("model_path")
        if ours and theirs and ours != theirs:
            _, port = address(ctx, survey)
            raise Missing(f"another server answers on port {port}: it serves {theirs}, this service {ours}")
        return info

    return {"server": await _layer(Layer.SERVER, act)}


# the host's GPUs: no layer of a setting, but what it is measured on


async def read_gpus(ctx: Tuning) -> dict[str, Any]:
    """Which GPUs the host has. Raises what the link raises."""
    try:
        async with asyncio.timeout(GPU_TIMEOUT):  # a broken driver may hang
            return {"gpus": await gpu.read(ctx.host)}
    except (LinkLost, Unreachable):
        raise
    except (HostError, TimeoutError):
        return {"gpus": gpu.GpuReading(problem="nvidia-smi does not answer")}  # not asked again and again


# what was measured


def read_measured(ctx: Tuning, survey: Survey) -> Reading[Measured]:
    """What the bursts of this very setting showed, from the history."""
    from ddtui.tuning import measured

    return measured.read(ctx, survey)
