"""Paths of sentences are read alike in every language: the same rows in the same order."""

from __future__ import annotations

from itertools import product

import pytest
from support.every import every
from support.store_kinds import KINDS, SQL, opened

from kgot_lab.errors import BadInput
from kgot_lab.loop.run_context import constant_rows
from kgot_lab.stores import open_store
from kgot_lab.stores.opening import Fused
from kgot_lab.stores.protocol import readers
from kgot_lab.types import Diff, Edge, Node, Triple

COLUMNS = "start place_1 sentence_1 source_1 relation subject object name end place_2 sentence_2 source_2 worth".split()
PASSAGES = {
    "Ed Wood": (
        ("Ed Wood is a film by Tim Burton.", ["Tim Burton"]),
        ("It stars Johnny Depp.", ["Johnny Depp"]),
    ),
    "Tim Burton": (("Tim Burton was born in Burbank, California.", ["Burbank", "California"]),),
    "Johnny Depp": (
        ("Johnny Depp was born in Kentucky.", ["Kentucky"]),
        ("He met Tim Burton.", ["Tim Burton"]),
    ),
    "Burbank": (("Burbank lies in California.", ["California"]),),
    "Sinister": (("Sinister is a film by Scott Derrickson.", ["Scott Derrickson"]),),
    "Scott Derrickson": (("Scott Derrickson was born in Denver.", ["Denver"]),),
    "Denver": (("Denver is the capital of Colorado.", ["Colorado"]),),
    "Cars": (("Cars was drawn in California.", ["California"]),),
}
FACTS = (("Sinister", "filmed in", "Burbank"), ("Denver", "home of", "Ed Wood"), ("Cars", "cites", "Cars"))
WORTH = {
    "Ed Wood §1": 0.5, "Ed Wood §2": 0.25, "Tim Burton §1": 1.0, "Johnny Depp §1": 0.75, "Johnny Depp §2": 0.125,
    "Burbank §1": 0.5, "Scott Derrickson §1": 0.3, "Denver §1": 0.2, "Cars §1": 0.1, "Nowhere §1": 9.0,
}  # fmt: skip
NASTY = (
    *(
        "it's",
        'a "quote"',
        "back\\slash",
        "back\\u0041",
        "two\nlines",
        "{braces}",
        "100%",
        "%41",
        "smile 😀",
        "back`tick",
        "$1 $$ :x ?y",
    ),
    *(
        "'); DROP TABLE nodes; --",
        '"}) DETACH DELETE n //',
        "> . } ; INSERT DATA { :a :b :c",
        "http://example.org/a_b?c=%20",
        "os.exit()",
    ),
    *(
        "A",
        "A b",
        "A-b",
        "A.b",
        "A.",
        "-A",
        "A_b",
        "A~b",
        "A:b",
        "A0",
        "AZ",
        "A[b",
        "Aa",
        "A{b",
        "Aé",
        "A–b",
        "A中",
        "A!b",
    ),
    *("A\tb", "A\x7fb", "A\r\nb", "A\u2028b", "A\u200bb"),
    *("says", "mentions", "start", "ODD", "rdf:type", "null"),
)


def graph_of(passages, facts):
    edges = []
    for title, sentences in passages.items():
        for number, (sentence, names) in enumerate(sentences, start=1):
            place, told = f"{title} §{number}", {"source": f"document of {title}", "sentence": sentence}
            named = [Edge(place, "mentions", name, told) for name in names]
            edges += [Edge(title, "says", place, told), *named]
    edges += [Edge(*fact, {"source": "a model", "sentence": f"Of {' '.join(fact)}."}) for fact in facts]
    ids = dict.fromkeys(id for edge in edges for id in (edge.source, edge.target))
    return Diff(added_nodes=tuple(map(Node, ids)), added_edges=tuple(edges))


WORLD = graph_of(PASSAGES, FACTS)


