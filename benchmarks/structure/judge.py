"""Can the local model say which text is analogous? It was asked in three ways, and had to name the words it
goes by.

python -m benchmarks.structure.judge --table    the table of the results in results/structure/judge.jsonl

StoryAnalogy, AnaloBench (one sentence) and ParallelPARC (advanced), the first 20 dev questions of each in
the order of a hash. Each rubric names one ground of judgement; the reply holds the words of the chosen text
it rests on (the span), then a letter. Chance is .25. Written down before the run: this is one model of 1.5
billion parameters, and no choice follows from it. The code that asked stands at commit f449c983.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.experts.replies import whole_lines
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.types import Json

RESULT = Path(__file__).parents[1] / "results" / "structure" / "judge.jsonl"
JUDGE_SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc advanced")
JUDGE_RUBRICS = ("same lesson", "same steps", "parts in place")


def judge_table(rows: Sequence[Mapping[str, Json]]) -> Grid:
    """For each set and rubric: accuracy with interval, the letters chosen, and how often the span stands in
    the chosen text.

    `most of them`: what most rubrics chose, where all three were asked; where they differ, each counts for
    its part.
    """
    lines = []
    for name in dict.fromkeys(str(row["set"]) for row in rows):
        some = [row for row in rows if row["set"] == name]
        for rubric in JUDGE_RUBRICS:
            own = [row for row in some if row["rubric"] == rubric]
            letters = " ".join(f"{letter} {sum(row['answer'] == letter for row in own)}" for letter in "ABCD")
            right = [float(bool(row["right"])) for row in own]
            lines.append((name, rubric, *_reached(right), letters, _share(row["quoted"] for row in own)))
        asked: dict[str, list[Mapping[str, Json]]] = {}
        for row in some:
            asked.setdefault(str(row["question"]), []).append(row)
        whole = [rows for rows in asked.values() if len(rows) == len(JUDGE_RUBRICS)]
        lines.append((name, "most of them", *_reached(list(map(_most, whole))), "", ""))
    columns = ("set", "rubric", "questions", "right", "95 %", "chosen", "span quoted")
    title = f"The judge, {', '.join(dict.fromkeys(str(row['model']) for row in rows))}; chance is .25"
    return Grid(title, columns, tuple(tuple(map(Cell, line)) for line in lines))


def _reached(right: Sequence[float]) -> tuple[str, str, str]:
    if not right:
        return "0", "", ""
    own = interval(right)
    return str(own.n), format_decimal(own.mean), f"{format_decimal(own.low)} to {format_decimal(own.high)}"


def _share(flags: Iterable[Json]) -> str:
    values = [bool(flag) for flag in flags]
    return f"{sum(values) / len(values):.0%}" if values else ""


def _most(rows: Sequence[Mapping[str, Json]]) -> float:
    answers = [str(row["answer"]) for row in rows if row["answer"]]
    most = max((answers.count(answer) for answer in answers), default=0)
    chosen = {answer for answer in answers if answers.count(answer) == most}
    right = {str(row["answer"]) for row in rows if row["right"]}
    return len(chosen & right) / len(chosen) if chosen else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print the table of the results, as without it")
    parser.parse_args()
    print(judge_table(whole_lines(RESULT, dict)).text)


if __name__ == "__main__":
    main()
