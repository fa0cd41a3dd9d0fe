"""The benchmark shared out among the workers of a Dask cluster: the results are those of one process,
whatever happens to a worker.
"""

import gzip
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from support.tiny_collection import TRIPLES, tiny
from support.waiting import until
from support.workers import local_cluster

from benchmarks.recall.growth import SyntheticVectors
from kgot_lab.benchmark.recall import filling
from kgot_lab.benchmark.recall.bench import bench
from kgot_lab.benchmark.recall.systems import systems
from kgot_lab.errors import BadInput, LabError
from kgot_lab.evaluation.results import Plan
from kgot_lab.io.dask_workers import dask_client
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import ranked

pytestmark = pytest.mark.extended

DATA, PLAN = tiny(triples=TRIPLES), Plan("convex", rounds=100)
SOME = ("like", "bm25", "convex", "follow, sentences", "pagerank, triples", "follow, triples", "gate")


class Counted(SyntheticVectors):
    """Says which lists of texts it was given; it cannot be pickled, as an embedder that has a session of a
    model.
    """

    def __init__(self) -> None:
        super().__init__(64)
        self.asked: list[list[str]] = []
        self.session = threading.Lock()

    def embed(self, texts):
        self.asked.append(list(texts))
        return super().embed(texts)


@pytest.fixture(scope="module")
def client():
    with local_cluster(processes=True) as cluster, dask_client(cluster.scheduler_address) as client:
        yield client


def rows(folder: Path) -> dict[str, bytes]:
    """All lines of each result but the last, which says when and how long."""
    lines = {
        path: gzip.decompress(path.read_bytes()).splitlines(keepends=True) for path in folder.rglob("*.gz")
    }
    return {path.relative_to(folder).as_posix(): b"".join(each[:-1]) for path, each in lines.items()}


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".gz")}


def test_workers_make_the_results_of_one_process_and_compute_no_vector(client, tmp_path, monkeypatch):
    here, there = Counted(), Counted()
    folder = tmp_path / "alone"
    alone = bench(DATA, systems={name: systems(DATA, here)[name] for name in SOME}, plan=PLAN, folder=folder)
    told = []
    built = {name: systems(DATA, there)[name] for name in SOME}
    shared = bench(
        DATA,
        systems=built,
        plan=PLAN,
        folder=tmp_path / "shared",
        progress=lambda *step: told.append(step),
        client=client,
    )
    assert rows(tmp_path / "shared") == rows(tmp_path / "alone")
    assert len(rows(tmp_path / "alone")) == len(SOME)
    assert shared.csv() == alone.csv() and files(tmp_path / "shared") == {"plan.json"}
    assert {tuple(texts) for texts in there.asked} <= {tuple(texts) for texts in here.asked}
    assert len(there.asked) <= 5
    assert [step[0] for step in told] == [*range(1, len(SOME) + 1), len(SOME)]
    monkeypatch.setattr(filling, "run_on_worker", None)  # nothing is sent again
    found = bench(DATA, systems=built, plan=PLAN, folder=tmp_path / "shared", client=client).csv()
    assert found == alone.csv()


def held_up(place: Path) -> Stage:
    """A stage that notes the process that runs it, and waits at a query until it may go on."""

    def step(ranking):
        if ranking.query.id == "q3" and not (place / "go").exists():
            (place / "worker").write_text(str(os.getpid()))
            while not (place / "go").exists():
                time.sleep(0.01)
        return ranked(ranking.query, {"d07": 2.0, "d10": 1.0})

    return Stage("mine", step)


def kill_in_the_middle(place: Path) -> None:
    pid = until(
        lambda: (place / "worker").exists() and (place / "worker").read_text(), "a worker is in the middle"
    )
    os.kill(int(pid), signal.SIGKILL)
    (place / "go").touch()


