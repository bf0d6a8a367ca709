"""Finding what can be tuned on a host that no profile names yet: services that run SGLang, drafter and port.

Units of systemd, quadlets among them, and services of docker compose. What a command or `docker run` started
is told, for no list says how it is started again.

Commands: `systemctl [--user] list-unit-files|list-units --type=service [--all] --plain --no-legend
--no-pager`; `systemctl [--user] show UNIT… -p Id,Description,FragmentPath,ActiveState,SubState,ExecStart
--no-pager`; `ps -eo pid=,args= -ww`; those of `host.containers`; `cat -- /proc/PID/cgroup`; then what a
supervisor reads of each service that may be one.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ddtui import profile as profiles
from ddtui.engine.flags import other_names
from ddtui.host import containers, supervisors
from ddtui.host import service as services
from ddtui.host.base import Command, Completed, Host, HostError
from ddtui.host.containers import Listed
from ddtui.host.unit import engines
from ddtui.profile import Bench, Compose, Connection, Knob, Profile, Scope, Service
from ddtui.sanitize import sanitize
from ddtui.tuning import said
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Reading
from ddtui.tuning.survey import Survey

MOST = 16  # services that are read whole
NOTHING = (
    "no systemd unit (a quadlet is one) and no docker compose service that runs SGLang was found; is it the "
    "right host and account? What a command starts (tmux, supervisord, Slurm) cannot be found: a profile "
    "names its commands"
)
BY_COMMANDS = "a profile can name the commands that start and stop it (service.commands)"
SHOWN = "Id,Description,FragmentPath,ActiveState,SubState,ExecStart"
NAMES = re.compile(r"sglang|launch_server|dflash|ddtree|speculative", re.IGNORECASE)
# which shipped profile has the knobs of an algorithm
FAMILIES = {"DDTREE": "kimi-k26-ddtree", "DFLASH": "dflash", "EAGLE": "eagle3", "EAGLE3": "eagle3"}
OTHERS = {"NEXTN": "eagle3", "STANDALONE": "eagle3"}
PLAIN = Knob(
    name="requests",
    flag="--max-running-requests",
    key="b",
    min=1,
    presets=(8, 16, 32, 64),
    meaning="requests that run at once",
)


@dataclass(frozen=True, slots=True)
class Found:
    """One service that runs SGLang. Text is sanitised."""

    unit: str  # or the compose service
    scope: Scope
    about: str  # the unit's description
    active: str
    sub: str
    model: str | None = None
    algorithm: str | None = None
    drafter: str | None = None
    port: int = 30000
    pid: int | None = None
    problem: str | None = None  # what could not be read of it
    compose: Compose | None = None  # of docker compose, not of systemd

    @property
    def service(self) -> Service:
        return Service(unit=self.unit, scope=self.scope, compose=self.compose)

    @property
    def by(self) -> str:
        """What keeps it running: "systemd", "user" (a user's systemd), "compose"."""
        return "compose" if self.compose else "user" if self.scope is Scope.USER else "systemd"

    @property
    def running(self) -> bool:
        return self.active == "active"


@dataclass(frozen=True, slots=True)
class Findings:
    """What a host has: services, the best first, and what else is worth a word."""

    units: tuple[Found, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tested:
    """A made profile, tried on its host: what was read, what was not."""

    profile: Profile
    good: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    scope: Scope
    shown: dict[str, str]

    @property
    def speaks(self) -> bool:
        """Whether its own words name SGLang."""
        return bool(NAMES.search(" ".join((self.name, *self.shown.values()))))

    @property
    def found(self) -> Found:
        """What is known of it before it is read."""
        about, active = sanitize(self.shown.get("Description", "")), self.shown.get("ActiveState", "")
        return Found(sanitize(self.name), self.scope, about, active, self.shown.get("SubState", ""))

    @property
    def made_here(self) -> bool:
        """Whether somebody wrote it, rather than a package."""
        return self.shown.get("FragmentPath", "").startswith(("/etc/systemd/", "/root/", "/home/", "/run/"))


@dataclass(frozen=True, slots=True)
class _Read:
    """A service that was read whole."""

    found: Found
    wraps: tuple[tuple[str, str], ...] = ()  # the compose services (file, service) that its unit starts
    container: str = ""  # that its unit runs


async def find(host: Host) -> Findings:
    """Every service of the host that runs SGLang; usually six round trips. Raises HostError."""
    lists = [_list(scope, verb) for scope in Scope for verb in ("list-unit-files", "list-units")]
    processes = Command(("ps", "-eo", "pid=,args=", "-ww"), secret=True)
    done = await host.batch([*lists, processes, *containers.LISTS])
    made = await containers.of(host, done[5:])
    names = {scope: _names(done[2 * at : 2 * at + 2]) for at, scope in enumerate(Scope)}
    if not (done[0].ok or done[1].ok or made.listed or made.problem):
        raise HostError(
            f"systemd does not answer, and there is no docker: {done[0].last_words}",
            f"without them {BY_COMMANDS}",
        )
    running = _engines(done[4])
    asked = [scope for scope in Scope if names[scope]]
    shows = [_show(scope, names[scope]) for scope in asked]
    cgroups = [Command(("cat", "--", f"/proc/{pid}/cgroup")) for pid in running]
    answers = await host.batch([*shows, *cgroups])
    units = [
        _Unit(shown["Id"], scope, shown)
        for scope, answer in zip(asked, answers, strict=False)
        for shown in _blocks(answer.out)
        if "Id" in shown
    ]
    places = {pid: answer.out for pid, answer in zip(running, answers[len(shows) :], strict=True)}
    at_work = {_owner(place) for place in places.values()}
    contained = {containers.of_cgroup(place) for place in places.values()}
    likely = [unit for unit in units if unit.speaks or unit.name in at_work]
    likely += [unit for unit in units if unit not in likely and unit.made_here]
    speaking = [one for one in made.listed if one.id in contained or NAMES.search(f"{one.name} {one.words}")]
    composed = {_place(one): one for one in map(_composed, speaking) if one is not None}
    candidates = [
        *((unit.found, unit.speaks) for unit in likely),
        *((one, True) for one in composed.values()),
    ]
    read = await asyncio.gather(*(_read(host, *one) for one in candidates[:MOST]))
    wrapped = {place for one in read if one is not None for place in one.wraps}
    found = [one.found for one in read if one is not None and _place(one.found) not in wrapped]
    found.sort(key=lambda one: (not one.running, one.unit))
    kept = wrapped | {_place(one.found) for one in read if one is not None}
    names_kept = {one.container for one in read if one is not None}
    loose = [
        one
        for one in speaking
        if not (one.unit or one.name in names_kept or kept & {(file, one.service) for file in one.files})
    ]
    notes = [*_notes(places, {one.id: one for one in speaking}, {one.id: one for one in loose})]
    notes += [made.problem] if made.problem else []
    if len(candidates) > MOST:
        notes.append(f"{len(candidates) - MOST} more services were not looked into")
    return Findings(tuple(found), tuple(map(sanitize, notes)))


def _list(scope: Scope, verb: str) -> Command:
    user = ("--user",) if scope is Scope.USER else ()
    every = ("--all",) if verb == "list-units" else ()
    return Command(
        ("systemctl", *user, verb, "--type=service", *every, "--plain", "--no-legend", "--no-pager")
    )


def _names(lists: Sequence[Completed]) -> list[str]:
    """Units in both lists, without templates that have no instance."""
    words = [line.split()[0] for done in lists if done.ok for line in done.out.splitlines() if line.split()]
    return [
        name for name in dict.fromkeys(words) if name.endswith(".service") and not name.endswith("@.service")
    ]


def _show(scope: Scope, names: Sequence[str]) -> Command:
    user = ("--user",) if scope is Scope.USER else ()
    return Command(("systemctl", *user, "show", *names, "-p", SHOWN, "--no-pager"), secret=True)


def _blocks(text: str) -> list[dict[str, str]]:
    return [services.parse_show(block) for block in re.split(r"\n\s*\n", text) if block.strip()]


def _engines(listed: Completed) -> list[int]:
    """Processes that run SGLang, by their command line."""
    found: list[int] = []
    for line in listed.out.splitlines():
        pid, _, words = line.strip().partition(" ")
        engine = engines.recognise(words.split()) if pid.isdigit() else None
        if engine is not None and engine.name == "sglang":
            found.append(int(pid))
    return found[:MOST]


def _owner(cgroup: str) -> str:
    """The unit that a process belongs to, by its cgroup; "" for none."""
    for line in cgroup.splitlines():
        for part in reversed(line.rpartition(":")[2].split("/")):
            if part.endswith(".service") and not part.startswith("user@"):
                return part
    return ""


def _composed(one: Listed) -> Found | None:
    """The compose service of a container, as a profile can name it."""
    try:
        made = Compose(file=one.files[0] if len(one.files) == 1 else "", service=one.service, sudo=one.sudo)
    except ValueError:
        return None
    state = ("active", "running") if one.running else ("inactive", "exited")
    return Found(sanitize(one.service), Scope.SYSTEM, f"{one.service} of {made.file}", *state, compose=made)


def _place(found: Found) -> tuple[str, str] | None:
    return (found.compose.file, found.compose.service) if found.compose else None


async def _read(host: Host, found: Found, speaks: bool) -> _Read | None:
    """The service read whole; None: it does not run SGLang. `speaks`: its own words name SGLang."""
    try:
        reading = await supervisors.of(found.service).reading(host)
    except (HostError, ValueError, TimeoutError) as error:
        return _Read(replace(found, problem=sanitize(str(error)))) if speaks else None
    shape, process = reading.unit, reading.process
    engine = (shape.engine if shape is not None else None) or (process.engine if process else None)
    if engine != "sglang":
        hidden = shape is None or shape.launch_argv is None
        if speaks and hidden and process is None and ("sglang" in found.unit or found.compose):
            why = reading.problems.get("unit") or reading.problems.get("files") or "its command is not known"
            return _Read(replace(found, problem=sanitize(why)))
        return None
    flags = dict(said.flags_of(shape)) if shape is not None else {}

    def flag(name: str) -> str | None:
        value = flags.get(name)
        return sanitize(said.as_text(value) or "") or None

    port = flag("--port")
    made = shape.compose if shape is not None and shape.compose and not found.compose else {}
    return _Read(
        replace(
            found,
            model=flag("--model-path") or flag("--model"),
            algorithm=flag("--speculative-algorithm"),
            drafter=flag("--speculative-draft-model-path"),
            port=int(port) if port and port.isdigit() else 30000,
            pid=process.pid if process is not None else None,
        ),
        tuple((str(file), str(made["service"])) for file in made.get("files", ())),
        str((shape.inside or {}).get("name") or "") if shape is not None else "",
    )


def _notes(
    places: Mapping[int, str], listed: Mapping[str, Listed], loose: Mapping[str, Listed]
) -> Iterator[str]:
    """What runs SGLang and is no service that ddtui can name: by a command, `docker run`, in a pod."""
    found: dict[str, list[int]] = {}
    for pid, place in places.items():
        container = containers.of_cgroup(place)
        one = loose.get(container)
        if "kubepods" in place:
            what = f"in a pod of Kubernetes: {BY_COMMANDS}"
        elif one is not None and one.service:
            files = ", ".join(one.files) or "a file that is not named"
            what = f"as {one.service} of docker compose, by {files}; "
            what += "a profile names one compose file, by its whole path"
        elif one is not None:
            what = f"in the container {one.name}, which no service made: {BY_COMMANDS}"
        elif container in listed or _owner(place):
            continue
        elif container:
            what = f"in a container that this user may not see: {BY_COMMANDS}"
        else:
            what = f"outside any service: {BY_COMMANDS}"
        found.setdefault(what, []).append(pid)
    for what, pids in found.items():
        who = f"process {pids[0]} runs" if len(pids) == 1 else f"processes {', '.join(map(str, pids))} run"
        yield f"{who} SGLang {what}"


# making a profile of it


def knobs_of(found: Found) -> tuple[Knob, ...]:
    """The knobs of the unit's algorithm, as the shipped profiles have them."""
    shipped = {**FAMILIES, **OTHERS}.get((found.algorithm or "").upper())
    return profiles.load(shipped).knobs if shipped else (PLAIN,)


def draft(name: str, connection: Connection, found: Found, *, production: bool = False) -> Profile:
    """A profile of what was found. Raises ValueError (of pydantic) for a name that cannot be one."""
    model = posixpath.basename((found.model or "").rstrip("/"))
    about = ", ".join(part for part in (model, found.algorithm) if part) or found.about
    return Profile(
        name=name,
        about=about,
        connection=connection,
        service=found.service,
        knobs=knobs_of(found),
        bench=Bench(concurrency=(1, 8, 32), context=(512, 8192), at="host"),
        production=production,
    )


async def test(host: Host, made: Profile) -> Tested:
    """Read every layer with the profile; knobs that the installed SGLang does not know are taken out."""
    survey = await surveys.read(Tuning(profile=made, host=host))
    table = said.table(survey)
    kept = tuple(knob for knob in made.knobs if not table.flags or _known(survey, knob))
    gone = [knob.name for knob in made.knobs if knob not in kept]
    good = [
        _said(reading.layer.value, _value(survey, reading.layer.value)) for reading in _read_layers(survey)
    ]
    problems = [
        f"{reading.layer.value}: {sanitize(reading.problem)}"
        for reading in _layers(survey)
        if reading.problem
    ]
    if gone:
        problems.append(f"not known to the SGLang there, left out: {', '.join(gone)}")
    return Tested(made.model_copy(update={"knobs": kept or (PLAIN,)}), tuple(good), tuple(problems))


def _known(survey: Survey, knob: Knob) -> bool:
    table = said.table(survey)
    return knob.flag is None or any(
        table.find(name) is not None for name in (knob.flag, *other_names(knob.flag))
    )


def _layers(survey: Survey) -> tuple[Reading[object], ...]:
    return (survey.unit, survey.process, survey.server, survey.engine, survey.drafter, survey.journal)


def _read_layers(survey: Survey) -> list[Reading[object]]:
    return [reading for reading in _layers(survey) if reading.value is not None]


def _said(layer: str, what: str) -> str:
    return f"{layer}: {what}" if what else layer


def _value(survey: Survey, layer: str) -> str:
    """What a layer says, in a few words."""
    match layer:
        case "process":
            return f"pid {survey.process.value.pid}" if survey.process.value else ""
        case "server":
            version = survey.server.value.version if survey.server.value else None
            return sanitize(f"SGLang {version} answers") if version else "answers"
        case "engine":
            version = survey.engine.value.version if survey.engine.value else None
            return sanitize(f"SGLang {version or '?'}, {len(said.table(survey).flags)} flags")
        case "drafter config":
            return sanitize(survey.drafter_path or "")
        case "unit":
            unit = survey.unit.value
            return sanitize(unit.fragment or "") if unit else ""
        case _:
            return "can be read"
