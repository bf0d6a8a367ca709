"""`ddtui help [TOPIC]`: short texts on what there is to know."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from contextlib import suppress

from ddtui.commands.failure import InputError


def run(args: argparse.Namespace) -> int:
    if args.topic is None:
        print("Topics of `ddtui help TOPIC`:\n")
        width = max(map(len, TOPICS))
        for name, (about, _) in TOPICS.items():
            print(f"  {name:<{width}}  {about}")
        print("\n`ddtui --help` lists the commands; `ddtui help COMMAND` says what each takes.")
        return 0
    topic = TOPICS.get(args.topic)
    if topic is None:
        from ddtui.commands import COMMANDS

        if args.topic in COMMANDS:
            with suppress(SystemExit):  # printed
                args.parser.parse_args([args.topic, "--help"])
            return 0
        close = difflib.get_close_matches(args.topic, TOPICS, 1)
        meant = f"; did you mean `ddtui help {close[0]}`?" if close else f"; there are {', '.join(TOPICS)}"
        raise InputError(f"there is no topic {args.topic!r}{meant}")
    _, text = topic
    if args.topic == "exit-codes":
        text = exit_codes(args.parser)
    print((text() if callable(text) else text).rstrip())
    return 0


def keys() -> str:
    """Every action with its keys, as they are set now."""
    from ddtui import settings
    from ddtui.actions.action import Where
    from ddtui.actions.table import own

    mine = settings.load().keys
    lines = [
        "Keys of the console, by place. The first word is the action's name for [keys] in config.toml;",
        "? in the console shows the keys of where you are, ^p finds every action by name.",
    ]
    for place in Where:
        actions = own(place)
        if actions:
            lines += ["", f"{place.value}"]
        for action in actions:
            written = ", ".join(_written(key) for key in mine.get(action.id, action.keys).split(","))
            lines.append(f"  {action.id:<16} {written:<16} {action.about}")
    return "\n".join(lines)


def screens() -> str:
    """Every screen with its key."""
    from ddtui.actions.table import ACTIONS

    lines = ["Screens of the console; escape leads back, ? shows the keys of where you are.", ""]
    for action in ACTIONS:
        if action.area == "go to":
            written = ", ".join(map(_written, action.key_names))
            lines.append(f"  {written:<5} {action.label:<12} {action.about}")
    return "\n".join([*lines, "", *SCREENS.splitlines()])


def _written(key: str) -> str:
    named = {"slash": "/", "question_mark": "?", "colon": ":", "plus": "+", "minus": "-", "equals_sign": "="}
    named |= {"left_square_bracket": "[", "right_square_bracket": "]"}
    return named.get(key.strip(), key.strip().replace("ctrl+", "^"))


def exit_codes(parser: argparse.ArgumentParser) -> str:
    """As `--help` ends with them."""
    codes = " ".join((parser.epilog or "").split()).removeprefix("exit codes: ")
    return "\n".join(["Exit codes of every command:", "", *(f"  {code}" for code in codes.split("; "))])


def config() -> str:
    from ddtui import settings

    return f"Settings are read from {settings.path()}; this is the whole file:\n\n{settings.DEFAULT_TEXT}"


SCREENS = """\
With no profile the first screen lists them, and n makes one. Where a screen has several panes, tab
or [ and ] go from one to the next, z gives one the whole screen. Under 100 columns panes side by
side become tabs; under 60x15 nothing is drawn. :, or ^p, finds every action by its name.
"""

TERMINALS = """\
Colours: as many as the terminal has. COLORTERM=truecolor says all of them (SSH does not carry it:
without it 256 are used, by TERM); with 16 the theme is ddtui-16; with NO_COLOR, or on a terminal
without colours, none is sent, and bold, dim and reverse stand for them. No state is told by colour
alone. T chooses a theme and writes it into config.toml.

Characters: DDTUI_ASCII=1 (or `ascii = true` in the settings) draws with ASCII only. It is so by
itself on the Linux console (TERM=linux), whose fonts have none of the others.

Copying (y) goes by OSC 52, also through SSH. tmux: its buffer is filled too. GNU screen passes it
on. Terminal of macOS: it knows no OSC 52; on the Mac itself `pbcopy` is used, through SSH nothing
is copied: hold fn and select with the mouse, or save the lines with S.

