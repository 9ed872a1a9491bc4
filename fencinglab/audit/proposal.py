"""What a team's own requests would have decided on a recorded log: each of its mutations is sent to the mock.

The item before is built of what the log shows that the receiver held, the bindings of what it shows that the writer
presented. A decision counts where the conditions look at nothing else; an operation is taken as sent for the first
time unless the log names it twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from fencinglab.dynamodb import expression, requests, sending
from fencinglab.dynamodb.mock import Mock
from fencinglab.dynamodb.requests import Items, Requests, Unbound

if TYPE_CHECKING:
    import duckdb

NAME = "your requests"  # their column in the table `whatif`, beside those of the guards
MOST = 2000  # mutations that are sent: accepted stale and late ones first, then in the log's order
BEYOND = "beyond the bound"
_TOUCHED = re.compile(r"([#\w]+)\s*(?:[=<>]+\s*|\s)(:\w+)")  # leaseOwner = :worker, ADD version :one


class _Row(NamedTuple):
    """One mutation of the log, and what its receiver held before; None is not known."""

    row_id: int
    kind: str
    writer: str | None
    token: int | None
    operation: str | None
    again: bool  # the log names its operation twice
    at: datetime | None
    early: int  # microseconds by which its sender's clock may have shown less, and more
    late: int
    absent: bool
    held_token: int | None
    held_by: str | None
    held_until: datetime | None
    held_mark: int | None
    held_status: str | None
    held_finished: bool | None
    version: int | None


class _Known(NamedTuple):
    items: Items
    attributes: frozenset[str]  # of which it is known what they held, or that they were not there


def judge_proposal(con: duckdb.DuckDBPyConnection, file: Requests) -> dict[str, int]:
    """Give the table `whatif` the column `NAME`, as of a guard; {why: how many} of the mutations that cannot be told.

    Of more than `MOST` mutations the rest is -1 too, and counted as `BEYOND`. `whatif` is that of `judge_guards`.
    """
    rows = _rows(con)
    with Mock() as mock:
        client = mock.client()
        with sending.tables(client, file, streams=False):
            asked = _Asked(client, file)
            found = {row.row_id: asked.decision(row) for row in rows[:MOST]}
    found |= dict.fromkeys((row.row_id for row in rows[MOST:]), BEYOND)
    con.execute("create or replace temp table proposal (row_id bigint, admits integer)")
    told = {row_id: -1 if isinstance(admits, str) else int(admits) for row_id, admits in found.items()}
    con.execute("insert into proposal select unnest($1), unnest($2)", [[*told.keys()], [*told.values()]])
    con.execute(f"""create or replace temp table whatif as
        select whatif.*, admits as "{NAME}" from whatif join proposal using (row_id)""")
    con.execute("drop table proposal")
    return dict(Counter(why for why in found.values() if isinstance(why, str)).most_common())


def _rows(con: duckdb.DuckDBPyConnection) -> list[_Row]:
    """The mutations of `whatif`, accepted stale and late ones first, then in order."""
    found = con.execute("""
        select whatif.row_id, kind, writer, token, operation, coalesce(operation_twice = 1, false), history."at",
            skew, coalesce(at_precision, 0) + skew, coalesce(before_image = 0, false),
            held_token, held_by, held_until, held_mark, held_status, held_finished, before_version
        from whatif join history on history.rowid = whatif.row_id join verdicts on verdicts.row_id = whatif.row_id
        cross join settings
        order by coalesce(token_went_back = 1 or stale_write_accepted = 1, false) desc,
            coalesce(late_write_accepted = 1, false) desc, order_scope, order_key, whatif.row_id""").fetchall()
    return [_Row(*values) for values in found]


class _Asked:
    """A mock with the tables of one file, which remembers what it decided."""

    def __init__(self, client: Any, file: Requests) -> None:
        self.client, self.file = client, file
        self.start = [None if text is None else json.loads(text) for text in requests.begin(file)]
        self.keys = frozenset(part["AttributeName"] for table in file.tables for part in table["KeySchema"])
        self.types = _types(file, self.start)
        self.known: dict[tuple[str, Items, str], bool | str] = {}

    def decision(self, row: _Row) -> bool | str:
        """Whether the requests of the row's kind admit it, or why that cannot be told."""
        names = self.file.of_kind(row.kind)
        if not names:
            return f"there is no request of the kind {row.kind}"
        if row.again:
            return "its operation was accepted before"
        before = self._before(row)
        answers = {self._sent(name, before, bindings) for name in names for bindings in self._bindings(row)}
        if open_ := sorted(answer for answer in answers if isinstance(answer, str)):
            return open_[0]
        return answers.pop() if len(answers) == 1 else "it depends on which request was meant, or on the clock"

    def _before(self, row: _Row) -> _Known:
        """The items of `start` with what the receiver of the log held."""
        finished = row.held_status in self.file.terminal if row.held_status is not None else row.held_finished
        held: dict[str, Any] = {
            "token": row.held_token, "holder": row.held_by, "written_token": row.held_mark, "status": row.held_status,
            "expires_at": None if row.held_until is None else _second(row.held_until), "version": row.version,
            "terminal_version": None if finished is None else int(finished),
        }  # fmt: skip
        if row.held_by == "":
            held["expires_at"] = 0
        items = [None if item is None else dict(item) for item in self.start]
        known = set(self.keys)
        for column, value in held.items():
            if (attribute := self.file.map.get(column)) and value is not None:
                known.add(attribute)
                for item in items:
                    if item is not None and value not in ("", 0):  # else it is as before anybody came
                        item[attribute] = {self.types.get(attribute, "S"): str(value)}
        if row.absent:
            items[0] = None
        return _Known(tuple(None if item is None else requests.frozen(item) for item in items), frozenset(known))

    def _bindings(self, row: _Row) -> Iterator[dict[str, Any]]:
        """What the writer bound, as far as the log says; twice where its clock may have shown either."""
        made: dict[str, Any] = {"operation": row.operation or "operation", "value": "result"}
        if row.writer is not None:
            made["worker"] = row.writer
        if row.token is not None:
            made["token"] = int(row.token)
            for name in [name for name in requests.names_in(self.file.token) if self.file.token.strip("${}") == name]:
                made[name] = {"N": str(row.token)}
        if row.at is None:
            yield made
            return
        nows = {_second(row.at + timedelta(microseconds=by)) for by in (-row.early, row.late)}
        yield from (made | {"now": now} for now in sorted(nows))

    def _sent(self, name: str, before: _Known, bindings: dict[str, Any]) -> bool | str:
        try:
            request = requests.bind(self.file, name, bindings)
        except Unbound as error:
            return f"the log does not say what stands for {str(error).rpartition(' needs ')[2].partition(',')[0]}"
        key = (name, before.items, request.text)
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
        raws = requests.singles(self.file.operations[name].input)
        for part, raw in zip(sending.parts(self.file, request), raws, strict=True):
            given, item = raw.get("ExpressionAttributeValues", {}), lying[part.place]
            first_time = {value for value in given if "operation" in requests.names_in(given[value])}
            for condition in expression.conjuncts(part.condition) if part.condition else ():
                unknown = expression.attributes(condition, part.names) - before.attributes
                if unknown and item is not None and not first_time & expression.placeholders(condition):
                    open_ |= unknown
                elif sent.decision == "rejected" and expression.fails(
                    condition, part.names, part.values, json.loads(item or "{}")
                ):
                    return False
        return f"the log does not say {', '.join(sorted(open_))}" if open_ else sent.decision == "accepted"


def _types(file: Requests, start: Sequence[Mapping[str, Any] | None]) -> dict[str, str]:
    """{attribute: the type of its value}, as it lies in `start` or as a request writes or compares it."""
    found: dict[str, str] = {}
    for operation in file.operations.values():
        for one in requests.singles(operation.input):
            text = f"{one.get('UpdateExpression', '')} {one.get('ConditionExpression', '')}"
            names, values = (one.get(f"ExpressionAttribute{part}", {}) for part in ("Names", "Values"))
            found |= {names.get(n, n): next(iter(values[v])) for n, v in _TOUCHED.findall(text) if "?" not in values[v]}
            found |= {name: next(iter(value)) for name, value in one.get("Item", {}).items() if "?" not in value}
    return found | {name: next(iter(value)) for item in start if item for name, value in item.items()}


def _second(moment: datetime) -> int:
    return int(moment.replace(tzinfo=UTC).timestamp())
