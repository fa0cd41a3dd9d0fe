"""How long the query methods take on a graph of the size that KG-OS names: 2,057 nodes and 284,178 edges, beside plain NetworkX.

    python benchmarks/kgos_methods.py              medians of 9, each beside a straightforward version whose answers are the same
    python benchmarks/kgos_methods.py --times 10   the same on a graph ten times as large
    python benchmarks/kgos_methods.py --processor  processor time, where other programs keep the computer busy

The graph is made by a seed in the parts that the document counts: 266 curated nodes with 605 edges, 1,791 extracted ones with 283,166
edges, 407 across (its own sums differ by those). Ends of extracted edges are drawn with a weight of 1 / square root of the rank, so that
there are hubs; edges run in parallel, and some are loops. Both graphs are in memory before the clock starts, and the index that the methods
share is made, whose time is told apart. Nothing is written.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.columns import frozen
from kgot_lab.methods.can_it import can_it
from kgot_lab.methods.classify_intent import classify_intent
from kgot_lab.methods.compose_for import compose_for
from kgot_lab.methods.dimension_filter import dimension_filter
from kgot_lab.methods.edge_type_boost import edge_type_boost
from kgot_lab.methods.explore_smart import explore_smart
from kgot_lab.methods.impact_analysis import Impact, impact_analysis
from kgot_lab.methods.index import index_of
from kgot_lab.methods.intents import INTENTS
from kgot_lab.methods.keyword_match import keyword_match
from kgot_lab.methods.search.intent_search import intent_search
from kgot_lab.methods.similar_to import similar_to
from kgot_lab.methods.trace_path import trace_path
from kgot_lab.methods.want_to import want_to
from kgot_lab.text.words import searched_words

if TYPE_CHECKING:
    import networkx as nx

CURATED, EXTRACTED, ACROSS = (266, 605), (1_791, 283_166), 407
CURATED_TYPES = ("requires", "enables", "has_limitation", "has_workaround", "feeds_into", "optimizes", "relates_to")
EXTRACTED_TYPES = ("calls", "imports", "part_of", "pattern_instance_of")
LABELS = ("pattern", "technique", "tool", "goal", "limitation", "function", "class", "module")
WORDS = (
    "cache search agent prompt index vector graph token query tool model batch stream parse rank cost reduce build deploy secure".split()
)
FILTERS = {"pricing_tier": {"max": 0.3}, "batch_suitability": {"min": 0.7}, "rate_limit_sensitivity": {"max": 0.5}}
QUESTION = "how do I reduce the cost of a search agent"
TARGETS = {  # milliseconds
    "classify_intent": 0.2, "trace_path": 10, "impact_analysis, depth 3": 10, "explore_smart, depth 2": 10, "dimension_filter": 10,
    "similar_to, all nodes": 50, "intent_search": 60,
}  # fmt: skip


def made(times: int, seed: int = 0) -> PropertyGraph:
    """The graph, every part of it so many times as large."""
    chance = np.random.default_rng(seed)
    curated, extracted = CURATED[0] * times, EXTRACTED[0] * times
    nodes = curated + extracted
    weights = 1 / np.sqrt(1 + np.arange(extracted))
    far = curated + chance.choice(extracted, (2, EXTRACTED[1] * times), p=weights / weights.sum())
    near = chance.integers(0, curated, (2, CURATED[1] * times))
    across = np.stack([chance.integers(0, curated, ACROSS * times), chance.integers(curated, nodes, ACROSS * times)])
    ends = np.concatenate([near, far, across], axis=1)
    few, many = len(CURATED_TYPES), len(EXTRACTED_TYPES)
    sizes = CURATED[1] * times, EXTRACTED[1] * times, ACROSS * times
    codes = [chance.integers(0, few, sizes[0]), few + chance.integers(0, many, sizes[1]), chance.integers(0, few, sizes[2])]
    words = chance.choice(WORDS, (nodes, 15)).tolist()
    values = np.round(chance.random((nodes, len(FILTERS))), 3).tolist()
    return PropertyGraph(
        ids=tuple(f"node_{row}" for row in range(nodes)),
        node_labels=tuple((LABELS[code],) for code in chance.integers(0, len(LABELS), nodes).tolist()),
        node_properties=tuple(
            {"name": " ".join(said[:3]), "description": " ".join(said[3:]), **dict(zip(FILTERS, rated, strict=True))}
            for said, rated in zip(words, values, strict=True)
        ),
        sources=frozen(ends[0].astype(np.int32)),
        targets=frozen(ends[1].astype(np.int32)),
        type_codes=frozen(np.concatenate(codes).astype(np.int32)),
        type_names=(*CURATED_TYPES, *EXTRACTED_TYPES),
        edge_properties=({},) * ends.shape[1],
        edge_keys=tuple(map(str, range(ends.shape[1]))),
    )


# --- the straightforward versions -------------------------------------------------------------------------------------


class Plain:
    """What one writes with NetworkX: a multigraph with types, without loops, and the simple graph of neighbours."""

    def __init__(self, graph: PropertyGraph) -> None:
        import networkx as nx

        self.graph = graph
        self.multi: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for node in graph.nodes:
            self.multi.add_node(node.id, label=node.labels[0], **node.properties)
        self.multi.add_edges_from((edge.source, edge.target, {"type": edge.type}) for edge in graph.edges if edge.source != edge.target)
        self.simple: nx.Graph[str] = nx.Graph(self.multi)
        self.central = nx.degree_centrality(self.simple)
        self.types = {
            id: {type for *_, type in self.multi.in_edges(id, data="type")} | {type for *_, type in self.multi.out_edges(id, data="type")}
            for id in self.multi
        }

    def classify(self, query: str) -> dict[str, float]:
        words = set(query.lower().split()) | {word.removesuffix("s") for word in query.lower().split()}
        scored = {name: sum(p in query.lower() for p in rule.phrases) + 0.3 * len(words & {*rule.words}) for name, rule in INTENTS.items()}
        return {name: round(score, 9) for name, score in scored.items() if score >= 0.3}

    def path(self, start: str, end: str) -> int:
        import networkx as nx

        return int(nx.shortest_path_length(self.simple, start, end))

    def impact(self, root: str) -> dict[str, tuple[int, float]]:
        depths, level = {root: 0}, [root]
        for depth in range(1, 4):
            found = dict.fromkeys(child for parent in level for child in self.simple[parent] if child not in depths)
            depths |= dict.fromkeys(found, depth)
            level = list(found)
        return {id: (depth, self.central[id] / depth) for id, depth in depths.items() if depth}

    def explore(self, root: str) -> dict[str, tuple[int, float, bool]]:
        import networkx as nx

        told: dict[str, tuple[int, float, bool]] = {}
        kinds = len(self.graph.types())
        levels: dict[int, list[str]] = defaultdict(list)
        for id, depth in nx.single_source_shortest_path_length(self.simple, root, cutoff=2).items():
            levels[depth].append(id)
        for depth, level in levels.items():
            mean = sum(self.simple.degree(id) for id in level) / len(level)
            for id in level:
                importance = 0.6 * self.central[id] + 0.4 * len(self.types[id]) / kinds
                told[id] = depth, importance, bool(depth) and self.simple.degree(id) > 2 * mean
        return told

    def similar(self, target: str) -> dict[str, float]:
        mine, scores = set(self.simple[target]), {}
        name, label = set(self.multi.nodes[target]["name"].split()), self.multi.nodes[target]["label"]
        for id, known in self.multi.nodes(data=True):
            theirs, words = set(self.simple[id]) - {target}, set(known["name"].split())
            united = mine - {id} | theirs
            jaccard = len(mine & theirs) / len(united) if united else 0.0
            scores[id] = 0.7 * jaccard + 0.2 * (known["label"] == label) + 0.1 * len(name & words) / len(name | words)
        del scores[target]
        return {id: score for id, score in scores.items() if score}

    def within(self) -> list[str]:
        return [
            id
            for id, known in self.multi.nodes(data=True)
            if all(bound.get("min", 0) <= known[name] <= bound.get("max", 1) for name, bound in FILTERS.items())
        ]

    def boost(self, seeds: list[str]) -> dict[str, float]:
        boosts: dict[str, float] = defaultdict(float)
        for seed in seeds:
            for _, target in self.multi.out_edges(seed):
                boosts[target] += 0.5
            for source, _ in self.multi.in_edges(seed):
                boosts[source] += 0.3
        most = max(boosts.values())
        return {id: boost / most for id, boost in boosts.items()}

    def keywords(self, query: str) -> dict[str, int]:
        terms = set(searched_words(query))
        texts = {id: f"{known['label']} {known['name']} {known['description']}".lower() for id, known in self.multi.nodes(data=True)}
        counts = {id: sum(term in text for term in terms) for id, text in texts.items()}
        return {id: count for id, count in counts.items() if count}


# --- measuring --------------------------------------------------------------------------------------------------------


def milliseconds(work: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    """The median over some runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(rounds):
        start = clock()
        work()
        taken.append(1000 * (clock() - start))
    return statistics.median(taken)


