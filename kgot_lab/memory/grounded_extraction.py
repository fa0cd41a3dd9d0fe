"""Facts read from text sentence by sentence, and kept only where the sentence says them: a form that a small
model can write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgot_lab.graph.changes import Support, note, supports_of
from kgot_lab.stores.protocol import Fact, Store
from kgot_lab.text.words import SentenceRules, content_words, sentences
from kgot_lab.types import Document, Message, Triple

_LONGEST = 300  # characters of a fact; what is longer is a sentence that was copied
EXTRACT = (
    "You turn a sentence into knowledge graph facts, one a line: subject | relation | object. The title in brackets says what the sentence "
    "is about: write full names, never he, she or it. Relations and objects are short. Only what the sentence says."
)
EXAMPLES = (
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
    """A sentence and the document it stands in."""

    text: str
    title: str
    source: str
    place: int  # 0 for the first of its document

    def __str__(self) -> str:
        return f"[{self.title}] {self.text}" if self.title else self.text


def sentences_of_documents(
    documents: Iterable[Document], rules: SentenceRules = "careful"
) -> list[SourcedSentence]:
    """The sentences of some documents, with the document each stands in."""
    return [
        SourcedSentence(text, document.title, document.id, place)
        for document in documents
        for place, text in enumerate(sentences(" ".join(document.text.split()), rules))
    ]


def facts_prompt(sentence: str) -> tuple[Message, ...]:
    """Ask for the facts of one sentence, a triple a line; the examples are earlier turns of the conversation."""
    earlier = [
        message
        for said, facts in EXAMPLES
        for message in (Message("user", said), Message("assistant", facts))
    ]
    return Message("system", EXTRACT), *earlier, Message("user", sentence)


def read_triples(text: str) -> list[Triple]:
    """The triples in lines `subject | relation | object`; other lines, such as one that was cut short, are
    passed over.
    """
    lines = [[" ".join(part.split()) for part in line.split("|")] for line in text.splitlines()]
    whole = (parts for parts in lines if len(parts) == 3 and all(parts) and sum(map(len, parts)) <= _LONGEST)
    return list(dict.fromkeys(Triple(subject, relation, object) for subject, relation, object in whole))


def grounded_and_not(
    text: str, shown: Sequence[SourcedSentence]
) -> tuple[list[tuple[Triple, SourcedSentence]], list[Triple]]:
    """The triples of a reply with the first of the sentences that says each, and those that none of them
    says.
    """
    grounded: list[tuple[Triple, SourcedSentence]] = []
    invented: list[Triple] = []
    for triple in read_triples(text):
        piece = next((piece for piece in shown if is_grounded_in(piece, triple)), None)
        if piece is None:
            invented.append(triple)
        else:
            grounded.append((triple, piece))
    return grounded, invented


def is_grounded_in(piece: SourcedSentence, triple: Triple) -> bool:
    """Whether a triple is grounded: every word of its object and one of its subject stand in the sentence or
    its title, and they differ.
    """
    there = set(content_words(str(piece)))
    named = set(content_words(triple.object)) or {triple.object.lower()}
    about = set(content_words(triple.subject))
    if triple.subject.lower() == triple.object.lower() or (about and not about & there):
        return False
    return named <= there | {triple.object.lower()} and bool(named & there)


def grounded_facts(grounded: Iterable[tuple[Triple, SourcedSentence]], store: Store) -> list[Fact]:
    """Triples, each once, with every sentence and document that says it: those the store has noted before,
    then the new ones.
    """
    supports: dict[Triple, list[Support]] = {}
    for triple, piece in grounded:
        supports.setdefault(triple, []).append(Support(piece.source, piece.text))
    return [(triple, note((*_existing_supports(triple, store), *new))) for triple, new in supports.items()]


def _existing_supports(triple: Triple, store: Store) -> tuple[Support, ...]:
    """The supports of a fact that the store already holds."""
    same = (
        edge
        for edge in store.neighbours(triple.subject)
        if (edge.source, edge.type, edge.target) == triple.identity
    )
    return tuple(support for edge in same for support in supports_of(edge.properties))
