"""Evidence of an answer: the facts that its rows refer to, and the sentences that state them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple
from urllib.parse import unquote

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.loop.events import Event
from kgot_lab.loop.render import relevance
from kgot_lab.loop.run_context import Candidate, Loop, scalars
from kgot_lab.loop.state import State, state_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import contains_words, content_words, name_tokens, sentences
from kgot_lab.types import Diff, Document, Edge, Json

_WHOLE = 5000  # nodes and edges up to which the whole graph is indexed, or else the part near the rows
_MOST = 50  # maximum names to search a large graph for, and names around those
_LONGEST = 3  # maximum edges of a chain
_CHAINS = 5000  # beam width of chains
_STARTS = 10  # maximum start names of chains for one statement
_CITED = 3  # maximum chains between two names
_NAMED = 10  # maximum names of a row or statement to join by chains
_TEXT = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|:([\w%.-]+)|`([^`]+)`""")


def evidence_of(run: Loop, found: Sequence[Candidate], answer: str, most: int = 8) -> list[Edge]:
    """Return at most `most` edges that the rows refer to.

    Edges that contain the answer come first, then those most relevant to the question and the answer.
    """
    edges = _once(
        edge for candidate in found for edge in _Names(_edges_near(run, candidate)).spoken_of(candidate)
    )
    lines = [fact_of(edge) for edge in edges]
    wanted = f"{run.state.question} {answer}"
    near = relevance(wanted, lines)
    order = sorted(
        range(len(lines)),
        key=lambda number: (not contains_words(answer, lines[number]), -near[number], number),
    )
    return [edges[number] for number in order[:most]]


class FoundSupports:
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
            for edge in _written(write.diff):
                self._writing[edge.identity][write.source] = None
        self._telling = (
            [(write.source, set(map(_folded, _said(write.statement)))) for write in state.writes]
            if state.spelled
            else []
        )

    def of(self, edge: Edge) -> tuple[Support, ...]:
        """Return the supports of an edge."""
        began = {
            support for other in _began_with(self._start, edge) for support in supports_of(other.properties)
        }
        here = tuple(
            support for support in supports_of(edge.properties) if self._is_known(support) or support in began
        )
        calls = set(() if here else self.calls(edge))
        if self._spelled:
            sources = {support.source for support in here}
            told = {_folded(edge.source), _folded(edge.type), _folded(edge.target)}
            calls |= {
                call for call, words in self._telling if told <= words and not self._sources(call) & sources
            }
        documents = (
            document for call, returned in self._documents.items() if call in calls for document in returned
        )
        return tuple(dict.fromkeys((*here, *sentences_stating(edge, documents))))

    def calls(self, edge: Edge) -> tuple[str, ...]:
        """Return the tool calls from whose texts an edge was written."""
        return tuple(self._writing.get(edge.identity, ()))

    def _is_known(self, support: Support) -> bool:
        return support.source in self._known or (
            not support.source and any(support.sentence in text for text in self._plain)
        )

    def _sources(self, call: str) -> set[str]:
        return {document.id for document in self._documents.get(call, ())}


def sourced(graph: PropertyGraph, events: Iterable[Event]) -> PropertyGraph:
    """Add supports from tool calls to the edges of a run's graph that have none.

    This is for readers who query the graph later.
    """
    found = FoundSupports(state_after(events))

    def with_supports(edge: Edge) -> Edge:
        supports = () if supports_of(edge.properties) else found.of(edge)
        return (
            replace(edge, properties={**edge.properties, **support_properties(supports)})
            if supports
            else edge
        )

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
        for text in sentences(" ".join(document.text.split())):
            here = [contains_words(end, text) for end in (edge.source, edge.target)]
            if all(here) or (
                any(here) and all(now or (end and end == title) for now, end in zip(here, ends, strict=True))
            ):
                found.append((len(relation & set(content_words(text))), Support(document.id, text)))
    best = max((shared for shared, _ in found), default=0)
    if relation and not best:
        return ()
    return tuple(dict.fromkeys(support for shared, support in found if shared == best))


def passages_of(supports: Iterable[Iterable[Support]]) -> tuple[str, ...]:
    """Return the ids of the documents in some supports, without repeats."""
    return tuple(dict.fromkeys(support.source for each in supports for support in each if support.source))


