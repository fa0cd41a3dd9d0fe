"""A question taken apart: hop by hop along a chain, or two things that it compares, each asked about alone."""

from __future__ import annotations

from kgot_lab.loop.events import Chose, Parsed
from kgot_lab.loop.insert import lookup, search_tool
from kgot_lab.loop.modes.paths.comparison import question_for_each, questions_of_each, worked_out
from kgot_lab.loop.modes.paths.fetching import fetch, recall_name
from kgot_lab.loop.modes.paths.question_form import (
    all_found,
    comparison_candidates,
    filled,
    hops_in,
    question_hops,
    subjects,
)
from kgot_lab.loop.modes.paths.reading import checked_answer, paths_read, read_path
from kgot_lab.loop.modes.paths.routes import PathAnswer, PathWalk, Route, weakest
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.loop.run_context import How, Loop, Steps, ask_reply


def hop_by_hop(run: Loop, walk: PathWalk) -> Steps[PathAnswer | None]:
    """The answer of the last hop, each asked about the answer of an earlier one; none where the question is
    no chain, or a hop fails.
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
    """The answer worked out from what is read of the two things that a question compares; none where it
    compares other ones as well.
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
    """What the sentences under a name answer, unless it is refused or tells nothing; a name that the graph
    does not hold is looked up.
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
