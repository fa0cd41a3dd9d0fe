"""What hubs without a text cost a walk, and what passing through them gives: graphs, walks, controls, and
figures; see benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.recall.figures import Row, corrected, estimated, gap_estimated
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.dataset import Dataset, Qrels
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import phrase_graph, title_graph
from kgot_lab.retrieval.pass_through import TEXT_PROPERTIES, Walk, has_text, traverse
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Json, Query, Ranking, full_text, ranked

SHARES = (0.0, 0.05, 0.1, 0.2)
PRIMARY_OF_HUBS = {
    "graph": "titles",
    "bare": 0.1,
    "order": "hits first",
    "measure": "recall@10",
    "against": "original",
}
_MEASURES = ("recall@5", "recall@10", "recall@20")
ORDERS = {  # with 5 hits first, recall@5 is that of the entry stage
    "hits first": (Walk(rest=True), _MEASURES[1:]),
    "taking turns": (Walk(rest=True, interleaved=True), _MEASURES[:1]),
}
_SHUFFLES = range(5)


@dataclass(frozen=True)
class HubCase:
    """A graph to walk on, the entry stage over its described passages, and the questions some of whose gold
    passages have a text.
    """

    data: Dataset
    graph: PropertyGraph
    entry: Stage
    qrels: Qrels


# --- graphs ---


def remove_texts(graph: PropertyGraph, ids: Iterable[str]) -> PropertyGraph:
    """Return a graph in which these nodes have no text, description or summary.

    Raises UnknownName for an id that is not in the graph.
    """
    properties = list(graph.node_properties)
    for row in map(graph.row, ids):
        own = properties[row]
        properties[row] = {name: own[name] for name in own if name not in TEXT_PROPERTIES}
    return replace(graph, node_properties=tuple(properties))


def busiest(graph: PropertyGraph, share: float) -> list[str]:
    """The best connected nodes, ties by id."""
    return sorted(graph.ids, key=lambda id: (-graph.degree(id), id))[: round(share * len(graph))]


def rewired(graph: PropertyGraph, seed: int) -> PropertyGraph:
    """The same graph, but the edges of the bare nodes lead to passages in another order: each node keeps its
    number of edges.
    """
    bare = np.array([not has_text(node) for node in graph.nodes])
    sources, targets = graph.sources.copy(), graph.targets.copy()
    chance = np.random.default_rng(seed)
    # in each direction on its own, so that arrows keep their sense
    for ends, others in ((targets, sources), (sources, targets)):
        hubs = np.flatnonzero(bare[others] & ~bare[ends])
        ends[hubs] = chance.permutation(ends[hubs])
    kept = dict.fromkeys(  # an edge drawn twice is one edge
        (s, c, t)
        for s, c, t in zip(sources.tolist(), graph.type_codes.tolist(), targets.tolist(), strict=True)
        if s != t
    )
    return PropertyGraph.of(
        graph.nodes, (Edge(graph.ids[s], graph.type_names[c], graph.ids[t]) for s, c, t in kept)
    )


# --- cases ---


def _case(data: Dataset, graph: PropertyGraph, cosines: Mapping[str, Numbers]) -> HubCase:
    """The questions that have gold with a text, and an entry stage over the passages that have one."""
    described = {node.id for node in graph.nodes if has_text(node)}
    places = [place for place, document in enumerate(data.documents) if document.id in described]
    ids = [data.documents[place].id for place in places]

    @cache
    def found(query: Query) -> Ranking:
        return ranked(query, dict(zip(ids, cosines[query.id][places].tolist(), strict=True)))

    qrels = {
        query: {id: grade for id, grade in grades.items() if id in described}
        for query, grades in data.qrels.items()
    }
    return HubCase(
        data,
        graph,
        Stage("embeddings", lambda ranking: found(ranking.query)),
        {query: grades for query, grades in qrels.items() if grades},
    )


def _cosines_of(data: Dataset) -> dict[str, Numbers]:
    embedder = minilm()
    matrix = embedder.embed([full_text(document) for document in data.documents])
    questions = embedder.embed([query.text for query in data.queries])
    return {
        query.id: (matrix @ vector).astype(float)
        for query, vector in zip(data.queries, questions, strict=True)
    }


# --- measuring ---


def _values(case: HubCase, stage: Stage) -> tuple[dict[str, Numbers], float]:
    """Each measure for each question that counts, and the median seconds of a query."""
    made = run(stage, case.data.only(case.qrels).queries, keep=20)
    scores = score(made, case.qrels, _MEASURES)
    return {
        measure: np.array(list(scores.per_query(measure).values())) for measure in _MEASURES
    }, made.latency.median


def _measured(case: HubCase, about: Mapping[str, Json]) -> list[Row]:
    """A row for each system and measure, with the value of each question."""
    rows = []
    entry, _ = _values(case, case.entry)
    # no bare node, nothing to shuffle
    others_of = [rewired(case.graph, seed) for seed in _SHUFFLES] if about["share"] != 0 else [case.graph]
    for order, (walk, measures) in ORDERS.items():
        found = {"entry only": entry}
        found["original"], slow = _values(
            case, traverse(case.graph, case.entry, through_hubs=False, walk=walk)
        )
        found["pass-through"], through = _values(case, traverse(case.graph, case.entry, walk=walk))
        found["pass-through by similarity"], _ = _values(
            case, traverse(case.graph, case.entry, walk=replace(walk, convergence=False))
        )
        others = [_values(case, traverse(other, case.entry, walk=walk))[0] for other in others_of]
        found["shuffled hubs"] = {
            measure: np.mean([other[measure] for other in others], axis=0) for measure in _MEASURES
        }
        milliseconds = {"original": slow, "pass-through": through}
        for system, by_measure in found.items():
            for measure in measures:
                spent = (
                    {"milliseconds": round(1000 * milliseconds[system], 2)} if system in milliseconds else {}
                )
                questions = [round(float(value), 6) for value in by_measure[measure]]
                rows.append(
                    {
                        **about,
                        "order": order,
                        "system": system,
                        "measure": measure,
                        **spent,
                        "questions": questions,
                    }
                )
    return rows


def pass_through_figures(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """From the values of the questions alone: the rows with mean and interval, and pass-through compared with
    each other system.
    """
    key = ("dataset", "graph", "share", "order", "measure")
    through = {tuple(row[name] for name in key): row for row in rows if row["system"] == "pass-through"}
    whole, gaps = [], []
    for row in rows:
        own = np.array(row["questions"])
        told = {
            name: value
            for name, value in row.items()
            if name not in {"mean", "low", "high", "n", "questions"}
        }
        whole.append({**told, **estimated(own), "questions": row["questions"]})
        if row["system"] != "pass-through":
            same = {name: row[name] for name in key}
            gap = np.array(through[tuple(same.values())]["questions"]) - own
            gaps.append({**same, "against": row["system"], **gap_estimated(gap)})
    return whole, gaps


def _facts(case: HubCase) -> Row:
    """How large the graph is, what cannot be found, and what a walk through the hubs comes to."""
    bare = sum(not has_text(node) for node in case.graph.nodes)
    gold = {(query, id) for query, grades in case.data.qrels.items() for id in grades}
    kept = {(query, id) for query, grades in case.qrels.items() for id in grades}
    reached: dict[bool, list[int]] = {True: [], False: []}
    missed, behind = 0, {True: 0, False: 0}
    stages = {hubs: traverse(case.graph, case.entry, through_hubs=hubs) for hubs in (True, False)}
    for query in case.data.only(case.qrels).queries:
        hits = set(case.entry.search(query).ids[: Walk().entry])
        wanted = set(case.qrels[query.id]) - hits
        missed += len(wanted)
        for hubs, stage in stages.items():
            walked = set(stage.search(query).ids) - hits
            reached[hubs].append(len(walked))
            behind[hubs] += len(wanted & walked)
    return {
        "nodes": len(case.graph), "edges": len(case.graph.edges), "bare": bare,
        "gold": len(gold), "gold_without_text": len(gold - kept), "questions_left_out": len(case.data.qrels) - len(case.qrels),
        "gold_below_entry": missed, "of_these_reached_by_original": behind[False], "of_these_reached_by_pass_through": behind[True],
        "median_reached_by_original": float(np.median(reached[False])), "median_reached_by_pass_through": float(np.median(reached[True])),
    }  # fmt: skip


def hub_cases() -> Iterable[tuple[Row, HubCase]]:
    for name in ("musique", "2wiki", "hotpotqa"):
        data = load_dataset(name).dev
        cosines = _cosines_of(data)
        titles = title_graph(data.documents)
        for share in SHARES:
            yield (
                {"dataset": name, "graph": "titles", "share": share},
                _case(data, remove_texts(titles, busiest(titles, share)), cosines),
            )
        if data.triples:
            yield (
                {"dataset": name, "graph": "phrases", "share": None},
                _case(data, phrase_graph(data.documents, data.triples), cosines),
            )


def pass_through_primary(gaps: list[Row]) -> list[Row]:
    """The comparisons decided on beforehand, their p corrected for being three."""
    wanted = {
        "graph": "titles",
        "share": PRIMARY_OF_HUBS["bare"],
        **{key: PRIMARY_OF_HUBS[key] for key in ("order", "measure", "against")},
    }
    return corrected([gap for gap in gaps if all(gap[key] == value for key, value in wanted.items())])


def measure_pass_through(say: Callable[[str], None]) -> tuple[list[Row], list[Row]]:
    """Run everything: the rows of the systems, and the facts of the graphs; `say` is told of each graph that
    is done.
    """
    rows, graphs = [], []
    for about, one in hub_cases():
        graphs.append({**about, **_facts(one)})
        rows += _measured(one, about)
        say(str(about))
    return rows, graphs


def pass_through_result(rows: list[Row], graphs: list[Row]) -> dict[str, Json]:
    """Everything that is kept: the plan, what it compares, and the figures that follow from the values of the
    questions.
    """
    rows, gaps = pass_through_figures(rows)
    primary = pass_through_primary(gaps)
    return {
        "plan": PRIMARY_OF_HUBS,
        "entry": Walk().entry,
        "primary": primary,
        "graphs": graphs,
        "systems": rows,
        "differences": gaps,
    }
