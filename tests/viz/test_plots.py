"""Plots: one style, readable in grey, with words and numbers beside them; drawn here from real runs, results
and edges.
"""

import gzip
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.reports import Report, derive_reports, report
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.io.files import bundled_path
from kgot_lab.loop import events as happened
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.similarity.delta import TextPair, Thresholds, count_by_band
from kgot_lab.types import Diff, Document, Edge, Hit, Node, Query
from kgot_lab.viz import plots
from kgot_lab.viz.plots.figure import empty_plot, new_figure, plot, short_label
from kgot_lab.viz.plots.retrieval import challenger, shown_systems

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
EVIL = '</text></svg>--><script>alert(1)</script> $x$ <img src=//e.example> \u202e id="m1" xmlns="http://e.example"'
TESTED_ELSEWHERE = {
    "spans",
    "review_reliability",
    "lifelines",
}  # in test_spans, _review_plot, _show_briefings
TRACES = {
    name: load_run(bundled_path("traces") / f"{name}.jsonl")
    for name in ("hotpotqa_demo", "hotpotqa_two_hops", "winter_storm")
}
HOPS = TRACES["hotpotqa_two_hops"]


@pytest.fixture(scope="module")
def report_on_musique(tmp_path_factory) -> Report:
    """Five systems of the benchmark, worked out again from their results with few draws."""
    folder = tmp_path_factory.mktemp("recall")
    plan = replace(Plan.load(RESULTS / "recall" / "plan.json"), rounds=300)
    plan.save(folder / "plan.json")
    (folder / "musique").mkdir()
    for name in ("convex", "bm25", "embeddings", "follow-sentences", "control-no-links"):
        path = RESULTS / "recall" / "musique" / f"{name}.jsonl.gz"
        (folder / "musique" / path.name).write_bytes(path.read_bytes())
    [made] = derive_reports(folder, load_dataset)
    return made


@pytest.fixture(scope="module")
def delta_edges() -> tuple[list[Edge], Thresholds]:
    """The delta edges between the passages of MuSiQue, and the thresholds they passed."""
    with gzip.open(bundled_path("musique-train-100/delta_edges.jsonl.gz"), "rt", encoding="utf-8") as lines:
        head, *rows = map(json.loads, lines)
    edges = [
        Edge(row["source"], "delta", row["target"], {"raw": row["raw"], "skeleton": row["skeleton"]})
        for row in rows
    ]
    return edges, Thresholds(head["thresholds"]["skeleton"], head["thresholds"]["delta"])


@pytest.fixture(scope="module")
def voted() -> plots.Plot:
    """How the votes of the run of two hops fell."""
    return plots.votes(HOPS)


def texts(drawn: plots.Plot) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawn.svg).iter("text")]


def toy(systems: dict[str, str]) -> Report:
    """A report on six questions, where each system found the same letters for each."""
    documents = tuple(Document(id, f"text {id}", f"Title {id}") for id in "abcdef")
    queries = tuple(Query(f"question {number}?", f"q{number}") for number in range(6))
    data = Dataset(EVIL, documents, queries, {query.id: {"a": 1, "b": 1} for query in queries})
    runs = []
    for name, ids in systems.items():
        hits = {query.id: tuple(Hit(id, -place) for place, id in enumerate(ids)) for query in queries}
        runs.append(Run(name, name, EVIL, 20, hits, Latency(0.001, 0.002)))
    return report(runs, data, Plan(next(iter(systems)), rounds=200))


# --- the style ---


def every_plot(musique: Report, edges: list[Edge]) -> dict[str, plots.Plot]:
    return {
        "recall_curves": plots.recall_curves(musique),
        "scatter": plots.scatter(musique),
        "pace": plots.pace(musique),
        "votes": plots.votes(HOPS),
        "growth": plots.growth(HOPS),
        "bands": plots.bands(edges),
    }


