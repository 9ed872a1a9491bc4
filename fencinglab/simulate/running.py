"""Jobs in which something happens, one event of each in every round: grants, arrivals, what is decided.

The receiver decides with the guards of `fencinglab.model.guard`, here on whole arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencinglab.model.fix import Fix
from fencinglab.model.guard import Presented, Seen
from fencinglab.simulate.chance import NEVER, Chance, asked_after, drawn
from fencinglab.simulate.course import course, held, processed
from fencinglab.simulate.laws import Floats, Ints
from fencinglab.simulate.workload import SECOND, Workload

Told = list[tuple[Any, ...]]  # what happens to one job: (moment, what, details)
_ADMITTED, _DUPLICATE, _GUARDED, _TERMINAL = range(4)


class Outcome(NamedTuple):
    """What came of each job, as counts and microseconds; the names of what is broken are those of the invariants."""

    finished_at: Ints  # when a first finish was accepted, from the first grant on; NEVER = none was
    stale: Ints  # writes that arrived after a newer grant
    order: Ints  # accepted after a write with a newer token
    ownership: Ints  # accepted after a newer grant
    late: Ints  # accepted after their lease had run out, with no newer grant
    rejected_stale: Ints
    rejected_late: Ints  # refused after their lease had run out, with no newer grant
    rejected_done: Ints  # refused as repetitions or because the job was finished
    rejected_good: Ints  # refused while their lease ran
    finishes: Ints  # accepted
    effects: Ints  # caused outside, once in each attempt that comes to its end
    final: Ints  # 1 = it was finished, and what stands in the end is not the newest writer's
    reassigned: Ints  # grants after the first
    needless: Ints  # of these: from a worker that still went on
    dead: Ints  # time in which a holder did not work, before its lease was reassigned
    wasted: Ints  # processing of attempts other than the one whose finish was accepted first
    weight: Floats | None = None  # where long pauses were drawn on purpose


COUNTED = Outcome._fields[:-1]  # all but the weight


class Running:
    """Jobs that are not settled: each array has a row for each. It lives only inside `jobs.simulate`.

    Attempts stand in slots, which are used again once nothing of an attempt is to come. A write has a column for each
    of its two copies.
    """

    def __init__(self, workload: Workload, fix: Fix, seed: int, jobs: NDArray[np.uint64], told: Told | None) -> None:
        self.workload, self.fix, self.seed, self.told = workload, fix, seed, told
        self.guard, self.writes = fix.rules.guard, workload.writes
        size = jobs.shape[0]
        self.place, self.jobs = np.arange(size), jobs
        self.results = {name: np.zeros(size, dtype=np.int64) for name in COUNTED}

        def zeros(*shape: int, fill: int = 0) -> Ints:
            return np.full((size, *shape), fill, dtype=np.int64)

        self.counts = {name: zeros() for name in COUNTED}
        self.counts["finished_at"][:] = NEVER
        self.latest, self.holder, self.slot = zeros(), zeros(), zeros()  # the newest token, its worker, its slot
        self.highest, self.last, self.tried, self.version = zeros(), zeros(), zeros(), zeros()
        self.until, self.renewed, self.then_until, self.asks = zeros(), zeros(), zeros(), zeros()
        self.free = zeros(workload.workers)  # when each worker is idle again
        self.of_job = np.zeros((size, self.writes), dtype=bool)  # which operations the job has done
        slots = workload.workers
        self.per_slot = {
            name: zeros(slots) for name in ("token", "worker", "granted", "end", "paused_at", "pause", "unit", "skew")
        }
        self.sends, self.known = zeros(slots, self.writes, fill=NEVER), zeros(slots, self.writes)
        self.looks = zeros(slots, self.writes, fill=NEVER)
        self.accepted = np.zeros((size, slots, self.writes), dtype=bool)
        self.arrives = zeros(slots, self.writes, 2, fill=NEVER)
        self.checked = np.full((size, slots, self.writes, 2), -1, dtype=np.int8)

    # --- the loop

    def run(self) -> None:
        """An event of each job in every round, until nothing is to come."""
        while self.place.size:
            columns = self.arrives.reshape(self.place.size, -1)
            column = columns.argmin(axis=1)
            arrives = columns[np.arange(self.place.size), column]
            grants = self._next_grant()
            going = np.minimum(arrives, grants) < NEVER
            delivering = np.flatnonzero(going & (arrives <= grants))
            if delivering.size:
                self._deliver(delivering, column[delivering], arrives[delivering])
            granting = np.flatnonzero(going & (grants < arrives))
            if granting.size:
                self._grant(granting, grants[granting])
            if not going.all():
                self._settle(going)

    def _next_grant(self) -> Ints:
        """When each job is granted next; NEVER = no more."""
        delay = self.fix.delay * SECOND
        idle = self.free.min(axis=1)
        granted = np.maximum(self.until + delay + self.asks, idle)
        if self.fix.renews:
            kept = (self.renewed < NEVER) & (granted >= self.renewed)
            granted = np.where(kept, np.maximum(self.then_until + delay + self.asks, idle), granted)
        if self.workload.skew:
            rows = np.arange(self.place.size)
            granted = np.maximum(granted, self.per_slot["granted"][rows, self.slot])
        open_ = (self.counts["finishes"] == 0) & (self.latest < self.workload.attempts)
        return np.where(open_, granted, NEVER)

    def _settle(self, going: NDArray[np.bool_]) -> None:
        """Keep the results of the jobs that have come to rest, and only the others as rows."""
        rest, counts = ~going, self.counts
        counts["final"][rest] = (self.last[rest] < self.tried[rest]) & (counts["finishes"][rest] > 0)
        if self.fix.effect_key:
            counts["effects"][rest] = np.minimum(counts["effects"][rest], 1)
        for name, found in counts.items():
            self.results[name][self.place[rest]] = found[rest]
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[going])
        self.counts = {name: found[going] for name, found in counts.items()}
        self.per_slot = {name: found[going] for name, found in self.per_slot.items()}

    # --- grants

    def _grant(self, rows: Ints, at: Ints) -> None:
        """A takeover: the holder before loses its lease, and somebody idle is granted it."""
        old = {name: found[rows, self.slot[rows]] for name, found in self.per_slot.items()}
        worked = np.minimum(at, old["end"]) - old["granted"]
        self.counts["dead"][rows] += at - old["granted"] - processed(old["paused_at"], old["pause"], worked)
        self.counts["needless"][rows] += old["end"] > at
        self.counts["reassigned"][rows] += 1
        if self.workload.skew:
            self._superseded(rows, at)
        attempt = self.latest[rows] + 1
        jobs = self.jobs[rows]
        self.granted(
            rows, at, drawn(self.workload, self.seed, jobs, attempt),
            asked_after(self.workload, self.seed, jobs, attempt + 1),
        )  # fmt: skip

    def _superseded(self, rows: Ints, at: Ints) -> None:
        """The holder before, whose lease somebody with a fast clock was granted early, may notice it."""
        slot, cut = self.slot[rows], np.full(rows.shape, NEVER, dtype=np.int64)
        if self.fix.client_check:
            looks = self.looks[rows, slot]
            cut = np.where(looks >= at[:, None], looks, NEVER).min(axis=1)
        if self.fix.renews and self.fix.aborts:
            cut = np.minimum(cut, np.where(self.renewed[rows] >= at, self.renewed[rows], NEVER))
        soon = np.flatnonzero(cut < self.per_slot["end"][rows, slot])
        if soon.size:
            self._give_up(rows[soon], slot[soon], cut[soon])
        same = np.flatnonzero(cut == self.per_slot["end"][rows, slot])  # it saw it right before its last write
        if same.size:
            self._unsend(rows[same], slot[same], cut[same])

    def granted(self, rows: Ints, at: Ints, chance: Chance, asks: Ints) -> None:
        """A grant in each of these jobs: what chance brings to the attempt, and when somebody would ask next."""
        planned = course(self.workload, self.fix, chance)
        resting = self.arrives.reshape(self.place.size, -1, 2 * self.writes)[rows].min(axis=2) == NEVER
        if not resting.any(axis=1).all():
            self._widen()
            resting = np.pad(resting, ((0, 0), (0, 1)), constant_values=True)
        slot, worker = resting.argmax(axis=1), (self.free[rows] <= at[:, None]).argmax(axis=1)
        self.latest[rows] += 1
        self.holder[rows], self.slot[rows], self.asks[rows] = worker, slot, asks
        self.until[rows], self.then_until[rows] = at + planned.until, at + planned.then_until
        self.renewed[rows] = np.minimum(at + planned.renewed, NEVER)
        end = at + planned.end
        self.free[rows, worker] = end + planned.crashes * self.workload.restart
        own = chance.paused_at, chance.pause, chance.unit, chance.skew
        made = (self.latest[rows], worker, at, end, *own)
        for found, value in zip(self.per_slot.values(), made, strict=True):
            found[rows, slot] = value
        self.accepted[rows, slot] = False
        self.checked[rows, slot] = -1
        self.known[rows, slot] = self.version[rows][:, None]
        for k, (send, message, again) in enumerate(zip(planned.sends, chance.message, chance.again, strict=True)):
            sent = np.minimum(at + send, NEVER)
            self.sends[rows, slot, k], self.looks[rows, slot, k] = sent, at + planned.looks[k]
            self.arrives[rows, slot, k, 0] = np.minimum(sent + message, NEVER)
            self.arrives[rows, slot, k, 1] = np.minimum(sent + message + again, NEVER)
        self.counts["effects"][rows] += sent < NEVER
        self.counts["wasted"][rows] += processed(chance.paused_at, chance.pause, planned.end)
        if self.told is not None:
            self.told.append((int(at[0]), "grant", int(self.latest[0]), int(worker[0]), chance, planned))

    def _widen(self) -> None:
        """Make room for one more attempt at a time."""
        self.per_slot = {name: np.pad(found, ((0, 0), (0, 1))) for name, found in self.per_slot.items()}
        for name in ("sends", "looks", "known", "accepted", "arrives", "checked"):
            found = getattr(self, name)
            fill = NEVER if name in ("sends", "looks", "arrives") else 0
            pads = ((0, 0), (0, 1), *((0, 0),) * (found.ndim - 2))
            setattr(self, name, np.pad(found, pads, constant_values=fill))

    # --- arrivals

    def _deliver(self, rows: Ints, column: Ints, at: Ints) -> None:
        """A copy of a write reaches the receiver, which decides; one of two steps decides now and writes later."""
        slot, rest = np.divmod(column, 2 * self.writes)
        k, copy = np.divmod(rest, 2)
        if not self.guard.two_steps:
            self._decided(rows, slot, k, copy, at, self._refusal(rows, slot, k, at))
            return
        verdict = self.checked[rows, slot, k, copy]
        new = np.flatnonzero(verdict < 0)
        if new.size:
            r, s, n, c = rows[new], slot[new], k[new], copy[new]
            self.checked[r, s, n, c] = self._refusal(r, s, n, at[new])
            self.arrives[r, s, n, c] = at[new] + self.workload.step
            if self.told is not None:
                self.told.append((int(at[0]), "check", int(self.per_slot["token"][0, s[0]]), int(n[0]), int(c[0])))
        old = np.flatnonzero(verdict >= 0)
        if old.size:
            r, s, n, c = rows[old], slot[old], k[old], copy[old]
            self._decided(r, s, n, c, at[old], verdict[old])

    def _refusal(self, rows: Ints, slot: Ints, k: Ints, at: Ints) -> NDArray[np.int8]:
        """Why the receiver refuses, as `fencinglab.model.receiver.refusal` says; 0 = it admits."""
        fix, latest = self.fix, self.latest[rows]
        holder = np.where(self._runs(rows, at), self.holder[rows], -1)
        seen: list[Any] = [self.highest[rows], latest, latest, holder, self.version[rows]]
        own = self.per_slot["token"][rows, slot], self.per_slot["worker"][rows, slot], self.known[rows, slot, k]
        presented: list[Any] = [*own]
        admits = np.broadcast_to(np.asarray(self.guard.admits(Seen(*seen), Presented(*presented))), rows.shape)
        code = np.where(admits, _ADMITTED, _GUARDED).astype(np.int8)
        if fix.terminal_once:
            code[admits & (self.counts["finishes"][rows] > 0)] = _TERMINAL
        if fix.duplicates != "none":
            done = self.of_job[rows, k] if fix.duplicates == "job" else self.accepted[rows, slot, k]
            code[done] = _DUPLICATE
        return code

    def _runs(self, rows: Ints, at: Ints) -> NDArray[np.bool_]:
        """Whether the newest lease runs."""
        until = np.where(at >= self.renewed[rows], self.then_until[rows], self.until[rows])
        return at < until

    def _decided(self, rows: Ints, slot: Ints, k: Ints, copy: Ints, at: Ints, code: NDArray[np.int8]) -> None:
        """Count the decision, apply what was admitted, and let a refused worker give up."""
        counts, token = self.counts, self.per_slot["token"][rows, slot]
        self.arrives[rows, slot, k, copy] = NEVER
        stale, accepted = token < self.latest[rows], code == _ADMITTED
        late = ~stale & ~self._runs(rows, at)
        done = (code == _DUPLICATE) | (code == _TERMINAL)
        other = ~accepted & ~done
        for name, found in {
            "stale": stale, "ownership": accepted & stale, "order": accepted & (token < self.highest[rows]),
            "late": accepted & late, "rejected_done": done, "rejected_stale": other & stale,
            "rejected_late": other & late, "rejected_good": other & ~stale & ~late,
        }.items():  # fmt: skip
            counts[name][rows] += found
        self.tried[rows] = np.maximum(self.tried[rows], token)
        yes = np.flatnonzero(accepted)
        if yes.size:
            self._apply(rows[yes], slot[yes], k[yes], at[yes], token[yes])
        no = np.flatnonzero(~accepted & (code != _DUPLICATE))  # a repetition means success to its sender
        if no.size:
            self._refused(rows[no], slot[no], at[no])
        if self.told is not None:
            decided = bool(accepted[0]), int(self.latest[0])
            self.told.append((int(at[0]), "decide", int(token[0]), int(k[0]), int(copy[0]), *decided))

    def _apply(self, rows: Ints, slot: Ints, k: Ints, at: Ints, token: Ints) -> None:
        self.last[rows], self.highest[rows] = token, np.maximum(self.highest[rows], token)
        self.version[rows] += 1
        self.accepted[rows, slot, k] = self.of_job[rows, k] = True
        if self.guard.compares == "version":
            own = self.per_slot["worker"][rows] == self.per_slot["worker"][rows, slot][:, None]
            later = own[:, :, None] & (self.sends[rows] >= at[:, None, None])
            self.known[rows] = np.where(later, self.version[rows][:, None, None], self.known[rows])
        finish = np.flatnonzero(k == self.writes - 1)
        if finish.size:
            rows, at, slot = rows[finish], at[finish], slot[finish]
            first = self.counts["finishes"][rows] == 0
            self.counts["finishes"][rows] += 1
            self.counts["finished_at"][rows[first]] = at[first]
            self.counts["wasted"][rows[first]] -= self.per_slot["unit"][rows, slot][first] * self.writes

    def _refused(self, rows: Ints, slot: Ints, at: Ints) -> None:
        """The worker learns it at once, or when it wakes up, and gives up unless its attempt is over anyway."""
        of = {name: found[rows, slot] for name, found in self.per_slot.items()}
        since = at - of["granted"]
        asleep = (since >= of["paused_at"]) & (since < of["paused_at"] + of["pause"])
        learns = np.where(asleep, of["granted"] + of["paused_at"] + of["pause"], at)
        early = np.flatnonzero(learns < of["end"])
        if early.size:
            self._give_up(rows[early], slot[early], learns[early])

    def _give_up(self, rows: Ints, slot: Ints, at: Ints) -> None:
        """End the attempts at that moment: what would be sent from then on is not, and nothing is renewed."""
        self._unsend(rows, slot, at)
        of = {name: found[rows, slot] for name, found in self.per_slot.items()}
        self.counts["wasted"][rows] += processed(of["paused_at"], of["pause"], at - of["granted"])
        self.counts["wasted"][rows] -= processed(of["paused_at"], of["pause"], of["end"] - of["granted"])
        self.per_slot["end"][rows, slot] = at
        self.free[rows, of["worker"]] = at
        if self.told is not None:
            self.told.append((int(at[0]), "give up", int(of["token"][0])))
        if self.fix.renews:
            newest = of["token"] == self.latest[rows]
            rows, at, of = rows[newest], at[newest], {name: found[newest] for name, found in of.items()}
            begun = of["granted"] + of["skew"]
            until, renewed, then_until, _ = held(
                self.workload, self.fix, of["paused_at"], of["pause"], at - of["granted"] - 1
            )
            self.until[rows] = begun + until
            self.then_until[rows] = begun + then_until
            self.renewed[rows] = np.minimum(of["granted"] + renewed, NEVER)

    def _unsend(self, rows: Ints, slot: Ints, at: Ints) -> None:
        gone = (self.sends[rows, slot] >= at[:, None]) & (self.sends[rows, slot] < NEVER)
        self.counts["effects"][rows] -= gone[:, -1]
        self.arrives[rows, slot] = np.where(gone[:, :, None], NEVER, self.arrives[rows, slot])
        self.sends[rows, slot] = np.where(gone, NEVER, self.sends[rows, slot])
