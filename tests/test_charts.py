"""Charts say what the rows say: their dictionaries are looked at, not their pixels."""

import base64
import re
from itertools import pairwise

import altair
import pytest
from pages import addresses

from fencinglab import charts
from fencinglab.charts import refused

LONG = 10**37 + 41
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\u202e</title>\"'&{datum.x}" + "A" * 10_000


def row(step, kind, token=None, **given):
    """A row of report["timeline"]: accepted, written by ann, nothing else known."""
    known = {
        "resource": "report-7", "step": step, "order_key": f"{step:040d}", "at": f"2026-03-02T09:00:{step:02d}Z",
        "kind": kind, "writer": "ann", "token": token, "decision": "accepted", "before_token": None,
        "after_token": token if kind == "grant" else None, "after_holder": "ann" if kind == "grant" else None,
        "after_terminal": None, "broken": False, "undecided": False,
    }  # fmt: skip
    return known | given


def story(first=41):
    """The paused worker: ann's write with the first token is accepted after bob's with the second."""
    old, new = (token if token < 1 << 53 else str(token) for token in (first, first + 1))
    return [
        row(1, "grant", old),
        row(2, "write", old),
        row(3, "grant", new, writer="bob", after_holder="bob"),
        row(4, "write", new, writer="bob"),
        row(5, "write", old, broken=True),
        row(6, "finish", new, writer="bob"),
    ]


def layers(chart, mark):
    """The layers of the chart that draw this kind of mark, each with the rows that it draws as `values`."""
    drawn = chart.to_dict()
    sets = drawn["datasets"]
    every = [layer for panel in drawn.get("vconcat", [drawn]) for layer in panel["layer"]]
    found = [layer for layer in every if layer["mark"]["type"] == mark]
    return [layer | {"values": sets[layer.get("data", drawn.get("data"))["name"]]} for layer in found]


def points(chart):
    """{step: word of its mark} of the mutations, and the steps that are ringed."""
    values = [point for layer in layers(chart, "point") for point in layer["values"]]
    rings = [point["step"] for point in values if point["mark"] == charts.style.BROKEN]
    return {point["step"]: point["mark"] for point in values if point["mark"] != charts.style.BROKEN}, rings


def levels(chart):
    """The labels of the token axis from top to bottom."""
    return layers(chart, "point")[0]["encoding"]["y"]["scale"]["domain"]


def line(chart):
    """[(step, token held)] of the line."""
    return [(point["step"], point["token"]) for point in layers(chart, "line")[0]["values"]]


def title(chart):
    """The lines of the title as one text."""
    return " ".join(chart.to_dict()["title"]["text"])


# --------------------------------------------------------------------------- tokens


def test_each_decision_has_its_own_mark():
    """Accepted, refused, finishing and undecided mutations are told apart, and a broken one is ringed besides."""
    rows = [
        row(1, "grant", 41),
        row(2, "write", 40, decision="rejected"),
        row(3, "write", 41, undecided=True),
        row(4, "write", 41, decision="unknown"),
        row(5, "write", 40, broken=True),
        row(6, "finish", 41),
    ]
    marks, rings = points(charts.tokens(rows))

    assert list(marks.values()) == ["accepted", "refused", "not decided", "not decided", "accepted", "finished"]
    assert rings == [5]


def test_colour_and_shape_agree_everywhere():
    """Every mark has a shape and colours of one set, in a fixed order, whichever marks a chart has."""
    for rows in (story(), story()[:2]):
        encoding = layers(charts.tokens(rows), "point")[0]["encoding"]
        for channel in ("shape", "fill", "stroke"):
            assert encoding[channel]["scale"] == {
                "domain": [mark.word for mark in charts.style.MARKS],
                "range": [getattr(mark, channel) for mark in charts.style.MARKS],
            }


