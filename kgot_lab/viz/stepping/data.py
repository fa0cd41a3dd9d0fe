"""Data of the stepper: every event of a run with its description, its vote, and the graph after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from itertools import groupby, islice

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Cut,
    Event,
    Forced,
    Read,
    Refused,
    Repaired,
    Started,
    ToolReturned,
    Vote,
    Voted,
    Wrote,
)
from kgot_lab.loop.evidence import SupportFinder
from kgot_lab.loop.formatting import caption
from kgot_lab.loop.modes.paths.mentions import is_sentence_node
from kgot_lab.loop.replay.forks import align_runs, changeable_part, changeable_text, comparable_texts
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.state import state_after
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Document, Edge, Json, Usage
from kgot_lab.viz.graph.marks import Point
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.graph.view_data import graph_data
from kgot_lab.viz.page import BY_HAND, event_markup, format_model_call, format_settings, preformatted
from kgot_lab.viz.static.markup import Markup, concat, element, shorten
from kgot_lab.viz.stepping.predictions import predictions

# The support of each fact of a run: the event that added it, and its source sentences and passages.


def run_facts(events: Sequence[Event], number: Callable[[str], int]) -> dict[str, Json]:
    """Return the facts of a run as JSON, with the evidence of the answer and the supporting passages.

    The evidence is given by indices into the facts. `number` maps each text to its number. A fact that the
    graph began with is present since event 0. A fact that an answer names but no edge says has no edge.
    """
    origins = _edges_with_origin(events).values()
    found = SupportFinder(state_after(events))
    passages = _Passages(events, number)
    facts = {fact_of(e): _fact_data(e, at, passages.sentences(found.find(e))) for e, at in origins}
    answer = next((event for event in events if isinstance(event, Answered)), None)
    evidence = list(map(str, answer.evidence)) if answer else []
    for index, text in enumerate(evidence):
        supports = answer.supports[index] if answer and index < len(answer.supports) else ()
        fact = facts.setdefault(text, {"text": text, "edge": None, "since": -1, "said": []})
        fact["said"] = fact["said"] or passages.sentences(supports)
    fact_index = {text: index for index, text in enumerate(facts)}
    indices = [fact_index[text] for text in evidence]
    return {"facts": list(facts.values()), "evidence": indices, "passages": passages.used}


def _edges_with_origin(events: Sequence[Event]) -> dict[tuple[str, str, str, str], tuple[Edge, int]]:
    """Return every edge that was ever in the graph, in its last state, with the event that added it."""
    start_graph = next((event.start for event in events if isinstance(event, Started)), None)
    origins = {edge.identity: (edge, 0) for edge in (start_graph.edges if start_graph else ())}
    for at, event in enumerate(events):
        if isinstance(event, Wrote):
            for edge in event.diff.written_edges:
                origins[edge.identity] = edge, origins[edge.identity][1] if edge.identity in origins else at
    return origins


def _fact_data(edge: Edge, since: int, sentences: list[Json]) -> dict[str, Json]:
    is_sentence = edge.type == SAYS_SENTENCE and is_sentence_node(edge.target)
    extra = {"sentence_of": edge.source} if is_sentence else {}
    ends = [edge.source, edge.type, edge.target]
    return {"text": fact_of(edge), "edge": ends, "since": since, "said": sentences, **extra}


class _Passages:
    """The documents that a run read, and of these the ones that support a fact.

    Each has the event that first returned it.
    """

    def __init__(self, events: Sequence[Event], number: Callable[[str], int]) -> None:
        self.used: list[dict[str, Json]] = []
        self._number, self._places = number, dict[str, int]()
        self._read: dict[str, tuple[Document, int]] = {}
        for at, event in enumerate(events):
            for document in event.sources if isinstance(event, ToolReturned) else ():
                self._read.setdefault(document.id, (document, at))

    def sentences(self, supports: Iterable[Support]) -> list[Json]:
        """Return the sentences that support a fact, each with the index of its passage.

        The index is -1 if no passage that was read is its source.
        """
        number, index = self._number, self._passage_index
        return [
            {"sentence": number(support.sentence), "passage": index(support.source), "source": support.source}
            for support in supports
        ]

    def _passage_index(self, source: str) -> int:
        if source not in self._read:
            return -1
        if source not in self._places:
            self._places[source] = len(self.used)
            document, at = self._read[source]
            title, text = document.title or source, self._number(document.text)
            self.used.append({"title": title, "text": text, "event": at})
        return self._places[source]


# The graphs of a run as the browser draws them: one for each event, with fixed node positions, and each node
# and edge stored once.

MAX_RUN_NODES = 150  # maximum nodes drawn of one graph; the graph of a run usually has fewer


def run_positions(*graphs: PropertyGraph, known: Mapping[str, Point] | None = None) -> dict[str, Point]:
    """Return a fixed position for each node of some graphs, at most `MAX_RUN_NODES`.

    The layout is that of the last graph. Nodes with a known position stay there.
    """
    positions = dict(svg(graphs[-1], limit=MAX_RUN_NODES, positions=known).positions)
    edges = {edge.identity: edge for graph in graphs for edge in graph.edges}
    nodes = {node.id: node for graph in graphs for node in graph.nodes}
    whole_graph = PropertyGraph.of(nodes.values(), edges.values())
    drawn_ids = [id for id in whole_graph.ids if id in positions]
    missing = [id for id in whole_graph.ids if id not in positions][: max(0, MAX_RUN_NODES - len(drawn_ids))]
    if not missing:
        return positions
    drawn = svg(whole_graph.subgraph([*drawn_ids, *missing]), limit=MAX_RUN_NODES, positions=positions)
    return dict(drawn.positions)


class RunGraphs:
    """Graphs as the browser draws them. Nodes and edges that several of them share are stored once."""

    def __init__(self, positions: Mapping[str, Point]) -> None:
        self.positions = positions
        self.graphs: list[Json] = []
        self._parts: dict[str, dict[str, int]] = {"nodes": {}, "edges": {}}

    def add(self, graph: PropertyGraph, highlight: Diff | Trace | None = None) -> int:
        """Store a graph and return its number."""
        drawn = self._drawable_graph(graph)
        shown = self._drawable_diff(highlight) if isinstance(highlight, Diff) else highlight
        data = graph_data(drawn, shown, self.positions)
        data["note"] = f"Shows {len(drawn):,} of {len(graph):,} nodes." if len(drawn) < len(graph) else ""
        for kind in ("nodes", "edges"):
            marks = {number: item.pop("mark") for number, item in enumerate(data[kind])}
            data[kind] = [self._part_number(kind, item) for item in data[kind]]
            data[f"{kind[:-1]}_marks"] = {number: mark for number, mark in marks.items() if mark}
        self.graphs.append(data)
        return len(self.graphs) - 1

    def data(self) -> dict[str, Json]:
        """Return all graphs, and the nodes and edges that they consist of."""
        parts = {kind: [json.loads(item) for item in items] for kind, items in self._parts.items()}
        return {"graphs": self.graphs, **parts}

    def _part_number(self, kind: str, item: Json) -> int:
        return self._parts[kind].setdefault(json.dumps(item, default=str), len(self._parts[kind]))

    def _drawable_graph(self, graph: PropertyGraph) -> PropertyGraph:
        drawn_ids = [id for id in graph.ids if id in self.positions]
        return graph if len(drawn_ids) == len(graph) else graph.subgraph(drawn_ids)

    def _drawable_diff(self, diff: Diff) -> Diff:
        """Return the drawable part of a diff.

        What it removed is drawn too, if it has a position.
        """
        drawn = self.positions.keys()
        nodes = tuple(node for node in diff.removed_nodes if node.id in drawn)
        edges = tuple(edge for edge in diff.removed_edges if {edge.source, edge.target} <= drawn)
        return replace(diff, removed_nodes=nodes, removed_edges=edges)


def graph_indices(events: Sequence[Event], graphs: RunGraphs) -> list[int]:
    """Return the index of the graph shown at each event.

    At a write the change is marked, and after it not. At the answer, the answer is marked.
    """
    graph = graph_after(events[:1])  # the graph at the beginning of the run
    current = graphs.add(graph)
    indices = []
    for number, event in enumerate(events):
        if isinstance(event, Wrote):
            graph = graph.apply(event.diff)
            indices.append(graphs.add(graph, event.diff))
            current = graphs.add(graph)
        elif isinstance(event, Answered):
            indices.append(graphs.add(graph, Trace("", "", tuple(events[: number + 1]))))
        else:
            indices.append(current)
    return indices


def run_data(
    events: Sequence[Event], positions: Mapping[str, Point], known: Sequence[Event] = (), *, by_hand: int = -1
) -> dict[str, Json]:
    """Return a run as JSON.

    `positions` are those of the nodes. An event that is among the `known` ones is replaced by its number
    there. `by_hand` is the number of the event that a person wrote, or -1.
    """
    texts, graphs = _TextStore(), RunGraphs(positions)
    numbers = {text: number for number, text in reversed(list(enumerate(comparable_texts(known))))}
    keys = comparable_texts(events)
    answer = next((event for event in events if isinstance(event, Answered)), None)
    return {
        "events": [
            {"as": numbers[key]} if key in numbers else _event_data(events, number, texts, by_hand)
            for number, key in enumerate(keys)
        ],
        "votes": vote_data(events),
        "questions": [] if known else [prediction.as_json() for prediction in predictions(events)],
        "graph_at": graph_indices(events, graphs),
        "steps": step_costs(events),
        "grounds": run_facts(events, texts.number),
        "answer": answer.shown_text if answer else "",
        "outcome": answer.remark if answer else "",
        "finished": answer is not None,
        "texts": list(texts),
        **graphs.data(),
    }


def fork_data(events: Sequence[Event], fork: Fork, positions: Mapping[str, Point]) -> dict[str, Json]:
    """Return a fork as JSON: its differences from the run, its cost, and both last graphs.

    The difference is marked in the graphs.
    """
    original, graphs = graph_after(events), RunGraphs(positions)
    difference = original.diff(fork.graph)
    lost = replace(difference, added_nodes=(), added_edges=())
    gained = replace(difference, removed_nodes=(), removed_edges=())
    ends = [graphs.add(original, lost), graphs.add(fork.graph, gained)]
    keys = comparable_texts(events), comparable_texts(fork.events)
    pairs = []
    for index, other in align_runs(events, fork.events):
        is_same = None not in (index, other) and keys[0][index or 0] == keys[1][other or 0]
        pairs.append([index, other, is_same])
    return {
        **run_data(fork.events, positions, events, by_hand=fork.first_difference),
        "ends": {"of": ends, **graphs.data()},
        "difference": str(difference) if difference else "none",
        "first": fork.first_difference,
        "change": _describe_change(events, fork),
        "avoided": fork.avoided,
        "asked": fork.asked,
        "stopped": fork.stopped,
        "pairs": pairs,
    }


# --- events ---


class _TextStore(dict[str, int]):
    """Long texts with their numbers, each stored once, since the same prompt is sent for every sample."""

    def number(self, text: str) -> int:
        """Return the number of a text, and assign one if it is new."""
        return self.setdefault(text, len(self))


def _event_data(events: Sequence[Event], number: int, texts: _TextStore, by_hand: int) -> dict[str, Json]:
    """Return an event as JSON: a line for the list, HTML for the page, and the editable text."""
    event, part = events[number], changeable_part(events[number])
    markup = _event_markup(events, number, by_hand)
    event_caption = caption(event) + (f" {BY_HAND}" if number == by_hand else "")
    data: dict[str, Json] = {"kind": type(event).__name__, "step": event.step}
    data |= {"caption": event_caption, "words": markup}
    if isinstance(event, Vote):
        data["vote"] = event.choice
    if isinstance(event, Asked):
        data["prompt"] = [[message.role, texts.number(message.text)] for message in event.prompt.messages]
        data["reply"] = texts.number(event.reply)
        data["settings"] = format_settings(event.prompt)
    if part:
        data["part"], data["text"] = part, texts.number(changeable_text(events, number))
    return data


def _event_markup(events: Sequence[Event], number: int, by_hand: int) -> Markup:
    event = events[number]
    if isinstance(event, Asked):  # prompt and reply are shown side by side, as separate texts
        call = format_model_call(event, by_hand=number == by_hand)
        return element("div", element("b", "Asked", class_="kind"), " ", call, class_="event asked")
    markup = event_markup(event, by_hand=number == by_hand)
    return concat([*_repairs_markup(events, number), markup])


def _repairs_markup(events: Sequence[Event], number: int) -> Iterator[Markup]:
    """Show the earlier forms of a repaired statement, each with the reason why the store refused it."""
    repairs = preceding_repairs(events, number)
    if not repairs:
        return
    tries = "once" if len(repairs) == 1 else f"{len(repairs)} times"
    head = element("b", "Repaired", class_="kind")
    parts = [element("p", head, f" {tries} before it was run or given up")]
    for repair in repairs:
        parts += [preformatted(repair.statement), element("p", "refused: ", repair.error, class_="refusal")]
    parts.append(element("p", "repaired, and then:"))
    yield element("div", *parts, class_="event repaired")


def preceding_repairs(events: Sequence[Event], number: int) -> list[Repaired]:
    """Return the repairs that led to the statement of a Wrote, Read or Refused event, oldest first."""
    event = events[number]
    statement = event.statement if isinstance(event, Wrote | Read | Refused) else None
    repairs: list[Repaired] = []
    for earlier in reversed(events[:number]):
        if isinstance(earlier, Repaired) and earlier.mended == statement:
            repairs.append(earlier)
            statement = earlier.statement
        elif not isinstance(earlier, Asked | Cut):
            break
    return repairs[::-1]


def step_costs(events: Iterable[Event]) -> list[dict[str, Json]]:
    """Return for each step in order its number, model calls, tokens and seconds."""
    costs = []
    for step, group in groupby(events, key=lambda event: event.step):
        asked = [event.usage for event in group if isinstance(event, Asked)]
        total = Usage.total(asked)
        tokens = total.prompt_tokens + total.completion_tokens
        cost = {"step": step, "calls": len(asked), "tokens": tokens, "seconds": round(total.seconds, 1)}
        costs.append(cost)
    return costs


# --- votes ---


def vote_data(events: Sequence[Event]) -> list[dict[str, Json]]:
    """Return each vote: first event, samples, possible number of samples and deciding event.

    A sample is (event, choice). `end` is -1 if the run stops inside the vote.
    """
    votes: list[dict[str, Json]] = []
    open_vote: dict[str, Json] | None = None
    for number, event in enumerate(events):
        if open_vote is None and isinstance(event, Asked) and event.role == "vote":
            open_vote = {"start": number, "samples": [], "end": -1, "choice": ""}
            open_vote["possible"] = _possible_samples(events)
            votes.append(open_vote)
        elif open_vote is not None and isinstance(event, Vote):
            open_vote["samples"].append([number, event.choice])
        elif open_vote is not None and isinstance(event, Voted):
            open_vote |= {"end": number, "choice": event.choice, "possible": event.possible}
            open_vote = None
    return votes


def _possible_samples(events: Sequence[Event]) -> int:
    """Return how many samples a vote of this run may have.

    It is 1 if every sample would be the same text.
    """
    limits = next((event.limits for event in events if isinstance(event, Started)), {})
    return int(limits.get("votes", 0)) if limits.get("vote_temperature", 1) else 1


# --- forks ---


def _describe_change(events: Sequence[Event], fork: Fork) -> dict[str, Json]:
    """Describe what was changed by hand, in words and as a line diff."""
    at = fork.first_difference
    old, new = changeable_text(events, at).splitlines(), changeable_text(fork.events, at).splitlines()
    if at >= min(len(events), len(fork.events)):
        return {"words": "nothing: the run says the same again", "lines": ""}
    words = f"the {changeable_part(events[at])} of event {at} ({caption(events[at])})"
    return {"words": words, "lines": element("ul", *_diff_lines(old, new), class_="diff")}


def _diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Markup]:
    """Yield a line diff of two texts: unchanged, removed and added lines."""
    looks = {" ": (" ", None), "-": ("−", "removed"), "+": ("+", "added")}
    for line in islice(unified_diff(old, new, n=len(old), lineterm=""), 3, None):  # after the head
        sign, kind = looks[line[0]]
        yield element("li", f"{sign} {line[1:]}", class_=kind)


# Each step of a run in a line, for the static picture. Single events are formatted by
# kgot_lab.loop.formatting.


def step_lines(events: Iterable[Event]) -> list[str]:
    """Summarize each step of a run in one line: votes, calls, writes and reads."""
    steps = groupby(events, key=lambda event: event.step)
    return [f"{step_name(step)}: {_format_step(list(group))}" for step, group in steps]


def step_name(step: int) -> str:
    """Return the display name of a step."""
    return f"Step {step}" if step else "Start"


def _format_step(events: Sequence[Event]) -> str:
    replies = sum(isinstance(event, Asked) for event in events)
    parts = [_format_event(e) for e in events if isinstance(e, Chose | Wrote | Read | Voted | Forced)]
    if replies:
        parts.append(format_count(replies, "reply", "replies"))
    return "; ".join(parts) or "nothing yet"


def _format_event(event: Event) -> str:
    match event:
        case Chose(calls=calls):
            return "; ".join(shorten(str(call), 70) for call in calls) or "no call left"
        case Voted(choice=choice, votes=votes) if votes:
            return f"vote: {choice} ({event.inserts} INSERT, {event.retrieves} RETRIEVE)"
        case _:
            return caption(event)
