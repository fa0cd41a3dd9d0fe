"""Many triples in memory and in a file of claims: how long adding, querying and searching take, and how much memory,
beside the bare driver of SQLite doing the same.

The triples are made by a seed: names of two words, their frequency by Zipf's law, forty relations. The bare
driver has the same tables and an FTS5 index of its own, checks nothing and gives rows; "without an index" is
what the tables of the specification alone can do. Each is measured in a process of its own. Times are medians
in milliseconds, by the clock and of the processor alone, which is what compares where the computer is busy
with something else.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import TRIPLE_TABLES, SQLiteTripleStore
from kgot_lab.memory.triples import InMemoryTripleStore
from kgot_lab.types import Triple

BATCH = 1_000
SEED = 16
REPORT = Path(__file__).parents[1] / "results" / "memory_triples.json"
SUBJECTS = ("in memory", "file of claims", "bare driver")
PARTS = "subject, relation, object, confidence, source_turn, created_at"
_VERBS = ("works", "lives", "met", "wrote", "found", "sold", "saw", "led")
_WAYS = ("at", "in", "with", "to", "for")
RELATIONS = [f"{verb}_{way}" for verb in _VERBS for way in _WAYS]
_SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ren",
    "tu",
    "vas",
    "el",
    "dor",
    "sha",
    "pi",
    "qua",
    "zen",
    "bro",
    "fi",
    "gan",
    "hul",
)


class Zipf:
    """Names of two words, the first ones far more often than the last."""

    def __init__(self, names: int, chance: random.Random):
        self._chance = chance
        self._up_to = list(accumulate(1 / rank for rank in range(1, names + 1)))
        self._names = range(names)

    def __call__(self) -> str:
        (number,) = self._chance.choices(self._names, cum_weights=self._up_to)
        return name_of(number)


def name_of(number: int) -> str:
    """The name of a thing."""
    # the first of many, the second of seven
    return f"{syllables(number % 997)} {syllables(number // 7 + 1_000)}".title()


def syllables(number: int) -> str:
    """A word for a number, another for each."""
    said = ""
    while number or not said:
        number, digit = divmod(number, len(_SYLLABLES))
        said += _SYLLABLES[digit]
    return said


def triples(many: int, seed: int = SEED) -> Iterator[Triple]:
    """So many triples, some of them twice."""
    chance = random.Random(seed)
    name, began = Zipf(max(10, many // 5), chance), datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(many):
        other = name_of(chance.randrange(max(10, many // 5)))
        yield Triple(
            name(),
            chance.choice(RELATIONS),
            other,
            round(chance.uniform(0.3, 1), 2),
            number // 5,
            began + timedelta(seconds=number),
        )


class Subject(Protocol):
    """What is measured."""

    def add(self, some: Sequence[Triple]) -> object: ...
    def query(self, subject: str) -> Sequence[object]: ...
    def search(self, words: Sequence[str]) -> Sequence[object]: ...


class Bare:
    """The bare driver: the same tables, an index of words by FTS5's own tokenizer, rows for triples."""

    def __init__(self, path: Path):
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *TRIPLE_TABLES):
            self._connection.execute(statement)
        self._connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5(subject, relation, object, content='')"
        )

    def add(self, some: Sequence[Triple]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM triples").fetchone()
        times = [each.created_at and each.created_at.isoformat() for each in some]
        rows = [
            (*each.identity, each.confidence, each.source_turn, time)
            for each, time in zip(some, times, strict=True)
        ]
        connection.executemany(f"INSERT OR IGNORE INTO triples ({PARTS}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        said = "SELECT id, subject, replace(relation, '_', ' '), object FROM triples WHERE id > ?"
        connection.execute(f"INSERT INTO words (rowid, subject, relation, object) {said}", (last,))
        connection.execute("COMMIT")

    def query(self, subject: str) -> Sequence[object]:
        return self._connection.execute(
            f"SELECT {PARTS} FROM triples WHERE subject = ? ORDER BY id", (subject,)
        ).fetchall()

    def search(self, words: Sequence[str]) -> Sequence[object]:
        each = " UNION ALL ".join(["SELECT rowid AS id FROM words WHERE words MATCH ?"] * len(words))
        found = f"SELECT id, count(*) AS matched FROM ({each}) GROUP BY id"
        order = "matched DESC, confidence DESC, created_at DESC, source_turn DESC, id"
        asked = f"SELECT {PARTS} FROM triples JOIN ({found}) USING (id) ORDER BY {order} LIMIT 20"
        return self._connection.execute(asked, [f'"{word}"' for word in words]).fetchall()

    def unindexed(self, words: Sequence[str]) -> Sequence[object]:
        """A search with nothing but the tables of the specification; a part of a word is found too."""
        each = " + ".join(["(subject LIKE ? OR relation LIKE ? OR object LIKE ?)"] * len(words))
        asked = f"SELECT {PARTS}, {each} AS matched FROM triples WHERE matched ORDER BY matched DESC, confidence DESC LIMIT 20"
        return self._connection.execute(asked, [f"%{word}%" for word in words for _ in range(3)]).fetchall()


def took(act: Callable[[Any], object], given: Sequence[Any]) -> dict[str, float]:
    """The medians of the milliseconds that something takes, by the clock and of the processor."""
    times, worked = [], []
    for each in given:
        began, working = time.perf_counter(), time.process_time()
        act(each)
        worked.append(1000 * (time.process_time() - working))
        times.append(1000 * (time.perf_counter() - began))
    return {
        "median_ms": round(statistics.median(times), 4),
        "cpu_ms": round(statistics.median(worked), 4),
        "times": len(times),
    }


def measured(kind: str, many: int, folder: Path) -> dict[str, Any]:
    """Every measure of one subject."""
    path = folder / "triples.db"
    chance = random.Random(SEED + 1)
    makers: dict[str, Callable[[], Subject]] = {
        "in memory": InMemoryTripleStore,
        "file of claims": lambda: SQLiteTripleStore(path),
        "bare driver": lambda: Bare(path),
    }
    subject = makers[kind]()
    made, batches = triples(many), range(max(1, many // BATCH))
    empty = _peak()
    rows: dict[str, Any] = {
        f"add {BATCH:,}": took(lambda some: subject.add(some), _Batches(made, len(batches)))
    }
    rows["add one"] = took(
        lambda number: subject.add([Triple(f"New {number}", "works_at", "Acme Corp")]), range(100)
    )
    name = Zipf(max(10, many // 5), chance)
    rows["query a subject, by Zipf"] = took(subject.query, [name() for _ in range(200)])
    rare = [name_of(chance.randrange(max(10, many // 5))).split() for _ in range(50)]
    rows["search one rare word"] = took(subject.search, [[words[1]] for words in rare])
    rows["search a name and a verb"] = took(subject.search, [[*words, "sold"] for words in rare[:20]])
    rows["search the most frequent word"] = took(subject.search, [[name_of(0).split()[0]]] * 5)
    if isinstance(subject, InMemoryTripleStore | SQLiteTripleStore):
        rows["search a quoted name"] = took(subject.search, [[f'"{" ".join(words)}"'] for words in rare[:20]])
        rows["search a quoted part of a word"] = took(
            subject.search, [[f'"{words[1][1:-1]}"'] for words in rare[:3]]
        )
        rows["the newest 30"] = took(subject.newest, [30] * 20)
        rows["count"] = took(lambda _: subject.count(), range(20))
        context = KnowledgeGraphMemory(subject).build_context
        rows["a context of a name"] = took(context, rare)
        rows["a context of the newest 30"] = took(lambda _: context(), range(20))
        kept = subject.count()
    else:
        assert isinstance(subject, Bare)
        rows["search one rare word, without an index"] = took(
            subject.unindexed, [[words[1]] for words in rare[:3]]
        )
        (kept,) = subject._connection.execute("SELECT count(*) FROM triples").fetchone()
    size = sum(file.stat().st_size for file in folder.iterdir())
    return {
        "triples": kept,
        "file_mb": round(size / 1e6, 1),
        "peak_mb": _peak(),
        "peak_before_mb": empty,
        "rows": rows,
    }


class _Batches(Sequence[Any]):
    """The batches of a stream, made one by one before each is timed, so that no more than one is held."""

    def __init__(self, made: Iterator[Triple], many: int):
        self._made, self._many = made, many

    def __len__(self) -> int:
        return self._many

    def __getitem__(self, number: Any) -> list[Triple]:
        if number >= self._many:
            raise IndexError
        return [triple for triple, _ in zip(self._made, range(BATCH), strict=False)]


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def main() -> None:
    """Measure each subject in a process of its own, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--triples", type=int, default=100_000, help="how many (default 100,000)")
    parser.add_argument("--subject", choices=SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=REPORT, help="where the report goes")
    options = parser.parse_args()
    if options.triples < BATCH:
        parser.error(f"--triples is {BATCH:,} or more")
    if options.subject:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(options.subject, options.triples, Path(folder))))
        return
    report: dict[str, Any] = {
        "python": platform.python_version(), "machine": platform.machine(), "sqlite": sqlite3.sqlite_version, "seed": SEED,
    }  # fmt: skip
    for subject in SUBJECTS:
        command = [sys.executable, __file__, "--triples", str(options.triples), "--subject", subject]
        report[subject] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        told = report[subject]
        print(
            f"{subject}: {told['triples']:,} triples, file {told['file_mb']} MB, peak memory {told['peak_mb']} MB"
        )
        for name, row in told["rows"].items():
            print(
                f"  {name:42} median {row['median_ms']:10.3f} ms   processor {row['cpu_ms']:10.3f} ms   of {row['times']:,}"
            )
    options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