def test_marks_differ_without_colour():
    """No two marks are told apart by hue alone: shape, or filled against hollow, tells them apart as well."""
    plain = {(mark.shape, mark.fill in ("transparent", charts.style.PAPER)) for mark in charts.style.MARKS[:-1]}

    assert len(plain) == len(charts.style.MARKS) - 1


def test_legend_lists_what_is_drawn():
    """The legend names the marks of this chart and no others."""
    legend = layers(charts.tokens(story()), "point")[0]["encoding"]["shape"]["legend"]

    assert legend["values"] == ["accepted", "finished", "broke a rule"]


def test_line_is_the_token_held():
    """The line rises with grants, stays where an older token is accepted, and ends where the item is gone."""
    rows = [*story(), row(7, "delete", 42), row(8, "write"), row(9, "grant", 43)]

    assert line(charts.tokens(rows)) == [
        *((1, "41"), (2, "41"), (3, "42"), (4, "42"), (5, "42"), (6, "42"), (7, "42")),
        *((9, "43"), (9.6, "43")),
    ]


def test_line_follows_the_receiver_where_it_speaks():
    """What the receiver held before and after a row counts more than what earlier rows let expect."""
    rows = [row(1, "write", 5, before_token=7, after_token=7), row(2, "write", 4, decision="rejected", before_token=9)]

    assert line(charts.tokens(rows)) == [(1, "7"), (2, "9"), (2.6, "9")]


def test_a_row_without_a_place_in_the_order_moves_no_line():
    """A refusal that only the worker's log tells stands last, and the line does not fall to what it found back then."""
    late = row(7, "write", 41, order_key=None, before_token=41, decision="rejected")
    [line] = layers(charts.tokens([*story(), late]), "line")
    title = layers(charts.tokens([*story(), late]), "point")[0]["encoding"]["x"]["title"]

    assert [point["token"] for point in line["values"]] == ["41", "41", "42", "42", "42", "42", "42", "42"]
    assert title == "step in the receiver's order; some have no place in it"


def test_mutations_without_a_token_have_their_own_lane():
    """A mutation whose token is not known stands below all tokens, not at a token that it may not have presented."""
    chart = charts.tokens([row(1, "grant", 41), row(2, "write", undecided=True)])
    placed = {point["step"]: point["token"] for point in layers(chart, "point")[0]["values"]}

    assert placed == {1: "41", 2: charts.style.NONE_SEEN}
    assert levels(chart) == ["41", charts.style.NONE_SEEN]


def test_tokens_are_ordered_as_numbers():
    """10 stands above 9 and 2, highest first, whether the report has them as numbers or as text."""
    rows = [row(i, "grant", token) for i, token in enumerate((9, "10", 2), 1)]

    assert levels(charts.tokens(rows)) == ["10", "9", "2"]


def test_long_tokens_stay_exact():
    """Tokens of 38 digits that differ in the last one are two levels; labels and subtitle hold all digits."""
    chart = charts.tokens(story(LONG))
    left_out = re.search(r"… stands for (\d+)", chart.to_dict()["title"]["subtitle"][1])[1]
    point, *others = layers(chart, "point")[0]["values"]

    assert {one["token"] for one in (point, *others)} == {*levels(chart)}
    assert [left_out + label.removeprefix("…") for label in levels(chart)] == [str(LONG + 1), str(LONG)]
    assert point["presented"] == str(LONG)


def test_long_tokens_without_a_common_beginning_are_written_in_full():
    """Where the leading digits differ, nothing is left out of a label."""
    rows = [row(1, "grant", "11111111111111111111"), row(2, "grant", "22222222222222222222")]

    assert levels(charts.tokens(rows)) == ["22222222222222222222", "11111111111111111111"]


