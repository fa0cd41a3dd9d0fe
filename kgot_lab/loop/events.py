"""Events of a run as typed values. The loop yields them, a trace stores them, every view reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, Literal, dataclass_transform, get_args

from kgot_lab.errors import TraceError
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support
from kgot_lab.llm.recorded import logprob_from_json, prompt_from_json, prompt_to_json
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.types import Diff, Document, Edge, Json, Node, Prompt, Reply, Rows, Usage

EMPTY = PropertyGraph.of()


class Role(str):
    """What a model call is for, as traces write it: "vote", "vote, again", "inside search, failed"."""

    __slots__ = ()

    @classmethod
    def inside(cls, tool: str) -> Role:
        """Return the role of a call behind a tool."""
        return cls(f"inside {tool}")

    def but(self, what: str) -> Role:
        """Return the role of a repetition ("again", "longer"), or of a call that "failed" at a cost or was "early"."""
        return self if self.endswith(f", {what}") else Role(f"{self}, {what}")

    @property
    def purpose(self) -> str:
        """What the first call of this kind is for."""
        return self.split(",")[0]

    @property
    def is_inside(self) -> bool:
        """Whether it is a call behind a tool."""
        return self.startswith("inside ")

    @property
    def is_failed(self) -> bool:
        """Whether the call failed at a cost. It has no reply, and a replay does not repeat it."""
        return self.endswith(", failed")

    @property
    def is_early(self) -> bool:
        """Whether the call ended before its turn in a run that was stopped. The run uses it when it goes on."""
        return ", early" in self


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True, repr=False)
class Event:
    """Base class of events. `step` counts the INSERT turns begun before it.

    Subclasses become frozen data classes. Prints as a line or two of text.
    """

    step: int = 0

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, repr=False)(cls)

    def __repr__(self) -> str:
        from kgot_lab.loop.formatting import summary_line

        return summary_line(self)


class Started(Event):
    """The start of a run: the question, its resources, and its limits."""

    question: str
    attachments: tuple[str, ...] = ()
    limits: Mapping[str, Json] = field(default_factory=dict, hash=False)
    planning: str = ""
    execution: str = ""
    dialect: str = ""
    readers: tuple[str, ...] = ()  # additional query languages for candidates
    # name -> description and arguments, as the prompts showed them
    tools: Mapping[str, Json] = field(default_factory=dict, hash=False)
    computes: bool = True  # whether there was something that runs Python; runs of older versions do not say
    graph: str = ""  # the digest of the graph that the run began with; "" for an empty one
    # what the caller gave of his own: "prompts", the class of a "mode", and whether somebody "approves"
    custom: Mapping[str, Json] = field(default_factory=dict, hash=False, metadata={"unless": ({},)})
    # that graph; on file, a snapshot beside the trace
    start: PropertyGraph = field(default=EMPTY, compare=False, metadata={"beside": True})

    @property
    def preset(self) -> str:
        """The name of the preset that the limits came from."""
        return str(self.limits.get("preset", ""))


class Asked(Event):
    """A model call. `role` is its purpose (vote, merge, tools, write, mend, read, ...)."""

    role: Role
    model: str
    prompt: Prompt
    reply: str
    usage: Usage = Usage()
    cut: bool = False  # whether the reply was truncated at its token limit
    # natural log-probability of the whole reply, if requested
    logprob: float | None = field(default=None, metadata={"if_told": True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))

    @property
    def as_reply(self) -> Reply:
        """The reply as the model gave it."""
        return Reply(self.reply, self.usage, self.model, self.cut, self.logprob)


class TextDelta(Event):
    """Words of a reply as the model writes them, before its Asked event. It is in no trace."""

    role: Role
    text: str


class Cut(Event):
    """A text over its token budget, of which the least relevant parts were left out."""

    what: str
    kept: int  # tokens, estimated
    left_out: int


class Vote(Event):
    """One vote: INSERT or RETRIEVE, or "" when the reply was neither."""

    number: int
    choice: str
    text: str  # the reason for INSERT; the read statement (or the answer) for RETRIEVE


class Voted(Event):
    """The outcome of a vote: RETRIEVE by strict majority, otherwise INSERT.

    If `possible` is 0, no vote was sampled and `reasons` say why.
    """

    choice: str
    inserts: int
    retrieves: int
    invalid: int
    possible: int  # votes that the limits allow; sampling stops once the outcome is decided
    reasons: tuple[str, ...] = ()

    @property
    def votes(self) -> int:
        """Number of sampled votes."""
        return self.inserts + self.retrieves + self.invalid

    @property
    def agreement(self) -> float:
        """Share of the votes that chose the winner, 0 to 1."""
        winners = self.retrieves if self.choice == "RETRIEVE" else self.inserts
        return winners / self.votes if self.votes else 0.0


class Merged(Event):
    """Several reasons to INSERT became one."""

    reason: str


@dataclass(frozen=True)
class ToolCall:
    """A tool and the arguments to call it with."""

    tool: str
    arguments: Mapping[str, Json] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """What two equal calls have in common."""
        return self.tool, json.dumps(dict(self.arguments), sort_keys=True, default=str)

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON, as somebody who approves the call is shown them."""
        return json.dumps(dict(self.arguments), ensure_ascii=False, default=str)

    def __str__(self) -> str:
        return f"{self.tool}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


