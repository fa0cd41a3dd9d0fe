"""Talk with an expert in a notebook, and step through how an answer was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.experts.chat.chat_events import Thought, ThoughtEvent, TokenEvent
from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.neighbourhood import lay_out_neighbourhood
from kgot_lab.experts.session import ExpertTalk, TalkAnswer
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import label_encoding
from kgot_lab.kgos.methods.goals import limitations_by_row
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.kgos.methods.search.multi_graph import SEPARATOR
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json
from kgot_lab.viz.graph.marks import Point
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.live import Live, LiveOutput, StaticOutput, describe_error, static_output
from kgot_lab.viz.methods import score_plot
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.static.drawing import StaticPicture
from kgot_lab.viz.static.markup import Markup, bullet_list, concat, element, shorten
from kgot_lab.viz.static.table import Table, sheet

# Pictures of an answer: retrieved nodes with the score of each retriever, followed edges, and a node among
# its neighbours.

_MAX_NEIGHBOURS = 8  # of a node
_MAX_EDGE_ENDS = 16
# the name of a retriever and the field of a node with its score
_SCORE_FIELDS = {"meaning": "embedding", "words": "text", "edges": "by_graph", "intent": "intent"}


def score_bars(thought: Thought) -> Plot:
    """Plot the scores of the top nodes of a thought. `table` of the plot has all nodes."""
    return score_plot(thought.nodes, _SCORE_FIELDS, ["Nodes by score"], limit=10)


def context_picture(graph: PropertyGraph, thought: Thought) -> Picture:
    """Draw the edges in the model's context with their ends, or the retrieved nodes if there are none."""
    edges = _context_edges(thought)
    ends = list(dict.fromkeys(end for edge in edges for end in (edge.source, edge.target) if end in graph))
    node_ids = [id for node in thought.nodes for id in (f"{node.graph}:{node.id}", node.id) if id in graph]
    return _draw_subgraph(graph, (ends or node_ids)[:_MAX_EDGE_ENDS], edges, (800, 460))


def _context_edges(thought: Thought) -> list[Edge]:
    return [Edge(data["source"], data["type"], data["target"]) for data in thought.edges]


def node_picture(graph: PropertyGraph, id: str) -> tuple[Picture, int, int]:
    """Draw a node among its best connected neighbours.

    Returns the picture, the number of neighbours drawn and the number of all neighbours.
    """
    neighbourhood = lay_out_neighbourhood(graph, id, limit=_MAX_NEIGHBOURS)
    positions = {node.id: (node.x, node.y) for node in (neighbourhood.node, *neighbourhood.neighbours)}
    edges = [edge for edge in neighbourhood.edges if id in (edge.source, edge.target)]
    count = len(neighbourhood.neighbours)
    picture = _draw_subgraph(graph, [*positions], edges, (520, 190 + 18 * count), positions)
    return picture, count, neighbourhood.neighbours_in_all


def _draw_subgraph(
    graph: PropertyGraph,
    ids: Sequence[str],
    edges: Iterable[Edge],
    size: tuple[int, int],
    positions: Mapping[str, Point] | None = None,
) -> Picture:
    """Draw some nodes and some edges between them, with the type colours of the whole graph."""
    selected = set(ids)
    edges_drawn = {edge.identity: edge for edge in edges if {edge.source, edge.target} <= selected}
    part = PropertyGraph.of(map(graph.node, ids), edges_drawn.values())
    encoding = label_encoding(labels[0] for labels in graph.node_labels if labels)
    options: Any = {"limit": len(ids) or 1, "encoding": encoding, "positions": positions}
    return svg(part, width=size[0], height=size[1], **options)


# An answer with its citations as chips, and a card for each cited node: description, edges and limitations.

# converts a picture to markup: SVG in a live view, an img element in an untrusted notebook
AsMarkup = Callable[[StaticPicture | Plot], Markup]

LINE = Markup("<br>")
_CHIP = "border:1px solid currentColor;border-radius:9px;padding:0 6px;white-space:nowrap"
_MAX_DESCRIPTION = 800  # characters
_MAX_EDGES = 15
_MAX_EDGE_LENGTH = 200  # characters


