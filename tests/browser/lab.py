"""A real JupyterLab for tests: started in a temporary copy of the notebooks, used as a reader uses it, and
always ended.

Of a test with the fixtures `page` and `lab` of conftest.py:

>>> open_notebook(page, "00_tour.ipynb")             # a notebook of the repository, never run here and so not
trusted
>>> run_all(page)                                    # raises CellFailed when a cell raised or was left out
>>> open_notebook(page, lab.scratch(["20", "_ + 1"]))
>>> run_cell(page, 0)                                # cells are counted from 0, as in the file
>>> expect(run_cell(page, 1)).to_contain_text("21")  # it returns the output area, as output_of(page, 1) does
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

try:
    from playwright.sync_api import Locator, Page
    from playwright.sync_api import expect as expect  # for the tests, which are skipped where it is not there

    expect.set_options(timeout=120_000)  # it waits for a state, and gives up only on what hangs
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip(
        "no Playwright to drive a browser with: pip install 'kgot_lab[test]'", allow_module_level=True
    )

REPOSITORY = Path(__file__).parents[2]
# what the notebooks read by a path, beside the installed package
BESIDE = ("notebooks", "benchmarks/results", "kgot_lab")
IDLE = 900  # seconds after which a forgotten kernel, and then the server, ends by itself
OWN = "JUPYTER_CONFIG_DIR JUPYTER_DATA_DIR JUPYTER_RUNTIME_DIR JUPYTERLAB_SETTINGS_DIR JUPYTERLAB_WORKSPACES_DIR IPYTHONDIR".split()
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    # a screenshot ends where the notebook ends
    "@jupyterlab/notebook-extension:tracker": {"scrollPastEnd": False},
}


class CellFailed(AssertionError):
    """A cell raised, or was not run."""


@dataclass
class Lab:
    """A running JupyterLab: where it listens, what lets in, and the folder with its notebooks."""

    folder: Path
    address: str
    token: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def scratch(self, cells: Sequence[str]) -> str:
        """The name of a new notebook with these code cells, to be opened by `open_notebook`."""
        name = f"scratch-{next(self._numbers)}.ipynb"
        code = [
            {"cell_type": "code", "id": f"cell-{n}", "source": cell, "metadata": {}, "outputs": []}
            for n, cell in enumerate(cells)
        ]
        self.write(name, [{**cell, "execution_count": None} for cell in code])
        return name

    def write(self, name: str, cells: Sequence[dict[str, Any]]) -> None:
        """Write a notebook with these cells, outputs and all, into the folder."""
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        metadata = {"kernelspec": kernel}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": list(cells)}
        (self.folder / name).write_text(json.dumps(notebook), encoding="utf-8")

    def end_kernels(self) -> None:
        """End every kernel of this server."""
        for session in json.loads(self._ask("GET", "/api/sessions")):
            self._ask("DELETE", f"/api/sessions/{session['id']}")

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(
            self.address + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=120) as reply:
            return bytes(reply.read())


@contextlib.contextmanager
def jupyterlab(room: Path) -> Iterator[Lab]:
    """A JupyterLab on 127.0.0.1 that serves a copy of the notebooks in an empty folder; it is ended, whatever
    happens.
    """
    for name in BESIDE:
        skipped = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(REPOSITORY / name, room / "work" / name, ignore=skipped)
    (room / "app").mkdir()
    (room / "app" / "overrides.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    token = secrets.token_hex(16)
    with (room / "server.log").open("wb") as out:
        streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        server = subprocess.Popen(_command(room, token), cwd=room, env=_own_folders(room), **streams)
    try:
        yield Lab(room / "work" / "notebooks", _address(room, server), token)
    finally:
        end(server)


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server that was started here, at first politely."""
    server.terminate()
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _command(room: Path, token: str) -> list[str]:
    settings = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": 0,  # any free one: the server writes down which
        "ServerApp.open_browser": False,
        "ServerApp.root_dir": room / "work",
        "ServerApp.terminals_enabled": False,
        "ServerApp.shutdown_no_activity_timeout": IDLE,
        "MappingKernelManager.cull_idle_timeout": IDLE,
        "MappingKernelManager.cull_connected": True,
        "IdentityProvider.token": token,
        "LabApp.app_settings_dir": room / "app",
        "LabApp.extension_manager": "readonly",
        "LabApp.expose_app_in_browser": True,  # so that a test can ask the notebook's own model which cells ran
    }
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    options = (f"--{name}={value}" for name, value in settings.items())
    return [sys.executable, "-m", "jupyterlab", *as_root, *options]


