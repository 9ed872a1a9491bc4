"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

from fencinglab import cli
from fencinglab.model.event import read
from fencinglab.model.timeline import parse

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = "".join(re.findall(r"```console\n(.*?)```", README, re.DOTALL))
SHOWN = re.findall(
    r"^\$ python3 lab\.py ((?:audit|replay|check|compare) .*)\n((?:(?!\$ ).*\n)*)", CONSOLE, re.MULTILINE
)


@pytest.mark.parametrize(("command", "output"), SHOWN)
def test_a_command_prints_what_the_readme_shows(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command of the README prints the lines below it; a last line of … stands for the rest."""
    monkeypatch.chdir(ROOT)
    cli.main(command.split())
    printed = capsys.readouterr().out

    shown, rest, _ = output.partition("…\n")
    assert printed.startswith(shown) if rest else printed == shown


def test_the_two_commands_are_shown() -> None:
    """The README shows an audit and the test run, and at least one command has output."""
    assert "$ python3 lab.py audit data/" in CONSOLE
    assert "$ python3 lab.py test" in CONSOLE
    assert [output for _, output in SHOWN if output.strip()]


def test_the_timeline_that_is_shown_can_be_replayed() -> None:
    """The timeline in the text is one, and every event in the table of events is in the language."""
    [text] = [block for block in re.findall(r"```text\n(.*?)```", README, re.DOTALL) if block.startswith("title: ")]
    assert parse(text).events
    events = re.findall(
        r"`([^`]*)`", README[README.index("| about | events |") : README.index("`--out DIR` writes the event")]
    )
    assert [event for event in events if not event.startswith(",") and read(event) is None] == []


def test_every_file_that_the_readme_names_is_there() -> None:
    """A path in backquotes that begins with a folder of the project exists."""
    named = re.findall(r"`((?:data|tests|notebooks|fencinglab|audit)/[\w./-]+)`", README)
    assert named
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / "fencinglab" / name).exists()]
    assert missing == []


def test_every_notebook_is_listed_with_its_question() -> None:
    """The table of notebooks is the folder of notebooks."""
    listed = re.findall(r"^\| `(\d\d_\w+)` \|", README, re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
