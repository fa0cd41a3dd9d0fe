"""A clock that jumps, and folders that cannot be written to or that go away while a file in them is open.

Run as: python -m faults.places FOLDER. It reads and writes the file of each kind in a folder, and says what it was told.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from faults.kinds import KINDS, NOON, Kind
from faults.steps import Files, fault_of_refusal, recorded, stops

JUMPS = (
    *(timedelta(seconds=seconds) for seconds in (0, 1, -1, 3_600, -3_600)),
    *(timedelta(days=days) for days in (1, -1, 400, -400, 36_500, -20_000, 0)),
)


# --- a folder that cannot be written to ---


def left_by_a_kill(kind: Kind, folder: Path) -> Files:
    """The files of a process that was killed once it had written all and closed nothing."""
    recording = recorded(kind, folder, 8)
    closed = {kind.file: (folder / kind.file).read_bytes()}
    return next((files for files, act in stops(kind, recording.acts) if act.acknowledged == 8), closed)


def has_log_without_index(path: Path) -> bool:
    """Whether a log is beside a file that only who can write can recover."""
    return path.with_name(f"{path.name}-wal").exists() and not path.with_name(f"{path.name}-shm").exists()


def told(kind: Kind, path: Path) -> list[str]:
    """What is wrong with how a file that cannot be written to is read, and a write to it refused."""
    faults, wanted = list[str](), set(range(8))
    try:
        if (found := kind.things(path).keys()) != wanted:
            faults.append(f"{sorted(found)} are read")
    except Exception as error:
        is_told = has_log_without_index(path) and "the log beside it cannot be recovered" in str(error)
        fault = fault_of_refusal(error, "read") if is_told else f"it is not read: {error}"
        faults.append(fault)
    try:
        with closing(kind.open(path)) as opened:
            kind.write(opened, 50)
        faults.append("a write was acknowledged")
    except Exception as error:
        faults.append(fault_of_refusal(error, "write"))
    return [fault for fault in faults if fault]


def faults_where_nothing_can_be_written(folder: Path) -> dict[str, str]:
    """What is wrong with each kind of file in a folder that is mounted to be read only, closed or left by a kill."""
    places = {}
    for kind in KINDS.values():
        closed, left = folder / f"{kind}.closed", folder / f"{kind}.left"
        closed.mkdir()
        left.mkdir()
        for name, data in left_by_a_kill(kind, closed).items():
            (left / name).write_bytes(data)
        places |= {closed: kind, left: kind}
    tests = Path(__file__).parents[1]
    command = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--ro-bind",
        folder,
        folder,
        sys.executable,
        "-m",
        "faults.places",
        folder,
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tests, tests.parent)))}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    faults = {name: "; ".join(found) for name, found in json.loads(out).items() if found}
    for place, kind in places.items():
        if (found := kind.things(place / kind.file).keys()) != set(range(8)):
            faults[place.name] = f"{sorted(found)} are read once it can be written to"
    return faults


# --- a folder that goes away ---


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def replaced(folder: Path) -> None:
    moved(folder)
    folder.mkdir()


def swapped(folder: Path) -> None:
    moved(folder)
    shutil.copytree(folder.with_name("moved"), folder)


WAYS: tuple[Callable[[Path], None], ...] = (moved, replaced, swapped, shutil.rmtree)


def fault_of_going(kind: Kind, home: Path, go: Callable[[Path], None]) -> str:
    """What is wrong when the folder of an open file goes away in some way; "" for nothing.

    A write that is acknowledged all the same must be in the file of that name, or in the one that was moved.
    """
    (folder := home / "here").mkdir()
    acknowledged = set[int]()
    opened = kind.open(folder / kind.file)
    for number in range(6):
        try:
            kind.write(opened, number)
            acknowledged.add(number)
        except Exception as error:
            if fault := fault_of_refusal(error, "write"):
                return fault
        if number == 2:
            go(folder)
            before = set(acknowledged)
    try:
        opened.close()
    except Exception as error:
        if fault := fault_of_refusal(error, "close"):
            return fault
    found = set[int]()
    for place in (folder, home / "moved"):
        if (path := place / kind.file).exists():
            found |= kind.things(path).keys()
    lost = acknowledged - found - (before if go is shutil.rmtree else set())
    return f"{sorted(lost)} were acknowledged and are in a deleted file" if lost else ""


# --- a clock that jumps ---


def fault_of_clock(kind: Kind, path: Path) -> str:
    """What is wrong when the clock jumps between writes; "" for nothing, and for a kind that has no clock."""
    if "now" not in inspect.signature(kind.open).parameters:
        return ""
    time = NOON
    clocked = replace(kind, open=lambda path: kind.open(path, now=lambda: time))
    with closing(clocked.open(path)) as opened:
        for number, jump in enumerate(JUMPS):
            time = NOON + jump
            kind.write(opened, number)
            if (found := kind.held(opened).keys()) != set(range(number + 1)):
                return f"{sorted(found)} of {number + 1} are read after {jump}"
    found = kind.things(path).keys()
    return "" if found == set(range(len(JUMPS))) else f"{sorted(found)} of {len(JUMPS)} are read at the end"


def main() -> None:
    warnings.simplefilter("ignore")
    faults = {
        place.name: told(KINDS[place.stem], place / KINDS[place.stem].file)
        for place in Path(sys.argv[1]).iterdir()
    }
    sys.stdout.write(json.dumps(faults))


if __name__ == "__main__":
    main()
