"""A drill plays what it says on a receiver, keeps within its bounds, and what it leaves audits to its verdict."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

import pytest
from receivers import ministack

from fencinglab.check import files
from fencinglab.drill.desk import Player
from fencinglab.drill.run import LEAST, MOCK, Plan, Receiver, choose, drill
from fencinglab.drill.scenarios import SCENARIOS, listing
from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.parse import parse
from fencinglab.errors import InputError, UsageError
from fencinglab.report import drilled
from fencinglab.report.examine import audit_logs

STATUS = shelf.find("request-status")
NAMED = tuple(name for name, scenario in SCENARIOS.items() if scenario.named)


@contextmanager
def audited(done, out=None):
    with drilled.judged(done, out) as judged:
        yield judged, {rule["name"]: rule["status"] for rule in judged.examination.report["rules"]}


@pytest.fixture(scope="module")
def whole():
    """All scenarios that are not only named, on the mock."""
    return drill(STATUS, MOCK, Plan(rounds=4, lease=4))  # on a busy machine a shorter one runs out too early


def test_everything_comes_as_expected(whole):
    """Every scenario of the article's list is played, all that they expect comes true, and every item is as the stream says."""
    assert [s.name for s in whole.played] == [name for name in SCENARIOS if name not in NAMED]
    assert [check for check in whole.checks if not check.holds] == []
    assert {check.scenario for check in whole.checks} == {s.name for s in whole.played}
    assert (whole.stopped, whole.unlike) == ((), ())
    assert [name for name, _ in whole.left_out] == [*NAMED]


def test_the_audit_clears_it(whole, tmp_path):
    """Stream and log together hold every core rule; the same files give `fencinglab audit` the same verdict."""
    with audited(whole, tmp_path) as (judged, rules):
        assert judged.exit_code == 0, drilled.report(judged)
        assert judged.examination.report["verdict"] == "holds"
        core = ("token_went_back", "stale_write_accepted", "token_shared", "holder_without_token", "unfenced_write",
                "terminal_twice", "terminal_left", "alert_twice", "token_restarted", "operation_twice", "chain_broken")  # fmt: skip
        assert {name: rules[name] for name in core} == dict.fromkeys(core, "holds")
        assert rules["leases_overlap"] in ("violated", "holds")  # the clock that ran ahead, unless this machine is slow
        assert rules["rejected_stale"] == "violated"  # a cost: the protection at work
        assert judged.examination.log.matched > 50
    files = [str(tmp_path / name) for name in ("stream.jsonl", "workers.jsonl")]
    again = audit_logs(files, terminal="SUCCEEDED,FAILED")
    alone = audit_logs(files[:1], terminal="SUCCEEDED,FAILED")
    assert (again["verdict"], again["exit_code"]) == (alone["verdict"], alone["exit_code"]) == ("holds", 0)


def test_a_stopped_and_a_killed_process_are_visible(whole):
    """The stale writes of a process that was stopped are refused and logged; of the killed one nothing is lost."""
    of = {
        name: [line for line in whole.log if line["scenario"] == name] for name in ("stalled-process", "killed-process")
    }
    late = [line for line in of["stalled-process"] if line["decision"] == "rejected"]
    assert {(line["worker"], line["reason"]) for line in late} == {("A", "newer_token")} and len(late) >= 7
    grants = [
        line["worker"] for line in of["killed-process"] if line["kind"] == "grant" and line["decision"] == "accepted"
    ]
    assert grants == ["A", "B"]


def test_the_report_is_readable(whole):
    """The report fits the screen, names each scenario with its count, what was not played, and the audit's headline."""
    with audited(whole) as (judged, _):
        text = drilled.report(judged)
    mine = text.partition("The audit of what they left")[0]
    assert max(map(len, mine.splitlines())) <= 100
    assert text.startswith("request-status.json on the mock: all that 14 scenarios expect came true.")
    assert "Not played:\n  alert-recovered" in text and "Holds: none of" in text
    assert set(SCENARIOS) <= {word for line in listing().splitlines() for word in line.split()[:1]}


def test_the_unlocked_mock_is_caught_twice():
    """The negative control breaks the expectation, and the audit of its stream and log breaks on its own: exit 1."""
    for _ in range(5):
        done = drill(STATUS, Receiver("unlocked-mock"), Plan(("simultaneous-acquire",), workers=6, rounds=40, lease=5))
        with audited(done) as (judged, _):
            assert any(not check.holds for check in done.checks) and judged.exit_code == 1
            if judged.examination.report["exit_code"] == 1:  # whichever unsafe rule it broke first
                return
    pytest.fail("in 200 rounds the audit found nothing on a receiver that is not atomic")


def test_named_scenarios_show_their_failure():
    """Each scenario that is played only when named breaks the very rules that it announces, on a good receiver."""
    done = drill(STATUS, MOCK, Plan(NAMED, lease=2))
    assert [check for check in done.checks if not check.holds] == []
    with audited(done) as (judged, rules):
        assert judged.exit_code == 1
        for name in NAMED:
            assert all(rules[rule] == "violated" for rule in SCENARIOS[name].shows), name


