"""A drafter's config.json: what kind it is, its block, its layers, and which of them slide by the config.

Facts about who reads which field: SGLang's srt/models/dflash.py and srt/speculative/dflash_utils.py from
0.5.14 on, and Transformers' Qwen3 configuration, which SGLang builds the config with.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LARGEST = 64 << 20  # bytes; a config.json is a few kilobytes
UNUSUAL = 1 << 20
SLIDING, FULL = "sliding_attention", "full_attention"


class DrafterError(Exception):
    """A config.json that cannot be used. `str()` is one sentence: what, where, what to do."""


class Family(StrEnum):
    DFLASH = "DFLASH"
    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"
    MTP = "MTP"
    STANDALONE = "standalone"


@dataclass(frozen=True, slots=True)
class Layer:
    index: int
    slides: bool  # by the config
    why: str


@dataclass(frozen=True, slots=True)
class Rope:
    theta: float | None
    kind: str  # default, yarn, linear, llama3, …
    factor: float | None
    original_max_position: int | None
    spelling: str  # "rope_scaling" (old), "rope_parameters" (new), "" (plain)


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    """What a drafter's config.json says. None: not there, or of a wrong type (then there is a warning)."""

    path: str
    family: Family
    model_type: str
    architectures: tuple[str, ...]
    num_hidden_layers: int | None
    hidden_size: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    vocab_size: int | None
    max_position_embeddings: int | None
    dtype: str | None
    block_size: int | None
    target_layer_ids: tuple[int, ...] | None
    mask_token_id: int | None
    num_target_layers: int | None
    layer_types: tuple[str, ...] | None
    sliding_window: int | None  # as written
    use_sliding_window: bool | None
    max_window_layers: int | None
    is_causal: bool | None
    rope: Rope
    layers: tuple[Layer, ...]
    window: int | None  # tokens that sliding layers see by the config; None: no layer slides
    slides_validly: bool  # SGLang from 0.5.14 on would load it and slide these layers
    why: str  # one clause on `slides_validly`
    warnings: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def sliding_layers(self) -> int:
        return sum(layer.slides for layer in self.layers)

    @property
    def full_layers(self) -> int:
        return sum(not layer.slides for layer in self.layers)

    def kv_bytes_per_token(self, tp: int = 1, element_bytes: int = 2) -> int | None:
        """Draft KV cache per token and GPU, in bytes; it is the same with a window and without one."""
        heads = self.num_key_value_heads or self.num_attention_heads
        if not self.num_hidden_layers or not heads or not self.head_dim:
            return None
        return self.num_hidden_layers * math.ceil(heads / tp) * self.head_dim * 2 * element_bytes


def parse(data: bytes, path: str) -> DrafterConfig:
    """Read config.json. Raises DrafterError."""
    warnings: list[str] = []
    raw = _object(data, path, warnings)
    return _Reader(raw, path, warnings).read()


def _object(data: bytes, path: str, warnings: list[str]) -> dict[str, Any]:
    if not data.strip():
        raise DrafterError(f"{path} is empty: the download of the drafter may have been cut off.")
    if len(data) > LARGEST:
        raise DrafterError(f"{path} has {len(data) >> 20} MB: that is not a drafter's config.json.")
    if len(data) > UNUSUAL:
        warnings.append(f"the file has {len(data) / 1e6:.1f} MB; a config.json has a few kilobytes")
    try:
        text = _decode(data, warnings)
    except UnicodeDecodeError as error:
        raise DrafterError(
            f"{path} is not UTF-8 text (byte {error.start}), so it is no config.json."
        ) from None
    try:
        raw = json.loads(text, parse_constant=lambda name: _not_finite(name, warnings))
    except json.JSONDecodeError as error:
        cut = " (it seems to be cut off)" if error.pos >= len(text.rstrip()) - 1 else ""
        raise DrafterError(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}{cut}."
        ) from None
    except (RecursionError, ValueError):
        raise DrafterError(
            f"{path} is not a usable JSON file: it is nested too deep or a number is too long."
        ) from None
    if not isinstance(raw, dict):
        raise DrafterError(f"{path} holds {_kind(raw)}, not an object: it is not a drafter's config.json.")
    return raw


