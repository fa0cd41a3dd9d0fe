"""The context of a run: its resources and state, model calls, and the repair of failing statements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote

from pydantic import BaseModel

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadReply, LLMError, QueryFailed, ServerLost, ToolFailed
from kgot_lab.llm.budget import maximum_usage, requested_price
from kgot_lab.llm.presets import FREE
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.llm.streaming import stream_reply
from kgot_lab.llm.structured import checked_reply, compact_schema, parse, repair_prompt
from kgot_lab.loop.approval import Approve, NotApproved, Proposal, decide, shortened
from kgot_lab.loop.call_pool import CallPool
from kgot_lab.loop.events import (
    Asked,
    Cut,
    Decided,
    Event,
    Read,
    Refused,
    Repaired,
    Role,
    TextDelta,
    ToolCall,
)
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.prompts import Prompts, Statement, format_calls, format_situation
from kgot_lab.loop.render import render_graph
from kgot_lab.loop.state import State
from kgot_lab.stores.lookup import graph_scalars
from kgot_lab.stores.protocol import Scalar, StatementConstants, Store
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.text.words import name_tokens
from kgot_lab.tools.tool import Tool, check_call
from kgot_lab.types import LLM, Json, Message, Prompt, Reply, Rows, Usage

# Constants: which rows of a read come from the graph, and which only from the statement itself.

_BOOLEAN_WORDS = frozenset(("yes", "no", "true", "false"))


def constant_rows(store: Store, statement: str, rows: Rows) -> tuple[int, ...]:
    """Return the indices of the rows that hold nothing read from the graph.

    All rows count if the graph is empty or the statement reads nothing from it. Otherwise a row counts if the
    statement itself contains its values. A text in the statement counts as read if the graph holds it and the
    statement does not return it as a constant. A text that is not in the statement was read or computed.
    Numbers, truth values, yes and no count as computed unless the statement returns them as constants. A text
    that a statement assembles on purpose is not detected.
    """
    if not rows:
        return ()
    own_words = store.dialect.constants(statement)
    if not store.schema().nodes or not own_words.reads_graph:
        return tuple(range(len(rows)))
    statement_words = f" {' '.join(name_tokens(unquote(statement)))} "
    held: set[Scalar] = set()  # the values in the graph, once one is asked for

    def is_read(value: Scalar) -> bool:
        if not isinstance(value, str) or value.casefold() in _BOOLEAN_WORDS:
            return True
        if not (words := name_tokens(value)):
            return False
        if f" {' '.join(words)} " not in statement_words:
            return True
        held.update(() if held else graph_scalars(store.graph()))
        return value in held

    return tuple(i for i, row in enumerate(rows) if not any(map(is_read, _read_values(row, own_words))))


def scalars(row: Json) -> Iterator[Scalar]:
    """Yield the strings, numbers and truth values of a row at any depth."""
    if isinstance(row, Mapping):
        for value in row.values():
            yield from scalars(value)
    elif isinstance(row, list | tuple):
        for value in row:
            yield from scalars(value)
    elif row is not None:
        yield row


def _read_values(row: Json, own_words: StatementConstants) -> Iterator[Scalar]:
    """Return the values of a row without those that the statement returns as constants."""
    if isinstance(row, Mapping):
        row = {name: value for name, value in row.items() if name not in own_words.columns}
    return (value for value in scalars(row) if (type(value), value) not in own_words.values)


_Shape = TypeVar("_Shape", bound=BaseModel)
_Result = TypeVar("_Result")
_Kind = TypeVar("_Kind", bound=Event)
_Samples = Sequence[tuple[float, int]]  # the temperature and seed of each
Steps = Generator[Event, None, _Result]


@dataclass
class RunContext:
    """The context of one question in the loop. Only `record` changes its state."""

    planning: LLM
    execution: LLM
    store: Store
    tools: Mapping[str, Tool]
    limits: Limits
    compute: Callable[[str], str] | None
    state: State
    approve: Approve | None = None
    stream: bool = False
    pool: CallPool = field(default_factory=lambda: CallPool(1))
    prompts: Prompts = field(default_factory=Prompts)
    # the rendered graph, with the number of writes before it and its language
    shown: tuple[tuple[int, str], str, Cut | None] | None = None

    def format_calls(self, calls: Sequence[ToolCall]) -> str:
        """List tool calls for a prompt, with the reasons of those that failed if the limits say so."""
        returns = self.state.returns if self.limits.tools.tell_failures else ()
        return format_calls(calls, returns, [call for call in self.state.surplus if call not in calls])

    def tool_of(self, call: ToolCall) -> Tool:
        """Return the tool of a call. Raises ToolFailed if there is none."""
        if call.tool not in self.tools:
            raise ToolFailed(f"there is no tool {call.tool!r}; there are: {', '.join(self.tools)}")
        return self.tools[call.tool]

    def check_call(self, call: ToolCall) -> None:
        """Raise ToolFailed for a call that cannot be made, if the limits say so."""
        if self.limits.tools.tell_unmade:
            check_call(self.tool_of(call), call.arguments)

    def record(self, kind: type[_Kind], **values: Any) -> _Kind:
        """Create an event with the current step and update the state by it."""
        event = kind(step=self.state.step, **values)
        self.state = self.state.after(event)
        return event


def approved(run: RunContext, proposal: Proposal, check: Callable[[str], object] | None = None) -> Steps[str]:
    """Return the text of what may be done, after a decision if somebody approves.

    `check` raises for a text that cannot be done, before the decision is recorded. Raises NotApproved.
    """
    if run.approve is None:
        return proposal.text
    decision, text = decide(run.approve, proposal)
    if decision == "changed" and check is not None:
        check(text)
    kept = {"what": proposal.what, "proposed": shortened(proposal.text), "about": shortened(proposal.about)}
    yield run.record(Decided, decision=decision, text=text, **kept)
    if decision == "denied":
        raise NotApproved(text)
    return text if decision == "changed" else proposal.text


@dataclass(frozen=True)
class CallOptions:
    """Options of a model call: schema, temperature, seed and model. `kind` is its entry in `REPLY_TOKENS`."""

    kind: str
    shape: type[BaseModel] | None = None
    temperature: float = 0.0
    seed: int = 0
    schema: Mapping[str, Json] | None = None  # narrower than the shape's own
    execution: bool = False  # ask the execution model, not the planning model
    likelihood: bool = False  # request the log-probability of the reply


def ask_reply(
    run: RunContext, role: str, messages: tuple[Message, ...], options: CallOptions
) -> Steps[Reply]:
    """Call a model and record the call as an event. A truncated reply is requested again with more tokens."""
    llm = run.execution if options.execution else run.planning
    prompt = _build_prompt(run, messages, options)
    for _ in range(run.limits.models.longer):
        reply = yield from _record_call(run, role, llm, prompt)
        if not reply.cut:
            return reply
        role, prompt = Role(role).but("longer"), replace(prompt, max_tokens=2 * prompt.max_tokens)
    return (yield from _record_call(run, role, llm, prompt))


@check_arguments
def ask_structured(
    run: RunContext, role: str, messages: tuple[Message, ...], shape: type[_Shape], **how: Any
) -> Steps[_Shape]:
    """Call a model for a value of a schema.

    A truncated reply is requested again with more tokens, and any other bad reply is repaired once. Raises
    BadReply, or TooLong if it was truncated.
    """
    options = CallOptions(**{"kind": role, "shape": shape, **how})
    llm = run.execution if options.execution else run.planning
    prompt, longer, fixed, calls = _build_prompt(run, messages, options), 0, False, 0
    while True:
        reply = yield from _record_call(run, role, llm, prompt)
        calls += 1
        try:
            value = parse(reply.text, shape).model_dump()
            return shape.model_validate(replace_surrogates(value))  # JSON escapes may have made lone ones
        except BadReply as error:
            error.calls, error.args = calls, (f"{llm.name}, asked to {options.kind}: {error}",)
            if not reply.cut:
                if fixed:
                    raise
                role, prompt, fixed = Role(role).but("again"), repair_prompt(prompt, reply.text, error), True
                continue
            if longer == run.limits.models.longer:
                limit = f"{prompt.max_tokens:,} tokens: raise limits.reply_tokens[{options.kind!r}]"
                too_long = ReplyTooLong(f"the reply did not end within {limit}", reply.text)
                too_long.calls = calls
                raise too_long from error
        role = Role(role).but("longer")
        prompt = replace(prompt, max_tokens=2 * prompt.max_tokens)
        longer += 1


class ReplyTooLong(BadReply):
    """A reply that did not end within the tokens it may have."""


def _build_prompt(run: RunContext, messages: tuple[Message, ...], options: CallOptions) -> Prompt:
    schema = options.schema or (compact_schema(options.shape) if options.shape else None)
    temperature = run.limits.models.temperatures.get(options.kind, options.temperature)
    limit = run.limits.models.tokens_of(options.kind)
    return Prompt(messages, schema, temperature, options.seed, limit, options.likelihood)


def _record_call(run: RunContext, role: str, llm: LLM, prompt: Prompt) -> Steps[Reply]:
    """Send a prompt to a model and record its reply.

    If the call fails at a cost, that cost is recorded in its own event before the error is raised.
    """
    awaits_decision = getattr(llm, "awaits_decision", lambda _: requested_price(llm) not in (None, FREE))
    if run.approve is not None and awaits_decision(prompt):
        most = maximum_usage(llm, prompt)
        about = f"{llm.name}, at most {most.prompt_tokens:,} + {most.completion_tokens:,} tokens, ${most.cost:.4f}"
        last = prompt.messages[-1]
        decided = yield from approved(run, Proposal("model call", last.text, about))
        prompt = replace(prompt, messages=(*prompt.messages[:-1], replace(last, text=decided)))
    make = partial(run.pool.take, _call_key(llm, prompt), partial(checked_reply, llm, prompt))
    return (yield from _record_reply(run, Role(role), llm, prompt, make))


def _record_reply(
    run: RunContext, role: Role, llm: LLM, prompt: Prompt, make: Callable[[], Reply]
) -> Steps[Reply]:
    try:
        reply = (yield from _stream(run, role, llm, prompt)) if run.stream else make()
    except LLMError as error:
        if error.spent is not None:
            failed = role.but("failed")
            yield run.record(Asked, role=failed, model=llm.name, prompt=prompt, reply="", usage=error.spent)
        raise
    text: str = replace_surrogates(reply.text)
    recorded = {"usage": reply.usage, "cut": reply.cut, "logprob": reply.logprob}
    yield run.record(Asked, role=role, model=reply.model or llm.name, prompt=prompt, reply=text, **recorded)
    return replace(reply, text=text)


def _stream(run: RunContext, role: str, llm: LLM, prompt: Prompt) -> Steps[Reply]:
    """Return the reply of a model, and yield its words as they come."""
    with closing(stream_reply(llm, prompt)) as parts:
        for part in parts:
            if isinstance(part, Reply):
                return part
            yield TextDelta(step=run.state.step, role=Role(role), text=part)
    raise AssertionError("unreachable")


def begin_calls(
    run: RunContext, kind: str, messages: tuple[Message, ...], shape: type[BaseModel], samples: _Samples
) -> None:
    """Begin calls that `ask_structured` will make, with these temperatures and seeds, side by side.

    Only if the planning model takes several at once and has replied before, and if none is to be approved.
    """
    llm = run.planning
    if (
        run.approve is None
        and not run.stream
        and run.state.usage != Usage()
        and getattr(llm, "concurrent", False)
    ):
        options = [CallOptions(kind, shape, temperature, seed) for temperature, seed in samples]
        prompts = {_call_key(llm, prompt := _build_prompt(run, messages, each)): prompt for each in options}

        def early(key: Hashable, call: Future[Reply]) -> Steps[None]:
            with suppress(Exception):  # the run is stopped for another reason
                yield from _record_reply(run, Role(f"{kind}, early"), llm, prompts[key], call.result)

        run.pool.begin({key: partial(checked_reply, llm, prompts[key]) for key in prompts}, early)


def _call_key(llm: LLM, prompt: Prompt) -> Hashable:
    return id(llm), prompt_digest(prompt, "")


def situation(run: RunContext, reader: Store | None = None) -> Steps[str]:
    """Return the question and the graph as text, cut to the token budget.

    The graph is in the language of `reader`, or else of the run.
    """
    graph = yield from graph_text(run, reader)
    return format_situation(run.state.question, run.state.attachments, graph)


def graph_text(run: RunContext, reader: Store | None = None) -> Steps[str]:
    """Return the graph as text, cut to the token budget.

    It is rendered once for each state of the graph, since several prompts of a turn show it.
    """
    key, store = (len(run.state.writes), (reader or run.store).dialect.name), reader or run.store
    if run.shown is None or run.shown[0] != key:
        # the model judges facts and does not write their names in code
        sources = run.limits.reads_names
        run.shown = (
            key,
            *render_graph(store, run.state.question, run.limits.voting.graph_tokens, sources=sources),
        )
    _, text, cut = run.shown
    if cut:
        yield run.record(Cut, what=cut.what, kept=cut.kept, left_out=cut.left_out)
    return text


def run_with_repairs(
    run: RunContext,
    act: Callable[[str], _Result],
    statement: str,
    *,
    writing: bool,
    reader: Store | None = None,
) -> Steps[tuple[str, _Result]]:
    """Run a statement, and ask the model to repair it a few times if the store refuses it.

    `reader` is the store whose language it is in, if not the run's own. Raises the last QueryFailed.
    """
    dialect = (reader or run.store).dialect
    for repairs in range(run.limits.voting.repairs + 1):
        try:
            return statement, act(statement)
        except QueryFailed as error:
            # nothing can be asked until the server is back
            if repairs == run.limits.voting.repairs or isinstance(error, ServerLost):
                raise
            graph = yield from graph_text(run, reader)
            instructions = dialect.how_to_write if writing else dialect.how_to_read
            failed = {"graph": graph or "empty", "statement": statement, "error": error.reason}
            messages = run.prompts("mend", dialect, instructions=instructions, **failed)
            try:
                mended = (yield from ask_structured(run, "mend", messages, Statement, seed=repairs)).statement
            except BadReply:
                raise error from None
            language = dialect.name if reader else ""
            values = {"statement": statement, "error": error.reason, "mended": mended}
            yield run.record(Repaired, dialect=language, **values)
            statement = mended
    raise AssertionError("unreachable")


def read_event(run: RunContext, store: Store, statement: str, rows: Rows, dialect: str = "") -> Read:
    """Record that a statement read some rows from a store, and mark the rows that hold only constants."""
    constant = constant_rows(store, meant(store, statement), rows)
    return run.record(Read, statement=statement, rows=rows, dialect=dialect, constant=constant)


def record_refusal(
    run: RunContext, error: BadReply | QueryFailed, *, writing: bool, dialect: str = ""
) -> Refused:
    """Record that a statement was given up, or a reply that holds none."""
    statement = error.statement if isinstance(error, QueryFailed) else error.text[:500]
    return run.record(Refused, statement=statement, reason=error.reason, writing=writing, dialect=dialect)


def meant(store: Store, statement: str) -> str:
    """Return the statement that a store executed for a requested one.

    It differs if a person has replaced the statement.
    """
    return store.meant(statement) if isinstance(store, EditableStore) else statement


@runtime_checkable
class EditableStore(Protocol):
    """A store over a recorded run, in which a person may have replaced a statement."""

    store: Store  # runs what is not recorded

    def meant(self, statement: str) -> str: ...
    def recorded_evidence(self, answer: str, statements: Sequence[str]) -> Rows | None: ...


@dataclass(frozen=True)
class Candidate:
    """Rows read from the graph that an answer can be made from, and in direct mode the answer of a vote."""

    rows: Rows
    said: str = ""
    statement: str = ""
    reader: Store | None = None  # the store that ran the statement


def distinct(items: Sequence[str]) -> list[str]:
    """Return the items without repeats, in order."""
    return list(dict.fromkeys(items))
