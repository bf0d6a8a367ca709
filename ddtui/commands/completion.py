"""`ddtui completion bash|zsh|fish`: completions made from the command line's own parser.

Profiles are completed from the user's folder and the shipped ones by the shell itself, so that a tab
never waits for Python.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddtui import locations


@dataclass(frozen=True, slots=True)
class Flag:
    names: tuple[str, ...]
    about: str
    takes: bool  # a value comes after it
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    about: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]  # what its first argument can be
    profile: bool  # its argument is a profile


def run(args: argparse.Namespace) -> int:
    made = commands(args.parser)
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](made), end="")
    return 0


def commands(parser: argparse.ArgumentParser) -> list[Command]:
    """Every command with its flags."""
    found: list[Command] = []
    (sub,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    about = {choice.dest: choice.help or "" for choice in sub._choices_actions}
    for name, one in sub.choices.items():
        flags: list[Flag] = []
        words: tuple[str, ...] = ()
        profile = name == "demo"
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                words = tuple(action.choices)
                flags += [flag for below in action.choices.values() for flag in _flags(below)]
            elif not action.option_strings:
                words = words or tuple(str(choice) for choice in action.choices or ())
                profile = profile or action.dest == "profile"
        if name == "help":
            from ddtui.commands.help import TOPICS

            words = tuple(TOPICS)
        if name == "demo":
            words, profile = tuple(other for other in sub.choices if other != "demo"), False
        flags = list({flag.names: flag for flag in (*_flags(one), *flags)}.values())
        found.append(Command(name, about.get(name, ""), tuple(flags), words, profile))
    return found


def _flags(parser: argparse.ArgumentParser) -> Iterator[Flag]:
    for action in parser._actions:
        if action.option_strings:
            choices = tuple(str(choice) for choice in action.choices or ())
            takes = action.nargs != 0
            yield Flag(tuple(action.option_strings), (action.help or "").replace("%%", "%"), takes, choices)


def _profiles() -> str:
    """The folders of profiles as words of a shell."""
    from ddtui.profile import folders

    mine = f'"${{XDG_CONFIG_HOME:-$HOME/.config}}/{locations.config_dir().name}/profiles"'
    return f"{mine} {shlex.quote(str(folders()[1]))}"


def _all(flags: Sequence[Flag]) -> list[str]:
    return [name for flag in flags for name in flag.names]


def bash(made: Sequence[Command]) -> str:
    """For `source <(ddtui completion bash)`."""
    cases, values = [], []
    for one in made:
        first = "$(_ddtui_profiles)" if one.profile else " ".join(one.words)
        cases.append(f'        {one.name}) flags="{" ".join(_all(one.flags))}"; first="{first}" ;;')
        for flag in one.flags:
            if flag.takes:
                patterns = "|".join(f"{one.name}:{name}" for name in flag.names)
                values.append(f'        {patterns}) choices="{" ".join(flag.choices)}"; known=1 ;;')
    names = " ".join(one.name for one in made)
    newline = "\n"
    return f"""\
# bash completion of ddtui:  source <(ddtui completion bash)
_ddtui_profiles() {{
    local folder file
    for folder in {_profiles()}; do
        for file in "$folder"/*.yaml; do
            [[ -e $file ]] && file=${{file##*/}} && printf '%s\\n' "${{file%.yaml}}"
        done
    done
}}
_ddtui() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} at=1
    local flags="" first="" choices="" known=""
    COMPREPLY=()
    [[ ${{COMP_WORDS[1]}} == demo && $COMP_CWORD -gt 2 ]] && at=2
    local command=${{COMP_WORDS[at]}}
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "{names} $(_ddtui_profiles) --help --version --read-only --plain" -- "$word"))
        return
    fi
    case $command in
{newline.join(cases)}
        *) flags="--read-only --plain" ;;
    esac
    case $command:$before in
{newline.join(values)}
    esac
    if [[ -n $known ]]; then
        if [[ -n $choices ]]; then COMPREPLY=($(compgen -W "$choices" -- "$word"))
        else COMPREPLY=($(compgen -f -- "$word")); fi
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$first" -- "$word") $(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _ddtui ddtui
"""


def zsh(made: Sequence[Command]) -> str:
    """For a file `_ddtui` in a folder of $fpath, or `source <(ddtui completion zsh)`."""
    described = "\n".join(f"        {shlex.quote(f'{one.name}:{_short(one.about)}')}" for one in made)
    cases = []
    for one in made:
        specs = [spec for flag in one.flags for spec in _zsh_flag(flag)]
        if one.name == "demo":
            specs.append("'1:command:_ddtui_commands'")
        elif one.profile:
            specs.append("'1:profile:_ddtui_profiles'")
        elif one.words:
            specs.append(f"'1:what:({' '.join(one.words)})'")
        specs.append("'*:file:_files'")
        cases.append(f"        {one.name}) _arguments -s {' '.join(specs)} ;;")
    newline = "\n"
    return f"""\
