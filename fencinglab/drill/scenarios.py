"""The scenarios of a drill, by name: the article's list of what to test, and what else goes wrong in practice.

Each is a function of a desk that plays it in real time and says what it expects. Those that show a failure on any
receiver are played only when they are named.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from fencinglab.drill.desk import Desk, Stopped, remove_expired
from fencinglab.drill.process import Child
from fencinglab.dynamodb.expression import placeholders
from fencinglab.dynamodb.hold import Told
from fencinglab.dynamodb.mock import lose_replies
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import READ, Requests, Single, singles


class Scenario(NamedTuple):
    """A named scenario."""

    play: Callable[[Desk], None]
    kinds: tuple[str, ...] = ("finish",)  # of operations that it needs
    creates: bool = False  # it needs the operations by which an item comes to be
    reads_back: bool = False  # it needs items that show which operation was done
    shows: tuple[str, ...] = ()  # rules that it breaks on any receiver; if unsafe, it is played only when named
    named: bool = False  # played only when named
    signals: bool = False  # it stops or kills a process
    takes: tuple[str, ...] = ()  # of a plan's workers, rounds and seed what it looks at

    @property
    def name(self) -> str:
        """As the user writes it."""
        return self.play.__name__.replace("_", "-")

    @property
    def says(self) -> str:
        """What happens in it, in a sentence."""
        return self.play.__doc__ or ""


def _refused(told: list[Told]) -> bool:
    return bool(told) and all(one.decision == "rejected" and not one.ok for one in told)


def simultaneous_acquire(desk: Desk) -> None:
    """Several workers acquire one item at the same moment."""
    slow = 0
    for number in range(desk.rounds):
        resource, begun = desk.resource(), desk.now()
        players = [desk.player(chr(65 + n), resource) for n in range(desk.workers)]
        took = desk.at_once(*(player.take for player in players))
        wrote = desk.at_once(*(player.write for player, has in zip(players, took, strict=True) if has))
        if desk.ran_out(begun):
            slow += 1
            continue
        desk.expect(f"round {number + 1}: one of {desk.workers} acquires, the others fail", sum(took) == 1)
        desk.expect(f"round {number + 1}: one of them writes", sum(told.ok for told in wrote) == 1)
    if slow:
        raise Stopped(f"{slow} of {desk.rounds} rounds outlasted their lease and are not counted: {desk.too_slow()}")


def delayed_response(desk: Desk) -> None:
    """A call returns when its worker's lease has run out and another works."""
    a, b = desk.players("AB")
    desk.expect("A acquires", a.take())
    desk.lease_runs_out()
    desk.expect("B acquires when A's lease has run out", b.take())
    desk.expect("B writes", b.write().ok)
    desk.expect("nothing that A sends when its call returns is accepted", _refused(a.everything()))
    desk.expect("B finishes", b.finish().ok)


def clock_skew(desk: Desk) -> None:
    """A worker whose clock runs ahead takes a lease that still runs."""
    a, b = desk.players("AB")
    early = desk.player("B", a.resource, ahead=desk.lease + 2)
    begun = time.time()
    desk.expect("A acquires", a.take())
    desk.expect_held("B, whose clock is right, is refused", b, begun)
    desk.expect("B, whose clock runs ahead, takes the lease while it runs", early.take())
    desk.expect("A's writes are refused all the same", _refused([a.write()]))
    desk.expect("B finishes", early.finish().ok)


def crashed_worker(desk: Desk) -> None:
    """A worker is gone with its lease."""
    a, b = desk.players("AB")
    begun = time.time()
    desk.expect("A acquires, writes and is gone", a.take() and a.write().ok)
    desk.expect_held("B has to wait", b, begun)
    desk.lease_runs_out()
    desk.expect("B acquires", b.take())
    desk.expect("B finishes", b.finish().ok)


