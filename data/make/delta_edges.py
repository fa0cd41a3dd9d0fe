"""Compute the delta edges between the passages of bundled sets: writes delta_edges.jsonl.gz into their
folders.

python -m data.make.delta_edges musique      all sets, where none is named; a large one takes long

Skeletons by the linguistic maker, a whole passage each: an edge joins passages, not sentences. Decided on
dev questions of MuSiQue, and the same for every set of passages:
- The specified thresholds pass 73 % of all pairs, 687 edges a passage. They were set for another embedder;
such a graph says nothing.
- So the thresholds are calibrated on dev texts of ParallelPARC, which are paragraphs too, and the
verifier may veto.
- That leaves about 8 edges a passage, but most of them at a few plain descriptions ("something is something
on something of something"),
  some 160 at one. So an edge stays only where it is among the ten highest deltas of both its passages: none
  has more than ten.
With every choice tried the walk finds fewer passages than without delta edges, or as many where hardly an
edge is left (printed, and kept in the head of the file as `tried`). The edges taken are those that the rule
above gives, not those that cost least: none would.

Analogous texts (ANALOGIES) have the edges that benchmarks/delta/delta_recall.py chose: calibrated on the develop
pairs of the set itself, verified, and as many as there are.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.delta.graphs import calibration
from benchmarks.requirements import require_skeletons
from benchmarks.structure.analogy_pairs import pairs
from benchmarks.structure.calibration import CalibratedThresholds
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import EdgeCandidates, delta_edges
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import Skeletons, make_skeletons
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.systems import mean_score, systems
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import InMemoryVectors, minilm
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import title_graph
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, Thresholds
from kgot_lab.similarity.join import delta_pairs
from kgot_lab.types import Edge, Json

DATA = Path(__file__).parent.parent
TRIED = "musique"  # the set on whose dev questions the rule was chosen
ANALOGIES = ("parallelparc", "storyanalogy-mc")
FOLDERS = {
    "musique": "musique-train-100",
    "musique-498": "musique-498",
    "2wiki": "2wiki-fastgraphrag-101",
    "hotpotqa": "hotpotqa-train-100",
    "cookbook": "cookbook",
    **dict(zip(ANALOGIES, ANALOGIES, strict=True)),
}
MOST = 10  # edges of a passage
DIGITS = 4


def own_best(edges: Sequence[Edge], most: int = MOST) -> list[Edge]:
    """The edges that are among the heaviest of both their ends, ties by id."""
    order = sorted(edges, key=lambda edge: (-float(edge.properties["weight"]), edge.source, edge.target))
    place: dict[str, int] = {}
    kept = []
    for edge in order:
        places = [place.get(end, 0) for end in (edge.source, edge.target)]
        place |= {end: before + 1 for end, before in zip((edge.source, edge.target), places, strict=True)}
        if max(places) < most:
            kept.append(edge)
    return sorted(kept, key=lambda edge: (edge.source, edge.target))


def busy(edges: Sequence[Edge]) -> Counter[str]:
    """How many edges each passage has."""
    return Counter(end for edge in edges for end in (edge.source, edge.target))


def stricter(edges: Sequence[Edge], least: float) -> list[Edge]:
    """The edges whose skeletons are at least so alike."""
    return [edge for edge in edges if float(edge.properties["skeleton"]) >= least]


def tried(data: Dataset, options: dict[str, Sequence[Edge]], embedder: Embedder) -> list[Json]:
    """What each choice of edges does to the recall@5 of a walk over titles, and how many gold passages of a
    question it joins.
    """
    remembered = InMemoryVectors(embedder)
    remembered.add_texts([query.text for query in data.queries])
    reached = mean_score(data, "recall@5")
    rows: list[Json] = [
        {
            "edges": "none",
            "count": 0,
            "recall@5": round(reached(systems(data, remembered)["neighbours, turns"]()), 4),
        }
    ]
    gold = {tuple(sorted((a, b))) for grades in data.qrels.values() for a in grades for b in grades if a != b}
    for said, edges in options.items():
        walk = systems(replace(data, isomorphic=tuple(edges)), remembered)["neighbours, turns + delta"]()
        joined = len(gold & {(edge.source, edge.target) for edge in edges})
        rows.append(
            {
                "edges": said,
                "count": len(edges),
                "recall@5": round(reached(walk), 4),
                "gold_pairs": joined,
                "of": len(gold),
            }
        )
    return rows


def passing(graph: PropertyGraph, made: Skeletons, embedder: Embedder, thresholds: Thresholds) -> int:
    """How many pairs pass some thresholds."""
    material, _ = EdgeCandidates.of(graph, made, embedder)
    found = delta_pairs(material.raw, material.skeleton, thresholds, groups=material.groups, most=1)
    return len(found) + found.dropped


def written(edges: Sequence[Edge], head: dict[str, Json]) -> bytes:
    """A head, and a line for each edge; the same edges give the same bytes."""
    rows: list[Json] = [head]
    for edge in edges:
        numbers = {
            name: round(float(edge.properties[name]), DIGITS) for name in ("weight", "raw", "skeleton")
        }
        rows.append({"source": edge.source, "target": edge.target, **numbers})
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode())
    return packed.getvalue()


def thresholds_for(embedder: Embedder, name: str = "parallelparc") -> CalibratedThresholds:
    """Calibrate on the dev part of a set of analogous texts, by default paragraphs of ParallelPARC."""
    part = pairs(f"{name} pairs").dev
    return calibration(
        part, make_skeletons([document.text for document in part.documents], LinguisticSkeletons()), embedder
    )


def make(name: str, embedder: Embedder) -> None:
    """Compute the edges of a set and write them; those of MuSiQue are tried on its dev questions."""
    data, file = load_dataset(name).dev, DATA / FOLDERS[name] / "delta_edges.jsonl.gz"
    graph, texts = title_graph(data.documents), [document.text for document in data.documents]
    made, aligner = make_skeletons(texts, LinguisticSkeletons()), Aligner(embedder)
    own = thresholds_for(embedder, name) if name in ANALOGIES else thresholds_for(embedder)
    print(f"specified: {passing(graph, made, embedder, DEFAULT_THRESHOLDS):,} pairs pass\ncalibrated: {own}")
    aligner.prepare(texts)
    found = delta_edges(graph, made, embedder, thresholds=own, verifier=aligner)
    most_before = max(busy(found.edges).values(), default=0)
    print(f"{found}\n  at one passage up to {most_before}")
    chosen = list(found.edges) if name in ANALOGIES else own_best(found.edges)
    head: dict[str, Json] = {
        "maker": made.maker,
        "embedder": embedder.name,
        "embedder_digest": embedder.digest,
        "thresholds": {"skeleton": own.skeleton, "delta": own.delta},
        "calibrated": str(own),
        "verifier": f"Aligner, {aligner.weights}, {aligner.limits}",
        "vetoed": len(found.vetoed),
        "most": None if name in ANALOGIES else MOST,
        "edges": len(chosen),
        "at_one_passage_before": most_before,
    }
    if name == TRIED:
        head["tried"] = every_choice(data, [*found.edges, *found.vetoed], found.edges, embedder)
    file.write_bytes(written(chosen, head))
    print(f"{file.relative_to(DATA)}: {file.stat().st_size:,} bytes")


def every_choice(
    data: Dataset, unverified: Sequence[Edge], verified: Sequence[Edge], embedder: Embedder
) -> list[Json]:
    """Try each choice of edges on dev questions."""
    options: dict[str, Sequence[Edge]] = {
        "calibrated": unverified,
        "calibrated, ten each": own_best(unverified),
    }
    options |= {
        "calibrated, verified": verified,
        "calibrated, verified, ten each (taken)": own_best(verified),
    }
    options |= {f"verified, skeletons >= {least}": stricter(verified, least) for least in (0.85, 0.9, 0.95)}
    rows = tried(data, options, embedder)
    print("\n".join(map(str, rows)))
    return rows


def main() -> None:
    """Compute, try on dev questions, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"all by default: {', '.join(FOLDERS)}")
    names = parser.parse_args().names or FOLDERS
    require_skeletons()
    for name in names:
        make(name, minilm())


if __name__ == "__main__":
    main()
