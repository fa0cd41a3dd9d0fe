"""Talk with an expert in a notebook, and step through how an answer was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kgot_lab.errors import require
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.experts.chat.chat_events import Thought, ThoughtEvent, ThoughtNode, TokenEvent
from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.neighbourhood import lay_out_neighbourhood
from kgot_lab.experts.session import ExpertTalk, TalkAnswer
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.goals import limitations_of
from kgot_lab.kgos.methods.index import GraphIndex, index_of
from kgot_lab.kgos.methods.search.multi_graph import SEPARATOR
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json
from kgot_lab.viz.claims import WrittenDown, written_down
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.live import Drawable, Live, LiveOutput, describe_error
from kgot_lab.viz.methods import LANE_FILLS, lane_bar
from kgot_lab.viz.static.drawing import Drawing, draw_rect, draw_text, drawing, fitted
from kgot_lab.viz.static.fact_pictures import FAINT_INK, STRONG_INK
from kgot_lab.viz.static.markup import Markup, element, items, joined, shortened
from kgot_lab.viz.static.table import Sheet, Table, sheet

# Pictures of an answer: retrieved nodes with the score of each retriever, followed edges, and a node among
# its neighbours.

_EDGE, _TOP, _ROW, _NAMES, _BARS = 16.0, 34.0, 40.0, 320.0, 250.0
_SHOWN, _AROUND, _FOLLOWED = 10, 8, 16  # limits: nodes with bars, neighbours of a node, ends of edges
_RETRIEVER_NAMES = {"embedding": "meaning", "text": "words", "graph": "edges", "intent": "intent"}


def lane_bars(thought: Thought) -> Drawing:
    """Draw the top nodes of a thought as rows with a stacked score bar, a part for each retriever.

    Each row has rank, name and type. `table` of the drawing has all nodes.
    """
    shown = thought.nodes[:_SHOWN]
    most = max((node.score for node in shown), default=1.0) or 1.0
    width = 2 * _EDGE + _NAMES + _BARS + 56
    rows = [_row(number, node, _TOP + _ROW * number, most) for number, node in enumerate(shown)]
    said = [
        f"{number}. {shortened(node.name, 80)}, {format_decimal(node.score)} of which {_format_parts(node)}"
        for number, node in enumerate(shown, 1)
    ]
    alt = f"Nodes by score: {'; '.join(said) or 'none was found'}."
    height = _TOP + _ROW * max(len(shown), 1) + 6
    nothing = [] if shown else [draw_text("Nothing was found.", _EDGE, _TOP + 24, 14.0, STRONG_INK)]
    return drawing(alt, width, height, *_legend(), *rows, *nothing, sheets=[_sheet(thought)])


def _legend() -> Iterator[Markup]:
    for number, (lane, said) in enumerate(_RETRIEVER_NAMES.items()):
        left = _EDGE + 110.0 * number
        yield draw_rect(left, 10.0, 12, 12, LANE_FILLS[lane])
        yield draw_text(said, left + 18, 20.5, 12.0, "#222222")


def _row(number: int, node: ThoughtNode, y: float, most: float) -> Markup:
    (name,) = fitted(f"{number + 1}. {node.name}", _NAMES - 14, 14.0 * 1.08, 1)[0] or [""]
    about = " · ".join(filter(None, (shortened(node.type, 30), "" if node.told else "not told to the model")))
    bars = lane_bar(_lanes_of(node), _EDGE + _NAMES, y + 6, _BARS / most)
    return element(
        "g", element("title", f"{node.name} ({node.id}): {_format_parts(node)}{'; ' + node.path if node.path else ''}"),
        draw_text(name, _EDGE, y + 17, 14.0, STRONG_INK if node.told else FAINT_INK, bold=True),
        draw_text(about, _EDGE + 18, y + 32, 12.0, FAINT_INK),
        *bars, draw_text(format_decimal(node.score), _EDGE + _NAMES + _BARS + 8, y + 18, 13.0, "#111111"),
        draw_text(_format_parts(node), _EDGE + _NAMES, y + 32, 11.0, FAINT_INK),
    )  # fmt: skip


def _lanes_of(node: ThoughtNode) -> dict[str, float]:
    return {"embedding": node.embedding, "text": node.text, "graph": node.by_graph, "intent": node.intent}


def _format_parts(node: ThoughtNode) -> str:
    parts = {_RETRIEVER_NAMES[lane]: value for lane, value in _lanes_of(node).items()}
    return (
        ", ".join(f"{name} {format_decimal(value)}" for name, value in parts.items() if value > 0)
        or "nothing"
    )


def _sheet(thought: Thought) -> Sheet:
    rows = (
        (
            str(rank), node.name, node.type, format_decimal(node.score),
            *map(format_decimal, _lanes_of(node).values()), node.path, "yes" if node.told else "no",
        )
        for rank, node in enumerate(thought.nodes, 1)
    )  # fmt: skip
    return sheet(
        ("rank", "node", "type", "score", *_RETRIEVER_NAMES.values(), "came by", "told"), rows, "Nodes"
    )


def followed_picture(graph: PropertyGraph, thought: Thought) -> Picture:
    """Draw the edges in the model's context with their ends, or the retrieved nodes if there are none."""
    edges = [Edge(each["source"], each["type"], each["target"]) for each in thought.edges]
    ends = list(dict.fromkeys(end for edge in edges for end in (edge.source, edge.target) if end in graph))
    found = [id for node in thought.nodes for id in (f"{node.graph}:{node.id}", node.id) if id in graph]
    return _part(graph, (ends or found)[:_FOLLOWED], edges, (800, 460))


