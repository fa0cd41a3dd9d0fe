"""Extract triples from a text with a language model, in one of two ways.

Parts of the reply that were refused are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from kgot_lab.errors import short_repr
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.llm.structured import checked_reply, compact_schema, parse, structured
from kgot_lab.stores.protocol import Fact, Store
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, replace_surrogates, truncate_to_tokens
from kgot_lab.text.words import SentenceRules, content_words, text_sentences
from kgot_lab.types import LLM, Document, Message, Prompt, Triple

# Facts extracted sentence by sentence, and kept only if the sentence states them: a format that a small model
# can write.

_MAX_FACT_LENGTH = 300  # characters of a fact; longer ones are copied sentences
EXTRACTION_SYSTEM = (
    "You turn a sentence into knowledge graph facts, one a line: subject | relation | object. The title in brackets says what the sentence "
    "is about: write full names, never he, she or it. Relations and objects are short. Only what the sentence says."
)
EXTRACTION_EXAMPLES = (
    (
        "[Ada Lovelace] Ada Lovelace (born 1815) was an English mathematician and writer.",
        "Ada Lovelace | born in | 1815\nAda Lovelace | is a | English mathematician\nAda Lovelace | is a | English writer",
    ),
    (
        "[Ada Lovelace] She worked with Charles Babbage, who designed the Analytical Engine.",
        "Ada Lovelace | worked with | Charles Babbage\nCharles Babbage | designed | Analytical Engine",
    ),
)


@dataclass(frozen=True)
class SourcedSentence:
    """A sentence and its document."""

    text: str
    title: str
    source: str
    place: int  # 0 for the first of its document

    def __str__(self) -> str:
        return f"[{self.title}] {self.text}" if self.title else self.text


def sentences_of_documents(
    documents: Iterable[Document], rules: SentenceRules = "careful"
) -> list[SourcedSentence]:
    """Split documents into sentences, each with its document."""
    return [
        SourcedSentence(text, document.title, document.id, index)
        for document in documents
        for index, text in enumerate(text_sentences(document.text, rules))
    ]


def facts_prompt(sentence: str) -> tuple[Message, ...]:
    """Build the prompt for the facts of one sentence, one triple per line.

    The examples are earlier turns of the conversation.
    """
    messages = [Message("system", EXTRACTION_SYSTEM)]
    for example, facts in EXTRACTION_EXAMPLES:
        messages += (Message("user", example), Message("assistant", facts))
    return *messages, Message("user", sentence)


def parse_triples(text: str) -> list[Triple]:
    """Parse triples from lines `subject | relation | object`.

    Other lines, such as a truncated one, are skipped.
    """
    lines = [[" ".join(part.split()) for part in line.split("|")] for line in text.splitlines()]
    complete = (parts for parts in lines if len(parts) == 3 and all(parts))
    short = (parts for parts in complete if sum(map(len, parts)) <= _MAX_FACT_LENGTH)
    return list(dict.fromkeys(Triple(subject, relation, object) for subject, relation, object in short))


def split_grounded(
    text: str, sentences: Sequence[SourcedSentence]
) -> tuple[list[tuple[Triple, SourcedSentence]], list[Triple]]:
    """Split the triples of a reply into grounded ones and the rest.

    Each grounded triple comes with the first sentence that states it.
    """
    grounded: list[tuple[Triple, SourcedSentence]] = []
    invented: list[Triple] = []
    for triple in parse_triples(text):
        sentence = next((sentence for sentence in sentences if is_grounded_in(sentence, triple)), None)
        if sentence is None:
            invented.append(triple)
        else:
            grounded.append((triple, sentence))
    return grounded, invented


def is_grounded_in(sentence: SourcedSentence, triple: Triple) -> bool:
    """Return whether a triple is grounded in a sentence and its title.

    Every word of its object and at least one of its subject must occur there, and the two must differ.
    """
    sentence_words = set(content_words(str(sentence)))
    object_words = set(content_words(triple.object)) or {triple.object.lower()}
    subject_words = set(content_words(triple.subject))
    if triple.subject.lower() == triple.object.lower():
        return False
    if subject_words and not subject_words & sentence_words:
        return False
    return object_words <= sentence_words | {triple.object.lower()} and bool(object_words & sentence_words)


def grounded_facts(grounded: Iterable[tuple[Triple, SourcedSentence]], store: Store) -> list[Fact]:
    """Merge grounded triples into facts, each with every sentence and document that states it.

    The supports that the store already has come first.
    """
    supports: dict[Triple, list[Support]] = {}
    for triple, sentence in grounded:
        supports.setdefault(triple, []).append(Support(sentence.source, sentence.text))
    facts = ((triple, (*_existing_supports(triple, store), *new)) for triple, new in supports.items())
    return [(triple, support_properties(merged)) for triple, merged in facts]


def _existing_supports(triple: Triple, store: Store) -> tuple[Support, ...]:
    """Return the supports of a fact that the store already has."""
    edges = store.neighbours(triple.subject)
    same = (edge for edge in edges if (edge.source, edge.type, edge.target) == triple.identity)
    return tuple(support for edge in same for support in supports_of(edge.properties))


ExtractionMode = Literal["schema", "grounded"]
SPEAKER = "user"  # how a fact names the speaker
_MAX_TOKENS = 6000  # of a text that is read
_MAX_SENTENCES = 50  # of a text that is read sentence by sentence
_MAX_PART_LENGTH = 200  # characters of a subject, relation or object
_MAX_RELATION_LENGTH = 60
_UNKNOWN_CONFIDENCE = 0.5  # of a triple whose confidence is none: it waits for review
_SCHEMA_SYSTEM = (
    "You note the relations that a text states between people, things, places and values. Each is a subject, a relation and an object: "
    "relation in snake_case, such as works_at or born_in; subject and object as the text names them, in full, never a pronoun; "
    f"{SPEAKER} for whoever says I. confidence tells, from 0 to 1, how plainly the text states it. Note nothing that it does not state, "
    "no questions and no wishes; where it states nothing, the list is empty."
)
_REPLY_FORMAT = (
    'Reply as JSON: {"triples": [{"subject": "...", "relation": "...", "object": "...", "confidence": 0.9}]}'
)


class ExtractedTriple(BaseModel):
    """A relation as a model notes it."""

    subject: str
    relation: str
    object: str
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


class ExtractedTriples(BaseModel):
    """The relations of a text; a bare list is taken too. Each stands alone: a malformed one loses no other."""

    triples: list[ExtractedTriple]

    @field_validator("triples", mode="wrap")
    @classmethod
    def _one_by_one(cls, items: Any, read: Callable[[Any], list[ExtractedTriple]]) -> list[ExtractedTriple]:
        if not isinstance(items, list) or not items:
            return read(items)
        triples: list[ExtractedTriple] = []
        for item in items:
            try:
                triples += read([item])
            except ValidationError as error:
                if isinstance(item, dict) and all(
                    each["loc"][1:] == ("confidence",) for each in error.errors()
                ):
                    triples += read([item | {"confidence": _UNKNOWN_CONFIDENCE}])
                elif len(items) == 1:
                    raise
                else:  # without a subject, which is refused later
                    triples.append(
                        ExtractedTriple(subject="", relation="", object=short_repr(item), confidence=0)
                    )
        return triples

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, value: Any) -> Any:
        return {"triples": value} if isinstance(value, list) else value


@dataclass(frozen=True)
class Extraction:
    """The triples of a text, the refused parts of the model's reply, and the number of tokens that were not
    read.

    Refused parts are those that the text does not state, in a form that can be shown.
    """

    triples: tuple[Triple, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: int = 0


def extract_by_schema(llm: LLM, text: str, *, repairs: int = 1) -> Extraction:
    """Extract the triples of a text with one call, whose reply follows a schema.

    An invalid reply is repaired once if `repairs` is 1. Raises LLMError if the model fails.
    """
    text = replace_surrogates(text)
    excerpt = truncate_to_tokens(text, _MAX_TOKENS)
    question = (
        f"{fence_text(excerpt, 'a message')}\n{FENCES}\n\nWhich relations does it state?\n{_REPLY_FORMAT}"
    )
    messages = Message("system", _SCHEMA_SYSTEM), Message("user", question)
    prompt = Prompt(messages, compact_schema(ExtractedTriples), max_tokens=1500)
    reply = (
        structured(llm, prompt, ExtractedTriples)
        if repairs
        else parse(checked_reply(llm, prompt).text, ExtractedTriples)
    )
    accepted, refused = dict[Triple, None](), list[str]()
    text_words = frozenset(content_words(excerpt))
    for extracted in reply.triples:
        parts = extracted.subject, extracted.relation, extracted.object
        subject, relation, object = (" ".join(str(replace_surrogates(part)).split()) for part in parts)
        if not (subject and relation and object):
            refused.append(" | ".join((subject, relation, object))[:_MAX_PART_LENGTH])
            continue
        triple = Triple(subject, relation, object, extracted.confidence)
        if _is_malformed(triple) or not _is_grounded(triple, text_words, excerpt):
            refused.append(str(triple)[:_MAX_PART_LENGTH])
        else:
            accepted.setdefault(triple)
    left_out = estimate_tokens(text) - estimate_tokens(excerpt)
    return Extraction(tuple(accepted), tuple(refused), left_out)


def extract_grounded(llm: LLM, text: str) -> Extraction:
    """Extract the triples of a text with one call per sentence, keeping those that the sentence states.

    A model of 1.5B parameters is sufficient. Raises LLMError if it fails.
    """
    sentences_read = sentences_of_documents([Document("", replace_surrogates(text))])
    accepted, refused = dict[Triple, None](), list[str]()
    for sentence in sentences_read[:_MAX_SENTENCES]:
        reply = checked_reply(llm, Prompt(facts_prompt(str(sentence)), max_tokens=120))
        grounded, invented = split_grounded(replace_surrogates(reply.text), [sentence])
        accepted.update(dict.fromkeys(triple for triple, _ in grounded))
        refused += [str(triple) for triple in invented]
    left_out = sum(estimate_tokens(sentence.text) for sentence in sentences_read[_MAX_SENTENCES:])
    return Extraction(tuple(accepted), tuple(refused), left_out)


def _is_malformed(triple: Triple) -> bool:
    """Return whether a triple is obviously no fact.

    A part is too long or not a text, or both ends are the same.
    """
    parts = triple.identity
    too_long = max(map(len, parts)) > _MAX_PART_LENGTH or len(triple.relation) > _MAX_RELATION_LENGTH
    same_ends = triple.subject.casefold() == triple.object.casefold()
    return too_long or "\0" in "".join(parts) or same_ends


def _is_grounded(triple: Triple, text_words: frozenset[str], text: str) -> bool:
    """Return whether a text names both ends of a triple.

    The speaker is always named. One word of each end suffices, since a model may rephrase them.
    """

    def is_named(part: str) -> bool:
        words = set(content_words(part))
        named = bool(words & text_words) if words else part.casefold() in text.casefold()
        return named or part.casefold() == SPEAKER

    return is_named(triple.subject) and is_named(triple.object)
