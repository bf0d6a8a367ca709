"""What the stand-in generates, how fast, what it caches and what it says about it in the journal."""

from __future__ import annotations

import importlib
import re
import statistics
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from demo.standin_process import DDTREE, KIMI, KIMI_DRAFTER, STANDIN, StandIn, stand_in
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.demo.standin.sglang.performance import Cell, Knobs, expected

PROMPT = "def parse(line):\n    key, value = line.split()\n    return key\n\n\ndef main(path):\n"
FLAGS = (*DDTREE, "--tp-size", "8")


def part(name: str) -> Any:
    """A module of the stand-in's own package tree, in this process."""
    if str(STANDIN) not in sys.path:
        sys.path.insert(0, str(STANDIN))
    try:
        return importlib.import_module(f"sglang.simulation.{name}")
    finally:
        sys.path.remove(str(STANDIN))


def kimi(folder: Path, *flags: str, **environment: str) -> Any:
    return stand_in(folder, *FLAGS, *flags, model=KIMI, drafter=KIMI_DRAFTER, environment=environment)


# --- the tokenizer and the text -----------------------------------------------------------------------------


@cache
def big_tokenizer() -> Any:
    return part("tokenizer").Tokenizer(163840, 163586)


@pytest.fixture
def tokenizer() -> Any:
    return big_tokenizer()


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_decoding_gives_back_what_was_encoded(text: str) -> None:
    assert big_tokenizer().decode(big_tokenizer().encode(text)) == text


def test_a_token_is_about_four_characters_of_ordinary_text(tokenizer: Any) -> None:
    writing = part("writing")
    for kind in ("code", "prose"):
        text = writing.passage(11, kind, 6000)
        assert 3.0 < len(text) / len(tokenizer.encode(text)) < 5.0
    own = Path(__file__).read_text()
    assert 2.4 < len(own) / len(tokenizer.encode(own)) < 5.0


def test_every_token_is_in_the_vocabulary(tokenizer: Any) -> None:
    assert tokenizer.encode("x" * 2000 + " naïve 漢") and max(tokenizer.encode("zzzz ~~ \u20ac Zq")) < 163840
    assert max(part("tokenizer").Tokenizer(16384).encode(Path(__file__).read_text())) < 16384


def test_the_kind_of_a_prompt_is_seen(tokenizer: Any) -> None:
    writing = part("writing")
    code, prose = (tokenizer.encode(writing.passage(3, kind, 2000)) for kind in ("code", "prose"))
    assert tokenizer.kind(code) == "code"
    assert tokenizer.kind(prose) == "chat"
    assert tokenizer.kind(prose * 20) == "document"
    assert tokenizer.kind([(i * 7919 + 300) % 163000 for i in range(400)]) == "random"


def test_generated_text_does_not_repeat_itself(tokenizer: Any) -> None:
    writing = part("writing")
    for kind in ("code", "prose"):
        lines = [line for line in re.split(r"\n|(?<=\.) ", writing.passage(5, kind, 5_000)) if len(line) > 60]
        assert len(set(lines)) > 0.9 * len(lines)


def test_generated_code_is_python(tokenizer: Any) -> None:
    text = part("writing").passage(8, "code", 4000)
    for block in text.split("\n\n\n"):
        if block.strip() and not block.startswith(" "):
            compile(block, "<generated>", "exec")


# --- greedy output ------------------------------------------------------------------------------------------


def test_greedy_output_depends_on_the_prompt_alone(tmp_path: Path) -> None:
    outputs = []
    for flags in (
        ("--speculative-ddtree-budget", "4"),
        ("--speculative-ddtree-budget", "32", "--speculative-ddtree-topk-cap", "8"),
        ("--speculative-dflash-draft-window-size", "2048"),
    ):
        with kimi(tmp_path, *flags) as server:
            outputs.append(server.generate(PROMPT, max_new_tokens=150, ignore_eos=True).json["output_ids"])
    with stand_in(tmp_path, "--tp-size", "8", model=KIMI, drafter=None) as server:
        outputs.append(server.generate(PROMPT, max_new_tokens=150, ignore_eos=True).json["output_ids"])
        other = server.generate(PROMPT + "#", max_new_tokens=150, ignore_eos=True).json["output_ids"]
    assert outputs[0] == outputs[1] == outputs[2] == outputs[3] != other


def test_sampled_output_differs_and_an_output_may_end_by_itself(tmp_path: Path) -> None:
    with kimi(tmp_path) as server:
        sampled = {server.generate(PROMPT, temperature=0.8, max_new_tokens=40).json["text"] for _ in range(3)}
        ended = server.generate(PROMPT, max_new_tokens=2000).json
        stopped = server.generate(PROMPT, max_new_tokens=200, stop="return").json
    assert len(sampled) == 3
    assert ended["meta_info"]["finish_reason"] == {"type": "stop", "matched": 163586}
    assert ended["output_ids"][-1] == 163586
    assert stopped["meta_info"]["finish_reason"] == {"type": "stop", "matched": "return"}
    assert "return" not in stopped["text"]


