"""Notebooks written as the pages of a course, with a front page: as they are stored, or run anew and alive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.viz.course import FRONT_PAGE, Chapter, chapter_of, execute_live, front_page, is_alive
from kgot_lab.viz.live import page_source, page_style
from kgot_lab.viz.notebook_page import TEMPLATE, PageFrame, framed_page, page_name, read_notebook
from kgot_lab.viz.static.markup import Markup, element

SHARED_STYLE, SHARED_SCRIPT = "course.css", "views.js"  # what all pages of a live course share
_STILL = "The pages show the notebooks as they were stored: texts, code, and what the code gave, with still pictures."
_LIVE = (
    "The graphs and runs on the pages live: click, search, step, guess. They need no Python and ask for nothing from anywhere; "
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
    """Write a front page and the page of each notebook into a folder, linked with each other, and return
    their paths.

    With `live` each notebook is run from its beginning and its live views live on its page; all pages then
    share one file of styles and one of scripts, and the folder can be moved or served as it is. Else they are
    taken as they are stored, and each page needs nothing beside it. `tell` hears what is being done. The
    folder is made if need be; all pages are made before the first is written. Raises BadInput for no
    notebook, a damaged one, one that does not run, one whose page would fetch something, and for two of one
    name; NotInstalled without nbconvert.
    """
    notebooks, folder = [Path(path) for path in paths], Path(folder)
    names = _names(notebooks)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"the pages cannot go into {folder}, which is a file: name a folder")
    chapters: dict[str, Chapter] = {}
    pages: dict[str, str] = {}
    read = [read_notebook(path) for path in notebooks]
    for number, (path, notebook) in enumerate(zip(notebooks, read, strict=True)):
        chapters[quote(names[number])] = chapter_of(notebook, path)
        if live:
            tell(f"running {path}")
            notebook = execute_live(notebook, path)
        linked = {other.resolve(): name for other, name in zip(notebooks, names, strict=True)}
        frame = PageFrame(linked, folder, _navigation(names, number))
        if live:
            frame = replace(
                frame, style=SHARED_STYLE, script=SHARED_SCRIPT if is_alive(notebook) else "", stays=True
            )
        pages[names[number]] = framed_page(notebook, path, frame)
    texts = {
        **(_shared() if live else {}),
        **pages,
        FRONT_PAGE: front_page(title, _LIVE if live else _STILL, chapters),
    }
    written = {name: write_whole(folder / name, text, "the page") for name, text in texts.items()}
    return tuple(written[name] for name in (FRONT_PAGE, *names))


def _names(notebooks: Sequence[Path]) -> list[str]:
    """The file name of each notebook's page."""
    if not notebooks:
        raise BadInput("there is no notebook to make a page of: name .ipynb files")
    names = [page_name(path) for path in notebooks]
    if twice := {name for name in names if [FRONT_PAGE, *names].count(name) > 1}:
        raise BadInput(
            f"two pages would become {', '.join(sorted(twice))}: write them into different folders, or rename a notebook"
        )
    return names


def _navigation(names: Sequence[str], number: int) -> Markup:
    """Links to the page before, to the front page and to the page after."""
    ends = {
        "Before": names[number - 1] if number else "",
        "All notebooks": FRONT_PAGE,
        "Next": names[number + 1] if number + 1 < len(names) else "",
    }
    return element(
        "nav",
        *(element("a", said, href=quote(name)) if name else element("span") for said, name in ends.items()),
        aria_label="Pages",
    )


def _shared() -> Mapping[str, str]:
    """The files that all pages of a live course share."""
    css = [(TEMPLATE / name).read_text(encoding="utf-8") for name in ("page.css", "pygments.css")]
    return {SHARED_STYLE: "\n".join([*css, page_style()]), SHARED_SCRIPT: page_source()}
