"""The edges that a read statement returned rows from, found by running it again without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from urllib.parse import unquote

from kgot_lab.errors import BadInput, LabError, QueryFailed
from kgot_lab.graph.changes import inverse
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.opening import open_for, open_store
from kgot_lab.stores.protocol import PartialReader, Store
from kgot_lab.text.words import content_words, name_units
from kgot_lab.types import Diff, Edge, Json, Rows

_MAX_EDGES = 5_000  # edges up to which all are candidates, and a graph is copied
_MAX_SEARCHED = 50  # nodes of a larger graph whose edges are candidates, at each of two hops
_MAX_READS = 80  # reads for one witness


def edges_read(store: Store, statement: str, rows: Sequence[Json]) -> list[Edge]:
    """Return a minimal set of edges with which alone a statement returns some rows, with all nodes of the graph.

    This is a minimal witness of the rows, their why-provenance (Buneman et al. 2001), in any language and with
    aggregates and paths of any length. If there is none, because the result is another each time or nothing
    here runs the language, the edges are returned whose ends the statement or the rows name.
    """
    text = f"{unquote(statement)} {rows}"
    words, names = set(content_words(text)), f" {' '.join(name_units(text))} "

    def named(edge: Edge) -> int:
        return sum(f" {' '.join(name_units(end))} " in names for end in (edge.source, edge.target))

    edges = _edges_near(store, text)
    edges.sort(key=lambda edge: (-named(edge), -len(words.intersection(content_words(fact_of(edge))))))
    try:
        with partial_reads(store) as read_without:
            witness = _minimal_witness(partial(read_without, statement), rows, edges)
    except LabError:
        witness = None
    return [edge for edge in edges if named(edge) == 2] if witness is None else witness


@contextmanager
def partial_reads(store: Store) -> Iterator[Callable[[str, Sequence[Edge]], Rows]]:
    """Yield a function that runs a read statement as if some edges of a store were missing.

    A store that cannot do so itself is copied to one in this process. Raises BadInput for a large graph, and
    what opening the copy raises.
    """
    if isinstance(store, PartialReader):
        yield store.read_without
        return
    if (size := store.schema().edges) > _MAX_EDGES:
        raise BadInput(f"a graph of {size:,} edges is not copied to read a part of it")
    language = store.dialect.name
    with closing(open_store("sqlite") if language.startswith("SQL") else open_for(language)) as copy:
        copy.apply(copy.graph().diff(store.graph()))

        def read_without(statement: str, edges: Sequence[Edge]) -> Rows:
            removed = Diff(removed_edges=tuple(edges))
            copy.apply(removed)
            try:
                return copy.read(statement)
            finally:
                copy.apply(inverse(removed))

        yield read_without


def flatten_facts(rows: Rows) -> Rows:
    """Flatten rows of facts whose properties are a nested map, so that all languages give the same form."""
    fact = {"subject", "relation", "object", "properties"}
    return tuple(
        {**row["properties"], **{name: row[name] for name in ("subject", "relation", "object")}}
        if isinstance(row, dict) and row.keys() == fact and isinstance(row["properties"], Mapping)
        else row
        for row in rows
    )


def _edges_near(store: Store, text: str) -> list[Edge]:
    """Return all edges of a small graph, or else those within two hops of the nodes that share words with a text."""
    if store.schema().edges <= _MAX_EDGES:
        return list(store.graph().edges)
    near: dict[tuple[str, ...], Edge] = {}
    ids = [node.id for node in store.search(text, _MAX_SEARCHED)]
    for _ in range(2):
        edges = [edge for id in ids[:_MAX_SEARCHED] for edge in store.neighbours(id)]
        near |= {edge.identity: edge for edge in edges}
        ends = (end for edge in edges for end in (edge.source, edge.target))
        ids = list(dict.fromkeys(end for end in ends if end not in ids))
    return list(near.values())[:_MAX_EDGES]


def _minimal_witness(
    read_without: Callable[[Sequence[Edge]], Rows], rows: Sequence[Json], edges: Sequence[Edge]
) -> list[Edge] | None:
    """Return the edges that suffice for some rows and of which none is dispensable, or None if all do not suffice.

    The first edges are tried first, then ever smaller parts are left out (delta debugging, Zeller 2002). After
    `_MAX_READS` reads some may be dispensable.
    """
    reads = count()

    def suffices(kept: Sequence[Edge]) -> bool:
        identities = {edge.identity for edge in kept}
        if next(reads) >= _MAX_READS:
            return False
        try:
            found = flatten_facts(read_without([e for e in edges if e.identity not in identities]))
        except QueryFailed:
            return False
        return all(row in found for row in rows)

    kept, size = list[Edge](), 4
    while not suffices(kept):
        if len(kept) == len(edges):
            return None
        kept, size = list(edges[:size]), 4 * size
    step = len(kept) // 2
    while step:
        start = 0
        while start < len(kept):
            fewer = kept[:start] + kept[start + step :]
            kept, start = (fewer, start) if suffices(fewer) else (kept, start + step)
        step //= 2
    return kept
