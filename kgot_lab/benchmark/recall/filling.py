"""Folders of per-query results: their paths, and running the systems that are missing or changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from kgot_lab.benchmark.recall.systems import BundledSystem, Stages, TunedSystem, systems
from kgot_lab.embedding.embedder import Embedder, Matrix
from kgot_lab.embedding.vectors import text_key
from kgot_lab.errors import BadInput, InsufficientData, LabError
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import cutoff
from kgot_lab.evaluation.reports import load_runs
from kgot_lab.evaluation.results import KEEP, Plan, additions_digest, fingerprints, save_results
from kgot_lab.evaluation.runner import (
    declared_version,
    embedders_in,
    load_stored_run,
    rerun_reason,
    results_header,
    run_and_store,
    run_in_memory,
)
from kgot_lab.evaluation.runs import Run
from kgot_lab.io.dask_workers import job_error
from kgot_lab.io.processes import exclusive_lock
from kgot_lab.retrieval.stage import Stage

SystemOrBuilder = Stage | Callable[[], Stage]
WAITING_NOTE = " (another process is at work on it and is waited for)"


@dataclass(frozen=True)
class FillOutcome:
    """What to report on the systems of a data set: those left out for too few data, and those run again."""

    left_out: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)


def run_missing(
    folder: Path,
    dataset: Dataset,
    systems: Mapping[str, SystemOrBuilder],
    plan: Plan,
    tell: Callable[..., object] = lambda name, note="": None,
    *,
    keep: int = KEEP,
) -> FillOutcome:
    """Run each system without stored results on a data set, by run_and_store.

    `tell` is called with the name of a system before it is run, and again with a note:
    that another process is running it, or why it is run again. Systems that need more data are left out,
    except that for the plan's baseline the error is raised. Hits are stored to the depth of the deepest
    measure of the plan, and at least `keep`.
    """
    keep, outcome = result_depth(plan, keep), FillOutcome()
    for name, system in systems.items():
        tell(name)
        path, planned = results_path(folder, dataset, name), tuned_by_plan(system, plan)
        if why := rerun_reason(path, planned, dataset):
            outcome.again[name] = why
            tell(name, rerun_note(why))
        try:
            wait = partial(tell, name, WAITING_NOTE)
            run_and_store(path, planned, dataset, name=name, keep=keep, ties=plan.ties, on_wait=wait)
        except InsufficientData as error:
            if name == plan.baseline:
                raise
            outcome.left_out[name] = str(error)
            outcome.again.pop(name, None)
    return outcome


def rerun_note(why: str) -> str:
    """Behind the name of a system that is run again: why."""
    return f" (again, since {why})"


def result_depth(plan: Plan, keep: int = KEEP) -> int:
    """Return the number of hits to store per query.

    It is the depth of the deepest measure of the plan, and at least `keep`.
    """
    return max(keep, *map(cutoff, plan.measures))


def tuned_by_plan(system: SystemOrBuilder, plan: Plan) -> SystemOrBuilder:
    """Return a system as built by a plan, if it depends on one."""
    return system.tuned_by(plan) if isinstance(system, TunedSystem) else system


def results_path(folder: Path, dataset: Dataset, system: str) -> Path:
    """Return the path of a system's results on a data set in a folder."""
    return folder / file_name(dataset.name) / f"{file_name(system)}.jsonl.gz"


