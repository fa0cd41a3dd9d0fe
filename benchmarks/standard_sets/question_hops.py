"""Does a trail find more of MuSiQue where the local model splits the question into hops, or where they are
split as MuSiQue was composed?

python -m benchmarks.standard_sets.question_hops            splits what is not split yet (10 s a question on
one core), then learns and measures python -m benchmarks.standard_sets.question_hops --table    the table from
the receipts, without the model

Develop questions alone, for the locked ones of musique-498 were open when this was tried. What the model made
of each question stands in results/standard_sets/hops.jsonl, recall@5 of each question in split.json. Splits
by hand bound what a better model could give.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

from benchmarks.experts.replies import add_line, whole_lines
from benchmarks.standard_sets.splitting import (
    SPLIT_BY_HAND,
    questions_to_split,
    split_questions,
    splits_grid,
    splits_measured,
)
from kgot_lab.benchmark.recall.datasets import hops_by_hand
from kgot_lab.cli.requirements import need_files, need_local_model
from kgot_lab.cli.terminal import bar
from kgot_lab.embedding.vectors import minilm

FOLDER = Path(__file__).parents[1] / "results" / "standard_sets"
HOPS, MEASURED = FOLDER / "hops.jsonl", FOLDER / "split.json"


def main() -> None:
    """Split, learn, measure; or only tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="print the receipts, without the model")
    if not parser.parse_args().table:
        _split()
        by_model = {row["question"]: row["hops"] for row in _kept()}
        with bar("learning") as progress:
            found = splits_measured(
                {_kept()[0]["model"]: by_model, SPLIT_BY_HAND: hops_by_hand()}, minilm(), progress
            )
        MEASURED.write_text(json.dumps(found) + "\n", encoding="utf-8")
    need_files("python -m benchmarks.standard_sets.question_hops makes it", HOPS, MEASURED)
    print(splits_grid(json.loads(MEASURED.read_text(encoding="utf-8"))).text)
    rows = _kept()
    split = sum(bool(row["hops"]) for row in rows) / len(rows)
    seconds, read, written = (median(row[what] for row in rows) for what in ("seconds", "read", "written"))
    told = f"{rows[0]['model']} split {split:.0%} of {len(rows)} questions; a question took {seconds:.0f} s, {read:.0f} tokens read, "
    print(f"\n{told}{written:.0f} written (medians)")


def _split() -> None:
    done = {row["question"] for row in _kept()}
    asked = questions_to_split()
    if left := [query for query in asked if query.id not in done]:
        need_local_model()
        from kgot_lab.llm.local import Local

        with bar("splitting") as progress:
            for number, row in enumerate(split_questions(Local(context=1024), left), len(done) + 1):
                add_line(HOPS, row)
                progress(number, len(asked), "questions split")


def _kept() -> list[dict]:
    return whole_lines(HOPS, dict)


if __name__ == "__main__":
    main()
