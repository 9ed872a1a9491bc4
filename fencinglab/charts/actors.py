"""Lanes: who held which lease when, what each worker sent, and what was decided; under one fix or under several.

Time runs from left to right in the order of events, which stand at equal distances: an hour of waiting takes no more
room than a second. Leases and messages begin and end at their times between the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from fencinglab.charts.held import window
from fencinglab.charts.library import altair
from fencinglab.charts.scene import AUTHORITY, OUTSIDE, Scene, completed, edges, scene_of
from fencinglab.charts.style import (
    GREY,
    INK,
    MUTED,
    NONE_SEEN,
    RULE,
    SKY,
    WIDTH,
    Chart,
    Row,
    decided,
    framed,
    heading,
    labels,
    layer,
    levels,
    ringed,
    text,
    tips,
    whole,
)  # fmt: skip
from fencinglab.inert import inert
from fencinglab.model.harm import unsafe
from fencinglab.model.judged import judged
from fencinglab.model.replay import Run, Step

LANE, LOW = 44, 34  # pixels a lane, alone and in multiples
TOLD = 12  # decisions that the alt text tells one by one
_KEY = "bar: a lease · shaded: out of action · line: a message · mark: a decision, with the token presented"
_WORDS = {"renew": "", "release": "released", "ttl_delete": "deleted", "delete": "deleted"}  # beside a mark
_EVENT = {"event": "event", "says": "what came of it"}
_ROW = {
    "at": "receiver's time", "sent": "sender's time", "kind": "kind", "writer": "writer",
    "presented": "token presented", "before": "token held before", "decision": "decision", "reason": "reason",
    "outcome": "what the sender learned", "source": "source",
}  # fmt: skip
_STATE = {"state": "state", "from": "from", "to": "to"}
_LEASE = {"lease": "lease", "holder": "holder", "token": "token", "from": "from", "until": "until"}


def lanes(rows: Sequence[Row], steps: Sequence[Step] = ()) -> Chart | None:
    """A lane for the authority, each worker and each resource at the receiver, in this order; None without rows.

    Rows of a history in order; or those of a run, judged, with all its steps, which add pauses and the events that
    decided nothing. A bar is a lease from its grant to its end, a line a message, a mark a decision with its token.
    """
    if not rows:
        return None
    every = [completed(row, number) for number, row in enumerate(rows, 1)]
    scene = scene_of(every if steps else window(every), steps)
    names = _names([scene])
    part = "" if len(scene.times) >= len(rows) or steps else f", {len(scene.times)} of them shown"
    counted = f"{', '.join(scene.resources)[:80]} · {len(rows):,} mutation{'s' if len(rows) > 1 else ''}{part}"
    layers, place = _layers(scene, names, _drawn([scene])), _place(scene, names)
    return framed(layers, scene.finding, [counted, _KEY], _told(scene, names), LANE * len(names), **place)


def multiples(runs: Sequence[Run]) -> altair.VConcatChart:
    """The lanes of one timeline under each fix, below each other on one scale, in the order given."""
    scenes = {run.fix.name: _scene(run) for run in runs}
    names, drawn = _names(scenes.values()), _drawn(scenes.values())
    panels, told = [], []
    last, clocks = [*scenes.values()][-1], {tuple(scene.times) for scene in scenes.values()}
    for fix, scene in scenes.items():
        says = heading(f"{fix}: {scene.finding[0].lower()}{scene.finding[1:]}")
        says.fontSize, says.offset = 12, 4
        layers, place = _layers(scene, names, drawn), _place(scene, names, scene is last or len(clocks) > 1)
        panels.append(Chart(layer=layers, width=WIDTH, height=LOW * len(names), title=says).encode(**place))
        told.append(f"Under {fix}: {_told(scene, names)}")
    harmed = [run.fix.name for run in runs if unsafe(run)]
    unharmed = [fix for fix in scenes if fix not in harmed]
    parts = [f"{word} under {', '.join(fixes)}" for word, fixes in (("harm", harmed), ("none", unharmed)) if fixes]
    title = f"{runs[0].timeline.name}: {'; '.join(parts) if harmed else 'no harm under any of these fixes'}"
    return altair.VConcatChart(
        vconcat=panels, title=heading(title, [_KEY]), spacing=16, **whole(" ".join([inert(title, 170) + ".", *told]))
    )


def _scene(run: Run) -> Scene:
    """The scene of a run; harm that no single mark did, such as a result thrown away, is its finding."""
    scene, harm = scene_of(judged(run), run.told), unsafe(run)
    if not harm or ringed(scene.points):
        return scene
    return scene._replace(finding=harm[0].says.capitalize())


def _names(scenes: Iterable[Scene]) -> list[str]:
    """The lanes from top to bottom, the same for all scenes."""
    drawn = [*scenes]
    workers = dict.fromkeys(worker for scene in drawn for worker in scene.workers)
    receivers = dict.fromkeys(receiver for scene in drawn for receiver in scene.receivers)
    return [AUTHORITY, *workers, *receivers, *([OUTSIDE] if any(scene.outside for scene in drawn) else [])]


def _drawn(scenes: Iterable[Scene]) -> set[str]:
    """The words of the marks that are drawn."""
    return {point["mark"] for scene in scenes for point in (*scene.points, *ringed(scene.points))}


def _layers(scene: Scene, names: Sequence[str], drawn: Set[str]) -> list[altair.Chart]:
    begin, end = edges(len(scene.times))
    wide = WIDTH / (end - begin)  # pixels from one place to the next
    written, _ = labels(levels(point["token"] for point in (*scene.points, *scene.bars)))
    several = len({bar["lease"] for bar in scene.bars}) > 1
    bars, states = [], []
    for bar in scene.bars:
        token, room = written[bar["token"]], (bar["x2"] - bar["x"]) * wide
        bars.append(bar | {"label": _fitting(room, f"{bar['lease'] if several else 'lease'} {token}", token)})
    for state in scene.states:
        states.append(state | {"label": _fitting((state["x2"] - state["x"]) * wide, state["state"])})
    across = [{"lane": name, "x": begin, "x2": end} for name in names]
    found = [
        layer(across).mark_rule(color=RULE, aria=False).encode(x2="x2:Q"),
        layer(states).mark_rect(color=GREY, opacity=0.2, aria=False).encode(x2="x2:Q", tooltip=tips(_STATE)),
        layer(bars)
        .mark_bar(color=SKY, opacity=0.7, height=12, yOffset=-9, cornerRadius=2, aria=False)
        .encode(x2="x2:Q", tooltip=tips(_LEASE)),
        layer(scene.lines).mark_rule(color=MUTED, strokeWidth=1.1, aria=False).encode(x2="x2:Q", y2="lane2:N"),
        layer(scene.events).mark_tick(color=INK, size=8, thickness=1.5, aria=False).encode(tooltip=tips(_EVENT)),
        *text(bars, "label", INK, 4, -9),
        *text(states, "label", MUTED, 4, 11),
    ]
    size = 34.0 if len(scene.times) > 40 else 64.0
    found += decided(scene.points, drawn, size, tooltip=tips(_EVENT | _ROW if scene.told else _ROW))
    for broken, dx in ((False, 7), (True, 12)):
        points = [p | {"label": _label(p, written, wide)} for p in scene.points if p["broken"] == broken]
        found += text(points, "label", INK, dx, -8, halo=True)
    return found


def _place(scene: Scene, names: Sequence[str], axis: bool = True) -> dict[str, Any]:
    """Both axes, for all layers; without `axis` the horizontal one has ticks only."""
    places = range(1, len(scene.times) + 1)
    times = "[" + ",".join(f"'{time}'" for time in scene.times) + "]"  # digits and colons, so safe inside an expression
    what = "time of each event (minutes:seconds)" if scene.told else "receiver's time of each mutation (UTC)"
    if scene.clocked and not scene.told:
        what = "step of each mutation (a second a step)"
    return {
        "x": altair.X(
            "x:Q",
            title=f"{what}, evenly spaced" if axis else None,
            scale=altair.Scale(domain=edges(len(places)), nice=False),
            axis=altair.Axis(
                values=[*places], labels=axis, labelExpr=f"{times}[datum.value - 1]", grid=False, labelOverlap=True,
                labelSeparation=6,
            ),
        ),
        "y": altair.Y(
            "lane:N",
            title=None,
            scale=altair.Scale(domain=[*names], paddingInner=0.1, paddingOuter=0.05),
            axis=altair.Axis(labelColor=INK, ticks=False, domain=False, labelLimit=150, labelPadding=8),
        ),
    }  # fmt: skip


def _label(point: Mapping[str, Any], written: Mapping[str, str], wide: float) -> str:
    """What stands beside a mark: the token that was presented or granted, or what became of a lease or a resource."""
    if point["kind"] in _WORDS:
        return _fitting(wide, _WORDS[point["kind"]])
    return "" if point["token"] == NONE_SEEN else written[point["token"]]


def _fitting(pixels: float, *texts: str) -> str:
    """The first of the texts for which there is room, or none."""
    return next((text for text in texts if 6 * len(text) < pixels), "")


def _told(scene: Scene, names: Sequence[str]) -> str:
    """The chart in words, for those who do not see it."""
    decided = [p for p in scene.points if p["kind"] not in ("renew", "release")]
    listed = [
        f"{p['at']} {p['kind']} by {p['writer']}, token {p['presented']}: {p['decision']}"
        + ", broke a rule" * p["broken"]
        for p in decided[:TOLD]
    ]
    more = f"; and {len(decided) - TOLD} more" if len(decided) > TOLD else ""
    return f"Lanes of {', '.join(names)}. {inert(scene.finding, 200)}. Decisions: {'; '.join(listed)}{more}."
