import re
from collections import Counter

import pytest
from support.every import every
from support.searching import Letters
from support.work import computing_at_most

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.retrieval import entity_linking
from kgot_lab.retrieval.entity_linking import (
    ALIKE,
    IS_CALLED,
    MENTIONS,
    NAME_LINK,
    SAYS,
    NameIndex,
    capitalised_names,
    name_graph,
    normalise_name,
    phrase_graph,
    phrase_id,
    title_graph,
    title_name,
)
from kgot_lab.retrieval.pass_through import has_text
from kgot_lab.text.words import NAME_STOP_WORDS
from kgot_lab.types import Document, Edge, Triple

# --- names ---


@every(
    ("name", "written"),
    [
        ("Ada Lovelace's", "ada lovelace"),
        ("Ada’s Engine", "ada engine"),
        ("'s-Hertogenbosch", "hertogenbosch"),
        ("O'Sullivan", "o sullivan"),
        ("U.S.  Route 66", "u s route 66"),
        ("ÉRIC Tabarly", "éric tabarly"),
        ("", ""),
        ("?!", ""),
    ],
)
def test_a_name_is_compared_by_its_words_in_small_letters(name, written):
    assert normalise_name(name) == written == normalise_name(written)


@every(
    ("title", "name"),
    [
        ("Alien (1979 film)", "alien"),
        ("Alien (film)  ", "alien"),
        ("(What's the Story) Morning Glory?", "what the story morning glory"),
        ("Foo (a) (b)", "foo a"),
        ("Foo (bar (baz))", "foo bar baz"),
        ("It (novel)", ""),
        ("The Who", "the who"),
        ("Who", ""),
        ("Up", ""),
        ("1984", "1984"),
        ("(film)", ""),
        ("", ""),
    ],
)
def test_a_title_stands_for_a_name_without_its_brackets_unless_it_would_name_anything(title, name):
    assert title_name(title) == name


