"""Snapshots of the Knowledge Graph of Thoughts project, read and written."""

import json
import random

import pytest

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.io.files import bundled_path
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Edge, Node

FIVE = sorted(bundled_path("kgot-snapshots").glob("data_*.json"))
SIZES = {"data_0": (11, 10), "data_1": (9, 8), "data_2": (1, 0), "data_3": (10, 0), "data_4": (6, 5)}


def random_graph(seed: int) -> PropertyGraph:
    """Loops, parallel edges, several labels, keys that are numbers and keys that are not."""
    chance = random.Random(seed)
    properties = [{}, {}, {"id": 1.0}, {"type": None, "labels": [True, {"x": "y"}]}, {"label": "", "key": 0}]
    labels = [tuple(chance.sample("ABC", chance.randrange(4))) for _ in range(8)]
    nodes = [Node(f"n{i}", labels[i], chance.choice(properties)) for i in range(8)]
    edges: dict[tuple[str, ...], Edge] = {}
    for _ in range(30):
        source = chance.choice(nodes).id
        target = chance.choice(nodes).id
        key = chance.choice(["", "", "0", "7", "07", "k"])
        edge = Edge(source, chance.choice("pq"), target, chance.choice(properties), key)
        edges[edge.identity] = edge
    return PropertyGraph.of(nodes, edges.values())


def written(tmp_path, *records) -> PropertyGraph:
    path = tmp_path / "snapshot.json"
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_graph(path)


def a_node(id, **more):
    return {"type": "node", "id": id, **more}


def an_edge(start, label, end, **more):
    return {"type": "relationship", "label": label, "start": a_node(start), "end": a_node(end), **more}


@pytest.mark.parametrize("path", FIVE, ids=lambda path: path.stem)
def test_the_five_published_snapshots_come_back_byte_for_byte(path, tmp_path):
    graph = read_graph(path)
    assert (len(graph), len(graph.edges)) == SIZES[path.stem]
    write_snapshot(graph, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    write_snapshot(graph, tmp_path / "nx.json", "networkx")
    assert read_graph(tmp_path / "nx.json") == graph


def test_the_first_snapshot_says_what_its_source_says():
    graph = read_graph(bundled_path("kgot-snapshots") / "data_0.json")
    assert graph.labels() == {"Country": 10, "ASEAN_bloc": 1} and graph.types() == {"contains": 10}
    assert graph.node("10").properties["capital"] == "Hanoi"
    assert graph.edges[9].identity == ("0", "contains", "10", "9")


@pytest.mark.parametrize("variant", ["apoc", "networkx"])
@pytest.mark.parametrize("graph", [PropertyGraph.of(), *map(random_graph, range(8))], ids=str)
def test_any_graph_can_be_written_and_read_back(graph, variant, tmp_path):
    write_snapshot(graph, tmp_path / "snapshot.json", variant)
    again = read_graph(tmp_path / "snapshot.json")
    assert again == graph and again.ids == graph.ids


def test_an_apoc_export_gives_every_relationship_an_id_of_its_own(tmp_path):
    keys = ["", "0", "", "0", "007", "x"]
    edges = [Edge("a", f"t{i}", "b", {}, key) for i, key in enumerate(keys)]
    graph = PropertyGraph.of([Node("a"), Node("b")], edges)
    write_snapshot(graph, tmp_path / "snapshot.json")
    records = [json.loads(line) for line in (tmp_path / "snapshot.json").read_text().split("\n")]
    ids = [record["id"] for record in records if record["type"] != "node"]
    assert len(set(ids)) == 6 and all(id.isdigit() for id in ids) and ids[1] == "0"
    assert read_graph(tmp_path / "snapshot.json") == graph


def test_the_networkx_form_looks_as_the_reference_writes_it(tmp_path):
    graph = PropertyGraph.of([Node("a", ("City",)), Node("b")], [Edge("a", "near", "b", {"km": 3})])
    write_snapshot(graph, tmp_path / "s.json", "networkx")
    assert (tmp_path / "s.json").read_text() == (
        '{"type": "node", "id": "a", "labels": "City", "properties": {}}\n'
        '{"type": "node", "id": "b", "labels": null, "properties": {}}\n'
        '{"type": "relationship", "label": "near", "properties": {"km": 3}, '
        '"start": {"type": "node", "id": "a", "labels": "City", "properties": {}}, '
        '"end": {"type": "node", "id": "b", "labels": null, "properties": {}}}\n'
    )


def test_numbers_as_ids_null_labels_and_missing_properties_are_read(tmp_path):
    graph = written(tmp_path, a_node(1, labels=None), a_node("b", labels="City"), an_edge(1, "near", "b"))
    assert list(graph.nodes) == [Node("1"), Node("b", ("City",))]
    assert list(graph.edges) == [Edge("1", "near", "b")]


def test_an_edge_end_without_a_line_of_its_own_is_made_from_the_copy_in_the_edge(tmp_path):
    edge = {"type": "relationship", "label": "near", "end": {"id": "b"}}
    edge["start"] = {"id": "a", "labels": ["City"], "properties": {"x": 1}}
    assert list(written(tmp_path, edge).nodes) == [Node("a", ("City",), {"x": 1}), Node("b")]


def test_duplicate_edges_are_kept_apart_by_key(tmp_path):
    bare, numbered = an_edge("a", "near", "b"), an_edge("a", "near", "b", id="7")
    graph = written(tmp_path, bare, bare, bare, numbered, numbered)
    assert len(graph.edges) == 5 and len({edge.key for edge in graph.edges}) == 5
    write_snapshot(graph, tmp_path / "again.json")
    assert read_graph(tmp_path / "again.json") == graph


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"node"',
        "[1]",
        '{"type":"nodes","id":"1"}',
        '{"type":"node"}',
        '{"type":"relationship","id":"0","label":"near","start":{"id":"a"}}',
        "[" * 100_000,
    ],
    ids=lambda line: line[:60],
)
def test_a_malformed_line_is_named_with_its_file_and_number(line, tmp_path):
    with pytest.raises(BadInput, match=r"snapshot\.json, line 3: "):
        written(tmp_path, a_node("a"), "", line)


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.json", "missing.json"):
        with pytest.raises(BadInput, match=name):
            read_graph(tmp_path / name)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()], ids=lambda value: type(value).__name__)
def test_a_value_that_is_not_json_is_refused_before_the_file_is_touched(value, tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text("old")
    with pytest.raises(BadInput, match="a property of node 'n' is"):
        write_snapshot(PropertyGraph.of([Node("n", (), {"x": value})]), path)
    assert path.read_text() == "old"


def test_an_unknown_variant_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="apoc, networkx"):
        write_snapshot(PropertyGraph.of(), tmp_path / "s.json", "rdf")


def test_odd_texts_survive(tmp_path):
    odd = "line\nfeed \u2028 separator, \x00, ü, 🙂"
    graph = PropertyGraph.of([Node(odd, (odd,), {odd: odd})], [Edge(odd, odd, odd, {}, odd)])
    for variant in ("apoc", "networkx"):
        write_snapshot(graph, tmp_path / "snapshot.json", variant)
        assert read_graph(tmp_path / "snapshot.json") == graph


def test_a_zero_byte_file_is_an_empty_graph(tmp_path):
    assert written(tmp_path) == PropertyGraph.of()
    assert written(tmp_path, "", "\r", "  ") == PropertyGraph.of()
