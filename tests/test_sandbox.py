"""What the sandbox does for an honest statement, and for a worker that dies, hangs or lies."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import sys
import threading
from pathlib import Path

import networkx as nx
import pytest

from kgot_lab.errors import BadInput, NoSandbox, QueryFailed, SandboxError, UnknownName
from kgot_lab.sandbox import Launch, Sandbox, open_sandbox, probe, seccomp
from kgot_lab.sandbox.claims import changes, key_of, put
from kgot_lab.sandbox.replies import claim_of, claims
from kgot_lab.sandbox.tracked import Journal, TrackedGraph, track
from kgot_lab.sandbox.truth import Truth, inverse
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")

ADA, LONDON = Node("Ada", ("Person",), {"born": 1815, "tags": ["maths"]}), Node("London", ("City",))
BORN = Edge("Ada", "born in", "London", {"sure": True})


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(seconds=3, memory_mb=256) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(opened):
    opened.reset((ADA, LONDON), (BORN,))
    return opened


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_write_returns_exactly_what_it_changed_and_applies_nothing(sandbox):
    diff = sandbox.write("add('Ada', 'wrote', 'Notes', year=1843, object_label='Text')\nG.nodes['London']['size'] = 9")
    assert diff == Diff(
        added_nodes=(Node("Notes", ("Text",)),),
        changed_nodes=((LONDON, Node("London", ("City",), {"size": 9})),),
        added_edges=(Edge("Ada", "wrote", "Notes", {"year": 1843}),),
    )
    assert sandbox.read("result = names()") == ("Ada", "London")
    sandbox.apply(diff)
    assert sandbox.read("result = names()") == ("Ada", "London", "Notes")


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("G.add_node('x')", "+1 nodes"),
        ("G.add_nodes_from(['x', 'y'], label='L')", "+2 nodes"),
        ("G.add_edge('Ada', 'Bob')", "+1 nodes, +1 edges"),
        ("G.add_edges_from([('Ada', 'Bob', {'relation': 'knows'}), ('Bob', 'London', 'likes', {'w': 1})])", "+1 nodes, +2 edges"),
        ("self.G.add_edge('Ada', 'London', relation='visited')", "+1 edges"),
        ("G.remove_node('Ada')", "-1 nodes, -1 edges"),
        ("G.remove_nodes_from(['Ada', 'London'])", "-2 nodes, -1 edges"),
        ("G.remove_edge('Ada', 'London')", "-1 edges"),
        ("G.remove_edges_from(list(G.edges))", "-1 edges"),
        ("G.clear_edges()", "-1 edges"),
        ("G.clear()", "-2 nodes, -1 edges"),
        ("G.nodes['Ada']['x'] = 1", "~1 nodes"),
        ("del G.nodes['Ada']['born']", "~1 nodes"),
        ("G.nodes['Ada'].pop('born')", "~1 nodes"),
        ("G.nodes['Ada'].update(x=1, y=2)", "~1 nodes"),
        ("d = G.nodes['Ada']; d |= {'x': 1}", "~1 nodes"),
        ("G.nodes['Ada'].setdefault('x', 1)", "~1 nodes"),
        ("G.nodes['Ada'].clear()", "~1 nodes"),
        ("G.nodes['Ada']['tags'].append('poetry')", "~1 nodes"),
        ("G.nodes['Ada']['tags'] += ['poetry']", "~1 nodes"),
        ("G.nodes['Ada']['label'] = 'Countess'", "~1 nodes"),
        ("G.edges['Ada', 'London', 'born in']['year'] = 1815", "~1 edges"),
        ("G['Ada']['London']['born in']['year'] = 1815", "~1 edges"),
        ("for u, v, d in G.edges(data=True): d['seen'] = 1", "~1 edges"),
        ("G.edges['Ada', 'London', 'born in']['relation'] = 'from'", "+1 edges, -1 edges"),
        ("nx.set_node_attributes(G, {'Ada': 3, 'London': 4}, 'rank')", "~2 nodes"),
        ("nx.set_edge_attributes(G, 2, 'w')", "~1 edges"),
        ("nx.relabel_nodes(G, {'Ada': 'Ada Lovelace'}, copy=False)", "+1 nodes, -1 nodes, +1 edges, -1 edges"),
        ("nx.contracted_nodes(G, 'Ada', 'London', copy=False, self_loops=False)", "-1 nodes, ~1 nodes, -1 edges"),
        ("nx.add_path(G, ['Ada', 'Bob', 'Cyd'])", "+2 nodes, +2 edges"),
        ("G.update(nodes=['x'], edges=[('x', 'Ada')])", "+1 nodes, +1 edges"),
        ("[G.add_node(n) for n in map(lambda n: f'{n}{len(G)}', 'ab')]", "+2 nodes"),
        ("def grow(n):\n    G.add_node(n)\n    if len(n) < 3: grow(n + 'x')\ngrow('x')", "+3 nodes"),
        ("H = G.copy(); H.remove_node('Ada'); H.nodes['London']['x'] = 1", "nothing changed"),
        ("H = G.subgraph(['Ada']).copy(); H.clear()", "nothing changed"),
        ("G.add_node('x'); G.remove_node('x')", "nothing changed"),
        ("G.nodes['Ada']['born'] = 1; G.nodes['Ada']['born'] = 1815", "nothing changed"),
        ("G.add_node('Ada'); G.add_edge('Ada', 'London', relation='born in')", "nothing changed"),
        ("G.remove_node('Ada'); node('Ada', 'Person', born=1815, tags=['maths']); add('Ada', 'born in', 'London', sure=True)", "nothing changed"),
        ("G.nodes['Ada']['born'] = 1815.0", "~1 nodes"),
        ("G.edges['Ada', 'London', 'born in']['sure'] = 1", "~1 edges"),
    ],
)  # fmt: skip
def test_every_way_to_change_the_graph_is_seen_and_can_be_undone(sandbox, statement, changed):
    truth = Truth((ADA, LONDON), (BORN,))
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
        ("relation=['no', 'text'], type='knows'", "knows", {"relation": ["no", "text"]}),
    ],
)
def test_an_edge_gets_its_type_from_where_models_write_it(sandbox, written, type, properties):
    (edge,) = sandbox.write(f"G.add_edge('London', 'Ada', {written})").added_edges
    properties.pop("relation", None)  # the word is kept for the type
    assert edge == Edge("London", type, "Ada", properties)


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
    assert diff == Diff(
        added_nodes=(Node("7"),),
        changed_nodes=((Node("5", ("N",), {"a": 1}), Node("5", ("N",), {"a": 1, "b": 2})),),
        added_edges=(Edge("5", "next", "7"), Edge("5", "related_to", "5")),
    )


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
    assert sandbox.write(f"G.nodes['n'][{name!r}] = {value}").changed_nodes[0][1] == Node("n", after, {"p": 1})


def test_values_are_kept_as_json(sandbox):
    diff = sandbox.write(
        "import datetime as d, numpy as np, collections as c\n"
        "node('x', 'L', day=d.date(2026, 1, 2), at=d.datetime(2026, 1, 2, 3), some={3, 1, 2}, pair=(1, 'a'), i=np.int64(4), f=np.float32(.5),\n"
        "     b=np.bool_(True), array=np.arange(2), deep={'a': [{1: None}]}, count=c.Counter('aa'))\n"
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
        ("node('x', label=['a', None])", "the label of 'x' must be text"),
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


# --- reading ----------------------------------------------------------------------------------------------------------


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
        ("result = G.subgraph(['Ada', 'London'])", ({"subject": "Ada", "relation": "born in", "object": "London", "sure": True},)),
        ("result = nx.shortest_path(G, 'Ada', 'London')", ("Ada", "London")),
        ("result = dict(G.degree())", ({"Ada": 1, "London": 1},)),
        ("import numpy as np; result = np.float64(1.5)", (1.5,)),
        ("import numpy as np; result = np.array(3)", (3,)),
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
    sandbox.apply(sandbox.write("add('London', 'part_of', 'England'); add('Charles Babbage', 'friend of', 'Ada', subject_label='Person')"))

    def found(call):
        return [f"{row['subject']} {row['relation']} {row['object']}" for row in sandbox.read(f"result = {call}")]

    assert found("facts('ada')") == ["Ada born in London", "Charles Babbage friend of Ada"]
    assert found("facts('ada', hops=2)") == ["Ada born in London", "Charles Babbage friend of Ada", "London part_of England"]
    assert found("facts('babbage')") == ["Charles Babbage friend of Ada"]
    assert found("facts(['England', 'Charles'])") == ["London part_of England", "Charles Babbage friend of Ada"]
    assert found("facts(relation='Part Of')") == ["London part_of England"]
    assert found("facts('nobody')") == []
    assert len(found("facts()")) == 3
    assert sandbox.read("result = facts('Ada', 'born_in')[0]") == ({"subject": "Ada", "relation": "born in", "object": "London", "sure": True},)
    assert sandbox.read("result = names('person')") == ("Ada", "Charles Babbage")


# --- computing --------------------------------------------------------------------------------------------------------


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


def test_two_workers_agree_on_the_order_of_sets_and_on_chance():
    code = "import random\nprint(list({'b', 'a', 'c', 'ab', 'ba'}), random.random())"
    with open_sandbox() as one, open_sandbox() as other:
        assert one.compute(code) == other.compute(code) == one.compute(code)


# --- the worker -------------------------------------------------------------------------------------------------------


def test_a_worker_killed_between_statements_is_replaced_unnoticed(sandbox):
    sandbox.apply(sandbox.write("G.add_node('x')"))
    os.killpg(sandbox._worker.process.pid, signal.SIGKILL)
    sandbox._worker.process.wait()
    assert sandbox.read("result = names()") == ("Ada", "London", "x")


def test_a_worker_killed_during_a_statement_fails_that_one_only(sandbox):
    sandbox.read("result = 1")
    threading.Timer(0.2, os.killpg, (sandbox._worker.process.pid, signal.SIGKILL)).start()
    with pytest.raises(QueryFailed, match="starts afresh"):
        sandbox.read("import time; time.sleep(2); result = 1")
    assert sandbox.read("result = names()") == ("Ada", "London")


def _talking(answer: str, *, hello: str = "say(b'!')", patience: float = 10) -> Launch:
    code = (
        "import os, struct, sys, time\n"
        "def say(b): os.write(1, struct.pack('>I', len(b)) + b)\n"
        f"{hello}\nwhile os.read(0, 1 << 20): {answer}\n"
    )
    return Launch("talking", (sys.executable, "-c", code), {}, patience)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("sys.exit()", "it ended"),
        ("os.write(1, b'\\xff' * 8)", "impossible length"),
        ("os.write(1, b'\\0' * 8)", "impossible length"),
        ("time.sleep(1000)", "does not answer"),
        ("os.write(1, b'\\0\\0\\0\\x09='); time.sleep(1000)", "does not answer"),
        ("say(b'=nonsense')", "not JSON"),
        ("say(b'=' + b'\\xff')", "not JSON"),
        ("say(b'=7')", "not an object"),
        ("say(b'?')", "ended the interpreter"),
        ("say(b'xnonsense')", "ended the interpreter"),
    ],
)
def test_a_worker_that_lies_fails_one_statement(answer, reason, monkeypatch):
    monkeypatch.setattr("kgot_lab.sandbox.process.GRACE", 0.1)
    loading = "(say(b'!') if not first else 0) if (first := globals().get('n', 0) == 0) else 0"
    assert loading
    launch = _talking(f"n = globals().get('n', 0) + 1; say(b'!') if n == 1 else {answer.replace('; ', ' or ')}")
    with Sandbox(launch, seconds=0.2) as sandbox, pytest.raises(QueryFailed, match=reason):
        sandbox.read("result = 1")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (Launch("absent", ("/no/such/program",), {}), "could not be started"),
        (_talking("0", hello="sys.exit('this machine will not do')"), "this machine will not do"),
        (_talking("0", hello="time.sleep(1000)", patience=0.2), "does not answer"),
        (_talking("sys.exit()"), "could not load the graph"),
    ],
)
def test_a_sandbox_that_cannot_start_says_what_it_heard(launch, reason):
    with Sandbox(launch) as sandbox, pytest.raises(SandboxError, match=reason):
        sandbox.read("result = 1")


def test_an_interrupted_statement_does_not_answer_the_next_one(sandbox):
    class Interrupt(Exception):
        pass

    def raise_it(*_: object) -> None:
        raise Interrupt

    usual = signal.signal(signal.SIGALRM, raise_it)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupt):
            sandbox.read("import time; time.sleep(1); result = 'late'")
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert sandbox.read("result = 'mine'") == ("mine",)


def test_threads_may_share_a_sandbox(sandbox):
    answers: dict[int, tuple] = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: sandbox.read(f"result = {n}")})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: (n,) for n in range(8)}


def test_a_sandbox_outlives_the_thread_that_started_it():
    with open_sandbox() as sandbox:
        sandbox.close()
        thread = threading.Thread(target=sandbox.read, args=("result = 1",))
        thread.start()
        thread.join()
        assert sandbox.read("result = 2") == (2,)


def test_a_statement_works_inside_a_running_event_loop(sandbox):
    async def cell() -> tuple:
        return sandbox.read("result = 3")

    assert asyncio.run(cell()) == (3,)


def test_a_forgotten_sandbox_leaves_no_process_behind():
    sandbox = open_sandbox()
    process = sandbox._worker.process
    del sandbox
    gc.collect()
    assert process.returncode == -signal.SIGKILL


def test_apply_refuses_a_diff_that_does_not_fit(sandbox):
    for diff in (
        Diff(added_nodes=(ADA,)), Diff(removed_nodes=(Node("Bob"),)), Diff(removed_nodes=(LONDON,)), Diff(added_edges=(Edge("Ada", "x", "Bob"),)),
        Diff(changed_nodes=((LONDON, ADA),)), Diff(removed_edges=(Edge("Ada", "born in", "London"),)),
        Diff(added_nodes=(Node("n"), Node("n"))), Diff(added_edges=(Edge("Ada", "x", "Ada"),) * 2),
        Diff(removed_edges=(BORN,), changed_edges=((BORN, BORN),)), Diff(changed_nodes=((Node("Ada", ("Person",), {"born": True}), ADA),)),
    ):  # fmt: skip
        with pytest.raises(BadInput, match="does not fit|twice"):
            sandbox.apply(diff)
    assert sandbox.read("result = len(G)") == (2,)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_probe_names_the_sandbox_that_works():
    assert probe().startswith("bubblewrap works (")


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(UnknownName, match="Known: auto, bubblewrap, docker, unsafe"):
        open_sandbox("firejail")


def test_the_unsafe_sandbox_must_be_asked_for_twice():
    with pytest.raises(BadInput, match="unsafe=True"):
        open_sandbox("unsafe")


def test_without_a_sandbox_the_error_says_what_to_install(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("kgot_lab.sandbox.bubblewrap.programs", lambda: [broken])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandbox) as none:
        open_sandbox()
    for part in ("apt install bubblewrap", "kgot_lab[sandbox]", "Docker", "no namespaces here"):
        assert part in str(none.value)
    with open_sandbox(unsafe=True) as sandbox:
        assert sandbox.launch.kind == "unsafe"


def test_docker_is_asked_for_no_network_and_nothing_writable(monkeypatch, tmp_path):
    """Docker itself is not run here; this keeps the promises of its command line in view."""
    from kgot_lab.sandbox import docker

    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = " ".join(docker.launch(512).command)
    for part in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", ":ro"):
        assert part in command


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_well_formed_program(machine):
    """Every instruction is eight bytes, no jump leaves the program, and the last instruction returns: what the kernel's checker asks for."""
    import struct

    code = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
    assert 0 < len(code) <= 4096
    for at, (operation, when, otherwise, _) in enumerate(code):
        if operation in (0x15, 0x35):
            assert at + 1 + max(when, otherwise) < len(code)
    assert code[-1][0] == 0x06


