"""A folder of graphs: what lies in it is a graph, or it is told why not."""

from __future__ import annotations

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.experts import graph_folder
from kgot_lab.experts.graph_folder import GraphFolder

LINES = '{"type": "node", "id": "a", "labels": ["thing"], "properties": {"name": "Alpha"}}\n'


def test_what_is_offered_as_no_graph_is_told_with_the_reason(tmp_path):
    for name in ("fine.json", "two words.json", "图.json", ".hidden.json", "twin.json"):
        (tmp_path / name).write_text(LINES)
    (tmp_path / "note.md").write_text("# A note")
    (tmp_path / "twin").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "fine.json")
    folder = GraphFolder(tmp_path)
    assert folder.names() == ("fine", "twin")
    told = folder.skipped_entries()
    names = [line.split("'")[1] for line in told]
    assert names == ["link.json", "note.md", "twin", "two words.json", "图.json"]
    for line, words in zip(
        told, ("a link", "into a folder", "same name as twin.json", "no id", "no id"), strict=True
    ):
        assert words in line


def test_a_graph_without_nodes_is_refused_by_its_name_each_time(tmp_path):
    (tmp_path / "hollow.json").write_text("")
    folder = GraphFolder(tmp_path)
    for _ in range(2):
        with pytest.raises(BadInput, match="graph hollow cannot be read: the graph is empty"):
            folder.graph("hollow")
    (tmp_path / "hollow.json").write_text(LINES)
    assert len(folder.graph("hollow")) == 1


def test_a_graph_in_another_form_of_json_is_told_which_form_is_read(tmp_path):
    (tmp_path / "mine.json").write_text('{"things": [], "ways": []}')
    (tmp_path / "table.csv").write_text("who,whom\nada,bob\n")
    for name, words in (
        ("mine", "one a line, as in"),
        ("table", "table, line 1: the first line names the columns"),
    ):
        with pytest.raises(BadInput, match=words) as refused:
            GraphFolder(tmp_path).graph(name)
        assert str(tmp_path) not in str(refused.value)


def test_a_table_of_edges_and_node_link_json_are_graphs_of_the_folder(tmp_path):
    (tmp_path / "table.csv").write_text("from,relation,to\nada,knows,bob\n")
    (tmp_path / "links.json").write_text(
        '{"nodes": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}], "edges": [{"from": 1, "to": 2}]}'
    )
    folder = GraphFolder(tmp_path)
    assert folder.names() == ("links", "table")
    assert folder.graph("table").ids == ("ada", "bob") and set(folder.graph("links").ids) == {"Ada", "Bob"}


@pytest.mark.extended
def test_a_file_that_changed_inside_a_folder_counts_at_once(tmp_path):
    notes = tmp_path / "notes" / "deep"
    notes.mkdir(parents=True)
    (notes / "one.md").write_text("# Rust\n\nBridges rust.\n")
    folder = GraphFolder(tmp_path)
    before = folder.graph("notes")
    assert folder.graph("notes") is before
    (notes / "one.md").write_text("# Zebra\n\nA crossing.\n")
    assert "Zebra" in {known["name"] for known in folder.graph("notes").node_properties}


def test_a_file_that_cannot_be_opened_is_told_without_its_place(tmp_path, monkeypatch):
    (tmp_path / "shut.json").write_text(LINES)

    def refused(where, say):
        raise PermissionError(13, "Permission denied", where)

    monkeypatch.setattr(graph_folder, "load_graph", refused)
    with pytest.raises(BadInput, match=r"graph shut cannot be read: Permission denied$"):
        GraphFolder(tmp_path).graph("shut")