def test_a_worker_that_is_killed_in_the_middle_changes_no_result(tmp_path):
    with local_cluster(processes=True) as cluster, dask_client(cluster.scheduler_address) as client:
        vectors = SyntheticVectors(32)
        names = ("bm25", "convex", "follow", "pagerank, titles", "gate")
        some = {name: systems(DATA, vectors)[name] for name in names}
        some = {"mine": held_up(tmp_path), **some}
        killer = threading.Thread(target=kill_in_the_middle, args=[tmp_path])
        killer.start()
        bench(DATA, systems=some, plan=PLAN, folder=tmp_path / "shared", client=client)
        killer.join()
    bench(DATA, systems=some, plan=PLAN, folder=tmp_path / "alone")
    assert rows(tmp_path / "shared") == rows(tmp_path / "alone") and len(rows(tmp_path / "alone")) == 6
    assert files(tmp_path / "shared") == {"plan.json"}


def test_a_system_that_cannot_be_sent_is_refused_with_what_to_do(client, tmp_path):
    lock = threading.Lock()

    def step(ranking):
        with lock:
            return ranked(ranking.query, {"d07": 2.0})

    message = r"'mine' cannot be sent to other processes \(TypeError.*let a function build it there"
    with pytest.raises(BadInput, match=message):
        plan = Plan("mine", rounds=100)
        bench(DATA, systems={"mine": Stage("mine", step)}, plan=plan, folder=tmp_path, client=client)
    made = bench(
        DATA,
        systems={"mine": lambda: held_by_its_own(Stage)},
        plan=Plan("mine", rounds=100),
        folder=tmp_path,
        client=client,
    )
    assert len(made.runs) == 1 and files(tmp_path) == {"plan.json"}


def held_by_its_own(stage: type[Stage]) -> Stage:
    lock = threading.Lock()

    def step(ranking):
        with lock:
            return ranked(ranking.query, {"d07": 2.0})

    return stage("mine", step)


def test_systems_that_are_run_again_by_workers_are_told_with_the_reason(client, tmp_path):
    one, other = SyntheticVectors(16), SyntheticVectors(24)
    some = ("bm25", "convex", "follow")
    first = {name: systems(DATA, one)[name] for name in some}
    bench(DATA, systems=first, plan=PLAN, folder=tmp_path, client=client)
    built, told = systems(DATA, other), []
    changed = {name: built[name] for name in some}
    again = bench(
        DATA,
        systems=changed,
        plan=PLAN,
        folder=tmp_path,
        client=client,
        progress=lambda *step: told.append(step),
    )
    why = f"its embedder changed (before: {one.name})"
    assert again.again == {"convex": why, "follow": why}
    assert list(again.embedders) == [f"{other.name} ({other.digest[:8]})"]
    expected = {f"{name} on tiny (again, since {why})" for name in ("convex", "follow")}
    assert {step[2] for step in told[:-1]} == expected


def test_a_worker_with_another_version_is_refused():
    answer = filling.run_on_worker(filling.WorkerTask("bm25", "another", 20, PLAN, ("none", "", 0)), DATA)
    assert isinstance(answer, filling.WorkerRefusal)
    assert answer.other_version == systems(DATA, SyntheticVectors(8))["bm25"].version


def test_data_that_were_lost_with_a_worker_are_sent_again(tmp_path):
    distributed = pytest.importorskip("distributed")
    where = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "protocol": "tcp://"}
    one = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, **where)
    with one as cluster, dask_client(cluster.scheduler_address) as client:
        some = {"mine": held_up(tmp_path), "bm25": systems(DATA, SyntheticVectors(32))["bm25"]}
        killer = threading.Thread(target=kill_in_the_middle, args=[tmp_path])
        killer.start()
        made = bench(DATA, systems=some, plan=Plan("mine", rounds=100), client=client)
        killer.join()
    assert {run.system for run in made.runs} == {"mine", "bm25"}


def test_an_error_of_a_system_is_told_and_leaves_what_was_finished(client, tmp_path):
    def broken(ranking):
        raise ZeroDivisionError("mine")

    message = r"the system 'mine' failed on question 'q0', .*: ZeroDivisionError: mine"
    with pytest.raises(LabError, match=message):
        bench(
            DATA, systems={"mine": Stage("mine", broken)}, plan=Plan("mine"), folder=tmp_path, client=client
        )
    assert files(tmp_path) == {"plan.json"}
