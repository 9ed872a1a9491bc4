"""The rules of the audit in words: name, class, case, what breaks it, what cannot be decided, what to do.

`rules.sql` beside this file computes them, a column a rule, in this order. Words used below:

- *write*: an attempted mutation that is no grant, delete or poll. *accepted*: decision = accepted.
- *timeline*: the rows of one resource, lease (`lease`, else the resource), order scope and incarnation,
  ordered by `order_key`. *Earlier* and *later* mean within it. Rows without `order_key` make a timeline
  of their own in which "earlier" decides nothing.
- *incarnation*: an accepted row whose `before_image` is 0 (no item) starts one; so does the row after an
  accepted delete. It counts within one resource and order scope.
- *newest token*: `current_token`; else the greatest of this row's `before_token` and the tokens that
  earlier accepted rows left (`after_token`, or a grant's `token`).
- *guarded*: `protected` is not false. *Known token*: `token` with `fenced` true.
- *rises on renewals*: a token that some accepted row of the resource raised under one holder, in a renewal or
  more than the slack before that holder's lease ran out. Such a number is a version.
- *slack*: `at_precision` plus the allowed skew. *Already terminal*: `before_terminal`, else an earlier
  accepted row that left the resource terminal.
- *own attempt*: the same resource and operation also has a row that was not rejected.
"""

from __future__ import annotations

from typing import NamedTuple

CLASSES = ("unsafe", "window", "cost", "evidence")


class Rule(NamedTuple):
    """One rule. `needs` are history columns; `a|b` is met by either, and without them nothing can be decided."""

    name: str
    group: str  # one of CLASSES
    core: bool
    title: str  # what was found, in the words of a report
    case: str
    broken: str
    undecided: str
    needs: tuple[str, ...]
    says: str  # one row in a sentence; evidence.py fills it in
    advice: str


