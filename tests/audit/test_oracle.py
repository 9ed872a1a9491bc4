"""The oracle against tiny histories written by hand: for each rule one that breaks it, one that holds it,
one that cannot be decided, with the values that the sentences of `audit/rules.py` give."""

from __future__ import annotations

from typing import Any

import oracle
import pytest
from histories import START, order_key

from fencinglab.audit.rules import RULES

Row = dict[str, Any]
S = 1_000_000
T = START
NO_ORDER = {"order_key": None, "order_scope": None}


def row(kind: str | None, **given: Any) -> Row:
    return {"resource": "r", "kind": kind, "decision": "accepted", "order_scope": "log"} | given


def write(token: int | None = None, **given: Any) -> Row:
    return row("write", token=token, **({"fenced": True} if token is not None else {}) | given)


def grant(token: int | None, holder: str | None = None, **given: Any) -> Row:
    return row("grant", token=token, fenced=True, after_token=token, after_holder=holder, writer=holder, **given)


def refused(token: int | None = None, **given: Any) -> Row:
    return write(token, decision="rejected", **given)


def done(**given: Any) -> Row:
    return row("finish", before_terminal=False, after_terminal=True, after_terminal_version=1, after_value="v", **given)


def found(kind: str = "write", **given: Any) -> Row:
    """A row that finds the resource terminal and leaves it so."""
    return row(kind, before_terminal=True, after_terminal=True, **given)


def values(rule: str, rows: list[Row], **settings: Any) -> list[int | None]:
    """The rule's value for each row; rows without an order key get the order in which they stand."""
    placed = [{"order_key": order_key(i), "source": f"s{i:02d}"} | given for i, given in enumerate(rows)]
    return [verdict[rule] for verdict in oracle.judge(placed, **settings)]


def agree(rule: str, *table: tuple[list[Row], list[int | None]], **settings: Any) -> None:
    for rows, expected in table:
        assert values(rule, rows, **settings) == expected, f"{rule}: {rows}"


def test_every_rule_has_a_judge() -> None:
    """The oracle judges the rules of `audit/rules.py`, in their order."""
    assert list(oracle.JUDGES) == [rule.name for rule in RULES]


def test_values_come_in_the_order_given() -> None:
    """The order of the list is not the order of the history, and each value stays with its row."""
    rows = [{"order_key": order_key(2)} | write(1), {"order_key": order_key(1)} | write(2)]
    assert values("token_went_back", rows) == [1, None]


def test_unknown_columns_are_refused() -> None:
    """A slip in a column's name is an error, not a null."""
    with pytest.raises(KeyError):
        oracle.judge([{"resource": "r", "tokn": 1}])


def test_incarnations() -> None:
    """A row that finds no item starts an incarnation, so does the row after an accepted delete; both count."""
    rows = [write(), row("delete"), write(before_image=0), write()]
    placed = oracle._place([{"order_key": order_key(i)} | r for i, r in enumerate(rows)], 0, None)
    assert [r.incarnation for r in placed] == [0, 0, 2, 2]


def test_token_went_back() -> None:
    """An accepted write below an earlier accepted write's token is broken; grants and rejections are no writes."""
    agree(
        "token_went_back",
        ([write(2), write(1)], [None, 1]),
        ([write(2), write(2), write(3)], [None, 0, 0]),
        ([grant(2), write(1)], [None, None]),
        ([refused(2), write(1)], [None, None]),
        ([write(2), row("poll", token=1)], [None, None]),
        # A presented token counts whether or not it is known to be the writer's.
        ([write(2, fenced=None), write(1, fenced=None)], [None, 1]),
        # Known to have presented none: the rule could not have fired.
        ([write(2), write(fenced=False)], [None, None]),
        # Not known which, unless the change is none of the lease's business.
        ([write(2), write()], [None, -1]),
        ([write(2), write(fenced=True)], [None, -1]),
        ([write(2), write(protected=False)], [None, None]),
        # Another lease, another incarnation, another scope: not compared.
        ([write(2), write(1, lease="other")], [None, None]),
        ([write(2), row("delete"), write(1)], [None, None, None]),
        ([write(2), write(1, order_scope="b")], [None, None]),
        # No order: only equal tokens decide.
        ([write(2, **NO_ORDER), write(1, **NO_ORDER)], [None, -1]),
        ([write(2, **NO_ORDER), write(2, **NO_ORDER)], [None, 0]),
        # An unknown decision is a case only where it would be broken.
        ([write(2), write(1, decision="unknown")], [None, -1]),
        ([write(2), write(2, decision="unknown")], [None, None]),
        ([write(2), write(1, decision="rejected")], [None, None]),
    )


