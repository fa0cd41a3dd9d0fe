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

from kgot_lab.benchmark.recall.systems import BundledSystem, ByPlan, Stages, systems
from kgot_lab.embedding.embedder import Embedder, Matrix
from kgot_lab.embedding.vectors import text_key
from kgot_lab.errors import BadInput, InsufficientData, LabError
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import depth
from kgot_lab.evaluation.results import KEEP, Plan, additions, fingerprints, load_receipt, save_receipt
from kgot_lab.evaluation.runner import (
    declared_version,
    embedders_in,
    question_put,
    rerun_reason,
    run_to,
    run_whole,
    stored_run,
)
from kgot_lab.evaluation.runs import Run
from kgot_lab.io.dask_workers import job_error
from kgot_lab.io.processes import exclusive_lock
from kgot_lab.retrieval.stage import Stage

Contender = Stage | Callable[[], Stage]
WAITED_FOR = " (another process is at work on it and is waited for)"


@dataclass(frozen=True)
class Filled:
    """What to report on the systems of a data set: those left out for too few data, and those run again."""

    left_out: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)


def fill(
    folder: Path,
    dataset: Dataset,
    systems: Mapping[str, Contender],
    plan: Plan,
    tell: Callable[[str], object] = lambda name: None,
    *,
    also: Callable[[str, str], object] = lambda name, more: None,
    keep: int = KEEP,
) -> Filled:
    """Run each system without stored results on a data set, by run_to.

    `tell` is called with the name of a system before it is run. `also` is called with its name and a note:
    that another process is running it, or why it is run again. Systems that need more data are left out,
    except that for the plan's baseline the error is raised. Hits are stored to the depth of the deepest
    measure of the plan, and at least `keep`.
    """
    keep, told = result_depth(plan, keep), Filled()
    for name, system in systems.items():
        tell(name)
        path, planned = receipt(folder, dataset, name), by_plan(system, plan)
        if why := rerun_reason(path, planned, dataset):
            told.again[name] = why
            also(name, rerun_note(why))
        try:
            run_to(
                path,
                planned,
                dataset,
                name=name,
                keep=keep,
                ties=plan.ties,
                waits=partial(also, name, WAITED_FOR),
            )
        except InsufficientData as error:
            if name == plan.baseline:
                raise
            told.left_out[name] = str(error)
            told.again.pop(name, None)
    return told


def rerun_note(why: str) -> str:
    """Behind the name of a system that is run again: why."""
    return f" (again, since {why})"


def result_depth(plan: Plan, keep: int = KEEP) -> int:
    """Return the number of hits to store per query.

    It is the depth of the deepest measure of the plan, and at least `keep`.
    """
    return max(keep, *map(depth, plan.measures))


def by_plan(system: Contender, plan: Plan) -> Contender:
    """Return a system as built by a plan, if it depends on one."""
    return system.by(plan) if isinstance(system, ByPlan) else system


def receipt(folder: Path, dataset: Dataset, system: str) -> Path:
    """Return the path of a system's results on a data set in a folder."""
    return folder / file_name(dataset.name) / f"{file_name(system)}.jsonl.gz"


