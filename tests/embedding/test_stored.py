"""The embedder of a query: the static one, or the one that stored vectors say made them; and vectors that
cannot be compared.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support.every import every
from support.searching import Letters

from kgot_lab.embedding.api import API
from kgot_lab.embedding.embedders import embedder, query_embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, LLMError, NotInstalled, UnknownName
from kgot_lab.retrieval.dense import dense, dense_from_vectors
from kgot_lab.types import Document

TEXTS = {
    "cat": "The cat sat on the mat.",
    "bank": "The central bank raised interest rates.",
    "bread": "Bread is baked from flour and water.",
}
DOCUMENTS = tuple(Document(id, text) for id, text in TEXTS.items())


def stored_by(made, **said: str) -> StoredVectors:
    """The vectors of the texts by an embedder, saying of themselves what is asked, or all."""
    return StoredVectors.of(
        TEXTS, made.embed(list(TEXTS.values())), **(said or {"model": made.name, "digest": made.digest})
    )


@pytest.mark.parametrize("name", ["wordllama", "minilm", "lsa", "infonce"])
def test_stored_vectors_bring_the_embedder_that_they_say_made_them(name):
    pytest.importorskip(
        {"wordllama": "wordllama", "minilm": "onnxruntime", "lsa": "sklearn"}.get(name, "numpy")
    )
    made = embedder(name, **({"documents": DOCUMENTS} if name in ("lsa", "infonce") else {}))
    stored = stored_by(made)
    chosen = query_embedder(stored, documents=DOCUMENTS)
    assert (chosen.name, chosen.digest, chosen.dimension) == (made.name, made.digest, stored.dimension)
    hits = dense_from_vectors(stored, chosen).search("cat on a mat").hits
    expected = dense(DOCUMENTS, made).search("cat on a mat").hits
    assert [hit.id for hit in hits] == [hit.id for hit in expected] and hits[0].id == "cat"
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-5)


def test_vectors_that_say_nothing_are_the_static_ones_where_the_dimension_is_and_an_error_elsewhere():
    pytest.importorskip("wordllama")
    assert query_embedder(StoredVectors.of(["a"], np.ones((1, 256)))).name == "wordllama-l2-supercat-256"
    message = r"have 768 numbers and do not say what made them.*gives 256; say it.*'gemini:MODEL'"
    with pytest.raises(BadInput, match=message):
        query_embedder(StoredVectors.of(["a"], np.ones((1, 768))))
    with pytest.raises(BadInput, match="have 3 numbers and do not say what made them"):
        query_embedder(StoredVectors.of(["a"], np.ones((1, 3))))


def test_a_maker_with_another_dimension_or_digest_is_an_error_and_never_a_silent_zero():
    pytest.importorskip("wordllama")
    message = "gives 256 numbers, and the stored vectors have 384: their cosine means nothing"
    with pytest.raises(BadInput, match=message):
        query_embedder(StoredVectors.of(["a"], np.ones((1, 384)), model="wordllama"))
    message = r"come from wordllama 00000000, not from wordllama-l2-supercat-256 \w{8}"
    with pytest.raises(BadInput, match=message):
        query_embedder(StoredVectors.of(["a"], np.ones((1, 256)), model="wordllama", digest="0" * 64))
    with pytest.raises(BadInput, match="letters gives 26 numbers"):
        dense_from_vectors(StoredVectors.of(["a"], np.ones((1, 256))), Letters())


def test_learnt_vectors_ask_for_the_documents_and_notice_others():
    stored = stored_by(embedder("infonce", documents=DOCUMENTS))
    with pytest.raises(BadInput, match="infonce learns from documents: give those it learnt from"):
        query_embedder(stored)
    with pytest.raises(BadInput, match=r"come from infonce .* not from infonce"):
        query_embedder(stored, documents=[*DOCUMENTS[:2], Document("x", "Something else is said here.")])


def test_vectors_of_a_server_bring_its_client_and_ask_for_as_many_numbers_as_they_have(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "a-key-for-tests")
    shorter = API("gemini:gemini-embedding-001", dimension=768)
    stored = StoredVectors.of(["a"], np.ones((1, 768)), model=shorter.name, digest=shorter.digest)
    chosen = query_embedder(stored)
    assert (chosen.digest, chosen.dimension) == (shorter.digest, 768)
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(LLMError, match="GEMINI_API_KEY"):
        query_embedder(stored)


def test_a_maker_that_is_not_known_is_answered_with_those_that_are():
    with pytest.raises(UnknownName, match="did you mean 'all-MiniLM-L6-v2'"):
        query_embedder(StoredVectors.of(["a"], np.ones((1, 384)), model="all-MiniLM-L6"))


def test_without_its_package_the_static_embedder_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(NotInstalled, match=r"kgot_lab\[bench\]"):
        query_embedder()


# --- what is given ---


def test_what_vectors_save_is_loaded_and_so_is_an_npz_file_of_ones_own(tmp_path):
    StoredVectors.of_texts(list(TEXTS), list(TEXTS.values()), Letters()).save(tmp_path / "ours.npz")
    ours = StoredVectors.load(tmp_path / "ours.npz")
    assert (ours.ids, ours.model, ours.digest) == (tuple(TEXTS), "letters", "letters")
    assert ours.matrix == pytest.approx(Letters().embed(list(TEXTS.values())), abs=1e-3)
    np.savez(tmp_path / "own.npz", ids=np.array([7, 8]), matrix=[[3.0, 4.0], [0.0, 0.0]])
    own = StoredVectors.load(tmp_path / "own.npz")
    assert own.ids == ("7", "8") and own.matrix.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
    assert repr(own) == "<2 vectors of 2 numbers, which do not say what made them>"


@every(
    ("make", "said"),
    [
        (lambda: StoredVectors.of("ab", [[1.0], [2.0]]), "each item a text"),
        (lambda: StoredVectors.of(["a"], [[1.0], [2.0]]), "1 ids do not fit 2 vectors"),
        (lambda: StoredVectors.of(["a", "b", "a"], [[1.0]] * 3), "the id 'a' has two vectors"),
        (lambda: StoredVectors.of(["a", "b"], [[1.0], [float("nan")]]), "the first is that of row 1"),
        (lambda: StoredVectors.of(["a", "b"], [[1.0], [1.0, 2.0]]), "not all of one length"),
        (lambda: StoredVectors.load("gone.npz"), "gone.npz does not hold vectors"),
        (lambda: query_embedder([[1.0]]), "stored vectors are StoredVectors"),
        (lambda: dense_from_vectors([[1.0]], Letters()), "stored vectors are StoredVectors"),
    ],
)
def test_vectors_that_make_no_sense_are_refused_with_a_sentence(make, said):
    with pytest.raises(BadInput, match=said):
        make()
