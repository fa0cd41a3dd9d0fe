"""Files with a flipped bit, a part cut off or zeroed, pages swapped, lines taken out, or the log of another file:
each is read as it was, or it is said.
"""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.saved_run import save_run

from faults.counting import Counts
from faults.disk import MEMORY, SECTOR
from faults.kinds import KINDS, Kind
from faults.steps import Files, Recording, recorded, stops
from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.errors import BadInput, LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.events import Answered, Event, Forced
from kgot_lab.loop.state import Entry, Ledger
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.files import read_graph, write_graph
from kgot_lab.types import Edge, Node

PAGE = 4096


@dataclass(frozen=True)
class Sample:
    """Files as they are on the disk, the first of which is opened, what is read of it, and whether that is checked."""

    name: str
    files: Files
    read: Callable[[Path], object]
    held: object
    checked: bool = True
    others: tuple[bytes, ...] = ()  # logs of other files of its kind

    @property
    def file(self) -> str:
        return next(iter(self.files))

    def fits(self, found: object) -> bool:
        """Whether something read is what was written, or shows itself that it is not all of it."""
        if (
            isinstance(found, dict)
            and isinstance(self.held, dict)
            and self.name.startswith(("vectors", "texts"))
        ):
            return found.items() <= self.held.items()  # what a cache lost is made again
        is_run = isinstance(found, tuple) and all(isinstance(event, Event) for event in found)
        return found == self.held or (is_run and not any(isinstance(event, Answered) for event in found))


def samples_of(kind: Kind, writes: int = 20) -> Iterator[Sample]:
    """A closed file of a kind, and one with its log, as a killed process leaves it."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as one, tempfile.TemporaryDirectory(dir=MEMORY) as other:
        recording, second = (recorded(kind, Path(folder), writes) for folder in (one, other))
        closed = Path(one, kind.file).read_bytes()
    yield Sample(kind.name, {kind.file: closed}, kind.things, recording.things)
    left, other = (_with_log(kind, each, writes) for each in (recording, second))
    if log := other.get(f"{kind.file}-wal"):
        yield Sample(f"{kind.name} and its log", left, kind.things, recording.things, others=(log,))


def _with_log(kind: Kind, recording: Recording, writes: int) -> Files:
    """The files when all is written and nothing closed."""
    return next((files for files, act in stops(kind, recording.acts) if act.acknowledged == writes), {})


def other_samples() -> Iterator[Sample]:
    """Files that are lines of text: a trace, a graph of another program, and a ledger, which have no checks."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        trace, graph, ledger = (Path(folder, name) for name in ("run.jsonl", "graph.graphml", "ledger.jsonl"))
        save_run(
            [*(Forced(step=n, what="read") for n in range(9)), Answered(text="London, a city", forced=False)],
            trace,
        )
        nodes = tuple(
            Node(f"n{n}", ("Person",), {"text": f"some text of {n}", "number": n}) for n in range(40)
        )
        edges = tuple(Edge(f"n{n}", "knows", f"n{n * 7 % 40}", {"year": 1900 + n}) for n in range(40))
        write_graph(PropertyGraph.of(nodes, edges), graph)
        Ledger(tuple(Entry("r", n, "INSERT", "m", "?", "!", 1, 1, 0.1, 0.0) for n in range(9))).save(ledger)
        for path, read in (
            (trace, lambda path: load_run(path).events),
            (graph, read_graph),
            (ledger, Path.read_bytes),
        ):
            yield Sample(path.name, {path.name: path.read_bytes()}, read, read(path), checked=path == trace)


def all_samples() -> list[Sample]:
    """A sample of each kind of file."""
    return [*(sample for kind in KINDS.values() for sample in samples_of(kind)), *other_samples()]


def patched(data: bytes, place: int, new: bytes) -> bytes:
    """Some bytes with others in their place, no longer than before."""
    return (data[:place] + new + data[place + len(new) :])[: len(data)]