def by_definition(diff, names, worth, most):
    """The rows as they are defined, by looking at every two edges."""
    says = [edge for edge in diff.added_edges if edge.type == "says" and edge.target in worth]
    mentions = {(edge.source, edge.target) for edge in diff.added_edges if edge.type == "mentions"}
    facts = [edge for edge in diff.added_edges if edge.type not in ("says", "mentions")]
    rows = []
    for first in (edge for edge in says if edge.source in names):
        one = first.source, first.target, first.properties["sentence"], first.properties["source"], "", "", ""
        rows.append((*one, "", "", "", "", "", worth[first.target]))
        for last in (edge for edge in says if edge.source != first.source):
            two = (
                last.source,
                last.target,
                last.properties["sentence"],
                last.properties["source"],
                worth[first.target] + worth[last.target],
            )
            joints = {name for place, name in mentions if place == first.target and name != first.source}
            shared = [name for name in joints if name == last.source or (last.target, name) in mentions]
            rows += [(*one, name, *two) for name in shared]
    for fact, last in product(facts, says):
        for start, end in ((fact.source, fact.target), (fact.target, fact.source)):
            if start in names and end == last.source and start != end:
                one = (
                    start,
                    "",
                    fact.properties["sentence"],
                    fact.properties["source"],
                    fact.type,
                    fact.source,
                    fact.target,
                    "",
                )
                rows.append(
                    (
                        *one,
                        end,
                        last.target,
                        last.properties["sentence"],
                        last.properties["source"],
                        1 + worth[last.target],
                    )
                )
    found = [dict(zip(COLUMNS, row, strict=True)) for row in set(rows)]
    order = ("start", "place_1", "place_2", "end", "name", "relation", "subject", "object")
    return tuple(sorted(found, key=lambda row: (-row["worth"], *(row[column] for column in order)))[:most])


SPOKEN = [kind for kind in KINDS if kind.statements is not SQL]  # no model writes SQL


def paths(store, names, worth=WORTH, most=100):
    return store.read(store.dialect.paths(names, worth, most))


def told(row):
    return {name: value for name, value in row.items() if value != ""}


@pytest.fixture(params=SPOKEN, ids=str)
def empty(request, tmp_path):
    with opened(request.param.open(tmp_path, request)) as store:
        yield store


@pytest.fixture(scope="module", params=SPOKEN, ids=str)
def store(request, tmp_path_factory):
    """A store with the paths of WORLD, which no test changes."""
    with opened(request.param.open(tmp_path_factory.mktemp("store"), request)) as store:
        store.apply(WORLD)
        yield store


def test_every_store_reads_the_rows_that_are_defined_in_their_order(store):
    everyone = list(PASSAGES)
    rows = paths(store, everyone)
    assert len(rows) > 20
    assert rows == by_definition(WORLD, everyone, WORTH, 100)
    assert all(list(row) == COLUMNS for row in rows)
    assert paths(store, ["Ed Wood"]) == by_definition(WORLD, ["Ed Wood"], WORTH, 100)


