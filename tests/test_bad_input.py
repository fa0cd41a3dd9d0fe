"""Bad input to the front door and to what it returns: each case is refused with one clear sentence, and none
is taken quietly.
"""

import json
import math
import pickle
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pyoxigraph
import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes

import kgot_lab as lab
from kgot_lab import PropertyGraph, open_store, show
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import delta_edges
from kgot_lab.analogy.skeletons import Skeletons, make_skeletons
from kgot_lab.cli.configuration import read_configuration
from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.briefing import Holdings, Wishes, briefings
from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.errors import BadInput, QueryFailed, TraceError
from kgot_lab.evaluation.runs import timed_search
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.methods.search.results import search_context
from kgot_lab.kgos.query.questions import QUESTIONS
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.approval import Proposal, decide
from kgot_lab.loop.events import Asked
from kgot_lab.loop.limits import forecast, preset
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.user_memory import Memory
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.fusion import Weights, hybrid, rrf, strongest, weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.sandbox.sparql.rdf import RDF
from kgot_lab.stores.files import read_named_graph
from kgot_lab.stores.files.triples import elements_of_quads
from kgot_lab.stores.opening import empty_store
from kgot_lab.types import Message
from kgot_lab.viz.explorer.explorer import Retrievers
from kgot_lab.viz.graph.svg import svg

LONGEST = 560  # characters of a message; the longest names all limits
HUGE = "x" * 1_000_000
NAN = float("nan")
QUESTION = "Where was Ada Lovelace born?"
WORDS = bm25(ADA)
QUERY = lab.Query("?")
NUMBERED = lab.PropertyGraph.from_triples([("0", "to", "1")])
GRAPH = lab.PropertyGraph.from_triples([("Ada", "knows", "Charles")])
RUN = lab.load_run(bundled_path("traces/winter_storm.jsonl"))
SKELETONS = Skeletons({"a text": "a skeleton"}, "by hand")
REPLY = next(number for number, event in enumerate(RUN.events) if isinstance(event, Asked))
KINDS = ("in_memory", "sqlite", "sparql_embedded", "fused")
SOME = ["Ada", "Byron", "London"]
SAME = {"source": ["Ada"], "target": ["London"]}


def model():
    """A scripted model that would answer."""
    return scripted(vote=votes("I", "I", "I", "R"), tools=call(), write=WRITE, parse={"answer": "London"})


class Uneven:
    """An embedder whose vectors of a query are shorter than those of documents, or as many as one says."""

    name, digest, dimension = "uneven", "0", 3

    def __init__(self, *shapes: tuple[int, ...]):
        self._shapes = list(shapes)

    def embed(self, texts: Any) -> Any:
        return np.ones(self._shapes.pop(0), np.float32)


def vectors(*shapes: tuple[int, ...]) -> Any:
    """A search by such vectors, asked once."""
    return dense(ADA, Uneven(*shapes)).search("Ada")


class Partial:
    """An embedder that has only some of its parts."""

    def __init__(self, *parts: str):
        for part in parts:
            setattr(self, part, part)


def compared(embedder: Any, **more: Any) -> object:
    """Two texts with skeletons, compared."""
    return lab.compare_texts("a text", "a text", SKELETONS, embedder, **more)


def giving(ranking: lab.Ranking) -> lab.Ranking:
    """The search of a stage that gives this ranking."""
    return lab.Stage("mine", lambda _: ranking).search("?")


def opened(kind: str) -> Any:
    """An empty store of a kind."""
    return lab.open_store(kind, **({"at": "graph.sqlite"} if kind == "sqlite" else {}))


class Case(NamedTuple):
    what: str
    act: Callable[[], object]
    says: str  # a word of the message


def cases(name: str, *given: tuple[str, Callable[[], object], str]) -> list[Case]:
    """The cases of one function: what is wrong, the call, and a word of the message."""
    return [Case(f"{name}: {what}", act, says) for what, act, says in given]


def ask(*arguments: Any, **options: Any) -> object:
    return lab.ask(QUESTION, *arguments, **options)


def think(*arguments: Any) -> object:
    return lab.think(QUESTION, model(), *arguments)


def file(name: str, text: str) -> Path:
    """A file in the folder where the tests of this module run."""
    Path(name).write_text(text)
    return Path(name)


UTF_16_TRACE = '{"trace": 1}\n'.encode("utf-16")


def binary(name: str, data: bytes) -> Path:
    """A file of bytes in the folder where the tests of this module run."""
    Path(name).write_bytes(data)
    return Path(name)


def told_in_parts(text: Any) -> None:
    """Tell a memory a message that has one part."""
    with lab.open_memory(embedder=None) as memory:
        memory.add([{"role": "user", "content": [{"type": "text", "text": text}]}])


def judged() -> lab.Dataset:
    """A data set of two questions."""
    qrels = {id: {document.id: 1} for id, document in zip(("q1", "q2"), ADA, strict=False)}
    return lab.Dataset("mine", tuple(ADA), (lab.Query("Ada", "q1"), lab.Query("London", "q2")), qrels)


def recorded(question: str = QUESTION) -> Path:
    """The trace of a run on file, cut after its third event."""
    return file(
        "cut.jsonl", "\n".join(bundled_path("traces/winter_storm.jsonl").read_text().split("\n")[:4]) + "\n"
    )


def applied(kind: str, diff: Any) -> None:
    """A diff given to an empty store of a kind."""
    opened(kind).apply(diff)


def added(*nodes: Any) -> lab.Diff:
    """The diff that adds these."""
    return lab.Diff(added_nodes=nodes)


RDF_LEVELS = {  # files of RDF whose middle is repeated
    "a.ttl": (":a :b ", "[ :b ", ":c", " ]", " ."),
    "b.ttl": (":a :b ", "( ", "", " )", " ."),
    "a.trig": (":g { ", "[ :b ", ":c", " ]", " . }"),
    "a.jsonld": ("", '{"@id": "http://e/a", "http://e/p": ', "1", "}", ""),
    "a.rdf": (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://e/">',
        "<rdf:Description><p>",
        "",
        "</p></rdf:Description>",
        "</rdf:RDF>",
    ),
}


def nested(name: str, depth: int) -> object:
    """A graph in a file of RDF with so many levels."""
    begin, before, middle, after, end = RDF_LEVELS[name]
    return lab.read_graph(file(name, begin + before * depth + middle + after * depth + end))


def shares_held(shares: str) -> None:
    """A position of so many shares."""
    with open_accounts("accounts.db") as accounts:
        accounts.set_profile("ann")
        accounts.set_position("ann", "AAPL", shares, 0)


