"""Histories to judge: a small simulated world, odd combinations of every column, and one violation at a time.

`realistic(seed)` simulates workers, pauses, take-overs, refusals and lost replies, then forgets some of
it; `arbitrary(seed)` draws every column on its own; `healthy(seed)` breaks no unsafe rule; `inject(rule,
seed)` is a calm history with exactly one violation. All give lists of dicts of history columns, times as
integers in microseconds, valid under `fencinglab.history.check`. A seed may also be a `random.Random`,
which is how the Hypothesis strategies at the end drive (and shrink) the same code.
"""

from __future__ import annotations

import random
import zlib
from typing import Any

from hypothesis import strategies as st

from fencinglab.history import DECISIONS, KINDS, NAMES, NOBODY, ORDER_DIGITS, OUTCOMES, REASONS

Row = dict[str, Any]
SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_760_000_000 * SECOND
LEASE_TIME = 120 * SECOND
WORKERS = ("ann", "bob", "cyd")
STATE = ("token", "holder", "expires_at", "status", "terminal", "terminal_version", "version", "value")


def _rng(seed: int | random.Random) -> random.Random:
    return seed if isinstance(seed, random.Random) else random.Random(seed)


def order_key(number: int) -> str:
    return f"{number:0{ORDER_DIGITS}d}"


# --------------------------------------------------------------------------- a small world


class World:
    """Items behind a receiver, a clock, one order, and the rows written so far."""

    def __init__(self, rng: random.Random, lease: str | None = None) -> None:
        self.rng, self.lease = rng, lease
        self.rows: list[Row] = []
        self.items: dict[str, Row] = {}  # no entry = no item
        self.floor: dict[str, int] = {}  # the highest token of a lease; outlives the item
        self.finished_at: dict[str, int] = {}
        self.now, self.serial = START, 0

    def attempt(self, resource: str, kind: str, writer: str | None, change: Row | None, **given: Any) -> Row:
        """Let the receiver decide one mutation; `change` None removes the item, {} leaves it as it is."""
        self.now += self.rng.choice((0, 1, 5)) * SECOND + self.rng.randrange(SECOND)
        self.serial += 1
        row: Row = {
            "resource": resource, "lease": self.lease, "order_key": order_key(self.serial), "order_scope": "shard-0",
            "at": self.now, "sent_at": self.now - 1000, "at_precision": 0, "kind": kind, "writer": writer,
            "token": None, "fenced": None, "protected": True, "operation": f"op-{self.serial:04d}",
            "decision": "accepted", "reason": None, "outcome": "ok", "fell": "", "token_width": 0,
            "expiry_unit": "s", "source": f"step:{self.serial:06d}",
        }  # fmt: skip
        row |= given
        if row["token"] is not None and "fenced" not in given:
            row["fenced"] = True
        before = self.items.get(resource)
        row |= _side("before", before)
        if row["decision"] != "accepted":
            row["outcome"] = given.get("outcome", "failed")
        elif change is None:
            self.items.pop(resource, None)
            row |= _side("after", None)
        else:
            old = before or {"version": 0, "terminal": False, "holder": NOBODY}
            new = old | change | {"version": old["version"] + 1}
            self.items[resource] = new
            row |= _side("after", new)
        self.rows.append(row)
        return row

    # What workers do.

    def create(self, resource: str, **given: Any) -> Row:
        given = {"protected": False, "fenced": False, "token_width": None, "expiry_unit": None} | given
        return self.attempt(resource, "write", "client", {"status": "open", "terminal": False}, **given)

    def grant(self, resource: str, worker: str, **given: Any) -> Row:
        key = self.lease or resource
        token = self.floor[key] = self.floor.get(key, 0) + 1
        change = {"token": token, "holder": worker, "expires_at": self.now + LEASE_TIME, "status": "running"}
        return self.attempt(resource, "grant", worker, change, **{"token": token} | given)

    def write(self, resource: str, worker: str, token: int | None, kind: str = "write", **given: Any) -> Row:
        change = given.pop("change", {"status": f"step-{self.serial}"})
        return self.attempt(resource, kind, worker, change, token=token, **given)

    def renew(self, resource: str, worker: str, token: int, **given: Any) -> Row:
        return self.write(resource, worker, token, "renew", change={"expires_at": self.now + LEASE_TIME}, **given)

    def release(self, resource: str, worker: str, token: int, **given: Any) -> Row:
        return self.write(resource, worker, token, "release", change={"holder": NOBODY, "expires_at": None}, **given)

    def finish(self, resource: str, worker: str, token: int | None, **given: Any) -> Row:
        version = (self.item(resource, "terminal_version") or 0) + 1
        value = f"by-{worker}-{self.serial}"
        change = {"status": "done", "terminal": True, "terminal_version": version, "value": value}
        row = self.write(resource, worker, token, "finish", change=change, **given)
        if row["decision"] == "accepted":
            self.finished_at[resource] = row["at"]
        return row

    def refuse(self, resource: str, worker: str, token: int | None, kind: str = "write", **given: Any) -> Row:
        return self.write(resource, worker, token, kind, change={}, decision="rejected", **given)

    def item(self, resource: str, name: str) -> Any:
        return self.items.get(resource, {}).get(name)

    def expire(self, resource: str) -> None:
        """Let time pass until the lease has run out."""
        self.now = max(self.now, (self.item(resource, "expires_at") or 0) + SECOND)


