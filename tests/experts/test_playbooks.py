"""Playbooks: the six that come with the package, which questions call for them, and what is wrong with a file
that is none.
"""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.experts.chat.prompting import authored_playbooks, matching_sections, read_playbook
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.text.words import contains_words
from kgot_lab.types import Reply

SIX = tuple("cost-control retrieval-design prompt-writing agent-building enhanced-coding testing-qa".split())
CALLS = {
    "enhanced-coding": (
        "My script stops with an error nobody understands. How should I ask for help with it?",
        "How do we get it to tidy up our old billing code without breaking anything?",
        "Who should look over a pull request that a machine wrote?",
    ),
    "testing-qa": (
        "How do I find out whether the new version is better or worse than last week's?",
        "What should we try it with before customers see it, so that quality does not drop?",
        "Can a second model grade the answers fairly?",
    ),
    "cost-control": (
        "Our monthly bill has doubled. Where do we begin?",
        "Is there a cheaper way to answer the easy questions?",
        "We cannot afford to send the whole chat every time.",
    ),
    "retrieval-design": (
        "How do I let it answer from our own documents?",
        "Should we cut the handbook at its headings before we index it?",
        "People search for part numbers and find nothing.",
    ),
    "prompt-writing": (
        "What do I have to put into the instructions so that it keeps to the point?",
        "Does it help to reword the request, or to show it samples?",
        "Where do I keep the templates that our teams fill in?",
    ),
    "agent-building": (
        "How do I let it book the trip by itself without it doing harm?",
        "It went round in a loop all night. What stops that?",
        "Do we need several agents for this or is one enough?",
    ),
}
NO_BUSINESS = {
    "enhanced-coding": (
        "What does one reply cost us?",
        "How do I find the right page of a manual?",
        "Which tone suits a letter to a widow?",
    ),
    "testing-qa": (
        "Why does it call the same tool again and again?",
        "How should I cut a long report?",
        "What is a good name for our bot?",
    ),
    "cost-control": (
        "Why does it overlook what stands in the middle?",
        "How do I mend a bug in my loop?",
        "Which words should the greeting have?",
    ),
    "retrieval-design": (
        "How do we spend less?",
        "What should a unit test of a chat look like?",
        "When should a person have to agree first?",
    ),
    "prompt-writing": (
        "Where are the vectors kept?",
        "Which model is cheap enough for us?",
        "How do I undo a release that went wrong?",
    ),
    "agent-building": (
        "Is my test set large enough?",
        "What is the price of a long answer?",
        "How do I write a regular expression for dates?",
    ),
}
HEAD = "---\nname: mine\ntitle: Mine\nwords: [tide table]\nintents: [deployment]\n---\n"
BODY = "\n## Look at the moon\nIt pulls.\n\n## Ask the harbour\nThey know.\n"


def called_for(question: str, allowed: tuple[str, ...] = SIX, intent: str = "") -> set[str]:
    sections = matching_sections(question, allowed, authored_playbooks(), intent=intent)
    return {section.playbook for section in sections}


def test_the_shipped_expert_on_the_curated_graph_has_all_six():
    shipped = json.loads(
        (files("kgot_lab.experts") / "shipped" / "cookbook.json").read_text(encoding="utf-8")
    )
    assert sorted(shipped["playbook_skills"]) == sorted(SIX)


@every("name", SIX)
def test_a_playbook_has_four_to_six_sections_of_a_length_that_fits_a_prompt(name):
    sections = authored_playbooks()[name].sections
    assert 4 <= len(sections) <= 6 and len({section.heading for section in sections}) == len(sections)
    assert all(40 <= len(section.text.split()) <= 110 for section in sections)


@every(("name", "question"), [(name, question) for name, asked in CALLS.items() for question in asked])
def test_a_question_in_everyday_words_calls_for_its_playbook(name, question):
    assert name in called_for(question)
    assert len(matching_sections(question, SIX, authored_playbooks())) <= 2


@every(("name", "question"), [(name, question) for name, asked in NO_BUSINESS.items() for question in asked])
def test_a_question_that_is_none_of_its_business_does_not(name, question):
    assert name not in called_for(question)


@every("name", SIX)
def test_a_playbook_that_is_not_allowed_is_never_injected(name):
    others = tuple(other for other in SIX if other != name)
    assert all(name not in called_for(question, others) for asked in CALLS.values() for question in asked)
    assert all(called_for(question, ()) == set() for question in CALLS[name])


