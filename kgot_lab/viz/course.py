"""Publish notebooks as the pages of a course, with a front page.

Pages show notebooks as stored, or executed with live views.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kgot_lab.errors import BadInput, needs_extra
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import sentences
from kgot_lab.viz.live import FOR_PAGES, page_source, page_style, read_asset
from kgot_lab.viz.notebook_page import (
    TEMPLATE,
    PageFrame,
    build_page,
    notebook_title,
    page_name,
    read_notebook,
)
from kgot_lab.viz.page import html_document
from kgot_lab.viz.static.markup import Markup, bullet_list, element, shorten

if TYPE_CHECKING:
    from nbformat import NotebookNode

# The introduction of a notebook: its question, how long it takes, and what the reader will see.

_MINUTES = re.compile(r"\*\*Time:?\*\*:?\s*(\d+)\s*min")
_PICTURE = re.compile(r'<img src="(data:image/svg\+xml;base64,[\w+/=]+)"')
_MAX_PICTURE = 60_000  # characters of its address
_SIGHTS = re.compile(r"\*\*You will see:?\*\*\s*\n+((?:[-*] .*\n?(?:[ \t]+\S.*\n?)*)+)")


@dataclass(frozen=True)
class Chapter:
    """The description of a notebook on the front page.

    `minutes` is 0, and `sights` and `picture` are empty, if the notebook does not have them.
    """

    title: str
    about: str  # the paragraph below the title
    minutes: int
    sights: tuple[str, ...]
    picture: str = ""  # the largest one that is not too large, as a data address


def read_chapter(notebook: NotebookNode, path: Path) -> Chapter:
    """Extract title, first paragraph, minutes and sights from the Markdown cells of a notebook.

    A notebook without a heading is titled by its file name.
    """
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    whole = "\n\n".join(texts)
    minutes, sights_match = _MINUTES.search(whole), _SIGHTS.search(whole)
    lines = re.split(r"^[-*] ", sights_match[1], flags=re.MULTILINE)[1:] if sights_match else ()
    sights = tuple(_strip_markdown(line).rstrip(";.") for line in lines)
    title, about = notebook_title(notebook, path), _first_paragraph(texts)
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    pictures = (_PICTURE.match(output.get("data", {}).get("text/html", "")) for output in outputs)
    found = (match[1] for match in pictures if match and len(match[1]) < _MAX_PICTURE)
    picture = max(found, key=len, default="")
    return Chapter(title, about, int(minutes[1]) if minutes else 0, sights, picture)


def _first_paragraph(texts: Sequence[str]) -> str:
    """Return the first paragraph of prose in the first text of a notebook."""
    paragraphs = re.split(r"\n\s*\n", texts[0]) if texts else []
    prose = (part for part in paragraphs if not re.match(r"\s*(#|[-*>|!] ?|```|\*\*|\Z)", part))
    return next(map(_strip_markdown, prose), "")


def _strip_markdown(markdown: str) -> str:
    """Convert a line of Markdown to plain text, without emphasis, code marks and link targets."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[`*]", "", words).split())


# The front page of a course: for every notebook its question, what the reader will see, and how long it
# takes.

FRONT_PAGE = "index.html"

_MAX_ABOUT = 330  # maximum characters of a notebook's first paragraph, in whole sentences


def front_page(title: str, subtitle: str, chapters: Mapping[str, Chapter]) -> str:
    """Build the HTML of the front page.

    `chapters` maps the address of each page to its chapter, and is listed in this order. `subtitle` is put below
    the title.
    """
    minutes = sum(chapter.minutes for chapter in chapters.values())
    total = f", {_format_duration(minutes)} in all" if minutes else ""
    length = format_count(len(chapters), "notebook") + total
    entries = (_chapter_entry(number, *item) for number, item in enumerate(chapters.items(), start=1))
    head = element("h1", title), element("p", f"{length}. {subtitle}")
    return html_document(title, read_asset("front_page.css"), element("main", *head, element("ol", *entries)))


def _chapter_entry(number: int, address: str, chapter: Chapter) -> Markup:
    parts = [element("h2", element("a", chapter.title, href=address))]
    if about := _leading_sentences(chapter.about):
        parts.append(element("p", about, class_="about"))
    if chapter.sights:
        parts += [element("p", "You will see", class_="see"), bullet_list(chapter.sights)]
    minutes = element("span", f"{chapter.minutes} min", class_="minutes") if chapter.minutes else Markup()
    picture = element("img", src=chapter.picture, alt="") if chapter.picture else Markup()
    aside = element("aside", minutes, picture)
    return element("li", element("span", number, class_="number"), element("div", *parts), aside)


def _leading_sentences(about: str) -> str:
    """Return as many leading sentences of a paragraph as fit.

    If the first sentence does not fit, it is truncated.
    """
    selected = ""
    for sentence in sentences(about):
        if len(selected) + 1 + len(sentence) > _MAX_ABOUT:
            break
        selected = f"{selected} {sentence}".strip()
    return selected or shorten(about, _MAX_ABOUT)


def _format_duration(minutes: int) -> str:
    """Format a duration in minutes, or in hours and half hours from 90 minutes on."""
    if minutes < 90:
        return f"about {format_count(minutes, 'minute')}"
    halves = round(minutes / 30)
    return f"about {halves // 2}{' and a half' if halves % 2 else ''} hours"


