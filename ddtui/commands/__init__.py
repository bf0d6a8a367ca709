"""One file per command, each thin over the rooms."""

COMMANDS = frozenset(
    [
        "console", "demo", "check", "plan", "apply", "rollback", "bench", "ab", "sweep", "calibrate",
        "compare", "report", "logs", "history", "inspect", "doctor", "profiles", "serve",
        "config", "completion", "help",
    ]
)  # fmt: skip

# of these the first argument is a profile, so that `ddtui demo COMMAND` can fill it in
ON_PROFILE = frozenset(
    [
        "console", "check", "plan", "apply", "rollback", "bench", "ab", "sweep", "calibrate", "report",
        "logs", "history", "doctor", "serve",
    ]
)  # fmt: skip
