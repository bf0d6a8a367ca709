"""The probe of an installed SGLang: both layouts of its flags, what its draft code does, every DDTree flavour."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from engine import sources

from ddtui.engine import installation
from ddtui.engine.installation import Flavour, InstallationError

REPOSITORY = Path(__file__).parents[2]


def test_flags_declared_by_add_argument(tmp_path: Path) -> None:
    table = sources.installed(sources.package(tmp_path, {})).flags
    model = table.find("--model")
    assert (
        model
        and model.names == ("--model-path", "--model")
        and model.required
        and model.help == "Where it lies."
    )
    backend = table.find("--attention-backend")
    assert backend and backend.choices == ("fa3", "triton", "flashinfer") and backend.default_known
    assert (tp := table.find("--tp-size")) and (tp.type, tp.dest, tp.default) == ("int", "tp_size", 1)
    assert (sizes := table.find("--cuda-graph-bs")) and sizes.nargs == "+" and sizes.type == "int"
    assert (largest := table.find("--cuda-graph-max-bs")) and largest.default == 160
    assert (switch := table.find("--trust-remote-code")) and switch.switch and switch.default is False
    assert (
        (both := table.find("--no-lora-strict-loading"))
        and both.name == "--lora-strict-loading"
        and both.switch
    )
    assert (old := table.find("--old-thing")) and old.deprecated and old.switch
    assert (thing := table.find("--json-thing")) and thing.type == "json"
    assert model.source.startswith("sglang/srt/server_args.py:")


def test_flags_declared_by_annotated_fields(tmp_path: Path) -> None:
    tree = {"srt/server_args.py": sources.ANNOTATED, "srt/arg_groups/argparse_actions.py": sources.ACTIONS}
    table = sources.installed(sources.package(tmp_path, tree)).flags
    assert [flag.name for flag in table] == [
        "--model-path",
        "--tensor-parallel-size",
        "--trust-remote-code",
        "--cuda-graph-bs-decode",
        "--backend",
        "--mode",
        "--speculative-draft-window-size",
        "--speculative-dflash-draft-window-size",
    ]
    assert (model := table.find("--model")) and model.required
    assert (tp := table.find("--tp-size")) and tp.dest == "tp_size" and tp.default == 1
    assert (sizes := table.find("--cuda-graph-bs-decode")) and (sizes.nargs, sizes.type) == ("+", "int")
    assert (mode := table.find("--mode")) and mode.choices == ("a", "b") and mode.default == "a"
    old = table.find("--speculative-dflash-draft-window-size")
    assert old and old.deprecated and old.replaced_by == "--speculative-draft-window-size" and not old.switch
    assert table.window_flag == "--speculative-draft-window-size"
    assert table.equivalent("--speculative-dflash-draft-window-size", "--speculative-draft-window-size")


def test_fields_in_arg_groups(tmp_path: Path) -> None:
    fields = """
from sglang.srt.arg_groups.arg_utils import A, Arg
class Spec(msgspec.Struct):
    speculative_draft_window_size: A["int | None", "Window."] = None
    speculative_ddtree_budget: A[int | None, Arg(help="Nodes.", resolvable=True)] = None
    _kept: A[bool, Arg(no_cli=True)] = False
