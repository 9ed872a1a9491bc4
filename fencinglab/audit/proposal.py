"""What a team's own requests would have decided on a recorded log: each of its mutations is sent to the mock.

The item before is built of what the log shows that the receiver held, the bindings of what it shows that the writer
presented. A decision counts where the conditions look at nothing else; an operation is taken as sent for the first
time unless the log names it twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.dynamodb import requests, sending
from fencinglab.dynamodb.mock import Mock
from fencinglab.dynamodb.placeholders import Unbound, names_in
from fencinglab.dynamodb.requests import Items, Requests
from fencinglab.model.event import MUTATIONS

if TYPE_CHECKING:
    import duckdb

NAME = "your requests"  # their column in the table `whatif`, beside those of the guards
MOST = 1000  # different cases that are sent: those of accepted stale and late writes first, then the most frequent
BEYOND = f"beyond the bound of {MOST:,} different cases"
_TOUCHED = re.compile(r"([#\w]+)\s*(?:[=<>]+\s*|\s)(:\w+)")  # leaseOwner = :worker, ADD version :one
_HELD = {  # column of `map` -> what the log's receiver held, of the tables `whatif` and `history`
    "token": "held_token", "holder": "held_by", "expires_at": "held_until", "written_token": "held_mark",
    "status": "held_status", "version": "before_version",
    "terminal_version": "coalesce(list_contains(finals, held_status), held_finished)::integer",
}  # fmt: skip


class _Case(NamedTuple):
    """Mutations that differ in nothing that a condition looks at. None is not known, or not looked at."""

    row_ids: list[int]
    kind: str
    again: bool  # the log names its operation twice
    absent: bool  # there is no item
    writer: str | None
    token: int | None
    at: datetime | None
    early: int  # microseconds by which its sender's clock may have shown less, and more
    late: int
    held: tuple[Any, ...]  # in the order of _HELD


class _Known(NamedTuple):
    items: Items
    attributes: frozenset[str]  # of which it is known what they held, or that they were not there


def judge_proposal(
    con: duckdb.DuckDBPyConnection, file: Requests, progress: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Give the table `whatif` the column `NAME`, as of a guard; {why: how many} of the mutations that cannot be told.

    Of more than `MOST` different cases the rest is -1 too, and counted as `BEYOND`. `whatif` is that of `judge_guards`.
    """
    found: list[tuple[_Case, bool | str]] = []
    with Mock() as mock:
        client = mock.client()
        with sending.tables(client, file, streams=False):
            asked = _Asked(client, file)
            cases = asked.cases(con)
            for number, case in enumerate(cases):
                if number % 50 == 0:
                    progress(f"sending {number:,} of {min(len(cases), MOST):,} cases of the log")
                found.append((case, asked.decision(case) if number < MOST else BEYOND))
    told = {row_id: -1 if isinstance(why, str) else int(why) for case, why in found for row_id in case.row_ids}
    con.execute("create or replace temp table proposal (row_id bigint, admits integer)")
    con.execute("insert into proposal select unnest($1), unnest($2)", [[*told.keys()], [*told.values()]])
    con.execute(f"""create or replace temp table whatif as
        select whatif.*, admits as "{NAME}" from whatif join proposal using (row_id)""")
    con.execute("drop table proposal")
    untold = Counter[str]()
    for case, why in found:
        if isinstance(why, str):
            untold[why] += len(case.row_ids)
    return dict(untold.most_common())


