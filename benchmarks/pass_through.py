"""What do hubs without a text cost retrieval, and what does walking through them give? Writes benchmarks/results/pass_through.json.

Decided before the first run: the walk starts at 5 hits; the primary measure is recall@10, hits first, pass-through against the original
retrieval (neighbours without a text are dropped), on the title graphs whose 10 % busiest passages lost their text; the three data sets
are one family (Holm). Everything else in the file is there to explain. Develop questions only; gold passages that lost their text
cannot be found by anyone: they are counted, and left out of the recall.

Two graphs, both from kgot_lab.retrieval.links. "titles": passages, with an edge where one mentions the title of another; the busiest
lose their text. "phrases" (MuSiQue): passages, the phrases of the triples a language model took from them, and the triples; a phrase
never has a text, so nothing has to be taken away. Control: the same hubs with as many edges, but to passages drawn at random (five
times, averaged).

Added after the first run, and so exploratory: "by similarity", which orders what was reached without looking at convergence, and every
row of recall@20. The first run had graphs of its own; it was repeated once the package could build them (there the longest title
wins, and phrases are linked to each other), with the plan as it stood. No interval of a primary comparison lay above zero in either.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.dataset import Dataset, Qrels
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers, counts, holm, interval, sign_flip_p, smallest_detectable
from kgot_lab.experiments.recall.datasets import load_dataset
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.links import phrase_graph, title_graph
from kgot_lab.retrieval.passthrough import Walk, has_text, traverse, without_text
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Query, Ranking, full_text, ranked

RESULT = Path(__file__).parent / "results" / "pass_through.json"
SHARES = (0.0, 0.05, 0.1, 0.2)
PRIMARY = {"graph": "titles", "bare": 0.1, "order": "hits first", "measure": "recall@10", "against": "original"}
MEASURES = ("recall@5", "recall@10", "recall@20")
ORDERS = {  # with 5 hits first, recall@5 is that of the entry stage
    "hits first": (Walk(rest=True), MEASURES[1:]),
    "taking turns": (Walk(rest=True, interleaved=True), MEASURES[:1]),
}
SHUFFLES = range(5)


@dataclass(frozen=True)
class Case:
    """A graph to walk on, the entry stage over its described passages, and the questions some of whose gold passages have a text."""

    data: Dataset
    graph: PropertyGraph
    entry: Stage
    qrels: Qrels


# --- graphs -----------------------------------------------------------------------------------------------------------


def busiest(graph: PropertyGraph, share: float) -> list[str]:
    """The best connected nodes, ties by id."""
    return sorted(graph.ids, key=lambda id: (-graph.degree(id), id))[: round(share * len(graph))]


def shuffled(graph: PropertyGraph, seed: int) -> PropertyGraph:
    """The same graph, but the edges of the bare nodes lead to passages in another order: each node keeps its number of edges."""
    bare = np.array([not has_text(node) for node in graph.nodes])
    sources, targets = graph.sources.copy(), graph.targets.copy()
    chance = np.random.default_rng(seed)
    for ends, others in ((targets, sources), (sources, targets)):  # in each direction on its own, so that arrows keep their sense
        hubs = np.flatnonzero(bare[others] & ~bare[ends])
        ends[hubs] = chance.permutation(ends[hubs])
    kept = dict.fromkeys(  # an edge drawn twice is one edge
        (s, c, t) for s, c, t in zip(sources.tolist(), graph.type_codes.tolist(), targets.tolist(), strict=True) if s != t
    )
    return PropertyGraph.of(graph.nodes, (Edge(graph.ids[s], graph.type_names[c], graph.ids[t]) for s, c, t in kept))


# --- cases ------------------------------------------------------------------------------------------------------------


def case(data: Dataset, graph: PropertyGraph, cosines: Mapping[str, Numbers]) -> Case:
    """The questions that have gold with a text, and an entry stage over the passages that have one."""
    described = {node.id for node in graph.nodes if has_text(node)}
    places = [place for place, document in enumerate(data.documents) if document.id in described]
    ids = [data.documents[place].id for place in places]

    @cache
    def found(query: Query) -> Ranking:
        return ranked(query, dict(zip(ids, cosines[query.id][places].tolist(), strict=True)))

    qrels = {query: {id: grade for id, grade in grades.items() if id in described} for query, grades in data.qrels.items()}
    return Case(
        data, graph, Stage("embeddings", lambda ranking: found(ranking.query)), {query: grades for query, grades in qrels.items() if grades}
    )


def cosines_of(data: Dataset) -> dict[str, Numbers]:
    embedder = minilm()
    matrix = embedder.embed([full_text(document) for document in data.documents])
    questions = embedder.embed([query.text for query in data.queries])
    return {query.id: (matrix @ vector).astype(float) for query, vector in zip(data.queries, questions, strict=True)}


# --- measuring --------------------------------------------------------------------------------------------------------


def values(case: Case, stage: Stage) -> tuple[dict[str, Numbers], float]:
    """Each measure for each question that counts, and the median seconds of a query."""
    made = run(stage, case.data.only(case.qrels).queries, keep=20)
    scores = score(made, case.qrels, MEASURES)
    return {measure: np.array(list(scores.per_query(measure).values())) for measure in MEASURES}, made.latency.median


def measured(case: Case, about: Mapping[str, object]) -> list[dict[str, object]]:
    """A row for each system and measure, with the value of each question."""
    rows = []
    entry, _ = values(case, case.entry)
    rewired = [shuffled(case.graph, seed) for seed in SHUFFLES] if about["share"] != 0 else [case.graph]  # no bare node, nothing to shuffle
    for order, (walk, measures) in ORDERS.items():
        found = {"entry only": entry}
        found["original"], slow = values(case, traverse(case.graph, case.entry, through_hubs=False, walk=walk))
        found["pass-through"], through = values(case, traverse(case.graph, case.entry, walk=walk))
        found["pass-through by similarity"], _ = values(case, traverse(case.graph, case.entry, walk=replace(walk, convergence=False)))
        others = [values(case, traverse(other, case.entry, walk=walk))[0] for other in rewired]
        found["shuffled hubs"] = {measure: np.mean([other[measure] for other in others], axis=0) for measure in MEASURES}
        milliseconds = {"original": slow, "pass-through": through}
        for system, by_measure in found.items():
            for measure in measures:
                spent = {"milliseconds": round(1000 * milliseconds[system], 2)} if system in milliseconds else {}
                questions = [round(float(value), 6) for value in by_measure[measure]]
                rows.append({**about, "order": order, "system": system, "measure": measure, **spent, "questions": questions})
    return rows


def derived(rows: list[dict[str, object]]) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """From the values of the questions alone: the rows with mean and interval, and pass-through compared with each other system."""
    key = ("dataset", "graph", "share", "order", "measure")
    through = {tuple(row[name] for name in key): row for row in rows if row["system"] == "pass-through"}
    whole, gaps = [], []
    for row in rows:
        own = np.array(row["questions"])
        told = {name: value for name, value in row.items() if name not in {"mean", "low", "high", "n", "questions"}}
        whole.append({**told, **estimate(own), "questions": row["questions"]})
        if row["system"] != "pass-through":
            same = {name: row[name] for name in key}
            gap = np.array(through[tuple(same.values())]["questions"]) - own
            gaps.append({**same, "against": row["system"], **difference(gap)})
    return whole, gaps


def estimate(numbers: Numbers) -> dict[str, float]:
    found = interval(numbers)
    return {"mean": round(found.mean, 4), "low": round(found.low, 4), "high": round(found.high, 4), "n": found.n}


def difference(gap: Numbers) -> dict[str, object]:
    wins, ties, losses = counts(gap)
    tests = {"p": round(sign_flip_p(gap), 4), "detectable": round(smallest_detectable(gap), 4)}
    return {**estimate(gap), **tests, "wins": wins, "ties": ties, "losses": losses}


def facts(case: Case) -> dict[str, object]:
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


def cases() -> Iterable[tuple[dict[str, object], Case]]:
    for name in ("musique", "2wiki", "hotpotqa"):
        data = load_dataset(name).develop
        cosines = cosines_of(data)
        titles = title_graph(data.documents)
        for share in SHARES:
            yield {"dataset": name, "graph": "titles", "share": share}, case(data, without_text(titles, busiest(titles, share)), cosines)
        if data.triples:
            yield {"dataset": name, "graph": "phrases", "share": None}, case(data, phrase_graph(data.documents, data.triples), cosines)


def primary(gaps: list[dict[str, object]]) -> list[dict[str, object]]:
    """The comparisons decided on beforehand, their p corrected for being three."""
    wanted = {"graph": "titles", "share": PRIMARY["bare"], **{key: PRIMARY[key] for key in ("order", "measure", "against")}}
    chosen = [gap for gap in gaps if all(gap[key] == value for key, value in wanted.items())]
    return [{**gap, "p_holm": p} for gap, p in zip(chosen, holm([float(str(gap["p"])) for gap in chosen]), strict=True)]


def lines(result: Mapping[str, object]) -> str:
    """The result as JSON with a line for each row, so that a change can be read."""
    parts = []
    for name, value in result.items():
        rows = ",\n  ".join(map(json.dumps, value)) if isinstance(value, list) else ""
        parts.append(f' "{name}": ' + (f"[\n  {rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="derive the numbers again from the values of the questions, without a model")
    if parser.parse_args().table:
        result = json.loads(RESULT.read_text(encoding="utf-8"))
        rows, graphs = result["systems"], result["graphs"]
    else:
        rows, graphs = measure()
    rows, gaps = derived(rows)
    result = {"plan": PRIMARY, "entry": Walk().entry, "primary": primary(gaps), "graphs": graphs, "systems": rows, "differences": gaps}
    RESULT.write_text(lines(result) + "\n", encoding="utf-8")
    for gap in result["primary"]:
        print(gap)


def measure() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Run everything: the rows of the systems, and the facts of the graphs."""
    began = time.perf_counter()
    rows, graphs = [], []
    for about, one in cases():
        graphs.append({**about, **facts(one)})
        rows += measured(one, about)
        print(f"{time.perf_counter() - began:5.0f} s  {about}")
    return rows, graphs


if __name__ == "__main__":
    main()
