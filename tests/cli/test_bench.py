"""`kgot-lab bench` as a user types it: on a folder of their own, stopped and gone on with, and with every
kind of bad input.
"""

import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.beir import to_beir
from support.tiny_collection import tiny
from support.waiting import AMPLE, until
from support.workers import local_cluster

from kgot_lab.benchmark.recall import bench as benchmark
from kgot_lab.benchmark.recall.datasets import BUNDLED
from kgot_lab.cli.terminal import progress_bar
from kgot_lab.evaluation.results import Plan

pytestmark = pytest.mark.extended

with_torch = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="make test WITH=torch has it"
)
# the two columns with times, whatever their width
TABLE = re.compile(r" +([\d.–]+ +[\d.–]+|ms +ms 95 %)$", re.MULTILINE)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One cache of vectors for all tests of this file."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path, cache):
    """A folder to work in, with a small collection."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(benchmark, "DEFAULT_PLAN", replace(benchmark.DEFAULT_PLAN, rounds=300))
    to_beir(tiny(), "mine")
    return tmp_path


@pytest.fixture
def bench(kgot_lab):
    """`kgot-lab bench`, run in this process: exit code, standard output, standard error."""
    return partial(kgot_lab, "bench")


def refused(ran: tuple[int, str, str]) -> str:
    """The one line of an error; nothing else may be said."""
    code, out, err = ran
    lines = [line for line in err.splitlines() if line.strip()]
    assert code == 1 and not out and len(lines) == 1 and lines[0].startswith("error: "), ran
    return lines[0]


def table_of(folder: str) -> list[dict[str, str]]:
    return list(csv.DictReader((Path(folder) / "report.csv").read_text(encoding="utf-8").splitlines()))


# --- whole runs ---


def test_a_folder_of_yours_is_measured_by_all_systems_and_again_from_the_results(bench):
    code, out, err = bench("mine", "--folder", "out")
    assert code == 0 and "Warning" not in err and "DEBUG" not in err, err
    assert out.startswith("mine/test, all: 8 queries, 12 documents")
    assert "follow, sentences" in out
    assert "recall@5 against convex" in out
    assert len(list(Path("out/mine-test").glob("*.jsonl.gz"))) == 38
    page, table = Path("out/report.html").read_text(encoding="utf-8"), table_of("out")
    assert page.count("<svg") == 3 and "Left out, all in the tables" in page
    assert len({row["system"] for row in table}) == 38 and {row["dataset"] for row in table} == {"mine/test"}
    [whole] = json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    assert len(whole["systems"]) == 38 and r"\toprule" in Path("out/report.tex").read_text(encoding="utf-8")
    assert "follow, sentences" in Path("out/report.md").read_text(encoding="utf-8")
    written = {path: path.stat().st_mtime_ns for path in Path("out/mine-test").iterdir()}
    assert bench("mine", "--folder", "out")[:2] == (0, out)
    assert written == {path: path.stat().st_mtime_ns for path in Path("out/mine-test").iterdir()}
    assert Path("out/report.html").read_text(encoding="utf-8") == page


def test_only_some_systems_and_the_baseline_of_several_data_sets(bench):
    to_beir(tiny(), "yours")
    code, out, _ = bench("mine", "yours", "--only", "bm25", "--only", "follow, sentences", "--folder", "out")
    assert code == 0 and "mine/test, all" in out and "yours/test, all" in out and "rrf" not in out
    assert sorted(path.name.split(".")[0] for path in Path("out/yours-test").iterdir()) == [
        "bm25",
        "convex",
        "follow-sentences",
    ]
    rows = table_of("out")
    assert {row["dataset"] for row in rows} == {"mine/test", "yours/test"}


def test_the_report_of_a_folder_is_over_all_data_sets_it_holds(bench, monkeypatch):
    monkeypatch.setitem(BUNDLED, "tiny", lambda: replace(tiny(), name="tiny"))  # two small sets known by name
    monkeypatch.setitem(BUNDLED, "small", lambda: replace(tiny(), name="small"))
    only = ["--only", "bm25", "--folder", "out"]
    assert bench("tiny", *only)[0] == 0 and {row["dataset"] for row in table_of("out")} == {"tiny"}
    first = [row for row in table_of("out") if row["dataset"] == "tiny"]
    code, out, _ = bench("small", "--dev", *only)
    assert code == 0 and out.index("small, all") < out.index("tiny, all")
    assert {row["dataset"] for row in table_of("out")} == {"tiny", "small"}
    assert [row for row in table_of("out") if row["dataset"] == "tiny"] == first
    assert {
        report["dataset"] for report in json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    } == {
        "tiny",
        "small",
    }


def test_a_report_that_would_lose_data_of_yours_is_refused_before_anything_runs(bench):
    to_beir(tiny(), "yours")
    assert bench("mine", "--only", "bm25", "--folder", "out")[0] == 0
    before = Path("out/report.csv").read_bytes()
    said = refused(bench("yours", "--only", "bm25", "--folder", "out"))
    assert (
        "out also holds runs on mine/test, which the report would lose: name the folder of those data too"
        in said
    )
    assert Path("out/report.csv").read_bytes() == before and not Path("out/yours-test").exists()
    code, _, _ = bench("yours", "mine", "--only", "bm25", "--folder", "out")
    assert code == 0 and {row["dataset"] for row in table_of("out")} == {"mine/test", "yours/test"}


HELD_AFTER_ONE = """
import signal, threading
from kgot_lab.cli.app import main
from kgot_lab.benchmark.recall import filling as bench
run_and_store = bench.run_and_store
def held(*what, **how):
    run_and_store(*what, **how)
    threading.Event().wait()
