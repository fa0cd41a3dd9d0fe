"""The engine compiled for this processor: llama-cpp-python, which calls llama.cpp in this process."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kgot_lab.errors import LLMError
from kgot_lab.llm.engines import SAMPLING, Written
from kgot_lab.llm.model_file import why_not_loaded
from kgot_lab.types import Message, Prompt


class LlamaCpp:
    """A model file opened by llama-cpp-python; raises LLMError when it cannot be loaded."""

    def __init__(self, path: Path, context: int, threads: int, chunk: int):
        import llama_cpp
        from llama_cpp.llama_chat_format import CHATML_CHAT_TEMPLATE, Jinja2ChatFormatter

        try:
            # unequal numbers of threads make OpenMP rebuild its team at every switch
            self._llama = llama_cpp.Llama(
                str(path),
                n_ctx=context,
                n_batch=chunk,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
        except (ValueError, MemoryError) as error:
            told = str(error).rstrip(".") or type(error).__name__
            raise LLMError(f"llama.cpp cannot load {path}: {told}. {why_not_loaded(path)}") from None
        end = self._llama.detokenize([self._llama.token_eos()], special=True).decode()
        template = self._llama.metadata.get("tokenizer.chat_template", CHATML_CHAT_TEMPLATE)
        self._chat = Jinja2ChatFormatter(template, eos_token=end, bos_token="")
        self._grammars: dict[str, Any] = {}

    def tokens(self, text: str) -> list[int]:
        return list(self._llama.tokenize(text.encode(), add_bos=False, special=False))

    def chat(self, messages: Sequence[Message]) -> tuple[list[int], list[str]]:
        chat = self._chat(messages=[{"role": message.role, "content": message.text} for message in messages])
        tokens = self._llama.tokenize(chat.prompt.encode(), add_bos=True, special=True)
        return list(tokens), [chat.stop] if isinstance(chat.stop, str) else list(chat.stop or [])

    def read(self, tokens: list[int], done: int) -> None:
        self._llama.n_tokens = done
        self._llama.eval(tokens[done:-1])

    def write(self, tokens: list[int], stop: list[str], prompt: Prompt, seed: int) -> Written:
        told: list[float] = []
        with (
            self._noting_draws(lambda token: told.append(self._logprob_of(token)))
            if prompt.likelihood
            else nullcontext()
        ):
            answer = self._llama.create_completion(**self._asked(tokens, stop, prompt, seed))
        choice = answer["choices"][0]
        cut = choice["finish_reason"] == "length"
        return Written(
            choice["text"],
            answer["usage"]["completion_tokens"],
            cut,
            sum(told) if prompt.likelihood else None,
        )

    def write_on(
        self, tokens: list[int], stop: list[str], prompt: Prompt, seed: int
    ) -> Generator[str | Written, None, None]:
        drawn, told, text, ended = list[int](), list[float](), list[str](), ""

        def note(token: int) -> None:
            drawn.append(token)
            if prompt.likelihood:
                told.append(self._logprob_of(token))

        asked = self._asked(tokens, stop, prompt, seed)
        with self._noting_draws(note), closing(self._llama.create_completion(**asked, stream=True)) as parts:
            for part in parts:  # the usage is not among them
                choice = part["choices"][0]
                text.append(choice["text"])
                ended = choice["finish_reason"] or ended
                yield text[-1]
        written = len(drawn) - (
            drawn[-1:] == [self._llama.token_eos()]
        )  # the end mark is no token of the text
        yield Written("".join(text), written, ended == "length", sum(told) if prompt.likelihood else None)

    def _asked(self, tokens: list[int], stop: list[str], prompt: Prompt, seed: int) -> dict[str, Any]:
        """How a reply is to be written, for llama-cpp-python."""
        return {
            "prompt": tokens, "max_tokens": prompt.max_tokens, "temperature": prompt.temperature, "seed": seed,
            "grammar": self._grammar(prompt), "stop": stop, **SAMPLING,
        }  # fmt: skip

    def park(self) -> Any:
        import llama_cpp

        size = llama_cpp.llama_state_seq_get_size(self._llama.ctx, 0)
        memory = (ctypes.c_uint8 * size)()
        llama_cpp.llama_state_seq_get_data(self._llama.ctx, memory, size, 0)
        read = self._llama.n_tokens
        return self._llama.input_ids[:read].copy(), memory

    def restore(self, parked: Any) -> bool:
        import llama_cpp

        tokens, memory = parked
        if not llama_cpp.llama_state_seq_set_data(self._llama.ctx, memory, len(memory), 0):
            return False
        self._llama.input_ids[: len(tokens)] = tokens
        return True

    def forget(self) -> None:
        self._llama.reset()

    def close(self) -> None:
        self._llama.close()

    @contextmanager
    def _noting_draws(self, note: Callable[[int], None]) -> Iterator[None]:
        """Note meanwhile each token as soon as it is drawn, the end mark too.

        llama-cpp-python tells logprobs only where it keeps those of the whole prompt too, 600 kB for each
        token that is read.
        """
        draw = self._llama.sample

        def draw_and_note(*args: Any, **options: Any) -> int:
            token = int(draw(*args, **options))
            note(token)
            return token

        self._llama.sample = draw_and_note
        try:
            yield
        finally:
            del self._llama.sample  # the class has its own

    def _logprob_of(self, token: int) -> float:
        """The logarithm of the probability the model gives to a token, which it has before anything narrows
        the choice.
        """
        import llama_cpp
        import numpy

        logits = numpy.ctypeslib.as_array(
            llama_cpp.llama_get_logits_ith(self._llama.ctx, -1), shape=(self._llama.n_vocab(),)
        )
        above = logits.astype(numpy.float64) - logits.max()
        return float(above[token] - numpy.log(numpy.exp(above).sum()))

    def _grammar(self, prompt: Prompt) -> Any:
        """The grammar that lets only JSON of the prompt's schema through, or none; kept, because compiling
        takes a while.
        """
        if prompt.schema is None:
            return None
        from llama_cpp.llama_grammar import LlamaGrammar

        schema = json.dumps(
            spellable(prompt.schema)
        )  # not sorted: the order of the properties is the order of writing
        if schema not in self._grammars:
            self._grammars[schema] = LlamaGrammar.from_json_schema(schema, verbose=False)
        return self._grammars[schema]


def spellable(part: Any) -> Any:
    """A schema in which choices with quotes or backslashes are any text.

    llama-cpp-python misspells those, and a grammar that cannot be parsed kills the process.
    """
    if isinstance(part, list | tuple):
        return [spellable(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    choices = [*part.get("enum", []), part.get("const", "")] if isinstance(part.get("enum", []), list) else []
    if any(isinstance(choice, str) and ('"' in choice or "\\" in choice) for choice in choices):
        return {"type": "string"}
    return {key: spellable(value) for key, value in part.items()}
