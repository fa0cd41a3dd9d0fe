"""Graphs as other programs write them: every edge is read, and what a field means is decided by the file."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from xml.sax.saxutils import quoteattr

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kgot_lab as lab
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import resolve_node
from kgot_lab.kgos.query.graph_loading import load_graph
from kgot_lab.stores.files import lossless_format, read_graph, read_named_graph, write_graph
from kgot_lab.types import Edge, Node

NAMES = st.lists(
    st.text("abcdeXYZ019 éß中,;\"'<&", min_size=1).map(str.strip).filter(bool),
    min_size=1,
    max_size=6,
    unique=True,
)
GRAPHS = NAMES.flatmap(
    lambda names: st.tuples(
        st.just(names),
        st.lists(
            st.tuples(st.sampled_from(names), st.sampled_from(["knows", "in"]), st.sampled_from(names)),
            max_size=8,
        ),
    )
)


def links(edges, source="source", kind="type", target="target"):
    return [{source: s, kind: k, target: t} for s, k, t in edges]


def table(rows, delimiter=","):
    csv.writer(out := io.StringIO(), delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


def to_networkx(names, edges):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((s, t, {"relation": k}) for s, k, t in edges)
    return graph


def by_networkx(write):
    def written(names, edges):
        write(to_networkx(names, edges), out := io.BytesIO())
        return out.getvalue().decode()

    return written


def lines(records):
    return "\n".join(map(json.dumps, records))


def xgmml(names, edges):
    nodes = (f"<node id={quoteattr(i)}/>" for i in names)
    return "".join(
        [
            *nodes,
            *(
                f'<edge source={quoteattr(s)} target={quoteattr(t)}><att name="interaction" value="{k}"/></edge>'
                for s, k, t in edges
            ),
        ]
    )


def numbered(names):
    return {name: number for number, name in enumerate(names)}


FORMS = {  # the text of a file from names and edges
    "node-link.json": lambda n, e: json.dumps({"nodes": [{"id": i} for i in n], "links": links(e)}),
    "networkx.json": lambda n, e: json.dumps(nx.node_link_data(to_networkx(n, e), edges="edges")),
    "adjacency.json": lambda n, e: json.dumps(nx.adjacency_data(to_networkx(n, e))),
    "cytoscape.json": lambda n, e: json.dumps(nx.cytoscape_data(to_networkx(n, e))),
    "d3.json": lambda n, e: json.dumps({"nodes": [{"name": i} for i in n], "links": [{**x, "source": {"id": x["source"]}} for x in links(e)]}),
    "by_place.json": lambda n, e: json.dumps(
        {"nodes": [{"name": f"_{i}"} for i in n], "links": [{"source": n.index(s), "target": n.index(t), "type": k} for s, k, t in e]}
    ),
    "vis.json": lambda n, e: json.dumps({"nodes": [{"id": i, "label": i} for i in n], "edges": links(e, "from", "label", "to")}),
    "graphology.json": lambda n, e: json.dumps(
        {"options": {"type": "mixed"}, "nodes": [{"key": i} for i in n], "edges": [{"key": f"e{i}", **x} for i, x in enumerate(links(e))]}
    ),
    "jgf.json": lambda n, e: json.dumps({"graph": {"nodes": {i: {"label": i} for i in n}, "edges": links(e, kind="relation")}}),
    "cytoscape_list.json": lambda n, e: json.dumps(
        [{"data": {"id": i, "name": i}} for i in n] + [{"data": {"id": f"e{i}", **x}} for i, x in enumerate(links(e, kind="interaction"))]
    ),
    "langchain.json": lambda n, e: json.dumps([{"nodes": [{"id": i, "type": "T"} for i in n], "relationships": links(e)}]),
    "triples.json": lambda n, e: json.dumps({"nodes": n, "triples": e}),
    "list.json": lambda n, e: json.dumps(e),
    "memory.jsonl": lambda n, e: lines(
        [
            *({"type": "entity", "name": i, "entityType": "T"} for i in n),
            *({"type": "relation", **x} for x in links(e, "from", "relationType", "to")),
        ]
    ),
    "apoc.jsonl": lambda n, e: lines(
        [
            *({"type": "node", "id": i, "labels": ["T"], "properties": {"name": i}} for i in n),
            *({"type": "relationship", "id": str(x), "label": k, "start": {"id": s}, "end": {"id": t}} for x, (s, k, t) in enumerate(e)),
        ]
    ),
    "rows_of_a_query.jsonl": lambda n, e: lines(
        {"r": {"type": "relationship", "id": str(x), "label": k, "start": {"id": s}, "end": {"id": t}}, "n": 1}
        for x, (s, k, t) in enumerate(e)
    ),
    "edges.csv": lambda n, e: table([("source", "type", "target"), *e]),
    "gephi.csv": lambda n, e: table([("Source", "Target", "Type", "Id", "Label"), *((s, t, "Directed", i, k) for i, (s, k, t) in enumerate(e))]),
    "excel.csv": lambda n, e: "sep=;\n" + table([("subject", "predicate", "object"), *e], ";"),
    "admin.csv": lambda n, e: table([(":START_ID", "since:int", ":TYPE", ":END_ID(T)"), *((s, 1, k, t) for s, k, t in e)]),
    "apoc.csv": lambda n, e: table(
        [
            ("_id", "_labels", "name", "_start", "_end", "_type"),
            *((i, ":T", i, "", "", "") for i in n),
            *(("", "", "", s, t, k) for s, k, t in e),
        ]
    ),
    "snap.txt": lambda n, e: "# From\tTo\n" + table([(numbered(n)[s], numbered(n)[t]) for s, _, t in e], "\t"),
    "g.xgmml": lambda n, e: (
        f'<graph directed="1" xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><att name="m"><r:RDF/></att>{xgmml(n, e)}</graph>'
    ),
    "g.graphml": by_networkx(nx.write_graphml),
    "g.gexf": by_networkx(nx.write_gexf),
    "g.gml": lambda n, e: "\n".join(nx.generate_gml(nx.convert_node_labels_to_integers(to_networkx(n, e), label_attribute="name"))),
    "g.net": lambda n, e: "\n".join(
        [
            f"*Vertices {len(n)}",
            *(f'{i} "v{i}"' for i in range(1, len(n) + 1)),
            "*Arcs",
            *(f"{n.index(s) + 1} {n.index(t) + 1} 1.5" for s, _, t in e),
        ]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=GRAPHS)
def test_no_edge_of_any_form_is_lost(tmp_path, name, graph):
    names, edges = graph
    (path := tmp_path / f"{name}.graph").write_text(FORMS[name](names, edges), encoding="utf-8")
    try:
        read = read_named_graph(path)
    except BadInput as error:  # a table of which nothing shows that it has no header
        assert name in ("snap.txt",) or not edges, f"{error}: {path.read_text()}"
        return
    assert len(read.graph.edges) == len(edges), path.read_text()
    if edges and name not in ("snap.txt", "g.net"):
        assert set(read.graph.types()) == {kind for _, kind, _ in edges}, path.read_text()


GEPHI = """<gexf xmlns="http://gexf.net/1.3"><graph defaultedgetype="directed"><attributes class="node">
<attribute id="0" title="kind" type="string"/><attribute id="1" title="born" type="integer"/></attributes>
<nodes><node id="0" label="Ada"><attvalues>
<attvalue for="0" value="person"/><attvalue for="1" value="1815"/></attvalues></node><node id="1" label="Works">
<viz:color xmlns:viz="http://gexf.net/1.3/viz" r="1"/></node></nodes><edges><edge id="0"
source="0" target="1" label="founded" type="undirected"/></edges></graph></gexf>"""
YED = """<graphml xmlns:y="http://www.yworks.com/xml/graphml"><key for="node" id="d5" yfiles.type="nodegraphics"/><graph edgedefault="directed">
<node id="n0"><data key="d5"><y:ShapeNode><y:NodeLabel>Ada</y:NodeLabel></y:ShapeNode></data></node><node id="n1"><data key="d5"><y:ShapeNode>
<y:NodeLabel>Works</y:NodeLabel></y:ShapeNode></data></node><edge id="e0" source="n0" target="n1"/></graph></graphml>"""
XGMML = """<graph directed="1" xmlns:xlink="http://www.w3.org/1999/xlink"><node id="-1" label="Ada"><att name="name" value="base"/>
<att name="ages" type="list"><att type="integer" value="3"/><att type="integer" value="4"/></att><graphics x="1"/></node>
<node id="-2" label="Works"><att name="name" value="base"/><att><graph>
<node xlink:href="#-1"/><edge source="-1" target="-2" label="e"/></graph></att></node></graph>"""
TINKERPOP = """<graphml><key id="labelV" for="node" attr.name="labelV" attr.type="string"/><key id="labelE" for="edge" attr.name="labelE"
attr.type="string"/><graph edgedefault="directed"><node id="a"><data key="labelV">person</data></node><edge id="7" source="a" target="a">
<data key="labelE">knows</data></edge></graph></graphml>"""
KEYS = [{"key": f"geid_{n}", "source": "a", "target": "b"} for n in range(2)]
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="x:">
<rdf:Description rdf:about="x:a"><e:p rdf:resource="x:b"/></rdf:Description></rdf:RDF>"""
FEW = [{"id": number, "label": "ab"[number % 2]} for number in range(4)]
GROUPS = [{"id": number, "label": f"N{number}", "group": number % 2} for number in range(4)]