def _side(side: str, item: Row | None) -> Row:
    if item is None:
        return {f"{side}_{name}": None for name in STATE} | {f"{side}_image": 0, f"{side}_holder": NOBODY}
    image = zlib.crc32(repr(sorted(item.items())).encode()) + 1
    return {f"{side}_{name}": item.get(name) for name in STATE} | {f"{side}_image": image}


# --------------------------------------------------------------------------- healthy


def _life(world: World, resource: str, calm: bool) -> None:
    """One incarnation behind a receiver that compares tokens. Calm: nobody is late, refused or too early."""
    rng = world.rng
    world.create(resource)
    stale: list[tuple[str, int]] = []
    for turn in range(rng.randint(1, 3)):
        worker = rng.choice([w for w in WORKERS if w != world.item(resource, "holder")])
        world.expire(resource)
        if not calm and rng.random() < 0.3:
            loser = rng.choice([w for w in WORKERS if w != worker])
            world.attempt(resource, "grant", loser, {}, token=None, decision="rejected", reason="not_held")
        token = world.grant(resource, worker)["token"]
        for _ in range(rng.randint(0, 3)):
            kind = rng.choice(("write", "schedule", "poll", "effect", "retry", "renew"))
            if kind == "renew":
                world.renew(resource, worker, token)
            elif rng.random() < 0.2:
                # A change that is none of the lease's business.
                world.attempt(resource, "write", "client", {"note": rng.random()}, fenced=False, protected=False)
            else:
                world.write(resource, worker, token, kind, change={"progress": rng.random()})
        if not calm and rng.random() < 0.2:
            world.expire(resource)
            world.write(resource, worker, token, outcome=rng.choice(("ok", "unknown")))  # late, but nobody else came
        if not calm and stale and rng.random() < 0.7:
            for name, old in rng.sample(stale, 1) * rng.randint(1, 2):
                reason = rng.choice((None, "newer_token", "the condition failed"))
                world.refuse(resource, name, old, rng.choice(("write", "finish", "renew", "delete")), reason=reason)
        stale.append((worker, token))
        if turn == 0 and rng.random() < 0.2:
            world.release(resource, worker, token)
            stale.clear()
    worker, token = world.item(resource, "holder"), world.item(resource, "token")
    if worker == NOBODY:
        worker = rng.choice(WORKERS)
        token = world.grant(resource, worker)["token"]
    if rng.random() < 0.8:
        done = world.finish(resource, worker, token, outcome="ok" if calm else rng.choice(("ok", "unknown")))
        if rng.random() < 0.5:
            world.write(resource, worker, token, "alert", change={"alerted": True}, alert=f"alert-{resource}-{token}")
        if not calm and done["outcome"] == "unknown":
            reason = rng.choice((None, "terminal", "duplicate"))
            world.refuse(resource, worker, token, "finish", operation=done["operation"], reason=reason)
        if not calm and rng.random() < 0.3:
            world.refuse(resource, worker, token, "finish", reason=rng.choice((None, "terminal")))
        world.release(resource, worker, token)
        ending = rng.choice(("keep", "delete", "ttl"))
        if ending == "delete":
            world.attempt(resource, "delete", worker, None, token=token)
        elif ending == "ttl":
            world.now += DAY + 10 * SECOND
            world.attempt(resource, "ttl_delete", None, None, fenced=False, operation=None)


