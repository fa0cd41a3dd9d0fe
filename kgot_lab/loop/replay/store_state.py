"""What a run left in its store when it was stopped: its graph as it was at some time, or one write more than
its trace knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

from kgot_lab.errors import BadInput, LabError, NotInstalled, SandboxError, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Truth
from kgot_lab.loop.events import Event, Started, Wrote
from kgot_lab.loop.trace import diffs, graph_after
from kgot_lab.stores import open_for, open_store
from kgot_lab.stores.protocol import Dialect, Store

# recorded events walked again in a store, with nothing live
WalkBeside = Callable[[Sequence[Event], Store, Dialect], Iterator[Event]]


def left_behind(events: Sequence[Event], store: Store, walk: WalkBeside) -> tuple[Wrote, ...]:
    """The write that a store has and the trace of its run has not, if there is one; the store then holds what
    the run began with.

    A run is stopped one write ahead when a kill comes between a write and its line. The store holds then just
    the graph of the trace and what the next statement of the run adds, changes or removes, which is found by
    running that in a store of its own beside. One whose outcome is another each time (a random id, the time)
    is not known again. Raises BadInput for a store with any other graph, changing nothing, and SandboxError
    and NotInstalled where the statement cannot be run.
    """
    if not store.schema().nodes or not events or not isinstance(events[0], Started):
        return ()
    there, begun = store.graph(), graph_after(events[:1])
    owed: tuple[Wrote, ...] = ()
    if not _was_at(there, events):
        owed = _next_write(events, store, walk)
        if not owed or graph_after((*events, *owed)) != there:
            wanted = "empty, or hold just the graph that the run began with, or what it had made (at most one write more than its trace)"
            raise BadInput(
                f"the store holds another graph, of {len(there)} nodes; to go on with this run it must be {wanted}"
            )
    if there != begun:
        store.apply(there.diff(begun))
    return owed


def _was_at(graph: PropertyGraph, events: Sequence[Event]) -> bool:
    """Whether this is the graph of a run at any time so far; one that was stopped while it was made again is
    at an early one.
    """
    begun = graph_after(events[:1])
    truth = Truth(begun.nodes, begun.edges)
    if graph == begun:
        return True
    for diff in diffs(events):
        truth.apply(diff)
        alike = len(truth.nodes) == len(graph) and len(truth.edges) == len(graph.edges)
        if alike and PropertyGraph.of(truth.nodes.values(), truth.edges.values()) == graph:
            return True
    return False


def _next_write(events: Sequence[Event], store: Store, walk: WalkBeside) -> tuple[Wrote, ...]:
    """The write that follows on those of a trace before anything live is asked for; none where another thing
    comes next.
    """
    begun = events[0]
    assert isinstance(begun, Started)
    try:
        beside = (
            open_store("sqlite")
            if begun.dialect.startswith("SQL")
            else open_for(begun.dialect, *begun.readers)
        )
    except UnknownName:  # a language of somebody else's store
        return ()
    with closing(beside) as apart:
        try:
            writes = (event for event in walk(events, apart, store.dialect) if isinstance(event, Wrote))
            known = len(diffs(events))
            return next(((write,) for number, write in enumerate(writes) if number == known), ())
        except (NotInstalled, SandboxError) as error:
            error.add_note(
                "The store holds more than the trace: whether the run wrote that is found by running its next statement here."
            )
            raise
        except LabError:
            return ()
