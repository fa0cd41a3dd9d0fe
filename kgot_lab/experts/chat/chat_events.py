"""What happens while an expert answers, in its order: a start, what was put into the prompt, its sources,
pieces of text, an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kgot_lab.experts.chat.chat_events import Thought
from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.types import Json, Usage


class _Event:
    """An event whose fields are those of its JSON."""

    type: ClassVar[str]

    def to_json(self) -> dict[str, Json]:
        return {"type": self.type, **vars(self)}


@dataclass(frozen=True)
class ConversationStarted(_Event):
    """The question is kept, in this conversation."""

    type = "conversation_start"
    conversation_id: str


@dataclass(frozen=True)
class Injected(_Event):
    """What was put into the prompt besides the question."""

    type = "injection_meta"
    memories: bool
    skills: bool
    kg_nodes: int


@dataclass(frozen=True)
class SourceNode:
    """A node that was told to the model, with its score."""

    graph: str
    id: str
    name: str
    type: str
    score: float

    def to_json(self) -> dict[str, Json]:
        return dict(vars(self))


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
class TokenEvent(_Event):
    """A piece of the answer; a false citation in it is marked."""

    type = "token"
    content: str


@dataclass(frozen=True)
class ChatFailed(_Event):
    """Why there is no answer, or no whole one; no more comes but the end."""

    type = "error"
    content: str


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
