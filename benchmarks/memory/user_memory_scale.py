"""A memory of 100,000 sentences, each with a fact: how long learning, look-up, counting, adding and recall take.

Learning is compared with SQLite alone, which keeps the same facts with their sources in one table with three
indexes, and checks, dates and undoes nothing. Medians of processor time, as other programs share the machine.
The sentences are made from a seed; their vectors are drawn at random, since only their number counts here.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.sentences import SAID
from kgot_lab.memory.user_memory import Memory, open_memory
from kgot_lab.types import Triple

REPORT = Path(__file__).parents[1] / "results" / "user_memory" / "scale.json"
BATCH, REPEATS, USER = 1_000, 51, "ana"
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


class RandomVectors:
    """An embedder whose vectors mean nothing."""

    name, digest, dimension = "random vectors", "random", 384

    def embed(self, texts: Sequence[str]) -> Any:
        """A vector of length one for each text, the same for the same text."""
        vectors = np.array(
            [np.random.default_rng(crc32(text.encode())).standard_normal(384) for text in texts]
        )
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def claims_of(number: int) -> list[Claim]:
    """What one message claims: that it was said, and its fact."""
    time_said = BEGIN + timedelta(minutes=number)
    text = f"Bert{number} likes the painter {number % 977} of town {number % 31}."
    source, span = f"{USER}/{time_said.isoformat()}/0", Span(0, len(text), text)
    facts = (Triple(USER, SAID, text), Triple(f"Bert{number}", "likes", f"painter {number % 977}"))
    return [Claim(fact, source, span, USER, valid_from=time_said) for fact in facts]


def seconds(act: Callable[[], object]) -> float:
    """The processor time of an act."""
    begin = time.process_time()
    act()
    return time.process_time() - begin


def in_plain_sqlite(folder: Path, batches: Sequence[Sequence[Claim]]) -> float:
    """How long SQLite takes to keep the same claims."""
    with closing(sqlite3.connect(folder / "plain.db")) as connection:
        connection.execute(
            "CREATE TABLE claims (subject TEXT, relation TEXT, object TEXT, source TEXT, text TEXT, at TEXT)"
        )
        for column in ("subject", "object", "source"):
            connection.execute(f"CREATE INDEX by_{column} ON claims ({column})")

        def write() -> None:
            for batch in batches:
                rows = [
                    (*c.fact.identity, c.source, c.span.text if c.span else "", str(c.valid_from))
                    for c in batch
                ]
                with connection:
                    connection.executemany("INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)", rows)

        return seconds(write)


def measured(count: int) -> dict[str, float]:
    """The times in seconds, by what was done."""
    batches = [[c for n in range(k, k + BATCH) for c in claims_of(n)] for k in range(0, count, BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        plain = in_plain_sqlite(Path(folder), batches)
        with open_memory(Path(folder) / "memory.db", user=USER, embedder=RandomVectors()) as memory:
            learnt = seconds(lambda: [memory.claims.learn(batch, by=USER) for batch in batches])
            first = seconds(lambda: memory.recall("Which painter does Bert7 like?"))
            return {
                "learn the claims": learnt,
                "the same rows in SQLite alone": plain,
                "first recall, which reads them": first,
                "recall": median(lambda k: memory.recall(f"Which painter does Bert{k} like?")),
                "facts of a subject": median(lambda k: memory.claims.facts(f"Bert{k}")),
                "add a message": median(lambda k: memory.add(f"I met Bert{k} in Oslo.")),
                "add a message and recall": median(lambda k: add_and_recall(memory, k)),
            }  # fmt: skip


def add_and_recall(memory: Memory, number: int) -> None:
    """A turn of a chat."""
    memory.add(f"Bert{number} moved to Oslo.")
    memory.recall("Who moved to Oslo?")


def median(act: Callable[[int], object]) -> float:
    """The median time of an act, which gets the number of its turn."""
    return statistics.median(seconds(lambda k=k: act(k)) for k in range(REPEATS))  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=100_000)
    count = parser.parse_args().sentences
    times = measured(count)
    REPORT.write_text(json.dumps({"sentences": count, "seconds": times}, indent=1) + "\n", encoding="utf-8")
    for name, value in times.items():
        print(f"| {name} | {value * 1000:,.1f} ms |")
    print(
        f"| learning, times SQLite alone | {times['learn the claims'] / times['the same rows in SQLite alone']:.1f} |"
    )


if __name__ == "__main__":
    main()