def close(one: Any, other: Any) -> bool:
    """Whether two answers are the same but for the last bits of their numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return all(map(close, one, other))
    return bool(np.isclose(one, other)) if isinstance(one, float | int) else one == other


class Asked(NamedTuple):
    """A curated node of few edges, so that the walks from it have several levels; an extracted one, which is nearly a hub; and seeds."""

    start: str
    end: str
    seeds: list[str]


def asked_of(graph: PropertyGraph) -> Asked:
    curated = len(graph) * CURATED[0] // (CURATED[0] + EXTRACTED[0])
    few = int(np.flatnonzero(index_of(graph).degrees[:curated] == 4)[0])
    return Asked(graph.ids[few], graph.ids[-1], list(graph.ids[:: len(graph) // 10][:10]))


def ours(graph: PropertyGraph, asked: Asked) -> dict[str, Callable[[], Any]]:
    """Each method, by its name."""
    everything = len(graph)
    return {
        "classify_intent": lambda: classify_intent(QUESTION, most=14),
        "keyword_match": lambda: keyword_match(graph, QUESTION),
        "edge_type_boost, 10 seeds": lambda: edge_type_boost(graph, asked.seeds),
        "trace_path": lambda: trace_path(graph, asked.start, asked.end, max_depth=9),
        "impact_analysis, depth 3": lambda: impact_analysis(graph, asked.start),
        "impact_analysis of a hub": lambda: impact_analysis(graph, asked.end),
        "explore_smart, depth 2": lambda: explore_smart(graph, asked.end),
        "dimension_filter": lambda: dimension_filter(graph, FILTERS, limit=everything),
        "similar_to, all nodes": lambda: similar_to(graph, asked.end, k=everything),
        "want_to": lambda: want_to(graph, QUESTION),
        "can_it": lambda: can_it(graph, "stream tokens"),
        "compose_for": lambda: compose_for(graph, "parse the graph, then rank the tokens"),
        "intent_search": lambda: intent_search(graph, QUESTION),
    }


def theirs(plain: Plain, asked: Asked) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """The straightforward version of a method, and what of our answer it is compared with."""

    def impacted(found: Impact) -> dict[str, tuple[int, float]]:
        return {node.id: (node.depth, node.risk) for node in found.nodes}

    return {
        "classify_intent": (lambda: plain.classify(QUESTION), lambda found: {each.name: each.score for each in found.intents}),
        "keyword_match": (lambda: plain.keywords(QUESTION), lambda found: found.scores),
        "edge_type_boost, 10 seeds": (lambda: plain.boost(asked.seeds), lambda found: found.scores),
        "trace_path": (lambda: plain.path(asked.start, asked.end), lambda found: found.length),
        "impact_analysis, depth 3": (lambda: plain.impact(asked.start), impacted),
        "impact_analysis of a hub": (lambda: plain.impact(asked.end), impacted),
        "explore_smart, depth 2": (
            lambda: plain.explore(asked.end),
            lambda found: {node.id: (node.depth, node.importance, node.is_hub) for node in found.nodes},
        ),
        "dimension_filter": (plain.within, lambda found: found.ids),
        "similar_to, all nodes": (lambda: plain.similar(asked.end), lambda found: {node.id: node.score for node in found.nodes}),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1, help="how many times as large the graph is (1)")
    parser.add_argument("--processor", action="store_true", help="processor time, where other programs keep the computer busy")
    parser.add_argument("--alone", action="store_true", help="without NetworkX, whose copy of a large graph takes gigabytes")
    parser.add_argument("--rounds", type=int, default=9, help="runs of which the median is taken (9)")
    given = parser.parse_args()
    if given.times < 1 or given.rounds < 1:
        parser.error("--times and --rounds are 1 or more")
    graph, clock = made(given.times), time.process_time if given.processor else time.perf_counter
    start = clock()
    index = index_of(graph)
    for part in ("links", "neighbours", "centrality", "diversity", "name_order", "substrings", "text", "goals", "of_name_word", "of_stem"):
        getattr(index, part)
    print(f"{len(graph):,} nodes, {len(graph.edge_keys):,} edges; the index is made in {clock() - start:.2f} s")
    asked = asked_of(graph)
    beside = {} if given.alone else theirs(Plain(graph), asked)
    print(f"{'milliseconds, median' + ' (processor)' * given.processor:34}{'ours':>10}{'NetworkX':>12}{'times':>8}{'target':>9}")
    for name, work in ours(graph, asked).items():
        mine = milliseconds(work, given.rounds, clock)
        target = f"{TARGETS[name]:g}" if name in TARGETS and given.times == 1 else ""
        told = ""
        if name in beside:
            plain, compared = beside[name]
            if not close(compared(work()), plain()):
                raise SystemExit(f"{name}: the two answers differ")
            other = milliseconds(plain, given.rounds, clock)
            told = f"{other:12.3f}{other / mine:8.1f}"
        print(f"{name:34}{mine:10.3f}{told:20}{target:>9}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
