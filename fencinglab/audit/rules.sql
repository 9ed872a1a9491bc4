-- The rules of the audit, as one plain SQL text over one relation. It runs on DuckDB and Spark as it
-- stands and on other engines through sqlglot: no casts, no JSON, no engine's own functions.
--
-- (`at` is a keyword in some engines, hence always with its relation.)
--
-- Reads  `events`    the history (fencinglab/history.py) with its times in microseconds since 1970 and a
--                    number for each row, `row_id`; resource, lease and scope may stand as hashes
--        `settings`  one row: skew, retention (microseconds; retention null = not declared)
-- Gives  `row_id`, `incarnation` and one small integer a rule:
--        1 broken, 0 a case that held, -1 a case that cannot be decided, null no case.
--
-- rules.py says each rule in words, in the same order. A *timeline* is the rows of one resource, lease,
-- order scope and incarnation; "earlier" means earlier in it. Rows without an order key stand in a
-- timeline of their own, where "earlier" decides nothing: order rules give -1 there.

with narrow as (  -- what the windows need and no more: they sort whole rows
    select
        row_id, resource, order_scope, order_key, after_image, events.at as moment,
        coalesce(lease, resource) as lease_key,
        order_key is not null as ordered,
        decision <> 'rejected' as counts,
        -- a birth (known to find no item) or an earlier delete starts a new incarnation
        case when decision = 'accepted' and before_image = 0 then 1 else 0 end as birth,
        case when decision = 'accepted' and kind in ('delete', 'ttl_delete') then 1 else 0 end as death,
        case when decision = 'accepted' then coalesce(after_token, token, before_token) end as seen_token,
        case when decision = 'accepted' then coalesce(before_token, after_token, token) end as found_token,
        case when decision = 'accepted' and kind not in ('grant', 'delete', 'ttl_delete', 'poll') then token end
            as presented_token,
        case when decision = 'accepted' then coalesce(after_token, case when kind = 'grant' then token end) end
            as left_token,
        case  -- the sum of 1 for a grant, 2 for a finish, 4 for a terminal status
            when decision <> 'accepted' then 0
            when kind = 'grant' then case when after_terminal then 5 else 1 end
            when kind = 'finish' then case when after_terminal then 6 else 2 end
            when after_terminal and kind not in ('delete', 'ttl_delete') then 4
            else 0
        end as marks,
        case when (decision = 'accepted' and kind = 'grant') or before_holder <> '' or current_token is not null then 1 else 0 end
            as grant_seen,
        token_width, expiry_unit
    from events
),

resources as (
    select
        resource,
        -- its rows make more than one timeline: they are not in one order, or not one birth first and one death last
        min(lease_key) <> max(lease_key) or coalesce(min(order_scope) <> max(order_scope), false)
        or count(order_key) not in (0, count(*)) or count(order_scope) not in (0, count(*))
        or (sum(birth + death) > 0 and count(order_key) = 0) or sum(birth) > 1 or sum(death) > 1
        or coalesce(max(case when birth = 1 then order_key end) >= min(case when birth = 0 then order_key end), false)
        or coalesce(min(case when death = 1 then order_key end) <= max(case when death = 0 then order_key end), false)
            as parted,
        max(birth) as born,  -- the incarnation of every row of one that is not parted
        min(case when counts then order_scope end) <> max(case when counts then order_scope end) as scopes,
        -- two kinds of what should be one
        min(token_width) <> max(token_width) or min(expiry_unit) <> max(expiry_unit)
        or min(lease_key) <> max(lease_key) as kinds,
        -- the newest token of grants that the resource does not show, as far as its writes tell
        case when max(grant_seen) = 0 then max(presented_token) end as unseen_token
    from narrow
    group by resource
),

several as (  -- few
    select resource, scopes, kinds, unseen_token from resources where scopes or kinds or unseen_token is not null
),

placed as (  -- only where a resource has more than one timeline: elsewhere one sort serves both windows
    select
        row_id,
        (sum(birth + death) over upto) - death as incarnation,
        max(seen_token) over earlier as older_token,
        max(moment) over earlier as latest_at,
        lag(after_image) over (
            partition by resource, order_scope, ordered order by order_key, row_id
        ) as previous_image,
        coalesce(lag(death) over (partition by resource, order_scope, ordered order by order_key, row_id), 0) = 1
            as after_delete
    from narrow
    where resource in (select resource from resources where parted)
    window
        upto as (
            partition by resource, order_scope, ordered order by order_key, row_id
            rows between unbounded preceding and current row
        ),
        earlier as (
            partition by resource, order_scope, ordered order by order_key, row_id
            rows between unbounded preceding and 1 preceding
        )
),

