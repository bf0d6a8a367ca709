"""The layout holds: imports point one way, and heavy packages stay where they belong."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for path in (ROOT / "ddtui").rglob("*.py") if "standin" not in path.parts)

# who may import what
HOMES = {
    "textual": (
        "ddtui/app.py",
        "ddtui/bindings.py",
        "ddtui/messages.py",
        "ddtui/modes.py",
        "ddtui/painting.py",
        "ddtui/sending.py",
        "ddtui/screens/",
        "ddtui/widgets/",
        "ddtui/themes.py",
        "ddtui/serve/driver.py",
    ),
    "textual_serve": ("ddtui/serve/", "ddtui/commands/serve.py"),
    "aiohttp": ("ddtui/serve/", "ddtui/commands/serve.py"),
    "rich": ("ddtui/app.py", "ddtui/sending.py", "ddtui/screens/", "ddtui/widgets/", "ddtui/themes.py"),
    "plotext": ("ddtui/widgets/",),
    "asyncssh": ("ddtui/host/", "ddtui/demo/"),
    "httpx": ("ddtui/engine/api.py",),
}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_imports_point_one_way() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", HOMES)
def test_a_heavy_package_is_imported_only_where_it_belongs(package: str) -> None:
    strays = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if package in imported(path) and not str(path.relative_to(ROOT)).startswith(HOMES[package])
    ]
    assert strays == []


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in a fresh interpreter after the statement."""
    code = f"import sys; {statement}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_command_line_answers_without_loading_anything_heavy() -> None:
    loaded = loaded_by("import ddtui.cli; ddtui.cli.build_parser()")
    assert (
        loaded & {"textual", "rich", "asyncssh", "httpx", "pydantic", "yaml", "numpy", "plotext", "sqlite3"}
        == set()
    )


@pytest.mark.parametrize(
    "room",
    [
        "profile",
        "settings",
        "host.open",
        "engine.api",
        "tuning.watch",
        "bench.burst",
        "store.history",
        "plain",
    ],
)
def test_a_room_below_the_console_does_not_load_textual(room: str) -> None:
    assert "textual" not in loaded_by(f"import ddtui.{room}")


def test_no_file_names_a_registry_or_the_machine_it_was_made_on() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of the project's files")
    hosts = re.compile(
        r"(?i)\b(?:files\.python"
        + r"hosted\.org|py"
        + r"pi\.org|registry\.np"
        + r"mjs\.org|deb\.deb"
        + r"ian\.org)|/wo"
        + r"rk/(?:main|shared|\.library)"
    )
    found = [
        name
        for name in listed.stdout.splitlines()
        if (ROOT / name).is_file() and hosts.search((ROOT / name).read_bytes().decode("utf-8", "ignore"))
    ]
    assert found == []


def test_the_wheel_pins_what_must_be_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(re.fullmatch(r"textual==[\d.]+", needed) for needed in project["dependencies"])
    assert "plotext>=5.3.2,<6" in project["dependencies"]
    assert not any(needed.startswith("sglang") for needed in project["dependencies"])
    assert project["optional-dependencies"]["sglang"]
