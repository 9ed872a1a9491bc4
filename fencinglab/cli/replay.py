"""The verb `replay` of the command line: its options, and what becomes of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencinglab.cli.options import refuse

if TYPE_CHECKING:
    from fencinglab.model.replay import Run


def add(verbs: Any) -> None:
    """Add the verb with its options."""
    replay = verbs.add_parser(
        "replay", help="What does this order of events do? Replay a timeline under several fixes.",
        description="What does this order of events do? Replays a timeline, one event a line, and says what each fix "
        "would have done at each step and which result stands in the end. Without a name it lists timelines and fixes.",
        epilog="exit codes: 0 replayed, 2 a name, a fix or a file that cannot be used", allow_abbrev=False,
    )  # fmt: skip
    replay.add_argument(
        "timeline", nargs="?", metavar="NAME-or-FILE", help="a timeline or an incident by name, or a file of your own"
    )
    replay.add_argument("--fix", action="append", metavar="NAME", help="a fix to try; may be given often")
    replay.add_argument(
        "--out", metavar="DIR", help="write trace.csv, comparison.csv, replay.json, the histories and the chart"
    )


def run(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    """Replay what the options ask for and print it; the exit code."""
    from fencinglab import narrate, output
    from fencinglab.model import fix, incident, shelf
    from fencinglab.model.replay import replay

    if options.timeline is None:
        refuse(options, ("fix", "out"), "the replay of a timeline; name one (`fencinglab replay` lists them)")
        sys.stdout.write(narrate.listing())
        return 0
    timeline = shelf.find(options.timeline)
    there = [timeline.in_place] if timeline.in_place else []
    fixes = [fix.named(name) for name in options.fix or (*there, *timeline.fixes) or narrate.DEFAULT]
    fixes = [*dict.fromkeys(fixes)]
    companions = [replay(t, f) for t in shelf.companions(timeline, options.timeline) for f in fixes]
    runs = [replay(timeline, f) for f in fixes]
    sys.stdout.write(narrate.story(runs, companions))
    sys.stdout.writelines(narrate.conclusion(told) for told in incident.incidents() if told.timeline == timeline)
    if options.out:
        drawn = _drawn(runs)
        print(output.written(output.place({**narrate.contents(runs, companions), **drawn}, Path(options.out))))
        if not drawn:
            print("No charts: they need the set-up; type `python3 lab.py --version` once, then this again.")
    return 0


def _drawn(runs: Sequence[Run]) -> dict[str, bytes | str]:
    """The lanes of the runs as files by name; none where the libraries that draw are not installed."""
    if not (find_spec("altair") and find_spec("vl_convert")):
        return {}
    from fencinglab import charts
    from fencinglab.model.judged import judged

    alone = charts.lanes(judged(runs[0]), runs[0].told) if len(runs) == 1 else None
    return charts.files(alone or charts.multiples(runs), "lanes")
