"""Names that mean one thing: proposed with reasons, merged as a layer on reading, unmerged exactly."""

from __future__ import annotations

import pytest
from support.saying import fact, inferred, make_claims, said

from kgot_lab.errors import BadInput
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.types import Triple


def test_merges_are_proposed_with_their_reasons_and_none_is_made(memory):
    names = [
        "Ada Lovelace",
        "A. Lovelace",
        "ADA LOVELACE",
        "Dr. Ada Lovelace",
        "Charles Lovelace",
        "Ada Byron",
        "Paris",
    ]
    memory.learn([Claim(Triple(name, "wrote", "Notes"), "book") for name in names[:3]])
    memory.learn([Claim(Triple(name, "knows", "Charles Babbage"), "page") for name in names])
    memory.learn(Claim(Triple("Ada Byron", "wrote", "Notes"), "page"))
    found = {(merge.kept, merge.other): merge.reasons for merge in memory.propose_merges()}
    expected = ("the same name with initials or a middle name", "2 neighbours in common")
    assert found["Ada Lovelace", "A. Lovelace"] == expected
    expected = ("the same name but for case, punctuation, spaces or a title", "2 neighbours in common")
    assert expected in found.values()
    assert {"Paris", "Charles Lovelace", "Charles Babbage"}.isdisjoint(
        {name for pair in found for name in pair}
    )
    assert (
        len(
            {
                each.fact.subject
                for each in map(memory.claim, (c.id for f in memory.facts() for c in memory.supports_of(f)))
            }
        )
        == 7
    )


def test_merged_names_are_read_as_one_and_unmerging_is_exact(memory):
    memory.learn(make_claims("Ada wrote Notes @book", "A.L. wrote Notes @page", "A.L. knows Charles @page"))
    before = memory.graph_hash(), memory.graph_hash(claims=True)
    memory.merge("Ada", "A.L.", by="Grace")
    assert memory.facts() == memory.facts("A.L.") == (fact("Ada knows Charles"), fact("Ada wrote Notes"))
    assert {claim.source for claim in memory.supports_of(fact("A.L. wrote Notes"))} == {"book", "page"}
    assert memory.graph_hash() != before[0]
    memory.unmerge("A.L.")
    assert (memory.graph_hash(), memory.graph_hash(claims=True)) == before and len(memory.facts("A.L.")) == 2


def test_what_was_learnt_between_merge_and_unmerge_keeps_its_own_name(memory):
    memory.learn(said("A.L. wrote Notes"))
    memory.merge("Ada", "A.L.")
    memory.learn([said("A.L. wrote Notes", "page"), inferred("Notes exist now", "Ada wrote Notes")])
    assert memory.holds(fact("Notes exist now"))
    memory.unmerge("A.L.")
    assert memory.facts() == (fact("A.L. wrote Notes"),)


def test_a_name_that_was_merged_into_may_be_merged_itself_but_not_in_a_circle(memory):
    memory.learn(said("A.L. wrote Notes"))
    memory.merge("Ada", "A.L.")
    last = memory.merge("Countess", "Ada")
    assert memory.facts() == (fact("Countess wrote Notes"),)
    for kept, other, message in (
        ("Ada", "A.L.", "unmerge it first"),
        ("A.L.", "Countess", "circle"),
        ("x", "x", "circle"),
    ):
        with pytest.raises(BadInput, match=message):
            memory.merge(kept, other)
    memory.undo(last)
    assert memory.facts() == (fact("Ada wrote Notes"),)


def test_retracting_a_fact_drops_it_under_all_its_names(memory):
    memory.learn([said("Ada wrote Notes", "book"), said("A.L. wrote Notes", "page")])
    memory.merge("Ada", "A.L.")
    fallen = memory.retract_fact(fact("A.L. wrote Notes"))
    assert fallen.facts == (fact("Ada wrote Notes"),)
    assert fallen.entities == ("Ada", "Notes")
    assert memory.facts() == ()
