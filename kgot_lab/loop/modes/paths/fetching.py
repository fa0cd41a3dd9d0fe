"""Fetching and writing in the mode `paths`: sentences with the names in them, and typed facts at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kgot_lab.errors import QueryFailed
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.events import Refused, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.insert import lookup, search_tool, use, written
from kgot_lab.loop.modes.paths.mentions import (
    PlacedSentence,
    bracketed,
    by_passage,
    mention_facts,
    near_titles,
    new_sentences,
    sentence_heading,
    title_at,
    title_of,
    without_names,
)
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, facts_at, meet_facts, spaced
from kgot_lab.loop.render import joined_lines
from kgot_lab.loop.run_context import How, Loop, Steps, ask_reply
from kgot_lab.memory.extraction import (
    SourcedSentence,
    facts_prompt,
    grounded_facts,
    split_grounded,
)
from kgot_lab.retrieval.entity_linking import capitalised_names, normalise_name
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.words import SentenceRules
from kgot_lab.types import Document

_RECALLED = 12  # maximum names found for a question, and titles loaded
_STEPS = 2  # steps from those titles, as many as entity-linked search takes
_READ_FOR_FACTS = 4  # maximum sentences
_NAMED_LATER = 0.5  # rank score of a title that a step names and the question does not


def recall(run: Loop, walk: PathWalk) -> None:
    """Load the part of the run's initial graph that is near the question.

    This covers the sentences and facts at names near the question, and what those lead to.
    """
    if not run.store.schema().nodes:
        return
    named = [node.id for node in run.store.search(run.state.question, limit=_RECALLED)]
    titles = [name for name in named if sentence_heading(name, run.store) or facts_at(run, walk, name)]
    for rank, title in enumerate(titles, start=1):
        walk.standing[title] = max(walk.standing.get(title, 0.0), 1 / rank)
        know(run, walk, title)
    reached = titles
    for _ in range(_STEPS):
        reached = _recalled_from(run, walk, reached)
    for title in titles:
        _follow_facts(run, walk, title)


def _recalled_from(run: Loop, walk: PathWalk, titles: Iterable[str]) -> list[str]:
    """Load the titles one step from some titles, and return them.

    A step follows a name in one of their sentences, or a sentence that mentions one of them.
    """
    found: list[str] = []
    for title in titles:
        places = [place for place, sentence in walk.sentences.items() if sentence.title == title]
        edges = [edge for node in (title, *places) for edge in run.store.neighbours(node)]
        ends = dict.fromkeys(title_at(end) for edge in edges for end in (edge.target, edge.source))
        for name in (
            name for name in ends if name not in walk.standing and sentence_heading(name, run.store)
        ):
            if len(walk.standing) >= _RECALLED:
                return found
            walk.standing[name] = walk.standing[title] * _NAMED_LATER
            know(run, walk, name)
            found.append(name)
    return found


def _follow_facts(run: Loop, walk: PathWalk, name: str) -> None:
    """Note the facts at a name, and the sentences under the names that they lead to."""
    for other, standing in meet_facts(run, walk, name, walk.standing[name]).items():
        walk.standing[other] = max(walk.standing.get(other, 0.0), standing)
        know(run, walk, other)


def recall_name(run: Loop, walk: PathWalk, name: str) -> str | None:
    """Load the sentences and facts of a name from the run's initial graph, and return the name found there.

    Returns None if the graph has nothing under that name.
    """
    if not run.state.start:
        return None
    near = dict.fromkeys((name, *(node.id for node in run.store.search(name, limit=_RECALLED))))
    same = (title for title in near if normalise_name(spaced(title)) == normalise_name(spaced(name)))
    title = next(
        (title for title in same if sentence_heading(title, run.store) or facts_at(run, walk, title)), None
    )
    if title is not None:
        walk.standing[title] = _NAMED_LATER
        know(run, walk, title)
        _follow_facts(run, walk, title)
    return title


def know(run: Loop, walk: PathWalk, title: str) -> None:
    """Note the sentences that the graph holds under a title."""
    before: Counter[str] = Counter()
    for edge in sentence_heading(title, run.store):
        text, source = edge.properties.get("sentence"), str(edge.properties.get("source", ""))
        if isinstance(text, str):
            walk.sentences[edge.target] = PlacedSentence(edge.target, title, text, source, before[source])
            before[source] += 1


def next_look_ups(run: Loop, walk: PathWalk) -> tuple[ToolCall, ...]:
    """Return the next searches.

    The first is the question itself. Later ones combine the words of the question with names at the open ends
    of the best paths.
    """
    look = search_tool(run)
    if look is None:
        return ()
    if not run.state.calls:
        return (lookup(look, run.state.question),)
    asked = without_names(run.state.question)
    ends = dict.fromkeys(
        name
        for candidate in walk.answered
        for route in candidate.routes
        for name in _open_ends(run, walk, route)
    )
    if not ends:
        return ()
    call = lookup(look, f"{asked} {' '.join(list(ends)[:3])}")
    return () if call in run.state.calls else (call,)


def _open_ends(run: Loop, walk: PathWalk, route: Route) -> Iterable[str]:
    """Yield the names in the sentences of a route that are neither in the question nor titles."""
    question = f" {normalise_name(run.state.question)} "
    titles = {normalise_name(title) for title in walk.standing}
    for sentence in reversed(route.sentences):
        yield from sorted(
            name
            for name in capitalised_names(sentence.text)
            if name not in titles and f" {name} " not in question
        )


def fetch(run: Loop, walk: PathWalk, call: ToolCall) -> Steps[ToolReturned]:
    """Make a tool call, and write the sentences of its result with one statement per passage."""
    returned = yield from use(run, call)
    if returned.failed:
        return returned
    # a text without a source
    documents = returned.sources or (
        Document("", returned.text, " ".join(map(str, call.arguments.values()))),
    )
    walk.stands(documents)
    new = new_sentences(documents, run.store, _rules(run))
    links = run.limits.links
    titles = list(dict.fromkeys([*walk.standing, *map(title_of, documents)])) if "titles" in links else []
    near = near_titles(new, walk.sentences.values(), walk.embedder) if "vectors" in links else {}
    for sentences in by_passage(new).values():
        facts = mention_facts(sentences, titles, near, runs="names" in links, parts=run.limits.finds_parts)
        yield from _write(run, run.store.dialect.add(facts), str(call))
    for document in documents:
        know(run, walk, title_of(document))
    return returned


def _rules(run: Loop) -> SentenceRules:
    """Return the sentence rules that passages are split by. The plain rules never applied in this mode."""
    return "any script" if run.limits.finds_parts else "careful"


def _write(run: Loop, statement: str, source: str) -> Steps[None]:
    """Run a statement built by this package. If the store refuses it, it is recorded as refused."""
    try:
        diff = written(run.store, statement)
    except QueryFailed as error:
        yield run.happened(Refused, statement=statement, reason=error.reason, writing=True)
    else:
        yield run.happened(Wrote, statement=statement, diff=diff, source=source)


def write_path_facts(run: Loop, best: PathAnswer) -> Steps[None]:
    """Extract facts from the sentences of the chosen paths and write those that a sentence states."""
    pieces = {
        each.place: SourcedSentence(each.text, each.title, each.source, each.number)
        for route in best.routes
        for each in route.sentences
    }
    says_it = {each.place for route in best.routes for each in route.with_sentences_for(best.text).sentences}
    shown = [
        pieces[place] for place in sorted(pieces, key=lambda place: place not in says_it)[:_READ_FOR_FACTS]
    ]
    if not shown or _were_read(run, shown):
        return
    how = How("facts", temperature=run.limits.temperature)
    text = (
        yield from ask_reply(
            run, "facts", facts_prompt(joined_lines(bracketed(each.title, each.text) for each in shown)), how
        )
    ).text
    said, invented = split_grounded(text, shown)
    grounded = [
        (triple, piece) for triple, piece in said if triple.relation not in (SAYS_SENTENCE, MENTIONS_NAME)
    ]
    if invented:
        yield run.happened(
            Refused, statement=joined_lines(map(str, invented)), reason="no sentence says this", writing=True
        )
    if grounded:
        source = str(run.state.calls[-1]) if run.state.calls else ""
        yield from _write(run, run.store.dialect.add(grounded_facts(grounded, run.store)), source)


def _were_read(run: Loop, shown: Iterable[SourcedSentence]) -> bool:
    """Return whether an earlier run has already extracted facts from these sentences.

    This holds if the initial graph contains all of them, and facts taken from some of them.
    """
    sentences: set[str] = set()
    read: set[str] = set()
    for edge in run.state.start.edges:
        (read, sentences)[edge.type in (SAYS_SENTENCE, MENTIONS_NAME)].update(
            support.sentence for support in supports_of(edge.properties)
        )
    texts = {piece.text for piece in shown}
    return texts <= sentences and bool(texts & read)
