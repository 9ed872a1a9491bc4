"""What papermill hands to a notebook is checked before it is used."""

import pytest

from fencinglab.errors import UsageError
from fencinglab.parameters import check_parameters

DECLARED = 'log: str = ""  # a log\ntop: int = 3  # how many\nredact: bool = False  # hide\n'
VALUES = {"log": "", "top": 3, "redact": False}


def check(injected="", **values):
    """Check the parameters of a notebook that has run an import, its parameters cell and papermill's cell."""
    cells = ["", "import re\n%matplotlib inline", DECLARED, *(["# Parameters\n" + injected] if injected else [])]
    check_parameters(cells, VALUES | values)


def test_declared_parameters_pass():
    """Parameters of their declared types pass, with and without a cell from papermill."""
    check()
    check('log = "a.jsonl"\ntop = 5\n', log="a.jsonl", top=5)


def test_unknown_parameter_is_refused():
    """A name that the notebook does not have is refused with the nearest and with all names."""
    with pytest.raises(
        UsageError, match=r"no parameter `lgo` \(nearest: `log`\); it has log \(str\), top \(int\), redact"
    ):
        check('lgo = "a.jsonl"\n')


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"top": "five"}, r"`top` is 'five' \(str\), it takes int"),
        ({"top": True}, r"`top` is True \(bool\), it takes int"),
        ({"redact": 1}, r"`redact` is 1 \(int\), it takes bool"),
        ({"log": 12}, r"`log` is 12 \(int\), it takes str; as text it is -r log 12"),
        ({"log": None}, r"`log` is None"),
    ],
)
def test_mistyped_parameter_is_refused(values, words):
    """A value of another type is refused with its type, the right one, and all names."""
    with pytest.raises(UsageError, match=words + r".*log \(str\), top \(int\), redact \(bool\)"):
        check(**values)


def test_a_text_that_is_not_there_is_refused():
    """A text may be empty only where it is so by default."""
    cells = ["", 'fixes: str = "fenced"  # the fixes\nlog: str = ""  # a log\n']

    check_parameters(cells, {"fixes": "fenced", "log": ""})
    for value in ("", " "):
        with pytest.raises(UsageError, match="^parameter `fixes` is empty; leave it out for `fenced`$"):
            check_parameters(cells, {"fixes": value, "log": ""})


def test_a_session_that_goes_on_is_not_refused():
    """Names that later cells made are no parameters, and a changed parameters cell counts anew."""
    cells = ["", DECLARED, "x = 1", DECLARED.replace("3", "4"), "report = {}"]

    check_parameters(cells, VALUES | {"x": 1, "report": {}})
