"""Workloads: parameters as the command line gives them, and those that cannot be."""

import pytest

from fencinglab.errors import UsageError
from fencinglab.simulate.workload import DEFAULT, SECOND, workload


def test_what_is_said_is_taken_and_the_rest_is_default():
    """A parameter is as said, every other as the default has it; a lease is renewed three times unless it is said."""
    made = workload({"lease": "60s", "pause": "exponential:2s", "workers": "5", "crash": "0.5"})

    assert (made.lease, made.renewal, made.workers, made.crash) == (60 * SECOND, 20 * SECOND, 5, 0.5)
    assert made.work == DEFAULT.work


def test_a_workload_reads_what_it_describes():
    """What a workload says of itself makes the same workload again."""
    made = workload({"lease": "45s", "pause": "pareto:10ms,1.7", "skew": "500ms", "writes": "3"})

    assert workload(made.described()) == made


WRONG = {
    "no time": ({"lease": "0s"}, "--lease 0s: must be above zero"),
    "a negative time": ({"lease": "-5s"}, "--lease -5s: is below zero, and a time is not; write a time such as 30s"),
    "a renewal too late": ({"renewal": "40s"}, "--renewal 40s: must be shorter than the lease (30s), or it has run out before it is renewed; a third of it is usual"),
    "a skew too wide": ({"skew": "25s"}, "--skew 25s: must not exceed what a renewal leaves of the lease (20s), or running workers lose it in spite of renewals"),
    "a share above 1": ({"crash": "1.5"}, "--crash 1.5: is a share, from 0 to 1"),
    "no number": ({"repeat": "often"}, "--repeat often: write a share such as 0.01"),
    "one worker": ({"workers": "1"}, "--workers 1: must be 2 to 16"),
    "half a worker": ({"workers": "2.5"}, "--workers 2.5: write a whole number"),
    "a lease of ages": ({"lease": "100000d"}, "--lease 100000d: is longer than "),
}  # fmt: skip


@pytest.mark.parametrize(("said", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_one_sentence(said, message):
    """A parameter that cannot be is refused in one sentence with its name, its value and what is allowed."""
    with pytest.raises(UsageError) as error:
        workload(said)

    assert str(error.value).startswith(message)
