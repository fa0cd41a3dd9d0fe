"""What a field of a stranger's graph file means: names or types, ends or dates, numbers or texts; and it is told."""

from __future__ import annotations

import json

import networkx as nx
import pytest

import kgot_lab as lab
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.stores.files import check_graph_file, read_named_graph, write_graph


def links(edges):
    return [{"source": source, "type": kind, "target": target} for source, kind, target in edges]


def lines(records):
    return "\n".join(map(json.dumps, records))


def facts(graph):
    return sorted((edge.source, edge.type, edge.target) for edge in graph.edges)


def label_nodes(*labels, **fields):
    return [{"id": id, "label": label, **{name: values[n] for name, values in fields.items()}}
            for n, (id, label) in enumerate(zip(["ada", "bob", "cy"], labels, strict=False))]  # fmt: skip


CYTOSCAPE = nx.cytoscape_data(nx.Graph([(1, 2)]))
for each, called in zip(CYTOSCAPE["elements"]["nodes"], ["Ada", "Bob"], strict=True):
    each["data"]["title"] = called
HAND_MADE = (
    '<graphml><key id="l" for="node" attr.name="label" attr.type="string"/><key id="r" for="edge" attr.name="relation" '
    'attr.type="string"/><key id="v" for="edge" attr.name="verb" attr.type="string"/><graph edgedefault="directed"><node id="ada">'
    '<data key="l">Ada Lovelace</data></node><node id="bob"><data key="l">Bob M</data></node><edge source="ada" target="bob">'
    '<data key="r">knows</data><data key="v">likes</data></edge></graph></graphml>'
)


@pytest.mark.parametrize(
    ("text", "types", "summary"),
    [
        (json.dumps({"nodes": label_nodes("Ada L", "Bob M", "Cy"), "links": []}), set(), "names from label"),
        (json.dumps({"nodes": label_nodes("Ada L", "Bob M"), "links": []}), set(), "names from label"),
        (json.dumps({"nodes": label_nodes("Ada L"), "links": []}), set(), "names from label"),
        (json.dumps({"elements": [{"data": each} for each in label_nodes("Ada L", "Bob M")]}), set(), "no types"),
        (HAND_MADE, set(), "GraphML: 2 nodes, 1 edge; no types; names from label; relations from relation"),
        (json.dumps({"nodes": label_nodes("Person", "City", "Firm", name=["Ada", "York", "Works"]), "links": []}),
         {"Person", "City", "Firm"}, "types from label; names from name"),
        (json.dumps({"nodes": label_nodes("Ada", "Bob", name=["ada", "bob"]), "links": []}), set(), "names from label"),
        (json.dumps({"nodes": label_nodes("Person", "Person", "City"), "links": []}), {"Person", "City"}, "types from label"),
        (json.dumps({"nodes": label_nodes(*"abc"), "links": [], "edges": [{"source": "ada", "target": "bob", "relation": "r", "key": "r"}]}),
         {"a", "b", "c"}, "types from label"),  # as to_networkx writes it
        (json.dumps(CYTOSCAPE), set(), "names from title"),
    ],
)  # fmt: skip
def test_a_label_of_its_own_is_a_name_in_a_small_graph_too(tmp_path, text, types, summary):
    (path := tmp_path / "g").write_text(text)
    read = read_named_graph(path)
    assert set(read.graph.labels()) == types and summary in read.summary, read.summary


def test_nodes_of_networkxs_cytoscape_data_go_by_what_is_not_their_id(tmp_path):
    (path := tmp_path / "g.json").write_text(json.dumps(CYTOSCAPE))
    assert set(read_named_graph(path).graph.ids) == {"Ada", "Bob"}


