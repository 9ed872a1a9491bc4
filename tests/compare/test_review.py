"""The design review: its rule, its margin, its page and files, and the command line."""

from __future__ import annotations

import copy
import csv
import json
import re
from pathlib import Path

import pytest
from pages import acting

from fencinglab import cli
from fencinglab.audit import fit
from fencinglab.compare import adoption, advise, review, team, told
from fencinglab.compare.cells import BEATEN, aligned, interval, leases, mean, percent
from fencinglab.compare.page import html
from fencinglab.dynamodb import shelf as requests
from fencinglab.errors import UsageError
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES as ALL
from fencinglab.model.replay import replay
from fencinglab.narrate import _line
from fencinglab.simulate.measure import INVARIANTS
from fencinglab.simulate.workload import DEFAULT, workload

ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "data" / "report-generation.jsonl")
FIXES = ("unfenced", "fenced", "latest-id", "latest-id-terminal")


@pytest.fixture(scope="module")
def found() -> dict:
    """A small review over a log."""
    return review.review(
        review.Asked(fixes=FIXES, jobs=4000, logs=(LOG,), command=("fencinglab", "compare"), requests="late-render")
    )


def test_the_rule_takes_what_breaks_nothing(found):
    """What breaks an invariant is set aside with its reason, and of the rest the cheapest with the fewest measures is taken."""
    advice = found["recommendation"]

    assert advice["fix"] == "latest-id"
    assert advice["aside"] == {
        "unfenced": "breaks order, ownership, terminal, final",
        "fenced": "breaks ownership, terminal",
    }
    assert "latest-id-terminal" in advice["because"]
    assert any("Effects outside" in text for text in advice["uncovered"])


def test_the_rule_needs_every_part(found):
    """A broken invariant that only the simulation saw, unfinished jobs, and a clear difference each change what is taken."""
    rows = copy.deepcopy(found["fixes"])
    broken = copy.deepcopy(rows)
    broken[2]["shares"]["order"]["seen"] = 1
    unfinished = copy.deepcopy(rows)
    unfinished[2]["shares"]["unfinished"] |= {"seen": 400, "value": 0.1, "low": 0.09, "high": 0.11}
    costly = copy.deepcopy(rows)
    costly[2]["means"]["lost"]["value"] += 5
    for part in ("value", "low", "high"):
        costly[2]["against"]["lost"][part] += 5

    assert advise.recommendation(broken)["aside"]["latest-id"] == "breaks order"
    assert advise.recommendation(unfinished)["aside"]["latest-id"] == "leaves 10 % of the jobs unfinished"
    assert [advise.recommendation(r)["fix"] for r in (broken, unfinished, costly)] == ["latest-id-terminal"] * 3
    rare = copy.deepcopy(rows)
    rare[2]["rare"] = {"order": {}}
    assert advise.recommendation(rare)["aside"]["latest-id"] == "breaks order"
    assert advise.recommendation(rows[:2])["fix"] is None


def test_what_a_fix_does_not_cover_is_said_where_it_was_seen(found):
    """Late writes, late refusals, unfinished jobs and writes that no guard judges are named with their number, or not at all."""
    none, some = copy.deepcopy(found["fixes"][2]), copy.deepcopy(found["fixes"][2])
    for row, seen in ((none, 0), (some, 400)):
        for name in ("late", "rejected_late", "unfinished"):
            row["shares"][name] |= {"seen": seen, "value": seen / 4000}
        row["whatif"] |= {"without_token": seen, "open": seen}

    assert [text for text in advise.uncovered(some) if text not in advise.uncovered(none)] == [
        "Late writes are accepted in 10 % of the jobs; late is not stale.",
        "Finished work is refused for being late in 10 % of the jobs.",
        "10 % of the jobs stay unfinished.",
        "400 writes of the log presented no token: no guard stops such a writer.",
        "Of 400 writes of the log it cannot be told what the guard would have done.",
    ]


def test_the_first_line_says_what_is_taken(found):
    """The headline has what the rule takes, and the harm of the first fix where that is another; one fix alone may fail."""
    unfenced, _, latest, _ = found["fixes"]
    harm = f"Under unfenced {unfenced['shares']['ownership']['seen']:,} of 4,000 jobs accept a stale write."

    assert review.headline([unfenced, latest], {"fix": "latest-id"}) == f"By the stated rule: latest-id. {harm}"
    assert review.headline([latest], {"fix": "latest-id"}) == "By the stated rule: latest-id."
    assert review.headline([unfenced], {"fix": None}) == f"No fix of these holds every invariant. {harm}"


