"""What a query is embedded with: the static embedder, unless stored vectors say that another one made them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgot_lab.embedding.api import API
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.embedders import all_minilm
from kgot_lab.embedding.fitted import infonce, lsa
from kgot_lab.embedding.pretrained import SentenceTransformers, WordLlama
from kgot_lab.embedding.vectors import StoredVectors, minilm
from kgot_lab.errors import BadInput, UnknownName, require
from kgot_lab.llm.presets import ENDPOINTS
from kgot_lab.types import Document

_STATIC = WordLlama  # what a query is embedded with where nobody says otherwise: on this computer, at no cost, in well under a millisecond
_MADE: Mapping[str, Callable[[], Embedder]] = {
    WordLlama.name: _STATIC,
    "wordllama": _STATIC,
    "all-MiniLM-L6-v2": all_minilm,
    "sentence-transformers/all-MiniLM-L6-v2": all_minilm,
    "sentence-transformers": SentenceTransformers,
    "all-MiniLM-L6-v2-int8": minilm,
    "minilm": minilm,
}
_LEARNT: Mapping[str, Callable[..., Embedder]] = {"lsa": lsa, "infonce": infonce}
_OF_SIZE = {
    384: "'all-MiniLM-L6-v2'",
    768: "'gemini:MODEL'",
    1536: "'openai:MODEL'",
    3072: "'openai:MODEL' or 'gemini:MODEL'",
}


def query_embedder(stored: StoredVectors | None = None, *, documents: Iterable[Document] = ()) -> Embedder:
    """What a query is embedded with: the static embedder, or the one that the stored vectors say made them.

    Vectors that say nothing are the static one's where they have as many numbers as its own; with any other
    number it is an error. "lsa" and "infonce" learnt from `documents`, and learn from them again. Raises
    BadInput where the dimension or the digest is another than the vectors', UnknownName for a maker that is
    not known, NotInstalled, and LLMError where a key is missing.
    """
    if stored is None:
        return _STATIC()
    require(
        stored,
        StoredVectors,
        "stored vectors are StoredVectors.of(ids, vectors, model=...) or StoredVectors.load(path)",
    )
    chosen = _chosen(stored, tuple(documents))
    stored.refuse_other(chosen)
    return chosen


def _chosen(stored: StoredVectors, documents: Sequence[Document]) -> Embedder:
    if not stored.model:
        if stored.dimension == _STATIC.dimension:
            return _STATIC()
        likely = f", such as {_OF_SIZE[stored.dimension]}" if stored.dimension in _OF_SIZE else ""
        raise BadInput(
            f"the stored vectors have {stored.dimension} numbers and do not say what made them, and the static embedder gives "
            f"{_STATIC.dimension}; say it: StoredVectors.of(ids, vectors, model=...){likely}"
        )
    if stored.model in _LEARNT:
        if not documents:
            raise BadInput(
                f"{stored.model} learns from documents: give those it learnt from, documents=..., or the embedder itself"
            )
        return _LEARNT[stored.model](documents, dimension=stored.dimension)
    if stored.model.partition(":")[0] in {*ENDPOINTS, "http", "https"}:
        return _served(stored)
    if stored.model == SentenceTransformers.name and stored.digest:
        return SentenceTransformers()  # of the two ways to run this model, the one whose digest it can be
    if stored.model not in _MADE:
        raise UnknownName(
            "maker of the stored vectors",
            stored.model,
            {*_MADE, *_LEARNT, *(f"{name}:MODEL" for name in ENDPOINTS)},
        )
    return _MADE[stored.model]()


def _served(stored: StoredVectors) -> Embedder:
    """A server's embedder; one that was asked for shorter vectors has another digest, and is asked for such
    again.
    """
    plain = API(stored.model)
    if not stored.digest or plain.digest == stored.digest:
        return plain
    plain.close()
    return API(stored.model, dimension=stored.dimension)