@pytest.mark.parametrize(
    ("name", "verdict", "beginning"),
    [
        ("lease-beside-resource-promised", "holds", "Holds: none of"),
        ("lease-beside-resource", "inconclusive", "No proof either way: the leases are granted in other items"),
    ],
)
def test_a_lease_in_an_item_of_its_own_is_drilled(name, verdict, beginning):
    """Where the grant raises a mark in the protected item the stream clears the run; where it does not, the report says what to store."""
    few = ("delayed-response", "duplicate-terminal", "lost-reply", "stalled-process")
    done = drill(shelf.find(name), MOCK, Plan(few, lease=2))
    assert [check for check in done.checks if not check.holds] == []
    with audited(done) as (judged, rules):
        report = judged.examination.report
        assert (report["verdict"], judged.exit_code) == (verdict, 0 if verdict == "holds" else 3)
        assert report["headline"].startswith(beginning)
        assert rules["order_unknown"] == "holds" and judged.examination.log.matched >= 8
        assert any("let the grant raise the token" in note for note in report["notes"]) == (verdict != "holds")


@pytest.mark.parametrize(
    ("name", "scenarios", "rule"),
    [
        ("broken-unconditional", ("delayed-response", "duplicate-terminal"), "token_went_back"),
        ("broken-finish-twice", ("duplicate-terminal",), "terminal_twice"),
    ],
)
def test_a_broken_file_is_caught(name, scenarios, rule):
    """Requests that let a wrong write through do so on the receiver, and the audit says which rule it broke."""
    done = drill(shelf.find(name), MOCK, Plan(scenarios, lease=2))
    with audited(done) as (judged, rules):
        assert judged.exit_code == judged.examination.report["exit_code"] == 1
        assert rules[rule] == "violated"


def test_ministack_does_it_too():
    """On a receiver that shares no code with the mock all of it comes true as well, and its stream is audited."""
    with ministack() as url:
        done = drill(STATUS, Receiver("endpoint", url), Plan(rounds=3, lease=3))
        left = client(url).list_tables()["TableNames"]
    assert [check for check in done.checks if not check.holds] == []
    assert done.stream and left == []
    with audited(done) as (judged, _):
        assert (judged.exit_code, judged.examination.report["verdict"]) == (0, "holds")


def test_tables_are_removed_and_others_untouched():
    """The drill's own tables are gone at the end; of a table that is named only the drill's own items were ever there."""
    with Mock() as mock, mock.served() as url:
        receiver = client(url)
        receiver.create_table(**{"BillingMode": "PAY_PER_REQUEST", **STATUS.tables[0]})
        kept = {"requestId": {"S": "token-floor"}, "tokenFloor": {"N": "7"}}
        receiver.put_item(TableName="request-status", Item=kept)
        few = ("double-enqueue", "crashed-worker")
        drill(STATUS, Receiver("endpoint", url), Plan(few, lease=2))
        assert receiver.list_tables()["TableNames"] == ["request-status"]
        done = drill(STATUS, Receiver("endpoint", url), Plan(few, lease=2, table="request-status"))
        assert receiver.scan(TableName="request-status")["Items"] == [kept]
        assert done.stream is None  # the table has none: the workers' log alone is audited
        assert [check for check in done.checks if not check.holds] == []
        with audited(done) as (judged, rules):
            assert rules["token_shared"] == "holds" and judged.examination.report["exit_code"] in (0, 3)
            assert "The audit of what they left, without a stream, since none could be read:" in drilled.report(judged)


def test_every_worker_ends_with_the_request_that_it_is_at():
    """Scenarios are played at the same time, and beyond the bound each worker that acts has sent one request more at most."""
    few = ("delayed-response", "crashed-worker", "replay")
    done = drill(STATUS, MOCK, Plan(few, max_requests=1))

    assert {name for name, _ in done.stopped} == {*few} and done.requests <= 1 + len(few)


def test_a_table_that_does_not_fit_is_refused():
    """A table that is not there, or has another key than the file, is refused before anything is written."""
    with Mock() as mock, mock.served() as url:
        at = Receiver("endpoint", url)
        with pytest.raises(InputError, match=f"^--table jobs: not at {url}; leave it out"):
            drill(STATUS, at, Plan(("replay",), table="jobs"))
        [own] = shelf.find("late-render").tables
        client(url).create_table(BillingMode="PAY_PER_REQUEST", **own | {"TableName": "jobs"})
        with pytest.raises(
            InputError, match=r"jobs: its key is \w+ \(HASH, S\), that of request-status.json is requestId"
        ):
            drill(STATUS, at, Plan(("replay",), table="jobs"))


