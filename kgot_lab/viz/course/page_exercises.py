"""Exercises on a page: an answer under a seal is checked there, any other needs Python."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from kgot_lab.viz.live import place
from kgot_lab.viz.static.markup import Markup, element, joined

if TYPE_CHECKING:
    from nbformat import NotebookNode

_NEEDS_PYTHON = "This answer is worked out, or tried, by Python: open the notebook in Jupyter to check yours."


def with_answers(notebook: NotebookNode) -> NotebookNode:
    """The notebook in which each cell with an exercise shows a box for the answer, or says that checking it
    needs Python.
    """
    for number, cell in enumerate(notebook.cells):
        call = _exercise_in(cell.source) if cell.cell_type == "code" else None
        if call is None or not cell.outputs:
            continue
        said = "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        shown = cell.outputs[-1]
        shown["data"] = {"text/html": str(_box(call, said, f"exercise-{number}"))}
        cell.outputs = [shown]
    return notebook


def _box(call: ast.Call, said: str, key: str) -> Markup:
    """What stands below an exercise; what the kernel said of the blank answer is for readers without scripts."""
    seal = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) else ""
    if not (isinstance(seal, str) and seal.startswith("sealed:")):
        return joined([element("pre", said), element("p", _NEEDS_PYTHON, class_="small")])
    hints = (
        each.value.value
        for each in call.keywords
        if each.arg == "hint" and isinstance(each.value, ast.Constant)
    )
    data: dict[str, Any] = {"view": "answer", "seal": seal, "hint": str(next(hints, "")), "stands_for": key}
    return joined([element("pre", said, data_picture=key), place(data)])


def _exercise_in(source: str) -> ast.Call | None:
    """The call of `exercise` in a cell, if it holds one and is Python."""
    try:
        parsed = ast.parse(source)
    except SyntaxError:  # a cell of a magic
        return None
    calls = (node for node in ast.walk(parsed) if isinstance(node, ast.Call))
    return next((call for call in calls if ast.unparse(call.func).split(".")[-1] == "exercise"), None)
