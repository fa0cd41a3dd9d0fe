"""The plain words a statement may use instead of NetworkX: add and node to write, facts, names and paths to read.

Runs inside the sandbox: imports the standard library and its sisters only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kgot_lab.sandbox.inside.paths import paths_found
from kgot_lab.sandbox.inside.tracked import TrackedGraph
from kgot_lab.sandbox.inside.values import node_id


def folded_name(text: str) -> str:
    """A name as it is compared: without case, underscores and hyphens as spaces."""
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())


def matching(graph: TrackedGraph, about: Any) -> list[str]:
    """The nodes meant by a name or several: the same name, or else every name that contains it."""
    found: dict[str, None] = {}
    for name in [about] if isinstance(about, str | int | float) else about:
        wanted = folded_name(str(name))
        same = [id for id in graph if folded_name(str(id)) == wanted]
        found.update(dict.fromkeys(same or [id for id in graph if wanted and wanted in folded_name(str(id))]))
    return list(found)


def fact_row(source: Any, target: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """An edge as a row; its ends and its relation go before properties of those names."""
    fact = {"subject": source, "relation": attributes.get("relation", ""), "object": target}
    return fact | attributes | fact


def rows_about(graph: TrackedGraph, about: Any, hops: int) -> Iterable[tuple[Any, Any, dict[str, Any]]]:
    """The edges met within some hops of the named nodes, either way along, each once, nearest first."""
    if about is None:
        yield from graph.edges(data=True)
        return
    reached, frontier, seen = set[Any](), matching(graph, about), set[tuple[Any, Any, Any]]()
    for _ in range(max(1, int(hops))):
        following: dict[Any, None] = {}
        for id in frontier:
            reached.add(id)
            for source, target, key, attributes in [*graph.out_edges(id, keys=True, data=True), *graph.in_edges(id, keys=True, data=True)]:
                if (source, target, key) not in seen:
                    seen.add((source, target, key))
                    yield source, target, attributes
                following[target if source == id else source] = None
        frontier = [id for id in following if id not in reached]


def helpers(graph: TrackedGraph) -> dict[str, Callable[..., Any]]:
    """The helpers by name, speaking of this graph."""

    def node(id: Any, label: str | None = None, **properties: Any) -> None:
        """Add a node, or add to what is known of it."""
        name = node_id(id)
        graph.add_node(name)
        graph._node[name].update({**({"label": label} if label else {}), **properties})

    def add(
        subject: Any, relation: str, object: Any, subject_label: str | None = None, object_label: str | None = None, **properties: Any
    ) -> None:
        """Add a fact, and its two nodes where they are missing."""
        node(subject, subject_label)
        node(object, object_label)
        ends, type = (node_id(subject), node_id(object)), node_id(relation)
        key = graph.add_edge(*ends, type)
        graph._succ[ends[0]][ends[1]][key].update({**properties, "relation": type})

    def facts(about: Any = None, relation: str | None = None, hops: int = 1) -> list[dict[str, Any]]:
        """The facts near a name, or all of them, perhaps of one relation only."""
        return [
            fact_row(source, target, attributes)
            for source, target, attributes in rows_about(graph, about, hops)
            if relation is None or folded_name(str(attributes.get("relation", ""))) == folded_name(relation)
        ]

    def names(label: str | None = None) -> list[Any]:
        """The names of all nodes, perhaps of one label only."""
        if label is None:
            return list(graph)
        labels = {id: [data.get("label", ""), *data.get("labels", ())] for id, data in graph.nodes(data=True)}
        return [id for id in graph if folded_name(label) in (folded_name(str(each)) for each in labels[id])]

    def paths(names: list[str], worth: Mapping[str, float], most: int = 10) -> list[dict[str, Any]]:
        """The best paths from some names over the sentences that are worth something."""
        return paths_found(graph, names, worth, most)

    return {"add": add, "node": node, "facts": facts, "names": names, "paths": paths}
