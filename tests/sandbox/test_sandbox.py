"""What the sandbox does for an honest statement."""

from __future__ import annotations

import sys

import pytest
from support.waiting import AMPLE

from kgot_lab.errors import QueryFailed
from kgot_lab.graph.changes import MutableGraph, inverse
from kgot_lab.sandbox import open_sandbox
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")

ADA, LONDON = Node("Ada", ("Person",), {"born": 1815, "tags": ["maths"]}), Node("London", ("City",))
BORN = Edge("Ada", "born in", "London", {"sure": True})


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(seconds=AMPLE, memory_mb=256) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(opened):
    opened.reset((ADA, LONDON), (BORN,))
    return opened


# --- writing ---


def test_a_write_returns_exactly_what_it_changed_and_applies_nothing(sandbox):
    statement = "add('Ada', 'wrote', 'Notes', year=1843, object_label='Text')\nG.nodes['London']['size'] = 9"
    diff = sandbox.write(statement)
    changed = (LONDON, Node("London", ("City",), {"size": 9}))
    wrote = Edge("Ada", "wrote", "Notes", {"year": 1843})
    assert diff == Diff((Node("Notes", ("Text",)),), changed_nodes=(changed,), added_edges=(wrote,))
    assert sandbox.read("result = names()") == ("Ada", "London")
    sandbox.apply(diff)
    assert sandbox.read("result = names()") == ("Ada", "London", "Notes")


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("G.add_node('x')", "+1 node"),
        ("G.add_nodes_from(['x', 'y'], label='L')", "+2 nodes"),
        ("G.add_edge('Ada', 'Bob')", "+1 node, +1 edge"),
        (
            "G.add_edges_from([('Ada', 'Bob', {'relation': 'knows'}), ('Bob', 'London', 'likes', {'w': 1})])",
            "+1 node, +2 edges",
        ),
        ("self.G.add_edge('Ada', 'London', relation='visited')", "+1 edge"),
        ("G.remove_node('Ada')", "-1 node, -1 edge"),
        ("G.remove_nodes_from(['Ada', 'London'])", "-2 nodes, -1 edge"),
        ("G.remove_edge('Ada', 'London')", "-1 edge"),
        ("G.remove_edges_from(list(G.edges))", "-1 edge"),
        ("G.clear_edges()", "-1 edge"),
        ("G.clear()", "-2 nodes, -1 edge"),
        ("G.nodes['Ada']['x'] = 1", "~1 node"),
        ("del G.nodes['Ada']['born']", "~1 node"),
        ("G.nodes['Ada'].pop('born')", "~1 node"),
        ("G.nodes['Ada'].update(x=1, y=2)", "~1 node"),
        ("d = G.nodes['Ada']; d |= {'x': 1}", "~1 node"),
        ("G.nodes['Ada'].setdefault('x', 1)", "~1 node"),
        ("G.nodes['Ada'].clear()", "~1 node"),
        ("G.nodes['Ada']['tags'].append('poetry')", "~1 node"),
        ("G.nodes['Ada']['tags'] += ['poetry']", "~1 node"),
        ("G.nodes['Ada']['label'] = 'Countess'", "~1 node"),
        ("G.edges['Ada', 'London', 'born in']['year'] = 1815", "~1 edge"),
        ("G['Ada']['London']['born in']['year'] = 1815", "~1 edge"),
        ("for u, v, d in G.edges(data=True): d['seen'] = 1", "~1 edge"),
        ("G.edges['Ada', 'London', 'born in']['relation'] = 'from'", "+1 edge, -1 edge"),
        ("nx.set_node_attributes(G, {'Ada': 3, 'London': 4}, 'rank')", "~2 nodes"),
        ("nx.set_edge_attributes(G, 2, 'w')", "~1 edge"),
        (
            "nx.relabel_nodes(G, {'Ada': 'Ada Lovelace'}, copy=False)",
            "+1 node, -1 node, +1 edge, -1 edge",
        ),
        (
            "nx.contracted_nodes(G, 'Ada', 'London', copy=False, self_loops=False)",
            "-1 node, ~1 node, -1 edge",
        ),
        ("nx.add_path(G, ['Ada', 'Bob', 'Cyd'])", "+2 nodes, +2 edges"),
        ("G.update(nodes=['x'], edges=[('x', 'Ada')])", "+1 node, +1 edge"),
        ("[G.add_node(n) for n in map(lambda n: f'{n}{len(G)}', 'ab')]", "+2 nodes"),
        ("def grow(n):\n    G.add_node(n)\n    if len(n) < 3: grow(n + 'x')\ngrow('x')", "+3 nodes"),
        ("H = G.copy(); H.remove_node('Ada'); H.nodes['London']['x'] = 1", "nothing changed"),
        ("H = G.subgraph(['Ada']).copy(); H.clear()", "nothing changed"),
        ("G.add_node('x'); G.remove_node('x')", "nothing changed"),
        ("G.nodes['Ada']['born'] = 1; G.nodes['Ada']['born'] = 1815", "nothing changed"),
        ("G.add_node('Ada'); G.add_edge('Ada', 'London', relation='born in')", "nothing changed"),
        (
            "G.remove_node('Ada'); node('Ada', 'Person', born=1815, tags=['maths']); add('Ada', 'born in', 'London', sure=True)",
            "nothing changed",
        ),
        ("G.nodes['Ada']['born'] = 1815.0", "~1 node"),
        ("G.edges['Ada', 'London', 'born in']['sure'] = 1", "~1 edge"),
    ],
)
def test_every_way_to_change_the_graph_is_seen_and_can_be_undone(sandbox, statement, changed):
    truth = MutableGraph((ADA, LONDON), (BORN,))
    diff = sandbox.write(statement)
    assert str(diff) == changed
    truth.apply(diff)
    truth.apply(inverse(diff))
    assert (truth.nodes, truth.edges) == ({"Ada": ADA, "London": LONDON}, {BORN.identity: BORN})