def healthy(seed: int | random.Random, calm: bool = False) -> list[Row]:
    """A history with take-overs, refusals and re-creations that breaks no unsafe rule; calm: no rule at all."""
    world = World(_rng(seed))
    _healthy(world, calm)
    return world.rows


def _healthy(world: World, calm: bool) -> None:
    for resource in ("job-1", "job-2")[: world.rng.randint(1, 2)]:
        for _ in range(world.rng.randint(1, 2)):
            _life(world, resource, calm)
            if resource in world.items:
                break


# --------------------------------------------------------------------------- one violation

# Rules that the same row necessarily breaks too: an owner set without a new token leaves one token
# under two holders; each further attempt of a refused worker is itself refused.
ALSO = {
    "holder_without_token": {"token_shared"},
    "went_on_after_rejection": {"rejected_stale"},
}


def inject(rule: str, seed: int | random.Random) -> tuple[list[Row], int]:
    """A calm history with one violation of the rule, and the index of the row that must be flagged."""
    world = World(_rng(seed))
    _healthy(world, calm=True)
    flagged = _VIOLATIONS[rule](world)
    if world.rng.random() < 0.5:
        _life(world, "job-4", calm=True)
    return world.rows, next(i for i, row in enumerate(world.rows) if row is flagged)


_SICK = "job-3"


def _held(world: World, takeover: bool = False) -> tuple[str, int, str, int]:
    """The sick resource, granted once or twice: the last holder and token, the one before (or a bystander)."""
    first, second = world.rng.sample(WORKERS, 2)
    world.create(_SICK)
    old = world.grant(_SICK, first)["token"]
    for _ in range(world.rng.randint(0, 2)):
        world.write(_SICK, first, old)
    if not takeover:
        return first, old, second, old
    world.expire(_SICK)
    new = world.grant(_SICK, second)["token"]
    return second, new, first, old


def _finished(world: World) -> tuple[str, int]:
    worker, token, _, _ = _held(world, world.rng.random() < 0.5)
    world.finish(_SICK, worker, token)
    return worker, token


def _token_went_back(world: World) -> Row:
    holder, token, stale, old = _held(world, takeover=True)
    world.write(_SICK, holder, token)
    return world.write(_SICK, stale, old, world.rng.choice(("write", "effect", "schedule")))


def _stale_write_accepted(world: World) -> Row:
    _, _, stale, old = _held(world, takeover=True)
    return world.write(_SICK, stale, old)


def _token_shared(world: World) -> Row:
    # The later writer in the alphabet is the one that is flagged, so the holder comes first in it.
    world.create(_SICK)
    holder, other = sorted(world.rng.sample(WORKERS, 2))
    token = world.grant(_SICK, holder)["token"]
    return world.write(_SICK, other, token)


def _holder_without_token(world: World) -> Row:
    world.create(_SICK)
    holder, other = sorted(world.rng.sample(WORKERS, 2))
    token = world.grant(_SICK, holder)["token"]
    return world.write(_SICK, holder, token, change={"holder": other})


