"""Whether delta edges help a walk over a graph of stories: systems, controls, and figures; the plan is in
benchmarks/delta/delta_recall.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.delta.graphs import (
    ALIKE_VERIFIED,
    AS_MANY_ALIKE,
    CHOSEN,
    CONTROLS,
    DELTA_ALONE,
    DELTA_SETS,
    SHUFFLED,
    SIMILARITY_EDGE,
    StoryCase,
    edge_sets,
    story_case,
)
from benchmarks.recall.figures import Row, corrected, estimated, gap_estimated
from benchmarks.structure.analogy_pairs import AnalogyPairs, pair
from benchmarks.structure.nouns import Nouns
from kgot_lab.analogy.delta_edges import DELTA_EDGE, replace_computed_edges
from kgot_lab.benchmark.recall.systems import shuffle_targets
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.retrieval.pass_through import Walk, traverse
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Json, Ranking

_MEASURES = ("recall@5", "recall@10")
ENTRY_ONLY, TRAVERSE, CEILING = "entry only", "traverse", "ceiling"
PRIMARY_OF_DELTA = {"system": CHOSEN, "against": TRAVERSE, "measure": "recall@10"}
WALK = Walk(interleaved=True, rest=True)
_SHUFFLES = range(5)


# --- measuring ---


def delta_stages(
    one: StoryCase, chosen: dict[str, Sequence[Edge]], truth: Iterable[Edge]
) -> Iterator[tuple[str, list[Stage]]]:
    """Each system as a stage, one that is drawn at random as several."""
    yield ENTRY_ONLY, [one.entry]
    yield TRAVERSE, [traverse(one.graph, one.entry, walk=WALK)]
    for system, edges in (chosen | {CEILING: list(truth)}).items():
        kind = SIMILARITY_EDGE if system in (AS_MANY_ALIKE, ALIKE_VERIFIED) else DELTA_EDGE
        rewired = (
            [shuffle_targets(replace_computed_edges(one.texts, edges), seed).edges for seed in _SHUFFLES]
            if system == SHUFFLED
            else [edges]
        )
        walk = (
            replace(WALK, types=(DELTA_EDGE,)) if system == DELTA_ALONE else replace(WALK, computed=(kind,))
        )
        yield (
            system,
            [
                traverse(replace_computed_edges(one.graph, some, kind), one.entry, walk=walk)
                for some in rewired
            ],
        )


def measured_walks(one: StoryCase, embedder: Embedder, say: Callable[[str], None]) -> tuple[list[Row], Row]:
    """A row for each part, system and measure, with the value of each query; and the facts of the graph and
    of its edges.
    """
    chosen, made = edge_sets(one, embedder)
    say(f"edges: {', '.join(f'{len(edges):,}' for edges in chosen.values())}")
    rows: list[Row] = []
    parts = {"develop": one.pairs.dev, "locked": one.pairs.held_out}
    for part, data in one.parts.items():
        judged = parts[part]
        for system, several in delta_stages(
            one, chosen, [Edge(*_ends(both)) for both in sorted(judged.analogous)]
        ):
            found = np.mean([_values(data, leaving_out(stage, one.dropped)) for stage in several], axis=0)
            for measure, own in zip(_MEASURES, found, strict=True):
                rows.append(
                    {
                        "part": part,
                        "system": system,
                        "measure": measure,
                        "questions": [round(float(value), 6) for value in own],
                    }
                )
        say(f"{part}: {len(data.queries)} queries")
    nouns, curated = len(one.graph) - len(one.texts), len(one.graph.edges)
    facts = {"texts": len(one.texts), "nouns": nouns, "curated": curated, **made}
    # these have those of CHOSEN
    of_their_own = {
        system: edges for system, edges in chosen.items() if system not in (DELTA_ALONE, SHUFFLED)
    }
    told = {
        part: {system: _edge_facts(parts[part], edges) for system, edges in of_their_own.items()}
        for part in one.parts
    }
    return rows, {**facts, "edges": told}


def _values(data: Dataset, stage: Stage) -> Numbers:
    """Each measure for each query, shape (measures, queries)."""
    scores = score(run(stage, data.queries, keep=10), data.qrels, _MEASURES)
    return np.array([list(scores.per_query(measure).values()) for measure in _MEASURES])


def leaving_out(stage: Stage, out: Mapping[str, frozenset[str]]) -> Stage:
    """The stage without what the ranking of a query leaves out."""

    def step(ranking: Ranking) -> Ranking:
        found, gone = stage(ranking), out[ranking.query.id]
        return Ranking(ranking.query, tuple(hit for hit in found.hits if hit.id not in gone))

    return Stage(stage.name, step)


def _edge_facts(part: AnalogyPairs, edges: Iterable[Edge]) -> Row:
    """How many edges there are, how many of them the part judges, and how many are right, of so many
    analogous pairs.
    """
    ends = {pair(edge.source, edge.target) for edge in edges}
    judged = [both for both in ends if part.judges(*both)]
    share = round(len(judged) and sum(both in part.analogous for both in judged) / len(judged), 5)
    right, wanted = sum(both in part.analogous for both in judged), len(part.analogous)
    return {
        "edges": len(ends),
        "judged": len(judged),
        "right": right,
        "of": wanted,
        "precision": share,
        "by_lot": round(part.prevalence, 5),
    }


def _ends(both: tuple[str, str]) -> tuple[str, str, str]:
    return both[0], DELTA_EDGE, both[1]


# --- what follows from the values ---


def delta_figures(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """From the values of the queries alone: the rows with mean and interval, and the differences that tell.

    These are every system against "traverse", the chosen one against each control, and delta edges with and
    without the nouns against the entry alone; where the test part is there, on all queries too.
    """
    whole = [
        {**{name: row[name] for name in ("dataset", "part", "system", "measure")}, **estimated(_own(row))}
        for row in rows
    ]
    value = {(row["dataset"], row["part"], row["measure"], row["system"]): _own(row) for row in rows}
    for dataset, measure, system in dict.fromkeys(
        (row["dataset"], row["measure"], row["system"]) for row in rows
    ):
        both = [
            value[dataset, part, measure, system]
            for part in ("develop", "locked")
            if (dataset, part, measure, system) in value
        ]
        if len(both) == 2:
            value[dataset, "all", measure, system] = np.concatenate(both)
    gaps: list[Row] = []
    for dataset, part, measure, system in value:
        for against in (
            [TRAVERSE] * (system != TRAVERSE)
            + [*CONTROLS] * (system == CHOSEN)
            + [ENTRY_ONLY] * (system in (CHOSEN, DELTA_ALONE))
        ):
            gap = value[dataset, part, measure, system] - value[dataset, part, measure, against]
            same = {
                "dataset": dataset,
                "part": part,
                "measure": measure,
                "system": system,
                "against": against,
            }
            gaps.append({**same, **gap_estimated(gap)})
    return [{**told, "questions": row["questions"]} for told, row in zip(whole, rows, strict=True)], gaps


def _own(row: Row) -> Numbers:
    return np.array(row["questions"], np.float64)


def delta_table(result: Mapping[str, list[Row]]) -> str:
    """What a reader looks at first: each system on each set, and the comparisons decided on beforehand."""
    told = []
    for row in (row for row in result["systems"] if row["measure"] == PRIMARY_OF_DELTA["measure"]):
        told.append(
            f"{row['dataset']:16} {row['part']:8} {row['system']:42} {row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        )
    others = [
        gap
        for gap in result["differences"]
        if gap["measure"] == PRIMARY_OF_DELTA["measure"] and gap["against"] != TRAVERSE
    ]
    for gap in [*result["primary"], *others]:
        span = f"{gap['mean']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]"
        told.append(
            f"{gap['dataset']}, {gap['part']}: {gap['system']} - {gap['against']} {span}, p {gap['p']}"
            + (f", Holm {gap['p_holm']:.4f}" if "p_holm" in gap else "")
        )
    return "\n".join(told)


def delta_primary(gaps: list[Row]) -> list[Row]:
    """The comparisons decided on beforehand, the p of each part corrected for being three."""
    chosen = [gap for gap in gaps if all(gap[key] == value for key, value in PRIMARY_OF_DELTA.items())]
    parts = dict.fromkeys(gap["part"] for gap in chosen)
    return [gap for part in parts for gap in corrected([gap for gap in chosen if gap["part"] == part])]


def _about(name: str, say: Callable[[str], None]) -> Callable[[str], None]:
    return lambda said: say(f"{name}, {said}")


def measure_delta_recall(
    parts: Sequence[str], partial: Path, say: Callable[[str], None]
) -> tuple[list[Row], list[Row]]:
    """The rows of the systems and the facts of the graphs; sets that an interrupted run finished are in the
    partial file.
    """
    kept = (
        [json.loads(line) for line in partial.read_text(encoding="utf-8").splitlines()]
        if partial.exists()
        else []
    )
    done = {each["dataset"]: each for each in kept if each["parts"] == list(parts)}
    embedder, nouns = minilm(), Nouns()
    for name in DELTA_SETS:
        if name not in done:
            rows, facts = measured_walks(
                story_case(name, parts, embedder, nouns), embedder, _about(name, say)
            )
            done[name] = {"dataset": name, "parts": list(parts), "rows": rows, "facts": facts}
            with partial.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[name]) + "\n")
    rows = [{"dataset": name, **row} for name in DELTA_SETS for row in done[name]["rows"]]
    return rows, [{"dataset": name, **done[name]["facts"]} for name in DELTA_SETS]


def delta_result(rows: list[Row], graphs: list[Row]) -> dict[str, Json]:
    """Everything that is kept: the plan, what it compares, and the figures that follow from the values of the
    queries.
    """
    rows, gaps = delta_figures(rows)
    primary = delta_primary(gaps)
    return {
        "plan": PRIMARY_OF_DELTA,
        "entry": WALK.entry,
        "primary": primary,
        "graphs": graphs,
        "systems": rows,
        "differences": gaps,
    }
