"""`--config FILE`: flags from a flat YAML file, before those of the command line."""

from __future__ import annotations

import argparse
import re

from sglang.simulation.switches import SWITCHES


def merge_config_with_args(parser: argparse.ArgumentParser, argv: list[str]) -> list[str]:
    """The command line with the file's flags put first. Raises ValueError on a file that cannot be read."""
    where = argv.index("--config")
    if where == len(argv) - 1:
        raise ValueError("No config file specified after --config flag!")
    path = argv[where + 1]
    if not path.endswith((".yaml", ".yml")):
        raise ValueError(f"Config file must be YAML format, got: {path}")
    switches = {option for a in parser._actions if a.nargs == 0 for option in a.option_strings}
    merged: list[str] = []
    for line in SWITCHES.local(path).read_text(encoding="utf-8").splitlines():
        match = re.match(r"([A-Za-z][\w-]*)\s*:\s*(.*?)\s*(?:#.*)?$", line)
        if not match:
            continue
        flag, value = "--" + match.group(1).replace("_", "-"), match.group(2).strip("'\"")
        if flag in switches:
            merged += [flag] if value.lower() in ("true", "yes", "on", "1") else []
        else:
            merged += [flag, value]
    return merged + argv[:where] + argv[where + 2 :]
