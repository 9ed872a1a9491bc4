"""What comes of it when a worker reads, writes, sends or acts outside, and when what it sent reaches the receiver."""

from __future__ import annotations

from dataclasses import replace

from fencinglab.model.event import Event
from fencinglab.model.lease import held_by
from fencinglab.model.receiver import Mutation, apply, decide, operation_id, refusal
from fencinglab.model.rows import Row, moment
from fencinglab.model.world import Flight, Stored, World

_PAST = {"write": "wrote", "finish": "finished", "schedule": "scheduled", "retry": "decided", "alert": "raised alert"}
_RULES = {"terminal": "the terminal rule", "no_token": "a receiver that wants a token"}


def read(world: World, event: Event) -> str:
    """The worker reads the resource, and knows its state by identity from then on."""
    worker, resource = world.workers[event.worker], world.resource_named(event.resource)
    held = world.holds(resource)
    worker.known[resource] = held.version
    stands = [text for text in (held.value, held.status, held.next_poll) if text]
    return f"{worker.name} reads {' and '.join(stands) or 'that nothing is written yet'}"


def mutate(world: World, event: Event) -> str:
    """A mutation that is sent and arrives at once."""
    flight = _composed(world, event, event.act)
    return flight if isinstance(flight, str) else _delivered(world, flight, event.lost)


def send(world: World, event: Event) -> str:
    """A mutation that is sent; when it arrives, if at all, is another event."""
    flight = _composed(world, event, event.kind or "write")
    if isinstance(flight, str):
        return flight
    world.flights.setdefault((event.worker, event.value), []).append(flight)
    return f"{event.worker} sends {event.value}, and it is on its way"


def _composed(world: World, event: Event, kind: str) -> Flight | str:
    """The mutation as the worker sends it, or why it sends none."""
    worker, resource = world.workers[event.worker], world.resource_named(event.resource)
    term = world.term(worker, resource)
    if worker.fenced and term is None:
        return worker.idle()
    looks = world.fix.client_check and worker.fenced and not worker.checked
    if looks and term and not world.told_it_holds(worker, term):
        worker.terms.clear()
        return f"{worker.name} looks at its lease first, sees that it is gone, and gives up"
    worker.checked = False
    token = term.token if term and worker.fenced else None
    if (kind, event.value) not in worker.done:
        worker.done.append((kind, event.value))
    number = [value for of, value in worker.done if of == kind].index(event.value) + 1
    operation = operation_id(world.fix.duplicates, worker.name, token, kind, number) if worker.fenced else ""
    artifact = "" if event.reason else worker.stored.get(resource, "")
    mutation = Mutation(
        kind, worker.name, event.value, token, worker.known.get(resource, 0), operation, artifact, event.reason
    )
    lease, grant = world.lease_over(resource, term), term.grant if term else 0
    return Flight(resource, lease, grant, world.now + worker.skew, mutation)


def arrive(world: World, event: Event) -> str:
    """What was sent reaches the receiver."""
    return _landed(world, event, "on its way")


def repeat(world: World, event: Event) -> str:
    """A second copy of what has arrived reaches the receiver."""
    return _landed(world, event, "arrived")


def _landed(world: World, event: Event, state: str) -> str:
    flight = _flight(world, event, state)
    if flight is None:
        return f"nothing arrives: {event.worker} did not send it"
    flight.state = "arrived"
    return _delivered(world, flight, event.lost)


def duplicate(world: World, event: Event) -> str:
    """What was sent is on its way twice from now on."""
    flight = _flight(world, event, "on its way")
    if flight is None:
        return f"nothing is duplicated: {event.worker} did not send it"
    world.flights[event.worker, event.value].append(replace(flight, checked=None))
    return f"two copies of {event.value} are on their way"


def lose(world: World, event: Event) -> str:
    """What was sent never reaches the receiver."""
    flight = _flight(world, event, "on its way")
    if flight is None:
        return f"nothing is lost: {event.worker} did not send it"
    flight.state = "lost"
    return f"{event.value} is lost: the receiver never sees it, and {event.worker} learns nothing"


def inspect(world: World, event: Event) -> str:
    """The check of a receiver that writes in a later step."""
    flight = _flight(world, event, "on its way", unchecked=True)
    if flight is None:
        return f"nothing is checked: {event.worker} did not send it"
    if not world.fix.rules.guard.two_steps:
        return "nothing yet: here the check is part of the write, when it arrives"
    lease, held = world.leases[flight.lease], world.holds(flight.resource)
    flight.checked = refusal(held, lease, flight.mutation, world.now, world.fix.rules)
    found = "refuses it" if flight.checked else "finds nothing against it, and will write in another step"
    return f"the receiver compares for {event.value} and {found}"


def _flight(world: World, event: Event, state: str, unchecked: bool = False) -> Flight | None:
    """The message that is meant: of several copies in this state first one that was checked and refused, then one that
    was checked; for a check one that was not.
    """
    flights = [f for f in world.flights.get((event.worker, event.value), []) if f.state == state]
    return min(flights, key=lambda f: ((f.checked is None) != unchecked, not f.checked), default=None)


