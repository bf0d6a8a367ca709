"""cat, head, tail, ls, stat, readlink, realpath, sha256sum, base64, test, df: the programs that only look."""

from __future__ import annotations

import base64 as codecs
import errno
import hashlib
import os
import posixpath
import re
import stat as st
import time

from ddtui.demo.accounts import group_name, user_name
from ddtui.demo.commands.program import Call, Options, Usage, missing_operand, options, plain, quoted
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


async def head(call: Call) -> int:
    return await _ends(call, first=True)


async def tail(call: Call) -> int:
    return await _ends(call, first=False)


async def _ends(call: Call, *, first: bool) -> int:
    given = options(call, "c:n:fFqv", ["bytes=", "lines=", "follow"])
    code, shown = 0, False
    for path in given.operands or ("-",):
        if path == "-":
            data = await call.all_input()
        else:
            try:
                node = call.machine.files.lookup(path, user=call.user, base=call.cwd)
                data = b"" if node.is_dir else call.machine.files.read(path, user=call.user, base=call.cwd)
            except OSError as error:
                code = call.complain(f"cannot open {quoted(path)} for reading: {error.strerror}")
                continue
        if len(given.operands) > 1 and "q" not in given:
            call.out(("\n" if shown else "") + f"==> {path} <==\n")
            shown = True
        if path != "-" and node.is_dir:
            code = call.complain(f"error reading {quoted(path)}: Is a directory")
            continue
        call.out(_end(data, given, first))
    return code


def _end(data: bytes, given: Options, first: bool) -> bytes:
    """The part of the data that head or tail shows."""
    count = given.get("c bytes")
    if count:
        number = int(count.lstrip("+-"))
        return data[:number] if first else data[number - 1 :] if count.startswith("+") else data[-number:]
    lines = data.splitlines(keepends=True)
    number = int(given.get("n lines", "10").lstrip("+-"))
    return b"".join(lines[:number] if first else lines[-number:] if number else [])


async def ls(call: Call) -> int:
    given = options(call, "1aAldLnhtrS", ["all", "almost-all", "directory"], code=2)
    operands = given.operands or (".",)
    code = 0
    files: list[tuple[str, Node]] = []
    folders: list[tuple[str, Node]] = []
    for path in sorted(operands, key=os.fsencode):
        try:
            node = _listed(call, path, deref="L" in given, long="l" in given)
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


def _listed(call: Call, path: str, *, deref: bool, long: bool) -> Node:
    """An operand of ls: a link that leads nowhere is shown itself, unless -L. Raises OSError."""
    try:
        return call.machine.files.lookup(path, user=call.user, base=call.cwd, follow=deref or not long)
    except OSError:
        if deref:
            raise
        return call.machine.files.lookup(path, user=call.user, base=call.cwd, follow=False)


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
    seconds, part = divmod(node.mtime_ns, 1_000_000_000)
    nanos = f"{seconds}.{part:09d}"
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{part:09d} +0000"
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
        "X": str(seconds), "Y": str(seconds), "Z": str(seconds), "W": "0",
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


async def base64(call: Call) -> int:
    given = options(call, "dw:i", ["decode", "wrap=", "ignore-garbage"])
    code, path = 0, given.operands[0] if given.operands else "-"
    try:
        data = (
            await call.all_input()
            if path == "-"
            else call.machine.files.read(path, user=call.user, base=call.cwd)
        )
    except OSError as error:
        return call.complain(f"{plain(path)}: {error.strerror}")
    if "d decode" in given:
        try:
            call.out(codecs.b64decode(data.replace(b"\n", b""), validate=True))
        except ValueError:
            code = call.complain("invalid input")
        return code
    text = codecs.b64encode(data).decode()
    width = int(given.get("w wrap", "76")) or len(text) or 1
    call.out(
        "".join(
            text[i : i + width] + ("\n" if given.get("w wrap") != "0" else "")
            for i in range(0, len(text), width)
        )
    )
    return 0


async def test(call: Call) -> int:
    words = list(call.argv[1:])
    if call.name == "[" and (not words or words.pop() != "]"):
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
              "-s": node.size > 0, "-p": False, "-S": False, "-b": False,
              "-c": st.S_ISCHR(node.mode)}  # fmt: skip
    if operator not in checks:
        raise Usage(f"test: {quoted(operator)}: unary operator expected", 2)
    return checks[operator]


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
