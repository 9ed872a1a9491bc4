"""An event that can never happen is named, with the reason and a legal one near it."""

from __future__ import annotations

import pytest

from fencinglab.model.event import read
from fencinglab.model.legal import first_fault

NEVER = {  # the last event can never happen: the events, why, what is legal near it
    "a write before any acquire": ("A writes x", "A has acquired no lease before", "A acquires"),
    "an artifact before any acquire": ("A stores x under k", "A has acquired no lease before", "A acquires"),
    "a renewal before any acquire": ("B acquires; A renews", "A has acquired no lease before", "A acquires"),
    "a write after a crash": ("A acquires; A crashes; A restarts; A writes x", "A has acquired no lease before", "A acquires"),
    "a resume without a pause": ("A resumes", "A is not paused", "A pauses"),
    "a restart without a crash": ("A restarts", "A has not crashed", "A crashes"),
    "a pause of the paused": ("A pauses; A pauses", "A paused in line 1 and did not resume", "A resumes"),
    "an act of the paused": ("A acquires; A pauses; A writes x", "A paused in line 2 and did not resume", "A resumes"),
    "an act of the crashed": ("A crashes; A acquires", "A crashed in line 1 and did not restart", "A restarts"),
    "a second crash": ("A crashes; A crashes", "A crashed in line 1 and did not restart", "A restarts"),
    "an act of the paused, when it was cut off since": ("A acquires; A pauses; A is cut off; A writes x", "A paused in line 2 and did not resume", "A resumes"),
    "a renewal by an old version": ("A runs without fencing; A renews", "A has acquired no lease before", "A acquires"),
    "an arrival from nobody": ("C's x arrives", "`C` is no worker here (A, B)", "A's x arrives"),
    "a repetition of nothing": ("A acquires; A's x arrives again", "no x of A has arrived", "A sends x"),
    "an unknown worker": ("C acquires", "`C` is no worker here (A, B)", "A acquires"),
    "a worker misspelt": ("a acquires", "`a` is no worker here (A, B)", "A acquires"),
    "an unknown resource": ("A acquires; A writes x to reprot", "`reprot` is no resource here (report)", "A writes x to report"),
    "an unknown lease": ("A acquires job", "`job` is no lease here (report)", "A acquires report"),
    "an arrival of nothing": ("A acquires; A's x arrives", "no x of A is on its way", "A sends x"),
    "a second arrival": ("A acquires; A sends x; A's x arrives; A's x arrives", "no x of A is on its way", "A sends x"),
    "a repetition before the arrival": ("A acquires; A sends x; A's x arrives again", "no x of A has arrived", "A's x arrives"),
    "a copy of nothing": ("A acquires; A's x is duplicated", "no x of A is on its way", "A sends x"),
    "a third arrival of two": ("A acquires; A sends x; A's x is duplicated; A's x arrives; A's x arrives; A's x arrives", "no x of A is on its way", "A sends x"),
    "a loss of what arrived": ("A acquires; A sends x; A's x arrives; A's x is lost", "no x of A is on its way", "A sends x"),
    "cut off twice": ("A is cut off; A is cut off", "A is cut off already", "A is back"),
    "back without having been away": ("A is back", "A is not cut off", "A is cut off"),
    "unfenced twice": ("A runs without fencing; A runs without fencing", "A runs without fencing already", "A runs with fencing"),
    "no time": ("0 s pass", "seconds are 1 to 99999", "20 s pass"),
}  # fmt: skip
POSSIBLE = (
    "A acquires; A crashes; A restarts; A acquires; A writes x",
    "A runs without fencing; A writes x",  # an old version writes without asking anybody
    "A pauses; A's clock runs 5 s ahead; A is cut off; A is back; A crashes; A restarts",
    "A acquires; A sends x; A sends x; A's x arrives; A's x is lost; A's x arrives again",
    "A acquires; A renews report; A pauses; A resumes; A writes x",
    "A acquires; A releases; A writes x",  # late, and for the receiver to judge
    "lease expires; TTL deletes report; authority is restored to 0",
)


def fault(text, resources=("report",), leases=("report",)):
    events = [read(line, number) for number, line in enumerate(text.split("; "), 1)]
    return first_fault(events, ("A", "B"), resources, leases)


@pytest.mark.parametrize(("text", "says", "instead"), NEVER.values(), ids=NEVER)
def test_what_can_never_happen_is_named(text, says, instead):
    """The fault is the event itself, with its reason, and what it is answered with is an event."""
    found = fault(text)

    assert (str(found.event), found.says, found.instead) == (text.split("; ")[-1], says, instead)
    assert read(found.instead)


@pytest.mark.parametrize("text", POSSIBLE)
def test_what_some_fix_lets_happen_is_no_fault(text):
    """What happens under some fix, or only to an old version of a worker, is no fault."""
    assert fault(text) is None


@pytest.mark.parametrize(
    ("text", "says", "instead"),
    [
        ("A acquires", "it names no lease and there are 2 (one, two)", "A acquires one"),
        ("A acquires one; A writes x", "it names no resource and there are 2 (one, two)", "A writes x to one"),
        ("A writes x to two", "A has acquired no lease before", "A acquires two"),
        ("A acquires one; A renews two", "A has acquired no lease before", "A acquires two"),
        ("lease expires", "it names no lease and there are 2 (one, two)", "lease one expires"),
    ],
)
def test_of_several_one_must_be_named(text, says, instead):
    """Where there are two resources or leases, an event that names none is not guessed at."""
    found = fault(text, ("one", "two"), ("one", "two"))

    assert (found.says, found.instead) == (says, instead)
