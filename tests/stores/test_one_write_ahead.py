"""A run that was killed between a write and its line on the trace: its store is one write ahead, and the run resumes in it."""

from __future__ import annotations

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.stores import empty_store, open_store
from kgot_lab.types import Diff, Node


@pytest.mark.parametrize("kind", ["in_memory", "cypher_embedded", "sparql_embedded"])
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_a_store_may_be_one_write_ahead_of_its_run_and_no_more(tmp_path, kind, behind):
    place, graphs = tmp_path / "graph.log", [PropertyGraph.of()]
    with open_store(kind, at=place) as store:
        for name in ("Ada", "Babbage", "Byron"):
            store.apply(Diff(added_nodes=(Node(name),)))
            graphs.append(store.graph())
    holding = graphs[3 - behind]
    if behind < 2:
        with empty_store(kind, place, holding=holding) as store:
            assert not store.schema().nodes
    else:
        with pytest.raises(BadInput, match="already holds a graph of 3 nodes"):
            empty_store(kind, place, holding=holding)
