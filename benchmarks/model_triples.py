"""Does a graph of the local model's triples lead to the passages that a question needs, as one of GPT-3.5's
does, or names found by rule?

python benchmarks/model_triples.py            reads what is not read yet (25 s a passage on one core), then
measures; stop it at any time python benchmarks/model_triples.py --model ollama:llama3.1      has another
model read, whose triples get tables of their own python benchmarks/model_triples.py --table    the tables
from the receipts, without a model

Questions of musique in the order of a hash; each brings its relevant passages and the first ten of convex
fusion to one pool, which all systems search, and counts once all passages up to its own have been read.
Nothing is tuned. In results/model_triples, triples.jsonl has the triples of each passage, measured.json
recall@5 of each question.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kgot_lab.cli.requirements import need_files, need_local_model
from kgot_lab.cli.terminal import bar
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.tables import Grid
from kgot_lab.experiments.experts.replies import add_line, whole_lines
from kgot_lab.experiments.recall.model_triples import (
    Brought,
    ReadPool,
    pools,
    questions_in,
    triples_grids,
    triples_measured,
    triples_read,
)
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.llm import connect
from kgot_lab.types import Document, Json

FOLDER = Path(__file__).parent / "results" / "model_triples"
TRIPLES, MEASURED = FOLDER / "triples.jsonl", FOLDER / "measured.json"


def main() -> None:
    """Read, or only tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=100, help="how many questions the pool is to have")
    parser.add_argument("--table", action="store_true", help="the tables from the receipts, without a model")
    parser.add_argument(
        "--model",
        default="local",
        help="the model that reads, named as for kgot-lab ask; by default the local one",
    )
    wanted = parser.parse_args()
    rows = whole_lines(TRIPLES, dict)
    brought = pools(minilm())
    if not wanted.table:
        try:
            read(
                rows, [document for _, some in brought[: wanted.questions] for document in some], wanted.model
            )
        finally:  # what a stop leaves is measured as well
            measure(rows, brought)
    need_files("python benchmarks/model_triples.py makes it", TRIPLES, MEASURED)
    tell(rows, brought)


def read(rows: list[dict[str, Json]], documents: Sequence[Document], named: str) -> None:
    """Add what is missing to the rows, and keep each on file."""
    if named == "local":
        need_local_model()
    model = connect(named)
    kept = {str(row["passage"]) for row in rows if row["model"] == model.name}
    with bar("reading") as progress:
        for number, row in enumerate(triples_read(model, documents, kept), 1 + len(kept)):
            rows.append(row)
            add_line(TRIPLES, row)
            progress(number, len(documents), "passages")


def measure(rows: Sequence[Mapping[str, Json]], brought: Brought) -> None:
    """What the triples of each model find, into a file; a model that has not read enough yet is left out."""
    found = {}
    for model in dict.fromkeys(str(row["model"]) for row in rows):
        try:
            found[model] = triples_measured(pool_of(model, rows, brought), minilm())
        except BadInput as error:
            print(f"{model}: {error}")
    if found:
        write_whole(MEASURED, json.dumps(found) + "\n", "what was measured")


def tell(rows: Sequence[Mapping[str, Json]], brought: Brought) -> None:
    """Print the tables of each model that was measured, and keep them."""
    grids: list[Grid] = []
    for model, found in json.loads(MEASURED.read_text(encoding="utf-8")).items():
        grids += triples_grids(pool_of(model, rows, brought[: len(questions_in(found))]), found)
    told = "\n\n".join(["# Links by a language model's triples", *(grid.markdown for grid in grids)]) + "\n"
    write_whole(FOLDER / "summary.md", told, "the summary")
    print("\n\n".join(grid.text for grid in grids))


def pool_of(model: str, rows: Sequence[Mapping[str, Json]], brought: Brought) -> ReadPool:
    """What a model has read of the pool; raises BadInput where that is too little."""
    return ReadPool.of([row for row in rows if row["model"] == model], brought)


if __name__ == "__main__":
    main()
