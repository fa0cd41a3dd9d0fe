"""Real servers for the tests of stores, on loopback, started at the first test that needs one and stopped at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bolt_server import bolt_server  # noqa: F401  (a fixture)
from oxigraph_server import oxigraph_server  # noqa: F401  (a fixture)

from kgot_lab.errors import LabError


def missing(what: str, error: Exception) -> None:
    """A server that cannot start skips its tests, and fails them where everything must be there."""
    if os.environ.get("CI"):
        raise error
    pytest.skip(f"{what} cannot be started here: {error}")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An embedded PostgreSQL with pgvector, in a folder that the user it drops to can reach."""
    from kgot_lab.stores.postgres_server import Server

    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_postgres_") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        try:
            server.start()
        except LabError as error:
            missing("PostgreSQL", error)
        yield server.conninfo()
        server.stop()
