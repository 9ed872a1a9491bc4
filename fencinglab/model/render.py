"""The render job: a lease and a resource in one item, its decision in one step, and what a run leaves of its artifacts.

`decide` is pure, so that any store which claims to do the same can be held to it request by request. `replay` runs the
same rules under the fix of the name in `FIX`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from fencinglab.errors import InputError
from fencinglab.model import lease as authority
from fencinglab.model import receiver
from fencinglab.model.fix import FIXES
from fencinglab.model.lease import Lease, fresh
from fencinglab.model.receiver import Held, Mutation, Rules
from fencinglab.model.replay import Run
from fencinglab.model.rows import Row

FIX = "current-lease"
RULES = FIXES[FIX].rules
LENGTH = 60  # seconds that a lease lasts
FINAL = {"complete": "COMPLETED", "fail": "FAILED"}  # action -> the phase that nothing leaves
ACTIONS = ("acquire", "renew", "release", *FINAL)


class Job(NamedTuple):
    """A job as its store keeps it. An execution is a grant: its token is its identity, and rises with every one."""

    lease: Lease = fresh(1)
    held: Held = Held()

    @property
    def phase(self) -> str:
        """queued, rendering, COMPLETED or FAILED; a lease that ran out leaves a job rendering until the next grant."""
        return self.held.status or ("rendering" if self.lease.holder else "queued")

    @property
    def artifact(self) -> str:
        """The key of its preview; empty while there is none."""
        return self.held.value


class Request(NamedTuple):
    """What a worker asks of a job."""

    action: str  # one of ACTIONS
    worker: str
    now: int  # the store's time, in seconds
    token: int | None = None  # of the worker's execution; an acquire has none yet
    operation: str = ""  # the id of this one operation, kept when it is repeated
    artifact: str = ""  # of a completion: the key under which the preview is stored
    reason: str = ""  # of a failure


def decide(job: Job, request: Request, rules: Rules = RULES) -> tuple[Job, str, str]:
    """The job afterwards, `accepted` or `rejected`, and the reason of a rejection, which leaves the job as it was.

    A completion is accepted from the worker whose lease runs, under the newest token, once; a store that also takes
    one that is late and not stale has the rules of another fix. Pointer and phase change in the same step. A request
    that no store could take is an InputError.
    """
    _check(request)
    lease, held, reason = job.lease, job.held, ""
    if request.action in FINAL:
        held, reason = receiver.decide(held, lease, _finish(request), request.now, rules)
    elif held.terminal_version and request.action != "release":
        reason = "terminal"
    else:
        new = _leased(lease, request)
        lease, reason = new or lease, "" if new else _why_not(lease, request)
    if reason:
        return job, "rejected", reason
    return Job(lease, held._replace(promised=max(held.promised, lease.token)) if lease.holder else held), "accepted", ""


class Answer(NamedTuple):
    """One request to a job with its decision, and what the job is then."""

    request: str
    token: int | None
    decision: str
    reason: str
    phase: str
    artifact: str
    finished: int  # terminal transitions so far


def answers(requests: Iterable[Request]) -> tuple[Answer, ...]:
    """The answers to requests of a new job, in their order."""
    job, told = Job(), []
    for request in requests:
        job, decision, reason = decide(job, request)
        asked, finished = f"{request.worker}: {request.action}", job.held.terminal_version
        told.append(Answer(asked, request.token, decision, reason, job.phase, job.artifact, finished))
    return tuple(told)


def _check(request: Request) -> None:
    if request.action not in ACTIONS:
        raise InputError(f"`{request.action}` is no request of a render job; there are {', '.join(ACTIONS)}")
    for action, needs in (("complete", "artifact"), ("fail", "reason")):
        if request.action == action and not getattr(request, needs):
            raise InputError(f"{request.worker} asks to {action} a render job without `{needs}`; say it in the request")


def _finish(request: Request) -> Mutation:
    """The completion or failure as the receiver takes it."""
    return Mutation(
        "finish", request.worker, FINAL[request.action], request.token,
        operation=request.operation, artifact=request.artifact, reason=request.reason,
    )  # fmt: skip


def _leased(lease: Lease, request: Request) -> Lease | None:
    """The lease after it was asked for, renewed or released; None where that is refused."""
    if request.action == "acquire":
        return authority.grant(lease, request.worker, request.now, LENGTH)
    token = request.token or 0  # 0 is never issued
    if request.action == "renew":
        return authority.renew(lease, request.worker, token, request.now, LENGTH)
    return authority.release(lease, request.worker, token)


def _why_not(lease: Lease, request: Request) -> str:
    """Why the authority refused."""
    if request.action == "acquire":
        return "held"
    return "no_token" if request.token is None else authority.why_not(lease, request.worker, request.token)


def key(job: str, token: int) -> str:
    """Under which an execution stores its preview: no other has the same, so a late one replaces no bytes."""
    return f"{job}/{token}"


# --- what a run leaves


class End(NamedTuple):
    """What stands in the end of a run."""

    fix: str
    artifact: str  # the key to which the job points
    content: str  # the bytes under it
    phase: str
    reason: str
    finished: int  # terminal transitions
    orphans: str  # keys to which nothing points, commas between


class Execution(NamedTuple):
    """One grant of a run and what became of it."""

    token: int
    worker: str
    artifact: str  # the key of what it stored last; empty = it stored nothing
    completion: str  # accepted, rejected or none
    rejected: int  # how many of its completions and failures were refused
    reason: str  # why the first was


class Refusal(NamedTuple):
    """Completions of one execution that were refused for one reason."""

    resource: str
    worker: str
    token: int | None  # that was presented; None = none was
    current_token: int | None  # the newest at the first of them
    reason: str
    times: int


def _job(run: Run) -> str:
    """The one job of a run, or an InputError where there are more."""
    job, *more = run.timeline.resources
    if more:
        listed = ", ".join(run.timeline.resources)
        raise InputError(f"{run.timeline.name}: it is about {listed}; give each render job a timeline of its own")
    return job


def end(run: Run) -> End:
    """What stands in the end of a run, which has one job."""
    job = _job(run)
    held = run.final.get(job, Held())
    of = held.value, content(run, job), held.status, held.reason, held.terminal_version
    return End(run.fix.name, *of, ", ".join(orphans(run)))


def executions(run: Run) -> tuple[Execution, ...]:
    """Every execution of the one job of a run, in the order of its grants."""
    decided = [d for d in run.decisions if d.row["resource"] == _job(run)]
    grants = [d for d in decided if d.row["kind"] == "grant" and d.row["decision"] == "accepted"]
    stored = {stored.grant: stored.key for stored in run.stored}
    made = []
    for grant in grants:
        finishes = [d.row for d in decided if d.row["kind"] == "finish" and d.grant == grant.grant]
        reasons = [str(row["reason"]) for row in finishes if row["decision"] == "rejected"]
        completion = "accepted" if len(reasons) < len(finishes) else "rejected" if reasons else "none"
        token, worker, artifact = grant.row["token"], grant.row["writer"], stored.get(grant.grant, "")
        made.append(Execution(token, worker, artifact, completion, len(reasons), "".join(reasons[:1])))
    return tuple(made)


def refusals(rows: Iterable[Row]) -> tuple[Refusal, ...]:
    """The refused completions of a history, in its order, counted by job, execution and reason."""
    seen: dict[tuple[object, ...], Row] = {}
    counts = Counter[tuple[object, ...]]()
    for row in rows:
        if row["kind"] == "finish" and row["decision"] == "rejected":
            group = tuple(row[name] for name in ("resource", "writer", "token", "reason"))
            seen.setdefault(group, row)
            counts[group] += 1
    return tuple(
        Refusal(row["resource"], row["writer"], row["token"], row["current_token"], row["reason"], counts[group])
        for group, row in seen.items()
    )


def content(run: Run, resource: str) -> str:
    """The bytes to which the resource points in the end; empty where it points to none that were stored."""
    held = run.final.get(resource)
    return {stored.key: stored.content for stored in run.stored}.get(held.value, "") if held else ""


def orphans(run: Run) -> tuple[str, ...]:
    """The keys of artifacts to which nothing points in the end, in the order in which they were stored first."""
    pointers = {held.value for held in run.final.values()}
    return tuple(dict.fromkeys(stored.key for stored in run.stored if stored.key not in pointers))