timeline as (
    select
        row_id, incarnation, after_delete,
        -- these three look back over all incarnations and leases
        case when parted then older_token else max(seen_token) over earlier end as older_token,
        case when parted then latest_at else max(moment) over earlier end as latest_at,
        case when parted then previous_image else lag(after_image) over (
            partition by resource, lease_key, order_scope, ordered, incarnation order by order_key, row_id
        ) end as previous_image,
        max(presented_token) over earlier as written_token,
        max(left_token) over earlier as granted_token,
        min(found_token) over earlier as first_token,
        bit_or(marks) over earlier as marked
    from (
        select
            narrow.*, older_token, latest_at, previous_image,
            placed.row_id is not null as parted,
            coalesce(incarnation, 0) as incarnation,
            coalesce(after_delete, false) as after_delete
        from narrow
        left join placed on placed.row_id = narrow.row_id
    ) as every_row
    window earlier as (
        partition by resource, lease_key, order_scope, ordered, incarnation order by order_key, row_id
        rows between unbounded preceding and 1 preceding
    )
),

mixed as (
    select
        row_id,
        min(token_width) over earlier as earlier_width,
        min(expiry_unit) over earlier as earlier_unit,
        min(case when token is not null and lease <> resource then lease end) over earlier as least_lease,
        max(case when token is not null and lease <> resource then lease end) over earlier as greatest_lease
    from events
    where resource in (select resource from several where kinds)
    window earlier as (
        partition by resource, order_scope, order_key is not null order by order_key, row_id
        rows between unbounded preceding and 1 preceding
    )
),

finished as (  -- when that which TTL removed had become terminal
    select
        row_id,
        max(case when makes_terminal then moment end) over (
            partition by resource, lease_key, order_scope, ordered, incarnation
        ) as finished_at
    from (
        select
            events.row_id, events.resource, order_scope, incarnation, events.at as moment,
            coalesce(lease, events.resource) as lease_key,
            order_key is not null as ordered,
            decision = 'accepted' and kind <> 'ttl_delete' and after_terminal
            and not coalesce(before_terminal, coalesce(marked, 0) >= 4) as makes_terminal
        from events
        join timeline on timeline.row_id = events.row_id
        cross join settings
        where settings.retention is not null and events.resource in (select resource from events where kind = 'ttl_delete')
    ) as removed
),

doubted as (  -- the newest token of earlier grants of which nobody knows whether they were made
    select
        row_id,
        max(doubt) over (
            partition by resource, lease_key, order_scope, ordered, incarnation order by order_key, row_id
            rows between unbounded preceding and 1 preceding
        ) as doubted_token
    from (
        select
            events.row_id, events.resource, order_scope, order_key, incarnation,
            coalesce(lease, events.resource) as lease_key,
            order_key is not null as ordered,
            case when decision = 'unknown' and kind = 'grant' then coalesce(after_token, token) end as doubt
        from events
        join timeline on timeline.row_id = events.row_id
        where events.resource in (select resource from events where decision = 'unknown' and kind = 'grant')
    ) as asked
),

counting_renewals as (  -- the "token" rose under one holder before its lease ran out: it is a version
    select resource
    from events cross join settings
    where decision = 'accepted' and before_holder <> '' and before_holder = after_holder and after_token > before_token
        and (kind = 'renew' or events.at + settings.skew + coalesce(at_precision, 0) < before_expires_at)
    group by resource
),

suspect_tokens as (  -- seen with two workers in whatever incarnation: as its holders, or presenting it
    select coalesce(lease, resource) as lease_key, after_token as token_used
    from events
    where decision = 'accepted' and after_token is not null and after_holder <> ''
    group by coalesce(lease, resource), after_token
    having min(after_holder) <> max(after_holder)
    union
    select coalesce(lease, resource) as lease_key, token as token_used
    from events
    where decision <> 'rejected' and token is not null and writer is not null and fenced
    group by coalesce(lease, resource), token
    having min(writer) <> max(writer)
),

