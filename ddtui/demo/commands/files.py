"""cat, tee, ls, stat, readlink, sha256sum, test, ln, mkdir, rmdir, touch, chmod, chown, mv, cp, rm, sync, df, head, tail."""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import re
import stat as st
import time
from collections.abc import Iterator

from ddtui.demo.accounts import GROUPS, USERS, group_name, user_name
from ddtui.demo.commands.program import Call, Usage, missing_operand, options, plain, quoted
from ddtui.demo.filesystem import Node

DISK_BYTES = 14 << 40
DISK_USED = 5 << 40


async def cat(call: Call) -> int:
    given = options(call, "nsuvetAET")
    code = 0
    for path in given.operands or ("-",):
        if path == "-":
            while data := await call.streams.read():
                call.out(data)
                await call.streams.drain()
            continue
        try:
            data = call.machine.files.read(path, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"{plain(path)}: {error.strerror}")
            continue
        for start in range(0, len(data), 1 << 18):
            call.out(data[start : start + (1 << 18)])
            await call.streams.drain()
    return code


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


async def head(call: Call) -> int:
    return await _ends(call, first=True)


async def tail(call: Call) -> int:
    return await _ends(call, first=False)


async def _ends(call: Call, *, first: bool) -> int:
    given = options(call, "c:n:fFqv", ["bytes=", "lines=", "follow"])
    code = 0
    for path in given.operands or ("-",):
        try:
            data = (
                await call.all_input()
                if path == "-"
                else call.machine.files.read(path, user=call.user, base=call.cwd)
            )
        except OSError as error:
            code = call.complain(f"cannot open {quoted(path)} for reading: {error.strerror}")
            continue
        count = given.get("c bytes")
        if count:
            start = int(count.lstrip("+-"))
            data = data[:start] if first else data[start - 1 :] if count.startswith("+") else data[-start:]
        else:
            lines = data.splitlines(keepends=True)
            number = int(given.get("n lines", "10").lstrip("+-"))
            data = b"".join(lines[:number] if first else lines[-number:] if number else [])
        call.out(data)
    return code


async def ls(call: Call) -> int:
    given = options(call, "1aAldLnhtrS", ["all", "almost-all", "directory"], code=2)
    operands = given.operands or (".",)
    code = 0
    files: list[tuple[str, Node]] = []
    folders: list[tuple[str, Node]] = []
    for path in sorted(operands, key=os.fsencode):
        try:
            follow = "L" in given or "l" not in given
            node = call.machine.files.lookup(path, user=call.user, base=call.cwd, follow=follow)
        except OSError as error:
            call.err(f"ls: cannot access {quoted(path)}: {error.strerror}")
            code = 2
            continue
        (folders if node.is_dir and "d directory" not in given else files).append((path, node))
    for path, node in files:
        call.out(_ls_line(call, path, node, "l" in given, "n" in given))
    for index, (path, _) in enumerate(folders):
        if len(operands) > 1:
            call.out(("\n" if index or files else "") + f"{path}:\n")
        try:
            names = call.machine.files.list(path, user=call.user, base=call.cwd)
        except OSError as error:
            call.err(f"ls: cannot open directory {quoted(path)}: {error.strerror}")
            code = 2
            continue
        if "a all" in given:
            names = [".", "..", *names]
        elif "A almost-all" not in given:
            names = [name for name in names if not name.startswith(".")]
        if "l" in given:
            call.out("total 0\n")
        for name in names:
            try:
                node = call.machine.files.lookup(
                    posixpath.join(path, name), base=call.cwd, follow="L" in given
                )
            except OSError:
                continue
            call.out(_ls_line(call, name, node, "l" in given, "n" in given))
    return code


def _ls_line(call: Call, name: str, node: Node, long: bool, numeric: bool) -> str:
    if not long:
        return f"{name}\n"
    user = str(node.uid) if numeric else user_name(node.uid)
    group = str(node.gid) if numeric else group_name(node.gid)
    when = time.gmtime(node.mtime)
    now = call.machine.clock.now()
    recent = now - 15778476 < node.mtime <= now
    date = time.strftime("%b %e %H:%M" if recent else "%b %e  %Y", when)
    arrow = f" -> {node.target}" if node.is_link else ""
    return f"{st.filemode(node.mode)} {node.links} {user} {group} {node.size} {date} {name}{arrow}\n"


