"""The receiver decides and writes in one step, by guard, duplicate rule and terminal rule; and says why it refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fencinglab.history import REASONS
from fencinglab.model import lease as authority
from fencinglab.model.guard import GUARDS
from fencinglab.model.lease import Lease, fresh, held_by
from fencinglab.model.receiver import DUPLICATES, Held, Mutation, Rules, apply, decide, operation_id, refusal

HELD = Held(token=42, promised=42, version=3, value="new", operations=("write/1",))
LEASE = Lease(42, "B", 60)


def write(writer: str = "B", token: int | None = 42, **more: Any) -> Mutation:
    """A write that knows the present state."""
    return Mutation(**{"kind": "write", "writer": writer, "value": "x", "token": token, "version": 3} | more)


def rules(guard: str, **more: bool) -> Rules:
    return Rules(GUARDS[guard], **more)


# --- why

REFUSED = {
    "an older token": ("at-or-above", write("A", 41), 0, "newer_token"),
    "the token again": ("above", write(), 0, "equal_token"),
    "a token that was never issued": ("latest", write("C", 50), 0, "not_held"),
    "a mark that grants raise": ("promised", write("A", 41), 0, "newer_token"),
    "another's lease": ("current-holder", write("C", 42), 0, "not_held"),
    "a lease that ran out": ("current-holder", write(), 60, "expired"),
    "a holder that was superseded": ("current-holder", write("A", 41), 0, "newer_token"),
    "another state": ("identity", write(version=2), 0, "changed"),
}  # fmt: skip


@pytest.mark.parametrize(("guard", "mutation", "now", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_tells_the_reasons_apart(guard, mutation, now, reason):
    """What is refused leaves all as it was, and one word says why."""
    assert decide(HELD, LEASE, mutation, now, rules(guard)) == (HELD, reason)


def test_the_reasons_that_rules_understand_are_the_historys():
    """The receiver's words are those of the history, and two of its own where the history has none."""
    assert {reason for *_, reason in REFUSED.values()} - {*REASONS} == {"equal_token", "changed"}


@pytest.mark.parametrize("guard", GUARDS)
def test_a_write_without_a_token_carries_no_condition(guard):
    """What presents no token is compared with nothing, whatever the guard; a strict receiver refuses it."""
    old_version = write("A", None)

    assert refusal(HELD, LEASE, old_version, 0, rules(guard)) == ""
    assert refusal(HELD, LEASE, old_version, 0, rules(guard, strict=True)) == "no_token"


# --- duplicates and the terminal rule


def test_an_id_is_of_an_attempt_or_of_the_job():
    """An id per attempt differs between two attempts, an id per job does not, and without a rule there is none."""
    ids = {
        name: {operation_id(name, who, token, "write", 1) for who, token in (("A", 41), ("B", 42))}
        for name in DUPLICATES
    }

    assert {name: len(found) for name, found in ids.items()} == {"none": 1, "attempt": 2, "job": 1}
    assert ids["none"] == {""}


def test_a_known_operation_is_refused():
    """An operation whose id was accepted is refused; one with another id, or with none, is not."""
    assert decide(HELD, LEASE, write(operation="write/1"), 0, rules("at-or-above")) == (HELD, "duplicate")
    assert decide(HELD, LEASE, write(operation="write/1"), 60, rules("current-lease")) == (HELD, "duplicate")
    assert decide(HELD, LEASE, write(operation="write/2"), 0, rules("at-or-above"))[1] == ""
    assert decide(HELD, LEASE, write(), 0, rules("at-or-above"))[1] == ""


@pytest.mark.parametrize(
    ("kind", "reason"), [("finish", "terminal"), ("write", "terminal"), ("schedule", "terminal"), ("alert", "")]
)
def test_nothing_leaves_a_final_status(kind, reason):
    """Under the terminal rule a finished resource takes no more mutations but alerts; without it everything."""
    finished = apply(HELD, write(kind="finish", value="DONE"))

    assert refusal(finished, LEASE, write(kind=kind), 0, rules("at-or-above", terminal_once=True)) == reason
    assert refusal(finished, LEASE, write(kind=kind), 0, rules("at-or-above")) == ""


