"""Tuning that does not measure itself: what is chosen on some queries answers the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import depth, score
from kgot_lab.evaluation.results import MARGIN, Plan
from kgot_lab.evaluation.runs import run
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.learned_fusion import Admission, gate
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Ranking

FEWEST = 4  # develop queries, below which nothing is tuned
_PRIMARY = Plan.primary  # what is tuned for, unless a plan says otherwise
_WHOLE = 100  # hits kept for a measure that looks at all of them
_GRID = tuple(step / 10 for step in range(11))  # the weights tried; at 0 and 1 one lane stands alone


def cross_fitted(dataset: Dataset, fit: Callable[[Dataset], Stage], name: str) -> Stage:
    """A stage that is fitted, for each half of the develop queries, on the other half, and for every other
    query on all of them.

    The halves go by the hash of the query's id. Raises BadInput for fewer than four develop queries.
    """
    first, second = halves(dataset)
    for_first, for_second, for_others = fit(second), fit(first), fit(dataset.develop)
    fitted = {query.id: for_first for query in first.queries} | {
        query.id: for_second for query in second.queries
    }
    said = "; ".join(dict.fromkeys(stage.name for stage in (for_first, for_second, for_others)))

    def step(ranking: Ranking) -> Ranking:
        return fitted.get(ranking.query.id, for_others)(ranking)

    return Stage(f"{name}({said})", step)


def halves(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """The develop queries in two halves by the hash of their ids; raises BadInput for fewer than four."""
    develop = dataset.develop
    ids = sorted(
        (query.id for query in develop.queries),
        key=lambda id: hashlib.sha256(f"half {id}".encode()).hexdigest(),
    )
    if len(ids) < FEWEST:
        raise BadInput(
            f"{dataset.name} has {len(ids)} develop queries; tuning in two halves takes at least {FEWEST}"
        )
    return develop.only(ids[: len(ids) // 2]), develop.only(ids[len(ids) // 2 :])


def mean_recall(part: Dataset) -> Callable[[Stage], float]:
    """The mean recall@5 of a stage on the queries of a data set."""
    return mean_score(part, "recall@5")


def mean_score(part: Dataset, measure: str) -> Callable[[Stage], float]:
    """The mean of a measure of a stage on the queries of a data set."""
    keep = depth(measure) or _WHOLE
    return lambda stage: score(run(stage, part.queries, keep=keep), part.qrels, [measure]).mean(measure)


def best_weight(first: Stage, second: Stage, part: Dataset, measure: str = _PRIMARY) -> Stage:
    """The convex fusion of two lanes with the weight that does best on a data set; of equal ones the one
    nearest to a half.
    """
    known = _remembering({"first": first, "second": second})
    reached = mean_score(part, measure)
    found = {
        weight: reached(weighted((weight, known["first"]), (1 - weight, known["second"]))) for weight in _GRID
    }
    weight = max(found, key=lambda weight: (found[weight], -abs(weight - 0.5)))
    return weighted((weight, first), (round(1 - weight, 1), second))


def admitted(
    lanes: Mapping[str, Stage],
    fuse: Callable[[Sequence[Stage]], Stage],
    part: Dataset,
    margin: float = MARGIN,
    measure: str = _PRIMARY,
) -> Admission:
    """What the gate lets into a fusion on the queries of a data set; the pipeline is made of the lanes
    themselves.
    """
    decided = gate(_remembering(lanes), fuse, mean_score(part, measure), margin=margin)
    chosen = [lanes[name] for name in decided.admitted]
    return Admission(chosen[0] if len(chosen) == 1 else fuse(chosen), decided.trials, decided.margin)


def _remembering(lanes: Mapping[str, Stage]) -> dict[str, Stage]:
    """The same lanes, each asking once for a query: tuning puts the same queries again and again."""
    return {name: _remembered(lane) for name, lane in lanes.items()}


def _remembered(lane: Stage) -> Stage:
    known: dict[str, Ranking] = {}

    def step(ranking: Ranking) -> Ranking:
        if ranking.query.id not in known:
            known[ranking.query.id] = lane(ranking)
        return known[ranking.query.id]

    return Stage(lane.name, step)