@pytest.mark.parametrize(
    ("name", "text", "nodes", "summary"),
    [
        ("two.json", json.dumps([{"nodes": ["a"], "edges": []}, {"nodes": ["b"]}]), {"a": (), "b": ()}, "its 2 graphs are read as one"),
        ("sigma.json", '{"edges": [{"key": "0", "source": "a", "target": "a", "attributes": {}}]}', {"a": ()}, "no field"),
        ("gephi.gexf", GEPHI, {"Ada": ("person",), "Works": ()}, "types from kind; names from label; relations from label"),
        ("yed.graphml", YED, {"Ada": (), "Works": ()}, "names from label"),
        ("group.xgmml", XGMML, {"Ada": (), "Works": ()}, "names from label; relations from label"),
        ("group.xgmml", XGMML, {"Ada": (), "Works": ()}, "left out: 1 graphic, 1 border of a group, 1 member of a group mentioned again"),
        ("tinkerpop.graphml", TINKERPOP, {"a": ("person",)}, "types from labelV; relations from labelE"),
        ("keys.json", json.dumps({"nodes": [{"key": "a"}, {"key": "b"}], "edges": KEYS}), {"a": (), "b": ()}, "relations from no field"),
        ("undirected.json", json.dumps(nx.adjacency_data(nx.path_graph("abc"))), {"a": (), "b": (), "c": ()}, "3 nodes, 2 edges"),
        ("beside.json", json.dumps({"version": 2, "file": {"nodes": ["a"], "edges": []}}), {"a": ()}, "left out: 1 value of 'version'"),
        ("graphrag.csv", "id,human_readable_id,title,type\n0b,1,ADA,PERSON\n", {"0b": ("PERSON",)}, "types from type; names from title"),
        ("upper.csv", "ID,Label,type\n1,Ada,poet\n", {"Ada": ("poet",)}, "names from Label"),
        ("sparse.mtx", "%%MatrixMarket matrix coordinate real\n% size\n3 3 2\n1 2 .5\n2 3 1e-5\n", {"1": (), "2": (), "3": ()}, "2 edges"),
        ("weights.csv", "a,b,1e-5\na,c,.25\n", {"a": (), "b": (), "c": ()}, "source, target, weight"),
        ("above.net", 'From a book\n\n*Vertices 2\n1 "Ada"\n2 "Bob"\n*Arcs\n1 2\n', {"Ada": (), "Bob": ()}, "left out: 1 line of no section"),
        ("few.json", json.dumps({"nodes": FEW, "links": []}), {"0": ("a",), "1": ("b",), "2": ("a",), "3": ("b",)}, "types from label"),
        ("vis.json", json.dumps({"nodes": GROUPS, "edges": [{"from": 0, "to": 1}]}), dict.fromkeys(["N0", "N1", "N2", "N3"], ()), "from label"),
        ("nodes.csv", "Id,Label,type\n1,Ada,person\n2,Works,firm", {"Ada": ("person",), "Works": ("firm",)}, "types from type; names"),
        ("konect.txt", "% sym\n1 2 1 1082 \n1  3 1 1083\n", {"1": (), "2": (), "3": ()}, "no header"),
        ("fb15k.tsv", "Ada\tfounded\tWorks\nLin\tknows\tAda\n", {"Ada": (), "Works": (), "Lin": ()}, "relations from type"),
        ("spaces.csv", "my source id,source,target here,target\n5,Ada,x y z,Bob\n", {"Ada": (), "Bob": ()}, "a table"),
        ("x.csv", "Source,Target,Type,Weight\n1,2,Undirected,1\n", {"1": (), "2": ()}, "no direction"),
        ("g.ttl", "<x:a> <x:p> <x:b> .", {"x:a": (), "x:b": ()}, ""),
        ("g.rdf", RDF, {"x:a": (), "x:b": ()}, ""),
        ("g.jsonld", '{"@id": "x:a", "x:p": {"@id": "x:b"}}', {"x:a": (), "x:b": ()}, ""),
        ("g.nq", "<x:a> <x:p> <x:b> <x:g> .", {"x:a": (), "x:b": ()}, "left out: 1 name of a graph"),
    ],
)  # fmt: skip
def test_what_a_field_means_is_decided_by_its_values_and_told(tmp_path, name, text, nodes, summary):
    for ending in ("", ".txt"):  # the content decides
        (path := tmp_path / f"{name}{ending}").write_text(text)
        read = read_named_graph(path)
        labels = {node.id: node.labels for node in read.graph.nodes}
        assert labels == nodes and summary in read.summary


