"""The smallest repair of a broken request file: the fewest conditions, added to its operations, with which it holds.

Every run that does harm demands something of a set of conditions: that one of them refuses a request that the run has
accepted, or that none refuses one that it has refused. So the smallest sets that meet all demands so far are tried, and
each that still breaks adds the demand of its own shortest run: the first that holds is the smallest that there is. A
set with which nobody could finish any more is no repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from fencinglab.dynamodb.requests import Operation
from fencinglab.explore import walk
from fencinglab.explore.candidates import Candidate, candidates, repaired
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.search import Answer, Run, explore
from fencinglab.explore.team import Team

MOST_SEARCHES = 100
STUCK = "can-finish"
UNSAFE = tuple(name for name, one in INVARIANTS.items() if one.group == "unsafe")


class Repair(NamedTuple):
    """What was found; without an answer none was, and `why_not` says whether there can be one."""

    added: tuple[Candidate, ...]
    operations: dict[str, Operation]  # those that change, as they should be
    answer: Answer | None  # of the search with them
    searches: int
    calls: int  # different requests on different items that the receiver was asked for it
    why_not: str = ""
    fewer: str = ""  # why fewer conditions may hold too; empty = they do not


class _Demand(NamedTuple):
    """What a run that does harm demands of a set of conditions, by their numbers."""

    refusing: frozenset[int]  # of these it must have one
    avoiding: tuple[frozenset[int], ...]  # or none of one of these, without which a request of the run is accepted

    def met(self, chosen: frozenset[int]) -> bool:
        return bool(chosen & self.refusing) or not all(chosen & one for one in self.avoiding)


def repair(answer: Answer, most: int, progress: Callable[[str], None] = lambda _: None) -> Repair:
    """The smallest set of conditions with which no unsafe invariant breaks, and the job can still finish."""
    original: Team = answer.model
    offered = candidates(original)
    team = original.read_as(repaired(original, offered))
    alone = [team.with_file(repaired(original, [one])) for one in offered]
    plain = team.with_file(original.file)
    demands, useless = list[_Demand](), set[frozenset[int]]()
    tried, found, stuck_anyway = frozenset[int](), answer, False
    cut, cut_size = "", 0  # of the first search that stopped before it decided, which is of the fewest conditions
    for searches in range(MOST_SEARCHES):
        runs = {v.invariant: v.run for v in found.verdicts if v.run is not None}
        model = plain if found is answer else found.model  # which looks at all that a condition may ask for
        broken = [name for name in UNSAFE if name in runs]
        hinders = STUCK in runs and plain.rescue(walk.ended(model, runs[STUCK]))[0]  # what was added, and nothing else
        if STUCK in runs and not hinders and not stuck_anyway:
            broken.append(STUCK)
        for name in broken:
            demand = _demand(plain, alone, model, runs[name])
            if demand.refusing or demand.avoiding:
                demands.append(demand)
            elif name == STUCK:
                stuck_anyway = True
            else:
                return Repair((), {}, None, searches, plain.calls, _why_not(found, original, name))
        stuck = hinders or (STUCK in runs and not stuck_anyway)
        if not stuck and not found.stopped and not {*broken} & {*UNSAFE}:
            chosen = [offered[number] for number in sorted(tried)]
            changed = {one.operation for one in chosen}
            operations = {name: one for name, one in found.model.file.operations.items() if name in changed}
            fewer = cut if cut_size < len(chosen) else ""
            return Repair(tuple(chosen), operations, found, searches, plain.calls, fewer=fewer)
        if found.stopped and not broken and not cut:
            cut, cut_size = found.stopped, len(tried)
        useless.add(tried)
        tried = next((one for one in _sets(len(offered), demands) if one not in useless), frozenset())
        if not tried:
            why = "each set of them lets a run through that does harm, or leaves the job stuck"
            why = f"not decided, for one of the searches {cut}" if cut else why
            return Repair((), {}, None, searches, plain.calls, why)
        progress(f"repair {searches + 1}: {len(tried)} condition{'s' * (len(tried) != 1)}")
        file = repaired(original, [offered[number] for number in sorted(tried)])
        found = explore(team.with_file(file), most=most, until=UNSAFE)
    why = f"not decided, after {MOST_SEARCHES} sets of them that do not hold"
    return Repair((), {}, None, MOST_SEARCHES, plain.calls, why)


def _demand(plain: Team, alone: Sequence[Team], team: Team, run: Run) -> _Demand:
    """The demand of a run of this team; `plain` has none of the conditions, those of `alone` have one each."""
    refusing, avoiding = set[int](), list[frozenset[int]]()
    for move, shared, worker in walk.moves(team, run):
        if move.step.accepted is None:
            continue
        message: Any = worker.copy if move.step.act == "copy arrives" else worker.waiting
        refused = frozenset(n for n, one in enumerate(alone) if one.decision(shared.items, message) == "rejected")
        if move.step.accepted:
            refusing |= refused
        elif plain.decision(shared.items, message) != "rejected":
            avoiding.append(refused)
    return _Demand(frozenset(refusing), tuple(avoiding))


def _sets(count: int, demands: Sequence[_Demand]) -> Iterator[frozenset[int]]:
    """The sets that meet every demand, the smallest first, then those of the conditions offered first."""
    asked = [number for number in range(count) if any(number in demand.refusing for demand in demands)]
    for size in range(1, len(asked) + 1):
        for members in combinations(asked, size):
            if all(demand.met(frozenset(members)) for demand in demands):
                yield frozenset(members)


def _why_not(found: Answer, team: Team, invariant: str) -> str:
    """Why nothing helps against a run that was found, as far as the file of the team says."""
    harm = walk.harm(found, invariant)
    what = f"there is a run in which {harm}, and each request in it meets all of them"
    if harm == walk.REISSUED:
        return f"{what}; only the update of the grant can raise the token, as `ADD fencingToken :one` does"
    if reads := sorted(name for name in team.file.token_from if team.file.operations[name].action == "get-item"):
        return f"{what}: `{reads[0]}` learns the token by a separate read, so a worker may present a newer owner's"
    lacking = [column for column in ("token", "holder") if column not in team.file.map]
    return f"{what}; `map` names no {' and no '.join(lacking)} that they could ask for" if lacking else what
