"""A certificate as a picture: the path in order, each state with its sign and line, and the same in words."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime

from kgot_lab.memory.claims.certificate import FACT_STATES, Certificate, CertifiedFact, OpenFact, certify
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.types import Triple
from kgot_lab.viz.static.fact_pictures import STATE_LOOKS, show_certificate

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text></svg><script>alert("1")</script>]]>&amp;\ud800\u202e<img src=//e.example> '
THEN = datetime(2020, 1, 1, tzinfo=UTC)


def every_state() -> Certificate:
    """A chain with a fact in each state."""
    with Claims(SQLiteClaims()) as memory:
        for source, text in (
            ("d4", "Silver Lane is a film directed by Jo Marsh."),
            ("d9", "Jo Marsh made Silver Lane."),
        ):
            claim = Claim(
                Triple("Silver Lane", "directed by", "Jo Marsh"),
                source,
                Span(0, len(text), text),
                said_by="Films",
            )
            memory.learn(claim)
        born, county = Triple("Jo Marsh", "born in", "Cork"), Triple("Cork", "county", "County Cork")
        memory.learn([Claim(born, "d5"), Claim(county, "d6")])
        memory.learn([Claim(Triple("Cork", "county", "County Kerry"), "d7")])
        memory.declare("county", "single")
        until = datetime(2018, 1, 1, tzinfo=UTC)
        memory.learn(Claim(Triple("County Cork", "head", "Ann Doyle"), "d8", valid_until=until))
        others = map(OpenFact, ("born in", "county", "head", "party"))
        certified = certify(memory, [OpenFact("directed by", "Silver Lane"), *others], at=THEN)
    married = Triple("Ann Doyle", "married to", "Bo Lind")
    unsure = CertifiedFact(married, "unsure", married, reason="no text that was read says: they married")
    return replace(certified, facts=(*certified.facts[:4], unsure, certified.facts[4]))


def texts(shown) -> list[str]:
    """The texts of a view, a line for each part of a fact."""
    return [text.strip() for text in ET.fromstring(shown.html).itertext() if text.strip()]


def test_the_facts_are_in_their_order_and_every_state_has_its_sign():
    shown = texts(show_certificate(every_state(), question="Which party?", answer="the Greens"))
    facts = [text for text in shown[:-1] if " – " in text]
    assert facts == [
        "Silver Lane – directed by – Jo Marsh",
        "Jo Marsh – born in – Cork",
        "Cork – county – County Cork",
        "County Cork – head – Ann Doyle",
        "Ann Doyle – married to – Bo Lind",
        "Ann Doyle – party – ?",
    ]
    assert [text for text in shown if len(text) == 1] == [*"✓1≠†~×"]
    assert shown[0] == "Which party?" and "“Jo Marsh made Silver Lane.” (Films)" in shown
    assert "The answer is withheld." in shown and not any("Greens" in text for text in shown)


def test_what_is_marked_is_said_in_words_too():
    shown = show_certificate(every_state(), question="Which party?")
    said = " ".join(texts(shown))
    for words in (
        "holds by 2 sources",
        "rests on one source",
        "contested: others say County Kerry",
        "out of date: it holds until 2018",
        "unsure: no text that was read says: they married",
        "missing: nothing says it",
    ):
        assert words in said
    assert [row[3] for row in shown.tables.sheets[0].rows] == list(FACT_STATES)


def test_a_certificate_without_facts_and_one_of_wild_texts_are_shown():
    assert "It rests on no fact." in texts(show_certificate(Certificate((), THEN), answer="yes"))
    fact = Triple(EVIL, EVIL * 9, EVIL)
    claim = Claim(Triple("a", "b", "c"), "d", Span(0, 1, EVIL))
    wild = Certificate((CertifiedFact(fact, "contested", fact, (claim,), (fact,)),), THEN)
    shown = show_certificate(wild, question=EVIL, answer=EVIL)
    tags = {element.tag for element in ET.fromstring(shown.html).iter()}
    assert tags <= {"div", "h4", "ol", "ul", "li", "p", "b"}


def test_the_states_differ_without_their_colours():
    assert set(STATE_LOOKS) == set(FACT_STATES)
    assert len({sign for sign, _ in STATE_LOOKS.values()}) == len(FACT_STATES)
