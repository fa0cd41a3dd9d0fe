"""The questions to the expert, what is measured of a reply, and how replies are kept: hand-made cases, and a
scripted model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.experts.answers_table import (
    answers_report,
    choices_grid,
    citations_grid,
    measured_answers,
    words_grid,
)
from benchmarks.experts.asking import ExpertAnswers, plain_prompt
from benchmarks.experts.gold import ExpertQuestion, NodeWords, expert_questions, telling_stems
from benchmarks.experts.measuring import answer_measures, covered, own_words, says_not_known
from benchmarks.experts.replies import KeptReply, keep_reply, kept_replies
from kgot_lab.errors import BadInput, LLMError, UnknownName
from kgot_lab.experts.chat.prompting import PlaybookSection
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.text.words import contains_words
from kgot_lab.types import Node, Reply, Usage

ROOT = Path(__file__).parents[3]
ALL = (*expert_questions("test"), *expert_questions("dev"))
KINDS = {"goal": 12, "can": 12, "compare": 9, "compose": 8, "why": 9, "none": 10}
GRAPH = PropertyGraph.of(
    [
        Node(
            "t:prompt_caching",
            ("t",),
            {"name": "Prompt caching", "description": "Reusing the state of a shared prefix."},
        ),
        Node("t:batching", ("t",), {"name": "Batching", "description": "Sending work at night."}),
        Node(
            "l:prefix",
            ("l",),
            {"name": "Prefix sensitivity", "description": "One early change spoils the rest."},
        ),
        Node("t:other", ("t",), {"name": "Other", "description": "Nothing."}),
    ],
    [],
)
WORDS = NodeWords(GRAPH)
ASKED = ExpertQuestion(
    "one",
    "How do I pay less for work at night?",
    ("t:prompt_caching", "t:batching"),
    ("l:prefix",),
    True,
    "goal",
)
NOTHING = ExpertQuestion("none", "Who sells it?", (), (), False, "none")
REPLY = KeptReply("one", "graph", ASKED.question, "scripted", "")


class Scripted:
    """A model that says the same to everybody, and counts how often it was asked; it can break after so many."""

    name = "scripted"

    def __init__(self, text: str, breaks_after: int = 1000):
        self.text, self.left, self.prompts = text, breaks_after, []

    def __call__(self, prompt):
        if not self.left:
            raise LLMError("the line is dead")
        self.left -= 1
        self.prompts.append(prompt)
        return Reply(self.text, Usage(10, 5, 0.5))


# ----------------------------------------------------------------------------------------------------


def test_sixty_questions_are_for_the_test_and_twelve_for_dev():
    test, dev = expert_questions("test"), expert_questions("dev")
    assert {kind: sum(each.kind == kind for each in test) for kind in KINDS} == KINDS
    assert {kind: sum(each.kind == kind for each in dev) for kind in KINDS} == dict.fromkeys(KINDS, 2)
    assert len({each.id for each in ALL}) == len({each.question for each in ALL}) == 72
    with pytest.raises(UnknownName, match="split"):
        expert_questions("train")


def test_gold_is_in_the_graph_and_a_limitation_belongs_to_a_gold_node():
    graph = cookbook()
    has = {(edge.source, edge.target) for edge in graph.edges if edge.type == "has_limitation"}
    for each in ALL:
        assert all(id in graph for id in each.wanted), each.id
        assert each.answerable == bool(each.gold_nodes) == (each.kind != "none"), each.id
        assert not each.answerable or 2 <= len(set(each.gold_nodes)) == len(each.gold_nodes) <= 5, each.id
        for limitation in each.gold_limitations:
            assert limitation in each.gold_nodes or any(
                (node, limitation) in has for node in each.gold_nodes
            ), (each.id, limitation)


# -------------------------------------------------------------------------------------------------


def test_citations_are_counted_against_gold_nodes_and_gold_limitations():
    reply = replace(
        REPLY,
        cited=("t:prompt_caching", "l:prefix", "t:other"),
        false=("Magic",),
        told=("t:prompt_caching", "t:batching"),
        limitations=("l:prefix",),
    )
    found = answer_measures(ASKED, reply, WORDS)
    assert found["citation precision"] == pytest.approx(2 / 3)
    assert found["citation recall"] == 0.5
    assert found["false citations"] == 0.25
    assert found["gold in the context"] == found["limitations in the context"] == 1.0


def test_the_arm_without_the_graph_has_no_measures_of_citations():
    found = answer_measures(ASKED, replace(REPLY, arm="plain"), WORDS)
    assert set(found) == {
        "words said",
        "refuses without need",
        "words of names",
        "words of descriptions",
        "limitations named",
    }


def test_words_of_the_question_and_of_citations_do_not_count_as_said():
    citing = "Try it [Source: cookbook:Prompt caching (not in the context)]."
    assert answer_measures(ASKED, replace(REPLY, text=citing), WORDS)["words of names"] == 0.0
    saying = "Cache the prompts; batches at night."
    found = answer_measures(ASKED, replace(REPLY, text=saying), WORDS)
    assert found["words of names"] == 1.0  # prompt, caching, batching
    assert found["words of descriptions"] == 0.0  # night and work stand in the question
    assert found["words said"] == 6


@pytest.mark.parametrize(
    "text",
    [
        "I do not know.",
        "I don’t know what it costs.",
        "I'm unable to answer that.",
        "Sorry, I cannot help with that.",
        "I do not have any information about prices.",
        "I have no information on this.",
        "The knowledge graph does not contain anything on vendors.",
        "The graph holds nothing on this question.",
        "The provided context doesn't mention prices.",
        "There is no information about that in my sources.",
        "That is not covered by the knowledge graph.",
    ],
)
def test_what_says_that_it_does_not_know_is_a_refusal(text):
    assert says_not_known(text)
    assert answer_measures(NOTHING, replace(REPLY, text=text), WORDS)["says it does not know"] == 1.0
    assert answer_measures(ASKED, replace(REPLY, text=text), WORDS)["refuses without need"] == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Use a cache: a filter does not contain every attack.",
        "The model does not know what happened last month, so let it search.",
        "A vector store cannot find part numbers.",
        'Let the model say "I am not sure" where it is not.',
        "The limitation is that users do not have the rights.",
        "",
    ],
)
def test_what_says_that_something_else_cannot_is_none(text):
    assert not says_not_known(text)


# --------------------------------------------------------------------------------------------------------


def test_the_tables_pair_the_arms_and_leave_out_who_has_no_partner():
    questions = [replace(ASKED, id=id) for id in ("a", "b", "c")]
    replies = [
        replace(REPLY, id=id, text="Cache prompts in batches.", cited=("t:batching",))
        for id in ("a", "b", "c")
    ]
    replies += [replace(REPLY, id=id, arm="plain", text="Hm.") for id in ("a", "b")] + [
        replace(REPLY, id="gone", text="Who?")
    ]
    measured = measured_answers(questions, replies, WORDS)
    cited = {row[0].text: [cell.text for cell in row[1:]] for row in citations_grid(measured).rows}
    assert cited["citation precision"] == ["3", "1.000 [1.000, 1.000]"]
    assert cited["false citations"][1].startswith(".000")
    said = {row[0].text: [cell.text for cell in row[1:]] for row in words_grid(measured).rows}
    assert said["words of names"][0] == "2" and said["words of names"][3].startswith("+1.000")
    assert said["words of names"][4] == "2/0/0"
    assert said["says it does not know"][:2] == ["0", "–"]


# -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two():
    dev = expert_questions("dev")
    return (dev[0], next(each for each in dev if not each.answerable))


def test_each_question_is_asked_with_the_graph_and_without_and_never_twice(tmp_path, two):
    llm = Scripted("Take Job queue [Source: cookbook:Job queue] and magic [Source: cookbook:Magic].")
    path = tmp_path / "replies.jsonl"
    first = list(ExpertAnswers(two, llm, path).replies())
    expected = [(each.id, arm) for each in two for arm in ("graph", "plain")]
    assert [(each.id, each.arm) for each in first] == expected
    assert kept_replies(path) == first and len(llm.prompts) == 4
    assert list(ExpertAnswers(two, llm, path).replies()) == [] and len(llm.prompts) == 4
    assert first[0].false and first[0].told and first[0].tokens == (10, 5) and first[0].seconds == 0.5
    assert first[1].text == llm.text and (first[1].cited, first[1].told) == ((), ())
    known = cookbook()
    assert all(id in known for id in (*first[0].told, *first[0].limitations, *first[0].cited))


def test_the_command_derives_its_table_from_the_replies_on_file_and_says_what_makes_them(tmp_path, two):
    script = ROOT / "benchmarks" / "experts" / "expert_answers.py"
    command = [sys.executable, script, "--table", "--folder", tmp_path]
    none = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert none.returncode == 2 and "--model local --split dev makes it" in none.stderr
    list(ExpertAnswers(two, Scripted("Yes."), tmp_path / "develop_local.jsonl").replies())
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert (
        done.returncode == 0
        and "12 questions, 2 replies with the graph and 2 without; model scripted" in done.stdout
    ), done.stderr
    assert (tmp_path / "develop_local.md").read_text(encoding="utf-8").strip() == done.stdout.strip()


@pytest.mark.parametrize(
    "line", ["no JSON", "[]", '{"id": "a"}', json.dumps({**REPLY.__dict__, "arm": "third"})]
)
def test_a_file_that_holds_something_else_is_told_by_name(tmp_path, line):
    (tmp_path / "other.jsonl").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"other\.jsonl does not hold replies"):
        kept_replies(tmp_path / "other.jsonl")


def test_a_line_that_a_kill_cut_off_is_left_out_and_written_over(tmp_path):
    path = tmp_path / "replies.jsonl"
    keep_reply(path, replace(REPLY, text="eins\nzwei", cited=("t:other",)))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": "tw')
    assert [reply.id for reply in kept_replies(path)] == ["one"]
    keep_reply(path, replace(REPLY, id="two"))
    assert path.read_bytes().startswith(whole)
    assert [reply.id for reply in kept_replies(path)] == ["one", "two"]
    assert kept_replies(path)[0].text == "eins\nzwei" and kept_replies(path)[0].cited == ("t:other",)


def test_a_model_that_breaks_stops_it_and_the_next_run_goes_on(tmp_path, two):
    path = tmp_path / "replies.jsonl"
    with pytest.raises(LLMError, match="the line is dead"):
        list(ExpertAnswers(two, Scripted("Yes.", breaks_after=1), path).replies())
    again = ExpertAnswers(two, Scripted("Yes."), path)
    assert len(again.missing()) == 3 and len(list(again.replies())) == 3 and again.missing() == []


def test_a_node_that_is_not_in_the_graph_is_told():
    with pytest.raises(UnknownName, match="node"):
        WORDS.of_names(["t:gone"])


def test_a_question_that_the_graph_does_not_answer_is_measured_by_its_refusal_alone():
    expected = {"words said", "says it does not know"}
    assert set(answer_measures(NOTHING, replace(REPLY, cited=("t:other",)), WORDS)) == expected


def test_an_answer_that_cites_nothing_has_no_precision_and_a_recall_of_0():
    found = answer_measures(ASKED, REPLY, WORDS)
    assert "citation precision" not in found and "false citations" not in found
    assert (found["citation recall"], found["limitations in the context"]) == (0.0, 0.0)


def test_an_answer_whose_only_citation_is_false_has_no_precision_and_a_false_share_of_1():
    found = answer_measures(ASKED, replace(REPLY, false=("Magic", "Magic")), WORDS)
    assert "citation precision" not in found and found["false citations"] == 1.0


def test_both_arms_have_the_same_persona_and_playbooks_and_only_one_the_graph(tmp_path, two):
    llm = Scripted("Yes.")
    replies = list(ExpertAnswers(two[:1], llm, tmp_path / "replies.jsonl").replies())
    graph, plain = (prompt.messages[0].text for prompt in llm.prompts)
    assert graph.split("\n\n")[:2] == plain.split("\n\n")[:2] and replies[0].playbooks == replies[1].playbooks
    assert "[Knowledge Graph Context]" in graph and "[Source:" in graph
    assert not any(word in plain.casefold() for word in ("graph", "cite", "[source"))
    assert llm.prompts[0].max_tokens == llm.prompts[1].max_tokens
    assert llm.prompts[1].messages[-1].text == two[0].question


def test_no_question_says_the_name_of_its_gold_or_four_words_of_a_description_in_a_row():
    graph = cookbook()
    for each in ALL:
        for id in each.wanted:
            known = graph.node_properties[graph.row(id)]
            assert not contains_words(str(known["name"]), each.question), (each.id, id)
            words = str(known["description"]).split()
            assert not any(
                contains_words(" ".join(words[at : at + 4]), each.question) for at in range(len(words) - 3)
            ), (each.id, id)


def test_no_reply_is_begun_once_the_minutes_are_over(tmp_path, two):
    times = iter((0.0, 0.0, 61.0))
    answers = ExpertAnswers(two, Scripted("Yes."), tmp_path / "replies.jsonl", clock=lambda: next(times))
    assert len(list(answers.replies(minutes=1))) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model": "another"}, "replies of another, not of scripted"),
        ({"setting": "x"}, "another expert"),
        ({"question": "What?"}, "wording"),
    ],
)
def test_replies_of_another_model_expert_or_question_are_not_mixed(tmp_path, two, change, why):
    path = tmp_path / "replies.jsonl"
    clock = iter((0.0, 0.0, 9e9)).__next__
    (first,) = list(ExpertAnswers(two, Scripted("Yes.", 1), tmp_path / "first.jsonl", clock=clock).replies(1))
    keep_reply(path, replace(first, **change))
    with pytest.raises(BadInput, match=why):
        list(ExpertAnswers(two, Scripted("Yes."), path).replies())


def test_the_report_says_whose_replies_they_are():
    told = answers_report("dev", [ASKED], [REPLY], WORDS)
    assert "1 questions, 1 replies with the graph and 0 without; model scripted" in told
    assert "citation recall" in told


def test_a_perfect_choice_takes_as_many_sources_as_the_model_cited_from_its_context():
    reply = replace(REPLY, cited=("t:other",), told=("t:other", "t:batching"))
    model, first, perfect, whole = choices_grid([ASKED], [reply]).rows
    assert [cell.text for cell in model[1:]] == [".000", ".000"] == [cell.text for cell in first[1:]]
    assert perfect[1].text == "1.000" and whole[1].text == ".500"


def test_one_reply_has_a_mean_and_no_interval():
    grid = citations_grid(measured_answers([ASKED], [replace(REPLY, cited=("t:batching", "t:other"))], WORDS))
    assert [cell.text for cell in grid.rows[0][1:]] == ["1", ".500"]


def test_a_limitation_is_named_when_all_words_of_its_name_are_said():
    half = answer_measures(ASKED, replace(REPLY, text="Mind the prefix."), WORDS)
    whole = answer_measures(ASKED, replace(REPLY, text="Its sensitivity to the prefix is a limit."), WORDS)
    assert (half["limitations named"], whole["limitations named"]) == (0.0, 1.0)
    assert "limitations named" not in answer_measures(replace(ASKED, gold_limitations=()), REPLY, WORDS)


def test_covered_is_a_share_of_words_without_their_endings():
    assert covered({"cach", "prompt"}, "Caches are full of prompting.") == 1.0
    assert covered(telling_stems("shared prefix"), "a prefix") == 0.5


def test_own_words_are_those_outside_of_citations():
    assert own_words("a [Source: x:y] b [source: z] c").split() == ["a", "b", "c"]


def test_the_prompt_without_a_graph_keeps_the_playbooks(tmp_path, two):
    answers = ExpertAnswers(two, Scripted(""), tmp_path / "none.jsonl")
    told = (
        plain_prompt(answers.config, [PlaybookSection("cost-control", "Send less", "Cut it.")], "Why?")
        .messages[0]
        .text
    )
    assert "cost-control: Send less\nCut it." in told and "limitation" in told and "holds nothing" not in told
