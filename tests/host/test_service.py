"""Reading what systemctl, busctl, /proc, ls, stat and nvidia-smi print."""

from __future__ import annotations

import json

import pytest

from ddtui.host import fetch, gpu, processes, service
from ddtui.host.base import CommandFailed, Completed
from ddtui.host.processes import Clock
from ddtui.host.unit.tree import Wanted
from ddtui.profile import Service


def done(stdout: str | bytes = b"", code: int = 0, stderr: str = "") -> Completed:
    out = stdout.encode() if isinstance(stdout, str) else stdout
    return Completed(("x",), code, out, stderr.encode(), 0.0)


# -- systemctl show ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Mon 2026-11-30 12:01:07.250000 UTC", 1796040067.25),
        ("Mon 2026-11-30 12:01:07 UTC", 1796040067.0),
        ("@1796040067", 1796040067.0),
        ("", None),
        ("n/a", None),
        ("Mon 2026-11-30 12:01:07 CET", None),  # which CET it is cannot be known
    ],
)
def test_times_are_read_as_unix_seconds(text: str, seconds: float | None) -> None:
    assert service.parse_time(text) == seconds


def test_properties_that_come_more_than_once_and_over_lines_are_kept() -> None:
    shown = service.parse_show("ExecStart={ a }\nExecStart={ b }\nStatusText=x\ny z\nMainPID=5\n")
    assert shown == {"ExecStart": "{ a }\n{ b }", "StatusText": "x\ny z", "MainPID": "5"}


async def test_a_status_is_read_whole() -> None:
    class Asked:
        name = "gpu1"

        async def run(self, argv: tuple[str, ...], **_: object) -> Completed:
            assert argv[:3] == ("systemctl", "show", "s.service") and "--no-pager" in argv
            return done(
                "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nNRestarts=3\n"
                "MainPID=0\nExecMainCode=1\nExecMainStatus=2\nNeedDaemonReload=yes\nFragmentPath=/etc/s.service\n"
                'DropInPaths="/etc/s.service.d/a b.conf" /etc/s.service.d/c.conf\nLoadError=\n'
            )

    status = await service.read_status(Asked(), Service(unit="s.service"))  # type: ignore[arg-type]
    assert status.exists and not status.running
    assert (status.n_restarts, status.exec_main_status, status.need_daemon_reload) == (3, 2, True)
    assert status.drop_in_paths == ("/etc/s.service.d/a b.conf", "/etc/s.service.d/c.conf")
    assert status.load_error is None and status.active_enter is None


async def test_a_host_without_systemd_says_so() -> None:
    class Asked:
        name = "gpu1"

        async def run(self, argv: tuple[str, ...], **_: object) -> Completed:
            return done("", 127, "sh: 1: systemctl: not found")

    with pytest.raises(CommandFailed, match="no systemctl"):
        await service.read_status(Asked(), Service(unit="s.service"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("sglang.service", "sglang_2eservice"),
        ("sglang-k26@a.service", "sglang_2dk26_40a_2eservice"),
        ("9x_y.service", "_39x_5fy_2eservice"),
        ("é.service", "_c3_a9_2eservice"),
    ],
)
def test_units_have_systemds_own_path_on_the_bus(name: str, label: str) -> None:
    assert service.bus_label(name) == label


# -- processes -----------------------------------------------------------------------------------------------
def proc(
    pid: int, argv: list[str], *, parent: int = 1, start: int = 100, environ: bytes | None = None
) -> list[Completed]:
    stat = f"{pid} (a ) b) S {parent} " + " ".join(["0"] * 17) + f" {start} 0 0\n"
    return [
        done("".join(a + "\0" for a in argv)),
        done(stat),
        done("1001\n"),
        done("/srv\n"),
        done("/opt/venv/bin/python3.12 (deleted)\n"),
        done(environ) if environ is not None else done("", 1, "cat: Permission denied"),
    ]


SERVER = ["/opt/venv/bin/python3", "-m", "sglang.launch_server", "--tp", "8"]
CLOCK = Clock(now=1000.0, uptime=50.0, ticks=100)


def found(*listed: tuple[int, list[str], int], main: int = 0, expected: list[str] | None = None) -> object:
    answers = [a for pid, argv, parent in listed for a in proc(pid, argv, parent=parent)]
    process, _ = processes.read([pid for pid, _, _ in listed], answers, CLOCK, main, expected)
    return process


def test_the_server_is_told_from_its_shell_and_its_children() -> None:
    process = found(
        (10, ["/bin/bash", "-c", "python3 -m sglang.launch_server --tp 8"], 1),
        (11, SERVER, 10),
        (
            12,
            ["/opt/venv/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(29)"],
            11,
        ),
        (13, ["sglang::scheduler", "", "", ""], 11),
        (14, SERVER, 11),
        main=10,
    )
    assert isinstance(process, processes.ServerProcess)
    assert (process.pid, process.main, process.others, process.engine) == (11, False, 4, "sglang")
    assert process.argv == tuple(SERVER)
    assert process.started_at == 1000.0 - (50.0 - 1.0)
    assert (process.cwd, process.executable, process.user) == ("/srv", "/opt/venv/bin/python3.12", 1001)
    assert process.environment is None


