"""Does a structural system see structure, or only the surface turned round? Writes
benchmarks/results/structure.

Written down before the test parts were evaluated:
- The measure is accuracy over four-way questions. The system named beforehand is `fitted surface + aligned`,
for every set; of those
  that fit nothing it is `aligned`. Each is compared, question by question, with the best control on that set:
  the one with the highest accuracy on the dev part, among those that fit nothing for `aligned`, among all
  for `fitted surface + aligned`. One family of tests (Holm) each.
- `fitted surface` is the strongest control that could be built: it learns on the dev part how much nine
traits of the surface count,
  traits among them by which a set gives its answers away. `+ aligned` is the same fit with the score of the
  alignment as one more trait.
- In the four cells (near or far analogue, similar or dissimilar wrong choices) a system is to be above
chance, .25, in each. In the
  matched questions neither nearness nor shared nouns tell the answer; see
  benchmarks/structure/cells.py for both rules.
- Thresholds and weights come from dev parts alone, as do the weights, limits and word lists of the
aligner, so that its dev
  figures flatter a little; the test ones do not. Fitted systems answer dev questions crosswise.

Added after the test parts had been evaluated, to explain: `aligned, in any order` and `fitted surface +
skeleton, masked`, which tell what the order and the alignment add to masking; more systems among the
searches; thresholds of edges chosen for precision.

`python -m benchmarks.structure.structure` runs the dev parts; `--open` runs the test ones too; both
write results. `--table` derives all tables from the results, without a model. About ten minutes; skeletons
of the local model come from data/skeletons.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.requirements import require_packages, require_skeletons
from benchmarks.structure.instruments import Instruments
from benchmarks.structure.lesson import lesson_figures
from benchmarks.structure.per_question import answer_sets, draw_edges, map_words, search_pools
from benchmarks.structure.report import structure_grids
from kgot_lab.embedding.vectors import minilm

RESULTS = Path(__file__).parents[1] / "results" / "structure"


def measure(opened: bool) -> None:
    """Ask, search, draw and map, saying what is done after how many seconds."""
    require_skeletons()
    require_packages("test", "scipy")
    began, tools = time.perf_counter(), Instruments.of(minilm())
    for work in (
        answer_sets(tools, RESULTS, opened),
        search_pools(tools, RESULTS / "searches.jsonl.gz", opened),
        draw_edges(tools, RESULTS / "edges.jsonl.gz", opened),
    ):
        for done in work:
            print(f"{time.perf_counter() - began:5.0f} s  {done}", flush=True)
    map_words(tools, RESULTS / "mappings.jsonl.gz", opened)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--open", action="store_true", help="evaluate the test parts too, and keep the results"
    )
    parser.add_argument(
        "--table", action="store_true", help="derive the tables from the results, without a model"
    )
    wanted = parser.parse_args()
    if not wanted.table:
        measure(wanted.open)
    found = list(structure_grids(RESULTS))
    for grid in found:
        print(grid.text, end="\n\n")
    figures = json.dumps(lesson_figures(RESULTS), indent=1, ensure_ascii=False)
    (RESULTS / "lesson.json").write_text(f"{figures}\n", encoding="utf-8")
    (RESULTS / "report.md").write_text("\n\n".join(grid.markdown for grid in found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
