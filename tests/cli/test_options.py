"""An option that does not apply to what was asked is refused, never passed over."""

from __future__ import annotations

import inspect
import re

import pytest

from fencinglab import cli
from fencinglab.drill.run import Plan
from fencinglab.drill.scenarios import SCENARIOS

WORKLOAD = (
    "--lease --renewal --pause --work --message --takeover --gap --step --skew --crash --restart --repeat --attempts"
)
# What is asked -> the options of its verb that do not apply to it.
FORMS = {
    "compare --matrix": f"--log --map --order --terminal --requests --jobs --seed --precision {WORKLOAD}",
    "compare": "--hazard --alert --map --order --terminal",
    "compare --log missing.jsonl": "--hazard --alert",
    "check --example": "--rest --fix --conditions --optional --endpoint-url --workers --writes --hazard --alert "
    "--symmetry --max-states --fail-on --show",
    "check --fix fenced": "--rest --conditions --optional --endpoint-url",
    "check request-status": "--writes --alert --symmetry",
    "check request-status request-status": "--writes --alert --symmetry --conditions --show",
    "replay": "--fix --out",
    "drill --scenario list": "--requests --mock --unlocked-mock --endpoint-url --aws --workers --rounds --seed --lease "
    "--seconds --max-requests --table --fail-on --out",
    "drill --scenario replay": "--workers --rounds --seed",
    "drill --scenario replay --scenario double-enqueue": "--workers --rounds",
}
VALUES = dict.fromkeys(("--conditions", "--optional", "--symmetry", "--mock", "--unlocked-mock", "--aws"), "")
VALUES |= {"--precision": " 0.5", "--workers": " 1", "--rounds": " 1"}  # of the others 0, which is a value too
CASES = [(asked, option) for asked, options in FORMS.items() for option in options.split()]


@pytest.mark.parametrize(("asked", "option"), CASES, ids=[" ".join(case) for case in CASES])
def test_what_does_not_apply_is_refused(asked, option, capsys):
    """One sentence, exit code 2: the option, its value, what it belongs to, and what to do."""
    typed = option + VALUES.get(option, " 0")

    assert cli.main([*asked.split(), *typed.split()]) == 2
    said = capsys.readouterr()
    sentence = rf"fencinglab: {typed} belongs to .+ (leave|name) .+\n"
    assert re.fullmatch(sentence, said.err), said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("compare --matrix", {"--fix", "--out", "--quiet", "--workers", "--writes", "--hazard", "--alert"}),
        ("check --example", {"--out", "--quiet"}),
        ("drill --scenario list", {"--quiet"}),
    ],
)
def test_every_other_option_is_refused(asked, kept, capsys):
    """What little each of these takes is known; an option that the verb learns is refused until it is taken too."""
    verb, option, *_ = asked.split()
    with pytest.raises(SystemExit):
        cli.main([verb, "--help"])
    every = {*re.findall(r"^ +(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)} - {option}

    assert every == kept | {*FORMS[asked].split()}


def test_a_request_file_is_no_example(capsys):
    """`--example` reads no request file, and says so with the name of the one that was given."""
    assert cli.main(["check", "mine.json", "--example"]) == 2
    assert capsys.readouterr().err == (
        "fencinglab: mine.json: --example checks no request file; leave out one of the two\n"
    )


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_says_what_it_takes(scenario):
    """A scenario takes exactly what its code looks at: how many workers, rounds, and how far apart they are."""
    signs = {"workers": "desk.workers", "rounds": "desk.rounds", "seed": "at_once"}
    source = inspect.getsource(scenario.play)

    assert {*scenario.takes} == {name for name, sign in signs.items() if sign in source}


def test_the_help_of_a_drill_names_its_defaults(capsys):
    """The default that the help names is the default."""
    with pytest.raises(SystemExit):
        cli.main(["drill", "--help"])
    text = " ".join(capsys.readouterr().out.split("options:")[1].split())
    told = dict(re.findall(r"--([\w-]+) [NS]\w* (?:(?!--).)*?\(default ([\d,]+)\)", text))

    numbers = {
        name.replace("_", "-"): f"{value:,}" for name, value in Plan()._asdict().items() if isinstance(value, int)
    }
    assert told == numbers
