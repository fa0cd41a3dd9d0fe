"""Models of other libraries: clients of openai, chat models of LangChain, and functions from text to text."""

from __future__ import annotations

import inspect
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    describe_value,
    error_message,
    require_options,
    short_repr,
)
from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.llm.budget import CHARACTERS_PER_TOKEN, estimate_tokens, report_possible_charge
from kgot_lab.llm.keys import errors_without_keys
from kgot_lab.llm.presets import ENDPOINTS, Price, RetryPolicy, server_at
from kgot_lab.llm.structured import split_reasoning, write_schema_in_prompt
from kgot_lab.llm.transport import RawReply, ask_langchain
from kgot_lab.types import LLM, Prompt, Reply, Usage

_SAMPLING = ("temperature", "seed")
EXPECTED = (
    "a model is named by a text such as local or openai:MODEL, or is what connect(…) gives, an openai.OpenAI or AsyncOpenAI client "
    "(connect(client, model=…)), a LangChain chat model, or a function from a text to a text"
)


def as_model(model: object, /, what: str = "", **options: Any) -> LLM:
    """Return a model as it is, and an object of another library as a model.

    A client of openai needs `model="NAME"` and takes the options of a model on a server. A LangChain chat model,
    recognised by its `invoke` or `ainvoke`, and a function take a `name` and a `price`. Raises BadInput, which begins with
    `what` was asked for, for anything else.
    """
    openai: Any = sys.modules.get("openai")
    if openai and isinstance(model, openai.OpenAI | openai.AsyncOpenAI):
        return _model_of_client(model, **options)
    if isinstance(model, str):
        name = short_repr(model)
        raise BadInput(f"{what or 'this'} takes a model, and {name} is the name of one: give connect({name})")
    is_chat = callable(_invoke_of(model))
    if isinstance(model, type) or not (callable(model) or is_chat):
        raise BadInput(f"{what and f'{what} takes a model: '}{EXPECTED}, not {describe_value(model)}")
    if hasattr(model, "name") and not is_chat and not _takes_text(model):
        if options:
            raise BadInput(f"{', '.join(options)}: options are for a model that is yet to be made")
        return model  # type: ignore[return-value]
    require_options(AdaptedModel, options, f"a model that is {describe_value(model)}")
    return AdaptedModel(model, ask_langchain if is_chat else _ask_function, **options)


class AdaptedModel:
    """A model around an object of another library, which `ask` calls with it, a prompt and options.

    Temperature and seed are options if the object takes them by name, and are its own if it does not, or
    refuses them: a warning says so once. The longest reply is that of the object. A schema is written in the prompt.
    Tokens that it does not tell are 0 in the usage, and estimated where a budget limits them. Raises LLMError if
    the object fails or returns no text.
    """

    @check_arguments
    def __init__(
        self, model: Any, ask: Callable[..., RawReply], *, name: str = "", price: Price | None = None
    ):
        own = getattr(model, "func", model)  # of a functools.partial
        parts = ("model_name", "model", "name", "__name__")
        called = (getattr(each, part, None) for part in parts for each in (model, own))
        named = (text for text in called if isinstance(text, str) and text)
        self.name, self.price = name or next(named, type(own).__name__), price
        self._model, self._ask, self._is_told = model, ask, False
        self._takes = _sampling_options(model)

    @check_arguments
    def __call__(self, prompt: Prompt) -> Reply:
        started = time.perf_counter()
        own = [name for name in _SAMPLING if name not in self._takes]
        if own and not self._is_told and (prompt.temperature or prompt.seed):
            self._is_told = True
            logging.getLogger("kgot_lab").warning(f"{self.name} answers with its own {' and '.join(own)}")
        options = {name: getattr(prompt, name) for name in self._takes}
        try:
            with errors_without_keys(f"{self.name} did not answer: "):
                raw = self._ask(self._model, write_schema_in_prompt(prompt), **options)
        except LabError:
            raise
        except Exception as error:  # any error of another library
            problem = f"{type(error).__name__}: {error_message(error)}"
            if refused := [name for name in options if name in problem]:
                self._takes = [name for name in options if name not in refused]
                return self(prompt)
            raise LLMError(f"{self.name} did not answer: {problem}") from error
        if isinstance(raw.said, Reply):  # of a function that takes a prompt all the same
            return raw.said
        if not isinstance(raw.said, str):
            raise LLMError(f"{self.name} answered with {describe_value(raw.said)}: a model returns a text")
        if not raw.written:
            words = len(raw.said.encode(errors="replace")) // CHARACTERS_PER_TOKEN + 1
            report_possible_charge(0.0, Usage(0 if raw.read else estimate_tokens(prompt), words))
        said, _ = split_reasoning(raw.said, thinks=True)
        cost = self.price.of(raw.read, raw.written) if self.price else 0.0
        usage = Usage(raw.read, raw.written, time.perf_counter() - started, cost, raw.thought)
        return Reply(said.strip(), usage, cut=raw.ended in {"length", "max_tokens"})

    def __repr__(self) -> str:
        return f"<{self.name}, by {describe_value(self._model)}>"


