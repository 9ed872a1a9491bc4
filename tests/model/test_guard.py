"""Each guard admits by the comparison that its name says."""

from __future__ import annotations

import pytest

from fencinglab.model.guard import GUARDS, Presented, Seen

# A's 41, B's 42 and C's 43 were granted in turn, B wrote last and C holds the lease now.
SEEN = Seen(highest=42, promised=43, latest=43, holder="C", version=7)
A = Presented(41, "A", version=3)
B = Presented(42, "B", version=7)  # knows the present state: it made it
C = Presented(43, "C", version=3)

ADMITTED = {
    "unguarded": "ABC",
    "at-or-above": "BC",
    "above": "C",
    "promised": "C",
    "latest": "C",
    "current-holder": "C",
    "current-lease": "C",
    "identity": "B",
    "two-step-token": "BC",
    "two-step-holder": "C",
}


def test_every_guard_is_in_the_table():
    """The table below judges every guard that there is."""
    assert {*ADMITTED} == {*GUARDS}


@pytest.mark.parametrize("name", ADMITTED)
def test_a_guard_admits_what_its_name_says(name):
    """Of an older holder, the last writer and the present holder each guard admits those that its comparison fits."""
    admitted = [write.writer for write in (A, B, C) if GUARDS[name].admits(SEEN, write)]

    assert "".join(admitted) == ADMITTED[name]


@pytest.mark.parametrize("guard", ["current-holder", "current-lease"])
def test_nobody_holds_after_the_lease_ran_out(guard):
    """A guard that asks for the current holder refuses everybody when nobody is."""
    assert not GUARDS[guard].admits(SEEN._replace(holder=""), C)


def test_an_older_lease_of_the_holder_is_told_by_its_token():
    """The holder's own older token passes where only its name is compared, and not where its lease is."""
    older = C._replace(token=41)

    assert GUARDS["current-holder"].admits(SEEN, older)
    assert not GUARDS["current-lease"].admits(SEEN, older)


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_a_guard_says_what_it_does(guard):
    """A guard has a sentence; it is called broken exactly where check and write are two steps."""
    assert guard.says.endswith(".")
    assert guard.says.startswith("Broken: ") == guard.two_steps == guard.name.startswith("two-step-")


def test_an_identity_is_no_fencing():
    """The guard that compares identities is not called fencing."""
    assert "fenc" not in GUARDS["identity"].says.lower()
