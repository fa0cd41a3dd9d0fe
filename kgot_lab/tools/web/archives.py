"""A local mirror of the web, the web archive, and Wikipedia."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kgot_lab.documents.files import extract_text
from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, needs_extra, require, short_repr
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.cleaning import plain_text
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.tools.web.engines import MAX_RESULTS, JsonApi, WebHit
from kgot_lab.tools.web.fetching import USER_AGENT, Fetched
from kgot_lab.tools.web.pages import WebPage, page_from, readable_markup
from kgot_lab.types import Document, Json

OFFLINE = "http://offline.invalid/"  # a reserved name (RFC 2606)
_MAX_FILE_BYTES = 50_000_000  # bytes of a file
_EXCERPT_LENGTH = 300  # characters of an excerpt


class Mirror:
    """The files of a folder as a web site: a search engine over them (BM25), and the pages by address.

    A folder with one folder for each host (en.wikipedia.org/wiki/…), as wget creates it, serves those hosts.
    Any other folder is served at http://offline.invalid/. Nothing outside the folder is read, links on the disk
    are not followed, and hidden files are ignored. Raises BadInput if there is no file.
    """

    def __init__(self, folder: str | Path):
        require(folder, (str, Path), "a mirror is a folder, named by its path")
        self._root = Path(folder).resolve()
        if not self._root.is_dir():
            raise BadInput(f"{folder} is not a folder; a mirror is a folder of pages")
        self.hosts = _has_host_folders(self._root)
        self._files = dict(_files(self._root))
        if not self._files:
            raise BadInput(f"{folder} holds no files to serve as pages")

    @property
    def name(self) -> str:
        """Its name as a search engine."""
        return f"the folder {self._root.name}"

    def open_page(self, address: str) -> WebPage:
        """Return the page at an address.

        Raises ToolFailed if the mirror does not have it.
        """
        file_name = self._file_name(address)
        indices = (
            f"{file_name}/index.html".lstrip("/"),
            f"{file_name}.html",
            f"{file_name}/index.htm".lstrip("/"),
        )
        candidates = [file_name, *indices]
        if query := urlsplit(address).query:
            candidates = [f"{file_name}?{unquote(query)}", f"{file_name}?{unquote(query)}.html", *candidates]
        for name in candidates:
            if name in self._files:
                return self._read(name)
        problem = f"there is no page {short_repr(address)} in {self.name}, which is all there is"
        raise ToolFailed(f"{problem}; search in it")

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """Return the pages that match the query best. With a year, only those that mention it."""
        ranking = self._index.search(query)
        pages = [self._pages[hit.id] for hit in ranking.hits]
        texts = ((page, f"{page.title} {page.text}") for page in pages)
        matching = [page for page, text in texts if not year or re.search(rf"\b{year}\b", text)]
        shown = matching[:MAX_RESULTS]
        return tuple(WebHit(page.address, page.title, _excerpt(page.text, query)) for page in shown)

    @cached_property
    def _pages(self) -> dict[str, WebPage]:
        """All readable pages, by address."""
        pages = {}
        for name in self._files:
            try:
                page = self._read(name)
            except (ToolFailed, NotInstalled):
                continue  # such as an image; the error is raised when it is opened
            pages[page.address] = page
        if not pages:
            raise ToolFailed(f"no file in {self.name} can be read as a page")
        return pages

    @cached_property
    def _index(self) -> Stage:
        pages = ((address, page.text, page.title) for address, page in self._pages.items())
        return bm25([Document(*map(plain_text, page)) for page in pages])

    def _file_name(self, address: str) -> str:
        """Return the file name in the folder for an address."""
        try:
            parts = urlsplit(address.strip())
        except ValueError:  # a bracket where a host should be
            raise ToolFailed(f"{short_repr(address)} is not an address") from None
        path = unquote(parts.path).strip("/")
        if self.hosts:
            return f"{(parts.hostname or '').lower()}/{path}".rstrip("/")
        if parts.netloc.lower() != urlsplit(OFFLINE).netloc:
            raise ToolFailed(f"{short_repr(address)} is not on {OFFLINE}, which is all that can be visited")
        return path

    def _address(self, name: str) -> str:
        is_index = name == "index.html" or name.endswith("/index.html")
        path = quote(name.removesuffix("index.html") if is_index else name)
        return f"https://{path}" if self.hosts else f"{OFFLINE}{path}"

    def _read(self, name: str) -> WebPage:
        path = self._files[name]
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ToolFailed(f"{name} is larger than {_MAX_FILE_BYTES // 1_000_000} MB")
        kind = mimetypes.guess_type(name)[0] or ("" if path.suffix else "text/html" if self.hosts else "")
        return page_from(Fetched(self._address(name), kind, "", path.read_bytes()))

    def __repr__(self) -> str:
        where = "its hosts" if self.hosts else OFFLINE
        return f"<{self.name} in place of the web: {len(self._files)} pages at {where}>"


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the visible regular files below a folder by their relative path.

    Links are skipped, since they may lead anywhere.
    """
    for parent, folders, files in os.walk(root):
        visible = (name for name in folders if not name.startswith("."))
        folders[:] = sorted(name for name in visible if not (Path(parent) / name).is_symlink())
        for name in sorted(files):
            path = Path(parent) / name
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _has_host_folders(root: Path) -> bool:
    """Return whether every visible entry of a folder is a folder named like a host."""
    entries = [path for path in root.iterdir() if not path.name.startswith(".")]
    host = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?")
    return bool(entries) and all(path.is_dir() and host.fullmatch(path.name) for path in entries)