def test_a_machine_without_a_table_gets_no_filter():
    with pytest.raises(OSError, match="pdp11"):
        seccomp.program("pdp11")


# --- the journal against comparing whole graphs -------------------------------------------------------------------------


def _loaded(nodes, edges) -> Journal:
    journal = track(TrackedGraph())
    put(journal, map(claim_of, nodes), map(claim_of, edges))
    return journal


def _whole(graph: nx.MultiDiGraph) -> tuple[dict, dict]:
    """Every node and edge of a graph whose keys are types: the slow, plain way."""
    nodes = {n: Node(n, (d["label"],) if "label" in d else (), {k: v for k, v in d.items() if k != "label"}) for n, d in graph.nodes(data=True)}
    edges = [Edge(u, k, v, {name: value for name, value in d.items() if name != "relation"}) for u, v, k, d in graph.edges(keys=True, data=True)]
    return nodes, {edge.identity: edge for edge in edges}


def _statement(chance: random.Random) -> str:
    a, b, t, p = chance.choice("abcdefgh"), chance.choice("abcdefgh"), chance.choice(["r", "s", "t"]), chance.choice("xyz")
    value = chance.choice(["1", "True", "'v'", "[1, [2]]", "{'k': [1]}", "None", "1.0"])
    return chance.choice([
        f"G.add_node({a!r}, {p}={value})", f"G.add_node({a!r}, label={t!r})", f"G.add_edge({a!r}, {b!r}, {t!r}, relation={t!r}, {p}={value})",
        f"if {a!r} in G: G.remove_node({a!r})", f"G.remove_edges_from(list(G.in_edges({a!r}, keys=True))[:2])",
        f"for d in [G.nodes[n] for n in G if n <= {a!r}]: d[{p!r}] = {value}", f"for n in list(G)[:3]: G.nodes[n].pop({p!r}, None)",
        f"for u, v, d in G.edges(data=True): d.update({p}={value}) if u == {a!r} else None", f"nx.set_node_attributes(G, {value}, {p!r})",
        f"for d in [d for _, d in G.nodes(data=True) if isinstance(d.get({p!r}), list)]: d[{p!r}].append({value})",
        f"for d in [d for *_, d in G.edges(data=True) if isinstance(d.get({p!r}), dict)]: d[{p!r}].setdefault('k', []).extend([3])",
        f"if {a!r} in G: nx.relabel_nodes(G, {{{a!r}: {a + 'x'!r}}}, copy=False)", f"G.remove_nodes_from([n for n in G if len(n) > 1][:2])",
        "G.clear()" if chance.random() < 0.1 else "H = G.copy(); H.clear()", "G.clear_edges()" if chance.random() < 0.2 else "G.reverse().clear()",
        f"if G.has_edge({a!r}, {b!r}): G.remove_edge({a!r}, {b!r})", f"if {a!r} in G: G.nodes[{a!r}].clear()",
    ])  # fmt: skip


