"""Embeddings from a server with the OpenAI protocol."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Matrix, checked_texts, normalise_rows
from kgot_lab.errors import BadInput, LLMError, UnknownName
from kgot_lab.io.http_client import UnusableBody, bounded_client, proxy_options
from kgot_lab.llm.capabilities import RequestTarget, classify_error, error_in_answer
from kgot_lab.llm.keys import key_for, remove_key
from kgot_lab.llm.presets import ENDPOINTS, Endpoint, server_at

_BYTES_PER_TEXT = 200_000  # of an answer, for each text: 4,000 numbers take 90,000


_TOO_MUCH = re.compile(
    r"HTTP \d+: (.*(?:batch|too (?:many|large|long|big)|larger|longer|at most|more than|maxim|exceed|limit|tokens).*)\.", re.I
)  # fmt: skip
_REFUSALS = {400, 413, 422, 500}  # the statuses of a request that is too large
_SHORTEST = 100  # characters of a text that is not cut


class API:
    """An embedder on a server with the OpenAI protocol.

    Named by "openai:MODEL", "gemini:MODEL", "ollama:MODEL" or "http://HOST:PORT/v1#MODEL". The key comes from
    the preset's environment variable and appears in no text. Rate limits, time-outs and server errors are
    retried `retries` times with increasing waits. `dimension` requests shorter vectors. Without it the first
    answer determines the dimension. A request has at most `batch` texts, fewer where the server refuses so many, and
    a text that is too long alone is cut, with a warning. Raises UnknownName for an unknown server, LLMError if the key is missing,
    if the server reports an error, or if its answer does not fit, and BadInput for a blank text, which
    servers refuse, and for a proxy that cannot be used.
    """

    @check_arguments
    def __init__(
        self,
        model: str,
        *,
        dimension: int | None = None,
        batch: int = 128,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        import openai

        preset, self._model = _endpoint_and_model(model)
        self.name, self._preset = f"{preset.name}:{self._model}", preset
        self._asked, self._seen, self._timeout = dimension, dimension, timeout
        self._batch, self._most = batch, batch  # texts of the next request, and the most of any
        self._client = openai.OpenAI(
            api_key=key_for(preset), base_url=preset.base_url, timeout=timeout, max_retries=retries,
            http_client=bounded_client(timeout, 2_000_000 + batch * _BYTES_PER_TEXT, **proxy_options(preset.base_url)),
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the address, the model's name and the dimension.

        A server does not identify its weights.
        """
        return hashlib.sha256(f"{self._preset.base_url}\0{self._model}\0{self._asked}".encode()).hexdigest()

    @property
    def dimension(self) -> int:
        """The dimension of the vectors. If unknown, one word is sent to find out."""
        if self._seen is None:
            self._request_vectors(["dimension"])
        return self._seen or 0

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Encode texts as unit vectors, shape (len(texts), dimension).

        Raises BadInput for blank texts.
        """
        texts = checked_texts(texts)
        blank = [row for row, text in enumerate(texts) if not text.strip()]
        if blank:
            problem = f"{self.name} takes no blank texts: {len(blank)} of {len(texts)} are blank"
            raise BadInput(f"{problem}; the first is that of row {blank[0]}")
        vectors = [np.zeros((0, self.dimension), np.float32)] if not texts else []
        start = 0
        while start < len(texts):
            asked = texts[start : start + self._batch]
            try:
                rows = self._request_vectors(asked)
            except LLMError as error:
                texts[start] = self._shrink(asked, error)
                continue
            vectors.append(normalise_rows(rows, self.name))
            start += len(asked)
            self._batch = min(self._most, self._batch + max(1, self._batch // 4))
        return np.concatenate(vectors)

    def _shrink(self, asked: list[str], error: LLMError) -> str:
        """Ask for fewer texts from now on, or cut the only one, and return the first.

        Raises the error if it is of another kind.
        """
        refused = _TOO_MUCH.search(str(error)) if error.status in _REFUSALS else None
        if refused is None or (len(asked) == 1 and len(asked[0]) <= _SHORTEST):
            raise error
        kept = asked[0]
        if len(asked) > 1:
            numbers = map(int, re.findall(r"\b\d{1,6}\b", refused[1]))
            limit = max((number for number in numbers if 1 < number < len(asked)), default=0)
            self._batch, self._most = limit or len(asked) // 2, limit or self._most
        else:
            kept = kept[: len(kept) // 2]
            problem = f"{self.name} takes no text of {len(asked[0]):,} characters ({refused[1].strip()})"
            advice = f"its first {len(kept):,} are embedded: embed shorter passages if the rest matters"
            warnings.warn(f"{problem}; {advice}", stacklevel=4)
        return kept

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _request_vectors(self, texts: list[str]) -> list[list[float]]:
        answer = self._request(texts)
        items = answer.get("data") if isinstance(answer, dict) else None
        entries = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        rows: dict[int, Any] = {}
        for place, item in enumerate(entries):
            index = item.get("index", place)
            if type(index) is int:
                rows[index] = item.get("embedding")
        if sorted(rows) != list(range(len(texts))):
            raise LLMError(f"{self.name} sent {len(rows)} vectors for {len(texts)} texts")
        if not all(map(_is_vector, rows.values())):
            raise LLMError(f"{self.name} sent vectors that are no lists of numbers")
        expected, lengths = self._seen or len(rows[0]), {len(row) for row in rows.values()}
        if lengths != {expected} or not expected:
            sizes = ", ".join(map(str, sorted(lengths)))
            raise LLMError(f"{self.name} sent vectors of {sizes} numbers where {expected} were expected")
        self._seen = expected
        return [rows[place] for place in range(len(texts))]

    def _request(self, texts: list[str]) -> Any:
        """Send one request. Client errors are not passed on, since they contain the key."""
        import openai

        # not every server supports base64
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        try:
            # the client's own class takes longer than the request
            answer = self._client.post("/embeddings", body=body, cast_to=object)
            refusal = error_in_answer(answer)
        except (openai.APIError, UnusableBody, ValueError, RecursionError) as error:
            target = RequestTarget(
                self._preset.base_url, self._timeout, math.inf, "a list of embeddings", "timeout=SECONDS"
            )
            refusal = classify_error(error, target)
        if refusal is None:
            return answer
        advice = refusal.advice or {
            0: f"Is the server running at {self._preset.base_url}?" if refusal.again else "",
            401: f"Check the key in the environment variable {self._preset.key_variable}.",
            404: f"Check the model name {self._model!r}, and that the server at {self._preset.base_url} embeds.",
            429: "The rate limit or quota is used up: wait, ask less often, or look at the account.",
        }.get(refusal.status, "")
        problem = f"{self.name} did not embed {len(texts)} texts: {refusal.reason}. {advice}"
        failure = LLMError(remove_key(problem, self._client.api_key)[:600].strip())
        failure.status = refusal.status
        raise failure from None

    def __repr__(self) -> str:
        return f"<{self.name}, embeddings>"


def _is_vector(row: object) -> bool:
    """Return whether an object is a list of numbers that fit an array."""
    return isinstance(row, list) and all(type(n) is float or (type(n) is int and abs(n) < 2**63) for n in row)


def _endpoint_and_model(model: str) -> tuple[Endpoint, str]:
    kind, _, rest = model.partition(":")
    if kind in {"http", "https"}:
        return server_at(model)
    if kind not in ENDPOINTS:
        raise UnknownName("server", kind, [*ENDPOINTS, "http", "https"])
    if not rest:
        raise BadInput(f"{model!r} says no more than the server: write {kind}:MODEL")
    return ENDPOINTS[kind], rest
