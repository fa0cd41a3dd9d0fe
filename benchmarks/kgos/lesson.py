"""The figures that lesson 70 shows, derived from the per-query results of the test split."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kgos.benchmark import half_report
from benchmarks.kgos.intent_results import intents_said
from benchmarks.kgos.intents import BY_WORDS, NO_INTENT, right_intents
from benchmarks.kgos.lenient import LENIENT_5, STRICT_5, TYPE_5, leniency
from benchmarks.kgos.queries import cookbook_queries
from benchmarks.kgos.results import equalities, gap_told, kgos_verdicts
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Json

_EXAMPLES = ("literal-03", "goal-33", "benefit-01")


def lesson_figures(folder: Path) -> dict[str, Json]:
    """Compute every figure of the lesson, as plain values."""
    report, half = half_report(folder, "test"), cookbook_queries("test")
    dev = {query.id: query for query in cookbook_queries("tuning")}
    runs = {run.system: run for run in report.runs}
    own = {name: scores.per_query("recall@5") for name, scores in report.scores.items()}
    relaxed = leniency(runs["3-weight hybrid"], half, cookbook())
    first = [
        [runs[name].ids(id)[:5] for name in ("3-weight hybrid", "4-weight with intent")]
        for id in own["3-weight hybrid"]
    ]
    said = {each.system: each for each in intents_said(folder, "test")}
    right = {name: right_intents(each, half) for name, each in said.items()}
    alarms = {
        name: [label != NO_INTENT for id, label in each.labels.items() if id.startswith("outside")]
        for name, each in said.items()
    }
    aimless = [query.id for query in half if query.intent == NO_INTENT]
    return {
        "examples": [{"level": dev[id].level, "query": dev[id].text, "strict gold": ", ".join(sorted(dev[id].strict))} for id in _EXAMPLES],
        "recall@5": {name: dict(values) for name, values in own.items()},
        "leniency": {name: relaxed.mean(name) for name in (STRICT_5, LENIENT_5, TYPE_5)},
        "verdicts": [
            {"claim": row.claim.text, "difference": gap_told(row.difference), "p, Holm": round(row.p_holm, 3), "here": row.verdict}
            for row in kgos_verdicts(report)
        ],
        "with intent": {
            "another order": sum(one != other for one, other in first),
            "other nodes": sum(set(one) != set(other) for one, other in first),
        },
        "equalities": [[equality.text, gap_told(equality.difference), equality.said] for equality in equalities(report)],
        "intents": [
            {"classifier": name, "right": sum(values.values()) / len(values), "false alarms": sum(alarms[name]) / len(alarms[name])}
            for name, values in right.items()
        ],
        "by words": {
            "queries without an intent": len(aimless), "of them right": sum(right[BY_WORDS][id] for id in aimless),
            "right": sum(right[BY_WORDS].values()),
        },
    }  # fmt: skip
