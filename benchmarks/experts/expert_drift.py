"""Whether dimensions that drifted are found in what simulated people say, beside a copy without drift and
beside taking everyone's word.

    python -m benchmarks.experts.expert_drift            # simulate them all (about three minutes)
    python -m benchmarks.experts.expert_drift --table    # print the table of the last results

A copy of the curated graph has values altered to the other end (v becomes 1 - v). Simulated people speak, in
sentences of set forms, of the altered values and of as many of the others as make 100 in all, as the graph
was before it was altered, and err at a set rate; their sentences are read by words as any message is. A
report is right where node, dimension and way are. "one voice" takes any person who contradicts a value for
proof. The filter rows are of queries of the tuning half whose right answer a filter excludes: there the
person who asks names the right answer, and at the rate of error another of the nodes found without the
filter. Everything is a simulation; the sentences are of set forms, so the figures say nothing about how well
free speech is read. Results go to results/expert_drift.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgot_lab.experts.learning.dimension_statements import DimensionEvidence
    from kgot_lab.graph import PropertyGraph

RESULTS = Path(__file__).parents[1] / "results" / "expert_drift.json"
SEEDS, WATCHED = 30, 100
ERRORS, PEOPLE, ALTERED = (0.0, 0.1, 0.2, 0.3), (2.0, 4.0, 8.0), (0, 10)
Pair = tuple[str, str]


def ended(graph: PropertyGraph) -> list[Pair]:
    """The nodes and dimensions with a value at one of the ends: .25 or more from the middle; only nodes whose
    name is theirs alone.
    """
    from kgot_lab.experts.learning.entity_mentions import named_node
    from kgot_lab.kgos.schemas.dimensions.catalogue import BY_NAME

    alone = [node for node in graph.nodes if len(named_node(graph, str(node.properties["name"]))) == 1]
    return sorted(
        (n.id, d) for n in alone for d, v in n.properties.items() if d in BY_NAME and abs(v - 0.5) >= 0.25
    )


@cache
def watched() -> tuple[PropertyGraph, list[Pair]]:
    """The curated graph, and what people may speak of in it."""
    from kgot_lab.kgos.methods.cookbook import cookbook

    graph = cookbook()
    return graph, ended(graph)


def altered(graph: PropertyGraph, pairs: Sequence[Pair]) -> PropertyGraph:
    """A copy in which some values are at the other end."""
    from dataclasses import replace

    from kgot_lab.types import Diff

    moved: dict[str, dict[str, float]] = {}
    for id, name in pairs:
        moved.setdefault(id, {})[name] = round(1 - graph.node(id).properties[name], 3)
    nodes = [
        (graph.node(id), replace(graph.node(id), properties={**graph.node(id).properties, **new}))
        for id, new in moved.items()
    ]
    return graph.apply(Diff(changed_nodes=tuple(nodes)))


def said(
    before: PropertyGraph, after: PropertyGraph, pairs: Sequence[Pair], people: float, error: float, seed: int
) -> list[DimensionEvidence]:
    """What simulated people say of the graph as it was, as it is read with the graph as it is."""
    from kgot_lab.experts.learning.dimension_statements import stated_dimensions

    sys.path.append(str(Path(__file__).parents[2] / "tests"))  # the people that tests simulate
    from support.simulated_learning import simulated_sayings

    told = simulated_sayings(before, pairs, people=people, error=error, seed=seed)
    return [
        each
        for number, (person, text) in enumerate(told)
        for each in stated_dimensions(after, text, by=person, message=str(number))
    ]


def asked_with_filters(
    before: PropertyGraph, after: PropertyGraph, pairs: Sequence[Pair], people: float, error: float, seed: int
) -> list[DimensionEvidence]:
    """What people show who ask for a node with a filter that it passed before: each names it, or errs and
    names another.
    """
    import numpy as np

    from kgot_lab.experts.learning.dimension_statements import DimensionEvidence, filter_evidence

    chance, found = np.random.default_rng(seed), []
    for number, (id, name) in enumerate(pairs):
        high = before.node(id).properties[name] > 0.5
        filters = {name: {"min": 0.6} if high else {"max": 0.4}}
        rivals = [
            each
            for each in before.ids
            if each != id and isinstance(after.node(each).properties.get(name), float)
        ]
        for person in range(int(chance.poisson(people))):
            named = rivals[int(chance.integers(len(rivals)))] if chance.random() < error else id
            who = DimensionEvidence(
                named,
                name,
                "low",
                f"person {number}-{person}",
                f"a question with a filter on {name}",
                str(number),
            )
            found += filter_evidence(after, named, filters, who)
    return found


def one_trial(way: str, k: int, people: float, error: float, seed: int) -> dict[str, list[int]]:
    """Right, reported and altered, for the report and for taking everyone's word."""
    import numpy as np

    from kgot_lab.experts.learning.contradictions import contradicted_dimensions

    before, pairs = watched()
    chance = np.random.default_rng([seed, k])
    chosen = [pairs[int(place)] for place in chance.permutation(len(pairs))[:WATCHED]]
    moved, after = set(chosen[:k]), altered(before, chosen[:k])
    evidence = (said if way == "said" else asked_with_filters)(before, after, chosen, people, error, seed)
    true = {(id, name, "lower" if after.node(id).properties[name] > 0.5 else "higher") for id, name in moved}
    report = {
        (each.node, each.dimension, each.way) for each in contradicted_dimensions(after, evidence).found
    }
    values = {each: after.node(each.node).properties[each.dimension] for each in evidence}
    against = [
        each
        for each, value in values.items()
        if abs(value - 0.5) > 0.1 and (each.end == "high") != (value > 0.5)
    ]
    voices = {(each.node, each.dimension, "lower" if each.end == "low" else "higher") for each in against}
    return {
        name: [len(true & found), len(found), k]
        for name, found in (("report", report), ("one voice", voices))
    }


