"""The benchmark as a function: results, resuming, what is refused before anything is run, and what building
and growing take.
"""

import gc
import json
import math
import re
from dataclasses import replace

import pytest
from support.beir import to_beir
from support.tiny_collection import QUESTIONS, tiny

from benchmarks.recall.growth import RETRIEVERS, SyntheticVectors, measure_retriever
from kgot_lab.benchmark.recall import bench as room
from kgot_lab.benchmark.recall.bench import DEFAULT_PLAN, run_benchmark
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import file_name
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation import runner as running
from kgot_lab.evaluation.reports import derive_reports
from kgot_lab.evaluation.results import Plan
from kgot_lab.types import Document, Query
from kgot_lab.viz.html import recall_page
from kgot_lab.viz.plots.retrieval import challenger, shown_systems

pytestmark = pytest.mark.extended

VECTORS = SyntheticVectors(64)
SOME = ("bm25", "follow", "gate", "pagerank, titles")  # quick ones


@pytest.fixture
def own(tmp_path):
    """A folder as BEIR has it."""
    return to_beir(tiny(), tmp_path / "own")


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Fewer rounds of chance than the plan of record has."""
    monkeypatch.setattr(room, "DEFAULT_PLAN", replace(DEFAULT_PLAN, rounds=200))


def told(reports) -> list[str]:
    """Reports without times and dates, which differ from run to run."""
    return ["\n".join(line for line in report.csv().splitlines()) for report in reports]


def results(folder) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.gz"))


# ----------------------------------------------------------------------------------------------------------


def test_a_folder_of_yours_is_measured_into_results_that_are_taken_again(own, tmp_path, monkeypatch):
    [first] = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=SOME)
    found = results(tmp_path / "out")
    assert found == [f"own-test/{file_name(system)}.jsonl.gz" for system in sorted({*SOME, BASELINE})]
    assert {run.system for run in first.runs} == {*SOME, BASELINE}
    assert first.plan == room.DEFAULT_PLAN == Plan.load(tmp_path / "out" / "plan.json")
    monkeypatch.setattr(running, "timed_search", lambda *_, **__: pytest.fail("run again"))
    [again] = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=SOME)
    assert again.csv() == first.csv() and again.markdown() == first.markdown() and f"{again}" == f"{first}"


def test_other_data_in_the_same_folder_are_reported_too_and_never_run_again(own, tmp_path):
    [alone] = run_benchmark(tmp_path / "out", VECTORS, names=["hotpotqa"], only=["bm25"], dev=True)
    mine, beside = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25", "lsa"])
    assert mine.dataset.name == "own/test" and told([beside]) == told([alone])
    assert set(beside.scores) == {"bm25", "convex"}
    before = results(tmp_path / "out")
    with pytest.raises(BadInput, match="also holds runs on own/test, which the report would lose"):
        run_benchmark(tmp_path / "out", VECTORS, names=["hotpotqa"], only=["lsa"], dev=True)
    (tmp_path / "out" / "hotpotqa" / "bm25.jsonl.gz").write_bytes(b"broken")
    with pytest.raises(BadInput, match=r"bm25\.jsonl\.gz is not a results file"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["follow"])
    assert results(tmp_path / "out") == before


def test_an_interrupted_benchmark_goes_on_and_gives_the_same_report(own, tmp_path):
    [whole] = run_benchmark(tmp_path / "whole", VECTORS, names=[str(own)], only=SOME)

    def stop(done, total, what):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=SOME, progress=stop)
    assert len(results(tmp_path / "out")) == 2 and gc.get_freeze_count() == 0
    [resumed] = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=SOME)
    assert told([resumed]) == told([whole])


# ----------------------------------------------------------------------------------------------------------


def test_names_that_are_not_there_are_refused_before_anything_is_written(own, tmp_path):
    with pytest.raises(UnknownName, match="unknown system of these data 'folow'; did you mean 'follow'"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25", "folow"])
    with pytest.raises(UnknownName, match="'folow, triples'"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["folow, triples"])
    with pytest.raises(UnknownName, match="unknown data set 'nosuch'"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own), "nosuch"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["broken", "other documents", "other questions", "more questions"])
def test_results_that_do_not_fit_are_refused_before_anything_is_run(own, tmp_path, monkeypatch, what):
    run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25"])
    file = own / ("corpus.jsonl" if what == "other documents" else "queries.jsonl")
    if what == "broken":
        (tmp_path / "out" / "own-test" / "bm25.jsonl.gz").write_bytes(b"\x1f\x8b broken")
    elif what == "more questions":
        file.write_text(file.read_text() + json.dumps({"_id": "q8", "text": "Who?"}) + "\n")
        (own / "qrels" / "test.tsv").write_text((own / "qrels" / "test.tsv").read_text() + "q8\td00\t1\n")
    elif what == "other questions":
        (own / "qrels" / "test.tsv").write_text(
            (own / "qrels" / "test.tsv").read_text().replace("q7\td04", "q7\td05")
        )
    else:
        file.write_text(file.read_text().replace("radium", "polonium"))
    monkeypatch.setattr(running, "timed_search", lambda *_, **__: pytest.fail("run"))
    with pytest.raises(
        BadInput,
        match=r"bm25\.jsonl\.gz (is not a results file|was made on other (documents|questions|qrels))",
    ):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25", "follow"])


def test_an_empty_corpus_and_ids_that_occur_twice_are_refused(own, tmp_path):
    whole = (own / "corpus.jsonl").read_text()
    (own / "corpus.jsonl").write_text(whole + whole.splitlines()[0] + "\n")
    with pytest.raises(BadInput, match="1 ids of documents occur more than once, for example 'd00'"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)])
    (own / "corpus.jsonl").write_text("")
    with pytest.raises(BadInput, match="there are no documents"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)])


# -----------------------------------------------------------------------------------------------------------


def test_plots_of_many_systems_name_the_baseline_the_expected_and_the_best_that_are_no_controls(
    own, tmp_path
):
    names = [name for name in systems(tiny(), VECTORS) if name not in ("static vectors", "lsa", "infonce")]
    [made] = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=names)
    named, order = shown_systems(made), [run.system for run in made.runs]
    assert len(named) == 10 and {made.plan.baseline, made.plan.expected} <= set(named)
    assert challenger(made) == made.plan.expected
    assert not any(name.startswith("control") for name in named) and named == sorted(named, key=order.index)
    better = [n for n in order[: order.index(named[-1])] if n not in named and not n.startswith("control")]
    assert not better or named[-1] in (made.plan.baseline, made.plan.expected)
    page = recall_page([made])
    assert all(f">{name}<" in page or f"{name} (" in page for name in named)
    left_out = page[page.index("Left out") : page.index("</figcaption>")]
    assert all(name in left_out for name in order if name not in named)
    assert not re.search(r"; follow, sentences[;.]", left_out)


# ---------------------------------------------------------------------------------


def test_title_pagerank_finds_the_planted_link_that_words_cannot():
    words, linked = measure_retriever("bm25", 1_000, 25), measure_retriever("title pagerank", 1_000, 25)
    assert words["recall@10"] <= 0.6 and linked["recall@10"] >= words["recall@10"] + 0.3
    assert "title pagerank" in RETRIEVERS and linked["queries"] == 25 and linked["median_ms"] > 0


def test_an_interruption_inside_a_system_loses_no_query(own, tmp_path, monkeypatch):
    [whole] = run_benchmark(tmp_path / "whole", VECTORS, names=[str(own)], only=["bm25"])
    asked = []

    def stopping(stage, query, *how):
        asked.append(query.id)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return original(stage, query, *how)

    original = running.timed_search
    monkeypatch.setattr(running, "timed_search", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25"])
    assert [path.name for path in (tmp_path / "out").rglob("*.partial")] == ["bm25.jsonl.gz.partial"]
    [resumed] = run_benchmark(tmp_path / "out", VECTORS, names=[str(own)], only=["bm25"])
    assert told([resumed]) == told([whole])
    assert sorted(asked[:4] + asked[5:13]) == sorted([*tiny().qrels, *asked[9:13]])


# stop words alone, words that no document has
SILENT = (Query("to be or not", "q0"), Query("zzz 0", "q1"), *tiny().queries[2:])


UNTITLED = tuple(replace(document, title="") for document in tiny().documents[1:])


ODD = {
    "questions that find no word, no titles, an empty document": tiny(
        queries=SILENT, documents=(Document("d00", ""), *UNTITLED)
    ),
    "one title for all": tiny(
        documents=tuple(replace(document, title="Same") for document in tiny().documents)
    ),
    "titles alone": tiny(documents=tuple(replace(document, text="") for document in tiny().documents)),
}


def test_a_bundled_name_is_that_set_even_beside_a_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hotpotqa").mkdir()
    [made] = run_benchmark(tmp_path, VECTORS, names=["hotpotqa"], only=["bm25"], dev=True)
    assert len(made.dataset.documents) == 994


def test_results_of_the_dev_questions_do_not_stand_for_all(tmp_path):
    run_benchmark(tmp_path / "out", VECTORS, names=["hotpotqa"], only=["bm25"], dev=True)
    message = r"was made on other questions.* than hotpotqa has now; name another folder"
    with pytest.raises(BadInput, match=message):
        run_benchmark(tmp_path / "out", VECTORS, names=["hotpotqa"], only=["bm25"])


def test_the_report_is_the_one_that_the_results_alone_give(tmp_path):
    [ours] = run_benchmark(tmp_path / "out", VECTORS, names=["hotpotqa"], only=["bm25"], dev=True)
    [derived] = derive_reports(tmp_path / "out", load_dataset)
    assert ours.parts == derived.parts == ("dev",) and ours.csv() == derived.csv()
    assert ours.json() == derived.json()
    assert not load_dataset("hotpotqa").test_ids & set(ours.runs[0].hits)


def test_two_folders_of_one_name_would_share_results(own, tmp_path):
    to_beir(tiny(), tmp_path / "deep" / "own")
    with pytest.raises(BadInput, match="two of the data sets are called 'own/test'"):
        run_benchmark(tmp_path / "out", VECTORS, names=[str(own), str(tmp_path / "deep" / "own")])


@pytest.mark.parametrize("what", ODD)
def test_odd_data_are_measured_like_any_other(what, tmp_path):
    data = ODD[what]
    # slow to begin with
    names = [name for name in systems(data, VECTORS) if name not in ("static vectors", "lsa", "infonce")]
    [made] = run_benchmark(
        tmp_path / "out", VECTORS, names=[str(to_beir(data, tmp_path / "own"))], only=names
    )
    assert len(made.runs) == len(names) and all(math.isfinite(row.mean) for row in made.rows)


def test_learnt_vectors_come_from_two_documents_too(tmp_path):
    qrels = {f"q{number}": {"d00": 1} for number in range(len(QUESTIONS))}
    two = tiny(documents=tiny().documents[:2], qrels=qrels)
    learnt = "static vectors", "lsa", "infonce"
    names = [str(to_beir(two, tmp_path / "own"))]
    [made] = run_benchmark(tmp_path / "out", VECTORS, names=names, only=learnt)
    assert {run.system for run in made.runs} == {*learnt, BASELINE}
