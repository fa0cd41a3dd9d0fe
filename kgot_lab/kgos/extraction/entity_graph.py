"""The graph of documents, their sentences and the entities in them, with relations between entities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter

from kgot_lab.analogy.linguistic import THING, parse_relations
from kgot_lab.errors import NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, latest_sentence, support_properties
from kgot_lab.loop.modes.paths import mentions
from kgot_lab.retrieval.entities import EntityFinder, column_names, has_caseless, split_row
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.function_words import detect_language, function_words
from kgot_lab.types import Document, Edge, Json, Node, Triple

SCAFFOLD = (mentions.DOCUMENT, mentions.SENTENCE)  # the labels of nodes that are not entities
TOGETHER = "together"  # the relation of two names in a sentence that is not parsed
_MAX_WORDS_BETWEEN = 5
_SIGN = re.compile(r"[^\w\s'’-]|\d{5,}")


def entity_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Build the graph of documents: titles say sentences, sentences mention entities, entities are related.

    See `with_relations`. A title that a sentence mentions is an entity too. An entity that was spelled in several ways has the other spellings as `aliases`.
    """
    documents = list(documents)
    sentences = mentions.new_sentences(documents, None)
    titles = list(dict.fromkeys(map(mentions.passage_title, documents)))
    finder = EntityFinder(_split_by_title((each.title, each.text) for each in sentences), titles)
    facts = mentions.mention_facts(sentences, titles, finder=finder)
    for each in sentences:
        if each.title in finder.find(each.text):
            about = support_properties([Support(each.source, each.text)])
            facts.append((Triple(each.place, MENTIONS_NAME, each.title), about))
    edges = [Edge(t.subject, t.relation, t.object, properties) for t, properties in facts]
    named = set(titles) & set(finder.spellings.values())
    nodes = [
        replace(node, labels=(mentions.ENTITY, *node.labels)) if node.id in named else node
        for node in mentions.typed_nodes(facts, titles, finder.aliases)
    ]
    return with_relations(PropertyGraph.of(nodes, edges))


