"""`kgot-lab memory FILE review` on a real terminal: a key decides on the claim that is shown, and each
decision is on file at once.
"""

from __future__ import annotations

import signal

import pytest
from support.saying import fact, inferred, said

from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.memory.claims.review import ClaimReview
from kgot_lab.types import Triple

pytest.importorskip("termios", reason="terminals of POSIX")
from support.terminal import on_terminal

pytestmark = pytest.mark.usefixtures("here")
LONDON = said("Ada lives_in London", "letter", confidence=0.5, span=Span(27, 46, "Ada lives in London"))
KNOWS, SAW = said("Ada knows Mary", confidence=0.6), said("Ada saw Rome", confidence=0.3)
REVIEW = ("memory", "memory.db", "review", "--by", "Grace")


@pytest.fixture
def claims(here):
    """A memory in which three claims wait."""
    with open_claims("memory.db") as memory:
        memory.learn([LONDON, KNOWS, SAW, inferred("Ada lives_in England", "Ada lives_in London")])
        yield memory


def decisions(claims):
    return [(each.action, each.by) for each in claims.log()[1:]]


def test_each_key_decides_on_the_claim_that_is_shown_and_the_last_decision_is_taken_back(claims):
    with on_terminal(*REVIEW) as terminal:
        terminal.press("a")
        terminal.sees(
            r"1 of 3 .*\nAda --\[lives_in\]--> London\n  “Ada lives in London”\n  from letter, characters 27 to 46"
        )
        terminal.press("r")
        terminal.sees(r"change 2: 2 facts began to hold(.*\n)*1 of 2 .*\nAda --\[knows\]--> Mary")
        terminal.press("u")
        terminal.sees(r"taken back: Ada --\[knows\]--> Mary waits again\n\n1 of 2")
        terminal.press("s")
        terminal.press("k")
        terminal.press("s")
        terminal.press("o")
        terminal.type("", after="another object")
        terminal.type("0.9", after="another confidence")
        terminal.press("q")
        assert terminal.code() == 0 and "2 decisions on file, 1 claim to decide on" in terminal.shown
    assert decisions(claims) == [
        ("accept", "Grace"),
        ("reject", "Grace"),
        ("undo", "Grace"),
        ("override", "Grace"),
    ]
    assert claims.confidence(fact("Ada saw Rome")) == pytest.approx(0.9)
    assert claims.holds(fact("Ada lives_in England"))
    assert [each.claim for each in ClaimReview(claims).queue()] == [KNOWS]


def test_what_somebody_else_decided_meanwhile_and_nonsense_is_said_and_the_review_goes_on_to_its_end(claims):
    with on_terminal(*REVIEW) as terminal:
        terminal.press("?")
        terminal.press("o")
        terminal.type("", after="another object")
        terminal.type("much", after="another confidence")
        terminal.sees("not done: a confidence is a number from 0 to 1, not 'much'")
        terminal.press("\x1b[A")
        ClaimReview(claims, "Mary").reject(LONDON.id)
        terminal.press("a")
        terminal.sees("not done: 'Ada --.lives_in.--> London' no longer waits. It was rejected by Mary")
        terminal.press("o")
        terminal.type("Grace", after="another object")
        terminal.press("r")
        assert terminal.code() == 0 and "Nothing waits any more." in terminal.shown
    assert decisions(claims) == [("reject", "Mary"), ("override", "Grace"), ("reject", "Grace")]
    assert claims.facts() == (fact("Ada knows Grace"),)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ctrl-c", 130),
        ("ctrl-c in a line", 130),
        ("end of input", 0),
        ("asked to end", 128 + signal.SIGTERM),
        ("killed", -signal.SIGKILL),
    ],
)
def test_a_review_that_is_interrupted_has_lost_no_decision_and_made_none(claims, how, code):
    with on_terminal(*REVIEW) as terminal:
        terminal.press("a")
        terminal.sees("accepted: (.*\n)*1 of 2 ")
        if how == "killed":
            terminal.process.kill()
        elif how == "asked to end":
            terminal.press("s")
            terminal.sees("2 of 2 ")
            terminal.process.send_signal(signal.SIGTERM)
        elif how == "ctrl-c in a line":
            terminal.press("o")
            terminal.sees("another object")
            terminal.process.send_signal(signal.SIGINT)
        else:
            terminal.press({"ctrl-c": "\x03", "end of input": "\x04"}[how])
        assert terminal.code() == code, terminal.shown
        assert how == "killed" or (
            "1 decision on file, 2 claims to decide on" in terminal.shown
            and "Traceback" not in terminal.shown
        )
    assert decisions(claims) == [("accept", "Grace")]


def test_a_review_where_nothing_waits_says_so(here):
    open_claims("memory.db").close()
    with on_terminal(*REVIEW) as terminal:
        assert terminal.code() == 0
        assert "Nothing waits. A claim does whose confidence is below 0.7" in terminal.shown


def test_what_a_claim_says_cannot_command_the_terminal(here):
    evil = "\x1b[2J\x9b31m\x1b]0;title\x07\r\nA\u202eB"
    with open_claims("memory.db") as memory:
        memory.learn(Claim(Triple(evil, evil, evil), evil, Span(0, 9, evil), evil, confidence=0.5))
    with on_terminal(*REVIEW) as terminal:
        terminal.press("a")
        assert terminal.code() == 0 and terminal.shown.count("B") > 5
        assert all(letter.isprintable() or letter == "\n" for letter in terminal.shown)
