"""The stepper's data and picture: every event is told, each has the right graph, texts stay text, and a fork
says how it ended.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes
from viz.test_pages import EVIL

from kgot_lab.errors import BadInput, NoSandbox
from kgot_lab.graph.property_graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.loop import events as happened
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Read,
    Repaired,
    Started,
    ToolCall,
    ToolReturned,
    Vote,
    Voted,
    Wrote,
)
from kgot_lab.loop.formatting import caption
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.replay.replay import Fork, Resources
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import Trace, graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import TextTool
from kgot_lab.types import Diff, Document, Edge, Message, Node, Prompt, Usage
from kgot_lab.viz.live import placeholder
from kgot_lab.viz.static.markup import picture_key
from kgot_lab.viz.stepping.data import MAX_RUN_NODES, preceding_repairs, run_positions, vote_data
from kgot_lab.viz.stepping.stepper import stepper

TRACES = sorted(bundled_path("traces").glob("*.jsonl"))
# the others are in the extended tier
QUICK = {"hotpotqa_demo", "same_question_cypher_embedded", "winter_storm"}
RUNS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.extended] * (path.stem not in QUICK))
    for path in TRACES
]
TOOL = search(ADA, bm25(ADA), k=2)
DEMO = load_run(bundled_path("traces/hotpotqa_demo.jsonl"))
STORM = load_run(bundled_path("traces/winter_storm.jsonl"))
VOLCANO = recorded_fork(STORM, load_run(bundled_path("traces/winter_storm_fork_volcano.jsonl")))


@pytest.fixture(params=RUNS, scope="module")
def trace(request):
    return load_run(request.param)


@pytest.fixture(scope="module")
def walked(trace):
    """The stepper of a bundled run, made once: its graphs are laid out."""
    return stepper(trace)


@pytest.fixture(scope="module")
def mended():
    """A run whose write was refused twice and repaired twice, after a vote that was decided early."""
    llm = scripted(
        vote=[*votes("I", "I", "I"), *votes("R", "R", "R")], tools=call(), parse={"answer": "London"},
        write={"statements": ["add("]}, mend=[{"statement": "add(1"}, {"statement": WRITE["statements"][0]}],
    )  # fmt: skip
    with InMemory() as store:
        return tuple(think("Where was Ada Lovelace born?", llm, store, [TOOL], FEW))


def of(kind, events):
    return next(number for number, event in enumerate(events) if isinstance(event, kind))


def drawn(run, number):
    """The ids, edges and marks of a graph in the data."""
    graph = run["graphs"][number]
    nodes = [run["nodes"][n]["id"] for n in graph["nodes"]]
    edges = [
        (run["edges"][n]["source"], run["edges"][n]["type"], run["edges"][n]["target"])
        for n in graph["edges"]
    ]
    return nodes, edges, graph["node_marks"], graph["edge_marks"]


class Tags(HTMLParser):
    """The tags and attributes of some markup."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


# --- the data ---


def test_every_event_of_every_trace_is_told(trace, walked):
    run = walked.live.data["run"]
    assert len(run["events"]) == len(run["graph_at"]) == len(trace.events)
    for event, told in zip(trace.events, run["events"], strict=True):
        assert told["kind"] == type(event).__name__ and told["step"] == event.step
        assert 0 < len(told["caption"]) <= 60 and "<" in told["words"]
    assert run["answer"] == trace.events[-1].text and run["finished"]


def test_prompt_and_reply_of_every_question_are_there_word_for_word(trace, walked):
    run = walked.live.data["run"]
    for event, told in zip(trace.events, run["events"], strict=True):
        if isinstance(event, Asked):
            assert [(role, run["texts"][text]) for role, text in told["prompt"]] == [
                (m.role, m.text) for m in event.prompt.messages
            ]
            assert run["texts"][told["reply"]] == event.reply


def test_the_graph_at_each_event_is_the_graph_that_the_writes_gave(trace, walked):
    run = walked.live.data["run"]
    for number, event in enumerate(trace.events):
        graph = graph_after(trace.events[: number + 1])
        nodes, edges, node_marks, edge_marks = drawn(run, run["graph_at"][number])
        gone = set() if not isinstance(event, Wrote) else {node.id for node in event.diff.removed_nodes}
        assert set(nodes) == set(graph.ids) | gone
        assert {(edge.source, edge.type, edge.target) for edge in graph.edges} <= set(edges)
        if isinstance(event, Wrote):
            added = {node.id for node in event.diff.added_nodes}
            assert {nodes[at] for at, mark in node_marks.items() if mark == "added"} == added
            assert len(edge_marks) == len(event.diff.added_edges) + len(event.diff.removed_edges) + len(
                event.diff.changed_edges
            )
        elif isinstance(event, Answered):
            assert set(node_marks.values()) <= {"answer"} and set(edge_marks.values()) <= {"evidence"}
        else:
            assert not node_marks and not edge_marks


