"""What is believed by its claims: learning, holding, retraction and undo."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every import every
from support.saying import fact, inferred, make_claims, said, year

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.types import Triple


def test_a_fact_that_two_sources_claim_stays_when_one_is_retracted(memory):
    memory.learn([said("Ada born_in London", "book"), said("Ada born_in London", "page")])
    fallen = memory.retract_source("book")
    assert memory.holds(fact("Ada born_in London")) and fallen.facts == ()
    assert [claim.source for claim in memory.supports_of(fact("Ada born_in London"))] == ["page"]


def test_the_last_source_takes_the_fact_what_was_derived_and_the_orphans_with_it(memory):
    memory.learn(
        make_claims("Ada born_in London @book", "London in England @atlas", "England in Europe @atlas")
    )
    memory.learn(inferred("Ada born_within England", "Ada born_in London", "London in England"))
    memory.note_answer("q1", "In England.", [fact("Ada born_within England")])
    memory.note_answer("q2", "In Europe.", [fact("England in Europe")])
    fallen = memory.retract_source("book")
    assert fallen.facts == (fact("Ada born_in London"), fact("Ada born_within England"))
    assert fallen.entities == ("Ada",) and [answer.id for answer in fallen.answers] == ["q1"]
    assert memory.facts() == (fact("England in Europe"), fact("London in England"))
    assert str(fallen) == "2 facts fell; 1 entity named by no fact any more; 1 answer rested on what fell"


def test_undo_restores_exactly_and_can_be_undone_itself(memory):
    memory.learn([said("Ada born_in London", "book"), said("London in England", "atlas", confidence=0.8)])
    memory.learn(inferred("Ada born_within England", "Ada born_in London", "London in England"))
    before, exactly = memory.graph_hash(), memory.graph_hash(claims=True)
    fallen = memory.retract_source("book")
    gone = memory.graph_hash()
    restored = memory.undo(fallen.change)
    assert restored.risen == fallen.facts and gone != before
    assert (memory.graph_hash(), memory.graph_hash(claims=True)) == (before, exactly)
    memory.undo(restored.change)
    assert memory.graph_hash() == gone
    with pytest.raises(
        BadInput, match=f"is in effect again, last by change {restored.change + 1}: undo that one"
    ):
        memory.undo(fallen.change)


def test_the_log_names_what_was_retracted_but_not_what_was_erased_since(memory):
    memory.learn(
        make_claims("Ada born_in London @book", "Ada born_in London @page", "London in England @atlas")
    )
    memory.undo(memory.retract_source("book").change)
    memory.retract_fact(fact("Ada born_in London"))
    memory.retract_source("atlas")
    found = [each.of for each in memory.log()]
    assert found == [(), ("book",), (), (str(fact("Ada born_in London")),), ("atlas",)]
    memory.erase_source("atlas")
    assert memory.log()[4].of == ()


def test_retractions_that_overlap_can_be_undone_in_any_order(memory):
    memory.learn([said("Ada born_in London", "book"), said("Ada knows Charles", "book")])
    before = memory.graph_hash()
    source, one = memory.retract_source("book"), memory.retract_fact(fact("Ada born_in London"))
    memory.undo(source.change)
    assert memory.facts() == (fact("Ada knows Charles"),)
    memory.undo(one.change)
    assert memory.graph_hash() == before


def test_forgetting_and_learning_again_gives_the_same_graph(memory):
    claims = make_claims("Ada born_in London @book", "Ada knows Charles @book", "x y z <- Ada knows Charles")
    memory.learn(claims)
    before = memory.graph_hash(claims=True)
    memory.retract_source("book")
    assert memory.learn(claims).back == 2
    assert memory.graph_hash(claims=True) == before


def test_answers_are_told_with_the_facts_that_they_rest_on_whether_these_hold_or_not(memory):
    memory.learn([said("Ada knows Charles", "book"), said("Ada wrote notes", "book")])
    memory.note_answer("who?", "Charles", [fact("Ada knows Charles"), fact("Ada wrote notes")])
    memory.note_answer("what?", "notes", [fact("Ada wrote notes")])
    memory.retract_fact(fact("Ada knows Charles"))
    told = {answer.id: (answer.text, set(facts)) for answer, facts in memory.recorded_answers().items()}
    wrote = fact("Ada wrote notes")
    assert told == {"who?": ("Charles", {fact("Ada knows Charles"), wrote}), "what?": ("notes", {wrote})}
    memory.erase_fact(fact("Ada knows Charles"))
    assert [answer.id for answer in memory.recorded_answers()] == ["what?"]


def test_every_claim_of_a_fact_is_told_whether_it_counts_or_not(memory):
    memory.learn(
        make_claims("Ada knows Charles @book", "Ada knows Charles @letter ~0.5", "Ada wrote notes @book")
    )
    memory.retract_source("book")
    assert {claim.source for claim in memory.claims_on(fact("Ada knows Charles"))} == {"book", "letter"}
    assert memory.supports_of(fact("Ada knows Charles")) == () == memory.claims_on(fact("no such fact"))


def test_learning_a_source_again_changes_nothing(memory):
    claims = [
        said("Ada born_in London", "book", span=Span(3, 9, "in London")),
        inferred("x y z", "Ada born_in London", confidence=0.2),
    ]
    first = memory.learn(claims)
    state = memory.graph_hash(claims=True), memory.log()
    again = memory.learn(reversed(claims))
    assert (first.new, first.queued, again.change, again.known) == (2, 1, None, 2)
    assert (memory.graph_hash(claims=True), memory.log()) == state


def test_a_fact_learnt_from_elsewhere_gains_a_claim_and_loses_none(memory):
    for source in ("book", "page", "talk"):
        memory.learn(said("Ada born_in London", source, said_by="Byron"))
        memory.learn(said("Ada born_in London", source, span=Span(0, 3)))
    assert len(memory.supports_of(fact("Ada born_in London"))) == 6


def test_the_confidence_of_a_fact_counts_each_source_once(memory):
    memory.learn(make_claims("Ada born_in London @book ~0.7", "Ada born_in London @page ~0.8"))
    memory.learn(said("Ada born_in London", "page", confidence=0.75, said_by="Byron"))
    assert memory.confidence(fact("Ada born_in London")) == pytest.approx(1 - 0.3 * 0.2)
    assert memory.confidence(fact("Ada born_in Paris")) == 0.0


def test_facts_that_are_derived_from_each_other_do_not_hold_each_other_up(memory):
    memory.learn(make_claims("a is a @book", "b is b <- a is a", "c is c <- b is b", "b is b <- c is c"))
    assert len(memory.facts()) == 3
    fallen = memory.retract_source("book")
    assert fallen.facts == (fact("a is a"), fact("b is b"), fact("c is c")) and memory.facts() == ()


def test_a_derivation_may_be_learnt_before_its_premises(memory):
    memory.learn(inferred("b is b", "a is a"))
    assert not memory.holds(fact("b is b"))
    memory.learn(said("a is a"))
    assert memory.holds(fact("b is b"))


@pytest.mark.extended
def test_a_chain_of_derivations_two_thousand_long_falls_with_its_first():
    with open_claims() as memory:
        memory.learn(
            [said("n 0 n"), *(inferred(f"n {i + 1} n", f"n {i} n", source=f"s{i}") for i in range(2_000))]
        )
        assert len(memory.retract_source("doc").facts) == 2_001


def test_undoing_a_lesson_is_not_in_the_way_of_learning_it_again(memory):
    lesson = memory.learn(said("Ada born_in London"))
    assert memory.undo(lesson.change).facts == (fact("Ada born_in London"),)
    assert memory.learn(said("Ada born_in London")).back == 1 and memory.holds(fact("Ada born_in London"))


def test_a_text_of_a_million_letters_is_an_object_like_any_other(memory):
    long = Triple("Ada", "wrote", "notes " * 170_000)
    memory.learn(Claim(long, "book"))
    assert memory.facts("Ada") == (long,) and memory.holds(long)
    assert memory.facts(object=long.object) == (long,)
    assert memory.retract_fact(long).facts == (long,)


def test_a_name_a_source_a_relation_and_the_id_of_an_answer_may_be_long_as_well(memory):
    long = "".join(chr(33 + i * i % 991) for i in range(20_000))
    memory.learn([Claim(Triple(long, long, "here"), long), said("Ada is here")])
    memory.merge("Ada", long)
    memory.note_answer(long, long, [Triple(long, long, "here")])
    memory.declare(long, "single")
    assert memory.current("Ada", long).facts == (Triple("Ada", long, "here"),)
    assert memory.declared() == {long: "single"}
    assert [answer.id for answer in memory.retract_source(long).answers] == [long]


facts_drawn = st.sampled_from([f"{s} r {o}" for s in "abc" for o in "xy"])
claims_drawn = st.one_of(
    st.builds(said, facts_drawn, st.sampled_from("123")),
    st.tuples(facts_drawn, st.sets(facts_drawn, min_size=1, max_size=2), st.sampled_from("123"))
    .filter(lambda drawn: drawn[0] not in drawn[1])
    .map(lambda drawn: inferred(drawn[0], *drawn[1], source=drawn[2])),
)


def oracle(claims):
    """What holds, computed without cleverness: again and again until nothing is added."""
    held: set[Triple] = set()
    while new := {claim.fact for claim in claims if set(claim.premises) <= held} - held:
        held |= new
    return held


@pytest.mark.extended
@settings(max_examples=30, deadline=None)
@given(st.lists(claims_drawn, max_size=25), st.integers())
def test_what_holds_is_what_repeated_derivation_reaches_and_every_retraction_is_undone_exactly(claims, seed):
    with open_claims() as memory:
        memory.learn(claims)
        assert set(memory.facts()) == oracle(claims)
        states, changes = [memory.graph_hash(claims=True)], []
        for source in Random(seed).sample(memory.sources(), len(memory.sources())):
            fallen = memory.retract_source(source)
            gone = {source, *(change[0] for change in changes)}
            left = [claim for claim in claims if claim.source not in gone]
            assert set(memory.facts()) == oracle(left)
            assert all(memory.holds(each) == (each in oracle(left)) for each in {c.fact for c in claims})
            states.append(memory.graph_hash(claims=True))
            changes.append((source, fallen.change))
        for state, (_, change) in zip(reversed(states[:-1]), reversed(changes), strict=True):
            if change is not None:
                memory.undo(change)
            assert memory.graph_hash(claims=True) == state


@every(
    ("wrong", "message"),
    [
        (lambda: said("Ada born_in London", confidence=1.2), "from 0 to 1, not 1.2"),
        (lambda: said("Ada born_in London", confidence=float("nan")), "from 0 to 1"),
        (lambda: said("Ada born_in London", confidence=True), "from 0 to 1"),
        (lambda: said("Ada born_in London", ""), "the source of a claim is blank"),
        (lambda: said("Ada born_in London", None), "the source of a claim is a text, not None"),
        (lambda: Claim(Triple("Ada", " ", "London"), "book"), "must not be blank"),
        (lambda: Claim(Triple("Ada", "born_in", 3), "book"), "three texts, not"),
        (lambda: Claim(Triple("Ada", "born\0in", "London"), "book"), "holds a NUL"),
        (lambda: Claim(("Ada", "born_in", "London"), "book"), "the fact of a claim is a Triple"),
        (lambda: said("a is b", kind="guessed"), "unknown kind of claim"),
        (lambda: said("a is b", kind="inferred"), "an inferred claim has premises"),
        (lambda: said("a is b", premises=(fact("b is a"),)), "a stated one has none"),
        (lambda: inferred("a is b", "a is b"), "cannot be its own premise"),
        (lambda: said("a is b", premises="a is b"), "the premises of a claim are Triples"),
        (lambda: said("a is b", span=(1, 2)), "Span"),
        (lambda: Span(5, 2), "the end of a span must be 5 or more"),
        (lambda: said("a is b", valid_from=year(2000).replace(tzinfo=None)), "without a time zone"),
        (lambda: said("a is b", valid_from="2000"), "a datetime with a time zone"),
        (lambda: said("a is b", valid_from=year(2001), valid_until=year(2000)), "ends before it begins"),
    ],
)
def test_a_malformed_claim_is_refused_with_what_is_wrong(wrong, message):
    with pytest.raises(BadInput, match=message):
        wrong()


def test_malformed_input_leaves_everything_as_it_was(memory):
    memory.learn(said("Ada born_in London"))
    state = memory.graph_hash(), memory.log()
    for wrong in (
        lambda: memory.learn([said("a is b"), "a is c"]),
        lambda: memory.learn("a is b"),
        lambda: memory.learn(None),
        lambda: memory.learn(said("a is b"), by=3),
        lambda: memory.retract_source(""),
        lambda: memory.retract_fact("Ada"),
        lambda: memory.undo(17),
        lambda: memory.undo(10**30),
        lambda: memory.undo("1"),
        lambda: memory.facts(subject=3),
        lambda: memory.declare("born_in", "twice"),
        lambda: memory.merge("Ada", "Ada"),
        lambda: memory.unmerge("Ada"),
        lambda: memory.as_of(known=year(2000).replace(tzinfo=None)),
        lambda: memory.note_answer("q", None, []),
        lambda: open_claims(accept_from=7),
    ):
        with pytest.raises(BadInput):
            wrong()
    assert (memory.graph_hash(), memory.log()) == state


def test_half_a_surrogate_pair_is_refused_since_no_database_takes_it(memory):
    for ask in (lambda fact: memory.learn(Claim(fact, "book")), memory.holds):
        with pytest.raises(BadInput, match="half a surrogate pair"):
            ask(Triple("Ada \ud800", "is", "here"))


def test_retracting_a_source_that_nothing_was_learnt_from_is_refused(memory):
    memory.learn(said("Ada born_in London", source="letter"))
    with pytest.raises(UnknownName, match="did you mean 'letter'"):
        memory.retract_source("leter")
