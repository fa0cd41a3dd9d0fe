"""What do hubs without a text cost retrieval, and what does walking through them give? Writes
benchmarks/results/pass_through.json.

Decided before the first run: the walk starts at 5 hits; the primary measure is recall@10, hits first,
pass-through against the original retrieval (neighbours without a text are dropped), on the title graphs whose
10 % busiest passages lost their text; the three data sets are one family (Holm). Everything else in the file
is there to explain. Dev questions only; gold passages that lost their text cannot be found by anyone:
they are counted, and left out of the recall.

Two graphs, both from kgot_lab.retrieval.entity_linking. "titles": passages, with an edge where one mentions the title
of another; the busiest lose their text. "phrases" (MuSiQue): passages, the phrases of the triples a language
model took from them, and the triples; a phrase never has a text, so nothing has to be taken away. Control:
the same hubs with as many edges, but to passages drawn at random (five times, averaged).

Added after the first run, and so exploratory: "by similarity", which orders what was reached without looking
at convergence, and every row of recall@20. The first run had graphs of its own; it was repeated once the
package could build them (there the longest title wins, and phrases are linked to each other), with the plan
as it stood. No interval of a primary comparison lay above zero in either.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.pass_through.measuring import measure_pass_through, pass_through_result
from benchmarks.recall.figures import json_lines
from benchmarks.requirements import require_embeddings

RESULT = Path(__file__).parents[1] / "results" / "pass_through.json"


def main() -> None:
    """Measure or only derive, keep, and print the comparisons decided on beforehand."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="derive the numbers again from the values of the questions, without a model",
    )
    if parser.parse_args().table:
        known = json.loads(RESULT.read_text(encoding="utf-8"))
        rows, graphs = known["systems"], known["graphs"]
    else:
        require_embeddings()
        began = time.perf_counter()
        rows, graphs = measure_pass_through(
            lambda said: print(f"{time.perf_counter() - began:5.0f} s  {said}", flush=True)
        )
    result = pass_through_result(rows, graphs)
    RESULT.write_text(json_lines(result), encoding="utf-8")
    for gap in result["primary"]:
        print(gap)


if __name__ == "__main__":
    main()