def test_the_log_says_what_a_guard_would_have_changed(found):
    """The log's one stale write is refused by each fence, with its row, its writer and its line."""
    what = {one["guard"]: (one["refuses_stale"], one["stale"], one["refuses_good"]) for one in found["log"]["whatif"]}
    [row] = found["log"]["rows"]["latest"]

    assert (what["unguarded"], what["at-or-above"], what["latest"]) == ((0, 1, 0), (1, 1, 0), (1, 1, 0))
    assert (row["would"], row["writer"]) == ("refuse", "worker-A")
    assert row["source"].endswith("report-generation.jsonl:8")


def test_few_observations_are_not_used(found):
    """A log of a handful of rows gives no law; every parameter says where it comes from, and the page says so."""
    assert not any(one["used"] for one in found["log"]["times"])
    assert {one["name"]: one["from"] for one in found["workload"]}["pause"] == "default"
    assert "Fewer than 20 observations are not used" in html(found)


def test_enough_observations_are_used(tmp_path):
    """A log with enough grants gives the lease, the pauses and the takeovers; what is said goes before it."""
    rows = []
    for number in range(30):
        run = replay(shelf.find("report-generation"), ALL["unfenced"])
        rows += [row | {"resource": f"job-{number}", "lease": f"job-{number}"} for row in run.rows]
    path = tmp_path / "history.jsonl"
    path.write_text("".join(map(_line, rows)), encoding="utf-8")
    seen = review.review(review.Asked(fixes=("unfenced",), jobs=500, logs=(str(path),), said={"takeover": "1s"}))
    origin = {one["name"]: (one["from"], one["value"]) for one in seen["workload"]}

    assert origin["lease"] == ("log, 60 observed", "1m")
    assert origin["pause"][0] == "log, 60 observed"
    assert origin["takeover"] == ("said", "1s")
    used = {one["name"]: (one["seen"], one["used"]) for one in seen["log"]["times"]}
    assert (used["lease"], used["takeover"], used["late"]) == ((60, True), (30, False), (30, False))
    assert "Too few in the log, so not taken from it: renewal (0)." in " ".join(told.screen(seen).split())
    next(one for one in seen["log"]["times"] if one["name"] == "renewal")["seen"] = 40  # and none fits the lease
    assert "Too few in the log" not in told.screen(seen)


def test_no_crash_in_thirty_is_not_never():
    """Where none of a log's grants vanished the default share of crashes stays; where some did, it is theirs."""
    none, some = (review._fitted(fit.Fit({}, 40, 30, vanished, 2), {}) for vanished in (0, 3))

    assert (none[0].crash, none[1].get("crash")) == (DEFAULT.crash, None)
    assert (some[0].crash, some[1]["crash"]) == (0.1, "log, 3 of 30 grants vanished, by a crash or not")


def test_a_renewal_of_the_log_fits_the_lease_or_is_not_taken():
    """A renewal that was seen is taken where the lease outlasts it, and only then said to be; else it is a third."""
    renewals = fit.Fit({"renewal": fit.Observed(40, (5_000_000,) * 40)}, 0, 0, 0, 0)
    found = [review._fitted(renewals, {"lease": lease}) for lease in ("20s", "3s")]

    assert [made.renewal for made, _ in found] == [5_000_000, 1_000_000]
    assert [origin.get("renewal") for _, origin in found] == ["log, 40 observed", None]


def test_workers_are_counted_in_enough_grants():
    """How many workers there are is taken from a log with as many grants as any time needs; two grants say nothing."""
    logs = [fit.Fit({}, grants, grants, 0, workers) for grants, workers in ((2, 2), (20, 2), (50, 40))]
    found = [review._fitted(log, {}) for log in logs]

    assert [(made.workers, origin.get("workers")) for made, origin in found] == [
        (DEFAULT.workers, None), (2, "log, 2 under one lease"), (16, "log, 40 under one lease"),
    ]  # fmt: skip


def test_the_margin_is_its_formula():
    """Lease less skew, drift and longest time in flight; it says that it is no proof, and how many pauses outlast it."""
    made = workload({"lease": "60s", "skew": "2s", "message": "500ms"})
    margin = advise.margin(made)

    assert margin["value"] == pytest.approx(60 - 2 - 0.012 - 0.5, abs=1e-6)
    assert "It is no proof" in margin["says"]
    assert margin["beyond"] == pytest.approx(made.pause.survival(margin["value"] * 1e6))
    assert "at no time" in advise.margin(workload({"lease": "1s", "message": "2s"}))["says"]


