"""Holds the package under fire for hours: statements, stores, files on disks that fail, readers and model servers,
each with random input.

python -m benchmarks.fire.fire --minutes 60            every room in turn, a minute each, with another seed
each time python -m benchmarks.fire.fire --minutes 10 readers    one room Every slice is a process of its own,
so a crash or a hang is a fault and not the end, and a line in runs/fire.jsonl: a run that was stopped goes on
there, and its seeds with it (--again starts over). The table counts cases and distinct faults, each with what
reproduces it; exit code 1 means that there is one. `make test` runs a short form of the same rooms
(tests/faults).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests"
SLICES = HERE.parents[1] / "runs" / "fire.jsonl"


def rooms() -> list[str]:
    """The rooms that can be held under fire: modules of tests/faults with a function `run(seconds, seed)`."""
    found = (
        module.name
        for module in pkgutil.iter_modules([str(TESTS / "faults")])
        if not module.name.startswith("test_")
    )
    return [name for name in found if hasattr(importlib.import_module(f"faults.{name}"), "run")]


def slice_of(room: str, seconds: float, seed: int) -> dict[str, Any]:
    """The cases and faults of one slice; a process that crashes or does not end in thrice its time is a fault
    of its own.
    """
    command = [sys.executable, __file__, "--one", room, str(seconds), str(seed)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=3 * seconds + 120)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # with the servers and sandboxes that it started
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return {"cases": 0, "faults": {"hangs": f"seed {seed}"}}
    if process.returncode:
        # a group of errors ends with a line that has no word
        last = [line for line in err.splitlines() if any(map(str.isalpha, line))][-1:] or ["no word"]
        return {"cases": 0, "faults": {f"ends with {process.returncode}: {last[0][:200]}": f"seed {seed}"}}
    return dict(json.loads(out.strip().splitlines()[-1]))


def table(slices: Sequence[dict[str, Any]]) -> str:
    """The counts of all slices by room, and each distinct fault."""
    cases, turns, faults = Counter[str](), Counter[str](), dict[tuple[str, str], str]()
    for each in slices:
        room = each["room"]
        cases[room] += each["cases"]
        turns[room] += 1
        for name, shown in each["faults"].items():
            faults[room, name] = min(faults.get((room, name), shown), shown, key=len)
    found = Counter(room for room, _ in faults)
    rows = [f"{'room':16}{'slices':>8}{'cases':>12}{'faults':>8}"]
    rows += [f"{room:16}{turns[room]:8,}{cases[room]:12,}{found[room]:8,}" for room in turns]
    rows.append(f"{'all':16}{turns.total():8,}{cases.total():12,}{found.total():8,}")
    return "\n".join([*rows, *(f"\n{room}: {name}\n  {shown}" for (room, name), shown in faults.items())])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--slice", type=float, default=60.0, help="seconds a room has before the next one's turn"
    )
    parser.add_argument("--again", action="store_true", help="forget the slices of an earlier run")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    if options.one:
        room, seconds, seed = options.one
        print(json.dumps(asdict(importlib.import_module(f"faults.{room}").run(float(seconds), int(seed)))))
        return
    known = rooms()
    if strange := sorted(set(options.rooms) - set(known)):
        parser.error(f"there is no room {strange[0]!r}; there are {', '.join(known)}")
    if options.again:
        SLICES.unlink(missing_ok=True)
    SLICES.parent.mkdir(exist_ok=True)
    slices = (
        [json.loads(line) for line in SLICES.read_text(encoding="utf-8").splitlines()]
        if SLICES.exists()
        else []
    )
    chosen, end = options.rooms or known, time.monotonic() + 60 * options.minutes
    try:
        while (left := end - time.monotonic()) > 0:
            seed = len(slices)
            room = chosen[seed % len(chosen)]
            slices.append({"room": room, **slice_of(room, min(options.slice, left), seed)})
            with SLICES.open("a", encoding="utf-8") as file:
                file.write(json.dumps(slices[-1], ensure_ascii=False) + "\n")
            print(
                f"{room}, seed {seed}: {slices[-1]['cases']:,} cases, {len(slices[-1]['faults']):,} faults",
                file=sys.stderr,
            )
    except KeyboardInterrupt:
        print("stopped; the next run goes on here", file=sys.stderr)
    print(table(slices))
    sys.exit(any(each["faults"] for each in slices))


if __name__ == "__main__":
    main()
