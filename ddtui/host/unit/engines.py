"""Which inference engine a command line starts, and where its own arguments begin."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

_PYTHON = re.compile(r"(python|pypy)[\d.]*t?\Z")
_MODULES = {
    "sglang.launch_server": "sglang",
    "sglang.srt.entrypoints.http_server": "sglang",
    "sglang.cli.main": "sglang",
    "sglang": "sglang",
    "sglang.launch_router": "sglang-router",
    "sglang_router.launch_router": "sglang-router",
    "sglang_router.launch_server": "sglang-router",
    "sglang_router": "sglang-router",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "vllm": "vllm",
    "llama_cpp.server": "llama.cpp",
    "lmdeploy": "lmdeploy",
    "lmdeploy.serve.openai.api_server": "lmdeploy",
    "tensorrt_llm.commands.serve": "tensorrt-llm",
    "ktransformers.server.main": "ktransformers",
}
_PROGRAMS = {
    ("sglang", "serve"): "sglang",
    ("vllm", "serve"): "vllm",
    ("llama-server",): "llama.cpp",
    ("llama-server.exe",): "llama.cpp",
    ("sglang-router",): "sglang-router",
    ("smg",): "sglang-router",
    ("trtllm-serve",): "tensorrt-llm",
    ("lmdeploy", "serve"): "lmdeploy",
    ("text-generation-launcher",): "tgi",
    ("ollama", "serve"): "ollama",
    ("tritonserver",): "triton",
    ("ktransformers",): "ktransformers",
}
_SUBCOMMAND = frozenset({"serve", "api_server", "launch_server"})
# Options of the interpreter itself that take the next word
_VALUED = frozenset({"-W", "-X", "--check-hash-based-pycs"})


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    start: int  # index of the first argument of its own
    guessed: bool = False  # a launcher of the operator's own that seems to hand its arguments on


def recognise(argv: Sequence[str]) -> Engine | None:
    """The engine that a command line starts by itself, without any wrapper before it."""
    if not argv:
        return None
    program = posixpath.basename(argv[0])
    if _PYTHON.match(program):
        return _of_python(argv)
    for names, engine in _PROGRAMS.items():
        if program == names[0] and (
            len(names) == 1 or argv[1:2] == [names[1]] or tuple(argv[1:2]) == names[1:]
        ):
            return Engine(engine, len(names))
    if program == "server" and any(word.endswith(".gguf") for word in argv):
        return Engine("llama.cpp", 1)
    if program.endswith("launch_server.py"):
        return Engine("sglang", 1)
    return None


def _of_python(argv: Sequence[str]) -> Engine | None:
    at = 1
    while at < len(argv):
        word = argv[at]
        if word.startswith("-") and not word.startswith("--") and "m" in word:
            module = word[word.index("m") + 1 :] or (argv[at + 1] if at + 1 < len(argv) else "")
            after = at + (1 if word[word.index("m") + 1 :] else 2)
            return _of_module(module, after, argv)
        if word in _VALUED:
            at += 2
        elif word.startswith("-"):
            if word == "-c":
                return None
            at += 1
        else:
            return _of_script(word, at + 1, argv)
    return None


def _of_module(module: str, after: int, argv: Sequence[str]) -> Engine | None:
    if module in _MODULES:
        if after < len(argv) and argv[after] in _SUBCOMMAND and module.count(".") != 1:
            after += 1
        return Engine(_MODULES[module], after)
    return recognise_arguments(after, argv)


def _of_script(path: str, after: int, argv: Sequence[str]) -> Engine | None:
    name = posixpath.basename(path)
    if "sglang" in path and name == "launch_server.py":
        return Engine("sglang", after)
    if "vllm" in path and name == "api_server.py":
        return Engine("vllm", after)
    found = recognise([name.removesuffix(".py"), *argv[after:]])
    if found is not None:  # python /opt/venv/bin/sglang serve
        return Engine(found.name, after - 1 + found.start)
    return recognise_arguments(after, argv)


def recognise_arguments(after: int, argv: Sequence[str]) -> Engine | None:
    """A launcher that is not known, with arguments that only SGLang has."""
    rest = argv[after:]
    model = any(word.partition("=")[0] in ("--model-path", "--model") for word in rest)
    speculative = any(word.startswith("--speculative-algo") for word in rest)
    return Engine("sglang", after, guessed=True) if model and speculative else None
