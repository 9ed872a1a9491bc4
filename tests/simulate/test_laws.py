"""Laws of chance: their numbers, their words, and what cannot be one."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from workloads import constant

from fencinglab.errors import UsageError
from fencinglab.simulate import laws
from fencinglab.simulate.chance import uniform
from fencinglab.simulate.laws import Law, beyond, parse

LAWS = {
    "constant": constant(3_000_000),
    "exponential": Law("exponential", 2e6),
    "lognormal": Law("lognormal", 2e5, 1.2),
    "pareto": Law("pareto", 1e6, 2.5),
    "observed": laws.observed([5, 1, 1_000_000, 40, 40]),
}


MEANS = {
    "constant": 3e6,
    "exponential": 2e6,
    "lognormal": 2e5 * math.exp(1.2**2 / 2),
    "pareto": 1e6 * 2.5 / 1.5,
    "observed": (5 + 1 + 1_000_000 + 40 + 40) / 5,
}


@pytest.mark.parametrize("name", LAWS)
def test_a_time_is_exceeded_as_often_as_it_says(name):
    """Of many times as many lie beyond a time as the law's survival says, and their mean is the law's mean."""
    law = LAWS[name]
    v = uniform(1, np.arange(200_000, dtype=np.uint64), 1, 0)
    times = beyond(law, v)

    for level in (0.9, 0.5, 0.1, 0.01):
        time = float(np.quantile(times, 1 - level))
        assert abs(np.mean(times > time) - law.survival(time)) < 0.005
    assert np.mean(times) == pytest.approx(MEANS[name], rel=0.03)


@given(st.floats(1e-300, 1 - 1e-16))
def test_the_normal_quantile_is_that_of_the_standard_library(v):
    """The normal value exceeded with probability v is the one that Python's statistics gives."""
    expected = -statistics.NormalDist().inv_cdf(v)

    assert laws.upper_normal(np.array([v]))[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.sampled_from(sorted(LAWS)), st.lists(st.floats(1e-300, 1.0), min_size=2, max_size=20))
def test_rarer_is_longer(name, chances):
    """What is exceeded less often is no shorter, so a long pause can be drawn on purpose."""
    times = beyond(LAWS[name], np.array(sorted(chances)))

    assert list(times) == sorted(times, reverse=True)


@pytest.mark.parametrize("text", ["3s", "exponential:2s", "lognormal:200ms,1.2", "pareto:1s,2.5"])
def test_a_law_reads_what_it_prints(text):
    """A law as text is read back the same."""
    assert str(parse(text, "--pause")) == text


WRONG = {
    "weibull:3s": "--pause weibull:3s: `weibull` is no law of chance (there are constant:TIME, exponential:MEAN, lognormal:MEDIAN,SIGMA, pareto:LEAST,SHAPE)",
    "pareto:1s,0.9": "--pause pareto:1s,0.9: a Pareto law of shape 0.9 has no mean, so no average of it says anything; take a shape above 1",
    "exponential:-3s": "--pause exponential:-3s: -3s is below zero, and a time is not",
    "exponential:0s": "--pause exponential:0s: 0s must be above zero; for no time at all write constant:0s",
    "lognormal:3s": "--pause lognormal:3s: write lognormal:MEDIAN,SIGMA, such as lognormal:200ms,1.5",
    "lognormal:3s,-1": "--pause lognormal:3s,-1: `-1` is no number above 0 and up to 20",
    "exponential:3": "--pause exponential: 3: write a time such as 500ms, 30s, 5m, 12h or 7d",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=WRONG)
def test_what_is_no_law_is_one_sentence(text, message):
    """A law that cannot be is refused in one sentence with the option, its value and what is allowed."""
    with pytest.raises(UsageError) as error:
        parse(text, "--pause")

    assert str(error.value) == message


def test_uniform_numbers_are_uniform_and_of_their_own():
    """The numbers of neighbouring jobs, attempts, places and seeds are uniform and have nothing to do with each other."""
    jobs = np.arange(100_000, dtype=np.uint64)
    columns = [uniform(1, jobs, 1, 0), uniform(1, jobs, 1, 1), uniform(1, jobs, 2, 0), uniform(2, jobs, 1, 0)]

    for column in columns:
        assert np.bincount((column * 10).astype(int).clip(0, 9)) == pytest.approx(np.full(10, 10_000), rel=0.05)
    assert np.abs(np.corrcoef(columns) - np.eye(4)).max() < 0.02
    assert np.corrcoef(columns[0][1:], columns[0][:-1])[0, 1] == pytest.approx(0, abs=0.02)