def test_an_interval_has_its_value():
    """A share is written with its interval, none with what may be missed, a rare one with a mark."""
    assert interval({"seen": 243, "value": 0.0243, "low": 0.022, "high": 0.0265}) == "2.43 % (2.2–2.6)"
    assert interval({"seen": 0, "value": 0, "low": 0, "high": 0.00019}) == "none (up to 0.019 %)"
    rare = {"value": 2.76e-6, "low": 2.7e-6, "high": 2.8e-6, "fits": True}
    assert interval({"seen": 0, "value": 0, "low": 0, "high": 1e-4}, rare) == "~0.000276 % (0.00027–0.00028)"
    assert [percent(p) for p in (0, 1, 0.5, 1e-9)] == ["0", "100", "50", "1.0e-07"]
    assert [percent(p, 2) for p in (0.973, 0.9978, 0.99951)] == ["97", "99.8", "100"]
    assert mean({"value": 0.02, "low": -0.001, "high": 0.04, "seen": 10}) == "0.02 (0.00–0.04)"
    assert [mean({"value": 0.5, "low": 0, "high": 1, "seen": seen}) for seen in (0, 1, 9)] == [
        "0.50 (0 jobs)", "0.50 (1 job)", "0.50 (9 jobs)",
    ]  # fmt: skip


def test_the_columns_of_a_table_end_in_one_place():
    """The first column is written from the left, the others to the right, under heads of any width."""
    assert aligned([{"": "a", "x": "long"}, {"": "abc", "x": "1"}]) == ["        x", "a    long", "abc     1"]


def test_the_screen_is_no_wider_than_a_screen(found):
    """No line is wider than 100 characters; the number of jobs stands with every table of intervals."""
    text = told.screen(found)

    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("By the stated rule: latest-id. Under unfenced ")
    assert text.count("4,000") >= 3


def test_the_page_needs_nothing(found):
    """Nothing in the page acts or is fetched; a blank of the adoption card is named."""
    page = html(found)

    assert acting(page) == []
    assert page.count('class="blank"') == len([item for item in found["adoption"] if not item["values"]]) == 4
    assert all(row["step"] in page for row in adoption.ROLLOUT)


def test_what_no_team_said_is_named_beside_the_shares(found):
    """Where lease, pauses or work are defaults, screen and page say so before the numbers that follow from them."""
    own = copy.deepcopy(found)
    for one in own["workload"]:
        one["from"] = "default" if one["name"] in ("work", "gap") else "said"
    sentence = "Defaults, of no team in particular: {}. Yours may give far other numbers."

    for made, names in ((found, "lease, pause, work"), (own, "work")):
        assert sentence.format(names) in " ".join(told.screen(made).split()) and sentence.format(names) in html(made)
    own["workload"] = []
    assert "no team" not in told.screen(own) + html(own)


def test_the_page_says_how_far_to_believe_what_is_rare(found):
    """A share that was estimated with long pauses has its check on the page; without one there is no table of checks."""
    plain, rare = copy.deepcopy(found), copy.deepcopy(found)
    for row in plain["fixes"]:
        row["rare"] = {}
    share = {
        "value": 2.76e-6,
        "low": 2.7e-6,
        "high": 2.8e-6,
        "jobs": 4000,
        "seen": 30,
        "effective": 25.0,
        "weights": 1.0,
    }
    rare["fixes"][0]["rare"] = {"ownership": share | {"fits": False}}

    assert "How far to believe" not in html(plain)
    assert "does not agree with plain sampling: not used" in html(rare)


def test_the_teams_requests_are_a_row(found):
    """The proposal stands beside the fixes with the verdict of `check` and what it would have refused, on screen, page and in the CSV."""
    text, page, team = told.screen(found), html(found), found["team"]
    rows = list(csv.DictReader("".join(told.contents(found)["fixes.csv"]).splitlines()))

    assert {team["safety"][name]["status"] for name in INVARIANTS} == {"holds"}
    assert "On the log it would have refused 1 of 1 accepted stale writes and 0 other accepted writes" in team["says"]
    assert re.search(r"^your requests +● +● +● +● +not simulated +not simulated$", text, re.M)
    assert re.search(r"^your requests +1 of 1 +0 of 0 +0 +0 +0$", text, re.M)
    assert page.count("not simulated") == 1
    assert (rows[-1]["fix"], rows[-1]["order"], rows[-1]["jobs"]) == ("late-render.json", "●", "")
    assert found["log"]["rows"]["your requests"][0]["source"].endswith("report-generation.jsonl:8")


def test_the_sentence_of_the_requests_is_whole(found):
    """However many invariants are broken, the page has the whole sentence."""
    broken = copy.deepcopy(found)
    broken["team"]["says"] = "mine.json breaks " + ", ".join(["ownership"] * 30) + "."

    assert broken["team"]["says"] in html(broken)


