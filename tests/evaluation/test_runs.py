import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.results import KEEP, load_results, save_results
from kgot_lab.evaluation.runner import rerun_reason, run_and_store
from kgot_lab.evaluation.runs import Latency, latency, run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Hit, Query, Ranking, ranked

DOCUMENTS = tuple(
    Document(f"d{number:02}", f"word{number} shared", f"Title {number}") for number in range(30)
)
QUERIES = tuple(Query(f"word{number} shared", f"q{number}") for number in range(8))
DATA = Dataset("toy", DOCUMENTS, QUERIES, {f"q{number}": {f"d{number:02}": 1} for number in range(8)})
WORDS = replace(bm25(DOCUMENTS), version="1")


def stopping_after(count: int, stage: Stage) -> Stage:
    """A stage that is interrupted at one of its queries."""
    asked = []

    def step(ranking: Ranking) -> Ranking:
        asked.append(ranking.query.id)
        if len(asked) > count:
            raise KeyboardInterrupt
        return stage(ranking)

    return Stage(stage.name, step, stage.version)


def stoppable(stage: Stage, stop: Path, asked: Path) -> Stage:
    """A stage that is interrupted at the query that a file names, and keeps in another which it was asked."""

    def step(ranking: Ranking) -> Ranking:
        with asked.open("a") as file:
            file.write(f"{ranking.query.id}\n")
        if ranking.query.id == stop.read_text():
            raise KeyboardInterrupt
        return stage(ranking)

    return Stage(stage.name, step, stage.version)


def test_a_run_holds_the_best_hits_of_each_query_and_its_time():
    made = run(WORDS, QUERIES, name="bm25", dataset="toy", keep=3)
    assert made.ids("q4") == WORDS.search(QUERIES[4]).ids[:3] and made.ids("q4")[0] == "d04"
    assert list(made.hits) == [query.id for query in QUERIES] == list(made.seconds)
    assert made.description == "<bm25>" and all(seconds > 0 for seconds in made.seconds.values())
    assert repr(made).startswith("<bm25 on toy: 8 queries, 3 deep, ")


def test_the_latency_is_the_median_and_the_nearest_rank_percentile():
    assert latency([0.1] * 94 + [0.5] * 6) == Latency(0.1, 0.5)
    assert latency([0.1] * 95 + [0.5] * 5) == Latency(0.1, 0.1)
    assert latency([3.0, 1.0]) == Latency(2.0, 3.0)


@every(
    ("stage", "queries", "keep", "message"),
    [
        (WORDS, (), 5, "no queries"),
        (WORDS, (Query("a", "1"), Query("b", "1")), 5, "id of another"),
        (WORDS, (Query("a"),), 5, "no id"),
        (WORDS, QUERIES, 0, "1 hit or more"),
        (
            Stage("twice", lambda ranking: Ranking(ranking.query, (Hit("d", 2), Hit("d", 1)))),
            QUERIES,
            5,
            "ids of a ranking occur more than once, for example 'd'",
        ),
        (
            Stage("nan", lambda ranking: ranked(ranking.query, {"d": float("nan")})),
            QUERIES,
            5,
            "document 'd' has nan",
        ),
    ],
)
def test_what_cannot_be_counted_is_refused(stage, queries, keep, message):
    with pytest.raises(BadInput, match=message):
        run(stage, queries, keep=keep)


# --- results ---


def test_a_result_can_be_read_back_and_the_same_run_gives_the_same_bytes(tmp_path):
    made = run_and_store(tmp_path / "toy" / "bm25.jsonl.gz", WORDS, DATA, name="bm25")
    read = load_results(tmp_path / "toy" / "bm25.jsonl.gz")
    assert read == made and read.kept == KEEP and read.about == made.about
    assert read.latency == pytest.approx(made.latency, rel=1e-5) and not read.seconds
    save_results(made, tmp_path / "again.jsonl.gz")
    raw = (tmp_path / "again.jsonl.gz").read_bytes()
    # no time of writing in the head of the file
    assert raw == (tmp_path / "toy" / "bm25.jsonl.gz").read_bytes() and raw[4:8] == bytes(4)
    save_results(read, tmp_path / "thrice.jsonl.gz")
    assert load_results(tmp_path / "thrice.jsonl.gz") == made
    assert [path.name for path in (tmp_path / "toy").iterdir()] == ["bm25.jsonl.gz"]


