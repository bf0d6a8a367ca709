"""SGLang's own constraints between arguments, for the code that is installed, checked before a change.

Which rules hold is asked of the installed source (`Installation.says`), and its words are used with the
values filled in. The rules' logic is that of 0.5.11's ServerArgs._handle_speculative_decoding, of
arg_groups/speculative_hook.py from 0.5.14 on, and of the DDTree pull request 29907.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ddtui.engine import trees
from ddtui.engine.constraints import Case, Problem, Severity
from ddtui.engine.drafter import SLIDING, DrafterConfig, Family
from ddtui.engine.flags import WINDOW, ResolvedFlags
from ddtui.engine.installation import Installation

__all__ = ["Problem", "Severity", "check"]

DEFAULT_RUNNING = 48  # requests at once under speculation, unless --max-running-requests is given
PLAIN_THETA = 1e6


def check(
    flags: ResolvedFlags,
    installation: Installation,
    *,
    drafter: DrafterConfig | None = None,
    env: Mapping[str, str] | None = None,
    target_max_position: int | None = None,  # of the target model's config
    concurrency: int | None = None,  # the highest number of requests that is meant to run at once
    captured_batch: int | None = None,  # the largest captured graph, by the journal of the running server
    running: Mapping[str, Any]
    | None = None,  # the running server's resolved arguments (ServerInfo.arguments)
) -> tuple[Problem, ...]:
    """Every rule that the arguments break, the worst first."""
    case = Case(
        flags,
        installation,
        drafter,
        env or {},
        target_max_position,
        concurrency,
        captured_batch,
        running or {},
    )
    found = [problem for rule in RULES for problem in rule(case)]
    order = list(Severity)
    return tuple(sorted(dict.fromkeys(found), key=lambda problem: order.index(problem.severity)))


def _algorithm(case: Case) -> Iterator[Problem]:
    known = case.installation.algorithms
    name = case.algorithm
    if name and known and name not in (item.upper() for item in known):
        words = f"Unknown speculative algorithm name: {name} (known: {', '.join(known)})."
        yield case.say(Severity.ERROR, words, "--speculative-algorithm")


def _dflash(case: Case) -> Iterator[Problem]:
    if not case.is_dflash:
        return
    flags, says = case.flags, case.installation.says
    if flags.get("--speculative-draft-model-path") is None:
        words = _named(
            case, says("DFLASH speculative decoding requires setting --speculative-draft-model-path")
        )
        if words:
            yield case.say(Severity.ERROR, words, "--speculative-draft-model-path")
    if flags.on("--enable-dp-attention"):
        words = _named(case, says("DFLASH speculative decoding does not support dp attention"))
        needed = says("DFLASH with dp attention requires --enable-dp-lm-head")
        if words:
            yield case.say(Severity.ERROR, words, "--enable-dp-attention")
        elif needed and not flags.on("--enable-dp-lm-head"):
            yield case.say(Severity.ERROR, needed, "--enable-dp-lm-head")
    stages = flags.integer("--pipeline-parallel-size")
    words = _named(case, says("DFLASH speculative decoding only supports pp_size == 1"))
    if stages not in (None, 1) and words:
        yield case.say(Severity.ERROR, words, "--pipeline-parallel-size")
    for flag in ("--speculative-num-steps", "--speculative-eagle-topk"):
        value, name = flags.integer(flag), flag.lstrip("-").replace("-", "_")
        if value not in (None, 1) and says("DFLASH only supports"):
            words = f"DFLASH only supports {name} == 1; overriding {name}={value} to 1."
            yield case.say(Severity.WARNING, words, flag)
    if flags.on("--enable-mixed-chunk"):
        words = says("Mixed chunked prefill is disabled", "dflash") or says(
            "Mixed chunked prefill is disabled"
        )
        if words:
            yield case.say(Severity.WARNING, words, "--enable-mixed-chunk")
    if flags.on("--speculative-adaptive"):
        words = "speculative_adaptive disabled: only EAGLE has it. Falling back to static speculative params."
        yield case.say(Severity.WARNING, words, "--speculative-adaptive")
    yield from _draft_backend(case)


def _draft_backend(case: Case) -> Iterator[Problem]:
    known = case.installation.draft_backends
    backend = case.flags.text("--speculative-draft-attention-backend") or case.backend("decode")
    if known and backend and backend not in known:
        words = (
            f"DFLASH draft worker only supports attention_backend in {known} for now, but got {backend!r}."
            " Falling back to 'flashinfer'."
        )
        yield case.say(Severity.WARNING, words, "--speculative-draft-attention-backend")


def _block(case: Case) -> Iterator[Problem]:
    if not case.is_dflash:
        return
    block = case.flags.integer("--speculative-dflash-block-size")
    tokens = case.flags.integer("--speculative-num-draft-tokens")
    if block is not None and block <= 0:
        words = f"DFLASH requires --speculative-dflash-block-size to be positive, got {block}."
        yield case.say(Severity.ERROR, words, "--speculative-dflash-block-size")
    elif block is not None and tokens is not None and block != tokens:
        words = (
            "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ."
            f" For DFLASH they must match. speculative_num_draft_tokens={tokens},"
            f" speculative_dflash_block_size={block}."
        )
        yield case.say(Severity.ERROR, words, "--speculative-dflash-block-size")
    trained = case.drafter.block_size if case.drafter else None
    given = block if block is not None else tokens
    if trained and given and given != trained and not case.is_tree:
        words = (
            f"DFLASH block size mismatch: using speculative_num_draft_tokens={given} but draft config"
            f" block_size={trained}."
        )
        yield case.say(Severity.WARNING, words, "--speculative-num-draft-tokens")


def _window(case: Case) -> Iterator[Problem]:
    window = case.window
    if window is None:
        return
    name = case.installation.window_flag or WINDOW
    if window <= 0:
        words = (
            _filled(case.installation.says(name, "positive"), window)
            or f"{name} must be positive, got {window}."
        )
        yield case.say(Severity.ERROR, words, name)
    elif case.is_dflash and window < case.block:
        prefix = "DFLASH " if case.installation.says(f"DFLASH {name} must be >=") else ""
        words = (
            f"{prefix}{name} must be >= --speculative-num-draft-tokens (block_size)."
            f" window_size={window}, block_size={case.block}."
        )
        yield case.say(Severity.ERROR, words, name)
    honoured = case.installation.window_algorithms
    if case.is_tree and case.installation.ddtree.built_on_dflash:
        if honoured is not None and case.algorithm not in honoured:
            words = (
                f"SGLang will warn that {name} has no effect with {case.algorithm}; that is wrong here: its"
                " worker is built on DFLASH's and takes the window."
            )
            yield case.say(Severity.NOTE, words, name, known=False)
    elif honoured is not None and case.algorithm not in honoured:
        others = ", ".join(honoured)
        words = f"{name} has no effect with speculative_algorithm={case.algorithm} (honored by {others})."
        yield case.say(Severity.WARNING, words, name)
    elif honoured is None and not case.is_dflash:
        words = (
            f"{name} has no effect with speculative_algorithm={case.algorithm}: here only DFLASH looks at it."
        )
        yield case.say(Severity.WARNING, words, name, known=False)


def _named(case: Case, text: str | None) -> str | None:
    """A message of the source with the algorithm's name filled in."""
    return (
        text.replace("... speculative decoding", f"{case.algorithm} speculative decoding") if text else None
    )