def test_every_plot_is_a_picture_with_words_and_numbers_that_asks_for_nothing(report_on_musique, delta_edges):
    made = every_plot(report_on_musique, delta_edges[0])
    assert made.keys() == set(plots.PLOTS) - TESTED_ELSEWHERE
    for name, drawn in made.items():
        root = ET.fromstring(drawn.svg)
        assert (root.tag, root.get("role"), root.get("aria-label")) == ("svg", "img", drawn.alt), name
        assert len(drawn.alt) > 40 and repr(drawn) == drawn.alt and drawn.numbers
        assert "http" not in drawn.svg
        assert not re.search(r"url\((?!#)|href=\"(?!#)|<style|<metadata|<script", drawn.svg)
        assert drawn._repr_svg_().count("http") == 1 and len(drawn.svg) < 60_000
        assert drawn._repr_html_().startswith('<img src="data:image/svg+xml;base64,')
        assert "alt=" in drawn._repr_html_()


def test_a_table_with_the_numbers_stands_beside_a_plot(voted):
    told = voted.table()
    assert "The numbers of the plot: 1 row" in repr(told) and "not asked" in told.html
    assert "the first 2 shown" in repr(plots.growth(HOPS).table(limit=2))


@pytest.mark.extended
def test_the_same_numbers_give_the_same_bytes_in_another_process_and_whatever_the_reader_has_set(voted):
    code = (
        "import sys, matplotlib; matplotlib.rcParams.update({'font.size': 30, 'axes.facecolor': 'black', 'text.usetex': False})\n"
        "from kgot_lab.io.files import bundled_path; from kgot_lab.loop.trace import load_run; from kgot_lab.viz import plots\n"
        "sys.stdout.write(plots.votes(load_run(bundled_path('traces') / 'hotpotqa_two_hops.jsonl')).svg)"
    )
    command, options = [sys.executable, "-c", code], {"check": True, "text": True, "encoding": "utf-8"}
    there = subprocess.run(command, capture_output=True, timeout=600, **options).stdout
    assert there == voted.svg


def test_a_plot_is_saved_as_svg_pdf_and_png_and_as_nothing_else(tmp_path):
    drawn = plots.growth(HOPS)
    starts = {"svg": b'<svg xmlns="http://www.w3.org/2000/svg"', "pdf": b"%PDF", "png": b"\x89PNG"}
    for kind, start in starts.items():
        first = drawn.save(tmp_path / f"one.{kind}").read_bytes()
        assert first.startswith(start) and first == drawn.save(tmp_path / f"two.{kind}").read_bytes()
        assert b"/CreationDate" not in first and b"Matplotlib" not in first
    ET.parse(tmp_path / "one.svg")
    with pytest.raises(BadInput, match=r"saved as \.svg, \.pdf or \.png"):
        drawn.save(tmp_path / "plot.jpg")


def test_whatever_a_name_says_it_stays_text():
    made = toy({EVIL: "acb", "_hidden": "ab", "$x$ and $y$": "ba"})
    for drawn in (plots.recall_curves(made), plots.scatter(made, second="$x$ and $y$"), plots.pace(made)):
        root = ET.fromstring(drawn.svg)
        drawn_tags = {node.tag for node in root.iter()}
        assert drawn_tags <= {"svg", "g", "path", "defs", "use", "text", "clipPath", "rect", "pattern"}
        assert not {
            name for node in root.iter() for name in node.attrib if name.startswith("on") or name == "src"
        }
        assert "<script" not in drawn._repr_html_() and "\u202e" not in drawn.alt
    said = texts(plots.recall_curves(made))
    assert " _hidden" in said and any(text.startswith("$x$ and $y$") for text in said)
    with new_figure(30, 2) as (figure, [axes]):
        axes.text(0, 0, short_label(EVIL, 200))
        assert 'id="m1" xmlns="http://e.example"' in "".join(texts(plot(figure, EVIL, [])))


@pytest.mark.parametrize("name", ["漢" * 300, "_"], ids=["long and wide", "underscore"])
def test_a_name_of_any_length_and_script_leaves_room_for_the_picture(name):
    vote = happened.Voted(choice=name, inserts=1, retrieves=0, invalid=0, possible=3)
    write = happened.Wrote(statement="", diff=Diff((Node("a"),)))
    run = [vote, write]
    many = {f"{number}{name}": run for number in range(4)}
    made = [plots.votes(run), plots.growth(many), plots.scatter(toy({name: "ab", "b": "ba"}))]
    for drawn in made:
        assert ET.fromstring(drawn.svg).tag == "svg" and max(len(text) for text in texts(drawn)) <= 60


