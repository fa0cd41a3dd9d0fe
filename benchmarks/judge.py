"""Can the local model say which text is analogous? It is asked in three ways, and must name the words it goes by.

Writes results/structure/judge.jsonl. Asked are the first so many develop questions, in the order of a hash, of StoryAnalogy, AnaloBench
(one sentence) and ParallelPARC (advanced). Each rubric names one ground of judgement; the reply holds the words of the chosen text it
rests on (the span), then a letter. Chance is .25. `--table` prints the receipts again. Written down before the run: this is one model of
1.5 billion parameters, and no choice follows from it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from kgot_lab.cli.needs import need_local_model
from kgot_lab.experiments.structure.judge import judge_table, judged_sets

RESULT = Path(__file__).parent / "results" / "structure" / "judge.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30, help="how many of each set")
    parser.add_argument("--table", action="store_true", help="print the receipts, without the model")
    wanted = parser.parse_args()
    if not wanted.table:
        need_local_model()
        from kgot_lab.llm.local import Local

        rows, began = [], time.perf_counter()
        for name, judged in judged_sets(Local(context=4096), wanted.questions):
            rows += judged
            print(f"{time.perf_counter() - began:5.0f} s  {name}", flush=True)
            RESULT.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(judge_table(RESULT))


if __name__ == "__main__":
    main()
