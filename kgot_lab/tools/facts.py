"""The tools that a question needs: search when there are documents, the attached files when there are some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.search import search_of
from kgot_lab.tools.tool import Tool
from kgot_lab.types import Document

_MOST = 8  # passages that one search returns


def tools_for(
    documents: Sequence[Document],
    attachments: Sequence[str | Path] = (),
    *,
    follow: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Tool]:
    """Search when there are documents, the attached files when there are some; raises BadInput for files that
    are not there.

    Warns that the search will be worse where the embedding model is not installed; `progress` is that of a
    search. With `follow` a search follows names from passage to passage and returns more of them, for the
    mode `paths`.
    """
    tools: list[Tool] = []
    if documents:
        tools.append(search_of(documents, follow=follow, most=_MOST, progress=progress))
    if attachments:
        tools.append(read_attachment(attachments))
    return tools