def test_an_intent_calls_for_a_playbook_that_also_says_a_word_of_the_question():
    question = "What about the tokens of an answer?"
    assert called_for(question) == set()
    assert called_for(question, intent="cost_optimization") == {"cost-control"}
    nothing = "How can I do this, and what would you have me do about it?"
    assert called_for(nothing, intent="cost_optimization") == set()
    assert called_for("What does it cost?", ("gone", "cost-control")) == {"cost-control"}


def test_several_words_call_only_side_by_side():
    assert "agent-building" in called_for("It should act by itself.")
    assert "agent-building" not in called_for("Stand by: the reply itself is late.")


def test_the_section_that_says_what_the_question_says_comes_first():
    first = matching_sections(
        "Is it cheaper to send what nobody waits for in a batch?", SIX, authored_playbooks()
    )[0]
    assert (first.playbook, "batch" in first.text) == ("cost-control", True)


def test_a_playbook_of_a_folder_of_ones_own_is_read_and_found(tmp_path):
    (tmp_path / "tides.md").write_text(HEAD + BODY, encoding="utf-8")
    mine = read_playbook(tmp_path / "tides.md")
    assert (mine.name, mine.words, mine.intents) == ("mine", ("tide table",), ("deployment",))
    assert [section.heading for section in mine.sections] == ["Look at the moon", "Ask the harbour"]
    found = matching_sections(
        "Who prints the tide tables for the harbour?", ["mine"], {**authored_playbooks(), mine.name: mine}
    )
    assert found[0].heading == "Ask the harbour"


def test_a_playbook_with_the_line_ends_of_another_system_is_the_same(tmp_path):
    (tmp_path / "one.md").write_bytes((HEAD + BODY).encode())
    (tmp_path / "other.md").write_bytes((HEAD + BODY).replace("\n", "\r\n").encode())
    assert read_playbook(tmp_path / "one.md") == read_playbook(tmp_path / "other.md")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BODY, "no head"),
        (HEAD.removesuffix("---\n") + BODY, "no head"),
        ("---\nname: [\n---\n" + BODY, "not YAML"),
        ("---\n- name\n---\n" + BODY, "it has to be a set"),
        (HEAD.replace("title: Mine\n", "") + BODY, "title: it is missing"),
        (HEAD.replace("name: mine", "name: 3") + BODY, "name: it has to be a text"),
        (HEAD.replace("[tide table]", "tide table") + BODY, "words: it has to be a list"),
        (HEAD.replace("[tide table]", "[1]") + BODY, "words.0: it has to be a text"),
        (HEAD.replace("words: [tide table]\n", "") + BODY, "words: it is missing"),
        (HEAD.replace("deployment", "sailing"), "sailing"),
        (HEAD + "\nOnly prose.\n", "no sections"),
        (HEAD + "\n## Empty\n", "no text"),
        (HEAD + "\n##  \nSome text.\n", "no heading"),
    ],
)
def test_a_file_that_is_no_playbook_is_told_by_name(tmp_path, text, why):
    (tmp_path / "broken.md").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=why) as told:
        read_playbook(tmp_path / "broken.md")
    assert "broken.md" in str(told.value) and str(tmp_path) not in str(told.value)


def test_no_playbook_names_a_vendor():
    sections = [section for playbook in authored_playbooks().values() for section in playbook.sections]
    told = " ".join(f"{section.heading} {section.text}" for section in sections)
    companies = ("OpenAI", "Anthropic", "Google", "Meta", "Mistral", "Microsoft", "Amazon")
    assert not [name for name in companies if contains_words(name, told)]


@pytest.mark.parametrize(
    ("skills", "told"),
    [
        (["cost-control"], {"cost-control"}),
        (["testing-qa"], set()),
        ([], set()),
        (list(SIX), {"cost-control"}),
    ],
)
def test_what_an_expert_may_not_use_does_not_reach_its_prompt(skills, told):
    asked = []

    class Noting:
        name = "noting"

        def __call__(self, prompt):
            asked.append(prompt.messages[0].text)
            return Reply("Yes.")

    service = ExpertService(
        open_experts(), GraphFolder(None, {"cookbook": cookbook}), ExpertModels({"noting": Noting}, "noting")
    )
    expert = service.create(
        {"name": "A", "kg_db_id": "cookbook", "persona": {"name": "A"}, "playbook_skills": skills}
    )
    list(service.ask(expert.id, "somebody", "Our monthly bill has doubled. Where do we begin?").events())
    assert {name for name in SIX if f"{name}: " in asked[0]} == told
    assert ("[Playbook Context]" in asked[0]) == bool(told)
