"""The published figures of the comparison, computed again by a program that shares no code with the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "graph_pays" / "recompute.py"


@pytest.mark.parametrize(
    "folder", ["graph_pays", *(f"deciding/{part}" for part in ("open", "open-small", "compared", "no-code"))]
)
def test_every_figure_of_a_comparison_comes_out_the_same_from_its_answers_with_numpy_alone(folder):
    command = [sys.executable, str(PROGRAM), str(ROOT / "benchmarks" / "results" / folder)]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (
        0,
        "all agree with results.json at three decimals",
    )


def test_the_program_imports_nothing_of_the_package():
    assert "kgot_lab" not in PROGRAM.read_text(encoding="utf-8").replace("benchmarks/", "")


def test_the_differences_on_the_standard_sets_come_out_the_same_from_the_stored_rankings():
    program = ROOT / "benchmarks" / "standard_sets" / "recompute.py"
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, encoding="utf-8")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (
        0,
        "18 differences computed; all are those of summary.md",
    )
