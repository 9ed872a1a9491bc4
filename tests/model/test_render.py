"""The render job: late completions are refused and seen, and a store can be held to its decision."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import HEADER, replayed

from fencinglab.errors import InputError
from fencinglab.model import shelf
from fencinglab.model.event import Event
from fencinglab.model.fix import FIXES
from fencinglab.model.harm import unsafe
from fencinglab.model.lease import held_by
from fencinglab.model.receiver import Held
from fencinglab.model.render import (
    FIX,
    LENGTH,
    Answer,
    End,
    Execution,
    Job,
    Refusal,
    Request,
    answers,
    content,
    decide,
    end,
    executions,
    key,
    orphans,
    refusals,
)
from fencinglab.model.replay import Run, replay
from fencinglab.model.timeline import Timeline

LATE = (  # A is paused past its lease and B takes over
    Request("acquire", "A", 0),
    Request("acquire", "B", LENGTH),
)
DONE_B = Request("complete", "B", LENGTH + 1, 2, "B/2", key("preview", 2))
DONE_A = Request("complete", "A", LENGTH + 2, 1, "A/1", key("preview", 1))


def after(*requests: Request) -> Job:
    """The job after these requests, each of which is accepted."""
    job = Job()
    for request in requests:
        job, decision, reason = decide(job, request)
        assert decision == "accepted", (request, reason)
    return job


def run(name: str, fix: str = FIX) -> Run:
    return replay(shelf.find(name), FIXES[fix])


# --- the ticket's two verifications


def test_expire_a_complete_through_b_then_submit_a():
    """Expire A, complete through B, then submit A's completion: the output is unchanged, and the refusal is seen."""
    done = after(*LATE, DONE_B)

    assert decide(done, DONE_A) == (done, "rejected", "newer_token")
    assert (done.phase, done.artifact, done.held.terminal_version) == ("COMPLETED", "preview/2", 1)

    replayed = run("late-render")
    assert replayed.final["preview"].value == "preview/42"
    assert content(replayed, "preview") == "pixels-of-B"
    assert refusals(replayed.rows) == (Refusal("preview", "A", 41, 42, "newer_token", 1),)

    unfenced = run("late-render", "unfenced")  # the check can fail
    assert (unfenced.final["preview"].value, content(unfenced, "preview")) == ("preview/41", "pixels-of-A")
    assert refusals(unfenced.rows) == ()


def test_replay_the_completion_of_b():
    """Replay B's completion, at once and after its lease: there is one terminal transition and one artifact reference."""
    done = after(*LATE, DONE_B)

    for now in (DONE_B.now, DONE_B.now + 10 * LENGTH):
        assert decide(done, DONE_B._replace(now=now)) == (done, "rejected", "duplicate")
    assert (done.held.terminal_version, done.artifact) == (1, "preview/2")

    replayed = run("late-render-replayed")
    finishes = [row for row in replayed.rows if row["kind"] == "finish"]
    references = {row["after_value"] for row in finishes}
    assert [row["decision"] for row in finishes] == ["accepted", "rejected", "rejected"]
    assert len({row["operation"] for row in finishes}) == len(references) == 1
    assert replayed.final["preview"].terminal_version == 1

    assert run("late-render-replayed", "latest").final["preview"].terminal_version == 3  # the check can fail


def test_the_two_verifications_as_rows():
    """The answers to requests in their order say the same: two refusals, and nothing moves."""
    told = answers((*LATE, DONE_B, DONE_A, DONE_B))

    assert [answer.decision for answer in told] == [*["accepted"] * 3, *["rejected"] * 2]
    assert [answer.phase for answer in told] == [*["rendering"] * 2, *["COMPLETED"] * 3]
    assert told[3] == Answer("A: complete", 1, "rejected", "newer_token", "COMPLETED", "preview/2", 1)
    assert told[4][3:] == ("duplicate", "COMPLETED", "preview/2", 1)


# --- the decision

