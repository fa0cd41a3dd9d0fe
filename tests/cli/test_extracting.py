"""An extraction that goes on writes over no other graph."""

import pytest

from kgot_lab.cli.answering import extract_graph
from kgot_lab.cli.configuration import Configuration
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.loop.events import Started
from kgot_lab.loop.trace import record
from kgot_lab.types import Node


def test_another_graph_is_not_lost_when_an_extraction_goes_on(tmp_path):
    out, trace = tmp_path / "graph.jsonl", tmp_path / "run.jsonl"
    (tmp_path / "a.txt").write_text("Ada was born in London.", encoding="utf-8")
    write_snapshot(PropertyGraph.of([Node("of another run")], []), out, variant="networkx")
    list(
        record(
            [Started(question="", limits={"preset": "local"}, dialect="Python", planning="m", execution="m")],
            trace,
        )
    )
    held = out.read_bytes()
    with pytest.raises(BadInput, match="holds another graph"):
        extract_graph(tmp_path / "a.txt", Configuration(), out, trace, {}, is_resumed=True)
    assert out.read_bytes() == held
