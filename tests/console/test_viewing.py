"""From what the tuning room knows to what the console shows."""

from __future__ import annotations

from dataclasses import replace

from console.fakes import make_profile

from ddtui.engine import drafter
from ddtui.host.base import Link, LinkState
from ddtui.host.journal import JournalEntry
from ddtui.live import journal_line
from ddtui.tuning.lock import LockState
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.watch import WatchState
from ddtui.viewing import drafter_view, tune_view

LINK = Link(LinkState.CONNECTED, "root@ct200:22", 3.0, since=0.0)
LOCK = LockState("t", "ann@laptop:7", "boot", "apply budget=16", 0.0, 3.0, False, False)
CONFIG = b"""{
  "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "num_hidden_layers": 6, "block_size": 8,
  "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 1000,
  "max_position_embeddings": 262144, "sliding_window": 2048, "use_sliding_window": true,
  "dflash_config": {"mask_token_id": 5, "target_layer_ids": [1, 2]},
  "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                  "sliding_attention", "full_attention"]
}"""


def test_before_anything_was_read_nothing_is_claimed() -> None:
    view = tune_view(WatchState(LINK), LINK, make_profile())
    assert not view.surveyed
    assert view.service.active is None and view.server.version is None and view.step is None
    assert view.drafter.facts == () and view.knobs == ()


def test_the_drafters_window_and_layers_come_first_and_what_is_not_set_says_so() -> None:
    config = drafter.parse(CONFIG, "/m/Draft/config.json")
    view = drafter_view(Reading(Layer.DRAFTER, config, None, 5.0))
    facts = {fact.label: fact.value for fact in view.facts}
    assert view.name == "Draft" and view.read_at == 5.0
    assert facts["sliding_window"] == "2048" and facts["layer_types"] == "5 sliding, 1 full"
    bare = drafter_view(Reading(Layer.DRAFTER, replace(config, sliding_window=None, layer_types=None)))
    facts = {fact.label: fact.value for fact in bare.facts}
    assert facts["sliding_window"] == "not set" and facts["layer_types"] == "not set"


def test_a_drafter_that_cannot_be_read_says_why() -> None:
    view = drafter_view(Reading(Layer.DRAFTER, None, "no config.json in /m", 5.0))
    assert view.problem == "no config.json in /m" and view.facts == ()


def test_somebody_elses_lock_makes_the_host_read_only_and_names_them() -> None:
    view = tune_view(WatchState(LINK, lock=LOCK), LINK, make_profile())
    assert view.read_only is not None and "ann@laptop:7" in view.read_only
    assert view.stale_lock is None


def test_a_lock_left_behind_does_not_but_is_asked_about() -> None:
    view = tune_view(WatchState(LINK, lock=replace(LOCK, stale=True, age=600.0)), LINK, make_profile())
    assert view.read_only is None
    assert view.stale_lock is not None and "10 min" in view.stale_lock


def test_our_own_lock_is_nothing_to_speak_of() -> None:
    view = tune_view(WatchState(LINK, lock=replace(LOCK, ours=True)), LINK, make_profile())
    assert view.read_only is None and view.others == () and view.stale_lock is None


DECODE = (
    "[2026-05-28 12:00:00 TP{}] Decode batch, #running-req: 8, #token: 18213, token usage: 0.04, accept len: 4.10, "
    "accept rate: 0.31, cuda graph: True, gen throughput (token/s): 738.50, #queue-req: 2"
)


def test_a_decode_line_carries_its_numbers_and_other_ranks_do_not_count_twice() -> None:
    line = journal_line(JournalEntry("c", 7_000_000, DECODE.format(0)))
    assert line.at == 7.0 and line.decode is not None
    found = line.decode
    assert (found.rate, found.accept_length, found.running, found.queued) == (738.5, 4.1, 8, 2)
    assert journal_line(JournalEntry("c", 7_000_000, DECODE.format(1))).decode is None
    assert journal_line(JournalEntry("c", 7_000_000, "Decode batch of nonsense")).decode is None