def test_a_node_has_one_place_in_all_graphs_of_a_run_and_its_forks():
    data = stepper(STORM, forks=[VOLCANO]).live.data
    where = {}
    for part in (data["run"], *data["forks"], *(fork["ends"] for fork in data["forks"])):
        for node in part["nodes"]:
            assert where.setdefault(node["id"], (node["x"], node["y"])) == (node["x"], node["y"])
    assert len(where) == len({*graph_after(STORM.events).ids, *VOLCANO.graph.ids})


def test_a_node_that_is_removed_later_has_a_place_while_it_is_there():
    events = [
        Started(question="?"),
        Wrote(statement="a", diff=Diff(added_nodes=(Node("gone"), Node("stays")))),
        Wrote(statement="b", diff=Diff(removed_nodes=(Node("gone"),), added_nodes=(Node("new"),))),
    ]
    run = stepper(events).live.data["run"]
    first, second = drawn(run, run["graph_at"][1]), drawn(run, run["graph_at"][2])
    assert set(first[0]) == {"gone", "stays"} and set(second[0]) == {"gone", "stays", "new"}
    assert {second[0][at]: mark for at, mark in second[2].items()} == {"gone": "removed", "new": "added"}


@pytest.mark.extended
def test_a_graph_too_large_to_draw_says_how_much_of_it_is_shown():
    edges = tuple(Edge("hub", "has", f"leaf {number}") for number in range(MAX_RUN_NODES + 20))
    nodes = (Node("hub"), *(Node(edge.target) for edge in edges))
    run = stepper(
        [Started(question="?"), Wrote(statement="x", diff=Diff(added_nodes=nodes, added_edges=edges))]
    ).live.data["run"]
    assert len(run["graphs"][-1]["nodes"]) == MAX_RUN_NODES
    assert run["graphs"][-1]["note"] == f"Shows {MAX_RUN_NODES} of {MAX_RUN_NODES + 21} nodes."


# --- votes, repairs ---


def test_a_vote_is_known_by_its_first_question_its_votes_and_its_end(mended):
    first, second = vote_data(mended)
    assert isinstance(mended[first["start"]], Asked) and isinstance(mended[first["end"]], Voted)
    assert [choice for _, choice in first["samples"]] == ["INSERT"] * 3 and first["possible"] == 5
    assert first["choice"] == "INSERT"
    assert all(isinstance(mended[at], Vote) for at, _ in (*first["samples"], *second["samples"]))
    assert second["choice"] == "RETRIEVE" and second["start"] > first["end"]


def test_a_vote_in_which_the_run_stops_is_open(mended):
    cut = mended[: vote_data(mended)[0]["samples"][1][0]]
    (round,) = vote_data(cut)
    assert round["end"] == -1 and len(round["samples"]) == 1 and round["possible"] == 5


def test_a_repaired_statement_is_shown_with_every_form_it_had_and_why_each_was_refused(mended):
    at = of(Wrote, mended)
    first, second = preceding_repairs(mended, at)
    assert (first.statement, first.mended, second.mended) == ("add(", "add(1", mended[at].statement)
    words = stepper(mended).live.data["run"]["events"][at]["words"]
    assert "2 times before" in words
    assert words.index(">add(<") < words.index(">add(1<") < words.index("Ada Lovelace")
    assert words.count("refused: ") == 2


# --- what facts rest on ---


