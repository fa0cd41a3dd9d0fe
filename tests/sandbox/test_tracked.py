"""The journal's diff against the slow, plain way: comparing whole graphs."""

from __future__ import annotations

import json
import random
import sys

import networkx as nx
import pytest
from support.every import every

from kgot_lab.graph.changes import MutableGraph, inverse
from kgot_lab.sandbox import open_sandbox
from kgot_lab.sandbox.python.tracking_graph import Journal, TrackedGraph, track, untracked
from kgot_lab.sandbox.python.worker import apply_changes, collect_changes
from kgot_lab.sandbox.replies import encode_element, parse_changes
from kgot_lab.types import Edge, Node


def _loaded(nodes, edges) -> Journal:
    journal = track(TrackedGraph())
    apply_changes(journal, map(encode_element, nodes), map(encode_element, edges))
    return journal


def _whole(graph: nx.MultiDiGraph) -> tuple[dict, dict]:
    """Every node and edge of a graph whose keys are types: the slow, plain way."""
    nodes = {
        n: Node(n, (d["label"],) if "label" in d else (), {k: v for k, v in d.items() if k != "label"})
        for n, d in graph.nodes(data=True)
    }
    edges = [
        Edge(u, k, v, {name: value for name, value in d.items() if name != "relation"})
        for u, v, k, d in graph.edges(keys=True, data=True)
    ]
    return nodes, {edge.identity: edge for edge in edges}


def _statement(chance: random.Random) -> str:
    a = chance.choice("abcdefgh")
    b = chance.choice("abcdefgh")
    t = chance.choice(["r", "s", "t"])
    p = chance.choice("xyz")
    value = chance.choice(["1", "True", "'v'", "[1, [2]]", "{'k': [1]}", "None", "1.0"])
    return chance.choice(
        [
            f"G.add_node({a!r}, {p}={value})",
            f"G.add_node({a!r}, label={t!r})",
            f"G.add_edge({a!r}, {b!r}, {t!r}, relation={t!r}, {p}={value})",
            f"if {a!r} in G: G.remove_node({a!r})",
            f"G.remove_edges_from(list(G.in_edges({a!r}, keys=True))[:2])",
            f"for d in [G.nodes[n] for n in G if n <= {a!r}]: d[{p!r}] = {value}",
            f"for n in list(G)[:3]: G.nodes[n].pop({p!r}, None)",
            f"for u, v, d in G.edges(data=True): d.update({p}={value}) if u == {a!r} else None",
            f"nx.set_node_attributes(G, {value}, {p!r})",
            f"for d in [d for _, d in G.nodes(data=True) if isinstance(d.get({p!r}), list)]: d[{p!r}].append({value})",
            f"for d in [d for *_, d in G.edges(data=True) if isinstance(d.get({p!r}), dict)]: d[{p!r}].setdefault('k', []).extend([3])",
            f"if {a!r} in G: nx.relabel_nodes(G, {{{a!r}: {a + 'x'!r}}}, copy=False)",
            "G.remove_nodes_from([n for n in G if len(n) > 1][:2])",
            "G.clear()" if chance.random() < 0.1 else "H = G.copy(); H.clear()",
            "G.clear_edges()" if chance.random() < 0.2 else "G.reverse().clear()",
            f"if G.has_edge({a!r}, {b!r}): G.remove_edge({a!r}, {b!r})",
            f"if {a!r} in G: G.nodes[{a!r}].clear()",
        ]
    )


def _run(statements: list[str], graph: nx.MultiDiGraph) -> None:
    for statement in statements:
        exec(statement, {"G": graph, "nx": nx})


@every("seed", range(20))
def test_the_journals_diff_is_the_one_found_by_comparing_whole_graphs(seed):
    chance = random.Random(seed)
    reference, truth = nx.MultiDiGraph(), MutableGraph()
    journal = _loaded((), ())
    for _ in range(12):
        statements = [_statement(chance) for _ in range(chance.randint(1, 5))]
        old = _whole(nx.MultiDiGraph(reference.copy()))
        before = {repr(item) for part in old for item in part.values()}
        _run(statements, reference)
        nodes, edges = _whole(reference)
        journal.on = True
        _run(statements, journal.graph)
        said = collect_changes(journal)
        diff = truth.difference(*parse_changes(_json(said), ""))
        changed = [new for _, new in (*diff.changed_nodes, *diff.changed_edges)]
        told = {repr(item) for item in (*diff.added_nodes, *diff.added_edges, *changed)}
        assert _bag(told) == _bag({repr(i) for p in (nodes, edges) for i in p.values()} - before), statements
        pairs = zip((truth.nodes, truth.edges), (nodes, edges), strict=True)
        gone = {item for was, now in pairs for id, item in was.items() if id not in now}
        assert {*diff.removed_nodes, *diff.removed_edges} == gone
        rolled = MutableGraph(truth.nodes.values(), truth.edges.values())
        truth.apply(diff)
        assert (truth.nodes, truth.edges) == (nodes, edges)
        back = MutableGraph(nodes.values(), edges.values())
        back.apply(inverse(diff))
        assert (back.nodes, back.edges) == (rolled.nodes, rolled.edges)
        journal = _loaded(truth.nodes.values(), truth.edges.values())
        reference = _rebuilt(journal)


def _rebuilt(journal: Journal) -> nx.MultiDiGraph:
    """The same graph as plain NetworkX, its dictionaries and lists its own."""
    graph: nx.MultiDiGraph = nx.MultiDiGraph()
    graph.add_nodes_from((n, untracked(d)) for n, d in journal.graph.nodes(data=True))
    graph.add_edges_from((u, v, k, untracked(d)) for u, v, k, d in journal.graph.edges(keys=True, data=True))
    return graph


def _bag(reprs: set[str]) -> set[str]:
    """Reprs without regard to the order of properties."""
    return {"".join(sorted(text)) for text in reprs}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")
def test_random_statements_leave_worker_and_parent_with_one_graph():
    """The same through the real sandbox: what the worker holds after many diffs is what the parent holds."""
    chance, truth = random.Random(7), MutableGraph()
    with open_sandbox() as sandbox:
        for _ in range(25):
            diff = sandbox.write("\n".join(_statement(chance) for _ in range(3)))
            sandbox.apply(diff)
            truth.apply(diff)
            held = nx.MultiDiGraph()
            held.add_nodes_from(sandbox.read("result = [[n, d] for n, d in G.nodes(data=True)]"))
            rows = sandbox.read("result = [[u, v, k, d] for u, v, k, d in G.edges(keys=True, data=True)]")
            held.add_edges_from(rows)
            assert _whole(held) == (truth.nodes, truth.edges)


def test_a_journal_grows_with_the_write_and_not_with_the_graph():
    nodes = [Node(f"n{i}", ("L",), {"tags": ["a"]}) for i in range(2_000)]
    journal = _loaded(nodes, [Edge(f"n{i}", "next", f"n{i + 1}") for i in range(1_999)])
    journal.on = True
    reads = ["sum(len(d['tags']) for _, d in G.nodes(data=True))", "list(nx.bfs_edges(G, 'n0'))"]
    _run(["G.add_edge('n1', 'n5', 'new')", *reads], journal.graph)
    assert (len(journal.nodes), len(journal.edges)) == (0, 1)