def _unfenced_write(world: World) -> Row:
    _, _, other, _ = _held(world, world.rng.random() < 0.5)
    return world.write(_SICK, other, None, fenced=False)


def _terminal_twice(world: World) -> Row:
    worker, token = _finished(world)
    return world.finish(_SICK, worker, token)


def _terminal_left(world: World) -> Row:
    worker, token = _finished(world)
    return world.write(_SICK, worker, token, change={"status": "running", "terminal": False})


def _image_went_back(world: World) -> Row:
    worker, token, _, _ = _held(world, world.rng.random() < 0.5)
    return world.write(_SICK, worker, token, change={"token": 0})


def _state_went_back(world: World) -> Row:
    worker, token, _, _ = _held(world)
    return world.write(_SICK, worker, token, fell="attempt")


def _token_restarted(world: World) -> Row:
    worker, token = _finished(world)
    world.attempt(_SICK, "delete", worker, None, token=token)
    world.floor[_SICK] = 0
    world.create(_SICK)
    return world.grant(_SICK, world.rng.choice(WORKERS))


def _operation_twice(world: World) -> Row:
    worker, token, _, _ = _held(world)
    operation = world.write(_SICK, worker, token)["operation"]
    return world.write(_SICK, worker, token, operation=operation)


def _alert_twice(world: World) -> Row:
    worker, token = _finished(world)
    world.write(_SICK, worker, token, "alert", change={"alerted": 1}, alert="one")
    return world.write(_SICK, worker, token, "alert", change={"alerted": 2}, alert=world.rng.choice(("one", "two")))


def _unfenced_delete(world: World) -> Row:
    _, _, stale, old = _held(world, takeover=True)
    if world.rng.random() < 0.5:
        return world.attempt(_SICK, "delete", stale, None, token=old)
    return world.attempt(_SICK, "delete", stale, None, fenced=False)


def _tokens_as_text(world: World) -> Row:
    worker, token, _, _ = _held(world)
    for row in world.rows:
        if row["resource"] == _SICK:
            row["token_width"] = 1
    return world.write(_SICK, worker, token, token_width=2)


def _scopes_mixed(world: World) -> Row:
    worker, token, _, _ = _held(world)
    for row in world.rows:
        if row["resource"] == _SICK:
            row["lease"] = "lease-a"
    return world.write(_SICK, worker, token, lease="lease-b")


def _ttl_removed_live(world: World) -> Row:
    _held(world)
    return world.attempt(_SICK, "ttl_delete", None, None, fenced=False, operation=None)


def _leases_overlap(world: World) -> Row:
    _, _, other, _ = _held(world)
    return world.grant(_SICK, other)


def _late_write_accepted(world: World) -> Row:
    worker, token, _, _ = _held(world)
    world.expire(_SICK)
    return world.write(_SICK, worker, token)


def _renewed_after_release(world: World) -> Row:
    worker, token, _, _ = _held(world)
    world.release(_SICK, worker, token)
    return world.renew(_SICK, worker, token)


def _work_after_terminal(world: World) -> Row:
    worker, token = _finished(world)
    return world.write(_SICK, worker, token, world.rng.choice(("poll", "schedule", "retry")), change={"progress": 1})


def _went_on_after_rejection(world: World) -> Row:
    _, _, stale, old = _held(world, takeover=True)
    world.refuse(_SICK, stale, old, reason=world.rng.choice((None, "newer_token")))
    return world.refuse(_SICK, stale, old)


def _rejected_stale(world: World) -> Row:
    _, _, stale, old = _held(world, takeover=True)
    return world.refuse(_SICK, stale, old, reason=world.rng.choice((None, "newer_token")))


def _rejected_late(world: World) -> Row:
    worker, token, _, _ = _held(world)
    world.expire(_SICK)
    return world.refuse(_SICK, worker, token, reason=world.rng.choice((None, "expired")))


