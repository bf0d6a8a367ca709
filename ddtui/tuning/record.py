"""The change record on the host: written before each step, so that any console can finish or undo a cut one.

`changes.jsonl` has a JSON object a line: the change whole when it begins, then each phase it enters. Lines
only ever get added; a line that a cut left half is passed over. Values of secrets are not in it. The contents
of the files are kept beside it, `CHANGE/N.before` and `CHANGE/N.after`, with the mode of the files
themselves.

Commands: `cat -- FILE`, `mkdir -p -- DIR`, `tee -a -- FILE`, `sync -- FILE`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ddtui import redact
from ddtui.host import files
from ddtui.host.base import Command, CommandFailed
from ddtui.host.supervisors import Supervisor, restart_orders
from ddtui.sanitize import sanitize
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import ChangeRecord, FileEdit, FileTrace, Op, Phase, Plan, Turn
from ddtui.tuning.place import Place
from ddtui.tuning.steady import demand, steadily

SCHEMA = "ddtui/change/1"
FILE = "changes.jsonl"
UNKNOWN_MODE = "600"  # of a file whose own mode could not be read


def new_id(now: float | None = None) -> str:
    """A change's id: UTC time and a random tail; sorts by time."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(now)) + "-" + secrets.token_hex(2)


def digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def digest_argvs(argvs: Sequence[Sequence[str]]) -> str:
    """A hash of command lines, and one of their words at blanks; empty for none. `loaded_as` compares."""
    if not argvs:
        return ""
    exact = [list(argv) for argv in argvs]
    loose = [" ".join(argv).split() for argv in argvs]
    return ":".join(hashlib.sha256(json.dumps(one).encode()).hexdigest() for one in (exact, loose))


def loaded_as(planned: str, loaded: Sequence[Sequence[str]]) -> bool:
    """Whether systemd holds the command lines of that hash. Where it could only be asked in a form that loses
    the quotes (`show`, without a D-Bus), no word of it has a blank, and words at blanks are compared."""
    now = digest_argvs(loaded)
    if now.partition(":")[0] == planned.partition(":")[0]:
        return True
    whole = any(len(word.split()) > 1 for argv in loaded for word in argv)
    return not whole and now.partition(":")[2] == planned.partition(":")[2]


def begin(ctx: Tuning, plan: Plan, *, id: str | None = None) -> ChangeRecord:
    """The record of a change that is about to be made."""
    return ChangeRecord(
        id=id or new_id(),
        at=time.time(),
        who=ctx.who,
        unit=plan.unit,
        turns=tuple(_redacted(ctx, turn) for turn in plan.turns),
        why=plan.why,
        files=tuple(
            FileTrace(edit.path, digest(edit.before), digest(edit.after), edit.ours, edit.like)
            for edit in plan.edits
        ),
        argv_before=redact.argv(plan.argv_before),
        argv_after=redact.argv(plan.argv_after),
        phase=Phase.PLANNED,
        result="",
        restores=plan.restores,
        invocation=plan.fingerprint.invocation,
        loads=digest_argvs(plan.exec_start_after),
    )


def move(record: ChangeRecord, phase: Phase, result: str = "", ready: float | None = None) -> ChangeRecord:
    """The record in its next phase."""
    seconds = record.seconds_to_ready if ready is None else ready
    return replace(record, phase=phase, result=result or record.result, seconds_to_ready=seconds)


async def keep_files(ctx: Tuning, where: Place, record: ChangeRecord, edits: Sequence[FileEdit]) -> None:
    """Keep the contents before and after on the host, for whoever finishes or undoes the change."""
    folder = where / record.id
    made = await ctx.host.run(("mkdir", "-p", "--", folder), sudo=where.sudo)
    demand(made, f"{folder} cannot be made")
    models = [edit.path if edit.before is not None else edit.like for edit in edits]
    looks = [Command(("stat", "-L", "-c", "%a", "--", model)) for model in models if model]
    modes = (
        {done.argv[-1]: done.out.strip() for done in await ctx.host.batch(looks) if done.ok} if looks else {}
    )
    for number, (edit, model) in enumerate(zip(edits, models, strict=True)):
        mode = modes.get(model, UNKNOWN_MODE) if model else files.NEW_MODE
        for name, content in (("before", edit.before), ("after", edit.after)):
            if content is not None:
                path = f"{folder}/{number}.{name}"
                await files.write_atomically(ctx.host, path, content, sudo=where.sudo, mode=mode)


async def kept_edits(ctx: Tuning, where: Place, record: ChangeRecord) -> tuple[FileEdit, ...]:
    """The edits of a change from the contents kept on the host. Raises CommandFailed if they are damaged."""
    wanted = [
        f"{where / record.id}/{number}.{name}"
        for number, trace in enumerate(record.files)
        for name, sha in (("before", trace.before), ("after", trace.after))
        if sha is not None
    ]
    kept = await files.read(ctx.host, wanted, sudo=where.sudo) if wanted else {}
    edits = []
    for number, trace in enumerate(record.files):
        contents = []
        for name, sha in (("before", trace.before), ("after", trace.after)):
            content = kept.get(f"{where / record.id}/{number}.{name}") if sha is not None else None
            if digest(content) != sha:
                raise CommandFailed(
                    f"{where / record.id}/{number}.{name} on {ctx.host.name} is missing or damaged",
                    f"{trace.path} cannot be restored from it",
                )
            contents.append(content)
        edits.append(FileEdit(trace.path, contents[0], contents[1], trace.ours, trace.like))
    return tuple(edits)