#compdef ddtui
# zsh completion of ddtui:  source <(ddtui completion zsh)
_ddtui_commands() {{
    local -a list
    list=(
{described}
    )
    _describe command list
}}
_ddtui_profiles() {{
    local folder file
    local -a list
    for folder in {_profiles()}; do
        for file in "$folder"/*.yaml(N); do list+=("${{${{file##*/}}%.yaml}}"); done
    done
    _describe profile list
    _files -g '*.y(a|)ml'
}}
_ddtui() {{
    if (( CURRENT == 2 )); then
        _ddtui_commands
        _ddtui_profiles
        return
    fi
    shift words
    (( CURRENT-- ))
    case $words[1] in
{newline.join(cases)}
        *) _arguments '--read-only[look, never change]' '--plain[one line of text per event]' ;;
    esac
}}
if [[ $funcstack[1] == _ddtui ]]; then _ddtui "$@"; else compdef _ddtui ddtui; fi
"""


def _zsh_flag(flag: Flag) -> Iterator[str]:
    about = _short(flag.about).replace("[", "(").replace("]", ")").replace(":", " ")
    value = ""
    if flag.takes:
        value = f":value:({' '.join(flag.choices)})" if flag.choices else ":value:_files"
    for name in flag.names:
        yield shlex.quote(f"*{name}[{about}]{value}")


def fish(made: Sequence[Command]) -> str:
    """For `ddtui completion fish | source`."""
    lines = [
        "# fish completion of ddtui:  ddtui completion fish | source",
        "function __ddtui_profiles",
        '    set -l config "$HOME/.config"',
        '    set -q XDG_CONFIG_HOME; and set config "$XDG_CONFIG_HOME"',
        f'    for file in "$config"/{locations.config_dir().name}/profiles/*.yaml {_shipped()}/*.yaml',
        "        string replace -r '.*/(.*)\\.yaml$' '$1' -- $file",
        "    end",
        "end",
        "complete -c ddtui -f",
        "complete -c ddtui -n __fish_use_subcommand -a '(__ddtui_profiles)' -d profile",
    ]
    for one in made:
        here = f"-n '__fish_seen_subcommand_from {one.name}'"
        lines.append(
            f"complete -c ddtui -n __fish_use_subcommand -a {one.name} -d {_fish(_short(one.about))}"
        )
        if one.profile:
            lines.append(f"complete -c ddtui {here} -a '(__ddtui_profiles)'")
        elif one.words:
            lines.append(f"complete -c ddtui {here} -a {_fish(' '.join(one.words))}")
        for flag in one.flags:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names
            )
            value = ""
            if flag.takes:
                value = f" -x -a {_fish(' '.join(flag.choices))}" if flag.choices else " -r -F"
            lines.append(f"complete -c ddtui {here} {names}{value} -d {_fish(_short(flag.about))}")
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    """A word for fish: in single quotes only \\ and ' are special."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _shipped() -> str:
    from ddtui.profile import folders

    return _fish(str(folders()[1]))


def _short(text: str) -> str:
    """The first part of a help text."""
    first = text.split("; ")[0].split(": ")[0]
    return " ".join(first.split())[:70]
