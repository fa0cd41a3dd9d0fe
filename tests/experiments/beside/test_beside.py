"""The methods beside graph libraries: the same answers on small graphs, by all libraries that are there, and
what the report says.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import networkx as nx
import pytest

from benchmarks.methods.kgos_graph import (
    ACROSS,
    CURATED_PART,
    EXTRACTED_PART,
    AskedNodes,
    asked_of,
    kgos_graph,
)
from benchmarks.methods.libraries import libraries_there
from benchmarks.methods.paired import AnswersDiffer, PutToAll, in_turn, same_answer
from benchmarks.methods.questions import kgos_questions
from benchmarks.methods.report import write_size, written_report
from benchmarks.methods.social import DEPENDS, KNOWS, social
from kgot_lab.io.files import bundled_path


@pytest.fixture(scope="module")
def whole():
    return kgos_graph()


@pytest.fixture(scope="module")
def part(whole):
    return whole.subgraph(whole.ids[:420])


def test_the_graph_has_the_parts_that_the_document_counts(whole):
    assert (len(whole), len(whole.edges)) == (2_057, 284_178)
    assert CURATED_PART[1] + EXTRACTED_PART[1] + ACROSS == 284_178
    assert CURATED_PART[0] + EXTRACTED_PART[0] == 2_057
    assert (whole.sources == whole.targets).any(), "some edges are loops"
    triples = set(zip(whole.sources.tolist(), whole.targets.tolist(), whole.type_codes.tolist(), strict=True))
    assert len(triples) < len(whole.edges), "some edges run in parallel"
    assert (whole.sources == kgos_graph().sources).all()
    assert (whole.sources != kgos_graph(seed=1).sources).any()
    assert asked_of(whole).start in whole.ids[: CURATED_PART[0]]


@pytest.mark.parametrize("number", range(14))
def test_every_library_that_is_there_answers_as_the_methods_do(part, number):
    libraries = {name: each(part) for name, each in libraries_there().items()}
    assert "NetworkX" in libraries
    asked = AskedNodes(part.ids[0], part.ids[-1], list(part.ids[::42]))
    contest = kgos_questions(part, asked, libraries)[number]
    row = in_turn(contest, rounds=1)
    assert set(row["ms"]) == {"ours", *contest.others} and set(row["times_ours"]) == set(contest.others)


# ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given():
    whole = social()
    return replace(whole, seeds=whole.seeds[:9], pairs=whole.pairs[:5], projects=whole.projects[:20])


def test_the_suites_graph_has_its_numbers_of_nodes_no_loops_and_nothing_twice(given):
    assert given.size == 25_333 and 250_000 < sum(map(len, given.edges.values())) < 290_000
    for type, rows in given.edges.items():
        ends = [(row["source"], row["target"]) for row in rows]
        assert len(set(ends)) == len(ends) and all(a != b for a, b in ends), type
    known = {frozenset((row["source"], row["target"])) for row in given.edges[KNOWS]}
    assert len(known) == len(given.edges[KNOWS]), "who knows somebody is known, and told once"
    assert nx.is_directed_acyclic_graph(
        nx.DiGraph([(row["source"], row["target"]) for row in given.edges[DEPENDS]])
    )


# ---------------------------------------------------------------------------------------------------------


def size(times: int, ours: float) -> dict[str, object]:
    row = {"name": "trace_path", "target_ms": 10, "ms": {"ours": 50.0, "igraph": 2.0}}
    row |= {"times_ours": {"igraph": 0.5}}
    about = {
        "date": "2026-01-01",
        "python": "3.11",
        "cores": 2,
        "system": "Linux",
        "packages": {},
        "rounds": 3,
        "load_before": 1,
    }
    row["processor_ms"] = {"ours": ours * times, "igraph": 2.0}
    return {
        "machine": about | {"note": "It was busy."},
        "times": times,
        "nodes": 10,
        "edges": 100 * times,
        "index_s": 0.1,
        "rows": [row],
    }


@pytest.mark.parametrize(
    ("ours", "told", "met"), [(4.0, "4.000", "yes"), (10.0, "10.0", "no"), (12.5, "12.5", "no")]
)
def test_the_report_says_of_every_target_whether_it_was_met_and_how_times_grew(tmp_path, ours, told, met):
    # what is measured again takes the place of what was there
    for found in (size(10, ours), size(1, 99.0), size(1, ours)):
        write_size(tmp_path / "scale.json", found)
    said = written_report(tmp_path)
    assert f"| trace\\_path | 10 | 50.0 | no | {told} | {met} |" in said and "It was busy." in said
    assert "99.0" not in said
    assert f"2.000 ({2 / ours:.2g})" in said and "on 10 times as many edges" in said
    assert "| trace\\_path | 10 | 1 |" in said
    assert "published suite" not in said


def test_the_report_on_file_follows_from_the_results_beside_it():
    folder = bundled_path("benchmarks/results/methods")
    assert (folder / "report.md").read_text(encoding="utf-8") == written_report(folder), "run make results"


def test_an_answer_that_is_not_the_same_is_never_timed():
    calls = count()
    contest = PutToAll("sum", lambda: {"a": 1.0}, {"wrong": lambda: {"a": 1.0 + next(calls) + 1e-6}})
    with pytest.raises(AnswersDiffer, match="sum: wrong and ours give different answers"):
        in_turn(contest, 5)
    assert next(calls) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 0.1 + 0.2}, {"a": 0.3}, True),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ([1, (2.0, True)], [1, (2.0 + 1e-12, True)], True),
        ([1, 2], [1], False),
        (frozenset({1}), frozenset({1}), True),
        (frozenset({1}), frozenset({2}), False),
        ([None, 2], [None, 2], True),
        ([None], [0], False),
        ({"a": 1}, [1], False),
    ],
)
def test_answers_are_the_same_but_for_the_last_bits_of_numbers(one, other, same):
    assert same_answer(one, other) is same
