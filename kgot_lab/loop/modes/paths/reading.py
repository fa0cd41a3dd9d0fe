"""Reading in the mode `paths`: paths from the graph, and answers from the sentences of a path."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kgot_lab.errors import QueryFailed
from kgot_lab.loop.events import Parsed, Refused
from kgot_lab.loop.modes.paths.mentions import SCALE, STANDING, bracketed, worths
from kgot_lab.loop.modes.paths.question_form import Form, form_of, none_of, unfit
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, fact_route, read_names, routes_of
from kgot_lab.loop.run_context import How, Loop, Steps, ask_reply, read_event
from kgot_lab.stores.protocol import Dialect, readers
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.text.words import contains_words, name_units
from kgot_lab.types import Document, Message, Prompt, Rows

# A few-shot prompt for reading an answer from sentences, and the check that the answer was read there.
#
# The people, places and works of the examples are invented. None of their names occurs in a bundled
# question or passage.

ANSWER_TOKENS = 40  # tokens of an answer
_SYSTEM = "Answer the question from the text. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_SYSTEM_ALONE = "Answer the question. Reply with the shortest exact answer and nothing else: a name, a date, a number or a few words."
_BRIDGE = (
    "[Varnholt Bridge] Varnholt Bridge was designed by Odile Brantsev in 1911.\n[Odile Brantsev] Odile Brantsev was from Tellmark.",
    "Where was the designer of Varnholt Bridge from?",
    "Tellmark",
)
_YEAR = (
    "[The Glass Orchid] The Glass Orchid is a novel by Imre Dostwell, published in 1957.",
    "When did The Glass Orchid come out?",
    "1957",
)
_CHOICE = (
    "[Quillmoor Rovers] Quillmoor Rovers were founded in 1902.\n[Brask Athletic] Brask Athletic was formed in 1899.",
    "Which club is older, Quillmoor Rovers or Brask Athletic?",
    "Brask Athletic",
)
_YES = (
    "[Pell Hadrowe] Pell Hadrowe is a Danish painter.\n[Sunniva Askelund] Sunniva Askelund (born 1960) is a painter from Oslo.",
    "Are Pell Hadrowe and Sunniva Askelund both painters?",
    "yes",
)
_NO = (
    "[Lake Ombrel] Lake Ombrel lies in Chile.\n[Lake Tirsova] Lake Tirsova is a lake in the north of Finland.",
    "Are Lake Ombrel and Lake Tirsova in the same country?",
    "no",
)
_EXAMPLES = {"open": (_BRIDGE, _YEAR), "choice": (_CHOICE, _BRIDGE), "yes or no": (_YES, _NO)}
EXAMPLE_NAMES = (
    "Varnholt Bridge", "Odile Brantsev", "Tellmark", "The Glass Orchid", "Imre Dostwell", "Quillmoor Rovers", "Brask Athletic",
    "Pell Hadrowe", "Sunniva Askelund", "Lake Ombrel", "Lake Tirsova",
)  # fmt: skip


def few_prompt(question: str, facts: str, *, examples: bool = True) -> Prompt:
    """Build the prompt for an answer from some sentences, after examples of the question's form.

    Without facts, it asks for what the model knows.
    """
    shown = _EXAMPLES[form_of(question)] if examples else ()
    turns = [message for example in shown for message in _turn(*example, alone=not facts)]
    asked = Message("user", _asked(question, facts))
    return Prompt(
        (Message("system", _SYSTEM if facts else _SYSTEM_ALONE), *turns, asked), None, 0.0, 0, ANSWER_TOKENS
    )


def passage_lines(documents: Iterable[Document]) -> str:
    """Format documents as prompt lines, each with its title in brackets before its text."""
    return "\n".join(bracketed(document.title, document.text) for document in documents)


def answer_in(reply: str) -> str:
    """Return the first line of a reply as its answer, without surrounding quotes or a final full stop."""
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    return line.removeprefix("Answer:").strip().strip('"“”').removesuffix(".").strip()


def checked_answer(question: str, answer: str, facts: str) -> str:
    """Return why an answer cannot have been read from some facts, or "" if it can.

    Yes and no answer a yes/no question and no other. Any other answer must occur in the facts, word for word,
    and not in the question, unless the question names the things to choose from.
    """
    form: Form = form_of(question)
    if not (words := name_units(answer)):
        return "it is empty"
    if words in {("yes",), ("no",)}:
        return "" if form == "yes or no" else "the question does not ask for yes or no"
    if form == "yes or no":
        return "the question asks for yes or no"
    if not contains_words(answer, facts):
        return "it does not stand in the sentences"
    return "it stands in the question" if form != "choice" and contains_words(answer, question) else ""


def _turn(facts: str, question: str, answer: str, *, alone: bool) -> tuple[Message, Message]:
    return Message("user", _asked(question, "" if alone else facts)), Message("assistant", answer)


def _asked(question: str, facts: str) -> str:
    return f"{facts}\n\nQuestion: {question}" if facts else f"Question: {question}"


_ROWS = 60  # of a read
_SENTENCES = 80  # sentences whose scores are passed to a read


def paths_read(
    run: Loop, walk: PathWalk, question: str, starts: Sequence[str]
) -> Steps[tuple[dict[str, float], list[Route]]]:
    """Return the relevance score of each sentence, and the routes from some names.

    The routes are read from the graph in all its query languages.
    """
    own = worths(question, list(walk.sentences.values()), walk.embedder)
    worth = {
        place: round(SCALE * value + STANDING * walk.stand_of(walk.sentences[place]), 3)
        for place, value in own.items()
    }
    told = dict(sorted(worth.items(), key=lambda item: -item[1])[:_SENTENCES])
    rows = yield from _rows_in_all(run, lambda dialect: dialect.paths(list(starts), told, _ROWS))
    routes = [_whole(walk, route) for route in routes_of(rows)]
    by_facts = fact_route(walk, question, starts, run.limits.path_tokens) if walk.facts else None
    if by_facts is None:
        return own, routes
    if names := read_names(run, by_facts):
        yield from _rows_in_all(run, lambda dialect: dialect.about(names, 1))
    return own, sorted([by_facts, *routes], key=lambda route: -route.worth)


def _rows_in_all(run: Loop, statement_in: Callable[[Dialect], str]) -> Steps[list[object]]:
    """Return the rows that a statement reads in all query languages of the graph, without repeats."""
    rows: list[object] = []
    for store in (run.store, *readers(run.store)):
        statement = statement_in(store.dialect)
        dialect = "" if store is run.store else store.dialect.name
        try:
            found: Rows = store.read(statement)
        except QueryFailed as error:
            yield run.happened(
                Refused, statement=statement, reason=error.reason, writing=False, dialect=dialect
            )
            continue
        event = read_event(run, store, statement, found, dialect)
        yield event
        rows += [row for row in event.grounded if row not in rows]
    return rows


def _whole(walk: PathWalk, route: Route) -> Route:
    """Return a route with all sentences of its passages, not only those in the rows that were read."""
    passages = {each.source for each in route.sentences}
    under = [
        each
        for each in walk.sentences.values()
        if each.source in passages and each.title in (route.start, route.end)
    ]
    order = sorted(
        {each.place: each for each in (*under, *route.sentences)}.values(),
        key=lambda each: (each.title != route.start, each.source, each.number),
    )
    return replace(route, sentences=tuple(order))


def _widest(walk: PathWalk, question: str, own: Mapping[str, float], budget: int) -> Route:
    """Return the sentences with the highest scores within a token budget, whatever their passage.

    Facts take at most half of the budget.
    """
    facts = (
        fact_route(walk, question, walk.starts, budget // 2 if walk.sentences else budget)
        if walk.facts
        else None
    )
    if facts is not None:
        budget -= estimate_tokens(facts.text)
    worth = {
        place: SCALE * value + STANDING * walk.stand_of(walk.sentences[place]) for place, value in own.items()
    }
    every = Route("", "", "", 0.0, tuple(walk.sentences.values())).within(budget, worth)
    order = sorted(every.sentences, key=lambda each: (-walk.stand_of(each), each.source, each.number))
    return replace(every, sentences=tuple(order), facts=facts.facts if facts is not None else ())


def read_path(
    run: Loop,
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
    answer, likelihood = yield from ask_short(
        run, role, few_prompt(question, text, examples=run.limits.examples)
    )
    problem = checked_answer(question, answer, text) or unfit(question, answer) or none_of(answer, things)
    yield run.happened(Parsed, text=answer, problem=problem)
    return PathAnswer(answer, routes, likelihood, problem)


def read_widely(
    run: Loop, walk: PathWalk, own: Mapping[str, float], things: Sequence[str] = ()
) -> Steps[PathAnswer]:
    """Read the answer from the best whole passages, or from the best sentences of all passages."""
    passages = walk.passages[: run.limits.passages]
    if not passages:
        widest = _widest(walk, run.state.question, own, run.limits.wide_tokens)
        return (yield from read_path(run, run.state.question, (widest,), role="wide", things=things))
    ids = {document.id for document in passages}
    route = Route("", "", "", 0.0, tuple(each for each in walk.sentences.values() if each.source in ids))
    read = yield from read_path(
        run, run.state.question, (route,), role="wide", things=things, shown=passage_lines(passages)
    )
    return replace(read, routes=(route.with_sentences_for(read.text),))


def ask_short(run: Loop, role: str, prompt: Prompt) -> Steps[tuple[str, float | None]]:
    """Ask for a short answer and return it with its probability (0 to 1), or None if it is not reported."""
    reply = yield from ask_reply(
        run, role, prompt.messages, How("path", likelihood=True, temperature=run.limits.temperature)
    )
    return answer_in(reply.text), None if reply.logprob is None else math.exp(reply.logprob)
