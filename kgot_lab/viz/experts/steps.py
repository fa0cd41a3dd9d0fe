"""How an answer came about, as steps to walk through: each a title and what is to be seen there, written here
and escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kgot_lab.experts.chat.chat_events import Thought
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.session import AnsweredTalk
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge
from kgot_lab.viz.experts import (
    AsMarkup,
    answer_markup,
    followed_picture,
    format_edge,
    heading,
    lane_bars,
    with_lines,
)
from kgot_lab.viz.static.markup import Markup, element, joined, shortened
from kgot_lab.viz.static.table import Sheet

_LANES = {"embedding": "meaning: vectors near that of the question", "text": "words of the question in the texts of nodes",
          "graph": "edges from what the others found", "intent": "what fits the intent"}  # fmt: skip
_LETTERS = 400


class ThoughtPage(NamedTuple):
    """A step of how an answer came about."""

    title: str
    markup: Markup


def thought_pages(known: KnownGraphs, question: str, thought: Thought, drawn: AsMarkup) -> list[ThoughtPage]:
    """The steps up to what the model was told: question, methods, nodes, edges, plan, what was told and cut."""
    return [
        ThoughtPage("Question and intent", _intent(question, thought)),
        ThoughtPage("Methods and lanes", _methods(thought)),
        ThoughtPage("Nodes and their scores", drawn(lane_bars(thought))),
        ThoughtPage("Edges followed", _followed(known, thought, drawn)),
        ThoughtPage("Plan, playbooks, memory", _plan(thought)),
        ThoughtPage("What was told and what was cut", _told(thought)),
    ]


def answer_pages(answered: AnsweredTalk, drawn: AsMarkup) -> list[ThoughtPage]:
    """All steps of an answer; where nothing could be searched, the question and the answer alone."""
    before = (
        thought_pages(answered.known, answered.question, answered.thought, drawn)
        if answered.thought
        else [ThoughtPage("Question", element("p", with_lines(answered.question)))]
    )
    cited = f"{counted(len(answered.cited), 'node')} cited"
    false = (
        f", {counted(len(answered.false), 'false citation')}: struck, since the model was not told of such a node"
        if answered.false
        else ""
    )
    named = (
        [element("p", f"It names, without citing them: {', '.join(node.name for node in answered.named)}.")]
        if answered.named
        else []
    )
    answer = [answer_markup(answered), element("p", f"{cited}{false}."), *named]
    return [*before, ThoughtPage("Answer and its citations", joined(answer))]


def _intent(question: str, thought: Thought) -> Markup:
    intent = (
        f"{thought.intent.replace('_', ' ')} ({thought.intent_score:.3g})"
        if thought.intent
        else "none stood out"
    )
    return joined(
        [
            element("p", element("b", with_lines(question))),
            element("p", f"Nothing found says: {', '.join(thought.unsaid)}") if thought.unsaid else "",
            _pairs(
                {
                    "Intent": intent,
                    "Purpose": thought.purpose.replace("_", " "),
                    "Graphs asked": ", ".join(thought.graphs),
                }
            ),
        ]
    )


def _methods(thought: Thought) -> Markup:
    steps = tuple((each.method, each.reason, each.found) for each in thought.steps)
    lanes = tuple((_LANES[name], f"{value:.0%}") for name, value in thought.weights.items() if name in _LANES)
    return joined(
        [
            Sheet(("lane", "counts"), lanes, len(lanes), "Lanes").html,
            Sheet(("method", "why", "what came of it"), steps, len(steps), "Methods").html,
        ]
    )


def _followed(known: KnownGraphs, thought: Thought, drawn: AsMarkup) -> Markup:
    index = index_of(known.graph)
    lines = [format_edge(index, Edge(each["source"], each["type"], each["target"])) for each in thought.edges]
    return joined([drawn(followed_picture(known.graph, thought)), _list(lines, "No edge was followed.")])


def _plan(thought: Thought) -> Markup:
    said = f"{counted(thought.memories, 'line')} of earlier conversations" if thought.memories else ""
    asked = [_delegated(each) for each in thought.delegated]
    parts = [("Plan", thought.plan, "No plan was made."), ("Playbooks", thought.playbooks, "No playbook fitted."),
             ("Memory", [said] * bool(said), "Nothing of earlier conversations helped."), ("Other experts", asked, "")]  # fmt: skip
    return joined(
        piece for head, lines, none in parts if lines or none for piece in (heading(head), _list(lines, none))
    )


def _delegated(each: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name.replace('_', ' ')}: {value}" for name, value in each.items() if value not in (None, "")
    )


def _told(thought: Thought) -> Markup:
    told = [node.name for node in thought.nodes if node.told]
    parts = [("Nodes told", told, "No node was told."), ("Limitations told, none is ever cut", thought.limitations, "None is known."),
             ("Cut for want of room", thought.cut, "Nothing: the model was told all of it.")]  # fmt: skip
    return joined(piece for head, lines, none in parts for piece in (heading(head), _list(lines, none)))


def _pairs(rows: Mapping[str, str]) -> Markup:
    return element("ul", *(element("li", element("b", f"{name}: "), value) for name, value in rows.items()))


def _list(lines: Iterable[str], none: str) -> Markup:
    items = [element("li", shortened(line, _LETTERS)) for line in lines]
    return element("ul", *items) if items else element("p", none)
