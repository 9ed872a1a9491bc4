"""A team's own requests are searched like a model: what is sent is real, and the run that does harm is shown."""

from __future__ import annotations

import json

import claims
import pytest
from teams import changed, example

from fencinglab.check import files, told
from fencinglab.check.check import check
from fencinglab.dynamodb import shelf
from fencinglab.errors import InputError
from fencinglab.explore import recorded, walk
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.search import explore
from fencinglab.explore.weaker import unfenced
from fencinglab.inert import WIDTH


@pytest.fixture(scope="module")
def as_text():
    """The search over the file that compares tokens as text."""
    return check(shelf.find("broken-token-as-text"), most=100_000)


def test_a_broken_file_is_caught_where_its_token_gets_another_digit(as_text):
    """Tokens as text: the write with 9 is accepted under 10, and the run shows the item before and after."""
    verdict = as_text.answer.of("ownership")
    last = walk.walked(as_text.answer.model, verdict.run)[-1]

    assert (verdict.status, verdict.length) == ("violated", 7)
    assert last.operation == "record_response"
    assert json.loads(last.before[0])["fencingToken"] == {"N": "10"}
    assert json.loads(last.after[0])["writtenToken"] == {"S": "9"}


def test_it_keeps_its_claims(as_text):
    """What the file claims to break is broken, what it claims to hold is held."""
    file = shelf.find("broken-token-as-text")

    assert [*claims.unmet(as_text.answer, file.claims.holds, file.claims.breaks)] == []


def test_the_receiver_is_asked_once_for_each_items_and_request(as_text):
    """A few hundred requests serve thousands of states; searching again asks nothing new."""
    team = as_text.answer.model
    again = explore(team)

    assert as_text.answer.states > 4_000
    assert as_text.calls < 400
    assert team.calls == as_text.calls
    assert again[1:] == as_text.answer[1:]


def test_a_run_is_a_history(as_text):
    """Each decided request is a row, with the token that it presented, the holder, and the harm in the row that did it."""
    answer = as_text.answer
    rows = recorded.rows(answer.model, answer.of("ownership").run)

    assert [(row["kind"], row["token"], row["before_token"], row["after_token"]) for row in rows] == [
        ("grant", None, 8, 9), ("grant", None, 9, 10), ("write", 9, 10, 10),
    ]  # fmt: skip
    assert [(row["broken"], row["after_holder"], row["decision"]) for row in rows] == [
        (False, "A", "accepted"), (False, "B", "accepted"), (True, "B", "accepted"),
    ]  # fmt: skip
    assert rows[0]["after_expires_at"] < rows[1]["at"] < rows[1]["after_expires_at"]
    assert rows[2]["sent_at"] < rows[1]["at"]
    assert told.worst_first(answer)[0].invariant == "ownership"


def test_a_late_copy_was_sent_when_its_own_grant_held():
    """A copy that is left from before a crash is older than the same operation sent again, and keeps its own time."""
    team = check(shelf.find("broken-unconditional"), workers=1, hazards=[Hazard("crash")], most=100_000).answer.model
    acts = ["send", "arrive", "send", "arrive", "crash", "expire", "send", "arrive", "send", "copy arrives"]
    shared, worker, run = team.start, team.idle, ()
    for place, act in enumerate(acts):
        moves = team.common(shared) if act == "expire" else team.of_worker(shared, worker, "A")
        step, shared, left, _ = next(m for m in moves if m.step.act == act and m.step.again == (place == 3))
        worker, run = worker if act == "expire" else left, (*run, step)
    rows = recorded.rows(team, run)

    assert [step.grant for step in run if step.act == "send"] == [0, 1, 0, 2]
    assert rows[-1]["sent_at"] == rows[1]["sent_at"] < rows[2]["sent_at"]


def test_it_is_told_in_lines_that_fit(as_text):
    """The answer begins with its sentence, every step is one, and no line is wider than the screen."""
    text = told.screen(as_text.answer, ["order", "ownership", "can-finish", "polling-stops"])

    assert text.startswith("Violated: with broken-token-as-text.json a stale write can be accepted, after 7 steps.\n")
    assert "No run breaks polling-stops: holds in all" in text
    assert "no worker takes the lease twice (`--hazard crash` lifts that)" in " ".join(text.split())
    assert 'writtenToken nothing → "9"' in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert json.loads(files.contents(as_text)["check.json"])["invariants"][1]["counterexample"]["steps"]


def test_a_finished_request_is_taken_up_again_by_the_literal_acquire():
    """The article's acquire does not ask for the status: a finished request is granted again, which is no harm yet."""
    answer = check(shelf.find("broken-article-acquire"), most=100_000).answer

    assert answer.of("polling-stops").status == "violated"
    assert [answer.of(name).status for name in ("order", "ownership", "terminal")] == ["holds"] * 3


@pytest.mark.parametrize(
    ("stored", "action", "value"),
    [
        ({"L": []}, "kept = list_append(kept, :more)", {"L": [{"S": "x"}]}),
        ({"N": "1"}, "kept = :more + kept", {"N": "1"}),
        ({"M": {"n": {"N": "1"}}}, "kept.n = :more", {"N": "2"}),
    ],
)
def test_what_an_update_builds_on_stays_in_the_item(stored, action, value):
    """A finish that depends on an attribute which nothing else looks at is carried out, not refused for want of it."""

    def keeping(raw):
        raw["start"]["kept"] = stored
        finish = raw["operations"]["finish"]["update-item"]
        finish["UpdateExpression"] = finish["UpdateExpression"].replace("SET ", f"SET {action}, ", 1)
        finish["ExpressionAttributeValues"][":more"] = value

    both = changed("request-status", keeping), shelf.find("request-status")
    found, plain = (check(file, workers=1, most=100_000) for file in both)

    assert {sent.decision for *_, sent in found.answer.model.asked_for} == {"accepted", "rejected"}
    assert found.answer.states == plain.answer.states