bench.run_and_store = held
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started deaf to it
main()
"""


def test_a_run_that_is_stopped_says_of_a_report_that_is_there_that_it_is_of_an_earlier_one(
    bench, monkeypatch
):
    def stopped(*wanted):
        raise KeyboardInterrupt

    assert bench("mine", "--only", "bm25", "--folder", "out").code == 0
    monkeypatch.setattr("kgot_lab.cli.bench.run_reports", stopped)
    assert bench("mine", "--folder", "new").err.rstrip().endswith("the same command goes on from there.")
    assert (
        bench("mine", "--folder", "out").err.rstrip().endswith("The report there is that of an earlier run.")
    )


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(bench, tmp_path):
    # another process does not have the fewer rounds of these tests
    benchmark.DEFAULT_PLAN.save(Path("plan.json"))
    words = [*"mine --only bm25 --only lsa --only follow --only gate --plan plan.json".split()]
    code, whole, _ = bench(*words, "--folder", "whole")
    assert code == 0
    command = [sys.executable, "-c", HELD_AFTER_ONE, "bench", *words, "--folder", "out"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    until(lambda: list(Path("out").rglob("*.gz")) or process.poll() is not None, "the first result is there")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=AMPLE)
    assert process.returncode == 130
    assert not out
    assert "Stopped. Everything so far is in out; the same command goes on from there." in err
    assert "Traceback" not in err and len(list(Path("out").rglob("*.gz"))) == 1
    code, resumed, _ = bench(*words, "--folder", "out")
    assert code == 0 and TABLE.sub("", resumed) == TABLE.sub("", whole).replace("whole/", "out/")


def test_killed_in_the_middle_of_a_system_it_goes_on_too(bench):
    code, whole, _ = bench("mine", "--only", "bm25", "--folder", "out")
    path = Path("out/mine-test/bm25.jsonl.gz")
    head, *rows, _ = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    path.unlink()
    torn = [
        head,
        *(json.dumps(json.loads(row) | {"seconds": 0.001}) + "\n" for row in rows[:3]),
        rows[3][:20],
    ]
    path.with_name("bm25.jsonl.gz.partial").write_text("".join(torn), encoding="utf-8")
    code, resumed, _ = bench("mine", "--only", "bm25", "--folder", "out")
    assert code == 0 and TABLE.sub("", resumed) == TABLE.sub("", whole).replace(
        "follow, sentences.", "follow, sentences. Rankings taken from a run that was stopped: 3 of 8 of bm25."
    )
    assert not list(Path("out").rglob("*.partial"))


def test_the_workers_of_a_scheduler_give_the_same_report(bench):
    words = ["mine", "--only", "bm25", "--only", "follow, sentences"]
    code, alone, _ = bench(*words, "--folder", "alone")
    with local_cluster(processes=True) as cluster:
        ran, shared, _ = bench(*words, "--folder", "shared", "--dask", cluster.scheduler_address)
    assert code == ran == 0 and TABLE.sub("", shared) == TABLE.sub("", alone).replace("alone/", "shared/")


def test_another_embedder_is_named_in_every_report_and_what_is_run_again_for_it_is_told(bench):
    words = ["mine", "--only", "bm25", "--only", "trail", "--folder", "out"]
    assert bench(*words)[0] == 0
    code, out, err = bench(*words, "--embedder", "wordllama")
    again = (
        "run again on mine/test, since its embedder changed (before: all-MiniLM-L6-v2-int8): convex; trail"
    )
    assert code == 0 and again in err and "documents, vectors by wordllama-l2-supercat-256" in out
    for ending in ("md", "tex", "csv", "json", "html"):
        text = Path(f"out/report.{ending}").read_text(encoding="utf-8")
        assert "wordllama-l2-supercat-256" in text
        assert (
            ending in ("csv", "json")
            or "The weights of trail were learnt with all-MiniLM-L6-v2-int8, the bundled embedder" in text
        )
    code, same, err = bench(*words, "--embedder", "wordllama")
    assert (code, same) == (0, out) and "run again" not in err
    code, out, err = bench("mine", "--only", "bm25", "--folder", "out")
    assert (
        "run again on mine/test, since its embedder changed (before: wordllama-l2-supercat-256): convex"
        in err
    )
    assert "another --folder keeps both" in err
    assert re.search(
        r"Vectors by all-MiniLM-L6-v2-int8 \(\w{8}\)\. By wordllama-l2-supercat-256 \(\w{8}\): trail\.", out
    )


def test_your_own_plan_is_followed_kept_and_never_replaced(bench):
    Plan("bm25", "recall@2", rounds=300, margin=0.1).save(Path("plan.json"))
    code, out, _ = bench("mine", "--only", "follow", "--plan", "plan.json", "--folder", "out")
    assert code == 0 and "recall@2 against bm25" in out and "margin 0.1" in out and "convex" not in out
    assert Plan.load(Path("out/plan.json")) == Plan.load(Path("plan.json"))
    assert bench("mine", "--only", "follow", "--folder", "out")[1] == out  # the plan of the folder
    Plan("bm25", "recall@2", rounds=300, margin=0.2).save(Path("plan.json"))
    said = refused(bench("mine", "--only", "follow", "--plan", "plan.json", "--folder", "out"))
    assert "holds another plan (margin is 0.1 there and 0.2 now)" in said


# --- bad input ---


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["mine", "--only", "folow"], "unknown system of these data 'folow'; did you mean 'follow'?"),
        (["nosuch"], "unknown data set 'nosuch'. Known: 2wiki"),
        (
            ["nosuch"],
            "; one of the bundled ones with -untitled or -mixed behind its name; parallelparc; storyanalogy-mc; "
            "your own folder as BEIR has them",
        ),
        (["musique-498-untitld"], "did you mean 'musique-498-untitled'?"),
        (
            ["./nosuch"],
            "there is no folder './nosuch'; a folder of yours holds corpus.jsonl, queries.jsonl and qrels/test.tsv",
        ),
        (
            ["mine", "--embedder", "wordlama"],
            "unknown embedder 'wordlama'; did you mean 'wordllama'? Known: all-minilm",
        ),
        (["mine", "--embedder", "BAAI/nosuch"], "did you mean 'sentence-transformers:BAAI/nosuch'?"),
        (
            ["mine", "--embedder", "lsa"],
            "lsa learns from the documents of one data set, so it is no embedder for all systems",
        ),
        (["mine", "--embedder", "api"], "needs a server and a model: api:openai:text-embedding-3-small"),
        (["mine", "--embedder", "api:nosuch:model"], "unknown server 'nosuch'"),
        pytest.param(
            ["mine", "--embedder", "mine"],
            "the folder 'mine' holds no model that sentence-transformers can load",
            marks=with_torch,
        ),
        (["."], "has no corpus.jsonl"),
        (["mine", "./mine"], "two of the data sets are called 'mine/test'"),
        (["mine", "--plan", "mine/corpus.jsonl"], "corpus.jsonl does not hold the plan of a benchmark"),
        (["mine", "--dask", "127.0.0.1:8786"], "a scheduler of Dask has an address such as tcp://HOST:8786"),
        (["mine", "--folder", "mine/corpus.jsonl"], "cannot write mine/corpus.jsonl/plan.json"),
        (["mine", "--folder", "mine/corpus.jsonl/out"], "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(bench, words, why):
    assert why in refused(bench(*words, *([] if "--folder" in words else ["--folder", "out"])))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"rounds": "x"}, "the argument 'rounds' is a whole number"),
        ({"rounds": 100.5}, "whole number, not 100.5"),
        ({"seed": "x"}, "the argument 'seed' is a whole number"),
        ({"measures": None}, "the argument 'measures' is a list"),
        ({"measures": "recall@5"}, "the argument 'measures' is a list"),
        ({"margin": None}, "the argument 'margin' is a number, not None"),
        ({"baseline": ["bm25"]}, "the argument 'baseline' is a text"),
        ({"expected": "nobody"}, "unknown system expected best 'nobody'"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused_before_anything_runs(bench, changed, why):
    Path("plan.json").write_text(json.dumps({"baseline": "bm25", **changed}))
    assert why in refused(bench("mine", "--only", "bm25", "--plan", "plan.json", "--folder", "out"))
    assert not list(Path("out").rglob("*.gz"))


@pytest.mark.parametrize(
    ("file", "change", "why"),
    [
        ("corpus.jsonl", lambda text: "", "there are no documents"),
        ("corpus.jsonl", lambda text: text + text.splitlines()[0], "occur more than once, for example 'd00'"),
        ("queries.jsonl", lambda text: text + text.splitlines()[0], "occur more than once, for example 'q0'"),
        ("corpus.jsonl", lambda text: text[:-20], "corpus.jsonl, line 12: not JSON"),
        (
            "qrels/test.tsv",
            lambda text: text + "q0\tnosuch\t1\n",
            "judgements of an unknown document or query",
        ),
        (
            "qrels/test.tsv",
            lambda text: text.replace("\t1", "\t0"),
            "no query of mine/test has a relevant document",
        ),
        ("queries.jsonl", lambda text: "", "there are no queries"),
    ],
)
def test_broken_data_are_refused_in_one_line(bench, file, change, why):
    path = Path("mine") / file
    path.write_text(change(path.read_text()))
    assert why in refused(bench("mine", "--folder", "out"))


def test_a_broken_results_file_is_named_before_anything_is_run(bench):
    assert bench("mine", "--only", "bm25", "--folder", "out")[0] == 0
    Path("out/mine-test/bm25.jsonl.gz").write_bytes(b"junk")
    said = refused(bench("mine", "--only", "bm25", "--folder", "out"))
    assert "bm25.jsonl.gz is not a results file that can be read" in said
    assert "Delete out/mine-test/bm25.jsonl.gz, or put a whole copy" in said
    assert len(list(Path("out/mine-test").iterdir())) == 2
    Path("out/mine-test/bm25.jsonl.gz").unlink()
    assert bench("mine", "--only", "bm25", "--folder", "out")[0] == 0


def test_a_question_without_a_word_is_refused_by_its_id(bench):
    queries = Path("mine/queries.jsonl")
    queries.write_text(queries.read_text().replace("Where did Alan Turing study?", "??? !!"))
    assert "1 query without a letter or digit, for example 'q" in refused(bench("mine", "--folder", "out"))
    assert not Path("out/mine-test").exists()


def test_a_bar_shows_brackets_of_names_as_they_are(capsys):
    with progress_bar("[red]set[/red]") as progress:
        progress(1, 2, "bm25[k1=1] [bold]on[/bold] mine [/]")
    assert "bm25[k1=1] [bold]on[/bold] mine [/]" in capsys.readouterr().err