TO_A_STORE = [  # what, done to a store of some kind, is refused how
    (
        "apply a dictionary",
        lambda kind: applied(kind, {}),
        "the argument 'diff' is a Diff, not {}",
    ),
    (
        "apply texts for nodes",
        lambda kind: applied(kind, added("a")),
        "'added_nodes' is a list (each item a Node)",
    ),
    (
        "apply a number for a name",
        lambda kind: applied(kind, added(lab.Node("a", (), {1: 2}))),
        "has the name 1, which is not text",
    ),
    ("search nothing", lambda kind: opened(kind).search(None), "is a text, not None"),
    ("write nothing", lambda kind: opened(kind).write(None), "the argument 'statement' is a text, not None"),
    ("read a number", lambda kind: opened(kind).read(3), "the argument 'statement' is a text, not 3"),
]
CASES = [
    # ask, think, solve
    *cases(
        "ask",
        ("no text", lambda: lab.ask(None, ADA, model()), "'question' is a text"),
        ("an empty question", lambda: lab.ask("  ", ADA, model()), "the question is blank"),
        ("no documents", lambda: ask(None, model()), "nothing to take facts from"),
        ("an empty list", lambda: ask([], model()), "no documents"),
        ("a number for documents", lambda: ask(3, model()), "documents are"),
        ("texts for documents", lambda: ask(["Ada was born."], model()), "each document is a Document"),
        ("a function for a tool", lambda: ask(len, model()), "search tool"),
        ("duplicate ids", lambda: ask([*ADA, ADA[0]], model()), "ids must be unique"),
        ("no folder", lambda: ask("nowhere", model()), "not a folder"),
        ("an unknown model", lambda: ask(ADA, "opnai:gpt"), "did you mean 'openai'"),
        ("a number for a model", lambda: ask(ADA, 7), "a model is"),
        ("the class of a model", lambda: ask(ADA, type(model())), "a model is"),
        ("an unknown preset", lambda: ask(ADA, model(), preset="locla"), "did you mean 'local'"),
        ("a number for a preset", lambda: ask(ADA, model(), preset=3), "'preset' is a text or a Limits"),
        ("a missing file", lambda: ask(model=model(), attachments=["nothing.md"]), "not there: nothing.md"),
        (
            "one file, no list",
            lambda: ask(model=model(), attachments="notes.md"),
            "'attachments' is a list (each item a text or a path)",
        ),
        (
            "nothing for attachments",
            lambda: ask(ADA, model(), attachments=None),
            "'attachments' is a list (each item a text or a path)",
        ),
        ("a store for nothing", lambda: ask(ADA, model(), store="sqlite"), "store for a run"),
        ("a number for a store", lambda: ask(ADA, model(), store=5), "as open_store(…) gives, not 5"),
        ("a number for a trace", lambda: ask(ADA, model(), trace=5), "'trace' is a text or a path or None"),
        ("a trace that is there", lambda: ask(ADA, model(), trace=file("old.jsonl", "")), "exists already"),
    ),
    Case("ask: another preset, before a model", lambda: ask(ADA, "local", preset="fast"), "preset 'fast'"),
    Case("ask: a store that is none", lambda: ask(ADA, "local", store="neo4j"), "unknown store 'neo4j'"),
    *cases(
        "think",
        ("no store", lambda: think(None, [lab.search(ADA, WORDS)]), "open_store"),
        ("no tools", lambda: think(open_store(), []), "there is nothing to take facts from"),
        ("no list of tools", lambda: think(open_store(), 3), "'tools' is a list"),
        ("documents for tools", lambda: think(open_store(), ADA), "a function or Tool"),
        (
            "a text for a model",
            lambda: lab.think(QUESTION, "local", open_store(), [lab.search(ADA, WORDS)]),
            "connect(",
        ),
        ("a name for limits", lambda: think(open_store(), [lab.search(ADA, WORDS)], "local"), "Limits"),
    ),
    Case("solve: nothing", lambda: lab.solve(None), "'events' is a list (each item an Event)"),
    Case("solve: no events", lambda: lab.solve(iter([])), "without an answer"),
    # limits
    Case("limits: no steps", lambda: lab.Limits(steps=0), "limits.steps must be a number, 1 or more"),
    Case("limits: half a vote", lambda: lab.Limits().but(votes=2.5), "whole number"),
    Case("limits: a text", lambda: lab.Limits().but(repairs="many"), "'repairs' is a whole number"),
    Case("limits: NaN", lambda: lab.Limits().but(temperature=NAN), "is a number, not nan"),
    Case(
        "limits: a text for a temperature",
        lambda: lab.Limits().but(temperature="hot"),
        "is a number, not a str",
    ),
    Case("limits: an unknown mode", lambda: lab.Limits(writing="prose"), "operations"),
    Case(
        "limits: one of another mode",
        lambda: preset("paths").but(votes=9),
        "limits.votes is an option of modes that vote",
    ),
    Case(
        "limits: one of paths",
        lambda: preset("local").but(sure=0.5),
        "limits.sure is an option of modes that read paths",
    ),
    Case(
        "limits: options of another mode",
        lambda: replace(preset("paths"), options=preset("local").options),
        "VotingOptions",
    ),
    Case(
        "limits: another preset",
        lambda: FEW.but(preset="paths", votes=1),
        "preset(name).but(…) begins with another (reference, local, paths)",
    ),
    Case("limits: a name for them", lambda: preset("local").but(preset="mine"), "those of the preset local"),
    Case("limits: an unknown one", lambda: FEW.but(setps=3), "did you mean 'steps'"),
    *cases(
        "a name that is no argument",
        ("of a record", lambda: lab.Limits(votes=3), "Limits().but(votes=3) changes any"),
        ("of another", lambda: lab.Plan("a", primry="x"), "did you mean 'primary'"),
        ("of a function", lambda: lab.read_graph("g.csv", sep=";"), "unknown argument 'sep'"),
        (
            "of a file",
            lambda: lab.load_graph(file("g.csv", "source,target\na,b\n"), namespace="x"),
            "no server's",
        ),
        ("of nothing", lambda: lab.find("Ada"), "takes question, documents, k: missing a required"),
        ("of an embedder", lambda: lab.embedder("api:x"), "embedder('api', model='x')"),
    ),
    Case(
        "load_graph: a number for a cache",
        lambda: lab.load_graph(".", cache=5),
        "is a path or False or None, not 5",
    ),
    Case("an empty graph", PropertyGraph, "PropertyGraph.of() for an empty one"),
    Case("load_dataset: another folder", lambda: lab.load_dataset("."), "in the format of BEIR"),
    Case(
        "qrels: an unknown query",
        lambda: replace(judged(), qrels={"q9": {ADA[0].id: 1}}),
        "unknown query in the qrels 'q9'",
    ),
    # runs
    Case("load_run: nothing", lambda: lab.load_run(None), "'path' is a text or a path"),
    Case("load_run: no file", lambda: lab.load_run("nowhere.jsonl"), "nowhere.jsonl"),
    Case("load_run: a folder", lambda: lab.load_run("."), "cannot read"),
    Case("load_run: another file", lambda: lab.load_run(file("note.txt", "hello\n")), "is not"),
    Case("load_run: an empty file", lambda: lab.load_run(file("empty.jsonl", "")), "not a trace"),
    Case("again: nothing", lambda: lab.replay(None), "'run' is a Trace or a list (each item an Event)"),
    Case(
        "verify: texts", lambda: lab.verify(["one", "two"]), "'run' is a Trace or a list (each item an Event)"
    ),
    Case("verify: no events", lambda: lab.verify([]), "Started"),
    Case("verify: a number for a store", lambda: lab.verify(RUN, 3), "open_store"),
    *cases(
        "resume",
        ("no file", lambda: lab.resume("nowhere.jsonl", open_store(), lab.Resources()), "nowhere.jsonl"),
        ("no resources", lambda: lab.resume(recorded(), open_store(), None), "Resources"),
        ("no store", lambda: lab.resume(recorded(), None, lab.Resources()), "open_store"),
    ),
    Case(
        "fork: a step beyond the end",
        lambda: lab.fork(RUN, len(RUN.events), "x"),
        f"events 0 to {len(RUN.events) - 1}",
    ),
    Case("fork: a step before the beginning", lambda: lab.fork(RUN, -1, "x"), "no event -1"),
    Case("fork: a text for a step", lambda: lab.fork(RUN, "first", "x"), "'at' is a whole number"),
    Case("fork: an event that cannot change", lambda: lab.fork(RUN, 0, "x"), "is a Started"),
    Case("fork: a change that is no text", lambda: lab.fork(RUN, 1, None), "is a text, not None"),
    Case("fork: no events", lambda: lab.fork([], 0, "x"), "no events"),
    Case(
        "fork: a path",
        lambda: lab.fork("run.jsonl", 0, "x"),
        "'run' is a Trace or a list (each item an Event)",
    ),
    Case("fork: a model for resources", lambda: lab.fork(RUN, 1, "x", None, model()), "Resources"),
    # models, documents, tools
    *cases(
        "connect",
        ("nothing", lambda: lab.connect(None), "a model is named by a text"),
        ("empty", lambda: lab.connect(""), "unknown model"),
        ("only the kind", lambda: lab.connect("openai:"), "openai:MODEL"),
        ("an unknown option", lambda: lab.connect("http://127.0.0.1:1/v1#m", wrong=1), "it knows patience"),
        ("a recording with options", lambda: lab.connect("recorded:recording", seconds=3), "it knows model"),
        ("a huge name", lambda: lab.connect(HUGE), "unknown model"),
    ),
    *cases(
        "read_documents",
        ("nothing", lambda: lab.read_documents(None), "'folder' is a text or a path"),
        ("no folder", lambda: lab.read_documents("nowhere"), "not a folder"),
        ("a file of no kind", lambda: lab.read_documents(file("one.xyz", "\0\1\2" * 9)), "binary, not text"),
        ("an empty file", lambda: lab.read_documents(file("one.md", "")), "nothing in one.md could be read"),
        ("an empty folder", lambda: (Path("bare").mkdir(), lab.read_documents("bare")), "it is empty"),
    ),
    Case("search: nothing", lambda: lab.search(None), "'documents' is a list (each item a Document)"),
    Case(
        "search: one text",
        lambda: lab.search("Ada was born."),
        "'documents' is a list (each item a Document)",
    ),
    Case("search: no documents", lambda: lab.search([]), "no documents"),
    Case("search: a text that is none", lambda: lab.search([lab.Document("d1", None)], WORDS), "is a text"),
    Case("search: no hits", lambda: lab.search(ADA, WORDS, k=0), "k must be 1"),
    Case("search: half a hit", lambda: lab.search(ADA, WORDS, k=1.5), "whole number"),
    Case(
        "search: a function for a retriever", lambda: lab.search(ADA, len), "'retriever' is a Stage or None"
    ),
    Case("python: nothing", lambda: lab.python(None), "compute"),
    Case("ask_model: nothing", lambda: lab.ask_model(None), "as connect(…) gives"),
    Case("ask_model: no tokens", lambda: lab.ask_model(model(), max_tokens=0), "max_tokens must be 1"),
    # graphs
    *cases(
        "graph",
        ("a number", lambda: PropertyGraph.of(3), "(each item a Node), not 3"),
        ("texts for nodes", lambda: PropertyGraph.of(["Ada"]), "(each item a Node)"),
        (
            "two nodes of one id",
            lambda: PropertyGraph.of([lab.Node("a"), lab.Node("a", ("B",))]),
            "two different nodes",
        ),
        ("an edge to nowhere", lambda: PropertyGraph.of((), [lab.Edge("a", "b", "c")]), "dangling='add'"),
        ("tuples for edges", lambda: PropertyGraph.of((), [("a", "b", "c")]), "(each item an Edge)"),
        ("another way with dangling", lambda: PropertyGraph.of(dangling="drop"), "refuse"),
    ),
    Case("triples: nothing", lambda: PropertyGraph.from_triples(None), "'triples' is a list"),
    Case("triples: pairs", lambda: PropertyGraph.from_triples([("a", "b")]), "three texts, not ('a', 'b')"),
    Case("triples: a number in one", lambda: PropertyGraph.from_triples([("a", "b", 3)]), "three texts"),
    Case("triples: a text", lambda: PropertyGraph.from_triples("abc"), "'triples' is a list"),
    Case("networkx: ours", lambda: PropertyGraph.from_networkx(GRAPH), "NetworkX graph, not a PropertyGraph"),
    Case("networkx: ids alike", lambda: PropertyGraph.from_networkx(nx.Graph([(1, "1")])), "same text"),
    *cases(
        "pandas",
        ("lists", lambda: PropertyGraph.from_pandas([], []), "data frame"),
        ("no columns", lambda: PropertyGraph.from_pandas(pd.DataFrame(), pd.DataFrame(SAME)), "no column id"),
    ),
    Case("node: none of that id", lambda: GRAPH.node("Adda"), "did you mean 'Ada'"),
    Case("node: a list", lambda: GRAPH.node(["Ada"]), "unknown node"),
    Case("node: a huge id", lambda: GRAPH.node(HUGE), "unknown node"),
    Case("subgraph: one id", lambda: GRAPH.subgraph("Ada"), "'ids' is a list"),
    Case("neighbourhood: back", lambda: GRAPH.neighbourhood(["Ada"], -1), "hops must be 0"),
    Case("neighbours: no direction", lambda: GRAPH.neighbours("Ada", "up"), "unknown direction"),
    Case("diff: nothing", lambda: GRAPH.diff(None), "'other' is a PropertyGraph"),
    Case("apply: nothing", lambda: GRAPH.apply(None), "is a Diff, not None"),
    Case("apply: what does not fit", lambda: GRAPH.apply(lab.Diff(removed_nodes=(lab.Node("Eve"),))), "Eve"),
    # stores
    *cases(
        "open_store",
        ("nothing", lambda: open_store(None), "named by its kind"),
        ("an unknown kind", lambda: open_store("sqllite"), "did you mean 'sqlite'"),
        ("an unknown scheme", lambda: open_store("ftp://host"), "unknown store"),
        ("a port of letters", lambda: open_store("bolt://127.0.0.1:abc"), "'cypher_server' cannot be used"),
        (
            "a port that is none",
            lambda: open_store("http://127.0.0.1:99999/q"),
            "cannot be used: Port out of range",
        ),
        (
            "an address of half a number",
            lambda: open_store("http://[::1/query"),
            "cannot be used: Invalid IPv6 URL",
        ),
        ("no host", lambda: open_store("bolt://"), "names no host: write bolt://HOST"),
    ),
    Case(
        "ask: a preset that is none",
        lambda: ask(ADA, model(), preset="nope"),
        "Known: auto, local, paths, reference",
    ),
    *cases(
        "open_store",
        ("an unknown option", lambda: open_store("in_memory", wrong=1), "it knows at, "),
        (
            "an unknown option of sqlite",
            lambda: open_store("graph.sqlite", unsafe=True),
            "it knows at, path, seconds",
        ),
        ("an unknown option of fused", lambda: open_store("fused", wrong=1), "it knows"),
        ("two places", lambda: open_store("graph.log", at="other.log"), "says itself"),
        ("two names of a place", lambda: open_store("sqlite", at="a.db", path="b.db"), "not both"),
        ("a place for none", lambda: open_store("fused", at="a.log"), "nowhere else"),
        ("a file for a server", lambda: open_store("cypher_server", at="a.log"), "an address"),
        ("a server for a file", lambda: open_store("sqlite", at="bolt://host"), "lives at a file"),
        ("a server nowhere", lambda: open_store("sparql_server"), "at=URL"),
        ("an empty place", lambda: open_store("in_memory", at=""), "is empty"),
        ("a number for a place", lambda: open_store("in_memory", at=3), "address or a file"),
        ("NaN seconds", lambda: open_store("sqlite", seconds=NAN), "at most 86,400"),
        ("a text for seconds", lambda: open_store("sqlite", seconds="5"), "must be a number"),
        ("a text for yes", lambda: open_store("in_memory", unsafe="yes"), "True or False"),
        ("another file", lambda: open_store(file("hello.log", "hello\n")), "hello.log"),
        ("another database", lambda: open_store(file("hello.sqlite", "hello\n" * 100)), "hello.sqlite"),
    ),
    *(Case(f"{kind}: {what}", partial(act, kind), says) for kind in KINDS for what, act, says in TO_A_STORE),
    # retrieval
    Case("search a stage: nothing", lambda: WORDS.search(None), "'query' is a text or a Query"),
    Case("stage % 0", lambda: WORDS % 0, "k must be 1"),
    Case("stage % a text", lambda: WORDS % "five", "whole number"),
    Case("stage >> a function", lambda: WORDS >> len, "is a Stage"),
    *cases(
        "a stage",
        ("no function", lambda: lab.Stage("b", None), "'step' is a function"),
        ("turned round", lambda: lab.Stage(len, "b"), "'name' is a text"),
        ("texts for hits", lambda: giving(lab.Ranking(QUERY, ("d0",))), "'hits' is a list (each item a Hit)"),
        (
            "nothing for a hit",
            lambda: giving(lab.Ranking(QUERY, (None,))),
            "'hits' is a list (each item a Hit)",
        ),
        (
            "a text for a score",
            lambda: giving(lab.Ranking(QUERY, (lab.Hit("d0", "1.0"),))),
            "a score is a finite number; document 'd0' has '1.0'",
        ),
    ),
    Case(
        "a ranking: no hits",
        lambda: lab.Ranking(QUERY, None),
        "'hits' is a list (each item a Hit)",
    ),
    Case(
        "a ranking: a generator of texts",
        lambda: lab.Ranking(QUERY, (hit for hit in "ab")),
        "not a generator",
    ),
    Case("a ranking: a text for a query", lambda: lab.Ranking("?", ()), "'query' is a Query"),
    *cases(
        "ranked",
        ("a list", lambda: lab.ranked(QUERY, ["d0"]), "takes a dictionary {document id: score}, not a list"),
        ("a text for a score", lambda: lab.ranked(QUERY, {"d0": "1.0"}), "document 'd0' has '1.0'"),
        ("nothing for a score", lambda: lab.ranked(QUERY, {"d0": None}), "document 'd0' has None"),
        (
            "a number for an id",
            lambda: lab.ranked(QUERY, {0: 1.0, "d1": 2.0}),
            "the id of a document is a text, not 0",
        ),
    ),
    Case(
        "bm25: no title",
        lambda: bm25([lab.Document("d0", "text", None)]),
        "the argument 'title' is a text, not None",
    ),
    Case("weighted: nothing", lambda: weighted(), "at least one pair"),
    Case("weighted: all zero", lambda: weighted((0.0, WORDS), (0, WORDS)), "above 0"),
    Case(
        "weighted: NaN", lambda: weighted((NAN, WORDS)), "a weight of weighted() must be a number, 0 or more"
    ),
    Case(
        "weighted: below zero",
        lambda: weighted((-0.1, WORDS), (1, WORDS)),
        "a weight of weighted() must be a number, 0 or more",
    ),
    Case(
        "weighted: infinity",
        lambda: weighted((float("inf"), WORDS)),
        "a weight of weighted() must be a number, 0 or more",
    ),
    Case("weighted: no pair", lambda: weighted(WORDS), "pairs (weight, stage)"),
    Case("weighted: turned round", lambda: weighted((WORDS, 0.5)), "pairs (weight, stage)"),
    Case("weighted: an unknown scale", lambda: weighted((1, WORDS), scale="rnage"), "did you mean 'range'"),
    Case("rrf: a text", lambda: rrf("bm25"), "takes stages"),
    Case("rrf: k that is NaN", lambda: rrf(WORDS, k=NAN), "must be a number, 0 or more"),
    Case("strongest: nothing", lambda: strongest(), "at least one stage"),
    Case("hybrid: an unknown preset", lambda: hybrid("defualt", text=WORDS), "did you mean 'default'"),
    Case("hybrid: no retriever", lambda: hybrid("default"), "at least one retriever"),
    Case("hybrid: a text for a retriever", lambda: hybrid("default", text="bm25"), "pairs (weight, stage)"),
    Case("vectors: a query of another length", lambda: vectors((3, 3), (1, 2)), "embed both alike"),
    Case("vectors: one too few", lambda: vectors((2, 3)), "one for each"),
    Case("vectors: no rows", lambda: vectors((3,)), "rows of a table"),
    Case("vectors: no embedder", lambda: dense(ADA, None), "as minilm() gives"),
    Case("bm25: duplicate ids", lambda: bm25([*ADA, ADA[0]]), "ids must be unique"),
    # comparing and showing
    *cases(
        "compare_texts",
        (
            "no skeletons",
            lambda: lab.compare_texts("a text", "a text", {}, Uneven()),
            "'skeletons' is a Skeletons",
        ),
        ("no embedder", lambda: lab.compare_texts("a text", "a text", SKELETONS, None), "as minilm() gives"),
        (
            "no text",
            lambda: lab.compare_texts("a text", None, SKELETONS, Uneven()),
            "'b' is a text",
        ),
        ("no skeleton", lambda: lab.compare_texts("a text", "other", SKELETONS, Uneven()), "no skeleton"),
        (
            "an embedder without a dimension",
            lambda: compared(Partial("name", "digest", "embed")),
            "which has no dimension",
        ),
        (
            "an embedder without a digest",
            lambda: compared(Partial("name", "embed", "dimension")),
            "which has no digest",
        ),
        ("the class of an embedder", lambda: compared(Uneven), "not a type"),
        (
            "a verifier that does not align",
            lambda: compared(Uneven((2, 3)), verifier=len),
            "is an object with align()",
        ),
    ),
    Case(
        "delta_edges: an embedder without a dimension",
        lambda: delta_edges(GRAPH, SKELETONS, Partial("name", "embed")),
        "which has no digest",
    ),
    Case("delta_edges: no skeletons", lambda: delta_edges(GRAPH, {}, Uneven()), "'skeletons' is a Skeletons"),
    Case("an aligner: no embedder", lambda: Aligner(Partial("name", "embed")), "which has no digest"),
    Case(
        "skeletons: a function for a maker",
        lambda: make_skeletons(["Rain falls."], lambda texts: texts, cache=False),
        "a maker is",
    ),
    *cases(
        "plot",
        ("a dictionary", lambda: lab.plot({"a": 1}), "'name' is a text"),
        ("nothing to plot", lambda: lab.plot("votes"), "plot('votes'): missing a required argument"),
        ("an unknown option", lambda: lab.plot("votes", [], size=3), "it takes "),
    ),
    Case("show: nothing", lambda: show(None), "not None"),
    Case("show: a text", lambda: show("run.jsonl"), "there is no file run.jsonl"),
    Case("show: an empty list", lambda: show([]), "empty list"),
    Case("show: a file that is not there", lambda: show("graph.graphml"), "there is no file graph.graphml"),
    Case("show: pairs", lambda: show([("Ada", "Charles")]), "three texts, not ('Ada', 'Charles')"),
    Case("show: triples with numbers", lambda: show([(1, "knows", 2)]), "three texts, not (1, 'knows', 2)"),
    Case("show: a number in a path", lambda: show(NUMBERED, highlight=[0, 1]), "node 0; did you mean '0'"),
    Case(
        "show: two columns of one name",
        lambda: show(pd.DataFrame([SOME], columns=["source", "source", "target"])),
        "two columns",
    ),
    Case(
        "show: capitals alone",
        lambda: show(pd.DataFrame([SOME], columns=["source", "Source", "target"])),
        "two columns",
    ),
    Case("show: numbers", lambda: show([1, 2, 3]), "not a list"),
    Case("show: a triple and a pair", lambda: show([("a", "b", "c"), ("a", "b")]), "three texts"),
    Case(
        "show: an event and a text",
        lambda: show([RUN.events[0], "x"]),
        "'run' is a Trace or a list (each item an Event)",
    ),
    Case("show: a run without its beginning", lambda: show(RUN.events[3:]), "Started"),
    Case("show: another table", lambda: show(pd.DataFrame({"name": ["Ada"], "age": [36]})), "has name, age"),
    Case(
        "show: an end that is missing",
        lambda: show(pd.DataFrame({"source": ["Ada", None], "target": ["London", "x"]})),
        "no source",
    ),
    Case("show: an unknown option", lambda: show(GRAPH, zoom=3), "it knows highlight"),
    Case("show: a size that names nothing", lambda: show(GRAPH, size=3), "'size' is a text"),
    Case("show: no height", lambda: show(GRAPH, height=0), "height must be 1"),
    Case("show: a path that is not there", lambda: show(GRAPH, highlight=["Ada", "Eve"]), "Eve"),
    Case("show: no hits", lambda: show(WORDS.search("Ada"), limit=0), "limit must be 1"),
    Case("stepper: nothing", lambda: lab.stepper(None), "'run' is a Trace or a list (each item an Event)"),
    Case("stepper: no events", lambda: lab.stepper([]), "no events"),
    Case("stepper: a step beyond the end", lambda: lab.stepper(RUN).fork(999, "x"), "no event 999"),
    Case("html: nothing", lambda: lab.html(None), "'what' is a Trace or a list (each item an Event) or a"),
    Case("html: a graph", lambda: lab.html(GRAPH), "'what' is a Trace or a list (each item an Event) or a"),
    *cases(
        "explore",
        ("nothing", lambda: lab.explore(None, ADA), "'retrievers' is a Retrievers or a dictionary"),
        ("an unknown retriever", lambda: lab.explore({"words": WORDS}, ADA), "unknown retriever"),
        ("a text for a retriever", lambda: lab.explore({"text": "bm25"}, ADA), "(each item a Stage)"),
        ("no retrievers", lambda: Retrievers(), "at least one retriever"),
        ("no documents", lambda: lab.explore(WORDS, []), "no documents"),
        (
            "queries alike",
            lambda: lab.explore(WORDS, ADA, queries=[lab.Query("a", "q"), lab.Query("b", "q")]),
            "occur more than once",
        ),
        ("NaN", lambda: lab.explore(WORDS, ADA).but(weights=Weights(NAN, 0, 0, 0)), "is a number, not nan"),
        ("numbers for weights", lambda: lab.explore(WORDS, ADA).but(weights=(1, 0, 0, 0)), "is a Weights"),
        (
            "all zero",
            lambda: lab.explore(WORDS, ADA).but(weights=Weights(0, 0, 0, 0)).stage,
            "All weights are 0",
        ),
        ("an unknown preset", lambda: lab.explore(WORDS, ADA).but(preset="sparce"), "did you mean 'sparse'"),
        ("too many hits", lambda: lab.explore(WORDS, ADA).but(k=10_000), "between 1 and 50"),
    ),
    Case("doctor: an unknown piece", lambda: lab.doctor("nothing"), "unknown"),
    Case("doctor: a number", lambda: lab.doctor(3), "'names' is a text"),
    # data
    Case("load_dataset: nothing", lambda: lab.load_dataset(None), "'name' is a text"),
    Case("load_dataset: a slip", lambda: lab.load_dataset("hotpotq"), "hotpotqa"),
    Case("load_dataset: a path", lambda: lab.load_dataset("../hotpotqa"), "unknown data set"),
    Case("plan: another measure", lambda: lab.Plan("bm25", primary="recall@3"), "among the measures"),
    Case("bundled: outside", lambda: bundled_path("../README.md"), "inside"),
    Case("bundled: none of that name", lambda: bundled_path("tracez"), "did you mean 'traces'"),
    Case(
        "bundled: no result of that name",
        lambda: bundled_path("benchmarks/results/pass_thru.json"),
        "look into benchmarks/results",
    ),
    Case(
        "bundled: outside the results",
        lambda: bundled_path("benchmarks/../README.md"),
        "lie inside the folder benchmarks",
    ),
]