def node_picture(graph: PropertyGraph, id: str) -> tuple[Picture, int, int]:
    """Draw a node among its best connected neighbours.

    Returns the picture, the number of neighbours drawn and the number of all neighbours.
    """
    around = lay_out_neighbourhood(graph, id, limit=_AROUND)
    placed = {each.id: (each.x, each.y) for each in (around.node, *around.neighbours)}
    edges = [edge for edge in around.edges if id in (edge.source, edge.target)]
    count = len(around.neighbours)
    return _part(graph, [*placed], edges, (520, 190 + 18 * count), placed), count, around.neighbours_in_all


def _part(
    graph: PropertyGraph,
    ids: Sequence[str],
    edges: Iterable[Edge],
    size: tuple[int, int],
    places: Mapping[str, Place] | None = None,
) -> Picture:
    """Draw some nodes and some edges between them, with the type colours of the whole graph."""
    some = set(ids)
    drawn = {edge.identity: edge for edge in edges if {edge.source, edge.target} <= some}
    part = PropertyGraph.of(map(graph.node, ids), drawn.values())
    labels = dict.fromkeys(labels[0] for labels in graph.node_labels if labels)
    return svg(
        part, width=size[0], height=size[1], limit=len(ids) or 1, labels=tuple(labels), positions=places
    )


# An answer with its citations as chips, and a card for each cited node: description, edges and limitations.

# converts a picture to markup: SVG in a live view, an img element in an untrusted notebook
AsMarkup = Callable[[Drawable], Markup]

LINE = Markup("<br>")
_CHIP = "border:1px solid currentColor;border-radius:9px;padding:0 6px;white-space:nowrap"
_DESCRIPTION, _EDGES, _LINE = 800, 15, 200  # limits: characters of a description, edges, characters of a line


def answer_markup(answered: TalkAnswer) -> Markup:
    """Build the answer as HTML with a chip for each citation.

    A chip has the number of its node's card. False citations are struck through.
    """
    numbers = {node: number for number, node in enumerate(answered.cited)}
    said: list[Markup] = []
    for part in answered.parts:
        if part.node is not None:
            look = {"data_card": numbers[part.node], "class_": "kl-talk-chip", "style": _CHIP}
            said.append(element("span", chip_name(part.node), **look))
        elif part.is_citation:
            struck = element("s", shortened(part.text, _LINE))
            said.append(element("span", struck, " (not told)", class_="kl-talk-false"))
        else:
            said.append(with_lines(part.text))
    trouble = [element("em", f"({answered.trouble})")] if answered.trouble else []
    return element("p", *_spaced(said), *([" "] if said and trouble else []), *trouble)


def chip_name(node: CitableNode) -> str:
    """Return the label of a node's citation chip."""
    return shortened(node.name or node.id, 60)


def _spaced(parts: Iterable[Markup]) -> Iterable[Markup]:
    """Insert a space between adjacent chips."""
    before = ""
    for part in parts:
        if before.endswith("</span>") and part.startswith("<span"):
            yield Markup(" ")
        yield part
        before = part


def with_lines(text: str) -> Markup:
    """Keep the line breaks of a text."""
    return Markup(LINE.join(joined([line]) for line in text.split("\n")))


