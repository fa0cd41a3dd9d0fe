"""Looking at a talk with an expert: as Python hears it, as text on paper, and as steps; what graphs and
models say stays text.
"""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import kgot_lab as lab
from kgot_lab.errors import BadInput
from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge, Node
from kgot_lab.viz.experts import (
    TalkView,
    ThoughtView,
    node_card,
    score_bars,
    show_talk,
    show_thought,
)

EVIL = '</title></text></p><script>alert("1")</script><img src=//e.example onerror=x>\x00\u202e'
QUESTION = "How can I reduce costs by prompt caching?"
ANSWER = f"Use it [Source: graph:cache]\nor [Source: graph:The <b>moon</b>]. {EVIL}"
TITLES = [
    "Question and intent", "Methods and retrievers", "Nodes and their scores", "Edges followed", "Plan, playbooks, memory",
    "What the model was given", "Answer and its citations",
]  # fmt: skip


def graph_with(words=""):
    return lab.PropertyGraph.of(
        [
            Node(
                "cache",
                (f"technique{words}",),
                {"name": f"Prompt caching{words}", "description": f"Keep the beginning{words}"},
            ),
            Node("cost", ("goal",), {"name": f"Reduce costs{words}"}),
            Node(
                "stale",
                ("limitation",),
                {"name": f"Stale answers{words}", "description": "What changed is not seen."},
            ),
            Node("hint", ("workaround",), {"name": "Short lifetime"}),
            Node("alone", ("goal",), {"name": "Alone"}),
        ],
        [
            Edge("cache", f"enables{words}", "cost"),
            Edge("cache", "has_limitation", "stale"),
            Edge("stale", "has_workaround", "hint"),
        ],
    )


@pytest.fixture
def talk():
    persona = {"name": EVIL[:90].replace("\x00", ""), "greeting": "Ask."}
    return lab.expert(graph_with(EVIL), model=Scripted([ANSWER, "Second."]), persona=persona)


class Heard:
    """A widget that keeps what it is sent."""

    def __init__(self):
        self.messages = []

    def send(self, message):
        self.messages.append(message)


def hearing(view):
    """What every browser that shows a view is told from now on."""
    widget = Heard()
    view.live._widgets.append(widget)
    return widget


def tags(markup):
    """The names of the elements in some markup, with their attributes."""
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(markup)
    return found


def only_ours(markup):
    """Whether markup has no element and no address that came out of a text."""
    return all(
        tag != "script" and not any(name.startswith("on") for name in told) and told.get("src", "data:").startswith("data:")
        for tag, told in tags(markup)
    )  # fmt: skip


# --- what Python hears and tells ---


def test_a_question_from_the_browser_is_answered_in_pieces_after_the_steps(talk):
    view = lab.show(talk)
    heard = hearing(view)
    assert isinstance(view, TalkView) and view.live._receive(heard, {"ask": QUESTION}) is None
    first, steps, *pieces, last = heard.messages
    assert first == {"begun": QUESTION} and [title for title, _ in steps["steps"]] == TITLES[:-1]
    assert "".join(piece["piece"] for piece in pieces).startswith("Use it [Source: graph:cache]\nor")
    (turn,) = last["turns"]
    assert (last["first"], last["wrong"], last["ended"]) == (0, "", True)
    assert turn["answer"].count("data-card=") == 1
    assert "<s>graph:The &lt;b&gt;moon&lt;/b&gt;</s>" in turn["answer"]
    assert [title for title, _ in turn["steps"]] == TITLES and len(turn["cards"]) == 1
    assert talk.turns[0].question == QUESTION and view.live.data["turns"] == last["turns"]


def test_a_page_that_was_opened_again_is_told_what_it_lacks(talk):
    view = show_talk(talk)
    talk.ask(QUESTION)
    heard = hearing(view)
    view.live._receive(heard, {"seen": 0})
    view.live._receive(heard, {"seen": 1})
    assert [(message["first"], len(message["turns"])) for message in heard.messages] == [(0, 1)]


def test_what_is_refused_is_said_and_leaves_no_answer(talk):
    heard = hearing(view := show_talk(talk))
    view.live._receive(heard, {"ask": " "})
    assert "blank" in heard.messages[-1]["wrong"] and heard.messages[-1]["turns"] == [] and talk.turns == ()