def test_each_fact_knows_since_which_event_it_is_there_and_where_it_is_said(trace, walked):
    run = walked.live.data["run"]
    facts, passages, last = run["grounds"]["facts"], run["grounds"]["passages"], graph_after(trace.events)
    assert {tuple(fact["edge"]) for fact in facts if fact["edge"]} >= {
        (e.source, e.type, e.target) for e in last.edges
    }
    for fact in facts:
        if fact["since"] > 0:
            wrote = trace.events[fact["since"]]
            assert isinstance(wrote, Wrote)
            assert fact["text"] in {fact_of(edge) for edge in wrote.diff.added_edges}
        for said in fact["said"]:
            where = passages[said["passage"]] if said["passage"] >= 0 else None
            assert where is None or isinstance(trace.events[where["event"]], ToolReturned)
            sentence = run["texts"][said["sentence"]]
            assert where is None or " ".join(sentence.split()) in " ".join(
                run["texts"][where["text"]].split()
            )
    answer = trace.events[-1]
    if isinstance(answer, Answered):
        assert [facts[number]["text"] for number in run["grounds"]["evidence"]] == [
            str(row) for row in answer.evidence
        ]


def test_what_the_steps_took_is_what_the_ledger_says(trace, walked):
    steps = walked.live.data["run"]["steps"]
    spent = ledger(trace.events).total
    assert sum(step["calls"] for step in steps) == len(ledger(trace.events).entries)
    assert sum(step["tokens"] for step in steps) == spent.prompt_tokens + spent.completion_tokens
    assert sum(step["seconds"] for step in steps) == pytest.approx(spent.seconds, abs=0.1 * len(steps))


# --- texts that mean harm ---


def evil_events():
    node, edge = Node(EVIL, (EVIL,), {EVIL: EVIL}), Edge(EVIL, EVIL, "b", {EVIL: EVIL}, EVIL)
    prompt = Prompt((Message(EVIL, EVIL),), {"title": EVIL})
    return [
        Started(question=EVIL, planning=EVIL, execution=EVIL, dialect=EVIL),
        Asked(role=EVIL, model=EVIL, prompt=prompt, reply=EVIL, usage=Usage()),
        Asked(role="vote", model=EVIL, prompt=prompt, reply=EVIL),
        Vote(number=1, choice=EVIL, text=EVIL),
        Voted(choice=EVIL, inserts=1, retrieves=0, invalid=0, possible=1, reasons=(EVIL,)),
        ToolReturned(call=ToolCall(EVIL, {EVIL: EVIL}), text=EVIL, sources=(Document(EVIL, EVIL, EVIL),)),
        Repaired(statement=EVIL, error=EVIL, mended="x" + EVIL),
        Wrote(
            statement="x" + EVIL, diff=Diff(added_nodes=(node, Node("b")), added_edges=(edge,)), source=EVIL
        ),
        Read(statement=EVIL, rows=({EVIL: EVIL},)),
        happened.Answered(text=EVIL, forced=False, evidence=(EVIL,), passages=(EVIL,)),
    ]


def test_no_text_of_a_run_becomes_markup():
    view = stepper(evil_events())
    allowed = set("div b i p pre ul li code details summary table caption thead tbody tr th td".split())
    for told in view.live.data["run"]["events"]:
        tags = Tags(told["words"])
        assert tags.tags <= allowed and tags.attributes <= {"class", "scope", "style"}
    page = placeholder({**view.live.data, "stands_for": ""})
    assert page.count("<script") == page.count("</script>") == 1 and page.endswith("</script></div>")


def test_no_text_of_a_fork_becomes_markup():
    events = evil_events()
    asked = Asked(role=EVIL, model=EVIL, prompt=events[1].prompt, reply="other" + EVIL)
    changed = [*events[:1], asked, *events[2:]]
    made = Fork(tuple(changed), graph_after(changed), 1, 0, 1, EVIL)
    (fork,) = stepper(events, forks=[made]).live.data["forks"]
    tags = Tags(fork["change"]["lines"])
    assert tags.tags == {"ul", "li"} and tags.attributes == {"class"} and fork["stopped"] == EVIL


# --- the picture ---


def test_the_picture_holds_question_steps_answer_and_the_last_graph(trace, walked):
    picture = walked.picture
    said = " ".join(
        node.text or "" for node in ET.fromstring(picture.svg).iter() if node.tag.endswith("}text")
    )
    assert "Answer: " in said and "Step 1: search(" in said and trace.question.split()[0] in said
    assert "wrote +" in said
    assert picture.nodes == len(graph_after(trace.events)) and picture_key(picture.svg)
    assert picture.svg.count("data-picture") == 1
    assert trace.question.split()[-1] in picture.alt and picture._repr_html_().startswith("<img src=")


def test_the_picture_of_a_long_run_names_the_first_steps_and_counts_the_others():
    events = [Started(question="?"), *(Wrote(step=step, statement="x", diff=Diff()) for step in range(1, 20))]
    assert "… and 12 more steps" in stepper(events).picture.svg


