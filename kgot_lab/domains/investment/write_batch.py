"""What is given to be written to the graph: each node once, edges in order, and ids that say whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgot_lab.domains.investment.view import LONGEST_ID, DatedNode, owned_prefix
from kgot_lab.errors import BadInput, require, shortly
from kgot_lab.graph.validation import fit_edge, fit_node, fit_text
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.types import Edge, Node


def one_each(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that were given, one for each id: what is said twice is joined."""
    found: dict[str, Node] = {}
    for node in nodes:
        node = fit_node(node)
        require_key(node.id, "the id of a node")
        before = found.get(node.id)
        if before is not None and before.labels != node.labels:
            raise BadInput(
                f"node {shortly(node.id)} is given with two types: {before.labels} and {node.labels}"
            )
        found[node.id] = Node(
            node.id,
            node.labels,
            dict(before.properties) | dict(node.properties) if before else node.properties,
        )
    return list(found.values())


def require_owner(owner: str) -> None:
    """Raise BadInput for what is no owner."""
    require(owner, str, "an owner is a text, '' for what all share")
    if owner:
        require_key(owner, "an owner")
    if "/" in owner:
        raise BadInput("an owner is a text without /, which ends it in the ids of its nodes")


def require_key(text: str, what: str) -> None:
    """Raise BadInput for what no table takes as an id or a name, saying what it is."""
    fit_text(text, what)
    if "\0" in text or len(text) > LONGEST_ID:
        raise BadInput(
            f"{what} is a text of at most {LONGEST_ID} characters without a NUL, not {shortly(text)}"
        )


def edge_in_order(edge: Edge, vocabulary: Vocabulary) -> Edge:
    """An edge that says the same both ways in the order of its ends; its key is the owner's, and not the
    caller's.
    """
    edge = fit_edge(edge)
    for end in (edge.source, edge.target):
        require_key(end, "an end of an edge")
    return vocabulary.in_order(edge)


def ownership_faults(nodes: Sequence[Node], there: Mapping[str, DatedNode], owner: str) -> Iterable[Fault]:
    """What is wrong with the ids and types of nodes that an owner is to have."""
    prefix = owned_prefix(owner)
    for node in nodes:
        where = f"node {shortly(node.id)}"
        if not node.id.startswith(prefix) or (not owner and "/" in node.id):
            do = (
                f"begin it with {shortly(prefix)}"
                if owner
                else "write it without / in its id, or give its owner"
            )
            yield Fault(
                "error", "its id does not say whose it is", where, do + "; investment_node makes such ids"
            )
        elif node.id in there and node.labels != there[node.id].node.labels:
            do = "give the new one another id, or expire this one"
            yield Fault("error", f"it is there with the type {there[node.id].node.labels[0]}", where, do)
