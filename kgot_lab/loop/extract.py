"""Grow a graph from documents without a question: every passage is written, nothing is asked of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Event, Started, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.insert import readable, write_all
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.run import Loop, Steps
from kgot_lab.loop.state import State
from kgot_lab.stores.protocol import Store
from kgot_lab.types import LLM, Document

_READ = "read"  # the "tool" whose return a passage is


def extract(
    documents: Sequence[Document], llm: LLM, store: Store, limits: Limits = LOCAL, *, done: Sequence[Event] = ()
) -> Iterator[Event]:
    """Write the facts of each document into a store; of one longer than `limits.tool_tokens`, or 1,000 if that is more, the beginning.

    `done` holds the events of an earlier extraction that was stopped: its changes are applied, and its documents, except the last one
    begun, are not read again. Raises BadInput, LLMError, SandboxError.
    """
    if not documents:
        raise BadInput("there is no document to take facts from")
    if store.schema().nodes:
        raise BadInput("an extraction begins with an empty store: this one holds a graph")
    read = {str(event.call.arguments["document"]): event.text for event in done if isinstance(event, ToolReturned)}
    _require_same(read, documents)
    finished = list(read)[:-1]
    for event in done:
        if isinstance(event, Wrote):
            store.apply(event.diff)
    run = Loop(llm, llm, store, {}, limits.but(tool_tokens=max(limits.tool_tokens, 1000)), None, State(question=""))
    return _extract(run, [document for document in documents if document.id not in finished])


def _require_same(read: Mapping[str, str], documents: Sequence[Document]) -> None:
    """Refuse to go on with documents that are not those of the extraction."""
    now = {document.id: readable(document).text for document in documents}
    if gone := [id for id in read if id not in now]:
        raise BadInput(f"the extraction has read {gone[0]!r}, which is no longer among the documents: name the same folder, or begin anew")
    if changed := [id for id, text in read.items() if now[id] != text]:
        raise BadInput(f"{changed[0]!r} has changed since the extraction read it: begin a new one")


def _extract(run: Loop, documents: Sequence[Document]) -> Steps[None]:
    models = {"planning": run.planning.name, "execution": run.execution.name}
    yield run.happened(
        Started, question="", preset=run.limits.preset, limits=run.limits.as_json(), dialect=run.store.dialect.name, **models
    )
    for document in documents:
        document = readable(document)
        call = ToolCall(_READ, {"document": document.id})
        returned = run.happened(ToolReturned, call=call, text=document.text, sources=(document,))
        yield returned
        yield from write_all(run, returned)
