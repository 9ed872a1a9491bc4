"""What stands behind a verdict: rows in sentences, suspects, who and what was affected, what is missing."""

from __future__ import annotations

import string
from datetime import datetime
from typing import Any

import agree
import duckdb
import histories
import pytest

from fencinglab.audit import advice, audit, evidence, gaps
from fencinglab.audit.audit import Declared, assess
from fencinglab.audit.rules import BY_NAME, RULES

SECOND = histories.SECOND
Row = dict[str, Any]


@pytest.fixture
def con():
    """A fresh database."""
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        yield connection


def row(number: int, kind: str, writer: str | None, token: int | None, **more: Any) -> Row:
    """One accepted mutation of job-1, whose lease is its own."""
    return {
        "resource": "job-1", "lease": "job-1", "order_key": histories.order_key(number), "order_scope": "s", "kind": kind,
        "at": histories.START + number * SECOND, "at_precision": 0, "writer": writer, "token": token,
        "fenced": True if token is not None else None, "protected": True, "decision": "accepted", "outcome": "ok",
        "source": f"log:{number}",
    } | more  # fmt: skip


def grant(number: int, holder: str, token: int, before: str = "", **more: Any) -> Row:
    """A grant to a holder."""
    given = {
        "before_token": token - 1 if before else None,
        "after_token": token,
        "before_holder": before,
        "after_holder": holder,
    }
    return row(number, "grant", holder, token, **given | more)


def judged(
    con: duckdb.DuckDBPyConnection, *rows: Row, declared: Declared = Declared(rising=True), **settings: Any
) -> audit.Audit:
    """The audit of these rows; `history` and `verdicts` are on the connection."""
    audit.load(con, agree.relation(con, list(rows)))
    audit.judge_all(con, **settings)
    return assess(con, declared)


TAKEOVER = (grant(1, "a", 1), row(2, "write", "a", 1), grant(3, "b", 2, "a"), row(4, "write", "b", 2))
STALE = (*TAKEOVER, row(5, "write", "a", 1))


# --- sentences

NOTHING = dict.fromkeys(evidence._SHOWN) | {"newer_token": None, "newer_holder": None, "newer_at": None}
KNOWN = NOTHING | {
    "writer": "a", "token": 1, "before_token": 2, "after_token": 2, "before_holder": "b", "after_holder": "c", "kind": "poll",
    "before_status": "DONE", "after_status": "NEW", "newer_token": 3, "newer_holder": "d", "operation": "op-1", "alert": "al-1",
    "before_expires_at": datetime(2026, 3, 2, 9, 0, 5), "at": datetime(2026, 3, 2, 9, 0, 7, 250_000), "lease": "l-1",
    "fell": "attempt", "token_width": 2, "expiry_unit": "ms",
}  # fmt: skip

SAYS = {
    "token_went_back": ("a wrote with 1 after 3 (d) had been accepted", "somebody wrote with no token after a newer one had been accepted"),
    "stale_write_accepted": ("a wrote with 1 after 3 (d) had been granted", "somebody wrote with no token after a newer one had been granted"),
    "token_shared": ("a used token 1, which another worker had too", "somebody used token no token, which another worker had too"),
    "state_went_back": ("attempt fell in one write", "not known fell in one write"),
    "operation_twice": ("operation op-1 was accepted before", "operation not known was accepted before"),
    "alert_twice": ("alert al-1 was not the first", "alert not known was not the first"),
    "unfenced_delete": ("a ended the lease that b held", "somebody ended the lease that nobody held"),
    "leases_overlap": ("c was granted 1 while b held until 2026-03-02T09:00:05Z", "nobody was granted no token while nobody held until not known"),
    "time_went_back": (
        "this row is later in order and earlier in time (2026-03-02T09:00:07.250Z)",
        "this row is later in order and earlier in time (not known)"),
    "rejected_stale": ("a was refused with 1: 2 was held", "somebody was refused with no token: a newer one was held"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), SAYS.items(), ids=SAYS)
