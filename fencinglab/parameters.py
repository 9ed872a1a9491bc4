"""The check of the parameters that papermill hands to a notebook: it only warns about those that are not there."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from fencinglab.errors import UsageError, nearest
from fencinglab.inert import inert


def check_parameters(cells: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse what papermill only warns about: parameters that the notebook does not have, of another type, or empty.

    `cells` are the sources of the cells executed so far (IPython's `In`), `values` the names that they made.
    The parameters are those of the last cell that is one annotated literal a line; papermill writes what it was
    given into a cell of its own after it. Raises UsageError with the list of names.
    """
    trees = [(cell, ast.parse(cell).body) for cell in cells if cell.startswith("# Parameters\n") or _declares(cell)]
    place = max(i for i, (cell, _) in enumerate(trees) if _declares(cell))
    declared = {node.target.id: ast.literal_eval(node.value) for node in trees[place][1]}  # type: ignore[attr-defined]
    listed = ", ".join(f"{name} ({type(default).__name__})" for name, default in declared.items())
    given = [node.targets[0].id for _, body in trees[place + 1 :] for node in body]  # type: ignore[attr-defined]
    for name in given:
        if name not in declared:
            [close] = nearest(name, declared, 1)
            raise UsageError(f"this notebook has no parameter `{name}` (nearest: `{close}`); it has {listed}")
    for name, default in declared.items():
        value = values[name]
        if type(value) is not type(default):
            text = f"; as text it is -r {name} {value}" if isinstance(default, str) else ""
            raise UsageError(
                f"parameter `{name}` is {inert(repr(value), 60)} ({type(value).__name__}), "
                f"it takes {type(default).__name__}{text}; the parameters are {listed}"
            )
        if default and isinstance(value, str) and not value.strip():  # one that may be empty is so by default
            raise UsageError(f"parameter `{name}` is empty; leave it out for `{default}`")


def _declares(cell: str) -> bool:
    """Whether the cell is a parameters cell: annotated literals and nothing else."""
    try:
        body = ast.parse(cell).body
    except SyntaxError:  # a line for IPython, such as %matplotlib
        return False
    return bool(body) and all(isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant) for node in body)
