"""Evidence of an answer: the facts that its rows refer to, and the sentences that state them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import PROVENANCE_PROPERTIES, Support, support_properties, supports_of
from kgot_lab.loop.answer_check import MAX_CITED, check_answer, question_names
from kgot_lab.loop.events import Event
from kgot_lab.loop.modes.paths.values import is_no_answer, parse_date, parse_yes_no
from kgot_lab.loop.render import relevance, row_lines, row_text
from kgot_lab.loop.run_context import Candidate, EditableStore, RunContext, Steps, scalars
from kgot_lab.loop.state import State, state_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.provenance import edges_read
from kgot_lab.text.words import canonical_answer, contains_words, content_words, name_tokens, text_sentences
from kgot_lab.types import Document, Edge, Json

_LITERAL = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|:([\w%.-]+)|`([^`]+)`""")


def answer_evidence(run: RunContext, candidates: Sequence[Candidate], answer: str) -> list[Edge]:
    """Return the edges that carry the answer, at most `limits.evidence`, in the order of their chain.

    They are the edges from which the rows were read that hold the answer. A replay returns the recorded ones.
    """
    if isinstance(run.store, EditableStore):
        recorded = run.store.recorded_evidence(answer, [read.statement for read in run.state.reads])
        if recorded is not None:
            return _edges_of_facts(run.store.graph(), recorded)
    rows = [(row, candidate) for candidate in candidates for row in candidate.rows]
    question, limit = run.state.question, run.limits.evidence
    chosen = [rows[number] for number in _select_rows([row for row, _ in rows], question, answer, limit)]
    read = {
        edge.identity: edge
        for candidate in candidates
        if (own := [row for row, of in chosen if of is candidate])
        for edge in _edges_read(run, candidate, own)
    }
    edges = list(read.values())
    few = edges if len(edges) <= limit else carrying_edges(edges, question, answer, limit)
    return _chain_order(few, question, answer)


def carrying_edges(edges: Sequence[Edge], question: str, answer: str, limit: int) -> list[Edge]:
    """Return the few edges that carry an answer, best first, as `_select_rows` chooses rows."""
    facts = [{"subject": edge.source, "relation": edge.type, "object": edge.target} for edge in edges]
    return [edges[number] for number in _select_rows(facts, question, answer, limit)]