def answer_markup(answered: TalkAnswer) -> Markup:
    """Build the answer as HTML with a chip for each citation.

    A chip has the number of its node's card. False citations are struck through.
    """
    numbers = {node: number for number, node in enumerate(answered.cited)}
    pieces: list[Markup] = []
    for part in answered.parts:
        if part.node is not None:
            attributes = {"data_card": numbers[part.node], "class_": "kl-talk-chip", "style": _CHIP}
            pieces.append(element("span", chip_name(part.node), **attributes))
        elif part.is_citation:
            citation = element("s", shorten(part.text, _MAX_EDGE_LENGTH))
            pieces.append(element("span", citation, " (not in the context)", class_="kl-talk-false"))
        else:
            pieces.append(keep_line_breaks(part.text))
    error_note = [element("em", f"({answered.trouble})")] if answered.trouble else []
    return element("p", *_separate_chips(pieces), *([" "] if pieces and error_note else []), *error_note)


def chip_name(node: CitableNode) -> str:
    """Return the label of a node's citation chip."""
    return shorten(node.name or node.id, 60)


def _separate_chips(parts: Iterable[Markup]) -> Iterable[Markup]:
    """Insert a space between adjacent chips."""
    before = ""
    for part in parts:
        if before.endswith("</span>") and part.startswith("<span"):
            yield Markup(" ")
        yield part
        before = part


def keep_line_breaks(text: str) -> Markup:
    """Keep the line breaks of a text."""
    return Markup(LINE.join(concat([line]) for line in text.split("\n")))


def node_card(known: KnownGraphs, node: CitableNode, to_markup: AsMarkup) -> Markup:
    """Build the card of a node: name, type, description, limitations, edges and a picture.

    A node that is in none of the expert's graphs gets a card that says so.
    """
    graph, id = known.graph, local_id(known, node)
    if id not in graph:
        where = f"{node.name} ({node.id}) is of {node.graph}, which is no graph of this expert: another expert named it."
        return concat([element("h5", chip_name(node)), element("p", where)])
    index = graph_index(graph)
    row = graph.row(id)
    properties = graph.node_properties[row]
    description = str(properties.get("description") or properties.get("text") or "")
    edges = graph.neighbours(id, "both")
    picture, shown, neighbour_count = node_picture(graph, id)
    more = f" {shown} of {neighbour_count:,} neighbours are drawn." if shown < neighbour_count else ""
    text_parts = [
        element("h5", index.names[row]),
        element("p", f"{index.label_texts[row] or 'no type'}, {node.graph}:{node.id}.{more}"),
        *([element("p", shorten(description, _MAX_DESCRIPTION))] if description else []),
        *_list_section("What limits it", _format_limitations(index, row)),
        *_list_section("Its edges", [format_edge(index, edge) for edge in edges[:_MAX_EDGES]], len(edges)),
    ]
    columns = element("div", *text_parts), element("div", to_markup(picture))
    return element("div", *columns, class_="kl-talk-two")


def local_id(known: KnownGraphs, node: CitableNode) -> str:
    """Return the id of a node in the graph that is searched.

    A graph that combines several prefixes ids with the name of their graph.
    """
    is_own = known.graph is known.asked and known.names[0] == node.graph
    return node.id if is_own else f"{node.graph}{SEPARATOR}{node.id}"


def format_edge(index: GraphIndex, edge: Edge) -> str:
    """Format an edge with the names of its ends."""
    source, target = (
        shorten(index.names[index.graph.row(end)] if end in index.graph else end, 80)
        for end in (edge.source, edge.target)
    )
    return shorten(f"{source} — {edge.type} → {target}", _MAX_EDGE_LENGTH)


def heading(words: str) -> Markup:
    """Build a small heading for a notebook or a live view."""
    return element("div", element("b", words))


