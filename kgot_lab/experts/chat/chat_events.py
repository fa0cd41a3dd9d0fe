"""What happens while an expert answers, in its order: a start, what was put into the prompt, its sources,
pieces of text, an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.chat.thought import Thought
from kgot_lab.types import Json, Usage


@dataclass(frozen=True)
class ConversationStarted:
    """The question is kept, in this conversation."""

    conversation_id: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "conversation_start", "conversation_id": self.conversation_id}


@dataclass(frozen=True)
class Injected:
    """What was put into the prompt besides the question."""

    memories: bool
    skills: bool
    kg_nodes: int

    def to_json(self) -> dict[str, Json]:
        return {
            "type": "injection_meta",
            "memories": self.memories,
            "skills": self.skills,
            "kg_nodes": self.kg_nodes,
        }


@dataclass(frozen=True)
class SourceNode:
    """A node that was told to the model, with its score."""

    graph: str
    id: str
    name: str
    type: str
    score: float

    def to_json(self) -> dict[str, Json]:
        return {"id": self.id, "name": self.name, "type": self.type, "score": self.score, "graph": self.graph}


@dataclass(frozen=True)
class SourcesEvent:
    """The nodes that were told to the model, best first."""

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
class TokenEvent:
    """A piece of the answer; a false citation in it is marked."""

    content: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "token", "content": self.content}


@dataclass(frozen=True)
class ChatFailed:
    """Why there is no answer, or no whole one; no more comes but the end."""

    content: str

    def to_json(self) -> dict[str, Json]:
        return {"type": "error", "content": self.content}


@dataclass(frozen=True)
class ChatDone:
    """The answer is kept: as which message, which nodes it cites, which it names without citing them, and
    which citations are false.

    `cut` says that it ends where the model might write no more.
    """

    message_id: str
    cited: tuple[CitableNode, ...] = ()
    false: tuple[str, ...] = ()
    usage: Usage = Usage()
    text: str = field(default="", compare=False)
    named: tuple[CitableNode, ...] = ()
    cut: bool = False

    def to_json(self) -> dict[str, Json]:
        told = {
            "citations": _nodes(self.cited),
            "named": _nodes(self.named),
            "false_citations": list(self.false),
        }
        return {"type": "done", "message_id": self.message_id, **told, "cut": self.cut}


def _nodes(nodes: tuple[CitableNode, ...]) -> list[Mapping[str, Json]]:
    return [{"graph": each.graph, "id": each.id, "name": each.name} for each in nodes]


ChatEvent = ConversationStarted | Injected | SourcesEvent | ThoughtEvent | TokenEvent | ChatFailed | ChatDone
