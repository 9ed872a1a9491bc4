"""What went wrong in a run is told from its decisions, whatever tokens were presented."""

from __future__ import annotations

import pytest
from timelines import HEADER, replayed

from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import HARMS, harms, stale_attempts, unsafe, why_idle
from fencinglab.model.replay import replay

TAKEN = "A acquires; lease expires; B acquires; "


def found(events: str, fix: str = "unfenced") -> dict[str, tuple[int, ...]]:
    """The harms of these events by name, with the events counted from 1."""
    return {harm.name: tuple(line - 6 for line in harm.lines) for harm in harms(replayed(events, fix))}


CASES = {
    "a stale write after a newer one": (TAKEN + "B writes new; A writes old", "unfenced", {"order": (5,), "ownership": (5,), "final": (5,)}),
    "a stale write before a newer one": (TAKEN + "A writes old; B writes new", "unfenced", {"ownership": (4,)}),
    "a stale write that is refused": (TAKEN + "B writes new; A writes old", "fenced", {}),
    "a stale write that is refused, alone": (TAKEN + "A writes old", "latest", {}),
    "finished twice": ("A acquires; A finishes as DONE; A finishes as FAILED", "unfenced", {"terminal": (3,)}),
    "written when it was finished": ("A acquires; A finishes as DONE; A writes x", "latest-id", {"terminal": (3,)}),
    "repeated when it was finished": ("A acquires; A writes x; A finishes as DONE; A writes x", "latest-id", {}),
    "an alert twice": ("A acquires; A raises alert a; A raises alert a", "unfenced", {"twice": (3,)}),
    "two alerts": ("A acquires; A raises alert a; A raises alert b", "unfenced", {}),
    "an effect twice": ("A acquires; A causes mail outside; A causes mail outside", "unfenced", {"twice": (3,)}),
    "an effect that its key stops": ("A acquires; A causes mail outside; A causes mail outside", "idempotency-key", {}),
    "bytes behind a final pointer": ("A acquires; A stores x under k; A finishes as DONE; A stores y under k", "unfenced", {"bytes": (4,)}),
    "bytes that are the same": ("A acquires; A stores x under k; A finishes as DONE; A stores x under k", "unfenced", {}),
    "bytes before the end": ("A acquires; A stores x under k; A stores y under k; A finishes as DONE", "unfenced", {}),
    "bytes that nothing points to": ("A acquires; A stores x; A finishes as DONE; A stores y under k", "unfenced", {}),
    "a write twice": ("A acquires; A writes x; A writes x", "unfenced", {}),
    "late": ("A acquires; lease expires; A writes x", "unfenced", {"late": (3,)}),
    "late, and thrown away": ("A acquires; lease expires; A writes x", "holder", {"final": (3,), "wasted": (3,)}),
    "a second write": ("A acquires; A writes x; A writes y", "fenced-above", {"wasted": (3,)}),
    "its own success": ("A acquires; A writes x, reply lost; A writes x", "identity", {"misled": (3,)}),
    "its own success, told by its id": ("A acquires; A writes x, reply lost; A writes x", "latest-id", {}),
    "its own success, which it knows of": ("A acquires; A writes x; A writes x", "fenced-above", {}),
    "its own lease again": ("A acquires; A's clock runs 90 s ahead; A acquires", "unfenced", {}),
    "two at once": ("B's clock runs 90 s ahead; A acquires; B acquires", "unfenced", {"overlap": (3,)}),
    "a new life": ("A acquires; A finishes as DONE; A releases; TTL deletes report; B acquires; B finishes as DONE", "unfenced", {}),
    "no token at all": (TAKEN + "A runs without fencing; B writes new; A writes old", "latest-id", {"order": (6,), "ownership": (6,), "final": (6,)}),
    "the new holder's result is refused": (TAKEN + "A writes old; B writes new; B finishes as DONE", "fenced-id-per-job", {"ownership": (4,), "final": (5,), "wasted": (5,)}),
    "something is on its way": (TAKEN + "B writes new; B sends newer; A writes old", "unfenced", {"order": (6,), "ownership": (6,)}),
    "a newer write that was refused": (TAKEN + "A writes old; B writes new; A writes older", "identity", {"ownership": (4, 6), "final": (6,), "wasted": (5,)}),
    "late, thrown away, and then stale": ("A acquires; lease expires; A writes x; A writes y; B acquires; A writes z", "holder", {"final": (3,), "wasted": (3, 4)}),
    "the same value when it was finished": ("A acquires; A writes x; A finishes as DONE; A writes x", "unfenced", {}),
    "a version without a lease": ("A runs without fencing; A writes x", "unfenced", {}),
    "a lease that ends as another begins": ("A acquires; 59 s pass; B acquires", "unfenced", {}),
    "its own lease again, which another asked for": ("A acquires; B acquires; A's clock runs 90 s ahead; A acquires", "unfenced", {}),
    "another's lease, after a stale write": (TAKEN + "A writes old; A's clock runs 90 s ahead; A acquires", "unfenced", {"ownership": (4,), "overlap": (6,)}),
}  # fmt: skip


