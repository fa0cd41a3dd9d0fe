"""What a notebook says of itself at its beginning: its question, how long it takes, and what one will see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.viz.notebook_page import notebook_title

if TYPE_CHECKING:
    from nbformat import NotebookNode

_MINUTES = re.compile(r"\*\*Time:?\*\*:?\s*(\d+)\s*min")
_SIGHTS = re.compile(r"\*\*You will see:?\*\*\s*\n+((?:[-*] .*\n?(?:[ \t]+\S.*\n?)*)+)")


@dataclass(frozen=True)
class Chapter:
    """A notebook as a front page tells of it; `minutes` is 0 and `sights` is empty where it does not say."""

    title: str
    about: str  # the paragraph below the title
    minutes: int
    sights: tuple[str, ...]


def chapter_of(notebook: NotebookNode, path: Path) -> Chapter:
    """What the texts of a notebook say of it; without a heading it is called as its file."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    whole = "\n\n".join(texts)
    minutes, seen = _MINUTES.search(whole), _SIGHTS.search(whole)
    return Chapter(
        notebook_title(notebook, path),
        _first_paragraph(texts),
        int(minutes[1]) if minutes else 0,
        tuple(_plain(line).rstrip(";.") for line in re.split(r"^[-*] ", seen[1], flags=re.MULTILINE)[1:])
        if seen
        else (),
    )


def _first_paragraph(texts: Sequence[str]) -> str:
    """The first paragraph of prose of the text that the notebook begins with."""
    parts = re.split(r"\n\s*\n", texts[0]) if texts else []
    return next(
        (_plain(part) for part in parts if part.strip() and not re.match(r"\s*(#|[-*>|!] ?|```|\*\*)", part)),
        "",
    )


def _plain(markdown: str) -> str:
    """A line of Markdown as words: without emphasis, code marks and the addresses of links."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return " ".join(re.sub(r"[`*]", "", words).split())
