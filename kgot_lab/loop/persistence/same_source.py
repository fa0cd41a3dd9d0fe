"""Whether a document is the one that a memory read under its id; another text under that id gets an id of its
own.

Ids of documents are paths within a folder, so those of two folders may be the same, and a file may have been
written anew. Were its facts noted as those of the earlier text, each would speak for the other's, and
retracting one would take both.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from kgot_lab.loop.persistence import ThroughTool, place_in, plain
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.tools.tool import Result, checked_result
from kgot_lab.types import Document, Json

_LETTERS = 8  # of the digest of a text, behind its id


@dataclass
class SameSources:
    """The documents that a memory has read, told apart by their text, and what there was to say of those that
    a question meets.
    """

    beliefs: Beliefs
    remarks: dict[str, str] = field(default_factory=dict)  # by id, each once

    def distinguish_sources(self, document: Document) -> Document:
        """A document under its id, or under one of its own where no sentence that the memory read under that
        id stands in its text.
        """
        read = self.beliefs.sentences_of(document.id)
        gone = [sentence for sentence in read if place_in(plain(document.text), sentence) is None]
        if not gone:
            return document
        if len(gone) < len(read):
            told = f"{document.id} has changed: {len(gone)} of {len(read)} sentences that the memory read there stand there no more"
            self.remarks.setdefault(
                document.id,
                f"{told}, and what they say is believed still; `retract --fact FACT` takes a fact back",
            )
            return document
        own = f"{document.id}@{hashlib.sha256(document.text.encode('utf-8', 'surrogatepass')).hexdigest()[:_LETTERS]}"
        told = f"{document.id} is another text than the one that the memory read under this name, so it is kept as {own}"
        self.remarks.setdefault(
            document.id, f"{told}; if the earlier one is out of date: `retract --source {document.id}`"
        )
        return replace(document, id=own)


@dataclass(frozen=True)
class SourceDistinguisher(ThroughTool):
    """A tool whose documents are told apart from others of the same id that a memory has read."""

    sources: SameSources

    def __call__(self, /, **arguments: Json) -> Result:
        result = checked_result(self.tool(**arguments))
        return replace(result, sources=tuple(map(self.sources.distinguish_sources, result.sources)))
