"""What ddtui needs on a host, what is missing, and the lines that grant it.

Commands: `id`, `systemctl --version`, `PROGRAM --version` for each tool, `stat -L -c %n -- FILE…`,
`sudo -n -l -- COMMAND…` (which runs nothing), `loginctl show-user --value -p Linger USER`, and a survey's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.host import files, sudo
from ddtui.host.base import Command, HostError, LinkState, NobodyToAsk
from ddtui.host.sudo import How
from ddtui.host.supervisors import restart_orders
from ddtui.host.unit.change import drop_in_place
from ddtui.sanitize import sanitize
from ddtui.tuning import place, record
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.place import Place
from ddtui.tuning.survey import Survey

GROUP = "tuners"  # the group in the printed lines
# program, how it is asked whether it is there, what it is for, whether ddtui cannot do without it
OF_SYSTEMD = (
    (("busctl", "--version"), "the command line exactly as systemd holds it", False),
    (("systemd-analyze", "--version"), "checking a unit before it is loaded", False),
)
TOOLS = (
    (("stat", "--version"), "noticing changed files", True),
    (("base64", "--version"), "carrying commands through any login shell", True),
    (("sha256sum", "--version"), "checking what was written", False),
    (("ss", "--version"), "seeing whether the port is free", False),
    (("nvidia-smi", "-L"), "GPU memory and load", False),
)
FOLDERS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
_SPECIAL = re.compile(r"([\\,:=*?\[\]!])")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that ddtui needs."""

    name: str  # "link", "journal", "restart", …
    ok: bool | None  # None: not known, or only a remark
    found: str  # what there is, in a sentence
    need: str = ""  # what to do when it is missing


@dataclass(frozen=True, slots=True)
class Diagnosis:
    checks: tuple[Check, ...]
    read_only: str | None  # why changes are not possible; None: they are
    sudoers: tuple[str, ...]  # exact lines for a file in /etc/sudoers.d, for full rights
    sudoers_least: tuple[str, ...]  # for flags that live in a file which the operators' group owns


async def examine(ctx: Tuning) -> Diagnosis:
    """Look at link, rights, tools, journal, versions. Changes nothing; a failure is a check that says so."""
    checks = [_link(ctx), *_ssh_config(ctx)]
    try:
        tools, survey = await asyncio.gather(_tools(ctx), surveys.read(ctx))
        checks += [*tools, _unit(ctx, survey), *_layers(ctx, survey)]
        rights_checks, read_only = await _rights(ctx, survey)
        checks += rights_checks
        full, least = await _sudoers(ctx, survey)
    except (HostError, TimeoutError) as error:
        problem = sanitize(str(error)) or "the host did not answer in time"
        return Diagnosis((*checks, Check("host", False, problem)), problem, (), ())
    return Diagnosis(tuple(checks), ctx.read_only or read_only, full, least)


async def rights(ctx: Tuning) -> str | None:
    """Why nothing can be changed on this host; None: changes are possible. One round trip, nothing is run."""
    if not ctx.root:
        return None
    needed = [ctx.supervisor.restart or ctx.supervisor.stop]
    found = await sudo.rights(ctx.host, needed)
    return _refusal(ctx, [right for right in found if not _usable(ctx, right.how)])


def _usable(ctx: Tuning, how: How) -> bool:
    """Whether a right can be used: one that takes a password needs somebody who can give it."""
    if how is How.PASSWORD:
        return not isinstance(ctx.asker, NobodyToAsk)
    return how is not How.NOT_ALLOWED


def _refusal(ctx: Tuning, missing: Sequence[sudo.Right]) -> str | None:
    if not missing:
        return None
    right = missing[0]
    command = " ".join(right.argv)
    if right.how is How.PASSWORD:
        return f"`sudo {command}` takes a password on {ctx.host.name}, and nobody is here to give it"
    return f"this user may not run `sudo {command}` on {ctx.host.name}"


# the link


def _link(ctx: Tuning) -> Check:
    link = ctx.host.link
    if link.state is not LinkState.CONNECTED:
        return Check("link", False, f"{link.target}: {link.state.value}", link.message)
    rtt = f", {link.rtt_ms:.0f} ms" if link.rtt_ms is not None else ""
    return Check("link", True, f"{link.target}{rtt}")


def _ssh_config(ctx: Tuning) -> list[Check]:
    """What of ssh_config has no effect here."""
    route = getattr(ctx.host, "route", None)  # only a host over SSH has one
    if route is None:
        return []
    remarks = [Check("ssh config", None, f"{i.where}: {i.keyword}: {i.why}") for i in route.ignored]
    return remarks + [Check("ssh config", None, problem) for problem in route.problems]


