"""Which format a log has, told from its content: a file's name says nothing.

`FORMATS` are read. `NOT_READ` are known by name and refused with what they could and could not show.
Where a format is known from is written in the project's facts on logs.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fencinglab import history
from fencinglab.errors import InputError, UsageError, nearest

HEAD = 256 * 1024  # bytes that are looked at; more only where the first line is longer
MOST = 16 * 1024 * 1024
PARQUET = b"PAR1"


class Detected(NamedTuple):
    """What a file holds and how its entries lie in it."""

    format: str  # a name of FORMATS or NOT_READ, or "empty"
    shape: str  # "lines" (a JSON value or a text line a line), "documents" (other JSON), "csv", "parquet"


EMPTY = Detected("empty", "lines")

FORMATS: dict[str, str] = {
    "dynamodb-stream": "records of a DynamoDB stream show every accepted write that changed an item; they cannot show "
    "a refused write, a write that changed nothing, or a writer and a token that the item does not store",
    "log-lines": "JSON log lines show who presented which token and what came of it, as far as it was logged; they "
    "cannot show a writer that logs nothing, and have an order only by a mapped field",
    "csv": "a table with a header row shows what its columns say; it cannot show rows that its query left out or cut",
    "history": "a history written by fencinglab (Parquet, JSON lines) shows what its own source could show",
    "table": "a flat Parquet table shows what its columns say, mapped by --map; it cannot show rows that were left out",
}


class NotRead(NamedTuple):
    """What a file holds, why it is not read, and what to give instead (LOG stands for the file)."""

    what: str
    why: str
    instead: str


_STREAM_OR_LINES = "the table's DynamoDB stream (records with dynamodb.SequenceNumber) or the workers' JSON log lines"
_SNAPSHOT = "it could show the items at one moment, but not one write"
_LINES_OR_TABLE = "the workers' JSON log lines, or the changes in commit order as a flat table (CSV, Parquet)"

NOT_READ: dict[str, NotRead] = {
    "kinesis-dynamodb": NotRead("DynamoDB records from Kinesis Data Streams",
        "they could show accepted writes, but neither their order (no SequenceNumber, repeats) nor refused writes",
        _STREAM_OR_LINES),
    "kinesis-envelope": NotRead("Kinesis or Firehose envelopes",
        "the base64 data in them is not opened, and they order arrivals, not writes",
        "what is inside: jq -r '(.Records[]?.kinesis, .records[]?).data | @base64d' LOG > inside.jsonl"),
    "cloudtrail": NotRead("CloudTrail events",
        "they could show who sent which conditional write and which were refused, but no value, so no token",
        _STREAM_OR_LINES),
    "s3-full-export": NotRead("a full export of a DynamoDB table", _SNAPSHOT, _STREAM_OR_LINES),
    "s3-incremental-export": NotRead("an incremental export of a DynamoDB table",
        "it could show each item's last state in the window, but nothing that came in between", _STREAM_OR_LINES),
    "ion-export": NotRead("a DynamoDB export in Ion", _SNAPSHOT, _STREAM_OR_LINES),
    "table-scan": NotRead("the output of a Scan or Query", _SNAPSHOT, _STREAM_OR_LINES),
    "debezium": NotRead("Debezium change events",
        "they could show committed row changes, but no refused writes, and their lsn is not the commit order",
        _LINES_OR_TABLE),
    "wal2json": NotRead("wal2json changes",
        "they could show committed row changes, but neither refused writes nor what unchanged columns held",
        _LINES_OR_TABLE),
    "maxwell": NotRead("Maxwell row changes",
        "they could show committed row changes and the old values of changed columns, but no refused writes",
        _LINES_OR_TABLE),
    "failure-destination": NotRead("messages of a failure destination without their records",
        "they name a range of sequence numbers and could show no write",
        "an S3 failure destination (payload.Records), or that range read with get-records within 24 hours"),
    "test-snapshot": NotRead("a LocalStack test snapshot (recorded-content)",
        "its sequence numbers and times are masked, so it could show writes but no order", _STREAM_OR_LINES),
    "cloudwatch-events": NotRead("output of filter-log-events or get-log-events",
        "its lines lie inside events[].message", "the lines: jq -r '.events[].message' LOG > lines.jsonl"),
    "cloudwatch-subscription": NotRead("CloudWatch Logs subscription messages",
        "their lines lie inside logEvents[].message", "the lines: jq -r '.logEvents[]?.message' LOG > lines.jsonl"),
    "insights-results": NotRead("output of get-query-results", "its lines lie inside results[][].value",
        "the lines: jq -r '.results[][] | select(.field == \"@message\").value' LOG > lines.jsonl"),
    "athena-struct": NotRead("Athena or Hive struct text ({pk={s=..}})",
        "nothing in it is quoted, so values cannot be told apart",
        "the same query with CAST(dynamodb AS JSON), or UNLOAD with format = 'JSON'"),
    "python-repr": NotRead("printed Python dictionaries", "they are not JSON",
        "lines written with print(json.dumps(record, default=str)) instead of print(record)"),
    "logfmt": NotRead("key=value lines (logfmt)", "their values have no types and seldom quotes",
        "the same lines from the logger's JSON format"),
    "json-documents": NotRead("log objects over several lines or in an array", "log lines are read one object a line",
        "them one a line: jq -c 'if type == \"array\" then .[] else . end' LOG > lines.jsonl"),
    "other": NotRead("an unknown format", "it begins with no JSON object, no CSV header and no Parquet mark",
        f"one of {', '.join(FORMATS)}, and say which with --format if it was not recognised"),
}  # fmt: skip


def detect(path: Path, name: str) -> Detected:
    """The format and shape of a UTF-8 or Parquet file, by its beginning; `name` is for messages.

    A Parquet file that cannot be opened is an InputError.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
        while not enough(head) and (more := file.read(HEAD)):
            head += more
    return _parquet(path, name) if head.startswith(PARQUET) else sniff(head)


