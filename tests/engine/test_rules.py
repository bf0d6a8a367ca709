"""SGLang's own constraints, by the code that is installed, and the tree that a setting gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine import sources
from engine.captured import CAPTURES

from ddtui.engine import drafter, rules, trees
from ddtui.engine.constraints import Case
from ddtui.engine.drafter import DrafterConfig
from ddtui.engine.installation import Installation
from ddtui.engine.rules import Problem, Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
CHECKS = """
class Checks:
    def check(self):
        raise ValueError("DFLASH speculative decoding requires setting --speculative-draft-model-path.")
        raise ValueError("Currently DFLASH speculative decoding does not support dp attention.")
        raise ValueError("Currently DFLASH speculative decoding only supports pp_size == 1.")
        raise ValueError("DFLASH requires --speculative-dflash-draft-window-size " f"to be positive, got {w}.")
        raise ValueError("DFLASH --speculative-dflash-draft-window-size must be >= --speculative-num-draft-tokens "
            f"(block_size). window_size={w}, block_size={b}.")
        logger.warning("DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps=%s to 1.", 1)
        logger.warning("Max running requests is reset to 48 for speculative decoding. You can override this by x.")
        logger.warning("Overlap scheduler is disabled when using DFLASH speculative decoding (spec v2 is not yet).")
        logger.warning("Mixed chunked prefill is disabled because of using dflash speculative decoding.")
        raise ValueError("trtllm_mha backend only supports topk = 1 for speculative decoding.")
        raise ValueError("speculative_eagle_topk > 1 with page_size > 1 is unstable.")
"""
NO_EFFECT = """
        if algorithm not in ("EAGLE3", "DFLASH"):
            logger.warning("--speculative-draft-window-size has no effect with " "speculative_algorithm=%s.", algorithm)
"""
MORE = """"--speculative-num-draft-tokens", type=int
"--speculative-dflash-block-size", type=int
"--speculative-num-steps", type=int
"--speculative-eagle-topk", type=int
"--speculative-draft-attention-backend", type=str
"--speculative-adaptive", action="store_true"
"--pipeline-parallel-size", "--pp-size", type=int
"--enable-dp-attention", action="store_true"
"--enable-mixed-chunk", action="store_true"
"--max-running-requests", type=int
"--disable-cuda-graph", action="store_true"
"--page-size", type=int
"--context-length", type=int
"--prefill-attention-backend", type=str
"--decode-attention-backend", type=str"""
TREE = """
class DDTreeWorker(DFlashWorker):
    def __init__(self, server_args):
        raise ValueError("DDTREE full-tree mode currently supports only the triton attention backend for prefill and "
            f"decode. Got prefill={p}.")
        raise ValueError("DDTREE currently supports only page_size == 1. " f"Got page_size={server_args.page_size}.")
"""
BUDGET, CAP = '"--speculative-ddtree-budget", type=int', '"--speculative-ddtree-topk-cap", type=int'
Make = Callable[..., Installation]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An installation like 0.5.11, with what else is asked for."""

    def build(
        *, flags: str = "", honours: bool = False, no_effect: bool = False, tree: bool = False
    ) -> Installation:
        files = sources.dflash(honours=honours)
        info = "class SpeculativeAlgorithm(Enum):\n    DFLASH = auto()\n    EAGLE = auto()\n"
        if tree:
            files["srt/speculative/ddtree_worker.py"] = TREE
            info += "    DDTREE = auto()\n"
        files["srt/speculative/spec_info.py"] = info
        arguments = sources.ADD_ARGUMENT.replace(', choices=["DFLASH", "EAGLE"]', "")
        lines = "".join(
            f"        parser.add_argument({line})\n" for line in (MORE + "\n" + flags).splitlines() if line
        )
        files["srt/server_args.py"] = (
            arguments.replace("{more}", lines) + CHECKS + (NO_EFFECT if no_effect else "")
        )
        return sources.installed(sources.package(tmp_path, files))

    return build


DRAFTER = drafter.parse((CAPTURES / "models" / "drafter" / "config.json").read_bytes(), "config.json")
BASE = "--model-path m --speculative-algorithm DFLASH --speculative-draft-model-path d "


