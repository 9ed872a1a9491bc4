"""The pure model and DynamoDB agree, step by step, on random schedules over every request file with a twin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from receivers import dynalite, ministack
from twins import JUMPS, TWINS, Move, run, schedules

from fencinglab.dynamodb import shelf
from fencinglab.dynamodb.mock import Mock, client
from fencinglab.dynamodb.sending import tables

SCRIPT = Path(__file__).parent / "bench" / "agree_with_model.py"
MOVE = st.builds(
    Move, st.integers(0, 2), st.just(0) | st.integers(0, 9), st.integers(0, len(JUMPS) - 1), st.just(0) | st.integers(0, 8)
)  # fmt: skip


def test_every_file_but_one_has_a_twin():
    """Only tokens that are compared as texts have no counterpart: the model's tokens are numbers."""
    assert {*shelf.names()} - {*TWINS} == {"broken-token-as-text"}


@pytest.mark.parametrize("name", TWINS)
def test_they_agree_on_the_mock(name):
    """Whatever is sent, sent again or comes late: same decision, same reason, same item as in the model."""
    file, number = shelf.find(name), iter(range(10**6))
    with Mock() as mock:
        receiver = mock.client()
        with tables(receiver, file):

            @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(MOVE, min_size=3, max_size=10))
            def agrees(schedule):
                run(receiver, file, schedule, f"r-{next(number)}")

            agrees()


def test_a_receiver_that_is_wrong_is_found():
    """The comparison can fail: with another file's conditions behind the twin's back it does, within 40 schedules."""
    right, wrong = shelf.find("request-status"), shelf.find("broken-finish-twice")
    operations = right.operations | {"acquire": wrong.operations["acquire"]}
    with Mock() as mock:
        receiver = mock.client()
        with tables(receiver, right), pytest.raises(AssertionError, match="model: terminal"):
            for number, schedule in enumerate(schedules(3, 40)):
                run(receiver, right._replace(operations=operations), schedule, f"r-{number}")


def test_they_agree_on_ministack():
    """An implementation that shares no code with the mock agrees with the model too, on every file with a twin."""
    with ministack() as url:
        for name in TWINS:
            file, receiver = shelf.find(name), client(url)
            with tables(receiver, file):
                compared = sum(run(receiver, file, s, f"r-{n}") for n, s in enumerate(schedules(5, 2)))
            assert compared > 10


def test_they_agree_on_dynalite(request):
    """So does dynalite, which has neither transactions nor the stored item of a refusal."""
    with dynalite(Path(request.config.cache.mkdir("dynalite"))) as url:
        for name in TWINS:
            file, receiver = shelf.find(name), client(url)
            if not any(one.action == "transact-write-items" for one in file.operations.values()):
                with tables(receiver, file):
                    for number, schedule in enumerate(schedules(6, 2)):
                        run(receiver, file, schedule, f"r-{number}")


def test_the_script_compares_thousands():
    """The script runs as many schedules as it is told on every file and says how many messages agreed."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--schedules", "2", "--only", "request-status"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("request-status: agree on 2 schedules, ")
