"""Shares, means, their intervals, and the estimate of what hardly ever happens."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workloads import constant

from fencinglab.errors import UsageError
from fencinglab.model.fix import FIXES
from fencinglab.simulate import measure
from fencinglab.simulate.laws import Law, observed
from fencinglab.simulate.measure import enough, measured, wilson
from fencinglab.simulate.workload import DEFAULT, SECOND, Workload

PLAIN = replace(
    DEFAULT, lease=30 * SECOND, renewal=10 * SECOND, work=constant(0), message=constant(0), takeover=constant(2 * SECOND), gap=0,
    step=0, crash=0, repeat=0, workers=2, writes=1,
)  # fmt: skip


def pausing(mean: float) -> Workload:
    return replace(PLAIN, pause=Law("exponential", mean * SECOND))


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_holds_the_share(seen, more):
    """Wilson's interval lies between 0 and 1 around the share, begins at 0 for none and ends at 1 for all."""
    jobs = seen + more
    low, high = wilson(seen, jobs)

    assert 0 <= low <= seen / jobs <= high <= 1
    assert (low == 0) == (seen == 0)
    assert wilson(jobs, jobs)[1] == 1


def test_wilson_is_wilson():
    """The interval of 10 in 100 is the one of the textbook."""
    assert wilson(10, 100) == pytest.approx((0.05522914, 0.17436566), abs=1e-7)


def test_a_pause_that_outlasts_what_the_work_leaves_of_a_lease_counts():
    """Of a job that works for 10 s a pause of 22 s does the harm of one of 32 s: the share is that of its law."""
    [cost] = measured(replace(pausing(1.5), work=constant(10 * SECOND)), [FIXES["unfenced"]], 20_000, 7)
    found, expected = cost.rare["stale"], math.exp(-22 / 1.5)

    assert found.fits and found.low < expected < found.high < 1.2 * expected


def test_what_is_rare_is_found_by_long_pauses():
    """A share of three in a million is estimated from 60,000 jobs to a few percent, with the closed form inside."""
    [cost] = measured(pausing(2.5), [FIXES["unfenced"]], 60_000, 4)
    found, expected = cost.rare["stale"], math.exp(-32 / 2.5)

    assert cost.shares["stale"].seen < measure.RARE
    assert found.low < expected < found.high
    assert found.high - found.low < expected * 0.15
    assert found.fits
    assert found.effective > 1000


def test_both_ways_to_sample_agree():
    """Where plain sampling sees enough, long pauses drawn on purpose give the same share within both intervals."""
    workload, fix = pausing(12), FIXES["unfenced"]
    [plain] = measure._tallied(workload, [fix], 40_000, 9, (), lambda _: None)
    [tilted] = measure._tallied(workload, [fix], 40_000, 9, measure.tails_for(workload, [fix]), lambda _: None)
    share = measure.share(plain.counts["stale"], plain.jobs)
    rare = measure._rare(tilted, "stale", share)

    assert rare.fits
    assert rare.low < share.high
    assert share.low < rare.high
    assert rare.high - rare.low < share.high - share.low


def test_an_estimate_that_does_not_fit_is_said_not_to():
    """The check fails when the weights are not those of the law that was drawn from."""
    workload, fix = pausing(2.5), FIXES["unfenced"]
    [tilted] = measure._tallied(workload, [fix], 20_000, 9, measure.tails_for(workload, [fix]), lambda _: None)
    tilted.weights *= (1.5, 2.25, 1)

    assert measure._rare(tilted, "stale", measure.share(0, 20_000)).fits is False


def test_an_estimate_is_believed_only_with_enough_jobs_and_beside_plain_sampling():
    """Seen in fewer than ten jobs it is not said to fit, and far from what plain sampling saw it is said not to."""
    [tilted] = measure._tallied(pausing(2.5), [FIXES["unfenced"]], 20_000, 9, [0.001], lambda _: None)
    apart = measure._rare(tilted, "stale", measure.share(5_000, 20_000))
    tilted.counts["stale"] = measure.RARE - 1
    few = measure._rare(tilted, "stale", measure.share(0, 20_000))

    assert (apart.fits, few.fits) == (False, None)


