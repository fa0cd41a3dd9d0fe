"""The claims of the KG-OS document: verdicts on reports whose outcome is known beforehand."""

from dataclasses import replace

import pytest

from benchmarks.recall.claims import (
    DOES_NOT,
    PUBLISHED_CLAIMS,
    REPLICATES,
    UNDECIDED,
    UNTESTABLE_CLAIMS,
    judge_claims,
)
from kgot_lab.benchmark.recall.datasets import Dataset
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import Report, report
from kgot_lab.evaluation.results import Plan
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import interval, sign_flip_p, smallest_detectable
from kgot_lab.types import Document, Hit, Query

SYSTEMS = sorted({name for claim in PUBLISHED_CLAIMS for name in (claim.better, claim.worse)})
PLAN = Plan("embeddings", rounds=500)
# which of 30 questions a system answers; others half
FOUND = {"kg-os hybrid": range(30), "fts5": range(30), "rrf of three": range(6, 30)}


def made(name: str = "toy", size: int = 30, found=FOUND, systems=SYSTEMS) -> Report:
    documents = tuple(Document(f"d{number}", f"text {number}") for number in range(4))
    queries = tuple(Query(f"question {number}", f"q{number}") for number in range(size))
    data = Dataset(name, documents, queries, {query.id: {"d0": 1} for query in queries})

    def run(system: str) -> Run:
        answered = found.get(system, range(0, size, 2))
        hits = {f"q{number}": (Hit("d0" if number in answered else "d1", 1.0),) for number in range(size)}
        return Run(system, system, name, 20, hits)

    return report(map(run, systems), data, PLAN)


def said(table, better: str, worse: str, data: str = "toy") -> str:
    [row] = [
        row for row in table.rows if (row.claim.better, row.claim.worse, row.dataset) == (better, worse, data)
    ]
    return row.verdict


def test_a_claim_replicates_does_not_or_cannot_be_decided():
    table = judge_claims([made()])
    assert said(table, "kg-os hybrid", "embeddings") == REPLICATES  # 30 against 15 of 30
    assert said(table, "bm25", "fts5") == DOES_NOT  # 15 against 30
    assert said(table, "bm25", "embeddings") == UNDECIDED  # the same 15
    assert [row.claim for row in table.rows] == list(PUBLISHED_CLAIMS)


def test_p_values_are_corrected_over_the_whole_table_as_by_hand():
    reports = [made("one"), made("two", 20, {"kg-os hybrid": range(20), "rrf of three": range(12)})]
    table = judge_claims(reports)
    assert len(table.rows) == 3 * len(PUBLISHED_CLAIMS)  # two data sets, and both together
    raw = []
    for row in table.rows:
        gaps = []
        for each in reports:
            if row.dataset in (each.dataset.name, "all"):
                better, worse = (
                    each.scores[name].per_query("recall@5") for name in (row.claim.better, row.claim.worse)
                )
                gaps += [better[query.id] - worse[query.id] for query in each.dataset.queries]
        raw.append(sign_flip_p(gaps, rounds=PLAN.rounds, seed=PLAN.seed))
        assert row.difference == interval(gaps, rounds=PLAN.rounds, seed=PLAN.seed)
        assert row.detectable == smallest_detectable(gaps)
        assert row.difference.n == len(gaps) == {"one": 30, "two": 20, "all": 50}[row.dataset]
    by_size, running = sorted(range(len(raw)), key=lambda index: raw[index]), 0.0
    for place, index in enumerate(by_size):
        running = max(running, min(1.0, (len(raw) - place) * raw[index]))
        assert table.rows[index].p_holm == pytest.approx(running)


def test_a_report_that_lacks_a_system_is_refused_and_says_which():
    message = r"toy lacks 'rrf of three', which the claim .* needs; run the whole benchmark"
    with pytest.raises(BadInput, match=message):
        judge_claims([made(systems=[name for name in SYSTEMS if name != "rrf of three"])])
    with pytest.raises(BadInput, match="takes the reports"):
        judge_claims([])


def test_the_table_in_markdown_has_every_verdict_and_what_waits():
    table = judge_claims([made()])
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(PUBLISHED_CLAIMS) and len({line.count("|") for line in lines}) == 1
    assert f"**{REPLICATES}**" in lines[2] and f"**{DOES_NOT}**" in table.markdown()
    assert f"| {UNDECIDED} |" in table.markdown()
    assert all(
        f"- {claim}: {why}." in table.markdown() and claim in repr(table)
        for claim, why in UNTESTABLE_CLAIMS.items()
    )
    assert all(claim.text in repr(table) for claim in PUBLISHED_CLAIMS)
    assert table._repr_markdown_() == table.markdown()


def test_an_interval_that_holds_0_is_not_decided_whatever_p_says():
    row = judge_claims([made()]).rows[0]
    assert replace(row, p_holm=0.001, difference=replace(row.difference, low=-0.01)).verdict == UNDECIDED
    assert replace(row, p_holm=0.05).verdict == UNDECIDED and replace(row, p_holm=0.049).verdict == REPLICATES


def test_what_is_sure_alone_may_not_be_sure_in_the_family():
    [row] = [
        row
        for row in judge_claims([made()]).rows
        if (row.claim.better, row.claim.worse) == ("kg-os hybrid", "rrf of three")
    ]
    alone = sign_flip_p([1.0] * 6 + [0.0] * 24, rounds=500)
    assert alone == 2 / 2**6 < 0.05 < row.p_holm and row.difference.low > 0 and row.verdict == UNDECIDED


def test_one_data_set_has_no_row_for_all_together():
    assert {row.dataset for row in judge_claims([made()]).rows} == {"toy"}
