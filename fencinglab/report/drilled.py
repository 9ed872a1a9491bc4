"""What a drill found, audited from the files that it leaves: text, exit code, and the files themselves.

The records of the stream and the workers' log are written as a team would archive them, and audited as any other log:
`fencinglab audit` of the same two files gives the same verdict.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fencinglab import output
from fencinglab.drill.run import Drilled
from fencinglab.errors import InputError
from fencinglab.inert import wrapped
from fencinglab.logs.mapping import FIELDS, plain
from fencinglab.report import files, screen
from fencinglab.report.examine import Examination, examine, request_of

STREAM, LOG = "stream.jsonl", "workers.jsonl"


class Judged(NamedTuple):
    """A drill with the audit of what it left."""

    drilled: Drilled
    examination: Examination
    exit_code: int  # as of an audit; 1 also where an expectation or an item is wrong, 3 where a scenario did not end


@contextmanager
def judged(drilled: Drilled, out: Path | None = None, fail_on: str = "") -> Iterator[Judged]:
    """The drill and its audit, whose tables are gone when the block ends; with `out` the files stay there.

    InputError where the receiver decided nothing.
    """
    with tempfile.TemporaryDirectory(prefix="fencinglab-drill-") as scratch:
        folder = out or Path(scratch)
        if all(line["decision"] == "unknown" for line in drilled.log):
            why = next((f"; {name} did not end: {why}" for name, why in drilled.stopped), "")
            raise InputError(f"{drilled.file.name}: no change was decided, so there is no history to audit{why}")
        left = contents(drilled)
        output.place(left, folder)
        options = options_of(drilled) | ({"fail_on": fail_on} if fail_on else {})
        logs = [str(folder / name) for name in left]
        told = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        with examine(replace(request_of(logs, options), command=("fencinglab", "audit", *logs, *told))) as done:
            broken = drilled.unlike or [check for check in drilled.checks if not check.holds]
            code = int(done.report["exit_code"])
            yield Judged(drilled, done, 1 if broken else code or (3 if drilled.stopped else 0))


def contents(drilled: Drilled) -> dict[str, str]:
    """The files that a drill leaves, by name; the stream only where the receiver has one."""

    def text(objects: tuple[dict[str, object], ...]) -> str:
        return "".join(json.dumps(one, separators=(",", ":"), ensure_ascii=False) + "\n" for one in objects)

    made = {STREAM: text(drilled.stream)} if drilled.stream else {}
    return made | {LOG: text(drilled.log)}


def options_of(drilled: Drilled) -> dict[str, str]:
    """How `fencinglab audit` is to read the files: what is terminal, and attributes that it does not know by name.

    An attribute that no record of the stream has is left out, since the audit refuses such a name.
    """
    file = drilled.file
    known = {column: {plain(name) for names in field.known for name in names} for column, field in FIELDS.items()}
    there = {name for record in drilled.stream or () for name in record["dynamodb"].get("NewImage", ())}
    unknown = [
        f"{column}={name}"
        for column, name in file.map.items()
        if name in there and plain(name) not in known[column] and FIELDS[column].stream
    ]
    return {"terminal": ",".join(file.terminal) or "none"} | ({"map": ",".join(unknown)} if unknown else {})


def audit(drilled: Drilled) -> dict[str, Any]:
    """The report of the audit of what a drill left, as `examine.audit_logs` gives it."""
    with judged(drilled) as one:
        return one.examination.report


def points(drilled: Drilled) -> list[dict[str, Any]]:
    """A row a scenario with its evidence: how many expectations came true, what was accepted, what refused and why."""
    rows = []
    for scenario in drilled.played:
        checks = [check for check in drilled.checks if check.scenario == scenario.name]
        lines = [line for line in drilled.log if line["scenario"] == scenario.name]
        reasons = Counter(line["reason"] for line in lines if line["decision"] == "rejected")
        rows.append({
            "scenario": scenario.name, "what happens": scenario.says,
            "as expected": f"{sum(check.holds for check in checks)} of {len(checks)}",
            "accepted": sum(line["decision"] == "accepted" for line in lines),
            "refused": ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()),
        })  # fmt: skip
    return rows


def report(one: Judged) -> str:
    """What `fencinglab drill` prints: the scenarios, what was not played, and the audit."""
    drilled = one.drilled
    lines = [_headline(one), ""]
    for scenario in drilled.played:
        mine = [check for check in drilled.checks if check.scenario == scenario.name]
        ended = [why for name, why in drilled.stopped if name == scenario.name]
        failed = [check.says for check in mine if not check.holds]
        shows = f" (shows {', '.join(scenario.shows)})" if scenario.shows else ""
        mark = "?" if ended else "✕" if failed else "●"
        begin = f"{mark} {scenario.name:21} {len(mine) - len(failed):>3} of {len(mine):<3}"
        lines += _wrapped(begin, scenario.says + shows)
        lines += [line for why in failed[:3] for line in _wrapped(" " * 34, f"not so: {why}")]
        lines += [line for why in ended for line in _wrapped(" " * 34, f"not ended: {why}")]
    if drilled.left_out:
        lines += ["", "Not played:"]
        lines += [line for name, why in drilled.left_out for line in _wrapped(f"  {name:32}", why)]
    if drilled.unlike:
        unlike = ", ".join(drilled.unlike[:5])
        lines += ["", *_wrapped("", f"Read back, these items are not what the history says: {unlike}")]
    asked = f"{drilled.requests:,} operations in {drilled.seconds:.0f} s"
    without = "" if drilled.stream else ", without a stream, since none could be read"
    lines += ["", f"{asked}. The audit of what they left{without}:", ""]
    return "\n".join(lines) + "\n" + screen.screen(one.examination.report)


def _headline(one: Judged) -> str:
    receiver = one.drilled.receiver
    where = receiver.url or {"mock": "the mock", "unlocked-mock": "the unlocked mock", "aws": "AWS"}[receiver.kind]
    failed = [check for check in one.drilled.checks if not check.holds]
    if failed or one.drilled.unlike:
        first = failed[0].scenario if failed else one.drilled.unlike[0]
        return f"Violated: {one.drilled.file.name} on {where} did not do what was expected, first in {first}."
    if one.drilled.stopped:
        names = ", ".join(name for name, _ in one.drilled.stopped)
        return f"Not decided: on {where} these did not come to their end: {names}."
    count = len(one.drilled.played)
    expect = "1 scenario expects" if count == 1 else f"{count} scenarios expect"
    wrote = any(line["kind"] not in ("grant", "renew", "release") for line in one.drilled.log)
    nobody = "" if wrote else ", but nobody wrote under a lease, so no write was put to the test"
    return f"{one.drilled.file.name} on {where}: all that {expect} came true{nobody}."


def _wrapped(begin: str, text: str) -> list[str]:
    return wrapped(begin + " " * bool(begin.strip()), text, 35) or [begin]


def write(one: Judged, out: Path) -> list[Path]:
    """Write the report files of the audit beside what the drill left; the paths of all."""
    left = [out / name for name in contents(one.drilled)]
    return [*left, *files.write(one.examination, out, private=True, more={"drill.txt": report(one)})]