# tools


async def _tools(ctx: Tuning) -> list[Check]:
    supervisor = ctx.supervisor
    tools = [(argv, purpose, True) for argv, purpose in supervisor.programs]
    tools += [*(OF_SYSTEMD if supervisor.reload else ()), *TOOLS]
    commands = [Command(argv) for argv, _, _ in tools]
    checks = [Check("supervisor", None, f"{supervisor.name}: {what}") for what in supervisor.lacks]
    for (argv, purpose, needed), done in zip(tools, await ctx.host.batch(commands), strict=True):
        name = argv[0]
        if done.exit_code == 127:
            without = (
                f"{name} is not there: {purpose} will not work"
                if needed
                else f"{name} is not there ({purpose})"
            )
            checks.append(
                Check(name, False if needed else None, without, f"install {name}" if needed else "")
            )
        elif name == "systemctl":
            checks.append(_systemd(done.out))
        elif name == "nvidia-smi":
            gpus = [line for line in done.out.splitlines() if line.startswith("GPU ")]
            checks.append(Check("GPUs", True if gpus else None, f"{len(gpus)} by nvidia-smi"))
    return checks


def _systemd(text: str) -> Check:
    words = text.split()
    version = int(words[1]) if len(words) > 1 and words[1].isdigit() else None
    if version is None:
        return Check("systemd", None, "its version is not known")
    old = "older than any that ddtui was tried with (252, 257)" if version < 245 else ""
    return Check("systemd", None if old else True, f"version {version}" + (f", {old}" if old else ""))


# unit and layers


def _unit(ctx: Tuning, survey: Survey) -> Check:
    status, unit = survey.status, survey.unit.value
    if status is None or not status.exists:
        what = f"{ctx.supervisor.name} knows no {ctx.unit}"
        return Check("unit", False, what, "correct `service` in the profile")
    if unit is None:
        return Check("unit", False, survey.unit.problem or "it could not be read")
    if unit.engine != "sglang":
        what = f"it runs {unit.engine}" if unit.engine else "no launch command of SGLang was found in it"
        return Check("unit", False, f"{ctx.unit}: {what}", "ddtui can look at it and will not change it")
    where = f"{unit.file}:{unit.line}" if unit.file else ""
    return Check("unit", True, f"{ctx.unit}: its flags live in {unit.lives} ({where})")


def _layers(ctx: Tuning, survey: Survey) -> list[Check]:
    engine, info = survey.engine.value, survey.server.value
    running = survey.status is not None and survey.status.running
    checks = [
        _layer(
            "SGLang",
            survey.engine,
            f"{engine.version} in {engine.location} (Python {engine.python_version})" if engine else "",
            "let this user read the installed package",
        ),
        _layer("drafter", survey.drafter, survey.drafter.value.path if survey.drafter.value else "", ""),
        _layer(
            "journal",
            survey.journal,
            "this start can be read",
            "usermod -a -G systemd-journal USER, then log in again",
        ),
        _layer(
            "process", survey.process, f"pid {survey.process.value.pid}" if survey.process.value else "", ""
        ),
        _layer(
            "server",
            survey.server,
            f"answers as SGLang {info.version}" if info else "",
            "a port, an API key (service.api_key_env), or a server that is ready",
        ),
    ]
    if not running:
        return [c if c.ok else Check(c.name, None, c.found) for c in checks]
    return checks


def _layer(name: str, reading: Reading[object], found: str, need: str) -> Check:
    if reading.value is not None:
        return Check(name, True, found)
    optional = reading.layer in (Layer.DRAFTER,)
    return Check(name, None if optional else False, reading.problem or "not read", need)


# rights


async def _rights(ctx: Tuning, survey: Survey) -> tuple[list[Check], str | None]:
    """What may be done as root, command by command; and why nothing can be changed, if so."""
    if not ctx.root:
        return await _user_manager(ctx), None
    where = await place.find(ctx)
    commands = [*await needed(ctx, survey), *_of_record(where)]
    found = await sudo.rights(ctx.host, [argv for _, argv in commands])
    checks = []
    missing = []
    for (purpose, argv), right in zip(commands, found, strict=True):
        usable = _usable(ctx, right.how)
        if not usable:
            missing.append(right)
        text = f"`{' '.join(argv)}`: {right.how.value}"
        checks.append(Check(purpose, usable, text, "" if usable else "grant it with the lines below"))
    if not where.sudo:
        checks.append(Check("record", None, f"{where.path}: ours to write"))
    return _merged(checks), _refusal(ctx, missing)


