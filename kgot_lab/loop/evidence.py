"""Evidence of an answer: the facts that its rows refer to, and the sentences that state them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple
from urllib.parse import unquote

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.loop.events import Event
from kgot_lab.loop.render import relevance
from kgot_lab.loop.run_context import Candidate, RunContext, scalars
from kgot_lab.loop.state import State, state_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import contains_words, content_words, name_tokens, text_sentences
from kgot_lab.types import Document, Edge, Json

_MAX_INDEXED = 5000  # nodes and edges up to which the whole graph is indexed, or else the part near the rows
_MAX_SEARCHED = 50  # maximum names to search a large graph for, and names around those
_MAX_CHAIN_LENGTH = 3  # maximum edges of a chain
_BEAM_WIDTH = 5000  # beam width of chains
_MAX_STARTS = 10  # maximum start names of chains for one statement
_MAX_CITED = 3  # maximum chains between two names
_MAX_ROW_NAMES = 10  # maximum names of a row or statement to join by chains
_MAX_EVIDENCE = 8  # maximum edges cited for an answer
_LITERAL = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|:([\w%.-]+)|`([^`]+)`""")


def answer_evidence(run: RunContext, candidates: Sequence[Candidate], answer: str) -> list[Edge]:
    """Return at most `limit` edges that the rows refer to.

    Edges that contain the answer come first, then those most relevant to the question and the answer.
    """
    referenced = (_NameIndex(_edges_near(run, c)).referenced_edges(c) for c in candidates)
    edges = _unique_edges(edge for found in referenced for edge in found)
    lines = [fact_of(edge) for edge in edges]
    scores = relevance(f"{run.state.question} {answer}", lines)
    order = sorted(range(len(lines)), key=lambda i: (not contains_words(answer, lines[i]), -scores[i]))
    return [edges[number] for number in order[:_MAX_EVIDENCE]]


class SupportFinder:
    """The documents and sentences that state the facts of a run, in its present state.

    They are those recorded on a fact's edge, or else sentences of what its tool calls returned. A recorded
    support is ignored if it names no document of the run and was not in the initial graph, since a model made
    it up. If a model writes the statements, one that writes an existing fact changes nothing, but its source
    text still supports the fact.
    """

    def __init__(self, state: State) -> None:
        self._start, self._spelled = state.start, state.spelled
        self._documents: dict[str, list[Document]] = defaultdict(list)
        for returned in state.returns:
            self._documents[str(returned.call)] += returned.sources
        self._known = {document.id for returned in state.returns for document in returned.sources}
        # texts that have no document
        self._plain = [returned.text for returned in state.returns if not returned.sources]
        # the calls that a fact was written from
        self._writing: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for write in state.writes:
            for edge in write.diff.written_edges:
                self._writing[edge.identity][write.source] = None
        spelled = state.writes if state.spelled else ()
        self._spelling = [(w.source, set(map(_normalized, _literals(w.statement)))) for w in spelled]

    def find(self, edge: Edge) -> tuple[Support, ...]:
        """Return the supports of an edge."""
        same = _start_edges(self._start, edge)
        start_supports = {support for other in same for support in supports_of(other.properties)}
        recorded = tuple(s for s in supports_of(edge.properties) if self._is_known(s) or s in start_supports)
        calls = set(() if recorded else self.source_calls(edge))
        if self._spelled:
            sources = {support.source for support in recorded}
            fact_names = set(map(_normalized, (edge.source, edge.type, edge.target)))
            naming = {call for call, literals in self._spelling if fact_names <= literals}
            calls |= {call for call in naming if not self._sources(call) & sources}
        documents = (d for call, returned in self._documents.items() if call in calls for d in returned)
        return tuple(dict.fromkeys((*recorded, *sentences_stating(edge, documents))))

    def source_calls(self, edge: Edge) -> tuple[str, ...]:
        """Return the tool calls from whose texts an edge was written."""
        return tuple(self._writing.get(edge.identity, ()))

    def _is_known(self, support: Support) -> bool:
        is_plain = not support.source and any(support.sentence in text for text in self._plain)
        return is_plain or support.source in self._known

    def _sources(self, call: str) -> set[str]:
        return {document.id for document in self._documents.get(call, ())}


