"""An independent judge of the audit's rules: plain Python, slow and literal, written from the sentences alone.

Every rule is one function that takes a row with its surroundings and says 1 (broken), 0 (a case that
held), -1 (a case that cannot be decided) or None (no case). The words are those of `audit/rules.py`;
where its sentences leave something open, a comment that begins with `reading:` says what was chosen.

Three-valued logic throughout: null means *not known*, and a comparison with it is not true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from fencinglab.history import ABSENT, NAMES, NOBODY, REASONS

Row = Any  # a SimpleNamespace: one attribute a history column, and the surroundings that `_place` adds
Value = int | None


def judge(rows: list[dict[str, Any]], skew: int = 0, retention: int | None = None) -> list[dict[str, Value]]:
    """Every rule's value for every row, in the order given; skew and retention in microseconds."""
    placed = _place(rows, skew, retention)
    return [{name: rule(row) for name, rule in JUDGES.items()} for row in placed]


# --------------------------------------------------------------------------- surroundings


def _place(rows: list[dict[str, Any]], skew: int, retention: int | None) -> list[Row]:
    placed = []
    for given in rows:
        strange = set(given) - set(NAMES)
        if strange:
            raise KeyError(f"not a history column: {sorted(strange)}")
        placed.append(SimpleNamespace(**{name: given.get(name) for name in NAMES}))
    for place, row in enumerate(placed):
        row.place, row.skew, row.retention, row.history = place, skew, retention, placed
    # The scope: one resource and order scope. Rows without an order key stand apart, as they came.
    for scope in _grouped(placed, lambda r: (r.resource, r.order_scope, r.order_key is not None)):
        scope.sort(key=lambda r: (r.order_key or "", r.place))
        births = deletes = 0
        for place, row in enumerate(scope):
            births += accepted(row) and row.before_image == ABSENT
            row.incarnation = births + deletes
            deletes += accepted(row) and is_delete(row)
            row.scope, row.scope_earlier = scope, scope[:place]
        # reading: the lease of a row without `lease` is its resource, also beside rows that name one.
        for timeline in _grouped(scope, lambda r: (lease_key(r), r.incarnation)):
            for place, row in enumerate(timeline):
                row.timeline, row.earlier = timeline, timeline[:place]
    return placed


