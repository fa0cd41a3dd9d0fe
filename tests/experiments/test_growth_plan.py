"""What more passages would take, carried on from what was measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.recall.growth_plan import CARRIED_ON, extrapolated
from kgot_lab.errors import BadInput

ROOT = Path(__file__).parents[2]


def rows(power: float, sizes=(1_000, 10_000, 100_000), lane: str = "words"):
    return [{"lane": lane, "passages": s, **dict.fromkeys(CARRIED_ON, 3e-4 * s**power)} for s in sizes]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.2])
def test_what_grows_by_a_power_is_carried_on_by_it(power):
    for each in extrapolated(rows(power), 10**7):
        assert each.exponent == pytest.approx(power)
        assert each.low == pytest.approx(each.high) == pytest.approx(3e-4 * 10 ** (7 * power))


def test_the_report_has_the_plan_that_the_command_prints():
    command = [sys.executable, ROOT / "benchmarks" / "recall" / "scale.py", "--plan", "10000000"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told in (ROOT / "benchmarks" / "results" / "scale.md").read_text(encoding="utf-8")


def test_failed_rows_do_not_count_and_too_few_are_refused():
    failed = [{"lane": "words", "passages": 10**6, "error": "killed"}]
    assert len(extrapolated([*rows(1.0), *failed], 10**7)) == len(CARRIED_ON)
    with pytest.raises(BadInput, match="the growth of words was measured at 2 sizes; planning takes three"):
        extrapolated([*rows(1.0, (1_000, 10_000)), *failed], 10**7)
    with pytest.raises(BadInput, match="no growth was measured"):
        extrapolated(failed, 10**7)
    with pytest.raises(BadInput, match="passages must be 1 or more"):
        extrapolated(rows(1.0), 0)


def test_where_growth_bends_the_two_fits_say_a_range():
    bent = [
        *rows(1.0, (1_000, 10_000)),
        *[row | {"index_s": 2 * row["index_s"]} for row in rows(1.0, (100_000,))],
    ]
    (index, *_) = [each for each in extrapolated(bent, 10**6) if each.what == "index_s"]
    assert index.low < 1000 < index.high == pytest.approx(1200)
    assert index.exponent == pytest.approx(1.1505, abs=1e-4)
