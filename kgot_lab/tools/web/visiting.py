"""What opens a page of the web by its address, whatever stands there."""

from __future__ import annotations

from collections.abc import Callable

from kgot_lab.tools.web.fetching import PoliteWeb
from kgot_lab.tools.web.pages import WebPage, page_of, transcript_page, video_in


def page_opener(web: PoliteWeb) -> Callable[[str], WebPage]:
    """What opens pages: documents and texts as they are, and of a YouTube video its transcript; it raises
    ToolFailed, NotInstalled.
    """

    def open_page(address: str) -> WebPage:
        video = video_in(address)
        return transcript_page(video) if video else page_of(web.fetch(address))

    return open_page
