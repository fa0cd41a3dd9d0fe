"""Looking at claims: review as Python hears it, what fell side by side, and the slider over valid time."""

from __future__ import annotations

import pytest
from support.saying import fact, inferred, said, year

import kgot_lab as lab
from kgot_lab.errors import BadInput
from kgot_lab.memory.claims import ClaimReview, Claims, Span, SQLiteClaims
from kgot_lab.memory.claims.claim import ChangeEffect
from kgot_lab.types import Document
from kgot_lab.viz import claims as views
from kgot_lab.viz.claims import over_time, review
from kgot_lab.viz.external_requests import find_external_requests
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


def asked(view, **message):
    """What the browser is shown after it said something of the claim that it shows."""
    widget = view.live.widget()
    view.live._receive(widget, {"claim": (view.live.data["shown"]["claim"] or {}).get("id", ""), **message})
    return view.live.data["shown"]


# --- review ---


def test_a_claim_is_shown_with_its_words_its_confidence_and_what_it_would_change(claims):
    view = views.review(claims, by="Grace", documents=[Document("letter", TEXT)])
    shown = view.live.data["shown"]
    card = shown["claim"]
    assert (shown["place"], shown["left"], card["fact"]) == (1, 3, "Ada – lives_in – London")
    assert card["quote"] == ["A letter of 1840 says that ", "Ada lives in London", ", near the park."]
    assert card["starts"] == ["Ada – lives_in – London", "Ada – lives_in – England"]
    assert card["sure"].startswith("Confidence 0.50, not calibrated") and "said by Charles" in card["origin"]
    assert not card["against"] and card["rivals"] == ["Paris"]
    claims.declare("lives_in", "single")
    again = asked(view, move=0)["claim"]
    assert again["against"] and "contradicts" in again["rivals_are"]
    assert again["rivals"] == ["Ada – lives_in – Paris"]


def test_a_source_that_says_something_else_by_now_is_not_quoted(claims):
    card = views.review(claims, by="Grace", documents=[Document("letter", "Nothing of the kind.")]).live.data[
        "shown"
    ]["claim"]
    assert card["quote"] == ["", "Ada lives in London", ""]
    assert "something else there by now" in card["origin"]


def test_decisions_go_to_the_ledger_with_who_and_can_be_taken_back(claims):
    view = views.review(claims, by="Grace")
    shown = asked(view, decide="accept")
    assert claims.holds(fact("Ada lives_in England")) and shown["left"] == 2
    assert "2 facts began to hold" in shown["said"]
    assert shown["log"][0][1:] == ["Grace", "accept: accepted, confidence 0.50", "Ada – lives_in – London"]
    assert shown["claim"]["fact"] == "Ada – knows – Mary" and "Next: Ada – knows – Mary" in shown["said"]
    assert asked(view, decide="reject")["left"] == 1
    shown = asked(view, undo=True)
    assert shown["claim"]["fact"] == "Ada – knows – Mary" and shown["log"][0][2] == "undo: back in the queue"
    shown = asked(view, undo=True)
    assert shown["left"] == 3 and not shown["undoable"] and claims.facts() == (PARIS.fact,)
    assert claims.graph_hash() and "no decision of yours" in asked(view, undo=True)["said"]


def test_an_override_gives_another_object_or_another_confidence_and_nonsense_is_said(claims):
    view = views.review(claims, by="Grace")
    wrong = asked(view, decide="override", object="Rome", confidence=0.3)["wrong"]
    assert "another confidence or another object" in wrong
    assert "from 0 to 1" in asked(view, decide="override", confidence=7)["wrong"]
    assert "from 0 to 1" in asked(view, decide="override", confidence=None)["wrong"]
    shown = asked(view, decide="override", object="Rome")
    assert claims.holds(fact("Ada lives_in Rome")) and not claims.holds(LONDON.fact) and shown["wrong"] == ""
    assert {row[2] for row in shown["log"]} == {"override: put in its place", "override: rejected"}
    asked(view, decide="override", confidence=0.9)
    assert claims.confidence(KNOWS.fact) == pytest.approx(0.9)