def test_evidence_gives_way_to_the_reader(tmp_path):
    (path := tmp_path / "g.csv").write_text("source,target,type,verb\n1,2,x,knows\n")
    with pytest.warns(UserWarning, match="relations from verb"):
        assert lab.read_graph(path, relation="verb").edges[0].type == "knows"
    with pytest.raises(UnknownName, match="field of relations 'word'"):
        lab.read_graph(path, relation="word")
    whole = {"nodes": [{"id": 1, "name": "a", "nick": "A", "role": "poet"}], "links": []}
    (path := tmp_path / "g.json").write_text(json.dumps(whole))
    said = []
    assert lab.read_graph(path, names="nick", types="role", say=said.append).node("A").labels == ("poet",)
    assert lab.read_graph(path, names="id", say=said.append).ids == ("1",)
    assert "types from role; names from nick" in said[0]


def test_labels_in_several_languages_are_kept_and_that_of_the_reader_is_the_name(tmp_path, monkeypatch):
    (path := tmp_path / "g.ttl").write_text(
        '@prefix r: <http://www.w3.org/2000/01/rdf-schema#> . <http://x.org/Q1> r:label "Köln"@de, "Cologne"@en, "Keulen"@nl .'
    )
    for language, name, other in (("nl_NL.UTF-8", "Keulen", "label@en"), ("C", "Cologne", "label@nl")):
        monkeypatch.setenv("LANG", language)
        monkeypatch.delenv("LC_ALL", raising=False)
        (node,) = read_named_graph(path).graph.nodes
        assert node.id == name and node.properties["source_id"] == "http://x.org/Q1"
        assert node.properties["label@de"] == "Köln" and other in node.properties


def zipped(data):
    with zipfile.ZipFile(out := io.BytesIO(), "w") as archive:
        archive.writestr("g.csv", data)
    return out.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zipped])
