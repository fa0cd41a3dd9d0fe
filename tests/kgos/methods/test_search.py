"""The search by intent: its formula, its retrievers, what it invokes, filters, several graphs, and what it says
when it finds nothing.
"""

import pickle

import pytest
from support.every import every
from support.method_graphs import chance_graph, linked
from support.searching import Letters

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.intents import INTENTS
from kgot_lab.kgos.methods.ranking import edge_type_boost
from kgot_lab.kgos.methods.search.configuration import GoalMapping, RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
from kgot_lab.kgos.methods.search.results import search_context
from kgot_lab.kgos.methods.search.retrievers import intent_scores
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS, Weights
from kgot_lab.types import Edge, Node

COOKBOOK = cookbook()
QUERIES = ["how do I reduce my API costs", "prompt caching", "what depends on the schema validator"]
QUERIES += ["can it translate", "combine tools and agents"]


def over_largest(scores):
    most = max(scores.values(), default=0)
    return {id: max(score, 0) / most if most > 0 else 0.0 for id, score in scores.items()}


@every("query", QUERIES)
@every("preset", WEIGHT_PRESETS)
def test_the_score_is_the_weighted_sum_of_the_retrievers_each_over_its_maximum(query, preset):
    config, index = RetrievalConfig(weights=preset, limit=300), graph_index(COOKBOOK)
    result = intent_search(COOKBOOK, query, config=config, embedder=Letters())
    weights, text = result.weights, over_largest(dict(index.text.search(query).hits))
    meaning = over_largest(dict(index.dense_retriever(Letters()).search(query).hits))
    meant = {id: weights.embedding * meaning.get(id, 0) for id in COOKBOOK.ids}
    both = {id: meant[id] + weights.text * text.get(id, 0) for id in COOKBOOK.ids}
    seeds = sorted(both, key=lambda id: (-round(both[id], 12), id))[:10]
    graph = edge_type_boost(COOKBOOK, seeds).scores
    for node in result.nodes:
        assert node.embedding == pytest.approx(weights.embedding * meaning.get(node.id, 0))
        assert node.text == pytest.approx(weights.text * text.get(node.id, 0))
        assert node.graph == pytest.approx(weights.graph * graph.get(node.id, 0))
        assert node.score == pytest.approx(node.embedding + node.text + node.graph + node.intent)
        retrievers = [
            retriever
            for retriever in ("text", "embedding", "graph", "intent")
            if getattr(node, retriever) > 0
        ]
        assert node.method.split("+") == retrievers
    assert list(result.nodes) == sorted(result.nodes, key=lambda node: (-node.score, node.id))


def test_a_preset_keeps_its_weights_and_delta_counts_as_far_as_the_intent_is_sure():
    def weights(query, **config):
        return intent_search(COOKBOOK, query, config=RetrievalConfig(**config), embedder=Letters()).weights

    assert weights("reduce api costs") == WEIGHT_PRESETS["default"]
    assert weights("a cheap budget").intent == pytest.approx(0.1 * 0.6)
    none = weights("prompts", intent_threshold=0.5)
    assert none.intent == 0 and none.text == pytest.approx(0.40 / 0.90)
    assert weights("reduce api costs", weights="backward-compatible") == Weights(0.40, 0.45, 0.15, 0.0)
    hybrid = weights("reduce api costs", methods=("hybrid",))
    assert hybrid.embedding == pytest.approx(0.35 / 0.9) and hybrid.intent == 0
    doubled = weights("reduce api costs", weights=Weights(0.7, 0.8, 0.3, 0.2))
    assert vars(doubled) == pytest.approx(vars(WEIGHT_PRESETS["default"]))


def test_without_an_embedder_its_weight_goes_to_the_others_and_without_any_words_are_searched():
    result = intent_search(COOKBOOK, "prompt caching")
    assert result.weights.embedding == 0 and sum(vars(result.weights).values()) > 0.6
    assert any(each.method == "embedding" and "no embedder" in each.reason for each in result.trace)
    for weights in (Weights(1, 0, 0, 0), Weights(0, 0, 0, 1)):
        result = intent_search(COOKBOOK, "reranking", config=RetrievalConfig(weights=weights))
        assert result.ids and {node.method for node in result.nodes} == {"text"}


def test_an_empty_text_retriever_leaves_seeds_to_keyword_matches():
    config = RetrievalConfig(weights=Weights(0, 0, 1, 0))
    result = intent_search(linked("precaching requires disk"), "caching", config=config)
    assert result.ids == ["disk"], "'caching' stands inside a word, which only LIKE finds"


