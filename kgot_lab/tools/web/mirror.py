"""A folder that stands in for the web: its files are the pages, found by words and visited by address."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from kgot_lab.errors import BadInput, NotInstalled, ToolFailed, require, shortly
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.tools.web.engines import RESULTS, WebHit
from kgot_lab.tools.web.fetching import Fetched
from kgot_lab.tools.web.pages import WebPage, page_of
from kgot_lab.types import Document

OFFLINE = "http://offline.invalid/"  # a name that no computer can have (RFC 2606)
_LARGEST = 50_000_000  # bytes of a file
_NEAR = 300  # characters shown of a page that was found


class Mirror:
    """The files of a folder as a web site: a search engine over them (BM25), and the pages at their
    addresses.

    `site` is the address of the folder's root. Without one, a folder that holds a folder for each host
    (en.wikipedia.org/wiki/…), as wget makes it, serves those hosts; any other is served at
    http://offline.invalid/. Nothing outside the folder is read, links on the disk are not followed, hidden
    files are passed over. Raises BadInput when there is no file.
    """

    def __init__(self, folder: str | Path, *, site: str = ""):
        require(folder, (str, Path), "a mirror is a folder, named by its path")
        self._root = Path(folder).resolve()
        if not self._root.is_dir():
            raise BadInput(f"{folder} is not a folder; a mirror is a folder of pages")
        self.hosts = not site and _holds_hosts(self._root)
        self.site = "" if self.hosts else _with_slash(site or OFFLINE)
        self._files = dict(_files(self._root))
        if not self._files:
            raise BadInput(f"{folder} holds no files to serve as pages")

    @property
    def name(self) -> str:
        """What it is called as a search engine."""
        return f"the folder {self._root.name}"

    def open_page(self, address: str) -> WebPage:
        """The page at an address; raises ToolFailed when the mirror does not hold it."""
        place = self._place(address)
        tried = [place, f"{place}/index.html".lstrip("/"), f"{place}.html", f"{place}/index.htm".lstrip("/")]
        if query := urlsplit(address).query:
            tried = [f"{place}?{unquote(query)}", f"{place}?{unquote(query)}.html", *tried]
        for name in tried:
            if name in self._files:
                return self._read(name)
        raise ToolFailed(
            f"there is no page {shortly(address)} in {self.name}, which is all there is; search in it"
        )

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """The pages that fit the words best; with a year, those that name it."""
        ranking = self._index.search(query)
        found = [self._pages[hit.id] for hit in ranking.hits]
        wanted = [
            page for page in found if not year or re.search(rf"\b{year}\b", f"{page.title} {page.text}")
        ]
        return tuple(WebHit(page.address, page.title, _near(page.text, query)) for page in wanted[:RESULTS])

    @cached_property
    def _pages(self) -> dict[str, WebPage]:
        """Every page that can be read, by address."""
        found = {}
        for name in self._files:
            try:
                page = self._read(name)
            except (ToolFailed, NotInstalled):
                continue  # a picture, say; it is told when it is visited
            found[page.address] = page
        if not found:
            raise ToolFailed(f"no file in {self.name} can be read as a page")
        return found

    @cached_property
    def _index(self) -> Stage:
        return bm25([Document(address, page.text, page.title) for address, page in self._pages.items()])

    def _place(self, address: str) -> str:
        """The name of a file in the folder that an address would have."""
        try:
            parts = urlsplit(address.strip())
        except ValueError:  # a bracket where a host should be
            raise ToolFailed(f"{shortly(address)} is not an address") from None
        path = unquote(parts.path).strip("/")
        if self.hosts:
            return f"{(parts.hostname or '').lower()}/{path}".rstrip("/")
        site = urlsplit(self.site)
        inside = unquote(parts.path).startswith(unquote(site.path)) or unquote(parts.path) + "/" == unquote(
            site.path
        )
        if parts.netloc.lower() != site.netloc.lower() or not inside:
            raise ToolFailed(f"{shortly(address)} is not on {self.site}, which is all that can be visited")
        return unquote(parts.path)[len(unquote(site.path)) :].strip("/")

    def _address(self, name: str) -> str:
        path = quote(
            name.removesuffix("index.html")
            if name.endswith(("/index.html",)) or name == "index.html"
            else name
        )
        return f"https://{path}" if self.hosts else f"{self.site}{path}"

    def _read(self, name: str) -> WebPage:
        path = self._files[name]
        if path.stat().st_size > _LARGEST:
            raise ToolFailed(f"{name} is larger than {_LARGEST // 1_000_000} MB")
        kind = mimetypes.guess_type(name)[0] or ("" if path.suffix else "text/html" if self.hosts else "")
        return page_of(Fetched(self._address(name), kind, "", path.read_bytes()))

    def __repr__(self) -> str:
        return f"<{self.name} in place of the web: {len(self._files)} pages at {self.site or 'its hosts'}>"


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """The visible regular files below a folder, by their names in it; links are left out, since they may lead
    anywhere.
    """
    for parent, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (Path(parent) / name).is_symlink()
        )
        for name in sorted(files):
            path = Path(parent) / name
            if not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _holds_hosts(root: Path) -> bool:
    """Whether every visible entry of a folder is a folder called like a host."""
    entries = [path for path in root.iterdir() if not path.name.startswith(".")]
    return bool(entries) and all(
        path.is_dir() and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", path.name) for path in entries
    )


def _with_slash(site: str) -> str:
    parts = urlsplit(site)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise BadInput(f"the site of a mirror is an http or https address, not {shortly(site)}")
    return site if site.endswith("/") else f"{site}/"


def _near(text: str, query: str) -> str:
    """Some characters of a text around the first word of the query that stands in it."""
    places = [
        match.start()
        for word in re.findall(r"\w{3,}", query)
        if (match := re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE))
    ]
    start = max(0, min(places, default=0) - _NEAR // 3)
    return " ".join(text[start : start + _NEAR].split())
