"""Turns of long chats: reading them, the memory's rules on a chat of a few turns, the measures, and chats
that are evaluated once.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from benchmarks.beam import remarks
from benchmarks.beam.chats import data_digest, read_chats
from benchmarks.beam.measuring import chat_results, measure_chats, plan_of_chats, system_names
from benchmarks.beam.results import chat_findings, chat_grids, chat_report
from benchmarks.beam.systems import chat_systems
from benchmarks.beam.turn_memory import TurnMemory, TurnRules
from benchmarks.roc import roc_area
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.results import save_results
from kgot_lab.evaluation.runs import Run
from kgot_lab.types import Hit

GARDEN = [  # session, day, what the user said, what the assistant said
    (1, "2024-03-01", "I planted 12 tomato seedlings in the greenhouse, how do I water them?", "Water them early, at the root."),
    (1, "2024-03-01", "Always give amounts in litres when I ask about watering.", "Understood, litres it is."),
    (1, "2024-03-01", "My fence is painted green and I'd like advice on wood oil.", "Linseed oil keeps wood dry."),
    (2, "2024-04-10", "I've sold 40 jars of honey at the market, how can I advertise?", "Put a sign at the road and ask the baker."),
    (2, "2024-04-10", "The honey count has now reached 55 jars, should I raise the price?", "Raise it by a tenth and watch."),
    (2, "2024-04-10", "Thanks, I'll try a higher price next week then.", "Good luck with the jars."),
    (2, "2024-04-10", "I've never kept bees, so which hive should a beginner buy?", "A Langstroth hive is forgiving."),
    (2, "2024-04-10", "My hive by the orchard swarmed, what do I do?", "Set out a bait box."),
    (3, "2024-06-02", "I prefer clay pots to plastic ones, can you plan my balcony?", "Three rows of clay pots will fit."),
    (3, "2024-06-02", "```python\nhoney = 99\n``` Why does this line fail?", "It does not fail."),
]  # fmt: skip
ASKED = [
    ("update-1", "knowledge_update", "How many jars of honey have been sold?", [6, 8]),
    ("whether-1", "contradiction_resolution", "Have I ever kept bees in a hive?", [12, 14]),
    ("order-1", "instruction_following", "How should I go about watering a lawn?", [2]),
    ("advice-1", "information_extraction", "What did you recommend for oiling wood?", [4, 5]),
    ("summary-1", "summarization", "Can you summarize my garden year?", [1, 7, 17]),
    ("silent-1", "abstention", "What colour is my tractor?", []),
]


@pytest.fixture(scope="module")
def embedder():
    """The real embedder, asked once for each text."""
    made = InMemoryVectors(MiniLM())
    made.add_texts(
        [text for _, _, *both in GARDEN for text in both] + [question for _, _, question, _ in ASKED]
    )
    return made


def rows(chat: str, *, held_out: bool) -> list[dict]:
    told = []
    for session, day, *both in GARDEN:
        for role, text in zip(("user", "assistant"), both, strict=True):
            about = {"chat_id": chat, "turn_id": len(told), "session": session, "time": day}
            row = about | {"role": role, "text": text}
            told.append(row | {"in_short": True, "locked": held_out})
    return [*told, told[0] | {"turn_id": len(told), "time": "2024-07-01", "in_short": False}]


def questions(chat: str, *, held_out: bool) -> list[dict]:
    names = ("_id", "ability", "question", "evidence")
    return [
        dict(zip(names, each, strict=True))
        | {"_id": f"{chat}-{each[0]}", "chat_id": chat, "locked": held_out}
        for each in ASKED
    ]


def write(folder, name: str, told: list[dict]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in told).encode()))


@pytest.fixture
def data(tmp_path):
    """A folder as BEAM's: one chat that is open and one that is held out."""
    folder = tmp_path / "data"
    write(folder, "chats.jsonl.gz", rows("c1", held_out=False) + rows("c2", held_out=True))
    write(folder, "questions.jsonl.gz", questions("c1", held_out=False) + questions("c2", held_out=True))
    return folder


@pytest.fixture
def chat(data):
    return read_chats(data)[0]


@pytest.fixture
def memory(chat, embedder):
    return TurnMemory(chat.turns, embedder)


def found(memory: TurnMemory, question: str, first: int = 5, **rules: object) -> list[int]:
    """The numbers of the first turns that the memory finds, by its rules or with some of them changed."""
    stage = memory.with_rules(replace(TurnRules(), **rules)).stage()
    return [int(id.partition("-")[2]) for id in stage.search(question).ids[:first]]


# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"turn_id": 4}, "not numbered from 0"),
        ({"role": "assistant"}, "do not take turns"),
        ({"time": "2023-01-01"}, "go back"),
        ({"in_short": False}, "not the beginning"),
        ({"locked": True}, "held out in part"),
        ({"text": 3}, "wrong is text"),
    ],
)
def test_a_chat_that_breaks_what_is_known_of_the_data_is_refused(data, change, said):
    told = rows("c1", held_out=False)
    told[2] |= change
    write(data, "chats.jsonl.gz", told + rows("c2", held_out=True))
    with pytest.raises(BadInput, match=said):
        read_chats(data)


# -------------------------------------------------------------------------------------------------------


def test_a_value_and_the_one_that_replaced_it_are_both_shown(memory):
    assert set(found(memory, "How many jars of honey have been sold?", 2)) == {6, 8}


def test_a_session_is_preferred_only_where_a_question_asks_what_holds(memory):
    asked, told = "Have I ever kept bees in a hive?", "Tell me of bees in a hive"
    assert set(found(memory, asked, 5, session=1.0)) == {6, 8, 10, 12, 14}
    assert found(memory, told, 10, session=1.0) == found(memory, told, 10, session=0.0)


def test_code_is_not_taken_for_what_was_said():
    assert remarks.spoken("Look:\n```python\nx = 1\n```\nwhy?") == "Look:\n \nwhy?"


def test_the_memory_is_not_told_the_ability_of_a_question(chat):
    found = {question.query for question in chat.questions}
    assert found == {
        question.query for question in (replace(question, ability="") for question in chat.questions)
    }


def test_every_system_ranks_each_turn_once_and_says_how_sure_it_is(chat, embedder):
    for name, stage in chat_systems(chat, embedder).items():
        ranking = stage.search("How many jars of honey have been sold?")
        assert len(set(ranking.ids)) == len(ranking.ids), name
        assert [hit.score for hit in ranking.hits] == sorted(
            (hit.score for hit in ranking.hits), reverse=True
        ), name
    assert list(chat_systems(chat, embedder)) != []
    assert set(chat_systems(chat, embedder)) == set(system_names())


# ---------------------------------------------------------------------------------------------------------


def test_the_area_under_the_curve_is_the_share_of_pairs_in_the_right_order():
    assert roc_area([0.9, 0.4], [0.4, 0.1]) == (1 + 1 + 0.5 + 1) / 4
    assert roc_area([0.2], [0.8]) == 0.0
    with pytest.raises(BadInput):
        roc_area([], [0.1])


def test_recall_and_gaps_are_those_counted_by_hand(tmp_path):
    evidence = {"q1": ("knowledge_update", ["a", "b"]), "q2": ("knowledge_update", ["c"])}
    evidence["q3"] = ("abstention", [])
    told = {query: {"ability": ability, "evidence": turns} for query, (ability, turns) in evidence.items()}
    (tmp_path / "evidence.json").write_text(json.dumps(told))
    wrong = [f"x{number}" for number in range(6)]
    for name in system_names():
        best = name == "memory"
        first = ["a", "b"] if best else ["a", *wrong, "b"]
        lists = {"q1": first, "q2": ["c"] if best else wrong, "q3": wrong}
        scores = {"q1": 0.9, "q2": 0.5, "q3": 0.7}
        hits = {
            query: tuple(Hit(id, scores[query] / place) for place, id in enumerate(ids, 1))
            for query, ids in lists.items()
        }
        save_results(Run(name, name, "tiny", 10, hits), chat_results(tmp_path, "open", name), 10)
    findings = chat_findings(tmp_path, "open")
    assert findings.mean("memory", "knowledge_update", "recall@5").mean == 1.0
    assert findings.mean("bm25", "knowledge_update", "recall@5").mean == (0.5 + 0) / 2
    assert findings.mean("bm25", "knowledge_update", "recall@10").mean == (1 + 0) / 2
    (gap, whole) = findings.gaps("bm25", "recall@5")
    assert (gap.difference.mean, gap.wins, gap.losses, gap.p) == (0.75, 2, 0, 0.5) and whole.ability == "all"
    assert findings.abstention_area("memory") == (0.5, 2, 1)


# ------------------------------------------------------------------------------------------------------


