"""What some nodes are linked to, over chosen types of edges (KG-OS, method 12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from kgot_lab.errors import BadInput, require_amount
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import NodesFound
from kgot_lab.kgos.methods.index import index_of, rows_named
from kgot_lab.retrieval.neighbours import BOOST_AGAINST, BOOST_ALONG
from kgot_lab.text.cleaning import counted


def edge_type_boost(
    graph: PropertyGraph,
    seeds: Iterable[str],
    boost_types: Collection[str] | Mapping[str, float] | None = None,
    *,
    outgoing: float = BOOST_ALONG,
    incoming: float = BOOST_AGAINST,
) -> NodesFound:
    """The nodes that the seeds are linked to: boost(d) = outgoing * edges from a seed + incoming * edges to a
    seed, over the largest.

    Only edges of `boost_types`, where given; each counts the same, or as a mapping says: {"enables": 1,
    "relates_to": 0.5} (C-O10). A loop boosts nothing, and a seed is found where another seed is linked to it.
    As a stage of a pipeline it is `retrieval.neighbours.around`. Raises BadInput where outgoing and incoming
    are both 0 or one is below, and UnknownName for a seed, or where no edge has such a type.
    """
    for name, value in (("outgoing", outgoing), ("incoming", incoming)):
        require_amount(value, name)
    if not outgoing and not incoming:
        raise BadInput(
            "outgoing and incoming are both 0: then no edge boosts anything; one of them must be more"
        )
    index = index_of(graph)
    rows = rows_named(index, seeds, "seeds")
    for name, value in boost_types.items() if isinstance(boost_types, Mapping) else ():
        require_amount(value, f"the weight of {name}", some=True)
    absent = index.absent_types(boost_types)
    boosts, first = index.links.boosts(rows, index.ways_of(boost_types, along=outgoing, against=incoming))
    found = np.flatnonzero(boosts)
    order = found[np.lexsort((index.name_order[found], -boosts[found]))]
    nodes = index.hits(order.tolist(), boosts[order].tolist(), index.reasons_for(first[order].tolist()))
    along = "any type" if boost_types is None else ", ".join(sorted(boost_types))
    why = [f"edges followed: {along}; outgoing +{outgoing:g}, incoming +{incoming:g}, divided by the largest"]
    if absent:
        why.append(f"no edge of the graph has the type {', '.join(absent)}")
    if not nodes:
        why.append("no seeds were given" if not len(rows) else "no such edge joins a seed with another node")
    return NodesFound(f"edge-type boost from {counted(len(rows), 'seed')}", nodes, tuple(why))
