"""The preset for small models: a triple at a time, names to look up, no vote before there is something to
vote on.
"""

from __future__ import annotations

import json
from itertools import islice

import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.work import calls, computing_at_most

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.llm.recorded import Recorder
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Cut,
    Forced,
    Parsed,
    Read,
    Refused,
    ToolCall,
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.loop.extract import extract
from kgot_lab.loop.insert import proper_name, sourced_sentences
from kgot_lab.loop.limits import LOCAL, REFERENCE, Limits, calls_by_role, forecast
from kgot_lab.loop.render import fit_budget
from kgot_lab.loop.state import ledger
from kgot_lab.memory.extraction import (
    EXTRACTION_EXAMPLES,
    EXTRACTION_SYSTEM,
    SourcedSentence,
    grounded_facts,
    is_grounded_in,
    parse_triples,
)
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores.embedded_store import PYTHON
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.text.words import LONGEST_SENTENCE, sentences
from kgot_lab.tools.search import search
from kgot_lab.types import Document, Triple

QUESTION = "What did the friend of Ada Lovelace design?"
FACTS = {
    "born in London": "Ada Lovelace | born in | London\nAda Lovelace | won | Nobel Prize\nAda Lovelace | worked wi",
    "worked with": "Ada Lovelace | worked with | Charles Babbage",
    "designed": "Charles Babbage | designed | Analytical Engine",
    "1791": "Charles Babbage | born in | 1791",
    "Thames": "Thames | flows through | London",
}
RETRIEVE = {"answer": "Analytical Engine", "choice": "RETRIEVE", "about": ["Charles Babbage"], "missing": ""}
UNKNOWN = {
    "answer": "Unknown.",
    "choice": "RETRIEVE",
    "about": ["Ada Lovelace"],
    "missing": "what he designed",
}


@pytest.fixture(scope="module")
def tool():
    return search(ADA, bm25(ADA), k=2)


def facts_of(prompt):
    """The triples a small model would find in the sentence of a prompt."""
    said = prompt.messages[-1].text
    return next((facts for words, facts in FACTS.items() if words in said), "nothing to say")


def small(**changed):
    replies = {
        "extract": facts_of, "look": RETRIEVE, "next": {"about": ["Charles Babbage"]}, "tools": call("Babbage"),
        "names": {"about": ["Charles Babbage"]}, "parse": {"answer": "Analytical Engine"},
    }  # fmt: skip
    return scripted(**{**replies, **changed})


def run(llm, store, tool, limits=LOCAL, question=QUESTION):
    return list(think(question, llm, store, [tool], limits))


def test_the_question_is_the_first_search_and_no_vote_is_asked_before_two_turns(store, tool):
    events = run(small(), store, tool)
    first, second, third = of(Voted, events)
    assert [(voted.choice, voted.votes, voted.possible) for voted in (first, second)] == [
        ("INSERT", 0, 0)
    ] * 2
    assert first.agreement == 0.0 and "no vote before 2 turns" in first.reasons[0]
    assert (third.choice, third.retrieves) == ("RETRIEVE", 2)  # two of three decide
    assert of(Chose, events)[0].calls == (ToolCall("search", {"query": QUESTION}),)
    assert not [asked for asked in of(Asked, events) if asked.role == "tools" and asked.step == 1]


def test_a_graph_that_is_not_empty_is_not_called_empty(store, tool):
    reason = of(Voted, run(small(), store, tool, LOCAL.but(unpolled=1)))[0].reasons[0]
    assert reason == "no vote on an empty graph"
    # a graph that holds something may hold the answer
    assert of(Voted, run(small(), store, tool, LOCAL.but(unpolled=1)))[0].votes > 0


def test_every_sentence_is_asked_about_alone_after_two_worked_examples(store, tool):
    events = run(small(), store, tool)
    writes = [asked.prompt for asked in of(Asked, events) if asked.role == "write"]
    assert writes
    assert all(prompt.schema is None and prompt.messages[0].text == EXTRACTION_SYSTEM for prompt in writes)
    assert [message.role for message in writes[0].messages] == [
        "system",
        *["user", "assistant"] * len(EXTRACTION_EXAMPLES),
        "user",
    ]
    said = [prompt.messages[-1].text for prompt in writes]
    # nothing twice, each under its title
    assert len(said) == len(set(said)) and all(text.startswith("[") for text in said)
    assert QUESTION not in str([prompt.messages for prompt in writes])