def _sampling_options(model: Any) -> list[str]:
    """Return which of temperature and seed a function or the `invoke` of a chat model takes by name.

    One that is bound already, as by partial() or bind(), is left as it is.
    """

    def takes(name: str) -> bool:
        with suppress(TypeError, ValueError):  # it takes no such name, or is a function of C
            inspect.signature(_invoke_of(model) or model).bind_partial("", **{name: 0})
            return not any(name in getattr(model, bound, ()) for bound in ("keywords", "kwargs"))
        return False

    return list(filter(takes, _SAMPLING))


def _ask_function(function: Callable[..., object], prompt: Prompt, **options: Any) -> RawReply:
    if any(message.images for message in prompt.messages):
        raise LLMError("a function from a text to a text reads no images. Nothing was sent.")
    texts = (f"Your reply was:\n{m.text}" if m.role == "assistant" else m.text for m in prompt.messages)
    try:
        said: Any = run_awaitable(function("\n\n".join(texts), **options))
    except AttributeError as error:
        if error.obj.__class__ is not str or not hasattr(prompt, error.name or ""):
            raise
        said = run_awaitable(function(prompt))
    return RawReply(said, "stop", 0, 0)


def _invoke_of(model: object) -> Any:
    return getattr(model, "invoke", None) or getattr(model, "ainvoke", None)


def _takes_text(model: Any) -> bool:
    """Return whether what has a name and can be called takes a text, not a prompt: by its annotation.

    A function without one may take either.
    """
    with suppress(TypeError, ValueError, StopIteration):  # it has no signature, or takes nothing
        taken = next(iter(inspect.signature(model).parameters.values())).annotation
        is_function = inspect.isroutine(model) or isinstance(model, partial)
        return taken in (str, "str") or (taken is inspect.Parameter.empty and is_function)
    return False


def _model_of_client(client: Any, *, model: str = "", **options: Any) -> LLM:
    """Return a model on the server of a client. Of an AsyncOpenAI the address, key and headers are used."""
    import openai

    from kgot_lab.llm.openai_compatible import OpenAICompatible

    if not isinstance(model, str) or not model:
        problem = "a client of openai serves many models"
        raise BadInput(f"{problem}: say which, as in connect(client, model='gpt-4o-mini')")
    if isinstance(client, openai.AsyncAzureOpenAI):
        raise BadInput("a run asks one thing after another: give the AzureOpenAI of the same settings")
    if isinstance(client, openai.AsyncOpenAI):
        client = openai.OpenAI(
            api_key=client.api_key, organization=client.organization, project=client.project, base_url=client.base_url,
            timeout=client.timeout, default_headers=client._custom_headers, default_query=client._custom_query,
        )  # fmt: skip
    if isinstance(client.timeout, int | float):
        options = {"patience": RetryPolicy(timeout=client.timeout), **options}
    address = str(client.base_url).rstrip("/")
    places = {urlsplit(endpoint.base_url).netloc: endpoint for endpoint in ENDPOINTS.values()}
    endpoint = places.get(urlsplit(address).netloc) or server_at(f"{address}#{model}")[0]
    endpoint = replace(endpoint, base_url=address, key_variable="", key_needed=False)
    require_options(OpenAICompatible, options, f"the model {model!r}")
    return OpenAICompatible(endpoint, model, client=client, **options)