def test_each_shape_of_a_path_is_read_and_no_other(store):
    joined, alone = paths(store, ["Ed Wood"], {"Ed Wood §1": 0.5, "Tim Burton §1": 1.0})
    wood = {"sentence_1": "Ed Wood is a film by Tim Burton.", "source_1": "document of Ed Wood"}
    said = {"start": "Ed Wood", "place_1": "Ed Wood §1", **wood}
    burton = {"sentence_2": "Tim Burton was born in Burbank, California."}
    burton["source_2"] = "document of Tim Burton"
    tim = {"name": "Tim Burton", "end": "Tim Burton", "place_2": "Tim Burton §1"}
    assert told(joined) == {**said, **tim, **burton, "worth": 1.5}
    assert told(alone) == {**said, "worth": 0.5}

    shared, alone = paths(store, ["Tim Burton"], {"Tim Burton §1": 1.0, "Cars §1": 0.25})
    said = [shared[column] for column in ("name", "end", "place_2", "worth")]
    assert said == ["California", "Cars", "Cars §1", 1.25]
    assert alone["end"] == ""

    (fact,) = paths(store, ["Sinister"], {"Burbank §1": 0.5})
    (backwards,) = paths(store, ["Ed Wood"], {"Denver §1": 0.5})
    filmed = {"relation": "filmed in", "subject": "Sinister", "object": "Burbank"}
    filmed["sentence_1"] = "Of Sinister filmed in Burbank."
    burbank = {"sentence_2": "Burbank lies in California.", "source_2": "document of Burbank", "worth": 1.5}
    ends = {"start": "Sinister", "end": "Burbank", "place_2": "Burbank §1"}
    assert told(fact) == {**ends, **filmed, "source_1": "a model", **burbank}
    said = [backwards[column] for column in ("subject", "object", "start", "end")]
    assert said == ["Denver", "Ed Wood", "Ed Wood", "Denver"]


def test_a_start_that_is_no_id_and_a_sentence_that_was_not_given_lead_nowhere(store):
    assert paths(store, ["ed wood", "Ed", "Nobody", "Colorado"]) == ()
    assert paths(store, ["Ed Wood"], {"Tim Burton §1": 1.0, "Cars §1": 1.0}) == ()
    assert paths(store, [], WORTH) == paths(store, ["Ed Wood"], {}) == paths(store, [], {}) == ()


def test_the_most_rows_are_the_best_ones(store):
    everyone = list(PASSAGES)
    best = by_definition(WORLD, everyone, WORTH, 100)
    assert [paths(store, everyone, most=most) for most in (1, 2, 7)] == [best[:1], best[:2], best[:7]]


def test_what_is_worth_the_same_comes_in_the_order_of_the_ids(store):
    alike = dict.fromkeys(WORTH, 0.5)
    assert paths(store, list(PASSAGES), alike, 12) == by_definition(WORLD, list(PASSAGES), alike, 12)
    negative = {place: -worth for place, worth in WORTH.items()}
    assert paths(store, list(PASSAGES), negative) == by_definition(WORLD, list(PASSAGES), negative, 100)


@pytest.fixture(scope="module")
def nasty_paths():
    """A graph with names of every sign, and cases of names, relevance scores and the rows they lead to."""
    passages = {name: ((f"Of {name}, said {name}.", [*NASTY]), ("No more.", [])) for name in NASTY}
    # a server refuses a ~ there
    relations = [name for name in NASTY if name not in ("says", "mentions", "A~b")]
    diff = graph_of(passages, [(NASTY[0], relation, NASTY[1]) for relation in relations])
    sentences = {f"{name} §1": 0.5 for name in NASTY[:12]}
    cases = [(names, sentences) for names in (NASTY[:12], NASTY[12:])]
    for few in (NASTY[12:24], NASTY[24:36], NASTY[36:]):
        cases.append((few, {f"{name} §1": 0.1 for name in few}))
    return diff, [(names, scores, by_definition(diff, names, scores, 400)) for names, scores in cases]


@pytest.mark.extended
def test_names_of_every_sign_are_read_as_they_are_written_and_sorted(empty, nasty_paths):
    diff, cases = nasty_paths
    empty.apply(diff)
    for names, scores, rows in cases:
        assert paths(empty, names, scores, 400) == rows


def test_what_a_dialect_adds_is_what_its_paths_read(empty):
    facts = [(Triple(edge.source, edge.type, edge.target), edge.properties) for edge in WORLD.added_edges]
    empty.write(empty.dialect.add(facts))
    assert paths(empty, list(PASSAGES)) == by_definition(WORLD, list(PASSAGES), WORTH, 100)


