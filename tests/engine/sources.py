"""Small SGLang packages in both layouts, and the probe run on them under this interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ddtui.engine import installation
from ddtui.engine.installation import Installation

ADD_ARGUMENT = """
import argparse, dataclasses, json
from typing import Optional

BACKENDS = ["fa3", "triton"]
BACKENDS_TOO = BACKENDS + ["flashinfer"]


class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    attention_backend: Optional[str] = None
    cuda_graph_max_bs: int = 32 * 5

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="Where it " "lies.")
        parser.add_argument("--attention-backend", choices=BACKENDS_TOO, default=ServerArgs.attention_backend)
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=1, dest="tp_size")
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--cuda-graph-max-bs", type=int, default=ServerArgs.cuda_graph_max_bs)
        parser.add_argument("--trust-remote-code", action="store_true")
        parser.add_argument("--lora-strict-loading", action=argparse.BooleanOptionalAction, default=None)
        parser.add_argument("--json-thing", type=json.loads)
        parser.add_argument("--old-thing", action=DeprecatedAction, help="gone")
        parser.add_argument("--speculative-algorithm", type=str, choices=["DFLASH", "EAGLE"])
        parser.add_argument("--speculative-draft-model-path", "--speculative-draft-model", type=str)
        parser.add_argument("--speculative-dflash-draft-window-size", type=int, default=None)
{more}
"""

ANNOTATED = """
from __future__ import annotations
import argparse, dataclasses
from typing import List, Literal, Optional
from sglang.srt.arg_groups.arg_utils import A, Arg, add_cli_args_from_dataclass
from sglang.srt.arg_groups.argparse_actions import DeprecatedAliasStoreAction

BACKENDS = ["fa3", "triton"]


@dataclasses.dataclass
class ServerArgs:
    model_path: A[str, Arg(help="Where it lies.", aliases=["--model"])]
    tp_size: A[int, Arg(help="Ranks.", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1
    trust_remote_code: A[bool, "Trust it."] = False
    hidden: A[bool, Arg(no_cli=True)] = False
    cuda_graph_bs_decode: A[Optional[List[int]], "Sizes."] = None
    backend: A[Optional[str], Arg(help="Which.", choices=BACKENDS)] = None
    mode: A[Literal["a", "b"], "Mode."] = "a"
    speculative_draft_window_size: A[Optional[int], "Window."] = None
    plain: int = 3

    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument(
            "--speculative-dflash-draft-window-size", type=int, dest="speculative_draft_window_size",
            action=DeprecatedAliasStoreAction, new_flag="--speculative-draft-window-size", help=argparse.SUPPRESS,
        )
"""

ACTIONS = """
import argparse

class DeprecatedAliasStoreAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs):
        super().__init__(option_strings, dest, **kwargs)
"""

DFLASH_MODEL = """
class DFlashAttention:
    '''layer_types are not looked at; sliding_window neither.'''
    def __init__(self, config, layer_id):
        # config.layer_types would say it
        self.attn = RadixAttention(layer_id=layer_id, attn_type=AttentionType.ENCODER_ONLY{attention})
{body}
"""
DFLASH_WORKER = """
class DFlashWorker:
    def __init__(self, server_args):
        self.draft_window_size = server_args.speculative_dflash_draft_window_size
        {compact}
        supported_draft_backends = ("flashinfer", "fa3")
        logger.info("Initialized DFLASH draft runner. attention_backend=%s, draft_window_size=%s", 1, 2)
"""
HONOURS = {
    "attention": ", sliding_window_size=self.sliding_window_size",
    "body": "        self.sliding_window_size = get_dflash_layer_types(config)[layer_id]",
}


def dflash(*, honours: bool = False, compact: bool = True) -> dict[str, str]:
    """The files of a DFLASH that honours the config's window or not, with a compact cache or not."""
    keep = "self.use_compact_draft_cache = self.draft_window_size is not None" if compact else ""
    parts = HONOURS if honours else {"attention": "", "body": ""}
    return {
        "srt/models/dflash.py": DFLASH_MODEL.format(**parts),
        "srt/speculative/dflash_worker.py": DFLASH_WORKER.format(compact=keep),
    }


def package(root: Path, files: Mapping[str, str], *, more: str = "", version: str | None = "0.5.11") -> Path:
    """A package tree below `root`; server_args.py in the old layout unless `files` brings one."""
    tree = {"__init__.py": "raise SystemExit('the probe must not import it')"}
    lines = "".join(f"        parser.add_argument({line})\n" for line in more.splitlines() if line.strip())
    tree["srt/server_args.py"] = ADD_ARGUMENT.replace("{more}", lines)
    if version:
        tree["_version.py"] = f"__version__ = version = '{version}'\n"
    for name, text in (tree | dict(files)).items():
        path = root / "sglang" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def probe(
    *paths: Path, cwd: Path | None = None, python: str = sys.executable, work: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The probe, exactly as it is run on a host."""
    argv = installation.probe_argv(python, paths=tuple(map(str, paths)), cwd=str(cwd) if cwd else None)
    return subprocess.run(
        argv, input=installation.probe_text(), capture_output=True, cwd=work, timeout=60, check=False
    )


def installed(root: Path) -> Installation:
    """What the probe finds in a package tree."""
    done = probe(root)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return installation.parse(done.stdout)
