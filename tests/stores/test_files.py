"""Graphs in files: every form gives back what was written, and a bad file is named."""

from __future__ import annotations

import os
from datetime import date, time
from decimal import Decimal

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.stores.files import WRITERS, read_graph, read_named_graph, write_graph
from kgot_lab.types import Edge, Node

ENDINGS = {
    "apoc": ".jsonl",
    "networkx": ".json",
    "graphml": ".graphml",
    "turtle": ".ttl",
    "n_triples": ".nt",
    "n_quads": ".nq",
    "trig": ".trig",
    "json_ld": ".jsonld",
}
SOME = {
    "rdf_xml": ".rdf",
    "csv": ".csv",
    "gexf": ".gexf",
    "gml": ".gml",
    "node_link": ".json",
    "adjacency": ".json",
}  # forms that refuse some graphs
NASTY = "quote \" ' brace {} \\ ` line\u2028 é 中 🧪 \r\n\t<&> ]]>"
ODD = PropertyGraph.of(
    [
        Node(
            'a é <"&',
            ("B", "A"),
            {
                "x": NASTY,
                "i": 1,
                "f": 1.0,
                "minus": -0.0,
                "e": 1e308,
                "b": True,
                "n": None,
                "l": [1, {"a": None}],
            },
        ),
        Node(
            "b",
            (),
            {
                "big": 2**80,
                "": "no name",
                "label": "z",
                "labels": "q",
                "t": "json:x",
                "spaces": "  x  ",
                "empty": "",
                "id": 5,
            },
        ),
        Node("bare"),
    ],
    [
        Edge('a é <"&', "won", "b", {"x": 1, "relation": "zz", "id": "9", "key": "k"}),
        Edge('a é <"&', "won", "b", {}, "2"),
        Edge("b", "is in", "b", {"x": 1.5}),
    ],
)


@pytest.fixture(params=ENDINGS)
def form(request):
    return request.param


def test_every_form_gives_back_what_was_written(form, tmp_path):
    path = tmp_path / f"graph{ENDINGS[form]}"
    write_graph(ODD, path, form)
    assert not ODD.diff(read_graph(path))
    write_graph(PropertyGraph.of(), path, form)
    assert len(read_graph(path)) == 0


def values_of_json():
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    plain = (
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
    )
    return st.recursive(
        plain,
        lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3),
        max_leaves=4,
    )


@st.composite
def graphs(draw):
    """Graphs of every shape, named as people and programs name things."""
    names = st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Cs"]), min_size=1, max_size=5
    )
    # GraphML reads ":A:B" as two labels, as Neo4j writes them
    names = names.filter(lambda name: bool(name.strip()) and name[0] != ":")
    properties = st.dictionaries(
        names | st.sampled_from(["id", "key", "source", "label", "name"]), values_of_json(), max_size=3
    )
    ids = draw(st.lists(names, max_size=4, unique=True))
    nodes = [Node(id, tuple(draw(st.lists(names, max_size=2, unique=True))), draw(properties)) for id in ids]
    if not ids:
        return PropertyGraph.of()
    ends = st.sampled_from(ids)
    rows = draw(
        st.lists(st.tuples(ends, names, ends, st.sampled_from(["", "1", "k"])), max_size=4, unique=True)
    )
    edges = [Edge(source, type, target, draw(properties), key) for source, type, target, key in rows]
    return PropertyGraph.of(nodes, edges)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs())
def test_what_is_written_is_read_back_or_refused_before(graph, tmp_path):
    assert set(WRITERS) == {*ENDINGS, *SOME}
    for form, ending in {**ENDINGS, **SOME}.items():
        path = tmp_path / f"{form}{ending}"
        path.unlink(missing_ok=True)
        try:
            write_graph(graph, path, form)
        except BadInput as refused:
            assert not path.exists() and str(refused)
            assert form in SOME or form == "graphml", refused
        else:
            assert not graph.diff(read_graph(path)), form


