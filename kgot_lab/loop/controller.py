"""The Knowledge Graph of Thoughts loop (Besta et al. 2025, arXiv 2504.02670): vote, fetch, write; then read
and answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, UnknownName, describe_value, require_count
from kgot_lab.llm.adapters import as_model
from kgot_lab.loop.approval import Approve
from kgot_lab.loop.call_pool import PARALLEL, CallPool
from kgot_lab.loop.events import EMPTY, Answered, Event, Started
from kgot_lab.loop.limits import REFERENCE, Limits, VotingOptions
from kgot_lab.loop.modes import named_mode
from kgot_lab.loop.modes.voting import Mode, Voting
from kgot_lab.loop.prompts import Prompts
from kgot_lab.loop.run_context import RunContext, Steps
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import model_metadata, record
from kgot_lab.stores.protocol import PythonRunner, Store, readers
from kgot_lab.text.cleaning import checked_text, replace_surrogates
from kgot_lab.tools.tool import Tool, as_tool, search_argument, source_digest
from kgot_lab.types import LLM, Json


class RunOptions(TypedDict, total=False):
    """Options of a run, which are given by their names.

    execution: the model that chooses tools and writes arithmetic, by default the one that plans.
    attachments: files that belong to the question.
    compute: runs Python outside this process and returns what it printed, with limits of its own; by default
        the store runs it, for at most `limits.python_seconds`.
    mode: a class of one's own in place of that of the limits, or the name of one that a package offers.
    prompts: texts in place of those of `kgot_lab.loop.prompts.TEMPLATES`, by their names.
    approve: is asked before a tool call, a write and a paid call (`kgot_lab.loop.approval`).
    parallel: how many tool calls, and calls of a model on a server, run at once (4); 1: one after the other.
    """

    execution: LLM | Any
    attachments: Sequence[str | Path]
    compute: Callable[[str], str] | None
    mode: type[Mode] | str | None
    prompts: Mapping[str, str]
    approve: Approve | None
    parallel: int


class ThinkOptions(RunOptions, total=False):
    """Options of `think`: those of a run, whether words are yielded as they are written (TextDelta), and a new
    file to write the run to, as `record` does.
    """

    stream: bool
    trace: str | Path


@check_arguments
def think(
    question: str,
    llm: LLM | Any,
    store: Store,
    tools: Sequence[Tool],
    limits: Limits = REFERENCE,
    **options: Unpack[ThinkOptions],
) -> Iterator[Event]:
    """Grow a graph until the model votes to read the answer from it.

    If the store already holds a graph, the run begins with it. `llm` plans. Raises BadInput, and errors of a
    model or the sandbox that cannot be recovered from: LLMError, SandboxError; and NotApproved if a paid
    call is denied.
    """
    question = checked_text(question, "the question").strip()
    for name in options.keys() - ThinkOptions.__optional_keys__:
        raise UnknownName("option of a run", name, ThinkOptions.__optional_keys__)
    llm, parallel = as_model(llm), options.get("parallel", PARALLEL)
    execution = as_model(options["execution"]) if options.get("execution") else llm
    require_count(parallel, 1, "parallel", "it is how many calls run at once", maximum=1_000)
    tools = list(map(as_tool, tools))
    if not tools and not store.schema().nodes:
        problem = "there is nothing to take facts from"
        raise BadInput(f"{problem}: give a tool, such as search(documents), or a store that holds a graph")
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise BadInput(f"two tools have the same name, so one could not be called: {', '.join(names)}")
    by_name = {tool.name: tool for tool in tools}
    compute = options.get("compute") or python_executor(store, limits)
    run = RunContext(llm, execution, store, by_name, limits, compute, State())
    run.prompts, run.pool = Prompts(options.get("prompts") or {}), CallPool(parallel)
    run.approve, run.stream = options.get("approve"), options.get("stream", False)
    kind: object = options.get("mode") or _usual_mode(limits)
    kind = named_mode(kind) if isinstance(kind, str) else kind
    if not (isinstance(kind, type) and issubclass(kind, Mode)):
        expected = "a mode is a class made from kgot_lab.loop.modes.voting.Voting"
        raise BadInput(f"{expected}, not {describe_value(kind)}")
    if issubclass(kind, Voting) and not isinstance(limits.options, VotingOptions):
        problem = f"the mode {kind.__name__} votes, and these limits read paths"
        raise BadInput(f"{problem}: take the preset reference or local")
    mode = kind(run)
    files = tuple(replace_surrogates(str(path)) for path in options.get("attachments", ()))
    mode.check(files)
    events = _run_turns(mode, question, files)
    return record(events, options["trace"], metadata=model_metadata(llm)) if "trace" in options else events


_STORES_IN_USE: set[int] = set()  # by runs that are under way: two would write into one graph


def _run_turns(mode: Mode, question: str, attachments: tuple[str, ...]) -> Steps[None]:
    run = mode.run
    used = id(getattr(run.store, "store", run.store))
    if used in _STORES_IN_USE:
        problem = "another run goes on in this store"
        raise BadInput(f"{problem}: let it end, close its events, or open a store for this one")
    start = run.store.graph() if run.store.schema().nodes else EMPTY
    own_mode = "" if type(mode) is _usual_mode(run.limits) else type(mode).__qualname__
    custom = {"prompts": run.prompts.own, "mode": own_mode, "approves": run.approve is not None}
    answers = 0
    _STORES_IN_USE.add(used)
    try:
        yield run.record(
            Started,
            question=question,
            attachments=attachments,
            limits=run.limits.as_json(),
            planning=run.planning.name,
            execution=run.execution.name,
            dialect=run.store.dialect.name,
            readers=tuple(reader.dialect.name for reader in readers(run.store)),
            tools={name: describe_tool(tool) for name, tool in run.tools.items()},
            computes=run.compute is not None,
            graph=start.digest if start else "",
            custom={name: value for name, value in custom.items() if value},
            start=start,
        )
        for event in mode.answer():
            _check_event(event, f"the mode {type(mode).__name__} yielded", answers)
            answers += isinstance(event, Answered)
            yield event
    except GeneratorExit:
        raise
    except BaseException:
        yield from run.pool.early_events()
        raise
    finally:
        run.pool.close()
        _STORES_IN_USE.discard(used)
    if not answers:
        raise BadInput(f"the mode {type(mode).__name__} ended without yielding an Answered event")


def _check_event(event: object, what: str, answers: int) -> None:
    """Raise BadInput for what a mode of one's own must not yield."""
    if not isinstance(event, Event):
        raise BadInput(f"{what} {describe_value(event)}, which is no event")
    if isinstance(event, Answered) and (answers or not isinstance(event.text, str)):
        problem = f"{what} {'a second answer' if answers else 'an answer that is no text'}"
        raise BadInput(f"{problem}: {event.text!r}")


