"""Looking at claims: what a change did, side by side."""

from __future__ import annotations

import pytest
from support.saying import fact, inferred, said

import kgot_lab as lab
from kgot_lab.errors import BadInput
from kgot_lab.memory.claims import ClaimReview, Claims, Span, SQLiteClaims
from kgot_lab.stores.tables.history import ChangeEffect
from notebooks.claim_changes import before_and_after

EVIL = '<img src=x onerror="alert(1)">'
TEXT = "A letter of 1840 says that Ada lives in London, near the park."
span = Span(27, 46, "Ada lives in London")
LONDON = said("Ada lives_in London", "letter", confidence=0.5, span=span, said_by="Charles")
PARIS = said("Ada lives_in Paris", "novel")
KNOWS = said("Ada knows Mary", "novel", confidence=0.4)


@pytest.fixture
def claims():
    with Claims(SQLiteClaims()) as memory:
        england = inferred("Ada lives_in England", "Ada lives_in London")
        memory.learn([LONDON, PARIS, KNOWS, england, inferred("x is y", "a is b", confidence=0.2)])
        yield memory


# --- before and after ---


def test_what_fell_is_marked_before_and_gone_after_with_the_answers_that_rested_on_it(claims):
    ClaimReview(claims).accept(LONDON.id)
    claims.note_answer("a1", "She lives in England.", [fact("Ada lives_in England")])
    shown = before_and_after(claims, claims.retract_source("letter", by="Grace"))
    assert shown.held == (3, 1)
    before, after = shown.pictured
    assert [row[:2] for row in before.table().sheets[0].rows[:2]] == [
        ("removed", "node"),
        ("removed", "node"),
    ]
    assert "London" in before.svg and "London" not in after.svg and "Paris" in after.svg
    assert before.positions["Paris"] == after.positions["Paris"]
    page = shown._repr_html_()
    assert "retract source by Grace" in page and "She lives in England. (a1" in page
    assert page.count("<img") == 2
    assert {sheet.name for sheet in shown.table().sheets} == {"fell", "rested on what fell"}
    assert "Ada – lives_in – England" in repr(shown)


def test_only_what_stands_around_the_change_is_drawn(claims):
    claims.learn([said(f"n{number} is far") for number in range(30)])
    fallen = claims.retract_source("novel")
    before, after = before_and_after(claims, fallen).pictured
    assert before.nodes == 2 and after.nodes == 0
    claims.undo(fallen.change)
    claims.learn(
        [said(f"Ada knows n{number}", "list") for number in range(9)]
        + [said(f"Bob{number} knows n{number}", "list") for number in range(3)]
    )
    shown = before_and_after(claims, claims.retract_source("list"), limit=4)
    assert "Drawn: 4 of 12 that changed, 4 of 4 beside them" in repr(shown)
    page = shown._repr_html_()
    assert shown.pictured[0].edges == 8 and page.index("<li>Bob2 ") < page.index("<li>Ada – knows – n1")


def test_a_report_of_nothing_or_of_another_memory_is_refused(claims):
    with pytest.raises(BadInput, match="changed nothing"):
        before_and_after(claims, ChangeEffect(None))
    with pytest.raises(BadInput, match="no change 99"):
        before_and_after(claims, ChangeEffect(99))


def test_an_undo_is_shown_with_what_holds_again(claims):
    fallen = claims.retract_source("novel")
    shown = before_and_after(claims, claims.undo(fallen.change))
    assert shown.held == (0, 1) and "undo of change 2" in shown._repr_html_()
    before, after = shown.pictured
    assert before.nodes == 0 and after.nodes == 2
    assert ("added", "edge", "Ada – lives_in – Paris") in after.table().sheets[0].rows


def test_names_in_a_picture_of_a_change_are_no_markup(claims):
    claims.learn(said("a b c", "evil"))
    claims.learn(type(LONDON)(lab.Triple(EVIL, EVIL, "Ada"), "evil"))
    claims.note_answer(EVIL, EVIL, [lab.Triple(EVIL, EVIL, "Ada")])
    page = before_and_after(claims, claims.retract_source("evil", by=EVIL))._repr_html_()
    assert "<img src=x" not in page and page.count("&lt;img src=x") >= 4
