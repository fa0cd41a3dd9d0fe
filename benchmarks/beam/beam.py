"""Which turns of a long chat does a question need? The memory beside BM25, embeddings and their fusions on
BEAM, into results/beam.

python -m benchmarks.beam.beam --beam DIR             # the open chats: results, tables, report.md python
benchmarks/beam/beam.py --beam DIR --test    # the test chats, once: what ranks is not changed afterwards
python -m benchmarks.beam.beam --table                # the tables again from the results, without the chats
and without a model

DIR holds chats.jsonl.gz and questions.jsonl.gz. The chats stay there: results hold the ids of questions and
turns, and scores. Embedding some five thousand messages takes minutes, once; vectors are kept in the user's
cache, or in the folder that --vectors names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.requirements import require_embeddings, require_or_exit
from kgot_lab.cli.terminal import progress_bar
from kgot_lab.errors import LabError

RESULTS = Path(__file__).parents[1] / "results" / "beam"


def measure(data: Path, vectors: Path | None, results: Path, *, held_out: bool) -> None:
    """Measure the open chats or the test ones into results."""
    from benchmarks.beam.chats import data_digest, read_chats
    from benchmarks.beam.measuring import measure_chats, plan_of_chats
    from kgot_lab.embedding.pretrained import MiniLM
    from kgot_lab.embedding.vectors import CachedEmbedder

    chats = read_chats(data)
    require_embeddings()
    embedder = CachedEmbedder(MiniLM(), vectors)
    with progress_bar("chats") as progress:
        measure_chats(
            results,
            chats,
            embedder,
            plan_of_chats(data_digest(data), embedder),
            held_out=held_out,
            progress=progress,
        )


def main() -> None:
    """Measure, or only derive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beam", type=Path, metavar="DIR", help="the folder with the chats and questions")
    parser.add_argument(
        "--test", action="store_true", help="evaluate the test chats; a second time only by the same plan"
    )
    parser.add_argument(
        "--table", action="store_true", help="derive the tables from the results, without measuring"
    )
    parser.add_argument(
        "--vectors", type=Path, metavar="DIR", help="where vectors are kept (default: the user's cache)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results and report go")
    wanted = parser.parse_args()
    require_or_exit(
        wanted.table or wanted.beam, "name the folder of the chats: python -m benchmarks.beam.beam --beam DIR"
    )
    try:
        if not wanted.table:
            measure(wanted.beam, wanted.vectors, wanted.results, held_out=wanted.test)
        from benchmarks.beam.results import chat_grids, chat_report

        grids = chat_grids(wanted.results)
    except LabError as error:
        require_or_exit(False, " ".join(str(error).split()))
    for grid in grids:
        print(grid.text, end="\n\n")
    (wanted.results / "report.md").write_text(chat_report(grids) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