def test_a_result_keeps_the_first_hits_in_their_order_and_six_digits_of_a_score(tmp_path):
    scores = {"d09": 1.23456789e-5, "d03": 1.23456781e-5, "d01": 1.0}
    path = tmp_path / "run.jsonl.gz"
    run_and_store(path, Stage("fixed", lambda r: ranked(r.query, scores)), DATA, name="fixed", keep=2)
    assert load_results(path).hits["q0"] == (Hit("d01", 1.0), Hit("d09", 1.23457e-5))
    head, *_, end = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    assert head["kept"] == 2
    assert all(len(head[name]) == 64 for name in ("qrels", "documents", "questions", "additions"))
    assert head["embedder"] == "none"
    assert end["date"]
    assert "numpy" in end["versions"]
    assert set(end) & set(head) == set()


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "bm25.jsonl.gz"
    stop, asked = tmp_path / "stop", tmp_path / "asked"
    stop.write_text("q5")
    with pytest.raises(KeyboardInterrupt):
        run_and_store(path, stoppable(WORDS, stop, asked), DATA, name="bm25")
    assert not path.exists()
    stop.write_text("")
    made = run_and_store(path, stoppable(WORDS, stop, asked), DATA, name="bm25")
    assert asked.read_text().split() == [*(f"q{number}" for number in range(6)), "q5", "q6", "q7"]
    assert made == run_and_store(tmp_path / "other.jsonl.gz", WORDS, DATA, name="bm25")
    assert len(made.seconds) == 8


KILLED = """
import os, sys
from pathlib import Path
from evaluation.test_runs import DATA, WORDS, Stage, run_and_store
import ranking_of_mine
def step(ranking):
    print(ranking.query.id)
    if ranking.query.id == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), 9)
    return ranking_of_mine.rank(WORDS, ranking)
run_and_store(Path(sys.argv[1]), Stage("bm25", step, ranking_of_mine.VERSION), DATA, name="bm25")
"""


@pytest.mark.extended
def test_a_killed_process_loses_no_finished_query_unless_the_version_was_changed_since(tmp_path):
    path, tests, mine = tmp_path / "bm25.jsonl.gz", Path(__file__).parents[1], tmp_path / "ranking_of_mine.py"
    places = {"PYTHONPATH": f"{tmp_path}:{tests}:{tests.parent}", "PYTHONDONTWRITEBYTECODE": "1"}

    def asked(**more: str) -> list[str]:
        words = [sys.executable, "-c", KILLED, str(path)]
        env = {**os.environ, **places, **more}
        ran = subprocess.run(words, cwd=tests, env=env, capture_output=True, text=True)
        assert ran.returncode == (-9 if more else 0), ran.stderr
        return ran.stdout.split()

    mine.write_text("VERSION = '1'\ndef rank(words, ranking):\n    return words(ranking)\n")
    asked(DIE_AT="q6")
    assert not path.exists() and asked() == ["q6", "q7"]
    path.unlink()
    asked(DIE_AT="q6")
    mine.write_text("VERSION = '2'\ndef rank(words, ranking):\n    return (words % 1)(ranking)\n")
    assert asked() == [f"q{number}" for number in range(8)]
    assert {len(hits) for hits in load_results(path).hits.values()} == {1}  # none of the version before


def test_a_torn_last_line_is_asked_again_wherever_it_was_torn(tmp_path):
    path, partial = tmp_path / "bm25.jsonl.gz", tmp_path / "bm25.jsonl.gz.partial"
    whole = run_and_store(tmp_path / "whole.jsonl.gz", WORDS, DATA, name="bm25")
    with pytest.raises(KeyboardInterrupt):
        run_and_store(path, stopping_after(3, WORDS), DATA, name="bm25")
    lines = partial.read_bytes()
    for cut in [0, 10, lines.index(b"\n"), lines.index(b"\n") + 1, len(lines) - 30, len(lines) - 1]:
        partial.write_bytes(lines[:cut])
        assert run_and_store(path, WORDS, DATA, name="bm25") == whole
        path.unlink()


