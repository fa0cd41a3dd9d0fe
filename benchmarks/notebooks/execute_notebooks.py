"""Run notebooks from a clean kernel and store their outputs, without timings, widget views and widget state.

What would say more of the computer than of the notebook is refused: a folder of it, a place in memory, an
error, a warning.

A live view leaves a picture and then itself; only the picture is kept, since a view without its kernel is a
blank or an error. Execution counts stay: from a clean kernel they are always 1, 2, 3, and nbval takes a cell
without one for a cell that was not run.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.requirements import require_packages

if TYPE_CHECKING:
    from nbformat import NotebookNode

MOST = 300_000  # bytes of output a notebook may hold
LONGEST = 60  # seconds a notebook should take on two quiet cores; a slower one is said, since the computer may be busy
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path: Path) -> tuple[int, list[str]]:
    """Execute one notebook in its folder and write it back; the bytes of its outputs, and what must not stand
    in them.
    """
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.read(path, as_version=4)
    ExecutePreprocessor(timeout=120, kernel_name="python3").preprocess(
        notebook, {"metadata": {"path": str(path.parent)}}
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
    if _size(notebook) > MOST:
        _leave_out_copies(notebook)
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)
    return _size(notebook), troubles(notebook)


def _size(notebook: NotebookNode) -> int:
    return sum(len(str(cell.get("outputs", ""))) for cell in notebook.cells)


def _leave_out_copies(notebook: NotebookNode) -> None:
    """Keep each picture once, as the image that every reader shows: the bare SVG beside it serves LaTeX
    alone.
    """
    for data in (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])):
        if data.get("text/html", "").startswith("<img"):
            data.pop("image/svg+xml", None)


def troubles(notebook: NotebookNode) -> list[str]:
    """What must not stand in the outputs, a line for each: errors, warnings, folders of this computer, places
    in memory.
    """
    here = re.compile(
        "|".join([*map(re.escape, {str(Path.home()) + "/", str(Path.cwd()) + "/"}), r"\bat 0x[0-9a-f]{6}"])
    )
    found = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            words = [output.get("text", ""), output.get("evalue", ""), *output.get("data", {}).values()]
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"cell {number}: {output.output_type} {' '.join(map(str, words))[:200]}")
            elif held := here.search("\n".join(map(str, words))):
                found.append(f"cell {number} shows {held.group()}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("notebooks", nargs="+", type=Path)
    notebooks = parser.parse_args().notebooks
    require_packages("lab", "nbformat", "nbconvert", "ipykernel")
    for path in notebooks:
        began = time.monotonic()
        size, found = execute(path)
        took = time.monotonic() - began
        print(
            f"{path}: {size:,} bytes of output"
            + (f"; {took:.0f} s, and {LONGEST} are wanted" if took > LONGEST else "")
        )
        if size > MOST:
            sys.exit(f"{path} holds more than {MOST:,} bytes of output")
        if found:
            sys.exit(f"{path}: {'; '.join(found)}")


if __name__ == "__main__":
    main()
