"""Entity-linked retrieval: the question finds a first passage, and names in it lead to the next ones."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import dropwhile

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import CheckedRecord, check_arguments
from kgot_lab.embedding.embedder import Embedder, row_products
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import build_csr
from kgot_lab.retrieval.fusion import fused_ranking, rows_and_scores, scale_by_maximum, scale_by_range
from kgot_lab.retrieval.neighbours import LazyTexts, neighbour_steps
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import LEADING_STOP_WORDS, NAME_STOP_WORDS, normalise_nfc
from kgot_lab.types import Document, Edge, Node, Ranking, Triple, checked_documents, full_text

# Names in a text: titles of documents, and runs of capitalised words. No model or dictionary is needed.

_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s\b")
FINAL_BRACKETS = re.compile(r"\([^()]*\)\s*$")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LINKING_WORDS = r"(?:of|the|de|la|and|for|in|on|von|van|der|du|del|al|bin|ibn)"
# the capitals of Latin, Greek, Cyrillic and Armenian
CAPITAL_LETTERS = "".join(filter(str.isupper, map(chr, range(0x2000))))
CAPITALISED_RUN = re.compile(
    rf"[{CAPITAL_LETTERS}](?<!\w.)[\w.&'’-]*(?:\s+(?:{_LINKING_WORDS}\s+){{0,2}}[{CAPITAL_LETTERS}0-9][\w.&'’-]*)*"
)
NAME_SPLIT = re.compile(r"(?<=\S)\s+(?:of|and|in|for|on)\s+(?:the\s+)?")


def normalise_name(name: str) -> str:
    """Normalise a name for comparison: its words in lower case, without a possessive 's."""
    return " ".join(name_words(name)).lower()


def name_words(text: str) -> list[str]:
    """Split a text into words, without any possessive 's."""
    return _WORD.findall(_POSSESSIVE.sub("", normalise_nfc(text)))


def title_name(title: str) -> str:
    """Return the normalised name in a title, without a final part in brackets.

    The result is empty if the name is not distinctive.
    """
    name = normalise_name(FINAL_BRACKETS.sub("", title))
    return name if is_distinctive(name) else ""


def capitalised_names(text: str) -> set[str]:
    """Return the normalised runs of capitalised words in a text, and their parts.

    A run is also split at "of", "and", "in", "for" and "on". Common words at the start of a run are dropped
    ("The Beatles" gives beatles), so a common word that opens a sentence is not a name.
    """
    found = set()
    for sentence in SENTENCE_END.split(normalise_nfc(text)):
        for run in CAPITALISED_RUN.finditer(sentence):
            for name in (run.group(), *NAME_SPLIT.split(run.group())):
                found.add(" ".join(dropwhile(LEADING_STOP_WORDS.__contains__, normalise_name(name).split())))
    return {name for name in found if is_distinctive(name)}


class NameIndex:
    """An index of document names, to find them in a text.

    `names` returns the names of a document, by default that in its title.
    """

    def __init__(
        self, documents: Iterable[Document], names: Callable[[Document], Iterable[str]] | None = None
    ) -> None:
        self._ids: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            for name in names(document) if names else filter(None, [title_name(document.title)]):
                self._ids[name].append(document.id)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in self._ids:
            lengths[name.partition(" ")[0]].add(name.count(" ") + 1)
        # lengths in words of the names that begin with a word, longest first
        self._lengths = {word: sorted(some, reverse=True) for word, some in lengths.items()}

    def __getitem__(self, name: str) -> list[str]:
        """Return the ids of the documents with this name."""
        return self._ids.get(name, [])

    def find_names(self, text: str, *, cased: bool = True) -> list[str]:
        """Return the names of documents in a text, in order of appearance.

        Where two names overlap, the longer one is returned. With `cased`, only names that begin with a
        capital or a digit in the text count.
        """
        found: list[str] = []
        words = name_words(text)
        lowered = [word.lower() for word in words]
        position = 0
        while position < len(words):
            length = 0
            if not cased or words[position][0].isupper() or words[position][0].isdigit():
                lengths = self._lengths.get(lowered[position], ())
                matches = (n for n in lengths if " ".join(lowered[position : position + n]) in self._ids)
                length = next(matches, 0)
            if length:
                found.append(" ".join(lowered[position : position + length]))
            position += length or 1
        return found


