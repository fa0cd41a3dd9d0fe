"""A question answered from Python in one line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from kgot_lab.documents.folder import read_documents
from kgot_lab.errors import BadInput, LabError, require, require_parts
from kgot_lab.front.progress import told_in_cell
from kgot_lab.llm import connect
from kgot_lab.loop.events import Event
from kgot_lab.loop.forecast import forecast
from kgot_lab.loop.limits import SMALL, Limits, limits_for
from kgot_lab.loop.trace import Trace, load_run, made_by, record
from kgot_lab.loop.walk import think
from kgot_lab.stores import empty_store
from kgot_lab.stores.protocol import Store
from kgot_lab.tools.facts import tools_for
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Document, Json, checked_documents

Facts = str | Path | Iterable[Document] | Tool | None


def ask(
    question: str,
    documents: Facts = None,
    model: str | LLM = "local",
    *,
    preset: str | Limits = "auto",
    store: str | Path | Store = "in_memory",
    attachments: Sequence[str | Path] = (),
    trace: str | Path | None = None,
) -> Trace:
    """Answer a question with a graph grown from documents; the run that is returned has the `answer`, and `show` steps through it.

    `documents` are a folder, a list of Document, or a tool that finds facts, such as search(…); `attachments` are files that belong to the
    question. `model` is what `connect` takes, or a model; `store` what `open_store` takes, or an open store, which stays open: either must
    be empty. `preset` is "local" (for small models), "reference" (the published limits), "auto", or Limits. With a `trace` the run is
    written to that file event by event, so that `resume` can go on with it; otherwise it is only returned. Nothing is fetched: without
    its file the local model raises ModelMissing, which says what to do. In a notebook the cell shows the events as they happen.
    Raises BadInput, and what `connect`, `open_store` and `think` raise.
    """
    require(question, str, "a question is a text")
    if not question.strip():
        raise BadInput("the question is empty; ask something")
    require(attachments, Sequence, "attachments are a list of paths")
    if trace is not None:
        require(trace, (str, Path), "a trace is the path of a file")
    if documents is None and not attachments:
        raise BadInput("there is nothing to take facts from: give documents, such as a folder or a search tool, or attachments=[FILE]")
    llm = connect(model) if isinstance(model, str) else model  # first, since an index is made in vain where no model is
    require_parts(llm, ("name", "__call__"), "a model is a text such as local or openai:MODEL, or what connect(…) gives")
    limits = limits_for(llm.name, preset)
    tools = _tools(documents, attachments)
    with _store(store) as opened:
        walk = think(question, llm, opened, tools, limits, attachments=[Path(file).name for file in attachments])
        return _walked(walk, trace, _head(llm, limits), made_by(llm))


def _tools(documents: Facts, attachments: Sequence[str | Path]) -> list[Tool]:
    """What facts can be fetched with."""
    if isinstance(documents, str | Path):
        return tools_for(_read(documents), attachments)
    if documents is not None and callable(documents):
        require_parts(documents, ("name", "arguments", "description"), "documents are a folder, a list of Document, or a search tool")
        return [documents, *tools_for((), attachments)]
    if documents is not None:
        return tools_for(checked_documents(documents), attachments)
    return tools_for((), attachments)


def _read(folder: str | Path) -> Sequence[Document]:
    """The passages of a folder; warns of files that were skipped or had to be guessed at."""
    library = read_documents(folder)
    for remark in (*library.skipped, *library.doubtful):
        warnings.warn(f"{folder}: {remark}", stacklevel=4)
    return library.documents


@contextmanager
def _store(store: str | Path | Store) -> Iterator[Store]:
    """The store of a run: one that is given stays open, one that is opened for it is closed."""
    if isinstance(store, str | Path):
        with closing(empty_store(store)) as opened:
            yield opened
        return
    require_parts(store, ("write", "read", "schema"), "a store is a name, an address, a file, or what open_store(…) gives")
    if store.schema().nodes:
        raise BadInput("the store already holds a graph, and a run begins with an empty one: give another store")
    yield store


def _walked(walk: Iterator[Event], trace: str | Path | None, head: str, about: Mapping[str, Json]) -> Trace:
    """The run, on file where one is named; an error on the way says that it is kept there."""
    if trace is None:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return Trace(uuid4().hex[:12], created, tuple(told_in_cell(walk, head)), about)
    try:
        for _ in told_in_cell(record(walk, trace, about=about), head):
            pass
    except LabError as error:
        if Path(trace).is_file():
            error.add_note(f"Everything so far is in {trace}: resume({str(trace)!r}, store, Resources(tools, model)) goes on with it.")
        raise
    return load_run(trace)


def _head(llm: LLM, limits: Limits) -> str:
    """What a small model will take, which is worth knowing before it begins."""
    return f"estimate, for 2 turns: {forecast(limits, steps=2)}" if llm.name.split(":")[0] in SMALL else ""
