"""DynamoDB Streams records as history rows.

A stream holds accepted writes with their images; it holds no refused write, no write that changed
nothing, no writer and no condition. The token in an item's image is the *item's*: which token a
mutation presented is known only where this mutation stored it (`written_token`, or a `version` that
every mutation raises). Order is the sequence number, per item, within one stream label.

A look at a sample says which attributes there are; the images are then read as structs of them. One
record a line is read by a fast path; lines that it does not understand, and every other wrapping, by a
general one. `streams.sql` says what a record means.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import TYPE_CHECKING

from fencinglab import history
from fencinglab.logs import unwrap
from fencinglab.logs.images import TOKENS, Item
from fencinglab.logs.inputs import KEPT, File
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.sample import Look

if TYPE_CHECKING:
    import duckdb

NEVER = frozenset({"reason", "outcome", "sent_at", "current_token"})
_AFTER = frozenset({
    "writer", "token", "fenced", "protected", "operation", "alert", "fell", "token_width", "expiry_unit",
    "after_token", "after_holder", "after_expires_at", "after_status", "after_terminal", "after_terminal_version",
    "after_version", "after_value", "after_image",
})  # fmt: skip
NEVER_IN = {  # a stream of one view only
    "NEW_AND_OLD_IMAGES": frozenset[str](), "NEW_IMAGE": frozenset({"before_image"}), "OLD_IMAGE": _AFTER,
    "KEYS_ONLY": _AFTER | {name.replace("after", "before") for name in _AFTER if name.startswith("after")},
}  # fmt: skip
STREAMS_SQL = resources("fencinglab.logs").joinpath("streams.sql").read_text(encoding="utf-8")
_SCALARS = (
    "token", "written_token", "writer", "holder", "expires_at", "status", "terminal_version", "version", "operation",
    "alert",
)  # fmt: skip
_SIDES = (("before", "was"), ("after", "now"))


def read(
    con: duckdb.DuckDBPyConnection,
    lines: Sequence[File],
    documents: Sequence[File],
    spec: MappingSpec,
    seen: Look,
    key: str,
    work: Path,
) -> None:
    """Fill the tables `stream` and `unread`; `key` keys the value hashes, duplicates are still in.

    `stream` holds history rows with `event_id` and `fault` (why the row cannot be used, or null). Its
    `source` is the path; `places.find` gives the line of the rows that are shown. `unread` holds
    (path, line, index, reason, raw) of values that are no record at all; the line is null in documents.
    """
    mapped = {
        "terminal": f"[{', '.join(map(unwrap.text, spec.terminal))}]::varchar[]"
        if spec.terminal
        else "null::varchar[]",
        "leased": str(bool(spec.get("holder") or spec.get("expires_at"))),
        "holder": str(bool(spec.get("holder"))),
        "token": str(bool(spec.get("token"))),
        "version": str(bool(spec.get("version"))),
    } | {
        f"{role}_fault": unwrap.text(f"{spec.get(role)} is not a whole number of at most {history.TOKEN_DIGITS} digits")
        for role in TOKENS
    }
    con.execute(f"create or replace temp table mapped as select {', '.join(f'{v} as {k}' for k, v in mapped.items())}")
    made = _made(spec)
    con.execute(history.table("stream", made, "event_id varchar", "fault varchar"))
    con.execute("""create or replace temp table unread
        (path varchar, line bigint, index bigint, reason varchar, raw varchar)""")
    stored = ", ".join(f'"{name}"' for name in (*(n for n in history.NAMES if n not in made), "event_id", "fault"))

    def insert(records: str, item: Item) -> None:
        changes = f"({_changes(records, spec, seen, item, key)}) as changes"
        rows = STREAMS_SQL.replace("from changes", f"from {changes}", 1)
        con.execute(f"insert into stream by name select {stored} from ({rows})")

    item = Item(spec, seen)
    for each in (item, item.of_any_type()) if lines else ():
        columns = ", ".join(f"{unwrap.text(name)}: {unwrap.text(of)}" for name, of in each.record().items())
        insert(
            f"""select filename as path, * exclude (filename) from read_json({unwrap.paths(lines)}, filename = true,
            columns = {{{columns}}}, format = 'newline_delimited', records = 'true', ignore_errors = true)""",
            each,
        )
        strange = [p for (p,) in con.execute("select distinct source from stream where resource is null").fetchall()]
        con.execute("delete from stream where source in (select unnest(?::varchar[]))", [strange])
        lines = [f for f in lines if str(f.path) in strange]
        if not lines:
            break
    item = item.of_any_type()
    members = ", ".join(f"{unwrap.identifier(name)} {of}" for name, of in item.record().items())
    for files, by_line in ((lines, True), (documents, False)):
        if not files:
            continue
        entries = unwrap.text_lines(files, work) if by_line else unwrap.documents(files)
        broken = unwrap.mend(con, files, work) if by_line else ""
        if broken:
            entries = f"(select * from {entries} where value is not null union all select * from {broken})"
        con.execute(f"create or replace temp table opened as select * from {unwrap.records(entries)}")
        con.execute(f"""create or replace temp table shaped as
            select *, try_cast(record as struct({members})) as shape from opened""")
        insert("select path, unnest(shape) from shaped", item)
        con.execute("delete from stream where resource is null")
        if broken:
            con.execute(f"""insert into unread select path, line, null, '{unwrap.BROKEN}', raw
                from {broken} where value is null""")
        keys = f"$.dynamodb.{seen.spelled('Keys')}"
        con.execute(f"""insert into unread select path, line, case when siblings > 1 then index end,
                case when json_type(record, '$.dynamodb') = 'OBJECT'
                    then 'no stream record of the shape that the others have' else 'no stream record' end,
                left(record::varchar, {KEPT})
            from shaped where shape is null or key_text(record->'{keys}') is null""")


def grants_without_version(con: duckdb.DuckDBPyConnection) -> int:
    """How many grants in the table `stream` left the version as it was; of such a log no row is known to be unfenced.

    A version that not every mutation raises does not tell a write that stored nothing from one that raised nothing.
    """
    [(count,)] = con.execute(
        "select count(*) from stream where kind = 'grant' and after_version = before_version"
    ).fetchall()
    if count:
        con.execute("update stream set fenced = null where not fenced")
    return int(count)


def _made(spec: MappingSpec) -> dict[str, str]:
    """{column: SQL} of what needs no room: what a stream never shows, what is not mapped, and what follows."""
    made = dict.fromkeys(NEVER, "null") | {"lease": "resource", "decision": "'accepted'"}
    for name in ("expires_at", "status", "terminal_version", "version", "value", "operation", "alert"):
        if not spec.get(name):
            made |= {column: "null" for column in (name, f"before_{name}", f"after_{name}") if column in history.NAMES}
    if not spec.terminal:
        made |= {"before_terminal": "null", "after_terminal": "null"}
    return made if spec.rising else made | {"fell": "null"}


def _changes(records: str, spec: MappingSpec, seen: Look, item: Item, key: str) -> str:
    """SQL: the relation `changes` of streams.sql, of the records that the SQL text `records` gives."""
    fields = dict(spec.fields)
    # An item with neither holder nor expiry has no grants: its token is the mark that each write stores.
    if not (spec.get("holder") or spec.get("expires_at")) and spec.get("token"):
        fields.setdefault("written_token", fields["token"])
    sides = ", ".join(
        [f"{item.scalar(fields.get(name), image)} as {side}_{name}" for side, image in _SIDES for name in _SCALARS]
        + [f"{item.hashed(spec.names('value'), image, key)} as {side}_value" for side, image in _SIDES]
    )
    # Without old images the previous new image of the item stands in, redelivered records apart.
    previous = (
        "last_value(now) over (partition by stream, resource order by lpad(sequence, 40, '0') "
        "rows between unbounded preceding and current row exclude group)"
    )
    was = "old"
    if "NEW_IMAGE" in seen.views:
        was = f"case when event_name <> 'INSERT' then coalesce(old, {previous}) end"
    # The images' hashes stand outside of `case`, within which DuckDB shares no expressions: three times the cost.
    return f"""select path, event_id, event_name, by_service, resource, stream, sequence, created,
            {item.image("old")} as before_hash, {item.image("now")} as after_hash,
            old is not null as was_there, now is not null as is_there,
            event_name = 'INSERT' or was is not null as before_known,
            event_name = 'REMOVE' or now is not null as after_known,
            {sides}, {item.changed(spec.names("next_poll"))} as next_poll_changed,
            {item.changed(spec.protect)} as other_protected_changed,
            {item.fell(spec.rising)} as fell, {item.width(spec.get("token"))} as token_width,
            {item.there(spec.get("token"))} as token_there,
            {item.there(fields.get("written_token"))} as written_token_there, {item.fault()} as fault
        from (select *, {was} as was from (
            select * replace (coalesce(stream, 'unnamed stream') as stream),
                case when not coalesce({item.odd()}, false)
                    then coalesce(substr(stream, 1, instr(stream, '/')), '') || {_key(seen)} end as resource
            from (select path, coalesce(eventID, d.SequenceNumber) as event_id, eventName as event_name,
                coalesce(contains(userIdentity, 'dynamodb.amazonaws.com'), false) as by_service,
                substr(eventSourceARN, nullif(instr(eventSourceARN, ':table/'), 0) + 7) as stream,
                d.Keys as keys, d.SequenceNumber as sequence, d.ApproximateCreationDateTime as created,
                d.NewImage as now, d.OldImage as old
            from (select * exclude (dynamodb), dynamodb as d from ({records})))))"""


def _key(seen: Look) -> str:
    """SQL: the text of the key in `keys`, by plain cutting where it is one simple text."""
    cut = "".join(
        f"when starts_with(keys, {unwrap.text(b)}) then substr(keys, {len(b) + 1}, length(keys) - {len(b) + 3}) "
        for b in seen.keys
    )
    odd = " or ".join(f"contains(keys, {mark})" for mark in ("chr(92)", "'\"},\"'", "'|'"))
    return f"case when {odd} then key_text(keys) {cut}else key_text(keys) end"