@pytest.mark.parametrize(
    ("condition", "update", "status"),
    [
        ("", "jobResult = :value", "violated"),
        ("", "checkpoint = :value", "holds"),  # of no mapped column: none of the finish's business
        (" AND attribute_not_exists(terminalVersion)", "jobResult = :value", "holds"),
    ],
)
def test_what_is_finished_stays_as_it_is(condition, update, status):
    """A write that is accepted after the finish changes what was finished, though it is no finish and not stale."""

    def cut(raw):
        save = raw["operations"]["save"]["update-item"]
        save["UpdateExpression"] = save["UpdateExpression"].replace("jobResult = :value", update)
        save["ConditionExpression"] = f"fencingToken = :token AND leaseOwner = :worker{condition}"

    found = check(example(cut), repaired=True, most=100_000)

    assert found.answer.of("terminal").status == status
    assert found.answer.of("ownership").status == "holds"
    if status == "violated":
        assert told.headline(found.answer) == "Violated: with mine.json what is finished can be changed, after 7 steps."
        assert "a late copy of A's save is accepted: jobResult complete-A1 → save-A1" in " ".join(
            told.screen(found.answer).split()
        )
        assert [(one.operation, one.name) for one in found.repair.added] == [("save", "not terminal")]


@pytest.mark.parametrize(
    ("update", "says"),
    [
        ("fencingToken = :one", "B's acquire is accepted: leaseExpiresAt 60 → 121, leaseOwner A → B; it issued no"),
        ("fencingToken = if_not_exists(fencingToken, :one)", "it issued no newer token than the 40 that was issued"),
    ],
)
def test_a_grant_that_issues_no_newer_token_is_told_and_not_repaired(update, says):
    """Two holders with one token are told apart by nothing that carries it: no condition on the writes mends that."""

    def kept(raw):
        acquire = raw["operations"]["acquire"]["update-item"]
        acquire["UpdateExpression"] = f"SET leaseOwner = :worker, leaseExpiresAt = :expiry, {update}"

    found = check(example(kept), repaired=True, most=100_000)

    assert told.headline(found.answer) == "Violated: with mine.json a grant can issue no newer token, after 5 steps."
    assert says in " ".join(told.screen(found.answer).split())
    assert found.repair.answer is None
    assert "only the update of the grant can raise the token" in " ".join(told.mended(found.repair).split())


def test_a_table_that_is_restored_issues_a_token_again():
    """After a backup from before the last grant the next grant has its token: a write with it is stale, and accepted."""
    answer = check(shelf.find("broken-finish-twice"), workers=1, hazards=[Hazard("restore")], most=100_000).answer
    run = answer.of("ownership").run
    happened = walk.walked(answer.model, run)
    [restored] = [what for step, what in zip(run, happened, strict=True) if step.act == "restore"]

    assert json.loads(restored.before[0])["fencingToken"] == {"N": "41"}
    assert restored.after == answer.model.start.items
    assert happened[-1].token == 41 and happened[-1].breaks == ("ownership",)


def test_a_worker_without_fencing_is_refused_by_nothing_of_its_own():
    """A version that asks for neither token nor owner writes under a newer grant, though the file itself holds."""
    file = shelf.find("broken-finish-twice")
    answer = check(file, hazards=[Hazard("unfenced-worker")], most=4_000).answer
    loose = unfenced(file).operations
    happened = walk.walked(answer.model, answer.of("ownership").run)

    assert "ownership" in file.claims.holds
    assert loose["finish"].input["ConditionExpression"] == "NOT contains(operationsDone, :operation)"
    assert loose["acquire"] == file.operations["acquire"]
    assert (happened[-1].token, happened[-1].says.split(":")[0]) == (None, "A's record_response is accepted")


def test_a_worker_that_lacks_what_it_needs_stops():
    """A read of an item that was deleted tells no token: its worker stops; where nobody ever learns it, it is said."""

    def unlearned(raw):
        raw["operations"]["acquire"]["update-item"].pop("ReturnValues")

    answer = check(shelf.find("broken-token-read-after"), workers=1, hazards=[Hazard("ttl")], most=100_000).answer
    assert not answer.stopped
    with pytest.raises(InputError, match=r"operation `record_response` is never sent: no worker ever learns \$token"):
        check(changed("broken-unconditional", unlearned), most=100_000)


@pytest.mark.parametrize(
    ("program", "once", "possible"),
    [(["acquire", "warn", "complete"], "violated", "holds"), (["acquire", "complete", "warn"], "holds", "violated")],
)
def test_an_alert_before_or_after_the_finish(program, once, possible):
    """One before it is raised twice where nothing asks for it; one after it, which asks, gets lost with a crash."""

    def warned(raw):
        warn = raw["operations"]["save"] | {"kind": "alert"}
        warn["update-item"]["UpdateExpression"] = "SET alertId = :value, writtenToken = :token, writtenBy = :worker"
        if program[-1] == "warn":
            warn["update-item"]["ConditionExpression"] = "fencingToken = :token AND attribute_not_exists(alertId)"
        raw["operations"] = {
            "acquire": raw["operations"]["acquire"],
            "warn": warn,
            "complete": raw["operations"]["complete"],
        }
        raw["program"], raw["map"]["alert"] = program, "alertId"

    answer = check(example(warned), workers=1, hazards=[Hazard("crash")], most=100_000).answer

    assert (answer.of("alert-once").status, answer.of("alert-possible").status) == (once, possible)
