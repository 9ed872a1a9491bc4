"""The page of a report opens anywhere, shows everything once, and nothing that a log contains can act in it."""

import json
import re
import shutil
import struct
import subprocess
import zlib
from functools import cache
from pathlib import Path

import pytest
from pages import Page, acting

from fencinglab import charts
from fencinglab.report import page
from fencinglab.report.examine import audit_logs

DATA = Path(__file__).parents[2] / "data"
SAMPLES = {  # one of each verdict; the last has refused requests
    "violated": ("request-status-unfenced.jsonl", {"terminal": "SUCCEEDED,FAILED", "rising": "attempt"}),
    "inconclusive": ("no-written-token.jsonl", {}),
    "holds": ("report-generation-fenced.jsonl", {"terminal": "none"}),
}
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00\u202e\"'&`--><svg onload=alert(2)>{{ 7*7 }}" + "A" * 10_000
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@cache
def audited(verdict):
    """The report of the sample with this verdict as JSON text, audited once."""
    name, options = SAMPLES[verdict]
    report = audit_logs([str(DATA / name)], **options)
    assert report["verdict"] == verdict
    return json.dumps(report)


def sample(verdict):
    """The report of the sample with this verdict, anew for each test."""
    return json.loads(audited(verdict))


@cache
def html(verdict):
    """The page of that report, made once."""
    return page.html(sample(verdict))


@pytest.fixture(params=SAMPLES)
def verdict(request):
    """Each verdict in turn."""
    return request.param


