"""A store whose language is data: statements are JSON, so that thousands of simulated runs need no sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.llm.reply_forms import explain_json_error
from kgot_lab.sandbox.python.helpers import best_paths
from kgot_lab.sandbox.python.tracking_graph import TrackedGraph
from kgot_lab.stores.embedded_store import PYTHON, EmbeddedStore
from kgot_lab.stores.lookup import nodes_within
from kgot_lab.stores.protocol import Dialect, Fact
from kgot_lab.stores.statements import path_query
from kgot_lab.types import Diff, Edge, Json, Node, Rows


def _adding(facts: Sequence[Fact]) -> str:
    return json.dumps(
        {"add": [[*triple.identity, dict(properties)] for triple, properties in facts]}, ensure_ascii=False
    )


PLAIN_FACTS = Dialect(
    name="plain facts in JSON",
    how_to_write='{"add": [[subject, relation, object, {properties}], …]} adds facts.',
    how_to_read='{"about": [names], "hops": number} reads the facts within so many hops of some names.',
    write_example='{"add": [["Marie Curie", "won", "Nobel Prize in Physics", {"year": 1903}]]}',
    read_example='{"about": ["Marie Curie"], "hops": 1}',
    add=_adding,
    about=lambda names, hops: json.dumps({"about": list(names), "hops": hops}, ensure_ascii=False),
    paths=lambda names, worth, most: json.dumps(
        {"paths": path_query(names, worth, most)}, ensure_ascii=False
    ),
    node=PYTHON.node,
    edge=PYTHON.edge,
    label=PYTHON.label,
)


class PlainFacts(EmbeddedStore):
    """A graph in this process that takes facts in JSON: for simulations and lessons, where nothing need run
    in a sandbox.
    """

    dialect = PLAIN_FACTS
    language = "json"

    def __init__(self) -> None:
        super().__init__(open=_Facts)

    def clear(self) -> None:
        """Begin with an empty graph again."""
        graph = self.graph()
        self.apply(Diff(removed_nodes=tuple(graph.nodes), removed_edges=tuple(graph.edges)))


class _Facts:
    """Runs statements on its own copy of the graph: it reads JSON and nothing else."""

    def __init__(self) -> None:
        self._truth = MutableGraph()

    def write(self, statement: str) -> Diff:
        """What the facts of a statement change; raises QueryFailed."""
        facts = _asked(statement, "add")
        nodes: dict[str, Node | None] = {}
        edges: dict[tuple[str, str, str, str], Edge | None] = {}
        for fact in facts:
            if not (
                isinstance(fact, list)
                and len(fact) == 4
                and all(isinstance(part, str) for part in fact[:3])
                and isinstance(fact[3], dict)
            ):
                raise QueryFailed(statement, "a fact is [subject, relation, object, {properties}]")
            subject, relation, object, properties = fact
            identity = (subject, relation, object, "")
            before = edges.get(identity) or self._truth.edges.get(identity)
            edges[identity] = Edge(
                subject, relation, object, {**(before.properties if before else {}), **properties}
            )
            nodes |= {end: self._truth.nodes.get(end) or Node(end) for end in (subject, object)}
        return self._truth.difference(nodes, edges)

    def read(self, statement: str, without: Sequence[Edge] = ()) -> Rows:
        """The facts within some hops of some names, nearest first, or the paths from some names, best first,
        as if some edges were missing; raises QueryFailed.
        """
        if without:
            hidden, shown = {edge.identity for edge in without}, _Facts()
            edges = [edge for edge in self._truth.edges.values() if edge.identity not in hidden]
            shown.reset(tuple(self._truth.nodes.values()), tuple(edges))
            return shown.read(statement)
        if "paths" in (said := _statement(statement)):
            return self._paths(statement, said["paths"])
        names, hops = _asked(statement, "about"), _asked(statement, "hops")
        if not isinstance(names, list) or not isinstance(hops, int):
            raise QueryFailed(statement, "about is a list of names, and hops a whole number")
        wanted = {str(name).casefold() for name in names}
        starts = [id for id in self._truth.nodes if id.casefold() in wanted]
        far: dict[str, int] = {}
        for start in starts:
            for id, steps in nodes_within(start, max(1, hops) - 1, self._ends).items():
                far[id] = min(steps, far.get(id, steps))
        met = dict.fromkeys(
            identity for id in sorted(far, key=lambda id: far[id]) for identity in self._truth.incident[id]
        )
        found = [self._truth.edges[identity] for identity in met]
        return tuple(
            {**edge.properties, "subject": edge.source, "relation": edge.type, "object": edge.target}
            for edge in found
        )

    def _paths(self, statement: str, asked: Json) -> Rows:
        try:
            names, worth, most = path_query(*asked)
        except (TypeError, AttributeError, BadInput) as error:
            raise QueryFailed(statement, f"paths are [[names], {{place: worth}}, number]: {error}") from None
        graph = TrackedGraph()
        edges = self._truth.edges.values()
        graph.add_edges_from(
            (edge.source, edge.target, {**edge.properties, "relation": edge.type}) for edge in edges
        )
        return tuple(best_paths(graph, names, worth, most))

    def apply(self, diff: Diff) -> None:
        """Make a diff part of the copy."""
        self._truth.apply(diff)

    def reset(self, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None:
        """Begin with another graph."""
        self._truth = MutableGraph(nodes, edges)

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Nothing: this language has no Python; raises QueryFailed."""
        raise QueryFailed(code, "plain facts run no Python")

    def close(self) -> None:
        """Nothing is open."""

    def _ends(self, ids: list[str]) -> list[str]:
        incident = (edge for id in ids for edge in self._truth.incident[id])
        return [end for source, _, target, _ in incident for end in (source, target)]


def _asked(statement: str, what: str) -> Json:
    """A part of a statement; raises QueryFailed where it is no JSON or lacks that part."""
    said = _statement(statement)
    if what not in said:
        raise QueryFailed(statement, f'it says nothing of "{what}"')
    return said[what]


def _statement(statement: str) -> dict[str, Json]:
    """A statement as what it says; raises QueryFailed where it is no JSON object."""
    try:
        said = json.loads(statement)
    except (ValueError, RecursionError) as error:
        raise QueryFailed(statement, f"it is no JSON: {explain_json_error(error)}") from None
    if not isinstance(said, dict):
        raise QueryFailed(statement, "it is no object")
    return said
