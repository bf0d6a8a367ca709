"""How to reach a host: the profile's connection merged with ssh_config, hop by hop.

asyncssh parses the files (Host, Match, Include, tokens); what is taken from them is listed in `HONOURED`, and
nothing is taken blindly: agent forwarding, remote commands, terminals and environment are never used. Every
keyword that applies to the host and is not honoured is listed in `Route.ignored`, for `ddtui doctor`.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.config import ConfigParseError, SSHClientConfig

from ddtui.host.base import ConfigError
from ddtui.profile import Connection

HONOURED = frozenset(
    word.lower()
    for word in (
        *("Host", "Match", "Include", "HostName", "Port", "User", "ProxyJump", "ProxyCommand", "Tag"),
        *("IdentityFile", "IdentitiesOnly", "IdentityAgent", "CertificateFile"),
        *("HostKeyAlias", "UserKnownHostsFile", "GlobalKnownHostsFile", "HostKeyAlgorithms"),
        *("ConnectTimeout", "ServerAliveInterval", "ServerAliveCountMax", "TCPKeepAlive", "AddressFamily"),
        *("Ciphers", "MACs", "KexAlgorithms", "Compression", "PreferredAuthentications"),
        *("PubkeyAuthentication", "PasswordAuthentication", "KbdInteractiveAuthentication"),
        "ChallengeResponseAuthentication",
    )
)
_WHY = {
    "stricthostkeychecking": "ddtui is always strict: it asks about a new key and refuses a changed one",
    "controlmaster": "ddtui keeps one connection of its own",
    "controlpath": "ddtui keeps one connection of its own",
    "controlpersist": "ddtui keeps one connection of its own",
    "forwardagent": "ddtui never forwards your agent",
    "requesttty": "ddtui needs no terminal on the host",
    "remotecommand": "ddtui runs its own commands",
    "setenv": "ddtui sets no environment",
    "sendenv": "ddtui sends no environment",
    "addkeystoagent": "keys stay in ddtui's memory only",
    "knownhostscommand": "only known_hosts files are read",
    "pubkeyacceptedalgorithms": "asyncssh's own list is used",
    "pkcs11provider": "keys on PKCS#11 tokens have to be in the agent",
    "securitykeyprovider": "security keys have to be in the agent",
    "canonicalizehostname": "host names are used as written",
    "bindaddress": "the system chooses the local address",
    "localforward": "ddtui opens what it needs",
    "remoteforward": "ddtui opens what it needs",
    "dynamicforward": "ddtui opens what it needs",
}


@dataclass(frozen=True, slots=True)
class Ignored:
    """A keyword in ssh_config that applies to the host and has no effect here."""

    where: str  # file:line
    keyword: str
    why: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One SSH server on the way, the last one being the host."""

    name: str  # as written in the profile or in ProxyJump
    host: str
    port: int
    user: str
    known_hosts: tuple[Path, ...]  # the first one is where new keys are remembered
    host_key_alias: str | None = None
    identity_files: tuple[Path, ...] = ()
    identities_only: bool = False
    certificate_files: tuple[Path, ...] = ()
    agent: str | None = None  # path of the agent's socket
    proxy_command: str | None = None
    connect_timeout: float = 10.0  # seconds, for the network; a person may take longer
    keepalive: float = 5.0  # seconds
    keepalive_count: int = 2
    settings: dict[str, Any] = field(
        default_factory=dict
    )  # asyncssh's names: ciphers, compression, methods …

    @property
    def target(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """The hops to the host in order, and what of ssh_config has no effect."""

    hops: tuple[Hop, ...]
    ignored: tuple[Ignored, ...] = ()
    problems: tuple[str, ...] = ()  # each a sentence

    @property
    def target(self) -> str:
        return self.hops[-1].target


def resolve(connection: Connection) -> Route:
    """The route to the profile's host. Reads ssh_config and the environment; Match exec runs its command.

    Raises ConfigError, naming file and line, if ssh_config cannot be used.
    """
    reader = _Reader(connection)
    hops = reader.hops(connection.host, connection.user, connection.port, final=True)
    return Route(tuple(hops), tuple(dict.fromkeys(reader.ignored)), tuple(dict.fromkeys(reader.problems)))


class _Reader:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.ignored: list[Ignored] = []
        self.problems: list[str] = []
        self._on_the_way: list[str] = []

    def hops(self, name: str, user: str | None, port: int | None, *, final: bool = False) -> list[Hop]:
        """The hop of that name, with those that its ProxyJump puts before it."""
        if name in self._on_the_way:
            loop = " → ".join([*self._on_the_way, name])
            raise ConfigError(
                f"ProxyJump leads back to where it began: {loop}", "Set `ProxyJump none` on one."
            )
        self._on_the_way.append(name)
        config = self._load(name, user, port)
        hop = self._hop(name, config, final=final)
        jump = config.get("ProxyJump")
        before: list[Hop] = []
        if isinstance(jump, str) and jump:
            names = [part for part in jump.split(",") if part.strip()]
            for at, part in enumerate(names):
                jump_user, jump_host, jump_port = _jump(part.strip())
                found = self.hops(jump_host, jump_user, jump_port)
                before += found if at == 0 else found[-1:]  # only the first may have hops before it
        self._on_the_way.pop()
        return [*before, hop]

    def _load(self, name: str, user: str | None, port: int | None) -> _Config:
        own, system = Path("~/.ssh/config").expanduser(), Path("/etc/ssh/ssh_config")
        if self.connection.config is not None:
            path = self.connection.config.expanduser()
            if not path.exists() or path.is_dir():  # /dev/null is fine
                raise ConfigError(
                    f"the profile's ssh config {path} does not exist", "Correct connection.config."
                )
            return self._parse([path], name, user, port)
        mine = [own] if own.is_file() else []
        if system.is_file():
            try:
                return self._parse([*mine, system], name, user, port)
            except ConfigError as error:
                self._parse(mine, name, user, port)  # raises if it is the user's own file
                self.problems.append(f"the system's ssh config is left out: {error}")
        return self._parse(mine, name, user, port)

    def _parse(self, paths: Sequence[Path], name: str, user: str | None, port: int | None) -> _Config:
        local_user = getpass.getuser()
        arguments = (local_user, user if user is not None else (), name, port if port is not None else ())
        try:
            config = _Config.load(None, list(paths), False, False, False, *arguments)
            if config.has_match_final():
                config = _Config.load(config, list(paths), True, False, True, *arguments)
        except ConfigParseError as error:
            raise ConfigError(f"ssh config {error}", _hint(str(error))) from None
        except RecursionError:
            raise ConfigError(f"ssh config {paths[0]}: an Include leads back to its own file") from None
        except (OSError, UnicodeDecodeError, asyncssh.Error) as error:
            raise ConfigError(
                f"the ssh config cannot be read: {error}", "Correct the file, or name another."
            ) from None
        assert isinstance(config, _Config)
        self.ignored += config.ignored
        return config

    def _hop(self, name: str, config: _Config, *, final: bool) -> Hop:
        connection = self.connection

        def given(key: str) -> bool:
            return key in connection.model_fields_set

        identities = tuple(_paths(config, "IdentityFile"))
        if final and connection.identity_file is not None:
            own = connection.identity_file.expanduser()
            if not own.is_file():
                raise ConfigError(
                    f"the profile's identity_file {own} does not exist", "Correct connection.identity_file."
                )
            identities = (own, *identities)
        timeout, interval, count = (
            config.get("ConnectTimeout"),
            config.get("ServerAliveInterval"),
            config.get("ServerAliveCountMax"),
        )
        return Hop(
            name=name,
            host=str(config.get("Hostname", name)),
            port=int(str(config.get("Port", 22))),
            user=str(config.get("User") or getpass.getuser()),
            known_hosts=self._known_hosts(config),
            host_key_alias=_text(config.get("HostKeyAlias")),
            identity_files=tuple(dict.fromkeys(identities)),
            identities_only=bool(config.get("IdentitiesOnly")) or bool(final and connection.identity_file),
            certificate_files=tuple(path for path in _paths(config, "CertificateFile") if path.is_file()),
            agent=_agent(config),
            proxy_command=_text(config.get("ProxyCommand")) if not config.get("ProxyJump") else None,
            connect_timeout=float(str(timeout))
            if timeout and not given("connect_timeout")
            else connection.connect_timeout,
            keepalive=float(str(interval)) if interval and not given("keepalive") else connection.keepalive,
            keepalive_count=int(str(count)) if count and not given("keepalive") else 2,
            settings=_settings(config),
        )

    def _known_hosts(self, config: _Config) -> tuple[Path, ...]:
        """Files to look host keys up in: the user's, where new ones are remembered, then the system's."""
        if self.connection.known_hosts is not None:
            return (self.connection.known_hosts.expanduser(),)
        system = _paths(config, "GlobalKnownHostsFile") or [
            Path("/etc/ssh/ssh_known_hosts"),
            Path("/etc/ssh/ssh_known_hosts2"),
        ]
        if config.get("UserKnownHostsFile") == []:
            self.problems.append("UserKnownHostsFile is none: new host keys are asked about each time")
            return tuple(path for path in system if path.is_file())
        own = _paths(config, "UserKnownHostsFile") or [
            Path("~/.ssh/known_hosts").expanduser(),
            Path("~/.ssh/known_hosts2").expanduser(),
        ]
        if own[0] == Path("/dev/null"):
            self.problems.append("UserKnownHostsFile is /dev/null: new host keys are asked about each time")
            return tuple(path for path in system if path.is_file())
        return (own[0], *(path for path in (*own[1:], *system) if path.is_file()))


class _Config(SSHClientConfig):
    """asyncssh's parser, which also notes the keywords that apply and are not honoured."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ignored: list[Ignored] = []
        self._handlers = _Handlers(self)  # the parser looks a keyword up only where it applies

    def note(self, keyword: str) -> None:
        why = _WHY.get(keyword, "it has no effect on what ddtui does")
        self.ignored.append(Ignored(f"{self._path}:{self._line_no}", keyword, why))

    def expand(self, text: str) -> str:
        """Tokens and `${VAR}` in a value. Raises ConfigError."""
        try:
            return self._expand_val(text)
        except ConfigParseError as error:
            raise ConfigError(f"ssh config: `{text}`: {error}") from None

    def _include(self, option: str, args: list[str]) -> None:
        """In the order of names, as OpenSSH does, and relative to the folder of the kind of file."""
        path, line = self._path, self._line_no
        base = Path("/etc/ssh") if str(path).startswith("/etc/ssh/") else self._default_path
        for pattern in args:
            wanted = base / Path(pattern).expanduser()
            for found in sorted(Path(wanted.anchor).glob(str(wanted.relative_to(wanted.anchor)))):
                if found.is_file():
                    self.parse(found)
        self._path, self._line_no, self._matching = path, line, True
        args.clear()


class _Handlers(dict[str, Any]):
    def __init__(self, config: _Config) -> None:
        super().__init__(SSHClientConfig._handlers)
        self["include"] = ("Include", _Config._include)
        self._config = config

    def __getitem__(self, keyword: str) -> Any:
        if keyword not in HONOURED:
            self._config.note(keyword)
        return super().__getitem__(keyword)


def _paths(config: _Config, option: str) -> list[Path]:
    values = config.get(option) or []
    assert isinstance(values, list)
    expanded = option in SSHClientConfig._percent_expand  # by asyncssh; it leaves known_hosts files out
    return [Path(str(value) if expanded else config.expand(str(value))).expanduser() for value in values]


def _agent(config: _Config) -> str | None:
    """The agent's socket: IdentityAgent (a path, `SSH_AUTH_SOCK`, `$VAR` or none), else SSH_AUTH_SOCK."""
    missing = object()
    wanted = config.get("IdentityAgent", missing)
    if wanted is None:
        return None
    if wanted is missing or wanted == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    text = str(wanted)
    if re.fullmatch(r"\$\w+", text):
        return os.environ.get(text[1:]) or None
    return str(Path(text).expanduser())


# as OpenSSH 10 has it; asyncssh would begin with ChaCha20, which costs it five times as much for every packet
FIRST_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"


def _settings(config: _Config) -> dict[str, Any]:
    """What asyncssh.connect is told besides, under its own names."""
    wanted = {
        "encryption_algs": config.get("Ciphers", FIRST_CIPHERS),
        "mac_algs": config.get("MACs"),
        "kex_algs": config.get("KexAlgorithms"),
        "server_host_key_algs": config.get("HostKeyAlgorithms"),
        "preferred_auth": config.get("PreferredAuthentications"),
        "public_key_auth": config.get("PubkeyAuthentication"),
        "password_auth": config.get("PasswordAuthentication"),
        "kbdint_auth": config.get(
            "KbdInteractiveAuthentication", config.get("ChallengeResponseAuthentication")
        ),
        "tcp_keepalive": config.get("TCPKeepAlive"),
        "family": config.get("AddressFamily"),
        "compression_algs": config.get_compression_algs() or None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _jump(text: str) -> tuple[str | None, str, int | None]:
    """(user, host, port) of one ProxyJump entry: `[user@]host[:port]` or `ssh://[user@]host[:port]`."""
    found = re.fullmatch(
        r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:/\[\]]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:]*))(?::(?P<port>\d+))?/?",
        text,
    )
    if not found:
        raise ConfigError(f"ProxyJump `{text}` cannot be read", "Write it as user@host:port.")
    port = int(found["port"]) if found["port"] else None
    return found["user"], found["six"] or found["host"], port


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _hint(error: str) -> str:
    if "Extra data at end" in error:
        return "In ssh_config a comment stands on a line of its own; one word too many is an error too."
    if "integer value" in error:
        return "Write the time in seconds, without a unit."
    if "match condition" in error or "ifaddr" in error:
        return "This kind of Match is not understood: name another file in connection.config of the profile."
    return "Correct the line, or name another file in connection.config of the profile."