class Chose(Event):
    """The tool calls of this step.

    Of those proposed besides, `skipped` had been made before, and `surplus` were more than a step may make.
    """

    calls: tuple[ToolCall, ...]
    skipped: tuple[ToolCall, ...] = ()
    surplus: tuple[ToolCall, ...] = field(default=(), metadata={"unless": ((),)})


class Decided(Event):
    """What a person decided on a tool call, a write or a paid model call.

    `decision` is "approved", "changed" (to `text`) or "denied" (for the reason `text`). `about` is the tool,
    the source of the write, or the model and the most that the call could cost. Older traces do not say it.
    """

    what: str
    proposed: str
    decision: str
    text: str = ""
    about: str = field(default="", compare=False, metadata={"unless": ("",)})


class ToolReturned(Event):
    """A tool's text, with the documents it came from. If `failed`, the text is an error message."""

    call: ToolCall
    text: str
    sources: tuple[Document, ...] = ()
    failed: bool = False
    again: bool = False  # of a failure: whether a retry may succeed
    # whether it came before its turn in a run that was stopped, which uses it when it goes on
    early: bool = field(default=False, metadata={"unless": (False,)})


def is_early(event: Event) -> bool:
    """Return whether an event is what a call gave before its turn, in a run that was stopped."""
    return (
        event.role.is_early if isinstance(event, Asked) else isinstance(event, ToolReturned) and event.early
    )


class Failed(Event):
    """A vote's read statement that the store refused. It will be repaired if RETRIEVE wins."""

    statement: str
    reason: str


class Repaired(Event):
    """A failed statement and its repair by the model."""

    statement: str
    error: str
    mended: str
    dialect: str = ""  # empty: the language of the run


class Wrote(Event):
    """A statement changed the graph, exactly so."""

    statement: str
    diff: Diff
    source: str = ""  # the tool call whose text the statement was made from
    asked: str = ""  # the statement that the loop asked for, where a person has put another in its place


class Read(Event):
    """A statement was run against the graph without changing it."""

    statement: str
    rows: Rows
    dialect: str = ""  # empty: the language of the run
    constant: tuple[int, ...] = ()  # indices of rows that hold only constants of the statement
    asked: str = ""  # the statement that the loop asked for, where a person has put another in its place

    @property
    def grounded(self) -> Rows:
        """The rows that were read from the graph."""
        return tuple(row for number, row in enumerate(self.rows) if number not in self.constant)


class Refused(Event):
    """A statement that was abandoned because the store refused it and repairs ran out."""

    statement: str
    reason: str
    writing: bool
    dialect: str = ""  # empty: the language of the run


class Forced(Event):
    """Nothing more can be fetched or read: from here on the model must answer."""

    what: str  # "read": the steps or the calls ran out, read what is there; "answer": no rows gave an answer, guess


class Computed(Event):
    """Arithmetic on the rows, run by Python in the sandbox. If `failed`, the output is an error."""

    code: str
    output: str
    failed: bool = False


class Parsed(Event):
    """One candidate answer in the requested format. `problem` says why it cannot be used."""

    text: str
    problem: str = ""


