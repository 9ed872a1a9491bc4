"""A timeline under a fix: what each event does, and the history that it leaves, the same every time."""

from __future__ import annotations

import duckdb
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import HEADER, replayed, timelines

from fencinglab import history
from fencinglab.audit import audit
from fencinglab.audit.rules import RULES
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import harms
from fencinglab.model.replay import Run, replay

ARTICLE = shelf.find("report-generation")
SHELF = [shelf.find(name) for name in shelf.names()]


def says(events: str, fix: str) -> list[str]:
    return [step.says for step in replayed(events, fix).steps]


# --- the article


def test_the_five_rows_of_the_article():
    """Step by step the resource is what the article's table says: nothing, nothing, 42 accepted, 41 refused, 42 again."""
    fenced = replay(ARTICLE, FIXES["fenced"])
    steps = [*fenced.steps, *fenced.afterwards]
    table = [steps[:2], steps[2:4], steps[4:6], steps[6:8], steps[8:]]
    writes = [[d.row for step in row for d in step.decisions if d.row["kind"] == "write"] for row in table]

    assert [[str(step.event) for step in row] for row in table] == [
        ["A acquires", "A reads"],
        ["A pauses", "lease expires"],
        ["B acquires", "B writes new-result"],
        ["A resumes", "A writes old-result"],
        ["B writes new-result"],
    ]
    assert [[(w["token"], w["decision"], w["reason"]) for w in row] for row in writes] == [
        [], [], [(42, "accepted", None)], [(41, "rejected", "newer_token")], [(42, "accepted", None)]
    ]  # fmt: skip
    assert table[0][0].says == "A is granted 41 until 01:00"
    assert table[2][0].says == "B is granted 42 until 02:01"
    assert table[3][1].says == "A wrote with 41 after 42 was accepted: rejected by at-or-above"
    assert fenced.final["report"].value == "new-result"


def test_without_fencing_the_old_result_stands():
    """Without fencing the fourth row replaces the new result, and that is the end: the fifth is tried afterwards."""
    unfenced = replay(ARTICLE, FIXES["unfenced"])

    assert unfenced.final["report"].value == "old-result"
    assert unfenced.steps[-1].says == "A wrote with 41 after 42 was accepted: accepted, nothing compared"


# --- time


@pytest.mark.parametrize(
    ("events", "fix", "sentence"),
    [
        ("A acquires; lease expires; B acquires", "unfenced", "B is granted 42 until 02:01"),
        ("A acquires; lease expires; B acquires", "longer-lease", "B is granted 42 until 10:01"),
        ("A acquires; A pauses; 40 s pass; B acquires", "unfenced", "B is refused: A holds the lease until 01:00"),
        ("A acquires; A pauses; 90 s pass; B acquires", "unfenced", "B is granted 42 until 02:32"),
        ("A acquires; A pauses; 90 s pass; B acquires", "longer-lease", "B is refused: A holds the lease until 05:00"),
        ("A acquires; A pauses; 90 s pass; B acquires", "grant-delay", "B is refused: nobody is granted A's lease before 02:00"),
        ("A acquires; A pauses; 130 s pass; B acquires", "grant-delay", "B is granted 42 until 03:12"),
        ("A acquires; 90 s pass; B acquires", "renewed-often", "B is refused: A holds the lease until 02:20"),
        ("A acquires; lease expires", "renewed-often", "A renews in time: its lease runs until 02:00"),
        ("A acquires; 90 s pass", "renewed-often", "A renews: its lease runs until 02:20 (the last of 4 renewals)"),
        ("A acquires; A pauses; 90 s pass", "renewed-often", "A's lease (41) ran out at 01:00"),
        ("A acquires; A is cut off; lease expires; B acquires", "renewed-often", "B is granted 42 until 02:01"),
        ("A acquires; A is cut off; 30 s pass", "renew-or-abort", "A does not reach the authority to renew and gives up"),
        ("A acquires; A pauses; lease expires; A resumes; 1 s pass", "renew-or-abort", "A is refused the renewal and gives up"),
        ("A acquires; lease expires; lease expires", "fenced", "no lease runs: A's ran out at 01:00"),
        ("lease expires", "fenced", "no lease runs"),
        ("1 s pass", "fenced", "nothing else happens"),
        ("A acquires; A renews", "fenced", "A renews: its lease runs until 01:01"),
        ("A acquires; lease expires; A renews", "fenced", "A is refused the renewal and goes on"),
        ("A acquires; A releases; 90 s pass", "renewed-often", "nothing else happens"),
        ("A crashes; A restarts; A acquires; 25 s pass", "renewed-often", "A renews: its lease runs until 01:22"),
    ],
)  # fmt: skip
def test_leases_run_out_by_their_length_under_the_fix(events, fix, sentence):
    """A longer lease, a renewal and a delay decide whether time is enough; a worker that stands still does not renew."""
    assert says(events, fix)[-1] == sentence


