"""The same audit as one would write it with pandas and orjson: the peer that the package is measured against.

It computes every rule of `fencinglab/audit/rules.py` that a stream with both images can show, from the same
attributes, duplicates and image chain included, and no evidence: only counts. Every column is an int64, -1 is
not known, texts of which only equality counts stand as hashes. "Earlier" is a cumulative extreme within a
timeline, shifted by one row.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd

NUMBERS = {
    "token": "fencingToken", "written_token": "writtenToken", "version": "version", "expires_at": "leaseExpiresAt",
    "terminal_version": "terminalVersion", "next_poll": "nextPollAt",
}  # fmt: skip
NAMES = {"holder": "leaseOwner", "writer": "writtenBy", "status": "apiStatus"}  # few different ones
HASHES = {"value": "responseHash", "alert": "alertId"}
FIRST = ("event", "stream", "key", "order", "order_low", "name", "by_service", "at", "slack", "width")
SIDE = ("image", *NUMBERS, *NAMES, *HASHES)
COLUMNS = (*FIRST, *(f"after_{name}" for name in SIDE), *(f"before_{name}" for name in SIDE))
INSERT, MODIFY, REMOVE = range(3)
EVENTS = {"INSERT": INSERT, "MODIFY": MODIFY, "REMOVE": REMOVE}
NOBODY = 0  # as a holder; as an image: no item
NONE = 9  # no case
BIG = np.iinfo(np.int64).max


def audit(folder: Path, terminal: Sequence[str]) -> dict[str, Any]:
    """{duplicates, rules: {name: [broken, cases]}} of a folder with a stream record a line."""
    codes: defaultdict[str, int] = defaultdict(lambda: len(codes))
    codes[""]  # is NOBODY
    rows = (row for file in sorted(folder.iterdir()) for row in _rows(file, codes))
    blocks = []
    while block := list(islice(rows, 100_000)):
        blocks.append(np.array(block, dtype=np.int64))
    table = pd.DataFrame(np.concatenate(blocks), columns=list(COLUMNS))
    count = len(table)
    table = table.drop_duplicates(["event", "key", "stream", "order", "order_low"])
    table = table.sort_values(["stream", "key", "order", "order_low"], ignore_index=True)
    final = [codes[status] for status in terminal]
    rank = np.argsort(np.argsort(list(codes)))  # so that codes compare as the names do
    verdicts = _judge(table, rank, final)
    rules = {name: [int((v == 1).sum()), int((v != NONE).sum())] for name, v in verdicts.items()}
    return {"duplicates": count - len(table), "rules": rules}


def _rows(file: Path, codes: defaultdict[str, int]) -> Iterator[tuple[int, ...]]:
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        for line in lines:
            record = orjson.loads(line)
            d = record["dynamodb"]
            after, before, at = d.get("NewImage"), d.get("OldImage"), d["ApproximateCreationDateTime"]
            token = after.get("fencingToken") if after else None
            yield (
                hash(record["eventID"]),
                hash(record["eventSourceARN"]),
                hash(d["Keys"]["requestId"]["S"]),
                *divmod(int(d["SequenceNumber"]), 10**18),  # an int64 is too small for all digits
                EVENTS[record["eventName"]],
                record.get("userIdentity", {}).get("principalId") == "dynamodb.amazonaws.com",
                int(at * 1_000_000),
                1_000 if at % 1 else 1_000_000,
                -1 if token is None else 0 if "N" in token else len(token["S"]),
                *_side(after, codes),
                *_side(before, codes),
            )


def _side(image: dict[str, Any] | None, codes: defaultdict[str, int]) -> list[int]:
    if image is None:
        return [-1] * len(SIDE)
    get = image.get
    return [
        hash(orjson.dumps(image, option=orjson.OPT_SORT_KEYS)),
        *[int(v.get("N") or v["S"]) if (v := get(name)) else -1 for name in NUMBERS.values()],
        *[codes[v["S"]] if (v := get(name)) else NOBODY for name in NAMES.values()],
        *[hash(v["S"]) if (v := get(name)) else -1 for name in HASHES.values()],
    ]


def _judge(table: pd.DataFrame, rank: np.ndarray, terminal: list[int]) -> dict[str, np.ndarray]:
    """{rule: one number a row}: 1 broken, 0 held, -1 undecided, NONE no case; the rows are in order."""
    c = {name: table[name].to_numpy() for name in COLUMNS}
    token0, token1 = c["before_token"], c["after_token"]
    holder0, holder1 = c["before_holder"].copy(), c["after_holder"].copy()
    expires0, expires1 = c["before_expires_at"] * 1_000_000, c["after_expires_at"] * 1_000_000
    expires0[expires0 < 0] = expires1[expires1 < 0] = -1
    lives, birth = c["name"] != REMOVE, c["name"] == INSERT
    known0, known1 = birth | (c["before_image"] != -1), ~lives | (c["after_image"] != -1)
    image0, image1 = np.where(birth, NOBODY, c["before_image"]), np.where(lives, c["after_image"], NOBODY)
    holder0[known0 & (holder0 == -1)] = holder1[known1 & (holder1 == -1)] = NOBODY
    terminal0 = np.where(known0, np.isin(c["before_status"], terminal), -1)
    terminal1 = np.where(known1 & lives, np.isin(c["after_status"], terminal), -1)

    # what the mutation presented, and what it was
    raised = (token1 >= 0) & (((token0 >= 0) & (token1 > token0)) | (known0 & (token0 < 0)))
    grant = lives & (raised | ((holder0 == NOBODY) & (holder1 > 0)))
    moved = c["before_next_poll"] != c["after_next_poll"]
    worked = moved | (c["before_status"] != c["after_status"]) | (c["before_value"] != c["after_value"])
    written0, written1 = c["before_written_token"], c["after_written_token"]
    left = (written1 >= 0) & (written1 < token1) & (grant | ~worked)
    rose = (c["before_version"] >= 0) & (c["after_version"] > c["before_version"]) & ~left
    stores = lives & (written1 >= 0) & ((written1 != written0) | rose)
    there = np.select([holder1 > 0, holder0 > 0], [holder1, holder0], c["after_writer"])
    names = (
        lives
        & (c["after_writer"] > 0)
        & ((c["after_writer"] != c["before_writer"]) | stores | (rose & (c["after_writer"] == there)))
    )
    writer = np.where(names, c["after_writer"], np.where(grant & (holder1 > 0), holder1, -1))
    token = np.where(grant, np.where(token1 >= 0, token1, written1), np.where(stores, written1, -1))
    fenced = np.where(grant | stores, 1, np.where(c["after_version"] == c["before_version"], 0, -1))
    fenced[~lives] = -1
    changed = worked.copy()
    for name in ("token", "written_token", "holder", "expires_at"):
        changed |= c[f"before_{name}"] != c[f"after_{name}"]
    protected = np.where(lives & known0, changed, -1)
    finish = lives & ~grant & (terminal1 == 1) & (terminal0 != 1)
    alert = np.where(lives & (c["after_alert"] != c["before_alert"]), c["after_alert"], -1)
    alerts = lives & ~grant & ~finish & (alert != -1)
    release = lives & ~grant & ~finish & ~alerts & (holder0 > 0) & (holder1 == NOBODY)
    extends = lives & (expires0 >= 0) & (expires1 > expires0)
    renew = extends & ~grant & ~finish & ~alerts & ~release
    schedule = lives & moved & ~grant & ~finish & ~alerts & ~release & ~renew
    writes, guarded = lives & ~grant, protected != 0

    # timelines
    key_begins = np.ones(len(table), bool)
    key_begins[1:] = (c["key"][1:] != c["key"][:-1]) | (c["stream"][1:] != c["stream"][:-1])
    begins = key_begins | (image0 == 0)
    begins[1:] |= ~lives[:-1]
    scope, timeline = np.cumsum(key_begins), np.cumsum(begins)

    def before(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.where(starts, -1, np.concatenate(([-1], values[:-1])))

    def greatest(values: np.ndarray, groups: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return before(pd.Series(values).groupby(groups).cummax().to_numpy(), starts)

    def least(values: np.ndarray, groups: np.ndarray, starts: np.ndarray) -> np.ndarray:
        lowest = pd.Series(np.where(values < 0, BIG, values)).groupby(groups).cummin().to_numpy()
        return before(np.where(lowest == BIG, -1, lowest), starts)

    def first_of(*choices: np.ndarray) -> np.ndarray:
        return np.select([v >= 0 for v in choices], choices, -1)

    written_token = greatest(np.where(writes, token, -1), timeline, begins)
    granted_token = greatest(np.where(token1 >= 0, token1, np.where(grant, token, -1)), timeline, begins)
    first_token = least(first_of(token0, token1, token), timeline, begins)
    grants_before = np.maximum(before(pd.Series(grant).groupby(timeline).cumsum().to_numpy(), begins), 0)
    finished = greatest(np.where((terminal1 == 1) & lives, 1, 0), timeline, begins)
    older_token = greatest(first_of(token1, token, token0), scope, key_begins)
    previous_image = before(image1, key_begins)
    latest_at = greatest(c["at"], scope, key_begins)
    width, earlier_width = c["width"], least(c["width"], scope, key_begins)
    unit = np.select([expires1 < 0, expires1 < 10**17, expires1 < 10**20], [-1, 0, 1], 2)
    earlier_unit = least(unit, scope, key_begins)

    newest = np.maximum(token0, granted_token)
    oldest = np.minimum.reduce([np.where(v < 0, BIG, v) for v in (first_token, token0, token)])
    was_terminal = np.where(terminal0 != -1, terminal0 == 1, finished == 1)
    slack, at = c["slack"], c["at"]
    counting = (
        grant & (holder0 > 0) & (holder0 == holder1) & (token0 >= 0) & (token1 > token0) & (at + slack < expires0)
    )
    counts = np.isin(scope, scope[counting])
    shares = _shares(timeline, rank, grant, holder0, holder1, token1, writer, token, fenced)
    alert_group = pd.DataFrame({"t": timeline, "v": np.maximum(c["after_terminal_version"], 0), "a": alert != -1})
    nth_alert = alert_group.groupby(["t", "v"])["a"].cumsum().to_numpy()
    # a key in two streams has no order between them
    streams = table.groupby("key")["stream"].transform("nunique").to_numpy()

    def rule(*cases: tuple[np.ndarray, Any]) -> np.ndarray:
        return np.select([test for test, _ in cases], [value for _, value in cases], NONE)

    went_back = rule(
        (~writes | (written_token < 0), NONE), ((token < 0) & (fenced == -1) & guarded, -1), (token < 0, NONE),
        (counts, -1), (token < written_token, 1), (writes, 0),
    )  # fmt: skip
    grants_visible = (holder0 != -1) | (grants_before > 0)
    ends = release | ((holder0 > 0) & (holder1 == NOBODY))
    return {
        "token_went_back": went_back,
        "stale_write_accepted": rule(
            (~writes | (newest < 0) | (went_back == 1), NONE),
            ((token < 0) & (fenced == -1) & guarded & (oldest < newest), -1),
            ((token < 0) | (oldest >= newest), NONE), (counts, -1), (token < newest, 1),
            ((fenced == -1) | ~grants_visible, -1), (writes, 0),
        ),
        "token_shared": rule((shares, 1), (grant & (grants_before > 0), np.where(first_of(token1, token) < 0, -1, 0))),
        "holder_without_token": rule(
            (~((holder0 > 0) & (holder1 > 0) & (holder0 != holder1)), NONE), ((token0 < 0) | (token1 < 0), -1),
            (token1 <= token0, 1), (lives, 0),
        ),
        "unfenced_write": rule(
            (~writes | ~guarded, NONE),
            ((newest <= 0) & (grants_before == 0) & (holder0 <= 0) & ((fenced != 0) | (written_token <= 0)), NONE),
            (fenced == 1, 0),
            ((fenced == -1) | (protected == -1), -1), (writes, 1),
        ),
        "terminal_twice": rule(
            (~lives | (terminal1 == 0), NONE), (~was_terminal, np.where(terminal1 == 1, 0, NONE)), (finish, 1),
            (c["after_terminal_version"] > c["before_terminal_version"], 1), (c["after_value"] != c["before_value"], 1),
            (c["after_status"] != c["before_status"], 1), (lives, 0),
        ),
        "terminal_left": rule(
            (~lives | (terminal1 == -1), NONE), (was_terminal & (terminal1 == 0), 1), (was_terminal | (terminal1 == 1), 0)
        ),
        "image_went_back": rule((~lives | (token0 < 0) | (token1 < 0), NONE), (token1 < token0, 1), (lives, 0)),
        "token_restarted": rule(
            (older_token < 0, NONE),
            (writes & (fenced == 1) & (token > 0) & (image0 == 0), np.where(token < older_token, 1, 0)),
            (~grant | (first_of(token1, token) < 0) | ((token0 >= 0) & (holder0 != NOBODY)), NONE),
            (first_of(token1, token) < older_token, 1),
            ((first_of(token1, token) == older_token) & ((image0 == 0) | (holder0 == NOBODY)), 1), (grant, 0),
        ),
        "alert_twice": rule((alert != -1, np.where(nth_alert > 1, 1, 0))),
        "unfenced_delete": rule(
            (~lives | (writer < 0) | ~ends, NONE), ((token >= 0) & (token < newest), 1),
            ((holder0 > 0) & (holder0 != writer), np.where(terminal0 == 1, 0, 1)),
            ((holder0 == -1) & ((token < 0) | (newest < 0)), -1), (lives, 0),
        ),
        "tokens_as_text": rule((width >= 0, np.where((earlier_width >= 0) & (width != earlier_width), 1, 0))),
        "ttl_removed_live": rule((lives | (c["by_service"] == 0), NONE), (terminal0 == -1, -1), (terminal0 == 0, 1), (~lives, 0)),
        "leases_overlap": rule(
            (~grant | (holder0 <= 0) | (holder1 == holder0) | (expires0 < 0), NONE), (expires0 > at + slack, 1), (grant, 0)
        ),
        "late_write_accepted": rule(
            (~writes | ~guarded | (expires0 < 0) | ((token >= 0) & (token < newest)), NONE), (at <= expires0 + slack, 0),
            (token < 0, -1), (writes, 1),
        ),
        "renewed_after_release": rule(
            (~lives | grant | ~extends, NONE), (holder0 == -1, -1), (lives, np.where(holder0 == NOBODY, 1, 0))
        ),
        "work_after_terminal": rule(
            (~lives, NONE), (~was_terminal, np.where(terminal1 == 1, 0, NONE)), (grant | renew | schedule | extends, 1), (lives, 0)
        ),
        "chain_broken": rule(((image0 != -1) & (previous_image != -1), np.where(image0 != previous_image, 1, 0))),
        "order_unknown": np.where(streams > 1, 1, 0),
        "time_went_back": rule((latest_at >= 0, np.where(at + slack < latest_at, 1, 0))),
        "clock_mixed": rule((unit >= 0, np.where((earlier_unit >= 0) & (unit != earlier_unit), 1, 0))),
    }  # fmt: skip


def _shares(timeline, rank, grant, holder0, holder1, token1, writer, token, fenced) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The rows that use a token which another worker had too, the alphabetically first worker's apart."""
    shares = np.zeros(len(timeline), bool)
    holds = (token1 >= 0) & (holder1 > 0) & (grant | (holder0 == -1) | (holder0 != holder1))
    presents = (token >= 0) & (writer > 0) & (fenced == 1)
    for rows, tokens, workers in ((holds, token1, holder1), (presents, token, writer)):
        uses = pd.DataFrame({"t": timeline[rows], "token": tokens[rows], "worker": rank[workers[rows]]})
        shares[rows] |= (uses["worker"] != uses.groupby(["t", "token"])["worker"].transform("min")).to_numpy()
    return shares
