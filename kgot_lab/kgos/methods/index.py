"""An index of a graph for the query methods, computed when first needed and cached with the graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder, checked_embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, Ints
from kgot_lab.kgos.extraction.facts import CALLS_RESOLVED
from kgot_lab.kgos.methods.formatting import CALLS_NOTE, NodeHit
from kgot_lab.kgos.schemas.dimensions import DimensionColumn, dimension_column
from kgot_lab.retrieval.dense import dense, dense_from_vectors
from kgot_lab.retrieval.fusion import ranking_scores, rows_and_scores, strongest
from kgot_lab.retrieval.lexical import INTENT_VERBS, bm25, fts5, like
from kgot_lab.retrieval.neighbours import Links, Rows, StepIndices, distinct_integers, neighbour_steps
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.cleaning import plain_text
from kgot_lab.text.words import content_words, folded_name, name_tokens, stem, topic_words
from kgot_lab.types import Document, Edge, HitColumns, Json, Ranking, full_text

# The texts of a graph: names, properties, and the retrievers over them, each built when first needed.


def node_name(id: str, properties: Mapping[str, object]) -> str:
    """Return the name or title of a node, or else its id."""
    return str(properties.get("name") or properties.get("title") or id)


def group_rows(sets: Sequence[Iterable[str]]) -> dict[str, Ints]:
    """Map each word to the rows of the sets that contain it."""
    found: dict[str, list[int]] = {}
    for row, each in enumerate(sets):
        for word in dict.fromkeys(each):
            found.setdefault(word, []).append(row)
    return {word: np.array(rows, np.int32) for word, rows in found.items()}


def _property_texts(value: Json, without: Collection[str] = ()) -> list[str]:
    """Return every text in the properties of a node, without the names of its properties.

    A name such as "description" says nothing about the node.
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key, each in value.items() if key not in without for text in _property_texts(each)]
    return [text for v in value for text in _property_texts(v)] if isinstance(value, list | tuple) else []


def _words_of(text: str) -> str:
    """Replace underscores with spaces, so that query_optimization is two words, and what no text holds."""
    return plain_text(text).replace("_", " ")


Reals = NDArray[np.float64]
BoolColumn = NDArray[np.bool_]
_INDEX_ATTRIBUTE = "_index_of_methods"  # under this name a graph keeps its index


class LevelEdges(NamedTuple):
    """Edges from one level of a search to the next: rows of the parents and children, types with directions
    (see `Links.ways`), and positions in the links.
    """

    parents: Rows
    children: Rows
    ways: Ints
    places: StepIndices