# --- what follows under a fix is told


@pytest.mark.parametrize(
    ("events", "fix", "sentence"),
    [
        ("A acquires; B acquires; B writes x", "fenced", "B holds no lease and does nothing"),
        ("A acquires; B acquires; B sends x; B's x arrives", "fenced", "nothing arrives: B did not send it"),
        ("A acquires; B acquires; B sends x; B's x is lost", "fenced", "nothing is lost: B did not send it"),
        ("A acquires; B acquires; B sends x; B's x is checked", "fenced", "nothing is checked: B did not send it"),
        ("A acquires; B acquires; B releases", "fenced", "B holds no lease and does nothing"),
        ("A acquires; B acquires; B renews", "fenced", "B holds no lease and does nothing"),
        ("A acquires; lease expires; B acquires; A acquires; A writes x", "unfenced", "A holds no lease and does nothing"),
        ("A acquires; A is cut off; A releases", "fenced", "A does not reach the authority to release its lease"),
        ("A acquires; B acquires; B causes mail outside", "fenced", "B holds no lease and does nothing"),
        ("A acquires; B acquires; B polls done", "fenced", "B holds no lease and does nothing"),
        ("A acquires; A checks its lease", "fenced", "A does not look at its lease under this fix"),
        ("A runs without fencing; A acquires; A checks its lease", "client-check", "A does not look at its lease under this fix"),
        ("A acquires; B acquires; B checks its lease", "client-check", "B holds no lease and does nothing"),
        ("A acquires; A checks its lease", "client-check", "A sees that it still holds its lease"),
        ("A acquires; lease expires; A checks its lease; A writes x", "client-check", "A holds no lease and does nothing"),
        ("A acquires; A checks its lease; lease expires; A acquires; lease expires; A writes x", "client-check", "A looks at its lease first, sees that it is gone, and gives up"),
        ("A acquires; lease expires; A checks its lease", "client-check", "A sees that its lease is gone and gives up"),
        ("A acquires; lease expires; A writes x", "client-check", "A looks at its lease first, sees that it is gone, and gives up"),
        ("A acquires; A is cut off; A writes x", "client-check", "A looks at its lease first, sees that it is gone, and gives up"),
        ("A acquires; A checks its lease; lease expires; A writes x", "client-check", "A wrote with 41 after its lease had run out: accepted, nothing compared"),
        ("A acquires; A releases; A writes x", "fenced", "A wrote with 41 after its lease had ended: accepted by at-or-above"),
        ("A acquires; authority is restored to 40; A writes x", "fenced", "A wrote with 41 after its lease had ended: accepted by at-or-above"),
        ("A acquires; A sends x; A's x is checked", "fenced", "nothing yet: here the check is part of the write, when it arrives"),
        ("A acquires; A sends x; A's x is checked", "two-step-token", "the receiver compares for x and finds nothing against it, and will write in another step"),
        ("A acquires; A sends x; lease expires; A's x is checked", "two-step-holder", "the receiver compares for x and refuses it"),
        ("A acquires; A sends x; lease expires; A's x is checked; A's x arrives", "two-step-holder", "A wrote with 41 after its lease had run out: rejected by two-step-holder"),
        ("A acquires; B acquires; B sends x; B's x is duplicated", "fenced", "nothing is duplicated: B did not send it"),
        ("A acquires; A sends x; A's x is duplicated; A's x arrives; A's x arrives", "latest-id", "A wrote again with 41: rejected by the duplicate rule (an id per attempt)"),
        ("A acquires; A sends x; A's x is duplicated; A's x is checked; A's x is checked; lease expires; A's x arrives; A's x arrives", "two-step-holder", "A wrote again with 41 after its lease had run out: accepted by two-step-holder"),
        ("A acquires; A sends x; A's x is checked; A's x arrives; lease expires; A's x arrives again", "two-step-holder", "A wrote again with 41 after its lease had run out: rejected by two-step-holder"),
        ("A acquires; A sends x; A's x is lost", "fenced", "x is lost: the receiver never sees it, and A learns nothing"),
        ("A acquires; A writes x, reply lost", "fenced", "A wrote with 41, and the reply is lost: accepted by at-or-above"),
        ("A acquires; A sends x; A crashes; A's x arrives", "fenced", "A wrote with 41, and the reply is lost: accepted by at-or-above"),
        ("A acquires; A writes x; A writes y", "identity", "A wrote with 41: accepted by identity"),
        ("A acquires; A reads; TTL deletes report; A writes x", "identity", "A wrote with 41 after its lease had ended: rejected by identity"),
        ("A acquires; A writes x; A writes x", "latest-id", "A wrote again with 41: rejected by the duplicate rule (an id per attempt)"),
        ("A acquires; A finishes as DONE; A writes x", "latest-id-terminal", "A wrote with 41: rejected by the terminal rule"),
        ("A acquires; A finishes as DONE; A releases; B acquires", "latest-id-terminal", "B is refused: report is finished"),
        ("A acquires; A finishes as DONE; A releases; B acquires", "latest-id", "B is granted 42 until 01:03"),
        ("A runs without fencing; A writes x", "latest-id", "A wrote without a token: accepted, nothing compared"),
        ("A runs without fencing; A writes x", "latest-id-strict", "A wrote without a token: rejected by a receiver that wants a token"),
        ("A runs without fencing; A runs with fencing; A acquires; A writes x", "latest", "A wrote with 41: accepted by latest"),
        ("A acquires; A causes mail outside; A causes mail outside", "fenced", "A causes mail: it happens outside, 2 times by now"),
        ("A acquires; A causes mail outside", "idempotency-key", "A causes mail: it happens outside"),
        ("A runs without fencing; A causes mail outside", "idempotency-key", "A causes mail: it happens outside"),
        ("A acquires; A causes mail outside; A causes mail outside", "idempotency-key", "A asks for mail outside: its key is known there, nothing happens"),
        ("A runs without fencing; A acquires; A stores x", "fenced", "A stores x under report/A"),
        ("A acquires; A stores x under k; A stores y under k", "fenced", "A stores y under k over x"),
        ("A acquires; A stores x under k; A stores x under k", "fenced", "A stores x under k"),
        ("B's clock runs 90 s ahead", "fenced", "B believes that it is 90 s later"),
        ("B's clock runs 90 s behind", "fenced", "B believes that it is 90 s earlier"),
        ("B's clock runs 90 s ahead; A acquires; B acquires", "fenced", "B is granted 42 until 02:32, while A holds it until 01:01"),
        ("B's clock runs 90 s behind; A acquires; lease expires; B acquires", "fenced", "B is refused: by its own clock A's lease is not over yet"),
        ("A is cut off; A acquires", "fenced", "A does not reach the authority and is granted nothing"),
        ("A acquires; A is cut off; A is back; A releases", "fenced", "A releases its lease"),
        ("A acquires; lease expires; B acquires; A releases", "fenced", "A is refused: the lease is no longer its own"),
        ("A acquires; TTL deletes report", "fenced", "report is gone with its marks; its tokens start again"),
        ("A acquires; TTL deletes report", "token-floor", "report is gone with its marks; its counter is kept elsewhere"),
        ("A acquires; TTL deletes report; B acquires", "fenced", "B is granted 41 until 01:02"),
        ("A acquires; TTL deletes report; B acquires", "token-floor", "B is granted 42 until 01:02"),
        ("TTL deletes report", "fenced", "there is no report to delete"),
        ("A acquires; authority is restored to 30", "fenced", "the authority believes that it issued 30 last and that nobody holds the lease"),
        ("A acquires; authority is restored to 30", "token-floor", "the authority finds its floor: it issued 41 last, and nobody holds the lease"),
        ("A acquires; authority is restored to 30; B acquires", "fenced", "B is granted 31 until 01:02"),
        ("A acquires; authority is restored to 30; B acquires", "token-floor", "B is granted 42 until 01:02"),
        ("A acquires; authority is restored to 30; B acquires; B writes x; A writes y", "unfenced", "A wrote with 41 after B with 31 was accepted: accepted, nothing compared"),
        ("A reads", "fenced", "A reads that nothing is written yet"),
        ("A acquires; A writes x; A finishes as DONE; A reads", "fenced", "A reads x and DONE"),
        ("A pauses", "fenced", "A stands still, holding nothing"),
    ],
)  # fmt: skip
def test_what_an_event_comes_to_is_a_sentence(events, fix, sentence):
    """Whatever a fix makes of an event is told in one sentence, also where nothing can come of it."""
    assert says(events, fix)[-1] == sentence


