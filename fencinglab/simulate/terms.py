"""The parameters of a workload in words; here alone, so that a command's help can show them without the simulator."""

from __future__ import annotations

SAYS = {
    "lease": "how long a lease lasts",
    "renewal": "how often a running worker renews, where the fix renews",
    "pause": "how long a worker stands still, once in an attempt",
    "work": "processing time of an attempt, without its pause",
    "message": "time of a write on its way",
    "takeover": "from the end of a lease until somebody asks for it",
    "gap": "from a look at the lease to the write after it",
    "step": "between check and write of a receiver in two steps",
    "skew": "how far two clocks may differ",
    "crash": "share of attempts that crash",
    "restart": "from a crash until the worker runs again",
    "repeat": "share of writes that arrive twice",
    "workers": "workers",
    "writes": "writes of an attempt; the last finishes the job",
    "attempts": "attempts after which a job is given up",
}
LAWS = ("pause", "work", "message", "takeover")  # the parameters that are a law, not one number
