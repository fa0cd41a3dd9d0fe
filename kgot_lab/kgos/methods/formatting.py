"""Results of methods: a table with reasons as text and HTML, and a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kgot_lab.arguments import CheckedCalls
from kgot_lab.errors import needs_extra
from kgot_lab.evaluation.tables import Cell, Grid, escaped_cell
from kgot_lab.text.cleaning import format_count, printable_line

if TYPE_CHECKING:
    import pandas as pd

CALLS_NOTE = "calls resolved: "  # begins the reason that tells how much of a graph of code is known
_MAX_ROWS = 10  # rows that are printed
_MAX_CELL_WIDTH = 70  # characters of a cell


class NodeHit(NamedTuple):
    """A node found by a method, with its score (higher is better) and the reason."""

    id: str
    name: str
    type: str
    score: float
    why: str = ""


class MethodResult(CheckedCalls):
    """The result of a method.

    `frame` has all rows. `why` holds sentences, also on what was not found.
    """

    COLUMNS: ClassVar[tuple[str, ...]]
    nodes: tuple[Any, ...]
    why: tuple[str, ...]

    @property
    def title(self) -> str:
        """The query and the size of the result, in one line."""
        raise NotImplementedError

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """Return the answer as rows, with one value for each of COLUMNS: its nodes, unless the answer is another."""
        return self.nodes

    @property
    def ids(self) -> list[str]:
        """The ids of the nodes in the result, in its order.

        `graph.subgraph(found.ids)` is the part to draw.
        """
        return [str(row[0]) for row in self.rows()]

    def frame(self) -> pd.DataFrame:
        """Convert the rows to a data frame.

        Raises NotInstalled if pandas is missing.
        """
        with needs_extra("lab", "pandas"):
            import pandas as pd
        return pd.DataFrame(list(self.rows()), columns=list(self.COLUMNS))

    def __repr__(self) -> str:
        lines = [f"<{self._grid().text}"] if self.rows() else [f"<{printable_line(self.title)}"]
        return "\n".join([*lines, *self._notes()]) + ">"

    def _repr_html_(self) -> str:
        return "".join([self._grid().html, *(f"<div>{escaped_cell(note)}</div>" for note in self._notes())])

    def _grid(self) -> Grid:
        shown = self.rows()[:_MAX_ROWS]
        cells = tuple(tuple(Cell(_format_value(value)) for value in row) for row in shown)
        return Grid(self.title, self.COLUMNS, cells, words=True)

    def _notes(self) -> list[str]:
        left = len(self.rows()) - _MAX_ROWS
        return ([f"… and {format_count(left, 'row')} more; frame() has all"] if left > 0 else []) + [
            printable_line(each) for each in self.why
        ]


@dataclass(frozen=True, repr=False)
class NodesFound(MethodResult):
    """Nodes from best to worst, ties broken by id, and the query."""

    asked: str
    nodes: tuple[NodeHit, ...]
    why: tuple[str, ...] = ()

    COLUMNS = ("id", "name", "type", "score", "why")

    @property
    def title(self) -> str:
        return f"{self.asked}: {format_count(len(self.nodes), 'node')}"

    @property
    def scores(self) -> dict[str, float]:
        """The score of each node found, by id."""
        return {node.id: node.score for node in self.nodes}


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, tuple | list):
        value = ", ".join(map(str, value))
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_CELL_WIDTH else f"{text[: _MAX_CELL_WIDTH - 1]}…"


# A result with rows of one form, as most questions about the structure of a graph have.


@dataclass(frozen=True, repr=False)
class TableFound(MethodResult):
    """Rows with their columns, a title and reasons. `about` holds the ids of the nodes in them."""

    asked: str
    columns: tuple[str, ...]
    found: tuple[tuple[Any, ...], ...]
    why: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def COLUMNS(self) -> tuple[str, ...]:  # type: ignore[override]  # noqa: N802
        """The names of the columns."""
        return self.columns

    @property
    def title(self) -> str:
        return self.asked

    @property
    def ids(self) -> list[str]:
        """The ids of the nodes in the rows."""
        return list(self.about)

    def rows(self) -> Sequence[tuple[Any, ...]]:
        return self.found
