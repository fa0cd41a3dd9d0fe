"""Whether failed answers tell what a graph lacks: nodes are deleted, their queries asked, and the untouched
graph is asked beside it.

    python -m benchmarks.experts.expert_gaps            # measure it all (some minutes; MiniLM is needed)
    python -m benchmarks.experts.expert_gaps --table    # print the tables of the last results

The graph is the curated one, the questions are the tuning half of its queries; the locked half is not opened.
In each draw the gold nodes of 5 queries are deleted and all 66 in-scope queries are asked; a simulated user
gives a thumb down where no gold node is among the ten told, and the wrong thumb at the rate of error. A query
is cut where all of its gold nodes are gone. A gap is right where its query is cut; a region is right where it
proposes an edge to a former neighbour of a gold node of one of its cut queries. "by lot" scores the same
regions with the gold of other cut queries of the draw; a type by lot likewise. The rows of settings ask the
untouched graph through an expert that is set badly: there a misconfiguration is right, and the setting to be
named is known. In the rows of topics the gold nodes of all queries of one intent are deleted. Thresholds were
set on these same queries. Results go to results/expert_gaps.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.kgos.queries import CookbookQuery
    from kgot_lab.embedding.embedder import Embedder
    from kgot_lab.evaluation.significance import Estimate
    from kgot_lab.experts.learning.gaps import GapReport, QuestionRecord
    from kgot_lab.experts.learning.growth_regions import ProposedRegion
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.kgos.methods.search.configuration import RetrievalConfig

RESULTS = Path(__file__).parents[1] / "results" / "expert_gaps.json"
DRAWS, CUT, ERRORS = 40, 5, (0.0, 0.1)
# a value of 0 or 1, and the query that it is of: those of a query are drawn together
Counted = list[tuple[float, str]]


@cache
def data() -> tuple[PropertyGraph, tuple[CookbookQuery, ...]]:
    """The curated graph and the tuning half of its queries."""
    from benchmarks.kgos.queries import cookbook_queries
    from kgot_lab.kgos.schemas.vocabularies import cookbook

    return cookbook(), cookbook_queries("tuning")


def asked(
    graph: PropertyGraph, queries: Sequence[CookbookQuery], config: RetrievalConfig, embedder: Embedder | None
) -> list[tuple[CookbookQuery, QuestionRecord]]:
    """The queries as an expert is asked them; the thumb is right: down where no gold node is told."""
    from kgot_lab.experts.learning.gaps import QuestionRecord
    from kgot_lab.kgos.methods.search.intent_search import intent_search

    found = []
    for query in queries:
        result = intent_search(graph, query.text, config=config, embedder=embedder)
        told = tuple(node.id for node in result.nodes)
        intent = result.intents.best.name if result.intents.best else ""
        thumb = 1 if query.strict & set(told) else -1
        found.append(
            (
                query,
                QuestionRecord(
                    query.id, query.text, "An answer.", told, told[:1], thumb=thumb, intent=intent
                ),
            )
        )
    return found


def erring(
    questions: Sequence[tuple[CookbookQuery, QuestionRecord]], error: float, seed: int
) -> list[QuestionRecord]:
    """The same with wrong thumbs at a rate."""
    from dataclasses import replace

    import numpy as np

    chance = np.random.default_rng(seed)
    return [
        replace(each, thumb=-(each.thumb or 1)) if chance.random() < error else each for _, each in questions
    ]


def neighbours(ids: frozenset[str]) -> set[str]:
    """The nodes that edges of the untouched graph join with some nodes."""
    graph, _ = data()
    return {
        end for id in ids for edge in graph.neighbours(id, "both") for end in (edge.source, edge.target)
    } - ids


def kinds(ids: frozenset[str]) -> set[str]:
    """The types of some nodes of the untouched graph."""
    graph, _ = data()
    return {label for id in ids for label in graph.node(id).labels}


def score_regions(
    regions: Sequence[ProposedRegion], cut: Mapping[str, CookbookQuery], rows: dict[str, Counted]
) -> None:
    """Add how right regions are, and how right they would be by lot."""
    names = sorted(cut)
    reached = set()
    for region in regions:
        own = [name for name in region.messages if name in cut]
        right = [name for name in own if set(region.ends) & neighbours(cut[name].strict)]
        reached |= set(right)
        rows["region precision"].append((float(bool(right)), region.messages[0]))
        for name in own:
            others = [other for other in names if other not in region.messages]
            rows["type"].append((float(region.types[0][0] in kinds(cut[name].strict)), name))
            rows["end"].append((float(name in right), name))
            for other in others:
                rows["type by lot"].append((float(region.types[0][0] in kinds(cut[other].strict)), name))
                rows["end by lot"].append(
                    (float(bool(set(region.ends) & neighbours(cut[other].strict))), name)
                )
    rows["region recall"] += [(float(name in reached), name) for name in names]


def estimate(values: Counted) -> list[float] | None:
    """The mean of some values and its interval; the values of a query are drawn together."""
    from kgot_lab.evaluation.significance import grouped_interval

    groups = [query for _, query in values]
    if len(set(groups)) < 2:
        return None
    told = grouped_interval([value for value, _ in values], groups, rounds=2000)
    return [told.mean, told.low, told.high, told.n]


def deleted(embedder: Embedder | None) -> list[dict[str, Any]]:
    """Draws of deleted nodes, a row an error rate."""
    from kgot_lab.experts.learning.gaps import gap_report
    from kgot_lab.kgos.methods.search.configuration import RetrievalConfig

    graph, queries = data()
    inside = [query for query in queries if query.strict]
    rows: dict[float, dict[str, Counted]] = {error: {} for error in ERRORS}
    proposed: dict[float, int] = dict.fromkeys(ERRORS, 0)
    nodes = 0
    for draw in range(DRAWS):
        left, cut = drawn(draw)
        nodes += len(graph) - len(left)
        questions = asked(left, inside, RetrievalConfig(), embedder)
        for error in ERRORS:
            of = rows[error]
            for name in (
                "gap precision",
                "gap recall",
                "region precision",
                "region recall",
                "type",
                "type by lot",
                "end",
                "end by lot",
            ):
                of.setdefault(name, [])
            report = gap_report(left, erring(questions, error, draw), embedder=embedder)
            gaps = {gap.asked.message for gap in report.gaps}
            of["gap precision"] += [(float(name in cut), name) for name in sorted(gaps)]
            of["gap recall"] += [(float(name in gaps), name) for name in cut]
            score_regions(report.regions, cut, of)
            proposed[error] += len(report.regions)
    return [
        {"error": error, "regions": proposed[error] / DRAWS, "nodes": nodes / DRAWS}
        | {name: estimate(values) for name, values in rows[error].items()}
        for error in ERRORS
    ]


def untouched(embedder: Embedder | None) -> list[dict[str, Any]]:
    """The control: what is proposed where nothing was deleted, of queries in scope and of those that nothing
    answers.
    """
    from kgot_lab.experts.learning.gaps import gap_report
    from kgot_lab.kgos.methods.search.configuration import RetrievalConfig

    graph, queries = data()
    found = []
    for error in ERRORS:
        row: dict[str, Any] = {"error": error}
        for name, some in (
            ("in scope", [q for q in queries if q.strict]),
            ("out of scope", [q for q in queries if not q.strict]),
        ):
            questions = asked(graph, some, RetrievalConfig(), embedder)
            reports = [
                gap_report(graph, erring(questions, error, seed), embedder=embedder)
                for seed in range(1 if error == 0 else DRAWS)
            ]
            means = [sum(values) / len(reports) for values in zip(*map(sizes, reports), strict=True)]
            row[name] = {
                "asked": len(some),
                "gaps": means[0],
                "regions": means[1],
                "settings": means[2],
                "patterns": means[3],
            }
        found.append(row)
    return found


def sizes(report: GapReport) -> tuple[int, int, int, int]:
    return len(report.gaps), len(report.regions), len(report.misconfigured), len(report.patterns)


def settings(embedder: Embedder | None) -> list[dict[str, Any]]:
    """Experts that are set badly, on the untouched graph: are their failures put down to the setting?"""
    from kgot_lab.evaluation.significance import share
    from kgot_lab.experts.learning.gaps import gap_report
    from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
    from kgot_lab.retrieval.fusion import Weights

    graph, queries = data()
    inside = [query for query in queries if query.strict]
    bad = {
        "filters": RetrievalConfig(dimension_filters={"implementation_complexity": {"max": 0.3}}),
        "weights": RetrievalConfig(weights=Weights(0, 0, 1, 0)),
        "limit": RetrievalConfig(limit=1),
        "methods": RetrievalConfig(methods=("intent",)),
    }
    found = []
    for name, config in bad.items():
        questions = [each for _, each in asked(graph, inside, config, embedder)]
        usual = {
            each.message for _, each in asked(graph, inside, RetrievalConfig(), embedder) if each.thumb == 1
        }
        report = gap_report(graph, questions, config=config, embedder=embedder)
        owed = {each.message for each in questions if each.failures} & usual  # fails by the setting alone
        blamed = {each.asked.message: each.setting for each in report.misconfigured}
        hit, named = (
            share(len(owed & set(blamed)), len(owed)),
            share(sum(blamed.get(each) == name for each in owed), len(owed)),
        )
        row: dict[str, Any] = {
            "setting": name,
            "failed": len(owed),
            "found": spread(hit),
            "named": spread(named),
        }
        found.append(row | {"gap recall": gaps_of(config, embedder)})
    return found


def spread(told: Estimate) -> list[float]:
    return [told.mean, told.low, told.high, told.n]


def gaps_of(config: RetrievalConfig, embedder: Embedder | None) -> list[float] | None:
    """How many cut queries a badly set expert still puts down to the graph, in the first draws."""
    from kgot_lab.experts.learning.gaps import gap_report

    rows: Counted = []
    for draw in range(DRAWS // 4):
        left, cut = drawn(draw)
        questions = [each for _, each in asked(left, list(cut.values()), config, embedder)]
        gaps = {
            gap.asked.message for gap in gap_report(left, questions, config=config, embedder=embedder).gaps
        }
        rows += [(float(name in gaps), name) for name in cut]
    return estimate(rows)


def drawn(draw: int) -> tuple[PropertyGraph, dict[str, CookbookQuery]]:
    """The graph without the gold nodes of some queries, and the queries that are cut by it."""
    import numpy as np

    graph, queries = data()
    inside = [query for query in queries if query.strict]
    chosen = np.random.default_rng(draw).permutation(len(inside))[:CUT]
    gone = frozenset[str]().union(*(inside[int(place)].strict for place in chosen))
    left = graph.subgraph([id for id in graph.ids if id not in gone])
    return left, {query.id: query for query in inside if query.strict <= gone}


def topics(embedder: Embedder | None) -> list[dict[str, Any]]:
    """For each intent that 4 queries or more have, by whoever wrote them: its gold nodes are deleted; is a
    pattern told that names it?

    Once with the intents as they were written down for the queries, and once as the chat finds them, by
    words.
    """
    from collections import Counter
    from dataclasses import replace

    from kgot_lab.experts.learning.gaps import failure_patterns
    from kgot_lab.kgos.methods.search.configuration import RetrievalConfig

    graph, queries = data()
    inside = [query for query in queries if query.strict]
    found = []
    for intent, count in sorted(Counter(query.intent for query in inside).items()):
        if intent == "none" or count < 4:
            continue
        gone = frozenset[str]().union(*(query.strict for query in inside if query.intent == intent))
        left = graph.subgraph([id for id in graph.ids if id not in gone])
        pairs = asked(left, inside, RetrievalConfig(), embedder)
        row: dict[str, Any] = {
            "intent": intent,
            "queries": count,
            "failed": sum(bool(each.failures) for _, each in pairs),
        }
        for name, some in (
            (
                "written",
                [
                    replace(each, intent="" if query.intent == "none" else query.intent)
                    for query, each in pairs
                ],
            ),
            ("by words", [each for _, each in pairs]),
        ):
            row[name] = [f"{each.kind} {each.name}" for each in failure_patterns(some)]
        found.append(row)
    return found


def spanned(told: Sequence[float] | None) -> str:
    return "–" if told is None else f"{told[0]:.2f} [{told[1]:.2f}, {told[2]:.2f}]"


def show(found: Mapping[str, Any]) -> None:
    for way, part in found["ways"].items():
        print(
            f"\n{way}: {DRAWS} draws, gold nodes of {CUT} queries deleted in each; intervals of 95 %, drawn by query"
        )
        for row in part["deleted"]:
            print(
                f"  wrong thumbs {row['error']:.0%}: {row['nodes']:.1f} nodes gone, {row['regions']:.1f} regions proposed a draw"
            )
            for name in (
                "gap precision",
                "gap recall",
                "region precision",
                "region recall",
                "end",
                "end by lot",
                "type",
                "type by lot",
            ):
                print(f"    {name:<18}{spanned(row[name])}")
        for row in part["untouched"]:
            for name in ("in scope", "out of scope"):
                each = row[name]
                told = f"{each['gaps']:.1f} gaps, {each['regions']:.1f} regions, {each['settings']:.1f} by settings"
                print(
                    f"  untouched, wrong thumbs {row['error']:.0%}, {each['asked']} {name}: {told}, {each['patterns']:.2f} patterns"
                )
        for row in part["settings"]:
            told = (
                f"{row['failed']:3} fail by it; found {spanned(row['found'])}, named {spanned(row['named'])}"
            )
            print(
                f"  badly set {row['setting']:<8}{told}; of cut queries still a gap {spanned(row['gap recall'])}"
            )
        for row in part["topics"]:
            told = "; ".join(f"{name}: {', '.join(row[name]) or 'none'}" for name in ("written", "by words"))
            print(
                f"  topic {row['intent']:<18}{row['queries']:2} queries, {row['failed']:2} of all fail; patterns by intents {told}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print the tables of the last results")
    if parser.parse_args().table:
        show(json.loads(RESULTS.read_text()))
        return
    from kgot_lab.embedding.cache import Remembered
    from kgot_lab.embedding.vectors import minilm

    began = time.process_time()
    ways: dict[str, Embedder | None] = {"by meaning (MiniLM)": Remembered(minilm()), "by words": None}
    parts = {"deleted": deleted, "untouched": untouched, "settings": settings, "topics": topics}
    measured = {way: {name: part(embedder) for name, part in parts.items()} for way, embedder in ways.items()}
    found = {
        "draws": DRAWS,
        "cut": CUT,
        "ways": measured,
        "cpu_seconds": round(time.process_time() - began, 1),
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    show(found)


if __name__ == "__main__":
    main()
