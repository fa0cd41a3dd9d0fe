"""The systems of the standard sets with another embedder, and a trail learnt anew with it, beside the bundled
MiniLM.

python -m benchmarks.standard_sets.embedders --table    the tables of the results into
results/embedders/summary.md

The code that learnt and measured stands at commit f449c983.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.standard_sets.other_embedders import embedder_tables
from kgot_lab.io.files import write_atomically

FOLDER = Path(__file__).parents[1] / "results" / "embedders"


def main() -> None:
    """Derive the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="derive the tables, as without it")
    parser.parse_args()
    grids = [grid.markdown for grid in embedder_tables(FOLDER)]
    told = "\n\n".join(["# Other embedders on the standard sets", *grids]) + "\n"
    write_atomically(FOLDER / "summary.md", told, "the summary")
    print(told)


if __name__ == "__main__":
    main()
