"""The analogy sets: what is read, what is held out, and the rules by which questions and pairs are made of
them.
"""

from collections import Counter

import numpy as np
import pytest

from benchmarks.structure.analogies import CHOICES, ITEMS, Choice, Choices, Item, choices, items, linked
from benchmarks.structure.analogy_pairs import PAIRS, pair, pairs
from benchmarks.structure.analogy_pools import RETRIEVALS, retrieval
from benchmarks.structure.cells import TOLERANCE, cells, cells_of, pools_of
from benchmarks.structure.system_pairs import SystemPair, SystemTerm, mapped, system_pairs
from kgot_lab.errors import BadInput, UnknownName

SIZES = {"storyanalogy-mc": (360, 100), "parallelparc basic": (310, 70), "parallelparc advanced": (310, 70)}
SIZES |= {f"analobench T1 {length}": (340, 102) for length in ("S1", "S10", "S30")}
THINGS = frozenset("dog cat boat river king road lamp tree".split())
DOING = "chases finds leaves breaks guards passes".split()


class Counts:
    """An embedder that counts words: the cosine of two texts is how many they share."""

    name, digest = "counts", "c"

    def __init__(self):
        self.place = {}
        self.dimension = 1_000

    def embed(self, texts):
        matrix = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                matrix[row, self.place.setdefault(word, len(self.place)) % self.dimension] += 1
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def nouns(text):
    return THINGS & set(text.split())


def made(count=60, seed=0):
    """Items of random words, each of a group with its neighbour."""
    draw = np.random.default_rng(seed)

    def text(number):
        return " ".join([f"n{number}", *draw.choice(sorted(THINGS), 2), *draw.choice(DOING, 4)])

    groups = [f"g{number // 2}" for number in range(count)]
    return [
        Item(f"i{number:02}", text(f"s{number}"), text(f"a{number}"), frozenset({group}), group)
        for number, group in enumerate(groups)
    ]


def similarity(first, second):
    matrix = Counts().embed([first, second])
    return float(matrix[0].astype(float) @ matrix[1].astype(float))


# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_a_set_has_its_size_and_its_two_parts_divide_it(name):
    whole = choices(name)
    assert (len(whole.questions), len(whole.held_out.questions)) == SIZES[name]
    expected = {question.id for question in whole.questions} - whole.test_ids
    assert {question.id for question in whole.dev.questions} == expected


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_every_question_has_four_different_choices_and_only_the_answer_is_the_target(name):
    for question in choices(name).questions:
        assert len(set(question.choices)) == 4
        assert [place for place, kind in enumerate(question.kinds) if kind == "target"] == [question.answer]
        assert all(
            (text == question.source) == (kind == "itself")
            for text, kind in zip(question.choices, question.kinds, strict=True)
        )


@pytest.mark.parametrize("name", sorted(set(CHOICES) - {"storyanalogy-mc"}))
def test_no_group_stands_on_both_sides(name):
    whole = choices(name)
    assert not {question.group for question in whole.dev.questions} & {
        question.group for question in whole.held_out.questions
    }


# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(RETRIEVALS))
def test_what_is_relevant_is_in_the_pool_and_the_query_itself_is_not(name):
    found = retrieval(name)
    text_of = {document.id: document.text for document in found.dataset.documents}
    for query in found.dataset.queries:
        pool = set(found.pools[query.id])
        assert set(found.dataset.qrels[query.id]) <= pool <= set(text_of)
        assert len(pool) == len(found.pools[query.id])
        assert query.text not in {text_of[id] for id in pool}
    assert len(found.texts) >= len(text_of)
    expected = len(found.dataset.queries)
    assert len(found.dev.dataset.queries) + len(found.held_out.dataset.queries) == expected