def _split_by_title(sentences: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the sentences under titles, and "" where another title begins, as a table ends there."""
    for _, group in groupby(sentences, key=itemgetter(0)):
        yield from ("", *(text for _, text in group))


def is_entity_graph(graph: PropertyGraph) -> bool:
    """Return whether a graph has sentences that mention entities."""
    labels = {label for labels in graph.node_labels for label in labels}
    return {mentions.SENTENCE, mentions.ENTITY} <= labels


def with_relations(graph: PropertyGraph) -> PropertyGraph:
    """Add the relations between the entities that a sentence mentions, and the kinds of entities.

    A row of a table relates its key to its cells by the names of the columns. In English the small spaCy
    pipeline, if it is installed, gives the verb between two names and says which are persons, places,
    organisations and dates. In other sentences the words between two names are the relation, or `together` if
    those are too many. Each edge has the sentence. A graph whose entities have kinds is returned as it is.
    """
    if any(mentions.ENTITY in labels[1:] for labels in graph.node_labels):
        return graph
    texts, mentioned, sources = _sentences_of(graph)
    spelled = _spellings(graph)
    relations: dict[tuple[str, str, str], dict[str, Json]] = {}
    properties: dict[str, dict[str, Json]] = defaultdict(dict)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)

    def relate(place: str, source: str, relation: str, target: str) -> None:
        ends = spelled.get(source, source), spelled.get(target, target)
        if ends[0] != ends[1] and relation:
            about = {"source": sources[place], "sentence": texts[place]}
            relations.setdefault((ends[0], relation, ends[1]), about)

    columns = column_names(
        _split_by_title((mentions.node_title(place), text) for place, text in texts.items())
    )
    prose: dict[str, list[str]] = {}
    things: dict[str, list[str]] = {}
    for place, text in texts.items():
        row = split_row(text, columns)
        if row is None:
            prose[place] = _names_in(text, mentioned[place], graph)
            continue
        key, cells = row
        for column, value in cells:
            names = [name for name in _names_in(value, mentioned[place], graph) if name != key]
            for name in names:
                relate(place, key, column or "has", name)
            if column and not names and key in mentioned[place]:
                properties[spelled.get(key, key)].setdefault(column, value)
    language = detect_language(texts.values())
    english = {p: names for p, names in prose.items() if _is_english(texts[p], language)}
    try:
        parsed = parse_relations([(texts[place], names) for place, names in english.items()])
    except NotInstalled:
        english, parsed = {}, []
    for place, found in zip(english, parsed, strict=True):
        for source, relation, target in found.relations:
            relate(place, source, relation, target)
        for name, kind in found.kinds.items():
            kinds[spelled.get(name, name)][kind] += 1
            if kind == THING:
                things.setdefault(name, []).append(place)
    for place, names in prose.items():
        if place not in english:
            for source, relation, target in _relations_between(texts[place], names):
                relate(place, source, relation, target)
    nodes = {node.id: _with_kind(node, kinds, properties[node.id]) for node in graph.nodes}
    new_edges = {edge.identity: edge for edge in graph.edges}
    for thing, places in things.items():
        nodes.setdefault(thing, Node(thing, (THING, mentions.ENTITY)))
        for place in places:
            about = {"source": sources[place], "sentence": texts[place]}
            edge = Edge(place, MENTIONS_NAME, thing, about)
            new_edges.setdefault(edge.identity, edge)
    for ends, about in relations.items():
        edge = Edge(*ends, about)
        if edge.source in nodes and edge.target in nodes:
            new_edges.setdefault(edge.identity, edge)
    return PropertyGraph.of(nodes.values(), new_edges.values())


def _sentences_of(graph: PropertyGraph) -> tuple[dict[str, str], dict[str, list[str]], dict[str, Json]]:
    """Return the text, the mentioned entities and the source of each sentence, by its node."""
    texts: dict[str, str] = {}
    mentioned: dict[str, list[str]] = defaultdict(list)
    sources: dict[str, Json] = {}
    for edge in graph.edges:
        if edge.type == SAYS_SENTENCE and (text := latest_sentence(edge.properties)):
            texts[edge.target], sources[edge.target] = text, edge.properties.get("source", "")
        elif edge.type == MENTIONS_NAME:
            mentioned[edge.source].append(edge.target)
    return texts, mentioned, sources


def _spellings(graph: PropertyGraph) -> dict[str, str]:
    """Map each alias to its entity."""
    pairs = ((alias, node.id) for node in graph.nodes for alias in node.properties.get("aliases", ()))
    return {str(alias): id for alias, id in pairs}


def _names_in(text: str, names: Iterable[str], graph: PropertyGraph) -> list[str]:
    """Return the names as a text spells them, in its order. Parts of other names are left out."""
    spelled = [
        spelling
        for name in names
        for spelling in (name, *map(str, graph.node(name).properties.get("aliases", ())))
        if spelling in text
    ]
    whole = [s for s in spelled if not any(s != other and s in other for other in spelled)]
    return sorted(dict.fromkeys(whole), key=text.find)


def _is_english(text: str, language: str) -> bool:
    return not has_caseless(text) and detect_language([text], language) == "en"


def _relations_between(text: str, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the relations of neighbouring names: the few words between them, or `together`."""
    for one, other in pairwise(names):
        between = text[text.find(one) + len(one) : text.find(other)].strip()
        words = between.split()
        says_little = {word.lower() for word in words} <= function_words(detect_language([text]))
        fits = len(words) <= _MAX_WORDS_BETWEEN and not _SIGN.search(between)
        fits = fits and not says_little and (not has_caseless(between) or len(words) > 1)
        yield one, between if fits else TOGETHER, other


def _with_kind(node: Node, kinds: Mapping[str, Counter[str]], properties: Mapping[str, Json]) -> Node:
    """Return an entity with its most frequent kind as first label, and what rows of tables state of it."""
    counts = kinds.get(node.id)
    is_kind_known = counts and node.labels[0] == mentions.ENTITY
    labels = (counts.most_common(1)[0][0], *node.labels) if counts and is_kind_known else node.labels
    return Node(node.id, labels, {**properties, **node.properties})
