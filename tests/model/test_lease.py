"""The authority grants one lease at a time, under a token that rises, and refuses what is no longer a holder's."""

from __future__ import annotations

import pytest

from fencinglab.model.lease import Lease, fresh, grant, held_by, release, renew, restore, why_not

HELD = Lease(41, "A", 60)


def test_the_first_token_can_be_set():
    """The first grant issues the token that the authority was told to begin with."""
    assert grant(fresh(41), "A", now=0, length=60) == HELD


@pytest.mark.parametrize(("now", "holder"), [(0, "A"), (59, "A"), (60, ""), (61, "")])
def test_a_lease_runs_out_by_itself(now, holder):
    """A lease is its holder's until the second in which it ends, and nobody's from then on."""
    assert held_by(HELD, now) == holder


@pytest.mark.parametrize("worker", ["A", "B"])
def test_nobody_is_granted_a_running_lease(worker):
    """While a lease runs nobody is granted it, not even its holder."""
    assert grant(HELD, worker, now=59, length=60) is None


@pytest.mark.parametrize("worker", ["A", "B"])
def test_every_grant_raises_the_token(worker):
    """The token rises with every grant, also to the same holder."""
    assert grant(HELD, worker, now=60, length=60) == Lease(42, worker, 120)


def test_a_delay_holds_back_every_grant_after_an_expiry():
    """With a delay a lease that ran out is granted again only when the delay is over as well."""
    assert grant(HELD, "B", now=69, length=60, delay=10) is None
    assert grant(HELD, "B", now=70, length=60, delay=10) == Lease(42, "B", 130)


def test_a_released_lease_is_free_at_once():
    """A release keeps the token, and no delay holds back the next grant."""
    released = release(HELD, "A", 41)

    assert released == Lease(41)
    assert grant(released, "B", now=1, length=60, delay=1000) == Lease(42, "B", 61)


def test_a_renewal_keeps_the_token():
    """A renewal gives new time from now on under the same token."""
    assert renew(HELD, "A", 41, now=30, length=60) == Lease(41, "A", 90)


@pytest.mark.parametrize(("worker", "token", "now"), [("B", 41, 30), ("A", 40, 30), ("A", 41, 60)])
def test_a_renewal_needs_holder_token_and_time(worker, token, now):
    """Another worker, an older token and a lease that ran out are each refused."""
    assert renew(HELD, worker, token, now, length=60) is None


@pytest.mark.parametrize(("worker", "token"), [("B", 41), ("A", 40)])
def test_a_release_needs_holder_and_token(worker, token):
    """Nobody ends a lease that is another's, or its own newer one by an older token."""
    assert release(HELD, worker, token) is None


@pytest.mark.parametrize(
    ("worker", "token", "reason"),
    [("A", 40, "newer_token"), ("B", 41, "not_held"), ("A", 42, "not_held"), ("A", 41, "expired")],
)
def test_why_a_renewal_is_refused(worker, token, reason):
    """An older token, another's lease, a token from before a backup and a lease that ran out are told apart."""
    assert why_not(HELD, worker, token) == reason


def test_a_restored_authority_issues_old_tokens_again():
    """After a backup the next grant has a token that was issued before, unless a floor was kept."""
    assert grant(restore(HELD, 30), "B", now=0, length=60) == Lease(31, "B", 60)
    assert grant(restore(HELD, 30, floor=True), "B", now=0, length=60) == Lease(42, "B", 60)
