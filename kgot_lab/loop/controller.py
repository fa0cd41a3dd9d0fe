"""The Knowledge Graph of Thoughts loop (Besta et al. 2025, arXiv 2504.02670): vote, fetch, write; then read
and answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kgot_lab.errors import BadInput, BadReply, QueryFailed, UnsupportedQuestion, require, require_parts
from kgot_lab.loop import prompts
from kgot_lab.loop.events import EMPTY, Answered, Ballot, Event, Failed, Started, Voted
from kgot_lab.loop.insert import insert
from kgot_lab.loop.limits import REFERENCE, Limits
from kgot_lab.loop.prompts import OperationsVote, Vote
from kgot_lab.loop.retrieve import conclude, is_statement, lookup_statement, read_candidates, read_forced
from kgot_lab.loop.run_context import RunContext, Steps, ask_structured, distinct, read_event, situation
from kgot_lab.loop.state import State
from kgot_lab.stores.protocol import PythonRunner, Store, readers
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.tools.tool import Tool, search_argument
from kgot_lab.types import LLM, Json

# Ballots: INSERT or RETRIEVE, by strict majority, stopped once the outcome is decided.


def take_vote(run: RunContext) -> Steps[tuple[Voted, list[str]]]:
    """Vote on the next step.

    Returns the outcome and the distinct read statements (or answers) of the RETRIEVE ballots.
    """
    limits = run.limits
    if run.state.step < limits.voting.unpolled and not run.state.start:
        reason = f"no vote before {limits.voting.unpolled} turn{'s' * (limits.voting.unpolled > 1)}"
        if limits.voting.unpolled == 1 and not run.store.schema().nodes:
            reason = "no vote on an empty graph"
        counts = dict.fromkeys(("inserts", "retrieves", "invalid", "possible"), 0)
        return run.record(Voted, choice="INSERT", reasons=(reason,), **counts), []
    # at temperature 0 every ballot is the same text
    is_sampled = limits.models.temperatures.get("vote", limits.models.vote_temperature) > 0
    possible = limits.voting.votes if is_sampled else 1
    text = yield from situation(run)
    ballots: list[Ballot] = []
    while len(ballots) < possible and not _is_decided(ballots, possible):
        ballot = yield from _sample_ballot(run, text, len(ballots) + 1)
        ballots.append(ballot)
        yield ballot
    reasons = distinct([ballot.text for ballot in ballots if ballot.choice == "INSERT" and ballot.text])
    statements = distinct([ballot.text for ballot in ballots if ballot.choice == "RETRIEVE"])
    counts = Counter(ballot.choice for ballot in ballots)
    voted = run.record(
        Voted,
        choice="RETRIEVE" if counts["RETRIEVE"] > counts["INSERT"] else "INSERT",
        inserts=counts["INSERT"],
        retrieves=counts["RETRIEVE"],
        invalid=counts[""],
        possible=possible,
        reasons=tuple(reasons),
    )
    return voted, statements


def _is_decided(ballots: list[Ballot], possible: int) -> bool:
    """Return whether the remaining ballots cannot change the outcome. Ties go to INSERT."""
    remaining = possible - len(ballots)
    counts = Counter(ballot.choice for ballot in ballots)
    inserts, retrieves = counts["INSERT"], counts["RETRIEVE"]
    return retrieves > inserts + remaining or inserts >= retrieves + remaining


def _sample_ballot(run: RunContext, text: str, number: int) -> Steps[Ballot]:
    """Cast one ballot.

    A RETRIEVE whose statement finds nothing counts as INSERT. An invalid reply counts as nothing.
    """
    options = {"temperature": run.limits.models.vote_temperature, "seed": 100 * run.state.step + number}
    cast = partial(run.record, Ballot, number=number)
    reads_text = run.limits.reading == "whole graph"
    try:
        if run.limits.reading == "operations":
            look = yield from ask_structured(
                run, "vote", prompts.vote_by_names_prompt(text), OperationsVote, **options
            )
            unknown = look.answer.strip().lower().rstrip(".") in {"", "unknown"}
            choice, reason = "INSERT" if unknown else look.choice, look.missing
            statement = lookup_statement(run, look.about)
        else:
            messages = prompts.vote_prompt(text, run.state.calls, None if reads_text else run.store.dialect)
            vote = yield from ask_structured(run, "vote", messages, Vote, **options)
            choice, reason, statement = vote.choice, vote.text.strip(), vote.text.strip()
    except BadReply as error:
        return cast(choice="", text=error.reason)
    if choice == "INSERT":
        return cast(choice="INSERT", text=reason)
    if reads_text and not run.store.schema().nodes:
        return cast(choice="INSERT", text=f"the graph is empty, so nothing in it says: {statement}")
    needs_rows = not reads_text or is_statement(statement)
    if needs_rows and (yield from _finds_no_rows(run, statement)):
        return cast(choice="INSERT", text=f"reading found nothing: {statement}")
    return cast(choice="RETRIEVE", text=statement)


def _finds_no_rows(run: RunContext, statement: str) -> Steps[bool]:
    """Return whether a read statement gives no rows.

    A statement that fails is no evidence, since it may still be repaired, unless the graph is empty.
    """
    if (rows_before := run.state.known_rows(statement)) is not None:
        return not rows_before
    try:
        rows = run.store.read(statement)
    except QueryFailed as error:
        yield run.record(Failed, statement=statement, reason=error.reason)
        return not run.store.schema().nodes
    event = read_event(run, run.store, statement, rows)
    yield event
    return not event.grounded


def think(
    question: str,
    llm: LLM,
    store: Store,
    tools: Sequence[Tool],
    limits: Limits = REFERENCE,
    *,
    execution: LLM | None = None,
    attachments: Sequence[str | Path] = (),
    compute: Callable[[str], str] | None = None,
) -> Iterator[Event]:
    """Grow a graph until the model votes to read the answer from it.

    If the store already holds a graph, the run begins with it. `llm` plans. `execution` (by default the same
    model) chooses tools and writes arithmetic. `compute` runs Python outside this process and returns what it
    printed, with limits of its own. By default the store runs it, for at most `limits.python_seconds`. Raises
    BadInput, and errors of a model or the sandbox that cannot be recovered from: LLMError, SandboxError.
    """
    require(question, str, "a question is a text")
    if not question.strip():
        raise BadInput("the question is empty; ask something")
    for model in (llm, llm if execution is None else execution):
        expected = "a model is what connect(…) gives, an object with a name that answers prompts"
        require_parts(model, ("name", "__call__"), expected)
    require_parts(store, ("write", "read", "schema"), "a store is what open_store(…) gives")
    require(tools, Iterable, "tools are a list, such as [search(documents)]")
    require(limits, Limits, "limits are a Limits(…), or what preset(name) gives")
    tools = list(tools)
    for tool in tools:
        expected = "a tool is what search(documents) and the like give"
        require_parts(tool, ("name", "arguments", "__call__"), expected)
    if not tools and not store.schema().nodes:
        raise BadInput(
            "there is nothing to take facts from: give a tool, such as search(documents), or a store that holds a graph"
        )
    if limits.reading == "paths":
        if attachments:
            raise UnsupportedQuestion(
                "the mode paths reads documents that a search finds, not attached files: leave them out, or take another preset"
            )
        if not store.schema().nodes and not any(map(search_argument, tools)):
            raise UnsupportedQuestion(
                'the mode paths needs a tool that finds documents, such as search(documents) or one of yours with finds="query", '
                "or a store that holds a graph"
            )
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise BadInput(f"two tools have the same name, so one could not be called: {', '.join(names)}")
    compute = compute or python_executor(store, limits)
    run = RunContext(llm, execution or llm, store, {t.name: t for t in tools}, limits, compute, State())
    files = tuple(replace_surrogates(str(path)) for path in attachments)
    return _run_turns(run, replace_surrogates(question.strip()), files)


def _run_turns(run: RunContext, question: str, attachments: tuple[str, ...]) -> Steps[None]:
    start = run.store.graph() if run.store.schema().nodes else EMPTY
    yield run.record(
        Started,
        question=question,
        attachments=attachments,
        preset=run.limits.preset,
        limits=run.limits.as_json(),
        planning=run.planning.name,
        execution=run.execution.name,
        dialect=run.store.dialect.name,
        readers=tuple(reader.dialect.name for reader in readers(run.store)),
        tools={name: describe_tool(tool) for name, tool in run.tools.items()},
        computes=run.compute is not None,
        graph=start.digest if start else "",
        start=start,
    )
    if run.limits.reading == "paths":
        from kgot_lab.loop.modes.paths.mode import answer_by_paths  # a third of the loop, for this mode alone

        yield from answer_by_paths(run)
        return
    if not run.tools:  # nothing can be fetched, so there is nothing to vote on
        yield from conclude(run, (yield from read_forced(run)))
        return
    while run.state.step < run.limits.steps:
        voted, retrieves = yield from take_vote(run)
        yield voted
        if voted.choice == "RETRIEVE":
            found = yield from read_candidates(run, retrieves)
            break
        has_called = yield from insert(run, voted)
        # a model that cast no valid ballot would cast none later
        if (run.limits.voting.stop_when_stuck and not has_called) or 0 < voted.ballots_cast == voted.invalid:
            found = yield from read_forced(run)
            break
    else:
        found = yield from read_forced(run)
    yield from conclude(run, found)


def python_executor(store: object, limits: Limits) -> Callable[[str], str] | None:
    """Return the store's Python executor with the run's time limit, or None if the store has none."""
    return (
        partial(store.compute, seconds=limits.tools.python_seconds)
        if isinstance(store, PythonRunner)
        else None
    )


def describe_tool(tool: Tool) -> dict[str, Json]:
    """Return the description and arguments of a tool for the start event of a run.

    The argument that it searches by is included only if it differs from what the arguments suggest.
    """
    described = {"description": tool.description, "arguments": dict(tool.arguments)}
    if (searched := search_argument(tool)) != default_search_argument(tool.name, tool.arguments):
        described["finds"] = searched
    return described


def default_search_argument(name: str, arguments: Mapping[str, Json]) -> str:
    """Return the argument that a tool searches by, for recordings that do not name it.

    Such recordings are older than tools that declare their search argument.
    """
    return "query" if arguments.get("required") == ["query"] and name != "llm_query" else ""


def solve(events: Iterator[Event]) -> Answered:
    """Drain a run and return its answer."""
    require(events, Iterable, "solve() takes what think(…) yields")
    answers = [event for event in events if isinstance(event, Answered)]
    if not answers:
        raise BadInput("the run ended without an answer: its events were already used up, or it was stopped")
    return answers[-1]