def test_a_compressed_file_is_read_and_a_cut_one_refused(tmp_path, pack):
    data = pack(b"source,target\na,b\n")
    (path := tmp_path / "g").write_bytes(data)
    assert len(read_named_graph(path).graph.edges) == 1
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match=r"cannot be unpacked|is not a zip file"):
        read_named_graph(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("digraph { a -> b }", "is DOT, which is not read: gv2gml"),
        ("<html><body/></html>", "0 graphs in <html>"),
        ('<?xml version="1.0"?><opml/>', "0 graphs in <opml>"),
        ("*Vertices 1\n1 a\n*Matrix\n0 1\n", "line 3: a matrix is not read"),
        ("graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "cannot be read as GML"),
        ("3 2\n2\n1 3\n2\n", "the first line names the columns"),  # neighbours, as METIS lists them
        ("4 4\n2 4 3\n1 3\n2 4 1\n1 3\n", "the first line names the columns"),
        ("12\tIGRID:5\t13\n12\tIGRID:6\t14\n", "the first line names the columns"),  # or a weight
        ("1,Ada,36\n2,Bob,1\n", "the first line names the columns"),
        ("0,0.0,0.0\n1,0.0,0.1\n", "the first line names the columns"),  # places
        (" ,A,B\nA,0,1\nB,1,0\n", "line 1: a matrix is not read"),
        ("%%MatrixMarket matrix array real\n2 2\n1\n0\n0\n1\n", "a matrix of all its values is not read"),
        (
            '{"graph": {"nodes": ["a"], "links": []}, "more": [{"source": "a", "target": "b"}]}',
            "'more' would not be read",
        ),
        ("name,age\nAda,36\n", "the first line names the columns"),
        ("@prefix x: <x:> .\nx:a x:b\n", "not RDF"),
        (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
            '<rdf:Description rdf:about="http://x/a"><x:p rdf:resource="http://x/b"/></rdf:Description>',
            "ends before its last element does",
        ),
        ('{"nodes": [', "not JSON"),
        ('{"type": {"a": 1}, "definitions": {"nodes": {"type": {}}, "edges": {"source": 1}}}', "."),
        (
            "# On Ada\n\nAda was born in London. She wrote\nof Ada and of engines.",
            "the first line names the columns",
        ),
        ("Dear Ada, hello\nBob, Ada, and others, too\n", "the first line names the columns"),
        ("42", "the first line names the columns"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_sentence(tmp_path, text, words):
    (path := tmp_path / "file").write_text(text)
    with pytest.raises(BadInput, match=words) as refused:
        read_named_graph(path)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "text", "edge", "note"),
    [
        ("g.gml", "graph [ directed 1 node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 weight 1e-05 ] ]",
         ("0", "1", "related_to", {"weight": 1e-05}), ""),
        ("g.gml", 'graph [\n directed 1\n node [ id 0 ]\n node [ id 1 ]\n edge [\n source 0\n target 1\n label "a 1e5 b"\n w 2E3\n ]\n]',
         ("0", "1", "a 1e5 b", {"w": 2000.0}), ""),
        ("g.net", '*Vertices 3\n1 "A" box\n2 "B"\n*Arcs :1 "loves"\n1 2 1.5 [1-3]\n',
         ("1", "2", "loves", {"weight": 1.5}), "left out: 1 drawing of a vertex, 1 value of an edge beside its weight"),
        ("g.net", "*Vertices 3\n*Edges\n1 2\n", ("1", "2", "related_to", {}), "3 nodes, 1 edge"),
        ("g.gexf", '<gexf><graph defaultedgetype="directed"><nodes><node id="a"/><node id="b"/></nodes><edges>'
         '<edge id="0" source="a" target="b" weight="2.5"/><edge id="1" source="b" target="a" type="undirected"/></edges></graph></gexf>',
         ("a", "b", "related_to", {"weight": 2.5}), "1 of its edges have no direction"),
        ("g.graphml", '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
         '<edge source="a" target="b" directed="true"/><edge source="b" target="a"/></graph></graphml>',
         ("a", "b", "related_to", {}), "1 of its edges have no direction"),
        ("g.csv", ":START_ID(Person),:END_ID(Movie),:TYPE,good:boolean\n1,1,IN,true\n",
         ("Person:1", "Movie:1", "IN", {"good": True}), ""),
        ("g.json", '{"nodes": [{"id": 1, "name": "A", "source_id": "d"}], "links": [{"source": 1, "target": 1}]}',
         ("1", "1", "related_to", {}), "kept as file_source_id"),
    ],
)  # fmt: skip
def test_values_of_other_programs_are_kept_or_told(tmp_path, name, text, edge, note):
    (path := tmp_path / name).write_text(text)
    read = read_named_graph(path, rename=False)
    first = read.graph.edges[0]
    assert (first.source, first.target, first.type, first.properties) == edge
    assert note in read_named_graph(path).summary


def test_a_file_without_a_node_is_told(tmp_path):
    for name, text in (
        ("g.csv", ""),
        ("g.tsv", "source\ttarget\n"),
        ("g.json", '{"nodes": [], "links": []}'),
    ):
        (path := tmp_path / name).write_text(text)
        with pytest.warns(UserWarning, match="it holds no node"):
            assert not len(lab.read_graph(path))


def test_graphml_of_this_package_keeps_labels_beside_properties_of_any_name(tmp_path):
    nodes = [
        Node("a", ("X",), {"type": "t"}), Node("b", ("Y", "Z"), {"name": "n", "label": "l", "kind": "k"}),
        Node("c", (), {"labels": ["q"]}),
    ]  # fmt: skip
    graph = PropertyGraph.of(nodes, [Edge("a", "r", "b", {"type": "q", "relation": "z"})])
    write_graph(graph, path := tmp_path / "g.graphml")
    assert read_graph(path) == graph and lossless_format(path) == "graphml"


def sqlite_file(path, script):
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    return path


def facts(graph):
    return sorted((edge.source, edge.type, edge.target) for edge in graph.edges)


def test_tables_of_sqlite_that_are_not_read_are_told_and_columns_are_given_by_hand(tmp_path):
    path = sqlite_file(
        tmp_path / "g.db",
        "CREATE TABLE nodes (id, name, type, nick); CREATE TABLE edges (source, target, type, verb); CREATE TABLE boss (a, b);"
        "INSERT INTO nodes VALUES (1, 'A', 't', 'Al'), (2, 'B', 't', 'Bo'); INSERT INTO edges VALUES (1, 2, 'knows', 'likes');",
    )
    with pytest.warns(UserWarning, match="left out: the tables boss"):
        assert facts(lab.read_graph(path)) == [("A", "knows", "B")]
    said = []
    graph = lab.read_graph(path, names="nick", types="name", relation="verb", say=said.append)
    assert facts(graph) == [("Al", "likes", "Bo")] and graph.node("Al").labels == ("A",)
    assert lab.read_graph(path, names="id", say=said.append).ids == ("1", "2")
    with pytest.raises(UnknownName, match="unknown column 'word'"):
        lab.read_graph(path, relation="word")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("CREATE TABLE functions (id PRIMARY KEY, full_name); CREATE TABLE calls (caller, callee);"
         "INSERT INTO functions VALUES (1, 'a.f'), (2, 'a.g'); INSERT INTO calls VALUES (1, 2)", [("a.f", "calls", "a.g")]),
        ("CREATE TABLE stop (id PRIMARY KEY, stop_name); CREATE TABLE legs (start_stop, end_stop);"
         "INSERT INTO stop VALUES (1, 'A'), (2, 'B'); INSERT INTO legs VALUES (1, 2)", [("A", "legs", "B")]),
        ("CREATE TABLE employees (id INTEGER PRIMARY KEY, name, manager_id REFERENCES employees);"
         "INSERT INTO employees VALUES (1, 'Ada', NULL), (2, 'Bob', 1)", [("Bob", "manager", "Ada")]),
        ("CREATE TABLE authors (id INTEGER PRIMARY KEY, name); CREATE TABLE papers (id INTEGER PRIMARY KEY, title);"
         "CREATE TABLE wrote (author_id, paper_id, place);"
         "INSERT INTO authors VALUES (1, 'Ada'); INSERT INTO papers VALUES (1, 'On A'); INSERT INTO wrote VALUES (1, 1, 2)",
         [("Ada", "wrote", "On A")]),
        ("CREATE TABLE links (source, target); INSERT INTO links VALUES ('a', 'b')", [("a", "related_to", "b")]),
        ("CREATE TABLE phones (caller, callee); INSERT INTO phones VALUES ('a', 'b')", [("a", "phones", "b")]),
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, username); CREATE TABLE follows (follower_id, followed_id);"
         "INSERT INTO users VALUES (1, 'ada'), (2, 'bob'); INSERT INTO follows VALUES (1, 2)", [("ada", "follows", "bob")]),
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, login); CREATE TABLE follows (id INTEGER PRIMARY KEY, follower_id, followed_id);"
         "CREATE TABLE posts (id INTEGER PRIMARY KEY, title, user_id); INSERT INTO users VALUES (1, 'ada'), (2, 'bob');"
         "INSERT INTO follows VALUES (7, 1, 2); INSERT INTO posts VALUES (3, 'On A', 2), (4, 'On B', 2)",
         [("On A", "user", "bob"), ("On B", "user", "bob"), ("ada", "follows", "bob")]),
        ("CREATE TABLE folder (id INTEGER PRIMARY KEY, name, parent_id); INSERT INTO folder VALUES (1, 'root', NULL), (2, 'etc', 1)",
         [("etc", "parent", "root")]),
        ("CREATE TABLE people (id INT, first_name, last_name); CREATE TABLE companies (id INT, name);"
         "CREATE TABLE employment (person_id, company_id);"
         "INSERT INTO people VALUES (1, 'Ada', 'L'); INSERT INTO companies VALUES (1, 'Acme'); INSERT INTO employment VALUES (1, 1)",
         [("Ada L", "employment", "Acme")]),
        ("CREATE TABLE city (name TEXT PRIMARY KEY); CREATE TABLE visit (id INTEGER PRIMARY KEY, day, city REFERENCES city);"
         "INSERT INTO city VALUES ('Rome'); INSERT INTO visit VALUES (1, 'Monday', 'Rome')", [("visit:1", "city", "Rome")]),
    ],
)  # fmt: skip
def test_tables_that_refer_to_each_other_are_a_graph(tmp_path, script, expected):
    assert facts(lab.read_graph(sqlite_file(tmp_path / "g.db", script), say=[].append)) == expected