def _rejected_done(world: World) -> Row:
    worker, token = _finished(world)
    return world.refuse(_SICK, worker, token, "finish", reason=world.rng.choice((None, "terminal", "duplicate")))


def _own_success_rejected(world: World) -> Row:
    worker, token, _, _ = _held(world)
    lost = world.finish(_SICK, worker, token, outcome="unknown")
    return world.refuse(_SICK, worker, token, "finish", operation=lost["operation"])


def _chain_broken(world: World) -> Row:
    worker, token, _, _ = _held(world)
    world.write(_SICK, worker, token)
    world.rows.pop()
    return world.write(_SICK, worker, token)


def _order_unknown(world: World) -> Row:
    worker, token, _, _ = _held(world)
    return world.write(_SICK, worker, token, order_key=None)


def _time_went_back(world: World) -> Row:
    worker, token, _, _ = _held(world)
    row = world.write(_SICK, worker, token)
    row["at"] = row["at"] - 3600 * SECOND
    return row


def _clock_mixed(world: World) -> Row:
    worker, token, _, _ = _held(world)
    return world.write(_SICK, worker, token, expiry_unit="ms")


_VIOLATIONS = {
    name.removeprefix("_"): function
    for name, function in list(globals().items())
    if name.startswith("_") and getattr(function, "__annotations__", {}) == {"world": "World", "return": "Row"}
}


# --------------------------------------------------------------------------- realistic


def realistic(seed: int | random.Random) -> list[Row]:
    """A small world with its flaws, seen through a log that forgets some of it."""
    rng = _rng(seed)
    world = World(rng, lease=rng.choice((None, None, "lease-1")))
    guard = rng.choice(("token", "owner", "time", "none", "none"))
    restarts = rng.random() < 0.3
    rises = rng.random() < 0.15  # the counter rises on renewals as well
    resources = [f"job-{i}" for i in range(1, rng.choice((1, 1, 1, 2, 3)) + 1)]
    hands: dict[tuple[str, str], int] = {}  # the token that each worker believes in
    copies: dict[tuple[str, str], Row] = {}  # the item as each worker last read it
    for _ in range(rng.randint(3, 20)):
        _step(world, rng.choice(resources), guard, restarts, rises, hands, copies)
    _forget(world.rows, rng)
    return world.rows


