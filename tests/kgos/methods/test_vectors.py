"""A search over vectors that somebody else made: in an SQLite file of another program, or by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from support.every import every
from support.searching import Letters

from kgot_lab.embedding.embedders import query_embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.retrievers import dense_retriever
from kgot_lab.kgos.schemas.foreign_files import read_foreign, read_vectors
from kgot_lab.types import Node

NAMES = {"n1": "prompt caching", "n2": "vector index", "n3": "zebra"}
GRAPH = PropertyGraph.of(Node(id, ("tool",), {"name": name}) for id, name in NAMES.items())
LETTERS = Letters().embed(list(NAMES.values()))


def file_of(path, rows, columns="id TEXT, name TEXT, embedding BLOB", more=""):
    with closing(sqlite3.connect(path)) as connection:
        tables = f"CREATE TABLE nodes ({columns}); CREATE TABLE edges (source, target, type)"
        connection.executescript(f"{tables}; {more}")
        connection.executemany(f"INSERT INTO nodes VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
    return path


def test_stored_vectors_give_the_retriever_of_meaning_that_embedding_the_names_would_give():
    stored = StoredVectors.of(NAMES, LETTERS)
    result = intent_search(GRAPH, "zebras", embedder=Letters(), vectors=stored)
    cosines = dict(zip(NAMES, (LETTERS @ Letters().embed(["zebras"])[0]).tolist(), strict=True))
    most = max(cosines.values())
    assert {node.id: node.embedding for node in result.nodes} == pytest.approx(
        {id: result.weights.embedding * value / most for id, value in cosines.items()}
    )
    told = next(each for each in result.trace if each.method == "embedding")
    reason = "cosine of the stored vectors, which do not say what made them; the query by letters"
    assert reason in told.reason


def test_a_node_without_a_vector_is_found_by_the_other_retrievers_and_a_vector_without_a_node_by_none():
    stored = StoredVectors.of(["n1", "other"], LETTERS[:2])
    result = intent_search(GRAPH, "zebra index caching", embedder=Letters(), vectors=stored)
    found = {node.id: node for node in result.nodes}
    assert found["n3"].text > 0 and found["n3"].embedding == 0 and found["n1"].embedding > 0
    assert "other" not in found and any("2 nodes have none" in each.reason for each in result.trace)


@every(
    "vectors, said",
    [
        (
            StoredVectors.of(["x1", "x2", "x3"], LETTERS),
            r"none of the 3 stored vectors is of a node: .* 'x1', .* 'n1'",
        ),
        (StoredVectors.of(["n1"], [[1.0, 0.0]]), "letters gives 26 numbers, and the stored vectors have 2"),
        (LETTERS, "'vectors' is a StoredVectors"),
    ],
)
def test_vectors_of_another_graph_and_of_another_embedder_are_refused(vectors, said):
    with pytest.raises(BadInput, match=said):
        intent_search(GRAPH, "zebra", embedder=Letters(), vectors=vectors)


def test_without_an_embedder_the_vectors_bring_theirs_and_an_error_where_they_do_not_fit():
    pytest.importorskip("wordllama")
    static = query_embedder()
    matrix = static.embed(list(NAMES.values()))
    stored = StoredVectors.of(NAMES, matrix, model=static.name, digest=static.digest)
    result = intent_search(GRAPH, "striped animal", vectors=stored)
    assert result.ids[0] == "n3" and result.nodes[0].method == "embedding"
    with pytest.raises(BadInput, match="do not say what made them"):
        intent_search(GRAPH, "zebra", vectors=StoredVectors.of(NAMES, LETTERS))


def test_the_retriever_of_stored_vectors_is_made_once_for_a_graph():
    given = graph_index(GRAPH), Letters(), StoredVectors.of(NAMES, LETTERS)
    assert dense_retriever(*given).stage is dense_retriever(*given).stage
    assert dense_retriever(graph_index(GRAPH), None, None) is None


def test_vectors_in_a_column_of_bytes_are_found_beside_the_graph_and_searched(tmp_path):
    named = zip(NAMES.items(), LETTERS, strict=True)
    path = file_of(tmp_path / "g.db", [(*each, row.astype("<f4").tobytes()) for each, row in named])
    stored, read = read_vectors(path), read_foreign(path)
    assert (stored.ids, stored.model) == (tuple(NAMES), "")
    assert stored.matrix == pytest.approx(LETTERS, abs=1e-6)
    assert intent_search(read.graph, "zebras", embedder=Letters(), vectors=stored).ids[0] == "n3"
    assert {path.name for path in tmp_path.iterdir()} == {"g.db"}, "nothing is written beside it"


@pytest.mark.parametrize(("bytes_each", "kind"), [(2, "<f2"), (4, "<f4"), (8, "<f8")])
def test_a_column_of_sizes_says_how_many_bytes_a_number_has(tmp_path, bytes_each, kind):
    rows = [(id, row.astype(kind).tobytes(), 26, "letters") for id, row in zip(NAMES, LETTERS, strict=True)]
    assert len(rows[0][1]) == 26 * bytes_each
    columns = "id TEXT, vector BLOB, dim INTEGER, model TEXT"
    stored = read_vectors(file_of(tmp_path / "g.db", rows, columns))
    assert stored.matrix == pytest.approx(LETTERS, abs=1e-3) and stored.model == "letters"


def test_vectors_as_json_in_a_table_of_their_own_are_found_and_rows_without_one_are_left_out(tmp_path):
    more = """CREATE TABLE node_embeddings (node_id TEXT, embedding TEXT, model_name TEXT);
        INSERT INTO node_embeddings VALUES ('n1', '[3, 4]', 'm'), ('n2', NULL, 'm'), ('n3', '[0, 2]', 'm')"""
    path = file_of(tmp_path / "g.db", [("n1", "A")], "id TEXT, name TEXT", more)
    stored = read_vectors(path)
    assert (stored.ids, stored.model) == (("n1", "n3"), "m")
    assert stored.matrix == pytest.approx(np.array([[0.6, 0.8], [0, 1]]))


@every(
    "rows, said",
    [
        ([("a", "A", b"123")], "the embedding of 'a' has 3 bytes, which are no numbers of 4 bytes"),
        ([("a", "A", "x")], "neither bytes nor a JSON list"),
        ([("a", "A", "[[1]]")], "no list of numbers"),
        ([("a", "A", None)], "no row of nodes has a vector in embedding"),
        ([("a", "A", "[1, 2]"), ("b", "B", "[1]")], r"have several sizes: 2 \(1\), 1 \(1\)"),
        ([("a", "A", "[1, 2]"), ("a", "B", "[1, 3]")], "the id 'a' has two vectors"),
        ([("a", "A", "[1, null]")], "NaN"),
    ],
)
def test_vectors_that_cannot_be_read_are_named(tmp_path_factory, rows, said):
    with pytest.raises(BadInput, match=said):
        read_vectors(file_of(tmp_path_factory.mktemp("odd") / "g.db", rows))


def test_vectors_of_several_makers_are_refused_and_a_file_without_any_says_what_was_looked_for(tmp_path):
    two = file_of(tmp_path / "two.db", [("a", "[1]", "one"), ("b", "[2]", "two")], "id, embedding, model")
    (tmp_path / "text.db").write_text("no database" * 200)
    none = file_of(tmp_path / "none.db", [("a", "A")], "id TEXT, name TEXT")
    looked = r"no table has a column of vectors \(embedding, .*It has 2 tables: edges\(source, target"
    makers = r"come from several makers: one \(1\), two \(1\)"
    for path, said in ((two, makers), (none, looked), (tmp_path / "text.db", "not a database")):
        with pytest.raises(BadInput, match=said):
            read_vectors(path)
    with pytest.raises(StoreUnavailable, match="gone"):
        read_vectors(tmp_path / "gone.db")