def test_an_empty_graph_and_a_graph_of_others_have_no_paths(empty):
    assert paths(empty, ["Ed Wood"]) == ()
    ends = (
        Node("Ed Wood", ("says",)),
        Node("Tim Burton", ("mentions", "Person")),
        Node("Ed Wood §1", ("Place",), {"sentence": "Hm."}),
    )
    edges = (Edge("Ed Wood", "made by", "Tim Burton"), Edge("Ed Wood", "has", "Ed Wood §1"))
    empty.apply(Diff(added_nodes=ends, added_edges=edges))
    assert paths(empty, ["Ed Wood", "Tim Burton"]) == ()


def test_an_edge_without_properties_is_read_with_empty_texts(empty):
    nodes = tuple(map(Node, ("a", "b", "s", "t")))
    says = (Edge("a", "says", "s"), Edge("b", "says", "t"))
    edges = (*says, Edge("s", "mentions", "b"), Edge("b", "near", "a"))
    empty.apply(Diff(added_nodes=nodes, added_edges=edges))
    by_fact, joined, alone = map(told, paths(empty, ["a"], {"s": 0.5, "t": 0.25}))
    assert joined == {"start": "a", "place_1": "s", "name": "b", "end": "b", "place_2": "t", "worth": 0.75}
    near = {"start": "a", "relation": "near", "subject": "b", "object": "a"}
    assert by_fact == {**near, "end": "b", "place_2": "t", "worth": 1.25}
    assert alone == {"start": "a", "place_1": "s", "worth": 0.5}


def test_reading_paths_changes_nothing(store):
    before = store.graph()
    paths(store, list(PASSAGES))
    assert store.graph() == before


def test_rows_of_paths_count_as_read_and_not_as_said_by_the_statement(store):
    statement = store.dialect.paths(list(PASSAGES), WORTH, 100)
    own = store.dialect.constants(statement)
    columns = {"sentence_1", "sentence_2", "source_1", "source_2", "name", "end"}
    assert own.reads_graph and not columns & own.columns
    assert constant_rows(store, statement, store.read(statement)) == ()


def test_twelve_names_and_eighty_sentences_of_long_titles_pass(empty):
    titles = [f"{number} {'Ünïcode: long, (titles) – '.ljust(120, 'x')}" for number in range(80)]
    diff = graph_of({title: ((f"Sentence {title}.", ["Hub", titles[0], titles[1]]),) for title in titles}, [])
    empty.apply(diff)
    worth = {f"{title} §1": number / 100 for number, title in enumerate(titles)}
    assert paths(empty, titles[-12:], worth, 10) == by_definition(diff, titles[-12:], worth, 10)


def test_a_name_that_no_node_can_have_is_nobodys(store):
    worths = {**WORTH, "half \udfff §1": 1.0, "nul \0 §1": 1.0}
    rows = paths(store, ["Ed Wood", "half \ud800", "nul \0", ""], worths)
    assert rows == by_definition(WORLD, ["Ed Wood"], WORTH, 100)


@pytest.mark.extended
def test_all_languages_of_a_fused_store_read_the_same():
    with Fused(*(open_store(kind) for kind in ("in_memory", "cypher_embedded", "sparql_embedded"))) as fused:
        fused.apply(WORLD)
        rows = [paths(each, ["Ed Wood", "Sinister"]) for each in (fused, *readers(fused))]
    assert rows == [by_definition(WORLD, ["Ed Wood", "Sinister"], WORTH, 100)] * 3


@every(
    ("names", "worth", "most"),
    [
        ("Ed Wood", {}, 1),
        ([1], {}, 1),
        (["a"], {"s": float("nan")}, 1),
        (["a"], {"s": "0.5"}, 1),
        (["a"], {"s": True}, 1),
        (["a"], {}, 0),
    ],
)
def test_what_is_no_name_no_worth_or_no_number_is_refused(names, worth, most):
    with open_store("in_memory") as store, pytest.raises(BadInput):
        store.dialect.paths(names, worth, most)
