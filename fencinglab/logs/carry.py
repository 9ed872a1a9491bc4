"""What the receiver held before a row, from earlier rows of the same log where the row does not say it."""

from __future__ import annotations

# What a row leaves behind, and the columns of the next row that it fills.
_KEPT = ("token", "status", "terminal", "terminal_version", "version", "value")


def carry(rows: str) -> str:
    """SQL: the history rows of `rows` with `before_*` filled from the last accepted earlier row that said it.

    Earlier means lower in `order_key` within one resource and order scope; rows without order keep what
    they say. An accepted delete forgets everything; a new holder or a release forgets the old expiry.
    `current_token` becomes the highest token of the lease's earlier accepted grants (where a lease is the
    resource itself, since its last delete). A release that nothing else explains was made by the holder.
    """
    kept = ", ".join(f"coalesce(before_{name}, {_last(f'after_{name}')}) as before_{name}" for name in _KEPT)
    expiry = _last("after_expires_at", "after_expires_at is not null or after_holder is not null")
    granted = "max(case when decision = 'accepted' and kind = 'grant' then coalesce(after_token, token) end)"
    return f"""
        select * exclude (lives) replace (
            {kept},
            coalesce(before_holder, {_last("after_holder")}, case when kind = 'release' then writer end) as before_holder,
            coalesce(before_expires_at, {expiry}) as before_expires_at,
            coalesce(current_token, case when order_key is not null then {granted} over (
                partition by coalesce(lease, resource), order_scope, order_key is null, case when lease <> resource then 0 else lives end
                order by order_key, source rows between unbounded preceding and 1 preceding) end) as current_token
        )
        from (select *, count(case when decision = 'accepted' and kind in ('delete', 'ttl_delete') then 1 end) over earlier as lives
            from ({rows})
            window earlier as (partition by resource, order_scope, order_key is null order by order_key, source
                rows between unbounded preceding and 1 preceding))
        window earlier as (partition by resource, order_scope, order_key is null, lives order by order_key, source
            rows between unbounded preceding and 1 preceding)"""


def _last(column: str, said: str | None = None) -> str:
    """SQL: the column in the last accepted earlier row that said it."""
    said = said or f"{column} is not null"
    kept = f"case when decision = 'accepted' and ({said}) then struct_pack(v := {column}) end"
    return f"case when order_key is not null then (last_value({kept} ignore nulls) over earlier).v end"
