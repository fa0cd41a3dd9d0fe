"""Convert a notebook to one self-contained HTML page.

It is for readers without Jupyter, from disk and in print.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from kgot_lab.errors import BadInput, needs_extra
from kgot_lab.io.files import write_atomically
from kgot_lab.viz.external_requests import find_external_requests, find_notebook_requests

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = Path(__file__).parent / "nbconvert"  # the folder's name is the template's name
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")


@dataclass(frozen=True)
class PageFrame:
    """The frame of a notebook's page: links to neighbouring pages, and their shared styles and script.

    `linked` maps each neighbouring notebook to its page. `stays` says that the folder may be moved, so that
    links to files outside it would break.
    """

    linked: Mapping[Path, str] = field(default_factory=dict)
    folder: Path = Path()
    navigation: str = ""
    style: str = ""  # the CSS file next to the page; "" if the styles are inline
    script: str = ""  # the JavaScript file next to the page; "" if no script runs
    stays: bool = False
    slides: bool = False  # cells with `slide_start` begin a slide


def build_page(notebook: NotebookNode, path: Path, frame: PageFrame) -> str:
    """Build the page of a notebook that was read from `path`, and perhaps run since, from what it holds.

    Widgets are left out. Links to the notebooks of the frame lead to their pages, and links to other existing
    files are made relative to its folder. Raises BadInput if the notebook is damaged, or if its page would
    fetch something.
    """
    notebook = _remove_widgets(notebook)
    notebook.metadata["title"] = notebook_title(notebook, path)
    page = _rewrite_links(_convert_notebook(notebook, path, frame), path, frame)
    own_files = {frame.style, frame.script}
    if external := [each for each in find_external_requests(page, beside=True) if each not in own_files]:
        requests = find_notebook_requests(notebook) or external
        problem = f"the page of {path} would fetch what is not in it; take this out of the notebook"
        raise BadInput(f"{problem}: {'; '.join(requests[:5])}")
    before, main, rest = page.partition("<main>")
    inside, end, after = rest.rpartition("</main>")
    return f"{before}{frame.navigation}\n{main}{inside}{end}\n{frame.navigation}{after}"


def page_name(path: Path | str) -> str:
    """Return the file name of a notebook's page."""
    return f"{Path(path).stem}.html"


# --- the notebook ---


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook in the current format.

    Raises BadInput if it is missing or damaged, and NotInstalled if nbconvert is missing.
    """
    with needs_extra("lab", "nbconvert"):
        import nbconvert  # noqa: F401
        from nbformat import reads as untyped
        from nbformat.reader import NotJSONError
        from nbformat.validator import ValidationError
    reads: Callable[..., NotebookNode] = untyped
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without an id, which is not needed here
            return reads(path.read_text(encoding="utf-8"), as_version=4)
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{path} cannot be read ({getattr(error, 'strerror', '') or error})"
        raise BadInput(f"{problem}; name an .ipynb file that is there") from error
    except (NotJSONError, ValidationError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no notebook, or a damaged one: save it again in Jupyter") from error


def _remove_widgets(notebook: NotebookNode) -> NotebookNode:
    """Remove outputs that only a live kernel can draw.

    The pictures before widgets stay.
    """
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            media = ((output, output.get("data", {})) for output in cell.outputs)
            cell.outputs = [o for o, kinds in media if not any("jupyter.widget" in kind for kind in kinds)]
    return notebook


def notebook_title(notebook: NotebookNode, path: Path) -> str:
    """Return the first heading, or the file name without suffix."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = (match[1] for text in texts for match in re.finditer(r"^#+\s+(.*?)\s*#*$", text, re.MULTILINE))
    return re.sub(r"[`*]", "", next(headings, path.stem))


def _convert_notebook(notebook: NotebookNode, path: Path, frame: PageFrame) -> str:
    """Convert the notebook with nbconvert and this package's template.

    Pictures next to the notebook are embedded.
    """
    from nbconvert.exporters import HTMLExporter
    from nbconvert.filters.markdown_mistune import InvalidNotebook

    folders = [str(TEMPLATE.parent)]
    settings = {"template_name": TEMPLATE.name, "extra_template_basedirs": folders, "embed_images": True}
    exporter_class: Callable[..., Any] = HTMLExporter
    exporter = exporter_class(**settings)
    try:
        metadata = {"name": path.stem, "path": str(path.parent)}
        page, _ = exporter.from_notebook_node(notebook, {"metadata": metadata, "frame": frame})
    except InvalidNotebook as error:
        raise BadInput(f"{path} is damaged ({error}): open it in Jupyter and save it again") from error
    return str(page)


