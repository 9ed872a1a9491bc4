"""Lanes say what rows and steps say: who held which lease when, what was sent, what was decided."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import addresses
from timelines import HEADER, replayed, timelines

from fencinglab import charts
from fencinglab.charts.scene import AUTHORITY, MOST, OTHERS, OUTSIDE, RECEIVER, SOMEBODY, completed, scene_of
from fencinglab.model import shelf
from fencinglab.model.fix import FIXES
from fencinglab.model.judged import judged
from fencinglab.model.replay import replay

NINE = datetime(2026, 3, 2, 9)
HOSTILE = "<script>alert('1')</script>\x1b[31m\u202e\\\"]" + "A" * 10_000


def scene(name, fix="fenced"):
    """The scene of a timeline that comes with the package."""
    run = replay(shelf.find(name), FIXES[fix])
    return scene_of(judged(run), run.told)


def told(events, fix="fenced"):
    """The scene of these events, told in one line."""
    run = replayed(events, fix)
    return scene_of(judged(run), run.told)


def row(second, kind, token=None, **given):
    """A row of a log's history at this second: accepted, written by ann."""
    known = {
        "resource": "job", "lease": "job", "at": NINE + timedelta(seconds=second), "kind": kind, "writer": "ann",
        "token": token, "decision": "accepted",
    }  # fmt: skip
    return known | given


def logged(*rows):
    """The scene of rows of a log."""
    return scene_of([completed(row, number) for number, row in enumerate(rows, 1)])


def bars(of):
    """(holder, token, from, to) of each lease."""
    return [(bar["holder"], bar["token"], bar["x"], bar["x2"]) for bar in of.bars]


# --------------------------------------------------------------------------- scenes of replays


def test_lanes_stand_in_a_fixed_order():
    """Authority, workers as they first act, receiver, and outside where something happens there; under any fix."""
    for fix in ("unfenced", "client-check"):
        drawn = charts.lanes(judged(run := replay(shelf.find("external-e-mail"), FIXES[fix])), run.told).to_dict()
        assert drawn["encoding"]["y"]["scale"]["domain"] == [AUTHORITY, "A", "B", RECEIVER, OUTSIDE]


def test_a_lease_lasts_from_its_grant_to_its_expiry():
    """The bar of A ends where its lease runs out, that of B at the edge: it still runs when the story ends."""
    assert bars(scene("report-generation")) == [("A", "41", 1, 4), ("B", "42", 5, 9.6)]


def test_an_expiry_between_two_events_lies_between_them():
    """60 of 90 seconds after the third event lie at two thirds of the way to the next."""
    [(_, _, begun, ended), _] = bars(told("A acquires; A reads; 90 s pass; B acquires"))

    assert begun == 1
    assert ended == pytest.approx(3 + (60 - 2) / (92 - 2))


def test_a_renewal_lengthens_and_a_release_ends_a_lease():
    """A renewed lease runs on; a released one ends at its release, whatever its time was."""
    of = told("A acquires; 30 s pass; A renews; A releases; B acquires")

    assert bars(of) == [("A", "41", 1, 4), ("B", "42", 5, 5.6)]
    assert of.bars[0]["until"] == "00:32, released"


def test_renewals_while_time_passes_lie_behind_their_event():
    """What was decided while seconds passed stands in order between the event and the next one."""
    of = told("A acquires; 45 s pass; A reads", "renewed-often")

    assert [(point["kind"], point["at"], point["x"]) for point in of.points] == [
        ("grant", "00:00", 1), ("renew", "00:20", pytest.approx(2 + 1 / 3)), ("renew", "00:40", pytest.approx(2 + 2 / 3))
    ]  # fmt: skip
    assert [event["event"] for event in of.events] == ["A acquires", "A reads"]


def test_two_leases_may_overlap():
    """Where a second holder takes a lease that still runs, both bars stand at that time."""
    (_, _, _, ended), (_, _, begun, _) = bars(scene("clock-ahead", "unfenced"))

    assert begun < ended


def test_pauses_and_crashes_are_shaded():
    """A pause lasts from its event to the resumption, a crash without a restart to the end."""
    [pause] = scene("report-generation").states
    [crash] = scene("killed-for-good").states

    assert (pause["lane"], pause["state"], pause["x"], pause["x2"]) == ("A", "paused", 3, 7)
    assert (crash["state"], crash["x"], crash["x2"], crash["to"]) == ("crashed", 3, 6.6, "the end")


