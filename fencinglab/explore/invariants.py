"""What must always hold, what must be reachable so that a pass means something, and how a step is judged.

The audit says the same of a recorded history (`audit/rules.sql`), the replay of one timeline (`model/harm.py`); tests
hold the three together. A grant is known here by its place among all grants, not by its token.
"""

from __future__ import annotations

from typing import NamedTuple

# The status of an invariant after a search, and its mark on a screen and a page.
MARKS = {"holds": "●", "violated": "✕", "empty": "○", "undecided": "?", "not_applicable": "–"}


class Invariant(NamedTuple):
    """What must hold in every order of events."""

    name: str
    group: str  # the class of the audit's rules: unsafe, window or cost
    says: str
    broken: str  # what can happen where it does not hold
    sometimes: tuple[str, ...]  # what must be reachable, else a pass is empty


INVARIANTS = {
    row[0]: Invariant(*row)
    for row in (
        ("order", "unsafe", "accepted tokens never fall",
         "an older write can replace a newer one", ("two-grants", "overtaken")),
        ("ownership", "unsafe", "no stale write is accepted",
         "a stale write can be accepted", ("two-grants", "arrived-stale")),
        ("terminal", "unsafe", "it is finished at most once",
         "it can be finished twice", ("finish-again",)),
        ("final", "unsafe", "the final value is the newest owner's",
         "an older owner's value can stand in the end", ("two-grants", "rest")),
        ("alert-once", "unsafe", "an alert is raised at most once",
         "an alert can be raised twice", ("alert-again",)),
        ("late", "window", "no late write is accepted",
         "a late write can be accepted", ("arrived-late",)),
        ("alert-possible", "cost", "an alert can still be raised",
         "an alert can get lost", ("rest",)),
        ("polling-stops", "cost",
         "after the finish, and the alert that it left due, nobody is granted or schedules anything",
         "a finished job can be taken up again", ("asked-again",)),
        ("can-finish", "cost", "the job can still finish",
         "the job can get stuck", ("unheld",)),
    )
}  # fmt: skip
ALERTING = ("alert-once", "alert-possible")  # nothing to say where the program raises no alert
ENDING = ("terminal", "polling-stops", "can-finish")  # nor of these where there is no job to be finished
SOMETIMES = {
    "two-grants": "two grants happened",
    "rejected": "a write was rejected",
    "one-lease-twice": "one lease wrote twice",
    "overtaken": "an older write arrived after a newer one had been accepted",
    "arrived-stale": "a write arrived after a newer grant",
    "arrived-late": "a write arrived after its lease had run out",
    "finish-again": "a finish arrived after one had been accepted",
    "alert-again": "an alert arrived after one had been accepted",
    "asked-again": "somebody asked for a finished job",
    "rest": "everything came to rest after the job was finished",
    "unheld": "a lease ended before the job was finished",
}
_BREAKS = {  # what happened -> the invariant that it breaks where the receiver accepted it
    "overtaken": "order", "arrived-stale": "ownership", "arrived-late": "late", "finish-again": "terminal",
    "alert-again": "alert-once", "asked-again": "polling-stops",
}  # fmt: skip


class Effect(NamedTuple):
    """What a step means to the invariants."""

    what: str  # granted, asked (and not granted), unheld, checked, wrote, touched (the lease), refused, deleted
    grant: int = 0  # under which grant its writer acted
    stale: bool = False  # there is a newer grant
    late: bool = False  # its lease has run out and there is no newer grant
    kind: str = ""  # of the mutation; `+due` with a finish after which an alert is to be raised
    after: bool = False  # the job was finished and nothing was left to do
    undone: bool = False  # what the job was finished with is another now, though this is no finish
    reissued: bool = False  # it granted a token that is not newer than all that were issued before


class Past(NamedTuple):
    """What has happened since the item began to exist, as far as an invariant asks."""

    last: int = 0  # the grant of the last accepted write
    highest: int = 0  # the newest grant of an accepted write
    tried: int = 0  # the newest grant of a write that arrived
    finishes: int = 0  # capped at 2
    alerts: int = 0  # capped at 2
    due: bool = False  # an alert was to be raised
    before: int = 0  # the newest grant when the item was last deleted; older ones claim no place in it
    reopened: int = 0  # the first grant of what was finished; a write under it that is refused is none that counts
    # Nothing asks for these two; other checkers have them in their states, and so as many states are counted here.
    fell: bool = False  # an older write was accepted after a newer one
    stale: bool = False  # a write was accepted after a newer grant


def observe(past: Past, effect: Effect) -> tuple[Past, frozenset[str], frozenset[str]]:
    """The past after the step, the invariants that the step broke, and which `sometimes` it was."""
    after, happened = _observed(past, effect)
    accepted = effect.what in ("granted", "touched", "wrote")
    broken = {_BREAKS[name] for name in happened if accepted and name in _BREAKS}
    broken |= {name for name, is_so in (("terminal", effect.undone), ("ownership", effect.reissued)) if is_so}
    return after, frozenset(broken), frozenset(happened)


def _observed(past: Past, effect: Effect) -> tuple[Past, set[str]]:
    what, grant, stale = effect.what, effect.grant, effect.stale
    again = {"asked-again"} if effect.after else set[str]()
    match what:
        case "deleted":
            return Past(before=grant, fell=past.fell, stale=past.stale), set()
        case "granted":
            opened = past._replace(reopened=past.reopened or grant) if effect.after else past
            return opened, again | ({"two-grants"} if grant > 1 else set())
        case "asked":
            return past, again
        case "unheld":
            return past, {"unheld"}
        case "checked":
            return past._replace(tried=max(past.tried, grant)), set()
        case "touched":
            after = past._replace(stale=past.stale or stale)
            return after, {"arrived-stale"} if stale else {"arrived-late"} if effect.late else set()
    finishes, alerts, wrote = "finish" in effect.kind, "alert" in effect.kind, what == "wrote"
    happened = {
        "overtaken": grant < past.highest,
        "arrived-stale": stale,
        "arrived-late": effect.late,
        "finish-again": finishes and past.finishes > 0,
        "alert-again": alerts and past.alerts > 0,
        "rejected": not wrote,
        "one-lease-twice": wrote and grant == past.last,
    }
    counts = wrote or (grant > past.before and not 0 < past.reopened <= grant)
    after = past._replace(tried=max(past.tried, grant if counts else 0))
    if wrote:
        after = after._replace(
            last=grant, highest=max(past.highest, grant), finishes=min(past.finishes + finishes, 2),
            alerts=min(past.alerts + alerts, 2), due=past.due or "due" in effect.kind,
            fell=past.fell or grant < past.highest, stale=past.stale or stale,
        )  # fmt: skip
    return after, again | {name for name, is_so in happened.items() if is_so}
