"""The helpers that a statement may use instead of NetworkX: add and node to write, facts, names and paths to
read.

A path consists of sentences: a name says a sentence, and a sentence mentions names. Each of these edges has
the properties `source` and `sentence`. Any other edge between two names is a fact. The terms are the same in
the other languages. Also runs inside the sandbox: imports the standard library and modules of the sandbox
only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kgot_lab.sandbox.worker.values import node_id

if TYPE_CHECKING:
    from kgot_lab.sandbox.python.tracking_graph import TrackedGraph

SAYS_SENTENCE, MENTIONS_NAME = "says", "mentions"
PATH_COLUMNS = (
    *("start", "place_1", "sentence_1", "source_1", "relation", "subject", "object"),
    *("name", "end", "place_2", "sentence_2", "source_2", "worth"),
)
PATH_ORDER = (
    *("start", "place_1", "place_2", "end", "name", "relation", "subject", "object"),
    *("sentence_1", "source_1", "sentence_2", "source_2"),
)
FACT_SCORE = 1.0  # relevance score of a fact in a path; sentences have their own
_Row = dict[str, Any]


def normalize_name(text: str) -> str:
    """Normalize a name for comparison: ignore case, treat underscores and hyphens as spaces."""
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())


def matching_nodes(graph: TrackedGraph, about: Any) -> list[str]:
    """Return the nodes that one or more names match: the same name, or else every name that contains it."""
    matches: dict[str, None] = {}
    for name in [about] if isinstance(about, str | int | float) else about:
        wanted = normalize_name(str(name))
        exact = [id for id in graph if normalize_name(str(id)) == wanted]
        similar = (id for id in graph if wanted and wanted in normalize_name(str(id)))
        matches.update(dict.fromkeys(exact or similar))
    return list(matches)


def fact_row(source: Any, target: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return an edge as a row.

    Its ends and relation take precedence over properties of the same names.
    """
    fact = {"subject": source, "relation": attributes.get("relation", ""), "object": target}
    return fact | attributes | fact


def edges_about(graph: TrackedGraph, about: Any, hops: int) -> Iterable[tuple[Any, Any, dict[str, Any]]]:
    """Yield the edges within some hops of the named nodes, in either direction, each once, nearest first."""
    if about is None:
        yield from graph.edges(data=True)
        return
    reached, frontier, seen = set[Any](), matching_nodes(graph, about), set[tuple[Any, Any, Any]]()
    for _ in range(max(1, int(hops))):
        next_frontier: dict[Any, None] = {}
        for id in frontier:
            reached.add(id)
            views = (graph.out_edges, graph.in_edges)
            both_ways = [edge for edges in views for edge in edges(id, keys=True, data=True)]
            for source, target, key, attributes in both_ways:
                if (source, target, key) not in seen:
                    seen.add((source, target, key))
                    yield source, target, attributes
                next_frontier[target if source == id else source] = None
        frontier = [id for id in next_frontier if id not in reached]


def best_paths(
    graph: TrackedGraph, names: Collection[str], scores: Mapping[str, float], limit: int
) -> list[_Row]:
    """Return the best paths from some names over sentences with a relevance score.

    Ties are ordered by their texts. Columns that a path lacks are "".
    """
    endings = [row for name in scores for row in _path_endings(graph, name, scores[name])]
    rows = _all_paths(graph, set(names), endings)
    distinct = {tuple(row[column] for column in PATH_COLUMNS): row for row in rows}
    return sorted(distinct.values(), key=lambda row: (-row["worth"], *(row[c] for c in PATH_ORDER)))[:limit]


def _path_endings(graph: TrackedGraph, sentence_node: str, score: float) -> Iterator[_Row]:
    """Yield a sentence as the last part of a path, for each name that says it."""
    for title, _, attributes in graph.in_edges(sentence_node, data=True) if sentence_node in graph else ():
        if attributes.get("relation") == SAYS_SENTENCE:
            yield _path_row(
                end=title,
                place_2=sentence_node,
                sentence_2=_text_attribute(attributes, "sentence"),
                source_2=_text_attribute(attributes, "source"),
                worth=score,
            )