def test_of_two_servers_the_units_own_is_taken() -> None:
    other = [*SERVER[:-1], "4"]
    assert getattr(found((10, other, 1), (11, SERVER, 1), expected=SERVER), "pid", None) == 11
    assert getattr(found((10, other, 1), (11, SERVER, 1)), "pid", None) == 10


def test_no_server_is_no_process() -> None:
    assert found((10, ["/usr/bin/docker", "run", "img", "python3", "-m", "sglang.launch_server"], 1)) is None


def test_a_console_script_has_the_units_arguments() -> None:
    assert processes.arguments(["/v/bin/python", "/v/bin/sglang", "serve", "--tp", "8"]) == ("--tp", "8")
    assert processes.arguments(["/v/bin/sglang", "serve", "--tp", "8"]) == ("--tp", "8")


def test_only_names_of_the_environment_are_kept() -> None:
    answers = proc(10, SERVER, environ=b"HF_TOKEN=hf_secret\0A=1\0")
    process, environment = processes.read([10], answers, CLOCK, 10, None)
    assert process is not None and process.environment == ("A", "HF_TOKEN")
    assert environment == {"HF_TOKEN": "hf_secret", "A": "1"}


def test_empty_arguments_are_arguments() -> None:
    assert processes.split_cmdline(b"a\0\0b\0\0") == ("a", "", "b", "")
    assert processes.split_cmdline(b"") == ()


# -- fetching ------------------------------------------------------------------------------------------------
def test_what_a_tree_wants_comes_in_one_batch() -> None:
    wanted = Wanted(files={"/a", "/b"}, programs={"/p"}, folders={"/d", "/e"}, kinds={"/k"}, links={"/l"})
    request = fetch.Request.of(wanted)
    argvs = [c.argv for c in request.commands()]
    assert [a[0] for a in argvs] == ["stat", "head", "head", "head", "ls", "readlink"]
    answers = [
        done("5.250000000 regular file /a\n7.0 directory /k\n", 1),
        done("content"),
        done("", 1, "head: cannot open '/b' for reading: Permission denied"),
        done("#!/bin/sh"),
        done("/dev/null\n\n/d:\nx.conf\n/e:\ny:\n\n/e:\n", 2),
        done("../t\n"),
    ]
    got = request.read(answers)
    assert got.files == {"/a": b"content", "/b": None, "/p": b"#!/bin/sh"}
    assert got.denied == {"/b"}
    assert got.folders == {"/d": ("x.conf", "/e:", "y:"), "/e": ()}
    assert got.kinds == {"/k": "folder", "/a": "file", "/b": None, "/p": None}
    assert got.changed_at == {"/a": 5.25, "/k": 7.0}
    assert got.links == {"/l": "/t"}


# -- GPUs ----------------------------------------------------------------------------------------------------
def test_gpus_are_read_with_what_the_driver_does_not_say() -> None:
    reading = gpu.parse(
        [
            done(
                "0, GPU-a, NVIDIA H200, 143771, 120000, 97, 61, 512.33\n1, GPU-b, NVIDIA H200, 143771, 4, [N/A], 30, [Not Supported]\n"
            ),
            done("GPU-a, 4242, 119996\n"),
        ],
        "gpu1",
    )
    assert reading.problem is None and reading.memory_used_mib == 120004
    assert reading.gpus[0].power_w == 512.33 and reading.gpus[1].power_w is None
    assert reading.gpus[1].utilization is None
    assert reading.processes == (gpu.GpuProcess("GPU-a", 4242, 119996),)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (done("", 127), "gpu1 has no nvidia-smi, so its GPUs are not known"),
        (
            done("NVIDIA-SMI has failed because it couldn't communicate with the driver.\n", 9),
            "failed: NVIDIA-SMI has",
        ),
        (done("No devices were found\n", 6), "failed: No devices were found"),
        (done(""), "names no GPU"),
    ],
)
def test_why_gpus_are_not_known_is_told(answer: Completed, said: str) -> None:
    assert said in (gpu.parse([answer, done("")], "gpu1").problem or "")


def test_the_loaded_command_is_read_from_the_bus() -> None:
    lines = [
        json.dumps(
            {"type": "a(sasbttttuii)", "data": [["/p", ["/p", "a b", ""], False, 0, 0, 0, 0, 0, 0, 0]]}
        ),
        json.dumps({"type": "as", "data": ["A=1", "B=x=y"]}),
    ]
    assert service._loaded(done("\n".join(lines) + "\n")) == ((("/p", "a b", ""),), {"A": "1", "B": "x=y"})
    assert service._loaded(done("", 1)) == (None, None)
