"""Recall on 2wiki-1000 and musique-498, beside what others published, without titles, and in all bundled
passages together.

python -m benchmarks.standard_sets.standard_sets            into benchmarks/results/standard_sets; what has a
result of the same code is not run again python -m benchmarks.standard_sets.standard_sets --table    the
tables from the results, without a model
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.standard_sets.standard import measure_standard, standard_tables
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.cli.terminal import progress_bar
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.reports import derive_reports
from kgot_lab.io.files import write_atomically

FOLDER = Path(__file__).parents[1] / "results" / "standard_sets"
CROSSED = FOLDER / "crossed.json"  # benchmarks/standard_sets/fit_trail.py --check makes it


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="derive the tables from the results")
    if parser.parse_args().table:
        reports = derive_reports(FOLDER, load_dataset)
    else:
        with progress_bar("standard sets") as progress:
            reports = measure_standard(FOLDER, minilm(), progress)
    crossed = json.loads(CROSSED.read_text(encoding="utf-8")) if CROSSED.exists() else None
    told = (
        "\n\n".join(
            ["# Recall on the standard sets", *(grid.markdown for grid in standard_tables(reports, crossed))]
        )
        + "\n"
    )
    write_atomically(FOLDER / "summary.md", told, "the summary")
    print(told)


if __name__ == "__main__":
    main()