def _step(
    world: World, resource: str, guard: str, restarts: bool, rises: bool,
    hands: dict[tuple[str, str], int], copies: dict[tuple[str, str], Row],
) -> None:  # fmt: skip
    rng = world.rng
    if resource not in world.items:
        if restarts:
            world.floor.pop(resource, None)
        world.create(resource, protected=rng.choice((True, False)))
        return
    worker = rng.choice(WORKERS[: rng.choice((2, 2, 3))])
    mine = hands.get((resource, worker))
    holder, token = world.item(resource, "holder"), world.item(resource, "token")
    expires = world.item(resource, "expires_at")
    run_out = holder == NOBODY or expires is None or expires <= world.now
    if rng.random() < 0.2:
        world.expire(resource)
    dice = rng.random()
    if dice < 0.25 or mine is None:
        if run_out or rng.random() < 0.1:
            row = world.grant(resource, worker, token_width=rng.choice((0, 0, 1, 2)))
            if token is not None and rng.random() < 0.05:  # the new owner without a new token
                row["token"] = world.items[resource]["token"] = token
                row |= _side("after", world.items[resource])
            hands[resource, worker] = row["token"]
            copies[resource, worker] = dict(world.items[resource])
        else:
            world.attempt(
                resource, "grant", worker, {}, decision="rejected", reason=rng.choice((None, "not_held")), token=None
            )
        return
    if dice < 0.4:
        world.attempt(
            resource, "write", "client", {"note": rng.random()}, fenced=False, protected=rng.choice((False, True, None))
        )
        return
    if dice < 0.44 and world.item(resource, "terminal"):
        world.now += rng.choice((SECOND, DAY, 2 * DAY))
    if dice < 0.46:
        world.attempt(resource, "ttl_delete", None, None, fenced=False, operation=None)
        return
    kind = rng.choice((*KINDS, "write", "write", "write", "finish"))
    if kind in ("grant", "ttl_delete"):
        kind = "write"
    refused = {
        "token": mine != token,
        "owner": holder != worker,
        "time": run_out,
        "none": False,
    }[guard] or (kind == "finish" and rng.random() < 0.5 and bool(world.item(resource, "terminal")))
    given: Row = {}
    if rng.random() < 0.15:
        given |= {"outcome": "unknown"}
    if world.rows and rng.random() < 0.15:
        given |= {"operation": world.rows[-1]["operation"]}
    if kind == "alert" or (kind == "finish" and rng.random() < 0.3):
        given |= {"alert": f"alert-{rng.randint(1, 2)}"}
    if rng.random() < 0.1:
        given |= {"fell": "attempt"}
    if rng.random() < 0.1:
        given |= {"current_token": world.floor.get(world.lease or resource)}
    presented: int | None = mine
    if guard != "token" and rng.random() < 0.3:
        presented = None
        given |= {"fenced": rng.choice((False, None))}
    if refused:
        reason = rng.choice((None, None, "newer_token", "expired", "terminal", "duplicate", "the condition failed"))
        row = world.refuse(resource, worker, presented, kind, reason=reason, **given)
        if rng.random() < 0.4:
            row |= {name: None for name in NAMES if name.startswith("before_")}
    elif kind == "renew":
        row = world.renew(resource, worker, presented, **given)  # type: ignore[arg-type]
        if rises and token is not None:
            row["after_token"] = token + 1
            world.items[resource]["token"] = world.floor[world.lease or resource] = hands[resource, worker] = token + 1
            row |= _side("after", world.items[resource])
    elif kind == "release":
        world.release(resource, worker, presented, **given)  # type: ignore[arg-type]
    elif kind == "finish":
        world.finish(resource, worker, presented, **given)
    elif kind == "delete":
        world.attempt(resource, "delete", worker, None, token=presented, **given)
    elif guard == "none" and rng.random() < 0.3:  # puts the whole item back as it was once read
        world.write(resource, worker, presented, kind, change=copies[resource, worker], **given)
    else:
        world.write(resource, worker, presented, kind, change={"progress": rng.random()}, **given)


