"""Speech as text, by a service that speaks the OpenAI protocol."""

from __future__ import annotations

from pathlib import Path

from kgot_lab.errors import ToolFailed
from kgot_lab.llm.bounded import UnusableBody, bounded_client

AUDIO = (".mp3", ".wav", ".m4a", ".flac", ".ogg", ".webm", ".mpga", ".mp4")
_OPENAI = "https://api.openai.com/v1"  # said here, since the client would follow OPENAI_BASE_URL
_LARGEST = 25_000_000  # bytes; the service takes no more


class Transcriber:
    """Writes down what is said in an audio file; `key` is in no text and no repr. What the service charges is in no Usage and no budget."""

    def __init__(self, key: str, *, model: str = "whisper-1", address: str = _OPENAI, seconds: float = 120.0):
        self._key, self.model, self._address, self._seconds = key, model, address, seconds

    def __call__(self, path: Path) -> str:
        """What is said in a file; raises ToolFailed, `again` where a later try may work."""
        import openai

        if path.stat().st_size > _LARGEST:
            raise ToolFailed(f"{path.name} is larger than {_LARGEST // 1_000_000} MB, the most that is transcribed")
        try:  # the client's errors hold the request, and the request the key
            bounded = bounded_client(3 * self._seconds)  # a file is sent, listened to and answered
            with openai.OpenAI(
                api_key=self._key, base_url=self._address, timeout=self._seconds, max_retries=0, http_client=bounded
            ) as client:
                text = client.audio.transcriptions.create(model=self.model, file=path).text.strip()
        except openai.APIConnectionError:
            raise ToolFailed(f"the service that transcribes {path.name} cannot be reached", again=True) from None
        except openai.APIStatusError as error:
            again = error.status_code in (408, 429) or error.status_code >= 500
            told = str(error.message).replace(self._key, "…")[:300]
            raise ToolFailed(f"{path.name} was not transcribed: HTTP {error.status_code}: {told}", again=again) from None
        except (openai.APIError, UnusableBody) as error:
            raise ToolFailed(f"{path.name} was not transcribed: {str(error).replace(self._key, '…')[:300]}") from None
        if not text:
            raise ToolFailed(f"nothing is said in {path.name}")
        return text

    def __repr__(self) -> str:
        return f"<transcriber {self.model}>"
