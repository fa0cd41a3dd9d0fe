"""Real servers for the tests of stores, on loopback, started at the first test that needs one and stopped at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bolt_server import bolt_server  # noqa: F401  (a fixture)
from support.loopback import started
from support.oxigraph_server import oxigraph_server  # noqa: F401  (a fixture)


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
