"""The graph of a folder: entities with their kinds, and relations in place of what was written by rule."""

import pytest

from kgot_lab.documents.folder import read_documents
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.extraction.entity_graph import SCAFFOLD, entity_graph, is_entity_graph
from kgot_lab.types import Document
from kgot_lab.viz.graph.view import show_graph


def relations(graph):
    return {(e.source, e.type, e.target) for e in graph.edges if e.type not in ("says", "mentions")}


def test_the_verb_relates_two_names_and_the_sentence_is_at_the_edge():
    pytest.importorskip("spacy")
    graph = entity_graph(read_documents(bundled_path("own-folder/allotment")).documents)
    assert {
        ("Plot 1", "belongs to", "Olive Tarn"),
        ("Olive Tarn", "keeps key of", "north shed"),
        ("new water pump", "stands in", "north shed"),
    } <= relations(graph)
    assert graph.node("Olive Tarn").labels == ("Person", "Entity")
    edge = next(edge for edge in graph.edges if edge.type == "belongs to")
    assert "belongs to" in edge.properties["sentence"] and edge.properties["source"]
    assert not {"Dear", "Should", "Nine", "Eleven", "May"} & set(graph.ids) and all(graph.node_labels)


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("| Belt & Sons: part casing; town Gull Bay |", ("Belt & Sons", "town", "Gull Bay")),
        ("Greta Lindholm leitet die Werft in Osk.", ("Greta Lindholm", "leitet die Werft in", "Osk")),
        ("林书远在青石镇。林书远到过青石镇。", ("林书远", "together", "青石镇")),
    ],
)
def test_a_table_and_a_sentence_in_another_language_relate_names_too(text, relation):
    assert relation in relations(entity_graph([Document("d", text, "Notes")]))


@pytest.mark.parametrize("text", ["LOCATION:St Mary", "ADDRESS:St Mary Road", "LOCATION: New York City Hall"])
def test_names_that_the_parser_puts_in_two_sentences_are_not_related(text):
    pytest.importorskip("spacy")
    assert entity_graph([Document("d", text, "Calendar")]).ids


def test_documents_and_sentences_are_hidden_and_can_be_shown():
    graph = entity_graph([Document("d", "Odo Castrell lives in Gull Bay.", "Letter")])
    assert is_entity_graph(graph)
    view = show_graph(graph, hidden=SCAFFOLD)
    assert set(view.picture.positions) == {"Odo Castrell", "Gull Bay"}
    assert view.live.data["hidden"] == list(SCAFFOLD) and len(view.live.data["nodes"]) == 4
    assert set(show_graph(graph, hidden=SCAFFOLD, most=3).graph.ids) == {"Odo Castrell", "Gull Bay"}