def _edges_of_facts(graph: PropertyGraph, facts: Iterable[Json]) -> list[Edge]:
    by_fact: dict[Json, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        by_fact[fact_of(edge)].append(edge)
    return [by_fact[fact].pop(0) for fact in facts if by_fact.get(fact)]


def _chain_order(edges: Sequence[Edge], question: str, answer: str) -> list[Edge]:
    """Order edges so that each continues from the names of the question or of earlier edges.

    Those that hold the answer come last where there is a choice.
    """
    left = sorted(edges, key=lambda edge: contains_words(answer, fact_of(edge)))
    ordered, reached = list[Edge](), question
    while left:
        ends = ((i, end) for i, edge in enumerate(left) for end in (edge.source, edge.target))
        ordered.append(left.pop(next((i for i, end in ends if contains_words(end, reached)), 0)))
        reached = f"{reached} | {ordered[-1].source} | {ordered[-1].target}"
    return ordered


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
        at_start = self._start.neighbours(edge.source) if edge.source in self._start else ()
        same = (other for other in at_start if other.identity == edge.identity)
        start_supports = {support for other in same for support in supports_of(other.properties)}
        recorded = tuple(s for s in supports_of(edge.properties) if self._is_known(s) or s in start_supports)
        calls = set(() if recorded else self.source_calls(edge))
        if self._spelled:
            sources = {support.source for support in recorded}
            fact_names = set(map(_normalized, (edge.source, edge.type, edge.target)))
            naming = {call for call, literals in self._spelling if fact_names <= literals}
            documents_of = self._documents
            calls |= {call for call in naming if sources.isdisjoint(d.id for d in documents_of.get(call, ()))}
        documents = (d for call, returned in self._documents.items() if call in calls for d in returned)
        return tuple(dict.fromkeys((*recorded, *sentences_stating(edge, documents))))

    def source_calls(self, edge: Edge) -> tuple[str, ...]:
        """Return the tool calls from whose texts an edge was written."""
        return tuple(self._writing.get(edge.identity, ()))

    def _is_known(self, support: Support) -> bool:
        is_plain = not support.source and any(support.sentence in text for text in self._plain)
        return is_plain or support.source in self._known


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


# The rows that carry an answer.


def _select_rows(rows: Sequence[Json], question: str, answer: str, limit: int) -> list[int]:
    """Return the indices of the few rows that carry an answer, best first.

    These are a row that holds the answer, and rows that continue from it by a name and cover further words of
    the question. If no row holds it, they are the rows that the answer names (a list, a sentence), or else
    the most relevant ones (a comparison, whose answer the question names, or a count).
    """
    names, lines = list(map(_row_names, rows)), list(map(_row_line, rows))
    words = [set(content_words(line)) for line in lines]
    scores, said = relevance(question, lines), canonical_answer(answer)
    is_holding = [contains_words(said, canonical_answer(line)) for line in (*lines, question)]
    holding = [i for i in range(len(rows)) if is_holding[i] and not is_holding[-1]]
    named = [sum(contains_words(n, answer) and not contains_words(n, question) for n in row) for row in names]
    pool = holding or [i for i, count in enumerate(named) if count] or [*range(len(rows))]
    chosen: list[int] = []
    while pool and len(chosen) < limit:
        covered = set[str]().union(*(words[i] for i in chosen))
        left = (word for word in question.split() if not covered.issuperset(content_words(word)))
        gains = relevance(" ".join(left), lines)
        best = max(pool, key=lambda i: (not holding and named[i], gains[i], scores[i], -i))
        is_equal = not holding and (named[best] or not chosen or scores[best] == scores[chosen[0]])
        if chosen and not gains[best] and not is_equal:
            break
        chosen.append(best)
        others = [i for i in (range(len(rows)) if holding else pool) if i not in chosen]
        linked = (i for i in others if any(_share_name(names[i], names[c]) for c in chosen))
        pool = list(linked) if holding else [i for i in others if named[i] or words[i] & words[chosen[0]]]
    return chosen


def _row_names(row: Json) -> list[str]:
    """Return the ends of a fact, or the texts of another row."""
    values = fact[::2] if (fact := _fact_parts(row)) else scalars(row)
    return [value for value in values if isinstance(value, str)]


def _row_line(row: Json) -> str:
    if isinstance(row, Mapping):
        row = {name: value for name, value in row.items() if name not in PROVENANCE_PROPERTIES}
    return " ".join(map(str, scalars(row)))


def _fact_parts(row: Json) -> tuple[Any, ...]:
    """Return subject, relation and object of a row, or nothing if it is no fact."""
    is_fact = isinstance(row, Mapping) and {"subject", "relation", "object"} <= row.keys()
    return (row["subject"], row["relation"], row["object"]) if is_fact else ()


def _share_name(names: Iterable[str], others: Sequence[str]) -> bool:
    pairs = ((one, other) for one in names for other in others)
    return any(contains_words(one, other) or contains_words(other, one) for one, other in pairs)


# Whether what was read says the answer.

CitedEdge = tuple[Edge, Iterable[Support]]
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|len|size)\s*\(", re.I)
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f](?=\d{3}\b)")