def _merged(checks: Sequence[Check]) -> list[Check]:
    """One line for each purpose if all its commands are allowed alike."""
    merged: dict[str, list[Check]] = {}
    for check in checks:
        merged.setdefault(check.name, []).append(check)
    result = []
    for name, some in merged.items():
        if len(some) > 1 and len({(c.ok, c.found.rpartition(": ")[2]) for c in some}) == 1:
            how = some[0].found.rpartition(": ")[2]
            result.append(Check(name, some[0].ok, f"{len(some)} commands: {how}", some[0].need))
        else:
            result += some
    return result


async def _user_manager(ctx: Tuning) -> list[Check]:
    """A user unit takes no root; but it dies with the last log-in unless its user lingers."""
    if ctx.supervisor.reload is None:
        return []
    done = await ctx.host.run(("loginctl", "show-user", "--value", "-p", "Linger", await _user(ctx)))
    if done.ok and done.out.strip() == "no":
        return [Check("linger", None, "off: the service ends with the last log-in", "loginctl enable-linger")]
    return [Check("linger", True, "on")] if done.ok else []


async def _user(ctx: Tuning) -> str:
    return (await ctx.host.run(("id", "-un"))).out.strip()


def _of_record(where: Place) -> list[tuple[str, tuple[str, ...]]]:
    """What the lock and the change record take as root, where their folder is not ours to write."""
    if not where.sudo:
        return []
    make = ("mkdir", "-p", "--", where.path)
    return [("record", ("tee", "-a", "--", where / record.FILE)) if where.exists else ("record", make)]


async def needed(ctx: Tuning, survey: Survey) -> list[tuple[str, tuple[str, ...]]]:
    """(purpose, command) for everything that a change runs as root, with ddtui's own drop-in."""
    supervisor = ctx.supervisor
    kill = supervisor.kill(survey.status) if survey.status else None
    restart = [("restart", argv) for argv in restart_orders(supervisor)]
    orders = [("reload", supervisor.reload), *restart, ("kill", kill)]
    given = [(purpose, argv) for purpose, argv in orders if argv]
    if supervisor.reload is None:  # no unit, so no drop-in
        return given
    unit, service = survey.unit.value, survey.service
    drop_in, like = f"/etc/systemd/system/{ctx.unit}.d/zzz-ddtui.conf", None
    if unit is not None and service is not None:
        drop_in, like = drop_in_place(service.tree, unit)
    folder = drop_in.rpartition("/")[0]
    writes = await files.would_write(ctx.host, drop_in, like, sudo=True)
    return [
        *given,
        ("drop-in", ("mkdir", "-p", "--", folder)),
        *(("drop-in", argv) for argv in dict.fromkeys(writes)),
        ("drop-in", files.remove_argv(files.temporary(drop_in))),
        ("drop-in", files.remove_argv(drop_in)),
        ("drop-in", ("rm", "-d", "--", folder)),
    ]


async def _sudoers(ctx: Tuning, survey: Survey) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Exact lines for sudoers: full, and least (flags in a file that the group owns). No wildcards."""
    if not ctx.root:
        return (), ()
    commands = [argv for _, argv in await needed(ctx, survey)]
    paths = await _paths(ctx, sorted({argv[0] for argv in commands}))

    def line(argv: Sequence[str]) -> str:
        words = [paths.get(argv[0], f"/usr/bin/{argv[0]}"), *argv[1:]]
        return f"%{GROUP} ALL=(root) NOPASSWD: " + " ".join(_SPECIAL.sub(r"\\\1", word) for word in words)

    folder = f"{place.SYSTEM}/{ctx.unit}"
    once = f"# once, as root: groupadd -f {GROUP}; install -d -m 2770 -g {GROUP} {folder}"
    warning = "# whoever may write a drop-in of a system unit is root in effect"
    full = (once, warning, *(line(argv) for argv in dict.fromkeys(commands)))
    least = (
        once,
        "# the flags in an EnvironmentFile whose folder the group may write",
        *(line(argv) for argv in commands if argv[0] == "systemctl" and "kill" not in argv),
    )
    return full, least


async def _paths(ctx: Tuning, programs: Sequence[str]) -> dict[str, str]:
    """Where the programs are, as sudo finds them."""
    candidates = [f"{folder}/{program}" for program in programs for folder in FOLDERS]
    done = await ctx.host.run(("stat", "-L", "-c", "%n", "--", *candidates))
    there = set(done.out.split())
    return {
        program: next(f"{folder}/{program}" for folder in FOLDERS if f"{folder}/{program}" in there)
        for program in programs
        if any(f"{folder}/{program}" in there for folder in FOLDERS)
    }
