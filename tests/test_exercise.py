"""An answer is replayed: what was right is said, and for the rest what to look at."""

from __future__ import annotations

import pytest

from fencinglab.exercise import check_break, check_prediction
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay
from fencinglab.model.timeline import parse

OLD, NEW = "A writes old-result", "B writes new-result"
LONGER = FIXES["longer-lease"], shelf.find("short-pause")


def predicted(guesses: dict[str, str], name: str = "old-token-first", fix: str = "fenced") -> str:
    """What is said of these guesses."""
    return check_prediction(replay(shelf.find(name), FIXES[fix]), guesses)


def test_right_guesses_are_explained():
    """A right guess is said to be right, with the rule that decided."""
    told = predicted({OLD: "accepted", NEW: "accepted"})

    assert told.startswith("2 of 2 right.\n● A writes old-result: as you said.")
    assert "A wrote with 41 after 42 was granted: accepted by at-or-above" in told


def test_a_guess_that_is_not_right_is_told_what_to_look_at():
    """Another guess is repeated, with the time, both tokens and the guard; what was right is still counted."""
    told = " ".join(predicted({OLD: "rejected", NEW: "accepted"}).split())

    assert told.startswith("1 of 2 right.")
    assert "you said rejected. Look at 01:03: A presents 41" in told
    assert "the highest accepted is none and the newest granted 42" in told
    assert FIXES["fenced"].rules.guard.says in told


def test_what_was_accepted_before_is_looked_at():
    """The highest accepted token is that of earlier writes, not of later ones and not of grants."""
    assert "accepted is 42" in " ".join(predicted({OLD: "accepted"}, "report-generation").split())


def test_a_write_without_a_token_presents_none():
    """What an old version of a worker presents is told as no token."""
    assert "A presents no token" in predicted({OLD: "rejected"}, "mixed-versions")


def test_what_was_not_sent_can_be_guessed():
    """Under a client check a worker may send nothing; guessing otherwise is told to look at the worker."""
    case = {"name": "report-generation", "fix": "client-check"}

    assert predicted({OLD: "not sent"}, **case).startswith("1 of 1 right.")
    assert "Look at what A knows of its lease at 01:04" in predicted({OLD: "accepted"}, **case)


def test_open_guesses_are_not_counted():
    """An empty guess is open and is told what to look at; only those made are counted."""
    assert predicted({OLD: "", NEW: ""}).startswith(
        "Nothing is guessed yet.\n○ A writes old-result: still to be guessed"
    )
    assert predicted({OLD: "", NEW: "accepted"}).startswith("1 of 1 right, others are open.")
    assert predicted({}) == f"Nothing is guessed yet; guess one of `{OLD}`, `{NEW}`."


def test_a_guess_in_other_words_is_told_the_words():
    """A line that is no mutation, and an answer that is none, are told what there is."""
    told = predicted({"A wites": "accepted", OLD: "yes"})

    assert "`A wites` sends nothing here; guess one of `A writes old-result`" in told
    assert "`yes` is no answer; it is one of accepted, rejected, not sent" in told
    assert told.startswith("0 of ")
    assert predicted({OLD: " Accepted "}) == predicted({OLD: "accepted"})


def test_a_broken_fix_is_explained():
    """A change that breaks the fix is told which line, which harm where, and what the fix is known to leave."""
    told = " ".join(check_break(*LONGER, {"90 s pass": "900 s pass"}).split())

    assert told.startswith(
        "Broken by one line: with `900 s pass` for `90 s pass`, an older holder's write was accepted"
    )
    assert "15:06 A writes result-of-A: A wrote with 41 after 42 was accepted" in told
    assert LONGER[0].leaves in told


def test_a_fix_that_holds_is_told_what_to_look_at():
    """A change after which the fix still helps, and none at all, are told what became of each request."""
    for change, first in (
        ({"90 s pass": "200 s pass"}, "One line is changed, as it should be"),
        ({}, "Nothing is changed yet"),
    ):
        told = " ".join(check_break(*LONGER, change).split())
        assert told.startswith(first)
        assert "Look at: " in told and "B is refused: A holds the lease until 05:00" in told


def test_the_smallest_change_that_breaks_is_found():
    """A lease of 300 s that was granted at second 0 survives 296 s from second 3 on, and not 297."""
    broken = [n for n in (296, 297) if check_break(*LONGER, {"90 s pass": f"{n} s pass"}).startswith("Broken")]

    assert broken == [297]


def test_only_the_first_of_two_equal_lines_is_changed():
    """Of two equal lines the first is meant: 190 and 90 s do not outlast a lease of 300 s, twice 190 s would."""
    twice = parse(str(LONGER[1]).replace("90 s pass", "90 s pass\n90 s pass"))
    told = check_break(LONGER[0], twice, {"90 s pass": "190 s pass"})

    assert told.startswith("One line is changed")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"9 s pass": "900 s pass"}, "There is no line `9 s pass` in short-pause; nearest: `90 s pass`."),
        ({"90 s pass": "900 s pass", "A reads": "A renews"}, "2 lines are changed: go back to one"),
        ({"90 s pass": "900 sec"}, "expected an event and found `900 sec`"),
        ({"A pauses": "A resumes"}, "A is not paused; nearest legal event: `A pauses`"),
        ({"lease length: 60 s": "lease length: long"}, "is no whole number above 0"),
    ],
)
def test_a_change_that_cannot_be_judged_is_told_why(change, words):
    """A slip in the change is answered in a sentence, not with an error."""
    assert words in " ".join(check_break(*LONGER, change).split())


def test_a_fix_that_never_helped_cannot_be_broken():
    """Where harm is done before the change, another timeline is asked for."""
    assert "does not help in long-pause as it stands" in check_break(LONGER[0], shelf.find("long-pause"), {})


def test_answers_fit_a_screen():
    """No line of an answer is wider than a screen."""
    told = [predicted({OLD: guess, NEW: ""}) for guess in ("accepted", "rejected")]
    told += [check_break(*LONGER, {"90 s pass": f"{n} s pass"}) for n in (90, 900)]

    assert max(len(line) for text in told for line in text.splitlines()) <= 100
