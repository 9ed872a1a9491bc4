"""What the words of a log line mean: its event, its decision, its outcome, its reason.

Loggers write `lease_acquired`, `LeaseAcquired`, `acquire failed` or a whole sentence. Patterns see lower
case with spaces (`lease acquired`) and match whole words. They are applied once per distinct text, not
per line.

A text tells what *was* done only in the past tense: `write requested` and `writing` stand before the
result is known, `write failed` leaves it open, and a failed acquire is contention. `0 rows updated` and
`saved: false` are in the past tense and say that nothing was done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fencinglab.logs import unwrap

if TYPE_CHECKING:
    import duckdb

# The first that fits is the line's kind. `write completed` and `lease released, job done` are no finish.
KINDS = (
    ("ttl_delete", r"^ttl$|ttl (\w+ )?(delet|remov|expir|evict|purg)\w*|(delet|remov|expir|evict|purg)\w* (\w+ )?ttl|"
                   r"(item|record|row)s? (was )?expir\w*|expir\w* (item|record|row)s?|evict\w*"),
    ("delete", r"delet\w*|remov\w*|purg\w*"),
    ("grant", r"acquir\w*|grant\w*|claim\w*|obtain\w*|take ?over|took over|taken over|steal|stole|stolen|reassign\w*|"
              r"elected|became leader|(lease|lock|leadership|ownership) taken|"
              r"took (the |a )?(lease|lock|leadership|ownership)"),
    ("renew", r"renew(|s|ed|ing|al)|heart ?beat\w*|extend(|s|ed|ing)|keep ?alive|refresh(|ed|ing) lease|"
              r"lease refresh(|ed|ing)"),
    ("release", r"releas(e|es|ed|ing)|unlock(|ed|ing)|relinquish\w*|step(ped|ping)? down"),
    ("grant", r"^(leased?|lock(ed)?)$"),
    ("alert", r"alert(|s|ed|ing)|alarm\w*|paged"),
    ("retry", r"retr(y|ied|ies|ying)\w*|reattempt\w*"),
    ("schedule", r"schedul\w*|\w*enqueu(e|ed|ing)|\w*queued|defer\w*"),
    ("poll", r"poll(|s|ed|ing)"),
    ("effect", r"effect\w*|send(|s|ing)|sent|e ?mail(|s|ed|ing)|charg(e|es|ed|ing)|notif(y|ied|ies|ying)|publish\w*|"
               r"webhook\w*"),
    ("write", r"writ(e|es|ing|ten)|wrote|updat(e|es|ed|ing)|sav(e|es|ed|ing)|put|stor(e|es|ed|ing)|persist\w*|"
              r"insert\w*|upsert\w*|commit(|s|ted|ting)|upload(|s|ed|ing)|overwr(ite|ote|itten|iting)|patch(|ed|ing)|"
              r"transition\w*|status chang(e|ed)"),
    ("finish", r"complet(e|es|ed|ing|ion)|finish(|es|ed|ing)|done|succe(ed|eds|eded|ss)|finali[sz]\w*"),
)  # fmt: skip

# What is one of these besides is none that ends a lease or only looks: `deleted temp files, saved`.
STRONGER = (
    ("grant", r"(lease|lock|leadership|ownership) (acquired|granted|obtained|claimed|taken)|"
              r"(acquired|granted|obtained|claimed|took) (the |a )?(lease|lock|leadership|ownership)"),
    ("write", r"saved|wrote|written|updated|persisted|upserted|uploaded|overwritten|replaced|patched|inserted"),
)  # fmt: skip

REFUSED = (
    r"reject\w*|refus(e|es|ed|al|ing)|den(y|ied|ies|ying)|disallowed|not (accepted|allowed|applied)|"
    r"condition(al)? (check )?(request )?(failed|not met)|precondition failed|transaction cancell?ed"
)
REJECTED = (
    rf"{REFUSED}|conflict\w*|stale|fenced|superseded|not (the |current |its )?(owner|holder|leader|held)|"
    r"lease mismatch|token mismatch|duplicate\w*"
)
FAILED = (
    r"fail(|s|ed|ing|ure)|unsuccessful\w*|could not|cannot|unable|never|(could|was|were|is|has|have|had|did|would)n t|"
    r"not ((yet|been|be|fully|actually|successfully) )*(\w+ed|written|done|sent|ok)"
)
OPEN = (
    r"time ?out\w*|timed out|unknown|lost|error\w*|\w*exception|throttl\w*|unavailable|abort\w*|requested|requesting|"
    r"attempting|trying|pending|about to|going to|will|would have|dry run|roll(ed|ing)? ?back|no (reply|response)|"
    r"sent (\w+ ){0,2}request|request (was )?sent|deadline exceeded|connection (reset|closed)|hang up|broken pipe|nack|"
    r"mark (\w+ ){0,3}(done|completed?|finished)|"
    r"(acquir|renew|extend|releas|writ|updat|sav|stor|delet|send|finish|complet|schedul|retry|poll|claim|grant|persist|"
    r"insert|committ|upload|publish|charg|remov|email|notify|alert)ing"
)
DONE = (
    r"accepted|acquired|granted|claimed|obtained|taken|took|stolen|stole|elected|became|renewed|extended|refreshed|"
    r"written|wrote|updated|saved|stored|persisted|inserted|upserted|committed|uploaded|patched|overwritten|applied|"
    r"completed|finished|done|succe(eded|ss|ssful|ssfully)|finali[sz]ed|deleted|removed|purged|evicted|sent|emailed|"
    r"charged|notified|published|transitioned|changed|ok"
)
ACCEPTED = (  # and what may also follow a refusal
    rf"{DONE}|released|unlocked|relinquished|stepped down|scheduled|enqueued|queued|requeued|retried|polled|alerted|"
    r"raised|paged|locked|leased"
)
# What a field that holds nothing but the decision may say besides.
REJECTED_VALUE = r"^(false|no)$|409|412|conditional\w*|expired|terminal|already \w+|lost lease|lease lost"
OPEN_VALUE = r"5[0-9][0-9]|429"
ACCEPTED_VALUE = r"true|yes|2[0-9][0-9]|accept|allow|allowed|succeed|commit|pass|passed"

# `no conflict` is none, `already finished` was done by somebody, and `cache updated` is a process's own business.
_NEGATED = rf"\b(no|without|never|not) (any )?({REJECTED})\b|\b({REJECTED}) false\b"
_OWN = r"connections?|sessions?|cache|config\w*|settings|metrics?|sockets?|threads?|memory"
_BEFORE = rf"\b(already (been )?|({_OWN}) (was |were )?)({DONE})\b"
_ELSEWHERE = rf"\b(already|not|be|been) ({DONE})\b"

# What says that nothing was written, told from the text as it stands: in `worker-0: rows updated` the 0 counts nothing.
_ROWS = r"(rows|items|records|documents|docs|entries|objects|keys|(row|item|record|document|object|key)\(s\))"
_ROW = rf"({_ROWS}|row|item|record|document|doc|entry|object|key)"
_WROTE = (
    r"(affected|changed|matched|modified|updated|written|wrote|inserted|upserted|deleted|removed|saved|stored|"
    r"persisted|patched|overwritten|committed|applied|accepted|acquired|granted|claimed|obtained)"
)
_END = r"""["']?\s*($|[,;)}\]])"""
NOTHING = (
    rf"(^|[\s(\[,=])(0|zero)(\s*/\s*\d+|\s+of\s+\d+|\s+matching)?\s+{_ROWS}\s+(were\s+)?{_WROTE}\b|"
    rf"(^|[\s(\[,=])no(\s+matching)?\s+{_ROW}\s+(were\s+|was\s+)?{_WROTE}\b|"
    rf"\b{_WROTE}:?\s+(0|zero|no)(\s*/\s*\d+|\s+of\s+\d+|\s+matching)?\s+{_ROW}|"
    rf"\b{_WROTE}\s+nothing\b|\bnothing\s+(was\s+)?{_WROTE}\b|"
    rf"\b({_ROW}[\s_]?{_WROTE}|{_WROTE}[\s_]?({_ROWS}|count)|{_ROW}[\s_]?count|rows|changes)"
    r"""["']?\s*[:=]\s*["']?0([^\w.]|$)|"""
    rf"""\b{_WROTE}["']?\s*[:=?]+\s*["']?(false|no){_END}"""
)
# ... unless the text counts something besides.
SOMETHING = rf"\b[1-9][0-9,]*\s+{_ROW}\s+(were\s+|was\s+)?{_WROTE}\b|\b{_WROTE}:?\s+[1-9][0-9,]*\s+{_ROW}"
# A success denied leaves open what became of the write, and in `status changed: 0` it may be the status.
NO_SUCCESS = (
    rf"""\b(ok|success|successful|succeeded)["']?\s*[:=?]+\s*["']?(false\b|no([:;,.!)]|$))|"""
    rf"""\b({_WROTE}|ok|success)["']?\s*[:=?]+\s*["']?0{_END}"""
)

# Values that a field has only where it holds the decision, never where it holds what was computed.
_VERDICT = (
    rf"{REJECTED}|fail(ed|ure)?|error|time ?out|timed out|unknown|\w*exception|"
    r"accepted|applied|granted|ok|succe(ss|eded)"
)

# No mutation, whatever the line carries: a worker notices, looks, waits or goes on.
LOST = (
    r"(lease|lock|leadership|ownership|leader ?election) (was |has )?(been )?(lost|expired|ended)|"
    r"lost (the )?(lease|lock|leadership|ownership)"
)
NOTICED = (
    r"skip(s|ped|ping)?|(read|load|fetch|get|start)(s|ed|ing)?|gave up|giving up|wait(s|ed|ing)?|paus(e|ed|ing)|"
    r"resum(e|ed|ing)|sleep\w*|idle"
)
# ... unless one was attempted: `save failed: read timed out`.
_NO_REPLY = r"time ?out\w*|timed out|\w*exception"

REASONS = (
    ("newer_token", r"stale|newer|fenced( off)?|fencing|superseded\w*|outdated|(older|lower|old) (token|fence|epoch)|"
                    r"(token|fence|epoch) mismatch"),
    ("expired", r"expir(ed|y)|ran out|too late"),
    ("terminal", r"terminal|final|already (terminal|finished|completed|complete|done|succeeded|failed|cancell?ed)"),
    ("duplicate", r"duplicate\w*|replay(ed)?|already (processed|applied|exists|written|sent|seen)"),
    ("not_held", r"not (the |current |its )?(owner|holder|leader|held)|(owner|holder|lease) mismatch|held by|"
                 r"lost (the )?lease|lease lost|no lease"),
)  # fmt: skip


def spaced(text: str) -> str:
    """SQL: the text as the patterns see it, `LeaseAcquired` as `lease acquired`; its first 120 characters."""
    split = f"regexp_replace(left({text}, 120), '([a-z0-9])([A-Z])', '\\1 \\2', 'g')"
    return f"trim(lower(regexp_replace({split}, '[^a-zA-Z0-9]+', ' ', 'g')))"


def decide(con: duckdb.DuckDBPyConnection, texts: Iterable[str]) -> bool:
    """Whether texts of one field are all words for a decision; false where there are none."""
    fits = f"regexp_full_match({spaced('one')}, '{_VERDICT}')"
    found = con.execute(f"select bool_and({fits}) from (select unnest(?::varchar[]) as one)", [[*texts]])
    return found.fetchone() == (True,)


def doubtful(text: str) -> str:
    """SQL: whether a text beside the event speaks of a refusal, a failure or a reply that did not come."""
    found = f"lower(left({text}, 120))"
    return f"""({_says(_positive(text), REJECTED, FAILED, OPEN, rf"already (been )?({DONE})")}
        or regexp_matches({found}, {unwrap.text(NOTHING)}) or regexp_matches({found}, {unwrap.text(NO_SUCCESS)}))"""


def meanings(texts: str) -> str:
    """SQL: what each row of `texts` (kind, decision, outcome, reason, denial: distinct texts or null) means.

    Gives the same five as `*_text`, and `kind` (null where no word of ours is in it), `decision`,
    `outcome`, `reason` as the history has them, `noticed` (it reports no mutation), `telling` (the kind alone
    says that it reports one: an event of a lease, or a single word), `agent` (whom the event names as who did it).

    An event's name tells no success where it is none of ours, nor where other lines have a decision beside it.
    """
    kind = " ".join(f"when {_says('k', words)} then '{label}'" for label, words in KINDS)
    before = f"regexp_replace(k, '{_BEFORE}', ' ', 'g')"
    stronger = " ".join(f"when {_says('k', words)} then '{label}'" for label, words in STRONGER)
    reason = " ".join(f"when {_says('why', words)} then '{label}'" for label, words in REASONS)
    return f"""
        select kind_text, decision_text, outcome_text, reason_text, denial_text, kind, decision,
            case when decision = 'rejected' then case {reason} else reason_text end end as reason,
            case
                when {_says("o", REJECTED, REJECTED_VALUE, FAILED)} or o_denied is not null then 'failed'
                when {_says("o", OPEN, OPEN_VALUE)} then 'unknown'
                when {_says("o", ACCEPTED, ACCEPTED_VALUE)} then 'ok'
                when o is not null then 'unknown'
                else case decision when 'accepted' then 'ok' when 'rejected' then 'failed' else 'unknown' end
            end as outcome,
            d is null and o is null and decision = 'unknown' and {_says("k", LOST, NOTICED)} and not (
                kind is not null and kind not in ('grant', 'renew', 'release', 'poll') and (
                    {_says("k", DONE, _NO_REPLY)} or ({_says("k", FAILED)} and not {_says("k", LOST)}))) as noticed,
            case
                when kind in ('grant', 'renew', 'release') then not contains(kind_text, ' ')
                else kind is not null and not contains(k, ' ')
            end as telling,
            case when d is null and kind <> 'ttl_delete' and {_says("k", rf"({DONE}|released|unlocked) by")}
                then regexp_extract(k, ' by (.*)', 1) end as agent
        from (select *, concat_ws(' ', r, d, s, k) as why,
            case
                when starts_with(d, 'error ') and {_says("k", DONE)} and not {_says("d", REFUSED, REJECTED_VALUE)}
                    then 'unknown'
                when {_refused("d", REJECTED_VALUE)} then 'rejected'
                when {_says("d", REJECTED, REJECTED_VALUE)} then 'unknown'
                when kind = 'grant' and {_says("d", FAILED)} then 'rejected'
                when {_says("d", FAILED, OPEN, OPEN_VALUE)} then 'unknown'
                when d_denied is not null then d_denied
                when {_says("s", REFUSED)} or ({_says("s", REJECTED)} and not {_says("k", DONE)}) then 'rejected'
                when k_denied is not null and {_says("d", ACCEPTED, ACCEPTED_VALUE)} then 'unknown'
                when s is not null and (d is not null or not {_says("k", REJECTED, FAILED)}) then 'unknown'
                when {_says("d", ACCEPTED, ACCEPTED_VALUE)} then 'accepted'
                when d is not null then 'unknown'
                when {_refused("k")} then 'rejected'
                when kind = 'grant' and {_says("k", FAILED)} then 'rejected'
                when s is not null or {_says("k", REJECTED, FAILED, OPEN)} or asked then 'unknown'
                when kind is distinct from 'grant' and {_says("r", REJECTED, FAILED, OPEN)} then 'unknown'
                when k_denied is not null then k_denied
                when {_says(before, ACCEPTED)} and (kind is not null or not contains(k, ' ')) then 'accepted'
                else 'unknown'
            end as decision
        from (select *, case when found in ('ttl_delete', 'delete', 'poll') then case {stronger} else found end
            else found end as kind
        from (select *, case {kind} end as found
        from (select kind as kind_text, decision as decision_text, outcome as outcome_text, reason as reason_text,
            denial as denial_text, {_positive("denial")} as s,
            coalesce(bool_or(not starts_with(coalesce(decision, outcome), 'error ')) over (partition by kind), false)
                as asked,
            {_positive("kind")} as k, {_positive("coalesce(decision, outcome)")} as d,
            {_positive("outcome")} as o, {spaced("reason")} as r, {_denied("kind")} as k_denied,
            {_denied("coalesce(decision, outcome)")} as d_denied, {_denied("outcome")} as o_denied
        from {texts}))))"""


def _says(text: str, *words: str) -> str:
    """SQL: whether one of the words is in the spaced text; false where the text is null."""
    pattern = "|".join(words)
    return rf"coalesce(regexp_matches({text}, '\b({pattern})\b'), false)"


def _positive(text: str) -> str:
    """SQL: the spaced text without the refusals that it denies."""
    return f"regexp_replace({spaced(text)}, '{_NEGATED}', ' ', 'g')"


def _refused(text: str, *words: str) -> str:
    """SQL: whether the spaced text tells a refusal, and of nothing done, or of it only after a plain refusal."""
    rest = f"regexp_replace({text}, '{_ELSEWHERE}', ' ', 'g')"
    first = rf"regexp_extract({rest}, '\b(({REFUSED})( 0)?|{DONE})\b')"
    decisive = f"regexp_full_match({first}, '{REFUSED}')"
    return f"({_says(text, REJECTED, *words)} and ({decisive} or not {_says(rest, DONE)}))"


def _denied(text: str) -> str:
    """SQL: the decision of a text that says that nothing was written, null for any other.

    It is open where the text says besides that something was.
    """
    found = f"lower(left({text}, 120))"
    nothing = unwrap.text(NOTHING)
    rest = f"regexp_replace({found}, {nothing}, ' ', 'g')"
    return f"""case
        when regexp_matches({found}, {nothing}) and not regexp_matches({rest}, {unwrap.text(SOMETHING)})
            then case when regexp_matches({rest}, {unwrap.text(_WROTE)}) then 'unknown' else 'rejected' end
        when regexp_matches({found}, {unwrap.text(NO_SUCCESS)}) then 'unknown' end"""
