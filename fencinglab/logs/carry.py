"""What the receiver held before a row, from earlier rows of the same log where the row does not say it."""

from __future__ import annotations

# What a row leaves behind in `after_*` until a later row says something else.
_KEPT = ("token", "holder", "status", "terminal", "terminal_version", "version", "value")


def carry(rows: str, *, deletes: bool = True, leases: bool = True) -> str:
    """SQL: the history rows of `rows`, with `before_*` filled from the last accepted earlier row that said it.

    Earlier means lower in `order_key` within one resource and order scope; what a row says itself stays, and
    rows without order stay as they are. A new holder or a release forgets the old expiry, an accepted delete
    everything. `current_token` becomes the highest token of the lease's earlier accepted grants (where the
    resource is its own lease, since its last delete). A release that nothing else explains is the holder's.

    To say that there are no accepted deletes, or that every resource is its own lease, saves a sort each.
    """
    source, life = f"({rows})", ""
    if deletes:
        life = ", lives"
        source = f"""(select *, count(case when decision = 'accepted' and kind in ('delete', 'ttl_delete') then 1 end)
            over {_earlier("resource, order_scope")} as lives from ({rows}))"""
    kept = ", ".join(f"coalesce(before_{name}, {_last(f'after_{name}')}) as before_{name}" for name in _KEPT if name != "holder")
    expiry = "case when decision = 'accepted' and (after_expires_at is not null or after_holder is not null) then struct_pack(t := after_expires_at) end"
    granted = "max(case when decision = 'accepted' and kind = 'grant' then coalesce(after_token, token) end)"
    if leases:
        own = f", case when lease = resource then resource end{life and ', case when lease = resource then lives end'}"
        granted += f" over {_earlier(f'coalesce(lease, resource), order_scope{own}')}"
    else:
        granted += " over earlier"
    return f"""
        select * {"exclude (lives)" if deletes else ""} replace (
            {kept},
            coalesce(before_holder, {_last("after_holder")}, case when kind = 'release' then writer end) as before_holder,
            coalesce(before_expires_at, case when order_key is not null then (last_value({expiry} ignore nulls) over earlier).t end)
                as before_expires_at,
            coalesce(current_token, case when order_key is not null then {granted} end) as current_token
        )
        from {source} window earlier as {_earlier("resource, order_scope" + life)}"""


def _last(column: str) -> str:
    """SQL: the column in the last accepted earlier row where it is known."""
    said = f"case when decision = 'accepted' then {column} end"
    return f"case when order_key is not null then last_value({said} ignore nulls) over earlier end"


def _earlier(rows_of: str) -> str:
    return f"(partition by {rows_of} order by order_key, source rows between unbounded preceding and 1 preceding)"