def test_a_refused_grant_is_no_slip():
    """Under a longer lease B is never granted the lease: it does nothing, and the old worker writes rightfully."""
    longer = replay(shelf.find("short-pause"), FIXES["longer-lease"])

    assert [step.says for step in longer.steps if step.event.worker == "B"] == [
        "B is refused: A holds the lease until 05:00", "B holds no lease and does nothing"
    ]  # fmt: skip
    assert not harms(longer)


@pytest.mark.parametrize("act", ["renews", "releases"])
def test_a_lease_that_is_anothers_did_not_run_out(act):
    """Where the authority issued the same token to another, the first is refused for not holding it, and nothing expired."""
    rows = replayed(f"A acquires; authority is restored to 40; B acquires; A {act}", "fenced").rows

    assert (rows[-1]["token"], rows[-1]["reason"]) == (41, "not_held")


def test_two_leases_are_two_sequences():
    """Two leases over one resource issue tokens of their own, and the rows say whose each is."""
    header = HEADER.replace("first", "leases: job-1, job-2\nfirst")
    rows = replayed("A acquires job-1; B acquires job-2; A writes x; B writes y", "unfenced", header).rows

    assert [(row["lease"], row["token"], row["resource"]) for row in rows] == [
        ("job-1", 41, "report"), ("job-2", 41, "report"), ("job-1", 41, "report"), ("job-2", 41, "report")
    ]  # fmt: skip