# --- what can be stepped through ---


@pytest.mark.extended
def test_a_run_that_was_cut_short_anywhere_can_be_stepped_through():
    for kept in range(1, len(DEMO.events), 9):
        view = stepper(DEMO.events[:kept])
        run = view.live.data["run"]
        assert len(run["events"]) == kept and not run["finished"] and run["answer"] == ""
    assert f"The run stops at event {kept - 1}" in view.picture.alt


def test_nothing_and_a_run_without_its_head_are_refused():
    with pytest.raises(BadInput, match="no events"):
        stepper([])
    with pytest.raises(BadInput, match="a run begins with Started"):
        stepper(DEMO.events[1:])


@every(
    "message",
    [{}, {"at": 99}, {"at": -1}, {"at": "3"}, {"fork": 3}, {"fork": "3", "change": "x"}, {"forks": 0}],
)
def test_a_message_that_makes_no_sense_changes_nothing(message):
    view = stepper(STORM, forks=[])
    assert view._handle_message(message) == {} and view.at == len(STORM.events) - 1 and view.forks == []


# --- time travel ---


def test_the_forks_that_were_recorded_of_a_run_are_on_offer_where_there_is_no_model():
    assert [fork.first_difference for fork in stepper(STORM).forks] == [VOLCANO.first_difference]
    assert stepper(STORM, forks=[]).forks == [] == stepper(STORM, live=Resources([TOOL], scripted())).forks
    assert stepper(Trace(STORM.run, "", DEMO.events)).forks == []  # another run of that name


def test_a_recorded_fork_stands_beside_its_run_with_both_graphs_and_what_differs():
    view = stepper(STORM, forks=[VOLCANO])
    (fork,) = view.live.data["forks"]
    difference = graph_after(STORM.events).diff(VOLCANO.graph)
    left, right = (drawn(fork["ends"], number) for number in fork["ends"]["of"])
    assert set(left[0]) == set(graph_after(STORM.events).ids) and set(right[0]) == set(VOLCANO.graph.ids)
    assert {left[0][at] for at, mark in left[2].items() if mark == "removed"} == {
        node.id for node in difference.removed_nodes
    }
    assert {right[0][at] for at, mark in right[2].items() if mark == "added"} == {
        node.id for node in difference.added_nodes
    }
    assert len(left[3]) == len(difference.removed_edges) and len(right[3]) == len(difference.added_edges)
    assert (fork["first"], fork["avoided"], fork["asked"], fork["difference"]) == (3, 0, 7, str(difference))


def test_a_fork_names_shared_events_and_says_which_lines_were_changed():
    (fork,) = stepper(STORM, forks=[VOLCANO]).live.data["forks"]
    assert fork["events"][:3] == [{"as": 0}, {"as": 1}, {"as": 2}] and "words" in fork["events"][3]
    assert fork["pairs"][:4] == [[0, 0, True], [1, 1, True], [2, 2, True], [3, 3, False]]
    assert fork["change"]["words"] == "the text of event 3 (search returned)"
    assert fork["change"]["lines"].index("− [1]") < fork["change"]["lines"].index("+ In January 2026 the ash")


def test_a_free_edit_without_a_model_stops_at_the_first_missing_reply_and_keeps_the_graph():
    view = stepper(STORM, forks=[])
    at = of(Wrote, STORM.events)
    assert view._handle_message({"fork": at, "change": 'add("a volcano", "blocked", "the sun")'}) == {}
    (made,), (data,) = view.forks, view.live.data["forks"]
    assert "no reply" in made.stopped and [edge.source for edge in made.graph.edges] == ["a volcano"]
    assert data["stopped"] == made.stopped and not data["finished"] and data["answer"] == ""
    assert set(drawn(data["ends"], data["ends"]["of"][1])[0]) == {"a volcano", "the sun"}
    assert "1 fork" in repr(view)


def test_a_page_that_was_opened_again_is_given_the_forks_it_does_not_have():
    view = stepper(STORM, forks=[VOLCANO])
    view.fork(3, "Nothing was found.")
    answer = view._handle_message({"forks": 1})
    assert answer == {"forks": view.live.data["forks"][1:], "number": 2}
    assert view._handle_message({"forks": 2}) == {}


