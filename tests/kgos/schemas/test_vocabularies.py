"""The vocabularies of graphs of knowledge and of code, and that the cookbook's says what its page says."""

from __future__ import annotations

import pytest
from support.cookbook import FOLDER, cookbook
from support.foreign_files import TABLES
from support.method_graphs import edges_of

from kgot_lab.errors import UnknownName
from kgot_lab.graph.validation import EdgeType, Ends
from kgot_lab.kgos.schemas.check import find_faults
from kgot_lab.kgos.schemas.vocabularies import (
    CODE,
    COMPUTED_SIMILARITY,
    COOKBOOK,
    CURATED,
    UNIFIED,
    VOCABULARIES,
)
from kgot_lab.types import Edge, Node


def page(head: str) -> dict[str, list[str]]:
    """A table of the cookbook's page by the first cells of its rows."""
    block = (FOLDER / "VOCABULARY.md").read_text().split(f"\n| {head} |", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    return {first: rest for first, *rest in cells}


def test_the_cookbooks_vocabulary_says_what_its_page_says_and_the_cookbook_has_no_fault_against_it():
    assert {each.name: [each.meaning] for each in COOKBOOK.node_types} == page("type | meaning")
    told = page("type | meaning | from")
    assert {each.name for each in COOKBOOK.edge_types} == set(told)
    for each in COOKBOOK.edge_types:
        meaning, *ends, both = told[each.name]
        assert (each.meaning, each.symmetric) == (meaning.removesuffix(" (ours)"), both == "yes")
        sources, targets = (part.replace("any", "*").split(", ") for part in ends)
        assert {(one.source, one.target) for one in each.ends} == {(a, b) for a in sources for b in targets}
    graph = cookbook()
    for vocabulary in (COOKBOOK, CURATED):
        assert find_faults(vocabulary, graph.nodes, graph.edges) == ()


def test_every_profile_has_a_vocabulary_and_the_unified_one_has_all_types():
    assert set(VOCABULARIES) == set(TABLES)
    for kind in ("node_types", "edge_types"):
        names = [each.name for each in getattr(UNIFIED, kind)]
        assert len(set(names)) == len(names)
        for vocabulary in (COOKBOOK, CURATED, CODE):
            assert {each.name for each in getattr(vocabulary, kind)} <= set(names)


def test_imports_calls_and_patterns_are_types_of_edges():
    nodes = [Node("m", ("module",)), Node("f", ("function",)), Node("p", ("design_pattern",))]
    edges = edges_of("m imports m, m contains f, f calls f, f pattern_instance_of p")
    assert find_faults(CODE, nodes, edges) == ()
    (wrong,) = find_faults(CODE, nodes, edges_of("p contains f"))
    assert wrong.what == "contains does not join design_pattern to function"


def test_a_computed_similarity_is_a_type_of_its_own_that_says_how_much_and_by_what():
    nodes = [Node("a", ("goal",)), Node("b", ("goal",))]
    assert UNIFIED.edge_type("similar_to") != UNIFIED.edge_type(COMPUTED_SIMILARITY.name)
    computed = Edge("a", "computed_similarity", "b", {"similarity": 0.8, "computed_by": "neighbours"})
    assert find_faults(UNIFIED, nodes, [computed, Edge("a", "similar_to", "b")]) == ()
    found = find_faults(UNIFIED, nodes, [Edge("a", "computed_similarity", "b", {"similarity": 3})])
    assert [fault.what for fault in found] == ["similarity is 3", "it has no computed_by"]


def test_a_graph_with_types_of_its_own_extends_its_vocabulary():
    more = UNIFIED.with_types(EdgeType("supersedes", "comes after", (Ends("*", "*"),)))
    assert more.edge_type("supersedes").meaning == "comes after"
    with pytest.raises(UnknownName):
        UNIFIED.edge_type("supersedes")
