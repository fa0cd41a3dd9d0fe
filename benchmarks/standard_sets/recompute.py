"""Compute the retrieval results of the standard sets again, from the stored rankings alone: numpy and Python.

python benchmarks/standard_sets/recompute.py

Reads the passages, gold passages and split of data/2wiki-1000 and data/musique-498 and the first ten hits of each
system, and computes recall@5 on the test split, the paired difference of `trail` to three systems, and its interval
over whole groups of questions. Prints them, and ends with an error if a figure is not the one in summary.md.
Then recall@5 on musique-498-mixed (14,923 passages) with the hops weighted as in the whole dev split of MuSiQue.
"""

import gzip
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks.graph_pays.recompute import interval  # noqa: E402  (numpy only, as this file)

RESULTS = ROOT / "benchmarks/results/standard_sets"
SETS = {"2wiki-1000": "2wiki-fastgraphrag-101", "musique-498": "musique-498"}
OTHERS = {
    "convex": "convex",
    "follow-sentences": "follow, sentences",
    "control-trail-no-links": "control: trail, no links",
}
ROUNDS, SEED = 10_000, 0
HOPS = {
    "2": 1252,
    "3": 760,
    "4": 405,
}  # questions of MuSiQue-Answerable's dev split by hops (Trivedi et al. 2022)


def read_lines(path):
    """Read gzipped JSON lines."""
    return [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8") if line.strip()]


def read_gold(name):
    """Read the gold passages of each test question by the hash of their content, and the group of each question."""
    hashes = {}
    for row in read_lines(ROOT / "data" / SETS[name] / "corpus.jsonl.gz"):
        digest = hashlib.sha256(f"{row['title']}\n{row['text']}".encode()).hexdigest()
        hashes[row["_id"]] = digest[:8]
    gold, shared = {}, {}
    for line in (ROOT / "data" / name / "qrels.tsv").read_text().splitlines()[1:]:
        query, passage, _ = line.split("\t")
        gold.setdefault(query, set()).add(hashes[passage])
        parts = query.partition("__")[2].split("_") if name == "musique-498" else [passage]
        shared.setdefault(query, set()).update(parts)
    groups = group(shared)
    split = json.loads((ROOT / "data" / name / "split.json").read_text())
    return {query: gold[query] for query in gold if query in set(split["search locked"])}, groups


def group(shared):
    """Return the group of each question: those that share a part, directly or through others, are together."""
    parent = {}

    def root(part):
        while parent.setdefault(part, part) != part:
            part = parent[part]
        return part

    for parts in shared.values():
        first, *rest = sorted(parts)
        for part in rest:
            parent[root(part)] = root(first)
    return {query: root(min(parts)) for query, parts in shared.items()}


def recalls(folder, system, gold):
    """Return recall@5 of each test question, in the order of `gold`."""
    rows = [row for row in read_lines(folder / f"{system}.jsonl.gz") if "query" in row]
    first = {row["query"]: {id.removeprefix("p") for id in row["ids"][:5]} for row in rows}
    return np.array([len(found & first[query]) / len(found) for query, found in gold.items()])


def print_own_mixture():
    """Print the mean of each system with the hops weighted by HOPS, and its percentile interval over groups."""
    gold, groups = read_gold("musique-498")
    hops = np.array([query[0] for query in gold])
    weights = sum((hops == hop) * count / (hops == hop).sum() for hop, count in HOPS.items())
    names = {each: number for number, each in enumerate(dict.fromkeys(groups[query] for query in gold))}
    own = np.array([names[groups[query]] for query in gold])
    drawn = np.random.default_rng(SEED).integers(0, len(names), (ROUNDS, len(names)))
    for system in ("trail", *OTHERS):
        values = recalls(RESULTS / "musique-498-mixed", system, gold)
        sums, sizes = np.bincount(own, weights * values), np.bincount(own, weights)
        low, high = np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), (0.025, 0.975))
        by_hops = " ".join(f"{values[hops == hop].mean():.3f}" for hop in HOPS)
        print(
            f"own mixture of hops, {system}: {sums.sum() / sizes.sum():.3f} [{low:.3f}, {high:.3f}]; by hops {by_hops}"
        )


def main():
    """Print the figures, and end with an error if one differs."""
    summary = (RESULTS / "summary.md").read_text("utf-8").replace("\\", "").replace("**", "")
    wrong, count = [], 0
    for name in SETS:
        gold, groups = read_gold(name)
        own = [groups[query] for query in gold]
        for variant in ("", "-untitled", "-mixed"):
            folder = RESULTS / f"{name}{variant}"
            ours = recalls(folder, "trail", gold)
            print(f"{folder.name}: trail {ours.mean():.3f} on {len(ours)} questions")
            for system, title in OTHERS.items():
                span = interval(list(ours - recalls(folder, system, gold)), own, ROUNDS, SEED)
                mean, low, high = (f"{value:+.3f}".replace("0.", ".").replace("-", "−") for value in span)
                row = f"| {folder.name} | recall@5 | {title} | {mean} | {low} to {high} |".replace(
                    "+.000", ".000"
                )
                print(row)
                count += 1
                wrong += [row] * (row not in summary)
    print_own_mixture()
    print(f"{count} differences computed;", "not in summary.md:" if wrong else "all are those of summary.md")
    print(*wrong, sep="\n", end="")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
