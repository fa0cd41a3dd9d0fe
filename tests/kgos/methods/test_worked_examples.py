"""The worked examples of KG-OS, and the property behind the first: what is limited is never told without its
limitation.
"""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every import every
from support.method_graphs import linked

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.goals import can_it, want_to
from kgot_lab.kgos.methods.search.configuration import GoalMapping, RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.results import search_context
from kgot_lab.kgos.methods.traversal import trace_path
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.retrieval.lexical import INTENT_VERBS
from kgot_lab.types import Edge, Node


def node(id: str, description: str, **dimensions: float) -> Node:
    kind, _, name = id.partition(":")
    return Node(id, (kind,), {"name": name, "description": description, **dimensions})


def advice(name: str, description: str, tax: float, growth: float) -> Node:
    return node(f"tax_strategy:{name}", description, tax_efficiency=tax, long_term_growth=growth)


HOLDING = "What was converted has to stay for five years."
ADVICE = linked(
    "tax_strategy:roth_conversion requires check:income_threshold, "
    "tax_strategy:roth_conversion requires check:5_year_rule, "
    "tax_strategy:roth_conversion has_limitation limitation:5_year_holding_period, "
    "tax_strategy:roth_conversion enables goal:tax_free_growth, "
    "tax_strategy:loss_harvesting has_limitation limitation:wash_sale, "
    "limitation:wash_sale has_workaround workaround:similar_fund",
    advice("roth_conversion", "Move savings into a Roth account to reduce later taxes.", 0.9, 0.8),
    advice("loss_harvesting", "Sell at a loss to reduce the taxes on gains.", 0.75, 0.3),
    advice("dividend_income", "Live from dividends; taxes are due each year.", 0.3, 0.5),
    node("check:income_threshold", "Verify that income lies below the bound."),
    node("check:5_year_rule", "Verify that the account is old enough."),
    node("limitation:5_year_holding_period", HOLDING, blocking=False),
    node("limitation:wash_sale", "The same paper may not be bought back for a month."),
    node("workaround:similar_fund", "Buy a similar fund in the meantime."),
    node("goal:tax_free_growth", "Savings that grow without taxes."),
)


def test_who_asks_for_lower_taxes_is_told_of_the_conversion_with_its_checks_and_the_five_years():
    result = intent_search(ADVICE, "how do I reduce my taxes?")
    assert "tax_strategy:roth_conversion" in result.ids[:3]
    (limit,) = result.limitations["tax_strategy:roth_conversion"]
    assert limit.id == "limitation:5_year_holding_period"
    told = search_context(result)
    for id in ("check:income_threshold", "check:5_year_rule", "limitation:5_year_holding_period"):
        assert id in told
    assert "has to stay for five years" in told


def test_a_filter_on_tax_efficiency_keeps_the_efficient_and_marks_what_lies_around_them():
    config = RetrievalConfig(dimension_filters={"tax_efficiency": {"min": 0.7}})
    result = intent_search(ADVICE, "how do I reduce my taxes?", config=config)
    assert set(result.ids) == {"tax_strategy:roth_conversion", "tax_strategy:loss_harvesting"}
    assert result.neighbours and not any(near.within for near in result.neighbours)
    told = search_context(result)
    limits = ("limitation:5_year_holding_period", "limitation:wash_sale")
    assert "outside the filter" in told and all(limit in told for limit in limits)


def test_the_verdict_on_the_conversion_is_yes_with_limitations():
    verdict = can_it(ADVICE, "roth conversion")
    assert (verdict.status, verdict.node) == ("yes_with_limitations", "tax_strategy:roth_conversion")
    assert verdict.prerequisites == ("check:income_threshold", "check:5_year_rule")


def chance_graph(seed: int, nodes: int, edges: int) -> PropertyGraph:
    chance = np.random.default_rng(seed)
    words = ["cache", "token", "agent", "prompt", "taxes"]
    kinds = chance.choice(["tool", "limitation"], nodes)
    made = [node(f"{kind}:n{i}", " ".join(chance.choice(words, 3))) for i, kind in enumerate(kinds)]
    types = ["has_limitation", "has_workaround", "requires", "enables"]
    ends = chance.integers(0, nodes, (edges, 2)).tolist()
    return PropertyGraph.of(made, {Edge(made[a].id, str(chance.choice(types)), made[b].id) for a, b in ends})


