"""Values that people contradict are told with the way and the words; where nothing drifted the report is
silent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.every import every
from support.simulated_learning import simulated_sayings

from kgot_lab.errors import BadInput
from kgot_lab.experts.learning.contradictions import (
    DimensionEvidence,
    benjamini_hochberg,
    binomial_tail,
    contradiction_proposal,
    extract_statements,
    find_contradictions,
)
from kgot_lab.experts.learning.ledger import PropertyToChange, ProposalSource, open_proposals, plan_change
from kgot_lab.experts.learning.reviewing import GraphReview
from kgot_lab.kgos.methods.dimensions import dimension_filter
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Diff

COOKBOOK = cookbook()
NODE, PRICE = "tool:language_model_api", "pricing_tier"
NAME = str(COOKBOOK.node(NODE).properties["name"])
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def altered(*values):
    """The graph with other values, each (node, dimension, value)."""
    graph = COOKBOOK
    for id, name, value in values:
        before = graph.node(id)
        graph = graph.apply(
            Diff(changed_nodes=((before, replace(before, properties={**before.properties, name: value})),))
        )
    return graph


def said(text, by="ada", graph=COOKBOOK, **more):
    return [
        (statement.node, statement.dimension, statement.end)
        for statement in extract_statements(graph, text, by=by, **more)
    ]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (f"{NAME} is cheap now.", "low"),
        (f"Since May {NAME} is really expensive", "high"),
        (f"{NAME} is not expensive any more.", "low"),
        (f"{NAME} is no longer cheap.", "high"),
        (f"Thanks! {NAME} is free these days. What else?", "low"),
    ],
)
def test_a_sentence_speaks_for_an_end_of_a_dimension(text, end):
    assert said(text) == [(NODE, PRICE, end)]


@every(
    "text",
    [
        f"Is {NAME} cheap?",
        f"If {NAME} were cheap, I would use it.",
        f"{NAME} is cheap and expensive at once.",
        f"{NAME} is cheap, Batch API is not.",
        "It is cheap now.",
        f"{NAME} is nice.",
    ],
)
def test_a_question_a_wish_and_what_names_no_one_node_say_nothing(text):
    assert said(text) == []


def evidence(ends, **more):
    """What people say of the price, one person each."""
    return [DimensionEvidence(NODE, PRICE, end, f"person {n}", "words", **more) for n, end in enumerate(ends)]


def test_a_value_that_many_contradict_is_told_with_way_and_words():
    graph = altered((NODE, PRICE, 0.9))
    (found,) = find_contradictions(graph, evidence(["low"] * 4 + ["high"])).found
    assert (found.node, found.dimension, found.way, found.value) == (NODE, PRICE, "lower", 0.9)
    assert (found.against, found.agreeing) == (4, 1)
    assert len(found.evidence) == 4 and found.p == pytest.approx(binomial_tail(4, 5, 0.2))


def test_many_values_are_corrected_for_the_share_of_false_discoveries():
    assert benjamini_hochberg([0.01, 0.5, 0.02]) == pytest.approx([0.03, 0.5, 0.03])
    assert benjamini_hochberg([]) == []


def test_one_person_who_says_it_a_hundred_times_is_one_person():
    graph = altered((NODE, PRICE, 0.9))
    again = [DimensionEvidence(NODE, PRICE, "low", "mallory", f"words {n}") for n in range(100)]
    assert find_contradictions(graph, again).found == ()


def test_the_last_word_of_a_person_counts():
    graph = altered((NODE, PRICE, 0.9))
    first = evidence(["low"] * 6, at=NOW)
    second = evidence(["high"] * 6, at=NOW + timedelta(days=1))
    assert find_contradictions(graph, [*second, *first]).found == ()


def test_words_older_than_the_value_do_not_count():
    graph = altered((NODE, PRICE, 0.9))
    old = evidence(["low"] * 6, at=NOW)
    changed = plan_change(
        graph, [PropertyToChange(NODE, PRICE, 0.8, 0.9)], by="Grace", now=lambda: NOW + timedelta(days=1)
    ).after
    report = find_contradictions(changed, old)
    assert (report.found, report.stale) == ((), 6)
    assert find_contradictions(changed, evidence(["low"] * 6, at=NOW + timedelta(days=2))).found


def test_a_value_in_the_middle_and_a_node_that_is_gone_are_not_watched():
    report = find_contradictions(altered((NODE, PRICE, 0.55)), evidence(["low"] * 6))
    assert (report.found, report.watched) == ((), 0)
    assert find_contradictions(COOKBOOK.subgraph(["tool:batch_api"]), evidence(["low"] * 6)).watched == 0


def test_altered_values_are_found_and_a_copy_without_drift_stays_silent():
    pairs = [
        (NODE, PRICE),
        ("technique:prompt_caching", "token_efficiency"),
        ("capability:conversational_dialogue", "multi_turn_depth"),
    ]
    assert all(abs(COOKBOOK.node(id).properties[name] - 0.5) > 0.1 for id, name in pairs)
    drifted = altered(*((id, name, 1 - COOKBOOK.node(id).properties[name]) for id, name in pairs[:2]))
    told = simulated_sayings(COOKBOOK, pairs, people=12, error=0.1, seed=3)
    reports = {}
    for graph in (drifted, COOKBOOK):
        found = [
            statement for person, text in told for statement in extract_statements(graph, text, by=person)
        ]
        reports[graph is drifted] = {
            (each.node, each.dimension) for each in find_contradictions(graph, found).found
        }
    assert reports[True] == set(pairs[:2]) and reports[False] == set()


def test_a_contradicted_value_is_changed_only_by_who_reviews_and_then_passes_the_filter():
    graph = altered((NODE, PRICE, 0.9))
    (found,) = find_contradictions(graph, evidence(["low"] * 5)).found
    ledger = open_proposals()
    review = GraphReview(ledger, "cookbook", lambda: graph, "Grace")
    proposal = contradiction_proposal("cookbook", found, 0.2)
    ledger.propose(
        proposal, ProposalSource("m", "c", "drift report", "; ".join(each.words for each in found.evidence))
    )
    within = dimension_filter(review.graph(), {PRICE: {"max": 0.3}}, limit=300).ids
    assert NODE not in within
    review.accept(proposal.id)
    assert NODE in dimension_filter(review.graph(), {PRICE: {"max": 0.3}}, limit=300).ids
    review.undo()
    assert review.graph().digest == graph.digest
    for value in (0.9, 0.95, -1):
        with pytest.raises(BadInput):
            contradiction_proposal("cookbook", found, value)
    ledger.close()