REFUSED = {
    "a lease that ran out": ((LATE[0],), DONE_A, "expired"),
    "an older execution of the same worker": (
        (LATE[0], Request("acquire", "A", LENGTH)),
        DONE_A,
        "newer_token",
    ),
    "another worker under the newest token": (LATE, DONE_B._replace(worker="A"), "not_held"),
    "a token that was never issued": (LATE, DONE_B._replace(token=3), "not_held"),
    "no token": (LATE, DONE_B._replace(token=None), "no_token"),
    "nobody's job": ((), DONE_A, "not_held"),
    "a failure after the completion": (
        (*LATE, DONE_B),
        Request("fail", "B", LENGTH + 2, 2, "B/2/fail", reason="too-large"),
        "terminal",
    ),
    "a grant of a finished job": ((*LATE, DONE_B), Request("acquire", "C", 9 * LENGTH), "terminal"),
    "a renewal of a finished job": ((*LATE, DONE_B), Request("renew", "B", LENGTH + 2, 2), "terminal"),
    "a grant of a lease that runs": ((LATE[0],), Request("acquire", "B", LENGTH - 1), "held"),
    "a renewal too late": ((LATE[0],), Request("renew", "A", LENGTH, 1), "expired"),
    "a renewal after a takeover": (LATE, Request("renew", "A", LENGTH + 1, 1), "newer_token"),
    "a renewal without a token": (LATE, Request("renew", "B", LENGTH + 1), "no_token"),
    "a release after a takeover": (LATE, Request("release", "A", LENGTH + 1, 1), "newer_token"),
    "a second release": ((LATE[0], Request("release", "A", 1, 1)), Request("release", "A", 2, 1), "not_held"),
}


@pytest.mark.parametrize(("before", "request_", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_why_and_changes_nothing(before, request_, reason):
    """Each request that may not change the job leaves it as it was, with its own reason."""
    job = after(*before)

    assert decide(job, request_) == (job, "rejected", reason)


def test_late_is_not_stale():
    """A store whose rules compare the newest token alone takes a completion that is late, and none that is stale."""
    newest = FIXES["latest-id-terminal"].rules

    assert decide(after(LATE[0]), DONE_A, newest)[1:] == ("accepted", "")
    assert decide(after(*LATE), DONE_A, newest)[1:] == ("rejected", "newer_token")


def test_phases_and_the_terminal_reason():
    """A job is queued, rendering, and then finished for good; only a failure has a reason, only a completion a preview."""
    failed = after(*LATE, Request("fail", "B", LENGTH + 1, 2, "B/2", reason="unsupported-format"))
    renewed = after(*LATE, Request("renew", "B", LENGTH + 1, 2))

    assert (Job().phase, after(*LATE).phase) == ("queued", "rendering")
    assert after(LATE[0], Request("release", "A", 1, 1)).phase == "queued"
    assert (failed.phase, failed.held.reason, failed.artifact) == ("FAILED", "unsupported-format", "")
    assert (after(*LATE, DONE_B).phase, after(*LATE, DONE_B).held.reason) == ("COMPLETED", "")
    assert held_by(renewed.lease, 2 * LENGTH) == "B"


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Request("finish", "A", 0), r"`finish` is no request of a render job; there are acquire, renew, .*"),
        (Request("complete", "A", 0, 1), r"A asks to complete a render job without `artifact`; .*"),
        (Request("fail", "A", 0, 1), r"A asks to fail a render job without `reason`; .*"),
    ],
)
def test_what_no_store_could_take_is_an_error(request_, sentence):
    """A request of another kind, a completion without its preview and a failure without its reason are no requests."""
    with pytest.raises(InputError, match=sentence):
        decide(Job(), request_)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "renew", "release", "complete", "fail", "pass", "expire"]), st.sampled_from("ABC")
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_a_replay_decides_as_the_job_does(steps):
    """In whatever order workers ask, complete and fail under any grant they had, `replay` and `decide` agree on each step:
    decision, reason, token, holder and phase; and in the end on all that is held.
    """
    acts = {
        "complete": {"act": "finish", "value": "COMPLETED"},
        "fail": {"act": "finish", "value": "FAILED", "reason": "too-large"},
        "pass": {"number": 25},
    }
    events = []
    for act, who in steps:
        worker = "" if act in ("pass", "expire") else who
        if act == "complete":
            events.append(Event("store", who, value="pixels"))
        events.append(Event(**{"act": act, "worker": worker} | acts.get(act, {})))
    told = replay(Timeline("drawn", "t", ("A", "B", "C"), ("preview",), 1, LENGTH, tuple(events)), FIXES[FIX])
    job = Job()
    for step in told.steps:
        for row in (d.row for d in step.decisions if d.row["kind"] != "effect"):
            action = {"grant": "acquire", "finish": "fail" if step.event.reason else "complete"}
            asked = Request(
                action.get(row["kind"], row["kind"]), row["writer"], step.at,
                token=None if row["kind"] == "grant" else row["token"], operation=row["operation"] or "",
                artifact=key("preview", row["token"]) if row["kind"] == "finish" and not step.event.reason else "",
                reason=step.event.reason,
            )  # fmt: skip
            job, decision, reason = decide(job, asked)

            assert (decision, reason) == (row["decision"], row["reason"] or "")
            assert (job.lease.token, job.lease.holder) == (row["after_token"] or 0, row["after_holder"])
            assert (job.held.status, job.held.terminal_version) == (row["after_status"], row["after_terminal_version"])
    assert job.held == told.final.get("preview", Held())


