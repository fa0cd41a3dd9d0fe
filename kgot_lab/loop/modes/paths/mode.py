"""The mode `paths`: the model reads paths of sentences joined by names, best first, until it is sure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadReply, NotInstalled
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.events import Answered, Chose, Forced, Parsed, Refused, Voted
from kgot_lab.loop.evidence import passages_of
from kgot_lab.loop.insert import lookup, search_tool
from kgot_lab.loop.modes.paths.comparison import question_for_each, questions_of_each, worked_out
from kgot_lab.loop.modes.paths.fetching import fetch, next_look_ups, recall, recall_name, write_path_facts
from kgot_lab.loop.modes.paths.mentions import sentence_heading
from kgot_lab.loop.modes.paths.question_form import (
    all_found,
    comparison_candidates,
    filled,
    form_of,
    hops_in,
    question_hops,
    subjects,
)
from kgot_lab.loop.modes.paths.reading import (
    ask_short,
    checked_answer,
    few_prompt,
    paths_read,
    read_path,
    read_widely,
)
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, weakest
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.loop.run_context import How, Loop, Steps, ask_reply
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.types import Edge

# Decomposed questions: hop by hop along a chain, or two compared things that are asked about separately.


def hop_by_hop(run: Loop, walk: PathWalk) -> Steps[PathAnswer | None]:
    """Answer a multi-hop question one hop at a time, filling each hop with earlier answers.

    Returns the answer of the last hop, or None if the question is not a chain or a hop fails.
    """
    prompt = question_hops(run.state.question)
    hops = hops_in(
        (
            yield from ask_reply(
                run, "hops", prompt.messages, How("hops", temperature=run.limits.temperature)
            )
        ).text
    )
    answers: list[str] = []
    routes: list[Route] = []
    read: list[PathAnswer] = []
    for hop in hops:
        told = filled(hop, answers)
        named = subjects(hop, answers) or walk.named_in(told)
        candidate = yield from _of_thing(run, walk, named[-1] if named else told, told)
        if candidate is None:
            return None
        answers.append(candidate.text)
        routes += candidate.routes
        read.append(candidate)
    if not answers:
        return None
    problem = checked_answer(run.state.question, answers[-1], routes[-1].text)
    yield run.happened(Parsed, text=answers[-1], problem=problem)
    return PathAnswer(answers[-1], tuple(dict.fromkeys(routes)), weakest(read), problem)


def decompose_comparison(run: Loop, walk: PathWalk) -> Steps[PathAnswer | None]:
    """Answer a comparison question by reading about its two things separately.

    Returns None if the question compares other things as well.
    """
    question = run.state.question
    things = comparison_candidates(question, walk.named_in(question))
    if len(things) != 2 or not all_found(question, things):
        return None
    prompt = question_for_each(question)
    reply = yield from ask_reply(
        run, "compared", prompt.messages, How("compared", temperature=run.limits.temperature)
    )
    asked = questions_of_each(reply.text, things)
    values: list[list[str]] = []
    routes: list[Route] = []
    read: list[PathAnswer] = []
    for thing, questions in zip(things, asked, strict=False):
        name = thing
        texts: list[str] = []
        for one in questions:
            told = one.replace("#1", texts[0]) if texts else one
            candidate = yield from _of_thing(run, walk, name, told)
            if candidate is None:
                break
            texts.append(candidate.text)
            routes += candidate.routes
            read.append(candidate)
            name = candidate.text if "#1" in " ".join(questions) else thing
        values.append(texts)
    complete = len(values) == 2 and all(
        len(texts) == len(questions) for texts, questions in zip(values, asked, strict=True)
    )
    answer = worked_out(question, things, values) if complete else ""
    if not answer:
        return None
    yield run.happened(Parsed, text=answer)
    return PathAnswer(answer, tuple(dict.fromkeys(routes)), weakest(read), computed=True)


def _of_thing(run: Loop, walk: PathWalk, name: str, question: str) -> Steps[PathAnswer | None]:
    """Answer a question from the sentences under a name.

    A name that the graph does not hold is searched for. Returns None if the answer is rejected or says
    nothing.
    """
    title = walk.title_for(name) or recall_name(run, walk, name)
    if title is None and (look := search_tool(run)) is not None:
        call = lookup(look, name)
        if call not in run.state.calls:
            yield run.happened(Chose, calls=(call,))
            yield from fetch(run, walk, call)
            title = walk.title_for(name)
    if title is None:
        return None
    own, routes = yield from paths_read(run, walk, question, [title])
    alone = next((route for route in routes if not route.end), None)
    if alone is None:
        return None
    read = yield from read_path(run, question, (alone.within(3 * run.limits.path_tokens // 4, own),))
    return None if read.problem or is_no_answer(read.text) else read


_LATER = 0.5  # weight of an answer from a later path, which is right less often on the dev questions
_WIDE = 0.7  # weight of an answer read from many sentences, for the same reason

_UNUSED = "no name in the graph that was given shares a word with the question and has a sentence or fact that could be read"


def answer_by_paths(run: Loop) -> Steps[None]:
    """Search for the question and read the best paths until an answer is sure.

    While none is, the name at the open end of the best path is searched for.
    """
    walk = PathWalk(_minilm())
    recall(run, walk)
    while True:
        if walk.sentences or walk.facts:
            yield from _answers(run, walk)
            best = walk.best
            if best is not None and walk.is_sure(run.limits.sure):
                yield run.happened(Voted, **_unpolled("RETRIEVE", f"{best.text!r} {best.certainty}"))
                break
            reason = (
                f"no answer is sure; {best.text!r} {best.certainty}" if best else "no path gives an answer"
            )
        else:
            reason = _UNUSED if run.state.start else "nothing is read yet"
        calls = next_look_ups(run, walk) if run.state.step < run.limits.steps else ()
        if not calls:
            if not (walk.sentences or walk.facts) and run.state.start:
                yield run.happened(Refused, statement=run.state.question, reason=_UNUSED, writing=False)
            yield run.happened(Forced, what="read")
            break
        yield run.happened(Voted, **_unpolled("INSERT", reason))
        yield run.happened(Chose, calls=calls)
        for call in calls:
            yield from fetch(run, walk, call)
    best = walk.best
    if best is not None and not best.problem and run.limits.typed_facts:
        yield from write_path_facts(run, best)
    yield from _conclude(run, best)


@cache
def _minilm() -> Embedder | None:
    """Return the embedding model, or None if it is not installed.

    Without it, sentences are compared by their words.
    """
    try:
        return minilm()
    except NotInstalled:
        return None


def _unpolled(choice: str, reason: str) -> dict[str, object]:
    return {"choice": choice, "inserts": 0, "retrieves": 0, "invalid": 0, "possible": 0, "reasons": (reason,)}


def _answers(run: Loop, walk: PathWalk) -> Steps[None]:
    """Read the best unread routes until an answer is sure.

    Two things that are compared are read about separately.
    """
    question, limits, form = run.state.question, run.limits, form_of(run.state.question)
    if form != "open" and limits.comparisons and not walk.answered:
        if (compared := (yield from decompose_comparison(run, walk))) is not None:
            walk.answered.append(compared)
        if walk.is_sure(limits.sure):
            return
    own, routes = yield from paths_read(run, walk, question, walk.starts)
    things = comparison_candidates(question, walk.named_in(question)) if form == "choice" else []
    things = things if all_found(question, things) else []
    fresh = [
        route
        for route in (each.within(limits.path_tokens, own) for each in routes)
        if route.text not in walk.read
    ]
    for route in fresh[: limits.paths]:
        walk.read.add(route.text)
        read = yield from read_path(run, question, (route,), things=things)
        walk.answered.append(replace(read, trust=_LATER if walk.answered else 1.0))
        if walk.is_sure(limits.sure):
            return
        if form == "open" and not walk.split:
            walk.split = True
            if limits.hops and (chained := (yield from hop_by_hop(run, walk))) is not None:
                walk.answered.append(chained)
            if limits.wide_tokens and not walk.is_sure(limits.sure):
                walk.answered.append(replace((yield from read_widely(run, walk, own)), trust=_WIDE))
            if walk.is_sure(limits.sure):
                return
    if not limits.paths and not walk.answered:
        walk.answered.append((yield from read_widely(run, walk, own, things)))


def _conclude(run: Loop, best: PathAnswer | None) -> Steps[None]:
    """Emit the most likely answer with the sentences it was read from, or a guess if no path gave one."""
    if best is None:
        yield run.happened(Forced, what="answer")
        answer, likelihood = yield from ask_short(run, "guess", few_prompt(run.state.question, ""))
        if not answer:
            raise BadReply("the model gave an empty answer; try another model, or another preset", answer)
        yield run.happened(Answered, text=answer, forced=True, likelihood=likelihood)
        return
    narrow = run.limits.finds_parts and not best.computed and not best.problem
    routes = [route.resting(best.text) if narrow else route for route in best.routes]
    edges = list({edge.identity: edge for route in routes for edge in _edges(run, route)}.values())
    supports = tuple(supports_of(edge.properties) for edge in edges)
    yield run.happened(
        Answered,
        text=best.text,
        forced=bool(best.problem),
        evidence=tuple(map(fact_of, edges)),
        passages=passages_of(supports),
        supports=supports,
        likelihood=best.likelihood,
    )


def _edges(run: Loop, route: Route) -> list[Edge]:
    """Return the facts of a route and the edges from titles to its sentences.

    A property of a node counts as an edge.
    """
    places = {sentence.place for sentence in route.sentences}
    titles = dict.fromkeys(sentence.title for sentence in route.sentences)
    facts: list[Edge] = []
    for fact in route.facts:
        same = [
            edge for edge in run.store.neighbours(fact[0]) if (edge.source, edge.type, edge.target) == fact
        ]
        facts += same or [Edge(*fact)]
    return [
        *facts,
        *(edge for title in titles for edge in sentence_heading(title, run.store) if edge.target in places),
    ]
