"""A turn of a chat without any door: its stages, what a model is told and told never to forget, and what is
kept however a turn ends.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.expert_server import COOK, COOK_ID, HeldModel, echoing, expert_office, the_cookbook

from kgot_lab.experts.chat import prompting
from kgot_lab.experts.chat.chat_events import ChatDone, ChatFailed, ConversationStarted, TokenEvent
from kgot_lab.experts.chat.citations import (
    FALSE_MARK,
    CitableNode,
    CitableNodes,
    CitationCheck,
    mentioned_nodes,
)
from kgot_lab.experts.chat.prompting import (
    MAX_PROMPT_EDGES,
    MAX_PROMPT_NODES,
    AnswerOptions,
    PromptQuestion,
    expert_prompt,
    prompt_context,
)
from kgot_lab.experts.chat.turn import ExpertTurn, search_query
from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.graph_folder import KnownGraphs
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge, Node

ME = "ada"
NODES = (
    CitableNode("cook", "technique:caching", "Prompt caching", "technique"),
    CitableNode("cook", "technique:rag", "Retrieval (RAG); all of it", "technique"),
    CitableNode("code", "mod.py:f", "f", "function"),
)


def turn(service, question: str, **more) -> ExpertTurn:
    return service.ask(COOK_ID, more.pop("owner", ME), question, **more)


def said(service, conversation: str) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in service.tables.messages(conversation)]


def text(events) -> str:
    return "".join(event.content for event in events if isinstance(event, TokenEvent))


# --- stages ---


def test_the_prompt_holds_the_persona_the_graph_behind_a_fence_and_how_to_cite():
    model = echoing()
    list(
        turn(
            expert_office(model), "How do I use prompt caching?", options=AnswerOptions("In verse.")
        ).events()
    )
    system = model.asked[0].messages[0].text
    assert system.startswith("You are Cook. You help.") and "In verse." in system
    assert "- [technique] Prompt caching [Source: cookbook:Prompt caching]" in system
    assert "[Citation Instructions]" in system
    assert system.index("<<<") < system.index("- [technique] Prompt caching") < system.index(">>>")


# --- citations ---

PIECES = [
    *"[]:; \n", "[source:", "[Source: ", "[sour", "cook:", "code:f", "Prompt caching", "technique:caching", "rag",
    "nowhere", ", ", "x" * 390, "x" * 9,
    "[Source: cook:Prompt caching]",
    "[SOURCE:code:f; cook:nobody]", "\u017fource:", "\u0130", "\u00df", "\ud83e\uddd0".encode("utf-16", "surrogatepass").decode("utf-16"),
]  # fmt: skip


def checked(parts) -> tuple[str, dict, list]:
    check = CitationCheck(CitableNodes(NODES))
    told = "".join([*(check.feed(part) for part in parts), check.finish()])
    return told, check.cited, check.false


@pytest.mark.extended
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.data())
def test_however_an_answer_is_cut_into_pieces_the_same_is_told_of_it(answer, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(answer)), max_size=12)))
    parts = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    assert checked(parts) == checked([answer]) == checked(answer)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(385, 405))
def test_a_citation_of_just_the_longest_length_is_read_the_same_letter_by_letter(length):
    answer = f"[source:{'y' * length}]."
    assert checked(answer) == checked([answer])


def test_a_false_citation_is_marked_and_a_true_one_is_counted():
    told, cited, false = checked(
        "A [Source: cook:Prompt caching] B [Source: cook:nobody] C [source: caching; nobody] D [1] [Source: ]"
    )
    assert told == (
        f"A [Source: cook:Prompt caching] B [Source: cook:nobody{FALSE_MARK}] C [source: caching; nobody{FALSE_MARK}] D [1] [Source: ]"
    )
    assert cited == {NODES[0]: 2} and false == ["cook:nobody", "nobody"]
    for node in NODES:  # as its line in the prompt says
        assert checked(f"[Source: {node.handle}]")[1:] == ({node: 1}, [])


@pytest.mark.parametrize(
    ("text", "unsaid", "told"),
    [
        ("Caching helps [Source: cook:Prompt caching].", (), "not checked"),
        ("Caching helps.", (), "unsure, a guess: it cites nothing that was found"),
        ("It helps [Source: cook:Prompt caching] [Source: x].", (), "unsure, a guess: it cites x, which was not found"),
        ("Zinc helps [Source: cook:Prompt caching].", ("zinc", "tea"), "unsure, a guess: nothing that was found says zinc, tea"),
        ("I do not know.", (), "not in the sources: it cites nothing that was found"),
        ("I don't know. Caching may help [Source: cook:Prompt caching].", (), "not in the sources: what was found does not say it"),
        ("My graph says nothing of zinc. I do not know the answer.", ("zinc",), "not in the sources: nothing that was found says zinc"),
    ],
)  # fmt: skip
def test_an_answer_has_the_outcome_that_its_citations_decide(text, unsaid, told):
    check = CitationCheck(CitableNodes(NODES))
    assert check.judge(check.feed(text) + check.finish(), unsaid).remark == told


# --- limitations and caps ---

WORDS = ["cache", "prompt", "agent", "search", "cost", "build", "index", "answer"]
QUESTIONS = [
    "what can {} do",
    "how do i build a {} and then a {}",
    "can {} answer",
    "what breaks if {} changes",
    "what is like {}",
    "{} {}",
    "why {} cost",
]


def limitations_told(
    graph: PropertyGraph | MultiGraph, question: str, names: tuple[str, ...] = ("g",)
) -> tuple[str, set[str], set[str]]:
    """The prompt, the limitations of all nodes that it tells, and those of them that it does not name."""
    known = KnownGraphs(names, graph, "")
    config = expert_config({**COOK, "kg_db_id": None, "kg_db_ids": list(names)})
    told = prompt_context(known, intent_search(graph, question, config=config.search_config()))
    system = expert_prompt(config, told, PromptQuestion(question)).messages[0].text
    whole = known.graph
    spoken_of = {node for node in whole.ids if _named(node) in system}
    due = {edge.target for edge in whole.edges if edge.type == "has_limitation" and edge.source in spoken_of}
    section = system[system.find("\nLimitations:") :] if "\nLimitations:" in system else ""
    return system, due, {limit for limit in due if _named(limit) not in section}


def _named(id: str) -> str:
    return f"<{id.rpartition(':')[2]}>"


@st.composite
def limited_graphs(draw, mark: str = "") -> PropertyGraph:
    count = draw(st.integers(2, 40))
    words = draw(
        st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=count, max_size=count)
    )
    kinds = draw(st.lists(st.sampled_from(["tool", "technique", "goal"]), min_size=count, max_size=count))
    nodes = [
        Node(
            f"{mark}n{i}",
            (kinds[i],),
            {"name": f"{' '.join(words[i])} <{mark}n{i}>", "description": f"it can {words[i][0]}"},
        )
        for i in range(count)
    ]
    limits = [
        Node(
            f"{mark}l{i}",
            ("limitation",),
            {"name": f"limit <{mark}l{i}>", "description": "it hurts. " * draw(st.integers(0, 60))},
        )
        for i in range(draw(st.integers(1, 12)))
    ]
    ends = st.integers(0, count - 1)
    types = st.sampled_from(["requires", "enables", "feeds_into", "part_of", "has_workaround"])
    edges = [
        Edge(f"{mark}n{a}", t, f"{mark}n{b}", {}, str(k))
        for k, (a, t, b) in enumerate(draw(st.lists(st.tuples(ends, types, ends), max_size=70)))
    ]
    edges += [
        Edge(f"{mark}n{draw(ends)}", "has_limitation", limit.id, {}, f"{mark}l{k}")
        for k, limit in enumerate(limits)
        for _ in range(draw(st.integers(1, 2)))
    ]
    edges += [
        Edge(limit.id, "has_workaround", f"{mark}n{draw(ends)}", {}, f"w{k}")
        for k, limit in enumerate(limits)
        if draw(st.booleans())
    ]
    return PropertyGraph.of(nodes + limits, list({(e.source, e.type, e.target): e for e in edges}.values()))


words = st.sampled_from(WORDS)
questions = st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(QUESTIONS), words, words)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(limited_graphs(), questions)
def test_no_limitation_of_a_node_that_is_told_is_missing_from_the_prompt(graph, question):
    _, _, missing = limitations_told(graph, question)
    assert not missing


@pytest.mark.extended
@settings(max_examples=30, deadline=None, derandomize=True)
@given(limited_graphs("a"), limited_graphs("b"), questions)
def test_no_limitation_is_missing_where_several_graphs_are_asked(one, two, question):
    _, _, missing = limitations_told(MultiGraph.of({"a": one, "b": two}), question, ("a", "b"))
    assert not missing


def test_the_property_is_not_empty_and_notices_a_limitation_that_is_dropped(monkeypatch):
    nodes = [
        Node("n0", ("tool",), {"name": "cache <n0>"}),
        *(Node(f"l{i}", ("limitation",), {"name": f"limit <l{i}>"}) for i in range(3)),
    ]
    graph = PropertyGraph.of(nodes, [Edge("n0", "has_limitation", f"l{i}") for i in range(3)])
    _, due, missing = limitations_told(graph, "what can cache do")
    assert due == {"l0", "l1", "l2"} and not missing
    whole = prompting._context_lines
    monkeypatch.setattr(
        prompting,
        "_context_lines",
        lambda *a: whole(*a[:-1], {id: those[:-1] for id, those in a[-1].items()}),
    )
    assert limitations_told(graph, "what can cache do")[2]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(limited_graphs(), questions)
def test_at_most_ten_nodes_and_fifteen_edges_are_told(graph, question):
    config = replace(expert_config(COOK).search_config(), limit=50)
    told = prompt_context(KnownGraphs(("g",), graph, ""), intent_search(graph, question, config=config))
    lines = told.text.split("\n")
    assert len(told.nodes) == sum(line.startswith("- [") for line in lines) <= MAX_PROMPT_NODES
    assert len(told.edges) == sum("]--> " in line or "]-->" in line for line in lines) <= MAX_PROMPT_EDGES


def test_things_that_several_graphs_know_count_against_the_ten():
    same = {
        name: PropertyGraph.of([Node(f"n{i}", ("tool",), {"name": f"cache {i}"}) for i in range(20)], [])
        for name in ("a", "b", "c")
    }
    joined = MultiGraph.of(same)
    config = replace(expert_config(COOK).search_config(), limit=50)
    told = prompt_context(
        KnownGraphs(("a", "b", "c"), joined, ""), intent_search(joined, "cache", config=config)
    )
    assert 0 < len(told.nodes) <= MAX_PROMPT_NODES and told.cut


def test_every_limitation_of_the_cookbook_is_told_with_what_it_limits():
    graph, seen = the_cookbook(), 0
    for edge in graph.edges:
        if edge.type == "has_limitation":
            name = str(graph.node_properties[graph.row(edge.source)].get("name", edge.source))
            told = prompt_context(
                KnownGraphs(("g",), graph, ""), intent_search(graph, f"what are the limits of {name}")
            )
            assert edge.source not in {node.id for node in told.nodes} or edge.target in {
                node.id for node in told.limitations
            }
            seen += 1
    assert seen > 5


# --- memory ---


def test_only_the_same_persons_conversations_with_the_same_expert_are_remembered():
    model = echoing()
    service = expert_office(model)
    other = service.create({**COOK, "persona": {"name": "Other"}}).id
    for owner, expert, word in ((ME, COOK_ID, "mine"), ("bob", COOK_ID, "bobs"), (ME, other, "elsewhere")):
        list(service.ask(expert, owner, f"The zanzibar recipe says {word}").events())
    events = list(turn(service, "What does the zanzibar recipe say?").events())
    prompt = "\n".join(message.text for message in model.asked[-1].messages)
    assert "says mine" in prompt and "bobs" not in prompt and "elsewhere" not in prompt
    assert events[1].memories
    assert not list(turn(service, "What does the zanzibar recipe say?", owner="carol").events())[1].memories
    first = turn(service, "The zanzibar recipe", owner="dora")
    list(first.events())
    more = turn(service, "More of zanzibar", owner="dora", conversation_id=first.conversation)
    assert not list(more.events())[1].memories, "what was said in this conversation is told as its turns"


# --- however a turn ends ---


@pytest.mark.parametrize("read", [0, 1, 3, 4])
def test_closing_in_the_middle_stops_the_model_and_keeps_what_was_said(read):
    model = HeldModel()
    service = expert_office(model)
    asked = turn(service, "Go on")
    events = asked.events()
    model.may_write(100)
    seen = [next(events) for _ in range(4)] + [next(events) for _ in range(read)]
    events.close()
    assert model.asked == read and model.stopped == (read > 0)
    kept = service.tables.messages(asked.conversation)
    assert [each.role for each in kept] == (["user", "assistant"] if read else ["user"])
    if read:
        assert kept[1].content == text(seen)
        assert kept[1].metadata["stopped"] is True
        assert "failed" not in kept[1].metadata


def test_a_graph_that_is_gone_fails_the_turn_and_not_the_conversation(tmp_path):
    service = expert_office()
    asked = turn(service, "prompt caching")
    broken = replace(asked, known=KnownGraphs(("cookbook",), None, ""))
    assert [type(event) for event in broken.events()] == [ConversationStarted, ChatFailed, ChatDone]
    assert isinstance(list(turn(service, "again", conversation_id=asked.conversation).events())[-1], ChatDone)


def test_two_questions_at_once_each_keep_their_own_answer():
    model = echoing()
    service = expert_office(model)
    first = turn(service, "one")
    second = turn(service, "two", conversation_id=first.conversation)
    list(second.events())
    list(first.events())
    answers = [("assistant", "You asked: two"), ("assistant", "You asked: one")]
    assert said(service, first.conversation) == [("user", "one"), ("user", "two"), *answers]
    list(turn(service, "three", conversation_id=first.conversation).events())
    told = [message.text for message in model.asked[-1].messages[1:]]
    assert told == ["one", "You asked: one", "two", "You asked: two", "three"]


def test_many_questions_at_once_in_one_conversation_are_all_kept_and_answered(tmp_path):
    service = expert_office(place=tmp_path / "experts.db")
    begun = turn(service, "begin")
    list(begun.events())

    def ask(number: int) -> None:
        for each in range(3):
            list(turn(service, f"q{number}.{each}", conversation_id=begun.conversation).events())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    messages = service.tables.messages(begun.conversation)
    questions = {message.id: message.content for message in messages if message.role == "user"}
    answers = {
        questions[message.metadata["answers"]]: message.content
        for message in messages
        if message.role == "assistant"
    }
    assert len(questions) == len(answers) == 19
    assert all(answer == f"You asked: {question}" for question, answer in answers.items())
    for number in range(6):
        mine = [content for content in questions.values() if content.startswith(f"q{number}.")]
        assert mine == [f"q{number}.{each}" for each in range(3)]


def test_questions_that_a_kill_left_unanswered_do_not_break_the_next_turn(tmp_path):
    model = echoing()
    service = expert_office(model, place=tmp_path / "experts.db")
    first = turn(service, "answered")
    list(first.events())
    for _ in range(3):
        turn(service, "lost", conversation_id=first.conversation)  # and nobody answers, as after a kill
    service.tables.close()
    service = expert_office(model, place=tmp_path / "experts.db")
    list(turn(service, "next", conversation_id=first.conversation).events())
    texts = [message.text for message in model.asked[-1].messages[1:]]
    assert texts == ["answered", "You asked: answered", "next"]
    roles = [message.role for message in model.asked[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]


def test_a_model_that_thinks_in_empty_pieces_can_be_stopped_meanwhile():
    class Thinking(HeldModel):
        def stream(self, prompt):
            try:
                for _ in range(10_000):
                    self.asked += 1
                    yield ""
            except GeneratorExit:
                self.stopped += 1
                raise

    model = Thinking()
    events = turn(expert_office(model), "Think").events()
    [next(events) for _ in range(6)]
    events.close()
    assert model.stopped == 1 and model.asked == 2


def test_a_wish_is_kept_short_and_never_stands_before_the_persona():
    model = Scripted(lambda prompt: "yes")
    list(turn(expert_office(model), "x", options=AnswerOptions("w" * 50_000)).events())
    system = model.asked[0].messages[0].text
    assert system.index("You are Cook") < system.index("www") and system.count("w" * 100) <= 200


def test_nodes_that_an_answer_names_are_told_apart_from_those_it_cites():
    nodes = [
        CitableNode("g", id, name, "t")
        for id, name in (("a", "Prompt caching"), ("b", "Caching"), ("c", "Cost"), ("d", "RAG"))
    ]
    text = "Use prompt caching, which cuts costs; RAG is [Source: g:d]. Costly."
    # "Caching" is part of a longer name, three letters are too few
    assert [node.id for node in mentioned_nodes(text, nodes)] == ["a", "c"]
    assert [node.id for node in mentioned_nodes("Prompt caching, and caching apart", nodes)] == ["a"]
    assert mentioned_nodes(text, nodes, {nodes[0], nodes[2]}) == () == mentioned_nodes("", nodes)


def test_a_question_that_says_little_is_searched_with_the_one_before_it():
    said = (("user", "What is the limit of prompt caching?"), ("assistant", "Prefix sensitivity."))
    assert search_query("And what helps?", said) == "And what helps? What is the limit of prompt caching?"
    alone = "How are agents tested before they are given tools?"
    assert search_query(alone, said) == alone and search_query("And what helps?", ()) == "And what helps?"
