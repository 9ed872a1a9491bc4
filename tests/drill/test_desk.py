"""How far apart workers are that begin together."""

from fencinglab.drill import desk
from fencinglab.drill.desk import Desk, Notes
from fencinglab.dynamodb import shelf

STATUS = shelf.find("request-status")


def pauses(monkeypatch, seed, scenario):
    """By how much each of three workers is set apart, in twenty rounds."""
    slept = []
    with monkeypatch.context() as patched:
        patched.setattr(desk.time, "sleep", slept.append)
        at = Desk(scenario, lambda: None, STATUS, Notes(1, 1.0), lease=2, workers=3, rounds=1, run="r", seed=seed)
        assert [at.at_once(*(lambda n=n: n for n in range(3))) for _ in range(20)] == [[0, 1, 2]] * 20
    return sorted(slept)


def test_a_seed_sets_workers_apart_again(monkeypatch):
    """One seed sets the workers of a scenario apart by the same pauses, some of none; another seed or scenario by others."""
    first = pauses(monkeypatch, 1, "replay")

    assert first == pauses(monkeypatch, 1, "replay")
    assert first not in (pauses(monkeypatch, 2, "replay"), pauses(monkeypatch, 1, "double-enqueue"))
    assert first[0] == 0.0 < first[-1] <= max(desk.APART)


def test_nobody_is_no_race():
    """Where nobody acquired, nobody writes at once."""
    at = Desk("replay", lambda: None, STATUS, Notes(1, 1.0), lease=2, workers=3, rounds=1, run="r", seed=1)

    assert at.at_once() == []
