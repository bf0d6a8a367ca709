"""A profile as the YAML file that a person goes on with: comments where they help, and what shows its default
left as a comment.
"""

from __future__ import annotations

import json

from ddtui.profile import Connection, Knob, Profile, Service


def as_yaml(made: Profile) -> str:
    """The whole file. It can be read back: `profile.parse` gives an equal profile."""
    connection, service, bench = made.connection, made.service, made.bench
    lines = [
        "# Made by ddtui from what it found on the host. `ddtui profiles validate` checks it after a change;",
        "# the shipped profile kimi-k26-ddtree has every key with what it does.",
        "",
        f"name: {_text(made.name)}",
        *([f"about: {_text(made.about)}"] if made.about else []),
        "",
        "connection:",
        *_connection(connection),
        "",
        "service:",
        *_service(service),
        _line(f"  # port: {service.port or 30000}", "default: the unit's --port, else 30000"),
        _line("  # api_key_env: SGLANG_API_KEY", "a variable of YOUR environment with the server's API key"),
        _line(f"  start_timeout: {service.start_timeout:g}", "seconds until a start counts as failed"),
        _line(f"  stop_timeout: {service.stop_timeout:g}", "seconds to drain before ddtui asks"),
        "",
        _line("knobs:", "a name, the flag behind it, the key that edits it, range, presets"),
        *(line for knob in made.knobs for line in _knob(knob)),
        "",
        "bench:",
        _line(f"  concurrency: {list(bench.concurrency)}", "requests at once"),
        _line(f"  context: {list(bench.context)}", "prompt tokens"),
        _line(f"  output: {bench.output}", "output tokens per request"),
        _line(f"  workload: {_text(bench.workload)}", "code, completion, chat, document, or a JSONL file"),
        _line(f"  at: {bench.at}", "where the load runs: host or here"),
        "",
        _line(f"production: {_switch(made.production)}", "true: PROD on every screen; a restart asks"),
        _line(f"read_only: {_switch(made.read_only)}", "true: look, never change"),
    ]
    if made.simulated:
        lines.append("simulated: true")
    return "\n".join(lines) + "\n"


def _service(service: Service) -> list[str]:
    if service.compose is None:
        scope = _line(f"  scope: {service.scope.value}", "or user: systemctl --user")
        return [f"  unit: {_text(service.unit)}", scope]
    made = service.compose
    return [
        _line(f"  unit: {_text(service.unit)}", "only a name"),
        "  compose:",
        f"    file: {_text(made.file)}",
        f"    service: {_text(made.service)}",
        _line(f"    sudo: {_switch(made.sudo)}", "true: docker through sudo"),
    ]


def _line(text: str, comment: str) -> str:
    return f"{text:<37} # {comment}"


def _connection(connection: Connection) -> list[str]:
    lines = [f"  host: {_text(connection.host)}"]
    for key, usual in (
        ("user", "~/.ssh/config, else your own name"),
        ("port", "~/.ssh/config, else 22"),
        ("identity_file", "~/.ssh/config, the agent, the usual keys"),
        ("known_hosts", "~/.ssh/known_hosts"),
        ("config", "~/.ssh/config"),
    ):
        value = getattr(connection, key)
        if value is not None:
            lines.append(f"  {key}: {value if isinstance(value, int) else _text(str(value))}")
        elif key in ("user", "port"):
            lines.append(_line(f"  # {key}:", f"default: {usual}"))
    for key in ("connect_timeout", "keepalive"):
        if (seconds := getattr(connection, key)) != Connection.model_fields[key].default:
            lines.append(f"  {key}: {seconds:g}")
    return lines


def _knob(knob: Knob) -> list[str]:
    lines = [f"  - name: {knob.name}"]
    if knob.flag:
        lines.append(f"    flag: {knob.flag}")
    if knob.env:
        lines.append(f"    env: {knob.env}")
    if knob.kind.value != "int":
        lines.append(f"    kind: {knob.kind.value}")
    if knob.key:
        lines.append(f"    key: {_text(knob.key)}")
    lines += [
        f"    {name}: {value:g}"
        for name, value in (("min", knob.min), ("max", knob.max))
        if value is not None
    ]
    if knob.presets:
        lines.append(f"    presets: {json.dumps(list(knob.presets))}")
    if knob.meaning:
        lines.append(f"    meaning: {_text(knob.meaning)}")
    return lines


def _switch(value: bool) -> str:
    return "true" if value else "false"


def _text(value: str) -> str:
    """A string as YAML: plain where that is surely read back as the same string, else in double quotes."""
    import yaml

    try:
        plain = yaml.safe_load(f"a: {value}") == {"a": value} and "\n" not in value
    except yaml.YAMLError:
        plain = False
    return value if plain else json.dumps(value, ensure_ascii=True)