def test_an_estimate_is_kept_where_it_says_more():
    """An estimate whose interval is no narrower than that of plain sampling, or begins at none, is not kept."""
    plain = measure.share(1, 1000)
    kept = {"narrow": (0.0009, 0.0011), "wide": (0.0009, 0.5), "from none": (0.0, 0.0001)}
    found = {name: measure.Rare(0.001, *ends, 1000, 20, 20.0, 1.0, True) for name, ends in kept.items()}

    assert [name for name, rare in found.items() if measure._better(rare, plain)] == ["narrow"]


def test_long_pauses_are_drawn_beyond_what_every_fix_waits():
    """A pause counts from the length of the lease, with the delay of a grant and without what a clock runs ahead."""
    made = replace(pausing(12), skew=3 * SECOND)
    tails = measure.tails_for(made, [FIXES["grant-delay"]])
    whole = made.lease + FIXES["grant-delay"].delay * SECOND

    assert {made.pause.survival(whole), made.pause.survival(whole - 3 * SECOND)} <= {*tails}
    assert min(tails) == made.pause.survival(whole)


def test_times_until_jobs_are_done():
    """Half of the jobs are done by the usual time, 95 % by that of the slow ones; where fewer ever are, it is none."""
    made = replace(PLAIN, lease=500 * SECOND, work=observed([SECOND] * 14 + [100 * SECOND]), pause=constant(0))
    [all_done], [some] = (
        measured(one, [FIXES["unfenced"]], 2000, 1) for one in (made, replace(made, crash=0.1, attempts=1))
    )

    assert (all_done.median, all_done.slow) == (pytest.approx(1, rel=0.02), pytest.approx(100, rel=0.02))
    assert (some.median, some.slow) == (pytest.approx(1, rel=0.02), None)


def test_differences_are_of_the_same_jobs():
    """A difference between two fixes is known far better than either mean, because both meet the same chance."""
    cost = {c.fix.name: c for c in measured(DEFAULT, [FIXES["fenced"], FIXES["latest"]], 20_000, 1)}
    mean, apart = cost["latest"].means["wasted"], cost["latest"].against["wasted"]

    assert apart.value == pytest.approx(mean.value - cost["fenced"].means["wasted"].value)
    assert apart.high - apart.low < (mean.high - mean.low) * 0.7
    assert all(difference.value == difference.low == 0 for difference in cost["fenced"].against.values())


def test_a_mean_says_how_many_jobs_make_it():
    """Of a mean the jobs are counted in which it is not 0, of a difference those that differ; a mean is never below 0."""
    one = replace(DEFAULT, pause=constant(0), work=constant(SECOND), crash=0.02)
    fenced, latest = measured(one, [FIXES["fenced"], FIXES["latest"]], 150, 1)
    dead = fenced.means["dead"]

    assert 0 < dead.seen == fenced.shares["reassigned"].seen < measure.RARE
    assert dead.low >= 0 < dead.value
    assert latest.against["dead"].seen == 0


def test_blocks_change_nothing(monkeypatch):
    """The same jobs in small blocks give the same result."""
    whole = measured(DEFAULT, [FIXES["fenced"]], 3000, 1)
    monkeypatch.setattr(measure, "BLOCK", 700)
    [parts], [one] = measured(DEFAULT, [FIXES["fenced"]], 3000, 1), whole

    assert parts.shares == one.shares
    assert parts.means["dead"].value == pytest.approx(one.means["dead"].value)
    assert (parts.median, parts.slow) == (one.median, one.slow)


WRONG = {
    "no jobs": ((0, None), "--jobs 0: must be 1 to 1,000,000,000"),
    "too few": ((1000, 1e-6), "--jobs 1000: too few for --precision 1e-06: none seen in 1,000 still allows a share of 0.0038; it takes 3,841,455"),
    "no share": ((1000, 2.0), "--precision 2: is a share, above 0 and below 1"),
}  # fmt: skip


@pytest.mark.parametrize(("given_", "message"), WRONG.values(), ids=WRONG)
def test_too_few_jobs_are_refused(given_, message):
    """A number of jobs that cannot give the precision is refused with the number that can."""
    with pytest.raises(UsageError) as error:
        enough(*given_)

    assert str(error.value) == message


def test_enough_jobs_are_enough():
    """With the number that the refusal names, none seen excludes the precision."""
    assert wilson(0, enough(3_841_455, 1e-6))[1] <= 1e-6
