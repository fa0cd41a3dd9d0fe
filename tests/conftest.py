"""What holds for every test: an interrupt is heard, the checkout stays as it was, and real servers wait on
loopback for those that ask.

A server is started at the first test that needs it and stopped at the end.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.bolt_server import bolt_server  # noqa: F401  (a fixture)
from support.loopback import started
from support.oxigraph_server import oxigraph_server  # noqa: F401  (a fixture)
from support.spare_workers import reuse_workers

if TYPE_CHECKING:  # where the tests run in one process it need not be there
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

CHECKOUT = Path(__file__).parents[1]
BEFORE = pytest.StashKey[set[str]]()
LEFT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Hear interrupts even where the tests were started in the background, and note what stands in the
    checkout.
    """
    # threads of libraries that wait for each other at full speed would take the neighbour's core
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # of several processes only the one that hands out the tests
        config.stash[BEFORE] = changed_files()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the collector, which would walk what has been imported so far forty times, for little
    that is garbage.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test left something in the checkout, or changed what is there."""
    if BEFORE in session.config.stash and (left := sorted(changed_files() - session.config.stash[BEFORE])):
        session.config.stash[LEFT] = left
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if LEFT in config.stash:
        terminalreporter.section("left in the checkout", sep="=", red=True)
        terminalreporter.line(
            "Tests write to folders of their own; during this run these files came or changed:"
        )
        terminalreporter.line("\n".join(config.stash[LEFT]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Hand whole files to the processes of --dist loadfile, those of the browser as one."""
    from support.handing_out import Together

    return Together(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a browser or a server as extended, and begin with what takes long where several
    processes share the tests.
    """
    for item in items:
        if item.nodeid.startswith(EXTENDED_FOLDERS) or needs_server(item):
            item.add_marker(pytest.mark.extended)
    if "PYTEST_XDIST_WORKER" in os.environ:
        from support.handing_out import in_order

        place = {nodeid: number for number, nodeid in enumerate(in_order([item.nodeid for item in items]))}
        items.sort(key=lambda item: place[item.nodeid])


EXTENDED_FOLDERS = ("tests/browser/", "tests/experiments/", "tests/faults/")
SERVERS = {"postgres", "cypher_server", "sparql_server", "bolt"}  # as parameters of tests name them
SERVER_FIXTURES = {"bolt_server", "oxigraph_server", "postgres_url", "postgres"}


def needs_server(item: pytest.Item) -> bool:
    """Whether a test asks for a server that takes seconds to start, by a fixture or as one of its parameters."""
    parameters = getattr(item, "callspec", None)
    named = set(parameters.id.split("-")) if parameters else set()
    return bool(named & SERVERS or SERVER_FIXTURES & set(getattr(item, "fixturenames", ())))


def changed_files(checkout: Path = CHECKOUT) -> set[str]:
    """What git calls new or changed in a checkout; nothing where there is no git or no checkout."""
    if shutil.which("git") is None:
        return set()
    command = ["git", "-C", str(checkout), "status", "--porcelain", "--untracked-files=all"]
    return set(subprocess.run(command, capture_output=True, text=True).stdout.splitlines())


OWN_SANDBOXES = ("tests/sandbox/", "tests/faults/", "tests/stores/test_forks.py")  # they look at processes


@pytest.fixture(autouse=True)
def reused_workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test take the sandbox of the test before it, except where sandboxes themselves are tested."""
    if not request.node.nodeid.startswith(OWN_SANDBOXES):
        reuse_workers(monkeypatch)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An embedded PostgreSQL with pgvector, in a folder that the user it drops to can reach."""
    from kgot_lab.stores.postgres.server import Server

    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_postgres_") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        started("PostgreSQL", server.start)
        yield server.conninfo()
        server.stop()
