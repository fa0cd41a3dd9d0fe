"""Ask a language model: one protocol, `llm(Prompt) -> Reply`, for models on this computer, on servers, on tape and in scripts."""

from __future__ import annotations

from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.types import LLM


def connect(spec: str, **options: Any) -> LLM:
    """The model that a short text names.

    "local" or "local:FILE.gguf", with an engine before the file if it matters ("local:xllamacpp", "local:llama-cpp-python:FILE.gguf");
    "recorded:TAPE", "openai:MODEL", "anthropic:MODEL", "gemini:MODEL", "openrouter:MODEL", "ollama:MODEL",
    or the address of a server and a model, "http://localhost:8000/v1#MODEL". Options go to the class behind it. Nothing is sent yet.
    Raises UnknownName, BadInput when the model is left out, LLMError when a key is missing, ModelMissing.
    """
    from kgot_lab.llm.openai_compatible import ENDPOINTS, OpenAICompatible, server_at

    kind, _, rest = spec.partition(":")
    if kind in {"http", "https"}:
        return OpenAICompatible(*server_at(spec), **options)
    if kind == "local":
        from kgot_lab.llm.engines import ENGINES
        from kgot_lab.llm.local import Local

        engine, _, file = rest.partition(":")
        return Local(file or None, **{"engine": engine, **options}) if engine in ENGINES else Local(rest or None, **options)
    if kind not in {*ENDPOINTS, "recorded"}:
        raise UnknownName("model", kind, [*ENDPOINTS, "local", "recorded", "http", "https"])
    if not rest:
        raise BadInput(f"{spec!r} says no more than the kind: write {kind}:{'PATH' if kind == 'recorded' else 'MODEL'}")
    if kind == "recorded":
        from kgot_lab.llm.recorded import Recorded

        return Recorded(rest, **options)
    return OpenAICompatible(ENDPOINTS[kind], rest, **options)
