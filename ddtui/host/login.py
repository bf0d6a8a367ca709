"""Logging in to one SSH server: which keys are offered in which order, and what is asked of a person.

Keys are offered few at a time, over several connections if need be, so that a full agent never runs into
sshd's MaxAuthTries. Passphrases and passwords are asked for when the server wants them, kept in memory only,
and used again when the link has to be made anew.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from ddtui import sanitize
from ddtui.host.base import Asker
from ddtui.host.known_hosts import Answer, KnownHosts
from ddtui.host.ssh_config import Hop

AT_ONCE = 5  # keys per connection: sshd's MaxAuthTries is 6, and a password may still have to follow
TRIES = 3  # for a passphrase or password that a person types
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass
class Memory:
    """What a person told us and what worked, for the life of the program. Never written anywhere."""

    passphrases: dict[Path, str] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)  # by user@host:port
    accepted: dict[str, bytes] = field(default_factory=dict)  # the public key that let us in


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys to offer, in order, and why others are not among them."""

    pairs: tuple[asyncssh.SSHKeyPair, ...]
    agent: asyncssh.SSHAgentClient | None
    skipped: tuple[str, ...]  # each a part of a sentence: "~/.ssh/id_rsa (no such file)"

    def close(self) -> None:
        if self.agent:
            self.agent.close()


async def keys(hop: Hop, asker: Asker, memory: Memory) -> Keys:
    """The keys for this hop: those named for it, the agent's, the default ones; what worked before first.

    A key that is both named and in the agent is used through the agent, which needs no passphrase.
    """
    skipped: list[str] = []
    agent, in_agent = await _agent_keys(hop.agent, skipped)
    by_public = {pair.public_data: pair for pair in in_agent}
    files = hop.identity_files or default_files()
    named: list[asyncssh.SSHKeyPair] = []
    for file in files:
        for pair in await _file_keys(file, hop, asker, memory, by_public, skipped):
            named.append(by_public.get(pair.public_data, pair))
    rest = [] if hop.identities_only else in_agent
    ordered = [*named, *rest] if hop.identity_files else [*rest, *named]
    unique = list({pair.public_data: pair for pair in ordered}.values())
    worked = memory.accepted.get(hop.target)
    unique.sort(key=lambda pair: pair.public_data != worked)  # stable: only that one moves
    return Keys(tuple(unique), agent, tuple(skipped))


def default_files() -> tuple[Path, ...]:
    """The keys that ssh tries when none are named."""
    folder = Path("~/.ssh").expanduser()
    return tuple(folder / name for name in _DEFAULT_KEYS if (folder / name).is_file())


async def _agent_keys(
    path: str | None, skipped: list[str]
) -> tuple[asyncssh.SSHAgentClient | None, list[asyncssh.SSHKeyPair]]:
    if path is None:
        return None, []
    agent: asyncssh.SSHAgentClient | None = None
    try:
        async with asyncio.timeout(5):
            agent = await asyncssh.connect_agent(path)
            return agent, list(await agent.get_keys())
    except (OSError, ValueError, asyncssh.Error, TimeoutError) as error:
        skipped.append(f"the agent at {path} ({error or 'no answer'})")
        if agent:
            agent.close()
        return None, []


async def _file_keys(
    file: Path,
    hop: Hop,
    asker: Asker,
    memory: Memory,
    by_public: dict[bytes, asyncssh.SSHKeyPair],
    skipped: list[str],
) -> Sequence[asyncssh.SSHKeyPair]:
    """The pairs of one identity file, which may be a private key, an encrypted one, or a public one whose
    private half is in the agent."""
    try:
        data = await asyncio.to_thread(file.read_bytes)
    except OSError as error:
        skipped.append(f"{file} ({error.strerror})")
        return []
    if b"PRIVATE KEY" not in data:
        return _public_only(file, data, by_public, skipped)

    if _lacks_bcrypt(data):
        skipped.append(f"{file} (encrypted, and opening it takes the Python package bcrypt; or use ssh-add)")
        return []

    async def passphrase(_: str) -> str | None:
        return await ask_passphrase(file, data, asker, memory)

    # Where the public half is in sight, asyncssh asks only when the host wants the key; it takes a coroutine
    # function for that, though its type says str. Else the key has to be opened now.
    word: Any = passphrase
    if not _public_half_in_sight(file, data):
        word = await passphrase(str(file))
        if word is None:
            skipped.append(f"{file} (encrypted, and no passphrase given)")
            return []
    certificates = [str(path) for path in hop.certificate_files]
    try:
        return asyncssh.load_keypairs(
            [str(file)], passphrase=word, certlist=certificates, loop=asyncio.get_running_loop()
        )
    except (OSError, ValueError) as error:
        skipped.append(f"{file} ({sanitize.line(str(error))})")
        return []


def _public_half_in_sight(file: Path, data: bytes) -> bool:
    """Whether the key's public half can be read without its passphrase (also: it has none)."""
    with suppress(OSError, ValueError):
        asyncssh.import_private_key(data)
        return True
    for public in (f"{file}.pub", str(file)):
        with suppress(OSError, ValueError):
            asyncssh.read_public_key(public)
            return True
    return False


