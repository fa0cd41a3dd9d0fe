"""Build a whole run as one self-contained HTML file.

It is readable from disk and in print, with or without scripts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, zip_longest
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_count
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import as_graph
from kgot_lab.io.files import write_atomically
from kgot_lab.kgos.extraction.entity_graph import SCAFFOLD, is_entity_graph, with_relations
from kgot_lab.loop.events import Answered, Asked, Event, Started, ToolReturned, Wrote
from kgot_lab.loop.formatting import Part, PartKind, format_event, format_fact
from kgot_lab.loop.replay.forks import edited_index, run_note
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import Trace, diffs, graph_after
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Document, Edge, Json, Node, Prompt, Usage
from kgot_lab.viz.external_requests import find_external_requests
from kgot_lab.viz.graph.marks import Point
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.graph.view import GraphView, show_graph
from kgot_lab.viz.graph.view_data import MAX_NODES_DRAWN
from kgot_lab.viz.live import page_script, page_style, placeholder, read_asset
from kgot_lab.viz.static.markup import Markup, bullet_list, collapsible, concat, element, picture_key, shorten
from kgot_lab.viz.static.table import Table, format_properties, table

# Each event of a run as an HTML fragment: its description, and long texts collapsed.

BY_HAND = "(written by hand)"


def event_markup(event: Event, picture: Markup | None = None, *, by_hand: bool = False) -> Markup:
    """Describe an event as HTML.

    A write may have the picture of the graph after it. What a person wrote is labelled so.
    """
    formatted, name = format_event(event), type(event).__name__
    if isinstance(event, Asked):
        call = format_model_call(event, by_hand=by_hand)
        parts = [collapsible(call, *_conversation_markup(event.prompt, event.reply))]
    else:
        parts = [*([element("b", BY_HAND + " ")] if by_hand else []), *map(_part_markup, formatted.parts)]
    if picture is not None:
        parts.append(collapsible("The graph after this write", picture))
    title = element("b", formatted.title or name, class_="kind")
    return element("div", title, " ", *parts, class_=f"event {name.lower()}")


def preformatted(text: object) -> Markup:
    """Show a text exactly as it is, in a pre element."""
    return element("pre", text)


def format_model_call(event: Asked, *, by_hand: bool = False) -> Markup:
    """Describe a model call: role, model and cost, or that a person wrote the reply."""
    if by_hand:
        return concat([element("i", event.role), " ", element("b", BY_HAND), " · the reply is no model's"])
    return concat(map(_part_markup, format_event(event).parts))


def format_settings(prompt: Prompt) -> str:
    """Format the sampling settings of a prompt: temperature, seed, token limit and reply schema."""
    seed = "" if prompt.seed is None else f", seed {prompt.seed}"
    schema = json.dumps(prompt.schema, ensure_ascii=False, default=str)
    shape = f", in the shape {schema}" if prompt.schema else ""
    return f"temperature {prompt.temperature:g}{seed}, at most {prompt.max_tokens:,} tokens{shape}"


def _conversation_markup(prompt: Prompt, reply: str) -> Iterator[Markup]:
    for message in prompt.messages:
        yield element("div", element("h4", message.role), preformatted(message.text), class_="message")
    yield element("div", element("h4", "reply"), preformatted(reply), class_="message reply")
    yield element("p", format_settings(prompt), class_="small")


def _part_markup(part: Part) -> Markup:
    markup = _MARKUP[part.kind](part.content)
    return collapsible(part.summary, markup) if part.summary else markup


def diff_markup(diff: Diff) -> Markup:
    """List the nodes and edges that a write added, removed and changed, each with a sign."""
    added: tuple[Node | Edge, ...] = (*diff.added_nodes, *diff.added_edges)
    removed: tuple[Node | Edge, ...] = (*diff.removed_nodes, *diff.removed_edges)
    changed: tuple[tuple[Node | Edge, Node | Edge], ...] = (*diff.changed_nodes, *diff.changed_edges)
    lines = [element("li", f"+ {_format_item(item)}", class_="added") for item in added]
    lines += [element("li", f"− {_format_item(item)}", class_="removed") for item in removed]
    lines += [
        element("li", f"~ {_format_item(before)}  became  {_format_item(after)}", class_="changed")
        for before, after in changed
    ]
    return element("ul", *lines, class_="diff") if lines else Markup()


def _format_item(item: Node | Edge) -> str:
    details = f" {{{format_properties(item.properties)}}}" if item.properties else ""
    if isinstance(item, Node):
        return f"({item.id}{''.join(f' :{label}' for label in item.labels)}){details}"
    return f"({item.source}) --[{item.type}{f' #{item.key}' if item.key else ''}]--> ({item.target}){details}"


_MARKUP: Mapping[PartKind, Callable[[Any], Markup]] = {
    "words": lambda text: concat([text]),
    "strong": lambda text: element("b", text),
    "emphasis": lambda text: element("i", text),
    "paragraph": lambda text: element("p", text),
    "small": lambda text: element("p", text, class_="small"),
    "code": lambda text: element("code", text),
    "verbatim": preformatted,
    "calls": lambda calls: bullet_list(element("code", call) for call in calls),
    "rows": lambda rows: table(rows).html,
    "diff": diff_markup,
}


STEP_NODES = 60  # nodes drawn after each write; the last picture has more

NEEDS_SCRIPT = element(
    "noscript",
    "This part needs a script, which this browser does not run. Everything else of the page is below.",
)


@check_arguments
def build_run_page(
    run: Trace | Iterable[Event], *, title: str = "", live: Mapping[str, Mapping[str, Json]] | None = None
) -> str:
    """Build the HTML page of a run: question, answer, graph and evidence, then every event and the cost.

    The answer and its supporting facts are marked in the graph. `live` has the data of views to embed, by
    heading. Without any, the page has no script and the graph is a picture. Raises BadInput if the writes do
    not fit the graph with which the run began.
    """
    run = run if isinstance(run, Trace) else Trace("", "", tuple(run))
    events = run.events
    graphs = list(accumulate(diffs(events), PropertyGraph.apply, initial=graph_after(events[:1])))
    is_whole = {Started, Answered} <= set(map(type, events))
    graph_view = show_graph(graphs[-1], highlight=run if is_whole else None)
    entities = (
        [show_graph(with_relations(graphs[-1]), hidden=SCAFFOLD)] if is_entity_graph(graphs[-1]) else []
    )
    question = next((event.question for event in events if isinstance(event, Started)), "")
    title = title or question or "A run"
    sections = (
        _page_header(title, events, question),
        *([element("p", element("b", note), class_="origin")] if (note := run_note(run)) else []),
        *(_graph_section(view, "Entities", is_live=bool(live)) for view in entities),
        _graph_section(graph_view, is_live=bool(live)),
        _evidence_section(events),
        *(
            element("section", element("h2", heading), NEEDS_SCRIPT, placeholder(data), class_="alive")
            for heading, data in (live or {}).items()
        ),
        _section("Step by step", *_step_sections(run, graphs, graph_view.picture)),
        _section("What it cost", _cost_table(events), _run_settings(events)),
    )
    css = read_asset("run_page.css") + (page_style() if live else "")
    script = page_script() if live else (Markup(), "")
    return html_document(shorten(title, 80), css, element("main", *sections), script=script)


def _graph_section(view: GraphView, heading: str = "Graph", *, is_live: bool) -> Markup:
    """Build a section with the final graph: a picture, and a live view in its place if `is_live`."""
    tables = collapsible("The same as tables", view.table(limit=200).html)
    return _section(heading, *_picture_and_view(view, is_live=is_live), tables)


def _picture_and_view(view: GraphView, *, is_live: bool = True) -> Iterator[Markup]:
    yield element("div", view.picture.svg, class_="still")
    if is_live:
        yield placeholder({**view.standalone_data(), "stands_for": picture_key(view.picture.svg)})


def html_document(title: str, css: str, *body: Markup, script: tuple[Markup, str] = (Markup(), "")) -> str:
    """Build a page that fetches nothing, and runs only its `script`, the result of `page_script`."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # even if text is not escaped
    policy += f"; script-src {script[1]}" if script[1] else ""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(css)),
    )

    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body, script[0]), lang='en')}\n"


