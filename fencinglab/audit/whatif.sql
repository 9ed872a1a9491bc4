-- What each guard of fencinglab/model/guard.py would have decided on every recorded mutation, in the log's own order.
--
-- Reads  `history` and `verdicts` (for the incarnation), `settings` (skew)
-- Gives  `row_id`, a column a guard: 1 it admits, 0 it refuses, -1 it cannot be told, and what a receiver held before, as
--        far as the log shows it: `held_token`, `held_by` (empty = nobody), `held_until`, `held_mark` (the highest token
--        presented, 0 = none), `held_status`, `held_finished` (by a final status, or else by a finish before). Mutations of
--        what is known never to have been leased, such as its creation, are none of a guard's business and have no row.
--
-- A guard's mark follows from the tokens that were presented: one below the mark never raises it, so the mark is the
-- highest token presented before, whatever the receiver of the log decided. A mutation whose token is not known, or
-- that perhaps never arrived, may have raised it to the newest token that there was: below that ceiling nothing can be
-- told. A mutation that is known to have presented no token carries no condition, and every guard lets it pass.

with placed as (
    select
        history.rowid as row_id, incarnation, history.resource, order_scope, writer, token, decision, kind,
        history."at" as moment, before_image, coalesce(lease, history.resource) as lease_key,
        coalesce(lease, history.resource) <> history.resource as lease_apart,
        order_key is not null as ordered, coalesce(fenced, true) as conditional,
        coalesce(at_precision, 0) + skew as after_at, skew as before_at,
        before_token, current_token, before_holder, before_expires_at, before_terminal, after_terminal, before_status,
        after_status,
        kind in ('write', 'finish', 'schedule', 'retry', 'alert') and coalesce(protected, true) as asked,
        before_image = 0 or before_holder = '' as seen_free,
        kind in ('grant', 'renew', 'release') and decision = 'accepted' as of_lease,
        case when kind = 'grant' and decision = 'accepted' then coalesce(after_token, token) end as granted,
        coalesce(nullif(after_holder, ''), writer) as granted_to, after_holder, after_expires_at,
        row_number() over (order by order_scope, order_key, history.rowid) as place
    from history
    join verdicts on verdicts.row_id = history.rowid
    cross join settings
),

leased as (  -- what was known of the lease before
    select
        *,
        coalesce(before_token, current_token, case when ordered then max(granted) over earlier end) as latest,
        case when granted is not null then coalesce(granted > max(granted) over earlier, true) end as rose,
        case
            when before_holder is not null and not (coalesce(before_image, 1) = 0 and lease_apart) then before_holder
            when ordered then last_value(case when of_lease then after_holder end ignore nulls) over earlier
        end as holder,
        case
            when before_holder is not null and not (coalesce(before_image, 1) = 0 and lease_apart)
                then before_expires_at
            when ordered then last_value(case when of_lease then after_expires_at end ignore nulls) over earlier
        end as expires_at
    from placed
    window earlier as (
        partition by lease_key, order_scope, ordered order by place
        rows between unbounded preceding and 1 preceding
    )
),

met as (
    select
        * replace (
            asked and (
                not conditional or token is not null or latest > 0 or holder <> '' or not coalesce(seen_free, false)
            ) as asked
        )
    from leased
),

marked as (
    select
        *,
        max(case when asked and decision <> 'unknown' then token end) over earlier as presented,
        max(granted) over earlier as promised,
        max(case
            when asked and conditional and token is null then coalesce(latest, 99999999999999999999999999999999999999)
            when asked and decision = 'unknown' then token
        end) over earlier as ceiling,
        max(case when granted is not null then place end) over earlier as granted_place,
        last_value(case when granted is not null then granted_to end ignore nulls) over earlier as granted_last_to,
        last_value(granted ignore nulls) over earlier as granted_last,
        last_value(rose ignore nulls) over earlier as granted_rose,  -- else what carries its token may be of an older one
        max(case when asked then place end) over earlier as asked_place,
        coalesce(before_status, case when ordered then
            last_value(case when decision = 'accepted' then after_status end ignore nulls) over earlier
        end) as held_status,
        coalesce(before_terminal, case when ordered then
            coalesce(max(case when decision = 'accepted' then coalesce(after_terminal, kind = 'finish') end) over earlier, false)
        end) as held_finished,
        max(granted) over (
            partition by resource, order_scope, ordered order by place rows between unbounded preceding and 1 preceding
        ) is not null as grants_seen
    from met
    window earlier as (
        partition by resource, order_scope, ordered, incarnation order by place
        rows between unbounded preceding and 1 preceding
    )
),

single as (
    select
        row_id, decision, conditional, token, held_status, held_finished,
        latest as held_token, holder as held_by, expires_at as held_until,
        case when ordered and ceiling is null then coalesce(presented, 0) end as held_mark,
        case
            when not ordered or token is null then -1
            when token < presented then 0
            when token < ceiling then -1
            else 1
        end as at_or_above,
        case
            when not ordered or token is null then -1
            when token <= presented then 0
            when token <= ceiling then -1
            else 1
        end as above,
        case
            when not ordered or token is null or (not grants_seen and latest is null) then -1
            when token < presented or token < case when grants_seen then promised else latest end then 0
            when token < ceiling then -1
            else 1
        end as promised,
        case when token is null or latest is null then -1 when token = latest then 1 else 0 end as latest,
        case
            when holder = '' then 0
            when writer is null or holder is null then -1
            when holder <> writer then 0
            when expires_at is null or moment is null then -1
            when moment + to_microseconds(after_at) < expires_at then 1
            when moment - to_microseconds(before_at) >= expires_at then 0
            else -1
        end as current_holder,
        case
            when ordered and granted_last = token and granted_rose and granted_last_to = writer
                and granted_place > coalesce(asked_place, 0) then 1
            else -1
        end as known_state
    from marked
    where asked
)

select
    row_id,
    1 as "unguarded",
    case when conditional then at_or_above else 1 end as "at-or-above",
    case when conditional then above else 1 end as "above",
    case when conditional then promised else 1 end as "promised",
    case when conditional then latest else 1 end as "latest",
    case when conditional then current_holder else 1 end as "current-holder",
    case
        when not conditional then 1
        when latest = 0 or current_holder = 0 then 0
        else least(latest, current_holder)
    end as "current-lease",
    case when conditional then known_state else 1 end as "identity",
    case when not conditional or at_or_above = 1 then 1 else -1 end as "two-step-token",
    case when not conditional or (latest = 1 and current_holder = 1) then 1 else -1 end as "two-step-holder",
    held_token, held_by, held_until, held_mark, held_status, held_finished
from single