def is_distinctive(name: str) -> bool:
    """Return whether a normalised name is specific enough to identify a document."""
    return bool(name) and (" " in name or (len(name) > 2 and name not in NAME_STOP_WORDS))


# Graphs over documents: by mentioned titles, by shared names, and by triples from a language model.

MENTIONS, NAME_LINK, IS_CALLED, SAYS, ALIKE = "mentions", "names", "is called", "says", "alike"
_NAME_PREFIX, PHRASE_PREFIX = "name:", "phrase:"
_BLOCK = 2_000  # phrases compared at a time, so that the cosines stay in memory


@check_arguments
def title_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Build a graph of documents in which `mentions` edges lead to documents whose title is in the text.

    Titles are found by `Titles.mentioned`.
    """
    documents = checked_documents(documents)
    titles = NameIndex(documents)
    edges = [
        Edge(document.id, MENTIONS, id)
        for document in documents
        for name in dict.fromkeys(titles.find_names(document.text))
        for id in titles[name]
        if id != document.id
    ]
    return PropertyGraph.of(_document_nodes(documents), edges)


def name_graph(
    documents: Iterable[Document],
    names_in: Callable[[Document], Iterable[str]] = lambda document: capitalised_names(document.text),
) -> PropertyGraph:
    """Build a graph of documents, in the order of their ids, and the names that link them.

    Names are nodes without a text, with the id `name:` and the name. Edges: `is called` to the name in a
    document's title, `mentions` to a name in its text that is the title of another, `names` to any other name
    that at least two documents hold. Those other names are runs of capitalised words, or what `names_in` returns
    for a document. It must return names in the form of `normalise_name`.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    titles = NameIndex(documents)
    uses: Counter[str] = Counter()
    found: list[tuple[str, str, str]] = []
    for document in documents:
        kinds = dict.fromkeys(sorted(names_in(document)), NAME_LINK)
        kinds |= dict.fromkeys(titles.find_names(document.text), MENTIONS)
        if own := title_name(document.title):
            kinds[own] = IS_CALLED
        uses.update(kinds.keys())
        found += [(document.id, kind, name) for name, kind in kinds.items()]
    edges = [Edge(id, kind, _NAME_PREFIX + name) for id, kind, name in found if uses[name] > 1]
    return PropertyGraph.of([*_document_nodes(documents), *_hub_nodes(edges, _NAME_PREFIX)], edges)