def enough(head: bytes) -> bool:
    """Whether `sniff` needs no more than this beginning of a text: 256 KiB, and the end of the first line."""
    return len(head) >= MOST or (len(head) >= HEAD and b"\n" in head.lstrip())


def sniff(head: bytes) -> Detected:
    """The format and shape of a text, by its beginning in UTF-8."""
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").lstrip()
    if not text:
        return EMPTY
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and not text.endswith("\n"):
        lines.pop()  # it may be cut
    values = [value if isinstance(value, dict | list) else None for value in map(_value, lines[:10])]
    whole = [value for value in values if value is not None]
    if values[0] is not None or len(whole) * 2 > len(values):
        return Detected(Counter(map(_format, whole)).most_common(1)[0][0], "lines")
    if re.match(r'\{\s*(["}]|\Z)|\[\s*(["{[\]]|\Z)', text):
        value, ended = _first(text)
        # An object without an end on one long line is a line that can be set aside; the lines after it can be read.
        if text.startswith("{") and "\n" not in text and not ended:
            return Detected(_format(value), "lines")
        return Detected(_format([value]), "documents")
    return _of_text(text, lines)


def refuse(detected: Detected, name: str) -> InputError:
    """The error for a file of a format of `NOT_READ`: what it could show, and what to give instead."""
    what, why, instead = NOT_READ[detected.format]
    instead = instead.replace("LOG", shlex.quote(name))
    return InputError(f"{name} holds {what}, which is not read: {why}; give {instead}")


def refuse_inside(detected: Detected, name: str) -> InputError:
    """The error for log lines that hold stream records among other text: how to take the records out."""
    undoubled = 'sed \'s/""/"/g\' | ' if detected.shape == "csv" else ""
    found = '.. | (., (strings | fromjson? | ..)) | objects | select(has("dynamodb"))'
    command = f"gzip -dcf {shlex.quote(name)} | grep -o '{{.*}}' | {undoubled}jq -c '{found}' > inside.jsonl"
    return InputError(
        f"{name} holds stream records inside log lines, which are not read: a record is found alone or in a wrapper "
        f"of AWS, not behind text or in a field of another line; give what is inside: {command}"
    )


