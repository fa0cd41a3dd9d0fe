"""Grow a graph from documents without a question. Every passage is written, and nothing is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from kgot_lab.errors import BadInput, LabError
from kgot_lab.loop.events import Cut, Event, Started, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.insert import readable, readable_text, write_all
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.replay.recording import Recording, RememberedLLM, RememberedStore
from kgot_lab.loop.replay.replay import same_event, started, without_losses
from kgot_lab.loop.run_context import Loop, Steps
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import graph_after
from kgot_lab.stores import open_for
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, Document

_READ = "read"  # the "tool" whose return a passage is


def extract(
    documents: Sequence[Document],
    llm: LLM,
    store: Store,
    limits: Limits = LOCAL,
    *,
    done: Sequence[Event] = (),
) -> Iterator[Event]:
    """Write the facts of each document into a store.

    A document longer than `limits.tool_tokens`, or 1,000 if that is more, is cut after that many tokens.
    `done` holds the events of an earlier extraction that was interrupted: its changes are applied, its
    documents are not read again, and the recorded replies for the last one are reused. Raises BadInput,
    LLMError, SandboxError.
    """
    left = left_to_read(documents, limits, done)
    if store.schema().nodes:
        raise BadInput("an extraction begins with an empty store: this one holds a graph")
    before, returned, within = _last_started(done)
    if returned is None or not left or left[0].id != _read_by(returned):
        return _extract(_loop(llm, store, limits, done), left) if left else _nothing(store, done)
    recording = Recording.of(within)
    model = RememberedLLM(recording, llm.name)  # no live model until the recording is replayed
    run = _loop(model, RememberedStore(recording, store), limits, before)
    return _extract(run, left, lambda: _go_on_within(run, model, llm, (*before, returned, *within)))


def left_to_read(
    documents: Sequence[Document], limits: Limits = LOCAL, done: Sequence[Event] = ()
) -> list[Document]:
    """Return the documents that a recorded extraction has not finished, the interrupted one first.

    Raises BadInput if there are no documents, or if they are not those of the extraction.
    """
    if not documents:
        raise BadInput("there is no document to take facts from")
    read = {_read_by(event): event.text for event in done if isinstance(event, ToolReturned)}
    _require_same(read, documents)
    before, returned, within = _last_started(done)
    left = [document for document in documents if document.id not in read]
    if returned is None:
        return left
    recording = Recording.of(within)
    with closing(open_for(started(done).dialect)) as apart:
        run = _loop(
            RememberedLLM(recording, started(done).planning),
            RememberedStore(recording, apart),
            limits,
            before,
        )
        walk = _walk(run, returned)
        is_whole = _follows(walk, within) and _has_ended(walk)
    return (
        left
        if is_whole
        else [*(document for document in documents if document.id == _read_by(returned)), *left]
    )


def _read_by(returned: ToolReturned) -> str:
    return str(returned.call.arguments["document"])


def _last_started(done: Sequence[Event]) -> tuple[Sequence[Event], ToolReturned | None, Sequence[Event]]:
    """Return the events before the last started document, that document, and the events within it."""
    at = max((number for number, event in enumerate(done) if isinstance(event, ToolReturned)), default=-1)
    if at < 0:
        return done, None, ()
    returned = done[at]
    assert isinstance(returned, ToolReturned)
    # a graph is cut once, for several
    within = [event for event in without_losses(done[at + 1 :]) if not isinstance(event, Started | Cut)]
    return done[:at], returned, within


def _loop(llm: LLM, store: Store, limits: Limits, before: Sequence[Event]) -> Loop:
    """Return the loop of an extraction after some events, with their changes applied to its store."""
    state = State()
    for event in before:
        state = state.after(event)
        if isinstance(event, Wrote):
            (store.store if isinstance(store, RememberedStore) else store).apply(event.diff)
    return Loop(llm, llm, store, {}, limits.but(tool_tokens=max(limits.tool_tokens, 1000)), None, state)


def _walk(run: Loop, returned: ToolReturned) -> Steps[None]:
    run.state = run.state.after(returned)
    yield from write_all(run, returned)


def _follows(walk: Iterator[Event], recorded: Sequence[Event]) -> bool:
    """Return whether a walk begins with the recorded events, and advance it just past them."""
    try:
        for was in recorded:
            event = next((event for event in walk if not isinstance(event, Cut)), None)
            if event is None or not same_event(was, event):
                return False
    except LabError:
        return False
    return True


def _has_ended(walk: Iterator[Event]) -> bool:
    try:
        return all(isinstance(event, Cut) for event in walk)
    except LabError:  # it asked for a reply that is not recorded
        return False


def _require_same(read: Mapping[str, str], documents: Sequence[Document]) -> None:
    """Raise BadInput unless the documents are those of the extraction."""
    now = {document.id: document.text for document in documents}
    if gone := [id for id in read if id not in now]:
        raise BadInput(
            f"the extraction has read {gone[0]!r}, which is no longer among the documents: name the same folder, or begin anew"
        )
    if changed := [
        id for id, text in read.items() if text not in (replace_surrogates(now[id]), readable_text(now[id]))
    ]:
        masked = (
            ", or holds a key that the environment had then and has not now: set it, or"
            if "…" in read[changed[0]]
            else ":"
        )
        raise BadInput(f"{changed[0]!r} has changed since the extraction read it{masked} begin a new one")


def _nothing(store: Store, done: Sequence[Event]) -> Iterator[Event]:
    """Yield no event, after setting a store to the graph of an extraction."""
    store.apply(store.graph().diff(graph_after(done)))
    yield from ()


def _extract(
    run: Loop, documents: Sequence[Document], within: Callable[[], Steps[bool]] | None = None
) -> Steps[None]:
    """Read documents. `within` continues with the first of them, and returns whether it could."""
    models = {"planning": run.planning.name, "execution": run.execution.name}
    yield run.happened(
        Started,
        question="",
        preset=run.limits.preset,
        limits=run.limits.as_json(),
        dialect=run.store.dialect.name,
        **models,
    )
    if within is not None and (yield from within()):
        documents = documents[1:]
    for document in documents:
        document = readable(document)
        call = ToolCall(_READ, {"document": document.id})
        returned = run.happened(ToolReturned, call=call, text=document.text, sources=(document,))
        yield returned
        yield from write_all(run, returned)


def _go_on_within(run: Loop, model: RememberedLLM, llm: LLM, done: Sequence[Event]) -> Steps[bool]:
    """Continue with the last started document after its recorded events.

    Returns False if it now runs differently, as with older versions or other limits. The document is then
    read again, on the graph as it was left.
    """
    _, returned, within = _last_started(done)
    assert returned is not None and isinstance(run.store, RememberedStore)
    walk = _walk(run, returned)
    if _follows(walk, within):
        model.live = llm
        yield from walk
        return True
    walk.close()
    run.store = run.store.store
    run.store.apply(run.store.graph().diff(graph_after(done)))
    run.planning = run.execution = llm
    run.shown, run.state = None, State()
    for event in done:
        run.state = run.state.after(event)
    return False