def test_where_there_is_nothing_to_draw_the_picture_says_so():
    drawn = empty_plot("the well is dry")
    assert "the well is dry" in texts(drawn) and drawn.alt == "Nothing to draw: the well is dry"
    assert not drawn.numbers
    assert "0 rows" in repr(drawn.table())


# --- recall ---


def test_curves_hold_recall_and_its_interval_at_each_depth(report_on_musique):
    drawn = plots.recall_curves(report_on_musique)
    assert len(drawn.numbers) == 5 * 20
    by_place = {(row["system"], row["k"]): row for row in drawn.numbers}
    for system in shown_systems(report_on_musique):
        own = report_on_musique.row(system, "recall@5", "all")
        at_five = by_place[system, 5]
        assert at_five["recall"] == pytest.approx(own.mean, abs=1e-5) and at_five["questions"] == own.n
        assert (at_five["low"], at_five["high"]) == (
            pytest.approx(own.low, abs=1e-5),
            pytest.approx(own.high, abs=1e-5),
        )
        means = [by_place[system, k]["recall"] for k in range(1, 21)]
        assert means == sorted(means)
    assert "At 5: follow, sentences .7" in drawn.alt and "convex (baseline)" in texts(drawn)


def test_curves_of_chosen_systems_show_these_alone_each_with_its_band(report_on_musique):
    drawn = plots.recall_curves(report_on_musique, ["bm25", "convex"])
    assert {row["system"] for row in drawn.numbers} == {"bm25", "convex"} and "embeddings" not in texts(drawn)
    assert drawn.svg.count("opacity: 0.14") == 2
    with pytest.raises(UnknownName, match="did you mean 'bm25'"):
        plots.recall_curves(report_on_musique, ["bm52"])


@pytest.mark.extended
def test_a_scatter_counts_the_questions_each_system_wins(report_on_musique):
    drawn = plots.scatter(report_on_musique, "bm25", "embeddings")
    ours, theirs = (report_on_musique.scores[name].per_query("recall@5") for name in ("bm25", "embeddings"))
    wins = sum(theirs[query] > ours[query] for query in ours)
    assert sum(row["questions"] for row in drawn.numbers) == len(ours)
    assert sum(row["questions"] for row in drawn.numbers if row["up"] > row["across"]) == wins
    assert f"embeddings better: {wins}" in texts(drawn) and f"embeddings is better in {wins}" in drawn.alt
    fine = plots.scatter(report_on_musique, measure="ndcg@10")
    assert any("area of a mark" in text for text in texts(fine)) and challenger(report_on_musique) in fine.alt
    with pytest.raises(UnknownName):
        plots.scatter(report_on_musique, "convex", "no such system")
    with pytest.raises(UnknownName):
        plots.scatter(report_on_musique, measure="recall@7")


def test_pace_leaves_untimed_runs_out_and_says_so(report_on_musique):
    drawn = plots.pace(report_on_musique)
    assert {row["system"] for row in drawn.numbers} == {run.system for run in report_on_musique.runs}
    assert "5 of 5 systems" in drawn.alt
    never = Latency(float("nan"), float("nan"))
    bare = replace(
        report_on_musique, runs=tuple(replace(run, latency=never) for run in report_on_musique.runs)
    )
    assert plots.pace(bare).alt == "Nothing to draw: no run of the report on musique holds times"


# --- runs ---


def test_votes_show_how_each_vote_fell_and_what_share_agreed():
    drawn = plots.votes(HOPS)
    assert [
        (row["step"], row["RETRIEVE"], row["INSERT"], row["not asked"], row["agreement"])
        for row in drawn.numbers
    ] == [(2, 2, 0, 1, 1.0)]
    assert {"after step 2", "RETRIEVE, 100% agreed", "not asked"} <= set(texts(drawn))
    assert "2 turns went on without a vote" in drawn.alt


def test_votes_of_several_runs_are_gathered_by_outcome():
    split = happened.Voted(step=1, choice="INSERT", inserts=2, retrieves=1, invalid=0, possible=3)
    drawn = plots.votes({**TRACES, "split": [split]})
    assert {"3 votes", "1 vote", "INSERT, 67% agreed"} <= set(texts(drawn)) and len(drawn.numbers) == 4


