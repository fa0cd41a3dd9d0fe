"""Grow a graph from documents without a question. Every passage is written, and nothing is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from kgot_lab.errors import BadInput, LabError
from kgot_lab.loop.events import Cut, Event, Started, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.insert import readable_document, readable_text, write_result
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.replay.recording import Recording, ReplayLLM, ReplayStore
from kgot_lab.loop.replay.replay import repeated_events, same_event, start_event
from kgot_lab.loop.run_context import RunContext, Steps
from kgot_lab.loop.state import State, state_after
from kgot_lab.loop.trace import graph_after
from kgot_lab.stores import open_for
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import LLM, Document

_READ_TOOL = "read"  # the "tool" whose return a passage is


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
    unread = unread_documents(documents, limits, done)
    if store.schema().nodes:
        raise BadInput("an extraction begins with an empty store: this one holds a graph")
    earlier, returned, recorded = _last_document(done)
    if not unread:
        store.apply(store.graph().diff(graph_after(done)))
        return iter(())
    if returned is None or unread[0].id != _document_id(returned):
        return _extract(_run_context(llm, store, limits, done), unread)
    recording = Recording.from_events(recorded)
    model = ReplayLLM(recording, llm.name)  # no live model until the recording is replayed
    run = _run_context(model, ReplayStore(recording, store), limits, earlier)
    return _extract(run, unread, lambda: _resume_document(run, model, llm, (*earlier, returned, *recorded)))


def unread_documents(
    documents: Sequence[Document], limits: Limits = LOCAL, done: Sequence[Event] = ()
) -> list[Document]:
    """Return the documents that a recorded extraction has not finished, the interrupted one first.

    Raises BadInput if there are no documents, or if they are not those of the extraction.
    """
    if not documents:
        raise BadInput("there is no document to take facts from")
    read = {_document_id(event): event.text for event in done if isinstance(event, ToolReturned)}
    _require_same_documents(read, documents)
    earlier, returned, recorded = _last_document(done)
    unread = [document for document in documents if document.id not in read]
    if returned is None:
        return unread
    recording = Recording.from_events(recorded)
    with closing(open_for(start_event(done).dialect)) as scratch_store:
        model = ReplayLLM(recording, start_event(done).planning)
        run = _run_context(model, ReplayStore(recording, scratch_store), limits, earlier)
        steps = _write_document(run, returned)
        is_whole = _matches(steps, recorded) and _is_finished(steps)
    return unread if is_whole else [*(d for d in documents if d.id == _document_id(returned)), *unread]


def _document_id(returned: ToolReturned) -> str:
    return str(returned.call.arguments["document"])


def _last_document(done: Sequence[Event]) -> tuple[Sequence[Event], ToolReturned | None, Sequence[Event]]:
    """Return the events before the last started document, that document, and the events within it."""
    last = max((number for number, event in enumerate(done) if isinstance(event, ToolReturned)), default=-1)
    if last < 0:
        return done, None, ()
    returned = done[last]
    assert isinstance(returned, ToolReturned)
    # a graph is cut once, for several
    following = repeated_events(done[last + 1 :])
    recorded = [event for event in following if not isinstance(event, Started | Cut)]
    return done[:last], returned, recorded


def _run_context(llm: LLM, store: Store, limits: Limits, earlier: Sequence[Event]) -> RunContext:
    """Return the loop of an extraction after some events, with their changes applied to its store."""
    state = State()
    for event in earlier:
        state = state.after(event)
        if isinstance(event, Wrote):
            (store.store if isinstance(store, ReplayStore) else store).apply(event.diff)
    return RunContext(
        llm, llm, store, {}, limits.but(tool_tokens=max(limits.tools.tool_tokens, 1000)), None, state
    )


def _write_document(run: RunContext, returned: ToolReturned) -> Steps[None]:
    run.state = run.state.after(returned)
    yield from write_result(run, returned)


def _matches(steps: Iterator[Event], recorded: Sequence[Event]) -> bool:
    """Return whether a walk begins with the recorded events, and advance it just past them."""
    try:
        for expected in recorded:
            event = next((event for event in steps if not isinstance(event, Cut)), None)
            if event is None or not same_event(expected, event):
                return False
    except LabError:
        return False
    return True


def _is_finished(steps: Iterator[Event]) -> bool:
    try:
        return all(isinstance(event, Cut) for event in steps)
    except LabError:  # it asked for a reply that is not recorded
        return False


def _require_same_documents(read: Mapping[str, str], documents: Sequence[Document]) -> None:
    """Raise BadInput unless the documents are those of the extraction."""
    texts = {document.id: document.text for document in documents}
    if missing := [id for id in read if id not in texts]:
        problem = f"the extraction has read {missing[0]!r}, which is no longer among the documents"
        raise BadInput(f"{problem}: name the same folder, or start over")
    forms = {id: (replace_surrogates(text), readable_text(text)) for id, text in texts.items()}
    if changed := [id for id, text in read.items() if text not in forms[id]]:
        masked = ":"
        if "…" in read[changed[0]]:
            masked = ", or holds a key that the environment had then and has not now: set it, or"
        raise BadInput(f"{changed[0]!r} has changed since the extraction read it{masked} begin a new one")


def _extract(
    run: RunContext, documents: Sequence[Document], resume: Callable[[], Steps[bool]] | None = None
) -> Steps[None]:
    """Read documents. `resume` continues with the first of them, and returns whether it could."""
    names = {
        "planning": run.planning.name,
        "execution": run.execution.name,
        "dialect": run.store.dialect.name,
    }
    yield run.record(Started, question="", limits=run.limits.as_json(), **names)
    if resume is not None and (yield from resume()):
        documents = documents[1:]
    for document in documents:
        document = readable_document(document)
        call = ToolCall(_READ_TOOL, {"document": document.id})
        returned = run.record(ToolReturned, call=call, text=document.text, sources=(document,))
        yield returned
        yield from write_result(run, returned)


def _resume_document(run: RunContext, model: ReplayLLM, llm: LLM, done: Sequence[Event]) -> Steps[bool]:
    """Continue with the last started document after its recorded events.

    Returns False if it now runs differently, as with older versions or other limits. The document is then
    read again, on the graph as it was left.
    """
    _, returned, recorded = _last_document(done)
    assert returned is not None and isinstance(run.store, ReplayStore)
    steps = _write_document(run, returned)
    if _matches(steps, recorded):
        model.live = llm
        yield from steps
        return True
    steps.close()
    run.store = run.store.store
    run.store.apply(run.store.graph().diff(graph_after(done)))
    run.planning = run.execution = llm
    run.shown, run.state = None, state_after(done)
    return False