def test_the_intent_score_is_one_for_a_type_seven_tenths_for_an_edge_and_a_half_for_a_dimension():
    nodes = (Node("b", (), {"pricing_tier": 0.1}), Node("c", (), {"pricing_tier": 0.9}))
    text = "b optimizes a, d optimizes a, e relates_to a"
    graph = graph_index(linked(text, Node("a", ("cost_strategy",)), *nodes))
    found = dict(zip(graph.graph.ids, intent_scores(graph, "cost_optimization").tolist(), strict=True))
    assert found == pytest.approx({"a": 1 / 1.2, "b": 1, "c": 0, "d": 0.7 / 1.2, "e": 0})
    for intent in INTENTS:
        assert 0 <= intent_scores(graph, intent).min() <= intent_scores(graph, intent).max() <= 1


@every(
    ("query", "method"),
    [
        ("how do I reduce costs", "want_to"),
        ("can it translate texts", "can_it"),
        ("combine tools into a workflow", "compose_for"),
        ("what depends on the schema validator", "impact_analysis"),
        ("compare reranking with alternatives", "similar_to"),
        ("show me reranking", "explore_smart"),
        ("reranking", None),
    ],
)
def test_what_the_purpose_calls_for_is_invoked_and_the_trace_says_why(query, method):
    result = intent_search(COOKBOOK, query)
    assert list(result.answers) == ([method] if method else [])
    reasons = [each.reason for each in result.trace if each.method == method]
    assert len(reasons) == bool(method)
    assert all(reason.startswith(f"the purpose is {result.intents.purpose}") for reason in reasons)


# The four of the document's example (KG-OS, section 8).
GOAL_MAPPINGS = {
    "debug": GoalMapping(
        ("has_limitation", "has_workaround", "caused_by"), ("error_handling_need", "debugging_difficulty")
    ),
    "optimize": GoalMapping(
        ("optimizes", "enables", "reduces"), ("throughput_requirement", "latency_sensitivity")
    ),
    "learn": GoalMapping(
        ("requires", "prerequisite_of", "part_of"), ("learning_curve", "implementation_complexity")
    ),
    "build": GoalMapping(
        ("feeds_into", "requires", "composes_with"), ("pipeline_composability", "agent_compatibility")
    ),
}


def test_a_goal_mapping_applies_to_any_ending_of_its_word_and_the_first_counts():
    config = RetrievalConfig(goal_mappings=GOAL_MAPPINGS)
    assert config.goal_mapping_for("debugging a slow agent") == ("debug", GOAL_MAPPINGS["debug"])
    assert config.goal_mapping_for("optimize what we build")[0] == "optimize"
    assert config.goal_mapping_for("rebuild") is None


def test_a_filter_comes_before_the_scores_so_that_the_best_of_what_is_left_has_the_full_weight():
    config = RetrievalConfig(dimension_filters={"pricing_tier": {"max": 0.3}}, methods=("hybrid",))
    result = intent_search(COOKBOOK, "cache and batch work", config=config)
    tiers = {node.id: node.properties.get("pricing_tier") for node in COOKBOOK.nodes}
    assert result.ids and all(tiers[id] is not None and tiers[id] <= 0.3 for id in result.ids)
    alone = COOKBOOK.subgraph(id for id, tier in tiers.items() if tier is not None and tier <= 0.3)
    retrievers = (graph_index(COOKBOOK).bm25, graph_index(COOKBOOK).fts5)
    searched = [retriever.search("cache and batch work").hits for retriever in retrievers]
    found = [over_largest({id: score for id, score in hits if id in alone}) for hits in searched]
    larger = {id: max(each.get(id, 0) for each in found) for id in {*found[0], *found[1]}}
    for node in result.nodes:
        assert node.text == pytest.approx(result.weights.text * larger.get(node.id, 0))
    assert max(node.text for node in result.nodes) == pytest.approx(result.weights.text)
    for near in result.neighbours:
        assert near.within == (tiers[near.id] is not None and tiers[near.id] <= 0.3)


