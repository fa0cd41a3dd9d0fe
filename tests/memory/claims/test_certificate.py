"""What an answer needs and how it stands: every state from its smallest case, what is told, and what tries to
pass that must not.
"""

from __future__ import annotations

from datetime import datetime

import pytest
from support.saying import fact, inferred, make_claims, said, year

from kgot_lab.errors import BadInput
from kgot_lab.memory.claims.certificate import (
    Certificate,
    OpenFact,
    certificate_to_json,
    certify,
    hedge_answer,
)

LONDON, PARIS = fact("Ada lives_in London"), fact("Ada lives_in Paris")


def states(certificate: Certificate) -> list[str]:
    return [each.state for each in certificate.facts]


# --- one fact ---


def test_a_fact_of_two_sources_holds_and_the_answer_is_told_as_it_is(memory):
    memory.learn([said("Ada lives_in London", "book"), said("Ada lives_in London", "page")])
    certificate = certify(memory, [LONDON])
    assert states(certificate) == ["holds"] and certificate.ruling == "passes"
    assert certificate.facts[0].sources == ("book", "page")
    assert hedge_answer("London", certificate) == "London"


def test_a_fact_of_one_source_says_so_and_passes(memory):
    memory.learn(said("Ada lives_in London", "book"))
    certificate = certify(memory, [LONDON])
    assert states(certificate) == ["one source"]
    assert certificate.facts[0].sole_sources == ("book",)
    assert certificate.ruling == "passes"
    assert certificate.facts[0].status == "Ada – lives_in – London rests on one source (book)"


def test_a_fact_that_nobody_claims_is_missing_and_the_answer_is_withheld(memory):
    certificate = certify(memory, [LONDON])
    assert states(certificate) == ["missing"] and certificate.ruling == "withheld"
    assert hedge_answer("London", certificate) == "No answer is given: nothing says: Ada – lives_in – ?."


def test_a_fact_that_ended_before_the_time_is_out_of_date(memory):
    memory.learn(said("Ada lives_in London", "book", valid_from=year(1830), valid_until=year(1840)))
    assert states(certify(memory, [LONDON], at=year(1835))) == ["one source"]
    late = certify(memory, [LONDON], at=year(1850))
    assert states(late) == ["out of date"] and late.ruling == "hedged"
    assert "is out of date: it holds from 1830-01-01 until 1840-01-01" in hedge_answer("London", late)


def test_a_fact_that_another_has_taken_the_place_of_is_out_of_date_and_names_it(memory):
    memory.declare("lives_in", "single")
    memory.learn(make_claims("Ada lives_in London 1830..", "Ada lives_in Paris 1840.."))
    late = certify(memory, [LONDON], at=year(1850))
    assert states(late) == ["out of date"] and late.facts[0].rivals == (PARIS,)
    assert (late.facts[0].since, late.facts[0].until) == (year(1830), year(1840))
    assert states(certify(memory, [PARIS], at=year(1850))) == ["one source"]


def test_two_objects_of_a_relation_with_one_contest_each_other_and_of_one_with_many_do_not(memory):
    memory.learn([said("Ada lives_in London", "book"), said("Ada lives_in Paris", "page")])
    assert states(certify(memory, [LONDON])) == ["one source"]
    memory.declare("lives_in", "single")
    certificate = certify(memory, [LONDON])
    assert states(certificate) == ["contested"] and certificate.facts[0].rivals == (PARIS,)
    expected = "London (not certain: Ada – lives_in – London is contested: others say Paris)"
    assert hedge_answer("London", certificate) == expected


# --- what is withheld ---


