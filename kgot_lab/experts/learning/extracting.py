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
from kgot_lab.experts.expert import slug
from kgot_lab.experts.learning.contradictions import named_node, nodes_named_in
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
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.kgos.schemas.dimensions import BY_NAME
from kgot_lab.llm.structured import compact_schema, structured
from kgot_lab.text.cleaning import FENCES, fence_text, truncate_to_tokens
from kgot_lab.text.words import contains_words
from kgot_lab.types import LLM, Json, Message, Prompt

# The prompt for a message, and the schema in which a model reports the changes that it states.

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
    """Build the prompt that asks a model for the changes in a message."""
    index = index_of(graph)
    known = ", ".join(index.names[row] for row in nodes_named_in(graph, message)) or "none"
    told = f"Types: {', '.join(graph.labels())}.\nRelations: {', '.join(graph.types())}.\n"
    asked = f"{told}{fence_text(known, 'known things that it names')}\n{fence_text(truncate_to_tokens(message, MOST_OF_MESSAGE), 'a message')}"
    return Prompt(
        (Message("system", _SYSTEM), Message("user", asked)), compact_schema(StatedChanges), max_tokens=_REPLY
    )


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")


@dataclass(frozen=True)
class ExtractedChanges:
    """Accepted changes of a message, each with its quotation, and refused ones with the reason."""

    proposals: tuple[tuple[GraphProposal, str], ...] = ()
    refused: tuple[str, ...] = ()


class _NotTaken(Exception):
    """Why a change is not taken."""


def extract_changes(llm: LLM, message: str, graph: PropertyGraph, *, name: str) -> ExtractedChanges:
    """Extract the proposals that a message makes for a graph, with one call of a model.

    `name` is the name of the graph among others. A phrase counts only if it occurs verbatim in the message, a
    relation or a type only if the graph has it. A new node and its edges are one proposal. The result is only
    proposed, and nothing that the model writes is executed. Raises LLMError if the model fails.
    """
    noted = structured(llm, changes_prompt(message, graph), StatedChanges).changes
    reader = _Reader(graph, truncate_to_tokens(message, MOST_OF_MESSAGE))
    refused: list[str] = []
    nodes: dict[str, tuple[list[GraphEdit], list[str]]] = {}
    single: list[tuple[GraphEdit, str]] = []
    # nodes first, so that edges find new nodes
    for each in sorted(noted, key=lambda one: one.kind != "node"):
        try:
            edit = reader.edit(each)
        except _NotTaken as why:
            refused.append(f"{each.kind} {each.subject[:60]!r}: {why}")
            continue
        if isinstance(edit, NodeToAdd):
            nodes[edit.id] = [edit], [each.quote]
        elif isinstance(edit, EdgeToAdd) and (
            new := next((end for end in (edit.source, edit.target) if end in nodes), "")
        ):
            edits, quotes = nodes[new]
            edits.append(edit)
            quotes += [each.quote] * (each.quote not in quotes)
        else:
            single.append((edit, each.quote))
    made = [
        (GraphProposal(name, tuple(dict.fromkeys(edits))), " … ".join(quotes))
        for edits, quotes in nodes.values()
    ]
    made += [(GraphProposal(name, (edit,)), quote) for edit, quote in dict(single).items()]
    return ExtractedChanges(tuple(made), tuple(refused))


def learn_from_message(
    ledger: ProposalLedger, llm: LLM, graph: PropertyGraph, *, name: str, text: str, said: ProposalSource
) -> tuple[StoredProposal, ...]:
    """Queue the proposals that a message makes for a graph.

    `said` has message, conversation and person. Every proposal waits for review: neither the message nor the
    model's reply can accept one. Raises LLMError if the model fails, and BadInput.
    """
    found = extract_changes(llm, text, graph, name=name)
    return tuple(ledger.propose(proposal, replace(said, quote=quote)) for proposal, quote in found.proposals)


def original_spelling(phrase: str, text: str) -> str:
    """Return a phrase as a text spells it, or "" if it does not occur verbatim.

    Case and whitespace are ignored.
    """
    words = phrase.split()
    found = (
        re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
        if words and contains_words(phrase, text)
        else None
    )
    return found[0] if found else ""