def test_what_another_process_decided_is_said_and_not_decided_again(tmp_path):
    with (
        Claims(SQLiteClaims(tmp_path / "claims.db")) as mine,
        Claims(SQLiteClaims(tmp_path / "claims.db")) as theirs,
    ):
        mine.learn([LONDON, KNOWS])
        view = views.review(mine, by="Grace")
        ClaimReview(theirs, "Mary").reject(LONDON.id)
        shown = asked(view, decide="accept")
        assert "no longer waits. It was rejected by Mary" in shown["wrong"]
        assert shown["claim"]["fact"] == "Ada – knows – Mary"
        assert shown["log"][0][1:3] == ["Mary", "reject: rejected"] and not mine.holds(LONDON.fact)
        accepted = asked(view, decide="accept")
        assert accepted["wrong"] == "" and accepted["left"] == 0 and accepted["claim"] is None
        ClaimReview(theirs, "Mary").override(KNOWS.id, object="Turin")
        assert "changed again since" in asked(view, undo=True)["wrong"] and not mine.holds(KNOWS.fact)
        mine.learn(said("x is z", confidence=0.1))
        theirs.retract_fact(fact("x is z"))
        assert asked(view, move=1)["left"] == 0


def test_one_looks_at_the_next_and_the_previous_claim_around_the_end(claims):
    view = views.review(claims, by="Grace")
    places = [asked(view, move=by)["place"] for by in (1, 1, 1, -1)]
    assert places == [2, 3, 1, 3]


def test_without_a_browser_the_queue_and_the_log_stand_there_as_tables_and_no_text_becomes_markup(claims):
    claims.learn(lab_claim := said("a b c", confidence=0.6, said_by=EVIL))
    claims.learn(type(lab_claim)(lab.Triple(EVIL, EVIL, EVIL), EVIL, Span(0, 3, EVIL), confidence=0.3))
    view = views.review(claims, by=EVIL)
    asked(view, decide="accept")
    view._refresh()
    page = view.live.picture._repr_html_()
    assert "<img src=x" not in page and "&lt;img src=x" in page and "Claims that wait for review" in page
    assert "The last decisions" in page
    assert "lives_in" in repr(view.table()) and "4 claims to decide on, 1 decided" in repr(view)
    with Claims(SQLiteClaims()) as empty:
        assert "Nothing waits" in views.review(empty, by="Grace").live.picture._repr_html_()
        assert views.review(empty, by="Grace").live.data["shown"]["claim"] is None


def test_a_browser_that_says_nonsense_changes_nothing(claims):
    view = views.review(claims, by="Grace")
    changes = len(claims.log())
    messages = ({"decide": "burn"}, {"move": "x"}, {}, {"decide": "accept", "claim": 3})
    for message in (*messages, {"decide": "accept", "claim": "no such"}):
        asked(view, **message)
    assert len(claims.log()) == changes


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


# --- over time ---


@pytest.fixture
def moving():
    with Claims(SQLiteClaims()) as memory:
        memory.declare("lives_in", "single")
        homes = {"London": 1990, "Paris": 2000}
        memory.learn([said(f"Ada lives_in {home}", valid_from=year(since)) for home, since in homes.items()])
        knew = said("Ada knows Bob", valid_from=year(1995), valid_until=year(2005))
        memory.learn([knew, said("Ada is human"), said("Eve is human")])
        yield memory


