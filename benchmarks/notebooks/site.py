"""Build the course as live pages and open every page in Chromium, from disk and from a server of files on
this computer.

It prints, for each page, its bytes, the live views on it and how many of them stand there, what was asked for
outside this computer, and the errors on the console; and for the whole its bytes and how long it took to
build. With --out FOLDER the course is kept. It fails for a view or a picture that comes up blank, a request
outside, or an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.requirements import require_browser, require_packages
from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.viz.course import write_course

if TYPE_CHECKING:
    from browser.window import Watch
    from playwright.sync_api import BrowserContext

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "views" / "site.json"


@dataclass(frozen=True)
class Opened:
    """A page as it came up from one place: how many views it has and how many came up blank, blank pictures,
    and what went wrong.
    """

    page: str
    place: str
    views: int
    blank: int
    pictures: int
    outside: int
    errors: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is blank, nothing was asked for outside and nothing complained."""
        return not (self.blank or self.pictures or self.outside or self.errors)


def main(notebooks: list[Path], folder: Path, *, keep: bool) -> bool:
    """Build, open, print, keep; whether every page is sound."""
    sys.path.append(str(ROOT / "tests"))  # the browser, as the tests start it
    from browser.alive import served
    from browser.window import Watch, chromium
    from playwright.sync_api import sync_playwright

    began = time.perf_counter()
    pages = write_course(notebooks, folder, live=True)
    seconds = time.perf_counter() - began
    kinds: Counter[str] = Counter()
    with served(folder) as address, sync_playwright() as playwright:
        watch = Watch(address)
        for file in folder.iterdir():
            watch.allow_file(file)
        with chromium(playwright, find_chromium(), watch) as window:
            disk = [opened(window, watch, page, page.resolve().as_uri(), "disk", kinds) for page in pages]
            web = [
                opened(window, watch, page, f"{address}/{page.name}", "server", Counter()) for page in pages
            ]
    total = sum(file.stat().st_size for file in folder.iterdir())
    shared = sum(file.stat().st_size for file in folder.iterdir() if file.suffix != ".html")
    for one, other in zip(disk, web, strict=True):
        size = (folder / one.page).stat().st_size
        print(
            f"{one.page:<36} {size / 1000:7,.0f} kB  {told(one)}"
            + ("" if told(other) == told(one) else f"; {told(other)} from a server")
        )
    print(
        f"in all {len(pages)} pages, {total / 1e6:.2f} MB, {shared / 1e6:.2f} MB of it a script and a style that all share; {seconds:.0f} s"
    )
    print(f"live views: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")
    if keep:
        about = {"bytes": total, "shared": shared, "seconds": round(seconds, 1), "views": dict(kinds)}
        RESULT.write_text(
            json.dumps({**about, "opened": [asdict(each) for each in (*disk, *web)]}, indent=1) + "\n",
            encoding="utf-8",
        )
    return all(each.is_sound for each in (*disk, *web))


def opened(
    window: BrowserContext, watch: Watch, file: Path, address: str, place: str, kinds: Counter[str]
) -> Opened:
    """Open one page and look at it."""
    from browser.alive import blank_pictures, views_on

    watch.clear()
    page = window.new_page()
    page.goto(address)
    views = views_on(page)
    kinds.update(view.kind for view in views)
    blank, pictures = sum(view.is_blank for view in views), blank_pictures(page)
    page.close()
    for said in (*watch.outside, *watch.complaints):
        print(f"{file.name} from {place}: {said}", file=sys.stderr)
    return Opened(file.name, place, len(views), blank, pictures, len(watch.outside), len(watch.complaints))


def told(seen: Opened) -> str:
    """A page in words."""
    return f"{seen.views} views, {seen.blank} blank; {seen.pictures} pictures blank; {seen.outside} requests outside, {seen.errors} errors"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="keep the course in this folder")
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all")
    given = parser.parse_args()
    require_browser()
    require_packages("lab", "nbconvert", "ipykernel")
    chosen = given.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(not main(chosen, given.out or Path(scratch), keep=not given.notebooks))
