"""Can "Predict, then reveal" be won without reading? The share right by always giving the commonest answer,
over the bundled runs.

At each kind of question the commonest answer is that of all bundled runs together, so this is the most that a
constant guess can come to. python benchmarks/constant_guess.py                  the bundled runs python
benchmarks/constant_guess.py runs/*.jsonl     any traces
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kgot_lab.io.bundled import bundled
from kgot_lab.loop.trace import load_run
from kgot_lab.viz.stepping.prediction import ASKED_ABOUT, Prediction
from kgot_lab.viz.stepping.predictions import predictions


class ConstantGuess(NamedTuple):
    """How often one is right with the same guess each time: at each kind of question its commonest answer, or
    one key at all of them.
    """

    questions: int
    right: int  # with the commonest answer of each kind
    best_key: str
    right_with_key: int
    # of each kind: how many questions, the commonest answer, how often it is right
    kinds: Mapping[str, tuple[int, str, int]]

    @property
    def share(self) -> float:
        """The share right by always giving the commonest answer, 0 to 1."""
        return self.right / self.questions if self.questions else 0.0


def constant_guess(asked: Iterable[Prediction]) -> ConstantGuess:
    """How far one comes without reading: the share right by always giving the commonest answer."""
    asked = list(asked)
    kinds: dict[str, tuple[int, str, int]] = {}
    for kind in ASKED_ABOUT:
        truths = Counter(each.truth for each in asked if each.kind == kind)
        if truths:
            commonest, times = max(truths.items(), key=lambda item: (item[1], item[0]))
            kinds[kind] = truths.total(), commonest, times
    keys = Counter(each.truth[0].upper() for each in asked)
    key, times = max(keys.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return ConstantGuess(len(asked), sum(times for _, _, times in kinds.values()), key, times, kinds)


def main() -> None:
    """Print the questions of each kind, their commonest answer, and how often it is right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path, help="the bundled runs unless named")
    given = parser.parse_args()
    print(told_of_guess(guess_over(given.traces or sorted(bundled("traces").glob("*.jsonl")))))


def guess_over(paths: list[Path]) -> ConstantGuess:
    """What a constant guess comes to over some runs."""
    return constant_guess(asked for path in paths for asked in predictions(load_run(path).events))


def told_of_guess(guess: ConstantGuess) -> str:
    """The shares as lines."""
    lines = [f"{'question':<10} {'asked':>5}  always        right"]
    for kind, (asked, commonest, right) in guess.kinds.items():
        lines.append(f"{kind:<10} {asked:>5}  {commonest:<12}  {right:>3}  {right / asked:.0%}")
    lines.append(f"{'all':<10} {guess.questions:>5}  {'':<12}  {guess.right:>3}  {guess.share:.1%}")
    lines.append(f"one key at every question, {guess.best_key}: {guess.right_with_key} of {guess.questions}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
