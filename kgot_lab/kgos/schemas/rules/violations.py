"""What breaks each rule, found in the columns of a graph: functions from a graph and its vocabulary to rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.columns import Ints
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.kgos.schemas.rules import on_circles, rows_of_types


def nameless(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The nodes without a name, or with one that is blank or no text."""
    names = (properties.get("name") for properties in graph.node_properties)
    return _rows(not (isinstance(name, str) and name.strip()) for name in names)


def of_no_type(graph: PropertyGraph, vocabulary: Vocabulary) -> Ints:
    """The nodes that have not exactly one label, or one that is no node type of the vocabulary."""
    known = {(each.name,) for each in vocabulary.node_types}
    return _rows(labels not in known for labels in graph.node_labels)


def loops(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The edges from a node to itself."""
    return np.flatnonzero(graph.sources == graph.targets).astype(np.int32)


def repeated_edges(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The edges whose source, target and type an earlier edge has, whatever tells them apart."""
    triple = (graph.sources.astype(np.int64) * max(len(graph.type_names), 1) + graph.type_codes) * max(
        len(graph), 1
    ) + graph.targets
    first = np.ones(len(triple), dtype=np.bool_)
    order = np.argsort(triple, kind="stable")
    first[order[1:]] = np.diff(triple[order]) != 0
    return np.flatnonzero(~first).astype(np.int32)


def orphans(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The nodes that no edge touches."""
    degrees = np.bincount(graph.sources, minlength=len(graph)) + np.bincount(
        graph.targets, minlength=len(graph)
    )
    return np.flatnonzero(degrees == 0).astype(np.int32)


def of_unknown_type(graph: PropertyGraph, vocabulary: Vocabulary) -> Ints:
    """The edges whose type is none of the vocabulary."""
    known = {each.name for each in vocabulary.edge_types}
    return rows_of_types(graph, *(set(graph.type_names) - known))


def requires_itself(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The nodes that require themselves, through others or at once."""
    return on_circles(graph, "requires")


def feeds_itself(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The nodes that feed into themselves, through others or at once."""
    return on_circles(graph, "feeds_into")


def workaround_of_nothing(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The edges has_workaround that leave neither a limitation that something has nor a node that has one."""
    limited, worked = rows_of_types(graph, "has_limitation"), rows_of_types(graph, "has_workaround")
    concerned = np.zeros(len(graph), dtype=np.bool_)
    concerned[graph.sources[limited]] = concerned[graph.targets[limited]] = True
    return worked[~concerned[graph.sources[worked]]]


def without_way_out(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """The nodes that have a limitation, and for none of them a workaround, and no property no_workaround that
    says so.
    """
    limited, worked = rows_of_types(graph, "has_limitation"), rows_of_types(graph, "has_workaround")
    helped, open_ = np.zeros(len(graph), dtype=np.bool_), np.zeros(len(graph), dtype=np.bool_)
    helped[graph.sources[worked]] = True
    open_[graph.sources[limited]] = True
    open_[graph.sources[limited[helped[graph.targets[limited]]]]] = False
    found = np.flatnonzero(open_ & ~helped)
    return np.array(
        [row for row in found.tolist() if not graph.node_properties[row].get("no_workaround")], dtype=np.int32
    )


def _rows(found: Iterable[bool]) -> Ints:
    return np.flatnonzero(np.fromiter(found, np.bool_)).astype(np.int32)
