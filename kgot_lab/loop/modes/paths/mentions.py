"""The graph written by rule: the sentences of a passage, their title, and the names in them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from operator import mul
from types import MappingProxyType

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.retrieval.entities import EntityFinder
from kgot_lab.retrieval.entity_linking import CAPITALISED_RUN, NameIndex, capitalised_names, normalise_name
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.protocol import Fact, Store
from kgot_lab.text.words import (
    LEADING_STOP_WORDS,
    SentenceRules,
    content_words,
    normalise_nfc,
    text_sentences,
)
from kgot_lab.types import Document, Edge, Node, Triple

_MAX_NAMES = 8  # names of a sentence
_NONE: Mapping[str, str] = MappingProxyType({})
# not "of": University of Jena is one name
_NAME_SEPARATOR = re.compile(r"(?<=\S)\s+(?:and|in|on)\s+(?:the\s+)?")
_TRAILING_YEAR = re.compile(r"(?:\s+(?:in|on)\s+(?:the\s+)?\d+)+$")
_ROUND_BRACKETS = str.maketrans("[]", "()")
_MAX_NAME_LENGTH = 60  # characters of a name


@dataclass(frozen=True)
class GraphSentence:
    """A sentence in the graph: its node, its title, its text, its document, and its index there (0 first)."""

    place: str
    title: str
    text: str
    source: str
    number: int

    def __str__(self) -> str:
        return titled_line(self.title, self.text)


def titled_line(title: str, text: str) -> str:
    """Format a title and a text as one prompt line, "[title] text".

    Square brackets in the title become round and line breaks become spaces, so that a title cannot end or
    break the line and a text cannot begin one.
    """
    plain = " ".join(title.split()).translate(_ROUND_BRACKETS)
    return f"[{plain}] {' '.join(text.split())}"


def passage_title(document: Document) -> str:
    """Return the name of a passage in the graph: its title, or its id if it has none."""
    return " ".join(document.title.split()) or document.id


def new_sentences(
    documents: Iterable[Document], store: Store | None, rules: SentenceRules = "any script"
) -> list[GraphSentence]:
    """Split passages into sentences and return those that the graph does not hold yet.

    Each has the node it will get.
    """
    last_number: dict[str, int] = {}
    known: dict[str, set[Support]] = {}
    new: list[GraphSentence] = []
    for document in documents:
        title = passage_title(document)
        if title not in known:
            edges = sentence_edges(title, store) if store else ()
            known[title] = {support for edge in edges for support in supports_of(edge.properties)}
            # some before it may have been retracted
            last_number[title] = max((_sentence_number(edge.target) for edge in edges), default=0)
        for number, text in enumerate(text_sentences(document.text, rules, paragraphs=True)):
            if text and Support(document.id, text) not in known[title]:
                known[title].add(Support(document.id, text))
                last_number[title] += 1
                node = sentence_node(title, last_number[title])
                new.append(GraphSentence(node, title, text, document.id, number))
    return new


def sentence_node(title: str, number: int) -> str:
    """Return the node id of a sentence under a title. Numbers begin at 1, in the order of insertion."""
    return f"{title} §{number}"


def node_title(node: str) -> str:
    """Return the title of a sentence node, or the node itself if it is not a sentence."""
    return node.rpartition(" §")[0] if is_sentence_node(node) else node


def is_sentence_node(node: str) -> bool:
    """Return whether a node stands for a sentence under a title."""
    return bool(_sentence_number(node))


def _sentence_number(node: str) -> int:
    _, sign, number = node.rpartition(" §")
    return int(number) if sign and number.isdecimal() else 0


def sentence_edges(title: str, store: Store) -> tuple[Edge, ...]:
    """Return the edges from a title to its sentences, in the order of their numbers."""
    edges = (edge for edge in store.neighbours(title) if edge.type == SAYS_SENTENCE and edge.source == title)
    return tuple(sorted(edges, key=lambda edge: (len(edge.target), edge.target)))


def mention_facts(
    sentences: Iterable[GraphSentence],
    titles: Sequence[str],
    near: Mapping[str, str] = _NONE,
    *,
    finder: EntityFinder | None = None,
    runs: bool = True,
    parts: bool = True,
    own_title: bool = False,
) -> list[Fact]:
    """Return the facts of some sentences: a title says a sentence, and a sentence mentions names.

    `titles` are names to look for. A name is another title that occurs in the sentence, an entity that
    `finder` finds in it, or, without one and with `runs`, a sequence of capitalised words. A name that matches
    a title is replaced by that title. With `parts`, a sequence is also split at "in", "on" and "and", and a
    year after it is dropped. With `own_title`, an entity may be the title of the sentence itself. `near` maps
    the node of a sentence to a title that it is taken to mention implicitly.
    """
    title_index = NameIndex(Document(title, "", title) for title in dict.fromkeys(titles))
    facts: list[Fact] = []
    for sentence in sentences:
        support = support_properties([Support(sentence.source, sentence.text)])
        facts.append((Triple(sentence.title, SAYS_SENTENCE, sentence.place), support))
        entities = finder.find(sentence.text) if finder else None
        found_names = dict.fromkeys(_find_names(sentence.text, title_index, runs, parts, entities))
        is_own_entity = own_title and sentence.title in (entities or ())
        own = {sentence.place, "" if is_own_entity else sentence.title}
        names = [name for name in found_names if name not in own][:_MAX_NAMES]
        names += [name for name in [near.get(sentence.place, "")] if name and name not in names]
        facts += [(Triple(sentence.place, MENTIONS_NAME, name), support) for name in names]
    return facts


DOCUMENT, SENTENCE, ENTITY = "Document", "Sentence", "Entity"
RECALLED = "Recalled"  # label of a name whose sentences were recalled for the question


def typed_nodes(
    facts: Iterable[Fact], documents: Iterable[str], aliases: Mapping[str, Sequence[str]]
) -> list[Node]:
    """Return the nodes of `mention_facts` with their labels: Document, Sentence or Entity.

    `documents` are the titles. An entity that was spelled in several ways has the other spellings as `aliases`.
    """
    labels: dict[str, str] = {}
    for triple, _ in facts:
        ends = (DOCUMENT, SENTENCE) if triple.relation == SAYS_SENTENCE else (SENTENCE, ENTITY)
        for id, label in zip((triple.subject, triple.object), ends, strict=True):
            labels.setdefault(id, label)
    labels |= dict.fromkeys(labels.keys() & set(documents), DOCUMENT)
    return [
        Node(id, (label,), {"aliases": list(aliases[id])} if id in aliases else {})
        for id, label in labels.items()
    ]


def _find_names(
    text: str, titles: NameIndex, runs: bool, parts: bool, entities: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield the names in a sentence.

    Titles come first, as they are spelled, then sequences of capitalised words that are not titles, then the
    parts of those.
    """
    mentioned = titles.find_names(text)
    for name in mentioned:
        yield from titles[name]
    for entity in entities or ():
        yield from _resolve_name(entity, titles, mentioned, least=1)
    runs = runs and entities is None
    parts_found: list[str] = []
    for run in CAPITALISED_RUN.finditer(normalise_nfc(text)) if runs else ():
        name = _without_opener(run.group())
        if parts and not titles[normalise_name(name)]:
            name = _TRAILING_YEAR.sub("", name)
            joined = _NAME_SEPARATOR.split(name)
            parts_found += map(_without_opener, joined if len(joined) > 1 else ())
        yield from _resolve_name(name, titles, mentioned)
    for part in parts_found:
        if not part.isdigit():
            yield from _resolve_name(part, titles, mentioned)


