"""What can be done on the way to a host, and on every screen."""

from __future__ import annotations

from ddtui.actions.action import Action, Where

ACTIONS: tuple[Action, ...] = (
    # connect
    Action("retry", "host", "r", "try again", "Connect again.", Where.CONNECT, footer=10),
    Action("give-up", "host", "escape", "stop", "Stop connecting.", Where.CONNECT),
    # everywhere
    Action("tune", "go to", "1", "tune", "Layers, checks, knobs and charts on one screen.", footer=80),
    Action("logs", "go to", "2", "logs", "The journal on the whole screen.", footer=81),
    Action("bursts", "go to", "3", "bursts", "Every burst of this session with its numbers.", footer=82),
    Action(
        "compare",
        "go to",
        "4,c",
        "compare",
        "Two steps side by side: the answer in a sentence, then the table.",
        footer=83,
    ),
    Action(
        "sweep", "go to", "5,s", "sweep", "Many settings, unattended: set up, watch, go on with.", footer=84
    ),
    Action(
        "history",
        "go to",
        "6",
        "history",
        "Everything that was tried and measured, with charts and advice.",
        footer=85,
    ),
    Action("hosts", "go to", "H", "hosts", "Another host; each that is open goes on and keeps its state."),
    Action(
        "layers",
        "go to",
        "L",
        "layers",
        "Every layer: what it said, how old that is, and why one could not be read.",
    ),
    Action("commands", "go to", "C", "command log", "Every command that ddtui ran on the host."),
    Action("help", "help", "question_mark", "help", "The keys of where you are.", footer=90, shown="?"),
    Action(
        "palette",
        "help",
        "ctrl+p,colon",
        "palette",
        "Every action by name.",
        footer=91,
        brief="",
        shown="^p",
    ),
    Action(
        "repaint", "view", "ctrl+l", "repaint", "Paint everything anew: something else wrote to the terminal."
    ),
    Action("theme", "view", "T", "theme", "Choose a theme."),
    Action("quit", "help", "q,ctrl+q", "quit", "Leave ddtui; nothing on the host changes.", footer=92),
)
