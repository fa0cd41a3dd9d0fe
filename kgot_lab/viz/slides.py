"""Slides from a notebook: one HTML file that fetches nothing, made by nbconvert."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.viz.notebook_page import PageFrame, framed_page, read_notebook

if TYPE_CHECKING:
    from nbformat import NotebookNode

_LEFT_OUT = ("In the package",)  # sections for readers of the notebook alone
_HEADING = re.compile(r"^(?=#{1,6}\s)|^(?=\*\*\d+\.\*\*)", re.MULTILINE)  # an exercise begins with its number


def slides_of(path: Path | str) -> str:
    """Return the slides of a notebook as the text of an HTML page.

    A slide begins at each heading and at each exercise; slides without anything below their heading, and
    cells that a reader types into, are left out. Nothing is run. Raises BadInput for a notebook that is
    missing, damaged, has nothing to show or would fetch something; NotInstalled without nbconvert.
    """
    path = Path(path)
    notebook = read_notebook(path)
    slides = list(_slides(notebook.cells))
    if not slides:
        raise BadInput(
            f"{path.name} has no heading and nothing below one: there is nothing to make slides of"
        )
    for first, *rest in slides:
        first.metadata["slide_start"] = True
        for cell in rest:
            cell.metadata["slide_start"] = False
    notebook.cells = [cell for slide in slides for cell in slide]
    return framed_page(notebook, path, PageFrame(folder=path.parent, slides=True, stays=True))


def write_slides(paths: Iterable[Path | str], folder: Path | str) -> tuple[Path, ...]:
    """Write the slides of some notebooks into a folder, each as NAME.slides.html, and return their paths;
    raises as `slides_of` does.
    """
    made = {f"{Path(path).stem}.slides.html": slides_of(path) for path in paths}
    return tuple(write_whole(Path(folder) / name, text, "the slides") for name, text in made.items())


def _slides(cells: Iterable[NotebookNode]) -> Iterator[list[NotebookNode]]:
    """The cells of each slide, a cell of text split at its headings."""
    slide: list[NotebookNode] = []
    for cell in _split(cells):
        if cell.cell_type == "markdown" and _HEADING.match(cell.source):
            if _is_shown(slide):
                yield slide
            slide = []
        slide.append(cell)
    if _is_shown(slide):
        yield slide


def _split(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    from nbformat import v4

    new_cell: Callable[..., NotebookNode] = v4.new_markdown_cell
    for cell in cells:
        if cell.cell_type == "markdown":
            for part in filter(str.strip, _HEADING.split(cell.source)):
                yield new_cell(part, attachments=cell.get("attachments", {}))
        elif cell.cell_type == "code" and "lab.exercise(" not in cell.source:
            yield cell


def _is_shown(slide: list[NotebookNode]) -> bool:
    if not slide:
        return False
    first, _, below = slide[0].source.strip().partition("\n")
    heading = first.lstrip("#").strip() if slide[0].cell_type == "markdown" else ""
    is_title = first.startswith("# ")
    return heading not in _LEFT_OUT and bool(
        is_title or below.strip() or slide[1:] or not first.startswith("#")
    )