def test_each_time_of_a_change_has_its_graph_and_says_what_began_and_ended(moving):
    shown = views.over_time(moving)
    assert [moment.name for moment in shown.moments] == [
        "before the first change", "from 1990-01-01", "from 1995-01-01", "from 2000-01-01", "from 2005-01-01",
    ]  # fmt: skip
    assert shown.moments[0].facts == (fact("Ada is human"), fact("Eve is human"))
    assert (
        shown.moments[3].caption
        == "4 facts valid. Began: Ada – lives_in – Paris. Ended: Ada – lives_in – London."
    )
    assert shown.moments[4].ended == (fact("Ada knows Bob"),)
    places = [moment.picture.positions["Ada"] for moment in shown.moments]
    assert len(set(places)) == 1 and "OverTime: 5 moments" in repr(shown)


def test_names_narrow_it_and_times_are_bounded_with_all_changes_told(moving):
    narrow = views.over_time(moving, about="Bob")
    names = [moment.name for moment in narrow.moments]
    assert names == ["before the first change", "from 1995-01-01", "from 2005-01-01"]
    assert narrow.at == narrow.live.data["start"] == 1  # the first moment with facts
    few = views.over_time(moving, most=2)
    names = [moment.name for moment in few.moments]
    assert names == ["before the first change", "from 1990-01-01", "from 2005-01-01"]
    assert few.note == "2 of 4 times at which something changes" and few.moments[2].began == (
        fact("Ada lives_in Paris"),
    )


def test_the_page_needs_nothing_and_has_the_table_too(moving, tmp_path):
    moving.learn(type(LONDON)(lab.Triple(EVIL, "is", "human"), "evil", valid_from=year(2001)))
    page = views.over_time(moving).page()
    assert "<img src=x" not in page.text and "Over valid time" in page.text
    assert find_external_requests(page.text, beside=True) == ()
    assert page.save(tmp_path / "times.html").exists()


def test_without_times_or_names_it_says_what_to_give():
    with Claims(SQLiteClaims()) as memory, pytest.raises(BadInput, match="valid_from"):
        memory.learn(said("a b c"))
        views.over_time(memory)
    with pytest.raises(BadInput):
        views.over_time("claims")


def test_a_claim_contradicts_only_what_is_true_at_the_same_time(claims):
    claims.declare("lives_in", "single")
    claims.learn(said("Bob lives_in Rome", valid_until=year(2000)))
    claims.learn(said("Bob lives_in Oslo", confidence=0.69, valid_from=year(2000)))
    claims.learn(said("Bob lives_in Bern", confidence=0.68, valid_from=year(1999)))
    by_fact = {row[0]: row[-1] for row in review(claims, by="Grace").table().sheets[0].rows}
    assert by_fact["Bob – lives_in – Oslo"] == "" and "Rome" in by_fact["Bob – lives_in – Bern"]


def test_an_undo_is_shown_with_what_holds_again(claims):
    fallen = claims.retract_source("novel")
    shown = before_and_after(claims, claims.undo(fallen.change))
    assert shown.held == (0, 1) and "undo of change 2" in shown._repr_html_()
    before, after = shown.pictured
    assert before.nodes == 0 and after.nodes == 2
    assert ("added", "edge", "Ada – lives_in – Paris") in after.table().sheets[0].rows


def test_it_is_as_it_was_known_then(moving):
    then = moving.log()[-1].at
    moving.retract_fact(fact("Ada knows Bob"))
    assert len(over_time(moving).moments) == 3 and len(over_time(moving.as_of(known=then)).moments) >= 3


def test_names_in_a_picture_of_a_change_are_no_markup(claims):
    claims.learn(said("a b c", "evil"))
    claims.learn(type(LONDON)(lab.Triple(EVIL, EVIL, "Ada"), "evil"))
    claims.note_answer(EVIL, EVIL, [lab.Triple(EVIL, EVIL, "Ada")])
    page = before_and_after(claims, claims.retract_source("evil", by=EVIL))._repr_html_()
    assert "<img src=x" not in page and page.count("&lt;img src=x") >= 4


@pytest.mark.parametrize("by", ["", " ", 7])
def test_who_reviews_has_a_name(claims, by):
    with pytest.raises(BadInput):
        review(claims, by=by)
