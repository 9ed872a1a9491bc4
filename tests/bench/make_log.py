"""A large stream log of the request-status table: healthy, but for a known number of stale writes.

Every item is created, leased, renewed, scheduled, answered, finished, alerted, released, taken over after
its lease ran out, and some are removed by TTL. Records are made by string templates, in chunks of whole
items with a seed each, then shuffled over the files; the same arguments give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

VERSION = 1  # of what is generated; a new one makes cached logs stale
FILES, SMALL_FILES = 8, 10_000
LEASE, BEGIN, SPAN = 60, 1_772_442_000, 5 * 86_400
HOT = 0.02  # the share of one key
TWICE = 0.005  # the share of records that are delivered twice
GOES_ON = 0.448  # how often another round of polling follows: with it 13% of records have a key of their own
INJECTED = ("stale_write_accepted", "token_went_back", "unfenced_write")  # each once a chunk
CHUNK = 50_000  # records made at a time
ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/request-status/stream/2026-02-27T08:15:00.000"

State = dict[str, Any]
Change = tuple[float, State | None]  # when, and the item afterwards; None = TTL removed it


def made(folder: Path, records: int, seed: int, packed: bool) -> tuple[Path, dict[str, Any]]:
    """The folder with the log, made unless it is there, and what is known of it."""
    place = folder / f"stream-v{VERSION}-{records}-{seed}{'-gz' if packed else ''}"
    if not (place / "made.json").exists():
        work = place.with_name(place.name + ".part")
        shutil.rmtree(work, ignore_errors=True)
        (work / "log").mkdir(parents=True)
        hot = round(records * HOT)
        sizes = [CHUNK] * ((records - hot) // CHUNK)
        sizes.append(records - hot - sum(sizes))
        jobs = [(work, seed, i, n, False) for i, n in enumerate(sizes) if n] + [(work, seed, len(sizes), hot, True)]
        known: Counter[str] = Counter()
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for counts in pool.map(_chunk, *zip(*jobs, strict=True)):
                known.update(counts)
            small = max(1, min(SMALL_FILES, records // 100) // FILES) if packed else 0
            list(pool.map(_shuffle, [work] * FILES, [seed] * FILES, range(FILES), [small] * FILES))
        known["bytes"] = sum(file.stat().st_size for file in (work / "log").iterdir())
        known["files"] = sum(1 for _ in (work / "log").iterdir())
        (work / "made.json").write_text(json.dumps(known), encoding="utf-8")
        work.rename(place)
    return place / "log", json.loads((place / "made.json").read_text(encoding="utf-8"))


def _chunk(work: Path, seed: int, number: int, size: int, hot: bool) -> Counter[str]:
    """Write some items' records, dealt out to a part of each file; what was made."""
    rng = random.Random(f"{seed} {number}")
    parts: list[list[str]] = [[] for _ in range(FILES)]
    known: Counter[str] = Counter()
    while known["records"] < size:
        wrong = "" if hot else dict(enumerate(INJECTED)).get(known["keys"], "")
        key = "req-hot" if hot else f"req-{number:04}{known['keys']:06}"
        whole = True
        for record in _records(rng, key, _life(rng, wrong, endless=hot)):
            copies = min(2 if rng.random() < TWICE else 1, size - known["records"])
            for _ in range(copies):
                parts[rng.randrange(FILES)].append(record)
            known["records"] += copies
            known["duplicates"] += copies - 1
            if known["records"] == size:  # the log ends, whatever the item was at
                whole = False
                break
        known["keys"] += 1
        if wrong and not whole:
            raise ValueError(f"{size} records are too few")
        known[wrong or "healthy"] += 1
    for i, part in enumerate(parts):
        (work / f"{i}-{number:04}.part").write_text("".join(part), encoding="utf-8")
    return known


def _shuffle(work: Path, seed: int, file: int, small: int) -> None:
    """Make one file of its parts, or many `small` ones that are packed."""
    parts = sorted(work.glob(f"{file}-*.part"))
    lines = [line for part in parts for line in part.read_bytes().splitlines(keepends=True)]
    random.Random(f"{seed} file {file}").shuffle(lines)
    if small:
        for i in range(small):
            packed = gzip.compress(b"".join(lines[i::small]), 6, mtime=0)
            (work / "log" / f"{file}-{i:04}.json.gz").write_bytes(packed)
    else:
        with (work / "log" / f"stream-{file}.jsonl").open("wb") as out:
            out.writelines(lines)
    for part in parts:
        part.unlink()


