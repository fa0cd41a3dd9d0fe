"""Counts what becomes of each kind of file: stopped at every step of 20 writes, without power, on disks that are full or
fail at every call, opened beside writers, and damaged.

python -m benchmarks.fire.files                        every kind: 10,000 openings and 2,000 damages, about an hour
python -m benchmarks.fire.files --opens 100 claims     one kind, with fewer openings
python -m benchmarks.fire.files --kills 15 claims worlds investment proposals
                                                       two processes write to one file, and each is killed, until 15 were
A row is printed as soon as it is counted: cases / faults of each column, then its distinct faults. Exit code 1 means
that there is one.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
COLUMNS = ("stops", "power losses", "failures", "openings", "damages")


def counted(name: str, opens: int, damages: int) -> dict[str, tuple[int, list[str]]]:
    """The number of cases of a kind and its faults, by column."""
    from faults import damage, histories
    from faults.disk import MEMORY
    from faults.kinds import KINDS
    from faults.steps import faults_in, faults_of_failures, power_losses, recorded, spoils, stops

    kind, chance, opened, beside = KINDS[name], random.Random(1), 0, list[str]()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        recording = recorded(kind, Path(folder))
    acts = recording.acts
    stopped = faults_in(kind, recording, stops(kind, acts), strict=True)
    lost = faults_in(kind, recording, power_losses(acts, chance))
    failed = faults_of_failures(kind, recording, chance)
    if opens:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder, histories.other_process() as ask:
            opened, found = histories.faults_beside_each_step(kind, Path(folder), ask, writes=20)
            beside += found.values()
    while opened < opens and "client" not in beside:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            counts, faults = histories.faults_beside([kind], Path(folder), 20, chance.randrange(2**32))
        opened += sum(counts.values())
        beside += [*faults.values(), *faults.keys() & {"client"}]
    harmed, samples = list[str](), list(damage.samples_of(kind))
    for sample in samples:
        harm = damage.faults_of(sample, chance, damages // len(samples))
        harmed += [f"{sample.name}: {fault}" for fault in harm.values()]
    ways = len(list(spoils(kind, recording, chance)))
    rows = [(len(acts), stopped.values()), (len(acts), lost.values()), (ways, failed.values())]
    rows += [(opened, beside), (damages, harmed)]
    return {column: (cases, list(faults)) for column, (cases, faults) in zip(COLUMNS, rows, strict=True)}


def killed(name: str, kills: int) -> str:
    """What became of a file to which two processes wrote at once, each killed at a moment of its first writes."""
    from faults.kinds import KINDS

    chance, done, begun, count, inside = random.Random(1), set[int](), set[int](), 0, 0

    def killed_writer(first: int, most: int, delay: float) -> tuple[list[int], list[int]]:
        command = [sys.executable, "-m", "benchmarks.fire.files", "--writer", name, str(path), str(first)]
        mine: dict[str, list[int]] = {"begin": [], "done": []}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:  # to its end: it may have said more before it died
                word, number = line.split()
                mine[word].append(int(number))
                if word == "begin" and len(mine[word]) == most:
                    time.sleep(delay)
                    writer.send_signal(signal.SIGKILL)
        if writer.returncode != -signal.SIGKILL:
            raise RuntimeError(f"a writer of {name} ended with {writer.returncode} before it was killed")
        return mine["begin"], mine["done"]

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        path = Path(folder) / KINDS[name].file
        KINDS[name].open(path).close()
        while count < kills:
            first = max(begun, default=1) + 1
            moments = [(first + each, chance.randint(1, 9), chance.uniform(0, 0.01)) for each in range(2)]
            for mine_begun, mine_done in threads.map(lambda moment: killed_writer(*moment), moments):
                count, inside = count + 1, inside + (len(mine_begun) > len(mine_done))
                begun.update(mine_begun)
                done.update(mine_done)
        held = KINDS[name].things(path)
    lost, strange = len(done - held.keys()), len(held.keys() - begun)
    return f"{name:12}{count:8}{inside:8}{len(done):14}{lost:6}{strange:9}"


def write_until_killed(name: str, path: str, first: str) -> None:
    """Write every second thing from a number on, and say what is begun and what is done."""
    from faults.kinds import KINDS

    opened = KINDS[name].open(Path(path))
    for number in range(int(first), int(first) + 200, 2):
        os.write(1, b"begin %d\n" % number)
        KINDS[name].write(opened, number)
        os.write(1, b"done %d\n" % number)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--opens", type=int, default=10_000)
    parser.add_argument("--damages", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--writer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    if options.writer:
        write_until_killed(*options.writer)
        return
    from faults.kinds import KINDS

    if strange := sorted(set(options.kinds) - set(KINDS)):
        parser.error(f"there is no kind {strange[0]!r}; there are {', '.join(KINDS)}")
    if min(options.opens, options.damages) < 0:
        parser.error("openings and damages are counted from 0 on")
    if options.kills:
        print(
            f"{'kind':12}{'kills':>8}{'inside':>8}{'acknowledged':>14}{'lost':>6}{'invented':>9}", flush=True
        )
        rows = [killed(name, options.kills) for name in options.kinds or KINDS]
        print("\n".join(rows))
        sys.exit(any(row.split()[-2:] != ["0", "0"] for row in rows))
    print(f"{'kind':12}" + "".join(f"{column:>16}" for column in COLUMNS), flush=True)
    broken = False
    for name in options.kinds or KINDS:
        row = counted(name, options.opens, options.damages)
        print(
            f"{name:12}" + "".join(f"{f'{cases:,} / {len(faults):,}':>16}" for cases, faults in row.values()),
            flush=True,
        )
        for column, (_, faults) in row.items():
            for text, times in Counter(fault[:140] for fault in faults).most_common(5):
                print(f"  {column}: {times:,} x {text}", flush=True)
            broken = broken or bool(faults)
    sys.exit(broken)


if __name__ == "__main__":
    main()
