"""A graph from whatever a person has at hand: ours, NetworkX's, triples, edges, or a pandas table of edges."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, described_value
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import from_networkx, from_pandas, id_text, unambiguous
from kgot_lab.types import Edge, Triple

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Mapping[
    str, tuple[str, ...]
] = {  # what the columns of a table of edges are called, the first name being ours
    "source": ("source", "subject", "from", "head", "start", "src", "node1"),
    "type": ("type", "relation", "relationship", "predicate", "label", "edge", "rel"),
    "target": ("target", "object", "to", "tail", "end", "dst", "destination", "node2"),
}


def is_networkx(what: object) -> bool:
    """Whether this is a NetworkX graph; it can only be one where NetworkX is loaded."""
    return _is(what, "networkx", "Graph")


def is_undirected(what: object) -> bool:
    """Whether this is a NetworkX graph whose edges point nowhere; as a PropertyGraph each points the way it
    is listed.
    """
    return is_networkx(what) and not what.is_directed()  # type: ignore[attr-defined]


def is_frame(what: object) -> bool:
    """Whether this is a pandas data frame."""
    return _is(what, "pandas", "DataFrame")


def _is(what: object, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(what, getattr(loaded, name))


def from_edge_list(edges: pd.DataFrame) -> PropertyGraph:
    """The graph of a data frame with a row for each edge: columns source and target, perhaps type, by these
    or near names.

    Near names are those of COLUMNS, in capitals or not; every other column is a property. Without a type an
    edge is "related_to". Raises BadInput for a table without such columns, naming those it has, and for a row
    without an end.
    """
    import pandas as pd

    unambiguous(edges.columns, "edges")
    renamed = edges.rename(columns={there: ours for ours, there in _columns(edges).items()})
    unambiguous(renamed.columns, "edges")  # Source and source
    ends = (
        pd.concat([renamed[end].astype(object) for end in ("source", "target")])
        .dropna()
        .map(id_text)
        .drop_duplicates()
    )
    return from_pandas(pd.DataFrame({"id": ends}), renamed)


def _columns(edges: pd.DataFrame) -> dict[str, Any]:
    """The column that is meant by each of our names."""
    by_name = {str(column).strip().lower(): column for column in edges.columns}
    found = {
        ours: next((by_name[name] for name in names if name in by_name), None)
        for ours, names in COLUMNS.items()
    }
    if found["source"] is None or found["target"] is None:
        there = ", ".join(map(str, islice(edges.columns, 8)))
        raise BadInput(
            f"a table of edges needs a column source, a column target and perhaps a column type; this one has {there or 'none'}"
        )
    return {ours: column for ours, column in found.items() if column is not None}


def could_be_triple(what: object) -> bool:
    """Whether this is a triple, or a tuple or list, which is meant for one: from_triples says what is wrong
    with it.
    """
    return isinstance(what, Triple | tuple | list)


def _of_edges(edges: Iterable[Edge]) -> PropertyGraph:
    return PropertyGraph.of((), edges, dangling="add")


_ITEMS: tuple[tuple[Callable[[object], bool], Callable[[Any], PropertyGraph]], ...] = (
    (could_be_triple, PropertyGraph.from_triples),
    (lambda item: isinstance(item, Edge), _of_edges),
)
GRAPHS = "a PropertyGraph, a NetworkX graph, triples (subject, relation, object), edges, or a pandas table of edges"


def as_graph(what: object) -> PropertyGraph:
    """The graph that is meant: itself, or that of a NetworkX graph, of triples, of edges, of a pandas table
    of edges; raises BadInput.
    """
    if isinstance(what, PropertyGraph):
        return what
    if is_networkx(what):
        return from_networkx(what)  # type: ignore[arg-type]
    if is_frame(what):
        return from_edge_list(what)  # type: ignore[arg-type]
    if isinstance(what, Iterable) and not isinstance(what, str | bytes | Mapping):
        items: Sequence[object] = what if isinstance(what, Sequence) else list(what)
        for fits, make in _ITEMS:
            if items and fits(items[0]):
                return make(items)
    raise BadInput(f"a graph is {GRAPHS}; this is {described_value(what)}")
