"""id, getent, uname, hostname, date, getconf, uptime, which, ps, ss, kill, sleep and the like."""

from __future__ import annotations

import asyncio
import re
import signal
import time

from ddtui.demo.accounts import GROUPS, USERS, User, group_name
from ddtui.demo.commands.program import Call, Usage, missing_operand, options, quoted
from ddtui.demo.processes import TICKS, Process, listing

CPUS = 192
KERNEL = "6.1.0-demo"


async def true(call: Call) -> int:
    return 0


async def false(call: Call) -> int:
    return 1


async def echo(call: Call) -> int:
    words = list(call.argv[1:])
    newline = not (words and words[0] == "-n")
    call.out(" ".join(words if newline else words[1:]) + ("\n" if newline else ""))
    return 0


async def printf(call: Call) -> int:
    if len(call.argv) < 2:
        raise missing_operand(call)
    text = call.argv[1].encode().decode("unicode_escape")
    for word in call.argv[2:] or ("",):
        call.out(text.replace("%s", word).replace("%%", "%"))
    return 0


async def sleep(call: Call) -> int:
    units = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    if len(call.argv) < 2:
        raise missing_operand(call)
    seconds = 0.0
    for word in call.argv[1:]:
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)", word)
        if not found:
            raise missing_operand(call, f"invalid time interval {quoted(word)}")
        seconds += float(found[1]) * units[found[2]]
    await asyncio.sleep(seconds)
    return 0


async def id(call: Call) -> int:
    given = options(call, "ugGnrz", ["user", "group", "groups", "name", "real"])
    user = call.user
    if given.operands:
        name = given.operands[0]
        if name not in USERS:
            return call.complain(f"{quoted(name)}: no such user")
        user = USERS[name]
    named = "n name" in given
    if "u user" in given:
        call.out((user.name if named else str(user.uid)) + "\n")
    elif "g group" in given:
        call.out((group_name(user.gid) if named else str(user.gid)) + "\n")
    elif "G groups" in given:
        call.out(" ".join(group_name(g) if named else str(g) for g in user.groups) + "\n")
    elif named:
        raise Usage("id: cannot print only names or real IDs in default format")
    else:
        groups = ",".join(f"{g}({group_name(g)})" for g in user.groups)
        call.out(f"uid={user.uid}({user.name}) gid={user.gid}({group_name(user.gid)}) groups={groups}\n")
    return 0


async def whoami(call: Call) -> int:
    call.out(call.user.name + "\n")
    return 0


async def groups(call: Call) -> int:
    call.out(" ".join(group_name(g) for g in call.user.groups) + "\n")
    return 0


async def getent(call: Call) -> int:
    if len(call.argv) < 3:
        raise Usage("getent: wrong number of arguments", 1)
    database, name = call.argv[1:3]
    if database == "passwd":
        found = [user for user in USERS.values() if name in (user.name, str(user.uid))]
        for user in found:
            call.out(passwd_line(user) + "\n")
        return 0 if found else 2
    if database == "group":
        names = [group for group, gid in GROUPS.items() if name in (group, str(gid))]
        for group in names:
            call.out(group_line(group) + "\n")
        return 0 if names else 2
    raise Usage(f"Unknown database: {database}", 1)


def passwd_line(user: User) -> str:
    return f"{user.name}:x:{user.uid}:{user.gid}::{user.home}:{user.shell}"


def group_line(group: str) -> str:
    gid = GROUPS[group]
    members = [user.name for user in USERS.values() if gid in user.groups[1:]]
    return f"{group}:x:{gid}:{','.join(members)}"


async def uname(call: Call) -> int:
    given = options(call, "asnrvmpio", ["all", "kernel-name", "nodename", "kernel-release", "machine"])
    host = call.machine.hostname
    parts = [("s kernel-name", "Linux"), ("n nodename", host), ("r kernel-release", KERNEL),
             ("v", "#1 SMP PREEMPT_DYNAMIC (simulated)"), ("m machine", "x86_64"),
             ("o", "GNU/Linux")]  # fmt: skip
    if "a all" in given:
        chosen = [value for _, value in parts]
    else:
        chosen = [value for names, value in parts if names in given] or ["Linux"]
    call.out(" ".join(chosen) + "\n")
    return 0


