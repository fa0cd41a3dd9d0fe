"""How much of what a memory writes is junk: the check of a fact, the messages, counts by hand, and a trial
that goes on after a stop.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.openai_server import openai_server, says

from kgot_lab.errors import BadInput, LLMError, TooLittle
from kgot_lab.experiments.beam.chats import ChatTurn, LongChat
from kgot_lab.experiments.competence.simulated import Competence
from kgot_lab.experiments.junk.grounds import ground_of
from kgot_lab.experiments.junk.messages import (
    SaidMessage,
    made_up_messages,
    messages_of_chats,
    messages_of_file,
)
from kgot_lab.experiments.junk.results import expected_rest_grid, junk_figures, junk_grid, junk_shares
from kgot_lab.experiments.junk.trial import JunkReceipt, JunkTrial, junk_plan, junk_receipts, taught
from kgot_lab.llm.scripted import Scripted
from kgot_lab.types import Triple

ROOT = Path(__file__).parents[3]
TEXT = (
    "I'm Craig, and I work at Acme. Sharon, who is 26, lives in Paris. My colleague is employed by Initech."
)
CANARY = "canary-71c0"


# --- the check
# --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fact", "ground"),
    [
        (("user", "works_at", "Acme"), "said"),  # whoever says I
        (("Craig", "works_at", "Acme"), "said"),
        (("Sharon", "lives_in", "Paris"), "said"),
        (
            ("colleague", "works_at", "Initech"),
            "another relation",
        ),  # in other words, which the check cannot tell from another fact
        (("Sharon", "leaves", "Paris"), "another relation"),
        (("Sharon", "works_at", "Acme"), "no sentence"),  # ends of two sentences
        (("user", "lives_in", "Paris"), "no sentence"),  # nobody says I there
        (("Sharon", "lives_in", "Rome"), "no sentence"),
        (("user", "is", "user"), "no sentence"),
        (("Sharon", "called", "user"), "no sentence"),
    ],
)
def test_a_fact_is_said_by_a_sentence_that_names_both_ends_and_the_relation(fact, ground):
    assert ground_of(Triple(*fact), TEXT) == ground


# --- messages
# ---------------------------------------------------------------------------------------------------------


def chat(id: str, *, locked: bool) -> LongChat:
    turns = [
        ChatTurn(f"{id}-{number:04}", number, 1, "2024-01-01", number % 2 == 0, f"message {number}")
        for number in range(20)
    ]
    return LongChat(id, locked, tuple(turns), ())


def test_messages_are_drawn_from_users_of_the_open_chats_and_the_same_each_time():
    chats = [chat("a", locked=False), chat("b", locked=True), chat("c", locked=False)]
    drawn = messages_of_chats(chats, 12)
    assert drawn == messages_of_chats(chats, 12) and drawn != messages_of_chats(chats, 12, seed=0)
    assert {each.id[0] for each in drawn} == {"a", "c"} and all(int(each.id[2:]) % 2 == 0 for each in drawn)
    with pytest.raises(TooLittle, match="20 messages of users, and 21"):
        messages_of_chats(chats, 21)


def test_messages_of_a_file_are_its_lines(tmp_path):
    path = tmp_path / "said.jsonl"
    path.write_text('{"text": "One."}\n\n{"id": 7, "text": "Two."}\n{"id": "c", "text": "Three."}\n')
    assert [(each.id, each.text) for each in messages_of_file(path)] == [
        ("line 1", "One."),
        ("7", "Two."),
        ("c", "Three."),
    ]
    assert len(messages_of_file(path, 2)) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "holds no message"),
        ("Ada lives in Paris.\n", "line 1: not JSON"),
        ('{"text": "x"}\n{"text": 3}\n', "line 2: no message"),
        ('{"text": " "}\n', "line 1: no message"),
        ("[1]\n", "line 1: no message"),
        ('{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}\n', "line 2: another message has the id '1'"),
    ],
)
def test_a_file_that_holds_no_messages_says_which_line(content, told, tmp_path):
    path = tmp_path / "said.jsonl"
    path.write_text(content)
    with pytest.raises(BadInput, match=told):
        messages_of_file(path)
    with pytest.raises(BadInput, match="cannot be read"):
        messages_of_file(tmp_path / "none.jsonl")


# --- one message
# ------------------------------------------------------------------------------------------------------


def noting(*facts: tuple[str, str, str], confidence: float = 0.9) -> str:
    parts = ("subject", "relation", "object")
    return json.dumps(
        {"triples": [dict(zip(parts, each, strict=True)) | {"confidence": confidence} for each in facts]}
    )


def test_what_a_memory_refuses_and_writes_is_counted_by_what_the_message_has_for_it():
    reply = noting(
        ("user", "works_at", "Acme"),
        ("Sharon", "leaves", "Paris"),
        ("Sharon", "works_at", "Acme"),
        ("Mallory", "owns", "Hooli"),
    )
    receipt = taught(Scripted([reply]), SaidMessage("m", TEXT), "schema")
    assert (
        receipt.said,
        receipt.another_relation,
        receipt.no_sentence,
        receipt.written,
        receipt.refused,
    ) == (1, 1, 1, 3, 1)
    assert (receipt.calls, receipt.waiting, receipt.failed) == (1, 0, "")
    unsure = taught(
        Scripted([noting(("user", "works_at", "Acme"), confidence=0.4)]), SaidMessage("m", TEXT), "schema"
    )
    assert (unsure.written, unsure.waiting) == (1, 1)


def test_a_sentence_at_a_time_nothing_is_written_that_no_sentence_names():
    replies = ["Craig | works at | Acme\nCraig | lives in | Paris", "Sharon | age | 26", "nothing"]
    receipt = taught(Scripted(replies), SaidMessage("m", TEXT), "grounded")
    assert (receipt.calls, receipt.written, receipt.no_sentence, receipt.refused) == (3, 2, 0, 1)


def test_a_reply_that_is_no_list_is_one_call_and_no_fact():
    receipt = taught(Scripted(["I cannot say."]), SaidMessage("m", TEXT), "schema")
    assert (receipt.calls, receipt.written, receipt.refused, receipt.failed) == (1, 0, 0, "BadReply")


# --- a trial
# ----------------------------------------------------------------------------------------------------------


MESSAGES = [SaidMessage(f"m{number}", f"Ada owns {CANARY} {number}.") for number in range(4)]


def reading() -> Scripted:
    return Scripted(
        lambda _: noting(("Ada", "owns", CANARY), ("Ada", "sold", f"{CANARY} to Grace")), "a reader"
    )


def test_a_trial_goes_on_after_a_stop_and_keeps_no_text(tmp_path):
    first = JunkTrial(MESSAGES, tmp_path, reading(), ("schema",)).receipts()
    next(first)
    first.close()
    again = JunkTrial(MESSAGES, tmp_path, reading(), ("schema",))
    assert [message.id for message, _ in again.missing()] == ["m1", "m2", "m3"]
    assert [receipt.id for receipt in again.receipts()] == ["m1", "m2", "m3"] and again.missing() == []
    assert len(again.llm.asked) == 3 and [receipt.id for receipt in junk_receipts(tmp_path)] == [
        "m0",
        "m1",
        "m2",
        "m3",
    ]
    assert [
        path.name
        for path in tmp_path.iterdir()
        if CANARY.encode() in path.read_bytes() or b"Ada" in path.read_bytes()
    ] == []
    more = replace(again, ways=("schema", "grounded"))  # another way of the same messages is the same plan
    assert [way for _, way in more.missing()] == ["grounded"] * 4


def test_messages_without_a_reply_are_asked_again_and_five_in_a_row_stop_it(tmp_path):
    def sometimes(prompt):
        if any(each in prompt.messages[-1].text for each in (f"{CANARY} 0", "number 0")):
            raise LLMError("the server is busy")
        return noting(("Ada", "owns", CANARY))

    trial = JunkTrial(MESSAGES, tmp_path, Scripted(sometimes, "busy"), ("schema",))
    assert [receipt.id for receipt in trial.receipts()] == ["m1", "m2", "m3"]
    assert [message.id for message, _ in trial.missing()] == ["m0"]
    many = [SaidMessage(f"n{number}", "This is number 0.") for number in range(9)]
    gone = JunkTrial(many, tmp_path / "gone", Scripted(sometimes, "busy"), ("schema",))
    with pytest.raises(
        LLMError, match="5 messages in a row had no reply, so it stops; the last one: the server is busy"
    ):
        list(gone.receipts())
    assert len(gone.missing()) == 9


def test_another_plan_or_another_file_in_the_folder_is_refused(tmp_path):
    list(JunkTrial(MESSAGES, tmp_path, reading(), ("schema",)).receipts())
    with pytest.raises(BadInput, match=r"another plan: .*messages is 4 there and 3 now"):
        list(JunkTrial(MESSAGES[:3], tmp_path, reading()).receipts())
    with pytest.raises(BadInput, match="another plan: "):
        list(JunkTrial(MESSAGES, tmp_path, Scripted(["x"], "another model")).receipts())
    with pytest.raises(BadInput, match="no plan of messages"):
        junk_plan(tmp_path / "nowhere")
    (tmp_path / "receipts.json").write_text('[{"id": "m0", "text": "x"}]')
    with pytest.raises(BadInput, match="does not hold receipts"):
        junk_receipts(tmp_path)


def test_no_message_is_begun_once_the_minutes_are_over_and_what_is_left_is_told(tmp_path):
    times = iter((0.0, 30.0, 120.0))
    trial = JunkTrial(MESSAGES, tmp_path, reading(), ("schema",), clock=lambda: next(times))
    assert len(list(trial.receipts(minutes=1))) == 1
    rows = [[cell.text for cell in row] for row in expected_rest_grid(trial, junk_receipts(tmp_path)).rows]
    assert rows == [["schema", "3", "0", "reckoned"]]


# --- shares
# -----------------------------------------------------------------------------------------------------------


def receipt(id: str, *, said: int, another: int, no_sentence: int, way: str = "schema") -> JunkReceipt:
    return JunkReceipt(id, way, 1, 100, 10, 2.0, 1, said, another, no_sentence, 0, 0)


def test_the_shares_are_of_facts_and_their_intervals_of_messages():
    counts = ((6, 0, 0), (0, 1, 3), (0, 0, 0))
    rows = [
        receipt(id, said=said, another=another, no_sentence=none)
        for id, (said, another, none) in zip("abc", counts, strict=True)
    ]
    (shares,) = junk_shares(rows)
    assert (shares.messages, shares.written, shares.refused) == (3, 10, 3)
    assert (shares.no_sentence.mean, shares.not_said.mean) == (0.3, 0.4)
    assert shares.no_sentence.low == 0.0 and shares.no_sentence.high == 0.75  # a message alone, or the other
    assert junk_shares(rows[:1])[0].no_sentence is None
    figures = junk_figures(rows, "a model")
    assert json.loads(json.dumps(figures)) == figures and figures["ways"][0]["prompt_tokens"] == 300


@pytest.mark.parametrize(
    ("errors", "written", "wrong"), [({}, 150, 0.0), ({"read": 1.0}, 150, 1.0), ({"invented": 1.0}, 0, None)]
)
def test_the_share_of_wrong_facts_of_a_simulated_model_lies_between_the_two_shares(
    errors, written, wrong, tmp_path
):
    """All right; all with an object from elsewhere in the message; and all with one that is made up, which
    never gets to the memory.
    """
    messages, simulated = made_up_messages(30, Competence(**errors))
    rows = list(JunkTrial(messages, tmp_path, simulated, ("schema",)).receipts())
    (shares,) = junk_shares(rows)
    assert (shares.written, shares.refused) == (written, 150 - written)
    if written:
        assert shares.no_sentence.mean <= wrong <= shares.not_said.mean
        assert shares.not_said.mean == wrong and (shares.no_sentence.mean > 0.3) == (wrong == 1.0)
    assert junk_grid(rows, simulated.name).title.startswith("Simulated model: ")


def test_a_server_of_one_s_own_reads_a_file_of_one_s_own(tmp_path):
    """The command, with a model behind an address and messages in a file: it stops, goes on, and prints the
    table.
    """
    path, folder = tmp_path / "said.jsonl", tmp_path / "receipts"
    path.write_text("".join(json.dumps({"text": message.text}) + "\n" for message in MESSAGES))
    with openai_server(says(noting(("Ada", "owns", CANARY)))) as server:
        command = [
            sys.executable, "benchmarks/junk_written.py", "--messages", path, "--way", "schema", "--folder", folder,
            "--model", f"{server.url}#tiny",
        ]  # fmt: skip
        planned = subprocess.run(
            [*map(str, command), "--plan"], capture_output=True, text=True, cwd=ROOT, timeout=120
        )
        assert planned.returncode == 0 and "reckoned" in planned.stdout and not folder.exists(), (
            planned.stderr
        )
        for minutes in ("0", "10"):
            done = subprocess.run(
                [*map(str, command), "--minutes", minutes],
                capture_output=True,
                text=True,
                cwd=ROOT,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            assert ("4 left; the same command goes on" in done.stdout) == (minutes == "0")
        assert len(server.bodies) == 4 and "What a memory writes" in done.stdout
    assert (folder / "results.md").exists() and len(junk_receipts(folder)) == 4
