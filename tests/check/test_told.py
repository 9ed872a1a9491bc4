"""What a search found is told in lines that fit, and exported as JSON and Mermaid."""

from __future__ import annotations

import json

import claims
import pytest
from teams import example

from fencinglab import cli
from fencinglab.check import files, page, told
from fencinglab.check.check import Check, check
from fencinglab.dynamodb import shelf as request_shelf
from fencinglab.dynamodb.parse import parse
from fencinglab.errors import InputError, UsageError
from fencinglab.explore import telling
from fencinglab.explore.hazards import Hazard
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.search import explore, model_of
from fencinglab.inert import WIDTH
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay


def answer(fix, workers=2, writes=2, hazards=(), alert="none", **more):
    return explore(model_of(FIXES[fix], workers, writes, hazards, alert), **more)


@pytest.mark.parametrize(
    ("fix", "more", "sentence", "code"),
    [
        ("latest-id", {}, "Holds: under latest-id nothing unsafe can happen in any of the 1,289 states.", 0),
        ("fenced", {}, "Violated: under fenced a stale write can be accepted, after 6 steps.", 1),
        ("latest-id", {"workers": 1}, "No proof: under latest-id nothing unsafe was found, but some of it could not even be tried.", 3),
        ("latest-id", {"most": 50}, "Not decided: stopped at the bound of 50 states; `--max-states` raises it. Nothing unsafe was found so far under latest-id.", 3),
        ("fenced", {"most": 300}, "Violated: under fenced a stale write can be accepted, after 6 steps.", 1),
    ],
)  # fmt: skip
def test_the_first_line_is_the_answer(fix, more, sentence, code):
    """Holds, violated, no proof and not decided are told apart in one sentence, and by the exit code."""
    found = answer(fix, **more)

    assert " ".join(told.screen(found).partition("\n\n")[0].split()) == sentence
    assert told.exit_code(found) == code


def test_numbers_of_a_run_agree():
    """Where a timeline has more events than the run has steps, for a pause is none, both numbers are told."""
    text = " ".join(told.screen(answer("fenced"), ["ownership"]).split())

    assert "the shortest run, 6 steps, told in 8 events 1 A acquires" in text
    assert "▸ 8 A's draft-A arrives" in text


def test_window_and_cost_fail_only_when_asked():
    """A late write and a stuck job are told, and make exit 1 only where their class was named."""
    late, stuck = answer("latest-id"), answer("fenced-above", writes=2)

    assert (told.exit_code(late), told.exit_code(late, ["window"])) == (0, 1)
    assert stuck.of("can-finish").status == "violated"
    assert "can-finish" in told.screen(stuck, ["can-finish"])


@pytest.mark.parametrize("fix", FIXES)
@pytest.mark.parametrize(
    "more", [{}, {"workers": 1, "writes": 1}, {"hazards": [Hazard("ttl", 2)], "writes": 1, "alert": "with"}]
)
def test_no_line_is_wider_than_the_screen(fix, more):
    """Whatever was found, no line has more than 100 columns, and every invariant and every bound is named."""
    found = answer(fix, **more)
    text = told.screen(found, [*INVARIANTS, told.PASSING])

    assert max(map(len, text.splitlines())) <= WIDTH
    for name in INVARIANTS:
        assert f" {name} " in text
    for hazard in found.model.hazards:
        assert str(hazard) in text
    assert f"{found.states:,} states" in text


def test_a_bound_is_never_silent():
    """A search that stopped says so in the first line, in the bounds, and of every invariant that it left open."""
    text = told.screen(answer("latest-id", most=50))

    assert text.count("stopped at the bound of 50 states") == 2
    assert text.count("not decided") == 5


def test_a_hazard_that_cannot_happen_is_said():
    """A hazard that was switched on and has no chance is told in the bounds and in check.json; others are not."""
    alone = answer("latest-id", workers=1, hazards=[Hazard("ttl"), Hazard("clock-skew", 2)])
    file = request_shelf.find("late-render")  # which has no release
    requests = check(file, workers=1, hazards=[Hazard("release")], most=100_000).answer

    assert (alone.idle, requests.idle) == (("clock-skew",), ("release",))
    assert "hazards on  ttl, clock-skew x2 (which can never happen here)\n" in told.screen(alone)
    assert "hazards on  release (no chance for it so far)\n" in told.screen(requests._replace(stopped="stopped early"))
    assert json.loads(files.contents(Check(alone))["check.json"])["idle_hazards"] == ["clock-skew"]


