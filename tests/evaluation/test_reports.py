import csv
import io
import json
import math
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.work import calls

from kgot_lab.benchmark.recall.datasets import Dataset, load_dataset
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation import significance
from kgot_lab.evaluation.failures import failures
from kgot_lab.evaluation.measures import MEASURES, score
from kgot_lab.evaluation.reports import derive_reports, report
from kgot_lab.evaluation.results import Plan, load_results, save_results
from kgot_lab.evaluation.runner import run_and_store
from kgot_lab.evaluation.runs import Latency, Run, run
from kgot_lab.evaluation.significance import compare, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Hit, Query, ranked
from kgot_lab.viz.html import html, recall_page

PLAN = Plan("bm25", rounds=500)
EVIL = '-->" onload=x></td><script>alert(1)</script><img src=http://evil.example/x>\u202e\x1b[31m'


@pytest.fixture(scope="module")
def dev() -> Dataset:
    return load_dataset("hotpotqa").dev


@pytest.fixture(scope="module")
def results(dev, tmp_path_factory):
    """A folder as the benchmark writes it: two systems on the dev questions of HotpotQA."""
    folder = tmp_path_factory.mktemp("recall")
    PLAN.save(folder / "plan.json")
    for name, stage in {"bm25": bm25(dev.documents), "bm25 flat": bm25(dev.documents, b=0.0)}.items():
        run_and_store(folder / "hotpotqa" / f"{name}.jsonl.gz", stage, dev, name=name)
    return folder


@pytest.fixture(scope="module")
def made(results):
    [own] = derive_reports(results, load_dataset)
    return own


def toy(**more) -> Dataset:
    documents = tuple(Document(id, f"text {id}", f"Title {id}") for id in "abcdef")
    queries = tuple(Query(f"question {number}?", f"q{number}") for number in range(6))
    qrels = {query.id: {"a": 1, "b": 1} for query in queries}
    return Dataset("toy", documents, queries, qrels, {"q0": "easy", "q1": "hard", "q2": "hard"}, **more)


def finding(system: str, ids: str, **other: str) -> Run:
    """A run that found the same letters for each toy query, but others for some."""
    by_query = {f"q{number}": ids for number in range(6)} | other
    hits = {
        query: tuple(Hit(id, -place) for place, id in enumerate(them)) for query, them in by_query.items()
    }
    return Run(system, f"<{system}>", "toy", 20, hits, Latency(0.001, 0.002))


# --- reports ---


def test_a_report_from_results_says_the_same_as_one_from_the_runs(dev, made):
    stages = {"bm25": bm25(dev.documents), "bm25 flat": bm25(dev.documents, b=0.0)}
    runs = [
        run(stage, dev.queries, name=name, dataset="hotpotqa", keep=100) for name, stage in stages.items()
    ]
    live = report(runs, dev, PLAN)
    assert live.rows == made.rows and live.comparisons == made.comparisons and live.csv() == made.csv()
    assert made.row("bm25", "recall@5").mean == pytest.approx(score(runs[0], dev.qrels).mean("recall@5"))


def test_rows_hold_dataset_system_part_measure_mean_interval_and_count(made):
    assert len(made.rows) == 2 * len(MEASURES) and made.parts == ("dev",)
    for row in made.rows:
        assert (row.dataset, row.part, row.n) == ("hotpotqa", "dev", 60)
        assert row.low <= row.mean <= row.high
    with pytest.raises(BadInput, match="no row for"):
        made.row("bm26")


def test_the_exports_hold_every_mean_and_the_plan(made):
    rows = list(csv.DictReader(io.StringIO(made.csv())))
    data = json.loads(made.json())
    assert (
        [row["system"] for row in rows]
        == [row["system"] for row in data["rows"]]
        == [row.system for row in made.rows]
    )
    assert {row["baseline"] for row in rows} == {"bm25"} == {data["plan"]["baseline"]}
    assert data["plan"]["rounds"] == 500
    assert data["systems"]["bm25"]["description"] == "<bm25>"
    assert data["comparisons"]["dev"][0]["system"] == "bm25 flat"
    for text in (repr(made), made.markdown(), made.latex(), made._repr_html_()):
        assert "seed 0" in text and "primary measure recall@5" in text
        assert all(format_decimal(row.mean) in text for row in made.rows)
    assert made.latex().count(r"\begin{tabular}") == made.latex().count(r"\end{tabular}") == 2


def test_test_questions_are_reported_apart():
    data = toy(test_ids=frozenset({"q4", "q5"}))
    made = report(
        [finding("base", "axb"), finding("best", "ab", q5="xx", q4="yz")], data, Plan("base", rounds=200)
    )
    assert made.parts == ("all", "dev", "test")
    assert [made.row("best", "recall@2", p).mean for p in made.parts] == [pytest.approx(4 / 6), 1.0, 0.0]
    assert [made.row("best", "recall@2", part).n for part in made.parts] == [6, 4, 2]
    assert report([finding("base", "ab")], data.dev, Plan("base", rounds=200)).parts == ("dev",)
    assert report([finding("base", "ab")], data.held_out, Plan("base", rounds=200)).parts == ("test",)
    assert report([finding("base", "ab")], toy(), Plan("base", rounds=200)).parts == ("all",)


