-- What a log entry says about its mutation: from the mapped fields as text to a history row.
--
-- Reads  `entries`  one row an entry: scope (the file), line in it, raw or else place (where its text is found
--                   again), event_id, stamp (a time before the JSON), fault (why it cannot be read, or null) and one text
--                   for each column that can be mapped, null where the mapping or the entry has none
--                   (and denial: what other fields say against its having been written)
--        `meant`    what the distinct event, decision, outcome, reason and denial texts mean, see words.py
--        `settings` one row: identity (tokens are no numbers), order_by ('line', 'key' or null), terminal (the statuses),
--                   events (the kind is mapped), ids (event ids tell entries apart), compared (entries are told apart by what they say), nameless (the fault of an entry without resource)
-- Gives  the history's columns where they are known, event_id, scope, line, place, raw, fault; `reports`: whether the entry
--        reports a mutation; `says`: a hash of all that it says, null where not compared; `remarks`: bits for the notes

with timed as (
    select
        *,
        instant(clock, at_unit) as at_time,
        instant(expires_at, expiry_unit) as runs_out,
        whole_number(token) as number
    from (
        select *, coalesce("at", stamp) as clock, time_unit(coalesce("at", stamp)) as at_unit, time_unit(expires_at) as expiry_unit
        from entries
    )
),

told as (
    select
        timed.* exclude (kind, decision, outcome, reason, denial, fenced),
        meant.* exclude (kind, kind_text, decision_text, outcome_text, reason_text, denial_text),
        settings.*,
        meant.kind is not null as known,
        coalesce(meant.kind, 'write') as kind,
        meant.decision = 'accepted' as accepted,
        coalesce(writer, holder) as who,
        case when compared then hash(at_time, sent_at, meant.kind, meant.decision, meant.outcome, meant.reason, lease, writer,
            holder, coalesce(number::varchar, token), timed.fenced, runs_out, status, value, version, terminal_version,
            operation, alert, before_token, before_holder, before_expires_at, before_status, current_token) end as says,
        case
            -- the token on an attempt to acquire may be the holder's, and on a line of no known event anybody's
            when token is not null and case when meant.kind = 'grant' then accepted
                else meant.kind is not null or meant.decision <> 'unknown' or not events end then true
            when lower(timed.fenced) in ('true', 'yes', '1') then true
            when lower(timed.fenced) in ('false', 'no', '0') then false
        end as fenced,
        timed.fault is not null or case
            when resource is null then token is not null or holder is not null or (telling and not noticed)
            -- a job that starts leaves a status
            else not (noticed and status is null) and (not events or meant.kind is not null or token is not null or status is not null
                or timed.decision is not null or timed.outcome is not null)
        end as reports
    from timed
    cross join settings
    join meant
        on meant.kind_text is not distinct from timed.kind and meant.decision_text is not distinct from timed.decision
        and meant.outcome_text is not distinct from timed.outcome and meant.reason_text is not distinct from timed.reason
        and meant.denial_text is not distinct from timed.denial
)

select
    scope, line, place, raw,
    scope || ':' || line as source,
    -- of two entries with one place in the order, those that say the same are one
    coalesce(case when ids then event_id end, case when order_by = 'key' and order_key is not null then 'same ' || hash(order_key, says) end) as event_id,
    says,
    reports,
    ((clock is not null and at_time is null)::utinyint
        + 2 * (sent_at is not null and instant(sent_at, time_unit(sent_at)) is null)::utinyint
        + 4 * (expires_at is not null and runs_out is null)::utinyint
        + 8 * (before_expires_at is not null and instant(before_expires_at, time_unit(before_expires_at)) is null)::utinyint
        + 16 * (at_unit = 'text' and at_time is not null and not ends_with(clock, 'Z')
            and not regexp_matches(clock, '(UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)$'))::utinyint
        + 32 * (events and not known)::utinyint)::utinyint as remarks,
    case  -- a reason shows numbers, never another text
        when fault is not null or not reports then fault
        when resource is null then nameless
        when number is null and not identity and token is not null then 'token ' || case
            when regexp_full_match(token, '-[0-9.,eE+-]+') then left(token, 60) || ' is negative'
            when regexp_full_match(token, '[0-9]{39,}([.]0+)?') then 'has more than 38 digits'
            when regexp_full_match(token, '[0-9]+([.][0-9]*)?[eE][+]?[0-9]+')
                then left(token, 60) || ' is rounded (by a spreadsheet or a JSON library?)'
            when regexp_full_match(token, '[0-9]+[.][0-9]+') then left(token, 60) || ' is a fraction'
            when regexp_full_match(token, '[0-9]{1,3}([,. ''_\x{00a0}\x{202f}][0-9]{3})+')
                then left(token, 60) || ' has thousands separators'
            else 'is not a number, as most others are'
        end
        when number >= 9007199254740992 and contains(token, '.') and not identity
            then 'token ' || left(token, 60) || ' is a float beyond 2^53: its last digits are rounded'
        when order_by = 'key' and not regexp_full_match(order_key, '[0-9]{1,40}')
            then 'sequence number ' || case when regexp_full_match(order_key, '[0-9.,eE+-]+') then left(order_key, 60) || ' ' else '' end
                || 'is not 1 to 40 digits (rounded by a spreadsheet or a JSON library?)'
    end as fault,
    resource,
    coalesce(lease, resource) as lease,
    case order_by when 'line' then lpad(line::varchar, 40, '0') when 'key' then lpad(order_key, 40, '0') end as order_key,
    case when order_by = 'line' then scope when order_by = 'key' and order_key is not null then 'order_key' end as order_scope,
    at_time as "at",
    instant(sent_at, time_unit(sent_at)) as sent_at,
    case
        when at_time is null then null
        when at_unit = 'ms' then 1000
        when at_unit in ('us', 'ns') then 0
        when at_unit = 'text' and not contains(clock, ':') then 86400000000
        -- by the digits of its fraction; `1693997155.0` is a second that was floored
        else [1000000, 100000, 10000, 1000, 100, 10, 0][1 + least(6, case
            when ends_with(clock, 'Z') and clock[11] = 'T' then greatest(0, length(clock) - 21)
            else length(regexp_extract(clock, '[.,]([0-9]{2,}|[1-9])', 1)) end)]
    end as at_precision,
    kind,
    who as writer,
    case when not identity then number end as token,
    fenced,
    kind not in ('effect', 'poll') as protected,
    operation,
    decision,
    reason,
    outcome,
    whole_number(before_token) as before_token,
    case
        when before_holder is not null then before_holder
        -- a worker that releases calls itself the holder; where there is an order, earlier lines know better
        when kind = 'release' and (order_by is null or holder <> writer) then coalesce(holder, who)
    end as before_holder,
    instant(before_expires_at, time_unit(before_expires_at)) as before_expires_at,
    before_status,
    case when len(terminal) > 0 then before_status in terminal end as before_terminal,
    case when accepted and kind = 'grant' and not identity then number end as after_token,
    case when accepted then case kind when 'grant' then coalesce(holder, who) when 'release' then '' end end as after_holder,
    case when accepted and kind in ('grant', 'renew') then runs_out end as after_expires_at,
    case when accepted then status end as after_status,
    case when accepted and len(terminal) > 0 then status in terminal end as after_terminal,
    case when accepted then whole_number(terminal_version) end as after_terminal_version,
    case when accepted then whole_number(version) end as after_version,
    case when accepted then value end as after_value,
    alert,
    case when runs_out is not null then expiry_unit end as expiry_unit,
    whole_number(current_token) as current_token
from told