def _excerpt(text: str, query: str) -> str:
    """Return an excerpt around the first query word in a text."""
    words = (rf"\b{re.escape(word)}" for word in re.findall(r"\w{3,}", query))
    positions = [match.start() for word in words if (match := re.search(word, text, re.IGNORECASE))]
    start = max(0, min(positions, default=0) - _EXCERPT_LENGTH // 3)
    return " ".join(text[start : start + _EXCERPT_LENGTH].split())


# Past versions of pages, from the Internet Archive.


@dataclass(frozen=True)
class Archived:
    """An archived copy of a page: its address, and its day as YYYY-MM-DD."""

    address: str
    day: str


class WebArchive:
    """Finds archived copies of pages with archive.org's availability API, or a compatible one."""

    def __init__(self, *, address: str = "https://archive.org/wayback/available"):
        self._api = JsonApi("the web archive", address)

    def nearest(self, address: str, day: str) -> Archived:
        """Return the copy nearest to a day (YYYYMMDD or YYYY-MM-DD, or a prefix).

        Raises ToolFailed if there is none.
        """
        stamp = re.sub(r"\D", "", day)
        if not 4 <= len(stamp) <= 14:
            raise ToolFailed(f"a date is written YYYYMMDD, as in 20190704, not {short_repr(day)}")
        answer = self._api.get({"url": address, "timestamp": stamp})
        closest = (answer.get("archived_snapshots") or {}).get("closest") or {}
        copy_address, timestamp = str(closest.get("url") or ""), str(closest.get("timestamp") or "")
        if not closest.get("available") or not copy_address.startswith(("http://", "https://")):
            raise ToolFailed(f"the web archive holds no copy of {short_repr(address)}")
        copy_address = re.sub(r"^http://(web\.archive\.org/)", r"https://\1", copy_address)
        return Archived(copy_address, f"{timestamp[:4]}-{timestamp[4:6]}-{timestamp[6:8]}")

    def __repr__(self) -> str:
        return f"<web archive at {self._api.address}>"


# Wikipedia articles, in their current or a past version.

_EDITOR_PARTS = ".mw-editsection, sup.reference, .navbox, .noprint, .mw-empty-elt, .metadata, .sistersitebox"  # for editors, not readers
_MAX_MEANINGS = 30


class Wikipedia:
    """A wiki with a MediaWiki API: articles as Markdown with tables. `address` is that of its api.php.

    Wikimedia asks that `user_agent` contain a contact if many articles are read.
    """

    def __init__(self, *, address: str = "https://en.wikipedia.org/w/api.php", user_agent: str = USER_AGENT):
        self._api = JsonApi("Wikipedia", address, headers={"user-agent": user_agent})

    def article(self, title: str, day: str = "") -> WebPage:
        """Return an article by its title, following redirects.

        With a day (YYYY-MM-DD), it is the last version up to that day. Raises ToolFailed if there is none,
        with similar titles, or if the title is ambiguous, with its meanings.
        """
        stamp = _end_of_day(day) if day.strip() else ""
        info = self._page_info(title, stamp)
        if "disambiguation" in (info.get("pageprops") or {}):
            problem = f"{info['title']!r} has several meanings; ask for one of them"
            raise ToolFailed(f"{problem}: {self._meanings(str(info['title']))}")
        versions = info.get("revisions") or []
        if not versions:
            raise ToolFailed(f"the article {info['title']!r} did not exist yet on {day}")
        return self._page(info, int(versions[0]["revid"]), str(versions[0].get("timestamp", ""))[:10])

    def _page_info(self, title: str, stamp: str) -> dict[str, Any]:
        """Return the wiki's metadata of a page: its title, address, and the requested version."""
        query: dict[str, str | int] = {"titles": _clean_title(title), "redirects": 1, "inprop": "url"}
        query |= {"prop": "info|pageprops|revisions", "rvprop": "ids|timestamp", "rvlimit": 1}
        query |= {"rvstart": stamp, "rvdir": "older"} if stamp else {}
        pages = self._query("query", **query).get("pages") or [{}]
        info = pages[0]
        if not isinstance(info, dict) or info.get("missing") or info.get("invalid") or "title" not in info:
            raise ToolFailed(f"Wikipedia has no article {short_repr(title)}{self._similar_titles(title)}")
        return info

    def _page(self, info: dict[str, Any], version: int, when: str) -> WebPage:
        parsed = self._query("parse", oldid=version, prop="text|displaytitle", disableeditsection=1)
        markup = str(parsed.get("text") or "")
        address = str(info.get("fullurl") or self._api.address)
        _, data = readable_markup(_without_editor_parts(markup), address)
        text = extract_text(data, ".html", "utf-8").text.strip()
        old = "" if version == info.get("lastrevid") else f"{'&' if '?' in address else '?'}oldid={version}"
        title = str(info["title"])
        return WebPage(address + old, title, f"# {title}\n\n{text}", f"as of {when}")

    def _meanings(self, title: str) -> str:
        listed = self._query("query", titles=title, prop="links", plnamespace=0, pllimit=_MAX_MEANINGS)
        pages = listed.get("pages") or [{}]
        meanings = "; ".join(str(link.get("title")) for link in pages[0].get("links") or [])
        return meanings or "they are not listed"

    def _similar_titles(self, title: str) -> str:
        answer = self._query("query", list="search", srsearch=_clean_title(title), srlimit=5, srprop="")
        near = "; ".join(str(hit.get("title")) for hit in answer.get("search") or [])
        return f"; there are: {near}" if near else ""

    def _query(self, action: str, **parameters: str | int) -> dict[str, Json]:
        answer = self._api.get({**_COMMON_PARAMETERS, "action": action, **parameters})
        _raise_service_error(answer)
        inside = answer.get(action)
        return inside if isinstance(inside, dict) else {}

    def __repr__(self) -> str:
        return f"<Wikipedia at {self._api.address}>"


_COMMON_PARAMETERS: dict[str, str | int] = {"format": "json", "formatversion": 2}


def _raise_service_error(answer: dict[str, Json]) -> None:
    if isinstance(answer.get("error"), dict):
        error = answer["error"]
        code = str(error.get("code"))
        again = code in ("maxlag", "ratelimited", "readonly")
        raise ToolFailed(f"Wikipedia: {error.get('info') or code}", again=again)


def _clean_title(title: str) -> str:
    """Remove characters that would make a title several titles or name a section."""
    return " ".join(re.sub(r"[|\[\]{}<>#\x00-\x1f]", " ", title).split())[:255]


def _end_of_day(day: str) -> str:
    """Return the end of a day as MediaWiki expects it.

    Raises ToolFailed for an invalid date.
    """
    try:
        return f"{date.fromisoformat(day.strip()).isoformat()}T23:59:59Z"
    except ValueError:
        raise ToolFailed(f"a date is written YYYY-MM-DD, as in 2019-07-04, not {short_repr(day)}") from None


def _without_editor_parts(markup: str) -> str:
    with needs_extra("web", "beautifulsoup4"):
        from bs4 import BeautifulSoup
    soup = BeautifulSoup(markup, "html.parser")
    for part in soup.select(_EDITOR_PARTS):
        part.decompose()
    return str(soup)


# The Wikipedia tool, shared by the loop and the search agent.


def wikipedia(wiki: Wikipedia | None = None, *, name: str = "wikipedia") -> TextTool:
    """Create a tool that returns a Wikipedia article with its tables, in its current or a past version."""
    source = wiki or Wikipedia()

    def run(article: str, date: str = "") -> Result:
        try:
            page = source.article(article, date)
        except NotInstalled as error:
            raise ToolFailed(f"{name}: {error}") from error
        except ToolFailed as error:
            raise ToolFailed(f"{name}: {error}", again=error.again) from None
        return Result(page.text, (Document(page.address, page.text, page.title),))

    description = (
        "Returns an article of Wikipedia by its title, with its tables; with a date, as it was on that day."
    )
    may = {"date": "YYYY-MM-DD, only if the question is about an older version"}
    return TextTool(name, description, {"article": "the title of the article"}, run, finds="article", may=may)
