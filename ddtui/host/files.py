"""Files on the host: many read in one round trip, one written so that it is whole or not there at all.

Reading: `head -c N -- FILE` for each, and once more with sudo for those that we may not read.
Writing, in this order (root's with `sudo -n --` before each):

    readlink -f -- PATH                        a symlink is followed, not replaced
    stat -L -c %a:%u:%g -- PATH                mode and owner to keep (or those of `like`)
    getfacl -n -c -p -- PATH                   access list to keep; no such program: there is none
    [tee -- TMP, chmod MODE -- TMP]            first and empty, if the content is not for everybody
    tee -- TMP < CONTENT                       beside the file, with a name that systemd does not read
    chmod MODE -- TMP, chown UID:GID -- TMP, [setfacl --set=… -- TMP]
    sync -- TMP, stat -L -c %s:%a:%u:%g -- TMP, sha256sum -- TMP
    mv -T -- TMP PATH, sync -- FOLDER
    rm -f -- TMP                               only if something failed

Removing: `rm -f -- PATH`, `sync -- FOLDER`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from ddtui import sanitize
from ddtui.host.base import Command, CommandFailed, Completed, Host, HostError, NotPermitted

READ_LIMIT = 4 * 1024 * 1024  # bytes; a larger file is not a configuration
NEW_MODE = "644"


class Problem(StrEnum):
    ABSENT = "does not exist"
    UNREADABLE = "may not be read by this user"
    TOO_LARGE = "is too large"
    NOT_A_FILE = "is not a file"
    FAILED = "cannot be read"


@dataclass(frozen=True, slots=True)
class FileReading:
    """What reading one file gave: exactly one of `content` and `problem`."""

    path: str
    content: bytes | None = None
    problem: Problem | None = None
    sentence: str = ""  # the problem in words


async def look(
    host: Host, paths: Sequence[str], *, sudo: bool = False, limit: int = READ_LIMIT, timeout: float = 30.0
) -> dict[str, FileReading]:
    """Read many files in one round trip; why one could not be read is told for each.

    With `sudo`, those that this user may not read are read again as root, in a second round trip.
    """
    wanted = list(dict.fromkeys(paths))
    readings = await _look(host, wanted, limit, timeout, sudo=False)
    if sudo:
        denied = [path for path in wanted if readings[path].problem is Problem.UNREADABLE]
        readings.update(await _look(host, denied, limit, timeout, sudo=True))
    return readings


async def read(
    host: Host, paths: Sequence[str], *, sudo: bool = False, limit: int = READ_LIMIT, timeout: float = 30.0
) -> dict[str, bytes | None]:
    """Read many files in one round trip; None for those that do not exist.

    Raises NotPermitted for one that this user may not read, CommandFailed for one too large or no file.
    """
    result: dict[str, bytes | None] = {}
    for path, reading in (await look(host, paths, sudo=sudo, limit=limit, timeout=timeout)).items():
        if reading.problem is Problem.UNREADABLE:
            raise NotPermitted(reading.sentence, "`ddtui doctor` prints the rights that are needed.")
        if reading.problem not in (None, Problem.ABSENT):
            raise CommandFailed(reading.sentence)
        result[path] = reading.content
    return result


async def write_atomically(
    host: Host,
    path: str,
    content: bytes,
    *,
    sudo: bool = False,
    mode: str | None = None,
    like: str | None = None,
) -> None:
    """Replace the file's content, or make it. Afterwards it is the old file or the new one, never between.

    An existing file keeps its mode, owner and access list. A new one takes those of the file `like`, else
    `mode` (octal), else 644. Its folder has to exist. May be done again after a lost link.
    Raises NotPermitted or CommandFailed; then nothing is changed and nothing left behind.
    """
    target, model = await look_at(host, path, like, sudo=sudo)
    model = replace(model or Model(), **({"mode": mode} if mode else {}))
    empty, (_, *prepare, rename, settle) = _empty(target, model), _filled(target, model)
    work = _Work(host, target, sudo)
    try:
        if empty:
            await work.steps(empty)
        await work.put(content)
        await work.steps(prepare)
        await work.verify(content, model.mode, model.owner)
        await work.steps([rename, settle])
    except (HostError, TimeoutError, asyncio.CancelledError):
        with suppress(HostError, TimeoutError):
            await asyncio.shield(host.run(("rm", "-f", "--", work.temporary), sudo=sudo, timeout=10))
        raise


async def remove(host: Host, path: str, *, sudo: bool = False) -> None:
    """Remove the file; fine if it is not there. Raises NotPermitted or CommandFailed."""
    await _Work(host, path, sudo).steps(remove_argvs(path))


def temporary(path: str) -> str:
    """Where new content is written first: beside the file, a fixed name (sudoers), not ending in .conf."""
    return f"{path}.ddtui-new"


@dataclass(frozen=True, slots=True)
class Model:
    """What a new content takes over from the file before it."""

    mode: str = NEW_MODE  # octal
    owner: str | None = None  # uid:gid; None: no chown needed
    acl: str | None = None  # entries for setfacl; None: the mode says it all


def write_argvs(path: str, model: Model) -> tuple[tuple[str, ...], ...]:
    """The commands that change something when `write_atomically` makes or replaces a file, in order."""
    return (*_empty(path, model), *_filled(path, model))


def _empty(path: str, model: Model) -> tuple[tuple[str, ...], ...]:
    """What is not for everybody is made so before the content goes in."""
    if int(model.mode, 8) & 0o044 == 0o044:
        return ()
    return (("tee", "--", temporary(path)), ("chmod", model.mode, "--", temporary(path)))


def _filled(path: str, model: Model) -> tuple[tuple[str, ...], ...]:
    new = temporary(path)
    return (
        ("tee", "--", new),
        ("chmod", model.mode, "--", new),
        *([("chown", model.owner, "--", new)] if model.owner else []),
        *([("setfacl", f"--set={model.acl}", "--", new)] if model.acl else []),
        ("sync", "--", new),
        ("mv", "-T", "--", new, path),
        ("sync", "--", _folder(path)),
    )


async def would_write(
    host: Host, path: str, like: str | None = None, *, sudo: bool = False
) -> tuple[tuple[str, ...], ...]:
    """The commands that `write_atomically` would run now; the file's folder may not be there yet."""
    try:
        path, model = await look_at(host, path, like, sudo=sudo)
    except HostError:
        model = None
        with suppress(HostError):
            if like and like != path:
                _, model = await look_at(host, like, sudo=sudo)
        if model and not sudo:  # what we make is ours
            model = replace(model, owner=None)
    return write_argvs(path, model or Model())


