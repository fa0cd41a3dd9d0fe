"""The browser of the tests: one Chromium that reaches nothing outside this computer, watched for what it
tried and complained about.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Route,
    ViewportSize,
    WebSocketRoute,
)

from browser.lab import REPOSITORY

SCREENSHOTS = REPOSITORY / "runs" / "screenshots"
SIZE: ViewportSize = {"width": 1400, "height": 1000}
TALLEST = 8000  # pixels of one screenshot; a longer notebook is kept in parts
WITHIN = ("data:", "blob:", "about:")  # addresses that hold what they show
EXPECTED = {  # errors that are no fault of ours: how they start, and the reason
    "Canceled future for create_subshell_request": "a notebook was closed before JupyterLab's widget manager had its first answer",
}


@dataclass
class Watch:
    """What the browser asked for outside this computer (all refused), and the errors it reported."""

    home: str  # the only address that may be asked
    files: list[str] = field(default_factory=list)  # the pages from disk that may be opened
    outside: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def allow_file(self, path: Path) -> str:
        """The address of a file that may now be opened from disk: itself, and nothing beside it."""
        self.files.append(path.resolve().as_uri())
        return self.files[-1]

    def guard(self, route: Route) -> None:
        """Let a request pass when it stays here; else refuse it and write it down."""
        address = route.request.url
        if (
            address.startswith((self.home + "/", *WITHIN))
            or address.split("#")[0].split("?")[0] in self.files
        ):
            route.continue_()
        else:
            self.outside.append(address)
            route.abort()

    def guard_socket(self, socket: WebSocketRoute) -> None:
        """The same for a web socket."""
        if socket.url.startswith(self.home.replace("http://", "ws://") + "/"):
            socket.connect_to_server()
        else:
            self.outside.append(socket.url)
            socket.close()

    def hear(self, message: ConsoleMessage) -> None:
        """Write down an error of the console."""
        if message.type == "error":
            self.complain(f"{message.text} ({message.location.get('url', '')})")

    def complain(self, text: str) -> None:
        """Write down an error, unless it is an expected one."""
        if not text.removeprefix("Error: ").startswith(tuple(EXPECTED)):
            self.complaints.append(text)

    def clear(self) -> None:
        """Forget what was written down; for a test that provoked it."""
        self.outside.clear()
        self.complaints.clear()


@contextlib.contextmanager
def chromium(playwright: Playwright, program: str, watch: Watch) -> Iterator[BrowserContext]:
    """One Chromium; every page of it is watched."""
    browser = playwright.chromium.launch(
        executable_path=program,
        timeout=300_000,
        # a second wall behind the guard, for what a page can start without a request of its own, such as
        # looking up a name
        args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    )
    try:
        yield watched(browser, watch)
    finally:
        browser.close()


def watched(
    browser: Browser, watch: Watch, service_workers: Literal["allow", "block"] = "block"
) -> BrowserContext:
    """A window of a browser; every page of it is watched."""
    window = browser.new_context(
        base_url=watch.home, viewport=SIZE, service_workers=service_workers, reduced_motion="reduce"
    )
    window.set_default_timeout(120_000)
    window.route("**/*", watch.guard)
    window.route_web_socket("**/*", watch.guard_socket)
    window.on("console", watch.hear)
    window.on("weberror", lambda error: watch.complain(str(error.error)))
    return window


def open_from_disk(page: Page, watch: Watch, path: Path) -> None:
    """Open an exported page as a reader does who double-clicks the file."""
    page.goto(watch.allow_file(path))


def screenshot(page: Page, name: str) -> list[Path]:
    """Keep the whole notebook in front as PNG files in runs/screenshots, from the top in parts of at most
    8,000 pixels.

    They are for people to look at, no test reads them, and they take a sixth of the time: they are kept where
    SCREENSHOTS is set, as `make test-browser` sets it.
    """
    if not os.environ.get("SCREENSHOTS"):
        return []
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SCREENSHOTS.glob(f"{name}-[0-9].png"):
        old.unlink()
    outer = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer")
    height, shown = outer.evaluate("(outer) => [outer.scrollHeight, outer.clientHeight]")
    frame = SIZE["height"] - shown
    page.set_viewport_size({"width": SIZE["width"], "height": min(height, TALLEST) + frame})
    kept = []
    for part, top in enumerate(range(0, height, TALLEST), start=1):
        outer.evaluate("(outer, top) => outer.scrollTo({ top, behavior: 'instant' })", top)
        kept.append(SCREENSHOTS / f"{name}-{part}.png")
        page.screenshot(path=kept[-1])
    page.set_viewport_size(SIZE)
    return kept
