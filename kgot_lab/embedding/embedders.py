"""All embedders behind one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from kgot_lab.embedding.api import API
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.fitted import infonce, lsa
from kgot_lab.embedding.pretrained import SentenceTransformers, WordLlama
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput, NotInstalled, UnknownName


def all_minilm() -> Embedder:
    """all-MiniLM-L6-v2 by sentence-transformers where that is installed, else the same model in 8 bits on
    onnxruntime.
    """
    try:
        return SentenceTransformers()
    except NotInstalled:
        return minilm()


EMBEDDERS: Mapping[str, Callable[..., Embedder]] = {
    "all-minilm": all_minilm,
    "minilm": minilm,
    "sentence-transformers": SentenceTransformers,
    "wordllama": WordLlama,
    "lsa": lsa,
    "infonce": infonce,
    "api": API,
}


def embedder(name: str = "all-minilm", **options: Any) -> Embedder:
    """An embedder by its name.

    "minilm": all-MiniLM-L6-v2 without torch. "sentence-transformers": the same model on torch. "all-minilm",
    which the notebooks show: the one of the two that is installed, torch first. "wordllama": static vectors
    of words. "lsa" and "infonce": learnt from the documents they are given, `documents=...`. "api": a server,
    `model="openai:MODEL"`. Raises UnknownName, BadInput for options it does not take, NotInstalled, LLMError
    where a key is missing.
    """
    if name not in EMBEDDERS:
        raise UnknownName("embedder", name, EMBEDDERS)
    make = EMBEDDERS[name]
    takes = inspect.signature(make)
    try:
        takes.bind(**options)
    except TypeError as error:
        raise BadInput(
            f"embedder({name!r}): {error}; it takes {', '.join(takes.parameters) or 'no options'}"
        ) from None
    return make(**options)
