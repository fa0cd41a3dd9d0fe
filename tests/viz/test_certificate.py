"""A certificate as a picture: the path in order, each state with its sign and line, and the same in words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime

from kgot_lab.memory.claims.certificate import FACT_STATES, Certificate, CertifiedFact, OpenFact, certify
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.types import Triple
from kgot_lab.viz.static.fact_pictures import LINK_LOOKS, certificate_picture, describe_certificate

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text></svg><script>alert("1")</script>]]>&amp;\u202e<img src=//e.example> '
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


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_path_stands_in_its_order_and_every_state_has_its_sign_and_word():
    picture = certificate_picture(every_state(), question="Which party?", answer="the Greens")
    shown = texts(picture.svg)
    people = ("Silver Lane", "Jo Marsh", "Cork", "County Cork", "Ann Doyle", "Bo Lind")
    assert [text for text in shown if text in people] == [*people, "Ann Doyle"]
    signs = [text for text in shown if text in {look.sign for look in LINK_LOOKS.values()}]
    assert signs == [*"✓1≠†~×"] * 2  # and the legend
    assert "“Jo Marsh made Silver Lane.” (Films)" in shown
    assert "contested: others say County Kerry" in shown
    assert "The answer is withheld" in shown and not any("Greens" in text for text in shown)


def test_what_is_marked_is_said_in_words_too():
    picture = certificate_picture(every_state(), question="Which party?")
    said = describe_certificate(every_state(), "Which party?")
    assert picture.alt == said and said.startswith(
        "Question: Which party? The answer is withheld. 1. Silver Lane – directed by – Jo Marsh"
    )
    for words in (
        "holds by 2 sources",
        "rests on one source",
        "contested: others say County Kerry",
        "out of date: it holds until 2018",
        "unsure: no text that was read says: they married",
        "missing: nothing says it",
    ):
        assert words in said
    assert [row[3] for row in picture.table().sheets[0].rows] == list(FACT_STATES)


def test_paths_that_do_not_hang_together_start_over():
    facts = [
        CertifiedFact(Triple(a, "teaches", b), "holds", Triple(a, "teaches", b))
        for a, b in (("Ada", "Bo"), ("Cy", "Di"), ("Di", "Ed"))
    ]
    shown = texts(certificate_picture(Certificate(tuple(facts), THEN)).svg)
    names = [text for text in shown if text in ("Ada", "Bo", "Cy", "Di", "Ed")]
    assert names == ["Ada", "Bo", "Cy", "Di", "Ed"]


def test_a_certificate_without_facts_and_one_of_wild_texts_are_drawn():
    assert "It rests on no fact." in certificate_picture(Certificate((), THEN), answer="yes").alt
    fact = Triple(EVIL, EVIL * 9, EVIL)
    claim = Claim(Triple("a", "b", "c"), "d", Span(0, 1, EVIL))
    wild = Certificate((CertifiedFact(fact, "contested", fact, (claim,), (fact,)),), THEN)
    picture = certificate_picture(wild, question=EVIL, answer=EVIL)
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(picture.svg).iter()}
    assert tags <= {"svg", "title", "g", "rect", "text", "path", "polygon", "circle"}
    assert not re.search(r"<(script|img)", picture.svg)
    assert "<img" in picture._repr_html_()


def test_the_states_differ_without_their_colours():
    assert set(LINK_LOOKS) == set(FACT_STATES)
    assert len({look.sign for look in LINK_LOOKS.values()}) == len(FACT_STATES)
    lines = {(look.width, look.dashes, state == "contested") for state, look in LINK_LOOKS.items()}
    assert len(lines) == len(FACT_STATES)
