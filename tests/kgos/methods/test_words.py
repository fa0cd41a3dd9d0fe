"""Intents, keyword matches, dimensions: what they find, what they leave out and say so, and how they print."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.every import every
from support.method_graphs import linked

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.methods.goals import want_to
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.intents import INTENTS, classify_intent
from kgot_lab.kgos.methods.ranking import edge_type_boost, keyword_match, similar_to
from kgot_lab.kgos.methods.traversal import explore_smart, trace_path
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.text.words import searched_words
from kgot_lab.types import Node

# --- classify_intent


def test_there_are_fourteen_intents_with_phrases_and_words():
    assert len(INTENTS) == 14
    assert all(rule.phrases and rule.words for rule in INTENTS.values())


@every(
    ("query", "found"),
    [
        ("How do I reduce my API costs?", [("cost_optimization", 1.3)]),
        ("optimize my database queries", [("performance", 0.3)]),
        ("reduce my taxes", []),
        ("show me what depends on docker", [("deployment", 1.3), ("impact", 1.3), ("exploration", 1.0)]),
        ("which agent workflow?", [("agent_workflow", 0.6), ("composition", 0.3), ("comparison", 0.3)]),
        ("What’s related", [("exploration", 1.3)]),
        ("UNEXPLORED", [("exploration", 1.0)]),  # a phrase counts wherever its letters stand, a word does not
        ("costly", []),
    ],
)
def test_a_phrase_counts_one_a_word_three_tenths_and_ties_are_in_the_order_of_the_table(query, found):
    assert [(intent.name, intent.score) for intent in classify_intent(query).intents] == found


def brute_intents(query):
    """The scores by regular expressions, one trigger after another."""
    text = query.lower().replace("’", "'")
    scores = {}
    for name, rule in INTENTS.items():
        words = [re.search(rf"(?<![^\W_]){re.escape(word)}s?(?![^\W_])", text) for word in rule.words]
        scores[name] = sum(phrase in text for phrase in rule.phrases) + 0.3 * sum(map(bool, words))
    return {name: score for name, score in scores.items() if score}


TRIGGERS = sorted({phrase for rule in INTENTS.values() for phrase in (*rule.phrases, *rule.words)})
TRIGGERS += ["my", "costs", "chains", "sand", "X_cost"]


@given(st.lists(st.sampled_from(TRIGGERS), max_size=7), st.sampled_from([" ", ", ", "_", ""]))
def test_the_scores_are_those_of_trying_each_trigger(words, joint):
    query = joint.join(words)
    found = classify_intent(query, threshold=0, most=14)
    assert {intent.name: intent.score for intent in found.intents} == pytest.approx(brute_intents(query))


def test_what_is_below_the_threshold_or_beyond_the_best_three_is_said():
    few = classify_intent("combine agents, think, and search the graph, fast", threshold=0.3)
    assert len(few.intents) == 3 and "not among the best 3: " in few.why[0]
    low = classify_intent("a budget", threshold=0.5)
    assert low.why[0] == "below the threshold of 0.5: cost_optimization 0.3"
    assert classify_intent("hello").why[0] == "no phrase and no word of the fourteen intents is in the query"


def test_a_mode_adds_its_boost():
    assert classify_intent("hello", boosts={"security": 0.5}).best.name == "security"
    with pytest.raises(UnknownName, match="did you mean 'security'"):
        classify_intent("hello", boosts={"securty": 0.5})


@every(
    ("query", "purpose"),
    [
        ("can it edit binary files", "capability"),
        ("Does it support streaming?", "capability"),
        ("I want to reduce costs", "goal"),
        ("reduce costs", "goal"),
        ("combine tools into a chain", "composition"),
        ("what depends on the cache", "impact"),
        ("compare options", "comparison"),
        ("hello", "search"),
        ("how do I combine tools", "composition"),
    ],
)
def test_the_purpose_is_what_the_query_says_or_what_its_intent_has(query, purpose):
    assert classify_intent(query).purpose == purpose


# --- keyword_match


def texts_of(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts_of(each)]
    return [text for each in value for text in texts_of(each)] if isinstance(value, list | tuple) else []


@every("number", range(0, 76, 5))
def test_a_keyword_match_counts_the_words_that_stand_anywhere_in_a_node(number):
    graph = cookbook()
    query = json.loads(bundled_path("cookbook/queries_tuning.jsonl").read_text().splitlines()[number])["text"]
    words = set(searched_words(query))
    expected = {}
    for node in graph.nodes:
        text = " ".join([*node.labels, *texts_of(node.properties)]).lower().replace("_", " ")
        if score := sum(word in text for word in words):
            expected[node.id] = score
    assert keyword_match(graph, query).scores == expected


def test_nothing_to_look_for_and_nothing_found_are_told_apart():
    graph = cookbook()
    (said,) = keyword_match(graph, "is it in the").why
    assert said == "no word to look for: stop words and single letters are left out"
    assert keyword_match(graph, "xylophone").why[-1] == "no name, label or text holds any of them"
    described = PropertyGraph.of([Node("x", (), {"description": "a tool"})])
    assert keyword_match(described, "description tool").scores == {"x": 1}


BARE = linked("a requires b_cache, a requires a", Node("alone"))
ON_A_NODE = (
    similar_to,
    impact_analysis,
    explore_smart,
    lambda graph, id: trace_path(graph, "a", id),
    lambda graph, id: edge_type_boost(graph, [id]),
)


@every("method", ON_A_NODE)
def test_a_node_that_is_not_there_is_told_with_what_is_near(method):
    with pytest.raises(UnknownName, match="did you mean 'b_cache'"):
        method(BARE, "b_cahce")
    with pytest.raises(BadInput, match=r"unknown node|a text, not|each item a text"):
        method(BARE, ["a"])


def test_a_name_in_place_of_an_id_is_understood_in_the_error():
    with pytest.raises(UnknownName, match="did you mean 'technique:prompt_caching'"):
        similar_to(cookbook(), "Prompt Caching")


def test_a_label_that_one_node_has_is_taken_for_its_name_as_files_of_other_programs_have_it():
    graph = linked("0 connects 1", Node("0", ("Router",)), Node("1", ("Switch",)))
    with pytest.raises(UnknownName, match="unknown node 'router'; did you mean '0'"):
        trace_path(graph, "router", "1")
    both = PropertyGraph.of([Node("0", ("Router",)), Node("1", ("Router",))])
    with pytest.raises(UnknownName, match=r"unknown node 'Router'\. Known"):
        similar_to(both, "Router")


@every("method", ON_A_NODE)
def test_what_an_answer_is_about_can_be_drawn_as_a_part_of_the_graph(method):
    graph, id = (cookbook(), "technique:prompt_caching") if method in ON_A_NODE[:3] else (BARE, "b_cache")
    found = method(graph, id)
    assert len(graph.subgraph(found.ids)) == len(set(found.ids)) > 0


@every("method", ON_A_NODE)
@every("id", ["a", "alone"])
def test_a_graph_without_descriptions_names_or_labels_is_asked_all_the_same(method, id):
    answer = method(BARE, id)
    assert answer.why and repr(answer).startswith("<") and "<table" in answer._repr_html_()
    assert list(answer.frame().columns) == list(answer.COLUMNS) and len(answer.frame()) == len(answer.rows())


def test_an_id_serves_as_name_where_there_is_none():
    assert keyword_match(BARE, "cache").ids == ["b_cache"]
    assert want_to(BARE, "cache").ids == ["b_cache"]


@every(
    "ask",
    [
        lambda: similar_to(PropertyGraph.of(), "a"),
        lambda: similar_to("graph", "a"),
        lambda: similar_to(BARE, "a", 0),
        lambda: keyword_match(BARE, 7),
        lambda: keyword_match(BARE, "cache", 0),
        lambda: want_to(BARE, " "),
        lambda: impact_analysis(BARE, "a", max_depth=0),
        lambda: impact_analysis(BARE, "a", direction="up"),
        lambda: explore_smart(BARE, "a", depth=1.5),
        lambda: trace_path(BARE, "a", "alone", max_depth=-1),
        lambda: edge_type_boost(BARE, "a"),
        lambda: edge_type_boost(BARE, ["a"], "requires"),
        lambda: trace_path(BARE, "a", "alone", types="requires"),
        lambda: want_to(BARE, "cache", boost_types="requires"),
        lambda: classify_intent(None),
        lambda: classify_intent("a", most=0),
        lambda: classify_intent("a", threshold=-1),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(ask):
    with pytest.raises(BadInput) as told:
        ask()
    assert len(str(told.value)) > 15


def test_the_text_of_a_graph_can_do_nothing_to_a_terminal_or_a_page():
    evil = PropertyGraph.of([Node("x", ("t",), {"name": "\x1b[31m<script>alert(1)</script>\n>>> cache"})])
    found = keyword_match(evil, "cache")
    assert "\x1b" not in repr(found) and len(repr(found).splitlines()) == 4
    assert "<script>" not in found._repr_html_()
