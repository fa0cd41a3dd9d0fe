"""The run of the tests itself: what one of them leaves in the checkout fails the whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OURS = Path(__file__).parent / "conftest.py"
ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path):
    """A checkout of another project, with the hooks of this one."""
    if shutil.which("git") is None:
        pytest.skip("git is missing, so nothing is compared")
    (tmp_path / "tests").mkdir()
    shutil.copy(OURS, tmp_path / "tests")
    shutil.copytree(
        ROOT / "tests" / "support",
        tmp_path / "tests" / "support",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / ".gitignore").write_text("__pycache__/\nruns/\n")
    (tmp_path / "kept.txt").write_text("as it was")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = tests\naddopts = -p no:cacheprovider\n")
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path


@pytest.mark.extended
@pytest.mark.parametrize(
    ("processes", "leaves", "told"),
    [
        ("0", "log/engine.log.0", "?? log/engine.log.0"),
        ("2", "log/engine.log.0", "?? log/engine.log.0"),
        ("0", "kept.txt", " M kept.txt"),
        ("0", "runs/picture.png", ""),
        ("0", "../outside.txt", ""),
    ],
)
def test_a_file_left_in_the_checkout_fails_the_run_and_is_named(checkout, processes, leaves, told):
    code = (
        "from pathlib import Path",
        f"path = Path({leaves!r})",
        "def test_it():",
        "  path.parent.mkdir(exist_ok=True)",
    )
    (checkout / "tests" / "test_it.py").write_text("\n".join((*code, "  path.write_text('x')")))
    subprocess.run(["git", "-C", checkout, "add", "."], check=True)
    # other plugins take seconds to load, and no part in it
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", processes]
    ran = subprocess.run(command, cwd=checkout, env=alone, capture_output=True, text=True, timeout=600)
    assert ran.returncode == (1 if told else 0), ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    assert ("left in the checkout" in ran.stdout) is bool(told)
    assert told in ran.stdout