def file_name(name: str) -> str:
    """Convert a name to a file or folder name."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def earlier(folder: Path, dataset: Dataset) -> list[Run]:
    """Load the stored results of a data set.

    Raises BadInput for a file that is broken or was made on other queries, documents or qrels.
    """
    now, asked, runs = fingerprints(dataset), {query.id for query in dataset.queries}, []
    for path in sorted((folder / file_name(dataset.name)).glob("*.jsonl.gz")):
        made = load_receipt(path)
        other = [what for what, digest in now.items() if made.about.get(what) != digest]
        if other or set(made.hits) != asked:
            was = f"{path} was made on other {', '.join(other) or 'questions'} than {dataset.name} has now"
            raise BadInput(
                f"{was}; name another folder, or delete the receipts there, whose figures are of the data before"
            )
        runs.append(made)
    return runs


# Distribution of systems over the workers of a Dask client. Results are written here, as by one process.
#
# Workers are sent the data, and vectors of texts as they need them. Vectors are computed here, so that
# none is computed twice and no result depends on which worker did what.

SharingProgress = Callable[[int, int, str], object]  # done, total, what was done or is waited for
_RETRIES = 3  # how often one job is sent again after data that it needs were lost with a worker


@dataclass(frozen=True)
class Errand:
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
class VectorLot:
    """The vectors of some texts by the digest of their embedder."""

    digest: str
    keys: tuple[bytes, ...]
    matrix: Matrix


@dataclass(frozen=True)
class TextsLacking:
    """The reply of a worker that lacks vectors, has too few data, or has another version of a system."""

    texts: tuple[str, ...] = ()
    too_little: str = ""
    other_version: str = ""


def fill_by_workers(
    client: Any,
    folder: Path,
    wanted: Sequence[tuple[Dataset, Mapping[str, Contender]]],
    plan: Plan,
    progress: SharingProgress = lambda done, total, what: None,
) -> dict[str, Filled]:
    """Run `fill` for several data sets on the workers of a Dask client, one task per system and data set.

    Results are identical to those of one process, except for the last line, which holds the time taken. An
    interrupted system starts over. Bundled systems are sent by name, others are pickled. Raises BadInput for
    one that cannot be pickled, and LabError for another error of a worker, or for a worker with another
    version of a system.
    """
    jobs = [_Job(dataset, name, system) for dataset, some in wanted for name, system in some.items()]
    told = {dataset.name: Filled() for dataset, _ in wanted}
    with ExitStack() as held:
        left = _left(held, folder, jobs, plan, progress)
        done = len(jobs) - len(left)
        for job, made in _answers(client, left):
            done += 1
            if isinstance(made, Run):
                path = receipt(folder, job.dataset, job.name)
                save_receipt(made, path, result_depth(plan))
                path.with_name(f"{path.name}.partial").unlink(missing_ok=True)
                told[job.dataset.name].again.update({job.name: job.again} if job.again else {})
            elif job.name == plan.baseline:
                raise InsufficientData(made)
            else:
                told[job.dataset.name].left_out[job.name] = made
            progress(
                done,
                len(jobs),
                f"{job.name} on {job.dataset.name}{rerun_note(job.again) if job.again else ''}",
            )
    return told


@dataclass(eq=False)
class _Job:
    """A system on a data set, and how it is sent."""

    dataset: Dataset
    name: str
    system: Contender
    errand: Errand = Errand("", "", 0, Plan("none"))
    embedder: Embedder | None = None
    lost: int = 0
    again: str = ""  # why it is run again, if it has results


def _left(
    held: ExitStack, folder: Path, jobs: Sequence[_Job], plan: Plan, progress: SharingProgress
) -> list[_Job]:
    """Return the jobs without stored results, with their locks held.

    Locks are acquired in a fixed order, to prevent a deadlock between two processes.
    """
    left = []
    for job in sorted(jobs, key=lambda job: receipt(folder, job.dataset, job.name)):
        path, system = receipt(folder, job.dataset, job.name), by_plan(job.system, plan)
        wanted = question_put(job.dataset, job.name, result_depth(plan))
        if stored_run(path, system, job.dataset, wanted) is not None:
            continue
        held.enter_context(
            exclusive_lock(
                path, partial(progress, 0, len(jobs), f"{job.name} on {job.dataset.name}{WAITED_FOR}")
            )
        )
        if stored_run(path, system, job.dataset, wanted) is None:
            job.again = rerun_reason(path, system, job.dataset)
            job.errand = Errand(job.name, declared_version(system), result_depth(plan), plan)
            if isinstance(system, BundledSystem) and system.name == job.name:
                job.embedder = cast(Embedder, next(iter(embedders_in(system)), _Lent("", "", 0)))
            left.append(job)
    # those of one data set together, whose parts a worker keeps
    return [_ready(job, left) for job in sorted(left, key=jobs.index)]


def _ready(job: _Job, others: Sequence[_Job]) -> _Job:
    """Prepare what is sent to a worker for a job. Raises BadInput if its system cannot be pickled."""
    if job.embedder is not None:
        embedders = [
            each.embedder
            for each in others
            if each.dataset is job.dataset and each.embedder and each.embedder.digest
        ]
        # who needs none shares parts with the others
        given = job.embedder if job.embedder.digest else next(iter(embedders), job.embedder)
        job.embedder = given
        job.errand = replace(job.errand, embedder=(given.name, given.digest, given.dimension))
        return job
    from distributed.protocol import pickle

    packed: Any = pickle
    try:
        job.errand = replace(job.errand, packed=packed.dumps(by_plan(job.system, job.errand.plan)))
    except Exception as error:
        why = f"{job.name!r} cannot be sent to other processes ({type(error).__name__}: {str(error)[:120]})"
        raise BadInput(
            f"{why}; let a function build it there, with the files or connections it needs, or run it without workers"
        ) from None
    return job


def _digest_of(job: _Job) -> str:
    return job.embedder.digest if job.embedder else ""


# --- client ---


def _answers(client: Any, jobs: Sequence[_Job]) -> Any:
    """Yield the outcome of each job as it completes on a worker: a run, or why there are too few data.

    Missing vectors are computed here and sent.
    """
    import distributed

    as_completed: Any = distributed.as_completed
    cloud, sent = _Sent(client), dict[Any, _Job]()
    coming = as_completed([])

    def send(job: _Job) -> None:
        future = client.submit(
            run_on_worker, job.errand, cloud.data(job.dataset), *cloud.lots(job), pure=False
        )
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
            if isinstance(made, TextsLacking) and made.texts:
                cloud.embed(job, made.texts)
                send(job)
            elif isinstance(made, TextsLacking) and made.other_version:
                same = "install the same kgot_lab on each, and start it anew"
                raise LabError(f"a worker has another version of {job.name!r} than runs here: {same}")
            else:
                yield job, made.too_little if isinstance(made, TextsLacking) else made
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
class _Sent:
    """The data sets and vectors that workers were sent. They stay here too."""

    client: Any
    _there: dict[Any, Any] = field(default_factory=dict)
    _lots: dict[tuple[str, str], dict[tuple[str, ...], VectorLot]] = field(default_factory=dict)

    def data(self, dataset: Dataset) -> Any:
        """Return the future of a data set on the workers."""
        return self._at(("data", dataset.name), dataset)

    def lots(self, job: _Job) -> list[Any]:
        """Return the futures of the vectors that systems on the job's data lacked."""
        known = self._lots.get(_whose(job), {})
        return [self._at((*_whose(job), number), lot) for number, lot in enumerate(known.values())]

    def embed(self, job: _Job, texts: tuple[str, ...]) -> None:
        """Compute the vectors of some texts unless another worker needed them before.

        The embedder is called as in a single process.
        """
        known = self._lots.setdefault(_whose(job), {})
        if texts not in known and job.embedder is not None:
            keys = tuple(text_key(job.embedder.digest, text) for text in texts)
            known[texts] = VectorLot(job.embedder.digest, keys, job.embedder.embed(texts))

    def forget(self) -> None:
        """Send all again with the next job."""
        self._there.clear()

    def _at(self, name: Any, value: Any) -> Any:
        if name not in self._there:
            self._there[name] = self.client.scatter([value], broadcast=True, hash=False)[0]
        return self._there[name]