class _Asked:
    """A mock with the tables of one file, which remembers what it decided."""

    def __init__(self, client: Any, file: Requests) -> None:
        self.client, self.file = client, file
        granted = requests.counters(file)  # an item that a grant makes is there by the time of a write
        lying = zip(requests.places(file), requests.begin(file), strict=True)
        self.start = [json.loads(text or place.key) if text or place in granted else None for place, text in lying]
        self.keys = frozenset(part["AttributeName"] for table in file.tables for part in table["KeySchema"])
        self.types = _types(file, self.start)
        self.looked, self.used = _looked(file)
        self.known: dict[tuple[str, Items, str], bool | str] = {}

    def cases(self, con: duckdb.DuckDBPyConnection) -> list[_Case]:
        """The mutations of `whatif` as cases, in the order in which they are sent."""
        timed = "now" in self.used or "expiry" in self.used

        def only(wanted: bool, column: str) -> str:
            return column if wanted else "null"

        held = [only(self.file.map.get(column) in self.looked, name) for column, name in _HELD.items()]
        found = con.execute(
            f"""
            select list(whatif.row_id), kind, coalesce(operation_twice = 1, false), coalesce(before_image = 0, false),
                {only("worker" in self.used, "writer")}, {only("token" in self.used, "token")},
                {only(timed, 'history."at"')}, {only(timed, "skew")}, {only(timed, "coalesce(at_precision, 0) + skew")},
                row({", ".join(held)})
            from whatif join history on history.rowid = whatif.row_id join verdicts on verdicts.row_id = whatif.row_id
            cross join settings cross join (select $1::varchar[] as finals) group by all
            order by bool_or(coalesce(token_went_back = 1 or stale_write_accepted = 1, false)) desc,
                bool_or(coalesce(late_write_accepted = 1, false)) desc, count(*) desc, min(whatif.row_id)""",
            [list(self.file.terminal)],
        ).fetchall()
        return [_Case(*values) for values in found]

    def decision(self, case: _Case) -> bool | str:
        """Whether the requests of its kind admit it, or why that cannot be told."""
        names = self.file.of_kind(case.kind)
        if not names:
            return f"there is no request of the kind {case.kind}"
        if case.again:
            return "its operation was accepted before"
        before = self._before(case)
        answers = {self._sent(name, before, bindings) for name in names for bindings in self._bindings(case)}
        if open_ := sorted(answer for answer in answers if isinstance(answer, str)):
            return open_[0]
        return answers.pop() if len(answers) == 1 else "it depends on which request was meant, or on the clock"

    def _before(self, case: _Case) -> _Known:
        """The items of `start` with what the receiver of the log held, as far as a condition looks at it."""
        held = dict(zip(_HELD, case.held, strict=True))
        if held["expires_at"] is not None:
            held["expires_at"] = _second(held["expires_at"])
        elif held["holder"] == "":
            held["expires_at"] = 0
        items = [None if item is None else dict(item) for item in self.start]
        known = set(self.keys)
        for column, value in held.items():
            if (attribute := self.file.map.get(column)) and value is not None:
                known.add(attribute)
                for item in items:
                    if item is not None and value not in ("", 0):  # else it is as before anybody came
                        item[attribute] = {self.types.get(attribute, "S"): str(value)}
        if case.absent:
            items[0] = None
        return _Known(tuple(None if item is None else requests.frozen(item) for item in items), frozenset(known))

    def _bindings(self, case: _Case) -> Iterator[dict[str, Any]]:
        """What the writer bound, as far as the log says; twice where its clock may have shown either.

        What no condition compares is bound to anything: it does not change the decision.
        """
        given = {"worker": case.writer, "token": None if case.token is None else int(case.token)}
        anything = {"worker": "worker", "token": 1, "now": 0}
        made: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        made |= {name: value for name, value in anything.items() if name not in self.used}
        made |= {"operation": "operation", "value": "result"}
        for name in _tokens(self.file) if "token" in made else ():
            made[name] = {self.types.get(name.partition(".")[2], "N"): str(made["token"])}
        if case.at is None:
            yield made
            return
        nows = {_second(case.at + timedelta(microseconds=by)) for by in (-case.early, case.late)}
        yield from (made | {"now": now} for now in sorted(nows))

    def _sent(self, name: str, before: _Known, bindings: dict[str, Any]) -> bool | str:
        try:
            request = requests.bind(self.file, name, bindings)
        except Unbound as error:
            return f"the log does not say what stands for {str(error).rpartition(' needs ')[2].partition(',')[0]}"
        compared = [single.compared(single.condition) for single in requests.singles_sent(self.file, request)]
        key = (name, before.items, requests.frozen(compared))
        if key not in self.known:
            self.known[key] = self._decided(name, request, before, bindings)
        return self.known[key]

    def _decided(self, name: str, request: requests.Request, before: _Known, bindings: dict[str, Any]) -> bool | str:
        """The mock's decision, where it follows from attributes that are known."""
        sent = sending.step(self.client, self.file, before.items, name, bindings)
        if sent.decision == "unknown":
            return "the request is not decided: " + sent.reason.partition(":")[0]
        lying = dict(zip(requests.places(self.file), before.items, strict=True))
        open_: set[str] = set()
        written = requests.singles(self.file, [name])
        for raw, single in zip(written, requests.singles_sent(self.file, request), strict=True):
            item = lying[single.place]
            unmet = single.unmet(json.loads(item or "{}")) if sent.decision == "rejected" else []
            for part in single.parts:
                unknown = single.looked_at(part) - before.attributes
                first_time = "operation" in names_in(raw.compared(part))
                if unknown and item is not None and not first_time:
                    open_ |= unknown
                elif part in unmet:
                    return False
        return f"the log does not say {', '.join(sorted(open_))}" if open_ else sent.decision == "accepted"


def _looked(file: Requests) -> tuple[set[str], set[str]]:
    """The attributes that the conditions of mutations look at, and the placeholders that they compare."""
    looked, used = set[str](), set[str]()
    for one in requests.singles(file, (name for kind in MUTATIONS for name in file.of_kind(kind))):
        looked |= one.looked_at(one.condition)
        used |= names_in(one.compared(one.condition))
    return looked, used | ({"token"} if used & _tokens(file) else set())


def _tokens(file: Requests) -> set[str]:
    """The attribute of a reply that is the token, where the token is no more than that."""
    return {name for name in names_in(file.token) if file.token.strip("${}") == name}


def _types(file: Requests, start: Sequence[Mapping[str, Any] | None]) -> dict[str, str]:
    """{attribute: the type of its value}, as it lies in `start` or as a request writes or compares it."""
    found: dict[str, str] = {}
    for one in requests.singles(file):
        touched = [(one.names.get(n, n), one.values[v]) for n, v in _TOUCHED.findall(f"{one.update} {one.condition}")]
        found |= {name: next(iter(value)) for name, value in (*touched, *one.item.items()) if "?" not in value}
    return found | {name: next(iter(value)) for item in start if item for name, value in item.items()}


def _second(moment: datetime) -> int:
    return int(moment.replace(tzinfo=UTC).timestamp())
