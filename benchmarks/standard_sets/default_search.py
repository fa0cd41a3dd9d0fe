"""The default search of the product beside its parts, on the test queries of bundled sets and of folders in BEIR format.

python -m benchmarks.standard_sets.default_search SET|FOLDER…   into benchmarks/results/default_search.json
python -m benchmarks.standard_sets.default_search               the tables from there, without a model
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kgot_lab.benchmark.recall.datasets import open_dataset
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.embedding.vectors import InMemoryVectors, minilm
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.files import write_atomically
from kgot_lab.retrieval.multihop.retriever import hybrid_multihop

RESULTS = Path(__file__).parents[1] / "results"
PER_QUERY, SUMMARY = RESULTS / "default_search.json", RESULTS / "default_search.md"
DEFAULT_SEARCH = "default"
SYSTEMS = ("embeddings", BASELINE, "trail", DEFAULT_SEARCH)
MEASURES = ("recall@1", "recall@2", "recall@5")
Values = dict[str, dict[str, list[float]]]  # by system and measure, one number a query in one order


def measure_search(name: str) -> tuple[str, Values, list[str]]:
    """Return the name of a set, the recall of each query by system and measure, and the queries' groups."""
    dataset = open_dataset(name if not Path(name).is_dir() else Path(name))
    asked = [query for query in dataset.queries if not dataset.test_ids or query.id in dataset.test_ids]
    embedder = InMemoryVectors(minilm())
    embedder.add_texts([query.text for query in asked])
    made = systems(dataset, embedder)
    built = {name: made[name]() for name in SYSTEMS if name in made}
    built[DEFAULT_SEARCH] = hybrid_multihop(dataset.documents, embedder)
    values: Values = {}
    for system in SYSTEMS:
        scores = score(run(built[system], asked, keep=5), dataset.qrels, MEASURES)
        values[system] = {
            measure: [round(scores.per_query(measure)[query.id], 4) for query in asked]
            for measure in MEASURES
        }
    return dataset.name, values, [dataset.groups.get(query.id, query.id) for query in asked]


def search_table(found: dict[str, dict[str, object]]) -> Grid:
    """Tabulate the mean recall of each system, and the paired differences of the default to two of them."""
    rows = []
    for name, entry in sorted(found.items()):
        values, groups = entry["values"], entry["groups"]
        for measure in MEASURES:
            means = [sum(values[system][measure]) / len(groups) for system in SYSTEMS]  # type: ignore[index, arg-type]
            cells = [name, str(len(groups)), measure, *map(format_decimal, means)]  # type: ignore[arg-type]
            for other in (BASELINE, "trail"):
                pairs = zip(values[DEFAULT_SEARCH][measure], values[other][measure], strict=True)  # type: ignore[index]
                gap = interval([one - two for one, two in pairs], groups)  # type: ignore[arg-type]
                span = f"{format_signed(gap.low)}, {format_signed(gap.high)}"
                cells.append(f"{format_signed(gap.mean)} [{span}]")
            rows.append(tuple(map(Cell, cells)))
    columns = ("set", "queries", "measure", *SYSTEMS, f"default minus {BASELINE}", "default minus trail")
    return Grid("The default search, test queries", columns, tuple(rows))


def main() -> None:
    """Measure the sets that are named, and write the tables of all that were."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*")
    found = json.loads(PER_QUERY.read_text(encoding="utf-8")) if PER_QUERY.exists() else {}
    for name in parser.parse_args().sets:
        called, values, groups = measure_search(name)
        found[called] = {"values": values, "groups": groups}
        write_atomically(PER_QUERY, json.dumps(found, sort_keys=True) + "\n", "the results")
    table = search_table(found).markdown
    write_atomically(SUMMARY, f"# The default search\n\n{table}\n", "the summary")
    print(table)


if __name__ == "__main__":
    main()
