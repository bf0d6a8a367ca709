"""What is in force for a knob or any other flag, by what the layers say together."""

from __future__ import annotations

from dataclasses import replace

from tuning.surveys import (
    BASE,
    DDTREE_FLAGS,
    PROFILE,
    captured_drafter,
    captured_journal,
    captured_server,
    installation,
    process,
    server_info,
    status,
    survey,
    unit,
)

from ddtui.engine import evidence
from ddtui.engine.flags import Flag, FlagTable
from ddtui.profile import Connection, Knob, Profile, Service
from ddtui.tuning import survey as surveys
from ddtui.tuning import verdicts
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer, Op, Reading, Status, Turn, Verdict
from ddtui.tuning.survey import Survey

ARGV = [
    *[word.replace("DFLASH", "DDTREE") for word in BASE],
    "--speculative-ddtree-budget",
    "8",
    "--speculative-ddtree-topk-cap",
    "4",
]
ANSWER = {
    "model_path": "/opt/models/target",
    "speculative_ddtree_budget": 8,
    "speculative_ddtree_topk_cap": 4,
    "mem_fraction_static": 0.88,
}
WORKER = "[2026-01-01 12:00:01] Initialized DDTree worker. block_size=8, tree_budget={}, max_tree_nodes={}"


def fork() -> Survey:
    return survey(
        ARGV,
        engine=installation("0.5.11", flags=DDTREE_FLAGS),
        log=[WORKER.format(8, 9)],
        server=server_info(ANSWER),
        config=captured_drafter(),
    )


def of(made: Survey, subject: str) -> Verdict:
    return {verdict.subject: verdict for verdict in verdicts.judge(made, PROFILE)}[subject]


def test_a_budget_that_unit_process_server_and_worker_agree_on_is_in_force() -> None:
    verdict = of(fork(), "budget")
    assert verdict.status is Status.IN_FORCE
    assert verdict.value == "8"
    assert {line.layer for line in verdict.evidence} >= {
        Layer.ENGINE,
        Layer.UNIT,
        Layer.PROCESS,
        Layer.SERVER,
        Layer.JOURNAL,
    }
    sources = {line.layer: line.source for line in verdict.evidence}
    assert sources[Layer.PROCESS] == "pid 41210"
    assert sources[Layer.SERVER] == "GET /server_info"
    assert sources[Layer.UNIT].startswith("/etc/systemd/system/sglang.service:")
    assert sources[Layer.JOURNAL] == "12:00:01"


def test_a_worker_whose_own_line_names_another_budget_is_in_conflict() -> None:
    made = replace(fork(), journal=Reading(Layer.JOURNAL, evidence.of_start([WORKER.format(7, 8)])))
    assert of(made, "budget").status is Status.CONFLICTING


def test_a_server_that_answers_another_value_is_in_conflict() -> None:
    made = replace(
        fork(), server=Reading(Layer.SERVER, server_info({**ANSWER, "speculative_ddtree_topk_cap": 2}))
    )
    assert of(made, "topk").status is Status.CONFLICTING


def test_a_value_that_the_engine_overrode_is_not_in_force_and_the_line_is_quoted() -> None:
    argv = [*BASE, "--speculative-eagle-topk", "4"]
    made = survey(
        argv,
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_block8_topk4_steps3_window4096"),
        server=server_info({"model_path": "/opt/models/target", "speculative_eagle_topk": 1}),
    )
    verdict = verdicts.judge_turn(made, PROFILE, Turn("--speculative-eagle-topk", Op.SET, "4"))
    assert verdict.status is Status.NOT_IN_FORCE
    assert "topk" in verdict.summary
    assert verdict.next[0].action == "open-log"


def test_numbers_are_compared_by_value() -> None:
    argv = [*ARGV, "--mem-fraction-static", "0.880"]
    made = replace(
        fork(), process=Reading(Layer.PROCESS, process(argv)), unit=Reading(Layer.UNIT, unit(argv))
    )
    verdict = verdicts.judge_turn(made, PROFILE, Turn("--mem-fraction-static", Op.SET, "0.88"))
    assert verdict.status is Status.IN_FORCE


