"""Does a trail find more of MuSiQue where the local model splits the question into hops, or where they are
split as MuSiQue was composed?

python -m benchmarks.standard_sets.question_hops --table    the table of the results

Dev questions alone, for the test ones of musique-498 were open when this was tried. What the model made
of each question stands in results/standard_sets/hops.jsonl, recall@5 of each question in split.json: features by
hops, learnt on one half and measured on the other. Splits by hand bound what a better model could give. The
code that split and learnt stands at commit f449c983.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.experts.replies import whole_lines
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.evaluation.significance import interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed

FOLDER = Path(__file__).parents[1] / "results" / "standard_sets"
HOPS, MEASURED = FOLDER / "hops.jsonl", FOLDER / "split.json"
UNSPLIT, SPLIT_BY_HAND = "not split", "by hand"


def splits_grid(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Grid:
    """Mean recall@5 of each split and its paired difference to questions that are not split, over groups of
    questions that share steps.
    """
    rows = []
    for name, ways in found.items():
        groups = load_dataset(name).groups
        plain = ways[UNSPLIT]
        for way, reached in ways.items():
            cells = [name, way, str(len(reached)), format_decimal(float(np.mean(list(reached.values()))))]
            if way != UNSPLIT:
                gaps = [reached[query] - plain[query] for query in plain]
                some = [groups.get(query, query) for query in plain]
                gap = interval(gaps, some)
                cells += [
                    format_signed(gap.mean),
                    f"{format_signed(gap.low)} to {format_signed(gap.high)}",
                    format_p_value(sign_flip_p(gaps, some)),
                ]
            rows.append(tuple(map(Cell, [*cells, *[""] * (7 - len(cells))])))
    columns = ("dev questions of", "split", "questions", "recall@5", "more", "95 %", "p")
    return Grid(
        "A trail on questions split into hops: learnt on one half of these dev questions, measured on the other",
        columns,
        tuple(rows),
    )


def main() -> None:
    """Print the table, and what the splits of the model cost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print the table of the results, as without it")
    parser.parse_args()
    print(splits_grid(json.loads(MEASURED.read_text(encoding="utf-8"))).text)
    rows = whole_lines(HOPS, dict)
    split = sum(bool(row["hops"]) for row in rows) / len(rows)
    seconds, read, written = (median(row[what] for row in rows) for what in ("seconds", "read", "written"))
    cost = f"a question took {seconds:.0f} s, {read:.0f} tokens read, {written:.0f} written (medians)"
    print(f"\n{rows[0]['model']} split {split:.0%} of {len(rows)} questions; {cost}")


if __name__ == "__main__":
    main()
