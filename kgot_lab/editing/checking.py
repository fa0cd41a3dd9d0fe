"""The rules of a sound graph asked of what a change touches, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from kgot_lab.errors import shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.schemas.check import Fault
from kgot_lab.schemas.rules.twelve import check_rules
from kgot_lab.schemas.vocabulary import Vocabulary
from kgot_lab.types import Diff

_NEAR_RULES = (1, 2, 4, 5, 6, 7, 10, 12)  # that look at a node, an edge, or what is two edges away
_CIRCLES = {9: "requires", 11: "feeds_into"}  # that follow one type of edge any way
_FAR = 2  # edges from a node to what a rule looks at


def touched_by(diff: Diff) -> set[str]:
    """The nodes that a change is about: those that it adds, takes away or changes, and the ends of such edges."""
    nodes = [*diff.added_nodes, *diff.removed_nodes, *(after for _, after in diff.changed_nodes)]
    edges = [*diff.added_edges, *diff.removed_edges, *(after for _, after in diff.changed_edges)]
    return {each.id for each in nodes} | {end for each in edges for end in (each.source, each.target)}


def faults_near(graph: PropertyGraph, vocabulary: Vocabulary, touched: Iterable[str]) -> set[Fault]:
    """What breaks a rule within two edges of some nodes, and the circles that go through them: the graph beyond is not looked at.

    A change alters no other answer of a rule, so a full check before and after differs in these faults alone.
    """
    there = [id for id in touched if id in graph]
    if not there:
        return set()
    # one edge further than what is told: a rule on a node at the rim looks at that node's edges
    near = graph.neighbourhood(there, hops=_FAR)
    wide = graph.neighbourhood(there, hops=2 * _FAR)
    told = {f"node {shortly(id)}" for id in near.ids} | {_edge(each.source, each.type, each.target) for each in near.edges}
    found = {each for each in check_rules(wide, vocabulary, only=_NEAR_RULES).faults if each.where in told}
    for rule, type in _CIRCLES.items():
        if type in graph.type_names:
            found.update(check_rules(graph.subgraph(_along(graph, there, type)), vocabulary, only=(rule,)).faults)
    return found


def _along(graph: PropertyGraph, start: Iterable[str], type: str) -> set[str]:
    """What edges of a type lead to from some nodes, and what leads to them."""
    reached = set(start)
    waiting = list(reached)
    while waiting:
        for edge in graph.neighbours(waiting.pop(), "both", (type,)):
            for end in (edge.source, edge.target):
                if end not in reached:
                    reached.add(end)
                    waiting.append(end)
    return reached


def _edge(source: str, type: str, target: str) -> str:
    return f"edge {shortly(source)} -{type}-> {shortly(target)}"
