"""The rules of a sound graph asked of what a change touches, and of nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kgot_lab.errors import shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.kgos.schemas.rules import check_rules
from kgot_lab.types import Diff

_OWN_RULES = (1, 2, 4, 5, 6, 7)  # that look at a node or an edge, and at what touches it
# that follow these edges
_ALONG_RULES = {(9,): ("requires",), (11,): ("feeds_into",), (10, 12): ("has_limitation", "has_workaround")}


def touched_by(diff: Diff) -> set[str]:
    """The nodes that a change is about: those that it adds, takes away or changes, and the ends of such
    edges.
    """
    nodes = [*diff.added_nodes, *diff.removed_nodes, *(after for _, after in diff.changed_nodes)]
    edges = [*diff.added_edges, *diff.removed_edges, *(after for _, after in diff.changed_edges)]
    return {each.id for each in nodes} | {end for each in edges for end in (each.source, each.target)}


def faults_near(graph: PropertyGraph, vocabulary: Vocabulary, touched: Iterable[str]) -> set[Fault]:
    """What breaks a rule at some nodes or at their edges, or at what certain edges join them with: the graph
    beyond is not looked at.

    A change alters no other answer of a rule, so a full check before and after differs in these faults alone.
    """
    there = [id for id in touched if id in graph]
    if not there:
        return set()
    told = {f"node {shortly(id)}" for id in there}
    told |= {
        _edge(edge.source, edge.type, edge.target) for id in there for edge in graph.neighbours(id, "both")
    }
    near = graph.neighbourhood(there, hops=1)
    found = {each for each in check_rules(near, vocabulary, only=_OWN_RULES).faults if each.where in told}
    for rules, types in _ALONG_RULES.items():
        if not set(types).isdisjoint(graph.type_names):
            found.update(
                check_rules(graph.subgraph(_along(graph, there, types)), vocabulary, only=rules).faults
            )
    return found


def _along(graph: PropertyGraph, start: Iterable[str], types: Collection[str]) -> set[str]:
    """All that edges of some types join with some nodes, over any number of them."""
    reached = set(start)
    waiting = list(reached)
    while waiting:
        for edge in graph.neighbours(waiting.pop(), "both", types):
            for end in (edge.source, edge.target):
                if end not in reached:
                    reached.add(end)
                    waiting.append(end)
    return reached


def _edge(source: str, type: str, target: str) -> str:
    return f"edge {shortly(source)} -{type}-> {shortly(target)}"
