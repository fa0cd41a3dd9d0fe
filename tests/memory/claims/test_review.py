"""Claims that wait for review, what is decided of them, and what decisions teach."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saying import fact, inferred, make_claims, said

from kgot_lab.errors import AlreadyDecided, BadInput
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.memory.claims.review import ClaimReview, isotonic

UNSURE = said("Ada lives_in London", confidence=0.5)


def test_a_claim_of_seven_tenths_counts_at_once_and_one_below_waits(memory):
    assert memory.learn([UNSURE, said("Ada lives_in Paris", confidence=0.7)]).queued == 1
    assert memory.facts() == (fact("Ada lives_in Paris"),)
    with open_claims(accept_from=0.5) as other:
        assert other.learn(UNSURE).queued == 0


def test_accepting_lets_a_claim_count_and_undo_queues_it_again(memory):
    review = ClaimReview(memory, "Grace")
    memory.learn([UNSURE, inferred("Ada lives_in England", "Ada lives_in London")])
    accepted = review.accept(UNSURE.id)
    assert accepted.risen == (fact("Ada lives_in England"), fact("Ada lives_in London"))
    assert review.queue() == ()
    assert memory.history(UNSURE.id)[-1].by == "Grace"
    assert memory.undo(accepted.change).facts == accepted.risen
    assert [each.claim for each in review.queue()] == [UNSURE]


def test_an_undo_tells_what_leaves_the_queue(memory):
    learnt = memory.learn([UNSURE, said("Ada knows Mary")]).change
    gone = memory.undo(learnt)
    assert gone.withdrawn == 1 and str(gone).endswith("1 item left the review queue")
    again = memory.undo(gone.change)
    assert again.waits and again.withdrawn == 0


def test_what_was_rejected_stays_so_when_it_is_learnt_again(memory):
    review = ClaimReview(memory)
    memory.learn(UNSURE)
    review.reject(UNSURE.id)
    for again in (review.accept, review.reject):
        with pytest.raises(AlreadyDecided, match="It was rejected on"):
            again(UNSURE.id)
    assert memory.learn(UNSURE).change is None and not memory.holds(UNSURE.fact) and review.queue() == ()
    sure = said("Ada knows Charles")
    memory.learn(sure)
    assert review.reject(sure.id).facts == (sure.fact,)


def test_an_override_gives_another_confidence_or_another_object(memory):
    review = ClaimReview(memory)
    memory.learn(UNSURE)
    review.override(UNSURE.id, confidence=0.6)
    assert memory.confidence(UNSURE.fact) == pytest.approx(0.6)
    before = memory.graph_hash(claims=True)
    corrected = review.override(UNSURE.id, object="Paris")
    assert memory.facts() == (fact("Ada lives_in Paris"),)
    memory.undo(corrected.change)
    assert memory.graph_hash(claims=True) == before
    assert [each.accepted for each in review.judgements()] == [True]


def test_a_decision_that_was_overtaken_is_not_undone_before_the_later_one(memory):
    review = ClaimReview(memory)
    learnt = memory.learn(UNSURE).change
    accepted = review.accept(UNSURE.id).change
    overridden = review.override(UNSURE.id, confidence=0.6).change
    with pytest.raises(BadInput, match=f"changed again since, by {overridden}: undo that first"):
        memory.undo(accepted)
    assert not memory.undo(overridden).waits
    assert str(memory.undo(accepted)).endswith("; what was decided on waits again")
    assert [each.claim for each in review.queue()] == [UNSURE]
    memory.undo(learnt)
    assert review.queue() == () and memory.facts() == ()


def test_a_claim_that_was_retracted_waits_for_no_review(memory):
    review = ClaimReview(memory)
    memory.learn(UNSURE)
    memory.retract_source("doc")
    assert review.queue() == ()
    with pytest.raises(BadInput, match="was retracted"):
        review.accept(UNSURE.id)


def test_the_queue_begins_with_what_a_decision_would_change_most(memory):
    memory.learn(make_claims("a is a @1 ~0.1", "b is b <- a is a", "c is c <- b is b, d is d", "d is d"))
    memory.learn([said("e is e", "1", confidence=0.2), said("f is f", "1", confidence=0.6)])
    memory.learn([said("d is d", "1", confidence=0.65), inferred("g is g", "no such fact", confidence=0.69)])
    queue = ClaimReview(memory).queue()
    assert [each.claim.fact.subject for each in queue] == ["a", "f", "e", "g", "d"]
    assert [len(each.starts) for each in queue] == [3, 1, 1, 0, 0]


def test_a_reviewer_names_a_claim_by_how_its_id_begins_and_decides_only_on_what_waits(memory):
    # of 17, two begin with one letter
    memory.learn([UNSURE, *(said(f"p{number} is x", confidence=0.1) for number in range(17))])
    reviewer = ClaimReview(memory, "Grace")
    assert reviewer.find_waiting(UNSURE.id[:12]) == UNSURE.id
    letters = [claim.claim.id[0] for claim in reviewer.queue()]
    with pytest.raises(BadInput, match="give more characters"):
        reviewer.find_waiting(next(letter for letter in letters if letters.count(letter) > 1))
    ClaimReview(memory, "Mary").accept(UNSURE.id)
    memory.undo(memory.retract_source("doc").change)
    for late in (lambda: reviewer.find_waiting(UNSURE.id[:12]), lambda: reviewer.decide(UNSURE.id, "reject")):
        with pytest.raises(AlreadyDecided, match="It was accepted by Mary") as caught:
            late()
        assert caught.value.fact == UNSURE.fact
    memory.erase_fact(UNSURE.fact)
    with pytest.raises(AlreadyDecided, match=r"the claim no longer waits\. It was erased"):
        reviewer.decide(UNSURE.id, "reject")
    assert not reviewer.decided and memory.ids_beginning(UNSURE.id) == ()


@pytest.mark.parametrize(
    "wrong",
    [{}, {"confidence": 0.5, "object": "x"}, {"confidence": 2}, {"object": " "}, {"object": "London"}],
)
def test_an_override_that_says_nothing_or_too_much_is_refused(memory, wrong):
    memory.learn(UNSURE)
    with pytest.raises(BadInput):
        ClaimReview(memory).override(UNSURE.id, **wrong)
    assert len(memory.log()) == 1


def test_decisions_calibrate_a_relation_and_few_of_them_are_pooled(memory):
    review = ClaimReview(memory)
    for i in range(8):
        decided = (("born_in", 0.6, True), ("lives_in", 0.4, i < 2), ("lives_in", 0.6, i < 6))
        for relation, confidence, good in decided:
            claim = said(f"p{i} {relation} t{confidence}", confidence=confidence)
            memory.learn(claim)
            (review.accept if good else review.reject)(claim.id)
    assert review.calibrated(0.4, "lives_in", least=10) == 0.25
    assert review.calibrated(0.6, "lives_in", least=10) == 0.75
    assert review.calibrated(0.5, "lives_in", least=10) == pytest.approx(0.5)
    assert review.calibrated(0.6, "born_in", least=10) == pytest.approx(14 / 16)  # of all relations
    assert review.calibrated(0.6, "born_in") == 0.6


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=20
    )
)
def test_the_isotonic_curve_rises_keeps_the_mean_and_is_beaten_by_no_other_rising_one(pairs):
    curve = isotonic(pairs)
    xs = sorted({x for x, _ in pairs})
    values = [curve(x) for x in xs]
    assert values == sorted(values)
    assert sum(curve(x) for x, _ in pairs) == pytest.approx(sum(y for _, y in pairs))

    def loss(rising):
        return sum((y - rising[xs.index(x)]) ** 2 for x, y in pairs)

    for nudge in (-0.1, 0.1):
        for i in range(len(xs)):
            other = sorted(value + nudge * (j == i) for j, value in enumerate(values))
            assert loss(values) <= loss(other) + 1e-9