def named(wanted: str) -> str:
    """The same name if `--format` may say it, else a UsageError with those that it may say."""
    if wanted in FORMATS:
        return wanted
    why = f"{NOT_READ[wanted].what} cannot be read" if wanted in NOT_READ else "no such format"
    near = "" if wanted in NOT_READ else f" (nearest: {nearest(wanted, FORMATS, 1)[0]})"
    raise UsageError(f"--format {wanted}: {why}{near}; allowed: {', '.join(FORMATS)}")


def taken_as(found: Detected, wanted: str, name: str) -> Detected:
    """What was found, read as the format `wanted` by the user; an InputError where that cannot be."""
    if found == EMPTY:
        return found
    kind = "Parquet" if found.shape == "parquet" else "text"
    fitting = [format_ for format_ in FORMATS if (format_ in ("history", "table")) == (kind == "Parquet")]
    if wanted not in (*fitting, found.format):
        raise InputError(f"{name} is {kind}, which --format {wanted} cannot read; allowed: {', '.join(fitting)}")
    shapes = {"csv": "csv", "log-lines": "lines", "dynamodb-stream": "lines" if found.shape == "csv" else found.shape}
    shapes["history"] = found.shape
    return Detected(wanted, shapes.get(wanted, "parquet"))


def _parquet(path: Path, name: str) -> Detected:
    import duckdb  # here, since telling formats apart must not cost an engine

    try:
        with duckdb.connect() as con:
            asked = con.execute("select * from read_parquet(?, hive_partitioning = false) limit 0", [str(path)])
            columns = {column[0] for column in asked.description}
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{name} begins like Parquet but cannot be opened ({reason}); was its end cut off?") from None
    ours = "resource" in columns and columns <= set(history.NAMES)
    return Detected("history" if ours else "table", "parquet")


# Numbers stay text: a hostile one may have more digits than Python makes an int of.
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{},]', re.DOTALL)


