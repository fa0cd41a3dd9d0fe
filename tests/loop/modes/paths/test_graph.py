"""Sentences and names as a graph, what sentences are worth, and the routes that rows tell of."""

import pytest

from kgot_lab.embedding.vectors import minilm
from kgot_lab.loop.modes.paths.mentions import (
    group_by_passage,
    mention_facts,
    new_sentences,
    relevance_scores,
    remove_names,
    sentence_edges,
    similar_titles,
    typed_nodes,
)
from kgot_lab.loop.modes.paths.routes import Route, group_routes
from kgot_lab.retrieval.entities import EntityFinder
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME as MENTIONS
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE as SAYS
from kgot_lab.stores import open_store
from kgot_lab.types import Document

BEER = Document(
    "d1",
    "Kathi-Anne Reinstein is a politician. She resigned to become a lobbyist for Boston Beer Company.",
    "Kathi-Anne Reinstein",
)
BREWER = Document("d2", "The Boston Beer Company is a brewer. It was founded in 1984.", "Boston Beer Company")
OTHER = Document("d3", "Boston Beer Company is a song.", "Boston Beer Company")


def test_every_sentence_stands_under_its_title_and_mentions_the_names_in_it() -> None:
    store = open_store("in_memory")
    said = new_sentences([BEER, BREWER], store)
    assert [each.place for each in said] == [
        "Kathi-Anne Reinstein §1", "Kathi-Anne Reinstein §2", "Boston Beer Company §1", "Boston Beer Company §2",
    ]  # fmt: skip
    facts = {
        (triple.subject, triple.relation, triple.object)
        for triple, _ in mention_facts(said, [BEER.title, BREWER.title])
    }
    assert ("Kathi-Anne Reinstein", SAYS, "Kathi-Anne Reinstein §2") in facts
    assert ("Kathi-Anne Reinstein §2", MENTIONS, "Boston Beer Company") in facts
    assert not any(
        subject == "Boston Beer Company §1" and object == "Boston Beer Company"
        for subject, _, object in facts
    )
    store.close()


def test_a_second_passage_of_a_title_goes_on_counting_and_a_passage_that_is_there_is_not_written_again() -> (
    None
):
    store = open_store("in_memory")
    for said in group_by_passage(new_sentences([BREWER], store)).values():
        store.write(store.dialect.add(mention_facts(said, [BREWER.title])))
    assert [sentence.place for sentence in new_sentences([BREWER, OTHER], store)] == [
        "Boston Beer Company §3"
    ]
    assert [edge.target for edge in sentence_edges("Boston Beer Company", store)] == [
        "Boston Beer Company §1",
        "Boston Beer Company §2",
    ]
    store.close()


def test_a_heading_above_a_blank_line_is_a_sentence_of_its_own_and_a_line_that_is_only_broken_goes_on() -> (
    None
):
    store = open_store("in_memory")
    notes = Document("d1", "The mill is\nold.\n\nContact\n\nUte Alander runs it.", "Notes")
    assert [sentence.text for sentence in new_sentences([notes], store)] == [
        "The mill is old.",
        "Contact",
        "Ute Alander runs it.",
    ]
    store.close()


def test_the_order_of_sentences_under_a_title_is_that_of_their_numbers_beyond_nine() -> None:
    store = open_store("in_memory")
    long = Document("d9", " ".join(f"It has part {number}." for number in range(12)), "Long")
    for said in group_by_passage(new_sentences([long], store)).values():
        store.write(store.dialect.add(mention_facts(said, ["Long"])))
    assert [edge.target for edge in sentence_edges("Long", store)] == [f"Long §{i}" for i in range(1, 13)]
    store.close()


def test_what_is_asked_beside_the_names() -> None:
    assert remove_names("Where was the place of death of the performer of song Changed It?") == (
        "Where was the place of death of the performer of song"
    )


