"""The thirteen fixes once more, searched by Spin: verdicts, lengths of counterexamples, and states, beside `explore`.

    python tests/explore/spin.py [--workers 2] [--writes 2] [--fix NAME]...

A line for each fix, `explore = Spin` for each invariant and for the states; 1 where the two part, 2 where Spin or a C
compiler is missing. The model is written from the text of the model and not from the package; what a fix compares is
said in peer.py.

Why the lengths compare: each step of the model is one `d_step`, which Spin counts as one, and every process stands at
one place for ever, so a state of Spin is a state of the model. The judge only asserts: its steps change nothing, make
no state, and Spin gives the depth of the state in which an assertion failed. Breadth-first, the first depth that is
given is the smallest; the search goes on after it (`-c0`), so one search serves all invariants and counts all states.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import peer

from fencinglab.errors import FencinglabError, UsageError
from fencinglab.explore.search import explore, model_of
from fencinglab.model.fix import FIXES

PACKAGES = {"spin": "spin", "cc": "gcc"}  # command -> the package that has it
INVARIANTS = {"fell": "order", "stale": "ownership", "terminal": "terminal", "resting": "final"}  # by what is asserted
ADMITTED = {
    "nothing": "true",
    "highest": "token[sender] >= highest",
    "above": "token[sender] > highest",
    "latest": "token[sender] == issued",
    "owner": "owner == sender",
}
MODEL = """
#define NOBODY WORKERS
#define MESSAGES (WORKERS * WRITES)

/* where a worker is; between LEASED and DONE it is ready for its write k at 2 + 2k, and has checked for it at 3 + 2k */
#define IDLE 0
#define LEASED 1
#define DONE (2 + 2 * WRITES)

/* where a message is */
#define UNSENT 0
#define FLYING 1
#define FLYING_AGAIN 2
#define GONE 3

byte issued, owner = NOBODY, last, highest, terminal;
bool fell, stale;
byte place[WORKERS], token[WORKERS];
byte message[MESSAGES], checked[MESSAGES];
bool used[MESSAGES];

#define self _pid
#define working (place[self] > LEASED && place[self] < DONE)
#define has_checked (place[self] % 2 == 1)

active [WORKERS] proctype Worker()
{
    do
    :: d_step { place[self] == IDLE && owner == NOBODY && terminal == 0 ->  /* acquire */
           issued++; token[self] = issued; owner = self; place[self] = LEASED }
    :: d_step { place[self] == LEASED -> place[self] = 2 }  /* read */
    :: d_step { CLIENT_CHECK && working && !has_checked ->  /* check */
           if :: owner == self -> place[self]++ :: else -> place[self] = DONE fi }
    :: d_step { RENEWS && (place[self] == LEASED || working) && owner != self -> place[self] = DONE }  /* renewal fails */
    :: d_step { working && has_checked == CLIENT_CHECK ->  /* send */
           message[self * WRITES + place[self] / 2 - 1] = FLYING;
           place[self] = 2 * (place[self] / 2) + 2 }
    od
}

#define this (_pid - WORKERS)
#define sender (this / WRITES)
#define number (this % WRITES)

inline apply()
{
    fell = fell || token[sender] < highest;
    stale = stale || token[sender] < issued;
    last = token[sender];
    highest = (last > highest -> last : highest);
    terminal = (number == WRITES - 1 && terminal < 2 -> terminal + 1 : terminal);
    used[ID] = used[ID] || IDS
}

inline decide()
{
    if
    :: (ADMITTED) && !used[ID] -> if :: TWO_STEPS -> checked[this]++ :: else -> apply() fi
    :: else
    fi
}

active [MESSAGES] proctype Message()
{
    do
    :: d_step { message[this] == FLYING -> message[this] = FLYING_AGAIN; decide() }  /* deliver, a second copy is left */
    :: d_step { message[this] == FLYING || message[this] == FLYING_AGAIN -> message[this] = GONE; decide() }  /* deliver */
    :: d_step { checked[this] > 0 -> checked[this]--; apply() }
    od
}

active proctype Lease()
{
    do
    :: d_step { owner != NOBODY -> owner = NOBODY }  /* expire */
    od
}

