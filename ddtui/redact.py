"""Secrets are taken out at the source: before anything is shown, logged or kept.

`redact` is for free text (journal lines, files, error messages), `argv` for command lines, `value` for a
named value (environment variable, flag, JSON key). A secret becomes `<secret:3f9a1c>`: the six digits are the
start of a SHA-256, so that two secrets can be compared without being shown. What was once seen as a secret is
remembered and taken out wherever it turns up again, whatever stands beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

_MASKED = re.compile(r"<secret:[0-9a-f]{6}>")

# -- names ---------------------------------------------------------------------------------------------------
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = {
    "password",
    "passwd",
    "passphrase",
    "passwords",
    "pwd",
    "secret",
    "secrets",
    "credential",
    "credentials",
}
_LAST = _ALWAYS | {"token", "cookie", "cookies", "auth", "authorization", "bearer", "apikey"}
_KEYS = {"api", "admin", "access", "secret", "private", "auth", "signing", "encryption", "account", "master"}
# "mask_token", "eos_token", "per_token": tokens of a language model, not of a login
_MODEL_TOKEN = re.compile(
    "mask|pad|bos|eos|unk|sep|cls|stop|start|end|begin|think|image|video|audio|special|per|next|first|last|new"
    "|cached|draft|accept|extra|input|output|text|prompt|prefill|decode|full|each|a|the|of"
)
# "token_path", "password_file": says where the secret is, is not the secret
_ABOUT = re.compile(
    "file|path|dir|directory|name|id|url|uri|host|type|mode|env|timeout|enabled|count|num|size|length|len|limit"
    "|format|provider|header|required"
)
_PLAIN = re.compile(r"(?i)\A(?:|true|false|yes|no|on|off|none|null|0|1|\*+|\$\{?\w+\}?|%[a-zA-Z])\Z")
_NUMBER = re.compile(r"\A[-+]?\d[\d.,]*\Z")


def secret_name(name: str) -> bool:
    """Whether a flag, environment variable or key of that name holds a secret.

    >>> [secret_name(n) for n in ("--api-key", "HF_TOKEN", "--max-total-tokens", "mask_token", "TOKEN_PATH")]
    [True, True, False, False, False]
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if _ABOUT.fullmatch(last):
        return False
    if last == "token":
        return not _MODEL_TOKEN.fullmatch(before)
    if last in ("key", "keys", "tokens"):
        return bool(_KEYS & set(words[:-1]))
    return last in _LAST or bool(_ALWAYS & set(words))


# -- the mask ------------------------------------------------------------------------------------------------
_SEEN: dict[str, None] = {}  # literal secrets, oldest first
_SEEN_LIMIT = 256


def remember(secret: str) -> None:
    """Take this literal out of all text from now on. Short ones (under 8 characters) are not kept, since they
    would also take out what is no secret."""
    if len(secret) < 8 or secret in _SEEN or _MASKED.search(secret):
        return
    _SEEN[secret] = None
    while len(_SEEN) > _SEEN_LIMIT:
        del _SEEN[next(iter(_SEEN))]


def mask(secret: str) -> str:
    """What stands in a secret's place. Remembers the secret."""
    if _MASKED.fullmatch(secret):
        return secret
    remember(secret)
    return f"<secret:{hashlib.sha256(b'ddtui ' + secret.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}>"


