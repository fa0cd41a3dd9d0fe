"""Fetching and writing in the mode `paths`: sentences with the names in them, and typed facts at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.events import Refused, ToolCall, ToolReturned
from kgot_lab.loop.insert import search_call, search_tool, write_approved
from kgot_lab.loop.modes.paths.mentions import (
    ENTITY,
    RECALLED,
    GraphSentence,
    group_by_passage,
    mention_facts,
    new_sentences,
    node_title,
    passage_title,
    remove_names,
    sentence_edges,
    similar_titles,
    titled_line,
    typed_nodes,
)
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, load_facts, name_facts, with_spaces
from kgot_lab.loop.render import join_lines
from kgot_lab.loop.run_context import CallOptions, RunContext, Steps, ask_reply
from kgot_lab.memory.extraction import SourcedSentence, facts_prompt, grounded_facts, split_grounded
from kgot_lab.retrieval.entities import EntityFinder
from kgot_lab.retrieval.entity_linking import capitalised_names, normalise_name
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.types import Document, Node

_MAX_TITLES = 12  # maximum names found for a question, and titles loaded
_MAX_HOPS = 2  # steps from those titles, as many as entity-linked search takes
_MAX_FACT_SENTENCES = 4  # maximum sentences
_LINKED_SCORE = 0.5  # rank score of a title that a step names and the question does not


def load_start_graph(run: RunContext, walk: PathWalk) -> None:
    """Load the part of the run's initial graph that is near the question.

    This covers the sentences and facts at names near the question, and what those lead to. What was recalled
    for the question is near it, whatever its words.
    """
    if not run.store.schema().nodes:
        return
    recalled = (node for node in run.state.start.nodes if RECALLED in node.labels)
    near = run.store.search(run.state.question, limit=_MAX_TITLES)
    node_ids = dict.fromkeys(node.id for node in (*recalled, *near))
    titles = [name for name in node_ids if sentence_edges(name, run.store) or name_facts(run, walk, name)]
    for rank, title in enumerate(titles, start=1):
        walk.standing[title] = max(walk.standing.get(title, 0.0), 1 / rank)
        load_sentences(run, walk, title)
    reached = titles
    for _ in range(_MAX_HOPS):
        reached = _load_neighbours(run, walk, reached)
    for title in titles:
        _load_linked_facts(run, walk, title)


def _load_neighbours(run: RunContext, walk: PathWalk, titles: Iterable[str]) -> list[str]:
    """Load the titles one step from some titles, and return them.

    A step follows a name in one of their sentences, or a sentence that mentions one of them.
    """
    loaded: list[str] = []
    for title in titles:
        nodes = [endpoint for endpoint, sentence in walk.sentences.items() if sentence.title == title]
        edges = [edge for endpoint in (title, *nodes) for edge in run.store.neighbours(endpoint)]
        ends = dict.fromkeys(node_title(end) for edge in edges for end in (edge.target, edge.source))
        for name in (name for name in ends if name not in walk.standing and sentence_edges(name, run.store)):
            if len(walk.standing) >= _MAX_TITLES:
                return loaded
            walk.standing[name] = walk.standing[title] * _LINKED_SCORE
            load_sentences(run, walk, name)
            loaded.append(name)
    return loaded


def _load_linked_facts(run: RunContext, walk: PathWalk, name: str) -> None:
    """Note the facts at a name, and the sentences under the names that they lead to."""
    for other, standing in load_facts(run, walk, name, walk.standing[name]).items():
        walk.standing[other] = max(walk.standing.get(other, 0.0), standing)
        load_sentences(run, walk, other)


def load_name(run: RunContext, walk: PathWalk, name: str) -> str | None:
    """Load the sentences and facts of a name from the run's initial graph, and return the name found there.

    Returns None if the graph has nothing under that name.
    """
    if not run.state.start:
        return None
    near = dict.fromkeys((name, *(node.id for node in run.store.search(name, limit=_MAX_TITLES))))
    folded = normalise_name(with_spaces(name))
    same = (title for title in near if normalise_name(with_spaces(title)) == folded)
    readable = (title for title in same if sentence_edges(title, run.store) or name_facts(run, walk, title))
    title = next(readable, None)
    if title is not None:
        walk.standing[title] = _LINKED_SCORE
        load_sentences(run, walk, title)
        _load_linked_facts(run, walk, title)
    return title


def load_sentences(run: RunContext, walk: PathWalk, title: str) -> None:
    """Note the sentences that the graph holds under a title."""
    counts: Counter[str] = Counter()
    for edge in sentence_edges(title, run.store):
        text, source = edge.properties.get("sentence"), str(edge.properties.get("source", ""))
        if isinstance(text, str):
            walk.sentences[edge.target] = GraphSentence(edge.target, title, text, source, counts[source])
            counts[source] += 1


def next_searches(run: RunContext, walk: PathWalk) -> tuple[ToolCall, ...]:
    """Return the next searches.

    The first is the question itself. Later ones combine the words of the question with names at the open ends
    of the best paths.
    """
    tool = search_tool(run)
    if tool is None:
        return ()
    if not run.state.calls:
        return (search_call(tool, run.state.question),)
    question_words = remove_names(run.state.question)
    routes = (route for answer in walk.answered for route in answer.routes)
    names = dict.fromkeys(name for route in routes for name in _open_ends(run, walk, route))
    if not names:
        return ()
    call = search_call(tool, f"{question_words} {' '.join(list(names)[:3])}")
    return () if call in run.state.calls else (call,)


def _open_ends(run: RunContext, walk: PathWalk, route: Route) -> Iterable[str]:
    """Yield the names in the sentences of a route that are neither in the question nor titles."""
    question = f" {normalise_name(run.state.question)} "
    titles = {normalise_name(title) for title in walk.standing}
    for sentence in reversed(route.sentences):
        names = capitalised_names(sentence.text)
        yield from sorted(name for name in names if name not in titles and f" {name} " not in question)


def write_passages(run: RunContext, walk: PathWalk, returned: ToolReturned) -> Steps[None]:
    """Write the sentences of what a tool returned, with one statement per passage."""
    if returned.failed:
        return
    call = returned.call
    # a text without a source
    words = " ".join(map(str, call.arguments.values()))
    documents = returned.sources or (Document("", returned.text, words),)
    walk.record_ranks(documents)
    # the plain rules never applied in this mode
    new = new_sentences(documents, run.store, "any script" if run.limits.finds_parts else "careful")
    links = run.limits.routes.links
    titles = [*walk.standing, *map(passage_title, documents)] if "titles" in links else []
    near = similar_titles(new, walk.sentences.values(), walk.embedder) if "vectors" in links else {}
    finder = _find_entities(walk, new) if "entities" in links else None
    options: Any = {"finder": finder, "runs": "names" in links, "parts": run.limits.finds_parts}
    passages = [
        mention_facts(sentences, titles, near, **options) for sentences in group_by_passage(new).values()
    ]
    if finder and new:
        facts = [fact for passage in passages for fact in passage]
        nodes = typed_nodes(facts, walk.standing, finder.aliases)
        walk.entities |= {node.id for node in nodes if node.labels == (ENTITY,)}
        yield from write_approved(run, run.store.dialect.label(nodes), str(call))
    for passage in passages:
        yield from write_approved(run, run.store.dialect.add(passage), str(call))
    for document in documents:
        load_sentences(run, walk, passage_title(document))


def _find_entities(walk: PathWalk, new: Iterable[GraphSentence]) -> EntityFinder:
    """Find the entities in the sentences that were fetched before and now.

    A spelling that is in the graph stays the usual one.
    """
    texts = (sentence.text for sentence in (*walk.sentences.values(), *new))
    return EntityFinder(texts, [*walk.standing, *walk.entities])


def write_path_facts(run: RunContext, walk: PathWalk, best: PathAnswer) -> Steps[None]:
    """Extract facts from the sentences of the chosen paths and write those that a sentence states."""
    read = [sentence for route in best.routes for sentence in route.sentences]
    pieces = {s.place: SourcedSentence(s.text, s.title, s.source, s.number) for s in read}
    stating = {
        sentence.place for route in best.routes for sentence in route.with_sentences_for(best.text).sentences
    }
    order = sorted(pieces, key=lambda node: node not in stating)
    shown = [pieces[node] for node in order[:_MAX_FACT_SENTENCES]]
    if not shown or _has_facts(run, shown):
        return
    options = CallOptions("facts", temperature=run.limits.models.temperature)
    lines = join_lines(titled_line(piece.title, piece.text) for piece in shown)
    reply = yield from ask_reply(run, "facts", facts_prompt(lines), options)
    stated, invented = split_grounded(reply.text, shown)
    grounded = [fact for fact in stated if fact[0].relation not in (SAYS_SENTENCE, MENTIONS_NAME)]
    if invented:
        statement = join_lines(map(str, invented))
        yield run.record(Refused, statement=statement, reason="no sentence says this", writing=True)
    if grounded:
        source = str(run.state.calls[-1]) if run.state.calls else ""
        ends = dict.fromkeys(end for fact, _ in grounded for end in (fact.subject, fact.object))
        new = [Node(end, (ENTITY,)) for end in ends if end not in walk.entities and end not in walk.standing]
        if new and "entities" in run.limits.routes.links:
            yield from write_approved(run, run.store.dialect.label(new), source)
        yield from write_approved(run, run.store.dialect.add(grounded_facts(grounded, run.store)), source)


def _has_facts(run: RunContext, shown: Iterable[SourcedSentence]) -> bool:
    """Return whether an earlier run has already extracted facts from these sentences.

    This holds if the initial graph contains all of them, and facts taken from some of them.
    """
    sentences: set[str] = set()
    fact_sentences: set[str] = set()
    for edge in run.state.start.edges:
        said = sentences if edge.type in (SAYS_SENTENCE, MENTIONS_NAME) else fact_sentences
        said |= {support.sentence for support in supports_of(edge.properties)}
    texts = {piece.text for piece in shown}
    return texts <= sentences and bool(texts & fact_sentences)
