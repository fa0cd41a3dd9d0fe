"""What a recorded run remembers: replies, tool results and statement results, so that the same loop can be walked again without them.

Resuming, verifying and forking are the same thing: `think` over a recording, which answers what was asked before and hands the rest on.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kgot_lab.errors import BadInput, QueryFailed, ReplayMiss, ToolFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Asked, Computed, Event, Failed, Read, Refused, Repaired, ToolCall, ToolReturned, Wrote, to_json
from kgot_lab.loop.walk import usually_finds
from kgot_lab.stores.protocol import Computer, Dialect, Schema, Store, readers
from kgot_lab.tools.tool import Result, Tool
from kgot_lab.types import LLM, Diff, Edge, Json, Node, Prompt, Reply, Rows, Usage

_Value = TypeVar("_Value")
Key = tuple[str, ...]


@dataclass
class Recording:
    """The answers that recorded events hold, by what they answer; each is used as often as it was recorded.

    `avoided` counts the model calls answered from the recording, `made` those that went to a live model.
    """

    replies: dict[Key, deque[tuple[str, Usage]]] = field(default_factory=lambda: defaultdict(deque))
    results: dict[Key, tuple[ToolReturned, tuple[Usage, ...]]] = field(default_factory=dict)  # and what models behind the tool cost
    statements: dict[Key, Diff | Rows | QueryFailed] = field(default_factory=dict)
    outputs: dict[Key, Computed] = field(default_factory=dict)
    avoided: int = 0
    made: int = 0

    @staticmethod
    def of(events: Iterable[Event]) -> Recording:
        """What recorded events hold."""
        recording, graph = Recording(), Fingerprint()
        inside: tuple[Usage, ...] = ()
        for event in events:
            match event:
                case Asked(role=role) if role.startswith("inside "):
                    inside += (event.usage,)
                case Asked():
                    recording.replies[(prompt_digest(event.prompt, event.model),)].append((event.reply, event.usage))
                case ToolReturned():
                    recording.results[_call_key(event.call)] = event, inside
                    inside = ()
                case Wrote():
                    recording.statements[("write", graph.now, event.statement)] = event.diff
                    graph.change(event.diff)
                case Read():
                    recording.statements[("read", graph.now, event.statement, event.dialect)] = event.rows
                case Failed(statement=statement, reason=reason):
                    recording._failed(graph, statement, reason)
                case Repaired(statement=statement, error=reason) | Refused(statement=statement, reason=reason):
                    recording._failed(graph, statement, reason, event.dialect)
                case Computed():
                    recording.outputs[(event.code,)] = event
        return recording

    def change_result(self, returned: ToolReturned) -> None:
        """From now on this call returned that."""
        _, usage = self.results[_call_key(returned.call)]
        self.results[_call_key(returned.call)] = returned, usage

    def _failed(self, graph: Fingerprint, statement: str, reason: str, dialect: str = "") -> None:
        for key in (("write", graph.now, statement), ("read", graph.now, statement, dialect)):
            self.statements.setdefault(key, QueryFailed(statement, reason))


class Fingerprint:
    """A short text that says which graph this is: a hash over all changes since it was empty."""

    def __init__(self) -> None:
        self.now = ""

    def change(self, diff: Diff) -> None:
        """The graph changed."""
        plain = json.dumps(to_json(Wrote(statement="", diff=diff))["diff"], sort_keys=True, default=dict)
        self.now = hashlib.sha256((self.now + plain).encode()).hexdigest()[:16]


def _call_key(call: ToolCall) -> Key:
    return call.tool, json.dumps(dict(call.arguments), sort_keys=True, default=str)


@dataclass
class RememberedLLM:
    """A model that answers from the recording what was asked before, and asks the live one, if there is one, for the rest."""

    recording: Recording
    name: str
    live: LLM | None = None

    def __call__(self, prompt: Prompt) -> Reply:
        known = self.recording.replies.get((prompt_digest(prompt, self.name),))
        if known:
            self.recording.avoided += 1
            text, usage = known.popleft()
            return Reply(text, usage)
        if self.live is None:
            last = " ".join(prompt.messages[-1].text.split())[-120:]
            raise ReplayMiss(f"the recorded run holds no reply to the prompt that ends {last!r}, and no live model was given")
        self.recording.made += 1
        return self.live(prompt)


@dataclass
class RememberedTool:
    """A tool that answers from the recording the calls made before."""

    recording: Recording
    name: str
    live: Tool | None = None
    description: str = ""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    finds: str | None = None  # as the run began with it; None: the recording does not say

    def __post_init__(self) -> None:
        if self.finds is None:
            self.finds = usually_finds(self.name, self.arguments)
        if self.live is not None:
            self.description, self.arguments = self.live.description, self.live.arguments

    def __call__(self, /, **arguments: Json) -> Result:  # a model may well name an argument self
        known, usage = self.recording.results.get(_call_key(ToolCall(self.name, arguments)), (None, ()))
        if known is not None:
            if known.failed:
                raise ToolFailed(known.text)
            return Result(known.text, known.sources, usage)
        if self.live is None:
            raise ReplayMiss(f"the recorded run holds no result of {ToolCall(self.name, arguments)}, and the tool itself was not given")
        return self.live(**arguments)


@dataclass
class RememberedStore:
    """A store that knows the results of statements run before on the same graph, and runs the others."""

    recording: Recording
    store: Store
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    edits: Mapping[Key, str] = field(default_factory=dict)  # statements to run in place of recorded ones
    reads_in: str = ""  # the language it is asked in, if not the run's own

    @property
    def dialect(self) -> Dialect:
        return self.store.dialect

    @property
    def readers(self) -> tuple[RememberedStore, ...]:
        """The stores asked in other languages, over the same recording."""
        return tuple(replace(self, store=reader, reads_in=reader.dialect.name) for reader in readers(self.store))

    def write(self, statement: str) -> Diff:
        edited = self.edits.get(("write", self.fingerprint.now, statement))
        if edited is not None:
            return self._edited(self.store.write, edited)
        known = self.recording.statements.get(("write", self.fingerprint.now, statement))
        if isinstance(known, QueryFailed):
            raise known
        if isinstance(known, Diff):
            self.store.apply(known)
        diff = known if isinstance(known, Diff) else self.store.write(statement)
        self.fingerprint.change(diff)
        return diff

    def _edited(self, act: Callable[[str], _Value], statement: str) -> _Value:
        try:
            result = act(statement)
        except QueryFailed as error:
            raise BadInput(f"the edited statement was refused: {error.reason}") from error
        if isinstance(result, Diff):
            self.fingerprint.change(result)
        return result

    def read(self, statement: str) -> Rows:
        key = ("read", self.fingerprint.now, statement, self.reads_in)
        edited = self.edits.get(key)
        if edited is not None:
            return self._edited(self.store.read, edited)
        known = self.recording.statements.get(key)
        if isinstance(known, QueryFailed):
            raise known
        return known if isinstance(known, tuple) else self.store.read(statement)

    def compute(self, code: str) -> str:
        known = self.recording.outputs.get((code,))
        if known is not None:
            if known.failed:
                raise QueryFailed(code, known.output)
            return known.output
        if not isinstance(self.store, Computer):
            raise QueryFailed(code, "this store runs no plain Python")
        return self.store.compute(code)

    def graph(self) -> PropertyGraph:
        return self.store.graph()

    def apply(self, diff: Diff) -> None:
        self.store.apply(diff)
        self.fingerprint.change(diff)

    def schema(self) -> Schema:
        return self.store.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        return self.store.neighbours(id)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        return self.store.search(words, limit)

    def close(self) -> None:
        self.store.close()
