"""The mode `paths`: the model reads paths of sentences joined by names, best first, until it is sure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadReply, NotInstalled, UnsupportedQuestion
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.answer_check import MAX_CITED, UNDECIDED, CheckedAnswer, check_answer
from kgot_lab.loop.events import Answered, Chose, Forced, Parsed, Refused, ToolCall, ToolReturned, Voted
from kgot_lab.loop.evidence import passage_ids
from kgot_lab.loop.insert import approved_calls, call_tool, search_call, search_tool
from kgot_lab.loop.modes.paths.comparison import (
    comparison_kind,
    comparison_prompt,
    computed_answer,
    parse_comparison_questions,
)
from kgot_lab.loop.modes.paths.fetching import (
    load_name,
    load_start_graph,
    next_searches,
    write_passages,
    write_path_facts,
)
from kgot_lab.loop.modes.paths.mentions import GraphSentence, relevance_scores, sentence_edges
from kgot_lab.loop.modes.paths.question_form import (
    asks_for_date,
    classify_question,
    comparison_candidates,
    describes_entity,
    fill_hop,
    has_all_choices,
    hop_subjects,
    hops_prompt,
    offered_choices,
    parse_hops,
)
from kgot_lab.loop.modes.paths.reading import (
    answer_prompt,
    ask_short_answer,
    read_path,
    read_routes,
    read_widely,
    rejection_reason,
)
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, fact_line, lowest_likelihood
from kgot_lab.loop.modes.paths.values import NO_ANSWER, is_no_answer
from kgot_lab.loop.modes.voting import Mode
from kgot_lab.loop.run_context import CallOptions, Candidate, RunContext, Steps, ask_reply
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import contains_words
from kgot_lab.tools.tool import search_argument
from kgot_lab.types import Edge

# Decomposed questions: hop by hop along a chain, or two compared things that are asked about separately.


def answer_hops(run: RunContext, walk: PathWalk) -> Steps[PathAnswer | None]:
    """Answer a multi-hop question one hop at a time, filling each hop with earlier answers.

    Returns the answer of the last hop, or None if the question is not a chain or a hop fails.
    """
    prompt = hops_prompt(run.state.question)
    options = CallOptions("hops", temperature=run.limits.models.temperature)
    reply = yield from ask_reply(run, "hops", prompt.messages, options)
    hops = parse_hops(reply.text, run.state.question if run.limits.check_answers else "")
    answers: list[str] = []
    routes: list[Route] = []
    read: list[PathAnswer] = []
    for hop in hops:
        question = fill_hop(hop, answers)
        subjects = hop_subjects(hop, answers) or walk.titles_in(question)
        candidate = yield from _answer_about(run, walk, subjects[-1] if subjects else question, question)
        if candidate is None:
            return None
        answers.append(candidate.text)
        routes += candidate.routes
        read.append(candidate)
    if not answers:
        return None
    problem = rejection_reason(run.state.question, answers[-1], routes[-1].text)
    yield run.record(Parsed, text=answers[-1], problem=problem)
    passed = tuple(dict.fromkeys(routes))
    return PathAnswer(answers[-1], passed, lowest_likelihood(read), problem, evidence=_joined_evidence(read))


def answer_comparison(run: RunContext, walk: PathWalk) -> Steps[PathAnswer | None]:
    """Answer a comparison question by reading about its two things separately.

    Returns None if the question compares other things as well.
    """
    question = run.state.question
    things = _compared_things(walk, question)
    if len(things) != 2:
        return None
    prompt = comparison_prompt(question)
    options = CallOptions("compared", temperature=run.limits.models.temperature)
    reply = yield from ask_reply(run, "compared", prompt.messages, options)
    questions_by_thing = parse_comparison_questions(reply.text, things)
    values: list[list[str]] = []
    routes: list[Route] = []
    read: list[PathAnswer] = []
    for thing, questions in zip(things, questions_by_thing, strict=False):
        name = thing
        texts: list[str] = []
        for pattern in questions:
            question_text = pattern.replace("#1", texts[0]) if texts else pattern
            candidate = yield from _answer_about(run, walk, name, question_text)
            if candidate is None:
                break
            texts.append(candidate.text)
            routes += candidate.routes
            read.append(candidate)
            name = candidate.text if "#1" in " ".join(questions) else thing
        values.append(texts)
    complete = len(values) == 2 and list(map(len, values)) == list(map(len, questions_by_thing))
    of_size = comparison_kind(question) in ("most", "least")
    if (
        run.limits.check_answers
        and of_size
        and any(map(asks_for_date, chain.from_iterable(questions_by_thing)))
    ):
        return None  # a year is no length
    answer = computed_answer(question, things, values) if complete else ""
    if not answer:
        return None
    yield run.record(Parsed, text=answer)
    evidence = _joined_evidence(read)
    passed = tuple(dict.fromkeys(routes))
    return PathAnswer(answer, passed, lowest_likelihood(read), computed=True, evidence=evidence)


def _compared_things(walk: PathWalk, question: str) -> list[str]:
    """Return the things that a question compares: titles, or else two things that sentences mention."""
    things = comparison_candidates(question, walk.titles_in(question))
    if len(things) == 2 and has_all_choices(question, things):
        return things
    sentences = list(map(str, walk.sentences.values()))
    offered = [name for name in offered_choices(question) if any(contains_words(name, s) for s in sentences)]
    return offered if len(offered) == 2 and not things else []


def _joined_evidence(read: Iterable[PathAnswer]) -> tuple[GraphSentence, ...]:
    """Return the evidence of several answers, in order and without repeats."""
    return tuple(dict.fromkeys(sentence for answer in read for sentence in answer.evidence))


def _answer_about(run: RunContext, walk: PathWalk, name: str, question: str) -> Steps[PathAnswer | None]:
    """Answer a question from the sentences under a name.

    A name that the graph does not hold is searched for. Returns None if the answer is rejected or says
    nothing.
    """
    title = walk.title_for(name) or load_name(run, walk, name)
    if title is None and (tool := search_tool(run)) is not None:
        call = search_call(tool, name)
        if call not in run.state.calls:
            yield run.record(Chose, calls=(call,))
            for approved in (yield from approved_calls(run, (call,))):
                yield from write_passages(run, walk, (yield from call_tool(run, approved)))
            title = walk.title_for(name)
    if title is None:
        scores, own_route = _mention_route(walk, name, question)
    else:
        scores, routes = yield from read_routes(run, walk, question, [title])
        own_route = next((route for route in routes if not route.end), None)
    if own_route is None:
        return None
    path = own_route.within_budget(3 * run.limits.routes.path_tokens // 4, scores)
    answer = yield from read_path(run, question, (path,))
    return None if answer.problem or is_no_answer(answer.text) else answer


_LATER_TRUST = 0.5  # weight of an answer from a later path, which is right less often on the dev questions
_WIDE_TRUST = 0.7  # weight of an answer read from many sentences, for the same reason

_UNUSED_GRAPH = "no name in the graph that was given shares a word with the question and has a sentence or fact that could be read"


class Paths(Mode):
    """The mode `paths`: sentences and the names in them are written by rule, and paths of them are read.

    While no answer is sure, the name at the open end of the best path is searched for.
    """

    walk: PathWalk
    _calls: tuple[ToolCall, ...] = ()

    def check(self, attachments: Sequence[str]) -> None:
        """Raise UnsupportedQuestion for what the mode cannot use, and warn of tools that it does not call."""
        if self.run.prompts.own:
            raise UnsupportedQuestion("the mode paths has no prompts of these names: take another preset")
        if attachments:
            problem = "the mode paths reads documents that a search finds, not attached files"
            raise UnsupportedQuestion(f"{problem}: leave them out, or take another preset")
        if not self.run.store.schema().nodes and search_tool(self.run) is None:
            raise UnsupportedQuestion(
                'the mode paths needs a tool that finds documents, such as search(documents) or one of yours with finds="query", '
                "or a store that holds a graph"
            )
        if others := [name for name, tool in self.run.tools.items() if not search_argument(tool)]:
            advice = "take the preset local or reference for them"
            warnings.warn(f"the mode paths does not call {', '.join(others)}: {advice}", stacklevel=4)

    def answer(self) -> Steps[None]:
        """Search for the question and read the best paths until an answer is sure."""
        self.walk = PathWalk(_minilm())
        load_start_graph(self.run, self.walk)
        yield from super().answer()

    def vote(self) -> Steps[Voted | None]:
        """Read the best paths. RETRIEVE if an answer is sure, INSERT if there is something to search for."""
        run, walk = self.run, self.walk
        if walk.sentences or walk.facts:
            yield from _read_routes(run, walk)
            best = walk.best
            if best is not None and walk.is_sure(run.limits.routes.sure):
                return run.record(Voted, **_vote_fields("RETRIEVE", f"{best.text!r} {best.certainty}"))
            reason = (
                f"no answer is sure; {best.text!r} {best.certainty}" if best else "no path gives an answer"
            )
        else:
            reason = _UNUSED_GRAPH if run.state.start else "nothing is read yet"
        may_search = run.state.step < run.limits.steps and not (run.limits.check_answers and walk.answered)
        self._calls = next_searches(run, walk) if may_search else ()
        return run.record(Voted, **_vote_fields("INSERT", reason)) if self._calls else None

    def fetch(self, voted: Voted) -> Steps[None]:
        """Search, and write the sentences found with the names in them."""
        yield self.run.record(Chose, calls=self._calls)
        for call in (yield from approved_calls(self.run, self._calls)):
            yield from self.write((yield from call_tool(self.run, call)))

    def write(self, returned: ToolReturned) -> Steps[None]:
        """Write the sentences of the documents that a search returned."""
        yield from write_passages(self.run, self.walk, returned)

    def read(self, voted: Voted | None) -> Steps[list[Candidate]]:
        """Read nothing more: every vote has read paths. Without a sure answer the best of them is taken."""
        run, walk = self.run, self.walk
        if voted is None:
            if not (walk.sentences or walk.facts) and run.state.start:
                yield run.record(Refused, statement=run.state.question, reason=_UNUSED_GRAPH, writing=False)
            yield run.record(Forced, what="read")
        return []

    def conclude(self, candidates: list[Candidate]) -> Steps[None]:
        """Write typed facts from the sentences that the best answer was read from, and give it."""
        run, best = self.run, self.walk.best
        if best and not best.problem and not best.is_refuted and run.limits.routes.typed_facts:
            yield from write_path_facts(run, self.walk, best)
        yield from _conclude(run, best)


def _check(run: RunContext, answer: PathAnswer) -> Steps[PathAnswer]:
    """Return an answer with the check of its evidence, unless it was rejected or says nothing.

    An answer that was computed from values that were read needs no further check.
    """
    if not run.limits.check_answers or answer.problem or is_no_answer(answer.text):
        return answer
    if answer.computed:
        return replace(answer, check=CheckedAnswer(1.0))
    if classify_question(run.state.question) == "choice" and contains_words(answer.text, run.state.question):
        # a claim that compares is beyond a small model
        return replace(answer, check=CheckedAnswer(UNDECIDED, "no text that was read compares them"))
    parts = [route.supporting_part(answer.text) for route in answer.routes]
    facts = [fact_line(fact) for part in parts for fact in part.facts]
    texts = [*map(str, answer.evidence), *facts][:MAX_CITED]
    return replace(answer, check=(yield from check_answer(run, answer.text, texts, answer.likelihood)))


def _add_answer(run: RunContext, walk: PathWalk, answer: PathAnswer) -> Steps[bool]:
    """Note an answer with the check of its evidence, and return whether reading may stop."""
    walk.answered.append((yield from _check(run, answer)))
    return walk.is_sure(run.limits.routes.sure)


@cache
def _minilm() -> Embedder | None:
    """Return the embedding model, or None if it is not installed.

    Without it, sentences are compared by their words.
    """
    try:
        return minilm()
    except NotInstalled:
        return None


def _mention_route(walk: PathWalk, name: str, question: str) -> tuple[dict[str, float], Route | None]:
    """Return the relevance scores of the sentences that mention a name, and the route of them, if any."""
    naming = [sentence for sentence in walk.sentences.values() if contains_words(name, str(sentence))]
    scores = relevance_scores(question, naming, walk.embedder)
    return scores, Route(name, "", "", 0.0, tuple(naming)) if naming else None


def _vote_fields(choice: str, reason: str) -> dict[str, object]:
    return {"choice": choice, "inserts": 0, "retrieves": 0, "invalid": 0, "possible": 0, "reasons": (reason,)}


def _read_routes(run: RunContext, walk: PathWalk) -> Steps[None]:
    """Read the best unread routes until an answer is sure.

    Two things that are compared are read about separately.
    """
    question, limits, form = run.state.question, run.limits, classify_question(run.state.question)
    if form != "open" and limits.routes.comparisons and not walk.answered:
        compared = yield from answer_comparison(run, walk)
        if compared is not None and (yield from _add_answer(run, walk, compared)):
            return
    scores, routes = yield from read_routes(run, walk, question, walk.starts)
    things = _compared_things(walk, question) if form == "choice" else []
    if limits.check_answers and limits.routes.wide_tokens:
        # a wrong answer of many sentences is found by its check, so they are read at once
        if not walk.answered:
            wide = yield from read_widely(run, walk, scores, things)
            if (yield from _add_answer(run, walk, wide)) or not describes_entity(question):
                return
            chained = (yield from answer_hops(run, walk)) if limits.routes.hops else None
            if chained is not None:
                yield from _add_answer(run, walk, chained)
        return
    shortened = (route.within_budget(limits.routes.path_tokens, scores) for route in routes)
    unread = [route for route in shortened if route.text not in walk.read]
    for route in unread[: limits.routes.paths]:
        walk.read.add(route.text)
        read = yield from read_path(run, question, (route,), things=things)
        read = replace(read, trust=_LATER_TRUST if walk.answered else 1.0)
        if (yield from _add_answer(run, walk, read)):
            return
        if form == "open" and not walk.split:
            walk.split = True
            chained = (yield from answer_hops(run, walk)) if limits.routes.hops else None
            if chained is not None and (yield from _add_answer(run, walk, chained)):
                return
            if limits.routes.wide_tokens:
                wide = replace((yield from read_widely(run, walk, scores)), trust=_WIDE_TRUST)
                if (yield from _add_answer(run, walk, wide)):
                    return
    if not limits.routes.paths and not walk.answered:
        yield from _add_answer(run, walk, (yield from read_widely(run, walk, scores, things)))


def _conclude(run: RunContext, best: PathAnswer | None) -> Steps[None]:
    """Emit the most likely answer with the sentences it was read from, or a guess if no path gave one."""
    if best is None:
        yield run.record(Forced, what="answer")
        answer, likelihood = yield from ask_short_answer(run, "guess", answer_prompt(run.state.question, ""))
        if not answer:
            raise BadReply("the model gave an empty answer; try another model, or another preset", answer)
        outcome = "not in the sources" if run.limits.check_answers else "unsure"
        yield run.record(Answered, text=answer, forced=True, likelihood=likelihood, outcome=outcome)
        return
    if run.limits.check_answers and (best.problem or is_no_answer(best.text)):
        missing = f"no text that was read answers: {run.state.question}"
        outcome = "not in the sources"  # what was rejected is not even a guess
        yield run.record(Answered, text=NO_ANSWER, forced=True, outcome=outcome, missing=missing)
        return
    narrow = run.limits.finds_parts and not best.computed and not best.problem
    routes = [route.supporting_part(best.text) if narrow else route for route in best.routes]
    if best.evidence:
        routes = [replace(routes[0], sentences=best.evidence)] if routes[0].facts == () else routes
    edges = list({edge.identity: edge for route in routes for edge in _route_edges(run, route)}.values())
    supports = tuple(supports_of(edge.properties) for edge in edges)
    cited = {"evidence": tuple(map(fact_of, edges)), "passages": passage_ids(supports), "supports": supports}
    outcome, missing = "supported", ""
    if best.check is not None:
        outcome, missing = best.check.outcome, best.check.missing
    judged = {"forced": outcome != "supported", "outcome": outcome, "missing": missing}
    judged = judged if run.limits.check_answers else {"forced": bool(best.problem)}
    yield run.record(Answered, text=best.text, likelihood=best.likelihood, **judged, **cited)


def _route_edges(run: RunContext, route: Route) -> list[Edge]:
    """Return the facts of a route and the edges from titles to its sentences.

    A property of a node counts as an edge.
    """
    nodes = {sentence.place for sentence in route.sentences}
    titles = dict.fromkeys(sentence.title for sentence in route.sentences)
    facts: list[Edge] = []
    for fact in route.facts:
        near = run.store.neighbours(fact[0])
        stored = [edge for edge in near if (edge.source, edge.type, edge.target) == fact]
        facts += stored or [Edge(*fact)]
    sentences = (edge for title in titles for edge in sentence_edges(title, run.store))
    return [*facts, *(edge for edge in sentences if edge.target in nodes)]
