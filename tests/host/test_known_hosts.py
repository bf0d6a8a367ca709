"""known_hosts as OpenSSH reads it, and what it says of a key that a host presents."""

from __future__ import annotations

import base64
import hmac
from hashlib import sha1
from pathlib import Path

import asyncssh
import pytest

from ddtui.host.base import ConfigError
from ddtui.host.known_hosts import Answer, look_up, remember

KEY, OTHER = (asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(2))
ECDSA = asyncssh.generate_private_key("ecdsa-sha2-nistp256").convert_to_public()
RSA = asyncssh.generate_private_key("ssh-rsa", key_size=2048).convert_to_public()


def line(names: str, key: asyncssh.SSHKey, marker: str = "") -> str:
    return f"{marker} {names} {key.export_public_key().decode()}".strip() + "\n"


def hashed(name: str) -> str:
    salt = b"0123456789abcdef0123"
    digest = hmac.new(salt, name.encode(), sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def known(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "known_hosts"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("names", "host", "port", "matches"),
    [
        ("gpu1", "gpu1", 22, True),
        ("gpu1", "GPU1", 22, True),
        ("gpu1,gpu2,10.0.0.1", "10.0.0.1", 22, True),
        ("*.example.org", "a.example.org", 22, True),
        ("*.example.org,!b.example.org", "b.example.org", 22, False),
        ("gpu?", "gpu7", 22, True),
        ("gpu?", "gpu77", 22, False),
        ("[gpu1]:2222", "gpu1", 2222, True),
        ("[gpu1]:2222", "gpu1", 22, False),
        ("[gpu1]:2222", "gpu1", 2223, False),
        ("gpu1", "gpu1", 2222, True),  # an entry without a port is the fallback
        (hashed("gpu1"), "gpu1", 22, True),
        (hashed("gpu1"), "gpu2", 22, False),
        (hashed("[gpu1]:2222"), "gpu1", 2222, True),
        ("|1|broken", "gpu1", 22, False),
    ],
)
def test_names(tmp_path: Path, names: str, host: str, port: int, matches: bool) -> None:
    found = look_up(host, port, [known(tmp_path, line(names, KEY))])
    assert found.answer(KEY) is (Answer.KNOWN if matches else Answer.UNKNOWN)


def test_an_entry_with_the_port_beats_one_without(tmp_path: Path) -> None:
    file = known(tmp_path, line("gpu1", OTHER) + line("[gpu1]:2222", KEY))
    found = look_up("gpu1", 2222, [file])
    assert found.answer(KEY) is Answer.KNOWN
    assert found.answer(OTHER) is Answer.CHANGED


def test_the_five_answers(tmp_path: Path) -> None:
    file = known(tmp_path, "# a comment\n\n" + line("gpu1", KEY) + line("gpu1", RSA, "@revoked"))
    found = look_up("gpu1", 22, [file])
    assert found.answer(KEY) is Answer.KNOWN
    assert found.answer(OTHER) is Answer.CHANGED
    assert found.answer(ECDSA) is Answer.OTHER_TYPE
    assert found.answer(RSA) is Answer.REVOKED
    assert look_up("gpu2", 22, [file]).answer(KEY) is Answer.UNKNOWN


def test_a_revoked_key_is_revoked_on_every_port(tmp_path: Path) -> None:
    file = known(tmp_path, line("*", KEY, "@revoked") + line("[gpu1]:2222", KEY))
    assert look_up("gpu1", 2222, [file]).answer(KEY) is Answer.REVOKED


def test_a_certificate_authority_is_no_host_key(tmp_path: Path) -> None:
    found = look_up("gpu1", 22, [known(tmp_path, line("*", KEY, "@cert-authority"))])
    assert found.answer(KEY) is Answer.UNKNOWN
    assert found.authorities == [KEY]


def test_an_alias_is_looked_up_instead_of_the_name(tmp_path: Path) -> None:
    file = known(tmp_path, line("alias", KEY))
    assert look_up("gpu1", 2222, [file], alias="alias").answer(KEY) is Answer.KNOWN
    assert look_up("gpu1", 2222, [file]).answer(KEY) is Answer.UNKNOWN


def test_lines_that_cannot_be_read_are_named_and_passed_over(tmp_path: Path) -> None:
    broken = b"gpu1 ssh-ed25519 AAAA\ngpu1\n@strange gpu1 ssh-ed25519 AAAA\n\xff\xfe gpu1 x y\n"
    file = known(tmp_path, broken + line("gpu1", KEY).encode())
    found = look_up("gpu1", 22, [file])
    assert found.answer(KEY) is Answer.KNOWN
    assert len(found.problems) == 4
    assert all(f"{file}:{n}" in problem for n, problem in enumerate(found.problems, 1))


def test_a_missing_file_knows_nothing_and_an_unreadable_one_is_an_error(tmp_path: Path) -> None:
    assert look_up("gpu1", 22, [tmp_path / "missing"]).answer(KEY) is Answer.UNKNOWN
    with pytest.raises(ConfigError, match=str(tmp_path)):
        look_up("gpu1", 22, [tmp_path])


def test_the_algorithms_of_known_keys_are_proposed_first(tmp_path: Path) -> None:
    found = look_up("gpu1", 22, [known(tmp_path, line("gpu1", RSA))])
    assert found.algorithms()[:2] == ["rsa-sha2-256", "rsa-sha2-512"]
    assert "ssh-ed25519" in found.algorithms()


def test_a_remembered_key_is_known_afterwards_and_nothing_else_is_touched(tmp_path: Path) -> None:
    file = known(tmp_path, "# mine, no newline at the end")
    remember(look_up("gpu1", 2222, [file]), KEY)
    assert file.read_text().startswith("# mine, no newline at the end\n[gpu1]:2222 ssh-ed25519 ")
    assert look_up("gpu1", 2222, [file]).answer(KEY) is Answer.KNOWN
    assert look_up("gpu1", 22, [file]).answer(KEY) is Answer.UNKNOWN


def test_the_file_and_its_folder_are_made_private(tmp_path: Path) -> None:
    file = tmp_path / ".ssh" / "known_hosts"
    remember(look_up("gpu1", 22, [file]), KEY)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_key_that_cannot_be_remembered_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="remembered"):
        remember(look_up("gpu1", 22, [tmp_path / "missing"]).__class__("gpu1", (tmp_path,), (), ()), KEY)
