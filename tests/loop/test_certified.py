"""The certificate of a run: its check and chain, by the sentences that it cites, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from loop.test_along import PASSAGES, SAID, WHEN, Told
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.graph.changes import Support
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.answer_check import question_names
from kgot_lab.loop.certificate import certificate_of_run, certified_answer, rival_value
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Event, Parsed, Started, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.limits import PATHS
from kgot_lab.loop.trace import load_run
from kgot_lab.memory.claims.certificate import Certificate, hedge_answer
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import empty_store
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.words import contains_words
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Document, Edge, Message, Node, Prompt

WHERE = "Where was the director of Silver Lane born?"
DIRECTED, BORN = "Who directed Silver Lane?", "Where was Jo Marsh born?"
LANE = Document("d4", "Silver Lane is a film directed by Jo Marsh.", "Silver Lane")
MARSH = Document("d5", "Jo Marsh was born in Cork.", "Jo Marsh")
OSK = Document("osk.md#1", "Odo Castrell designed a bridge near Osk.", "Osk")
MAYOR = "Who is the mayor of Osk?"
UNSAID = f"no text that was read answers: {MAYOR}"
UNCHECKED = "whether the sentences that it cites say it was not checked"
NOWHERE = "no sentence that it cites contains the answer"
NOT_SAID = {"outcome": "not in the sources", "forced": True}
MADE = Edge("Jo Marsh", "born in", "Cork")
WROTE = Wrote(statement="…", diff=Diff(added_nodes=(Node("Jo Marsh"), Node("Cork")), added_edges=(MADE,)))
RUNS = sorted(path.name for path in bundled_path("traces/hotpotqa_demo.jsonl").parent.glob("*.jsonl"))


def asked(role: str, request: str, reply: str) -> Asked:
    return Asked(
        role=role, model="m", prompt=Prompt((Message("user", request),), None, 0.0, 0, 9), reply=reply
    )


def run_of(
    answer: str,
    cited: Sequence[Document],
    *,
    question: str = WHERE,
    checked: bool = False,
    met: Sequence[Document] = (),
    chain: Mapping[str, str] | None = None,
    **end: object,
) -> list[Event]:
    """A run that met some documents of one sentence each and cites a few of them."""
    events: list[Event] = [Started(question=question)]
    documents = tuple(dict.fromkeys([*met, *cited]))
    events += [ToolReturned(call=ToolCall("search"), text="…", sources=documents)]
    if chain:
        events.append(asked("hops", question, "1. Who directed Silver Lane?\n2. Where was #1 born?"))
        for hop, reply in chain.items():
            events += [asked("path", f"…\n\nQuestion: {hop}", reply), Parsed(text=reply)]
    if checked:
        events.append(asked("check", f"…\nQuestion: {question}\nAnswer: {answer}", "yes"))
    supports = tuple((Support(document.id, document.text),) for document in cited)
    return [*events, Answered(**{"text": answer, "forced": False, "supports": supports} | end)]


def states(certificate: Certificate) -> list[str]:
    return [fact.state for fact in certificate.facts]


@every(
    ("run", "ruling", "reasons"),
    [
        (run_of("Cork", [LANE, MARSH], checked=True), "passes", ()),
        (run_of("yes", [LANE], checked=True), "passes", ()),
        (run_of("cork", [MARSH], checked=True), "passes", ()),
        (run_of("東京", [Document("t", "田中は東京に住んでいる。")], checked=True), "passes", ()),
        (run_of("Silver Lane", [Document("d", "It is a film.", "Silver Lane")], checked=True), "passes", ()),
        (run_of("Cork", [MARSH], checked=True, outcome="unsure", forced=True, missing=UNSAID), "hedged", (UNSAID,)),
        (run_of("Odo Castrell", [OSK], checked=True, missing=UNSAID, **NOT_SAID), "withheld", (UNSAID,)),
        (run_of("Cork", [], missing="no text that was read mentions Zork", **NOT_SAID), "withheld",
         ("no text that was read mentions Zork",)),
        (run_of("unknown", [MARSH], missing="what was read does not say it", **NOT_SAID), "withheld",
         ("what was read does not say it",)),
        # the check took it for said, and no cited sentence contains it
        (run_of("Dublin", [LANE, MARSH], checked=True), "withheld", (NOWHERE,)),
        (run_of("Cor", [MARSH], checked=True), "withheld", (NOWHERE,)),
        (run_of("Marsh Cork", [MARSH], checked=True), "withheld", (NOWHERE,)),
        (run_of("Cork", [], checked=True), "withheld", (NOWHERE,)),
        (run_of("2", [LANE, MARSH], checked=True), "hedged", (NOWHERE,)),
        # runs that were not checked, and one that checked another answer
        (run_of("Cork", [LANE, MARSH]), "hedged", (UNCHECKED,)),
        (run_of("yes", [MARSH]), "hedged", (UNCHECKED,)),
        ([*run_of("Galway", [MARSH], checked=True)[:-1], run_of("Cork", [MARSH])[-1]], "hedged",
         (UNCHECKED,)),
        (run_of("Cork", [LANE, MARSH], forced=True), "withheld", ("no read gave rows",)),
        (run_of("Dublin", [LANE, MARSH]), "withheld", (NOWHERE,)),
        (run_of("unknown", []), "withheld", ("no text that was read says it",)),
        (run_of("", []), "withheld", ("no text that was read says it",)),
        ([Started(question=""), Answered(text="Cork", forced=False)], "withheld", (NOWHERE,)),
        # a fact that was in the graph, and one that the run wrote and no sentence states
        (run_of("Cork", [], evidence=(fact_of(MADE),)), "hedged", (UNCHECKED,)),
        ([WROTE, *run_of("Cork", [], evidence=(fact_of(MADE),))], "withheld", (NOWHERE,)),
    ],
)  # fmt: skip
def test_a_run_passes_if_its_answer_was_checked_and_a_cited_sentence_contains_its_answer(
    run, ruling, reasons
):
    certificate = certificate_of_run(run)
    assert (certificate.ruling, certificate.reasons) == (ruling, reasons)


def test_an_answer_is_stated_by_the_cited_sentences_and_rests_on_each_source():
    (fact,) = certificate_of_run(run_of("Cork", [LANE, MARSH], checked=True)).facts
    assert fact.fact.identity == (WHERE, "is answered by", "Cork") and fact.sole_sources == ("d4", "d5")
    assert [(each.span.text, each.said_by) for each in fact.supports] == [
        (LANE.text, "Silver Lane"), (MARSH.text, "Jo Marsh"),
    ]  # fmt: skip


def test_what_is_missing_is_one_sentence_without_the_answer_that_is_withheld():
    run = run_of("Odo Castrell", [OSK], question=MAYOR, checked=True, missing=UNSAID, **NOT_SAID)
    certificate = certificate_of_run(run)
    told = f"No answer is given: {UNSAID}."
    assert hedge_answer("Odo Castrell", certificate) == told
    shown = certified_answer(run[-1], certificate)
    assert shown.shown_text == told and not shown.remark and "Castrell" not in repr(shown)


# --- the chain ---


def test_a_chain_that_leads_to_the_answer_comes_before_it():
    run = run_of("Cork", [LANE, MARSH], checked=True, chain={DIRECTED: "Jo Marsh", BORN: "Cork"})
    certificate = certificate_of_run(run)
    assert [fact.fact.identity for fact in certificate.facts] == [
        ("Silver Lane", DIRECTED, "Jo Marsh"), ("Jo Marsh", BORN, "Cork"), (WHERE, "is answered by", "Cork"),
    ]  # fmt: skip
    assert certificate.ruling == "passes"
    assert [fact.sources for fact in certificate.facts] == [("d4", "d5"), ("d5",), ("d4", "d5")]


@every(
    "chain",
    [{DIRECTED: "Jo Marsh"}, {DIRECTED: "Jo Marsh", BORN: "unknown"}, {DIRECTED: "Jo Marsh", BORN: "Galway"},
     {DIRECTED: "Pal Norr", "Where was Pal Norr born?": "Cork"}],
)  # fmt: skip
def test_a_chain_that_ends_early_or_elsewhere_or_is_not_cited_is_no_part_of_the_answer(chain):
    certificate = certificate_of_run(run_of("Cork", [LANE, MARSH], checked=True, chain=chain))
    assert states(certificate) == ["one source"]


@every(
    ("reply", "ruling"),
    [("yes", "passes"), (("no", 0.7), "hedged"), (("no", 0.98), "withheld")],
)
def test_a_run_of_the_loop_is_certified_by_its_own_check(reply, ruling):
    tool = search(PASSAGES, bm25(PASSAGES), k=5)
    store = empty_store("in_memory")
    run = list(think(WHEN, Told({WHEN: ("1984", 0.6), SAID: reply}), store, [tool], PATHS))
    store.close()
    certificate = certificate_of_run(run)
    assert certificate.ruling == ruling
    unanswered, unsure = f"no text that was read answers: {WHEN}", "the cited sentences may not say it"
    assert certificate.reasons == {"passes": (), "hedged": (unsure,), "withheld": (unanswered,)}[ruling]


# --- recorded runs, and what is none ---


def test_a_run_without_an_answer_is_refused():
    with pytest.raises(BadInput, match="finished run"):
        certificate_of_run([Started(question=WHERE)])
    with pytest.raises(BadInput, match="a run is a Trace or its events"):
        certificate_of_run(None)  # type: ignore[arg-type]


@every("name", RUNS)
def test_recorded_runs_were_not_checked_so_none_passes(name):
    run = load_run(bundled_path(f"traces/{name}"))
    first = certificate_of_run(run)
    assert first == certificate_of_run(run) and first.ruling != "passes" and first.reasons


# --- what contests ---


@every(
    ("sentence", "title", "rival"),
    [
        ("Jo Marsh was born in Galway.", "Jo Marsh", "Galway"),
        ("Jo Marsh was born in New York City.", "A book of lives", "New York City"),
        ("Pal Norr was born in Galway.", "Pal Norr", ""),
        ("Jo Marsh was born in 1901.", "Jo Marsh", ""),
        ("Jo Marsh was buried near the old harbour of Galway.", "Jo Marsh", ""),
        ("Jo Marsh was born in Cork.", "Jo Marsh", ""),
        ("Jo Marsh was born in Galway.", "Galway", ""),
    ],
)
def test_another_document_contests_an_answer_with_another_value_in_the_same_words(sentence, title, rival):
    other = Document("x1", sentence, title)
    (fact,) = certificate_of_run(run_of("Cork", [MARSH], checked=True, met=[other])).facts
    assert [each.object for each in fact.rivals] == [rival] * bool(rival)
    assert fact.state == ("contested" if rival else "one source")


def test_a_rival_of_an_answer_that_was_not_checked_is_among_the_reasons():
    other = Document("x1", "Jo Marsh was born in Galway.", "Jo Marsh")
    certificate = certificate_of_run(run_of("Cork", [MARSH], met=[other]))
    assert certificate.reasons == (f"{UNCHECKED}; others say Galway",)


@every(
    ("sentence", "other", "value", "rival"),
    [
        ("She died on 20 March 851 in Tours.", "She died on 20 March 852 in Tours.", "20 March 851", "20 March 852"),
        ("He was born in Cork, Ireland.", "He was born in New York City, Ireland.", "Cork", "New York City"),
        ("Cork.", "Galway.", "Cork", ""),
        ("He was born in Cork.", "He was born in County Cork.", "Galway", ""),
        ("Belt: part casing; town Rivermouth", "Corley: part board; town Highfield", "Rivermouth", ""),
    ],
)  # fmt: skip
def test_the_value_in_the_same_place_is_found_whole(sentence, other, value, rival):
    assert rival_value(sentence, other, value) == rival


# --- words and names ---


@every(
    ("value", "text", "stands"),
    [
        ("New York", "He lives in new york, USA.", True),
        ("York New", "He lives in New York.", False),
        ("art", "the party", False),
        ("東京", "田中は東京に住んでいる。", True),
        ("서울", "그는 서울에서 산다", True),
        ("Jose\u0301", "José left", True),
        ("†", "†", True),
        ("†", "† 1815", False),
        ("", "anything", False),
    ],
)
def test_a_value_stands_in_a_text_word_for_word_in_any_script(value, text, stands):
    assert contains_words(value, text) == stands


def test_the_names_of_a_question_are_its_titles_and_runs_of_capitals():
    asked = "Whose teacher wrote about Harrow Brewing Company's founder, and who is Mira Tolland?"
    assert question_names(asked, ["Mira Tolland (politician)"]) == [
        "Mira Tolland (politician)",
        "Harrow Brewing Company",
    ]
    assert question_names("When did it end?", []) == []
    assert question_names("What is the place of birth of Jo Marsh?", ["Place of birth"]) == ["Jo Marsh"]