@pytest.mark.parametrize(
    ("head", "relation"),
    [
        ("sender,recipient", "sends to"), ("caller,callee", "calls"), ("buyer,seller", "buys from"), ("follower_id,followee_id", "follows"),
        ("employee,manager", "reports to"), ("from_user,to_user", "related_to"), ("from_city,to_city", "related_to"),
        ("parent,child", "child"), ("Absender,Empfänger", "sends to"), ("Quelle,Ziel", "related_to"), ("从,到", "related_to"),
    ],
)  # fmt: skip
def test_what_the_names_of_the_ends_say_of_a_relation_is_told(tmp_path, head, relation):
    (path := tmp_path / "g.csv").write_text(f"{head},price\nAda,Bob,3\n")
    read = read_named_graph(path)
    assert facts(read.graph) == [("Ada", relation, "Bob")]
    said = f"relations from {' and '.join(head.split(','))} ({relation})"
    assert said in read.summary or relation == "related_to", read.summary


def test_the_subject_of_a_letter_is_no_end_where_from_and_to_are(tmp_path):
    (path := tmp_path / "g.csv").write_text("from,to,subject\nAda,Bob,hello\n")
    assert facts(read_named_graph(path).graph) == [("Ada", "related_to", "Bob")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.csv", "period,start,end\nmiddle ages,500,1500\nmodern,1500,2000\n"),
        ("g.csv", "who,start,end\nA,1990,1995\nB,1990,1999\n"),
        ("g.csv", "start,end,count\n0,10,5\n10,20,7\n"),
        ("g.csv", "start,end,speaker\n0.0,1.5,A\n1.5,3.2,B\n"),
        ("g.csv", "from,to,rate\n2020-01-01,2020-12-31,1.5\n"),
        ("g.csv", "task;start;end\na;09:00;10:30\n"),
        ("g.csv", "from,to,discount\n0,99,0\n100,499,5\n"),
        ("g.csv", "name,from,to\nx,01.02.2020,03.04.2021\n"),
        ("g.json", '[{"start": "2020-01-01T00:00:00Z", "end": "2020-02-01", "event": "x"}]'),
    ],
)
def test_periods_and_ranges_are_no_edges_unless_their_columns_are_named(tmp_path, name, text):
    (path := tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=r"times or ranges of numbers.* name the columns of the ends"):
        read_named_graph(path)
    names = ("start", "end") if "start" in text else ("from", "to")
    assert read_named_graph(path, source=names[0], target=names[1]).graph.edges


@pytest.mark.parametrize(
    "text",
    [
        "from,to,weight\n1,2,3\n2,3,4\n3,1,1\n", "from,to\n1,2\n2,3\n", "start,end\n3,7\n3,9\n", "start,end\nA,B\n",
        "source,target\n2020-01-01,2020-02-01\n", "from,to\n1.2.3,1.3.0\n", "start,end,employee,manager\n2020,2021,Ada,Bob\n",
    ],
)  # fmt: skip
def test_edges_between_numbers_are_edges(tmp_path, text):
    (path := tmp_path / "g.csv").write_text(text)
    assert len(read_named_graph(path).graph.edges) == text.count("\n") - 1


@pytest.mark.parametrize(
    "head", [*"Typ Beziehung Art relación tipo ilişki тип связь 关系 verb".split(), "type de relation"]
)
def test_a_relation_has_its_name_in_other_languages(tmp_path, head):
    (path := tmp_path / "g.csv").write_text(f"source;target;{head}\nAda;Bob;kennt\n", encoding="utf-8")
    read = read_named_graph(path)
    assert facts(read.graph) == [("Ada", "kennt", "Bob")] and f"relations from {head}" in read.summary


