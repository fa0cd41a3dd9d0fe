"""What the results of structure say, looked up: the numbers of the tables, and the texts on processes."""

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.structure.kept import KeptAnswers, kept_edges, sure
from benchmarks.structure.tables import gains
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.types import Edge
from notebooks.analogy_texts import processes

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "structure"


def test_edges_are_held_against_the_lot(tmp_path):
    rows = [
        {
            "set": "s",
            "system": "good",
            "part": "develop",
            "edges": 4,
            "right": [[1, 2], [3, 4]],
            "analogous": 10,
            "pairs": 1000,
        },
        {
            "set": "s",
            "system": "none",
            "part": "locked",
            "edges": 0,
            "right": [],
            "analogous": 10,
            "pairs": 1000,
        },
    ]
    (tmp_path / "edges.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    )
    good, none = kept_edges(tmp_path)
    found = (good["right"], good["precision"], good["recall"], good["prevalence"], good["times chance"])
    assert found == (2, "50.00%", "20%", "1.000%", 50)
    assert (none["edges"], none["precision"], none["times chance"]) == (0, "0.00%", 0)
    assert len(kept_edges(RESULTS)) > 20


def test_each_text_on_a_process_is_a_node_and_each_first_pair_across_fields_is_known():
    found = processes()
    nodes = found.graph.nodes
    pairs = [Edge(one.id, "like", other.id) for one, other in zip(nodes[::2], nodes[1::2], strict=True)]
    assert len(nodes) > 100 and not found.graph.edges
    by_id = {node.id: node for node in nodes}
    partners = [Edge(id, "like", id.replace("source", "target")) for id in by_id if id.endswith(" source")]
    assert len(partners) == len(pairs) and all(map(found.is_known, partners))
    assert not found.is_known(Edge(partners[0].source, "like", partners[1].target))


@pytest.fixture(scope="module")
def answers():
    return KeptAnswers.of(RESULTS)


@pytest.mark.extended
def test_a_set_a_system_or_a_folder_that_is_not_there_is_refused(answers, tmp_path):
    with pytest.raises(UnknownName, match="nowhere"):
        answers.accuracy("nowhere", "surface")
    with pytest.raises(UnknownName, match="nobody"):
        answers.accuracy("storyanalogy-mc", "nobody")
    for read in (KeptAnswers.of, kept_edges):
        with pytest.raises(BadInput):
            read(tmp_path)


def test_only_what_is_beyond_chance_after_the_correction_is_sure():
    rows = [
        {"set": name, "gain": gain, "p": 0.01, "p Holm": p}
        for name, gain, p in (("a", 1, 0.01), ("b", 1, 0.06), ("c", -1, 0.02))
    ]
    assert sure(rows) == {"better": ["a"], "worse": ["c"]}


@pytest.mark.extended
def test_the_gains_are_those_of_the_report(answers):
    sets = [answers.sets[name] for name in sorted(answers.sets) if "skeletons of" not in name]
    table = {row[0].text: [cell.text for cell in row] for row in gains("aligned", sets, fitted=False).rows}
    rows = answers.gains("aligned")
    assert {row["set"] for row in rows} == set(table) and len(rows) > 5
    for row in rows:
        _, rival, own, *_ = table[row["set"]]
        assert row["best control"] == rival and float(own) == row["own"]


@pytest.mark.extended
def test_the_shares_of_the_cells_are_those_of_their_questions(answers):
    shares = answers.by_cell("storyanalogy-mc", "surface")
    questions, _ = answers.sets["storyanalogy-mc cells"]
    assert set(shares) == {*questions.cells, "matched"} and len(shares) == 5
    sizes = {cell: len(ids) for cell, ids in questions.cells.items()}
    whole = sum(shares[cell] * size for cell, size in sizes.items()) / sum(sizes.values())
    assert whole == pytest.approx(answers.accuracy("storyanalogy-mc cells", "surface"))