def _grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> list[list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


# --------------------------------------------------------------------------- words


def accepted(r: Row) -> bool:
    return r.decision == "accepted"


def is_grant(r: Row) -> bool:
    return r.kind == "grant"


def is_delete(r: Row) -> bool:
    return r.kind in ("delete", "ttl_delete")


def is_write(r: Row) -> bool:
    """No grant, delete or poll."""
    # reading: a row whose kind is not known is not known to be no grant, so it is no write.
    return r.kind is not None and r.kind not in ("grant", "delete", "ttl_delete", "poll")


def is_release(r: Row) -> bool:
    """Kind release, or a holder before and nobody after."""
    # reading: a delete is a delete, also where a holder stood before and nobody after.
    return r.kind == "release" or (somebody(r.before_holder) and r.after_holder == NOBODY and not is_delete(r))


def somebody(holder: str | None) -> bool:
    return holder is not None and holder != NOBODY


def less(one: int | None, other: int | None) -> bool:
    """Known to be less."""
    return one is not None and other is not None and one < other


def rose(before: int | None, after: int | None) -> bool:
    return less(before, after)


def changed(before: Any, after: Any) -> bool:
    return before is not None and after is not None and before != after


def first_known(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def highest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def lowest(values: Iterable[Any]) -> Any:
    return min((value for value in values if value is not None), default=None)


def ordered(r: Row) -> bool:
    return r.order_key is not None


def guarded(r: Row) -> bool:
    return r.protected is not False


def known_token(r: Row) -> int | None:
    """`token` with `fenced` true."""
    return r.token if r.fenced is True else None


def own_token_not_known(r: Row) -> bool:
    """Its own token is not known (`fenced` null, guarded)."""
    # reading: also where it is known that one was presented (`fenced` true) but not which: null is not known.
    return r.token is None and r.fenced is not False and guarded(r)


def presents_none(r: Row) -> bool:
    """No token to compare, and not for want of knowledge: the order rules could not have fired on it."""
    # reading: a case is a row on which the rule could have fired (DESIGN, rules of the audit), so this is none.
    return r.token is None and not own_token_not_known(r)


def only_presumed(r: Row) -> bool:
    """A token that stands in the item and is taken for the writer's: there, but `fenced` is not known."""
    return r.token is not None and r.fenced is None


def slack(r: Row) -> int:
    return (r.at_precision or 0) + r.skew


def lease_key(r: Row) -> str:
    """The lease, else the resource."""
    return first_known(r.lease, r.resource)


def left_token(r: Row) -> int | None:
    """The token that a row left: `after_token`, or a grant's `token`."""
    return first_known(r.after_token, r.token if is_grant(r) else None)


def granted_token(r: Row) -> int | None:
    """A grant's own token."""
    # reading: what it left, else what it presented, as for the newest token; `fenced` is not asked of a grant.
    return left_token(r)


def newest_token(r: Row) -> int | None:
    """`current_token`; else the greatest of `before_token` and the tokens that earlier accepted rows left."""
    left = [left_token(e) for e in r.earlier if accepted(e)]
    return first_known(r.current_token, highest([r.before_token, *left]))


def unseen_token(r: Row) -> int | None:
    """The greatest token that a write presented to this resource, if the resource shows no grant and no holder."""
    rows = [e for e in r.history if e.resource == r.resource]
    if any((accepted(e) and is_grant(e)) or somebody(e.before_holder) or e.current_token is not None for e in rows):
        return None
    return highest(e.token for e in rows if accepted(e) and is_write(e))


def doubted_token(r: Row) -> int | None:
    """The greatest token of earlier grants of its timeline whose decision is not known."""
    return highest(granted_token(e) for e in r.earlier if is_grant(e) and e.decision == "unknown")


def oldest_token(r: Row) -> int | None:
    """The least of this row's token, its `before_token`, and what each earlier accepted row shows first."""
    shown = [first_known(e.before_token, e.after_token, e.token) for e in r.earlier if accepted(e)]
    return lowest([r.token, r.before_token, *shown])


def older_token(r: Row) -> int | None:
    """The highest over the earlier accepted rows of the scope, all incarnations and leases."""
    return highest(first_known(e.after_token, e.token, e.before_token) for e in r.scope_earlier if accepted(e))


def names_other_lease(r: Row) -> bool:
    """It has a token of a lease that is another key than the resource."""
    return r.lease is not None and r.lease != r.resource and r.token is not None


def earlier_left_terminal(r: Row) -> bool:
    # reading: any earlier row, also where a later one left the resource unfinished again.
    return any(accepted(e) and e.after_terminal is True for e in r.earlier)


def already_terminal(r: Row) -> bool:
    """`before_terminal`, else an earlier accepted row that left the resource terminal."""
    return r.before_terminal if r.before_terminal is not None else earlier_left_terminal(r)


def makes_terminal(r: Row) -> bool:
    return r.after_terminal is True and not already_terminal(r)


def terminal_only_from_unordered(r: Row) -> bool:
    """Whether it was terminal is only known from rows without order."""
    return r.before_terminal is None and not ordered(r) and earlier_left_terminal(r)


def raised_expiry(r: Row) -> bool:
    return rose(r.before_expires_at, r.after_expires_at)


def rises_on_renewals(r: Row) -> bool:
    """The token of this resource also rises on renewals, so it is a version and orders nothing."""
    # reading: some accepted row of the resource, wherever it stands, raised the token under one holder: it is
    # labelled a renewal, or came before that holder's lease ran out (DESIGN, easy to get wrong 3; slack: 9).
    return any(
        e.resource == r.resource
        and accepted(e)
        and rose(e.before_token, e.after_token)
        and somebody(e.before_holder)
        and e.before_holder == e.after_holder
        and (e.kind == "renew" or (e.at is not None and less(e.at + slack(e), e.before_expires_at)))
        for e in r.history
    )


# --------------------------------------------------------------------------- unsafe, core


def token_went_back(r: Row) -> Value:
    if not is_write(r) or r.decision not in ("accepted", "unknown"):
        return None
    # Any token that was presented counts, whether or not `fenced`.
    top = highest(e.token for e in r.earlier if accepted(e) and is_write(e))
    if top is None or presents_none(r):
        return None
    lower = less(r.token, top)
    if r.decision == "unknown":
        # reading: "would be broken" without order means lower than those that stand before it.
        return -1 if lower else None
    if rises_on_renewals(r) or own_token_not_known(r):
        return -1
    # reading: the tokens that differ are its own and that highest one.
    if not ordered(r) and r.token is not None and r.token != top:
        return -1
    return int(lower)


def stale_write_accepted(r: Row) -> Value:
    if not is_write(r) or r.decision not in ("accepted", "unknown"):
        return None
    newest = newest_token(r)
    shown_there = token_went_back(r) == 1
    doubted = accepted(r) and less(r.token, doubted_token(r)) and not shown_there
    if newest is None:
        return -1 if doubted or (accepted(r) and less(r.token, unseen_token(r)) and not shown_there) else None
    if doubted and not less(r.token, newest):
        return -1
    if not less(oldest_token(r), newest) or presents_none(r):
        return None
    lower = less(r.token, newest)
    if r.decision == "unknown":
        return -1 if lower else None
    # reading: "not counted again" and "shown there only" mean no case here, neither broken nor held.
    if shown_there:
        return None
    if rises_on_renewals(r) or own_token_not_known(r):
        return -1
    if only_presumed(r) and not lower:
        return -1
    held_is_above = less(r.token, r.current_token) or (r.current_token is None and less(r.token, r.before_token))
    # reading: without order the row's own `before_token` decides both ways, as `current_token` does.
    if not ordered(r) and r.current_token is None and (r.before_token is None or (lower and not held_is_above)):
        return -1
    # reading: an earlier grant (the case is a write *after* a takeover), or a holder or current token on this row,
    # is "visible"; a row that is lower than a token known to be granted is broken without them.
    grant_seen = any(accepted(e) and is_grant(e) for e in r.earlier)
    if not grant_seen and r.before_holder is None and r.current_token is None and not lower:
        return -1
    return int(lower)


def token_shared(r: Row) -> Value:
    # reading: of one lease, on whatever resource and in whatever scope, the rows with the same count of incarnations.
    alike = [e for e in r.history if lease_key(e) == lease_key(r) and e.incarnation == r.incarnation]

    # One after_token under two holders; this row's is not the alphabetically first.
    # reading: only accepted rows leave a holder; nobody is no holder.
    def holds(e: Row) -> bool:
        return accepted(e) and e.after_token is not None and somebody(e.after_holder)

    # One known token presented by two writers.
    # reading: rejected rows do not count; a refused acquire may well have tried the number that another got.
    def presents(e: Row) -> bool:
        return e.decision in ("accepted", "unknown") and known_token(e) is not None and e.writer is not None

    under_two_holders = holds(r) and any(
        holds(e) and e.after_token == r.after_token and e.after_holder < r.after_holder for e in alike
    )
    by_two_writers = presents(r) and any(presents(e) and e.token == r.token and e.writer < r.writer for e in alike)
    # reading: such a row is broken also where it is no second grant.
    if under_two_holders or by_two_writers:
        return 1
    if not accepted(r) or not is_grant(r) or not any(accepted(e) and is_grant(e) for e in r.earlier):
        return None
    return -1 if granted_token(r) is None else 0


def holder_without_token(r: Row) -> Value:
    # reading: "both set" means somebody before and somebody after.
    if not (accepted(r) and somebody(r.before_holder) and somebody(r.after_holder)):
        return None
    if r.before_holder == r.after_holder:
        return None
    if r.before_token is None or r.after_token is None:
        return -1
    return int(not r.after_token > r.before_token)


def unfenced_write(r: Row) -> Value:
    # reading: a holder is known where the row names somebody before it; one after it may be its own doing.
    after_a_grant = (
        (newest_token(r) or 0) > 0 or any(accepted(e) and is_grant(e) for e in r.earlier) or somebody(r.before_holder)
    )
    presented = highest(e.token for e in r.earlier if accepted(e) and is_write(e)) or 0
    after_a_token = r.fenced is False and presented > 0
    if not (accepted(r) and is_write(r) and guarded(r) and (after_a_grant or after_a_token)):
        return None
    if r.fenced is False and r.protected is True:
        return 1
    if r.fenced is None or (r.fenced is False and r.protected is None):
        return -1
    return 0


def terminal_twice(r: Row) -> Value:
    if not accepted(r) or is_delete(r) or r.kind == "poll":
        return None
    finds = already_terminal(r)
    # reading: it leaves the terminal state where it is known not to be terminal afterwards.
    if not (makes_terminal(r) or (finds and r.after_terminal is not False)):
        return None
    # Of two rows that are both called a finish one came second, in whatever order.
    if finds and r.kind == "finish" and any(accepted(e) and e.kind == "finish" for e in r.earlier):
        return 1
    if terminal_only_from_unordered(r):
        return -1
    if not finds:
        return 0
    version_rose = rose(r.before_terminal_version, r.after_terminal_version)
    # reading: changed within this record; a side that is not known is not compared with an earlier row.
    if version_rose or changed(r.before_value, r.after_value) or changed(r.before_status, r.after_status):
        return 1
    if r.kind == "finish":
        return 1
    # reading: a value or version is known where both sides of it are.
    value_known = r.before_value is not None and r.after_value is not None
    version_known = r.before_terminal_version is not None and r.after_terminal_version is not None
    other_work = r.kind in ("grant", "renew", "release", "alert", "retry", "schedule")
    return -1 if not value_known and not version_known and guarded(r) and not other_work else 0


def terminal_left(r: Row) -> Value:
    if not accepted(r) or is_delete(r):
        return None
    finds = already_terminal(r)
    # reading: the status after it is known where it is known whether it is terminal (`after_terminal`).
    if not (makes_terminal(r) or (finds and r.after_terminal is not None)):
        return None
    broken = finds and r.after_terminal is False
    # reading: what is terminal afterwards did not leave, whatever it found, so that it is decided.
    return -1 if broken and terminal_only_from_unordered(r) else int(broken)


# --------------------------------------------------------------------------- unsafe


def image_went_back(r: Row) -> Value:
    if not accepted(r) or is_delete(r) or r.before_token is None or r.after_token is None:
        return None
    return int(r.after_token < r.before_token)


def state_went_back(r: Row) -> Value:
    if not accepted(r) or r.fell is None:
        return None
    return int(r.fell != "")


def token_restarted(r: Row) -> Value:
    older = older_token(r)
    if not accepted(r) or older is None:
        return None
    if any(names_other_lease(e) and e.lease != lease_key(r) for e in r.scope_earlier):
        return None
    # reading: it starts an incarnation where it finds no item, or where the row before it is an accepted delete.
    previous = r.scope_earlier[-1]
    starts = r.before_image == ABSENT or (accepted(previous) and is_delete(previous))
    if is_grant(r):
        finds_both = r.before_token is not None and somebody(r.before_holder)
        token = None if finds_both else granted_token(r)
    else:
        presented = known_token(r)
        token = presented if is_write(r) and starts and presented != 0 else None
    if token is None:
        return None
    if not ordered(r):
        return -1
    return int(token < older or (is_grant(r) and token == older and (starts or r.before_holder == NOBODY)))


def operation_twice(r: Row) -> Value:
    if not accepted(r) or r.operation is None:
        return None
    return int(any(e.operation == r.operation for e in _accepted_before(r)))


def _accepted_before(r: Row) -> list[Row]:
    """The accepted rows of the same resource and incarnation before it (order key, then row)."""

    # reading: in whatever scope, by the count of incarnations; rows without order key stand after the others.
    def place(e: Row) -> tuple[bool, str, int]:
        return (e.order_key is None, e.order_key or "", e.place)

    return [
        e
        for e in r.history
        if e.resource == r.resource and e.incarnation == r.incarnation and accepted(e) and place(e) < place(r)
    ]


def alert_twice(r: Row) -> Value:
    if not accepted(r) or r.alert is None:
        return None
    # reading: the terminal version after the row; rows on which it is not known count as of one version.
    version = r.after_terminal_version
    return int(any(e.alert is not None and e.after_terminal_version == version for e in _accepted_before(r)))


def unfenced_delete(r: Row) -> Value:
    if not accepted(r) or r.kind == "ttl_delete" or not (r.kind == "delete" or is_release(r)) or r.writer is None:
        return None
    held = newest_token(r) if ordered(r) else r.before_token
    newest_known = held is not None or r.current_token is not None
    another = somebody(r.before_holder) and r.before_holder != r.writer
    # reading: a presumed token counts where it is lower; nothing that says terminal means not terminal.
    if less(r.token, held) or (another and not already_terminal(r)):
        return 1
    return -1 if r.before_holder is None and (r.token is None or not newest_known) else 0


def tokens_as_text(r: Row) -> Value:
    if r.token_width is None:
        return None
    narrowest = lowest(e.token_width for e in r.scope_earlier)
    return int(narrowest is not None and r.token_width != narrowest)


def scopes_mixed(r: Row) -> Value:
    if not names_other_lease(r):
        return None
    return int(any(names_other_lease(e) and e.lease != r.lease for e in r.scope_earlier))


def ttl_removed_live(r: Row) -> Value:
    if not accepted(r) or r.kind != "ttl_delete":
        return None
    # reading: only `before_terminal` says it, because this rule needs it: without it nothing can be decided.
    if r.before_terminal is None:
        return -1
    if r.before_terminal is False:
        return 1
    if r.retention is None:
        return 0
    # reading: the transitions are the accepted rows that make the resource terminal; the time of the latest is
    # the greatest known `at` among them.
    finished = highest(e.at for e in r.timeline if e is not r and accepted(e) and makes_terminal(e))
    if r.at is None or finished is None:
        return -1
    return int(r.at + slack(r) < finished + r.retention)


# --------------------------------------------------------------------------- window


def leases_overlap(r: Row) -> Value:
    # reading: the new holder is `after_holder`, whoever wrote.
    another = somebody(r.before_holder) and somebody(r.after_holder) and r.before_holder != r.after_holder
    if not accepted(r) or not is_grant(r) or not another or r.before_expires_at is None or r.at is None:
        return None
    return int(r.before_expires_at > r.at + slack(r))


def late_write_accepted(r: Row) -> Value:
    if not (accepted(r) and is_write(r) and guarded(r)) or r.before_expires_at is None or r.at is None:
        return None
    # reading: a token that is not known is not known to be older.
    if less(r.token, newest_token(r)):
        return None
    if not r.at > r.before_expires_at + slack(r):
        return 0
    # reading: "not known" is a null token, also where `fenced` is false: whose write it was is open.
    return 1 if r.token is not None else -1


def renewed_after_release(r: Row) -> Value:
    # reading: a row whose kind is not known is not known to be no grant or delete.
    if not accepted(r) or r.kind is None or is_grant(r) or is_delete(r):
        return None
    if not (r.kind == "renew" or raised_expiry(r)):
        return None
    return -1 if r.before_holder is None else int(r.before_holder == NOBODY)


# --------------------------------------------------------------------------- cost


def work_after_terminal(r: Row) -> Value:
    if not accepted(r) or is_delete(r) or not (makes_terminal(r) or already_terminal(r)):
        return None
    work = r.kind in ("grant", "renew", "retry", "schedule", "poll") or raised_expiry(r)
    broken = already_terminal(r) and work
    # reading: what is no such work is decided, whatever it found.
    return -1 if broken and terminal_only_from_unordered(r) else int(broken)


def went_on_after_rejection(r: Row) -> Value:
    stale = rejected_stale(r) == 1
    if stale and (not ordered(r) or r.writer is None):
        return -1
    if not ordered(r):
        # reading: without order no row is known to be a later one.
        return None
    known = r.writer is not None and r.token is not None
    refused_before = known and any(
        e.writer == r.writer and e.token == r.token and rejected_stale(e) == 1 for e in r.scope_earlier
    )
    return 1 if refused_before else (0 if stale else None)


def _refused(r: Row) -> bool:
    """A rejection of anything but a grant."""
    # reading: a row whose kind is not known is not known to be anything but a grant.
    return r.decision == "rejected" and r.kind is not None and not is_grant(r)


def _own_attempt(r: Row) -> bool:
    """The same resource and operation also has a row that was not rejected."""
    # reading: in any scope, incarnation or order; a decision that is null is not known to be no rejection.
    return r.operation is not None and any(
        e.resource == r.resource and e.operation == r.operation and e.decision in ("accepted", "unknown")
        for e in r.history
    )


def _no_known_reason(r: Row) -> bool:
    return r.reason not in REASONS


def _held(r: Row) -> int | None:
    """The token held: `before_token`, else `current_token`, else (with order) the highest granted earlier."""
    # reading: what any earlier accepted row left had been granted, as for the newest token.
    granted = highest(left_token(e) for e in r.earlier if accepted(e)) if ordered(r) else None
    return first_known(r.before_token, r.current_token, granted)


def rejected_stale(r: Row) -> Value:
    if not _refused(r):
        return None
    if _own_attempt(r):
        return 0
    if r.reason in ("newer_token", "terminal", "duplicate"):
        return int(r.reason == "newer_token")
    # reading: a null token is not known, also where `fenced` is false.
    if r.token is None or _held(r) is None:
        return -1 if _no_known_reason(r) else 0
    return int(less(r.token, _held(r)))


def rejected_late(r: Row) -> Value:
    if not _refused(r):
        return None
    # reading: "not stale, not done" means not found to be so; undecided there excludes nothing here.
    if rejected_stale(r) == 1 or rejected_done(r) == 1 or _own_attempt(r):
        return 0
    if not _no_known_reason(r):
        return int(r.reason == "expired")
    held = _held(r)
    if r.token is None or held is None:
        return -1
    if r.at is None or r.before_expires_at is None:
        return -1
    # reading: a token above the one held was not refused for its time; with the one held the times decide.
    return int(r.token == held and not r.at < r.before_expires_at)


def rejected_done(r: Row) -> Value:
    if not _refused(r):
        return None
    if rejected_stale(r) == 1 or _own_attempt(r):
        return 0
    # reading: the stored item is the one that came with the refusal (`before_terminal`), not an earlier row.
    if r.reason in ("terminal", "duplicate") or r.before_terminal is True:
        return 1
    return -1 if _no_known_reason(r) and r.before_terminal is None else 0


def own_success_rejected(r: Row) -> Value:
    if not _refused(r):
        return None
    return -1 if r.operation is None else int(_own_attempt(r))


# --------------------------------------------------------------------------- evidence


def chain_broken(r: Row) -> Value:
    # reading: the row before it is the nearest one, whatever its decision.
    if not accepted(r) or not ordered(r) or r.before_image is None or not r.scope_earlier:
        return None
    left = r.scope_earlier[-1].after_image
    return None if left is None else int(r.before_image != left)


def order_unknown(r: Row) -> Value:
    # reading: a decision that is null is not known to be no rejection.
    if r.decision not in ("accepted", "unknown"):
        return None
    scopes = {
        e.order_scope
        for e in r.history
        if e.resource == r.resource and e.order_scope is not None and e.decision in ("accepted", "unknown")
    }
    return int(not ordered(r) or len(scopes) > 1)


def time_went_back(r: Row) -> Value:
    latest = highest(e.at for e in r.scope_earlier)
    if not ordered(r) or r.at is None or latest is None:
        return None
    return int(r.at + slack(r) < latest)


def clock_mixed(r: Row) -> Value:
    if r.expiry_unit is None:
        return None
    first = lowest(e.expiry_unit for e in r.scope_earlier)
    return int(first is not None and r.expiry_unit != first)


JUDGES: dict[str, Callable[[Row], Value]] = {
    rule.__name__: rule
    for rule in (
        token_went_back, stale_write_accepted, token_shared, holder_without_token, unfenced_write,
        terminal_twice, terminal_left, image_went_back, state_went_back, token_restarted, operation_twice,
        alert_twice, unfenced_delete, tokens_as_text, scopes_mixed, ttl_removed_live, leases_overlap,
        late_write_accepted, renewed_after_release, work_after_terminal, went_on_after_rejection,
        rejected_stale, rejected_late, rejected_done, own_success_rejected, chain_broken, order_unknown,
        time_went_back, clock_mixed,
    )
}  # fmt: skip
