"""Output files for graphs, which never overwrite another program's file or one changed meanwhile."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from kgot_lab.cli import terminal
from kgot_lab.cli.configuration import StoreChoice
from kgot_lab.cli.resume import command_line
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.graph.snapshots import write_snapshot
from kgot_lab.io.files import read_regular_file
from kgot_lab.io.processes import lock_file
from kgot_lab.loop.events import Event, Started, Wrote
from kgot_lab.loop.evidence import add_supports
from kgot_lab.loop.replay.replay import start_event
from kgot_lab.loop.trace import (
    consistent_events,
    first_inconsistent_write,
    graph_after,
    inconsistency_message,
)
from kgot_lab.stores.files import check_graph_file, lossless_format, read_graph, read_named_graph, write_graph

_WOULD_BE_LOST = "is there, and what it holds would be lost: name a new file, or begin with it (--graph)"
_OTHER_GRAPH = "holds another graph than the run began with, which would be lost: name another file"


@dataclass(frozen=True)
class SavedGraph:
    """A file for a graph, with the digest and format of what it held when the command began.

    Both are "" if it did not exist.
    """

    path: Path
    held: str = ""
    form: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether something else wrote, or deleted, the file since."""
        return _file_digest(self.path) != self.held

    @property
    def free_path(self) -> Path:
        """A path beside it that does not exist."""
        names = (self.path.with_stem(f"{self.path.stem}-{number}") for number in count(2))
        return next(path for path in names if not path.exists())


def check_save_target(path: Path, option: str, why_not: Callable[[PropertyGraph], str]) -> SavedGraph:
    """Check that a graph can be saved in a file: a new one, or one written by this package.

    `why_not` returns a reason not to overwrite the graph in the file, or "". Raises BadInput if the file
    cannot be used, or if there is such a reason.
    """
    terminal.check_writable(path)
    check_graph_file(path)
    digest = _file_digest(path)
    if not digest:
        return SavedGraph(path)
    try:
        graph = read_named_graph(path).graph
    except BadInput:
        raise BadInput(f"{option} {path} holds no graph, and would be lost: name another file") from None
    if reason := why_not(graph):
        raise BadInput(f"{option} {path} {reason}")
    file_format = lossless_format(path)
    if not file_format:
        lost = "parts of it (IRIs, languages, types, defaults, remarks) would be lost: name another file"
        raise BadInput(f"{option} {path} is not as this program writes a graph, so {lost}")
    return SavedGraph(path, digest, file_format)


def save_target(choice: StoreChoice) -> SavedGraph | None:
    """Return where the graph of a new run is saved, or None if it is not saved. Raises BadInput."""
    if choice.save is None:
        return None
    initial_path = None if choice.graph is None or "://" in choice.graph else Path(choice.graph).resolve()
    reason = "" if initial_path == Path(choice.save).resolve() else _WOULD_BE_LOST
    return check_save_target(Path(choice.save), "--save-graph", lambda _: reason)


def resumed_save_target(choice: StoreChoice, initial: PropertyGraph) -> SavedGraph | None:
    """Return where the graph of a resumed run is saved, or None if it is not saved.

    It must be a new file, or one that still holds the initial graph of the run. Raises BadInput otherwise.
    """
    if choice.save is None:
        return None
    path = Path(choice.save)
    return check_save_target(path, "--save-graph", lambda graph: "" if graph == initial else _OTHER_GRAPH)


def save_graph(graph: PropertyGraph, events: Sequence[Event], target: SavedGraph) -> None:
    """Write the graph of a run, with the supporting sentences on its edges.

    The format follows the file ending: JSON lines, GraphML or Turtle. Raises BadInput if the file changed
    since the command began, without touching it.
    """
    file_format = target.form or ("networkx" if target.path.suffix.lower() in {".json", ".jsonl"} else None)
    write = partial(write_graph, add_supports(graph, events), target.path, file_format)
    if not _write_if_unchanged(target, write):
        raise BadInput(f"{target.path} was written by another command in the meantime, and stays as it is")
    terminal.say(f"{graph} written to {target.path}")


