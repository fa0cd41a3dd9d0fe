"""Ask a language model: one protocol, `llm(Prompt) -> Reply`, for models on this computer, on servers, on tape and in scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, UnknownName, require, require_options
from kgot_lab.types import LLM


def connect(spec: str, *, tape: str | Path | None = None, **options: Any) -> LLM:
    """The model that a short text names.

    "local" or "local:FILE.gguf", with an engine before the file if it matters ("local:xllamacpp", "local:llama-cpp-python:FILE.gguf");
    "openai:MODEL", "anthropic:MODEL", "gemini:MODEL", "openrouter:MODEL", "ollama:MODEL", the address of a server and a model,
    "http://localhost:8000/v1#MODEL", or "recorded:FILE" with a tape or a trace ("recorded:FILE#MODEL" where two models answered).
    With `tape`, replies are kept in that file, and what it holds is not asked again. Options go to the class behind it. Nothing is
    sent yet. Raises UnknownName, BadInput when the model is left out, LLMError when a key is missing, ModelMissing, TraceError when a
    file of replies cannot be used.
    """
    llm = _named(spec, options)
    if tape is None:
        return llm
    from kgot_lab.llm.recorded import Recorder

    return Recorder(llm, tape)


def _named(spec: str, options: dict[str, Any]) -> LLM:
    from kgot_lab.llm.openai_compatible import ENDPOINTS, OpenAICompatible, server_at

    require(spec, str, "a model is named by a text, such as local, openai:MODEL or http://host/v1#MODEL")
    kind, _, rest = spec.partition(":")
    if kind in {"http", "https", *ENDPOINTS}:
        require_options(OpenAICompatible, options, f"the model {spec!r}")
    if kind in {"http", "https"}:
        return OpenAICompatible(*server_at(spec), **options)
    if kind == "local":
        from kgot_lab.llm.engines import ENGINES
        from kgot_lab.llm.local import Local

        require_options(Local, options, "the local model")
        engine, _, file = rest.partition(":")
        return Local(file or None, **{"engine": engine, **options}) if engine in ENGINES else Local(rest or None, **options)
    if kind not in {*ENDPOINTS, "recorded"}:
        raise UnknownName("model", kind, [*ENDPOINTS, "local", "recorded", "http", "https"])
    if not rest:
        raise BadInput(f"{spec!r} says no more than the kind: write {kind}:{'FILE' if kind == 'recorded' else 'MODEL'}")
    if kind == "recorded":
        from kgot_lab.llm.recorded import Recorded, recorded_at

        require_options(Recorded, options, "a recorded model")
        return recorded_at(rest, **options)
    return OpenAICompatible(ENDPOINTS[kind], rest, **options)
