"""What a drill leaves: the records of the receiver's stream, the workers' log, and the items as they lie in the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fencinglab.drill.desk import Line
from fencinglab.dynamodb.requests import Place, Requests, frozen
from fencinglab.dynamodb.sending import read

EXAMPLE_ACCOUNT = "123456789012"  # of AWS's own documentation: that of a local receiver means nothing
_STORED = {"token": "storedToken", "holder": "storedOwner", "expires_at": "storedExpiresAt", "status": "storedStatus"}
_AFTER = {
    "holder": "leaseOwner", "expires_at": "leaseExpiresAt", "status": "apiStatus",
    "terminal_version": "terminalVersion",
}  # fmt: skip

Record = dict[str, Any]
Touched = Mapping[Place, str]  # the resource of each item


def stream(streams: Any, tables: Iterable[str], touched: Touched, aws: bool) -> list[Record] | None:
    """The records of these items in the shape that Lambda gets, in the stream's order; None where there is none."""
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


def logged(lines: Sequence[Line], file: Requests, ordered: bool) -> list[dict[str, Any]]:
    """The workers' log as JSON objects; `ordered` where no stream says in which order the receiver decided.

    Its fields have names that the audit knows, whatever the item calls its attributes. Where `ordered`, an order is
    known only if every mutation raises a version.
    """
    return [_logged(line, file, ordered) for line in lines]


def _logged(line: Line, file: Requests, ordered: bool) -> dict[str, Any]:
    stored = {
        column: next(iter(line.item[attribute].values()))
        for column, attribute in file.map.items() if line.item and attribute in line.item
    }  # fmt: skip
    made: dict[str, Any] = {
        "sentAt": datetime.fromtimestamp(line.sent_at, UTC).isoformat().replace("+00:00", "Z"),
        "scenario": line.scenario, "resource": line.resource, "worker": line.worker, "kind": line.kind,
        "token": line.token, "operationId": line.operation, "decision": line.decision, "outcome": line.outcome,
    }  # fmt: skip
    if line.decision == "rejected":
        made["reason"] = line.reason
        names = _STORED
    else:
        names = _AFTER
        if ordered and "version" in stored:
            made["sequence"] = int(stored["version"])
    made |= {name: stored[column] for column, name in names.items() if column in stored}
    return {name: value for name, value in made.items() if value is not None}
