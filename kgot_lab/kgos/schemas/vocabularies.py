"""The vocabulary of each schema profile: the types that a file of this profile should have.

The document gives no vocabulary. For three profiles it names the graph that was stored in them: `claude` had
curated knowledge, `standard` what was extracted from code, and `unified` both merged. A file of `claude` is
checked against CURATED. The tables of `standard` are so common that they do not determine the content, and
neither do those of the other profiles, so all these may have any type. CODE is for a graph that is known to
be of code. A graph with types of its own extends its vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import ANY_TYPE, EdgeType, Ends, NodeType, PropertyRule, Vocabulary
from kgot_lab.io.files import bundled_path, read_regular_text, read_tables
from kgot_lab.types import Edge, Node

# The types of curated knowledge about building something, in a graph of tools, patterns, goals and
# limitations.
#
# COOKBOOK is the vocabulary of data/cookbook, with the node types that its edges join. CURATED has the same
# types for any subject, and those that the document's examples name in addition. Its edges join nodes of any
# type.

_TABLES = read_tables(Path(__file__).with_suffix(".txt"))
_GROUPS = dict(_TABLES["groups"])
_ANY = (Ends(ANY_TYPE, ANY_TYPE),)
COMPUTED_SIMILARITY = EdgeType(
    "computed_similarity",
    "a program found the two alike: by their neighbours, their words or their vectors; nobody said so",
    _ANY,
    (
        PropertyRule("similarity", "number", required=True, bounds=(-1, 1)),
        PropertyRule("computed_by", required=True),
    ),
    symmetric=True,
)
SIMILAR_TO = EdgeType(
    "similar_to",
    "is alike, as somebody said; what a program finds is computed_similarity",
    _ANY,
    symmetric=True,
)
SAME_AS = EdgeType(
    "same_as", "is the same thing in another graph that was merged with this one", _ANY, symmetric=True
)


# properties with rules of their own, by the name that a table has for them
_RULES = {
    "kind_of_insight": PropertyRule("type", required=True, values=("signal", "observation", "pattern")),
    "action": PropertyRule("action", values=("buy", "sell", "hold"), goes_with=("type", "signal")),
    "strength": PropertyRule("strength", "number", bounds=(0, 1)),
    "sentiment": PropertyRule("sentiment", values=("positive", "negative", "neutral")),
    "direction": PropertyRule("direction", values=("positive", "negative")),
    "role": PropertyRule("role", values=("issuer", "regulates")),
    "coefficient": PropertyRule("coefficient", "number", bounds=(-1, 1)),
    **{name: PropertyRule(name, "time") for name in ("date", "published_at", "generated_at")},
}


def _node_types(table: str) -> tuple[NodeType, ...]:
    return tuple(NodeType(name, meaning, _property_rules(*own)) for name, meaning, *own in _TABLES[table])


def _property_rules(names: str = "") -> tuple[PropertyRule, ...]:
    """Return the rules of some properties. A ! marks a property that a node must have."""
    plain = (PropertyRule(name.rstrip("!"), required=name.endswith("!")) for name in names.split())
    return tuple(_RULES.get(rule.name, rule) for rule in plain)


def _edge_types(table: str) -> tuple[EdgeType, ...]:
    found: dict[str, EdgeType] = {}
    for name, meaning, sources, targets, both in _TABLES[table]:
        new = EdgeType(name, meaning, _parse_ends(sources, targets), symmetric=both == "=")
        found[name] = replace(found[name], ends=found[name].ends + new.ends) if name in found else new
    return tuple(found.values())


def _parse_ends(sources: str, targets: str) -> tuple[Ends, ...]:
    return tuple(Ends(source, target) for source in _expand(sources) for target in _expand(targets))


def _expand(names: str) -> list[str]:
    """Return the names of a list, with those of a group in its place."""
    return " ".join(_GROUPS.get(name, name) for name in names.split()).split()


COOKBOOK = Vocabulary(
    "the cookbook's vocabulary", _node_types("cookbook nodes"), _edge_types("cookbook edges")
)
CURATED = Vocabulary(
    "the vocabulary of curated knowledge",
    (*COOKBOOK.node_types, *_node_types("more curated nodes")),
    (*(replace(each, ends=_ANY) for each in COOKBOOK.edge_types), SIMILAR_TO, COMPUTED_SIMILARITY),
)


# The types of what is extracted from a folder of code: its structure, and the patterns found in it.

CODE = Vocabulary(
    "the vocabulary of code",
    _node_types("code nodes"),
    (*_edge_types("code edges"), COMPUTED_SIMILARITY),
)


def _merge_vocabularies() -> Vocabulary:
    """Merge both vocabularies, each type once.

    Edges join nodes of any type, since those of either vocabulary may meet.
    """
    nodes = {each.name: each for each in (*CODE.node_types, *CURATED.node_types)}
    anywhere = (Ends(ANY_TYPE, ANY_TYPE),)
    together = (*CODE.edge_types, *CURATED.edge_types, SAME_AS)
    edges = {each.name: replace(each, ends=anywhere) for each in together}
    return Vocabulary("the unified vocabulary", tuple(nodes.values()), tuple(edges.values()))


UNIFIED = _merge_vocabularies()
_ANYTHING = ("unified", "hal", "from_node", "entities", "standard", "heuristic")
_BY_NAME = {**dict.fromkeys(_ANYTHING, UNIFIED), "claude": CURATED}
VOCABULARIES: Mapping[str, Vocabulary] = MappingProxyType(_BY_NAME)


# The investment vocabulary: eight node types and eight edge types, and three optional edge types.
#
# Decisions that its document leaves open: an event is not `by` an institution but `affects` it with the role
# issuer, since there are eight edge types; a regulator `affects` what it regulates with the role regulates;
# an asset may belong to an asset class itself.

_AFFECTED_TYPES = _GROUPS["_affected"].split()  # what an event or an institution may affect


def _investment_edges() -> tuple[EdgeType, ...]:
    """Parse the edge types, and add what is special to three of them."""
    found = {each.name: each for each in _edge_types("investment edges")}
    ends = (
        *(Ends("MarketEvent", each, {"role": ()}) for each in _AFFECTED_TYPES),
        Ends("MarketEvent", "Institution", {"role": ("issuer",)}),
        *(Ends("Institution", each, {"role": ("regulates",)}) for each in _AFFECTED_TYPES),
    )
    found["affects"] = replace(found["affects"], ends=ends, properties=_property_rules("role direction"))
    found["correlated"] = replace(found["correlated"], properties=_property_rules("coefficient"))
    found["issued_by"] = replace(found["issued_by"], single=True)
    return tuple(found.values())


INVESTMENT = Vocabulary(
    "the investment vocabulary",
    _node_types("investment nodes"),
    _investment_edges(),
    {
        "by": "write MarketEvent -affects-> Institution with the property role 'issuer'",
        "regulates": "write Institution -affects-> with the property role 'regulates'",
    },
)

BETWEEN_COMPANIES = _edge_types("company edges")
INVESTMENT_WITH_COMPANIES = INVESTMENT.with_types(*BETWEEN_COMPANIES)


# Load the curated graph that comes with the package (data/cookbook).

_FOLDER = "cookbook"


def cookbook() -> PropertyGraph:
    """Load the graph about building applications on language models: 291 nodes, 729 edges.

    Each dimension is the mean of its two ratings.
    """
    first, second = ({row["id"]: row["ratings"] for row in _rows(f"ratings_{rater}.jsonl")} for rater in "ab")
    pairs = {id: [(name, value, second[id][name]) for name, value in first[id].items()] for id in first}
    dimensions = {id: {name: round((a + b) / 2, 3) for name, a, b in rows} for id, rows in pairs.items()}
    named = ((row.pop("id"), row.pop("type"), row) for row in _rows("nodes.jsonl"))
    nodes = (Node(id, (type,), row | dimensions.get(id, {})) for id, type, row in named)
    edges = (Edge(row.pop("source"), row.pop("type"), row.pop("target"), row) for row in _rows("edges.jsonl"))
    return PropertyGraph.of(nodes, edges)


def _rows(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, read_regular_text(bundled_path(f"{_FOLDER}/{name}")).splitlines())
