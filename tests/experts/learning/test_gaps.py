"""Failed answers are known by four signs, and tell a gap of the graph from a setting of the search."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support.every import every

from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.learning.gaps import (
    QuestionRecord,
    admits_not_knowing,
    failure_patterns,
    gap_report,
    hypergeometric_tail,
    owner_questions,
    question_records,
)
from kgot_lab.experts.learning.growth_regions import (
    NodeMatches,
    most_frequent_edge,
)
from kgot_lab.experts.repository import ChatMessage, open_experts
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.retrieval.fusion import Weights

COOKBOOK = cookbook()
NOW = datetime(2026, 1, 2, tzinfo=UTC)
GONE = "technique:prompt_caching"
QUESTION = "how does prompt caching of a prefix save tokens?"
EXACT = "prompt caching: reusing internal state for a prefix"


def asked(graph, text, config=None, **more):
    """A question as an expert is asked it."""
    told = tuple(node.id for node in intent_search(graph, text, config=config).nodes)
    return QuestionRecord(text, text, **{"told": told, "thumb": -1, **more})


def without(*ids):
    return COOKBOOK.subgraph([id for id in COOKBOOK.ids if id not in ids])


@every(
    ("answer", "admitted"),
    [
        ("I do not know.", True),
        ("Sorry, I don't know which one.", True),
        ("The graph does not say how.", True),
        ("The knowledge graph holds nothing on this question.", True),
        ("I have no information on heating bills.", True),
        ("The context doesn't mention it.", True),
        ("Use prompt caching [Source: cookbook:Prompt caching].", False),
        ("You do not need to know it.", False),
        ("It does not say much to you.", False),
    ],
)
def test_an_answer_that_admits_not_to_know_is_told_from_one_that_knows(answer, admitted):
    assert admits_not_knowing(answer) == admitted


def test_an_answer_fails_in_four_ways_and_a_thumb_up_outweighs_them():
    failing = QuestionRecord("m", "q", "I do not know.", false=("x",), thumb=-1)
    assert failing.failures == ("thumbs down", "does not know", "false citations", "nothing retrieved")
    assert QuestionRecord("m", "q", "I do not know.", thumb=1).failures == ()
    assert QuestionRecord("m", "q", "So it is.", told=("a",)).failures == ()


def conversation(answer, **about):
    told = (("cookbook", GONE), ("other", "x"))
    trace = {"nodes": [{"graph": graph, "id": id, "told": True} for graph, id in told]}
    metadata = {"trace": trace, "citations": [], "false_citations": ["cookbook:y"], "intent": "deployment"}
    metadata |= about
    return [ChatMessage("q", "user", "why?", NOW), ChatMessage("a", "assistant", answer, NOW, metadata)]


def test_a_conversation_tells_its_questions_with_what_came_of_them():
    (found,) = question_records(conversation("So."), {"a": -1}, "cookbook")
    assert (found.question, found.told, found.false) == ("why?", (GONE,), ("cookbook:y",))
    assert (found.thumb, found.intent) == (-1, "deployment")


@pytest.mark.parametrize("about", [{"failed": True}, {"stopped": True}])
def test_an_answer_that_the_model_did_not_give_says_nothing_of_the_graph(about):
    assert question_records(conversation("", **about), {}, "cookbook") == ()


def test_only_the_conversations_of_one_person_are_read():
    tables = open_experts()
    config = expert_config({"name": "Guide", "kg_db_id": "cookbook", "persona": {"name": "Guide"}})
    expert = tables.add_expert(config).id
    for owner in ("ada", "eve"):
        talk = tables.begin_conversation(expert, owner, "why?")
        question, answer = conversation("So.")
        tables.add_message(talk, "user", f"{question.content} asks {owner}")
        said = tables.add_message(talk, "assistant", answer.content, answer.metadata)
        tables.rate_answer(said.id, -1, conversation=talk, expert=expert, owner=owner)
    (found,) = owner_questions(tables, expert, "ada", "cookbook")
    assert (found.question, found.failures) == ("why? asks ada", ("thumbs down", "false citations"))
    tables.close()


def test_a_deleted_node_leaves_a_gap_whose_region_joins_its_neighbours():
    graph = without(GONE, "workaround:stable_part_first")
    report = gap_report(graph, [asked(graph, QUESTION)])
    assert len(report.gaps) == 1 and not report.misconfigured
    near = {end for edge in COOKBOOK.neighbours(GONE, "both") for end in (edge.source, edge.target)}
    assert set(report.regions[0].ends) & near


def test_answers_that_did_not_fail_propose_nothing():
    report = gap_report(
        COOKBOOK, [asked(COOKBOOK, QUESTION, thumb=1), asked(COOKBOOK, "what is a router?", thumb=None)]
    )
    assert (report.failed, report.gaps, report.regions) == (0, (), ())
    assert (report.misconfigured, report.patterns) == ((), ())


def test_a_filter_that_keeps_the_answer_out_is_at_fault_and_the_graph_is_not():
    config = RetrievalConfig(dimension_filters={"token_efficiency": {"max": 0.2}})
    report = gap_report(COOKBOOK, [asked(COOKBOOK, EXACT, config)], config=config)
    (found,) = report.misconfigured
    assert (found.setting, found.node, report.gaps, report.regions) == ("filters", GONE, (), ())


def test_usual_weights_are_no_setting_at_fault_whichever_way_they_are_written():
    config = RetrievalConfig(weights=Weights(0.35, 0.40, 0.15, 0.10))
    question = asked(COOKBOOK, EXACT, told=("tool:batch_api",))
    assert gap_report(COOKBOOK, [question], config=config).misconfigured[0].setting == "ranking"
    slanted = RetrievalConfig(weights=Weights(0, 0, 1, 0))
    assert gap_report(COOKBOOK, [question], config=slanted).misconfigured[0].setting == "weights"


def test_a_limit_that_keeps_the_answer_out_is_at_fault():
    config = RetrievalConfig(limit=1)
    question = asked(COOKBOOK, EXACT, config, told=("tool:batch_api",))
    assert gap_report(COOKBOOK, [question], config=config).misconfigured[0].node == GONE


def test_false_citations_alone_are_of_the_model_and_propose_nothing():
    question = asked(COOKBOOK, "prompt caching", thumb=None, false=("cookbook:x",))
    report = gap_report(COOKBOOK, [question])
    assert report.unexplained == (question,) and report.regions == ()


def test_gaps_that_share_a_word_nobody_knows_are_one_region():
    texts = ("zeppelins for retrieval", "which zeppelin serves an agent?", "zeppelins and prompts")
    report = gap_report(COOKBOOK, [asked(COOKBOOK, text) for text in (*texts, "a quokka for metrics")])
    first = report.regions[0]
    assert len(report.gaps) == 4 and first.questions == texts and "zeppelins" in first.words


def test_a_pattern_is_told_where_the_questions_of_a_topic_fail_more_than_chance_explains():
    good = [
        QuestionRecord(f"g{n}", f"cost of thing {n}", "So.", ("a",), intent="cost_optimization")
        for n in range(20)
    ]
    bad = [
        QuestionRecord(f"b{n}", f"deployment of thing {n}", "I do not know.", ("a",), intent="deployment")
        for n in range(6)
    ]
    found = {(pattern.kind, pattern.name): pattern for pattern in failure_patterns([*good, *bad])}
    assert set(found) == {("intent", "deployment"), ("word", "deployment")}
    assert found["intent", "deployment"].messages == tuple(f"b{n}" for n in range(6))
    assert failure_patterns([*good, *bad[:2]]) == ()
    assert failure_patterns(bad) == ()  # where all fail, no topic fails more often


def test_the_tail_is_that_of_draws_without_replacement():
    assert hypergeometric_tail(0, 3, 2, 10) == pytest.approx(1)
    assert hypergeometric_tail(2, 2, 2, 4) == pytest.approx(1 / 6)


def test_the_usual_edge_is_the_most_frequent_between_two_types():
    assert most_frequent_edge(COOKBOOK, "limitation", "workaround:stable_part_first").type == "has_workaround"
    assert not most_frequent_edge(COOKBOOK, "limitation", "technique:prompt_caching").outwards


def test_words_match_by_their_weight_and_unknown_ones_are_told():
    matches = NodeMatches(COOKBOOK)
    strengths = matches.scores("prompt caching")
    assert strengths[COOKBOOK.row(GONE)] == pytest.approx(1) and strengths.min() >= 0
    assert matches.unknown_words("prompt zeppelin") == ("zeppelin",)
    assert matches.scores("zeppelin").max() == 0
