"""Made-up worlds, questions on file with their parts, and the store of plain facts."""

from __future__ import annotations

import pytest

from benchmarks.competence.gold import GoldChain, GoldSet, GoldStep, gold_of_triples
from benchmarks.competence.plain_facts import PlainFacts
from benchmarks.competence.worlds import (
    chain_world,
    world_on_file,
)
from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.modes.paths.mentions import mention_facts, new_sentences
from kgot_lab.stores import open_store
from kgot_lab.types import Document, Triple

# ----------------------------------------------------------------------------------------------------------


def test_every_step_stands_on_the_page_of_its_subject_and_on_no_other():
    world = chain_world(20, 3)
    for chain in world.gold.chains:
        assert chain.answer == chain.steps[-1].fact.object
        for step in chain.steps:
            expected = [step.fact.subject]
            assert [page.title for page in world.documents if step.sentence in page.text] == expected


# ------------------------------------------------------------------------------------------------------------


def test_decomposed_questions_become_chains_whose_sentences_stand_in_their_passages():
    world = world_on_file(bundled_path("musique-train-100"))
    assert len(world.gold.chains) == 97, (
        "of 100: three have a part whose answer no sentence of its passage holds, or is its own subject"
    )
    pages = {(page.title, " ".join(page.text.split())) for page in world.documents}
    for chain in world.gold.chains:
        assert chain.steps[-1].fact.object == chain.answer
        for step in chain.steps:
            assert any(title == step.title and step.sentence in text for title, text in pages)
    first = world.gold.chains[0].steps
    assert world.gold.chains[0].hops == (
        "What company published Journal of Psychotherapy Integration?",
        "Who was the first president of #1?",
    )
    expected = "Who was the first president of American Psychological Association?"
    assert world.gold.chains[0].resolved[1] == expected
    assert first[1].after == (0,)
    assert first[1].fact.subject == first[0].fact.object == "American Psychological Association"


def test_triples_become_chains_that_rest_on_who_gave_their_subject():
    pages = [
        Document("1", "Winter Hymn is a film. It was made by Ana Duro.", "Winter Hymn"),
        Document("2", "Ana Duro (born 3 May 1901) made films.", "Ana Duro"),
    ]
    asked = {"_id": "q", "text": "When was the maker of Winter Hymn born?", "answer": "3 May 1901"}
    told = [["Winter Hymn", "director", "Ana Duro"], ["Ana Duro", "date of birth", "3 May 1901"]]
    (chain,) = gold_of_triples([{**asked, "evidences": told}], pages, {"q": ["2", "1"]}).chains
    assert [(step.title, step.sentence, step.after) for step in chain.steps] == [
        ("Winter Hymn", "It was made by Ana Duro.", ()),
        ("Ana Duro", "Ana Duro (born 3 May 1901) made films.", (0,)),
    ]
    unsaid = [told[0], ["Ana Duro", "date of birth", "1902"]]
    assert not gold_of_triples([{**asked, "evidences": unsaid}], pages, {"q": ["1", "2"]}).chains


# --------------------------------------------------------------------------------------------------------


def test_plain_facts_read_the_same_paths_as_python():
    said = [
        Document("1", "Ana Duro wrote Tin Lake. She is old.", "Ana Duro"),
        Document("2", "Tin Lake is by Ana Duro. It rains.", "Tin Lake"),
    ]
    wrote = (Triple("Ana Duro", "wrote", "Tin Lake"), {"sentence": "Ana Duro wrote Tin Lake.", "source": "1"})
    found = []
    with PlainFacts() as plain, open_store("in_memory") as python:
        for store in (plain, python):
            placed = new_sentences(said, store)
            store.write(store.dialect.add([*mention_facts(placed, ["Ana Duro", "Tin Lake"]), wrote]))
            worth = {sentence.place: 0.25 * number for number, sentence in enumerate(placed, start=1)}
            asked = [(["Ana Duro"], 2), (["Ana Duro"], 60), (["Tin Lake", "nobody"], 60)]
            found.append([store.read(store.dialect.paths(names, worth, most)) for names, most in asked])
    assert found[0] == found[1]
    assert any(row["relation"] == "wrote" for row in found[0][1]) and len(found[0][1]) > 3


@pytest.mark.parametrize(("questions", "hops"), [(0, 2), (3, 0), (3, 13)])
def test_a_world_that_cannot_be_is_refused(questions, hops):
    with pytest.raises(BadInput):
        chain_world(questions, hops)


def test_gold_that_contradicts_itself_is_refused():
    step = GoldStep(Triple("a", "is", "b"), "A is b.")
    with pytest.raises(BadInput, match="each resting on earlier ones"):
        GoldChain("Who?", (GoldStep(Triple("a", "is", "b"), "A is b.", after=(0,)),), "b")
    with pytest.raises(BadInput, match="each resting on earlier ones"):
        GoldChain("Who?", (), "b")
    with pytest.raises(BadInput, match="two chains are of the same question"):
        GoldSet((GoldChain("Who?", (step,), "b"), GoldChain("Who?", (step,), "c")))


def test_no_page_of_a_chain_names_another_name_of_it_but_the_next():
    world = chain_world(20, 3)
    text = {page.title: page.text for page in world.documents}
    for chain in world.gold.chains:
        names = [chain.steps[0].fact.subject, *(step.fact.object for step in chain.steps)]
        for place, name in enumerate(names):
            assert [other for other in names if other in text[name]] == names[place : place + 2]


@pytest.mark.parametrize(
    "statement",
    [
        *(
            "{",
            '{"add": [["a", "b"]]}',
            '{"about": 3, "hops": 1}',
            "[]",
            "3",
            '{"add": [["a", "is", "b", {}]]} )',
        ),
        *(
            '{"paths": 3}',
            '{"paths": [3, {}, 1]}',
            '{"paths": [["a"], [], 1]}',
            '{"paths": [[], {}, 0]}',
            '{"paths": [[]]}',
        ),
    ],
)
def test_what_is_no_statement_of_plain_facts_fails_and_changes_nothing(statement):
    with PlainFacts() as store:
        with pytest.raises(QueryFailed):
            store.write(statement)
        with pytest.raises(QueryFailed):
            store.read(statement)
        assert not store.schema().nodes
