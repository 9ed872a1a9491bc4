"""The worst findings as timelines: what led to an accepted stale write, in the language that `replay` reads.

A log does not say when a worker stood still: one whose lease was granted on is taken to have paused between its last
row before that and its next. Values are numbered and nothing of what was written; refused requests are left out. A
timeline is given only where its own replay accepts the same write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.audit import evidence
from fencinglab.errors import InputError
from fencinglab.inert import inert
from fencinglab.model import timeline
from fencinglab.model.event import MUTATIONS, WORD, Event
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay
from fencinglab.model.timeline import Timeline

if TYPE_CHECKING:
    import duckdb

WORST = 5  # resources of which the first accepted stale write is told
TRIED = 4  # times as many resources are looked at, since not every one can be told
ROWS = 60  # rows of each, the stale write last
_PASS = 99_999  # seconds that pass at once: more than a day outlasts any lease
_LENGTH = 60  # seconds of a lease of which the log does not say how long it runs
_NAME = 60  # characters of a name
_VALUES = {"write": "value", "finish": "status", "schedule": "time", "retry": "decision", "alert": "alert"}
_RESUME, _ROW, _SEND, _PAUSE = range(4)  # what happens round a row, in this order

Place = tuple[int, int, int, int]  # number of the row; 1 itself, 0 assumed before it: by token; of the four above


class Told(NamedTuple):
    """An accepted stale write as a timeline, and of each event which row of the history it is (None: assumed)."""

    resource: str
    timeline: Timeline
    row_ids: tuple[int | None, ...]

    def lines(self, sources: Mapping[int, str]) -> list[str]:
        """The lines of its file; behind an event stands the source of its row."""
        head, _, events = str(self.timeline).partition("\n\n")
        marks = [f"  # {inert(sources[n], 100)}" if n is not None and n in sources else "" for n in self.row_ids]
        told = [f"{line:<36}{mark}".rstrip() for line, mark in zip(events.splitlines(), marks, strict=True)]
        return [*head.splitlines(), "", *told]


class _Row(NamedTuple):
    row_id: int
    kind: str
    who: str
    token: int  # presented or granted
    at: datetime | None
    expires_at: datetime | None

    @property
    def granted(self) -> bool:
        return self.kind == "grant"


class _Grant(NamedTuple):
    place: Place
    token: int
    who: str
    row_id: int | None


class _Moment(NamedTuple):
    place: Place
    event: Event
    row_id: int | None = None
    token: int = 0  # that is granted


def worst(con: duckdb.DuckDBPyConnection, affected: Sequence[Mapping[str, Any]]) -> list[Told]:
    """The first accepted stale write of each of the `WORST` worst resources, where a timeline can tell it.

    `affected` are those of `evidence.resources`, worst first; the tables `history` and `verdicts` are read.
    """
    stale = [row["resource"] for row in affected if row["stale"]][: TRIED * WORST]
    return [*islice((told for resource in stale if (told := _told(resource, _rows(con, resource)))), WORST)]


def _rows(con: duckdb.DuckDBPyConnection, resource: str) -> list[_Row]:
    """The first accepted stale write of the resource, last, and what was accepted under its lease before."""
    tests = " or ".join(f"{name} = 1" for name in evidence.STALE)
    mutations = ", ".join(f"'{kind}'" for kind in MUTATIONS)
    found = con.execute(
        f"""
        with last as (
            select verdicts.row_id, incarnation, order_scope, order_key, coalesce(lease, resource) as lease_key
            from history join verdicts on verdicts.row_id = history.rowid
            where resource = $1 and kind in ({mutations}) and order_key is not null and ({tests})
            order by order_scope, order_key, verdicts.row_id limit 1)
        select verdicts.row_id, kind,
            case when kind = 'grant' then coalesce(nullif(after_holder, ''), writer) else writer end as who,
            case when kind = 'grant' then coalesce(after_token, token) else token end as carried,
            history."at", after_expires_at
        from last join history on coalesce(history.lease, history.resource) = last.lease_key
            and history.order_scope = last.order_scope
            and (history.order_key, history.rowid) <= (last.order_key, last.row_id)
        join verdicts on verdicts.row_id = history.rowid
        where decision = 'accepted' and who <> '' and carried is not null and (
            (kind = 'grant' and history.resource <> $1) or (history.resource = $1
                and verdicts.incarnation = last.incarnation
                and kind in ('grant', 'renew', 'release', {mutations})))
        order by history.order_key desc, verdicts.row_id desc limit {ROWS}""",
        [resource],
    ).fetchall()
    rows = [_Row(row_id, kind, who, int(token), at, ends) for row_id, kind, who, token, at, ends in reversed(found)]
    return [row for n, row in enumerate(rows) if not row.granted or row[1:] not in [other[1:] for other in rows[:n]]]


def _told(resource: str, rows: Sequence[_Row]) -> Told | None:
    """The rows as a timeline, or None where its replay does not accept the last of them as stale."""
    if not rows:
        return None
    stale, grants = rows[-1], _grants(rows)
    if stale.who not in [grant.who for grant in grants]:  # its token was granted to another name
        return None
    newest = max(grants, key=lambda grant: grant.token)
    tokens = sorted({grant.token for grant in grants})
    numbers = {token: tokens[0] + n for n, token in enumerate(tokens)}
    names = _legal([grant.who for grant in grants], "worker")
    length = next((s for row in rows if row.kind == "grant" and (s := _seconds(row.at, row.expires_at))), _LENGTH)
    told = [*_timed(rows, sorted(_moments(rows, grants), key=lambda moment: moment.place), numbers, length)]
    assumed = "a worker stood still from its last row before the next grant on; what was refused is left out"
    if tokens != [*numbers.values()]:
        assumed += f"; tokens are counted up from {tokens[0]}, in the log they are {', '.join(map(str, tokens))}"
    made = Timeline(
        name="finding", title=inert(f"{stale.who} wrote with {stale.token} after {newest.token} ({newest.who})", 200),
        workers=(*names.values(),), resources=(*_legal([resource], "resource").values(),), first_token=tokens[0],
        lease_length=length, events=tuple(event.but(worker=names.get(event.worker, "")) for event, _ in told),
        fixes=("unfenced", "fenced", "latest-id"), shows="the last write was accepted; which fix refuses it?",
        assumed=assumed,
    )  # fmt: skip
    fits = newest.token > stale.token and _replays(made, names[stale.who], numbers[stale.token])
    return Told(resource, made, tuple(row_id for _, row_id in told)) if fits else None


def _grants(rows: Sequence[_Row]) -> list[_Grant]:
    """The grants in order; one that the log does not show is assumed before the first row of its token or a newer."""
    grants = [_Grant((n, 1, 0, _ROW), row.token, row.who, row.row_id) for n, row in enumerate(rows) if row.granted]
    for row in rows:
        if row.token not in {grant.token for grant in grants}:
            before = next(n for n, other in enumerate(rows) if other.token >= row.token)
            grants.append(_Grant((before, 0, row.token, _ROW), row.token, row.who, None))
    return sorted(grants)


def _moments(rows: Sequence[_Row], grants: Sequence[_Grant]) -> Iterator[_Moment]:
    """What the rows say and who stood still, in any order. What nobody was granted the token of is left out."""
    acts = [(grant.place, grant.who) for grant in grants]
    for grant in grants:
        yield _Moment(grant.place, Event("acquire", grant.who), grant.row_id, grant.token)
    for n, row in enumerate(rows):
        place: Place = (n, 1, 0, _ROW)
        own = [grant for grant in grants if grant.who == row.who and grant.place < place]
        if row.granted or row.token not in [grant.token for grant in own]:
            continue
        value = f"{_VALUES.get(row.kind, '')}-{n}"
        if own[-1].token == row.token:
            acts.append((place, row.who))
            yield _Moment(place, Event(row.kind, row.who, value=value if row.kind in MUTATIONS else ""), row.row_id)
        elif row.kind in MUTATIONS:  # it was on its way while its sender was granted a newer token
            newer = own[[grant.token for grant in own].index(row.token) + 1]
            sent = max(at for at, who in acts if who == row.who and at < newer.place)
            kind = "" if row.kind == "write" else row.kind
            yield _Moment((*sent[:3], _SEND), Event("send", row.who, kind=kind, value=value))
            yield _Moment(place, Event("arrive", row.who, value=value), row.row_id)
    yield from _pauses(grants, acts, {(n, 1, 0, _ROW) for n, row in enumerate(rows) if row.kind == "release"})


def _pauses(grants: Sequence[_Grant], acts: Sequence[tuple[Place, str]], released: Set[Place]) -> Iterator[_Moment]:
    """Whoever had its lease granted on, unless it released it, stood still from its last act before to its next."""
    for grant, newer in pairwise(grants):
        own = [place for place, who in acts if who == grant.who]
        last = max(place for place in own if place < newer.place)
        if grant.who != newer.who and last not in released:
            yield _Moment((*last[:3], _PAUSE), Event("pause", grant.who))
            after = [place for place in own if place > newer.place]
            yield from (_Moment((*place[:3], _RESUME), Event("resume", grant.who)) for place in sorted(after)[:1])


def _timed(
    rows: Sequence[_Row], moments: Sequence[_Moment], numbers: Mapping[int, int], length: int
) -> Iterator[tuple[Event, int | None]]:
    """(event, row id) with the time that passes between the rows; a lease that still runs in it expires first."""
    now, ends, issued = 0, 0, min(numbers.values()) - 1
    for moment in moments:
        row, event = rows[moment.place[0]], moment.event
        wait = min(_PASS, _seconds(rows[0].at, row.at) - now) if moment.place[1:] == (1, 0, _ROW) else 0
        if wait > 0:
            yield Event("pass", number=wait), None
            now += wait
        if event.act == "acquire":
            if numbers[moment.token] != issued + 1:  # its counter fell or stood still
                yield Event("restore", number=numbers[moment.token] - 1), None
                now, ends = now + 1, 0
            elif ends > now:
                yield Event("expire"), None
                now = ends + 1
            issued, ends = numbers[moment.token], now + length
        elif event.act == "release":
            ends = 0
        elif event.act == "renew" and ends > now:
            ends = now + length
        yield event, moment.row_id
        now += 1


def _seconds(begin: datetime | None, end: datetime | None) -> int:
    return min(9_999_999, max(0, round((end - begin).total_seconds()))) if begin and end else 0


def _legal(names: Sequence[str], otherwise: str) -> dict[str, str]:
    """{name: what it is called in a timeline}: itself where it is a short word of the language."""
    fits = {name: len(name) <= _NAME and re.fullmatch(WORD, name) is not None for name in names}
    free = (word for n in count(1) if (word := f"{otherwise}-{n}") not in fits)
    return {name: name if fit else next(free) for name, fit in fits.items()}


def _replays(made: Timeline, who: str, token: int) -> bool:
    """Whether the text of the timeline can be read, and without a fix its last write is accepted as stale."""
    try:
        run = replay(timeline.parse(str(made)), FIXES["unfenced"])
    except InputError:
        return False
    *before, last = [row for row in run.rows if row["decision"] == "accepted"]
    newest = max((row["after_token"] or 0 for row in before), default=0)
    return (last["writer"], last["token"]) == (who, token) and newest > token and last is run.rows[-1]
