"""sudo, as 1.9 behaves without a terminal: -n, -S with -p and -k, -l, -v, -u."""

from __future__ import annotations

from ddtui.demo.accounts import ASKER_PASSWORD, ROOT, USERS, Sudo
from ddtui.demo.commands.program import Call, Streams, Usage, options

TRIES = 3
USAGE = """usage: sudo -h | -K | -k | -V
usage: sudo -v [-ABkNnS] [-g group] [-h host] [-p prompt] [-u user]
usage: sudo -l [-ABkNnS] [-g group] [-h host] [-p prompt] [-U user] [-u user]
            [command [arg ...]]
usage: sudo [-ABbEHkNnPS] [-r role] [-t type] [-C num] [-D directory] [-g
            group] [-h host] [-p prompt] [-R directory] [-T timeout] [-u user]
            [VAR=value] [-i | -s] [command [arg ...]]
usage: sudo -e [-ABkNnS] [-r role] [-t type] [-C num] [-D directory] [-g group]
            [-h host] [-p prompt] [-R directory] [-T timeout] [-u user] file ..."""


class _Pushed:
    """Streams whose stdin begins with what was read too far."""

    def __init__(self, streams: Streams, first: bytes) -> None:
        self._streams = streams
        self._first = first

    async def read(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        return await self._streams.read()

    def out(self, data: bytes) -> None:
        self._streams.out(data)

    def err(self, data: bytes) -> None:
        self._streams.err(data)

    async def drain(self) -> None:
        await self._streams.drain()


async def sudo(call: Call) -> int:
    given = options(
        call, "nkKSp:lvu:g:EHVh:U:", ["non-interactive", "stdin", "prompt=", "list", "user=", "version"],
        permute=False, hint=False,
    )  # fmt: skip
    if "V version" in given:
        call.out("Sudo version 1.9.13p3\n")
        return 0
    if not given.operands and "l list v k K" not in given:
        raise Usage(USAGE)
    name = given.get("u user", "root")
    if name.lstrip("#") not in USERS:
        raise Usage(f"sudo: unknown user {name}\nsudo: error initializing audit plugin sudoers_audit")
    target = USERS[name]
    if not given.operands and "k K" in given and "l list v" not in given:
        return 0
    rights = Sudo.FREE if call.user.is_root else call.user.sudo
    streams = call.streams
    if rights is not Sudo.FREE:
        if "n non-interactive" in given:
            raise Usage("sudo: a password is required")
        if "S stdin" not in given:
            raise Usage(
                "sudo: a terminal is required to read the password; "
                "either use the -S option to read from standard "
                "input or configure an askpass helper\nsudo: a password is required"
            )
        rest = await _ask(call, given.get("p prompt", f"[sudo] password for {call.user.name}: "))
        if rest is None:
            return 1
        if rights is Sudo.NEVER:
            raise Usage(f"{call.user.name} is not in the sudoers file.")
        streams = _Pushed(streams, rest)
    if "v" in given:
        return 0
    if "l list" in given:
        return _list(call, given.operands)
    program = given.operands[0]
    if call.machine.program_path(program) is None:
        raise Usage(f"sudo: {program}: command not found")
    inner = Call(call.machine, target if target is not ROOT else ROOT, given.operands, streams, call.cwd)
    return await call.machine.run(inner)


async def _ask(call: Call, prompt: str) -> bytes | None:
    """Ask for the password; what was read behind it, or None after it was wrong."""
    pending, ended = b"", False
    for attempt in range(1, TRIES + 1):
        call.streams.err(prompt.encode())
        while b"\n" not in pending and not ended:
            piece = await call.streams.read()
            pending += piece
            ended = not piece
        line, newline, pending = pending.partition(b"\n")
        if not newline and not line:
            call.err("\nsudo: no password was provided")
            wrong = attempt - 1
            s = "s" if wrong > 1 else ""
            call.err(
                f"sudo: {wrong} incorrect password attempt{s}" if wrong else "sudo: a password is required"
            )
            return None
        if line == ASKER_PASSWORD.encode() and call.user.sudo is Sudo.ASKS:
            return pending
        if attempt < TRIES:
            call.err("Sorry, try again.")
    call.err(f"sudo: {TRIES} incorrect password attempts")
    return None


def _list(call: Call, command: tuple[str, ...]) -> int:
    if command:
        path = call.machine.program_path(command[0])
        if path is None:
            raise Usage(f"sudo: {command[0]}: command not found")
        call.out(" ".join((path, *command[1:])) + "\n")
        return 0
    rights = "ALL" if call.user.is_root else call.user.sudo.value
    call.out(
        f"Matching Defaults entries for {call.user.name} on {call.machine.hostname}:\n"
        "    env_reset, mail_badpass,\n"
        "    secure_path=/usr/local/sbin\\:/usr/local/bin\\:/usr/sbin\\:/usr/bin\\:/sbin\\:/bin, use_pty\n\n"
        f"User {call.user.name} may run the following commands on {call.machine.hostname}:\n"
        f"    (ALL : ALL) {rights}\n"
    )
    return 0