def _run(statements: list[str], graph: nx.MultiDiGraph) -> None:
    for statement in statements:
        exec(statement, {"G": graph, "nx": nx})


@pytest.mark.parametrize("seed", range(60))
def test_the_journals_diff_is_the_one_found_by_comparing_whole_graphs(seed):
    chance = random.Random(seed)
    reference, truth = nx.MultiDiGraph(), Truth()
    journal = _loaded((), ())
    for _ in range(12):
        statements = [_statement(chance) for _ in range(chance.randint(1, 5))]
        old = _whole(nx.MultiDiGraph(reference.copy()))
        before = {repr(item) for part in old for item in part.values()}
        _run(statements, reference)
        nodes, edges = _whole(reference)
        journal.on = True
        _run(statements, journal.graph)
        said = changes(journal)
        diff = truth.difference(*claims(_json(said), ""))
        told = {repr(item) for item in (*diff.added_nodes, *diff.added_edges, *(new for _, new in (*diff.changed_nodes, *diff.changed_edges)))}
        assert _bag(told) == _bag({repr(item) for part in (nodes, edges) for item in part.values()} - before), statements
        assert {*diff.removed_nodes, *diff.removed_edges} == {
            item for was, now in zip((truth.nodes, truth.edges), (nodes, edges), strict=True) for id, item in was.items() if id not in now
        }
        rolled = Truth(truth.nodes.values(), truth.edges.values())
        truth.apply(diff)
        assert (truth.nodes, truth.edges) == (nodes, edges)
        back = Truth(nodes.values(), edges.values())
        back.apply(inverse(diff))
        assert (back.nodes, back.edges) == (rolled.nodes, rolled.edges)
        journal = _loaded(truth.nodes.values(), truth.edges.values())
        reference = _rebuilt(journal)


