"""The layers of the package: the contracts of import-linter in pyproject.toml hold."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_packages_import_only_from_their_own_layer_and_those_below():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_package_holds_more_files_than_a_reader_takes_in():
    packages = {path.parent for path in (ROOT / "kgot_lab").rglob("*.py")}
    assert {str(package): n for package in packages if (n := len(list(package.glob("*.py")))) > 26} == {}
