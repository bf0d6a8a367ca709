"""Running commands, whatever carries them: markers, stdin, time limits, sudo, batches, the command log.

`CommandHost` is what the SSH host and the local host share. A transport only has to open a process for a
command string (`_open`); everything a command needs besides is here, once.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ddtui.host import shell
from ddtui.host.base import (
    Asker,
    Command,
    CommandFailed,
    Completed,
    HostError,
    Link,
    LinkLost,
    LoggedCommand,
    NotPermitted,
)
from ddtui.host.command_log import Report, last_words, title
from ddtui.host.converse import Process, Prompt, WrongAnswer, converse, feed, keep_tail
from ddtui.host.sudo import Password, Refusal, denied, refusal

SLOTS = 4  # commands at a time; with the followers well under sshd's MaxSessions of 10
FOLLOWERS = 3
LINE_LIMIT = 16 * 1024 * 1024  # bytes of one followed line; what is beyond comes as a line of its own
NOISE_LIMIT = 1024 * 1024  # bytes that start-up files may print before the marker


class CommandHost(ABC):
    """Runs commands for `Host`."""

    name: str

    def __init__(self, name: str, asker: Asker) -> None:
        self.name = name
        self._asker = asker
        self._slots = asyncio.Semaphore(SLOTS)
        self._followers = 0
        self._password = Password(asker, name)
        self._sudo_wants_terminal = False
        self._is_root = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._link_callbacks: list[Callable[[Link], None]] = []
        self._command_callbacks: list[Callable[[LoggedCommand], None]] = []

    # -- what a transport gives ----------------------------------------------------------------------------
    @abstractmethod
    async def _open(self, command: str, *, terminal: bool = False) -> Process:
        """Start the command string in the login shell. Raises Unreachable, LinkLost, HostError."""

    # -- callbacks -----------------------------------------------------------------------------------------
    def on_link(self, callback: Callable[[Link], None]) -> Callable[[], None]:
        """Call back at every change of the link. Returns the function that ends it."""
        return _register(self._link_callbacks, callback)

    def on_command(self, callback: Callable[[LoggedCommand], None]) -> Callable[[], None]:
        """Call back after every command that was run."""
        return _register(self._command_callbacks, callback)

    # -- run -----------------------------------------------------------------------------------------------
    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        sudo: bool = False,
        timeout: float = 30.0,
        secret: bool = False,
    ) -> Completed:
        command = Command(tuple(argv), sudo, stdin, secret)
        return await (self._run_as_root if sudo else self._run_plain)(command, timeout)

    async def batch(self, commands: Sequence[Command], *, timeout: float = 30.0) -> list[Completed]:
        """Run several commands, one after another, in one round trip. None of them may have stdin.

        A sudo that asks for a password or a terminal takes round trips of its own, in the same order. One
        that is not allowed at all gives exit code 1 and why on stderr; the others still run.
        """
        if any(command.stdin is not None for command in commands):
            raise ValueError("a command of a batch cannot have stdin")
        results: list[Completed] = []
        while len(results) < len(commands):
            rest = commands[len(results) :]
            if rest[0].sudo and not self._is_root and self._sudo_wants_terminal:
                results.append(await self._denial_as_result(rest[0], timeout))
                continue
            done = await self._run_some(rest, timeout)
            last = len(results) + len(done) - 1
            results += done
            if commands[last].sudo and refusal(done[-1]) in (Refusal.PASSWORD, Refusal.TERMINAL):
                results[last] = await self._denial_as_result(commands[last], timeout)
        return results

    async def _run_plain(
        self, command: Command, timeout: float, words: tuple[str, ...] | None = None
    ) -> Completed:
        """Run it, as `words` if they are given: the command with what grants it root's rights before it."""
        marker = shell.new_marker()
        string = shell.encode(shell.Script(marker, (words or command.argv,), single=True))
        with self._logged([command]) as log:
            async with self._process(string) as process:
                code, out, err = await self._converse(
                    process, marker, log.title, timeout, stdin=command.stdin or b""
                )
            return log.done(0, code, self._after(marker, out, err), shell.after_marker(marker, err) or b"")

    async def _run_some(self, commands: Sequence[Command], timeout: float) -> list[Completed]:
        """As many of the commands, from the first on, as fit one string; fewer if a sudo is refused."""
        argvs = [
            ("sudo", "-n", "--", *command.argv) if command.sudo and not self._is_root else command.argv
            for command in commands
        ]
        script = next(shell.portions(argvs))
        sent = list(commands[: len(script.commands)])
        with self._logged(sent) as log:
            async with self._process(shell.encode(script)) as process:
                code, out, err = await self._converse(process, script.marker, log.title, timeout)
            self._after(script.marker, out, err)
            outputs = shell.split_outputs(script.marker, out, err)
            results: list[Completed] = []
            for at, (exit_code, stdout, stderr) in enumerate(outputs):
                results.append(log.done(at, exit_code, stdout, stderr))
                through_sudo = script.commands[at][0] == "sudo"
                if through_sudo and refusal(results[-1]) in (Refusal.PASSWORD, Refusal.TERMINAL):
                    log.not_run()  # what came behind
                    return results
            if len(results) < len(sent):
                missed = title(sent[len(results)].argv)
                raise CommandFailed(
                    f"the shell on {self.name} ended with {code} before `{missed}`: {last_words(err)}"
                )
            return results

    async def _denial_as_result(self, command: Command, timeout: float) -> Completed:
        try:
            return await self._run_as_root(command, timeout)
        except NotPermitted as error:
            return Completed(command.argv, 1, b"", f"sudo: {error}\n".encode(), 0.0)

    # -- as root -------------------------------------------------------------------------------------------
    async def _run_as_root(self, command: Command, timeout: float) -> Completed:
        if self._is_root:
            return await self._run_plain(command, timeout)
        if not self._sudo_wants_terminal:
            done = await self._run_plain(command, timeout, ("sudo", "-n", "--", *command.argv))
            match refusal(done):
                case None:
                    return done
                case Refusal.PASSWORD:
                    return await self._run_with_password(command, timeout)
                case Refusal.TERMINAL:
                    self._sudo_wants_terminal = True
                case _:
                    raise denied(self.name, command.argv, done)
        return await self._run_on_terminal(command, timeout)

    async def _run_with_password(self, command: Command, timeout: float) -> Completed:
        if not self._password.known:
            listed = await self._run_plain(Command(("sudo", "-n", "-l", "--", *command.argv)), timeout)
            if not listed.ok and refusal(listed) not in (Refusal.PASSWORD, Refusal.TERMINAL):
                raise denied(self.name, command.argv, listed)  # the password would not help
        password = await self._password.get()
        mark = f"ddtui-{secrets.token_hex(8)}:"
        marker = shell.new_marker()
        argv = ("sudo", "-k", "-S", "-p", mark, "--", *command.argv)
        string = shell.encode(shell.Script(marker, (argv,), single=True))
        with self._logged([command]) as log:
            async with self._process(string) as process:
                try:
                    code, out, err = await self._converse(
                        process,
                        marker,
                        log.title,
                        timeout,
                        stdin=command.stdin or b"",
                        prompt=Prompt(mark.encode(), password.encode() + b"\n"),
                    )
                except WrongAnswer:
                    raise self._password.wrong() from None
            errors = (shell.after_marker(marker, err) or b"").replace(mark.encode(), b"", 1)
            done = log.done(0, code, self._after(marker, out, err), errors)
        if refusal(done):
            raise denied(self.name, command.argv, done)
        return done

    async def _run_on_terminal(self, command: Command, timeout: float) -> Completed:
        for ask in (False, True):
            done = await self._try_on_terminal(command, timeout, ask=ask)
            why = refusal(done)
            if why is None:
                return done
            if why is not Refusal.PASSWORD:
                break
        raise denied(self.name, command.argv, done)

    async def _try_on_terminal(self, command: Command, timeout: float, *, ask: bool) -> Completed:
        marker, mark = shell.new_marker(), f"ddtui-{secrets.token_hex(8)}:"
        payload = base64.b64encode(command.stdin or b"")
        prompt = Prompt(mark.encode(), (await self._password.get()).encode() + b"\n") if ask else None
        head = ("sudo", "-k", "-p", mark, "--") if ask else ("sudo", "-n", "--")
        string = shell.encode_on_terminal(marker, (*head, *command.argv), len(payload))
        with self._logged([command]) as log:
            async with self._process(string, terminal=True) as process:
                try:
                    code, out, _ = await self._converse(
                        process, marker, log.title, timeout, stdin=payload, prompt=prompt, terminal=True
                    )
                except WrongAnswer:
                    raise self._password.wrong() from None
            split = shell.split_terminal(marker, out)
            if split is None:
                raise CommandFailed(
                    f"`{log.title}` on a terminal of {self.name} ended with {code}: {last_words(out)}"
                )
            return log.done(0, split[0], split[1].replace(mark.encode() + b"\n", b"", 1), split[2])

    # -- follow --------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def follow(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        pulse: float | None = None,
        sudo: bool = False,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if self._followers >= FOLLOWERS:
            raise HostError(f"ddtui follows no more than {FOLLOWERS} commands at a time on one host")
        self._followers += 1
        try:
            command = Command(tuple(argv), sudo)
            words = ("sudo", "-n", "--", *argv) if sudo and not self._is_root else tuple(argv)
            marker = shell.new_marker()
            with self._logged([command]) as log:
                process = await self._open(shell.encode(shell.Script(marker, (words,), single=True)))
                errors = bytearray()
                reader = asyncio.create_task(keep_tail(process.read_error, errors))
                feeder = asyncio.create_task(feed(process, stdin or b"", pulse))
                try:
                    yield _Lines(self, process, marker, log, errors, reader)
                finally:
                    reader.cancel()
                    feeder.cancel()
                    await self._ended(process)
        finally:
            self._followers -= 1

    # -- processes -----------------------------------------------------------------------------------------
    @asynccontextmanager
    async def _process(self, string: str, *, terminal: bool = False) -> AsyncIterator[Process]:
        """A process in one of the slots. However it is left, it is ended before the slot is free again."""
        await self._slots.acquire()
        try:
            process = await self._open(string, terminal=terminal)
        except BaseException:
            self._slots.release()
            raise
        try:
            yield process
        finally:
            await self._ended(process, self._slots.release)

    async def _ended(self, process: Process, then: Callable[[], None] | None = None) -> None:
        """See to the process's end, also if we are cancelled meanwhile."""

        async def end() -> None:
            try:
                await process.end()
            finally:
                if then:
                    then()

        await asyncio.shield(self._spawn(end()))

    async def _finish(self) -> None:
        """Wait for the processes that are being ended."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=5)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            context = {"message": f"ddtui: host {self.name}", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _converse(
        self,
        process: Process,
        marker: str,
        title: str,
        timeout: float,
        *,
        stdin: bytes = b"",
        prompt: Prompt | None = None,
        terminal: bool = False,
    ) -> tuple[int, bytes, bytes]:
        """`converse` with a time limit. Raises TimeoutError, LinkLost."""
        try:
            async with asyncio.timeout(timeout):
                code, out, err = await converse(process, marker, stdin, prompt=prompt, terminal=terminal)
        except TimeoutError:
            raise TimeoutError(f"`{title}` on {self.name} did not end within {timeout:g} s") from None
        if code is None:
            raise LinkLost(
                f"the link to {self.name} broke while `{title}` ran",
                "Whether it took effect is not known; what it was to change is looked at again.",
            )
        return code, out, err

    def _after(self, marker: str, out: bytes, err: bytes) -> bytes:
        rest = shell.after_marker(marker, out)
        if rest is None:
            raise self.no_marker(out, err)
        return rest

    def no_marker(self, out: bytes, err: bytes) -> NotPermitted:
        """The error for an account whose shell did not run what it was given."""
        return NotPermitted(
            f"the account on {self.name} does not run commands; it said: {last_words(err or out)}",
            "Its login shell may be nologin, or sshd may force another command for this key.",
        )

    def _logged(self, commands: Sequence[Command]) -> Report:
        return Report(tuple(commands), self._command_callbacks)


class _Lines(AsyncIterator[bytes]):
    """The lines of a followed command. A wait for the next one may be cancelled; nothing is lost by it."""

    def __init__(
        self,
        host: CommandHost,
        process: Process,
        marker: str,
        log: Report,
        errors: bytearray,
        reader: asyncio.Task[None],
    ) -> None:
        self._host, self._process, self._marker, self._log = host, process, marker, log
        self._errors, self._reader = errors, reader
        self._seen = False  # the marker
        self._ended = False
        self._pending = bytearray()
        self._ready: deque[bytes] = deque()

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            data = await self._process.read()
            if data:
                self._take(data)
            else:
                await self._end()
        return self._ready.popleft()

    def _take(self, data: bytes) -> None:
        self._pending += data
        if not self._seen:
            rest = shell.after_marker(self._marker, bytes(self._pending))
            if rest is None and len(self._pending) < NOISE_LIMIT:
                return
            if rest is None:
                raise self._host.no_marker(bytes(self._pending), bytes(self._errors))
            self._seen, self._pending = True, bytearray(rest)
        elif b"\n" not in data and len(self._pending) < LINE_LIMIT:
            return
        *lines, last = bytes(self._pending).split(b"\n")
        if len(last) >= LINE_LIMIT:
            lines.append(last)
            last = b""
        self._pending = bytearray(last)
        self._ready.extend(lines)

    async def _end(self) -> None:
        """The command ended by itself, or the link broke."""
        code = await self._process.exit_code()
        name, title = self._host.name, self._log.title
        if code is None:
            raise LinkLost(f"the link to {name} broke while `{title}` ran")
        await asyncio.wait({self._reader}, timeout=1)
        said = shell.after_marker(self._marker, bytes(self._errors)) or bytes(self._errors)
        done = self._log.done(0, code, b"", said)
        self._ended = True
        if not self._seen:
            raise self._host.no_marker(bytes(self._pending), bytes(self._errors))
        if refusal(done):
            raise denied(name, self._log.commands[0].argv, done)
        if code:
            raise CommandFailed(f"`{title}` on {name} ended with exit code {code}: {last_words(said)}")
        if self._pending:
            self._ready.append(bytes(self._pending))


def _register(callbacks: list[Callable[[Any], None]], callback: Callable[[Any], None]) -> Callable[[], None]:
    callbacks.append(callback)

    def end() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return end