@pytest.mark.parametrize(
    ("written", "type", "properties"),
    [
        ("relation='knows', w=1", "knows", {"w": 1}),
        ("relationship='knows'", "knows", {}),
        ("label='knows'", "knows", {}),
        ("type='knows'", "knows", {}),
        ("relation='knows', label='a label'", "knows", {"label": "a label"}),
        ("key='knows'", "knows", {}),
        ("'knows', relation='knows'", "knows", {}),
        ("w=1", "related_to", {"w": 1}),
        ("relation=5, w=1", "5", {"w": 1}),
        ("relation=5, type='knows'", "5", {"type": "knows"}),
        ("relation=None, type='knows'", "knows", {}),
    ],
)
def test_an_edge_gets_its_type_from_where_models_write_it(sandbox, written, type, properties):
    (edge,) = sandbox.write(f"G.add_edge('London', 'Ada', {written})").added_edges
    properties.pop("relation", None)  # the word is kept for the type
    assert edge == Edge("London", type, "Ada", properties)


@pytest.mark.parametrize(
    "written",
    ["relation=['no', 'text']", "relation=['no', 'text'], type='knows'", "'knows', relation={'a': 1}"],
)
def test_a_relation_that_is_no_text_is_refused_by_name_and_not_lost(sandbox, written):
    with pytest.raises(QueryFailed, match=r"the relation of London -> Ada must be text, not (list|dict)"):
        sandbox.write(f"G.add_edge('London', 'Ada', {written})")
    with pytest.raises(QueryFailed, match="the relation of Ada -> London must be text"):
        sandbox.write("G.edges['Ada', 'London', 'born in']['relation'] = ['no']")
    assert str(sandbox.write("G.edges['Ada', 'London', 'born in']['relation'] = 5")) == "+1 edge, -1 edge"


@pytest.mark.parametrize(
    "statement",
    [
        "G.add_edge('Ada', 'Bob', relation='knows', since=1)",
        "G.add_edge('Ada', 'Bob', label='knows')",
        "G.add_edge('Ada', 'Bob')",
        "G.add_edge('Ada', 'Bob', key='k1', relation='knows')",
        "G.add_edge(1, 2.5, relation='knows'); G.nodes[1]['label'] = 'N'",
        "add('Ada', 'knows', 'Bob', object_label='Person', since=1)",
    ],
)
def test_the_same_write_twice_changes_nothing_the_second_time(sandbox, statement):
    sandbox.apply(sandbox.write(statement))
    assert not sandbox.write(statement)


def test_different_relations_between_the_same_nodes_survive_in_parallel(sandbox):
    diff = sandbox.write("for r in ('knows', 'likes', 'knows'): G.add_edge('London', 'Ada', relation=r)")
    assert [edge.type for edge in diff.added_edges] == ["knows", "likes"]


def test_a_second_property_merges_into_the_edge_that_is_there(sandbox):
    diff = sandbox.write("G.add_edge('Ada', 'London', relation='born in', year=1815)")
    assert diff.changed_edges == ((BORN, Edge("Ada", "born in", "London", {"sure": True, "year": 1815})),)