def test_a_counter_that_rises_on_renewals_orders_nothing() -> None:
    """Where a renewal raised the token, the order rules cannot decide."""
    rise = {"before_token": 1, "after_token": 2, "before_holder": "a", "after_holder": "a"}
    renewal = row("renew", **rise)
    before_expiry = row("grant", at=T, before_expires_at=T + S, **rise)
    after_expiry = before_expiry | {"at": T + 2 * S}
    agree(
        "token_went_back",
        ([renewal, write(2), write(1)], [None, None, -1]),
        ([before_expiry, write(2), write(1)], [None, None, -1]),
        ([after_expiry, write(2), write(1)], [None, None, 1]),
    )
    agree("stale_write_accepted", ([renewal, write(1, before_token=2)], [None, -1]))


def test_stale_write_accepted() -> None:
    """An accepted write below the newest granted token is broken, with the grant's row or the record's own evidence."""
    agree(
        "stale_write_accepted",
        ([grant(1, "a"), grant(2, "b"), write(1)], [None, None, 1]),
        ([grant(1, "a"), grant(2, "b"), write(2)], [None, None, 0]),
        # No takeover, no case.
        ([grant(1, "a"), write(1)], [None, None]),
        ([write(1, current_token=2)], [1]),
        ([write(1, before_token=2, before_holder="b")], [1]),
        # Rows of token_went_back are shown there only.
        ([grant(1, "a"), grant(2, "b"), write(2), write(1)], [None, None, 0, None]),
        # Not known, or only presumed and not lower.
        ([grant(1, "a"), grant(2, "b"), write()], [None, None, -1]),
        ([grant(1, "a"), grant(2, "b"), write(2, fenced=None)], [None, None, -1]),
        ([grant(1, "a"), grant(2, "b"), write(1, fenced=None)], [None, None, 1]),
        # No grant, holder or current token is visible.
        ([write(1, after_token=1), write(2, after_token=2), write(2)], [-1, None, -1]),
        # Then a lower token than another's is open: whether the newer one was granted before is not seen.
        ([write(1), write(2)], [-1, None]),
        ([write(1), write(1)], [None, None]),
        ([write(1), write(2, resource="other")], [None, None]),
        ([write(1), write(2), grant(3, "c")], [None, None, None]),
        ([write(2), write(1)], [None, None]),  # shown there
        # Without order a lower `before_token` decides, or the current token.
        ([write(1, before_token=2, before_holder="b", **NO_ORDER)], [1]),
        ([write(1, current_token=2, **NO_ORDER)], [1]),
        ([grant(1, "a", **NO_ORDER), grant(2, "b", **NO_ORDER), write(2, **NO_ORDER)], [None, None, -1]),
        ([grant(1, "a"), grant(2, "b"), write(1, decision="unknown")], [None, None, -1]),
        ([grant(1, "a"), grant(2, "b"), write(2, decision="unknown")], [None, None, None]),
    )


def test_token_shared() -> None:
    """One token under two holders or from two writers is broken on the row that is not alphabetically first."""
    agree(
        "token_shared",
        ([grant(1, "a"), grant(1, "b")], [None, 1]),
        # In any order: the row of the later name is the one, also where it came first.
        ([grant(1, "b"), grant(1, "a")], [1, 0]),
        ([write(1, writer="a"), write(1, writer="b")], [None, 1]),
        ([write(1, writer="a"), write(1, writer="b", fenced=None)], [None, None]),
        ([write(1, writer="a"), write(1, writer="b", lease="other")], [None, None]),
        ([write(1, writer="a", lease="l"), write(1, writer="b", lease="l", resource="other")], [None, 1]),
        ([write(1, writer="a"), write(1, writer="b", decision="unknown")], [None, 1]),
        ([grant(1, "a"), grant(2, "b")], [None, 0]),
        ([grant(1, "a"), grant(None, "b")], [None, -1]),
        ([grant(1, "a"), refused(1, writer="b")], [None, None]),
    )


