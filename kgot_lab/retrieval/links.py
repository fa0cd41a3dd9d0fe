"""Graphs over documents: who mentions whose title, which names they share, and what a language model took
from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import Titles, called, capitalised
from kgot_lab.types import Document, Edge, Node, Triple, checked_documents

MENTIONS, NAME_LINK, IS_CALLED, SAYS, ALIKE = "mentions", "names", "is called", "says", "alike"
_NAME, PHRASE = "name:", "phrase:"
_BLOCK = 2_000  # phrases compared at a time, so that the cosines stay in memory


def title_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Documents, with an edge `mentions` to every other document whose title stands in the text, as
    `Titles.mentioned` finds them.
    """
    documents = checked_documents(documents)
    titles = Titles(documents)
    edges = [
        Edge(document.id, MENTIONS, id)
        for document in documents
        for name in dict.fromkeys(titles.mentioned(document.text))
        for id in titles[name]
        if id != document.id
    ]
    return PropertyGraph.of(_nodes(documents), edges)


def name_graph(
    documents: Iterable[Document],
    held: Callable[[Document], Iterable[str]] = lambda document: capitalised(document.text),
) -> PropertyGraph:
    """Documents in the order of their ids and, as bare nodes, the names that lead to another document.

    Edges: `is called` to the name in its title, `mentions` to a name in its text that is another's title,
    `names` to any other that at least two documents hold: a run of capitalised words, or what `held` gives
    for a document, written as `plain` does. The node of a name is `name:` and the name.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    titles = Titles(documents)
    uses: Counter[str] = Counter()
    found: list[tuple[str, str, str]] = []
    for document in documents:
        kinds = dict.fromkeys(sorted(held(document)), NAME_LINK) | dict.fromkeys(
            titles.mentioned(document.text), MENTIONS
        )
        if own := called(document.title):
            kinds[own] = IS_CALLED
        uses.update(kinds.keys())
        found += [(document.id, kind, name) for name, kind in kinds.items()]
    edges = [Edge(id, kind, _NAME + name) for id, kind, name in found if uses[name] > 1]
    return PropertyGraph.of([*_nodes(documents), *_hubs(edges, _NAME)], edges)


def phrase_graph(
    documents: Iterable[Document],
    triples: Mapping[str, Sequence[Triple]],
    *,
    alike: tuple[Embedder, float] | None = None,
) -> PropertyGraph:
    """The graph a language model built: documents with an edge `says` to each phrase of their triples, and
    the triples between phrases.

    `triples` holds those of each document, by its id. A phrase is a bare node, `phrase:` and its words in
    small letters. With `alike`, an embedder and a least cosine, phrases that mean nearly the same are joined
    by an edge `alike` (as HippoRAG does, over .8).
    """
    documents = checked_documents(documents)
    edges = []
    for document in documents:
        for triple in triples.get(document.id, ()):
            source, target = phrase_id(triple.subject), phrase_id(triple.object)
            edges += [
                Edge(source, triple.relation.lower(), target),
                Edge(document.id, SAYS, source),
                Edge(document.id, SAYS, target),
            ]
    if alike:
        edges += _alike(
            sorted({end for edge in edges for end in (edge.source, edge.target) if end.startswith(PHRASE)}),
            *alike,
        )
    return PropertyGraph.of([*_nodes(documents), *_hubs(edges, PHRASE)], edges)


def _alike(phrases: Sequence[str], embedder: Embedder, least: float) -> Iterator[Edge]:
    """An edge for each pair of phrases whose cosine is above the least."""
    matrix = embedder.embed([phrase.removeprefix(PHRASE) for phrase in phrases])
    for start in range(0, len(phrases), _BLOCK):
        for first, second in np.argwhere(matrix[start : start + _BLOCK] @ matrix.T > least).tolist():
            if start + first < second:
                yield Edge(phrases[start + first], ALIKE, phrases[second])


def phrase_id(phrase: str) -> str:
    """The node of a phrase."""
    return PHRASE + " ".join(phrase.lower().split())


def _hubs(edges: Iterable[Edge], prefix: str) -> list[Node]:
    """The bare nodes at the ends of some edges: they have a name, which a path shows, and no text."""
    ends = dict.fromkeys(
        end for edge in edges for end in (edge.source, edge.target) if end.startswith(prefix)
    )
    return [Node(id, (), {"name": id.removeprefix(prefix)}) for id in ends]


def _nodes(documents: Sequence[Document]) -> list[Node]:
    return [
        Node(document.id, ("Document",), {"name": document.title, "text": document.text})
        for document in documents
    ]