# functions with arguments that are right, and the names of others of which none is of these types
ODD = {
    "bytes": b"bytes",
    "an object": object(),
    "an array": np.array([1.5, 2.5]),
    "NaN": NAN,
    "a million digits": 1j,
}
TABLE = Path("table.csv")
CHECKED = [
    (lab.find, (QUESTION, ADA), "question documents k"),
    (lab.read_documents, (".",), "folder"),
    (lab.read_graph, (TABLE,), "path names types relation source target encoding say"),
    (lab.connect, ("openai:gpt",), "recording models say"),
    (lab.search, (ADA, WORDS), "documents retriever k name progress"),
    (lab.ask_model, (lambda text: text,), "name max_tokens"),
    (lab.load_run, (TABLE,), "path"),
    (lab.graph_after, (RUN,), "events step"),
    (lab.replay, (RUN,), "run mode"),
    (lab.verify, (RUN,), "run compute mode"),
    (lab.fork, (RUN, 1, "x"), "run at change live"),
    (lab.recorded_fork, (RUN, RUN), "original recorded"),
    (lab.resume, (TABLE, None, lab.Resources()), "path live"),
    (lab.Resources, (), "tools compute approve mode"),
    (lab.solve, ([],), "events"),
    (lab.bundled_file, ("traces",), "name"),
    (lab.load_dataset, ("hotpotqa",), "name"),
    (lab.exercise, (1, 1), "hint within name"),
    (lab.hand_in, ("Ada",), "name folder again"),
    (lab.html, (RUN,), "what forks title"),
    (lab.stepper, (RUN,), "run forks live store height"),
    (lab.show, (GRAPH,), "color size width"),
    (lab.explore, (WORDS, ADA), "retrievers documents queries qrels systems"),
    (lab.expert, (GRAPH,), "persona settings"),
    (lab.bench, ("hotpotqa",), "data systems plan folder progress"),
    (
        lab.ask,
        (QUESTION, ADA, model()),
        "question preset trace memory tools attachments compute prompts approve parallel mode",
    ),
    (lab.Stage, ("mine", WORDS.step), "name step version inputs"),
    (lab.Ranking, (QUERY, ()), "query hits system inputs paths"),
    (lab.ranked, (QUERY, {"d": 1.0}), "query scores system inputs"),
    (lab.Triple, ("a", "b", "c"), "subject relation object confidence source_turn created_at"),
    (lab.Trace, ("run", "", ()), "run created events about"),
    (lab.Diff, (), "added_nodes removed_nodes changed_nodes added_edges removed_edges changed_edges"),
    (PropertyGraph.of, (), "nodes edges dangling"),
    (GRAPH.neighbours, ("Ada",), "id direction"),
    (GRAPH.neighbourhood, (["Ada"],), "ids hops"),
    (GRAPH.to_igraph, (), "directed"),
    (open_store().neighbours, ("Ada",), "id"),
    (open_store().search, ("Ada",), "words limit"),
    (lab.open_store, ("in_memory",), "where at seconds unsafe"),
    (lab.Limits().but, (), "steps writing reading votes temperature python_seconds merge"),
]
BIG = 10**400  # more than a float can hold
ARRAY = np.array([1, 2])
OTHER = lab.ranked(lab.Query("another"), {"d": 1.0})
FACT = lab.Triple("Ada", "born in", "London")