def test_what_cannot_be_told_of_the_requests_is_said():
    """The mutations of the log that the requests cannot be judged by are counted on screen and page, each with its reason."""
    log = str(ROOT / "data" / "no-written-token.jsonl")
    asked = review.Asked(
        fixes=("unfenced",), jobs=200, logs=(log,), log_options={"terminal": "DONE"}, requests="broken-finish-twice"
    )
    made = review.review(asked)

    assert made["log"]["untold"] == {"the log does not say what stands for $worker": 14}
    assert "not told of yours 14: the log does not say what stands for $worker" in told.screen(made)
    assert "14: the log does not say what stands for $worker" in html(made)


def test_a_proposal_that_breaks_says_how_soon():
    """Requests without conditions break what is unsafe; the sentence has the steps of the shortest run."""
    own = team.searched(requests.find("broken-unconditional"))
    says = team.says(own, None)

    assert own["safety"]["ownership"]["status"] == "violated"
    assert re.fullmatch(
        r"broken-unconditional\.json breaks order, ownership, [^;]*, at the soonest after \d+ steps[^.]*\.", says
    )
    stopped = own | {"safety": {}, "stopped": "after 9 states"}
    assert team.says(stopped, None) == "broken-unconditional.json was not searched to the end (after 9 states)."


def test_the_card_is_filled_from_the_requests():
    """Of each question that a request file answers the card has the very expression and its operations; else a blank."""
    filled = {item["name"]: item["values"] for item in adoption.card(requests.find("request-status"))}

    assert filled["Who issues tokens"] == [
        "`ADD fencingToken :one` in `acquire`",
        "a worker knows it from `$acquire.fencingToken`",
    ]
    assert filled["What makes the sequence survive"] == ["`$take_floor.tokenFloor` in `enqueue`: another item keeps it"]
    assert filled["Which request enforces it"][0].startswith("`fencingToken = :token` in `renew`, `record_response`, ")
    assert len(filled["Which request acquires"]) == 3
    assert filled["What is final"][0] == "final: SUCCEEDED, FAILED"
    assert filled["What names one operation"][0].startswith("`NOT contains(operationsDone, :operation)` in ")
    assert filled["Who watches"] == []
    assert not any(item["values"] for item in adoption.card())


def test_the_card_names_what_carries_no_token():
    """Operations without the token in their condition are named on the card; a number that begins again is one."""
    bare = {item["name"]: item["values"] for item in adoption.card(requests.find("broken-unconditional"))}
    beside = {item["name"]: item["values"] for item in adoption.card(requests.find("lease-beside-resource"))}

    assert bare["Which request enforces it"] == ["no token in the condition of `record_response`, `finish`"]
    assert beside["Which request enforces it"] == ["`fencingToken = :token` in `renew`, `write`, `finish`, `release`"]
    assert beside["What makes the sequence survive"] == []


def test_text_of_a_log_cannot_act(found):
    """A name from the log that is markup stands in the page as text."""
    hostile = copy.deepcopy(found)
    hostile["log"]["rows"]["latest"][0]["writer"] = "<script>alert(1)</script>"

    assert acting(html(hostile)) == []
    assert "&lt;script&gt;" in html(hostile)


