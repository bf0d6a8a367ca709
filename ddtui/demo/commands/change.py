"""tee, ln, mkdir, rmdir, touch, chmod, chown, mv, cp, rm, sync: the programs that change files."""

from __future__ import annotations

import errno
import posixpath
import re
import stat as st
from collections.abc import Iterator

from ddtui.demo.accounts import GROUPS, USERS
from ddtui.demo.commands.program import Call, Usage, missing_operand, options, plain, quoted
from ddtui.demo.filesystem import Node


async def tee(call: Call) -> int:
    given = options(call, "aip", ["append", "ignore-interrupts"])
    append = "a append" in given
    code = 0
    failed: set[str] = set()
    for path in given.operands:  # open(2) comes first: an empty input still truncates
        try:
            call.machine.files.write(path, b"", user=call.user, append=append, base=call.cwd)
        except OSError as error:
            code = call.complain(f"{plain(path)}: {error.strerror}")
            failed.add(path)
    while data := await call.streams.read():
        call.out(data)
        for path in given.operands:
            if path not in failed:
                call.machine.files.write(path, data, user=call.user, append=True, base=call.cwd)
    return code


async def ln(call: Call) -> int:
    given = options(call, "sfTnv", ["symbolic", "force", "no-target-directory", "no-dereference"])
    if not given.operands:
        raise missing_operand(call, "missing file operand")
    target, *rest = given.operands
    if not rest:
        rest = [posixpath.basename(target)] if "T no-target-directory" not in given else []
    if not rest:
        raise missing_operand(call, f"missing destination file operand after {quoted(target)}")
    (link,) = rest[:1]
    files, symbolic = call.machine.files, "s symbolic" in given
    if "T no-target-directory" not in given and _is_dir(call, link):
        link = posixpath.join(link, posixpath.basename(target))
    kind = "symbolic" if symbolic else "hard"
    if not symbolic:
        try:
            files.lookup(target, user=call.user, base=call.cwd, follow=False)
        except OSError as error:
            return call.complain(f"failed to access {quoted(target)}: {error.strerror}")
    try:
        if "f force" in given:
            try:
                files.remove(link, user=call.user, base=call.cwd)
            except FileNotFoundError:
                pass
        if symbolic:
            files.make_link(target, link, user=call.user, base=call.cwd)
        else:
            files.make_hard_link(target, link, user=call.user, base=call.cwd)
    except OSError as error:
        pair = (
            f"{quoted(link)} -> {quoted(target)}"
            if symbolic and error.errno != errno.EEXIST
            else quoted(link)
        )
        if not symbolic and error.errno != errno.EEXIST:
            pair = f"{quoted(link)} => {quoted(target)}"
        return call.complain(f"failed to create {kind} link {pair}: {error.strerror}")
    return 0


async def mkdir(call: Call) -> int:
    given = options(call, "pm:v", ["parents", "mode=", "verbose"])
    if not given.operands:
        raise missing_operand(call)
    mode = int(given.get("m mode", "755"), 8)
    code = 0
    for path in given.operands:
        try:
            if "p parents" in given:
                _make_parents(call, path, mode)
            else:
                call.machine.files.make_dir(path, user=call.user, base=call.cwd, mode=mode)
        except OSError as error:
            where = error.filename if "p parents" in given else path
            code = call.complain(f"cannot create directory {quoted(where)}: {error.strerror}")
    return code


def _make_parents(call: Call, path: str, mode: int) -> None:
    """Raises OSError, with the part of the path that could not be made in `filename`."""
    parts = [part for part in path.split("/") if part]
    shown = "/" if path.startswith("/") else ""
    for index, part in enumerate(parts):
        shown += part if shown in ("", "/") else f"/{part}"
        last = index == len(parts) - 1
        try:
            if call.machine.files.lookup(shown, user=call.user, base=call.cwd).is_dir:
                continue
            raise OSError(
                *((errno.EEXIST, "File exists") if last else (errno.ENOTDIR, "Not a directory")), shown
            )
        except FileNotFoundError:
            call.machine.files.make_dir(shown, user=call.user, base=call.cwd, mode=mode if last else 0o755)


async def rmdir(call: Call) -> int:
    given = options(call, "pv", ["ignore-fail-on-non-empty", "parents"])
    if not given.operands:
        raise missing_operand(call)
    code = 0
    for path in given.operands:
        try:
            call.machine.files.remove_dir(path, user=call.user, base=call.cwd)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY and "ignore-fail-on-non-empty" in given:
                continue
            code = call.complain(f"failed to remove {quoted(path)}: {error.strerror}")
    return code


