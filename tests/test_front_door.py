"""The front door: every name loads, the import is light, and ask, show and open_store work on real input."""

import ast
import logging
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes

import kgot_lab as lab
from kgot_lab.api.ask import cell_progress_bar
from kgot_lab.errors import (
    BadInput,
    LLMError,
    ModelMissing,
    NotInstalled,
    ReplayMiss,
    TraceError,
    UnknownName,
)
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.model_file import MODEL_VARIABLE
from kgot_lab.llm.recorded import Recorder
from kgot_lab.loop.events import Wrote
from kgot_lab.loop.replay.replay import same_event
from kgot_lab.loop.trace import graph_after
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores.opening import resolve_location
from kgot_lab.viz.graph.view import GraphView
from kgot_lab.viz.stepping.stepper import Stepper

QUESTION = "Where was Ada Lovelace born?"


def model(**more):
    """A scripted model that finds the answer in two turns."""
    replies = {
        "vote": votes("I", "I", "I", "R"),
        "tools": call(),
        "write": WRITE,
        "parse": {"answer": "London"},
    }
    return scripted(**(replies | more))


def python(code, *options):
    """What a fresh interpreter printed."""
    return subprocess.run(
        [sys.executable, *options, *(["-c", code] if code else [])],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


# ------------------------------------------------------------------------------------------------------------


@every("name", lab.__all__)
def test_every_name_loads(name):
    found = getattr(lab, name)
    assert found is getattr(lab, name) and found.__doc__
    assert callable(found) or found.__all__, "a function, a class, or a module that lists its names"


def test_the_list_and_dir_hold_the_names_of_the_stub_file_for_editors():
    tree = ast.parse(Path(lab.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checking.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname or alias.name for node in imports for alias in node.names]
    listed = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert lab.__all__ == names and listed == sorted(names)
    assert set(dir(lab)) == {*names, "__version__"}


def test_the_import_loads_no_other_module_of_the_package():
    found = python(
        "import sys, kgot_lab; print([name for name in sys.modules if name.startswith('kgot_lab.')])"
    )
    assert found == "[]\n"


def test_a_name_that_is_not_there_names_near_ones():
    with pytest.raises(AttributeError, match="no 'opn_store'; did you mean open_store"):
        lab.opn_store  # noqa: B018
    with pytest.raises(AttributeError, match="it offers ask, find, read_documents"):
        lab.xyzzy  # noqa: B018
    with pytest.raises(ImportError):
        from kgot_lab import shw  # noqa: F401


def test_a_room_can_still_be_imported_from_the_package():
    assert python("from kgot_lab import retrieval; print(retrieval.__name__)") == "kgot_lab.retrieval\n"


# ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder with a document for each passage."""
    (tmp_path / "papers").mkdir()
    for document in ADA:
        (tmp_path / "papers" / f"{document.id}.md").write_text(f"# {document.title}\n\n{document.text}\n")
    return tmp_path / "papers"


@pytest.mark.parametrize("given", ["folder", "path as text", "documents", "generator", "tool"])
def test_a_question_is_answered_in_one_line(folder, given):
    facts = {
        "folder": folder,
        "path as text": str(folder),
        "documents": ADA,
        "generator": iter(ADA),
        "tool": lab.search(ADA, bm25(ADA)),
    }
    made = lab.ask(QUESTION, facts[given], model(), preset=FEW)
    assert isinstance(made, lab.Trace)
    assert made.answer == "London"
    assert made.finished
    assert made.question == QUESTION
    assert lab.Triple("Ada Lovelace", "born in", "London") in graph_after(made.events).to_triples()


def test_the_run_is_written_where_a_trace_is_named_and_an_error_says_so(tmp_path):
    path = tmp_path / "run.jsonl"
    made = lab.ask(QUESTION, ADA, model(), preset=FEW, trace=path)
    assert made == lab.load_run(path) and made.answer == "London"

    def broken(prompt):
        raise LLMError("the server is gone")

    with pytest.raises(LLMError, match="gone") as failed:
        lab.ask(QUESTION, ADA, model(write=broken), preset=FEW, trace=tmp_path / "stopped.jsonl")
    assert "stopped.jsonl" in failed.value.__notes__[0]
    kept = lab.load_run(tmp_path / "stopped.jsonl")
    assert kept.events and not kept.finished and kept.answer == ""


class Stops:
    """A model that stops before its call of some number, once, or is interrupted there."""

    name = "scripted"

    def __init__(self, at, error=LLMError):
        self.asked, self.at, self.error, self.model = 0, at, error, model()

    def __call__(self, prompt):
        self.asked += 1
        if self.asked == self.at:
            raise self.error("the server is gone")
        return self.model(prompt)


@pytest.mark.parametrize("documents", ["folder", "list", "tool"])
@pytest.mark.parametrize("store", ["in_memory", "graph.log", "given"])
def test_the_same_call_goes_on_with_a_run_that_stopped_as_the_error_says(folder, tmp_path, documents, store):
    facts = {"folder": folder, "list": ADA, "tool": lab.search(ADA, bm25(ADA))}[documents]
    with lab.open_store() as opened:
        where = {"in_memory": "in_memory", "graph.log": tmp_path / "graph.log", "given": opened}[store]
        whole, stops = Stops(0), Stops(8)

        def call():
            return lab.ask(QUESTION, facts, stops, preset=FEW, store=where, trace=tmp_path / "run.jsonl")

        with pytest.raises(LLMError, match="gone") as failed:
            call()
        assert failed.value.__notes__ == [
            f"Everything so far is in {tmp_path / 'run.jsonl'}; the same call goes on with it."
        ]
        kept = lab.load_run(tmp_path / "run.jsonl").events
        assert any(isinstance(event, Wrote) for event in kept)
        assert call().answer == "London"
        lab.ask(QUESTION, facts, whole, preset=FEW)
        assert stops.asked == whole.asked + 1
        assert lab.load_run(tmp_path / "run.jsonl").events[: len(kept)] == kept
        assert lab.verify(lab.load_run(tmp_path / "run.jsonl")) is None


def test_a_trace_of_something_else_is_refused_untouched_and_without_a_way_to_go_on(tmp_path):
    path = tmp_path / "run.jsonl"
    lab.ask(QUESTION, ADA, model(), preset=FEW, trace=path)
    (tmp_path / "notes.jsonl").write_text("my own words\n")
    with pytest.raises(LLMError):
        lab.ask(QUESTION, ADA, Stops(3), preset=FEW, trace=tmp_path / "stopped.jsonl")
    before = {path: path.read_text() for path in tmp_path.iterdir()}
    for question, preset, trace, why in (
        (QUESTION, FEW, path, "has its answer: load_run"),
        ("Who was he?", FEW, path, "holds the run of another question, 'Where was Ada"),
        ("Who was he?", FEW, tmp_path / "stopped.jsonl", "holds the run of another question"),
        (QUESTION, "reference", tmp_path / "stopped.jsonl", "with other limits"),
        (QUESTION, FEW, tmp_path / "notes.jsonl", "exists already and no run can go on there"),
        (QUESTION, FEW, tmp_path, "cannot read the trace"),
    ):
        with pytest.raises(TraceError, match=why) as refused:
            lab.ask(question, ADA, model(), preset=preset, trace=trace)
        assert not getattr(refused.value, "__notes__", [])
    assert before == {path: path.read_text() for path in tmp_path.iterdir()}


def test_a_store_that_is_given_stays_open_and_a_named_one_keeps_the_graph(tmp_path):
    with lab.open_store() as store:
        lab.ask(QUESTION, ADA, model(), preset=FEW, store=store)
        assert store.schema().edges == 1
        # a second question
        again = lab.ask(
            QUESTION, None, model(forced={"statement": "result = facts()"}), preset=FEW, store=store
        )
        assert again.answer == "London"
        assert lab.graph_after(again.events[:1]) == store.graph()
        assert not again.events[-1].forced
    lab.ask(QUESTION, ADA, model(), preset=FEW, store=tmp_path / "graph.log")
    with lab.open_store(tmp_path / "graph.log") as kept:
        assert kept.schema().edges == 1
    with pytest.raises(BadInput, match="already holds a graph"):
        lab.ask(QUESTION, ADA, model(), preset=FEW, store=tmp_path / "graph.log")


def test_files_that_could_not_be_read_are_told_of(folder):
    (folder / "picture.png").write_bytes(b"\x89PNG")
    with pytest.warns(UserWarning, match="picture.png"):
        assert lab.ask(QUESTION, folder, model(), preset=FEW).answer == "London"


@pytest.mark.parametrize(("level", "lines"), [("NOTSET", True), ("INFO", True), ("WARNING", False)])
def test_a_script_prints_a_line_for_each_event_but_the_answer_unless_it_is_quiet(capsys, level, lines):
    logging.getLogger("kgot_lab").setLevel(level)
    try:
        run = lab.ask(QUESTION, ADA, model(), preset=FEW)
    finally:
        logging.getLogger("kgot_lab").setLevel("NOTSET")
    out, err = capsys.readouterr()
    assert out == "" and len(re.findall(r"(?m)^ *\d+ s  \S", err)) == lines * (len(run.events) - 1)


@pytest.mark.parametrize(("pause", "lines"), [(1, []), (4, ["embedding: 256 of 300, 4 s"])])
def test_a_script_is_told_of_a_long_embedding_only(capsys, pause, lines):
    tell = cell_progress_bar("embedding", clock=iter(range(0, 1000, pause)).__next__)
    for done in (0, 256, 300):
        tell(done, 300)
    assert capsys.readouterr().err.splitlines() == lines


def test_passages_are_found_in_a_folder_and_in_documents_and_shown(folder):
    found = lab.find("Where was Ada born?", folder, k=1)
    document, same = found[0].document, lab.find("Where was Ada born?", [found[0].document])
    assert (found[0].rank, found[0].file) == (1, "d1.md") and len(found) == 1 == len(same)
    assert found[0].sentence in " ".join(document.text.split()) and found.ranking.ids == [document.id]
    assert lab.show(found).columns == ("rank", "score", "title", "file", "sentence")
    assert "<table" in found._repr_html_() and "d1.md" in repr(found)
    assert same[0].file == "d1.md" and next(iter(same)).document == document
    rows = lab.Document("t#1", "| rye (loaf): price 4\n| spelt (loaf): price 5", "prices")
    assert lab.find("What does spelt cost?", [rows])[0].sentence == "spelt (loaf): price 5"
    nuts = "| Ada Grant: remark Likes tea. Allergic to nuts\n| Tom Boyle: remark none"
    festival = "Das Fest ist am 18. Juli.\n\nÄrzte kommen um 9 Uhr. Мельницу построил Тимофей. Он умер."
    for text, question, sentence in (
        (nuts, "Who is allergic to nuts?", "Ada Grant: remark Likes tea. Allergic to nuts"),
        (festival, "Wann ist das Fest?", "Das Fest ist am 18. Juli."),
        (festival, "Wann kommen Ärzte?", "Ärzte kommen um 9 Uhr."),
        (festival, "Кто построил мельницу?", "Мельницу построил Тимофей."),
    ):
        assert lab.find(question, [lab.Document("t#1", text)])[0].sentence == sentence
    for question, options, problem in (("", {}, "blank"), ("Who?", {"k": 0}, "k must be 1")):
        with pytest.raises(lab.LabError, match=problem):
            lab.find(question, folder, **options)


def test_passages_that_share_no_word_with_the_question_are_said_to(folder):
    for question, shares in (
        ("Where was Ada born?", True),
        ("Which gluons interact?", False),
        ("Where does the tzatziki come from?", False),
        ("Was ist Quantenchromodynamik?", False),
        ("物理学", False),
        ("जापान की राजधानी क्या है", False),
        ("why", True),
    ):
        found = lab.find(question, folder)
        assert found.shares_words == shares, question
        assert ("no passage has a word of it" in repr(found)) != shares


def test_the_words_shared_with_the_question_are_those_of_the_search():
    documents = [
        lab.Document("el", "Ο ποιητής Γιώργος Σεφέρης γεννήθηκε στη Σμύρνη το 1900."),
        lab.Document("hi", "प्रेमचंद ने ग़बन उपन्यास लिखा।"),
    ]
    for question in ("ΠΟΙΟΣ ΓΕΝΝΗΘΗΚΕ ΣΤΗ ΣΜΥΡΝΗ", "σμυρνη", "ποιητη", "गबन"):
        assert lab.find(question, documents).shares_words, question
    for question in ("Ποια είναι η πρωτεύουσα της Ιαπωνίας", "जापान की राजधानी क्या है"):
        assert not lab.find(question, documents).shares_words, question


@pytest.mark.extended
def test_in_a_notebook_one_output_of_the_cell_grows_with_the_run():
    from jupyter_client.manager import start_new_kernel

    root = Path(lab.__file__).parent.parent
    code = f"""
import sys
sys.path[:0] = [{str(root)!r}, {str(root / "tests")!r}]
import test_front_door as door
door.lab.ask(door.QUESTION, door.ADA, door.model(), preset=door.FEW).answer
"""
    manager, client = start_new_kernel(kernel_name="python3")
    heard = []
    try:
        client.execute_interactive(code, timeout=120, output_hook=heard.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert [message["content"] for message in heard if message["msg_type"] == "error"] == []
    shown = [
        message["content"]
        for message in heard
        if message["msg_type"] in ("display_data", "update_display_data")
    ]
    texts = [content["data"]["text/plain"] for content in shown]
    assert len({content["transient"]["display_id"] for content in shown}) == 1 < len(texts)
    assert [message["msg_type"] for message in heard].count("display_data") == 1
    assert QUESTION in texts[0]
    assert "working" in texts[0]
    assert "wrote " in texts[-1]
    assert texts[-1].endswith("finished")
    assert [
        message["content"]["data"]["text/plain"]
        for message in heard
        if message["msg_type"] == "execute_result"
    ] == ["'London'"]


# -----------------------------------------------------------------------------------------------------------------

TRIPLES = [lab.Triple("Ada", "born in", "London"), lab.Triple("Ada", "knows", "Charles")]


def networkx_graph():
    graph = nx.DiGraph()
    graph.add_edge("Ada", "London", relation="born in")
    graph.add_edge("Ada", "Charles", relation="knows")
    return graph


def frame(**columns):
    return pd.DataFrame(columns)


ENDS = {"type": ["born in", "knows"], "target": ["London", "Charles"]}
GRAPHS = {
    "graph": lambda: lab.PropertyGraph.from_triples(TRIPLES),
    "NetworkX": networkx_graph,
    "triples": lambda: TRIPLES,
    "generator": lambda: iter(TRIPLES),
    "tuples": lambda: [("Ada", "born in", "London"), ("Ada", "knows", "Charles")],
    "edges": lambda: [lab.Edge("Ada", "born in", "London"), lab.Edge("Ada", "knows", "Charles")],
    "frame": lambda: frame(source=["Ada", "Ada"], **ENDS),
    "near names": lambda: frame(Subject=["Ada", "Ada"], Predicate=ENDS["type"], OBJECT=ENDS["target"]),
    "from and to": lambda: pd.DataFrame(
        {"from": ["Ada", "Ada"], "relation": ENDS["type"], "to": ENDS["target"]}
    ),
}


@every("kind", GRAPHS)
def test_every_kind_of_graph_is_shown_as_the_same_graph(kind):
    view = lab.show(GRAPHS[kind](), height=300)
    assert isinstance(view, GraphView)
    assert set(view.graph.to_triples()) == set(TRIPLES)


def test_a_run_its_events_and_a_fork_of_it_are_stepped_through():
    recorded = lab.load_run(bundled_path("traces/winter_storm.jsonl"))
    assert isinstance(lab.show(recorded), Stepper) and lab.show(recorded.events).events == recorded.events
    number = next(at for at, event in enumerate(recorded.events) if type(event).__name__ == "Wrote")
    fork = lab.fork(recorded, number, "add('La Nina', 'made', 'rain')")
    shown = lab.show(fork)
    assert isinstance(shown, Stepper) and shown.events == fork.events
    assert ("La Nina", "made", "rain") in [(edge.source, edge.type, edge.target) for edge in fork.graph.edges]


def test_a_run_is_walked_again_and_verified_in_a_store_of_its_own():
    recorded = lab.load_run(bundled_path("traces/winter_storm.jsonl"))
    assert lab.solve(lab.replay(recorded)).text == recorded.answer
    assert lab.verify(recorded) is None is lab.verify(recorded.events)


# ---------------------------------------------------------------------------------------------------------------


@every(
    ("where", "kind"),
    [
        ("in_memory", "in_memory"),
        ("fused", "fused"),
        ("graph.sqlite", "sqlite"),
        ("a folder/graph.DB", "sqlite"),
        (Path("graph.log"), "in_memory"),
        ("bolt://localhost:7687", "cypher_server"),
        ("neo4j+s://host", "cypher_server"),
        ("http://localhost:7878/query", "sparql_server"),
        ("https://host/sparql", "sparql_server"),
        ("postgresql://me@host/graphs", "postgres"),
        ("postgres://host", "postgres"),
    ],
)
def test_a_name_an_address_or_a_file_means_a_kind_of_store(where, kind):
    assert resolve_location(where) == (kind, None if where == kind else where)


@pytest.mark.parametrize("kind", ["in_memory", "cypher_embedded", "sparql_embedded", "sqlite"])
def test_every_kind_that_lives_in_a_file_takes_at(tmp_path, kind):
    for _ in range(2):
        with lab.open_store(kind, at=tmp_path / "graph") as store:
            store.apply(store.graph().diff(lab.PropertyGraph.from_triples(TRIPLES)))
    assert (tmp_path / "graph").exists()


def test_an_address_opens_the_server_that_is_there(oxigraph_server, bolt_server):
    with lab.open_store(oxigraph_server.query_url, namespace="front-door") as store:
        assert type(store).__name__ == "SparqlServer" and store.schema().nodes == 0
    with lab.open_store("sparql_server", at=oxigraph_server.query_url, namespace="front-door") as store:
        assert store.schema().nodes == 0
    login = {"user": bolt_server.user, "password": bolt_server.password}
    with lab.open_store(bolt_server.uri, **login, database=bolt_server.database("frontdoor")) as store:
        assert type(store).__name__ == "CypherServer"


def test_an_unknown_store_is_told_every_way_to_name_one():
    with pytest.raises(UnknownName, match=r"'sqlit'; did you mean 'sqlite'\?.*bolt://HOST.*sparql_server"):
        lab.open_store("sqlit")


def test_without_its_file_the_local_model_says_what_to_do_and_nothing_is_fetched(monkeypatch, tmp_path):
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises((ModelMissing, NotInstalled)) as missing:
        lab.ask(QUESTION, ADA)
    assert "kgot-lab model" in str(missing.value) or "pip install" in str(missing.value)
    assert not (tmp_path / "cache").exists()


@pytest.mark.extended
def test_a_run_that_goes_on_with_recorded_replies_takes_the_next_ones_and_says_when_there_are_none(tmp_path):
    whole = lab.ask(QUESTION, ADA, model(), preset=FEW, trace=tmp_path / "whole.jsonl")
    with pytest.raises(LLMError):
        lab.ask(QUESTION, ADA, Stops(6), preset=FEW, trace=tmp_path / "run.jsonl")
    short = lab.connect(f"recorded:{tmp_path / 'run.jsonl'}")
    with pytest.raises(ReplayMiss) as missing:
        lab.ask(QUESTION, ADA, short, preset=FEW, trace=tmp_path / "run.jsonl")
    assert "the same call with a model that can answer goes on with it" in missing.value.__notes__[0]
    recording = lab.connect(f"recorded:{tmp_path / 'whole.jsonl'}")
    on = lab.ask(QUESTION, ADA, recording, preset=FEW, trace=tmp_path / "run.jsonl")
    assert all(map(same_event, on.events, whole.events)) and len(on.events) == len(whole.events)


def test_an_interrupted_run_and_one_without_an_event_go_on_too(tmp_path):
    stops = Stops(1, KeyboardInterrupt)
    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt) as stopped:
        lab.ask(QUESTION, ADA, stops, preset=FEW, trace=path)
    assert "the same call goes on with it" in stopped.value.__notes__[0]
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    assert lab.ask(QUESTION, ADA, stops, preset=FEW, trace=path).answer == "London"
    assert lab.load_run(path).finished


@pytest.mark.extended
def test_the_same_recorded_model_answers_as_often_as_it_is_asked(tmp_path):
    first = lab.ask(
        QUESTION,
        ADA,
        Recorder(model(), tmp_path / "recording.jsonl"),
        preset=FEW,
        trace=tmp_path / "run.jsonl",
    )
    for file in ("recording.jsonl", "run.jsonl"):
        recording = lab.connect(f"recorded:{tmp_path / file}")
        for _ in range(3):
            again = lab.ask(QUESTION, ADA, recording, preset=FEW)
            assert all(map(same_event, again.events, first.events)) and len(again.events) == len(first.events)
