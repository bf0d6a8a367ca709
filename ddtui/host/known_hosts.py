"""Which host keys are known: looked up by ourselves, since each way to fail calls for words of its own.

Reads known_hosts files as OpenSSH does: several names, wildcards and negation, `[host]:port`, hashed names,
`@cert-authority` and `@revoked`. A line that cannot be read is reported and passed over, as OpenSSH does.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1
from pathlib import Path

import asyncssh

from ddtui.host.base import ConfigError


class Marker(StrEnum):
    NONE = ""
    AUTHORITY = "@cert-authority"
    REVOKED = "@revoked"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line that speaks of the host."""

    where: str  # "/home/me/.ssh/known_hosts:12"
    marker: Marker
    key: asyncssh.SSHKey

    @property
    def algorithm(self) -> str:
        return self.key.get_algorithm()

    @property
    def fingerprint(self) -> str:
        return self.key.get_fingerprint()


class Answer(StrEnum):
    """What known_hosts says of a key that a host presented."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    OTHER_TYPE = "only keys of other types are known"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """All that the files say of one host."""

    host: str  # as it is looked up: name, alias or [name]:port
    files: tuple[Path, ...]
    entries: tuple[Entry, ...]
    problems: tuple[str, ...]  # lines that could not be read, each a sentence

    def of(self, marker: Marker) -> list[Entry]:
        return [entry for entry in self.entries if entry.marker is marker]

    @property
    def authorities(self) -> list[asyncssh.SSHKey]:
        return [entry.key for entry in self.of(Marker.AUTHORITY)]

    @property
    def revoked(self) -> list[asyncssh.SSHKey]:
        return [entry.key for entry in self.of(Marker.REVOKED)]

    def answer(self, key: asyncssh.SSHKey) -> Answer:
        """What is known of this key."""
        if any(_same(entry.key, key) for entry in self.of(Marker.REVOKED)):
            return Answer.REVOKED
        plain = self.of(Marker.NONE)
        if any(_same(entry.key, key) for entry in plain):
            return Answer.KNOWN
        if any(entry.algorithm == key.get_algorithm() for entry in plain):
            return Answer.CHANGED
        return Answer.OTHER_TYPE if plain else Answer.UNKNOWN

    def algorithms(self) -> list[str]:
        """Host key algorithms to propose: what is known first, so that a known key is presented."""
        every = asyncssh.public_key.get_default_public_key_algs()
        certificates = asyncssh.public_key.get_default_certificate_algs() if self.authorities else []
        known = {entry.algorithm for entry in self.of(Marker.NONE)}

        def type_of(algorithm: bytes) -> str:
            name = algorithm.decode()
            return "ssh-rsa" if name.startswith("rsa-sha2") else name

        first = [algorithm for algorithm in every if type_of(algorithm) in known]
        rest = [algorithm for algorithm in every if algorithm not in first]
        return [algorithm.decode() for algorithm in (*certificates, *first, *rest)]


def look_up(host: str, port: int, files: Sequence[Path], *, alias: str | None = None) -> KnownHosts:
    """What the files say of host:port. With an alias (HostKeyAlias) that name is looked up instead.

    Files that do not exist are passed over. Raises ConfigError for one that cannot be read.
    """
    name = alias or (host if port == 22 else f"[{host}]:{port}")
    # a revoked key is revoked on every port, and an entry without a port is the fallback, as in OpenSSH
    names = [name.lower()] if alias or port == 22 else [name.lower(), host.lower()]
    exact: list[Entry] = []
    fallback: list[Entry] = []
    problems: list[str] = []
    for file in files:
        for number, line in enumerate(_lines(file), 1):
            where = f"{file}:{number}"
            try:
                parsed = _parse(line)
            except ValueError as error:
                problems.append(f"{where} cannot be read and is passed over: {error}")
                continue
            if parsed is None:
                continue
            patterns, marker, key = parsed
            entry = Entry(where, marker, key)
            if _matches(patterns, names[0]):
                exact.append(entry)
            elif len(names) > 1 and _matches(patterns, names[1]):
                fallback.append(entry)
    named = any(entry.marker is Marker.NONE for entry in exact)
    entries = exact + [entry for entry in fallback if not named or entry.marker is not Marker.NONE]
    return KnownHosts(name, tuple(files), tuple(entries), tuple(problems))


def remember(known: KnownHosts, key: asyncssh.SSHKey) -> str | None:
    """Append the key to the first known_hosts file. Gives the file, or None if there is none to write to.

    Raises ConfigError if it cannot be written.
    """
    if not known.files:
        return None
    file = known.files[0]
    line = f"{known.host} {key.export_public_key('openssh').decode().strip()}\n"
    words = line.split()
    line = " ".join(words[:3]) + "\n"  # without the comment
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b") as stream:
            size = stream.seek(0, os.SEEK_END)
            if size:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":
                    line = "\n" + line
            stream.write(line.encode())
    except OSError as error:
        raise ConfigError(
            f"the host key could not be remembered in {file}: {error.strerror}", "Make the file writable."
        ) from None
    return str(file)


def _lines(file: Path) -> Iterable[bytes]:
    try:
        return file.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}", "Without it no host key can be checked."
        ) from None


def _parse(line: bytes) -> tuple[str, Marker, asyncssh.SSHKey] | None:
    """(names, marker, key) of a line; None for blank lines and comments. Raises ValueError in words."""
    line = line.strip()
    if not line or line.startswith(b"#"):
        return None
    try:
        words = line.decode().split()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    marker = Marker.NONE
    if words[0].startswith("@"):
        try:
            marker = Marker(words.pop(0))
        except ValueError as error:
            raise ValueError(f"unknown marker ({error})") from None
    if len(words) < 3:
        raise ValueError("a line has names, a key type and a key")
    try:
        key = asyncssh.import_public_key(f"{words[1]} {words[2]}")
    except (asyncssh.KeyImportError, ValueError) as error:
        raise ValueError(f"its key is not valid ({error})") from None
    return words[0], marker, key


def _matches(patterns: str, name: str) -> bool:
    if patterns.startswith("|1|"):
        return _matches_hash(patterns, name)
    matched = False
    for pattern in patterns.lower().split(","):
        negated = pattern.startswith("!")
        if fnmatch.fnmatchcase(name, _glob(pattern.lstrip("!"))):
            if negated:
                return False
            matched = True
    return matched


def _matches_hash(hashed: str, name: str) -> bool:
    try:
        _, _, salt, digest = hashed.split("|")
        made = hmac.new(base64.b64decode(salt), name.encode(), sha1).digest()
        return hmac.compare_digest(made, base64.b64decode(digest))
    except (ValueError, binascii.Error):
        return False


def _glob(pattern: str) -> str:
    """OpenSSH knows `*` and `?`; brackets belong to `[host]:port`."""
    return pattern.replace("[", "[[]")


def _same(one: asyncssh.SSHKey, other: asyncssh.SSHKey) -> bool:
    return one.public_data == other.public_data
