"""Find the package, read it, print the answer."""
# ruff: noqa: PTH100, PTH113, PTH118, PTH119, PTH120, PTH207, PTH208
# os.path, not pathlib: this is timed, on another machine's old interpreter.

from __future__ import annotations

import glob
import importlib.util
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ddtui.engine.probe.arguments import Flags, compact
from ddtui.engine.probe.drafting import (
    read_algorithms,
    read_ddtree,
    read_dflash,
    read_overlap,
    read_rules,
    read_window_algorithms,
)
from ddtui.engine.probe.source import Package

FORMAT = 1  # of the answer
COMMIT = re.compile(r"[0-9a-f]{7,64}$")
DECLARES = re.compile(r"add_argument\(|: A\[|: Annotated\[|argparse\.Action\)")


def find(paths: Sequence[str], cwd: str | None) -> tuple[str | None, str | None]:
    """(package folder, problem): where `import sglang` would find it for the service."""
    if sys.path and sys.path[0] == "":  # `python -` puts its own working directory there
        del sys.path[0]
    sys.path[:0] = [cwd, *paths] if cwd else list(paths)
    try:
        spec = importlib.util.find_spec("sglang")
    except Exception as error:  # a broken import hook of the environment
        return None, f"Looking for sglang under {sys.executable} failed: {error}."
    if spec is None:
        return None, (
            f"{sys.executable} has no package sglang: is the service using another interpreter or PYTHONPATH?"
        )
    folders = list(spec.submodule_search_locations or [])
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "srt", "server_args.py")):
            return os.path.abspath(folder), None
    where = folders[0] if folders else spec.origin
    return None, f"The sglang at {where} has no srt/server_args.py: it is not a server's installation."


def read_version(package: Package) -> tuple[str | None, bool]:
    """(version, editable) from _version.py, the metadata beside it or anywhere on the path, or version.py."""
    version = None
    for name in ("_version.py", "version.py"):
        path = package.path(name)
        if os.path.isfile(path):
            match = re.search(
                r"^(?:__version__\s*=\s*)(?:version\s*=\s*)?[\"']([^\"']+)[\"']", package.read(path), re.M
            )
            if match:
                version = match.group(1)
                break
    parent = os.path.dirname(package.folder)
    editable = os.path.basename(parent) not in ("site-packages", "dist-packages")
    for entry in [parent, *sys.path]:
        try:
            names = os.listdir(entry or ".")
        except OSError:
            continue
        for name in names:
            if re.match(r"sglang-[^-]+\.(dist|egg)-info$", name):
                if version is None:
                    version = name.split("-")[1].rsplit(".", 1)[0]
                try:
                    with open(os.path.join(entry, name, "direct_url.json"), encoding="utf-8") as file:
                        editable = bool(json.load(file).get("dir_info", {}).get("editable", False))
                except (OSError, ValueError, AttributeError):
                    pass
                return version, editable
    return version or ("0.0.0.dev0" if os.path.isfile(package.path("version.py")) else None), editable


def read_commit(package: Package, version: str | None) -> str | None:
    """Of the checkout (its root holds python/sglang, or sglang), else as pip or the version names it."""
    parent = os.path.dirname(package.folder)
    for root in (parent, os.path.dirname(parent)):
        commit = git_head(os.path.join(root, ".git"))
        if commit:
            return commit
    for path in glob.glob(os.path.join(glob.escape(parent), "sglang-*.dist-info", "direct_url.json")):
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file).get("vcs_info", {}).get("commit_id")
        except (OSError, ValueError, AttributeError):
            continue
        if found:
            return str(found)
    match = re.search(r"\+g([0-9a-f]{7,40})\b", version or "")
    return match.group(1) if match else None


def git_head(git: str) -> str | None:
    """The commit that is checked out, without git. A worktree's .git is a file that says where it is."""
    try:
        if os.path.isfile(git):
            git = os.path.join(os.path.dirname(git), first_line(git).replace("gitdir: ", "", 1))
        head = first_line(os.path.join(git, "HEAD"))
        if not head.startswith("ref: "):
            return head if COMMIT.match(head) else None
        common = os.path.join(git, "commondir")
        shared = os.path.join(git, first_line(common)) if os.path.isfile(common) else git
        loose = os.path.join(shared, head[5:])
        if os.path.isfile(loose):
            return first_line(loose)
        with open(os.path.join(shared, "packed-refs"), encoding="utf-8") as file:
            return next((line.split()[0] for line in file if line.rstrip().endswith(" " + head[5:])), None)
    except OSError:
        return None


def first_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline().strip()


def probe(paths: Sequence[str], cwd: str | None) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # invalid escapes in the source that is parsed
    answer: dict[str, Any] = {
        "format": FORMAT,
        "python": sys.executable,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "problem": None,
    }
    folder, problem = find(paths, cwd)
    if folder is None:
        answer["problem"] = problem
        return answer
    package = Package(folder)
    version, editable = read_version(package)
    arguments = [package.path("srt", "server_args.py"), *package.python_files("srt", "arg_groups")]
    flags = Flags(package)
    flags.read([path for path in arguments if DECLARES.search(package.read(path))])
    dflash = read_dflash(package)
    if dflash["has_dflash"]:
        dflash["overlap"] = read_overlap(package, arguments)
    dflash["window_algorithms"] = read_window_algorithms(package, arguments)
    answer.update(
        version=version,
        commit=read_commit(package, version),
        location=folder,
        editable=editable,
        flags=[compact(flag) for flag in flags.found],
        unread=flags.unread,
        dflash=dflash,
        ddtree=read_ddtree(package, flags.found, arguments),
        rules=read_rules(package, arguments),
        algorithms=read_algorithms(package, flags.found),
        broken=package.broken,
        digest=package.digest(),
        changed_at=package.changed_at(),
    )
    return answer


def main(argv: Sequence[str]) -> None:
    paths: list[str] = []
    cwd = None
    rest = list(argv)
    while rest:
        option = rest.pop(0)
        if option == "--path" and rest:
            paths.append(rest.pop(0))
        elif option == "--cwd" and rest:
            cwd = rest.pop(0)
    json.dump(probe(paths, cwd), sys.stdout, separators=(",", ":"), default=str)
    sys.stdout.write("\n")
