"""The twelve rules with their severities, and the check of a graph against them.

Where the document can be read in two ways: rule 6 asks that a node has an edge, not that another leads to it,
which no root would pass; rules 10 and 12 accept has_workaround from a limitation and from what has it; a loop
of requires or feeds_into breaks rule 4 and rule 9 or 11. Rules 3 and 8 are about what a graph in memory
cannot hold any more, so whoever reads a file reports the rows that break them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kgot_lab.errors import UnknownName, described_value, require, shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.kgos.schemas.rules import Broken, Rule, RuleReport, Unread, circle_through
from kgot_lab.kgos.schemas.rules import violations as finding
from kgot_lab.kgos.schemas.vocabularies import UNIFIED

_LIST_TYPES = "give it one type of the vocabulary, or extend the vocabulary"


def _name(graph: PropertyGraph, row: int) -> str:
    return f"its name is {described_value(graph.node_properties[row].get('name'))}"


def _labels(graph: PropertyGraph, row: int) -> str:
    labels = graph.node_labels[row]
    return (
        f"its type is {shortly(labels[0])}, which is not in the vocabulary"
        if len(labels) == 1
        else f"it has {len(labels)} types"
    )


def _type(graph: PropertyGraph, row: int) -> str:
    return f"its type is {shortly(graph.type_names[graph.type_codes[row]])}, which is not in the vocabulary"


def _circle(type: str, verb: str) -> Callable[[PropertyGraph, int], str]:
    def why(graph: PropertyGraph, row: int) -> str:
        return f"it {verb} itself: {f' -{type}-> '.join(map(shortly, circle_through(graph, type, row)))}"

    return why


TWELVE_RULES = (
    Rule(1, "error", "every node has a name", "give it one", "nodes", finding.nameless, _name),
    Rule(
        2,
        "error",
        "every node has a type of the vocabulary",
        _LIST_TYPES,
        "nodes",
        finding.of_no_type,
        _labels,
    ),
    Rule(
        3, "error", "every edge joins two nodes that are there", "add the node, or leave the edge out", "rows"
    ),
    Rule(
        4,
        "warning",
        "no edge joins a node with itself",
        "leave it out",
        "edges",
        finding.loops,
        lambda *_: "it joins a node with itself",
    ),
    Rule(
        5,
        "warning",
        "no edge is there twice",
        "leave it out, or put what both say into one",
        "edges",
        finding.repeated_edges,
        lambda *_: "an earlier edge has the same ends and type",
    ),
    Rule(
        6,
        "warning",
        "every node has an edge",
        "join it with something",
        "nodes",
        finding.orphans,
        lambda *_: "it has no edge",
    ),
    Rule(
        7,
        "warning",
        "every edge has a type of the vocabulary",
        _LIST_TYPES,
        "edges",
        finding.of_unknown_type,
        _type,
    ),
    Rule(8, "error", "the properties of every row are JSON", "mend the JSON in the file", "rows"),
    Rule(
        9,
        "error",
        "nothing requires itself through others",
        "take the edge out that is wrong",
        "nodes",
        finding.requires_itself,
        _circle("requires", "requires"),
    ),
    Rule(
        10,
        "warning",
        "a workaround is one of a limitation that something has",
        "add the edge has_limitation that it belongs to",
        "edges",
        finding.workaround_of_nothing,
        lambda *_: "neither end of an edge has_limitation is where it begins",
    ),
    Rule(
        11,
        "error",
        "nothing feeds into itself through others",
        "take the edge out that is wrong",
        "nodes",
        finding.feeds_itself,
        _circle("feeds_into", "feeds into"),
    ),
    Rule(
        12,
        "info",
        "what has a limitation has a workaround, or says that there is none",
        "add an edge has_workaround, or the property no_workaround: true",
        "nodes",
        finding.without_way_out,
        lambda *_: "it has a limitation, no workaround, and does not say that there is none",
    ),
)


def check_rules(
    graph: PropertyGraph,
    vocabulary: Vocabulary = UNIFIED,
    *,
    unread: Iterable[Unread] = (),
    only: Iterable[int] = (),
) -> RuleReport:
    """What breaks the twelve rules in a graph, or those whose numbers are given; `unread` is what reading its
    file reported.

    Raises UnknownName for a rule that there is not.
    """
    require(graph, PropertyGraph, "the rules are for a PropertyGraph")
    numbers, rows = {each.number for each in TWELVE_RULES}, tuple(unread)
    wanted = set(only) or numbers
    if strange := wanted - numbers:
        raise UnknownName("rule", str(min(strange, key=str)), map(str, sorted(numbers)))
    found = []
    for rule in TWELVE_RULES:
        if rule.number in wanted:
            breaking = np.empty(0, dtype=np.int32) if rule.find is None else rule.find(graph, vocabulary)
            found.append(
                Broken(rule, graph, breaking, tuple(each for each in rows if each.rule == rule.number))
            )
    return RuleReport(tuple(found))
