"""Propose where a graph should grow: matches of nodes with questions, and type and edges of a new node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.text.words import topic_words

# How well each node of a graph matches a question: by embeddings if there is an embedder, else by shared
# words.


class NodeMatches:
    """Matches of the nodes of a graph with questions, from 0 to 1.

    With an embedder a match is the cosine of the node's text with the question, at least 0. Without one it is
    the share of the question's words that the node contains, each word w weighted by log(1 + (n - n_w + .5) /
    (n_w + .5)) as in BM25, where n_w of n nodes contain it.
    """

    def __init__(self, graph: PropertyGraph, embedder: Embedder | None = None) -> None:
        self.graph, self._index = graph, graph_index(graph)
        self._dense = self._index.dense_retriever(embedder) if embedder is not None else None

    def scores(self, question: str) -> NDArray[np.float64]:
        """Return the match of each node with a question, shape (nodes,)."""
        scores = np.zeros(len(self.graph))
        if self._dense is not None:
            for id, score in self._dense.search(question).hits:
                scores[self.graph.row(id)] = min(1.0, max(0.0, score))
            return scores
        total, count = 0.0, len(self.graph)
        for word in topic_words(question):
            rows = self._index.rows_by_topic.get(word, ())
            weight = float(np.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5)))
            scores[list(rows)] += weight
            total += weight
        return scores / total if total else scores

    def unknown_words(self, question: str) -> tuple[str, ...]:
        """Return the topic words of a question that no node contains, in order."""
        known = self._index.rows_by_topic
        return tuple(word for stem, word in topic_words(question).items() if stem not in known)


MAX_EDGES = 3
_EDGE_COUNTS_ATTRIBUTE = "_learning_edges"


@dataclass(frozen=True)
class ProposedEdge:
    """An edge of a new node to or from an existing one, of the usual type between such node types."""

    end: str
    type: str
    outwards: bool  # from the new node

    def __str__(self) -> str:
        return f"-{self.type}-> {self.end}" if self.outwards else f"<-{self.type}- {self.end}"


@dataclass(frozen=True)
class ProposedRegion:
    """A node that seems to be missing.

    It has words for its name, possible types with shares, edges, and the questions that need it. The type is
    a guess from the surrounding types. On the bundled graph it is right no more often than chance, so a
    person chooses it.
    """

    words: tuple[str, ...]
    types: tuple[tuple[str, float], ...]
    edges: tuple[ProposedEdge, ...]
    questions: tuple[str, ...]
    messages: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that it would be joined with, the nearest first."""
        return tuple(edge.end for edge in self.edges)

    def __str__(self) -> str:
        likely = ", ".join(f"{name} {share:.0%}" for name, share in self.types[:3])
        return f"a node ({likely}) about {', '.join(self.words) or 'this'}: {'; '.join(map(str, self.edges))}"


def propose_region(
    matches: NodeMatches, question: str, message: str, prompt_nodes: Sequence[str] = ()
) -> ProposedRegion:
    """Propose where the answer to a question is missing from the graph.

    The region is next to the nodes in the prompt, the best first, and then those that match best.
    """
    graph, scores = matches.graph, matches.scores(question)
    order = [int(row) for row in np.argsort(-scores, kind="stable") if scores[row] > 0]
    nearest = list(
        dict.fromkeys([*(id for id in prompt_nodes if id in graph), *(graph.ids[row] for row in order[:10])])
    )[:10]
    votes: Counter[str] = Counter()
    for rank, id in enumerate(nearest):
        votes.update(dict.fromkeys(graph.node(id).labels, 1 / (1 + rank)))
    types = _ranked_shares(votes)
    edges = tuple(most_frequent_edge(graph, types[0][0], id) for id in nearest[:MAX_EDGES])
    return ProposedRegion(matches.unknown_words(question), types, edges, (question,), (message,))


def most_frequent_edge(graph: PropertyGraph, type: str, end: str) -> ProposedEdge:
    """Return the most frequent edge between nodes of a type and nodes of the type of `end`.

    If there is none, it is the most frequent edge type of the graph.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    for label in dict.fromkeys(graph.node(end).labels):
        for (source, name, target), count in _count_edges_by_types(graph).items():
            counts[name, True] += count * ((source, target) == (type, label))
            counts[name, False] += count * ((source, target) == (label, type))
    if not counts.total():
        relations = {(name, True): count for name, count in graph.types().items()}
        counts.update(relations or {("relates_to", True): 1})
    (name, outwards), _ = min(counts.items(), key=lambda each: (-each[1], each[0][0], not each[0][1]))
    return ProposedEdge(end, name, outwards)


def _count_edges_by_types(graph: PropertyGraph) -> Counter[tuple[str, str, str]]:
    """Count the edges by source type, edge type and target type. The counts are cached with the graph."""
    counts: Counter[tuple[str, str, str]] | None = vars(graph).get(_EDGE_COUNTS_ATTRIBUTE)
    if counts is None:
        counts = Counter()
        labels = dict(zip(graph.ids, graph.node_labels, strict=True))
        for edge in graph.edges:
            pairs = product(labels[edge.source], labels[edge.target])
            counts.update((source, edge.type, target) for source, target in pairs)
        vars(graph)[_EDGE_COUNTS_ATTRIBUTE] = counts  # cached with the graph, as its index is
    return counts


def merge_regions(regions: Sequence[ProposedRegion]) -> tuple[ProposedRegion, ...]:
    """Merge regions that share two of their ends, or a word that no node contains.

    Regions with the most questions come first, otherwise their order is kept.
    """
    merged: list[ProposedRegion] = []
    for region in regions:
        for index, other in enumerate(merged):
            shares_ends = len(set(region.ends) & set(other.ends)) >= 2
            if shares_ends or topic_words(" ".join(region.words)).keys() & topic_words(" ".join(other.words)):
                merged[index] = _merge(other, region)
                break
        else:
            merged.append(region)
    return tuple(sorted(merged, key=lambda one: -len(one.questions)))


def _merge(first: ProposedRegion, second: ProposedRegion) -> ProposedRegion:
    shares: Counter[str] = Counter()
    for region, weight in ((first, len(first.questions)), (second, len(second.questions))):
        shares.update({name: share * weight for name, share in region.types})
    # if both have an end, the edge of the first
    edges = {region.end: region for region in (*second.edges, *first.edges)}
    order = dict.fromkeys((*(end for end in first.ends if end in second.ends), *first.ends, *second.ends))
    words = tuple(dict.fromkeys((*first.words, *second.words)))
    questions = (*first.questions, *second.questions)
    ends = tuple(edges[end] for end in order)
    return ProposedRegion(words, _ranked_shares(shares), ends, questions, (*first.messages, *second.messages))


def _ranked_shares(counts: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return each count over their sum, the largest first."""
    total = sum(counts.values()) or 1.0
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return tuple((name, count / total) for name, count in ranked)