def broken(
    installed: Installation, argv: str, drafted: DrafterConfig | None = DRAFTER, **more: Any
) -> list[Problem]:
    return list(rules.check(installed.flags.resolve(argv.split()), installed, drafter=drafted, **more))


def sentences(problems: list[Problem], severity: Severity) -> list[str]:
    return [problem.sentence for problem in problems if problem.severity is severity]


def test_a_plain_dflash_line_breaks_no_rule_and_gets_two_notes(make: Make) -> None:
    problems = broken(make(), BASE)
    assert [problem.severity for problem in problems] == [NOTE, NOTE]
    assert "reset to 48" in problems[0].sentence and "Overlap scheduler is disabled" in problems[1].sentence


CASES = [
    ("--speculative-dflash-draft-window-size 0", ERROR, "DFLASH requires --speculative-dflash-draft-window-size to be positive, got 0."),
    ("--speculative-dflash-draft-window-size 8", ERROR, "DFLASH --speculative-dflash-draft-window-size must be >="
     " --speculative-num-draft-tokens (block_size). window_size=8, block_size=16."),
    ("--speculative-num-draft-tokens 4 --speculative-dflash-draft 2", ERROR, "window_size=2, block_size=4."),
    ("--speculative-num-draft-tokens 8 --speculative-dflash-block-size 16", ERROR,
     "speculative_num_draft_tokens=8, speculative_dflash_block_size=16."),
    ("--speculative-dflash-block-size 0", ERROR, "to be positive, got 0."),
    ("--enable-dp-attention", ERROR, "does not support dp attention"),
    ("--pp-size 2", ERROR, "only supports pp_size == 1"),
    ("--speculative-num-steps 3", WARNING, "overriding speculative_num_steps=3 to 1."),
    ("--speculative-eagle-topk 4", WARNING, "overriding speculative_eagle_topk=4 to 1."),
    ("--enable-mixed-chunk", WARNING, "Mixed chunked prefill is disabled"),
    ("--speculative-adaptive", WARNING, "speculative_adaptive disabled"),
    ("--speculative-num-draft-tokens 8", WARNING, "using speculative_num_draft_tokens=8 but draft config block_size=16."),
    ("--speculative-draft-attention-backend trtllm_mha", WARNING, "but got 'trtllm_mha'"),
    ("--attention-backend triton", WARNING, "but got 'triton'"),  # this one drafts with flashinfer and fa3 only
    ("--disable-cuda-graph", WARNING, "Without CUDA graphs"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "severity", "words"), CASES)
def test_dflash_rules(make: Make, argv: str, severity: Severity, words: str) -> None:
    found = sentences(broken(make(), BASE + argv), severity)
    assert any(words in text for text in found), found
    assert all(text.endswith(".") and "..." not in text for text in found)


def test_rules_that_the_installed_code_does_not_have_are_not_made_up(make: Make) -> None:
    bare = "--model-path m --speculative-algorithm DFLASH"
    assert any("requires setting" in text for text in sentences(broken(make(), bare), ERROR))
    without = sources.dflash()
    root = Path(make().location).parent
    installed = sources.installed(sources.package(root, without))
    assert not sentences(broken(installed, f"{bare} --enable-dp-attention"), ERROR)


def test_unknown_algorithms_by_the_names_in_the_source(make: Make) -> None:
    found = broken(make(), "--model-path m --speculative-algorithm FOO")
    assert found[0].sentence == "Unknown speculative algorithm name: FOO (known: DFLASH, EAGLE, NEXTN)."
    assert not sentences(broken(make(), "--model-path m --speculative-algorithm nextn"), ERROR)


def test_the_window_with_an_algorithm_that_does_not_read_it(make: Make) -> None:
    argv = "--model-path m --speculative-algorithm EAGLE --speculative-dflash-draft-window-size 2048"
    (silent,) = sentences(broken(make(), argv), WARNING)
    assert "only DFLASH looks at it" in silent
    (told,) = sentences(broken(make(no_effect=True), argv), WARNING)
    assert "has no effect with speculative_algorithm=EAGLE (honored by EAGLE3, DFLASH)" in told