def _rebuilt(journal: Journal) -> nx.MultiDiGraph:
    """The same graph as plain NetworkX, its dictionaries and lists its own."""
    from kgot_lab.sandbox.tracked import plain

    graph: nx.MultiDiGraph = nx.MultiDiGraph()
    graph.add_nodes_from((n, plain(d)) for n, d in journal.graph.nodes(data=True))
    graph.add_edges_from((u, v, k, plain(d)) for u, v, k, d in journal.graph.edges(keys=True, data=True))
    return graph


def _bag(reprs: set[str]) -> set[str]:
    """Reprs without regard to the order of properties."""
    return {"".join(sorted(text)) for text in reprs}


def _json(value: object) -> bytes:
    import json

    return json.dumps(value).encode()


def test_random_statements_leave_worker_and_parent_with_one_graph(sandbox):
    """The same through the real sandbox: what the worker holds after many diffs is what the parent holds."""
    chance = random.Random(7)
    sandbox.reset((), ())
    truth = Truth()
    for _ in range(60):
        diff = sandbox.write("\n".join(_statement(chance) for _ in range(3)))
        sandbox.apply(diff)
        truth.apply(diff)
        nodes = sandbox.read("result = [[n, d] for n, d in G.nodes(data=True)]")
        edges = sandbox.read("result = [[u, v, k, d] for u, v, k, d in G.edges(keys=True, data=True)]")
        held = nx.MultiDiGraph()
        held.add_nodes_from(nodes)
        held.add_edges_from(edges)
        assert _whole(held) == (truth.nodes, truth.edges)


