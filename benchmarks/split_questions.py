"""Fix, before anything was designed on them, which bundled questions serve what.

locked: 40 questions of each set, the first by hash of their id; the retrieval benchmark opens them once. The rest is for developing.
Of HotpotQA's rest, 30 drawn by seed are also the test questions of the loop benchmark, so prompts may be tuned on the other 30 only.
Run it again and the files are the same.
"""

import gzip
import hashlib
import json
import random
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
LOCKED = 40
SEED = 20261121


def by_hash(folder: str) -> list[str]:
    """The question ids of a data folder in the order of their SHA-256."""
    with gzip.open(DATA / folder / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        ids = [json.loads(line)["_id"] for line in lines]
    return sorted(ids, key=lambda id: hashlib.sha256(id.encode()).hexdigest())


def two_parts(folder: str) -> dict[str, list[str]]:
    """Locked questions, and those to develop on."""
    ids = by_hash(folder)
    return {"locked": ids[:LOCKED], "develop": ids[LOCKED:]}


def three_parts(folder: str) -> dict[str, list[str]]:
    """The same, with 30 of the questions to develop on drawn by seed for testing the loop."""
    parts = two_parts(folder)
    rest = parts["develop"]
    random.Random(SEED).shuffle(rest)
    return {"locked": parts["locked"], "test": rest[:30], "develop": rest[30:]}


if __name__ == "__main__":
    for folder in ("musique-train-100", "2wiki-fastgraphrag-101"):
        (DATA / folder / "split.json").write_text(json.dumps(two_parts(folder), indent=1) + "\n")
    name = "hotpotqa-train-100"
    (DATA / name / "split.json").write_text(json.dumps({"seed": SEED, **three_parts(name)}, indent=1) + "\n")
