"""Events as lines: every kind has one, and no text of a model or a document gets a line of its own or moves
the cursor.
"""

from __future__ import annotations

import pickle

from support.each_kind import each_kind
from support.every import every

from kgot_lab.loop.events import EVENTS, Answered, Asked, Forced, Parsed, Read, Started, Vote, Voted, Wrote
from kgot_lab.loop.formatting import format_event, summary_line
from kgot_lab.text.cleaning import printable_line


def test_every_kind_of_event_has_words_of_its_own():
    events = each_kind("something")
    assert {type(event).__name__ for event in events} == set(EVENTS)
    assert all(summary_line(e) and type(e).__name__ + "(" not in summary_line(e) for e in events)


@every("evil", ["\n", "\r", "\x1b[2J", "\x07", "\x08", "\u2028", "\x85", "\x0b", "\u202e", "\0"])
def test_no_text_of_others_begins_a_line_or_reaches_the_terminal_as_a_command(evil):
    tame, wild = each_kind("ab"), each_kind(f"a{evil}b")
    for one, other in zip(tame, wild, strict=True):
        assert summary_line(other).count("\n") == summary_line(one).count("\n")
        assert all(part.isprintable() for part in summary_line(other).split("\n"))
        summary_line(other).encode("utf-8")


def test_a_long_text_is_shortened_but_a_question_and_an_answer_are_not():
    for event in each_kind("word " * 2000):
        limit = 40_000 if isinstance(event, Started | Answered | Asked | Vote | Parsed | Forced) else 4_000
        assert len(summary_line(event)) < limit
    assert "word " * 1999 in summary_line(Answered(text="word " * 2000, forced=False))


def test_of_many_facts_a_few_are_shown_and_the_rest_counted():
    wrote = next(event for event in each_kind("x") if isinstance(event, Wrote))
    assert summary_line(wrote, limit=2).splitlines()[-1].strip() == "… and 7 more"
    assert summary_line(wrote, limit=20).count("--[x]-->") == 9


def test_words_of_other_scripts_stay_whole():
    assert printable_line("می‌خواهم 日本 naïve …") == "می‌خواهم 日本 naïve …"


def test_an_event_prints_as_its_line_alone_and_in_a_list():
    for event in each_kind("something"):
        assert repr(event) == str(event) == summary_line(event)
    read = Read(statement="facts()", rows=("a fact",))
    assert repr([read]) == "[read       facts() -> 1 row]"


def test_a_printed_event_is_still_compared_by_all_its_fields():
    one = Read(statement="facts()", rows=("a fact",))
    other = Read(statement="facts()", rows=("another fact",))
    assert repr(one) == repr(other) and one != other and one == pickle.loads(pickle.dumps(one))


def test_an_event_whose_fields_are_of_another_type_still_prints():
    assert repr(Answered(text=5, forced=False)) == "answer     5"
    assert "None" in repr(Read(statement=None, rows=()))


def test_caption_line_and_parts_say_the_same_of_a_vote():
    told = format_event(Voted(choice="INSERT", inserts=2, retrieves=1, invalid=1, possible=5))
    counts = "2 INSERT, 1 RETRIEVE, 1 invalid"
    assert told.caption == "vote: INSERT" and counts in told.said and counts in told.parts[1].content