async def who(call: Call) -> int:
    """Nobody holds a terminal here."""
    options(call, "", [])
    return 0


async def hostname(call: Call) -> int:
    given = options(call, "fsIi", ["fqdn", "long", "short"])
    call.out(("127.0.0.1" if "I i" in given else call.machine.hostname) + "\n")
    return 0


async def date(call: Call) -> int:
    given = options(call, "ud:I::", ["utc", "date=", "iso-8601"])
    now = call.machine.clock.now()
    if "d date" in given:
        text = given.get("d date")
        if not re.fullmatch(r"@\d+(\.\d+)?", text):
            return call.complain(f"invalid date {quoted(text)}")
        now = float(text[1:])
    form = "%a %b %e %H:%M:%S UTC %Y"
    if "I" in given:
        form = "%Y-%m-%d"
    if "iso-8601" in given:
        form = "%Y-%m-%d"
    for operand in given.operands:
        if not operand.startswith("+"):
            return call.complain(f"invalid date {quoted(operand)}")
        form = operand[1:]
    call.out(format_time(form, now) + "\n")
    return 0


def format_time(form: str, at: float) -> str:
    """date(1)'s formats, in UTC."""
    nanos = f"{int(at % 1 * 1e9):09d}"
    when = time.gmtime(at)

    def value(found: re.Match[str]) -> str:
        digits, letter = found[1], found[2]
        if letter == "N":
            return nanos[: int(digits)] if digits else nanos
        if letter == "s":
            return str(int(at))
        if letter in "zZ":
            return "UTC" if letter == "Z" else "+0000"
        return (
            time.strftime("%" + letter, when)
            if letter in "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%"
            else found[0]
        )

    return re.sub(r"%(\d?)([a-zA-Z%])", value, form)


async def getconf(call: Call) -> int:
    values = {"CLK_TCK": str(TICKS), "PAGE_SIZE": "4096", "PAGESIZE": "4096", "_NPROCESSORS_ONLN": str(CPUS),
              "_NPROCESSORS_CONF": str(CPUS), "ARG_MAX": "2097152", "LONG_BIT": "64"}  # fmt: skip
    if len(call.argv) < 2:
        raise Usage("Usage: getconf [-v SPEC] VAR\n  or:  getconf [-v SPEC] PATH_VAR PATH\n", 2)
    name = call.argv[1]
    if name not in values:
        raise Usage(f"getconf: Unrecognized variable `{name}'", 2)
    call.out(values[name] + "\n")
    return 0


async def nproc(call: Call) -> int:
    call.out(f"{CPUS}\n")
    return 0


async def uptime(call: Call) -> int:
    minutes = int(call.machine.clock.monotonic()) // 60
    clock = format_time("%H:%M:%S", call.machine.clock.now())
    call.out(f" {clock} up {minutes // 60:2d}:{minutes % 60:02d},  1 user,  load average: 3.81, 3.94, 4.02\n")
    return 0


async def which(call: Call) -> int:
    given = options(call, "a")
    code = 0
    for name in given.operands:
        found = call.machine.program_path(name)
        if found:
            call.out(found + "\n")
        else:
            code = 1
    return code


def _environment(call: Call) -> dict[str, str]:
    user = call.user
    return {
        "HOME": user.home,
        "LOGNAME": user.name,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "PWD": call.cwd,
        "SHELL": user.shell,
        "USER": user.name,
        "LC_ALL": "C",
    }


async def env(call: Call) -> int:
    call.out("".join(f"{name}={value}\n" for name, value in _environment(call).items()))
    return 0


async def printenv(call: Call) -> int:
    known = _environment(call)
    for name in call.argv[1:]:
        if name in known:
            call.out(known[name] + "\n")
    return 0 if len(call.argv) > 1 and all(name in known for name in call.argv[1:]) else 1


async def pwd(call: Call) -> int:
    call.out(call.cwd + "\n")
    return 0


