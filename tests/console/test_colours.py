"""As many colours as the terminal has: by its variables, and by the bytes that it is sent."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pty_terminal import Terminal
from rich.style import Style

from ddtui.widgets.colours import Colours, nearest, of_terminal, uncoloured

PROGRAM = str(Path(__file__).with_name("program.py"))


@pytest.mark.parametrize(
    ("environment", "known", "colours"),
    [
        ({"NO_COLOR": "1", "COLORTERM": "truecolor"}, 256, Colours.NONE),
        ({"NO_COLOR": "", "COLORTERM": "truecolor"}, 256, Colours.ALL),  # empty: not set, says no-color.org
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, 256, Colours.ALL),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, 256, Colours.ALL),
        ({"TERM": "xterm-256color"}, 256, Colours.MANY),  # macOS Terminal, and most links by SSH
        ({"TERM": "xterm-256color", "WT_SESSION": "c0ffee"}, 256, Colours.ALL),  # Windows Terminal
        ({"TERM": "xterm-direct"}, 1 << 24, Colours.ALL),
        ({"TERM": "screen-256color"}, 256, Colours.MANY),
        ({"TERM": "screen"}, 8, Colours.SIXTEEN),
        ({"TERM": "linux"}, 8, Colours.SIXTEEN),
        ({"TERM": "vt100"}, 0, Colours.NONE),
        ({"TERM": "tmux-256color"}, None, Colours.MANY),  # terminfo does not know it
        ({"TERM": "alacritty"}, None, Colours.MANY),
        ({"TERM": "xterm-ghostty"}, None, Colours.MANY),
        ({"TERM": "something-new"}, None, Colours.SIXTEEN),
    ],
)
def test_what_the_terminal_has_is_known_by_its_variables_and_terminfo(
    environment: dict[str, str], known: int | None, colours: Colours
) -> None:
    assert of_terminal(environment, known) is colours


@pytest.mark.parametrize(
    ("colour", "number"),
    [
        ("#1d2530", 235),  # a bluish dark grey stays a grey
        ("#1f3549", 236),
        ("#5fb3f9", 75),
        ("#f2727f", 204),
        ("#ffffff", 231),
        ("#000000", 16),
    ],
)
def test_of_256_colours_the_nearest_is_taken(colour: str, number: int) -> None:
    found = Style.parse(colour).color
    assert found is not None and nearest(found).number == number


@pytest.mark.parametrize(
    ("coloured", "without"),
    [
        ("#ffffff on #0000aa", "reverse"),  # the cursor
        ("#aaaaaa on #0000aa", "reverse"),
        ("#000000 on #55ffff", "reverse"),  # a button with the focus
        ("#55ffff on #000000", "bold"),  # a key in the footer, a border with the focus
        ("#555555 on #000000", "dim"),  # what cannot be used now
        ("#ffffff on #000000", ""),
        ("#aaaaaa", ""),
        ("bold #ff5555", "bold"),
        ("reverse #555555 on #000000", "reverse"),  # a scrollbar
        ("reverse #000000 on #ffffff", "not reverse"),
        ("underline italic #ffffff", "underline italic"),
    ],
)
def test_without_colour_bold_dim_and_reverse_stand_for_them(coloured: str, without: str) -> None:
    assert uncoloured(Style.parse(coloured)) == Style.parse(without)


# in a real terminal: every number of every SGR that it was sent

ATTRIBUTES = {0, 1, 2, 3, 4, 7, 9}
SIXTEEN = {*range(30, 38), 39, *range(40, 48), 49, *range(90, 98), *range(100, 108)}


def sent(raw: bytes) -> tuple[set[int], set[int]]:
    """The plain numbers, and the kinds of colours by number: 2 is true colour, 5 of the 256."""
    plain: set[int] = set()
    kinds: set[int] = set()
    for found in re.findall(rb"\x1b\[([0-9;]*)m", raw):
        numbers = [int(number or 0) for number in found.split(b";")]
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48):
                kinds.add(numbers[0])
                del numbers[: 4 if numbers[0] == 2 else 2]
            else:
                plain.add(number)
    return plain, kinds


def raw_of(term: str, **more: str) -> bytes:
    """Everything sent to such a terminal by a walk over screens with cursors, focus, charts and a dialog."""
    env = ["env", "-u", "COLORTERM", "-u", "NO_COLOR", "-u", "WT_SESSION", f"TERM={term}"]
    words = [f"{name}={value}" for name, value in more.items()]
    with Terminal([*env, *words, sys.executable, PROGRAM], 120, 36) as terminal:
        terminal.wait_for("review & apply")
        terminal.press("b")
        terminal.wait_for("presets")
        terminal.press("escape")
        terminal.wait_for(lambda screen: "presets" not in screen)
        for key, shows in (("6", "─ Steps"), ("2", "─ Journal of")):
            terminal.press(key)
            terminal.wait_for(shows)
        return terminal.raw


@pytest.mark.terminal
@pytest.mark.parametrize(
    ("term", "more", "kinds", "colours"),
    [
        ("xterm-256color", {"NO_COLOR": "1", "COLORTERM": "truecolor"}, set(), set()),
        ("vt100", {}, set(), set()),
        ("linux", {}, set(), SIXTEEN),
        ("screen", {}, set(), SIXTEEN),
        ("xterm-256color", {}, {5}, set()),
        ("tmux-256color", {"COLORTERM": "truecolor"}, {2}, set()),
    ],
    ids=["NO_COLOR", "vt100", "linux", "screen", "256", "truecolor"],
)
def test_a_terminal_is_sent_only_the_colours_that_it_has(
    term: str, more: dict[str, str], kinds: set[int], colours: set[int]
) -> None:
    numbers, found = sent(raw_of(term, **more))
    assert found == kinds
    assert numbers <= ATTRIBUTES | colours
    assert bool(numbers & colours) == bool(colours)
    assert 7 in numbers or colours or kinds  # without colour the cursor is reversed
