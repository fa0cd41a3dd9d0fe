"""The namespaces of a Bolt server's database: which there are, how much each holds, and how one goes."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.stores.cypher.apply import Turns
from kgot_lab.stores.cypher.connection import BoltLink
from kgot_lab.stores.protocol import GraphSize

_HELD = "MATCH (n) WHERE n._run IS NOT NULL AND n.id IS NOT NULL RETURN n._run, count(n)"
_EDGES = "MATCH (n)-[r]->(m) WHERE n._run IS NOT NULL AND n._run = m._run RETURN n._run, count(r)"
_STRANGE = "MATCH (n {_run: $run}) WHERE n.id IS NULL RETURN count(n)"
_DELETE = "MATCH (n {_run: $run}) WITH n LIMIT 10000 DETACH DELETE n RETURN count(n)"


def bolt_namespaces(link: BoltLink) -> Mapping[str, GraphSize]:
    """How many nodes and edges each namespace of a database holds, by name; raises StoreUnavailable."""
    with link.explained(
        lambda reason: StoreUnavailable(f"{link.name} does not understand this store: {reason}")
    ):
        nodes, edges = (dict(link.ask(query, {})) for query in (_HELD, _EDGES))
    return {
        name: GraphSize(int(nodes[name]), int(edges.get(name, 0)))
        for name in sorted(nodes)
        if isinstance(name, str)
    }


def delete_bolt_namespace(link: BoltLink, namespace: str) -> None:
    """Delete all that a namespace holds, and nothing else; raises BadInput where some of it was made by no
    store, and StoreUnavailable.
    """
    parameters = {"run": namespace}
    with link.explained(
        lambda reason: StoreUnavailable(f"{link.name} does not understand this store: {reason}")
    ):
        if link.ask(_STRANGE, parameters)[0][0]:
            raise BadInput(
                f"the namespace {namespace!r} of {link.name} has nodes that no store made; nothing was deleted"
            )
        turns = Turns(link, namespace)
        left = 1
        while left:
            left = link.retry(lambda: _deleted(turns, namespace))


def _deleted(turns: Turns, namespace: str) -> int:
    with turns.taken() as turn:
        number = int(turn.transaction.run(_DELETE, run=namespace).values()[0][0])
        if not number:
            turns.forget(turn)
        return number