async def ps(call: Call) -> int:
    table = call.machine.processes.table
    words = call.argv[1:]
    if words[:1] == ("aux",):
        columns = ["user", "pid", "%cpu", "%mem", "vsz", "rss", "tty", "stat", "etime", "time", "args"]
        shown = list(table.values())
    else:
        given = options(call, "eAfo:p:C:u:w", ["no-headers", "noheaders", "format=", "pid=", "ppid="])
        columns = [c for text in given.all("o format") for c in text.replace(" ", ",").split(",") if c]
        if not columns:
            columns = ["user", "pid", "ppid", "c", "etime", "tty", "time", "args"] if "f" in given else [
                "pid", "tty", "time", "comm"]  # fmt: skip
        wanted = [pid for text in given.all("p pid") for pid in re.split(r"[ ,]+", text) if pid]
        bad = [pid for pid in wanted if not pid.isdigit()]
        if bad:
            raise Usage("error: process ID list syntax error")
        shown = list(table.values())
        if wanted:
            shown = [table[int(pid)] for pid in wanted if int(pid) in table]
        elif "ppid" in given:
            shown = [process for process in shown if str(process.ppid) == given.get("ppid")]
        elif not {"e", "A"} & {name for name, _ in given.given}:
            shown = []
    titles = [column.partition("=") for column in columns]
    names = [name for name, _, _ in titles]
    try:
        rows = [listing(process, names, call.machine.clock) for process in shown]
    except KeyError as error:
        raise Usage(f'error: unknown user-defined format specifier "{error.args[0]}"') from None
    heads = [title if equals else _ps_title(name) for name, equals, title in titles]
    if any(heads) and "no-headers" not in call.argv and "--no-headers" not in call.argv:
        rows = [heads, *rows]
    widths = [max(len(row[i]) for row in rows) if rows else 0 for i in range(len(names))]
    right = {"pid", "ppid", "uid", "gid", "rss", "vsz", "etime", "etimes", "%cpu", "%mem", "nlwp", "c"}
    for row in rows:
        cells = [
            cell.rjust(w) if name in right else cell.ljust(w)
            for cell, w, name in zip(row, widths, names, strict=True)
        ]
        call.out(" ".join(cells).rstrip() + "\n")
    return 0 if shown else 1


def _ps_title(name: str) -> str:
    return {"args": "COMMAND", "cmd": "CMD", "comm": "COMMAND", "etime": "ELAPSED", "tty": "TTY",
            "etimes": "ELAPSED"}.get(name, name.upper())  # fmt: skip


async def ss(call: Call) -> int:
    given = options(call, "ltnHpaue46", ["listening", "tcp", "numeric", "no-header", "processes"], code=255)
    rows = []
    wanted = None
    for word in " ".join(given.operands).split():
        found = re.fullmatch(r":(\d+)", word)
        wanted = int(found[1]) if found else wanted
    if "l listening" in given:
        for (address, port), pid in sorted(
            call.machine.processes.listening.items(), key=lambda item: -item[0][1]
        ):
            if wanted in (None, port):
                peer = "[::]:*" if ":" in address else "0.0.0.0:*"
                rows.append((f"{address}:{port}", peer, call.machine.processes.table.get(pid)))
    local = max([len(row[0]) for row in rows] + [len("Local Address:Port")])
    if "H no-header" not in given:
        call.out(f"State  Recv-Q Send-Q {'Local Address:Port':>{local}}  Peer Address:PortProcess\n")
    for address, peer, process in rows:
        users = _ss_users(call, process) if "p processes" in given else ""
        call.out(f"LISTEN 0      2048   {address:>{local}} {peer:>17} {users}".rstrip() + "\n")
    return 0


def _ss_users(call: Call, process: Process | None) -> str:
    if process is None or not (call.user.is_root or call.user.uid == process.uid):
        return ""
    return f'users:(("{process.comm}",pid={process.pid},fd=3))'


async def kill(call: Call) -> int:
    words = list(call.argv[1:])
    number = signal.SIGTERM.value
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        name = words.pop(0) if word == "-s" and words else word[1:]
        if name.isdigit():
            number = int(name)
        else:
            try:
                number = signal.Signals["SIG" + name.upper().removeprefix("SIG")].value
            except KeyError:
                raise Usage(f"kill: {name}: invalid signal specification") from None
    if not words:
        raise Usage("kill: not enough arguments")
    code = 0
    for word in words:
        if not word.isdigit():
            code = call.complain(f"failed to parse argument: {quoted(word)}")
            continue
        why = call.machine.signal(int(word), number, call.user)
        if why:
            code = call.complain(f"({word}) - {why}")
    return code