def raising(*_: Any) -> Any:
    """A function of a caller that has a bug."""
    raise ZeroDivisionError


def by_embedder(texts: Any, rows: Any = ((1.0, 2.0),)) -> Any:
    """Texts given to an embedder that is a function."""
    return lab.embedder(lambda texts: list(rows) * len(texts)).embed(texts)


DEEPER = [  # what raised errors of Python, or was taken without a word, below the functions of the front door
    *cases(
        "numbers",
        ("a huge weight", lambda: weighted((BIG, WORDS)), "a weight of weighted()"),
        ("a huge k", lambda: rrf(WORDS, k=BIG), "the k of rrf()"),
        ("a huge k1", lambda: bm25(ADA, k1=BIG), "the k1 of bm25()"),
        ("a huge vector", lambda: by_embedder(["a"], [[BIG]]), "what is no number"),
        ("a text for a dimension", lambda: lab.embedder("lsa", documents=ADA, dimension="2"), "dimension"),
    ),
    *cases(
        "models",
        ("texts in models", lambda: lab.connect("x", models={"x": "openai:m"}), "a ModelEntry"),
        ("a number for settings", lambda: lab.connect("ollama:x", settings=5), "'settings' is a Settings"),
        ("a number for patience", lambda: lab.connect("ollama:x", patience=5), "'patience' is a RetryPolicy"),
        ("a text for a prompt", lambda: lab.connect(lambda text: text)("text"), "'prompt' is a Prompt"),
        ("a number for replies", lambda: Scripted(5), "'replies' is a list"),
        ("a number for a message", lambda: Message("user", 5), "'text' is a text"),
    ),
    *cases(
        "callbacks",
        ("a stage", lambda: lab.Stage("mine", raising).search("Ada"), "the stage 'mine' failed on 'Ada'"),
        ("a stage given a text", lambda: WORDS("Ada"), "takes a Ranking"),
        ("an embedder", lambda: lab.embedder(raising), "the embedder 'raising' failed: ZeroDivisionError"),
        ("approve", lambda: decide(raising, Proposal("write", "x")), "approve(write) failed"),
        ("approve of nothing", lambda: lab.approve(None), "'proposal' is a Proposal"),
        (
            "a ranking of another query",
            lambda: timed_search(lab.Stage("mine", lambda _: OTHER), lab.Query("this"), 5),
            "answered 'another' in place of 'this'",
        ),
    ),
    *cases(
        "texts",
        ("a number to embed", lambda: by_embedder([5]), "(each item a text)"),
        ("bytes to embed", lambda: by_embedder(b"ab"), "(each item a text)"),
        *(
            (f"{act.__name__} of {text!r}", partial(act, text, ADA), "half a surrogate pair")
            for act in (lab.ask, lab.find)
            for text in ("a\0b", "a\ud800")
        ),
        ("think", lambda: lab.think("a\ud800", model(), open_store(), ADA), "half a surrogate pair"),
        ("a claim", lambda: Claim(lab.Triple("a\ud800", "b", "c"), "s"), "half a surrogate pair"),
    ),
    *cases(
        "memory",
        ("a number for a file", lambda: SQLiteClaims(5), "'path' is a path or a text"),
        ("a time that is none", lambda: Claim(FACT, "s", valid_from=pd.NaT), "a datetime with a time zone"),
        (
            "one fact for facts",
            lambda: Claims(SQLiteClaims()).note_answer("a", "b", FACT),
            "'facts' is a list",
        ),
        (
            "another source",
            lambda: Claims(SQLiteClaims()).retract_source("nosuch"),
            "unknown source 'nosuch'",
        ),
    ),
    *cases(
        "benches",
        ("no client", lambda: lab.bench("hotpotqa", client=5), "'client' is an object with submit"),
        ("a client for a folder", lambda: extract_folder(".", client=5), "'client' is an object with submit"),
        ("another measure", lambda: lab.bench_families(measure="nosuch"), "unknown measure 'nosuch'"),
    ),
    *cases(
        "investment",
        ("a number for a briefing", lambda: open_accounts().post(5), "'briefing' is a Briefing"),
        ("a text for wishes", lambda: Wishes(least_strength="much"), "'least_strength' is a number"),
        ("a number for a view", lambda: briefings(5, 5), "'view' is an InvestmentView"),
    ),
]
ANN, BEA = (Entity("npc", name).id for name in ("Ann", "Bea"))
NESTED = "{a: " * 3000 + "1" + "}" * 3000

