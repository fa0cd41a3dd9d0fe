"""The engine of the local model: xllamacpp, a wheel that needs no compiler.

It runs llama.cpp's server in a thread of this process. The server listens on a Unix socket in a folder that
only this user can enter, so there is no network port. If Python has no such sockets, it listens on a local
port that requires a key. A call that is interrupted, or for which the time of a budget is over, closes its
connection, and the server stops generating.
"""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import tempfile
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import LLMError
from kgot_lab.io.http_client import UnusableBody, body_lines
from kgot_lab.llm.budget import request_timeout, require_budget_for_retry, seconds_left
from kgot_lab.llm.local import SAMPLING, GeneratedText
from kgot_lab.llm.model_file import explain_load_failure
from kgot_lab.types import Json, Message, Prompt

if TYPE_CHECKING:
    import httpx

_LONGEST_SOCKET = 100  # characters in the path of a Unix socket; some systems take no more than 104
_QUIET = -1  # the server logs nothing
# the model's own probability of each token, before sampling
_LOGPROB_OPTIONS: dict[str, Json] = {"n_probs": 1, "post_sampling_probs": False}
_LEAST_LOGPROB = -103.28  # log of the engine's smallest number; less likely tokens get log(0)


class Xllamacpp:
    """A model file loaded by xllamacpp, with one prompt in memory. Raises LLMError if it cannot be loaded."""

    def __init__(self, path: Path, context: int, threads: int, chunk: int):
        self._folder = _private_folder()
        key = secrets.token_urlsafe(16)
        try:
            server = _module().Server(_settings(path, context, threads, chunk, self._folder, key))
        except (RuntimeError, MemoryError, LLMError) as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            if isinstance(error, LLMError):
                raise error from None
            raise LLMError(f"llama.cpp cannot load {path}. {explain_load_failure(path)}") from None
        self._client = _client(server.listening_address, self._folder, key)
        self._numbers = count()
        # also if the program ends without `close`: a server that runs during interpreter shutdown may abort
        # the process
        self._end = weakref.finalize(self, _end, [server], self._client, self._folder)
        # a server that is ended before it has answered anything never ends
        self._complete(self._tokenize("a", add_special=False, parse_special=False), n_predict=0)

    def tokens(self, text: str) -> list[int]:
        """Tokenise a plain text. Control tokens in it are treated as text."""
        return self._tokenize(text, add_special=False, parse_special=False)

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Tokenise messages in the model's chat format."""
        turns = [{"role": message.role, "content": message.text} for message in messages]
        chat = self._ask("/apply-template", {"messages": turns})["prompt"]
        return self._tokenize(chat, add_special=True, parse_special=True)

    def read(self, tokens: list[int], done: int) -> None:
        """Keep the first `done` tokens of what was read before, and read the rest but the last."""
        rest = tokens[:-1]
        if done == len(rest):
            return
        if done:  # the server keeps all that two prompts share: one token that the next prompt has not ends it where we want
            self._complete([*tokens[:done], int(tokens[done] == 0)], n_predict=0)
        self._complete(rest, n_predict=0, cache_prompt=done > 0)

    def write(self, tokens: list[int], prompt: Prompt, seed: int) -> GeneratedText:
        """Generate the reply to the prompt that was read, starting with the last token of the prompt.

        The log-probability is the model's own: at temperature 1, before sampling or a schema restricts the
        tokens, including the end token.
        """
        answer = self._complete(tokens, **_generation_options(prompt, seed))
        return _parse_generation(answer, prompt)

    def write_on(
        self, tokens: list[int], prompt: Prompt, seed: int
    ) -> Generator[str | GeneratedText, None, None]:
        """Generate the same reply in pieces, and all of it last.

        Closing the iterator stops generation and invalidates what was read.
        """
        options = _generation_options(prompt, seed)
        body = {"prompt": tokens, "cache_prompt": True, "stream": True, **options}
        text, probabilities = list[str](), list[Json]()
        request: dict[str, Any] = {"json": body, "timeout": request_timeout()}
        with self._engine_errors(), self._client.stream("POST", "/completion", **request) as response:
            if response.is_error:
                response.read()
                raise self._refused(response)
            for line in body_lines(response.iter_raw()):
                if seconds_left() <= 0:
                    require_budget_for_retry()
                # or a blank line, or the event of an error, whose reason follows
                if not line.startswith(b"data: "):
                    continue
                answer = json.loads(line.removeprefix(b"data: "))
                if "content" not in answer:
                    reason = _reason_in(answer, "it gave no reason")
                    raise LLMError(f"the engine of the local model broke off: {reason}")
                text.append(str(answer["content"]))
                probabilities += answer.get("completion_probabilities", [])
                if answer.get("stop"):
                    break
                yield text[-1]
            else:
                raise LLMError("the engine of the local model broke off: close the model and ask again")
        if text[-1]:
            yield text[-1]
        answer |= {"content": "".join(text), "completion_probabilities": probabilities}
        yield _parse_generation(answer, prompt)

    def park(self) -> Any:
        """Save the state of what was read, so that it can be restored."""
        parked = self._folder / str(next(self._numbers))
        self._ask("/slots/0?action=save", {"filename": parked.name})
        return _Parked(parked)

    def restore(self, parked: Any) -> bool:
        """Restore a saved state and return whether that worked."""
        try:
            self._ask("/slots/0?action=restore", {"filename": parked.path.name})
        except LLMError:
            return False
        return True

    def close(self) -> None:
        """Free the memory."""
        self._end()

    def _tokenize(self, text: str, **options: bool) -> list[int]:
        return list(self._ask("/tokenize", {"content": text, **options})["tokens"])

    def _complete(self, tokens: list[int], **options: Any) -> Any:
        return self._ask("/completion", {"prompt": tokens, "cache_prompt": True, **options})

    def _ask(self, path: str, body: dict[str, Json]) -> Any:
        """Send a request to the server and return its answer.

        Raises LLMError with the server's message if it fails.
        """
        with self._engine_errors():
            reply = self._client.post(path, json=body, timeout=request_timeout())
            answer = reply.json()
        if reply.is_error:
            raise self._refused(reply)
        return answer

    @contextmanager
    def _engine_errors(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.HTTPError, ValueError, UnusableBody) as error:
            if isinstance(error, httpx.TimeoutException):
                require_budget_for_retry()
            problem = f"the engine of the local model gave no answer ({type(error).__name__})"
            raise LLMError(f"{problem}: close the model and ask again") from None

    def _refused(self, reply: httpx.Response) -> LLMError:
        reason = _reason_in(reply.json(), reply.status_code)
        return LLMError(f"the engine of the local model refused: {reason}")