def _whose(job: _Job) -> tuple[str, str]:
    return job.dataset.name, _digest_of(job)


# --- workers ---


class _NotSent(LabError):
    """Raised on a worker that lacks the vectors of some texts.

    It is a LabError, so that it is not taken for an error in a system's own code.
    """


class _Lent:
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
            raise _NotSent(tuple(texts))
        return np.array([self.known[key] for key in keys], np.float32).reshape(len(texts), self.dimension)


_ALONE = threading.Lock()  # one system at a time in a process, for it is timed
_HELD: dict[
    object, tuple[Stages, _Lent]
] = {}  # of the data that were searched last: what its systems share is built once


def run_on_worker(errand: Errand, dataset: Dataset, *lots: VectorLot) -> Run | TextsLacking:
    """Run a system on a data set as a Dask task, or return the texts without a vector."""
    with _ALONE:
        try:
            system = (
                _unpacked(errand)
                if errand.embedder is None
                else by_plan(_ours(errand, dataset, lots), errand.plan)
            )
            if errand.embedder is not None and declared_version(system) != errand.version:
                return TextsLacking(other_version=declared_version(system))
            return run_whole(system, dataset, name=errand.system, keep=errand.keep, ties=errand.plan.ties)
        except _NotSent as lacking:
            return TextsLacking(lacking.args[0])
        except InsufficientData as error:
            return TextsLacking(too_little=str(error))


def _unpacked(errand: Errand) -> Contender:
    from distributed.protocol import pickle

    packed: Any = pickle
    return cast(Stage, packed.loads(errand.packed))


def _ours(errand: Errand, dataset: Dataset, lots: Sequence[VectorLot]) -> Contender:
    """Return a bundled system by its name, with parts that were built for these data before."""
    given = errand.embedder or ("", "", 0)
    key = given, tuple(fingerprints(dataset).values()), additions(dataset)
    if key not in _HELD:
        of_another = [other for other in _HELD if other[1:] != key[1:]]  # type: ignore[index]
        for other in of_another:
            del _HELD[other]
        lent = _Lent(*given)
        _HELD[key] = systems(dataset, lent), lent
    stages, lent = _HELD[key]
    for lot in lots:
        lent.known.update(zip(lot.keys, lot.matrix, strict=True))
    return stages[errand.system]