def test_facts_carry_their_sentence_and_document_and_invented_ones_are_refused(store, tool):
    events = run(small(), store, tool, question="Where was Ada Lovelace born?")
    edge = next(edge for edge in store.graph().edges if edge.target == "London" and edge.type == "born in")
    assert edge.properties["sentence"] == "Ada Lovelace was born in London in 1815."
    assert edge.properties["source"] == "d1"
    assert any("Nobel" in refused.statement and refused.writing for refused in of(Refused, events))
    assert of(Wrote, events) and not any("Nobel" in repr(wrote.diff) for wrote in of(Wrote, events))


def test_the_next_search_is_a_choice_among_names_that_the_graph_revealed(store, tool):
    events = run(small(), store, tool)
    asked = next(asked for asked in of(Asked, events) if asked.role == "tools")
    allowed = asked.prompt.schema["properties"]["about"]["items"]["enum"]
    assert "Charles Babbage" in allowed and not any(name in QUESTION for name in allowed)
    assert of(Chose, events)[1].calls == (ToolCall("search", {"query": "Charles Babbage"}),)
    assert (events[-1].text, events[-1].forced) == ("Analytical Engine", False)
    assert "d2" in events[-1].passages


def test_a_choice_of_names_that_cannot_be_read_falls_back_on_the_nearest(store, tool):
    events = run(small(next="lorem ipsum"), store, tool)
    assert of(Chose, events)[1].calls and of(Chose, events)[1].calls[0].arguments["query"] != QUESTION


def test_a_name_outside_the_choice_is_not_looked_up_twice(store, tool):
    events = run(small(next={"about": [QUESTION]}, look=UNKNOWN), store, tool)
    calls = [str(call) for chose in of(Chose, events) for call in chose.calls]
    assert len(calls) == len(set(calls)) and of(Chose, events)[1].skipped


def test_a_loop_that_is_stuck_reads_at_once(store):
    only = search(ADA[2:], bm25(ADA[2:]), k=1)
    question = "Where does the Thames, not London, flow?"
    llm = small(tools=call(question), names={"about": ["Thames"]}, parse={"answer": "London"})
    events = run(llm, store, only, question=question)
    assert len(of(Voted, events)) == 2 < LOCAL.steps and of(Forced, events)[0].what == "read"
    assert of(Chose, events)[-1].calls == () and events[-1].text == "London"
    store.write("G.clear()")
    llm = small(tools=call(question), names={"about": ["Thames"]}, look=UNKNOWN)
    going_on = run(llm, store, only, LOCAL.but(stop_when_stuck=False), question)
    assert len(of(Voted, going_on)) == LOCAL.steps


def test_an_unknown_answer_is_a_vote_for_insert_whatever_the_vote_says(store, tool):
    events = run(small(look=UNKNOWN), store, tool)
    assert all(voted.choice == "INSERT" for voted in of(Voted, events))
    assert of(Forced, events)[0].what == "read" and events[-1].text == "Analytical Engine"


def test_a_read_covers_the_names_given_and_those_looked_up_but_not_the_question(store, tool):
    statement = of(Read, run(small(look={**RETRIEVE, "about": ["Ada Lovelace"]}), store, tool))[0].statement
    assert "'Ada Lovelace'" in statement and "'Charles Babbage'" in statement and QUESTION not in statement


@every(
    ("text", "name"),
    [
        ("singer-songwriter M. Ward", "M. Ward"),
        ("American film director", ""),
        ("Kingdom of Lesotho", "Kingdom of Lesotho"),
        ("1815", ""),
        ("born in London", "London"),
        ("Boeing 747", ""),
        ("Émile Zola", "Émile Zola"),
        ("it", ""),
        ("", ""),
        ("X" * 60, ""),
    ],
)
def test_a_name_is_told_from_a_kind_and_a_date(text, name):
    assert proper_name(text) == name


@every(
    ("triple", "grounded"),
    [
        (Triple("She", "worked with", "Charles Babbage"), True),
        (Triple("Ada Lovelace", "is", "Ada"), True),  # the title is part of what is said
        (Triple("Ada Lovelace", "won", "Nobel Prize"), False),
        (Triple("Ada Lovelace", "is", "ada lovelace"), False),  # about one thing only
        (Triple("Ada Lovelace", "is", "it"), False),
        (Triple("Ada Lovelace", "worked with", "Charles Dickens"), False),
    ],
)
def test_a_triple_is_grounded_when_the_sentence_says_its_object(triple, grounded):
    assert (
        is_grounded_in(SourcedSentence("She worked with Charles Babbage.", "Ada Lovelace", "d1", 1), triple)
        is grounded
    )