def _value(text: str) -> Any:
    """The value of a JSON text, or None."""
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def _first(text: str) -> tuple[Any, bool]:
    """The first JSON value of a text, and whether it is whole: one that is cut or broken is closed there."""
    try:
        return _JSON.raw_decode(text)[0], True
    except RecursionError:
        return None, False
    except json.JSONDecodeError as error:
        sound = text[: min(error.pos, HEAD // 4)]
    end, closing, closers = 0, "", ""
    for match in _STRUCTURE.finditer(sound):
        token = match[0]
        if token in ("{", "["):
            closers = ("}" if token == "{" else "]") + closers
        elif token in ("}", "]"):
            closers = closers[1:]
        elif token != ",":
            continue
        end, closing = match.start() + (token != ","), closers
    return _value(sound[:end] + closing), False


def _objects(value: Any, depth: int = 6) -> Iterator[dict[str, Any]]:
    """The objects of a value, outermost first, keys in lower case as Athena and Glue make them.

    Looks into the wrappers that the stream reader opens, and into JSON inside a string.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = _value(value)
    if isinstance(value, list) and depth:
        for one in value[:5]:
            yield from _objects(one, depth - 1)
    if isinstance(value, dict):
        lowered = {key.lower(): inner for key, inner in value.items()}
        yield lowered
        for wrapper in ("records", "payload", "body", "messages", "message", "detail"):
            if wrapper in lowered and depth:
                yield from _objects(lowered[wrapper], depth - 1)


def _names(o: dict[str, Any]) -> set[str]:
    """What signs of formats are made of: the keys, `outer.inner` for those below, and a few words on values."""
    names = o.keys() | {f"{key}.{inner}" for key, value in o.items() for inner in next(_objects(value), {})}
    for key, value in o.items():
        if len(o) == 1:
            names.add(f"only {key}")
        if value == []:
            names.add(f"no {key}")
        if value in ("aws:dynamodb", "B", "C"):
            names.add(f"{key}={value}")
        if isinstance(value, dict) and value and all(isinstance(v, dict) and len(v) == 1 for v in value.values()):
            names.add(f"typed {key}")  # an item in DynamoDB JSON
    return names


# The first format of which one group of names is all there.
_SIGNS: dict[str, tuple[str, ...]] = {
    "test-snapshot": ("recorded-content",),
    "kinesis-dynamodb": ("recordformat,dynamodb.keys", "recordformat,tablename"),
    "dynamodb-stream": (
        "eventsource=aws:dynamodb", "dynamodb.sequencenumber", "dynamodb.keys", "dynamodb.newimage",
        "no records,only records", "no records,nextsharditerator",
    ),
    "kinesis-envelope": ("kinesis.data", "deliverystreamarn", "recordid,data,approximatearrivaltimestamp"),
    "cloudwatch-subscription": ("messagetype,logevents",),
    "cloudtrail": ("eventversion,useridentity", "eventname,requestparameters", "cloudtrailevent"),
    "failure-destination": ("ddbstreambatchinfo",),
    "s3-incremental-export": ("metadata.writetimestampmicros", "exportfromtime"),
    "s3-full-export": ("only item,typed item", "exportarn", "datafiles3key"),
    "table-scan": ("items,scannedcount",),
    "debezium": ("op,source.connector", "__op"),
    "wal2json": (
        "change.kind,change.table", "change.kind,change.prefix", "no change,only change", "no change,xid",
        "action=B,only action", "action=C,only action", "action,schema,table", "action,lsn", "action,xid",
    ),
    "maxwell": ("database,table,type,ts", "database,table,type,def"),
    "cloudwatch-events": ("events.timestamp,events.message", "events,searchedlogstreams", "events,nextforwardtoken"),
    "insights-results": ("results.field,results.value",),
}  # fmt: skip
_GROUPS = [(known, frozenset(group.split(","))) for known, groups in _SIGNS.items() for group in groups]


def _format(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {*history.NAMES}:
        return "history"
    objects = [_names(o) for o in _objects(value)]
    fitting = (known for known, group in _GROUPS for names in objects if group <= names)
    return next(fitting, "log-lines" if isinstance(value, dict) else "json-documents" if objects else "other")


def _of_text(text: str, lines: list[str]) -> Detected:
    """What a text is whose lines, or most of them, are not JSON."""
    json_ends = re.finditer(r"^[^\n{]*(\{.*\})[ \t\r\[\]]*$", text, re.MULTILINE)  # monolog ends with ` []`
    pairs = sum(len(re.findall(r"(?:^|\s)\w+=\S", line)) > 2 for line in lines[:10])
    signs = {
        "ion-export": text.startswith("$ion_1_0"),
        "athena-struct": re.search(r"\{\w+=\{\w+=", text),
        "csv": _has_header(text[: HEAD // 4]),
        "log-lines": any(isinstance(_value(end[1]), dict) for end in json_ends if end[1] != "{}"),
        "python-repr": re.search(r"\{'[^'\n]+': ", text),
        "logfmt": pairs * 2 > len(lines[:10]),
    }
    found = next((known for known, sign in signs.items() if sign), "other")
    return Detected(found, "csv" if found == "csv" else "lines")


def _has_header(text: str) -> bool:
    """Whether a first row of names is followed by rows of the same width."""
    for delimiter in ",;\t|":
        try:
            header, *body = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row][:20]
        except (csv.Error, ValueError):
            continue
        names = all(re.fullmatch(r"\s*(?:[^\W\d]|[@\ufffd])[\w\ufffd @.*/()#$-]*", name) for name in header)
        table = len(set(header)) == len(header) > 1 or header[0].startswith("@")
        if names and table and sum(len(row) == len(header) for row in body) * 2 >= len(body):
            return True
    return False