def _life(rng: random.Random, wrong: str, endless: bool) -> Iterator[Change]:
    """An item from its creation on; with `wrong`, one write of a worker that had lost its lease."""
    now = BEGIN + rng.random() * SPAN
    item: State = {"apiStatus": "QUEUED", "attempt": 0, "nextPollAt": int(now), "version": 1, "writtenBy": "uploader"}
    token, owner = 0, ""

    def step(least: float, most: float, leased: bool = False, **changes: Any) -> Change:
        """A write of the holder under its token, some seconds later; `leased`, the lease runs anew from then."""
        nonlocal now, item
        now += least + rng.random() * (most - least)
        item = item | {"version": item["version"] + 1, "writtenToken": token, "writtenBy": owner} | changes
        if leased:
            item["leaseExpiresAt"] = int(now) + LEASE
        item = {name: value for name, value in item.items() if value is not None}
        return now, item

    def acquire(least: float, most: float) -> Change:
        nonlocal token, owner
        token, owner = token + 1, rng.choice([name for name in WORKERS if name != owner])
        return step(least, most, leased=True, leaseOwner=owner, fencingToken=token)

    def respond() -> Change:
        return step(1, 4, apiStatus="PROCESSING", responseHash=_hash(rng), attempt=item["attempt"] + 1)

    yield now, item
    yield acquire(1, 9)
    while endless or wrong or rng.random() < GOES_ON:
        stale = owner
        yield respond()
        if rng.random() < 0.3:
            yield step(10, 20, leased=True)
        crashes = wrong or rng.random() < 0.2
        if not crashes:
            yield step(1, 3, nextPollAt=int(now) + 30)
            yield step(0.2, 1, leaseOwner=None, leaseExpiresAt=None)
        yield acquire(LEASE + 30, LEASE + 90) if crashes else acquire(30, 90)
        if wrong:
            if wrong != "stale_write_accepted":
                yield respond()
            now += 5
            returned = {"apiStatus": "RETRYING", "responseHash": _hash(rng), "attempt": item["attempt"]}
            if wrong != "unfenced_write":
                returned |= {"version": item["version"] + 1, "writtenToken": token - 1, "writtenBy": stale}
            item = item | returned
            yield now, item
            break
    failed = rng.random() < 0.15
    status = "FAILED" if failed else "SUCCEEDED"
    answer = {"responseHash": _hash(rng), "attempt": item["attempt"] + 1, "terminalVersion": 1}
    yield step(1, 4, apiStatus=status, nextPollAt=None, **answer)
    if failed:
        yield step(0.2, 1, alertId=f"alert-{_hash(rng)[:8]}")
    yield step(0.2, 1, leaseOwner=None, leaseExpiresAt=None)
    if rng.random() < 0.1:
        yield now + 7 * 86_400, None


WORKERS = [f"{kind}/{n:02}" for kind in ("wp-cron", "action-scheduler", "queue-worker", "lambda") for n in range(10)]


def _hash(rng: random.Random) -> str:
    return f"{rng.getrandbits(64):016x}"


def _records(rng: random.Random, key: str, changes: Iterator[Change]) -> Iterator[str]:
    """The stream records of one item's life, a line each."""
    old = ""
    for now, item in changes:
        name = "REMOVE" if item is None else "MODIFY" if old else "INSERT"
        new = "" if item is None else _image(key, item)
        images = (f'"NewImage":{new},' if new else "") + (f'"OldImage":{old},' if old else "")
        service = ',"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}' if item is None else ""
        sequence = 8 * 10**20 + int(now * 1e6) * 10**4 + rng.randrange(10**4)
        yield (
            f'{{"eventID":"{rng.getrandbits(128):032x}","eventName":"{name}","eventVersion":"1.1",'
            f'"eventSource":"aws:dynamodb","awsRegion":"eu-central-1","dynamodb":{{"ApproximateCreationDateTime":{int(now)},'
            f'"Keys":{{"requestId":{{"S":"{key}"}}}},{images}"SequenceNumber":"{sequence}",'
            f'"SizeBytes":{(len(new) + len(old)) // 2},"StreamViewType":"NEW_AND_OLD_IMAGES"}},"eventSourceARN":"{ARN}"{service}}}\n'
        )
        old = new


def _image(key: str, item: State) -> str:
    values = [f'"{n}":{{"N":"{v}"}}' if isinstance(v, int) else f'"{n}":{{"S":"{v}"}}' for n, v in item.items()]
    return f'{{"requestId":{{"S":"{key}"}},{",".join(values)}}}'
