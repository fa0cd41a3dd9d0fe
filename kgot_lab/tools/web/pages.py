"""A web page as text one can read: Markdown, with its title and with whole addresses in its links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from kgot_lab.documents.files import text_from
from kgot_lab.errors import BadInput, NotInstalled, ToolFailed
from kgot_lab.tools.web.fetching import Fetched

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_OFFICE = "application/vnd.openxmlformats-officedocument"
_EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
}
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream")  # what servers say of anything
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LONGEST_TITLE = 200
_MOST_MARKUP = 1_500_000  # characters of HTML that are made text, which takes some seconds


@dataclass(frozen=True)
class WebPage:
    """A page: its address, title, text, and what had to be guessed or left out to read it ("" if nothing)."""

    address: str
    title: str
    text: str
    remark: str = ""


def page_of(fetched: Fetched) -> WebPage:
    """What was fetched as a page; raises ToolFailed for what holds no text, with its kind."""
    extension = _extension(fetched)
    data, title, cut = (
        fetched.data,
        "",
        f"only the first {len(fetched.data) / 1e6:,.1f} MB were read" if fetched.cut else "",
    )
    if extension == ".html":
        markup = _decoded_markup(fetched)
        cut = f"only the first {_MOST_MARKUP / 1e6:,.1f} MB were read" if len(markup) > _MOST_MARKUP else cut
        title, data = readable_markup(markup[:_MOST_MARKUP], fetched.address)
    try:
        found = text_from(data, extension, "utf-8" if extension == ".html" else fetched.charset)
    except BadInput as error:
        raise ToolFailed(
            f"the page at {fetched.address} cannot be read as text ({fetched.kind or 'of no kind'}): {error}"
        ) from None
    remark = "; ".join(filter(None, (found.remark, cut)))
    path = PurePosixPath(unquote(urlsplit(fetched.address).path))
    return WebPage(
        fetched.address, (title or found.title or path.name)[:_LONGEST_TITLE], found.text.strip(), remark
    )


def readable_markup(markup: str, address: str) -> tuple[str, bytes]:
    """The title of an HTML page, and the page as a reader sees it: links made whole, hidden parts left out,
    frames as links.
    """
    try:
        from bs4 import BeautifulSoup, Comment
    except ImportError:
        raise NotInstalled("web", "beautifulsoup4") from None
    soup = BeautifulSoup(markup, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    if soup.title:
        soup.title.decompose()  # where a page names no body, it would be read as part of the text
    if base := soup.find("base", href=True):
        address = urljoin(address, str(base["href"]))
    for hidden in soup.find_all(
        lambda tag: tag.name in ("script", "style", "template") or _is_hidden(tag.attrs)
    ):
        hidden.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    _make_whole(soup, address)
    return title, str(soup).encode()


def _make_whole(soup: BeautifulSoup, address: str) -> None:
    """Give links whole addresses, name pictures by their alternative text, and turn frames and page-made
    redirects into links.
    """
    for link in soup.find_all("a", href=True):
        whole = _joined(address, str(link["href"]))
        if whole:
            link["href"] = whole
        else:
            del link["href"]
    for picture in soup.find_all("img"):
        source = _joined(address, str(picture.get("src") or ""))
        picture.attrs = {"alt": str(picture.get("alt") or "picture"), **({"src": source} if source else {})}
    for frame in soup.find_all(["frame", "iframe"], src=True):
        whole, name = (
            _joined(address, str(frame["src"])),
            str(frame.get("title") or frame.get("name") or "frame"),
        )
        _replace_by_link(soup, frame, whole, f"Frame: {name}")
    for meta in soup.find_all("meta", attrs={"http-equiv": re.compile("^refresh$", re.IGNORECASE)}):
        match = re.search(r"url\s*=\s*['\"]?([^'\"]+)", str(meta.get("content") or ""), re.IGNORECASE)
        if match and soup.body:
            soup.body.append(meta.extract())
            _replace_by_link(soup, meta, _joined(address, match[1].strip()), "This page leads on to")
    for frames in soup.find_all("frameset"):
        frames.name = "body"  # what stands outside a body is not converted


def _replace_by_link(soup: BeautifulSoup, tag: object, address: str, text: str) -> None:
    link = soup.new_tag("a", href=address) if address else soup.new_tag("span")
    link.string = text
    paragraph = soup.new_tag("p")
    paragraph.append(link)
    tag.replace_with(paragraph)  # type: ignore[attr-defined]


def _joined(address: str, link: str) -> str:
    """The whole address of a link, or "" for one that does not lead to a page."""
    try:
        whole = urljoin(address, link.strip())
        return whole if urlsplit(whole).scheme in ("http", "https") else ""
    except ValueError:  # a bracket where a host should be
        return ""


def _is_hidden(attributes: Mapping[str, object] | None) -> bool:
    return attributes is not None and (
        "hidden" in attributes or bool(_UNSEEN.search(str(attributes.get("style", ""))))
    )


def _decoded_markup(fetched: Fetched) -> str:
    from bs4.dammit import EncodingDetector, UnicodeDammit

    named = EncodingDetector.find_declared_encoding(fetched.data, is_html=True, search_entire_document=False)
    # a page that is UTF-8 throughout is UTF-8, whatever it says: servers declare Latin-1 from habit
    likely = (
        [fetched.charset, named]
        if _escapes(fetched.charset or named or "")
        else ["utf-8", fetched.charset, named]
    )
    found = UnicodeDammit(fetched.data, [name for name in likely if name], is_html=True)
    return found.unicode_markup or fetched.data.decode("utf-8", "replace")


def _escapes(charset: str) -> bool:
    """Whether text in a character set may pass for UTF-8 although it is not."""
    return charset.lower().startswith(("utf-16", "utf-32", "iso-2022", "hz"))


def _extension(fetched: Fetched) -> str:
    """The extension of files of this kind; where the server does not say, by the address and the first bytes."""
    if fetched.kind in _EXTENSIONS:
        return _EXTENSIONS[fetched.kind]
    if fetched.kind.startswith("text/") or fetched.kind.endswith(
        ("json", "xml", "javascript", "+json", "+xml")
    ):
        return ".txt"
    if fetched.kind not in _UNKNOWN:
        raise ToolFailed(f"{fetched.address} is {fetched.kind}, which holds no text to read")
    if fetched.data.startswith(b"%PDF-"):
        return ".pdf"
    suffix = PurePosixPath(urlsplit(fetched.address).path).suffix.lower()
    if suffix in _EXTENSIONS.values():
        return suffix
    return ".html" if re.match(rb"\s*(<!doctype html|<html)", fetched.data[:500], re.IGNORECASE) else ".txt"
