"""Does the mode `paths`, as it is now, ask what the measured one asked? It is walked again on the replies in
the traces of a comparison.

A comparison is finished with the version that began it; this says whether its figures are also those of the
code beside it. No model is asked: a question for which the mode now asks something else counts as changed.

python -m benchmarks.graph_pays.as_measured                # needs the traces, which are not kept in git
python -m benchmarks.graph_pays.as_measured --table        # shows what is on file
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import suppress
from pathlib import Path

from benchmarks.graph_pays.repeated import what_counts
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, place_of, receipts_of
from kgot_lab.benchmark.comparison.plan import PLAN_FILE, Design
from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS
from kgot_lab.benchmark.questions.batch import TRACES, trace_name
from kgot_lab.cli.requirements import need_files
from kgot_lab.errors import LLMError
from kgot_lab.llm.presets import FREE
from kgot_lab.types import Prompt, Reply

MEASURED = Path(__file__).parents[1] / "results" / "graph_pays"
KEPT, SYSTEM = "as_measured.json", "paths"


class NotAsked:
    """The model of a comparison by name, which knows only what is on file."""

    price = FREE

    def __init__(self, name: str):
        self.name = name

    def __call__(self, prompt: Prompt) -> Reply:
        raise LLMError("the mode asks something that is not on file")

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


def main() -> None:
    """Walk, compare, keep, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--folder", type=Path, default=MEASURED, help="the comparison")
    arguments.add_argument("--table", action="store_true", help="walk nothing")
    options = arguments.parse_args()
    kept = options.folder / KEPT
    if options.table:
        need_files(f"python -m benchmarks.graph_pays.as_measured --folder {options.folder} makes it", kept)
    else:
        need_files("`kgot-lab bench questions` makes it", options.folder / PLAN_FILE)
        kept.write_text(json.dumps(compared(options.folder), indent=1) + "\n")
    print(kept.read_text())


def compared(folder: Path) -> dict[str, dict[str, int | list[str]]]:
    """For each set how many answers have a trace, how many of those were walked again, and which of them the
    mode now comes to otherwise.

    Five that end in an error one after the other end the walk: then the mode has changed, and it does not
    matter how often.
    """
    model = json.loads((folder / PLAN_FILE).read_text())["model"]["name"]
    told: dict[str, dict[str, int | list[str]]] = {}
    for name, sample in Design().samples.items():
        measured, now = receipts_of(folder, name, SYSTEM), {}
        traced = [
            id for id in measured if (place_of(folder, name, SYSTEM) / TRACES / trace_name(id)).is_file()
        ]
        design = Design(samples={name: sample.only(traced)}, systems={SYSTEM: ANSWER_SYSTEMS[SYSTEM]})
        with tempfile.TemporaryDirectory() as elsewhere, suppress(LLMError):
            for due, receipt in ComparisonRun(
                design, Path(elsewhere), NotAsked(model), reuse=(folder,)
            ).answers():
                now[due.question.id] = receipt
        changed = sorted(
            id for id, receipt in now.items() if what_counts(receipt) != what_counts(measured[id])
        )
        told[name] = {
            "answers": len(measured),
            "with a trace": len(traced),
            "walked again": len(now),
            "changed": changed,
        }
    return told


if __name__ == "__main__":
    main()