def test_files_are_written_and_the_same_again(tmp_path, monkeypatch, capsys):
    """--out writes page, JSON and CSV; the same command and seed write the same bytes; the CSV has a row a fix."""
    monkeypatch.chdir(tmp_path)
    contents = []
    for _ in range(2):
        words = "compare --fix unfenced --fix latest-id --jobs 1000 --out out --quiet --log"
        assert cli.main([*words.split(), LOG]) == 0
        contents.append({path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()})
    with Path("out/fixes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert contents[0] == contents[1]
    assert sorted(contents[0]) == ["compare.html", "compare.json", "fixes.csv", "leases.csv", "whatif.csv"]
    assert [row["fix"] for row in rows] == ["unfenced", "latest-id"]
    assert json.loads(contents[0]["compare.json"])["schema"] == "fencinglab.compare/1"
    assert capsys.readouterr().out.count("Written: out/compare.html") == 2


WRONG = {
    "a negative time": (["--lease", "-5s"], "--lease -5s: is below zero, and a time is not; write a time such as 30s"),
    "a negative law": (["--work", "-3s"], "--work -3s: -3s is below zero, and a time is not"),
    "a negative share": (["--crash", "-0.1"], "--crash -0.1: is a share, from 0 to 1"),
    "no jobs": (["--jobs", "-1"], "--jobs -1: must be 1 to 1,000,000,000"),
    "empty requests": (["--requests", ""], "name a JSON file"),
    "no law": (["--pause", "gamma:1s"], "--pause gamma:1s: `gamma` is no law of chance"),
    "too few jobs": (["--jobs", "100", "--precision", "0.0001"], "--jobs 100: too few for --precision 0.0001"),
    "no fix": (["--fix", "fence"], "`fence` is no fix; nearest: fenced"),
    "a map without a log": (["--map", "token=t"], "--map token=t belongs to a log; leave it out, or name the log with --log"),
    "no requests": (["--requests", "request-stats"], "`request-stats` is neither a request file that comes with fencinglab nor a file; nearest: request-status"),
    "no request file": (["--requests", __file__], "not JSON"),
    "requests of a matrix": (["--matrix", "--requests", "request-status"], "--requests request-status belongs to your own requests, and --matrix has none; leave out one of the two"),
    "no log": (["--log", "missing.jsonl"], "missing.jsonl"),
    "a hazard": (["--hazard", "crash"], "--hazard crash belongs to --matrix, since"),
    "jobs of a matrix": (["--matrix", "--jobs", "5"], "--jobs 5 belongs to a simulation, and --matrix has none; leave out one of the two"),
    "half a worker": (["--matrix", "--workers", "x"], "--workers x: write a whole number"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_one_sentence(words, message, capsys):
    """What cannot be compared exits with 2 and one sentence that names the parameter and its value."""
    assert cli.main(["compare", "--quiet", *words]) == 2
    err = capsys.readouterr().err

    assert (err.startswith("fencinglab: "), err.count("\n")) == (True, 1)
    assert message in err


def test_a_harm_that_no_job_of_a_lease_showed_may_have_been_missed(found):
    """Of a lease length under which nothing was seen the table says up to which share that may be chance, never 0 %."""
    points = [point for point in found["sweep"] if point["fix"] == found["recommendation"]["fix"]]
    rows = leases(found)

    assert {row["stale accepted"].partition(" (")[0] for row in rows} == {"none"}
    assert [row["finished twice"] for row in rows] == [interval(point["duplicates"]) for point in points]


def test_a_lease_of_the_sweep_beats_or_is_beaten(found):
    """A lease length is beaten exactly when another of its fix is better in one of the three and worse in none, beyond chance."""
    points = found["sweep"]
    names = ("duplicates", "dead", "wasted")

    def less(a: dict, b: dict, name: str) -> bool:
        """Of a mean that fewer than ten jobs make nothing can be told; of a share the interval says all."""
        told = name == "duplicates" or min(a[name]["seen"], b[name]["seen"]) >= 10
        return told and a[name]["high"] < b[name]["low"]

    assert {point["fix"] for point in points} == {"unfenced", "latest-id"}
    assert {point["efficient"] for point in points} == {True, False}
    for point in points:
        others = [other for other in points if other["fix"] == point["fix"]]
        no_worse = [other for other in others if not any(less(point, other, name) for name in names)]
        assert point["efficient"] == (not any(less(other, point, name) for other in no_worse for name in names))


def test_a_difference_of_chance_beats_no_lease():
    """Of 200 jobs a few make the dead time of the long leases: none of these beats another, and no interval is shown."""
    made = workload({"lease": "2m", "pause": "0s", "crash": "0.01"})
    points = review._sweep(made, [ALL["latest-id"]], 200, 1, lambda _: None)[2:]

    assert len({point["dead"]["value"] for point in points}) > 1 and all(point["efficient"] for point in points)
    assert all(point["dead"]["seen"] < 10 and point["dead"]["low"] >= 0 for point in points)
    assert not any("–" in mean(point["dead"]) for point in points)


def test_a_lease_that_the_clocks_do_not_leave_is_not_tried():
    """A length of which clocks so far apart leave nothing is left out; it is not tried with better clocks."""
    made = workload({"lease": "30s", "skew": "15s"})
    points = review._sweep(made, [ALL["fenced"]], 10, 1, lambda _: None)

    assert [point["lease"] for point in points] == [30, 60, 120, 240]


def test_beaten_is_said_as_it_is_judged(found):
    """Screen and page say what is compared, and that one of it decides: a beaten length need not be worse in all."""
    assert BEATEN in " ".join(told.screen(found).split()) and BEATEN in html(found)


def test_an_unusable_precision_is_refused_before_anything_is_read():
    """Parameters are judged before a log is read."""
    with pytest.raises(UsageError, match="--precision"):
        review.review(review.Asked(jobs=10, precision=1e-9, logs=("missing",)))