def test_bounds_are_kept():
    """Beyond its requests or its time a drill stops, says what did not end, and is no pass."""
    for plan, why in ((Plan(("replacement-owner",), max_requests=3), "it asked for more than 3 operations"),
                      (Plan(("replacement-owner",), seconds=1), "the time was over")):  # fmt: skip
        done = drill(STATUS, MOCK, plan)
        assert done.stopped == (("replacement-owner", why),)
        assert done.seconds < 10
        # the item of `start`, and what was sent: the last one stands in the log too
        assert done.requests == 1 + len(done.log)
        with audited(done) as (judged, _):
            assert judged.exit_code == 3 and f"not ended: {why}" in drilled.report(judged)


def test_a_round_that_outlasts_its_lease_is_not_counted(monkeypatch):
    """A worker that comes when the lease has run out acquires by right: no expectation fails, and it is no pass."""
    prompt = Player.take

    def take(player):
        time.sleep(2.1 if player.name == "B" else 0)
        return prompt(player)

    monkeypatch.setattr(Player, "take", take)
    done = drill(STATUS, MOCK, Plan(("simultaneous-acquire", "double-enqueue"), workers=2, rounds=1))

    assert [check for check in done.checks if not check.holds] == []
    slow = "too slow for a lease of 2 s; give --lease more"
    assert done.stopped == (
        ("simultaneous-acquire", f"1 of 1 rounds outlasted their lease and are not counted: {slow}"),
        ("double-enqueue", slow),
    )
    with audited(done) as (judged, _):
        assert judged.exit_code == 3


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_a_number_that_is_too_small_is_refused(name, least):
    """Each number of a plan has a least value; that of the lease says why one second is none."""
    why = "; clocks tell whole seconds" if name == "lease" else "$"
    option = name.replace("_", "-")
    with pytest.raises(UsageError, match=f"^--{option} {least - 1}: must be {least} or more{why}"):
        drill(STATUS, MOCK, Plan(("replay",), **{name: least - 1}))


def test_what_cannot_be_played_is_said(tmp_path):
    """An unknown scenario, one that the file has no operations for, and a receiver that is not there are a sentence each."""
    with pytest.raises(UsageError, match="--scenario delayd: there is no such scenario .*nearest: .*delayed-response"):
        choose(STATUS, ["delayd"])
    with pytest.raises(
        UsageError, match="rate-limit: cannot be played, since the file has no operation of the kind retry"
    ):
        choose(shelf.find("late-render"), ["rate-limit"])
    _, left_out = choose(shelf.find("late-render"), [])
    assert ("ttl-clean-up", "the file does not say how an item comes to be (`creates`)") in left_out
    lacks = "the file keeps no operation id ($operation) in acquire, save, complete"
    (tmp_path / "ex.json").write_text(files.example(), encoding="utf-8")
    example = shelf.find(str(tmp_path / "ex.json"))
    assert ("lost-reply", lacks) in choose(example, [])[1]
    with pytest.raises(UsageError, match="lost-reply: cannot be played, since the file keeps no operation id"):
        choose(example, ["lost-reply"])
    with pytest.raises(InputError, match="does not make request-status-drill"):
        drill(STATUS, Receiver("endpoint", "http://127.0.0.1:9"), Plan(("replay",)))


def test_the_files_are_a_teams_files(whole):
    """The stream is written as Lambda gets it, the log as JSON lines; neither holds an account of anybody."""
    left = drilled.contents(whole)
    records = [json.loads(line) for line in left["stream.jsonl"].splitlines()]
    assert {record["eventName"] for record in records} == {"INSERT", "MODIFY", "REMOVE"}
    assert all(":123456789012:table/request-status-drill-" in record["eventSourceARN"] for record in records)
    assert all(isinstance(record["dynamodb"]["ApproximateCreationDateTime"], (int, float)) for record in records)
    assert all("scenario" in json.loads(line) for line in left["workers.jsonl"].splitlines())


def test_a_clean_up_that_the_file_does_not_know_is_left_out():
    """Without the placeholder that says how long a finished item is kept, its removal cannot be waited for."""
    given = {name: value for name, value in STATUS.given.items() if name != "retention"}
    _, left_out = choose(STATUS._replace(given=given), [])

    assert ("ttl-clean-up", "`given` of the file has no retention") in left_out


def test_a_file_that_finishes_nothing_is_drilled_as_far_as_it_goes():
    """Scenarios in which somebody finishes are left out with that reason, and the others are played."""
    raw = json.loads(files.example())
    raw["program"].remove("complete")
    del raw["operations"]["complete"]
    chosen, left_out = choose(parse(json.dumps(raw), "mine.json"), ())

    assert [one.name for one in chosen] == ["simultaneous-acquire"]
    assert ("crashed-worker", "the file has no operation of the kind finish") in left_out


def test_a_drill_in_which_nobody_writes_says_so():
    """All came as expected, and that no write was put to the test stands in the same sentence."""
    with audited(drill(STATUS, MOCK, Plan(("double-enqueue",)))) as (judged, _):
        assert drilled.report(judged).startswith(
            "request-status.json on the mock: all that 1 scenario expects came true, but nobody wrote under a lease, "
        )
