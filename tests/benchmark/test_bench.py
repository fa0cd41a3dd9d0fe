"""A stranger's systems beside ours: what comes out is what one works out by hand, by the plan that was
written down, or one sentence.
"""

import csv
import gc
import gzip
import json
import tempfile
import weakref
from dataclasses import replace

import numpy as np
import pytest
from support.tiny_collection import tiny

from benchmarks.recall.growth import SyntheticVectors
from kgot_lab.benchmark.recall.bench import DEFAULT_PLAN, bench
from kgot_lab.benchmark.recall.filling import results_path
from kgot_lab.benchmark.recall.systems import TunedSystem, systems
from kgot_lab.errors import BadInput, InsufficientData, LabError, NotInstalled, StoreUnavailable, UnknownName
from kgot_lab.evaluation import runner as running
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import AS_RANKED, BY_ID
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Hit, Ranking, ranked

pytestmark = pytest.mark.extended

DATA, VECTORS = tiny(), SyntheticVectors(64)
PLAN = Plan("base", rounds=200)
# recall@5: .5 on q2, q3, q4 and q6, mean .25
BASE = Stage("base", lambda ranking: ranked(ranking.query, {"d07": 2.0, "d10": 1.0}), "1")


def titled(text):
    return [document for document in DATA.documents if document.title in text]


def named(ranking):  # .5 on q2, q3 and q4, 0 on the others: mean .1875
    return ranked(ranking.query, {document.id: 1.0 for document in titled(ranking.query.text)})


def linked(ranking):  # .5 on q0, q1 and q2, 1 on q3 and q4, 0 on the others: mean .4375
    first = titled(ranking.query.text)
    return ranked(ranking.query, {document.id: 1.0 for one in first for document in (one, *titled(one.text))})


NAMED, LINKED = Stage("named", named, "1"), Stage("linked", linked, "2")
OWN = {"base": BASE, "mine": LINKED}


def always(*ids: str, name: str = "always", scores: tuple[float, ...] | None = None) -> Stage:
    """A stage that gives these hits as they are."""
    hits = tuple(map(Hit, ids, scores or [1.0] * len(ids)))
    return Stage(name, lambda ranking: Ranking(ranking.query, hits))


# ---------------------------------------------------------------------------------------------------


def test_a_stage_of_three_lines_wins_or_loses_as_worked_out_by_hand():
    made = bench(DATA, systems=OWN | {"weak": NAMED}, plan=PLAN)
    assert [run.system for run in made.runs] == ["mine", "base", "weak"]
    assert [made.row(system).mean for system in ("mine", "base", "weak")] == [0.4375, 0.25, 0.1875]
    mine, weak = made.comparisons["all"]["mine"], made.comparisons["all"]["weak"]
    assert (mine.difference.mean, mine.wins, mine.ties, mine.losses) == (0.1875, 4, 3, 1)
    assert (weak.difference.mean, weak.wins, weak.ties, weak.losses) == (-0.0625, 0, 7, 1)
    assert mine.p == 12 / 32 and weak.p == 1.0  # every flip of five gaps of one half, and of one
    assert made.plan is PLAN and "baseline base" in made.markdown()


def test_a_stage_stands_beside_ours_and_ours_are_what_the_benchmark_measures():
    ours = systems(DATA, VECTORS)
    some = {name: ours[name] for name in ("convex", "bm25", "follow", "gate")}
    made = bench(DATA, systems={"mine": LINKED, **some})
    assert {run.system for run in made.runs} == {"mine", "convex", "bm25", "follow", "gate"}
    assert made.plan.baseline == "convex" and made.row("mine").mean == 0.4375
    words = bm25(DATA.documents)
    found = {run.system: run for run in made.runs}["bm25"]
    assert all(found.ids(query.id) == words.search(query).ids[:20] for query in DATA.queries)


def test_a_system_that_has_nothing_to_learn_from_is_left_out_and_the_report_says_why():
    pytest.importorskip("sklearn")
    data = tiny(documents=tuple(Document(document.id, "the and of") for document in DATA.documents))
    learnt = systems(data, VECTORS)["lsa"]
    made = bench(data, systems=OWN | {"lsa": learnt}, plan=PLAN)
    assert {run.system for run in made.runs} == {"base", "mine"}
    for told in (f"{made}", made.markdown(), made._repr_html_()):
        expected = "Left out is lsa: LSA learns from words, and the 12 documents hold none but stop words."
        assert expected in told
    with pytest.raises(InsufficientData, match="LSA learns from words"):
        bench(data, systems={"lsa": learnt, **OWN}, plan=Plan("lsa"))