token_uses as (
    select events.row_id, lease_key, coalesce(placed.incarnation, born) as incarnation, token_used, after_holder as holder, null as presenter
    from events
    join suspect_tokens on lease_key = coalesce(events.lease, events.resource) and token_used = events.after_token
    join resources on resources.resource = events.resource
    left join placed on placed.row_id = events.row_id
    where decision = 'accepted' and after_holder <> ''
    union all
    select events.row_id, lease_key, coalesce(placed.incarnation, born) as incarnation, token_used, null as holder, writer as presenter
    from events
    join suspect_tokens on lease_key = coalesce(events.lease, events.resource) and token_used = events.token
    join resources on resources.resource = events.resource
    left join placed on placed.row_id = events.row_id
    where decision <> 'rejected' and writer is not null and fenced
),

sharing as (
    select row_id
    from (
        select
            row_id, holder, presenter,
            min(holder) over (partition by lease_key, incarnation, token_used) as first_holder,
            min(presenter) over (partition by lease_key, incarnation, token_used) as first_presenter
        from token_uses
    ) as compared
    where holder <> first_holder or presenter <> first_presenter
    group by row_id
),

repeated_operations as (
    select row_id
    from (
        select events.row_id, row_number() over (
            partition by events.resource, incarnation, events.operation order by order_key nulls last, events.row_id
        ) as nth
        from events
        join (
            select resource, operation from events where decision = 'accepted' and operation is not null
            group by resource, operation having count(*) > 1
        ) as suspects on suspects.resource = events.resource and suspects.operation = events.operation
        join timeline on timeline.row_id = events.row_id
        where decision = 'accepted'
    ) as numbered
    where nth > 1
),

repeated_alerts as (
    select row_id
    from (
        select events.row_id, row_number() over (
            partition by events.resource, incarnation, coalesce(after_terminal_version, 0)
            order by order_key nulls last, events.row_id
        ) as nth
        from events
        join (
            select resource from events where decision = 'accepted' and alert is not null
            group by resource having count(*) > 1
        ) as suspects on suspects.resource = events.resource
        join timeline on timeline.row_id = events.row_id
        where decision = 'accepted' and alert is not null
    ) as numbered
    where nth > 1
),

own_attempts as (  -- operations that were refused and also have an attempt that was not
    select resource, operation
    from events where operation is not null
    group by resource, operation
    having count(case when decision = 'rejected' then 1 end) > 0
        and count(case when decision <> 'rejected' then 1 end) > 0
),

rejected as (  -- all but grants
    select
        events.row_id, events.resource, order_scope, order_key, writer, token,
        own_attempts.resource is not null as own_attempt,
        case
            when own_attempts.resource is not null or reason in ('terminal', 'duplicate') then 0
            when reason = 'newer_token' or token < coalesce(before_token, current_token, case when order_key is not null then granted_token end) then 1
            when token >= coalesce(before_token, current_token, case when order_key is not null then granted_token end) or reason in ('expired', 'not_held') then 0
            else -1
        end as stale
    from events
    join timeline on timeline.row_id = events.row_id
    left join own_attempts on own_attempts.resource = events.resource and own_attempts.operation = events.operation
    where decision = 'rejected' and kind <> 'grant'
),

refusals as (
    select resource, order_scope, writer, token, min(order_key) as refused_at
    from rejected
    where stale = 1 and writer is not null
    group by resource, order_scope, writer, token
),

whole as (  -- whole rows again, with what the windows found
    select
        events.*,
        incarnation, older_token, previous_image, latest_at, after_delete, written_token,
        coalesce(marked, 0) in (1, 3, 5, 7) as granted_before,
        coalesce(marked, 0) in (2, 3, 6, 7) as finished_before,
        settings.skew + coalesce(at_precision, 0) as slack,
        settings.retention as retention,
        coalesce(protected, true) as guarded,
        coalesce(lease, resource) as lease_key,
        order_key is not null as ordered,
        decision = 'accepted' as accepted,
        kind in ('delete', 'ttl_delete') as deleted,
        kind not in ('grant', 'delete', 'ttl_delete', 'poll') as writes,
        coalesce(
            current_token,
            greatest(coalesce(before_token, granted_token), coalesce(granted_token, before_token))
        ) as newest,
        least(
            coalesce(first_token, before_token, token),
            coalesce(before_token, first_token, token),
            coalesce(token, first_token, before_token)
        ) as oldest,
        coalesce(before_token, current_token, case when order_key is not null then granted_token end) as held_token,
        current_token is not null or before_holder is not null or coalesce(marked, 0) in (1, 3, 5, 7) as grants_visible,
        coalesce(before_terminal, coalesce(marked, 0) >= 4) as was_terminal,
        order_key is not null or before_terminal is not null as terminal_known
    from timeline
    join events on events.row_id = timeline.row_id
    cross join settings
),