def test_a_relation_given_by_hand_is_the_only_one_told_and_the_former_is_kept(tmp_path):
    (path := tmp_path / "g.csv").write_text("buyer,seller,fact\nAda,Bob,met\n")
    read = read_named_graph(path, relation="fact")
    assert facts(read.graph) == [("Ada", "met", "Bob")] and read.summary.endswith("relations from fact")
    (path := tmp_path / "g.graphml").write_text(HAND_MADE)
    read = read_named_graph(path, relation="verb")
    assert (read.graph.edges[0].type, read.graph.edges[0].properties) == ("likes", {"relation": "knows"})
    assert "relations from verb; the former relation is kept as the property relation" in read.summary
    (path := tmp_path / "g.jsonl").write_text(lines(
        [{"type": "relationship", "id": "1", "label": "KNOWS", "start": {"id": "a"}, "end": {"id": "b"}, "properties": {"verb": "likes"}}]
    ))  # fmt: skip
    edge = read_named_graph(path, relation="verb").graph.edges[0]
    assert (edge.type, edge.properties) == ("likes", {"relation": "KNOWS"})


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("source;target;w\na;b;1,5\nb;c;3\n", [1.5, 3], "the numbers of w have decimal commas"),
        ("source;target;w\na;b;1.234,50\nb;c;12,00\n", [1234.5, 12.0], "decimal commas"),
        ('source,target,w\na,b,"1,500"\nb,c,"2,000"\n', ["1,500", "2,000"], "2 edges"),
        ("source;target;w\na;b;1,2\nb;c;x,y\n", ["1,2", "x,y"], "2 edges"),
        ("source,target,w\na,b,NaN\nb,c,1.5\nc,d,\nd,e,NA\n", [None, 1.5, None, None], "2 cells without a number, such as NaN"),
        ("source,target,w\na,b,NA\nb,c,US\n", ["NA", "US"], "2 edges"),
        ("source,target,w\na,b,1\nb,c,2\nc,d,x\n", ["1", "2", "x"], "w is text, since 1 of its values are no plain numbers"),
        ("source,target,w\na,b,007\nb,c,12\n", ["007", "12"], "2 edges"),
        ("source,target,w\na,b,1e-05\nb,c,.5\n", [1e-05, 0.5], "2 edges"),
        ("source,target,w\na,b,1e999\nb,c,2\n", ["1e999", "2"], "2 edges"),
        ("source,target,w\na,b,True\nb,c,false\n", [True, False], "2 edges"),
    ],
)  # fmt: skip
def test_the_cells_of_a_column_are_numbers_or_texts_together(tmp_path, text, values, told):
    (path := tmp_path / "g.csv").write_text(text)
    read = read_named_graph(path)
    found = [edge.properties.get("w") for edge in read.graph.edges]
    assert found == values and list(map(type, found)) == list(map(type, values)) and told in read.summary, (
        read.summary
    )


def test_a_row_with_one_end_is_a_node_and_counted(tmp_path):
    (path := tmp_path / "g.csv").write_text("source,target\na,b\nc,\n,d\n")
    read = read_named_graph(path)
    assert set(read.graph.ids) == set("abcd") and facts(read.graph) == [("a", "related_to", "b")]
    assert "left out: 2 edges without a source or a target" in read.note


@pytest.mark.parametrize(
    ("text", "is_data"), [("Ada,Bob,3\nBob,Cy,4\n", True), ("buys,sells,price\nAda,Bob,3\nBob,Cy,4\n", False)]
)
def test_columns_are_named_by_their_number(tmp_path, text, is_data):
    (path := tmp_path / "g.csv").write_text(text)
    for source, target in ((0, 1), ("0", "1")):
        read = read_named_graph(path, source=source, target=target)
        assert facts(read.graph) == [("Ada", "related_to", "Bob"), ("Bob", "related_to", "Cy")]
        assert f"the first line is {'' if is_data else 'not '}data" in read.summary
    assert facts(lab.read_graph(path, source=1, target=0, say=[].append))[0] == ("Bob", "related_to", "Ada")