def test_one_long_token_keeps_its_last_digits():
    """A single long token has a label too, which ends as the token ends."""
    [label] = levels(charts.tokens([row(1, "grant", str(LONG))]))

    assert len(label) < 10
    assert str(LONG).endswith(label.removeprefix("…"))


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        (story(), "41 was accepted while 42 was held: step 5, write by ann"),
        ([row(1, "grant", 2), row(2, "write", broken=True)], "A write without a known token was accepted while 2 was"),
        ([row(1, "finish", 2, broken=True)], "A rule was broken: step 1, finish by ann"),
        ([row(1, "grant", 2), row(2, "write", undecided=True)], "Not decided: 1 of 2 mutations"),
        ([row(1, "grant", 2), row(2, "write", 1, decision="rejected")], "No mutation broke a rule; 1 was refused"),
    ],
)
def test_title_states_the_finding(rows, finding):
    """Without a given title the chart says what its rows show, the first broken row first."""
    assert title(charts.tokens(rows)).startswith(finding)


def test_given_title_wins():
    """The sentence of the finding, where the report has one, is the title."""
    assert title(charts.tokens(story(), "ann wrote with 41")) == "ann wrote with 41"


def test_alt_text_tells_the_chart():
    """The description names the resource, the finding, the counts and the ringed steps."""
    told = charts.tokens(story()).to_dict()["description"]

    for part in ("report-7", "41 was accepted while 42 was held", "5 accepted", "1 finished", "Ringed: step 5"):
        assert part in told


def test_axes_have_titles():
    """Axis titles say what is counted; without an order the chart does not pretend to have one."""
    ordered, unordered = (charts.tokens([row(1, "grant", 1, order_key=key)]) for key in ("0", None))
    x, y = (layers(ordered, "point")[0]["encoding"][axis]["title"] for axis in "xy")

    assert (x, y) == ("step in the receiver's order", "fencing token")
    assert "not known" in layers(unordered, "point")[0]["encoding"]["x"]["title"]


@pytest.mark.parametrize("found", ["broken", "undecided"])
def test_long_histories_show_the_finding(found):
    """Of a long history a fixed number of steps is drawn, the broken one (else the first that is open) among them."""
    rows = [row(i, "write", 1) for i in range(1, 1001)]
    rows[800][found] = True
    chart = charts.tokens(rows)
    marks, rings = points(chart)

    assert len(marks) == charts.held.WINDOW
    assert 801 in marks and rings == [801] * (found == "broken")
    assert f"steps {min(marks)}–{max(marks)}" in chart.to_dict()["title"]["subtitle"][0]


def test_holders_are_named_at_their_grants():
    """Each accepted grant is labelled with its holder, as long as the labels have room."""
    few = layers(charts.tokens(story()), "text")
    many = charts.tokens([row(i, "grant", i) for i in range(1, charts.held.NAMED + 2)])

    assert [point["holder"] for point in few[-1]["values"]] == ["ann", "bob"]
    assert layers(many, "text") == []


def test_width_is_fixed():
    """Every chart has the same width in pixels: a container's width is blank in saved notebooks."""
    assert charts.tokens(story()).to_dict()["width"] == charts.style.WIDTH
    assert charts.rejections(refusals()).to_dict()["width"] == charts.style.WIDTH


# --------------------------------------------------------------------------- rejections


def refusals():
    """Two steps of report["rejections"]."""
    return [
        {"at": "2026-03-02T09:00:00Z", "stale": 2, "late": 1, "done": 0, "own": 0, "other": 0},
        {"at": "2026-03-02T09:59:00Z", "stale": 0, "late": 3, "done": 1, "own": 1, "other": 1},
    ]


def test_late_is_told_from_stale():
    """Each reason is a part of the bar with its count, and the parts of a bar stand on each other in a fixed order."""
    [bars] = layers(charts.rejections(refusals()), "rect")
    parts = [(bar["reason"].split(":")[0], bar["low"], bar["high"]) for bar in bars["values"]]

    assert parts[:2] == [("stale", 0, 2), ("late", 2, 3)]
    assert [low for _, low, _ in parts[2:]] == [0, 3, 4, 5]
    assert bars["encoding"]["color"]["scale"]["domain"] == [
        meaning for _, meaning, _ in charts.refused.REJECTIONS.values()
    ]