class GraphIndex:
    """The texts, neighbours, types and dimensions of a graph by row, and the retrievers over its texts.

    A copy in another process computes them again.
    """

    def __init__(self, graph: PropertyGraph) -> None:
        self.graph = graph
        self._dense_retrievers: dict[str, Stage] = {}
        self._retrievers_of_vectors: dict[tuple[StoredVectors, str], Stage] = {}
        self._columns: dict[str, DimensionColumn] = {}
        self.of_intent: dict[str, Reals] = {}  # scores of each node by intent, from `intent_scores`
        self._weights: dict[str, Reals | None] = {}
        self._leads_to: dict[str, dict[int, list[int]]] = {}

    def __reduce__(self) -> tuple[type[GraphIndex], tuple[PropertyGraph]]:
        return GraphIndex, (self.graph,)

    @cached_property
    def calls_note(self) -> str:
        """How many calls of a graph of code have a known callee, or "" for another graph."""
        found = (
            str(about[CALLS_RESOLVED]) for about in self.graph.node_properties if CALLS_RESOLVED in about
        )
        shares = "; ".join(found)
        return f"{CALLS_NOTE}{shares}" if shares else ""

    # --- texts, and the retrievers over them ---

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name or title of each node, or else its id."""
        return tuple(map(node_name, self.graph.ids, self.graph.node_properties))

    @cached_property
    def folded_names(self) -> tuple[tuple[str, ...], ...]:
        """The name, aliases, names in other languages and id in its file of each node, as they are looked up."""
        rows = zip(self.names, self.graph.node_properties, strict=True)
        return tuple(tuple(map(folded_name, (name, *_other_names(known)))) for name, known in rows)

    @cached_property
    def label_texts(self) -> tuple[str, ...]:
        """The labels of each node, as a text."""
        return tuple(map(" ".join, self.graph.node_labels))

    @cached_property
    def name_stems(self) -> tuple[frozenset[str], ...]:
        """The stems of the words in each name."""
        names = map(_words_of, self.names)
        return tuple(frozenset(stem(word) for word in content_words(name)) for name in names)

    @cached_property
    def rows_by_topic(self) -> dict[str, Ints]:
        """The rows of the nodes that hold each topic word, by its stem."""
        return group_rows([topic_words(full_text(document)) for document in self.documents])

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Each node as a document: its name as the title, then its labels and the texts of its properties."""
        return tuple(
            Document(
                id,
                _words_of(f"{kind}. {' '.join(_property_texts(known, ('name', 'title')))}"),
                _words_of(name),
            )
            for id, name, kind, known in zip(
                self.graph.ids, self.names, self.label_texts, self.graph.node_properties, strict=True
            )
        )

    @cached_property
    def substring_retriever(self) -> Stage:
        """SQL LIKE over names, labels and properties."""
        return like(self.documents)

    @cached_property
    def bm25(self) -> Stage:
        """BM25 over the documents."""
        return bm25(self.documents)

    @cached_property
    def fts5(self) -> Stage:
        """SQLite's full-text search over the documents."""
        return fts5(self.documents)

    @cached_property
    def text(self) -> Stage:
        """The text retriever of KG-OS: the larger of BM25 and FTS5, each over its maximum."""
        return strongest(self.bm25, self.fts5)

    @cached_property
    def goal_retriever(self) -> Stage:
        """The text retriever for goals: BM25 (k1 1.5, b .75, the intent verbs weighted five times) and FTS5.

        FTS5 cannot weight words.
        """
        return strongest(bm25(self.documents, k1=1.5, b=0.75, emphasis=INTENT_VERBS), self.fts5)

    def dense_retriever(self, embedder: Embedder) -> Stage:
        """Return the dense retriever over node texts, which ranks by cosine with the query.

        The vectors are computed when an embedder is first used.
        """
        checked_embedder(embedder)
        if embedder.digest not in self._dense_retrievers:
            self._dense_retrievers[embedder.digest] = dense(self.documents, embedder)
        return self._dense_retrievers[embedder.digest]

    def dense_retriever_from_vectors(self, vectors: StoredVectors, embedder: Embedder) -> Stage:
        """Return the dense retriever over stored node vectors, which ranks by cosine with the query.

        Raises BadInput if no node has a vector or if the embedder is not that of the vectors.
        """
        checked_embedder(embedder)
        key = vectors, embedder.digest
        if key not in self._retrievers_of_vectors:
            rows = [row for row, id in enumerate(vectors.ids) if id in self.graph]
            if not rows:
                near = ", ".join(map(repr, vectors.ids[:3]))
                raise BadInput(
                    f"none of the {len(vectors):,} stored vectors is of a node: their ids are {near} …, those of nodes "
                    f"{', '.join(map(repr, self.graph.ids[:3]))} …"
                )
            of_nodes = StoredVectors(
                tuple(vectors.ids[row] for row in rows), vectors.matrix[rows], vectors.model, vectors.digest
            )
            self._retrievers_of_vectors[key] = dense_from_vectors(of_nodes, embedder)
        return self._retrievers_of_vectors[key]

    # --- nodes ---

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each id."""
        return {id: row for row, id in enumerate(self.graph.ids)}

    def row(self, id: str) -> int:
        """Return the row of a node.

        Raises UnknownName with ids that are similar in spelling or by the name of the node.
        """
        try:
            return self.graph.row(id)
        except UnknownName:
            pass
        # in foreign files a label may be a name
        alone = {label: int(rows[0]) for label, rows in self.rows_by_label.items() if len(rows) == 1}
        called = alone | {each: row for row, each in reversed(list(enumerate(self.names)))}
        called |= {each: row for row, each in enumerate(self.graph.ids)}
        folded = {each.casefold(): row for each, row in called.items()}
        near = get_close_matches(str(id)[:60].casefold(), folded, n=5)
        ids = list(dict.fromkeys(self.graph.ids[folded[each]] for each in near))
        raise UnknownName("node", id, ids or self.graph.ids[:20], meant=ids[0] if ids else "") from None

    @check_arguments
    def rows(self, ids: Iterable[str]) -> Ints:
        """Return the rows of some ids, each once, in their order.

        Raises BadInput for one text in place of a list, and UnknownName.
        """
        return np.array(list(dict.fromkeys(map(self.row, ids))), np.int32)

    def identity(self, row: int) -> tuple[str, str, str]:
        """Return the id, the name and the type of a node."""
        return self.graph.ids[row], self.names[row], self.label_texts[row]

    @cached_property
    def rows_by_id(self) -> StepIndices:
        """The rows in the order of ids."""
        return np.array(sorted(range(len(self.graph)), key=self.graph.ids.__getitem__), np.int64)

    @cached_property
    def sorted_ids(self) -> list[str]:
        """The ids in their order, as retrievers have them."""
        return sorted(self.graph.ids)

    @cached_property
    def name_order(self) -> StepIndices:
        """The position of each node in the order of ids, which breaks ties."""
        return np.argsort(self.rows_by_id)

    def rows_and_scores(self, ranking: Ranking) -> tuple[StepIndices, Reals]:
        """Return the rows of the hits of a ranking, and their scores. Raises BadInput if a hit is no node."""
        hits = ranking.hits
        if isinstance(hits, HitColumns) and (hits.ids is self.sorted_ids or hits.ids == self.sorted_ids):
            return self.rows_by_id[hits.rows], ranking_scores(ranking)
        return rows_and_scores(ranking, self.graph.ids, self.row_of)

    def hit_columns(self, rows: StepIndices, scores: Reals) -> HitColumns:
        """Return rows with scores, best first, as the hits of a ranking, which fuse fast with those of retrievers."""
        return HitColumns(self.sorted_ids, self.name_order[rows], scores)

    def rows_by_score(self, scores: Reals) -> StepIndices:
        """Return the rows of the nodes with a score, from best to worst, ties in the order of ids."""
        rows = np.flatnonzero(scores)
        return rows[np.lexsort((self.name_order[rows], -scores[rows]))]

    @cached_property
    def rows_by_label(self) -> dict[str, Ints]:
        """The rows of the nodes with each label."""
        return group_rows(self.graph.node_labels)

    @cached_property
    def rows_by_name_word(self) -> dict[str, Ints]:
        """The rows of the nodes with each word in their name."""
        return group_rows(tuple(map(set, map(name_tokens, self.names))))

    @cached_property
    def name_lengths(self) -> Ints:
        """The number of different words in each name."""
        return np.array([len(set(name_tokens(name))) for name in self.names], np.int32)

    def dimension(self, name: str) -> DimensionColumn:
        """Return the values of a dimension, by row.

        Raises UnknownName if no node has it.
        """
        if name not in self._columns:
            self._columns[name] = dimension_column(self.graph, name)
        return self._columns[name]

    def hits(
        self, rows: Sequence[int], scores: Sequence[float], why: Iterable[str] | None = None
    ) -> tuple[NodeHit, ...]:
        """Convert rows with their scores and reasons to hits."""
        ids, names, kinds = (map(c.__getitem__, rows) for c in (self.graph.ids, self.names, self.label_texts))
        return tuple(map(NodeHit, ids, names, kinds, scores, repeat("") if why is None else why))

    # --- edges ---

    @cached_property
    def links(self) -> Links:
        """Every edge except self-loops, as steps from both of its ends."""
        return Links.of(self.graph)

    @cached_property
    def neighbours(self) -> Csr:
        """The distinct neighbours of each node in either direction, without the node itself."""
        return self.links.distinct_neighbours

    @cached_property
    def degrees(self) -> StepIndices:
        """The number of neighbours of each node.

        Parallel edges count once, so that no centrality is above 1.
        """
        return np.diff(self.neighbours.indptr)

    @cached_property
    def centrality(self) -> Reals:
        """Degree centrality: neighbours over all other nodes, or 0 for the only node of a graph."""
        return self.degrees / max(len(self.graph) - 1, 1)

    @cached_property
    def diversity(self) -> Reals:
        """The share of the graph's edge types that each node has, without self-loops."""
        kinds = max(len(self.graph.types()), 1)
        codes = max(len(self.graph.type_names), 1)
        touching = distinct_integers(
            self.links.origins * np.int64(codes) + self.links.step_kinds // 2, len(self.graph) * codes
        )
        return np.bincount(touching // codes, minlength=len(self.graph)) / kinds

    @check_arguments
    def edge_type_weights(
        self, types: Iterable[str] | None = None, *, along: float = 1.0, against: float = 1.0
    ) -> Reals:
        """Return the weight of each edge type in each direction.

        It is `along` or `against` for these types and 0 for others. Unknown types are ignored. If `types` is
        a mapping, its numbers multiply the weights. Raises BadInput for one text in place of a list.
        """
        weights = np.zeros((len(self.graph.type_names), 2))
        names = self.graph.type_names if types is None else types
        wanted = names if isinstance(names, Mapping) else dict.fromkeys(names, 1.0)
        for code, name in enumerate(self.graph.type_names):
            if name in wanted:
                weights[code] = along * wanted[name], against * wanted[name]
        return weights.ravel()

    @check_arguments
    def absent_types(self, types: Iterable[str] | None) -> list[str]:
        """Return which of some edge types no edge has, sorted.

        Raises UnknownName if no edge has any of them, and BadInput for one text in place of a list.
        """
        wanted, known = set(types or ()), set(self.graph.type_names)
        if wanted and known and not wanted & known:
            raise UnknownName("edge type", min(wanted), known)
        return sorted(wanted - known)

    def steps_from(self, rows: Ints, type_weights: Reals) -> tuple[StepIndices, StepIndices]:
        """Return the steps from some rows over types with a weight above 0, and the row each comes from."""
        steps, owners = neighbour_steps(self.links.ends, rows)
        is_followed = type_weights[self.links.step_kinds[steps]] > 0
        return steps[is_followed], owners[is_followed]

    def next_level(self, depths: Ints, level: Rows, type_weights: Reals) -> LevelEdges:
        """Return all edges from the nodes of a level to unreached nodes (depth -1), over types with weight.

        If most edges leave the level, the search runs from the unreached nodes. The same edges are found.
        """
        ends, ways = self.links.ends, self.links.step_kinds
        outwards = 2 * (ends.indptr[level + 1] - ends.indptr[level]).sum() <= len(ends.indices)
        start, wanted = (level, -1) if outwards else (np.flatnonzero(depths < 0), depths[level[0]])
        steps, owners = neighbour_steps(ends, start)
        selected = np.flatnonzero(depths[ends.indices[steps]] == wanted)
        steps, owners = steps[selected], owners[selected]
        directions = ways[steps] if outwards else ways[steps] ^ 1
        if not type_weights.all():
            selected = np.flatnonzero(type_weights[directions])
            steps, owners, directions = steps[selected], owners[selected], directions[selected]
        near, far = start[owners], ends.indices[steps]
        parents, children = (near, far) if outwards else (far, near)
        return LevelEdges(parents, children, directions, steps)

    def edge(self, row: int) -> Edge:
        """Return the edge in a row of the graph."""
        return self.graph.edges[int(row)]

    def outgoing(self, row: int, types: Collection[str]) -> list[int]:
        """Return the targets of a row's edges of these types, each once, in edge order.

        A self-loop leads nowhere.
        """
        return self.edge_ends([row], types).get(row, [])

    def edge_ends(self, rows: Sequence[int], types: Collection[str]) -> dict[int, list[int]]:
        """Map each of some rows to the targets of its edges of these types, each once, in edge order.

        A row without such edges is left out.
        """
        some = np.array(rows, np.int32)
        steps, owners = self.steps_from(some, self.edge_type_weights(types, against=0.0))
        found: dict[int, dict[int, None]] = {}
        for row, end in zip(some[owners].tolist(), self.links.ends.indices[steps].tolist(), strict=True):
            found.setdefault(row, {})[end] = None
        return {row: list(ends) for row, ends in found.items()}

    def targets_by_row(self, type: str) -> dict[int, list[int]]:
        """Map each row to the targets of its edges of one type, each once.

        A row without such edges is left out.
        """
        if type not in self._leads_to:
            self._leads_to[type] = self.edge_ends(range(len(self.graph)), (type,))
        return self._leads_to[type]

    def weights(self, name: str) -> Reals | None:
        """Return the weight of each edge by a property, 1 if an edge lacks it, or None if all do.

        Raises BadInput if a weight is not above 0.
        """
        if name not in self._weights:
            self._weights[name] = self._edge_weights(name)
        return self._weights[name]

    def _edge_weights(self, name: str) -> Reals | None:
        if not any(name in known for known in self.graph.edge_properties):
            return None
        values = np.ones(len(self.graph.edge_keys))
        for row, known in enumerate(self.graph.edge_properties):
            value = known.get(name, 1.0)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
                edge = self.edge(row)
                edge_text = f"{edge.source!r} --[{edge.type}]--> {edge.target!r}"
                problem = f"the {name} of the edge {edge_text} is {value!r}"
                raise BadInput(f"{problem}; it must be a number above 0: correct it, or say weight=None")
            values[row] = value
        return values


@check_arguments
def graph_index(graph: PropertyGraph) -> GraphIndex:
    """Return the index of a graph, the same one each time.

    Raises BadInput if it is not a graph or has no nodes.
    """
    if not len(graph):
        raise BadInput("the graph is empty: it has no node that a method could find")
    # stored on the graph, as cached_property does, so that both are freed together
    index: GraphIndex = vars(graph).get(_INDEX_ATTRIBUTE) or vars(graph).setdefault(
        _INDEX_ATTRIBUTE, GraphIndex(graph)
    )
    return index


# Resolve the node that a user names by its id, its name, or the end of its id.

_MAX_IDS_IN_ERROR = 8  # ids in an error


def _other_names(properties: Mapping[str, Json]) -> Iterator[str]:
    """Yield the aliases of a node, its names in other languages and its id in the file it was read from."""
    for name, value in properties.items():
        if name in ("aliases", "source_id", "file_source_id") or name.startswith(("name@", "label@")):
            yield from map(str, value if isinstance(value, list | tuple) else [value])
        if name in ("source_id", "file_source_id"):  # the end of an IRI
            yield re.split(r"[/#]", str(value))[-1]


@check_arguments
def resolve_node(graph: PropertyGraph, text: str) -> str:
    """Return the id of the node that a text names by its id, its name or an alias, or the end of its id.

    An end follows a dot, a slash, a colon or a #. Case, accents and forms of signs are ignored if that leaves one
    node. Raises BadInput if several nodes match, naming some, and UnknownName with similar ids if none does.
    """
    if text in graph:
        return text
    index = graph_index(graph)
    low, folded = text.casefold().removesuffix("()"), folded_name(text)
    plain = text.removesuffix("()")
    if plain in graph:
        return plain
    ends = tuple(f"{mark}{low}" for mark in ".:/#")
    ways: tuple[Callable[[str, str, tuple[str, ...]], bool], ...] = (
        lambda _, name, __: name == text,
        lambda _, name, __: name.casefold() == low,
        lambda _, __, names: names[0] == folded,
        lambda _, __, names: folded in names,
        lambda id, _, __: id.casefold().removesuffix("()").endswith(ends),
    )
    for way in ways if folded else ():
        rows = zip(graph.ids, index.names, index.folded_names, strict=True)
        found = [row[0] for row in rows if way(*row)]
        if len(found) == 1:
            return found[0]
        if found:
            more = f" and {len(found) - _MAX_IDS_IN_ERROR} more" if len(found) > _MAX_IDS_IN_ERROR else ""
            look_alike = len(set(map(folded_name, found))) < len(found)
            some = ", ".join(map(ascii if look_alike else str, found[:_MAX_IDS_IN_ERROR]))
            raise BadInput(f"{text!r} may mean {some}{more}: say its id, or more of its end")
    return graph.ids[index.row(text)]
