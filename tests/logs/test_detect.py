"""What a log holds is told from its content: every known format, every real sample, every refusal."""

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from fencinglab import history
from fencinglab.errors import InputError, UsageError
from fencinglab.logs import detect
from fencinglab.logs.detect import FORMATS, HEAD, NOT_READ, Detected, named, refuse, sniff, taken_as

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"

RECORD = {
    "eventID": "e1",
    "eventName": "MODIFY",
    "eventSource": "aws:dynamodb",
    "dynamodb": {"Keys": {"pk": {"S": "a"}}, "NewImage": {"pk": {"S": "a"}}, "SequenceNumber": "111"},
    "eventSourceARN": "arn:aws:dynamodb:eu-west-1:111122223333:table/Jobs/stream/2026-11-29T00:00:00.000",
}
BARE = {"eventID": "e1", "dynamodb": RECORD["dynamodb"]}
KINESIS = {**RECORD, "recordFormat": "application/json", "tableName": "Jobs", "dynamodb": {"Keys": {"pk": {"S": "a"}}}}
LINE = {"time": "2026-11-29T14:00:00Z", "job": "a", "worker": "w1", "fencingToken": 41}
ENVELOPE = {"kinesis": {"data": "eyJhIjogMX0=", "sequenceNumber": "4959"}, "eventSource": "aws:kinesis"}


def of(*values, between="\n", indent=None):
    """The format and shape of JSON values one after another."""
    return sniff(between.join(json.dumps(value, indent=indent) for value in values).encode())


def lower(value):
    """The value with every key in lower case, as Athena and Glue give it."""
    if isinstance(value, dict):
        return {key.lower(): lower(inner) for key, inner in value.items()}
    return [lower(one) for one in value] if isinstance(value, list) else value


SAMPLE_FORMATS = {
    "cloudtrail/*.json": "cloudtrail",
    "debezium/*.jsonl": "debezium",
    "firehose/kyopark_concatenated_s3_object.json": "kinesis-dynamodb",
    "firehose/*_kinesis-firehose-event.json": "kinesis-envelope",
    "firehose/powertools_*.json": "kinesis-envelope",
    "full-export/**/manifest-*.json": "s3-full-export",
    "full-export/**/_started": "empty",
    "full-export/**/*.md5": "other",
    "full-export/**/nb2ssxy7*.gz": "empty",
    "full-export/**/om5xbquz*.gz": "s3-full-export",
    "full-export/**/pkxc7dy3*.gz": "empty",
    "full-export/**/vajn3dei*.gz": "s3-full-export",
    "incremental-export/*": "s3-incremental-export",
    "kinesis/*kds*": "kinesis-dynamodb",
    "kinesis/*-event.json": "kinesis-envelope",
    "kinesis/powertools_*.json": "kinesis-envelope",
    "maxwell/*.jsonl": "maxwell",
    "streams/ddb_test_*.json": "test-snapshot",
    "streams/getrecords_events_10.json": "dynamodb-stream",
    "streams/lambda-*.json": "dynamodb-stream",
    "streams/lambda_onfailure_s3_body.json": "dynamodb-stream",
    "streams/lambda_onfailure_sqs_messages.json": "failure-destination",
    "streams/powertools_dynamoStreamEvent.json": "dynamodb-stream",
    "wal2json/*.jsonl": "wal2json",
    "SOURCES.md": "other",
}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not part of a checkout")
@pytest.mark.parametrize(("pattern", "expected"), SAMPLE_FORMATS.items())
def test_samples_are_recognised(pattern, expected):
    """Every real or vendor-written sample is recognised for what it is."""
    found = {}
    for path in SAMPLES.glob(pattern):
        content = path.read_bytes()
        found[path.name] = sniff(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).format

    assert found
    assert set(found.values()) == {expected}, found


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not part of a checkout")
def test_every_sample_is_in_the_table():
    """No sample is left out of the table above."""
    named_ = {path for pattern in SAMPLE_FORMATS for path in SAMPLES.glob(pattern)}

    assert {path for path in SAMPLES.rglob("*") if path.is_file()} == named_


