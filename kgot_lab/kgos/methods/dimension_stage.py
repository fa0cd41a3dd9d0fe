"""Keeping the hits whose nodes lie within bounds on named dimensions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import phrase, within
from kgot_lab.retrieval.stage import Stage


def dimensions(
    graph: PropertyGraph, filters: Mapping[str, object], *, declared: Collection[str] = ()
) -> Stage:
    """Keeps the hits whose node lies within the bounds on every dimension; `within` says how bounds are given
    and what counts.

    A node that has no number on one of them is left out, and the name of the stage counts such nodes; so is a
    hit that is no node. Scores stay as they were. Raises UnknownName for a dimension that is neither one of
    the 56 nor `declared`, and BadInput.
    """
    found = within(graph, filters, declared=declared)
    kept = {graph.ids[row] for row in np.flatnonzero(found.kept)}
    limits = [phrase(name, bounds) for name, bounds in found.bounds.items()]
    limits += [f"{found.incomplete} nodes lack one"] * bool(found.incomplete)
    return Stage(
        f"dimensions({', '.join(limits)})",
        lambda ranking: replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.id in kept)),
    )
