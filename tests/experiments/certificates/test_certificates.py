"""The trial of certificates: which cases there are, that a simulated model goes through it and on after a
stop, and what the tables say.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace

import pytest

from benchmarks.certificates.cases import (
    CertificateCase,
    TriedSet,
    certificate_cases,
    contradicting,
    tried_sets,
)
from benchmarks.certificates.results import alarm_rows, certificate_figures, certificate_grids
from benchmarks.certificates.trial import (
    CertificateTrial,
    CertifiedCase,
    certified_cases,
    hiding,
    trial_plan,
)
from benchmarks.competence.gold import GoldStep
from benchmarks.competence.simulated import Competence, Simulated
from benchmarks.competence.worlds import chain_world
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, InsufficientData
from kgot_lab.llm.recorded import Scripted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Triple

WORLD = chain_world(4, 2)
SETS = {"made-up": TriedSet.of_world(WORLD, "made-up")}
CASES = certificate_cases(SETS, without=2, contradicted=1)


def trial(folder, cases=CASES, competence=None) -> CertificateTrial:
    return CertificateTrial(
        SETS, cases, folder, Simulated(WORLD.gold, competence or Competence()), retriever=bm25
    )


# ------------------------------------------------------------------------------------------------------------


def test_the_real_sets_give_a_hundred_questions_with_a_contradiction_for_fifty():
    sets = tried_sets()
    cases = certificate_cases(sets)
    by_change = {
        change: [case for case in cases if case.change == change]
        for change in ("whole", "without", "contradicted")
    }
    expected = {"whole": 100, "without": 100, "contradicted": 50}
    assert {change: len(some) for change, some in by_change.items()} == expected
    assert {case.set for case in cases} == {"2wiki", "musique-498"}
    assert len({case.key for case in cases}) == 250
    assert all(case.hidden in case.question.gold for case in by_change["without"])
    texts = {document.text for tried in sets.values() for document in tried.questions.documents}
    assert not any(
        case.made.text in texts or case.about.object in case.made.text for case in by_change["contradicted"]
    )


# --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trial that was stopped after a case, and went on."""
    place = tmp_path_factory.mktemp("trial")
    first = trial(place).answers()
    assert next(first).change == "whole"
    first.close()
    assert len(certified_cases(place)) == 1
    assert [case.key for case in trial(place).missing()] == [case.key for case in CASES[1:]]
    assert [row.change for row in trial(place).answers()] == [case.change for case in CASES[1:]]
    assert list(trial(place).answers()) == []
    return place


def test_an_answer_that_was_kept_before_a_kill_is_certified_without_being_asked_again(folder, tmp_path):
    place = tmp_path / "copy"
    shutil.copytree(folder, place)
    (place / "certificates.json").unlink()  # as when the process ends between the receipt and the certificate
    silent = replace(trial(place), llm=Scripted([], Simulated(WORLD.gold, Competence()).name))
    assert list(silent.answers()) == certified_cases(folder) and silent.llm.asked == []


def test_without_errors_every_certificate_says_what_was_changed(folder):
    rows = certified_cases(folder)
    assert [(row.change, row.ruling, row.em) for row in rows] == [
        ("whole", "passes", 1), ("without", "withheld", 0), ("contradicted", "hedged", 1),
        ("whole", "passes", 1), ("without", "withheld", 0),
    ]  # fmt: skip
    assert all(row.named for row in rows if row.change != "whole") and "contested" in rows[2].states
    assert rows[2].made and not rows[1].made


def test_the_tables_say_that_they_are_of_a_simulation_and_count_pairs(folder):
    rows, model = certified_cases(folder), trial_plan(folder)["model"]["name"]
    titles = [grid.title for grid in certificate_grids(rows, model)]
    assert titles and all(title.startswith("Simulated model: ") for title in titles)
    alarms = {(row.change, row.alarm, row.questions): row for row in alarm_rows(rows)}
    missing = alarms["without", "certificate: a fact is missing", "all"]
    expected = (1.0, 2, 0.0, 1.0)
    assert (missing.recall.mean, missing.recall.n, missing.untouched.mean, missing.precision.mean) == expected
    assert missing.recall.low < 1
    figures = certificate_figures(rows, model)
    assert json.loads(json.dumps(figures)) == figures and figures["cases"] == 5