def test_data_with_classes_are_also_counted_leniently():
    made = report([finding("base", "cd")], toy(classes={"a": "one", "c": "one"}), Plan("base", rounds=200))
    assert made.row("base", "recall@5").mean == 0.0 and made.row("base", "recall@5 lenient").mean == 0.5
    assert "recall@5 lenient" in repr(made)


def test_a_run_that_does_not_fit_is_refused():
    part = replace(finding("part", "ab"), hits={"q0": (Hit("a", 1.0),)})
    with pytest.raises(BadInput, match="part lacks 5 queries"):
        report([finding("base", "ab"), part], toy(), Plan("base"))
    with pytest.raises(BadInput, match="same system name"):
        report([finding("base", "ab"), finding("base", "cd")], toy(), Plan("base"))
    with pytest.raises(UnknownName, match="Known: base"):
        report([finding("base", "ab")], toy(), Plan("bm25", rounds=200))
    with pytest.raises(BadInput, match="without qrels"):
        report([finding("base", "ab")], replace(toy(), qrels={"q0": {"a": 1}}), Plan("base"))


def test_results_of_other_data_are_refused(results, dev, tmp_path):
    shutil.copytree(results, tmp_path / "recall")
    fewer = replace(dev, documents=dev.documents[:-1])
    changed = replace(dev, qrels={**dev.qrels, dev.queries[0].id: {dev.documents[0].id: 1}})
    for other, what in ((fewer, "documents"), (changed, "qrels")):
        with pytest.raises(BadInput, match=rf"hotpotqa/bm25.*other {what}"):
            derive_reports(tmp_path / "recall", lambda name, other=other: other)
    short = dev.only([query.id for query in dev.queries[:5]])
    run_and_store(
        tmp_path / "recall" / "hotpotqa" / "short.jsonl.gz", bm25(dev.documents), short, name="short"
    )
    with pytest.raises(BadInput, match=r"short.*other questions"):
        derive_reports(tmp_path / "recall", load_dataset)


def test_a_folder_without_plan_or_results_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"plan\.json"):
        derive_reports(tmp_path, load_dataset)
    (tmp_path / "plan.json").write_text('{"baseline": "x", "extra": 1}')
    with pytest.raises(BadInput, match="its names are"):
        derive_reports(tmp_path, load_dataset)
    PLAN.save(tmp_path / "plan.json")
    with pytest.raises(BadInput, match="no results"):
        derive_reports(tmp_path, load_dataset)
    assert Plan.load(tmp_path / "plan.json") == PLAN
    with pytest.raises(BadInput, match="not among the measures"):
        Plan("bm25", "recall@7")


def test_comparing_twice_the_systems_is_twice_the_work_and_each_is_compared_once(monkeypatch):
    stage = Stage("all", lambda r: ranked(r.query, {f"d{number}": -float(number) for number in range(100)}))
    queries = tuple(Query("?", f"q{number}") for number in range(100))
    base = run(stage, queries, keep=100)
    qrels = {query.id: {f"d{number % 13}": 1, f"d{number % 7}": 1} for number, query in enumerate(queries)}
    systems = [
        replace(base, system=f"s{number}", hits={query: hits[number:] for query, hits in base.hits.items()})
        for number in range(12)
    ]
    tested: list[int] = []
    monkeypatch.setattr(
        significance, "sign_flip_p", lambda row, **how: tested.append(len(row)) or sign_flip_p(row, **how)
    )
    scores = {own.system: score(own, qrels) for own in systems}
    compare(scores, "s0")
    assert tested == [100] * 11
    half = {name: scores[name] for name in list(scores)[:6]}
    assert calls(lambda: compare(scores, "s0")) < 2.5 * calls(lambda: compare(half, "s0"))


# --- tables ---


def test_numbers_print_as_in_a_paper():
    expected = [".936", "1.000", ".000", "-.013", "1.000"]
    assert [format_decimal(value) for value in (0.9364, 1.0, 0.0, -0.0125, 0.9996)] == expected
    expected = ["+.050", "−.050", ".000", ".000"]
    assert [format_signed(value) for value in (0.05, -0.05, 0.0, -0.0001)] == expected


def test_no_text_leaves_its_cell():
    grid = Grid(EVIL, ("system", EVIL), ((Cell("a | b_c & 50 % \\x"), Cell(EVIL, True)),))
    assert "<script" not in grid.html
    assert "<img" not in grid.html
    assert "\u202e" not in grid.text
    assert "\x1b" not in grid.markdown
    assert r"a \| b\_c" in grid.markdown and r"b\_c \& 50 \% \textbackslash{}x" in grid.latex
    assert "<script" not in grid.markdown.replace("\\<", "")
    with pytest.raises(BadInput, match="needs 2 cells"):
        Grid("", ("a", "b"), ((Cell("x"),),))


