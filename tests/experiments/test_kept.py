"""What the receipts of structure say, looked up: the numbers of the tables, and the texts on processes."""

import gzip
import json
from pathlib import Path

from benchmarks.structure.kept import kept_edges
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
    assert (good["right"], good["precision"], good["recall"], good["prevalence"], good["times lot"]) == (
        2,
        "50.00%",
        "20%",
        "1.000%",
        50,
    )
    assert (none["edges"], none["precision"], none["times lot"]) == (0, "0.00%", 0)
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
