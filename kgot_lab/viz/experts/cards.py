"""An answer with its citations as chips, and a card for each node that it cites: who it is, what it joins,
what limits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.experts.session import AnsweredTalk
from kgot_lab.kgos.methods.can_it import limitations_of
from kgot_lab.kgos.methods.index import GraphIndex, index_of
from kgot_lab.kgos.methods.search.multi_graph import SEPARATOR
from kgot_lab.types import Edge
from kgot_lab.viz.experts import node_picture
from kgot_lab.viz.live import Drawable
from kgot_lab.viz.static.markup import Markup, element, joined, shortened

# a picture as markup: itself in a live view, an image where nothing is trusted yet
AsMarkup = Callable[[Drawable], Markup]

LINE = Markup("<br>")
_CHIP = "border:1px solid currentColor;border-radius:9px;padding:0 6px;white-space:nowrap"
_DESCRIPTION, _EDGES, _LINE = 800, 15, 200  # characters, edges, characters of a line


def answer_markup(answered: AnsweredTalk) -> Markup:
    """The words of an answer with a chip for each citation, which names the card of its node by number; false
    ones are struck.
    """
    numbers = {node: number for number, node in enumerate(answered.cited)}
    said: list[Markup] = []
    for part in answered.parts:
        if part.node is not None:
            said.append(
                element(
                    "span",
                    chip_name(part.node),
                    data_card=numbers[part.node],
                    class_="kl-talk-chip",
                    style=_CHIP,
                )
            )
        elif part.is_citation:
            said.append(
                element(
                    "span", element("s", shortened(part.text, _LINE)), " (not told)", class_="kl-talk-false"
                )
            )
        else:
            said.append(with_lines(part.text))
    trouble = [element("em", f"({answered.trouble})")] if answered.trouble else []
    return element("p", *(_spaced(said)), *([" "] if said and trouble else []), *trouble)


def chip_name(node: CitableNode) -> str:
    """What a node is called on its chip."""
    return shortened(node.name or node.id, 60)


def _spaced(parts: Iterable[Markup]) -> Iterable[Markup]:
    """Parts with room between two chips that follow each other."""
    before = ""
    for part in parts:
        if before.endswith("</span>") and part.startswith("<span"):
            yield Markup(" ")
        yield part
        before = part


def with_lines(text: str) -> Markup:
    """A text whose lines stay lines."""
    return joined(
        each for number, line in enumerate(text.split("\n")) for each in ([LINE] * (number > 0) + [line])
    )


def node_card(known: KnownGraphs, node: CitableNode, drawn: AsMarkup) -> Markup:
    """A node with its name, type, description, limitations, edges and a picture; one that is in none of the
    graphs says so.
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
    """The id of a node in the graph that is asked, which may be several in one."""
    return (
        node.id
        if known.graph is known.asked and known.names[0] == node.graph
        else f"{node.graph}{SEPARATOR}{node.id}"
    )


def format_edge(index: GraphIndex, edge: Edge) -> str:
    """An edge in words, with the names of its ends."""
    names = [
        index.names[index.graph.row(end)] if end in index.graph else end for end in (edge.source, edge.target)
    ]
    return shortened(f"{shortened(names[0], 80)} — {edge.type} → {shortened(names[1], 80)}", _LINE)


def heading(words: str) -> Markup:
    """A small heading, in a notebook and in a live view."""
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
    if not lines:
        return []
    more = f" (the first {len(lines)} of {total:,})" if total > len(lines) else ""
    return [heading(head + more), element("ul", *(element("li", line) for line in lines))]