def _format_limitations(index: GraphIndex, row: int) -> list[str]:
    lines = []
    for limitation in limitations_by_row(index, [row]).get(row, ()):
        description = f": {limitation.description.rstrip('.')}" if limitation.description else ""
        workarounds = [index.names[index.graph.row(id)] for id in limitation.workarounds if id in index.graph]
        missing_note = "; no workaround is known" if limitation.blocking else ""
        workaround_note = f"; what helps: {', '.join(workarounds)}" if workarounds else missing_note
        lines.append(f"{limitation.name}{description}{workaround_note}")
    return lines


def _list_section(head: str, lines: list[str], total: int = 0) -> list[Markup]:
    more = f" (the first {len(lines)} of {total:,})" if total > len(lines) else ""
    return [heading(head + more), bullet_list(lines)] if lines else []


# How an answer was made, as steps with a title and escaped markup.

_RETRIEVER_WORDS = {"embedding": "meaning: vectors near that of the question", "text": "words of the question in the texts of nodes",
          "graph": "edges from what the others found", "intent": "what fits the intent"}  # fmt: skip
_MAX_LINE_LENGTH = 400
_NO_TURNS = "Nothing was asked yet: talk.ask(…) asks, and so does the box of the live view."


class ThoughtPage(NamedTuple):
    """A step of how an answer was made."""

    title: str
    markup: Markup


def thought_pages(
    known: KnownGraphs, question: str, thought: Thought, to_markup: AsMarkup
) -> list[ThoughtPage]:
    """Return the steps up to the prompt: question, methods, nodes, edges, plan, and what was cut."""
    return [
        ThoughtPage("Question and intent", _intent_markup(question, thought)),
        ThoughtPage("Methods and retrievers", _methods_markup(thought)),
        ThoughtPage("Nodes and their scores", to_markup(score_bars(thought))),
        ThoughtPage("Edges followed", _edges_markup(known, thought, to_markup)),
        ThoughtPage("Plan, playbooks, memory", _plan_markup(thought)),
        ThoughtPage("What the model was given", _context_markup(thought)),
    ]


def answer_pages(answered: TalkAnswer, to_markup: AsMarkup) -> list[ThoughtPage]:
    """List all steps of an answer.

    If nothing could be searched, only the question and the answer are listed.
    """
    before = [ThoughtPage("Question", element("p", keep_line_breaks(answered.question)))]
    if answered.thought:
        before = thought_pages(answered.known, answered.question, answered.thought, to_markup)
    cited = f"{format_count(len(answered.cited), 'node')} cited"
    if answered.false:
        cited += f", {format_count(len(answered.false), 'false citation')}: struck out: not in the context"
    answer = [answer_markup(answered), element("p", f"{cited}.")]
    if answered.named:
        names = ", ".join(node.name for node in answered.named)
        answer.append(element("p", f"It names, without citing them: {names}."))
    return [*before, ThoughtPage("Answer and its citations", concat(answer))]


def _intent_markup(question: str, thought: Thought) -> Markup:
    intent = "none stood out"
    if thought.intent:
        intent = f"{thought.intent.replace('_', ' ')} ({thought.intent_score:.3g})"
    purpose = thought.purpose.replace("_", " ")
    facts = {"Intent": intent, "Purpose": purpose, "Graphs asked": ", ".join(thought.graphs)}
    asked = element("p", element("b", keep_line_breaks(question)))
    unknown = element("p", f"Found nowhere: {', '.join(thought.unsaid)}") if thought.unsaid else ""
    lines = (concat([element("b", f"{name}: "), value]) for name, value in facts.items())
    return concat([asked, unknown, bullet_list(lines)])


def _methods_markup(thought: Thought) -> Markup:
    steps = ((step.method, step.reason, step.found) for step in thought.steps)
    weighted = ((name, weight) for name, weight in thought.weights.items() if name in _RETRIEVER_WORDS)
    weights = ((_RETRIEVER_WORDS[name], f"{weight:.0%}") for name, weight in weighted)
    tables = (
        sheet(("retriever", "counts"), weights, "Retrievers"), sheet(("method", "why", "what came of it"), steps, "Methods"),
    )  # fmt: skip
    return concat(each.html for each in tables)


