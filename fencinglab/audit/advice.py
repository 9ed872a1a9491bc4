"""What to record so that an audit can decide: in the item, in a log line, and in an incident brief."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """What a history column needs so that a rule can decide: from a stream, and from a log line."""

    stream: str
    line: str  # a field's name, or a sentence


_PRESENTED = Field(
    "store the token and raise a version in every write: `SET writtenToken = :token ADD version :one`", "fencingToken"
)

# The one documented log record, and what to store in the item, per column that a rule may lack.
TO_RECORD = {
    "token": _PRESENTED,
    "fenced": _PRESENTED,
    "writer": Field("store who wrote: `SET writtenBy = :worker`", "worker"),
    "after_holder": Field("store the lease's owner: `leaseOwner`", "worker"),
    "before_holder": Field("choose NEW_AND_OLD_IMAGES for the stream, and store `leaseOwner`", "storedOwner"),
    "before_token": Field("choose NEW_AND_OLD_IMAGES for the stream", "storedToken"),
    "after_token": Field("store the token in the item: `ADD fencingToken :one` in the acquire", "fencingToken"),
    "current_token": Field(
        "keep lease and state in one item, or let the grant raise `fencingToken` in the protected item too, in one "
        "transaction",
        "currentToken",
    ),
    "after_terminal": Field("name the final statuses: `--terminal SUCCEEDED,FAILED`, or `--terminal none`", "status"),
    "status": Field(
        "no field is mapped as the status: `--map status=FIELD`, or `--terminal none` where nothing is final", "status"
    ),
    "before_terminal": Field("choose NEW_AND_OLD_IMAGES, and name the final statuses by --terminal", "storedStatus"),
    "before_expires_at": Field("store `leaseExpiresAt` in the item", "storedExpiresAt"),
    "after_expires_at": Field("store `leaseExpiresAt` in the item", "leaseExpiresAt"),
    "order_key": Field("keep `dynamodb.SequenceNumber` of each record as text", "sequence"),
    "record": Field(
        "store each operation's id in the item, `SET operationId = :operation`: a line with that id and its resource "
        "as table/key finds its record",
        "log `operationId` with every attempt: a line that logs what its write stored finds its record",
    ),
    "one_order": Field(
        "audit the files of one stream at a time: each table's label and region has an order of its own",
        "audit the files of one log at a time, or map an order that all of them share: --map order_key=FIELD",
    ),
    "operation": Field("store the id of each operation: `SET operationId = :operation`", "operationId"),
    "alert": Field("store the alert's id: `SET alertId = :alert`", "alertId"),
    "decision": Field(
        "log in the workers what came of each write",
        "log what the receiver decided as `decision`, after a lost reply by reading the item back, or map it: "
        "--map decision=FIELD",
    ),
    "identity": Field(
        "let each grant raise a number, `ADD fencingToken :one`, and store it in every write: identities order nothing",
        "let each grant raise a number and log that as `fencingToken`: identities order nothing",
    ),
    "outcome": Field("a stream holds no refusals: log them in the worker", "decision"),
    "reason": Field("a stream holds no refusals: log them in the worker", "reason"),
    "before_image": Field("choose NEW_AND_OLD_IMAGES for the stream", "only a stream with NEW_AND_OLD_IMAGES shows it"),
    "after_image": Field("choose NEW_AND_OLD_IMAGES for the stream", "only a stream with NEW_AND_OLD_IMAGES shows it"),
    "at": Field("keep `ApproximateCreationDateTime`", "time"),
    "lease": Field("map the key whose grants issue the token: `--map lease=…`", "lease"),
    "fell": Field("name fields that may only rise: `--rising attempt,terminalVersion`", "(declare --rising)"),
    "expiry_unit": Field("store `leaseExpiresAt` in the item", "leaseExpiresAt"),
    "token_width": Field("store the token in the item as a number", "(a log's quotes prove nothing)"),
}  # fmt: skip

# The one log record that answers every core rule, one line an attempted mutation, written when the reply is known.
RECORD = (
    ("time", "when the reply came, UTC, milliseconds"),
    ("resource", "what was written: table and key"),
    ("action", "acquire, renew, write, finish, release, …"),
    ("worker", "who asked"),
    ("fencingToken", "the token that the request carried in its condition"),
    ("operationId", "a new id for each operation, kept when it is retried"),
    ("decision", "accepted, rejected (the condition failed) or unknown (no reply)"),
    ("storedToken", "of a refusal: the token in the item that came back (ALL_OLD)"),
    ("storedOwner", "of a refusal: the owner in that item"),
    ("status", "of an accepted write: the status afterwards"),
    ("version", "of an accepted write: the item's version, which is its place in the order: `--map order_key=version`"),
)
SNIPPETS = {
    "python": """log.info(json.dumps({"time": now(), "resource": f"request-status/{request_id}", "action": "finish",
    "worker": worker, "fencingToken": token, "operationId": operation_id, "decision": decision,
    "storedToken": stored.get("fencingToken"), "storedOwner": stored.get("leaseOwner"),
    "status": item.get("apiStatus"), "version": item.get("version")}, default=str))""",
    "javascript": """console.log(JSON.stringify({
  time: new Date().toISOString(), resource: `request-status/${requestId}`,
  action: "finish", worker, fencingToken: String(token), operationId, decision,
  storedToken: stored?.fencingToken, storedOwner: stored?.leaseOwner,
  status: item?.apiStatus, version: item?.version}));""",
    "php": """error_log(json_encode(['time' => gmdate('Y-m-d\\TH:i:s\\Z'), 'resource' => "request-status/$requestId",
  'action' => 'finish', 'worker' => $worker, 'fencingToken' => (string) $token, 'operationId' => $operationId,
  'decision' => $decision,
  'storedToken' => $stored['fencingToken'] ?? null, 'storedOwner' => $stored['leaseOwner'] ?? null,
  'status' => $item['apiStatus'] ?? null, 'version' => $item['version'] ?? null]));""",
}

# Everything that can poll or finish one request (the request-status article's list), and how its name may show.
PROCESSES = {
    "WordPress cron": "wp.?cron", "Action Scheduler": "action.?scheduler", "system cron": "(^|/|system.?)cron",
    "queue workers": "queue|worker|sqs", "Lambda": "lambda", "deployment recovery": "deploy|recover",
    "dead-letter replay": "dead.?letter|dlq|replay", "support tools": "support|admin|manual",
}  # fmt: skip