def test_the_neighbours_of_the_first_nodes_are_told_and_none_where_the_depth_is_0():
    result = intent_search(COOKBOOK, "prompt caching")
    first, found = result.ids[:3], {neighbour.id for neighbour in result.neighbours}
    edges = [edge for id in first for edge in COOKBOOK.neighbours(id, "both")]
    near = {edge.source if edge.target in first else edge.target for edge in edges}
    assert found <= near and near - found <= set(result.ids)
    assert all(edge.source in {*result.ids, *found} for edge in result.edges)
    alone = intent_search(COOKBOOK, "prompt caching", config=RetrievalConfig(expand_depth=0))
    assert not alone.neighbours and all({edge.source, edge.target} <= set(alone.ids) for edge in alone.edges)
    deep = intent_search(COOKBOOK, "prompt caching", config=RetrievalConfig(expand_depth=2))
    assert found < {neighbour.id for neighbour in deep.neighbours}


CACHING = Node("dup", ("concept",), {"name": "Caching"})
PYTHON = linked("cache implements dup", Node("cache", ("tool",), {"name": "Function cache"}), CACHING)
TEST = Node("cache", ("check",), {"name": "Cache test"})
TESTING = PropertyGraph.of([TEST, Node("c", ("concept",), {"name": "caching"})])
ACROSS = [Edge("python:cache", "requires", "testing:cache")]


def test_several_graphs_are_one_with_ids_in_namespaces_and_edges_across():
    several = MultiGraph.of({"python": PYTHON, "testing": TESTING}, ACROSS)
    assert several.graph.ids == ("python:cache", "python:dup", "testing:cache", "testing:c")
    assert several.graph.neighbours("python:cache", "out", ["requires"])[0].target == "testing:cache"


def test_nodes_that_are_called_by_their_ids_alone_keep_their_names_and_are_one_hit_where_two_graphs_know_them():
    names = ("pottery", "bakery")
    graphs = {name: PropertyGraph.of([Node("Kiln", ("tool",)), Node(name, ("tool",))]) for name in names}
    first = intent_search(MultiGraph.of(graphs), "Kiln", config=RetrievalConfig(expand_depth=0)).nodes[0]
    assert first.name == "Kiln" and set(first.sources) == {"pottery:Kiln", "bakery:Kiln"}
    titled = MultiGraph.of({"books": PropertyGraph.of([Node("b1", (), {"title": "Clay"})])})
    assert titled.graph.node("books:b1").properties == {"title": "Clay"}


def test_one_thing_in_two_graphs_is_one_hit_that_cites_both():
    result = intent_search(MultiGraph.of({"python": PYTHON, "testing": TESTING}, ACROSS), "caching")
    (same,) = [node for node in result.nodes if node.name.casefold() == "caching"]
    assert set(same.sources) == {"python:dup", "testing:c"} and same.id == same.sources[0]
    assert len({node.id for node in result.nodes}) == len(result.nodes)


def test_what_any_of_the_merged_nodes_is_limited_by_is_in_the_context():
    stale = Node("stale", ("limitation",), {"name": "Stale answers"})
    limited = linked("c has_limitation stale", Node("c", ("concept",), {"name": "caching"}), stale)
    for graphs in ({"python": PYTHON, "testing": limited}, {"atesting": limited, "python": PYTHON}):
        result = intent_search(MultiGraph.of(graphs), "caching", config=RetrievalConfig(expand_depth=0))
        assert "Limitation: Stale answers" in search_context(result)


def test_scores_are_normalised_over_all_graphs_and_then_weighed():
    graphs = {"python": PYTHON, "testing": TESTING}
    weighed = (MultiGraph.of(graphs, weights=weights) for weights in ({}, {"testing": 3.0}))
    plain, heavy = (intent_search(each, "cache") for each in weighed)
    # one maximum, not one for each graph
    assert max(node.text for node in plain.nodes) == pytest.approx(plain.weights.text)
    scores = [{node.id: node.score for node in result.nodes} for result in (plain, heavy)]
    assert scores[1]["testing:cache"] == pytest.approx(3 * scores[0]["testing:cache"])
    assert scores[1]["python:cache"] == pytest.approx(scores[0]["python:cache"])
    assert plain.ids[0].startswith("python:") and heavy.ids[0].startswith("testing:")


@every(
    "given, said",
    [
        (({},), "dictionary"),
        (({"a:b": PYTHON},), "without ':'"),
        (({"a": "graph"},), "is a PropertyGraph"),
        (({"a": PYTHON}, [Edge("cache", "requires", "a:dup")]), "names none of them first"),
        (({"a": PYTHON}, [Edge("a:cache", "requires", "a:none")]), "no node 'a:none'"),
    ],
)
def test_graphs_that_cannot_be_put_together_are_refused(given, said):
    with pytest.raises(BadInput, match=said):
        MultiGraph.of(*given)
    for weights, told in (({"b": 1}, "unknown graph"), ({"a": 0}, "more than 0")):
        with pytest.raises(BadInput, match=told):
            MultiGraph.of({"a": PYTHON}, weights=weights)


