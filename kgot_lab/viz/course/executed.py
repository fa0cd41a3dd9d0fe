"""A notebook run from its beginning, with the live views that its cells showed put where their widgets stood."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.types import Json
from kgot_lab.viz.course import with_answers
from kgot_lab.viz.graph.view_data import NOTHING_OPENS
from kgot_lab.viz.live import FOR_PAGES, VIEWS, place
from kgot_lab.viz.static.markup import shortened

if TYPE_CHECKING:
    from nbformat import NotebookNode

SECONDS = 300  # that a cell may take
_WIDGET = "application/vnd.jupyter.widget-view+json"
_STATE = "application/vnd.jupyter.widget-state+json"
_ALONE = {  # what of a view needs Python; the explorer says so itself
    "stepper": "On this page the run can be walked, guessed and compared. Changing an event to fork it needs a running notebook.",
    "review": "This page shows one moment. Deciding needs a running notebook.",
    "editing": "This page shows one moment. Changing the graph needs a running notebook.",
    "talk": "These answers were given before. Asking something else needs a running notebook.",
}


def execute_live(notebook: NotebookNode, path: Path) -> NotebookNode:
    """Run all cells in a new kernel in the folder of `path`, and put each live view, with its data, where its
    widget stood.

    Whoever wrote the notebook decides what is run. Raises BadInput for a notebook of which a cell fails or
    takes more than `SECONDS`; NotInstalled without the packages of notebooks.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise NotInstalled("lab", "nbclient") from error
    maker: Any = NotebookClient
    client = maker(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    try:
        client.execute(env={**os.environ, FOR_PAGES: "1"})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        said = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error)
        where = _failed_at(notebook)
        raise BadInput(
            f"{path} does not run from its beginning: {where}{shortened(said, 200)}; run it in Jupyter"
        ) from error
    return with_answers(_alive(notebook))


def _failed_at(notebook: NotebookNode) -> str:
    """Which cell left an error, and how it begins; "" where none did."""
    for number, cell in enumerate(notebook.cells, start=1):
        if any(output.get("output_type") == "error" for output in cell.get("outputs", ())):
            return f"cell {number} ({shortened(cell.source, 60)}): "
    return ""


def is_alive(notebook: NotebookNode) -> bool:
    """Whether something on the notebook's page needs the script of the live views."""
    htmls = (
        output.get("data", {}).get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    return any("data-view=" in html for html in htmls)


def _alive(notebook: NotebookNode) -> NotebookNode:
    """The notebook with a place for each live view whose data a kernel left; other widgets go."""
    kept: Mapping[str, Any] = notebook.metadata.pop("widgets", {}).get(_STATE, {}).get("state", {})
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            shown = output.get("data", {}).get(_WIDGET)
            data = kept.get(shown.get("model_id"), {}).get("state", {}).get("data") if shown else None
            if isinstance(data, Mapping) and data.get("view") in VIEWS:
                output["data"] = {"text/html": str(place({**data, "alone": _alone(data)}))}
    return notebook


def _alone(data: Mapping[str, Json]) -> str:
    """What a reader of the page cannot do in this view, in words; "" when all of it works without Python."""
    if data["view"] == "graph":
        return str(data.get("alone", NOTHING_OPENS)) if data.get("total") else ""
    return _ALONE.get(str(data["view"]), "")