def _section(heading: str, *inside: object) -> Markup:
    return element("section", element("h2", heading), *inside)


def _page_header(title: str, events: Sequence[Event], question: str) -> Markup:
    answer = next((event for event in events if isinstance(event, Answered)), None)
    question_parts = element("h2", "Question"), element("p", question, class_="question")
    if answer is None:
        answer_box = element("p", "This run did not reach an answer.", class_="answer forced")
    else:
        note = answer.remark and element("p", answer.remark[:1].upper() + answer.remark[1:], class_="small")
        classes = "answer forced" if answer.forced else "answer"
        answer_box = element("div", element("div", answer.shown_text), note, class_=classes)
    return concat([element("h1", title), *question_parts, element("h2", "Answer"), answer_box])


def _run_settings(events: Sequence[Event]) -> Markup:
    """List the models, tools and limits of the run."""
    started = next((event for event in events if isinstance(event, Started)), Started(question=""))
    fields = {
        "preset": started.preset,
        "planning": started.planning,
        "execution": started.execution,
        "language": started.dialect,
        "tools": ", ".join(started.tools),
        "attachments": ", ".join(started.attachments),
    }
    settings = " · ".join(f"{name}: {value}" for name, value in fields.items() if value)
    return element("p", settings, class_="facts") if settings else Markup()


def _evidence_section(events: Sequence[Event]) -> Markup:
    """List the facts that support the answer, with their sentences and source passages.

    Only passages that a tool returned are shown.
    """
    answer = next((event for event in events if isinstance(event, Answered)), None)
    if answer is None or not (answer.evidence or answer.passages):
        return _section("Evidence", element("p", "None: the answer names no fact of the graph."))
    returned = (event for event in events if isinstance(event, ToolReturned))
    documents = {document.id: document for event in returned for document in event.sources}
    # a foreign trace may have fewer supports
    pairs = zip_longest(answer.evidence, answer.supports[: len(answer.evidence)], fillvalue=())
    facts_with_sources = [format_fact(str(fact), supports) for fact, supports in pairs]
    rows = (
        [{"fact": fact, "said by": " ".join(sources)} for fact, sources in facts_with_sources]
        if any(sources for _, sources in facts_with_sources)
        else answer.evidence
    )
    facts = []
    if answer.evidence:
        facts.append(Table((replace(table(rows).sheets[0], name="Facts of the graph"),)).html)
    return _section("Evidence", *facts, *(_passage_markup(id, documents) for id in answer.passages))