active proctype Judge()
{
    bool resting; byte newest, n;  /* zero again after each use, so that they make no state */
    do
    :: assert(!fell)
    :: assert(!stale)
    :: assert(terminal < 2)
    :: d_step {
           resting = true; newest = 0;
           for (n : 0 .. WORKERS - 1) {
               resting = resting && (place[n] == DONE || (place[n] == IDLE && terminal > 0))
           }
           for (n : 0 .. MESSAGES - 1) {
               resting = resting && (message[n] == UNSENT || message[n] == GONE) && checked[n] == 0;
               newest = (message[n] == GONE && token[n / WRITES] > newest -> token[n / WRITES] : newest)
           }
           assert(!resting || last == newest);
           resting = false; newest = 0; n = 0
       }
    od
}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Search by both, print a line for each fix; 1 where the two part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--writes", type=int, default=2, metavar="W")
    parser.add_argument("--fix", action="append", choices=[*peer.FIXES], metavar="NAME")
    options = parser.parse_args(argv)
    parted: list[str] = []
    try:
        if lacking := missing():
            raise UsageError(lacking)
        columns = (*INVARIANTS.values(), "states")
        print(f"{'explore = Spin':<23}" + "".join(f"{name:<15}" for name in columns).rstrip(), flush=True)
        for name in options.fix or peer.FIXES:
            ours = explored(name, options.workers, options.writes)
            theirs = searched(peer.FIXES[name], options.workers, options.writes)
            parted += apart(name, ours, theirs)
            print(f"{name:<23}" + "".join(f"{cell:<15}" for cell in cells(ours, theirs)).rstrip(), flush=True)
    except FencinglabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(*(parted or ["all agree (steps of the shortest counterexample; none: there is none)"]), sep="\n")
    return int(bool(parted))


def missing() -> str:
    """Which command is not on this machine and what to install, in a sentence; empty where none is missing."""
    lacks = [command for command in PACKAGES if shutil.which(command) is None]
    packages = " and ".join(PACKAGES[command] for command in lacks)
    return f"no `{'` and no `'.join(lacks)}` on this machine: install {packages}" if lacks else ""


def explored(name: str, workers: int, writes: int) -> dict[str, int | None]:
    """`explore`'s length of the shortest counterexample to each invariant, None where there is none, and its states.

    A UsageError where the search is too large to be finished.
    """
    answer = explore(model_of(FIXES[name], workers, writes))
    if answer.stopped:
        raise UsageError(
            f"{_size(workers, writes)}: too large under {name}, `explore` stopped after {answer.states:,} states"
        )
    return {name: answer.of(name).length for name in INVARIANTS.values()} | {"states": answer.states}


def searched(fix: peer.Fix, workers: int, writes: int) -> dict[str, int | None]:
    """The same by Spin; a UsageError, with the reason that was given, where it did not finish."""
    # -o2: else Spin may leave out what is only ever written, and count too few states; -P: else it calls gcc by name
    commands = (["spin", "-Pcc -E -x c", "-a", "-o2", "fix.pml"],
                ["cc", "-O1", "-w", "-DBFS", "-DNOREDUCE", "-o", "pan", "pan.c"],
                ["./pan", "-c0"])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "fix.pml").write_text(promela(fix, workers, writes), encoding="utf-8")
        for command in commands:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                said = re.search(r".*error.*", f"{done.stdout}\n{done.stderr}", re.IGNORECASE)
                why = said[0].strip() if said else f"exit code {done.returncode}"
                raise UsageError(f"{_size(workers, writes)}: `{command[0]}` failed, it said: {why}")
    stored = re.search(r"(\S+) states, stored", done.stdout)
    if stored is None or "Search not completed" in done.stdout:
        raise UsageError(f"{_size(workers, writes)}: Spin did not finish, probably for want of memory")
    found: dict[str, int | None] = dict.fromkeys(INVARIANTS.values())
    for asserted, depth in re.findall(r"assertion violated \W*(\w+).*\(at depth (\d+)\)", done.stdout):
        if found[INVARIANTS[asserted]] is None:
            found[INVARIANTS[asserted]] = int(depth)
    return found | {"states": int(float(stored[1]))}


def promela(fix: peer.Fix, workers: int, writes: int) -> str:
    """The model of a fix in Spin's language."""
    defined = {
        "WORKERS": workers, "WRITES": writes, "ADMITTED": ADMITTED[fix.compares], "TWO_STEPS": int(fix.two_steps),
        "CLIENT_CHECK": int(fix.client_check), "RENEWS": int(fix.renew), "IDS": int(bool(fix.ids)),
        "ID": "number" if fix.ids == "job" else "this",
    }  # fmt: skip
    return "".join(f"#define {name} {value}\n" for name, value in defined.items()) + MODEL


def cells(ours: Mapping[str, int | None], theirs: Mapping[str, int | None]) -> Iterator[str]:
    """A cell for each invariant and the states: what `explore` found, whether it is the same, what Spin found."""
    for name, found in ours.items():
        yield f"{_told(found)} {'=' if found == theirs[name] else '≠'} {_told(theirs[name])}"


def apart(fix: str, ours: Mapping[str, int | None], theirs: Mapping[str, int | None]) -> list[str]:
    """A line for each invariant, and for the states, on which the two part."""
    return [
        f"{fix}, {name}: explore {_told(found)}, Spin {_told(theirs[name])}"
        for name, found in ours.items() if found != theirs[name]
    ]  # fmt: skip


def _told(found: int | None) -> str:
    return "none" if found is None else f"{found:,}"


def _size(workers: int, writes: int) -> str:
    return f"--workers {workers} --writes {writes}"


if __name__ == "__main__":
    sys.exit(main())