def _edges_near(run: Loop, candidate: Candidate) -> Iterable[Edge]:
    """Return the edges that rows may refer to.

    These are all edges of a small graph, or else those of the nodes that rows and statement name.
    """
    schema = run.store.schema()
    if schema.nodes + schema.edges <= _WHOLE:
        return run.store.graph().edges
    asked = [*_said(candidate.statement), *(str(value) for row in candidate.rows for value in scalars(row))]
    names = [name for name in dict.fromkeys(asked) if len(name) <= 200][:_MOST]
    ids = dict.fromkeys(
        id for name in names for id in (name, *(node.id for node in run.store.search(name, 3)))
    )
    near = _once(edge for id in ids for edge in run.store.neighbours(id))
    told = set(map(_folded, _said(candidate.statement)))
    around = dict.fromkeys(
        end
        for edge in near
        if _folded(edge.type) in told
        for end in (edge.source, edge.target)
        if end not in ids
    )
    return _once((*near, *(edge for id in list(around)[:_MOST] for edge in run.store.neighbours(id))))


class _Asked(NamedTuple):
    """The node names in a statement, its normalized text, and the relations that it names, in order."""

    names: tuple[str, ...]
    told: str
    relations: tuple[str, ...]


class _Chain(NamedTuple):
    """Successive edges, with their relations, their directions, and the names of the nodes that they join."""

    edges: tuple[Edge, ...]
    types: tuple[str, ...]
    forward: tuple[bool, ...]
    names: tuple[str, ...]

    def unnamed(self, named: Collection[str]) -> bool:
        """Return whether the chain passes a node that is not in `named`."""
        return not set(self.names) <= set(named)

    @property
    def turns(self) -> int:
        """How often the edges change their direction."""
        return sum(one != other for one, other in pairwise(self.forward))