def _decode(data: bytes, warnings: list[str]) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            warnings.append(
                "the file begins with a byte order mark, with which Python's json does not load it"
            )
            return data.decode(encoding)
    return data.decode("utf-8")


def _not_finite(name: str, warnings: list[str]) -> float:
    text = f"the file holds {name}, which is not JSON"
    if text not in warnings:
        warnings.append(text)
    return float(name.replace("Infinity", "inf"))


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "null" if value is None else "an object")


class _Reader:
    """Reads the fields, each by the type it must have; what does not fit becomes a warning."""

    def __init__(self, raw: dict[str, Any], path: str, warnings: list[str]) -> None:
        self.raw = raw
        self.path = path
        self.warnings = warnings
        text = raw.get("text_config")
        self.text: dict[str, Any] = text if isinstance(text, dict) else raw
        dflash = raw.get("dflash_config")
        if dflash is not None and not isinstance(dflash, dict):
            warnings.append(f"dflash_config is {_kind(dflash)}, not an object")
        self.dflash: dict[str, Any] = dflash if isinstance(dflash, dict) else {}

    def read(self) -> DrafterConfig:
        architectures = self._texts("architectures") or ()
        model_type = self._text("model_type") or ""
        family = self._family(architectures)
        count = self._int("num_hidden_layers", least=1)
        hidden, heads = self._int("hidden_size"), self._int("num_attention_heads")
        types = self._texts("layer_types")
        window = self._int("sliding_window")
        use = self._bool("use_sliding_window")
        first = self._int("max_window_layers")
        layers, slides, why = _sliding(_Sliding(self, model_type, count, types, window, use, first), family)
        return DrafterConfig(
            path=self.path,
            family=family,
            model_type=model_type,
            architectures=architectures,
            num_hidden_layers=count,
            hidden_size=hidden,
            num_attention_heads=heads,
            num_key_value_heads=self._int("num_key_value_heads"),
            head_dim=self._int("head_dim") or (hidden // heads if hidden and heads else None),
            vocab_size=self._int("vocab_size"),
            max_position_embeddings=self._int("max_position_embeddings"),
            dtype=self._text("dtype") or self._text("torch_dtype"),
            block_size=self._int("block_size", nested=True, least=1),
            target_layer_ids=self._ids(),
            mask_token_id=self._int("mask_token_id", nested=True),
            num_target_layers=self._int("num_target_layers", nested=True, least=1),
            layer_types=types,
            sliding_window=window,
            use_sliding_window=use,
            max_window_layers=first,
            is_causal=self._bool("is_causal"),
            rope=self._rope(),
            layers=layers,
            window=window if any(layer.slides for layer in layers) else None,
            slides_validly=slides,
            why=why,
            warnings=tuple(self.warnings),
            raw=self.raw,
        )

    def value(self, key: str, *, nested: bool = False) -> Any:
        """As SGLang looks it up: dflash_config (if `nested`), then text_config, then the top level."""
        places = (self.dflash, self.text, self.raw) if nested else (self.text, self.raw)
        return next((place[key] for place in places if place.get(key) is not None), None)

    def _warn(self, key: str, value: Any, wanted: str) -> None:
        shown = json.dumps(value, default=str)
        self.warnings.append(f"{key} is {shown[:40]}{'…' if len(shown) > 40 else ''}, not {wanted}")

    def _int(self, key: str, *, nested: bool = False, least: int | None = None) -> int | None:
        value = self.value(key, nested=nested)
        if value is None:
            return None
        number = _whole(value)
        if number is None or (least is not None and number < least):
            self._warn(
                key, value, "a whole number" if least is None else f"a whole number of {least} or more"
            )
            return None
        if not isinstance(value, int):
            self._warn(key, value, f"a whole number; read as {number}")
        return number

    def _bool(self, key: str) -> bool | None:
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            self._warn(key, value, "true or false")
            return None
        return value

    def _text(self, key: str) -> str | None:
        value = self.value(key)
        if value is not None and not isinstance(value, str):
            self._warn(key, value, "a text")
            return None
        return value

    def _texts(self, key: str) -> tuple[str, ...] | None:
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._warn(key, value, "a list of texts")
            return None
        return tuple(value)

    def _ids(self) -> tuple[int, ...] | None:
        value = self.value("target_layer_ids", nested=True)
        if value is None:
            return None
        ids = [_whole(item) for item in value] if isinstance(value, list) else []
        whole = tuple(number for number in ids if number is not None)
        if not whole or len(whole) != len(ids):
            self._warn("target_layer_ids", value, "a list of layer numbers")
            return None
        return whole

    def _family(self, architectures: tuple[str, ...]) -> Family:
        names = " ".join([*architectures, str(self.raw.get("speculators_model_type", ""))]).lower()
        if "dflash" in names or self.dflash:
            return Family.DFLASH
        if "eagle3" in names or "eagle_config" in self.raw or "draft_vocab_size" in self.raw:
            return Family.EAGLE3
        if "eagle" in names:
            return Family.EAGLE
        nextn = self.value("num_nextn_predict_layers")
        if "nextn" in names or "mtp" in names or (isinstance(nextn, int) and nextn > 0):
            return Family.MTP
        if self.raw.get("block_size") is not None and self.raw.get("target_layer_ids") is not None:
            return Family.DFLASH
        return Family.STANDALONE

    def _rope(self) -> Rope:
        new, old = self.value("rope_parameters"), self.value("rope_scaling")
        theta = self._number(self.value("rope_theta"), "rope_theta")
        spelling = ""
        fields: dict[str, Any] = {}
        for name, value in (("rope_parameters", new), ("rope_scaling", old)):
            if value is None or fields:
                continue
            if not isinstance(value, dict):
                self._warn(name, value, "an object")
                continue
            spelling = name
            one = value.get(FULL, value.get(SLIDING, value))  # one set per layer type is possible
            fields = one if isinstance(one, dict) else {}
        inner = self._number(fields.get("rope_theta"), "rope_theta")
        if theta is not None and inner is not None and theta != inner:
            self.warnings.append(f"rope_theta is {theta:g} at the top and {inner:g} in {spelling}")
        original = _whole(fields.get("original_max_position_embeddings"))
        return Rope(
            theta=inner if inner is not None else theta,
            kind=str(fields.get("rope_type") or fields.get("type") or "default"),
            factor=self._number(fields.get("factor"), "rope factor"),
            original_max_position=original,
            spelling=spelling,
        )

    def _number(self, value: Any, key: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self._warn(key, value, "a number")
            return None
        return float(value)


def _whole(value: Any) -> int | None:
    """What SGLang's int() makes of it, without cutting off a fraction."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", value):
        return int(value)
    return None


@dataclass(frozen=True, slots=True)
class _Sliding:
    reader: _Reader
    model_type: str
    count: int | None
    types: tuple[str, ...] | None
    window: int | None
    use: bool | None
    first: int | None

    @property
    def switchable(self) -> bool:
        """Transformers' Qwen2 and Qwen3 configurations drop the window unless use_sliding_window is true."""
        return self.model_type.startswith(("qwen2", "qwen3"))

    @property
    def effective(self) -> int | None:
        """The window after Transformers has read the config."""
        return self.window if not self.switchable or self.use is True else None


def _sliding(config: _Sliding, family: Family) -> tuple[tuple[Layer, ...], bool, str]:
    """(layers, whether they slide validly, why) by what SGLang from 0.5.14 on makes of the config."""
    layers = _layers(config)
    if config.types is None and config.reader.value("layer_types") is not None:
        return layers, False, "layer_types is not a list of texts, and SGLang refuses it"
    types = config.types or ()
    asked = any(kind == SLIDING for kind in types)
    if config.types is not None and config.count is not None and len(types) != config.count:
        return (
            layers,
            False,
            f"layer_types has {len(types)} entries for {config.count} layers, and loading it fails",
        )
    unknown = sorted({kind for kind in types if kind not in (SLIDING, FULL)})
    if unknown and family is Family.DFLASH:
        return layers, False, f"layer_types has {unknown[0]!r}, which SGLang's DFLASH does not know"
    if asked and config.effective is None:
        missing = "sliding_window is not set" if config.window is None else _dropped(config)
        return layers, False, f"{missing}, and SGLang from 0.5.14 on refuses sliding layers without a window"
    if asked and config.window is not None and config.window < 1:
        return layers, False, f"sliding_window is {config.window}, which is no window"
    count = sum(layer.slides for layer in layers)
    if not count:
        return layers, False, _why_none(config)
    return layers, True, f"{count} of {len(layers)} layers slide with a window of {config.window}"


def _layers(config: _Sliding) -> tuple[Layer, ...]:
    count = config.count if config.count is not None else len(config.types or ())
    layers = []
    for index in range(min(count, 4096)):
        if config.types is not None:
            kind = config.types[index] if index < len(config.types) else "missing"
            slides = kind == SLIDING and config.effective is not None
            why = f"layer_types[{index}] is {kind}"
            if kind == SLIDING and not slides:
                why += ", but " + ("sliding_window is not set" if config.window is None else _dropped(config))
        elif config.reader.value("layer_types") is not None:
            slides, why = False, "layer_types is not a list of texts"
        elif config.switchable and config.effective is not None:
            first = 28 if config.first is None else config.first  # Transformers' default
            slides = index >= first
            side = "at or above" if slides else "below"
            why = f"no layer_types, and layer {index} is {side} max_window_layers {first}"
        else:
            slides, why = False, _why_none(config)
        layers.append(Layer(index, slides, why))
    return tuple(layers)


def _dropped(config: _Sliding) -> str:
    said = "false" if config.use is False else "not set"
    return f"use_sliding_window is {said}, so Transformers drops sliding_window"


def _why_none(config: _Sliding) -> str:
    if config.types is not None:
        return "layer_types says full attention for every layer"
    if config.window is None:
        return "there is no sliding_window and no layer_types"
    if not config.switchable:
        return "there are no layer_types"
    if config.effective is None:
        return _dropped(config)
    first = 28 if config.first is None else config.first
    return f"max_window_layers is {first} of {config.count} layers, so none slides"


# --- where a Hugging Face repo lies on the host -------------------------------------------------------------


_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_repo_id(name: str) -> bool:
    """Whether a model path is a Hugging Face repo id (owner/name) rather than a folder.

    A folder of that name in the service's working directory comes first, as in SGLang: look there too.
    """
    return bool(_REPO.fullmatch(name)) and "--" not in name and ".." not in name


def hf_cache_candidates(repo: str, env: Mapping[str, str], *, home: str) -> tuple[str, ...]:
    """Folders that may hold the repo in the service's HF cache, the likeliest first.

    `env`: the service's environment; `home`: its user's home. In a folder, `hf_ref` names the file that holds
    the snapshot's commit and `hf_config` the config.json in it. Order: huggingface_hub's constants.
    """
    roots = []
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"):
        if env.get(name):
            roots.append(env[name])
    if env.get("HF_HOME"):
        roots.append(posixpath.join(env["HF_HOME"], "hub"))
    cache = env.get("XDG_CACHE_HOME") or posixpath.join(home, ".cache")
    roots.append(posixpath.join(cache, "huggingface", "hub"))
    folder = "models--" + repo.replace("/", "--")
    found = [posixpath.join(home + root[1:] if root.startswith("~/") else root, folder) for root in roots]
    return tuple(dict.fromkeys(found))


def hf_ref(folder: str, revision: str = "main") -> str:
    """The file in a repo's cache folder that holds the commit of a branch or tag."""
    return posixpath.join(folder, "refs", revision)


def hf_config(folder: str, commit: str) -> str:
    """The config.json (a symlink to a blob) of one snapshot in a repo's cache folder."""
    return posixpath.join(folder, "snapshots", commit.strip(), "config.json")
