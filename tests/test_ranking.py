import copy
import pickle
import random
import re

import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.dense import best_sentence, dense
from kgot_lab.retrieval.fusion import merge_rankings, rows_and_scores, weighted
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Hit, HitColumns, Query, Ranking, ranked

IDS = ["a", "b", "c", "d"]
TUPLE = (Hit("c", 0.5), Hit("a", 0.25), Hit("d", -1.0))


def found(rows=(2, 0, 3), scores=(0.5, 0.25, -1.0), kind=np.float32) -> HitColumns:
    return HitColumns(IDS, np.array(rows, np.int64), np.array(scores, kind))


# --------------------------------------------------------------------------------------------------


def test_hits_in_columns_equal_the_tuple_of_the_same_hits():
    for one, other in ((found(), TUPLE), (TUPLE, found()), (found(), found(kind=np.float64))):
        assert one == other
    assert found() != TUPLE[:2]
    assert found() != found(scores=(0.5, 0.25, -2.0))
    assert found() != found(rows=(2, 1, 3))
    assert hash(found()) == hash(TUPLE) and {found(): 1}[TUPLE] == 1
    assert repr(found()) == repr(TUPLE)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_hits_are_made_of_texts_and_plain_numbers(kind):
    for hit in [*found(kind=kind), found(kind=kind)[0]]:
        assert type(hit) is Hit and type(hit.id) is str and type(hit.score) is float


@pytest.mark.parametrize("index", [0, 2, -1, -3])
def test_a_hit_is_found_by_its_place(index):
    assert found()[index] == TUPLE[index]


@pytest.mark.parametrize("index", [3, -4])
def test_a_place_that_is_not_there_is_refused(index):
    with pytest.raises(IndexError):
        found()[index]


@every(
    "part",
    [slice(2), slice(0), slice(1, None), slice(-1, None), slice(None, None, -1), slice(0, 9, 2), slice(9, 9)],
)
def test_a_slice_is_as_that_of_a_tuple_and_stays_in_columns(part):
    assert isinstance(found()[part], HitColumns)
    assert found()[part] == TUPLE[part]
    assert len(found()[part]) == len(TUPLE[part])


def test_hits_in_columns_can_be_read_like_a_tuple():
    hits = found()
    assert list(hits) == list(TUPLE) and list(reversed(hits)) == list(reversed(TUPLE))
    assert Hit("a", 0.25) in hits
    assert Hit("a", 0.5) not in hits
    assert hits.index(Hit("d", -1.0)) == 2
    assert hits.count(Hit("c", 0.5)) == 1


# ---------------------------------------------------------------------------------------------------


def ranking_of(hits, system="retriever") -> Ranking:
    return Ranking(Query("?"), hits, system)


def test_a_hit_that_is_no_document_is_refused_by_name():
    for hits in (found(), TUPLE):
        with pytest.raises(BadInput, match="retriever found 'd', which is none of the documents"):
            rows_and_scores(ranking_of(hits), ["c", "a"])


def test_nothing_is_gathered_from_nothing():
    assert merge_rankings([]) == ([], [])
    assert merge_rankings([ranking_of(())])[0] == []


def test_columns_and_hits_fuse_to_the_same_ranking():
    columned, plain = (
        Stage("retriever", lambda ranking, hits=hits: Ranking(ranking.query, hits))
        for hits in (found(), TUPLE)
    )
    other = Stage("other", lambda ranking: ranked(ranking.query, {"b": 2, "c": 1}))
    assert weighted((0.7, columned), (0.3, other)).search("?") == weighted((0.7, plain), (0.3, other)).search(
        "?"
    )


# ------------------------------------------------------------------------------------------------------


class Compass:
    """An embedder of eight directions, told by first letter and length, so that many texts are equally near."""

    name = digest = "compass"
    dimension = 2

    def embed(self, texts):
        turns = [(ord(text[0]) + len(text)) % 8 / 4 * np.pi if text.strip(". ") else None for text in texts]
        return np.array(
            [[0, 0] if turn is None else [np.cos(turn), np.sin(turn)] for turn in turns], np.float32
        ).reshape(len(texts), 2)


def of_chance(seed: int) -> list[Document]:
    chance = random.Random(seed)
    sizes = [chance.randint(0, 4) for _ in range(chance.randint(1, 30))]
    texts = [
        " ".join(chance.choice("ABCDEFGH") * chance.randint(1, 4) + chance.choice(".!?") for _ in range(size))
        for size in sizes
    ]
    return [Document(f"d{n}", text, chance.choice(["", "", "T" * n])) for n, text in enumerate(texts)]


