"""What ddtui follows a script to, without running it, is what bash runs."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ddtui.host.unit.shell import Shell
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")

SCRIPTS = {
    "quotes": """sglang serve 'a b' "c d" e\\ f 'it'"'"'s' "x\\"y\\$z\\`\\\\" $'t\\tn\\n\\x41' "" ''""",
    "comments": "# no\nsglang serve a#b '#c' # d\n",
    "continuation": "sglang serve a \\\n  b\\\nc \\\n  'd\\\ne' \"f\\\ng\"\n",
    "assignments": 'A=1 B=\'2 3\' C=$A$B; D="$C"; sglang serve $A $B "$B" $C "$D" ${D}x x$D',
    "defaults": 'A=; sglang serve "${A:-d e}" "${A-f}" "${B:-g}" ${C:-h i} "${A:+j}" "${D+k}" ${E:-"l m"} "${F:-"n o"}"',
    "assigning defaults": 'sglang serve "${A:=x y}" "$A" ${B:=z} $B',
    "alternatives": 'A=1; sglang serve ${A:+--flag "$A"} ${B:+--no} ${A:+a b}',
    "trimming": "P=/a/b/c.tar.gz; sglang serve ${P##*/} ${P#*/} ${P%.*} ${P%%.*} ${P%/*} ${#P}",
    "replacing": "P=a-b-c; sglang serve ${P/-/_} ${P//-/_} ${P//-} ${P/#a/x} ${P/%c/y} ${P^^} ${P^} ${P:1} ${P:1:3} ${P: -2}",
    "arrays": 'A=(a "b c" d); A+=(e); sglang serve "${A[@]}" ${#A[@]} "${A[1]}" ${A[0]} "${A[*]}" "x${A[@]}y"',
    "array lines": 'A=(\n  --a 1   # one\n  # two\n  --b "2 3"\n)\nsglang serve "${A[@]}"',
    "empty arrays": 'A=(); sglang serve "${A[@]}" end',
    "positional": 'set -- a "b c" d; sglang serve "$@" $# "$1" "$2" $2 "$*"; ',
    "shift": 'set -- a b c; X=$1; shift; sglang serve "$X" "$@"',
    "if": 'A=x; if [ "$A" = y ]; then B=1; elif [ -n "$A" ]; then B=2; else B=3; fi; sglang serve $B',
    "tests": '[ 2 -gt 1 ] && A=1; [[ abc == a* ]] && B=1; [[ abc == "a*" ]] || C=1; [ -z "$Z" -a 1 = 1 ] && D=1; '
    'test ! "" && E=1; [[ 5 -ge 5 && ( a < b || x == y ) ]] && F=1; [[ v1.2 =~ ^v[0-9]+ ]] && G=1; sglang serve $A$B$C$D$E$F$G',
    "case": 'for X in kimi qwen other; do case "$X" in k*|z) A=1;; qwen) A=$A"2";; *) A=${A}3;; esac; done; sglang serve $A',
    "case falls": "case a in a) X=1;& b) X=${X}2;; c) X=3;; esac; sglang serve $X",
    "loops": 'for i in 1 2 3; do L="$L $i"; done; N=0; while [ $N -lt 3 ]; do N=$((N+1)); [ $N = 2 ] && continue; M=$M$N; done; '
    "until [ $N -le 1 ]; do N=$((N-1)); done; sglang serve $L $M $N",
    "break": "for i in a b c; do [ $i = b ] && break; X=$i; done; sglang serve $X $i",
    "options loop": 'set -- --budget 12 --x=3 -v; while [[ $# -gt 0 ]]; do case "$1" in --budget) B="$2"; shift 2;; '
    '--x=*) X="${1#*=}"; shift;; *) R+=("$1"); shift;; esac; done; sglang serve $B $X "${R[@]}"',
    "getopts": "set -- -a -b 'x y' -c rest; while getopts ab:c O; do case $O in b) B=$OPTARG;; *) L=$L$O;; esac; done; "
    'shift $((OPTIND-1)); sglang serve "$B" $L "$@"',
    "functions": 'add() { local v="$1"; ALL="$ALL[$v]"; return 0; }; function more { add "$1"; add "$2"; }; more a "b c"; sglang serve "$ALL"',
    "function launches": 'run() { sglang serve "$@" end; }; run a "b c"',
    "arithmetic": "A=5; ((A > 3)) && B=yes; sglang serve $((A*2+1)) $((A/2)) $((A%3)) $((-A)) $B $((2 + (3 * 4)))",
    "braces": "sglang serve {a,b}c x{1..3} {3..1} '{a,b}' {a} {a,'b c'} \"{x,y}\"",
    "substitution": 'sglang serve $(echo a b) "$(echo c  d)" `echo e` "$(basename /x/y.z .z)" $(dirname /x/y/z) "$(printf %s hi)"',
    "nested": 'A=1; sglang serve "$(echo "$(echo "$A")")" "${B:-${A:-2}}" "${B:-"$A x"}"',
    "and or": "true && A=1 || A=2; false && B=1 || B=2; false || C=3; ! false && D=4; sglang serve $A $B $C $D",
    "groups": "{ A=1; B=2; }; (A=3; C=4); sglang serve $A $B ${C:-none}",
    "subshell launches": "( cd / && exec sglang serve a )",
    "pipes": "sglang serve a 2>&1 | cat",
    "exec": 'set -euo pipefail; exec sglang serve a ${EXTRA:-} "$@"',
    "environment": "export A=1; B=2 sglang serve $A ${B:-unset}",
    "eval": "A='x y'; eval \"set -- $A 'z w'\"; sglang serve \"$@\"; ",
    "here-strings": 'E="a b  c"; read -r -a W <<< "$E"; read -r P Q <<< "1 2"; sglang serve "${W[@]}" $P $Q',
    "here-documents": "cat >/dev/null <<EOF\nsglang serve no\nEOF\ncat >/dev/null <<-'X'\n\tsglang $no\n\tX\nsglang serve yes",
    "source": '. "$DIR/settings" one; source $DIR/settings two; sglang serve $A $B',
    "all export": "set -a; X=1; set +a; sglang serve $X",
    "unset": 'A=1; unset A; sglang serve ${A-gone} "$A" end',
    "splitting": "A='  a  b '; sglang serve $A x$A \"$A\" y${A}z",
    "appending": 'A=a; A+=b; A+=" c"; sglang serve $A "$A"',
    "indirect": "A=B; B=5; sglang serve ${!A}",
    "declare": 'declare -a L=(x y); local_=1; readonly R=2; typeset T=3; export E="4 5"; sglang serve ${L[@]} $R $T "$E"',
    "conditional flag": 'V=true; ARGS=(); [[ "$V" == "true" ]] && ARGS+=(--metrics); sglang serve "${ARGS[@]}"',
    "tilde": "HOME=/h; sglang serve ~/x ~ a~ '~/y' --p=~/z",
    "background": "sglang serve a & wait",
    "else exits": 'if [ -z "$NOPE" ]; then :; else exit 1; fi; sglang serve ok',
    "dollar at the end": "sglang serve a$ '$' \"$\" $",
    "semicolons": ":; sglang serve 'a;b' c\\;d",
    "json": 'sglang serve --json \'{"a": {"b": [1, "x y"]}}\' "{\\"c\\": 1}"',
}
SETTINGS = 'A="from settings"\nB=$1\n'


def bash(script: str, folder: Path) -> list[str]:
    """What bash hands to `sglang`, of the first time it is run."""
    stub = folder / "sglang"
    stub.write_text('#!/bin/sh\n[ -e "$OUT" ] || printf "%s\\0" "$@" >"$OUT"\n')
    stub.chmod(0o755)
    (folder / "settings").write_text(SETTINGS)
    (folder / "script").write_text(script)
    out = folder / "out"
    out.unlink(missing_ok=True)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "OUT": str(out), "DIR": str(folder)}
    subprocess.run(["bash", str(folder / "script")], env=env, cwd=folder, capture_output=True, timeout=20)
    return (
        out.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1] if out.exists() else ["not run"]
    )


def followed(script: str, folder: Path) -> list[str]:
    """What ddtui says of the same script."""

    def reach(words: list[Word], _: Shell) -> list[str] | None:
        return [w.value for w in words[1:]] if words[0].value == "sglang" else None

    tree = Tree({f"{folder}/settings": SETTINGS.encode()})
    shell = Shell(
        tree, reach, lambda _: "script", lambda path: path, cwd=str(folder), name=f"{folder}/script"
    )
    shell.variables = {"DIR": Text(str(folder)), "PATH": Text("/bin")}
    shell.exported = {"DIR", "PATH"}
    found = shell.run(Text.of_file("/script", script))
    return found if isinstance(found, list) else ["not run"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_followed_as_bash_runs_it(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    assert followed(script, tmp_path) == bash(script, tmp_path)


WORDS = [
    "a",
    "'b c'",
    '"d e"',
    "$A",
    '"$A"',
    "${A}x",
    "$E",
    '"$E"',
    "${U:-u v}",
    '"${U:-u v}"',
    "${A:+y}",
    "\\ ",
    "\\$A",
]
WORDS += [
    '"${L[@]}"',
    "${L[@]}",
    '"${L[*]}"',
    "--f=$A",
    '--f="$A"',
    "'$A'",
    "$(echo $A)",
    '"$(echo "$A")"',
    "${A%w*}",
]
WORDS += [
    "'p'{1,2}",
    "$((1+2))",
    "`echo q`",
    "$E$A",
    '""',
    "''",
    "$'\\t'",
    "${#A}",
    '"$A"$A',
    "${A//[xy]/_}",
    "é",
]


@pytest.mark.parametrize("seed", range(5))
def test_any_words_become_the_arguments_that_bash_makes(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = []
    for _ in range(60):
        words = ["".join(chance.choice(WORDS) for _ in range(chance.choice([1, 1, 1, 2]))) for _ in range(4)]
        lines.append(" ".join(words))
    head = "A='v w'; E=; L=(1 '2 3' ''); "
    shown = []
    for line in lines:
        shown.append(followed(head + "sglang serve " + line, tmp_path))
    stub = "sglang() { shift; printf '%s\\0' serve \"$@\"; printf '\\n\\0'; }; "
    script = head + stub + "\n".join(f"sglang serve {line}" for line in lines)
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=30)
    ran = [one.split("\0")[:-1] for one in done.stdout.decode().split("\n\0")[:-1]]
    assert len(ran) == len(lines), done.stderr
    for line, mine, theirs in zip(lines, shown, ran, strict=True):
        assert mine == theirs, line
