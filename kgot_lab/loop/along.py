"""The mode `paths`: sentences are joined by names, and the model reads one path at a time, the best first, until it is sure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadReply, NotInstalled, QueryFailed
from kgot_lab.graph.supports import noted
from kgot_lab.loop import prompts
from kgot_lab.loop.cut import joined_lines
from kgot_lab.loop.events import Answered, Chose, Forced, Parsed, Refused, ToolCall, ToolReturned, Voted, Wrote
from kgot_lab.loop.evidence import passages_of
from kgot_lab.loop.insert import SourcedSentence, grounded_facts, lookup, read_triples, says_fact, search_tool, use
from kgot_lab.loop.run import How, Loop, Steps, ask_reply, read_event
from kgot_lab.paths.compare import asked_of_each, compared, comparison_of, questions_of_each
from kgot_lab.paths.few import answer_in, checked_answer, few_prompt
from kgot_lab.paths.form import form_of, none_of, unfit
from kgot_lab.paths.mentions import PlacedSentence, by_passage, mention_facts, new_sentences, said_under, title_of
from kgot_lab.paths.routes import Route, routes_of
from kgot_lab.paths.split import filled, hops_asked, hops_in, subjects
from kgot_lab.paths.worth import SCALE, STANDING, without_names, worths
from kgot_lab.retrieval.names import Titles, capitalised, compared_name
from kgot_lab.sandbox.inside.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.in_memory import fact_of
from kgot_lab.stores.protocol import readers
from kgot_lab.text.words import plain_answer
from kgot_lab.types import Document, Edge, Prompt, Rows, Triple

_ROWS = 60  # of a read
_LATER = 0.5  # what the likelihood of an answer from a later path counts: on the develop questions it is right less often
_WIDE = 0.7  # what the likelihood of an answer read from many sentences counts, for the same reason
_STARTS = 12  # names that paths begin at
_READ_FOR_FACTS = 4  # sentences
_SENTENCES = 80  # that a read is told the worth of


@dataclass(frozen=True)
class PathAnswer:
    """An answer, the routes it was read from, how likely the model held it (None: not told), and why it is refused, if it is."""

    text: str
    routes: tuple[Route, ...]
    likelihood: float | None
    problem: str = ""
    computed: bool = False  # worked out from values that were read
    trust: float = 1.0  # what its likelihood counts beside that of others

    @property
    def likely(self) -> float:
        """How likely the model held it, times what that counts; 0 where it is not told."""
        return self.trust * (self.likelihood or 0.0)

    @property
    def told(self) -> str:
        """How sure the answer is, for people."""
        if self.computed:
            return "was worked out from what was read"
        told = "was read" if self.likelihood is None else f"is {self.likelihood:.0%} likely"
        return f"{told}, but {self.problem}" if self.problem else f"{told} and stands in the evidence"


@dataclass
class PathWalk:
    """What this question has met on its way, beside the graph."""

    embedder: Embedder | None
    sentences: dict[str, PlacedSentence] = field(default_factory=dict)  # by their places
    standing: dict[str, float] = field(default_factory=dict)  # of titles, 0 to 1
    found: dict[str, float] = field(default_factory=dict)  # the standing of passages, by their ids
    answered: list[PathAnswer] = field(default_factory=list)
    read: set[str] = field(default_factory=set)  # texts of routes
    split: bool = False  # whether the question was split into hops

    def stands(self, documents: Sequence[Document]) -> None:
        """Note how well passages were found: 1 / rank, half of it where it was not the question that was looked up."""
        whole = 1.0 if not self.standing else 0.5
        for rank, document in enumerate(documents, start=1):
            title = title_of(document)
            self.standing[title] = max(self.standing.get(title, 0.0), whole / rank)
            self.found[document.id] = max(self.found.get(document.id, 0.0), whole / rank)

    def stand_of(self, sentence: PlacedSentence) -> float:
        """How well the passage of a sentence was found: as its title, where the passage itself was not."""
        return self.found.get(sentence.source, self.standing.get(sentence.title, 0.0))


def along(run: Loop) -> Steps[None]:
    """Open with the question, read the best paths, and look up the name at the open end of the best while no answer is sure."""
    walk = PathWalk(_minilm())
    _recall(run, walk)
    while True:
        if walk.sentences:
            yield from _answers(run, walk)
            best = _best(walk.answered)
            if best is not None and _is_sure(run, walk):
                yield run.happened(Voted, **_unpolled("RETRIEVE", f"{best.text!r} {best.told}"))
                break
            reason = f"no answer is sure; {best.text!r} {best.told}" if best else "no path gives an answer"
        else:
            reason = "nothing is read yet"
        calls = _next_calls(run, walk) if run.state.step < run.limits.steps else ()
        if not calls:
            yield run.happened(Forced, what="read")
            break
        yield run.happened(Voted, **_unpolled("INSERT", reason))
        yield run.happened(Chose, calls=calls)
        for call in calls:
            yield from _fetch(run, walk, call)
    best = _best(walk.answered)
    if best is not None and not best.problem and run.limits.typed_facts:
        yield from _write_facts(run, best)
    yield from _conclude(run, best)


@cache
def _minilm() -> Embedder | None:
    """The embedding model, or none where it is not installed: sentences are then compared by words."""
    try:
        return minilm()
    except NotInstalled:
        return None


def _unpolled(choice: str, reason: str) -> dict[str, object]:
    return {"choice": choice, "inserts": 0, "retrieves": 0, "invalid": 0, "possible": 0, "reasons": (reason,)}


# --- what is fetched and written ----------------------------------------------------------------------------------------------


def _recall(run: Loop, walk: PathWalk) -> None:
    """What a graph that the run began with says near the question: the sentences under the names that it finds for it."""
    if not run.store.schema().nodes:
        return
    named = [node.id for node in run.store.search(run.state.question, limit=_STARTS)]
    titles = [name for name in named if said_under(name, run.store)]
    for rank, title in enumerate(titles, start=1):
        walk.standing[title] = max(walk.standing.get(title, 0.0), 1 / rank)
        _know(run, walk, title)


def _know(run: Loop, walk: PathWalk, title: str) -> None:
    """Note the sentences that the graph holds under a title."""
    before: Counter[str] = Counter()
    for edge in said_under(title, run.store):
        text, source = edge.properties.get("sentence"), str(edge.properties.get("source", ""))
        if isinstance(text, str):
            walk.sentences[edge.target] = PlacedSentence(edge.target, title, text, source, before[source])
            before[source] += 1


def _next_calls(run: Loop, walk: PathWalk) -> tuple[ToolCall, ...]:
    """The question itself first; later what is asked, with the names at the open ends of the best paths."""
    look = search_tool(run)
    if look is None:
        return ()
    if not run.state.calls:
        return (lookup(look, run.state.question),)
    asked = without_names(run.state.question)
    ends = dict.fromkeys(name for candidate in walk.answered for route in candidate.routes for name in _open_ends(run, walk, route))
    if not ends:
        return ()
    call = lookup(look, f"{asked} {' '.join(list(ends)[:3])}")
    return () if call in run.state.calls else (call,)


def _open_ends(run: Loop, walk: PathWalk, route: Route) -> Iterable[str]:
    """Names in the sentences of a route that neither the question names nor a title is."""
    question = f" {compared_name(run.state.question)} "
    titles = {compared_name(title) for title in walk.standing}
    for sentence in reversed(route.sentences):
        yield from sorted(name for name in capitalised(sentence.text) if name not in titles and f" {name} " not in question)


def _fetch(run: Loop, walk: PathWalk, call: ToolCall) -> Steps[ToolReturned]:
    """Make a call, and write the sentences of what it returned, a statement for each passage."""
    returned = yield from use(run, call)
    if returned.failed:
        return returned
    documents = returned.sources or (Document("", returned.text, " ".join(map(str, call.arguments.values()))),)  # a text without a source
    walk.stands(documents)
    new = new_sentences(documents, run.store)
    titles = list(dict.fromkeys([*walk.standing, *map(title_of, documents)]))
    for sentences in by_passage(new).values():
        yield from _write(run, run.store.dialect.add(mention_facts(sentences, titles)), str(call))
    for document in documents:
        _know(run, walk, title_of(document))
    return returned


def _write(run: Loop, statement: str, source: str) -> Steps[None]:
    """Run a statement that we spelled; where the store refuses it, it is given up, visibly."""
    try:
        diff = run.store.write(statement)
    except QueryFailed as error:
        yield run.happened(Refused, statement=statement, reason=error.reason, writing=True)
    else:
        yield run.happened(Wrote, statement=statement, diff=diff, source=source)


# --- what is read and answered ------------------------------------------------------------------------------------------------


def _answers(run: Loop, walk: PathWalk) -> Steps[None]:
    """Answer from the best routes that were not read before, until one is sure; two things that are compared are asked about apart."""
    question = run.state.question
    if form_of(question) != "open" and not walk.answered:
        candidate = yield from _compare(run, walk)
        if candidate is not None:
            walk.answered.append(candidate)
            if _is_sure(run, walk):
                return
    own, routes = yield from _routes(run, walk, question, _starts(walk))
    fresh = [route for route in (each.within(run.limits.path_tokens, own) for each in routes) if route.text not in walk.read]
    for route in fresh[: run.limits.paths]:
        walk.read.add(route.text)
        things = _things(walk, question) if form_of(question) == "choice" else []
        read = yield from _read_along(run, question, (route,), things=things)
        walk.answered.append(replace(read, trust=_LATER if walk.answered else 1.0))
        if _is_sure(run, walk):
            return
        if not walk.split and form_of(question) == "open":
            walk.split = True
            if run.limits.hops and (candidate := (yield from _hop_by_hop(run, walk))) is not None:
                walk.answered.append(candidate)
            if not _is_sure(run, walk) and run.limits.wide_tokens:
                read = yield from _read_along(run, question, (_widest(run, walk, own),), role="wide")
                walk.answered.append(replace(read, trust=_WIDE))
            if _is_sure(run, walk):
                return


def _is_sure(run: Loop, walk: PathWalk) -> bool:
    """Whether an answer was worked out, or is likely enough to end with; of a model that tells no likelihood, whether two paths agree."""
    fit = [each for each in walk.answered if not each.problem]
    untold = Counter(plain_answer(each.text) for each in fit if each.likelihood is None)
    return max(untold.values(), default=0) > 1 or any(each.computed or each.likely >= run.limits.sure for each in fit)


def _starts(walk: PathWalk) -> list[str]:
    """The titles that stand best, where paths begin."""
    return sorted(walk.standing, key=lambda title: -walk.standing[title])[:_STARTS]


def _routes(run: Loop, walk: PathWalk, question: str, starts: Sequence[str]) -> Steps[tuple[dict[str, float], list[Route]]]:
    """What each sentence is worth to a question by itself, and the routes from some names, read from the graph in all its languages."""
    own = worths(question, list(walk.sentences.values()), walk.embedder)
    worth = {place: round(SCALE * value + STANDING * walk.stand_of(walk.sentences[place]), 3) for place, value in own.items()}
    told = dict(sorted(worth.items(), key=lambda item: -item[1])[:_SENTENCES])
    rows: list[object] = []
    for store in (run.store, *readers(run.store)):
        statement = store.dialect.paths(list(starts), told, _ROWS)
        dialect = "" if store is run.store else store.dialect.name
        try:
            found: Rows = store.read(statement)
        except QueryFailed as error:
            yield run.happened(Refused, statement=statement, reason=error.reason, writing=False, dialect=dialect)
            continue
        event = read_event(run, store, statement, found, dialect)
        yield event
        rows += [row for row in event.grounded if row not in rows]
    return own, [_whole(walk, route) for route in routes_of(rows)]


def _whole(walk: PathWalk, route: Route) -> Route:
    """A route with every sentence of its passages, not only those in the rows that were read."""
    passages = {each.source for each in route.sentences}
    under = [each for each in walk.sentences.values() if each.source in passages and each.title in (route.start, route.end)]
    order = sorted(
        {each.place: each for each in (*under, *route.sentences)}.values(),
        key=lambda each: (each.title != route.start, each.source, each.number),
    )
    return replace(route, sentences=tuple(order))


def _widest(run: Loop, walk: PathWalk, own: Mapping[str, float]) -> Route:
    """The sentences that are worth most, wherever they stand, for a question whose best path gives no sure answer."""
    worth = {place: SCALE * value + STANDING * walk.stand_of(walk.sentences[place]) for place, value in own.items()}
    every = Route("", "", "", 0.0, tuple(walk.sentences.values())).within(run.limits.wide_tokens, worth)
    order = sorted(every.sentences, key=lambda each: (-walk.stand_of(each), each.source, each.number))
    return replace(every, sentences=tuple(order))


def _read_along(
    run: Loop, question: str, routes: tuple[Route, ...], *, role: str = "path", things: Sequence[str] = ()
) -> Steps[PathAnswer]:
    """The answer that the sentences of some routes give to a question, one of the `things` where some are named."""
    text = "\n".join(dict.fromkeys(line for route in routes for line in route.text.splitlines()))
    answer, likelihood = yield from _ask(run, role, few_prompt(question, text))
    problem = checked_answer(question, answer, text) or unfit(question, answer) or none_of(answer, things)
    yield run.happened(Parsed, text=answer, problem=problem)
    return PathAnswer(answer, routes, likelihood, problem)


def _ask(run: Loop, role: str, prompt: Prompt) -> Steps[tuple[str, float | None]]:
    """A short answer and how likely the model held it, 0 to 1; None where it is not told."""
    reply = yield from ask_reply(run, role, prompt.messages, How("path", likelihood=True, temperature=run.limits.temperature))
    return answer_in(reply.text), None if reply.logprob is None else math.exp(reply.logprob)


def _weakest(read: Iterable[PathAnswer]) -> float | None:
    """How likely the least likely of some answers is: what follows from them is no surer. None where one is not told."""
    told = [each.likelihood for each in read]
    return None if None in told else min((each for each in told if each is not None), default=None)


def _best(candidates: Iterable[PathAnswer]) -> PathAnswer | None:
    """The answer that was worked out, or else the likeliest, of those that are not refused where there is one."""
    return max((each for each in candidates if each.text), key=lambda each: (not each.problem, each.computed, each.likely), default=None)


# --- hop by hop ---------------------------------------------------------------------------------------------------------------


def _hop_by_hop(run: Loop, walk: PathWalk) -> Steps[PathAnswer | None]:
    """The answer of the last hop, each asked about the answer of an earlier one; none where the question is no chain, or a hop fails."""
    prompt = hops_asked(run.state.question)
    hops = hops_in((yield from ask_reply(run, "hops", prompt.messages, How("hops", temperature=run.limits.temperature))).text)
    answers: list[str] = []
    routes: list[Route] = []
    read_along: list[PathAnswer] = []
    for hop in hops:
        told = filled(hop, answers)
        named = subjects(hop, answers) or _things(walk, told)
        candidate = yield from _of_thing(run, walk, named[-1] if named else told, told)
        if candidate is None or candidate.problem:
            return None
        answers.append(candidate.text)
        routes += candidate.routes
        read_along.append(candidate)
    if not answers:
        return None
    problem = checked_answer(run.state.question, answers[-1], routes[-1].text)
    yield run.happened(Parsed, text=answers[-1], problem=problem)
    return PathAnswer(answers[-1], tuple(dict.fromkeys(routes)), _weakest(read_along), problem)


# --- two things compared ------------------------------------------------------------------------------------------------------


def _compare(run: Loop, walk: PathWalk) -> Steps[PathAnswer | None]:
    """The answer worked out from what is read of each of two things that the question names; none where it names no two."""
    question = run.state.question
    things = _things(walk, question)
    if len(things) != 2:
        return None
    prompt = asked_of_each(question)
    reply = yield from ask_reply(run, "compared", prompt.messages, How("compared", temperature=run.limits.temperature))
    asked = questions_of_each(reply.text, things)
    values: list[list[str]] = []
    routes: list[Route] = []
    read_along: list[PathAnswer] = []
    for thing, questions in zip(things, asked, strict=False):
        name = thing
        read: list[str] = []
        for one in questions:
            told = one.replace("#1", read[0]) if read else one
            candidate = yield from _of_thing(run, walk, name, told)
            if candidate is None:
                break
            read.append(candidate.text)
            routes += candidate.routes
            read_along.append(candidate)
            name = candidate.text if "#1" in " ".join(questions) else thing
        values.append(read)
    answer = compared(comparison_of(question), things, values) if len(values) == 2 else ""
    if not answer:
        return None
    yield run.happened(Parsed, text=answer)
    return PathAnswer(answer, tuple(dict.fromkeys(routes)), _weakest(read_along), computed=True)


def _things(walk: PathWalk, question: str) -> list[str]:
    """The titles that a question names, in its order."""
    known = Titles(Document(title, "", title) for title in walk.standing)
    return list(dict.fromkeys(known[name][0] for name in known.mentioned(question, cased=False)))


def _of_thing(run: Loop, walk: PathWalk, name: str, question: str) -> Steps[PathAnswer | None]:
    """What the sentences under a name answer; a name that the graph does not hold is looked up."""
    title = _title(walk, name)
    if title is None and (look := search_tool(run)) is not None:
        call = lookup(look, name)
        if call not in run.state.calls:
            yield run.happened(Chose, calls=(call,))
            yield from _fetch(run, walk, call)
            title = _title(walk, name)
    if title is None:
        return None
    own, routes = yield from _routes(run, walk, question, [title])
    alone = next((route for route in routes if not route.end), None)
    if alone is None:
        return None
    return (yield from _read_along(run, question, (alone.within(3 * run.limits.path_tokens // 4, own),)))


def _title(walk: PathWalk, name: str) -> str | None:
    """The title in the graph that a name stands for."""
    if name in walk.standing:
        return name
    known = Titles(Document(title, "", title) for title in walk.standing)
    found = known[compared_name(name)] or [id for told in known.mentioned(name, cased=False) for id in known[told]]
    return max(found, key=lambda title: walk.standing[title], default=None)


# --- the end ------------------------------------------------------------------------------------------------------------------


def _write_facts(run: Loop, best: PathAnswer) -> Steps[None]:
    """The facts that a model takes from the sentences of the paths in hand, written where one of the sentences says them."""
    pieces = {
        each.place: SourcedSentence(each.text, each.title, each.source, each.number) for route in best.routes for each in route.sentences
    }
    shown = list(pieces.values())[:_READ_FOR_FACTS]
    how = How("facts", temperature=run.limits.temperature)
    text = (yield from ask_reply(run, "facts", prompts.extract(joined_lines(map(str, shown))), how)).text
    grounded: list[tuple[Triple, SourcedSentence]] = []
    invented: list[Triple] = []
    for triple in read_triples(text):
        piece = next((piece for piece in shown if says_fact(piece, triple)), None)
        if piece is None:
            invented.append(triple)
        elif triple.relation not in (SAYS_SENTENCE, MENTIONS_NAME):
            grounded.append((triple, piece))
    if invented:
        yield run.happened(Refused, statement=joined_lines(map(str, invented)), reason="no sentence says this", writing=True)
    if grounded:
        source = str(run.state.calls[-1]) if run.state.calls else ""
        yield from _write(run, run.store.dialect.add(grounded_facts(grounded, run.store)), source)


def _conclude(run: Loop, best: PathAnswer | None) -> Steps[None]:
    """The likeliest answer, with the sentences it was read from; a guess where no path gives one."""
    if best is None:
        yield run.happened(Forced, what="answer")
        answer, likelihood = yield from _ask(run, "guess", few_prompt(run.state.question, ""))
        if not answer:
            raise BadReply("the model gave an empty answer; try another model, or another preset", answer)
        yield run.happened(Answered, text=answer, forced=True, likelihood=likelihood)
        return
    edges = list({edge.identity: edge for route in best.routes for edge in _edges(run, route)}.values())
    supports = tuple(noted(edge.properties) for edge in edges)
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
    """The edges of a route that its sentences stand on."""
    places = {sentence.place for sentence in route.sentences}
    titles = dict.fromkeys(sentence.title for sentence in route.sentences)
    return [edge for title in titles for edge in said_under(title, run.store) if edge.target in places]
