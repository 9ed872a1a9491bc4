"""The same jobs as `fencinglab.simulate`, told again one by one as SimPy processes, for tests and the bench script.

Written from the docstrings of `simulate/`, with rules of its own: nothing of the simulator or the model is used but the
numbers of chance, which both are given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import simpy

NEVER = 1 << 60
COUNTED = (
    "finished_at", "stale", "order", "ownership", "late", "rejected_stale", "rejected_late", "rejected_done",
    "rejected_good", "finishes", "effects", "final", "reassigned", "needless", "dead", "wasted",
)  # fmt: skip


@dataclass
class Luck:
    """What chance brings to one attempt."""

    asks: int
    unit: int
    pause: int
    paused_at: int
    crashed_at: int
    skew: int
    message: list[int]
    again: list[int]


@dataclass(eq=False)
class Attempt:
    """One grant and what its holder does with it."""

    token: int
    worker: int
    luck: Luck
    begun: int
    over: bool = False
    crashed: bool = False
    asleep: bool = False
    told: bool = False  # it was refused while it stood still
    processed: int = 0
    since: int = 0  # when it last began to process
    finished: bool = False
    known: int = 0
    wakes: Any = None
    accepted: set[int] = field(default_factory=set)


class Job:
    """One job: the authority, the receiver and the workers as processes."""

    loop: Any = simpy.Environment

    def __init__(self, w: Any, fix: Any, luck: Any) -> None:
        self.env, self.w, self.fix, self.luck = self.loop(), w, fix, luck
        self.until = self.token = self.highest = self.last = self.tried = self.version = 0
        self.attempts: list[Attempt] = []
        self.idle = dict.fromkeys(range(w.workers), True)
        self.done: set[int] = set()
        self.found = dict.fromkeys(COUNTED, 0) | {"finished_at": NEVER}
        self.changed = self.env.event()

    def run(self) -> dict[str, int]:
        self.grant(0)
        self.env.process(self.authority())
        self.env.run()
        self.found["final"] = int(self.last < self.tried and self.found["finishes"] > 0)
        if self.fix.effect_key:
            self.found["effects"] = min(self.found["effects"], 1)
        winner = next((a for a in self.attempts if a.finished), None)
        self.found["wasted"] = sum(a.processed for a in self.attempts if a is not winner)
        return self.found

    def change(self) -> None:
        old, self.changed = self.changed, self.env.event()
        old.succeed()

    # --- the authority

    def grant(self, worker: int) -> None:
        env, luck = self.env, self.luck(self.token + 1)
        if self.attempts:
            old = self.attempts[-1]
            awake = env.now - old.since if not old.over and not old.asleep else 0
            self.found["dead"] += env.now - old.begun - (old.processed + awake)
            self.found["reassigned"] += 1
            self.found["needless"] += not old.over
        self.token += 1
        self.until = env.now + luck.skew + self.w.lease * self.fix.times
        attempt = Attempt(self.token, worker, luck, env.now, since=env.now, known=self.version, wakes=env.event())
        self.attempts.append(attempt)
        self.idle[worker] = False
        env.process(self.work(attempt))
        if self.fix.renews:
            env.process(self.renewals(attempt))

    def authority(self) -> Any:
        env = self.env
        while self.token < self.w.attempts:
            asks = self.luck(self.token + 1).asks
            while True:
                at = max(self.until + self.fix.delay * 1_000_000 + asks, self.attempts[-1].begun)
                if env.now < at:
                    yield env.timeout(at - env.now) | self.changed
                elif not any(self.idle.values()):
                    yield self.changed
                else:
                    break
                if self.found["finishes"]:
                    return
            self.grant(next(n for n, is_idle in self.idle.items() if is_idle))

    def holds(self, attempt: Attempt) -> bool:
        """Whether the worker is told that its lease runs."""
        return attempt.token == self.token and self.env.now + attempt.luck.skew < self.until

    # --- a worker

    def work(self, attempt: Attempt) -> Any:
        luck, w = attempt.luck, self.w
        gap = min(w.gap, luck.unit)
        plan = [(luck.paused_at, 0, "pause"), (luck.crashed_at, 1, "crash")]
        for k in range(w.writes):
            plan += [(luck.unit * (k + 1) - gap, 2, k), (luck.unit * (k + 1), 3, k)]
        for at, what, k in sorted(plan, key=lambda one: one[:2]):
            if at > attempt.processed:
                yield self.env.timeout(at - attempt.processed)
                if attempt.over:
                    return
                attempt.processed, attempt.since = at, self.env.now
            if what == 0:
                attempt.asleep = True
                yield self.env.timeout(luck.pause)
                attempt.asleep, attempt.since = False, self.env.now
                if attempt.told:
                    return self.stop(attempt)
                attempt.wakes.succeed()
            elif what == 1:
                attempt.crashed = True
                return self.stop(attempt)
            elif what == 2 and self.fix.client_check and not self.holds(attempt):
                return self.stop(attempt)
            elif what == 3:
                self.env.process(self.travel(attempt, k, luck.message[k], luck.again[k], attempt.known))
                if k == w.writes - 1:
                    self.found["effects"] += 1
                    return self.stop(attempt)
        return None

    def stop(self, attempt: Attempt) -> None:
        if attempt.over:
            return
        if not attempt.asleep:
            attempt.processed += self.env.now - attempt.since
        attempt.over = True
        self.env.process(self.rest(attempt))

    def rest(self, attempt: Attempt) -> Any:
        if attempt.crashed:
            yield self.env.timeout(self.w.restart)
        self.idle[attempt.worker] = True
        self.change()
        yield self.env.timeout(0)

    def renewals(self, attempt: Attempt) -> Any:
        due = attempt.begun + self.w.renewal
        while True:
            yield self.env.timeout(due - self.env.now)
            if attempt.over:
                return
            if attempt.asleep:
                yield attempt.wakes
                yield self.env.timeout(self.w.gap)
                if attempt.over:
                    return
            if not self.holds(attempt):
                if self.fix.aborts:
                    self.stop(attempt)
                return
            self.until = self.env.now + attempt.luck.skew + self.w.lease * self.fix.times
            self.change()
            due = self.env.now + self.w.renewal

    # --- the receiver

    def travel(self, attempt: Attempt, k: int, message: int, again: int, known: int) -> Any:
        yield self.env.timeout(message)
        if again < NEVER:
            self.env.process(self.travel(attempt, k, again, NEVER, known))
        refused = self.refusal(attempt, k, known)
        if self.fix.guard.startswith("two-step"):
            yield self.env.timeout(self.w.step)
        self.decided(attempt, k, refused)

    def refusal(self, attempt: Attempt, k: int, known: int) -> str:
        fix, runs = self.fix, self.env.now < self.until
        token, holds = attempt.token, attempt.worker == self.attempts[-1].worker and runs
        if k in {"none": (), "attempt": attempt.accepted, "job": self.done}[fix.duplicates]:
            return "duplicate"
        admitted = {
            "unguarded": True,
            "at-or-above": token >= self.highest,
            "two-step-token": token >= self.highest,
            "above": token > self.highest,
            "promised": token >= self.token,
            "latest": token == self.token,
            "current-holder": holds,
            "two-step-holder": holds,
            "current-lease": holds and token == self.token,
            "identity": known == self.version,
        }[fix.guard]
        if not admitted:
            return "guard"
        return "terminal" if fix.terminal_once and self.found["finishes"] else ""

    def decided(self, attempt: Attempt, k: int, refused: str) -> None:
        found, token = self.found, attempt.token
        stale = token < self.token
        late = not stale and self.env.now >= self.until
        found["stale"] += stale
        self.tried = max(self.tried, token)
        if refused in ("duplicate", "terminal"):
            found["rejected_done"] += 1
        elif refused:
            found["rejected_stale" if stale else "rejected_late" if late else "rejected_good"] += 1
        else:
            found["ownership"] += stale
            found["order"] += token < self.highest
            found["late"] += late
            self.last, self.highest = token, max(self.highest, token)
            self.version += 1
            attempt.accepted.add(k)
            self.done.add(k)
            for other in self.attempts:
                if other.worker == attempt.worker:
                    other.known = self.version
            if k == self.w.writes - 1:
                if not found["finishes"]:
                    found["finished_at"], attempt.finished = self.env.now, True
                found["finishes"] += 1
                self.change()
        if refused and refused != "duplicate" and not attempt.over:
            if attempt.asleep:
                attempt.told = True
            else:
                self.stop(attempt)