def test_a_unit_changed_since_the_start_waits_for_a_restart() -> None:
    argv = [word if word != "8" else "16" for word in ARGV]
    made = replace(fork(), unit=Reading(Layer.UNIT, unit(argv)))
    verdict = of(made, "budget")
    assert verdict.status is Status.RESTART_PENDING
    assert verdict.value == "16"
    assert verdict.next[0].action == "restart"
    made = replace(made, status=status(need_daemon_reload=True))
    assert of(made, "budget").status is Status.RELOAD_PENDING


def test_that_the_process_is_older_than_the_unit_is_said_only_where_the_files_times_tell_it() -> None:
    """A flag that the start script sets too makes the same difference, and no restart would help it."""
    argv = [word if word != "8" else "16" for word in ARGV]
    made = replace(fork(), unit=Reading(Layer.UNIT, unit(argv)))  # the process started at 1000.0
    path = "/etc/systemd/system/sglang.service"
    older = of(replace(made, stamps={path: 1500.0}), "budget")
    assert older.summary.endswith("; it was started before that")
    younger = of(replace(made, stamps={path: 500.0}), "budget")
    assert younger.status is Status.RESTART_PENDING
    assert younger.summary.endswith("; it was started before that, or what starts it sets another value")


def test_a_server_that_does_not_answer_is_believed_by_its_own_first_line() -> None:
    made = survey(
        BASE,
        engine=installation("0.5.11"),
        log=captured_journal("start_dflash_nowindow"),
        config=captured_drafter(),
    )
    verdict = verdicts.judge_turn(made, PROFILE, Turn("--port", Op.SET, "30000"))
    assert verdict.status is Status.IN_FORCE
    assert "journal" in verdict.summary


def test_a_process_alone_proves_nothing() -> None:
    made = replace(
        fork(),
        server=Reading(Layer.SERVER, problem="the server wants an API key"),
        journal=Reading(Layer.JOURNAL, problem="this user may not read the journal"),
    )
    verdict = of(made, "topk")
    assert verdict.status is Status.UNKNOWN
    assert verdict.settle


def test_a_flag_that_is_not_set_has_the_default_in_force() -> None:
    made = survey(
        BASE,
        engine=installation("0.5.11", flags=DDTREE_FLAGS),
        server=server_info({"model_path": "/opt/models/target", "speculative_ddtree_budget": 7}),
    )
    verdict = of(made, "budget")
    assert verdict.status is Status.IN_FORCE
    assert verdict.value is None
    assert "7" in verdict.summary


def test_a_flag_that_the_installed_engine_does_not_have_is_not_in_force() -> None:
    made = survey(
        BASE, in_unit=ARGV, engine=installation("0.5.11"), server=captured_server("idle_server_info")
    )
    verdict = of(made, "budget")
    assert verdict.status is Status.NOT_IN_FORCE
    assert "has no --speculative-ddtree-budget" in verdict.summary


def test_a_table_that_is_not_complete_refuses_nothing() -> None:
    engine = installation("0.5.11")
    engine = replace(engine, flags=FlagTable(engine.flags.flags, complete=False))
    made = replace(fork(), engine=Reading(Layer.ENGINE, engine))
    assert of(made, "budget").status is Status.IN_FORCE


def test_a_crash_loop_has_nothing_in_force() -> None:
    made = replace(
        fork(),
        status=status(active_state="activating", sub_state="auto-restart", result="exit-code", main_pid=0),
        process=Reading(Layer.PROCESS, problem="no server process runs under the unit"),
    )
    verdict = of(made, "budget")
    assert verdict.status is Status.NOT_IN_FORCE
    assert "try again" in verdict.summary


def test_a_flag_that_was_taken_away_is_in_force_once_the_process_runs_without_it() -> None:
    turn = Turn("budget", Op.UNSET)
    assert verdicts.judge_turn(fork(), PROFILE, turn).status is Status.RESTART_PENDING
    made = replace(
        fork(), process=Reading(Layer.PROCESS, process(BASE)), unit=Reading(Layer.UNIT, unit(BASE))
    )
    assert verdicts.judge_turn(made, PROFILE, turn).status is Status.IN_FORCE


