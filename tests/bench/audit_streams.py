"""How fast the audit of a large stream log is, beside its floor and its peer.

    python tests/bench/audit_streams.py [--records 5000000] [--gz] [--runs 3] [--data FOLDER] [--no-pandas | --stages]

A log is made once (seeded, about 1 KB a record, see make_log.py) and read by three programs, each in a
process of its own, in turns so that a noisy neighbour disturbs them alike:

    audit   `fencinglab audit LOG --terminal SUCCEEDED,FAILED --quiet`: every rule, with its evidence
    parse   DuckDB merely parsing the same columns: what no audit by DuckDB can do without
    pandas  the same rules by pandas and orjson, counts only (pandas_peer.py)

Printed are medians of their ratios first, for they travel; seconds are this machine's. Before that the
audit must have found exactly the stale writes that were put in, and agree with pandas on every count.

`--stages` prints instead what each stage of the audit costs, as CPU beside that of the parse: what no other
stage could save.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
TERMINAL = ("SUCCEEDED", "FAILED")
ATTRIBUTES = (
    "requestId", "apiStatus", "attempt", "nextPollAt", "version", "writtenBy", "writtenToken", "leaseOwner",
    "fencingToken", "leaseExpiresAt", "responseHash", "terminalVersion", "alertId",
)  # fmt: skip
CPU_GOAL, PANDAS_GOAL, PEAK_GOAL, PEAK_RECORDS = 3.2, 3.0, 1.2 * 1024, 5_000_000


class Cost(NamedTuple):
    """What one process took."""

    cpu: float  # seconds, user and system
    wall: float  # seconds
    peak: float  # MiB of resident memory


def main(argv: Sequence[str] | None = None) -> int:
    """Make the log, run the programs, print; 1 where the audits do not agree."""
    options = _options(argv)
    if options.job:
        print(json.dumps(JOBS[options.job](Path(options.log))))
        return 0
    with tempfile.TemporaryDirectory(prefix="fencinglab-bench-") as scratch:
        sys.path.insert(0, str(HERE))
        import make_log

        log, known = make_log.made(Path(options.data or scratch), options.records, options.seed, options.gz)
        if hasattr(os, "sched_setaffinity"):  # all on two cores, so that a larger machine does not change the ratios
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        if options.stages:
            print(_by_stage(log, options.runs))
            return 0
        audited = _job("audit", log)  # also brings the files into memory
        found = None if options.no_pandas else _job("pandas", log)
        programs = {
            "audit": [
                sys.executable,
                "-m",
                "fencinglab",
                "audit",
                str(log),
                "--terminal",
                ",".join(TERMINAL),
                "--quiet",
            ],
            "parse": _command("parse", log),
        }
        if not options.no_pandas:
            programs["pandas"] = _command("pandas", log)
        costs: dict[str, list[Cost]] = {name: [] for name in programs}
        for _ in range(options.runs):
            for name, command in programs.items():
                costs[name].append(_cost(command))
    print(_ratios(costs, known))
    print(_seconds(costs, known))
    faults = _disagreements(audited, found, known)
    injected = ", ".join(f"{rule} {known[rule]}" for rule in make_log.INJECTED)
    print(f"\nThe log: {known['records']:,} records, {known['keys']:,} keys, {known['duplicates']:,} duplicates, "
          f"{known['files']:,} files, {known['bytes'] / 1e6:,.0f} MB; stale writes put in: {injected}.")  # fmt: skip
    if faults:
        print("The audits do NOT agree:", *faults, sep="\n  ")
        return 1
    peer = f", and agrees with pandas on the findings and cases of {len(found['rules'])} rules" if found else ""
    print(f"The audit found exactly these{peer}.")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument("--records", type=int, default=1_000_000, help="how many, at least 1,000 (default 1,000,000)")
    parser.add_argument("--gz", action="store_true", help="as 10,000 small gz files")
    parser.add_argument("--runs", type=int, default=3)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-pandas", action="store_true", help="leave out pandas, which needs memory for all rows")
    which.add_argument("--stages", action="store_true", help="what each stage of the audit costs, and no other program")
    parser.add_argument("--data", metavar="FOLDER", help="where logs are kept for the next time (default: not kept)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)  # what the processes of this script do
    parser.add_argument("--log", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


# --------------------------------------------------------------------------- the programs


def _audit(log: Path) -> dict[str, Any]:
    """What the audit counts, as pandas_peer.audit gives it."""
    from fencinglab.report.examine import audit_logs

    report = audit_logs([str(log)], terminal=",".join(TERMINAL))
    rules = {rule["name"]: [rule["count"], rule["cases"]] for rule in report["rules"]}
    return {"duplicates": report["entries"]["duplicates"], "records": report["entries"]["records"], "rules": rules}


def _stages(log: Path) -> dict[str, float]:
    """{stage: CPU seconds} of an audit, from the start of its process on."""
    from fencinglab.report.examine import examine, request_of

    ends = [("start", time.process_time())]
    request = request_of([str(log)], {"terminal": ",".join(TERMINAL)})
    with examine(request, progress=lambda stage: ends.append((stage, time.process_time()))):
        ends.append(("", time.process_time()))
    begun = {"start": ends[0][1]}
    return begun | {stage: end - begin for (stage, begin), (_, end) in pairwise(ends[1:])}


def _parse(log: Path) -> list[Any]:
    """The greatest of each column, so that none is left out."""
    import duckdb

    text = "varchar"
    image = _struct(dict.fromkeys(ATTRIBUTES, _struct({"S": text, "N": text})))
    inner = {"ApproximateCreationDateTime": text, "Keys": "json", "NewImage": image, "OldImage": image}
    outer = {"eventID": text, "eventName": text, "eventSourceARN": text, "userIdentity": text}
    outer["dynamodb"] = _struct(inner | {"SequenceNumber": text})
    leaves = [
        "eventID",
        "eventName",
        "eventSourceARN",
        "userIdentity",
        "dynamodb.SequenceNumber",
        "dynamodb.ApproximateCreationDateTime",
    ]
    leaves += ["dynamodb.Keys::varchar"]
    leaves += [
        f'dynamodb.{side}."{n}".{tag}' for side in ("NewImage", "OldImage") for n in ATTRIBUTES for tag in ("S", "N")
    ]
    with duckdb.connect() as con:
        con.execute("set threads = 2")
        columns = ", ".join(f"'{name}': '{of}'" for name, of in outer.items())
        files = str(log / "*")
        return con.execute(
            f"select {', '.join(f'max({leaf})' for leaf in leaves)} from read_json(?, columns = {{{columns}}},"
            " format = 'newline_delimited', records = 'true')", [files],
        ).fetchall()  # fmt: skip


def _struct(members: dict[str, str]) -> str:
    return "struct(" + ", ".join(f'"{name}" {of}' for name, of in members.items()) + ")"


def _pandas(log: Path) -> dict[str, Any]:
    import pandas_peer

    return pandas_peer.audit(log, TERMINAL)


JOBS = {"audit": _audit, "stages": _stages, "parse": _parse, "pandas": _pandas}


def _command(job: str, log: Path) -> list[str]:
    return [sys.executable, str(HERE / "audit_streams.py"), "--job", job, "--log", str(log)]


def _job(job: str, log: Path) -> Any:
    done = subprocess.run(_command(job, log), env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def _environment() -> dict[str, str]:
    """With the package that lies beside this script."""
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE.parents[1]), str(HERE)))}


def _cost(command: list[str]) -> Cost:
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=_environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, 3):  # an audit's verdicts
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * unit / (1 << 20))


# --------------------------------------------------------------------------- what is printed


def _by_stage(log: Path, runs: int) -> str:
    """Medians of each stage's CPU beside that of a parse in the same turn, and of what they come to."""
    _job("parse", log)  # brings the files into memory
    turns = [(_job("stages", log), _cost(_command("parse", log)).cpu) for _ in range(runs)]
    lines = [f"{median(stages[name] / parse for stages, parse in turns):6.2f}  {name}" for name in turns[0][0]]
    whole = median(sum(stages.values()) / parse for stages, parse in turns)
    return "\n".join(["CPU beside that of the parse, which is 1:", *lines, f"{whole:6.2f}  together"])