def node_card(known: KnownGraphs, node: CitableNode, drawn: AsMarkup) -> Markup:
    """Build the card of a node: name, type, description, limitations, edges and a picture.

    A node that is in none of the expert's graphs gets a card that says so.
    """
    graph, id = known.graph, local_id(known, node)
    if id not in graph:
        where = f"{node.name} ({node.id}) is of {node.graph}, which is no graph of this expert: another expert named it."
        return joined([element("h5", chip_name(node)), element("p", where)])
    index = index_of(graph)
    row = graph.row(id)
    about = str(graph.node_properties[row].get("description") or graph.node_properties[row].get("text") or "")
    edges = graph.neighbours(id, "both")
    picture, shown, around = node_picture(graph, id)
    more = f" {shown} of {around:,} neighbours are drawn." if shown < around else ""
    words = [
        element("h5", index.names[row]),
        element("p", f"{index.kinds[row] or 'no type'}, {node.graph}:{node.id}.{more}"),
        *([element("p", shortened(about, _DESCRIPTION))] if about else []),
        *_listed("What limits it", _limits(index, row)),
        *_listed("Its edges", [format_edge(index, each) for each in edges[:_EDGES]], len(edges)),
    ]
    return element("div", element("div", *words), element("div", drawn(picture)), class_="kl-talk-two")


def local_id(known: KnownGraphs, node: CitableNode) -> str:
    """Return the id of a node in the graph that is searched.

    A graph that combines several prefixes ids with the name of their graph.
    """
    is_own = known.graph is known.asked and known.names[0] == node.graph
    return node.id if is_own else f"{node.graph}{SEPARATOR}{node.id}"


def format_edge(index: GraphIndex, edge: Edge) -> str:
    """Format an edge with the names of its ends."""
    one, other = (
        shortened(index.names[index.graph.row(end)] if end in index.graph else end, 80)
        for end in (edge.source, edge.target)
    )
    return shortened(f"{one} — {edge.type} → {other}", _LINE)


def heading(words: str) -> Markup:
    """Build a small heading for a notebook or a live view."""
    return element("div", element("b", words))


def _limits(index: GraphIndex, row: int) -> list[str]:
    lines = []
    for each in limitations_of(index, [row]).get(row, ()):
        about = f": {each.description.rstrip('.')}" if each.description else ""
        helps = [index.names[index.graph.row(id)] for id in each.workarounds if id in index.graph]
        none = "; no workaround is known" if each.blocking else ""
        helped = f"; what helps: {', '.join(helps)}" if helps else none
        lines.append(f"{each.name}{about}{helped}")
    return lines


def _listed(head: str, lines: list[str], total: int = 0) -> list[Markup]:
    more = f" (the first {len(lines)} of {total:,})" if total > len(lines) else ""
    return [heading(head + more), items(lines)] if lines else []


# How an answer was made, as steps with a title and escaped markup.

_RETRIEVER_WORDS = {"embedding": "meaning: vectors near that of the question", "text": "words of the question in the texts of nodes",
          "graph": "edges from what the others found", "intent": "what fits the intent"}  # fmt: skip
_LETTERS = 400
_UNASKED = "Nothing was asked yet: talk.ask(…) asks, and so does the box of the live view."


class ThoughtPage(NamedTuple):
    """A step of how an answer was made."""

    title: str
    markup: Markup


def thought_pages(known: KnownGraphs, question: str, thought: Thought, drawn: AsMarkup) -> list[ThoughtPage]:
    """Return the steps up to the prompt: question, methods, nodes, edges, plan, and what was cut."""
    return [
        ThoughtPage("Question and intent", _intent(question, thought)),
        ThoughtPage("Methods and lanes", _methods(thought)),
        ThoughtPage("Nodes and their scores", drawn(lane_bars(thought))),
        ThoughtPage("Edges followed", _followed(known, thought, drawn)),
        ThoughtPage("Plan, playbooks, memory", _plan(thought)),
        ThoughtPage("What was told and what was cut", _told(thought)),
    ]


def answer_pages(answered: TalkAnswer, drawn: AsMarkup) -> list[ThoughtPage]:
    """List all steps of an answer.

    If nothing could be searched, only the question and the answer are listed.
    """
    question = ThoughtPage("Question", element("p", with_lines(answered.question)))
    before = (
        thought_pages(answered.known, answered.question, answered.thought, drawn)
        if answered.thought
        else [question]
    )
    cited = f"{format_count(len(answered.cited), 'node')} cited"
    if answered.false:
        cited += f", {format_count(len(answered.false), 'false citation')}: struck, since the model was not told of such a node"
    answer = [answer_markup(answered), element("p", f"{cited}.")]
    if answered.named:
        names = ", ".join(node.name for node in answered.named)
        answer.append(element("p", f"It names, without citing them: {names}."))
    return [*before, ThoughtPage("Answer and its citations", joined(answer))]