@pytest.mark.parametrize("answer", ["London", "london", " London. ", "‘London’"])
def test_a_withheld_answer_is_not_told_by_its_facts_reasons_sources_or_rivals(memory, answer):
    memory.declare("lives_in", "single")
    memory.learn(
        [
            said("Ada lives_in London", "London.md#1"),
            said("Ada lives_in Old_London", "page"),
            said("Ada knows Bob", "page"),
        ]
    )
    strict = certify(memory, [fact("Ada knows Bob"), LONDON, fact("London rules Ada")])
    assert states(strict) == ["one source", "contested", "missing"]
    parts = certificate_to_json("Where is Ada?", answer, strict)
    assert parts["answer"] is None
    assert "london" not in f"{parts}{hedge_answer(answer, strict)}{strict.redacted(answer)!r}".casefold()
    assert (
        parts["told"]
        == "No answer is given: Ada – lives_in – ? is contested: others say ?; nothing says: ? – rules – Ada."
    )
    expected = [("Ada", "Bob"), ("Ada", "?"), ("?", "Ada")]
    assert [(each["subject"], each["object"]) for each in parts["facts"]] == expected


def test_of_a_withheld_answer_in_more_words_than_its_fact_the_fact_is_not_told_either(memory):
    expected = "No answer is given: nothing says: Ada – lives_in – ?."
    assert hedge_answer("London, England", certify(memory, [LONDON])) == expected


def test_what_an_answer_shares_no_words_with_stays_in_the_reasons_of_one_that_is_withheld(memory):
    question = fact("Is_Ada_or_Bob_older is_answered_by Bob")
    expected = "No answer is given: nothing says: Is_Ada_or_Bob_older – is_answered_by – ?."
    assert hedge_answer("Bob", certify(memory, [question])) == expected
    expected = "No answer is given: nothing says: Ada – lives_in – London."
    assert hedge_answer("Lond", certify(memory, [LONDON])) == expected
    expected = "No answer is given: nothing says: Ada – sign – ?."
    assert hedge_answer("†", certify(memory, [fact("Ada sign †")])) == expected
    memory.learn(said("Ada lives_in London", valid_until=year(1900)))
    hedged = certify(memory, [LONDON])
    assert hedged.redacted("London") is hedged
    assert hedge_answer("London", hedged).startswith("London (not certain: Ada – lives_in – London is out of")


# --- chains ---


def test_an_open_end_is_filled_with_what_holds_and_the_next_fact_begins_there(memory):
    memory.learn(
        [said("film directed_by Jo", "d1"), said("Jo born_in Cork", "d2"), said("Cork in Ireland", "d3")]
    )
    certificate = certify(memory, [OpenFact("directed_by", "film"), OpenFact("born_in"), OpenFact("in")])
    found = [each.fact for each in certificate.facts]
    assert found == [fact("film directed_by Jo"), fact("Jo born_in Cork"), fact("Cork in Ireland")]
    memory.retract_source("d2")
    broken = certify(memory, [OpenFact("directed_by", "film"), OpenFact("born_in"), OpenFact("in")])
    assert states(broken) == ["one source", "missing", "missing"]
    assert broken.reasons[0] == "nothing says: Jo – born_in – ?"


def test_an_open_end_takes_the_surest_and_out_of_date_what_was_last(memory):
    memory.learn([said("Ada knows Zoe", confidence=0.9), said("Ada knows Bob", confidence=0.8)])
    assert certify(memory, [OpenFact("knows", "Ada")]).facts[0].fact == fact("Ada knows Zoe")
    memory.learn([said("Ada heads A", valid_from=year(1800), valid_until=year(1810))])
    memory.learn([said("Ada heads B", valid_from=year(1810), valid_until=year(1820))])
    late = certify(memory, [OpenFact("heads", "Ada")], at=year(1830)).facts[0]
    assert (late.state, late.fact) == ("out of date", fact("Ada heads B"))
    early = certify(memory, [OpenFact("heads", "Ada")], at=year(1700)).facts[0]
    assert (early.state, early.fact) == ("out of date", fact("Ada heads A"))


def test_the_weakest_fact_decides(memory):
    memory.learn([said("a is b", "d1"), said("a is b", "d2"), said("b is c", "d1")])
    memory.learn([said("c at d", valid_until=year(1900))])
    assert certify(memory, [fact("a is b"), fact("b is c")]).ruling == "passes"
    assert certify(memory, [fact("a is b"), fact("b is c"), fact("c at d")]).ruling == "hedged"
    assert certify(memory, [fact("a is b"), fact("c at d"), fact("d is e")]).ruling == "withheld"


