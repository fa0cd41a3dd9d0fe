"""Fix, once and before any prompt was written, which HotpotQA questions serve what.

locked: 40 questions by hash, opened once by the retrieval benchmark; test: 30 by seed, for the loop benchmark;
develop: the other 30, the only ones prompts may be tuned on. Run it again and the file is the same.
"""

import gzip
import hashlib
import json
import random
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "data" / "hotpotqa-train-100"
SEED = 20261121


def split() -> dict[str, list[str]]:
    """The three disjoint lists of question ids."""
    with gzip.open(FOLDER / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        ids = [json.loads(line)["_id"] for line in lines]
    by_hash = sorted(ids, key=lambda id: hashlib.sha256(id.encode()).hexdigest())
    locked, rest = by_hash[:40], by_hash[40:]
    random.Random(SEED).shuffle(rest)
    return {"locked": locked, "test": rest[:30], "develop": rest[30:]}


if __name__ == "__main__":
    (FOLDER / "split.json").write_text(json.dumps({"seed": SEED, **split()}, indent=1) + "\n")
