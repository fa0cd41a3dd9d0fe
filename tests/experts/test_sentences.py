"""Answers in sentences that each name their source, and questions of which the graphs say no word."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expert_server import COOK, COOK_ID, echoing, expert_office

from kgot_lab.experts.chat.chat_events import ChatDone, SourcesEvent, ThoughtEvent, TokenEvent
from kgot_lab.experts.chat.citations import (
    NO_SOURCE,
    NOT_KNOWN,
    CitableNode,
    SentenceStream,
    sentences_schema,
)
from kgot_lab.llm.recorded import Scripted

CACHE = CitableNode("cook", "technique:caching", "Prompt caching", "technique")
LIMIT = CitableNode("cook", "limitation:prefix", "Prefix sensitivity", "limitation")
REPLY = {
    "sentences": [
        {"source": CACHE.handle, "sentence": "Pay once."},
        {"source": LIMIT.handle, "sentence": "Only for the same prefix."},
    ]
}
TEXT = "Pay once. [Source: cook:Prompt caching] Only for the same prefix. [Source: cook:Prefix sensitivity]"


def read(pieces) -> list[str]:
    form = SentenceStream()
    return [*map(form.feed, pieces), form.finish()]


def written(told: object, **more) -> str:
    return "".join(read([json.dumps(told, **more)]))


def in_pieces(text: str) -> st.SearchStrategy[list[str]]:
    cuts = st.lists(st.integers(0, len(text)), max_size=8).map(lambda places: [0, *sorted(places), len(text)])
    return cuts.map(lambda places: [text[one:other] for one, other in pairwise(places)])


@given(in_pieces(json.dumps(REPLY)))
def test_however_the_json_is_cut_into_pieces_the_same_text_is_told(pieces):
    assert "".join(read(pieces)) == TEXT


@given(in_pieces("```json\n" + json.dumps(REPLY, indent=1) + "\n```"))
def test_a_model_may_put_its_json_behind_a_fence(pieces):
    assert "".join(read(pieces)) == TEXT


@given(in_pieces('He said "no": {"a": 1}, and left \\ it'))
def test_a_reply_in_prose_is_told_as_it_stands(pieces):
    assert "".join(read(pieces)) == 'He said "no": {"a": 1}, and left \\ it'


@given(
    in_pieces(
        json.dumps(
            {"sentences": [{"source": CACHE.handle, "sentence": 'Größe "30" – a\u2028line\n\\ and 🙂.'}]}
        )
    )
)
def test_letters_of_every_kind_come_whole_however_they_are_escaped(pieces):
    assert "".join(read(pieces)) == 'Größe "30" – a line \\ and 🙂. [Source: cook:Prompt caching]'


def test_words_are_told_before_their_sentence_has_ended():
    form = SentenceStream()
    assert form.feed('{"sentences": [{"source": "cook:Prompt caching", "sentence": "Pay on') == "Pay on"
    assert form.feed('ce."}, {"source": "x') == "ce. [Source: cook:Prompt caching]"


@pytest.mark.parametrize(
    "reply",
    ['{"answer": "none of this form"}', '{"sentences": "a"}', '{"sentences": [1, {"source": 2}]}', "{broken"],
)
def test_json_of_another_form_is_told_as_it_stands_and_not_lost(reply):
    assert "".join(read([reply])) == reply


def test_a_reply_that_was_cut_off_keeps_what_was_said():
    assert "".join(read([json.dumps(REPLY)[:80]])).startswith("Pay once. [Source: cook:Prompt caching]")


def test_a_sentence_is_said_once_and_one_without_a_source_cites_nothing():
    row = {"source": CACHE.handle, "sentence": "Pay once."}
    assert written({"sentences": [row, row, {"source": NO_SOURCE, "sentence": NOT_KNOWN}]}) == (
        "Pay once. [Source: cook:Prompt caching] I do not know."
    )


@given(
    in_pieces(
        json.dumps(
            {
                "sentences": [
                    {"source": CACHE.handle, "sentence": f"Pay [1] once. [Source: {CACHE.handle}] Or not."}
                ]
            }
        )
    )
)
def test_a_sentence_that_names_its_source_itself_is_cited_once(pieces):
    assert "".join(read(pieces)) == "Pay [1] once. Or not. [Source: cook:Prompt caching]"


def test_a_sentence_keeps_the_other_sources_that_it_names():
    row = {"source": CACHE.handle, "sentence": f"Pay once [Source: {LIMIT.handle}] [or"}
    assert written({"sentences": [row]}) == f"Pay once [Source: {LIMIT.handle}] [or [Source: {CACHE.handle}]"


def test_the_form_lets_a_model_cite_what_it_was_told_and_nothing_else():
    def sentence(may_know_nothing):
        return sentences_schema([CACHE, LIMIT, CACHE], allow_unknown=may_know_nothing)["properties"][
            "sentences"
        ]["items"]

    def choices(shape, name):
        return shape["properties"][name].get("enum")

    told = sentence(False)
    assert choices(told, "source") == [CACHE.handle, LIMIT.handle] and choices(told, "sentence") is None
    assert sentence(True)["anyOf"][0] == told
    assert [choices(sentence(True)["anyOf"][1], name) for name in ("source", "sentence")] == [
        [NO_SOURCE],
        [NOT_KNOWN],
    ]


def test_an_expert_that_answers_in_sentences_holds_the_model_to_them_and_tells_text():
    def reply(prompt):
        source = prompt.schema["properties"]["sentences"]["items"]["properties"]["source"]["enum"][0]
        said = [(source, "It is so."), ("cookbook:made up", "And so.")]
        return json.dumps(
            {"sentences": [{"source": source, "sentence": sentence} for source, sentence in said]}
        )

    service = expert_office(Scripted(reply), expert={**COOK, "answers_in": "sentences"})
    events = list(service.ask(COOK_ID, "ada", "How do I use prompt caching?").events())
    done = events[-1]
    assert isinstance(done, ChatDone) and len(done.cited) == 1 and done.false == ("cookbook:made up",)
    assert done.text.startswith("It is so. [Source: cookbook:")
    assert "(not in the context)" in done.text
    assert "{" not in done.text
    assert "".join(event.content for event in events if isinstance(event, TokenEvent)) == done.text


# --- what no word of is found ---


def thought_of_asking(service, question):
    events = list(service.ask(COOK_ID, "ada", question).events())
    (thought,) = (event.thought for event in events if isinstance(event, ThoughtEvent))
    (sources,) = (event for event in events if isinstance(event, SourcesEvent))
    return thought, sources.nodes, events[-1]


def test_words_of_a_question_that_nothing_found_says_are_told_to_the_reader_and_to_the_model():
    model = echoing()
    thought, sources, _ = thought_of_asking(
        expert_office(model), "Does prompt zanzibar quokka bilberry the caching?"
    )
    assert thought.unsaid == ["zanzibar", "quokka", "bilberry"] and sources
    assert (
        "Nothing that was found in the knowledge graph says: zanzibar, quokka, bilberry."
        in model.asked[0].messages[0].text
    )
    thought, _, _ = thought_of_asking(expert_office(model), "How do I use prompt caching?")
    assert thought.unsaid == [] and "Nothing that was found" not in model.asked[1].messages[0].text


def test_an_expert_may_decline_what_is_off_its_topic_without_asking_a_model():
    model = echoing()
    service = expert_office(model, expert={**COOK, "off_topic": "decline"})
    thought, sources, done = thought_of_asking(service, "Zanzibar quokka?")
    assert not model.asked and sources == () and thought.unsaid == ["Zanzibar", "quokka"]
    assert done.text == "My graph says nothing of Zanzibar, quokka. I do not know the answer."
    assert done.cited == ()
    kept = service.tables.messages(done_conversation(service))[-1]
    assert kept.content == done.text and kept.metadata["declined"] is True
    thought_of_asking(service, "What does prompt caching cost?")
    assert len(model.asked) == 1


def done_conversation(service) -> str:
    (talk,) = service.tables.conversations(COOK_ID, "ada", limit=10)[0]
    return talk.id
