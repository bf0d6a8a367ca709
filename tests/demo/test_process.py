"""The demo host as users have it: a process of its own, reached over SSH, that leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from ddtui import locations
from ddtui.demo import launch
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.launch import Access, DemoHost
from ddtui.demo.process import Standin
from ddtui.demo.processes import Process
from ddtui.host import shell

UNIT = "sglang-k26-ddtree.service"


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoHost]:
    with launch.start() as host:
        yield host


@asynccontextmanager
async def connected(access: Access, user: str = "tuner") -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with asyncssh.connect(
        access.host,
        access.port,
        username=user,
        client_keys=[str(access.identity_file)],
        known_hosts=str(access.known_hosts),
        config=None,
        agent_path=None,
    ) as connection:
        yield connection


async def run(
    connection: asyncssh.SSHClientConnection, *argv: str, stdin: bytes = b""
) -> tuple[int | None, str, str]:
    script = shell.Script(shell.new_marker(), (argv,), single=True)
    done = await connection.run(shell.encode(script), input=stdin, encoding=None)
    assert isinstance(done.stdout, bytes) and isinstance(done.stderr, bytes)
    out = shell.after_marker(script.marker, done.stdout)
    err = shell.after_marker(script.marker, done.stderr)
    assert out is not None and err is not None
    return done.exit_status, out.decode(), err.decode()


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether the process ends within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def processes_of(state: Path) -> list[int]:
    """Pids of this machine whose environment or command line names the folder."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(state) in text and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


async def test_the_shipped_profile_leads_to_a_running_and_ready_server(demo: DemoHost) -> None:
    assert demo.profile.simulated
    assert demo.profile.connection.port == demo.access.port
    async with connected(demo.access) as connection:
        code, out, _ = await run(
            connection,
            "systemctl",
            "show",
            UNIT,
            "-p",
            "ActiveState,NRestarts,Result,ActiveEnterTimestampMonotonic",
        )
        assert code == 0
        shown = dict(line.split("=", 1) for line in out.splitlines())
        assert (shown["ActiveState"], shown["NRestarts"], shown["Result"]) == ("active", "0", "success")
        _, uptime, _ = await run(connection, "cat", "/proc/uptime")
        up = float(uptime.split()[0]) - int(shown["ActiveEnterTimestampMonotonic"]) / 1e6
        assert 2 * 3600 < up < 3 * 3600  # the server seems to have been up for hours
        reader, writer = await connection.open_connection("127.0.0.1", 30000)
        writer.write(b"GET /model_info HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200")


async def test_the_start_at_boot_lies_in_the_past_and_its_lines_agree_with_the_journal(
    demo: DemoHost,
) -> None:
    async with connected(demo.access) as connection:
        _, out, _ = await run(connection, "journalctl", "-u", UNIT, "-o", "json", "-a", "--no-pager")
    boot = [json.loads(line) for line in out.splitlines()]
    ready = next(i for i, e in enumerate(boot) if "fired up and ready to roll" in str(e["MESSAGE"]))
    times = [int(entry["__REALTIME_TIMESTAMP"]) / 1e6 for entry in boot[: ready + 1]]
    assert times == sorted(times)
    assert time.time() - times[-1] > 2 * 3600
    for entry, at in zip(boot, times, strict=False):
        message = entry["MESSAGE"]
        if isinstance(message, str) and message.startswith("[20"):
            assert (
                abs(time.mktime(time.strptime(message[1:20], "%Y-%m-%d %H:%M:%S")) - time.timezone - at) < 2.5
            )


async def test_ports_other_than_the_servers_are_refused_as_by_a_real_sshd(demo: DemoHost) -> None:
    async with connected(demo.access) as connection:
        with pytest.raises(asyncssh.ChannelOpenError) as refused:
            await connection.open_connection("127.0.0.1", 30001)
        assert refused.value.code == asyncssh.OPEN_CONNECT_FAILED
        with pytest.raises(asyncssh.ChannelOpenError) as elsewhere:
            await connection.open_connection("example.org", 80)
        assert elsewhere.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED


