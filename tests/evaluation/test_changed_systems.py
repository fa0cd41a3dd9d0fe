"""Which change makes a system another one, and what two processes do at one receipt."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from evaluation.test_runs import DATA, DOCUMENTS, QUERIES, WORDS, Stage
from support.waiting import AMPLE, until

import kgot_lab
from kgot_lab.benchmark.recall.synthetic import SyntheticVectors
from kgot_lab.evaluation.results import load_receipt
from kgot_lab.evaluation.runner import run_to
from kgot_lab.evaluation.source import embedders_in, source_digest
from kgot_lab.retrieval.dense import meaning
from kgot_lab.retrieval.entity_expansion import Reach, follow
from kgot_lab.retrieval.fusion import weighted

TESTS = Path(__file__).parents[1]

DIGESTS = """
from support.tiny_collection import tiny
from kgot_lab.evaluation.source import source_digest
from kgot_lab.benchmark.recall.synthetic import SyntheticVectors
from kgot_lab.benchmark.recall.systems import systems
built = systems(tiny(), SyntheticVectors(8))
for name in ("bm25", "embeddings", "convex", "pagerank, titles", "follow", "gate", "trail"):
    print(source_digest(built[name]))
print(source_digest(built["follow"]()))
"""
NAMES = ("bm25", "embeddings", "convex", "pagerank, titles", "follow", "gate", "trail", "follow as a stage")

CHANGES = {
    "another system, and a part of it": (
        "benchmark/recall/systems.py",
        [
            ('        "like": lambda: parts.like,\n', '        "like": lambda: parts.like,\n        "new": lambda: parts.newest,\n'),
            ("    @cached_property\n    def text(", "    @cached_property\n    def newest(self) -> Stage:\n        return self.fts5\n\n"
             "    @cached_property\n    def text("),
        ],
        set(),
    ),
    "a weight of the convex fusion": (
        "benchmark/recall/systems.py",
        [("weighted((0.7, self.meaning), (0.3, self.words))", "weighted((0.6, self.meaning), (0.4, self.words))")],
        {"convex", "pagerank, titles", "follow", "gate", "follow as a stage"},
    ),
    "how links are made of titles": ("retrieval/links.py", [("def title_graph(", "FEWEST = 3\n\n\ndef title_graph(")],
                                     {"pagerank, titles", "follow", "gate", "follow as a stage"}),
    "how words are searched": ("retrieval/bm25.py", [("k1: float = 1.2", "k1: float = 1.3")],
                               set(NAMES)),  # of embeddings too: what is called `text` there is also a part that searches words
    "a comment where the walk is": ("retrieval/pagerank.py", [("from __future__", "# a comment\nfrom __future__")],
                                    {"pagerank, titles", "gate"}),
    "what a trail has learnt": ("retrieval/trail/weights.json", [('"straight": [', '"straight": [1')], {"trail"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, and a function that gives the digests of some systems there."""
    place = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        Path(kgot_lab.__file__).parent,
        place / "kgot_lab",
        ignore=shutil.ignore_patterns("__pycache__", "data"),
    )

    def digests() -> dict[str, str]:
        env = {**os.environ, "PYTHONPATH": f"{place}:{TESTS}", "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(
            [sys.executable, "-c", DIGESTS], env=env, cwd=place, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        return dict(zip(NAMES, ran.stdout.split(), strict=True))

    return place / "kgot_lab", digests


@pytest.fixture(scope="module")
def before(copied):
    return copied[1]()


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_our_code_changes_the_systems_that_use_it_and_no_others(copied, before, what):
    package, digests = copied
    file, changes, changed = CHANGES[what]
    text = (package / file).read_text(encoding="utf-8")
    mended = text
    for old, new in changes:
        assert mended.count(old) == 1
        mended = mended.replace(old, new)
    (package / file).write_text(mended, encoding="utf-8")
    try:
        now = digests()
    finally:
        (package / file).write_text(text, encoding="utf-8")
    assert {name for name in NAMES if now[name] != before[name]} == changed


def test_a_setting_that_no_description_shows_is_seen():
    made = [follow(DOCUMENTS, SyntheticVectors(8), Reach(common=common)) for common in (100, 101)]
    assert source_digest(made[0]) != source_digest(made[1])


def test_the_embedders_of_a_stage_are_found_wherever_it_holds_them():
    some, others = SyntheticVectors(8), SyntheticVectors(16)
    stage = weighted((0.5, WORDS), (0.5, meaning(DOCUMENTS, some))) >> follow(DOCUMENTS, others)
    assert {each.digest for each in embedders_in(stage)} == {some.digest, others.digest} and embedders_in(
        WORDS
    ) == []
    assert [each.digest for each in embedders_in(lambda: meaning(DOCUMENTS, some))] == [some.digest]
    assert (
        embedders_in(lambda: meaning(DOCUMENTS, SyntheticVectors(8))) == []
    )  # which is not made until it is called


def test_a_changed_system_keeps_its_old_receipt_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "mine.jsonl.gz"
    run_to(path, Stage("mine", WORDS.step), DATA, name="mine")
    old = path.read_bytes()

    def other(stop: bool) -> Stage:
        def step(ranking):
            if stop and ranking.query.id == "q5":
                raise KeyboardInterrupt
            return (WORDS % 1)(ranking)

        return Stage("mine", step)

    with pytest.raises(KeyboardInterrupt):
        run_to(path, other(True), DATA, name="mine")
    assert path.read_bytes() == old
    made = run_to(path, other(False), DATA, name="mine")  # what was begun has another code too
    assert (
        {len(hits) for hits in made.hits.values()} == {1}
        and load_receipt(path) == made
        and "from_a_stopped_run" not in made.about
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.jsonl.gz"]


# --- two processes
# ------------------------------------------------------------------------------------------------------

HELD = """
import os, sys, time
from pathlib import Path
from evaluation.test_runs import DATA, WORDS, Stage
from kgot_lab.evaluation.runner import run_to
place = Path(sys.argv[1])
def step(ranking):
    with (place / "asked").open("a") as file:
        file.write(f"{sys.argv[2]} {ranking.query.id}\\n")
    while ranking.query.id == "q3" and not (place / "go").exists():
        time.sleep(0.01)
    return WORDS(ranking)
run_to(place / "mine.jsonl.gz", Stage("mine", step), DATA, name="mine", waits=lambda: (place / f"{sys.argv[2]} waits").touch())
"""


@pytest.fixture
def started(tmp_path):
    """Starts a process that runs a system into a receipt and is held up at one of its queries; ended at the
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


def test_a_second_process_waits_says_so_and_takes_the_receipt_of_the_first(tmp_path, started):
    first = started("first")
    until(lambda: "first q3" in asked(tmp_path), "the first process is in the middle")
    second = started("second")
    until((tmp_path / "second waits").exists, "the second process waits")
    (tmp_path / "go").touch()
    ended(first)
    ended(second)
    assert (
        asked(tmp_path) == [f"first q{number}" for number in range(len(QUERIES))]
        and not (tmp_path / "first waits").exists()
    )
    assert len(load_receipt(tmp_path / "mine.jsonl.gz").hits) == len(QUERIES)
    assert not list(tmp_path.glob("*.lock")) and not list(tmp_path.glob("*.partial"))


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
    assert load_receipt(tmp_path / "mine.jsonl.gz").about["from_a_stopped_run"] == "3" and not list(
        tmp_path.glob("*.lock")
    )


def test_a_small_array_in_a_system_of_yours_counts_and_a_large_one_is_data():
    def mine(weights):
        return Stage("mine", lambda ranking: (ranking, weights.sum())[0])

    one, same, other = (source_digest(mine(np.full(10, number))) for number in (1.0, 1.0, 2.0))
    assert one == same != other
    assert source_digest(mine(np.zeros(100_000))) == source_digest(mine(np.ones(100_000)))
