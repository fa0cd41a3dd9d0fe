"""The graph of documents, their sentences and the entities in them, with relations between entities."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter

from kgot_lab.analogy.linguistic import THING, SentenceRelations, parse_relations
from kgot_lab.errors import NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, latest_sentence, support_properties
from kgot_lab.loop.modes.paths import mentions
from kgot_lab.retrieval.entities import EntityFinder, column_names, has_caseless, has_honorific, split_row
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.function_words import detect_language, function_words, is_calendar_word
from kgot_lab.types import Document, Edge, Json, Node

SCAFFOLD = (mentions.DOCUMENT, mentions.SENTENCE)  # the labels of nodes that are not entities
TOGETHER = "together"  # the relation of two names in a sentence that is not parsed
_MAX_WORDS_BETWEEN = 5
_WORD = re.compile(r"[^\W\d_]+")
_ORGANISATION_WORDS = frozenset(
    "ltd limited inc llc plc gmbh corp corporation company co tools works foundry brothers sons partners group foundation trust society "
    "association club council committee ministry bank institute university college school museum hospital press bakery brewery hotel café "
    "cafe restaurant agency".split()
)  # the first or last word of a name
_PLACE_ENDINGS = frozenset(
    "street road lane avenue square bay valley island bridge river lake harbour".split()
)
_SIGN = re.compile(r"[^\w\s'’-]|\d{5,}")


def entity_graph(documents: Iterable[Document]) -> PropertyGraph:
    """Build the graph of documents: titles say sentences, sentences mention entities, entities are related.

    See `with_relations`. A title that is a name in a sentence is an entity too. An entity that was spelled in
    several ways has the other spellings as `aliases`.
    """
    documents = list(documents)
    sentences = mentions.new_sentences(documents, None)
    titles = list(dict.fromkeys(map(mentions.passage_title, documents)))
    finder = EntityFinder(_split_by_title((each.title, each.text) for each in sentences), titles)
    facts = mentions.mention_facts(sentences, titles, finder=finder, own_title=True)
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
    those are too many. Each edge has the sentence. A first name or surname alone that follows one full name
    under a title is that person. A graph whose entities have kinds is returned as it is.
    """
    if any(mentions.ENTITY in labels[1:] for labels in graph.node_labels):
        return graph
    graph = _with_short_names(graph)
    texts, mentioned, sources = _sentences_of(graph)
    spelled = {alias: node.id for node in graph.nodes for alias in _aliases(node)}
    relations: dict[tuple[str, str, str], dict[str, Json]] = {}
    properties: dict[str, dict[str, Json]] = defaultdict(dict)

    def relate(place: str, source: str, relation: str, target: str) -> None:
        ends = spelled.get(source, source), spelled.get(target, target)
        if ends[0] != ends[1] and relation:
            about = {"source": sources[place], "sentence": texts[place]}
            relations.setdefault((ends[0], relation, ends[1]), about)

    columns = column_names(
        _split_by_title((mentions.node_title(place), text) for place, text in texts.items())
    )
    prose: dict[str, list[str]] = {}
    things: dict[str, Node] = {}
    for place, text in texts.items():
        row = split_row(text, columns)
        if row is None:
            prose[place] = _names_in(text, mentioned[place], graph)
            continue
        key = spelled.get(row[0], row[0])
        for column, value in row[1]:
            names = [name for name in _names_in(value, mentioned[place], graph) if name != row[0]]
            for name in names:
                relate(place, key, column or "has", name)
            if column and not names and key in mentioned[place]:
                properties[key].setdefault(column, value)
    language = detect_language(texts.values())
    english = {p: names for p, names in prose.items() if _is_english(texts[p], language)}
    parsed = dict(zip(english, _parse([(texts[p], names) for p, names in english.items()]), strict=False))
    kinds = _count_kinds(parsed.values(), spelled)
    for place, found in parsed.items():
        for source, relation, target in found.relations:
            relate(place, source, relation, target)
        for name in (name for name, kind in found.kinds.items() if kind == THING):
            things[name] = Node(name, (THING, mentions.ENTITY))
            relate(place, place, MENTIONS_NAME, name)
    for place, names in prose.items():
        if place not in parsed:
            for source, relation, target in _relations_between(texts[place], names):
                relate(place, source, relation, target)
    nodes = {node.id: _with_kind(node, kinds, properties[node.id]) for node in graph.nodes}
    nodes = {**nodes, **{name: thing for name, thing in things.items() if name not in nodes}}
    new_edges = {edge.identity: edge for edge in graph.edges}
    made = (Edge(*ends, about) for ends, about in relations.items() if {ends[0], ends[2]} <= nodes.keys())
    for edge in made:
        new_edges.setdefault(edge.identity, edge)
    return PropertyGraph.of(nodes.values(), new_edges.values())


