"""The parameters of a workload in words; here alone, so that a command's help can show them without the simulator."""

from __future__ import annotations

TERMS = {  # what each parameter is, and its default, which was made for no team in particular
    "lease": ("how long a lease lasts", "30s"),
    "renewal": ("how often a running worker renews, where the fix renews", "a third of the lease"),
    "pause": ("how long a worker stands still, once in an attempt", "lognormal:200ms,2"),
    "work": ("processing time of an attempt, without its pause", "lognormal:10s,0.5"),
    "message": ("time of a write on its way", "exponential:20ms"),
    "takeover": ("from the end of a lease until somebody asks for it", "exponential:2s"),
    "gap": ("from a look at the lease to the write after it", "10ms"),
    "step": ("between check and write of a receiver in two steps", "5ms"),
    "skew": ("how far two clocks may differ", "0s"),
    "crash": ("share of attempts that crash", "0.001"),
    "restart": ("from a crash until the worker runs again", "60s"),
    "repeat": ("share of writes that arrive twice", "0.01"),
    "workers": ("workers", "3"),
    "writes": ("writes of an attempt; the last finishes the job", "2"),
    "attempts": ("attempts after which a job is given up", "30"),
}
LAWS = ("pause", "work", "message", "takeover")  # the parameters that are a law, not one number
