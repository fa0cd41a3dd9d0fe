"""The learned fusion on public sets of passages: learnt on dev questions of one set, tried on test ones
and on other sets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.kgos.learned_fusion import LearnedFusion, learn_fusion, learned
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import results_path, run_missing
from kgot_lab.benchmark.recall.systems import systems
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.results import Plan, load_results
from kgot_lab.evaluation.significance import Numbers, holm, interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.files import read_regular_text, write_atomically
from kgot_lab.retrieval.stage import Stage

PASSAGE_SETS = ("2wiki", "hotpotqa", "musique")
PASSAGE_LANES = ("bm25", "fts5", "embeddings", "graph boost only", "pagerank, titles", "follow")
DENSE, RIVALS = "embeddings", ("convex", "follow", "follow, sentences")
_FUSIONS = "fusions.json"


@dataclass(frozen=True)
class Transfer:
    """A fusion that was learnt on one set and tried on another, or on the test questions of the same:
    differences in recall@5.
    """

    learnt_on: str
    tried_on: str
    mean: float
    gaps: Mapping[str, Numbers]  # less each rival, question by question


def measure_passages(
    folder: Path, vectors: Embedder, tell: Callable[[str], object] = lambda name: None
) -> None:
    """Learn a fusion on the dev questions of each set and run it on all questions of every set, into
    results; those there are kept.
    """
    built = {name: _lanes(load_dataset(name), vectors) for name in PASSAGE_SETS}
    path = folder / _FUSIONS
    if not path.exists():
        learnt = {}
        for name, (dataset, lanes) in built.items():
            tell(f"learning on {name}")
            part = dataset.dev
            learnt[name] = learn_fusion(lanes, part.queries, part.qrels).as_json()
        write_atomically(path, json.dumps(learnt, indent=1) + "\n", "what was learnt")
    learnt = json.loads(read_regular_text(path))
    plan = Plan(_system(PASSAGE_SETS[0]), measures=("recall@5",))
    for dataset, lanes in built.values():
        tell(f"all fusions on {dataset.name}")
        run_missing(
            folder,
            dataset,
            {_system(name): learned(lanes, LearnedFusion.of_json(values)) for name, values in learnt.items()},
            plan,
        )


def transfers(folder: Path, recall: Path) -> list[Transfer]:
    """Every fusion on every set, from its results and those of the recall benchmark; of the set it was
    learnt on the test questions.
    """
    found = []
    for learnt_on in PASSAGE_SETS:
        for tried_on in PASSAGE_SETS:
            whole = load_dataset(tried_on)
            part = whole.held_out if tried_on == learnt_on else whole
            own = _recall(results_path(folder, whole, _system(learnt_on)), part)
            gaps = {name: own - _recall(results_path(recall, whole, name), part) for name in (DENSE, *RIVALS)}
            found.append(Transfer(learnt_on, tried_on, float(own.mean()), gaps))
    return found


def transfer_grid(some: list[Transfer]) -> Grid:
    """The gains of learned fusions over the dense lane alone and over three rivals; p-values of a column are
    one family.
    """
    ps = {name: holm([sign_flip_p(each.gaps[name]) for each in some]) for name in (DENSE, *RIVALS)}
    lines = []
    for row, each in enumerate(some):
        cells = [
            Cell(each.learnt_on),
            Cell(f"{each.tried_on}{', test' * (each.learnt_on == each.tried_on)}"),
        ]
        cells += [Cell(str(len(each.gaps[DENSE]))), Cell(format_decimal(each.mean))]
        for name, corrected in ps.items():
            gap = interval(each.gaps[name])
            cells.append(
                Cell(
                    f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]",
                    corrected[row] < 0.05,
                )
            )
        lines.append(tuple(cells))
    columns = ("learnt on", "tried on", "n", "recall@5", *(f"less {name}" for name in (DENSE, *RIVALS)))
    title = "Learned fusion on passages; bold: p below .05 by Holm over the nine of a column"
    return Grid(title, columns, tuple(lines))


def _lanes(dataset: Dataset, vectors: Embedder) -> tuple[Dataset, dict[str, Stage]]:
    remembered = InMemoryVectors(vectors)
    remembered.add_texts([query.text for query in dataset.queries])
    made = systems(dataset, remembered)
    return dataset, {name: made[name]() for name in PASSAGE_LANES}


def _system(learnt_on: str) -> str:
    return f"learned on {learnt_on}"


def _recall(path: Path, part: Dataset) -> Numbers:
    """Recall@5 of a result on some questions, in their order."""
    if not path.exists():
        raise BadInput(f"{path} is not there; run the benchmark first")
    values = score(load_results(path), part.qrels, ["recall@5"]).per_query("recall@5")
    return np.array([values[query.id] for query in part.queries], np.float64)
