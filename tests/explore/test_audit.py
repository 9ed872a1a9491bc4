"""The explorer's invariants and the audit's rules agree on every history of a small exploration: all, not a sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import duckdb
import pandas

from fencinglab import history
from fencinglab.audit import audit
from fencinglab.explore.invariants import Past, observe
from fencinglab.explore.run import timeline_of
from fencinglab.explore.search import model_of
from fencinglab.explore.steps import NOBODY, Model
from fencinglab.explore.world import Step
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay

RULES = {
    "order": ("token_went_back",),
    "ownership": ("stale_write_accepted", "token_went_back"),  # a row of both is counted as the latter only
    "terminal": ("terminal_twice",),  # which also counts another value after the finish: see `refined`
    "late": ("late_write_accepted",),
}
SEEN = ("acquire", "expire", "arrive", "apply", "renew")  # what a history shows


def histories(model: Model) -> Iterator[tuple[tuple[Step, ...], frozenset[str]]]:
    """For every history that the model can leave one order of events that leaves it, and the invariants it breaks."""
    common = cache(lambda shared: [*model.common(shared)])
    own = cache(lambda shared, worker, name: [*model.of_worker(shared, worker, name)])
    start = (model.start, Past(), (NOBODY,) * model.workers)
    told: dict[tuple, tuple[tuple[Step, ...], frozenset[str]]] = {(): ((), frozenset())}
    seen = {(start, ())}
    frontier = [(start, (), (), frozenset())]
    while frontier:
        following = []
        for (shared, past, workers), shown, run, broken in frontier:
            moves = [(move, None) for move in common(shared)]
            for place, name in enumerate(model.names):
                moves += [(move, place) for move in own(shared, workers[place], name)]
            for move, place in moves:
                after, more = (past, frozenset()) if move.effect is None else observe(past, move.effect)[:2]
                team = workers if place is None else (*workers[:place], move.worker, *workers[place + 1 :])
                step, state = move.step, (move.shared, after, team)
                history = (*shown, step[:3] + step[4:]) if step.act in SEEN else shown
                if (state, history) not in seen:
                    seen.add((state, history))
                    found = ((*run, step), broken | more)
                    told.setdefault(history, found)
                    assert told[history][1] == found[1]  # what a history shows decides what is broken
                    following.append((state, history, *found))
        frontier = following
    del told[()]
    yield from told.values()


def refined(run: tuple[Step, ...], model: Model) -> bool:
    """Whether the run finished it twice, or changed its value after the finish."""
    value, finished = None, False
    for step in run:
        if step.act not in ("arrive", "apply") or not step.accepted:
            continue
        if model.finishing(step.number):
            if finished:
                return True
            finished = True
        elif finished and value != (step.worker, step.number):
            return True
        else:
            value = step.worker, step.number
    return False


MODELS = [
    *(
        (fix, 2, 1)
        for fix in ("unfenced", "fenced", "fenced-above", "fenced-id-per-job", "latest", "holder", "latest-id")
    ),
    ("client-check", 2, 1),
    ("two-step-token", 1, 2),
    ("two-step-holder", 1, 1),
    ("unfenced", 1, 2),
    ("fenced-above", 1, 2),
]


def test_rules_and_invariants_agree_on_every_history():
    """Replayed into one table and audited, each history breaks exactly the rules whose invariants the search saw broken."""
    rows, expected, texts = [], {}, {}
    for fix, workers, writes in MODELS:
        model = model_of(FIXES[fix], workers, writes)
        for number, (run, broken) in enumerate(histories(model)):
            name = f"{fix}-{workers}-{number}"
            told = replay(timeline_of(model, run, name, "One of all"), FIXES[fix])
            rows += [row | {"resource": name, "lease": name} for row in told.rows]
            expected[name] = {invariant: invariant in broken for invariant in RULES}
            assert writes > 1 or refined(run, model) == ("terminal" in broken)
            expected[name]["terminal"] = refined(run, model)
            texts[name] = str(told.timeline)

    with duckdb.connect() as con:
        frame = pandas.DataFrame(rows, columns=list(history.NAMES))
        broken_by = ", ".join(f"max(greatest({', '.join(rules)})) = 1" for rules in RULES.values())
        lines = audit.judge(con, history.read(con, frame)).aggregate(f"resource, {broken_by}", "resource").fetchall()
    found = {name: dict(zip(RULES, map(bool, broken), strict=True)) for name, *broken in lines}

    assert {*found} == {*expected}
    for name in expected:
        assert found[name] == expected[name], texts[name]
    for invariant in RULES:
        assert {of[invariant] for of in expected.values()} == {True, False}, invariant
    assert len(expected) > 1_900
