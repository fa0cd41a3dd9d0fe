"""The Knowledge Graph of Thoughts loop (Besta et al. 2025, arXiv 2504.02670): vote, fetch, write; then read
and answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from kgot_lab.errors import BadInput, UnsupportedQuestion, require, require_parts
from kgot_lab.loop.controller import poll
from kgot_lab.loop.events import EMPTY, Answered, Event, Started
from kgot_lab.loop.insert import insert
from kgot_lab.loop.limits import REFERENCE, Limits
from kgot_lab.loop.modes.paths.mode import answer_by_paths
from kgot_lab.loop.retrieve import candidates, conclude, forced
from kgot_lab.loop.run_context import Loop, Steps
from kgot_lab.loop.state import State
from kgot_lab.stores.protocol import Computer, Store, readers
from kgot_lab.text.surrogates import whole
from kgot_lab.tools.tool import Tool, sought_by
from kgot_lab.types import LLM, Json


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
    """Grow a graph until the model votes to read the answer from it; a store that holds a graph already is
    where it begins.

    `llm` plans; `execution` (by default the same model) chooses tools and writes arithmetic. `compute` runs
    Python apart from this process and returns what it printed, bounded as it likes; by default the store's
    own does, for `limits.python_seconds`. Raises BadInput, and whatever a model or the sandbox cannot recover
    from: LLMError, SandboxError.
    """
    require(question, str, "a question is a text")
    if not question.strip():
        raise BadInput("the question is empty; ask something")
    for model in (llm, *([] if execution is None else [execution])):
        require_parts(
            model,
            ("name", "__call__"),
            "a model is what connect(…) gives, an object with a name that answers prompts",
        )
    require_parts(store, ("write", "read", "schema"), "a store is what open_store(…) gives")
    require(tools, Iterable, "tools are a list, such as [search(documents)]")
    require(limits, Limits, "limits are a Limits(…), or what preset(name) gives")
    tools = list(tools)
    for tool in tools:
        require_parts(
            tool, ("name", "arguments", "__call__"), "a tool is what search(documents) and the like give"
        )
    if not tools and not store.schema().nodes:
        raise BadInput(
            "there is nothing to take facts from: give a tool, such as search(documents), or a store that holds a graph"
        )
    if limits.reading == "paths":
        if attachments:
            raise UnsupportedQuestion(
                "the mode paths reads documents that a search finds, not attached files: leave them out, or take another preset"
            )
        if not store.schema().nodes and not any(map(sought_by, tools)):
            raise UnsupportedQuestion(
                'the mode paths needs a tool that finds documents, such as search(documents) or one of yours with finds="query", '
                "or a store that holds a graph"
            )
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise BadInput(f"two tools have the same name, so one could not be called: {', '.join(names)}")
    compute = compute or computing(store, limits)
    run = Loop(llm, execution or llm, store, {tool.name: tool for tool in tools}, limits, compute, State())
    return _walk(run, whole(question.strip()), tuple(whole(str(path)) for path in attachments))


def _walk(run: Loop, question: str, attachments: tuple[str, ...]) -> Steps[None]:
    start = run.store.graph() if run.store.schema().nodes else EMPTY
    yield run.happened(
        Started,
        question=question,
        attachments=attachments,
        preset=run.limits.preset,
        limits=run.limits.as_json(),
        planning=run.planning.name,
        execution=run.execution.name,
        dialect=run.store.dialect.name,
        readers=tuple(reader.dialect.name for reader in readers(run.store)),
        tools={name: remember_failure(tool) for name, tool in run.tools.items()},
        computes=run.compute is not None,
        graph=start.digest if start else "",
        start=start,
    )
    if run.limits.reading == "paths":
        yield from answer_by_paths(run)
        return
    if not run.tools:  # nothing can be fetched, so there is nothing to vote on
        yield from conclude(run, (yield from forced(run)))
        return
    while run.state.step < run.limits.steps:
        voted, retrieves = yield from poll(run)
        yield voted
        if voted.choice == "RETRIEVE":
            found = yield from candidates(run, retrieves)
            break
        if not (yield from insert(run, voted)) and run.limits.stop_when_stuck:
            found = yield from forced(run)
            break
    else:
        found = yield from forced(run)
    yield from conclude(run, found)


def computing(store: object, limits: Limits) -> Callable[[str], str] | None:
    """What runs Python for a run, for as long as its limits say: its store, where that can."""
    return partial(store.compute, seconds=limits.python_seconds) if isinstance(store, Computer) else None


def remember_failure(tool: Tool) -> dict[str, Json]:
    """What a run tells of a tool as it begins; by what it finds documents only where its arguments would make
    one think otherwise.
    """
    told = {"description": tool.description, "arguments": dict(tool.arguments)}
    finds = sought_by(tool)
    return told if finds == usually_finds(tool.name, tool.arguments) else told | {"finds": finds}


def usually_finds(name: str, arguments: Mapping[str, Json]) -> str:
    """What a recording means that does not say it: recordings are older than tools that say by what they find
    documents.
    """
    return "query" if arguments.get("required") == ["query"] and name != "llm_query" else ""


def solve(events: Iterator[Event]) -> Answered:
    """Drain a run and return its answer."""
    require(events, Iterable, "solve() takes what think(…) yields")
    answer = None
    for event in events:
        if isinstance(event, Answered):
            answer = event
    if answer is None:
        raise BadInput("the run ended without an answer: its events were already used up, or it was stopped")
    return answer
