"""A graph that is written to in Python with NetworkX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from unicodedata import normalize

from kgot_lab.graph.changes import inverse
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.protocol import Dialect, Fact
from kgot_lab.stores.statements import python_paths, python_words
from kgot_lab.types import Edge, Json, Node, Triple


def fact_of(edge: Edge) -> str:
    """An edge as one line for a reader."""
    return f"{edge.source} --[{edge.type}]--> {edge.target}"


def properties_of(element: Node | Edge) -> str:
    """An element's properties as they follow it on a line."""
    return (
        " {" + ", ".join(f"{name}: {value}" for name, value in element.properties.items()) + "}"
        if element.properties
        else ""
    )


def _kinds(node: Node) -> str:
    return f" ({', '.join(node.labels)})" if node.labels else ""


_ARGUMENTS = ("subject", "relation", "object", "subject_label", "object_label")


def _adds(facts: Sequence[Fact]) -> str:
    return "\n".join(_add(*fact) for fact in facts)


def _is_plain(name: str) -> bool:
    """Whether a property can be told as an argument of add."""
    own = name.isidentifier() and normalize("NFKC", name) == name  # Python reads other spellings as that one
    return own and not iskeyword(name) and name not in _ARGUMENTS and name.rstrip("_") != "relation"


def _add(triple: Triple, properties: Mapping[str, Json]) -> str:
    """One call, and what no argument can be called beside it; a property named like the edge's type has an
    underscore in the graph.
    """
    plain = {name: value for name, value in properties.items() if _is_plain(name)}
    told = "".join(f", {name}={value!r}" for name, value in plain.items())
    line = f"add({triple.subject!r}, {triple.relation!r}, {triple.object!r}{told})"
    odd = {
        f"{name}_" if name.rstrip("_") == "relation" else name: value
        for name, value in properties.items()
        if name not in plain
    }
    return (
        f"{line}\nG.edges[{triple.subject!r}, {triple.object!r}, {triple.relation!r}].update({odd!r})"
        if odd
        else line
    )


PYTHON = Dialect(
    name="Python (NetworkX)",
    how_to_write=(
        "Write plain Python that changes the graph G, a networkx.MultiDiGraph; nx is imported. One statement for each fact.\n"
        "add(subject, relation, object, subject_label=..., object_label=..., **properties) adds a fact and its two nodes.\n"
        "node(id, label, **properties) adds a node or adds to it. A node's id is its name, as text; every node has a label.\n"
        "Values: text, numbers, True, False, lists of these. To remove: G.remove_node(id), G.remove_edge(subject, object, relation).\n"
        "Never assign to G. No imports, files or network are needed."
    ),
    how_to_read=(
        "Begin with result = and read the graph G, a networkx.MultiDiGraph, in plain Python. No sentences. It must not change G.\n"
        "facts(about=None, relation=None, hops=1) lists facts near a name, or all, as dicts: subject, relation, object, own properties.\n"
        "names(label=None) lists node ids. G.nodes[id] is a node's properties with its label; an edge's data has its type under relation."
    ),
    # in single quotes, since a model puts statements into JSON, where it forgets to escape double ones
    write_example="add('Marie Curie', 'won', 'Nobel Prize in Physics', subject_label='Person', object_label='Prize', year=1903)",
    read_example="result = facts('Marie Curie')",
    add=_adds,
    about=lambda names, hops: f"result = facts(about={list(names)!r}, hops={hops})",
    paths=python_paths,
    node=lambda node: f"{node.id}{_kinds(node)}{properties_of(node)}",
    edge=lambda edge: f"{fact_of(edge)}{properties_of(edge)}",
    own_words=python_words,
)


class InMemory(EmbeddedStore):
    """A store whose statements are Python."""

    dialect = PYTHON
    language = "python"


__all__ = ["PYTHON", "InMemory", "inverse"]
