"""One simulated job as a timeline, which replays to the same decisions: it holds simulator and replay together.

An event takes a second of a timeline, and that is coarse: where a second stands for less than one, the header says so.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fencinglab.logs.mapping import duration_text
from fencinglab.model import replay, timeline
from fencinglab.model.event import MUTATIONS, Event
from fencinglab.model.fix import Fix
from fencinglab.model.timeline import Timeline
from fencinglab.simulate.chance import NEVER
from fencinglab.simulate.jobs import simulate
from fencinglab.simulate.running import Told
from fencinglab.simulate.workload import SECOND, Workload

_UNITS = (SECOND, SECOND // 10, SECOND // 100, SECOND // 1000, SECOND // 10_000, SECOND // 100_000, 1)
_PASS, _LEASE = 99_999, 9_999_999  # the most that a timeline lets pass at once, or a lease last
_RESOURCE = "report"
_LAST = 100  # place of what comes after all else of an attempt on the same microsecond

Moment = tuple[int, int, int, Event]  # when; of which attempt (0 = the receiver) and in which place on that microsecond


class _Attempt(NamedTuple):
    """One grant, as it went."""

    token: int
    worker: str
    begun: int
    end: int
    crashes: bool
    pause: tuple[int, int]  # from, to
    skew: int
    sends: tuple[int, ...]
    looks: tuple[int, ...]


def timeline_of(workload: Workload, fix: Fix, seed: int, job: int) -> Timeline:
    """The job as a timeline. Replayed under the fix, the same is decided in the same order.

    A job that no timeline can tell is a ValueError: where leases are renewed, only with three renewals a lease.
    """
    told: Told = []
    simulate(workload, fix, seed, np.array([job], dtype=np.uint64), told)
    attempts = _attempts(told, fix)
    every = [*_own(attempts, workload, fix), *_receivers(attempts, told, workload, fix)]
    moments = sorted(every, key=lambda moment: moment[:3])
    expected = [(what[2], what[3], *what[5:]) for what in told if what[1] == "decide"]
    for unit in _UNITS:
        if not unit <= workload.lease <= unit * _LEASE or workload.skew > unit * _PASS:
            continue
        made = _written(workload, fix, seed, job, moments, unit)
        if decisions(made, fix, workload.writes) == expected:
            return made
    raise ValueError(f"job {job} under {fix.name} cannot be told as a timeline")


def decisions(made: Timeline, fix: Fix, writes: int) -> list[tuple[int, int, bool, int]]:
    """(token, number of the write, accepted, the newest token) of each write that the receiver decides in a replay."""
    found = []
    for decision in replay.replay(made, fix).decisions:
        if decision.row["kind"] in MUTATIONS:
            number, _, token = decision.value.partition("-of-")
            k = writes - 1 if number == "result" else int(number.removeprefix("part")) - 1
            found.append((int(token), k, decision.row["decision"] == "accepted", decision.newest))
    return found


def _attempts(told: Told, fix: Fix) -> dict[int, _Attempt]:
    over = {what[2]: what[0] for what in told if what[1] == "give up"}
    found = {}
    for begun, _, token, worker, chance, planned in (what for what in told if what[1] == "grant"):
        own = begun + int(planned.end[0])
        end = min(own, over.get(token, NEVER))
        asleep = begun + int(chance.paused_at[0])
        sends = tuple(begun + int(send[0]) for send in planned.sends if send[0] < NEVER)
        found[token] = _Attempt(
            token, string.ascii_uppercase[worker], begun, end, bool(planned.crashes[0]) and own == end,
            (asleep, asleep + int(chance.pause[0])), int(chance.skew[0]),
            tuple(send for send in sends if send <= own and (token not in over or send < end)),
            tuple(begun + int(look[0]) for look in planned.looks) if fix.client_check else (),
        )  # fmt: skip
    return found


def _own(attempts: dict[int, _Attempt], workload: Workload, fix: Fix) -> Iterator[Moment]:
    """What the workers do and what happens to them; at its end a worker that renews stands still, to renew no more."""
    gone, skewed = dict[str, str](), dict[str, int]()
    for a in attempts.values():
        who = a.worker
        if who in gone:
            yield a.begun, a.token, 6, Event(gone.pop(who), who)
        if a.skew != skewed.get(who, 0):
            skewed[who] = a.skew
            yield a.begun, a.token, 7, Event("ahead" if a.skew >= 0 else "behind", who, number=abs(a.skew))
        yield a.begun, a.token, 8, Event("acquire", who)
        if a.pause[0] < min(a.end, a.pause[1]):
            yield a.pause[0], a.token, 0, Event("pause", who)
            yield a.pause[1], a.token, 1, Event("resume", who)
        for k, look in enumerate(a.looks):
            if look <= a.end:
                yield look, a.token, 10 + 3 * k, Event("check", who)
        for k, send in enumerate(a.sends):
            kind, value = _named(a.token, k, workload.writes)
            goes_first = fix.renews and a.pause[1] <= send < a.pause[1] + workload.gap  # before an overdue renewal
            at = a.pause[1] if goes_first else send
            if kind:
                yield at, a.token, 11 + 3 * k, Event("effect", who, value="mail")
            yield at, a.token, 12 + 3 * k, Event("send", who, kind=kind, value=value)
        if a.crashes or fix.renews:
            gone[who] = "restart" if a.crashes else "resume"
            yield a.end, a.token, 2 if a.crashes else _LAST, Event("crash" if a.crashes else "pause", who)


def _named(token: int, k: int, writes: int) -> tuple[str, str]:
    """The kind of a write and its value, as `decisions` reads it back."""
    return ("finish", f"result-of-{token}") if k == writes - 1 else ("", f"part{k + 1}-of-{token}")


def _receivers(attempts: dict[int, _Attempt], told: Told, workload: Workload, fix: Fix) -> Iterator[Moment]:
    """What reaches the receiver; of a write that it checks in a step of its own each copy is a message."""
    two_steps = fix.rules.guard.two_steps
    for at, what, token, k, copy, *_ in (what for what in told if what[1] in ("check", "decide")):
        a = attempts[token]
        _, value = _named(token, k, workload.writes)
        if two_steps and copy == 1 and what == "check":
            yield a.sends[k], token, _LAST, Event("duplicate", a.worker, value=value)
        act = "inspect" if what == "check" else "repeat" if copy and not two_steps else "arrive"
        yield at, token if at == a.sends[k] else 0, _LAST, Event(act, a.worker, value=value)


def _written(workload: Workload, fix: Fix, seed: int, job: int, moments: list[Moment], unit: int) -> Timeline:
    """The moments as a timeline in which a second stands for `unit` microseconds."""
    again = {event.value for *_, event in moments if event.act in ("repeat", "duplicate", "inspect")}
    events: list[Event] = []
    now, place = 0, 0
    while place < len(moments):
        at, *_, event = moments[place]
        then, *_, following = moments[min(place + 1, len(moments) - 1)]
        place += 1
        if (
            event.act == "pause"
            and following == Event("resume", event.worker)
            and round(at / unit) == round(then / unit)
        ):
            place += 1  # shorter than can be told, and nothing happens in it
            continue
        if event.act in ("ahead", "behind"):
            event = event.but(number=max(1, round(event.number / unit)))
        arrives = following == Event("arrive", event.worker, value=event.value)
        if event.act == "send" and arrives and event.value not in again:
            place += 1  # it is sent and arrives, and nothing happens in between
            event = event.but(act=event.kind or "write", kind="")
            at = then
        while (wait := round(at / unit) - now) > 0:
            events.append(Event("pass", number=min(wait, _PASS)))
            now += min(wait, _PASS)
        events.append(event)
        now += 1
    workers = tuple(sorted({event.worker for event in events if event.worker}))
    of_one = "" if unit == SECOND else f"; a second here stands for {duration_text(unit)}"
    made = Timeline(
        f"job-{job}", f"Job {job} of the simulation with seed {seed} under {fix.name}", workers, (_RESOURCE,), 1,
        round(workload.lease / unit), (*events,), fixes=(fix.name,),
        assumed=f"drawn by chance: {workload.pause} for pauses, a lease of {duration_text(workload.lease)}{of_one}",
    )  # fmt: skip
    return timeline.parse(str(made), f"{made.name}.timeline")