def test_a_system_without_a_version_is_always_run_again_and_from_its_beginning(tmp_path):
    path, stop, asked = tmp_path / "bm25.jsonl.gz", tmp_path / "stop", tmp_path / "asked"
    stage = stoppable(replace(WORDS, version=""), stop, asked)
    stop.write_text("q5")
    with pytest.raises(KeyboardInterrupt):
        run_and_store(path, stage, DATA, name="bm25")
    stop.write_text("")
    for _ in range(2):
        asked.write_text("")
        assert "from_a_stopped_run" not in run_and_store(path, stage, DATA, name="bm25").about
        assert asked.read_text().split() == [f"q{number}" for number in range(8)]
        assert rerun_reason(path, stage, DATA) == "it declares no version"


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "other"}, "system is bm25 there and other now"),
        ({"keep": 7}, "kept is 20 there and 7 now"),
        ({"dataset": DATA.only(["q1", "q2"])}, "questions"),
        (
            {
                "dataset": replace(
                    DATA, queries=tuple(replace(query, text=f"{query.text} indeed") for query in QUERIES)
                )
            },
            "questions",
        ),
        ({"dataset": replace(DATA, qrels={key: {DOCUMENTS[0].id: 1} for key in DATA.qrels})}, "qrels"),
        ({"dataset": Dataset("toy", DOCUMENTS[:-1], QUERIES, DATA.qrels)}, "documents"),
    ],
)
def test_what_comes_from_another_configuration_is_refused(tmp_path, finished, changes, message):
    path = tmp_path / "bm25.jsonl.gz"
    if finished:
        run_and_store(path, WORDS, DATA, name="bm25")
    else:
        with pytest.raises(KeyboardInterrupt):
            run_and_store(path, stopping_after(3, WORDS), DATA, name="bm25")
    given = {"stage": WORDS, "dataset": DATA, "name": "bm25", "keep": KEEP} | changes
    with pytest.raises(BadInput, match=message):
        run_and_store(path, given["stage"], given["dataset"], name=given["name"], keep=given["keep"])


def damaged(lines: list[str]) -> list[tuple[list[str], str]]:
    head, first, *rest = lines
    return [
        ([], "line 1"),
        ([first], "line 1"),
        ([head.replace('"kept"', '"keep"'), first, *rest], "line 1.*kept"),
        ([head, first[:-10], *rest], "line 2: not JSON"),
        ([head, "[1]", *rest], "line 2: not a JSON object"),
        ([head, first, first, *rest], "line 3.*twice"),
        ([head, first.replace('"ids":["', '"ids":["x","'), *rest], "line 2: it must hold"),
        ([head, *rest], "line 8: the file ends after 7 of 8 queries"),
        ([head, first, *rest[:-1]], "line 9: the file ends without its times"),
        ([head], "line 1: the file ends without its times"),
        ([head, first.replace('"scores":[', '"scores":["x",'), *rest], "line 2: it must hold"),
    ]


@pytest.mark.parametrize("number", range(11))
def test_a_broken_result_is_refused_by_file_and_line(tmp_path, number):
    run_and_store(tmp_path / "bm25.jsonl.gz", WORDS, DATA, name="bm25")
    lines = gzip.decompress((tmp_path / "bm25.jsonl.gz").read_bytes()).decode().splitlines()
    broken, message = damaged(lines)[number]
    (tmp_path / "bm25.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in broken).encode()))
    with pytest.raises(BadInput, match=rf"bm25\.jsonl\.gz, {message}") as refused:
        load_results(tmp_path / "bm25.jsonl.gz")
    assert f"Delete {tmp_path / 'bm25.jsonl.gz'}, or put a whole copy in its place" in str(refused.value)


def test_a_result_with_a_flipped_or_missing_byte_is_refused(tmp_path):
    path = tmp_path / "bm25.jsonl.gz"
    run_and_store(path, WORDS, DATA, name="bm25")
    raw = path.read_bytes()
    for broken in (raw[:-20], raw[:200] + bytes([raw[200] ^ 255]) + raw[201:], b"plain text"):
        path.write_bytes(broken)
        with pytest.raises(BadInput, match=r"bm25\.jsonl\.gz"):
            load_results(path)


def test_a_damaged_line_of_a_run_that_was_stopped_names_the_file_to_delete(tmp_path):
    path, partial = tmp_path / "bm25.jsonl.gz", tmp_path / "bm25.jsonl.gz.partial"
    stop, asked = tmp_path / "stop", tmp_path / "asked"
    stop.write_text("q5")
    with pytest.raises(KeyboardInterrupt):
        run_and_store(path, stoppable(WORDS, stop, asked), DATA, name="bm25")
    stop.write_text("")
    lines = partial.read_bytes().splitlines(keepends=True)
    partial.write_bytes(b"".join([lines[0], b"junk\n", *lines[2:]]))
    message = r"bm25\.jsonl\.gz\.partial, line 2: not JSON .*Delete .*bm25\.jsonl\.gz\.partial, or"
    with pytest.raises(BadInput, match=message):
        run_and_store(path, stoppable(WORDS, stop, asked), DATA, name="bm25")
    partial.unlink()
    assert len(run_and_store(path, stoppable(WORDS, stop, asked), DATA, name="bm25").hits) == 8