class _Parked:
    """A file with a saved model state, deleted when it is no longer referenced."""

    def __init__(self, path: Path):
        self.path = path
        weakref.finalize(self, path.unlink, missing_ok=True)


def _generation_options(prompt: Prompt, seed: int) -> dict[str, Json]:
    """Build the generation parameters for the server."""
    schema_options = {} if prompt.schema is None else {"json_schema": dict(prompt.schema)}
    sampling = {"temperature": prompt.temperature, "seed": seed, **SAMPLING}
    likelihood = _LOGPROB_OPTIONS if prompt.likelihood else {}
    return {"n_predict": prompt.max_tokens, **sampling, **schema_options, **likelihood}


def _reason_in(answer: Json, otherwise: object) -> object:
    return answer.get("error", {}).get("message", otherwise)


def _parse_generation(answer: Json, prompt: Prompt) -> GeneratedText:
    logprob = _logprob(answer) if prompt.likelihood else None
    tokens, cut = int(answer["tokens_predicted"]), answer.get("stop_type") == "limit"
    return GeneratedText(str(answer["content"]), tokens, cut, logprob)


def _logprob(answer: Json) -> float | None:
    """Return the log-probability of an answer.

    None if it is not reported for each token. Of a character in several tokens, only the last is reported.
    """
    probabilities = answer.get("completion_probabilities", [])
    if len(probabilities) != answer["tokens_predicted"]:
        return None
    return float(sum(min(0.0, max(token["logprob"], _LEAST_LOGPROB)) for token in probabilities))


def _private_folder() -> Path:
    """Create a folder that only this user can enter, with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="kgot-"))
    if len(str(folder)) + len("/socket.sock") <= _LONGEST_SOCKET or not Path("/tmp").is_dir():
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="kgot-", dir="/tmp"))


def _settings(path: Path, context: int, threads: int, chunk: int, folder: Path, key: str) -> Any:
    """Return the server settings: one prompt in memory, whole chunks, no caching or reuse of its own."""
    settings = _module().CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_batch, settings.n_ubatch = context, chunk, chunk
    settings.n_parallel = 1  # more would split the context
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.cache_ram_mib, settings.cache_idle_slots, settings.n_ctx_checkpoints = 0, False, 0
    settings.fit_params = settings.warmup = settings.ui = settings.prefill_assistant = False
    settings.offline, settings.verbosity = True, _QUIET
    settings.slot_save_path = f"{folder}/"
    settings.hostnames = [str(folder / "socket.sock")] if hasattr(socket, "AF_UNIX") else ["127.0.0.1"]
    settings.api_keys = [key]
    return settings


def _module() -> Any:
    try:
        import xllamacpp
    except ImportError as error:  # the wheel needs the system's OpenMP, which small containers lack
        advice = "on Debian and Ubuntu: apt install libgomp1"
        raise LLMError(f"xllamacpp is installed and cannot start ({error}); {advice}") from None
    return xllamacpp


def _client(address: str, folder: Path, key: str) -> httpx.Client:
    """Create a client for this server only. Timeouts are those of the requests."""
    import httpx

    headers = {"Authorization": f"Bearer {key}"}
    if address.startswith("unix:"):
        transport = httpx.HTTPTransport(uds=str(folder / "socket.sock"))
        return httpx.Client(transport=transport, base_url="http://engine", headers=headers, timeout=None)
    return httpx.Client(base_url=address, headers=headers, timeout=None, trust_env=False)


def _end(server: list[Any], client: httpx.Client, folder: Path) -> None:
    """Stop the server by releasing it, and delete its files."""
    client.close()
    server.clear()
    shutil.rmtree(folder, ignore_errors=True)