def _all_paths(graph: TrackedGraph, names: Collection[str], endings: list[_Row]) -> Iterator[_Row]:
    names_mentioned = {row["place_2"]: _mentioned_names(graph, row["place_2"]) for row in endings}
    for ending in endings:
        yield from _paths_after_fact(graph, names, ending)
    for beginning in endings:
        if beginning["end"] in names:
            first = {
                "start": beginning["end"],
                "place_1": beginning["place_2"],
                "sentence_1": beginning["sentence_2"],
                "source_1": beginning["source_2"],
            }
            yield _path_row(**first, worth=beginning["worth"])
            for ending in endings:
                joining_names = {ending["end"], *names_mentioned[ending["place_2"]]} & names_mentioned[
                    beginning["place_2"]
                ] - {beginning["end"]}
                if ending["end"] != beginning["end"] and ending["place_2"] != beginning["place_2"]:
                    worth = beginning["worth"] + ending["worth"]
                    yield from (ending | first | {"name": name, "worth": worth} for name in joining_names)


def _paths_after_fact(graph: TrackedGraph, names: Collection[str], ending: _Row) -> Iterator[_Row]:
    """Yield the paths that follow a fact, in either direction, from a name to a sentence's own name."""
    end = ending["end"]
    for subject, object, attributes in (*graph.in_edges(end, data=True), *graph.out_edges(end, data=True)):
        start = subject if object == end else object
        if (
            start in names
            and start != end
            and attributes.get("relation") not in (SAYS_SENTENCE, MENTIONS_NAME)
        ):
            fact = {"relation": str(attributes.get("relation", "")), "subject": subject, "object": object}
            provenance = {
                "sentence_1": _text_attribute(attributes, "sentence"),
                "source_1": _text_attribute(attributes, "source"),
            }
            yield ending | fact | provenance | {"start": start, "worth": FACT_SCORE + ending["worth"]}


def _mentioned_names(graph: TrackedGraph, sentence_node: str) -> set[str]:
    return {n for _, n, a in graph.out_edges(sentence_node, data=True) if a.get("relation") == MENTIONS_NAME}


def _path_row(*, worth: float, **texts: str) -> _Row:
    return {**dict.fromkeys(PATH_COLUMNS, ""), **texts, "worth": worth}


def _text_attribute(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def helpers(graph: TrackedGraph) -> dict[str, Callable[..., Any]]:
    """Return the helpers for this graph by name."""

    def node(id: Any, label: str | None = None, **properties: Any) -> None:
        """Add a node, or add to the properties of one that exists."""
        name = node_id(id)
        graph.add_node(name)
        graph._node[name].update({**({"label": label} if label else {}), **properties})

    def add(
        subject: Any,
        relation: str,
        object: Any,
        subject_label: str | None = None,
        object_label: str | None = None,
        **properties: Any,
    ) -> None:
        """Add a fact, and its two nodes if they are missing."""
        node(subject, subject_label)
        node(object, object_label)
        ends, type = (node_id(subject), node_id(object)), node_id(relation)
        key = graph.add_edge(*ends, type)
        graph._succ[ends[0]][ends[1]][key].update({**properties, "relation": type})

    def facts(about: Any = None, relation: str | None = None, hops: int = 1) -> list[dict[str, Any]]:
        """Return the facts near a name, or all of them, optionally of one relation only."""
        return [
            fact_row(source, target, attributes)
            for source, target, attributes in edges_about(graph, about, hops)
            if relation is None
            or normalize_name(str(attributes.get("relation", ""))) == normalize_name(relation)
        ]

    def names(label: str | None = None) -> list[Any]:
        """Return the names of all nodes, optionally of one label only."""
        if label is None:
            return list(graph)
        labels = {id: [data.get("label", ""), *data.get("labels", ())] for id, data in graph.nodes(data=True)}
        wanted = normalize_name(label)
        return [id for id in graph if any(normalize_name(str(own)) == wanted for own in labels[id])]

    def paths(names: list[str], worth: Mapping[str, float], most: int = 10) -> list[dict[str, Any]]:
        """Return the best paths from some names over sentences with a relevance score."""
        return best_paths(graph, names, worth, most)

    made: dict[str, Callable[..., Any]] = {
        "add": add,
        "node": node,
        "facts": facts,
        "names": names,
        "paths": paths,
    }
    for name, helper in made.items():
        helper.__qualname__ = name  # as Python's errors call it
    return made