STREAMS = {
    "lambda event": [{"Records": [RECORD, RECORD]}],
    "events, one a line": [{"Records": [RECORD]}, {"Records": [RECORD]}],
    "bare array": [[RECORD, RECORD]],
    "bare record": [RECORD],
    "get-records": [{"Records": [BARE], "NextShardIterator": "AAAA"}],
    "get-records that found nothing": [{"Records": [], "NextShardIterator": "AAAA"}, {"Records": []}],
    "time window": [{"Records": [RECORD], "window": {"start": "", "end": ""}, "state": {}, "shardId": "s"}],
    "failure destination": [{"DDBStreamBatchInfo": {}, "payload": {"Records": [RECORD]}}],
    "event bus": [{"detail-type": "x", "detail": RECORD}],
    "keys only": [{"dynamodb": {"Keys": {"pk": {"S": "a"}}}}],
    "time to live": [{**RECORD, "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}}],
}


@pytest.mark.parametrize("values", STREAMS.values(), ids=STREAMS)
def test_trap_09_wrappings_of_a_stream(values):
    """A stream is recognised in each wrapping, one value a line, pretty-printed and concatenated."""
    assert of(*values) == Detected("dynamodb-stream", "lines")
    assert of(*values, indent=2) == Detected("dynamodb-stream", "documents")
    assert of(*values, *values, between="") == Detected("dynamodb-stream", "documents")
    assert of(*values, *values, between=" ", indent=4) == Detected("dynamodb-stream", "documents")


def test_trap_09_an_array_over_lines_is_a_document():
    """An array with a record a line is a document: its lines end with commas."""
    text = "[\n" + ",\n".join([json.dumps(RECORD)] * 20) + "\n]\n"

    assert sniff(text.encode()) == Detected("dynamodb-stream", "documents")


def test_trap_10_json_inside_strings():
    """A stream is recognised in JSON text inside a body, a payload or a message, also twice over."""
    event = json.dumps({"Records": [RECORD]})

    assert of({"body": event}).format == "dynamodb-stream"
    assert of({"Messages": [{"Body": event, "MessageId": "m"}]}).format == "dynamodb-stream"
    assert of({"payload": json.dumps({"Records": [RECORD]})}).format == "dynamodb-stream"
    assert of({"Messages": [{"Body": json.dumps({"Message": event, "TopicArn": "t"})}]}).format == "dynamodb-stream"
    assert of({**RECORD, "dynamodb": json.dumps(RECORD["dynamodb"]), "eventSource": None}).format == "dynamodb-stream"


def test_trap_11_base64_is_recognised_not_opened():
    """Envelopes with base64 data are named as such, whatever is inside."""
    firehose = {"deliveryStreamArn": "arn", "records": [{"recordId": "r", "data": "H4sIAAAA"}]}

    assert of({"Records": [ENVELOPE]}, indent=1).format == "kinesis-envelope"
    assert of(ENVELOPE, ENVELOPE).format == "kinesis-envelope"
    assert of(firehose).format == "kinesis-envelope"


def test_trap_13_marks_and_line_ends():
    """A byte order mark, CR LF and a line separator inside a string change nothing."""
    text = json.dumps({**LINE, "note": "a\u2028b"}, ensure_ascii=False)

    assert sniff(f"\ufeff\r\n{text}\r\n{text}".encode()) == Detected("log-lines", "lines")


@pytest.mark.parametrize("record", [RECORD, BARE, KINESIS, {"Records": [RECORD]}, {"Records": [ENVELOPE]}], ids=str)
def test_trap_16_keys_in_lower_case(record):
    """Athena's lower-case keys are recognised like the original ones."""
    assert of(lower(record)).format == of(record).format


@pytest.mark.parametrize(
    "text",
    [
        "{pk={s=a}, fencingtoken={n=41}}\n",
        'eventid,dynamodb\n"e1","{keys={pk={s=a}}, newimage={pk={s=a}}}"\n',
        '"eventid"\t"dynamodb"\n"e1"\t"{approximatecreationdatetime=1, keys={pk={s=a}}}"\n',
    ],
)
def test_trap_17_struct_text_is_not_json(text):
    """Athena's struct text is recognised alone and in a CSV."""
    assert sniff(text.encode()).format == "athena-struct"


CSVS = {
    "logs insights": '@timestamp,@message\n2026-11-29 14:00:00.123,"{""job"": ""a"",\n""token"": 41}"\n',
    "one column": '@message\n"{""job"": ""a""}"\n"{""job"": ""b""}"\n',
    "semicolons": "time;job;token;note\n2026-11-29T14:00:00Z;a;1.234;b,c\n2026-11-29T14:00:01Z;a;41;\n",
    "tabs": "time\tjob\ttoken\n1\ta\t41\n",
    "quoted names": '"job id";"fencing token"\n"a";"41"\n',
    "embedded line ends": 'job,note\na,"one\ntwo\n\nthree"\nb,""\n',
    "a header only": "time,job,token\n",
    "a broken row": "time,job,token\n1,a,41\n1,a\n1,a,42\n",
    "CR LF and a mark": "\ufefftime,job,token\r\n1,a,41\r\n",
}


@pytest.mark.parametrize("text", CSVS.values(), ids=CSVS)
def test_trap_26_tables_of_text(text):
    """A header and rows of its width are a CSV, with any separator and line ends inside quotes."""
    assert sniff(text.encode()) == Detected("csv", "csv")


LINES = {
    "json": json.dumps(LINE),
    "nested": json.dumps({"ctx": {"a": [1, {"b": 2}]}, "msg": "x"}),
    "cloudwatch export": f"2026-11-29T14:00:00.123Z {json.dumps(LINE)}",
    "lambda text": f"START RequestId: 8f5\n2026-11-29T14:00:00.123Z\t8f5\tINFO\t{json.dumps(LINE)}\nEND RequestId: 8f5",
    "python logging": f"2026-11-29 14:00:00,123 INFO worker {json.dumps(LINE)}",
    "bracketed": f"[2026-11-29 14:00:00] {json.dumps(LINE)}",
    "monolog": f"[2026-11-29T14:00:00.123456+00:00] worker.INFO: saved {json.dumps(LINE)} []",
    "late": "hello\n" * 50 + json.dumps(LINE),
    "rotated in a line": '"w1", "token": 41}\n' + "\n".join([json.dumps(LINE)] * 3),
    "cut first line": '{"job": "a", "wor\n' + "\n".join([json.dumps(LINE)] * 3),
    "mostly json": "\n".join([json.dumps(LINE)] * 3 + ["Traceback (most recent call last):"]),
    "not a number": '{"job": "a", "token": NaN, "job": "b"}',
    "an action of its own": json.dumps({"action": "B", "worker": "w1"}),
    "an item among others": json.dumps({"item": {"id": 1}, "worker": "w1"}),
    "a message about events": json.dumps({"message": "got events", "events": 3}),
    "words of other formats in a payload": json.dumps(
        {"payload": {"action": "acquire"}, "records": [], "body": {"item": {"id": 1}}, "change": [], "op": "c"}
    ),
    "a list with its count": json.dumps({"detail": {"items": [{"id": 1}], "count": 1}, "change": {"kind": "x"}}),
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_application_logs(text):
    """JSON lines of any shape, and text lines that hold JSON, are log lines."""
    assert sniff(f"{text}\n{text}\n".encode()) == Detected("log-lines", "lines")


def test_log_objects_that_are_no_lines():
    """Log objects that are pretty-printed, concatenated or in an array are not lines, and told so."""
    assert of(LINE, LINE, indent=2).format == "json-documents"
    assert of(LINE, LINE, between="").format == "json-documents"
    assert of([LINE, LINE], indent=2).format == "json-documents"
    assert of([LINE, LINE], [LINE]).format == "json-documents"


KNOWN = {
    "kinesis-dynamodb": json.dumps(KINESIS),
    "cloudtrail": json.dumps({"Events": [{"EventId": "1", "CloudTrailEvent": "{}"}], "CloudTrailEvent": "{}"}),
    "s3-full-export": json.dumps({"Item": {"pk": {"S": "a"}}}),
    "s3-incremental-export": json.dumps({"Metadata": {"WriteTimestampMicros": {"N": "1"}}, "Keys": {}}),
    "ion-export": "$ion_1_0 {Item:{Id:103.}}",
    "table-scan": json.dumps({"Items": [{"pk": {"S": "a"}}], "Count": 1, "ScannedCount": 1}),
    "debezium": json.dumps({"before": None, "after": {}, "source": {"connector": "mysql"}, "op": "c"}),
    "wal2json": '{"action":"B"}\n' + json.dumps({"action": "I", "schema": "public", "table": "t", "columns": []}),
    "maxwell": json.dumps({"database": "d", "table": "t", "type": "insert", "ts": 1, "data": {}}),
    "failure-destination": json.dumps({"requestContext": {}, "DDBStreamBatchInfo": {"batchSize": 1}}),
    "test-snapshot": json.dumps({"recorded-date": "", "recorded-content": {"get-records": {"Records": [RECORD]}}}),
    "cloudwatch-events": json.dumps({"events": [{"timestamp": 1, "message": "{}", "eventId": "1"}]}),
    "cloudwatch-subscription": json.dumps({"messageType": "DATA_MESSAGE", "logEvents": [{"message": "{}"}]}),
    "insights-results": json.dumps({"results": [[{"field": "@message", "value": "{}"}]], "status": "Complete"}),
    "python-repr": "{'eventID': 'e1', 'dynamodb': {'Keys': {}}}",
    "logfmt": "time=2026-11-29T14:00:00Z level=info job=a token=41",
    "kinesis-envelope": json.dumps({"Records": [ENVELOPE]}),
    "athena-struct": "{pk={s=a}}",
    "json-documents": json.dumps([LINE], indent=1),
    "other": "three words only",
}


def test_every_format_that_is_not_read_has_an_example():
    """Each refusal below is provoked."""
    assert set(KNOWN) == set(NOT_READ)


@pytest.mark.parametrize("known", NOT_READ)
def test_formats_that_are_not_read(known):
    """A known format is recognised and refused in one sentence with the file, what it could show and what to give."""
    found = sniff(f"{KNOWN[known]}\n".encode())

    assert found.format == known
    sentence = str(refuse(found, "logs/a log.json"))
    assert sentence.startswith("logs/a log.json holds ")
    assert "; give " in sentence
    assert "LOG" not in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n\ufeff"[:4], "\ufeff", "\ufeff\n \n"])
def test_nothing_in_it(text):
    """A file of nothing or of white space only is empty, which is no fault."""
    assert sniff(text.encode()) == detect.EMPTY


@pytest.mark.parametrize(
    "text",
    [
        b"<html>no</html>", b"[1, 2, 3]", b"42", b'"text"', b"[" * 100_000, b'{"a":' * 100_000,
        b"\x89PNG\r\n\x1a\n\0\0", b"{", b"{" + b"9" * 10_000 + b"}", b'[{"a": ' + b"9" * 10_000 + b"}]",
        b"\0" * 300_000, b"\xff\xfe" * 9, b"a,a\n1,2\n", b'"' + b"x" * 300_000, b"x,y\r1,2\r3", b"a = {}\n",
    ],
    ids=range(16),
)  # fmt: skip
def test_other_things_do_no_harm(text):
    """Anything else has some name, and never raises, however deep or long."""
    assert sniff(text).format in {*NOT_READ, *FORMATS}


@pytest.mark.parametrize("cut", range(1, 800, 7))
def test_a_cut_document_is_told_by_its_beginning(cut):
    """A pretty-printed stream that ends anywhere after its first record began is a stream."""
    text = json.dumps({"Records": [RECORD] * 3}, indent=2)
    begun = text.index("aws:dynamodb") + len('aws:dynamodb",')

    assert sniff(text[: begun + cut].encode()) == Detected("dynamodb-stream", "documents")


def test_a_broken_document_is_told_by_its_beginning():
    """A document with a fault in the middle is told by what stands before it."""
    text = json.dumps({"Records": [RECORD, RECORD]}, indent=2)
    middle = text.rindex('"eventName"')

    assert sniff((text[:middle] + "oops" + text[middle:]).encode()).format == "dynamodb-stream"


def test_long_first_lines(tmp_path):
    """A first line longer than the usual look is seen to its end, and tells lines from documents."""
    long = json.dumps({**RECORD, "note": "x" * 2 * HEAD})
    shapes = {}
    for name, text in {
        "lines": f"{long}\n{long}\n",
        "concatenated": long + long,
        "array": f"[{','.join([long] * 40)}]",
        "endless": '{"note": "' + "x" * 17_000_000,
    }.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        shapes[name] = detect.detect(path, name)

    assert shapes == {
        "lines": Detected("dynamodb-stream", "lines"),
        "concatenated": Detected("dynamodb-stream", "documents"),
        "array": Detected("dynamodb-stream", "documents"),
        "endless": Detected("log-lines", "lines"),
    }


def test_parquet_tables(tmp_path):
    """Parquet with history columns only, and a resource, is a history; any other is a table."""
    con = duckdb.connect()
    con.execute(f"copy (select 'a' as resource, 41 as token) to '{tmp_path}/part' (format parquet)")
    con.execute(f"copy (select 'a' as resource, 41 as fencing) to '{tmp_path}/flat' (format parquet)")
    con.execute(f"copy (select 41 as token) to '{tmp_path}/bare' (format parquet)")
    every = history.select({"resource": "'a'"}, "range(1)")
    con.execute(f"copy ({every}) to '{tmp_path}/ours' (format parquet)")
    found = {name: detect.detect(tmp_path / name, name).format for name in ("ours", "part", "flat", "bare")}

    assert found == {"ours": "history", "part": "history", "flat": "table", "bare": "table"}


def test_a_history_in_json_lines():
    """JSON lines with all columns of the history and no other are a history; with fewer they are log lines."""
    whole = dict.fromkeys(history.NAMES, "1")

    assert sniff(json.dumps(whole).encode()) == Detected("history", "lines")
    for other in ({k: v for k, v in whole.items() if k != "fell"}, whole | {"more": 1}):
        assert sniff(json.dumps(other).encode()) == Detected("log-lines", "lines")


def test_parquet_without_its_end(tmp_path):
    """A Parquet file that was cut is an error that says so."""
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1" + b"\0" * 100)

    with pytest.raises(InputError, match=r"cut\.parquet begins like Parquet but cannot be opened \(.+\); was its end"):
        detect.detect(path, "cut.parquet")


def test_named_formats():
    """`--format` takes the names of the formats that are read, and any other is answered with the list."""
    assert [named(name) for name in FORMATS] == list(FORMATS)
    with pytest.raises(
        UsageError, match=r"--format dynamodb-streams: no such format \(nearest: dynamodb-stream\); allowed: dy"
    ):
        named("dynamodb-streams")
    with pytest.raises(
        UsageError, match="--format cloudtrail: CloudTrail events cannot be read; allowed: dynamodb-stream, log"
    ):
        named("cloudtrail")


def test_a_format_that_the_user_says():
    """The user's word replaces the format, keeps the shape where it can, and cannot turn text into Parquet."""
    assert taken_as(Detected("other", "lines"), "log-lines", "x") == Detected("log-lines", "lines")
    assert taken_as(Detected("log-lines", "lines"), "csv", "x") == Detected("csv", "csv")
    assert taken_as(Detected("csv", "csv"), "log-lines", "x") == Detected("log-lines", "lines")
    assert taken_as(Detected("json-documents", "documents"), "dynamodb-stream", "x").shape == "documents"
    assert taken_as(Detected("json-documents", "documents"), "log-lines", "x").shape == "lines"
    assert taken_as(Detected("history", "parquet"), "table", "x") == Detected("table", "parquet")
    assert taken_as(Detected("history", "lines"), "history", "x") == Detected("history", "lines")
    assert taken_as(Detected("history", "lines"), "log-lines", "x") == Detected("log-lines", "lines")
    assert taken_as(detect.EMPTY, "csv", "x") == detect.EMPTY
    with pytest.raises(
        InputError, match="x is text, which --format history cannot read; allowed: dynamodb-stream, log-lin"
    ):
        taken_as(Detected("log-lines", "lines"), "history", "x")
    with pytest.raises(InputError, match="x is Parquet, which --format csv cannot read; allowed: history, table"):
        taken_as(Detected("table", "parquet"), "csv", "x")