def _filled(text: str | None, value: object) -> str | None:
    """A message of the source with its one value filled in."""
    return text.replace("got ....", f"got {value}.") if text and text.count("...") == 1 else None


def _drafter(case: Case) -> Iterator[Problem]:
    drafter, installed = case.drafter, case.installation
    if drafter is None or drafter.family is not Family.DFLASH or not case.is_dflash:
        return
    asked = drafter.layer_types is not None and SLIDING in drafter.layer_types
    if installed.honours_config_window and asked and not drafter.slides_validly:
        yield case.say(Severity.ERROR, f"This SGLang will not load the drafter: {drafter.why}.", None)
    ids, target = drafter.target_layer_ids, drafter.num_target_layers
    if ids and target and max(ids) >= target:
        index = ids.index(max(ids))
        words = (
            "DFLASH target_layer_ids contains an out-of-range layer id."
            f" target_layer_ids[{index}]={max(ids)}, target_num_layers={target}."
        )
        yield case.say(Severity.ERROR, words, "--speculative-draft-model-path")
    theta = drafter.rope.theta
    if not installed.reads_rope_parameters and theta is not None and theta != PLAIN_THETA:
        words = (
            f"Under Transformers 5 this SGLang does not see the drafter's rope_theta {theta:g} and takes"
            " 1e+06: the drafter will look bad."
        )
        yield case.say(Severity.WARNING, words, None, known=False)
    length = case.flags.integer("--context-length")
    limit = drafter.max_position_embeddings
    if length and limit and length > limit:
        words = f"The drafter knows positions up to {limit}, and --context-length is {length}."
        yield case.say(Severity.WARNING, words, "--context-length", known=False)