# --- links ---


def _rewrite_links(page: str, path: Path, frame: PageFrame) -> str:
    """Rewrite each link of the page for the folder that the page is in."""

    def rewrite(match: re.Match[str]) -> str:
        address = unescape(match[3])
        if frame.stays and _leaves_folder(address, path, frame):
            return f'{match[1]}title="a file beside the notebook: {escape(address.partition("#")[0])}"'
        return f'{match[1]}{match[2]}{escape(_rewrite_link(address, path, frame))}"'

    return re.sub(r'(<a\b[^>]*?\s)(href=")([^"]*)"', rewrite, page)


def _rewrite_link(link: str, path: Path, frame: PageFrame) -> str:
    """Convert a link of a notebook to a link of its page.

    Addresses, anchors and missing files are left unchanged.
    """
    if _is_absolute_link(link):
        return link
    name, hash, anchor = link.partition("#")
    target = (path.parent / unquote(name)).resolve()
    if target in frame.linked:
        return f"{quote(frame.linked[target])}{hash}{anchor}"
    if not target.exists():
        return link
    return f"{quote(Path(os.path.relpath(target, frame.folder.resolve())).as_posix())}{hash}{anchor}"


def _leaves_folder(link: str, path: Path, frame: PageFrame) -> bool:
    """Return whether a link of a notebook leads to a file that has no page next to its own."""
    return not _is_absolute_link(link) and (
        path.parent / unquote(link.partition("#")[0])
    ).resolve() not in frame.linked.keys() | {path.resolve()}


def _is_absolute_link(link: str) -> bool:
    """Return whether a link is a URL, an anchor on the same page, or an absolute path."""
    return bool(SCHEME.match(link)) or link.startswith(("#", "/"))


# Slides from a notebook: one HTML file by nbconvert that fetches nothing.

_OMITTED_SECTIONS = ("In the package",)  # sections that are only for readers of the notebook
_HEADING = re.compile(r"^(?=#{1,6}\s)|^(?=\*\*\d+\.\*\*)", re.MULTILINE)  # an exercise begins with its number


def build_slides(path: Path | str) -> str:
    """Build the slides of a notebook as an HTML page.

    A slide begins at each heading and at each exercise. Slides with nothing below their heading, and cells
    for the reader's input, are left out. Nothing is run. Raises BadInput if the notebook is missing, is
    damaged, has nothing to show or would fetch something, and NotInstalled if nbconvert is missing.
    """
    path = Path(path)
    notebook = read_notebook(path)
    slides = list(_split_slides(notebook.cells))
    if not slides:
        raise BadInput(f"{path.name} has no heading, or nothing below one: there are no slides to make")
    for first, *rest in slides:
        first.metadata["slide_start"] = True
        for cell in rest:
            cell.metadata["slide_start"] = False
    notebook.cells = [cell for slide in slides for cell in slide]
    return build_page(notebook, path, PageFrame(folder=path.parent, slides=True, stays=True))


def write_slides(paths: Iterable[Path | str], folder: Path | str) -> tuple[Path, ...]:
    """Write the slides of some notebooks as NAME.slides.html in a folder, and return their paths.

    Raises what `build_slides` raises.
    """
    pages = {f"{Path(path).stem}.slides.html": build_slides(path) for path in paths}
    return tuple(write_atomically(Path(folder) / name, text, "the slides") for name, text in pages.items())


def _split_slides(cells: Iterable[NotebookNode]) -> Iterator[list[NotebookNode]]:
    """Yield the cells of each slide, splitting Markdown cells at their headings."""
    cells_of_slide: list[NotebookNode] = []
    for cell in _split_cells(cells):
        if cell.cell_type == "markdown" and _HEADING.match(cell.source):
            if _is_shown(cells_of_slide):
                yield cells_of_slide
            cells_of_slide = []
        cells_of_slide.append(cell)
    if _is_shown(cells_of_slide):
        yield cells_of_slide


def _split_cells(cells: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
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
    return heading not in _OMITTED_SECTIONS and bool(
        is_title or below.strip() or slide[1:] or not first.startswith("#")
    )
