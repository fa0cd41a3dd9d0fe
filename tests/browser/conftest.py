"""One JupyterLab and one Chromium for the tests of this folder; a page for each test, watched.

A test asks for `page` (and `lab`, if it opens notebooks in it). After it, nothing may have been asked outside this
computer and no error may stand on the console. Without a browser the tests are skipped and say what to
install; where CI is set they fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

import pytest

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError

if TYPE_CHECKING:  # without Playwright this file is still read
    from playwright.sync_api import BrowserContext, Page

    from browser.lab import Lab
    from browser.window import Watch

FAILED = pytest.StashKey[bool]()


def lacking(what: str) -> NoReturn:
    """Skip what needs a browser and say what to install; fail where everything should be installed."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="package")
def program() -> str:
    """Where Chromium is, once everything that the tests need has been found."""
    if not find_spec("jupyterlab"):
        lacking("no JupyterLab to open notebooks in: pip install 'kgot_lab[lab]'")
    try:
        return find_chromium()
    except LabError as error:
        return lacking(str(error))


@pytest.fixture(scope="package")
def running_lab(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The running JupyterLab."""
    from browser.lab import jupyterlab

    with jupyterlab(tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture
def lab(running_lab: Lab) -> Lab:
    """The same, for a test whose `page` is JupyterLab; `lab.scratch([...])` makes a notebook in it."""
    return running_lab


@pytest.fixture(scope="package")
def watch(running_lab: Lab) -> Watch:
    """What the browser asked for outside, and complained about; a test that provokes it calls
    `watch.clear()`.
    """
    from browser.window import Watch

    return Watch(running_lab.address)


@pytest.fixture(scope="package")
def window(program: str, running_lab: Lab, watch: Watch) -> Iterator[BrowserContext]:
    """The browser window, already let in by the server."""
    from playwright.sync_api import sync_playwright

    from browser.window import chromium

    with sync_playwright() as playwright, chromium(playwright, program, watch) as opened:
        opened.request.get(f"{running_lab.address}/lab?token={running_lab.token}")  # leaves the cookie
        yield opened


@pytest.fixture
def page(
    window: BrowserContext, running_lab: Lab, watch: Watch, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A page without a notebook; at the end it must have stayed at home and complained of nothing.

    JupyterLab takes seconds to start, so the next test with `lab` gets the same page, its notebooks closed and
    their kernels ended; after a failure, or when it has gone elsewhere, a new one. Without `lab` a page is new.
    """
    from browser.window import SIZE

    # of a test without `lab` no page is left
    opened = window.pages[0] if window.pages and "lab" in request.fixturenames else window.new_page()
    opened.set_viewport_size(SIZE)
    watch.clear()
    yield opened
    outside, complaints = watch.outside.copy(), watch.complaints.copy()
    leave(opened, running_lab, request.node)
    assert outside == [], "asked for outside this computer, and refused"
    assert complaints == [], "errors on the console"


def leave(page: Page, lab: Lab, test: pytest.Function) -> None:
    """Make the page ready for the next test, or close it and keep a screenshot when this one failed."""
    from browser.lab import close_notebooks
    from browser.window import SCREENSHOTS

    failed, path = test.stash.get(FAILED, False), SCREENSHOTS / f"failed-{test.name}.png"
    path.unlink(missing_ok=True)
    if failed:
        page.screenshot(path=path)
    if failed or not page.url.startswith(f"{lab.address}/lab"):
        page.close()
    else:
        close_notebooks(page)
    if "lab" in test.fixturenames:
        lab.end_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether the test itself failed, so that `page` keeps a screenshot of it."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report
