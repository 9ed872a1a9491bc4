"""Logs in which every name, value and reason is hostile: to a terminal, a page, a notebook and a table."""

import re

import worlds

HOSTILE = "<script>alert(1)</script>\x1b[31m\x9b5m\u202edrow\u2066\u200b=cmd()\r\n\x07" + "x" * 1_000_000
ACTING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def hostile_stream() -> str:
    """A stale write in which every name is hostile."""
    table = worlds.Table("jobs", "jobId", 3)
    a, b = (worlds.Worker(table, f"{name}{HOSTILE[:200]}") for name in "ab")
    job = f"job{HOSTILE[:300]}"
    worlds.enqueue(table, job, status=f"Q{HOSTILE[:100]}")
    a.acquire(job)
    a.write(job, status=f"R{HOSTILE[:100]}")
    table.now += 90
    b.acquire(job)
    b.write(job, resultHash=HOSTILE, alertId=f"alert{HOSTILE[:100]}")
    a.overwrite(job, resultHash="old")
    return worlds.stream(table.records)


def hostile_lines() -> str:
    """The same as a log of lines, with names of a megabyte and hostile field names and reasons."""
    who = [f"{name}{HOSTILE}" for name in "ab"]
    base = {"jobId": f"job{HOSTILE}", f"f{HOSTILE[:60]}": 1}
    events = [
        base | {"seq": 1, "event": "acquire", "worker": who[0], "token": 1, "decision": "accepted"},
        base | {"seq": 2, "event": "acquire", "worker": who[1], "token": 2, "decision": "accepted"},
        base | {"seq": 3, "event": "write", "worker": who[1], "token": 2, "decision": "accepted", "status": HOSTILE},
        base | {"seq": 4, "event": "write", "worker": who[0], "token": 1, "decision": "accepted"},
        base | {"seq": 5, "event": "write", "worker": who[0], "token": 1, "decision": "rejected", "reason": HOSTILE},
        base | {"seq": 6, "event": f"save{HOSTILE[:80]}", "worker": who[0], "token": 2},
        base | {"seq": f"7{HOSTILE[:80]}", "event": "write", "worker": who[0], "token": 2},
        base | {"seq": 8, "event": "write", "worker": who[0], "token": HOSTILE[:80]},
    ]
    return worlds.lines(events)