def replacement_owner(desk: Desk) -> None:
    """Three owners, one after the other, and the old ones go on."""
    a, b, c = desk.players("ABC")
    for player in (a, b, c):
        desk.expect(f"{player.name} acquires and writes", player.take() and player.write().ok)
        if player is not c:
            desk.lease_runs_out()
    late = [told for player in (a, b) for told in player.everything()]
    desk.expect("nothing that A or B still send is accepted", _refused(late))
    desk.expect("C finishes", c.finish().ok)


def duplicate_terminal(desk: Desk) -> None:
    """The terminal response comes twice."""
    a, b = desk.players("AB")
    a.take()
    done = a.finish()
    desk.expect("A finishes", done.ok)
    desk.expect("the same message again changes nothing", a.repeat(done).decision == "rejected")
    desk.expect("a second finish of A is refused", _refused([a.finish()]))
    desk.lease_runs_out()
    desk.expect("nobody acquires what is finished", not b.take())


def alert(desk: Desk) -> None:
    """A failure leaves an alert due, which is raised once."""
    a, b = desk.players("AB")
    a.take()
    desk.expect("A finishes, and leaves an alert due", a.use(desk.file.of_kind("finish")[-1]).ok)
    raised = a.use(a.named("alert"))
    desk.expect("A records the alert", raised.ok)
    desk.expect("the same message again changes nothing", a.repeat(raised).decision == "rejected")
    desk.expect("it is recorded once", _refused([a.use(a.named("alert"))]))
    a.use(a.named("release"))
    desk.expect("then nobody acquires it any more", not b.take())


def alert_recovered(desk: Desk) -> None:
    """A worker is gone after it sent the alert of a failure and before it recorded that."""
    a, b = desk.players("AB")
    a.take()
    a.use(desk.file.of_kind("finish")[-1])
    desk.lease_runs_out()
    desk.expect("B acquires what is finished, to raise its alert", b.take())
    desk.expect("B records the alert", b.use(b.named("alert")).ok)
    desk.expect("it is recorded once", _refused([b.use(b.named("alert")), a.use(a.named("alert"))]))
    b.use(b.named("release"))
    desk.expect("then nobody acquires it any more", not a.take())


def rate_limit(desk: Desk) -> None:
    """The service asks for a pause: a retry keeps item and token."""
    [a] = desk.players("A")
    a.take()
    before = a.hold.token
    for name in (a.named("retry"), a.named("schedule")):
        desk.expect(f"{name} is accepted", a.use(name).ok)
    desk.expect("the retry keeps the token", a.write().ok and a.hold.token == before)
    desk.expect("A finishes", a.finish().ok)


def replay(desk: Desk) -> None:
    """A queue delivers messages again that were done long ago."""
    a, b = desk.players("AB")
    a.take()
    sent = [a.write(), a.finish()]
    desk.expect("A writes and finishes", all(told.ok for told in sent))
    desk.expect("the queue's second delivery changes nothing", all(a.repeat(t).decision == "rejected" for t in sent))
    desk.lease_runs_out()
    b.take()
    desk.expect("nor does its third, later", all(a.repeat(t).decision == "rejected" for t in sent))


def ttl_clean_up(desk: Desk) -> None:
    """Time to live removes what is finished, and it is requested again."""
    resource = desk.resource(start=False)
    a, late = (desk.player(name, resource, retention=1) for name in ("A", "late"))
    desk.expect("it is created", a.create().ok)
    desk.expect("A acquires", a.take())
    late.hold.token = a.hold.token
    desk.expect("nothing is removed while it is open", not _removed(desk, resource))
    a.finish()
    desk.wait(3)
    desk.expect("it is removed after the retention", _removed(desk, resource))
    desk.expect("a late write does not bring it back", _refused([late.write()]) and late.hold.look() is None)
    desk.expect("nor does an acquire", not late.take())
    before = a.hold.token or 0
    desk.expect("it is created again", a.create().ok)
    desk.expect("its token goes on rising", a.take() and (a.hold.token or 0) > before)