def _running(case: Case) -> Iterator[Problem]:
    if case.algorithm is None:
        return
    limit = case.flags.integer("--max-running-requests")
    words = case.installation.says("Max running requests is reset to")
    if limit is None and words:
        yield case.say(Severity.NOTE, words, "--max-running-requests")
        limit = DEFAULT_RUNNING
    if limit is not None and case.concurrency is not None and case.concurrency > limit:
        text = (
            f"At most {limit} requests run at once: of {case.concurrency}, {case.concurrency - limit} wait."
        )
        yield case.say(Severity.WARNING, text, "--max-running-requests", known=False)
    overlap = _named(case, case.installation.says("Overlap scheduler is disabled when using"))
    if overlap and case.is_dflash:
        yield case.say(Severity.NOTE, overlap, None)


def _graphs(case: Case) -> Iterator[Problem]:
    """A batch above the largest captured one runs eagerly: about four times slower, and so it lasts."""
    if case.flags.on("--disable-cuda-graph"):
        words = "Without CUDA graphs every step is several times slower."
        yield case.say(Severity.WARNING, words, "--disable-cuda-graph", known=False)
        return
    listed = case.flags.get("--cuda-graph-bs-decode")
    sizes = [int(item) for item in listed if item.isdigit()] if isinstance(listed, tuple) else []
    largest = max(sizes) if sizes else case.flags.integer("--cuda-graph-max-bs-decode") or case.captured_batch
    if largest and case.concurrency and case.concurrency > largest:
        words = (
            f"CUDA graphs are captured for batches up to {largest}; {case.concurrency} requests at once run"
            " without them, about four times slower."
        )
        flag = case.installation.flags.accepted("--cuda-graph-max-bs")
        yield case.say(Severity.WARNING, words, flag, known=False)


def _context(case: Case) -> Iterator[Problem]:
    length, limit = case.flags.integer("--context-length"), case.target_max_position
    allowed = case.env.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in ("1", "true", "yes")
    if length and limit and length > limit:
        words = (
            f"User-specified context_length ({length}) is greater than the derived context_length ({limit})."
            " This may lead to incorrect model outputs or CUDA errors."
        )
        yield case.say(Severity.WARNING if allowed else Severity.ERROR, words, "--context-length")


def _eagle(case: Case) -> Iterator[Problem]:
    if case.algorithm not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return
    steps = case.flags.integer("--speculative-num-steps")
    topk = case.flags.integer("--speculative-eagle-topk")
    tokens = case.flags.integer("--speculative-num-draft-tokens")
    given = [value for value in (steps, topk, tokens) if value is not None]
    if given and len(given) < 3 and not case.flags.on("--speculative-adaptive"):
        words = (
            "--speculative-num-steps, --speculative-eagle-topk and --speculative-num-draft-tokens go"
            " together: give all three, or none and SGLang chooses."
        )
        yield case.say(Severity.ERROR, words, "--speculative-num-steps", known=False)
    if topk == 1 and steps is not None and tokens is not None and tokens != steps + 1:
        words = (
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when"
            f" speculative_eagle_topk == 1: {tokens} becomes {steps + 1}."
        )
        yield case.say(Severity.WARNING, words, "--speculative-num-draft-tokens")
    if topk is None or topk <= 1:
        return
    backends = {case.backend("prefill"), case.backend("decode")}
    words_or_none = case.installation.says("trtllm_mha backend only supports topk = 1")
    if "trtllm_mha" in backends and words_or_none:
        yield case.say(Severity.ERROR, words_or_none, "--speculative-eagle-topk")
    page = case.flags.integer("--page-size")
    paged = case.installation.says("speculative_eagle_topk > 1 with page_size > 1")
    if page and page > 1 and paged and not backends & {"flashinfer", "fa3", "triton"}:
        yield case.say(Severity.ERROR, paged, "--page-size")


def _environment(case: Case) -> Iterator[Problem]:
    if case.env.get("SGLANG_SIMULATE_ACC_LEN"):
        words = (
            "SGLANG_SIMULATE_ACC_LEN forces the accept length: step times are real, accept lengths are not."
        )
        yield case.say(Severity.WARNING, words, None, known=False)
    removed = case.installation.says("SGLANG_ENABLE_SPEC_V2 has been removed")
    if removed and "SGLANG_ENABLE_SPEC_V2" in case.env:
        yield case.say(Severity.NOTE, removed, None)


def _deprecated(case: Case) -> Iterator[Problem]:
    for seen in case.flags.occurrences:
        flag = case.installation.flags.find(seen.spelling)
        if flag is not None and flag.deprecated:
            instead = f" Use '{flag.replaced_by}' instead." if flag.replaced_by else ""
            words = f"'{flag.name}' is deprecated and will be removed in a future release.{instead}"
            yield case.say(Severity.NOTE, words, flag.name)


RULES: tuple[Callable[[Case], Iterator[Problem]], ...] = (
    _algorithm,
    _dflash,
    _block,
    _window,
    _drafter,
    trees.check,
    _running,
    _graphs,
    _context,
    _eagle,
    _environment,
    _deprecated,
)
