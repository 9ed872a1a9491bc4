"""Every notebook is short, clean in git, and runs as its readers run it: by papermill, from a folder of their own."""

import ast
import html
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest

from fencinglab.check import files
from fencinglab.errors import UsageError
from fencinglab.model.fix import FIXES
from fencinglab.model.matrix import proposals
from fencinglab.parameters import check_parameters

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "notebooks" / "page.html.j2"
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}

# How long a notebook may be: a reader has an evening, not a week.
CELLS = range(25, 41)
WORDS = range(900, 1601)  # of text
LINES = 60  # of code in all
MEDIAN = 2  # lines of a code cell
LONGEST = 12  # lines of a code cell
DRAWN = 85  # characters of a line of a drawing: a page 1,000 pixels wide breaks longer ones
SECONDS = 60  # after twice of which a run is taken as one that hangs

# Beside its defaults every notebook runs with one other set of parameters, in a folder that has these logs.
OTHERWISE = {
    "01_paused_worker": {"timeline": "short-pause", "fixes": "unfenced, longer-lease,fenced"},
    "02_tokens_and_acceptance": {"timeline": "old-token-first", "fixes": "fenced,promised,latest"},
    "03_every_order": {"fix": "token-floor", "writes": 1, "hazards": "ttl", "requests": "broken-unconditional"},
    "04_request_status": {"requests": "late-render", "lease": 3},
    "05_late_render": {"timeline": "late-render-three-workers", "fixes": "unfenced,fenced,current-lease"},
    "06_audit_a_log": {
        "log": "request-status-unfenced.jsonl", "terminal": "SUCCEEDED,FAILED", "rising": "attempt", "redact": True,
        "top": 1,
    },
    "07_compare_fixes": {
        "lease": "20s", "pause": "lognormal:1s,1.5", "fixes": "unfenced,fenced,current-lease", "jobs": 3000,
        "log": "report-generation-fenced.jsonl", "requests": "broken-unconditional", "out": "review",
    },
}  # fmt: skip
THREE = {"application/vnd.vegalite.v5+json", "image/png", "text/plain"}

notebooks = pytest.mark.parametrize("name", NOTEBOOKS)


def read(path):
    """The notebook of a file."""
    return nbformat.read(path, as_version=4)


def code(name):
    """The code cells of a notebook that the reader is meant to read: all but the solutions."""
    return [cell for cell in read(NOTEBOOKS[name]).cells if cell.cell_type == "code" and "solution" not in tags(cell)]


def tags(cell):
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def lines(cell):
    """The lines of a code cell that are not blank."""
    return [line for line in cell.source.splitlines() if line.strip()]


def parameters(name):
    """The source of the one cell with papermill's tag."""
    [cell] = [cell for cell in read(NOTEBOOKS[name]).cells if "parameters" in tags(cell)]
    return cell.source


def papermill(folder, name, *options):
    """Run a notebook in this folder, which is not the project's; the process and what came out."""
    for log in (ROOT / "data").glob("*.jsonl"):
        shutil.copy(log, folder)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "papermill", str(NOTEBOOKS[name]), "out.ipynb", "--no-progress-bar", *options]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
        timeout=2 * SECONDS, check=False,
    )  # fmt: skip
    return done, read(folder / "out.ipynb")


def given(values):
    """The options of papermill that pass these values."""
    return [word for name, value in values.items() for word in ("-p", name, str(value))]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a notebook with its defaults or otherwise, once for all tests that look at it."""

    @cache
    def once(name, otherwise):
        options = given(OTHERWISE[name]) if otherwise else []
        return papermill(tmp_path_factory.mktemp(name), name, *options)

    return once


def outputs(notebook):
    """Every output of an executed notebook, in order."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def bundles(notebook):
    """What the outputs hold, by mime type."""
    return [output.data for output in outputs(notebook) if "data" in output]


# --------------------------------------------------------------------------- as they lie in git


@notebooks
def test_outputs_are_stripped(name):
    """What lies in git has no outputs, no counts and no traces of an editor, and is valid."""
    notebook = read(NOTEBOOKS[name])
    nbformat.validate(notebook)

    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags", "jupyter"}
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert notebook.metadata.kernelspec.name == "python3"


@notebooks
def test_length(name):
    """Cells, words and lines of code stay within what one sitting can hold."""
    cells = read(NOTEBOOKS[name]).cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    sizes = [len(lines(cell)) for cell in cells if cell.cell_type == "code"]

    assert len(cells) in CELLS
    assert words in WORDS
    assert sum(sizes) <= LINES
    assert statistics.median(sizes) <= MEDIAN
    assert max(sizes) <= LONGEST


