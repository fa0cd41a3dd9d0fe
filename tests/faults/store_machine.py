"""Stores against a model of one: whatever is done to both in any order, they hold the same graph, also after
they were opened again.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from support.store_homes import home, missing

from faults.counting import Counts
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import inverse
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Edge, Node

LOCAL = ("in_memory", "cypher_embedded", "sparql_embedded", "sqlite")
SERVED = ("postgres", "sparql_server", "cypher_server")
NUMBERS = itertools.count()


@dataclass
class Model:
    """A graph in two dictionaries, and how it changes."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str, str, str], Edge] = field(default_factory=dict)

    def graph(self) -> PropertyGraph:
        return PropertyGraph.of(self.nodes.values(), self.edges.values())

    def take(self, diff: Diff) -> None:
        for edge in diff.removed_edges:
            del self.edges[edge.identity]
        for node in diff.removed_nodes:
            del self.nodes[node.id]
        for node in (*diff.added_nodes, *(after for _, after in diff.changed_nodes)):
            self.nodes[node.id] = node
        for edge in (*diff.added_edges, *(after for _, after in diff.changed_edges)):
            self.edges[edge.identity] = edge

    def put(self, node: Node) -> Diff:
        old = self.nodes.get(node.id)
        return Diff(changed_nodes=((old, node),)) if old else Diff(added_nodes=(node,))

    def join(self, edge: Edge) -> Diff:
        ends = tuple(Node(id) for id in dict.fromkeys((edge.source, edge.target)) if id not in self.nodes)
        old = self.edges.get(edge.identity)
        return Diff(changed_edges=((old, edge),)) if old else Diff(added_nodes=ends, added_edges=(edge,))

    def remove(self, id: str) -> Diff:
        if id not in self.nodes:
            return Diff()
        gone = tuple(edge for edge in self.edges.values() if id in (edge.source, edge.target))
        return Diff(removed_nodes=(self.nodes[id],), removed_edges=gone)


texts = some.text(some.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
names = some.sampled_from(["a", "b", "c d", "é", "label", "k#1", "0", "A"]) | texts.filter(str.strip)
floats = some.floats(allow_nan=False, allow_infinity=False)
atoms = some.none() | some.booleans() | some.integers(-(10**20), 10**20) | floats | texts
values = some.recursive(
    atoms,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
keys = texts | some.sampled_from(["label", "labels", "relation", "_key", "type"])
properties = some.dictionaries(keys, values, max_size=3)
unfit = some.sampled_from([math.nan, math.inf, b"x", {1}, "\ud800", {1: 2}, object()])


class Machine(RuleBasedStateMachine):
    """One store beside the model; `where` opens it."""

    kind, where, served = "in_memory", {}, False

    def __init__(self) -> None:
        super().__init__()
        names = {name: f"{place}{next(NUMBERS)}" for name, place in self.where.items() if name == "path"}
        self.home = {**self.where, **names}
        if self.served:
            self.home |= {"namespace": f"fire {next(NUMBERS)}"}
        self.model, self.last = Model(), Diff()
        self.store = open_store(self.kind, **self.home)

    def both(self, diff: Diff) -> None:
        try:
            self.store.apply(diff)
        except BadInput:
            if not self.served:
                raise
            return  # a server may have limits of its own, and then nothing is changed
        self.model.take(diff)
        self.last = diff

    @rule(id=names, labels=some.lists(names, max_size=2, unique=True), known=properties)
    def put(self, id, labels, known):
        self.both(self.model.put(Node(id, tuple(labels), known)))

    @rule(source=names, type=names, end=names, known=properties, key=some.sampled_from(["", "1", "k"]))
    def join(self, source, type, end, known, key):
        self.both(self.model.join(Edge(source, type, end, known, key)))

    @rule(id=names)
    def remove(self, id):
        self.both(self.model.remove(id))

    @rule()
    def undo(self):
        self.both(inverse(self.last))

    @rule(id=names, value=unfit)
    def refuse(self, id, value):
        with suppress(BadInput):
            self.store.apply(self.model.put(Node(id, (), {"x": [value]})))
            raise AssertionError(f"{value!r} entered {self.kind}")

    @rule()
    def reopen(self):
        self.store.close()
        self.store = open_store(self.kind, **self.home)

    @invariant()
    def holds_the_same(self):
        graph = self.store.graph()
        assert graph == self.model.graph(), self.model.graph().diff(graph)
        assert self.store.schema().nodes == len(self.model.nodes)
        for id in list(self.model.nodes)[:2]:
            ends = {edge.identity: (edge.source, edge.target) for edge in self.model.edges.values()}
            touching = {identity for identity, pair in ends.items() if id in pair}
            assert {edge.identity for edge in self.store.neighbours(id)} == touching

    def teardown(self):
        self.store.close()


def fault_in(kind: str, where: dict[str, str], number: int, examples: int) -> str:
    """What goes wrong in so many random histories, as its smallest case; "" for nothing."""
    machine = type("Machine", (Machine,), {"kind": kind, "where": where, "served": kind in SERVED})
    options = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    how = settings(max_examples=examples, stateful_step_count=15, **options)
    try:
        run_state_machine_as_test(seed(number)(machine), settings=how)
    except Exception as error:
        return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return ""


def run(seconds: float, seed: int, kinds: tuple[str, ...] = LOCAL + SERVED) -> Counts:
    """Random histories of each store in turn."""
    chance, ended, cases, faults = random.Random(seed), time.monotonic() + seconds, 0, {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server started by root is a user of its own
        for kind in [kind for kind in kinds if not missing(kind)]:
            share = time.monotonic() + (ended - time.monotonic()) / (len(kinds) - kinds.index(kind))
            place = Path(folder) / kind
            place.mkdir()
            place.chmod(0o755)
            with home(kind, place) as (where, _):
                where = {name: told for name, told in where.items() if name != "raw"}
                while time.monotonic() < share:
                    cases += 20
                    if fault := fault_in(kind, where, chance.randrange(2**32), 20):
                        faults.setdefault(f"{kind}: {fault.splitlines()[0][:80]}", fault)
    return Counts(cases, faults)
