"""Why each condition of a request file is there: what breaks in a search without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fencinglab.dynamodb.requests import singles
from fencinglab.explore.search import Answer, explore
from fencinglab.explore.team import Team
from fencinglab.explore.weaker import weaker


class Needed(NamedTuple):
    """One condition of one operation, and what happens without it."""

    operation: str
    condition: str
    answer: Answer  # of the search without it; of the one with it, where that stopped: it says nothing to compare with
    breaks: tuple[str, ...]  # the invariants that are violated without it, and are not with it


def needed(team: Team, answer: Answer, most: int, progress: Callable[[str], None] = lambda _: None) -> list[Needed]:
    """For every condition what breaks without it within the same bounds; nothing = it is redundant there.

    In the order of the program; `answer` is that of the search with all of them.
    """
    used = singles(team.file, [use.operation for use in team.program])
    found = []
    for operation, condition in dict.fromkeys((single.operation, part) for single in used for part in single.parts):
        progress(f"{operation} without {condition}")
        team_without = team.with_file(weaker(team.file, operation, condition))
        without = answer if answer.stopped else explore(team_without, most=most)
        broken = [verdict.invariant for verdict in without.verdicts if verdict.status == "violated"]
        breaks = tuple(name for name in broken if answer.of(name).status != "violated")
        found.append(Needed(operation, condition, without, breaks))
    return found