def poisoned(value, key=""):
    """The report with hostile text in place of every text that could come from a log."""
    if isinstance(value, dict):
        return {k: poisoned(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [poisoned(item, key) for item in value]
    ours = {"schema", "verdict", "status", "class", "answer", "kind", "decision", "name", "title", "rules", "broken"}
    number = isinstance(value, str) and value.isdigit()
    return HOSTILE + value if isinstance(value, str) and key not in ours and not number and key != "at" else value


def full():
    """A report as large as reports get: many rows in every rule, long histories, every resource named."""
    found = sample("violated")
    [row] = found["rules"][4]["rows"][:1]
    for rule in found["rules"]:
        rule.update(status="violated", count=5000, rows=[row] * 20)
    steps = [found["timeline"][i % 10] | {"step": i + 1} for i in range(400)]
    found["timeline"] = [step | {"resource": f"table/item-{i}"} for i in range(5) for step in steps]
    found["affected"] = found["affected"] * 20
    found["suspects"] = found["affected"] * 20
    found["writers"] = found["writers"] * 5
    return found


# --------------------------------------------------------------------------- the document


def test_nothing_acts_and_nothing_is_fetched(verdict):
    """No script, no handler, no link but to the page's own headings, no style from elsewhere, no address at all."""
    text = html(verdict)

    assert acting(text) == []
    assert "default-src 'none'" in [attrs.get("content") or "" for attrs in Page(text).all("meta")][-1]


ACTS = (
    "<script>",
    "<p onclick='x'>",
    "<p src='x'>",
    "<a href='/x'>",
    "<style>@import 'x'",
    "<p style='url(x)'>",
    "http://x",
)


@pytest.mark.parametrize("markup", ACTS)
def test_what_acts_is_found(markup):
    """The check of the pages can fail: each way to act or to fetch is seen."""
    assert acting(f'<p><a href="#x">{markup}')


def test_document_says_what_it_is(verdict):
    """Language, encoding, title, one main heading with the verdict sentence, tables with headers."""
    report, text = sample(verdict), html(verdict)
    found = Page(text)

    assert text.startswith("<!doctype html>")
    assert found.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in found.all("meta")
    assert f"<title>{report['verdict']}" in text
    assert f">{report['headline']}</h1>" in text.replace("&#39;", "'")
    assert len(found.all("h1")) == 1
    assert len(found.all("thead")) == len(found.all("table"))


def test_links_and_ids(verdict):
    """Ids are unique, every heading of a section has one, and every link leads to one of them."""
    found = Page(html(verdict))
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]

    assert len(ids) == len(set(ids))
    assert {attrs["href"][1:] for attrs in found.all("a")} <= set(ids)
    assert {attrs["aria-labelledby"] for attrs in found.all("section")} <= set(ids)


def test_sections_in_order(verdict):
    """The page goes from what was found to what it rests on."""
    sections = list(Page(html(verdict)).sections)

    assert sections == [
        *("findings", "decision-rule", "histories", "rejections", "can-see", "brief", "rules", "affected", "writers"),
        "inputs",
    ]


def test_entries_are_accounted_for(verdict):
    """The line of the entries has every number of the report."""
    report, text = sample(verdict), html(verdict)
    line = re.search(r'id="entries">(.*?)</p>', text, re.S)[1]

    assert [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", line)][:8] == [
        *(report["entries"][name] for name in ("read", "records", "blank", "set_aside")),
        *(report["entries"][name] for name in ("records", "audited", "duplicates", "filtered")),
    ]


def test_decision_rule_has_five_lines(verdict):
    """Each line comes with its status in words, the rules or rows behind it, and the command that verifies it."""
    report, text = sample(verdict), html(verdict)
    told = Page(text).sections["decision-rule"]

    assert len(report["decision_rule"]) == 5
    for line in report["decision_rule"]:
        assert line["line"][1:] in told
        assert page.STATUS[line["status"]][1] in told
        assert line["command"] in told
        assert all(name in told for name in line["broken"] or line["rules"])


def test_every_rule_is_listed(verdict):
    """All rules are in the table with name, status, and what breaks them, headed so: `holds` does not mean that it was."""
    report, text = sample(verdict), html(verdict)
    told = Page(text).sections["rules"]

    assert "Broken when" in told
    assert all(rule["name"] in told and rule["title"] in told for rule in report["rules"])
    assert all(page.STATUS[rule["status"]][1] in told for rule in report["rules"])


def test_every_status_is_worded():
    """Every status has a symbol, a word and a meaning, and is not told by colour alone."""
    assert set(page.STATUS) == {"violated", "holds", "idle", "unknown", "not_visible", "not_applicable"}
    assert len({(symbol, word) for symbol, word, _ in page.STATUS.values()}) == len(page.STATUS)
    assert set(page.VERDICT) == {"violated", "holds", "inconclusive"}


def test_findings_bring_their_rows():
    """A finding shows sentence, resource, source and advice; backquotes become code."""
    report, told = sample("violated"), Page(html("violated")).sections["findings"]

    for rule in report["rules"]:
        if rule["status"] == "violated":
            row = rule["rows"][0]
            assert all(text in told for text in (row["says"], row["resource"], row["source"]))
            assert rule["advice"].replace("`", "")[1:] in told


def test_suspects_of_an_inconclusive_report():
    """Where nothing can be proved, the resources to look at first and the fields to record are there."""
    report, sections = sample("inconclusive"), Page(html("inconclusive")).sections

    assert report["suspects"] and report["to_record"] and report["record"]
    assert all(row["resource"] in sections["findings"] for row in report["suspects"])
    assert all(row["line"].replace("`", "") in sections["can-see"] for row in report["to_record"])
    assert all(row["field"] in sections["can-see"] for row in report["record"])
    assert "JSON.stringify" in sections["can-see"] and "json_encode" in sections["can-see"]


def test_blanks_of_the_brief_are_named(verdict):
    """What the log does not know is marked as a blank with a hint; unseen processes are marked too."""
    report, text = sample(verdict), html(verdict)
    told = Page(text).sections["brief"]
    empty = [item for item in report["brief"] if item["value"] is None]

    assert text.count('<span class="blank">blank</span>') == len(empty) > 0
    assert all(process["name"] in told for process in report["processes"])
    assert told.count("not seen, ask") == sum(not process["seen"] for process in report["processes"])


def test_inputs_can_be_found_again(verdict):
    """File, hash, mapping, command and versions stand at the end."""
    report, text = sample(verdict), html(verdict)
    told = Page(text).sections["inputs"]
    [file] = report["inputs"]
    fields = [field for said in report["mapping"].values() for field in said["fields"].values()]

    assert file["sha256"] in told and file["format"] in told
    assert all(field in told for field in fields)
    assert report["command"] in told
    assert report["versions"]["fencinglab"] in text


# --------------------------------------------------------------------------- charts in the page


def test_charts_are_embedded_with_alt_text(verdict):
    """Each history and the rejections are drawn, each with an alt text."""
    report, found = sample(verdict), Page(html(verdict))
    alts = [attrs["aria-label"] for attrs in found.all("div") if attrs.get("role") == "img"]
    drawn = [*page.histories(report, page.DRAWN), *(["refused"] if report["rejections"] else [])]

    assert len(found.all("svg")) == len(alts) == len(found.all("figure")) == len(drawn)
    assert all(alts)


def test_charts_have_their_rows_as_a_table():
    """Every step that is drawn stands in the table below, the broken one marked."""
    report, text = sample("violated"), html("violated")
    section = re.search(r'id="histories".*?</section>', text, re.S)[0]

    assert section.count("<tr") == 1 + len(report["timeline"])
    assert section.count("broke a rule</span>") == sum(row["broken"] for row in report["timeline"])


def test_nothing_to_draw_is_said():
    """Without resources to draw and without refusals the page says so in a sentence."""
    report = sample("violated") | {"timeline": [], "rejections": []}
    sections = Page(page.html(report)).sections

    assert "Nothing to draw" in sections["histories"]
    assert "Nothing to draw" in sections["rejections"]


def test_dark_mode_reaches_the_charts():
    """Every neutral colour of the charts is replaced in dark mode: no dark ink on a dark page."""
    style = re.search(r"<style>(.*?)</style>", html("violated"), re.S)[1]

    for colour in (charts.style.PAPER, charts.style.INK, charts.style.MUTED):
        assert f'svg [fill="{colour}"]' in style


# --------------------------------------------------------------------------- hostile and large


def test_hostile_text_is_inert(verdict):
    """Markup, templates, control and direction characters from a log arrive as text, and are cut."""
    text = page.html(poisoned(sample(verdict)))

    assert acting(text) == []
    assert "&lt;script&gt;" in text and "{{ 7*7 }}" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", text)
    assert list(Page(text).sections) == list(Page(html(verdict)).sections)


def test_page_stays_small():
    """The largest report, and one with endless names, make a page below 300 KB."""
    assert len(page.html(full()).encode()) < 300_000
    assert len(page.html(poisoned(sample("violated"))).encode()) < 300_000


def test_long_lists_say_what_is_left_out():
    """Of a rule with thousands of rows the page shows the first ones and names the file that has all."""
    told = Page(page.html(full())).sections["findings"]

    assert f"{5000 - page.ROWS:,} more in findings.csv" in told


def test_same_report_same_bytes(verdict):
    """The page of a report is the same every time, and making it changes nothing in the report."""
    report = sample(verdict)

    assert page.html(report) == html(verdict)
    assert report == sample(verdict)


def test_prose_with_half_a_backquote_is_text():
    """A backquote without its other half is shown, not lost."""
    assert page._prose("a `b` c") == "a <code>b</code> c"
    assert page._prose("a `b") == "a `b"


def test_readable_is_inert_all_the_way_down():
    """Every text in nested data becomes inert; numbers, truths and blanks stay."""
    assert page.readable({"a": ["x\x1b", 1, None, {"b": True}]}) == {
        "a": ["x\N{REPLACEMENT CHARACTER}", 1, None, {"b": True}]
    }


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [400, 1400])
def test_browser_shows_it_offline(tmp_path, width):
    """Chromium without a network draws the page, poisoned as well, and has nothing to complain about."""
    for name, text in (("page", page.html(sample("violated"))), ("hostile", page.html(poisoned(sample("violated"))))):
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        picture = tmp_path / f"{name}.png"
        command = [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", f"--user-data-dir={tmp_path / name}"),
            *(f"--window-size={width},1200", f"--screenshot={picture}", (tmp_path / f"{name}.html").as_uri()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

        assert picture.exists(), done.stderr[-2000:]
        assert "CONSOLE" not in done.stderr
        assert colours(picture.read_bytes()) > 20


def colours(png):
    """How many different byte values the pixels of a PNG have: a blank picture has next to none."""
    data, place = b"", 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        data += png[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += length + 12
    return len(set(zlib.decompress(data)))