def test_sentences(name, expected):
    """A row says what happened in one sentence, with a word in place of each name that is not known."""
    assert tuple(evidence.sentence(BY_NAME[name], given) for given in (KNOWN, NOTHING)) == expected


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_sentences(rule):
    """The sentence of every rule uses only what a row has, and is whole whatever is known."""
    fields = {name for _, name, _, _ in string.Formatter().parse(rule.says) if name}

    assert fields <= {*NOTHING, "who", "newer", "held"}
    for given in (KNOWN, NOTHING, KNOWN | {"writer": "{token}", "before_status": "%s {0}", "fell": "{"}):
        assert evidence.sentence(rule, given)
        assert "None" not in evidence.sentence(rule, given)


def test_zero_is_a_token():
    """A token of 0 is known."""
    assert evidence.sentence(BY_NAME["token_went_back"], KNOWN | {"token": 0}).startswith("a wrote with 0 after")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 3, 2, 9), "2026-03-02T09:00:00Z"),
        (datetime(2026, 3, 2, 9, 0, 0, 1500), "2026-03-02T09:00:00.001Z"),
    ],
)
def test_times_are_written_short(moment, text):
    """Times are ISO text in UTC, with milliseconds where there is a fraction."""
    assert evidence.time_text(moment) == text


# --- findings


def test_a_finding_names_the_newer_grant(con):
    """A stale write comes with the first newer grant before it: its token, its holder and its time."""
    found = evidence.findings(con, judged(con, *STALE), 10)
    [finding] = found["token_went_back"]

    assert list(found) == ["token_went_back"]
    assert (finding["source"], finding["newer_token"], finding["newer_holder"]) == ("log:5", 2, "b")
    assert finding["newer_at"] == datetime(2025, 10, 9, 8, 53, 23)
    assert finding["says"] == "a wrote with 1 after 2 (b) had been accepted"


def test_the_first_newer_grant_is_named(con):
    """Of several newer grants the one that came first is named, and one that came later is not."""
    rows = (*TAKEOVER, grant(5, "c", 3, "b"), row(6, "write", "c", 3), row(7, "write", "a", 1), grant(8, "d", 4, "c"))
    [finding] = evidence.findings(con, judged(con, *rows), 10)["token_went_back"]

    assert (finding["newer_token"], finding["newer_holder"]) == (2, "b")


def test_grants_of_other_leases_are_not_newer(con):
    """Tokens of another lease, another order or an earlier life of the item are not newer, however high."""
    elsewhere = [
        grant(1, "x", 50, resource="job-2", lease="job-2"), grant(1, "y", 60, order_scope="other", resource="job-3"),
        grant(1, "z", 70, before_image=0, after_image=5), row(2, "delete", "z", 70, before_image=5, after_image=0, before_holder="z"),
    ]  # fmt: skip
    again = [dict(r, order_key=histories.order_key(10 + n)) for n, r in enumerate(STALE)]
    again[0] |= {"before_image": 0}
    found = evidence.findings(con, judged(con, *elsewhere, *again), 10)
    [finding] = found["token_went_back"]

    assert (finding["newer_token"], finding["newer_holder"]) == (2, "b")


def test_findings_are_first_in_order_first(con):
    """Findings come in the order of the receiver, at most as many as asked for; every_finding has all."""
    rows = [*TAKEOVER, *(row(n, "write", "a", 1) for n in range(12, 4, -1))]
    done = judged(con, *rows)
    found = evidence.findings(con, done, 3)["token_went_back"]
    every = [(result.rule.name, finding["source"]) for result, finding in evidence.every_finding(con, done)]

    assert [finding["source"] for finding in found] == ["log:5", "log:6", "log:7"]
    assert every == [("token_went_back", f"log:{n}") for n in range(5, 13)]
    assert len(evidence.broken_rows(con, done)) == 8


