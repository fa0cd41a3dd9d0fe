"""Compare runs of one question in several query languages: graph, a fact, reads and answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from kgot_lab.viz.static.markup import Markup, concat, element, shorten
from kgot_lab.viz.static.table import ALIGN_LEFT, MAX_CELL_LENGTH, Sheet, Table, format_cell

_COLUMNS = ("language", "a fact, as the prompt shows it", "mended", "what read the answer", "rows", "answer")
_MAX_ROWS = 3
_DIALECTS = {dialect.name: dialect for dialect in (PYTHON, CYPHER, SPARQL)}
_CODE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:85%;margin:0"


@dataclass(frozen=True)
class RunSummary:
    """The result of one run as texts. `pictured` is the graph it built."""

    language: str
    fact: str  # the first fact written
    mended: str  # the number of statements that the model repaired after the engine refused them
    read: str  # the last statement that returned rows, in each language
    rows: str
    answer: str
    pictured: Picture

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, in the order of `_COLUMNS`."""
        return self.language, self.fact, self.mended, self.read, self.rows, self.answer


@dataclass(frozen=True)
class SideBySide:
    """A column for each run. The HTML also has pictures; the table and the plain text have the same texts."""

    question: str
    spoken: tuple[RunSummary, ...]

    def table(self) -> Table:
        """Return the texts without the pictures, a row for each run."""
        rows = tuple(spoken.texts for spoken in self.spoken)
        return Table((Sheet(_COLUMNS, rows, len(rows), self.question),))

    def _repr_html_(self) -> str:
        pictures = ("graph", [Markup(spoken.pictured._repr_html_()) for spoken in self.spoken])
        heads = [spoken.language for spoken in self.spoken]
        return comparison_table(self.question, heads, [pictures, *self._text_rows()])

    def __repr__(self) -> str:
        return repr(self.table())

    def _text_rows(self) -> Iterator[tuple[str, list[Markup]]]:
        for number, name in enumerate(_COLUMNS[1:], start=1):
            texts = (_shorten_lines(spoken.texts[number]) for spoken in self.spoken)
            yield name, [element("pre", text, style=_CODE) for text in texts]


def side_by_side(runs: Sequence[Trace | Sequence[Event]]) -> SideBySide:
    """Show runs next to each other, each in its own query language.

    Raises BadInput if there are none, or if one lacks its beginning.
    """
    event_lists = [run.events if isinstance(run, Trace) else tuple(run) for run in runs]
    if not event_lists or not all(events and isinstance(events[0], Started) for events in event_lists):
        raise BadInput("give at least one run, from its first event (Started) on")
    started = [events[0] for events in event_lists if isinstance(events[0], Started)]
    return SideBySide(started[0].question, tuple(map(_summarize_run, started, event_lists)))


def _summarize_run(started: Started, events: Sequence[Event]) -> RunSummary:
    reads = [event for event in events if isinstance(event, Read) and event.rows]
    repair_count = sum(isinstance(event, Repaired) for event in events)
    return RunSummary(
        language=" + ".join((started.dialect, *started.readers)),
        fact=_first_fact(started.dialect, events),
        mended=f"{repair_count} statement{'s' * (repair_count != 1)}",
        read="\n".join(_last_reads(reads)) or "no read gave rows",
        rows=_format_first_rows(reads[-1].rows) if reads else "",
        answer=next(
            (format_event(event).said for event in events if isinstance(event, Answered)), "no answer"
        ),
        pictured=svg(graph_after(events), width=420, height=400, limit=40),
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
    visible = (_visible_properties(row) if isinstance(row, Mapping) else row for row in rows[:_MAX_ROWS])
    shown = list(map(format_cell, visible))
    return "\n".join([*shown, *([f"and {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else [])])


def _visible_properties(properties: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in PROVENANCE_PROPERTIES}


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
