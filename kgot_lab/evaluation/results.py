"""Results files: per-query results of a run.

With them every reported number can be recomputed without a model. A results file is gzipped JSON lines: a
header that says what was run on which data, by which code and embedder, a line for each query, and a last
line with the duration, date and machine. All lines but the last are identical for every run of one system on
the same data.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import platform
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kgot_lab.arguments import CheckedRecord, bounded, parse_json
from kgot_lab.errors import BadInput, require_known
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import MEASURES, cutoff
from kgot_lab.evaluation.runs import BY_ID, TIES, Latency, Run
from kgot_lab.evaluation.significance import ROUNDS
from kgot_lab.io.files import os_errors_as, read_regular_text, write_atomically
from kgot_lab.types import Hit, Json

KEEP = 20  # hits of a query in a results file: enough for recall@20
RESULTS_FORMAT = "recall receipt 2"
_EARLIER_FORMAT = "recall receipt 1"  # all in the header, without code or embedder
# header fields that decide, with the data, what a system finds
VERSION, EMBEDDER_HASH, ADDITIONS = ("version", "embedder", "additions")
# in the last line: how many rankings are older than the run that wrote the file
RESUMED = "from_a_stopped_run"
_TIMES = ("median_seconds", "p95_seconds")
_CIRCUMSTANCES = ("date", "machine", "versions", RESUMED)
_PACKAGES = ("kgot_lab", "numpy", "bm25s", "onnxruntime")


def save_results(run: Run, path: Path, keep: int = KEEP) -> None:
    """Write a run as a results file, at most `keep` hits a query.

    The same run gives the same bytes. Scores are rounded to six digits.
    """
    # unknown for a published run
    times = [_round_digits(seconds) if math.isfinite(seconds) else None for seconds in run.latency]
    kept = min(keep, run.kept)
    head: dict[str, Json] = {"format": RESULTS_FORMAT, "dataset": run.dataset, "system": run.system}
    head |= {"description": run.description, "kept": kept, "queries": len(run.hits)}
    head |= {name: value for name, value in run.about.items() if name not in _CIRCUMSTANCES}
    end: dict[str, Json] = dict(zip(_TIMES, times, strict=True))
    end |= {name: run.about[name] for name in _CIRCUMSTANCES if name in run.about}
    rows = [results_line(results_row(query, hits[:kept])) for query, hits in run.hits.items()]
    text = results_line(head) + "".join(rows)
    packed = io.BytesIO()
    with gzip.GzipFile(
        filename="", fileobj=packed, mode="wb", mtime=0
    ) as file:  # no name or time, for identical bytes
        file.write((text + results_line(end)).encode())
    write_atomically(path, packed.getvalue(), "the results")


def load_results(path: Path) -> Run:
    """Read a results file, of this format or the previous one.

    Raises BadInput for a broken or truncated file. The error names the file, which should be deleted, and the
    line.
    """
    head, rows = read_results_file(path)
    with advise_deletion(path):
        return _build_run(path, head, rows)


def _build_run(path: Path, head: Mapping[str, Json], rows: Sequence[Mapping[str, Json]]) -> Run:
    try:
        times = [math.nan if head[name] is None else float(head[name]) for name in _TIMES]
        names = str(head["system"]), str(head["description"]), str(head["dataset"])
        kept, queries = int(head["kept"]), int(head["queries"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path.name}, line 1: the header of a results file lacks {error}") from None
    hits: dict[str, tuple[Hit, ...]] = {}
    for number, row in enumerate(rows, start=2):
        query, found, _ = parse_hits(row, f"{path.name}, line {number}")
        if query in hits or len(found) > kept:
            problem = f"{path.name}, line {number}"
            raise BadInput(f"{problem}: query {query!r} stands there twice, or has more than {kept} hits")
        hits[query] = found
    if len(hits) != queries:
        problem = f"{path.name}, line {len(hits) + 1}"
        raise BadInput(f"{problem}: the file ends after {len(hits)} of {queries} queries")
    own = {"format", "dataset", "system", "description", "kept", "queries", *_TIMES}
    about = {key: str(value) for key, value in head.items() if key not in own}
    return Run(*names, kept, hits, Latency(*times), {}, about)


def fingerprints(dataset: Dataset) -> dict[str, str]:
    """Return the SHA-256 of the documents, the queries and the qrels (with any classes), in any order."""
    documents = sorted((document.id, document.title, document.text) for document in dataset.documents)
    qrels = sorted((query, sorted(grades.items())) for query, grades in dataset.qrels.items())
    classes = sorted(dataset.classes.items())
    questions = _digest(sorted((query.id, query.text) for query in dataset.queries))
    qrels_digest = _digest([qrels, classes] if classes else qrels)
    return {"documents": _digest(documents), "questions": questions, "qrels": qrels_digest}


def additions_digest(dataset: Dataset) -> str:
    """Return the SHA-256 of other data that affect what systems find.

    These are triples, computed edges, held-out queries and excluded documents.
    """
    triples = sorted((id, list(map(repr, some))) for id, some in dataset.triples.items())
    parts = [triples, sorted(map(repr, dataset.isomorphic)), sorted(dataset.test_ids)]
    excluded = sorted((query, sorted(ids)) for query, ids in dataset.excluded.items())
    return _digest([*parts, excluded] if excluded else parts)


def circumstances() -> dict[str, str]:
    """Return the date, the kind of machine and the versions, for judging times.

    Nothing identifies the user.
    """
    versions = [f"python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"date": date.today().isoformat(), "machine": machine, "versions": ", ".join(versions)}


# --- lines ---


def read_results_file(path: Path) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Read a results file: its header, merged with its last line, and a row for each query.

    Raises BadInput if the file cannot be read or is not a results file.
    """
    with os_errors_as(f"the results {path} cannot be read"):
        raw = path.read_bytes()
    with advise_deletion(path):
        return _parse_lines(path, raw)


