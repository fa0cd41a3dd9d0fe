"""By what a search goes: all-MiniLM where it is installed, with vectors that are computed once."""

from __future__ import annotations

import asyncio

import pytest
from mcp.client import Client

from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.query import search_embedder
from kgot_lab.kgos.query.mcp_server import graph_server
from kgot_lab.kgos.query.question_arguments import answer_lines, ask_by_name, run_pipeline
from kgot_lab.kgos.query.search_embedder import SearchEmbedder
from kgot_lab.types import Node, full_text

pytest.importorskip("onnxruntime")
NAMES = {"n1": "prompt caching", "n2": "vector index", "n3": "spend less money"}
GRAPH = PropertyGraph.of(Node(id, ("tool",), {"name": name}) for id, name in NAMES.items())
MEANT, BY_MEANING = "make it cheaper", "searched by words and meaning (all-MiniLM-L6-v2-int8)"


def test_a_search_finds_by_meaning_what_shares_no_word_and_says_so():
    embedder, note = SearchEmbedder().select(GRAPH)
    assert ask_by_name(GRAPH, "search", query=MEANT, embedder=embedder).ids[0] == "n3" and note == BY_MEANING
    assert not ask_by_name(GRAPH, "search", query=MEANT).ids
    assert SearchEmbedder("none").select(GRAPH) == (None, "searched by words only: the embedder is none")


def test_made_up_words_are_still_not_found():
    embedder, _ = SearchEmbedder().select(GRAPH)
    found = ask_by_name(GRAPH, "search", query="zzz qqq xxx", embedder=embedder)
    assert not found.ids and any("no cosine reaches 0.3" in each for each in found.why)


def test_vectors_of_many_nodes_are_computed_once_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(search_embedder, "_UNASKED", 2)
    graph = PropertyGraph.of(Node(f"n{n}", ("tool",), {"name": f"many nodes {n}"}) for n in range(3))
    minilm().forget(list(map(full_text, graph_index(graph).documents)))
    embedder, note = SearchEmbedder().select(graph)
    assert embedder is None and "--embedder minilm computes them, once" in note
    named, note = SearchEmbedder("minilm").select(graph)
    assert ask_by_name(graph, "search", query="several vertices", embedder=named).ids and note == BY_MEANING
    assert SearchEmbedder().select(graph)[1] == BY_MEANING


def test_lines_and_pipelines_search_by_meaning_too():
    by = SearchEmbedder()
    (line,) = answer_lines(GRAPH, [f'search "{MEANT}"'], by=by)
    ((_, answer),) = run_pipeline(GRAPH, f'search "{MEANT}"', by=by)
    assert line.result.ids[0] == answer.ids[0] == "n3"


def test_an_assistant_is_told_by_what_its_search_goes():
    async def ask(by):
        async with Client(graph_server(GRAPH, embedder=by)) as client:
            given = {"question": "search", "arguments": {"query": MEANT}}
            return (await client.call_tool("ask", given)).structured_content

    found, nothing = (asyncio.run(ask(by)) for by in (None, SearchEmbedder("none")))
    assert found["rows"][0]["id"] == "n3" and found["why"][-1] == BY_MEANING
    assert not nothing["rows"] and nothing["why"][-1] == "searched by words only: the embedder is none"


def test_an_unknown_embedder_is_refused_with_those_that_are_known():
    with pytest.raises(UnknownName, match="wordllama"):
        SearchEmbedder("wordlama").select(GRAPH)