async def touch(call: Call) -> int:
    given = options(call, "acm")
    if not given.operands:
        raise missing_operand(call, "missing file operand")
    code = 0
    for path in given.operands:
        try:
            call.machine.files.touch(path, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"cannot touch {quoted(path)}: {error.strerror}")
    return code


async def chmod(call: Call) -> int:
    given = options(call, "Rfv", ["reference=", "recursive"])
    operands = list(given.operands)
    mode: int | str
    if "reference" in given:
        try:
            mode = st.S_IMODE(call.machine.files.lookup(given.get("reference"), base=call.cwd).mode)
        except OSError as error:
            what = f"failed to get attributes of {quoted(given.get('reference'))}"
            return call.complain(f"{what}: {error.strerror}")
    else:
        if not operands:
            raise missing_operand(call)
        text = operands.pop(0)
        if re.fullmatch(r"[0-7]{1,4}", text):
            mode = int(text, 8)
        elif re.fullmatch(r"([ugoa]*[-+=][rwxXst]*,?)+", text):
            mode = text
        else:
            raise missing_operand(call, f"invalid mode: {quoted(text)}")
        if not operands:
            raise missing_operand(call, f"missing operand after {quoted(text)}")
    code = 0
    for path in operands:
        files = call.machine.files
        try:
            node = files.lookup(path, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"cannot access {quoted(path)}: {error.strerror}")
            continue
        try:
            new = mode if isinstance(mode, int) else _symbolic(mode, st.S_IMODE(node.mode))
            files.set_mode(path, new, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"changing permissions of {quoted(path)}: {error.strerror}")
    return code


def _symbolic(text: str, mode: int) -> int:
    for clause in text.split(","):
        found = re.fullmatch(r"([ugoa]*)([-+=])([rwxXst]*)", clause)
        if not found:
            continue
        bits = sum({"r": 4, "w": 2, "x": 1, "X": 1}.get(c, 0) for c in set(found[3]))
        for who in "ugo" if not found[1] or "a" in found[1] else found[1]:
            shift = {"u": 6, "g": 3, "o": 0}[who]
            if found[2] == "=":
                mode &= ~(7 << shift)
            mode = mode & ~(bits << shift) if found[2] == "-" else mode | bits << shift
    return mode


async def chown(call: Call) -> int:
    given = options(call, "Rfhv", ["reference=", "recursive", "no-dereference"])
    operands = list(given.operands)
    uid: int | None
    gid: int | None
    if "reference" in given:
        try:
            like = call.machine.files.lookup(given.get("reference"), base=call.cwd)
        except OSError as error:
            what = f"failed to get attributes of {quoted(given.get('reference'))}"
            return call.complain(f"{what}: {error.strerror}")
        uid, gid = like.uid, like.gid
    else:
        if not operands:
            raise missing_operand(call)
        spec = operands.pop(0)
        uid, gid = _owner(call, spec)
        if not operands:
            raise missing_operand(call, f"missing operand after {quoted(spec)}")
    code = 0
    for path in operands:
        try:
            call.machine.files.lookup(path, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"cannot access {quoted(path)}: {error.strerror}")
            continue
        try:
            call.machine.files.set_owner(path, uid, gid, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"changing ownership of {quoted(path)}: {error.strerror}")
    return code


def _owner(call: Call, spec: str) -> tuple[int | None, int | None]:
    if call.name == "chgrp":
        spec = ":" + spec
    user, colon, group = spec.partition(":")
    uid = gid = None
    if user:
        if user not in USERS and not user.isdigit():
            raise Usage(f"{call.name}: invalid user: {quoted(spec)}")
        uid = USERS[user].uid if user in USERS else int(user)
    if colon and group:
        if group not in GROUPS and not group.isdigit():
            raise Usage(f"{call.name}: invalid group: {quoted(spec)}")
        gid = GROUPS[group] if group in GROUPS else int(group)
    return uid, gid


async def mv(call: Call) -> int:
    given = options(call, "fTnvi", ["force", "no-target-directory", "no-clobber", "verbose"])
    return _pair(call, list(given.operands), "T no-target-directory" in given, copy=False)


async def cp(call: Call) -> int:
    given = options(call, "fTpavi", ["force", "no-target-directory", "preserve=", "archive"])
    return _pair(call, list(given.operands), "T no-target-directory" in given, copy=True)


