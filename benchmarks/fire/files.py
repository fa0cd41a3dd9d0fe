"""Counts what becomes of each kind of file: stopped at every step of 20 writes, without power, on disks that are full or
fail at every call, opened beside writers, and damaged.

python -m benchmarks.fire.files                        every kind: 10,000 openings and 2,000 damages, about an hour
python -m benchmarks.fire.files --opens 100 claims     one kind, with fewer openings
A row is printed as soon as it is counted: cases / faults of each column, then its distinct faults. Exit code 1 means
that there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
COLUMNS = ("stops", "power losses", "failures", "openings", "damages")


def row_of(name: str, opens: int, damages: int) -> tuple[list[tuple[int, int]], Iterable[str]]:
    """The cases and faults of a kind in each column, and its faults."""
    from faults import damage, histories
    from faults.disk import MEMORY
    from faults.kinds import KINDS
    from faults.steps import faults_in, faults_of_failures, power_losses, recorded, spoils, stops

    kind, chance = KINDS[name], random.Random(1)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        recording = recorded(kind, Path(folder))
    acts, times = recording.acts, 5
    found = [list(faults_in(kind, recording, stops(kind, acts), strict=True).values())]
    losses = [faults_in(kind, recording, power_losses(acts, chance)) for _ in range(times)]
    found.append([fault for each in losses for fault in each.values()])
    found.append(list(faults_of_failures(kind, recording, chance).values()))
    cases, reads = [len(acts), times * len(acts), len(list(spoils(kind, recording, chance)))], 0
    found.append([])
    while reads < opens:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            counts, beside = histories.faults_beside([kind], Path(folder), 20, chance.randrange(2**32))
        reads += sum(counts.values())
        found[-1] += beside.values()
        if not counts:
            break
    samples = list(damage.samples_of(kind))
    found.append(
        [
            f"{s.name}: {each}"
            for s in samples
            for each in damage.faults_of(s, chance, damages // len(samples)).values()
        ]
    )
    counts = [*cases, reads, damages]
    shown = [
        f"  {column}: {n:,} x {text}"
        for column, each in zip(COLUMNS, found, strict=True)
        for text, n in Counter(f[:140] for f in each).most_common(5)
    ]
    return list(zip(counts, map(len, found), strict=True)), shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--opens", type=int, default=10_000)
    parser.add_argument("--damages", type=int, default=2_000)
    options = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    from faults.kinds import KINDS

    if strange := sorted(set(options.kinds) - set(KINDS)):
        parser.error(f"there is no kind {strange[0]!r}; there are {', '.join(KINDS)}")
    if min(options.opens, options.damages) < 0:
        parser.error("openings and damages are counted from 0 on")
    print(f"{'kind':12}" + "".join(f"{column:>16}" for column in COLUMNS), flush=True)
    broken = False
    for name in options.kinds or KINDS:
        row, shown = row_of(name, options.opens, options.damages)
        print(f"{name:12}" + "".join(f"{f'{cases:,} / {faults:,}':>16}" for cases, faults in row), flush=True)
        print("\n".join(shown), flush=True)
        broken = broken or any(faults for _, faults in row)
    sys.exit(broken)


if __name__ == "__main__":
    main()
