"""A short workload that is stopped, or loses its power, at every write, cut, sync and delete, or whose every
call fails: nothing that was acknowledged is lost, nothing invented, and no file is refused.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faults.counting import Counts
from faults.disk import MEMORY, NO_MEMORY, SECTOR, Act, Disk
from faults.kinds import KINDS, Kind
from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.errors import BadInput, LabError, StoreDamaged

Files = dict[str, bytes]


@dataclass(frozen=True)
class Recording:
    """What a workload did to a disk, and the things that it wrote."""

    acts: tuple[Act, ...]
    calls: int
    things: dict[int, str]


def work(kind: Kind, disk: Disk, writes: int) -> None:
    """Write things one by one, with a checkpoint by another connection after half and three quarters of them,
    and rewrite the file at the end.
    """
    path = disk.folder / kind.file
    with closing(kind.open(path)) as opened:
        for number in range(writes):
            kind.write(opened, number)
            disk.acknowledged = number + 1
            if number + 1 in (writes // 2, writes * 3 // 4):
                checkpoint(path, "PASSIVE" if number + 1 == writes // 2 else "TRUNCATE")
        kind.tidy(opened)


def checkpoint(path: Path, how: str) -> None:
    """Let another connection move what the log of an SQLite file holds to the file, unless it cannot."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA wal_checkpoint({how})").fetchall()


def recorded(kind: Kind, folder: Path, writes: int = 20) -> Recording:
    """The whole workload, step by step."""
    with kind.below(Disk(folder)) as disk:
        work(kind, disk, writes)
        calls = disk.calls
    things = kind.things(folder / kind.file)
    assert sorted(things) == list(range(writes)), things
    return Recording(tuple(disk.acts), calls, things)


# --- what is left ---


def do(files: dict[str, bytearray], act: Act) -> None:
    """Do an act to files."""
    held = files.setdefault(act.file, bytearray()) if act.what in ("write", "cut") else bytearray()
    if act.what == "write":
        held.extend(bytes(max(0, act.place - len(held))))
        held[act.place : act.place + len(act.data)] = act.data
    elif act.what == "cut":
        held.extend(bytes(max(0, act.place - len(held))))
        del held[act.place :]
    elif act.what == "delete":
        files.pop(act.file, None)


def stops(kind: Kind, acts: tuple[Act, ...]) -> Iterator[tuple[Files, Act]]:
    """The files as a killed process leaves them before each act, and that act."""
    files: dict[str, bytearray] = {}
    for act in acts:
        index = {f"{kind.file}-shm": act.index} if act.index else {}
        opened = {} if act.file == kind.file else {kind.file: b""}  # and nothing written to it
        yield opened | {name: bytes(data) for name, data in files.items()} | index, act
        do(files, act)


def power_losses(acts: tuple[Act, ...], chance: random.Random) -> Iterator[tuple[Files, Act]]:
    """The files as a loss of power may leave them before each act: what was synced, and anything of the rest.

    A delete is durable with the next sync of any file, as in the file systems that have a journal.
    """
    synced: dict[str, bytearray] = {}
    later: list[Act] = []
    for act in acts:
        files = {name: bytearray(data) for name, data in synced.items()}
        kept_names = set[str]()  # of files whose delete is not on the disk, nor then what took their names
        for each in later:
            if each.what == "delete" and chance.random() < 0.5:
                kept_names.add(each.file)
            elif each.file not in kept_names:
                for part in [each] if each.what == "delete" else torn(each, chance):
                    do(files, part)
        yield {name: bytes(data) for name, data in files.items()}, act
        later.append(act)
        if act.what == "sync":
            durable = [each for each in later if each.file == act.file or each.what == "delete"]
            for each in durable:
                do(synced, each)
            later = [each for each in later if each not in durable]


