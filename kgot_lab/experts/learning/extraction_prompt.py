"""What a model is asked of a message, and the form in which it notes the changes that the message states."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from kgot_lab.experts.learning.contradictions import nodes_named_in
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.llm.structured import schema_of
from kgot_lab.text.fence import FENCES, fenced
from kgot_lab.text.tokens import shorten
from kgot_lab.types import Message, Prompt

MOST_OF_MESSAGE = 2000  # tokens of a message
_REPLY = 800
_SYSTEM = (
    "You read a message to an expert and note what it states that would correct or add to a knowledge graph. Kinds: node (subject is a "
    "thing that is not known yet, type is its type), edge (subject, relation, object), no edge (the message says that this relation is "
    "wrong), property (subject, property, value). Copy subject, object, value and quote from the message, word for word; quote is the "
    f"clause that says it. Note no questions, wishes or guesses. Most messages state nothing: an empty list is a good answer. {FENCES}"
)


class StatedChange(BaseModel):
    """A change as a model notes it."""

    kind: Literal["node", "edge", "no edge", "property"]
    subject: str = Field(max_length=200)
    type: str = ""
    relation: str = ""
    object: str = ""
    property: str = ""
    value: str = ""
    quote: str = Field(max_length=1000)


class StatedChanges(BaseModel):
    """The changes that a model notes of a message."""

    changes: list[StatedChange] = Field(max_length=20)


def changes_prompt(message: str, graph: PropertyGraph) -> Prompt:
    """What a model is asked of a message."""
    index = index_of(graph)
    known = ", ".join(index.names[row] for row in nodes_named_in(graph, message)) or "none"
    told = f"Types: {', '.join(graph.labels())}.\nRelations: {', '.join(graph.types())}.\n"
    asked = f"{told}{fenced(known, 'known things that it names')}\n{fenced(shorten(message, MOST_OF_MESSAGE), 'a message')}"
    return Prompt(
        (Message("system", _SYSTEM), Message("user", asked)), schema_of(StatedChanges), max_tokens=_REPLY
    )
