"""The KG-OS benchmark: what is written down before, then each half of the queries into results, the test
one last and once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.kgos.claims import KGOS_CLAIMS, LEVELS_SAID
from benchmarks.kgos.learned_fusion import LearnedFusion, learn_fusion
from benchmarks.kgos.lenient import LOTS
from benchmarks.kgos.queries import QueryHalf, cookbook_data, cookbook_queries
from benchmarks.kgos.systems import LEARNED_FUSION, THREE_WEIGHTS, KgosLanes, kgos_systems
from kgot_lab.benchmark.recall.filling import load_stored_runs, run_missing
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import PLAN, Report, report
from kgot_lab.evaluation.results import Plan
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path, read_regular_text, write_atomically
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Json

KGOS_PLAN = Plan(
    THREE_WEIGHTS, measures=("recall@5", "recall@10", "ndcg@10", "mrr@10"), expected="goal preset"
)
SETTLED = "before.json"


def write_before(folder: Path, vectors: Embedder) -> None:
    """Learn the fusion on the tuning half and write down, before the test half is evaluated, all that is
    settled by then.

    What is there is left alone; raises BadInput where it says something else than the program does now.
    """
    graph, remembered = cookbook(), InMemoryVectors(vectors)
    KGOS_PLAN.write_down(folder / PLAN)
    if not (folder / SETTLED).exists():
        settled = _settled(graph, remembered, learnt(graph, remembered))
        write_atomically(folder / SETTLED, json.dumps(settled, indent=1) + "\n", "what is settled before")
    settled_before(folder, graph, remembered)


def learnt(graph: PropertyGraph, remembered: InMemoryVectors) -> LearnedFusion:
    """The fusion of the telling lanes, learnt on the tuning half."""
    data = cookbook_data("tuning", cookbook_queries("tuning"), graph)
    remembered.add_texts([query.text for query in data.queries])
    return learn_fusion(KgosLanes(graph, remembered).telling, data.queries, data.qrels)


def settled_before(folder: Path, graph: PropertyGraph, vectors: InMemoryVectors) -> LearnedFusion:
    """The fusion that was written down before; raises BadInput where nothing was, or where claims, systems or
    data are others by now.
    """
    path = folder / SETTLED
    if not path.exists() or not (folder / PLAN).exists():
        raise BadInput(
            f"{folder} holds no {PLAN} and {SETTLED}: they are written before the test half is evaluated"
        )
    there = json.loads(read_regular_text(path))
    fusion = LearnedFusion.of_json(there["learned fusion"])
    now = json.loads(json.dumps(_settled(graph, vectors, fusion)))
    if other := [name for name in {**now, **there} if now.get(name) != there.get(name)]:
        raise BadInput(
            f"{path} says something else than the program on {', '.join(other)}; what was settled is not changed afterwards"
        )
    if Plan.load(folder / PLAN) != KGOS_PLAN:
        raise BadInput(f"{folder / PLAN} is another plan than that of the program")
    return fusion


def measure_half(
    folder: Path, half: QueryHalf, vectors: Embedder, tell: Callable[[str], object] = lambda name: None
) -> None:
    """Run every system on a half of the queries into folder/cookbook-<half>/; results that are there are
    kept.

    The vector of a query is computed before the clock runs. Raises BadInput as `settled_before` does, for
    either half.
    """
    graph, remembered = cookbook(), InMemoryVectors(vectors)
    fusion = settled_before(folder, graph, remembered)
    data = cookbook_data(half, cookbook_queries(half), graph)
    remembered.add_texts([query.text for query in data.queries])
    run_missing(
        folder,
        data,
        kgos_systems(graph, remembered, fusion),
        KGOS_PLAN,
        lambda name, note="": tell(name + note),
    )


def half_report(folder: Path, half: QueryHalf) -> Report:
    """The report on a half, derived from its results; raises BadInput where there are none, or where they
    are of other data.
    """
    data = cookbook_data(half, cookbook_queries(half), cookbook())
    runs = load_stored_runs(folder, data)
    if not runs:
        raise BadInput(f"there are no results of the {half} half below {folder}; run the benchmark first")
    return report(runs, data, Plan.load(folder / PLAN))


def _settled(graph: PropertyGraph, vectors: InMemoryVectors, fusion: LearnedFusion) -> dict[str, Json]:
    """All that is settled before the test half is evaluated, but for the plan."""
    frozen = json.loads(bundled_path("cookbook/FROZEN.json").read_text(encoding="utf-8"))
    names = [*kgos_systems(graph, vectors), LEARNED_FUSION]
    return {
        "frozen": frozen["sha256"],
        "systems": names,
        "claims": [[claim.text, claim.better, claim.worse] for claim in KGOS_CLAIMS],
        "levels": dict(LEVELS_SAID),
        "lenient": "min(accepted nodes among the first five, strict nodes) / strict nodes",
        "control": f"accepted nodes that are not strict drawn by lot, {LOTS} times, of all nodes and of the same types",
        "intents": "classify_intent as it is; the probe is fitted on the tuning half, with and without 100 questions of clinc150",
        "tuned on": "the tuning half alone",
        "learned fusion": fusion.as_json(),
    }
