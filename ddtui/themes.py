"""ddtui's own themes (dark, light, high contrast, 16 colours), and its variables' defaults under any other.

The only place with colours by number. Colour says state (good, warning, wrong), focus and series; the rest
stays calm.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="ddtui-dark",
    primary="#5fb3f9",
    secondary="#7d93ab",
    accent="#f2b45c",
    foreground="#d3dae3",
    background="#0f1318",
    surface="#141a21",
    panel="#1d2530",
    success="#7cc68d",
    warning="#e8bd60",
    error="#f2727f",
    dark=True,
    variables={
        "border": "#5fb3f9",
        "border-blurred": "#2d3947",
        "footer-key-foreground": "#5fb3f9",
        "block-cursor-background": "#1f3549",
        "block-cursor-foreground": "#f2f6fa",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1b2530",
        "block-cursor-blurred-foreground": "#d3dae3",
        "input-selection-background": "#5fb3f9 35%",
        "scrollbar": "#2d3947",
        "scrollbar-hover": "#3d4d60",
        "scrollbar-active": "#5fb3f9",
        "scrollbar-background": "#141a21",
        "scrollbar-background-hover": "#141a21",
        "scrollbar-background-active": "#141a21",
        "scrollbar-corner-color": "#141a21",
        "muted": "#7f8d9e",
        "faint": "#56636f",
        "series-a": "#8fa3b8",
        "series-b": "#5fb3f9",
        "match": "#f2b45c",
        "production": "#e0506a",
    },
)

LIGHT = Theme(
    name="ddtui-light",
    primary="#0b65c2",
    secondary="#5b6b7c",
    accent="#a45f00",
    foreground="#20262d",
    background="#f4f5f7",
    surface="#fcfcfd",
    panel="#e6e9ee",
    success="#1d7a3a",
    warning="#8f5b00",
    error="#b8243a",
    dark=False,
    variables={
        "border": "#0b65c2",
        "border-blurred": "#c3cad3",
        "footer-key-foreground": "#0b65c2",
        "block-cursor-background": "#d3e5f8",
        "block-cursor-foreground": "#10161c",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#e9edf2",
        "block-cursor-blurred-foreground": "#20262d",
        "input-selection-background": "#0b65c2 25%",
        "scrollbar": "#c3cad3",
        "scrollbar-hover": "#a9b3bf",
        "scrollbar-active": "#0b65c2",
        "scrollbar-background": "#fcfcfd",
        "scrollbar-background-hover": "#fcfcfd",
        "scrollbar-background-active": "#fcfcfd",
        "scrollbar-corner-color": "#fcfcfd",
        "muted": "#5d6a78",
        "faint": "#8b96a3",
        "series-a": "#6b7a8a",
        "series-b": "#0b65c2",
        "match": "#a45f00",
        "production": "#b8243a",
    },
)

CONTRAST = Theme(
    name="ddtui-contrast",
    primary="#6cc8ff",
    secondary="#d0d0d0",
    accent="#ffc000",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    success="#3dff6e",
    warning="#ffe100",
    error="#ff7a7a",
    dark=True,
    variables={
        "border": "#ffe100",
        "border-blurred": "#a0a0a0",
        "footer-key-foreground": "#ffe100",
        "block-cursor-background": "#0046b8",  # all text on it stays readable, whatever its colour
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": "#333333",
        "block-cursor-blurred-foreground": "#ffffff",
        "input-selection-background": "#6cc8ff 50%",
        "scrollbar": "#a0a0a0",
        "scrollbar-hover": "#ffffff",
        "scrollbar-active": "#ffe100",
        "scrollbar-background": "#000000",
        "scrollbar-background-hover": "#000000",
        "scrollbar-background-active": "#000000",
        "scrollbar-corner-color": "#000000",
        "muted": "#d0d0d0",
        "faint": "#b0b0b0",
        "series-a": "#ffffff",
        "series-b": "#6cc8ff",
        "match": "#ffc000",
        "production": "#ff4d6d",
    },
)

# The 16 colours that every terminal has, each exactly as Rich counts it, so that none becomes another one:
# 0 black, 4 blue, 7 white and 8 to 15 the bright ones. widgets/colours.py reads them without colour.
SIXTEEN = Theme(
    name="ddtui-16",
    primary="#55ffff",
    secondary="#aaaaaa",
    accent="#ff55ff",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#000000",
    success="#55ff55",
    warning="#ffff55",
    error="#ff5555",
    dark=True,
    variables={
        "border": "#55ffff",
        "border-blurred": "#555555",
        "footer-key-foreground": "#55ffff",
        "block-cursor-background": "#0000aa",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#000000",
        "block-cursor-blurred-foreground": "#ffffff",
        "input-selection-background": "#0000aa",
        "scrollbar": "#555555",
        "scrollbar-hover": "#aaaaaa",
        "scrollbar-active": "#55ffff",
        "scrollbar-background": "#000000",
        "scrollbar-background-hover": "#000000",
        "scrollbar-background-active": "#000000",
        "scrollbar-corner-color": "#000000",
        "muted": "#aaaaaa",
        "faint": "#555555",
        "series-a": "#ffffff",
        "series-b": "#55ffff",
        "match": "#ffff55",
        "production": "#ff5555",
    },
)

THEMES = (DARK, LIGHT, CONTRAST, SIXTEEN)


def names() -> list[str]:
    """Every theme that the console can have: ddtui's own, then Textual's."""
    from textual.theme import BUILTIN_THEMES

    return list(dict.fromkeys([*(theme.name for theme in THEMES), *BUILTIN_THEMES]))


def variable_defaults(theme: Theme) -> dict[str, str]:
    """ddtui's own variables for a theme that does not know them."""
    foreground = theme.foreground or ("#d0d0d0" if theme.dark else "#202020")
    return {
        "muted": f"{foreground} 65%" if not theme.ansi else "ansi_bright_black",
        "faint": f"{foreground} 45%" if not theme.ansi else "ansi_bright_black",
        "series-a": theme.secondary or theme.primary,
        "series-b": theme.primary,
        "match": theme.accent or theme.warning or theme.primary,
        "production": theme.error or theme.primary,
    }
