"""systemd's specifiers: `%i`, `%h` and the rest, in the values of one unit.

After `unit_printf.c` and `specifier.c` (v252; v254 moved `%S` and `%L` of user units).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.text import Text

_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})")


class SpecifierError(ValueError):
    """A specifier that systemd does not know: it then refuses the value."""


@dataclass(frozen=True, slots=True)
class UnitName:
    """The parts of a unit's name: `prefix@instance.suffix`."""

    name: str

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def suffix(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def prefix(self) -> str:
        return self.stem.partition("@")[0]

    @property
    def instance(self) -> str | None:
        """None: not an instance; "": a template itself."""
        _, at, instance = self.stem.partition("@")
        return instance if at else None

    @property
    def template(self) -> str | None:
        return f"{self.prefix}@.{self.suffix}" if self.instance else None


def unescape_name(escaped: str) -> str:
    """`systemd-escape --unescape`."""
    text = escaped.replace("-", "/")
    raw = _ESCAPE.sub(lambda found: chr(0xDC00 + int(found[1], 16)), text)
    data = b"".join(bytes([ord(c) - 0xDC00]) if "\udc00" <= c <= "\udcff" else c.encode() for c in raw)
    return data.decode("utf-8", "surrogateescape")


def table(unit: str, scope: str, facts: HostFacts, fragment: str | None = None) -> dict[str, str | None]:
    """What each specifier stands for in this unit. None: not known here."""
    name = UnitName(unit)
    user = scope == "user"
    home = facts.home if user else "/root"
    uid = facts.uid if user else 0
    modern = facts.systemd is None or facts.systemd >= 254
    instance = name.instance or ""
    last = name.prefix.rpartition("-")[2]
    path = unescape_name(instance or name.prefix)

    def under(tail: str, system: str) -> str | None:
        return system if not user else f"{home}/{tail}" if home else None

    return {
        "n": unit,
        "N": name.stem,
        "p": name.prefix,
        "P": unescape_name(name.prefix),
        "i": instance,
        "I": unescape_name(instance),
        "j": last,
        "J": unescape_name(last),
        "f": "/" + path.lstrip("/"),
        "y": fragment,
        "Y": posixpath.dirname(fragment) if fragment else None,
        "u": facts.user if user else "root",
        "U": "{UID}" if uid is None else str(uid),
        "g": facts.group if user else "root",
        "G": None if user and facts.gid is None else str(facts.gid if user else 0),
        "h": home,
        "d": f"/run/credentials/{unit}" if not user else None,
        "t": ("/run/user/" + ("{UID}" if uid is None else str(uid))) if user else "/run",
        "S": under(".local/state" if modern else ".config", "/var/lib"),
        "C": under(".cache", "/var/cache"),
        "L": under(".local/state/log" if modern else ".config/log", "/var/log"),
        "E": under(".config", "/etc"),
        "T": "/tmp",
        "V": "/var/tmp",
        "H": facts.hostname,
        "l": facts.hostname.partition(".")[0] if facts.hostname else None,
        "m": facts.machine_id,
        "b": facts.boot_id,
        "v": facts.kernel,
        "a": facts.architecture,
        **dict.fromkeys("AMBowWcrRsq", None),
        **(
            {"D": under(".local/share", "/usr/share")}
            if facts.systemd is None or facts.systemd >= 256
            else {}
        ),
    }


def expand(text: Text, specifiers: Mapping[str, str | None]) -> tuple[Text, list[str]]:
    """The value with its specifiers replaced, and those that are not known here (they stay as written).

    Raises SpecifierError for a letter or digit that is none; before anything else a `%` is just a `%`.
    """
    if "%" not in text.value:
        return text, []
    pieces: list[Text] = []
    unknown: list[str] = []
    value, at = text.value, 0
    while at < len(value):
        if value[at] != "%" or at + 1 >= len(value):
            pieces.append(text[at])
            at += 1
            continue
        letter, both = value[at + 1], text[at : at + 2]
        if letter == "%":
            pieces.append(both.becomes("%"))
        elif letter not in specifiers:
            if letter.isascii() and letter.isalnum():
                raise SpecifierError(
                    f"%{letter} is no specifier that systemd knows (a plain % is written %%)"
                )
            pieces.append(both)
        elif (known := specifiers[letter]) is None:
            pieces.append(both.as_unknown())
            unknown.append("%" + letter)
        else:
            pieces.append(both.becomes(known))
        at += 2
    return Text.join(pieces), unknown
