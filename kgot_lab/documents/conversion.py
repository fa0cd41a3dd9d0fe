"""The converter process, which turns PDF, HTML and Office files into Markdown.

It is a separate process because a file may take any amount of time and memory. Requests and replies have a
header with two lengths: that of JSON, and that of a file's bytes, which is 0 in replies.
"""

from __future__ import annotations

import copy
import html
import io
import json
import os
import re
import select
import struct
import sys
import warnings
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, time
from itertools import count, product, takewhile
from pathlib import Path
from typing import Any, BinaryIO

from kgot_lab.documents.archives import require_short_directory
from kgot_lab.documents.tables import is_value
from kgot_lab.errors import BadInput, NotInstalled

CONVERTERS = {
    ".html": "HtmlConverter", ".htm": "HtmlConverter", ".xhtml": "HtmlConverter", ".pdf": "PdfConverter",
    ".docx": "DocxConverter", ".pptx": "PptxConverter", ".xlsx": "XlsxConverter", ".ipynb": "IpynbConverter",
}  # fmt: skip
_OFFICE = {  # the member that identifies an Office file, and the name of the format
    ".docx": ("word/document.xml", "Word file", "a Word document"),
    ".pptx": ("ppt/presentation.xml", "PowerPoint file", "slides"),
    ".xlsx": ("xl/workbook.xml", "Excel file", "an Excel workbook"),
}
# the title of a Word document is above its headings
_WORD_STYLES = {"Title": 1} | {f"{name} {n}": n + 1 for n in range(1, 6) for name in ("heading", "Heading")}
_WORD_HEADINGS = "\n".join(f"p[style-name='{style}'] => h{n}:fresh" for style, n in _WORD_STYLES.items())
# literal signs are escaped; what is underlined or struck through is plain text
_MARKDOWN = {"escape_misc": True, "autolinks": False, "strip": ["u", "s", "del", "strike"]}
# a sign that has no meaning where it stands, or that begins an item
_NEEDLESS_ESCAPE = re.compile(r"(?<!\\)\\([-+=&>~<])")
_TABLE_PARTS = ". | tr | */tr | tr/* | */tr/*"
_MOST_UNPACKED = 500_000_000  # unpacked bytes of an Office file
# unpacked bytes allowed for any file, and beyond that the maximum ratio to its size
_SAFE_SIZE, _RATIO = (10_000_000, 200)
_MOST_TABLE_PAGES = 100  # pages of a PDF searched for tables
_LEAST_RULES = 6  # lines on a page that may hold one
_MOST_TEXT = 50_000_000  # characters
MESSAGE_HEADER = struct.Struct(">II")
_IDLE_SECONDS = 60.0  # idle seconds after which the process exits

ConversionReply = dict[str, str]  # text, title and notes; or error, and in `extra` what is missing