def file_name(name: str) -> str:
    """Convert a name to a file or folder name."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def load_stored_runs(folder: Path, dataset: Dataset) -> list[Run]:
    """Load the stored results of a data set.

    Raises BadInput for a file that is broken or was made on other queries, documents or qrels.
    """
    return load_runs(sorted((folder / file_name(dataset.name)).glob("*.jsonl.gz")), dataset)


# Distribution of systems over the workers of a Dask client. Results are written here, as by one process.
#
# Workers are sent the data, and vectors of texts as they need them. Vectors are computed here, so that
# none is computed twice and no result depends on which worker did what.

SharingProgress = Callable[[int, int, str], object]  # done, total, what was done or is waited for
_RETRIES = 3  # how often one job is sent again after data that it needs were lost with a worker


@dataclass(frozen=True)
class WorkerTask:
    """A task for a worker: one system on one data set.

    A bundled system is sent by name, any other as bytes.
    """

    system: str
    version: str
    keep: int
    plan: Plan
    embedder: tuple[str, str, int] | None = None  # of ours: name, digest and dimension of the one it is given
    packed: bytes = b""


@dataclass(frozen=True, eq=False)
class VectorBatch:
    """The vectors of some texts by the digest of their embedder."""

    digest: str
    keys: tuple[bytes, ...]
    matrix: Matrix


@dataclass(frozen=True)
class WorkerRefusal:
    """The reply of a worker that lacks vectors, has too few data, or has another version of a system."""

    texts: tuple[str, ...] = ()
    too_little: str = ""
    other_version: str = ""


def run_missing_on_workers(
    client: Any,
    folder: Path,
    wanted: Sequence[tuple[Dataset, Mapping[str, SystemOrBuilder]]],
    plan: Plan,
    progress: SharingProgress = lambda done, total, what: None,
) -> dict[str, FillOutcome]:
    """Run `run_missing` for several data sets on the workers of a Dask client, one task per system and data set.

    Results are identical to those of one process, except for the last line, which holds the time taken. An
    interrupted system starts over. Bundled systems are sent by name, others are pickled. Raises BadInput for
    one that cannot be pickled, and LabError for another error of a worker, or for a worker with another
    version of a system.
    """
    jobs = [_Job(dataset, name, system) for dataset, some in wanted for name, system in some.items()]
    outcomes = {dataset.name: FillOutcome() for dataset, _ in wanted}
    with ExitStack() as held:
        left = _open_jobs(held, folder, jobs, plan, progress)
        done = len(jobs) - len(left)
        for job, made in _job_outcomes(client, left):
            done += 1
            if isinstance(made, Run):
                path = results_path(folder, job.dataset, job.name)
                save_results(made, path, result_depth(plan))
                path.with_name(f"{path.name}.partial").unlink(missing_ok=True)
                outcomes[job.dataset.name].again.update({job.name: job.again} if job.again else {})
            elif job.name == plan.baseline:
                raise InsufficientData(made)
            else:
                outcomes[job.dataset.name].left_out[job.name] = made
            note = rerun_note(job.again) if job.again else ""
            progress(done, len(jobs), f"{job.name} on {job.dataset.name}{note}")
    return outcomes


@dataclass(eq=False)
class _Job:
    """A system on a data set, and how it is sent."""

    dataset: Dataset
    name: str
    system: SystemOrBuilder
    errand: WorkerTask = WorkerTask("", "", 0, Plan("none"))
    embedder: Embedder | None = None
    lost: int = 0
    again: str = ""  # why it is run again, if it has results


def _open_jobs(
    held: ExitStack, folder: Path, jobs: Sequence[_Job], plan: Plan, progress: SharingProgress
) -> list[_Job]:
    """Return the jobs without stored results, with their locks held.

    Locks are acquired in a fixed order, to prevent a deadlock between two processes.
    """
    jobs_left = []
    for job in sorted(jobs, key=lambda job: results_path(folder, job.dataset, job.name)):
        path, system = results_path(folder, job.dataset, job.name), tuned_by_plan(job.system, plan)
        wanted = results_header(job.dataset, job.name, result_depth(plan))
        if load_stored_run(path, system, job.dataset, wanted) is not None:
            continue
        waiting = f"{job.name} on {job.dataset.name}{WAITING_NOTE}"
        held.enter_context(exclusive_lock(path, partial(progress, 0, len(jobs), waiting)))
        if load_stored_run(path, system, job.dataset, wanted) is None:
            job.again = rerun_reason(path, system, job.dataset)
            job.errand = WorkerTask(job.name, declared_version(system), result_depth(plan), plan)
            if isinstance(system, BundledSystem) and system.name == job.name:
                job.embedder = cast(Embedder, next(iter(embedders_in(system)), _ReceivedVectors("", "", 0)))
            jobs_left.append(job)
    # those of one data set together, whose parts a worker keeps
    return [_prepare_job(job, jobs_left) for job in sorted(jobs_left, key=jobs.index)]


def _prepare_job(job: _Job, others: Sequence[_Job]) -> _Job:
    """Prepare what is sent to a worker for a job. Raises BadInput if its system cannot be pickled."""
    if job.embedder is not None:
        alike = [other.embedder for other in others if other.dataset is job.dataset]
        # who needs none shares parts with the others
        shared = next((embedder for embedder in alike if embedder and embedder.digest), job.embedder)
        job.embedder = given = job.embedder if job.embedder.digest else shared
        job.errand = replace(job.errand, embedder=(given.name, given.digest, given.dimension))
        return job
    from distributed.protocol import pickle

    packed: Any = pickle
    try:
        job.errand = replace(job.errand, packed=packed.dumps(tuned_by_plan(job.system, job.errand.plan)))
    except Exception as error:
        why = f"{job.name!r} cannot be sent to other processes ({type(error).__name__}: {str(error)[:120]})"
        remedy = "let a function build it there, with the files or connections it needs"
        raise BadInput(f"{why}; {remedy}, or run it without workers") from None
    return job


# --- client ---


def _job_outcomes(client: Any, jobs: Sequence[_Job]) -> Any:
    """Yield the outcome of each job as it completes on a worker: a run, or why there are too few data.

    Missing vectors are computed here and sent.
    """
    import distributed

    as_completed: Any = distributed.as_completed
    cloud, sent = _SentData(client), dict[Any, _Job]()
    coming = as_completed([])

    def send(job: _Job) -> None:
        needed = (cloud.data(job.dataset), *cloud.vector_batches(job))
        future = client.submit(run_on_worker, job.errand, *needed, pure=False)
        sent[future] = job
        coming.add(future)

    try:
        for job in jobs:
            send(job)
        for future in coming:
            job = sent.pop(future)
            # what it needed went with a worker
            if future.status in ("lost", "cancelled") and job.lost < _RETRIES:
                job.lost += 1
                cloud.forget()
                send(job)
                continue
            made = _result(future)
            if isinstance(made, WorkerRefusal) and made.texts:
                cloud.embed(job, made.texts)
                send(job)
            elif isinstance(made, WorkerRefusal) and made.other_version:
                same = "install the same kgot_lab on each, and start it again"
                raise LabError(f"a worker has another version of {job.name!r} than runs here: {same}")
            else:
                yield job, made.too_little if isinstance(made, WorkerRefusal) else made
    finally:
        client.cancel(list(sent))


def _result(future: Any) -> Any:
    try:
        return future.result()
    except LabError:
        raise
    except Exception as error:
        raise job_error(error) from error


@dataclass(eq=False)
class _SentData:
    """The data sets and vectors that workers were sent. They stay here too."""

    client: Any
    _there: dict[Any, Any] = field(default_factory=dict)
    _lots: dict[tuple[str, str], dict[tuple[str, ...], VectorBatch]] = field(default_factory=dict)

    def data(self, dataset: Dataset) -> Any:
        """Return the future of a data set on the workers."""
        return self._scattered(("data", dataset.name), dataset)

    def vector_batches(self, job: _Job) -> list[Any]:
        """Return the futures of the vectors that systems on the job's data lacked."""
        key = _vectors_key(job)
        lots = self._lots.get(key, {}).values()
        return [self._scattered((*key, number), lot) for number, lot in enumerate(lots)]

    def embed(self, job: _Job, texts: tuple[str, ...]) -> None:
        """Compute the vectors of some texts unless another worker needed them before.

        The embedder is called as in a single process.
        """
        known = self._lots.setdefault(_vectors_key(job), {})
        if texts not in known and job.embedder is not None:
            keys = tuple(text_key(job.embedder.digest, text) for text in texts)
            known[texts] = VectorBatch(job.embedder.digest, keys, job.embedder.embed(texts))

    def forget(self) -> None:
        """Send all again with the next job."""
        self._there.clear()

    def _scattered(self, name: Any, value: Any) -> Any:
        if name not in self._there:
            self._there[name] = self.client.scatter([value], broadcast=True, hash=False)[0]
        return self._there[name]


