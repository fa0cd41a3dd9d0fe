"""Looks around in a namespace of a Bolt server without reading all of it: a step of a walk is one question,
wherever it starts from.

A node is found by the server's own id for it, its place, which is remembered since it was last seen; where
another node or none is there now, and for a node never seen before, all nodes are scanned once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping

from kgot_lab.sandbox.cypher.mapping import edge_properties, labels_of, node_properties, own_key
from kgot_lab.stores.cypher.connection import Ask
from kgot_lab.stores.cypher.dump import timeless
from kgot_lab.stores.lookup import WordIndex, path_between, scalars_in
from kgot_lab.stores.protocol import Scalar, Schema
from kgot_lab.text.words import folded_words
from kgot_lab.types import Edge, Node

_SCAN = (  # a map is looked up, a list would be searched for each node
    "MATCH (n {_run: $run}) WHERE $ids[n.id] IS NOT NULL RETURN n.id, elementId(n)"
)
_HERE = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[1] AND n.id = row[0] AND n._run = $run "
_EDGES = (
    _HERE
    + "OPTIONAL MATCH (n)-[r]-(m {_run: $run}) RETURN n.id, startNode(r) = n, type(r), m.id, properties(r), elementId(m)"
)
_NEXT = _HERE + "OPTIONAL MATCH (n)--(m {_run: $run}) RETURN DISTINCT m.id, elementId(m)"
_LABELS = "MATCH (n {_run: $run}) RETURN labels(n), count(n)"
_TYPES = "MATCH ({_run: $run})-[r]->({_run: $run}) RETURN type(r), count(r) ORDER BY type(r)"
_FOUND = """
MATCH (n {_run: $run})
WITH n, toLower(n.id) AS name, [key IN keys(n) WHERE NOT key IN ['id', '_run', '_kept', '_labels']] AS own
WITH n, name, reduce(found = [], key IN own | found + n[key]) AS found
WITH n, name, toLower(reduce(text = '', value IN found | text + ' ' + coalesce(toStringOrNull(value), ''))) AS text
WITH n, name, reduce(score = 0, word IN $words | score + CASE WHEN name CONTAINS word THEN 2 * size(word) ELSE 0 END
  + CASE WHEN text CONTAINS word THEN size(word) ELSE 0 END) AS score