# --- what is written


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("write", {"value": "x"}),
        ("finish", {"status": "x", "terminal_version": 1}),
        ("schedule", {"next_poll": "x"}),
        ("retry", {"retry": "x"}),
        ("alert", {"alerts": ("x",)}),
    ],
)
def test_an_accepted_mutation_changes_its_field_and_the_marks(kind, changed):
    """Each kind changes its own field; all raise the marks and the identity of the state, and keep the id."""
    marks = {"token": 43, "promised": 43, "version": 4, "operations": ("write/1", "id")}

    assert apply(HELD, write(kind=kind, token=43, operation="id")) == HELD._replace(**changed, **marks)


def test_a_finish_is_one_step():
    """Status, what it points to and why it has nothing to point to change together or, refused, not at all."""
    finish = write(kind="finish", value="DONE", artifact="report/42")

    failed = finish._replace(value="FAILED", artifact="", reason="empty")

    assert apply(HELD, finish)[3:7] == ("report/42", "DONE", "", 1)
    assert apply(HELD, failed)[3:7] == ("new", "FAILED", "empty", 1)
    assert decide(HELD, LEASE, finish._replace(token=41), 0, rules("latest")) == (HELD, "newer_token")


@pytest.mark.parametrize("token", [None, 41])
def test_marks_never_fall(token):
    """A write with a lower token, or with none, leaves the marks as they were."""
    assert apply(HELD, write(token=token))[:2] == (42, 42)


def test_a_decision_is_check_and_write_in_one_step():
    """Whatever the guard, a decision is what check and write at the same moment give."""
    for guard in GUARDS:
        for mutation in (write(), write("A", 41), write("A", None)):
            refused = refusal(HELD, LEASE, mutation, 0, rules(guard))
            assert decide(HELD, LEASE, mutation, 0, rules(guard)) == (
                HELD if refused else apply(HELD, mutation),
                refused,
            )


# --- authority and receiver together

WORKERS = st.sampled_from(["A", "B", "C"])
PATIENT = settings(
    max_examples=60, stateful_step_count=30, derandomize=True, database=None, deadline=None, phases=[Phase.generate]
)  # fmt: skip


class Together(RuleBasedStateMachine):
    """Workers ask for leases and write under any grant that they ever had, in any order."""

    guard = "unguarded"
    grant = staticmethod(authority.grant)
    watched: tuple[str, ...] = ()

    @initialize()
    def begin(self) -> None:
        self.lease, self.held, self.now = fresh(41), Held(), 0
        self.grants: list[Lease] = []
        self.accepted: list[tuple[Lease, int, str]] = []  # the grant, how many there were, who held

    @rule(worker=WORKERS)
    def acquire(self, worker: str) -> None:
        before = held_by(self.lease, self.now)
        granted = self.grant(self.lease, worker, self.now, 10)
        if granted:
            assert "one holder" not in self.watched or not before, f"{worker} was granted {before}'s lease"
            self.lease = granted
            self.grants.append(granted)
            self.held = self.held._replace(promised=max(self.held.promised, granted.token))

    @rule(seconds=st.integers(1, 15))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.grants)
    @rule()
    def renew(self) -> None:
        newest = self.grants[-1]
        self.lease = authority.renew(self.lease, newest.holder, newest.token, self.now, 10) or self.lease

    @precondition(lambda self: self.grants)
    @rule()
    def release(self) -> None:
        newest = self.grants[-1]
        self.lease = authority.release(self.lease, newest.holder, newest.token) or self.lease

    @precondition(lambda self: self.grants)
    @rule(which=st.integers(0, 30))
    def write(self, which: int) -> None:
        of = self.grants[which % len(self.grants)]
        mutation = Mutation("write", of.holder, f"value-{of.token}", of.token)
        self.held, refused = decide(self.held, self.lease, mutation, self.now, rules(self.guard))
        if not refused:
            self.accepted.append((of, len(self.grants), held_by(self.lease, self.now)))

    @invariant()
    def tokens_rise(self) -> None:
        tokens = [grant.token for grant in getattr(self, "grants", [])]
        assert "tokens rise" not in self.watched or tokens == sorted({*tokens}), tokens

    @invariant()
    def order(self) -> None:
        tokens = [grant.token for grant, *_ in getattr(self, "accepted", [])]
        assert "order" not in self.watched or tokens == sorted(tokens), tokens

    @invariant()
    def one_write(self) -> None:
        tokens = [grant.token for grant, *_ in getattr(self, "accepted", [])]
        assert "one write a grant" not in self.watched or len(tokens) == len({*tokens}), tokens

    @invariant()
    def ownership(self) -> None:
        for grant, grants, _ in getattr(self, "accepted", []):
            assert "ownership" not in self.watched or grant == self.grants[grants - 1], grant

    @invariant()
    def holder(self) -> None:
        for grant, _, holder in getattr(self, "accepted", []):
            assert "holder" not in self.watched or grant.holder == holder, grant


