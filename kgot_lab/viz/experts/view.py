"""A talk with an expert in a notebook: ask, look at what is cited, step through how an answer came about; on
paper, the same as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgot_lab.errors import require
from kgot_lab.experts.chat.chat_events import ThoughtEvent, TokenEvent
from kgot_lab.experts.session import AnsweredTalk, ExpertTalk
from kgot_lab.text.counted import counted
from kgot_lab.types import Json
from kgot_lab.viz.claims import WrittenDown, written_down
from kgot_lab.viz.experts import (
    ThoughtPage,
    answer_markup,
    answer_pages,
    chip_name,
    heading,
    node_card,
    thought_pages,
    with_lines,
)
from kgot_lab.viz.live import Drawable, Live, LiveOutput, describe_error
from kgot_lab.viz.static.markup import Markup, element, joined
from kgot_lab.viz.static.table import Sheet, Table


class ThoughtView(LiveOutput):
    """What `show_thought` shows: one answer, stepped through."""

    def __init__(self, answered: AnsweredTalk) -> None:
        self.answered = answered
        tables = _table((answered,))
        picture = written_down(tables, element("h4", answered.question), _steps_written(answered))
        self.live = Live(
            picture, {"view": "talk", "name": "", "turns": [_turn_data(answered)]}, lambda message: {}
        )

    def table(self) -> Table:
        """The question, the answer and what it cites."""
        return _table((self.answered,))

    def __repr__(self) -> str:
        return f"<ThoughtView of {self.answered.question!r}>"


class TalkView(LiveOutput):
    """What `show_talk` shows: a conversation that goes on in the browser. `talk` holds it: what is asked
    there is asked here.
    """

    def __init__(self, talk: ExpertTalk) -> None:
        self.talk = talk
        self._told: list[dict[str, Any]] = []
        self.live = Live(self._still(), self._data(), self._heard)

    def table(self) -> Table:
        """What was asked, answered and cited so far."""
        return _table(self.talk.turns)

    def _data(self) -> dict[str, Any]:
        config = self.talk.expert
        graph = self.talk.known.graph
        knows = f"knows {', '.join(config.graphs)}: {counted(len(graph), 'node')}, {counted(len(graph.edges), 'edge')}"
        about = {
            "name": config.persona.name,
            "about": f"{config.description or config.name}; {knows}",
            "greeting": config.persona.greeting,
        }
        return {"view": "talk", "asks": True, **about, "turns": self._turns()}

    def _turns(self) -> list[dict[str, Any]]:
        self._told += [_turn_data(each) for each in self.talk.turns[len(self._told) :]]
        return self._told

    def _still(self) -> WrittenDown:
        about = self._data()
        turns = [
            joined([element("h4", each.question), answer_markup(each), _cited_written(each)])
            for each in self.talk.turns
        ]
        if turns:
            last = [element("h4", "How the last answer came about"), _steps_written(self.talk.turns[-1])]
        else:
            last = [
                element(
                    "p",
                    about["greeting"]
                    or "Nothing was asked yet: talk.ask(…) asks, and so does the box of the live view.",
                )
            ]
        return written_down(
            self.table(), element("h3", about["name"]), element("p", about["about"]), *turns, *last
        )

    def _refresh(self) -> None:
        self.live.picture, self.live.data = self._still(), self._data()

    def __repr__(self) -> str:
        return f"<TalkView of {self.talk!r}>"

    # --- what the browser asks ---

    def _heard(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"ask": str(question)}:
                self._asked(question)
            case {"seen": int(seen)} if (
                0 <= seen < len(self.talk.turns)
            ):  # a page that was opened again has those of its cell only
                return {"turns": self._turns()[seen:], "first": seen}
        return {}

    def _asked(self, question: str) -> None:
        """Answer, and tell every piece as it comes: the widget's channel takes messages while this runs."""
        before, wrong = len(self.talk.turns), ""
        self.live.send({"begun": question})
        try:
            for event in self.talk.events(question):
                if isinstance(event, ThoughtEvent):
                    self.live.send(
                        {
                            "steps": _pages_data(
                                thought_pages(self.talk.known, question, event.thought, _drawn)
                            )
                        }
                    )
                elif isinstance(event, TokenEvent):
                    self.live.send({"piece": event.content})
        except KeyboardInterrupt:  # whoever interrupts the kernel stops the model; what it had said is kept
            wrong = "The kernel was interrupted, and the model with it."
        except Exception as error:
            wrong = describe_error(error)
        turns = self._turns()
        self.live.data = {**self.live.data, "turns": turns}
        self.live.send({"turns": turns[before:], "first": before, "wrong": wrong, "ended": True})


def show_talk(talk: ExpertTalk) -> TalkView:
    """Talk with an expert in a notebook: a box to ask, answers with citations that open their nodes, and how
    each answer came about.

    While it answers the kernel is busy; interrupting the kernel stops the model. Where no live view can draw,
    the conversation stands there as text, with the steps of the last answer. Raises BadInput.
    """
    require(talk, ExpertTalk, 'a talk is what lab.expert("cookbook") gives')
    return TalkView(talk)


def show_thought(answered: AnsweredTalk) -> ThoughtView:
    """How one answer came about, step by step; where no live view can draw, all steps one after the other.
    Raises BadInput.
    """
    require(answered, AnsweredTalk, "an answer is what talk.ask(…) gives")
    return ThoughtView(answered)


def _drawn(picture: Drawable) -> Markup:
    return Markup(picture._repr_svg_())


def _imaged(picture: Any) -> Markup:
    return Markup(picture._repr_html_())


def _pages_data(pages: list[ThoughtPage]) -> list[list[str]]:
    return [[page.title, page.markup] for page in pages]


def _turn_data(answered: AnsweredTalk) -> dict[str, Any]:
    """An answer as the browser shows it: all markup is escaped here."""
    return {
        "question": answered.question,
        "answer": answer_markup(answered),
        "cards": [[chip_name(node), node_card(answered.known, node, _drawn)] for node in answered.cited],
        "steps": _pages_data(answer_pages(answered, _drawn)),
        "said": f"Answered: {counted(len(answered.cited), 'node')} cited, {len(answered.false)} false.",
    }


def _steps_written(answered: AnsweredTalk) -> Markup:
    """All steps one after the other, and the nodes that are cited."""
    steps = [
        element("li", heading(page.title), element("div", page.markup))
        for page in answer_pages(answered, _imaged)
    ]
    return joined(
        [element("ol", *steps), *(node_card(answered.known, node, _imaged) for node in answered.cited)]
    )


def _cited_written(answered: AnsweredTalk) -> Markup:
    cited = [f"{node.name} ({node.type or 'node'} of {node.graph})" for node in answered.cited]
    return element("p", element("b", "Cited: "), with_lines("; ".join(cited))) if cited else Markup()


def _table(turns: tuple[AnsweredTalk, ...]) -> Table:
    rows = tuple(
        (each.question, each.text, "; ".join(node.name for node in each.cited), "; ".join(each.false))
        for each in turns
    )
    return Table((Sheet(("asked", "answered", "cites", "cites falsely"), rows, len(rows), "A talk"),))