def _intent(question: str, thought: Thought) -> Markup:
    intent = "none stood out"
    if thought.intent:
        intent = f"{thought.intent.replace('_', ' ')} ({thought.intent_score:.3g})"
    facts = {
        "Intent": intent,
        "Purpose": thought.purpose.replace("_", " "),
        "Graphs asked": ", ".join(thought.graphs),
    }
    unsaid = f"Nothing found says: {', '.join(thought.unsaid)}"
    return joined(
        [
            element("p", element("b", with_lines(question))),
            element("p", unsaid) if thought.unsaid else "",
            items(joined([element("b", f"{name}: "), value]) for name, value in facts.items()),
        ]
    )


def _methods(thought: Thought) -> Markup:
    steps = ((each.method, each.reason, each.found) for each in thought.steps)
    lanes = ((said, f"{thought.weights[name]:.0%}") for name, said in _retrievers(thought))
    tables = (
        sheet(("lane", "counts"), lanes, "Lanes"), sheet(("method", "why", "what came of it"), steps, "Methods"),
    )  # fmt: skip
    return joined(each.html for each in tables)


def _followed(known: KnownGraphs, thought: Thought, drawn: AsMarkup) -> Markup:
    index = index_of(known.graph)
    lines = [format_edge(index, Edge(each["source"], each["type"], each["target"])) for each in thought.edges]
    return joined([drawn(followed_picture(known.graph, thought)), _list(lines, "No edge was followed.")])


def _plan(thought: Thought) -> Markup:
    said = f"{format_count(thought.memories, 'line')} of earlier conversations" if thought.memories else ""
    parts = [
        ("Plan", thought.plan, "No plan was made."), ("Playbooks", thought.playbooks, "No playbook fitted."),
        ("Memory", [said] * bool(said), "Nothing of earlier conversations helped."),
    ]  # fmt: skip
    asked = list(map(_delegated, thought.delegated))
    return _lists([*parts, ("Other experts", asked, "")] if asked else parts)


def _delegated(each: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name.replace('_', ' ')}: {value}" for name, value in each.items() if value not in (None, "")
    )


def _told(thought: Thought) -> Markup:
    told = [node.name for node in thought.nodes if node.told]
    return _lists(
        [
            ("Nodes told", told, "No node was told."),
            ("Limitations told, none is ever cut", thought.limitations, "None is known."),
            ("Cut for want of room", thought.cut, "Nothing: the model was told all of it."),
        ]
    )


def _list(lines: Iterable[str], none: str) -> Markup:
    said = [shortened(line, _LETTERS) for line in lines]
    return items(said) if said else element("p", none)


# A talk with an expert in a notebook: questions, cited nodes, and the steps of each answer. In print it is
# text.


class ThoughtView(LiveOutput):
    """The result of `show_thought`: one answer, step by step."""

    def __init__(self, answered: TalkAnswer) -> None:
        self.answered = answered
        tables = _table((answered,))
        picture = written_down(tables, element("h4", answered.question), _steps_written(answered))
        data = {"view": "talk", "name": "", "turns": [_turn_data(answered)]}
        self.live = Live(picture, data, lambda message: {})

    def table(self) -> Table:
        """Return the question, the answer and the cited nodes as a table."""
        return _table((self.answered,))

    def __repr__(self) -> str:
        return f"<ThoughtView of {self.answered.question!r}>"