QUIET = [  # what was taken without a word
    *cases(
        "a file",
        ("of models, nested", lambda: lab.connect("m", models=file("m.yaml", f"m: {NESTED}")), "too deeply"),
        ("of limits, nested", lambda: read_configuration(file("c.yaml", f"limits: {NESTED}")), "too deeply"),
        (
            "with a limit twice",
            lambda: read_configuration(file("c.yaml", "limits: {steps: 4, steps: 5}")),
            "twice",
        ),
        ("in GML, nested", lambda: lab.read_graph(file("g.gml", "graph [ " * 3000)), "too deeply"),
        (
            "of many vertices",
            lambda: lab.read_graph(file("g.net", "*Vertices 99999999999\n*Arcs\n1 2")),
            "more than can",
        ),
    ),
    *cases(
        "a value",
        ("a part without a text", lambda: told_in_parts(5), "is a text"),
        ("a text for holdings", lambda: Holdings("ada", "LNTN"), "'held' is a set"),
        (
            "an unknown standing",
            lambda: Relationship(ANN, BEA, "KNOWS", standing="maybe"),
            "unknown standing",
        ),
    ),
    *cases(
        "a path",
        ("with a NUL", lambda: lab.load_run("a\0b"), "no file can have"),
        ("with half a surrogate pair", lambda: lab.read_documents("\ud800"), "no file can have"),
        ("of a long name", lambda: show(HUGE), "no file can have"),
        ("that is blank", lambda: lab.read_graph(" "), "no file can have"),
    ),
    *cases(
        "seconds",
        *(
            (repr(s)[:20], partial(open_store, seconds=s), "at most 86,400")
            for s in (1e300, -1, True, 0, 10**400)
        ),
    ),
    *cases(
        "ranked",
        *(
            (repr(s)[:20], partial(lab.ranked, QUERY, {"d": s}), "a score is a finite number")
            for s in (NAN, math.inf, 10**400, True)
        ),
    ),
    *cases(
        "Triple",
        ("confidence 7", lambda: lab.Triple("a", "b", "c", 7), "a number from 0 to 1, not 7"),
        ("no subject", lambda: lab.Triple(None, "b", "c"), "three texts, not (None, 'b', 'c')"),
        ("a turn below 0", lambda: lab.Triple("a", "b", "c", 1, -1), "source_turn"),
    ),
    Case(
        "a stage: NaN for a score",
        lambda: giving(lab.Ranking(QUERY, (lab.Hit("d", NAN),))),
        "a score is a finite number",
    ),
    Case(
        "a ranking: a document twice",
        lambda: lab.Ranking(QUERY, (lab.Hit("d", 2), lab.Hit("d", 1))),
        "ids of a ranking occur more than once, for example 'd'",
    ),
    *cases(
        "a picture",
        *(
            (
                f"of {name} {size}"[:30],
                partial(svg, GRAPH, **{name: size}),
                name,
            )
            for name in ("width", "height")
            for size in (0, 10**9, BIG)
        ),
        ("of less than no nodes", lambda: svg(GRAPH, limit=-1), "limit must be 0 or more"),
    ),
    *cases(
        "forecast",
        *(
            (f"{calls} calls"[:30], partial(forecast, lab.Limits(), calls=calls), "calls")
            for calls in (-1, BIG)
        ),
        ("less than no steps", lambda: forecast(lab.Limits(), steps=-1), "steps must be 0"),
    ),
    *cases(
        "an array",
        ("for a cardinality", lambda: Claims(SQLiteClaims()).declare("r", ARRAY), "unknown cardinality"),
        ("for yes or no", lambda: Claims(SQLiteClaims()).graph_hash(claims=ARRAY), "True or False"),
        ("for a kind of claim", lambda: Claim(FACT, "s", kind=ARRAY), "unknown kind of claim"),
        ("for what is kept", lambda: empty_store(keep=ARRAY), "'keep' is True or False"),
        (
            "for the end of an edge",
            lambda: Editor(GRAPH, by="me").remove_edge("Ada", "knows", ARRAY),
            "'target' is a text",
        ),
    ),
    Case("a memory: no claims", lambda: Memory(None, "a"), "'claims' is a Claims"),
    Case("limits: a preset by its name alone", lambda: lab.Limits("local", 3), "take preset('local')"),
    Case(
        "explore: a grade that is a text",
        lambda: lab.explore(WORDS, ADA, queries=[lab.Query("?", "q")], qrels={"q": {"d": "1"}}),
        "a grade is",
    ),
    Case("show: a text for a path", lambda: show(GRAPH, highlight=""), "a path is a list"),
    Case("a tool: a blank name", lambda: lab.search(ADA, WORDS, name=" "), "calls a tool by its name"),
    Case("a tool: two lines", lambda: lab.search(ADA, WORDS, name="a\nb"), "calls a tool by its name"),
    Case("graph_after: a step before the first", lambda: lab.graph_after(RUN, -1), "step must be 0 or more"),
    Case(
        "properties: a number for a name", lambda: PropertyGraph.of([lab.Node("a", (), {1: 2})]), "the name 1"
    ),
    Case("read_graph: no files", lambda: lab.read_graph([]), "is empty"),
    *cases(
        "read_graph",
        ("a picture", lambda: lab.read_graph(binary("g.png", b"\x89PNG\r\n")), "is a picture"),
        ("a PDF", lambda: lab.read_graph(binary("g.csv", b"%PDF-1.4\n")), "is a PDF"),
        (
            "no files in a zip",
            lambda: lab.read_graph(binary("g.zip", b"PK\5\6" + bytes(18))),
            "a zip of no files",
        ),
        (
            "a quotation mark",
            lambda: lab.read_graph(file("g.csv", 'source,target\n"' + "a" * 150_000)),
            "more than 131,072 characters",
        ),
        ("a NUL", lambda: lab.read_graph(binary("g.csv", b"source,target\na\0b,c\n")), "line 2: a NUL"),
        ("no text", lambda: lab.read_graph(binary("g.csv", b"\x80\x04\x95\0\0K\1")), "is no text"),
        ("an empty GraphML", lambda: lab.read_graph(binary("g.graphml", b"")), "is empty"),
        ("a text for SQLite", lambda: lab.read_graph(file("g.db", "Ada met Bob.")), "a text and no SQLite"),
        ("brackets", lambda: lab.read_graph(file("g.json", "[" * 100_000)), "nested too deeply"),
        (
            "no number",
            lambda: lab.read_graph(file("g.net", "*Vertices x\n1 a\n")),
            "followed by their number",
        ),
        ("one column", lambda: lab.read_graph(file("g.csv", "a,b\n"), source="a", target="a"), "different"),
        ("an encoding", lambda: lab.read_graph(file("g.csv", "ä,b\n"), encoding="ascii"), "but UTF-8: leave"),
        ("no files in a folder", lambda: (Path("none").mkdir(), lab.read_graph("none")), "holds no file"),
        ("a UTF-16 trace", lambda: lab.read_graph(binary("t.jsonl", UTF_16_TRACE)), "a text in UTF-16"),
    ),
    *cases(
        "a folder that is not there",
        ("of a memory", lambda: lab.open_memory("no/such/m.db", embedder=None), "there is no folder no"),
        ("of a world", lambda: open_world("no/such/w.db"), "there is no folder no"),
        ("of a log", lambda: open_store("in_memory", at="no/such/g.log"), "there is no folder no"),
    ),
    Case("PropertyGraph: numbers", lambda: PropertyGraph(5, 6), "'ids' is a list"),
    Case("ask: no text", lambda: ask([lab.Document("a", " ")], model()), "no document has a text"),
    Case("recall: blank", lambda: lab.open_memory(embedder=None).recall(" "), "is blank"),
    Case(
        "held_out: unknown",
        lambda: replace(judged(), test_ids=frozenset({"q9"})).held_out,
        "held-out split 'q9'",
    ),
    Case("replay: another class for a mode", lambda: lab.replay(RUN, mode=int), "made from Mode"),
    Case("store.search: below zero", lambda: open_store().search("a", -1), "limit must be 0 or more"),
    Case("stepper: no height", lambda: lab.stepper(RUN, height=0), "height must be 1"),
    *cases(
        "a name that is none",
        ("of a preset", lambda: lab.Limits(preset="huge"), "unknown preset 'huge'"),
        ("of a mode", lambda: lab.Resources(mode="zz"), "'zz'"),
        ("of a tool", lambda: lab.search(ADA, WORDS, name="a b"), "letters, digits"),
        ("of a stage", lambda: lab.Stage("a\nb", WORDS.step), "a text on one line"),
        ("of a node, for a place", lambda: show(GRAPH, positions={"Eve": (0, 0)}), "unknown node 'Eve'"),
        ("of a label that is hidden", lambda: show(GRAPH, hidden=["Eve"]), "unknown label 'Eve'"),
        ("of a query", lambda: judged().only(["q9"]), "unknown query 'q9'"),
        ("of a query with qrels", lambda: lab.explore(WORDS, ADA, qrels={"q9": {}}), "'q9'"),
        ("of an exercise", lambda: lab.exercise(1, 1, name="a/b"), "no slash"),
    ),
    *cases(
        "a place in a picture",
        *(
            (repr(point), partial(show, GRAPH, positions={"Ada": point}), "fractions of the drawing area")
            for point in ((NAN, 0), ("x", "y"), (0, 0, 0), (1e300, 0))
        ),
    ),
    *cases(
        "half a surrogate pair or a NUL",
        *(
            (f"in {what}", act, "half a surrogate pair")
            for what, act in {
                "the title of a page": lambda: lab.html(RUN, title="a\0b"),
                "a change": lambda: lab.fork(RUN, 1, "a\ud800"),
                "documents": lambda: lab.search([lab.Document("a", "b\0")], WORDS),
                "a node": lambda: PropertyGraph.of([lab.Node("a\ud800")]),
                "a property": lambda: PropertyGraph.of([lab.Node("a", (), {"b": "\ud800"})]),
                "an edge": lambda: PropertyGraph.from_triples([("a", "b\ud800", "c")]),
            }.items()
        ),
    ),
    *cases(
        "a callback that fails",
        (
            "say",
            lambda: lab.read_graph(file("t.csv", "src,dst\n1,2\n"), say=raising),
            "'say' failed: ZeroDiv",
        ),
        ("now", lambda: lab.open_memory(now=raising, embedder=None).add("I live in Rome."), "'now' failed"),
        (
            "progress",
            lambda: lab.bench(judged(), systems={"a": WORDS}, progress=raising),
            "'progress' failed",
        ),
        ("a store", lambda: lab.stepper(RUN, store=raising).fork(REPLY, "x"), "'store' failed"),
        ("a judge", lambda: lab.exercise(1, lambda answer: "wrong"), "returns True or False"),
    ),
    *cases(
        "a file of another kind",
        ("no zip", lambda: lab.read_graph(file("graph.zip", "hello")), "is no zip"),
        ("an address", lambda: lab.read_graph("bolt://host"), "not the address"),
        ("a graph", lambda: lab.read_graph(nx.DiGraph([("a", "b")])), "'path' is a path"),
        ("one twice", lambda: lab.read_graph(["t.csv", "t.csv"]), "names a file twice"),
        ("another store's address", lambda: open_store("cypher_server", at="http://h"), "'sparql_server'"),
    ),
    *cases(
        "what is nothing",
        ("a step that was not", lambda: lab.graph_after(RUN, 99_999), "at most"),
        (
            "a query with the id of another",
            lambda: replace(judged(), queries=(lab.Query("a", "q1"), lab.Query("b", "q1"))),
            "query ids occur",
        ),
        (
            "hits from the worst",
            lambda: lab.Ranking(QUERY, (lab.Hit("a", 1.0), lab.Hit("b", 2.0))),
            "in another order than their scores",
        ),
        ("a context of a text", lambda: search_context("x"), "is a SearchResult"),
        *(
            (f"a {what} of an open memory", partial(act, Claims(SQLiteClaims())), "open it there")
            for what, act in (("pickle", pickle.dumps), ("copy", deepcopy))
        ),
        *(
            (f"{name} asked {how}", partial(each.ask, *given), "takes graph")
            for name, each in QUESTIONS.items()
            for how, given in (("of nothing", ()), ("too much", (GRAPH, *"abcdefghijkl")))
        ),
        ("a question to a text", lambda: QUESTIONS["stats"].ask("Ada"), "is asked of a PropertyGraph"),
        *(
            (f"{shares} shares", partial(shares_held, shares), "below 10^15")
            for shares in ("1e999", "nan", "-inf", "1e15")
        ),
        (
            "the time of a message, misspelt",
            lambda: lab.open_memory(embedder=None).add(
                [{"role": "user", "content": "Hi", "At": "2026-05-01T00:00Z"}]
            ),
            "is \"at\", not 'At'",
        ),
        *(
            (f"{depth} levels of {name}", partial(nested, name, depth), "nested too deeply")
            for depth in (1_001, 50_000)
            for name in RDF_LEVELS
        ),
        ("an unknown fact", lambda: Claims(SQLiteClaims()).retract_fact(FACT), "nothing was learnt of"),
        ("unknown names", lambda: Claims(SQLiteClaims()).merge("a", "b"), "no fact names"),
        ("no facts", lambda: Claims(SQLiteClaims()).note_answer("a", "b", []), "depends on one fact or more"),
        ("columns", lambda: replace(GRAPH, sources=GRAPH.sources + 9), "no columns of a graph"),
        ("a list", lambda: lab.expert([]), "is empty"),
        ("a run of another language", lambda: lab.replay(RUN, open_store("sqlite")), "takes SQL"),
    ),
]


