"""Triples from a text by a language model, in one of two ways, and what of its reply was not taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from kgot_lab.llm.structured import checked_reply, parse, schema_of, structured
from kgot_lab.memory.extraction import (
    StatedTimes,
    facts_prompt,
    grounded_and_not,
    sentences_of_documents,
    stated_time,
)
from kgot_lab.text.cleaning import FENCES, fenced, shorten, tokens, whole
from kgot_lab.text.words import content_words
from kgot_lab.types import LLM, Document, Message, Prompt, Triple

ExtractionMode = Literal["schema", "grounded"]
SPEAKER = "user"  # what a fact calls the one who speaks of himself
_MOST_TOKENS = 6000  # of a text that is read
_MOST_SENTENCES = 50  # of a text that is read sentence by sentence
_MOST_PART = 200  # characters of a subject, relation or object
_MOST_RELATION = 60
_SYSTEM = (
    "You note the relations that a text states between people, things, places and values. Each is a subject, a relation and an object: "
    "relation in snake_case, such as works_at or born_in; subject and object as the text names them, in full, never a pronoun; "
    f"{SPEAKER} for whoever says I. confidence tells, from 0 to 1, how plainly the text states it. Note nothing that it does not state, "
    "no questions and no wishes; where it states nothing, the list is empty."
)
_FORM = (
    'Reply as JSON: {"triples": [{"subject": "...", "relation": "...", "object": "...", "confidence": 0.9}]}'
)
_SYSTEM_TIMES = (
    " valid_from and valid_until tell since when and until when it is so, as 2019, 2019-05 or 2019-05-03, where the text states a date; "
    "elsewhere they are empty."
)
_FORM_TIMES = _FORM.replace("0.9}", '0.9, "valid_from": "2019", "valid_until": ""}')


class ExtractedTriple(BaseModel):
    """A relation as a model notes it."""

    subject: str
    relation: str
    object: str
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


class TimedTriple(ExtractedTriple):
    """A relation as a model notes it, with the dates since when and until when it is so, "" where the text states none."""

    valid_from: str = ""
    valid_until: str = ""

    @field_validator("valid_from", "valid_until", mode="before")
    @classmethod
    def _or_none(cls, value: Any) -> Any:
        return "" if value is None else value


class _OfList(BaseModel):
    triples: Sequence[ExtractedTriple]

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, value: Any) -> Any:
        return {"triples": value} if isinstance(value, list) else value


class ExtractedTriples(_OfList):
    """The relations of a text; a bare list is taken too."""

    triples: list[ExtractedTriple]


class TimedTriples(_OfList):
    """The relations of a text with the dates that it states; a bare list is taken too."""

    triples: list[TimedTriple]


@dataclass(frozen=True)
class Extraction:
    """What was taken from a text; what the model wrote that the text does not say, as it may be shown; how many tokens were not read.

    `times` has since when and until when a triple is so, for those of which the text states it: several where it was so again.
    """

    triples: tuple[Triple, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: int = 0
    times: Mapping[Triple, tuple[StatedTimes, ...]] = field(default_factory=dict)


def extract_by_schema(llm: LLM, text: str, *, repairs: int = 1, times: bool = False) -> Extraction:
    """The triples of a text by one call, whose reply follows a schema; a bad one is mended once if `repairs`
    is 1. Raises LLMError.

    With `times` the model is asked for dates too. One that the text does not state is left out; a triple that
    ended then is refused, since it would seem to be so still, and so is one that ends before it begins.
    """
    text = whole(text)
    shown = shorten(text, _MOST_TOKENS)
    asked = f"{fenced(shown, 'a message')}\n{FENCES}\n\nWhich relations does it state?\n"
    system, form, shape = (
        (_SYSTEM + _SYSTEM_TIMES, _FORM_TIMES, TimedTriples) if times else (_SYSTEM, _FORM, ExtractedTriples)
    )
    prompt = Prompt(
        (Message("system", system), Message("user", asked + form)), schema_of(shape), max_tokens=1500
    )
    made = structured(llm, prompt, shape) if repairs else parse(checked_reply(llm, prompt).text, shape)
    kept, refused = dict[Triple, list[StatedTimes]](), list[str]()
    there = frozenset(content_words(shown))
    for each in made.triples:
        subject, relation, object = (
            " ".join(str(whole(part)).split()) for part in (each.subject, each.relation, each.object)
        )
        triple = Triple(subject, relation, object, each.confidence)
        span = _times_of(each, shown) if isinstance(each, TimedTriple) else (None, None)
        if _is_rubbish(triple) or not _is_grounded(triple, there, shown) or span is None:
            refused.append(str(triple)[:_MOST_PART])
        else:
            kept.setdefault(triple, [])
            kept[triple] += [span] * (any(span) and span not in kept[triple])
    stated = {triple: tuple(found) for triple, found in kept.items() if found}
    return Extraction(tuple(kept), tuple(refused), tokens(text) - tokens(shown), stated)


def extract_grounded(llm: LLM, text: str) -> Extraction:
    """The triples of a text by one call a sentence, each kept only if its sentence says it; a model of 1.5B
    can. Raises LLMError.
    """
    pieces = sentences_of_documents([Document("", whole(text))])
    kept, refused = dict[Triple, None](), list[str]()
    for piece in pieces[:_MOST_SENTENCES]:
        reply = checked_reply(llm, Prompt(facts_prompt(str(piece)), max_tokens=120))
        said, invented = grounded_and_not(whole(reply.text), [piece])
        kept.update(dict.fromkeys(triple for triple, _ in said))
        refused += [str(triple) for triple in invented]
    return Extraction(
        tuple(kept), tuple(refused), sum(tokens(piece.text) for piece in pieces[_MOST_SENTENCES:])
    )


def with_origin(triples: Iterable[Triple], **origin: Any) -> list[Triple]:
    """Triples with the turn and the time they are from."""
    return [replace(triple, **origin) for triple in triples]


def _is_rubbish(triple: Triple) -> bool:
    """Whether no reader would call it a fact: a part is empty, a whole text or no text, or it is about one
    thing only.
    """
    parts = triple.identity
    too_long = max(map(len, parts)) > _MOST_PART or len(triple.relation) > _MOST_RELATION
    return (
        not all(parts)
        or too_long
        or "\0" in "".join(parts)
        or triple.subject.casefold() == triple.object.casefold()
    )


def _times_of(triple: TimedTriple, text: str) -> StatedTimes | None:
    """Since when and until when a text says that a triple is so; None where what the model says of its end
    cannot be.
    """
    since, until = stated_time(triple.valid_from, text), stated_time(triple.valid_until, text, end=True)
    if (triple.valid_until.strip() and until is None) or (
        since is not None and until is not None and until <= since
    ):
        return None
    return since, until


def _is_grounded(triple: Triple, there: frozenset[str], text: str) -> bool:
    """Whether a text names both ends; the speaker is always there. A model may put them in other words, so
    one word of each will do.
    """

    def named(part: str) -> bool:
        words = set(content_words(part))
        return bool(words & there) if words else part.casefold() in text.casefold()

    return (triple.subject.casefold() == SPEAKER or named(triple.subject)) and (
        triple.object.casefold() == SPEAKER or named(triple.object)
    )
