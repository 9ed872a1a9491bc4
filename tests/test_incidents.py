"""The incidents of data/incidents: each is told with its sources, audited, and tried under every fix."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fencinglab import cli, narrate
from fencinglab.audit.rules import BY_NAME
from fencinglab.inert import WIDTH
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES, named
from fencinglab.model.harm import harms
from fencinglab.model.incident import RESULTS, VERDICTS, Row, incidents, result, rows
from fencinglab.model.replay import replay
from fencinglab.model.timeline import Timeline, parse
from fencinglab.report.examine import audit_logs

FOLDER = shelf.INCIDENTS
TABLE = {
    entry["name"]: entry for entry in tomllib.loads((FOLDER / "incidents.toml").read_text(encoding="utf-8"))["incident"]
}
CASES = Path(__file__).parents[2] / "shared" / "cases" / "cases.json"
INCIDENTS = {incident.name: incident for incident in incidents()}
each = pytest.mark.parametrize("name", TABLE)


def in_place(name: str) -> Timeline:
    return INCIDENTS[name].timeline


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The report on an incident's log, or on its history under what was in place or a fix; each is made once."""

    @cache
    def report(name: str, fix: str = "", both: str = "") -> dict[str, Any]:
        """Where `both` is said, all workers of the history have this name."""
        if "log" in TABLE[name] and not fix:
            return audit_logs([str(FOLDER / TABLE[name]["log"])], **options(TABLE[name]["options"]))
        timeline = in_place(name)
        contents = narrate.contents([replay(timeline, named(fix or timeline.in_place))])
        [(path, lines)] = [(path, text) for path, text in contents.items() if path.startswith("history/")]
        file = tmp_path_factory.mktemp(name) / Path(path).name
        names = "|".join(f'"{worker}"' for worker in timeline.workers)
        text = "".join(lines)
        file.write_text(re.sub(names, f'"{both}"', text) if both else text, encoding="utf-8")
        return audit_logs([str(file)])

    return report


def options(words: str) -> dict[str, str]:
    """The options of a command line, which all have a value."""
    return dict(zip(words.replace("--", "").split()[::2], words.split()[1::2], strict=True))


@cache
def tried() -> dict[str, dict[str, Row]]:
    """The row of every incident under every fix."""
    table: dict[str, dict[str, Row]] = {}
    for row in rows():
        table.setdefault(row.incident, {})[row.fix] = row
    return table


def found(report: dict[str, Any]) -> dict[str, int]:
    return {rule["name"]: rule["count"] for rule in report["rules"] if rule["status"] == "violated"}


# --- how they are told


def test_every_incident_is_told_and_expected():
    """Each of the twenty has a timeline, an entry in the table, and the two say the same name."""
    assert [*TABLE] == [*shelf.incidents()] == [*INCIDENTS]
    assert len(TABLE) == 20
    logs = {path.name for path in FOLDER.glob("*.jsonl")}
    assert logs == {entry["log"] for entry in TABLE.values() if "log" in entry}


@each
def test_an_incident_says_where_it_is_told_and_what_is_assumed(name):
    """Each has addresses, says what was filled in, what was in place, and what to look for; its header is in order."""
    timeline = in_place(name)
    text = (FOLDER / f"{name}.timeline").read_text(encoding="utf-8")
    bare = [re.sub(r"\s+#.*", "", line) for line in text.splitlines() if line]

    assert timeline.sources
    assert all(re.fullmatch(r"https://[\w.-]+/\S+", address) for address in timeline.sources)
    assert timeline.assumed
    assert timeline.shows
    assert timeline.in_place in FIXES
    assert timeline.in_place not in timeline.fixes
    assert len(timeline.title) <= 62
    assert bare == [line for line in str(timeline).splitlines() if line]


@each
def test_an_entry_speaks_of_what_exists(name):
    """Every fix, rule and verdict in the table exists; no fix is said twice; lists are in the order of FIXES."""
    entry = TABLE[name]
    lists = [entry[key] for key in ("prevents", "puts_off", "helps", "does_not_help")]

    assert all(names == [fix for fix in FIXES if fix in names] for names in lists), lists
    assert not {*entry["prevents"]} & {*entry["puts_off"]}
    assert not {*entry["helps"]} & {*entry["does_not_help"]}
    assert {*entry["findings"], *entry.get("open", ())} <= {*BY_NAME}
    assert {entry["verdict"], entry.get("judged", "unsafe")} <= {*VERDICTS}


# --- what an audit says of them