@pytest.mark.parametrize(
    ("names", "encoding"),
    [("Kovač,Šimić", "cp1250"), ("Dvořák,x", "cp1250"), ("Żaba,Młynarz", "cp1250"), ("José,Peña", "cp1252"), ("Søren,Bjørn", "cp1252")],
)  # fmt: skip
def test_a_code_page_that_is_guessed_is_told_as_a_guess(tmp_path, names, encoding):
    (path := tmp_path / "g.csv").write_bytes(f"source,target\n{names}\n".encode(encoding))
    read = read_named_graph(path)
    assert list(read.graph.ids) == names.split(",") and f"read as {encoding}" in read.summary
    assert ("a guess: encoding=" in read.summary) == (names != "Żaba,Młynarz"), read.summary


def test_a_table_of_ids_beside_others_has_no_names_that_it_does_not_hold(tmp_path):
    (tmp_path / "entities.csv").write_text("id,title,type\ne0,ADA,P\ne1,WORKS,F\n")
    (tmp_path / "edges.csv").write_text("source,target\nADA,WORKS\n")
    (tmp_path / "texts.csv").write_text("id,text\nt1,Ada built it\nt2,Works\n")
    assert "names from title" in read_named_graph(tmp_path).summary
    (tmp_path / "people.csv").write_text("person,age\nLin,3\nBob,4\n")
    assert "names from person" in read_named_graph(tmp_path).summary


def test_a_fact_of_several_documents_is_one_edge_and_counted(tmp_path):
    document = {"nodes": [{"id": "Ada"}, {"id": "Bob"}], "relationships": links([("Ada", "KNOWS", "Bob")])}
    (path := tmp_path / "g.json").write_text(json.dumps([document, document]))
    read = read_named_graph(path)
    assert len(read.graph.edges) == 1 and "1 edge that an earlier graph has too" in read.note
    two = {**document, "relationships": 2 * document["relationships"]}
    path.write_text(json.dumps([two]))
    assert len(read_named_graph(path).graph.edges) == 2


def test_nodes_of_llm_graph_builder_go_by_their_property_id(tmp_path):
    nodes = [
        {"element_id": f"4:c:{n}", "labels": ["P"], "properties": {"id": name}}
        for n, name in enumerate(["Ada", "Bob"])
    ]
    ends = {"start_node_element_id": "4:c:0", "end_node_element_id": "4:c:1"}
    (path := tmp_path / "g.json").write_text(
        json.dumps({"nodes": nodes, "relationships": [{"element_id": "5:c:0", "type": "KNOWS", **ends}]})
    )
    assert facts(read_named_graph(path).graph) == [("Ada", "KNOWS", "Bob")]


@pytest.mark.parametrize("names", [("Ada", "Bob", "Cy"), ("Ada L", "Bob 2", "3")])
def test_the_multiline_lists_of_networkx_are_read(tmp_path, names):
    graph = nx.MultiDiGraph(
        [(names[0], names[1], {"relation": "knows"}), (names[0], names[1]), (names[1], names[2])]
    )
    for name, text in (("g.adjlist", "\n".join(nx.generate_multiline_adjlist(graph))), ("g.txt", None)):
        path = tmp_path / name
        path.write_text(text) if text else nx.write_multiline_adjlist(graph, path)
        read = read_named_graph(path).graph
        assert (
            len(read.edges) == 3
            and facts(read)[0] == (names[0], "knows", names[1])
            and set(read.ids) == set(names)
        )


def test_an_unknown_ending_is_refused_with_all_that_are_written():
    with pytest.raises(UnknownName, match=r"\.csv.*\.rdf"):
        write_graph(PropertyGraph.of(), "g.xyz")
    with pytest.raises(UnknownName) as refused:
        check_graph_file("g.csv")  # which holds not every graph, so no run is saved in one
    assert ".csv" not in str(refused.value).partition("Known")[2]