def test_the_test_chats_are_evaluated_by_one_plan_once(data, tmp_path, embedder):
    chats, plan, results = read_chats(data), plan_of_chats(data_digest(data), embedder), tmp_path / "results"
    quiet = lambda done, total, what: None  # noqa: E731
    two = (
        chats[0],
        replace(
            chats[0],
            id="c3",
            questions=tuple(replace(question, id=f"{question.id}-2") for question in chats[0].questions),
        ),
    )
    measure_chats(results, two, embedder, plan, held_out=False, progress=quiet)
    told = chat_report(chat_grids(results))
    assert "open chats" in told and "test chats" not in told
    twin = replace(
        chats[1], questions=tuple(replace(question, id=f"{question.id}-2") for question in chats[1].questions)
    )
    measure_chats(results, (*two, chats[1], twin), embedder, plan, held_out=True, progress=quiet)
    kept = chat_results(results, "test", "memory").read_bytes()
    measure_chats(results, (*two, chats[1], twin), embedder, plan, held_out=True, progress=quiet)
    assert chat_results(results, "test", "memory").read_bytes() == kept
    for held_out in (True, False):
        with pytest.raises(BadInput, match=r"evaluated by another plan \(code differ\)"):
            measure_chats(
                results, chats, embedder, plan | {"code": "other"}, held_out=held_out, progress=quiet
            )


def test_results_hold_no_word_of_the_chats(data, tmp_path, embedder):
    chats = read_chats(data)
    measure_chats(
        tmp_path / "results",
        chats,
        embedder,
        plan_of_chats("", embedder),
        held_out=False,
        progress=lambda *told: None,
    )
    texts = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    whole = b" ".join(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text for text in texts)
    assert b"c1-0006" in whole
    assert not [word for word in (b"honey", b"seedlings", b"tractor", b"Langstroth") if word in whole]


def test_a_folder_without_chats_is_refused_by_its_name(tmp_path):
    with pytest.raises(BadInput, match=r"is no folder of BEAM: chats\.jsonl\.gz: No such file"):
        read_chats(tmp_path)


def test_evidence_that_is_no_turn_of_the_shortened_chat_is_refused(data):
    told = questions("c1", held_out=False)
    told[0]["evidence"] = [20]
    write(data, "questions.jsonl.gz", told + questions("c2", held_out=True))
    with pytest.raises(BadInput, match="c1-0020"):
        read_chats(data)


def test_only_what_is_in_the_shortened_chat_is_read(chat):
    assert [turn.id for turn in chat.turns] == [f"c1-{number:04}" for number in range(20)]
    assert chat.questions[0].id == "c1-update-1" and chat.questions[0].evidence == {"c1-0006", "c1-0008"}


def test_what_was_denied_is_shown_with_what_was_told(memory):
    assert set(found(memory, "Have I ever kept bees in a hive?", 2)) == {12, 14}


def test_a_preference_counts_more_where_help_is_asked_for(memory):
    question = "Can you help me choose something for tomato seedlings?"
    with_it, without = (found(memory, question, 10, preference=weight).index(16) for weight in (0.5, 0.0))
    assert with_it < without


def test_a_reaction_to_a_found_value_is_brought_by_it_as_the_fourth(memory):
    question = "What is the honey count in jars?"
    assert found(memory, question, 10, threads=True)[3] == 10
    assert set(found(memory, question, 2)) == {6, 8}


def test_a_standing_order_comes_no_later_than_fifth_where_its_condition_is_met(memory):
    assert 2 in found(memory, "How should I go about watering a lawn?")
    assert found(memory, "What did I say about watering?", 9) == found(
        memory, "What did I say about watering?", 9, order=0.0
    )


def test_a_summary_shows_replies_and_goes_through_the_sessions_in_turn(memory):
    shown = found(memory, "Can you summarize my garden year?", 3)
    assert all(number % 2 for number in shown)
    assert len({number > 15 or (number > 5) * 2 for number in shown}) == 3


def test_a_turn_brings_its_reply_where_the_assistants_words_are_asked_for(memory):
    assert found(memory, "What did you recommend for oiling wood?", 2) == [4, 5]
    assert sorted(found(memory, "What did I say of oiling wood?", 10)) == list(range(0, 20, 2))


def test_the_condition_of_an_order_is_read_and_what_is_none_has_none():
    assert remarks.condition_of_order("Always use litres when I ask about watering.") == "watering"
    assert remarks.condition_of_order("I always water when I ask about it.") == ""