def _passage_markup(id: str, documents: Mapping[str, Document]) -> Markup:
    document = documents.get(id)
    if document is None:
        return element("p", f"Passage {id}, which no tool call of this run returned.", class_="small")
    summary = f"Passage {id}: {document.title or shorten(document.text, 60)}"
    return collapsible(summary, preformatted(document.text))


def _step_sections(run: Trace, graphs: Sequence[PropertyGraph], last: Picture) -> Iterator[Markup]:
    """Yield every event, grouped by step.

    Nodes keep the positions of the last picture.
    """
    graphs_after, hand_written = iter(graphs[1:]), edited_index(run)
    numbered = ((number, event) for number, event in enumerate(run.events) if not isinstance(event, Started))
    for step, group in groupby(numbered, key=lambda pair: pair[1].step):
        yield element("h3", f"Step {step}" if step else "Before the first INSERT")
        for number, event in group:
            picture = None
            if isinstance(event, Wrote):
                graph, diff = next(graphs_after), event.diff
                picture = svg(graph, limit=STEP_NODES, highlight=diff, positions=last.positions).svg
            yield event_markup(event, picture, by_hand=number == hand_written)


def _cost_table(events: Sequence[Event]) -> Markup:
    """Build the table of calls, tokens, seconds and cost, by role and in total."""
    costs = ledger(events)
    roles = (*costs.by_role().items(), ("all", (len(costs.entries), costs.total)))
    rows = tuple(_cost_row(role, calls, usage) for role, (calls, usage) in roles)
    names = ("asked for", "calls", "tokens in", "tokens out", "seconds", "US dollars")
    return Markup(Grid("", names, rows, css="numbers").html)


def _cost_row(role: str, call_count: int, usage: Usage) -> tuple[Cell, ...]:
    counts = f"{call_count:,}", f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}"
    cost = f"{usage.cost:.4f}" if usage.cost else "0"
    return tuple(map(Cell, (role, *counts, f"{usage.seconds:.1f}", cost)))


# A graph as one HTML file to move and search: the notebook view, which works from disk and without a network.

MAX_EXPORTED_NODES = MAX_NODES_DRAWN  # maximum nodes drawn individually; with more the drawing is a cloud
_DRAWING_HEIGHT = 600  # pixels of the drawing


@check_arguments
def export_graph(
    graph: object,
    path: Path | str,
    *,
    title: str = "",
    positions: Mapping[str, Point] | None = None,
    limit: int = MAX_EXPORTED_NODES,
) -> Path:
    """Write a graph as a stand-alone HTML file and return its path.

    `graph` is a PropertyGraph or anything that `as_graph` converts. Nodes are placed by `positions`
    (fractions of the drawing area, as in `Picture.positions`) or the plan of `show_graph`, and only the
    reader moves them. A graph of more than `limit` nodes is drawn as communities. The largest can be opened,
    as many as fit in about 1 MB, and the page says how many. The folder is created if necessary. Raises
    BadInput if the file cannot be written or the page would fetch anything.
    """
    graph = as_graph(graph)
    path = Path(path)
    if path.suffix != ".html":
        raise BadInput(f"{path} is no name for the page: name a file that ends in .html")
    require_count(limit, 1, "limit", "it is how many nodes the page shows")
    text = export_page(graph, title=title, positions=positions, limit=limit)
    return write_atomically(path, text, "the page")


def export_page(
    graph: PropertyGraph,
    *,
    title: str = "",
    positions: Mapping[str, Point] | None = None,
    limit: int = MAX_EXPORTED_NODES,
) -> str:
    """Build the HTML that `export` writes. Raises what `export` raises."""
    arrows, hidden = not graph.undirected, SCAFFOLD if is_entity_graph(graph) else ()
    graph = with_relations(graph) if hidden else graph
    options: Any = {"height": _DRAWING_HEIGHT, "most": limit, "arrows": arrows, "hidden": hidden}
    view = show_graph(graph, positions=positions, **options)
    sizes = f"{format_count(len(graph), 'node')} and {format_count(len(graph.edges), 'edge')}"
    title = title or f"A graph with {sizes}"
    body = element(
        "main",
        element("h1", title),
        *_picture_and_view(view),
        collapsible("The same as tables", element("div", table(graph, limit=200).html, class_="wide")),
    )
    page = html_document(title, page_style() + read_asset("graph_page.css"), body, script=page_script())
    if external := find_external_requests(page, beside=True):
        raise BadInput(f"the page would fetch {', '.join(external[:5])}: install kgot_lab again")
    return page