def test_the_wrong_warning_about_the_window_under_ddtree_is_called_wrong(make: Make) -> None:
    installed = make(flags=BUDGET, tree=True, no_effect=True)
    argv = (
        BASE.replace("DFLASH", "DDTREE")
        + "--speculative-ddtree-budget 4 --speculative-dflash-draft-window-size 2048"
    )
    assert not sentences(broken(installed, argv), WARNING)
    assert any("that is wrong here" in text for text in sentences(broken(installed, argv), NOTE))


def test_more_requests_than_may_run_or_than_graphs_are_captured_for(make: Make) -> None:
    found = sentences(broken(make(), BASE, concurrency=64, captured_batch=48), WARNING)
    assert found == [
        "At most 48 requests run at once: of 64, 16 wait.",
        "CUDA graphs are captured for batches up to 48; 64 requests at once run without them, about four times slower.",
    ]
    raised = BASE + "--max-running-requests 64 --cuda-graph-bs 1 2 64"
    assert not sentences(broken(make(), raised, concurrency=64, captured_batch=48), WARNING)
    small = sentences(broken(make(), BASE + "--cuda-graph-max-bs 4", concurrency=8), WARNING)
    assert "up to 4; 8 requests" in small[0]


def test_contexts_longer_than_the_models(make: Make) -> None:
    argv = BASE + "--context-length 131072"
    (error,) = sentences(broken(make(), argv, target_max_position=32768), ERROR)
    assert (
        "User-specified context_length (131072) is greater than the derived context_length (32768)" in error
    )
    allowed = broken(
        make(), argv, target_max_position=32768, env={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    )
    assert not sentences(allowed, ERROR)
    assert any("drafter knows positions up to 32768" in text for text in sentences(allowed, WARNING))


def test_drafters_that_this_code_will_not_load_or_will_read_wrong(make: Make) -> None:
    def drafted(**fields: Any) -> DrafterConfig:
        import json

        return drafter.parse(json.dumps(dict(DRAFTER.raw) | fields).encode(), "c")

    no_use = drafted(use_sliding_window=False)
    assert not sentences(broken(make(), BASE, no_use), ERROR)
    (error,) = sentences(broken(make(honours=True), BASE, no_use), ERROR)
    assert "will not load the drafter" in error and "use_sliding_window is false" in error
    far = drafted(dflash_config={"target_layer_ids": [1, 9]})
    assert "target_layer_ids[1]=9, target_num_layers=8" in sentences(broken(make(), BASE, far), ERROR)[0]
    theta = sentences(broken(make(), BASE, drafted(rope_theta=50000.0)), WARNING)
    assert "rope_theta 50000" in theta[0]
    assert not sentences(broken(make(), BASE, DRAFTER), WARNING)


def test_eagles_three_numbers_go_together(make: Make) -> None:
    eagle = "--model-path m --speculative-algorithm EAGLE "
    assert not sentences(broken(make(), eagle), ERROR)
    assert "go together" in sentences(broken(make(), eagle + "--speculative-eagle-topk 4"), ERROR)[0]
    three = "--speculative-num-steps 3 --speculative-eagle-topk {} --speculative-num-draft-tokens 8"
    assert "8 becomes 4" in sentences(broken(make(), eagle + three.format(1)), WARNING)[0]
    paged = eagle + three.format(4) + " --page-size 64 --decode-attention-backend trtllm_mha"
    assert len(sentences(broken(make(), paged), ERROR)) == 2


def test_environment_variables_that_falsify(make: Make) -> None:
    found = broken(make(), BASE, env={"SGLANG_SIMULATE_ACC_LEN": "5"})
    assert "forces the accept length" in sentences(found, WARNING)[0]


def test_the_worst_comes_first(make: Make) -> None:
    severities = [
        p.severity for p in broken(make(), BASE + "--speculative-num-steps 2 --pp-size 2", concurrency=99)
    ]
    assert severities == sorted(severities, key=list(Severity).index) and severities[0] is ERROR


# --- trees --------------------------------------------------------------------------------------------------


def shape(installed: Installation, argv: str, block: int = 8, **env: str) -> trees.Tree | None:
    line = f"{BASE.replace('DFLASH', 'DDTREE')} --speculative-num-draft-tokens {block} {argv}"
    return trees.tree(Case(installed.flags.resolve(line.split()), installed, None, env, None, None, None, {}))


def test_by_the_pull_requests_rules_a_budget_up_to_l_is_a_chain(make: Make) -> None:
    installed = make(flags=BUDGET, tree=True)
    seven, eight, large = (shape(installed, f"--speculative-ddtree-budget {n}") for n in (7, 8, 64))
    assert seven and eight and large
    assert not seven.is_tree and "no tree" in str(seven) and seven.depth == 7
    assert eight.is_tree and eight.verified == 9 and eight.topk == 2 and "1 nodes beside" in str(eight)
    assert large.topk == 6
    capped = shape(installed, "--speculative-ddtree-budget 64", SGLANG_DDTREE_MAX_TOPK="3")
    assert capped and capped.topk == 3
    unset = shape(installed, "")
    assert unset and unset.budget == 7
    assert shape(installed, "--speculative-algorithm DFLASH") is None


def test_other_flavours_by_what_is_known_of_them(make: Make) -> None:
    capped = make(flags=f"{BUDGET}\n{CAP}", tree=True)
    chain = shape(capped, "--speculative-ddtree-budget 16 --speculative-ddtree-topk-cap 1")
    assert chain and not chain.is_tree and "no tree" in str(chain)
    open_cap = shape(capped, "--speculative-ddtree-budget 16 --speculative-ddtree-topk-cap 4")
    assert open_cap and open_cap.is_tree and open_cap.topk == 4


DDTREE = BASE.replace("DFLASH", "DDTREE")
TREES = [
    ("--speculative-ddtree-budget 0", ERROR, "--speculative-ddtree-budget must be >= 1, got 0."),
    ("--speculative-ddtree-budget 32 --speculative-ddtree-topk-cap 0", ERROR, "topk-cap must be >= 1, got 0."),
    ("--speculative-ddtree-budget 32 --attention-backend fa3", ERROR, "only the triton attention backend for prefill"
     " and decode (here: prefill fa3, decode fa3)."),
    ("--speculative-ddtree-budget 32", WARNING, "(here: prefill not given, decode not given)."),
    ("--speculative-ddtree-budget 4 --page-size 16", ERROR, "only page_size == 1. Got page_size=16."),
    ("--speculative-ddtree-topk-cap 4", NOTE, "takes block - 1 = 15"),
    ("--speculative-ddtree-budget 2 --speculative-ddtree-topk-cap 4", NOTE, "the cap does nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "severity", "words"), TREES)
def test_rules_of_the_tree(make: Make, argv: str, severity: Severity, words: str) -> None:
    found = sentences(broken(make(flags=f"{BUDGET}\n{CAP}", tree=True), DDTREE + argv), severity)
    assert any(words in text for text in found), found


def test_a_tree_with_triton_breaks_no_rule(make: Make) -> None:
    installed = make(flags=BUDGET, tree=True)
    argv = DDTREE + "--speculative-ddtree-budget 32 --attention-backend triton --page-size 1"
    assert not sentences(broken(installed, argv), ERROR)
    by_default = (
        DDTREE + "--speculative-ddtree-budget 32"
    )  # a fork whose default is triton, as its server says
    running = {"attention_backend": "triton", "prefill_attention_backend": None}
    found = sentences(broken(installed, by_default, running=running), WARNING)
    assert not any("full-tree mode" in text for text in found)


def test_knobs_of_the_tree_without_the_tree(make: Make) -> None:
    found = sentences(broken(make(flags=BUDGET, tree=True), BASE + "--speculative-ddtree-budget 8"), WARNING)
    assert found == [
        "--speculative-ddtree-budget does nothing with speculative_algorithm=DFLASH; it belongs to DDTREE."
    ]


def test_a_tree_inside_dflash_is_for_one_request_at_a_time(make: Make) -> None:
    installed = make(flags='"--speculative-dflash-tree-budget", type=int')
    argv = BASE + "--speculative-dflash-tree-budget 32 --speculative-num-draft-tokens 16"
    found = sentences(broken(installed, argv, concurrency=8), WARNING)
    assert any("verifies 33 tokens" in text for text in found) and any(
        "one request at a time" in t for t in found
    )
