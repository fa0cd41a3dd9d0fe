"""Does a verifier that lets the local model read what causes what find the analogous text?

python benchmarks/read_by_model.py            the first 20 develop questions of each set, as the judge; goes
on where it was stopped python benchmarks/read_by_model.py --table    the receipts again, without the model

Rows go to results/transfer/read_by_model.jsonl. Two ways: causal frames (aim, steps of role and outcome with
their links, end; a closed vocabulary, so no word of a text's field can leak) compared with weights written
down once; and entailment: the model says the source in general, given back once where words of its field leak
(what leaks still is counted), and then how likely each step of that holds of each choice. Nothing is fitted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from kgot_lab.cli.requirements import need_local_model
from kgot_lab.cli.terminal import bar
from kgot_lab.embedding.vectors import minilm
from kgot_lab.experiments.experts.replies import add_line, whole_lines
from kgot_lab.experiments.structure.judge import JUDGE_SETS
from kgot_lab.experiments.transfer.read_by_model import read_grid, read_rows
from kgot_lab.experiments.transfer.receipts import held_out, kept_sets
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.types import Json

FOLDER = Path(__file__).parent / "results" / "transfer"
RESULT = FOLDER / "read_by_model.jsonl"


def main() -> None:
    """Ask, or only tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=20, help="how many of each set")
    parser.add_argument("--table", action="store_true", help="print the receipts, without the model")
    wanted = parser.parse_args()
    rows = whole_lines(RESULT, dict)
    if wanted.table and not rows:
        parser.error(f"there are no receipts in {RESULT.name} yet; run it without --table")
    try:
        if not wanted.table:
            ask(rows, wanted.questions)
    finally:
        if rows:  # what a stop leaves is told as well
            grid = read_grid(rows, held_out(FOLDER, kept_sets(FOLDER), JUDGE_SETS), minilm())
            write_whole(FOLDER / "read_by_model.md", grid.markdown + "\n", "the table")
            print(grid.text)


def ask(rows: list[dict[str, Json]], questions: int) -> None:
    """Add what is missing to the rows, and keep them after each."""
    need_local_model()
    from kgot_lab.llm.local import Local

    kept = {(str(row["model"]), str(row["set"]), str(row["question"])) for row in rows}
    with bar("reading") as progress:
        for row in read_rows(Local(context=4096), questions, kept):
            rows.append(row)
            add_line(RESULT, row)
            progress(len(rows), questions * len(JUDGE_SETS), str(row["set"]))


if __name__ == "__main__":
    main()