async def stat(call: Call) -> int:
    given = options(call, "Lfc:t", ["dereference", "format=", "printf=", "terse", "file-system"])
    if not given.operands:
        raise missing_operand(call)
    code = 0
    for path in given.operands:
        try:
            follow = "L dereference" in given
            node = call.machine.files.lookup(path, user=call.user, base=call.cwd, follow=follow)
        except OSError as error:
            code = call.complain(f"cannot statx {quoted(path)}: {error.strerror}")
            continue
        if "printf" in given:
            text = given.get("printf").encode().decode("unicode_escape")
            call.out(_stat_format(text, path, node))
        else:
            call.out(_stat_format(given.get("c format", "%n %s %f %u %g %D %i %h"), path, node) + "\n")
    return code


def _stat_format(text: str, path: str, node: Node) -> str:
    seconds = node.mtime
    nanos = f"{int(seconds)}.{int(seconds % 1 * 1e9):09d}"
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e9):09d} +0000"
    kinds = {
        st.S_IFREG: "regular file" if node.size else "regular empty file",
        st.S_IFDIR: "directory",
        st.S_IFLNK: "symbolic link",
        st.S_IFCHR: "character special file",
    }
    values = {
        "n": path,
        "N": quoted(path) + (f" -> {quoted(node.target)}" if node.is_link else ""),
        "s": str(node.size),
        "b": str((node.size + 511) // 512),
        "B": "512",
        "a": f"{st.S_IMODE(node.mode):o}",
        "A": st.filemode(node.mode),
        "f": f"{node.mode:x}",
        "u": str(node.uid),
        "g": str(node.gid),
        "U": user_name(node.uid),
        "G": group_name(node.gid),
        "i": str(node.inode),
        "h": str(node.links),
        "d": "65026",
        "D": "fe02",
        "F": kinds.get(st.S_IFMT(node.mode), "weird file"),
        "X": str(int(seconds)), "Y": str(int(seconds)), "Z": str(int(seconds)), "W": "0",
        "x": shown, "y": shown, "z": shown, "w": "-",
        "o": "4096", "m": "/", "C": "?", "t": "0", "T": "0", "%": "%",
    }  # fmt: skip

    def value(found: re.Match[str]) -> str:
        if found[2] in "XYZ" and found[1]:
            digits = int(found[1][1:] or 9)
            return nanos[: len(nanos) - 9 + digits] if digits else nanos[:-10]
        return values.get(found[2], "?")

    return re.sub(r"%(\.\d*)?([a-zA-Z%])", value, text)


async def readlink(call: Call) -> int:
    given = options(
        call, "femnqsvz", ["canonicalize", "canonicalize-existing", "canonicalize-missing", "no-newline"]
    )
    if not given.operands:
        raise missing_operand(call)
    code = 0
    for path in given.operands:
        files = call.machine.files
        try:
            if "f canonicalize" in given:
                found = files.resolve(path, user=call.user, base=call.cwd)
            elif "e canonicalize-existing" in given:
                found = files.resolve(path, user=call.user, base=call.cwd)
                files.lookup(found, user=call.user)
            elif "m canonicalize-missing" in given:
                found = posixpath.normpath(posixpath.join(call.cwd, path))
            else:
                node = files.lookup(path, user=call.user, base=call.cwd, follow=False)
                if not node.is_link:
                    raise OSError(errno.EINVAL, "Invalid argument")
                found = node.target
        except OSError as error:
            code = 1
            if "v" in given:
                call.complain(f"{plain(path)}: {error.strerror}")
            continue
        call.out(found + ("" if "n no-newline" in given else "\0" if "z" in given else "\n"))
    return code


async def realpath(call: Call) -> int:
    given = options(call, "emsz")
    code = 0
    for path in given.operands:
        try:
            found = call.machine.files.resolve(path, user=call.user, base=call.cwd)
            if "e" in given:
                call.machine.files.lookup(found)
            call.out(found + "\n")
        except OSError as error:
            code = call.complain(f"{plain(path)}: {error.strerror}")
    return code


async def sha256sum(call: Call) -> int:
    given = options(call, "bctwz", ["binary", "text", "tag", "zero"])
    code = 0
    for path in given.operands or ("-",):
        try:
            data = (
                await call.all_input()
                if path == "-"
                else call.machine.files.read(path, user=call.user, base=call.cwd)
            )
        except OSError as error:
            code = call.complain(f"{plain(path)}: {error.strerror}")
            continue
        escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        mark = "\\" if escaped != path else ""
        call.out(f"{mark}{hashlib.sha256(data).hexdigest()}  {escaped}\n")
    return code


async def test(call: Call) -> int:
    words = list(call.argv[1:])
    if call.name == "[":
        if not words or words.pop() != "]":
            raise Usage("[: missing ']'", 2)
    negate = False
    while words and words[0] == "!":
        negate = not negate
        words.pop(0)
    result = _test(call, words)
    return int(result == negate)


def _test(call: Call, words: list[str]) -> bool:
    if not words:
        return False
    if len(words) == 1:
        return words[0] != ""
    if len(words) == 3:
        left, operator, right = words
        if operator in ("=", "=="):
            return left == right
        if operator == "!=":
            return left != right
        if operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
            try:
                a, b = int(left), int(right)
            except ValueError:
                raise Usage(f"test: invalid integer {quoted(left)}", 2) from None
            return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[
                operator
            ]
        raise Usage(f"test: {quoted(operator)}: binary operator expected", 2)
    if len(words) != 2:
        raise Usage(f"test: extra argument {quoted(words[-1])}", 2)
    operator, path = words
    if operator == "-n":
        return path != ""
    if operator == "-z":
        return path == ""
    try:
        node = call.machine.files.lookup(
            path, user=call.user, base=call.cwd, follow=operator not in ("-L", "-h")
        )
    except OSError:
        return False
    rights = {"-r": 4, "-w": 2, "-x": 1}
    if operator in rights:
        return call.machine.files.allows(node, call.user, rights[operator]) and not (
            operator == "-w" and node.read_only
        )
    checks = {"-e": True, "-f": node.is_file, "-d": node.is_dir, "-L": node.is_link, "-h": node.is_link,
              "-s": node.size > 0, "-p": False, "-S": False, "-b": False, "-c": st.S_ISCHR(node.mode)}  # fmt: skip
    if operator not in checks:
        raise Usage(f"test: {quoted(operator)}: unary operator expected", 2)
    return checks[operator]


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
            code = call.complain(f"cannot create directory {quoted(path)}: {error.strerror}")
    return code


def _make_parents(call: Call, path: str, mode: int) -> None:
    at = "/" if path.startswith("/") else call.cwd
    parts = [part for part in path.split("/") if part]
    for index, part in enumerate(parts):
        at = posixpath.join(at, part)
        try:
            if not call.machine.files.lookup(at, user=call.user).is_dir:
                last = index == len(parts) - 1
                raise OSError(
                    errno.EEXIST if last else errno.ENOTDIR, "File exists" if last else "Not a directory"
                )
        except FileNotFoundError:
            last = index == len(parts) - 1
            call.machine.files.make_dir(at, user=call.user, mode=mode if last else 0o755)


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
            f"{call.name}: extra operand {quoted(operands[2])}\nTry '{call.name} --help' for more information."
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


async def df(call: Call) -> int:
    given = options(call, "kPhB:Ti", ["output=", "portability", "human-readable", "block-size="])
    code = 0
    for path in given.operands:
        try:
            call.machine.files.lookup(path, user=call.user, base=call.cwd)
        except OSError as error:
            code = call.complain(f"{plain(path)}: {error.strerror}")
    if code:
        return code
    unit = {"1": 1, "K": 1024, "M": 1 << 20, "G": 1 << 30}.get(given.get("B block-size", "K"), 1024)
    size, used = DISK_BYTES // unit, DISK_USED // unit
    if "output" in given:
        columns = {"avail": ("Avail", size - used), "used": ("Used", used), "size": ("1K-blocks", size),
                   "source": ("Filesystem", "/dev/nvme0n1p2"), "target": ("Mounted on", "/"),
                   "pcent": ("Use%", f"{100 * used // size}%")}  # fmt: skip
        chosen = [columns[name] for name in given.get("output").split(",") if name in columns]
        call.out(
            " ".join(title for title, _ in chosen) + "\n" + " ".join(str(value) for _, value in chosen) + "\n"
        )
        return 0
    title = "1024-blocks" if "P portability" in given else "1K-blocks"
    capacity = "Capacity" if "P portability" in given else "Use%"
    shown = [f"{size:>{len(title)}}", f"{used:>10}", f"{size - used:>10}", f"{100 * used // size}%"]
    call.out(f"Filesystem     {title:>11}       Used  Available {capacity} Mounted on\n")
    call.out(f"/dev/nvme0n1p2 {' '.join(shown)} /\n")
    return 0


def _is_dir(call: Call, path: str) -> bool:
    try:
        return call.machine.files.lookup(path, user=call.user, base=call.cwd).is_dir
    except OSError:
        return False
