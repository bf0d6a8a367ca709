"""What went wrong on the way to a host, in one clear sentence with what to do about it."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import asyncssh

from ddtui import sanitize
from ddtui.host.base import ConfigError, HostError, HostKeyRefused, NotAuthenticated, Unreachable
from ddtui.host.known_hosts import Answer, KnownHosts, Marker
from ddtui.host.login import Login
from ddtui.host.ssh_config import Hop


def explain(error: BaseException, hop: Hop, login: Login) -> HostError:
    """The error of an attempt to connect, other than a refused key or log-in, in words."""
    where = f"{hop.host}:{hop.port}"
    logging_in = login.authenticating.is_set()
    match error:
        case HostError():
            return error
        case socket.gaierror():
            return Unreachable(
                f"the host name {hop.host} is not known: {error.strerror}",
                "Check the host in the profile, and HostName in ssh_config.",
            )
        case ConnectionRefusedError():
            return Unreachable(
                f"{where} refuses connections: nothing listens there", "Check the port, and that sshd runs."
            )
        case TimeoutError():
            return Unreachable(
                f"{where} did not answer as an SSH server within {hop.connect_timeout:g} s",
                "Check that the host is up, and the network, VPN or firewall on the way.",
            )
        case asyncssh.ChannelOpenError():
            return Unreachable(
                f"the jump host cannot reach {where}: {_clean(error.reason)}",
                "Check the name and port as the jump host sees them, and that it allows forwarding.",
            )
        case asyncssh.KeyExchangeFailed():
            return ConfigError(
                f"no common way to talk to {where}: {_clean(str(error))}",
                "Allow one of the host's in ssh_config (HostKeyAlgorithms, KexAlgorithms, Ciphers, MACs).",
            )
        case asyncssh.ProtocolNotSupported():
            return Unreachable(f"what listens on {where} is not an SSH server", "Check the port.")
        case asyncssh.Error() if too_many_failures(error):
            return login_refused(hop, login.offered, (), login)
        case asyncssh.ConnectionLost() | ConnectionError() if logging_in:
            return Unreachable(
                f"{hop.target} ended the connection during the log-in",
                "The account may be expired or locked, or the host may be starting up (nologin).",
            )
        case asyncssh.ConnectionLost() | ConnectionError():
            return Unreachable(
                f"{where} ended the connection before the log-in",
                "It may have too many connections (MaxStartups), block this address, or be no SSH server.",
            )
        case asyncssh.DisconnectError():
            return Unreachable(f"{where} ended the connection: {_clean(error.reason)}")
        case OSError():
            return Unreachable(f"{where} cannot be reached: {error.strerror or error}")
        case _:
            return ConfigError(f"the connection to {where} cannot be made: {_clean(str(error))}")


def link_lost(error: Exception | None) -> str:
    """Why a connection that stood has ended."""
    if error is None:
        return "the host ended the connection"
    text = _clean(str(error))
    if "keepalive" in text:
        return "the host no longer answers"
    if "Connection lost" in text or isinstance(error, ConnectionError):
        return "the connection broke"
    return f"the connection ended: {text}"


def certificate_refused(hop: Hop, error: Exception) -> HostKeyRefused:
    """A host certificate that is not valid, or signed by nobody that known_hosts trusts."""
    return HostKeyRefused(
        f"the host certificate of {hop.host}:{hop.port} is not accepted: {_clean(str(error))}",
        "Ask whoever signs the host certificates.",
    )


def host_key_refused(hop: Hop, known: KnownHosts, answer: Answer, key: asyncssh.SSHKey) -> HostKeyRefused:
    """A host key that is changed, revoked or was not accepted."""
    where = f"{hop.host}:{hop.port}"
    shown = f"{key.get_algorithm()} {key.get_fingerprint()}"
    if answer is Answer.REVOKED:
        lines = ", ".join(entry.where for entry in known.of(Marker.REVOKED))
        return HostKeyRefused(
            f"the host key of {where} is revoked ({shown}; {lines})",
            "Somebody may hold the host's stolen key. Do not connect; ask whoever runs the host.",
        )
    if answer is Answer.CHANGED:
        old = next(entry for entry in known.of(Marker.NONE) if entry.algorithm == key.get_algorithm())
        return HostKeyRefused(
            f"the host key of {where} has changed: it is {shown}, and {old.where} says {old.fingerprint}",
            "Somebody may be in between, or the host was set up anew. If you know that it was, remove the old"
            f" key: ssh-keygen -R '{known.host}' -f {old.where.rpartition(':')[0]}",
        )
    return HostKeyRefused(
        f"the host key of {where} is not known and was not accepted: {shown}",
        "Compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints on the host.",
    )


def login_refused(
    hop: Hop, offered: Sequence[str], skipped: Sequence[str], login: Login | None
) -> NotAuthenticated:
    """Nothing that we have lets us in."""
    what: list[str] = []
    if offered:
        what.append(f"{'the key' if len(offered) == 1 else 'the keys'} {', '.join(dict.fromkeys(offered))}")
    if login and login.asked_password and not login.refused_by_person:
        what.append("the password")
    tried = " and ".join(what) or "anything: there is no key to offer, and no password was given"
    message = f"{hop.target} does not accept {tried}"
    if login and login.expired:
        message = f"the password of {hop.target} has expired"
    if skipped:
        message += f"; left out: {', '.join(skipped)}"
    if login and login.banner:
        message += f"; the host says: {' '.join(login.banner.split())[:200]}"
    return NotAuthenticated(
        message,
        "Check user and identity_file in the profile, or load the right key into the agent (ssh-add).",
    )


def too_many_failures(error: BaseException) -> bool:
    return isinstance(error, asyncssh.DisconnectError) and "too many authentication" in error.reason.lower()


def _clean(text: str) -> str:
    return sanitize.line(text)[:300]
