"""Extract proposed graph changes from a message with a model.

Only what occurs verbatim in the message counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, Field

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import slugify
from kgot_lab.experts.learning.contradictions import find_named_nodes, nodes_with_name
from kgot_lab.experts.learning.ledger import (
    EdgeToAdd,
    EdgeToRemove,
    GraphEdit,
    GraphProposal,
    NodeToAdd,
    PropertyToChange,
    ProposalLedger,
    ProposalSource,
    StoredProposal,
)
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS_BY_NAME
from kgot_lab.llm.structured import compact_schema, structured
from kgot_lab.text.cleaning import FENCES, fence_text, truncate_to_tokens
from kgot_lab.text.words import contains_words
from kgot_lab.types import LLM, Json, Message, Prompt

# The prompt for a message, and the schema in which a model reports the changes that it states.

MAX_MESSAGE_TOKENS = 2000  # tokens of a message
_REPLY_TOKENS = 800
_SYSTEM_PROMPT = (
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
    """Build the prompt that asks a model for the changes in a message."""
    index = graph_index(graph)
    named = ", ".join(index.names[row] for row in find_named_nodes(graph, message)) or "none"
    vocabulary = f"Types: {', '.join(graph.labels())}.\nRelations: {', '.join(graph.types())}.\n"
    quoted = fence_text(truncate_to_tokens(message, MAX_MESSAGE_TOKENS), "a message")
    text = f"{vocabulary}{fence_text(named, 'known things that it names')}\n{quoted}"
    messages = (Message("system", _SYSTEM_PROMPT), Message("user", text))
    return Prompt(messages, compact_schema(StatedChanges), max_tokens=_REPLY_TOKENS)


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")


@dataclass(frozen=True)
class ExtractedChanges:
    """Accepted changes of a message, each with its quotation, and refused ones with the reason."""

    proposals: tuple[tuple[GraphProposal, str], ...] = ()
    refused: tuple[str, ...] = ()


class _ChangeRefused(Exception):
    """Why a change is not taken."""


def extract_changes(llm: LLM, message: str, graph: PropertyGraph, *, name: str) -> ExtractedChanges:
    """Extract the proposals that a message makes for a graph, with one call of a model.

    `name` is the name of the graph among others. A phrase counts only if it occurs verbatim in the message, a
    relation or a type only if the graph has it. A new node and its edges are one proposal. The result is only
    proposed, and nothing that the model writes is executed. Raises LLMError if the model fails.
    """
    stated = structured(llm, changes_prompt(message, graph), StatedChanges).changes
    reader = _EditBuilder(graph, truncate_to_tokens(message, MAX_MESSAGE_TOKENS))
    refused: list[str] = []
    nodes: dict[str, tuple[list[GraphEdit], list[str]]] = {}
    standalone: list[tuple[GraphEdit, str]] = []
    # nodes first, so that edges find new nodes
    for change in sorted(stated, key=lambda one: one.kind != "node"):
        try:
            edit = reader.edit(change)
        except _ChangeRefused as why:
            refused.append(f"{change.kind} {change.subject[:60]!r}: {why}")
            continue
        if isinstance(edit, NodeToAdd):
            nodes[edit.id] = [edit], [change.quote]
        elif isinstance(edit, EdgeToAdd) and (
            new := next((end for end in (edit.source, edit.target) if end in nodes), "")
        ):
            edits, quotes = nodes[new]
            edits.append(edit)
            quotes += [change.quote] if change.quote not in quotes else []
        else:
            standalone.append((edit, change.quote))
    read = ((tuple(dict.fromkeys(edits)), " … ".join(quotes)) for edits, quotes in nodes.values())
    proposals = [(GraphProposal(name, edits), quote) for edits, quote in read]
    proposals += [(GraphProposal(name, (edit,)), quote) for edit, quote in dict(standalone).items()]
    return ExtractedChanges(tuple(proposals), tuple(refused))


def learn_from_message(
    ledger: ProposalLedger, llm: LLM, graph: PropertyGraph, *, name: str, text: str, source: ProposalSource
) -> tuple[StoredProposal, ...]:
    """Queue the proposals that a message makes for a graph.

    `source` has message, conversation and person. Every proposal waits for review: neither the message nor the
    model's reply can accept one. Raises LLMError if the model fails, and BadInput.
    """
    extracted = extract_changes(llm, text, graph, name=name)
    sourced = ((proposal, replace(source, quote=quote)) for proposal, quote in extracted.proposals)
    return tuple(ledger.propose(proposal, said) for proposal, said in sourced)


def original_spelling(phrase: str, text: str) -> str:
    """Return a phrase as a text spells it, or "" if it does not occur verbatim.

    Case and whitespace are ignored.
    """
    words = phrase.split()
    if not words or not contains_words(phrase, text):
        return ""
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return match[0] if match else ""


class _EditBuilder:
    """Converts the changes that a model reports for one message to edits."""

    def __init__(self, graph: PropertyGraph, text: str) -> None:
        self.graph, self.text = graph, text
        self.new: dict[str, str] = {}  # ids of new nodes by lower-case name

    def edit(self, stated: StatedChange) -> GraphEdit:
        quote = original_spelling(stated.quote, self.text)
        if len(quote.split()) < 2:
            raise _ChangeRefused("its quotation does not stand in the message")
        if not original_spelling(stated.subject, self.text):
            raise _ChangeRefused("its subject does not stand in the message")
        corrected = stated.model_copy(update={"quote": quote})
        match stated.kind:
            case "node":
                return self._node_edit(corrected)
            case "property":
                return self._property_edit(corrected)
            case _:
                return self._edge_edit(corrected)

    def _node_edit(self, stated: StatedChange) -> NodeToAdd:
        if stated.type not in self.graph.labels():
            raise _ChangeRefused(f"the graph has no type {stated.type[:40]!r}")
        name = " ".join(original_spelling(stated.subject, stated.quote).split())
        if not name or not name.isprintable():
            raise _ChangeRefused("its quotation does not name it")
        id = f"{stated.type}:{slugify(name)}"
        if nodes_with_name(self.graph, name) or id in self.graph:
            raise _ChangeRefused("it is in the graph already")
        self.new[name.casefold()] = id
        return NodeToAdd(id, stated.type, name)

    def _edge_edit(self, stated: StatedChange) -> GraphEdit:
        if stated.relation not in self.graph.types():
            raise _ChangeRefused(f"the graph has no relation {stated.relation[:40]!r}")
        if not original_spelling(stated.object, stated.quote):
            raise _ChangeRefused("its object does not stand in its quotation")
        source, target = self._node_id(stated.subject), self._node_id(stated.object)
        if source == target:
            raise _ChangeRefused("both ends are the same")
        exists = source in self.graph and any(
            (neighbour.type, neighbour.target) == (stated.relation, target)
            for neighbour in self.graph.neighbours(source, "out")
        )
        if exists != (stated.kind == "no edge"):
            raise _ChangeRefused("it is in the graph already" if exists else "there is no such edge")
        return (EdgeToRemove if exists else EdgeToAdd)(source, stated.relation, target)

    def _property_edit(self, stated: StatedChange) -> PropertyToChange:
        id = self._node_id(stated.subject)
        if id not in self.graph:
            raise _ChangeRefused("a new node has no property to correct")
        properties = self.graph.node(id).properties
        value = next(_read_values(stated, properties.get(stated.property)), None)
        if value is None:
            raise _ChangeRefused(f"no value that {stated.property[:40]!r} may have is in its quotation")
        if properties.get(stated.property) == value:
            raise _ChangeRefused("it has this value already")
        try:
            return PropertyToChange(id, stated.property, value, properties.get(stated.property))
        except BadInput as error:
            raise _ChangeRefused(str(error)) from None

    def _node_id(self, name: str) -> str:
        added = self.new.get(" ".join(name.split()).casefold(), "")
        ids = nodes_with_name(self.graph, name) or tuple(filter(None, [added]))
        if len(ids) != 1:
            raise _ChangeRefused(f"{len(ids) or 'no'} nodes are called {name[:60]!r}")
        return ids[0]


def _read_values(stated: StatedChange, before: Json) -> Iterator[Json]:
    """Yield the value of a property that the quotation states, if such a property can have it.

    Properties are dimensions, descriptions, numbers and texts.
    """
    is_number = isinstance(before, int | float) and not isinstance(before, bool)
    if stated.property in DIMENSIONS_BY_NAME or is_number:
        is_dimension = stated.property in DIMENSIONS_BY_NAME
        numbers = (float(each) for each in _NUMBER.findall(stated.quote))
        matching = (number for number in numbers if _equals_number(stated.value, number))
        yield from (number for number in matching if not is_dimension or 0 <= number <= 1)
    elif stated.property == "description" or isinstance(before, str):
        text = " ".join(original_spelling(stated.value, stated.quote).split())
        if text and text.isprintable():
            yield text


def _equals_number(text: str, number: float) -> bool:
    try:
        return math.isclose(float(text), number)
    except ValueError:
        return False