def test_a_corrupted_tree_mask_makes_garbage_and_accepts_next_to_nothing(tmp_path: Path) -> None:
    with kimi(tmp_path, SGLANG_STANDIN_FAIL="corrupt") as server:
        answer = server.generate(PROMPT, max_new_tokens=200, ignore_eos=True).json
    assert answer["meta_info"]["spec_accept_length"] < 2.2
    assert len(set(answer["text"].split())) < 15


# --- the prefix cache ---------------------------------------------------------------------------------------


def test_repeated_prefixes_are_cached_until_a_flush(tmp_path: Path) -> None:
    with kimi(tmp_path) as server:
        ids = server.post("/tokenize", {"prompt": PROMPT * 30}).json["tokens"]

        def cached(prompt: list[int]) -> int:
            return int(server.generate(prompt, max_new_tokens=4).json["meta_info"]["cached_tokens"])

        assert cached(ids) == 0
        assert cached(ids) == len(ids) - 1  # the last token is always computed
        assert cached([*ids[:100], 300, 301, 302]) == 100
        assert cached([ids[0] + 1, *ids[1:]]) == 0
        answer = server.generate(ids, max_new_tokens=20, ignore_eos=True).json
        assert cached([*ids, *answer["output_ids"]]) == len(ids) + 19  # outputs are cached too
        server.post("/flush_cache")
        assert cached(ids) == 0
    with kimi(tmp_path, "--disable-radix-cache") as server:
        assert [server.generate(ids, max_new_tokens=2).json["meta_info"]["cached_tokens"] for _ in "ab"] == [
            0,
            0,
        ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=12), st.data())
def test_the_radix_tree_finds_the_longest_stored_prefix(stored: list[list[int]], data: st.DataObject) -> None:
    module = part("radix_cache")
    cache = module.RadixCache()
    for ids in stored:
        cache.insert(module.pack(ids))
    probe = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=14))

    def shared(a: list[int], b: list[int]) -> int:
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

    assert cache.match(module.pack(probe)) == max(shared(probe, ids) for ids in stored)
    assert cache.tokens == len({tuple(ids[:n]) for ids in stored for n in range(1, len(ids) + 1)})


def test_the_least_recently_used_end_goes_first() -> None:
    module = part("radix_cache")
    cache = module.RadixCache()
    for ids in ([1, 2, 3, 4], [1, 2, 9, 9], [7, 7, 7, 7]):
        cache.insert(module.pack(ids))
    cache.match(module.pack([1, 2, 3, 4]))
    cache.shrink_to(8)
    assert cache.tokens <= 8
    assert cache.match(module.pack([1, 2, 3, 4])) == 4
    assert cache.match(module.pack([1, 2, 9, 9])) == 2


# --- speed and the journal ----------------------------------------------------------------------------------


