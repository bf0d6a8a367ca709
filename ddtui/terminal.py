"""What goes to the terminal past Textual, also through tmux and screen: notifications and the clipboard."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress

SCREEN_CHUNK = 240  # characters that every version of screen passes on at once
COPY_SECONDS = 3.0


def passed_on(sequence: str, env: Mapping[str, str] = os.environ) -> str:
    """The sequence so that it reaches the terminal: tmux passes it on where its `allow-passthrough` is on."""
    if env.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if env.get("STY"):
        chunks = [sequence[i : i + SCREEN_CHUNK] for i in range(0, len(sequence), SCREEN_CHUNK)]
        return "".join(f"\x1bP{chunk}\x1b\\" for chunk in chunks)
    return sequence


def clipboard(text: str, env: Mapping[str, str] = os.environ) -> str:
    """The sequence that puts a text on the clipboard (OSC 52). tmux takes it where `set-clipboard` is on."""
    sequence = f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"
    return sequence if env.get("TMUX") else passed_on(sequence, env)


def copiers(env: Mapping[str, str] = os.environ) -> tuple[tuple[str, ...], ...]:
    """Programs that take a text on stdin where OSC 52 alone does not do, the first that works is enough.

    tmux: its newest buffer, and from there the clipboard; tmux's own settings let OSC 52 by a program go
    unheard. The Terminal of macOS knows no OSC 52.
    """
    if env.get("TMUX"):
        return ("tmux", "load-buffer", "-w", "-"), ("tmux", "load-buffer", "-")  # -w: since tmux 3.2
    if env.get("TERM_PROGRAM") == "Apple_Terminal":
        return (("pbcopy",),)
    return ()


async def to_program(text: str, env: Mapping[str, str] = os.environ) -> None:
    """Put the text on the clipboard by the first of `copiers` that works; without one, nothing happens."""
    for argv in copiers(env):
        with suppress(OSError, TimeoutError):
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            async with asyncio.timeout(COPY_SECONDS):
                await process.communicate(text.encode())
            if process.returncode == 0:
                return
