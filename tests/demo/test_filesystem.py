"""Who may do what on the demo host's disk, which links lead where, and what is made up."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from demo.virtual_host import bare_files, run

from ddtui.demo.accounts import ROOT, USERS
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.machine import Machine

TUNER = USERS["tuner"]


@pytest.fixture
def files(tmp_path: Path) -> Filesystem:
    files = bare_files(tmp_path)
    files.make_dir("/etc")
    files.write("/etc/conf", b"root's")
    files.make_dir("/home")
    files.make_dir("/home/tuner")
    files.set_owner("/home/tuner", TUNER.uid, TUNER.gid)
    files.make_dir("/tmp", mode=0o1777)
    return files


def refused(number: int) -> pytest.RaisesExc[OSError]:
    return pytest.raises(OSError, check=lambda error: error.errno == number)


def test_a_user_writes_at_home_and_reads_what_all_may_read(files: Filesystem) -> None:
    files.write("/home/tuner/mine", b"x", user=TUNER)
    assert files.lookup("/home/tuner/mine").uid == TUNER.uid
    assert files.read("/etc/conf", user=TUNER) == b"root's"


@pytest.mark.parametrize("path", ["/etc/conf", "/etc/new"])
def test_a_user_writes_nowhere_else(files: Filesystem, path: str) -> None:
    with refused(errno.EACCES):
        files.write(path, b"x", user=TUNER)
    assert files.read("/etc/conf") == b"root's"


def test_a_file_closed_to_others_is_not_read_nor_what_lies_in_a_closed_folder(files: Filesystem) -> None:
    files.set_mode("/etc/conf", 0o640)
    with refused(errno.EACCES):
        files.read("/etc/conf", user=TUNER)
    files.set_owner("/etc/conf", None, 1000)
    assert files.read("/etc/conf", user=TUNER) == b"root's"
    files.set_mode("/etc", 0o700)
    with refused(errno.EACCES):
        files.read("/etc/conf", user=TUNER)


def test_in_a_sticky_folder_only_the_owner_removes(files: Filesystem) -> None:
    files.write("/tmp/root", b"")
    files.write("/tmp/mine", b"", user=TUNER)
    with refused(errno.EPERM):
        files.remove("/tmp/root", user=TUNER)
    files.remove("/tmp/mine", user=TUNER)


def test_owner_and_mode_move_with_a_file_and_last(files: Filesystem, tmp_path: Path) -> None:
    files.write("/etc/a", b"a")
    files.set_mode("/etc/a", 0o600)
    files.set_owner("/etc/a", 999, 999)
    files.rename("/etc/a", "/etc/b")
    again = Filesystem(files.root, files.metadata)
    node = again.lookup("/etc/b")
    assert (node.uid, node.gid, node.mode & 0o7777) == (999, 999, 0o600)
    again.write("/etc/a", b"new")
    assert again.lookup("/etc/a").uid == 0


def test_links_lead_within_the_host_only(files: Filesystem, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("not the host's")
    files.make_link(str(tmp_path / "outside"), "/etc/out")
    files.make_link("../../../../../../../../../..", "/etc/up")
    with refused(errno.ENOENT):
        files.read("/etc/out")
    assert files.list("/etc/up") == files.list("/")


async def test_proc_shows_the_service_to_its_owner_and_hides_its_environment_from_others(
    machine: Machine,
) -> None:
    assert (await run(machine, "cat", "/proc/1/comm")).out == "systemd\n"
    assert (await run(machine, "cat", "/proc/1/environ")).code == 1
    assert (await run(machine, "cat", "/proc/1/environ", user=ROOT)).code == 0
    assert "Permission denied" in (await run(machine, "cat", "/proc/1/io")).err
    stat = (await run(machine, "cat", "/proc/1/stat")).out.split()
    assert len(stat) == 52


async def test_the_sglang_tree_cannot_be_written_even_by_root(machine: Machine) -> None:
    done = await run(machine, "tee", "--", "/opt/sglang/x", stdin=b"x", user=ROOT)
    assert (done.code, done.err) == (1, "tee: /opt/sglang/x: Read-only file system\n")


async def test_weights_look_as_big_as_they_are_and_take_no_room(machine: Machine) -> None:
    listed = await run(machine, "ls", "-1A", "--", "/opt/models/Kimi-K2.6")
    weights = [name for name in listed.out.split() if name.endswith(".safetensors")]
    sizes = await run(
        machine, "stat", "-c", "%s", "--", *(f"/opt/models/Kimi-K2.6/{name}" for name in weights)
    )
    assert sum(map(int, sizes.out.split())) > 500e9