def test_parallel_edges_of_one_type_keep_their_keys(sandbox):
    twice = (Edge("Ada", "paid", "London", {"n": 1}, "1"), Edge("Ada", "paid", "London", {"n": 2}, "2"))
    sandbox.reset((ADA, LONDON), twice)
    assert sandbox.read("result = [d['n'] for _, _, d in G.edges(data=True)]") == (1, 2)
    diff = sandbox.write("G.edges['Ada', 'London', 'paid#2']['n'] = 3")
    assert diff.changed_edges == ((twice[1], Edge("Ada", "paid", "London", {"n": 3}, "2")),)


def test_numbers_as_ids_become_text_and_meet_the_text_that_is_there(sandbox):
    sandbox.apply(sandbox.write("node('5', 'N', a=1); add('5', 'next', '6')"))
    diff = sandbox.write("G.add_node(5, b=2); G.add_edge(5, 7, relation='next'); G.add_edge(5, 5)")
    assert diff.added_nodes == (Node("7"),)
    assert diff.changed_nodes == ((Node("5", ("N",), {"a": 1}), Node("5", ("N",), {"a": 1, "b": 2})),)
    assert set(diff.added_edges) == {Edge("5", "next", "7"), Edge("5", "related_to", "5")}
    assert not (diff.removed_nodes or diff.removed_edges or diff.changed_edges)


@pytest.mark.parametrize(
    ("labels", "statement", "after"),
    [
        ((), "label = 'A'", ("A",)),
        (("A",), "label = 'B'", ("B",)),
        (("A", "B"), "label = 'C'", ("C", "B")),
        (("A", "B"), "labels = ['B']", ("B",)),
        (("A", "B"), "labels = {'C', 'B'}", ("B", "C")),
        (("A",), "label = None", ()),
        ((), "labels = ['A', 'B', 'A']", ("A", "B")),
        ((), "label = 7", ("7",)),
    ],
)
def test_labels_follow_the_attribute_that_was_written(sandbox, labels, statement, after):
    sandbox.reset((Node("n", labels, {"p": 1}),), ())
    name, value = statement.split(" = ")
    changed = sandbox.write(f"G.nodes['n'][{name!r}] = {value}").changed_nodes
    assert changed[0][1] == Node("n", after, {"p": 1})


