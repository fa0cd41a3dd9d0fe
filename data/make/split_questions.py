"""Fix, before anything was designed on them, which bundled questions serve what.

"locked" is the test split: 40 questions of each set, the first by hash of their id, evaluated once by the
retrieval benchmark. The rest ("develop") is the dev split. Of HotpotQA's rest, 30 drawn by seed are also the test questions of the loop
benchmark, so prompts may be tuned on the other 30 only. Of the analogy sets about a third is held out, in whole
groups, so that no cluster, subject or pair of systems stands on both sides; a test item that shares a text
or a subject with a dev one is not held out. Of the sets of the question benchmark 150 questions each
are drawn by another seed and held out, in the order in which they are asked: of 2wiki none that shares a gold
passage with the first 101, which were used before; of musique-498 as many of each number of hops, in turn.
For the retrieval benchmark both are cut in another way ("search"): by hash a third of the groups for the dev
split, a group being all questions that share a gold passage, or a step, and, of 2wiki, the groups of the first
101 too; the others are held out. Run it again and the files are the same.
"""

import argparse
import csv
import gzip
import hashlib
import json
import random
from collections.abc import Mapping
from pathlib import Path

from kgot_lab.evaluation.dataset import connected_components, musique_steps

DATA = Path(__file__).parent.parent
TEST = 40
SEED = 20261121
DRAWN, DRAW_SEED = 150, 20261123  # of the sets of the question benchmark
USED = 101  # questions of 2wiki, the first, that were used before