def _without_opener(run: str) -> str:
    """Strip a common opening word, a possessive and trailing punctuation from a sequence of capitalised
    words.
    """
    words = run.removesuffix("'s").removesuffix("’s").rstrip(".,'’").split()
    return " ".join(dropwhile(lambda word: normalise_name(word) in LEADING_STOP_WORDS, words))


def _resolve_name(name: str, titles: NameIndex, mentioned: Sequence[str], least: int = 3) -> Iterator[str]:
    """Yield a name as the graph spells it.

    These are the titles with that name, or else the name itself if it is long enough and not part of a title
    in `mentioned`.
    """
    key = normalise_name(name)
    is_part = any(f" {key} " in f" {title} " for title in mentioned)
    if titles[key]:
        yield from titles[key]
    elif key and least <= len(name) <= _MAX_NAME_LENGTH and not is_part:
        yield name


def group_by_passage(sentences: Iterable[GraphSentence]) -> Mapping[str, list[GraphSentence]]:
    """Group sentences by their document, in order."""
    groups: dict[str, list[GraphSentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.source, []).append(sentence)
    return groups


# Implicit mentions: links from a sentence to the passage with the most similar sentence.

MIN_COSINE = 0.6  # the least cosine of two sentences that are linked


def similar_titles(
    new: Sequence[GraphSentence], known_sentences: Iterable[GraphSentence], embedder: Embedder | None
) -> dict[str, str]:
    """Map the node of each new sentence to the other title with the most similar sentence.

    Similarity is the cosine, and must be at least MIN_COSINE. Returns an empty dict without an embedder.
    """
    if embedder is None or not new:
        return {}
    new_places = {sentence.place for sentence in new}
    candidates = [*new, *(s for s in known_sentences if s.place not in new_places)]
    vectors = embedder.embed([sentence.text for sentence in candidates])
    cosines = vectors[: len(new)] @ vectors.T
    titles = np.array([sentence.title for sentence in candidates])
    cosines[titles[: len(new), None] == titles[None, :]] = -1.0
    best = cosines.argmax(axis=1)
    return {
        sentence.place: str(titles[place])
        for row, (sentence, place) in enumerate(zip(new, best, strict=True))
        if cosines[row, place] >= MIN_COSINE
    }


# Relevance of a sentence to a question, by its similarity and the names in it.

# Fitted by logistic regression on the dev questions of the three bundled sets: does a sentence of a
# relevant passage contain the answer? The code that fitted them is at commit f449c983.
FEATURE_WEIGHTS = {"near": -1.64, "asked": 3.07, "early": 1.86, "dated": 0.69, "naming": 0.89, "named": -1.10}
# weights of a sentence and of its passage, which counts 1 / its rank in the search results
SENTENCE_WEIGHT, PASSAGE_WEIGHT = (0.25, 4.5)
_ASKS_NUMBER = re.compile(r"\bwhen\b|\byear\b|\bdate\b|\bhow (?:many|much|old|long)\b|\bnumber\b", re.I)
_NAME_START = re.compile(r"[\"'“(]*[^\W\d_a-z]|[\"'“(]*\d")


def remove_names(question: str) -> str:
    """Remove the names from a question.

    Words that begin with a capital or a digit are removed, except for the first word.
    """
    words = question.split()
    return " ".join(word for number, word in enumerate(words) if number == 0 or not _NAME_START.match(word))


def relevance_scores(
    question: str, sentences: Sequence[GraphSentence], embedder: Embedder | None
) -> dict[str, float]:
    """Return the relevance score of each sentence by its node, independent of the rank of its passage.

    The score is the sum of its features, weighted by WORTHS.
    """
    weights = FEATURE_WEIGHTS.values()
    features = relevance_features(question, sentences, embedder)
    return {s.place: sum(map(mul, weights, values)) for s, values in zip(sentences, features, strict=True)}


def relevance_features(
    question: str, sentences: Sequence[GraphSentence], embedder: Embedder | None
) -> list[tuple[float, ...]]:
    """Return the relevance features of each sentence, in the order of WORTHS.

    near: the cosine of the question with title and sentence. asked: the cosine of the question without names
    with the sentence. early: 1 / (1 + its index in its passage). dated: whether the question asks for a date
    or number and the sentence has a digit. naming: whether it has a name that is in neither question nor
    title. named: whether the question contains its title. Without an embedder, cosines are those of sets of
    content words.
    """
    if not sentences:
        return []
    full = _cosines(question, [f"{sentence.title}. {sentence.text}" for sentence in sentences], embedder)
    nameless = _cosines(remove_names(question), [sentence.text for sentence in sentences], embedder)
    question_text, asks_number = f" {normalise_name(question)} ", bool(_ASKS_NUMBER.search(question))
    features = list[tuple[float, ...]]()
    for row, each in enumerate(sentences):
        title, names = normalise_name(each.title), capitalised_names(each.text)
        is_dated = asks_number and any(map(str.isdigit, each.text))
        is_naming = any(f" {name} " not in question_text and name not in title for name in names)
        flags = float(is_dated), float(is_naming), float(f" {title} " in question_text)
        features.append((full[row], nameless[row], 1 / (1 + each.number), *flags))
    return features


def _cosines(query: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """Return the cosine of each text with `query`, of vectors or else of sets of content words."""
    if embedder is not None:
        vectors = embedder.embed([query, *texts])
        return [float(value) for value in vectors[1:] @ vectors[0]]
    query_words, text_words = set(content_words(query)), [set(content_words(text)) for text in texts]
    return [
        len(query_words & words) / math.sqrt(len(query_words) * len(words)) if query_words and words else 0.0
        for words in text_words
    ]
