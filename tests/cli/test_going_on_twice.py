"""What is stopped, and what is done twice on the command line: forks, extractions, graphs and namespaces lose
nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import FIRST, INSERT, QUESTION, REST, WRITE, asking, replies
from support.openai_server import openai_server, refuses
from support.saved_run import save_run

from kgot_lab.benchmark.questions.attempt import zero_shot
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.events import ToolReturned
from kgot_lab.loop.trace import first_inconsistent_write, load_run
from kgot_lab.stores import delete_namespace, open_store
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Edge, Node

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("here")]

PARIS = [
    {"statements": ['add("Ada Lovelace", "born in", "Paris")']},
    *REST[1:5],
    {"answer": "Paris"},
    {"answer": "Paris"},
]


def returned_in(path):
    return next(i for i, event in enumerate(load_run(path).events) if isinstance(event, ToolReturned))


def interrupted(*_):
    """What a model server does while Ctrl-C is typed."""
    raise KeyboardInterrupt


# --- forks ---


@pytest.fixture
def forked_from(kgot_lab, server):
    """The words of a fork of a run on file."""
    assert kgot_lab(*asking(server, "--tool", "search", "--trace", "run.jsonl")).code == 0
    return [
        "fork",
        "run.jsonl",
        returned_in("run.jsonl"),
        "--change",
        "Ada Lovelace was born in Paris.",
        "--documents",
        "my papers",
    ]


def test_a_fork_that_ctrl_c_stops_keeps_every_reply_and_says_how_to_go_on(kgot_lab, forked_from, monkeypatch):
    from kgot_lab.llm.budget import Budgeted

    with openai_server(*replies(*PARIS)) as model:
        call, calls = Budgeted.__call__, []

        def stopped_later(self, prompt):
            calls.append(prompt)
            return interrupted() if len(calls) == 3 else call(self, prompt)

        with monkeypatch.context() as patched:
            patched.setattr(Budgeted, "__call__", stopped_later)
            ran = kgot_lab(
                *forked_from, "--model", f"{model.url}#m", "--max-calls", "9", "--out", "fork.jsonl"
            )
        assert (
            ran.code == 130 and "Everything so far is in fork.jsonl" in ran.err and len(model.bodies) == 2
        ), ran.err
        assert "wrote " in ran.out  # shown while it runs
        resumed = kgot_lab(*ran.again[1:])
        assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err
        assert len(model.bodies) == len(PARIS)
    assert kgot_lab("verify", "fork.jsonl").code == 0


def test_a_fork_takes_the_documents_of_its_run_from_the_trace(kgot_lab, forked_from):
    with openai_server(*replies(*PARIS)) as model:
        ran = kgot_lab(*forked_from[:-2], "--model", f"{model.url}#m", "--out", "fork.jsonl")
    assert ran.code == 0 and load_run("fork.jsonl").answer == "Paris", ran.err


def test_of_two_questions_for_one_trace_the_later_is_not_told_to_go_on_with_the_other(kgot_lab, server):
    from kgot_lab.cli.resume import ResumeCommand, resume_hint
    from kgot_lab.errors import TraceLocked
    from kgot_lab.loop.trace import record

    assert kgot_lab(*asking(server, "--trace", "run.jsonl")).code == 0
    with (
        pytest.raises(TraceLocked) as refused,
        resume_hint(Path("run.jsonl"), ResumeCommand("resume", Path("run.jsonl"), {})),
    ):
        list(record([], "run.jsonl"))  # as when the other file came after it was seen that there is none
    assert "exists already" in str(refused.value) and "Go on with" not in str(refused.value)


def test_a_fork_takes_a_second_model_and_keeps_it_for_going_on(kgot_lab, forked_from):
    with openai_server(*replies(*PARIS)) as model, openai_server(*replies({"calls": []})) as second:
        models = ["--model", f"{model.url}#m", "--execution-model", f"{second.url}#second"]
        ran = kgot_lab(*forked_from, *models, "--out", "fork.jsonl")
    assert ran.code == 0, ran.err
    assert f"execution_model: {second.url}#second" in load_run("fork.jsonl").about["configuration"]


def test_a_fork_whose_model_fails_ends_with_the_command_that_goes_on(kgot_lab, forked_from):
    with openai_server(*replies(*PARIS[:2]), refuses(400, "no"), *replies(*PARIS[2:])) as model:
        ran = kgot_lab(*forked_from, "--model", f"{model.url}#m", "--out", "fork.jsonl")
        assert ran.code == 1 and ran.again[:3] == ["kgot-lab", "resume", "fork.jsonl"], ran.err
        resumed = kgot_lab(*ran.again[1:])
    assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err


def test_a_fork_without_a_model_says_the_command_that_goes_on_with_one(kgot_lab, forked_from):
    ran = kgot_lab(*forked_from)
    assert ran.code == 0 and "no live model was given" in ran.out
    assert "--model MODEL" in ran.err and "give --model to go on" not in ran.err
    with openai_server(*replies(*PARIS)) as model:
        resumed = kgot_lab(*[f"{model.url}#m" if word == "MODEL" else word for word in ran.again[1:]])
    assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err


# --- extractions ---


def test_a_document_in_the_middle_is_gone_on_with(kgot_lab, here):
    (here / "my papers" / "ada.md").write_text(
        "# Ada\n\nAda was born in London. Ada knew Babbage. Ada wrote notes.\n"
    )
    facts = [
        "Ada | born in | London",
        "Ada | knew | Babbage",
        "Ada | wrote | notes",
        "Charles Babbage | designed | Analytical Engine",
    ]
    with openai_server(*replies(*facts)) as model:
        words = ["extract", "my papers", "--model", f"{model.url}#m", "--preset", "local"]
        assert kgot_lab(*words, "--max-calls", "2").code == 1
        resumed = kgot_lab(*words)
        assert resumed.code == 0 and len(model.bodies) == 4, resumed.err
    assert len(read_graph("graph.jsonl").edges) == 4


# --- graphs that outlive a run ---


SPARQL_WRITE = {"statements": ["INSERT DATA { :Ada_Lovelace :born_in :London }"]}
SPARQL_READ = {"choice": "RETRIEVE", "text": "SELECT ?place WHERE { :Ada_Lovelace :born_in ?place }"}
SPARQL_REST = [
    SPARQL_WRITE,
    *[SPARQL_READ] * 3,
    {"needed": False},
    {"answer": "London"},
    {"answer": "London"},
]
SEARCH_AGAIN = {"calls": [{"tool": "search", "arguments": {"query": "Charles Babbage"}}]}
SPARQL_MORE = {"statements": ["INSERT DATA { :Ada_Lovelace :knew :Charles_Babbage }"]}
GRAPH = PropertyGraph.of([Node("Eve"), Node("Paris")], [Edge("Eve", "lives_in", "Paris")])


def on_server(oxigraph, namespace, *more):
    return [
        *"--store sparql_server --at".split(),
        oxigraph.query_url,
        "--namespace",
        namespace,
        "--trace",
        "run.jsonl",
        *more,
    ]


def test_a_run_that_began_with_a_file_goes_on_in_the_namespace_it_was_told(kgot_lab, here, oxigraph_server):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    before = kgot_lab(
        "namespaces", oxigraph_server.query_url
    ).out.splitlines()  # other tests leave theirs on the server
    with openai_server(*replies(*FIRST, *SPARQL_REST)) as model:
        told = on_server(
            oxigraph_server, "wanted2", "--tool", "search", "--graph", "graph.jsonl", "--max-calls", "6"
        )
        assert kgot_lab(*asking(model, *told)).code == 1
        resumed = kgot_lab("resume", "run.jsonl", "--max-calls", "50")
    assert resumed.code == 0, resumed.err
    assert "Answer: London" in resumed.out, resumed.err
    assert "the graph grows in the namespace wanted2" in resumed.err, resumed.err
    listed = "\n".join(
        line
        for line in kgot_lab("namespaces", oxigraph_server.query_url).out.splitlines()
        if line not in before
    )
    assert "wanted2" in listed and "run-" not in listed


def test_a_kill_after_the_first_write_before_its_line_resumes_on_a_server_and_in_a_log(
    kgot_lab, here, oxigraph_server
):
    for place in (
        on_server(oxigraph_server, "mine"),
        ["--store", "in_memory", "--at", "graph.log", "--trace", "run.jsonl"],
    ):
        rest = SPARQL_REST if "sparql_server" in place else REST
        with openai_server(*replies(*FIRST, *rest)) as model:
            assert kgot_lab(*asking(model, "--tool", "search", *place)).code == 0
            lines = Path("run.jsonl").read_text().splitlines(keepends=True)
            first = next(number for number, line in enumerate(lines) if '"event":"Wrote"' in line)
            Path("run.jsonl").write_text("".join(lines[:first]))
        with openai_server(*replies(*rest[1:])) as model:
            resumed = kgot_lab("resume", "run.jsonl", "--model", f"{model.url}#m")
        assert resumed.code == 0 and "Answer: London" in resumed.out, resumed.err
        Path("run.jsonl").unlink()


def test_a_namespace_that_holds_something_else_is_refused_with_options_that_resume_has(
    kgot_lab, here, oxigraph_server
):
    with openai_server(*replies(*FIRST, *SPARQL_REST)) as model:
        assert (
            kgot_lab(
                *asking(model, "--tool", "search", *on_server(oxigraph_server, "another", "--max-calls", "6"))
            ).code
            == 1
        )
        with open_store("sparql_server", at=oxigraph_server.query_url, namespace="another") as store:
            store.apply(store.graph().diff(GRAPH))
        ran = kgot_lab("resume", "run.jsonl", "--max-calls", "50")
        assert ran.code == 1 and "--namespace NEW goes on with the run elsewhere" in ran.err, ran.err
        assert "--keep" not in ran.err and "--wipe" not in ran.err
        assert kgot_lab("resume", "run.jsonl", "--max-calls", "50", "--namespace", "third").code == 0


def test_a_run_whose_namespace_another_command_writes_to_says_so_in_the_end(kgot_lab, here, oxigraph_server):
    def beside(_):
        with open_store("sparql_server", at=oxigraph_server.query_url, namespace="shared") as store:
            store.apply(PropertyGraph.of().diff(GRAPH))
        return replies(SPARQL_REST[-1])[0]

    with openai_server(*replies(*FIRST, *SPARQL_REST[:-1]), beside) as model:
        ran = kgot_lab(*asking(model, "--tool", "search", *on_server(oxigraph_server, "shared")))
    assert ran.code == 0 and "shared holds something else than this run wrote" in ran.err, ran.err


def test_a_run_between_whose_writes_another_command_wrote_still_ends_with_its_answer_its_page_and_its_graph(
    kgot_lab, here, oxigraph_server
):
    def beside(_):
        with open_store("sparql_server", at=oxigraph_server.query_url, namespace="both") as store:
            store.apply(PropertyGraph.of().diff(PropertyGraph.of((Node("Ada Lovelace"), Node("London")))))
        return replies(SPARQL_REST[0])[0]

    outputs = ("--html", "page.html", "--save-graph", "learnt.jsonl", "--snapshots", "snaps")
    with openai_server(*replies(*FIRST), beside, *replies(*SPARQL_REST[1:])) as model:
        ran = kgot_lab(*asking(model, "--tool", "search", *on_server(oxigraph_server, "both", *outputs)))
    number = first_inconsistent_write(load_run("run.jsonl").events)
    apart = f"another command wrote into its namespace while it ran: its writes do not follow one another from event {number}"
    assert number is not None and ran.code == 0 and "Answer: London" in ran.out, ran.err
    assert f"note: both holds something else than this run wrote: {apart}" in ran.err
    assert f"the page shows the graph of this run up to event {number}" in ran.err
    assert "does not fit" not in ran.err
    assert "London" in Path("page.html").read_text() and len(read_graph("learnt.jsonl").edges) == 1
    Path("page.html").unlink()
    Path("learnt.jsonl").unlink()
    resumed = kgot_lab("resume", "run.jsonl", "--html", "page.html")
    assert resumed.code == 0 and Path("page.html").exists() and not read_graph("learnt.jsonl").edges, (
        resumed.err
    )
    assert kgot_lab("show", "run.jsonl", "--html", "page.html").code == 0
    exported = kgot_lab("export", "run.jsonl", "--out", "graph.html")
    assert exported.code == 1 and apart in exported.err, exported.err
    doctor = kgot_lab("doctor", "run.jsonl")
    assert doctor.code == 0 and f"from event {number}" in doctor.out


def test_a_run_whose_namespace_was_deleted_under_it_and_that_was_stopped_is_not_said_to_go_on(
    kgot_lab, here, oxigraph_server
):
    def deleted(_):
        delete_namespace(oxigraph_server.query_url, namespace="gone")
        return replies(INSERT)[0]

    with openai_server(
        *replies(*FIRST, SPARQL_REST[0]), deleted, *replies(*FIRST[1:3], SEARCH_AGAIN, SPARQL_MORE)
    ) as model:
        ran = kgot_lab(
            *asking(model, "--tool", "search", *on_server(oxigraph_server, "gone", "--max-calls", "10"))
        )
    assert ran.code == 1 and first_inconsistent_write(load_run("run.jsonl").events) is not None, ran.err
    assert "Everything so far is in run.jsonl." in ran.err and "Go on with" not in ran.err
    resumed = kgot_lab("resume", "run.jsonl", "--max-calls", "50")
    assert resumed.code == 1 and "run.jsonl cannot be resumed, for another command wrote" in resumed.err, (
        resumed.err
    )
    assert "--namespace NEW" not in resumed.err and "Go on with" not in resumed.err


def test_a_run_alone_in_its_store_is_told_nothing(kgot_lab, server, oxigraph_server):
    assert "something else" not in kgot_lab(*asking(server, "--store", "in_memory", "--at", "graph.log")).err
    with openai_server(*replies(*FIRST, *SPARQL_REST)) as model:
        assert (
            "something else"
            not in kgot_lab(*asking(model, "--tool", "search", *on_server(oxigraph_server, "alone"))).err
        )


def test_a_run_killed_before_its_graph_was_saved_saves_it_when_it_is_resumed(kgot_lab, server):
    assert kgot_lab(*asking(server, "--save-graph", "learnt.jsonl", "--trace", "run.jsonl")).code == 0
    saved = Path("learnt.jsonl").read_bytes()
    Path("learnt.jsonl").unlink()
    resumed = kgot_lab("resume", "run.jsonl")
    assert resumed.code == 0
    assert Path("learnt.jsonl").read_bytes() == saved
    assert "written to learnt.jsonl" in resumed.err
    Path("learnt.jsonl").write_bytes(Path("learnt.jsonl").read_bytes().replace(b"London", b"Paris"))
    kgot_lab("resume", "run.jsonl")
    assert b"Paris" in Path("learnt.jsonl").read_bytes()  # what is there is somebody's


def test_a_resumed_run_goes_on_with_its_snapshots_and_makes_missing_ones_again(kgot_lab, here):
    more = {"statements": ['add("Charles Babbage", "designed", "Analytical Engine")']}
    search = {"calls": [{"tool": "search", "arguments": {"query": "Charles Babbage"}}]}
    with openai_server(*replies(*FIRST, WRITE, *FIRST[:3], search, more, *REST[1:])) as model:
        told = ["--tool", "search", "--snapshots", "snaps", "--trace", "run.jsonl", "--max-calls", "7"]
        assert kgot_lab(*asking(model, *told)).code == 1
        Path("snaps/snapshot_1.json").unlink()
        assert kgot_lab("resume", "run.jsonl", "--max-calls", "50").code == 0
    assert [len(read_graph(f"snaps/snapshot_{number}.json").edges) for number in (1, 2)] == [1, 2]


def test_a_saved_graph_and_that_of_a_trace_say_where_their_facts_came_from(kgot_lab, server):
    assert kgot_lab(*asking(server, "--save-graph", "learnt.jsonl", "--trace", "run.jsonl")).code == 0
    for graph in ("learnt.jsonl", "run.jsonl"):
        with openai_server(*replies({"statement": "result = facts()"}, *REST[4:])) as model:
            ran = kgot_lab(
                "ask", QUESTION, "--graph", graph, "--model", f"{model.url}#m", "--set", "forced_reads=1"
            )
        assert "“Ada Lovelace was born in London in 1815.” [ada.md#1]" in ran.out, ran.out


def test_an_extracted_graph_says_where_its_facts_came_from(kgot_lab, here):
    with openai_server(*replies(WRITE, {"statements": []})) as model:
        assert kgot_lab("extract", "my papers", "--model", f"{model.url}#m").code == 0
    assert [edge.properties["source"] for edge in read_graph("graph.jsonl").edges] == ["ada.md#1"]


# --- files ---


def test_nothing_is_written_over_the_graph_that_a_run_began_with(kgot_lab, here, server):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    told = ["--graph", "graph.jsonl", "--trace", "run.jsonl"]
    ran = kgot_lab(*asking(server, *told, "--save-graph", "run.start.jsonl"))
    assert ran.code == 1 and "are the same file, run.start.jsonl" in ran.err and not server.bodies, ran.err
    assert kgot_lab(*asking(server, *told)).code == 0
    for words in (
        ["fork", "run.jsonl", returned_in("run.jsonl"), "--change", "x", "--out", "run.start.jsonl"],
        ["extract", "my papers", *f"--model {server.url}#m --trace x.jsonl --out x.start.jsonl".split()],
        ["export", "run.jsonl", "--out", "run.start.jsonl"],
    ):
        ran = kgot_lab(*words)
        assert ran.code == 1 and "are the same file" in ran.err, ran.err
    assert read_graph("run.start.jsonl") == GRAPH


def test_a_trace_without_the_graph_it_began_with_is_not_taken_for_a_snapshot(kgot_lab, here, server):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    assert kgot_lab(*asking(server, "--graph", "graph.jsonl", "--trace", "run.jsonl")).code == 0
    Path("run.start.jsonl").unlink()
    ran = kgot_lab("export", "run.jsonl", "--out", "page.html")
    assert ran.code == 1 and "began with a graph, and run.start.jsonl does not hold it" in ran.err, ran.err
    assert kgot_lab("export", "graph.jsonl", "--out", "page.html").code == 0


def test_the_trace_of_a_baseline_has_no_loop_to_walk_again(kgot_lab, here):
    save_run(zero_shot(Question("1", QUESTION, "London"), Scripted(["London"])), "base.jsonl")
    for words in (["verify"], ["fork", "--list"], ["fork", "--change", "x"], ["resume"]):
        ran = kgot_lab(words[0], "base.jsonl", *words[1:])
        assert ran.code == 1, ran.err
        assert "is the trace of a baseline (zero-shot); there is no loop to walk again" in ran.err, ran.err


def test_a_filled_namespace_is_refused_with_options_that_go_together(kgot_lab, here, oxigraph_server):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    with open_store("sparql_server", at=oxigraph_server.query_url, namespace="filled") as store:
        store.apply(store.graph().diff(GRAPH))
    with openai_server(*replies(*FIRST, *SPARQL_REST)) as model:
        told = ["--tool", "search", *on_server(oxigraph_server, "filled", "--graph", "graph.jsonl")]
        ran = kgot_lab(*asking(model, *told))
        assert (
            ran.code == 1 and "and no other graph (keep=True, --keep)" in ran.err and "--wipe" in ran.err
        ), ran.err
        ran = kgot_lab(*asking(model, *told, "--keep"))
        assert ran.code == 1 and "leave one out" in ran.err and not model.bodies, ran.err


def test_a_graph_is_saved_over_the_one_the_run_began_with_and_over_no_other(kgot_lab, here):
    write_snapshot(GRAPH, "graph.jsonl", variant="networkx")
    write_snapshot(GRAPH, "another.jsonl", variant="networkx")
    with openai_server(*replies(*FIRST, *REST)) as model:
        ran = kgot_lab(*asking(model, "--graph", "graph.jsonl", "--save-graph", "graph.jsonl"))
    assert ran.code == 0 and len(read_graph("graph.jsonl").edges) == 2, ran.err
    with openai_server(*replies(*FIRST, *REST)) as model:
        ran = kgot_lab(*asking(model, "--save-graph", "another.jsonl"))
        assert ran.code == 1 and "--save-graph another.jsonl is there" in ran.err and not model.bodies, (
            ran.err
        )
    assert read_graph("another.jsonl") == GRAPH