def summary(trials: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Precision and recall with their intervals (of all trials together, drawn by trial), reports a trial,
    and trials that were silent.
    """
    from kgot_lab.evaluation.significance import grouped_interval, share

    found: dict[str, Any] = {"reports": sum(each[1] for each in trials) / len(trials)}
    silent = share(sum(each[1] == 0 for each in trials), len(trials))
    found["silent"] = [silent.mean, silent.low, silent.high]
    for name, place in (("precision", 1), ("recall", 2)):
        rows = [
            (int(hit < each[0]), str(number))
            for number, each in enumerate(trials)
            for hit in range(each[place])
        ]
        values, groups = [float(value) for value, _ in rows], [group for _, group in rows]
        if len(set(groups)) > 1:
            told = grouped_interval(values, groups, rounds=2000)
            found[name] = [told.mean, told.low, told.high]
    return found


def measured() -> list[dict[str, Any]]:
    """Every row of the table."""
    rows = []
    for way in ("said", "filters"):
        for k in ALTERED:
            for people in PEOPLE:
                for error in ERRORS:
                    trials = [one_trial(way, k, people, error, seed) for seed in range(SEEDS)]
                    row: dict[str, Any] = {
                        "way": way,
                        "altered": k,
                        "people": people,
                        "error": error,
                        "trials": SEEDS,
                    }
                    rows.append(
                        row
                        | {name: summary([each[name] for each in trials]) for name in ("report", "one voice")}
                    )
    return rows


def spanned(told: Sequence[float] | None) -> str:
    return "–" if told is None else f"{told[0]:.2f} [{told[1]:.2f}, {told[2]:.2f}]"


def show(found: dict[str, Any]) -> None:
    print(
        f"{found['trials']} simulated trials a row, {found['watched']} values spoken of in each; intervals of 95 %"
    )
    head = f"{'evidence':>9}{'altered':>8}{'people':>7}{'error':>6} |{'precision':>20}{'recall':>20}{'reports':>8}{'silent':>20}"
    print(f"{head} |{'one voice: precision':>22}{'recall':>20}{'reports':>8}")
    for row in found["rows"]:
        ours, theirs = row["report"], row["one voice"]
        line = f"{row['way']:>9}{row['altered']:8}{row['people']:7.0f}{row['error']:6.1f} |{spanned(ours.get('precision')):>20}"
        line += f"{spanned(ours.get('recall')):>20}{ours['reports']:8.2f}{spanned(ours['silent']):>20} |"
        print(
            line
            + f"{spanned(theirs.get('precision')):>22}{spanned(theirs.get('recall')):>20}{theirs['reports']:8.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    if parser.parse_args().table:
        show(json.loads(RESULTS.read_text()))
        return
    began = time.process_time()
    found = {"trials": SEEDS, "watched": WATCHED, "rows": measured()}
    RESULTS.write_text(
        json.dumps({**found, "cpu_seconds": round(time.process_time() - began, 1)}, indent=1) + "\n"
    )
    show(found)


if __name__ == "__main__":
    main()
