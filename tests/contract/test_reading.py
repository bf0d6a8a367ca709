"""What any host must let ddtui read, the demo host and the real one alike."""

from __future__ import annotations

import json

import pytest
from contract_help import problems, ready

from ddtui.host import journal
from ddtui.host.base import Command, Host
from ddtui.tuning import survey as surveys
from ddtui.tuning import verdicts
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Status


async def test_a_command_gives_its_output_and_its_exit_code(host: Host) -> None:
    done = await host.run(["cat", "--", "/etc/hostname", "/nosuch"])
    assert done.exit_code == 1
    assert done.stdout.strip()
    assert b"cat: /nosuch: No such file or directory" in done.stderr


async def test_a_program_that_is_not_there_exits_127(host: Host) -> None:
    assert (await host.run(["nosuchprogram"])).exit_code == 127


async def test_a_batch_runs_every_command_whatever_the_one_before_did(host: Host) -> None:
    done = await host.batch([Command(("cat", "--", "/nosuch")), Command(("id", "-un")), Command(("nosuch",))])
    assert [one.exit_code for one in done] == [1, 0, 127]
    assert done[1].stdout == b"tuner\n"


async def test_the_server_is_reached_through_the_link(tuning: Tuning) -> None:
    from ddtui.engine.api import Api

    await ready(tuning)
    async with Api(await tuning.host.endpoint(30000)) as api:
        info = await api.server_info()
    assert info.version == "0.5.11"
    assert info.arguments["speculative_algorithm"] == "DDTREE"


async def test_a_port_where_nothing_listens_is_refused(host: Host) -> None:
    from ddtui.host.base import HostError

    with pytest.raises((HostError, OSError)):
        await host.open_connection("127.0.0.1", 1)


async def test_the_journal_of_the_unit_is_read_with_its_invocation(tuning: Tuning) -> None:
    await ready(tuning)
    entries = await journal.read(tuning.host, tuning.unit, tuning.service.scope, lines=500)
    texts = [entry.text for entry in entries]
    assert any("The server is fired up and ready to roll!" in text for text in texts)
    assert any("Initialized DFLASH draft runner" in text for text in texts)
    assert len({entry.invocation for entry in entries if entry.invocation}) >= 1


async def test_a_first_survey_reads_every_layer(tuning: Tuning) -> None:
    await ready(tuning)
    survey = await surveys.read(tuning)
    assert problems(survey) == {}
    assert survey.round_trips <= 8


async def test_the_first_finding_the_window_in_the_config_is_not_in_force(tuning: Tuning) -> None:
    await ready(tuning)
    judged = {v.subject: v for v in verdicts.judge(await surveys.read(tuning), tuning.profile)}
    for subject in ("window.layers", "window.flag"):
        assert judged[subject].status is Status.NOT_IN_FORCE, judged[subject]
        assert len({line.layer for line in judged[subject].evidence}) >= 4, judged[subject]
    assert judged["budget"].status is Status.IN_FORCE
    assert judged["budget"].value == "8"


async def test_the_unit_reads_the_same_through_both_ways(tuning: Tuning) -> None:
    """What ddtui merges from the files is what the running process got."""
    await ready(tuning)
    survey = await surveys.read(tuning)
    assert survey.unit.value is not None and survey.process.value is not None
    assert json.dumps(survey.unit.value.launch_argv) == json.dumps(list(survey.process.value.argv))
