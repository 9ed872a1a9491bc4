"""What the words of a log line mean: its event, its decision, its outcome, its reason.

A text decides only where every word of it is known: then it is a *name*, as `lease_acquired`, `LeaseAcquired` or
`Write rejected: stale token` are. Of a sentence (`result saved locally`, `job completed by w2`, `0 rows updated`)
nobody can list what its other words may take back: it tells what the line is about, and decides nothing. A name tells
what *was* done only in the past tense: `write requested` and `writing` stand before the result is known, `write
failed` leaves it open, and a failed acquire is contention.

Patterns see lower case with spaces (`lease acquired`). They are applied once per distinct text, not per line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import duckdb


class Kind(NamedTuple):
    """The words for one kind of mutation: `asked` before its result is known, `done` after a success."""

    label: str
    asked: str
    done: str


# The first of which a text has a word for what was done is its kind, else the first that it names at all: what is
# written may be called a claim or an alert. Whatever was asked may be completed, so that a finish is one alone.
KINDS = (
    Kind("write", r"writ(e|es|ing)|updat(e|es|ing)|sav(e|es|ing)|stor(e|es|ing)|put|persist|insert|upsert|commit|"
                  r"overwrite|patch|replace|transition|status change",
         r"written|wrote|updated|saved|stored|persisted|inserted|upserted|committed|overwritten|patched|replaced"),
    Kind("retry", r"retr(y|ies|ying)|reattempt", r"retried|retry (scheduled|enqueued|queued)"),
    Kind("schedule", r"schedul(e|es|ing)|enqueue|defer", r"scheduled|enqueued|queued|requeued"),
    Kind("alert", r"alert(s|ing)?|alarm", r"alerted|paged|alert (raised|sent)"),
    Kind("poll", r"poll(s|ing)?", r"polled"),
    Kind("effect", r"effect|send(s|ing)?|e ?mail|notif(y|ication)|charge|publish|webhook",
         r"(e ?mail|notification|webhook) sent|emailed|notified|charged|published"),
    Kind("renew", r"renew(s|al|ing)?|heart ?beat|extend(s|ing)?|keep ?alive", r"renewed|extended"),
    # who deletes a lease ends it: the resource, and what is known of it, stays
    Kind("release", r"releas(e|es|ing)|unlock|relinquish|step down|(delete|remove) (the )?(lease|lock)",
         r"released|unlocked|relinquished|stepped down|(deleted|removed) (the )?(lease|lock)|"
         r"(lease|lock) (deleted|removed)"),
    Kind("grant", r"acquir(e|es|ing)|acquisition|obtain|take ?over|took over|taken( over)?|stole(n)?|steal|"
                  r"reassign(ed)?|claim|grant|elect(ed|ion)?|locked|leased|^lock$|^lease$",
         r"acquired|obtained|granted|claimed|became leader|took (the |a )?(lease|lock|leadership|ownership)"),
    Kind("ttl_delete", r"^ttl$|ttl (delete|removal|expiry)|(item|record|row) expired|evict(ed|ion)?",
         r"ttl (deleted|removed|expired)|(deleted|removed|expired) by ttl"),
    Kind("delete", r"delet(e|es|ing|ion)|remov(e|es|ing|al)|purge", r"deleted|removed|purged"),
    Kind("finish", r"complet(e|es|ing|ion)|finish(es|ing)?|finali[sz]e", r"completed|finished|finali[sz]ed"),
)  # fmt: skip
ASKED = "|".join(kind.asked for kind in KINDS)
DONE = "|".join([*(kind.done for kind in KINDS), "done|ok|success|succeeded|successful|accepted|applied"])

# What may stand in any name: what a lease protects, never what a process has of its own (`cache`, `render`, `upload`).
THINGS = (
    r"job|task|report|document|item|record|row|result|response|status|state|resource|object|entity|"
    r"lease|lock|leadership|ownership|the|a|an|of|for|its|was|has been|successfully"
)
REFUSED = (
    r"reject(s|ed|ing|ion)?|refus(e|es|ed|al|ing)|den(y|ies|ied|ying)|disallowed|not (accepted|allowed|applied)|"
    r"condition(al)? (check )?(request )?(failed|not met)( exception)?|precondition failed( exception)?|"
    r"transaction cancell?ed( exception)?|conflict( error| exception)?"
)
# Why it was refused; as the decision itself they say that it was.
STALE = (
    r"stale|outdated|superseded|fenced( off)?|expired|too late|duplicate|mismatch|terminal|lease lost|lost (the )?lease"
    rf"|not (the |current |its )?(owner|holder|leader|held)|already ({DONE})"
)
ABOUT = r"token|fence|fencing|epoch|new|newer|old|older|lower|due to"
FAILED = r"fail(s|ed|ing|ure)?( to)?|unable to|could not|cannot|busy"
# A condition that failed is a refusal in whatever sentence an error puts it.
CODE = r"conditional (check|request) failed|precondition failed|transaction cancell?ed"

# Values of a field that holds the decision, beside names and words such as `stale`.
ACCEPTED_VALUE = r"true|yes|2[0-9][0-9]( ok| created| accepted| no content)?|accept|allow(ed)?|succeed|commit|pass(ed)?"
REJECTED_VALUE = r"false|no|409( conflict)?|412( precondition failed)?"
# Of a field that may hold what was computed: it holds decisions where it has no other values.
_VERDICT = (
    rf"{REFUSED}|stale|fenced|superseded|fail(ed|ure)?|error|time ?out|timed out|unknown|\w*exception|"
    r"accepted|applied|granted|ok|succe(ss|eded)"
)

# No mutation, whatever the line carries: a worker notices, looks, waits or goes on.
BEFORE = r"skip(s|ped|ping)?|start(s|ed|ing)?"  # a write that was not sent, or not yet
NOTICED = (
    rf"{BEFORE}|lost|expired|(read|load|fetch)(s|ed|ing)?|gave up|giving up|wait(s|ed|ing)?|"
    r"paus(e|ed|ing)|resum(e|ed|ing)|sleep(s|ing)?|idle"
)
_AROUND = r"worker|process|leader|input|work|to|on"

# What makes a sentence beside the event doubtful, which costs no more than that the line is left open.
DOUBT = (
    rf"{REFUSED}|{FAILED}|{CODE}|stale|fenced|superseded|duplicate\w*|conflict\w*|not?|nothing|never|without|"
    r"(is|was|were|did|does|could|would|has|have|had)n t|unsuccessful\w*|err\w*|\w*exception|time ?out\w*|timed out|"
    r"deadline exceeded|unknown|unavailable|lost|nack|abort\w*|cancel\w*|throttl\w*|broken pipe|hang up|closed|reset|"
    r"roll(s|ed|ing)? ?back|dry run|would|will|pending|attempting|trying|discard\w*|drop\w*|ignor\w*|skip\w*|"
    r"already|0|zero"
)

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
    """SQL: the text as the patterns see it, `LeaseAcquired` as `lease acquired`; its first 300 characters.

    Only what parts words becomes a space: `✗`, `?` and `=` are words that are not known.
    """
    cut = f"left({text}, 300) || case when length({text}) > 300 then ' and more' else '' end"
    split = f"regexp_replace({cut}, '([a-z0-9])([A-Z])', '\\1 \\2', 'g')"
    return f"trim(lower(regexp_replace({split}, '[\\s_.,:;/()\\[\\]''\"-]+|[!]$', ' ', 'g')))"


def decide(con: duckdb.DuckDBPyConnection, texts: Iterable[str]) -> bool:
    """Whether texts of one field are all words for a decision; false where there are none."""
    fits = f"regexp_full_match({spaced('one')}, '{_VERDICT}')"
    found = con.execute(f"select bool_and({fits}) from (select unnest(?::varchar[]) as one)", [[*texts]])
    return found.fetchone() == (True,)


def doubtful(text: str) -> str:
    """SQL: whether a text beside the event may speak of a refusal, a failure or a reply that did not come."""
    return _says(spaced(text), DOUBT)


def meanings(texts: str) -> str:
    """SQL: what each row of `texts` (kind, decision, outcome, reason, denial: distinct texts or null) means.

    Gives the same five as `*_text`, and `kind` (null where no word of ours is in it), `decision`, `outcome`, `reason`
    as the history has them, `noticed` (it reports no mutation), `telling` (the kind alone says that it reports one: an
    event of a lease, or a single word).

    The decision is the receiver's own word where there is one, unless the event or a denial says otherwise. Else
    whatever speaks must agree: an event that names a success, unless other lines of this event have a word for it, and
    fields and sentences beside it that deny one.
    """
    *others, finish = KINDS
    named = [
        *((k.label, k.done) for k in others),
        *((k.label, k.asked) for k in others),
        (finish.label, "|".join(finish[1:])),
    ]
    kind = " ".join(f"when {_says('k', found)} then '{label}'" for label, found in named)
    reason = " ".join(f"when {_says('why', found)} then '{label}'" for label, found in REASONS)
    refusal = (THINGS, ASKED, STALE, ABOUT)  # what else may stand in the name of one
    return f"""
        select kind_text, decision_text, outcome_text, reason_text, denial_text, kind, decision,
            case when decision = 'rejected' then case {reason} else reason_text end end as reason,
            case
                when o is null
                    then case decision when 'accepted' then 'ok' when 'rejected' then 'failed' else 'unknown' end
                when o_says = 'accepted' then 'ok'
                when o_says = 'rejected' or {_only("o", FAILED)} then 'failed'
                else 'unknown'
            end as outcome,
            d is null and decision = 'unknown' and case
                when kind is null or kind in ('renew', 'release', 'poll') then {_says("k", NOTICED)} and (
                    {_only("k", *refusal, FAILED, NOTICED, _AROUND)}
                    or (regexp_matches(k, '^({NOTICED})\\b') and not {_says("k", ASKED, DONE)}))
                else {_says("k", BEFORE)} and {_only("k", *refusal, BEFORE)}
            end as noticed,
            case
                when kind in ('grant', 'renew', 'release') then not contains(kind_text, ' ')
                else kind is not null and not contains(k, ' ')
            end as telling
        from (select *, concat_ws(' ', r, d, s, k) as why,
            case
                when kind = 'grant' and {_only("d", FAILED)} then 'rejected'
                when d_says = 'accepted' and (k_says = 'rejected' or s is not null or guessed) then 'unknown'
                when d is not null then coalesce(d_says, 'unknown')
                when k_says = 'accepted' and (
                    asked or s is not null or (kind <> 'grant' and {_says("r", DOUBT, STALE)})) then 'unknown'
                else coalesce(k_says, case when kind is not null then s_says end, 'unknown')
            end as decision
        from (select *, {_value("d")} as d_says, {_value("o")} as o_says, {_value("s")} as s_says,
            -- a deletion ends what is known: it is none where a sentence only mentions one
            kind in ('delete', 'ttl_delete') and not {_only("k", THINGS, ASKED, DONE)} as guessed,
            case
                when kind is not null and {_name("k")} then 'accepted'
                when {_says("k", REFUSED)} and {_only("k", *refusal, REFUSED)}
                    and (kind is not null or {_only("k", REFUSED, STALE)}) then 'rejected'
                when {_says("k", CODE)} and {_only("k", THINGS, ASKED, FAILED, CODE, "exception")} then 'rejected'
                when kind = 'grant' and {_says("k", FAILED)} and {_only("k", *refusal, FAILED)} then 'rejected'
            end as k_says
        from (select *, case {kind} end as kind
        from (select kind as kind_text, decision as decision_text, outcome as outcome_text, reason as reason_text,
            denial as denial_text,
            coalesce(bool_or(not starts_with(coalesce(decision, outcome), 'error ')) over (partition by kind), false)
                as asked,
            {spaced("kind")} as k, {spaced("coalesce(decision, outcome)")} as d, {spaced("outcome")} as o,
            {spaced("reason")} as r, {spaced("denial")} as s
        from {texts}))))"""


def _says(text: str, *words: str) -> str:
    """SQL: whether one of the words is in the spaced text; false where the text is null."""
    return rf"coalesce(regexp_matches({text}, '\b({'|'.join(words)})\b'), false)"


def _only(text: str, *words: str) -> str:
    """SQL: whether the spaced text has no other words; false where it is null."""
    one = f"({'|'.join(words)})"
    return f"coalesce(regexp_full_match({text}, '{one}( {one})*'), false)"


def _name(text: str) -> str:
    """SQL: whether the spaced text is the name of one success; false where it is null."""
    other = f"({THINGS}|{ASKED})"
    return f"coalesce(regexp_full_match({text}, '({other} )*({DONE})( {other})*'), false)"


def _value(text: str) -> str:
    """SQL: what the spaced text of a field that decides or denies says: accepted, rejected, or null for neither."""
    said = f"regexp_replace({text}, '^error ', '')"
    return f"""case
        when {_only(said, REJECTED_VALUE)} or ({_says(said, REFUSED, STALE)}
            and {_only(said, THINGS, ASKED, REFUSED, STALE, ABOUT)}) then 'rejected'
        when {_says(text, CODE)} and not {_says(text, DONE)} then 'rejected'
        when {_name(text)} or {_only(text, ACCEPTED_VALUE)} then 'accepted' end"""
