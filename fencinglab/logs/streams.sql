-- What a stream record says about its mutation: from the mapped attributes of both images to a history row.
--
-- Reads  `changes`  one row a record: `before_*` and `after_*` are the mapped attributes as text (null where
--                   missing or not mapped); whether each side is known; what changed (streams.py makes it)
--        `mapped`   one row: which attributes are mapped (booleans) and the terminal statuses (null = not declared)
-- Gives  the history's columns where they are known, and `event_id`, `fault`.

with typed as (
    select
        changes.* replace (
            whole_number(before_token) as before_token, whole_number(after_token) as after_token,
            whole_number(before_written_token) as before_written_token,
            whole_number(after_written_token) as after_written_token,
            whole_number(before_version) as before_version, whole_number(after_version) as after_version,
            whole_number(before_terminal_version) as before_terminal_version,
            whole_number(after_terminal_version) as after_terminal_version,
            moment(before_expires_at) as before_expires_at, moment(after_expires_at) as after_expires_at,
            -- a missing owner means that nobody holds; a missing image, or no attribute for it, that nothing is known
            case when before_known and mapped.holder then coalesce(before_holder, '') end as before_holder,
            case when after_known and mapped.holder then coalesce(after_holder, '') end as after_holder
        ),
        time_unit(after_expires_at) as expiry_unit,
        case when before_known and mapped.terminal is not null then coalesce(before_status in mapped.terminal, false) end
            as before_terminal,
        case when after_known and lives and mapped.terminal is not null
            then coalesce(after_status in mapped.terminal, false) end as after_terminal,
        mapped
    from (select *, event_name <> 'REMOVE' as lives from changes) as changes
    cross join mapped
),

-- A token or a name that stands in the item is this writer's only if this mutation stored it.
stored as (
    select
        *,
        -- a token rises with every grant; only where there are no tokens does a new holder show one
        mapped.leased and lives and case
            when not mapped.token then after_holder <> '' and before_holder <> after_holder
            when mapped.holder and after_holder = '' then false  -- a counter that is set up or raised for nobody
            else coalesce(after_token > before_token, before_known and after_token is not null)
                or (before_holder = '' and after_holder <> '')
        end as granted,
        -- an older mark beside a grant, or a change of the lease alone or of nothing mapped: these may store none
        coalesce(after_written_token < after_token, false)
            and (granted or (before_status is not distinct from after_status and before_value is not distinct from after_value
                and not next_poll_changed and not other_protected_changed)) as mark_left,
        coalesce(after_version > before_version, false) and not mark_left as version_rose,
        lives and before_known and after_written_token is not null
            and (after_written_token is distinct from before_written_token or version_rose) as stores_token,
        -- a name that stays is no news where another holds
        lives and before_known and after_writer is not null
            and (after_writer is distinct from before_writer or stores_token or (version_rose
                and after_writer = coalesce(nullif(after_holder, ''), nullif(before_holder, ''), after_writer)))
            as stores_writer
    from typed
)

select
    event_id,
    case
        when fault is not null then fault
        when token_there and after_token is null then mapped.token_fault
        when written_token_there and after_written_token is null then mapped.written_token_fault
    end as fault,
    resource,
    resource as lease,
    right('0000000000000000000000000000000000000000' || sequence, 40) as order_key,
    case when sequence is not null then stream end as order_scope,
    moment(created) as "at",
    case when contains(created, '.') and epoch_us(moment(created)) % 1000000 <> 0 then 1000 else 1000000 end
        as at_precision,
    case
        when not lives then case when by_service then 'ttl_delete' else 'delete' end
        when granted then 'grant'
        when after_terminal and not before_terminal then 'finish'
        when before_known and after_alert is not null and after_alert is distinct from before_alert then 'alert'
        when before_holder <> '' and after_holder = '' then 'release'
        when event_name <> 'INSERT' and before_known and after_expires_at > coalesce(before_expires_at, timestamp 'epoch')
            then 'renew'
        when next_poll_changed then 'schedule'
        else 'write'
    end as kind,
    case when stores_writer then after_writer when granted then nullif(after_holder, '') end as writer,
    case
        when not lives then null
        when granted then coalesce(after_token, after_written_token)
        when stores_token then after_written_token
        when mapped.version then null
        when after_written_token = after_token then after_token  -- presumed: `fenced` stays null
    end as token,
    case
        when not lives then null
        when granted or stores_token then true
        when after_version = before_version then false  -- the item changed and its version did not
    end as fenced,
    case when lives and before_known and after_known then
        -- a mark that rises where nobody holds was raised by the grant of a lease in another item: it only protects more
        (before_token is distinct from after_token
            and not coalesce(mapped.holder and before_holder = '' and after_holder = '' and after_token > before_token, false))
        or before_written_token is distinct from after_written_token  -- whoever stores its token does the holder's work
        or before_holder is distinct from after_holder
        or before_expires_at is distinct from after_expires_at or before_status is distinct from after_status
        or before_value is distinct from after_value or next_poll_changed or other_protected_changed
    end as protected,
    case when lives and before_known and after_operation is distinct from before_operation then after_operation end
        as operation,
    'accepted' as decision,
    before_token, before_holder, before_expires_at, before_status, before_terminal, before_terminal_version,
    before_version, before_value,
    case when event_name = 'INSERT' then 0::ubigint when was_there then before_hash end as before_image,
    case when lives then after_token end as after_token,
    after_holder,
    case when lives then after_expires_at end as after_expires_at,
    case when lives then after_status end as after_status,
    after_terminal, after_terminal_version, after_version, after_value,
    case when not lives then 0::ubigint when is_there then after_hash end as after_image,
    case when lives and before_known and after_alert is distinct from before_alert then after_alert end as alert,
    fell,
    token_width,
    expiry_unit,
    path as source
from stored