def phrase_graph(
    documents: Iterable[Document],
    triples: Mapping[str, Sequence[Triple]],
    *,
    similarity: tuple[Embedder, float] | None = None,
) -> PropertyGraph:
    """Build a graph from the triples that a language model extracted from documents.

    Each document has an edge `says` to each phrase of its triples, and each triple is an edge between two
    phrases. `triples` maps the id of a document to its triples. A phrase is a node without a text, with the
    id `phrase:` and its words in lower case. With `similarity`, an embedder and a minimum cosine, phrases with
    nearly the same meaning are joined by an edge `alike` (HippoRAG does this above .8).
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
    if similarity:
        ends = {end for edge in edges for end in (edge.source, edge.target)}
        edges += _similarity_edges(sorted(end for end in ends if end.startswith(PHRASE_PREFIX)), *similarity)
    return PropertyGraph.of([*_document_nodes(documents), *_hub_nodes(edges, PHRASE_PREFIX)], edges)


def _similarity_edges(phrases: Sequence[str], embedder: Embedder, least: float) -> Iterator[Edge]:
    """Yield an edge for each pair of phrases whose cosine is above `least`."""
    matrix = embedder.embed([phrase.removeprefix(PHRASE_PREFIX) for phrase in phrases])
    for start in range(0, len(phrases), _BLOCK):
        for first, second in np.argwhere(matrix[start : start + _BLOCK] @ matrix.T > least).tolist():
            if start + first < second:
                yield Edge(phrases[start + first], ALIKE, phrases[second])


def phrase_id(phrase: str) -> str:
    """Return the node id of a phrase."""
    return PHRASE_PREFIX + " ".join(phrase.lower().split())


def _hub_nodes(edges: Iterable[Edge], prefix: str) -> list[Node]:
    """Return the nodes with an id prefix at the ends of edges: they have a name for paths, and no text."""
    ends = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    return [Node(id, (), {"name": id.removeprefix(prefix)}) for id in ends if id.startswith(prefix)]


def _document_nodes(documents: Sequence[Document]) -> list[Node]:
    return [
        Node(document.id, ("Document",), {"name": document.title, "text": document.text})
        for document in documents
    ]


_Floats = NDArray[np.float64]
Edges = NDArray[np.int32]


@dataclass(frozen=True)
class LinkWeights(CheckedRecord):
    """Weights of the links between passages.

    Chosen on the dev split of the three bundled sets together.
    """

    hops: int = 5  # passages chosen one after the other
    asked: float = 0.5  # added to a passage whose title is in the question
    title: float = 1.0  # weight of a link by title, half of it by similarity to the question
    shared: float = 0.7  # weight of a shared name, times its rarity and the similarity to the question
    repeated: float = 0.3  # penalty for similarity to a chosen passage
    common: int = 100  # a name in more passages than this links only passages with this title


def follow(
    documents: Iterable[Document],
    embedder: Embedder,
    weights: LinkWeights = LinkWeights(),
    *,
    graph: PropertyGraph | None = None,
) -> Stage:
    """Re-rank passages greedily: repeatedly take the best one left and follow the names in it.

    own(d) = earlier score (at least 0) / largest, + asked if the question holds the title of d. value(d) =
    own(d) - repeated * (largest cosine with a chosen passage, at least 0) + the largest over chosen passages
    p and names n that both hold of own(p), at most 1, times link(p, n, d).

    If n is the title of one of the two, and is a title or a mention in the other, link = title * (1 +
    likeness) / 2 / sqrt(passages that p is linked to in this way), else 0. If n is neither in the question
    nor in more than `common` passages, shared * rarity * likeness is added. Likeness is the min-max
    normalised cosine of d with the question. Rarity is log(N / holders) / log(N).

    The names are those of `name_graph(documents)`, or of a similar graph, in which names are nodes without a
    text. The chosen passages come first in their order, 1 point apart, then all others by value. A ranking
    without hits is unchanged. Raises BadInput for a graph of other documents, and for hits that are unknown,
    occur twice, or have a score that is not finite.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    row_of = {id: row for row, id in enumerate(ids)}
    links = name_graph(documents) if graph is None else graph
    names = _NameLinks(_checked_name_graph(links, ids), len(ids), weights.common)
    titles = NameIndex(documents)
    matrix = embedder.embed([full_text(document) for document in documents])
    shown = [document.title or document.id for document in documents]

    def step(ranking: Ranking) -> Ranking:
        if not ranking.hits:
            return ranking
        value = np.zeros(len(ids))
        rows, scores = rows_and_scores(ranking, ids, row_of)
        value[rows] = scale_by_maximum(scores)
        named_ids = {id for name in titles.find_names(ranking.query.text, cased=False) for id in titles[name]}
        value[[row_of[id] for id in named_ids]] += weights.asked
        question_vector = embedder.embed([ranking.query.text])[0]
        likeness = scale_by_range(row_products(matrix, question_vector).astype(np.float64))
        chosen = _ChosenPassages(value, likeness, normalise_name(ranking.query.text))
        for _ in range(min(weights.hops, len(ids))):
            chosen.choose(names, matrix, weights)
        return chosen.ranking(ranking, ids, shown, names)

    usual = LinkWeights()
    changed = [
        f"{field.name}={getattr(weights, field.name)}"
        for field in fields(weights)
        if getattr(weights, field.name) != getattr(usual, field.name)
    ]
    options = ", ".join([*changed, *(["other names"] if graph is not None else [])])
    return Stage(f"follow({options})" if options else "follow", step)


def _checked_name_graph(graph: PropertyGraph, ids: list[str]) -> PropertyGraph:
    """Return a name graph after checking its layout.

    Raises BadInput unless it begins with these documents in the order of their ids and each edge leads from a
    document to a name.
    """
    if list(graph.ids[: len(ids)]) != ids:
        problem = "the graph of names must begin with these documents in the order of their ids"
        raise BadInput(f"{problem}; build it with name_graph(documents)")
    if (graph.sources >= len(ids)).any() or (graph.targets < len(ids)).any():
        problem = "the edges of a graph of names lead from documents to names"
        raise BadInput(f"{problem}; build it with name_graph(documents)")
    return graph


