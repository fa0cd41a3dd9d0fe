"""What is said in a YouTube video, by its transcript."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kgot_lab.errors import NotInstalled, ToolFailed
from kgot_lab.tools.web.pages import WebPage

_HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com", "youtu.be")


def video_in(address: str) -> str:
    """The id of the YouTube video at an address, "" for any other address."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket where a host should be
        return ""
    if (parts.hostname or "").lower() not in _HOSTS:
        return ""
    path = parts.path.strip("/").split("/")
    candidate = (
        path[0]
        if parts.hostname == "youtu.be"
        else path[-1]
        if path[0] in ("shorts", "live", "embed")
        else ""
    )
    candidate = candidate or (parse_qs(parts.query).get("v") or [""])[0]
    return candidate if re.fullmatch(r"[\w-]{11}", candidate) else ""


def transcript_page(
    video: str, *, session: Any = None, seconds: float = 20.0, most_bytes: int = 5_000_000
) -> WebPage:
    """The transcript of a video as a page, in English where there is one, or else in the first language there
    is.

    `seconds` is for all requests together, `most_bytes` for one answer; `session` is a requests.Session to
    ask with, for this page only. Raises ToolFailed when there is no transcript, NotInstalled without
    youtube-transcript-api.
    """
    try:
        from youtube_transcript_api import (
            RequestBlocked,
            YouTubeRequestFailed,
            YouTubeTranscriptApi,
            YouTubeTranscriptApiException,
        )
    except ImportError:
        raise NotInstalled("web", "youtube-transcript-api") from None
    from requests import RequestException, Session

    try:
        with session or Session() as asking:
            for scheme in ("http://", "https://"):
                asking.mount(scheme, _bounded_adapter(seconds, most_bytes))
            listed = list(YouTubeTranscriptApi(http_client=asking).list(video))
            chosen = next((each for each in listed if each.language_code.startswith("en")), listed[0])
            said = chosen.fetch()
    except (RequestBlocked, YouTubeRequestFailed, RequestException) as error:
        raise ToolFailed(
            f"YouTube did not hand out the transcript of {video} ({type(error).__name__})", again=True
        ) from None
    except (YouTubeTranscriptApiException, IndexError) as error:
        raise ToolFailed(f"there is no transcript of the video {video} ({type(error).__name__})") from None
    lines = (
        f"[{int(part.start) // 60}:{int(part.start) % 60:02}] {' '.join(part.text.split())}" for part in said
    )
    return WebPage(
        f"https://www.youtube.com/watch?v={video}",
        f"Transcript of video {video}",
        "\n".join(lines),
        f"in {said.language}",
    )


def _bounded_adapter(seconds: float, most_bytes: int) -> Any:
    """What a requests.Session sends by: all its requests end so many seconds from now, and no answer is
    longer than so many bytes.
    """
    from requests import ReadTimeout
    from requests.adapters import HTTPAdapter

    deadline = time.monotonic() + seconds

    def pieces(raw: Any) -> Iterator[bytes]:
        # read1 gives what has come, read waits for all it asked for
        size, read = (0, getattr(raw, "read1", raw.read))
        with closing(raw):
            while piece := read(1 << 14, decode_content=True):
                size += len(piece)
                if size > most_bytes:
                    raise ToolFailed(
                        f"YouTube sent more than {most_bytes / 1e6:,.1f} MB, the most that is read"
                    )
                if time.monotonic() > deadline:
                    raise ReadTimeout("the answer trickles in too slowly")
                yield piece

    class Bounded(HTTPAdapter):
        """Sends with what is left of the time, and lets the body be read in bounded pieces."""

        def send(self, *request: Any, **options: Any) -> Any:
            response = super().send(
                *request, **{**options, "timeout": max(0.01, deadline - time.monotonic())}
            )
            response.raw.stream = lambda *_, **__: pieces(response.raw)
            return response

    return Bounded()
