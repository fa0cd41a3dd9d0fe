"""On what the scorer of a trail is learnt, and how well it does on what it was not learnt on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from benchmarks.standard_sets.fitting import FIRST_WEIGHTS, TrailChoice, fit_scorer, trail_choices
from kgot_lab.benchmark.recall.datasets import load_dataset, remove_titles
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.retrieval.multihop.features import LINK_FEATURES
from kgot_lab.retrieval.multihop.retriever import LEARNED_WEIGHTS, WITHOUT_LINKS, Scorer, multihop

LEARNT_ON = ("hotpotqa", "musique", "2wiki-1000", "musique-498", "musique-steps", "musique-498-steps")
CROSSED_BY = "recall@5"
LearningProgress = Callable[[int, int, str], object]  # done, total, what is next


def dev_parts() -> list[Dataset]:
    """What may be learnt on: the dev questions of LEARNT_ON that are held out nowhere, over passages with
    titles and without.
    """
    test_ids = load_dataset("2wiki").test_ids
    parts = [load_dataset(name).dev for name in LEARNT_ON]
    parts = [
        part.only(
            [query.id for query in part.queries if not (part.name == "2wiki-1000" and query.id in test_ids)]
        )
        for part in parts
    ]
    return [*parts, *map(remove_titles, parts)]


def learnt_scorers(embedder: Embedder, progress: LearningProgress) -> dict[str, Scorer]:
    """The scorers learnt on all dev questions, by the file they belong in: that of a trail, and the
    control that looks at no names.
    """
    found = learnt_choices(dev_parts(), InMemoryVectors(embedder), progress)
    return {LEARNED_WEIGHTS: fit_scorer(found), WITHOUT_LINKS: fit_scorer(found, without=LINK_FEATURES)}


def crossed(embedder: Embedder, progress: LearningProgress) -> dict[str, dict[str, float]]:
    """recall@5 of every dev question, by data set, with a scorer learnt on the other half of them; groups
    stay together.
    """
    parts, found = dev_parts(), dict[str, dict[str, float]]()
    remembered = InMemoryVectors(embedder)
    halves = [
        [part.only([query.id for query in part.queries if half_of(part, query.id) == half]) for part in parts]
        for half in (0, 1)
    ]
    for half in (0, 1):
        scorer = fit_scorer(learnt_choices(halves[half], remembered, progress))
        for part, other in zip(parts, halves[1 - half], strict=True):
            scores = score(
                run(multihop(part.documents, remembered, scorer), other.queries, keep=5),
                other.qrels,
                (CROSSED_BY,),
            )
            found.setdefault(part.name, {}).update(scores.per_query(CROSSED_BY))
    return found


def learnt_choices(parts: list[Dataset], embedder: Embedder, progress: LearningProgress) -> list[TrailChoice]:
    """What a scorer is learnt from: the choices of a linear scorer, which was learnt on those of one by hand."""
    steps, by, found = 2 * len(parts), FIRST_WEIGHTS, list[TrailChoice]()
    for turn in (0, 1):
        found = []
        for number, part in enumerate(parts):
            progress(turn * len(parts) + number, steps, f"choices on {part.name}")
            found += trail_choices(part, embedder, by)
        by = by if turn else fit_scorer(found, units=0)
    progress(steps, steps, "the network")
    return found


def half_of(part: Dataset, query: str) -> int:
    """Which half of the dev questions one belongs to, 0 or 1, by a hash of its group."""
    return hashlib.sha256(f"half {part.groups.get(query, query)}".encode()).digest()[0] % 2