known as (
    select
        whole.*,
        earlier_width, earlier_unit, least_lease, greatest_lease, finished_at,
        coalesce(several.scopes, false) as scopes_differ,
        unseen_token, doubted_token,
        counting_renewals.resource is not null as counts_renewals,
        coalesce(rejected.own_attempt, false) as own_attempt,
        rejected.stale as rejected_stale,
        refusals.resource is not null as was_refused,
        refused_at,
        sharing.row_id is not null as shares_token,
        repeated_operations.row_id is not null as repeats_operation,
        repeated_alerts.row_id is not null as repeats_alert
    from whole
    left join several on several.resource = whole.resource
    left join mixed on mixed.row_id = whole.row_id
    left join finished on finished.row_id = whole.row_id
    left join doubted on doubted.row_id = whole.row_id
    left join counting_renewals on counting_renewals.resource = whole.resource
    left join rejected on rejected.row_id = whole.row_id
    left join refusals
        on refusals.resource = whole.resource and refusals.order_scope = whole.order_scope
        and refusals.writer = whole.writer and refusals.token = whole.token
    left join sharing on sharing.row_id = whole.row_id
    left join repeated_operations on repeated_operations.row_id = whole.row_id
    left join repeated_alerts on repeated_alerts.row_id = whole.row_id
),

-- Verdicts that others build on.
rejections as (
    select
        known.*,
        case
            when not writes or decision = 'rejected' or written_token is null then null
            when token is null then case when accepted and coalesce(fenced, true) and guarded then -1 end
            when not accepted then case when token < written_token then -1 end
            when counts_renewals then -1
            when not ordered then case when token = written_token then 0 else -1 end
            when token < written_token then 1
            else 0
        end as token_went_back,
        case
            when rejected_stale is null then null
            when own_attempt or rejected_stale = 1 then 0
            when reason in ('terminal', 'duplicate') or before_terminal then 1
            when reason in ('expired', 'not_held') or not before_terminal then 0
            else -1
        end as rejected_done
    from known
)

