"""The systems of the standard sets with another embedder, and a trail learnt anew with it, beside the bundled
MiniLM.

python -m benchmarks.standard_sets.embedders --embedder minilm                what the others are compared
with python benchmarks/standard_sets/embedders.py --embedder FOLDER_OR_NAME        as `kgot-lab bench
--embedder` takes it; a folder holds a model of
                                                                sentence-transformers (docs/recall.md says
                                                                where to have one from)
python -m benchmarks.standard_sets.embedders --embedder NAME --learn          a trail learnt anew with it
first, on the develop questions of all sets python -m benchmarks.standard_sets.embedders --embedder NAME
--learn musique-498 musique-498-steps        on those of some sets alone python -m
benchmarks.standard_sets.embedders --table the tables from the receipts, without a model

Each text is embedded once and kept in the user's cache: 28,000 texts of musique-498, as many of 2wiki-1000,
137,000 to learn on all.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.standard_sets.other_embedders import (
    EMBEDDER_SETS,
    EMBEDDER_SYSTEMS,
    embedder_tables,
    learn_anew,
    measure_embedder,
)
from kgot_lab.cli.terminal import bar
from kgot_lab.io.atomic_write import write_whole

FOLDER = Path(__file__).parents[1] / "results" / "embedders"


def main() -> None:
    """Learn, measure, or only derive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--embedder", metavar="FOLDER_OR_NAME", help="the embedder to measure")
    what.add_argument("--table", action="store_true", help="derive the tables from the receipts")
    parser.add_argument(
        "--learn", nargs="*", metavar="SET", help="learn a trail with it before, on all sets or on these"
    )
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", default=EMBEDDER_SETS, help="the data sets to measure on"
    )
    parser.add_argument(
        "--systems", nargs="+", metavar="SYSTEM", default=EMBEDDER_SYSTEMS, help="the systems to measure"
    )
    wanted = parser.parse_args()
    if not wanted.table:
        from kgot_lab.embedding.model_names import embedder_named

        embedder = embedder_named(wanted.embedder)
        if wanted.learn is not None:
            with bar("learning") as progress:
                learn_anew(FOLDER, embedder, wanted.learn, progress)
        with bar("measuring") as progress:
            measure_embedder(FOLDER, embedder, progress, names=wanted.sets, chosen=wanted.systems)
    told = (
        "\n\n".join(
            ["# Other embedders on the standard sets", *(grid.markdown for grid in embedder_tables(FOLDER))]
        )
        + "\n"
    )
    write_whole(FOLDER / "summary.md", told, "the summary")
    print(told)


if __name__ == "__main__":
    main()
