"""Which change makes a system another one, and what two processes do at one result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from evaluation.test_runs import DATA, DOCUMENTS, QUERIES, WORDS, Stage
from support.waiting import AMPLE, until

from benchmarks.recall.growth import SyntheticVectors
from kgot_lab.evaluation.results import load_results
from kgot_lab.evaluation.runner import embedders_in, run_and_store
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.entity_linking import follow
from kgot_lab.retrieval.fusion import weighted

TESTS = Path(__file__).parents[1]


def test_the_embedders_of_a_stage_are_found_wherever_it_holds_them():
    some, others = SyntheticVectors(8), SyntheticVectors(16)
    stage = weighted((0.5, WORDS), (0.5, dense(DOCUMENTS, some))) >> follow(DOCUMENTS, others)
    assert {each.digest for each in embedders_in(stage)} == {some.digest, others.digest}
    assert embedders_in(WORDS) == []
    assert [each.digest for each in embedders_in(lambda: dense(DOCUMENTS, some))] == [some.digest]
    # which is not made until it is called
    assert embedders_in(lambda: dense(DOCUMENTS, SyntheticVectors(8))) == []


def test_a_changed_system_keeps_its_old_result_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "mine.jsonl.gz"
    run_and_store(path, Stage("mine", WORDS.step, "1"), DATA, name="mine")
    old = path.read_bytes()

    def other(version: str, stop: bool) -> Stage:
        def step(ranking):
            if stop and ranking.query.id == "q5":
                raise KeyboardInterrupt
            return (WORDS % 1)(ranking)

        return Stage("mine", step, version)

    with pytest.raises(KeyboardInterrupt):
        run_and_store(path, other("2", True), DATA, name="mine")
    assert path.read_bytes() == old
    made = run_and_store(path, other("3", False), DATA, name="mine")  # what was begun has another version too
    assert {len(hits) for hits in made.hits.values()} == {1}
    assert load_results(path) == made
    assert "from_a_stopped_run" not in made.about
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.jsonl.gz"]


# --- two processes ---

HELD = """
import os, sys, time
from pathlib import Path
from evaluation.test_runs import DATA, WORDS, Stage
from kgot_lab.evaluation.runner import run_and_store
place = Path(sys.argv[1])
def step(ranking):
    with (place / "asked").open("a") as file:
        file.write(f"{sys.argv[2]} {ranking.query.id}\\n")
    while ranking.query.id == "q3" and not (place / "go").exists():
        time.sleep(0.01)
    return WORDS(ranking)
run_and_store(place / "mine.jsonl.gz", Stage("mine", step, "1"), DATA, name="mine", on_wait=lambda: (place / f"{sys.argv[2]} waits").touch())
"""


@pytest.fixture
def started(tmp_path):
    """Starts a process that runs a system into a result and is held up at one of its queries; ended at the
    end, whatever happens.
    """
    running = []

    def start(name: str) -> subprocess.Popen:
        env = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"}
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", HELD, str(tmp_path), name], env=env, stderr=subprocess.PIPE, text=True
            )
        )
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def asked(place: Path) -> list[str]:
    return (place / "asked").read_text().splitlines() if (place / "asked").exists() else []


def ended(process: subprocess.Popen) -> None:
    _, complaint = process.communicate(timeout=AMPLE)
    assert process.returncode == 0, complaint


@pytest.mark.extended
def test_a_second_process_waits_says_so_and_takes_the_result_of_the_first(tmp_path, started):
    first = started("first")
    until(lambda: "first q3" in asked(tmp_path), "the first process is in the middle")
    second = started("second")
    until((tmp_path / "second waits").exists, "the second process waits")
    (tmp_path / "go").touch()
    ended(first)
    ended(second)
    assert asked(tmp_path) == [f"first q{number}" for number in range(len(QUERIES))]
    assert not (tmp_path / "first waits").exists()
    assert len(load_results(tmp_path / "mine.jsonl.gz").hits) == len(QUERIES)
    assert not list(tmp_path.glob("*.lock")) and not list(tmp_path.glob("*.partial"))


@pytest.mark.extended
def test_who_waits_for_a_process_that_is_killed_goes_on_from_what_it_left(tmp_path, started):
    first = started("first")
    until(lambda: "first q3" in asked(tmp_path), "the first process is in the middle")
    second = started("second")
    until((tmp_path / "second waits").exists, "the second process waits")
    first.kill()
    until(lambda: "second q3" in asked(tmp_path), "the second process has the lock")
    (tmp_path / "go").touch()
    ended(second)
    assert asked(tmp_path) == [
        *(f"first q{number}" for number in range(4)),
        *(f"second q{number}" for number in range(3, len(QUERIES))),
    ]
    assert load_results(tmp_path / "mine.jsonl.gz").about["from_a_stopped_run"] == "3"
    assert not list(tmp_path.glob("*.lock"))
