"""False alarms and power of trials of two variants that are looked at after every outcome, beside a t-test
that is looked at as often.

    python -m benchmarks.experts.ab_trials            # simulate them all (about a minute)
    python -m benchmarks.experts.ab_trials --table    # print the table of the last results

Every trial is a simulation: thumbs of known rates, each for a variant by a coin; in one row the rate rises
while the trial runs. An alarm is the first look at which a difference of 0 is excluded (the comparison of
kgot_lab.experts.trials) or at which |t| is above 1.96 with 30 thumbs or more for each variant (the t-test).
The difference shown at an alarm is larger than the true one either way: it was chosen for that. Results go to
benchmarks/results/ab_trials.json; the exit code is 1 where the comparison's false alarms may be above 5 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "ab_trials.json"
ALPHA, THUMBS, LEAST = 0.05, 4000, 30
# the rate at the beginning of a trial and at its end
NONE = ((0.5, 0.5), (0.6, 0.6), (0.8, 0.8), (0.95, 0.95), (0.4, 0.8))
EFFECTS = (0.05, 0.1, 0.2)
BATCH = 100
HEAD = (
    f"{'up':>9}{'effect':>8}{'trials':>8} |{'alarms':>8}{'95 %':>14}{'thumbs to one':>15}{'shown there':>13}"
    f" |{'t-test':>8}{'95 %':>14}{'thumbs to one':>15}{'shown there':>13} |{'t-test once':>12}"
)


def first(reached: np.ndarray) -> np.ndarray:
    """The place of the first look of each trial that is an alarm, -1 without one; shape (trials, looks)."""
    return np.where(reached.any(axis=1), reached.argmax(axis=1), -1)


def by_betting(arms: np.ndarray, ups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """After how many thumbs each trial has an alarm (0: none) and the difference it shows then, by the
    comparison of the package.
    """
    from kgot_lab.experts.trials.measures import log_capitals

    trials, most = arms.shape
    # what is not filled bets on a difference of 0
    gaps, whole = (np.zeros((trials, most // 2)), np.zeros((trials, most // 2), int))
    for row in range(trials):
        a, b = np.flatnonzero(~arms[row]), np.flatnonzero(arms[row])
        pairs = min(len(a), len(b))
        gaps[row, :pairs] = ups[row, b[:pairs]].astype(float) - ups[row, a[:pairs]]
        whole[row, :pairs] = np.maximum(a[:pairs], b[:pairs]) + 1
    found = first(np.maximum(*log_capitals(gaps)) >= math.log(1 / ALPHA))
    shown = np.cumsum(gaps, axis=1)[np.arange(trials), found] / np.maximum(found + 1, 1)
    return np.where(found >= 0, whole[np.arange(trials), found], 0), shown


def by_t(arms: np.ndarray, ups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by a t-test after every thumb, and whether the t-test has an alarm where one looks once, at
    the end.
    """
    n_b, up_b = np.cumsum(arms, axis=1), np.cumsum(arms & ups, axis=1)
    n_a, up_a = np.cumsum(~arms, axis=1), np.cumsum(~arms & ups, axis=1)
    many = (n_a >= LEAST) & (n_b >= LEAST)
    n_a, n_b = np.maximum(n_a, 2), np.maximum(n_b, 2)
    gap = up_b / n_b - up_a / n_a
    variance = sum(up / n * (1 - up / n) / (n - 1) for up, n in ((up_a, n_a), (up_b, n_b)))
    alarm = many & (np.abs(gap) > 1.96 * np.sqrt(variance))
    found = first(alarm)
    return found + 1, gap[np.arange(len(arms)), found], alarm[:, -1]


def summary(looks: np.ndarray, shown: np.ndarray) -> dict[str, Any]:
    """How many trials had an alarm, after how many thumbs half of these, and the mean size of the difference
    they showed then.
    """
    from kgot_lab.evaluation.significance import share

    had = looks > 0
    rate = share(int(had.sum()), len(looks))
    found = {"rate": rate.mean, "low": rate.low, "high": rate.high, "thumbs": None, "shown": None}
    return found | (
        {"thumbs": int(np.median(looks[had])), "shown": float(np.abs(shown[had]).mean())} if had.any() else {}
    )


