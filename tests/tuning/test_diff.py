"""The diff that the operator confirms: exact, and without secrets."""

from __future__ import annotations

from ddtui.tuning import diff
from ddtui.tuning.model import FileEdit

SECRET = "sk-1234567890abcdef1234"


def of(before: bytes | None, after: bytes | None) -> str:
    return diff.of([FileEdit("/etc/sglang/server.env", before, after, ours=False)])


def test_a_new_file_and_a_removed_one_are_told_from_a_changed_one() -> None:
    assert of(None, b"a\n").startswith("--- /dev/null\n+++ /etc/sglang/server.env\n")
    assert of(b"a\n", None).startswith("--- /etc/sglang/server.env\n+++ /dev/null\n")
    assert of(b"a\n", b"b\n") == (
        "--- /etc/sglang/server.env\n+++ /etc/sglang/server.env\n@@ -1 +1 @@\n-a\n+b\n"
    )


def test_a_secret_that_stays_is_said_to_stay() -> None:
    before = f"ARGS=--budget 8 --api-key {SECRET}\n".encode()
    shown = of(before, before.replace(b"budget 8", b"budget 16"))
    assert SECRET not in shown
    assert shown.count("(unchanged secret)") == 2
    assert "+ARGS=--budget 16 --api-key (unchanged secret)" in shown


def test_a_secret_that_changes_is_seen_to_change_and_not_shown() -> None:
    before = f"API_KEY={SECRET}\n".encode()
    other = "sk-abcdef1234567890abcd"
    shown = of(before, before.replace(SECRET.encode(), other.encode()))
    assert SECRET not in shown
    assert other not in shown
    assert "(unchanged secret)" not in shown
    assert shown.count("<secret:") == 2


def test_control_characters_are_shown_and_do_not_act() -> None:
    assert "\x1b" not in of(b"a\n", b"\x1b[31mb\x00\n")


def test_a_missing_last_newline_is_a_difference() -> None:
    assert "no newline at end of file" in of(b"a\n", b"a")


def test_bytes_that_are_no_text_are_shown_as_bytes() -> None:
    assert "\\xff" in of(b"a\n", b"\xff\n")