def test_open_rows_have_no_sentence(con):
    """What could not be decided is listed without saying that anything happened."""
    judged(con, *TAKEOVER, row(5, "write", None, None))

    assert [(r["source"], "says" in r) for r in evidence.undecided(con, "unfenced_write", 5)] == [("log:5", False)]


def test_a_healthy_history_has_no_findings(con):
    """Where nothing was broken there is nothing to show."""
    done = judged(con, *TAKEOVER)

    assert (evidence.findings(con, done, 5), evidence.resources(con, done), evidence.broken_rows(con, done)) == (
        {},
        [],
        [],
    )


# --- who and what


def of(resource: str, *rows: Row) -> list[Row]:
    """The rows as another resource's."""
    return [r | {"resource": resource, "lease": resource} for r in rows]


def test_affected_resources_are_worst_first(con):
    """More core violations first, then more unsafe ones, then what stayed open, then windows; by name where equal."""
    twice = [row(n, "write", "a", 1, operation="op") for n in (5, 6)]
    late = row(2, "write", "a", 1, before_expires_at=histories.START, before_holder="a")
    rows = [
        *of("e-late", grant(1, "a", 1), late),
        *of("d-open", *TAKEOVER, row(5, "write", None, None)),
        *of("c-unsafe", grant(1, "a", 1), *twice),
        *of("b-stale", *STALE),
        *of("a-stale", *STALE),
        *of("z-stale-twice", *STALE, row(6, "write", "a", 1)),
        *of("healthy", *TAKEOVER),
    ]
    found = evidence.resources(con, judged(con, *rows))

    assert [r["resource"] for r in found] == ["z-stale-twice", "a-stale", "b-stale", "c-unsafe", "d-open", "e-late"]
    assert {n: found[0][n] for n in ("core", "unsafe", "window", "undecided", "holders", "writes", "stale", "unfenced", "late", "rules")} == {
        "core": 2, "unsafe": 2, "window": 0, "undecided": 0, "holders": 2, "writes": 4, "stale": 2, "unfenced": 0, "late": 0,
        "rules": "token_went_back",
    }  # fmt: skip
    assert (found[0]["first_seen"], found[0]["last_seen"]) == (
        datetime(2025, 10, 9, 8, 53, 21),
        datetime(2025, 10, 9, 8, 53, 26),
    )
    assert [(r["window"], r["late"], r["undecided"]) for r in found[4:]] == [(0, 0, 1), (1, 1, 0)]


FLEETS = {
    "uuids": [f"importer-{n:08x}-1234-4abc-8def-0123456789ab" for n in range(7)],
    "hashes": [f"web.{n:010x}.pod" for n in range(7)],
    "numbers": [f"worker-{n}" for n in range(10, 17)],
}


@pytest.mark.parametrize("names", FLEETS.values(), ids=FLEETS)
def test_a_fleet_is_one_pattern(con, names):
    """More than five names that differ only in random ids are one line, with their counts summed."""
    rows = [r for n, name in enumerate(names) for r in of(f"job-{n}", grant(1, name, 1), row(2, "write", name, 1))]
    [found] = evidence.writers(con, judged(con, *rows), 20)

    assert (found["names"], found["accepted"]) == (7, 14)
    assert "*" in found["writer"]
    assert found["writer"].replace("*", "") in names[0] or found["writer"].split("*")[0] in names[0]


def test_few_names_stay_apart(con):
    """Five names of a pattern are five writers, as are names that differ in words."""
    names = [*(f"worker-{n}" for n in range(10, 15)), "cron", "support", "alice", "bob", "carol", "dave"]
    done = judged(con, *(r for n, name in enumerate(names) for r in of(f"job-{n}", grant(1, name, 1))))

    assert [(w["writer"], w["names"]) for w in evidence.writers(con, done, 20)] == [(name, 1) for name in sorted(names)]