# "not checked": nobody asked whether what was read says it
Outcome = Literal["supported", "unsure", "not in the sources", "not checked"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Answered(Event):
    """The end of a run: the answer, whether the sources say it, and its evidence.

    A run that does not record its outcome is "unsure" if its answer was forced, or else "not checked".
    """

    text: str
    forced: bool  # a guess: nothing that was read says it
    evidence: Rows = ()  # graph facts
    passages: tuple[str, ...] = ()  # ids of the documents the facts were taken from
    supports: tuple[tuple[Support, ...], ...] = ()  # for each fact, the documents and sentences that say it
    # the model's own probability of the whole answer, 0 to 1, if requested
    likelihood: float | None = field(default=None, metadata={"if_told": True})
    outcome: Outcome | Literal[""] = field(default="", metadata={"unless": ("not checked", "unsure")})
    missing: str = field(default="", metadata={"unless": ("",)})  # what no text says, a plain sentence

    def __post_init__(self) -> None:
        if not self.outcome:
            object.__setattr__(self, "outcome", "unsure" if self.forced else "not checked")

    @property
    def guess_reason(self) -> str:
        """Why the answer is a guess, or "" if it is none."""
        unread = "what was read does not say it" if self.evidence else "no read gave rows"
        return (self.missing or unread) if self.forced else ""

    @property
    def remark(self) -> str:
        """The outcome in words, to be shown beside the answer, and why the answer is a guess if it is one.

        It is "" for an answer without evidence that is no guess, as in older runs.
        """
        if not self.forced:
            return self.outcome if self.evidence or self.passages else ""
        guess = ": " if self.shown_text != self.text else ", a guess: "
        return f"{self.outcome}{guess}{self.guess_reason}"

    @property
    def shown_text(self) -> str:
        """The answer, or that the documents do not say it where not even a guess was made."""
        return "the documents do not say" if self.forced and is_no_answer(str(self.text)) else self.text


EVENTS = {kind.__name__: kind for kind in Event.__subclasses__() if kind is not TextDelta}
_ON_DISK = {"Vote": "Ballot"}  # what traces call an event
_FROM_DISK = {name: event for event, name in _ON_DISK.items()}


def to_json(event: Event) -> dict[str, Json]:
    """Convert an event to plain JSON values, with its kind under "event"."""
    name = type(event).__name__
    return {"event": _ON_DISK.get(name, name), **to_plain(event)}


def to_plain(value: Any) -> Json:
    """Convert an event, or a value of one such as a diff, to plain JSON values."""
    if is_dataclass(value) and not isinstance(value, Prompt):
        items = [item for item in fields(value) if not _is_omitted(item, value)]
        return {item.name: to_plain(getattr(value, item.name)) for item in items}
    if isinstance(value, Prompt):
        return prompt_to_json(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _is_omitted(item: Field[Any], value: Any) -> bool:
    """Return whether a field is omitted from the line of an event.

    This holds for fields stored beside the trace, and for fields newer than older traces that are None.
    """
    if "if_told" in item.metadata and getattr(value, item.name) is None:
        return True
    return "beside" in item.metadata or getattr(value, item.name) in item.metadata.get("unless", ())


def from_json(data: Mapping[str, Json]) -> Event:
    """Build an event from the output of `to_json`. Raises TraceError if it is damaged."""
    name = str(data.get("event")) if isinstance(data, Mapping) else ""
    kind = EVENTS.get(_FROM_DISK.get(name, name))
    if kind is None:
        raise TraceError(f"not an event: {str(data)[:120]}")
    try:
        if kind is Started and "preset" in data:  # as older versions recorded it
            data = {**data, "limits": {"preset": data["preset"], **data.get("limits", {})}}
        values = {item.name: data[item.name] for item in fields(kind) if item.name in data}
        return kind(**{name: _READERS.get((kind, name), _as_tuple)(value) for name, value in values.items()})
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise TraceError(f"a damaged {kind.__name__} event: {error!r}") from error


def _as_tuple(value: Json) -> Json:
    return tuple(value) if isinstance(value, list) else value


def _node_from_json(data: Json) -> Node:
    return Node(data["id"], tuple(data["labels"]), data["properties"])


def diff_from_json(data: Json) -> Diff:
    """Build a diff from the JSON that `to_json` wrote as part of an event."""
    return Diff(
        tuple(map(_node_from_json, data["added_nodes"])),
        tuple(map(_node_from_json, data["removed_nodes"])),
        tuple((_node_from_json(before), _node_from_json(after)) for before, after in data["changed_nodes"]),
        tuple(Edge(**edge) for edge in data["added_edges"]),
        tuple(Edge(**edge) for edge in data["removed_edges"]),
        tuple((Edge(**before), Edge(**after)) for before, after in data["changed_edges"]),
    )


def _calls_from_json(data: Json) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(**call) for call in data)


_READERS: dict[tuple[type[Event], str], Any] = {
    (Asked, "prompt"): prompt_from_json,
    (Asked, "usage"): lambda data: Usage(**data),
    (Asked, "logprob"): logprob_from_json,
    (Chose, "calls"): _calls_from_json,
    (Chose, "skipped"): _calls_from_json,
    (Chose, "surplus"): _calls_from_json,
    (ToolReturned, "call"): lambda data: ToolCall(**data),
    (ToolReturned, "sources"): lambda data: tuple(Document(**document) for document in data),
    (Wrote, "diff"): diff_from_json,
    (Answered, "supports"): lambda data: tuple(tuple(Support(**s) for s in each) for each in data),
}
