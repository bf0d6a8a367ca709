"""The command line: what there is, and which file does it.

Everything heavy is imported by the command that needs it, so that `ddtui --help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ddtui import __version__
from ddtui.commands import COMMANDS

if TYPE_CHECKING:
    from ddtui.profile import Profile

EPILOG = """\
exit codes: 0 done, all as asked; 1 done, and something is not as it should be; 2 usage, profile or input
error; 3 host not reachable or not authenticated; 4 not permitted or read-only; 5 the server did not start and
was rolled back; 6 it did not start and could not be rolled back; 130 interrupted
"""


class _Commands(argparse.RawDescriptionHelpFormatter):
    """The list of commands, with room for the longest name beside its help."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 14


class _Command(argparse.ArgumentParser):
    """One command. What it does not know it says itself, with what was likely meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition("=")[0]
            known = [name for action in self._actions for name in action.option_strings]
            options = known if word.startswith("-") else []
            close = _closest(word, options)
            what = f"there is no option {word!r}" if options else f"{word!r} is one word too many"
            then = f"did you mean {close}?" if close else f"see `{self.prog} --help`"
            self.error(f"{what}; {then}")
        return found, unknown


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ddtui",
        description="Tune speculative decoding on a remote SGLang server, live, over SSH.",
        epilog=EPILOG,
        formatter_class=_Commands,
    )
    parser.add_argument("--version", action="version", version=f"ddtui {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=_Command
    )

    def command(name: str, text: str, *, profile: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=text,
            description=text[:1].upper() + text[1:] + ".",
            epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if profile:
            sub.add_argument(
                "profile", metavar="PROFILE", help="a profile's name, or the path of its YAML file"
            )
        return sub

    def json(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else there")

    def turns(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="KNOB[=VALUE]",
            dest="sets",
            help="turn a knob, or any flag: --set budget=16 --set --mem-fraction-static=0.85",
        )
        sub.add_argument(
            "--unset",
            action="append",
            default=[],
            metavar="KNOB",
            dest="unsets",
            help="take a knob's flag (or any flag) away",
        )
        sub.add_argument("--why", default="", help="a note that is kept with the change")

    sub = command("console", "the console (also plain `ddtui [PROFILE]`)", profile=False)
    sub.add_argument(
        "profile", metavar="PROFILE", nargs="?", help="a profile's name or path; without: pick one"
    )
    sub.add_argument("--read-only", action="store_true", help="look, never change")
    sub.add_argument(
        "--plain",
        action="store_true",
        help="one line of text per event: for screen readers, dumb terminals and files",
    )

    sub = command("demo", "the same on the embedded demo host: `ddtui demo [COMMAND …]`", profile=False)
    sub.add_argument("rest", metavar="COMMAND …", nargs=argparse.REMAINDER, help="without: the console")

    sub = command("check", "layers and verdicts")
    json(sub)

    sub = command("plan", "what would change: diff, commands, interruption, time; changes nothing")
    turns(sub)
    json(sub)

    sub = command("apply", "plan, confirm, apply, restart, wait, verify")
    turns(sub)
    sub.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    sub.add_argument("--no-rollback", action="store_true", help="leave a failed start as it is")
    json(sub)

    sub = command("rollback", "back to the last verified setting, or a named one")
    sub.add_argument("--to", metavar="CHANGE", help="a change's id, as `ddtui history` lists it")
    sub.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    json(sub)

    sub = command("bench", "bursts", profile=False)
    sub.add_argument("profile", metavar="PROFILE", nargs="?", help="a profile's name or path; or give --url")
    sub.add_argument("--url", help="measure this server directly, without a host: http://127.0.0.1:30000")
    sub.add_argument("--concurrency", metavar="N,…", help="requests at once: 1,8,32")
    sub.add_argument("--context", metavar="N,…", help="prompt tokens: 512,8k,32k")
    sub.add_argument("--output", type=int, metavar="N", help="output tokens per request")
    sub.add_argument("--workload", help="code, completion, chat, document, or the path of a JSONL file")
    sub.add_argument("--at", choices=["host", "here"], help="where the load runs")
    sub.add_argument(
        "--requests", type=int, metavar="N", help="requests per cell (default: enough to be sure)"
    )
    sub.add_argument("--max-seconds", type=float, metavar="S", help="time limit per cell")
    sub.add_argument(
        "--temperature", type=float, metavar="T", help="sampling temperature (default 0: greedy)"
    )
    sub.add_argument("--endpoint", choices=["generate", "completions", "chat"], help="which API to load")
    sub.add_argument("--seed", type=int, default=0, help="which prompts")
    sub.add_argument(
        "--check-output",
        nargs="?",
        const="after",
        choices=["after", "only"],
        help="check what is generated too: greedy answers to the coding tasks, compared with a reference "
        "step, and the tasks' tests in a sandbox; after the bursts, or only that",
    )
    sub.add_argument(
        "--reference",
        type=int,
        metavar="STEP",
        help="compare outputs with this step's (default: one without speculative decoding, or the oldest)",
    )
    sub.add_argument("--no-tests", action="store_true", help="do not run the coding tasks' tests")
    sub.add_argument("--note", default="", help="a note that is kept with the burst")
    sub.add_argument("--yes", action="store_true", help="on a production profile: do not ask")
    json(sub)

    def load(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--concurrency", metavar="N,…", help="requests at once: 1,8,32")
        sub.add_argument("--context", metavar="N,…", help="prompt tokens: 512,8k,32k")
        sub.add_argument("--workload", help="code, completion, chat, document, or the path of a JSONL file")
        sub.add_argument("--output", type=int, metavar="N", help="output tokens per request")
        sub.add_argument("--at", choices=["host", "here"], help="where the load runs")
        sub.add_argument("--requests", type=int, metavar="N", help="requests per cell")
        sub.add_argument("--max-seconds", type=float, metavar="S", help="time limit per cell")
        sub.add_argument("--seed", type=int, default=0, help="which prompts")
        sub.add_argument("--yes", action="store_true", help="do not ask")
        sub.add_argument(
            "--no-check",
            action="store_true",
            help="do not check the winner's output before it is left in force",
        )

    sub = command("ab", "quick A/B: measure, apply B, measure, decide, leave the winner or put A back")
    turns(sub)
    sub.add_argument("--confirm", action="store_true", help="A B B A: twice as long, and twice as sure")
    sub.add_argument(
        "--finish",
        choices=["best", "first", "stay"],
        default="best",
        help="what is left in force (best: B only if it is better)",
    )
    load(sub)
    json(sub)

    sub = command("sweep", "many settings, unattended: each applied, verified, measured, checked")
    sub.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="KNOB=V,V…",
        help="values of a knob or flag; off: without it. Repeat it: every combination",
    )
    sub.add_argument(
        "--plan", metavar="FILE", help="the plan as YAML (grid or settings, cells, order, finish)"
    )
    sub.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="go on with the last sweep that was not finished, or a named one",
    )
    sub.add_argument(
        "--order",
        choices=["grid", "halving", "model"],
        default="grid",
        help="all; short bursts for all and long ones for the best; or a model (Optuna)",
    )
    sub.add_argument("--trials", type=int, metavar="N", help="with --order model: how many")
    sub.add_argument(
        "--objective", choices=["throughput", "per-user"], default="throughput", help="what is to be high"
    )
    sub.add_argument(
        "--finish", choices=["best", "first", "stay"], default="best", help="what is left in force"
    )
    sub.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PROFILE",
        help="a host of the same kind that shares the work",
    )
    sub.add_argument("--forecast", action="store_true", help="say what it takes, and change nothing")
    sub.add_argument("--why", default="", help="a note that is kept with the sweep")
    load(sub)
    json(sub)

    sub = command(
        "calibrate", "restart and measure the setting in force again and again: the noise of restarts"
    )
    sub.add_argument("--runs", type=int, default=5, metavar="N", help="how many restarts (5)")
    load(sub)
    json(sub)

    sub = command("logs", "the journal, parsed")
    sub.add_argument("-f", "--follow", action="store_true", help="go on with what comes")
    sub.add_argument("--since", help="as journalctl takes it: '10 min ago', '2026-11-30 12:00'")
    sub.add_argument("-n", "--lines", type=int, default=200, metavar="N", help="how many earlier lines (200)")
    sub.add_argument("--grep", metavar="TEXT", help="only lines that hold this text; !TEXT: that do not")
    json(sub)

    sub = command(
        "history", "steps, changes and sweeps so far; notes, deletion, export, import", profile=False
    )
    sub.add_argument("profile", metavar="PROFILE", nargs="?", help="only this profile's host and unit")
    sub.add_argument(
        "--search", default="", metavar="WORDS", help="steps by knobs, flags, versions, notes: 'budget=16'"
    )
    sub.add_argument("--limit", type=int, default=200, metavar="N", help="how many of each (200)")
    sub.add_argument("--step", metavar="N", help="one step whole: its setting, bursts and notes")
    sub.add_argument(
        "--note", nargs=2, metavar=("N", "TEXT"), help="add a note to step N; 'baseline': it is compared with"
    )
    sub.add_argument("--delete", metavar="N", help="delete step N with its bursts and raw records")
    sub.add_argument("--export", metavar="FILE", help="write the history as JSON lines (-: stdout)")
    sub.add_argument(
        "--records", action="store_true", help="with --export: the raw records of every request too"
    )
    sub.add_argument(
        "--import", metavar="FILE", dest="take_in", help="take in an export; what is there stays as it is"
    )
    sub.add_argument("--yes", action="store_true", help="do not ask before deleting")
    json(sub)

    sub = command("compare", "two steps of the history: what differs, how surely", profile=False)
    sub.add_argument("a", metavar="A", help="a step: its number, or HOST/NUMBER")
    sub.add_argument(
        "b", metavar="B", nargs="?", help="the step that is judged; without: A against the baseline"
    )
    sub.add_argument("--profile", metavar="PROFILE", help="on this profile's host and unit")
    sub.add_argument(
        "--knowingly", action="store_true", help="compare what is not comparable, with the reasons as notes"
    )
    json(sub)

    sub = command(
        "report",
        "a report of steps: Markdown, HTML, CSV, JSON, Parquet, bench_serving's JSONL",
        profile=False,
    )
    sub.add_argument("profile", metavar="PROFILE", nargs="?", help="only this profile's host and unit")
    sub.add_argument(
        "--steps", metavar="N,…", help="these steps (default: all that were measured, the last 40)"
    )
    sub.add_argument("--sweep", metavar="ID", help="the steps of this sweep")
    sub.add_argument("--against", metavar="N", help="compare each step with this one (default: the baseline)")
    sub.add_argument(
        "--format",
        choices=["md", "html", "csv", "json", "parquet", "bench-serving"],
        help="default: by FILE's ending, else md",
    )
    sub.add_argument("-o", "--output", metavar="FILE", help="where it goes (default: stdout)")
    sub.add_argument("--title", default="", help="the report's title")
    sub.add_argument("--details", action="store_true", help="with bench-serving: the numbers of each request")

    sub = command("inspect", "one layer from local files, offline", profile=False)
    what = sub.add_subparsers(dest="what", metavar="WHAT", required=True)
    unit = what.add_parser("unit", help="a unit under a folder shaped like a host's root")
    unit.add_argument("name", metavar="NAME")
    unit.add_argument("--root", required=True, metavar="DIR")
    unit.add_argument("--set", action="append", default=[], metavar="FLAG[=VALUE]", dest="sets")
    unit.add_argument("--unset", action="append", default=[], metavar="FLAG", dest="unsets")
    json(unit)
    for name, text in (
        ("drafter", "a drafter's config.json"),
        ("log", "a server's log, or journalctl's output"),
        ("server-info", "what GET /server_info answered"),
    ):
        one = what.add_parser(name, help=text)
        one.add_argument("file", metavar="FILE")
        json(one)

    sub = command("doctor", "link, rights, tools, versions; what is missing and the lines that grant it")
    json(sub)

    sub = command("serve", "the console in a browser on this machine", profile=False)
    sub.add_argument(
        "profile", metavar="PROFILE", nargs="?", help="a profile's name or path; without: pick one"
    )
    sub.add_argument(
        "--port", type=_port, default=0, metavar="N", help="on the loopback address (default: a free one)"
    )
    sub.add_argument(
        "--allow-changes", action="store_true", help="changes and restarts too (default: look, never change)"
    )

    sub = command("config", "the settings: where they are, what is in force, what is wrong", profile=False)
    sub.add_argument("--write", action="store_true", help="make the commented file, every default in it")
    sub.add_argument("--edit", action="store_true", help="open the file in $VISUAL or $EDITOR, then check it")
    json(sub)

    sub = command("completion", "completions for your shell, to be sourced", profile=False)
    sub.add_argument("shell", choices=["bash", "zsh", "fish"])

    sub = command("help", "a topic in a few words; without one: the topics", profile=False)
    sub.add_argument("topic", nargs="?", metavar="TOPIC", help="keys, verdicts, exit-codes, profiles, …")

    sub = command("profiles", "list, make or validate profiles", profile=False)
    sub.add_argument("action", nargs="?", choices=["list", "new", "validate"], default="list")
    sub.add_argument(
        "names", nargs="*", metavar="NAME", help="for new: its name; for validate: names or paths"
    )
    new = sub.add_argument_group("new: look on a host, and write what is found there")
    new.add_argument("--host", help="a name, an address, a Host of ~/.ssh/config, or local; user@host:port")
    new.add_argument("--unit", help="the unit that runs SGLang, where there are several")
    new.add_argument("--identity-file", metavar="FILE", help="the SSH key to use")
    new.add_argument("--known-hosts", metavar="FILE", help="instead of ~/.ssh/known_hosts")
    new.add_argument("--ssh-config", metavar="FILE", help="instead of ~/.ssh/config")
    new.add_argument("--production", action="store_true", help="mark it as production")
    json(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: runs the command and exits with its code."""
    sys.exit(run(list(sys.argv[1:] if argv is None else argv)))