ASKED = st.sampled_from(["reduce taxes", "agent token", "can it cache"])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(0, 90), ASKED)
def test_no_limitation_of_a_node_that_is_told_is_missing_from_the_context(seed, nodes, edges, query):
    graph = chance_graph(seed, nodes, edges)
    result = intent_search(graph, query, config=RetrievalConfig(limit=5, expand_depth=seed % 3))
    told = search_context(result)
    for id in (*result.ids, *(near.id for near in result.neighbours)):
        for edge in graph.neighbours(id, "out"):
            if edge.type == "has_limitation" and edge.target != id:
                assert edge.target in [each.id for each in result.limitations[id]]
                assert f"(node: {edge.target})" in told.partition(f"(node: {id};")[2]


def test_the_cookbook_has_its_nodes_its_edges_and_the_means_of_two_ratings():
    graph = cookbook()
    assert (len(graph), len(graph.edges)) == (291, 729)
    texts = (bundled_path(f"cookbook/ratings_{rater}.jsonl").read_text() for rater in "ab")
    rows = ([json.loads(line) for line in text.splitlines()] for text in texts)
    first, second = (next(row["ratings"] for row in r if row["id"] == "technique:reranking") for r in rows)
    known = graph.node("technique:reranking").properties
    assert {name: known[name] for name in first} == pytest.approx(
        {name: (value + second[name]) / 2 for name, value in first.items()}
    )


# --- the secure API


def test_from_the_goal_of_a_secure_api_the_required_patterns_and_their_gaps_are_reached():
    graph = cookbook()
    result = intent_search(graph, "how do I build a secure API?")
    assert result.ids[0] == "goal:build_secure_api"
    required = {edge.target for edge in graph.neighbours("goal:build_secure_api", "out", ["requires"])}
    assert required <= {near.id for near in result.neighbours} | set(result.ids)
    told = search_context(result)
    gaps = {edge.target for id in required for edge in graph.neighbours(id, "out", ["has_limitation"])}
    assert gaps and all(gap in told for gap in gaps)


def test_a_plan_for_it_names_prerequisites_before_what_requires_them():
    graph = cookbook()
    plan = compose_for(graph, "build a secure API and deploy it behind rate limiting")
    assert "goal:build_secure_api" in plan.tools
    order = [*plan.prerequisites]
    for id in order:
        for edge in graph.neighbours(id, "out", ["requires"]):
            if edge.target in order:
                assert order.index(edge.target) < order.index(id)


def test_the_documents_path_from_prompt_caching_to_lower_costs_is_found_in_the_cookbook():
    path = trace_path(cookbook(), "technique:prompt_caching", "goal:reduce_api_costs")
    assert path.text == "Prompt caching --[enables]--> (Token savings) --[contributes_to]--> Reduce API costs"
    assert [step.direction for step in path.steps] == ["forward", "forward"]


# --- goals


def test_the_enablers_of_a_goal_and_the_prerequisites_of_a_match_are_found_and_not_the_reverse():
    edges = "caching enables savings, savings enables holidays, savings requires budget, car requires savings"
    graph = linked(edges)
    assert want_to(graph, "savings").scores == pytest.approx(
        {"savings": 2 / 3, "budget": 1 / 3, "caching": 1 / 3 * 0.3 / 0.5}
    )
    assert set(want_to(graph, "savings", boost_types=["requires"]).ids) == {"savings", "budget", "car"}


def test_a_goal_mapping_replaces_the_edges_that_are_followed_and_adds_its_dimensions():
    mapping = {"grow": GoalMapping(("enables",), ("long_term_growth",))}
    plain = intent_search(ADVICE, "growing savings")
    mapped = intent_search(ADVICE, "growing savings", config=RetrievalConfig(goal_mappings=mapping))
    assert plain.weights.intent == 0 and mapped.weights.intent > 0
    intent = {each.id: each.intent for each in mapped.nodes}
    assert intent["tax_strategy:roth_conversion"] > intent.get("tax_strategy:loss_harvesting", 0)
    assert any(each.method == "edge_type_boost" and "over enables" in each.found for each in mapped.trace)


@every("verb", sorted(INTENT_VERBS))
def test_an_intent_verb_weighs_five_times_as_much_as_another_word(verb):
    texts = [f"{verb} lorem", "ipsum lorem", "dolor lorem", "sit lorem"]
    nodes = [Node(f"n{i}", ("tool",), {"name": text}) for i, text in enumerate(texts)]
    assert want_to(PropertyGraph.of(nodes), f"ipsum {verb}").ids[0] == "n0"
