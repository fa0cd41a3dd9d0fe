"""Graphs over documents: who mentions whose title, which names they share, and what a language model took from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.names import Titles, called, capitalised
from kgot_lab.retrieval.stage import checked
from kgot_lab.types import Document, Edge, Node, Triple

MENTIONS, NAMES, IS_CALLED, SAYS = "mentions", "names", "is called", "says"


def title_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Documents, with an edge `mentions` to every other document whose title stands in the text."""
    documents = checked(documents)
    titles = Titles(documents)
    edges = [
        Edge(document.id, MENTIONS, id)
        for document in documents
        for name in dict.fromkeys(titles.mentioned(document.text))
        for id in titles[name]
        if id != document.id
    ]
    return PropertyGraph.of(_nodes(documents), edges)


def name_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Documents and, as bare nodes, the names that lead to another document.

    Edges: `is called` to the name in its title, `mentions` to a name in its text that is another's title, `names` to any other run of
    capitalised words that at least two documents hold. The node of a name is `name:` and the name.
    """
    documents = checked(documents)
    titles = Titles(documents)
    uses: Counter[str] = Counter()
    found: list[tuple[str, str, str]] = []
    for document in documents:
        kinds = dict.fromkeys(sorted(capitalised(document.text)), NAMES) | dict.fromkeys(titles.mentioned(document.text), MENTIONS)
        if own := called(document.title):
            kinds[own] = IS_CALLED
        uses.update(kinds.keys())
        found += [(document.id, kind, name) for name, kind in kinds.items()]
    edges = [Edge(id, kind, f"name:{name}") for id, kind, name in found if uses[name] > 1]
    return PropertyGraph.of(_nodes(documents), edges, dangling="add")


def phrase_graph(documents: Iterable[Document], triples: Mapping[str, Sequence[Triple]]) -> PropertyGraph:
    """The graph a language model built: documents with an edge `says` to each phrase of their triples, and the triples between phrases.

    `triples` holds those of each document, by its id. A phrase is a bare node, `phrase:` and its words in small letters.
    """
    documents = checked(documents)
    edges = []
    for document in documents:
        for triple in triples.get(document.id, ()):
            source, target = phrase_id(triple.subject), phrase_id(triple.object)
            edges += [Edge(source, triple.relation.lower(), target), Edge(document.id, SAYS, source), Edge(document.id, SAYS, target)]
    return PropertyGraph.of(_nodes(documents), edges, dangling="add")


def phrase_id(phrase: str) -> str:
    """The node of a phrase."""
    return f"phrase:{' '.join(phrase.lower().split())}"


def _nodes(documents: Sequence[Document]) -> list[Node]:
    return [Node(document.id, ("Document",), {"name": document.title, "text": document.text}) for document in documents]