def test_lines_that_are_no_triples_are_passed_over():
    text = (
        "a | b | c\na | b\n| b | c\na | b | c | d\n a  |  b | c \nHere are the facts:\nd | e | " + "x" * 400
    )
    assert parse_triples(text) == [Triple("a", "b", "c")]


def test_what_a_sentence_says_cannot_become_code(store):
    nasty = 'x", source=""); G.clear(); add("'
    statement = PYTHON.add(
        grounded_facts([(Triple(nasty, "is '", "\\"), SourcedSentence('He said "\'\n"', "", "d'", 0))], store)
    )
    (edge,) = store.write(statement).added_edges
    assert (edge.source, edge.type, edge.target, edge.properties["source"]) == (nasty, "is '", "\\", "d'")


# --- cutting ---


@every(
    ("text", "expected"),
    [
        ("Dr. Smith met J. R. R. Tolkien. They talked.", ["Dr. Smith met J. R. R. Tolkien.", "They talked."]),
        ("It cost 3.5 m. He left! Why? No.", ["It cost 3.5 m.", "He left!", "Why?", "No."]),
        ('She said "Stop." Then she left.', ['She said "Stop."', "Then she left."]),
        (
            "A title\n\nA line\nwhich goes on.\n- a point\n- another",
            ["A title", "A line\nwhich goes on.", "- a point", "- another"],
        ),
        ("ends. without capital", ["ends. without capital"]),
        ("  \n ", []),
        ('Matthew Stephen "M." Ward sings. He writes.', ['Matthew Stephen "M." Ward sings.', "He writes."]),
        (
            'Elwyn Brooks "E. B." White (b. 1899) wrote op. 3. It sold.',
            ['Elwyn Brooks "E. B." White (b. 1899) wrote op. 3.', "It sold."],
        ),
        (
            "The school is in the U.S. Capt. Ray said no. He left.",
            ["The school is in the U.S. Capt. Ray said no.", "He left."],
        ),
    ],
)
def test_sentences_end_where_a_reader_would_say(text, expected):
    assert sentences(text) == expected


def test_a_run_of_an_older_version_is_cut_by_the_rules_it_was_recorded_with():
    text, before = 'Matthew Stephen "M." Ward sings.', Limits.of_json({})
    assert sentences(text, before.sentences) == ['Matthew Stephen "M."', "Ward sings."]
    assert "sentences" not in before.as_json()
    assert sentences(text, Limits().sentences) == [text] and Limits.of_json(LOCAL.as_json()) == LOCAL


@pytest.mark.parametrize(
    ("text", "end"),
    [("A. ", ""), ("x", ""), ("word ", ""), ("\n", "end")],
    ids=["initials", "a word", "words", "lines"],
)
def test_a_long_text_of_initials_or_without_any_end_is_cut_in_one_go_and_nothing_is_lost(text, end):
    text = text * 300_000 + end
    # about a second; with every initial looked at from the beginning it would be half an hour
    with computing_at_most(60):
        pieces = sentences(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= LONGEST_SENTENCE for piece in pieces)


def test_what_is_far_less_relevant_than_the_best_is_left_out_even_where_there_is_room():
    texts = ["Ada met Babbage in London", "Ada slept", "nothing"]
    assert fit_budget("Ada Babbage London", texts, 1000) == ([0, 1, 2], 0)
    kept, left_out = fit_budget("Ada Babbage London", texts, 1000, min_share=0.4)
    assert kept == [0] and left_out == 5
    assert fit_budget("Ada Babbage London", texts, 1000, min_share=0.4, bonus=[0, 0, 99.0])[0] == [2]
    assert fit_budget("", [], 10, min_share=0.4) == ([], 0)


@pytest.mark.extended
def test_fitting_many_texts_is_work_in_proportion_to_them():
    few, many = (["Ada met x"] * number for number in (2_000, 20_000))
    counted = [
        calls(lambda texts=texts: fit_budget("Ada", texts, 10**6, min_share=0.4)) for texts in (few, many)
    ]
    assert counted[1] < 11 * counted[0]
    with computing_at_most(60):  # the square of it is two minutes
        fit_budget("Ada", ["Ada met x"] * 100_000, 10**6, min_share=0.4)


