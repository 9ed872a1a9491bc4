"""The executed notebook beside a report says what the report says, under whatever options."""

import json
from pathlib import Path

from fencinglab import cli

DATA = Path(__file__).parents[2] / "data"


def test_it_is_executed_under_the_same_options(tmp_path, capsys):
    """Filters and skipped rules, for which the notebook has no parameter of its own, reach it too."""
    options = ["--terminal", "DONE,FAILED", "--key-prefix", "set-by", "--skip", "token_went_back,alert_twice"]
    words = ["audit", str(DATA / "broken-takeover.jsonl"), *options, "--out", str(tmp_path), "--notebook"]

    assert cli.main(words) == 1, capsys.readouterr().err
    headline = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["headline"]
    book = json.loads((tmp_path / "audit.ipynb").read_text(encoding="utf-8"))
    shown = "".join("".join(output.get("text", "")) for cell in book["cells"] for output in cell.get("outputs", ()))

    assert headline in shown
    assert "--key-prefix set-by --skip token_went_back,alert_twice" in "".join(map(str, book["cells"]))