def _usual_mode(limits: Limits) -> type[Mode]:
    if isinstance(limits.options, VotingOptions):
        return Voting
    from kgot_lab.loop.modes.paths.mode import Paths  # a third of the loop, for this mode alone

    return Paths


def python_executor(store: object, limits: Limits) -> Callable[[str], str] | None:
    """Return the store's Python executor with the run's time limit, or None if the store has none."""
    return (
        partial(store.compute, seconds=limits.tools.python_seconds)
        if isinstance(store, PythonRunner)
        else None
    )


def describe_tool(tool: Tool) -> dict[str, Json]:
    """Return the description and arguments of a tool for the start event of a run, and a digest of its sources.

    The argument that it searches by is included only if it differs from what the arguments suggest.
    """
    described = {"description": tool.description, "arguments": dict(tool.arguments)}
    if (searched := search_argument(tool)) != default_search_argument(tool.name, tool.arguments):
        described["finds"] = searched
    return described | ({"digest": digest} if (digest := source_digest(tool)) else {})


def default_search_argument(name: str, arguments: Mapping[str, Json]) -> str:
    """Return the argument that a tool searches by, for recordings that do not name it.

    Such recordings are older than tools that declare their search argument.
    """
    return "query" if arguments.get("required") == ["query"] and name != "llm_query" else ""


@check_arguments
def solve(events: Iterable[Event]) -> Answered:
    """Drain a run and return its answer."""
    answers = [event for event in events if isinstance(event, Answered)]
    if not answers:
        raise BadInput("the run ended without an answer: its events were already used up, or it was stopped")
    return answers[-1]
