"""The two questions of the window, row by row of what is known of SGLang, with the real captures of 0.5.11."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tuning.surveys import (
    BASE,
    NEW_WINDOW,
    OLD_WINDOW,
    PROFILE,
    captured_drafter,
    captured_journal,
    captured_server,
    installation,
    process,
    server_info,
    status,
    survey,
)

from ddtui.engine.installation import DDTree, Installation
from ddtui.tuning import verdicts
from ddtui.tuning.model import Layer, Op, Reading, Status, Turn, Verdict
from ddtui.tuning.survey import Survey

RUNNER = "Initialized DFLASH draft runner"


def judged(made: Survey) -> dict[str, Verdict]:
    return {verdict.subject: verdict for verdict in verdicts.judge(made, PROFILE)}


def without_flag() -> Survey:
    return survey(
        BASE,
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_nowindow"),
        server=captured_server("idle_server_info"),
        config=captured_drafter(),
    )


def with_engine(made: Survey, engine: Installation) -> Survey:
    """The same with another SGLang, installed and running: the server names its version too."""
    server = made.server.value
    assert server is not None
    return replace(
        made,
        engine=Reading(Layer.ENGINE, engine),
        server=replace(made.server, value=replace(server, version=engine.version)),
    )


def with_flag() -> Survey:
    return survey(
        [*BASE, OLD_WINDOW, "2048"],
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_window2048"),
        server=captured_server("win_server_info"),
        config=captured_drafter(),
    )


def test_0_5_11_without_the_flag_is_not_in_force_on_both_questions_with_evidence_of_each_layer() -> None:
    found = judged(without_flag())
    for subject in ("window.layers", "window.flag"):
        verdict = found[subject]
        assert verdict.status is Status.NOT_IN_FORCE
        assert {line.layer for line in verdict.evidence} >= {
            Layer.DRAFTER,
            Layer.ENGINE,
            Layer.UNIT,
            Layer.PROCESS,
            Layer.SERVER,
            Layer.JOURNAL,
        }
        turn = next(action for action in verdict.next if action.action == "turn")
        assert turn.arguments == {"knob": "window", "value": "2048"}
    runner = next(line for line in found["window.flag"].evidence if line.layer is Layer.JOURNAL)
    assert "draft_window_size=None, compact_cache=False" in runner.text
    assert runner.source.count(":") == 2
    drafter = next(line for line in found["window.layers"].evidence if line.layer is Layer.DRAFTER)
    assert "5 of 6" in drafter.text
    assert drafter.source == "/opt/models/drafter/config.json"


def test_0_5_11_with_the_flag_is_in_force_through_the_flag_and_the_layers_still_are_not() -> None:
    found = judged(with_flag())
    assert found["window.flag"].status is Status.IN_FORCE
    assert found["window.flag"].value == "2048"
    assert found["window.layers"].status is Status.NOT_IN_FORCE
    assert "2048 instead" in found["window.layers"].summary


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12", "0.5.13"])
def test_before_0_5_14_sliding_layers_in_the_config_are_not_enforced(version: str) -> None:
    found = judged(with_engine(without_flag(), installation(version)))
    assert found["window.layers"].status is Status.NOT_IN_FORCE


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12", "0.5.14", "0.5.23"])
@pytest.mark.parametrize("slides", [True, False])
def test_the_flag_is_enforced_on_every_layer_where_the_runner_line_says_so(
    version: str, slides: bool
) -> None:
    name = OLD_WINDOW if version == "0.5.11" else NEW_WINDOW
    made = survey(
        [*BASE, name, "2048"],
        engine=installation(version),
        log=captured_journal("start_dflash_window2048"),
        config=captured_drafter() if slides else captured_drafter(layer_types=["full_attention"] * 6),
    )
    assert judged(made)["window.flag"].status is Status.IN_FORCE
    assert "every draft layer" in judged(made)["window.flag"].summary


@pytest.mark.parametrize("version", ["0.5.14", "0.5.16", "0.5.23"])
def test_from_0_5_14_valid_sliding_layers_are_enforced_by_code_and_config_alone(version: str) -> None:
    found = judged(with_engine(without_flag(), installation(version)))
    assert found["window.layers"].status is Status.IN_FORCE
    assert "5 of 6" in found["window.layers"].summary
    assert found["window.flag"].status is Status.NOT_IN_FORCE


@pytest.mark.parametrize(
    "changes",
    [
        {"use_sliding_window": False},
        {"layer_types": None, "use_sliding_window": True, "max_window_layers": 6},
    ],
)
def test_from_0_5_14_a_config_that_does_not_really_slide_is_not_enforced(changes: dict[str, object]) -> None:
    made = replace(
        without_flag(),
        engine=Reading(Layer.ENGINE, installation("0.5.14")),
        drafter=Reading(Layer.DRAFTER, captured_drafter(**changes)),
    )
    assert judged(made)["window.layers"].status is Status.NOT_IN_FORCE


def test_a_fork_that_reads_layer_types_is_known_by_its_files_not_by_its_version() -> None:
    fork = installation("0.5.11", reads_layer_types=True, reads_sliding_window=True)
    made = replace(without_flag(), engine=Reading(Layer.ENGINE, fork))
    assert judged(made)["window.layers"].status is Status.IN_FORCE


def test_a_fork_that_dropped_the_reading_is_known_by_its_files_too() -> None:
    fork = installation("0.5.16", reads_layer_types=False)
    made = replace(without_flag(), engine=Reading(Layer.ENGINE, fork))
    assert judged(made)["window.layers"].status is Status.NOT_IN_FORCE


def test_a_fork_without_the_compact_cache_does_not_honour_its_flag() -> None:
    made = replace(with_flag(), engine=Reading(Layer.ENGINE, installation("0.5.11", has_compact_cache=False)))
    assert judged(made)["window.flag"].status is Status.NOT_IN_FORCE


def test_a_ddtree_worker_that_prints_no_runner_line_leaves_the_flag_unproven() -> None:
    made = survey(
        [*BASE, OLD_WINDOW, "2048"],
        engine=installation("0.5.11", ddtree=DDTree()),
        log=captured_journal("start_dflash_window2048", without=RUNNER),
        config=captured_drafter(),
    )
    verdict = judged(made)["window.flag"]
    assert verdict.status is Status.UNKNOWN
    assert verdict.settle is not None
    assert "draft runner" in verdict.settle


def test_a_ddtree_worker_built_on_dflash_proves_it_despite_the_wrong_warning() -> None:
    """PR 29907 warns that the flag has no effect with DDTREE, and its worker inherits DFlash's window."""
    warning = (
        "[2026-01-01 00:00:00] WARNING --speculative-draft-window-size has no effect with "
        "speculative_algorithm=DDTREE (honored by EAGLE3, DFLASH)"
    )
    made = survey(
        [*BASE, NEW_WINDOW, "2048"],
        engine=installation("0.5.14"),
        log=[*captured_journal("start_dflash_window2048"), warning],
        config=captured_drafter(),
    )
    verdict = judged(made)["window.flag"]
    assert verdict.status is Status.IN_FORCE
    assert "wrong" in verdict.summary


