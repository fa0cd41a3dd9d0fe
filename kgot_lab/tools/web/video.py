"""What is said in a YouTube video, by its transcript."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kgot_lab.errors import NotInstalled, ToolFailed
from kgot_lab.tools.web.pages import WebPage

_HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com", "youtu.be")


def video_in(address: str) -> str:
    """The id of the YouTube video at an address, "" for any other address."""
    parts = urlsplit(address)
    if (parts.hostname or "").lower() not in _HOSTS:
        return ""
    path = parts.path.strip("/").split("/")
    candidate = path[0] if parts.hostname == "youtu.be" else path[-1] if path[0] in ("shorts", "live", "embed") else ""
    candidate = candidate or (parse_qs(parts.query).get("v") or [""])[0]
    return candidate if re.fullmatch(r"[\w-]{11}", candidate) else ""


def transcript_page(video: str, *, session: Any = None) -> WebPage:
    """The transcript of a video as a page, in English where there is one, or else in the first language there is.

    `session` is a requests.Session to ask with. Raises ToolFailed when there is none, NotInstalled without youtube-transcript-api.
    """
    try:
        from youtube_transcript_api import RequestBlocked, YouTubeRequestFailed, YouTubeTranscriptApi, YouTubeTranscriptApiException
    except ImportError:
        raise NotInstalled("web", "youtube-transcript-api") from None
    from requests import RequestException

    try:
        listed = list(YouTubeTranscriptApi(http_client=session).list(video))
        chosen = next((each for each in listed if each.language_code.startswith("en")), listed[0])
        said = chosen.fetch()
    except (RequestBlocked, YouTubeRequestFailed, RequestException) as error:
        raise ToolFailed(f"YouTube did not hand out the transcript of {video} ({type(error).__name__})", again=True) from None
    except (YouTubeTranscriptApiException, IndexError) as error:
        raise ToolFailed(f"there is no transcript of the video {video} ({type(error).__name__})") from None
    lines = (f"[{int(part.start) // 60}:{int(part.start) % 60:02}] {' '.join(part.text.split())}" for part in said)
    return WebPage(f"https://www.youtube.com/watch?v={video}", f"Transcript of video {video}", "\n".join(lines), f"in {said.language}")
