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


STAFF = """Employee name,Date of birth,Home town,Home phone,Honey (kg),Reports to,Note
Ansel Pike,1984-02-11,New Quay,NULL,37,Dorothea Lamm,came late; left early
"Tam ""Tiny"" Boyle",1990-01-01,Oban,0714,12,Ansel Pike,
O'Neil Casey,1977-05-05,Leeds,n/a,5,"Tam ""Tiny"" Boyle",TRUE
"""


def test_relations_and_properties_of_rows_have_the_whole_names_of_the_columns(tmp_path):
    (tmp_path / "staff.csv").write_text(STAFF)
    (tmp_path / "stock.csv").write_text("Plant,Home\nRose,Osk\nFern,Gull Bay\n")
    graph = entity_graph(read_documents(tmp_path).documents)
    assert relations(graph) == {
        ("Ansel Pike", "home town", "New Quay"), ("Ansel Pike", "reports to", "Dorothea Lamm"),
        ('Tam "Tiny" Boyle', "home town", "Oban"), ('Tam "Tiny" Boyle', "reports to", "Ansel Pike"),
        ("O'Neil Casey", "home town", "Leeds"), ("O'Neil Casey", "reports to", 'Tam "Tiny" Boyle'),
        ("Rose", "home", "Osk"), ("Fern", "home", "Gull Bay"),
    }  # fmt: skip
    assert dict(graph.node("Ansel Pike").properties) == {
        "date of birth": "1984-02-11", "honey (kg)": "37", "note": "came late; left early",
    }  # fmt: skip
    assert graph.node("O'Neil Casey").properties["note"] == "TRUE" and "TRUE" not in graph.ids


@pytest.mark.parametrize(
    "text", ["Warning: mind the step\n\nNote: bring keys", "Otto (my uncle): he left in 1910."]
)
def test_a_line_with_a_colon_is_no_row(text):
    graph = entity_graph([Document("d", text, "Notes")])
    assert not relations(graph) and not any(set(node.properties) - {"aliases"} for node in graph.nodes)


def test_a_title_that_is_a_name_in_its_sentences_is_an_entity_with_its_relations():
    pytest.importorskip("spacy")
    text = "Otto Lindqvist works for the Halvorsen Foundation. Otto Lindqvist lives in Umeå."
    graphs = [entity_graph([Document("d", text, title)]) for title in ("Notes", "Otto Lindqvist")]
    assert relations(graphs[0]) == relations(graphs[1]) >= {("Otto Lindqvist", "lives in", "Umeå")}
    assert graphs[1].node("Otto Lindqvist").labels == ("Person", "Entity", "Document")
    assert "Otto Lindqvist" in show_graph(graphs[1], hidden=SCAFFOLD).picture.positions


@pytest.mark.parametrize(
    ("text", "word", "person"),
    [
        ("Walter Crane lives in Leeds. Crane married Anna Bell.", "Crane", "Walter Crane"),
        ("Ida Berg came from Leeds. Later Ida wrote to Anna Bell.", "Ida", "Ida Berg"),
        ("Walter Crane lives in Leeds. Ada Crane lives in Leeds. Crane married Anna Bell.", "Crane", None),
        ("George York lives in Leeds. Anna Bell saw George York in York.", "York", None),
        ("Dr Jane Frost lives in Leeds. Frost met Anna Bell.", "Frost", "Dr Jane Frost"),
        ("Crane married Anna Bell. Walter Crane lives in Leeds.", "Crane", None),
        ("Walter Crane lives in Leeds. Crane drivers moved the crane.", "Crane", None),
    ],
)
def test_one_word_of_the_name_of_a_person_is_that_person_if_no_other_may_be_meant(text, word, person):
    pytest.importorskip("spacy")
    graph = entity_graph([Document("d", text, "Notes")])
    called = {node.id: node.properties.get("aliases", []) for node in graph.nodes}
    assert [id for id, aliases in called.items() if word in aliases] == ([person] if person else [])
    assert not person or any(e.source == person and e.target == "Anna Bell" for e in graph.edges)


def test_a_kind_that_is_not_sure_is_not_told():
    pytest.importorskip("spacy")
    text = "Eleanor Wainwright founded Wainwright Tools in Sheffield. The van is stored in Kelso. FYI the NDA is attached."
    graph = entity_graph([Document("d", text, "Notes")])
    kinds = {node.id: node.labels[0] for node in graph.nodes}
    assert kinds["Wainwright Tools"] == "Organisation" and kinds["Eleanor Wainwright"] == "Person"
    assert kinds["NDA"] == kinds["Kelso"] == "Entity" and "FYI" not in kinds


def test_documents_and_sentences_are_hidden_and_can_be_shown():
    graph = entity_graph([Document("d", "Odo Castrell lives in Gull Bay.", "Letter")])
    assert is_entity_graph(graph)
    view = show_graph(graph, hidden=SCAFFOLD)
    assert set(view.picture.positions) == {"Odo Castrell", "Gull Bay"}
    assert view.live.data["hidden"] == list(SCAFFOLD) and len(view.live.data["nodes"]) == 4
    assert set(show_graph(graph, hidden=SCAFFOLD, most=3).graph.ids) == {"Odo Castrell", "Gull Bay"}