def _edges_markup(known: KnownGraphs, thought: Thought, to_markup: AsMarkup) -> Markup:
    index = graph_index(known.graph)
    lines = [format_edge(index, edge) for edge in _context_edges(thought)]
    picture = to_markup(context_picture(known.graph, thought))
    return concat([picture, _list_or_note(lines, "No edge was followed.")])


def _plan_markup(thought: Thought) -> Markup:
    memories = [f"{format_count(n, 'line')} of earlier conversations"] if (n := thought.memories) else []
    parts = [
        ("Plan", thought.plan, "No plan was made."), ("Playbooks", thought.playbooks, "No playbook fitted."),
        ("Memory", memories, "Nothing of earlier conversations helped."),
    ]  # fmt: skip
    delegations = list(map(_format_delegation, thought.delegated))
    return _list_sections([*parts, ("Other experts", delegations, "")] if delegations else parts)


def _format_delegation(delegation: Mapping[str, Any]) -> str:
    parts = (
        f"{name.replace('_', ' ')}: {value}" for name, value in delegation.items() if value not in (None, "")
    )
    return "; ".join(parts)


def _context_markup(thought: Thought) -> Markup:
    node_names = [node.name for node in thought.nodes if node.told]
    parts = (
        ("Nodes given", node_names, "No node was given."),
        ("Limitations given, none is ever left out", thought.limitations, "None is known."),
        ("Left out for lack of room", thought.cut, "Nothing: the model was given all of it."),
    )
    return _list_sections(parts)


def _list_or_note(lines: Iterable[str], note: str) -> Markup:
    short_lines = [shorten(line, _MAX_LINE_LENGTH) for line in lines]
    return bullet_list(short_lines) if short_lines else element("p", note)


# A talk with an expert in a notebook: questions, cited nodes, and the steps of each answer. In print it is
# text.


class ThoughtView(LiveOutput):
    """The result of `show_thought`: one answer, step by step."""

    def __init__(self, answered: TalkAnswer) -> None:
        self.answered = answered
        tables = _turns_table((answered,))
        picture = static_output(tables, element("h4", answered.question), _steps_markup(answered))
        data = {"view": "talk", "name": "", "turns": [_turn_data(answered)]}
        self.live = Live(picture, data, lambda message: {})

    def table(self) -> Table:
        """Return the question, the answer and the cited nodes as a table."""
        return _turns_table((self.answered,))

    def __repr__(self) -> str:
        return f"<ThoughtView of {self.answered.question!r}>"


class TalkView(LiveOutput):
    """The result of `show_talk`: a conversation that continues in the browser.

    `talk` includes what is asked in the browser.
    """

    def __init__(self, talk: ExpertTalk) -> None:
        self.talk = talk
        self._turn_cache: list[dict[str, Any]] = []
        self.live = Live(self._static_view(), self._data(), self._handle_message)

    def table(self) -> Table:
        """Return the questions, answers and citations so far as a table."""
        return _turns_table(self.talk.turns)

    def _data(self) -> dict[str, Any]:
        config = self.talk.expert
        graph = self.talk.known.graph
        knows = f"knows {', '.join(config.graphs)}: {format_count(len(graph), 'node')}, {format_count(len(graph.edges), 'edge')}"
        description = {"name": config.persona.name, "about": f"{config.description or config.name}; {knows}"}
        description |= {"greeting": config.persona.greeting}
        return {"view": "talk", "asks": True, **description, "turns": self._turns_data()}

    def _turns_data(self) -> list[dict[str, Any]]:
        self._turn_cache += [_turn_data(turn) for turn in self.talk.turns[len(self._turn_cache) :]]
        return self._turn_cache

    def _static_view(self) -> StaticOutput:
        data = self._data()
        turns = [
            concat([element("h4", turn.question), answer_markup(turn), _citations_markup(turn)])
            for turn in self.talk.turns
        ]
        if turns:
            last = [element("h4", "How the last answer came about"), _steps_markup(self.talk.turns[-1])]
        else:
            last = [element("p", data["greeting"] or _NO_TURNS)]
        head = element("h3", data["name"]), element("p", data["about"])
        return static_output(self.table(), *head, *turns, *last)

    def _refresh(self) -> None:
        self.live.picture, self.live.data = self._static_view(), self._data()

    def __repr__(self) -> str:
        return f"<TalkView of {self.talk!r}>"

    # --- messages from the browser ---

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"ask": str(question)}:
                self._ask(question)
            # a reopened page only has the turns that its cell stored
            case {"seen": int(seen)} if 0 <= seen < len(self.talk.turns):
                return {"turns": self._turns_data()[seen:], "first": seen}
        return {}

    def _ask(self, question: str) -> None:
        """Run a question and send each event to the browser as it arrives.

        The widget's channel accepts messages while this runs.
        """
        before, wrong = len(self.talk.turns), ""
        self.live.send({"begun": question})
        try:
            for event in self.talk.events(question):
                if isinstance(event, ThoughtEvent):
                    pages = thought_pages(self.talk.known, question, event.thought, _svg_markup)
                    self.live.send({"steps": pages})
                elif isinstance(event, TokenEvent):
                    self.live.send({"piece": event.content})
        except KeyboardInterrupt:  # interrupting the kernel stops the model; its partial reply is kept
            wrong = "The kernel was interrupted, and the model with it."
        except Exception as error:
            wrong = describe_error(error)
        turns = self._turns_data()
        self.live.data = {**self.live.data, "turns": turns}
        self.live.send({"turns": turns[before:], "first": before, "wrong": wrong, "ended": True})


