"""Programs that start another program: where in their command line the other's begins.

Options are taken from each program's own manual: which take a value in the next word, which words must
follow the program's name, how many words of its own come before the command.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field


def _set(options: str) -> frozenset[str]:
    return frozenset(options.split())


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one such program reads its command line."""

    name: str  # as it is shown
    subcommand: tuple[str, ...] = ()
    valued: frozenset[str] = field(default_factory=frozenset)  # options whose value is the next word
    switches: frozenset[str] | None = None  # if given: every other option takes a value
    own_words: int = 0  # words of its own before the command
    assigns: bool = False  # NAME=VALUE before the command is an assignment


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """What a wrapper's command line says."""

    wrapper: Wrapper
    command: int  # index of the command's first word
    options: tuple[tuple[str, int | None], ...]  # each option, and the index of its value's word
    assigns: tuple[int, ...]  # indices of NAME=VALUE words

    def value(self, words: Sequence[str], *names: str) -> str | None:
        """The last value of an option."""
        found = None
        for option, at in self.options:
            name, equals, attached = option.partition("=")
            if name in names:
                found = attached if equals else words[at] if at is not None else found
        return found


_UV = _set(
    "-p --python --project --directory --extra --no-extra --group --no-group --only-group --env-file --with "
    "-w --with-editable --with-requirements --package --index --default-index -i --index-url "
    "--extra-index-url -f --find-links --index-strategy --keyring-provider -P --upgrade-package "
    "--refresh-package --from --reinstall-package --resolution --prerelease --exclude-newer --link-mode -C "
    "--config-setting --no-build-package --cache-dir --no-binary-package --color --config-file "
    "--python-preference --allow-insecure-host"
)
_CONDA = _set("-n --name -p --prefix --cwd -r --root-prefix -e --env -a --attach")

