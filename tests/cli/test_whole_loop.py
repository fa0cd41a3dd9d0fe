"""The command line on the whole loop: a graph that is there, limits, a page of YAML, models in a file, forks,
snapshots, namespaces.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from support.answering_server import answering_server
from support.command_line import ASK, FIRST, QUESTION, REST, asking, replies
from support.openai_server import openai_server

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.loop.events import Started, ToolReturned
from kgot_lab.loop.trace import load_run
from kgot_lab.stores import open_store
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Edge, Node

pytestmark = pytest.mark.usefixtures("here")

GRAPH = PropertyGraph.of([Node("Ada Lovelace"), Node("London")], [Edge("Ada Lovelace", "born in", "London")])
READ = [{"statement": "result = facts()"}, *REST[4:]]  # what is asked where nothing can be fetched


@pytest.fixture
def graph(here):
    """A graph in a file."""
    write_snapshot(GRAPH, here / "graph.jsonl", variant="networkx")
    return "graph.jsonl"


def begun(path):
    return next(event for event in load_run(path).events if isinstance(event, Started))


# --- a graph that is there ---


def test_a_graph_in_a_file_is_asked_without_documents_and_stays_as_it_is(kgot_lab, graph):
    before = Path(graph).read_bytes()
    with openai_server(*replies(*READ)) as model:
        ran = kgot_lab(
            "ask",
            QUESTION,
            "--graph",
            graph,
            *f"--model {model.url}#m --set forced_reads=1 --trace run.jsonl".split(),
        )
    assert ran.code == 0 and "Answer: London" in ran.out and "begins with a graph of 2 nodes" in ran.out, (
        ran.err
    )
    assert Path(graph).read_bytes() == before and begun("run.jsonl").start == GRAPH
    assert kgot_lab("verify", "run.jsonl").out.startswith(
        f"{len(load_run('run.jsonl').events)} events, all identical"
    )


def test_the_preset_paths_gets_the_search_alone_and_a_second_question_reads_what_the_first_one_kept(
    kgot_lab, here
):
    with answering_server(lambda prompt: "London") as server:
        ran = kgot_lab(
            *asking(server, "--preset", "paths", "--save-graph", "learnt.jsonl", "--trace", "first.jsonl")
        )
        assert ran.code == 0 and "Answer: London" in ran.out and "not offered" not in ran.err, ran.err
        assert list(begun("first.jsonl").tools) == ["search"]
        again = kgot_lab(
            *asking(server, "--preset", "paths", "--graph", "learnt.jsonl", "--trace", "second.jsonl")
        )
    assert again.code == 0 and "Answer: London" in again.out, again.err
    assert not [event for event in load_run("second.jsonl").events if isinstance(event, ToolReturned)]


def test_what_a_run_learns_is_kept_if_told_and_asked_again(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--save-graph", "learnt.jsonl", "--snapshots", "snaps"))
    assert ran.code == 0 and len(read_graph("learnt.jsonl").edges) == 1
    assert [edge.identity for edge in read_graph("snaps/snapshot_1.json").edges] == [
        edge.identity for edge in read_graph("learnt.jsonl").edges
    ]
    with openai_server(*replies(*READ)) as model:
        ran = kgot_lab(
            "ask", QUESTION, "--graph", "learnt.jsonl", "--model", f"{model.url}#m", "--set", "forced_reads=1"
        )
    # the sentence of the other run
    assert "Answer: London" in ran.out and "“Ada Lovelace was born in London in 1815.”" in ran.out


@pytest.mark.parametrize("kind", ["a trace", "a log", "a SQLite file", "GraphML"])
def test_a_graph_is_taken_from_any_file_that_holds_one(kgot_lab, server, here, kind):
    from kgot_lab.stores.files import write_graph

    if kind == "a trace":
        assert kgot_lab(*asking(server, "--trace", "first.jsonl")).code == 0
        name = "first.jsonl"
    elif kind == "GraphML":
        name = "graph.graphml"
        write_graph(GRAPH, name)
    else:
        name = {"a log": "graph.log", "a SQLite file": "graph.sqlite"}[kind]
        with open_store(name) as store:
            store.apply(store.graph().diff(GRAPH))
    with openai_server(*replies(*READ)) as model:
        ran = kgot_lab(
            "ask", QUESTION, "--graph", name, "--model", f"{model.url}#m", "--set", "forced_reads=1"
        )
    assert ran.code == 0 and "Answer: London" in ran.out, ran.err


@pytest.mark.parametrize("name", ["empty.log", "empty.sqlite"])
def test_an_empty_file_is_no_graph_to_begin_with_and_becomes_no_store(kgot_lab, server, name):
    Path(name).touch()
    ran = kgot_lab(*asking(server, "--graph", name))
    assert ran.code == 1 and f"{name} is empty, so it holds no graph" in ran.err and not server.bodies, (
        ran.err
    )
    assert not Path(name).stat().st_size


def test_a_stopped_run_on_a_graph_resumes(kgot_lab, graph):
    with openai_server(*replies(*READ)) as model:
        told = [
            "--graph",
            graph,
            *f"--model {model.url}#m --set forced_reads=1 --trace run.jsonl --max-calls 2".split(),
        ]
        ran = kgot_lab("ask", QUESTION, *told)
        assert ran.code == 1 and "2 of 2 calls are spent" in ran.err
        resumed = kgot_lab(*ran.again[1:], "--max-calls", "50")
        assert resumed.code == 0 and "Answer: London" in resumed.out and len(model.bodies) == len(READ)


def test_two_questions_on_one_server_have_a_namespace_each_and_a_kept_one_is_asked(kgot_lab, oxigraph_server):
    at = oxigraph_server.query_url
    write = "INSERT DATA { :Ada_Lovelace :born_in :London }"
    read = "SELECT ?place WHERE { :Ada_Lovelace :born_in ?place }"
    retrieve = {"choice": "RETRIEVE", "text": read}
    answers = [
        *FIRST,
        {"statements": [write]},
        retrieve,
        retrieve,
        retrieve,
        {"needed": False},
        {"answer": "London"},
        {"answer": "London"},
    ]
    for name in ("first", "second"):
        with openai_server(*replies(*answers)) as model:
            ran = kgot_lab(*asking(model, "--store", "sparql_server", "--at", at, "--namespace", name))
        assert ran.code == 0 and "Answer: London" in ran.out, ran.err
    listed = kgot_lab("namespaces", at).out
    assert "first" in listed and "second" in listed
    with openai_server(*replies(*FIRST)) as model:
        again = kgot_lab(*asking(model, "--store", "sparql_server", "--at", at, "--namespace", "first"))
        assert not model.bodies
    assert again.code == 1
    assert "already holds a graph" in again.err
    assert "--keep" in again.err
    assert "--wipe" in again.err
    with openai_server(*replies(*READ)) as model:
        kept = kgot_lab(
            "ask",
            QUESTION,
            "--graph",
            at,
            *f"--namespace first --model {model.url}#m --set forced_reads=1".split(),
        )
    assert kept.code == 0 and "Answer: London" in kept.out, kept.err
    assert kgot_lab("namespaces", at, "--delete", "first").code == 0
    assert "first" not in kgot_lab("namespaces", at).out


# --- limits, a page of YAML, models in a file ---


def test_limits_are_set_on_the_command_line(kgot_lab, server):
    limits = "steps=3 votes=3 repairs=1 temperature=0.2 vote_temperature=0.9 reply_tokens.vote=77"
    told = [f"--set={limit}" for limit in limits.split()]
    ran = kgot_lab(*asking(server, *told, "--trace", "run.jsonl"))
    limits = begun("run.jsonl").limits
    assert (
        limits["steps"],
        limits["votes"],
        limits["repairs"],
        limits["temperature"],
        limits["vote_temperature"],
    ) == (3, 3, 1, 0.2, 0.9), ran.err
    assert limits["reply_tokens"] == {"vote": 77} and server.bodies[0]["max_tokens"] == 77


PAGE = """
model: planner
models: models.yaml
documents: my papers
preset: reference
limits: {steps: 2, votes: 3}
budget: {calls: 40}
"""


def test_a_page_of_yaml_says_how_a_lab_asks_and_every_run_prints_it_back(kgot_lab, server):
    Path("lab.yaml").write_text(PAGE)
    Path("models.yaml").write_text(f"planner: {{model: '{server.url}#m', temperature: 0.3}}")
    ran = kgot_lab("ask", QUESTION, "--config", "lab.yaml", "--set", "steps=4", "--trace", "run.jsonl")
    assert (
        ran.code == 0 and begun("run.jsonl").limits["steps"] == 4 and begun("run.jsonl").limits["votes"] == 3
    ), ran.err
    Path("again.yaml").write_text("\n".join(line for line in ran.err.splitlines() if line.startswith("  ")))
    told = yaml.safe_load(Path("again.yaml").read_text())
    assert "  # configuration\n" in ran.err
    assert kgot_lab("ask", QUESTION, "--config", "again.yaml", "--max-calls", "1").code == 1
    assert told["model"] == "planner"
    assert told["limits"] == {"steps": 4, "votes": 3}
    assert told["budget"] == {"calls": 40}
    assert yaml.safe_load(load_run("run.jsonl").about["configuration"]) == told
    assert all(body["temperature"] == 0.3 for body in server.bodies)


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("tools: {names: 3}", "lab.yaml: tools.names: it has to be auto or all or a list\n"),
        ("budget: {calls: many}", "lab.yaml: budget.calls: it has to be a whole number\n"),
        ("budget: 3", "lab.yaml: budget: it has to be a set of fields with values\n"),
        ("budget: {dollars: -1}", "lab.yaml: budget.dollars: it has to be 0 or more\n"),
        ("modle: x", "modle: there is no such field; did you mean 'model'?"),
        ("limits: {stepz: 1}", "unknown limit 'stepz'; did you mean 'steps'?"),
        ("limits: {steps: 0}", "limits.steps must be a number, 1 or more"),
        ("- a\n- list", "is a list of fields with values"),
        ("model: [", "is not YAML"),
        ("store: {att: x}", "store.att: there is no such field; did you mean 'store.at'?"),
    ],
)
def test_a_page_that_cannot_be_used_is_refused_by_file_and_field(kgot_lab, page, says):
    Path("lab.yaml").write_text(page)
    ran = (
        kgot_lab(*ASK, "--config", "lab.yaml", "--model", "openai:m")
        if "model:" not in page
        else kgot_lab("ask", QUESTION, "--config", "lab.yaml")
    )
    assert ran.code == 1 and says in ran.err and ran.err.count("\n") <= 2, ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "gpt-4o"], "did you mean 'openai:gpt-4o'?"),
        (["--set", "steps"], "a limit is NAME=VALUE"),
        (["--set", "steps=-1"], "limits.steps must be a number, 1 or more"),
        (["--tool", "image_question", "--model", "openai:m"], "openai needs a key"),
        (["--graph", "nowhere.jsonl"], "there is no graph at nowhere.jsonl"),
        (["--graph", "bolt://127.0.0.1:1"], "name the graph with --namespace NAME"),
        (["--keep", "--wipe", "--model", "http://127.0.0.1:9/v1#m"], "kept or wiped"),
        (["--config", "nowhere.yaml"], "the configuration nowhere.yaml cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(kgot_lab, words, says):
    ran = kgot_lab(*ASK, *words)
    assert ran.code == 1 and says in ran.err and not list(Path("runs").glob("*")), ran.err


def test_keys_are_read_from_a_file_of_the_folder_and_never_printed(kgot_lab, server, monkeypatch):
    monkeypatch.setenv("KGOT_LAB_SERVER_KEY", "")  # so that it is taken away again
    monkeypatch.delenv("KGOT_LAB_SERVER_KEY")
    Path(".env").write_text("KGOT_LAB_SERVER_KEY=a-key-of-ours-12345\n")
    ran = kgot_lab(*asking(server, "--trace", "run.jsonl"))
    assert ran.code == 0 and server.headers[0]["authorization"] == "Bearer a-key-of-ours-12345"
    assert "a-key-of-ours" not in ran.out + ran.err + Path("run.jsonl").read_text()


# --- tools ---


def test_a_larger_model_is_offered_all_that_works_here_and_told_what_does_not_and_why(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--trace", "run.jsonl"))
    assert {"search", "llm_query", "python"} <= set(begun("run.jsonl").tools)
    assert "not offered here: image_question: no model that sees is given" in ran.err


def test_a_folder_of_pages_stands_in_for_the_web(kgot_lab, server, here):
    (here / "site").mkdir()
    (here / "site" / "index.html").write_text("<html><body><p>Ada</p></body></html>")
    kgot_lab(*asking(server, "--mirror", "site", "--trace", "run.jsonl"))
    assert "ask_search_agent" in begun("run.jsonl").tools


def test_one_tool_by_name_and_one_that_cannot_work(kgot_lab, server):
    assert kgot_lab(*asking(server, "--tool", "search", "--trace", "run.jsonl")).code == 0
    assert list(begun("run.jsonl").tools) == ["search"]
    ran = kgot_lab(*asking(server, "--tool", "ask_search_agent"))
    assert ran.code == 1
    assert "the tool ask_search_agent cannot work here: the web is not to be asked" in ran.err
    assert (
        "unknown tool 'serach'; did you mean 'search'?" in kgot_lab(*asking(server, "--tool", "serach")).err
    )


# --- forks and runs that go on ---


def test_a_run_is_forked_on_the_command_line_and_the_fork_verifies(kgot_lab, server):
    kgot_lab(*asking(server, "--tool", "search", "--trace", "run.jsonl"))
    at = next(i for i, event in enumerate(load_run("run.jsonl").events) if isinstance(event, ToolReturned))
    assert f"{at:5}  text" in kgot_lab("fork", "run.jsonl", "--list").out
    ran = kgot_lab(
        "fork", "run.jsonl", at, "--change", "Ada Lovelace was born in Paris.", "--documents", "my papers"
    )
    assert ran.code == 0 and "no live model was given" in ran.out and Path(f"run_fork_{at}.jsonl").exists(), (
        ran.err
    )
    assert kgot_lab("verify", f"run_fork_{at}.jsonl").code == 0
    assert "name the change of the event" in kgot_lab("fork", "run.jsonl", at).err
    assert "exists already" in kgot_lab("fork", "run.jsonl", at, "--change", "x").err


def test_a_truncated_trace_says_so(kgot_lab, server):
    kgot_lab(*asking(server, "--trace", "run.jsonl"))
    lines = Path("run.jsonl").read_text().splitlines(keepends=True)
    Path("run.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
    assert "events. kgot-lab resume run.jsonl goes on with it" in kgot_lab("show", "run.jsonl").err
    assert "stopped before its answer" in kgot_lab("verify", "run.jsonl").out


def test_a_run_whose_folder_shrank_resumes(kgot_lab, here):
    with openai_server(*replies(*FIRST, *REST)) as model:
        ran = kgot_lab(*asking(model, "--tool", "search", "--trace", "run.jsonl", "--max-calls", "5"))
        assert ran.code == 1
        (here / "my papers" / "babbage.md").unlink()
        resumed = kgot_lab(*ran.again[1:], "--max-calls", "50")
    assert resumed.code == 0 and "Answer: London" in resumed.out, resumed.err


def test_an_extraction_tells_beforehand_what_it_will_take_and_keeps_to_its_budget(kgot_lab, server):
    ran = kgot_lab(
        "extract", "my papers", "--model", f"{server.url}#m", "--max-calls", "1", "--out", "all.jsonl"
    )
    assert "estimate, for all documents: about 2 calls" in ran.err
    assert "1 of 1 calls are spent" in ran.err
    assert "--max-calls MORE" in ran.err
    assert ran.again[:3] == ["kgot-lab", "extract", "my papers"]


def test_nothing_is_wiped_before_everything_that_can_be_refused_is_refused(kgot_lab, here):
    with open_store("graph.log") as store:
        store.apply(store.graph().diff(GRAPH))
    for words in (
        ["--model", "gpt-4o"],
        ["--model", "openai:m"],
        ["--tool", "nothing", "--model", "http://127.0.0.1:1/v1#m"],
    ):
        ran = kgot_lab(*ASK, *"--store in_memory --at graph.log --wipe".split(), *words)
        assert ran.code == 1
    with open_store("graph.log") as store:
        assert store.graph() == GRAPH


def test_no_limit_in_dollars_is_taken_where_a_price_is_missing_for_any_of_the_models(
    kgot_lab, server, monkeypatch
):
    monkeypatch.setenv("KGOT_LAB_SERVER_KEY", "none")
    ran = kgot_lab(*asking(server, "--execution-model", "https://llm.example.org/v1#m", "--max-dollars", "1"))
    assert ran.code == 1 and "price: {prompt" in ran.err and not server.bodies


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--save-graph", "my papers/ada.md"], "unknown ending of a graph file '.md'"),
        (["--save-graph", "notes.json"], "holds no graph, and would be lost"),
        (["--snapshots", "my papers"], "not an empty folder"),
        (["--snapshots", "my papers/ada.md"], "not an empty folder"),
        (["--set", "steps=["], "the value of the limit steps cannot be read"),
        (["--set", "preset=local"], "the preset is no single limit"),
        (["--set", "pool=maybe"], "'pool' is True or False, not a str ('maybe')"),
        (["--set", "merge=3"], "'merge' is True or False, not 3"),
        (["--mirror", "nowhere"], "nowhere is not a folder"),
        (["--mirror", "my papers/ada.md"], "ada.md is not a folder"),
        (["--html", "/proc/page.html"], "cannot write /proc/page.html"),
        (["--save-graph", "out"], "unknown ending of a graph file 'out'"),
        (["--store", "sparql_server", "--at", "http://lab:s3cret@127.0.0.1:1/query"], "KGOT_SPARQL_TOKEN"),
    ],
)
def test_what_would_be_lost_or_means_nothing_is_refused(kgot_lab, server, words, says):
    before = Path("my papers/ada.md").read_text()
    Path("notes.json").write_text("[1]")
    ran = kgot_lab(*asking(server, *words))
    assert ran.code == 1 and says in ran.err and "s3cret" not in ran.err and "Traceback" not in ran.err, (
        ran.err
    )
    assert Path("my papers/ada.md").read_text() == before and not server.bodies


def test_a_resumed_run_is_asked_as_it_began(kgot_lab, here):
    (here / "site").mkdir()
    (here / "site" / "index.html").write_text("<html><body><p>Ada</p></body></html>")
    with openai_server(*replies(*FIRST, *REST)) as model:
        told = [*"--mirror site --save-graph learnt.jsonl --trace run.jsonl --max-calls 5".split()]
        assert kgot_lab(*asking(model, *told)).code == 1
        resumed = kgot_lab("resume", "run.jsonl", "--max-calls", "50")
        assert resumed.code == 0 and "Answer: London" in resumed.out, resumed.err
    assert len(read_graph("learnt.jsonl").edges) == 1


def test_a_small_model_that_is_given_more_than_documents_is_offered_more(kgot_lab, server, here):
    (here / "a.png").write_bytes(b"\x89PNG\r\n")
    ran = kgot_lab(
        *asking(
            server,
            *f"--preset local --vision-model {server.url}#sees --attach a.png --trace run.jsonl".split(),
        )
    )
    assert "image_question" in begun("run.jsonl").tools, ran.err


def test_an_extraction_takes_limits_and_a_page_of_yaml_and_prints_them_back(kgot_lab, here, server):
    Path("lab.yaml").write_text("preset: local\nlimits: {parses: 2, steps: 4}\ntools: {web: true}\n")
    words = [
        "extract",
        "my papers",
        *f"--config lab.yaml --set parses=1 --model {server.url}#m --trace x.jsonl".split(),
    ]
    ran = kgot_lab(*words, "--max-calls", 1)
    assert "note: kgot-lab extract does not use tools.web of the configuration" in ran.err
    assert "parses: 1" in ran.err and "steps: 4" in ran.err and "preset: local" in ran.err
    limits = begun("x.jsonl").limits
    assert (limits["parses"], limits["steps"]) == (1, 4)
    assert "parses: 1" in load_run("x.jsonl").about["configuration"]
    assert "--set parses=1" in ran.err and "--config lab.yaml" in ran.err


def test_the_graph_of_another_program_is_asked_by_the_names_of_its_nodes(kgot_lab, here):
    from kgot_lab.graph.snapshots import SOURCE_ID

    nodes = '{"type":"node","id":"0","properties":{"name":"Ada Lovelace"}}\n{"type":"node","id":"1","properties":{"name":"London"}}\n'
    (here / "neo4j.json").write_text(
        f'{nodes}{{"type":"relationship","id":"0","label":"BORN_IN","start":{{"id":"0"}},"end":{{"id":"1"}}}}\n'
    )
    with openai_server(*replies(*READ)) as model:
        told = [*f"--graph neo4j.json --model {model.url}#m --set forced_reads=1 --trace run.jsonl".split()]
        ran = kgot_lab("ask", QUESTION, *told)
    how = "JSON: 2 nodes, 1 edge; no types; names from name; relations from its form"
    note = f"note: neo4j.json: {how}; the graph of another program: 2 of 2 nodes by their names"
    assert ran.code == 0 and ran.err.count(note) == 1, ran.err
    assert begun("run.jsonl").start.node("Ada Lovelace").properties[SOURCE_ID] == "0"


@pytest.mark.parametrize(
    ("ending", "begins"), [(".graphml", b"<?xml"), (".ttl", b"@prefix"), (".json", b'{"type"')]
)
def test_a_graph_is_kept_in_the_form_of_its_ending(kgot_lab, server, ending, begins):
    from kgot_lab.stores.files import read_graph

    ran = kgot_lab(*asking(server, "--save-graph", f"learnt{ending}"))
    assert ran.code == 0 and Path(f"learnt{ending}").read_bytes().startswith(begins), ran.err
    assert {edge.identity[:3] for edge in read_graph(f"learnt{ending}").edges} == {
        ("Ada Lovelace", "born in", "London")
    }


def test_tokens_that_a_server_does_not_tell_are_no_zeros(kgot_lab, here):
    untold = [replace(answer, body={**answer.body, "usage": None}) for answer in replies(*FIRST, *REST)]
    with openai_server(*untold) as model:
        ran = kgot_lab(*asking(model))
    assert (
        ran.code == 0 and "11 model calls, tokens that the server does not tell for 11 of them" in ran.out
    ), ran.out
    assert "dollars not reported" in ran.out
    assert "$0.0000" not in ran.out
    assert ran.err.count("does not tell how many tokens") == 1


def test_an_empty_graph_is_said_to_be_empty(kgot_lab, server):
    Path("empty.jsonl").touch()
    ran = kgot_lab("ask", QUESTION, "--graph", "empty.jsonl", "--model", f"{server.url}#m")
    assert ran.code == 1 and "the graph in empty.jsonl is empty" in ran.err and not server.bodies


@pytest.mark.parametrize("ending", [".graphml", ".ttl"])
def test_a_graph_of_any_form_is_exported(kgot_lab, here, ending):
    from kgot_lab.stores.files import write_graph

    write_graph(GRAPH, f"graph{ending}")
    ran = kgot_lab("export", f"graph{ending}", "--out", "graph.html")
    assert ran.code == 0 and "Ada Lovelace" in Path("graph.html").read_text(), ran.err
