"""A talk with an expert from Python: one conversation, true and false citations told apart, and what the
front door makes of a name.
"""

from __future__ import annotations

from itertools import islice

import pytest

import kgot_lab as lab
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.chat.chat_events import TokenEvent
from kgot_lab.experts.chat.citations import FALSE_MARK, CitableNode
from kgot_lab.experts.expert import Persona
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.session import AnswerPart, ExpertTalk, split_answer
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge, Node

GRAPH = lab.PropertyGraph.of(
    [
        Node(
            "cache",
            ("technique",),
            {"name": "Prompt caching", "description": "Keep the beginning of a prompt"},
        ),
        Node("cost", ("goal",), {"name": "Reduce costs"}),
        Node("stale", ("limitation",), {"name": "Stale answers"}),
    ],
    [Edge("cache", "enables", "cost"), Edge("cache", "has_limitation", "stale")],
)
QUESTION = "How can I reduce costs by prompt caching?"
ANSWER = "Use it [Source: graph:Prompt caching], not [Source: graph:The moon; graph:stale]."


def talk_of(*answers, **more):
    """A talk about the small graph with a model that gives these answers."""
    return lab.expert(GRAPH, model=Scripted(answers), **more)


def test_an_answer_tells_true_citations_from_false_ones():
    answered = talk_of(ANSWER).ask(QUESTION)
    assert [node.id for node in answered.cited] == ["cache", "stale"] and answered.false == (
        "graph:The moon",
    )
    texts = [part.text for part in answered.parts if part.is_citation]
    assert texts == ["graph:Prompt caching", "graph:The moon", "graph:stale"]
    nodes = [part.node.id if part.node else "" for part in answered.parts if part.is_citation]
    assert nodes == ["cache", "", "stale"]
    assert answered.thought.nodes
    assert {node.id for node in answered.sources} <= set(GRAPH.ids)
    assert not answered.trouble
    assert f"({answered.outcome})" in repr(answered) and answered.outcome.startswith(
        "unsure, a guess: it cites "
    )
    assert repr(answered).endswith("<2 nodes cited, 1 false citation>") and answered.text in repr(answered)


def test_a_talk_keeps_to_one_conversation_in_which_what_was_said_counts():
    model = Scripted(["First.", "Second."])
    talk = lab.expert(GRAPH, model=model)
    first, second = talk.ask(QUESTION), talk.ask("And then?")
    assert talk.turns == (first, second) and first.conversation == second.conversation == talk.conversation
    told = [message.text for message in model.asked[1].messages[1:]]
    assert told[:2] == [QUESTION, "First."] and told[2].startswith("And then?")
    conversations, total = talk.service.conversations(talk.expert.id, talk.owner)
    assert total == 1 and conversations[0].message_count == 4
    kept = talk.service.tables.messages(talk.conversation)
    assert [first.message, second.message] == [each.id for each in kept if each.role == "assistant"]
    assert repr(talk) == "<Talk with Expert on graph: 2 answers>"


def test_what_was_said_before_it_was_broken_off_is_an_answer_with_its_citations():
    talk = talk_of(ANSWER, "Second.")
    events = talk.events(QUESTION)
    told = [each for each in islice(events, 9) if isinstance(each, TokenEvent)]
    events.close()
    (answered,) = talk.turns
    assert answered.text == "".join(each.content for each in told) and answered.trouble == "it was broken off"
    assert [node.id for node in answered.cited] == ["cache"] and answered.parts[1].node.id == "cache"
    assert talk.service.tables.messages(talk.conversation)[-1].id == answered.message
    assert talk.ask("And then?").conversation == answered.conversation


def test_a_talk_that_is_broken_off_before_a_word_keeps_no_answer_and_nothing_on_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    talk = talk_of("First.", ANSWER)
    talk.ask(QUESTION)
    events = talk.events("And then?")
    next(events)
    events.close()
    assert (talk.turns[1].message, talk.turns[1].text, talk.turns[1].thought) == ("", "", None)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_fails_leaves_an_answer_that_says_why():
    answered = talk_of().ask(QUESTION)
    assert answered.text == "" and "no reply left" in answered.trouble and answered.thought is not None


