"""The table of the five retrieval families: systems of the package, per-query results, recomputed numbers."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.tiny_collection import tiny
from typer.testing import CliRunner

from benchmarks.recall.growth import SyntheticVectors
from kgot_lab.analogy.delta_edges import DELTA_EDGE
from kgot_lab.benchmark.recall.bench import (
    FAMILIES,
    FAMILY_SETS,
    FAMILY_SYSTEMS,
    WITH_EDGES,
    WITHOUT_EDGES,
    bench_families,
    family_table,
)
from kgot_lab.benchmark.recall.datasets import BUNDLED, load_dataset
from kgot_lab.benchmark.recall.systems import systems
from kgot_lab.cli.app import app
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import derive_reports
from kgot_lab.evaluation.results import load_results
from kgot_lab.evaluation.runs import timed_search
from kgot_lab.types import Edge

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "families"
EDGES = (Edge("d01", DELTA_EDGE, "d08", {"weight": 0.3}), Edge("d03", DELTA_EDGE, "d09", {"weight": 0.2}))
TINY = replace(tiny(isomorphic=EDGES, test_ids=frozenset({"q0", "q1"})), name="tiny")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with results on a tiny set."""
    monkeypatch.setitem(BUNDLED, "tiny", lambda: TINY)
    monkeypatch.setitem(BUNDLED, "plain", lambda: replace(TINY, name="plain", isomorphic=()))
    bench_families(tmp_path, names=["tiny", "plain"], embedder=SyntheticVectors(64))
    return tmp_path


def test_every_family_is_a_system_that_the_package_offers():
    assert set(FAMILY_SYSTEMS) <= set(systems(TINY, SyntheticVectors(64)))
    assert {WITHOUT_EDGES, WITH_EDGES} < set(FAMILIES.values()) and set(FAMILY_SETS) <= set(BUNDLED)


def test_the_table_is_recomputed_from_per_query_results_without_running_anything(folder, monkeypatch):
    measured = bench_families(folder, names=["tiny"], embedder=SyntheticVectors(64))
    monkeypatch.setattr("kgot_lab.benchmark.recall.bench.run_benchmark", None)  # nothing can run
    assert bench_families(folder, table=True) == measured
    by_set = {row[0].text: row for row in measured.rows}
    # the questions of the test split
    assert set(by_set) == {"tiny", "plain"} and by_set["tiny"][2].text == "2"
    assert by_set["plain"][-2].text == "not computed" and by_set["plain"][-3].text == ""
    assert "[" in by_set["tiny"][-2].text


def test_a_value_of_the_table_is_the_mean_over_the_test_split_of_the_stored_hits(folder):
    (report,) = [report for report in derive_reports(folder, load_dataset) if report.dataset.name == "tiny"]
    kept = load_results(folder / "tiny" / "bm25.jsonl.gz")
    recall = [
        len(set(kept.ids(query)[:5]) & set(TINY.qrels[query])) / len(TINY.qrels[query])
        for query in sorted(TINY.test_ids)
    ]
    (row,) = family_table([report]).rows
    assert float(row[4].text.split(" ")[0]) == pytest.approx(sum(recall) / 2, abs=5e-4)


def test_the_command_recomputes_the_table_and_refuses_what_does_not_go_with_it(folder):
    done = CliRunner().invoke(app, ["bench", "--families", "--table", "--folder", str(folder)])
    assert done.exit_code == 0 and "walk + delta edges" in done.output
    found = (folder / "summary.md").read_text(encoding="utf-8")
    assert found == bench_families(folder, table=True).markdown + "\n"
    for wrong in (["--families", "--dev"], ["--table"]):
        assert CliRunner().invoke(app, ["bench", *wrong]).exit_code != 0


@pytest.mark.parametrize("name, test", [("parallelparc", 70), ("storyanalogy-mc", 100), ("cookbook", 66)])
def test_a_set_beside_the_questions_has_its_split_and_excludes_the_text_that_asks(name, test):
    data = load_dataset(name)
    assert len(data.test_ids) == test and set(data.qrels) == {query.id for query in data.queries}
    known = {document.id for document in data.documents}
    for query in data.queries:
        excluded = data.excluded.get(query.id, frozenset())
        assert excluded <= known and not excluded & set(data.qrels[query.id])
        assert name == "cookbook" or query.id in excluded


def test_an_excluded_document_is_in_no_result_and_the_next_one_takes_its_place(tmp_path):
    query = TINY.queries[0]
    stage = systems(TINY, SyntheticVectors(64))["bm25"]()
    first, *others = [hit.id for hit in timed_search(stage, query, 5)[0]]
    data = replace(TINY, excluded={query.id: frozenset({first})})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BUNDLED, "tiny", lambda: data)
        bench_families(tmp_path, names=["tiny"], embedder=SyntheticVectors(64))
    kept = load_results(tmp_path / "tiny" / "bm25.jsonl.gz").ids(query.id)
    assert kept[: len(others)] == others and first not in kept


def test_results_of_other_data_are_refused(folder):
    BUNDLED["tiny"] = lambda: replace(TINY, documents=TINY.documents[:-1])
    with pytest.raises(BadInput):
        bench_families(folder, table=True)