async def test_the_eleventh_session_of_a_connection_is_refused_and_the_link_lives(demo: DemoHost) -> None:
    async with connected(demo.access) as connection:
        sleeping = [await connection.create_process("sleep 1000") for _ in range(10)]
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process("sleep 1000")
        for process in sleeping:
            process.terminate()
        for process in sleeping:
            await process.wait()
        assert (await run(connection, "true"))[0] == 0


async def test_a_signal_ends_a_command(demo: DemoHost) -> None:
    async with connected(demo.access) as connection:
        process = await connection.create_process("sleep 1000")
        process.terminate()
        done = await process.wait()
        assert done.exit_signal is not None and done.exit_signal[0] == "TERM"


@pytest.mark.parametrize(
    ("user", "argv", "stdin", "expected"),
    [
        ("tuner", ("sudo", "-n", "--", "id", "-u"), b"", (0, "0\n", "")),
        ("root", ("sudo", "-n", "--", "id", "-u"), b"", (0, "0\n", "")),
        ("limited", ("sudo", "-n", "--", "id", "-u"), b"", (1, "", "sudo: a password is required\n")),
        ("asker", ("sudo", "-n", "--", "id", "-u"), b"", (1, "", "sudo: a password is required\n")),
        (
            "asker",
            ("sudo", "-k", "-S", "-p", "M:", "--", "cat"),
            b"correct horse\nrest\n",
            (0, "rest\n", "M:"),
        ),
        (
            "asker",
            ("sudo", "-k", "-S", "-p", "M:", "--", "cat"),
            b"wrong\n",
            (
                1,
                "",
                "M:Sorry, try again.\nM:\nsudo: no password was provided\nsudo: 1 incorrect password attempt\n",
            ),
        ),
        ("tuner", ("sudo", "-n", "-l", "--", "systemctl", "x"), b"", (0, "/usr/bin/systemctl x\n", "")),
        ("tuner", ("sudo", "-n", "--", "nosuch"), b"", (1, "", "sudo: nosuch: command not found\n")),
    ],
)
async def test_sudo_asks_allows_and_refuses(
    demo: DemoHost, user: str, argv: tuple[str, ...], stdin: bytes, expected: tuple[int, str, str]
) -> None:
    async with connected(demo.access, user) as connection:
        assert await run(connection, *argv, stdin=stdin) == expected


async def test_a_batch_ends_at_a_sudo_that_wants_a_password(demo: DemoHost) -> None:
    script = shell.Script(
        shell.new_marker(), (("id", "-u"), ("sudo", "-n", "--", "true"), ("id", "-u")), single=False
    )
    async with connected(demo.access, "asker") as connection:
        done = await connection.run(shell.encode(script), encoding=None)
    assert isinstance(done.stdout, bytes) and isinstance(done.stderr, bytes)
    assert shell.split_outputs(script.marker, done.stdout, done.stderr) == [
        (0, b"1002\n", b""),
        (1, b"", b"sudo: a password is required\n"),
    ]


async def test_start_up_files_that_print_come_before_the_marker(demo: DemoHost) -> None:
    script = shell.Script(shell.new_marker(), (("id", "-un"),), single=True)
    async with connected(demo.access, "noisy") as connection:
        done = await connection.run(shell.encode(script), encoding=None)
    assert isinstance(done.stdout, bytes)
    assert done.stdout.startswith(b"Welcome")
    assert shell.after_marker(script.marker, done.stdout) == b"noisy\n"


async def test_python_on_the_host_sees_the_hosts_paths_and_reaches_its_server(demo: DemoHost) -> None:
    text = b"""
import http.client, importlib.util, json, os, sys
sys.path.insert(0, sys.argv[1])
connection = http.client.HTTPConnection("127.0.0.1", 30000, timeout=10)
connection.request("GET", "/model_info")
try:
    http.client.HTTPConnection("127.0.0.1", 1, timeout=10).request("GET", "/")
except ConnectionRefusedError:
    refused = True
print(json.dumps([sys.executable, importlib.util.find_spec("sglang").origin, connection.getresponse().status, refused]))
"""
    async with connected(demo.access) as connection:
        code, out, err = await run(connection, "/usr/bin/python3", "-", "/opt/sglang", stdin=text)
    assert (code, err) == (0, "")
    assert json.loads(out) == ["/usr/bin/python3", "/opt/sglang/sglang/__init__.py", 200, True]