def remove_argv(path: str) -> tuple[str, ...]:
    """The command that removes a file."""
    return ("rm", "-f", "--", path)


def remove_argvs(path: str) -> tuple[tuple[str, ...], ...]:
    """The commands of `remove`, in order."""
    return (remove_argv(path), ("sync", "--", _folder(path)))


# -- reading -------------------------------------------------------------------------------------------------
async def _look(
    host: Host, paths: Sequence[str], limit: int, timeout: float, *, sudo: bool
) -> dict[str, FileReading]:
    if not paths:
        return {}
    commands = [Command(("head", "-c", str(limit + 1), "--", path), sudo=sudo) for path in paths]
    done = await host.batch(commands, timeout=timeout)
    return {path: _reading(path, host.name, one, limit) for path, one in zip(paths, done, strict=True)}


def _reading(path: str, host: str, done: Completed, limit: int) -> FileReading:
    if done.ok and len(done.stdout) <= limit:
        return FileReading(path, done.stdout)
    said = done.err
    if done.ok:
        problem = Problem.TOO_LARGE
    elif "No such file or directory" in said or "Not a directory" in said:
        problem = Problem.ABSENT
    elif "ermission denied" in said or said.startswith("sudo:"):
        problem = Problem.UNREADABLE
    elif "Is a directory" in said:
        problem = Problem.NOT_A_FILE
    else:
        problem = Problem.FAILED
    more = {
        Problem.TOO_LARGE: f" (over {limit // 1024} KiB)",
        Problem.FAILED: f": {done.last_words}",
    }.get(problem, "")
    return FileReading(path, None, problem, f"{sanitize.line(path)} on {host} {problem}{more}")


# -- writing -------------------------------------------------------------------------------------------------
async def take_root(host: Host, paths: Sequence[str]) -> dict[str, bool]:
    """Which files take root's rights: those in folders that we may not write, or may not make."""
    folders = [_folder(path) for path in paths]
    tests = [
        Command(("test", what, where))
        for folder in folders
        for what, where in (("-w", folder), ("-e", folder), ("-w", _folder(folder)))
    ]
    done = iter(await host.batch(tests) if tests else ())
    found = {}
    for path in paths:
        ours, there, parent = next(done).ok, next(done).ok, next(done).ok
        found[path] = not (ours or (not there and parent))
    return found