# ---------------------------------------------------------------------------------------------------------


def test_without_a_plan_the_report_says_that_nobody_gave_one_and_which_baseline_was_taken():
    made = bench(DATA, systems=OWN)
    for said in (repr(made), made.markdown()):
        assert "No plan was given; these defaults were written down before the run: baseline base" in said
    assert "No plan was given" not in repr(bench(DATA, systems=OWN, plan=PLAN))
    assert bench(DATA, systems=OWN | {"convex": NAMED}).plan.baseline == "convex"


def test_measures_primary_rounds_and_seed_are_those_of_the_plan():
    plan = Plan("mine", "all@5", ("all@5", "recall@11", "mrr"), rounds=3, seed=1)
    made = bench(DATA, systems=OWN, plan=plan)
    assert {row.measure for row in made.rows} == {"all@5", "recall@11", "mrr"}
    assert made.comparisons["all"].measure == "all@5" and made.comparisons["all"].baseline == "mine"
    assert made.comparisons["all"]["base"].p in {1 / 4, 2 / 4, 3 / 4, 1.0} and f"{plan}" in repr(made)


def test_the_margin_of_the_plan_changes_what_the_gate_admits():
    gate = systems(DATA, VECTORS)["gate"]
    fine = replace(PLAN, primary="ndcg@10", measures=("ndcg@10", "recall@5", "all@5"))
    said = {
        margin: {
            run.system: run.description
            for run in bench(DATA, systems=OWN | {"gate": gate}, plan=replace(fine, margin=margin)).runs
        }
        for margin in (0.0, 1.0)
    }
    # what makes the fusion better at all
    assert "0.5 bm25" in said[0.0]["gate"] and "fts5" in said[0.0]["gate"]
    assert "0.5 " not in said[1.0]["gate"]  # nothing makes it better by 1
    assert gate().name == gate.build(DEFAULT_PLAN).name