def test_values_are_kept_as_json(sandbox):
    diff = sandbox.write(
        "import datetime as d, numpy as np, collections as c\n"
        "node('x', 'L', day=d.date(2026, 1, 2), at=d.datetime(2026, 1, 2, 3), some={3, 1, 2}, pair=(1, 'a'), i=np.int64(4),\n"
        "     f=np.float32(.5), b=np.bool_(True), array=np.arange(2), deep={'a': [{1: None}]}, count=c.Counter('aa'))\n"
        "G.nodes['x'][7] = 'seven'"
    )
    assert diff.added_nodes[0].properties == {
        "day": "2026-01-02", "at": "2026-01-02T03:00:00", "some": [1, 2, 3], "pair": [1, "a"], "i": 4, "f": 0.5,
        "b": True, "array": [0, 1], "deep": {"a": [{"1": None}]}, "count": {"a": 2}, "7": "seven",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("node('x', when=print)", "property 'when' of 'x' must be text"),
        ("node('x', size=float('inf'))", "property 'size' of 'x' must be a finite number"),
        ("add('Ada', 'knows', 'Bob', how=object)", "property 'how' of Ada -> Bob"),
        ("G.add_node('x', **{'data': b'bytes'})", "property 'data' of 'x'"),
        ("G.nodes['Ada'][('a', 'b')] = 1", "a property's name must be text, not tuple (of 'Ada')"),
        ("x = []; x.append(x); node('y', deep=x)", "nested more than"),
        ("G.add_node(('a', 'b'))", "a node's id must be a text that is not blank, not tuple ('a', 'b')"),
        ("G.add_node(True)", "a node's id must be"),
        ("G.add_node('  ')", "a node's id must be"),
        ("G.add_node(float('nan'))", "a node's id must be"),
        ("add('Ada', float('inf'), 'Bob')", "a node's id must be"),
        ("import numpy as np; G.add_node(np.datetime64('2026-01-02', 'ns'))", "a node's id must be"),
        ("node('x', label=['a', None])", "the label of 'x' must be text"),
        ("node('x', label=float('nan'))", "the label of 'x' must be text"),
        ("node('x', n=10**400)", "property 'n' of 'x' must be text if it has more than 400 digits"),
        ("node('x', s=set(range(100_001)))", "more than 100,000 items"),
        ("node('x', d={1: 'a', '1': 'b'})", "two keys of property 'd' of 'x' are '1' as text, and one"),
        ("node('x', d={None: 'a', 'None': 'b'})", "two keys of property 'd' of 'x' are 'None'"),
        ("G.nodes['Ada'].update({True: 1, 'True': 2})", "two keys of the properties of 'Ada' are 'True'"),
        ("import numpy as np; node('x', at=np.datetime64('NaT'))", "not datetime64"),
        ("import numpy as np; node('x', at=np.timedelta64(1, 'ns'))", "not timedelta64"),
        ("import numpy as np; node('x', at=np.zeros(1, 'i4,f4'))", "not ndarray"),
        ("node('x', data=memoryview(b'ab'))", "not memoryview"),
        ("G.graph['name'] = 'mine'", "G.graph is not kept"),
        ("G._adj['Ada']['London'] = {'knows': {}}", "no longer fit together"),
        ("G._node['Eve'] = {}", "no longer fit together"),
        ("object.__setattr__(G, '_node', {'Eve': {}})", "no longer fit together"),
        ("vars(G)['_succ'].clear()", "no longer fit together"),
        ("G = nx.MultiDiGraph()", "G was bound to another graph"),
        ("G = nx.relabel_nodes(G, {'Ada': 'A'})", "copy=False"),
        ("self.G = None", "G was bound to another graph"),
        ("G.add_edge('a')", "TypeError: "),
        ("x = 1\nG.nodes['nobody']['x'] = 1", "KeyError: 'nobody' (line 2: G.nodes['nobody']['x'] = 1)"),
        ("G.add_node('a'\n", "SyntaxError: '(' was never closed (line 1: G.add_node('a')"),
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError: division by zero (line 2: return 1 / 0)"),
    ],
)
def test_a_write_that_cannot_be_kept_says_why(sandbox, statement, reason):
    with pytest.raises(QueryFailed) as failed:
        sandbox.write(statement)
    assert reason in str(failed.value)
    assert failed.value.statement == statement
    assert "Traceback" not in str(failed.value) and "kgot_lab" not in str(failed.value)


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("G._adj['Ada']['London']['knows'] = {}", "+1 edge"),
        ("G._node['Ada'] = {'x': 1}", "~1 node"),
        ("dict.update(G.nodes['Ada'], x=1)", "~1 node"),
        ("push = list.append; push(G.nodes['Ada']['tags'], 'poetry')", "~1 node"),
        ("import heapq; heapq.heappush(G.nodes['Ada']['tags'], 'a')", "~1 node"),
        ("G.nodes['Ada'].journal = None; G.nodes['Ada']['x'] = 1", "~1 node"),
        ("_x = G.nodes['Ada']", "nothing changed"),
    ],
)
def test_what_is_written_past_the_methods_of_the_graph_is_seen(sandbox, statement, changed):
    assert str(sandbox.write(statement)) == changed


def test_reserved_characters_in_types_and_names_survive(sandbox):
    odd = [Edge("Ada", "C#", "London"), Edge("Ada", "a#b", "London", {}, "c")]
    odd.append(Edge("Ada", 'plays "in"\n', "London"))
    sandbox.reset((ADA, LONDON), tuple(odd))
    diff = sandbox.write("for *_, d in G.edges(data=True): d['x'] = 1")
    assert [new.identity for _, new in diff.changed_edges] == [edge.identity for edge in odd]