_WRAPPERS: dict[str, tuple[Wrapper, ...]] = {
    "env": (Wrapper("env", valued=_set("-u --unset -C --chdir"), assigns=True),),
    "numactl": (
        Wrapper(
            "numactl",
            valued=_set(
                "-i --interleave -w --weighted-interleave -p --preferred -P --preferred-many -C "
                "--physcpubind -N --cpunodebind -m --membind"
            ),
        ),
    ),
    "taskset": (Wrapper("taskset", own_words=1),),
    "nice": (Wrapper("nice", valued=_set("-n --adjustment")),),
    "ionice": (Wrapper("ionice", valued=_set("-c --class -n --classdata")),),
    "chrt": (Wrapper("chrt", valued=_set("-T -P -D"), own_words=1),),
    "stdbuf": (Wrapper("stdbuf", valued=_set("-i -o -e --input --output --error")),),
    "timeout": (Wrapper("timeout", valued=_set("-s --signal -k --kill-after"), own_words=1),),
    "time": (Wrapper("time", valued=_set("-o --output -f --format")),),
    "nohup": (Wrapper("nohup"),),
    "setsid": (Wrapper("setsid"),),
    "exec": (Wrapper("exec", valued=_set("-a")),),
    "unbuffer": (Wrapper("unbuffer"),),
    "catchsegv": (Wrapper("catchsegv"),),
    "dumb-init": (Wrapper("dumb-init", valued=_set("-r --rewrite")),),
    "tini": (Wrapper("tini", valued=_set("-e -p")),),
    "prlimit": (Wrapper("prlimit"),),
    "choom": (Wrapper("choom", valued=_set("-n --adjust -p --pid")),),
    "cgexec": (Wrapper("cgexec", valued=_set("-g")),),
    "flock": (Wrapper("flock", valued=_set("-w --wait --timeout -E --conflict-exit-code"), own_words=1),),
    "setpriv": (
        Wrapper("setpriv", valued=_set("--reuid --regid --groups --inh-caps --bounding-set --pdeathsig")),
    ),
    "gosu": (Wrapper("gosu", own_words=1),),
    "su-exec": (Wrapper("su-exec", own_words=1),),
    "sudo": (
        Wrapper("sudo", valued=_set("-u --user -g --group -C -h -p -r -t -T -U -D --chdir -R"), assigns=True),
    ),
    "runuser": (Wrapper("runuser", valued=_set("-u --user -g --group -G -s --shell -w")),),
    "systemd-cat": (Wrapper("systemd-cat", valued=_set("-t --identifier -p --priority --stderr-priority")),),
    "systemd-inhibit": (Wrapper("systemd-inhibit", valued=_set("--what --who --why --mode")),),
    "systemd-run": (
        Wrapper(
            "systemd-run",
            valued=_set(
                "-p --property -u --unit --slice -E --setenv --description --uid --gid --working-directory -M"
            ),
        ),
    ),
    "nsys": (
        Wrapper(
            "nsys profile",
            ("profile",),
            switches=_set("-h --help --no-wait"),
        ),
        Wrapper("nsys launch", ("launch",), switches=_set("-h --help")),
    ),
    "ncu": (
        Wrapper("ncu", valued=_set("-o --export -k --kernel-name -c --launch-count -s --launch-skip --set")),
    ),
    "perf": (Wrapper("perf record", ("record",), valued=_set("-o --output -F --freq -e --event -p -C")),),
    "py-spy": (
        Wrapper("py-spy record", ("record",), valued=_set("-o --output -r --rate -f --format -d --duration")),
    ),
    "strace": (Wrapper("strace", valued=_set("-o --output -e --trace -s -P -u -E")),),
    "srun": (Wrapper("srun", valued=_set("-n -N -c -p -w -t -J -o -e -A -G -D -q")),),
    "mpirun": (Wrapper("mpirun", valued=_set("-n -np -H --host --hostfile -x --map-by --bind-to")),),
    "uv": (Wrapper("uv run", ("run",), valued=_UV), Wrapper("uv tool run", ("tool", "run"), valued=_UV)),
    "uvx": (Wrapper("uvx", valued=_UV),),
    "conda": (Wrapper("conda run", ("run",), valued=_CONDA),),
    "mamba": (Wrapper("mamba run", ("run",), valued=_CONDA),),
    "micromamba": (Wrapper("micromamba run", ("run",), valued=_CONDA),),
    "poetry": (Wrapper("poetry run", ("run",), valued=_set("-C --directory -P --project")),),
    "pipenv": (Wrapper("pipenv run", ("run",)),),
    "pdm": (Wrapper("pdm run", ("run",), valued=_set("-p --project --env-file")),),
    "hatch": (Wrapper("hatch run", ("run",), valued=_set("-e --env")),),
    "rye": (Wrapper("rye run", ("run",)),),
    "pixi": (Wrapper("pixi run", ("run",), valued=_set("-e --environment --manifest-path")),),
    "apptainer": tuple(
        Wrapper(
            f"apptainer {verb}",
            (verb,),
            valued=_set("-B --bind --env --env-file -H --home --pwd -W --workdir --overlay -S --scratch"),
            own_words=1,
        )
        for verb in ("exec", "run")
    ),
}
_WRAPPERS["singularity"] = _WRAPPERS["apptainer"]
_WRAPPERS["tini-static"] = _WRAPPERS["tini"]
_WRAPPERS["docker-init"] = _WRAPPERS["tini"]
_WRAPPERS["mpiexec"] = _WRAPPERS["mpirun"]


def unwrap(words: Sequence[str]) -> Unwrapped | None:
    """Where the command begins in a wrapper's command line; None: none known, or it starts nothing."""
    for wrapper in _WRAPPERS.get(posixpath.basename(words[0]), ()):
        found = _unwrap(wrapper, words)
        if found is not None:
            return found
    return None


def _unwrap(wrapper: Wrapper, words: Sequence[str]) -> Unwrapped | None:
    options: list[tuple[str, int | None]] = []
    assigns: list[int] = []
    verbs, own_words, at = list(wrapper.subcommand), wrapper.own_words, 1
    while at < len(words):
        word = words[at]
        if word == "--" and not verbs:
            at += 1
            while own_words and at < len(words):
                own_words, at = own_words - 1, at + 1
            break
        if word.startswith("-") and word != "-":
            takes = word in wrapper.valued if wrapper.switches is None else word not in wrapper.switches
            has_value = takes and "=" not in word
            options.append((word, at + 1 if has_value and at + 1 < len(words) else None))
            at += 2 if has_value else 1
        elif word == "-" and wrapper.assigns:
            at += 1
        elif verbs:
            if word != verbs[0]:
                return None
            verbs.pop(0)
            at += 1
        elif wrapper.assigns and "=" in word and not word.startswith("/"):
            assigns.append(at)
            at += 1
        elif own_words:
            own_words, at = own_words - 1, at + 1
        else:
            break
    if at >= len(words) or verbs:
        return None
    return Unwrapped(wrapper, at, tuple(options), tuple(assigns))