def _ratios(costs: dict[str, list[Cost]], known: dict[str, Any]) -> str:
    """The medians of the ratios within a turn, with the goals."""

    def ratio(of: str, to: str, what: str) -> float:
        return median(getattr(a, what) / getattr(b, what) for a, b in zip(costs[of], costs[to], strict=True))

    def met(yes: bool) -> str:
        return "met" if yes else "NOT met"

    lines = []
    cpu = ratio("audit", "parse", "cpu")
    lines.append(f"audit / parse   CPU {cpu:5.2f}   wall {ratio('audit', 'parse', 'wall'):5.2f}   "
                 f"goal: CPU <= {CPU_GOAL}, {met(cpu <= CPU_GOAL)}")  # fmt: skip
    if "pandas" in costs:
        wall = ratio("pandas", "audit", "wall")
        lines.append(f"pandas / audit  CPU {ratio('pandas', 'audit', 'cpu'):5.2f}   wall {wall:5.2f}   "
                     f"goal: wall >= {PANDAS_GOAL}, {met(wall >= PANDAS_GOAL)}")  # fmt: skip
    peak = max(cost.peak for cost in costs["audit"])
    goal = met(peak <= PEAK_GOAL) if known["records"] >= PEAK_RECORDS else f"not tried with {known['records']:,}"
    lines.append(f"audit's peak    {peak:,.0f} MiB   goal: <= {PEAK_GOAL:,.0f} MiB at {PEAK_RECORDS:,} records, {goal}")
    return "\n".join(lines)


def _seconds(costs: dict[str, list[Cost]], known: dict[str, Any]) -> str:
    import duckdb

    runs = len(costs["audit"])
    where = f"{os.cpu_count()} cores, two used, Python {platform.python_version()}, DuckDB {duckdb.__version__}"
    lines = [f"\nThis machine's ({where}), medians of {runs} runs:", "            CPU s    wall s   peak MiB"]
    for name, of in costs.items():
        cpu, wall, peak = (median(values) for values in zip(*of, strict=True))
        lines.append(f"  {name:7}{cpu:8.2f}  {wall:8.2f}   {peak:8,.0f}")
    return "\n".join(lines)


def _disagreements(audited: dict[str, Any], found: dict[str, Any] | None, known: dict[str, Any]) -> list[str]:
    """What the audit counts otherwise than what was put in, or than pandas."""
    from make_log import INJECTED

    faults = [f"{name}: {audited[name]:,} by the audit, {known[name]:,} made" for name in ("records", "duplicates")
              if audited[name] != known[name]]  # fmt: skip
    for name, (broken, _) in audited["rules"].items():
        expected = known[name] if name in INJECTED else 0
        if broken != expected:
            faults.append(f"{name}: {broken:,} by the audit, {expected:,} put in")
    if found:
        faults += [
            f"{name}: {audited['rules'][name]} by the audit, {counts} by pandas"
            for name, counts in found["rules"].items() if audited["rules"][name] != counts
        ]  # fmt: skip
        if audited["duplicates"] != found["duplicates"]:
            faults.append(f"duplicates: {audited['duplicates']:,} by the audit, {found['duplicates']:,} by pandas")
    return faults


if __name__ == "__main__":
    sys.exit(main())
