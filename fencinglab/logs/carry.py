"""What the receiver held before a row, from earlier rows of the same log where the row does not say it."""

from __future__ import annotations

from collections.abc import Collection

# What a row leaves behind in `after_*`, until a later row says something else.
_OF_LEASE = ("token", "holder")  # tokens and holders compare only within one lease
_KEPT = ("token", "holder", "status", "terminal", "terminal_version", "version", "value")


def carry(rows: str, known: Collection[str], *, deletes: bool = True, leases: bool = True) -> str:
    """SQL: the columns `known` of the history rows, with `before_*` filled from the last earlier row that said it.

    Earlier means accepted, and lower in `order_key` within one resource and order scope. What a row says
    itself stays, and rows without order stay as they are. A new holder or a release forgets the old expiry,
    an accepted delete everything, and who holds until when is not known to another writer with a greater token
    than the last one granted. `current_token` becomes the highest token of the lease's earlier grants, since
    the last delete of its key. A release that nothing else explains was the holder's.

    It costs less the fewer columns are `known` (leave out those that are null throughout), and without
    accepted `deletes` or `leases` that are not the resource.
    """
    lease = "of_lease" if leases else "earlier"
    made = {
        f"before_{name}": _last(f"after_{name}", f"after_{name} is not null", lease if name in _OF_LEASE else "earlier")
        for name in _KEPT
        if f"after_{name}" in known
    }
    if "after_expires_at" in known:
        news = " or ".join(f"{name} is not null" for name in ("after_expires_at", "after_holder") if name in known)
        made["before_expires_at"] = _last("after_expires_at", news, lease)
    if "token" in known:
        granted = "max(case when decision = 'accepted' and kind = 'grant' then token end)"
        made["current_token"] = f"{granted} over earlier"
        if leases:  # a grant of another key stands with that key, or with what it protects
            of_key = _earlier("lease, order_scope" + (", lease_lives" if deletes else ""))
            made["current_token"] = (
                f"case when lease = resource then {granted} over of_lease else {granted} over {of_key} end"
            )
    if {"token", "writer", "after_token", "after_holder"} <= set(known):  # above the last grant's: of a grant unseen
        last, held = made["before_token"], made["before_holder"]
        unseen = f"kind <> 'grant' and token > {last} and writer is distinct from {held}"
        for name in made.keys() & {"before_holder", "before_expires_at"}:
            made[name] = f"case when not coalesce({unseen}, false) then {made[name]} end"
    made = {name: f"case when order_key is not null then {sql} end" for name, sql in made.items()}
    for name in made.keys() & known:
        made[name] = f"coalesce({name}, {made[name]})"
    if "writer" in known:
        held = made.get("before_holder", "before_holder" if "before_holder" in known else "null")
        made["before_holder"] = f"coalesce({held}, case when kind = 'release' then writer end)"
    selected = [f'"{name}"' for name in known if name not in made] + [f"{sql} as {name}" for name, sql in made.items()]
    if deletes:
        deleted = "case when decision = 'accepted' and kind in ('delete', 'ttl_delete') then 1 end"
        lives = f"count({deleted}) over {_earlier('resource, order_scope')} as lives"
        if leases:
            of_key = f"count(case when lease = resource then {deleted} end)"
            lives += f", {of_key} over {_earlier('lease, order_scope')} as lease_lives"
        rows = f"select *, {lives} from ({rows})"
    return f"""select {", ".join(selected)} from ({rows})
        window earlier as {_earlier("resource, order_scope" + (", lives" if deletes else ""))},
            of_lease as {_earlier("resource, lease, order_scope" + (", lives" if deletes else ""))}"""


def _last(column: str, news: str, window: str) -> str:
    """SQL: the column in the last earlier row that has news of it, which may be that it is not known any more."""
    if news == f"{column} is not null":
        return f"last_value(case when decision = 'accepted' then {column} end ignore nulls) over {window}"
    told = f"case when decision = 'accepted' and ({news}) then struct_pack(v := {column}) end"
    return f"(last_value({told} ignore nulls) over {window}).v"


def _earlier(of: str) -> str:
    return f"(partition by {of} order by order_key, source rows between unbounded preceding and 1 preceding)"