def test_reasons_differ_without_colour():
    """On a grey print, where bars have no shapes, no two reasons have nearly the same grey."""
    greys = sorted(
        sum(share * int(colour[place : place + 2], 16) for share, place in ((0.299, 1), (0.587, 3), (0.114, 5)))
        for _, _, colour in refused.REJECTIONS.values()
    )

    assert min(b - a for a, b in pairwise(greys)) > 25


def test_rejections_are_summed_up_in_the_title():
    """The title says how many were stale, how many late, and leaves out what did not occur."""
    assert title(charts.rejections(refusals()[:1])) == "Refused: 2 stale, 1 late"


def test_time_is_utc():
    """The times of the bars are drawn and labelled in UTC, wherever the reader sits."""
    [bars] = layers(charts.rejections(refusals()), "rect")

    assert bars["encoding"]["x"]["scale"]["type"] == "utc"
    assert bars["values"][0]["from"] == 1772442000000
    assert "UTC" in bars["encoding"]["x"]["title"]


def test_bars_do_not_overlap():
    """A bar ends before the next step of the report begins, and the axis holds all of them."""
    rows = [refusals()[0] | {"at": f"2026-03-02T09:{minute:02d}:00Z"} for minute in range(60)]
    [bars] = layers(charts.rejections(rows), "rect")
    spans = sorted({(bar["from"], bar["to"]) for bar in bars["values"]})
    first, last = bars["encoding"]["x"]["scale"]["domain"]

    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert first < spans[0][0] and spans[-1][1] < last


# --------------------------------------------------------------------------- nothing, and everything, to draw


def test_nothing_to_draw():
    """No rows, and no refusals in the rows, give None, for which the caller has a sentence."""
    none = dict.fromkeys(charts.refused.REJECTIONS, 0)

    assert charts.tokens([]) is None
    assert charts.lanes([]) is None
    assert charts.rejections([]) is None
    assert charts.rejections([{"at": "2026-03-02T09:00:00Z"} | none]) is None


def test_hostile_text_is_inert_in_svg():
    """Markup, control and direction characters and endless names from a log arrive as short text."""
    rows = [row(1, "grant", 1, resource=HOSTILE, writer=HOSTILE, after_holder=HOSTILE, at=HOSTILE)]
    for chart in (charts.tokens(rows, HOSTILE), charts.tokens([rows[0] | {"broken": True}])):
        drawn = charts.svg(chart)

        assert "<script" not in drawn and "</title" not in drawn
        assert "&lt;script" in drawn
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", drawn)
        assert "A" * 100 not in drawn and len(drawn) < 20_000


def test_svg_has_no_address():
    """A drawn chart names no address apart from the namespaces of XML, and no script."""
    drawn = charts.svg(charts.tokens(story()))

    assert addresses(drawn) == set()
    assert "<script" not in drawn


def test_pictures_are_the_same_every_time():
    """Drawing twice gives the same bytes, so that a second run gives the same report."""
    first, second = charts.tokens(story()), charts.tokens(story())

    assert charts.svg(first) == charts.svg(second)
    assert charts.png(first) == charts.png(second)
    assert charts.png(first).startswith(b"\x89PNG")