def test_the_searches_have_their_published_sizes():
    assert len(retrieval("storyanalogy-mc pool").dataset.documents) == 1_355
    task = retrieval("analobench T2 S1")
    corpus = retrieval("analobench S30")
    processes = retrieval("parallelparc pool")
    assert {len(pool) for pool in task.pools.values()} == {200}
    assert {len(pool) for pool in corpus.pools.values()} == {339}
    assert sum(map(len, task.dataset.qrels.values())) == sum(map(len, corpus.dataset.qrels.values())) == 2_460
    assert len(processes.dataset.documents) == 620 and "590 to 620 to choose from" in repr(processes)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_pairs_are_judged_in_the_part_they_belong_to_and_analogies_are_rare(name):
    whole = pairs(name)
    dev, test = whole.dev, whole.held_out
    assert dev.analogous.isdisjoint(test.analogous)
    assert dev.analogous | test.analogous == whole.analogous
    for part in (whole, dev, test):
        assert part.analogous and all(part.judges(*pair) for pair in part.analogous)
        assert part.prevalence <= 0.03
    assert not any(dev.judges(*pair) for pair in test.analogous)


# ------------------------------------------------------------------------------------------------------------


def test_matched_choices_give_surface_and_shared_nouns_nothing_to_go_by():
    found = made(200)
    drawn = cells(pools_of(found, Counts(), nouns), name="made", traps=["matched"]).choices
    above = Counter()
    for question in drawn.questions:
        own = similarity(question.source, question.choices[question.answer])
        flag = bool(nouns(question.source) & nouns(question.choices[question.answer]))
        others = [text for place, text in enumerate(question.choices) if place != question.answer]
        assert all(abs(similarity(question.source, text) - own) <= TOLERANCE + 1e-6 for text in others)
        assert all(bool(nouns(question.source) & nouns(text)) == flag for text in others)
        above[sum(similarity(question.source, text) >= own - 1e-9 for text in others)] += 1
    assert set(above) == {0, 1, 2, 3} and set(drawn.cells) == {"far-matched", "near-matched"}


def test_the_draw_is_the_same_in_any_order_and_another_with_another_seed():
    found = made()
    first = cells(pools_of(found, Counts(), nouns), name="made").choices
    again = cells(pools_of(found[::-1], Counts(), nouns), name="made").choices
    assert sorted(first.questions, key=lambda e: e.id) == sorted(
        again.questions, key=lambda question: question.id
    )
    assert cells(pools_of(found, Counts(), nouns), name="made", seed=1).choices.questions != first.questions
    assert len({question.answer for question in first.questions}) == 4


@pytest.mark.parametrize("name", sorted(ITEMS))
def test_the_cells_of_a_set_are_drawn_of_one_part_at_a_time(name):
    def long_words(text):
        return frozenset(word for word in text.lower().split() if len(word) > 7)

    dev = cells_of(name, Counts(), long_words).choices
    test = cells_of(name, Counts(), long_words, opened=True).choices
    away = {item.id for item in items(name) if item.held_out}
    in_dev, in_test = ({q.id.split()[0] for q in part.questions} for part in (dev, test))
    assert in_dev and in_dev.isdisjoint(away) and in_test <= away and in_test
    assert not dev.test_ids and len(test.held_out.questions) == len(test.questions)
    texts_of_away = {item.analogue for item in items(name) if item.held_out}
    known = {item.analogue for item in items(name) if not item.held_out}
    assert not any(text in texts_of_away - known for q in dev.questions for text in q.choices)


def test_a_pair_has_two_ends():
    assert pair("b", "a") == pair("a", "b") == ("a", "b")
    with pytest.raises(BadInput, match="two ends"):
        pair("a", "a")


def test_a_question_whose_answer_is_no_choice_is_refused():
    with pytest.raises(BadInput, match="number 2"):
        Choice("q", "a", ("b", "c"), 2)
    with pytest.raises(BadInput, match="3 kinds"):
        Choice("q", "a", ("b", "c"), 1, ("x", "y", "z"))


