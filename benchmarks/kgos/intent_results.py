"""What each classifier said of each query, kept on file, and the tables of it: accuracy, confusions, false
alarms.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.kgos.intents import (
    BY_WORDS,
    NO_INTENT,
    IntentSaid,
    confusions,
    intent_systems,
    outside_questions,
    right_intents,
    said_of_queries,
)
from benchmarks.kgos.queries import HALVES, CookbookQuery, QueryHalf, cookbook_queries
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import format_p
from kgot_lab.evaluation.significance import holm, interval, proportion, sign_flip_p, wins_ties_losses
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.files import write_atomically

_OUTSIDE = "outside"  # what the ids of questions from outside begin with


def measure_intents(folder: Path, half: QueryHalf, embedder: Embedder) -> None:
    """Ask every classifier for the intents of a half of the queries and of 1,000 questions from outside; a
    file that is there is kept.
    """
    path = _file(folder, half)
    if path.exists():
        return
    asked = {query.id: query.text for query in cookbook_queries(half)}
    asked |= {
        f"{_OUTSIDE}-{number:04}": text for number, text in enumerate(outside_questions("test"), start=1)
    }
    systems = intent_systems(cookbook_queries("tuning"), embedder)
    said = [said_of_queries(name, classify, asked) for name, classify in systems.items()]
    rows = [{"id": id} | {each.system: each.labels[id] for each in said} for id in asked]
    packed = io.BytesIO()
    with gzip.GzipFile(
        filename="", fileobj=packed, mode="wb", mtime=0
    ) as file:  # neither name nor time of writing, for equal bytes
        file.write("".join(json.dumps(row) + "\n" for row in rows).encode())
    write_atomically(path, packed.getvalue(), "the intents")


def intents_said(folder: Path, half: QueryHalf) -> tuple[IntentSaid, ...]:
    """What each classifier said of a half, from the file; raises BadInput where it is not there."""
    path = _file(folder, half)
    if not path.exists():
        raise BadInput(f"{path} is not there; run the benchmark first")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return tuple(IntentSaid(name, {row["id"]: row[name] for row in rows}) for name in rows[0] if name != "id")


def intent_grids(folder: Path, half: QueryHalf) -> Iterator[Grid]:
    """Accuracy of every classifier with intervals, false alarms, and the confusions of the one by words."""
    queries, said = cookbook_queries(half), intents_said(folder, half)
    yield accuracy_grid(queries, said, half)
    (words,) = (each for each in said if each.system == BY_WORDS)
    yield confusion_grid(queries, words, half)


def accuracy_grid(queries: Sequence[CookbookQuery], said: Sequence[IntentSaid], half: str) -> Grid:
    """For each classifier: accuracy, also by a fair judge and on queries with an intent, and how often it
    finds one where there is none.
    """
    own = {each.system: _values(right_intents(each, queries)) for each in said}
    others = [each.system for each in said if each.system != BY_WORDS]
    ps = dict(zip(others, holm([sign_flip_p(own[name] - own[BY_WORDS]) for name in others]), strict=True))
    lines = []
    for each in said:
        mean, fair = interval(own[each.system]), interval(_values(right_intents(each, queries, fair=True)))
        some = [query for query in queries if query.intent != NO_INTENT]
        named = interval(_values(right_intents(each, some)))
        outside = [label for id, label in each.labels.items() if id.startswith(_OUTSIDE)]
        alarms = proportion(sum(label != NO_INTENT for label in outside), len(outside))
        gap = own[each.system] - own[BY_WORDS]
        against = (
            ""
            if each.system == BY_WORDS
            else f"{format_signed(interval(gap).mean)} ({'/'.join(map(str, wins_ties_losses(gap)))})"
        )
        p = "" if each.system == BY_WORDS else format_p(ps[each.system])
        cells = (
            each.system,
            *(
                f"{format_decimal(one.mean)} [{format_decimal(one.low)}, {format_decimal(one.high)}]"
                for one in (mean, fair, named, alarms)
            ),
        )
        lines.append(tuple(map(Cell, (*cells, against, p))))
    some_count = sum(query.intent != NO_INTENT for query in queries)
    named_column = f"of the {some_count} with an intent"
    columns = (
        "classifier",
        "accuracy",
        "a fair judge's",
        named_column,
        "false alarms outside",
        "minus by words",
        "p Holm",
    )
    return Grid(
        f"Intents, {half} half: {len(queries)} queries; outside are 1,000 questions of clinc150",
        columns,
        tuple(lines),
    )


def confusion_grid(queries: Sequence[CookbookQuery], said: IntentSaid, half: str) -> Grid:
    """The intents of the queries, one a row, and which a classifier said, the most frequent first."""
    lines = []
    for label, row in confusions(said, queries).items():
        wrong = ", ".join(
            f"{name} {count}"
            for name, count in sorted(row.items(), key=lambda each: -each[1])
            if name != label
        )
        lines.append((Cell(label), Cell(str(sum(row.values()))), Cell(str(row.get(label, 0))), Cell(wrong)))
    title = f"Confusions of the classifier {said.system}, {half} half"
    return Grid(title, ("intent", "queries", "found", "said instead"), tuple(lines), words=True)


def _values(right: Mapping[str, float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(list(right.values()), np.float64)


def _file(folder: Path, half: QueryHalf) -> Path:
    return folder / f"intents_{HALVES[half]}.jsonl.gz"