def run(argv: list[str], load: Callable[[str], Profile] | None = None) -> int:
    """Run one command. `load` finds profiles by name; the demo command passes its own.

    Every expected failure ends as one sentence on stderr and an exit code (see `--help`).
    """
    on_console = ("--read-only", "--plain")
    if not argv or (argv[0] not in COMMANDS and not argv[0].startswith("-")) or argv[0] in on_console:
        argv = ["console", *argv]
    if argv[0] == "demo" and argv[1:2] and argv[1] in on_console:  # argparse leaves no option to the rest
        argv = ["demo", "console", *argv[1:]]
    if argv[0] == "console" and len(argv) > 2 and argv[1] not in COMMANDS and not argv[1].startswith("-"):
        _refuse_mistyped(argv[1])
    parser = build_parser()
    args = parser.parse_args(_with_flags_as_values(argv))
    if args.command is None:
        args = parser.parse_args(["console"])
    try:
        if args.command == "demo":
            from ddtui.commands import demo

            return demo.run(args.rest, run)
        args.load = load or _load
        args.parser = parser
        module = importlib.import_module(f"ddtui.commands.{args.command}")
        code: int = module.run(args)
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        from ddtui.commands import failure

        return failure.report(error)


def _with_flags_as_values(argv: list[str]) -> list[str]:
    """`--set --mem-fraction-static=0.9` as `--set=--mem-fraction-static=0.9`: argparse takes no flag for a
    value.
    """
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] in ("--set", "--unset") and word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _refuse_mistyped(word: str) -> None:
    """`ddtui chekc demo` is no profile with an argument too many."""
    if close := _closest(word, COMMANDS):
        build_parser().error(f"there is no command {word!r}; did you mean `ddtui {close}`?")


def _closest(word: str, words: Iterable[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, words, 1)), None)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a whole number up to 65535; 0: a free one")
    return int(text)


def _load(name: str) -> Profile:
    from ddtui import profile

    return profile.load(name)