def by_hash(folder: str) -> list[str]:
    """The question ids of a data folder in the order of their SHA-256."""
    with gzip.open(DATA / folder / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        ids = [json.loads(line)["_id"] for line in lines]
    return sorted(ids, key=lambda id: hashlib.sha256(id.encode()).hexdigest())


def two_parts(folder: str) -> dict[str, list[str]]:
    """Test questions, and those to develop on."""
    ids = by_hash(folder)
    return {"locked": ids[:TEST], "develop": ids[TEST:]}


def three_parts(folder: str) -> dict[str, list[str]]:
    """The same, with 30 of the questions to develop on drawn by seed for testing the loop."""
    parts = two_parts(folder)
    rest = parts["develop"]
    random.Random(SEED).shuffle(rest)
    return {"locked": parts["locked"], "test": rest[:30], "develop": rest[30:]}


def drawn_apart() -> dict[str, list[str]]:
    """Of 2wiki: questions drawn by seed, the others that share no gold passage with those used before, and
    those to develop on.
    """
    gold: dict[str, set[str]] = {}
    for line in (DATA / "2wiki-1000" / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, _ = line.split("\t")
        gold.setdefault(question, set()).add(document)
    ids = [row["_id"] for row in lines("2wiki-1000/queries.jsonl.gz")]
    used = [id for id in ids if int(id[1:]) < USED]
    known = set().union(*(gold[id] for id in used))
    rest = [id for id in ids if not gold[id] & known]
    random.Random(DRAW_SEED).shuffle(rest)
    develop = two_parts("2wiki-fastgraphrag-101")["develop"]
    return {
        "locked": rest[:DRAWN],
        "test": sorted(rest[DRAWN:]),
        "develop": [id for id in ids if id in set(develop)],
    }


def drawn_by_hops() -> dict[str, list[str]]:
    """Of musique-498: as many of each number of hops, drawn by seed and put in turn, and the others; none is
    to develop on.
    """
    by_hops: dict[str, list[str]] = {}
    for row in lines("musique-498/queries.jsonl.gz"):
        by_hops.setdefault(str(row["hops"]), []).append(row["_id"])
    draw = random.Random(DRAW_SEED)
    for hops in sorted(by_hops):
        draw.shuffle(by_hops[hops])
    drawn = [id for turn in zip(*(by_hops[hops] for hops in sorted(by_hops)), strict=True) for id in turn]
    return {"locked": drawn[:DRAWN], "test": sorted(drawn[DRAWN:])}


def cut_for_search() -> dict[str, dict[str, list[str]]]:
    """Of 2wiki and musique-498: the questions that retrieval is developed on, and those it opens last, in
    whole groups.
    """
    shares = {
        folder: {row["_id"]: sorted(set(of(row))) for row in lines(f"{folder}/queries.jsonl.gz")}
        for folder, of in (
            ("2wiki-1000", lambda row: row["gold_titles"]),
            ("musique-498", lambda row: musique_steps(row["_id"])),
        )
    }
    cut = {}
    for folder, held in shares.items():
        group_of = connected_components(held)
        used = {group_of[id] for id in held if folder == "2wiki-1000" and int(id[1:]) < USED}
        rest = {id: group for id, group in group_of.items() if group not in used}
        parts = {"develop": [id for id in held if id not in rest], "locked": []}
        thirds = sorted(
            set(rest.values()), key=lambda group: hashlib.sha256(f"search {group}".encode()).hexdigest()
        )
        open_ = set(thirds[: len(thirds) // 3])
        for id, group in rest.items():
            parts["develop" if group in open_ else "locked"].append(id)
        cut[folder] = {f"search {name}": sorted(ids) for name, ids in parts.items()}
    return cut


def lines(path: str) -> list[dict[str, str]]:
    with gzip.open(DATA / path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def grouped(group_of: Mapping[str, str]) -> dict[str, list[str]]:
    """A third of the groups held out, the first by hash of their name, with all that is in them."""
    groups = sorted(set(group_of.values()), key=lambda group: hashlib.sha256(group.encode()).hexdigest())
    locked = set(groups[: len(groups) // 3])
    parts: dict[str, list[str]] = {"locked": [], "develop": []}
    for id, group in group_of.items():
        parts["locked" if group in locked else "develop"].append(id)
    return parts


def apart(parts: dict[str, list[str]], shared: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """The same parts, but a locked item that shares something with an item to develop on goes there."""
    known = set().union(*(shared[id] for id in parts["develop"]))
    seen = {id for id in parts["locked"] if shared[id] & known}
    if not seen:
        return parts
    return apart(
        {
            "locked": [id for id in parts["locked"] if id not in seen],
            "develop": [*parts["develop"], *sorted(seen)],
        },
        shared,
    )


def shared() -> dict[str, Mapping[str, frozenset[str]]]:
    """What two items must not share across the split, beyond their group: the pair of stories, the subjects."""
    stories = lines("storyanalogy-mc/mc.jsonl.gz")
    processes = [*lines("parallelparc/gold.jsonl.gz"), *lines("parallelparc/silver.jsonl.gz")]
    return {
        "storyanalogy-mc": {
            row["_id"]: frozenset((row["source"], row["choices"][int(row["answer"])])) for row in stories
        },
        "parallelparc": {
            row["_id"]: frozenset((row["source_subject"], row["target_subject"])) for row in processes
        },
    }


def analogies() -> dict[str, Mapping[str, str]]:
    """For each analogy set, which group each item is in: itself, its cluster, its source subject, its pair of
    systems.
    """
    with (DATA / "scan-analogies" / "SCAN_dataset.csv").open(encoding="utf-8") as file:
        pairs = [f"{row['target']} | {row['source']}" for row in csv.DictReader(file)]
    processes = [*lines("parallelparc/gold.jsonl.gz"), *lines("parallelparc/silver.jsonl.gz")]
    return {
        "storyanalogy-mc": {row["_id"]: row["_id"] for row in lines("storyanalogy-mc/mc.jsonl.gz")},
        "analobench": {row["_id"]: str(row["cluster"]) for row in lines("analobench/corpus.jsonl.gz")},
        "parallelparc": {row["_id"]: row["source_subject"] for row in processes},
        "scan-analogies": {pair: pair for pair in pairs},
    }


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    for folder in ("musique-train-100", "2wiki-fastgraphrag-101"):
        (DATA / folder / "split.json").write_text(json.dumps(two_parts(folder), indent=1) + "\n")
    name = "hotpotqa-train-100"
    (DATA / name / "split.json").write_text(json.dumps({"seed": SEED, **three_parts(name)}, indent=1) + "\n")
    for folder, drawn in (("2wiki-1000", drawn_apart()), ("musique-498", drawn_by_hops())):
        (DATA / folder / "split.json").write_text(
            json.dumps({"seed": DRAW_SEED, **drawn, **cut_for_search()[folder]}, indent=1) + "\n"
        )
    for folder, group_of in analogies().items():
        parts = apart(grouped(group_of), shared().get(folder, dict.fromkeys(group_of, frozenset())))
        (DATA / folder / "split.json").write_text(json.dumps(parts, indent=1) + "\n")


if __name__ == "__main__":
    main()