def torn(act: Act, chance: random.Random) -> list[Act]:
    """All of an act, nothing, its first sectors, or some of them."""
    how = chance.choice(("all", "nothing", "first", "some"))
    if act.what != "write" or how in ("all", "nothing"):
        return [act] if how in ("all", "first") else []
    borders = [act.place, *range((act.place // SECTOR + 1) * SECTOR, act.place + len(act.data), SECTOR)]
    ends = [*borders[1:], act.place + len(act.data)]
    parts = [
        Act("write", act.file, start, act.data[start - act.place : end - act.place])
        for start, end in zip(borders, ends, strict=True)
    ]
    if how == "first":
        return parts[: chance.randrange(len(parts) + 1)]
    return [part for part in parts if chance.random() < 0.5]


def fault_of_rest(
    kind: Kind, files: Files, allowed: list[dict[int, str]], folder: Path, *, strict: bool
) -> str:
    """What is wrong with what was left of files, which hold one of some sets of things; "" for nothing."""
    path = folder / kind.file
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if strict and files.get(kind.file):
        try:
            if not (health := check_file(path)).whole:
                return f"the doctor: {health.said}"
        except BadInput:
            pass  # the doctor does not know this kind
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error" if strict else "ignore")
            if {} in allowed:
                warnings.filterwarnings("ignore", ".* is empty: a new one is begun")
            found = kind.things(path)
        if found not in allowed:
            return f"{sorted(found)} of {sorted(allowed[-2])} are there"
        new = max(found, default=0) + 50
        with closing(kind.open(path)) as opened:
            kind.write(opened, new)
        again = kind.things(path)
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"
    if again.keys() != found.keys() | {new}:
        return f"{sorted(again)} after a further write to {sorted(found)}"
    return ""


def allowed_at(recording: Recording, act: Act, *, less: int = 0) -> list[dict[int, str]]:
    """The things that may be there when an act did not happen: with or without the one that was being written.

    A kind that is not durable may have `less` of them.
    """
    counts = range(max(0, act.acknowledged - less), act.acknowledged + 2)
    return [dict(sorted(recording.things.items())[:count]) for count in counts]


def faults_in(
    kind: Kind,
    recording: Recording,
    rests: Iterator[tuple[Files, Act]],
    every: int = 1,
    *,
    strict: bool = False,
) -> dict[str, str]:
    """What is wrong with what is left at each step, or at one in some."""
    faults = {}
    for step, (files, act) in enumerate(rests, start=len(recording.acts) % every):
        if step % every == 0:
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                allowed = allowed_at(recording, act, less=0 if strict or kind.durable else 1)
                if fault := fault_of_rest(kind, files, allowed, Path(folder), strict=strict):
                    place = f"{step}, before the {act.what} of {act.file} at {act.place}"
                    faults[place] = fault.replace(folder, "")
    return faults


# --- a disk that is full, or fails ---


def rooms(recording: Recording, chance: random.Random) -> Iterator[int]:
    """Each size of a disk at which another write of a workload is the first that does not fit, wholly or in part."""
    disk = Disk(Path())
    for act in recording.acts:
        before = sum(disk.sizes.values())
        disk.record(act.what, act.file, act.place, b"", act.size)
        if (grown := sum(disk.sizes.values()) - before) > 0:
            yield before + chance.choice((0, chance.randrange(grown)))


def fault_of_failures(
    kind: Kind, folder: Path, spoil: Callable[[Disk], object], writes: int, *, closes: bool
) -> str:
    """What is wrong when a disk is spoilt during a workload and repaired later; "" for nothing.

    The file is closed before the disk is repaired, or used again after that.
    """
    path, acknowledged, opened, number = folder / kind.file, set[int](), None, -1
    with kind.below(Disk(folder)) as disk:
        spoil(disk)
        try:
            opened = kind.open(path)
            for number in range(writes):
                kind.write(opened, number)
                acknowledged.add(number)
                if number == writes // 2:
                    checkpoint(path, "PASSIVE")
            written, opened = opened, None
            written.close()
            opened = kind.open(path)
        except Exception as error:
            if fault := fault_of_refusal(error, "write"):
                return fault
        allowed = [acknowledged, acknowledged | {number}]
        for read in (lambda: kind.held(opened), lambda: kind.things(path)):
            try:
                if opened and (found := read()).keys() not in allowed:
                    return f"{sorted(found)} of {sorted(acknowledged)} are read while the disk is spoilt"
            except Exception as error:
                if fault := fault_of_refusal(error, "read"):
                    return fault
        try:
            if opened and closes:
                opened = opened.close()
            disk.mend()
            opened = opened or kind.open(path)
            found = kind.held(opened)
            if found.keys() not in allowed:
                return f"{sorted(found)} of {sorted(acknowledged)} are read once the disk works again"
            kind.write(opened, writes)
            opened.close()
            again = kind.things(path)
        except Exception as error:
            return f"not usable once the disk works again: {type(error).__name__}: {error}"
    wanted = found.keys() | {writes}
    return "" if again.keys() == wanted else f"{sorted(again)} of {sorted(wanted)} are there at the end"


def fault_of_refusal(error: Exception, what: str) -> str:
    """What is wrong with how a failure of the disk is told."""
    said = f"{what}: {type(error).__name__}: {error}"
    if not isinstance(error, LabError | MemoryError):
        return f"a raw error: {said}"
    if isinstance(error, StoreDamaged) or "broken" in said or "damaged" in said:
        return f"wholeness is taken for damage: {said}"
    return f"more than a sentence: {said}" if "\n" in said else ""


def spoils(
    kind: Kind, recording: Recording, chance: random.Random
) -> Iterator[tuple[str, Callable[[Disk], object]]]:
    """Each way to spoil the disk of a workload: full at each size, and each call that fails, once or from then on,
    or for lack of memory.
    """
    for room in rooms(recording, chance):
        yield f"room for {room} bytes", partial(_set, room=room)
    for call in range(1, recording.calls + 1):
        for last, words in ((call + 1, "fails"), (10**9, "and all later ones fail")):
            yield f"call {call} {words}", partial(_set, fails=range(call, last))
        yield f"call {call} has no memory", partial(_set, fails=range(call, call + 1), code=NO_MEMORY)


def _set(disk: Disk, **how: Any) -> None:
    for name, value in how.items():
        setattr(disk, name, value)


def faults_of_failures(
    kind: Kind, recording: Recording, chance: random.Random, every: int = 1
) -> dict[str, str]:
    """What is wrong with each way to spoil the disk, or one in some."""
    faults, first = {}, chance.randrange(every)
    for how, spoil in list(spoils(kind, recording, chance))[first::every]:
        closes, writes = chance.random() < 0.5, len(recording.things)
        with (
            tempfile.TemporaryDirectory(dir=MEMORY) as folder,
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            fault = fault_of_failures(kind, Path(folder), spoil, writes, closes=closes)
            told = (str(warning.message) for warning in warned)
            # where the index of the log is gone too, nobody can tell a write that was refused from one that is lost
            false = (text for text in told if "damaged" in text and "unless the power failed" not in text)
            if fault := fault or next((f"it warns: {text}" for text in false), ""):
                faults[f"{how}{', closed' if closes else ''}"] = fault.replace(folder, "")
    return faults


def run(seconds: float, seed: int) -> Counts:
    """Stops, losses of power and failures of each kind of file in turn, one in some, each time others."""
    ended, chance, cases, faults = time.monotonic() + seconds, random.Random(seed), 0, dict[str, str]()
    kinds = list(KINDS.values())
    while time.monotonic() < ended:
        kind = kinds[(seed + cases) % len(kinds)]
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            recording = recorded(kind, Path(folder), chance.randrange(4, 24))
        every, acts = 40, recording.acts
        found = faults_in(kind, recording, stops(kind, acts), every, strict=True)
        found |= faults_in(kind, recording, power_losses(acts, chance), every)
        found |= faults_of_failures(kind, recording, chance, every)
        cases += 1
        for place, fault in found.items():
            faults.setdefault(f"{kind}: {fault[:50]}", f"{kind}, seed {seed}, {place}: {fault}")
    return Counts(cases, faults)
