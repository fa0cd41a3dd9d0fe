"""The page that stood at an address on a day in the past, by the Internet Archive."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgot_lab.errors import ToolFailed, shortly
from kgot_lab.tools.web.engines import JsonApi


@dataclass(frozen=True)
class Archived:
    """A kept copy of a page: where it stands, and from which day it is, as YYYY-MM-DD."""

    address: str
    day: str


class WebArchive:
    """Finds kept copies of pages by archive.org's availability service, or another that speaks as it does."""

    def __init__(self, *, address: str = "https://archive.org/wayback/available"):
        self._api = JsonApi("the web archive", address)

    def nearest(self, address: str, day: str) -> Archived:
        """The copy nearest to a day (YYYYMMDD or YYYY-MM-DD, or only its beginning); raises ToolFailed when
        there is none.
        """
        stamp = re.sub(r"\D", "", day)
        if not 4 <= len(stamp) <= 14:
            raise ToolFailed(f"a date is written YYYYMMDD, as in 20190704, not {shortly(day)}")
        answer = self._api.get({"url": address, "timestamp": stamp})
        closest = (answer.get("archived_snapshots") or {}).get("closest") or {}
        kept, when = str(closest.get("url") or ""), str(closest.get("timestamp") or "")
        if not closest.get("available") or not kept.startswith(("http://", "https://")):
            raise ToolFailed(f"the web archive holds no copy of {shortly(address)}")
        kept = re.sub(r"^http://(web\.archive\.org/)", r"https://\1", kept)
        return Archived(kept, f"{when[:4]}-{when[4:6]}-{when[6:8]}")

    def __repr__(self) -> str:
        return f"<web archive at {self._api.address}>"