@every(("function", "right", "names"), CHECKED, ids=lambda function, *_: str(function))
@pytest.mark.usefixtures("elsewhere")
def test_an_argument_of_another_type_is_refused_whatever_it_is(function, right, names):
    file("table.csv", "source,target\na,b\n")
    places = [*signature(function).parameters]
    for name in names.split():
        for what, value in ODD.items():
            given = [*right]
            options = {} if name in places[: len(given)] else {name: value}
            if not options:
                given[places.index(name)] = value
            with pytest.raises(BadInput) as refused:
                function(*given, **options)
            message = str(refused.value)
            assert len(message) < LONGEST and "\n" not in message, (name, what, message)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of one's own, so that a case may name files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@every("case", [*CASES, *DEEPER, *QUIET], ids=lambda case: case.what)
@pytest.mark.usefixtures("elsewhere")
def test_bad_input_is_refused_with_one_clear_sentence(case):
    with pytest.raises(lab.LabError) as refused:
        case.act()
    message = str(refused.value)
    assert case.says in message
    assert isinstance(refused.value, BadInput | TraceError) or "failed" in message
    assert 10 < len(message) < LONGEST and "\n" not in message
    assert not any(
        word in message for word in ("Traceback", "TypeError", "AttributeError", "NoneType", "object at 0x")
    )