def _vectors_key(job: _Job) -> tuple[str, str]:
    return job.dataset.name, job.embedder.digest if job.embedder else ""


# --- workers ---


class _VectorsNotSent(LabError):
    """Raised on a worker that lacks the vectors of some texts.

    It is a LabError, so that it is not taken for an error in a system's own code.
    """


class _ReceivedVectors:
    """An embedder that has the vectors it was sent and computes none."""

    def __init__(self, name: str, digest: str, dimension: int) -> None:
        self.name, self.digest, self.dimension = name, digest, dimension
        self.known: dict[bytes, Matrix] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), dimension).

        Raises _NotSent if the vector of a text has not been sent.
        """
        keys = [text_key(self.digest, text) for text in texts]
        if any(key not in self.known for key in keys):
            raise _VectorsNotSent(tuple(texts))
        return np.array([self.known[key] for key in keys], np.float32).reshape(len(texts), self.dimension)


_ONE_SYSTEM_LOCK = threading.Lock()  # one system at a time in a process, for it is timed
# of the data that were searched last: what its systems share is built once
_BUILT_SYSTEMS: dict[object, tuple[Stages, _ReceivedVectors]] = {}


def run_on_worker(errand: WorkerTask, dataset: Dataset, *lots: VectorBatch) -> Run | WorkerRefusal:
    """Run a system on a data set as a Dask task, or return the texts without a vector."""
    with _ONE_SYSTEM_LOCK:
        try:
            if errand.embedder is None:
                system = _unpickled_system(errand)
            else:
                system = tuned_by_plan(_bundled_system(errand, dataset, lots), errand.plan)
                if declared_version(system) != errand.version:
                    return WorkerRefusal(other_version=declared_version(system))
            return run_in_memory(system, dataset, name=errand.system, keep=errand.keep, ties=errand.plan.ties)
        except _VectorsNotSent as lacking:
            return WorkerRefusal(lacking.args[0])
        except InsufficientData as error:
            return WorkerRefusal(too_little=str(error))


def _unpickled_system(errand: WorkerTask) -> SystemOrBuilder:
    from distributed.protocol import pickle

    packed: Any = pickle
    return cast(Stage, packed.loads(errand.packed))


def _bundled_system(errand: WorkerTask, dataset: Dataset, lots: Sequence[VectorBatch]) -> SystemOrBuilder:
    """Return a bundled system by its name, with parts that were built for these data before."""
    given = errand.embedder or ("", "", 0)
    key = given, tuple(fingerprints(dataset).values()), additions_digest(dataset)
    if key not in _BUILT_SYSTEMS:
        of_another = [other for other in _BUILT_SYSTEMS if other[1:] != key[1:]]  # type: ignore[index]
        for other in of_another:
            del _BUILT_SYSTEMS[other]
        lent = _ReceivedVectors(*given)
        _BUILT_SYSTEMS[key] = systems(dataset, lent), lent
    stages, lent = _BUILT_SYSTEMS[key]
    for lot in lots:
        lent.known.update(zip(lot.keys, lot.matrix, strict=True))
    return stages[errand.system]
