"""A course in a browser: a server of files on this computer, and what the live views of a page came to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Page

_SEEN = """(places) => places.map((place) => {
  const painted = (canvas) => {
    if (!canvas.width || !canvas.height) return false;
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.some((value, at) => at % 4 === 3 && value > 0);
  };
  const view = place.querySelector(".kl");
  const canvases = [...place.querySelectorAll("canvas")].filter((canvas) => canvas.checkVisibility());
  return {
    kind: place.dataset.view,
    stands: Boolean(place.dataset.drawn) && view.clientWidth > 0 && view.clientHeight > 0,
    says: view ? view.innerText.trim().length : 0,
    graphs: place.querySelectorAll(".kl-canvas").length,
    painted: canvases.some(painted),
  };
})"""


@dataclass(frozen=True)
class SeenView:
    """A live view on a page: whether it stands there, how many characters it says, and whether its graph is
    painted, if it has one.
    """

    kind: str
    stands: bool
    says: int
    graphs: int
    painted: bool

    @property
    def is_blank(self) -> bool:
        """Whether a reader would see nothing where the view is."""
        return not self.stands or (not self.painted if self.kind == "graph" else self.says < 10)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server on this computer that knows nothing but files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def views_on(page: Page) -> list[SeenView]:
    """What the live views of the page in front came to, once each stands there and every stepper was walked
    to its end.
    """
    places = page.locator("[data-view]")
    for number in range(places.count()):
        places.nth(number).locator("xpath=self::*[@data-drawn]").wait_for()
    for walk in page.locator("[data-view=stepper]").get_by_role("button", name="Last").all():
        walk.click()
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )
    return [SeenView(**each) for each in places.evaluate_all(_SEEN)]


def blank_pictures(page: Page) -> int:
    """How many still pictures a reader sees, those that a live view replaced left out, have no size."""
    seen = "(one) => one.checkVisibility() && !one.closest('.kl')"
    size = "(one) => one.tagName === 'IMG' ? one.naturalWidth : one.getBoundingClientRect().width"
    sizes = page.locator("img, svg:not(svg svg)").evaluate_all(f"(all) => all.filter({seen}).map({size})")
    return sum(not size for size in sizes)