# --- reading ---


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("result = 5", (5,)),
        ("result = 'text'", ("text",)),
        ("result = False", (False,)),
        ("result = []", ()),
        ("result = ['a', ('b', 1)]", ("a", ["b", 1])),
        ("result = {'b', 'a', 'c'}", ("a", "b", "c")),
        ("result = {'a': 1}", ({"a": 1},)),
        ("result = {('a', 'b'): 1}", ([["a", "b"], 1],)),
        ("result = (n for n in G)", ("Ada", "London")),
        ("result = G.nodes", ("Ada", "London")),
        ("result = G.nodes(data='born')", (["Ada", 1815], ["London", None])),
        ("result = G.nodes['London']", ({"label": "City"},)),
        ("result = G['Ada']", ({"London": {"born in": {"sure": True, "relation": "born in"}}},)),
        ("result = list(G.successors('Ada'))", ("London",)),
        (
            "result = G.subgraph(['Ada', 'London'])",
            ({"subject": "Ada", "relation": "born in", "object": "London", "sure": True},),
        ),
        ("result = nx.shortest_path(G, 'Ada', 'London')", ("Ada", "London")),
        ("result = dict(G.degree())", ({"Ada": 1, "London": 1},)),
        ("import numpy as np; result = np.float64(1.5)", (1.5,)),
        ("import numpy as np; result = np.array(3)", (3,)),
        (
            "import numpy as np; result = [np.array(3), np.datetime64('2026-01-02T03', 'ns')]",
            (3, "2026-01-02T03:00:00.000000000"),
        ),
        ("import numpy as np; result = np.eye(2)", ([1.0, 0.0], [0.0, 1.0])),
        ("H = G.to_undirected(); H.remove_node('Ada'); result = list(H)", ("London",)),
        ("G = G.reverse(); result = list(G.successors('London'))", ("Ada",)),
        ("result = [d['tags'][0] for _, d in G.nodes(data=True) if 'tags' in d]", ("maths",)),
    ],
)
def test_rows_are_made_from_result(sandbox, statement, rows):
    assert sandbox.read(statement) == rows


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("x = 1", "must put what it found into a variable called result"),
        ("result = None", "result is None"),
        ("result = [print]", "a row of result must be text"),
        ("result = {1: 'a', '1': 'b'}", "two keys of a row of result are '1' as text"),
        ("result = [10**400]", "more than 400 digits"),
        ("result = [bytearray(b'ab')]", "not bytearray"),
        ("result = names(); G.remove_node('Ada')", "a read may not change the graph"),
        ("result = G.nodes['Ada'].setdefault('x', 1)", "a read may not change the graph"),
        ("result = G.nodes['Ada']['tags'].pop()", "a read may not change the graph"),
    ],
)
def test_a_read_without_rows_or_with_side_effects_is_refused(sandbox, statement, reason):
    with pytest.raises(QueryFailed, match=reason):
        sandbox.read(statement)
    assert sandbox.read("result = len(G)") == (2,)


def test_facts_and_names_find_things_however_they_are_written(sandbox):
    friend = "add('Charles Babbage', 'friend of', 'Ada', subject_label='Person')"
    sandbox.apply(sandbox.write(f"add('London', 'part_of', 'England'); {friend}"))

    def found(call):
        rows = sandbox.read(f"result = {call}")
        return [f"{row['subject']} {row['relation']} {row['object']}" for row in rows]

    assert found("facts('ada')") == ["Ada born in London", "Charles Babbage friend of Ada"]
    friend = "Charles Babbage friend of Ada"
    assert found("facts('ada', hops=2)") == ["Ada born in London", friend, "London part_of England"]
    assert found("facts('babbage')") == ["Charles Babbage friend of Ada"]
    assert found("facts(['England', 'Charles'])") == ["London part_of England", friend]
    assert found("facts(relation='Part Of')") == ["London part_of England"]
    assert found("facts('nobody')") == []
    assert len(found("facts()")) == 3
    assert sandbox.read("result = facts('Ada', 'born_in')[0]") == (
        {"subject": "Ada", "relation": "born in", "object": "London", "sure": True},
    )
    assert sandbox.read("result = names('person')") == ("Ada", "Charles Babbage")


# --- computing ---


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print(6 * 7)", "42\n"),
        ("6 * 7", "42"),
        ("x = 6\nx * 7", "42"),
        ("print('a')\n'b'", "a\nb"),
        ("x = 1", ""),
        ("", ""),
        ("import math\ndef f(n): return math.comb(n, 2)\n[f(n) for n in range(4)]", "[0, 0, 1, 3]"),
    ],
)
def test_compute_returns_what_was_printed_or_the_last_value(sandbox, code, text):
    assert sandbox.compute(code) == text


def test_compute_sees_no_graph_and_says_what_went_wrong(sandbox):
    with pytest.raises(QueryFailed, match=r"NameError: name 'G' is not defined \(line 1: G\)"):
        sandbox.compute("G")
    assert len(sandbox.compute("'x' * 200_000")) == 200_000
    with pytest.raises(QueryFailed, match=r"the result has 200,001 characters; 200,000 can be returned"):
        sandbox.compute("'x' * 200_001")


def test_two_workers_agree_on_the_order_of_sets_and_on_chance():
    code = "import random\nprint(list({'b', 'a', 'c', 'ab', 'ba'}), random.random())"
    with open_sandbox() as one, open_sandbox() as other:
        assert one.compute(code) == other.compute(code) == one.compute(code)
