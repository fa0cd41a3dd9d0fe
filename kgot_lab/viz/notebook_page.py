"""A notebook as one HTML page that needs nothing else: for readers without Jupyter, from disk and on paper."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from kgot_lab.draw.outside import notebook_references, references
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.writing import write_whole

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = Path(__file__).parent / "nbconvert"  # the folder's name is the template's name
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")


def notebook_page(path: Path | str, *, beside: Iterable[Path | str] = (), folder: Path | str | None = None) -> str:
    """The text of a notebook's page: its texts, its code and its stored outputs; nothing is run, widgets are left out.

    Links to the notebooks in `beside`, which are pages in the same `folder` too, lead to those pages; links to other files that are
    there lead to them from `folder`, by default the notebook's own. Raises BadInput for a missing or damaged notebook and for one
    whose page would fetch something, NotInstalled without nbconvert.
    """
    path = Path(path)
    folder = Path(folder) if folder is not None else path.parent
    notebook = _without_widgets(_read(path))
    notebook.metadata["title"] = _title(notebook, path)
    page = _linked(_converted(notebook, path), path, {Path(other).resolve(): page_name(other) for other in beside}, folder)
    if left := references(page, beside=True):
        found = [str(reference) for reference in notebook_references(path)] or left
        raise BadInput(f"the page of {path} would fetch what is not in it; take this out of the notebook: {'; '.join(found[:5])}")
    return page


def write_notebook_pages(paths: Iterable[Path | str], folder: Path | str) -> tuple[Path, ...]:
    """Write the pages of some notebooks into a folder, linked with each other, and return their paths; raises as `notebook_page` does.

    The folder is made if it is not there; all pages are made before the first is written.
    """
    notebooks, folder = [Path(path) for path in paths], Path(folder)
    names = [page_name(path) for path in notebooks]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadInput(f"two notebooks would become {', '.join(sorted(twice))}: write them into different folders")
    pages = [notebook_page(path, beside=notebooks, folder=folder) for path in notebooks]
    return tuple(write_whole(folder / name, page, "the page") for name, page in zip(names, pages, strict=True))


def page_name(path: Path | str) -> str:
    """The file name of a notebook's page."""
    return f"{Path(path).stem}.html"


# --- the notebook -----------------------------------------------------------------------------------------------------


def _read(path: Path) -> NotebookNode:
    """The notebook in a file, in the current format."""
    try:
        import nbconvert  # noqa: F401
        from nbformat import reads as untyped
        from nbformat.reader import NotJSONError
        from nbformat.validator import ValidationError
    except ImportError as error:
        raise NotInstalled("lab", "nbconvert") from error
    reads: Callable[..., NotebookNode] = untyped
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without an id: nothing here needs one
            return reads(path.read_text(encoding="utf-8"), as_version=4)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read ({error}); name an .ipynb file that is there") from error
    except (NotJSONError, ValidationError, AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not a notebook, or a damaged one: open it in Jupyter and save it again") from error


def _without_widgets(notebook: NotebookNode) -> NotebookNode:
    """The notebook without what only a live kernel can draw; the pictures that stand before widgets stay."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not any("jupyter.widget" in kind for kind in output.get("data", {}))]
    return notebook


def _title(notebook: NotebookNode, path: Path) -> str:
    """The first heading, or else the name of the file."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = (match[1] for text in texts for match in re.finditer(r"^#+\s+(.*?)\s*#*$", text, re.MULTILINE))
    return re.sub(r"[`*]", "", next(headings, path.stem))


def _converted(notebook: NotebookNode, path: Path) -> str:
    """The page as nbconvert makes it with the template in this package; pictures beside the notebook go into it."""
    from nbconvert.exporters import HTMLExporter
    from nbconvert.filters.markdown_mistune import InvalidNotebook

    settings: dict[str, Any] = {"template_name": TEMPLATE.name, "extra_template_basedirs": [str(TEMPLATE.parent)], "embed_images": True}
    maker: Callable[..., Any] = HTMLExporter
    exporter = maker(**settings)
    try:
        page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": path.stem, "path": str(path.parent)}})
    except InvalidNotebook as error:
        raise BadInput(f"{path} is damaged ({error}): open it in Jupyter and save it again") from error
    return str(page)


# --- links ------------------------------------------------------------------------------------------------------------


def _linked(page: str, path: Path, pages: Mapping[Path, str], folder: Path) -> str:
    """The page with each link leading where it should from the folder that the page is in."""

    def led(match: re.Match[str]) -> str:
        return f"{match[1]}{escape(_led(unescape(match[2]), path, pages, folder))}{match[3]}"

    return re.sub(r'(<a\b[^>]*?\shref=")([^"]*)(")', led, page)


def _led(link: str, path: Path, pages: Mapping[Path, str], folder: Path) -> str:
    """A link from a notebook as a link from its page; addresses, anchors and files that are not there stay as they are."""
    if SCHEME.match(link) or link.startswith(("#", "/")):
        return link
    name, hash, anchor = link.partition("#")
    target = (path.parent / unquote(name)).resolve()
    if target in pages:
        return f"{quote(pages[target])}{hash}{anchor}"
    if not target.exists():
        return link
    return f"{quote(Path(os.path.relpath(target, folder.resolve())).as_posix())}{hash}{anchor}"