WHERE score > 0
RETURN n.id, labels(n), properties(n) ORDER BY score DESC, size(name), name LIMIT $most
"""  # long words count more, for they are rarer


_PART = "any(key IN keys(x) WHERE NOT key IN ['id', '_run', '_kept', '_labels', '_key'] AND {test})"
_HELD = (  # IN takes lists and single values alike; a time is held as the text that rows show
    "$value IN ([] + x[key]) OR (toStringOrNull(x[key]) = $text AND toFloatOrNull(x[key]) IS NULL AND toBooleanOrNull(x[key]) IS NULL)"
)
_ENCODED = "toStringOrNull(x[key]) STARTS WITH 'json:' AND toStringOrNull(x[key]) CONTAINS $piece"
_HOLDS = (
    f"MATCH (x {{_run: $run}}) WHERE x.id = $value OR $value IN labels(x) OR {_PART.format(test=f'({_HELD})')} RETURN 1 LIMIT 1",
    f"MATCH ({{_run: $run}})-[x]->({{_run: $run}}) WHERE type(x) = $value OR {_PART.format(test=f'({_HELD})')} RETURN 1 LIMIT 1",
)
_MAY_HOLD = tuple(
    f"MATCH {pattern} WHERE {_PART.format(test=_ENCODED)} RETURN properties(x) LIMIT 1000"
    for pattern in ("(x {_run: $run})", "({_run: $run})-[x]->({_run: $run})")
)
_BETWEEN = (
    _HERE
    + "MATCH (n)-[r]->(m {_run: $run}) WHERE $ids[m.id] IS NOT NULL RETURN n.id, type(r), m.id, properties(r)"
)


class Looking:
    """Questions about a graph, and the places of the nodes that were seen."""

    def __init__(self, ask: Ask):
        self._ask = ask
        self.places: dict[str, str] = {}

    def moved(self, gone: Iterable[str], places: Mapping[str, str]) -> None:
        """Forget where some nodes were, and note where some are."""
        for id in gone:
            self.places.pop(id, None)
        self.places.update(places)

    def locate(self, ask: Ask, ids: Iterable[str]) -> dict[str, str]:
        """Where the nodes of some ids are, as far as there are any."""
        ids = list(ids)
        known = [[id, self.places[id]] for id in ids if id in self.places]
        found = dict(ask(_HERE + "RETURN n.id, elementId(n)", {"rows": known})) if known else {}
        missing = {id: True for id in ids if id not in found}
        if missing:
            found |= dict(ask(_SCAN, {"ids": missing}))
        self.places.update(found)
        return found

    def incident(self, ids: list[str]) -> dict[str, list[Edge]]:
        """The edges of some nodes, by node; a node that is not there has no entry."""
        known = [[id, self.places[id]] for id in ids if id in self.places]
        rows = self._ask(_EDGES, {"rows": known}) if known else []
        if len({row[0] for row in rows}) < len(ids):  # some have moved, or were never seen
            rows = self._ask(_EDGES, {"rows": [list(each) for each in self.locate(self._ask, ids).items()]})
        edges: dict[str, list[Edge]] = {row[0]: [] for row in rows}
        for id, leaves, type, other, stored, place in rows:
            if type is not None:
                ends = (id, type, other) if leaves else (other, type, id)
                edges[id].append(Edge(*ends, edge_properties(timeless(stored)), own_key(stored)))
                self.places[other] = place
        return edges

    def schema(self) -> Schema:
        """How many nodes have each label and how many edges each type, by name."""
        kinds, relations = (
            self._ask(_LABELS, {}),
            {type: int(number) for type, number in self._ask(_TYPES, {})},
        )
        labels: dict[str, int] = {}
        for names, number in kinds:
            for label in names:
                labels[label] = labels.get(label, 0) + number
        return Schema(
            dict(sorted(labels.items())),
            relations,
            sum(number for _, number in kinds),
            sum(relations.values()),
        )

    def search(self, words: str, limit: int) -> tuple[Node, ...]:
        """The nodes that share words with a query, best first; the server finds letters, here it is seen
        which are words.
        """
        wanted = folded_words(words)
        if not wanted or limit < 1:
            return ()
        rows = self._ask(
            _FOUND, {"words": sorted({*wanted, *words.lower().split()}), "most": 100 + 20 * limit}
        )
        index, nodes = WordIndex(), {}
        for id, labels, stored in rows:
            nodes[id] = Node(id, tuple(labels_of(labels, stored)), node_properties(timeless(stored)))
            index.add(nodes[id])
        return tuple(nodes[id] for id in index.best(wanted, limit))

    def holds(self, value: Scalar) -> bool:
        """Whether the graph holds a text or a number exactly; lists and dicts that the server cannot hold are
        looked into here.
        """
        text = value if isinstance(value, str) else None
        if any(self._ask(query, {"value": _storable(value), "text": text}) for query in _HOLDS):
            return True
        found = (stored for query in _MAY_HOLD for (stored,) in self._ask(query, {"piece": _spelled(value)}))
        return any(value in scalars_in(node_properties(timeless(stored))) for stored in found)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """The edges whose two ends are both among some nodes."""
        places = [list(each) for each in self.locate(self._ask, ids).items()]
        rows = self._ask(_BETWEEN, {"rows": places, "ids": dict.fromkeys(ids, True)}) if places else []
        return tuple(
            Edge(one, type, other, edge_properties(timeless(own)), own_key(own))
            for one, type, other, own in rows
        )

    def within(self, id: str, hops: int) -> dict[str, int]:
        """Each node within some hops, with the least number of hops, level by level."""
        depth: dict[str, int] = {}
        frontier = self.locate(self._ask, [id])
        for level in range(hops + 1):
            depth.update(dict.fromkeys(frontier, level))
            if level == hops or not frontier:
                break
            rows = self._ask(_NEXT, {"rows": [list(each) for each in frontier.items()]})
            frontier = {end: place for end, place in rows if end is not None and end not in depth}
            self.places.update(frontier)
        return depth

    def path(self, source: str, target: str, most: int) -> tuple[Edge, ...]:
        """A shortest path of at most so many edges, whichever way they point; none if there is none."""
        return path_between(source, target, most, _Frontiers(self.incident))


def _storable(value: Scalar) -> Scalar | None:
    """A value as a server can be told it; None, which is in no graph, for a number that is too large."""
    return value if not isinstance(value, int) or -(2**63) <= value < 2**63 else None


def _spelled(value: Scalar) -> str:
    """A value as it begins where it stands in JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return (
        str(int(value))
        if isinstance(value, int) or (math.isfinite(value) and value.is_integer() and abs(value) < 1e15)
        else repr(value)
    )


class _Frontiers:
    """The edges of a node, asked for together with those of all nodes that were found in the same step."""

    def __init__(self, incident: Callable[[list[str]], dict[str, list[Edge]]]):
        self._incident = incident
        self._edges: dict[str, list[Edge]] = {}
        self._together: dict[str, list[str]] = {}

    def __call__(self, id: str) -> list[Edge]:
        if id not in self._edges:
            ids = self._together.get(id, [id])
            self._edges |= {each: [] for each in ids} | self._incident(ids)
            ends = dict.fromkeys(
                end for each in ids for edge in self._edges[each] for end in (edge.source, edge.target)
            )
            found = [end for end in ends if end not in self._edges and end not in self._together]
            self._together |= dict.fromkeys(found, found)
        return self._edges[id]
