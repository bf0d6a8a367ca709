"""SGLang's released wheels: fetched once with pip, never installed, only their sources unpacked."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# read when the tests are collected: later each test has a HOME of its own
CACHE = Path(os.environ.get("DDTUI_WHEEL_CACHE") or Path.home() / ".cache" / "ddtui-wheels")
FOLDERS = (
    "arg_groups configs distributed entrypoints function_call managers mem_cache model_executor model_loader"
    " observability parser speculative utils"
)
NEEDED = re.compile(
    rf"sglang/(?:__init__|_version|version)\.py|sglang/srt/\w+\.py|sglang/srt/models/dflash\w*\.py"
    rf"|sglang/srt/(?:{FOLDERS.replace(' ', '|')})/.*\.py"
)
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


class Unavailable(Exception):
    """The package index cannot be reached, or this machine has no pip."""


def newest() -> str:
    """The newest release that the index has, by `pip index`. Raises Unavailable."""
    version, trouble = _index()
    if version is None:
        raise Unavailable(f"pip index versions sglang: {trouble}")
    return version


@cache
def _index() -> tuple[str | None, str]:
    """(newest release, "") or (None, why the index does not tell): asked once."""
    try:
        done = _pip("index", "versions", "sglang", timeout=60)
    except Unavailable as reason:
        return None, str(reason)
    match = re.search(r"^sglang \((?P<version>[\w.]+)\)", done.stdout, re.M)
    if done.returncode or not match:
        return None, _last(done.stderr) or "no answer"
    return match["version"], ""


@cache
def sources(version: str) -> Path:
    """A folder with that release's sources, ready for the probe. Raises Unavailable."""
    folder = CACHE / "sources" / version
    if not (folder / "sglang").is_dir():
        wheel = next(iter(CACHE.glob(f"sglang-{version}-*.whl")), None) or _download(version)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work, zipfile.ZipFile(wheel) as archive:
            archive.extractall(work, [name for name in archive.namelist() if NEEDED.fullmatch(name)])
            try:
                Path(work, "sglang").rename(_made(folder) / "sglang")
            except OSError:  # another process was faster
                pass
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(version: str) -> Path:
    newest()  # is the index there at all?
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        # for one platform, whatever this machine is: only the sources matter
        where = ("--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux_2_34_x86_64")
        done = _pip(
            "download", "--quiet", "--no-deps", "--only-binary=:all:", "--ignore-requires-python",
            *where, "--dest", work, f"sglang=={version}", timeout=300,
        )  # fmt: skip
        found = next(iter(Path(work).glob("*.whl")), None)
        if done.returncode or found is None:
            raise Unavailable(f"pip download sglang=={version}: {_last(done.stderr) or 'nothing came'}")
        return found.replace(CACHE / found.name)


def _pip(*argv: str, timeout: float) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"HOME": str(CACHE.parent)}
    try:
        return subprocess.run(
            [*PIP, *argv], capture_output=True, text=True, timeout=timeout, env=env, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip {argv[0]} did not end within {timeout:g} s") from None


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("WARNING")]
    return lines[-1].strip() if lines else ""


@dataclass(frozen=True)
class Found:
    """What stands in a release's sources."""

    lines: Mapping[str, list[str]]  # phrase -> every text with it, whole, `7` for each value that varies
    texts: frozenset[str]  # those of the texts asked for that are there


@cache
def search(version: str, phrases: tuple[str, ...], texts: tuple[str, ...]) -> Found:
    """Look for phrases of log lines, and for plain texts, in one pass."""
    lines: dict[str, list[str]] = {phrase: [] for phrase in phrases}
    there: set[str] = set()
    for path in sorted((sources(version) / "sglang" / "srt").rglob("*.py")):
        source = path.read_text("utf-8", "replace")
        there.update(text for text in texts if text in source)
        wanted = [phrase for phrase in phrases if phrase in source]
        for node in ast.walk(ast.parse(source)) if wanted else ():
            line = _text(node) if isinstance(node, (ast.JoinedStr, ast.Constant)) else ""
            for phrase in wanted:
                if phrase in line and line not in lines[phrase]:
                    lines[phrase].append(line)
    # the parts of an f-string are texts of their own
    for phrase, found in lines.items():
        lines[phrase] = [
            line for line in found if not any(other != line and line in other for other in found)
        ]
    return Found(lines, frozenset(there))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(p.value) if isinstance(p, ast.Constant) else "7" for p in node.values)
    value = node.value if isinstance(node, ast.Constant) else ""
    return re.sub(r"%(?:\.\d+)?[sdf]", "7", value) if isinstance(value, str) else ""