class _Reader:
    """Converts the changes that a model reports for one message to edits."""

    def __init__(self, graph: PropertyGraph, text: str) -> None:
        self.graph, self.text = graph, text
        self.new: dict[str, str] = {}  # ids of new nodes by lower-case name

    def edit(self, noted: StatedChange) -> GraphEdit:
        quote = original_spelling(noted.quote, self.text)
        if len(quote.split()) < 2:
            raise _NotTaken("its quotation does not stand in the message")
        if not original_spelling(noted.subject, self.text):
            raise _NotTaken("its subject does not stand in the message")
        told = noted.model_copy(update={"quote": quote})
        match noted.kind:
            case "node":
                return self._node(told)
            case "property":
                return self._property(told)
            case _:
                return self._edge(told)

    def _node(self, noted: StatedChange) -> NodeToAdd:
        if noted.type not in self.graph.labels():
            raise _NotTaken(f"the graph has no type {noted.type[:40]!r}")
        name = " ".join(original_spelling(noted.subject, noted.quote).split())
        if not name or not name.isprintable():
            raise _NotTaken("its quotation does not name it")
        id = f"{noted.type}:{slug(name)}"
        if named_node(self.graph, name) or id in self.graph:
            raise _NotTaken("it is in the graph already")
        self.new[name.casefold()] = id
        return NodeToAdd(id, noted.type, name)

    def _edge(self, noted: StatedChange) -> GraphEdit:
        if noted.relation not in self.graph.types():
            raise _NotTaken(f"the graph has no relation {noted.relation[:40]!r}")
        if not original_spelling(noted.object, noted.quote):
            raise _NotTaken("its object does not stand in its quotation")
        source, target = self._end(noted.subject), self._end(noted.object)
        if source == target:
            raise _NotTaken("both ends are the same")
        there = source in self.graph and any(
            each.target == target for each in self.graph.neighbours(source, "out", (noted.relation,))
        )
        if there != (noted.kind == "no edge"):
            raise _NotTaken("it is in the graph already" if there else "there is no such edge")
        return (EdgeToRemove if there else EdgeToAdd)(source, noted.relation, target)

    def _property(self, noted: StatedChange) -> PropertyToChange:
        id = self._end(noted.subject)
        if id not in self.graph:
            raise _NotTaken("a new node has no property to correct")
        known = self.graph.node(id).properties
        value = next(_read_values(noted, known.get(noted.property)), None)
        if value is None:
            raise _NotTaken(f"no value of {noted.property[:40]!r} that it may have stands in its quotation")
        if known.get(noted.property) == value:
            raise _NotTaken("it has this value already")
        try:
            return PropertyToChange(id, noted.property, value, known.get(noted.property))
        except BadInput as error:
            raise _NotTaken(str(error)) from None

    def _end(self, name: str) -> str:
        ids = named_node(self.graph, name) or tuple(
            filter(None, [self.new.get(" ".join(name.split()).casefold(), "")])
        )
        if len(ids) != 1:
            raise _NotTaken(f"{len(ids) or 'no'} nodes are called {name[:60]!r}")
        return ids[0]


def _read_values(noted: StatedChange, before: Json) -> Iterator[Json]:
    """Yield the value of a property that the quotation states, if such a property can have it.

    Properties are dimensions, descriptions, numbers and texts.
    """
    number = isinstance(before, int | float) and not isinstance(before, bool)
    if noted.property in BY_NAME or number:
        said = [float(each) for each in _NUMBER.findall(noted.quote)]
        yield from (
            each
            for each in said
            if _same(noted.value, each) and (noted.property not in BY_NAME or 0 <= each <= 1)
        )
    elif noted.property == "description" or isinstance(before, str):
        text = " ".join(original_spelling(noted.value, noted.quote).split())
        if text and text.isprintable():
            yield text


def _same(told: str, number: float) -> bool:
    try:
        return math.isclose(float(told), number)
    except ValueError:
        return False
