"""What happens to a worker or to everybody: pauses, crashes, partitions, clocks, versions, deletion, restoration."""

from __future__ import annotations

from fencinglab.model import lease as authority
from fencinglab.model.event import Event
from fencinglab.model.receiver import Held
from fencinglab.model.world import Worker, World


def pause(world: World, event: Event) -> str:
    """The worker stands still; what it sent goes on."""
    worker = world.workers[event.worker]
    worker.state = "paused"
    return f"{worker.name} stands still" + ("" if worker.terms else ", holding nothing")


def resume(world: World, event: Event) -> str:
    """The worker goes on, and does not know that it stood still."""
    world.workers[event.worker].state = "running"
    return f"{event.worker} goes on where it was"


def crash(world: World, event: Event) -> str:
    """The worker is gone; what it sent goes on."""
    old = world.workers[event.worker]
    gone = Worker(old.name, "crashed", skew=old.skew, fenced=old.fenced, parted=old.parted)
    world.workers[event.worker] = gone
    return f"{event.worker} is gone with all that it knew"


def restart(world: World, event: Event) -> str:
    """The worker runs again and remembers nothing."""
    world.workers[event.worker].state = "running"
    return f"{event.worker} starts afresh and knows of no lease"


def part(world: World, event: Event) -> str:
    """The worker no longer reaches the authority, only the receiver."""
    world.workers[event.worker].parted = True
    return f"{event.worker} no longer reaches the authority; what it writes still arrives"


def rejoin(world: World, event: Event) -> str:
    """The worker reaches the authority again."""
    world.workers[event.worker].parted = False
    return f"{event.worker} reaches the authority again"


def skew(world: World, event: Event) -> str:
    """The worker's clock shows a later time than the true one, or an earlier one."""
    ahead = event.act == "ahead"
    world.workers[event.worker].skew = event.number if ahead else -event.number
    return f"{event.worker} believes that it is {event.number} s {'later' if ahead else 'earlier'}"


def downgrade(world: World, event: Event) -> str:
    """A version of the worker that knows no tokens: what it writes carries no condition."""
    world.workers[event.worker].fenced = False
    return f"{event.worker} presents no token from now on, and asks for no comparison"


def upgrade(world: World, event: Event) -> str:
    """The version of the worker that presents its token."""
    world.workers[event.worker].fenced = True
    return f"{event.worker} presents its token from now on"


def delete(world: World, event: Event) -> str:
    """Clean-up removes the resource, and the token counter with it where both are one item."""
    name = event.resource
    old = world.held.get(name)
    if old is None:
        return f"there is no {name} to delete"
    lease = world.lease_over(name, None)
    before = world.state(lease, name)
    del world.held[name]
    world.absent = Held(version=max(world.absent.version, old.version + 1))
    shared = lease == name
    if shared:
        world.leases[lease] = authority.restore(world.leases[lease], world.timeline.first_token - 1, world.fix.floor)
    world.record(name, lease, before, 0, kind="ttl_delete", protected=None)
    if not shared:
        return f"{name} is gone with its marks"
    counter = "its counter is kept elsewhere" if world.fix.floor else "its tokens start again"
    return f"{name} is gone with its marks; {counter}"


def restore(world: World, event: Event) -> str:
    """The authority comes back from a backup: its last token is an older one, unless a floor is kept elsewhere."""
    name = world.lease_named(event.lease)
    restored = world.leases[name] = authority.restore(world.leases[name], event.number, world.fix.floor)
    if restored.token > event.number:
        return f"the authority finds its floor: it issued {restored.token} last, and nobody holds the lease"
    return f"the authority believes that it issued {event.number} last and that nobody holds the lease"
