"""Events of an answer in order, and the record of how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel

from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.chat.prompting import PlaybookSection, PromptContext
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.kgos.methods.compose_for import Composition
from kgot_lab.kgos.methods.search.results import SearchResult
from kgot_lab.types import Json, Usage

# The train of thought of an answer: the query, results by retriever and method, and what was expanded, put in
# the prompt or cut.


class ThoughtNode(BaseModel):
    """A node that was found, with its score by retriever and the graph path that led to it."""

    graph: str
    id: str
    name: str
    type: str
    score: float
    embedding: float
    text: float
    by_graph: float
    intent: float
    path: str
    told: bool


class ThoughtStep(BaseModel):
    """A method that was called, why, and its result."""

    method: str
    reason: str
    found: str


class Thought(BaseModel):  # 15 fields: the JSON stored with each answer
    """How an answer came about, up to the model's prompt."""

    intent: str | None
    intent_score: float
    purpose: str
    weights: dict[str, float]
    steps: list[ThoughtStep]
    nodes: list[ThoughtNode]
    edges: list[dict[str, str]]
    limitations: list[str]
    plan: list[str]
    playbooks: list[str]
    memories: int
    unsaid: list[str] = []  # content words of the question that no node found contains, if they are over half
    delegated: list[dict[str, Any]]
    cut: list[str]
    graphs: dict[str, str]  # their digest


def build_thought(
    known: KnownGraphs,
    result: SearchResult,
    context: PromptContext,
    sections: tuple[PlaybookSection, ...],
    memories: int,
    delegated: Sequence[Mapping[str, Any]] = (),
    unsaid: Sequence[str] = (),
) -> Thought:
    """Build the train of thought of an answer from its search result and the context put in the prompt."""
    shown = {(node.graph, node.id) for node in context.nodes}
    nodes = []
    for node in result.nodes:
        graph, id = known.split_id(node.id)
        fields: dict[str, Any] = {"graph": graph, "id": id, "name": node.name, "type": node.type}
        scores = {"score": node.score, "embedding": node.embedding, "text": node.text, "intent": node.intent}
        fields |= {name: round(value, 4) for name, value in {**scores, "by_graph": node.graph}.items()}
        nodes.append(ThoughtNode(**fields, path=node.path, told=(graph, id) in shown))
    plan = result.answers.get("compose_for")
    best = result.intents.best
    weights = result.weights
    return Thought(
        intent=best.name if best else None,
        intent_score=round(best.score, 4) if best else 0.0,
        purpose=str(result.intents.purpose),
        weights={name: round(getattr(weights, name), 4) for name in ("embedding", "text", "graph", "intent")},
        steps=[ThoughtStep(method=s.method, reason=s.reason, found=s.found) for s in result.trace],
        nodes=nodes,
        edges=[{"source": edge.source, "type": edge.type, "target": edge.target} for edge in context.edges],
        limitations=[limitation.handle for limitation in context.limitations],
        plan=[f"{step.name}: {step.action}" for step in plan.steps] if isinstance(plan, Composition) else [],
        playbooks=[f"{section.playbook}: {section.heading}" for section in sections],
        memories=memories,
        unsaid=list(unsaid),
        delegated=[dict(each) for each in delegated],
        cut=list(context.cut),
        graphs=dict.fromkeys(known.names, known.digest),
    )


class _Event:
    """An event whose fields are those of its JSON."""

    type: ClassVar[str]

    def to_json(self) -> dict[str, Json]:
        return {"type": self.type, **vars(self)}


@dataclass(frozen=True)
class ConversationStarted(_Event):
    """The question is stored in this conversation."""

    type = "conversation_start"
    conversation_id: str


@dataclass(frozen=True)
class PromptContents(_Event):
    """What the prompt contains besides the question."""

    type = "injection_meta"
    memories: bool
    skills: bool
    kg_nodes: int


@dataclass(frozen=True)
class SourceNode:
    """A node in the model's prompt, with its score."""

    graph: str
    id: str
    name: str
    type: str
    score: float

    def to_json(self) -> dict[str, Json]:
        return dict(vars(self))


@dataclass(frozen=True)
class SourcesEvent:
    """The nodes in the model's prompt, best first."""

    nodes: tuple[SourceNode, ...]

    def to_json(self) -> dict[str, Json]:
        return {"type": "sources", "nodes": [node.to_json() for node in self.nodes]}


@dataclass(frozen=True)
class ThoughtEvent:
    """The train of thought up to the prompt."""

    thought: Thought = field(hash=False)

    def to_json(self) -> dict[str, Json]:
        return {"type": "trace", "trace": self.thought.model_dump(mode="json")}


@dataclass(frozen=True)
class TokenEvent(_Event):
    """A piece of the answer. A false citation in it is marked."""

    type = "token"
    content: str


@dataclass(frozen=True)
class ChatFailed(_Event):
    """Why there is no answer, or an incomplete one. Only the end follows."""

    type = "error"
    content: str


@dataclass(frozen=True)
class ChatDone:
    """The answer is stored.

    Fields are its message id, the nodes it cites, those it names without citing, and its false citations.
    `cut` is True if the answer was truncated at the token limit of the model. `outcome` says in words whether
    the sources say it.
    """

    message_id: str
    cited: tuple[CitableNode, ...] = ()
    false: tuple[str, ...] = ()
    usage: Usage = Usage()
    text: str = field(default="", compare=False)
    named: tuple[CitableNode, ...] = ()
    cut: bool = False
    outcome: str = ""

    def to_json(self) -> dict[str, Json]:
        cited, named = _nodes_json(self.cited), _nodes_json(self.named)
        fields = {"citations": cited, "named": named, "false_citations": list(self.false), "cut": self.cut}
        return {"type": "done", "message_id": self.message_id, **fields, "outcome": self.outcome}


def _nodes_json(nodes: tuple[CitableNode, ...]) -> list[Mapping[str, Json]]:
    return [{"graph": node.graph, "id": node.id, "name": node.name} for node in nodes]


ChatEvent = (
    ConversationStarted | PromptContents | SourcesEvent | ThoughtEvent | TokenEvent | ChatFailed | ChatDone
)


@dataclass
class AnswerRecord:
    """What the events of an answer have told so far."""

    text: str = ""
    thought: Thought | None = None
    sources: tuple[SourceNode, ...] = ()
    done: ChatDone | None = None
    trouble: str = ""

    def record(self, event: ChatEvent) -> None:
        """Add what an event tells."""
        match event:
            case SourcesEvent():
                self.sources = event.nodes
            case ThoughtEvent():
                self.thought = event.thought
            case TokenEvent():
                self.text += event.content
            case ChatFailed():
                self.trouble = event.content
            case ChatDone():
                self.done = event