class TalkView(LiveOutput):
    """The result of `show_talk`: a conversation that continues in the browser.

    `talk` includes what is asked in the browser.
    """

    def __init__(self, talk: ExpertTalk) -> None:
        self.talk = talk
        self._told: list[dict[str, Any]] = []
        self.live = Live(self._still(), self._data(), self._heard)

    def table(self) -> Table:
        """Return the questions, answers and citations so far as a table."""
        return _table(self.talk.turns)

    def _data(self) -> dict[str, Any]:
        config = self.talk.expert
        graph = self.talk.known.graph
        knows = f"knows {', '.join(config.graphs)}: {format_count(len(graph), 'node')}, {format_count(len(graph.edges), 'edge')}"
        about = {"name": config.persona.name, "about": f"{config.description or config.name}; {knows}"}
        about |= {"greeting": config.persona.greeting}
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
            last = [element("p", about["greeting"] or _UNASKED)]
        head = element("h3", about["name"]), element("p", about["about"])
        return written_down(self.table(), *head, *turns, *last)

    def _refresh(self) -> None:
        self.live.picture, self.live.data = self._still(), self._data()

    def __repr__(self) -> str:
        return f"<TalkView of {self.talk!r}>"

    # --- messages from the browser ---

    def _heard(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"ask": str(question)}:
                self._asked(question)
            # a reopened page only has the turns that its cell stored
            case {"seen": int(seen)} if 0 <= seen < len(self.talk.turns):
                return {"turns": self._turns()[seen:], "first": seen}
        return {}

    def _asked(self, question: str) -> None:
        """Run a question and send each event to the browser as it arrives.

        The widget's channel accepts messages while this runs.
        """
        before, wrong = len(self.talk.turns), ""
        self.live.send({"begun": question})
        try:
            for event in self.talk.events(question):
                if isinstance(event, ThoughtEvent):
                    pages = thought_pages(self.talk.known, question, event.thought, _drawn)
                    self.live.send({"steps": _pages_data(pages)})
                elif isinstance(event, TokenEvent):
                    self.live.send({"piece": event.content})
        except KeyboardInterrupt:  # interrupting the kernel stops the model; its partial reply is kept
            wrong = "The kernel was interrupted, and the model with it."
        except Exception as error:
            wrong = describe_error(error)
        turns = self._turns()
        self.live.data = {**self.live.data, "turns": turns}
        self.live.send({"turns": turns[before:], "first": before, "wrong": wrong, "ended": True})


def show_talk(talk: ExpertTalk) -> TalkView:
    """Talk with an expert in a notebook: ask, open cited nodes, and step through how each answer was made.

    The kernel is busy during an answer; interrupting it stops the model. Where no live view can be drawn, the
    conversation is shown as text, with the steps of the last answer. Raises BadInput if `talk` is not an
    ExpertTalk.
    """
    require(talk, ExpertTalk, 'a talk is what lab.expert("cookbook") gives')
    return TalkView(talk)


def show_thought(answered: TalkAnswer) -> ThoughtView:
    """Show step by step how one answer was made.

    Where no live view can be drawn, all steps are listed. Raises BadInput if `answered` is not an
    TalkAnswer.
    """
    require(answered, TalkAnswer, "an answer is what talk.ask(…) gives")
    return ThoughtView(answered)


def _drawn(picture: Drawable) -> Markup:
    return Markup(picture._repr_svg_())


def _imaged(picture: Any) -> Markup:
    return Markup(picture._repr_html_())


def _pages_data(pages: list[ThoughtPage]) -> list[list[str]]:
    return [[page.title, page.markup] for page in pages]


def _turn_data(answered: TalkAnswer) -> dict[str, Any]:
    """Return an answer as data for the browser, with all markup escaped."""
    return {
        "question": answered.question,
        "answer": answer_markup(answered),
        "cards": [[chip_name(node), node_card(answered.known, node, _drawn)] for node in answered.cited],
        "steps": _pages_data(answer_pages(answered, _drawn)),
        "said": f"Answered: {format_count(len(answered.cited), 'node')} cited, {len(answered.false)} false.",
    }


def _steps_written(answered: TalkAnswer) -> Markup:
    """List all steps of an answer, followed by the cards of the cited nodes."""
    pages = answer_pages(answered, _imaged)
    steps = (element("li", heading(page.title), element("div", page.markup)) for page in pages)
    cards = (node_card(answered.known, node, _imaged) for node in answered.cited)
    return joined([element("ol", *steps), *cards])


def _cited_written(answered: TalkAnswer) -> Markup:
    cited = [f"{node.name} ({node.type or 'node'} of {node.graph})" for node in answered.cited]
    return element("p", element("b", "Cited: "), with_lines("; ".join(cited))) if cited else Markup()


def _table(turns: tuple[TalkAnswer, ...]) -> Table:
    rows = (
        (each.question, each.text, "; ".join(node.name for node in each.cited), "; ".join(each.false))
        for each in turns
    )
    return Table((sheet(("asked", "answered", "cites", "cites falsely"), rows, "A talk"),))


__all__ = ["TalkView", "ThoughtView", "show_talk", "show_thought"]


def _retrievers(thought: Thought) -> Iterator[tuple[str, str]]:
    """Yield each weighted retriever with a description of what it searches for."""
    yield from ((name, _RETRIEVER_WORDS[name]) for name in thought.weights if name in _RETRIEVER_WORDS)


def _lists(parts: Iterable[tuple[str, Iterable[str], str]]) -> Markup:
    return joined(piece for head, lines, none in parts for piece in (heading(head), _list(lines, none)))
