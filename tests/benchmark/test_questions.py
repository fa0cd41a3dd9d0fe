from itertools import pairwise

from kgot_lab.benchmark.questions.sets import hotpotqa, hotpotqa_split


def test_the_bundled_questions_and_passages_are_complete():
    data = hotpotqa()
    documents, questions = data.documents, data.questions
    assert (len(documents), len(questions), sum(len(q.gold) for q in questions)) == (994, 100, 200)
    assert {question.type for question in questions} == {"bridge", "comparison"}
    assert len({document.id for document in documents}) == len({(d.title, d.text) for d in documents}) == 994


def test_gold_ids_lead_to_the_passages_that_hold_the_facts():
    data = hotpotqa()
    documents, questions = data.documents, data.questions
    texts = {document.id: document.text for document in documents}
    for question in questions:
        assert all(any(fact in texts[id] for id in question.gold) for fact in question.facts)


def test_ids_and_order_say_nothing_about_the_questions():
    data = hotpotqa()
    documents, questions = data.documents, data.questions
    ids = [document.id for document in documents]
    assert ids == sorted(ids)
    place = {id: number for number, id in enumerate(ids)}
    firsts = [min(place[id] for id in question.gold) for question in questions]
    rising = sum(before < after for before, after in pairwise(firsts))
    assert 35 <= rising <= 64  # in the file's own order it is 99


def test_the_parts_of_the_split_are_disjoint_and_cover_all_questions():
    parts = hotpotqa_split()
    assert {name: len(ids) for name, ids in parts.items()} == {"held_out": 40, "test": 30, "dev": 30}
    assert sorted(id for ids in parts.values() for id in ids) == sorted(q.id for q in hotpotqa().questions)
