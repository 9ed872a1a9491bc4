"""The facts of a comparison are lines that the runs themselves give."""

from __future__ import annotations

import pytest
from timelines import replayed

from fencinglab.model import shelf
from fencinglab.model.facts import facts, old_token_first, repetition
from fencinglab.model.fix import FIXES
from fencinglab.model.replay import replay
from fencinglab.model.timeline import parse

ARTICLE = shelf.find("report-generation")


def lines(name: str, *fixes: str) -> tuple[str, ...]:
    """The facts of a timeline and its companions under these fixes."""
    timeline = shelf.find(name)
    of = [[replay(t, FIXES[fix]) for t in (timeline, *shelf.companions(timeline, name))] for fix in fixes]
    return facts([runs[0] for runs in of], [run for runs in of for run in runs[1:]])


def test_the_four_lines_of_the_article():
    """The article's timeline gives its four facts, word for word."""
    assert lines("report-generation", "unfenced", "fenced") == (
        "unfenced final value: old-result",
        "fenced final value: new-result",
        "repeated current token: accepted",
        "old token before newer token reaches resource: accepted",
    )


def test_the_lines_are_computed():
    """Under other fixes the same events give other facts, and each says whose it is."""
    assert lines("report-generation", "fenced-above", "latest") == (
        "fenced-above final value: new-result",
        "latest final value: new-result",
        "fenced-above repeated current token: rejected",
        "fenced-above old token before newer token reaches resource: accepted",
        "latest repeated current token: accepted",
        "latest old token before newer token reaches resource: rejected",
    )


def test_what_is_not_asked_has_no_line():
    """Without a repetition, an early old token, or a guard that compares tokens, their lines are missing."""
    assert lines("long-work", "unfenced", "fenced") == (
        "unfenced final value: result-of-A", "fenced final value: result-of-B"
    )  # fmt: skip
    assert lines("report-generation", "unfenced") == ("unfenced final value: old-result",)


def test_every_field_that_ends_otherwise_is_told():
    """Status, next poll, alerts and effects outside are told where any run has them, also where one has none."""
    assert lines("stale-terminal", "unfenced", "fenced")[:2] == (
        "unfenced final status: FAILED",
        "fenced final status: SUCCEEDED",
    )
    assert lines("stale-alert", "unfenced", "fenced")[2:] == (
        "unfenced final alerts: request-is-stuck",
        "fenced final alerts: none",
    )
    assert "unfenced final next poll: poll-in-900-s" in lines("stale-backoff", "unfenced")
    assert "fenced effects outside: receipt-mail, receipt-mail" in lines("external-e-mail", "fenced")


def test_what_is_stored_is_told_beside_the_pointer():
    """A pointer that stays tells nothing of the bytes behind it, so they are told too, and what nothing points to."""
    assert lines("late-render-shared-key", "current-lease") == (
        "current-lease final value: preview/image",
        "current-lease final content: pixels-of-A",
        "current-lease final status: COMPLETED",
        "current-lease orphan artifacts: none",
    )
    told = lines("late-render-three-workers", "unfenced", "current-lease")
    assert "unfenced final reason: unsupported-format" in told
    assert "current-lease final reason: none" in told
    assert "current-lease orphan artifacts: preview/42" in told


def test_two_resources_are_told_apart():
    """Where there are two resources, a line says of which it is."""
    text = "title: t\nworkers: A\nresources: one, two\nfirst token: 1\nlease length: 60 s\n\nA acquires one\nA writes x to one\n"

    assert facts([replay(parse(text), FIXES["fenced"])]) == ("fenced final value of one: x",)


def test_each_limit_by_itself():
    """A repetition counts under the newest grant only; an old token is early only before the newer one was accepted."""
    fenced, early = (replay(t, FIXES["fenced"]) for t in (ARTICLE, shelf.find("old-token-first")))

    assert (repetition(fenced), old_token_first(fenced)) == ("accepted", "")
    assert (repetition(early), old_token_first(early)) == ("", "accepted")
    assert repetition(replayed("A acquires; A writes x; lease expires; B acquires; A writes x", "fenced")) == ""


@pytest.mark.parametrize(("name", "why"), [("C15", "the tokens are equal"), ("C22", "none is presented")])
def test_no_older_token_is_none_that_came_early(name, why):
    """A stale write that presents the newest token, or none, is no old token."""
    assert old_token_first(replay(shelf.find(name), FIXES["fenced"])) == "", why