def _delivered(world: World, flight: Flight, lost: bool) -> str:
    """The receiver's decision on a mutation that has reached it."""
    mutation, resource, rules = flight.mutation, flight.resource, world.fix.rules
    worker, lease, old = world.workers[mutation.writer], world.leases[flight.lease], world.holds(resource)
    if rules.guard.two_steps and flight.checked is not None:
        reason, flight.checked = flight.checked, None  # another copy is checked anew
        new = apply(old, mutation)
    else:
        new, reason = decide(old, lease, mutation, world.now, rules)
    unheard = lost or worker.state == "crashed"
    operation = (resource, flight.grant, mutation.kind, mutation.value)
    again = operation in world.accepted
    late = flight.grant == world.newest[resource].grant > 0 and held_by(lease, world.now) != worker.name
    attempt = _attempt(world, flight, again, late, unheard)
    before = world.state(flight.lease, resource)
    if not reason:
        world.held[resource] = new
        world.accepted.add(operation)
        if not unheard:
            worker.known[resource] = new.version
    recorded = world.record(
        resource, flight.lease, before, flight.grant, value=mutation.value, again=again, late=late, attempt=attempt,
        kind=mutation.kind, writer=worker.name, token=mutation.token, fenced=mutation.token is not None,
        operation=mutation.operation or None, sent_at=moment(flight.sent_at), reason=reason or None,
        outcome="unknown" if unheard else "failed" if reason else "ok",
        alert=mutation.value if mutation.kind == "alert" and not reason else None,
    )  # fmt: skip
    if not reason and flight.grant >= world.marks[resource].grant:
        world.marks[resource] = recorded
    return f"{attempt}: {_by(world, mutation, reason)}"


def _by(world: World, mutation: Mutation, reason: str) -> str:
    """`rejected by at-or-above`."""
    fix = world.fix
    rule = {**_RULES, "duplicate": f"the duplicate rule (an id per {fix.duplicates})"}.get(reason, fix.guard)
    if reason:
        return f"rejected by {rule}"
    compares = mutation.token is not None and fix.rules.guard.compares != "nothing"
    return f"accepted by {rule}" if compares else "accepted, nothing compared"


def _attempt(world: World, flight: Flight, again: bool, late: bool, unheard: bool) -> str:
    """`A wrote with 41 after 42 was accepted`."""
    mutation, after = flight.mutation, ""
    for newer, word in ((world.marks[flight.resource], "accepted"), (world.newest[flight.resource], "granted")):
        if flight.grant < newer.grant:
            token, writer = newer.row["token"], newer.row["writer"]
            above = token is not None and mutation.token is not None and token > mutation.token
            after = f" after {token if above else f'{writer} with {token}'} was {word}"
            break
    if late:
        ran_out = world.leases[flight.lease].holder == mutation.writer  # else it was given back, or forgotten
        after = f" after its lease had {'run out' if ran_out else 'ended'}"
    presented = "without a token" if mutation.token is None else f"with {mutation.token}"
    lost = ", and the reply is lost" * unheard
    return f"{mutation.writer} {_PAST[mutation.kind]} {'again ' * again}{presented}{after}{lost}"


def poll(world: World, event: Event) -> str:
    """The worker asks a service outside for news about the resource; nothing changes here."""
    refused = _outside(world, event, kind="poll")
    return refused or f"{event.worker} polls and is told {event.value}"


def effect(world: World, event: Event) -> str:
    """The worker causes something outside, where no receiver of ours decides: a mail, a payment."""
    worker = world.workers[event.worker]
    known = world.fix.effect_key and worker.fenced and event.value in world.effects
    key = f"effect/{event.value}" if world.fix.effect_key and worker.fenced else None
    if refused := _outside(world, event, kind="effect", token=None, fenced=False, operation=key,
                           reason="duplicate" if known else None):  # fmt: skip
        return refused
    if known:
        return f"{worker.name} asks for {event.value} outside: its key is known there, nothing happens"
    world.effects.append(event.value)
    times = world.effects.count(event.value)
    return f"{worker.name} causes {event.value}: it happens outside" + (f", {times} times by now" if times > 1 else "")


def store(world: World, event: Event) -> str:
    """The worker stores bytes where nothing is compared: under a key of its own execution, or the one that is named."""
    worker, resource = world.workers[event.worker], world.resource_named(event.resource)
    if refused := _outside(world, event.but(value=""), kind="effect", token=None, fenced=False):
        return refused
    term = world.term(worker, resource)
    own = term.token if term and worker.fenced else worker.name  # an old version knows no token
    key = event.key or f"{resource}/{own}"
    content = {stored.key: stored.content for stored in world.stored}
    replaced = content.get(key, event.value)
    final = replaced != event.value and any(h.terminal_version and h.value == key for h in world.held.values())
    world.stored.append(Stored(key, event.value, term.grant if term else 0, event.line, final))
    worker.stored[resource] = key
    over = "" if replaced == event.value else f" over {replaced}" + ", to which the finished job points" * final
    return f"{worker.name} stores {event.value} under {key}{over}"


def _outside(world: World, event: Event, **known: object) -> str:
    """Record what a holder does outside; why it does nothing, or empty."""
    worker, resource = world.workers[event.worker], world.resource_named(event.resource)
    term = world.term(worker, resource)
    if worker.fenced and term is None:
        return worker.idle()
    lease = world.lease_over(resource, term)
    token = term.token if term and worker.fenced else None
    given: Row = {"writer": worker.name, "token": token, "fenced": token is not None, "protected": False} | known
    grant = term.grant if term else 0
    world.record(resource, lease, world.state(lease, resource), grant, value=event.value, **given)
    return ""
