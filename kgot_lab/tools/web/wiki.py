"""Articles of Wikipedia, as they are or as they were on a day."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from kgot_lab.documents.files import text_from
from kgot_lab.errors import NotInstalled, ToolFailed, shortly
from kgot_lab.tools.web.engines import JsonApi
from kgot_lab.tools.web.fetching import USER_AGENT
from kgot_lab.tools.web.pages import WebPage, readable_markup
from kgot_lab.types import Json

_LEFT_OUT = ".mw-editsection, sup.reference, .navbox, .noprint, .mw-empty-elt, .metadata, .sistersitebox"  # for editors, not readers
_MOST_MEANINGS = 30


class Wikipedia:
    """A wiki by its MediaWiki service: articles as Markdown, tables kept; `address` is that of its api.php.

    Wikimedia asks that `user_agent` name a contact where many articles are read.
    """

    def __init__(self, *, address: str = "https://en.wikipedia.org/w/api.php", user_agent: str = USER_AGENT):
        self._api = JsonApi("Wikipedia", address, headers={"user-agent": user_agent})

    def article(self, title: str, day: str = "") -> WebPage:
        """An article by its title, redirects followed; with a day (YYYY-MM-DD), its last version of that day
        or before.

        Raises ToolFailed when there is none, with titles that are near, or when the title has several
        meanings, with those.
        """
        stamp = _end_of(day) if day.strip() else ""
        about = self._about(title, stamp)
        if "disambiguation" in (about.get("pageprops") or {}):
            raise ToolFailed(
                f"{about['title']!r} has several meanings; ask for one of them: {self._meanings(str(about['title']))}"
            )
        versions = about.get("revisions") or []
        if not versions:
            raise ToolFailed(f"the article {about['title']!r} did not exist yet on {day}")
        return self._page(about, int(versions[0]["revid"]), str(versions[0].get("timestamp", ""))[:10])

    def _about(self, title: str, stamp: str) -> dict[str, Any]:
        """What the wiki knows of a page: its own title and address, and the version that is wanted."""
        version: dict[str, str | int] = {"rvstart": stamp, "rvdir": "older"} if stamp else {}
        query = {
            "prop": "info|pageprops|revisions",
            "inprop": "url",
            "rvprop": "ids|timestamp",
            "rvlimit": 1,
            "redirects": 1,
            **version,
        }
        pages = self._asked("query", {"titles": _one_title(title), **query}).get("pages") or [{}]
        about = pages[0]
        if (
            not isinstance(about, dict)
            or about.get("missing")
            or about.get("invalid")
            or "title" not in about
        ):
            raise ToolFailed(f"Wikipedia has no article {shortly(title)}{self._near(title)}")
        return about

    def _page(self, about: dict[str, Any], version: int, when: str) -> WebPage:
        parsed = self._api.get(
            {
                **_COMMON,
                "action": "parse",
                "oldid": version,
                "prop": "text|displaytitle",
                "disableeditsection": 1,
            }
        )
        _refuse(parsed)
        markup = str((parsed.get("parse") or {}).get("text") or "")
        address = str(about.get("fullurl") or self._api.address)
        _, data = readable_markup(_without_apparatus(markup), address)
        text = text_from(data, ".html", "utf-8").text.strip()
        old = "" if version == about.get("lastrevid") else f"{'&' if '?' in address else '?'}oldid={version}"
        title = str(about["title"])
        return WebPage(address + old, title, f"# {title}\n\n{text}", f"as of {when}")

    def _meanings(self, title: str) -> str:
        answer = self._asked(
            "query", {"titles": title, "prop": "links", "plnamespace": 0, "pllimit": _MOST_MEANINGS}
        )
        pages = answer.get("pages") or [{}]
        return (
            "; ".join(str(link.get("title")) for link in pages[0].get("links") or []) or "they are not listed"
        )

    def _near(self, title: str) -> str:
        answer = self._asked(
            "query", {"list": "search", "srsearch": _one_title(title), "srlimit": 5, "srprop": ""}
        )
        near = "; ".join(str(hit.get("title")) for hit in answer.get("search") or [])
        return f"; there are: {near}" if near else ""

    def _asked(self, action: str, parameters: dict[str, str | int]) -> dict[str, Json]:
        answer = self._api.get({**_COMMON, "action": action, **parameters})
        _refuse(answer)
        inside = answer.get(action)
        return inside if isinstance(inside, dict) else {}

    def __repr__(self) -> str:
        return f"<Wikipedia at {self._api.address}>"


_COMMON: dict[str, str | int] = {"format": "json", "formatversion": 2}


def _refuse(answer: dict[str, Json]) -> None:
    if isinstance(answer.get("error"), dict):
        code = str(answer["error"].get("code"))
        raise ToolFailed(
            f"Wikipedia: {answer['error'].get('info') or code}",
            again=code in ("maxlag", "ratelimited", "readonly"),
        )


def _one_title(title: str) -> str:
    """A title without what would make it several, or name a part of a page."""
    return " ".join(re.sub(r"[|\[\]{}<>#\x00-\x1f]", " ", title).split())[:255]


def _end_of(day: str) -> str:
    """The end of a day as MediaWiki takes it; raises ToolFailed for what is no day."""
    try:
        return f"{date.fromisoformat(day.strip()).isoformat()}T23:59:59Z"
    except ValueError:
        raise ToolFailed(f"a date is written YYYY-MM-DD, as in 2019-07-04, not {shortly(day)}") from None


def _without_apparatus(markup: str) -> str:
    try:
        from bs4 import BeautifulSoup
    except ImportError:
        raise NotInstalled("web", "beautifulsoup4") from None
    soup = BeautifulSoup(markup, "html.parser")
    for each in soup.select(_LEFT_OUT):
        each.decompose()
    return str(soup)
