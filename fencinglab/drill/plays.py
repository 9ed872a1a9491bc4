"""What happens in each scenario: a function of a desk that plays it in real time and says what it expects.

Its name and its first line are those of the scenario; what it needs and where it stands is said in `scenarios`.
"""

from __future__ import annotations

import json
import signal
import time

from fencinglab.drill.desk import Desk, Player, Stopped, remove_expired
from fencinglab.drill.process import Child
from fencinglab.dynamodb.hold import Told
from fencinglab.dynamodb.mock import lose_replies


def _done(told: list[Told]) -> bool:
    return bool(told) and all(one.ok for one in told)


def _refused(told: list[Told]) -> bool:
    """Whether none of what was sent was accepted, also where nothing was."""
    return all(one.decision == "rejected" and not one.ok for one in told)


def _works(player: Player) -> bool:
    """Whether a worker's first write is accepted; true where the file has none before the finish."""
    return not player.named("write") or _done(player.work())


def _refused_again(player: Player, told: list[Told]) -> bool:
    """Whether the same messages, delivered once more, are refused."""
    return all(player.repeat(one).decision == "rejected" for one in told)


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
        desk.expect(f"round {number + 1}: one of them writes", sum(map(_done, wrote)) == 1)
    if slow:
        raise Stopped(f"{slow} of {desk.rounds} rounds outlasted their lease and are not counted: {desk.too_slow()}")


def delayed_response(desk: Desk) -> None:
    """A call returns when its worker's lease has run out and another works."""
    a, b = desk.players("AB")
    desk.expect("A acquires", a.take())
    desk.lease_runs_out()
    desk.expect("B acquires when A's lease has run out", b.take())
    desk.expect("B works", _works(b))
    desk.expect("nothing that A sends when its call returns is accepted", _refused(a.everything()))
    desk.expect("B finishes", _done(b.finish()))


def clock_skew(desk: Desk) -> None:
    """A worker whose clock runs ahead takes a lease that still runs."""
    a, b = desk.players("AB")
    early = desk.player("B", a.resource, ahead=desk.lease + 2)
    begun = time.time()
    desk.expect("A acquires", a.take())
    desk.expect_held("B, whose clock is right, is refused", b, begun)
    desk.expect("B, whose clock runs ahead, takes the lease while it runs", early.take())
    desk.expect("A's writes are refused all the same", _refused(a.write()))
    desk.expect("B finishes", _done(early.finish()))


def crashed_worker(desk: Desk) -> None:
    """A worker is gone with its lease."""
    a, b = desk.players("AB")
    begun = time.time()
    desk.expect("A acquires, works and is gone", a.take() and _works(a))
    desk.expect_held("B has to wait", b, begun)
    desk.lease_runs_out()
    desk.expect("B acquires", b.take())
    desk.expect("B finishes", _done(b.finish()))


def replacement_owner(desk: Desk) -> None:
    """Three owners, one after the other, and the old ones go on."""
    a, b, c = desk.players("ABC")
    for player in (a, b, c):
        desk.expect(f"{player.name} acquires and works", player.take() and _works(player))
        if player is not c:
            desk.lease_runs_out()
    late = [told for player in (a, b) for told in player.everything()]
    desk.expect("nothing that A or B still send is accepted", _refused(late))
    desk.expect("C finishes", _done(c.finish()))


def duplicate_terminal(desk: Desk) -> None:
    """The terminal response comes twice."""
    a, b = desk.players("AB")
    a.take()
    done = a.finish()
    desk.expect("A finishes", _done(done))
    desk.expect("the same message again changes nothing", _refused_again(a, done))
    desk.expect("a second finish of A is refused", _refused(a.finish()))
    desk.lease_runs_out()
    desk.expect("nobody acquires what is finished", not b.take())


def alert(desk: Desk) -> None:
    """A failure leaves an alert due, which is raised once."""
    a, b = desk.players("AB")
    a.take()
    desk.expect("A finishes, and leaves an alert due", _done(a.use(desk.file.of_kind("finish")[-1])))
    raised = a.use(a.named("alert"))
    desk.expect("A records the alert", _done(raised))
    desk.expect("the same message again changes nothing", _refused_again(a, raised))
    desk.expect("it is recorded once", _refused(a.use(a.named("alert"))))
    a.use(a.named("release"))
    desk.expect("then nobody acquires it any more", not b.take())


def alert_recovered(desk: Desk) -> None:
    """A worker is gone after it sent the alert of a failure and before it recorded that."""
    a, b = desk.players("AB")
    a.take()
    a.use(desk.file.of_kind("finish")[-1])
    desk.lease_runs_out()
    desk.expect("B acquires what is finished, to raise its alert", b.take())
    desk.expect("B records the alert", _done(b.use(b.named("alert"))))
    desk.expect("it is recorded once", _refused([*b.use(b.named("alert")), *a.use(a.named("alert"))]))
    b.use(b.named("release"))
    desk.expect("then nobody acquires it any more", not a.take())


