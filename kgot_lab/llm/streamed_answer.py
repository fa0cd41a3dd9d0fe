"""The answer of a server while it comes: what may be told of it so far, and what it was at the end."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from kgot_lab.http.bounded import UnusableBody, body_lines, client_library
from kgot_lab.llm.keys import PiecesMasked
from kgot_lab.llm.manner import Refusal
from kgot_lab.llm.refusals import Sending, broken_off, refusal_of, refused_in_answer
from kgot_lab.llm.thinking import SpokenPieces
from kgot_lab.llm.wires import RawReply, Wire
from kgot_lab.types import Json


class StreamedAnswer:
    """One request that is answered piece by piece; `begun` as soon as something of the answer was told.

    Where a model `hides` its thoughts in what it says and opens no block of thoughts, all waits for their end. The key is masked.
    """

    def __init__(self, wire: Wire, key: str, *, hides: bool):
        self.begun = False
        self._wire, self._gathering = wire, wire.gathering()
        self._spoken, self._masked = SpokenPieces(thinks=hides), PiecesMasked(key)
        self._told: list[str] = []

    def pieces(self, client: Any, address: str, body: dict[str, Json], sending: Sending) -> Generator[str, None, Refusal | None]:
        """What is said, as it comes; gives why the answer did not come whole, or None. Closing it closes the connection."""
        import openai

        try:
            with (
                _as_the_client_says(),
                closing(client.post(address, body=body, cast_to=object, stream=True, stream_cls=openai.Stream[object])) as stream,
            ):
                refusal = yield from self._read(body_lines(stream.response.iter_bytes()))
        except (openai.APIError, UnusableBody, ValueError, RecursionError) as error:
            refusal = refusal_of(error, sending)
            return broken_off(replace(refusal, perhaps_charged=True), error) if self.begun else refusal
        return broken_off(replace(refusal, perhaps_charged=True)) if refusal and self.begun else refusal

    def raw(self, *, thinks: bool) -> RawReply | str:
        """All of it, with what was told of it as what it says; or why it is no answer."""
        raw = self._wire.read(self._gathering.whole(), thinks=thinks)
        return raw if isinstance(raw, str) else replace(raw, said="".join(self._told).strip())

    def _read(self, lines: Iterator[bytes]) -> Generator[str, None, Refusal | None]:
        for event in self._gathering.events(lines):
            if refusal := refused_in_answer(event):
                return refusal
            said, thought = self._gathering.add(event)
            if thought:
                self._spoken.thinks = False
            yield self._telling(self._masked.after(self._spoken.after(said)))
        if not self._gathering.ended:
            return Refusal("the answer ends before its end", again=True, perhaps_charged=True)
        yield self._telling(self._masked.after(self._spoken.rest()) + self._masked.rest())
        return None

    def _telling(self, piece: str) -> str:
        self._told.append(piece)
        self.begun = self.begun or bool(piece)
        return piece


@contextmanager
def _as_the_client_says() -> Iterator[None]:
    """Raise what goes wrong while an answer is read as the client raises what goes wrong before."""
    import openai

    library = client_library()
    try:
        yield
    except library.TimeoutException as error:
        raise openai.APITimeoutError(request=error.request) from error
    except library.RequestError as error:
        raise openai.APIConnectionError(request=error.request) from error