@pytest.mark.parametrize(("events", "fix", "expected"), CASES.values(), ids=CASES)
def test_harm_is_found_where_it_is_done(events, fix, expected):
    """Each kind of harm is found in its line, and where there is none, none is found."""
    assert found(events, fix) == expected


def test_every_harm_is_in_a_case():
    """Together the cases show every kind of harm."""
    assert {name for *_, expected in CASES.values() for name in expected} == {*HARMS}


def test_a_line_is_told_once_and_from_the_top_down():
    """Harm on two resources is told by line, in the order of the lines, and a grant over both once."""
    header = HEADER.replace("report", "one, two\nleases: both")
    events = (
        "B's clock runs 90 s ahead; A acquires; B acquires; B writes new to one; B writes new to two; "
        "A writes old to two; A writes old to one"
    )
    run = replayed(events, "unfenced", header)

    assert {harm.name: harm.lines for harm in harms(run)} == {
        "order": (13, 14), "ownership": (13, 14), "final": (13, 14), "overlap": (10,)
    }  # fmt: skip


def test_a_token_that_starts_again_hides_nothing():
    """A stale write under a token that was issued twice is stale, though its token equals the newest."""
    run = replay(shelf.find("ttl-restart"), FIXES["latest-id"])

    assert [harm.name for harm in unsafe(run)] == ["order", "ownership", "final"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("paused-before-acquiring", "A paused in line 8 before it had acquired, so it held no token to grow old"),
        (
            "killed-for-good",
            "A crashed in line 10 and never came back, and nothing of it arrived after a newer grant",
        ),
        ("second-write", "nobody took over"),
        ("report-generation", ""),
    ],
)
def test_a_timeline_that_shows_nothing_says_why(name, reason):
    """The two wrong reproductions attempt no stale write and show no harm; the reason is found in their events."""
    run = replay(shelf.find(name), FIXES["unfenced"])

    assert why_idle(run) == reason
    assert bool(stale_attempts(run)) == bool(harms(run)) == (not reason)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (TAKEN + "B releases; A acquires; A writes x", "every write came from the newest holder"),
        (TAKEN + "B writes x; A renews", "every write came from the newest holder"),  # stale, and no write
        ("A acquires; A pauses; A resumes; A crashes; A restarts", "nobody took over"),
        ("A reads", "nobody took over"),
        ("A acquires; A crashes", "A crashed in line 8 and never came back, and nothing of it arrived after a newer grant"),
    ],
)  # fmt: skip
def test_why_no_write_was_stale(events, reason):
    """Where nobody took over, or the old worker came back as the newest holder, that is the reason."""
    assert why_idle(replayed(events, "unfenced")) == reason