class _NameLinks:
    """The names that link passages, as row numbers."""

    def __init__(self, graph: PropertyGraph, size: int, common: int) -> None:
        # the graph's first nodes are the documents, in this order
        rows, columns = (graph.sources, graph.targets - size)
        self._passage, self._name = rows, columns  # of each edge
        self._kind = np.array(graph.type_names or [""])[graph.type_codes]
        self._called, self._telling = self._kind == IS_CALLED, self._kind != NAME_LINK
        self._texts = [f" {id.removeprefix('name:')} " for id in graph.ids[size:]]
        self._of, self._held_by = build_csr(rows, columns, size), build_csr(columns, rows, len(self._texts))
        holders = np.diff(self._held_by.indptr)
        self._rarity = np.log(size / np.maximum(holders, 1)) / np.log(max(size, 2))
        self._common = holders > common

    def links(
        self, row: int, question: str, likeness: _Floats, reach: LinkWeights
    ) -> tuple[Edges, Edges, _Floats]:
        """Return the links from a passage through a name to other passages.

        Three arrays: the edge to the name, the edge of the other passage, and the strength of the link.
        """
        outward = self._of.edges[self._of.indptr[row] : self._of.indptr[row + 1]]
        places, owners = neighbour_steps(self._held_by, self._name[outward])
        first, last = outward[owners], self._held_by.edges[places]
        other = self._passage[last] != row
        first, last = first[other], last[other]
        found, names = self._passage[last], self._name[first]
        by_title = (self._called[last] & self._telling[first]) | (self._called[first] & self._telling[last])
        fan = max(1, len(np.unique(found[by_title])))
        asked = {name for name in self._name[outward].tolist() if self._texts[name] in f" {question} "}
        idle = self._common[names] | np.isin(names, list(asked))
        shared = reach.shared * self._rarity[names] * likeness[found] * ~idle
        return first, last, by_title * reach.title * (1 + likeness[found]) / 2 / np.sqrt(fan) + shared

    def passages(self, edges: Edges) -> Edges:
        """Return the passage at the end of each edge."""
        return self._passage[edges]

    def path(self, titles: list[str], first: int, last: int) -> str:
        """Format the path from one passage through a name to another."""
        start = titles[self._passage[first]]
        end = titles[self._passage[last]]
        name = self._texts[self._name[first]].strip()
        return f"{start} --[{self._kind[first]}]--> ({name}) <--[{self._kind[last]}]-- {end}"


class _ChosenPassages:
    """The passages chosen so far, and the links from them."""

    def __init__(self, value: _Floats, likeness: _Floats, question: str) -> None:
        self._value, self._likeness, self._question = value, likeness, question
        self._linked, self._repeated = np.zeros(len(value)), np.zeros(len(value))
        # the two edges of the strongest link to each
        self._first, self._last = (np.full(len(value), -1, np.int32), np.full(len(value), -1, np.int32))
        self._chosen: list[int] = []
        self._total = value

    def choose(self, names: _NameLinks, matrix: NDArray[np.float32], reach: LinkWeights) -> None:
        """Choose the best passage left and follow its names."""
        left = self._total.copy()
        left[self._chosen] = -np.inf
        row = int(np.argmax(left))
        self._chosen.append(row)
        first, last, strength = names.links(row, self._question, self._likeness, reach)
        gain = min(1.0, self._value[row]) * strength
        # chosen passages get no link
        gain[np.isin(names.passages(last), self._chosen)] = 0.0
        order = np.argsort(gain, kind="stable")  # ascending, so that the strongest link is written last
        order = order[gain[order] > self._linked[names.passages(last[order])]]
        rows = names.passages(last[order])
        self._linked[rows], self._first[rows], self._last[rows] = gain[order], first[order], last[order]
        self._repeated = np.maximum(self._repeated, row_products(matrix, matrix[row]))
        self._total = self._value + self._linked - reach.repeated * self._repeated

    def ranking(self, earlier: Ranking, ids: list[str], titles: list[str], names: _NameLinks) -> Ranking:
        """Rank the chosen passages first, one point apart, then the others by their value."""
        scores = self._total.copy()
        scores[self._chosen] = scores.max() + np.arange(len(self._chosen), 0, -1)
        linked = np.flatnonzero(self._linked).tolist()
        found = [ids[row] for row in linked]

        def describe(number: int) -> str:
            row = linked[number]
            return names.path(titles, int(self._first[row]), int(self._last[row]))

        links = fused_ranking(earlier.query, found, self._linked[linked], ())
        links = replace(links, system="linked", paths=LazyTexts(found, describe))
        return fused_ranking(earlier.query, ids, scores, ((1.0, earlier), (1.0, links)))
