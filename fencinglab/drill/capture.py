"""What a drill leaves: the records of the receiver's stream, the workers' log, and the items as they lie in the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fencinglab.drill.desk import Heard
from fencinglab.dynamodb.requests import READ, Place, Requests, frozen
from fencinglab.dynamodb.sending import changed, read

EXAMPLE_ACCOUNT = "123456789012"  # of AWS's own documentation: that of a local receiver means nothing
_STORED = {"token": "storedToken", "holder": "storedOwner", "expires_at": "storedExpiresAt", "status": "storedStatus"}
_AFTER = {
    "holder": "leaseOwner", "expires_at": "leaseExpiresAt", "status": "apiStatus",
    "terminal_version": "terminalVersion",
}  # fmt: skip

Record = dict[str, Any]
Touched = Mapping[Place, str]  # the resource of each item


def stream(streams: Any, tables: Iterable[str], touched: Touched, aws: bool) -> list[Record] | None:
    """The records of these items in the shape that Lambda gets, in the stream's order; None where none can be read."""
    from botocore.exceptions import BotoCoreError, ClientError

    found: list[Record] = []
    try:
        for table in tables:
            for listed in streams.list_streams(TableName=table)["Streams"]:
                arn = listed["StreamArn"]
                shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
                every = [one for shard in shards for one in _records(streams, arn, shard["ShardId"])]
                shown = arn if aws else re.sub(r":\d*:table/", f":{EXAMPLE_ACCOUNT}:table/", arn)
                found += [one for record in every if _place(one := _shaped(record, shown)) in touched]
    except (BotoCoreError, ClientError, KeyError):
        return None
    return found or None


def _records(streams: Any, arn: str, shard: str) -> Iterable[Record]:
    """All records of one shard that are there now."""
    given = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    following, empty = given["ShardIterator"], 0
    while following and empty < 2:  # an open shard has always a next iterator, and AWS gives empty pages in between
        page = streams.get_records(ShardIterator=following)
        yield from page["Records"]
        following, empty = page.get("NextShardIterator"), 0 if page["Records"] else empty + 1


def _shaped(record: Record, arn: str) -> Record:
    """A record of GetRecords as it is archived: times as numbers, with the stream that it came from."""
    inner = record["dynamodb"]
    at = inner["ApproximateCreationDateTime"]
    seconds = at.timestamp() if isinstance(at, datetime) else float(at)
    names = ("Keys", "NewImage", "OldImage", "SequenceNumber", "SizeBytes", "StreamViewType")
    kept = {name: inner[name] for name in names if name in inner}
    about = {name: value for name, value in record.items() if name != "dynamodb"}
    return {
        **about,
        "dynamodb": {"ApproximateCreationDateTime": round(seconds, 3) if seconds % 1 else int(seconds), **kept},
        "eventSourceARN": arn,
    }


def unlike(client: Any, touched: Touched, records: Sequence[Record]) -> list[str]:
    """The resources whose item, read back, is not what the last record of the stream left."""
    images = {_place(record): record["dynamodb"].get("NewImage") for record in records}
    last = {place: frozen(image) for place, image in images.items() if image is not None}
    lying = zip(touched, read(client, [*touched]), strict=True)
    return sorted({touched[place] for place, item in lying if item != last.get(place)})


def _place(record: Record) -> Place:
    return Place(record["eventSourceARN"].split("/")[1], frozen(record["dynamodb"]["Keys"]))


def settled(read: Callable[[], list[Record] | None], wrong: Callable[[list[Record]], list[str]]) -> list[Record] | None:
    """The stream once it tells of all that was written: it may lag behind the table for some seconds."""
    for _ in range(10):
        records = read()
        if not records or not wrong(records):
            break
        time.sleep(0.5)
    return records


def logged(heard: Iterable[Heard], file: Requests, ordered: bool) -> list[dict[str, Any]]:
    """The workers' log as JSON objects; `ordered` where no stream says in which order the receiver decided.

    An operation has a line for the message that decided it, and one for a lost success before; a read has none. Its
    fields have names that the audit knows, whatever the item calls its attributes. Where `ordered`, an order is known
    only if every mutation raises a version.
    """
    return [line for one in heard for line in _lines(one, file, ordered)]


def _lines(heard: Heard, file: Requests, ordered: bool) -> Iterable[dict[str, Any]]:
    told, kind = heard.told, file.operations[heard.told.name].kind
    if kind == READ or told.name in file.creates:
        return
    line = {
        "sentAt": _utc(told.messages[-1].at), "scenario": heard.scenario, "resource": changed(file, told.request),
        "worker": heard.worker, "kind": kind, "token": told.token, "operationId": told.operation,
        "decision": told.decision, "outcome": told.outcome,
    }  # fmt: skip
    refused = told.decision == "rejected"
    if refused and told.ok:  # by its own success, of which it had not heard
        yield _known(line | {"sentAt": _utc(told.messages[0].at), "decision": "unknown", "outcome": "unknown"})
        line["outcome"] = "failed"
    item = told.item or (told.request.input.get("Item") if told.decision == "accepted" else None) or {}
    stored = {column: next(iter(item[name].values())) for column, name in file.map.items() if name in item}
    if refused:
        line["reason"] = told.reason
    elif ordered and "version" in stored:
        line["sequence"] = int(stored["version"])
    names = _STORED if refused else _AFTER
    yield _known(line | {name: stored[column] for column, name in names.items() if column in stored})


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _known(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if value is not None}