def test_a_statement_that_is_none_and_a_value_of_another_datatype_are_refused():
    with pytest.raises(QueryFailed, match="there is no statement"):
        open_store().write(" ")
    with pytest.raises(QueryFailed, match=r"'x' is no value of <http.*integer>"):
        opened("sparql_embedded").write("INSERT DATA { :a :b 'x'^^xsd:integer }")


def test_a_language_which_no_text_has_is_refused():
    store = opened("sparql_embedded")
    for act, statement in (
        (store.write, 'INSERT DATA { :a :name "Ada"@en }'),
        (store.write, 'INSERT { :a :b ?n } WHERE { BIND(STRLANG("x", "en") AS ?n) }'),
        (store.read, 'SELECT ?s { ?s :name "Ada"@en }'),
        (store.read, 'SELECT ?s { ?s :name ?n FILTER(LANG(?n) = "en") }'),
        (store.read, 'SELECT ?s { ?s :name ?n FILTER(langMatches(LANG(?n), "en")) }'),
    ):
        with pytest.raises(QueryFailed, match="texts have no language here"):
            act(statement)


@pytest.mark.usefixtures("elsewhere")
def test_a_text_that_its_name_calls_a_picture_is_read_with_a_remark():
    assert "a text, not what .png says" in repr(
        lab.read_documents(file("one.png", "Ada was born in London."))
    )


