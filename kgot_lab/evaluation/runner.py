"""Run a system and store its results.

Stored results are reused while version, embedder and data are the same, and replaced otherwise. A system
without a declared version is always run again. During a run its lines are in a plain file next to the results
(`.partial`), so that it can be resumed, and a lock (`.lock`) makes other processes wait.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import IO, Any, cast

from kgot_lab.errors import BadInput, LabError, LLMError, StoreUnavailable, attribute_errors, short_repr
from kgot_lab.evaluation import results
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.runs import BY_ID, Retriever, Run, checked_queries, latency, timed_search
from kgot_lab.io.files import write_atomically
from kgot_lab.io.processes import exclusive_lock
from kgot_lab.types import Hit, Json, Query

# Whether a system is unchanged: its declared version, and its embedders.

_DEEPEST = 40  # maximum depth of references from a stage
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_LONGEST = 100  # longer collections are data, which have digests


def declared_version(system: object) -> str:
    """Return the declared version of a stage or its builder, or "", which means it is always run again."""
    version = getattr(system, "version", "")
    return version if isinstance(version, str) else ""


def embedders_in(system: object) -> list[object]:
    """Return the embedders that a stage or its builder refers to, one for each digest, sorted by name.

    An embedder that a builder creates itself is visible only once the stage is built.
    """
    found = {str(getattr(value, "digest", "")): value for value in _embedders(system, {}, 0)}
    return sorted(found.values(), key=embedder_label)


def embedder_label(embedder: object) -> str:
    """Format an embedder as results files do: its name and its digest."""
    return f"{getattr(embedder, 'name', '')} {getattr(embedder, 'digest', '')}"


def _embedders(value: object, seen: dict[int, object], depth: int) -> Iterator[object]:
    """Yield the embedders reachable from a value: closures, arguments, attributes and short collections."""
    if isinstance(value, _PLAIN) or id(value) in seen or depth > _DEEPEST:
        return
    seen[id(value)] = value  # kept alive, since an id may be reused
    if callable(getattr(type(value), "embed", None)) and isinstance(getattr(value, "digest", None), str):
        yield value
        return
    for each in _referenced_values(value):
        yield from _embedders(each, seen, depth + 1)


def _referenced_values(value: object) -> Iterable[object]:
    if isinstance(value, FunctionType):
        return (value.__defaults__, value.__kwdefaults__, *_closure_values(value))
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, Mapping):
        return value.values() if len(value) < _LONGEST else ()
    if isinstance(value, tuple | list | set | frozenset):
        return value if len(value) < _LONGEST else ()
    methods = (getattr(value, name, None) for name in ("step", "build"))
    if is_dataclass(value) or any(map(callable, methods)):
        return vars(value).values() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    return ()


def _closure_values(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue


# fields that describe the task, not the system
_TASK_FIELDS = ("dataset", "documents", "questions", "qrels", "system", "kept", "queries")
_SYSTEM_FIELDS = ("description", results.VERSION, results.EMBEDDER_HASH, results.ADDITIONS)
_NO_EMBEDDER, _AND = "none", "; "
_EMBEDDER = "its embedder"  # in the reason why a system is run again

SystemBuilder = Callable[[], Retriever]
_Found = tuple[tuple[Hit, ...], float]


def run_and_store(
    path: Path,
    system: Retriever | SystemBuilder,
    dataset: Dataset,
    *,
    name: str,
    keep: int = results.KEEP,
    ties: str = BY_ID,
    on_wait: Callable[[], object] = lambda: None,
) -> Run:
    """Run a system on the queries of a data set and store the results, resuming an interrupted run.

    `system` may be a builder, which is called only if the system is run. Stored results of the same system,
    by description, declared version, embedders and data, are loaded instead. Those of another are replaced
    once the new ones are complete. A system without a version is always run from the start. With one, an
    interruption between two queries loses nothing. A line that was not completed is computed again, and the
    results say how many rankings are from before. If the system's own error ends a run, nothing is kept. If
    another process is running the same system, this one waits and calls `on_wait`. `ties` is a rule of
    runs.TIES. Raises BadInput if the existing results are of other data or another depth. A LabError of the
    system is passed on. Any other error is raised as a LabError that names system and query, with the error
    as its cause.
    """
    version, wanted = declared_version(system), results_header(dataset, name, keep)
    if (stored := load_stored_run(path, system, dataset, wanted)) is not None:
        return stored
    with exclusive_lock(path, on_wait):
        if (
            stored := load_stored_run(path, system, dataset, wanted)
        ) is not None:  # another process made it meanwhile
            return stored
        stage = build_system(system, name)
        partial = path.with_name(f"{path.name}.partial")
        header = wanted | _identity(system, stage, dataset, version)
        finished = _run_missing(partial, stage, dataset, header, ties)
        results.save_results(finished, path, keep)
        partial.unlink()
        return finished


def run_in_memory(
    system: Retriever | SystemBuilder,
    dataset: Dataset,
    *,
    name: str,
    keep: int = results.KEEP,
    ties: str = BY_ID,
) -> Run:
    """Run a system on all queries of a data set without intermediate files, for save_results.

    Raises what run_and_store raises.
    """
    stage, known = build_system(system, name), {document.id for document in dataset.documents}
    with _frozen_garbage():
        queries = checked_queries(dataset.queries)
        done = {query.id: _search_hits(stage, query, dataset, known, keep, ties, name) for query in queries}
    identity = _identity(system, stage, dataset, declared_version(system))
    return _build_run(done, results_header(dataset, name, keep) | identity, 0)


def build_system(system: Retriever | SystemBuilder, name: str) -> Retriever:
    """Build a system if it is a builder, else return it.

    Raises BadInput if a builder does not return a stage, and LabError if it fails.
    """
    with attribute_errors(f"the system {name!r} could not be built"):
        made: Any = cast(SystemBuilder, system)() if _is_builder(system) else system
    if _is_builder(made):
        raise BadInput(f"{name!r} built a {type(made).__name__}, not a Stage")
    return cast(Retriever, made)


def results_header(dataset: Dataset, name: str, keep: int) -> dict[str, Json]:
    """Return the header fields that define a run: the data set, the system and the hits stored a query."""
    asks = {"format": results.RESULTS_FORMAT, "dataset": dataset.name, **results.fingerprints(dataset)}
    return asks | {"system": name, "kept": keep, "queries": len(dataset.queries)}


def load_stored_run(
    path: Path, system: Retriever | SystemBuilder, dataset: Dataset, wanted: Mapping[str, Json]
) -> Run | None:
    """Load the stored run of a system, or return None if there is none for its current version.

    `wanted` is the result of results_header(). For a builder, neither the description nor an embedder that it
    creates itself is compared. Its version stands for them. Raises BadInput if the file is of other data or
    another depth.
    """
    if not path.exists():
        return None
    head = results.read_results_file(path)[0]
    _check_header(path, head, wanted)
    return None if _changes(head, system, dataset) else results.load_results(path)


def rerun_reason(path: Path, system: Retriever | SystemBuilder, dataset: Dataset) -> str:
    """Explain why a system with stored results is run again, as in "its version changed".

    Empty if it is not run again or has no stored results.
    """
    if not path.exists():
        return ""
    head = results.read_results_file(path)[0]
    if not declared_version(system):
        return "it declares no version"
    if results.VERSION not in head:
        return "its results name no version"
    changed = _changes(head, system, dataset)
    before = ""
    if _EMBEDDER in changed:
        now = set(map(embedder_label, embedders_in(system)))
        labels = set(str(head.get(results.EMBEDDER_HASH)).split(_AND)) - now
        was = sorted({label.rpartition(" ")[0] for label in labels} - {""})
        before = f" (before: {' and '.join(was) or _NO_EMBEDDER})"
    return f"{' and '.join(changed)} changed{before}" if changed else ""


def _changes(head: Mapping[str, Json], system: Retriever | SystemBuilder, dataset: Dataset) -> list[str]:
    """List what differs from the header of a results file.

    For a builder, only its version and what it refers to are known.
    """
    embedders, version = set(map(embedder_label, embedders_in(system))), declared_version(system)
    described = _is_builder(system) or head.get("description") == repr(system)
    same = {
        "its version": bool(version) and head.get(results.VERSION) == version,
        _EMBEDDER: embedders <= set(str(head.get(results.EMBEDDER_HASH)).split(_AND)),
        "its pipeline": described,
        "what else the data hold (triples, computed edges, test split)": head.get(results.ADDITIONS)
        == results.additions_digest(dataset),
    }
    return [what for what, kept in same.items() if not kept]


def _is_builder(system: Retriever | SystemBuilder) -> bool:
    return not hasattr(system, "search")


# --- parts ---


def _identity(
    system: Retriever | SystemBuilder, stage: Retriever, dataset: Dataset, version: str
) -> dict[str, Json]:
    """Return the header fields that decide, with the data, what a system finds."""
    labels = sorted({embedder_label(each) for each in (*embedders_in(system), *embedders_in(stage))})
    embedders = _AND.join(labels) or _NO_EMBEDDER
    identity = {"description": repr(stage), results.VERSION: version, results.EMBEDDER_HASH: embedders}
    return identity | {results.ADDITIONS: results.additions_digest(dataset)}


def _check_header(path: Path, head: Mapping[str, Json], wanted: Mapping[str, Json]) -> None:
    for key in _TASK_FIELDS:
        if head.get(key) != wanted[key]:
            stored, now = f"{head.get(key)}"[:80], f"{wanted[key]}"[:80]
            problem = f"{path.name} comes from another configuration: {key} is {stored} there and {now} now"
            raise BadInput(f"{problem}; delete it or name another")


def _run_missing(
    partial: Path, stage: Retriever, dataset: Dataset, fixed: Mapping[str, Json], ties: str
) -> Run:
    """Run the queries that are missing from a partial file, one line each."""
    queries, known = checked_queries(dataset.queries), {document.id for document in dataset.documents}
    done = _read_partial(partial, fixed)
    older = len(done)
    with _open_partial(partial) as lines, _frozen_garbage():
        if not partial.stat().st_size:
            lines.write(results.results_line(fixed))
        for query in queries:
            if query.id in done:
                continue
            try:
                kept, name = int(fixed["kept"]), str(fixed["system"])
                found = _search_hits(stage, query, dataset, known, kept, ties, name)
            except (LLMError, StoreUnavailable):  # not the system's fault: no server, no budget
                raise
            except Exception:
                lines.close()
                partial.unlink()
                raise
            lines.write(results.results_line(results.results_row(query.id, found[0]) | {"seconds": found[1]}))
            lines.flush()
            done[query.id] = found
    return _build_run({query.id: done[query.id] for query in queries}, fixed, older)


def _search_hits(
    stage: Retriever, query: Query, dataset: Dataset, known: set[str], keep: int, ties: str, name: str
) -> _Found:
    with attribute_errors(f"the system {name!r} failed on question {query.id!r}, {short_repr(query.text)}"):
        out = dataset.excluded.get(query.id, frozenset())
        found, took = timed_search(stage, query, keep + len(out), ties)
        hits = tuple(hit for hit in found if hit.id not in out)[:keep]
    if strange := [hit.id for hit in hits if hit.id not in known]:
        problem = f"{stage.name} found {strange[0]!r} for query {query.id!r}"
        raise BadInput(f"{problem}, which is no document of {dataset.name}")
    return results.round_hits(hits), took


def _build_run(done: Mapping[str, _Found], fixed: Mapping[str, Json], older: int) -> Run:
    seconds = {query: took for query, (_, took) in done.items()}
    own = ("documents", "questions", "qrels", results.EMBEDDER_HASH, results.VERSION, results.ADDITIONS)
    about = {key: str(fixed[key]) for key in own} | results.circumstances()
    about |= {results.RESUMED: str(older)} if older else {}
    names = str(fixed["system"]), str(fixed["description"]), str(fixed["dataset"])
    hits = {query: found for query, (found, _) in done.items()}
    return Run(*names, int(fixed["kept"]), hits, latency(list(seconds.values())), seconds, about)


@contextmanager
def _frozen_garbage() -> Iterator[None]:
    """Keep full garbage collections, which walk every object of every index, out of timed searches.

    Nothing is collected first, because that took longer than a small run. A system is freed with its last
    reference.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _open_partial(partial: Path) -> Iterator[IO[str]]:
    """Open the partial results file of a run for appending.

    Raises LabError if it cannot be written.
    """
    try:
        with partial.open("a", encoding="utf-8") as lines:
            yield lines
    except OSError as error:
        kept = "the same command goes on from what it holds"
        problem = f"cannot write the results {partial}"
        raise LabError(f"{problem}: {error.strerror or error}. Once it can be written, {kept}") from error


def _read_partial(partial: Path, fixed: Mapping[str, Json]) -> dict[str, _Found]:
    """Read the finished queries in a partial results file, by query id.

    A torn last line is cut off. A file of another system is deleted.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    raw = partial.read_bytes() if partial.exists() else b""
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        write_atomically(partial, whole, "the results")
    done: dict[str, _Found] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        with results.advise_deletion(partial):
            where = f"{partial.name}, line {number}"
            row = results.parse_json_row(line, where)
            query, hits, took = results.parse_hits(row, where) if number > 1 else ("", (), 0.0)
        if number > 1:
            done[query] = (hits, took)
            continue
        _check_header(partial, row, fixed)
        if not fixed[results.VERSION] or any(row.get(key) != fixed[key] for key in _SYSTEM_FIELDS):
            partial.unlink()
            return {}
    return done