def test_a_reference_between_tables_is_guessed_if_each_value_is_found_and_that_is_told(tmp_path):
    script = (
        "CREATE TABLE person (id INTEGER PRIMARY KEY, name); CREATE TABLE work (person_id, company_id);"
        "CREATE TABLE company (id INTEGER PRIMARY KEY, name); INSERT INTO person VALUES (1, 'Ada');"
        "INSERT INTO company VALUES (1, 'Acme'); INSERT INTO work VALUES (1, {})"
    )
    with pytest.warns(UserWarning, match="work.company_id refers to company, as a guess"):
        assert facts(lab.read_graph(sqlite_file(tmp_path / "g.db", script.format(1)))) == [
            ("Ada", "work", "Acme")
        ]
    with pytest.raises(BadInput, match="no tables that hold a graph"):
        lab.read_graph(sqlite_file(tmp_path / "gone.db", script.format(2)))


def test_heads_of_neo4j_admin_in_files_of_their_own_are_those_of_the_tables_named_so(tmp_path):
    (folder := tmp_path / "g").mkdir()
    for name, text in {
        "persons-header.csv": "personId:ID(P),name:string,secret:IGNORE,scores:int[],tags:string[],ok:boolean,:LABEL\n",
        "persons-part1.csv": "1,7,x,1;2,a;3,true,A;B\n",
        "persons-part2.csv": "2,Bob,y,,,false,A\n",
        "persons_know_header.csv": ":START_ID(P),since:int,:END_ID(P),:TYPE\n",
        "persons_know.csv": "1,1999,2,KNOWS\n",
    }.items():
        (folder / name).write_text(text)
    for where in (folder, sorted(folder.iterdir())):
        read = read_named_graph(where)
        assert facts(read.graph) == [("7", "KNOWS", "Bob")] and read.graph.edges[0].properties == {
            "since": 1999
        }
        assert read.graph.node("7").labels == ("A", "B")
        assert dict(read.graph.node("7").properties) == {
            "source_id": "P:1",
            "name": "7",
            "scores": [1, 2],
            "tags": ["a", "3"],
            "ok": True,
        }
        assert (
            "left out, as it says: secret" in read.note and "secret" not in read.graph.node("Bob").properties
        )
    (folder / "persons-part2.csv").write_text("2,Bob,y,,,false,A,more\n")
    with pytest.raises(BadInput, match=r"persons-part2\.csv, line 1: 8 cells"):
        read_named_graph(sorted(folder.iterdir()))
    (folder / "films-header.csv").write_text("id:ID(F),title\n")
    with pytest.raises(
        BadInput, match=r"films-header.csv is the head .* no file is called as its rows: films.csv"
    ):
        read_named_graph(folder)