def test_an_unknown_run_is_refused():
    """--show of what is neither an invariant nor `passing` names what there is."""
    with pytest.raises(UsageError, match="--show orders: is none of order, ownership, .*, passing"):
        told.screen(answer("fenced"), ["orders"])


def test_what_is_stuck_from_the_start_is_told_by_an_attempt():
    """Where no worker can ever finish, the shortest run has no step, and what an undisturbed attempt does is told."""

    def gives_up(raw):
        raw["program"] = ["acquire", "release", "complete?"]
        raw["operations"] = {name: raw["operations"][name] for name in ("acquire", "release", "complete")}
        raw["operations"]["release"]["kind"] = "write"

    found = check(example(gives_up), workers=1, most=100_000)
    text = " ".join(told.screen(found.answer, ["can-finish"]).split())

    assert "the job can still finish: violated from the start" in text
    assert text.endswith("then, alone, 6 B's complete is refused (not_held)")
    assert "Not said in the language" not in text
    assert "B&#39;s complete is refused (not_held)" in page.html(found)
    assert found.idle == ("operation `complete` can never be accepted: the condition of `complete` is never true here",)


def test_the_files():
    """check.json holds the whole answer; each counterexample is a timeline that reads back and a drawing."""
    found = answer("fenced")
    written = files.contents(Check(found))
    whole = json.loads(written["check.json"])
    by_name = {one["name"]: one for one in whole["invariants"]}

    assert {name for name in written if name.startswith("fenced-")} == {
        f"fenced-{name}.{ending}" for name in ("ownership", "terminal", "late") for ending in ("timeline", "mmd")
    }
    assert (whole["schema"], whole["states"], whole["exit_code"], whole["stopped"]) == (told.SCHEMA, 1789, 1, None)
    assert (by_name["ownership"]["status"], by_name["ownership"]["length"]) == ("violated", 6)
    assert by_name["ownership"]["counterexample"]["timeline"] == written["fenced-ownership.timeline"]
    assert by_name["order"]["counterexample"] is None
    assert [step["event"] for step in by_name["ownership"]["counterexample"]["steps"]][-1] == "A's draft-A arrives"
    assert any(name.startswith("passing/") for name in written)


def test_the_drawing():
    """The Mermaid diagram has every party, an arrow a decision, and a crossed one where the receiver refused."""
    drawn = files.mermaid(telling.broken(answer("fenced"), "ownership")).splitlines()

    assert drawn[:5] == [
        "sequenceDiagram", "    participant authority", "    participant A", "    participant B", "    participant receiver",
    ]  # fmt: skip
    assert drawn[5] == "    A->>authority: A is granted 41 until 01:00"
    assert drawn[7] == "    Note over authority: A's lease (41) runs out, what it protects does not change"
    assert drawn[-1] == "    A->>receiver: A wrote with 41 after 42 was granted: accepted by at-or-above"
    refused = files.mermaid(telling.replayed(replay(shelf.find("report-generation"), FIXES["fenced"])))
    assert "A-xreceiver: A wrote with 41" in refused


def test_a_drawing_that_cannot_be_read_is_refused():
    """Beyond a readable size the drawing is refused with the reason, and check.json carries it."""
    told_long = shelf.find("report-generation")
    long = telling.replayed(replay(told_long, FIXES["fenced"]))
    many = long._replace(lines=long.lines * 9)

    with pytest.raises(
        InputError, match="report-generation: is not drawn with 72 events; a diagram is readable up to 40"
    ):
        files.mermaid(many)


def test_the_example_is_a_file_that_holds(tmp_path, monkeypatch, capsys):
    """What --example prints or writes reads, has a comment with every operation, and holds as it claims."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "--example"]) == 0
    text = capsys.readouterr().out
    assert cli.main(["check", "--example", "--out", "new"]) == 0
    assert (tmp_path / "new" / "requests.json").read_text(encoding="utf-8") == text
    raw = json.loads(text)

    assert all(one["comment"] for one in (raw, *raw["operations"].values()))
    assert cli.main(["check", "new/requests.json", "--hazard", "release", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("Holds: with requests.json nothing unsafe can happen")
    assert [*claims.unmet(check(parse(text, "requests.json"), most=100_000).answer, raw["claims"]["holds"], ())] == []
    assert cli.main(["check", "--example", "late-render"]) == 2