def test_an_algorithm_that_ignores_the_flag_says_so_itself() -> None:
    warning = (
        "[2026-01-01 00:00:00] --speculative-draft-window-size has no effect with "
        "speculative_algorithm=STANDALONE (honored by EAGLE3, DFLASH)"
    )
    argv = [word.replace("DFLASH", "STANDALONE") for word in BASE]
    made = survey(
        [*argv, NEW_WINDOW, "2048"],
        engine=installation("0.5.14"),
        log=[*captured_journal("start_dflash_window2048", without=RUNNER), warning],
        config=captured_drafter(),
    )
    verdict = judged(made)["window.flag"]
    assert verdict.status is Status.NOT_IN_FORCE
    assert verdict.next[0].action == "open-log"


def test_a_runner_line_that_contradicts_the_flag_is_believed() -> None:
    made = survey(
        [*BASE, OLD_WINDOW, "2048"],
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_nowindow"),
        config=captured_drafter(),
    )
    assert judged(made)["window.flag"].status is Status.NOT_IN_FORCE
    made = survey(
        [*BASE, OLD_WINDOW, "4096"],
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_window2048"),
        config=captured_drafter(),
    )
    assert judged(made)["window.flag"].status is Status.CONFLICTING


def test_a_flag_in_the_unit_that_the_process_does_not_have_waits_for_a_restart_or_a_reload() -> None:
    waiting = survey(
        BASE,
        in_unit=[*BASE, OLD_WINDOW, "2048"],
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_nowindow"),
        config=captured_drafter(),
    )
    assert judged(waiting)["window.flag"].status is Status.RESTART_PENDING
    not_loaded = replace(waiting, status=status(need_daemon_reload=True))
    assert judged(not_loaded)["window.flag"].status is Status.RELOAD_PENDING


def test_no_journal_rights_leave_the_flag_unknown_and_say_what_would_settle_it() -> None:
    made = replace(with_flag(), journal=Reading(Layer.JOURNAL, problem="this user may not read the journal"))
    verdict = judged(made)["window.flag"]
    assert verdict.status is Status.UNKNOWN
    assert verdict.settle == "this user may not read the journal"


def test_an_engine_that_cannot_be_read_leaves_the_layers_unknown() -> None:
    made = replace(without_flag(), engine=Reading(Layer.ENGINE, problem="no module named sglang"))
    assert judged(made)["window.layers"].status is Status.UNKNOWN
    assert judged(made)["window.flag"].status is Status.NOT_IN_FORCE


def test_a_release_without_the_flag_says_so() -> None:
    made = with_engine(without_flag(), installation("0.5.10"))
    verdict = judged(made)["window.flag"]
    assert verdict.status is Status.NOT_IN_FORCE
    assert "no flag" in verdict.summary
    assert verdict.next == ()