@notebooks
def test_structure(name):
    """A question as title, a prediction before any code, one cell of imports, exercises and limits at the end."""
    cells = read(NOTEBOOKS[name]).cells
    text = [cell.source for cell in cells if cell.cell_type == "markdown"]
    headings = re.findall(r"^#+ (.*)$", "\n".join(text), re.M)
    first = next(i for i, cell in enumerate(cells) if cell.cell_type == "code")

    assert headings[0].endswith("?")
    assert "## Predict" in "\n".join(cell.source for cell in cells[:first])
    assert {"What this does not show", "Exercises", "Sources"} <= set(headings)
    assert [cell for cell in code(name) if "import " in cell.source] == [cells[first]]


@notebooks
def test_drawings_fit(name):
    """No line of the drawing to predict from is so long that a page breaks it and moves what stands below."""
    [cell] = [cell for cell in read(NOTEBOOKS[name]).cells if "## Predict" in cell.source]

    assert max(map(len, cell.source.split("```")[1].splitlines())) <= DRAWN


@notebooks
def test_code_is_thin(name):
    """No styling, no functions outside solutions, nothing fetched or run from a file, no imports by star."""
    source = "\n".join(cell.source for cell in code(name))

    for word in ("def ", "class ", "altair", "configure", ".style", "import *", "%run", "!pip", "sys.path", "http"):
        assert word not in source


@notebooks
def test_parameters_cell(name):
    """One plain literal a line with its type, and its meaning in a comment without an equals sign."""
    for line in parameters(name).splitlines():
        matched = re.fullmatch(r"(\w+): (str|int|float|bool) = (.+?)  # ([^=]+)", line)
        assert matched, line
        assert type(ast.literal_eval(matched[3])).__name__ == matched[2]


@notebooks
def test_papermill_knows_the_parameters(name):
    """papermill's own list of the notebook's parameters has all of them, with types and meanings."""
    import papermill

    told = papermill.inspect_notebook(str(NOTEBOOKS[name]))
    declared = re.findall(r"^(\w+): (\w+) = ", parameters(name), re.M)

    assert [(each, of["inferred_type_name"]) for each, of in told.items()] == declared
    assert all(of["help"] for of in told.values())


@notebooks
def test_parameters_are_checked_next(name):
    """The code cell after the parameters refuses what papermill would let pass."""
    cells = code(name)
    place = next(i for i, cell in enumerate(cells) if "parameters" in tags(cell))

    assert cells[place + 1].source == "check_parameters(In, globals())"


# --------------------------------------------------------------------------- as they run


@notebooks
@pytest.mark.parametrize("otherwise", [False, True], ids=["defaults", "otherwise"])
def test_runs_from_any_folder(run, name, otherwise):
    """It runs to its end, from a folder of its own, with relative paths, and without a warning in a cell."""
    done, notebook = run(name, otherwise)

    assert done.returncode == 0, done.stderr[-3000:]
    assert [output for output in outputs(notebook) if output.get("name") == "stderr"] == []


@notebooks
@pytest.mark.parametrize("otherwise", [False, True], ids=["defaults", "otherwise"])
def test_charts_come_in_three_mimes(run, name, otherwise):
    """Every chart lives in JupyterLab, is a picture where that is saved, and is told in words elsewhere."""
    _, notebook = run(name, otherwise)
    drawn = [bundle for bundle in bundles(notebook) if "image/png" in bundle]

    assert drawn
    assert all(set(bundle) == THREE for bundle in drawn)


@notebooks
def test_unknown_parameter_is_refused(name):
    """A misspelt parameter, of which papermill only warns, is refused by the cell after it with the list of names."""
    declared = parameters(name)
    first = re.match(r"(\w+):", declared)[1]
    cells, values = ["", declared, f"# Parameters\n{first[::-1]}x = 1\n"], {}
    for cell in cells:
        exec(cell, values)
    with pytest.raises(UsageError, match=f"no parameter `{first[::-1]}x`") as refused:
        check_parameters(cells, values)

    assert all(known in str(refused.value) for known, _ in re.findall(r"^(\w+): (\w+) = ", declared, re.M))