# --- what a run leaves


def test_rejected_completions_are_counted_by_execution_token_and_reason():
    """Each execution whose completions were refused is told with its token, the newest, the reason and how often."""
    assert refusals(run("late-render-three-workers").rows) == (
        Refusal("preview", "B", 42, 43, "newer_token", 1),
        Refusal("preview", "A", 41, 43, "newer_token", 1),
    )
    assert refusals(run("late-render-replayed").rows) == (Refusal("preview", "B", 42, 42, "duplicate", 2),)
    assert refusals(run("late-render-mixed-fleet").rows) == (Refusal("preview", "A", None, 42, "no_token", 1),)


def test_executions_are_grants():
    """An execution is a grant: its token rises, and what became of it is told, also of one that stored nothing."""
    assert executions(run("late-render-three-workers")) == (
        Execution(41, "A", "", "rejected", 1, "newer_token"),
        Execution(42, "B", "preview/42", "rejected", 1, "newer_token"),
        Execution(43, "C", "preview/43", "accepted", 0, ""),
    )
    assert executions(run("late-render-operator"))[:2] == (
        Execution(41, "A", "preview/41", "rejected", 2, "newer_token"),
        Execution(42, "B", "", "none", 0, ""),
    )


def test_the_end_of_a_run():
    """What the job points to, the bytes there, its phase, its reason, its transitions and the orphans stand in one row."""
    assert end(run("late-render")) == End(FIX, "preview/42", "pixels-of-B", "COMPLETED", "", 1, "preview/41")
    assert end(run("late-render-three-workers", "unfenced"))[3:6] == ("FAILED", "unsupported-format", 3)


@pytest.mark.parametrize("told", [end, executions])
def test_a_run_of_two_jobs_is_one_sentence(told):
    """What is told of one job is refused for a run that is about two, with both names."""
    two = replayed("A acquires; A finishes as DONE for b", FIX, HEADER.replace("report", "a, b\nleases: both"))

    with pytest.raises(InputError, match=r"given: it is about a, b; give each render job a timeline of its own"):
        told(two)


def test_orphan_artifacts_are_listed():
    """Whatever was stored and is not pointed to in the end is an orphan; under one shared key there is none to find."""
    assert orphans(run("late-render")) == ("preview/41",)
    assert orphans(run("late-render", "unfenced")) == ("preview/42",)
    assert orphans(run("late-render-rolled-back")) == ("preview/41", "preview/42")
    assert orphans(run("late-render-shared-key")) == ()


def test_a_shared_key_changes_the_bytes_behind_a_pointer_that_never_moves():
    """Under one key for all, the late completion is refused and the late bytes are there all the same."""
    shared, own = run("late-render-shared-key"), run("late-render")
    finished = [row for row in shared.rows if row["after_status"] == "COMPLETED"]

    assert len({row["after_value"] for row in finished}) == 1
    assert shared.final["preview"].terminal_version == 1
    assert content(shared, "preview") == "pixels-of-A"
    assert content(own, "preview") == "pixels-of-B"
    assert [harm.name for harm in unsafe(shared)] == ["bytes"]
    assert unsafe(own) == ()


def test_what_is_not_stored_has_no_content():
    """A pointer to something that no event stored, and a resource that was never written, have no content."""
    assert content(run("stale-terminal"), "request") == ""
    assert content(run("late-render"), "another") == ""
