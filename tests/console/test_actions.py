"""The table of actions: one source for bindings, footer, palette, help and keymap."""

from __future__ import annotations

from ddtui.actions.action import CHANGE, Needs, Where, why_not
from ddtui.actions.keymap import overlaps
from ddtui.actions.knobs import knob_actions
from ddtui.actions.table import ACTIONS, at, own
from ddtui.profile import Knob


def test_every_action_has_its_own_id_a_key_and_a_sentence() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    for action in ACTIONS:
        assert action.key_names, action.id
        assert action.about.endswith("."), action.id
        assert action.label and action.area, action.id


def test_no_two_actions_of_one_place_share_a_key() -> None:
    assert overlaps({}) == []


def test_a_screen_and_everywhere_never_share_a_key() -> None:
    everywhere = {key for action in own(Where.EVERYWHERE) for key in action.key_names}
    for place in (Where.TUNE, Where.BURSTS, Where.CONNECT, Where.JOURNAL, Where.KNOBS):
        taken = {key for action in own(place) for key in action.key_names}
        assert not (taken & everywhere), place


def test_a_keymap_that_takes_a_key_twice_or_names_no_action_is_refused_in_words() -> None:
    assert overlaps({"restart": "u"}) == ["keymap: 'u' is taken by both 'restart' and 'rollback'"]
    assert overlaps({"reboot": "R"}) == ["keymap: 'reboot' is no action"]
    # of everywhere and of one screen, of a screen and of a pane on it: both would answer
    assert overlaps({"burst": "r"}) == ["keymap: 'r' is taken by both 'restart' and 'burst'"]
    assert overlaps({"wrap": "r"}) == ["keymap: 'r' is taken by both 'restart' and 'wrap'"]
    # of two screens: one at a time
    assert overlaps({"calibrate": "r", "swap": "r"}) == []


def test_a_key_of_a_knob_that_is_taken_is_said_with_both_names() -> None:
    knobs = (Knob(name="budget", flag="--a", key="b"), Knob(name="rude", flag="--c", key="u"))
    assert overlaps({}, knobs[:1]) == []
    assert overlaps({}, knobs) == ["keymap: 'u' is taken by both 'rollback' and the knob 'rude'"]
    assert overlaps({"layers": "b"}, knobs[:1]) == [
        "keymap: 'b' is taken by both 'layers' and the knob 'budget'"
    ]
    assert knob_actions(knobs[:1], {"layers": "b"}) == ()
    assert [action.id for action in knob_actions(knobs, {"rollback": "Z"})] == ["knob-budget", "knob-rude"]


def test_knobs_get_their_keys_from_the_profile_and_never_take_one_away() -> None:
    knobs = (
        Knob(name="budget", flag="--a", key="b"),
        Knob(name="quiet", flag="--b"),
        Knob(name="rude", flag="--c", key="u"),
    )
    found = knob_actions(knobs)
    assert [(action.id, action.keys) for action in found] == [("knob-budget", "b")]
    assert found[0].call == "knob('budget')"


def test_why_an_action_cannot_be_done_is_said_in_the_order_that_matters() -> None:
    free = {"connected": True, "read_only": None, "changing": False, "bursting": False, "turned": True}

    def why(needs: Needs, **changes: object) -> str | None:
        return why_not(needs, **{**free, **changes})  # type: ignore[arg-type]

    assert why(CHANGE | Needs.TURNS) is None
    assert why(CHANGE, connected=False, read_only="x") == "not connected to the host"
    assert why(CHANGE, read_only="no sudo rights") == "read-only: no sudo rights"
    assert why(CHANGE, changing=True) == "a change is running"
    assert why(CHANGE | Needs.TURNS, turned=False) == "no knob has been turned"
    assert why(Needs.NO_BURST, bursting=True) == "a burst is running; X stops it"
    assert why(Needs.WORK) == "nothing is running that could be stopped"
    assert why(Needs.WORK, changing=True) is None


def test_everywhere_is_part_of_every_place() -> None:
    assert set(own(Where.EVERYWHERE)) <= set(at(Where.JOURNAL))
