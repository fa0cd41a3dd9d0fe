"""Web pages as Markdown, with title and absolute links, and a browser that shows them in screens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urljoin, urlsplit

from kgot_lab.documents.files import decode_page, extract_text
from kgot_lab.errors import BadInput, ToolFailed, needs_extra, require_count, short_repr
from kgot_lab.tools.web.fetching import Fetched, WebFetcher
from kgot_lab.types import Document

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_OFFICE = "application/vnd.openxmlformats-officedocument"
_EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
}
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream")  # default types that say nothing
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_TITLE_LENGTH = 200
_MAX_MARKUP = 1_500_000  # characters of HTML to convert, which takes some seconds


@dataclass(frozen=True)
class WebPage:
    """A page: address, title, text, and what was guessed or omitted ("" if nothing)."""

    address: str
    title: str
    text: str
    remark: str = ""


def page_from(fetched: Fetched) -> WebPage:
    """Convert a fetched file to a page.

    Raises ToolFailed, which names the kind, if it holds no text.
    """
    extension = _extension(fetched)
    data = fetched.data
    title = ""
    cut = f"only the first {len(fetched.data) / 1e6:,.1f} MB were read" if fetched.cut else ""
    try:
        if extension == ".html":
            markup = decode_page(fetched.data, fetched.charset).text
            cut = (
                f"only the first {_MAX_MARKUP / 1e6:,.1f} MB were read" if len(markup) > _MAX_MARKUP else cut
            )
            title, data = readable_markup(markup[:_MAX_MARKUP], fetched.address)
        converted = extract_text(data, extension, "utf-8" if extension == ".html" else fetched.charset)
    except BadInput as error:
        problem = f"the page at {fetched.address} cannot be read as text"
        raise ToolFailed(f"{problem} ({fetched.kind or 'of no kind'}): {error}") from None
    remark = "; ".join(filter(None, (converted.remark, cut)))
    path = PurePosixPath(unquote(urlsplit(fetched.address).path))
    title = (title or converted.title or path.name)[:_MAX_TITLE_LENGTH]
    return WebPage(fetched.address, title, converted.text.strip(), remark)


def readable_markup(markup: str, address: str) -> tuple[str, bytes]:
    """Return the title of an HTML page and its visible content.

    Links are made absolute, hidden parts are removed, and frames become links. Raises NotInstalled without
    beautifulsoup4.
    """
    with needs_extra("web", "beautifulsoup4"):
        from bs4 import BeautifulSoup, Comment
    soup = BeautifulSoup(markup, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    if soup.title:
        soup.title.decompose()  # without a body tag it would be read as text
    if base := soup.find("base", href=True):
        address = urljoin(address, str(base["href"]))

    def is_unseen(tag: Tag) -> bool:
        return tag.name in ("script", "style", "template") or _is_hidden(tag.attrs)

    for hidden in soup.find_all(is_unseen):
        hidden.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    _make_links_absolute(soup, address)
    return title, str(soup).encode()


def _make_links_absolute(soup: BeautifulSoup, address: str) -> None:
    """Make links absolute, and turn frames and redirects into links.

    Images are replaced by their alternative text.
    """
    for link in soup.find_all("a", href=True):
        whole = _absolute_address(address, str(link["href"]))
        if whole:
            link["href"] = whole
        else:
            del link["href"]
    for picture in soup.find_all("img"):
        source = _absolute_address(address, str(picture.get("src") or ""))
        picture.attrs = {"alt": str(picture.get("alt") or "picture"), **({"src": source} if source else {})}
    for frame in soup.find_all(["frame", "iframe"], src=True):
        whole = _absolute_address(address, str(frame["src"]))
        name = str(frame.get("title") or frame.get("name") or "frame")
        _replace_by_link(soup, frame, whole, f"Frame: {name}")
    for meta in soup.find_all("meta", attrs={"http-equiv": re.compile("^refresh$", re.IGNORECASE)}):
        match = re.search(r"url\s*=\s*['\"]?([^'\"]+)", str(meta.get("content") or ""), re.IGNORECASE)
        if match and soup.body:
            soup.body.append(meta.extract())
            onward = _absolute_address(address, match[1].strip())
            _replace_by_link(soup, meta, onward, "This page leads on to")
    for frames in soup.find_all("frameset"):
        frames.name = "body"  # only the body is converted


def _replace_by_link(soup: BeautifulSoup, tag: object, address: str, text: str) -> None:
    link = soup.new_tag("a", href=address) if address else soup.new_tag("span")
    link.string = text
    paragraph = soup.new_tag("p")
    paragraph.append(link)
    tag.replace_with(paragraph)  # type: ignore[attr-defined]


def _absolute_address(address: str, link: str) -> str:
    """Return the absolute address of a link, or "" if it does not lead to a page."""
    try:
        whole = urljoin(address, link.strip())
        return whole if urlsplit(whole).scheme in ("http", "https") else ""
    except ValueError:  # a bracket in place of the host
        return ""


def _is_hidden(attributes: Mapping[str, object] | None) -> bool:
    if attributes is None:
        return False
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(str(attributes.get("style", ""))))


def _extension(fetched: Fetched) -> str:
    """Return the file extension for the content type.

    For an unknown type it is taken from the address and the first bytes.
    """
    if fetched.kind in _EXTENSIONS:
        return _EXTENSIONS[fetched.kind]
    text_endings = ("json", "xml", "javascript", "+json", "+xml")
    if fetched.kind.startswith("text/") or fetched.kind.endswith(text_endings):
        return ".txt"
    if fetched.kind not in _UNKNOWN:
        raise ToolFailed(f"{fetched.address} is {fetched.kind}, which holds no text to read")
    if fetched.data.startswith(b"%PDF-"):
        return ".pdf"
    suffix = PurePosixPath(urlsplit(fetched.address).path).suffix.lower()
    if suffix in _EXTENSIONS.values():
        return suffix
    return ".html" if re.match(rb"\s*(<!doctype html|<html)", fetched.data[:500], re.IGNORECASE) else ".txt"


# A text browser: one page and one screen at a time.

SCREEN = 5000  # characters, about 1,250 tokens


@dataclass(frozen=True)
class Screen:
    """A part of a page as the browser shows it, counted from 1."""

    page: WebPage
    number: int
    of: int
    text: str

    @property
    def where(self) -> str:
        """The position in words, with the address."""
        return f"page {self.number} of {self.of} of {self.page.address}"


class Browser:
    """Shows pages in screens of about `letters` characters, and remembers what it showed.

    `open_page` returns the page at an address.
    """

    def __init__(self, open_page: Callable[[str], WebPage], letters: int = SCREEN):
        require_count(letters, 100, "letters", "a screen holds that many")
        self._open_page, self._letters = open_page, letters
        self.history: list[WebPage] = []  # all opened pages, in order; the last is open
        self._trail: list[WebPage] = []  # the back stack
        self._screens: list[str] = [""]
        self._at = 0
        self._sought = ""
        self._found = -1  # index of the last match in the page
        self._seen: dict[str, tuple[WebPage, set[int]]] = {}

    @property
    def page(self) -> WebPage:
        """The open page. Raises ToolFailed if there is none."""
        if not self.history:
            raise ToolFailed("no page is open yet; search, or visit one")
        return self.history[-1]

    def visit(self, address: str) -> Screen:
        """Open a page and return its first screen. The address may be relative to the open page.

        Raises ToolFailed if the page cannot be opened.
        """
        base = self.history[-1].address if self.history else ""
        try:
            target = urljoin(base, address.strip())
        except ValueError:
            raise ToolFailed(f"{short_repr(address)} is not an address") from None
        is_whole = re.match(r"[a-zA-Z][\w+.-]*:", target)
        return self.show(self._open_page(target if is_whole else f"https://{target.lstrip('/')}"))

    def show(self, page: WebPage) -> Screen:
        """Show a page that was obtained elsewhere and return its first screen."""
        self._trail.append(page)
        return self._open(page)

    def back(self) -> Screen:
        """Return to the previous page and return its first screen.

        Raises ToolFailed if there is none.
        """
        if len(self._trail) < 2:
            raise ToolFailed("there is no page to go back to")
        self._trail.pop()
        return self._open(self._trail[-1])

    def page_down(self) -> Screen:
        """Return the next screen.

        Raises ToolFailed at the end.
        """
        if self._at + 1 >= len(self._screens):
            raise ToolFailed(f"this is the end of the page, {self._show_screen().where}")
        return self._show_screen(self._at + 1)

    def page_up(self) -> Screen:
        """Return the previous screen.

        Raises ToolFailed at the beginning.
        """
        if self._at == 0:
            raise ToolFailed(f"this is the beginning of the page, {self._show_screen().where}")
        return self._show_screen(self._at - 1)

    def find(self, text: str) -> Screen:
        """Return the first screen that contains a text, ignoring case.

        Raises ToolFailed if there is none.
        """
        self._sought, self._found = text, -1
        return self.find_next()

    def find_next(self) -> Screen:
        """Return the screen of the next match of the last search.

        Raises ToolFailed if there is none.
        """
        page = self.page
        if not self._sought.split():
            raise ToolFailed("nothing was sought yet; say which text to find")
        # allow line ends and emphasis between words
        pattern = re.compile(r"[\s*_]+".join(map(re.escape, self._sought.split())), re.IGNORECASE)
        match = pattern.search(page.text, self._found + 1)
        if match is None:
            once = self._found >= 0
            raise ToolFailed(
                f"{short_repr(self._sought)} stands {'no further' if once else 'nowhere'} on {page.address}; try other words"
            )
        self._found = match.start()
        ends = accumulate(map(len, self._screens))
        return self._show_screen(next(number for number, end in enumerate(ends) if self._found < end))

    def mark_seen(self, length: int) -> None:
        """Record that the first characters of the open page were read in another way."""
        starts = [0, *accumulate(map(len, self._screens))]
        self._seen[self.page.address][1].update(i for i in range(len(self._screens)) if starts[i] < length)

    def seen_documents(self) -> tuple[Document, ...]:
        """Return the screens that were shown, as one document for each page with its address as id."""
        documents = []
        for address, (page, numbers) in self._seen.items():
            page_screens = split_screens(page.text, self._letters)
            text = "\n\n".join(page_screens[number].strip() for number in sorted(numbers))
            documents.append(Document(address, text, page.title))
        return tuple(documents)

    def _open(self, page: WebPage) -> Screen:
        self.history.append(page)
        self._screens, self._found, self._sought = split_screens(page.text, self._letters), -1, ""
        return self._show_screen(0)

    def _show_screen(self, number: int | None = None) -> Screen:
        page = self.page
        self._at = self._at if number is None else number
        shown_page, shown_numbers = self._seen.get(page.address, (page, set()))
        if shown_page.text != page.text:  # the page changed between two visits; the last version counts
            shown_numbers = set()
        self._seen[page.address] = page, {*shown_numbers, self._at}
        return Screen(page, self._at + 1, len(self._screens), self._screens[self._at])


def split_screens(text: str, length: int = SCREEN) -> list[str]:
    """Split a text into parts of at most `letters` characters, which join to the text.

    Cuts are at the end of a paragraph, line or word if one is near.
    """
    parts, start = [], 0
    while len(text) - start > length:
        window = text[start : start + length]
        breaks = ((window.rfind(mark), len(mark)) for mark in ("\n\n", "\n", " "))
        ends = (found + size for found, size in breaks if found > length * 0.7)
        end = start + next(ends, length)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


# Transcripts of YouTube videos.

_YOUTUBE_HOSTS = ("youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com", "youtu.be")


def video_id(address: str) -> str:
    """Return the id of the YouTube video at an address, or ""."""
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket in place of the host
        return ""
    if (parts.hostname or "").lower() not in _YOUTUBE_HOSTS:
        return ""
    path = parts.path.strip("/").split("/")
    candidate = path[-1] if path[0] in ("shorts", "live", "embed") else ""
    if parts.hostname == "youtu.be":
        candidate = path[0]
    candidate = candidate or (parse_qs(parts.query).get("v") or [""])[0]
    return candidate if re.fullmatch(r"[\w-]{11}", candidate) else ""


def transcript_page(
    video: str, *, session: Any = None, seconds: float = 20.0, max_bytes: int = 5_000_000
) -> WebPage:
    """Return the transcript of a video as a page, in English if available, else in the first language.

    `seconds` is the time limit for all requests together, `max_bytes` the limit of one answer. `session` is
    a requests.Session to use for this page. Raises ToolFailed if there is no transcript, and NotInstalled
    without youtube-transcript-api.
    """
    with needs_extra("web", "youtube-transcript-api"):
        from youtube_transcript_api import (
            RequestBlocked,
            YouTubeRequestFailed,
            YouTubeTranscriptApi,
            YouTubeTranscriptApiException,
        )
    from requests import RequestException, Session

    try:
        with session or Session() as client:
            for scheme in ("http://", "https://"):
                client.mount(scheme, _bounded_adapter(seconds, max_bytes))
            transcripts = list(YouTubeTranscriptApi(http_client=client).list(video))
            english = (transcript for transcript in transcripts if transcript.language_code.startswith("en"))
            transcript = next(english, transcripts[0]).fetch()
    except (RequestBlocked, YouTubeRequestFailed, RequestException) as error:
        raise ToolFailed(
            f"YouTube did not hand out the transcript of {video} ({type(error).__name__})", again=True
        ) from None
    except (YouTubeTranscriptApiException, IndexError) as error:
        raise ToolFailed(f"there is no transcript of the video {video} ({type(error).__name__})") from None
    parts = ((int(part.start), " ".join(part.text.split())) for part in transcript)
    lines = (f"[{second // 60}:{second % 60:02}] {text}" for second, text in parts)
    address, title = f"https://www.youtube.com/watch?v={video}", f"Transcript of video {video}"
    return WebPage(address, title, "\n".join(lines), f"in {transcript.language}")


def _bounded_adapter(seconds: float, max_bytes: int) -> Any:
    """Create a requests adapter with a deadline for all requests and a size limit for each answer."""
    from requests import ReadTimeout
    from requests.adapters import HTTPAdapter

    deadline = time.monotonic() + seconds

    def pieces(raw: Any) -> Iterator[bytes]:
        # read1 returns what has arrived, read waits for all bytes
        size, read = (0, getattr(raw, "read1", raw.read))
        with closing(raw):
            while piece := read(1 << 14, decode_content=True):
                size += len(piece)
                if size > max_bytes:
                    raise ToolFailed(
                        f"YouTube sent more than {max_bytes / 1e6:,.1f} MB, the most that is read"
                    )
                if time.monotonic() > deadline:
                    raise ReadTimeout("the answer trickles in too slowly")
                yield piece

    class Bounded(HTTPAdapter):
        """An adapter that sends with the remaining time, and reads the body in bounded pieces."""

        def send(self, *request: Any, **options: Any) -> Any:
            timeout = max(0.01, deadline - time.monotonic())
            response = super().send(*request, **{**options, "timeout": timeout})
            response.raw.stream = lambda *_, **__: pieces(response.raw)
            return response

    return Bounded()


def page_opener(web: WebFetcher) -> Callable[[str], WebPage]:
    """Create a function that opens pages, using the transcript for a YouTube video.

    It raises ToolFailed if a page cannot be opened, and NotInstalled if a package is missing.
    """

    def open_page(address: str) -> WebPage:
        video = video_id(address)
        return transcript_page(video) if video else page_from(web.fetch(address))

    return open_page
