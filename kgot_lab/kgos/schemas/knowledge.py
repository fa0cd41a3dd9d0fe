"""The types of curated knowledge about building something: what a graph of tools, patterns, goals and
limitations is made of.

COOKBOOK is the vocabulary of data/cookbook, with what its edges join. CURATED has the same types for any
subject, and those that the document's examples name besides; its edges join nodes of any type.
"""

from __future__ import annotations

from dataclasses import replace

from kgot_lab.graph.validation import ANY_TYPE, EdgeType, Ends, NodeType, PropertyRule, Vocabulary

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


def _node_types(table: str) -> tuple[NodeType, ...]:
    rows = (line.strip().split(" | ") for line in table.strip().splitlines())
    return tuple(NodeType(name, meaning) for name, meaning in rows)


def _edge_types(table: str) -> tuple[EdgeType, ...]:
    rows = (line.strip().split(" |") for line in table.strip().splitlines())
    return tuple(
        EdgeType(name, meaning.strip(), _ends(*ends), symmetric=both == " =")
        for name, meaning, *ends, both in rows
    )


def _ends(sources: str, targets: str) -> tuple[Ends, ...]:
    return tuple(Ends(source, target) for source in sources.split() for target in targets.split())


COOKBOOK = Vocabulary(
    "the cookbook's vocabulary", _node_types(_NODES), _edge_types(_EDGES.replace("_means", _MEANS))
)
CURATED = Vocabulary(
    "the vocabulary of curated knowledge",
    (*COOKBOOK.node_types, *_node_types(_MORE_NODES)),
    (*(replace(each, ends=_ANY) for each in COOKBOOK.edge_types), SIMILAR_TO, COMPUTED_SIMILARITY),
)