def _own_folders(room: Path) -> dict[str, str]:
    """This environment, with Jupyter's folders in the room: nothing of the user's is read or written, and no
    notebook is trusted.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY_"))
    }
    return {**inherited, **{name: str(room / name.lower()) for name in OWN}}


def _address(room: Path, server: subprocess.Popen[bytes], seconds: float = 300) -> str:
    """Where the server listens, once it does."""
    until = time.monotonic() + seconds
    written = room / "jupyter_runtime_dir" / f"jpserver-{server.pid}.json"
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # not written yet, half written, or not listening yet
            address = f"http://127.0.0.1:{json.loads(written.read_text(encoding='utf-8'))['port']}"
            urllib.request.urlopen(f"{address}/api", timeout=60).close()
            return address
        time.sleep(0.1)
    said = (room / "server.log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(
        f"JupyterLab did not start within {seconds:.0f} s; the end of what it said:\n{said[-2000:]}"
    )


PANEL = "jupyterapp.shell.currentWidget"  # the notebook in front
CELLS = f"{PANEL}.content.widgets"
IS_IDLE = f"{PANEL}.sessionContext.isReady && {PANEL}.sessionContext.session?.kernel?.status === 'idle'"


def open_notebook(page: Page, name: str) -> None:
    """Open a notebook of the lab's folder by its name, and wait until every cell stands on the page; nothing
    is run.
    """
    path = f"notebooks/{name}"
    # JupyterLab takes seconds to start: one that is there is used again
    if page.evaluate("() => Boolean(window.jupyterapp)"):
        page.evaluate(
            "async (path) => { await jupyterapp.commands.execute('docmanager:open', { path }); }", path
        )
    else:
        page.goto(f"/lab/tree/{path}?reset")
    exists_whole = (
        f"window.jupyterapp && {PANEL}?.context?.isReady && {PANEL}.context.path === {json.dumps(path)}"
    )
    all_stand = f"{CELLS}.length === {PANEL}.content.model.cells.length && {CELLS}.every((cell) => cell.node.isConnected)"
    _wait_until(page, f"{exists_whole} && {all_stand}", 300)


def close_notebooks(page: Page) -> None:
    """Close every notebook without saving it, and end its kernel."""
    page.evaluate(
        """async () => {
            for (const panel of [...jupyterapp.shell.widgets("main")]) {
                const context = panel.sessionContext;
                await context?.ready;
                while (context?.session?.kernel?.connectionStatus === "connecting") await new Promise((done) => setTimeout(done, 20));
                await context?.shutdown();  // only now: a kernel that is asked for while it ends leaves errors for the next test
                panel.dispose();
            }
            await new Promise((done) => setTimeout(done, 100));  // what is cut short says so a little later
        }"""
    )


def wait_for_kernel(page: Page) -> None:
    """Wait until the kernel is idle: what is run before it is ready is lost."""
    _wait_until(page, IS_IDLE, 300)


def run_all(page: Page, seconds: float = 600) -> None:
    """Run every cell and wait for the last; raises CellFailed when a cell raised or was left out."""
    _command_of_lab(page, "notebook:run-all-cells", seconds)
    troubles = [*errors(page), *(f"cell {n} was not run" for n in left_out(page))]
    if troubles:
        raise CellFailed("; ".join(troubles))


def run_cell(page: Page, n: int, seconds: float = 300) -> Locator:
    """Run one cell and return its output area; raises CellFailed when the cell raised."""
    page.evaluate(f"(n) => {{ {PANEL}.content.activeCellIndex = n; }}", n)
    _command_of_lab(page, "notebook:run-cell", seconds)
    troubles = [error for error in errors(page) if error.startswith(f"cell {n}:")]
    if troubles:
        raise CellFailed("; ".join(troubles))
    return output_of(page, n)


def cell(page: Page, n: int) -> Locator:
    """One cell of the notebook in front, counted from 0."""
    return page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-cell").nth(n)


def output_of(page: Page, n: int) -> Locator:
    """The output area of one cell; each of its outputs is a `.jp-OutputArea-output`, in the order of the
    file.
    """
    return cell(page, n).locator(".jp-Cell-outputArea")


def outputs(page: Page, n: int) -> list[dict[str, Any]]:
    """The outputs of one cell as they would be stored in the file."""
    found: list[dict[str, Any]] = page.evaluate(f"(n) => {CELLS}[n].model.outputs?.toJSON() ?? []", n)
    return found


def errors(page: Page) -> list[str]:
    """Every error that stands in the outputs: which cell, which exception, what it says."""
    found = page.evaluate(
        f"""() => {CELLS}.flatMap((cell, n) => (cell.model.outputs?.toJSON() ?? [])
            .filter((output) => output.output_type === "error")
            .map((output) => [n, output.ename, output.evalue]))"""
    )
    return [f"cell {n}: {kind}: {words}" for n, kind, words in found]


def left_out(page: Page) -> list[int]:
    """The code cells that hold code and have not been run."""
    found = page.evaluate(
        f"""() => {CELLS}.map((cell, n) => [cell, n])
            .filter(([cell]) => cell.model.type === 'code' && cell.model.sharedModel.source.trim() && !cell.model.executionCount)
            .map(([, n]) => n)"""
    )
    return [int(n) for n in found]


def _command_of_lab(page: Page, name: str, seconds: float) -> None:
    """Do what the menu entry of this name does, and wait until it is done and the kernel is idle."""
    wait_for_kernel(page)
    page.evaluate(
        "(name) => { window.isDone = false; jupyterapp.commands.execute(name).finally(() => { window.isDone = true; }); }",
        name,
    )
    _wait_until(page, f"window.isDone && {IS_IDLE}", seconds)


def _wait_until(page: Page, holds: str, seconds: float) -> None:
    """Wait for a state of the page; asked at every frame, as is usual, it would have the whole notebook drawn
    sixty times a second.
    """
    page.wait_for_function(holds, timeout=seconds * 1000, polling=100)