def test_writers_are_worst_first(con):
    """Who wrote with an old token comes first, then who wrote without any, then late, then the busy ones; and only so many."""
    late = row(3, "write", "late", 1, before_expires_at=histories.START, before_holder="late")
    rows = [
        *STALE,
        *of("job-2", grant(1, "u", 1), row(2, "write", "u", None, fenced=False)),
        *of("job-3", grant(1, "late", 1), late),
        *of("job-4", *(grant(n, "busy", n) for n in range(1, 9))),
    ]
    done = judged(con, *rows)

    assert [w["writer"] for w in evidence.writers(con, done, 4)] == ["a", "u", "late", "busy"]


def test_statuses_that_look_final(con):
    """How often each status was entered and left is counted; a row that finds and leaves the same status is neither."""
    steps = [
        ("QUEUED", "RUNNING"),
        ("RUNNING", "DONE"),
        (None, "QUEUED"),
        ("DONE", "DONE"),
        ("RUNNING", "FAILED"),
        ("FAILED", "RUNNING"),
    ]
    rows = [row(n, "write", "a", 1, before_status=b, after_status=a) for n, (b, a) in enumerate(steps, 1)]
    refused = row(
        9, "write", "a", 1, before_status="DONE", after_status="RUNNING", decision="rejected", outcome="failed"
    )
    judged(con, *rows, refused)

    assert [tuple(s.values()) for s in evidence.statuses(con)] == [
        ("RUNNING", 2, 2), ("DONE", 1, 0), ("FAILED", 1, 1), ("QUEUED", 1, 1),
    ]  # fmt: skip


PROCESSES = {
    "wp-cron/web-1": "WordPress cron", "WP_Cron": "WordPress cron", "action-scheduler/web-2": "Action Scheduler",
    "cron-host-3": "system cron", "queue-worker/q-4": "queue workers", "sqs-consumer": "queue workers", "lambda/poller": "Lambda",
    "arn:aws:lambda:x": "Lambda", "recovery/deploy-118": "deployment recovery", "dlq-replay": "dead-letter replay",
    "Dead-Letter": "dead-letter replay", "support-alice": "support tools", "manual fix": "support tools", "node-7": None,
}  # fmt: skip


@pytest.mark.parametrize(("name", "process"), PROCESSES.items(), ids=PROCESSES)
def test_processes_by_their_names(con, name, process):
    """Which of the processes that can poll or finish were seen is told by the names of writers and holders."""
    judged(con, row(1, "write", name, 1), row(2, "write", None, None, after_holder="node-7"))

    assert [p for p, seen in evidence.processes(con).items() if seen] == ([process] if process else [])


def test_a_holder_is_seen_too(con):
    """A process that only held a lease was seen."""
    judged(con, row(1, "write", None, None, after_holder="lambda/poller"))

    assert evidence.processes(con)["Lambda"] is True


def test_counts(con):
    """Grants, takeovers, writes, unrelated changes and failed acquires are counted apart."""
    rows = [
        *TAKEOVER, row(5, "write", None, None, protected=False), row(6, "poll", "b", 2), row(7, "delete", "b", 2),
        grant(8, "c", 3, decision="rejected", outcome="failed"), row(9, "write", "a", 1, decision="rejected", outcome="failed"),
    ]  # fmt: skip
    judged(con, *rows)

    assert evidence.counts(con) == {"contention": 1, "unrelated": 1, "grants": 2, "takeovers": 1, "writes": 3}


def test_takeovers_that_cannot_be_seen_are_not_none(con):
    """Where no grant shows who held before, nobody says that nobody took over."""
    judged(con, *(one | {"before_holder": None} for one in TAKEOVER))

    assert evidence.counts(con)["takeovers"] is None