@every("retriever", [dense, best_sentence])
@every("seed", range(10))
def test_keeping_the_best_is_the_same_as_cutting_them_from_all(retriever, seed):
    documents = of_chance(seed)
    for question in ("A", "BCD", "what?"):
        everything = retriever(documents, Compass()).search(question).hits
        assert [hit.id for hit in everything] == sorted(
            (hit.id for hit in everything), key=lambda id: (-dict(everything)[id], id)
        )
        assert len(everything) == len(documents)
        for keep in range(1, len(documents) + 3):
            assert retriever(documents, Compass(), keep=keep).search(question).hits == everything[:keep]


def test_a_blank_question_is_near_nothing_and_keeping_none_is_refused():
    for retriever in (dense, best_sentence):
        assert (
            retriever(of_chance(0), Compass()).search(" \n").hits
            == ()
            == retriever(of_chance(0), Compass(), keep=2).search("").hits
        )
        assert (
            repr(retriever(of_chance(0), Compass(), keep=2))
            == f"<{retriever(of_chance(0), Compass()).name} % 2>"
        )
        with pytest.raises(BadInput, match="1 or more"):
            retriever(of_chance(0), Compass(), keep=0)
        with pytest.raises(BadInput, match="no documents"):
            retriever([], Compass())


# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hits", [TUPLE, found()], ids=["tuple", "columns"])
def test_a_ranking_prints_its_query_its_system_and_its_first_hits(hits):
    assert repr(Ranking(Query("who?"), hits, "bm25")).splitlines() == [
        "<Ranking by bm25: 3 hits for “who?”>", "  1        0.5  c", "  2       0.25  a", "  3         -1  d",
    ]  # fmt: skip


def test_of_a_long_ranking_the_rest_is_counted_and_texts_of_others_stay_on_their_line():
    evil = "x\n\x1b[2J\u202e\ud800"
    made = repr(Ranking(Query(evil), tuple(Hit(f"{evil}{n}", -float(n)) for n in range(2000)), evil))
    assert made.endswith("\n     … and 1,995 more") and len(made.splitlines()) == 7
    assert all(line.isprintable() for line in made.split("\n")) and "\\x1b[2J" in made


def test_a_copy_for_another_process_is_the_tuple_without_the_other_ids():
    for copied in (pickle.loads(pickle.dumps(found())), copy.deepcopy(found()), copy.copy(found())):
        assert type(copied) is tuple and copied == TUPLE
    assert (
        len(pickle.dumps(HitColumns([str(n) for n in range(10_000)], np.array([7]), np.array([1.0])))) < 200
    )


@every("seed", range(20))
def test_gathered_rows_lead_back_to_every_hit(seed):
    chance = np.random.default_rng(seed)
    shared, rankings = [f"d{n}" for n in range(30)], []
    for retriever in range(3):
        rows = chance.permutation(30)[: chance.integers(0, 31)]
        scores = np.sort(chance.normal(size=len(rows)))[::-1]
        hits = HitColumns(shared if seed % 2 or retriever else [f"d{n}" for n in range(30)], rows, scores)
        rankings.append(ranking_of(tuple(hits) if seed % 3 == 0 and retriever == 1 else hits))
    ids, lists = merge_rankings(rankings)
    assert set(ids) >= {id for ranking in rankings for id in ranking.ids} and len(set(ids)) == len(ids)
    for ranking, (rows, scores) in zip(rankings, lists, strict=True):
        assert (
            tuple(Hit(ids[row], score) for row, score in zip(rows, scores.tolist(), strict=True))
            == ranking.hits
        )


@every("seed", range(10))
def test_a_document_is_as_near_as_the_nearest_of_its_sentences_after_its_title(seed):
    documents, compass = of_chance(seed), Compass()
    retriever = best_sentence(documents, compass)
    for question in ("A", "BCD"):
        asked, expected = compass.embed([question])[0], {}
        for document in documents:
            parts = [part.strip() for part in re.findall(r"[^.!?]*[.!?]", document.text)] or [""]
            texts = [f"{document.title}. {part}" if document.title else part for part in parts]
            expected[document.id] = max(float(vector @ asked) for vector in compass.embed(texts))
        found = retriever.search(question)
        assert dict(found.hits) == pytest.approx(expected, abs=1e-6) and len(found.hits) == len(documents)


def test_the_sentences_of_real_passages_are_told_apart_and_none_is_lost():
    text = 'Ada wrote. "So it is", or not? (Not so) Then, at 3 p.m. she left the U.S. 20 years on!  Fin'
    asked = []

    class Asked(Compass):
        def embed(self, texts):
            asked.extend(texts)
            return super().embed(texts)

    best_sentence([Document("a", text, "Ada")], Asked())
    parts = [
        "Ada wrote.",
        '"So it is", or not?',
        "(Not so) Then, at 3 p.m. she left the U.S.",
        "20 years on!",
        "Fin",
    ]
    assert asked == [f"Ada. {part}" for part in parts]
