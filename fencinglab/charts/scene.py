"""What lanes show of a history, as plain rows with places: leases, messages, decisions, and states of workers.

A place is a number on the axis: that of the event in a replay, else of the mutation in the receiver's order. A time
lies between the places of the two nearest; as times are labels and never the order, one that runs back stands still.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fencinglab.charts.held import finding, point_of, tokens_held
from fencinglab.charts.style import NONE_SEEN, Row, moment
from fencinglab.history import NAMES, NOBODY
from fencinglab.inert import inert
from fencinglab.model.replay import Step
from fencinglab.model.rows import ASKED, clock, elapsed
from fencinglab.model.rows import moment as true_time

MOST = 8  # workers with a lane of their own; the others share one
NAME = 18  # characters of the name of a lane
AUTHORITY, RECEIVER, OUTSIDE, OTHERS, SOMEBODY = "authority", "receiver", "outside", "others", "not known"
_BEYOND = ("poll", "effect")  # decided by nobody of ours
_LANDS = ("arrive", "repeat")  # events whose mutation was on its way
_SPANS = {  # an event that begins a state of its worker -> the word for it, and the events that end it
    "pause": ("paused", ("resume", "crash")),
    "crash": ("crashed", ("restart",)),
    "part": ("cut off", ("rejoin",)),
    "downgrade": ("without fencing", ("upgrade",)),
}


class Scene(NamedTuple):
    """What is drawn of one history; each row has its `lane` and its place `x`, and `x2` where it ends elsewhere."""

    workers: list[str]
    receivers: list[str]
    outside: bool
    times: list[str]  # of the places from 1, as they are written
    told: bool  # whether the places are the events of a replay
    clocked: bool  # whether times are those of a run, from second 0
    points: list[dict[str, Any]]  # decisions
    lines: list[dict[str, Any]]  # from a sender to who decided (`lane2`)
    bars: list[dict[str, Any]]  # leases
    states: list[dict[str, Any]]
    events: list[dict[str, Any]]  # what a worker did and what happened, also where nothing was decided
    resources: list[str]
    finding: str


def completed(row: Row, number: int) -> Row:
    """The row with every column that is looked at; what it lacks is not known, and a row may be one nobody judged."""
    return dict.fromkeys((*NAMES, "broken", "undecided")) | {"step": number} | dict(row)


def scene_of(rows: Sequence[Row], steps: Sequence[Step] = ()) -> Scene:
    """The scene of completed rows in order; with the steps of a replay the rows are those of the run, judged."""
    axis = _Axis(rows, steps)
    workers = _workers(rows, steps)
    receivers = _receivers(rows)
    points = [*_points(rows, axis, workers, receivers, steps)]
    return Scene(
        workers=[*dict.fromkeys(workers.values())],
        receivers=[*receivers.values()],
        outside=any(row["kind"] in _BEYOND for row in rows),
        times=axis.times,
        told=bool(steps),
        clocked=any(row.get("clock") for row in rows),
        points=points,
        lines=[point for point in points if point["lane2"]],
        bars=[
            bar | {"lane": workers[bar["holder"]], "holder": inert(bar["holder"], 40)} for bar in _leases(rows, axis)
        ],
        states=[*_states(steps, workers)],
        events=[*_events(steps, workers, receivers)],
        resources=[inert(resource, 60) for resource in receivers],
        finding=finding(rows),
    )


def edges(places: int) -> tuple[float, float]:
    """Where an axis with so many places begins and ends."""
    return 0.4, places + 0.6


class _Axis:
    """Places by row and by time."""

    def __init__(self, rows: Sequence[Row], steps: Sequence[Step]) -> None:
        self.of_row = [*_beside(rows, steps)] if steps else [float(place) for place in range(1, len(rows) + 1)]
        self.edges = edges(len(steps) or len(rows))
        self.times = [clock(step.at) for step in steps] if steps else [_of_day(row) for row in rows]
        known = [(x, row["at"]) for x, row in zip(self.of_row, rows, strict=True) if isinstance(row["at"], datetime)]
        known += [(float(place), true_time(step.at)) for place, step in enumerate(steps, 1)]
        self._places: list[float] = []
        self._moments: list[datetime] = []
        for x, at in sorted(known):
            self._places.append(x)
            self._moments.append(max([at, *self._moments[-1:]]))

    def place(self, at: datetime) -> float:
        """The place of a time; one outside all that is shown lies at the edge."""
        after = bisect_right(self._moments, at)
        if not 0 < after < len(self._moments):
            return self.edges[0] if not after else self._places[-1] if at == self._moments[-1] else self.edges[1]
        begin, end = self._moments[after - 1], self._moments[after]
        low, high = self._places[after - 1], self._places[after]
        return low + (high - low) * ((at - begin) / (end - begin))


def _beside(rows: Sequence[Row], steps: Sequence[Step]) -> Iterator[float]:
    """The place of each row of a replay: that of its event, or beside it where it was made earlier or later."""
    for row in rows:
        event, at = row["event"], row["at"]
        begun = true_time(steps[event - 1].at)
        if at == begun:
            yield float(event)
            continue
        same = sorted(
            {r["at"] for r in rows if r["event"] == event and r["at"] != begun and (r["at"] < begun) == (at < begun)}
        )
        yield event - (at < begun) + (same.index(at) + 1) / (len(same) + 1)


def _of_day(row: Row) -> str:
    """The time of day, or since second 0 where it is of a run, for an axis: digits and colons, or nothing."""
    at = row["at"]
    if row.get("clock") and isinstance(at, datetime):
        return elapsed(at)
    text = at.isoformat() if isinstance(at, datetime) else str(at or "")
    found = re.match(r"[0-9-]{10}[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})", text)
    return found[1] if found else ""


def _workers(rows: Sequence[Row], steps: Sequence[Step]) -> dict[str, str]:
    """{worker: its lane}, in the order in which they first act; beyond MOST they share one."""
    names: dict[str, None] = dict.fromkeys(step.event.worker for step in steps if step.event.worker)
    for row in rows:
        names |= dict.fromkeys(name for name in (row["before_holder"], row["writer"], row["after_holder"]) if name)
    unknown = any(not row["writer"] and "delete" not in row["kind"] for row in rows)
    own = [*names][:MOST]
    lanes = {name: _short(name, own) if name in own else OTHERS for name in names}
    return lanes | ({"": SOMEBODY} if unknown else {})


def _short(name: str, names: Sequence[str]) -> str:
    """The name cut to the width of a lane, with its number where another is cut to the same, or is a lane of ours."""
    cut = [inert(other, NAME) for other in names]
    place = [*names].index(name)
    alone = cut.count(cut[place]) == 1 and cut[place] not in (AUTHORITY, RECEIVER, OUTSIDE, OTHERS, SOMEBODY)
    return cut[place] if alone else f"{cut[place]} ({place + 1})"


def _receivers(rows: Sequence[Row]) -> dict[str, str]:
    """{resource: its lane at the receiver}."""
    names = [*dict.fromkeys(row["resource"] for row in rows)]
    return {name: RECEIVER if len(names) == 1 else f"{RECEIVER}: {_short(name, names)}" for name in names}


def _points(
    rows: Sequence[Row], axis: _Axis, workers: Mapping[str, str], receivers: Mapping[str, str], steps: Sequence[Step]
) -> Iterator[dict[str, Any]]:
    """Every decision; one about a lease that covers several resources is one decision."""
    seen = set()
    for row, x, (before, after) in zip(rows, axis.of_row, tokens_held(rows), strict=True):
        kind = row["kind"]
        one = (x, row["lease"], kind, row["writer"], row["token"])
        if one in seen:
            continue
        seen.add(one)
        step = steps[row["event"] - 1] if steps else None
        flies = step.event.act in _LANDS if step else kind not in (*ASKED, *_BEYOND)
        sent = row["sent_at"]
        begun = min(x, axis.place(sent)) if flies and isinstance(sent, datetime) and row["at"] else x
        point = point_of(row, before, after)
        yield {
            **point, "x": x, "lane": _decides(row, receivers), "x2": begun,
            "lane2": workers[row["writer"] or ""] if row["writer"] or "delete" not in kind else None,
            "sent": moment(row, "sent_at") or "not known", "reason": inert(row["reason"] or "", 60),
            "outcome": row["outcome"] or "not known", "source": inert(row["source"] or "", 60),
            "event": str(step.event) if step else "", "says": inert(step.says, 200) if step else "",
        }  # fmt: skip


def _decides(row: Row, receivers: Mapping[str, str]) -> str:
    if row["kind"] in ASKED:
        return AUTHORITY
    return OUTSIDE if row["kind"] in _BEYOND else receivers[row["resource"]]


def _leases(rows: Sequence[Row], axis: _Axis) -> Iterator[dict[str, Any]]:
    """Every lease from its grant to its end: its release, else its expiry, else (not known) the next grant."""
    running: dict[str, dict[str, Any]] = {}
    known = set()
    for row, x in zip(rows, axis.of_row, strict=True):
        lease = row["lease"] or row["resource"]
        if lease not in known and row["before_holder"]:  # it began before what is shown
            running[lease] = _lease(lease, row, "before", axis.edges[0])
        known.add(lease)
        bar = running.get(lease)
        if row["decision"] != "accepted":
            continue
        if row["kind"] == "grant":
            again = bar and (bar["at"], bar["token"], bar["holder"]) == (x, *_who(row, "after"))
            if bar and not again:
                yield _ended(bar, x, axis)
            running[lease] = bar if bar and again else _lease(lease, row, "after", x)
        elif bar and row["kind"] == "renew":
            bar |= {"ends": row["after_expires_at"], "until": moment(row, "after_expires_at")}
        elif bar and row["after_holder"] == NOBODY:
            word = "released" if row["kind"] == "release" else "given up"
            yield _ended(bar | {"ends": None, "until": f"{moment(row)}, {word}"}, x, axis)
            del running[lease]
    for bar in running.values():
        yield _ended(bar, axis.edges[1], axis)


def _who(row: Row, side: str) -> tuple[str, str]:
    """The token and the holder on one side of a grant, as they are written."""
    token = row[f"{side}_token"] if row[f"{side}_token"] is not None else row["token"] if side == "after" else None
    return NONE_SEEN if token is None else str(token), row[f"{side}_holder"] or row["writer"] or ""


def _lease(lease: str, row: Row, side: str, x: float) -> dict[str, Any]:
    token, holder = _who(row, side)
    until = f"{side}_expires_at"
    return {
        "lease": inert(lease, 60), "token": token, "holder": holder, "at": x, "x": x, "ends": row[until],
        "from": moment(row) or "not known" if side == "after" else "earlier", "until": moment(row, until),
    }  # fmt: skip


def _ended(bar: dict[str, Any], x: float, axis: _Axis) -> dict[str, Any]:
    """The bar with its end: at its expiry where that is known, or at this place."""
    ends = bar.pop("ends")
    until = max(bar["x"], axis.place(ends)) if isinstance(ends, datetime) else x
    return bar | {"x2": until, "until": bar["until"] or "not known"}


def _states(steps: Sequence[Step], workers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Where a worker stood still, was gone, cut off, or another version."""
    for place, step in enumerate(steps, 1):
        if step.event.act in _SPANS:
            (word, ends), worker = _SPANS[step.event.act], step.event.worker
            later = ((n, s.event) for n, s in enumerate(steps[place:], place + 1))
            end = next((n for n, event in later if event.worker == worker and event.act in ends), None)
            yield {
                "lane": workers[worker], "state": word, "x": place, "x2": end or edges(len(steps))[1],
                "from": clock(step.at), "to": clock(steps[end - 1].at) if end else "the end",
            }  # fmt: skip


def _events(
    steps: Sequence[Step], workers: Mapping[str, str], receivers: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Every event of a replay where it happens; seconds that pass have no lane."""
    for place, step in enumerate(steps, 1):
        event = step.event
        lane = workers.get(event.worker) or (
            AUTHORITY if event.act in ("expire", "restore") else receivers.get(event.resource)
        )
        if lane:
            yield {"lane": lane, "x": place, "event": str(event), "says": inert(step.says, 200), "at": clock(step.at)}