def test_halves_of_letters_are_replaced_and_whole_ones_kept():
    assert replace_surrogates({"a": ["\ud800x", 1, None], "é😀": "é😀"}) == {
        "a": ["?x", 1, None],
        "é😀": "é😀",
    }


# --- forecast ---


def counted(events):
    """Questions asked by role, under the forecast's names."""
    names = {"forced read": "read", "arithmetic?": "arithmetic"}
    calls = {}
    for asked in of(Asked, events):
        role = names.get(asked.role, asked.role)
        calls[role] = calls.get(role, 0) + 1
    return calls


def positive(counts):
    return {role: int(count) for role, count in counts.items() if count}


def divided(turns):
    """Votes that are never decided early: for every turn I R I R I with two reasons, at last R I R I R with
    three statements.
    """
    inserts = [{"choice": "INSERT", "text": f"reason {n}"} for n in range(3)]
    retrieves = [{"choice": "RETRIEVE", "text": f"result = facts(){'[:9]' * n}"} for n in range(1, 4)]
    turn = [inserts[0], retrieves[0], inserts[1], retrieves[1], inserts[2]]
    return turn * turns + [retrieves[0], inserts[0], retrieves[1], inserts[1], retrieves[2]]


def several(field, count):
    return [{"answer": f"{field} {n}"} for n in range(count)]


@pytest.mark.parametrize("turns", [1, 2])
def test_the_forecast_of_the_reference_preset_is_what_a_divided_run_asks(store, tool, turns):
    store.write('add("a", "b", "c")\nadd("d", "e", "f")')
    distinct = [
        {"choice": "RETRIEVE", "text": f"result = facts({name!r})"} for name in ("a", "d", "Ada Lovelace")
    ]
    samples = divided(turns)
    samples[-5::2] = distinct
    llm = scripted(
        vote=samples, merge={"reason": "all"}, tools=[call(name) for name in ("Ada", "Babbage", "Thames")], write=WRITE,
        parse=several("answer", 9), choose={"number": 1}, **{"arithmetic?": {"needed": False}},
    )  # fmt: skip
    events = run(llm, store, tool, REFERENCE)
    assert of(Answered, events) and counted(events) == positive(calls_by_role(REFERENCE, steps=turns))


def test_the_forecast_is_right_when_the_steps_run_out(store, tool):
    limits = REFERENCE.but(steps=2, parses=2)
    store.write("\n".join(f'add("{name}", "b", "c{name}")' for name in "pqrst"))
    llm = scripted(
        vote=divided(2), merge={"reason": "all"}, tools=[call(name) for name in ("Ada", "Babbage")], write=WRITE,
        forced=[{"statement": f"result = facts({name!r})"} for name in "pqrst"],
        parse=several("answer", 10), choose={"number": 1}, **{"arithmetic?": {"needed": False}},
    )  # fmt: skip
    events = run(llm, store, tool, limits)
    assert counted(events) == positive(calls_by_role(limits))


def test_at_temperature_zero_there_is_one_of_everything(store, tool):
    limits = REFERENCE.but(vote_temperature=0.0, steps=1)
    llm = scripted(
        vote=votes("I"), tools=call("Ada"), write=WRITE, forced={"statement": "result = facts()"}, parse={"answer": "x"},
        **{"arithmetic?": {"needed": False}},
    )  # fmt: skip
    assert counted(run(llm, store, tool, limits)) == positive(calls_by_role(limits))


@pytest.mark.parametrize("steps", [2, 3])
def test_the_forecast_of_the_local_preset_is_what_a_divided_run_asks(store, tool, steps):
    missing = {"answer": "unknown", "choice": "INSERT", "about": [], "missing": "more"}
    looks = [RETRIEVE, missing, RETRIEVE if steps == 2 else missing]
    answers = [{"answer": text} for text in ("a", "Engine", "Analytical Engine")]
    names = ["Charles Babbage", "Analytical Engine"]
    events = run(small(look=looks, parse=answers, next=[{"about": [name]} for name in names]), store, tool)
    expected, asked = positive(calls_by_role(LOCAL, steps=steps)), counted(events)
    sentences_said, most = asked.pop("write"), expected.pop("sentence")
    assert asked == expected and sentences_said <= most
    assert [parsed.text for parsed in of(Parsed, events)] == ["a", "Engine", "Analytical Engine"]


