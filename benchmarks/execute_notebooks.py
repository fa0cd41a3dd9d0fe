"""Run notebooks from a clean kernel and store their outputs, without timings, widget views and widget state.

A live view leaves a picture and then itself; only the picture is kept, since a view without its kernel is a blank or an error.
Execution counts stay: from a clean kernel they are always 1, 2, 3, and nbval takes a cell without one for a cell that was not run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

MOST = 300_000  # bytes of output a notebook may hold
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path: Path) -> int:
    """Execute one notebook in its folder and write it back; the bytes of its outputs."""
    notebook = nbformat.read(path, as_version=4)
    ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(path.parent)}})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    if _size(notebook) > MOST:
        _leave_out_copies(notebook)
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)
    return _size(notebook)


def _size(notebook: nbformat.NotebookNode) -> int:
    return sum(len(str(cell.get("outputs", ""))) for cell in notebook.cells)


def _leave_out_copies(notebook: nbformat.NotebookNode) -> None:
    """Keep each picture once, as the image that every reader shows: the bare SVG beside it serves LaTeX alone."""
    for data in (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])):
        if data.get("text/html", "").startswith("<img"):
            data.pop("image/svg+xml", None)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        size = execute(Path(name))
        print(f"{name}: {size:,} bytes of output")
        if size > MOST:
            sys.exit(f"{name} holds more than {MOST:,} bytes of output")
