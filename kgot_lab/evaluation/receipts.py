"""Receipts: the small files that hold what a run found, so that every number of a report can be worked out again without a model.

A receipt is gzipped JSON lines: a head that says what was run on which data, then one line per query. While a run is under way its
lines are kept in a plain file beside it (`.partial`), so that it goes on where it was interrupted.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO

from kgot_lab.errors import BadInput, LabError, LLMError, StoreUnavailable
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.runs import BY_ID, Latency, Progress, Retriever, Run, asked, latency, unique
from kgot_lab.evaluation.source import source_digest
from kgot_lab.types import Hit, Json
from kgot_lab.writing import write_whole

KEEP = 20  # hits of a query in a receipt: what a curve up to recall@20 needs
_FORMAT = "recall receipt 1"
# another value of one of these is another run
_FIXED = ("format", "dataset", "documents", "questions", "qrels", "system", "description", "kept", "queries")
RESUMED = "from_a_stopped_run"  # in the head: how many rankings are older than the run that wrote the receipt
_PACKAGES = ("kgot_lab", "numpy", "bm25s", "onnxruntime")


def run_to(
    path: Path, system: Retriever, dataset: Dataset, *, name: str, keep: int = KEEP, ties: str = BY_ID, progress: Progress | None = None
) -> Run:
    """Run a system on the queries of a data set into a receipt, going on where an earlier attempt was interrupted.

    A receipt that is there already is read instead. An interruption between two queries loses nothing; a line that was not written
    to its end is asked again, and the receipt says how many rankings are from before. Nothing is kept of an attempt that the system's own
    error ended, which will be mended and is another system then, nor of one whose code has changed since. `ties` is a rule of runs.TIES.
    Raises BadInput when what is there comes from another configuration, and what the system raises.
    """
    queries = unique(dataset.queries)
    fixed = _configuration(system, dataset, name, keep)
    if path.exists():
        _same(path, _read(path)[0], fixed)
        return load_receipt(path)
    partial = path.with_name(path.name + ".partial")
    fixed["code"] = source_digest(system)
    done = _resumed(partial, fixed)
    older = len(done)
    known = {document.id for document in dataset.documents}
    with _writing(partial) as lines:
        if not partial.stat().st_size:
            lines.write(_line(fixed))
        for query in queries:
            if query.id not in done:
                try:
                    hits, took = asked(system, query, keep, ties)
                    if strange := [hit.id for hit in hits if hit.id not in known]:
                        raise BadInput(f"{system.name} found {strange[0]!r} for query {query.id!r}, which is no document of {dataset.name}")
                except (LLMError, StoreUnavailable):  # no fault of the system: a server is away, a budget is spent
                    raise
                except Exception as error:
                    lines.close()
                    partial.unlink()
                    raise (LabError(f"{system.name} failed: {error}") if isinstance(error, OSError) else error) from None
                lines.write(_line(_row(query.id, hits) | {"seconds": took}))
                lines.flush()
                done[query.id] = (_rounded(hits), took)
            if progress:
                progress(len(done), len(queries))
    seconds = {query.id: done[query.id][1] for query in queries}
    found = {query.id: done[query.id][0] for query in queries}
    about = {key: str(fixed[key]) for key in ("documents", "questions", "qrels")} | circumstances()
    about |= {RESUMED: str(older)} if older else {}
    made = Run(name, repr(system), dataset.name, keep, found, latency(list(seconds.values())), seconds, about)
    save_receipt(made, path, keep)
    partial.unlink()
    return made


@contextmanager
def _writing(partial: Path) -> Iterator[IO[str]]:
    """The file that takes the lines of a run under way; raises LabError where it takes no more."""
    try:
        with partial.open("a", encoding="utf-8") as lines:
            yield lines
    except OSError as error:
        kept = "the same command goes on from what it holds"
        raise LabError(f"cannot write the receipt {partial}: {error.strerror or error}. Once it can be written, {kept}") from error


def save_receipt(run: Run, path: Path, keep: int = KEEP) -> None:
    """Write a run as a receipt, at most `keep` hits of a query; the same run gives the same bytes. Scores keep six digits."""
    times = [_six(seconds) if math.isfinite(seconds) else None for seconds in run.latency]  # of a published run none are known
    kept = min(keep, run.kept)
    head = {"format": _FORMAT, "dataset": run.dataset, "system": run.system, "description": run.description, "kept": kept}
    head |= {"queries": len(run.hits), "median_seconds": times[0], "p95_seconds": times[1], **run.about}
    text = _line(head) + "".join(_line(_row(query, hits[:kept])) for query, hits in run.hits.items())
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:  # neither name nor time of writing, for equal bytes
        file.write(text.encode())
    write_whole(path, packed.getvalue(), "the receipt")


def load_receipt(path: Path) -> Run:
    """Read a receipt; raises BadInput that names the file and the line for one that is broken or cut short."""
    head, rows = _read(path)
    try:
        times = [math.nan if head[name] is None else float(head[name]) for name in ("median_seconds", "p95_seconds")]
        names = str(head["system"]), str(head["description"]), str(head["dataset"])
        kept, queries = int(head["kept"]), int(head["queries"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path.name}, line 1: the head of a receipt lacks {error}") from None
    hits: dict[str, tuple[Hit, ...]] = {}
    for number, row in enumerate(rows, start=2):
        query, found, _ = _parsed(row, f"{path.name}, line {number}")
        if query in hits or len(found) > kept:
            raise BadInput(f"{path.name}, line {number}: query {query!r} stands there twice, or has more than {kept} hits")
        hits[query] = found
    if len(hits) != queries:
        raise BadInput(f"{path.name}, line {len(hits) + 1}: the receipt ends after {len(hits)} of {queries} queries; run it again")
    own = {"format", "dataset", "system", "description", "kept", "queries", "median_seconds", "p95_seconds"}
    about = {key: str(value) for key, value in head.items() if key not in own}
    return Run(*names, kept, hits, Latency(*times), {}, about)


def fingerprints(dataset: Dataset) -> dict[str, str]:
    """SHA-256 of the documents, of the questions and of the qrels (with classes, where there are some), whatever order they are in."""
    documents = sorted((document.id, document.title, document.text) for document in dataset.documents)
    qrels = sorted((query, sorted(grades.items())) for query, grades in dataset.qrels.items())
    classes = sorted(dataset.classes.items())
    questions = _digest(sorted((query.id, query.text) for query in dataset.queries))
    return {"documents": _digest(documents), "questions": questions, "qrels": _digest([qrels, classes] if classes else qrels)}


def circumstances() -> dict[str, str]:
    """Today's date, the kind of machine and the versions: what a reader needs to judge a time, and nothing about who ran it."""
    versions = [f"python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"date": date.today().isoformat(), "machine": machine, "versions": ", ".join(versions)}


# --- lines ------------------------------------------------------------------------------------------------------------


def _configuration(system: Retriever, dataset: Dataset, name: str, keep: int) -> dict[str, Json]:
    fixed = {"format": _FORMAT, "dataset": dataset.name, **fingerprints(dataset)}
    return fixed | {"system": name, "description": repr(system), "kept": keep, "queries": len(dataset.queries)}


def _same(path: Path, head: Mapping[str, Json], fixed: Mapping[str, Json]) -> None:
    for key in _FIXED:
        if head.get(key) != fixed[key]:
            there, now = f"{head.get(key)}"[:80], f"{fixed[key]}"[:80]
            raise BadInput(f"{path.name} comes from another configuration: {key} is {there} there and {now} now; delete it or name another")


def _resumed(partial: Path, fixed: Mapping[str, Json]) -> dict[str, tuple[tuple[Hit, ...], float]]:
    """What a partial file holds by query id; a torn last line is cut off it."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    raw = partial.read_bytes() if partial.exists() else b""
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        write_whole(partial, whole, "the receipt")
    done: dict[str, tuple[tuple[Hit, ...], float]] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        row = _object(line, f"{partial.name}, line {number}")
        if number == 1:
            _same(partial, row, fixed)
            if row.get("code") != fixed["code"]:  # its rankings are another system's
                partial.unlink()
                return {}
        else:
            query, hits, took = _parsed(row, f"{partial.name}, line {number}")
            done[query] = (hits, took)
    return done


def _read(path: Path) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    try:
        lines = gzip.decompress(path.read_bytes()).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path.name} is not a receipt that can be read ({error}); fetch it again or run it again") from error
    rows = [_object(line, f"{path.name}, line {number}") for number, line in enumerate(lines, start=1)]
    if not rows or rows[0].get("format") != _FORMAT:
        raise BadInput(f"{path.name}, line 1: this is not the head of a {_FORMAT!r}")
    return rows[0], rows[1:]


def _object(line: bytes, where: str) -> dict[str, Json]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise BadInput(f"{where}: not a JSON object")
    return row


def _parsed(row: Mapping[str, Json], where: str) -> tuple[str, tuple[Hit, ...], float]:
    try:
        ids, scores = [str(id) for id in row["ids"]], [float(score) for score in row["scores"]]
        hits = tuple(map(Hit, ids, scores))
        if len(ids) == len(scores) == len(set(ids)) and all(map(math.isfinite, scores)):
            return str(row["query"]), hits, float(row.get("seconds", math.nan))
    except (KeyError, TypeError, ValueError):
        pass
    raise BadInput(f"{where}: it must hold a query, its ids (each once) and as many scores")


def _row(query: str, hits: tuple[Hit, ...]) -> dict[str, Json]:
    return {"query": query, "ids": [hit.id for hit in hits], "scores": [_six(hit.score) for hit in hits]}


def _rounded(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    return tuple(Hit(hit.id, _six(hit.score)) for hit in hits)


def _six(number: float) -> float:
    return float(f"{number:.6g}")


def _line(row: Mapping[str, Json]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