def test_a_forecast_never_counts_below_nothing_and_knows_the_turns_without_a_vote():
    # the first two turns are not polled
    assert calls_by_role(LOCAL, steps=0) == calls_by_role(LOCAL, steps=2)
    for limits in (LOCAL, REFERENCE):
        assert all(
            count >= 0 for steps in (0, 1, 7, 99) for count in calls_by_role(limits, steps=steps).values()
        )
    # two turns of 5 votes, a merge, a choice and a statement, 5 votes more, then 3 candidates with a
    # check and 3 parses, and a choice
    assert forecast(REFERENCE, steps=2).calls == 2 * (5 + 1 + 1 + 1) + 5 + 3 * (1 + 3) + 1


@every(
    ("change", "error"),
    [
        ({"reading": "graph"}, UnknownName), ({"writing": "sql"}, UnknownName), ({"arithmetic": "sometimes"}, UnknownName),
        ({"repairs": -1}, BadInput), ({"rereads": -1}, BadInput), ({"graph_tokens": 0}, BadInput), ({"vote_temperature": 3}, BadInput),
    ],
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(change, error):
    with pytest.raises(error, match=next(iter(change))):
        REFERENCE.but(**change)


# --- extraction without a question ---


def test_every_sentence_of_every_document_is_asked_about_when_there_is_no_question(store):
    events = list(extract(ADA, small(), store))
    asked = [asked.prompt.messages[-1].text for asked in of(Asked, events)]
    assert len(asked) == sum(len(sentences(document.text)) for document in ADA) == 5 and not of(Cut, events)
    assert {edge.properties["source"] for edge in store.graph().edges} == {"d1", "d2", "d3"}
    assert not of(Voted, events) and not of(Answered, events)


@pytest.mark.parametrize("by", ["sentences", "statements"])
def test_an_extraction_that_was_stopped_anywhere_asks_for_no_recorded_reply_twice(store, by, tmp_path):
    limits = LOCAL if by == "sentences" else FEW
    wrote = [
        {"statements": [f'add("Ada", "knows", "{name}")', f'add("{name}", "is", "known")']}
        for name in ("Bob", "Cy", "Di")
    ]

    def model(asked=0):
        return small() if by == "sentences" else scripted(write=wrote[asked:] or wrote[-1:])

    whole_run = list(extract(ADA, model(), store, limits))
    expected, calls = store.graph(), len(of(Asked, whole_run))
    for stop in range(1, len(whole_run) + 1):
        store.write("G.clear()")
        path = tmp_path / f"{stop}.jsonl"
        begun = list(islice(extract(ADA, Recorder(model(), path), store, limits), stop))
        asked = len(of(Asked, begun))
        store.write("G.clear()")
        again = list(extract(ADA, Recorder(model(asked), path), store, limits))
        assert again == whole_run, f"stopped after event {stop}"
        assert store.graph() == expected and len(path.read_text().splitlines()) == 1 + calls


def test_extraction_in_statements_writes_what_the_model_spelled(store):
    events = list(extract(ADA[:1], scripted(write=WRITE), store, FEW))
    assert [wrote.statement for wrote in of(Wrote, events)] == WRITE["statements"]


def test_nothing_to_extract_from_is_said(store):
    with pytest.raises(BadInput, match="no document"):
        extract([], small(), store)


def test_the_sentences_of_a_tool_without_documents_are_those_of_its_text():
    returned = ToolReturned(call=ToolCall("x", {}), text="One is here. Two\nis there.")
    assert [(piece.text, piece.source, piece.place) for piece in sourced_sentences(returned)] == [
        ("One is here.", "", 0),
        ("Two is there.", "", 1),
    ]
    other = ToolReturned(call=ToolCall("x", {}), text="ignored", sources=(Document("d", "Only this."),))
    assert [str(piece) for piece in sourced_sentences(other)] == ["Only this."]


def test_a_ledger_is_saved_as_json_lines_that_add_up(store, tool, tmp_path):
    book = ledger(run(small(), store, tool), "r1")
    book.save(tmp_path / "ledger.jsonl")
    lines = [
        json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) == len(book.entries) > 0 and {line["run"] for line in lines} == {"r1"}
    assert sum(line["prompt_tokens"] for line in lines) == book.total.prompt_tokens