# --- failures ---


def test_a_failure_names_what_was_missed_and_what_stood_there_instead():
    found = failures(toy(), [finding("base", "acdefb"), finding("best", "ab", q1="cd")], k=5)
    first, second = found.questions[:2]
    assert first.missed["base"].missing == ("Title b",)
    assert first.missed["base"].instead == ("Title c", "Title d", "Title e", "Title f")
    assert "best" not in first.missed and second.missed["best"].missing == ("Title a", "Title b")
    assert first.relevant == ("Title a", "Title b")
    assert (first.type, found.questions[3].type) == ("easy", "(no type)")


def test_failures_can_be_filtered_and_counted_by_type():
    found = failures(toy(), [finding("base", "ac"), finding("best", "ab", q1="cd")], k=2)
    assert [q.id for q in found.where(fails="base", works="best").questions] == ["q0", "q2", "q3", "q4", "q5"]
    assert [question.id for question in found.where(fails="best").questions] == ["q1"]
    assert [question.id for question in found.where(type="hard", works="best").questions] == ["q2"]
    assert found.by_type()["hard"] == {"base": (2, 2), "best": (1, 2)}
    assert found.by_type()["easy"] == {"base": (1, 1), "best": (0, 1)}
    for wrong in ({"fails": "x"}, {"works": "x"}, {"type": "x"}):
        with pytest.raises(UnknownName):
            found.where(**wrong)
    with pytest.raises(BadInput, match="from 1 to 20, not 21"):
        failures(toy(), [finding("base", "ab")], k=21)


def evil() -> Dataset:
    data = toy()
    queries = tuple(replace(query, text=EVIL) for query in data.queries)
    documents = tuple(replace(document, title=EVIL) for document in data.documents)
    return replace(data, queries=queries, documents=documents, types={query.id: EVIL for query in queries})


def test_texts_of_passages_and_questions_are_escaped():
    found = failures(evil(), [finding("base", "ac")], k=2)
    assert "<script" not in found.html()
    assert "<img" not in found.html()
    assert "\u202e" not in found.html()
    assert "\x1b" not in repr(found)


# --- the page ---


class Tags(HTMLParser):
    """What tags a page has, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        assert not [name for name, _ in attributes if name.startswith("on")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)


def test_the_page_stands_alone_with_tables_plots_and_failures(made, tmp_path):
    path = html(made).save(tmp_path / "deep" / "recall.html")
    page = path.read_text(encoding="utf-8")
    tags = Tags(page)
    assert not tags.open and tags.seen.count("svg") == 3 and "script" not in tags.seen
    assert "details" in tags.seen
    assert not re.search(r"(?i)\w+://|href=\"(?!#)|src=|url\((?!#)", page)
    assert all(format_decimal(row.mean) in page for row in made.rows) and "aria-label" in page
    assert recall_page([made]) == page


def test_a_page_with_hostile_texts_and_names_holds_no_tag_of_theirs():
    runs = [
        replace(finding(f"{EVIL} $x$ {number}", "acb" if number else "ab"), kept=20) for number in range(2)
    ]
    made = report(runs, evil(), Plan(runs[0].system, rounds=200))
    tags = Tags(recall_page([made]))
    assert not tags.open and "script" not in tags.seen and "img" not in tags.seen


def test_the_page_does_not_list_what_was_missed_on_test_questions():
    data = toy(test_ids=frozenset({"q4", "q5"}))
    page = recall_page(
        [report([finding("base", "ac"), finding("best", "ab", q1="cd")], data, Plan("base", rounds=200))]
    )
    assert "question 1?" in page and "question 4?" not in page and "test split is not shown" in page


def test_a_published_run_without_times_can_be_a_result(tmp_path):
    published = replace(finding("base", "ab"), kept=8, latency=Latency(float("nan"), float("nan")))
    save_results(published, tmp_path / "x.jsonl.gz")
    read = load_results(tmp_path / "x.jsonl.gz")
    assert read == published and math.isnan(read.latency.median) and read.kept == 8
    shallow = Plan("base", "all@8", ("recall@5", "all@8"), rounds=200)
    assert report([read], toy(), shallow).row("base").mean == 1.0


def test_a_name_ends_no_comment_of_latex_and_is_no_formula_in_a_spreadsheet(dev):
    name = '=HYPERLINK("http://evil.example")\n\\input{/etc/passwd}'
    made = report([run(bm25(dev.documents), dev.queries, name=name)], dev, Plan(name, rounds=50))
    assert not any(line.lstrip().startswith(r"\input") for line in made.latex().splitlines())
    cells = [cell for row in csv.reader(io.StringIO(made.csv())) for cell in row]
    assert f"'{name}" in cells and not any(cell.startswith("=") for cell in cells)
    assert any(cell.startswith("0.") for cell in cells), "numbers stay numbers"


def test_every_number_is_derived_again_to_the_byte(results, made):
    [again] = derive_reports(results, load_dataset)
    for export in ("markdown", "latex", "csv", "json"):
        assert getattr(again, export)() == getattr(made, export)()
