"""Graphs in tables: edges, nodes, or both in one, with or without a header, as text or Parquet."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kgot_lab.errors import BadInput, require_known, short_repr
from kgot_lab.graph.exchange import COLUMNS
from kgot_lab.graph.snapshots import is_iri, plain_name
from kgot_lab.stores.files.elements import (
    NOT_FINITE,
    NUMBER,
    Elements,
    Ends,
    RawEdge,
    are_bounds,
    bounds_error,
    find_ends,
    is_number,
    is_reference,
    scalar_id,
)
from kgot_lab.stores.files.triples import read_bindings
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

_DELIMITERS = (",", ";", "\t", "|")
_PLAIN_NUMBER = re.compile(r"-?((0|[1-9]\d{0,17})(\.\d{1,20})?|\.\d{1,20})(e[-+][0-2]?\d\d?)?", re.I)
_WITH_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")  # a number as in 1.234,5
_WITH_POINTS = re.compile(r"-?\d{1,3}(\.\d{3})*")  # one without commas, as in 1.234
# in a column of numbers
_MISSING = {"", "na", "n/a", "null", "none", "-", *map(str.lower, NOT_FINITE)}
_COUNTERPARTS = "from to,source target,src dst,origin destination,home away,von an,1 2,a b".split(",")
# a column of neo4j-admin
_TYPED = re.compile(r"(.*):(ID|START_ID|END_ID|TYPE|LABEL|IGNORE|[a-z]\w*)(\(.*\))?(\[\])?")
HEADER = re.compile(r"[^\n]*:(ID|START_ID|END_ID)\b[^\n]*\s*")  # all of a file with the head of others
_ROLES = {"ID": "_id", "START_ID": "_start", "END_ID": "_end", "TYPE": "_type", "LABEL": "_labels"}
_OF_NODES = ("type", "label", "labels", "name", "title")
_NAME_PARTS = (("firstname", "givenname", "vorname"), ("lastname", "surname", "familyname", "nachname"))
_SHORT_ENDS = ("uv", "ht", "so", "ij")  # of tables of up to four columns
_NO_TEXT = re.compile(r"[\d\s:./,+-]*")  # numbers and dates, which columns share by chance
_WITH_DICT = re.compile(r"(.*?) *([\t,;]?) *(\{.*\})\s*")  # an edge as NetworkX writes it, with its delimiter
_TEXTS = ("", "string", "char", "date", "datetime", "localdatetime", "time", "localtime", "duration")
_MAX_NAMED_COLUMNS = 8  # columns in an error
_REMARK, _OTHER_LISTS = r"\s|/\*[\s\S]*?\*/|//.*\n|#.*\n", ".sif .nnf .lgl .metis .tgf"
_ELSEWHERE = (  # forms that are not read: their beginning or the ending of the file, their name, and what reads them
    (rf"({_REMARK})*(strict\s+)?(di)?graph\b[^\[{{;,]*\{{", ".dot .gv", "DOT", "gv2gml writes GML of it"),
    (r"nodedef\s*>", ".gdf", "GDF", "Gephi exports it as GEXF"),
    (r">>\w+6<<", ".g6 .s6 .d6", "graph6", "networkx.read_graph6 reads it and write_graphml writes GraphML"),
    (r"dl\s", ".dl", "UCINET DL", "igraph.Graph.Read_DL reads it and write_graphml writes GraphML"),
    (r"---|\w+:\s*\n\s*- ", ".yaml .yml", "YAML", "json.dump(yaml.safe_load(file), other) makes JSON of it"),
    (r"\b\B", _OTHER_LISTS, "a list of another program", "Cytoscape, igraph or yEd write GraphML of it"),
)

Row = tuple[str, Sequence[Any]]  # where it is, and its cells


class Options(NamedTuple):
    """What is known of a file: the columns of ends and the encoding, if given, and whether it is part of a graph.

    `head` is its first line, if another file has that. `is_typed` if its texts are no numbers.
    """

    ends: Ends = ("", "")
    encoding: str = ""
    is_part: bool = False
    head: str = ""
    is_typed: bool = False


_SIZE_REMARK = re.compile(r"^%\s*\d+\s+\d+\s+\d+\s*$", re.M)  # NetworKit's, before a plain list of edges


def read_table(text: str, source: str, suffix: str = "", options: Options = Options()) -> Elements:  # noqa: B008
    """Read the elements of a graph in a table of separated values, or in lines of NetworkX.

    Lines at its beginning that begin with # or % are remarks. An empty table is an empty graph. A table that is
    part of a graph may have nodes alone. Raises BadInput, with the line, if it cannot be read.
    """
    text = f"{options.head}\n{text}" if options.head else text
    lines = text.split("\n")
    matrix = re.match(r"%%MatrixMarket\s+matrix\s+(\w+)(?:\s+\w+\s+(\w+))?", text, re.I)
    if matrix and matrix[1].lower() != "coordinate":
        raise BadInput(f"{source}: a matrix of all its values is not read: write their coordinates")
    for form, suffixes, name, how in _ELSEWHERE:
        if suffix in suffixes.split() or re.match(form, text, re.I):
            raise BadInput(f"{source} is {name}, which is not read: {how}")
    named = re.fullmatch(r'"?sep=(.)"?\s*', lines[0], re.I)
    body = re.match(r"([#%].*\n|\s*\n)*", text[len(lines[0]) + 1 :] if named else text)
    above = (body[0].count("\n") if body else 0) + bool(named)
    head = lines[above] if above < len(lines) else ""
    is_adjacency = suffix == ".adjlist" or "\n# GMT " in text[: len(body[0]) if body else 0]
    if multiline := _read_multiline(lines[above:]):
        return multiline
    if is_adjacency or _WITH_DICT.fullmatch(head):
        return _read_lines(lines, above, source, is_adjacency=is_adjacency)
    usual = "\t" if suffix == ".tsv" and "\t" in head else max(_DELIMITERS, key=head.count)
    delimiter = named[1] if named else usual if usual in head else " "
    rows = csv.reader(io.StringIO("\n".join(lines[above:]), newline=""), delimiter=delimiter, strict=True)
    try:
        above -= bool(options.head)
        cut = [(f"{source}, line {rows.line_num + above}", list(map(str.strip, row))) for row in rows]
    except csv.Error as error:
        problem = f"not a row of a table: {error}"
        if "field limit" in str(error):
            problem = f"a field has more than {csv.field_size_limit():,} characters: see that each quotation mark is closed"
        raise BadInput(f"{source}, line {rows.line_num + above}: {problem}") from None
    is_text = delimiter == " "
    filled = [(location, list(filter(None, row)) if is_text else row) for location, row in cut if any(row)]
    if matrix and not _SIZE_REMARK.search(body[0] if body else ""):
        return _read_matrix(filled, source, is_symmetric=(matrix[2] or "general").lower() != "general")
    if re.match(r"%\s*bip\b", text, re.I) and all(len(cells) > 1 for _, cells in filled):
        return _read_bipartite(filled)
    remarks = [] if is_text or not body else re.findall(r"(?m)^[#%]+(.*)$", body[0])
    names = [name.strip() for name in "".join(remarks[-1:]).split(delimiter)]
    if 2 < len(names) == len(filled[0][1]) and not find_ends(tuple(filled[0][1])):  # as BioGRID has them
        filled = [(f"{source}, line {above}", names), *filled]
    found = read_rows(filled, Elements("a table"), options, is_text=is_text)
    if re.match(r"%\s*sym\b|#\s*undirected\b", text, re.I):  # KONECT, SNAP
        found.undirected = len(found.edges)
    return found


def _read_bipartite(rows: Sequence[Row]) -> Elements:
    """Read the edges of KONECT between nodes of two sides, each numbered from 1."""
    found = Elements("a table of two sides")
    for _, (left, right, *weight) in rows:
        fields = {"weight": _parse_cell(weight[0])} if weight else {}
        found.edges.append(RawEdge(f"left {left}", f"right {right}", None, fields))
        found.left_out["time of an edge"] += len(weight) > 1
    found.undirected = len(found.edges)
    return found


def _read_lines(lines: Sequence[str], above: int, source: str, *, is_adjacency: bool) -> Elements:
    """Read lines of NetworkX: a node and its neighbours, or two ends and a dict in Python."""
    found = Elements("a list of NetworkX")
    for number, line in enumerate(lines[above:], start=above + 1):
        if not line.strip():
            continue
        match = _WITH_DICT.fullmatch(line)
        ends = match[1].split(match[2] or None) if match and not is_adjacency else line.split()
        if is_adjacency != (match is None) or (match and len(ends) != 2):
            expected = "a node and its neighbours, in one line," if is_adjacency else "two ends and a dict"
            problem = f"{source}, line {number}: {expected} are expected here, not {short_repr(line)}"
            raise BadInput(f"{problem}; write_graphml of NetworkX writes what any name needs")
        fields = _read_dict(match[3] if match else "{}", found)
        if is_adjacency:
            found.put_node(ends[0], None, {})
        found.edges += [RawEdge(ends[0], end, None, fields) for end in ends[1:]]
    others = [edge.target for edge in found.edges if is_adjacency and edge.target not in found.nodes]
    if others:
        problem = f"{source}: {others[0]!r} has no line of its own, so names may hold spaces"
        raise BadInput(f"{problem}: write it as GraphML")
    return found


def _read_multiline(lines: Sequence[str]) -> Elements | None:
    """Read lines of NetworkX with a node and its number of neighbours, and then each of these with a dict.

    Return None if they are none.
    """
    found, node, left = Elements("a list of NetworkX"), "", 0
    for line in filter(str.strip, lines):
        if left and (match := _WITH_DICT.fullmatch(line)):
            found.edges.append(RawEdge(node, match[1], None, _read_dict(match[3], found)))
            left -= 1
        elif not left and (head := re.fullmatch(r"(.+) (\d+)", line.strip())):
            node, left = found.put_node(head[1], None, {}), int(head[2])
        else:
            return None
    return found if found.edges and not left else None


def _read_dict(text: str, found: Elements) -> dict[str, Json]:
    """Return the fields of a dict in Python, or count it as left out if it has other values than literals."""
    try:
        return {str(name): value for name, value in ast.literal_eval(text).items()}
    except (ValueError, SyntaxError, AttributeError):
        found.left_out["dict that is none of Python's literals"] += 1
        return {}


def _read_matrix(rows: Sequence[Row], source: str, *, is_symmetric: bool) -> Elements:
    """Read the coordinates of a sparse matrix. A row and a column of one number are one node if it is square."""
    found = Elements("a sparse matrix")
    size = [int(cell) for _, cells in rows[:1] for cell in cells if cell.isdecimal()]
    if len(size) != 3 or size[2] != len(rows) - 1 or any(len(cells) < 2 for _, cells in rows):
        form = "its numbers of rows, columns and entries, and so many lines"
        raise BadInput(f"{source}: a sparse matrix is {form}")
    kinds = ("", "") if size[0] == size[1] else ("row ", "column ")
    for kind, count in zip(kinds, size, strict=False):
        for number in range(1, count + 1):
            found.put_node(f"{kind}{number}", None, {})
    for _, (row, column, *weight) in rows[1:]:
        fields = {"weight": _parse_cell(weight[0])} if weight else {}
        found.edges.append(RawEdge(f"{kinds[0]}{row}", f"{kinds[1]}{column}", None, fields))
        found.left_out["imaginary part of a value"] += len(weight) > 1
    found.undirected = len(found.edges) * is_symmetric
    return found


def read_parquet(data: bytes, source: str, options: Options) -> Elements:
    """Read the elements of a graph in a Parquet file. Raises BadInput if it is damaged or pyarrow is missing."""
    try:
        import pandas as pd

        frame = pd.read_parquet(io.BytesIO(data))
    except ImportError:  # in no extra, since pandas keeps all texts in another way where it is
        needed = "needs pandas and pyarrow: pip install pandas pyarrow"
        raise BadInput(f"{source} is Parquet, which {needed}") from None
    except (ValueError, OSError) as error:
        raise BadInput(f"{source}: cannot be read as Parquet: {error}") from None
    cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    cells = [[cell.tolist() if hasattr(cell, "tolist") else cell for cell in row] for row in cells]
    rows = enumerate([list(map(str, frame.columns)), *cells])
    located = [(f"{source}, row {number}", row) for number, row in rows]
    return read_rows(located, Elements("a Parquet table"), options._replace(is_typed=True))


def read_rows(rows: Sequence[Row], found: Elements, options: Options, *, is_text: bool = False) -> Elements:
    """Read the elements of a graph in the rows of a table, the first of which are the names of columns.

    Raises BadInput, with the location of a row, if they are no graph.
    """
    if not rows:
        return found
    location, head = rows[0]
    are_places = all(end.isdecimal() and int(end) < len(head) for end in options.ends)
    if are_places and not {*options.ends} <= {*head}:
        cut = zip(*(cells for _, cells in rows), strict=False)
        is_head = any(not _are_numbers(each[:1]) and _are_numbers(each[1:]) for each in cut)
        found.notes.append(f"its columns are numbered from 0, and the first line is {'not ' * is_head}data")
        head = list(map(str, range(len(head))))
        rows = [(location, head), *rows[is_head:]]
    named = options.ends
    if options.is_part and {*named}.isdisjoint(head):  # as in a table of nodes
        named = ("", "")
    require_known("column of ends", head, *filter(None, named))
    found.notes += ["edges are from {} to {}".format(*named)] if named[0] else []
    kinds = [_TYPED.fullmatch(name) for name in head]
    columns = [_ROLES.get(kind[2], kind[1]) if kind else name for name, kind in zip(head, kinds, strict=True)]
    below = [cells for _, cells in rows[1:]]
    iris = sum(is_iri(str(cell)) for cells in below for cell in cells)
    ends = named if named[0] else find_ends(tuple(columns))
    at = [columns.index(end) for end in ends or ()]
    pairs = [(str(cells[at[0]]), str(cells[at[1]])) for cells in below if at and len(cells) > max(at)]
    pairs = [pair for pair in pairs if all(pair) and not named[0]]
    if are_ranges := are_bounds(ends or (), pairs, is_part=options.is_part):
        ends = find_ends(tuple(name for name in columns if name not in (ends or ())))
    are_pairs = len(columns) == 2 and not ends and iris > len(below)
    if are_pairs or any(f"{name}Label" in columns for name in columns):
        values = [dict(zip(columns, map(_parse_cell, cells), strict=False)) for cells in below]
        return read_bindings(columns, values, location)
    id = next((name for name in ("_id", "Id", "id", "ID") if name in columns), "")
    found.label_names = "Label" in columns  # of Gephi
    is_staff = bool(ends) and not named[0] and len(columns) > 3 and _is_staff(ends or (), below, at)
    if is_staff:
        columns[at[0]], ends, id = "id", None, "id"
    marks = {*columns, *(() if ends else map(plain_name, columns))}
    is_nodes = bool(id) and not marks.isdisjoint(("_labels", "Label", "_id", *(() if ends else _OF_NODES)))
    is_nodes |= is_staff
    if len(rows) > 2 and len(head) == len(rows) and [cells[0] for cells in below] == list(head[1:]):
        raise BadInput(f"{location}: a matrix is not read: list its edges, as in source,target,weight")
    if not ends and not is_nodes:
        if given := _columns_by_content([head, *below], is_text=is_text):
            found.notes.append(f"it has no header, and its columns are read as {', '.join(given)}")
            columns, ends, rows = given, ("source", "target"), [("", given), *rows]
        elif ends := _guess_ends(columns, below, is_text=is_text):
            found.notes.append(f"edges are from {ends[0]} to {ends[1]}")
            columns = ["relation" if name.lower() in ("r", "p") else name for name in columns]
        elif is_nodes := options.is_part and _are_nodes(columns, below):
            columns[0] = id = columns[0] if plain_name(columns[0]) in ("id", *_OF_NODES) else "name"
            found.notes += [f"names from {head[0]}"] if id != head[0] else []
        elif are_ranges:
            raise bounds_error(location, (columns[each] for each in at), pairs[0])
        elif (duplicates := _duplicates(columns)) and not _are_numbers(duplicates):
            raise BadInput(f"{location}: two columns are called {short_repr(duplicates[0])}: rename one")
        else:
            present = ", ".join(map(short_repr, head[:_MAX_NAMED_COLUMNS]))
            what = "the first line names the columns, a source, a target and perhaps a type, as in source,type,target"
            other = "name those of the ends, as in source='who', target='whom'"
            raise BadInput(f"{location}: {what}; this is {present}; {other}, or save another form as GraphML")
    if duplicates := _duplicates(columns):
        raise BadInput(f"{location}: two columns are called {short_repr(duplicates[0])}: rename one")
    typed = {name: kind for name, kind in zip(columns, kinds, strict=False) if kind}
    declared = {
        each: kind[0].rpartition(":")[2] for each, kind in typed.items() if kind[0][-8:] != ":boolean"
    }
    ignored = ", ".join(kind[1] for kind in typed.values() if kind[2] == "IGNORE")
    found.notes += [f"left out, as it says: {ignored}"] if ignored else []
    spaces = {name: kind[3] for name in (id, *(ends or ())) if (kind := typed.get(name)) and kind[3]}
    if not options.is_part and len(set(spaces.values())) < 2:
        spaces = {}  # of neo4j-admin: 1 of Person is not 1 of Movie
    texts = {name for name in columns if name in (id, *(ends or ())) or plain_name(name) in COLUMNS["type"]}
    others = {name: at for at, name in enumerate(columns) if name not in texts | declared.keys()}
    halves = [name for known in _NAME_PARTS for name in columns if plain_name(name) in known]
    halves = halves if len(halves) == 2 and not ends and "name" not in map(plain_name, columns) else []
    found.notes += [f"name is {' and '.join(halves)}"] if halves else []
    parsed = {} if options.is_typed else _parse_columns(others, [cells for _, cells in rows[1:]], found)
    if short := sum(len(cells) < len(columns) for _, cells in rows[1:]):
        found.notes.append(f"{format_count(short, 'row')} with fewer cells than the head")
    for n, (location, cells) in enumerate(rows[1:]):
        if any(cell != "" for cell in cells[len(columns) :]):
            problem = f"{location}: {len(cells)} cells, and the head has {len(columns)}"
            raise BadInput(f"{problem}: put a cell that holds the delimiter in quotes")
        row = dict(zip(columns, cells, strict=False)) | {name: each[n] for name, each in parsed.items()}
        for name in declared.keys() & row.keys() - texts:
            row[name] = _declared_value(row[name], declared[name])
        row.update({name: f"{space[1:-1]}:{row[name]}" for name, space in spaces.items() if row.get(name)})
        # the index that pandas writes has no name either
        found.left_out["cell below no name"] += not is_number(str(row.get("") or "0"))
        row = {name: value for name, value in row.items() if name and value not in ("", [])}
        row |= {"name": " ".join(str(row[half]) for half in halves if half in row)} if halves else {}
        if not ends or (is_nodes and row.keys().isdisjoint(ends)):
            found.add_node(row, location)
        elif row.keys() >= {*ends}:
            found.add_edge(row, location, names=ends)
        else:
            found.left_out["edge without a source or a target"] += 1
            found.ends |= {id: (None, {}) for id in map(scalar_id, map(row.get, ends)) if id}
    return found


def _duplicates(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name and columns.count(name) > 1]


def _is_staff(ends: Sequence[str], rows: Sequence[Sequence[Any]], at: Sequence[int]) -> bool:
    """Return whether rows are nodes, most with another of them as manager, parent or the like, rather than edges."""
    pairs = [(str(row[at[0]]), str(row[at[1]])) for row in rows if len(row) > max(at)]
    sources = {source for source, _ in pairs}
    targets = [target for _, target in pairs if target]
    are_known = sum(map(sources.__contains__, targets)) * 2 > len(targets)
    return is_reference(ends[1]) and len(sources) == len(rows) and are_known


def _are_numbers(cells: Iterable[Any]) -> bool:
    """Return whether all cells of a column are numbers or missing, and some are numbers."""
    texts = {str(cell).lower() for cell in cells} - _MISSING
    only = {str(cell) for cell in cells} - {""}
    return all(map(_PLAIN_NUMBER.fullmatch, texts)) if texts else bool(only) and only <= NOT_FINITE


def _parse_columns(
    columns: Mapping[str, int], rows: Sequence[Sequence[str]], found: Elements
) -> dict[str, list[Json]]:
    """Return the values of columns, by their indices, that are numbers, truth values or texts throughout."""
    parsed: dict[str, list[Json]] = {}
    cells_of = {name: [row[at] if at < len(row) else "" for row in rows] for name, at in columns.items()}
    texts_of = {name: {cell.lower() for cell in cells} - _MISSING for name, cells in cells_of.items()}
    with_comma = [name for name, texts in texts_of.items() if _have_commas(texts)]
    for name, cells in cells_of.items():
        texts = texts_of[name]
        has_points = with_comma and any("." in text for text in texts)
        if name in with_comma or (has_points and all(map(_WITH_POINTS.fullmatch, texts))):
            cells = [cell.replace(".", "").replace(",", ".") for cell in cells]
            points = "decimal commas" if name in with_comma else "points between thousands"
            found.notes.append(f"the numbers of {name} have {points}")
        if _are_numbers(cells):
            missing = [cell for cell in cells if cell.lower() in _MISSING]
            found.left_out["cell without a number, such as NaN"] += len(missing) - missing.count("")
            parsed[name] = ["" if cell.lower() in _MISSING else _parse_cell(cell) for cell in cells]
        elif texts and texts <= {"true", "false"}:
            parsed[name] = [cell.lower() == "true" if cell else "" for cell in cells]
        elif texts and (
            2 * (others := sum(not _PLAIN_NUMBER.fullmatch(text) for text in texts)) < len(texts)
            or all(map(NUMBER.fullmatch, texts))
        ):
            found.notes.append(f"{name} is text, since {others:,} of its values are no plain numbers")
    return parsed


def _have_commas(texts: Iterable[str]) -> bool:
    """Return whether texts are numbers, some of them with a decimal comma, as in 1.234,5."""
    with_comma = [text for text in texts if "," in text]
    is_decimal = any(len(text.rpartition(",")[2]) != 3 for text in with_comma)
    return is_decimal and all(map(_WITH_COMMA.fullmatch, texts))


def _are_nodes(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
    """Return whether rows of one length, each with a first cell of its own, may be nodes."""
    is_table = len(columns) > 1 and {len(columns)} == set(map(len, rows))
    return is_table and len({str(cells[0]) for cells in rows}) == len(rows)


def _guess_ends(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_text: bool) -> Ends | None:
    """Return two columns of ends without a usual name, if there are any.

    They are letters such as u and v, texts whose names differ by a word, as Person 1 and Person 2, or the first and
    one of the next two that have texts in common, unless only spaces are between them.
    """
    low = [name.lower() for name in columns]
    for pair in _SHORT_ENDS if len(low) < 5 else ():
        if {*pair} <= {*low}:
            return columns[low.index(pair[0])], columns[low.index(pair[1])]
    words = [re.findall(r"\d+|[^\W\d_A-Z]+|[A-Z][^\W\d_A-Z]*", name) for name in columns]
    for i, j in combinations(range(len(low)), 2) if {len(low)} == {*map(len, rows)} else ():
        one, other = ({str(row[at]) for row in rows if at < len(row)} - {""} for at in (i, j))
        shared = [text for text in one & other if not _NO_TEXT.fullmatch(text)]
        is_shared = not is_text and i == 0 and j < 3 and shared and len(one | other) > 2
        is_shared = is_shared and min(len(one), len(other)) <= 10 * len(shared)
        differ = [f"{a} {b}".lower() for a, b in zip(words[i], words[j], strict=False) if a != b]
        is_numbered = len(differ) == 1 and differ[0] in _COUNTERPARTS and len(words[i]) == len(words[j]) > 1
        if is_shared or (is_numbered and not any(map(_NO_TEXT.fullmatch, one | other))):
            return columns[i], columns[j]
    return None


def _columns_by_content(rows: Sequence[Sequence[Any]], *, is_text: bool) -> list[str]:
    """Return names for the columns of edges without a header, or none if the first row looks like one.

    The ends of edges are whole numbers in each row, or rows of one length have ends of the first row again. Words
    with spaces between them are no table unless some are both a source and a target, or numbers.
    """
    widths = set(map(len, rows))
    if min(widths) < 2 or len(widths) > 1:  # lists of neighbours, as METIS writes them
        return []
    columns = [{str(cell) for cell in column} for column in zip(*rows, strict=True)]
    are_numbers = [all(map(is_number, column)) for column in columns]
    if are_numbers[:3] == [True, False, True]:  # ends and a relation, an end and a weight, or a person's age
        return []
    # a third text is a target, unless the second ones and not the third are sources too
    is_last = are_numbers[2:3] == [False] and (bool(columns[0] & columns[2]) or not columns[0] & columns[1])
    at = 2 if is_last else 1
    ends = [{str(row[0]), str(row[at])} for row in rows]
    is_edge = all(end.isdecimal() for pair in ends for end in pair)
    is_edge |= not ends[0].isdisjoint(set().union(*ends[1:])) and (
        not is_text or (min(widths) < 4 and (bool(columns[0] & columns[at]) or are_numbers[2:3] == [True]))
    )
    is_edge &= not any("." in end and NUMBER.fullmatch(end) for pair in ends for end in pair)
    third = "weight" if are_numbers[2:3] == [True] else "type"
    names = ["source", "type", "target"] if is_last else ["source", "target", third][: max(widths)]
    return [*names, *(f"column {n}" for n in range(4, max(widths) + 1))] if is_edge else []


def _declared_value(cell: Any, kind: str) -> Json:
    """Return the value of a cell of a kind that neo4j-admin declares, as in int[], or "" if it is to be ignored."""
    if kind == "LABEL" or kind.endswith("[]"):
        return [_declared_value(part, kind[:-2] * (kind[-1] == "]")) for part in str(cell).split(";") if part]
    return "" if kind == "IGNORE" else cell if kind in _TEXTS else _parse_cell(cell)


def _parse_cell(cell: Any) -> Json:
    if not isinstance(cell, str) or not (_PLAIN_NUMBER.fullmatch(cell) or cell in NOT_FINITE):
        return cell
    return int(cell) if cell.removeprefix("-").isdecimal() else float(cell)
