"""What the lessons say holds for what their cells compute."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.lessons import run_lesson

pytestmark = pytest.mark.extended


def lesson(number: int):
    @pytest.fixture(scope="module")
    def run() -> SimpleNamespace:
        pytest.importorskip("pandas")
        pyplot = pytest.importorskip("matplotlib.pyplot")
        names = SimpleNamespace(**run_lesson(number))
        pyplot.close("all")
        return names

    return run


lesson_40 = lesson(40)


def test_each_family_adds_a_relevant_text_to_the_smallest_case_of_lesson_40(lesson_40):
    found = {family: len({*ids} & {*lesson_40.relevant}) for family, ids in lesson_40.first.items()}
    assert found == {"dense": 1, "BM25": 1, "hybrid": 1, "RRF": 1, "graph walk": 2, "walk + delta edges": 3}
    assert lesson_40.delta > 0.2


def test_the_fusions_worked_out_in_lesson_40_are_those_of_the_package(lesson_40):
    toy_systems = lesson_40.lab.systems(lesson_40.toy, "minilm")
    for name, by_hand in (("convex", lesson_40.hybrid), ("rrf", lesson_40.rrf)):
        hits = toy_systems[name]().search(lesson_40.question).hits
        assert {hit.id: hit.score for hit in hits} == pytest.approx(dict(by_hand), abs=1e-6)


def test_signs_flipped_in_lesson_40_give_the_p_value_of_the_table_which_decides_nothing(lesson_40):
    walk = lesson_40.report.comparisons["develop"]["graph walk"]
    assert lesson_40.by_hand == pytest.approx(walk.p, abs=0.02)
    assert walk.difference.mean > 0 and walk.p_holm > 0.05


def test_lesson_40_reads_the_table_of_families_as_it_is(lesson_40):
    rows = {
        row[0].text: dict(zip(lesson_40.families_table.columns, row, strict=True))
        for row in lesson_40.families_table.rows
    }
    multi_hop = [row for name, row in rows.items() if name.startswith(("MuSiQue", "2Wiki", "HotpotQA"))]
    assert [row["graph walk"].bold for row in multi_hop] == [True, False, True, True, True]
    processes = rows["analogous processes (ParallelPARC)"]
    assert processes["delta edges add"].text.startswith("+.171 [+.057") and processes["delta edges add"].bold
    assert not processes["shuffled edges add"].bold
    assert processes["BM25"].text == processes["walk + delta edges"].text
    stories = rows["analogous stories (StoryAnalogy)"]
    assert stories["BM25"].bold and not stories["delta edges add"].bold
    for name in ("MuSiQue", "HotpotQA"):
        assert rows[name]["delta edges add"].text.startswith("−") and rows[name]["delta edges add"].bold
