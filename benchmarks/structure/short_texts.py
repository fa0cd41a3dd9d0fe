"""How many delta edges are false alarms, by how much the texts tell? Writes
benchmarks/results/transfer/short_texts.jsonl and .md.

At the specified thresholds (.45 and .08), with the bundled embedder and skeletons by the parser:
- pairs of unrelated texts, drawn at random from the texts of three sets and from their single sentences, both
with as many words left of
  the skeleton (or as long): the share that gets an edge, on dev and on test texts;
- twelve unrelated texts, many times: how many of their 66 pairs get an edge;
- for each set and part the share of analogous pairs, and of others, that gets an edge in each band. The means
of the dev parts stand
  in kgot_lab/analogy/expected_precision.py, by which a user is told how many edges to expect right; the
  test parts tell how far that holds.

Chosen on dev texts: an edge takes skeletons of three words or more beside "something"; of one or two
words a third and a quarter of the sentences at random get one. The random pairs are drawn before that refusal.
`--table` derives the tables from the result, without a model.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.requirements import require_skeletons
from benchmarks.structure.alarm_tables import (
    alarm_grid,
    kept_alarms,
    measured_shares,
    precision_grid,
    twelve_grid,
)
from benchmarks.structure.false_alarms import analogous, unrelated
from benchmarks.structure.instruments import Instruments
from kgot_lab.embedding.vectors import minilm

ROWS = Path(__file__).parents[1] / "results" / "transfer" / "short_texts.jsonl"


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table", action="store_true", help="derive the tables from the result, without a model"
    )
    if not parser.parse_args().table:
        require_skeletons()
        tools, rows, began = Instruments.of(minilm()), [], time.perf_counter()
        for work in (analogous(tools), unrelated(tools)):
            for row in work:
                rows.append(json.dumps(row) + "\n")
                print(f"{time.perf_counter() - began:5.0f} s  {len(rows)} rows", flush=True)
        ROWS.write_text("".join(rows), encoding="utf-8")
    rows_kept = kept_alarms(ROWS)
    grids = [twelve_grid(rows_kept), alarm_grid(rows_kept), precision_grid(rows_kept)]
    for grid in grids:
        print(grid.text, end="\n\n")
    for verified, shares in measured_shares(rows_kept).items():
        print(
            f"for kgot_lab/analogy/expected_precision.py, {'with' if verified else 'without'} a verifier: {shares}"
        )
    ROWS.with_suffix(".md").write_text("\n\n".join(grid.markdown for grid in grids) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
