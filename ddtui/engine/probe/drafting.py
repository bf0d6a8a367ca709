"""What the draft code of the package does: DFLASH, its window, and DDTree in whatever shape a fork has it."""
# ruff: noqa: PTH113, PTH119
# os.path, not pathlib: this is timed, on another machine's old interpreter.

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from typing import Any

from ddtui.engine.probe.source import Module, Package, Unreadable, name_of, text_of


def identifiers(module: Module) -> list[str]:
    """Every name in the code: variables, attributes, arguments, imports, and the strings that getattr reads.

    Comments, docstrings and messages do not count.
    """
    names: list[str] = []
    for node in module.nodes:
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            names.append(node.arg)
        elif isinstance(node, ast.alias):
            names.append(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            names.append(node.value)
    return names


def slides_attention(module: Module) -> bool:
    """Whether an attention layer is given a sliding window that is not the constant -1 or None."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and "Attention" in name_of(node.func):
            for keyword in node.keywords:
                if keyword.arg and "sliding_window" in keyword.arg:
                    try:
                        if module.value(keyword.value) not in (-1, 0, None):
                            return True
                    except Unreadable:
                        return True
    return False


def messages(module: Module, about: str) -> list[str]:
    """Texts that are raised or logged and that speak of `about`, with `...` for what varies."""
    found: list[str] = []
    for node in module.nodes:
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = name_of(call.func)
        if not isinstance(node, ast.Raise) and not re.search(r"\b(logger|logging|warnings)\.", name):
            continue
        text = re.sub(r"%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z]", "...", text_of(call.args[0]))
        if re.search(about, text, re.IGNORECASE) and text not in found:
            found.append(text)
    return found


def texts(module: Module, begins: str) -> list[str]:
    """Every text in the code that begins so, wherever it is used, with `...` for what varies."""
    found: list[str] = []
    for node in module.nodes:
        if isinstance(node, (ast.JoinedStr, ast.Constant)):
            text = re.sub(r"%[sdr]", "...", text_of(node))
            if text.startswith(begins) and text not in found:
                found.append(text)
    return found


def read_dflash(package: Package) -> dict[str, Any]:
    speculative = package.python_files("srt", "speculative")
    models = [p for p in package.python_files("srt", "models") if "dflash" in os.path.basename(p).lower()]
    workers = [p for p in speculative if re.match(r"dflash_worker.*\.py$", os.path.basename(p))]
    facts: dict[str, Any] = {
        "has_dflash": bool(models and workers),
        "reads_layer_types": False,
        "reads_sliding_window": False,
        "has_compact_cache": False,
        "reads_rope_parameters": False,
        "overlap": None,
        "draft_runner_text": None,
        "draft_backends": None,
        "files": [package.relative(path) for path in models + workers],
    }
    for module in filter(None, map(package.module, models)):
        names = identifiers(module)
        facts["reads_layer_types"] |= any("layer_types" in name for name in names)
        facts["reads_sliding_window"] |= slides_attention(module)
        facts["reads_rope_parameters"] |= any(
            "rope_parameters" in name or "rope_config" in name for name in names
        )
    for module in filter(None, map(package.module, workers)):
        names = identifiers(module)
        facts["has_compact_cache"] |= any("compact" in n and "cache" in n for n in names) and any(
            "draft_window_size" in n for n in names
        )
        lines = texts(module, "Initialized DFLASH draft runner")  # whole, and as parts of an f-string
        facts["draft_runner_text"] = max(lines, key=len, default=facts["draft_runner_text"])
        for name, node in module.names.items():
            if "draft" in name.lower() and name.lower().endswith("backends"):
                try:
                    facts["draft_backends"] = list(module.value(node))
                except (Unreadable, TypeError):
                    pass
    return facts


def read_ddtree(
    package: Package, flags: Sequence[dict[str, Any]], argument_files: Sequence[str]
) -> dict[str, Any]:
    tree = re.compile(r"ddtree|dd_tree", re.IGNORECASE)
    files = [
        path
        for path in package.python_files("srt", "speculative") + package.python_files("srt", "models")
        if tree.search(os.path.basename(path))
    ]
    # a fork may have put it into the files of DFlash itself
    hosts = [
        path
        for path in package.python_files("srt", "speculative")
        if path not in files and tree.search(package.read(path))
    ]
    names = [name for flag in flags for name in flag["names"]]
    knobs = [name for name in names if tree.search(name) or re.search(r"dflash.*tree|tree-attention", name)]
    facts: dict[str, Any] = {
        "flags": knobs,
        "files": [package.relative(path) for path in files],
        "algorithms": [],
        "environment": {},
        "constants": {},
        "messages": [],
        "workers": {},
        "overlap": None,
    }
    environ = package.path("srt", "environ.py")
    for path in [*files, *hosts, *argument_files, *([environ] if os.path.isfile(environ) else [])]:
        text = package.read(path)
        if not tree.search(text) and path not in files:
            continue
        for name, default in environment(text):
            facts["environment"].setdefault(name, default)
        module = package.module(path)
        if module is None:
            continue
        for text in [*messages(module, tree.pattern), *texts(module, "Initialized DD")]:
            if text not in facts["messages"]:
                facts["messages"].append(text)
        if path in files:
            for name, node in module.names.items():
                if name.isupper():
                    try:
                        value = module.value(node)
                    except Unreadable:
                        continue
                    if isinstance(value, (int, float, str)):
                        facts["constants"][name] = value
        for cls in module.classes.values():
            if tree.search(cls.name) and "worker" in cls.name.lower():
                facts["workers"][cls.name] = [name_of(base) for base in cls.bases]
            if cls.name == "SpeculativeAlgorithm":
                facts["algorithms"] += [
                    target.id
                    for item in cls.body
                    if isinstance(item, ast.Assign)
                    for target in item.targets
                    if isinstance(target, ast.Name) and tree.search(target.id)
                ]
    for flag in flags:
        if "--speculative-algorithm" in flag["names"]:
            for choice in flag["choices"] or []:
                if tree.search(str(choice)) and choice not in facts["algorithms"]:
                    facts["algorithms"].append(choice)
    if any(re.search(r"overlap", text, re.IGNORECASE) for text in facts["messages"]):
        facts["overlap"] = False
    return facts


def environment(text: str) -> list[tuple[str, Any]]:
    """Variables that DDTree code reads, with their defaults where they are written beside them."""
    found: list[tuple[str, Any]] = []
    beside = r"\s*=\s*Env\w+\(\s*([^()]*?)\s*\)|[\"']\s*,\s*[\"']?([\w.+-]+)"
    for match in re.finditer(r"\b(SGLANG_\w*TREE\w*)\b(?:" + beside + ")?", text):
        default = match.group(2) or match.group(3)
        found.append((match.group(1), _number(default)))
    return sorted(found, key=lambda pair: pair[1] is None)


def _number(text: str | None) -> Any:
    if not text:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def read_algorithms(package: Package, flags: Sequence[dict[str, Any]]) -> list[str] | None:
    """The names that --speculative-algorithm takes; None where any registered name is taken."""
    for flag in flags:
        if "--speculative-algorithm" in flag["names"] and flag["choices"]:
            return list(flag["choices"])
    info = package.module(package.path("srt", "speculative", "spec_info.py"))
    if info and "SpeculativeAlgorithm" in info.classes:
        names = [
            target.id
            for item in info.classes["SpeculativeAlgorithm"].body
            if isinstance(item, ast.Assign)
            for target in item.targets
            if isinstance(target, ast.Name) and target.id.isupper() and target.id != "NONE"
        ]
        return [*names, "NEXTN"] if names else None
    return None


def read_overlap(package: Package, paths: Sequence[str]) -> bool:
    """Whether the overlap scheduler stays on under DFLASH."""
    off = re.compile(r"Overlap scheduler is disabled when using (?:DFLASH|%s|\{[^}]*\}) spec")
    return not any(off.search(package.read(path)) for path in paths)


CHECKS = re.compile("only supports speculative_|DDTREE|draft-window-size|reset to 48")


def read_rules(package: Package, paths: Sequence[str]) -> list[str]:
    """What the code that checks the arguments raises and logs about speculative decoding."""
    found: list[str] = []
    for path in paths:
        module = package.module(path) if CHECKS.search(package.read(path)) else None
        if module:
            about = r"DFLASH|speculative|SPEC_V2|draft.window|DDTREE"
            found += [text for text in messages(module, about) if text not in found]
    return found


def read_window_algorithms(package: Package, paths: Sequence[str]) -> list[str] | None:
    """The algorithms outside of which the code says that the draft window has no effect; None: never."""
    about = "draft-window-size has no effect"
    for path in paths:
        module = package.module(path) if about in package.read(path) else None
        if module is None:
            continue
        for node in module.nodes:
            if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
                continue
            if not isinstance(node.test.ops[0], ast.NotIn) or not any(
                about in text_of(call.args[0])
                for statement in node.body
                for call in ast.walk(statement)
                if isinstance(call, ast.Call) and call.args
            ):
                continue
            try:
                return [str(name) for name in module.value(node.test.comparators[0])]
            except Unreadable:
                return None
    return None