def test_a_question_that_is_none_is_refused_and_nothing_is_kept():
    talk = talk_of("First.")
    for question, why in (("  ", "blank"), (7, "is a text, not 7")):
        with pytest.raises(BadInput, match=why):
            talk.ask(question)
    assert talk.turns == () and talk.conversation is None
    with pytest.raises(NotFound):
        ExpertTalk(talk.service, "expert_nobody")
    with pytest.raises(BadInput, match="service"):
        ExpertTalk(None, "expert_nobody")


def test_a_citation_that_nobody_checked_stays_words():
    node = CitableNode("g", "a", "Salt; pepper", "spice")
    assert list(split_answer("x [Source: g:b] [Source: ;]", (node,))) == [
        AnswerPart("x [Source: g:b] [Source: ;]")
    ]
    assert [
        part.node.id for part in split_answer("[Source: Salt, pepper]", (node._replace(name="Salt, pepper"),))
    ] == ["a"]
    assert list(split_answer(f"[source: b{FALSE_MARK}]", ())) == [AnswerPart("b", True)]
    assert list(split_answer("", ())) == []


# --- the front door ---


def test_the_front_door_reads_a_graph_where_it_is(tmp_path):
    (tmp_path / "note.md").write_text("# Rust\n\nBridges rust.\n")
    for place in (tmp_path, str(tmp_path)):
        answered = lab.expert(place, model=Scripted(["It does."])).ask("Do bridges rust?")
        assert "rust" in answered.sources[0].name.casefold()
    for nowhere in (str(tmp_path / "none"), "x" * 200):
        with pytest.raises(UnknownName, match="place of a graph"):
            lab.expert(nowhere, model=Scripted([]))


def test_notes_are_answered_from_what_stands_under_their_later_headings(tmp_path):
    (tmp_path / "note.md").write_text(
        "# Steel\n\nMade of iron.\n\n## Limits\n\nBridges rust within forty years.\n"
    )
    model = Scripted(["After forty years [Source: graph:Limits (Steel)]."])
    answered = lab.expert(tmp_path, model=model).ask("When do bridges rust?")
    assert "Bridges rust within forty years." in model.asked[0].messages[0].text
    assert [node.name for node in answered.cited] == ["Limits (Steel)"]


def test_the_front_door_knows_the_shipped_experts_by_name():
    talk = lab.expert("cookbook", model=Scripted(["Yes [Source: cookbook:Prompt caching]."]))
    answered = talk.ask("How do I reduce API costs with prompt caching?")
    assert [node.id for node in answered.cited] == ["technique:prompt_caching"]
    assert talk.expert.persona.name == "Cook"
    with pytest.raises(UnknownName, match="cookbook"):
        lab.expert("cookbok", model=Scripted([]))


@pytest.mark.parametrize(
    "persona",
    ["You rhyme.", {"instructions": "You rhyme."}, Persona(name="Expert", instructions="You rhyme.")],
)
def test_a_persona_and_settings_change_what_the_model_is_told(persona):
    model = Scripted(["First."])
    talk = lab.expert(GRAPH, model=model, persona=persona, settings={"retrieval": {"limit": 1}})
    assert len(talk.ask(QUESTION).thought.nodes) == 1
    assert model.asked[0].messages[0].text.startswith("You are Expert. You rhyme.")


def test_triples_are_a_graph_too_and_what_is_none_is_refused():
    talk = lab.expert([("Ada", "born in", "London")], model=Scripted(["In London [Source: graph:London]."]))
    assert [node.id for node in talk.ask("Where was Ada born?").cited] == ["London"]
    for knows, why in ((lab.PropertyGraph.of(), "empty"), (7, "knows")):
        with pytest.raises(BadInput, match=why):
            lab.expert(knows, model=Scripted([]))
    with pytest.raises(BadInput, match="as connect"):
        lab.expert(GRAPH, model=7)
    with pytest.raises(BadInput, match="persona"):
        lab.expert(GRAPH, model=Scripted([]), persona=7)
    with pytest.raises(BadInput, match="retrieval"):
        lab.expert(GRAPH, model=Scripted([]), settings={"retrieval": {"limit": 0}})