RULES = (
    Rule(
        "token_went_back", "unsafe", True,
        "a write with an older token was accepted after a newer one",
        case="accepted write with an earlier accepted write that presented a token",
        broken="its token is lower than the highest token of the earlier accepted writes",
        undecided="its own token is not known (guarded, `fenced` not false); the row has no order and the tokens "
        "differ; the token also rises on renewals; or the decision is unknown and it would be broken (else no case)",
        needs=("token", "order_key"),
        says="{who} wrote with {token} after {newer} had been accepted",
        advice="compare the token where the write happens: condition `fencingToken = :token` on every write",
    ),
    Rule(
        "stale_write_accepted", "unsafe", True,
        "a write was accepted after a newer token had been granted",
        case="accepted write after a takeover: an older token than the newest is known in its timeline; or a greater "
        "one was presented by a grant whose decision is unknown or, where a resource shows no grant, by another write",
        broken="its token is lower than the newest token (rows of token_went_back are not counted again)",
        undecided="its own token is not known, or only presumed and not lower; no grant, `before_holder` or "
        "`current_token` is visible; without order, unless `current_token` or the row's own `before_token` decides; "
        "a token that also rises on renewals; the decision is unknown and it would be broken; or only an earlier grant "
        "whose own decision is unknown was of a greater token",
        needs=("token", "order_key|current_token|before_token"),
        says="{who} wrote with {token} after {newer} had been granted",
        advice="check the token against the latest granted in the same step as the write, "
        "for example in one item or one transaction",
    ),
    Rule(
        "token_shared", "unsafe", True,
        "two workers had the same token",
        case="second and later accepted grants of a timeline",
        broken="one `after_token` under two holders, or one known token presented by two writers, within one lease and "
        "incarnation, in any order; the row is one whose holder or writer is not the alphabetically first",
        undecided="the grant's token is not known",
        needs=("token|after_token", "after_holder|writer"),
        says="{who} used token {token}, which another worker had too",
        advice="raise the token in the same conditional update that grants the lease: `ADD fencingToken :one`",
    ),
    Rule(
        "holder_without_token", "unsafe", True,
        "the lease changed hands without a new token",
        case="accepted row whose holder before and after differ, both set",
        broken="`after_token` is not above `before_token`",
        undecided="one of the two tokens is not known",
        needs=("before_holder", "after_holder", "after_token"),
        says="the lease went from {before_holder} to {after_holder}; the token was {before_token} before and "
        "{after_token} after",
        advice="let no write set the owner except the one that also raises the token",
    ),
    Rule(
        "unfenced_write", "unsafe", True,
        "a write that presented no token changed what only the holder may change",
        case="accepted guarded write after a grant (a newest token above 0, an earlier grant or a holder is known), or "
        "one of no token after an accepted write that presented one above 0",
        broken="`fenced` is false and `protected` true",
        undecided="`fenced` or, where it is false, `protected` is not known",
        needs=("fenced",),
        says="a write that presented no token changed the item (token {before_token}, held by {before_holder})",
        advice="send every change of status, result, expiry, owner or next poll with `fencingToken = :token` as its "
        "condition, and store the token that it presented (`writtenToken`)",
    ),
    Rule(
        "terminal_twice", "unsafe", True,
        "what was finished was finished or written again",
        case="accepted row that makes the resource terminal, or that finds it terminal and does not leave it "
        "(deletes and polls are none)",
        broken="it finds it terminal, and the terminal version rose, the value or the status changed, or the source "
        "calls it a finish",
        undecided="it finds it terminal, and neither value nor terminal version is known (and the change is not known "
        "to be unrelated, nor the row a grant, renew, release, alert, retry or schedule); or whether it "
        "was terminal is only known from rows without order, unless it and one "
        "of them are both called a finish",
        needs=("after_terminal",),
        says="{who} finished or wrote it again: {before_status} before, {after_status} after",
        advice="add `attribute_not_exists(terminalVersion)` to the finishing write and raise it there",
    ),
    Rule(
        "terminal_left", "unsafe", True,
        "a finished resource went back to an unfinished status",
        case="accepted row that makes the resource terminal, or that finds it terminal and has a known status after it "
        "(deletes are none)",
        broken="it was already terminal and is not terminal afterwards",
        undecided="whether it was terminal is only known from rows without order",
        needs=("after_terminal",),
        says="{who} took it from {before_status} back to {after_status}",
        advice="let every write require that the status is not terminal",
    ),
    Rule(
        "image_went_back", "unsafe", False,
        "one write lowered the stored token",
        case="accepted row with `before_token` and `after_token` (deletes are none)",
        broken="`after_token` is lower than `before_token`",
        undecided="never",
        needs=("before_token", "after_token"),
        says="the stored token went from {before_token} to {after_token} in one write",
        advice="let no write set the token to a value that it was handed; only the grant raises it",
    ),
    Rule(
        "state_went_back", "unsafe", False,
        "a field that may only rise fell",
        case="accepted row on which the declared rising fields are known",
        broken="`fell` names a field",
        undecided="never",
        needs=("fell",),
        says="{fell} fell in one write",
        advice="add the field to the condition, or raise it with ADD only",
    ),
    Rule(
        "token_restarted", "unsafe", False,
        "the token sequence started again",
        case="accepted grant with a known token that does not find both a token and a holder, or accepted write of a "
        "known token above 0 that starts an incarnation, where the resource and order scope has an older token, in "
        "whatever incarnation, and no token of another lease",
        broken="its token is lower than the highest older token; or, of a grant, equal to it where it starts an "
        "incarnation or finds nobody",
        undecided="the row has no order",
        needs=("token|after_token", "order_key"),
        says="the {kind} by {who} began with token {token} again, or with a lower one than before",
        advice="keep the counter where deletion and clean-up do not reach it, or start it above a stored floor",
    ),
    Rule(
        "operation_twice", "unsafe", False,
        "one operation was accepted twice",
        case="accepted row with an operation id",
        broken="an accepted row of the same resource, incarnation and operation stands before it (order key, then row)",
        undecided="never",
        needs=("operation",),
        says="operation {operation} was accepted before",
        advice="store the operation id with the write and require that it is unused",
    ),
    Rule(
        "alert_twice", "unsafe", False,
        "an alert was raised twice",
        case="accepted row that raised an alert",
        broken="an accepted row of the same resource, incarnation and terminal version raised one before it "
        "(order key, then row)",
        undecided="never",
        needs=("alert",),
        says="alert {alert} was not the first",
        advice="write the alert id in the terminal transition itself, under its condition",
    ),
    Rule(
        "unfenced_delete", "unsafe", False,
        "the lease was released or deleted by a writer that no longer held it",
        case="accepted delete (not by TTL) or release with a known writer; a release is kind release, or a holder "
        "before and nobody after",
        broken="its token is lower than the newest token (without order: than `before_token`), or another held the "
        "lease and the resource was not terminal",
        undecided="the holder before is not known, and its token or the newest is not known either",
        needs=("writer",),
        says="{who} ended the lease that {before_holder} held",
        advice="delete and release under the same condition as a write: owner and token",
    ),
    Rule(
        "tokens_as_text", "unsafe", False,
        "tokens are stored as text of differing width, so that 9 sorts after 10",
        case="row whose stored token's type is known",
        broken="`token_width` differs from the smallest of earlier rows of the resource and order scope",
        undecided="never",
        needs=("token_width",),
        says="the token is stored as text of {token_width} characters (0 = as a number), others of another width",
        advice="store the token as a number (`{\"N\": …}`), or as text padded to a fixed width",
    ),
    Rule(
        "scopes_mixed", "unsafe", False,
        "one resource takes tokens of two leases",
        case="row with a token whose lease is another key than its resource",
        broken="an earlier row with a token of the resource and order scope has another lease",
        undecided="never",
        needs=("lease", "token|after_token"),
        says="token {token} comes from lease {lease}, others from another",
        advice="let one authority issue the tokens of everything that writes this resource",
    ),
    Rule(
        "ttl_removed_live", "unsafe", False,
        "TTL removed an item that was not finished, or too soon",
        case="accepted TTL delete",
        broken="the item was not terminal; or a retention is declared and `at` plus slack lies before the time of "
        "the latest "
        "terminal transition of the timeline plus the retention",
        undecided="whether it was terminal, or with a retention one of the times, is not known",
        needs=("before_terminal",),
        says="TTL removed the item in status {before_status}, held by {before_holder}",
        advice="set the TTL attribute only on finished items, after the replay window",
    ),
    Rule(
        "leases_overlap", "window", False,
        "the lease was granted to another while the old one still ran",
        case="accepted grant to somebody else than the holder before, with that one's expiry and `at` known",
        broken="the old expiry lies more than the slack after `at`",
        undecided="never",
        needs=("before_expires_at", "before_holder", "at"),
        says="{after_holder} was granted {token} while {before_holder} held until {before_expires_at}",
        advice="grant only when the old lease has run out by the receiver's clock, or was released",
    ),
    Rule(
        "late_write_accepted", "window", False,
        "a write was accepted after its own lease had run out",
        case="accepted guarded write with `before_expires_at` and `at` known that is not older than the newest token",
        broken="`at` lies more than the slack after `before_expires_at`, and its token is known or presumed",
        undecided="`at` lies more than the slack after it and its token is not known",
        needs=("before_expires_at", "at"),
        says="{who} wrote with {token} after its lease had run out at {before_expires_at}",
        advice="late is not stale: nobody else held the lease. Renew in time, or accept it knowingly",
    ),
    Rule(
        "renewed_after_release", "window", False,
        "a lease was renewed after it had been released",
        case="accepted row, no grant or delete, that is a renewal or raised the expiry",
        broken="nobody held the lease before it",
        undecided="the holder before is not known",
        needs=("after_expires_at", "before_holder"),
        says="{who} renewed a lease that nobody held",
        advice="renew under the condition that owner and token are still yours",
    ),
    Rule(
        "work_after_terminal", "cost", False,
        "work went on after the resource was finished",
        case="accepted row that makes the resource terminal, or finds it terminal (deletes are none)",
        broken="it finds it terminal and is a grant, renew, retry, schedule or poll, or raised the expiry",
        undecided="whether it was terminal is only known from rows without order",
        needs=("after_terminal",),
        says="{kind} by {who} after status {before_status}",
        advice="let acquire and schedule require that the status is not terminal, so that polling stops",
    ),
    Rule(
        "went_on_after_rejection", "cost", False,
        "a worker went on after it had been refused as stale",
        case="stale rejection, and each later row of a writer and token that were refused as stale in the same "
        "resource and order scope",
        broken="it stands after the first such rejection of its writer and token",
        undecided="a stale rejection without order or without writer",
        needs=("outcome", "writer", "token", "order_key"),
        says="{who} tried again with {token} after it had been refused as stale",
        advice="stop the worker at the first refusal: it has lost the lease and cannot win it back with this token",
    ),
    Rule(
        "rejected_stale", "cost", False,
        "stale writes were refused: the protection works",
        case="rejection of anything but a grant",
        broken="reason newer_token, or a token lower than the one held: `before_token`, else `current_token`, "
        "else (with order) the highest granted earlier; never an own attempt, or reason terminal or duplicate",
        undecided="no known reason, and the token presented or the one held is not known",
        needs=("outcome", "token|reason"),
        says="{who} was refused with {token}: {held} was held",
        advice="no harm was done; a rising rate means long pauses or work that outlasts its lease",
    ),
    Rule(
        "rejected_late", "cost", False,
        "finished work was thrown away because the lease had run out",
        case="rejection of anything but a grant",
        broken="not stale, not done, not an own attempt, and reason expired; or no known reason, the token held, "
        "and `at` not before `before_expires_at`",
        undecided="no known reason, and the token is not known to be above the one held or the times are not known",
        needs=("outcome", "before_expires_at|reason"),
        says="{who} was refused with the current token {token} after its lease had run out",
        advice="nobody had taken over: renew earlier, or compare tokens instead of times",
    ),
    Rule(
        "rejected_done", "cost", False,
        "a request was refused because the work was already done",
        case="rejection of anything but a grant",
        broken="not stale, not an own attempt, and reason terminal or duplicate, or the stored item was terminal",
        undecided="no known reason, and whether it was terminal is not known",
        needs=("outcome", "before_terminal|reason"),
        says="{who} was refused: the work was already done",
        advice="a repeated delivery or a second worker: harmless, unless it is frequent",
    ),
    Rule(
        "own_success_rejected", "cost", False,
        "a request was refused by its own earlier, unanswered success",
        case="rejection of anything but a grant",
        broken="it is an own attempt",
        undecided="it has no operation id",
        needs=("outcome", "operation"),
        says="{who} was refused by its own earlier success (operation {operation})",
        advice="read the item back after a lost reply: finding the own operation id means success",
    ),
    Rule(
        "chain_broken", "evidence", False,
        "records are missing from the log",
        case="accepted row with order and an image before it, where the row before it in the resource and order "
        "scope has an image after it",
        broken="the two images differ",
        undecided="never",
        needs=("before_image", "after_image", "order_key"),
        says="the item before this write is not the item after the previous one",
        advice="look for batches that failed, filters, or a window that starts later for some shards",
    ),
    Rule(
        "order_unknown", "evidence", False,
        "rows cannot be put in order",
        case="every row that is not a rejection (a rejection changes nothing: its own rules say what they lack)",
        broken="it has no order key, or its resource has such rows in two order scopes",
        undecided="never",
        needs=(),
        says="this row has no place in the receiver's order",
        advice="map the source's own sequence, or say `--order lines` if the lines of each file are in the "
        "receiver's order",
    ),
    Rule(
        "time_went_back", "evidence", False,
        "a later mutation carries an earlier time",
        case="row with order and `at`, with an earlier row of the resource and order scope that has one",
        broken="`at` plus slack lies before the latest of the earlier times",
        undecided="never",
        needs=("at", "order_key"),
        says="this row is later in order and earlier in time ({at})",
        advice="clocks are skewed, or the order mapped is not the receiver's",
    ),
    Rule(
        "clock_mixed", "evidence", False,
        "expiry times are written in different units",
        case="row whose expiry unit is known",
        broken="its unit is not the alphabetically first of the earlier rows of the resource and order scope",
        undecided="never",
        needs=("expiry_unit",),
        says="the expiry is written in {expiry_unit}, others in another unit",
        advice="seconds beside milliseconds make a lease look expired for ever, or never: write one unit",
    ),
)  # fmt: skip
BY_NAME = {rule.name: rule for rule in RULES}
