"""journalctl, as systemd 252 shows the journal."""

from __future__ import annotations

import calendar
import json
import re
import time
from collections.abc import Callable, Sequence

from ddtui.demo.commands.program import Call, Options, Usage, options
from ddtui.demo.journal import BadCursor, Entry, Match, as_json, matches, parse_cursor, unit_match

HINT = """Hint: You are currently not seeing messages from other users and the system.
      Users in groups 'adm', 'systemd-journal' can see all messages.
      Pass -q to turn off this notice.
"""
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
LONG = [
    "unit=", "user-unit=", "output=", "all", "follow", "merge", "lines=", "after-cursor=", "cursor=",
    "since=", "show-cursor", "until=", "reverse", "no-pager", "no-tail", "boot=", "dmesg", "quiet",
    "priority=", "utc", "identifier=", "grep=", "output-fields=", "no-hostname", "full", "system",
    "user", "list-boots", "version", "disk-usage", "no-full", "field=", "catalog", "pager-end",
    "header", "rotate", "vacuum-time=", "sync", "flush",
]  # fmt: skip
FOLLOW_LINES = 10
SPANS = {
    **dict.fromkeys(("us", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}


async def journalctl(call: Call) -> int:
    given = _options(call)
    journal = call.machine.journal
    if "version" in given:
        call.out("systemd 252 (252.39-1~deb12u2)\n")
        return 0
    if "disk-usage" in given:
        call.out("Archived and active journals take up 16.0M in the file system.\n")
        return 0
    if "rotate vacuum-time sync flush" in given:
        return 0 if call.user.is_root else call.complain("Failed to rotate: Access denied") or 1
    if "list-boots" in given:
        return _list_boots(call)
    show = _form(call, given)
    wanted = _filter(call, given)
    if not call.user.reads_journal:
        if "q quiet" not in given:
            call.streams.err(HINT.encode())

        def nothing(entry: Entry) -> bool:
            return entry.fields.get("_UID") == str(call.user.uid)

        mine, wanted = wanted, lambda entry: nothing(entry) and mine(entry)
    follow = "f follow" in given
    with journal.follow() as follower:  # from here on nothing is missed
        last: Entry | None = None
        for index, entry in enumerate(_select(call, given, wanted)):
            call.out(show(entry))
            last = entry
            if index % 200 == 199:
                await call.streams.drain()
        await call.streams.drain()
        if not follow:
            if last is None and "q quiet" not in given and given.get("o output", "short").startswith("short"):
                call.out("-- No entries --\n")
            if "show-cursor" in given and last is not None:
                call.out(f"-- cursor: {last.cursor(journal.sequence)}\n")
            return 0
        seen = last.number if last else 0
        while True:
            entry = await follower.next()
            if entry.number > seen and wanted(entry):
                call.out(show(entry))
                await call.streams.drain()


def _select(call: Call, given: Options, wanted: Callable[[Entry], bool]) -> list[Entry]:
    """What is shown before any following, in order: where 252 starts to look, and which way."""
    journal = call.machine.journal
    entries: Sequence[Entry] = tuple(journal.entries)
    follow, reverse = "f follow" in given, "r reverse" in given
    if follow and "m merge" not in given:  # -f shows the current boot only
        entries = [entry for entry in entries if entry.boot_id == journal.boot_id]
    since = _time(call, given.get("since S")) if "since S" in given else None
    until = _time(call, given.get("until U")) if "until U" in given else None
    if since is not None and until is not None and since > until:
        raise Usage("--since= must be before --until=.")
    lines = _lines(given, follow)
    matching = [entry for entry in entries if wanted(entry)]
    if "after-cursor cursor" in given:
        try:
            cursor = parse_cursor(given.get("after-cursor cursor"))
        except BadCursor:
            raise Usage("Failed to seek to cursor: Invalid argument") from None
        at = journal.position(cursor)
        beyond = "after-cursor" in given
        if reverse:
            matching = [e for e in reversed(matching) if e.number < at or (e.number == at and not beyond)]
        else:
            matching = [e for e in matching if e.number > at or (e.number == at and not beyond)]
    elif reverse:
        matching = [entry for entry in reversed(matching) if until is None or entry.realtime <= until]
        until = None
    elif since is not None:
        matching = [entry for entry in matching if entry.realtime >= since]
    elif lines is not None:  # the last ones of all, even if --until then hides them
        matching = matching[len(matching) - lines :] if lines < len(matching) else matching
    shown = matching[:lines]
    return [
        e for e in shown if (until is None or e.realtime <= until) and (since is None or e.realtime >= since)
    ]


def _options(call: Call) -> Options:
    words = []
    for word in call.argv[1:]:  # -b, -n and --lines take an optional argument
        if word in ("-b", "--boot"):
            word = "--boot=0"
        elif re.fullmatch(r"-b[-+]?\w+", word):
            word = "--boot=" + word[2:]
        words.append(word)
    fixed: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("-n", "--lines"):
            following = words[position + 1] if position + 1 < len(words) else ""
            if re.fullmatch(r"\d+|all", following):
                position += 1
                word = f"--lines={following}"
            else:
                word = f"--lines={FOLLOW_LINES}"
        elif re.fullmatch(r"-n\d+|-nall", word):
            word = "--lines=" + word[2:]
        elif (
            word == "--boot=0"
            and position + 1 < len(words)
            and re.fullmatch(r"-?\d+|[0-9a-f]{32}|all", words[position + 1])
        ):
            position += 1
            word = "--boot=" + words[position]
        fixed.append(word)
        position += 1
    again = Call(call.machine, call.user, (call.argv[0], *fixed), call.streams, call.cwd)
    return options(again, "u:t:p:o:afmkqrS:U:c:g:xeF:", LONG, hint=False)


def _lines(given: Options, follow: bool) -> int | None:
    text = given.get("lines")
    if text:
        if text == "all":
            return None
        if not text.isdigit():
            raise Usage(f"Failed to parse lines '{text}'")
        return int(text)
    return FOLLOW_LINES if follow and "no-tail" not in given else None


def _filter(call: Call, given: Options) -> Callable[[Entry], bool]:
    groups: list[Match] = []
    units = given.all("u unit")
    if units:
        groups.append(
            [
                alternative
                for unit in units
                for alternative in unit_match(unit if "." in unit else unit + ".service")
            ]
        )
    if "user-unit user" in given:
        groups.append([{"_SYSTEMD_USER_UNIT": tuple(given.all("user-unit"))}])
    if "dmesg k" in given:
        groups.append([{"_TRANSPORT": ("kernel",)}])
    if "identifier t" in given:
        groups.append([{"SYSLOG_IDENTIFIER": tuple(given.all("t identifier"))}])
    if "boot" in given and given.get("boot") != "all":
        groups.append([{"_BOOT_ID": (_boot(call, given.get("boot")),)}])
    operands = _matches(given.operands)
    if operands:
        groups.append(operands)
    least = _level(given.get("p priority")) if "p priority" in given else None
    pattern = re.compile(
        given.get("g grep"), 0 if any(c.isupper() for c in given.get("g grep")) else re.IGNORECASE
    )

    def wanted(entry: Entry) -> bool:
        if least is not None and not least[0] <= int(entry.fields.get("PRIORITY", "6")) <= least[1]:
            return False
        if not matches(entry, groups):
            return False
        return not pattern.pattern or bool(pattern.search(entry.fields.get("MESSAGE", "")))

    return wanted


def _matches(operands: Sequence[str]) -> Match:
    alternatives: list[dict[str, tuple[str, ...]]] = []
    current: dict[str, tuple[str, ...]] = {}
    for word in operands:
        if word == "+":
            if current:
                alternatives.append(current)
            current = {}
            continue
        if word.startswith("/"):
            raise Usage("Couldn't canonicalize path: No such file or directory")
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[A-Z0-9_]+", name):
            raise Usage(f"Failed to add match '{word}': Invalid argument")
        current[name] = (*current.get(name, ()), value)
    return [*alternatives, current] if current else alternatives


def _level(text: str) -> tuple[int, int]:
    first, dots, second = text.partition("..")

    def number(word: str) -> int:
        if word.isdigit() and int(word) < len(LEVELS):
            return int(word)
        if word in LEVELS:
            return LEVELS.index(word)
        raise Usage(f"Unknown log level {word}")

    if dots:
        low, high = sorted((number(first), number(second)))
        return low, high
    return 0, number(first)


def _time(call: Call, text: str) -> int:
    """A time of systemd.time(7), in µs: the forms that are met in practice."""
    now = call.machine.clock.now()
    text = text.strip()
    if text == "now":
        return int(now * 1e6)
    if text in ("today", "yesterday", "tomorrow"):
        return int((now // 86400 + {"today": 0, "yesterday": -1, "tomorrow": 1}[text]) * 86400 * 1e6)
    if re.fullmatch(r"@\d+(\.\d+)?", text):
        whole, _, part = text[1:].partition(".")
        return int(whole) * 1_000_000 + int((part + "000000")[:6])
    spans = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text)
    relative = re.fullmatch(r"([-+])?((?:\d+(?:\.\d+)?\s*[a-z]+\s*)+)(\bago)?", text)
    if relative and all(unit in SPANS for _, unit in spans if unit != "ago"):
        seconds = sum(float(number) * SPANS[unit] for number, unit in spans if unit != "ago")
        forward = relative[1] == "+" or (relative[1] is None and not relative[3])
        return int((now + seconds if forward else now - seconds) * 1e6)
    found = re.fullmatch(
        r"(?:[A-Z][a-z]{2} )?(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?"
        r"(?: ?UTC|Z|\+00:?00)?",
        text,
    )
    if found:
        parts = [int(found[i] or 0) for i in range(1, 7)]
        return int(calendar.timegm((*parts, 0, 0, 0)) * 1e6) + int(float(found[7] or 0) * 1e6)
    found = re.fullmatch(r"(\d\d):(\d\d)(?::(\d\d))?", text)
    if found:
        return int(
            (now // 86400 * 86400 + int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)) * 1e6
        )
    raise Usage(f"Failed to parse timestamp: {text}")


def _boots(call: Call) -> list[str]:
    seen = dict.fromkeys(entry.boot_id for entry in call.machine.journal.entries)
    return list(seen)


def _boot(call: Call, text: str) -> str:
    boots = _boots(call)
    if re.fullmatch(r"[0-9a-f]{32}", text):
        return text
    try:
        offset = int(text or 0)
        return boots[offset - 1]
    except (ValueError, IndexError):
        why = "No such boot ID in journal"
        raise Usage(f"Data from the specified boot ({text}) is not available: {why}") from None


def _list_boots(call: Call) -> int:
    boots = _boots(call)
    call.out(f"IDX {'BOOT ID':<32} {'FIRST ENTRY':<27} LAST ENTRY\n")
    for index, boot in enumerate(boots):
        times = [entry.realtime / 1e6 for entry in call.machine.journal.entries if entry.boot_id == boot]
        first, last = (
            time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(at)) for at in (times[0], times[-1])
        )
        call.out(f"{index - len(boots) + 1:>3} {boot} {first} {last}\n")
    return 0


def _form(call: Call, given: Options) -> Callable[[Entry], str]:
    journal = call.machine.journal
    style = given.get("o output", "short")
    everything = "a all" in given
    only = [name for name in given.get("output-fields").split(",") if name]
    if style in ("json", "json-sse", "json-seq"):
        return lambda entry: as_json(entry, journal.sequence, all_fields=everything, only=only) + "\n"
    if style == "json-pretty":
        return lambda entry: (
            json.dumps(json.loads(as_json(entry, journal.sequence, all_fields=everything)), indent="\t")
            + "\n"
        )
    if style == "cat":
        return lambda entry: _readable(entry.fields.get("MESSAGE", ""), everything) + "\n"
    if style == "export":
        return lambda entry: _export(entry, journal.sequence)
    times = {
        "short": "%b %d %H:%M:%S",
        "short-full": "%a %Y-%m-%d %H:%M:%S UTC",
        "with-unit": "%a %Y-%m-%d %H:%M:%S UTC",
        "short-iso": "%Y-%m-%dT%H:%M:%S+0000",
        "short-iso-precise": "%Y-%m-%dT%H:%M:%S.",
        "short-precise": "%b %d %H:%M:%S.",
        "short-unix": "",
        "short-monotonic": "",
    }
    if style not in times:
        raise Usage(f"Unknown output format '{style}'.")

    def short(entry: Entry) -> str:
        fields = entry.fields
        when = time.strftime(times[style], time.gmtime(entry.realtime / 1e6))
        micro = f"{entry.realtime % 1_000_000:06d}"
        if style == "short-unix":
            when = f"{entry.realtime // 1_000_000}.{micro}"
        elif style == "short-monotonic":
            when = f"[{entry.monotonic / 1e6:12.6f}]"
        elif style.endswith("precise"):
            when += micro + ("+0000" if "iso" in style else "")
        host = "" if "no-hostname" in given else fields.get("_HOSTNAME", "demo") + " "
        name = fields.get("SYSLOG_IDENTIFIER", fields.get("_COMM", "unknown"))
        pid = f"[{fields['_PID']}]" if "_PID" in fields else ""
        return f"{when} {host}{name}{pid}: {_readable(fields.get('MESSAGE', ''), everything)}\n"

    return short


def _readable(text: str, everything: bool) -> str:
    data = text.encode("utf-8", "surrogateescape")
    bad = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", re.sub(r"\x1b\[[0-9;]*m", "", text))
    if bad and not everything:
        size = f"{len(data)}B" if len(data) < 1024 else f"{len(data) / 1024:.1f}K"
        return f"[{size} blob data]"
    return text


def _export(entry: Entry, sequence: str) -> str:
    head = {
        "__CURSOR": entry.cursor(sequence),
        "__REALTIME_TIMESTAMP": str(entry.realtime),
        "__MONOTONIC_TIMESTAMP": str(entry.monotonic),
        "_BOOT_ID": entry.boot_id,
    }
    return "".join(f"{name}={value}\n" for name, value in {**head, **entry.fields}.items()) + "\n"
