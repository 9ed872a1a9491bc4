"""What comes of it when a worker asks the authority (acquire, renew, release, check its lease) and when time passes."""

from __future__ import annotations

from fencinglab.model import lease as authority
from fencinglab.model.event import Event
from fencinglab.model.lease import held_by, why_not
from fencinglab.model.rows import clock
from fencinglab.model.world import Term, Worker, World


def acquire(world: World, event: Event) -> str:
    """The worker asks for the lease, by its own clock. Whatever the answer, it forgets an older grant."""
    worker, name = world.workers[event.worker], world.lease_named(event.lease)
    who, old = worker.name, world.leases[name]
    if worker.parted:
        return f"{who} does not reach the authority and is granted nothing"
    worker.terms.pop(name, None)
    if finished := _finished(world, name):
        world.change(name, old, "grant", worker, None, "terminal")
        return f"{who} is refused: {finished[0]} is finished"
    new = authority.grant(old, who, world.now + worker.skew, world.lease_length, world.fix.delay)
    if new:
        worker.done, worker.stored, worker.checked = [], {}, False
        world.change(name, new, "grant", worker, new.token)
        early = f", while {old.holder} holds it until {clock(old.expires_at)}" if held_by(old, world.now) else ""
        return f"{who} is granted {new.token} until {clock(new.expires_at)}{early}"
    world.change(name, old, "grant", worker, None, "held")
    if held_by(old, world.now):
        return f"{who} is refused: {old.holder} holds the lease until {clock(old.expires_at)}"
    free = old.expires_at + world.fix.delay
    if world.now < free:
        return f"{who} is refused: nobody is granted {old.holder}'s lease before {clock(free)}"
    return f"{who} is refused: by its own clock {old.holder}'s lease is not over yet"


def _finished(world: World, lease: str) -> list[str]:
    """The finished resources that keep a lease over them from being granted or renewed under the terminal rule."""
    covered = world.timeline.covered(lease) if world.fix.terminal_once else ()
    return [resource for resource in covered if world.holds(resource).terminal_version]


def renew(world: World, event: Event) -> str:
    """The worker asks for more time, because the timeline says so."""
    worker = world.workers[event.worker]
    term = world.term(worker, lease=event.lease)
    return _renew(world, worker, term) if term else worker.idle()


def _renew(world: World, worker: Worker, term: Term) -> str:
    term.renewed_at = world.now
    old, finished = world.leases[term.lease], _finished(world, term.lease)
    new = authority.renew(old, worker.name, term.token, world.now + worker.skew, world.lease_length)
    if worker.parted:
        why = "does not reach the authority to renew"
    elif new and not finished:
        world.change(term.lease, new, "renew", worker, term.token)
        return f"{worker.name} renews: its lease runs until {clock(new.expires_at)}"
    else:
        reason = "terminal" if finished else why_not(old, worker.name, term.token)
        world.change(term.lease, old, "renew", worker, term.token, reason)
        why = "is refused the renewal"
        term.renewing = False
    if world.fix.aborts:
        del worker.terms[term.lease]
        return f"{worker.name} {why} and gives up"
    return f"{worker.name} {why} and goes on"


def release(world: World, event: Event) -> str:
    """The worker gives the lease back. It remembers its token: what it does afterwards is stale."""
    worker = world.workers[event.worker]
    term = world.term(worker, lease=event.lease)
    if term is None:
        return worker.idle()
    if worker.parted:
        return f"{worker.name} does not reach the authority to release its lease"
    old = world.leases[term.lease]
    new = authority.release(old, worker.name, term.token)
    term.renewing = False
    reason = "" if new else why_not(old, worker.name, term.token)
    world.change(term.lease, new or old, "release", worker, term.token, reason)
    return f"{worker.name} {'releases its lease' if new else 'is refused: the lease is no longer its own'}"


def check(world: World, event: Event) -> str:
    """The worker looks at its lease, and will not look again before its next write."""
    worker = world.workers[event.worker]
    if not world.fix.client_check or not worker.fenced:
        return f"{worker.name} does not look at its lease under this fix"
    if not worker.terms:
        return worker.idle()
    worker.checked = all(world.told_it_holds(worker, term) for term in worker.terms.values())
    if worker.checked:
        return f"{worker.name} sees that it still holds its lease"
    worker.terms.clear()
    return f"{worker.name} sees that its lease is gone and gives up"


def expire(world: World, event: Event) -> str:
    """Time passes until the lease has run out, however long it is; a running worker may renew it in time."""
    name = world.lease_named(event.lease)
    old = world.leases[name]
    if not held_by(old, world.now):
        past = f": {old.holder}'s ran out at {clock(old.expires_at)}" if old.holder else ""
        return f"no lease runs{past}"
    told = _let_pass(world, old.expires_at)
    kept = world.leases[name]
    if held_by(kept, world.now):
        return f"{kept.holder} renews in time: its lease runs until {clock(kept.expires_at)}"
    return "; ".join([*told[-1:], f"{kept.holder}'s lease ({kept.token}) runs out; what it protects does not change"])


def elapse(world: World, event: Event) -> str:
    """Seconds pass; a lease runs out if they are more than it has left."""
    running = {name: lease for name, lease in world.leases.items() if held_by(lease, world.now)}
    told = _let_pass(world, world.now + event.number)
    says = told[-1:]
    if len(told) > 1:
        says[0] += f" (the last of {len(told)} renewals)"
    for name in running:
        lease = world.leases[name]
        if not held_by(lease, world.now):
            says.append(f"{lease.holder}'s lease ({lease.token}) ran out at {clock(lease.expires_at)}")
    return "; ".join(says) or "nothing else happens"


def _let_pass(world: World, until: int) -> list[str]:
    """Let time pass, in which running workers renew three times a lease where the fix says so; what they were told."""
    told = []
    while world.fix.renews:
        due = [
            (max(world.now, term.renewed_at + max(1, world.lease_length // 3)), worker, term)
            for worker in world.workers.values() if worker.state == "running"
            for term in worker.terms.values() if term.renewing and (not worker.parted or world.fix.aborts)
        ]  # fmt: skip
        first = min(due, key=lambda one: one[0], default=None)
        if first is None or first[0] > until:
            break
        world.now, worker, term = first
        told.append(_renew(world, worker, term))
    world.now = until
    return told