def _parse_lines(path: Path, raw: bytes) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    try:
        lines = gzip.decompress(raw).splitlines()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path.name} is not a results file that can be read ({error})") from error
    rows = [parse_json_row(line, f"{path.name}, line {number}") for number, line in enumerate(lines, start=1)]
    if not rows or rows[0].get("format") not in (RESULTS_FORMAT, _EARLIER_FORMAT):
        raise BadInput(f"{path.name}, line 1: this is not the head of a {RESULTS_FORMAT!r}")
    if rows[0]["format"] == _EARLIER_FORMAT:
        return rows[0], rows[1:]
    if len(rows) == 1 or _TIMES[0] not in rows[-1]:
        raise BadInput(f"{path.name}, line {len(rows)}: the file ends without its times")
    return rows[0] | rows[-1], rows[1:-1]


@contextmanager
def advise_deletion(path: Path) -> Iterator[None]:
    """Add to an error about a benchmark file which file to delete, and the effect."""
    try:
        yield
    except BadInput as error:
        problem = f"{error}. Delete {path}, or put a whole copy in its place"
        raise BadInput(f"{problem}; a system without results is run again") from error


def parse_json_row(line: bytes, where: str) -> dict[str, Json]:
    """Parse a line of a results file.

    Raises BadInput, which names the line, if it is not a JSON object.
    """
    try:
        row = parse_json(line)
    except ValueError as error:
        raise BadInput(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise BadInput(f"{where}: not a JSON object")
    return row


def parse_hits(row: Mapping[str, Json], where: str) -> tuple[str, tuple[Hit, ...], float]:
    """Return the query, the hits and the seconds of a row.

    The seconds are NaN if the row has none. Raises BadInput if the row is malformed.
    """
    try:
        ids, scores = [str(id) for id in row["ids"]], [float(score) for score in row["scores"]]
        hits = tuple(map(Hit, ids, scores))
        if len(ids) == len(scores) == len(set(ids)) and all(map(math.isfinite, scores)):
            return str(row["query"]), hits, float(row.get("seconds", math.nan))
    except (KeyError, TypeError, ValueError):
        pass
    raise BadInput(f"{where}: it must hold a query, its ids (each once) and as many scores")


def results_row(query: str, hits: tuple[Hit, ...]) -> dict[str, Json]:
    """Build the row of a query in a results file."""
    scores = [_round_digits(hit.score) for hit in hits]
    return {"query": query, "ids": [hit.id for hit in hits], "scores": scores}


def round_hits(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Round the scores of hits as a results file does."""
    return tuple(Hit(hit.id, _round_digits(hit.score)) for hit in hits)


def _round_digits(number: float) -> float:
    return float(f"{number:.6g}")


def results_line(row: Mapping[str, Json]) -> str:
    """Serialise a row as a line of a results file."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


# The evaluation plan, written before a benchmark runs, so that no choice depends on the results.

MARGIN = 0.02  # of the primary measure; fixed before the first run


@dataclass(frozen=True)
class Plan(CheckedRecord):
    """The evaluation plan: baseline, primary measure, all measures, and how significance is tested.

    Systems are tuned for the primary measure. `margin` is the gain in it on the tuning split that a retriever
    needs to be selected for a fusion. `ties`: a rule of runs.TIES. `rounds` and `seed` are those of the tests
    and the bootstrap. `expected` is the best system on the dev split, named before the test split is
    evaluated. `assumed`: no plan was given, and these are the defaults. Raises BadInput for an invalid plan,
    and UnknownName for an unknown measure or rule.
    """

    baseline: str
    primary: str = "recall@5"
    measures: tuple[str, ...] = MEASURES
    ties: str = BY_ID
    rounds: int = bounded(ROUNDS, 1, 10_000_000)
    seed: int = 0
    margin: float = MARGIN
    expected: str = ""
    assumed: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        # a list would not equal the tuple read from a file
        object.__setattr__(self, "measures", tuple(self.measures))
        if self.primary not in self.measures:
            problem = f"the primary measure {self.primary!r} is not among the measures of the plan"
            raise BadInput(f"{problem}: {', '.join(self.measures)}")
        for measure in self.measures:
            cutoff(measure)
        if len({*self.measures}) < len(self.measures) or not self.baseline.strip():
            raise BadInput("a plan names its baseline, and each of its measures once")
        require_known("rule for ties", TIES, self.ties)

    def __str__(self) -> str:
        names = (f"baseline {self.baseline}", f"primary measure {self.primary}", f"ties {self.ties}")
        parts = (*names, f"{self.rounds:,} rounds, seed {self.seed}", f"margin {self.margin}")
        best = [f"expected best {self.expected}"] if self.expected else []
        whose = "No plan was given; these defaults were written" if self.assumed else "Written"
        return f"{whose} down before the run: {', '.join([*parts, *best])}"

    def as_json(self) -> dict[str, Json]:
        """Return the plan as JSON values.

        `assumed` is included only if it is true.
        """
        values = asdict(self) | {"measures": list(self.measures)}
        assumed = {"assumed"} if not self.assumed else set()
        return {name: value for name, value in values.items() if name not in assumed}

    def write_down(self, path: Path) -> None:
        """Save the plan before anything is measured. An existing equal plan is left alone.

        Raises BadInput if another plan is there.
        """
        if not path.exists():
            self.save(path)
            return
        stored, own = Plan.load(path), self.as_json()
        changed = {name: old for name, old in stored.as_json().items() if own.get(name, old) != old}
        differences = [f"{name} is {old} there and {own[name]} now" for name, old in changed.items()]
        if stored != self:
            problem = f"{path} holds another plan ({'; '.join(differences)})"
            raise BadInput(f"{problem}, and a plan is not changed afterwards; name another folder")

    def save(self, path: Path) -> None:
        """Write the plan as JSON. Raises BadInput if it cannot be written."""
        write_atomically(path, json.dumps(self.as_json(), indent=1) + "\n", "the plan")

    @staticmethod
    def load(path: Path) -> Plan:
        """Read a plan that `save` wrote. Raises BadInput if it cannot be read."""
        try:
            read = parse_json(read_regular_text(path))
        except (OSError, ValueError, RecursionError) as error:
            problem = f"{path.name} does not hold the plan of a benchmark ({error})"
            raise BadInput(f"{problem}; write one with Plan(...).save(path)") from error
        known = {field.name for field in fields(Plan)}
        if not isinstance(read, Mapping) or "baseline" not in read or not set(read) <= known:
            problem = f"{path.name} does not hold the plan of a benchmark"
            raise BadInput(f"{problem}; its names are {', '.join(sorted(known))}")
        try:
            return Plan(**read)
        except BadInput as error:
            raise BadInput(f"{path.name} does not hold a plan that can be followed: {error}") from None