def value(name: str, text: str) -> str:
    """The value of a named setting, masked if the name says that it is a secret."""
    if secret_name(name) and not _PLAIN.match(text) and not (_token_like(name) and _NUMBER.match(text)):
        return mask(text)
    return redact(text)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables with their secrets masked."""
    return {name: value(name, text) for name, text in variables.items()}


def argv(words: Sequence[str]) -> tuple[str, ...]:
    """A command line with its secrets masked: `--api-key X`, `--api-key=X`, `HF_TOKEN=X`, in JSON values."""
    result: list[str] = []
    flag = ""  # the flag whose value may come next
    for word in words:
        name, equals, rest = word.partition("=")
        if flag and not word.startswith("--"):
            result.append(value(flag, word))
            flag = ""
        elif equals and _NAME.match(name):
            result.append(f"{name}={value(name, rest)}")
            flag = ""
        else:
            result.append(redact(word))
            flag = word if word.startswith("--") and secret_name(word) else ""
    return tuple(result)


# -- free text -----------------------------------------------------------------------------------------------
_NAME = re.compile(r"\A-{0,2}[A-Za-z_][\w.-]*\Z")
_ENDING = (
    r"(?:key|keys|token|tokens|password|passwd|passphrase|pwd|secret|secrets|credentials?|cookies?|auth"
    r"|authorization|apikey|(?:secret|password|credentials?)[\w.-]*)"
)
_QUOTED = "|".join(
    (
        r"\\\"(?:[^\"\\]|\\[^\"])*\\\"",
        r"\\'(?:[^'\\]|\\[^'])*\\'",
        r"\"(?:[^\"\\]|\\.)*\"",
        r"'(?:[^'\\]|\\.)*'",
    )
)
_BARE = r"[^\s,;&\"')\]}\\]+"
_ASSIGNED = re.compile(
    rf"(?<![\w-])(?!secret:[0-9a-f]{{6}}>)(?P<name>(?:--)?[\w.-]*?{_ENDING})(?P<sep>\\?[\"']?\s*[=:]\s*|(?<=[a-z])\\?[\"'],\s*(?=\\?[\"'])"
    rf"|(?<=\w)[ \t]+(?=\S))(?P<value>{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_SCHEMES = re.compile(
    r"\b(?P<scheme>Bearer|Basic|Digest|(?<=:\s)Token)\s+(?P<value>[A-Za-z0-9._~+/=-]{6,})", re.IGNORECASE
)
_URL = re.compile(r"(?P<head>\b[a-zA-Z][a-zA-Z0-9+.-]*://)(?P<user>[^\s/@:'\"]*)(?P<password>:[^\s/@'\"]*)?@")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9_])(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|(?:AKIA|ASIA)[0-9A-Z]{12,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{16,}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_PEM = re.compile(r"-----BEGIN (?P<what>[A-Z ]*PRIVATE KEY)-----.*?(?:-----END (?P=what)-----|\Z)", re.DOTALL)
# a cheap look before the dear ones: nearly all lines hold none of these
_HINTS = (
    *(
        "key",
        "passw",
        "passphrase",
        "pwd",
        "secret",
        "credential",
        "cookie",
        "auth",
        "bearer",
        "basic",
        "digest",
    ),
    *(
        "://",
        "hf_",
        "sk-",
        "akia",
        "asia",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat",
        "glpat",
        "xox",
    ),
    *("nvapi", "aiza", "eyj"),
)
# "#token: 12345", in every line about a batch, is none
_TOKEN_HINT = re.compile(r"--[\w-]*token[\s=\"',\\]|token[\"'\\]*\s*[=:,](?!\s*\d[\d.,]*(?:[\s,;)]|\Z))")


def redact(text: str) -> str:
    """Text with the secrets in it masked. Redacting twice changes nothing."""
    for secret in [secret for secret in _SEEN if secret in text]:
        text = text.replace(secret, mask(secret))
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS) and not ("token" in lower and _TOKEN_HINT.search(lower)):
        return text
    text = _PEM.sub(lambda found: mask(found[0]), text)
    text = _URL.sub(_mask_user_info, text)
    text = _SHAPES.sub(lambda found: mask(found[0]), text)
    text = _SCHEMES.sub(_mask_scheme, text)
    return _ASSIGNED.sub(_mask_assigned, text)


def _mask_user_info(found: re.Match[str]) -> str:
    password = found["password"]
    if password:
        return f"{found['head']}{found['user']}:{mask(password[1:])}@" if password != ":" else found[0]
    return f"{found['head']}{mask(found['user'])}@" if _looks_random(found["user"]) else found[0]


def _mask_scheme(found: re.Match[str]) -> str:
    # "basic authentication failed" is prose; a credential has digits, capitals or signs in it
    if found["scheme"].lower() != "bearer" and not _looks_random(found["value"]):
        return found[0]
    return found[0][: found.start("value") - found.start()] + mask(found["value"])


def _mask_assigned(found: re.Match[str]) -> str:
    name, separator, held = found["name"], found["sep"], found["value"]
    spaced = not separator.strip()
    if spaced and not name.startswith(
        "--"
    ):  # "token expired": prose, only flags take their value after a blank
        return found[0]
    if not secret_name(name):
        return found[0]
    opening = re.match(r"\\?[\"']", held)
    quote = opening[0] if opening and held.endswith(opening[0]) and len(held) >= 2 * len(opening[0]) else ""
    inner = held[len(quote) : len(held) - len(quote)] if quote else held
    if (spaced and inner.startswith("--")) or _PLAIN.match(inner) or _MASKED.match(inner):
        return found[0]
    if inner.lower() in ("bearer", "basic", "digest", "token") or (
        _token_like(name) and _NUMBER.match(inner)
    ):
        return found[0]
    return f"{name}{separator}{quote}{mask(inner)}{quote}"


def _token_like(name: str) -> bool:
    return name.lower().rstrip("s").endswith("token")


def _looks_random(text: str) -> bool:
    return len(text) >= 12 and bool(re.search(r"\d", text)) and bool(re.search(r"[A-Za-z]", text))
