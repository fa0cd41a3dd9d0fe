"""Creation of embedders by name."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.api import API
from kgot_lab.embedding.embedder import Embedder, RowEmbedder
from kgot_lab.embedding.fitted import infonce, lsa
from kgot_lab.embedding.pretrained import MultilingualE5, SentenceTransformers, WordLlama, quiet_loading
from kgot_lab.embedding.vectors import CachedEmbedder, StoredVectors, minilm, multilingual_e5
from kgot_lab.errors import (
    BadInput,
    ModelMissing,
    NotInstalled,
    UnknownName,
    describe_value,
    error_message,
    is_out_of_memory,
    require,
    short_repr,
)
from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.llm.presets import ENDPOINTS
from kgot_lab.types import Document


def all_minilm() -> Embedder:
    """Load all-MiniLM-L6-v2 with sentence-transformers if installed, else in 8 bits with onnxruntime."""
    try:
        return SentenceTransformers()
    except NotInstalled:
        return minilm()


EMBEDDERS: Mapping[str, Callable[..., Embedder]] = {
    "all-minilm": all_minilm,
    "minilm": minilm,
    "sentence-transformers": SentenceTransformers,
    "multilingual-e5": multilingual_e5,
    "wordllama": WordLlama,
    "lsa": lsa,
    "infonce": infonce,
    "api": API,
}


def embedder(name: Any = "all-minilm", /, **options: Any) -> Embedder:
    """Create an embedder by its name, or from a SentenceTransformer or a function.

    "minilm": all-MiniLM-L6-v2 without torch. "sentence-transformers": the same model on torch. "all-minilm",
    which the notebooks use: whichever of the two is installed, torch first. "multilingual-e5": a hundred languages,
    without torch. "wordllama": static word vectors.
    "lsa" and "infonce": fitted to `documents=...`. "api": a server, `model="openai:MODEL"`. A function from a list
    of texts to rows of numbers is cached on disk only under a name of its own, `name=...`. Raises
    UnknownName for an unknown name, BadInput for an unknown option, NotInstalled for a missing package, and
    LLMError if a key is missing.
    """
    if isinstance(name, str) and name not in EMBEDDERS:
        kind, _, model = name.partition(":")
        advice = (
            f"A model is an option: embedder({kind!r}, model={model or 'openai:MODEL'!r})"
            if ":" in name
            else ""
        )
        raise UnknownName("embedder", name, EMBEDDERS, advice=advice)
    make = EMBEDDERS[name] if isinstance(name, str) else partial(as_embedder, name)
    takes = inspect.signature(make)
    try:
        takes.bind(**options)
    except TypeError as error:
        problem = f"embedder({short_repr(name)}): {error}"
        raise BadInput(f"{problem}; it takes {', '.join(takes.parameters) or 'no options'}") from None
    return make(**options)


# Embedders by the name in a command, and any model of sentence-transformers.

_MODEL, _SERVER = "sentence-transformers", "api"
_FITTED: Mapping[str, Callable[..., Embedder]] = {"lsa": lsa, "infonce": infonce}
_CACHED = {"minilm": minilm, "multilingual-e5": multilingual_e5}
_PLAIN = {name: EMBEDDERS[name] for name in ("all-minilm", _MODEL, "wordllama")}
_HUB_TIMEOUT = 10.0  # timeout of the hub, in seconds


def embedder_by_name(name: str, *, progress: Callable[[int, int], object] | None = None) -> Embedder:
    """Create an embedder by its name in `kgot-lab bench --embedder`, with slow ones cached for the user.

    "minilm", "multilingual-e5", "wordllama", "all-minilm", "sentence-transformers". "sentence-transformers:MODEL" takes a name
    on huggingface.co or a folder, which may also be given alone. "api:SERVER:MODEL" or "SERVER:MODEL" are as
    in API. `progress(done, total)` counts the texts that are computed. Raises UnknownName for an unknown
    name, BadInput for "lsa" and "infonce", which are fitted to documents, NotInstalled for a missing package,
    ModelMissing if a model cannot be loaded, and LLMError if a key is missing.
    """
    require(name, str, "an embedder is given by its name, such as 'wordllama', or is an embedder itself")
    kind, _, rest = name.partition(":")
    if name in _FITTED:
        own = f"the benchmark measures it as a system of its own, {name!r}"
        problem = f"{name} learns from the documents of one data set"
        raise BadInput(f"{problem}, so it is no embedder for all systems on all data; {own}")
    if name in _CACHED:
        return _CACHED[name](progress=progress)
    if kind == _SERVER or (rest and kind in {*ENDPOINTS, "http", "https"}):
        return CachedEmbedder(API(_server_model(name)), progress=progress)
    if name in _PLAIN:
        made = _PLAIN[name]()
        return CachedEmbedder(made, progress=progress) if isinstance(made, SentenceTransformers) else made
    if (kind == _MODEL and rest) or (name and Path(name).is_dir()):
        return CachedEmbedder(SentenceModel(rest if kind == _MODEL else name), progress=progress)
    servers = (f"{_SERVER}:openai:MODEL", f"{_SERVER}:http://HOST:PORT/v1#MODEL")
    known = [*_CACHED, *_PLAIN, f"{_MODEL}:MODEL_OR_FOLDER", *servers]
    raise UnknownName("embedder", name, known, meant=f"{_MODEL}:{name}" if "/" in name else "")


def _server_model(name: str) -> str:
    model = name.removeprefix(_SERVER).removeprefix(":")
    if not model:
        problem = "the embedder 'api' needs a server and a model"
        raise BadInput(f"{problem}: api:openai:text-embedding-3-small, or api:http://HOST:PORT/v1#MODEL")
    return model


class SentenceModel(RowEmbedder):
    """A sentence-transformers model, or its name on huggingface.co or a local folder, which is loaded on the CPU.

    A name is looked up in the cache of huggingface_hub, then downloaded. Queries and passages are embedded
    alike, without the instructions that some models have for them, and truncated to the model's maximum
    length. Code that comes with a model is not run. Raises NotInstalled for a missing package, and
    ModelMissing for an unknown model or one that cannot be downloaded.
    """

    def __init__(self, model: Any, *, batch: int = 32, name: str = "") -> None:
        if find_spec("sentence_transformers") is None:
            raise NotInstalled("torch", "sentence-transformers")
        if isinstance(model, str):
            folder = Path(model)
            name = name or (folder.resolve().name if folder.is_dir() else model)
        self.name = " ".join(name.replace(";", " ").split())
        self._model, self._batch = _load_model(model, self.name) if isinstance(model, str) else model, batch
        # before the first text, which changes settings of some tokenizers
        self.digest = _model_digest(self._model, is_used=self._model is model)
        self.embed(["dimension"])

    def _encode(self, texts: list[str]) -> Any:
        return self._model.encode(texts, batch_size=self._batch, show_progress_bar=False)

    def __repr__(self) -> str:
        return f"<{self.name} by sentence-transformers, {self.dimension} dimensions>"


class FunctionEmbedder(RowEmbedder):
    """An embedder that is a function from a list of texts to rows of numbers, which is called once at first.

    Its digest is that of its name and of the vector of one word, or another for each object without a given name.
    """

    def __init__(self, function: Callable[[list[str]], object], name: str = "") -> None:
        self.name, self._function = name or getattr(function, "__name__", type(function).__name__), function
        vector = self.embed(["dimension"])[0]
        identity = f"{name}\0{[round(float(number), 3) + 0.0 for number in vector]}" if name else uuid4().hex
        self.digest = hashlib.sha256(f"function\0{identity}".encode()).hexdigest()

    def _encode(self, texts: list[str]) -> Any:
        return run_awaitable(self._function(texts))


@check_arguments
def as_embedder(model: Any, *, name: str = "") -> Embedder:
    """Return an embedder as it is, and a SentenceTransformer or a function as an embedder.

    A SentenceTransformer is known by its weights, a function, or an object with `encode` or `embed_documents`, by its
    `name`. Without that its vectors are not cached on disk. Raises BadInput for anything else.
    """
    if all(hasattr(model, part) for part in ("digest", "dimension", "embed")) and not isinstance(model, type):
        return model  # type: ignore[no-any-return]
    encode = getattr(model, "encode", None) or getattr(model, "embed_documents", None)
    if isinstance(model, type) or not callable(encode or model):
        expected = "an embedder is given by its name, or is a SentenceTransformer, a function from a list of texts to rows of numbers"
        expected = f"{expected}, what has embed_documents, or what embedder(…) gives"
        raise BadInput(f"{expected}, not {describe_value(model)}")
    if hasattr(model, "state_dict") and hasattr(model, "tokenizer"):
        card = getattr(getattr(model, "model_card_data", None), "base_model", None)
        return CachedEmbedder(SentenceModel(model, name=name or card or type(model).__name__))
    made = FunctionEmbedder(encode or model, name)
    if encode and not name:
        made.name = type(model).__name__
    return CachedEmbedder(made) if name else made


def _load_model(model: str, name: str) -> Any:
    """Load a model from a folder, from the cache, or from the hub, in this order."""
    from sentence_transformers import SentenceTransformer

    folder = Path(model).is_dir()
    with quiet_loading():
        try:
            return SentenceTransformer(model, device="cpu", local_files_only=True)
        except Exception as error:  # any parser error has the same remedy
            if is_out_of_memory(error):
                raise
            if folder:
                why = f"{type(error).__name__}: {error_message(error)[:160]}"
                reason = f"the folder {name!r} holds no model that sentence-transformers can load"
                raise ModelMissing(f"{reason} ({why})") from error
        try:
            from huggingface_hub import HfApi

            HfApi().model_info(model, timeout=_HUB_TIMEOUT)  # fail fast without a network
            return SentenceTransformer(model, device="cpu")
        except Exception as error:
            if is_out_of_memory(error):
                raise
            problem = "is neither a folder nor in the cache of this computer"
            remedy = "check the name, fetch it where there is a network, or name its folder"
            problem = f"{problem}, and cannot be had from huggingface.co ({type(error).__name__})"
            raise ModelMissing(f"the model {name!r} {problem}; {remedy}") from error


def _model_digest(model: Any, *, is_used: bool) -> str:
    """Return the SHA-256 of the weights, the vocabulary and the settings of a model.

    Of a model that is used already, without what its tokenizer keeps of the last text.
    """
    import torch

    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    modules: list[object] = [
        (type(part).__name__, getattr(part, "get_config_dict", dict)()) for part in model
    ]
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    words = tokenizer.to_str() if tokenizer else repr(model.tokenizer)
    if is_used and tokenizer:
        words = {
            part: value for part, value in json.loads(words).items() if part not in {"truncation", "padding"}
        }
    settings = [modules, model.max_seq_length, model.prompts, model.default_prompt_name, words]
    settings += [model.truncate_dim] if getattr(model, "truncate_dim", None) else []
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


# The embedder for queries: the static one, unless stored vectors record another.

_STATIC = WordLlama  # the default embedder of queries: local, free, and well under a millisecond
_MAKERS: Mapping[str, Callable[[], Embedder]] = {
    WordLlama.name: _STATIC,
    "wordllama": _STATIC,
    "all-MiniLM-L6-v2": all_minilm,
    "sentence-transformers/all-MiniLM-L6-v2": all_minilm,
    "sentence-transformers": SentenceTransformers,
    "all-MiniLM-L6-v2-int8": minilm,
    "minilm": minilm,
    MultilingualE5.name: multilingual_e5,
}
_LIKELY_MAKERS = {
    384: "'all-MiniLM-L6-v2'",
    768: "'gemini:MODEL'",
    1536: "'openai:MODEL'",
    3072: "'openai:MODEL' or 'gemini:MODEL'",
}


def query_embedder(stored: StoredVectors | None = None, *, documents: Iterable[Document] = ()) -> Embedder:
    """Return the embedder for queries: the one that made the stored vectors, or the static one.

    Vectors that record no maker are taken as the static embedder's if their dimension matches. Any other
    dimension is an error. "lsa" and "infonce" are fitted to `documents` again. Raises BadInput if the
    dimension or the digest differs from that of the vectors, UnknownName for an unknown maker, NotInstalled
    for a missing package, and LLMError if a key is missing.
    """
    if stored is None:
        return _STATIC()
    expected = "stored vectors are StoredVectors.of(ids, vectors, model=...) or StoredVectors.load(path)"
    require(stored, StoredVectors, expected)
    chosen = _recorded_embedder(stored, tuple(documents))
    stored.require_embedder(chosen)
    return chosen


def _recorded_embedder(stored: StoredVectors, documents: Sequence[Document]) -> Embedder:
    if not stored.model:
        if stored.dimension == _STATIC.dimension:
            return _STATIC()
        likely = f", such as {_LIKELY_MAKERS[stored.dimension]}" if stored.dimension in _LIKELY_MAKERS else ""
        raise BadInput(
            f"the stored vectors have {stored.dimension} numbers and do not say what made them, and the static embedder gives "
            f"{_STATIC.dimension}; say it: StoredVectors.of(ids, vectors, model=...){likely}"
        )
    if stored.model in _FITTED:
        if not documents:
            problem = f"{stored.model} learns from documents"
            raise BadInput(f"{problem}: give those it learnt from, documents=..., or the embedder itself")
        return _FITTED[stored.model](documents, dimension=stored.dimension)
    if stored.model.partition(":")[0] in {*ENDPOINTS, "http", "https"}:
        return _server_embedder(stored)
    if stored.model == SentenceTransformers.name and stored.digest:
        return SentenceTransformers()  # the implementation of this model with a matching digest
    if stored.model not in _MAKERS:
        known = {*_MAKERS, *_FITTED, *(f"{name}:MODEL" for name in ENDPOINTS)}
        raise UnknownName("maker of the stored vectors", stored.model, known)
    return _MAKERS[stored.model]()


def _server_embedder(stored: StoredVectors) -> Embedder:
    """Create the server embedder of stored vectors.

    A different digest means that shorter vectors were requested, so they are requested again.
    """
    plain = API(stored.model)
    if not stored.digest or plain.digest == stored.digest:
        return plain
    plain.close()
    return API(stored.model, dimension=stored.dimension)