def damaged(sample: Sample, chance: random.Random) -> tuple[str, Files]:
    """Files with one kind of damage, and what that is."""
    name = chance.choice([name for name in sample.files if not name.endswith("-shm")])
    data, hows = sample.files[name], ["flip", "flip", "flip", "flip", "cut", "cut", "zeros", "more"]
    place, lines, pages = chance.randrange(len(data)), data.splitlines(keepends=True), len(data) // PAGE
    page, other = (PAGE * chance.randrange(max(1, pages)) for _ in "ab")
    is_text = b"SQLite" not in data[:16] and not name.endswith("-wal")
    hows += ["cut at a page", "swapped", "page zeroed"] * (pages > 2) + ["line out", "line moved"] * is_text
    hows += ["log gone", "another log"] * bool(sample.others)
    match how := chance.choice(hows):
        case "flip":
            data = patched(data, place, bytes([data[place] ^ 1 << chance.randrange(8)]))
        case "cut":
            data = data[:place]
        case "cut at a page":
            data = data[:page]
        case "zeros":
            data = patched(data, place - place % SECTOR, bytes(SECTOR))
        case "page zeroed":
            data = patched(data, page, bytes(PAGE))
        case "swapped":
            first, second = data[page : page + PAGE], data[other : other + PAGE]
            data = patched(patched(data, page, second), other, first)
        case "more":
            data += chance.randbytes(chance.randrange(1, 200))
        case "line out" | "line moved":
            number = place % len(lines)
            moved = lines[number : number + 1] * (how == "line moved")
            data = b"".join(lines[:number] + lines[number + 1 :] + moved)
        case "another log":
            name, data = f"{sample.file}-wal", sample.others[0]
        case "log gone":
            return how, {sample.file: sample.files[sample.file]}
    return f"{name}: {how} at {place}, or its page {page}", sample.files | {name: data}


def put(files: Files, folder: Path) -> None:
    """Let these be the only files of a folder."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def fault_of(sample: Sample, how: str, files: Files, folder: Path) -> str:
    """What is wrong with how damaged files are read and examined; "" for nothing."""
    path = folder / sample.file
    put(files, folder)
    said, found = "", None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = sample.read(path)
        except LabError as error:
            said = str(error)
        except Exception as error:
            return f"a raw error: {type(error).__name__}: {error}"
    said = said or "; ".join(str(warning.message) for warning in warned)
    if how == "log gone":  # which nobody can tell: what is left is what was there before
        return "" if said or found.items() <= sample.held.items() else "made something up"
    same = said == "" and sample.fits(found)
    if not said and not same and sample.checked:
        return "read as something else, without a word"
    put(files, folder)
    try:
        health = check_file(path)
    except BadInput:
        return ""
    except Exception as error:
        return f"the doctor: {type(error).__name__}: {error}"
    if health.whole and not sample.fits(found) and sample.checked:
        return f"the doctor calls it whole: {health.said}"
    if health.whole and not sample.checked and "no checksum" not in health.said:
        return "the doctor claims more than it can know"
    return ""


def faults_of(sample: Sample, chance: random.Random, times: int) -> dict[str, str]:
    """What is wrong with a sample that is damaged so many times, each time again."""
    faults = {}
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for _ in range(times):
            how, files = damaged(sample, chance)
            if files != sample.files and (fault := fault_of(sample, how, files, Path(folder))):
                faults[how] = fault.replace(folder, "")
    return faults


def run(seconds: float, seed: int) -> Counts:
    """One damage after another, to each sample in turn."""
    ended, chance, cases, faults = time.monotonic() + seconds, random.Random(seed), 0, dict[str, str]()
    samples = all_samples()
    while time.monotonic() < ended:
        for sample in samples:
            cases += 1
            for how, fault in faults_of(sample, chance, 1).items():
                faults.setdefault(f"{sample.name}: {fault[:50]}", f"{sample.name}, {how}: {fault}")
    return Counts(cases, faults)
