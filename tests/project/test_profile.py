"""Profiles: found by name or path, validated, and every fault named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtui import locations, profile

GOOD = """\
connection: {host: gpu1}
service: {unit: sglang.service}
knobs: [{name: budget, flag: --speculative-ddtree-budget}]
"""


def fault(text: str) -> str:
    with pytest.raises(profile.ProfileError) as caught:
        profile.parse(text, Path("my.yaml"))
    return str(caught.value)


@pytest.mark.parametrize("name", ["demo", "kimi-k26-ddtree", "dflash", "eagle3"])
def test_every_shipped_profile_is_valid_and_named_as_its_file(name: str) -> None:
    assert profile.load(name).name == name


def test_the_owners_host_has_its_unit_and_the_three_knobs() -> None:
    loaded = profile.load("kimi-k26-ddtree")
    assert loaded.service.unit == "sglang-k26-ddtree.service"
    assert [(knob.name, knob.flag) for knob in loaded.knobs] == [
        ("budget", "--speculative-ddtree-budget"),
        ("topk", "--speculative-ddtree-topk-cap"),
        ("window", "--speculative-dflash-draft-window-size"),
    ]


def test_the_commented_profile_shows_every_key_of_the_model() -> None:
    text = (Path(__file__).parents[2] / "profiles/kimi-k26-ddtree.yaml").read_text()
    service = (profile.Service, profile.Compose, profile.Commands)
    models = (profile.Profile, profile.Connection, *service, profile.Knob, profile.Bench)
    keys = {key for model in models for key in model.model_fields} - {"env"}
    missing = [key for key in sorted(keys) if f"{key}:" not in text]
    assert missing == []
    assert "`env`" in text


def test_the_users_profile_comes_before_a_shipped_one_of_the_same_name() -> None:
    folder = locations.config_dir() / "profiles"
    folder.mkdir(parents=True)
    (folder / "demo.yaml").write_text(GOOD)
    assert profile.load("demo").connection.host == "gpu1"
    assert profile.names().count("demo") == 1


def test_a_path_is_taken_as_it_is_and_names_the_profile(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("\ufeff" + GOOD, encoding="utf-8")
    assert profile.load(str(tmp_path / "other.yaml")).name == "other"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(profile.ProfileError, match=r"no profile named 'nosuch'.*demo.*`ddtui profiles new`"):
        profile.load("nosuch")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "my.yaml: is empty or not a mapping"),
        ("- a\n- b\n", "my.yaml: is empty or not a mapping"),
        ("name: [1\nx: 2\n", "my.yaml:2: is not valid YAML: "),
        ("name: \t{\n", "my.yaml:"),
        (GOOD + "service: {unit: b.service}\n", "my.yaml:4: service: stands twice"),
        (GOOD + "conection: {}\n", "my.yaml:4: conection: is not a key of a profile here; did you mean `connection`?"),
        (GOOD.replace("unit:", "unti:"), "my.yaml:2: service.unti: is not a key of a profile here; did you mean `unit`?"),
        (GOOD.replace("{host: gpu1}", "{}"), "my.yaml:1: connection.host: is missing; example: `host: gpu1.example.com"),
        (GOOD.replace("sglang.service", "sglang"), "my.yaml:2: service.unit: must be a full unit name that ends in .service, but it is 'sglang'"),
        (GOOD.replace("--spec", "spec"), "my.yaml:3: knobs.0.flag: must be a long flag"),
        (GOOD.replace("name: budget, ", ""), "my.yaml:3: knobs.0.name: is missing; example: `name: budget`"),
        (GOOD.replace("budget,", "budget, key: bb,"), "knobs.0.key: string should have at most 1 character, but it is 'bb'"),
        (GOOD.replace("budget,", "budget, env: X,"), "knobs.0: a knob needs a `flag` or an `env` behind it, and not both"),
        (GOOD.replace("budget,", "budget, min: 9, max: 3,"), "knobs.0: min 9 is above max 3"),
        (GOOD.replace("host: gpu1", "host: gpu1, port: 99999"), "connection.port: input should be less than or equal to 65535, but it is 99999"),
        (GOOD + "bench:\n  concurrency: [1, 0]\n", "my.yaml:5: bench.concurrency.1: input should be greater than or equal to 1, but it is 0"),
        (GOOD + "bench:\n  at: moon\n", "my.yaml:5: bench.at: input should be 'host' or 'here', but it is 'moon'"),
    ],
)  # fmt: skip
def test_a_fault_names_file_line_key_and_what_is_wrong(text: str, expected: str) -> None:
    assert expected in fault(text)


def test_all_faults_are_told_at_once() -> None:
    text = GOOD.replace("gpu1", "''").replace("name: budget", "name: B")
    assert len(fault(text).splitlines()) == 2


def test_two_knobs_may_not_share_a_name_or_a_key() -> None:
    knobs = "knobs: [{name: a, flag: --a, key: x}, {name: b, flag: --b, key: x}]\n"
    assert "two knobs have the key 'x'" in fault(
        GOOD.splitlines()[0] + "\nservice: {unit: a.service}\n" + knobs
    )


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(profile.ProfileError, match=r"is not UTF-8 text \(byte 6 is invalid\)"):
        profile.load(str(tmp_path / "bad.yaml"))
