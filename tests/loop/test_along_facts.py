"""The mode `paths` over a graph of one's own: typed facts are read as lines, alone or beside sentences, and
the evidence names them.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from loop.test_along import EACH_LANGUAGE, PLAIN, Told, of

from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Event, Read, Refused
from kgot_lab.loop.replay.replay import verify
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE as SAYS
from kgot_lab.stores import open_store
from kgot_lab.stores.files import read_named_graph
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Document, Edge, Node

WHERE = "In which town was the founder of Ulm Works born?"
OWN = PropertyGraph.of(
    [
        Node("Ulm Works"),
        Node("Hans Weber", properties={"born": 1869}),
        Node("Jena"),
        Node("Oslo"),
        Node("Kari Lund"),
    ],
    [
        Edge("Ulm Works", "founded by", "Hans Weber"),
        Edge("Hans Weber", "born in", "Jena"),
        Edge("Kari Lund", "born in", "Oslo"),
    ],
)


def asked_over(
    graph: PropertyGraph, question: str, answer: str, trace: Path, kind: str = "in_memory", tools=()
) -> list[Event]:
    with closing(open_store(kind)) as store:
        store.apply(Diff(added_nodes=tuple(graph.nodes), added_edges=tuple(graph.edges)))
        return list(record(think(question, Told({question: answer}), store, list(tools), PLAIN), trace))


@pytest.mark.parametrize("kind", EACH_LANGUAGE)
def test_the_facts_of_a_graph_of_ones_own_are_read_along_and_cited_and_the_run_is_verified(
    kind: str, tmp_path: Path
) -> None:
    trace = tmp_path / "run.jsonl"
    events = asked_over(OWN, WHERE, "Jena", trace, kind)
    final = events[-1]
    assert isinstance(final, Answered) and final.text == "Jena" and not final.forced
    assert "Ulm Works --[founded by]--> Hans Weber" in final.evidence
    assert "Hans Weber --[born in]--> Jena" in final.evidence
    shown = of(events, Asked)[0].prompt.messages[-1].text
    assert "Ulm Works founded by Hans Weber\nHans Weber born in Jena" in shown and "Oslo" not in shown
    assert any(row.get("object") == "Jena" for read in of(events, Read) for row in read.rows)
    assert verify(load_run(trace)) is None


def test_what_a_node_says_of_itself_is_a_fact_too(tmp_path: Path) -> None:
    question = "When was Hans Weber born?"
    final = asked_over(OWN, question, "1869", tmp_path / "run.jsonl")[-1]
    assert isinstance(final, Answered) and not final.forced
    assert "Hans Weber --[born]--> 1869" in final.evidence


def test_a_turtle_file_whose_names_have_underscores_is_read_likewise(tmp_path: Path) -> None:
    (tmp_path / "own.ttl").write_text(
        "@prefix : <http://example.org/> .\n:Ulm_Works :foundedBy :Hans_Weber . :Hans_Weber :bornIn :Jena ; :born 1869 .\n"
    )
    final = asked_over(read_named_graph(tmp_path / "own.ttl").graph, WHERE, "Jena", tmp_path / "run.jsonl")[
        -1
    ]
    assert isinstance(final, Answered) and not final.forced
    assert "Hans_Weber --[bornIn]--> Jena" in final.evidence


@pytest.mark.parametrize("kind", EACH_LANGUAGE)
def test_a_fact_may_lead_to_a_sentence_in_a_graph_that_holds_both(kind: str, tmp_path: Path) -> None:
    said = {"sentence": "He was born in Jena.", "source": "d1"}
    mixed = PropertyGraph.of(
        [Node("Ulm Works"), Node("Hans Weber"), Node("Hans Weber §1")],
        [Edge("Ulm Works", "founded by", "Hans Weber"), Edge("Hans Weber", SAYS, "Hans Weber §1", said)],
    )
    final = asked_over(mixed, WHERE, "Jena", tmp_path / "run.jsonl", kind)[-1]
    assert isinstance(final, Answered) and final.text == "Jena" and not final.forced
    assert {"Ulm Works --[founded by]--> Hans Weber", f"Hans Weber --[{SAYS}]--> Hans Weber §1"} <= set(
        final.evidence
    )
    assert verify(load_run(tmp_path / "run.jsonl")) is None


def test_facts_and_documents_are_read_together(tmp_path: Path) -> None:
    passages = [Document("d1", "Hans Weber was born in Jena.", "Hans Weber")]
    founded = PropertyGraph.of(
        [Node("Ulm Works"), Node("Hans Weber")], [Edge("Ulm Works", "founded by", "Hans Weber")]
    )
    final = asked_over(
        founded, WHERE, "Jena", tmp_path / "run.jsonl", tools=[search(passages, bm25(passages), k=1)]
    )[-1]
    assert isinstance(final, Answered) and final.text == "Jena" and not final.forced
    assert "d1" in final.passages


def test_a_graph_in_which_nothing_can_be_used_is_said_to_be_one(tmp_path: Path) -> None:
    events = asked_over(OWN, "Who paints?", "nobody", tmp_path / "run.jsonl")
    assert ["no name in the graph that was given" in each.reason for each in of(events, Refused)] == [True]
    assert isinstance(events[-1], Answered) and events[-1].forced and not events[-1].evidence
