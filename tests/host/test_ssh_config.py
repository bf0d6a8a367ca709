"""What is taken from ssh_config, what is not and said so, and what a mistake in it sounds like."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtui.host import ssh_config
from ddtui.host.base import ConfigError
from ddtui.host.ssh_config import Route
from ddtui.profile import Connection


def route(tmp_path: Path, text: str, host: str = "gpu", **connection: object) -> Route:
    config = tmp_path / "config"
    config.write_text(text)
    return ssh_config.resolve(Connection(host=host, config=config, **connection))  # type: ignore[arg-type]


def test_host_blocks_first_value_wins_and_tokens(tmp_path: Path) -> None:
    (hop,) = route(
        tmp_path,
        "Host gpu\n  HostName %h.example.org\n  Port 2222\n  User me\n  IdentityFile ~/.ssh/%r_key\n"
        "Host *\n  Port 1\n  User other\n  ServerAliveInterval 7\n  ConnectTimeout 3\n  Ciphers aes256-ctr\n",
    ).hops
    assert (hop.host, hop.port, hop.user) == ("gpu.example.org", 2222, "me")
    assert hop.identity_files == (Path("~/.ssh/me_key").expanduser(),)
    assert (hop.keepalive, hop.connect_timeout) == (7.0, 3.0)
    assert hop.settings["encryption_algs"] == "aes256-ctr"
    assert hop.target == "me@gpu.example.org:2222"


def test_the_profile_beats_the_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch()
    (hop,) = route(
        tmp_path,
        "Host gpu\n  Port 2222\n  User me\n  IdentityFile /other\n  ServerAliveInterval 7\n  ConnectTimeout 3\n",
        user="tuner",
        port=22,
        identity_file=key,
        keepalive=1.0,
        connect_timeout=2.0,
        known_hosts=tmp_path / "kh",
    ).hops
    assert (hop.user, hop.port, hop.keepalive, hop.connect_timeout) == ("tuner", 22, 1.0, 2.0)
    assert hop.identity_files == (key, Path("/other"))
    assert hop.identities_only
    assert hop.known_hosts == (tmp_path / "kh",)


def test_an_identity_file_of_the_profile_has_to_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="identity_file"):
        route(tmp_path, "", identity_file=tmp_path / "missing")


def test_proxy_jump_gives_hops_each_with_its_own_settings(tmp_path: Path) -> None:
    found = route(
        tmp_path,
        "Host gpu\n  HostName 10.0.0.9\n  User tuner\n  ProxyJump bastion,ssh://me@inner:2200\n"
        "Host bastion\n  HostName b.example.org\n  User jumper\n  Port 443\n  ProxyJump none\n"
        "Host inner\n  HostName i.example.org\n  ProxyJump elsewhere\n",
    )
    assert [hop.target for hop in found.hops] == [
        "jumper@b.example.org:443",
        "me@i.example.org:2200",
        "tuner@10.0.0.9:22",
    ]


def test_the_first_jump_host_may_have_one_of_its_own(tmp_path: Path) -> None:
    found = route(tmp_path, "Host gpu\n  ProxyJump a\nHost a\n  ProxyJump b\nHost *\n  User u\n")
    assert [hop.host for hop in found.hops] == ["b", "a", "gpu"]


def test_a_proxy_jump_that_leads_back_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gpu → a → gpu"):
        route(tmp_path, "Host gpu\n  ProxyJump a\nHost a\n  ProxyJump gpu\n")


@pytest.mark.parametrize("jump", ["[::1]:22", "2001:db8::1", "user@[2001:db8::1]:2222"])
def test_proxy_jump_over_ipv6(tmp_path: Path, jump: str) -> None:
    assert ":" in route(tmp_path, f"Host gpu\n  ProxyJump {jump}\n").hops[0].host


def test_include_in_the_order_of_names(tmp_path: Path) -> None:
    for name, port in (("20-b", 2), ("10-a", 1), ("30-c", 3)):
        (tmp_path / f"{name}.conf").write_text(f"Host gpu\n  Port {port}\n")
    (hop,) = route(tmp_path, f"Include {tmp_path}/*.conf\n").hops
    assert hop.port == 1


def test_match_is_honoured(tmp_path: Path) -> None:
    text = "Match originalhost gpu user me\n  Port 7\nMatch final host gpu\n  HostKeyAlias alias\n"
    (hop,) = route(tmp_path, text, user="me").hops
    assert hop.port == 7
    assert hop.host_key_alias == "alias"


def test_what_has_no_effect_is_listed_only_where_it_applies(tmp_path: Path) -> None:
    found = route(
        tmp_path,
        "Host other\n  ForwardX11 yes\nHost gpu\n  StrictHostKeyChecking no\n  ForwardAgent yes\n  SetEnv A=b\n"
        "  RemoteCommand top\n  RequestTTY force\n  ControlMaster auto\n  Port 5\n",
    )
    assert [(ignored.keyword, ignored.where.rpartition(":")[2]) for ignored in found.ignored] == [
        ("stricthostkeychecking", "4"),
        ("forwardagent", "5"),
        ("setenv", "6"),
        ("remotecommand", "7"),
        ("requesttty", "8"),
        ("controlmaster", "9"),
    ]
    assert "strict" in found.ignored[0].why


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("Host gpu\n  Port 22 # comment\n", 2, "line of its own"),
        ("Host gpu\n  ServerAliveInterval 1m\n", 2, "seconds"),
        ("Match strange x\n", 1, "Match"),
        ("Host gpu\n  User 'open\n", 2, "Correct"),
        ("Host gpu\n  Port\n", 2, "Correct"),
    ],
)
def test_a_mistake_names_file_and_line_and_says_what_to_do(
    tmp_path: Path, text: str, line: int, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        route(tmp_path, text)
    assert f"{tmp_path / 'config'} line {line}" in str(caught.value)
    assert hint in caught.value.hint


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Include"):
        route(tmp_path, f"Include {tmp_path}/config\n")


def test_files_that_are_no_text_or_missing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"Host gpu\n\xff\xfe\n")
    for name in ("binary", "missing"):
        with pytest.raises(ConfigError):
            ssh_config.resolve(Connection(host="gpu", config=tmp_path / name))


def test_known_hosts_none_never_means_to_accept_every_key(tmp_path: Path) -> None:
    for value in ("none", "/dev/null"):
        found = route(tmp_path, f"UserKnownHostsFile {value}\nGlobalKnownHostsFile {tmp_path}/none\n")
        assert found.hops[0].known_hosts == ()
        assert any("asked about" in problem for problem in found.problems)


def test_known_hosts_files_of_the_user_come_first_and_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "system").touch()
    found = route(
        tmp_path,
        f"UserKnownHostsFile {tmp_path}/%h {tmp_path}/missing\nGlobalKnownHostsFile {tmp_path}/system\n",
    )
    assert found.hops[0].known_hosts == (tmp_path / "gpu", tmp_path / "system")


@pytest.mark.parametrize(
    ("value", "agent"),
    [("SSH_AUTH_SOCK", "/env/agent"), ("$MY_AGENT", "/my/agent"), ("${MY_AGENT}", "/my/agent"), ("none", None),
     ("/a/b", "/a/b")],
)  # fmt: skip
def test_identity_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, agent: str | None
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/env/agent")
    monkeypatch.setenv("MY_AGENT", "/my/agent")
    assert route(tmp_path, f"IdentityAgent {value}\n").hops[0].agent == agent


def test_without_a_config_the_profile_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "someone")
    (hop,) = ssh_config.resolve(Connection(host="10.0.0.1", port=2222, user="tuner")).hops
    assert hop.target == "tuner@10.0.0.1:2222"
    assert hop.known_hosts[0] == Path("~/.ssh/known_hosts").expanduser()
