"""Runs the tests of the stores against real Neo4j, RDF4J and PostgreSQL servers, which Docker starts from
compose.yaml.

    python -m benchmarks.stores.servers [--keep]

They are the contract of every store, and on Neo4j and RDF4J runs with namespaces: the loop, two runs side by
side, and hostile statements. It was written on a machine without Docker and has not been run there: what is
known to work are the same tests against ArcadeDB over Bolt, Oxigraph over HTTP and an embedded PostgreSQL.
The exit code is that of the tests; 2 means that there is no Docker, or that KGOT_NEO4J_PORT, KGOT_RDF4J_PORT
or KGOT_POSTGRES_PORT is no port.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

PROJECT = Path(__file__).parents[2]
COMPOSE = ("docker", "compose", "--file", str(PROJECT / "compose.yaml"))
PASSWORD = "kgot-lab-local"  # as in compose.yaml, for servers that only this machine can reach
REPOSITORY = "kgot"
CONFIGURATION = f"""
@prefix config: <tag:rdf4j.org,2023:config/> .
[] a config:Repository ; config:rep.id "{REPOSITORY}" ; config:rep.impl [
    config:rep.type "openrdf:SailRepository" ; config:sail.impl [ config:sail.type "openrdf:NativeStore" ]
] .
"""


def main() -> int:
    """Start the servers, run the tests, stop the servers; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="leave the servers running")
    keep = parser.parse_args().keep
    try:
        where = addresses(os.environ)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not docker_works():
        needs = "make servers needs Docker with its compose plugin, running and allowed for you"
        print(f"{needs}: https://docs.docker.com/engine/install/", file=sys.stderr)
        return 2
    try:
        subprocess.run([*COMPOSE, "up", "--detach", "--wait"], check=True)
        make_repository(where["KGOT_SPARQL_QUERY"])
        files = ("tests/stores/test_contract.py", "tests/stores/test_namespaces.py")
        tests = [sys.executable, "-m", "pytest", *files, "-k", "neo4j or rdf4j or postgres_elsewhere"]
        return subprocess.run(tests, cwd=PROJECT, env={**os.environ, **where}, check=False).returncode
    except subprocess.CalledProcessError as error:
        print(f"the servers did not start; see: {' '.join(COMPOSE)} logs", file=sys.stderr)
        return error.returncode
    finally:
        if not keep:
            subprocess.run([*COMPOSE, "down"], check=False)


def docker_works() -> bool:
    """Whether there is Docker with compose, and its service answers."""
    asks = (["docker", "compose", "version"], ["docker", "info"])
    return shutil.which("docker") is not None and all(
        subprocess.run(ask, capture_output=True, check=False).returncode == 0 for ask in asks
    )


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Where the servers are, by the variables that the tests read; ports and passwords may be set as
    compose.yaml says.

    Raises ValueError for a port that is none.
    """
    port = {
        name: environment.get(f"KGOT_{name}_PORT", default)
        for name, default in (("NEO4J", "7687"), ("RDF4J", "8080"), ("POSTGRES", "5432"))
    }
    for name, number in port.items():
        if not (number.isdecimal() and 0 < int(number) < 65536):
            raise ValueError(f"KGOT_{name}_PORT is a port from 1 to 65535, not {number!r}")
    repository = f"http://127.0.0.1:{port['RDF4J']}/rdf4j-server/repositories/{REPOSITORY}"
    secret = quote(environment.get("KGOT_POSTGRES_PASSWORD", PASSWORD), safe="")
    return {
        "KGOT_NEO4J_URI": f"bolt://127.0.0.1:{port['NEO4J']}",
        "KGOT_NEO4J_PASSWORD": environment.get("KGOT_NEO4J_PASSWORD", PASSWORD),
        "KGOT_SPARQL_QUERY": repository,
        "KGOT_SPARQL_UPDATE": f"{repository}/statements",
        "KGOT_POSTGRES_URL": f"postgresql://kgot:{secret}@127.0.0.1:{port['POSTGRES']}/kgot",
    }


def make_repository(address: str) -> None:
    """Make the RDF4J repository, unless there is one."""
    try:
        urllib.request.urlopen(f"{address}/size", timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        request = urllib.request.Request(
            address, CONFIGURATION.encode(), {"Content-Type": "text/turtle"}, method="PUT"
        )
        urllib.request.urlopen(request, timeout=30).close()


if __name__ == "__main__":
    sys.exit(main())