def test_a_lease_of_its_own_outlives_the_resource():
    """Where the lease is another item, a deletion takes the resource and its marks, and the lease still runs."""
    run = replayed(
        "A acquires; TTL deletes report; B acquires", "fenced", HEADER.replace("first", "leases: job\nfirst")
    )

    assert [step.says for step in run.steps[1:]] == [
        "report is gone with its marks", "B is refused: A holds the lease until 01:00"
    ]  # fmt: skip


def test_one_lease_may_cover_two_resources():
    """A grant of a lease that covers two resources is a row for each."""
    header = HEADER.replace("report", "report, index").replace("first", "leases: job\nfirst")
    rows = replayed("A acquires; A writes x to index", "fenced", header).rows

    assert [(row["kind"], row["resource"]) for row in rows] == [
        ("grant", "report"),
        ("grant", "index"),
        ("write", "index"),
    ]


# --- the history


def judged(*of: Run) -> list[tuple[set[str], set[str]]]:
    """The unsafe rules and the evidence rules that the audit finds broken in each run's history, all in one pass."""
    rows = [
        row | {name: f"{number}/{row[name]}" for name in ("resource", "lease", "order_scope")}
        for number, run in enumerate(of) for row in run.rows
    ]  # fmt: skip
    frame = pandas.DataFrame(rows, columns=list(history.NAMES))
    with duckdb.connect() as con:
        verdicts = audit.judge(con, history.read(con, frame)).df()
    number = verdicts["resource"].str.split("/").str[0].astype(int)
    broken = [{rule for rule in RULES if (verdicts[rule.name][number == run] == 1).any()} for run in range(len(of))]
    return [
        tuple({rule.name for rule in found if rule.group == group} for group in ("unsafe", "evidence"))
        for found in broken
    ]


# What only a replay knows: effects outside, who is newest where tokens are not presented, what a refusal came to.
BEYOND = {"twice", "final", "bytes"}
# The sequence itself is broken in these, whatever the receiver makes of it: the audit says so under every fix.
SEQUENCE = {
    "token_restarted",
    "token_shared",
    "scopes_mixed",
    "ttl_removed_live",
    "token_went_back",
    "unfenced_write",
    "terminal_twice",
}
RESTARTING = {"ttl-restart", "authority-restored", "scope-mismatch", "mixed-versions", "late-render-mixed-fleet"}


@pytest.fixture(scope="module")
def every():
    """{timeline: the runs under every fix, each with what the audit finds broken}."""
    runs = [replay(timeline, fix) for timeline in SHELF for fix in FIXES.values()]
    found = [*zip(runs, judged(*runs), strict=True)]
    return {name: [pair for pair in found if pair[0].timeline.name == name] for name in shelf.names()}


@pytest.mark.parametrize("name", shelf.names())
def test_the_audit_judges_the_history_as_the_replay_does(every, name):
    """Under every fix the history is whole, and the audit finds an unsafe rule broken where the replay finds such a harm."""
    for of, (unsafe, evidence) in every[name]:
        found = {harm.name for harm in harms(of) if harm.group == "unsafe"}
        because = of.fix.name, found, unsafe

        assert not evidence, (because, evidence)
        assert unsafe or not found - BEYOND, because
        if name in RESTARTING:
            assert unsafe <= SEQUENCE | {"stale_write_accepted"}, because
            continue
        assert found or not unsafe, because
        assert ("order" in found) == ("token_went_back" in unsafe), because
        assert ("terminal" in found) == ("terminal_twice" in unsafe), because
        assert "ownership" not in found or "order" in found or "stale_write_accepted" in unsafe, because