select
    row_id,
    incarnation,
    token_went_back,
    case
        when not writes or decision = 'rejected' or token_went_back = 1 then null
        when newest is null then case when accepted and (token < unseen_token or token < doubted_token) then -1 end
        when token is null then case when accepted and coalesce(fenced, true) and guarded and oldest < newest then -1 end
        when not accepted then case when token < newest then -1 end
        when token >= newest and token < doubted_token then -1
        when oldest >= newest then null
        when counts_renewals then -1
        when token < newest then
            case when ordered or current_token is not null or token < before_token then 1 else -1 end
        when fenced is null or not grants_visible then -1
        when ordered or current_token is not null or before_token is not null then 0
        else -1
    end as stale_write_accepted,
    case
        when shares_token then 1
        when accepted and kind = 'grant' and granted_before then
            case when coalesce(after_token, token) is null then -1 else 0 end
    end as token_shared,
    case
        when accepted and before_holder <> '' and after_holder <> '' and before_holder <> after_holder then
            case when after_token is null or before_token is null then -1 when after_token <= before_token then 1 else 0 end
    end as holder_without_token,
    case
        when not writes or not accepted or not guarded then null
        when coalesce(newest, 0) = 0 and not granted_before and coalesce(before_holder, '') = ''
            and (coalesce(fenced, true) or coalesce(written_token, 0) = 0) then null
        when fenced then 0
        when fenced is null or protected is null then -1
        else 1
    end as unfenced_write,
    case
        when not accepted or deleted or kind = 'poll' or after_terminal = false then null
        when not was_terminal then case when after_terminal then 0 end
        when kind = 'finish' and (terminal_known or finished_before) then 1
        when not terminal_known then -1
        when after_terminal_version > before_terminal_version or after_value <> before_value
            or after_status <> before_status then 1
        when protected = false or kind in ('grant', 'renew', 'release', 'alert', 'retry', 'schedule') then 0
        when (after_value is null or before_value is null)
            and (after_terminal_version is null or before_terminal_version is null) then -1
        else 0
    end as terminal_twice,
    case
        when not accepted or deleted or after_terminal is null then null
        when was_terminal and not after_terminal then case when terminal_known then 1 else -1 end
        when was_terminal or after_terminal then 0
    end as terminal_left,
    case
        when accepted and not deleted and after_token is not null and before_token is not null then
            case when after_token < before_token then 1 else 0 end
    end as image_went_back,
    case when accepted and fell is not null then case when fell = '' then 0 else 1 end end as state_went_back,
    case
        when not accepted or older_token is null or lease_key <> least_lease or lease_key <> greatest_lease then null
        when kind = 'grant' then
            case
                when coalesce(after_token, token) is null or (before_token is not null and before_holder <> '') then null
                when not ordered then -1
                when coalesce(after_token, token) < older_token then 1
                when coalesce(after_token, token) = older_token and (before_image = 0 or before_holder = '' or after_delete) then 1
                else 0
            end
        when writes and fenced and token > 0 and (before_image = 0 or after_delete) then
            case when not ordered then -1 when token < older_token then 1 else 0 end
    end as token_restarted,
    case when accepted and operation is not null then case when repeats_operation then 1 else 0 end end
        as operation_twice,
    case when accepted and alert is not null then case when repeats_alert then 1 else 0 end end as alert_twice,
    case
        when not accepted or kind = 'ttl_delete' or writer is null then null
        when kind in ('delete', 'release') or (before_holder <> '' and after_holder = '') then
            case
                when token < case when ordered then newest else before_token end then 1
                when before_holder <> '' and before_holder <> writer then case when was_terminal then 0 else 1 end
                when before_holder is null
                    and (token is null or (case when ordered then newest else coalesce(before_token, current_token) end) is null)
                    then -1
                else 0
            end
    end as unfenced_delete,
    case when token_width is not null then case when token_width <> earlier_width then 1 else 0 end end
        as tokens_as_text,
    case
        when lease <> resource and token is not null then
            case when lease <> least_lease or lease <> greatest_lease then 1 else 0 end
    end as scopes_mixed,
    case
        when not accepted or kind <> 'ttl_delete' then null
        when before_terminal is null then -1
        when not before_terminal then 1
        when retention is null then 0
        when finished_at is null or rejections.at is null then -1
        when rejections.at + slack < finished_at + retention then 1
        else 0
    end as ttl_removed_live,
    case
        when accepted and kind = 'grant' and before_holder <> '' and after_holder <> '' and after_holder <> before_holder
            and before_expires_at is not null and rejections.at is not null then
            case when before_expires_at > rejections.at + slack then 1 else 0 end
    end as leases_overlap,
    case
        when not accepted or not writes or not guarded or before_expires_at is null or rejections.at is null then null
        when token < newest then null
        when rejections.at <= before_expires_at + slack then 0
        when token is null then -1
        else 1
    end as late_write_accepted,
    case
        when accepted and not deleted and kind <> 'grant'
            and (kind = 'renew' or after_expires_at > before_expires_at) then
            case when before_holder is null then -1 when before_holder = '' then 1 else 0 end
    end as renewed_after_release,
    case
        when not accepted or deleted then null
        when not was_terminal then case when after_terminal then 0 end
        when kind in ('grant', 'renew', 'retry', 'schedule', 'poll') or after_expires_at > before_expires_at then
            case when terminal_known then 1 else -1 end
        else 0
    end as work_after_terminal,
    case
        when was_refused and order_key > refused_at then 1
        when rejected_stale = 1 then case when ordered and writer is not null then 0 else -1 end
    end as went_on_after_rejection,
    rejected_stale,
    case
        when rejected_stale is null then null
        when own_attempt or rejected_stale = 1 or rejected_done = 1 then 0
        when reason = 'expired' then 1
        when reason in ('not_held', 'newer_token') then 0
        when token = held_token and rejections.at >= before_expires_at then 1
        when token >= held_token and rejections.at is not null and before_expires_at is not null then 0
        else -1
    end as rejected_late,
    rejected_done,
    case when rejected_stale is null then null when own_attempt then 1 when operation is null then -1 else 0 end
        as own_success_rejected,
    case
        when accepted and ordered and before_image is not null and previous_image is not null then
            case when before_image <> previous_image then 1 else 0 end
    end as chain_broken,
    case
        when decision = 'rejected' then null
        when not ordered or scopes_differ then 1
        else 0
    end as order_unknown,
    case
        when ordered and rejections.at is not null and latest_at is not null then
            case when rejections.at + slack < latest_at then 1 else 0 end
    end as time_went_back,
    case when expiry_unit is not null then case when expiry_unit <> earlier_unit then 1 else 0 end end as clock_mixed
from rejections
