"""The mode `paths` without its graph, and with a wrong one: controls for the question whether the graph helps.

Each control runs the code of the mode with the parts replaced that read the graph, so that the decomposition,
the prompts, the comparing in code, the budgets and the order of reads are the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from unittest.mock import patch

from kgot_lab.benchmark.questions.question import Question
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Chose, Event
from kgot_lab.loop.insert import call_tool, search_call, search_tool
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.modes.paths import fetching, mode, reading
from kgot_lab.loop.modes.paths.mentions import mention_facts, new_sentences, passage_title, relevance_scores
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.loop.run_context import RunContext, Steps
from kgot_lab.retrieval.entities import EntityFinder
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME
from kgot_lab.stores import empty_store
from kgot_lab.tools.tool import Tool, search_argument
from kgot_lab.types import LLM, Triple

Walk = Callable[..., Iterator[Event]]


def without_graph(question: Question, llm: LLM, tools: Sequence[Tool], limits: Limits) -> Iterator[Event]:
    """Answer with the best sentences of what a search finds: each read takes as many tokens as a path would.

    What a hop or a compared thing is asked about is searched for in its own words.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(mode, "read_routes", _read_sentences))
        stack.enter_context(patch.object(mode, "_answer_about", _answer_from_search))
        yield from _think(question, llm, tools, limits)


def with_shuffled_links(
    question: Question, llm: LLM, tools: Sequence[Tool], limits: Limits
) -> Iterator[Event]:
    """Answer along paths whose links from a sentence to a name lead to a name of another sentence.

    The links of the first search are shuffled once, by a seed of the question's id: every sentence keeps its
    number of links, and every name too. A link that is written later leads to one of those names.
    """
    shuffler = _LinkShuffler(random.Random(question.id), _links(question, tools[0]))
    with patch.object(fetching, "mention_facts", shuffler.mention_facts):
        yield from _think(question, llm, tools, limits)


def _think(question: Question, llm: LLM, tools: Sequence[Tool], limits: Limits) -> Iterator[Event]:
    with closing(empty_store("in_memory")) as store:
        yield from think(question.text, llm, store, tools, limits)


# --- no graph ---


def _read_sentences(
    run: RunContext, walk: PathWalk, question: str, starts: Sequence[str]
) -> Steps[tuple[dict[str, float], list[Route]]]:
    """Return the scores of the sentences, and the best of them as the only routes, one after the other."""
    scores = relevance_scores(question, list(walk.sentences.values()), walk.embedder)
    routes: list[Route] = []
    left = PathWalk(walk.embedder, dict(walk.sentences), walk.standing, walk.found)
    while left.sentences and len(routes) < run.limits.routes.paths:
        some = {node: scores[node] for node in left.sentences}
        routes.append(reading._best_sentences(run, left, question, some, run.limits.routes.path_tokens))
        for sentence in routes[-1].sentences:
            del left.sentences[sentence.place]
    return scores, routes
    yield  # like `read_routes`, whose reads are events


def _answer_from_search(
    run: RunContext, walk: PathWalk, name: str, question: str
) -> Steps[PathAnswer | None]:
    """Answer a part of the question from the best sentences of a search for it."""
    tool = search_tool(run)
    call = search_call(tool, question) if tool else None
    if call and call not in run.state.calls:
        yield run.record(Chose, calls=(call,))
        yield from fetching.write_passages(run, walk, (yield from call_tool(run, call)))
    scores = relevance_scores(question, list(walk.sentences.values()), walk.embedder)
    route = reading._best_sentences(run, walk, question, scores, 3 * run.limits.routes.path_tokens // 4)
    answer = yield from reading.read_path(run, question, (route,))
    return None if answer.problem or is_no_answer(answer.text) else answer


# --- wrong links ---


def _links(question: Question, tool: Tool) -> list[tuple[str, str]]:
    """Return the links from sentences to names that the first search of a question would write."""
    documents = tool(**{search_argument(tool): question.text}).sources
    sentences = new_sentences(documents, None)
    finder = EntityFinder((sentence.text for sentence in sentences), ())
    facts = mention_facts(sentences, list(map(passage_title, documents)), finder=finder)
    return [(triple.subject, triple.object) for triple, _ in facts if triple.relation == MENTIONS_NAME]


class _LinkShuffler:
    """Gives links other names, the same each time."""

    def __init__(self, chance: random.Random, links: Sequence[tuple[str, str]]):
        self._chance, self._pool = chance, [name for _, name in links]
        names = list(self._pool)
        chance.shuffle(names)
        self._shuffled = dict(zip(links, names, strict=True))

    def mention_facts(self, *args, **options) -> list:
        """Return the facts of some sentences, with other names."""
        return [
            (Triple(t.subject, t.relation, self._name(t.subject, t.object)), support)
            if t.relation == MENTIONS_NAME
            else (t, support)
            for t, support in mention_facts(*args, **options)
        ]

    def _name(self, sentence: str, name: str) -> str:
        known = self._shuffled.get((sentence, name))
        if known is None:
            known = self._shuffled[sentence, name] = self._chance.choice(self._pool or [name])
        return known