def test_holder_without_token() -> None:
    """A change of holder needs a higher token after it than before."""
    hands = {"before_holder": "a", "after_holder": "b"}
    agree(
        "holder_without_token",
        ([write(before_token=1, after_token=1, **hands)], [1]),
        ([write(before_token=1, after_token=2, **hands)], [0]),
        ([write(before_token=1, **hands)], [-1]),
        ([write(before_holder="", after_holder="b", before_token=1, after_token=1)], [None]),
        ([write(before_holder="a", after_holder="a", before_token=1, after_token=1)], [None]),
    )


def test_unfenced_write() -> None:
    """After a grant, a protected change by a write that presented no token is broken."""
    agree(
        "unfenced_write",
        ([grant(1, "a"), write(fenced=False, protected=True)], [None, 1]),
        ([write(fenced=False, protected=True, before_holder="a")], [1]),
        ([grant(1, "a"), write(1, protected=True)], [None, 0]),
        ([grant(1, "a"), write(fenced=False, protected=None)], [None, -1]),
        ([grant(1, "a"), write(fenced=None, protected=True)], [None, -1]),
        # A token that a write presented was granted, if in another item; without a grant it puts nothing to the test.
        ([write(1, protected=True), write(fenced=False, protected=True)], [None, 1]),
        ([write(1, protected=True), write(fenced=False, protected=None)], [None, -1]),
        ([write(0, protected=True), write(fenced=False, protected=True)], [None, None]),
        ([write(1, protected=True), write(fenced=None, protected=True), write(1, protected=True)], [None, None, None]),
        # Unrelated changes, and writes before any grant, are no case.
        ([grant(1, "a"), write(fenced=False, protected=False)], [None, None]),
        ([write(fenced=False, protected=True), grant(1, "a")], [None, None]),
        ([grant(1, "a"), row("delete", fenced=False, protected=True)], [None, None]),
    )


def test_terminal_twice() -> None:
    """A row that finds the resource terminal and finishes it again, or changes its result, is broken."""
    version = {"before_terminal_version": 1, "after_terminal_version": 1}
    agree(
        "terminal_twice",
        ([done(), found("finish")], [0, 1]),
        ([done(), found(before_value="v", after_value="w")], [0, 1]),
        ([done(), found(before_terminal_version=1, after_terminal_version=2)], [0, 1]),
        ([done(), found(before_status="done", after_status="failed")], [0, 1]),
        ([done(), found(before_value="v", after_value="v")], [0, 0]),
        ([done(), found(**version)], [0, 0]),
        # Found terminal by the earlier row alone.
        ([done(), row("finish", after_terminal=True)], [0, 1]),
        ([done(), found()], [0, -1]),
        ([done(), found(protected=False)], [0, 0]),
        ([done(**NO_ORDER), row("finish", after_terminal=True, **NO_ORDER)], [0, 1]),
        ([done(**NO_ORDER), write(after_terminal=True, **NO_ORDER)], [0, -1]),
        # What leaves it belongs to the next rule; deletes and polls are none.
        ([done(), row("write", before_terminal=True, after_terminal=False)], [0, None]),
        ([done(), found("poll"), found("delete")], [0, None, None]),
    )


def test_terminal_left() -> None:
    """A terminal resource that is unfinished afterwards is broken."""
    agree(
        "terminal_left",
        ([done(), write(before_terminal=True, after_terminal=False)], [0, 1]),
        ([done(), write(after_terminal=False)], [0, 1]),
        ([done(), found()], [0, 0]),
        ([done(), write(before_terminal=True)], [0, None]),
        ([done(**NO_ORDER), write(after_terminal=False, **NO_ORDER)], [0, -1]),
        ([done(**NO_ORDER), write(after_terminal=True, **NO_ORDER)], [0, 0]),
        ([done(), row("delete", before_terminal=True, after_terminal=False)], [0, None]),
    )


def test_image_went_back() -> None:
    """Inside one record the stored token may not fall."""
    agree(
        "image_went_back",
        ([write(before_token=2, after_token=1)], [1]),
        ([write(before_token=2, after_token=2)], [0]),
        ([write(before_token=2)], [None]),
        ([row("delete", before_token=2, after_token=0)], [None]),
        ([write(before_token=2, after_token=1, **NO_ORDER)], [1]),
    )


def test_state_went_back() -> None:
    """A named field that fell is broken; an empty name says that the declared fields are known and none fell."""
    agree("state_went_back", ([write(fell="attempt"), write(fell=""), write()], [1, 0, None]))


