"""Language models behind one protocol, `llm(Prompt) -> Reply`: local, on servers, recorded and scripted."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, UnknownName, require, require_options
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import LLM

if TYPE_CHECKING:
    from kgot_lab.llm.models import ModelEntry
    from kgot_lab.llm.presets import Endpoint, Settings


@check_arguments
def connect(
    spec: Any,
    *,
    recording: str | Path | None = None,
    models: str | Path | Mapping[str, ModelEntry] | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> LLM:
    """Create the model that a specification names, or the model around an object of another library.

    "local" or "local:FILE.gguf", "openai:MODEL", "anthropic:MODEL", "gemini:MODEL", "openrouter:MODEL",
    "ollama:MODEL", the address of a server and a model, "http://localhost:8000/v1#MODEL", or "recorded:FILE"
    with a recording or a trace ("recorded:FILE#MODEL" if it holds two models). A local model is opened once in a
    process and stays loaded, 2.2 GB, until its `close()`. With `models`, a file that
    `load_models` reads or its result, also a name in there. With `recording`, replies are recorded in that file,
    and recorded prompts are not sent again. `say` is called with a message when a server makes it wait; without it,
    each kind is logged once, as a warning.
    Options are passed to the class of the model. Other objects are an openai.OpenAI or AsyncOpenAI client with
    `model="NAME"`, a LangChain chat model, and a function from a text to a text, which take a `name` and a
    `price`. A model is returned as it is. Nothing is sent yet. Raises UnknownName for an unknown name,
    BadInput if the model is left out, LLMError if a key is missing, ModelMissing if there is no model file,
    and TraceError if a file of replies cannot be used.
    """
    if isinstance(spec, str):
        registry = _models(models)
        if spec in registry:
            spec, options = registry[spec].model, {**registry[spec].options(), **options}
        llm = _connect_spec(spec, options, say or log_once(), registry)
    else:
        from kgot_lab.llm.adapters import as_model

        options |= {"say": say or log_once()} if hasattr(spec, "base_url") else {}
        llm = as_model(spec, **options)
    if recording is None:
        return llm
    from kgot_lab.llm.recorded import Recorder

    return Recorder(llm, recording)


def log_once() -> Callable[[str], None]:
    """Return what logs messages as warnings, each kind once: those that differ in numbers only are of one kind."""
    told = set[str]()

    def say(message: str) -> None:
        if (kind := re.sub(r"\d[\d.,]*", "", message)) not in told:
            told.add(kind)
            logging.getLogger("kgot_lab").warning(printable_line(message))

    return say


def check_spec(spec: str, names: Mapping[str, object] | None = None) -> str:
    """Return the kind of model in a specification, if it is complete.

    Raises UnknownName, which also lists the names in `more`, for an unknown kind, and BadInput for an
    incomplete one.
    """
    from kgot_lab.llm.presets import ENDPOINTS, guess_spec, server_at

    kind, rest = _kind(spec)
    if re.search(r" \[\w+=.*\]$", spec):
        raise BadInput(f"{spec!r} is a model with settings: name the entry of your models file")
    kinds = [*ENDPOINTS, "local", "recorded", "http", "https"]
    if kind not in kinds:
        known = [*kinds, *(names or {})]
        raise UnknownName("model", spec if names or not rest else kind, known, meant=guess_spec(spec))
    if kind in {"http", "https"}:
        server_at(spec)
    elif not rest and kind != "local":
        what = "FILE" if kind == "recorded" else "MODEL"
        raise BadInput(f"{spec!r} says no more than the kind: write {kind}:{what}")
    return kind


def model_name_in_traces(spec: str, settings: Settings | None = None) -> str:
    """Return the name, with settings, of a model in traces and recordings.

    Raises LabError if the model's file is missing.
    """
    kind, rest = check_spec(spec), _kind(spec)[1]
    if kind == "recorded":
        from kgot_lab.llm.recorded import load_recorded

        return load_recorded(rest).name
    from kgot_lab.llm.presets import Settings

    if kind == "local":
        from kgot_lab.llm.local import local_name
        from kgot_lab.llm.model_file import find_model

        return local_name(Path(rest) if rest else find_model(), settings or Settings())
    preset, model = _server(spec, "")
    return f"{preset.name}:{model}{(settings or Settings()).suffix}"


def _kind(spec: str) -> tuple[str, str]:
    """Split a specification into the kind of model and the rest. http and https are case-insensitive."""
    kind, _, rest = spec.partition(":")
    return (kind.lower() if kind.lower() in {"http", "https"} else kind), rest


def _models(models: str | Path | Mapping[str, ModelEntry] | None) -> Mapping[str, ModelEntry]:
    if models is None:
        return {}
    if isinstance(models, str | Path):
        from kgot_lab.llm.models import load_models

        return load_models(models)
    from kgot_lab.llm.models import ModelEntry

    for entry in models.values():
        require(entry, ModelEntry, "models are a file, or what load_models(…) gave: each is a ModelEntry")
    return models


def _connect_spec(
    spec: str, options: dict[str, Any], say: Callable[[str], None], registry: Mapping[str, ModelEntry]
) -> LLM:
    kind, rest = check_spec(spec, registry), _kind(spec)[1]
    if kind == "local":
        from kgot_lab.llm.local import Local
        from kgot_lab.llm.model_file import find_model

        require_options(Local, options, "the local model")
        path = Path(rest) if rest else find_model()
        if options or not path.is_file():
            return Local(path, **options)
        return _shared_local(path.resolve(), path.stat().st_mtime_ns)
    if kind == "recorded":
        from kgot_lab.llm.recorded import Recorded, load_recorded

        require_options(Recorded, options, "a recorded model")
        return load_recorded(rest, **options)
    from kgot_lab.llm.openai_compatible import OpenAICompatible

    preset, model = _server(spec, options.pop("key_variable", ""))
    options = options | {"say": say}
    require_options(OpenAICompatible, options, f"the model {spec!r}")
    return OpenAICompatible(preset, model, **options)


@lru_cache(maxsize=2)
def _shared_local(path: Path, modified: int) -> LLM:
    """Open a local model once in this process, so that a next question finds it loaded and its prompts read."""
    from kgot_lab.llm.local import Local

    return Local(path)


@check_arguments
def _server(spec: str, key_variable: str) -> tuple[Endpoint, str]:
    """Return the server and the model of a specification, with an alternative key variable if named."""
    from dataclasses import replace

    from kgot_lab.llm.presets import ENDPOINTS, ollama_address, server_at

    kind, model = _kind(spec)
    preset, model = server_at(spec) if kind in {"http", "https"} else (ENDPOINTS[kind], model)
    if kind == "ollama":
        preset = replace(preset, base_url=ollama_address())
    return (replace(preset, key_variable=key_variable, key_needed=True) if key_variable else preset), model