def test_what_is_tuned_is_tuned_for_the_primary_measure_of_the_plan():
    heard = []
    mine = TunedSystem(lambda plan: heard.append((plan.primary, plan.margin)) or LINKED)
    bench(DATA, systems={"mine": mine, "base": BASE}, plan=Plan("base", "ndcg@10", margin=0.5, rounds=200))
    assert heard == [("ndcg@10", 0.5)]
    weights = {
        name: systems(DATA, VECTORS)["convex, tuned"].build(Plan("x", name)).name
        for name in ("recall@5", "ndcg@10")
    }
    assert weights["recall@5"] != weights["ndcg@10"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"margin": float("nan")}, "'margin' is a number, not nan"),
        ({"margin": -0.1}, "not -0.1"),
        ({"margin": "0.02"}, r"is a number, not a str \('0.02'\)"),
        ({"margin": None}, "is a number, not None"),
        ({"rounds": 0}, "rounds must be between 1 and 10,000,000, not 0"),
        ({"rounds": "many"}, "is a whole number"),
        ({"rounds": 100.5}, "is a whole number, not 100.5"),
        ({"seed": -1}, "seed must be a number, 0 or more"),
        ({"seed": "x"}, "is a whole number"),
        ({"baseline": ["base"]}, "'baseline' is a text, not"),
        ({"primary": None}, "'primary' is a text, not None"),
        ({"expected": 3}, "'expected' is a text, not 3"),
        ({"measures": "recall@5"}, r"each item a text\), not a str"),
        ({"measures": None}, r"each item a text\), not None"),
        ({"measures": ("recall@5", 5)}, "each item a text"),
        ({"ties": None}, "'ties' is a text, not None"),
        ({"ties": "by luck"}, "unknown rule for ties 'by luck'"),
        ({"measures": ("recall@5", "recal@2")}, "unknown measure 'recal'; did you mean 'recall'"),
        ({"measures": ("recall@5", "recall")}, "'recall' needs a cut of 1 or more"),
        ({"primary": "recall@7"}, "'recall@7' is not among the measures"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_no_plan(how, why):
    with pytest.raises(BadInput, match=why):
        Plan(**{"baseline": "base", **how})


# -------------------------------------------------------------------------------------------------------


def test_the_plan_is_written_down_before_anything_runs(tmp_path):
    def looking(ranking):
        assert Plan.load(tmp_path / "plan.json") == PLAN
        return linked(ranking)

    bench(DATA, systems={"base": BASE, "mine": Stage("mine", looking)}, plan=PLAN, folder=tmp_path)


def test_the_same_call_on_the_same_folder_goes_on_and_runs_nothing_twice(tmp_path):
    asked = []

    def counted(ranking):
        asked.append(ranking.query.id)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return linked(ranking)

    own = {
        "base": TunedSystem(lambda plan: BASE, version="1"),
        "mine": TunedSystem(lambda plan: Stage("mine", counted), version="1"),
    }
    with pytest.raises(KeyboardInterrupt):
        bench(DATA, systems=own, plan=PLAN, folder=tmp_path)
    assert gc.get_freeze_count() == 0
    made = bench(DATA, systems=own, plan=PLAN, folder=tmp_path)
    assert sorted(asked) == sorted([*DATA.qrels, asked[3]]) and made.row("mine").mean == 0.4375
    again = bench(DATA, systems=own, plan=PLAN, folder=str(tmp_path))
    assert len(asked) == 9 and f"{again}" == f"{made}" and again.csv() == made.csv()


def test_a_system_that_raised_starts_over_once_it_is_repaired(tmp_path):
    def broken(ranking):
        if ranking.query.id == "q3":
            raise ZeroDivisionError("mine")
        return ranked(ranking.query, {"d05": 1.0})  # wrong for every query

    with pytest.raises(LabError, match="'mine' failed on question 'q3'"):
        bench(DATA, systems={"base": BASE, "mine": Stage("mine", broken)}, plan=PLAN, folder=tmp_path)
    made = bench(DATA, systems={"base": BASE, "mine": Stage("mine", linked)}, plan=PLAN, folder=tmp_path)
    assert made.row("mine").mean == 0.4375 and "stopped" not in f"{made}{made.markdown()}"


def test_a_folder_with_another_plan_is_refused_and_left_as_it_was(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        BadInput,
        match=r"holds another plan \(margin is 0.02 there and 0.1 now\), and a plan is not changed afterwards",
    ):
        bench(DATA, systems=OWN | {"more": NAMED}, plan=replace(PLAN, margin=0.1), folder=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_without_a_plan_that_of_the_folder_is_followed(tmp_path):
    plan = replace(PLAN, baseline="mine", seed=7)
    bench(DATA, systems=OWN, plan=plan, folder=tmp_path)
    assert bench(DATA, systems=OWN, folder=tmp_path).plan == plan
    assumed = bench(DATA, systems=OWN, folder=tmp_path / "other").plan
    assert assumed.assumed and bench(DATA, systems=OWN, folder=tmp_path / "other").plan.assumed
    assert "assumed" not in (tmp_path / "plan.json").read_text()
    assert "assumed" in (tmp_path / "other" / "plan.json").read_text()


def test_a_system_that_was_changed_is_run_again_under_its_name_and_what_was_not_is_kept(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    base = results_path(tmp_path, DATA, "base").stat().st_mtime_ns
    again = bench(DATA, systems={"base": BASE, "mine": NAMED}, plan=PLAN, folder=tmp_path)
    assert again.row("mine").mean == 0.1875
    assert results_path(tmp_path, DATA, "base").stat().st_mtime_ns == base


def test_ours_are_run_again_with_another_embedder_where_they_have_one(tmp_path, monkeypatch):
    some = ("bm25", "follow", "convex")
    bench(DATA, systems={name: systems(DATA, VECTORS)[name] for name in some}, folder=tmp_path)
    asked, original = [], running.timed_search
    monkeypatch.setattr(running, "timed_search", lambda s, *how: asked.append(s.name) or original(s, *how))
    bench(DATA, systems={name: systems(DATA, VECTORS)[name] for name in some}, folder=tmp_path)
    assert asked == []
    made = bench(
        DATA, systems={name: systems(DATA, SyntheticVectors(32))[name] for name in some}, folder=tmp_path
    )
    assert len(asked) == 2 * len(DATA.queries) and "bm25" not in asked
    named = {run.system: run.about["embedder"] for run in made.runs}
    assert named["bm25"] == "none"
    assert named["follow"] == f"{SyntheticVectors(32).name} {SyntheticVectors(32).digest}"


def test_the_report_names_the_embedder_of_its_systems_and_which_have_another(tmp_path):
    some, other = ("bm25", "convex", "follow", "trail"), SyntheticVectors(32)
    whole = bench(DATA, systems={name: systems(DATA, VECTORS)[name] for name in some}, folder=tmp_path)
    one, two = (f"{each.name} ({each.digest[:8]})" for each in (VECTORS, other))
    assert whole.embedders == {one: tuple(run.system for run in whole.runs if run.system != "bm25")}
    assert not whole.again
    for told in (f"{whole}", whole.markdown(), whole.latex(), whole._repr_html_()):
        assert f"8 queries, 12 documents, vectors by {VECTORS.name}" in told.replace("{,}", ",")
        assert f"Vectors by {one}." in told
        assert (
            "The weights of trail were learnt with all-MiniLM-L6-v2-int8, the bundled embedder, and not with the one used here."
            in told
        )
    cells = {row["system"]: row["embedder"] for row in csv.DictReader(whole.csv().splitlines())}
    assert cells == {"bm25": "", "convex": one, "follow": one, "trail": one}
    said = []
    mixed = {name: systems(DATA, other)[name] for name in ("convex", "bm25")}
    made = bench(DATA, systems=mixed, folder=tmp_path, progress=lambda *step: said.append(step[2]))
    why = f"its embedder changed (before: {VECTORS.name})"
    assert made.again == {"convex": why} and f"convex on tiny (again, since {why})" in said
    assert f"Vectors by {two}. By {one}: " in f"{made}" and list(made.embedders) == [two, one]


def test_a_result_that_names_no_version_is_reported_and_replaced_where_its_system_is_run(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    path = results_path(tmp_path, DATA, "mine")
    head, *rows, end = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    head = {name: value for name, value in head.items() if name not in ("version", "embedder", "additions")}
    earlier = [head | end | {"format": "recall receipt 1"}, *rows]
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in earlier).encode()))
    before = path.read_bytes()
    assert bench(DATA, systems={"base": BASE}, plan=PLAN, folder=tmp_path).row("mine").mean == 0.4375
    assert path.read_bytes() == before
    made = bench(DATA, systems={"base": BASE, "mine": NAMED}, plan=PLAN, folder=tmp_path)
    assert made.row("mine").mean == 0.1875 and len(made.runs) == 2
    assert made.again == {"mine": "its results name no version"}


@pytest.mark.parametrize(
    ("folder", "why"),
    [("file", "file.plan.json"), ("file/out", "cannot write"), (3, "a path or a text or None, not 3")],
)
def test_a_folder_that_is_none_is_refused(folder, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=why):
        bench(DATA, systems=OWN, plan=PLAN, folder=folder)


def test_without_a_folder_nothing_is_left_on_disk_or_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    held = []

    def build():
        stage = Stage("mine", linked)
        held.append(weakref.ref(stage))
        return stage

    made = bench(DATA, systems={"base": BASE, "mine": build}, plan=PLAN)
    gc.collect()
    assert made.row("mine").mean == 0.4375 and list(tmp_path.iterdir()) == [] and held[0]() is None
    assert gc.get_freeze_count() == 0


# -------------------------------------------------------------------


def takes_a_ranking(ranking):
    return ranking


BAD_SYSTEMS = {
    "none": ({}, 'there are no systems to measure; give one or more, as systems={"mine": stage}'),
    "a list": ([BASE], "'systems' is a dictionary"),
    "one stage": (BASE, "'systems' is a dictionary .*, not a Stage"),
    "a text": (
        {"base": BASE, "mine": "bm25"},
        "each item a Stage or a function",
    ),
    "nothing": ({"base": BASE, "mine": None}, "each item a Stage or a function"),
    "a bare function": ({"base": BASE, "mine": takes_a_ranking}, r"becomes one by Stage\('mine', function\)"),
    "the class": ({"base": BASE, "mine": Stage}, "'mine' is a type, neither a Stage"),
    "no name": ({"base": BASE, "": LINKED}, "a system is named by a text on one line with a letter or digit"),
    "a number": (
        {"base": BASE, 3: LINKED},
        "named by a text on one line with a letter or digit, at most 200 long, not by '3'",
    ),
    "a name of marks": ({"base": BASE, "../..": LINKED}, "not by '../..'"),
    "a long name": ({"base": BASE, "m" * 300: LINKED}, "at most 200 long"),
    "one name twice": (
        {"base": BASE, "my stage": LINKED, "My: stage": NAMED},
        "'my stage' and 'My: stage' have one name as a file",
    ),
    "no baseline": ({"mine": LINKED, "bas": BASE}, "unknown baseline 'base'; did you mean 'bas'"),
}


@pytest.mark.parametrize("what", BAD_SYSTEMS)
def test_systems_that_cannot_be_measured_are_refused(what, tmp_path, monkeypatch):
    given, why = BAD_SYSTEMS[what]
    monkeypatch.setattr(running, "timed_search", lambda *_, **__: pytest.fail("run"))
    with pytest.raises(BadInput, match=why) as refused:
        bench(DATA, systems=given, plan=PLAN, folder=tmp_path / "out")
    assert "\n" not in str(refused.value) and not (tmp_path / "out").exists()


WRONG = {
    "unknown": (
        always("d00", "Paris"),
        "wrong found 'Paris' for query 'q0', which is no document of tiny",
    ),
    "twice": (always("d00", "d00"), "ids of a ranking occur more than once, for example 'd00'"),
    "no number": (always("d00", scores=(float("nan"),)), "document 'd00' has nan"),
    "infinity": (always("d00", scores=(float("inf"),)), "document 'd00' has inf"),
    "a text": (always("d00", scores=("1.0",)), "a score is a finite number"),
    "distances": (
        always("d00", "d01", scores=(0.1, 0.4)),
        "hits for query 'q0' are in another order than their scores",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_ranking_that_would_be_counted_wrongly_is_refused(what):
    stage, why = WRONG[what]
    with pytest.raises(BadInput, match=why):
        bench(DATA, systems={"base": BASE, "wrong": replace(stage, name="wrong")}, plan=PLAN)


def test_an_error_of_a_strangers_own_code_names_the_system_and_the_question_and_keeps_its_cause():
    def broken(ranking):
        return {}[ranking.query.id]

    message = r"the system 'my lane' failed on question 'q0', 'Where was .*: KeyError: 'q0'"
    with pytest.raises(LabError, match=message) as raised:
        bench(DATA, systems={"base": BASE, "my lane": Stage("mine", broken)}, plan=PLAN)
    assert type(raised.value) is LabError and isinstance(raised.value.__cause__, KeyError)
    assert gc.get_freeze_count() == 0

    def cannot():
        raise ValueError("no index")

    message = "the system 'my lane' could not be built: ValueError: no index"
    with pytest.raises(LabError, match=message) as raised:
        bench(DATA, systems={"base": BASE, "my lane": cannot}, plan=PLAN)
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_builder_that_builds_no_stage_is_refused():
    with pytest.raises(BadInput, match="'mine' built a NoneType, not a Stage"):
        bench(DATA, systems={"base": BASE, "mine": lambda: None}, plan=PLAN)


def test_an_embedder_is_not_given_beside_systems():
    with pytest.raises(BadInput, match="an embedder is for our systems, and systems were given"):
        bench(DATA, systems=OWN, embedder="wordllama")
    with pytest.raises(BadInput, match="an object with name, digest"):
        systems(DATA, 3)


def graded(grades):
    """The data with other qrels of one query."""
    return tiny(qrels=DATA.qrels | {"q1": grades})


BAD_DATA = {
    "no qrels": (lambda: tiny(qrels={}), "tiny has no qrels"),
    "a query without qrels": (
        lambda: tiny(qrels={"q0": {"d00": 1}}),
        "7 queries of tiny without qrels, for example 'q1'",
    ),
    "one query": (
        lambda: DATA.only(["q0"]),
        "tiny needs two queries or more to tell a difference from chance, and has 1",
    ),
    "no query": (lambda: tiny(queries=(), qrels={}), "needs two queries or more"),
    "one id twice": (
        lambda: tiny(queries=(*DATA.queries, DATA.queries[0])),
        "1 query ids occur more than once",
    ),
    "no documents": (lambda: tiny(documents=()), "name 'd02', which is no document of tiny"),
    "documents twice": (
        lambda: tiny(documents=(*DATA.documents, DATA.documents[0])),
        "1 document ids occur more than once",
    ),
    "no relevant document": (
        lambda: graded({"d00": 0}),
        "1 query of tiny without a relevant document .* for example 'q1'; leave them out",
    ),
    "no judgement": (lambda: graded({}), "1 query of tiny without a relevant document"),
    "an unknown document": (
        lambda: graded({"d03": 1, "nope": 1}),
        "the qrels of query 'q1' name 'nope', which is no document of tiny",
    ),
    "a list of qrels": (
        lambda: tiny(qrels=[("q0", "d00", 1)]),
        r"\'qrels\' is a dictionary, not \[",
    ),
    "a set of relevant ones": (lambda: graded({"d03"}), "those of query 'q1' are a set"),
    "a grade in words": (
        lambda: graded({"d03": "1"}),
        r"a grade is a whole number .* document 'd03' has a str \('1'\) for query 'q1'",
    ),
    "half a grade": (lambda: graded({"d03": 0.5}), "document 'd03' has 0.5 for query 'q1'"),
    "a huge grade": (lambda: graded({"d03": 2**31 - 1}), "a whole number up to 1,000,000"),
    "texts for queries": (
        lambda: tiny(queries=("Who?", "Where?")),
        r"\'queries\' is a list \(each item a Query\)",
    ),
    "nothing for queries": (lambda: tiny(queries=None), "'queries' is a list"),
    "no name": (lambda: tiny(name=None), "'name' is a text, not None"),
    "one test query": (
        lambda: tiny(test_ids=frozenset({"q0"})),
        "tiny has one test query, .* hold out two or more, or none",
    ),
    "one query left open": (
        lambda: tiny(test_ids=frozenset(DATA.qrels) - {"q0"}),
        "tiny has one dev query",
    ),
    "a list of test ones": (
        lambda: tiny(test_ids=["q0", "q1"]),
        "'test_ids' is a set",
    ),
    "rows": (lambda: [("q0", "d00")], "'data' is a Dataset or a text or a path"),
    "nothing": (lambda: None, "'data' is a Dataset"),
    "a name": (lambda: "nosuch", "unknown data set 'nosuch'"),
}


@pytest.mark.parametrize("what", BAD_DATA)
def test_data_that_cannot_be_measured_on_are_refused(what, tmp_path):
    data, why = BAD_DATA[what]
    with pytest.raises(BadInput, match=why) as refused:
        bench(data(), systems=OWN, plan=PLAN, folder=tmp_path / "out")
    assert "\n" not in str(refused.value) and not (tmp_path / "out").exists()


def test_other_data_in_the_folder_are_refused(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    with pytest.raises(BadInput, match="was made on other documents"):
        bench(tiny(documents=DATA.documents[1:]), systems=OWN, plan=PLAN, folder=tmp_path)


def test_without_the_default_embedder_ours_are_not_installed(monkeypatch):
    from kgot_lab.benchmark.recall import systems as room

    def missing():
        raise NotInstalled("lab", "onnxruntime")

    monkeypatch.setattr(room, "minilm", missing)
    with pytest.raises(NotInstalled, match="this needs onnxruntime"):
        bench(DATA)


def test_the_plan_and_the_results_are_where_the_report_is_derived_from(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["plan.json", "tiny/base.jsonl.gz", "tiny/mine.jsonl.gz"]
    assert results_path(tmp_path, DATA, "mine").exists()
    with pytest.raises(UnknownName):
        bench(DATA, systems={"mine": LINKED}, plan=Plan("nobody"), folder=tmp_path)


def test_a_server_that_goes_away_costs_no_ranking(tmp_path):
    asked = []

    def distant(ranking):
        asked.append(ranking.query.id)
        if len(asked) == 4:
            raise StoreUnavailable("the server is away")
        return linked(ranking)

    own = {"base": BASE, "mine": Stage("mine", distant, "1")}
    with pytest.raises(StoreUnavailable):
        bench(DATA, systems=own, plan=PLAN, folder=tmp_path)
    assert bench(DATA, systems=own, plan=PLAN, folder=tmp_path).row("mine").mean == 0.4375
    assert sorted(asked) == sorted([*DATA.qrels, asked[3]])


def test_a_plan_of_another_kind_or_that_expects_nobody_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "timed_search", lambda *_, **__: pytest.fail("run"))
    with pytest.raises(BadInput, match="'plan' is a Plan or None"):
        bench(DATA, systems=OWN, plan={"baseline": "base"}, folder=tmp_path / "out")
    with pytest.raises(UnknownName, match="unknown system expected best 'mien'; did you mean 'mine'"):
        bench(DATA, systems=OWN, plan=replace(PLAN, expected="mien"), folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_with_a_list_of_measures_is_the_one_that_is_read_back(tmp_path):
    plan = Plan("base", measures=["recall@5", "mrr"])
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan


def test_a_system_is_built_when_its_turn_comes_and_progress_counts(tmp_path):
    said = []
    own = {name: (lambda name=name: said.append(f"built {name}") or LINKED) for name in ("one", "two")}
    bench(DATA, systems=own, plan=Plan("one", rounds=200), progress=lambda *step: said.append(step))
    expected = [(0, 2, "one on tiny"), "built one", (1, 2, "two on tiny"), "built two", (2, 2, "the report")]
    assert said == expected


def test_grades_may_be_whole_numbers_of_any_kind():
    data = tiny(
        qrels={
            query: {id: np.int64(1) if id < "d05" else 1.0 for id in grades}
            for query, grades in DATA.qrels.items()
        }
    )
    assert bench(data, systems=OWN, plan=PLAN).row("mine").mean == 0.4375


def test_hits_are_kept_as_deep_as_the_plan_measures():
    everything = always(*(document.id for document in DATA.documents))
    documents = (*DATA.documents, *(replace(DATA.documents[0], id=f"e{number:02}") for number in range(30)))
    deep = tiny(documents=documents)
    far = always(*(f"e{number:02}" for number in range(30)), *(document.id for document in DATA.documents))
    plan = Plan("first", "recall@50", ("recall@50",), rounds=200)
    assert bench(deep, systems={"first": everything, "far": far}, plan=plan).row("far").mean == 1.0


def test_ties_go_by_the_rule_of_the_plan():
    tied = always("d11", "d10", "d09", "d08", "d07", "d06", scores=(2.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    first = {
        rule: bench(DATA, systems={"base": BASE, "tied": tied}, plan=replace(PLAN, ties=rule)).runs
        for rule in (BY_ID, AS_RANKED)
    }
    ids = {rule: next(run for run in runs if run.system == "tied").ids("q0") for rule, runs in first.items()}
    assert ids == {
        BY_ID: ["d11", "d06", "d07", "d08", "d09", "d10"],
        AS_RANKED: ["d11", "d10", "d09", "d08", "d07", "d06"],
    }


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), NotInstalled("bench"), StoreUnavailable("away"), MemoryError(), SystemExit(3)],
)
def test_what_says_enough_or_stops_the_benchmark_comes_out_as_it_is(error):
    def broken(ranking):
        raise error

    for mine in (Stage("mine", broken), lambda: broken(None)):
        with pytest.raises(type(error)) as raised:
            bench(DATA, systems={"base": BASE, "mine": mine}, plan=PLAN)
        assert raised.value is error


def test_what_was_changed_is_told_of_a_system_that_is_run_again(tmp_path):
    bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path)
    assert bench(DATA, systems=OWN, plan=PLAN, folder=tmp_path).again == {}
    made = bench(
        DATA,
        systems={"base": BASE, "mine": Stage("mine", linked, "3"), "new": NAMED},
        plan=PLAN,
        folder=tmp_path,
    )
    assert made.again == {"mine": "its version and its pipeline changed"}
    made = bench(DATA, systems={"base": BASE, "mine": Stage("mine", named, "4")}, plan=PLAN, folder=tmp_path)
    assert made.again == {"mine": "its version changed"}
    made = bench(DATA, systems={"base": BASE, "mine": Stage("mine", named)}, plan=PLAN, folder=tmp_path)
    assert made.again == {"mine": "it declares no version"}
    bench(DATA, systems={"base": BASE, "mine": Stage("mine", named, "4")}, plan=PLAN, folder=tmp_path)
    made = bench(
        replace(DATA, test_ids=frozenset({"q0", "q1"})),
        systems={"base": BASE, "mine": Stage("mine", named, "4")},
        folder=tmp_path,
    )
    expected = {"what else the data hold (triples, computed edges, test split) changed"}
    assert set(made.again.values()) == expected