def test_a_journal_grows_with_the_write_and_not_with_the_graph():
    nodes = [Node(f"n{i}", ("L",), {"tags": ["a"]}) for i in range(2_000)]
    journal = _loaded(nodes, [Edge(f"n{i}", "next", f"n{i + 1}") for i in range(1_999)])
    journal.on = True
    _run(["G.add_edge('n1', 'n5', 'new')", "sum(len(d['tags']) for _, d in G.nodes(data=True))", "list(nx.bfs_edges(G, 'n0'))"], journal.graph)
    assert (len(journal.nodes), len(journal.edges)) == (0, 1)


def test_reserved_characters_in_types_and_names_survive(sandbox):
    odd = [Edge("Ada", "C#", "London"), Edge("Ada", "a#b", "London", {}, "c"), Edge("Ada", "plays \"in\"\n", "London")]
    for edge in odd:
        assert key_of(edge.type, edge.key)
    sandbox.reset((ADA, LONDON), tuple(odd))
    diff = sandbox.write("for *_, d in G.edges(data=True): d['x'] = 1")
    assert [new.identity for _, new in diff.changed_edges] == [edge.identity for edge in odd]


def test_the_worker_imports_nothing_of_the_package_but_its_own_folder(sandbox):
    seen = sandbox.read("import sys; result = sorted(m for m in sys.modules if m.startswith('kgot_lab'))")
    assert set(seen) <= {"kgot_lab", *(f"kgot_lab.sandbox{rest}" for rest in ("", ".worker", ".seccomp", ".claims", ".statements", ".tracked", ".values", ".helpers"))}
    assert Path(seccomp.__file__).parent.joinpath("worker.py").is_file()
