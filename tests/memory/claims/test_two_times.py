"""What was known when, of what was true when; and which of several facts answers."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saying import fact, make_claims, said, year

from kgot_lab.errors import BadInput
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT
from kgot_lab.memory.claims.claim import CardinalitySuggestion, Period
from kgot_lab.memory.claims.claims import open_claims

LONDON, PARIS = fact("Ada lives_in London"), fact("Ada lives_in Paris")


def test_what_is_known_and_what_is_true_are_asked_apart(memory, clock):
    memory.learn(said("Ada lives_in London", "a", valid_from=year(2000), valid_until=year(2010)))
    first = clock()
    retracted = memory.retract_source("a").change
    second = clock()
    memory.learn(said("Ada lives_in Paris", "b", valid_from=year(2010)))
    memory.undo(retracted)
    assert memory.as_of(known=first).facts() == (LONDON,) and memory.as_of(known=second).facts() == ()
    assert memory.as_of(known=year(1999)).facts() == () and memory.facts() == (LONDON, PARIS)
    assert memory.as_of(valid=year(2005)).facts() == (LONDON,)
    assert memory.as_of(valid=year(2010)).facts() == (PARIS,)
    assert memory.as_of(known=first, valid=year(2010)).facts() == ()
    assert memory.as_of(valid=year(1999)).facts() == ()
    assert memory.as_of(known=first).graph_hash() != memory.graph_hash()


def test_drop_and_restore_add_intervals_and_rewrite_none(memory):
    memory.learn(said("Ada lives_in London"), by="Grace")
    memory.undo(memory.retract_source("doc", by="Alan").change)
    (claim,) = memory.supports_of(LONDON)
    learnt, dropped = memory.history(claim.id)
    assert (learnt.standing, learnt.by, learnt.known_until) == ("taken", "Grace", None)
    assert (dropped.standing, dropped.by) == ("dropped", "Alan")
    assert learnt.known_from < dropped.known_from < dropped.known_until
    assert [each.action for each in memory.log()] == ["learn", "retract source", "undo"]


def test_a_derived_fact_is_valid_only_while_its_premises_are(memory):
    memory.learn(make_claims("a is a 2000..2010", "b is b <- a is a 2005.."))
    found = [memory.as_of(valid=year(each)).holds(fact("b is b")) for each in (2004, 2005, 2009, 2010)]
    assert found == [False, True, True, False]


def test_a_clock_that_runs_backwards_makes_no_time_go_back(memory, clock):
    memory.learn(said("Ada lives_in London"))
    clock.time -= timedelta(days=400)
    memory.retract_source("doc")
    first, second = memory.log()
    assert first.at <= second.at and first.clock is None and second.clock == clock.time
    assert memory.as_of(known=second.at).facts() == ()


def test_a_time_means_the_same_in_every_zone_and_one_without_a_zone_is_refused(memory, clock):
    east = timezone(timedelta(hours=9))
    one, other = said("a is b", valid_from=year(2000)), said("a is b", valid_from=year(2000).astimezone(east))
    assert one.id == other.id and memory.learn([one, other]).new == 1
    clock.time = clock.time.replace(tzinfo=None)
    with pytest.raises(BadInput, match=r"now is .* without a time zone"):
        memory.learn(said("a is c"))


def test_the_newer_of_two_facts_answers_and_both_are_kept(memory):
    memory.declare("lives_in", "single")
    memory.learn(make_claims("Ada lives_in London @a 2000..", "Ada lives_in Paris @b 2010.."))
    assert memory.current("Ada", "lives_in") == Period((PARIS,), year(2010))
    assert memory.current("Ada", "lives_in", year(2005)).facts == (LONDON,)
    assert memory.current("Ada", "lives_in", year(1999)).facts == ()
    found = memory.changes_of("Ada", "lives_in")
    assert found == (Period((LONDON,), year(2000), year(2010)), Period((PARIS,), year(2010)))
    assert memory.facts() == (LONDON, PARIS)
    memory.retract_source("b")
    assert memory.current("Ada", "lives_in") == Period((LONDON,), year(2000))


def test_an_older_fact_that_is_learnt_later_does_not_answer(memory):
    memory.declare("lives_in", "single")
    memory.learn(said("Ada lives_in Paris", "b", valid_from=year(2010)))
    memory.learn([said("Ada lives_in London", "a", valid_from=year(2000)), said("Ada lives_in London", "c")])
    assert memory.current("Ada", "lives_in").facts == (PARIS,)


def test_facts_that_begin_together_are_contested_and_both_returned(memory):
    memory.declare("lives_in", "single")
    memory.learn([said("Ada lives_in London", "a"), said("Ada lives_in Paris", "b")])
    assert memory.current("Ada", "lives_in") == Period((LONDON, PARIS), contested=True)
    memory.merge("London", "Paris")
    assert memory.current("Ada", "lives_in") == Period((LONDON,))


def test_of_a_relation_with_many_values_none_takes_the_place_of_another(memory):
    memory.learn(
        [said("Ada knows Charles", valid_from=year(2000)), said("Ada knows Mary", valid_from=year(2010))]
    )
    found = memory.current("Ada", "knows")
    assert found == Period((fact("Ada knows Charles"), fact("Ada knows Mary")), year(2010))


def test_a_vocabulary_says_which_relations_have_a_single_object(memory, clock):
    memory.learn(make_claims("GLD issued_by Old @1 2010..", "GLD issued_by New @2 2019.."))
    assert len(memory.current("GLD", "issued_by", year(2020)).facts) == 2
    assert memory.declare_by(INVESTMENT, by="Grace") == ("issued_by",) and memory.declare_by(INVESTMENT) == ()
    assert memory.current("GLD", "issued_by", year(2020)).facts == (fact("GLD issued_by New"),)
    assert memory.cardinality("belongs_to") == "many" and memory.log()[-1].by == "Grace"


def test_cardinalities_are_suggested_with_counts_and_never_applied(memory):
    memory.learn(
        [said(f"p{i} born_in town{i}") for i in range(20)]
        + [said("p0 born_in town1"), said("p0 knows p1"), said("p0 knows p2")]
    )
    memory.declare("likes", "many")
    assert memory.suggested_cardinalities() == (
        CardinalitySuggestion("born_in", "single", 20, 1),
        CardinalitySuggestion("knows", "many", 1, 1),
    )
    assert memory.declared() == {"likes": "many"} and memory.cardinality("born_in") == "many"
    declared = memory.declare("born_in", "single")
    assert memory.declare("born_in", "single") is None and memory.cardinality("born_in") == "single"
    memory.undo(declared)
    assert memory.cardinality("born_in") == "many"


drawn = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("rs"),
        st.sampled_from("xyz"),
        st.integers(2000, 2005),
        st.sampled_from("123"),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(drawn, st.integers(2000, 2006))
def test_facts_of_another_subject_or_relation_retire_nothing(drawn, at):
    """Whatever else is learnt, what answers for one subject and relation is what answers when it stands
    alone.
    """
    claims = [said(f"{s} {r} {o}", source, valid_from=year(since)) for s, r, o, since, source in drawn]
    with open_claims() as together, open_claims() as alone:
        for memory, learnt in (
            (together, claims),
            (alone, [claim for claim in claims if claim.fact.subject + claim.fact.relation == "ar"]),
        ):
            memory.declare("r", "single")
            memory.learn(learnt)
        assert together.current("a", "r", year(at)).facts == alone.current("a", "r", year(at)).facts
        assert set(together.facts()) == {claim.fact for claim in claims}