def test_a_message_on_its_way_is_a_line_from_its_sending():
    """A delayed write begins at its sender when it was sent; one that arrives at once is upright."""
    lines = {point["x"]: (point["lane2"], point["x2"], point["lane"]) for point in scene("delayed-message").lines}

    assert lines[7] == ("A", 3, RECEIVER)
    assert lines[6] == ("B", 6, RECEIVER)


def test_a_wrong_clock_is_no_time_in_flight():
    """What arrives at once stays upright though its sender's clock is another."""
    of = told("A's clock runs 30 s behind; A acquires; A writes x")

    assert [point["x2"] - point["x"] for point in of.points] == [0, 0]
    assert of.points[1]["sent"] == "-00:28"


def test_each_decision_is_a_mark_where_it_was_made():
    """Grants are decided by the authority, writes by the receiver, effects by nobody of ours."""
    of = scene("external-e-mail", "unfenced")

    assert [(point["kind"], point["lane"]) for point in of.points] == [
        ("grant", AUTHORITY), ("effect", OUTSIDE), ("grant", AUTHORITY), ("effect", OUTSIDE), ("finish", RECEIVER)
    ]  # fmt: skip


def test_harm_is_ringed_and_told():
    """The stale write is ringed without a fence and refused with one; the finding says which."""
    unfenced, fenced = scene("report-generation", "unfenced"), scene("report-generation")

    assert [point["x"] for point in charts.style.ringed(unfenced.points)] == [8]
    assert unfenced.finding == "41 was accepted while 42 was held: write by A at 01:04"
    assert [point["mark"] for point in fenced.points if point["x"] == 8] == ["refused"]
    assert charts.style.ringed(fenced.points) == []


def test_a_refused_request_for_a_lease_shows_no_token():
    """A worker that was granted nothing presented nothing, and has no bar."""
    of = told("A acquires; B acquires")
    [_, refused] = of.points

    assert bars(of) == [("A", "41", 1, 2.6)]
    assert (refused["mark"], refused["token"]) == ("refused", charts.style.NONE_SEEN)


def test_one_grant_over_two_resources_is_one_decision():
    """A lease that covers two resources is granted once, and its bar stands once."""
    header = HEADER.replace("resources: report", "resources: one, two\nleases: both")
    run = replayed("A acquires; A writes x to one; A writes y to two", "fenced", header)
    of = scene_of(judged(run), run.told)

    assert [point["lane"] for point in of.points] == [AUTHORITY, "receiver: one", "receiver: two"]
    assert len(of.bars) == 1


def test_events_that_decide_nothing_are_there():
    """Every event of the story has a tick in the lane of its worker, with what came of it."""
    of = scene("report-generation", "client-check")
    last = [event for event in of.events if event["x"] == 8]

    assert [(event["lane"], event["event"]) for event in last] == [("A", "A writes old-result")]
    assert last[0]["says"].endswith("and gives up")
    assert 8 not in {point["x"] for point in of.points}


@settings(deadline=None, max_examples=60)
@given(timelines(), st.sampled_from(sorted(FIXES)))
def test_everything_lies_on_the_axis_and_in_a_lane(timeline, fix):
    """Whatever happens: each place is on the axis, nothing ends before it begins, each lane is drawn."""
    run = replay(timeline, FIXES[fix])
    of = scene_of(judged(run), run.told)
    lanes = {AUTHORITY, OUTSIDE, *of.workers, *of.receivers}

    for drawn in (*of.bars, *of.states):
        assert 0.4 <= drawn["x"] <= drawn["x2"] <= len(run.told) + 0.6
        assert drawn["lane"] in lanes
    for point in of.points:
        assert 0.4 <= point["x2"] <= point["x"] <= len(run.told) + 0.6
        assert {point["lane"], point["lane2"] or point["lane"]} <= lanes


# --------------------------------------------------------------------------- scenes of logs


def test_rows_of_a_log_stand_in_their_order():
    """Without steps each row has a place of its own, though its time runs back."""
    of = logged(row(0, "grant", 1), row(9, "write", 1), row(5, "write", 1))

    assert [point["x"] for point in of.points] == [1, 2, 3]
    assert of.times == ["09:00:00", "09:00:09", "09:00:05"]


