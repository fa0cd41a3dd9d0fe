"""Can the local model say which text is analogous? It is asked in three ways, and must name the words it goes
by.

python -m benchmarks.structure.judge            the first 20 develop questions of each set, in the order of a
hash; goes on where it was stopped python -m benchmarks.structure.judge --table    the receipts again, without
the model

Rows go to results/structure/judge.jsonl. Asked are StoryAnalogy, AnaloBench (one sentence) and ParallelPARC
(advanced). Each rubric names one ground of judgement; the reply holds the words of the chosen text it rests
on (the span), then a letter. Chance is .25. Written down before the run: this is one model of 1.5 billion
parameters, and no choice follows from it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.experts.replies import add_line, whole_lines
from benchmarks.structure.judging import JUDGE_RUBRICS, JUDGE_SETS, judge_table, judged_rows
from kgot_lab.cli.requirements import need_local_model
from kgot_lab.cli.terminal import bar

RESULT = Path(__file__).parents[1] / "results" / "structure" / "judge.jsonl"


def main() -> None:
    """Ask, or only tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=20, help="how many of each set")
    parser.add_argument("--table", action="store_true", help="print the receipts, without the model")
    wanted = parser.parse_args()
    rows = whole_lines(RESULT, dict)
    if not wanted.table:
        need_local_model()
        from kgot_lab.llm.local import Local

        kept = {(row["set"], row["rubric"], row["question"]) for row in rows}
        total = wanted.questions * len(JUDGE_SETS) * len(JUDGE_RUBRICS)
        with bar("judging") as progress:
            for row in judged_rows(Local(context=4096), wanted.questions, kept):
                rows.append(row)
                add_line(RESULT, row)
                progress(len(rows), total, f"{row['set']}, {row['rubric']}")
    print(judge_table(rows).text)


if __name__ == "__main__":
    main()