RDF_12 = """@prefix e: <http://e.org/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
<< e:a e:knows e:b >> e:since 1999 . e:c e:knows e:a {| e:since 2000 |} .
_:r rdf:reifies <<( e:x e:likes e:y )>> ; e:sure 0.5 . e:k e:says <<( e:x e:likes e:q )>> ."""


def test_statements_about_triples_are_properties_of_edges_and_other_triples_within_triples_are_told(tmp_path):
    (tmp_path / "g.ttl").write_text(RDF_12)
    read = read_named_graph(tmp_path / "g.ttl")
    assert [(*fact, dict(edge.properties)) for fact, edge in zip(facts(read.graph), sorted(read.graph.edges, key=str), strict=True)] == [
        ("a", "knows", "b", {"since": 1999}), ("c", "knows", "a", {"since": 2000}), ("x", "likes", "y", {"sure": 0.5})
    ]  # fmt: skip
    assert "left out: 1 triple within a triple" in read.note


def test_things_of_rdf_without_an_iri_are_called_by_their_names_and_fields_by_the_last_part_of_theirs(
    tmp_path,
):
    text = '@prefix f: <http://xmlns.com/foaf/0.1/> . _:a a f:Person; f:name "Ada"; f:knows _:b, f:me . _:b a f:Person . f:me f:nick "I" .'
    (tmp_path / "g.ttl").write_text(text)
    assert facts(read_named_graph(tmp_path / "g.ttl").graph) == [
        ("Ada", "knows", "Person 1"),
        ("Ada", "knows", "me"),
    ]
    assert "I" in read_named_graph(tmp_path / "g.ttl", names="nick").graph
    with pytest.raises(UnknownName, match="unknown field of names 'nic'"):
        read_named_graph(tmp_path / "g.ttl", names="nic")


def test_properties_of_wikidata_go_by_their_labels_and_one_entity_is_a_graph(tmp_path):
    def entity(id, label, **claims):
        return {"id": id, "labels": {"en": {"language": "en", "value": label}}, "claims": claims}

    human = {"mainsnak": {"datavalue": {"value": {"entity-type": "item", "id": "Q5"}}}}
    ada = entity("Q7259", "Ada", P31=[human])
    (tmp_path / "one.json").write_text(json.dumps(ada))
    assert facts(read_named_graph(tmp_path / "one.json").graph) == [("Ada", "P31", "Q5")]
    (tmp_path / "all.json").write_text(json.dumps([ada, entity("Q5", "human"), entity("P31", "instance of")]))
    assert facts(read_named_graph(tmp_path / "all.json").graph) == [("Ada", "instance of", "human")]


def test_what_networkx_writes_for_pajek_keeps_relations_and_types(tmp_path):
    graph = nx.MultiDiGraph()
    graph.add_node("Ada", type="Person")
    graph.add_edge("Ada", "Bob", relation="knows", weight=2)
    nx.write_pajek(graph, tmp_path / "g.net")
    read = read_named_graph(tmp_path / "g.net").graph
    assert facts(read) == [("Ada", "knows", "Bob")] and read.node("Ada").labels == ("Person",)


ENTITY = {
    "id": "Q1", "labels": {"en": {"language": "en", "value": "Ada"}, "de": {"language": "de", "value": "Adda"}},
    "aliases": {"en": [{"language": "en", "value": "AL"}]}, "sitelinks": {"enwiki": {}},
    "claims": {"P9": [{"mainsnak": {"datavalue": {"value": {"entity-type": "item", "id": "Q2"}}}}]},
}  # fmt: skip
SPARQL = {
    "head": {"vars": ["item", "itemLabel", "spouse"]},
    "results": {"bindings": [{"item": {"type": "uri", "value": "http://x/Q1"}, "itemLabel": {"type": "literal", "value": "Ada"},
                              "spouse": {"type": "uri", "value": "http://x/Q2"}}]},
}  # fmt: skip
PROPERTY = """@prefix s: <http://www.w3.org/2004/02/skos/core#> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> .
<http://x/Q1> r:label "Ada" ; s:altLabel "AL"@en, "Al"@de ; <http://x/direct/P9> <http://x/Q2> .
<http://x/P9> r:label "educated at"@en, "besuchte"@de ; <http://wikiba.se/ontology#directClaim> <http://x/direct/P9> ."""