def test_a_source_never_meets_the_targets_of_pairs_that_share_a_subject():
    processes = retrieval("parallelparc pool")
    subjects = {item.id: item for item in items("parallelparc")}
    of_text = {item.analogue: item for item in subjects.values()}
    text_of = {document.id: document.text for document in processes.dataset.documents}
    for query in processes.dataset.queries:
        met = {of_text[text_of[id]] for id in processes.pools[query.id] if text_of[id] in of_text}
        assert [item.id for item in met if item.kin & subjects[query.id].kin] == [query.id]


def test_an_unknown_name_lists_the_known_ones():
    for opened in (choices, items, retrieval, pairs):
        with pytest.raises(UnknownName, match="storyanalogy-mc"):
            opened("storyanalogy")


def test_every_item_is_asked_in_a_cell_or_counted_as_left_out():
    drawn = cells(pools_of(made(14), Counts(), nouns), name="made")
    for side in ("near", "far"):
        totals = {
            trap: drawn.counts[f"{side}-{trap}"] + drawn.left_out[f"{side}-{trap}"]
            for trap in ("similar", "dissimilar")
        }
        assert len(set(totals.values())) == 1
    assert sum(drawn.counts.values()) + sum(drawn.left_out.values()) == 2 * 14
    assert sum(drawn.left_out.values()) > 0
    assert repr(drawn).startswith("<made: near-similar")


def test_ids_that_share_texts_are_one_group_however_long_the_chain():
    texts = {"a": "12", "b": "34", "c": "56", "d": "23", "e": "6", "f": "7"}
    assert linked(texts) == {"a": "a", "b": "a", "d": "a", "c": "c", "e": "c", "f": "f"}
    stories = items("storyanalogy-mc")
    assert Counter(Counter(item.group for item in stories).values()) == {1: 278, 2: 41}


def test_items_of_both_parts_or_of_one_id_or_alone_are_refused():
    one, other = made(2)
    for wrong in ([one], [one, one], [one, Item("x", "a", "b", frozenset("g"), "g", held_out=True)]):
        with pytest.raises(BadInput, match="two items or more"):
            pools_of(wrong, Counts(), nouns)
    # nothing to draw from
    assert cells(pools_of([one, other], Counts(), nouns), name="kin").choices == Choices("kin", ())


def test_terms_and_systems_are_read_and_a_mapping_is_judged_by_them():
    scan = system_pairs()
    expected = (65, 451, 21)
    assert (
        len(scan.pairs),
        sum(len(each.terms) for each in scan.pairs),
        len(scan.held_out.pairs),
    ) == expected
    assert Counter(each.kind for each in scan.pairs for _ in each.terms) == {"science": 78, "metaphor": 373}
    heat = next(each for each in scan.dev.pairs if each.id == "heat transfer | water flow")
    assert SystemTerm("kettle", "bucket") in heat.terms
    family = SystemPair(
        "f",
        "family",
        "building",
        "metaphor",
        (SystemTerm("love", "foundation", ("pillar", "cement")), SystemTerm("home", "house")),
    )
    assert mapped(family, {"love": "cement", "home": "roof"}) == 0.5 and mapped(family, {}) == 0
    with pytest.raises(BadInput, match="no target word 'house'"):
        mapped(family, {"house": "home"})


@pytest.mark.extended
def test_the_wrong_choices_are_of_known_kinds():
    def kinds(name):
        return Counter(tuple(sorted(question.kinds)) for question in choices(name).questions)

    assert kinds("storyanalogy-mc") == {("noun", "random", "random", "target"): 360}
    assert kinds("parallelparc basic") == {("random", "random", "random", "target"): 310}
    assert kinds("parallelparc advanced") == {("distractor", "random", "random, broken", "target"): 310}
    expected = {("other", "other", "other", "target"): 335, ("itself", "other", "other", "target"): 5}
    assert kinds("analobench T1 S10") == expected


def test_far_and_close_are_known_where_people_said_so():
    assert Counter(q.far for q in choices("parallelparc basic").questions) == {False: 186, True: 124}
    assert {question.far for question in choices("analobench T1 S1").questions} == {None}