@each
def test_the_audit_gives_the_verdict(name, audited):
    """The audit of what happened finds what is expected; the worst class of it is the verdict."""
    entry, report = TABLE[name], audited(name)
    classes = {BY_NAME[rule].group for rule in found(report)}
    worst = next((group for group in ("unsafe", "window", "cost") if group in classes), "")

    assert found(report) == entry["findings"]
    assert report["exit_code"] == entry["exit_code"]
    assert worst == (entry["verdict"] if entry["verdict"] in ("unsafe", "window", "cost") else "")


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if entry["verdict"] == "unknown"])
def test_what_is_unknown_lacks_a_field(name, audited):
    """An incident that nobody can decide leaves a rule open, which names the column that would decide it."""
    rules = {rule["name"]: rule for rule in audited(name)["rules"]}

    assert TABLE[name]["open"]
    for rule in TABLE[name]["open"]:
        assert (rules[rule]["status"], rules[rule]["missing"]) == ("unknown", ["operation"])


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if entry["verdict"] == "not visible"])
def test_what_is_not_visible_is_seen_by_the_replay_alone(name, audited):
    """Where the harm leaves no row the replay knows of it and the audit finds nothing, but never says that it holds."""
    timeline = in_place(name)

    assert [harm.name for harm in harms(replay(timeline, named(timeline.in_place)))] == ["twice"]
    assert audited(name)["verdict"] == "inconclusive"
    assert INCIDENTS[name].not_seen


def test_another_verdict_than_the_readers_has_its_reason():
    """Where the audit says otherwise than readers of the report, the incident says why, and only there."""
    for name, incident in INCIDENTS.items():
        told = "verdict" in incident.because or incident.verdict == "not visible"
        assert told == (incident.verdict != incident.judged), name


def test_an_id_of_the_operation_decides_what_was_unknown(audited):
    """With an id of the operation in the log, the refused creation is known to be the sender's own success."""
    report = audited("C05-created-and-refused", "fenced-id-per-attempt")

    assert found(report) == {"own_success_rejected": 1}


def test_the_name_of_a_host_hides_that_a_token_is_shared(audited):
    """Where two processes log the name that they share, nobody can say that two had the same token."""
    name = "C15-same-generation-twice"

    assert {*found(audited(name))} - {*found(audited(name, both="host"))} == {"token_shared"}


# --- what fixes would have done


@each
def test_every_fix_is_tried_and_does_what_is_expected(name):
    """Under every fix, replay gives what the table says of it."""
    entry = TABLE[name]
    otherwise = "idle" if entry.get("idle") else "does not prevent"
    expected = dict.fromkeys(FIXES, otherwise)
    expected |= dict.fromkeys(entry["prevents"], "prevents") | dict.fromkeys(entry["puts_off"], "puts off")

    assert {fix: row.result for fix, row in tried()[name].items()} == expected


@each
def test_nothing_prevents_what_it_was_in_place_for(name):
    """What was in place did not prevent the harm, nor does adding nothing to it."""
    timeline = in_place(name)
    there = {result(timeline, FIXES[fix]) for fix in (timeline.in_place, "unfenced")}

    assert there == {"idle" if TABLE[name].get("idle") else "does not prevent"}


AGREE = {  # result of a replay, judgement of the readers -> whether they say the same; what puts off may be either
    ("prevents", "helps"): True, ("prevents", "does not help"): False, ("prevents", ""): True,
    ("puts off", "helps"): True, ("puts off", "does not help"): True, ("puts off", ""): True,
    ("does not prevent", "helps"): False, ("does not prevent", "does not help"): True, ("does not prevent", ""): True,
    ("idle", "helps"): True, ("idle", "does not help"): True, ("idle", ""): True,
}  # fmt: skip


def test_a_difference_from_the_readers_has_its_reason():
    """Where replay says otherwise than readers of the report, the incident says why, and only there."""
    for row in (row for of_one in tried().values() for row in of_one.values()):
        assert AGREE[row.result, row.judged] == (not row.because), row
    for name, incident in INCIDENTS.items():
        assert {*incident.because} <= {*FIXES, "verdict"}, name


# What the reasons claim: (incident, fix) -> a change of the order, and what the fix does then.
CHANGED = {
    ("C02", "unfenced"): ("authority is restored to 10", "A reads", "idle"),  # a marker that stays
    ("C07", "client-check"): ("pg-1 reads\npg-1 renews", "pg-1 checks its lease", "prevents"),
    ("C10", "latest"): ("A causes reply-1 outside", "A writes reply-1", "prevents"),
    ("C10", "fenced"): ("A causes reply-1 outside", "A writes reply-1", "does not prevent"),
    ("C12", "fenced"): ("T1 writes result-of-T1\nT2 writes result-of-T2", "T2 writes result-of-T2\nT1 writes result-of-T1", "prevents"),
    ("C13", "client-check"): ("W1 is cut off", "W1 checks its lease\nW1 is cut off", "does not prevent"),
    ("C24", "unfenced"): ("leases: dir-A, dir-B", "leases: prices", "idle"),
    ("C20", "terminal-once"): ("W2 finishes as COMPLETED", "W2 reads", "does not prevent"),
}  # fmt: skip


@pytest.mark.parametrize(("told", "change"), CHANGED.items(), ids=lambda v: "-".join(v) if len(v) == 2 else "")
def test_what_the_reasons_claim(told, change):
    """Each claim about another order is put to the test."""
    (number, fix), (old, new, expected) = told, change
    text = str(shelf.find(number))
    assert old in text
    changed = (
        text.replace(old, new).replace(" dir-A\n", "\n").replace(" dir-B\n", "\n")
        if number == "C24"
        else text.replace(old, new)
    )

    assert result(parse(changed), FIXES[fix]) == expected


