"""Settings: read, checked whole, explained with file, line, key and an example; and the commands around them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from project.test_cli import ddtui

from ddtui import settings
from ddtui.actions.table import BY_ID
from ddtui.ascii import TABLE, InAscii
from ddtui.commands import COMMANDS
from ddtui.settings import SettingsError, key_name, parse

FILE = Path("/x/config.toml")


def write(text: str) -> Path:
    path = settings.path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_all_defaults_are_in_force() -> None:
    assert settings.load({}) == settings.Settings()


def test_the_commented_file_is_valid_and_says_the_defaults() -> None:
    assert parse(settings.DEFAULT_TEXT, FILE) == settings.Settings()
    bare = [line.removeprefix("# ") for line in settings.DEFAULT_TEXT.splitlines()]
    lines = [line for line in bare if line.partition(" ")[2].startswith("= ") or line.startswith("[")]
    told = parse("\n".join(lines), FILE)
    assert told.model_copy(update={"keys": {}}) == settings.Settings()
    assert all(BY_ID[action].keys == keys for action, keys in told.keys.items())
    for name in (*settings.Settings.model_fields, *settings.Notify.model_fields):
        assert name in settings.DEFAULT_TEXT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("theme = 3\n", "/x/config.toml:1: theme: input should be a valid string, but it is 3; example: `theme"),
        ("\n\nrefresh = 0.2\n", "/x/config.toml:3: refresh: input should be greater than or equal to 1"),
        ("[notify]\nbell = 'loud'\n", "/x/config.toml:2: notify.bell: must be one of 'all', 'problems' or 'never'"),
        ("thme = 'x'\n", "/x/config.toml:1: thme: is not a setting here; did you mean `theme`?"),
        ("[notify]\ntost = 'all'\n", "/x/config.toml:2: notify.tost: is not a setting here; did you mean `toast`?"),
        ("a = 1\na = 2\n", "/x/config.toml:2: is not valid TOML"),
        ("[keys]\nburst = 'control-x'\n", "/x/config.toml:1: keys: 'control-x' is no key; write `x`"),
        ("[keys]\nburst = 'ctrl+m'\n", "ctrl+m cannot be told from enter in a terminal"),
    ],
)  # fmt: skip
def test_a_fault_names_file_line_key_and_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, FILE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("written", "named"),
    [("/", "slash"), ("x", "x"), ("X", "X"), ("^x", "ctrl+x"), ("?", "question_mark"), ("+", "plus"),
     ("-", "minus"), ("f5", "f5"), ("ctrl+x", "ctrl+x"), ("@", "at"), (",", "comma")],
)  # fmt: skip
def test_keys_can_be_written_as_they_look(written: str, named: str) -> None:
    assert key_name(written) == named


def test_a_variable_goes_before_the_file() -> None:
    write("theme = 'nord'\nplain = false\n")
    told = settings.load({"DDTUI_THEME": "gruvbox", "DDTUI_PLAIN": "1"})
    assert (told.theme, told.plain) == ("gruvbox", True)


def test_config_prints_path_and_what_is_in_force_as_json() -> None:
    path = write("[notify]\nosc9 = 'all'\n")
    told = json.loads(ddtui("config", "--json").stdout)
    assert told["schema"] == "ddtui/config/1" and told["path"] == str(path)
    assert told["settings"]["notify"]["osc9"] == "all" and told["settings"]["theme"] == "ddtui-dark"


def test_config_writes_the_commented_file_once() -> None:
    assert ddtui("config", "--write").returncode == 0
    assert settings.path().read_text() == settings.DEFAULT_TEXT
    again = ddtui("config", "--write")
    assert again.returncode == 2 and "exists already" in again.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("theme = 'nrd'\n", ":1: theme: there is no theme 'nrd'; there are ddtui-dark, ddtui-light"),
        ("[keys]\nbrst = 'x'\n", ":2: keys.brst: 'brst' is no action; `ddtui help keys`"),
        ("[keys]\n\nrestart = 'u'\n", ":3: keys.restart: 'u' is taken by both"),
    ],
)
def test_what_only_the_console_knows_is_checked_too(text: str, said: str) -> None:
    path = write(text)
    done = ddtui("config")
    assert done.returncode == 2
    assert f"{path}{said}" in done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'theme = "nord"\n'),
        ("ascii = true", 'ascii = true\ntheme = "nord"\n'),
        ("# mine\n[keys]\nburst = 'f9'\n", "# mine\ntheme = \"nord\"\n[keys]\nburst = 'f9'\n"),
        ("theme='a'  # at night\n[notify]\n", 'theme="nord"  # at night\n[notify]\n'),
        ('ascii = true\r\ntheme = "a"\r\n', 'ascii = true\r\ntheme = "nord"\r\n'),
        (
            '# theme = "ddtui-dark"  # all\nplain = true\n',
            '# theme = "ddtui-dark"  # all\ntheme = "nord"\nplain = true\n',
        ),
    ],
)
def test_a_theme_that_was_chosen_is_kept_and_every_other_line_stays(before: str, after: str) -> None:
    path = write(before)
    path.chmod(0o600)
    settings.keep_theme("nord")
    assert path.read_bytes().decode() == after
    assert settings.load({}).theme == "nord"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_theme_is_kept_in_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("plain = false\n")
    path = write("")
    path.unlink()
    path.symlink_to(real)
    settings.keep_theme("nord")
    assert path.is_symlink() and real.read_text() == 'plain = false\ntheme = "nord"\n'


def test_a_theme_is_not_forced_into_a_file_that_cannot_be_read() -> None:
    path = write("theme = \n")
    with pytest.raises(settings.SettingsError, match="is not valid TOML"):
        settings.keep_theme("nord")
    assert path.read_text() == "theme = \n"


def test_help_lists_topics_and_shows_keys_as_they_are_set() -> None:
    write("[keys]\nburst = 'f9'\n")
    topics = ddtui("help").stdout
    assert all(topic in topics for topic in ("keys", "verdicts", "exit-codes", "profiles", "knobs", "bursts"))
    shown = ddtui("help", "keys").stdout
    assert all(f"  {action} " in shown for action in BY_ID)
    (burst,) = (line for line in shown.splitlines() if line.startswith("  burst "))
    assert burst.split()[1] == "f9"
    wrong = ddtui("help", "kyes")
    assert wrong.returncode == 2 and "did you mean `ddtui help keys`" in wrong.stderr


def test_help_knows_every_command_and_every_screen() -> None:
    shown = ddtui("help", "screens").stdout
    for action in BY_ID.values():
        if action.area == "go to":
            assert f" {action.label} " in shown and action.about in shown
    for command in sorted(COMMANDS - {"config", "profiles"}):  # these two are topics as well
        done = ddtui("help", command)
        assert done.returncode == 0 and done.stdout.startswith(f"usage: ddtui {command}"), command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts_that_the_shell_takes(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(ddtui("completion", shell).stdout)
    assert "calibrate" in script.read_text() and "check-output" in script.read_text()
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([found, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_commands_profiles_flags_and_their_values(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(ddtui("completion", "bash").stdout)

    def completed(*words: str) -> set[str]:
        array = " ".join(f"'{word}'" for word in words)
        asked = f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _ddtui; "
        done = subprocess.run(
            ["bash", "-c", asked + 'printf "%s\\n" "${COMPREPLY[@]}"'],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        return set(done.stdout.split())

    assert completed("ddtui", "swe") == {"sweep"}
    assert completed("ddtui", "check", "kim") == {"kimi-k26-ddtree"}
    assert completed("ddtui", "bench", "demo", "--at", "") == {"host", "here"}
    assert completed("ddtui", "sweep", "demo", "--fini") == {"--finish"}
    assert completed("ddtui", "help", "verd") == {"verdicts"}


class _Stream:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


def test_in_ascii_every_drawn_cell_stays_one_cell_and_letters_stay() -> None:
    stream = _Stream()
    InAscii(stream).write("╭─ Journal ▶ ┤│⣿ 5 ⠀≥ \x1b[31m日本é")
    assert stream.text == "+- Journal > +|: 5  > \x1b[31m日本é"
    assert all(len(plain) == 1 and plain.isascii() for plain in TABLE.values())


def test_the_linux_console_is_drawn_in_ascii_unless_the_settings_say_otherwise() -> None:
    assert settings.load({"TERM": "linux"}).ascii
    assert not settings.load({"TERM": "xterm-256color"}).ascii
    write("ascii = false\n")
    assert not settings.load({"TERM": "linux"}).ascii
    assert settings.load({"TERM": "linux", "DDTUI_ASCII": "true"}).ascii
