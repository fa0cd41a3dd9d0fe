"""Triples from a text by a language model, in one of two ways, and what of its reply was not taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from kgot_lab.llm.structured import checked_reply, parse, schema_of, structured
from kgot_lab.memory.grounded import facts_prompt, grounded_and_not, sentences_of_documents
from kgot_lab.text.fence import FENCES, fenced
from kgot_lab.text.surrogates import whole
from kgot_lab.text.tokens import shorten, tokens
from kgot_lab.text.words import telling_words
from kgot_lab.types import LLM, Document, Message, Prompt, Triple

ExtractionMode = Literal["schema", "grounded"]
SPEAKER = "user"  # what a fact calls the one who speaks of himself
_MOST_TOKENS = 6000  # of a text that is read
_MOST_SENTENCES = 50  # of a text that is read sentence by sentence
_MOST_PART = 200  # letters of a subject, relation or object
_MOST_RELATION = 60
_SYSTEM = (
    "You note the relations that a text states between people, things, places and values. Each is a subject, a relation and an object: "
    "relation in snake_case, such as works_at or born_in; subject and object as the text names them, in full, never a pronoun; "
    f"{SPEAKER} for whoever says I. confidence tells, from 0 to 1, how plainly the text states it. Note nothing that it does not state, "
    "no questions and no wishes; where it states nothing, the list is empty."
)


class ExtractedTriple(BaseModel):
    """A relation as a model notes it."""

    subject: str
    relation: str
    object: str
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


class ExtractedTriples(BaseModel):
    """The relations of a text; a bare list is taken too."""

    triples: list[ExtractedTriple]

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, value: Any) -> Any:
        return {"triples": value} if isinstance(value, list) else value


@dataclass(frozen=True)
class Extraction:
    """What was taken from a text; what the model wrote that the text does not say, as it may be shown; how many tokens were not read."""

    triples: tuple[Triple, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: int = 0


def extract_by_schema(llm: LLM, text: str, *, repairs: int = 1) -> Extraction:
    """The triples of a text by one call, whose reply follows a schema; a bad one is mended once if `repairs` is 1. Raises LLMError."""
    text = whole(text)
    shown = shorten(text, _MOST_TOKENS)
    asked = f"{fenced(shown, 'a message')}\n{FENCES}\n\nWhich relations does it state?\n"
    form = 'Reply as JSON: {"triples": [{"subject": "...", "relation": "...", "object": "...", "confidence": 0.9}]}'
    prompt = Prompt((Message("system", _SYSTEM), Message("user", asked + form)), schema_of(ExtractedTriples), max_tokens=1500)
    made = structured(llm, prompt, ExtractedTriples) if repairs else parse(checked_reply(llm, prompt).text, ExtractedTriples)
    kept, refused = dict[Triple, None](), list[str]()
    there = frozenset(telling_words(shown))
    for each in made.triples:
        subject, relation, object = (" ".join(str(whole(part)).split()) for part in (each.subject, each.relation, each.object))
        triple = Triple(subject, relation, object, each.confidence)
        if not triple.identity[0] or _is_rubbish(triple) or not _is_said(triple, there, shown):
            refused.append(str(triple)[:_MOST_PART])
        else:
            kept.setdefault(triple)
    return Extraction(tuple(kept), tuple(refused), tokens(text) - tokens(shown))


def extract_grounded(llm: LLM, text: str) -> Extraction:
    """The triples of a text by one call a sentence, each kept only if its sentence says it; a model of 1.5B can. Raises LLMError."""
    pieces = sentences_of_documents([Document("", whole(text))])
    kept, refused = dict[Triple, None](), list[str]()
    for piece in pieces[:_MOST_SENTENCES]:
        reply = checked_reply(llm, Prompt(facts_prompt(str(piece)), max_tokens=120))
        said, invented = grounded_and_not(whole(reply.text), [piece])
        kept.update(dict.fromkeys(triple for triple, _ in said))
        refused += [str(triple) for triple in invented]
    return Extraction(tuple(kept), tuple(refused), sum(tokens(piece.text) for piece in pieces[_MOST_SENTENCES:]))


def with_origin(triples: Iterable[Triple], **origin: Any) -> list[Triple]:
    """Triples with the turn and the time they are from."""
    return [replace(triple, **origin) for triple in triples]


def _is_rubbish(triple: Triple) -> bool:
    """Whether no reader would call it a fact: a part is empty or a whole text, or it is about one thing only."""
    parts = triple.identity
    too_long = max(map(len, parts)) > _MOST_PART or len(triple.relation) > _MOST_RELATION
    return not all(parts) or too_long or triple.subject.casefold() == triple.object.casefold()


def _is_said(triple: Triple, there: frozenset[str], text: str) -> bool:
    """Whether a text names both ends; the speaker is always there. A model may put them in other words, so one word of each will do."""

    def named(part: str) -> bool:
        words = set(telling_words(part))
        return bool(words & there) if words else part.casefold() in text.casefold()

    return (triple.subject.casefold() == SPEAKER or named(triple.subject)) and (triple.object.casefold() == SPEAKER or named(triple.object))