def test_a_log_shows_time_in_flight():
    """A write that was sent before the row before it was decided begins between the two."""
    of = logged(row(0, "grant", 1), row(10, "write", 1, sent_at=NINE + timedelta(seconds=5)))

    assert [(line["x2"], line["x"]) for line in of.lines] == [(1, 1), (1.5, 2)]


def test_an_unknown_expiry_lasts_to_the_next_grant():
    """Without an expiry in the log a lease is drawn until the next grant, and its end is said to be not known."""
    of = logged(row(0, "grant", 1), row(3, "write", 1), row(9, "grant", 2, writer="bob"))

    assert bars(of) == [("ann", "1", 1, 3), ("bob", "2", 3, 3.6)]
    assert of.bars[0]["until"] == "not known"


def test_a_lease_may_begin_before_the_log():
    """A holder that the first row finds there has a bar from the left edge."""
    [first] = bars(logged(row(0, "write", 7, before_holder="ann", before_token=7, after_holder="ann")))

    assert first == ("ann", "7", 0.4, 1.6)


def test_rows_that_nobody_judged_are_no_pass():
    """Of a history without a verdict the title does not say that it is in order, and its tokens are printed too."""
    chart = charts.lanes([row(0, "grant", 1), row(1, "write", 1), row(2, "write", 0, decision="rejected")])

    assert chart.to_dict()["title"]["text"] == ["Not judged: 3 mutations, of which 1 was refused"]
    assert {text["label"] for text in values(chart, "text")} == {"0", "1", "lease 1"}


def test_a_token_of_another_resource_was_not_held():
    """What was granted over one resource says nothing of what the receiver held of another."""
    of = logged(row(0, "grant", 5, resource="one"), row(1, "write", 3, resource="two", broken=True))

    assert of.finding == "A rule was broken: step 2, write by ann"
    assert of.points[1]["before"] == "not known"


def test_many_workers_share_a_lane():
    """Beyond a fixed number workers stand in one lane; a writer that is not known has its own."""
    of = logged(*(row(i, "write", 1, writer=f"worker-{i}") for i in range(MOST + 3)), row(99, "write", writer=None))

    assert of.workers == [*(f"worker-{i}" for i in range(MOST)), OTHERS, SOMEBODY]


def test_names_that_are_cut_alike_are_told_apart():
    """Two long names with the same beginning and end, and a worker named as a lane of ours, get a number."""
    names = ["lambda/" + "x" * n + "/poller" for n in (40, 41)]
    of = logged(*(row(i, "write", 1, writer=name) for i, name in enumerate([*names, RECEIVER])))

    assert len({*of.workers, RECEIVER, AUTHORITY}) == 5


# --------------------------------------------------------------------------- charts


def lanes(name="report-generation", fix="unfenced"):
    """The chart of a timeline under a fix."""
    run = replay(shelf.find(name), FIXES[fix])
    return charts.lanes(judged(run), run.told)


def values(chart, mark):
    """The rows of all layers that draw this kind of mark."""
    drawn = chart.to_dict()
    named = [layer.get("data", drawn.get("data"))["name"] for layer in drawn["layer"] if layer["mark"]["type"] == mark]
    return [row for name in named for row in drawn["datasets"][name]]


def test_tokens_are_printed_beside_their_marks():
    """Each grant and each write carries its token; a lease says its own."""
    labels = {(text["x"], text["label"]) for text in values(lanes(), "text")}

    released = {text["label"] for text in values(lanes("released-then-written"), "text")}

    assert labels >= {(1, "41"), (5, "42"), (6, "42"), (8, "41"), (9, "42"), (1, "lease 41"), (3, "paused")}
    assert "released" in released


def test_the_axis_is_labelled_with_the_times_told():
    """The ticks are the events, each labelled with its time, and the title says the unit."""
    axis = lanes().to_dict()["encoding"]["x"]

    assert re.findall(r"'([^']*)'", axis["axis"]["labelExpr"])[:5] == ["00:00", "00:01", "00:02", "01:00", "01:01"]
    assert "minutes:seconds" in axis["title"]


def test_alt_text_tells_the_lanes():
    """The description names lanes, finding and decisions in order."""
    words = lanes().to_dict()["description"]

    for part in (
        "authority, A, B, receiver",
        "41 was accepted while 42 was held",
        "01:04 write by A, token 41: accepted, broke",
    ):
        assert part in words