def _forget(rows: list[Row], rng: random.Random) -> None:
    """What a log does to the truth: lost fields, lost order, several scopes, coarse clocks, other units."""
    kept = ("resource", "source", "kind", "order_key", "order_scope", "decision")
    losable = [name for name in NAMES if name not in kept]
    gone = rng.sample(losable, rng.choice((0, 0, 0, 2, 5, 12)))
    share = rng.choice((0.0, 0.0, 0.05, 0.2))
    order = rng.choice(("whole", "whole", "whole", "some", "none"))
    scopes = rng.choice((1, 1, 1, 2))
    coarse = rng.random() < 0.3
    presumed = rng.choice((0.0, 0.0, 0.3, 1.0))
    unit = rng.choice((0.0, 0.0, 0.2))
    lost = rng.choice((0.0, 0.0, 0.3))
    skewed = rng.choice((0.0, 0.0, 0.2))
    for row in rows:
        if rng.random() < presumed and row["fenced"] is True:
            row["fenced"] = None
        if rng.random() < unit:
            row["expiry_unit"] = rng.choice(("ms", "text"))
        if rng.random() < skewed:
            row["at"] -= rng.choice((SECOND, 5 * SECOND, 60 * SECOND))
        if coarse:
            row |= {"at": row["at"] // SECOND * SECOND, "at_precision": SECOND}
        if row["outcome"] == "unknown" and rng.random() < lost:
            row["decision"] = "unknown"
        if order == "none" or (order == "some" and rng.random() < 0.3):
            row["order_key"] = None
            if rng.random() < 0.5:
                row["order_scope"] = None
        if scopes == 2 and row["order_scope"] is not None:
            row["order_scope"] = rng.choice(("shard-0", "shard-1"))
        for name in losable:
            if name in gone or rng.random() < share:
                row[name] = None
    if len(rows) > 3 and rng.random() < 0.15:
        del rows[rng.randrange(len(rows))]
    if rng.random() < 0.2:
        rng.shuffle(rows)


# --------------------------------------------------------------------------- arbitrary

_TIMES = tuple(START + i * SECOND for i in range(4))
_FLAGS = (True, False)
_SIDE: dict[str, tuple[Any, ...]] = {
    "token": (1, 2, 3, 4), "holder": ("ann", "bob", NOBODY), "expires_at": _TIMES, "status": ("open", "done"),
    "terminal": _FLAGS, "terminal_version": (1, 2), "version": (1, 2), "value": ("v1", "v2"), "image": (0, 7, 8),
}  # fmt: skip
_DOMAINS: dict[str, tuple[Any, ...]] = {
    "lease": ("r1", "lease-1", "lease-2"), "at": _TIMES, "sent_at": _TIMES, "at_precision": (0, SECOND),
    "writer": ("ann", "bob"), "token": (1, 2, 3, 4), "fenced": (True, True, False), "protected": _FLAGS,
    "operation": ("o1", "o2"), "reason": (*REASONS, "something else"), "outcome": OUTCOMES,
    "alert": ("a1", "a2"), "fell": ("", "attempt"), "token_width": (0, 1, 2), "expiry_unit": ("s", "ms"),
    "current_token": (1, 2, 3, 4),
    **{f"{side}_{name}": domain for side in ("before", "after") for name, domain in _SIDE.items()},
}  # fmt: skip


def arbitrary(seed: int | random.Random) -> list[Row]:
    """Every column drawn on its own from a small domain, so that odd combinations appear."""
    rng = _rng(seed)
    # Some columns are absent, some always known, the others known at times: else nearly every row lacks something.
    missing = {name: rng.choice((0.0, 0.0, 0.2, 0.2, 0.5, 1.0)) for name in _DOMAINS}
    many = (*KINDS, *("grant", "write") * 3)
    few = ("grant", "write", "finish", "delete", "ttl_delete")
    kinds = rng.choice((many, many, few, ("grant", "write"), ("write", "delete")))
    decisions = rng.choice((("accepted",), ("accepted", "accepted", "rejected"), (*DECISIONS, "accepted")))
    resources = rng.choice((("r1",), ("r1",), ("r1", "r2")))
    scopes = rng.choice((("x",), ("x",), ("x", "y")))
    unordered = rng.choice((0.0, 0.0, 0.3, 1.0))
    size = rng.randint(1, 8)
    keys = rng.sample(range(size), size)
    sources = rng.sample(range(size), size)
    rows = []
    for key, source in zip(keys, sources, strict=True):
        row: Row = {"resource": rng.choice(resources), "kind": rng.choice(kinds), "decision": rng.choice(decisions)}
        for name, domain in _DOMAINS.items():
            known = missing[name] == 0.0 or (missing[name] < 1.0 and rng.random() >= missing[name])
            row[name] = rng.choice(domain) if known else None
        has_order = not unordered or (unordered < 1.0 and rng.random() >= unordered)
        row["order_key"] = order_key(key) if has_order else None
        row["order_scope"] = rng.choice(scopes if has_order else (*scopes, None))
        row["source"] = f"log:{source:02d}"
        rows.append(row)
    return rows


# --------------------------------------------------------------------------- strategies


def realistic_histories() -> st.SearchStrategy[list[Row]]:
    return st.randoms(use_true_random=False).map(realistic)


def arbitrary_histories() -> st.SearchStrategy[list[Row]]:
    return st.randoms(use_true_random=False).map(arbitrary)
