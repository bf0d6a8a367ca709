"""The layers of quoting that a value passes on its way into a file, each with how to write for it.

A `Mark` names them innermost first: a value inside a script inside a systemd word inside single quotes passes
"sh:bare", then "variables", "specifiers", "sd:single". What comes out is always read back before it is used.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from ddtui.host.unit import words
from ddtui.host.unit.words import UnfitValue


def encode(value: str, quoting: tuple[str, ...]) -> str:
    """How `value` has to be written at a place with these layers. Raises UnfitValue."""
    for layer in quoting:
        value = _ENCODERS[layer](value)
    return value


def _refuse(characters: str, where: str, *, printable: bool = False) -> Callable[[str], str]:
    """`printable`: control characters cannot stand there either."""

    def check(value: str) -> str:
        found = next((c for c in value if c in characters), None)
        if found is not None:
            raise UnfitValue(f"{found!r} cannot stand in {where}")
        if not value:
            raise UnfitValue(f"an empty value cannot stand in {where}")
        if printable and _YAML_UNPRINTABLE.search(value):
            raise UnfitValue(f"a control character cannot stand in {where}")
        return value

    return check


def _escaping(characters: str, refused: str = "") -> Callable[[str], str]:
    def escape(value: str) -> str:
        words.check_text(value)
        if any(c in refused for c in value):
            raise UnfitValue("a line break cannot stand there")
        return "".join("\\" + c if c in characters else c for c in value)

    return escape


def _single(value: str) -> str:
    if "'" in value:
        raise UnfitValue("a single quote cannot stand inside single quotes")
    return value


def _shell_bare(value: str) -> str:
    words.check_text(value)
    return shlex.quote(value)


def _shell_single(value: str) -> str:
    words.check_text(value)
    return value.replace("'", "'\\''")


def _split_bare(value: str) -> str:
    """A word in a variable that systemd splits: quotes honoured, `\\c` is c."""
    if value and not set(value) & set(" \t\n\r'\"\\"):
        return value
    if "'" not in value and "\\" not in value:
        return f"'{value}'"
    return '"' + "".join("\\" + c if c in '"\\' else c for c in value) + '"'


def _env_file_bare(value: str) -> str:
    if any(c in "\n\r" for c in value):
        raise UnfitValue("a line break cannot stand there without quotes")
    last = len(value) - 1  # a blank at either end would go
    return "".join(
        "\\" + c if c in "\\'\"" or (c in " \t" and i in (0, last)) else c for i, c in enumerate(value)
    )


_YAML_PLAIN = re.compile(r"[A-Za-z0-9_./+$-]([A-Za-z0-9_./+=@:$-]*[A-Za-z0-9_./+=@$-])?\Z")
_YAML_TYPED = re.compile(
    r"(?i:~|null|true|false|yes|no|on|off|y|n)\Z|[-+]?[.\d][\d_.,:]*([eE][-+]?\d+)?\Z|0[xob][\da-fA-F_]+\Z|\d{4}-\d"
)


_YAML_UNPRINTABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def _yaml_double(value: str) -> str:
    words.check_text(value)
    written = json.dumps(value, ensure_ascii=False)[1:-1]
    return _YAML_UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _yaml_single(value: str) -> str:
    if _YAML_UNPRINTABLE.search(value):
        raise UnfitValue("a control character cannot stand there without double quotes")
    return value.replace("'", "''")


def _yaml_bare(value: str) -> str:
    """A whole scalar; a number stays one, since whoever reads it turns it into text again."""
    words.check_text(value)
    plain = _YAML_PLAIN.match(value) and value not in ("-", "---", "...")
    if plain and (
        not _YAML_TYPED.match(value) or re.fullmatch(r"[1-9]\d*|0|0?\.\d*[1-9]|[1-9]\d*\.\d*[1-9]", value)
    ):
        return value
    return f'"{_yaml_double(value)}"'


def _yaml_text_bare(value: str) -> str:
    """A whole scalar that must be text."""
    plain = _yaml_bare(value)
    return json.dumps(plain) if _YAML_TYPED.match(plain) else plain


_ENCODERS: dict[str, Callable[[str], str]] = {
    # systemd
    "variables": lambda v: v.replace("$", "$$"),
    "specifiers": lambda v: v.replace("%", "%%"),
    "sd:bare": words.quote,
    "sd:single": lambda v: words.escape(v, "'"),
    "sd:double": lambda v: words.escape(v, '"'),
    "split:bare": _split_bare,
    "split:single": lambda v: "".join("\\" + c if c in "'\\" else c for c in v),
    "split:double": lambda v: "".join("\\" + c if c in '"\\' else c for c in v),
    "env-file:bare": _env_file_bare,
    "env-file:single": _single,
    "env-file:double": _escaping('"\\`$'),
    # shells
    "sh:bare": _shell_bare,
    "sh:single": _shell_single,
    "sh:double": _escaping('"\\`$'),
    "sh:double-brace": _escaping('"\\`$}'),
    "sh:ansi": lambda v: words.escape(v, "'"),
    "sh:fields": _refuse(" \t\n*?[", "a variable that the shell splits"),
    "sh:file": lambda v: v,
    # compose
    "compose": lambda v: v.replace("$", "$$"),
    "compose:brace": _refuse("${}\\\"'", "the default of a compose variable"),
    "shlex:bare": _shell_bare,
    "shlex:single": _single,
    "shlex:double": _escaping('"\\`$'),
    "dotenv:bare": _refuse(" \t\n\r#'\"\\$`", "an unquoted line of a .env file"),
    "dotenv:single": _refuse("'\\\n", "single quotes of a .env file"),
    "dotenv:double": _escaping('"\\$`', "\n\r"),
    # YAML
    "yaml:bare": _yaml_bare,
    "yaml:item": _yaml_text_bare,
    "yaml:plain": _refuse("\n\r:#'\"[]{}&*!|>%@`,\t\\", "an unquoted YAML value", printable=True),
    "yaml:single": _yaml_single,
    "yaml:double": _yaml_double,
    "yaml:quoted": lambda v: f'"{_yaml_double(v)}"',
    "yaml:block": _refuse("\n\r", "one line of a YAML block", printable=True),
}