def test_flags_that_no_knob_stands_for_are_compared_too() -> None:
    made = replace(fork(), unit=Reading(Layer.UNIT, unit([*ARGV, "--mem-fraction-static", "0.5"])))
    verdict = of(made, "service")
    assert verdict.status is Status.RESTART_PENDING
    assert any("--mem-fraction-static 0.5" in line.text for line in verdict.evidence)
    assert "service" not in {v.subject for v in verdicts.judge(fork(), PROFILE)}


def test_a_secret_never_stands_in_evidence_and_the_same_secret_is_no_conflict() -> None:
    argv = [*ARGV, "--api-key", "sk-very-secret-0123456789"]
    made = replace(
        fork(),
        process=Reading(Layer.PROCESS, process(argv)),
        unit=Reading(Layer.UNIT, unit(argv)),
        server=Reading(Layer.SERVER, server_info({**ANSWER, "api_key": "sk-very-secret-0123456789"})),
    )
    verdict = verdicts.judge_turn(made, PROFILE, Turn("--api-key", Op.SET, None))
    assert "sk-very-secret" not in repr(verdict)
    direct = verdicts._flag(made, "--api-key", "--api-key")
    assert direct.status is Status.IN_FORCE


def test_an_environment_variable_is_in_force_by_name_and_time() -> None:
    profile = Profile(
        name="env",
        connection=Connection(host="ct200"),
        service=Service(unit="sglang.service"),
        knobs=(Knob(name="max_topk", env="SGLANG_DDTREE_MAX_TOPK"),),
    )
    name = "SGLANG_DDTREE_MAX_TOPK"
    with_it = unit(ARGV, environment={name: "6"}, env={name: "6"})
    made = replace(
        fork(),
        unit=Reading(Layer.UNIT, with_it),
        process=Reading(Layer.PROCESS, process(ARGV, environment=(name,))),
    )
    verdict = {v.subject: v for v in verdicts.judge(made, profile)}["max_topk"]
    assert (verdict.status, verdict.value) == (Status.IN_FORCE, "6")
    made = replace(made, process=Reading(Layer.PROCESS, process(ARGV, environment=())))
    verdict = {v.subject: v for v in verdicts.judge(made, profile)}["max_topk"]
    assert verdict.status is Status.RESTART_PENDING
    made = replace(made, process=Reading(Layer.PROCESS, process(ARGV, environment=None)))
    verdict = {v.subject: v for v in verdicts.judge(made, profile)}["max_topk"]
    assert verdict.status is Status.UNKNOWN


def test_a_value_from_sglangs_own_config_file_counts_for_the_process() -> None:
    argv = [*BASE, "--config", "/etc/sglang/server.yaml"]
    from ddtui.host.unit.read import Source

    read = unit(
        argv,
        effective_flags={"--speculative-ddtree-budget": "8", **unit(argv).flags},
        flag_sources={"--speculative-ddtree-budget": Source("/etc/sglang/server.yaml", 3)},
    )
    engine = installation("0.5.11", flags=(*DDTREE_FLAGS, Flag(("--config",), "config")))
    made = replace(
        fork(),
        engine=Reading(Layer.ENGINE, engine),
        unit=Reading(Layer.UNIT, read),
        process=Reading(Layer.PROCESS, process(argv)),
    )
    verdict = of(made, "budget")
    assert verdict.status is Status.IN_FORCE
    assert any(line.source == "/etc/sglang/server.yaml:3" for line in verdict.evidence)


def test_knob_rows_show_each_layer_and_the_default() -> None:
    ctx = Tuning(PROFILE, host=None)  # type: ignore[arg-type]
    rows = {row.name: row for row in surveys.knob_rows(fork(), ctx)}
    assert (rows["budget"].in_unit, rows["budget"].running, rows["budget"].server) == ("8", "8", "8")
    assert (rows["window"].in_unit, rows["window"].running, rows["window"].server) == (None, None, None)


def test_a_process_that_runs_as_planned_is_told_from_one_that_does_not() -> None:
    assert verdicts.runs_as(fork(), ARGV).fine  # type: ignore[union-attr]
    other = verdicts.runs_as(fork(), [*ARGV, "--mem-fraction-static", "0.5"])
    assert other is not None
    assert not other.fine