def add_supports(graph: PropertyGraph, events: Iterable[Event]) -> PropertyGraph:
    """Add supports from tool calls to the edges of a run's graph that have none.

    This is for readers who query the graph later.
    """
    finder = SupportFinder(state_after(events))

    def with_supports(edge: Edge) -> Edge:
        supports = () if supports_of(edge.properties) else finder.find(edge)
        if not supports:
            return edge
        return replace(edge, properties={**edge.properties, **support_properties(supports)})

    return PropertyGraph.of(graph.nodes, map(with_supports, graph.edges))


def sentences_stating(edge: Edge, documents: Iterable[Document]) -> tuple[Support, ...]:
    """Return the sentences that name both ends of an edge and share most words of its relation.

    The title of a document may name one of the ends. A relation with content words must share one with the
    sentence; one without any ("in", "of") need not.
    """
    ends = [name_tokens(edge.source), name_tokens(edge.target)]
    relation = set(content_words(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", edge.type)))
    found: list[tuple[int, Support]] = []
    for document in documents:
        title = name_tokens(document.title.split("(")[0])
        is_title = [bool(end) and end == title for end in ends]
        for text in text_sentences(document.text):
            has_end = [contains_words(end, text) for end in (edge.source, edge.target)]
            if any(has_end) and all(named or titled for named, titled in zip(has_end, is_title, strict=True)):
                found.append((len(relation & set(content_words(text))), Support(document.id, text)))
    best = max((shared for shared, _ in found), default=0)
    if relation and not best:
        return ()
    return tuple(dict.fromkeys(support for shared, support in found if shared == best))


def passage_ids(supports: Iterable[Iterable[Support]]) -> tuple[str, ...]:
    """Return the ids of the documents in some supports, without repeats."""
    sources = (support.source for fact_supports in supports for support in fact_supports)
    return tuple(dict.fromkeys(filter(None, sources)))


def _edges_near(run: RunContext, candidate: Candidate) -> Iterable[Edge]:
    """Return the edges that rows may refer to.

    These are all edges of a small graph, or else those of the nodes that rows and statement name.
    """
    schema = run.store.schema()
    if schema.nodes + schema.edges <= _MAX_INDEXED:
        return run.store.graph().edges
    values = (str(value) for row in candidate.rows for value in scalars(row))
    texts = dict.fromkeys((*_literals(candidate.statement), *values))
    names = [text for text in texts if len(text) <= 200][:_MAX_SEARCHED]
    ids = dict.fromkeys(id for name in names for id in (name, *(n.id for n in run.store.search(name, 3))))
    near = _unique_edges(edge for id in ids for edge in run.store.neighbours(id))
    relations = set(map(_normalized, _literals(candidate.statement)))
    ends = (end for edge in near if _normalized(edge.type) in relations for end in (edge.source, edge.target))
    neighbours = [end for end in dict.fromkeys(ends) if end not in ids][:_MAX_SEARCHED]
    return _unique_edges((*near, *(edge for id in neighbours for edge in run.store.neighbours(id))))


class _StatementNames(NamedTuple):
    """The node names in a statement, its normalized text, and the relations that it names, in order."""

    names: tuple[str, ...]
    text: str
    relations: tuple[str, ...]


class _Chain(NamedTuple):
    """Successive edges, with their relations, their directions, and the names of the nodes that they join."""

    edges: tuple[Edge, ...]
    types: tuple[str, ...]
    forward: tuple[bool, ...]
    names: tuple[str, ...]

    def has_unnamed(self, known: set[str]) -> bool:
        """Return whether the chain passes nodes that are not among the given names."""
        return not set(self.names) <= known

    @property
    def direction_changes(self) -> int:
        """How often the edges change their direction."""
        return sum(one != other for one, other in pairwise(self.forward))


class _NameIndex:
    """An index of the edges of a graph by the names of their ends.

    It finds the names in a text, the longest first, so that Nigeria is not Niger.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._between: dict[tuple[str, str], list[Edge]] = defaultdict(list)
        self._at: dict[str, list[Edge]] = defaultdict(list)
        # relation, other end, whether it points there, edge
        self._hops: dict[str, list[tuple[str, str, bool, Edge]]] = defaultdict(list)
        for edge in edges:
            ends = _normalized(edge.source), _normalized(edge.target)
            self._between[ends].append(edge)
            if ends[0] != ends[1]:
                type = _normalized(edge.type)
                self._hops[ends[0]].append((type, ends[1], True, edge))
                self._hops[ends[1]].append((type, ends[0], False, edge))
            for end in ends:
                self._at[end].append(edge)
        self._longest = max((name.count(" ") + 1 for name in self._at), default=0)
        self._types = {type for hops in self._hops.values() for type, *_ in hops}
        self._known: dict[tuple[str, _StatementNames], dict[str, list[_Chain]]] = {}

    def referenced_edges(self, candidate: Candidate) -> list[Edge]:
        """Return the edges that the rows of a candidate refer to.

        A row that is a fact refers to that fact. Other rows refer to the edges between names in the row, or
        between such a name and one in the statement. If no row refers to an edge by itself, the names of all
        rows are combined, since a list of names has one row each. Two names may also be the ends of a chain
        of edges whose relations the statement names: see `_chains_from`.
        """
        literals = _literals(candidate.statement)
        statement_names = tuple(dict.fromkeys(name for text in literals for name in self.names_in(text)))
        relations = tuple(name for name in map(_normalized, literals) if name in self._types)
        asked = _StatementNames(statement_names, _normalized(candidate.statement), relations)
        edges = _unique_edges(edge for row in candidate.rows for edge in self._row_edges(row, asked))
        if edges:
            return edges
        values = (str(value) for row in candidate.rows for value in scalars(row))
        names = [name for value in values for name in self.names_in(value)]
        return self._with_named_relation(self._edges_between(names, names), asked.text)

    def _row_edges(self, row: Json, statement: _StatementNames) -> list[Edge]:
        """Return the edges that one row refers to.

        A row that names no node may hold a value of an edge at a node that the statement names.
        """
        if isinstance(row, Mapping) and {"subject", "relation", "object"} <= row.keys():
            ends = _normalized(row["subject"]), _normalized(row["object"])
            relation = _normalized(row["relation"])
            return [edge for edge in self._between.get(ends, ()) if _normalized(edge.type) == relation]
        values = [str(value) for value in scalars(row)]
        row_names = [name for value in values for name in self.names_in(value)]
        if chained := self._chain_edges(row_names, statement):
            return chained
        edges = self._edges_between(row_names, row_names) or self._edges_between(row_names, statement.names)
        if not edges and not row_names:
            named_edges = [edge for name in statement.names for edge in self._at.get(name, ())]
            edges = [edge for edge in named_edges if set(values) & set(map(str, scalars(edge.properties)))]
        return self._with_named_relation(edges, f"{statement.text} {_normalized(' '.join(values))}")

    def _chain_edges(self, row_names: Sequence[str], statement: _StatementNames) -> list[Edge]:
        """Return the edges of the chains that end at a name of a row.

        Edges with a named relation between such names and others are included.
        """
        ends = list(dict.fromkeys(row_names))[:_MAX_ROW_NAMES]
        starts = list(dict.fromkeys((*statement.names, *row_names)))[:_MAX_ROW_NAMES]
        if len(statement.relations) < 2:
            return []
        edges: list[Edge] = []
        chained = False
        for number, end in enumerate(ends):
            for start in (name for name in starts if name not in ends[: number + 1]):
                hops = self._hops[start]
                direct = [e for type, other, _, e in hops if other == end and type in statement.relations]
                chains = self._best_chains(start, end, {*ends, *starts}, statement)
                is_whole = bool(chains) and len(chains[0].edges) == len(statement.relations)
                if direct and not (is_whole and chains[0].has_unnamed({*ends, *starts})):
                    edges += direct  # but a chain of all that the statement names, over nodes it does not name, says more
                    continue
                chained |= bool(chains)
                edges += (edge for chain in chains for edge in chain.edges)
        return _unique_edges(edges) if chained else []

    def _best_chains(self, start: str, end: str, known: set[str], statement: _StatementNames) -> list[_Chain]:
        """Return the best chains of two or three edges between two names, at most a few.

        Their relations follow one another as in the statement, from either end, since the direction in which
        a statement asks for an edge is not parsed. The order is: chains over nodes in `known`, then chains of
        all relations that the statement names, then short ones, then those with the fewest turns.
        """

        def cost(chain: _Chain) -> tuple[bool, bool, int, int]:
            return (
                chain.has_unnamed(known),
                len(chain.edges) != len(statement.relations),
                len(chain.edges),
                chain.direction_changes,
            )

        chains = self._chains_from(start, statement).get(end, [])
        best_cost = min(map(cost, chains), default=None)
        return [chain for chain in chains if cost(chain) == best_cost][:_MAX_CITED]

    def _chains_from(self, start: str, statement: _StatementNames) -> Mapping[str, list[_Chain]]:
        """Return the chains that begin at a name, by the name they end at.

        Chains over names of the statement grow first.
        """
        if (cached := self._known.get((start, statement))) is not None:
            return cached
        if len(self._known) >= _MAX_STARTS:
            return {}
        relation_runs = {
            relations[offset : offset + length]
            for relations in (statement.relations, statement.relations[::-1])
            for length in range(2, _MAX_CHAIN_LENGTH + 1)
            for offset in range(len(relations) - length + 1)
        }
        prefixes = {run[:length] for run in relation_runs for length in range(1, len(run) + 1)}
        by_end = self._known[start, statement] = defaultdict(list)
        beam = [_Chain((), (), (), (start,))]
        for _ in range(_MAX_CHAIN_LENGTH):
            extensions = (
                _Chain(
                    (*chain.edges, edge),
                    (*chain.types, type),
                    (*chain.forward, forward),
                    (*chain.names, other),
                )
                for chain in beam
                for type, other, forward, edge in self._hops[chain.names[-1]]
                if (*chain.types, type) in prefixes and other not in chain.names
            )
            extended = list(islice(extensions, _BEAM_WIDTH))
            for chain in extended:
                if chain.types in relation_runs:
                    by_end[chain.names[-1]].append(chain)
            beam = sorted(extended, key=lambda chain: chain.names[-1] not in statement.names)
        return by_end

    def _with_named_relation(self, edges: Sequence[Edge], text: str) -> list[Edge]:
        """Return the edges whose relation occurs in `told`, or all of them if none does."""
        named = [edge for edge in edges if f" {_normalized(edge.type)} " in f" {text} "]
        return named or _unique_edges(edges)

    def _edges_between(self, names: Iterable[str], other_names: Sequence[str]) -> list[Edge]:
        """Return the edges between some names and others."""
        targets = set(other_names)
        edges = ((name, edge) for name in dict.fromkeys(names) for edge in self._at.get(name, ()))
        return _unique_edges(edge for name, edge in edges if self._other_end(edge, name) in targets)

    def _other_end(self, edge: Edge, name: str) -> str:
        ends = _normalized(edge.source), _normalized(edge.target)
        return "" if ends[0] == ends[1] else ends[1] if ends[0] == name else ends[0]

    def names_in(self, text: str) -> Iterator[str]:
        """Yield the node names in a text, as whole words and the longest match first."""
        words, position = name_tokens(text), 0
        while position < len(words):
            for length in range(min(self._longest, len(words) - position), 0, -1):
                if (name := " ".join(words[position : position + length])) in self._at:
                    yield name
                    position += length
                    break
            else:
                position += 1


def _unique_edges(edges: Iterable[Edge]) -> list[Edge]:
    return list({edge.identity: edge for edge in edges}.values())


def _literals(statement: str) -> list[str]:
    """Return the literal strings and names in a statement."""
    return [unquote(next(filter(None, groups), "")) for groups in _LITERAL.findall(statement)]


def _normalized(text: object) -> str:
    """Normalize a name to its words, ignoring case, punctuation and underscores."""
    return " ".join(name_tokens(str(text)))


def _start_edges(start: PropertyGraph, edge: Edge) -> list[Edge]:
    if edge.source not in start:
        return []
    return [other for other in start.neighbours(edge.source) if other.identity == edge.identity]