def test_token_restarted() -> None:
    """What starts again below an older token is broken; a grant also at it, after a birth or a release."""
    birth = {"before_image": 0}
    agree(
        "token_restarted",
        ([grant(2, "a"), row("delete"), grant(1, "b", **birth)], [None, None, 1]),
        ([grant(2, "a"), row("delete"), grant(2, "b", **birth)], [None, None, 1]),
        ([grant(2, "a"), row("delete"), grant(3, "b", **birth)], [None, None, 0]),
        ([grant(2, "a"), grant(2, "b", before_holder="", before_token=2)], [None, 1]),
        ([grant(2, "a"), grant(2, "a")], [None, 0]),
        # It finds a holder and a token: no start.
        ([grant(2, "a"), grant(1, "b", before_holder="a", before_token=2)], [None, None]),
        ([grant(2, "a", **NO_ORDER), grant(3, "b", **NO_ORDER)], [None, -1]),
        # A late write makes a deleted item again; one with the newest token, or of no token yet, is no start.
        ([grant(2, "b"), row("delete"), write(1, **birth), write(1)], [None, None, 1, None]),
        ([grant(2, "b"), row("delete"), write(1), write(1)], [None, None, 1, None]),
        ([grant(2, "b"), row("delete"), write(2, **birth)], [None, None, 0]),
        ([grant(2, "b"), row("delete"), write(0, **birth), grant(3, "c")], [None, None, None, 0]),
        ([grant(2, "b"), row("delete"), write(1, fenced=None, **birth)], [None, None, None]),
    )


def test_operation_twice() -> None:
    """The second accepted row of one operation is broken; a refused repetition is not."""
    agree(
        "operation_twice",
        ([write(operation="o"), write(operation="o")], [0, 1]),
        ([write(operation="o"), write(operation="p"), write()], [0, 0, None]),
        ([write(operation="o"), refused(operation="o")], [0, None]),
        ([write(operation="o"), row("delete"), write(operation="o")], [0, None, 0]),
        ([write(operation="o", **NO_ORDER), write(operation="o", **NO_ORDER)], [0, 1]),
    )


def test_alert_twice() -> None:
    """Two alerts in one incarnation and terminal version are one too many."""
    agree(
        "alert_twice",
        ([write(alert="x", after_terminal_version=1), write(alert="y", after_terminal_version=1)], [0, 1]),
        ([write(alert="x", after_terminal_version=1), write(alert="y", after_terminal_version=2)], [0, 0]),
        ([write(alert="x"), write()], [0, None]),
    )


def test_unfenced_delete() -> None:
    """A delete or release with an older token, or of what another holds unfinished, is broken."""
    agree(
        "unfenced_delete",
        ([grant(1, "a"), grant(2, "b"), row("delete", writer="a", token=1, before_holder="b")], [None, None, 1]),
        ([row("delete", writer="a", before_holder="b")], [1]),
        ([row("delete", writer="a", before_holder="b", before_terminal=True)], [0]),
        ([row("release", writer="a", before_holder="a")], [0]),
        ([write(1, writer="a", before_holder="b", after_holder="")], [1]),
        ([row("delete", writer="a")], [-1]),
        ([row("delete", before_holder="b")], [None]),
        ([row("ttl_delete", writer="a", before_holder="b")], [None]),
        # Without order only `before_token` is compared.
        ([grant(2, "b", **NO_ORDER), row("delete", writer="a", token=1, **NO_ORDER)], [None, -1]),
        ([row("delete", writer="a", token=1, before_token=2, **NO_ORDER)], [1]),
    )


def test_tokens_as_text() -> None:
    """A stored token wider or narrower than the narrowest seen before is broken."""
    agree(
        "tokens_as_text",
        ([write(token_width=1), write(token_width=2), write(token_width=1), write()], [0, 1, 0, None]),
        ([write(token_width=0), write(token_width=0)], [0, 0]),
    )


def test_scopes_mixed() -> None:
    """A token of a second lease on one resource is broken."""
    agree(
        "scopes_mixed",
        ([write(1, lease="a"), write(1, lease="b"), write(1, lease="a")], [0, 1, 1]),
        ([write(1, lease="a"), write(1, lease="a"), write(lease="b"), write(1)], [0, 0, None, None]),
        # A lease that is the resource's own key is none of these.
        ([write(1, lease="a"), write(1, lease="r")], [0, None]),
        ([write(1, lease="a"), row("delete"), write(1, lease="b")], [0, None, 1]),
    )


