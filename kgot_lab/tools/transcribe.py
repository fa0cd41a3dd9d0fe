"""Speech as text, by a service that speaks the OpenAI protocol, paid for within the budget of the models."""

from __future__ import annotations

import time
import wave
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.errors import BadInput, OverBudget, ToolFailed, require_amount
from kgot_lab.io.http_client import UnusableBody, bounded_client, through_proxy, way_to
from kgot_lab.llm.budget import LEAST_SECONDS, Spending
from kgot_lab.types import Usage

if TYPE_CHECKING:
    from openai.types.audio import Transcription

AUDIO = (".mp3", ".wav", ".m4a", ".flac", ".ogg", ".webm", ".mpga", ".mp4")
_NEEDED = "the environment variable OPENAI_API_KEY is set and the web may be asked (--web)"
SPEECH_NEEDS = f"what is said in audio can be written down where {_NEEDED}"
_OPENAI = "https://api.openai.com/v1"  # said here, since the client would follow OPENAI_BASE_URL
_LARGEST = 25_000_000  # bytes; the service takes no more
_PRICES = {"whisper-1": 0.006}  # US dollars a minute of speech, at OpenAI
_LEAST_BITS = 8_000  # a second: the lowest rate of an MP3 file, and a rate at which speech in other kinds is hardly kept


@dataclass(frozen=True)
class Transcript:
    """What is said in a recording, and what writing it down cost."""

    text: str
    usage: Usage


class Transcriber:
    """Writes down what is said in an audio file; `key` is in no text and no repr.

    `price` is in US dollars a minute, None where nobody knows it; by default that of OpenAI's model at
    OpenAI. With `spending` a file is refused that could pass the budget, as calls of models are. Raises
    BadInput for a price that is none, and for one that is not known where dollars are limited.
    """

    def __init__(
        self,
        key: str,
        *,
        model: str = "whisper-1",
        address: str = _OPENAI,
        seconds: float = 120.0,
        price: float | None = None,
        spending: Spending | None = None,
    ):
        if price is not None:
            require_amount(price, "a price for a minute of speech")
        self._key, self.model, self._address, self._seconds = key, model, address, seconds
        self.price = _PRICES.get(model) if price is None and address == _OPENAI else price
        self._spending = spending
        if self.price is None and spending is not None and spending.budget.dollars is not None:
            how = "leave out the limit in dollars, or limit calls or seconds"
            raise BadInput(
                f"what {self.model} charges for writing down speech is not known, so dollars cannot be limited: {how}"
            )

    def __call__(self, path: Path) -> Transcript:
        """What is said in a file; raises ToolFailed, `again` where a later try may work."""
        if path.stat().st_size > _LARGEST:
            raise ToolFailed(
                f"{path.name} is larger than {_LARGEST // 1_000_000} MB, the most that is transcribed"
            )
        longest = longest_speech(path)
        began = time.perf_counter()
        with self._paid(path, self._cost(longest)) as took:
            found = self._asked(path, self._cost(longest))
            told = (
                found.usage.seconds if found.usage is not None and found.usage.type == "duration" else longest
            )
            usage = Usage(seconds=time.perf_counter() - began, cost=self._cost(told))
            took.append(usage)
        if not found.text.strip():
            raise ToolFailed(f"nothing is said in {path.name}", usage=[usage])
        return Transcript(found.text.strip(), usage)

    def _cost(self, seconds: float) -> float:
        return (self.price or 0.0) * seconds / 60

    @contextmanager
    def _paid(self, path: Path, most: float) -> Iterator[list[Usage]]:
        """A request that costs no more than `most` dollars; what it really took is put into the list."""
        took: list[Usage] = []
        if self._spending is None:
            yield took
            return
        try:
            with self._spending.call(Usage(cost=most)) as count:
                try:
                    yield took
                finally:
                    count(Usage.total(took))
        except OverBudget as error:  # another tool may still be paid for
            raise ToolFailed(f"{path.name} is not written down: {error}") from None

    def _asked(self, path: Path, most: float) -> Transcription:
        import openai

        most_time = 3 * self._seconds  # a file is sent, listened to and answered
        seconds = (
            most_time
            if self._spending is None
            else min(most_time, max(self._spending.seconds_left, LEAST_SECONDS))
        )
        try:
            connections = bounded_client(seconds, **way_to(self._address))
        except BadInput as error:
            raise ToolFailed(f"{path.name} is not written down: {error}") from None
        client = openai.OpenAI(
            api_key=self._key, base_url=self._address, timeout=seconds, max_retries=0, http_client=connections
        )
        try:  # the client's errors hold the request, and the request the key
            with client:
                return client.audio.transcriptions.create(model=self.model, file=path)
        except openai.APIConnectionError as error:
            if isinstance(error, openai.APITimeoutError):
                self._unanswered(most)
            told = f"the service that transcribes {path.name} cannot be reached{through_proxy(self._address)}"
            raise ToolFailed(told, again=True) from None
        except openai.APIStatusError as error:
            again = error.status_code in (408, 429) or error.status_code >= 500
            told = str(error.message).replace(self._key, "…")[:300]
            raise ToolFailed(
                f"{path.name} was not transcribed: HTTP {error.status_code}: {told}", again=again
            ) from None
        except (openai.APIError, UnusableBody) as error:
            raise ToolFailed(
                f"{path.name} was not transcribed: {str(error).replace(self._key, '…')[:300]}"
            ) from None
        except KeyboardInterrupt:  # perhaps while the service was listening
            self._unanswered(most)
            raise

    def _unanswered(self, most: float) -> None:
        """Count what the service may charge for a request that it did not answer."""
        if self._spending is not None:
            self._spending.count_unanswered(most)

    def __repr__(self) -> str:
        return f"<transcriber {self.model}>"


def longest_speech(path: Path) -> float:
    """The most seconds that a recording can last: what a WAV file says, of others its bytes at the lowest
    rate there is.
    """
    if path.suffix.lower() == ".wav":
        try:
            with closing(wave.open(str(path), "rb")) as file:
                return file.getnframes() / file.getframerate()
        except (wave.Error, EOFError, ZeroDivisionError):
            pass
    return path.stat().st_size * 8 / _LEAST_BITS