def watch(guard: str, *watched: str, grant: Any = authority.grant) -> None:
    """Drive authority and receiver and hold them to these invariants."""
    of = {"guard": guard, "watched": watched, "grant": staticmethod(grant)}
    run_state_machine_as_test(type("Watched", (Together,), of), settings=PATIENT)


HOLDS = {
    "unguarded": (),
    "at-or-above": ("order",),
    "above": ("order", "one write a grant"),
    "promised": ("order", "ownership"),
    "latest": ("order", "ownership"),
    "current-holder": ("holder",),
    "current-lease": ("holder", "order", "ownership"),
}


@pytest.mark.parametrize("guard", HOLDS)
def test_what_a_guard_promises_holds(guard):
    """In whatever order workers ask, wait and write: tokens rise, one holds, and the guard keeps what it promises."""
    watch(guard, "tokens rise", "one holder", *HOLDS[guard])


@pytest.mark.parametrize("broken", sorted({name for names in HOLDS.values() for name in names}))
def test_without_a_guard_each_promise_breaks(broken):
    """Each of these promises is found broken where nothing is compared: the check can fail."""
    with pytest.raises(AssertionError):
        watch("unguarded", broken)


@pytest.mark.parametrize(
    ("guard", "broken"),
    [
        ("at-or-above", "ownership"),  # it does not know of a grant before its first write
        ("at-or-above", "one write a grant"),
        ("above", "ownership"),
        ("promised", "holder"),  # late is not stale
        ("current-holder", "ownership"),  # the same worker's older lease
        ("current-holder", "order"),
    ],
)
def test_what_a_guard_does_not_promise_breaks(guard, broken):
    """What a guard leaves open is found broken under it."""
    with pytest.raises(AssertionError):
        watch(guard, broken)


def no_new_token(lease: Lease, worker: str, now: int, length: int) -> Lease | None:
    """An authority that grants a lease under the token that it had."""
    granted = authority.grant(lease, worker, now, length)
    return granted._replace(token=41) if granted else None


def to_everybody(lease: Lease, worker: str, now: int, length: int) -> Lease:
    """An authority that grants a lease that still runs."""
    return Lease(lease.token + 1, worker, now + length)


@pytest.mark.parametrize(("grant", "broken"), [(no_new_token, "tokens rise"), (to_everybody, "one holder")])
def test_a_broken_authority_is_caught(grant, broken):
    """An authority that keeps a token, or grants what another holds, breaks the invariant that is its own."""
    with pytest.raises(AssertionError):
        watch("unguarded", broken, grant=grant)