def _removed(desk: Desk, resource: str) -> bool:
    """Let time to live pass over this item alone; whether it went."""
    keys = [key for (_, key), owner in desk.notes.judged.items() if owner == resource]
    return bool(remove_expired(desk.client, desk.file, desk.now(), keys))


def double_enqueue(desk: Desk) -> None:
    """Two schedulers create the same request."""
    resource = desk.resource(start=False)
    told = desk.at_once(*(desk.player(name, resource).create for name in ("cron-1", "cron-2")))
    desk.expect("one of two creates it", sum(one.ok for one in told) == 1)
    a, b = (desk.player(name, resource) for name in "AB")
    begun, took = desk.now(), desk.at_once(a.take, b.take)
    if desk.ran_out(begun):
        raise desk.too_slow()
    desk.expect("one of two acquires it", sum(took) == 1)


def lost_reply(desk: Desk) -> None:
    """What was done is not answered."""
    resource = desk.resource()
    loses: list[bool] = []
    lossy = desk.connect()
    lose_replies(lossy, lambda operation: operation != "GetItem" and bool(loses) and loses.pop())
    a = desk.player("A", resource, client=lossy)
    for what in (a.take, lambda: a.write().ok, lambda: a.finish().ok):
        loses.append(True)
        desk.expect("what was done without an answer is found by reading back", what())
    desk.expect("nothing was done twice", a.hold.look() is not None and not loses)


def stalled_process(desk: Desk) -> None:
    """A process is stopped, and goes on after another took over."""
    resource = desk.resource()
    b = desk.player("B", resource)
    with Child(desk, "A", resource) as child:
        desk.expect("A acquires, in a process of its own", child.acquired())
        child.send(signal.SIGSTOP)
        desk.lease_runs_out()
        desk.expect("B acquires while A's process stands still", b.take())
        desk.expect("B writes", b.write().ok)
        child.send(signal.SIGCONT)
        desk.expect("all that A sends when it runs again is refused", _refused(child.rest()))
    desk.expect("B finishes", b.finish().ok)


def killed_process(desk: Desk) -> None:
    """A process is killed in the middle."""
    resource = desk.resource()
    b = desk.player("B", resource)
    with Child(desk, "A", resource) as child:
        desk.expect("A acquires, in a process of its own", child.acquired())
        begun = time.time() - 1  # it was granted before that was heard
        child.send(signal.SIGKILL)
        desk.expect("A's process is gone in the middle", child.code() == -signal.SIGKILL)
    desk.expect_held("B has to wait", b, begun)
    desk.lease_runs_out()
    desk.expect("B acquires and finishes", b.take() and b.finish().ok)


def mixed_versions(desk: Desk) -> None:
    """An old release writes without condition or token."""
    a, b = desk.players("AB")
    a.take()
    desk.lease_runs_out()
    desk.expect("B acquires and writes", b.take() and b.write().ok)
    names = [desk.file.map[column] for column in ("status", "value") if column in desk.file.map]
    desk.client.update_item(  # as an old release writes: no condition, no token, no version
        TableName=a.hold.place.table, Key=json.loads(a.hold.place.key),
        UpdateExpression="SET " + ", ".join(f"#{n} = :{n}" for n in range(len(names))),
        ExpressionAttributeNames={f"#{n}": name for n, name in enumerate(names)},
        ExpressionAttributeValues={f":{n}": {"S": "of the old release"} for n in range(len(names))},
    )  # fmt: skip
    desk.expect(
        "what the old release writes is accepted", a.status() == "of the old release" or "status" not in desk.file.map
    )