def burst(server: StandIn, requests: list[list[int]], workers: int, output: int) -> list[dict[str, Any]]:
    """A closed loop of `workers` clients; the meta_info of every request."""
    queue, done, lock = list(requests), [], threading.Lock()

    def work() -> None:
        while True:
            with lock:
                if not queue:
                    return
                ids = queue.pop()
            meta = server.generate(ids, max_new_tokens=output, ignore_eos=True).json["meta_info"]
            with lock:
                done.append(meta)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def prompts(server: StandIn, count: int, tokens: int) -> list[list[int]]:
    writing = part("writing")
    return [
        server.post("/tokenize", {"prompt": writing.passage(100 + i, "code", tokens * 6)}).json["tokens"][
            :tokens
        ]
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def windowless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with kimi(tmp_path_factory.mktemp("speed")) as server:
        yield server


def test_acceptance_is_what_the_model_expects(windowless: StandIn) -> None:
    done = burst(windowless, prompts(windowless, 40, 300), 8, 128)
    length = sum(m["completion_tokens"] - 1 for m in done) / sum(m["spec_verify_ct"] for m in done)
    assert length == pytest.approx(expected(Knobs(), Cell(8, 300, "code", 128)).accept_length, rel=0.05)


def test_past_the_drafter_s_window_acceptance_collapses_unless_the_flag_is_set(
    windowless: StandIn, tmp_path: Path
) -> None:
    long = prompts(windowless, 12, 6000)
    unhonoured = statistics.fmean(m["spec_accept_length"] for m in burst(windowless, long, 4, 96))
    with kimi(tmp_path, "--speculative-dflash-draft-window-size", "2048") as server:
        honoured = statistics.fmean(m["spec_accept_length"] for m in burst(server, long, 4, 96))
    assert unhonoured < 2.9 < 4.0 < honoured


def test_a_step_takes_the_model_s_time(tmp_path: Path) -> None:
    """On the stand-in's own clock: e2e_latency of a lone request, at real speed, against the expectation."""
    with kimi(tmp_path, SGLANG_STANDIN_SPEED="4", SGLANG_STANDIN_NOISE="0") as server:
        server.generate("warm", max_new_tokens=4)
        meta = server.generate(PROMPT, max_new_tokens=160, ignore_eos=True).json["meta_info"]
    step = expected(Knobs(), Cell(1, 100)).step_ms / 4000
    assert meta["e2e_latency"] > meta["spec_verify_ct"] * step  # never faster than the model


def test_streams_side_by_side_get_a_chunk_each_step(windowless: StandIn) -> None:
    events: list[list[Any]] = [[] for _ in range(6)]

    def read(at: int) -> None:
        answer = windowless.generate(f"{PROMPT}# {at}\n", stream=True, max_new_tokens=100, ignore_eos=True)
        events[at] = answer.events

    threads = [threading.Thread(target=read, args=(at,)) for at in range(len(events))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in events:
        assert len(stream) == 1 + stream[-1]["meta_info"]["spec_verify_ct"]


DECODE = (
    r"\[[\d :-]+ TP0\] Decode batch, #running-req: \d+, #token: \d+, token usage: \d\.\d\d, accept len: \d\.\d\d, "
    r"accept rate: \d\.\d\d, cuda graph: True, gen throughput \(token/s\): \d+\.\d\d, #queue-req: \d+"
)
PREFILL = (
    r"\[[\d :-]+ TP0\] Prefill batch, #new-seq: \d+, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, "
    r"#running-req: \d+, #queue-req: \d+, #pending-token: \d+, cuda graph: False, "
    r"input throughput \(token/s\): \d+\.\d\d"
)


def test_decode_and_prefill_lines_are_worded_as_the_real_ones(tmp_path: Path) -> None:
    with kimi(tmp_path) as server:
        server.generate(PROMPT, max_new_tokens=400, ignore_eos=True)
        decode, prefill = server.wait_for("Decode batch"), server.wait_for("Prefill batch")
        server.terminate()
        server.wait_for_end()
    assert re.fullmatch(DECODE, decode)
    assert re.fullmatch(PREFILL, prefill)
    length, rate = (float(word) for word in re.findall(r"accept (?:len|rate): ([\d.]+)", decode))
    assert rate == pytest.approx((length - 1) / 7, abs=0.01)
    steps = server.log.count("Decode batch") * 40
    assert 400 / length * 0.6 < steps + 40


def test_a_decode_line_comes_as_often_as_asked(tmp_path: Path) -> None:
    with kimi(tmp_path, "--decode-log-interval", "5") as server:
        meta = server.generate(PROMPT, max_new_tokens=200, ignore_eos=True).json["meta_info"]
        server.terminate()
        server.wait_for_end()
    # the warm-up's steps count as well
    assert server.log.count("Decode batch") in {meta["spec_verify_ct"] // 5 + extra for extra in (0, 1, 2)}


def test_a_long_prompt_is_prefilled_in_chunks(windowless: StandIn) -> None:
    (ids,) = prompts(windowless, 1, 20_000)
    windowless.post("/flush_cache")
    windowless.generate(ids, max_new_tokens=1)
    assert "#new-token: 8192" in windowless.wait_for("#pending-token: 11808")
    windowless.wait_for("#new-token: 3616,")


def test_no_more_than_max_running_requests_run_at_once(tmp_path: Path) -> None:
    with kimi(tmp_path, "--max-running-requests", "2", "--decode-log-interval", "1") as server:
        burst(server, prompts(server, 6, 40), 6, 24)
        server.terminate()
        server.wait_for_end()
    running = [int(n) for n in re.findall(r"Decode batch, #running-req: (\d+)", server.log)]
    queued = [int(n) for n in re.findall(r"#queue-req: (\d+)$", server.log, re.M)]
    assert max(running) == 2 and max(queued) >= 1


def test_a_batch_over_the_largest_captured_runs_without_graphs(tmp_path: Path) -> None:
    with kimi(tmp_path, "--cuda-graph-max-bs", "2", "--decode-log-interval", "1") as server:
        burst(server, prompts(server, 6, 40), 6, 24)
        server.terminate()
        server.wait_for_end()
    for line in server.lines:
        if "Decode batch" in line:
            running = int(re.search(r"#running-req: (\d+)", line)[1])  # type: ignore[index]
            assert f"cuda graph: {running <= 2}," in line
    assert "cuda graph: False, gen" in server.log


def test_when_outputs_outgrow_the_cache_requests_are_retracted(tmp_path: Path) -> None:
    with kimi(tmp_path, "--max-total-tokens", "1500") as server:
        done = burst(server, prompts(server, 4, 100), 4, 600)
        server.wait_for("KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: ")
    assert [m["completion_tokens"] for m in done] == [600] * 4
    assert sum(m["total_retractions"] for m in done) >= 1


def test_background_traffic_keeps_the_journal_alive(tmp_path: Path) -> None:
    with kimi(tmp_path, SGLANG_STANDIN_TRAFFIC="1200") as server:
        for text in ("Decode batch", '"POST /v1/chat/completions HTTP/1.1" 200 OK'):
            server.wait_for(text)
        assert re.search(r"INFO:     10\.20\.0\.\d+:\d+ - ", server.wait_for("10.20.0."))


def test_an_idle_server_logs_nothing(tmp_path: Path) -> None:
    with kimi(tmp_path) as server:
        server.get("/model_info")
        server.terminate()
        server.wait_for_end()
    assert "batch" not in server.log.partition("fired up")[2]
