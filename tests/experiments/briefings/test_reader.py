"""The simulated reader: it answers from the item that stands in a prompt, errs as often as it is told to, and
says that it is simulated.
"""

from __future__ import annotations

import pytest

from kgot_lab.errors import BadInput, LLMError
from kgot_lab.types import Message, Prompt
from notebooks.invented_month.month import load_month
from notebooks.invented_month.reader import READING_ERRORS, ReadingErrors, SimulatedReader
from notebooks.invented_month.said import SaidFacts

MONTH = load_month()


def read(errors: ReadingErrors) -> dict[str, SaidFacts]:
    reader = SimulatedReader(MONTH, errors)
    return {item.id: reader.read(item) for item in MONTH.items}


def test_without_errors_it_says_what_gold_says():
    assert read(ReadingErrors()) == MONTH.facts
    expected = "simulated:missed=0,invented=0,wrong_type=0,wrong_name=0,wrong_date=0,seed=0"
    assert SimulatedReader(MONTH).name == expected


def test_each_kind_of_error_is_what_it_is_called():
    everything = {kind: read(ReadingErrors(**{kind: 1.0})) for kind in READING_ERRORS}
    assert all(
        not facts.edges and not facts.ends and not facts.expires for facts in everything["missed"].values()
    )
    assert all(
        len(facts.said) == len(MONTH.facts[id].said) + 1 for id, facts in everything["invented"].items()
    )
    swapped = everything["wrong_type"]
    assert swapped["n02"].things["n02/signal"]["type"] == "observation"
    assert "action" not in swapped["n02"].things["n02/signal"]
    for id, ref in (("n01", "n01/event"), ("n09", "n09/rumour"), ("n58", "n58/pattern")):
        assert swapped[id].things[ref]["is"] == "Insight"
        assert swapped[id].things[ref]["action"] in ("buy", "sell", "hold")
        assert {edge.type for edge in swapped[id].edges} == {"about"}
    named = everything["wrong_name"]
    assert [edge.target for edge in named["n02"].edges] == ["Asset:LNFD-31", "n01/event"], (
        "the bond has the same letters"
    )
    assert named["n13"].edges[0].target == "Company:Saltmarch Lithium", (
        "and the other company the same ticker"
    )
    dated, of_gold = everything["wrong_date"], MONTH.facts["n10"]
    assert dated["n10"].expires["n10/signal"][11:] == of_gold.expires["n10/signal"][11:] != ""
    assert dated["n10"].expires != of_gold.expires
    assert dated["n01"].things["n01/event"]["date"] != "2026-03-02"


FIRST, SECOND = MONTH.items[:2]


def test_a_prompt_that_shows_no_item_or_two_is_refused():
    reader = SimulatedReader(MONTH)
    with pytest.raises(LLMError, match="shows 0"):
        reader(Prompt((Message("user", FIRST.headline),)))
    with pytest.raises(LLMError, match="shows 2"):
        reader(Prompt((Message("user", f"{FIRST.text}\n{SECOND.text}"),)))


def test_rates_are_between_none_and_all():
    for wrong in (-0.1, 1.1, True, "0.5", float("nan")):
        with pytest.raises(BadInput, match="'missed' must be between 0 and 1"):
            ReadingErrors(missed=wrong)
