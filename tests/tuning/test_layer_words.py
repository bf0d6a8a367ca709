"""Every layer in words: the facts that verdicts rest on, the proofs as they stand in the journal, no secret."""

from __future__ import annotations

from dataclasses import replace

from tuning.surveys import (
    BASE,
    captured_drafter,
    captured_journal,
    captured_server,
    installation,
    server_info,
    survey,
)

from ddtui import layer_words
from ddtui.engine import answers
from ddtui.layer_words import LayerWords
from ddtui.tuning.measured import Measured
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.survey import Survey


def words(survey: Survey) -> dict[Layer, LayerWords]:
    found = layer_words.layers(survey)
    assert [one.layer for one in found] == list(Layer)
    return {one.layer: one for one in found}


def facts(one: LayerWords, label: str) -> list[str]:
    return [text for name, text in one.facts if name == label]


def test_every_layer_of_a_captured_start_says_what_it_knows() -> None:
    found = words(
        survey(
            BASE,
            config=captured_drafter(),
            engine=installation("0.5.11"),
            log=captured_journal("start_dflash_nowindow"),
            server=captured_server("idle_server_info"),
        )
    )
    drafter, engine, journal = found[Layer.DRAFTER], found[Layer.ENGINE], found[Layer.JOURNAL]
    assert facts(drafter, "config") == ["/opt/models/drafter/config.json"]
    assert facts(engine, "reads") == ["layer_types: no", "sliding_window: no"]
    assert facts(engine, "compact cache") == ["yes"]
    (runner,) = facts(journal, "draft runner")
    assert "draft_window_size=None, compact_cache=False" in runner
    assert len(facts(journal, "KV pools")) == 2  # the target's and the drafter's
    assert facts(found[Layer.SERVER], "draft tokens")
    assert facts(found[Layer.PROCESS], "pid") == ["41210"]
    assert all(one.read_at == 2000.0 for one in found.values() if one.layer is not Layer.MEASURED)


def test_what_the_server_knows_of_its_memory_and_acceptance_is_told() -> None:
    info = replace(
        server_info({"speculative_algorithm": "DDTREE", "speculative_ngram_capacity": 5}),
        accept_length=4.314,
        weight_gb=70.1,
        kv_gb=46.5,
        token_capacity=714886,
    )
    assert isinstance(info, answers.ServerInfo)
    server = words(survey(BASE, server=info))[Layer.SERVER]
    assert facts(server, "accept length") == ["4.31 since the last flush, all clients"]
    assert facts(server, "memory") == ["weights 70.1 GB, KV cache 46.5 GB on each GPU"]
    assert facts(server, "resolved") == ["speculative_algorithm = DDTREE"]  # n-grams are another matter


def test_a_layer_that_could_not_be_read_says_why_and_the_others_speak() -> None:
    made = survey(BASE, config=captured_drafter())
    made = replace(made, server=Reading(Layer.SERVER, None, "nobody\x1b[31m listens on port 30000", 2000.0))
    found = words(made)
    assert found[Layer.SERVER].problem == "nobody listens on port 30000"
    assert not found[Layer.SERVER].facts and found[Layer.DRAFTER].facts and found[Layer.UNIT].facts


def test_no_secret_is_told() -> None:
    made = survey(
        [*BASE, "--api-key", "hunter2hunter2"],
        engine=installation("0.5.11"),
        server=server_info({"speculative_algorithm": "DFLASH", "api_key": "hunter2hunter2"}),
    )
    assert "hunter2" not in repr(layer_words.layers(made))


def test_a_label_that_comes_again_is_written_once() -> None:
    text = ("accept length falls", "time per step grows")
    made = replace(survey(BASE), measured=Reading(Layer.MEASURED, Measured(2, text), None, 2000.0))
    lines = words(made)[Layer.MEASURED].lines()
    assert [line.split()[0] for line in lines] == ["bursts", "time"]