def test_a_row_says_what_was_attempted_and_what_was_held():
    """A refused write has its token, its reason, what the sender learned, what was held and the line that made it."""
    [row] = [row for row in replay(ARTICLE, FIXES["fenced"]).rows if row["decision"] == "rejected"]
    known = {
        name: row[name]
        for name in ("kind", "writer", "token", "fenced", "reason", "outcome", "operation", "current_token")
    }

    assert known == {
        "kind": "write", "writer": "A", "token": 41, "fenced": True, "reason": "newer_token", "outcome": "failed",
        "operation": None, "current_token": 42,
    }  # fmt: skip
    assert (row["before_token"], row["before_holder"], row["source"]) == (42, "B", "report-generation.timeline:21")
    assert row["at"].isoformat() == "2026-03-02T09:01:04"


def test_a_lost_reply_is_unknown_and_never_failed():
    """A write whose reply is lost is accepted, and its sender knows nothing; an id tells the repetition."""
    rows = replayed("A acquires; A writes x, reply lost; A writes x", "latest-id").rows[1:]

    assert [(row["decision"], row["outcome"], row["operation"]) for row in rows] == [
        ("accepted", "unknown", "A/41/write/1"), ("rejected", "failed", "A/41/write/1")
    ]  # fmt: skip


def test_a_refused_grant_and_what_is_done_outside_are_rows():
    """Who asked in vain stands in the history; an effect has a key where the fix gives it one, a poll the holder's token."""
    events = "A acquires; B acquires; A polls done; A causes mail outside; A raises alert late; A finishes as DONE; "
    rows = replayed(events + "A raises alert late; A releases; B acquires", "current-lease").rows
    keyed = replayed("A acquires; A causes mail outside; A causes mail outside", "idempotency-key").rows[1:]

    names = ("kind", "writer", "token", "fenced", "reason", "alert")
    assert [tuple(row[name] for name in names) for row in rows[1:] if row["kind"] not in ("finish", "release")] == [
        ("grant", "B", None, None, "held", None), ("poll", "A", 41, True, None, None), ("effect", "A", None, False, None, None),
        ("alert", "A", 41, True, None, "late"), ("alert", "A", 41, True, "duplicate", None), ("grant", "B", None, None, "terminal", None),
    ]  # fmt: skip
    assert [(row["operation"], row["reason"]) for row in keyed] == [("effect/mail", None), ("effect/mail", "duplicate")]
    assert rows[3]["operation"] is None


def test_a_delayed_write_was_sent_before_it_was_decided():
    """A message's row has the time at which it was sent, by its sender's clock, and that of the decision."""
    [*_, row] = replayed("A's clock runs 5 s ahead; A acquires; A sends x; 20 s pass; A's x arrives", "fenced").rows

    assert (row["at"] - row["sent_at"]).total_seconds() == 16


# --- always


@settings(max_examples=150, deadline=None)
@given(timelines(), st.sampled_from(sorted(FIXES)))
def test_any_timeline_under_any_fix(timeline, name):
    """Whatever can happen is replayed: a sentence for every event, time that never goes back, a row in every order place,
    and the same twice."""
    of, again = replay(timeline, FIXES[name]), replay(timeline, FIXES[name])
    times = [step.at for step in (*of.steps, *of.afterwards)]

    assert of == again
    assert len(times) == len(timeline.events) + len(timeline.afterwards)
    assert all(step.says for step in of.steps)
    assert times == sorted(times)
    assert [row["order_key"] for row in of.rows] == [str(n).zfill(40) for n in range(1, len(of.rows) + 1)]


@settings(max_examples=15, deadline=None)
@given(st.lists(timelines(size=12), min_size=1, max_size=5))
def test_any_history_is_a_history(drawn):
    """The rows of any run pass the check of the history, and the audit finds the record whole."""
    runs = [replay(timeline, FIXES["latest-id"]) for timeline in drawn]

    assert [evidence for _, evidence in judged(*runs)] == [set()] * len(runs)


def test_of_two_copies_the_refused_one_arrives_first():
    """A copy that was checked and refused arrives before one that was checked and found good, whichever was sent first."""
    lines = says(
        "A acquires; A sends x; A's x is duplicated; A's x is checked; lease expires; A's x is checked; "
        "A's x arrives; A's x arrives",
        "two-step-holder",
    )

    assert [line.rpartition(": ")[2] for line in lines[-2:]] == [
        "rejected by two-step-holder",
        "accepted by two-step-holder",
    ]