# Execution of a notebook, with its live views in place of their widgets.

CELL_TIMEOUT = 300  # time limit of a cell


def execute_live(notebook: NotebookNode, path: Path) -> NotebookNode:
    """Run all cells in a new kernel in the folder of `path`, where views and exercises take their page form.

    This runs arbitrary code from the notebook. Raises BadInput if a cell fails
    or takes more than `CELL_TIMEOUT`, and NotInstalled if the notebook packages are missing.
    """
    with needs_extra("lab", "nbclient"):
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    client_class: Any = NotebookClient
    resources = {"metadata": {"path": str(path.parent)}}
    client = client_class(notebook, timeout=CELL_TIMEOUT, kernel_name="python3", resources=resources)
    try:
        client.execute(env={**os.environ, FOR_PAGES: "1"})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        error_text = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error)
        failure = f"{_describe_failed_cell(notebook)}{shorten(error_text, 200)}"
        raise BadInput(f"{path} does not run from its beginning: {failure}; run it in Jupyter") from error
    return notebook


def _describe_failed_cell(notebook: NotebookNode) -> str:
    """Return the number and the beginning of the cell that raised an error, or ""."""
    for number, cell in enumerate(notebook.cells, start=1):
        if any(output.get("output_type") == "error" for output in cell.get("outputs", ())):
            return f"cell {number} ({shorten(cell.source, 60)}): "
    return ""


def has_live_view(notebook: NotebookNode) -> bool:
    """Return whether an output of the notebook needs the script of the live views."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return any("data-view=" in output.get("data", {}).get("text/html", "") for output in outputs)


SHARED_STYLE, SHARED_SCRIPT = "course.css", "views.js"  # shared by all pages of a live course
_STATIC_INTRO = "The pages show the notebooks as stored: text, code and outputs, with static pictures."
_LIVE_INTRO = (
    "Graphs and runs on these pages are interactive: click, search, step, guess. They need no Python and fetch nothing; "
    "where something does need Python, the page says so."
)


def write_course(
    paths: Iterable[Path | str],
    folder: Path | str,
    *,
    live: bool = False,
    title: str = "Notebooks",
    tell: Callable[[str], None] = lambda said: None,
) -> tuple[Path, ...]:
    """Write a front page and a page for each notebook into a folder, and return their paths.

    The pages link to each other. With `live`, each notebook is run from its beginning and its live views work
    on its page. All pages then share one CSS and one JavaScript file, and the folder can be moved or served
    as it is. Otherwise the notebooks are taken as stored, and each page is self-contained. `tell` is called
    with a progress message. The folder is created if necessary. All pages are built before the first is
    written.

    Raises BadInput if there is no notebook, if two share a name, or if one is damaged, does not run or has a
    page that would fetch something. Raises NotInstalled if nbconvert is missing.
    """
    notebooks, folder = [Path(path) for path in paths], Path(folder)
    names = _page_names(notebooks)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"the pages cannot go into {folder}, which is a file: name a folder")
    chapters: dict[str, Chapter] = {}
    pages: dict[str, str] = {}
    loaded = [read_notebook(path) for path in notebooks]
    for number, (path, notebook) in enumerate(zip(notebooks, loaded, strict=True)):
        chapters[quote(names[number])] = read_chapter(notebook, path)
        if live:
            tell(f"running {path}")
            notebook = execute_live(notebook, path)
        page_by_path = {other.resolve(): name for other, name in zip(notebooks, names, strict=True)}
        frame = PageFrame(page_by_path, folder, _navigation(names, number))
        if live:
            script = SHARED_SCRIPT if has_live_view(notebook) else ""
            frame = replace(frame, style=SHARED_STYLE, script=script, stays=True)
        pages[names[number]] = build_page(notebook, path, frame)
    front = front_page(title, _LIVE_INTRO if live else _STATIC_INTRO, chapters)
    texts = {**(_shared_files() if live else {}), **pages, FRONT_PAGE: front}
    written = {name: write_atomically(folder / name, text, "the page") for name, text in texts.items()}
    return tuple(written[name] for name in (FRONT_PAGE, *names))


def _page_names(notebooks: Sequence[Path]) -> list[str]:
    """Return the file name of each notebook's page."""
    if not notebooks:
        raise BadInput("there is no notebook to make a page of: name .ipynb files")
    names = [page_name(path) for path in notebooks]
    if duplicates := {name for name in names if [FRONT_PAGE, *names].count(name) > 1}:
        problem = f"two pages would become {', '.join(sorted(duplicates))}"
        raise BadInput(f"{problem}: write them into different folders, or rename a notebook")
    return names


def _navigation(names: Sequence[str], number: int) -> Markup:
    """Build links to the previous page, the front page and the next page."""
    before, after = names[number - 1] if number else "", "".join(names[number + 1 : number + 2])
    labels = {"Before": before, "All notebooks": FRONT_PAGE, "Next": after}.items()
    links = (element("a", label, href=quote(name)) if name else element("span") for label, name in labels)
    return element("nav", *links, aria_label="Pages")


def _shared_files() -> Mapping[str, str]:
    """Return the text of the files that all pages of a live course share, by file name."""
    css = [(TEMPLATE / name).read_text(encoding="utf-8") for name in ("page.css", "pygments.css")]
    return {SHARED_STYLE: "\n".join([*css, page_style()]), SHARED_SCRIPT: page_source()}
