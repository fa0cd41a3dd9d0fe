"""Do delta edges help a walk over a graph of stories to find analogies? Writes
benchmarks/results/delta_recall.json.

Decided before the first run. Graph: the texts of a set (storyanalogy-mc: sources and choices; parallelparc:
sources and targets of the human-checked pairs; analobench: the sentences), and, as bare hubs, the nouns that
2 to 10 of them share. Hubs and not direct edges, because two texts that share two rare nouns are then joined
in two ways, which the walk counts. A query is the source of an analogy, relevant are its analogues
(analobench: the sentences of its cluster); its own node is in the graph and opens the walk, but is dropped
from the ranking, and so are texts of which nobody said whether they are analogous to it. "traverse": 5 hits
by meaning, then what one walks to from them through the nouns, hits and walked taking turns, the rest by
meaning. "traverse + delta": the same, with structural_isomorphism edges walked as well: at the specified
thresholds and at thresholds calibrated on the dev pairs of the set (F1 at the share of analogous pairs
that the set has), each with and without a verifier that may veto. Controls: the same delta edges with their
targets in another order (five times, averaged), as many `similarity` edges (the texts most alike), and the
edges found with the skeletons of other texts of like length. Primary: recall@10, "traverse + delta,
calibrated, verified" against "traverse", the three sets one family (Holm). All else explains. "ceiling" walks
the analogous pairs themselves, and shows what room there is for edges.

Added after the first run on dev queries, and so exploratory: comparisons with "entry only", because the
nouns turned out to do harm on all three sets; "delta alone", a walk without the nouns; and similarity edges
that the verifier let stand. The control with skeletons of others had kept the calibrated thresholds, and with
them fewer edges (a tenth to two thirds); it now has as many, found by lowering the threshold of the
skeletons. The thresholds are calibrated on the pairs that dev queries ask for, which flatters; the test
part tells.

Dev queries only, unless --open: then the test ones too, apart. Texts of the test part stand in the
graph, as in any search; nothing is chosen on them. A set that is finished is kept in delta_recall.partial, so
an interrupted run goes on with the next.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.delta.walks import delta_result, delta_table, measure_delta_recall
from benchmarks.recall.figures import json_lines
from benchmarks.requirements import require_skeletons

RESULT = Path(__file__).parents[1] / "results" / "delta_recall.json"
PARTIAL = RESULT.with_suffix(".partial")


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="derive the numbers again from the values of the queries, without a model",
    )
    parser.add_argument("--open", action="store_true", help="evaluate the test queries too: once, at the end")
    wanted = parser.parse_args()
    if wanted.table:
        known = json.loads(RESULT.read_text(encoding="utf-8"))
        rows, graphs = known["systems"], known["graphs"]
    else:
        require_skeletons()
        began, parts = time.perf_counter(), ["develop", *(["locked"] if wanted.open else [])]
        rows, graphs = measure_delta_recall(
            parts, PARTIAL, lambda said: print(f"{time.perf_counter() - began:5.0f} s  {said}", flush=True)
        )
    result = delta_result(rows, graphs)
    RESULT.write_text(json_lines(result), encoding="utf-8")
    PARTIAL.unlink(missing_ok=True)
    print(delta_table(result))


if __name__ == "__main__":
    main()