def test_growth_ends_at_the_size_of_the_graph():
    drawn, graph = plots.growth(HOPS), graph_after(HOPS.events)
    assert (drawn.numbers[-1]["nodes"], drawn.numbers[-1]["edges"]) == (len(graph), len(graph.edges))
    assert sum(row["what"] == "refused" for row in drawn.numbers) == 3 and "something refused" in texts(drawn)
    later = plots.growth(HOPS, nodes=10, edges=5)
    assert (later.numbers[-1]["nodes"], later.numbers[0]["edges"]) == (len(graph) + 10, 5)


def test_growth_of_many_writes_names_some_of_them_and_of_refusals_alone_shows_these():
    writes = [
        happened.Wrote(step=number // 3, statement="", diff=Diff((Node(f"{number}"),)))
        for number in range(30)
    ]
    drawn = plots.growth(writes)
    assert drawn.numbers[-1]["nodes"] == 30 and sum(text.startswith("step ") for text in texts(drawn)) <= 12
    refused = plots.growth([happened.Refused(step=1, statement="", reason="no", writing=True)])
    assert "something refused" in texts(refused) and "0 writes" in refused.alt and "refused: 1" in refused.alt


def test_growth_of_several_runs_has_a_line_for_each_and_of_many_a_median():
    assert TRACES.keys() <= set(texts(plots.growth(TRACES)))
    many = plots.growth({f"run {number}": HOPS for number in range(9)})
    assert any(text.startswith("median") for text in texts(many)) and "9 graphs" in many.alt


@pytest.mark.parametrize("verb", [plots.votes, plots.growth])
def test_what_is_no_run_is_refused_with_what_would_do(verb):
    for wrong in ([1, 2], {"a": ["text"]}, 7, "hotpotqa_demo"):
        with pytest.raises(BadInput, match="a run is a Trace or its events"):
            verb(wrong)
    with pytest.raises(BadInput, match="same name"):
        verb([HOPS, HOPS])


# --- bands ---


def test_bands_count_the_delta_edges_of_musique(delta_edges):
    edges, thresholds = delta_edges
    drawn = plots.bands(edges, thresholds=thresholds)
    counts = count_by_band(
        TextPair("", "", edge.properties["raw"], edge.properties["skeleton"]).band for edge in edges
    )
    assert sum(row["pairs"] for row in drawn.numbers) == len(edges) == 2165 and len(drawn.numbers) < 400
    assert all(
        f"{name} " in " ".join(texts(drawn)) and f"{count:,} {name}" in drawn.alt
        for name, count in counts.items()
    )
    assert any("area of a mark" in text for text in texts(drawn))
    assert any("skeletons ≥ .799" in text for text in texts(drawn))


def test_a_few_pairs_are_drawn_one_by_one_and_vetoed_ones_are_hollow():
    pairs = [TextPair("a", "b", 0.1, 0.5), TextPair("c", "d", 0.6, 0.5), TextPair("a", "d", 0.3, 0.31)]
    vetoed = Edge("a", "delta", "c", {"raw": 0.2, "skeleton": 0.3, "veto": "roles are turned around"})
    drawn = plots.bands([*pairs, vetoed])
    assert [row["band"] for row in drawn.numbers] == ["negative", "low", "middle", "high"]
    assert [row["pairs"] for row in drawn.numbers] == [1] * 4
    assert "hollow: vetoed, 1" in texts(drawn) and {"0", ".05", ".15"} <= set(texts(drawn))
    assert "hollow: vetoed, 1" not in texts(plots.bands(pairs))


def test_pairs_without_similarities_are_refused_and_no_pairs_say_so():
    with pytest.raises(BadInput, match="edges that say raw and skeleton"):
        plots.bands([Edge("a", "met", "b")])
    with pytest.raises(BadInput, match="not finite"):
        plots.bands([Edge("a", "delta", "b", {"raw": float("nan"), "skeleton": 1.0})])
    with pytest.raises(BadInput, match="finite number"):
        plots.bands([TextPair("a", "b", 0.1, float("inf"))])
    with pytest.raises(BadInput, match="needs pairs"):
        plots.bands(["a"])
    assert plots.bands([]).alt == "Nothing to draw: there are no pairs to draw"
