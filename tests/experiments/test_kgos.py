"""The KG-OS benchmark: frozen queries, what is settled before, leniency by lot, verdicts, and that its
receipts are of this program.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.searching import Letters

from benchmarks.kgos import queries as queries_of
from benchmarks.kgos.benchmark import PLAN, SETTLED, half_report, settled_before
from benchmarks.kgos.claims import Equality
from benchmarks.kgos.intent_results import intents_said
from benchmarks.kgos.intents import (
    INTENT_LABELS,
    confusions,
    right_intents,
)
from benchmarks.kgos.lenient import ANY_5, TYPE_5, leniency, lots_of
from benchmarks.kgos.queries import HALVES, cookbook_queries
from benchmarks.kgos.results import kgos_verdicts
from benchmarks.kgos.systems import kgos_systems
from kgot_lab.embedding.vectors import Remembered, minilm
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.significance import Estimate
from kgot_lab.io.files import bundled
from kgot_lab.kgos.schemas.vocabularies import cookbook

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "kgos"


@pytest.fixture(scope="module")
def graph():
    return cookbook()


@pytest.fixture(scope="module")
def tuning(graph):
    return half_report(RESULTS, "tuning")


@pytest.fixture(scope="module")
def vectors():
    return Remembered(minilm())


# --------------------------------------------------------------------------------------------------------------


def test_the_halves_share_no_query_and_every_gold_node_is_in_the_graph(graph):
    halves = {half: cookbook_queries(half) for half in HALVES}
    ids = [query.id for some in halves.values() for query in some]
    assert len(ids) == len(set(ids)) == 152 and {len(some) for some in halves.values()} == {76}
    for query in (*halves["tuning"], *halves["locked"]):
        assert query.strict <= query.lenient <= set(graph.ids) and bool(query.strict) is (
            query.level != "out_of_scope"
        )
        assert query.intent in INTENT_LABELS
    with pytest.raises(UnknownName, match="tuning"):
        cookbook_queries("all")


@pytest.mark.parametrize("file", ["queries_locked.jsonl", "nodes.jsonl", "edges.jsonl"])
def test_what_was_changed_since_it_was_frozen_is_not_counted_on(monkeypatch, tmp_path, file):
    shutil.copytree(bundled("cookbook"), tmp_path / "cookbook")
    (tmp_path / "cookbook" / file).write_text(
        (tmp_path / "cookbook" / file).read_text().replace("prompt", "Prompt", 1)
    )
    monkeypatch.setattr(queries_of, "bundled", lambda name: tmp_path / name)
    with pytest.raises(BadInput, match=f"{file} is not as it was frozen"):
        cookbook_queries("locked")


# ---------------------------------------------------------------------------------------------------


def settled_at(tmp_path, **changed):
    there = json.loads((RESULTS / SETTLED).read_text())
    (tmp_path / SETTLED).write_text(json.dumps(there | changed))
    shutil.copy(RESULTS / PLAN, tmp_path / PLAN)
    return tmp_path


@pytest.mark.parametrize(
    "changed", [{"claims": []}, {"lenient": "all of them"}, {"frozen": {}}, {"tuned on": "both halves"}]
)
def test_what_was_settled_is_not_changed_afterwards(tmp_path, graph, changed):
    folder = settled_at(tmp_path, **changed)
    with pytest.raises(BadInput, match=f"something else than the program on {next(iter(changed))}"):
        settled_before(folder, graph, Remembered(Letters()))


# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["bm25 only", "fts5 only", "graph boost only", "goal words", "goal words, verbs x5", "embedding only", "3-weight hybrid",
     "4-weight with intent", "goal preset", "learned fusion", "rrf of seven, paths", "seven, weighted", "control: edges shuffled"],
)  # fmt: skip
def test_a_system_finds_today_what_its_receipt_has(graph, tuning, vectors, name):
    fusion = settled_before(RESULTS, graph, vectors)
    stage = kgos_systems(graph, vectors, fusion)[name]()
    (run,) = (run for run in tuning.runs if run.system == name)
    asked = tuning.dataset.queries
    same = sum(list(stage.search(query).ids[:10]) == run.ids(query.id)[:10] for query in asked)
    # the last bits of a vector differ between processors
    assert same >= len(asked) - 2, f"{same} of {len(asked)}"


# -----------------------------------------------------------------------------------------------------------------


def test_lots_are_the_same_in_every_run_hold_no_strict_node_and_keep_the_types(graph):
    for query in cookbook_queries("tuning")[:10]:
        lots = lots_of(query, graph, draws=20)
        assert lots == lots_of(query, graph, draws=20) and lots != lots_of(query, graph, seed=1, draws=20)
        more = query.lenient - query.strict
        for name in (ANY_5, TYPE_5):
            assert all(len(draw) == len(more) and not draw & query.strict for draw in lots[name])
        kinds = sorted(graph.node(id).labels[0] for id in more)
        assert all(sorted(graph.node(id).labels[0] for id in draw) == kinds for draw in lots[TYPE_5])


def test_strict_recall_by_leniency_is_that_of_the_report(graph, tuning):
    (run,) = (run for run in tuning.runs if run.system == "3-weight hybrid")
    own = leniency(run, cookbook_queries("tuning"), graph).per_query("strict")
    assert own == pytest.approx(tuning.scores["3-weight hybrid"].per_query("recall@5"))


# -----------------------------------------------------------------------------------------------------------------


def test_an_equality_holds_within_the_margin_fails_beyond_it_and_is_open_over_its_edge():
    def said(low, high):
        return Equality("", "", "", Estimate((low + high) / 2, low, high, 9)).said

    assert said(-0.01, 0.02) == "replicates" and said(0.03, 0.1) == said(-0.1, -0.03) == "does not"
    assert said(-0.05, 0.01) == said(-0.05, 0.05) == "cannot be decided"


def test_every_claim_has_a_verdict_of_the_locked_half_and_the_hybrid_beats_its_lanes_there():
    verdicts = {row.claim.text: row for row in kgos_verdicts(half_report(RESULTS, "locked"))}
    assert len(verdicts) == 17 and {row.difference.mean > 0 for row in list(verdicts.values())[:3]} == {True}
    assert all(
        row.verdict == ("replicates" if row.difference.low > 0 and row.p_holm < 0.05 else row.verdict)
        for row in verdicts.values()
    )
    assert "does not" not in {row.verdict for row in verdicts.values()}


# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", HALVES)
def test_the_table_of_confusions_counts_every_query_once_and_its_diagonal_is_what_is_right(half):
    some = cookbook_queries(half)
    for said in intents_said(RESULTS, half):
        table = confusions(said, some)
        assert sum(sum(row.values()) for row in table.values()) == len(some)
        assert sum(row.get(label, 0) for label, row in table.items()) == sum(
            right_intents(said, some).values()
        )
        assert sum(right_intents(said, some, fair=True).values()) >= sum(right_intents(said, some).values())
        assert sum(id.startswith("outside") for id in said.labels) == 1000