def test_values_of_other_libraries_are_written_in_every_form(tmp_path):
    foreign = nx.MultiDiGraph()
    foreign.add_node(
        "a", day=pd.Timestamp("2024-05-01"), price=Decimal("1.10"), many=np.arange(3), yes=np.bool_(True)
    )
    foreign.add_node(
        "b", born=date(1815, 12, 10), exact=Decimal("0.1000000000000000000001"), part=np.float32(0.5)
    )
    foreign.add_edge("a", "b", "knew", since=np.int64(1833), at=time(12, 30), nothing=float("nan"))
    with pytest.raises(BadInput, match=r"a property of edge .* is nan"):
        PropertyGraph.from_networkx(foreign)
    del foreign.edges["a", "b", "knew"]["nothing"]
    graph = PropertyGraph.from_networkx(foreign)
    assert graph.node("a").properties == {
        "day": "2024-05-01T00:00:00",
        "price": 1.1,
        "many": [0, 1, 2],
        "yes": True,
    }
    assert graph.node("b").properties == {
        "born": "1815-12-10",
        "exact": "0.1000000000000000000001",
        "part": 0.5,
    }
    for form, ending in {**ENDINGS, "node_link": ".json", "adjacency": ".json"}.items():
        write_graph(graph, tmp_path / f"g{ending}", form)
        assert read_graph(tmp_path / f"g{ending}") == graph, form
    with pytest.raises(BadInput, match=r"csv the graph would differ"):
        write_graph(graph, tmp_path / "g.csv")
    write_graph(PropertyGraph.from_triples([("a", "r", "b")]), tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text().split() == ["source,type,target,key", "a,r,b,"]
    with pytest.raises(BadInput, match="which is not JSON"):
        write_graph(
            PropertyGraph.of([Node("a", (), {"day": pd.Timestamp("2024-05-01")})]), tmp_path / "g.graphml"
        )


@pytest.mark.parametrize("number", range(5))
def test_a_snapshot_goes_through_every_form_without_loss(form, number, tmp_path):
    graph = read_graph(bundled_path(f"kgot-snapshots/data_{number}.json"))
    write_graph(graph, tmp_path / f"graph{ENDINGS[form]}", form)
    assert read_graph(tmp_path / f"graph{ENDINGS[form]}") == graph


def test_the_ending_says_the_form(tmp_path):
    for ending in (".json", ".jsonl", ".graphml", ".ttl", ".TTL"):
        write_graph(ODD, tmp_path / f"graph{ending}")
        assert read_graph(tmp_path / f"graph{ending}") == ODD


@pytest.mark.parametrize(
    "content", ["not a graph at all <", '{"type": "node"}', "<graphml><node/></graphml>", "\x00\x01"]
)
@pytest.mark.parametrize("form", ["apoc", "networkx", "graphml", "turtle", "n_quads"])
def test_a_file_that_cannot_be_read_is_named(form, content, tmp_path):
    path = tmp_path / f"bad{ENDINGS[form]}"
    path.write_text(content)
    with pytest.raises(BadInput, match="bad"):
        read_graph(path)


def test_a_missing_file_is_named(form, tmp_path):
    with pytest.raises(BadInput, match="absent"):
        read_graph(tmp_path / f"absent{ENDINGS[form]}")


@pytest.mark.parametrize("ending", [".gexf", ".gml", ".graphml", ".jsonl.gz", ".gexf.gz", ".ttl.gz"])
def test_what_other_programs_read_comes_back_as_it_was(tmp_path, ending):
    properties = {
        "age": 36,
        "ok": True,
        "tags": ["a", 1],
        "none": None,
        "type": "x",
        "id": 7,
        "label": "L",
        "start": 1999,
    }
    ada, bob = (
        Node("Ada", ("Person", "Admin"), properties),
        Node("Bob & <co> \n北", (), {"big": 2**70, "half": 0.5}),
    )
    edges = [
        Edge(ada.id, ":knows", bob.id, {"weight": 1.0, "key": "q", "type": "t"}),
        Edge(ada.id, ":knows", bob.id, {"weight": 3}, "k2"),
    ]
    graph = PropertyGraph.of([ada, bob], [*edges, Edge(bob.id, ":knows", bob.id, {}, "k2")])
    write_graph(graph, tmp_path / f"g{ending}")
    assert not graph.diff(read_graph(tmp_path / f"g{ending}"))
    assert read_named_graph(tmp_path / f"g{ending}").graph.ids == graph.ids


def test_the_label_of_a_node_in_gexf_and_gml_is_its_name(tmp_path):
    graph = PropertyGraph.of([Node("Ada", ("Person",)), Node("Bob")], [Edge("Ada", "knows", "Bob")])
    for ending, read in ((".gexf", nx.read_gexf), (".gml", nx.read_gml)):
        write_graph(graph, tmp_path / f"g{ending}")
        other = read(tmp_path / f"g{ending}")
        assert other.nodes["Ada"]["type"] == "Person" and [*other.edges(data="relation")] == [
            ("Ada", "Bob", "knows")
        ]


def test_no_two_edges_of_graphml_have_one_id(tmp_path):
    edges = [
        Edge("a", "r", "b"),
        Edge("b", "r", "a"),
        Edge("a", "r", "b", {}, "2"),
        Edge("b", "r", "a", {}, "2"),
    ]
    write_graph(PropertyGraph.of([Node("a"), Node("b")], edges), tmp_path / "g.graphml")
    assert (
        'edge id="' not in (text := (tmp_path / "g.graphml").read_text())
        and '" id="' not in text.partition("<edge")[2]
    )


def test_the_field_that_a_form_has_no_place_for_is_named(tmp_path):
    graph = PropertyGraph.of([Node("a", (), {"id": 1, "größe": 2})], [Edge("a", "r", "a")])
    for ending, form, field in (
        (".csv", None, "größe"),
        (".gml", None, "größe"),
        (".json", "node_link", "in id"),
    ):
        with pytest.raises(BadInput, match=field):
            write_graph(graph, tmp_path / f"g{ending}", form)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_not_made(tmp_path):
    for ending in (".jsonl", ".gexf", ".ttl.gz"):
        with pytest.raises(BadInput, match=r"there is no folder .*new"):
            write_graph(ODD, tmp_path / "new" / f"g{ending}")
    assert not list(tmp_path.iterdir())


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    with pytest.raises(UnknownName, match=r"\.graphml"):
        write_graph(ODD, tmp_path / "graph.xlsx")
    assert not list(tmp_path.iterdir())


def test_what_xml_cannot_hold_is_refused_by_name_and_kept_as_a_value(tmp_path):
    kept = PropertyGraph.of([Node("a", (), {"p": "null \x00"})])
    write_graph(kept, tmp_path / "kept.graphml")
    assert read_graph(tmp_path / "kept.graphml") == kept
    with pytest.raises(BadInput, match="cannot hold the name"):
        write_graph(PropertyGraph.of([Node("null \x00")]), tmp_path / "refused.graphml")
    assert not (tmp_path / "refused.graphml").exists()


def test_a_graph_of_another_program_is_read(tmp_path):
    (tmp_path / "other.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" attr.name="weight" attr.type="double"/>'
        '<graph edgedefault="undirected"><node id="n0"><data key="d0">1.5</data></node><node id="n1"/><edge source="n0" target="n1"/>'
        "</graph></graphml>"
    )
    assert "its edges have no direction" in read_named_graph(tmp_path / "other.graphml").note
    graph = read_graph(tmp_path / "other.graphml")
    assert graph.node("n0").properties == {"weight": 1.5} and len(graph.edges) == 1


@pytest.mark.parametrize(
    "begins", [b"<?xml version='1.0' encoding='utf-42'?><graphml/>", b"<graphml><node/></graphml>", b""]
)
def test_a_damaged_graphml_file_is_refused_in_one_sentence(tmp_path, begins):
    (tmp_path / "g.graphml").write_bytes(begins)
    with pytest.raises(BadInput, match=r"g\.graphml(: cannot be read as GraphML or GEXF: .| is empty)"):
        read_graph(tmp_path / "g.graphml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("ending", [".json", ".jsonl", ".graphml", ".ttl"])
def test_a_pipe_is_no_graph_and_is_not_waited_for(tmp_path, ending):
    os.mkfifo(tmp_path / f"g{ending}")
    with pytest.raises(BadInput, match="not a regular file but a pipe"):
        read_graph(tmp_path / f"g{ending}")