@notebooks
def test_becomes_a_page(run, name, tmp_path):
    """As a page for reading the charts are pictures with their words, and nothing is fetched or run."""
    _, notebook = run(name, False)
    nbformat.write(notebook, tmp_path / "out.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--template-file", str(PAGE), "out.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    pictures = [html.unescape(alt) for alt in re.findall(r'<img alt="([^"]*)"[^>]*?src="data:image/png;base64,', page)]

    assert pictures == [bundle["text/plain"] for bundle in bundles(notebook) if "image/png" in bundle]
    assert "<script" not in page and "<link" not in page


# --------------------------------------------------------------------------- a foreign kernel, exercises


@notebooks
def test_a_foreign_kernel_is_told_what_to_type(name):
    """Where fencinglab is missing, the first cell fails with the command that starts the right kernel."""
    python = getattr(sys, "_base_executable", sys.executable)
    command = [python, "-I", "-S", "-c", code(name)[0].source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]

    assert done.returncode == 1
    assert last.startswith("ImportError: No module named '")
    assert f"`python3 lab.py notebooks {name[:2]}`" in last


EXERCISED = ("01_paused_worker", "02_tokens_and_acceptance", "03_every_order")


@pytest.mark.parametrize("name", EXERCISED)
def test_exercises_are_checked(run, name):
    """As they stand both exercises are open and say what to look at; the folded solutions answer both."""
    _, notebook = run(name, False)
    told = [
        "".join(output.text for output in cell.outputs if "text" in output)
        for cell in notebook.cells[-7:]
        if cell.cell_type == "code"
    ]

    assert told[0].startswith("Nothing is guessed yet.") and "Look at" in told[0]
    assert told[1].startswith("Nothing is changed yet") and "Look at" in told[1]
    assert told[2].startswith("2 of 2 right.") and "Broken by one line" in told[2]


# --------------------------------------------------------------------------- 01 and 02


def printed(notebook):
    """All that was printed."""
    return "".join(output.text for output in outputs(notebook) if output.output_type == "stream")


def charts(notebook):
    """The charts as Vega-Lite, in order."""
    mime = "application/vnd.vegalite.v5+json"
    return [bundle[mime] for bundle in bundles(notebook) if mime in bundle]


def test_paused_worker_tells_the_article(run):
    """By default the four facts stand in it word for word, and the article's five rows."""
    _, notebook = run("01_paused_worker", False)
    rows = table(notebook, "step", "unfenced", "fenced")

    assert (
        "unfenced final value: old-result\nfenced final value: new-result\n"
        "repeated current token: accepted\nold token before newer token reaches resource: accepted\n"
    ) in printed(notebook)
    assert [(row["step"], row["event"]) for row in rows] == [
        ("1", "A acquires; A reads"),
        ("2", "A pauses; lease expires"),
        ("3", "B acquires; B writes new-result"),
        ("4", "A resumes; A writes old-result"),
        ("5", "B writes new-result"),
    ]
    assert rows[3]["fenced"] == "A wrote with 41 after 42 was accepted: rejected by at-or-above"
    assert rows[3]["unfenced"] == "A wrote with 41 after 42 was accepted: accepted, nothing compared"


def test_paused_worker_draws_lanes(run):
    """The first chart is titled by the harm, the second has a panel for each fix, also with other parameters."""
    for otherwise, fixes in ((False, ["unfenced", "fenced"]), (True, ["unfenced", "longer-lease", "fenced"])):
        _, notebook = run("01_paused_worker", otherwise)
        first, second, *_ = charts(notebook)

        assert first["title"]["text"][0].startswith("41 was accepted while 42 was held: write by A")
        assert [panel["title"]["text"][0].partition(":")[0] for panel in second["vconcat"]] == fixes


def test_paused_worker_shows_where_a_longer_lease_ends(run):
    """The longer lease helps in the short pause and not in the long one; fencing helps in both."""
    _, notebook = run("01_paused_worker", False)
    harm = {(row["timeline"], row["fix"]): row["harm"] for row in table(notebook, "timeline", "fix", "harm")}
    safe = {case for case, says in harm.items() if says == "nothing unsafe"}

    assert safe == {("short-pause", "longer-lease"), ("short-pause", "fenced"), ("long-pause", "fenced")}
    assert "before it had acquired" in printed(notebook) and "never came back" in printed(notebook)


def test_token_histories_stand_for_every_fix(run):
    """By default every fix stands above exactly one history, and the first is the harm."""
    _, notebook = run("02_tokens_and_acceptance", False)
    named = re.findall(r"^under (.*)$", printed(notebook), re.M)

    assert sorted(", ".join(named).split(", ")) == sorted(FIXES)
    assert charts(notebook)[0]["title"]["text"][0] == "41 was accepted while 42 was held: write by A at 01:04"
    assert len(named) < len(FIXES) / 2


@pytest.mark.parametrize("otherwise", [False, True], ids=["defaults", "otherwise"])
def test_what_is_said_of_a_counterexample_is_what_was_found(run, otherwise):
    """Harm is named with the ring and with the guards that keep it out; where only a late write is left, neither is claimed."""
    _, notebook = run("03_every_order", otherwise)
    said = "".join(output.text for output in outputs(notebook) if "text" in output)

    lines = (
        ("fenced breaks ownership, terminal, late; below is ownership (unsafe): a stale write can be accepted.",
         "The ring is the harm: a write was accepted after a newer grant.",
         "ownership holds in this run under: promised, latest"),
        ("token-floor breaks late; below is late (window): a late write can be accepted.",
         "No ring: no single write did harm.", "late holds in this run under: none of these"),
    )[otherwise]  # fmt: skip
    assert [line for line in said.splitlines() if line in lines] == [*lines]


def test_tokens_as_text_are_shown_where_they_are_compared(run):
    """The run that 03 tells of them ends with "9" accepted over "10", as the text below it says, and no text is cut."""
    _, notebook = run("03_every_order", False)
    rows = table(notebook, "event", "says")

    assert re.search(r'writtenToken "10" →\s+"9"', printed(notebook))
    assert not any(row["says"].endswith("...") for row in rows)


def test_proposed_fixes_improve_and_are_exposed(run):
    """The four proposed fixes are rows, each with a timeline that it improves and one in which harm is left."""
    _, notebook = run("02_tokens_and_acceptance", False)
    rows = table(notebook, "improved_by", "exposed_by")

    assert [row["fix"] for row in rows] == [proposal.fix for proposal in proposals()]
    assert all(row["without"] and row["still"] and row["improved_by"] != row["exposed_by"] for row in rows)


def test_a_misspelt_fix_is_refused(tmp_path):
    """A fix that there is not stops the run with the nearest names."""
    done, _ = papermill(tmp_path, "02_tokens_and_acceptance", "-p", "fixes", "fence")

    assert done.returncode != 0
    assert "`fence` is no fix; nearest: fenced" in done.stderr


# --------------------------------------------------------------------------- 07


def test_a_review_is_said_whole(run):
    """By default the recommended fix, the team's requests and the log's stale write are in it, and nothing is written."""
    _, notebook = run("07_compare_fixes", False)
    rows = {row["fix"]: row for row in table(notebook, "ownership", "finished twice")}
    guards = {row["guard"]: row["refuses stale"] for row in table(notebook, "guard", "refuses stale")}

    assert printed(notebook).startswith("By the stated rule: latest-id.")
    assert (rows["latest-id"]["ownership"], rows["fenced"]["ownership"]) == ("●", "✕ 6")
    assert rows["your requests"]["stale write accepted"] == "not simulated"
    assert (guards["unguarded"], guards["your requests"]) == ("0 of 1", "1 of 1")
    assert "Nothing was written" in printed(notebook)


def test_a_review_of_other_numbers_is_a_page(run):
    """With a workload, a log and requests of one's own the numbers are theirs, and the page lies in the folder."""
    _, notebook = run("07_compare_fixes", True)
    origin = {row["name"]: (row["value"], row["from"]) for row in table(notebook, "value", "from")}

    assert origin["lease"] == ("20s", "said")
    assert origin["renewal"][1] == "default"
    assert "broken-unconditional.json breaks order, ownership" in printed(notebook)
    assert "Written: review/compare.html, review/compare.json" in printed(notebook)


# --------------------------------------------------------------------------- 05


def table(notebook, *columns):
    """The rows of the one table that has these columns, as texts."""
    pages = [bundle["text/html"] for bundle in bundles(notebook) if "text/html" in bundle]
    [page] = [page for page in pages if all(f"<th>{column}</th>" in page for column in columns)]
    names = re.findall(r"<th>([^<]*)</th>", page)[1 : page.partition("</thead>")[0].count("<th>")]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in page.partition("<tbody>")[2].split("</tr>")]
    return [dict(zip(names, row, strict=True)) for row in rows if row]


def test_a_file_without_versions_skips_their_exercise(tmp_path):
    """Of a request file that maps no version, such as the example to start from, the notebook runs and says so."""
    (tmp_path / "ex.json").write_text(files.example(), encoding="utf-8")
    done, notebook = papermill(tmp_path, "04_request_status", "-p", "requests", "ex.json")

    assert done.returncode == 0, done.stderr[-2000:]
    assert "('skipped, since ex.json maps no attribute to `version`', True)" in [
        data["text/plain"] for data in bundles(notebook)
    ]


@pytest.mark.parametrize("otherwise", [False, True], ids=["defaults", "otherwise"])
def test_late_render_ends_once_and_unchanged(run, otherwise):
    """In the end the fenced job points to the newest execution's bytes, finished once; without the fence it does not."""
    _, notebook = run("05_late_render", otherwise)
    ends = {row["fix"]: row for row in table(notebook, "artifact", "content", "orphans")}
    newest = ("preview/43", "pixels-of-C") if otherwise else ("preview/42", "pixels-of-B")

    assert (ends["current-lease"]["artifact"], ends["current-lease"]["content"]) == newest
    assert ends["current-lease"]["finished"] == "1"
    assert ends["unfenced"]["artifact"] != newest[0]


def test_late_render_by_hand(run):
    """The two verifications by hand: A's completion and the repetition of B's are refused, each for its reason."""
    _, notebook = run("05_late_render", False)
    told = [
        (row["decision"], row["reason"], row["artifact"], row["finished"])
        for row in table(notebook, "request", "phase")
    ]

    assert told[2:] == [
        ("accepted", "", "preview/2", "1"),
        ("rejected", "newer_token", "preview/2", "1"),
        ("rejected", "duplicate", "preview/2", "1"),
    ]


def test_late_render_proves_its_runbook(run):
    """Every stage of the runbook is proved, and each names the harm that is done without it."""
    _, notebook = run("05_late_render", False)
    stages = table(notebook, "phase", "does", "harm", "proved")

    assert [row["phase"] for row in stages] == [*["roll-out"] * 4, "roll-back", *["recovery"] * 2]
    assert {row["proved"] for row in stages} == {"True"}
    assert {row["audit"] for row in table(notebook, "without", "check", "audit")} == {"holds"}
    assert all(row["harm"] for row in stages)


def test_late_render_says_what_the_audit_cannot_show(run):
    """The shared key changes the bytes and its history holds; the unfenced one is violated."""
    _, notebook = run("05_late_render", False)
    verdicts = {row["history"]: row["verdict"] for row in table(notebook, "history", "verdict", "unsafe")}
    told = "".join(output.text for output in outputs(notebook) if output.output_type == "stream")

    assert verdicts == {"unfenced": "violated", "current-lease": "holds", "shared key": "holds"}
    assert "the bytes to which the finished job points were replaced" in told


# --------------------------------------------------------------------------- 06


def test_audit_finds_its_sample(run):
    """Without a log, the audit tells the story of tokens 41 and 42 from anywhere."""
    _, notebook = run("06_audit_a_log", False)
    told = "".join(output.text for output in outputs(notebook) if output.output_type == "stream")

    assert told.startswith("Violated:")
    assert "41 after 42" in told
    assert len(re.findall(r"^(?:violated|holds|idle|unknown|not_visible|not_applicable) ", told, re.M)) == 5


def test_audit_redacts(run):
    """With `redact` no name of the log is in any output: text, tables, charts or tooltips."""
    _, notebook = run("06_audit_a_log", True)
    told = json.dumps(outputs(notebook))

    assert re.search(r"resource-\d", told)
    assert all(name not in told for name in ("req-8f23", "wp-cron", "lambda/poller", "request-status-unfenced"))


def test_audit_draws_the_finding(run):
    """The chart of the sample is titled by its finding."""
    _, notebook = run("06_audit_a_log", False)
    chart = next(bundle for bundle in bundles(notebook) if "image/png" in bundle)

    assert "41" in chart["application/vnd.vegalite.v5+json"]["title"]["text"][0]


def test_audit_fails_when_asked(tmp_path):
    """With `fail_on` a violated verdict makes papermill exit non-zero, after everything has been drawn."""
    done, notebook = papermill(tmp_path, "06_audit_a_log", "-p", "fail_on", "unsafe")

    assert done.returncode == 1
    assert "AssertionError: Violated" in done.stderr
    assert [bundle for bundle in bundles(notebook) if "image/png" in bundle]


def test_audit_of_a_healthy_log_does_not_fail(tmp_path):
    """`fail_on` lets a log pass whose refusals show the protection at work; two logs are two words."""
    logs = "report-generation-fenced.jsonl ./report-generation-fenced.jsonl"
    done, notebook = papermill(
        tmp_path, "06_audit_a_log", *given({"log": logs, "terminal": "none", "fail_on": "unsafe"})
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "Refused: " in json.dumps(bundles(notebook))


def test_audit_refuses_a_mistyped_parameter(tmp_path):
    """A parameter of another type stops papermill, with one sentence on what it takes, before anything is shown."""
    done, notebook = papermill(tmp_path, "06_audit_a_log", "-p", "top", "five")

    assert done.returncode != 0
    assert "`top` is 'five' (str), it takes int" in done.stderr
    assert bundles(notebook) == []