# --- what tries to pass ---


def test_an_answer_that_needs_no_fact_is_withheld(memory):
    certificate = certify(memory, [])
    assert certificate.ruling == "withheld"
    assert hedge_answer("yes", certificate) == "No answer is given: it rests on no fact."


def test_facts_that_are_derived_from_each_other_alone_are_missing(memory):
    memory.learn([inferred("b is b", "c is c"), inferred("c is c", "b is b")])
    assert states(certify(memory, [fact("b is b")])) == ["missing"]


def test_derivations_in_a_circle_over_one_stated_fact_rest_on_its_source(memory):
    memory.learn(
        [said("a is a", "book"), inferred("b is b", "a is a"), inferred("c is c", "b is b", source="x")]
    )
    memory.learn([inferred("b is b", "c is c", source="y"), inferred("b is b", "a is a", source="z")])
    certificate = certify(memory, [fact("b is b")])
    assert states(certificate) == ["one source"] and certificate.facts[0].sole_sources == ("book",)
    memory.learn(said("a is a", "page"))
    assert states(certify(memory, [fact("b is b")])) == ["holds"]


def test_a_fact_derived_from_two_sources_rests_on_either(memory):
    memory.learn([said("Ada in London", "book"), said("London in England", "atlas")])
    memory.learn(inferred("Ada within England", "Ada in London", "London in England", source="rules"))
    assert certify(memory, [fact("Ada within England")]).facts[0].sole_sources == ("atlas", "book")


def test_merged_names_are_one_thing_and_their_sources_count_together(memory):
    claimed = ("Ada lives_in London @book", "Countess lives_in London @page", "Ada lives_in Paris @letter")
    memory.learn(make_claims(*claimed))
    memory.merge("Ada", "Countess")
    assert states(certify(memory, [fact("Countess lives_in London")])) == ["holds"]
    memory.declare("lives_in", "single")
    contested = certify(memory, [fact("Countess lives_in London")])
    assert states(contested) == ["contested"] and contested.facts[0].fact == LONDON
    memory.merge("London", "Paris")
    assert states(certify(memory, [LONDON])) == ["holds"]


def test_a_fact_retracted_after_the_answer_is_missing_now_and_held_as_it_was_known_then(memory, clock):
    memory.learn(said("Ada lives_in London", "book"))
    answered = clock()
    memory.retract_source("book")
    assert states(certify(memory, [LONDON])) == ["missing"]
    assert states(certify(memory.as_of(known=answered), [LONDON])) == ["one source"]


def test_the_time_is_that_of_the_beliefs_where_none_is_given(memory):
    memory.learn(said("Ada lives_in London", valid_until=year(1900)))
    assert states(certify(memory.as_of(valid=year(1850)), [LONDON])) == ["one source"]
    assert states(certify(memory.as_of(valid=year(1850)), [LONDON], at=year(1950))) == ["out of date"]


def test_a_claim_that_waits_for_review_holds_nothing_up(memory):
    memory.learn(said("Ada lives_in London", confidence=0.2))
    assert states(certify(memory, [LONDON])) == ["missing"]


def test_a_naive_time_and_what_is_no_fact_are_refused(memory):
    with pytest.raises(BadInput, match="without a time zone"):
        certify(memory, [LONDON], at=datetime(2020, 1, 1))
    with pytest.raises(BadInput, match="is a list"):
        certify(memory, LONDON)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="Triple or an OpenFact"):
        certify(memory, ["Ada"])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="blank"):
        OpenFact(" ")
    with pytest.raises(BadInput, match="a text"):
        hedge_answer(None, certify(memory, [LONDON]))  # type: ignore[arg-type]


def test_a_blank_answer_is_none_even_where_every_fact_holds(memory):
    memory.learn([said("Ada lives_in London", "book"), said("Ada lives_in London", "page")])
    assert hedge_answer(" ", certify(memory, [LONDON])) == "No answer is given: there is none."