def simulated(
    ends: tuple[float, float], effect: float, trials: int, chance: np.random.Generator
) -> dict[str, Any]:
    """Trials of one effect, both ways of looking at the same thumbs."""
    betting, repeated, once = [], [], []
    for _ in range(trials // BATCH):
        arms = chance.random((BATCH, THUMBS)) < 0.5
        ups = chance.random((BATCH, THUMBS)) < np.linspace(*ends, THUMBS) + effect * arms
        betting.append(by_betting(arms, ups))
        *alarms, end = by_t(arms, ups)
        repeated.append(alarms)
        once.append(end)
    ours, theirs = (summary(*map(np.concatenate, zip(*some, strict=True))) for some in (betting, repeated))
    both = {"betting": ours, "t_test": theirs, "t_test_once": float(np.concatenate(once).mean())}
    return {"up": ends, "effect": effect, "trials": trials, **both}


def verdicts(effect: float, trials: int, conversations: int) -> dict[str, Any]:
    """What whole verdicts, with every reason to decline, say of simulated raters."""
    from benchmarks.experts.simulated_raters import SimulatedVariant, simulated_outcomes
    from kgot_lab.experts.trials.verdict import trial_verdict

    better = SimulatedVariant(up=0.6 + effect)
    said = [trial_verdict(simulated_outcomes(conversations, b=better, seed=seed)) for seed in range(trials)]
    why = Counter(each.declined[0].why for each in said if each.declined)
    won = Counter(each.winner for each in said if each.winner)
    return {
        "effect": effect,
        "trials": trials,
        "conversations": conversations,
        "winner": dict(won),
        "declined": dict(why),
    }


def line(row: dict[str, Any]) -> str:
    up = "–".join(f"{rate:.2f}" for rate in dict.fromkeys(row["up"]))
    parts = [f"{up:>9}{row['effect']:+8.2f}{row['trials']:8,} |"]
    for way in (row["betting"], row["t_test"]):
        shown = "–" if way["shown"] is None else f"{way['shown']:.3f}"
        span = f"{way['low']:.1%}–{way['high']:.1%}"
        parts.append(
            f"{way['rate']:8.1%}{span:>14}{'–' if way['thumbs'] is None else way['thumbs']:>15}{shown:>13} |"
        )
    return "".join(parts) + f"{row['t_test_once']:12.1%}"


def listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def show(found: dict[str, Any]) -> None:
    print(
        f"simulated trials of {found['thumbs']:,} thumbs, looked at after each\n{HEAD}",
        *map(line, found["trials"]),
        sep="\n",
    )
    for each in found["verdicts"]:
        told = f"{each['trials']} verdicts on {each['conversations']:,} conversations, effect {each['effect']:+.2f}"
        print(f"{told}: won: {listed(each['winner'])}; declined: {listed(each['declined'])}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--trials", type=int, default=2000, help="without an effect, for each rate; half as many with one"
    )
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    options = parser.parse_args()
    if options.table:
        show(json.loads(RESULTS.read_text()))
        return
    began, chance = time.process_time(), np.random.default_rng(0)
    rows = [simulated(ends, 0.0, options.trials, chance) for ends in NONE]
    rows += [simulated((0.6, 0.6), effect, options.trials // 2, chance) for effect in EFFECTS]
    found = {
        "thumbs": THUMBS,
        "alpha": ALPHA,
        "trials": rows,
        "verdicts": [verdicts(effect, 100, 1000) for effect in (0.0, 0.2)],
    }
    RESULTS.write_text(
        json.dumps({**found, "cpu_seconds": round(time.process_time() - began, 1)}, indent=1) + "\n"
    )
    show(found)
    sys.exit(1 if any(row["betting"]["high"] > ALPHA for row in rows if not row["effect"]) else 0)


if __name__ == "__main__":
    main()