def test_a_config_changed_after_the_start_is_not_the_one_that_runs() -> None:
    made = with_engine(without_flag(), installation("0.5.14"))
    made = replace(made, stamps={"/opt/models/drafter/config.json": 1500.0})
    assert judged(made)["window.layers"].status is Status.RESTART_PENDING


def test_without_a_drafter_the_window_is_no_question() -> None:
    argv = BASE[: BASE.index("--speculative-algorithm")]
    made = survey(
        argv,
        engine=installation("0.5.11"),
        log=captured_journal("start_no_speculation"),
        server=server_info({"model_path": "/opt/models/target"}),
    )
    assert not {"window.layers", "window.flag"} & set(judged(made))


def test_a_drafter_without_any_window_makes_no_question_of_its_layers() -> None:
    config = captured_drafter(
        layer_types=["full_attention"] * 6, sliding_window=None, use_sliding_window=False
    )
    made = replace(without_flag(), drafter=Reading(Layer.DRAFTER, config))
    assert "window.layers" not in judged(made)
    assert judged(made)["window.flag"].status is Status.NOT_IN_FORCE


def test_a_service_that_does_not_run_has_nothing_in_force() -> None:
    made = replace(
        with_flag(),
        status=status(active_state="failed", sub_state="failed", result="exit-code"),
        process=Reading(Layer.PROCESS, problem="no server process runs under the unit"),
    )
    found = judged(made)
    assert {found[subject].status for subject in ("window.layers", "window.flag")} == {Status.NOT_IN_FORCE}
    assert "exit-code" in found["window.flag"].summary


def test_a_turn_of_the_window_is_judged_by_the_flag() -> None:
    turn = Turn("window", Op.SET, "2048")
    assert verdicts.judge_turn(with_flag(), PROFILE, turn).status is Status.IN_FORCE
    assert verdicts.judge_turn(without_flag(), PROFILE, turn).status is Status.NOT_IN_FORCE
    assert (
        verdicts.judge_turn(with_flag(), PROFILE, Turn("window", Op.SET, "4096")).status
        is Status.NOT_IN_FORCE
    )
    assert verdicts.judge_turn(without_flag(), PROFILE, Turn("window", Op.UNSET)).status is Status.IN_FORCE
    assert (
        verdicts.judge_turn(with_flag(), PROFILE, Turn("window", Op.UNSET)).status is Status.RESTART_PENDING
    )


def test_an_abbreviated_flag_is_read_as_sglang_reads_it() -> None:
    argv = [*BASE, "--speculative-dflash-draft-window", "2048"]
    made = replace(
        with_flag(),
        process=Reading(Layer.PROCESS, process(argv)),
        unit=survey(argv).unit,
    )
    assert judged(made)["window.flag"].status is Status.IN_FORCE


def test_an_engine_that_was_replaced_under_the_server_waits_for_a_restart() -> None:
    """0.5.14 is installed and would honour the layers; 0.5.11 runs on, and does not."""
    made = replace(
        survey(
            BASE,
            engine=installation("0.5.14"),
            log=captured_journal("start_dflash_nowindow"),
            server=captured_server("idle_server_info"),
            config=captured_drafter(),
        ),
    )
    found = judged(made)
    assert found["window.layers"].status is Status.RESTART_PENDING
    files = found["files"]
    assert files.status is Status.RESTART_PENDING
    assert files.summary == "the server runs SGLang 0.5.11, and 0.5.14 is installed now"
    assert {line.layer for line in files.evidence} == {Layer.ENGINE, Layer.SERVER, Layer.PROCESS}
    assert files.next[0].action == "restart"


def test_a_checkout_that_was_edited_after_the_start_is_not_the_code_that_runs() -> None:
    made = survey(BASE, engine=installation("0.5.14", changed_at=1500.0), config=captured_drafter())
    assert judged(made)["window.layers"].status is Status.RESTART_PENDING
    assert "was changed after the server had started" in judged(made)["files"].summary


def test_a_first_start_writes_into_the_packages_folder_and_changes_no_source() -> None:
    """The compiled modules of a package that was installed without them make its folder young."""
    made = survey(BASE, engine=installation("0.5.14", changed_at=900.0), config=captured_drafter())
    made = replace(made, stamps={"/opt/site/sglang": 1010.0})
    assert judged(made)["window.layers"].status is Status.IN_FORCE
    assert "files" not in judged(made)


def test_builds_of_one_release_are_the_same_release() -> None:
    made = survey(
        BASE,
        engine=replace(installation("0.5.14", changed_at=900.0), version="0.5.14+cu129"),
        server=server_info({}, "0.5.14"),
        config=captured_drafter(),
    )
    assert "files" not in judged(made)


def test_a_flag_that_the_replaced_engine_has_lost_is_in_conflict_not_out_of_force() -> None:
    argv = [*BASE, "--speculative-ddtree-budget", "8"]
    made = survey(argv, engine=installation("0.5.14"), server=server_info({}, "0.5.11"))
    budget = judged(made)["budget"]
    assert budget.status is Status.CONFLICTING and "the next start fails" in budget.summary