def main() -> None:
    """Convert files from standard input until it closes or is idle for a while."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a converter's output must not mix with replies
    _prepare()
    _send(replies, {})  # signals readiness
    while _request_arrived(requests) and (head := requests.read(MESSAGE_HEADER.size)):
        header_size, size = MESSAGE_HEADER.unpack(head)
        request = json.loads(requests.read(header_size))
        _limit_memory(request["memory_mb"])
        try:
            reply = convert(requests.read(size), request["extension"])
        except MemoryError:
            reply = {"error": "needs more memory than a file may take", "spent": "memory"}
        _send(replies, reply)


def convert(data: bytes, extension: str) -> ConversionReply:
    """Convert a file to text. `error` of the result says why it cannot be converted."""
    try:
        if extension in _OFFICE:
            _check_office_file(data, *_OFFICE[extension])
        if extension == ".xlsx":
            text, title, notes = _workbook_text(data)
        else:
            text, title, notes = _converted_text(data, extension)
            text += _margin_text(data) if extension == ".docx" else ""
            text = (_pdf_with_tables(data) if extension == ".pdf" and "\n|" not in text else "") or text
        if len(text) > _MOST_TEXT:
            raise BadInput(f"holds more than {_MOST_TEXT // 1_000_000} million characters")
        return {"text": text, "title": title, "notes": notes}
    except BadInput as error:
        return {"error": str(error)}
    except NotInstalled as error:
        return {"error": str(error), "extra": error.extra}
    except ImportError:
        return {"error": "markitdown is not installed", "extra": "lab"}
    except MemoryError:
        raise
    except Exception as error:  # any parser error of a broken file
        return {"error": f"cannot be read as {extension} ({type(error).__name__}: {str(error)[:200]})"}


def _converted_text(data: bytes, extension: str) -> tuple[str, str, str]:
    """Return the text of a file as Markdown, its title, and what the converter warns of."""
    from markitdown import MissingDependencyException, StreamInfo

    try:
        # the specific converter, since the guessing one reads a broken PDF as plain text
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            info = StreamInfo(extension=extension, charset="utf-8")
            options = {"style_map": _WORD_HEADINGS} if extension == ".docx" else {}
            result = _converter(extension).convert(io.BytesIO(data), info, **options)
    except MissingDependencyException:
        raise NotInstalled("lab", f"the {extension} part of markitdown") from None
    others = [each for each in caught if not issubclass(each.category, DeprecationWarning)]
    notes = "; ".join(dict.fromkeys(str(other.message)[:200] for other in others))
    return result.text_content, (result.title or "").strip(), notes


def _margin_text(data: bytes) -> str:
    """Return the headers and footers of the pages of a Word file and its comments, each as a paragraph."""
    from lxml import etree  # type: ignore[import-untyped]

    parser = etree.XMLParser(resolve_entities=False, recover=True)
    parts: list[str] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if match := re.fullmatch(r"word/(header|footer|comment)s?\d*\.xml", name):
                root = etree.fromstring(archive.read(name), parser)
                lines = ("".join(line.itertext("{*}t")).strip() for line in root.iter("{*}p"))
                parts += (f"{match[1].capitalize()}: {line}" for line in lines if line)
    return "".join(f"\n\n{part}" for part in dict.fromkeys(parts))


def _converter(extension: str) -> Any:
    """Return the converter of markitdown, with the cells of tables in their columns."""
    import lxml.html  # type: ignore[import-untyped]
    from markitdown import converters

    parser = lxml.html.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)

    class PageConverter(converters.HtmlConverter):
        def convert(self, file_stream: BinaryIO, stream_info: Any, **options: Any) -> Any:
            data = re.sub(rb"^\s*<\?xml[^>]*>", b"", file_stream.read())
            if b"<table" in data.lower():
                page = lxml.html.document_fromstring(data, parser)
                lxml.etree.strip_elements(page, "script", "style", with_tail=False)
                for table in list(page.iter("table")):
                    _align_cells(table, is_marked=extension != ".docx")
                if not parser.error_log.filter_from_fatals():  # such as nesting too deep for it
                    data = lxml.html.tostring(page, encoding="utf-8")
            result = super().convert(io.BytesIO(data), stream_info, **options, **_MARKDOWN)
            result.markdown = _NEEDLESS_ESCAPE.sub(r"\1", result.markdown)
            return result

    class SlidesConverter(converters.PptxConverter):
        def _convert_table_to_markdown(self, table: Any, **_: Any) -> str:
            page = "<table>"
            for number, row in enumerate(table.rows):
                page += "<tr>"
                for cell in (cell for cell in row.cells if not cell.is_spanned):
                    tag = "th" if table.first_row and not number else "td"
                    span = f"rowspan={cell.span_height} colspan={cell.span_width}"
                    page += f"<{tag} {span}>{html.escape(cell.text)}</{tag}>"
            return f"\n\n{PageConverter().convert_string(page).markdown}\n\n"

        def _convert_chart_to_markdown(self, chart: Any) -> str:
            return f"{super()._convert_chart_to_markdown(chart)}\n\n"  # type: ignore[no-untyped-call]

    if (name := CONVERTERS[extension]) == "HtmlConverter":
        return PageConverter()
    converter = (SlidesConverter if extension == ".pptx" else getattr(converters, name))()
    converter._html_converter = PageConverter()
    return converter


def _align_cells(table: Any, *, is_marked: bool) -> None:
    """Give each row of a table all its cells: those that span rows or columns are repeated.

    A row of one cell at the top becomes a heading, and several rows of header cells become one. Unless headers
    are marked, the first row of two columns is one if it is bold or has only values below it.
    """
    from lxml import etree
    from lxml.html.builder import STRONG, TD, P  # type: ignore[import-untyped]

    inner = table.xpath(".//table")
    is_arrangement = inner and not table.xpath("tr/th | */tr/th")  # else the tables in its cells are text
    for part in (
        part for each in ([table] if is_arrangement else inner) for part in each.xpath(_TABLE_PARTS)
    ):
        part.tag = "div"
    for cell in table.xpath("thead/tr/td"):
        cell.tag = "th"
    etree.strip_tags(table, "thead", "tbody", "tfoot", "colgroup")
    etree.strip_elements(table, "col", with_tail=False)
    for caption in table.xpath("caption"):  # a first row is recognized if nothing is above it
        caption.tag = "p"
        table.addprevious(caption)
    rows = [row for row in table.xpath("tr") if len(row)]
    width = max((sum(_span(cell, "col") for cell in row) for row in rows if len(row) > 1), default=1)
    while width > 1 and len(rows) > 1 and len(rows[0]) == 1:
        rows[0].drop_tree()
        table.addprevious(P(STRONG(_cell_line(rows.pop(0)))))
    grid = [dict[int, Any]() for _ in rows]  # cells by their column
    for y, row in enumerate(rows):
        is_header = all(cell.tag == "th" for cell in row)
        for cell in row:
            start = next(x for x in count() if x not in grid[y])
            columns = range(start, start + min(_span(cell, "col"), width))
            is_repeated = is_header or (y and len(columns) < width)
            for line, x in product(grid[y : y + (_span(cell, "row") or len(rows))], columns):
                line[x] = cell if x == start or is_repeated else TD()
            cell.attrib.clear()
        row[:] = [copy.deepcopy(grid[y].get(x, TD())) for x in range(1 + max(grid[y]))]
    headers = list(takewhile(lambda row: all(cell.tag == "th" for cell in row), rows))
    if 1 < len(headers) < len(rows):
        for cell, *others in zip(*headers, strict=False):
            cell[:], cell.text = [], " ".join(filter(None, dict.fromkeys(map(_cell_line, (cell, *others)))))
        for row in headers[1:]:
            row.drop_tree()
    if not is_marked and not headers and width == 2 < len(rows):
        is_bold = [all(cell.find(".//strong") is not None for cell in row) for row in rows]
        has_values = [is_value(_cell_line(row[-1])) for row in rows]
        if not has_values[0] and (all(has_values[1:]) or (is_bold[0] and not any(is_bold[1:]))):
            for cell in rows[0]:
                cell.tag = "th"


def _cell_line(cell: Any) -> str:
    return " ".join(" ".join(cell.itertext()).split())


def _span(cell: Any, way: str) -> int:
    """Return how many rows or columns a cell spans: 0 for all that follow."""
    number = str(cell.get(f"{way}span", "1")).strip()
    return int(number) if re.fullmatch("[0-9]{1,3}", number) else 1


def _pdf_with_tables(data: bytes) -> str:
    """Return the text of a PDF with its ruled tables as lines of cells between bars, or "" if it has none."""
    import pdfplumber

    parts: list[str] = []
    with pdfplumber.open(io.BytesIO(data), laparams={}) as pdf:
        for page in pdf.pages[:_MOST_TABLE_PAGES]:
            ruled = len(page.lines) + len(page.rects) + len(page.curves) >= _LEAST_RULES
            tables = [table for table in page.find_tables() if len(table.columns) > 1] if ruled else []
            for box in page.textboxhorizontals:
                middle = (box["top"] + box["bottom"]) / 2
                if any(table.bbox[1] < middle < table.bbox[3] for table in tables):
                    continue
                while tables and tables[0].bbox[3] < middle:
                    parts.append(_table_text(tables.pop(0).extract()))
                parts.append(box["text"].strip())
            parts += (_table_text(table.extract()) for table in tables)
            page.close()
    return "\n\n".join(parts) if any(part.startswith("|") for part in parts) else ""


def _table_text(grid: Iterable[Iterable[str | None]]) -> str:
    cells = ([" ".join((cell or "").replace("|", "¦").split()) for cell in row] for row in grid)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _workbook_text(data: bytes) -> tuple[str, str, str]:
    """Return the tables of an Excel file as lines of cells between bars, its title, and a note on formulas.

    Each sheet has a heading. A formula without a stored value is shown itself.
    """
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    written = load_workbook(io.BytesIO(data))
    stored = load_workbook(io.BytesIO(data), data_only=True)
    lines: list[str] = []
    unknown = 0
    for sheet, values in zip(written.worksheets, stored.worksheets, strict=True):
        comments: list[str] = []
        grid = [[_cell_text(cell) for cell in row] for row in values.iter_rows()]
        for row in sheet.iter_rows():
            for cell in row:
                if cell.comment:
                    comments += ("", f"Comment on {cell.coordinate}: {' '.join(cell.comment.text.split())}")
                if cell.data_type == "f" and not grid[cell.row - 1][cell.column - 1]:
                    unknown += 1
                    grid[cell.row - 1][cell.column - 1] = str(getattr(cell.value, "text", cell.value))
        for merged in values.merged_cells.ranges:  # the cell of several rows holds for each of them
            if merged.min_col == merged.max_col:
                for at in range(merged.min_row, merged.max_row):
                    grid[at][merged.min_col - 1] = grid[merged.min_row - 1][merged.min_col - 1]
        if any(map(any, grid)):
            is_named = len(written.worksheets) > 1 or not re.fullmatch(r"[^\W\d]+ ?1", sheet.title)
            lines += ["", f"## {sheet.title}", ""] if is_named else [""]
            lines += (_table_text(grid), *comments)
    note = f"{unknown} formulas without a stored value are shown as they are written" if unknown else ""
    return "\n".join(lines), (written.properties.title or "").strip(), note


def _cell_text(cell: Any) -> str:
    """Format the value of a cell: dates as ISO dates, numbers with the unit, currency or % of their format."""
    value, form = cell.value, str(cell.number_format).split(";")[0]
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, time):
        return value.isoformat("minutes")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    if "%" in form:
        return f"{value * 100:.10g}%"
    literals = re.sub(r"\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|[_*].|\\(?=.)", r"\1", form)
    before, *_, after = re.split("[#0?]", literals) if re.search("[#0?]", literals) else ("", "")
    if cell.is_date or form in ("General", "@") or "E" in literals.upper().replace("EUR", ""):
        before = after = ""
    number = f"{value:.15g}" if abs(value) < 1e15 else str(value)
    return f"{before}{number}{after}".replace('"', "").strip()


def _check_office_file(data: bytes, main_part: str, kind: str, inside: str) -> None:
    """Raise BadInput unless this is an Office file of the expected kind with contents of acceptable size."""
    try:
        require_short_directory(io.BytesIO(data))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(item.file_size for item in archive.infolist())
            if size > _MOST_UNPACKED:
                raise BadInput(f"unpacks to more than {_MOST_UNPACKED // 1_000_000} MB")
            if size > max(_SAFE_SIZE, _RATIO * len(data)):
                raise BadInput(f"unpacks to {size / 1e6:,.0f} MB, more than {_RATIO} times its size")
            if main_part not in archive.namelist():
                raise BadInput(f"a zip file without {inside} in it")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        problem = f"not {'an' if kind[0] in 'AE' else 'a'} {kind}"
        raise BadInput(f"{problem}, whatever its name says ({error})") from error


def _prepare() -> None:
    """Import the converters if installed, so that this time does not count for a file."""
    with suppress(ImportError):
        import markitdown  # noqa: F401


def _limit_memory(memory_mb: int) -> None:
    """Limit this process's additional memory, if the system supports it, and prevent writing files."""
    if sys.platform != "linux":
        return
    import resource

    status = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    soft_limit = (used << 10) + (memory_mb << 20)
    if hard_limit != resource.RLIM_INFINITY:
        soft_limit = min(soft_limit, hard_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (soft_limit, hard_limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _request_arrived(requests: BinaryIO) -> bool:
    """Return whether a request came in time.

    On Windows, where a pipe cannot be watched, return True, so that the read waits.
    """
    return sys.platform == "win32" or bool(select.select([requests], [], [], _IDLE_SECONDS)[0])


def _send(replies: BinaryIO, reply: ConversionReply) -> None:
    data = json.dumps(reply).encode()
    replies.write(MESSAGE_HEADER.pack(len(data), 0) + data)
    replies.flush()
