"""Would one read of the best sentences do as well as the mode `paths`? All questions of the comparison, with
the paths left out.

The sentences come from the same passages and are as many tokens as `paths` reads in the median; the model is
asked once. What is compared stands in the plan, which is written before the first answer.

python -m benchmarks.graph_pays.best_sentences            # asks the local model, goes on after a stop
python -m benchmarks.graph_pays.best_sentences --table    # counts what is on file
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.graph_pays.ablations import ABLATIONS
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice
from kgot_lab.benchmark.comparison.plan import Design
from kgot_lab.benchmark.comparison.results import ComparisonResults, SystemScores
from kgot_lab.errors import BadInput, require_known
from kgot_lab.evaluation.reports import format_p, span
from kgot_lab.evaluation.tables import format_signed

RESULTS = Path(__file__).parents[1] / "results"
FOLDER, MEASURED = RESULTS / "best_sentences", RESULTS / "graph_pays"
SYSTEM, RIVALS = "best-sentences", ("paths", "follow-few", "rag")


def main() -> None:
    """Ask, keep, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--limit", type=int, help="ask only the first so many questions of each set")
    arguments.add_argument("--table", action="store_true", help="ask nothing")
    options = arguments.parse_args()
    if not options.table:
        from kgot_lab.llm import connect

        sentences = replace(ABLATIONS["twice-as-many-sentences"], questions=None)
        design = Design(systems={SYSTEM: sentences}, pairs=(), aims=())
        for due, result in ComparisonRun(design, FOLDER, connect("local")).answer_missing(
            ComparisonSlice(limit=options.limit)
        ):
            print(f"{due.set:12} {result.id:30} {result.f1:.2f} {result.predicted[:40]!r}", flush=True)
    (FOLDER / "report.json").write_text(
        json.dumps(report(ComparisonResults.load(FOLDER), ComparisonResults.load(MEASURED)), indent=1) + "\n"
    )
    print((FOLDER / "report.json").read_text())


def beside(measured: ComparisonResults) -> ComparisonResults:
    """What was measured before, with the one read in pairs with its rivals."""
    return pair_comparisons(measured, ComparisonResults.load(FOLDER), [(rival, SYSTEM) for rival in RIVALS])


def pair_comparisons(
    first: ComparisonResults, second: ComparisonResults, pairs: Sequence[tuple[str, str]]
) -> ComparisonResults:
    """Pair the answers of two folders to the same questions, in pairs that no plan named.

    p-values are corrected over all of these pairs. Raises BadInput if the questions differ or both folders have a
    system of one name, and UnknownName for a system that neither has.
    """
    if first.plan["sets"] != second.plan["sets"]:
        difference = "the two comparisons are not of the same questions"
        raise BadInput(f"{difference}, so their answers cannot be paired")
    if both := [name for name in first.answers if name in second.answers]:
        raise BadInput(f"{both[0]} has answers in both comparisons: which are meant is not clear")
    answers = {**first.answers, **second.answers}
    require_known("system with answers", answers, *(name for pair in pairs for name in pair))
    systems = {**first.plan["systems"], **second.plan["systems"]}
    named = [list(pair) for pair in pairs]
    return ComparisonResults({**first.plan, "systems": systems, "pairs": named, "aims": []}, answers)


def report(sentences: ComparisonResults, measured: ComparisonResults) -> dict:
    """By set: what one read scores and takes; and each rival less one read, paired over the questions that
    both answered.
    """
    told = {
        f"{row.system} - {SYSTEM}, F1, {row.on}, {row.difference.n} questions":
            f"{format_signed(row.difference.mean)} ({span(row.difference)}), p {format_p(row.p)}, after Holm {format_p(row.p_holm)}"
        for row in beside(measured).pairs
    }  # fmt: skip
    return {SYSTEM: {row.on: _taken(row) for row in sentences.system_scores}, **told}


def _taken(row: SystemScores) -> dict[str, object]:
    return {
        "n": row.n, "f1": round(row.f1.mean, 3), "95 %": f"{row.f1.low:.3f} to {row.f1.high:.3f}", "em": round(row.em.mean, 3),
        "prompt tokens": row.prompt_tokens, "evidence tokens": row.evidence_tokens, "calls": round(row.calls, 2), "seconds": row.seconds,
    }  # fmt: skip


if __name__ == "__main__":
    main()