@every(
    "given, said",
    [
        ({"weights": "defualt"}, "did you mean 'default'"),
        ({"weights": Weights(0, 0, 0, 0)}, "at least one retriever that weighs more than 0"),
        (
            {"weights": "highly-connected", "methods": ("intent",)},
            "at least one retriever that weighs more than 0",
        ),
        ({"methods": ("vector",)}, "unknown method of retrieval"),
        ({"methods": ()}, "methods are a list"),
        ({"methods": 5}, "is a list"),
        ({"limit": 0}, "limit must be a number, 1 or more"),
        ({"expand_depth": -1}, "expand_depth"),
        ({"boost_types": "requires"}, "boost_types"),
        ({"boost_types": 5}, "boost_types"),
        ({"dimension_filters": {"cost": 1}}, r"are a pair \(low, high\)"),
        ({"dimension_filters": {"pricing_teir": {"max": 0.3}}}, "did you mean 'pricing_tier'"),
        ({"goal_mappings": {"debug": ["requires"]}}, "each item a GoalMapping"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_with_a_sentence(given, said):
    with pytest.raises(BadInput, match=said):
        intent_search(COOKBOOK, "cache", config=RetrievalConfig(**given))


@every(
    "make, said",
    [
        (lambda: GoalMapping(()), "would change nothing"),
        (lambda: GoalMapping("requires"), "'boost_types' is a list"),
        (lambda: intent_search(COOKBOOK, " "), "blank"),
        (lambda: intent_search(COOKBOOK, 7), "'query' is a text"),
        (lambda: intent_search("graph", "x"), "PropertyGraph"),
        (lambda: intent_search(COOKBOOK, "x", config={"limit": 3}), "RetrievalConfig"),
        (lambda: intent_search(COOKBOOK, "x", embedder="minilm"), "as minilm\\(\\) gives"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_a_sentence(make, said):
    with pytest.raises(BadInput, match=said):
        make()


@every(
    "query, filters, why",
    [
        ("xylophone zither", {}, "; words looked for: xylophone, zither"),
        ("is it in the", {}, "; the query has no word but stop words"),
        ("xylophone", {"max": 0.3}, " within the filters; words looked for: xylophone"),
        ("reranking", {"min": 1}, " within the filters; words looked for: reranking"),
    ],
)
def test_an_empty_result_says_which_words_and_whether_filters_were_in_force(query, filters, why):
    config = RetrievalConfig(dimension_filters={"pricing_tier": filters} if filters else {})
    result = intent_search(COOKBOOK, query, config=config)
    assert not result.nodes and result.frame().empty
    assert result.trace[-1] == ("result", "nothing was found", f"no retriever found a node{why}")
    filtered = [each.found for each in result.trace if each.method == "dimension_filter"]
    assert len(filtered) == bool(filters)
    if filters == {"min": 1}:
        assert "1 <= pricing_tier leaves out" in filtered[0] and "0 of 291 left" in filtered[0]


def test_the_trace_counts_in_plain_words():
    graph = PropertyGraph.from_triples([("disk cache", "helps", "speed")])
    trace = "\n".join(intent_search(graph, "cache").why)
    assert "→ 1 node\n" in trace and "1 node from 1 seed" in trace and "1 nodes" not in trace


@every("seed", range(6))
def test_graphs_with_loops_parallel_edges_and_no_descriptions_are_searched(seed):
    graph = chance_graph(seed)
    for query in QUERIES:
        result = intent_search(graph, query)
        assert repr(result).startswith("<search for") and "<table" in result._repr_html_()
        assert len(result.frame()) == len(result.nodes)


def test_the_index_is_made_once_for_a_graph_goes_with_it_and_is_left_out_of_a_pickle():
    graph = chance_graph(0)
    size = len(pickle.dumps(graph))
    assert graph_index(graph) is graph_index(graph) and graph_index(graph).graph is graph
    first = intent_search(graph, "cache")
    assert len(pickle.dumps(graph)) < 2 * size
    assert intent_search(pickle.loads(pickle.dumps(graph)), "cache").ids == first.ids