def test_tooltip_is_the_row():
    """A mark says its event, what came of it, both times, the decision and its source."""
    [point] = [point for point in values(lanes(), "point") if point["x"] == 8 and point["mark"] == "accepted"]

    assert point["says"] == "A wrote with 41 after 42 was accepted: accepted, nothing compared"
    assert (point["at"], point["sent"], point["before"], point["source"]) == (
        "01:04", "01:04", "42", "report-generation.timeline:21"
    )  # fmt: skip


def test_multiples_share_lanes_marks_and_width():
    """Each fix has a panel in the order given, titled by its finding; all have the same lanes, places and width."""
    runs = [replay(shelf.find("short-pause"), FIXES[fix]) for fix in ("longer-lease", "unfenced")]
    drawn = charts.multiples(runs).to_dict()
    panels = drawn["vconcat"]

    assert drawn["title"]["text"] == ["short-pause: harm under unfenced; none under longer-lease"]
    assert [panel["title"]["text"][0].partition(":")[0] for panel in panels] == ["longer-lease", "unfenced"]
    assert len({str((panel["width"], panel["height"], panel["encoding"]["y"])) for panel in panels}) == 1
    assert len({str(panel["encoding"]["x"]["scale"]) for panel in panels}) == 1
    assert {panel["width"] for panel in panels} == {charts.style.WIDTH}
    assert [panel["encoding"]["x"]["axis"]["labels"] for panel in panels] == [False, True]


def test_harm_that_no_single_mark_did_is_in_the_title():
    """A fix under which the newest writer's result is thrown away is told as harm, as its replay says, without a ring."""
    runs = [replay(shelf.find("late-but-not-stale"), FIXES[fix]) for fix in ("latest", "holder")]
    drawn = charts.multiples(runs).to_dict()

    assert drawn["title"]["text"] == ["late-but-not-stale: harm under holder; none under latest"]
    assert drawn["vconcat"][1]["title"]["text"] == ["holder: what stands in the end is not the newest writer's"]


def test_multiples_show_times_where_they_differ():
    """Where the same event comes at another time under another fix, each panel has its own times."""
    runs = [replay(shelf.find("report-generation"), FIXES[fix]) for fix in ("longer-lease", "unfenced")]

    assert all(panel["encoding"]["x"]["axis"]["labels"] for panel in charts.multiples(runs).to_dict()["vconcat"])


def test_hostile_names_are_inert():
    """Markup, control characters, quotes and endless names from a log arrive as short text."""
    rows = [row(0, "grant", 1, writer=HOSTILE, resource=HOSTILE, lease=HOSTILE, source=HOSTILE, reason=HOSTILE)]
    rows.append(rows[0] | {"kind": "write", "at": HOSTILE, "broken": True})
    drawn = charts.svg(charts.lanes(rows))

    assert "<script" not in drawn and "&lt;script" in drawn
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", drawn)
    assert "A" * 100 not in drawn and len(drawn) < 40_000


@pytest.mark.parametrize("at", ["2026-03-02T');(1)+'", "0123456789T'+1+'xx", HOSTILE])
def test_no_time_of_a_log_becomes_code(at):
    """What stands in the expression that labels the axis is digits and colons, whatever the log calls a time."""
    axis = charts.lanes([row(0, "write", 1, at=at)]).to_dict()["encoding"]["x"]["axis"]

    assert axis["labelExpr"] == "[''][datum.value - 1]"


def test_long_histories_show_the_finding():
    """Of a long log a fixed number of rows is drawn, the broken one among them, and the subtitle says how many."""
    rows = [row(i, "write", 1) | {"broken": i == 800} for i in range(1000)]
    chart = charts.lanes(rows)

    assert len(values(chart, "point")) == charts.held.WINDOW + 1
    assert chart.to_dict()["title"]["subtitle"][0].endswith(f"1,000 mutations, {charts.held.WINDOW} of them shown")


def test_drawn_the_same_every_time():
    """Drawing twice gives the same bytes, as picture and as page, and neither asks for an address."""
    first, second = (charts.files(lanes(), "x") for _ in range(2))

    assert first == second
    assert sorted(first) == ["x.html", "x.png", "x.svg"]
    assert addresses(first["x.svg"]) == set()
    assert not re.search(r"<script[^>]+src|<link", first["x.html"])
