"""DDTree's own rules and the tree that a setting gives, by the flavour that is installed.

No release up to 0.5.23 has DDTree. The logic is that of pull request 29907 and its forks; where a fork's code
says something else, its own words are used. L is block - 1: the positions that one draft pass predicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ddtui.engine.constraints import Case, Problem, Severity
from ddtui.engine.installation import Flavour

BUDGET, TOPK_CAP = "--speculative-ddtree-budget", "--speculative-ddtree-topk-cap"
DFLASH_BUDGET = "--speculative-dflash-tree-budget"
MAX_TOPK = "SGLANG_DDTREE_MAX_TOPK"


@dataclass(frozen=True, slots=True)
class Tree:
    """What a budget and a topk give with one block."""

    depth: int  # L
    budget: int  # nodes beside the root
    topk: int | None  # candidates looked at in each position; None: not known for this flavour
    is_tree: bool  # False: a chain

    @property
    def verified(self) -> int:
        """Tokens that one request has verified in each step."""
        return self.budget + 1

    def __str__(self) -> str:
        if not self.is_tree:
            short = f", which does not reach depth {self.depth}" if self.budget < self.depth else ""
            return f"budget {self.budget} gives a chain of {min(self.budget, self.depth)}{short}: no tree"
        spare = max(self.budget - self.depth, 0)
        return (
            f"budget {self.budget} gives a tree of depth up to {self.depth}, {spare} nodes beside its chain"
        )


def tree(case: Case) -> Tree | None:
    """The tree that this command line asks for. None: DDTree is off."""
    flavour = case.installation.ddtree.flavour
    if not case.is_tree or flavour is Flavour.NONE:
        return None
    depth = max(case.block - 1, 1)
    budget = case.flags.integer(DFLASH_BUDGET if flavour is Flavour.DFLASH_TREE else BUDGET)
    budget = depth if budget is None else budget
    topk = _topk(case, budget, depth)
    branches = topk is None or topk > 1
    if flavour is Flavour.BUDGET:  # only there is it known that a small budget is spent on a chain
        branches = branches and budget > depth
    return Tree(depth, budget, topk, branches)


def _topk(case: Case, budget: int, depth: int) -> int | None:
    flavour = case.installation.ddtree.flavour
    if flavour is Flavour.V2:
        return max(budget, 1)
    derived = max(budget // depth + 1, 2)
    if flavour is Flavour.BUDGET:
        most = str(case.env.get(MAX_TOPK) or case.installation.ddtree.environment.get(MAX_TOPK))
        return min(derived, int(most) if most.isdigit() else 6)
    if flavour is Flavour.TOPK_CAP:
        return case.flags.integer(TOPK_CAP)
    return None


def check(case: Case) -> Iterator[Problem]:
    """The rules of the DDTree that is installed."""
    if not case.is_tree:
        yield from _without(case)
        return
    ddtree = case.installation.ddtree
    name = DFLASH_BUDGET if ddtree.flavour is Flavour.DFLASH_TREE else BUDGET
    budget = case.flags.integer(name)
    if budget is not None and budget < 1:
        yield case.say(Severity.ERROR, f"{name} must be >= 1, got {budget}.", name)
        return
    cap = case.flags.integer(TOPK_CAP)
    if cap is not None and cap < 1:
        yield case.say(Severity.ERROR, f"{TOPK_CAP} must be >= 1, got {cap}.", TOPK_CAP)
        return
    shape = tree(case)
    if shape is None:
        return
    if budget is None and ddtree.flavour is not Flavour.DFLASH_TREE:
        words = f"{name} is not set; SGLang takes block - 1 = {shape.budget}."
        yield case.say(Severity.NOTE, words, name, known=False)
    if not shape.is_tree:
        yield case.say(Severity.NOTE, f"{shape}.", name, known=False)
    if cap is not None and cap > shape.budget:
        words = f"{TOPK_CAP} {cap} is more than the budget {shape.budget}: the cap does nothing."
        yield case.say(Severity.NOTE, words, TOPK_CAP, known=False)
    yield from _backends(case, shape)
    yield from _refusals(case)
    yield from _one_at_a_time(case, shape)


def _without(case: Case) -> Iterator[Problem]:
    """Knobs of the tree without the tree."""
    for flag in case.installation.ddtree.flags:
        if case.flags.get(flag) is not None:
            names = " or ".join(case.installation.ddtree.algorithms) or "DDTREE"
            words = f"{flag} does nothing with speculative_algorithm={case.algorithm}; it belongs to {names}."
            yield case.say(Severity.WARNING, words, flag, known=False)


def _backends(case: Case, shape: Tree) -> Iterator[Problem]:
    """Full trees want triton for prefill and decode, and pages of one token."""
    says = case.installation.ddtree.says
    words = says("only the triton attention backend") or says("triton", "attention backend")
    used = {phase: case.backend(phase) for phase in ("prefill", "decode")}
    if words and shape.is_tree and any(backend != "triton" for backend in used.values()):
        shown = ", ".join(f"{phase} {backend or 'not given'}" for phase, backend in used.items())
        wrong = any(backend not in (None, "triton") for backend in used.values())
        severity = Severity.ERROR if wrong else Severity.WARNING  # the default depends on the GPU
        yield case.say(severity, f"{_plain(words).rstrip('.')} (here: {shown}).", "--attention-backend")
    page = case.flags.integer("--page-size")
    words = says("page_size == 1")
    if words and page not in (None, 1):
        yield case.say(Severity.ERROR, words.replace("page_size=...", f"page_size={page}"), "--page-size")


def _refusals(case: Case) -> Iterator[Problem]:
    says = case.installation.ddtree.says
    for flag, about in (
        ("--speculative-use-rejection-sampling", "rejection-sampling"),
        ("--enable-dp-attention", "dp attention"),
    ):
        words = says(about)
        if words and case.flags.on(flag):
            yield case.say(Severity.ERROR, _plain(words), flag)
    words = says("overlap")
    if words:
        yield case.say(Severity.NOTE, _plain(words), None)


def _one_at_a_time(case: Case, shape: Tree) -> Iterator[Problem]:
    """The forks that put the tree into DFLASH verify budget + 1 draft tokens, for one request at a time."""
    if case.installation.ddtree.flavour is not Flavour.DFLASH_TREE:
        return
    tokens = case.flags.integer("--speculative-num-draft-tokens")
    if case.flags.integer(DFLASH_BUDGET) is not None and tokens not in (None, shape.verified):
        words = f"The tree verifies {shape.verified} tokens; --speculative-num-draft-tokens is {tokens}."
        yield case.say(Severity.WARNING, words, "--speculative-num-draft-tokens", known=False)
    if case.flags.integer(DFLASH_BUDGET) is not None and case.concurrency and case.concurrency > 1:
        words = f"In this flavour the tree is for one request at a time; {case.concurrency} are meant to run."
        yield case.say(Severity.WARNING, words, DFLASH_BUDGET, known=False)


def _plain(words: str) -> str:
    """A message of the source without the places where values would stand."""
    return words.split(" Got ")[0].split("; got ")[0].rstrip(".") + "."