async def has_files(ctx: Tuning, where: Place, entry: ChangeRecord) -> bool:
    """Whether the contents of the change are kept on the host."""
    return bool(entry.files) and (await ctx.host.run(("test", "-d", where / entry.id))).ok


async def on_disk(ctx: Tuning, entry: ChangeRecord) -> str:
    """Whether the change's files are as before it, as after it, between, or changed by hand since."""
    now = await files.read(ctx.host, [trace.path for trace in entry.files]) if entry.files else {}
    found = set()
    for trace in entry.files:
        sha = digest(now.get(trace.path))
        found.add("before" if sha == trace.before else "after" if sha == trace.after else "by hand")
    if "by hand" in found:
        return "by hand"
    return "between" if len(found) > 1 else next(iter(found), "after")


async def write(ctx: Tuning, where: Place, record: ChangeRecord) -> None:
    """Add the record's present state. On disk when this returns. Raises NotPermitted, CommandFailed."""
    line = "\n" + json.dumps(plain(record), ensure_ascii=False) + "\n"
    path = where / FILE

    async def add() -> None:
        demand(
            await ctx.host.run(("tee", "-a", "--", path), stdin=line.encode(), sudo=where.sudo),
            f"the change record {path} cannot be written",
        )
        demand(
            await ctx.host.run(("sync", "--", path), sudo=where.sudo),
            f"the change record {path} cannot be brought to disk",
        )

    await steadily(ctx.host, add)


async def read(ctx: Tuning, where: Place) -> tuple[ChangeRecord, ...]:
    """All changes in the host's record, oldest first, each in the phase it reached. Raises HostError."""
    done = await ctx.host.run(("cat", "--", where / FILE))
    return parse(done.stdout) if done.ok else ()


def parse(data: bytes) -> tuple[ChangeRecord, ...]:
    """The changes in the text of a record; lines that cannot be read are passed over."""
    found: dict[str, ChangeRecord] = {}
    for line in data.splitlines():
        try:
            entry = json.loads(line)
            if entry["schema"] == SCHEMA:
                found[entry["id"]] = _from_json(entry)
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found.values())


def unfinished(records: Sequence[ChangeRecord]) -> ChangeRecord | None:
    """The last change, if it is neither over nor undone."""
    return records[-1] if records and not records[-1].phase.final else None


def in_force(records: Sequence[ChangeRecord]) -> tuple[ChangeRecord, ...]:
    """The changes whose settings stand on top of each other on the host now, oldest first.

    A change that failed or was rolled back leaves nothing; a roll back takes away all above the one it went
    to.
    """
    stack: list[ChangeRecord] = []
    for record in records:
        if record.phase not in (Phase.VERIFIED, Phase.UNVERIFIED, Phase.STRANDED):
            continue
        if record.restores is None:
            if record.files:  # a plain restart changes no setting
                stack.append(record)
            continue
        while stack and stack[-1].id != record.restores:
            stack.pop()
    return tuple(stack)


def shell_way_back(where: Place, record: ChangeRecord, supervisor: Supervisor) -> tuple[str, ...]:
    """Commands that undo the change from a shell on the host, without ddtui."""
    sudo = "sudo " if supervisor.root else ""
    lines = []
    for number, trace in enumerate(record.files):
        target = shlex.quote(trace.path)
        if trace.before is None:
            lines.append(f"{sudo}rm -f {target}")
        else:
            lines.append(f"{sudo}cp {shlex.quote(f'{where / record.id}/{number}.before')} {target}")
    reload = (supervisor.reload,) if supervisor.reload else ()
    for argv in (*reload, *restart_orders(supervisor)):
        lines.append(sudo + shlex.join(word for word in argv if word != "--no-block"))
    return tuple(lines)


def _redacted(ctx: Tuning, turn: Turn) -> Turn:
    """The turn without the value of a secret."""
    if turn.value is None:
        return turn
    name = turn.knob
    for knob in ctx.profile.knobs:
        if knob.name == turn.knob:
            name = knob.flag or knob.env or turn.knob
    return replace(turn, value=redact.value(name, turn.value))


def plain(record: ChangeRecord) -> dict[str, Any]:
    """The record as JSON can hold it."""
    return {"schema": SCHEMA, "wrote_at": round(time.time(), 3), **asdict(record)}


def _from_json(data: Mapping[str, Any]) -> ChangeRecord:
    text = sanitize
    return ChangeRecord(
        id=str(data["id"]),
        at=float(data["at"]),
        who=text(str(data["who"])),
        unit=str(data["unit"]),
        turns=tuple(
            Turn(text(t["knob"]), Op(t["op"]), t["value"] and text(t["value"])) for t in data["turns"]
        ),
        why=text(str(data["why"])),
        files=tuple(
            FileTrace(f["path"], f["before"], f["after"], bool(f["ours"]), f.get("like"))
            for f in data["files"]
        ),
        argv_before=tuple(text(word) for word in data["argv_before"]),
        argv_after=tuple(text(word) for word in data["argv_after"]),
        phase=Phase(data["phase"]),
        result=text(str(data["result"])),
        seconds_to_ready=data.get("seconds_to_ready"),
        restores=data.get("restores"),
        invocation=str(data.get("invocation", "")),
        timings={str(name): float(at) for name, at in dict(data.get("timings") or {}).items()},
        loads=str(data.get("loads", "")),
    )