@pytest.mark.parametrize(
    ("error", "why"), [(KeyboardInterrupt(), "interrupted"), (ValueError("odd"), "ValueError: odd")]
)
def test_a_model_that_breaks_or_is_interrupted_leaves_an_answer_that_was_broken_off(error, why):
    def broken(prompt):
        raise error

    talk = lab.expert(graph_with(), model=Scripted(broken))
    heard = hearing(view := show_talk(talk))
    view.live._receive(heard, {"ask": QUESTION})
    assert why in heard.messages[-1]["wrong"] and "broken off" in heard.messages[-1]["turns"][0]["answer"]
    assert "begun" in heard.messages[0] and talk.turns[0].trouble


# --- on paper ---


def test_a_conversation_stands_there_as_text_without_a_kernel(talk):
    view = show_talk(talk)
    assert "Ask." in view._static_view().html and "knows graph: 5 nodes, 3 edges" in view._static_view().html
    talk.ask(QUESTION)
    talk.ask("And then?")
    written = view._static_view().html
    assert all(
        words in written for words in (*TITLES, QUESTION, "Second.", "(not in the context)", "And then?")
    )
    assert [tag for tag, _ in tags(written)].count("img") == 2 and "data-picture=" in written
    assert view.table().sheets[0].rows[0][0] == QUESTION and repr(view._static_view()) == repr(view.table())


def test_nothing_of_a_graph_or_a_model_becomes_markup(talk):
    answered = talk.ask(QUESTION)
    view, alone = show_talk(talk), show_thought(answered)
    (turn,) = view.live.data["turns"]
    parts = [turn["answer"], *(page for _, page in turn["steps"]), *(card for _, card in turn["cards"])]
    for markup in (*parts, view._static_view().html, alone.live.picture._repr_html_()):
        assert only_ours(markup) and "\x00" not in markup and "\u202e" not in markup
    assert all("<img" not in markup for markup in parts) and "&lt;script&gt;" in turn["answer"]


def test_an_answer_without_a_search_has_its_question_and_itself(talk):
    events = talk.events(QUESTION)
    next(events)
    events.close()
    (turn,) = show_talk(talk).live.data["turns"]
    assert [title for title, _ in turn["steps"]] == ["Question", "Answer and its citations"]
    assert "broken off" in turn["answer"]


# --- parts ---


def test_a_card_names_type_description_edges_and_limitations_and_has_a_picture():
    known = lab.expert(graph_with(), model=Scripted([])).known
    node = CitableNode("graph", "cache", "Prompt caching", "technique")
    card = node_card(known, node, lambda picture: picture._repr_svg_())
    for words in (
        "technique, graph:cache",
        "Keep the beginning",
        "Stale answers: What changed is not seen; what helps: Short lifetime",
    ):
        assert words in card
    assert "Prompt caching — enables → Reduce costs" in card and card.count("<svg") == 1


def test_bars_have_a_part_for_each_retriever_and_the_table_has_all(talk):
    thought = talk.ask(QUESTION).thought
    drawn = score_bars(thought)
    given = [(node.embedding, node.text, node.by_graph, node.intent) for node in thought.nodes]
    drawn_parts = sum(len(kind) for kind in drawn.figure.axes[0].containers)
    assert drawn_parts == sum(value > 0 for values in given for value in values)
    assert drawn.table().sheets[0].total == len(thought.nodes)
    assert "meaning" in drawn.svg and "not in the prompt" not in drawn.svg
    nodes = [node.model_copy(update={"told": False}) for node in thought.nodes]
    untold = score_bars(thought.model_copy(update={"nodes": nodes}))
    assert untold.svg.count("not in the prompt") == len(nodes)
    empty = score_bars(thought.model_copy(update={"nodes": []}))
    assert "nothing was found" in empty.svg and "nothing was found" in empty.alt


def test_one_answer_shows_its_thought_alone(talk):
    view = lab.show(talk.ask(QUESTION))
    assert isinstance(view, ThoughtView) and "asks" not in view.live.data
    assert [title for title, _ in view.live.data["turns"][0]["steps"]] == TITLES
    assert view.table().sheets[0].total == 1 and QUESTION in repr(view)
    for show, wrong in ((show_thought, talk), (show_talk, 7)):
        with pytest.raises(BadInput):
            show(wrong)