async def test_a_restart_takes_a_while_and_the_port_refuses_meanwhile(demo: DemoHost) -> None:
    async with connected(demo.access) as connection:
        code, _, err = await run(connection, "sudo", "-n", "--", "systemctl", "restart", UNIT)
        assert (code, err) == (0, "")
        with pytest.raises(asyncssh.ChannelOpenError) as refused:
            await connection.open_connection("127.0.0.1", 30000)
        assert refused.value.code == asyncssh.OPEN_CONNECT_FAILED
        async with asyncio.timeout(60):
            seen_used: set[str] = set()
            while True:
                _, used, _ = await run(
                    connection,
                    "nvidia-smi",
                    "--query-gpu=memory.used",
                    "--format=csv,noheader,nounits",
                    "-i",
                    "0",
                )
                seen_used.add(used)
                _, listening, _ = await run(connection, "ss", "-ltnH")
                if "127.0.0.1:30000" in listening:
                    break
        assert len(seen_used) > 3  # memory fills while it loads
        _, writer = await connection.open_connection("127.0.0.1", 30000)
        writer.close()


@linux
def test_it_ends_with_its_launchers_stdin_and_leaves_nothing() -> None:
    with launch.start() as host:
        state = host.access.root.parent
        pids = processes_of(state)
        assert host.access.pid in pids
        assert len(pids) > 1  # the stand-in
    assert all(gone(pid) for pid in pids)
    assert not state.exists()


@linux
def test_it_ends_when_its_launcher_is_killed_and_leaves_nothing(tmp_path: Path) -> None:
    code = "from ddtui.demo import launch; s = launch.Starting(); print(s.ready().access.root, flush=True); input()"
    launcher = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdout is not None
    state = Path(launcher.stdout.readline().strip()).parent
    pids = [pid for pid in processes_of(state) if pid != launcher.pid]
    assert len(pids) > 1
    launcher.kill()
    launcher.wait()
    assert all(gone(pid) for pid in pids)
    assert not state.exists()


@linux
def test_the_server_ends_even_if_the_host_itself_is_killed(tmp_path: Path) -> None:
    with launch.start() as host:
        pids = processes_of(host.access.root.parent)
        os.kill(host.access.pid, signal.SIGKILL)
        assert all(gone(pid) for pid in pids)


@linux
def test_sigterm_ends_it(tmp_path: Path) -> None:
    with launch.start() as host:
        pids = processes_of(host.access.root.parent)
        os.kill(host.access.pid, signal.SIGTERM)
        assert all(gone(pid) for pid in pids)


async def test_a_kept_host_is_found_again_as_after_a_reboot() -> None:
    with launch.start(keep=True) as host:
        async with connected(host.access) as connection:
            await run(connection, "sudo", "-n", "--", "tee", "--", "/etc/note", stdin=b"kept\n")
            _, first_boot, _ = await run(connection, "cat", "/proc/sys/kernel/random/boot_id")
            _, out, _ = await run(connection, "journalctl", "-u", UNIT, "-n", "1", "-o", "json")
            cursor = json.loads(out)["__CURSOR"]
    assert (locations.state_dir() / "demo/root/etc/note").read_text() == "kept\n"
    with launch.start(keep=True) as host:
        async with connected(host.access) as connection:
            assert await run(connection, "cat", "/etc/note") == (0, "kept\n", "")
            assert (await run(connection, "stat", "-c", "%U %a", "/etc/note"))[1] == "root 644\n"
            assert (await run(connection, "cat", "/proc/sys/kernel/random/boot_id"))[1] != first_boot
            _, out, _ = await run(
                connection, "journalctl", "-u", UNIT, "-o", "json", "-a", f"--after-cursor={cursor}"
            )
            later = [json.loads(line) for line in out.splitlines()]
            assert len({entry["_BOOT_ID"] for entry in later}) == 1
            assert any("Started" in str(entry["MESSAGE"]) for entry in later)
            _, listed, _ = await run(connection, "journalctl", "--list-boots")
            assert len(listed.splitlines()) == 3


