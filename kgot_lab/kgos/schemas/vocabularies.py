"""The vocabulary of each schema profile: the types that a file of this profile should have.

The document gives no vocabulary. For three profiles it names the graph that was stored in them: `claude` had
curated knowledge, `standard` what was extracted from code, and `unified` both merged. A file of `claude` is
checked against CURATED. The tables of `standard` are so common that they do not determine the content, and
neither do those of the other profiles, so all these may have any type. CODE is for a graph that is known to
be of code. A graph with types of its own extends its vocabulary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import ANY_TYPE, EdgeType, Ends, NodeType, PropertyRule, Vocabulary
from kgot_lab.io.files import bundled_path, read_regular_text
from kgot_lab.types import Edge, Node

# The types of curated knowledge about building something, in a graph of tools, patterns, goals and
# limitations.
#
# COOKBOOK is the vocabulary of data/cookbook, with the node types that its edges join. CURATED has the same
# types for any subject, and those that the document's examples name in addition. Its edges join nodes of any
# type.

_NODES = """
    anti_pattern | a common way of building that does harm
    benefit | something that users or owners gain, on the way to a goal
    best_practice | a habit that serves most applications
    capability | what an application can, or cannot, be made to do
    check | something to make sure of before a step is taken
    concept | a term to understand first
    cost_strategy | a way to spend less
    goal | what somebody who builds an application wants
    limitation | what does not work, or not always
    metric | something that can be counted or measured
    parameter | a setting with a value
    pattern | a way to put several parts together
    technique | one step of the craft
    tool | a program, a service or a model that is used as it is
    use_case | an application with its users
    workaround | what helps in spite of a limitation
    workflow | a sequence of steps with a beginning and an end"""
_MORE_NODES = """
    configuration | a set of settings that go together
    dimension | a measure that strategies are ordered by
    implementation | a pattern or technique carried out in code
    strategy | a way to reach a goal
    tax_strategy | a way to pay less tax"""
_EDGES = """
    alternative_to | does the same job in another way | _means | _means | =
    caused_by | comes from | limitation | limitation concept anti_pattern technique |
    composes_with | works well together with | * | * | =
    configures | is a setting of | parameter | tool technique pattern |
    conflicts_with | works against: both together need care, or only one is possible | * | * | =
    contributes_to | is a part of reaching | benefit check metric workaround | goal metric |
    enables | makes possible, or brings about | * | * |
    feeds_into | hands its result to | * | * |
    has_limitation | is held back by | tool technique pattern capability | limitation |
    has_workaround | can be got round by | limitation | workaround |
    implements | carries out | tool technique pattern capability parameter cost_strategy | best_practice cost_strategy workaround |
    measures | tells in numbers how it stands with | metric | * |
    optimizes | raises | technique pattern best_practice | metric goal |
    part_of | is a part of | tool technique concept | tool technique pattern workflow concept |
    pattern_alternative_to | is another pattern for the same job as | pattern | pattern | =
    pattern_instance_of | is built after | technique pattern workflow use_case | pattern |
    prerequisite_of | has to be understood before | concept | * |
    prevents | keeps people from | best_practice tool technique pattern | anti_pattern |
    reduces | makes smaller | technique pattern best_practice cost_strategy parameter | limitation metric |
    relates_to | is easily confused with, or is looked at together with | * | * | =
    requires | cannot be had without | * | * |"""

_MEANS = "tool technique pattern capability parameter"
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
    rows = (line.strip().split(" | ") for line in table.strip().splitlines())
    return tuple(NodeType(name, meaning, _property_rules(*own)) for name, meaning, *own in rows)


def _property_rules(names: str = "") -> tuple[PropertyRule, ...]:
    """Return the rules of some properties. A ! marks a property that a node must have."""
    plain = (PropertyRule(name.rstrip("!"), required=name.endswith("!")) for name in names.split())
    return tuple(_RULES.get(rule.name, rule) for rule in plain)


def _edge_types(table: str) -> tuple[EdgeType, ...]:
    """Parse the edge types of a table.

    The ends of one type may be given in several rows.
    """
    found: dict[str, EdgeType] = {}
    for line in table.strip().splitlines():
        name, meaning, *ends, both = line.strip().split(" |")
        new = EdgeType(name, meaning.strip(), _parse_ends(*ends), symmetric=both == " =")
        found[name] = replace(found[name], ends=found[name].ends + new.ends) if name in found else new
    return tuple(found.values())


def _parse_ends(sources: str, targets: str) -> tuple[Ends, ...]:
    return tuple(Ends(source, target) for source in sources.split() for target in targets.split())


_EDGE_TEXT = _EDGES.replace("_means", _MEANS)
COOKBOOK = Vocabulary("the cookbook's vocabulary", _node_types(_NODES), _edge_types(_EDGE_TEXT))
CURATED = Vocabulary(
    "the vocabulary of curated knowledge",
    (*COOKBOOK.node_types, *_node_types(_MORE_NODES)),
    (*(replace(each, ends=_ANY) for each in COOKBOOK.edge_types), SIMILAR_TO, COMPUTED_SIMILARITY),
)


# The types of what is extracted from a folder of code: its structure, and the patterns found in it.

_CODE_NODES = """
    module | a file of code that can be imported
    class | a class
    function | a function of a module
    method | a function of a class
    folder | a folder of files that is no module itself
    package | something that is imported and is not among the files
    config | a file of settings
    document | a file of prose
    section | what stands under a heading of a file of prose, or a part of it
    pattern | a way to put several parts together
    design_pattern | a pattern among classes and functions
    architectural_pattern | a pattern among modules and services
    anti_pattern | a common way of building that does harm"""
_CODE_EDGES = """
    imports | names another module, or something of it, to use it | module | _code package |
    calls | runs another function, or makes an instance | _code | _code package |
    contains | holds in its text, or in its folder | _code config document folder | _code |
    contains | | folder module | folder config document |
    contains | | document | section |
    inherits_from | is a kind of | class | class package |
    configures | is a setting of | config | _code package |
    documents | tells about | document | * |
    pattern_instance_of | is built after | _code _patterns | _patterns |
    pattern_alternative_to | is another pattern for the same job as | _patterns | _patterns | ="""
_CODE_GROUPS = {
    "_code": "module class function method",
    "_patterns": "pattern design_pattern architectural_pattern anti_pattern",
}
CODE = Vocabulary(
    "the vocabulary of code",
    _node_types(_CODE_NODES),
    (
        *_edge_types(re.sub(r"\b_(code|patterns)\b", lambda found: _CODE_GROUPS[found[0]], _CODE_EDGES)),
        COMPUTED_SIMILARITY,
    ),
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

_INVESTMENT_NODES = """
    Asset | a financial instrument | symbol! type
    Company | a legal entity that issues securities | name! ticker country
    Sector | a group of industry | name! trend
    AssetClass | a category of the highest level | name! risk_sentiment
    Institution | a central bank, a regulator, an international body | name! type country
    MarketEvent | something significant that happened | type! summary! date
    News | an item of information | headline! source sentiment published_at
    Insight | an analysis that was derived | kind_of_insight summary! action strength generated_at"""
_INVESTMENT_EDGES = """
    issued_by | an asset is issued by a company | Asset | Company |
    in_sector | a company works in a sector | Company | Sector |
    belongs_to | membership in an asset class | Sector Asset | AssetClass |
    affects | an event or an institution bears upon something | MarketEvent | _affected |
    mentions | news names something | News | * |
    about | an insight concerns something | Insight | * |
    derived_from | an insight has its source in | Insight | MarketEvent News |
    correlated | two assets move together | Asset | Asset | ="""
_COMPANY_EDGES = """
    supplier | a company has another as its supplier | Company | Company |
    competes_with | two companies compete | Company | Company | =
    owns | a company owns another, or a part of it | Company | Company |"""
_AFFECTED_TYPES = "Asset Company Sector AssetClass"  # what an event or an institution may affect


def _investment_edges() -> tuple[EdgeType, ...]:
    """Parse the edge types, and add what is special to three of them."""
    found = {each.name: each for each in _edge_types(_INVESTMENT_EDGES.replace("_affected", _AFFECTED_TYPES))}
    ends = (
        *(Ends("MarketEvent", each, {"role": ()}) for each in _AFFECTED_TYPES.split()),
        Ends("MarketEvent", "Institution", {"role": ("issuer",)}),
        *(Ends("Institution", each, {"role": ("regulates",)}) for each in _AFFECTED_TYPES.split()),
    )
    found["affects"] = replace(found["affects"], ends=ends, properties=_property_rules("role direction"))
    found["correlated"] = replace(found["correlated"], properties=_property_rules("coefficient"))
    found["issued_by"] = replace(found["issued_by"], single=True)
    return tuple(found.values())


INVESTMENT = Vocabulary(
    "the investment vocabulary",
    _node_types(_INVESTMENT_NODES),
    _investment_edges(),
    {
        "by": "write MarketEvent -affects-> Institution with the property role 'issuer'",
        "regulates": "write Institution -affects-> with the property role 'regulates'",
    },
)

BETWEEN_COMPANIES = _edge_types(_COMPANY_EDGES)
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
