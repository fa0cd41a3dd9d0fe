"""What of a notebook's cells belongs on slides: texts without their marks, pictures that hold their own
content, tables, short code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput
from kgot_lab.viz.static.markup import Markup, element, image, joined, shortened

CODE_LINES, _LINES_OUT, _ROWS, _CELL = (
    8,
    10,
    8,
    90,
)  # lines of code and of output, rows of a table and letters of a cell that fit on a slide
_PICTURE = re.compile(r'<img\s[^>]*?src="(data:image/(?:svg\+xml|png|jpeg);base64,[A-Za-z0-9+/=\s]+)"')
_MARK = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class CellTold:
    """A cell of text, its headings taken off: paragraphs and bullets, in order."""

    blocks: tuple[str, ...]


@dataclass(frozen=True)
class Heading:
    """A heading and its level: 1 for the notebook's title."""

    level: int
    text: str


@dataclass(frozen=True)
class CellShown:
    """A cell of code with what it gave: pictures and tables as markup, and text."""

    code: str
    pictures: tuple[Markup, ...]
    tables: tuple[Markup, ...]
    text: str

    @property
    def gives(self) -> bool:
        """Whether the cell gave anything to look at."""
        return bool(self.pictures or self.tables or self.text)


def notebook_parts(path: Path) -> Iterator[CellTold | Heading | CellShown]:
    """The parts of a notebook on file; raises BadInput for one that is missing or damaged."""
    try:
        cells = [
            (cell["cell_type"], _text(cell["source"]), cell.get("outputs", []))
            for cell in json.loads(path.read_text("utf-8"))["cells"]
        ]
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read ({error.strerror}); name an .ipynb file that is there"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"{path} is not a notebook, or a damaged one ({type(error).__name__}): save it again in Jupyter"
        ) from None
    for kind, source, outputs in cells:
        if kind == "markdown":
            yield from _told(source)
        elif kind == "code" and "lab.exercise(" not in source:
            yield _shown(source, outputs if isinstance(outputs, list) else [])


def inline(text: str) -> Markup:
    """A line of Markdown as markup: code, bold and italic stay, of a link its words; whatever else it holds
    is text.
    """
    parts: list[object] = []
    at = 0
    for match in _MARK.finditer(text):
        parts.append(text[at : match.start()])
        code, bold, italic, link = match.groups()
        parts.append(
            element("code", code)
            if code
            else element("b", bold)
            if bold
            else element("i", italic)
            if italic
            else unmarked(link or "")
        )
        at = match.end()
    return joined([*parts, text[at:]])


def unmarked(text: str) -> str:
    """A line of Markdown without its marks."""
    return _MARK.sub(
        lambda match: next(
            (unmarked(each) if match.group(4) else each for each in match.groups() if each), ""
        ),
        text,
    )


# --- texts
# ------------------------------------------------------------------------------------------------------------


def _told(source: str) -> Iterator[CellTold | Heading]:
    blocks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", source.strip()):
        lines = paragraph.splitlines()
        if lines and (heading := re.match(r"(#{1,6})\s+(.*?)\s*#*$", lines[0])):
            if blocks:
                yield CellTold(tuple(blocks))
                blocks = []
            yield Heading(len(heading[1]), unmarked(heading[2]))
            lines = lines[1:]
        blocks += _joined(lines)
    if blocks:
        yield CellTold(tuple(blocks))


def _joined(lines: Sequence[str]) -> list[str]:
    """Lines of a paragraph as one, each bullet as one; a bullet keeps its mark."""
    blocks: list[str] = []
    for line in lines:
        if re.match(r"\s*[-*]\s", line):
            blocks.append("- " + re.sub(r"^\s*[-*]\s+", "", line))
        elif blocks:
            blocks[-1] += f" {line.strip()}"
        elif line.strip():
            blocks.append(line.strip())
    return blocks


# --- code and what it gave
# --------------------------------------------------------------------------------------------


def _shown(source: str, outputs: Sequence[Any]) -> CellShown:
    pictures: list[Markup] = []
    tables: list[Markup] = []
    texts: list[str] = []
    for data in (output.get("data", {}) if isinstance(output, dict) else {} for output in outputs):
        page = _text(data.get("text/html", ""))
        if picture := _picture(data, page):
            pictures.append(picture)
        elif "<table" in page:
            tables += _tables(page)
        else:
            texts.append(_text(data.get("text/unmarked", "")))
    text = texts[-1].splitlines() if texts else []  # the value; what stands before it is progress
    return CellShown(
        source,
        tuple(pictures),
        tuple(tables),
        "\n".join([*text[:_LINES_OUT], *["…"] * (len(text) > _LINES_OUT)]),
    )


def _picture(data: Mapping[str, Any], page: str) -> Markup | None:
    """The picture of an output as an image that holds its content; a script in it does not run there."""
    alt = shortened(_text(data.get("text/unmarked", "")), 200)
    if match := _PICTURE.search(page):
        return element("img", src="".join(match[1].split()), alt=alt)
    if svg := _text(data.get("image/svg+xml", "")):
        return image(svg, alt)
    if png := "".join(_text(data.get("image/png", "")).split()):
        return element("img", src=f"data:image/png;base64,{png}", alt=alt)
    return None


class _Rows(HTMLParser):
    """The texts of the cells of the tables of a page; nothing else of it is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
        self._open = tag in ("td", "th") or (self._open and tag not in ("table", "tr", "caption"))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("td", "th", "tr", "table")

    def handle_data(self, data: str) -> None:
        if self._open and self.tables and self.tables[-1] and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data


def _tables(page: str) -> Iterator[Markup]:
    reader = _Rows()
    reader.feed(page)
    for rows in reader.tables:
        shown = [
            element("tr", *(element("td", shortened(cell, _CELL)) for cell in row))
            for row in rows[: _ROWS + 1]
        ]
        more = (
            [element("p", f"… and {len(rows) - _ROWS - 1} rows more", class_="more")]
            if len(rows) > _ROWS + 1
            else []
        )
        yield joined([element("table", *shown), *more])


def _text(source: Any) -> str:
    if isinstance(source, str):
        return source
    return "".join(part for part in source if isinstance(part, str)) if isinstance(source, list) else ""
