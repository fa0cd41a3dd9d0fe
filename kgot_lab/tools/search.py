"""The tool that searches documents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import NotInstalled, ToolFailed, require, require_count
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.entity_linking import follow
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.tool import Result, TextTool, Tool
from kgot_lab.types import Document, checked_documents

LINKED_PASSAGES = 16  # initial passages of the mode `paths`: they are read by rule, so many cost little


def search(
    documents: Iterable[Document],
    retriever: Stage | None = None,
    *,
    k: int = 5,
    name: str = "search",
    progress: Callable[[int, int], object] | None = None,
) -> TextTool:
    """Create a tool that returns the k best passages for a query, whole, as lines `[n] Title: text`.

    An empty result raises ToolFailed, so that "nothing found" is not taken for a fact. Without a retriever
    the passages are embedded here, and `progress(done, total)` counts those that had no stored vector.
    """
    require_count(k, 1, "k", "a search returns k passages")
    if retriever is not None:
        require(retriever, Stage, "a retriever is a Stage, as bm25(documents) gives one")
    require(name, str, "the name of a tool is a text")
    documents = checked_documents(documents)
    by_id = {document.id: document for document in documents}
    pipeline = (retriever or hybrid_retriever(documents, progress)) % k

    def run(query: str) -> Result:
        documents_found = [by_id[id] for id in pipeline.search(query).ids if id in by_id]
        if not documents_found:
            raise ToolFailed(f"{name}: no passage fits {query!r}; try other words")
        passages = (f"[{i}] {_format_passage(d)}" for i, d in enumerate(documents_found, start=1))
        return Result("\n".join(passages), tuple(documents_found))

    description = f"Searches the documents and returns the {k} passages that fit the query best."
    takes = {"query": "what to look for: names and words that the passage would contain"}
    return TextTool(name, description, takes, run, finds="query")


def document_search(
    documents: Sequence[Document],
    *,
    follow: bool,
    max_passages: int,
    progress: Callable[[int, int], object] | None = None,
) -> TextTool:
    """Create the search tool over a question's documents.

    It uses hybrid retrieval, or entity-linked retrieval of FOLLOWED passages with `follow`.
    """
    if follow:
        retriever = entity_linked_retriever(documents, progress)
        return search(documents, retriever, k=min(LINKED_PASSAGES, len(documents)))
    return search(documents, k=min(max_passages, len(documents)), progress=progress)


def entity_linked_retriever(
    documents: Iterable[Document], progress: Callable[[int, int], object] | None = None
) -> Stage:
    """Build the retriever of the mode `paths`: hybrid search, then names lead to more passages.

    Without the embedding model it is BM25 alone, with a warning.
    """
    documents = checked_documents(documents)
    hybrid = hybrid_retriever(documents, progress)
    try:
        return hybrid >> follow(documents, _embedder(progress))
    except NotInstalled:
        return hybrid  # which gave the warning


def hybrid_retriever(
    documents: Iterable[Document], progress: Callable[[int, int], object] | None = None
) -> Stage:
    """Build the default retriever: .7 embeddings + .3 BM25.

    Without the embedding model it is BM25 alone, with a warning.
    """
    documents = checked_documents(documents)
    lexical = bm25(documents)
    try:
        return weighted((0.7, dense(documents, _embedder(progress))), (0.3, lexical))
    except NotInstalled as error:
        warnings.warn(f"searching by words alone, results will be worse: {error}", stacklevel=3)
        return lexical


def _embedder(progress: Callable[[int, int], object] | None) -> Embedder:
    from kgot_lab.embedding.vectors import minilm  # not needed with a custom retriever

    return minilm(progress=progress)


def _format_passage(document: Document) -> str:
    text = " ".join(document.text.split())
    return f"{document.title}: {text}" if document.title else text


# The tools for a question: search over its documents, and its attachments.

_PASSAGES = 8  # passages returned by one search


def tools_for(
    documents: Sequence[Document],
    attachments: Sequence[str | Path] = (),
    *,
    follow: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Tool]:
    """Create the search tool if there are documents, and the attachment tool if there are files.

    Warns that search will be worse without the embedding model. `progress` is that of `search`. With
    `follow`, search follows names from passage to passage and returns more of them, for the mode `paths`.
    Raises BadInput for missing files.
    """
    tools: list[Tool] = []
    if documents:
        tools.append(document_search(documents, follow=follow, max_passages=_PASSAGES, progress=progress))
    if attachments:
        tools.append(read_attachment(attachments))
    return tools