def _with_short_names(graph: PropertyGraph) -> PropertyGraph:
    """Let sentences mention the person that they call by one word of the name, which becomes an alias.

    The full name comes before it under the same title, and the word means no other entity of the graph.
    """
    texts, mentioned, sources = _sentences_of(graph)
    found: dict[str, dict[str, str]] = defaultdict(dict)  # of each word, whom it means in which sentence
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)  # the full names so far, by title and word
    words = {word for text in texts.values() for word in _WORD.findall(text) if word.islower()}
    no_names = {*words, *function_words("en")}
    for place, text in texts.items():
        title, full = mentions.node_title(place), {name for name in mentioned[place] if " " in name}
        for word in {word for name in full for word in name.split()}:
            seen[title, word] |= {name for name in full if word in name.split()}
        for name in _names_in(text, full, graph):
            text = text.replace(name, " ")
        for word in filter(str.istitle, _WORD.findall(text)):
            person, *others = seen.get((title, word), {""})
            if person not in full or word in mentioned[place]:
                found[word][place] = "" if others or person in full or word.lower() in no_names else person
    titles = {node.id for node in graph.nodes if mentions.DOCUMENT in node.labels}
    short = {word: {*places.values()}.pop() for word, places in found.items() if len({*places.values()}) == 1}
    short = {
        w: p for w, p in short.items() if w not in titles and w in {*p.split(" ")[:1], *p.split(" ")[-1:]}
    }
    people = {*short.values()}
    kinds = _count_kinds(_parse([(texts[p], [*people]) for p in texts if people & {*mentioned[p]}]), {})
    short = {word: person for word, person in short.items() if _sure_kind(person, kinds[person]) == "Person"}
    nodes = [
        replace(node, properties={**node.properties, "aliases": [*_aliases(node), *called]})
        if (called := [word for word, person in short.items() if person == node.id])
        else node
        for node in graph.nodes
        if node.id not in short
    ]
    edges = [edge for edge in graph.edges if edge.target not in short]
    for place, person in (pair for word in short for pair in found[word].items()):
        support = Support(str(sources[place]), texts[place])
        edges.append(Edge(place, MENTIONS_NAME, person, support_properties([support])))
    return PropertyGraph.of(nodes, edges)


def _parse(sentences: Sequence[tuple[str, Sequence[str]]]) -> list[SentenceRelations]:
    """Parse English sentences with their names. Without spaCy, nothing is known of them."""
    try:
        return parse_relations(sentences)
    except NotInstalled:
        return []


def _count_kinds(parsed: Iterable[SentenceRelations], spelled: Mapping[str, str]) -> dict[str, Counter[str]]:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind in (item for found in parsed for item in found.kinds.items()):
        kinds[spelled.get(name, name)][kind] += 1
    return kinds


def _sure_kind(name: str, counts: Mapping[str, int]) -> str:
    """Return the kind of an entity that its last word tells, or that most of its sentences agree on, or ""."""
    first, *_, last = [*name.lower().rstrip(".").split(), *[""] * (" " not in name)]
    if last and {first, last} & _ORGANISATION_WORDS:
        return "Organisation"
    if last in _PLACE_ENDINGS and "Person" not in counts:
        return "Place"
    if last and has_honorific(name):
        return "Person"
    kind, count = max(counts.items(), key=itemgetter(1), default=("", 0))
    is_reliable = kind in ("Person", "Group", "Date", THING) or (kind == "Place" and not last)
    is_sure = count > 1 - is_reliable and 3 * count >= 2 * sum(counts.values())
    is_sure &= kind != "Date" or all(is_calendar_word(w) or w[0].isdigit() for w in name.split())
    return kind if is_sure and not (kind == "Organisation" and last) else ""


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


def _aliases(node: Node) -> list[str]:
    return [*map(str, node.properties.get("aliases", ()))]


def _names_in(text: str, names: Iterable[str], graph: PropertyGraph) -> list[str]:
    """Return the names as a text spells them, in its order. Parts of other names are left out."""
    spelled = [
        spelling for name in names for spelling in (name, *_aliases(graph.node(name))) if spelling in text
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
    """Return an entity with its kind, if it is sure, as first label, and what rows of tables state of it."""
    kind = _sure_kind(node.id, kinds.get(node.id, {})) if node.labels[:1] == (mentions.ENTITY,) else ""
    return Node(node.id, (kind, *node.labels) if kind else node.labels, {**properties, **node.properties})
