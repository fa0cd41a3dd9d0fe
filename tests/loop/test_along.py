"""The mode `paths`: the best path is read first, two things are asked about apart, what a graph holds already
comes before any look-up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kgot_lab.errors import BadInput, BadReply, ToolFailed, UnknownName
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Event,
    Forced,
    Parsed,
    Read,
    Started,
    ToolReturned,
    Voted,
    Wrote,
    from_json,
    to_json,
)
from kgot_lab.loop.limits import PATHS, Limits, calls_by_role, preset
from kgot_lab.loop.modes.paths.question_form import offered_choices, parse_hops
from kgot_lab.loop.replay.replay import Resources, recorded_limits, resume, verify
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME as MENTIONS
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE as SAYS
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Document, Prompt, Reply, Triple

LANGUAGES = ("in_memory", "cypher_embedded", "sparql_embedded", "fused")
# read in the quick tier by tests/loop/test_languages.py and test_evidence.py
SLOW = (
    "cypher_embedded",
    "fused",
)
EACH_LANGUAGE = [
    pytest.param(language, marks=[pytest.mark.extended] * (language in SLOW)) for language in LANGUAGES
]
PASSAGES = [
    Document(
        "d1",
        "Mira Tolland is a politician. She resigned to become a lobbyist for Harrow Brewing Company.",
        "Mira Tolland",
    ),
    Document(
        "d2", "Harrow Brewing Company is a brewer in Leeds. It was founded in 1984.", "Harrow Brewing Company"
    ),
    Document("d3", "Copper Lane is a film of 1961.", "Copper Lane"),
    Document("d4", "Silver Lane is a film directed by Jo Marsh. It came out in 1946.", "Silver Lane"),
    Document("d5", "Jo Marsh was born in Cork.", "Jo Marsh"),
]
TOOL = search(PASSAGES, bm25(PASSAGES), k=5)
WHEN = "When was the company founded for which Mira Tolland became a lobbyist?"
OLDER = PATHS.but(check_answers=False, typed_facts=True, wide_tokens=320)
PLAIN = OLDER.but(typed_facts=False)


class Told:
    """A scripted model, which stands for no real one: it replies to what a prompt asks last, and holds it as
    likely as it is told.
    """

    def __init__(self, replies: Mapping[str, str | tuple[str, float]]):
        self.name, self._replies = (
            "scripted",
            {asked: (each, 0.9) if isinstance(each, str) else each for asked, each in replies.items()},
        )
        self._llm = Scripted(lambda prompt: self._reply(prompt)[0], self.name)

    def _reply(self, prompt: Prompt) -> tuple[str, float]:
        text = prompt.messages[-1].text
        asked = text if text.startswith("Text: ") else text.rpartition("Question: ")[2]
        return next(
            (reply for known, reply in self._replies.items() if asked.startswith(known)), ("nothing", 0.1)
        )

    def __call__(self, prompt: Prompt) -> Reply:
        likely = math.log(self._reply(prompt)[1]) if prompt.likelihood else None
        return replace(self._llm(prompt), logprob=likely)


def run_of(
    question: str,
    replies: Mapping[str, str | tuple[str, float]],
    limits: Limits = PLAIN,
    kind: str = "in_memory",
) -> list[Event]:
    store = open_store(kind)
    try:
        return list(think(question, Told(replies), store, [TOOL], limits))
    finally:
        store.close()


def of(events: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("kind", EACH_LANGUAGE)
def test_a_sure_answer_from_the_best_path_ends_the_run_after_one_call(kind: str) -> None:
    events = run_of(WHEN, {WHEN: "1984"}, kind=kind)
    final = events[-1]
    assert isinstance(final, Answered)
    assert final.text == "1984"
    assert not final.forced
    assert final.likelihood == pytest.approx(0.9)
    assert len(of(events, Asked)) == 1
    assert [voted.choice for voted in of(events, Voted)] == ["INSERT", "RETRIEVE"]
    assert set(final.passages) == {"d1", "d2"}
    said = {support.sentence for each in final.supports for support in each}
    assert "It was founded in 1984." in said


@pytest.mark.extended
def test_every_language_shows_the_model_the_same_path() -> None:
    shown = {kind: of(run_of(WHEN, {WHEN: "1984"}, kind=kind), Asked)[0].prompt for kind in LANGUAGES}
    assert len({prompt.messages[-1].text for prompt in shown.values()}) == 1


def test_the_graph_holds_each_sentence_under_its_title_with_the_names_in_it() -> None:
    edges = [edge for wrote in of(run_of(WHEN, {WHEN: "1984"}), Wrote) for edge in wrote.diff.added_edges]
    assert ("Mira Tolland §2", MENTIONS, "Harrow Brewing Company") in {
        (edge.source, edge.type, edge.target) for edge in edges
    }
    assert {edge.properties["source"] for edge in edges if edge.type == SAYS} >= {"d1", "d2"}


def test_two_things_are_asked_about_apart_and_the_answer_is_worked_out() -> None:
    question = "Which film came out first, Copper Lane or Silver Lane?"
    replies = {
        question: "When did X come out?", "When did Copper Lane come out?": "1961", "When did Silver Lane come out?": ("1946", 0.4),
    }  # fmt: skip
    final = run_of(question, replies)[-1]
    assert isinstance(final, Answered) and final.text == "Silver Lane" and set(final.passages) == {"d3", "d4"}
    assert final.likelihood == pytest.approx(0.4)


def test_an_unsure_answer_has_the_question_split_into_hops_that_follow_the_names() -> None:
    question = "Where was the director of Silver Lane born?"
    replies = {
        question: ("Leeds", 0.2), "Who directed Silver Lane?": "Jo Marsh", "Where was Jo Marsh born?": "Cork",
    }  # fmt: skip
    hops = "1. Who directed Silver Lane?\n2. Where was #1 born?"

    class Splitting(Told):
        def _reply(self, prompt: Prompt) -> tuple[str, float]:
            return (hops, 0.5) if "Split the question" in prompt.messages[0].text else super()._reply(prompt)

    store = open_store("in_memory")
    events = list(think(question, Splitting(replies), store, [TOOL], PLAIN))
    store.close()
    final = events[-1]
    assert isinstance(final, Answered) and final.text == "Cork" and set(final.passages) == {"d4", "d5"}


def test_an_answer_that_stands_in_no_sentence_is_refused_and_a_last_one_is_a_guess() -> None:
    events = run_of(WHEN, {WHEN: "1999"})
    assert "it does not stand in the sentences" in {parsed.problem for parsed in of(events, Parsed)}
    final = events[-1]
    assert isinstance(final, Answered) and final.forced and of(events, Forced)
    assert final.evidence and final.remark == "unsure, a guess: what was read does not say it"


def test_facts_of_the_path_in_hand_are_written_where_its_sentences_say_them() -> None:
    lines = "Harrow Brewing Company | founded in | 1984\nHarrow Brewing Company | owned by | the Queen"

    class Extracting(Told):
        def _reply(self, prompt: Prompt) -> tuple[str, float]:
            return (
                (lines, 0.5)
                if "subject | relation | object" in prompt.messages[0].text
                else super()._reply(prompt)
            )

    store = open_store("in_memory")
    list(think(WHEN, Extracting({WHEN: "1984"}), store, [TOOL], OLDER))
    facts = {
        (edge.source, edge.type, edge.target)
        for edge in store.graph().edges
        if edge.type not in (SAYS, MENTIONS)
    }
    store.close()
    assert facts == {("Harrow Brewing Company", "founded in", "1984")}


def test_a_second_question_reads_what_the_first_one_wrote_and_fetches_nothing() -> None:
    store = open_store("in_memory")
    list(think(WHEN, Told({WHEN: "1984"}), store, [TOOL], PLAIN))
    later = "Where is Harrow Brewing Company?"
    events = list(think(later, Told({later: "Leeds"}), store, [TOOL], PLAIN))
    store.close()
    final = events[-1]
    assert isinstance(final, Answered)
    assert final.text == "Leeds"
    assert not final.forced
    assert not of(events, ToolReturned)


def test_a_graph_that_lasts_is_walked_from_name_to_name_as_a_search_walks_passages() -> None:
    store = open_store("in_memory")
    list(think(WHEN, Told({WHEN: "1984"}), store, [TOOL], PLAIN))
    events = list(think(WHEN, Told({WHEN: "1984"}), store, [TOOL], PLAIN))
    store.close()
    (asked,) = of(events, Asked)
    assert "lobbyist for Harrow Brewing Company" in asked.prompt.messages[-1].text
    assert "founded in 1984" in asked.prompt.messages[-1].text
    assert not of(events, ToolReturned) and events[-1].text == "1984"


@pytest.mark.parametrize("kind", EACH_LANGUAGE)
def test_a_graph_of_typed_facts_alone_is_read_near_the_names_of_the_question(kind: str) -> None:
    store = open_store(kind)
    facts = [
        Triple("Nordvik Steel", "founded by", "Ole Sætre"),
        Triple("Ole Sætre", "born in", "Bergen"),
        Triple("Leeds", "part of", "England"),
    ]
    store.write(store.dialect.add([(fact, {}) for fact in facts]))
    where = "Where was the founder of Nordvik Steel born?"
    events = list(think(where, Told({where: "Bergen"}), store, [], OLDER))
    store.close()
    (asked,) = of(events, Asked)
    shown = asked.prompt.messages[-1].text
    assert "Nordvik Steel founded by Ole Sætre" in shown
    assert "Ole Sætre born in Bergen" in shown
    assert "England" not in shown
    final = events[-1]
    assert isinstance(final, Answered) and final.text == "Bergen" and not final.forced
    assert set(final.evidence) == {
        "Nordvik Steel --[founded by]--> Ole Sætre",
        "Ole Sætre --[born in]--> Bergen",
    }


def test_a_run_on_typed_facts_is_verified(tmp_path) -> None:
    store, path = open_store("in_memory"), tmp_path / "run.jsonl"
    store.write(store.dialect.add([(Triple("Nordvik Steel", "founded by", "Ole Sætre"), {})]))
    who = "Who founded Nordvik Steel?"
    list(record(think(who, Told({who: "Ole Sætre"}), store, [], PLAIN), path))
    store.close()
    assert verify(load_run(path)) is None


def test_a_run_is_walked_again_to_the_last_event_and_goes_on_where_it_was_stopped(tmp_path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    store = open_store("in_memory")
    events = list(record(think(WHEN, Told({WHEN: "1984"}), store, [TOOL], PLAIN), whole))
    store.close()
    assert verify(load_run(whole)) is None
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    stop = next(number for number, event in enumerate(events) if isinstance(event, Read))
    part.write_text("".join(lines[: stop + 1]), encoding="utf-8")
    store = open_store("in_memory")
    list(resume(part, store, Resources([TOOL], Told({WHEN: "1984"}))))
    store.close()
    assert load_run(part).events[-1].text == "1984"


def test_without_a_tool_that_finds_documents_and_without_a_graph_there_is_nothing_to_begin_with() -> None:
    with pytest.raises(BadInput, match="nothing to take facts from"):
        list(think(WHEN, Told({}), open_store("in_memory"), [], PATHS))


def test_a_model_that_tells_no_likelihood_is_asked_along_all_paths_and_the_first_answer_stands() -> None:
    class Silent(Told):
        def __call__(self, prompt: Prompt) -> Reply:
            return replace(super().__call__(prompt), logprob=None)

    store = open_store("in_memory")
    final = list(think(WHEN, Silent({WHEN: "1984"}), store, [TOOL], PLAIN))[-1]
    store.close()
    assert isinstance(final, Answered) and final.text == "1984" and final.likelihood is None


def test_the_modes_of_writing_and_reading_go_together() -> None:
    with pytest.raises(BadInput, match="go together"):
        Limits(reading="paths")
    assert preset("paths").reading == "paths"


def test_the_look_up_of_an_open_end_names_what_is_asked() -> None:
    calls = [call for chose in of(run_of(WHEN, {WHEN: ("Leeds", 0.1)}), Chose) for call in chose.calls]
    assert calls[0].arguments["query"] == WHEN and len(calls) > 1


def test_the_forecast_counts_what_an_open_question_takes_whose_first_path_is_not_sure() -> None:
    assert calls_by_role(OLDER) == {"path": 4, "hops": 1, "wide": 1, "facts": 1}
    assert calls_by_role(OLDER.but(hops=False, wide_tokens=0, typed_facts=False, steps=1)) == {
        "path": 1,
        "hops": 0,
        "wide": 0,
        "facts": 0,
    }


def test_attached_files_and_tools_that_find_no_documents_are_refused_rather_than_passed_over() -> None:
    add = TextTool("add", "Adds.", {"numbers": "some"}, lambda numbers: Result(numbers))
    for tools, attachments, why in (
        ([TOOL], ["table.csv"], "not attached files"),
        ([add], [], "needs a tool that finds documents"),
    ):
        with pytest.raises(BadInput, match=why):
            list(think(WHEN, Told({}), open_store("in_memory"), tools, PATHS, attachments=attachments))


def test_a_search_that_names_no_documents_is_read_as_one_passage() -> None:
    text = "Harrow Brewing Company was founded in 1984 by the uncle of Mira Tolland."
    bare = TextTool("search", "Finds.", {"query": "words"}, lambda query: Result(text), finds="query")
    store = open_store("in_memory")
    final = list(think(WHEN, Told({WHEN: "1984"}), store, [bare], PLAIN))[-1]
    store.close()
    assert isinstance(final, Answered)
    assert final.text == "1984"
    assert not final.forced
    assert final.supports[0][0].sentence == text


def test_an_empty_answer_where_only_a_guess_is_left_is_an_error() -> None:
    nothing = TextTool("search", "Finds.", {"query": "words"}, _finds_nothing, finds="query")
    with pytest.raises(BadReply, match="empty answer"):
        list(think(WHEN, Told({WHEN: ""}), open_store("in_memory"), [nothing], PLAIN))


def _finds_nothing(query: str) -> Result:
    raise ToolFailed(f"nothing on {query}")


# --- parts that may be left out ---


def test_without_paths_the_best_sentences_are_read_wherever_they_stand() -> None:
    limits = PLAIN.but(paths=0, steps=1, hops=False, wide_tokens=90)
    asked = of(run_of(WHEN, {WHEN: "1984"}, limits), Asked)
    assert [event.role for event in asked] == ["wide"]
    assert "It was founded in 1984." in asked[0].prompt.messages[-1].text
    with pytest.raises(BadInput, match="both 0: then nothing is read"):
        PLAIN.but(paths=0, wide_tokens=0)


def test_two_things_may_be_asked_about_together() -> None:
    question = "Which film came out first, Copper Lane or Silver Lane?"
    final = run_of(question, {question: "Silver Lane"}, PLAIN.but(comparisons=False))[-1]
    assert isinstance(final, Answered) and final.text == "Silver Lane"


def test_links_and_examples_may_be_left_out() -> None:
    bare = of(run_of(WHEN, {WHEN: "1984"}, PLAIN.but(links=[], examples=False)), Wrote)
    assert {edge.type for wrote in bare for edge in wrote.diff.added_edges} == {SAYS}
    asked = of(run_of(WHEN, {WHEN: "1984"}, PLAIN.but(links=["vectors"], examples=False)), Asked)
    assert len(asked[0].prompt.messages) == 2
    for wrong in ("titles", ["title"], [3]):
        with pytest.raises((BadInput, UnknownName), match="links"):
            PLAIN.but(links=wrong)


def test_limits_with_links_come_back_from_a_trace(tmp_path) -> None:
    store, path = open_store("in_memory"), tmp_path / "run.jsonl"
    list(record(think(WHEN, Told({WHEN: "1984"}), store, [TOOL], PLAIN.but(links=["titles"])), path))
    store.close()
    run = load_run(path)
    started = run.events[0]
    assert isinstance(started, Started) and recorded_limits(started).routes.links == ("titles",)
    assert verify(run) is None


def test_facts_are_taken_from_the_sentences_that_say_the_answer_before_others() -> None:
    long = Document(
        "d9",
        " ".join(f"Old Mill has {number} sails." for number in range(2, 9)) + " It stands in Ghent.",
        "Old Mill",
    )
    question, asked = "In which town does Old Mill stand?", []

    class Extracting(Told):
        def _reply(self, prompt: Prompt) -> tuple[str, float]:
            if "subject | relation | object" not in prompt.messages[0].text:
                return super()._reply(prompt)
            asked.append(prompt.messages[-1].text)
            return "Old Mill | stands in | Ghent", 0.5

    store = open_store("in_memory")
    list(think(question, Extracting({question: "Ghent"}), store, [search([long], bm25([long]), k=1)], OLDER))
    store.close()
    assert asked and asked[0].startswith("[Old Mill] It stands in Ghent.")


# An answer is checked against the sentences it was read from.

CHECKED = PATHS
BORN = "When was Zork Vandal founded?"
SAID = "Text: "  # what the prompt of a check begins with


@pytest.mark.parametrize(
    ("question", "replies", "outcome", "missing"),
    [
        (WHEN, {WHEN: "1984", SAID: "yes"}, "supported", ""),
        (WHEN, {WHEN: "1984", SAID: "Ja, das sagt er."}, "supported", ""),
        (WHEN, {WHEN: "1984", SAID: "Jamais."}, "not in the sources", f"no text that was read answers: {WHEN}"),
        (WHEN, {WHEN: "1984", SAID: ("no", 0.99)}, "not in the sources", f"no text that was read answers: {WHEN}"),
        (WHEN, {WHEN: ("1984", 0.6), SAID: ("no", 0.7)}, "unsure", "the cited sentences may not say it"),
        (WHEN, {WHEN: "unknown"}, "not in the sources", f"no text that was read answers: {WHEN}"),
        (BORN, {BORN: "1984", SAID: "yes"}, "not in the sources", "no text that was read says this of Zork Vandal"),
    ],
)  # fmt: skip
def test_an_answer_is_supported_if_the_sentences_that_carry_it_say_it(
    question, replies, outcome, missing
) -> None:
    final = run_of(question, replies, CHECKED)[-1]
    assert isinstance(final, Answered)
    assert (final.outcome, final.missing, final.forced) == (outcome, missing, outcome != "supported")
    assert from_json(json.loads(json.dumps(to_json(final)))) == final


def test_at_most_three_sentences_are_cited_and_the_last_one_has_the_answer() -> None:
    final = run_of(WHEN, {WHEN: "1984", SAID: "yes"}, CHECKED)[-1]
    cited = [support.sentence for supports in final.supports for support in supports]
    assert cited == [
        "She resigned to become a lobbyist for Harrow Brewing Company.",
        "It was founded in 1984.",
    ]  # fmt: skip


def test_what_the_documents_do_not_say_cites_nothing_and_says_so() -> None:
    final = run_of(WHEN, {WHEN: "unknown"}, CHECKED)[-1]
    assert (final.shown_text, final.evidence) == ("the documents do not say", ())
    assert final.remark == f"not in the sources: no text that was read answers: {WHEN}"


def test_an_answer_recorded_without_an_outcome_has_that_of_a_guess_or_of_none() -> None:
    told = {"event": "Answered", "step": 1, "text": "1984", "evidence": [], "passages": [], "supports": []}
    outcomes = [from_json({**told, "forced": forced}).outcome for forced in (False, True)]
    assert outcomes == ["not checked", "unsure"]


@pytest.mark.parametrize(
    ("question", "things"),
    [
        ("Which was bought first, the lathe or the echo sounder?", ["lathe", "echo sounder"]),
        ("Which of the two boats is longer: the Calla or the Sabrine?", ["Calla", "Sabrine"]),
        ("Which plot lies higher, O1 or O2?", ["O1", "O2"]),
        ("Who built the lathe?", []),
    ],
)
def test_a_question_may_end_with_the_things_that_it_offers(question, things) -> None:
    assert offered_choices(question) == things


@pytest.mark.parametrize(
    "reply",
    ["1. Who built it?\n2. Who is #1?", f"1. {WHEN}\n2. Where is #1?", "1. Who built it?\n2. What was #1?"],
)
def test_a_question_that_is_only_asked_again_is_not_split(reply) -> None:
    assert parse_hops(reply, WHEN) == []


@pytest.mark.parametrize(
    ("doubt", "roles"), [(0.5, ["wide", "reread", "claim", "check", "check"]), (0.9, ["wide"])]
)
def test_after_an_unsure_unknown_the_text_is_read_again_without_that_choice(
    doubt: float, roles: list[str]
) -> None:
    class Doubting(Told):
        def _reply(self, prompt: Prompt) -> tuple[str, float]:
            return ("unknown", doubt) if "unknown" in prompt.messages[0].text else super()._reply(prompt)

    question = "When was Harrow Brewing Company founded?"
    model = Doubting({question: "1984", SAID: "yes"})
    events = list(think(question, model, open_store("in_memory"), [TOOL], CHECKED))
    assert [event.role for event in of(events, Asked)] == roles
    assert events[-1].outcome == ("supported" if doubt < 0.8 else "not in the sources")