@pytest.mark.parametrize("vectors", [True, False], ids=["with vectors", "with words alone"])
def test_a_sentence_that_says_when_is_worth_more_than_one_that_does_not_where_that_is_asked(
    vectors: bool,
) -> None:
    store = open_store("in_memory")
    brewer = Document(
        "d4",
        "The Boston Beer Company is a brewer. It has an eagle as its sign. It was founded in 1984.",
        "Boston Beer Company",
    )
    said = new_sentences([brewer], store)
    worth = relevance_scores(
        "When was the company founded for which Kathi-Anne Reinstein resigned?",
        said,
        minilm() if vectors else None,
    )
    assert worth["Boston Beer Company §3"] > worth["Boston Beer Company §2"]
    store.close()


def _row(start: str, place_1: str, end: str = "", place_2: str = "", worth: float = 1.0) -> dict[str, object]:
    return {
        "start": start, "place_1": place_1, "sentence_1": f"{place_1} text.", "source_1": "d", "relation": "", "subject": "", "object": "",
        "name": end, "end": end, "place_2": place_2, "sentence_2": f"{place_2} text." if place_2 else "", "source_2": "d", "worth": worth,
    }  # fmt: skip


def test_rows_between_the_same_two_names_are_one_route_whichever_end_they_begin_at() -> None:
    rows = [
        _row("A", "A §2", "B", "B §1", 5.0),
        _row("B", "B §3", "A", "A §2", 4.0),
        _row("A", "A §1", worth=2.0),
    ]
    both, alone = group_routes(rows)
    assert str(both) == "A --(B)-- B"
    assert [sentence.place for sentence in both.sentences] == ["A §2", "B §1", "B §3"]
    assert str(alone) == "A" and alone.text == "[A] A §1 text."


def test_a_route_within_a_budget_keeps_its_link_and_then_what_is_worth_most() -> None:
    route = group_routes([_row("A", "A §1", "B", "B §1"), _row("A", "A §1", "B", "B §2")])[0]
    kept = route.within_budget(20, {"A §1": 0.0, "B §1": 1.0, "B §2": 9.0})
    assert [sentence.place for sentence in kept.sentences] == ["A §1", "B §2"]
    assert [sentence.place for sentence in route.within_budget(1, {"B §2": 9.0}).sentences] == ["A §1"]


def test_rows_of_another_kind_are_no_routes() -> None:
    assert group_routes(["text", {"subject": "A"}, 3]) == []


def test_what_joins_passages_may_be_titles_alone_shared_names_alone_or_neither() -> None:
    store = open_store("in_memory")
    said = new_sentences(
        [Document("d4", "Jo Marsh sailed from Cork and then joined Boston Beer Company.", "Jo Marsh")], store
    )

    def mentioned(*, titles: bool, runs: bool) -> set[str]:
        facts = mention_facts(said, [BREWER.title] if titles else [], runs=runs)
        return {triple.object for triple, _ in facts if triple.relation == MENTIONS}

    assert mentioned(titles=True, runs=True) == {"Boston Beer Company", "Cork"}
    assert mentioned(titles=True, runs=False) == {"Boston Beer Company"}
    assert mentioned(titles=False, runs=True) == {"Boston Beer Company", "Cork"}
    assert mentioned(titles=False, runs=False) == set()
    store.close()


def test_a_sentence_is_linked_to_the_other_passage_that_says_nearly_the_same() -> None:
    store = open_store("in_memory")
    ship = Document("d5", "The ferry sank in the storm off Cork. Tickets were cheap.", "Ferry")
    storm = Document("d6", "A ferry boat sank off the coast of Cork during a storm.", "Weather of 1902")
    said = new_sentences([ship, storm, BREWER], store)
    near = similar_titles(said, [], minilm())
    assert near == {"Ferry §1": "Weather of 1902", "Weather of 1902 §1": "Ferry"}
    assert similar_titles(said[:1], said, minilm()) == {"Ferry §1": "Weather of 1902"}
    assert similar_titles(said, [], None) == {} and similar_titles([], said, minilm()) == {}
    linked = {
        triple.object
        for triple, _ in mention_facts(said[:1], [], near, runs=False)
        if triple.relation == MENTIONS
    }
    assert linked == {"Weather of 1902"}
    store.close()