def test_a_few_incidents_under_a_few_fixes():
    """Rows may be asked of some incidents and fixes; they carry title, verdict and what readers expected."""
    [first, second] = rows([INCIDENTS["C07-leader-not-told"]], ["fenced", "client-check"])

    assert (first.incident, first.title[:17]) == ("C07-leader-not-told", "A deposed leader ")
    assert (first.verdict, first.fix, first.result, first.judged, first.because) == (
        "unsafe",
        "fenced",
        "prevents",
        "helps",
        "",
    )
    assert (second.judged, second.because[:13]) == ("does not help", "In this order")


# --- what the command says, and whose words these are


def test_an_incident_is_replayed_by_its_number(capsys):
    """`fencinglab replay C21` tries what was in place first and the named fixes beside it, and says what all fixes do."""
    assert cli.main(["replay", "C21"]) == 0
    told = capsys.readouterr().out

    assert told.startswith("C21-processing-for-another: ")
    assert "\nIn place was terminal-once; each fix is tried beside it.\n" in told
    assert "\nTold at: https://github.com/nazarli-shabnam/clevis/issues/253\n" in told
    assert re.findall(r"^([\w-]+) final status", told, re.MULTILINE)[:2] == ["terminal-once", "renewed-often"]
    assert "\n  prevents          renew-or-abort, client-check, two-step-holder, promised," in told
    assert "\n  puts off          grant-delay (until the next holder asks " in told
    assert max(map(len, told.splitlines())) <= WIDTH


def test_every_conclusion_says_all_that_is_known():
    """Below its story an incident names every fix once, or all of them at once, and each of its sentences."""
    for incident in INCIDENTS.values():
        told = " ".join(narrate.conclusion(incident).split())
        lists = re.split(" Readers of | No such log | Also proposed", re.sub(r"\(.*?\)", "", told))[0]
        names = [word for word in re.findall(r"[\w-]+", lists) if word in FIXES]
        assert sorted(names) == sorted(FIXES) or (names == [] and " every fix" in lists), incident.name
        assert all(text in told for text in (incident.not_seen, incident.beyond, *incident.because.values())), (
            incident.name
        )


def test_incidents_have_a_group_in_the_listing(capsys):
    """`fencinglab replay` lists the incidents in a group of their own, each in one line."""
    assert cli.main(["replay"]) == 0
    group = capsys.readouterr().out.split("\nIncidents, ")[1].split("\n\n")[0].splitlines()[1:]

    assert [line.split()[0] for line in group] == [*shelf.incidents()]


def test_the_readme_has_every_incident():
    """The table of data/incidents/README.md is what the package computes."""
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    table = []
    for name, incident in INCIDENTS.items():
        by = {word: sum(row.result == word for row in tried()[name].values()) for word in RESULTS}
        prevented = (
            "no case in this model" if by["idle"] else f"{by['prevents']} of {len(FIXES)}, {by['puts off']} put it off"
        )
        table.append(f"| `{name}` | {incident.timeline.title} | {incident.verdict} | {prevented} |")

    assert [line for line in lines if line.startswith("| `C")] == table


def test_the_commands_of_the_readme(tmp_path, monkeypatch, capsys):
    """What README.md shows is what can be typed: a replay, the audit of its history, the audit of a log."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = [line.split()[2:] for line in text.splitlines() if line.startswith("$ fencinglab ")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.replay, "_drawn", lambda _: {})  # the charts have tests of their own
    Path("data").symlink_to(FOLDER.parent)

    assert [cli.main(words) for words in commands] == [0, 1, 3]
    told = capsys.readouterr().out
    assert "Violated: a write with an older token was accepted after a newer one, once." in told
    assert "A renewed a lease that nobody held" in told


@pytest.mark.skipif(not CASES.exists(), reason="the collection of reports is not beside this checkout")
def test_the_words_are_our_own():
    """No sentence of the collection that the incidents were found in, and no run of seven of its words, stands in ours."""

    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall(r"[\w'-]+", re.sub(r"https?://\S+", " ", text.lower()))
        return {tuple(words[place : place + 7]) for place in range(len(words) - 6)}

    def prose(value: Any) -> list[str]:
        within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value] if isinstance(value, str) else [text for inner in within for text in prose(inner)]

    cases = json.loads(CASES.read_text(encoding="utf-8"))
    theirs = {sentence.strip().lower() for text in prose(cases) for sentence in re.split(r"[.;:]\s", text)}
    theirs = {sentence for sentence in theirs if len(sentence.split()) > 3}
    told = [path.read_text(encoding="utf-8") for path in FOLDER.iterdir() if path.suffix != ".jsonl"]
    ours = {
        line.split(":", 1)[-1].split("#")[-1].strip().rstrip(".").lower() for text in told for line in text.splitlines()
    }

    assert {case["id"] for case in cases} == {name[:3] for name in TABLE}
    assert {case["id"]: case["urls"] for case in cases} == {name[:3]: [*in_place(name).sources] for name in TABLE}
    assert theirs & ours == set()
    assert {run for text in prose(cases) for run in runs(text)} & {run for text in told for run in runs(text)} == set()