async def look_at(
    host: Host, path: str, like: str | None = None, *, sudo: bool = False
) -> tuple[str, Model | None]:
    """The file behind `path` (symlinks followed), and what to take over from it or from `like`.

    Raises CommandFailed.
    """
    sources = [path, *([like] if like and like != path else [])]
    argvs: list[tuple[str, ...]] = [("readlink", "-f", "--", path)]
    for source in sources:
        argvs.append(("stat", "-L", "-c", "%a:%u:%g", "--", source))
        argvs.append(("getfacl", "-n", "-c", "-p", "--", source))
    resolved, *facts = await host.batch([Command(argv) for argv in argvs])
    if sudo and (
        not resolved.ok or any("ermission denied" in done.err for done in facts[0::2])
    ):  # in a folder that only root may enter
        resolved, *facts = await host.batch([Command(argv, sudo=True) for argv in argvs])
    if not resolved.ok:
        raise CommandFailed(f"{path} on {host.name} cannot be written: its folder does not exist")
    target = resolved.stdout[:-1].decode("utf-8", "surrogateescape")
    for source, stat, acl in zip(sources, facts[0::2], facts[1::2], strict=True):
        if stat.ok:
            mode, owner = stat.out.strip().split(":", 1)
            # what root makes is root's already (sudoers need no line for it), and without root a new file can
            # only be one's own
            already = owner == "0:0" if sudo else source != path
            return target, Model(mode, None if already else owner, _extended(acl))
        if "No such file" not in stat.err:
            raise _failure(host, f"{path} on {host.name} cannot be looked at", stat)
    return target, None


def _extended(acl: Completed) -> str | None:
    """The entries of an access list, if it says more than the mode does."""
    entries = [line.split("#")[0].strip() for line in acl.out.splitlines()] if acl.ok else []
    entries = [entry for entry in entries if entry]
    return ",".join(entries) if len(entries) > 3 else None


@dataclass(frozen=True, slots=True)
class _Work:
    """Changing one file."""

    host: Host
    target: str
    sudo: bool

    @property
    def temporary(self) -> str:
        return temporary(self.target)

    async def put(self, content: bytes) -> None:
        done = await self.host.run(
            ("tee", "--", self.temporary), stdin=content, sudo=self.sudo, timeout=60, secret=True
        )
        if not done.ok:
            raise self.failure(done)

    async def steps(self, argvs: Sequence[tuple[str, ...]]) -> None:
        """One after another; the first that fails ends it, though those behind it were tried as well."""
        for done in await self.host.batch([Command(argv, self.sudo) for argv in argvs], timeout=60):
            if not done.ok:
                raise self.failure(done)

    async def verify(self, content: bytes, mode: str, owner: str | None) -> None:
        """See that the disk holds what was sent: size, mode, owner, and the hash if we may read it."""
        new = self.temporary
        stat, hashed = await self.host.batch(
            [Command(("stat", "-L", "-c", "%s:%a:%u:%g", "--", new)), Command(("sha256sum", "--", new))]
        )
        wrong = f"{self.target} on {self.host.name} was not written: what arrived on the disk"
        if stat.ok:
            size, got_mode, got_owner = stat.out.strip().split(":", 2)
            if int(size) != len(content):
                raise CommandFailed(f"{wrong} has {size} of {len(content)} bytes", "Is the disk full?")
            if int(got_mode, 8) != int(mode, 8) or (owner and got_owner != owner):
                raise CommandFailed(f"{wrong} could not be given its mode and owner")
        if hashed.ok and hashed.out.lstrip("\\").split()[0] != hashlib.sha256(content).hexdigest():
            raise CommandFailed(f"{wrong} is not what was sent", "Is the disk full or broken?")

    def failure(self, done: Completed) -> HostError:
        return _failure(self.host, f"{self.target} on {self.host.name} is unchanged", done)


def _failure(host: Host, what: str, done: Completed) -> HostError:
    said = done.last_words
    if "No space left" in done.err or "quota exceeded" in done.err.lower():
        return CommandFailed(f"{what}: the disk is full ({said})", "Make room on it, then do it again.")
    if "Read-only file system" in done.err:
        return NotPermitted(f"{what}: {said}")
    if "ermission denied" in done.err or "not permitted" in done.err or done.err.startswith("sudo:"):
        return NotPermitted(f"{what}: {said}", "`ddtui doctor` prints the rights that are needed.")
    return CommandFailed(f"{what}: {said}")


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"