def test_renderer_gives_three_mimes():
    """A chart comes as Vega-Lite 5 for JupyterLab, as a picture and as text; importing alone changes no renderer."""
    assert altair.renderers.active == "default"
    with altair.renderers.enable("default"):  # and as it was, afterwards
        charts.enable()
        bundle, more = charts.tokens(story())._repr_mimebundle_()

    assert altair.renderers.active == "default"
    assert set(bundle) == {"application/vnd.vegalite.v5+json", "image/png", "text/plain"}
    assert bundle["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith("Fencing tokens of report-7")
    assert more["image/png"] == {"alt": bundle["text/plain"], "width": pytest.approx(charts.style.WIDTH + 75, abs=40)}


# --------------------------------------------------------------------------- fixes and invariants


def cells(*given):
    """Cells of a matrix: (fix, invariant, status, length)."""
    return [dict(zip(("fix", "invariant", "status", "length"), one, strict=True)) | {"states": 9} for one in given]


def test_the_matrix_marks_every_cell_that_was_asked():
    """A mark a cell by its status, the length of the shortest run beside a violation, and what holds in the title."""
    drawn = charts.matrix(
        cells(
            ("unfenced", "order", "violated", 9), ("unfenced", "late", "violated", 5), ("unfenced", "alert-once", "not_applicable", None),
            ("latest-id", "order", "holds", None), ("latest-id", "late", "violated", 5), ("latest-id", "alert-once", "not_applicable", None),
        ),
        "workers: 2",
    )  # fmt: skip
    spec = drawn.to_dict()
    [marks], [lengths] = ([one["values"] for one in layers(drawn, mark)] for mark in ("point", "text"))

    assert spec["encoding"]["x"]["scale"]["domain"] == ["order (unsafe)", "late (window)"]
    assert [(row["fix"], row["status"]) for row in marks] == [
        ("unfenced", "violated, in so many steps"), ("unfenced", "violated, in so many steps"),
        ("latest-id", "holds"), ("latest-id", "violated, in so many steps"),
    ]  # fmt: skip
    assert [row["length"] for row in lengths] == ["9", "5", "5"]
    assert spec["title"]["text"] == ["Nothing unsafe was found in any order of events: latest-id"]
    assert "unfenced: order (unsafe) 9, late (window) 5; latest-id: late (window) 5" in drawn.description


def test_the_matrix_of_nothing_is_nothing():
    """Without a cell that was asked there is no chart; where all are open it still says so."""
    assert charts.matrix(cells(("unfenced", "alert-once", "not_applicable", None)), "") is None
    drawn = charts.matrix(cells(("a", "order", "undecided", None), ("b", "order", "empty", None)), "")
    assert {row["status"] for row in layers(drawn, "point")[0]["values"]} == {"not decided", "not put to the test"}


# --------------------------------------------------------------------------- lease lengths


def points_of(fix, *given):
    """Points of a sweep: (lease in seconds, jobs that make the means, whether no other length beats it)."""
    found = {"value": 0.2, "low": 0.1, "high": 0.3, "jobs": 500}
    return [
        {"fix": fix, "lease": lease, "jobs": 500, "efficient": efficient}
        | {name: found | {"seen": seen} for name in ("duplicates", "dead", "wasted")}
        for lease, seen, efficient in given
    ]


def test_lease_lengths_have_bars_where_jobs_enough_make_them():
    """Each length is a point in three panels; a share has its interval, a mean that fewer than ten jobs make has none."""
    drawn = charts.tradeoff(points_of("fenced", (10, 40, False), (20, 9, True)))
    bars, marks = ([[r["lease"] for r in one["values"]] for one in layers(drawn, mark)] for mark in ("rule", "point"))

    assert marks == [[10, 20]] * 3
    assert bars == [[10, 20], [10], [10]]
    assert "500 jobs a point" in drawn.description


def test_lease_lengths_that_no_other_beats_are_named():
    """The title has the lengths that are filled, for each fix; where every one is beaten it says none."""
    drawn = charts.tradeoff(points_of("fenced", (10, 40, True), (20, 40, True)) + points_of("latest", (10, 40, False)))

    assert (
        " ".join(drawn.to_dict()["title"]["text"])
        == "Lease lengths that no other beats: fenced: 10, 20 s; latest: none"
    )
    assert [r["efficient"] for r in layers(drawn, "point")[0]["values"]] == ["yes", "yes", "no"]
    assert charts.tradeoff([]) is None
