"""Extract triples from a text with a language model, in one of two ways, with the times it states.

Parts of the reply that were refused are reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require, require_known, short_repr
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.llm import check_spec, connect
from kgot_lab.llm.adapters import as_model
from kgot_lab.llm.structured import checked_reply, compact_schema, parse, structured
from kgot_lab.stores.protocol import Fact, Store
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, replace_surrogates, truncate_to_tokens
from kgot_lab.text.words import SentenceRules, content_words, name_tokens, text_sentences
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


# Times that a text states: a year, month or day that occurs in it, and none that a model invented.

# since when, and until when (excluded); None where the text does not say
StatedTimes = tuple[datetime | None, datetime | None]
_DATE_PATTERN = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_MONTHS = "january february march april may june july august september october november december".split()


def parse_stated_time(date_text: str, text: str, *, end: bool = False) -> datetime | None:
    """Return the time at which a date such as 2019, 2019-05 or 2019-05-03 begins, or ends if `end`, in UTC.

    None if the text does not name its year. A month or a day that the text does not name is ignored:
    2019-07-01 with a text that says "2019" is the year.
    """
    date = _DATE_PATTERN.match(date_text)
    numbers = {int(digits) for digits in re.findall(r"[0-9]{1,4}", text)}
    if date is None or int(date[1]) not in numbers:
        return None
    year, month, day = (int(part or 0) for part in date.groups())
    if not _names_month(month, numbers, text):
        month = day = 0
    if day not in numbers:
        day = 0
    try:
        begins = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if not end:
            return begins
        if day:
            return begins + timedelta(days=1)
        return datetime(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _names_month(month: int, numbers: set[int], text: str) -> bool:
    if not 1 <= month <= 12:
        return False
    name = _MONTHS[month - 1]
    return month in numbers or not {name, name[:3]}.isdisjoint(name_tokens(text.casefold()))


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
_SYSTEM_WITH_TIMES = (
    " valid_from and valid_until tell since when and until when it is so, as 2019, 2019-05 or 2019-05-03, where the text states a date; "
    "elsewhere they are empty."
)
_REPLY_FORMAT_WITH_TIMES = _REPLY_FORMAT.replace("0.9}", '0.9, "valid_from": "2019", "valid_until": ""}')


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
    """Triples of a reply, a bare list too. Each stands alone: a malformed one loses no other."""

    triples: Sequence[ExtractedTriple]

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


class ExtractedTriples(_OfList):
    """The relations of a text; a bare list is taken too."""

    triples: list[ExtractedTriple]


class TimedTriples(_OfList):
    """The relations of a text with the dates that it states; a bare list is taken too."""

    triples: list[TimedTriple]


@dataclass(frozen=True)
class Extraction:
    """The triples of a text, the refused parts of the model's reply, and the number of tokens that were not
    read.

    Refused parts are those that the text does not state, in a form that can be shown. `times` has the periods
    in which a triple is true, for triples whose period the text states.
    """

    triples: tuple[Triple, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: int = 0
    times: Mapping[Triple, tuple[StatedTimes, ...]] = field(default_factory=dict)


def extract_by_schema(llm: LLM, text: str, *, repairs: int = 1, times: bool = False) -> Extraction:
    """Extract the triples of a text with one call, whose reply follows a schema.

    An invalid reply is repaired once if `repairs` is 1. With `times` the model is asked for dates too. A date
    that the text does not state is left out. A triple with such an end is refused, since it would seem to be
    still true, and so is one that ends before it begins. Raises LLMError if the model fails.
    """
    text = replace_surrogates(text)
    excerpt = truncate_to_tokens(text, _MAX_TOKENS)
    question = f"{fence_text(excerpt, 'a message')}\n{FENCES}\n\nWhich relations does it state?\n"
    system, reply_format, reply_model = (
        (_SCHEMA_SYSTEM + _SYSTEM_WITH_TIMES, _REPLY_FORMAT_WITH_TIMES, TimedTriples)
        if times
        else (_SCHEMA_SYSTEM, _REPLY_FORMAT, ExtractedTriples)
    )
    messages = Message("system", system), Message("user", question + reply_format)
    prompt = Prompt(messages, compact_schema(reply_model), max_tokens=1500)
    reply = (
        structured(llm, prompt, reply_model)
        if repairs
        else parse(checked_reply(llm, prompt).text, reply_model)
    )
    accepted, refused = dict[Triple, list[StatedTimes]](), list[str]()
    text_words = frozenset(content_words(excerpt))
    for extracted in reply.triples:
        parts = extracted.subject, extracted.relation, extracted.object
        subject, relation, object = (" ".join(str(replace_surrogates(part)).split()) for part in parts)
        if not (subject and relation and object):
            refused.append(" | ".join((subject, relation, object))[:_MAX_PART_LENGTH])
            continue
        triple = Triple(subject, relation, object, extracted.confidence)
        period = _stated_period(extracted, excerpt) if isinstance(extracted, TimedTriple) else (None, None)
        if _is_malformed(triple) or not _is_grounded(triple, text_words, excerpt) or period is None:
            refused.append(str(triple)[:_MAX_PART_LENGTH])
        else:
            accepted.setdefault(triple, [])
            accepted[triple] += [period] if any(period) and period not in accepted[triple] else []
    stated_times = {triple: tuple(periods) for triple, periods in accepted.items() if periods}
    left_out = estimate_tokens(text) - estimate_tokens(excerpt)
    return Extraction(tuple(accepted), tuple(refused), left_out, stated_times)


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


def _stated_period(triple: TimedTriple, text: str) -> StatedTimes | None:
    """Return the period in which a text says that a triple is true.

    None if the end that the model gives is impossible.
    """
    since = parse_stated_time(triple.valid_from, text)
    until = parse_stated_time(triple.valid_until, text, end=True)
    if triple.valid_until.strip() and until is None:
        return None
    if since is not None and until is not None and until <= since:
        return None
    return since, until


def _is_grounded(triple: Triple, text_words: frozenset[str], text: str) -> bool:
    """Return whether a text names both ends of a triple.

    The speaker is always named. One word of each end suffices, since a model may rephrase them.
    """

    def is_named(part: str) -> bool:
        words = set(content_words(part))
        named = bool(words & text_words) if words else part.casefold() in text.casefold()
        return named or part.casefold() == SPEAKER

    return is_named(triple.subject) and is_named(triple.object)


# A model that extracts triples from texts for a memory, in one of two ways, and the aliases of relations.


class Extractor:
    """Extracts triples from texts with a model.

    The model is `extraction_model`, which may be a name for `connect`, or else `provider`. Without both
    nothing is extracted. "schema" is one call per text, "grounded" one per sentence. `aliases` renames
    relations. Raises BadInput.
    """

    def __init__(
        self,
        provider: LLM | None = None,
        extraction_model: str | LLM | None = None,
        extraction: ExtractionMode = "schema",
        aliases: Mapping[str, str] | None = None,
    ):
        for name, model in (("provider", provider), ("extraction_model", extraction_model)):
            if model is not None and not isinstance(model, str):
                as_model(model, name)
        if isinstance(provider, str):
            remedy = f"give connect({provider!r}), or the name as extraction_model"
            raise BadInput(f"provider is a model: {remedy}")
        if isinstance(extraction_model, str):
            check_spec(extraction_model)
        require_known("extraction", get_args(ExtractionMode), extraction)
        self.extraction, self.aliases = extraction, _check_aliases(aliases)
        self._named = extraction_model if extraction_model is not None else provider
        self._model: LLM | None = None

    def extract(self, text: str, *, repairs: int = 1, times: bool = False) -> Extraction:
        """Extract triples from a text with the model, with the parts of its reply that were refused.

        An invalid reply is repaired once if `repairs` is 1. With `times` a call by schema asks for dates too.
        """
        require(text, str, "what triples are taken from is a text")
        llm = self._extraction_model()
        if llm is None or not text.strip():
            return Extraction()
        extraction = (
            extract_grounded(llm, text)
            if self.extraction == "grounded"
            else extract_by_schema(llm, text, repairs=repairs, times=times)
        )
        renamed_times = {self.rename_relation(triple): times for triple, times in extraction.times.items()}
        renamed = tuple(dict.fromkeys(map(self.rename_relation, extraction.triples)))
        return replace(extraction, triples=renamed, times=renamed_times)

    def rename_relation(self, triple: Triple) -> Triple:
        """Return a triple with its relation renamed by `aliases`."""
        require(triple, Triple, "a memory keeps Triple(subject, relation, object)")
        relation = self.aliases.get(triple.relation)
        return triple if relation is None else replace(triple, relation=relation)

    def _extraction_model(self) -> LLM | None:
        if self._model is None:
            self._model = None if self._named is None else connect(self._named)
        return self._model


@check_arguments
def _check_aliases(aliases: Mapping[str, str] | None) -> dict[str, str]:
    if aliases is None:
        return {}
    if not all(isinstance(text, str) and text.strip() for pair in aliases.items() for text in pair):
        raise BadInput('aliases rename relations, such as {"headquartered_in": "located_in"}')
    if chains := sorted(set(aliases.values()) & set(aliases)):
        raise BadInput(f"aliases: {chains[0]!r} is a new name and has another itself; give the last one")
    return dict(aliases)