@pytest.mark.parametrize(
    ("name", "text", "fact", "note"),
    [
        ("g.edgelist", "a b {}\na c {'weight': 3, 'at': datetime}\n", ("a", "related_to", "b"), "1 dict that is none of"),
        ("g.csv", "a,b,{'x': 1, 'y': 2}\n", ("a", "related_to", "b"), "list of NetworkX"),
        ("g.txt", "Ada Bob 3\nAda Cy 1.5\n", ("Ada", "related_to", "Bob"), "source, target, weight"),
        ("g.txt", "Ada knows Bob\nBob knows Cy\n", ("Ada", "knows", "Bob"), "source, type, target"),
        ("g.txt", "#g.py\n# GMT Mon\n#\nb\na b c\nc\n", ("a", "related_to", "b"), "3 nodes, 2 edges"),
        ("g.csv", "citing,cited\n7,8\n", ("7", "cites", "8"), "relations from citing and cited (cites)"),
        ("g.csv", "who,whom\nAda,Bob\nBob,Cy\n", ("Ada", "whom", "Bob"), "edges are from who to whom"),
        ("g.csv", "u,v,w\n1,2,3\n", ("1", "related_to", "2"), "1 edge"),
        ("g.csv", "h\tr\tt\nAda\tknows\tBob\n", ("Ada", "knows", "Bob"), "relations from relation"),
        ("g.csv", "Person A,Person B,since\nAda,Bob,7\n", ("Ada", "related_to", "Bob"), "1 edge"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n1 2\n", ("1", "related_to", "2"), "3 nodes, 1 edge"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 1 .5\n", ("row 1", "related_to", "column 1"), "3 nodes"),
        ("g.gexf", '<gexf><graph><attributes class="edge"><attribute id="0" title="w"/></attributes>'
         '<edges><edge source="a" target="b"><attvalues>'
         '<attvalue for="0" value="1" start="1"/><attvalue for="0" value="2" start="2"/></attvalues></edge></edges></graph></gexf>',
         ("a", "related_to", "b"), "2 times of a value"),
        ("g.json", json.dumps([{"nodes": [{"id": "Ada", "type": t}], "relationships": links([("Ada", "KNOWS", "Bob")])} for t in "AB"]),
         ("Ada", "KNOWS", "Bob"), "1 value other than the first of a node"),
        ("g.json", json.dumps({"entities": {"Q1": ENTITY}}), ("Ada", "P9", "Q2"), "left out: 1 link to a page"),
        ("g.json", json.dumps(SPARQL), ("Ada", "spouse", "Q2"), "rows of a SPARQL query"),
        ("g.csv", "x,xLabel,p,pLabel,y\nhttp://x/1,Ada,http://x/P,knows,http://x/2\n", ("Ada", "knows", "2"), "rows of a SPARQL query"),
        ("g.ttl", PROPERTY, ("Ada", "educated at", "Q2"), "names from label"),
        ("g.json", '{"nodes": ["a"], "links": [{"source": "a", "target": "b", "w": NaN}]}', ("a", "related_to", "b"), "1 value outside JSON"),
        ("g.csv", 'source,target\n"a\x1bb",c\n', ("a\x1bb", "related_to", "c"), r"1 id with control characters, as 'a\x1bb'"),
        ("g.csv", "source,target\nAy\xfee,\xc7a\xf0lar\n", ("Ayşe", "related_to", "Çağlar"), "read as cp1254"),
    ],
)  # fmt: skip
def test_an_edge_of_a_form_without_usual_names_is_read(tmp_path, monkeypatch, name, text, fact, note):
    monkeypatch.setenv("LANG", "C")
    (path := tmp_path / name).write_bytes(text.encode("latin-1"))
    read = read_named_graph(path)
    assert fact in facts(read.graph) and note in read.summary, read.summary


def test_names_in_other_languages_and_aliases_find_a_node(tmp_path, monkeypatch):
    monkeypatch.setenv("LANG", "C")
    for name, text in (
        ("g.csv", "Id,Label,name_de,synonyms\n1,Ada,Adda,AL;Al\n2,Bob,Bobi,\n"),
        ("g.json", json.dumps({"entities": {"Q1": ENTITY}})),
        ("g.ttl", PROPERTY),
    ):
        (path := tmp_path / name).write_text(text)
        graph = lab.read_graph(path, say=[].append)
        assert resolve_node(graph, "AL") == resolve_node(graph, "al") == "Ada"
    node = read_named_graph(tmp_path / "g.csv").graph.node("Ada")
    assert node.properties["name@de"] == "Adda" and node.properties["aliases"] == ["AL", "Al"]


GEPHI_TABLES = {
    "nodes.csv": "Id,Label,kind\n1,Ada,person\n2,Works,firm\n",
    "edges.csv": "Source,Target,Label\n1,2,founded\n",
}
TABLES = [
    GEPHI_TABLES,
    {"n.csv": "name,age\nAda,36\nBob,7\n", "e.csv": "source,target,type\nAda,Bob,founded\n"},
    {"n.csv": ":ID(P),name\n1,Ada\n", "m.csv": ":ID(F),name\n1,Works\n", "e.csv": ":START_ID(P),:END_ID(F),:TYPE\n1,1,founded\n"},
    {"e.csv": "id,title,type\n0b,Ada,P\n1b,Works,F\n", "r.csv": "id,source,target,label\n7,Ada,Works,founded\n"},
]  # fmt: skip


