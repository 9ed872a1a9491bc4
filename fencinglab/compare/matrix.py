"""Fixes side by side: which invariant each holds in every order of events, and which public incidents it prevents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import fencinglab
from fencinglab import charts
from fencinglab.compare.cells import aligned, mark
from fencinglab.explore.invariants import INVARIANTS
from fencinglab.explore.matrix import Cell
from fencinglab.inert import wrapped
from fencinglab.model import incident
from fencinglab.output import document, table

SCHEMA = "fencinglab.matrix/1"
INCIDENT_COLUMNS = ("incident", "title", "fix", "result", "judged", "because")
_RESULTS = {"prevents": "●", "puts off": "◐", "does not prevent": "✕", "idle": "–"}


def screen(cells: Sequence[Cell], searched: str, incidents: Sequence[incident.Row]) -> str:
    """What `fencinglab compare --matrix` prints. `searched` says within which bounds the cells were computed."""
    shown = [name for name in INVARIANTS if any(c.invariant == name and c.status != "not_applicable" for c in cells)]
    lines = wrapped("", f"Fixes and invariants; {searched}.")
    lines += wrapped("", "● holds in every order of events · ✕ the steps of the shortest run that breaks it")
    rows = [{"": ""} | {name: INVARIANTS[name].group for name in shown} | {"states": ""}]
    for fix in dict.fromkeys(cell.fix for cell in cells):
        own = {cell.invariant: cell for cell in cells if cell.fix == fix}
        marks = {name: mark(own[name].status, own[name].length) for name in shown}
        rows.append({"": fix} | marks | {"states": f"{own[shown[0]].states:,}"})
    lines += ["", *aligned(rows), "", *_incidents(incidents)]
    lines += ["", *wrapped("", "`fencinglab check --fix NAME` shows the shortest runs under one of them.")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _incidents(rows: Sequence[incident.Row]) -> Iterator[str]:
    """A line a fix: how many of the incidents it prevents, and which it does not."""
    fixes = {row.fix: None for row in rows}
    numbers = [name.split("-")[0] for name in dict.fromkeys(row.incident for row in rows)]
    legend = ", ".join(f"{mark} {incident.RESULTS[result]}" for result, mark in _RESULTS.items())
    count = f"{len(numbers)} public incidents ({numbers[0]} to {numbers[-1]})"
    yield from wrapped("", f"The same fixes on {count}, replayed: {legend}.")
    yield ""
    wide = max(map(len, fixes))
    yield f"{'':<{wide}}  " + " ".join(number.removeprefix("C") for number in numbers) + "   ●"
    for fix in fixes:
        of = [row.result for row in rows if row.fix == fix]
        yield f"{fix:<{wide}}  " + " ".join(f"{_RESULTS[r]:>2}" for r in of) + f"  {of.count('prevents'):>2}"


def contents(cells: Sequence[Cell], searched: str, incidents: Sequence[incident.Row]) -> dict[str, Any]:
    """The files of a matrix by name: matrix.csv and its chart, incidents.csv, and both tables as matrix.json."""
    made = [cell._asdict() for cell in cells]
    tried = [{name: getattr(row, name) for name in INCIDENT_COLUMNS} for row in incidents]
    whole = {
        "schema": SCHEMA, "version": fencinglab.__version__, "searched": searched, "cells": made, "incidents": tried,
    }  # fmt: skip
    files: dict[str, Any] = {"matrix.csv": table(Cell._fields, made), "matrix.json": document(whole)}
    if drawn := charts.matrix(made, searched):
        files |= charts.files(drawn, "matrix")
    return files | {"incidents.csv": table(INCIDENT_COLUMNS, tried)}