@check_arguments
def show_talk(talk: ExpertTalk) -> TalkView:
    """Talk with an expert in a notebook: ask, open cited nodes, and step through how each answer was made.

    The kernel is busy during an answer; interrupting it stops the model. Where no live view can be drawn, the
    conversation is shown as text, with the steps of the last answer. Raises BadInput if `talk` is not an
    ExpertTalk.
    """
    return TalkView(talk)


@check_arguments
def show_thought(answered: TalkAnswer) -> ThoughtView:
    """Show step by step how one answer was made.

    Where no live view can be drawn, all steps are listed. Raises BadInput if `answered` is not an
    TalkAnswer.
    """
    return ThoughtView(answered)


def _svg_markup(picture: StaticPicture | Plot) -> Markup:
    return Markup(picture._repr_svg_())


def _image_markup(picture: StaticPicture | Plot) -> Markup:
    return Markup(picture._repr_html_())


def _turn_data(answered: TalkAnswer) -> dict[str, Any]:
    """Return an answer as data for the browser, with all markup escaped."""
    return {
        "question": answered.question,
        "answer": answer_markup(answered),
        "cards": [[chip_name(node), node_card(answered.known, node, _svg_markup)] for node in answered.cited],
        "steps": list(map(list, answer_pages(answered, _svg_markup))),
        "said": f"Answered: {format_count(len(answered.cited), 'node')} cited, {len(answered.false)} false.",
    }


def _steps_markup(answered: TalkAnswer) -> Markup:
    """List all steps of an answer, followed by the cards of the cited nodes."""
    pages = answer_pages(answered, _image_markup)
    steps = (element("li", heading(page.title), element("div", page.markup)) for page in pages)
    cards = (node_card(answered.known, node, _image_markup) for node in answered.cited)
    return concat([element("ol", *steps), *cards])


def _citations_markup(answered: TalkAnswer) -> Markup:
    cited = [f"{node.name} ({node.type or 'node'} of {node.graph})" for node in answered.cited]
    return element("p", element("b", "Cited: "), keep_line_breaks("; ".join(cited))) if cited else Markup()


def _turns_table(turns: tuple[TalkAnswer, ...]) -> Table:
    rows = (
        (turn.question, turn.text, "; ".join(node.name for node in turn.cited), "; ".join(turn.false))
        for turn in turns
    )
    return Table((sheet(("asked", "answered", "cites", "cites falsely"), rows, "A talk"),))


__all__ = ["TalkView", "ThoughtView", "show_talk", "show_thought"]


def _list_sections(parts: Iterable[tuple[str, Iterable[str], str]]) -> Markup:
    return concat(each for head, lines, note in parts for each in (heading(head), _list_or_note(lines, note)))
