"""The same command string, run by a real shell with real programs and by the demo host: everything is the same.

Each case gets two equal folders under the same path, one on this machine and one on the demo host's disk, and its
commands travel in the form that ddtui sends through sshd. Compared: output, errors, exit codes, and the folder.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from demo.virtual_host import Recorded

from ddtui.demo.accounts import ROOT
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.machine import Machine
from ddtui.demo.shell import run_command
from ddtui.host import shell

# one case: commands, one a line; the folder is the working directory's absolute path {d}
CASES = {
    "reading a file, or one that is not there": """
        cat -- {d}/file {d}/none {d}/folder
        cat {d}/file {d}/file
        cat -- '{d}/with blank' {d}/none' of those'
        cat --bad {d}/file
        cat -Y""",
    "a name that needs quotes": """
        cat -- "{d}/it's not there"
        cat -- '{d}/a"b'
        cat -- '{d}/new
line'
        ls -1A -- "{d}/it's"
        stat -L -c %n -- '{d}/été'
        rm -- '{d}/tab\there' """,
    "listing": """
        ls -1A -- {d}
        ls -1A -- {d}/none
        ls -1 {d}
        ls -1A -- {d}/file {d}/folder
        ls -1A -- {d}/broken
        ls -d -- {d}/folder""",
    "stat formats": """
        stat -L -c '%n %s %a %F' -- {d}/file {d}/folder {d}/empty
        stat -c '%n %F %a %h' -- {d}/link
        stat -L -c %Y -- {d}/file {d}/none
        stat -L -c '%a %u %g' -- {d}/private
        stat -L -c %s -- {d}/broken
        stat -L -c '%.9Y %F %n' -- {d}/file {d}/folder
        stat -L -c '%F %n %s' -- /dev/null
        stat -L -c '%.3Y %Y %y' -- {d}/file
        stat""",
    "following links": """
        readlink -f -- {d}/link
        readlink -f -- {d}/none
        readlink -f -- {d}/none/deeper
        readlink -f -- {d}/broken
        readlink -e -- {d}/none
        readlink {d}/link
        readlink {d}/file
        cat -- {d}/folder/../link
        cat -- {d}/loop
        cat -- {d}/file/x""",
    "hashes": """
        sha256sum -- {d}/file {d}/none {d}/empty
        sha256sum -- '{d}/with blank'
        sha256sum -- {d}/folder""",
    "writing": """
        tee -- {d}/new
        cat -- {d}/new
        tee -- {d}/none/new
        tee -- {d}/folder
        tee -a -- {d}/file
        cat -- {d}/file""",
    "moving over a file": """
        mv -T -- {d}/file {d}/empty
        cat -- {d}/empty
        mv -T -- {d}/none {d}/empty
        mv -T -- {d}/empty {d}/folder
        mv -T -- {d}/folder {d}/empty
        mv -T -- {d}/empty {d}/none/x
        mv {d}/empty
        mv""",
    "moving folders: the lock's way": """
        mkdir -p -- {d}/mine {d}/lock
        mv -T -- {d}/mine {d}/lock
        mkdir -- {d}/mine
        tee -- {d}/lock/owner
        mv -T -- {d}/mine {d}/lock
        mv -T -- {d}/lock {d}/away
        mv -T -- {d}/mine {d}/lock
        ls -1A -- {d}""",
    "making folders": """
        mkdir -p -- {d}/a/b/c
        mkdir -- {d}/a
        mkdir -- {d}/none/x
        mkdir -p -- {d}/file/x
        mkdir -p -- {d}/file
        mkdir""",
    "links": """
        ln -- {d}/file {d}/hard
        ln -- {d}/file {d}/hard
        ln -T -- {d}/none {d}/hard2
        ln -s -- nowhere {d}/soft
        ln -s -- nowhere {d}/soft
        ln -T -- {d}/file {d}/none/x
        stat -c %h -- {d}/hard
        readlink {d}/soft""",
    "removing": """
        rm -f -- {d}/none
        rm -- {d}/none
        rm -- {d}/folder
        rm -f -- {d}/file
        rm -rf -- {d}/folder {d}/none
        rmdir -- {d}/folder
        rmdir -- {d}/private
        rm -f
        ls -1A -- {d}""",
    "a folder that is not empty": """
        rmdir -- {d}/folder
        rm -d -- {d}/folder
        rm -d -- {d}/private
        rm -d -- {d}/file
        rm -r -- {d}/folder
        ls -1A -- {d} /dev/null""",
    "base64": """
        base64 -- {d}/file
        base64 -w0 {d}/file
        base64 {d}/none""",
    "modes": """
        chmod 640 -- {d}/file
        stat -c %a -- {d}/file
        chmod 999 {d}/file
        chmod 600 -- {d}/none
        chmod u+x,g-r {d}/file
        stat -c %a -- {d}/file
        chmod --reference={d}/private -- {d}/file
        stat -c %a -- {d}/file
        chmod --reference={d}/none -- {d}/file
        chmod 600
        chmod""",
    "owners": """
        chown 0:0 -- {d}/file
        chown nosuch -- {d}/file
        chown :nosuch -- {d}/file
        chown 0 -- {d}/none
        chown --reference={d}/file -- {d}/empty""",
    "syncing": """
        sync -- {d}/file {d}
        sync -- {d}/none""",
    "touching": """
        touch -- {d}/touched
        touch -- {d}/none/x
        ls -1A -- {d}""",
    "copying": """
        cp -- {d}/file {d}/copy
        cat -- {d}/copy
        cp -- {d}/none {d}/copy
        cp -- {d}/folder {d}/copy""",
    "asking": """
        test -e {d}/file
        test -e {d}/none
        test -d {d}/folder
        test -f {d}/folder
        test -L {d}/link
        test -s {d}/empty
        test
        test one = two
        test 3 -lt 4""",
    "a program that is not there": """
        no-such-program --at all
        {d}/none/program
        {d}/file
        true
        false""",
    "head and tail": """
        head -n 1 -- {d}/file
        tail -n 1 -- {d}/file
        head -c 3 {d}/file
        head -c 100 -- {d}/file {d}/folder
        head -c 100 -- {d}/folder
        tail -n 1 -- {d}/none""",
    "constants": """
        getconf CLK_TCK
        getconf NO_SUCH
        echo some words
        printf '%s\\n' word
        uname
        uname -s
        date +%%%Q
        date -d @1700000000.5 '+%Y-%m-%d %H:%M:%S %s %Z'
        date -d nonsense""",
}


def gnu() -> bool:
    if not shutil.which("cat") or not shutil.which("getconf"):
        return False
    said = subprocess.run(["cat", "--version"], capture_output=True, text=True).stdout
    return "GNU coreutils) 9" in said


pytestmark = [
    pytest.mark.skipif(not gnu(), reason="compares with GNU coreutils 9, which this machine has not"),
    pytest.mark.skipif(os.geteuid() != 0, reason="compares what root may do: chown"),
]


def really(command: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC"}
    return subprocess.run(
        ["/bin/sh", "-c", command], input=stdin, capture_output=True, env=environment, umask=0o022
    )


def furnish(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "file").write_text("one\ntwo\n")
    (folder / "empty").touch()
    (folder / "with blank").write_text("x")
    (folder / "folder").mkdir()
    (folder / "folder/inside").write_text("y")
    (folder / "private").mkdir()
    (folder / "link").symlink_to("file")
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    for path, mode in (("private", 0o700), ("file", 0o644), ("folder", 0o755)):
        (folder / path).chmod(mode)
    for path in folder.rglob("*"):
        os.utime(path, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789), follow_symlinks=False)


def picture(folder: Path, files: Filesystem | None = None, base: str = "") -> dict[str, object]:
    """Name → kind, mode and content of all below a folder."""
    out: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        mode = path.lstat().st_mode
        if files is not None:
            node = files.at(f"{base}/{name}")
            assert node is not None
            mode = node.mode
        content: object = None
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        out[name] = (stat.S_IFMT(mode), 0 if path.is_symlink() else stat.S_IMODE(mode), content)
    return out


@pytest.mark.parametrize("form", ["one by one", "in a batch"])
@pytest.mark.parametrize("case", CASES)
async def test_does_what_the_real_programs_do(case: str, form: str, machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    furnish(folder)
    virtual = machine.files.root / str(folder).lstrip("/")
    furnish(virtual)
    machine.files.own(f"{folder}/private", 0, 0, 0o700)
    argvs = [tuple(shlex.split(line)) for line in _commands(CASES[case].format(d=folder))]
    marker = "0123456789abcdef" * 2
    if form == "one by one":
        scripts = [shell.Script(marker, (argv,), single=True) for argv in argvs]
    else:
        scripts = [shell.Script(marker, tuple(argvs), single=False)]
    for script in scripts:
        stdin = b"typed\n" if script.single else b""
        command = shell.encode(script)
        real = await asyncio.to_thread(really, command, stdin)
        streams = Recorded([stdin] if stdin else [])
        code = await run_command(machine, ROOT, command, streams)
        ran = (code, bytes(streams.stdout), bytes(streams.stderr))
        assert ran == (real.returncode, real.stdout, real.stderr), script.commands
    assert picture(virtual, machine.files, str(folder)) == picture(folder)


def _commands(text: str) -> list[str]:
    """Lines, where an open quote goes on in the next one."""
    out, pending = [], ""
    for line in text.split("\n"):
        pending = f"{pending}\n{line}" if pending else line.strip()
        if not pending:
            continue
        try:
            shlex.split(pending)
        except ValueError:
            continue
        out.append(pending)
        pending = ""
    return out