def rewrite_graph(events: Sequence[Event], path: Path, *, is_named: bool) -> None:
    """Write the graph of a finished run if the file is missing or still holds the initial graph of the run.

    A file with another graph is not changed. This is reported, or raises BadInput if the file was named
    explicitly.
    """
    graph, initial = graph_after(consistent_events(events)), start_event(events).start
    if (diverged_at := first_inconsistent_write(events)) is not None:
        known = f"the graph of this run is known up to event {diverged_at} alone"
        terminal.say(f"note: {known}: {inconsistency_message(diverged_at)}")
    existing = read_named_graph(path).graph if path.exists() else None
    if existing is not None and (not initial or graph == initial or existing != initial):
        if existing != add_supports(graph, events):
            message = f"{path} holds another graph than this run made, and stays as it is"
            if is_named:
                raise BadInput(f"{message}: --save-graph OTHER keeps that of the run")
            terminal.say(f"note: {message}: --save-graph OTHER keeps that of the run")
        return
    save_graph(graph, events, check_save_target(path, "--save-graph", lambda _: ""))


def with_snapshots(events: Iterable[Event], folder: str | None, trace: Path) -> Iterator[Event]:
    """Yield events, and with a folder, write the graph after every write to snapshot_1.json and so on.

    Snapshots of another run are not changed. None is written from the first of them on, and this is reported.
    """
    if folder is None:
        yield from events
        return

    state, number, is_ours = MutableGraph(), 0, True
    for event in events:
        if isinstance(event, Started):
            state = MutableGraph(event.start.nodes, event.start.edges)
        if isinstance(event, Wrote) and is_ours:
            try:
                state.apply(event.diff)
            except BadInput:  # the run continues, with its writes in store and trace
                is_ours = False
                terminal.say("note: no more snapshots: another command writes to the store of this run too")
        if isinstance(event, Wrote) and is_ours:
            number += 1
            path = Path(folder) / f"snapshot_{number}.json"
            is_ours = _matches_snapshot(PropertyGraph.of(state.nodes.values(), state.edges.values()), path)
            if not is_ours:
                resume_with = command_line("resume", trace, snapshots=SavedGraph(Path(folder)).free_path)
                stops = f"{path} is of another run, so none is written from here on"
                terminal.say(f"note: {stops}; when the run has ended: {resume_with}")
        yield event


def check_snapshots(folder: str | None, *, begins: bool) -> None:
    """Check that snapshots can be written into a folder, which must be empty or new for a new run.

    Raises BadInput otherwise.
    """
    if folder is None:
        return
    path = Path(folder)
    if path.exists() and (not path.is_dir() or (begins and any(path.iterdir()))):
        raise BadInput(f"--snapshots {path} is there and not an empty folder: name a new one")
    terminal.check_writable(path / "snapshot_1.json")


def _matches_snapshot(graph: PropertyGraph, path: Path) -> bool:
    """Return whether a snapshot file holds this graph, after writing it if it did not exist."""
    if _write_if_unchanged(SavedGraph(path), lambda: write_snapshot(graph, path, variant="networkx")):
        return True
    try:
        return read_graph(path) == graph
    except BadInput:
        return False


def _write_if_unchanged(target: SavedGraph, write: Callable[[], None]) -> bool:
    """Write a file if its path is unchanged, and return whether it was. Of two commands, only one writes."""
    try:
        if target.held:
            return _overwrite_locked(target, write)
        with suppress(FileExistsError):  # reported when the file is created, if it is no folder
            target.path.parent.mkdir(parents=True, exist_ok=True)
        target.path.open("xb").close()
    except FileExistsError:
        return False
    except OSError as error:
        raise BadInput(f"cannot write {target.path}: {error.strerror or error}") from error
    try:
        write()
    except BaseException:
        target.path.unlink(missing_ok=True)
        raise
    return True


def _overwrite_locked(target: SavedGraph, write: Callable[[], None]) -> bool:
    """Overwrite a file that has not changed, under a lock against other commands."""
    try:
        with target.path.open("rb") as file:
            if os.name != "nt":  # where a file that is open cannot be replaced
                lock_file(file)
            if target.is_changed or not os.path.samestat(os.fstat(file.fileno()), target.path.stat()):
                return False
            write()
            return True
    except (FileNotFoundError, BlockingIOError):
        return False


def _file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, or "" if there is none. Raises BadInput if it cannot be read."""
    try:
        return hashlib.sha256(read_regular_file(path)).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None
