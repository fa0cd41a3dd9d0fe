"""Measures of a run against qrels, computed by ir_measures, and all@k, which it lacks."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgot_lab.errors import BadInput, needs_extra, require_known
from kgot_lab.evaluation.dataset import Qrels
from kgot_lab.evaluation.runs import Run
from kgot_lab.text.cleaning import format_count

MEASURES = ("recall@2", "recall@5", "recall@10", "all@5", "ndcg@10", "mrr@10")
# names in ir_measures
_IR_MEASURES = {
    "recall": "R",
    "precision": "P",
    "success": "Success",
    "ndcg": "nDCG",
    "mrr": "RR",
    "map": "AP",
}
_NEEDS_CUTOFF = {"recall", "precision", "success", "ndcg", "all"}


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of a system by measure and query id."""

    system: str
    dataset: str
    values: Mapping[str, Mapping[str, float]]

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over all queries.

        Raises UnknownName if the measure was not scored.
        """
        return statistics.fmean(self.per_query(measure).values())

    def per_query(self, measure: str) -> Mapping[str, float]:
        """Return the value of a measure for each query id.

        Raises UnknownName if the measure was not scored.
        """
        require_known("measure", self.values, measure)
        return self.values[measure]

    def only(self, ids: Collection[str]) -> Scores:
        """Return the scores of a subset of the queries.

        Raises BadInput if none is left.
        """
        kept = {name: {id: own[id] for id in own if id in ids} for name, own in self.values.items()}
        if not all(kept.values()):
            raise BadInput(f"none of the queries asked for was scored for {self.system}")
        return replace(self, values=kept)

    def __repr__(self) -> str:
        count = len(next(iter(self.values.values()), {}))
        means = ", ".join(f"{measure} {self.mean(measure):.3f}" for measure in self.values)
        return f"<{self.system} on {self.dataset or 'some queries'}, {format_count(count, 'query', 'queries')}: {means}>"


def score(
    run: Run, qrels: Qrels, measures: Sequence[str] = MEASURES, *, classes: Mapping[str, str] | None = None
) -> Scores:
    """Score a run on every query of the qrels.

    A query that the run lacks counts 0 (as in `trec_eval -c`), and queries outside the qrels are ignored.
    Measures are recall@k, all@k (1 if every relevant document is in the first k, else 0), ndcg@k, mrr, mrr@k,
    precision@k, success@k, map and map@k. With `classes` (document id to class) scoring is lenient: a hit in
    the class of a relevant document counts, each class once. A query without any relevant document counts 0,
    as in trec_eval. Raises UnknownName for an unknown measure, and BadInput for a cutoff deeper than the run.
    """
    if not qrels:
        raise BadInput("there are no qrels to score against")
    cuts = {measure: _checked_measure(measure, run) for measure in measures}
    found = {query: run.ids(query) for query in qrels}
    if classes:
        found = {query: _hits_by_class(ids, classes) for query, ids in found.items()}
        qrels = _qrels_by_class(qrels, classes)
    values: dict[str, Mapping[str, float]] = {}
    for measure, (name, cut) in cuts.items():
        if name == "all":
            values[measure] = {id: _all_found(found[id][:cut], grades) for id, grades in qrels.items()}
    others = {measure: cut for measure, cut in cuts.items() if cut[0] != "all"}
    values |= _by_ir_measures(found, qrels, others)
    return Scores(run.system, run.dataset, {measure: values[measure] for measure in measures})


def cutoff(measure: str) -> int:
    """Return the cutoff of a measure, or 0 if it uses all hits of a query.

    Raises UnknownName for an unknown measure and BadInput for an invalid cutoff.
    """
    return _parse_measure(measure)[1]


def _checked_measure(measure: str, run: Run) -> tuple[str, int]:
    """Split a measure into its name and cutoff, and check that the run is deep enough."""
    name, cut = _parse_measure(measure)
    if cut > run.kept:
        problem = f"{measure} does not follow from the run of {run.system}"
        raise BadInput(f"{problem}, which kept {format_count(run.kept, 'hit')} of a query")
    return name, cut


def _parse_measure(measure: str) -> tuple[str, int]:
    """Split a measure into its name and its cutoff (0 without one)."""
    name, _, cut = measure.partition("@")
    require_known("measure", {*_IR_MEASURES, "all"}, name)
    if not cut and name not in _NEEDS_CUTOFF:
        return name, 0
    if not cut.isdecimal() or int(cut) < 1:
        raise BadInput(f"{measure!r} needs a cut of 1 or more, as in {name}@5")
    return name, int(cut)


def _all_found(first: Sequence[str], grades: Mapping[str, int]) -> float:
    relevant = {document for document, grade in grades.items() if grade > 0}
    return float(bool(relevant) and relevant <= set(first))


def _by_ir_measures(
    found: Mapping[str, list[str]], qrels: Qrels, cuts: Mapping[str, tuple[str, int]]
) -> dict[str, dict[str, float]]:
    if not cuts:
        return {}
    with needs_extra("bench", "ir-measures"):
        import ir_measures
    theirs: dict[str, Any] = {}
    for measure, (name, cut) in cuts.items():
        base = getattr(ir_measures, _IR_MEASURES[name])
        theirs[measure] = base @ cut if cut else base
    # trec_eval sorts by score and breaks ties by descending id. Our rankings are already sorted, with ties by
    # ascending id. So the rank is passed as the score: integers without ties, in our order.
    run = {query: {id: float(len(ids) - row) for row, id in enumerate(ids)} for query, ids in found.items()}
    values = {measure: dict.fromkeys(qrels, 0.0) for measure in theirs}
    measured: dict[Any, dict[str, float]] = {base: {} for base in theirs.values()}
    judged = {query: dict(grades) for query, grades in qrels.items()}
    ranked = {query: ids for query, ids in run.items() if ids}
    for metric in ir_measures.iter_calc(list(measured), judged, ranked):
        measured[metric.measure][metric.query_id] = float(metric.value)
    return {measure: values[measure] | measured[base] for measure, base in theirs.items()}


# --- lenient scoring ---


def _qrels_by_class(qrels: Qrels, classes: Mapping[str, str]) -> Qrels:
    """Replace documents in qrels by their classes.

    A class gets the best grade of its documents. A document without a class is its own.
    """
    graded: dict[str, dict[str, int]] = {}
    for query, grades in qrels.items():
        graded[query] = {}
        for document, grade in grades.items():
            known = _class_name(document, classes)
            graded[query][known] = max(grade, graded[query].get(known, grade))
    return graded


def _hits_by_class(ids: Sequence[str], classes: Mapping[str, str]) -> list[str]:
    """Replace hits by their classes.

    A repeated class keeps its rank, so that k is unchanged, but matches nothing.
    """
    seen: set[str] = set()
    named = []
    for rank, id in enumerate(ids):
        known = _class_name(id, classes)
        named.append(f"again {rank}" if known in seen else known)
        seen.add(known)
    return named


def _class_name(document: str, classes: Mapping[str, str]) -> str:
    return f"class {classes[document]}" if document in classes else f"document {document}"