def test_ttl_removed_live() -> None:
    """TTL may only remove what is finished and, with a retention, only after it."""
    ttl = row("ttl_delete", before_terminal=True, at=T + 5 * S)
    agree(
        "ttl_removed_live",
        ([row("ttl_delete", before_terminal=False)], [1]),
        ([row("ttl_delete", before_terminal=True)], [0]),
        ([row("ttl_delete")], [-1]),
        ([done(), row("ttl_delete")], [None, -1]),
        ([row("delete", before_terminal=False)], [None]),
    )
    agree("ttl_removed_live", ([done(at=T), ttl], [None, 1]), retention=6 * S)
    agree("ttl_removed_live", ([done(at=T), ttl], [None, 0]), retention=5 * S)
    agree("ttl_removed_live", ([done(at=T), ttl], [None, 0]), retention=6 * S, skew=S)
    agree("ttl_removed_live", ([done(), ttl], [None, -1]), ([ttl], [-1]), retention=6 * S)


def test_leases_overlap() -> None:
    """A grant to another before the old lease ran out, beyond the slack, is broken."""
    over = {"before_holder": "a", "at": T, "before_expires_at": T + 2 * S}
    agree(
        "leases_overlap",
        ([grant(2, "b", **over)], [1]),
        ([grant(2, "b", **over | {"at_precision": 2 * S})], [0]),
        ([grant(2, "b", **over | {"before_expires_at": T})], [0]),
        ([grant(2, "a", **over)], [None]),
        ([grant(2, "b", **over | {"before_holder": ""})], [None]),
        ([grant(2, "b", **over | {"at": None})], [None]),
    )


def test_late_write_accepted() -> None:
    """A write after its own lease ran out, beyond the slack, is late; an older token is stale, not late."""
    late = {"at": T + 2 * S, "before_expires_at": T}
    agree(
        "late_write_accepted",
        ([write(1, **late)], [1]),
        ([write(1, fenced=None, **late)], [1]),
        ([write(1, at=T, before_expires_at=T)], [0]),
        ([write(1, **late | {"at_precision": 2 * S})], [0]),
        ([write(**late)], [-1]),
        ([write(1, before_token=2, **late)], [None]),
        ([write(1, protected=False, **late)], [None]),
    )
    agree("late_write_accepted", ([write(1, **late)], [0]), skew=2 * S)


def test_renewed_after_release() -> None:
    """A renewal of what nobody holds is broken."""
    agree(
        "renewed_after_release",
        ([row("renew", before_holder="")], [1]),
        ([write(before_holder="", before_expires_at=T, after_expires_at=T + S)], [1]),
        ([row("renew", before_holder="a")], [0]),
        ([row("renew")], [-1]),
        ([grant(2, "b", before_holder="", before_expires_at=T, after_expires_at=T + S)], [None]),
        ([write(before_holder="")], [None]),
    )


def test_work_after_terminal() -> None:
    """Polls, schedules, retries, renewals and grants after the end, or a raised expiry, are work that goes on."""
    agree(
        "work_after_terminal",
        ([done(), row("poll")], [0, 1]),
        ([done(), found("write", before_expires_at=T, after_expires_at=T + S)], [0, 1]),
        ([done(), found("alert")], [0, 0]),
        ([done(), row("delete")], [0, None]),
        ([row("poll")], [None]),
        ([done(**NO_ORDER), row("poll", **NO_ORDER)], [0, -1]),
        ([done(**NO_ORDER), write(**NO_ORDER)], [0, 0]),
    )


def test_went_on_after_rejection() -> None:
    """What the same writer does with the same token after it was refused as stale is broken."""
    stale = refused(1, before_token=2, writer="a")
    agree(
        "went_on_after_rejection",
        ([stale, write(1, writer="a")], [0, 1]),
        ([stale, stale, row("poll", token=1, writer="a")], [0, 1, 1]),
        ([write(1, writer="a"), stale, write(2, writer="a"), write(1, writer="b")], [None, 0, None, None]),
        ([stale | {"writer": None}], [-1]),
        ([stale | NO_ORDER], [-1]),
    )