def ttl_restart(desk: Desk) -> None:
    """A deleted item is created anew without a floor."""
    resource = desk.resource()
    a, b = (desk.player(name, resource) for name in "AB")
    a.take()
    a.write()
    item = a.hold.look() or {}
    desk.client.delete_item(TableName=a.hold.place.table, Key=json.loads(a.hold.place.key))
    desk.client.put_item(  # somebody creates it anew, without a floor
        TableName=a.hold.place.table,
        Item={name: value for name, value in item.items() if name in json.loads(a.hold.place.key)}
        | {"version": {"N": "1"}},
    )
    b.take()
    desk.expect("the token begins again", (b.hold.token or 0) < (a.hold.token or 0))


def authority_restored(desk: Desk) -> None:
    """The item comes back from a backup."""
    a, b, c = desk.players("ABC")
    before = a.hold.look() or {}
    a.take()
    desk.lease_runs_out()
    b.take()
    b.write()
    desk.client.put_item(TableName=a.hold.place.table, Item=before)  # from the backup of this morning
    c.take()
    desk.expect("C is granted a token that was given before", c.hold.token == a.hold.token)


SCENARIOS = {
    one.name: one
    for one in (
        Scenario(simultaneous_acquire, kinds=(), takes=("workers", "rounds", "seed")),
        Scenario(delayed_response),
        Scenario(clock_skew, shows=("leases_overlap",)),
        Scenario(crashed_worker),
        Scenario(replacement_owner),
        Scenario(duplicate_terminal),
        Scenario(alert, kinds=("finish", "alert", "release")),
        Scenario(rate_limit, kinds=("retry", "schedule", "finish")),
        Scenario(replay),
        Scenario(ttl_clean_up, creates=True),
        Scenario(double_enqueue, kinds=(), creates=True, takes=("seed",)),
        Scenario(lost_reply, reads_back=True),
        Scenario(stalled_process, signals=True),
        Scenario(killed_process, signals=True),
        Scenario(alert_recovered, kinds=("finish", "alert", "release"), shows=("work_after_terminal",), named=True),
        Scenario(mixed_versions, kinds=(), shows=("unfenced_write",), named=True),
        Scenario(ttl_restart, kinds=(), shows=("token_restarted",), named=True),
        Scenario(authority_restored, kinds=(), shows=("image_went_back",), named=True),
    )
}  # fmt: skip


def not_played(scenario: Scenario, file: Requests) -> str:
    """Why a scenario cannot be played with a file or on this machine; empty where it can."""
    if not file.of_kind("write") and not file.of_kind("finish"):
        return "no operation of the file writes"
    if missing := [kind for kind in scenario.kinds if not file.of_kind(kind)]:
        return f"the file has no operation of the kind {', '.join(missing)}"
    if scenario.creates and not file.creates:
        return "the file does not say how an item comes to be (`creates`)"
    if scenario.reads_back and (silent := _without_operation(file)):
        return f"the file keeps no operation id ($operation) in {', '.join(silent)}"
    if scenario.signals and not hasattr(signal, "SIGSTOP"):
        return "this system cannot stop a process"
    return ""


def _without_operation(file: Requests) -> list[str]:
    """The operations of acquiring, writing and finishing that leave no id of theirs in an item."""
    sent = [*file.taking, *file.of_kind("write")[:1], *file.of_kind("finish")[:1]]
    changes = [name for name in sent if file.operations[name].kind != READ]
    return [name for name in changes if not any(map(_keeps_operation, singles(file, [name])))]


def _keeps_operation(one: Single) -> bool:
    return "operation" in names_in([one.item, {name: one.values.get(name) for name in placeholders(one.update)}])


def listing() -> str:
    """All scenarios as text, those that are played only when named behind the others."""
    lines = [f"{one.name:21} {one.says}" for one in SCENARIOS.values() if not one.named]
    lines += ["", "Only when named, as they show a failure on any receiver:", ""]
    lines += [f"{one.name:21} {one.says} ({', '.join(one.shows)})" for one in SCENARIOS.values() if one.named]
    return "\n".join(lines) + "\n"
