"""What more passages would take, carried on from what was measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.recall.growth_plan import CARRIED_ON, extrapolated

ROOT = Path(__file__).parents[2]


def rows(power: float, sizes=(1_000, 10_000, 100_000), lane: str = "words"):
    return [
        {"lane": lane, "passages": size, **dict.fromkeys(CARRIED_ON, 3e-4 * size**power)} for size in sizes
    ]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.2])
def test_what_grows_by_a_power_is_carried_on_by_it(power):
    for each in extrapolated(rows(power), 10**7):
        assert each.exponent == pytest.approx(power)
        assert each.low == pytest.approx(each.high) == pytest.approx(3e-4 * 10 ** (7 * power))


def test_the_report_has_the_plan_that_the_command_prints():
    command = [sys.executable, ROOT / "benchmarks" / "recall" / "scale.py", "--plan", "10000000"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told in (ROOT / "benchmarks" / "results" / "scale.md").read_text(encoding="utf-8")