def test_rejected_stale() -> None:
    """A refusal for a newer token, by its reason or by the token then held, is the protection at work."""
    agree(
        "rejected_stale",
        ([refused(reason="newer_token")], [1]),
        ([refused(1, before_token=2)], [1]),
        ([refused(1, current_token=2)], [1]),
        ([grant(2, "b"), refused(1)], [None, 1]),
        ([refused(2, before_token=2)], [0]),
        ([refused(1, before_token=2, reason="expired")], [1]),
        ([refused(1, reason="expired")], [0]),
        ([refused(1, before_token=2, reason="terminal")], [0]),
        ([refused(1, before_token=2, reason="the condition failed")], [1]),
        ([refused(1)], [-1]),
        ([refused(before_token=2)], [-1]),
        ([grant(2, "b", **NO_ORDER), refused(1, **NO_ORDER)], [None, -1]),
        # Its own success is no theft; a refused grant is contention.
        ([write(1, operation="o"), refused(1, before_token=2, operation="o")], [None, 0]),
        ([grant(1, "a", decision="rejected", before_token=2)], [None]),
    )


def test_rejected_late() -> None:
    """A refusal of the token held, after its lease ran out, threw finished work away."""
    late = {"before_token": 1, "at": T + S, "before_expires_at": T}
    agree(
        "rejected_late",
        ([refused(reason="expired")], [1]),
        ([refused(1, **late)], [1]),
        ([refused(1, **late | {"at": T})], [1]),
        ([refused(1, **late | {"at": T - S})], [0]),
        ([refused(1, **late | {"before_token": 2})], [0]),
        ([refused(2, **late)], [0]),
        ([refused(1, **late | {"before_terminal": True})], [0]),
        ([refused(1, **late | {"before_expires_at": None})], [-1]),
        ([refused(**late)], [-1]),
        ([write(1)], [None]),
    )


def test_rejected_done() -> None:
    """A refusal because the work was done, by its reason or by the stored item."""
    agree(
        "rejected_done",
        ([refused(reason="terminal")], [1]),
        ([refused(reason="duplicate")], [1]),
        ([refused(1, before_token=1, before_terminal=True)], [1]),
        ([refused(1, before_token=1, before_terminal=False)], [0]),
        ([refused(1, before_token=2, before_terminal=True)], [0]),
        ([refused(reason="expired")], [0]),
        ([refused(1, before_token=1)], [-1]),
    )


def test_own_success_rejected() -> None:
    """A refusal whose operation also has a row that was not refused was refused by its own success."""
    agree(
        "own_success_rejected",
        ([write(operation="o"), refused(operation="o")], [None, 1]),
        ([write(operation="o", decision="unknown"), refused(operation="o")], [None, 1]),
        ([refused(operation="o"), refused(operation="o")], [0, 0]),
        ([refused()], [-1]),
        ([write(operation="o", resource="other"), refused(operation="o")], [None, 0]),
    )


def test_chain_broken() -> None:
    """The image before a row must be the image after the row before it."""
    agree(
        "chain_broken",
        ([write(after_image=7), write(before_image=8)], [None, 1]),
        ([write(after_image=7), write(before_image=7)], [None, 0]),
        ([write(), write(before_image=7)], [None, None]),
        ([write(after_image=7, **NO_ORDER), write(before_image=8, **NO_ORDER)], [None, None]),
        # Across incarnations too.
        ([row("delete", after_image=0), write(before_image=0)], [None, 0]),
    )


def test_order_unknown() -> None:
    """A row without order, or of a resource in two order scopes, is broken; a refusal needs none."""
    agree(
        "order_unknown",
        ([write()], [0]),
        ([write(**NO_ORDER)], [1]),
        ([write(), write(order_scope="b")], [1, 1]),
        ([write(), write(order_scope="b", resource="other")], [0, 0]),
        ([refused(1, **NO_ORDER)], [None]),
        ([write(), refused(1, order_scope="b")], [0, None]),
        ([write(decision="unknown", **NO_ORDER)], [1]),
    )


def test_time_went_back() -> None:
    """A time below the latest earlier one, beyond this row's slack, is broken."""
    agree(
        "time_went_back",
        ([write(at=T + S), write(at=T)], [None, 1]),
        ([write(at=T + S), write(at=T, at_precision=S)], [None, 0]),
        ([write(at=T), write(), write(at=T)], [None, None, 0]),
        ([write(at=T + S, **NO_ORDER), write(at=T, **NO_ORDER)], [None, None]),
    )
    agree("time_went_back", ([write(at=T + S), write(at=T)], [None, 0]), skew=S)


def test_clock_mixed() -> None:
    """An expiry in another unit than the first of those before it is broken."""
    agree(
        "clock_mixed",
        ([write(expiry_unit="ms"), write(expiry_unit="s"), write(expiry_unit="ms"), write()], [0, 1, 0, None]),
    )