@every(
    ("text", "names"),
    [
        ("Ada Lovelace met Charles Babbage.", {"ada lovelace", "charles babbage"}),
        ("The Duke of Wellington slept.", {"duke of wellington", "duke", "wellington"}),
        ("He left. It was in Paris. When Rome fell", {"paris", "rome"}),
        ("The Beatles played.", {"beatles"}),
        ("Ada Lovelace's Engine", {"ada lovelace engine"}),
        ("Ada’s dog", {"ada"}),
        ("Apollo 11 flew; 1969 was the year, 7 times", {"apollo 11"}),
        ("Max van Gogh and Ida de la Porta", {"max van gogh and ida de la porta", "max van gogh", "ida de la porta"}),
        ("bank of the river, of and the", set()),
        ("an iPhone, a McIntosh", {"mcintosh"}),
        ("Éric Tabarly in Åland with Őry", {"éric tabarly in åland", "éric tabarly", "åland", "őry"}),
        ("Иван Грозный жил в Москве", {"иван грозный", "москве"}),
        ("Up", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_names_are_runs_of_capitalised_words(text, names):
    assert capitalised_names(text) == names


def docs(*pairs: tuple[str, str]) -> list[Document]:
    """Documents a, b, c... of titles and texts."""
    return [Document(chr(97 + number), text, title) for number, (title, text) in enumerate(pairs)]


NINE = "York", "New York", "New York City Hall", "It", "Alien (film)", "Alien", "Éric Ç", "İstanbul", "1984"
TITLES = NameIndex(docs(*((title, "") for title in NINE)))


@every(
    ("text", "names"),
    [
        ("From York to New York, and New York City.", ["york", "new york", "new york"]),
        ("New York City Hall in New York", ["new york city hall", "new york"]),
        ("new york", []),
        ("It is ALIEN. Alien's alien", ["alien", "alien"]),
        ("York-York", ["york", "york"]),
        ("1984 and 11984", ["1984"]),
        ("ÉRIC Ç ate", ["éric ç"]),
        ("İstanbul", ["i̇stanbul"]),
        ("Yorkshire, NewYork", []),
        ("New", []),
        ("", []),
    ],
)
def test_titles_are_found_in_a_text_longest_first(text, names):
    assert TITLES.find_names(text) == names


def test_a_name_leads_to_all_documents_that_are_called_so():
    assert (TITLES["alien"], TITLES["york"], TITLES["it"], TITLES["nothing"]) == (["e", "f"], ["a"], [], [])
    assert NameIndex([]).find_names("New York") == []


HARD = {
    "capitals": "A " * 20_000,
    "words": "Aa " * 20_000,
    "joints": "Aa" + " of" * 10_000,
    "joints and capitals": "Aa of the " * 10_000,
    "spaces": "Aa" + " " * 30_000,
    "spaces between": "Aa" + " " * 30_000 + "Aa",
    "spaces after a joint": "Aa of" + " " * 30_000 + "the",
    "stops": ". " * 20_000,
    "stops together": "A." * 20_000,
    "brackets": "(" * 30_000,
    "open brackets": "a (" * 10_000,
    "closed brackets": "a ()" * 10_000,
    "marks": "'s" * 20_000,
    "one word": "a" * 50_000,
    "lines": "\n" * 30_000 + "x",
}


@every("text", HARD.values(), ids=HARD)
def test_no_text_takes_more_than_time_in_proportion(text):
    titles = NameIndex(docs(("Ada Lovelace", ""), ("Aa " * 300 + "Bb", ""), ("A " * 300 + "B", "")))
    # it takes a fifth of a second at most, and what grows with the square minutes
    with computing_at_most(60):
        names = (*capitalised_names(text), *titles.find_names(text[:20_000]))
        found = (normalise_name(text), title_name(text), *names)
    assert all(len(name) <= len(text) for name in found)


# --- documents that mention titles ---


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", re.sub(r"['’]s\b", "", text))


def names_met(text: str, names: set[str]) -> list[str]:
    """The names in a text, found by trying every run of words at every place, the longest first."""
    words, met, at = words_of(text), [], 0
    while at < len(words):
        runs = (
            [words[at:end] for end in range(len(words), at, -1)]
            if words[at][0].isupper() or words[at][0].isdigit()
            else []
        )
        run = next((run for run in runs if " ".join(run).lower() in names), None)
        met += [" ".join(run).lower()] if run else []
        at += len(run) if run else 1
    return met


def own_name(title: str) -> str:
    words = words_of(re.sub(r"\s*\([^)]*\)\s*$", "", title))
    return (
        ""
        if len(words) < 2 and (len("".join(words)) < 3 or "".join(words).lower() in NAME_STOP_WORDS)
        else " ".join(words).lower()
    )


def met_titles(documents: list[Document]) -> set[tuple[str, str]]:
    names = {document.id: own_name(document.title) for document in documents}
    return {
        (document.id, id)
        for document in documents
        for name in names_met(document.text, set(names.values()) - {""})
        for id in names
        if names[id] == name and id != document.id
    }


SMALL = docs(
    (
        "Ada Lovelace",
        "Ada Lovelace wrote for the Analytical Engine of Charles Babbage. Charles Babbage thanked her.",
    ),
    ("Charles Babbage", "An Engine; the Analytical Engine's inventor. Ada"),
    ("Analytical Engine", "It never ran. It (novel) neither."),
    ("Engine", "Any engine."),
    ("It", "Ada Lovelace"),
    ("", "Analytical Engine (draft)"),
    ("Engine (film)", "no names"),
)


@pytest.fixture(scope="module")
def passages() -> list[Document]:
    return list(load_dataset("hotpotqa").documents[:70])


def test_title_links_are_those_of_a_search_by_hand(passages):
    for documents in (SMALL, passages):
        edges = title_graph(documents).edges
        assert {(edge.source, edge.target) for edge in edges} == met_titles(documents)
        assert len(edges) == len(met_titles(documents)) and {edge.type for edge in edges} == {MENTIONS}
    assert len(met_titles(passages)) > 5


def test_a_node_of_a_document_has_its_title_and_text_and_a_name_is_bare():
    graph = name_graph(SMALL)
    assert graph.node("a").properties == {"name": "Ada Lovelace", "text": SMALL[0].text}
    assert graph.node("a").labels == ("Document",)
    names = [node for node in graph.nodes if node.id.startswith("name:")]
    assert names and all(
        node.properties == {"name": node.id.removeprefix("name:")} and not has_text(node) for node in names
    )


# --- documents and names ---


def named_by_hand(documents: list[Document]) -> set[tuple[str, str, str]]:
    """The edges, from what each document is called, mentions and names."""
    titles = {own_name(document.title) for document in documents} - {""}
    kinds = {}
    for document in documents:
        kinds |= {(document.id, name): NAME_LINK for name in capitalised_names(document.text)}
        kinds |= {(document.id, name): MENTIONS for name in names_met(document.text, titles)}
        kinds |= {(document.id, name): IS_CALLED for name in [own_name(document.title)] if name}
    holders = Counter(name for _, name in kinds)
    return {(id, kind, f"name:{name}") for (id, name), kind in kinds.items() if holders[name] > 1}


def edges_of(graph) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.type, edge.target) for edge in graph.edges}


def test_names_are_those_that_two_documents_hold(passages):
    for documents in (SMALL, passages):
        graph = name_graph(documents)
        assert edges_of(graph) == named_by_hand(documents) and len(graph.edges) == len(edges_of(graph))
        assert min(Counter(edge.target for edge in graph.edges).values()) >= 2


ADA = {("a", IS_CALLED, "name:ada"), ("b", MENTIONS, "name:ada")}


def test_other_names_can_be_given_for_a_document():
    graph = name_graph(
        docs(("Ada", "Ada knew Paris."), ("Bob", "Paris, and Ada.")),
        lambda document: ["a thing", f"{document.id} alone"],
    )
    assert edges_of(graph) == ADA | {("a", NAME_LINK, "name:a thing"), ("b", NAME_LINK, "name:a thing")}


def test_the_order_of_the_documents_does_not_matter():
    assert name_graph(SMALL[::-1]).ids == name_graph(SMALL).ids
    assert list(name_graph(SMALL[::-1]).edges) == list(name_graph(SMALL).edges)


@every("build", [title_graph, name_graph, lambda documents: phrase_graph(documents, {})])
def test_documents_without_titles_or_names_have_no_edges(build):
    graph = build([Document("x", "nothing here"), Document("y", "")])
    assert (graph.ids, len(graph.edges)) == (("x", "y"), 0)


# --- what a language model took from them ---


def test_phrases_are_joined_by_the_triples_and_to_the_documents_that_say_them():
    twice = [Triple("Ada", "Wrote for", "The  Engine"), Triple("Ada", "wrote for", "the engine")]
    triples = {"a": twice, "no document": [Triple("x", "y", "z")]}
    graph = phrase_graph(docs(("", "one"), ("", "two")), triples)
    assert set(graph.edges) == {
        Edge("phrase:ada", "wrote for", "phrase:the engine"), Edge("a", SAYS, "phrase:ada"), Edge("a", SAYS, "phrase:the engine")
    }  # fmt: skip
    assert graph.ids[:2] == ("a", "b") and phrase_id(" The \n Engine ") == "phrase:the engine"


@pytest.mark.extended
def test_the_phrase_graph_of_musique_has_every_phrase_and_triple_of_the_data():
    data = load_dataset("musique")
    graph = phrase_graph(data.documents, data.triples)
    ends = [(id, triple, "phrase:" + " ".join(text.lower().split())) for id, some in data.triples.items() for triple in some
            for text in (triple.subject, triple.object)]  # fmt: skip
    says = {(id, SAYS, phrase) for id, _, phrase in ends}
    between = {
        (one, triple.relation.lower(), other)
        for (_, triple, one), (_, _, other) in zip(ends[::2], ends[1::2], strict=True)
    }
    assert edges_of(graph) == says | between and len(graph.edges) == len(says | between) > 30_000
    assert len(graph) == len(data.documents) + len({phrase for *_, phrase in ends})


LEAST = 0.79  # no two of the words below are just as near


def test_phrases_that_mean_nearly_the_same_are_joined_once(monkeypatch):
    words = "tea eat ate tease east seat stone tones notes onset tone note ten net".split()
    triples = {"a": [Triple(word, "is", "tea") for word in words]}
    vectors = dict(zip(words, Letters().embed(words), strict=True))
    near = [(a, b) for a in words for b in words if a < b and vectors[a] @ vectors[b] > LEAST]
    expected = {(f"phrase:{one}", ALIKE, f"phrase:{other}") for one, other in near}
    for block in (2_000, 3):
        monkeypatch.setattr(entity_linking, "_BLOCK", block)
        graph = phrase_graph(docs(("", "x")), triples, similarity=(Letters(), LEAST))
        assert {edge for edge in edges_of(graph) if edge[1] == ALIKE} == expected and 10 < len(expected) < 80
    assert phrase_graph(docs(("", "x")), {}, similarity=(Letters(), LEAST)).types() == {}
