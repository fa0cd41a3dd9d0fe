"""The simulated reader: it answers from the item that stands in a prompt, errs as often as it is told to, and
says that it is simulated.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.news.month import load_month
from benchmarks.news.reader import READING_ERRORS, ReadingErrors, SimulatedReader
from benchmarks.news.said import SaidFacts
from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.kgos.schemas.check import faults
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.types import Edge, Message, Prompt

MONTH = load_month()
FIRST, SECOND = MONTH.items[:2]


def item_prompt(item: NewsItem) -> Prompt:
    return Prompt((Message("user", f"{item.headline}\n\n{item.text}"),))


def read(errors: ReadingErrors) -> dict[str, SaidFacts]:
    reader = SimulatedReader(MONTH, errors)
    return {item.id: reader.read(item) for item in MONTH.items}


def replies(errors: ReadingErrors, prompt=item_prompt) -> dict[str, str]:
    reader = SimulatedReader(MONTH, errors)
    return {item.id: reader(prompt(item)).text for item in MONTH.items}


def changed(errors: ReadingErrors) -> set[str]:
    return {id for id, facts in read(errors).items() if facts != MONTH.facts[id]}


def test_without_errors_it_says_what_gold_says():
    assert read(ReadingErrors()) == MONTH.facts
    assert (
        SimulatedReader(MONTH).name
        == "simulated:missed=0,invented=0,wrong_type=0,wrong_name=0,wrong_date=0,seed=0"
    )


def test_it_depends_on_the_text_of_the_item_alone():
    errors = ReadingErrors(**dict.fromkeys(READING_ERRORS, 0.3))

    def elsewhere(item):
        said = f"<<<\n{item.text.replace(' ', '  ')}\n>>>"
        return Prompt(
            (Message("system", "Note what it states."), Message("user", said)),
            {"type": "object"},
            max_tokens=9,
        )

    assert replies(errors) == replies(errors, elsewhere) != replies(ReadingErrors())


def test_a_prompt_that_shows_no_item_or_two_is_refused():
    reader = SimulatedReader(MONTH)
    with pytest.raises(LLMError, match="shows 0"):
        reader(Prompt((Message("user", FIRST.headline),)))
    with pytest.raises(LLMError, match="shows 2"):
        reader(Prompt((Message("user", f"{FIRST.text}\n{SECOND.text}"),)))


@pytest.mark.parametrize("kind", READING_ERRORS)
def test_an_error_that_is_drawn_at_a_rate_is_drawn_at_every_higher_one(kind):
    few, some, all_ = (changed(ReadingErrors(**{kind: rate})) for rate in (0.1, 0.4, 1.0))
    assert few < some < all_


def test_seeds_draw_other_errors_and_a_warm_prompt_draws_by_its_own():
    assert changed(ReadingErrors(missed=0.3)) != changed(ReadingErrors(missed=0.3, seed=1))
    reader = SimulatedReader(MONTH, ReadingErrors(invented=0.5))
    warm = [replace(item_prompt(FIRST), temperature=0.7, seed=seed) for seed in range(12)]
    assert len({reader(prompt).text for prompt in warm}) > 1
    assert len({reader(replace(prompt, temperature=0.0)).text for prompt in warm}) == 1


def test_each_kind_of_error_is_what_it_is_called():
    everything = {kind: read(ReadingErrors(**{kind: 1.0})) for kind in READING_ERRORS}
    assert all(
        not facts.edges and not facts.ends and not facts.expires for facts in everything["missed"].values()
    )
    assert all(
        len(facts.said) == len(MONTH.facts[id].said) + 1 for id, facts in everything["invented"].items()
    )
    swapped = everything["wrong_type"]
    assert (
        swapped["n02"].things["n02/signal"]["type"] == "observation"
        and "action" not in swapped["n02"].things["n02/signal"]
    )
    for id, ref in (("n01", "n01/event"), ("n09", "n09/rumour"), ("n58", "n58/pattern")):
        assert swapped[id].things[ref]["is"] == "Insight" and swapped[id].things[ref]["action"] in (
            "buy",
            "sell",
            "hold",
        )
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
    assert (
        dated["n10"].expires != of_gold.expires and dated["n01"].things["n01/event"]["date"] != "2026-03-02"
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_it_misreads_is_still_in_the_vocabulary(seed):
    for facts in read(ReadingErrors(**dict.fromkeys(READING_ERRORS, 0.5), seed=seed)).values():
        nodes = {ref: facts.node(ref) for ref in facts.things}
        edges = [
            Edge(nodes[edge.source].id, edge.type, nodes[edge.target].id, edge.properties)
            for edge in facts.edges
        ]
        edges = [in_order(edge) for edge in edges]
        assert [
            each for each in faults(INVESTMENT_WITH_COMPANIES, nodes.values(), edges) if each.level == "error"
        ] == []


def in_order(edge: Edge) -> Edge:
    ends = sorted((edge.source, edge.target)) if edge.type == "correlated" else (edge.source, edge.target)
    return replace(edge, source=ends[0], target=ends[1])


def test_rates_are_between_none_and_all():
    for wrong in (-0.1, 1.1, True, "0.5", float("nan")):
        with pytest.raises(BadInput, match="'missed' must be between 0 and 1"):
            ReadingErrors(missed=wrong)