tmux: set -g default-terminal "tmux-256color"; set -as terminal-features ",*:RGB" for all colours.
Windows Terminal: nothing to set, in WSL and through SSH alike. Of old consoles (conhost): --plain.
Serial lines, screen readers, TERM=dumb: --plain.
"""

VERDICTS = """\
A setting can stand in many places: the drafter's config on disk, the engine's code, the unit
with its drop-ins, the running process, the server's own answer, the journal, and what was
measured. Each is a layer, and each is read on its own. A verdict says what they say together:

  in force         every layer that decides about it agrees
  not in force     it stands somewhere, and something else ignores or overrides it
  conflicting      layers that decide about it contradict each other
  restart pending  the unit says it, and the running process was started before that
  unknown          a layer that decides about it could not be read; it says which, and what would settle it

`ddtui check PROFILE` prints them with the evidence line by line and exits 1 if one is not in
force. In the console they stand under Checks: space shows the evidence, enter takes the next
step, o opens what a check rests on.
"""

PROFILES = """\
A profile says how to reach a host, which service runs SGLang there, what the knobs map to, and
which bursts.

  ddtui profiles                            lists them, yours first
  ddtui profiles new my-host --host HOST    finds what runs SGLang there, writes one
  ddtui profiles validate                   says what is wrong, with file, line and key
  ddtui                                     picks one, or makes one

`production: true` shows PROD on every screen, and a restart there asks for the host's name.
`read_only: true` never changes anything. `host: local` is this machine, without SSH.
profiles/kimi-k26-ddtree.yaml has every key with what it does.
"""

KNOBS = """\
A knob is a name with a flag of the server (or an environment variable) behind it, a range, and
presets.

  budget   nodes of the draft tree that are verified per step (--speculative-ddtree-budget)
  topk     children considered per position (--speculative-ddtree-topk-cap)
  window   recent tokens that the drafter's attention sees (the draft window flag)

A profile may name any other. In the console the knob's key opens it; + and - go to the next
preset, a number is typed; U forgets what was turned and not applied. Nothing is changed before
the plan was shown and confirmed: `ddtui plan PROFILE --set budget=16` prints that plan, `ddtui
apply` goes through with it, `ddtui rollback` undoes it.
"""

BURSTS = """\
A burst is a short measured load on one setting: for each cell (concurrency x context x
workload) warm-up, then requests until the numbers are sure enough or the time is up. Rates come
with their interval and sample count.

  ddtui bench PROFILE --concurrency 1,8 --context 512,8k
  ddtui bench --url http://127.0.0.1:30000        a server without a host
  x in the console; X stops it, and what was measured is kept

The load runs on the host or here (`--at`), in processes of its own. Results are kept in the
history with the step they were measured on. `ddtui compare A B` compares two steps, `ddtui ab`
and `ddtui sweep` try settings by themselves.
"""

CHANGES = """\
A change goes: plan, confirm, record on the host, write, daemon-reload, restart, wait, verify.
What ddtui writes is one drop-in of its own beside the unit, zzz-ddtui.conf. If the server does
not start, the cause is looked for in its journal, and what was before is put back (exit code
5); where that fails too, exit code 6.

Every change is recorded on the host before it is made, so another ddtui, on another machine,
can finish or undo one that was cut. `ddtui rollback PROFILE` goes back to the last setting that
was verified.
"""

PLAIN = """\
`ddtui PROFILE --plain` (or `plain = true` in the settings) prints one line of text per event: time,
kind, what happened. Kinds are link, service, server, knob, check, change, burst, host, journal
(warnings and errors) and load. Nothing is drawn, moved or coloured, so it reads well through a
screen reader, in a dumb terminal and in a file. It changes nothing on the host; the commands do
(`ddtui apply`, `ddtui bench`, ...).
"""

FILES = """\
  ~/.config/ddtui/config.toml        settings (`ddtui help config`)
  ~/.config/ddtui/profiles/*.yaml    your profiles
  ~/.local/share/ddtui/              the history, and the raw records of bursts
  ~/.local/state/ddtui/              the kept demo host
XDG_CONFIG_HOME, XDG_DATA_HOME and XDG_STATE_HOME move them. On the host: one drop-in beside the
unit, zzz-ddtui.conf, and the record of changes below /var/lib/ddtui.
"""

TOPICS: dict[str, tuple[str, str | Callable[[], str]]] = {
    "keys": ("every action of the console with its keys", keys),
    "screens": ("every screen of the console with its key", screens),
    "terminals": ("colours, characters, copying; tmux, macOS, Windows, NO_COLOR", TERMINALS),
    "verdicts": ("layers, and what in force means", VERDICTS),
    "knobs": ("budget, topk, window, and turning them", KNOBS),
    "changes": ("plan, apply, verify, roll back", CHANGES),
    "bursts": ("measuring", BURSTS),
    "profiles": ("hosts and services", PROFILES),
    "config": ("settings", config),
    "plain": ("without a console: one line per event", PLAIN),
    "files": ("where things are", FILES),
    "exit-codes": ("what commands end with", ""),
}
