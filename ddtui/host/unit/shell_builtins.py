"""The shell's own commands that matter on the way to a launch."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ddtui.host.unit import shell_syntax, shell_test
from ddtui.host.unit.shell_flow import Break, Continue, Exit, Return
from ddtui.host.unit.shell_tree import Simple
from ddtui.host.unit.text import Text, Word

if TYPE_CHECKING:
    from ddtui.host.unit.shell import Shell

Status = bool | None
Builtin = Callable[["Shell", list[Word], Simple], Status]


def _declare(shell: Shell, words: list[Word], command: Simple) -> Status:
    name = command.words[0].literal
    options = [w.value for w in words if w.value.startswith("-")]
    exports = name == "export" or any("x" in o for o in options)
    names = [w.value.partition("=")[0] for w in words if not w.value.startswith("-")]
    for word in words:
        key, equals, value = word.value.partition("=")
        if equals and key.isidentifier():
            shell.set(key, word.text[len(word.text) - len(value) :])
    for assign in command.declares:
        shell.assign(assign)
        names.append(assign.name)
    if exports and not any("n" in o for o in options):
        shell.exported.update(names)
        shell.own.update(n for n in names if n in shell.variables)
    return True


def _unset(shell: Shell, words: list[Word], command: Simple) -> Status:
    for word in words:
        shell.variables.pop(word.value, None)
        shell.exported.discard(word.value)
        shell.functions.pop(word.value, None) if words[0].value == "-f" else None
    return True


def _set(shell: Shell, words: list[Word], command: Simple) -> Status:
    for number, word in enumerate(words):
        if word.value == "--":
            shell.positional = words[number + 1 :]
            return True
        if not word.value.startswith(("-", "+")):
            if number == 0 or words[number - 1].value[1:] not in ("o", "eo", "euo", "uo", "exo", "euxo"):
                shell.positional = words[number:]
                return True
            if word.value == "allexport":
                shell.all_export = words[number - 1].value[0] == "-"
        elif "a" in word.value[1:]:
            shell.all_export = word.value[0] == "-"
    return True


def _shift(shell: Shell, words: list[Word], command: Simple) -> Status:
    count = int(words[0].value) if words and words[0].value.isdigit() else 1
    if count > len(shell.positional):
        return False
    shell.positional = shell.positional[count:]
    return True


def _cd(shell: Shell, words: list[Word], command: Simple) -> Status:
    targets = [w for w in words if not w.value.startswith("-")]
    home = shell.variables.get("HOME")
    target = targets[0].text if targets else home if isinstance(home, Text) else Text("/")
    if target.known:
        shell.cwd = posixpath.normpath(posixpath.join(shell.cwd, target.value))
    return True


def _source(shell: Shell, words: list[Word], command: Simple) -> Status:
    if not words:
        return False
    path = words[0].value
    if path.endswith("/etc/profile.d/conda.sh"):  # it makes `conda activate` known
        shell.conda_root = path.removesuffix("/etc/profile.d/conda.sh")
        return True
    if path == "activate" or path.endswith("/bin/activate"):
        return _activate(shell, path, words[1:])
    status = shell.source(path, words[1:])
    if status is False and words[0].text.known:
        shell.warnings.append(
            f"{shell.where(words[0].raw.marks[0])}: {path}, which the script reads, is not there"
        )
    elif not words[0].text.known:
        shell.warnings.append(
            f"{shell.where(words[0].raw.marks[0])}: which file {path} is, is known only when the script runs"
        )
    return status


def _activate(shell: Shell, path: str, arguments: list[Word]) -> Status:
    """A virtual environment's (or conda's) own script: what it does is known."""
    if arguments or path == "activate":
        shell.conda = arguments[0].value if arguments else "base"
        shell.conda_root = shell.conda_root or posixpath.dirname(posixpath.dirname(path)) or None
        return True
    folder = posixpath.dirname(posixpath.dirname(posixpath.join(shell.cwd, path)))
    before = shell.variables.get("PATH")
    shell.set("VIRTUAL_ENV", Text(folder))
    shell.set("PATH", Text(f"{folder}/bin:") + (before if isinstance(before, Text) else Text()))
    shell.exported.update(("VIRTUAL_ENV", "PATH"))
    return True


def _conda(shell: Shell, words: list[Word], command: Simple) -> Status:
    if words and words[0].value == "activate":
        shell.conda = words[1].value if len(words) > 1 else "base"
        return True
    return shell.external([*shell.words(command.words[:1]), *words])


def _exec(shell: Shell, words: list[Word], command: Simple) -> Status:
    for redirect in command.redirects:
        shell.redirect(redirect)
    at = 0
    while at < len(words) and words[at].value in ("-a", "-c", "-l", "--"):
        at += 2 if words[at].value == "-a" else 1
    if at >= len(words):
        return True
    shell.external(words[at:])
    raise Exit


def _command(shell: Shell, words: list[Word], command: Simple) -> Status:
    if words and words[0].value in ("-v", "-V"):
        return None
    words = [w for i, w in enumerate(words) if not (i == 0 and w.value == "-p")]
    if not words:
        return True
    builtin = BUILTINS.get(words[0].value)
    return builtin(shell, words[1:], command) if builtin else shell.external(words)


def _eval(shell: Shell, words: list[Word], command: Simple) -> Status:
    pieces: list[Text] = []
    for i, word in enumerate(words):
        pieces += [Text(" "), word.text] if i else [word.text]
    script = Text.join(pieces)
    if not script.known or shell.depth > 20:
        return True  # such as a hook of conda: it sets up the shell
    shell.depth += 1
    try:
        return shell.lists(shell_syntax.parse(script))
    except shell_syntax.ShellSyntaxError as error:
        shell.warnings.append(f"{shell.where(error.mark)}: {error} in what eval is given")
        return None
    finally:
        shell.depth -= 1


def _exit(shell: Shell, words: list[Word], command: Simple) -> Status:
    raise Exit


def _return(shell: Shell, words: list[Word], command: Simple) -> Status:
    raise Return


def _break(shell: Shell, words: list[Word], command: Simple) -> Status:
    raise Break


def _continue(shell: Shell, words: list[Word], command: Simple) -> Status:
    raise Continue


def _read(shell: Shell, words: list[Word], command: Simple) -> Status:
    """`read -r -a NAME <<< WORDS` and `read -r A B <<< WORDS`; from elsewhere: not known."""
    given = [r.target for r in command.redirects if r.operator == "<<<" and r.target]
    names = [w.value for w in words if not w.value.startswith("-")]
    if not names:
        return True
    if not given:
        shell.set(names[-1], Text.unknown(f"${names[-1]}"))
        return None
    value = shell.text(given[0])
    pieces = value.split()
    if any(re.fullmatch(r"-[a-z]*a", w.value) for w in words):
        shell.set(names[-1], [Word(p, p, ("sh:fields",)) for p in pieces])
        return True
    for i, name in enumerate(names):
        shell.set(name, pieces[i] if i < len(pieces) else Text())
    return True


def _test(shell: Shell, words: list[Word], command: Simple) -> Status:
    closed = words[:-1] if words and words[-1].value == "]" else words
    return shell_test.single_bracket(shell, closed)


def _let(shell: Shell, words: list[Word], command: Simple) -> Status:
    return None


def _getopts(shell: Shell, words: list[Word], command: Simple) -> Status:
    """`getopts OPTIONS NAME`: one option of the script's arguments at a time."""
    if len(words) < 2:
        return False
    options, name = words[0].value, words[1].value
    position = shell.variables.get("OPTIND")
    at = int(position.value) - 1 if isinstance(position, Text) and position.value.isdigit() else 0
    given = words[2:] or shell.positional
    word = given[at].text if at < len(given) else Text()
    if not word.value.startswith("-") or word.value in ("-", "--"):
        shell.set(name, Text("?"))
        return False
    letter, rest = word.value[1], word[2:]
    shell.set(name, word[1] if letter in options.replace(":", "") else Text("?"))
    if f"{letter}:" in options:
        if not rest and at + 1 < len(given):
            rest, at = given[at + 1].text, at + 1
        shell.set("OPTARG", rest)
    elif rest:
        return None  # several letters in one word
    shell.set("OPTIND", Text(str(at + 2)))
    return True


def _true(shell: Shell, words: list[Word], command: Simple) -> Status:
    return True


def _false(shell: Shell, words: list[Word], command: Simple) -> Status:
    return False


BUILTINS: dict[str, Builtin] = {
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _conda),
    **dict.fromkeys(("[", "test"), _test),
    **dict.fromkeys(("true", ":", "echo", "printf", "trap", "ulimit", "umask", "wait"), _true),
    **dict.fromkeys(
        ("shopt", "alias", "hash", "type", "sleep", "mkdir", "chmod", "date", "rm", "cp", "ln"), _true
    ),
    **dict.fromkeys(("command", "builtin"), _command),
    **dict.fromkeys(("mapfile", "readarray", "let"), _let),
    "getopts": _getopts,
    **dict.fromkeys(("cd", "pushd"), _cd),
    "unset": _unset,
    "set": _set,
    "shift": _shift,
    "exec": _exec,
    "eval": _eval,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _continue,
    "read": _read,
    "false": _false,
}
