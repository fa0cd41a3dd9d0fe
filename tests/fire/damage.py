"""Files of ours with a flipped bit, a part cut off, a line taken out, or a stretch of zeros: each opens
whole, or it is said.
"""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from support.saved_run import save_run

from fire.counting import Counts
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.embedding.vectors import CACHE_NAME, CachedEmbedder
from kgot_lab.errors import LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.events import Answered, Event, Forced
from kgot_lab.loop.state import Entry, Ledger
from kgot_lab.loop.trace import load_run
from kgot_lab.stores import open_store
from kgot_lab.stores.files import read_graph, write_graph
from kgot_lab.types import Diff, Edge, Node

NODES = tuple(Node(f"n{n}", ("Person",), {"text": f"some text of {n}", "number": n}) for n in range(40))
EDGES = tuple(Edge(f"n{n}", "knows", f"n{n * 7 % 40}", {"year": 1900 + n}) for n in range(40))
TEXTS = ["x" * length for length in range(1, 30)]


class Sines:
    """An embedder that needs no model."""

    name, digest, dimension = "sines", "1", 32

    def embed(self, texts):
        rows = [np.sin(np.arange(1, 33) * (1 + len(text))) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


class Shouted:
    """A maker of skeletons that needs no model."""

    name, digest = "shouted", "1"

    def __call__(self, texts):
        return [text.upper() for text in texts]


@dataclass(frozen=True)
class Sort:
    """A sort of file: its name, what makes it in a folder, what is read of it, and whether it has checks."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    checked: bool = True


def _fill(path: Path) -> None:
    store = open_store(str(path))
    for node in NODES:
        store.apply(Diff(added_nodes=(node,)))
    store.apply(Diff(added_edges=EDGES))
    store.close()


def _graph(path: Path) -> object:
    store = open_store(str(path))
    try:
        return store.graph(), len(store.search("some text")), len(store.neighbours("n7")), store.schema()
    finally:
        store.close()


def _vectors(path: Path) -> object:
    return CachedEmbedder(Sines(), path.parent).embed(TEXTS).tobytes()


def _skeletons(path: Path) -> object:
    return make_skeletons(TEXTS, Shouted(), folder=path.parent)


def _trace(path: Path) -> None:
    forced = (Forced(step=number, what="read") for number in range(9))
    save_run([*forced, Answered(text="London, a city", forced=False)], path)


def _ledger(path: Path) -> None:
    entries = (Entry("r", n, "INSERT", "m", "?", "!", 1, 1, 0.1, 0.0) for n in range(9))
    Ledger(tuple(entries)).save(path)


SORTS = (
    Sort("graph.log", _fill, _graph),
    Sort("graph.db", _fill, _graph),
    Sort(CACHE_NAME, lambda path: CachedEmbedder(Sines(), path.parent).embed(TEXTS), _vectors),
    Sort("skeletons-2.sqlite", _skeletons, _skeletons),
    Sort("run.jsonl", _trace, lambda path: load_run(path).events),
    Sort(
        "graph.graphml",
        lambda path: write_graph(PropertyGraph.of(NODES, EDGES), path),
        read_graph,
        checked=False,
    ),
    Sort(
        "ledger.jsonl",
        _ledger,
        lambda path: path.read_text(encoding="utf-8", errors="replace"),
        checked=False,
    ),
)


def damaged(data: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Some bytes with one kind of damage, and what that is."""
    place, lines = chance.randrange(len(data)), data.splitlines(keepends=True)
    match chance.choice(["flip", "flip", "cut", "zeros", "line out", "lines swapped", "more"]):
        case "flip":
            flipped = data[place] ^ 1 << chance.randrange(8)
            return f"bit flipped at {place}", data[:place] + bytes([flipped]) + data[place + 1 :]
        case "cut":
            return f"cut off at {place}", data[:place]
        case "zeros":
            return f"zeros at {place}", (data[:place] + bytes(100) + data[place + 100 :])[: len(data)]
        case "line out":
            number = chance.randrange(len(lines))
            return f"line {number + 1} taken out", b"".join(lines[:number] + lines[number + 1 :])
        case "lines swapped":
            number = chance.randrange(len(lines))
            return f"line {number + 1} moved to the end", b"".join(
                lines[:number] + lines[number + 1 :] + lines[number : number + 1]
            )
        case _:
            return "more at its end", data + chance.randbytes(chance.randrange(1, 200))


def make_all(folder: Path) -> Mapping[Sort, tuple[bytes, object]]:
    """Each sort of file once, as it is on the disk and as it is read."""
    made = {}
    for sort in SORTS:
        place = folder / sort.name
        sort.make(place)
        made[sort] = (place.read_bytes(), sort.read(place))
    return made


def fault_of(sort: Sort, data: bytes, whole: object, folder: Path) -> str:
    """What is wrong with how a damaged file is read and examined; "" for nothing."""
    path = folder / sort.name
    path.write_bytes(data)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found, said = sort.read(path), ""
        except LabError as error:
            found, said = None, str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    same, said = found == whole, said or "; ".join(str(warning.message) for warning in warned)
    if not said and not same and sort.checked and not _shows(found):
        return "read as something else, without a word"
    path.write_bytes(data)
    try:
        health = check_file(path)
    except LabError:
        return ""
    except Exception as error:
        return f"the doctor: {type(error).__name__}: {error}"
    if health.whole and not same and sort.checked and not _shows(found):
        return f"the doctor calls it whole: {health.said}"
    if health.whole and not sort.checked and "no checksum" not in health.said:
        return "the doctor claims more than it can know"
    return ""


def _shows(found: object) -> bool:
    """Whether what was read says itself that it is not all: a run without its answer is one that was stopped."""
    is_run = isinstance(found, tuple) and all(isinstance(event, Event) for event in found)
    return is_run and not any(isinstance(event, Answered) for event in found)


def run(seconds: float, seed: int) -> Counts:
    """One damage after another, to each sort of file in turn."""
    ended, chance, cases, faults = time.monotonic() + seconds, random.Random(seed), 0, dict[str, str]()
    with tempfile.TemporaryDirectory() as made_in:
        made = make_all(Path(made_in))
        while time.monotonic() < ended:
            for sort, (data, whole) in made.items():
                what, changed = damaged(data, chance)
                cases += 1
                with tempfile.TemporaryDirectory() as folder:
                    fault = "" if changed == data else fault_of(sort, changed, whole, Path(folder))
                if fault:
                    faults.setdefault(f"{sort.name}: {fault[:80]}", f"{sort.name}, {what}: {fault}")
    return Counts(cases, faults)