def test_a_statement_that_does_not_run_is_refused_in_words_and_makes_no_fork():
    view = stepper(STORM, forks=[])
    answer = view._handle_message({"fork": of(Wrote, STORM.events), "change": "add("})
    assert "refused" in answer["refused"] and view.forks == []
    assert "what can be changed" in view._handle_message({"fork": 0, "change": "another question"})["refused"]
    with pytest.raises(BadInput, match="events 0 to"):
        view.fork(999, "")


def test_a_fork_with_a_model_and_a_tool_goes_on_to_an_answer(mended):
    statements = ['add("Ada Lovelace", "born in", "Paris")']
    llm = scripted(write={"statements": statements}, vote=votes("R", "R", "R"), parse={"answer": "Paris"})
    view = stepper(mended, live=Resources([TOOL], llm))
    made = view.fork(of(ToolReturned, mended), "Ada Lovelace was born in Paris.")
    assert view.live.data["model"] and made.answer == "Paris" == view.live.data["forks"][0]["answer"]
    assert made.asked == 5


def test_a_statement_that_ran_at_once_has_no_repairs(mended):
    assert (
        preceding_repairs(mended, of(Read, mended)) == [] == preceding_repairs(mended, of(Repaired, mended))
    )
    words = stepper(mended).live.data["run"]["events"][of(Read, mended)]["words"]
    assert "Repaired" not in words


@pytest.mark.extended
def test_a_tool_that_breaks_in_a_fork_is_said_in_the_view(mended):
    def broken(query: str) -> str:
        raise ZeroDivisionError("the tool is broken")

    nothing = {"statement": "result = []"}
    read = {"forced": nothing, "reread": nothing, "guess": {"answer": "?"}}
    llm = scripted(tools=call("Paris"), vote=votes("I"), **read)
    tool = TextTool("search", TOOL.description, {"query": "what to look for"}, broken, finds="query")
    view = stepper(mended, live=Resources([tool], llm))
    tools = next(
        number for number, event in enumerate(mended) if isinstance(event, Asked) and event.role == "tools"
    )
    view._handle_message({"fork": tools, "change": json.dumps(call("Paris"))})
    returned = [event for event in view.forks[0].events if isinstance(event, ToolReturned) and event.failed]
    assert returned[0].text == "search is broken: ZeroDivisionError: the tool is broken"
    assert view.forks[0].answer == "?"


def test_a_vote_that_was_never_held_is_no_vote():
    assert [round["choice"] for round in vote_data(STORM.events)] == ["RETRIEVE"]


def test_every_kind_of_event_has_a_caption_of_its_own():
    made = {type(event).__name__: caption(event) for event in evil_events()}
    assert len(set(made.values())) == len(made)
    other = [
        happened.Cut(what="graph", kept=1, left_out=2),
        happened.Merged(reason="x"),
        happened.Chose(calls=()),
        happened.Forced(what="read"),
        happened.Failed(statement="x", reason="y"),
        happened.Refused(statement="x", reason="y", writing=True),
        happened.Computed(code="1", output="1"),
        happened.Parsed(text="", problem="none"),
        Voted(choice="INSERT", inserts=0, retrieves=0, invalid=0, possible=0),
    ]
    assert all(caption(event) != type(event).__name__ for event in other)
    assert len({caption(event) for event in other}) == len(other)


def test_the_picture_of_a_hostile_run_is_sound_and_fetches_nothing():
    picture = stepper(evil_events()).picture
    root = ET.fromstring(picture.svg)
    drawn_tags = {node.tag.split("}")[1] for node in root.iter()}
    assert drawn_tags <= {"svg", "title", "desc", "rect", "text", "g", "path", "polygon", "circle"}
    names = {name for node in root.iter() for name in node.attrib}
    assert not [name for name in names if "href" in name or name.startswith("on")]
    assert "url(" not in picture.svg


def test_without_a_sandbox_an_edited_statement_says_so():
    def none():
        raise NoSandbox("there is none in this test")

    view = stepper(STORM, forks=[], store=lambda: InMemory(open=none))
    view.fork(of(Wrote, STORM.events), "G.clear()")
    assert "there is none in this test" in view.forks[0].stopped


def test_places_keep_what_has_a_place_already():
    small = PropertyGraph.of([Node("a"), Node("b")], [Edge("a", "to", "b")])
    before = run_positions(small)
    after = run_positions(small, PropertyGraph.of([Node("c")]), known=before)
    assert {id: after[id] for id in before} == before and "c" in after
