"""SGLang's own `--config FILE`: YAML entries that it puts before the command line.

After ConfigArgumentMerger in sglang/srt/server_args_config_parser.py (0.5.9 to 0.5.23): only the word
`--config` itself is looked for, the file's entries come first, so the command line wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ddtui.host.unit import yaml_text
from ddtui.host.unit.syntax import decode
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.yaml_text import Map, Scalar


@dataclass(frozen=True, slots=True)
class Config:
    """What the file adds."""

    path: str  # on the host
    words: tuple[Word, ...]
    at: int  # index of `--config` in the command line
    warnings: tuple[str, ...] = ()


def read(
    words: Sequence[Word], start: int, fetch: Callable[[str], tuple[str, bytes] | None]
) -> Config | str | None:
    """The file that a command line names. None: it names none; a sentence: it cannot be read.

    `fetch` gives the path on the host and the content. Raises yaml_text.YamlError.
    """
    places = [i for i in range(start, len(words)) if words[i].value == "--config"]
    if not places:
        return None
    at = places[0]
    if len(places) > 1:
        return "--config stands more than once, which SGLang refuses"
    if at + 1 >= len(words):
        return "--config stands without a file, which SGLang refuses"
    path = words[at + 1].value
    found = fetch(path)
    if found is None:
        return f"the file {path}, named by --config, is not there"
    on_host, data = found
    content = decode(data)
    document = yaml_text.load(on_host, content)
    if not isinstance(document, Map):
        return f"{on_host} holds no `flag: value` lines, which SGLang refuses"
    made: list[Word] = []
    warnings: list[str] = []
    for entry in document.entries:
        whole = Text.of_file(on_host, content, entry.start, entry.end)
        flag = Word(Text("--") + entry.key.text, whole, ("yaml:bare",), "entry")
        value = entry.value
        if isinstance(value, Scalar):
            if value.tag == "bool":
                if value.text.value.lower() in ("true", "yes", "on"):
                    made.append(flag)
            else:
                made += [flag, _value(value)]
        elif isinstance(value, yaml_text.Sequence):
            items = [item for item in value.items if isinstance(item, Scalar)]
            made += [flag, *map(_value, items)] if items else []
        else:
            warnings.append(f"{on_host}: {entry.key.text.value} holds a map, which no flag takes")
    return Config(on_host, tuple(made), at, tuple(warnings))


def _value(scalar: Scalar) -> Word:
    return Word(scalar.text, scalar.raw, ("yaml:bare",), "flow" if scalar.flow else "block")
