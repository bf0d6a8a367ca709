"""`ddtui check`: its exit code says whether all is as asked."""

from __future__ import annotations

from dataclasses import replace

from tuning.surveys import BASE, PROFILE, installation, server_info, survey

from ddtui.commands import check
from ddtui.tuning import verdicts
from ddtui.tuning.model import Layer, Reading


def test_a_host_whose_unit_could_not_be_read_is_not_all_as_asked() -> None:
    made = replace(survey(BASE), unit=Reading(Layer.UNIT, None, "systemd does not answer", 2000.0))
    assert check.status(made, ()) == 1


def test_without_a_finding_all_is_as_asked_and_with_one_it_is_not() -> None:
    made = survey(BASE, engine=installation("0.5.11"), server=server_info({}))
    judged = verdicts.judge(made, PROFILE)
    fine = tuple(verdict for verdict in judged if verdict.fine)
    assert check.status(made, fine) == 0
    assert len(fine) < len(judged) and check.status(made, judged) == 1