def test_the_busiest_resources(con):
    """Where nothing is wrong the resources with most takeovers are shown."""
    judged(
        con,
        *of("calm", grant(1, "a", 1)),
        *of("busy", *TAKEOVER),
        *of("renewed", grant(1, "a", 1), grant(2, "a", 2), grant(3, "a", 3)),
    )

    assert evidence.busiest(con, 2) == ["busy", "renewed"]


def test_who_presented_the_newer_token(con):
    """The newer write is told by what it presented and by whom, whatever the item held; the newer grant by what it gave."""
    re_created = [
        grant(1, "a", 5), row(2, "delete", None, None), grant(3, "b", 1, before_image=0),
        row(4, "write", "a", 5, after_token=1, after_holder="b"), row(5, "write", "b", 1, before_token=1, after_token=1),
    ]  # fmt: skip
    [found] = evidence.findings(con, judged(con, *re_created), 9)["token_went_back"]
    assert (found["newer_token"], found["newer_holder"]) == (5, "a")
    assert found["says"] == "b wrote with 1 after 5 (a) had been accepted"

    given = [grant(1, "a", 1), grant(2, "b", 2, "a") | {"writer": "authority"}, row(3, "write", "a", 1)]
    [found] = evidence.findings(con, judged(con, *given), 9)["stale_write_accepted"]
    assert found["says"] == "a wrote with 1 after 2 (b) had been granted"


def test_writes_whose_decision_is_not_known(con):
    """A lost reply of an older token is counted as that, and never as a token that counts renewals."""
    lost = row(5, "write", "a", 1, decision="unknown", outcome="unknown")
    done = judged(con, *STALE[:4], lost)

    assert gaps.unanswered(con) == (1, 0, 4)
    assert gaps.renewal_counters(con, done) == 0
    judged(con, *STALE)
    assert gaps.unanswered(con) == (0, 0, 5)


@pytest.mark.parametrize(("presented", "undecided"), [(1, 1), (2, 0)])
def test_a_grant_whose_decision_is_not_known(con, presented, undecided):
    """It leaves a write with an older token open, and one with its own token not."""
    asked = grant(2, "b", 2, "a", decision="unknown", outcome="unknown")
    done = judged(con, grant(1, "a", 1), asked, row(3, "write", "a", presented))

    assert done.of("stale_write_accepted").undecided == undecided
    assert gaps.unanswered(con) == (0, undecided, 2)


def test_leases_that_are_granted_in_another_item(con):
    """A resource that takes two tokens and shows no grant is counted, whatever else the log holds; one that shows one is not."""
    elsewhere = (row(1, "write", "a", 1), row(2, "write", "b", 2))
    lock = of("lock", grant(1, "a", 1), grant(2, "b", 2, "a"))

    assert gaps.granted_elsewhere(con, judged(con, *lock, *elsewhere)) == 1
    assert gaps.granted_elsewhere(con, judged(con, *lock, *elsewhere, *of("job-2", *TAKEOVER))) == 1
    assert gaps.granted_elsewhere(con, judged(con, *lock, *elsewhere[:1])) == 1  # nothing was put to the test
    assert gaps.granted_elsewhere(con, judged(con, *lock, *elsewhere[:1], *of("job-2", *TAKEOVER))) == 0
    assert gaps.granted_elsewhere(con, judged(con, *elsewhere)) == 0  # no grant is in the log at all
    begins_late = (row(1, "write", "a", 1, before_holder="a"), grant(2, "b", 2, "a"), row(3, "write", "b", 2))
    assert gaps.granted_elsewhere(con, judged(con, *begins_late)) == 0


def test_tokens_that_count_renewals(con):
    """A token that rises under one holder while its lease runs is counted as a version."""
    expiry = {"before_expires_at": histories.START + 60 * SECOND, "after_expires_at": histories.START + 90 * SECOND}
    renewed = grant(3, "a", 2, "a", **expiry)
    rows = (grant(1, "a", 1), row(2, "write", "a", 1), renewed, row(4, "write", "a", 2), row(5, "write", "a", 1))

    assert gaps.renewal_counters(con, judged(con, *rows)) == 1
    assert gaps.renewal_counters(con, judged(con, *STALE)) == 0