"""
    tree = {
        "srt/server_args.py": sources.ANNOTATED.split("    speculative_draft_window_size")[0],
        "srt/arg_groups/fields/spec.py": fields,
    }
    table = sources.installed(sources.package(tmp_path, tree)).flags
    assert table.has("--speculative-draft-window-size") and table.has("--speculative-ddtree-budget")
    assert (window := table.find("--speculative-draft-window-size")) and window.type == "int"
    assert not table.has("--kept")


def test_choices_that_only_running_it_would_tell_are_left_open(tmp_path: Path) -> None:
    more = '"--sampler", choices=SOME.where(), type=str'
    table = sources.installed(sources.package(tmp_path, {}, more=more)).flags
    assert (sampler := table.find("--sampler")) and sampler.choices is None
    assert table.validate(["--model-path", "m", "--sampler", "anything"]) == []


def test_choices_follow_imports_within_the_package(tmp_path: Path) -> None:
    more = '"--reasoning-parser", choices=["auto"] + list(ReasoningParser.DetectorMap.keys())'
    parser = "class ReasoningParser:\n    DetectorMap: dict = {'kimi': K, 'qwen3': Q}\n"
    head = "from sglang.srt.parser.reasoning_parser import ReasoningParser\n"
    lines = f"        parser.add_argument({more})\n"
    tree = {
        "srt/server_args.py": head + sources.ADD_ARGUMENT.replace("{more}", lines),
        "srt/parser/reasoning_parser.py": parser,
    }
    table = sources.installed(sources.package(tmp_path, tree)).flags
    assert (found := table.find("--reasoning-parser")) and found.choices == ("auto", "kimi", "qwen3")


def test_declarations_that_cannot_be_read_make_unknown_flags_no_error(tmp_path: Path) -> None:
    installed = sources.installed(
        sources.package(tmp_path, {}, more="*names_of(x), type=int\nname, type=int")
    )
    assert not installed.flags.complete and "2 flag declarations" in installed.problems[0]
    assert installed.flags.validate(["--model", "m", "--unheard-of", "1"]) == []


@pytest.mark.parametrize(("honours", "compact"), [(False, True), (True, True), (False, False), (True, False)])
def test_what_the_draft_code_does_is_asked_of_the_code(tmp_path: Path, honours: bool, compact: bool) -> None:
    root = sources.package(tmp_path, sources.dflash(honours=honours, compact=compact), version="0.0.0.dev0")
    found = sources.installed(root)
    assert found.version == "0.0.0.dev0" and found.has_dflash
    assert found.honours_config_window is honours  # comments and docstrings that name the fields do not count
    assert found.has_compact_cache is compact
    assert found.draft_backends == ("flashinfer", "fa3")
    assert found.draft_runner_text == (
        "Initialized DFLASH draft runner. attention_backend=..., draft_window_size=..."
    )


def test_a_window_that_is_read_and_not_handed_on_is_not_honoured(tmp_path: Path) -> None:
    files = sources.dflash(honours=True)
    files["srt/models/dflash.py"] = files["srt/models/dflash.py"].replace(
        "sliding_window_size=self.sliding_window_size)", "sliding_window_size=-1)"
    )
    found = sources.installed(sources.package(tmp_path, files))
    assert found.reads_layer_types and not found.reads_sliding_window and not found.honours_config_window


def test_an_sglang_without_dflash(tmp_path: Path) -> None:
    found = sources.installed(sources.package(tmp_path, {}))
    assert not found.has_dflash and found.overlap_with_dflash is None and found.ddtree.flavour is Flavour.NONE


WORKER = """
class DDTreeWorker(DFlashWorker):
    def __init__(self, server_args):
        raise_if(server_args)
        logger.info("Initialized DDTree worker. block_size=%s, tree_budget=%s, max_tree_nodes=%s", 1, 2, 3)
        if server_args.page_size != 1:
            raise ValueError("DDTREE currently supports only page_size == 1. " f"Got page_size={server_args.page_size}.")
