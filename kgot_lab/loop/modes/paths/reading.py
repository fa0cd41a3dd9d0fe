"""Reading in the mode `paths`: paths from the graph, and answers from the sentences of a path."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgot_lab.errors import QueryFailed
from kgot_lab.loop.answer_check import counted_rows, select_evidence
from kgot_lab.loop.events import Parsed, Refused
from kgot_lab.loop.modes.paths.mentions import (
    PASSAGE_WEIGHT,
    SENTENCE_WEIGHT,
    GraphSentence,
    relevance_scores,
    titled_line,
)
from kgot_lab.loop.modes.paths.question_form import (
    EXAMPLES,
    Form,
    classify_question,
    mismatch_reason,
    not_offered_reason,
)
from kgot_lab.loop.modes.paths.routes import (
    PathAnswer,
    PathWalk,
    Route,
    fact_route,
    group_routes,
    names_to_read,
)
from kgot_lab.loop.modes.paths.values import is_no_answer, whole_date
from kgot_lab.loop.run_context import CallOptions, RunContext, Steps, ask_reply, read_event
from kgot_lab.stores.protocol import Dialect, readers
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.text.words import contains_words, content_words, name_units
from kgot_lab.types import Document, Message, Prompt, Rows

# A few-shot prompt for reading an answer from sentences, and the check that the answer was read there.
#
# The people, places and works of the examples are invented. None of their names occurs in a bundled
# question or passage.

ANSWER_TOKENS = 40  # tokens of an answer
_SYSTEM = "Answer the question from the text. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_SYSTEM_ALONE = "Answer the question. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_UNKNOWN = "unknown"
# after an "unknown" less probable than this, the text is read again without the choice to say so
SURE_UNKNOWN = 0.8
_MAY_ABSTAIN = f"If the text does not say it, reply {_UNKNOWN}."


def answer_prompt(question: str, facts: str, *, examples: bool = True, may_abstain: bool = False) -> Prompt:
    """Build the prompt for an answer from some sentences, after examples of the question's form.

    Without facts, it asks for what the model knows. With `may_abstain`, it may reply "unknown".
    """
    form = classify_question(question)
    kinds = (("answers", "abstentions") if may_abstain else ("answers",)) if examples else ()
    shown = (example for kind in kinds for example in EXAMPLES[kind][form])
    turns = [message for example in shown for message in _turn(**example, alone=not facts)]
    request = Message("user", _format_question(question, facts))
    system = " ".join([_SYSTEM if facts else _SYSTEM_ALONE, *([_MAY_ABSTAIN] if may_abstain else [])])
    messages = (Message("system", system), *turns, request)
    return Prompt(messages, None, 0.0, 0, ANSWER_TOKENS)


def format_passages(documents: Iterable[Document]) -> str:
    """Format documents as prompt lines, each with its title in brackets before its text."""
    return "\n".join(titled_line(document.title, document.text) for document in documents)


def parse_answer(reply: str) -> str:
    """Return the first line of a reply as its answer, without surrounding quotes or a final full stop."""
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    return line.removeprefix("Answer:").strip().strip('"“”').removesuffix(".").strip()


NOT_STATED = "it does not stand in the sentences"


def rejection_reason(question: str, answer: str, facts: str) -> str:
    """Return why an answer cannot have been read from some facts, or "" if it can.

    Yes and no answer a yes/no question and no other. Any other answer must occur in the facts, word for word,
    and not in the question, unless the question names the things to choose from.
    """
    form: Form = classify_question(question)
    if not (words := name_units(answer)):
        return "it is empty"
    if words in {("yes",), ("no",)}:
        return "" if form == "yes or no" else "the question does not ask for yes or no"
    if form == "yes or no":
        return "the question asks for yes or no"
    if not contains_words(answer, facts):
        return NOT_STATED
    return "it stands in the question" if form != "choice" and contains_words(answer, question) else ""


def _turn(facts: str, question: str, answer: str, *, alone: bool) -> tuple[Message, Message]:
    return Message("user", _format_question(question, "" if alone else facts)), Message("assistant", answer)


def _format_question(question: str, facts: str) -> str:
    return f"{facts}\n\nQuestion: {question}" if facts else f"Question: {question}"


# weights of a sentence's similarity, the rank of its passage and its words, chosen on the dev questions of
# data/own-folders (sentences needed that are among those read, benchmarks/own_folders)
OVERLAP_WEIGHTS = (0.25, 0.5, 8.0)
_MAX_ROWS = 60  # of a read
_MAX_SCORED = 80  # sentences whose scores are passed to a read


def read_routes(
    run: RunContext, walk: PathWalk, question: str, starts: Sequence[str]
) -> Steps[tuple[dict[str, float], list[Route]]]:
    """Return the relevance score of each sentence, and the routes from some names.

    The routes are read from the graph in all its query languages.
    """
    scores = relevance_scores(question, list(walk.sentences.values()), walk.embedder)
    weighted = {
        node: round(SENTENCE_WEIGHT * value + PASSAGE_WEIGHT * walk.passage_score(walk.sentences[node]), 3)
        for node, value in scores.items()
    }
    best = dict(sorted(weighted.items(), key=lambda item: -item[1])[:_MAX_SCORED])
    rows = yield from _read_in_all(run, lambda dialect: dialect.paths(list(starts), best, _MAX_ROWS))
    routes = [_with_passage_sentences(walk, route) for route in group_routes(rows)]
    by_facts = fact_route(walk, question, starts, run.limits.routes.path_tokens) if walk.facts else None
    if by_facts is None:
        return scores, routes
    if names := names_to_read(run, by_facts):
        yield from _read_in_all(run, lambda dialect: dialect.about(names, 1))
    return scores, sorted([by_facts, *routes], key=lambda route: -route.worth)


def _read_in_all(run: RunContext, statement_in: Callable[[Dialect], str]) -> Steps[list[object]]:
    """Return the rows that a statement reads in all query languages of the graph, without repeats."""
    rows: list[object] = []
    for store in (run.store, *readers(run.store)):
        statement = statement_in(store.dialect)
        dialect = "" if store is run.store else store.dialect.name
        try:
            read_rows: Rows = store.read(statement)
        except QueryFailed as error:
            refused = {"statement": statement, "reason": error.reason, "dialect": dialect}
            yield run.record(Refused, writing=False, **refused)
            continue
        event = read_event(run, store, statement, read_rows, dialect)
        yield event
        rows += [row for row in event.grounded if row not in rows]
    return rows


def _with_passage_sentences(walk: PathWalk, route: Route) -> Route:
    """Return a route with all sentences of its passages, not only those in the rows that were read."""
    passages = {sentence.source for sentence in route.sentences}
    ends = route.start, route.end
    near = (s for s in walk.sentences.values() if s.source in passages and s.title in ends)
    unique = {sentence.place: sentence for sentence in (*near, *route.sentences)}
    order = sorted(unique.values(), key=lambda s: (s.title != route.start, s.source, s.number))
    return replace(route, sentences=tuple(order))


def _best_sentences(
    run: RunContext, walk: PathWalk, question: str, scores: Mapping[str, float], budget: int
) -> Route:
    """Return the sentences with the highest scores within a token budget, whatever their passage.

    Facts take at most half of the budget.
    """
    share = budget // 2 if walk.sentences else budget
    facts = fact_route(walk, question, walk.starts, share) if walk.facts else None
    if facts is not None:
        budget -= estimate_tokens(facts.text)
    checked = run.limits.check_answers
    similarity, rank, words = OVERLAP_WEIGHTS if checked else (SENTENCE_WEIGHT, PASSAGE_WEIGHT, 0.0)
    overlap = word_overlap(question, walk.sentences)
    weighted = {
        node: similarity * value + rank * walk.passage_score(walk.sentences[node]) + words * overlap[node]
        for node, value in scores.items()
    }
    all_sentences = Route("", "", "", 0.0, tuple(walk.sentences.values())).within_budget(budget, weighted)
    order = sorted(all_sentences.sentences, key=lambda s: (-walk.passage_score(s), s.source, s.number))
    return replace(all_sentences, sentences=tuple(order), facts=facts.facts if facts is not None else ())


def word_overlap(question: str, sentences: Mapping[str, GraphSentence]) -> dict[str, float]:
    """Return for each sentence the share of the question's content words that it has, rare words counting more.

    A word that n of N sentences have weighs log(1 + N / n).
    """
    asked = set(content_words(question))
    shared = {place: asked & set(content_words(str(sentence))) for place, sentence in sentences.items()}
    counts = Counter(word for words in shared.values() for word in words)
    weights = {word: math.log(1 + len(sentences) / counts[word]) for word in counts}
    total = sum(weights.values()) or 1.0
    return {place: sum(weights[word] for word in words) / total for place, words in shared.items()}


def read_path(
    run: RunContext,
    question: str,
    routes: tuple[Route, ...],
    *,
    role: str = "path",
    things: Sequence[str] = (),
    shown: str = "",
) -> Steps[PathAnswer]:
    """Read the answer to a question from the sentences of some routes.

    If `things` are given, the answer must be one of them. The prompt shows the sentences as in the routes, or
    the text `shown` that contains them.
    """
    text = shown or "\n".join(dict.fromkeys(line for route in routes for line in route.text.splitlines()))
    limits = run.limits
    prompt = answer_prompt(question, text, examples=limits.routes.examples, may_abstain=limits.check_answers)
    answer, likelihood = yield from ask_short_answer(run, role, prompt)
    is_unknown = limits.check_answers and role == "wide" and is_no_answer(answer)
    if is_unknown and likelihood is not None and likelihood < SURE_UNKNOWN:
        plain = answer_prompt(question, text, examples=limits.routes.examples)
        answer, _ = yield from ask_short_answer(run, "reread", plain)
        likelihood = 1 - likelihood
    problem = rejection_reason(question, answer, text) or mismatch_reason(question, answer)
    problem = problem or not_offered_reason(answer, things)
    sentences = dict.fromkeys(sentence for route in routes for sentence in route.sentences)
    evidence, counted = tuple[GraphSentence, ...](), tuple[GraphSentence, ...]()
    if limits.check_answers:
        counted = counted_rows(question, answer, sentences)
        evidence = counted or select_evidence(question, answer, list(sentences))
        problem = "" if problem == NOT_STATED and evidence else problem
        answer = whole_date(question, answer, evidence[-1].text) if evidence else answer
    yield run.record(Parsed, text=answer, problem=problem)
    return PathAnswer(answer, routes, likelihood, problem, bool(counted), evidence=evidence)


def read_widely(
    run: RunContext, walk: PathWalk, scores: Mapping[str, float], things: Sequence[str] = ()
) -> Steps[PathAnswer]:
    """Read the answer from the best whole passages, or from the best sentences of all passages."""
    passages = walk.passages[: run.limits.routes.passages]
    if not passages:
        widest = _best_sentences(run, walk, run.state.question, scores, run.limits.routes.wide_tokens)
        return (yield from read_path(run, run.state.question, (widest,), role="wide", things=things))
    ids = {document.id for document in passages}
    sentences = (sentence for sentence in walk.sentences.values() if sentence.source in ids)
    route, shown = Route("", "", "", 0.0, tuple(sentences)), format_passages(passages)
    question = run.state.question
    read = yield from read_path(run, question, (route,), role="wide", things=things, shown=shown)
    return replace(read, routes=(route.with_sentences_for(read.text),))


def ask_short_answer(run: RunContext, role: str, prompt: Prompt) -> Steps[tuple[str, float | None]]:
    """Ask for a short answer and return it with its probability (0 to 1), or None if it is not reported."""
    options = CallOptions("path", likelihood=True, temperature=run.limits.models.temperature)
    reply = yield from ask_reply(run, role, prompt.messages, options)
    return parse_answer(reply.text), None if reply.logprob is None else math.exp(reply.logprob)
