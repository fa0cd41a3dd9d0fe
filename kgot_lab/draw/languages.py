"""Runs of one question in several languages, side by side: the graph each grew, what was written, what read the answer, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.draw.markup import Markup, element, joined, shortened
from kgot_lab.draw.svg import Picture, svg
from kgot_lab.draw.table import CELL, LEFT, Sheet, Table, cell
from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Answered, Event, Read, Repaired, Started, Wrote
from kgot_lab.loop.trace import Trace, graph_after

ROWS = ("language", "written first", "mended", "read the answer", "rows", "answer")
_CODE = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:85%;margin:0"


@dataclass(frozen=True)
class Spoken:
    """What one run did in its language, as texts; `pictured` is the graph it grew."""

    language: str
    written: str  # the first statement that changed the graph
    mended: str  # how many statements the model mended after the engine refused them
    read: str  # the last statement that gave rows, with its language if that is not the run's own
    rows: str
    answer: str
    pictured: Picture

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, in the order of `ROWS`."""
        return self.language, self.written, self.mended, self.read, self.rows, self.answer


@dataclass(frozen=True)
class SideBySide:
    """A column for each run; its HTML has the pictures, its table and its plain text the same words."""

    question: str
    spoken: tuple[Spoken, ...]

    def table(self) -> Table:
        """The words without the pictures, a row for each run."""
        rows = tuple(spoken.texts for spoken in self.spoken)
        return Table((Sheet(ROWS, rows, len(rows), self.question),))

    def _repr_html_(self) -> str:
        width = f"width:{100 // (len(self.spoken) + 1)}%"
        head = element("tr", element("td"), *(element("th", spoken.language, scope="col", style=LEFT) for spoken in self.spoken))
        pictures = element(
            "tr", element("th", "graph", scope="row", style=LEFT), *(_cell(each.pictured._repr_html_()) for each in self.spoken)
        )
        caption = element("caption", self.question, style=LEFT)
        columns = element("colgroup", element("col"), *(element("col", style=width) for _ in self.spoken))
        style = "table-layout:fixed;width:100%"
        return element("table", caption, columns, element("thead", head), element("tbody", pictures, *self._rows()), style=style)

    def __repr__(self) -> str:
        return repr(self.table())

    def _rows(self) -> Iterator[Markup]:
        for number, name in enumerate(ROWS[1:], start=1):
            cells = (element("pre", shortened(each.texts[number], 2 * CELL), style=_CODE) for each in self.spoken)
            yield element("tr", element("th", name, scope="row", style=LEFT), *map(_cell, cells))


def side_by_side(runs: Sequence[Trace | Sequence[Event]]) -> SideBySide:
    """Runs beside each other, each in the language it was made in; raises BadInput for none, or for one without its beginning."""
    told = [run.events if isinstance(run, Trace) else tuple(run) for run in runs]
    if not told or not all(events and isinstance(events[0], Started) for events in told):
        raise BadInput("give at least one run, from its first event (Started) on")
    begun = [events[0] for events in told if isinstance(events[0], Started)]
    return SideBySide(begun[0].question, tuple(map(_spoken, begun, told)))


def _spoken(begun: Started, events: Sequence[Event]) -> Spoken:
    written = next((event.statement for event in events if isinstance(event, Wrote) and event.diff), "nothing was written")
    reads = [event for event in events if isinstance(event, Read) and event.rows]
    mended = sum(isinstance(event, Repaired) for event in events)
    return Spoken(
        language=" + ".join((begun.dialect, *begun.readers)),
        written=written,
        mended=f"{mended} statement{'s' * (mended != 1)}",
        read="\n\n".join(_read_last(reads)) or "no read gave rows",
        rows="\n".join(cell(row) for row in reads[-1].rows[:5]) if reads else "",
        answer=next((event.text for event in events if isinstance(event, Answered)), "no answer"),
        pictured=svg(graph_after(events), width=420, height=360, limit=40),
    )


def _read_last(reads: Sequence[Read]) -> Iterator[str]:
    """The last read with rows in each language, the run's own first."""
    last: Mapping[str, Read] = {read.dialect: read for read in reads}
    for dialect in sorted(last):
        yield (f"{dialect}: " if dialect else "") + last[dialect].statement


def _cell(content: str) -> Markup:
    return element("td", joined([Markup(content)]), style=f"{LEFT};vertical-align:top")
