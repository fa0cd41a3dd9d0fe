"""The environment that make sets up: by a Python that is new enough, or not at all, and one that is there is
looked at first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.waiting import AMPLE

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose environment is not set up, and in it `old`, a Python that says it is 3.10."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "pyproject.toml").write_text("")
    told = "import sys; sys.argv.pop(1); code = sys.argv.pop(1); sys.version_info = (3, 10, 13); exec(code)"
    (tmp_path / "old").write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{told}' \"$@\"\n")
    (tmp_path / "old").chmod(0o755)
    return tmp_path


def make(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    outer = ("MAKE", "MFLAGS", "PYTHON")  # these tests may be run by make
    own = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        ["make", *words], cwd=checkout, env=own, capture_output=True, text=True, timeout=AMPLE, check=False
    )


def environment(checkout: Path, python: Path) -> None:
    """The environment that a Python has left, with nothing installed."""
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "pyvenv.cfg").write_text("")
    (checkout / ".venv" / "bin" / "python").symlink_to(python)


@pytest.mark.parametrize("target", ["run", "test", "lab"])
def test_a_python_that_is_too_old_is_one_line_at_once_and_leaves_no_environment(checkout, target):
    done = make(checkout, target, "PYTHON=./old")
    first, *rest = done.stderr.splitlines()
    assert (
        first
        == "kgot_lab needs Python 3.11 or newer, and ./old is 3.10; name a newer one: make PYTHON=python3.12 ..."
    )
    assert done.returncode == 2
    assert len(rest) == 1
    assert rest[0].startswith("make: ")
    assert not (checkout / ".venv").exists()


def test_an_environment_that_an_older_python_left_is_noticed(checkout):
    environment(checkout, checkout / "old")
    done = make(checkout, "run")
    told = "kgot_lab needs Python 3.11 or newer, and .venv is 3.10, made by that Python: delete it (rm -rf .venv) and try again"
    assert done.returncode == 2 and done.stderr.splitlines()[0] == told


def test_make_and_pip_need_the_same_python():
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    major, minor = re.fullmatch(r">=(\d+)\.(\d+)", named).groups()
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"sys.version_info >= ({major}, {minor})" in text
    assert f"needs Python {major}.{minor} or newer" in text


@pytest.mark.parametrize(("typed", "tested"), [(0, 0), (1, 0), (0, 2)])
@pytest.mark.parametrize("target", ["test", "test-all"])
def test_make_test_fails_with_types_or_tests_and_all_runs_the_notebooks_itself_where_no_browser_is(
    checkout, target, typed, tested
):
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (checkout / ".venv" / "pyvenv.cfg").write_text("")
    (checkout / ".venv" / ".test").touch()
    told = f'case "$*" in *find_chromium*) exit 1;; *loadfile*) echo "$*"; exit {tested};; esac; echo "python $*"'
    for name, does in (("python", told), ("ruff", ":"), ("mypy", f"echo types were checked; exit {typed}")):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    done = make(checkout, target)
    passes, everything = typed == tested == 0, target == "test-all"
    assert (done.returncode == 0) is passes and "types were checked" in done.stdout
    assert ("-m not live and not extended" in done.stdout) is not everything, "the quick tests"
    assert ("-m not live\n" in done.stdout) is everything, done.stdout + done.stderr
    assert ("--nbval-lax notebooks" in done.stdout) is (passes and everything)


def test_an_environment_whose_python_is_gone_is_noticed_though_it_was_set_up(checkout):
    environment(checkout, checkout / "gone")
    (checkout / ".venv" / ".run").touch()
    done = make(checkout, "run")
    told = "the Python that made .venv is gone: delete it (rm -rf .venv) and try again"
    assert done.returncode == 2 and done.stderr.splitlines()[0] == told
