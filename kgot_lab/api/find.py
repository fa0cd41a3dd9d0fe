"""Search documents from Python in one line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kgot_lab.api.ask import EMBEDDING, cell_progress_bar, read_passages
from kgot_lab.arguments import check_arguments
from kgot_lab.tools.search import FoundPassages, find_passages
from kgot_lab.types import Document


@check_arguments
def find(question: str, documents: str | Path | Iterable[Document], *, k: int = 5) -> FoundPassages:
    """Find the k passages of documents that fit a question best.

    `documents` are a folder, a file, or a list of Document. Returns a list of passages, each with `rank`,
    `score`, `document`, `file` and the `sentence` nearest to the question. It is the search of `ask`: hybrid,
    re-ranked by the multi-hop retriever. Vectors are cached. Raises BadInput, and what `read_documents`
    raises.
    """
    return find_passages(question, read_passages(documents), k=k, progress=cell_progress_bar(EMBEDDING))