def rate_limit(desk: Desk) -> None:
    """The service asks for a pause: a retry keeps item and token."""
    [a] = desk.players("A")
    a.take()
    for name in (a.named("retry"), a.named("schedule")):
        desk.expect(f"{name} is accepted", _done(a.use(name)))
    desk.expect("A works and finishes under the token that it had", _works(a) and _done(a.finish()))


def replay(desk: Desk) -> None:
    """A queue delivers messages again that were done long ago."""
    a, b = desk.players("AB")
    a.take()
    sent = [*a.work(), *a.finish()]
    desk.expect("A works and finishes", _done(sent))
    desk.expect("the queue's second delivery changes nothing", _refused_again(a, sent))
    desk.lease_runs_out()
    b.take()
    desk.expect("nor does its third, later", _refused_again(a, sent))


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
    desk.expect("a late write does not bring it back", _refused(late.write()) and late.hold.look() is None)
    desk.expect("nor does an acquire", not late.take())
    before = a.hold.token or 0
    desk.expect("it is created again", a.create().ok)
    desk.expect("its token goes on rising", a.take() and (a.hold.token or 0) > before)


def _removed(desk: Desk, resource: str) -> bool:
    """Let time to live pass over this item alone; whether it went."""
    own = [place for place, owner in [*desk.notes.judged.items()] if owner == resource]
    return bool(remove_expired(desk.client, desk.file, desk.now(), own))


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
    lossy = desk.connect()
    lose_replies(lossy, lambda operation: operation != "GetItem")
    a = desk.player("A", desk.resource(), client=lossy)
    desk.expect("a grant without an answer is found by reading back", a.take())
    desk.expect("so is what A writes and how it finishes", _works(a) and _done(a.finish()))
    mine = [one.told for one in [*desk.notes.heard] if one.scenario == desk.scenario]
    desk.expect("nothing was sent twice", all(len(told.messages) == 1 for told in mine))


def stalled_process(desk: Desk) -> None:
    """A process is stopped, and goes on after another took over."""
    resource = desk.resource()
    b = desk.player("B", resource)
    with Child(desk, "A", resource) as child:
        desk.expect("A acquires, in a process of its own", child.acquired())
        child.send(signal.SIGSTOP)
        desk.lease_runs_out()
        desk.expect("B acquires while A's process stands still", b.take())
        desk.expect("B works", _works(b))
        child.send(signal.SIGCONT)
        desk.expect("all that A sends when it runs again is refused", _refused(child.rest()))
    desk.expect("B finishes", _done(b.finish()))


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
    desk.expect("B acquires and finishes", b.take() and _done(b.finish()))


def mixed_versions(desk: Desk) -> None:
    """An old release writes without condition or token."""
    a, b = desk.players("AB")
    a.take()
    desk.lease_runs_out()
    desk.expect("B acquires and writes", b.take() and _done(b.write()))
    old = {
        desk.file.map[column]: {"S": "of the old release"} for column in ("status", "value") if column in desk.file.map
    }
    if not old:
        raise Stopped("the file maps neither a status nor a value, which the old release would write")
    place = a.hold.place
    desk.client.update_item(  # as an old release writes: no condition, no token, no version
        TableName=place.table, Key=json.loads(place.key),
        UpdateExpression="SET " + ", ".join(f"#{n} = :{n}" for n, _ in enumerate(old)),
        ExpressionAttributeNames={f"#{n}": name for n, name in enumerate(old)},
        ExpressionAttributeValues={f":{n}": value for n, value in enumerate(old.values())},
    )  # fmt: skip
    desk.expect("what the old release writes is accepted", old.items() <= (a.hold.look() or {}).items())


def ttl_restart(desk: Desk) -> None:
    """A deleted item is created anew without a floor."""
    a, b = desk.players("AB")
    a.take()
    a.write()
    place, key = a.hold.place, json.loads(a.hold.place.key)
    desk.client.delete_item(TableName=place.table, Key=key)
    desk.client.put_item(TableName=place.table, Item=key | {"version": {"N": "1"}})  # somebody creates it anew
    desk.expect("the token begins again", b.take() and (b.hold.token or 0) < (a.hold.token or 0))


def authority_restored(desk: Desk) -> None:
    """The item comes back from a backup."""
    a, b, c = desk.players("ABC")
    before = a.hold.look() or {}
    a.take()
    desk.lease_runs_out()
    b.take()
    b.write()
    desk.client.put_item(TableName=a.hold.place.table, Item=before)  # from the backup of this morning
    desk.expect("C is granted a token that was given before", c.take() and c.hold.token == a.hold.token)
