"""Does a graph of the local model's triples lead to the passages that a question needs, as one of GPT-3.5's does, or names found by rule?

python benchmarks/model_triples.py            reads what is not read yet (25 s a passage on one core), then measures; stop it at any time
python benchmarks/model_triples.py --model ollama:llama3.1      has another model read, whose triples get tables of their own
python benchmarks/model_triples.py --table    the table from what was read, without the model

Questions of musique in the order of a hash; each brings its relevant passages and the first ten of convex fusion to one pool, which all
systems search, and counts once all passages up to its own have been read. Nothing is tuned. Triples of a passage are kept in
results/model_triples/triples.jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgot_lab.cli.needs import need_local_model
from kgot_lab.cli.terminal import bar
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.tables import Grid
from kgot_lab.experiments.experts.replies import add_line, whole_lines
from kgot_lab.experiments.recall.model_triples import Brought, ReadPool, pools, triples_grids, triples_read
from kgot_lab.llm import connect
from kgot_lab.types import Document, Json
from kgot_lab.writing import write_whole

FOLDER = Path(__file__).parent / "results" / "model_triples"
RESULT = FOLDER / "triples.jsonl"


def main() -> None:
    """Read, or only tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100, help="how many questions the pool is to have")
    parser.add_argument("--table", action="store_true", help="the table from what was read, without the model")
    parser.add_argument("--model", default="local", help="the model that reads, named as for kgot-lab ask; by default the local one")
    wanted = parser.parse_args()
    rows = whole_lines(RESULT, dict)
    if wanted.table and not rows:
        parser.error(f"there is nothing in {RESULT.name} yet; run it without --table")
    brought = pools(minilm())
    try:
        if not wanted.table:
            read(rows, [document for _, some in brought[: wanted.questions] for document in some], wanted.model)
    finally:  # what a stop leaves is told as well
        tell(rows, brought)


def tell(rows: Sequence[Mapping[str, Json]], brought: Brought) -> None:
    """Print the tables of each model, and keep them."""
    grids: list[Grid] = []
    for model in dict.fromkeys(str(row["model"]) for row in rows):
        try:
            grids += triples_grids(ReadPool.of([row for row in rows if row["model"] == model], brought), minilm())
        except BadInput as error:
            print(f"{model}: {error}")
    if grids:
        told = "\n\n".join(["# Links by a local model's triples", *(grid.markdown for grid in grids)]) + "\n"
        write_whole(FOLDER / "summary.md", told, "the summary")
        print("\n\n".join(grid.text for grid in grids))


def read(rows: list[dict[str, Json]], documents: Sequence[Document], named: str) -> None:
    """Add what is missing to the rows, and keep each on file."""
    if named == "local":
        need_local_model()
    model = connect(named)
    kept = {str(row["passage"]) for row in rows if row["model"] == model.name}
    with bar("reading") as progress:
        for number, row in enumerate(triples_read(model, documents, kept), 1 + len(kept)):
            rows.append(row)
            add_line(RESULT, row)
            progress(number, len(documents), "passages")


if __name__ == "__main__":
    main()
