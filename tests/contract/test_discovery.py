"""What is found on a host that no profile names: the same on the demo host and on the real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from contract.conftest import Place

from ddtui import profile
from ddtui.host.base import Host
from ddtui.profile import Scope
from ddtui.tuning import discovery, written

UNIT = "sglang-k26-ddtree.service"


async def test_the_unit_its_drafter_and_its_port_are_found_without_being_named(host: Host) -> None:
    findings = await discovery.find(host)
    (found,) = findings.units
    assert (found.unit, found.scope, found.active) == (UNIT, Scope.SYSTEM, "active")
    assert found.model == "/opt/models/Kimi-K2.6" and found.drafter == "/opt/models/Kimi-K2.6-DFlash"
    assert (found.algorithm, found.port, found.problem) == ("DDTREE", 30000, None)
    assert found.pid is not None and findings.notes == ()


async def test_what_was_found_is_tried_and_written_as_a_profile_that_reads_back(
    place: Place, host: Host, tmp_path: Path
) -> None:
    (found,) = (await discovery.find(host)).units
    made = discovery.draft("mine", place.profile.connection, found, production=True)
    tested = await discovery.test(host, made)
    assert tested.problems == ()
    assert [knob.name for knob in tested.profile.knobs] == ["budget", "topk", "window"]
    assert any("SGLang" in text for text in tested.good)
    text = written.as_yaml(tested.profile)
    assert profile.parse(text, tmp_path / "mine.yaml") == tested.profile
    assert "# " in text


async def test_a_knob_that_the_installed_engine_does_not_know_is_left_out(place: Place, host: Host) -> None:
    (found,) = (await discovery.find(host)).units
    made = discovery.draft("mine", place.profile.connection, found)
    knobs = (
        *made.knobs,
        made.knobs[0].model_copy(update={"name": "odd", "flag": "--no-such-flag", "key": "o"}),
    )
    tested = await discovery.test(host, made.model_copy(update={"knobs": knobs}))
    assert "odd" not in [knob.name for knob in tested.profile.knobs]
    assert any("odd" in text for text in tested.problems)


def test_profiles_new_makes_one_from_the_host_that_check_then_takes(place: Place) -> None:
    connection = place.profile.connection
    done = subprocess.run(
        [sys.executable, "-m", "ddtui", "profiles", "new", "gpu", "--host",
         f"{connection.user}@{connection.host}:{connection.port}", "--identity-file",
         str(connection.identity_file), "--known-hosts", str(connection.known_hosts), "--ssh-config", "/dev/null"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"service  {UNIT} (systemd, active)" in done.stdout
    made = profile.load("gpu")
    assert made.service.unit == UNIT and made.connection == connection.model_copy(
        update={"connect_timeout": 10.0, "keepalive": 5.0}
    )
