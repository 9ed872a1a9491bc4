"""The answer of a check kept in a team's own tests: what they import, and the test that `--out` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fencinglab.check import told
from fencinglab.check.check import check
from fencinglab.dynamodb import shelf
from fencinglab.explore.hazards import Hazard, chosen
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.repair import UNSAFE
from fencinglab.explore.search import MOST_STATES


def unsafe(
    file: str | Path, rest: str | Path = "", *, workers: int = 2, hazards: Sequence[str] = (), optional: bool = False,
    most: int = MOST_STATES,
) -> list[str]:  # fmt: skip
    """A sentence for each unsafe invariant that is not known to hold with a request file; none = nothing can happen.

    Arguments are those of `fencinglab check`, `hazards` such as `["crash", "ttl=2"]`; so are the errors.
    """
    given = shelf.find(str(file), str(rest))
    found = check(given, workers=workers, hazards=chosen(hazards), optional=optional, most=most)
    return [
        f"{verdict.invariant}: {INVARIANTS[verdict.invariant].says}: {told.says(found.answer, verdict)}"
        for verdict in found.answer.verdicts
        if verdict.invariant in UNSAFE and verdict.status not in ("holds", "not_applicable")
    ]


def contents(
    file: str, rest: str, workers: int, hazards: Sequence[Hazard], optional: bool, most: int
) -> dict[str, str]:
    """The request file as it is, the one that completes it, and the test that holds them to the answer, by name."""
    given = [f"workers={workers}"]
    asked = [hazard.name if hazard.times == 1 else f"{hazard.name}={hazard.times}" for hazard in hazards]
    given += [f"hazards={json.dumps(asked)}"] if asked else []
    given += ["optional=True"] if optional else []
    given += [f"most={most:_}"] if most != MOST_STATES else []
    beside = 'HERE / "rest.json", ' if rest else ""
    test = f'''"""In no order of events can anything unsafe happen with requests.json; written by fencinglab check."""

from pathlib import Path

from fencinglab.check.keep import unsafe

HERE = Path(__file__).parent


def test_requests():
    assert unsafe(HERE / "requests.json", {beside}{", ".join(given)}) == []
'''
    files = {"requests.json": shelf.source(file)[0], "test_requests.py": test}
    return files | ({"rest.json": shelf.source(rest)[0]} if rest else {})