def judge_answer(
    run: RunContext, answer: str, read: Sequence[str], *, computed: str = "", likelihood: float | None = None
) -> Steps[dict[str, Any]]:
    """Return the fields `forced`, `outcome` and `missing` of an answer, by the texts that were read.

    An answer within `computed`, a result computed from rows, is supported if the texts have the names of the
    question. Any other one is checked by the model. It is at most unsure unless it is yes or no or stands in
    the texts or the question.
    """
    question, words = run.state.question, set(name_tokens(" ".join(read)))
    is_named = all(words.issuperset(name_tokens(name)) for name in question_names(question, ()))
    if is_no_answer(answer) or not read:
        outcome, missing = "not in the sources", "what was read does not say it" if read else ""
    elif contains_words(answer, computed) and is_named:
        outcome, missing = "supported", ""
    else:
        checked = yield from check_answer(run, answer, read, likelihood)
        outcome, missing = checked.outcome, checked.missing
        is_read = parse_yes_no(answer) is not None or _has_answer((*read, question), answer)
        if outcome == "supported" and not is_read:
            outcome, missing = "unsure", f"nothing that was read has {answer}"
    return {"forced": outcome != "supported", "outcome": outcome, "missing": missing}


def judge_rows(
    run: RunContext, answer: str, candidates: Iterable[Candidate], cited: Iterable[CitedEdge], printed: str
) -> Steps[dict[str, Any]]:
    """Judge an answer by the sentences of its edges, or by the edges themselves where there is none.

    The subject is put before a sentence that does not name it. If there are no edges, it is judged by rows, those
    that hold the answer first, each after its statement. Numbers that statements counted or summed up, and what
    Python `printed`, are computed. The number of facts with one relation to a thing that the question names is
    read too.
    """
    read, numbers, counts = list[str](), [printed], Counter[tuple[str, str]]()
    for edge, supports in cited:
        sentences = [support.sentence for support in supports if support.sentence]
        fact = {"subject": f"{edge.source}:", "relation": edge.type, "object": edge.target}
        facts = [row_text({**edge.properties, **fact})]
        read += [s if contains_words(edge.source, s) else f"{edge.source}: {s}" for s in sentences] or facts
    lines = list[tuple[bool, str]]()
    for candidate in candidates:
        values = (value for row in candidate.rows for value in scalars(row) if isinstance(value, int | float))
        numbers += map(str, values if _AGGREGATE.search(candidate.statement) else ())
        parts = {tuple(map(str, _fact_parts(row))) for row in candidate.rows if _fact_parts(row)}
        counts |= Counter((end, relation) for one, relation, other in parts for end in (one, other))
        rows = row_lines(candidate.rows)
        lines += ((not _has_answer([row], answer), f"{candidate.statement}: {row}") for row in rows)
    read = read or [line for _, line in sorted(lines, key=itemgetter(0))[:MAX_CITED]]
    for (end, relation), n in counts.items():
        if contains_words(end, run.state.question) and contains_words(str(n), answer):
            read.append(f"{end}: {n} {relation}")
    return (yield from judge_answer(run, answer, read, computed=" ".join(numbers)))


def _has_answer(texts: Iterable[str], answer: str) -> bool:
    """Return whether texts have an answer, the words of a list in any order, or its date in another form."""
    read, answer = [_THOUSANDS.sub("", text) for text in texts], _THOUSANDS.sub("", answer)
    date, words = parse_date(answer), {word for text in read for word in content_words(text)}
    if words.issuperset(content_words(answer)) or (date is not None and date in map(parse_date, read)):
        return True
    return any(contains_words(answer, text) for text in read)


# The edges that rows were read from.


def _edges_read(run: RunContext, candidate: Candidate, rows: Sequence[Json]) -> list[Edge]:
    """Return the edges that rows were read from: facts that the loop looked up are edges themselves."""
    if run.limits.reads_names or not candidate.statement:
        facts = list(filter(None, map(_fact_parts, rows)))
        edges = (edge for subject, *_ in facts for edge in run.store.neighbours(subject))
        return [edge for edge in edges if (edge.source, edge.type, edge.target) in facts]
    store = candidate.reader or run.store
    store = store.store if isinstance(store, EditableStore) else store
    return edges_read(store, candidate.statement, rows)


def _literals(statement: str) -> list[str]:
    """Return the literal strings and names in a statement."""
    return [unquote(next(filter(None, groups), "")) for groups in _LITERAL.findall(statement)]


def _normalized(text: object) -> str:
    """Normalize a name to its words, ignoring case, punctuation and underscores."""
    return " ".join(name_tokens(str(text)))
