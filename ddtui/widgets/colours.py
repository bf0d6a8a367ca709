"""How many colours a terminal has, and what stands for them where it has fewer than a theme.

With 256 the nearest of them are taken. With 16 the theme is `ddtui-16`, whose colours are those 16. Without
colour it is that theme too, and its colours become bold, dim and reverse: the cursor, the focus and what can
not be used now stay visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as Ground
from textual.filter import LineFilter, Monochrome, NoColor

if TYPE_CHECKING:
    from textual.app import App


class Colours(Enum):
    """What a terminal can show."""

    ALL = ColorSystem.TRUECOLOR
    MANY = ColorSystem.EIGHT_BIT
    SIXTEEN = ColorSystem.STANDARD
    NONE = None


# what TERM ends with where there are at least 256 colours; not every host's terminfo knows them
MODERN = ("256color", "direct", "kitty", "ghostty", "alacritty", "foot", "wezterm", "contour")


def of_terminal(environment: Mapping[str, str], known: int | None = None) -> Colours:
    """What the variables say; `known`: how many colours terminfo gives this terminal.

    `NO_COLOR` (no-color.org) goes before all, then COLORTERM and Windows Terminal's own variable, then
    terminfo, then TERM's name: SSH carries TERM alone.
    """
    if environment.get("NO_COLOR"):
        return Colours.NONE
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return Colours.ALL
    if environment.get("WT_SESSION"):  # Windows Terminal, also around WSL
        return Colours.ALL
    if known is not None:
        sizes = ((1 << 24, Colours.ALL), (256, Colours.MANY), (8, Colours.SIXTEEN), (0, Colours.NONE))
        return next((colours for least, colours in sizes if known >= least), Colours.NONE)
    kind = environment.get("TERM", "").rpartition("-")[2]
    return Colours.MANY if kind in MODERN else Colours.SIXTEEN


def by_terminfo(term: str) -> int | None:
    """How many colours terminfo gives a terminal; None: it does not know it, or there is no terminfo here."""
    try:
        import curses
    except ImportError:  # Windows
        return None
    try:
        curses.setupterm(term, 1)
    except curses.error:
        return None
    return max(0, curses.tigetnum("colors"))


def fit(app: App[Any], colours: Colours) -> None:
    """Let the app send no more colours than there are, with every state visible by those."""
    app.console._color_system = colours.value
    if colours is Colours.MANY:
        app._filters.append(NearestOf256())
    elif colours is Colours.SIXTEEN and not app.current_theme.ansi:
        app.theme = "ddtui-16"
    elif colours is Colours.NONE:
        app.theme = "ddtui-16"
        app.no_color = True
        app._filters = [one for one in app._filters if not isinstance(one, (Monochrome, NoColor))]
        app._filters.append(WithoutColour())


class NearestOf256(LineFilter):
    """Each colour as the nearest one of the 256, greys among them: Rich makes a bluish grey a full blue."""

    def apply(self, segments: list[Segment], background: Ground) -> list[Segment]:
        return [
            Segment(text, nearest_style(style) if style is not None else None, control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def nearest_style(style: Style) -> Style:
    return style + Style.from_color(
        nearest(style.color) if style.color is not None else None,
        nearest(style.bgcolor) if style.bgcolor is not None else None,
    )


STEPS = (0, 95, 135, 175, 215, 255)  # of each part in xterm's cube of colours 16 to 231; greys from 232 on


def nearest(colour: Color) -> Color:
    """Of xterm's cube and greys; the first 16, which everybody sets as they like, are left alone."""
    if colour.triplet is None:
        return colour
    parts: tuple[float, ...] = tuple(colour.triplet)
    mean = sum(parts) / 3
    if max(parts) - min(parts) < 0x28:
        parts = (mean,) * 3  # hardly a colour: a grey, not the least blue of the cube
    at = [min(range(6), key=lambda step: abs(STEPS[step] - part)) for part in parts]
    grey = max(0, min(23, round((mean - 8) / 10)))

    def off(other: tuple[float, ...]) -> float:
        return sum((one - two) ** 2 for one, two in zip(parts, other, strict=True))

    if off((8 + 10 * grey,) * 3) <= off(tuple(STEPS[step] for step in at)):
        return Color.from_ansi(232 + grey)
    return Color.from_ansi(16 + 36 * at[0] + 6 * at[1] + at[2])


class WithoutColour(LineFilter):
    """Bold, dim and reverse for the colours of the theme `ddtui-16`; no colour is sent at all."""

    def apply(self, segments: list[Segment], background: Ground) -> list[Segment]:
        return [
            Segment(text, uncoloured(style) if style is not None else None, control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def uncoloured(style: Style) -> Style:
    """The style without its colours, and with what stands for them."""
    ink, ground = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
    reverse = ground is not None and not _black(ground)
    stands = Style(
        bold=True if _bright(ink) and not reverse else None,
        dim=True if _dark(ink) and not reverse else None,
        reverse=reverse if reverse or style.reverse else None,
    )
    return style.without_color + stands


def _parts(colour: Color | None) -> tuple[int, int, int]:
    if colour is None or colour.is_default:
        return (170, 170, 170)
    red, green, blue = colour.get_truecolor()
    return red, green, blue


def _black(colour: Color) -> bool:
    """The ground of the theme, and of what is drawn on it shaded."""
    return colour.is_default or max(_parts(colour)) < 0x40


def _dark(colour: Color | None) -> bool:
    """Grey: what is faint, a border without the focus, a screen behind a dialog."""
    return max(_parts(colour)) < 0x80


def _bright(colour: Color | None) -> bool:
    """A bright colour, which is none of the greys."""
    parts = _parts(colour)
    return max(parts) > 0xC0 and max(parts) - min(parts) > 0x20
