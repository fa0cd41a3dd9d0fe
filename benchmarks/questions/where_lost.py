"""Where the loop lost the answers it got wrong: not found, not written, not read, or misread. Reads the
traces of question_answering.

python -m benchmarks.questions.where_lost --split test           # needs the traces, which are not kept in git
python -m benchmarks.questions.where_lost --split test --table   # counts what is on file
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from benchmarks.questions.answers_on_file import answers_file, rows_on_file
from benchmarks.questions.lost_answers import STAGES, lost_answers
from benchmarks.requirements import require_files

RESULTS = Path(__file__).parents[1] / "results"
TRACES = Path(__file__).parents[2] / "runs" / "question_answering"


def main() -> None:
    """Count, print, keep."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--split", default="test", choices=["dev", "test"])
    arguments.add_argument(
        "--table", action="store_true", help="count what was found when the traces were here"
    )
    options = arguments.parse_args()
    answers = answers_file(RESULTS, options.split, "kgot_local")
    kept = RESULTS / f"where_lost_{options.split}.json"
    recorded = f"python -m benchmarks.questions.question_answering --split {options.split} makes it with the local model, in about an hour"
    if options.table:
        require_files(f"python -m benchmarks.questions.where_lost --split {options.split} makes it", kept)
    else:
        require_files(recorded, answers)
        require_files(
            "traces are not kept in git; delete " + answers.name + f" and {recorded}",
            *(TRACES / options.split / f"{row['id']}.jsonl" for row in rows_on_file(answers)),
        )
        kept.write_text(json.dumps(lost_answers(answers, TRACES / options.split), indent=1) + "\n")
    counts = Counter(json.loads(kept.read_text()).values())
    print(f"{'where the loop lost the answer':32} questions")
    for name in STAGES:
        print(f"{name:32} {counts[name]:9}")


if __name__ == "__main__":
    main()
