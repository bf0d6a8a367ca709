"""A host of which half is broken, either kind: each layer says so in a sentence, the others still work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio
from contract.conftest import Place
from contract_help import problems, ready

from ddtui.host.base import Host, NobodyToAsk
from ddtui.host.open import open_host
from ddtui.tuning import survey as surveys
from ddtui.tuning import verdicts
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer

DRAFTER = "/opt/models/Kimi-K2.6-DFlash/config.json"
NOWHERE = b"[Service]\nEnvironment=PYTHONPATH=/nowhere\nWorkingDirectory=/\n"
START = "/usr/bin/python3 -m sglang.launch_server --model-path /opt/models/Kimi-K2.6 --tp-size 8"


@pytest_asyncio.fixture
async def running(tuning: Tuning) -> Tuning:
    await ready(tuning)
    return tuning


async def root(host: Host, *argv: str, stdin: bytes | None = None) -> None:
    done = await host.run(argv, sudo=True, stdin=stdin)
    assert done.ok, done.err


async def read(host: Host, path: str) -> bytes:
    return (await host.run(["cat", "--", path])).stdout


@asynccontextmanager
async def written(host: Host, path: str, content: bytes) -> AsyncIterator[None]:
    """A file with this content, for a while."""
    kept = await read(host, path)
    await root(host, "tee", "--", path, stdin=content)
    try:
        yield
    finally:
        await root(host, "tee", "--", path, stdin=kept)


async def test_a_config_that_is_not_there_is_the_drafters_own_problem(running: Tuning) -> None:
    await root(running.host, "mv", "-T", "--", DRAFTER, f"{DRAFTER}.away")
    try:
        found = problems(await surveys.read(running))
    finally:
        await root(running.host, "mv", "-T", "--", f"{DRAFTER}.away", DRAFTER)
    assert set(found) == {Layer.DRAFTER}
    assert "No such file" in found[Layer.DRAFTER] and DRAFTER in found[Layer.DRAFTER]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbf" + b'{"architectures": ["DFlashDraftModel"]}', "byte order mark"),
        (b'{"architectures": ["DFlashDraftModel"], "sliding_window": NaN}', "the file holds NaN"),
    ],
    ids=["BOM", "NaN"],
)
async def test_a_config_that_is_no_clean_json_is_read_with_a_warning(
    running: Tuning, content: bytes, words: str
) -> None:
    async with written(running.host, DRAFTER, content):
        survey = await surveys.read(running)
    assert problems(survey) == {} and survey.drafter.value is not None
    assert any(words in warning for warning in survey.drafter.value.warnings), survey.drafter.value.warnings


async def test_a_config_that_was_cut_off_is_said_with_the_place(running: Tuning) -> None:
    async with written(running.host, DRAFTER, b"[1, 2"):
        found = problems(await surveys.read(running))
    assert set(found) == {Layer.DRAFTER}
    assert "not valid JSON" in found[Layer.DRAFTER] and "line 1" in found[Layer.DRAFTER]


async def test_a_config_of_5_megabytes_is_read_as_any_other(running: Tuning) -> None:
    text = (await read(running.host, DRAFTER)).decode().rstrip().removesuffix("}")
    async with written(running.host, DRAFTER, f'{text}, "notes": "{"x" * 5_000_000}"}}'.encode()):
        survey = await surveys.read(running)
    assert problems(survey) == {} and survey.drafter.value is not None
    assert survey.drafter.value.sliding_window == 2048


async def test_a_config_that_this_user_may_not_read_is_said_with_its_path(running: Tuning) -> None:
    await root(running.host, "chmod", "600", "--", DRAFTER)
    try:
        found = problems(await surveys.read(running))
    finally:
        await root(running.host, "chmod", "644", "--", DRAFTER)
    assert set(found) == {Layer.DRAFTER}
    assert DRAFTER in found[Layer.DRAFTER] and "Permission denied" in found[Layer.DRAFTER]


async def test_without_journal_rights_the_other_layers_still_speak(running: Tuning, place: Place) -> None:
    limited = open_host(place.profile.connection.model_copy(update={"user": "limited"}), NobodyToAsk())
    await limited.connect()
    try:
        found = problems(await surveys.read(replace(running, host=limited)))
    finally:
        await limited.close()
    assert set(found) == {Layer.JOURNAL}
    assert "may not read the journal" in found[Layer.JOURNAL]


async def test_a_unit_that_does_not_exist_is_said_by_each_layer_in_a_sentence(tuning: Tuning) -> None:
    service = tuning.profile.service.model_copy(update={"unit": "nosuch.service"})
    ctx = replace(tuning, profile=tuning.profile.model_copy(update={"service": service}))
    found = problems(await surveys.read(ctx))
    assert "nosuch.service" in found[Layer.UNIT] and "nosuch.service" in found[Layer.PROCESS]
    assert set(found) == {
        Layer.UNIT,
        Layer.PROCESS,
        Layer.SERVER,
        Layer.JOURNAL,
        Layer.DRAFTER,
        Layer.ENGINE,
    }


async def test_a_sglang_that_cannot_be_imported_is_the_engines_own_problem(running: Tuning) -> None:
    folder = f"/run/systemd/system/{running.unit}.d"
    path = f"{folder}/90-nowhere.conf"
    await root(running.host, "systemctl", "stop", running.unit)  # what runs would be read where it runs from
    await root(running.host, "mkdir", "-p", "--", folder)
    await root(running.host, "tee", "--", path, stdin=NOWHERE)
    await root(running.host, "systemctl", "daemon-reload")
    try:
        found = problems(await surveys.read(running))
    finally:
        await root(running.host, "rm", "-f", "--", path)
        await root(running.host, "systemctl", "daemon-reload")
        await root(running.host, "systemctl", "start", running.unit)
    assert found[Layer.ENGINE].startswith("/usr/bin/python3 has no package sglang")
    assert not {Layer.UNIT, Layer.DRAFTER} & set(found), found


Extra = Callable[[str], Awaitable[None]]


@pytest_asyncio.fixture
async def extra(running: Tuning) -> AsyncIterator[Extra]:
    """More of the unit for one test; the server is started with it, and as before after it."""
    folder = f"/run/systemd/system/{running.unit}.d"
    path = f"{folder}/90-broken.conf"

    async def again() -> None:
        await root(running.host, "systemctl", "daemon-reload")
        await root(running.host, "systemctl", "restart", running.unit)

    async def write(text: str) -> None:
        await root(running.host, "mkdir", "-p", "--", folder)
        await root(running.host, "tee", "--", path, stdin=f"[Service]\n{text}\n".encode())
        await again()

    yield write
    await root(running.host, "rm", "-f", "--", path)
    await again()


async def test_a_server_behind_a_key_says_that_it_wants_one_and_the_rest_is_read(
    running: Tuning, extra: Extra
) -> None:
    await extra(f"ExecStart=\nExecStart={START} --api-key hunter2hunter2 --port 30000")
    await ready(running)
    survey = await surveys.read(running)
    found = problems(survey)
    assert "key" in found[Layer.SERVER], found
    assert not {Layer.UNIT, Layer.PROCESS, Layer.ENGINE, Layer.JOURNAL} & set(found), found
    assert "hunter2" not in repr(verdicts.judge(survey, running.profile)) + repr(survey.journal)


async def test_a_server_that_is_down_leaves_the_layers_on_disk(running: Tuning) -> None:
    await root(running.host, "systemctl", "stop", running.unit)
    try:
        found = problems(await surveys.read(running))
    finally:
        await root(running.host, "systemctl", "start", running.unit)
    assert {Layer.PROCESS, Layer.SERVER} <= set(found) <= {Layer.PROCESS, Layer.SERVER, Layer.JOURNAL}
    assert "not running" in found[Layer.SERVER]


async def test_another_server_on_the_services_port_is_not_taken_for_it(running: Tuning, extra: Extra) -> None:
    await extra(f"ExecStart=\nExecStart={START} --port 30001")
    model, other = "/opt/models/Kimi-K2.6", "/opt/models/other"
    await root(running.host, "mkdir", "-p", "--", other)
    config = await read(running.host, f"{model}/config.json")
    await root(running.host, "tee", "--", f"{other}/config.json", stdin=config)
    unit = "/run/systemd/system/other-server.service"
    text = (
        "[Service]\nEnvironment=PYTHONPATH=/opt/sglang SGLANG_STANDIN_LOAD_SECONDS=0.1\n"
        f"ExecStart={START.replace(model, other)} --port 30000\n"
    )
    await root(running.host, "tee", "--", unit, stdin=text.encode())
    await root(running.host, "systemctl", "daemon-reload")
    await root(running.host, "systemctl", "start", "other-server.service")
    service = running.profile.service.model_copy(update={"port": 30000})
    ctx = replace(running, profile=running.profile.model_copy(update={"service": service}))
    try:
        await ready(running)
        found = problems(await surveys.read(ctx))
    finally:
        await root(running.host, "systemctl", "stop", "other-server.service")
        await root(running.host, "rm", "-f", "--", unit, f"{other}/config.json")
    assert "another server answers on port 30000" in found[Layer.SERVER], found
    assert not {Layer.UNIT, Layer.PROCESS, Layer.ENGINE} & set(found), found