@pytest.mark.usefixtures("elsewhere")
def test_what_is_read_only_in_part_or_as_one_is_told():
    file("half.txt", "").write_bytes("\ufeffAda met \ud800 Bob.".encode("utf-16-le", "surrogatepass"))
    assert "read as utf-16; 1 characters were replaced" in repr(lab.read_documents("half.txt"))
    for nodes, said in (
        ([{"id": 1}, {"id": "1"}], "an id that is a number here and a text there is read as one"),
        (
            [{"id": "a", "b": 1}, {"id": "a", "c": 1}],
            "described twice is read as one, with the fields of both",
        ),
    ):
        assert said in read_named_graph(file("graph.json", json.dumps({"nodes": nodes, "links": []}))).summary
    key = '<key id="{}" for="node" attr.name="age" attr.type="string"/>'
    data = '<node id="a"><data key="d0">1</data><data key="{}">2</data></node>'
    graphml = '<graphml>{}<graph edgedefault="directed">{}<node id="b"/><edge source="a" target="b"/></graph></graphml>'
    for keys in ("d0", "d1"):
        text = graphml.format(key.format("d0") + key.format("d1"), data.format(keys))
        assert (
            "left out: 1 value beside the first of 'age'" in read_named_graph(file("g.graphml", text)).summary
        )
    linked = '{"@context": {"name": "http://e/n"}, "@id": "http://e/a", "name": "Ada", "age": 3, "http://e/k": {"@id": "http://e/b"}}'
    assert "'age', which no context defines" in read_named_graph(file("g.jsonld", linked)).summary
    with pytest.warns(match="is no text \\('image_url'\\)"), lab.open_memory(embedder=None) as memory:
        memory.add([{"role": "user", "content": [{"type": "image_url"}]}])
    assert "says what to find" in repr(lab.find("the of", ADA))
    with pytest.warns(match="has 251 sentences, of which 200 were compared by meaning"):
        assert "apples" in lab.find("apples", [lab.Document("a", "apples\t" * 71_500)])[0].sentence
    assert "its trace was cut short, after 3 events" in lab.show(lab.load_run(recorded())).picture.alt


@pytest.mark.usefixtures("elsewhere")
def test_numbers_that_json_cannot_hold_are_counted_in_every_form():
    for name, text in {
        "g.csv": "source,target,weight\na,b,nan\nb,c,inf\nc,d,1.5\n",
        "g.txt": "1 2 nan\n2 3 inf\n3 4 1.5\n",
        "g.net": "*Vertices 2\n1 a\n2 b\n*Arcs\n1 2 nan\n1 2 inf\n1 2 1.5\n",
        "g.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 2 nan\n2 1 inf\n2 2 1.5\n",
    }.items():
        found = read_named_graph(file(name, text))
        assert "left out: 2 " in found.note and {"weight": 1.5} in [e.properties for e in found.graph.edges]
    names = read_named_graph(file("g.csv", "id,name,type\n1,Nan,person\n2,Inf,person\n")).graph
    assert {node.id for node in names.nodes} == {"Nan", "Inf"}


@pytest.mark.usefixtures("elsewhere")
def test_a_trace_without_checksums_says_that_a_cut_would_not_show():
    text = bundled_path("traces/winter_storm.jsonl").read_text()
    run = lab.load_run(file("old.jsonl", re.sub(r',"check":"\w+"}$', "}", text, flags=re.MULTILINE)))
    assert "no checksums" in repr(run) and run == RUN and "no checksums" not in repr(RUN)
    with pytest.warns(match="lines cut out of it would not show"):
        assert lab.verify(run) is None


def test_blank_nodes_that_look_alike_are_numbered():
    text = f"@prefix : <http://e/> .\n:a :b ({' :c' * 300}) ."
    assert len(elements_of_quads([*pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)]).nodes) == 303


def test_an_empty_path_is_told():
    assert "The path: it is empty." in svg(GRAPH, highlight=[]).alt


def test_the_table_has_cases_for_every_kind_of_wrong_input():
    assert len({case.what for case in CASES}) == len(CASES) >= 60


class Unshown:
    """A value whose text is an error."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def test_a_value_that_has_no_text_is_refused_by_its_type():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    for value in (Unshown(), [Unshown()], deep, 10**5_000):
        with pytest.raises(BadInput):
            lab.find(value, value)
        with pytest.raises(BadInput):
            lab.Limits(steps=value)
