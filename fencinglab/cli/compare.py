"""The verb `compare` of the command line: its options, and what becomes of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from fencinglab.cli.options import give, hazards, refuse
from fencinglab.errors import UsageError
from fencinglab.simulate.terms import LAWS, TERMS

PARAMETERS = {
    name: f"{'law: ' * (name in LAWS)}{says} (default {default}{'; 2 with --matrix' * (name == 'workers')})"
    for name, (says, default) in TERMS.items()
}
_READING = ("map", "order", "terminal")  # how a log is read
_SIZES = ("workers", "writes")  # the parameters that a search has too


def add(verbs: Any) -> None:
    """Add the verb with its options."""
    compare = verbs.add_parser(
        "compare", help="Which fix, at what cost? Fixes side by side.",
        description="Which fix, at what cost? Sets fixes side by side: which invariant each holds in every order of "
        "events, what it would have changed on your log, and what it costs over many simulated jobs with your times. "
        "With --matrix only what can happen, for all fixes, and which public incidents each prevents.",
        epilog="exit codes: 0 compared, 2 a name, a number or a file that cannot be used", allow_abbrev=False,
    )  # fmt: skip
    compare.add_argument("--fix", action="append", metavar="NAME", help="only these; may be given often")
    compare.add_argument("--out", metavar="DIR", help="write the page, CSV and JSON")
    compare.add_argument("--quiet", action="store_true", help="no progress on the terminal")
    log = compare.add_argument_group("your log")
    log.add_argument("--log", action="append", default=[], metavar="LOG", help="as for audit; may be given often")
    log.add_argument("--map", action="append", default=[], metavar="COLUMN=FIELD", help="as for audit")
    log.add_argument("--order", metavar="lines", help="as for audit")
    log.add_argument("--terminal", metavar="A,B", help="as for audit")
    compare.add_argument(
        "--requests", metavar="FILE", help="your own conditional writes, as for check: a row beside the fixes"
    )
    times = compare.add_argument_group(
        "the workload", "a time is 30s, 500ms; a law is a time, exponential:MEAN, lognormal:MEDIAN,SIGMA or "
        "pareto:LEAST,SHAPE; what is not said comes from the log where it shows enough, else it is a named default",
    )  # fmt: skip
    for name, meaning in PARAMETERS.items():
        times.add_argument(f"--{name}", metavar="X", help=meaning)
    jobs = compare.add_argument_group("the simulation")
    jobs.add_argument("--jobs", type=int, metavar="N", help="how many jobs under each fix (default 100,000)")
    jobs.add_argument("--seed", type=int, metavar="S", help="another seed draws other jobs (default 1)")
    jobs.add_argument("--precision", type=float, metavar="P", help="the smallest share to be told from none")
    every = compare.add_argument_group("what can happen")
    every.add_argument("--matrix", action="store_true", help="fixes × invariants, fixes × incidents; nothing else")
    hazards(every)


def run(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    """Compare what the options, typed as `words`, ask for and print it; the exit code."""
    return _matrix(options, show) if options.matrix else _review(options, words, show)


def _matrix(options: argparse.Namespace, show: Callable[[str], None]) -> int:
    from fencinglab.compare import matrix as told
    from fencinglab.explore import hazards as going_wrong
    from fencinglab.explore import matrix
    from fencinglab.model import fix, incident

    simulated = [name for name in (*PARAMETERS, "jobs", "seed", "precision") if name not in _SIZES]
    for what, names in (
        ("a log", ("log", *_READING)), ("your own requests", ["requests"]), ("a simulation", simulated),
    ):  # fmt: skip
        refuse(options, names, f"{what}, and --matrix has none; leave out one of the two")
    workers, writes = (_whole(name, getattr(options, name)) for name in _SIZES)
    fixes = [fix.named(name).name for name in dict.fromkeys(options.fix or fix.FIXES)]
    chosen = going_wrong.chosen(options.hazard)
    alert = "none" if options.alert is None else options.alert
    cells = [*matrix.cells(fixes, workers, writes, chosen, alert, show)]
    show("")
    hazards_on = ", ".join(map(str, chosen)) or "none"
    searched = f"workers: {workers}; writes of each: {writes}; hazards on: {hazards_on}"
    tried = incident.rows(fixes=fixes)
    give(told.screen(cells, searched, tried), options.out, lambda: told.contents(cells, searched, tried))
    return 0


def _whole(name: str, text: str | None) -> int:
    try:
        return 2 if text is None else int(text)
    except ValueError:
        raise UsageError(f"--{name} {text}: write a whole number") from None


def _review(options: argparse.Namespace, words: Sequence[str], show: Callable[[str], None]) -> int:
    from fencinglab.compare import review, told

    what = "--matrix, since a simulation has the hazards of its workload; leave it out, or add --matrix"
    refuse(options, ("hazard", "alert"), what)
    refuse(options, () if options.log else _READING, "a log; leave it out, or name the log with --log")
    log_options = {"map": ";".join(options.map), "order": options.order, "terminal": options.terminal}
    asked = review.Asked(
        fixes=tuple(options.fix or review.FIXES),
        said={name: text for name in PARAMETERS if (text := getattr(options, name)) is not None},
        logs=tuple(options.log), log_options={name: text for name, text in log_options.items() if text},
        requests=options.requests, jobs=review.JOBS if options.jobs is None else options.jobs,
        seed=1 if options.seed is None else options.seed, precision=options.precision, command=("fencinglab", *words),
    )  # fmt: skip
    found = review.review(asked, show)
    show("")
    give(told.screen(found), options.out, lambda: told.contents(found))
    return 0