def test_a_name_before_in_a_place_in_a_year_is_a_name_of_its_own_and_joins_what_else_speaks_of_it() -> None:
    store = open_store("in_memory")
    works = Document("a", "Ulm Works was founded by Hans Weber in Berlin in 1869.", "a")
    told = Document(
        "b", "Hans Weber went to school in Jena. He taught at the University of Jena.", "Chronicle"
    )
    named: dict[str, set[str]] = {}
    for triple, _ in mention_facts(new_sentences([works, told], store), ["a", "Chronicle"]):
        if triple.relation == MENTIONS:
            named.setdefault(triple.subject, set()).add(triple.object)
    assert "Hans Weber" in named["a §1"] & named["Chronicle §1"]
    assert "Hans Weber in Berlin in 1869" not in named["a §1"]
    assert "University of Jena" in named["Chronicle §2"]
    titled = mention_facts(
        new_sentences([Document("c", "She wrote Murder in Rome in 1950.", "c")], store),
        ["Murder in Rome", "c"],
    )
    assert "Murder in Rome" in {triple.object for triple, _ in titled}
    assert not any(
        triple.object == "Hans Weber"
        for triple, _ in mention_facts(new_sentences([works], store), ["a"], parts=False)
    )
    store.close()


def test_headings_list_items_and_rows_of_tables_are_sentences_of_their_own() -> None:
    store = open_store("in_memory")
    text = "# Staff\nUte Alander runs it.\n| Name | Since |\n|---|---|\n| Jo Marsh | 1946 |\n1. Oil the mill\n2. Grind\n- Sweep\n"
    said = [sentence.text for sentence in new_sentences([Document("d", text, "Notes")], store)]
    assert said == [
        "Staff",
        "Ute Alander runs it.",
        "Name | Since",
        "Jo Marsh | 1946",
        "Oil the mill",
        "Grind",
        "Sweep",
    ]
    store.close()


def test_a_route_rests_on_what_says_the_answer_and_what_joins_it_to_the_start() -> None:
    route = group_routes([_row("A", "A §1", "B", "B §1"), _row("A", "A §1", "B", "B §2"), _row("A", "A §3")])[
        0
    ]
    assert [sentence.place for sentence in route.supporting_part("B §2").sentences] == ["A §1", "B §2"]
    assert route.supporting_part("nowhere") == route
    facts = Route(
        "A", "", "", 1.0, (), facts=(("A", "made by", "B"), ("A", "is", "red"), ("B", "born in", "C"))
    )
    assert facts.supporting_part("C").facts == (("A", "made by", "B"), ("B", "born in", "C"))


def test_nodes_written_by_rule_have_types_and_another_spelling_is_an_alias() -> None:
    texts = [
        "Dear Odo Castrell, because He owes Belt & Sons, Our pump stays.",
        "Mr Castrell asked Belt and Sons.",
    ]
    said = new_sentences([Document(f"d{n}", text, f"Letter {n}") for n, text in enumerate(texts)], None)
    finder = EntityFinder(sentence.text for sentence in said)
    facts = mention_facts(said, [], finder=finder)
    nodes = {node.id: node for node in typed_nodes(facts, ["Letter 0", "Letter 1"], finder.aliases)}
    assert {id: node.labels[0] for id, node in nodes.items()} == {
        "Letter 0": "Document", "Letter 0 §1": "Sentence", "Odo Castrell": "Entity", "Belt and Sons": "Entity",
        "Letter 1": "Document", "Letter 1 §1": "Sentence",
    }  # fmt: skip
    assert nodes["Odo Castrell"].properties == {"aliases": ["Mr Castrell"]}