KUMU = {
    "elements": [{"label": "Ada", "type": "Person"}, {"label": "Works", "type": "Firm"}],
    "connections": [{"from": "Ada", "to": "Works", "type": "founded"}],
}
STIX = {
    "type": "bundle",
    "objects": [
        {"type": "person", "id": "Ada"},
        {"type": "firm", "id": "Works"},
        {"type": "relationship", "relationship_type": "founded", "source_ref": "Ada", "target_ref": "Works"},
    ],
}
BIOGRID = "#Id\tSymbol Interactor A\tSymbol Interactor B\tSystem\n117\tMAP2K4\tFLNC\tTwo-hybrid\n"


@pytest.mark.parametrize(
    ("name", "text", "fact", "told"),
    [
        ("kumu.json", json.dumps(KUMU), ("Ada", "founded", "Works"), "types from type"),
        ("stix.json", json.dumps(STIX), ("Ada", "founded", "Works"), "types from type"),
        ("g.tsv", BIOGRID, ("MAP2K4", "related_to", "FLNC"), "edges are from Symbol Interactor A to"),
        ("g.txt", "protein1 protein2 score\nx.P1 x.P2 173\n", ("x.P1", "related_to", "x.P2"), "from protein1 to protein2"),
        ("g.csv", "airline,src_airport,dst_airport\n2B,AER,KZN\n", ("AER", "related_to", "KZN"), "from src_airport"),
        ("g.csv", "id,name,manager_id\n1,Ada,\n2,Bob,1\n", ("Bob", "manager", "Ada"), "edges from the field manager_id"),
        ("g.json", '{"nodes": [{"id": "b", "parent": "a"}, {"id": "a"}]}', ("b", "parent", "a"), "edges from the field parent"),
    ],
)  # fmt: skip
def test_ends_are_found_where_a_program_puts_them(tmp_path, name, text, fact, told):
    (path := tmp_path / name).write_text(text)
    read = read_named_graph(path)
    assert facts(read.graph) == [fact] and told in read.summary, read.summary


def test_a_field_that_names_no_node_makes_no_edges(tmp_path):
    (path := tmp_path / "g.csv").write_text("id,name,manager_id,cluster_id\n1,Ada,9,1\n2,Bob,7,2\n")
    assert not read_named_graph(path).graph.edges


@pytest.mark.parametrize(
    ("text", "edges", "nodes"),
    [
        ("id,label,start,end\n1,Ada,1815,1852\n2,Charles,1791,1871\n", [], {"Ada", "Charles"}),
        (
            "Task,Needs,Start,End\nB,A,2020-01-01,2020-02-01\nC,B,2020-02-01,2020-03-01\nD,C,2020-03-01,\n",
            [("B", "Needs", "A"), ("C", "Needs", "B"), ("D", "Needs", "C")],
            {"A", "B", "C", "D"},
        ),
    ],
)
def test_periods_beside_nodes_or_edges_are_their_properties(tmp_path, text, edges, nodes):
    (path := tmp_path / "gantt.csv").write_text(text)
    read = read_named_graph(path).graph
    assert facts(read) == edges and set(read.ids) == nodes


def test_ends_named_by_hand_are_those_of_the_table_of_edges(tmp_path):
    nodes, edges = tmp_path / "узлы.csv", tmp_path / "рёбра.csv"
    nodes.write_text("id,имя,тип\n1,Толстой,писатель\n2,Москва,город\n", encoding="utf-8")
    edges.write_text("откуда,куда,связь\n1,2,жил_в\n", encoding="utf-8")
    for path in ([nodes, edges], tmp_path):
        read = read_named_graph(path, source="откуда", target="куда")
        assert facts(read.graph) == [("Толстой", "жил_в", "Москва")], read.summary
        assert read.graph.node("Толстой").labels == ("писатель",)
        assert "edges are from откуда to куда" in read.summary
    with pytest.raises(BadInput, match=r"no table of .* has the columns 'кто' and 'кого'"):
        read_named_graph([nodes, edges], source="кто", target="кого")
    with pytest.raises(BadInput, match="column of ends 'кого'"):
        read_named_graph([nodes, edges], source="откуда", target="кого")