@pytest.mark.parametrize("tables", TABLES, ids=lambda tables: "-".join(tables))
def test_a_table_of_nodes_and_one_of_edges_are_one_graph(tmp_path, tables):
    (folder := tmp_path / "g").mkdir()
    for name, text in tables.items():
        (folder / name).write_text(text)
    assert facts(load_graph(str(folder)))[0][1] == "founded"  # as commands do
    (folder / "README.md").write_text("On this graph.")
    with zipfile.ZipFile(archive := tmp_path / "g.zip", "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"g/{file.name}")
    for where in ([folder / name for name in tables], folder, archive):
        read = read_named_graph(where)
        assert facts(read.graph)[0][1] == "founded" and len(read.graph) == 2 and "Ada" in read.graph, (
            read.summary
        )
        assert ("README.md" in read.note) == (where != [folder / name for name in tables])


def test_columns_of_ends_and_the_encoding_are_given_by_hand(tmp_path):
    for name, text in (("g.csv", "buyer,shop\n1,Köln\n"), ("g.json", '[{"buyer": 1, "shop": "Köln"}]')):
        (path := tmp_path / name).write_text(text, encoding="cp437")
        graph = lab.read_graph(path, source="buyer", target="shop", encoding="cp437", say=[].append)
        assert facts(graph) == [("1", "shop", "Köln")]
        with pytest.raises(BadInput, match=r"name those of the ends|a graph in JSON is"):
            lab.read_graph(path, encoding="cp437")
    with pytest.raises(UnknownName, match=r"column of ends 'who'; did you mean|column of ends 'who'"):
        lab.read_graph(tmp_path / "g.csv", source="who", target="shop", encoding="cp437")
    with pytest.raises(BadInput, match="source= and target=, or neither"):
        lab.read_graph(tmp_path / "g.csv", source="buyer")


def test_a_file_is_shown_by_its_path(tmp_path):
    (path := tmp_path / "g.csv").write_text("source,type,target\nAda,knows,Bob\n")
    with pytest.warns(UserWarning, match="1 edge"):
        assert "2 nodes, 1 edge" in repr(lab.show(path))


@pytest.mark.parametrize(
    ("name", "data", "edges", "told"),
    [
        ("out.films", b"% bip\n% 2 1 2\n1 1\n1 2\n", [("left 1", "right 1"), ("left 1", "right 2")], "no direction"),
        ("out.friends", b"% sym\n1 2\n2 3\n", [("1", "2"), ("2", "3")], "no direction"),
        ("snap.txt", b"# Undirected graph: x.txt\n# Nodes: 3\n1\t2\n2\t3\n", [("1", "2"), ("2", "3")], "no direction"),
        ("words.net", b'*Vertices 2\n1 "A"\n2 "B"\n*Arcs\n1 2 l "likes"\n', [("A", "B")], "relations from label"),
        ("excel.csv", "source,target\nMüller,Weiß GmbH\n".encode("cp1252"), [("Müller", "Weiß GmbH")], "cp1252"),
    ],
)  # fmt: skip
def test_what_a_remark_or_an_old_code_page_says_is_read_and_told(tmp_path, name, data, edges, told):
    (tmp_path / name).write_bytes(data)
    found = read_named_graph(tmp_path / name)
    assert [(edge.source, edge.target) for edge in found.graph.edges] == edges and told in found.summary


def test_an_encoding_that_python_does_not_know_is_refused(tmp_path):
    (tmp_path / "g.csv").write_text("source,target\na,b\n")
    with pytest.raises(BadInput, match="knows no text encoding 'nonsense'"):
        read_named_graph(tmp_path / "g.csv", encoding="nonsense")


@pytest.mark.parametrize(
    ("name", "text", "expected", "note"),
    [
        ("g.gml", 'graph [ node [ id 1 ] node [ id 2 ] edge [ source 2 target 1 label "directed 1" ] ]', ["2>1"], "no direction"),
        ("g.gml", "graph [ multigraph 1 directed 0 node [ id 1 ] node [ id 2 ] edge [ source 2 target 1 ] ]", ["2>1"], "no direction"),
        ("g.json", '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"from": 1, "to": 2, "arrows": "from"}]}', ["2>1"], "turned as arrows say"),
        ("g.json", '{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"from": 1, "to": 2, "arrows": {"to": true, "from": {}}}]}',
         ["1>2", "2>1"], "two edges"),
        ("g.gexf", '<gexf><graph defaultedgetype="mutual"><nodes><node id="1"/><node id="2"/></nodes><edges><edge source="1" target="2"/>'
         "</edges></graph></gexf>", ["1>2", "2>1"], "each edge in both directions is read as two"),
        ("g.json", '{"graph": {"directed": false, "nodes": {"1": {}, "2": {}}, "edges": [{"source": "2", "target": "1"},'
         '{"source": "1", "target": "2", "directed": true}]}}', ["1>2", "2>1"], "1 of its edges have no direction"),
    ],
)  # fmt: skip
def test_edges_point_as_their_file_lists_or_draws_them(tmp_path, name, text, expected, note):
    (path := tmp_path / name).write_text(text)
    read = read_named_graph(path, rename=False)
    assert sorted(f"{edge.source}>{edge.target}" for edge in read.graph.edges) == expected
    assert note in read.summary


def test_a_guessed_reference_survives_a_value_without_a_row_and_both_are_told(tmp_path):
    rows = ", ".join(f"({n}, {99 if n == 7 else n % 3})" for n in range(1, 20))
    script = (
        "CREATE TABLE Customer (CustomerId INTEGER PRIMARY KEY, Name); CREATE TABLE settings (k, v);"
        "CREATE TABLE Orders (OrderId INTEGER PRIMARY KEY, CustomerId, Item);"
        "INSERT INTO Customer VALUES (0, 'A'), (1, 'B'), (2, 'C');"
        f"INSERT INTO Orders (OrderId, CustomerId) VALUES {rows}"
    )
    said = []
    graph = lab.read_graph(sqlite_file(tmp_path / "g.db", script), say=said.append)
    assert len(graph.edges) == 18 and graph.node("Orders:7").properties["CustomerId"] == 99
    assert "left out: 1 edge of Orders.CustomerId to no row of Customer" in said[0]
    assert "left out: the table settings, as no column such as city_id, with nine of ten values" in said[0]
