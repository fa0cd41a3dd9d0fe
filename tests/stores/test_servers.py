"""The command that starts Neo4j, RDF4J and PostgreSQL: what it says where it cannot, since Docker is not on
every machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.extended

COMMAND = Path(__file__).parents[2] / "benchmarks" / "stores" / "servers.py"


def run(path, **environment):
    """The exit code and the errors of the command, with no program on its path but those in a folder."""
    told = {**os.environ, **environment, "PATH": str(path)}
    done = subprocess.run([sys.executable, COMMAND], capture_output=True, text=True, env=told, timeout=600)
    return done.returncode, done.stderr


def docker(folder, script):
    """A program called docker that does as little as a shell script says."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="the program that stands for Docker is a shell script")
def test_without_docker_or_with_one_that_does_not_answer_it_says_what_is_needed(tmp_path):
    assert run(tmp_path)[0] == 2 and "needs Docker" in run(tmp_path)[1]
    docker(tmp_path, '[ "$1" = compose ]')  # the plugin is there, the service is not
    code, said = run(tmp_path)
    assert code == 2 and "needs Docker" in said and said.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the program that stands for Docker is a shell script")
def test_servers_that_do_not_start_are_stopped_and_their_logs_named(tmp_path):
    docker(tmp_path, f'echo "$*" >> {tmp_path}/asked; case "$*" in *" up "*) exit 14;; esac')
    code, said = run(tmp_path)
    assert code == 14 and "did not start" in said and said.strip().endswith("logs")
    assert (tmp_path / "asked").read_text().splitlines()[-1].endswith(" down")


@pytest.mark.parametrize(("variable", "port"), [("NEO4J", "bolt"), ("RDF4J", "0"), ("POSTGRES", "70000")])
def test_a_port_that_is_none_is_refused_before_anything_starts(tmp_path, variable, port):
    code, said = run(tmp_path, **{f"KGOT_{variable}_PORT": port})
    assert code == 2 and said == f"KGOT_{variable}_PORT is a port from 1 to 65535, not {port!r}\n"
