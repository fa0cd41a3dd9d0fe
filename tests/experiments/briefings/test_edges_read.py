"""What a reader took from news is compared with gold edge by edge, in the month and in the example of the
document.
"""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from support.small_news import MULTI_LEVEL_REPLY

from kgot_lab.experiments.briefings.edges_read import added_edges, edges_of_month
from kgot_lab.experiments.briefings.month import load_month
from kgot_lab.experiments.briefings.reader import ReadingErrors, SimulatedReader
from kgot_lab.experiments.briefings.telling import MonthPlay
from kgot_lab.llm.recorded import Recorded, Recorder
from kgot_lab.llm.scripted import Scripted

COMMAND = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "news_reader.py"))


def read(errors=None):
    """What is read of the first days of the month."""
    whole = load_month()
    items = whole.items[:24]
    month = replace(whole, items=items, facts={each.id: whole.facts[each.id] for each in items})
    with MonthPlay(month, SimulatedReader(month, errors)) as play:
        list(play.events())
        return edges_of_month(month, play.places.journal.facts(), play.places.graph.view())


@pytest.fixture(scope="module")
def careful():
    return read()


def test_a_reader_without_mistakes_reads_nearly_all_edges_and_hardly_any_other(careful):
    all = added_edges(careful.values())
    assert sum(all.gold.values()) > 50 and sum(all.both.values()) >= sum(all.gold.values()) - 2
    assert {type for _, type, _ in all.missed} == {"derived_from"}, (
        "evidence of an earlier item is found by its words, or not at all"
    )
    assert {type for _, type, _ in all.beyond} <= {"mentions"}, (
        "an item that tells of a thing mentions it, whatever gold lists"
    )


def test_what_is_missed_and_what_is_made_up_is_told_apart(careful):
    missed, invented = (
        added_edges(read(ReadingErrors(missed=0.5)).values()),
        added_edges(read(ReadingErrors(invented=0.5)).values()),
    )
    usual = added_edges(careful.values())
    assert sum(missed.missed.values()) > 10 > sum(missed.beyond.values())
    assert sum(invented.beyond.values()) > 10 and invented.missed == usual.missed


def test_an_edge_of_one_item_does_not_make_up_for_one_that_another_lacks(careful):
    first, second, *_ = careful
    for each in (careful[first], careful[second]):
        assert sum(added_edges([each]).gold.values()) == sum(each.gold.values())
    assert sum(added_edges([careful[first]] * 2).gold.values()) == 2 * sum(careful[first].gold.values())


def test_the_example_is_read_edge_by_edge_and_again_from_its_tape(tmp_path):
    less = {**MULTI_LEVEL_REPLY, "links": MULTI_LEVEL_REPLY["links"][1:]}
    whole = COMMAND["read_example"](
        Recorder(Scripted(lambda _: json.dumps(MULTI_LEVEL_REPLY)), tmp_path / "tape.jsonl")
    )
    assert len(whole["both"]) == 11 and whole["missed"] == whole["refused"] == []
    assert COMMAND["read_example"](Recorded(tmp_path / "tape.jsonl")) == whole
    assert COMMAND["read_example"](Scripted(lambda _: json.dumps(less)))["missed"] == [
        ["Asset:AAPL", "issued_by", "Company:apple inc."]
    ]


def test_a_reply_in_no_shape_is_an_item_that_was_not_read():
    garbled = COMMAND["read_example"](Scripted(lambda _: "I would buy it."))
    assert len(garbled["missed"]) == 11 and garbled["refused"][0].startswith("nothing was read")
