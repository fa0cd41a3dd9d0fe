"""Grow a graph from documents without a question. Every passage is written, and nothing is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Event, Started, ToolCall, ToolReturned
from kgot_lab.loop.insert import readable_document, write_result
from kgot_lab.loop.limits import LOCAL, Limits
from kgot_lab.loop.run_context import RunContext, Steps
from kgot_lab.loop.state import State
from kgot_lab.stores.protocol import Store
from kgot_lab.types import LLM, Document

_READ_TOOL = "read"  # the "tool" whose return a passage is


def extract(documents: Sequence[Document], llm: LLM, store: Store, limits: Limits = LOCAL) -> Iterator[Event]:
    """Write the facts of each document into an empty store.

    A document longer than `limits.tool_tokens`, or 1,000 if that is more, is cut after that many tokens.
    Raises BadInput, LLMError, SandboxError.
    """
    if not documents:
        raise BadInput("there is no document to take facts from")
    if store.schema().nodes:
        raise BadInput("an extraction begins with an empty store: this one holds a graph")
    limits = limits.but(tool_tokens=max(limits.tools.tool_tokens, 1000))
    return _extract(RunContext(llm, llm, store, {}, limits, None, State()), documents)


def _extract(run: RunContext, documents: Sequence[Document]) -> Steps[None]:
    names = {"planning": run.planning.name, "execution": run.execution.name}
    start = {"limits": run.limits.as_json(), "dialect": run.store.dialect.name}
    yield run.record(Started, question="", **start, **names)
    for document in map(readable_document, documents):
        call = ToolCall(_READ_TOOL, {"document": document.id})
        returned = run.record(ToolReturned, call=call, text=document.text, sources=(document,))
        yield returned
        yield from write_result(run, returned)