"""
FLAVOURS = [
    ('"--speculative-ddtree-budget", type=int', Flavour.BUDGET),
    ('"--speculative-ddtree-budget", type=int\n"--speculative-ddtree-topk-cap", type=int', Flavour.TOPK_CAP),
    ('"--speculative-ddtree-budget", type=int\n"--speculative-ddtree-block-size", type=int', Flavour.V2),
    ('"--speculative-ddtree-budget", type=int\n"--is-ddtree-prune", action="store_true"', Flavour.V2),
    ('"--speculative-dflash-enable-ddtree", action="store_true"', Flavour.DFLASH_TREE),
    ('"--speculative-dflash-tree-budget", type=int', Flavour.DFLASH_TREE),
    ("", Flavour.UNKNOWN),
]


@pytest.mark.parametrize(("flags", "flavour"), FLAVOURS)
def test_which_ddtree_by_what_flags_and_files_there_are(tmp_path: Path, flags: str, flavour: Flavour) -> None:
    files = sources.dflash() | {
        "srt/speculative/ddtree_worker.py": WORKER,
        "srt/speculative/spec_info.py": "class SpeculativeAlgorithm(Enum):\n    DFLASH = auto()\n    DDTREE = auto()\n",
        "srt/environ.py": "class Envs:\n    SGLANG_DDTREE_MAX_TOPK = EnvInt(6)\n    SGLANG_DDTREE_DEPTH_BONUS = EnvFloat(0.2)\n",
    }
    ddtree = sources.installed(sources.package(tmp_path, files, more=flags)).ddtree
    assert ddtree.flavour is flavour
    assert ddtree.algorithms == ("DDTREE",) and ddtree.built_on_dflash
    assert ddtree.files == ("sglang/srt/speculative/ddtree_worker.py",)
    assert ddtree.environment == {"SGLANG_DDTREE_MAX_TOPK": 6, "SGLANG_DDTREE_DEPTH_BONUS": 0.2}
    assert (
        ddtree.says("page_size == 1") == "DDTREE currently supports only page_size == 1. Got page_size=...."
    )
    proof = "Initialized DDTree worker. block_size=..., tree_budget=..., max_tree_nodes=..."
    assert proof in ddtree.messages


def test_no_sglang_is_said_in_a_sentence(tmp_path: Path) -> None:
    done = sources.probe(tmp_path)
    with pytest.raises(InstallationError, match=r"has no package sglang: .*PYTHONPATH\?$"):
        installation.parse(done.stdout)
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "__init__.py").write_text("")
    with pytest.raises(InstallationError, match=r"no srt/server_args\.py"):
        installation.parse(sources.probe(tmp_path).stdout)


def test_the_working_directory_comes_first_as_for_python_m(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    sources.package(first, {}, version="1.0")
    sources.package(second, {}, version="2.0")
    done = sources.probe(second, cwd=first)
    assert installation.parse(done.stdout).version == "1.0"
    done = sources.probe(second, work=first)  # the probe's own working directory does not count
    assert installation.parse(done.stdout).version == "2.0"


def test_version_and_editable_from_the_metadata(tmp_path: Path) -> None:
    site, checkout = tmp_path / "site-packages", tmp_path / "checkout" / "python"
    sources.package(site, {}, version=None)
    info = site / "sglang-0.5.12.dist-info"
    info.mkdir()
    found = sources.installed(site)
    assert found.version == "0.5.12" and not found.editable
    sources.package(checkout, {}, version=None)
    (site / "sglang").rename(tmp_path / "gone")
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": True}}))
    found = installation.parse(sources.probe(checkout, site).stdout)
    assert found.editable and found.location == str(checkout / "sglang")


HASH = "2ff6cdec3279" + 28 * "0"


@pytest.mark.parametrize(
    "files",
    [
        {".git/HEAD": HASH},
        {".git/HEAD": "ref: refs/heads/ddtree", ".git/refs/heads/ddtree": HASH},
        {".git/HEAD": "ref: refs/heads/main", ".git/packed-refs": f"# pack-refs\n{HASH} refs/heads/main"},
        {
            ".git": "gitdir: ../main/.git/worktrees/w",
            "../main/.git/worktrees/w/HEAD": "ref: refs/heads/w",
            "../main/.git/worktrees/w/commondir": "../..",
            "../main/.git/refs/heads/w": HASH,
        },
        {"python/sglang-0.5.12.dist-info/direct_url.json": json.dumps({"vcs_info": {"commit_id": HASH}})},
    ],
)
def test_the_commit_of_a_checkout_or_as_pip_noted_it(files: dict[str, str], tmp_path: Path) -> None:
    checkout = tmp_path / "sglang"
    sources.package(checkout / "python", {})
    assert sources.installed(checkout / "python").commit is None
    for name, text in files.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text + "\n")
    assert sources.installed(checkout / "python").commit == HASH


def test_the_commit_in_a_development_version(tmp_path: Path) -> None:
    sources.package(tmp_path, {}, version="0.5.12.dev3+g1a2b3c4d5.d20260501")
    assert sources.installed(tmp_path).commit == "1a2b3c4d5"


def test_a_file_that_is_not_python_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    files = sources.dflash() | {"srt/models/dflash_too.py": "def broken(:\n"}
    found = sources.installed(sources.package(tmp_path, files))
    assert "dflash_too.py cannot be read" in found.problems[0] and found.problems[0].endswith(".")
    assert found.has_compact_cache and found.flags


def test_the_digest_changes_with_the_source(tmp_path: Path) -> None:
    before = sources.installed(sources.package(tmp_path, sources.dflash())).digest
    assert sources.installed(tmp_path).digest == before
    sources.package(tmp_path, sources.dflash(honours=True))
    assert sources.installed(tmp_path).digest != before


def test_the_stand_in_is_read_like_a_real_fork() -> None:
    found = sources.installed(REPOSITORY / "ddtui" / "demo" / "standin")
    assert found.has_dflash and found.has_compact_cache and not found.honours_config_window
    assert found.flags.window_flag == "--speculative-dflash-draft-window-size"
    assert found.ddtree.flavour is Flavour.TOPK_CAP and found.ddtree.built_on_dflash
    assert found.overlap_with_dflash is False
    assert found.draft_runner_text and "draft_window_size=..." in found.draft_runner_text


@pytest.mark.parametrize("noise", [b"", b"welcome to gpu-7\n", b'{"a": 1}\n'])
def test_what_start_up_files_print_before_the_answer_does_not_matter(tmp_path: Path, noise: bytes) -> None:
    done = sources.probe(sources.package(tmp_path, {}))
    assert installation.parse(noise + done.stdout).version == "0.5.11"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"format": 9}', b'{"format":1}', b"\xff"])
def test_an_answer_that_is_none_is_one_sentence(data: bytes) -> None:
    with pytest.raises(InstallationError) as raised:
        installation.parse(data)
    assert str(raised.value).endswith(".") and "\n" not in str(raised.value)


def test_the_probe_is_python_3_8_and_imports_only_the_standard_library() -> None:
    allowed = set(sys.stdlib_module_names)
    for name in installation.PROBE_MODULES:
        text = (REPOSITORY / "ddtui" / "engine" / "probe" / f"{name}.py").read_text()
        tree = ast.parse(text, feature_version=(3, 8))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed
            elif isinstance(node, ast.ImportFrom):
                own = (node.module or "").startswith("ddtui.engine.probe.")
                assert own or (node.module or "").split(".")[0] in allowed