def _lacks_bcrypt(data: bytes) -> bool:
    """Whether this is an encrypted key in OpenSSH's own format and asyncssh has not got what opens it."""
    if b"OPENSSH PRIVATE KEY" not in data or importlib.util.find_spec("bcrypt"):
        return False
    try:
        asyncssh.import_private_key(data)
    except asyncssh.KeyImportError as error:
        return "assphrase" in str(error)
    return False


def _public_only(
    file: Path, data: bytes, by_public: dict[bytes, asyncssh.SSHKeyPair], skipped: list[str]
) -> list[asyncssh.SSHKeyPair]:
    try:
        public = asyncssh.import_public_key(data).public_data
    except (ValueError, asyncssh.Error):
        skipped.append(f"{file} (not a key)")
        return []
    if public not in by_public:
        skipped.append(f"{file} (a public key whose private half is not in the agent)")
        return []
    return [by_public[public]]


async def ask_passphrase(file: Path, data: bytes, asker: Asker, memory: Memory) -> str | None:
    """The passphrase of an encrypted key, tried before it is given out. None if nobody knows it."""
    known = memory.passphrases.get(file)
    if known is not None:
        return known
    prompt = f"Passphrase for {file}"
    for _ in range(TRIES):
        answer = await asker.secret(prompt, purpose="passphrase")
        if answer is None:
            return None
        try:
            await asyncio.to_thread(asyncssh.import_private_key, data, answer)
        except (ValueError, asyncssh.Error):
            prompt = f"That was not it. Passphrase for {file}"
            continue
        memory.passphrases[file] = answer
        return answer
    return None


class Login(asyncssh.SSHClient):
    """One attempt to log in over one connection, and afterwards the news of its end."""

    def __init__(
        self,
        hop: Hop,
        known: KnownHosts,
        offers: Sequence[asyncssh.SSHKeyPair],
        asker: Asker,
        memory: Memory,
        *,
        passwords: bool,
        tell: Callable[[str], None],
        lost: Callable[[Login, Exception | None], None],
    ) -> None:
        self._hop = hop
        self._known = known
        self._offers = list(offers)
        self._asker = asker
        self._memory = memory
        self._passwords = passwords
        self._tell = tell
        self._lost = lost
        self._last_offer: asyncssh.SSHKeyPair | None = None
        self._password_tries = 0
        self._last_password: str | None = None
        self.offered: list[str] = []  # fingerprints and names, for the message when all were refused
        self.asked_password = False
        self.refused_by_person = False
        self.expired = False
        self.presented: asyncssh.SSHKey | None = None  # the host's key, if it was not known
        self.answer = Answer.KNOWN
        self.banner = ""
        self.authenticating = asyncio.Event()  # from here on a person may take their time
        self.authenticated = False

    # -- the connection -----------------------------------------------------------------------------------
    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self, exc)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.presented, self.answer = key, self._known.answer(key)
        return self.answer is Answer.KNOWN

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return False  # the trusted ones were given to asyncssh

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner = sanitize.sanitize(msg.strip(), newlines=True)[:2000]

    def begin_auth(self, username: str) -> None:
        self.authenticating.set()

    def auth_completed(self) -> None:
        self.authenticated = True
        if self._last_password is not None:
            self._memory.passwords[self._hop.target] = self._last_password
        elif self._last_offer is not None:
            self._memory.accepted[self._hop.target] = self._last_offer.public_data

    # -- keys -----------------------------------------------------------------------------------------------
    def public_key_auth_requested(self) -> asyncssh.SSHKeyPair | None:
        if not self._offers:
            self._last_offer = None
            return None
        self._last_offer = offer = self._offers.pop(0)
        self.offered.append(describe(offer))
        if offer.algorithm.startswith(b"sk-"):
            self._tell("touch your security key")
        return offer

    # -- passwords ------------------------------------------------------------------------------------------
    async def password_auth_requested(self) -> str | None:
        if not self._passwords:
            return None
        return await self._password(f"Password for {self._hop.target}")

    def password_change_requested(self, prompt: str, lang: str) -> Any:
        self.expired = True
        return NotImplemented

    def kbdint_auth_requested(self) -> str | None:
        return "" if self._passwords else None

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> Sequence[str] | None:
        answers: list[str] = []
        for prompt, _ in prompts:
            text = sanitize.line(" ".join(part for part in (name, instructions, prompt) if part.strip()))
            text = f"{self._hop.target}: {text.strip()}"
            if "password" in prompt.lower() and "one" not in prompt.lower():
                answer = await self._password(text)
            else:
                self.asked_password = True
                answer = await self._asker.secret(text, purpose="otp")
                self.refused_by_person = answer is None
            if answer is None:
                return None
            answers.append(answer)
        return answers

    async def _password(self, prompt: str) -> str | None:
        known = self._memory.passwords.pop(self._hop.target, None)  # given once: kept again if it is right
        if known is not None:
            self._last_password = known
            return known
        if self._password_tries >= TRIES or self.refused_by_person:
            return None
        self.asked_password = True
        self._password_tries += 1
        if self._password_tries > 1:
            prompt = f"That was not it. {prompt}"
        answer = await self._asker.secret(prompt, purpose="password")
        self.refused_by_person = answer is None
        self._last_password = answer
        return answer


def describe(pair: asyncssh.SSHKeyPair) -> str:
    """A key as a person knows it: its comment or file, and its type."""
    comment = pair.get_comment()
    return sanitize.line(f"{comment} ({pair.get_algorithm()})" if comment else pair.get_algorithm())
