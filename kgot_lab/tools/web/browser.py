"""A browser without pictures: one page at a time, a screenful at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from urllib.parse import urljoin

from kgot_lab.errors import ToolFailed, require_count, shortly
from kgot_lab.tools.web.pages import WebPage
from kgot_lab.types import Document

SCREEN = 5000  # characters, about 1,250 tokens


@dataclass(frozen=True)
class Screen:
    """What the browser shows: a page, and which part of it, counted from 1."""

    page: WebPage
    number: int
    of: int
    text: str

    @property
    def where(self) -> str:
        """The position in words, with the address."""
        return f"page {self.number} of {self.of} of {self.page.address}"


class Browser:
    """Shows pages that `open_page` gets by their address, in screens of about `letters` letters, and
    remembers what it showed.
    """

    def __init__(self, open_page: Callable[[str], WebPage], letters: int = SCREEN):
        require_count(letters, 100, "letters", "a screen holds that many")
        self._open_page, self._letters = open_page, letters
        self.history: list[WebPage] = []  # every page that was opened, in order; the last is open
        self._trail: list[WebPage] = []  # the way here, without pages that were left by going back
        self._screens: list[str] = [""]
        self._at = 0
        self._sought = ""
        self._found = -1  # where in the page the text sought was found last
        self._seen: dict[str, tuple[WebPage, set[int]]] = {}

    @property
    def page(self) -> WebPage:
        """The page that is open; raises ToolFailed when none is."""
        if not self.history:
            raise ToolFailed("no page is open yet; search, or visit one")
        return self.history[-1]

    def visit(self, address: str) -> Screen:
        """The first screen of a page; an address may be relative to the open page. Raises ToolFailed."""
        here = self.history[-1].address if self.history else ""
        try:
            whole = urljoin(here, address.strip())
        except ValueError:
            raise ToolFailed(f"{shortly(address)} is not an address") from None
        return self.show(
            self._open_page(
                whole if re.match(r"[a-zA-Z][\w+.-]*:", whole) else f"https://{whole.lstrip('/')}"
            )
        )

    def show(self, page: WebPage) -> Screen:
        """The first screen of a page that was got elsewhere."""
        self._trail.append(page)
        return self._turned_to(page)

    def back(self) -> Screen:
        """The first screen of the page that was open before; raises ToolFailed when there was none."""
        if len(self._trail) < 2:
            raise ToolFailed("there is no page to go back to")
        self._trail.pop()
        return self._turned_to(self._trail[-1])

    def page_down(self) -> Screen:
        """The next screen; raises ToolFailed at the end."""
        if self._at + 1 >= len(self._screens):
            raise ToolFailed(f"this is the end of the page, {self._shown().where}")
        return self._shown(self._at + 1)

    def page_up(self) -> Screen:
        """The screen before; raises ToolFailed at the beginning."""
        if self._at == 0:
            raise ToolFailed(f"this is the beginning of the page, {self._shown().where}")
        return self._shown(self._at - 1)

    def find(self, text: str) -> Screen:
        """The first screen on which a text stands, in either case; raises ToolFailed when it
        does not stand there.
        """
        self._sought, self._found = text, -1
        return self.find_next()

    def find_next(self) -> Screen:
        """The next place of the text sought last; raises ToolFailed when there is none."""
        page = self.page
        if not self._sought.split():
            raise ToolFailed("nothing was sought yet; say which text to find")
        # line ends and emphasis between words
        pattern = re.compile(r"[\s*_]+".join(map(re.escape, self._sought.split())), re.IGNORECASE)
        match = pattern.search(page.text, self._found + 1)
        if match is None:
            once = self._found >= 0
            raise ToolFailed(
                f"{shortly(self._sought)} stands {'no further' if once else 'nowhere'} on {page.address}; try other words"
            )
        self._found = match.start()
        ends = accumulate(map(len, self._screens))
        return self._shown(next(number for number, end in enumerate(ends) if self._found < end))

    def seen_whole(self, letters: int) -> None:
        """Note that the first so many characters of the open page were read in another way."""
        starts = [0, *accumulate(map(len, self._screens))]
        self._seen[self.page.address][1].update(
            number for number in range(len(self._screens)) if starts[number] < letters
        )

    def seen(self) -> tuple[Document, ...]:
        """What was shown, as documents: a page each, its address as id, and of its text the screens that were
        looked at.
        """
        found = []
        for address, (page, numbers) in self._seen.items():
            parts = screens(page.text, self._letters)
            found.append(
                Document(
                    address, "\n\n".join(parts[number].strip() for number in sorted(numbers)), page.title
                )
            )
        return tuple(found)

    def _turned_to(self, page: WebPage) -> Screen:
        self.history.append(page)
        self._screens, self._found, self._sought = screens(page.text, self._letters), -1, ""
        return self._shown(0)

    def _shown(self, number: int | None = None) -> Screen:
        page = self.page
        self._at = self._at if number is None else number
        known, numbers = self._seen.get(page.address, (page, set()))
        if known.text != page.text:  # it changed between two visits; what was seen last counts
            numbers = set()
        self._seen[page.address] = page, {*numbers, self._at}
        return Screen(page, self._at + 1, len(self._screens), self._screens[self._at])


def screens(text: str, letters: int = SCREEN) -> list[str]:
    """A text in parts of at most so many characters, cut where a paragraph, line or word ends if one does
    near; joined, they are the text.
    """
    parts, start = [], 0
    while len(text) - start > letters:
        window = text[start : start + letters]
        ends = (
            window.rfind(mark) + len(mark)
            for mark in ("\n\n", "\n", " ")
            if window.rfind(mark) > letters * 0.7
        )
        end = start + next(ends, letters)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]
