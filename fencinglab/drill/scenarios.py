"""The scenarios of a drill, by name: the article's list of what to test, and what else goes wrong in practice.

Those that show a failure on any receiver are played only when they are named.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import NamedTuple

from fencinglab.drill import plays
from fencinglab.drill.desk import Desk
from fencinglab.dynamodb.expression import placeholders
from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import READ, Requests, Single, singles


class Scenario(NamedTuple):
    """A named scenario."""

    play: Callable[[Desk], None]
    kinds: tuple[str, ...] = ("finish",)  # of operations that it needs
    creates: bool = False  # it needs the operations by which an item comes to be
    given: tuple[str, ...] = ()  # placeholders of the file that it sets
    reads_back: bool = False  # it needs items that show which operation was done
    shows: tuple[str, ...] = ()  # rules that it breaks on any receiver; if unsafe, it is played only when named
    named: bool = False  # played only when named
    signals: bool = False  # it stops or kills a process
    takes: tuple[str, ...] = ()  # of a plan's workers, rounds and seed what it looks at

    @property
    def name(self) -> str:
        """As the user writes it."""
        return self.play.__name__.replace("_", "-")

    @property
    def says(self) -> str:
        """What happens in it, in a sentence."""
        return self.play.__doc__ or ""


ALERTING = ("finish", "alert", "release")
SCENARIOS = {
    one.name: one
    for one in (
        Scenario(plays.simultaneous_acquire, kinds=(), takes=("workers", "rounds", "seed")),
        Scenario(plays.delayed_response),
        Scenario(plays.clock_skew, shows=("leases_overlap",)),
        Scenario(plays.crashed_worker),
        Scenario(plays.replacement_owner),
        Scenario(plays.duplicate_terminal),
        Scenario(plays.alert, kinds=ALERTING),
        Scenario(plays.rate_limit, kinds=("retry", "schedule", "finish")),
        Scenario(plays.replay),
        Scenario(plays.ttl_clean_up, creates=True, given=("retention",)),
        Scenario(plays.double_enqueue, kinds=(), creates=True, takes=("seed",)),
        Scenario(plays.lost_reply, reads_back=True),
        Scenario(plays.stalled_process, signals=True),
        Scenario(plays.killed_process, signals=True),
        Scenario(plays.alert_recovered, kinds=ALERTING, shows=("work_after_terminal",), named=True),
        Scenario(plays.mixed_versions, kinds=(), shows=("unfenced_write",), named=True),
        Scenario(plays.ttl_restart, kinds=(), shows=("token_restarted",), named=True),
        Scenario(plays.authority_restored, kinds=(), shows=("image_went_back",), named=True),
    )
}  # fmt: skip


def not_played(scenario: Scenario, file: Requests) -> str:
    """Why a scenario cannot be played with a file or on this machine; empty where it can."""
    if not file.of_kind("write") and not file.of_kind("finish"):
        return "no operation of the file writes"
    if missing := [kind for kind in scenario.kinds if not file.of_kind(kind)]:
        return f"the file has no operation of the kind {', '.join(missing)}"
    if scenario.creates and not file.creates:
        return "the file does not say how an item comes to be (`creates`)"
    if unknown := [name for name in scenario.given if name not in file.given]:
        return f"`given` of the file has no {', '.join(unknown)}"
    if scenario.reads_back and (silent := _without_operation(file)):
        return f"the file keeps no operation id ($operation) in {', '.join(silent)}"
    if scenario.signals and not hasattr(signal, "SIGSTOP"):
        return "this system cannot stop a process"
    return ""


def _without_operation(file: Requests) -> list[str]:
    """The operations of acquiring, writing and finishing that leave no id of theirs in an item."""
    sent = [*file.taking, *file.of_kind("write")[:1], *file.of_kind("finish")[:1]]
    changes = [name for name in sent if file.operations[name].kind != READ]
    return [name for name in changes if not any(map(_keeps_operation, singles(file, [name])))]


def _keeps_operation(one: Single) -> bool:
    return "operation" in names_in([one.item, {name: one.values.get(name) for name in placeholders(one.update)}])


def listing() -> str:
    """All scenarios as text, those that are played only when named behind the others."""
    lines = [f"{one.name:21} {one.says}" for one in SCENARIOS.values() if not one.named]
    lines += ["", "Only when named, as they show a failure on any receiver:", ""]
    lines += [f"{one.name:21} {one.says} ({', '.join(one.shows)})" for one in SCENARIOS.values() if one.named]
    return "\n".join(lines) + "\n"
