"""Tables as text: each row becomes one line that names its columns, "Belt & Sons: part casing; town Osk"."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple

from kgot_lab.documents.passages import fits_passage, split_passages

Grid = Sequence[Sequence[str]]
BlockKind = Literal["heading", "text", "item", "row", "code"]


class Block(NamedTuple):
    """A heading, a paragraph, an item of a list, a row of a table, or a block of code or other verbatim text.

    `level` is that of a heading, 1 for the highest.
    """

    kind: BlockKind
    text: str
    level: int = 0


_VALUE = re.compile(r"[-+~<>≈(]?\s*[€$£¥]?\s*\d")  # how a number, an amount or a date begins
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_NO_VALUE = re.compile(r"[-–—\s]*")
_NOTE_WORDS = 6  # words of a line that is a note below a table and no row with one value
_MAX_HEADER_WORDS = 8
_SEPARATORS = ",;\t|"
_SAMPLE_LINES = 200  # lines from which the separator is chosen


def table_blocks(grid: Grid, level: int = 1, *, has_header: bool | None = False) -> Iterator[Block]:
    """Yield the rows of a table, and the lines above and below it.

    A line above the header is a heading of this level. Empty rows separate the table from notes, or one table
    from another with its own header. With `has_header`, the first row is known to be the header; with None, its
    author marked none, so that two columns are names and values.
    """
    rows = [[_clean_cell(cell) for cell in row] for row in grid]
    if len(parts := _side_by_side(rows)) > 1:
        for part in parts:
            yield from table_blocks(part, level, has_header=has_header)
        return
    names: list[str] | None = None
    is_wide = any(_filled(row) > 1 for row in rows)
    for is_row, segment in groupby(rows, key=lambda row: _filled(row) > 0):
        part = list(segment) if is_row else []
        is_prose = is_wide and all(_filled(row) == 1 for row in part)
        notes: list[Block] = []
        while is_wide and part and (names if is_prose else _is_note(part[-1])):
            notes.insert(0, Block("text", "".join(part.pop())))
        may_have_title = is_wide and names is None and not has_header
        lines = list(takewhile(lambda row: _filled(row) == 1, part)) if may_have_title else []
        for number, line in enumerate(lines):
            yield Block("heading" if number == 0 else "text", "".join(line), level)
        if part := part[len(lines) :]:
            is_pairs = has_header is None and max(map(len, part)) == 2
            used = 1 if has_header else 0 if is_pairs else _header_rows(part)
            if used or names is None:
                names = _column_names(part, used)
                part = part[used:]
            has_header = has_header and False
            key = _key_column(part)
            yield from (Block("row", line) for row in part for line in _row_lines(row, names, key))
        yield from notes


def _side_by_side(rows: Grid) -> list[Grid]:
    """Split a grid at its empty columns, if on each side is a table of its own, whose first column has names."""
    width = max(map(len, rows), default=0)
    columns = groupby(range(width), key=lambda at: any(_cell(row, at) for row in rows))
    parts = [list(part) for is_used, part in columns if is_used]
    if any(len(part) < 2 or any(is_value(_cell(row, part[0])) for row in rows) for part in parts):
        return [rows]
    return [[row[part[0] : part[-1] + 1] for row in rows] for part in parts]


def _clean_cell(cell: str) -> str:
    text = " ".join(cell.replace("|", "¦").split())  # a bar begins the line of a row
    return "" if _NO_VALUE.fullmatch(text) else text


def _filled(row: Sequence[str]) -> int:
    return sum(map(bool, row))


def is_value(cell: str) -> bool:
    """Return whether the text of a cell is a number, an amount or a date."""
    letters = sum(map(str.isalpha, cell))
    return bool(_VALUE.match(cell)) and letters <= sum(map(str.isdigit, cell))


def _is_note(row: Sequence[str]) -> bool:
    """Return whether a line is a note and no row of which only the first value is given."""
    return _filled(row) == 1 and bool(row[0]) and (len(row) == 1 or len(row[0].split()) > _NOTE_WORDS)


def _header_rows(rows: Grid) -> int:
    """Return how many rows are the header: 0, 1, or 2 for groups of columns above their names."""
    first, body = rows[0], rows[1:]
    if not body:
        return 0
    second, below = body[0], body[1:]
    is_group = any(cell and not _cell(first, at) for at, cell in enumerate(second))
    is_group &= any(cell and _cell(second, at) in ("", cell) for at, cell in enumerate(first))
    is_group &= not any(map(is_value, second)) and _has_values_under(second, below)
    if is_group:
        return 2
    values = [cell for cell in first if is_value(cell)]
    if values:  # years may be names of columns
        is_years = len(set(values)) == len(values) > 1 and all(map(_YEAR.fullmatch, values))
        return int(is_years and not is_value(first[0]))
    recurs = any(cell and any(_cell(row, at) == cell for row in body) for at, cell in enumerate(first))
    is_long = any(len(cell.split()) > _MAX_HEADER_WORDS for cell in first)
    return int(not is_long and not recurs)


def _has_values_under(names: Sequence[str], rows: Grid) -> bool:
    return any(name and any(is_value(_cell(row, at)) for row in rows) for at, name in enumerate(names))


def _cell(row: Sequence[str], at: int) -> str:
    return row[at] if at < len(row) else ""


def _column_names(rows: Grid, header_rows: int) -> list[str]:
    """Return a name for each column, "" for one without, and "town 2" for the second "town"."""
    width = max(map(len, rows))
    names = [_cell(rows[0], at) if header_rows else "" for at in range(width)]
    if header_rows == 2:
        for at in range(1, width):  # the name of a group is written above its first column
            names[at] = names[at] or names[at - 1]
        below = [_cell(rows[1], at) for at in range(width)]
        pairs = zip(names, below, strict=True)
        names = [name if own in ("", name) else f"{name} {own}" for name, own in pairs]
    seen: Counter[str] = Counter()
    for at, name in enumerate(map(_plain_name, names)):
        seen[name] += 1
        names[at] = f"{name} {seen[name]}" if name and seen[name] > 1 else name
    return names


def _plain_name(name: str) -> str:
    """Return the name of a column without capitals, so that "Town Osk" is not read as a name."""
    words = (
        word.lower() if word.istitle() and word.isalpha() and len(word) > 1 else word
        for word in name.rstrip(":").split()
    )
    return " ".join(words)


def _key_column(rows: Grid) -> int:
    """Return the column that names the rows: the first with a different text in each, else the first."""
    for at in range(max(map(len, rows), default=0)):
        cells = [_cell(row, at) for row in rows]
        is_text = (sum(map(str.isalpha, cell)) > sum(map(str.isdigit, cell)) for cell in cells)
        if len(set(cells)) == len(cells) and all(cells) and all(is_text):
            return at
    return 0


def _row_lines(row: Sequence[str], names: Sequence[str], key: int) -> Iterator[str]:
    """Yield a row as a line, or a very long one as several, each with its subject.

    Columns without a value are listed at the end as not given.
    """
    subject, label = _cell(row, key), _cell(names, key)
    if subject and label and label != "name":
        subject += f" ({label})"
    others = [(_cell(names, at), _cell(row, at)) for at in range(max(len(names), len(row))) if at != key]
    parts = [f"{name} {value}".strip() for name, value in others if value]
    if missing := [name for name, value in [(label, subject), *others] if name and not value]:
        parts.append(f"{', '.join(missing)} not given")
    lead = f"{subject}: " if subject and parts else subject
    line = ""
    for part in parts:
        longer = f"{line}; {part}" if line else lead + part
        if fits_passage(longer):
            line = longer
            continue
        if line:
            yield line
        *full, line = (lead + piece for piece in split_passages(part, 100))
        yield from full
    yield line or subject


# Tables in text: separated values, and the pipe tables of Markdown.


def delimited_grid(text: str, extension: str = ".csv") -> Grid:
    """Split separated values into cells, by the separator with which most lines have the same number of cells.

    A first line such as `sep=;` names the separator. Raises csv.Error for text that cannot be split.
    """
    lines = text.strip("\n").splitlines(keepends=True)
    if lines and (named := re.fullmatch(r'"?sep=(.)"?\s*', lines[0], re.IGNORECASE)):
        return _split_cells(lines[1:], named[1])
    order = "\t" + _SEPARATORS if extension in (".tsv", ".tab") else _SEPARATORS
    sample = lines[:_SAMPLE_LINES]
    return _split_cells(lines, max(order, key=lambda separator: _separator_score(sample, separator)))


def _split_cells(lines: Sequence[str], separator: str) -> list[list[str]]:
    return list(csv.reader(lines, delimiter=separator, skipinitialspace=True))


def _separator_score(lines: Sequence[str], separator: str) -> float:
    """Return the share of rows with the most frequent number of cells, less if spaces follow the separator."""
    widths = Counter(map(len, filter(None, _split_cells(lines, separator))))
    width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1], item[0]), default=(1, 0))
    if width < 2:
        return 0.0
    text = "".join(lines)
    spaced = text.count(separator + " ") / (text.count(separator) or 1)
    return count / widths.total() - 0.3 * spaced + min(width, 20) / 1000


def pipe_grid(lines: Iterable[str]) -> tuple[list[list[str]], bool | None]:
    """Split the lines of a Markdown table into cells, and return whether its first row is a header.

    None is returned for an empty header, as converters write it for a table without one.
    """
    cells, header = list[list[str]](), False
    for line in lines:
        if re.fullmatch(r"[\s|:+=-]+", line) and "-" in line + "-" * ("=" in line):
            header |= len(cells) == 1
            continue
        inner = line.strip().removeprefix("|")
        inner = inner.removesuffix("|") if not inner.endswith("\\|") else inner
        parts = re.split(r"(?<!\\)\|", inner)
        cells.append([cell.replace("\\|", "|").replace("<br>", " ") for cell in parts])
    is_blank = header and not any(map(_clean_cell, cells[0]))
    return (cells[1:], None) if is_blank else (cells, header)


# Records of JSON, YAML and TOML.

_MAX_DEPTH = 6  # headings of nested objects


def record_blocks(value: Any, level: int = 1) -> Iterator[Block]:
    """Yield the content of nested objects: lists of records as tables, single values as `name: value`."""
    if isinstance(value, Mapping):
        groups = [item for item in value.values() if isinstance(item, Mapping)]
        if (
            len(groups) == len(value) > 1
            and set.intersection(*map(set, groups))
            and not any(any(map(_has_parts, group.values())) for group in groups)
        ):
            label = "key" if any("name" in item for item in groups) else "name"
            value = [{label: str(key), **item} for key, item in value.items()]
    if isinstance(value, Mapping):
        deep = {key: item for key, item in value.items() if _has_parts(item) and level <= _MAX_DEPTH}
        pairs = ((key, _flat_text(item)) for key, item in value.items() if key not in deep)
        yield from (Block("row", f"{key}: {text or 'not given'}") for key, text in pairs)
        for key, item in deep.items():
            yield Block("heading", str(key), level)
            yield from record_blocks(item, level + 1)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        flat = [dict(_flat_pairs(item if isinstance(item, Mapping) else {"value": item})) for item in value]
        names = list(dict.fromkeys(name for record in flat for name in record))
        rows = ([row.get(name, "") for name in names] for row in flat)
        yield from table_blocks([names, *rows], level, has_header=True)
    elif isinstance(value, list) and all(isinstance(item, list) for item in value):
        yield from table_blocks([list(map(_flat_text, item)) for item in value], level)
    elif isinstance(value, list):
        yield from (Block("item", f"- {_flat_text(item)}") for item in value)
    else:
        yield Block("text", _flat_text(value))


def _has_parts(value: Any) -> bool:
    return bool(value) and (
        isinstance(value, Mapping)
        or (isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value))
    )


def _flat_pairs(record: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and values of a record. Those of a nested one begin with the name that leads to it."""
    for key, value in record.items():
        name = f"{above} {key}".strip()
        if isinstance(value, Mapping) and value:
            yield from _flat_pairs(value, name)
        else:
            yield name, _flat_text(value)


def _flat_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_flat_text, value))
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str).strip('"')
