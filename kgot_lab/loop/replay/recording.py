"""Recordings of runs: replies, tool results and statement results, so that the loop can run again without
them.

Resuming, verifying and forking are all `think` over a recording, which answers what was asked before and
passes on the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from kgot_lab.errors import BadInput, QueryFailed, ReplayMiss, ServerLost, ToolFailed
from kgot_lab.llm.budget import Spending, charged_account, requested_price
from kgot_lab.llm.presets import FREE, Price
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.llm.structured import record_replayed
from kgot_lab.loop.approval import Approve, Proposal, decision_of, shortened
from kgot_lab.loop.controller import default_search_argument
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Computed,
    Decided,
    Event,
    Failed,
    Read,
    Refused,
    Repaired,
    Started,
    ToolCall,
    ToolReturned,
    Wrote,
    to_json,
)
from kgot_lab.loop.limits import Limits
from kgot_lab.stores.lookup import StoreWrapper
from kgot_lab.stores.protocol import Dialect, Store, readers
from kgot_lab.tools.tool import Result, Tool, check_call
from kgot_lab.types import LLM, Diff, Json, Prompt, Reply, Rows, Usage

_Value = TypeVar("_Value")
Key = tuple[str, ...]
_RecordedResult = tuple[ToolReturned, tuple[Usage, ...]]  # with the costs of the models inside the tool


@dataclass
class Recording:
    """The recorded answers of a run, by what they answer. Each is used as often as it was recorded.

    `avoided` counts the model calls answered from the recording, `made` those that went to a live model.
    """

    replies: dict[Key, deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    results: dict[Key, deque[_RecordedResult]] = field(default_factory=lambda: defaultdict(deque))
    statements: dict[Key, Diff | Rows | QueryFailed] = field(default_factory=dict)
    outputs: dict[Key, Computed] = field(default_factory=dict)
    # what was decided on proposals; older traces do not say what they are about
    decisions: dict[Key, deque[Decided]] = field(default_factory=lambda: defaultdict(deque))
    # statements that a person has put in the place of those asked for
    edits: dict[Key, str] = field(default_factory=dict)
    # facts cited for an answer, by it and the statements read before it
    evidence: dict[Key, Rows] = field(default_factory=dict)
    turns: deque[Reply] | None = None  # replies to give in their order, whatever is asked, and no others
    # results that are not replayed: an execution that differs from them in order alone is given in their order
    outcomes: dict[Key, Diff | Rows | QueryFailed] = field(default_factory=dict)
    any_order: bool = False  # whether a prompt may list the graph in another order, as servers do
    avoided: int = 0
    made: int = 0

    @staticmethod
    def from_events(events: Iterable[Event], *, any_order: bool = False) -> Recording:
        """Build a recording from events."""
        recording, graph = Recording(any_order=any_order), Fingerprint()
        inside: tuple[Usage, ...] = ()
        read: tuple[str, ...] = ()
        for event in events:
            match event:
                case Started():
                    graph = Fingerprint(event.graph)
                case Asked() if event.role.is_failed:
                    pass  # it was stopped there, and is asked for again
                case Asked() if event.role.is_inside:
                    inside += (event.usage,)
                case Asked():
                    recording.replies[recording.prompt_key(event.prompt)].append(event.as_reply)
                case ToolReturned():
                    recording.results[event.call.key].append((event, inside))
                    inside = ()
                case Wrote():
                    if event.asked:
                        recording.edits[("write", graph.now, event.asked)] = event.statement
                    recording.statements[("write", graph.now, event.statement)] = event.diff
                    graph.update(event.diff)
                    read = ()
                case Read():
                    if event.asked:
                        recording.edits[("read", graph.now, event.asked, event.dialect)] = event.statement
                    recording.statements[("read", graph.now, event.statement, event.dialect)] = event.rows
                    read += (event.asked or event.statement,)
                case Failed(statement=statement, reason=reason):
                    recording._add_failure(graph, statement, reason)
                case (
                    Repaired(statement=statement, error=reason) | Refused(statement=statement, reason=reason)
                ):
                    recording._add_failure(graph, statement, reason, event.dialect)
                case Computed():
                    recording.outputs[(event.code,)] = event
                case Decided():
                    # the most that a call can cost is not known without its model
                    about = "" if event.what == "model call" else event.about
                    recording.decisions[(event.what, event.proposed, about)].append(event)
                case Answered():
                    recording.evidence[(graph.now, event.text, *read)] = event.evidence
        return recording

    def without_outcomes(self, limits: Limits) -> Recording:
        """Return the recording without the results of statements and Python, except for their order.

        Timeouts are kept, since they do not reproduce, and the evidence of runs that cited it by an older rule.
        """
        timeouts: dict[Key, Diff | Rows | QueryFailed] = {
            key: result
            for key, result in self.statements.items()
            if isinstance(result, ServerLost) or (isinstance(result, QueryFailed) and result.timed_out)
        }
        outputs = {
            key: output
            for key, output in self.outputs.items()
            if output.failed and QueryFailed(output.code, output.output).timed_out
        }
        evidence = self.evidence if limits.cites_by_names else {}
        return replace(
            self, statements=timeouts, outputs=outputs, evidence=evidence, outcomes=self.statements
        )

    def prompt_key(self, prompt: Prompt) -> Key:
        """Return the key of the replies to a prompt."""
        if self.any_order:
            messages = (replace(each, text=sort_words(each.text)) for each in prompt.messages)
            prompt = replace(prompt, messages=tuple(messages))
        return (prompt_digest(prompt, ""),)

    def decided(self, proposal: Proposal) -> deque[Decided] | None:
        """Return the decisions on a proposal that are left, if there are any."""
        what, text = proposal.what, shortened(proposal.text)
        abouts = (shortened(proposal.about), "")
        return next(filter(None, (self.decisions.get((what, text, about)) for about in abouts)), None)

    def change_result(self, returned: ToolReturned, nth: int) -> None:
        """Replace the result of the nth call of this tool and arguments, counted from 0."""
        results = self.results[returned.call.key]
        results[nth] = returned, results[nth][1]

    def next_result(self, call: ToolCall) -> _RecordedResult | None:
        """Return the next recorded result of a call, or None if nothing is left.

        The last result is repeated, unless it is a failure that may be retried.
        """
        results = self.results.get(call.key)
        if not results:
            return None
        return results.popleft() if len(results) > 1 or results[0][0].again else results[0]

    def _add_failure(self, graph: Fingerprint, statement: str, reason: str, dialect: str = "") -> None:
        if reason.startswith(ServerLost.MESSAGE):
            self.statements[("lost", statement)] = ServerLost(statement)  # whatever the graph was
        for key in (("write", graph.now, statement), ("read", graph.now, statement, dialect)):
            self.statements.setdefault(key, QueryFailed(statement, reason))


class Fingerprint:
    """A digest of a graph: that of the initial graph, or a hash over it and all changes since."""

    def __init__(self, start: str = "") -> None:
        self.now = start

    def update(self, diff: Diff) -> None:
        """Update the fingerprint by a change of the graph."""
        self.now = hashlib.sha256((self.now + _json(_plain_diff(diff))).encode()).hexdigest()[:16]


# Order without a meaning: a server lists a graph, and the rows of a statement without ORDER BY, in its own.

# of the whole result, not of what a later RETURN uses
_ORDERS_ROWS = re.compile(r"\border\s+by\b(?!.*\breturn\b)", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"\w+|[^\w\s]")
_COLLECTS, _DEEP = re.compile(r"\bcollect\s*\(", re.IGNORECASE), 99


def has_own_order(dialect: str) -> bool:
    """Return whether stores of a query language list a graph in an order of their own, as servers do."""
    return not dialect.startswith("Python")


def sort_words(text: str) -> str:
    """Sort the words and signs of a text, to compare texts in any order of the graph."""
    return " ".join(sorted(_WORDS.findall(text)))


def _is_reordered(result: object, recorded: object, statement: str, dialect: str) -> bool:
    """Return whether a statement gave its recorded result in another order, where order has no meaning.

    A diff has no order. Rows have one in Python and after ORDER BY, and so have lists in a row that Cypher did
    not collect.
    """
    if isinstance(result, Diff) and isinstance(recorded, Diff):
        result, recorded, depth = _plain_diff(result), _plain_diff(recorded), 2
    elif isinstance(recorded, tuple) and has_own_order(dialect) and not _ORDERS_ROWS.search(statement):
        depth = _DEEP if _COLLECTS.search(statement) else 1
    else:
        return False
    return _json(_sort_lists(result, depth)) == _json(_sort_lists(recorded, depth))


def _sort_lists(value: Json, depth: int) -> Json:
    """Return a JSON value with the lists of its outermost levels sorted."""
    if isinstance(value, Mapping):
        return {name: _sort_lists(item, depth - 1) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    items = [_sort_lists(item, depth - 1) for item in value]
    return sorted(items, key=_json) if depth > 0 else items


def _json(value: Json) -> str:
    return json.dumps(value, sort_keys=True, default=dict)


def _plain_diff(diff: Diff) -> Json:
    return to_json(Wrote(statement="", diff=diff))["diff"]


def _given(live: _Value | None, what: str, advice: str) -> _Value:
    """Return what is live in place of a recording. Raises ReplayMiss if it was not given."""
    if live is None:
        raise ReplayMiss(f"the recorded run holds no {what}, and {advice}")
    return live


@dataclass
class ReplayLLM:
    """A model that answers from a recording, and calls the live model, if there is one, for the rest."""

    recording: Recording
    name: str
    live: LLM | None = None

    @property
    def spending(self) -> Spending | None:
        """The account of the live model."""
        return charged_account(self.live)

    @property
    def price(self) -> Price | None:
        """The price of the live model."""
        return requested_price(self.live)

    def awaits_decision(self, prompt: Prompt) -> bool:
        """Return whether a decision on a call is recorded, or is due since a live model with a price makes it."""
        is_live_and_paid = self.price not in (None, FREE) and not self._replies(prompt)
        return is_live_and_paid or bool(
            self.recording.decided(Proposal("model call", prompt.messages[-1].text))
        )

    def _replies(self, prompt: Prompt) -> deque[Reply] | None:
        if self.recording.turns is not None:
            return self.recording.turns
        # for any model: another one may have continued the run
        return self.recording.replies.get(self.recording.prompt_key(prompt))

    def __call__(self, prompt: Prompt) -> Reply:
        if replies := self._replies(prompt):
            self.recording.avoided += 1
            return replies.popleft()
        last = " ".join(prompt.messages[-1].text.split())[-120:]
        live = _given(self.live, f"reply to the prompt that ends {last!r}", "no live model was given")
        self.recording.made += 1
        reply = live(prompt)
        return replace(reply, model=reply.model or live.name)


@dataclass
class ReplayTool:
    """A tool that answers from the recording the calls made before."""

    recording: Recording
    name: str
    live: Tool | None = None
    description: str = ""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    finds: str | None = None  # as the run began with it; None: the recording does not say
    digest: str = ""  # likewise

    def __post_init__(self) -> None:
        if self.finds is None:
            self.finds = default_search_argument(self.name, self.arguments)
        # a recording says what the prompts showed, and shows the same again
        if self.live is not None and not self.arguments:
            self.description, self.arguments = self.live.description, self.live.arguments

    def check_arguments(self, arguments: Mapping[str, Json]) -> None:
        """Raise ToolFailed for a call that was refused before anybody was asked, or else as the live tool does."""
        call = ToolCall(self.name, arguments)
        proposal = Proposal("tool call", call.arguments_text, f"{self.name}: {self.description}")
        if self.recording.decided(proposal):
            return
        results = self.recording.results.get(call.key)
        if results and results[0][0].failed:
            self(**arguments)
        elif self.live is not None:
            check_call(self.live, arguments)

    def __call__(self, /, **arguments: Json) -> Result:  # a model may well name an argument self
        recorded = self.recording.next_result(ToolCall(self.name, arguments))
        if recorded is not None:
            returned, usage = recorded
            for call_usage in usage:
                record_replayed(call_usage)
            if returned.failed:
                failure = ToolFailed(returned.text, again=returned.again, usage=usage, wait=0)
                failure.recorded = True
                raise failure
            return Result(returned.text, returned.sources, usage, recorded=True)
        what = f"result of {ToolCall(self.name, arguments)}"
        return _given(self.live, what, "the tool itself was not given")(**arguments)


@dataclass
class ReplayPython:
    """A Python executor that answers from a recording what was run before."""

    recording: Recording
    live: Callable[[str], str] | None = None

    def __call__(self, code: str) -> str:
        computed = self.recording.outputs.get((code,))
        if computed is not None:
            if computed.failed:
                raise QueryFailed(code, computed.output)
            return computed.output
        advice = "nothing here runs any: take another store, or give Resources(compute=…)"
        return _given(self.live, "output of this Python", advice)(code)


@dataclass
class ReplayApproval:
    """An `approve` function that decides as in a recording, and asks the live one about the rest."""

    recording: Recording
    live: Approve | None = None

    def __call__(self, proposal: Proposal) -> Any:  # as the live one answers
        if decided := self.recording.decided(proposal):
            return decision_of(decided.popleft())
        advice = "nobody here decides: give Resources(approve=…)"
        return _given(self.live, f"decision on this {proposal.what}", advice)(proposal)


@dataclass
class ReplayStore(StoreWrapper):
    """A store that knows the results of statements run before on the same graph, and runs the others."""

    recording: Recording
    store: Store
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    edits: Mapping[Key, str] = field(default_factory=dict)  # statements to run in place of recorded ones
    reads_in: str = ""  # the language it is asked in, if not the run's own
    spoken: Dialect | None = None  # dialect for prompts, if it replaces a store of another kind
    # asked for, and run in its place: for the event that is to come
    edited: dict[str, str] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        return self.spoken or self.store.dialect

    @property
    def readers(self) -> tuple[ReplayStore, ...]:
        """The stores asked in other languages, over the same recording."""
        stores = readers(self.store)
        return tuple(replace(self, store=s, reads_in=s.dialect.name, spoken=None) for s in stores)

    def write(self, statement: str) -> Diff:
        diff, is_recorded = self._run(self.store.write, ("write", self.fingerprint.now, statement))
        if is_recorded:
            self.store.apply(diff)
        self.fingerprint.update(diff)
        return diff

    def read(self, statement: str) -> Rows:
        return self._run(self.store.read, ("read", self.fingerprint.now, statement, self.reads_in))[0]

    def recorded_evidence(self, answer: str, statements: Sequence[str]) -> Rows | None:
        """Return the recorded evidence of an answer after some reads, or None if none is recorded."""
        return self.recording.evidence.get((self.fingerprint.now, answer, *statements))

    def meant(self, statement: str) -> str:
        """Return the statement that was executed for the one requested last."""
        return self.edited.get(statement, statement)

    def as_edited(self, event: Event) -> Event:
        """Return the event with the statement that a person put in place of the requested one."""
        if isinstance(event, Wrote | Read) and event.statement in self.edited:
            return replace(event, statement=self.edited.pop(event.statement), asked=event.statement)
        return event

    def _run(self, act: Callable[[str], _Value], requested: Key) -> tuple[_Value, bool]:
        """Return the recorded result of a statement, or execute it now, and whether it was recorded.

        Raises BadInput if an edited statement fails.
        """
        is_edited, asked = requested in self.edits, requested[2]
        statement = self.edits[requested] if is_edited else self.recording.edits.get(requested, asked)
        if statement != asked:
            self.edited[asked] = statement
        key = (*requested[:2], statement, *requested[3:])
        recorded = self.recording.statements.get(key)
        try:
            if isinstance(lost := self.recording.statements.get(("lost", statement)), ServerLost):
                raise lost
            if isinstance(recorded, QueryFailed):
                raise recorded
            if recorded is not None:
                return cast(_Value, recorded), True
            result, before = act(statement), self.recording.outcomes.get(key)
            is_same = _is_reordered(result, before, statement, self.store.dialect.name)
            return (cast(_Value, before) if is_same else result), False
        except QueryFailed as error:
            if not is_edited:
                raise
            raise BadInput(f"the edited statement was refused: {error.reason}") from error

    def apply(self, diff: Diff) -> None:
        self.store.apply(diff)
        self.fingerprint.update(diff)