# --- what a log shows


def test_the_decision_rule_has_the_worst_status_of_its_rules(con):
    """Each of the five lines has the worst status of the rules behind it, and names those that were broken."""
    done = judged(con, *STALE)

    def line(**statuses: str) -> tuple[str, list[str]]:
        results = tuple(r._replace(status=statuses.get(r.rule.name, "holds")) for r in done.results)
        found = evidence.decision_rule(done._replace(results=results))[1]
        return found["status"], found["broken"]

    assert line() == ("holds", [])
    assert line(unfenced_write="idle") == ("holds", [])
    assert line(unfenced_write="not_visible", unfenced_delete="idle") == ("not_visible", [])
    assert line(unfenced_write="unknown", unfenced_delete="not_visible") == ("unknown", [])
    assert line(unfenced_write="unknown", token_went_back="violated", unfenced_delete="violated") == (
        "violated", ["token_went_back", "unfenced_delete"],
    )  # fmt: skip
    everything = dict.fromkeys(evidence.DECISION_RULE[1][1], "not_applicable")
    assert line(**everything) == ("not_applicable", [])
    assert line(unfenced_write="not_applicable") == ("not_applicable", [])  # what was skipped does not hold


def test_the_decision_rule_covers_every_core_rule():
    """Every core rule stands behind one of the five lines, and each line is decided by some rule."""
    behind = [name for _, names in evidence.DECISION_RULE for name in names]

    assert {rule.name for rule in RULES if rule.core} <= {*behind}
    assert len(behind) == len({*behind})
    assert len(evidence.DECISION_RULE) == 5


def test_what_the_log_shows(con):
    """Each question of an auditor is answered with yes, no (the format never shows it) or not in this log, with what to do."""
    judged(con, *(r | {"outcome": None} for r in TAKEOVER))
    found = {s["question"]: s for s in evidence.sees(con, frozenset({"outcome"}), "store {}".format)}

    assert found["accepted writes"] == {"question": "accepted writes", "answer": "yes", "remedy": ""}
    assert found["refused writes and why"]["answer"] == "no"
    assert found["refused writes and why"]["remedy"] == "store outcome"
    assert (found["alerts"]["answer"], found["alerts"]["remedy"]) == ("not in this log", "store alert")


def test_tokens_of_grants_alone_do_not_show_what_writes_carried(con):
    """Where only grants carry a token or a name, who wrote with which token is not shown."""
    judged(con, grant(1, "a", 1), row(2, "write", None, None))
    found = {s["question"]: s["answer"] for s in evidence.sees(con, frozenset(), str)}

    assert (found["who wrote"], found["which token a write presented"], found["who held the lease"]) == (
        "not in this log", "not in this log", "yes",
    )  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_missing_field_has_advice(rule):
    """For every column that a rule may lack there is a word on what to store and what to log."""
    assert all(advice.TO_RECORD[need.split("|")[0]] for need in rule.needs)


# --- the story of a resource


def test_the_story_of_a_resource(con):
    """Every row in order, with the grant of the token that it carried, the next newer grant, and what it broke."""
    judged(con, *of("other", *STALE), *STALE[::-1])
    told = evidence.story(con, "job-1", 100)

    assert [r["source"] for r in told] == [f"log:{n}" for n in range(1, 6)]
    assert {r["resource"] for r in told} == {"job-1"}
    assert [r["broken"] for r in told] == ["", "", "", "", "token_went_back"]
    assert (told[4]["granted_at"], told[4]["newer_token"], told[4]["newer_holder"]) == (
        datetime(2025, 10, 9, 8, 53, 21),
        2,
        "b",
    )
    assert len(evidence.story(con, "job-1", 2)) == 2
    assert evidence.story(con, "nothing", 2) == []
