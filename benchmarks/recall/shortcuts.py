"""What the default search loses by the shortcuts of large collections, on the dev split of a bundled set.

python -m benchmarks.recall.shortcuts musique  # 5,966 passages; embedding them takes minutes

The limits from which the shortcuts are taken are set below the size of the set, and what they keep is set to
the same share of it as of 200,000 passages, or a little more. Writes benchmarks/results/shortcuts.json.
"""

import argparse
import json
from pathlib import Path
from unittest import mock

import numpy as np

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.embedders import embedder
from kgot_lab.retrieval import dense
from kgot_lab.retrieval.multihop import retriever

RESULTS = Path(__file__).parents[1] / "results" / "shortcuts.json"
ALWAYS = 100  # passages: below the size of every set
WAYS = {  # whether few passages are compared by the learned weights, and what is kept of each of the two searches
    "all compared": (False, None),
    "few re-ranked": (True, None),
    "few re-ranked, 1,000 kept": (True, 1_000),
    "few re-ranked, 300 kept": (True, 300),
}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    name = parser.parse_args().dataset
    dataset = load_dataset(name)
    minilm = embedder("all-minilm")
    reranked = retriever.multihop(dataset.documents, minilm)
    queries = [query for query in dataset.queries if query.id not in dataset.test_ids]
    recall = {}
    for way, (few, kept) in WAYS.items():
        count = len(dataset.documents)
        large = ALWAYS if kept else count + 1
        with (
            mock.patch.multiple(
                retriever, POOL_ABOVE=ALWAYS if few else count, SIGN_BITS_FROM=large, _KEPT=kept
            ),
            mock.patch.multiple(dense, SIGN_BITS_FROM=large, _CANDIDATES=kept),
        ):
            search = retriever.convex_hybrid(dataset.documents, minilm) >> reranked
            found = [set(search.search(query).ids[:5]) for query in queries]
        wanted = [{id for id, grade in dataset.qrels[query.id].items() if grade > 0} for query in queries]
        hits = [len(ids & right) / len(right) for ids, right in zip(found, wanted, strict=True)]
        recall[way] = round(float(np.mean(hits)), 4)
        print(f"{name}, {len(queries)} dev questions, {way}: recall@5 {recall[way]:.4f}", flush=True)
    row = {"passages": len(dataset.documents), "questions": len(queries), "recall@5": recall}
    kept_rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**kept_rows, name: row}, indent=1) + "\n")


if __name__ == "__main__":
    main()