@pytest.mark.parametrize("delimiter", [" ", ",", "\t", ";"])
def test_ends_in_lines_of_networkx_are_split_at_the_delimiter_before_the_dict(tmp_path, delimiter):
    graph = nx.Graph([("Ada", "Bob"), ("Bob", "Carla")])
    nx.write_edgelist(graph, path := tmp_path / "g.edgelist", delimiter=delimiter)
    assert {frozenset(fact[::2]) for fact in facts(read_named_graph(path).graph)} == {
        frozenset({"Ada", "Bob"}),
        frozenset({"Bob", "Carla"}),
    }
    nx.write_edgelist(nx.Graph([("Bob, of York", "Carla")]), path, delimiter=delimiter)
    if delimiter in "\t;":
        assert facts(read_named_graph(path).graph)[0][::2] == ("Bob, of York", "Carla")
    else:
        with pytest.raises(BadInput, match="two ends and a dict are expected"):
            read_named_graph(path)


@pytest.mark.parametrize(
    ("text", "edges", "told"),
    [
        (
            "id,name,manager_id\n1,Ada,\n2,Bob,1\n3,Cy,9\n",
            [("Bob", "manager", "Ada")],
            "left out: 1 value of manager_id",
        ),
        (
            "id,name,parent_id\n1,root,0\n2,a,1\n3,b,2\n",
            [("a", "parent", "root"), ("b", "parent", "a")],
            "1 value of parent_id",
        ),
        (
            "employee_id,first_name,last_name,title,manager_id\n1,Ada,Lee,CEO,\n2,Bob,Bee,Dev,1\n3,Cy,Cee,Dev,1\n",
            [("Bob Bee", "manager", "Ada Lee"), ("Cy Cee", "manager", "Ada Lee")],
            "name is first_name and last_name",
        ),
        (
            "id,name,cites\nA,A,\nB,B,A\nC,C,B\n",
            [("B", "cites", "A"), ("C", "cites", "B")],
            "the field cites",
        ),
        (
            "employee,manager,since,until\nBob,Ada,2001,2002\nCy,Bob,2001,2003\n",
            [("Bob", "reports to", "Ada"), ("Cy", "reports to", "Bob")],
            "reports to",
        ),
        ("id,name,buddy_id\n1,Ada,2\n2,Bob,1\n", [], "buddy_id holds ids of nodes"),
    ],
)
def test_a_field_that_names_another_row_is_an_edge_and_its_other_values_are_counted(
    tmp_path, text, edges, told
):
    (path := tmp_path / "g.csv").write_text(text)
    read = read_named_graph(path)
    assert facts(read.graph) == edges and told in read.summary, read.summary


def test_several_tables_of_different_things_with_the_same_ids_are_refused(tmp_path):
    (tmp_path / "customers.csv").write_text("id,name,city\n1,Ann,Bern\n2,Bo,Rom\n")
    (tmp_path / "products.csv").write_text("id,title\n1,Pen\n2,Ink\n")
    with pytest.raises(BadInput, match=r"several tables have a node 1, .*SQLite"):
        read_named_graph(tmp_path)
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    assert facts(read_named_graph([tmp_path / "customers.csv", tmp_path / "edges.csv"]).graph)


def test_points_between_thousands_are_known_where_another_column_has_decimal_commas(tmp_path):
    (path := tmp_path / "g.csv").write_text(
        "source;target;sum;rate;n;code\nA;B;1.234;0,5;1;1E5\nB;C;12.000;1,5;2;2E7\n"
    )
    read = read_named_graph(path)
    assert [edge.properties for edge in read.graph.edges] == [
        {"sum": 1234, "rate": 0.5, "n": 1, "code": "1E5"},
        {"sum": 12000, "rate": 1.5, "n": 2, "code": "2E7"},
    ]
    assert "the numbers of sum have points between thousands" in read.summary