# ---------------------------------------------------------------------------------------------------------


def answered(
    id: str, change: str, ruling: str, state: str, *, right: bool, likelihood: float
) -> CertifiedCase:
    return CertifiedCase(
        "s", change, id, "a", float(right), float(right), likelihood, ruling, (("a", "b", "c", state),)
    )


def test_recall_precision_and_what_the_likelihood_says_are_counted_by_hand():
    rows = [
        answered("1", "whole", "passes", "holds", right=True, likelihood=0.9),
        answered("2", "whole", "withheld", "missing", right=False, likelihood=0.9),
        answered("1", "without", "withheld", "missing", right=False, likelihood=0.9),
        answered("2", "without", "passes", "one source", right=False, likelihood=0.2),
        # not asked untouched: counts nowhere
        answered("3", "without", "withheld", "missing", right=False, likelihood=0.2),
    ]
    by = {(row.alarm, row.questions): row for row in alarm_rows(rows)}
    missing, likely = by["certificate: a fact is missing", "all"], by["likelihood below 0.6", "all"]
    assert (missing.recall.mean, missing.untouched.mean, missing.precision.mean) == (0.5, 0.5, 0.5)
    assert (likely.recall.mean, likely.untouched.mean, likely.precision.mean) == (0.5, 0.0, 1.0)
    assert by["certificate: a fact is missing", "right when untouched"].recall.n == 1
    risk = {(row["cases"], row["order"]): row["area"] for row in certificate_figures(rows, "a model")["risk"]}
    assert risk["whole", "likelihood"] == 0.5 and risk["whole", "certificate, then likelihood"] == 0.25


def test_a_case_that_needs_no_fact_counts_as_missing_one():
    assert CertifiedCase("s", "whole", "1", "", 0.0, 0.0, None, "withheld", ()).states == {"missing"}
    assert CertificateCase("s", "whole", Question("1", "?", "a")).key == "s/whole/1"


def test_a_contradiction_is_the_sentence_with_another_object_of_the_same_kind():
    step = GoldStep(Triple("Jo", "born", "1901"), "Jo was born in 1901 in Cork.", "Jo")
    others = [
        GoldStep(Triple("Al", "born", object), "…")
        for object in ("Cork", "1901", "1950s", "12 May 1960", "1877")
    ]
    made = contradicting(step, Question("q", "When was Jo born?", "1901"), others, random.Random(0))
    assert (made.id, made.title, made.text) == ("made:q", "Jo", "Jo was born in 1877 in Cork.")
    assert contradicting(step, Question("q", "When?", "1901"), others[:2], random.Random(0)) is None


def test_a_hidden_document_is_not_found():
    documents = list(WORLD.documents)
    name = documents[0].title
    assert documents[0].id in bm25(documents).search(name).ids
    assert documents[0].id not in hiding(bm25(documents), {documents[0].id}).search(name).ids


def test_another_plan_or_another_file_in_the_folder_is_refused(folder, tmp_path):
    with pytest.raises(BadInput, match=r"another plan: .*cases is 5 there and 2 now"):
        next(trial(folder, CASES[:2]).answers())
    with pytest.raises(BadInput, match="no plan of certificates"):
        trial_plan(tmp_path)
    (tmp_path / "certificates.json").write_text('[{"id": 1}]')
    with pytest.raises(BadInput, match="does not hold certificates"):
        certified_cases(tmp_path)


def test_no_case_is_begun_once_the_minutes_are_over(tmp_path):
    times = iter((0.0, 120.0))
    assert list(replace(trial(tmp_path), clock=lambda: next(times)).answers(minutes=1)) == []


def test_too_few_questions_are_told():
    with pytest.raises(InsufficientData, match="4 questions of 5"):
        certificate_cases(SETS, without=5, contradicted=0)
    with pytest.raises(BadInput):
        certificate_cases(SETS, without=0)