class _Names:
    """An index of the edges of a graph by the names of their ends.

    It finds the names in a text, the longest first, so that Nigeria is not Niger.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        self._between: dict[tuple[str, str], list[Edge]] = defaultdict(list)
        self._at: dict[str, list[Edge]] = defaultdict(list)
        # relation, other end, whether it points there, edge
        self._hops: dict[str, list[tuple[str, str, bool, Edge]]] = defaultdict(list)
        for edge in edges:
            ends = _folded(edge.source), _folded(edge.target)
            self._between[ends].append(edge)
            if ends[0] != ends[1]:
                type = _folded(edge.type)
                self._hops[ends[0]].append((type, ends[1], True, edge))
                self._hops[ends[1]].append((type, ends[0], False, edge))
            for end in ends:
                self._at[end].append(edge)
        self._longest = max((name.count(" ") + 1 for name in self._at), default=0)
        self._types = {type for each in self._hops.values() for type, *_ in each}
        self._known: dict[tuple[str, _Asked], dict[str, list[_Chain]]] = {}

    def spoken_of(self, candidate: Candidate) -> list[Edge]:
        """Return the edges that the rows of a candidate refer to.

        A row that is a fact refers to that fact. Other rows refer to the edges between names in the row, or
        between such a name and one in the statement. If no row refers to an edge by itself, the names of all
        rows are combined, since a list of names has one row each. Two names may also be the ends of a chain
        of edges whose relations the statement names: see `_chains`.
        """
        said = _said(candidate.statement)
        there = tuple(dict.fromkeys(name for text in said for name in self.within(text)))
        asked = _Asked(
            there,
            _folded(candidate.statement),
            tuple(name for name in map(_folded, said) if name in self._types),
        )
        told = asked.told
        found = _once(edge for row in candidate.rows for edge in self._of_row(row, asked))
        if not found:
            names = list(
                dict.fromkeys(
                    name
                    for row in candidate.rows
                    for value in scalars(row)
                    for name in self.within(str(value))
                )
            )
            found = self._related(self._joining(names, names), told)
        return found

    def _of_row(self, row: Json, asked: _Asked) -> list[Edge]:
        """Return the edges that one row refers to.

        A row that names no node may hold a value of an edge at a node that the statement names.
        """
        if isinstance(row, Mapping) and {"subject", "relation", "object"} <= row.keys():
            ends = _folded(row["subject"]), _folded(row["object"])
            return [
                edge for edge in self._between.get(ends, ()) if _folded(edge.type) == _folded(row["relation"])
            ]
        values = [str(value) for value in scalars(row)]
        here = [name for value in values for name in self.within(value)]
        if chained := self._chained(here, asked):
            return chained
        edges = self._joining(here, here) or self._joining(here, asked.names)
        if not edges and not here:
            at = [edge for name in asked.names for edge in self._at.get(name, ())]
            edges = [
                edge for edge in at if set(values) & {str(value) for value in scalars(dict(edge.properties))}
            ]
        return self._related(edges, f"{asked.told} {_folded(' '.join(values))}")

    def _chained(self, here: Sequence[str], asked: _Asked) -> list[Edge]:
        """Return the edges of the chains that end at a name of a row.

        Edges with a named relation between such names and others are included.
        """
        row, others = list(dict.fromkeys(here))[:_NAMED], list(dict.fromkeys((*asked.names, *here)))[:_NAMED]
        if len(asked.relations) < 2:
            return []
        found: list[Edge] = []
        chained = False
        for number, end in enumerate(row):
            for start in (name for name in others if name not in row[: number + 1]):
                direct = [
                    edge
                    for type, other, _, edge in self._hops[start]
                    if other == end and type in asked.relations
                ]
                chains = self._chains(start, end, {*row, *others}, asked)
                if direct and not (
                    chains
                    and len(chains[0].edges) == len(asked.relations)
                    and chains[0].unnamed({*row, *others})
                ):
                    found += direct  # but a chain of all that the statement names, over nodes it does not name, says more
                    continue
                chained |= bool(chains)
                found += (edge for chain in chains for edge in chain.edges)
        return _once(found) if chained else []

    def _chains(self, start: str, end: str, named: Collection[str], asked: _Asked) -> list[_Chain]:
        """Return the best chains of two or three edges between two names, at most a few.

        Their relations follow one another as in the statement, from either end, since the direction in which
        a statement asks for an edge is not parsed. The order is: chains over nodes in `named`, then chains of
        all relations that the statement names, then short ones, then those with the fewest turns.
        """

        def worse(chain: _Chain) -> tuple[bool, bool, int, int]:
            return (
                chain.unnamed(named),
                len(chain.edges) != len(asked.relations),
                len(chain.edges),
                chain.turns,
            )

        found = self._chains_from(start, asked).get(end, [])
        least = min(map(worse, found), default=None)
        return [chain for chain in found if worse(chain) == least][:_CITED]

    def _chains_from(self, start: str, asked: _Asked) -> Mapping[str, list[_Chain]]:
        """Return the chains that begin at a name, by the name they end at.

        Chains over names of the statement grow first.
        """
        if (known := self._known.get((start, asked))) is not None:
            return known
        if len(self._known) >= _STARTS:
            return {}
        runs = {
            each[at : at + length]
            for each in (asked.relations, asked.relations[::-1])
            for length in range(2, _LONGEST + 1)
            for at in range(len(each) - length + 1)
        }
        begun = {run[:length] for run in runs for length in range(1, len(run) + 1)}
        ending = self._known[start, asked] = defaultdict(list)
        growing = [_Chain((), (), (), (start,))]
        for _ in range(_LONGEST):
            more = (
                _Chain(
                    (*chain.edges, edge),
                    (*chain.types, type),
                    (*chain.forward, forward),
                    (*chain.names, other),
                )
                for chain in growing
                for type, other, forward, edge in self._hops[chain.names[-1]]
                if (*chain.types, type) in begun and other not in chain.names
            )
            grown = list(islice(more, _CHAINS))
            for chain in grown:
                if chain.types in runs:
                    ending[chain.names[-1]].append(chain)
            growing = sorted(grown, key=lambda chain: chain.names[-1] not in asked.names)
        return ending

    def _related(self, edges: Sequence[Edge], told: str) -> list[Edge]:
        """Return the edges whose relation occurs in `told`, or all of them if none does."""
        return [edge for edge in edges if f" {_folded(edge.type)} " in f" {told} "] or _once(edges)

    def _joining(self, some: Iterable[str], others: Sequence[str]) -> list[Edge]:
        """Return the edges between some names and others."""
        wanted = set(others)
        return _once(
            edge
            for one in dict.fromkeys(some)
            for edge in self._at.get(one, ())
            if self._other(edge, one) in wanted
        )

    def _other(self, edge: Edge, one: str) -> str:
        ends = _folded(edge.source), _folded(edge.target)
        return "" if ends[0] == ends[1] else ends[1] if ends[0] == one else ends[0]

    def within(self, text: str) -> Iterator[str]:
        """Yield the node names in a text, as whole words and the longest match first."""
        words, at = name_tokens(text), 0
        while at < len(words):
            for length in range(min(self._longest, len(words) - at), 0, -1):
                if (name := " ".join(words[at : at + length])) in self._at:
                    yield name
                    at += length
                    break
            else:
                at += 1


def _once(edges: Iterable[Edge]) -> list[Edge]:
    return list({edge.identity: edge for edge in edges}.values())


def _said(statement: str) -> list[str]:
    """Return the literal strings and names in a statement."""
    return [unquote(next(filter(None, found), "")) for found in _TEXT.findall(statement)]


def _folded(text: object) -> str:
    """Normalize a name to its words, ignoring case, punctuation and underscores."""
    return " ".join(name_tokens(str(text)))


def _began_with(start: PropertyGraph, edge: Edge) -> list[Edge]:
    return (
        [other for other in start.neighbours(edge.source) if other.identity == edge.identity]
        if edge.source in start
        else []
    )


def _written(diff: Diff) -> Iterator[Edge]:
    yield from diff.added_edges
    yield from (after for _, after in diff.changed_edges)
