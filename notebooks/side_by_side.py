"""Things side by side, a column for each, and for lesson 14 the runs of one question in several languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgot_lab.errors import BadInput
from kgot_lab.graph.changes import PROVENANCE_PROPERTIES
from kgot_lab.loop.events import Answered, Event, Read, Repaired, Started, Wrote
from kgot_lab.loop.formatting import format_event
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.stores.cypher.dialect import CYPHER
from kgot_lab.stores.embedded_store import PYTHON
from kgot_lab.stores.sparql.dialect import SPARQL
from kgot_lab.types import Json, Rows
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.static.markup import Markup, concat, element, first_lines, shorten
from kgot_lab.viz.static.table import ALIGN_LEFT, MAX_CELL_LENGTH, Table, format_cell, sheet

_CODE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:85%;margin:0"


@dataclass(frozen=True)
class Comparison:
    """Several things side by side: in HTML a column for each, in the table and in plain text a row.

    `told` has the texts of each in the order of `columns`, of which the first is its name. Only the HTML has
    the pictures, named `picture_name`, and a text that is `code` in the font of code.
    """

    caption: str
    columns: tuple[str, ...]
    told: tuple[tuple[str, ...], ...]
    pictured: tuple[Picture, ...] = field(repr=False)
    picture_name: str = "graph"
    code: bool = False

    def table(self) -> Table:
        """Return the texts without the pictures, a row for each."""
        return Table((sheet(self.columns, self.told, self.caption),))

    def _repr_html_(self) -> str:
        rows = [(self.picture_name, [Markup(picture._repr_html_()) for picture in self.pictured])]
        tag, style = ("pre", _CODE) if self.code else ("div", "white-space:pre-line")
        for number, name in enumerate(self.columns[1:], start=1):
            texts = [_shorten_lines(texts[number]) for texts in self.told]
            if any(texts):
                rows.append((name, [element(tag, text, style=style) for text in texts]))
        return comparison_table(self.caption, [texts[0] for texts in self.told], rows)

    def __repr__(self) -> str:
        return repr(self.table())


def _shorten_lines(text: str) -> str:
    return "\n".join(shorten(line, MAX_CELL_LENGTH) for line in text.splitlines())


def comparison_table(
    caption: str, heads: Sequence[str], rows: Iterable[tuple[str, Iterable[Markup]]]
) -> Markup:
    """Build a comparison table with columns of equal width and a named row for each trait."""
    names = (element("th", head, scope="col", style=ALIGN_LEFT) for head in heads)
    head = element("thead", element("tr", element("td"), *names))
    columns = element("colgroup", element("col", style="width:7em"), *(element("col") for _ in heads))
    body = element("tbody", *(_table_row(name, cells) for name, cells in rows))
    style, title = "table-layout:fixed;width:100%", element("caption", caption, style=ALIGN_LEFT)
    return element("table", title, columns, head, body, style=style)


def _table_row(name: str, cells: Iterable[Markup]) -> Markup:
    style = f"{ALIGN_LEFT};vertical-align:top"
    columns = (element("td", concat([cell]), style=style) for cell in cells)
    return element("tr", element("th", name, scope="row", style=style), *columns)


# --- the runs of lesson 14 ---

_COLUMNS = ("language", "a fact, as the prompt shows it", "fixed", "what read the answer", "rows", "answer")
_MAX_ROWS = 3
_DIALECTS = {dialect.name: dialect for dialect in (PYTHON, CYPHER, SPARQL)}


def side_by_side(runs: Sequence[Trace | Sequence[Event]]) -> Comparison:
    """Show runs next to each other, each in its own query language.

    Raises BadInput if there are none, or if one lacks its beginning.
    """
    event_lists = [run.events if isinstance(run, Trace) else tuple(run) for run in runs]
    if not event_lists or not all(events and isinstance(events[0], Started) for events in event_lists):
        raise BadInput("give at least one run, from its first event (Started) on")
    started = [events[0] for events in event_lists if isinstance(events[0], Started)]
    told = tuple(map(_run_texts, started, event_lists))
    pictures = tuple(svg(graph_after(events), width=420, height=400, limit=40) for events in event_lists)
    return Comparison(started[0].question, _COLUMNS, told, pictures, code=True)


def _run_texts(started: Started, events: Sequence[Event]) -> tuple[str, ...]:
    """Return the texts of a run in the order of `_COLUMNS`."""
    reads = [event for event in events if isinstance(event, Read) and event.rows]
    repair_count = sum(isinstance(event, Repaired) for event in events)
    answers = (format_event(event).said for event in events if isinstance(event, Answered))
    return (
        " + ".join((started.dialect, *started.readers)),
        _first_fact(started.dialect, events),
        f"{repair_count} statement{'s' * (repair_count != 1)}",
        "\n".join(_last_reads(reads)) or "no read gave rows",
        _format_first_rows(reads[-1].rows) if reads else "",
        next(answers, "no answer"),
    )


def _first_fact(dialect: str, events: Sequence[Event]) -> str:
    edges = (edge for event in events if isinstance(event, Wrote) for edge in event.diff.added_edges)
    edge = next(edges, None)
    if edge is None:
        return "nothing was written"
    shown = replace(edge, properties=_visible_properties(edge.properties))
    return _DIALECTS.get(dialect, PYTHON).edge(shown)


def _last_reads(reads: Sequence[Read]) -> Iterator[str]:
    """Yield the last read with rows in each query language, the run's own first."""
    last_by_dialect = {read.dialect: read for read in reads}
    for dialect in sorted(last_by_dialect):
        yield (f"{dialect}: " if dialect else "") + last_by_dialect[dialect].statement


def _format_first_rows(rows: Rows) -> str:
    visible = (_visible_properties(row) if isinstance(row, Mapping) else row for row in rows)
    return "\n".join(first_lines(list(map(format_cell, visible)), _MAX_ROWS))


def _visible_properties(properties: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in PROVENANCE_PROPERTIES}