def _pair(call: Call, operands: list[str], exact: bool, *, copy: bool) -> int:
    if not operands:
        raise missing_operand(call, "missing file operand")
    if len(operands) == 1:
        raise missing_operand(call, f"missing destination file operand after {quoted(operands[0])}")
    *sources, target = operands
    if exact and len(sources) > 1:
        raise Usage(
            f"{call.name}: extra operand {quoted(operands[2])}\n"
            f"Try '{call.name} --help' for more information."
        )
    into = not exact and _is_dir(call, target)
    if len(sources) > 1 and not into:
        return call.complain(f"target {quoted(target)}: Not a directory")
    code = 0
    for source in sources:
        goal = posixpath.join(target, posixpath.basename(source.rstrip("/"))) if into else target
        code |= _move(call, source, goal) if not copy else _copy(call, source, goal)
    return code


def _move(call: Call, source: str, goal: str) -> int:
    files = call.machine.files
    try:
        node = files.lookup(source, user=call.user, base=call.cwd, follow=False)
    except OSError as error:
        return call.complain(f"cannot stat {quoted(source)}: {error.strerror}")
    try:
        over: Node | None = files.lookup(goal, user=call.user, base=call.cwd, follow=False)
    except OSError:
        over = None
    if over is not None:
        if over.inode == node.inode and over.real == node.real:
            return call.complain(f"{quoted(source)} and {quoted(goal)} are the same file")
        if over.is_dir and not node.is_dir:
            return call.complain(f"cannot overwrite directory {quoted(goal)} with non-directory")
        if node.is_dir and not over.is_dir:
            return call.complain(
                f"cannot overwrite non-directory {quoted(goal)} with directory {quoted(source)}"
            )
    try:
        files.rename(source, goal, user=call.user, base=call.cwd)
    except OSError as error:
        return call.complain(f"cannot move {quoted(source)} to {quoted(goal)}: {error.strerror}")
    return 0


def _copy(call: Call, source: str, goal: str) -> int:
    files = call.machine.files
    try:
        node = files.lookup(source, user=call.user, base=call.cwd)
    except OSError as error:
        return call.complain(f"cannot stat {quoted(source)}: {error.strerror}")
    if node.is_dir:
        return call.complain(f"-r not specified; omitting directory {quoted(source)}")
    try:
        data = files.read(source, user=call.user, base=call.cwd)
    except OSError as error:
        return call.complain(f"cannot open {quoted(source)} for reading: {error.strerror}")
    try:
        files.write(goal, data, user=call.user, base=call.cwd, mode=st.S_IMODE(node.mode))
    except OSError as error:
        return call.complain(f"cannot create regular file {quoted(goal)}: {error.strerror}")
    return 0


async def rm(call: Call) -> int:
    given = options(call, "frRidv", ["force", "recursive", "dir", "one-file-system"])
    force, deep = "f force" in given, "r R recursive" in given
    if not given.operands and not force:
        raise missing_operand(call)
    code = 0
    files = call.machine.files
    for path in given.operands:
        try:
            node = files.lookup(path, user=call.user, base=call.cwd, follow=False)
            if node.is_dir and not deep and "d dir" in given:
                files.remove_dir(path, user=call.user, base=call.cwd)
                continue
            if node.is_dir and not deep:
                raise OSError(errno.EISDIR, "Is a directory")
            for each, is_dir in _below(call, path) if node.is_dir else [(path, False)]:
                if is_dir:
                    files.remove_dir(each, user=call.user, base=call.cwd)
                else:
                    files.remove(each, user=call.user, base=call.cwd)
        except OSError as error:
            if force and error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            code = call.complain(f"cannot remove {quoted(path)}: {error.strerror}")
    return code


def _below(call: Call, path: str) -> Iterator[tuple[str, bool]]:
    """The folder's content, deepest first, then the folder."""
    for name in call.machine.files.list(path, user=call.user, base=call.cwd):
        each = posixpath.join(path, name)
        if call.machine.files.lookup(each, base=call.cwd, follow=False).is_dir:
            yield from _below(call, each)
        else:
            yield each, False
    yield path, True


async def sync(call: Call) -> int:
    given = options(call, "df", ["data", "file-system"])
    code = 0
    for path in given.operands:
        try:
            node = call.machine.files.lookup(path, user=call.user, base=call.cwd)
            if not call.machine.files.allows(node, call.user, 4):
                raise OSError(errno.EACCES, "Permission denied")
        except OSError as error:
            code = call.complain(f"error opening {quoted(path)}: {error.strerror}")
    return code


def _is_dir(call: Call, path: str) -> bool:
    try:
        return call.machine.files.lookup(path, user=call.user, base=call.cwd).is_dir
    except OSError:
        return False