async def test_a_second_launcher_attaches_to_a_kept_host_and_outlives_the_first() -> None:
    first = launch.Starting(keep=True)
    one = first.ready()
    second = launch.Starting(keep=True)
    two = second.ready()
    assert (one.attached, two.attached) == (False, True)
    assert one.access == two.access
    first.end()
    async with connected(two.access) as connection:
        assert (await run(connection, "id", "-un"))[1] == "tuner\n"
    second.end()
    assert gone(one.access.pid)


def test_a_kept_host_that_was_killed_starts_again(tmp_path: Path) -> None:
    with launch.start(keep=True) as host:
        os.kill(host.access.pid, signal.SIGKILL)
    with launch.start(keep=True) as again:
        assert not again.attached
        assert again.access.pid != host.access.pid


async def test_a_slow_link_takes_its_time_each_way() -> None:
    with launch.start(delay_ms=60) as host:
        async with connected(host.access) as connection:
            began = time.monotonic()
            await run(connection, "true")
            assert time.monotonic() - began > 0.12


async def test_a_new_hosts_journal_ends_with_traffic_of_a_minute_ago() -> None:
    began = time.time()
    with launch.start() as host:
        async with connected(host.access) as connection:
            _, out, _ = await run(
                connection, "journalctl", "-u", UNIT, "-o", "json", "-n", "20", "--no-pager"
            )
    entries = [json.loads(line) for line in out.splitlines()]
    assert sum("Decode batch" in entry["MESSAGE"] for entry in entries) > 5
    times = [int(entry["__REALTIME_TIMESTAMP"]) / 1e6 for entry in entries]
    last = max(at for at in times if at < began)  # since then its traffic goes on
    assert 55 < began - last < 120
    decode = next(entry for entry in entries if "Decode batch" in entry["MESSAGE"])
    assert (decode["_COMM"], decode["SYSLOG_IDENTIFIER"]) == ("sglang::schedul", "python3")


async def test_single_commands_can_be_typed_by_hand_and_a_shell_is_refused_with_a_word(
    demo: DemoHost,
) -> None:
    async with connected(demo.access) as connection:
        assert (await connection.run("uname -n")).stdout == "demo\n"
        composed = await connection.run("id | cat")
        assert composed.exit_status == 2
        assert "only single commands" in str(composed.stderr)
        shell_asked = await connection.run(None, input="")
        assert "Everything on it is simulated" in str(shell_asked.stdout)


async def test_a_script_on_the_host_is_ended_by_its_pid(demo: DemoHost) -> None:
    script = shell.Script(shell.new_marker(), (("python3", "-"),), single=True)
    text = b"import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    async with connected(demo.access) as connection:
        process = await connection.create_process(shell.encode(script), encoding=None)
        process.stdin.write(text)
        process.stdin.write_eof()
        assert await process.stdout.readline() == script.marker.encode() + b"\n"
        pid = (await process.stdout.readline()).decode().strip()
        assert await run(connection, "kill", "-TERM", "--", pid) == (0, "", "")
        done = await process.wait()
        assert done.exit_status == 128 + signal.SIGTERM


async def test_passwords_open_nothing(demo: DemoHost) -> None:
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            demo.access.host,
            demo.access.port,
            username="asker",
            password=demo.access.asker_password,
            client_keys=None,
            known_hosts=str(demo.access.known_hosts),
            config=None,
            agent_path=None,
        )


def test_the_starters_switches_reach_the_server_and_the_units_own_come_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_STANDIN_FAIL", "oom")
    monkeypatch.setenv("SGLANG_STANDIN_SPEED", "4")
    files = Filesystem(tmp_path / "root", tmp_path / "metadata.json")
    own = {"SGLANG_STANDIN_SPEED": "2"}
    process = Process(1, 1, ("python3",), "python3", 0, 0, 0.0, "/", environment=own)
    given = Standin(files, tmp_path / "socket", lambda: False).environment(process)
    assert (given["SGLANG_STANDIN_FAIL"], given["SGLANG_STANDIN_SPEED"]) == ("oom", "2")
