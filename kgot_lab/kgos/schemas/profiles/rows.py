"""Two tables as a graph, made column by column, and each row that cannot be taken as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np

from kgot_lab.errors import shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.columns import Ints, frozen
from kgot_lab.kgos.schemas.foreign_files import TableColumns, row_properties
from kgot_lab.kgos.schemas.profiles import Profile
from kgot_lab.kgos.schemas.rules import Unread

RELATED = "related_to"  # the type of an edge where a file has no column for it


def graph_of_tables(
    profile: Profile, nodes: TableColumns, edges: TableColumns
) -> tuple[PropertyGraph, tuple[Unread, ...]]:
    """The graph of two tables, and the rows that are not in it as they stand, those of nodes first.

    Left out are a node without an id or with that of an earlier row, and an edge one of whose ends is no node
    (rule 3). Malformed JSON leaves a row without its properties (rule 8). Of edges with the same ends and
    type all but the first have their number as key; a column that only numbers the edges is no property.
    """
    ids = nodes.texts(profile.id)
    kept, unread = _readable_nodes(nodes.table, ids)
    row_of = {id: row for row, id in enumerate(compress(ids, kept)) if id is not None}
    of_nodes, wrong = row_properties(
        nodes,
        profile.properties,
        (profile.id, profile.called, profile.type),
        lambda row: f"node {shortly(ids[row])}",
    )
    names, types = nodes.texts(profile.called), nodes.texts(profile.type)
    named = [
        known if name is None else {**known, "name": name}
        for name, known in zip(names, of_nodes, strict=True)
    ]
    unread += [*wrong, *(_replaced(nodes, row, f"node {shortly(ids[row])}") for row in nodes.replaced)]

    sources, targets = edges.texts(profile.source), edges.texts(profile.target)
    relations = (
        [each or "" for each in edges.texts(profile.relation)] if profile.relation else [RELATED] * edges.rows
    )
    begin, end = (
        np.array([-1 if id is None else row_of.get(id, -1) for id in each], dtype=np.int32)
        for each in (sources, targets)
    )
    whole = (begin >= 0) & (end >= 0)

    def describe_edge(row: int) -> str:
        return f"edge {shortly(sources[row])} -{relations[row]}-> {shortly(targets[row])}"

    for row in np.flatnonzero(~whole).tolist():
        gone = [
            shortly(id) for id, there in ((sources[row], begin[row]), (targets[row], end[row])) if there < 0
        ]
        unread.append(
            Unread(
                3,
                edges.table,
                row + 1,
                describe_edge(row),
                f"there is no node {' and no node '.join(gone)}, so it is left out",
            )
        )
    besides = (profile.source, profile.target, profile.relation, edges.number)
    of_edges, wrong = row_properties(edges, profile.edge_properties, besides, describe_edge)
    unread += [*wrong, *(_replaced(edges, row, describe_edge(row)) for row in edges.replaced)]

    begin, end, here = begin[whole], end[whole], whole.tolist()
    code_of = {name: code for code, name in enumerate(dict.fromkeys(compress(relations, here)))}
    codes = np.array([code_of[name] for name in compress(relations, here)], dtype=np.int32)
    graph = PropertyGraph(
        ids=tuple(row_of),
        node_labels=tuple((each,) if each and each.strip() else () for each in compress(types, kept)),
        node_properties=tuple(compress(named, kept)),
        sources=frozen(begin),
        targets=frozen(end),
        type_codes=frozen(codes),
        type_names=tuple(code_of),
        edge_properties=tuple(compress(of_edges, here)),
        edge_keys=_keys(begin, end, codes, len(row_of)),
    )
    return graph, tuple(sorted(unread, key=lambda each: (each.table != nodes.table, each.row)))


def _readable_nodes(table: str, ids: Sequence[str | None]) -> tuple[list[bool], list[Unread]]:
    """Which rows become nodes, and why the others do not."""
    first: dict[str, int] = {}
    kept, unread = [], []
    for row, id in enumerate(ids):
        kept.append(id is not None and first.setdefault(id, row) == row)
        if not kept[-1]:
            why = "it has no id" if id is None else f"row {first[id] + 1:,} has its id already"
            unread.append(Unread(0, table, row + 1, f"node {shortly(id)}", f"{why}, so it is left out"))
    return kept, unread


def _replaced(columns: TableColumns, row: int, of: str) -> Unread:
    return Unread(
        0,
        columns.table,
        row + 1,
        of,
        "a text in it is not UTF-8; the letters that could not be read were replaced",
    )


def _keys(begin: Ints, end: Ints, codes: Ints, nodes: int) -> tuple[str, ...]:
    """The key of each edge: "" for the first with its ends and type, "2", "3" … for those after it."""
    triple = (codes.astype(np.int64) * nodes + begin) * nodes + end
    order = np.argsort(triple, kind="stable")
    begins = np.ones(len(triple), dtype=np.bool_)
    begins[1:] = np.diff(triple[order]) != 0
    places = np.arange(len(triple))
    count = np.empty(len(triple), dtype=np.int64)
    count[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return tuple("" if each == 0 else str(each + 1) for each in count.tolist())
