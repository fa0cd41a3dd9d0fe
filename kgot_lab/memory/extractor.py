"""A model that takes triples from texts for a memory, in one of two ways, and the names that relations go by
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from kgot_lab.errors import BadInput, UnknownName, require, require_parts
from kgot_lab.llm import check_spec, connect
from kgot_lab.memory.extraction import Extraction, ExtractionMode, extract_by_schema, extract_grounded
from kgot_lab.types import LLM, Triple


class Extractor:
    """Takes triples from texts: `extraction_model` does, or its name for `connect`, or else `provider`;
    without both nothing is found.

    "schema" is one call a text, "grounded" one a sentence; `aliases` gives relations another name. Raises
    BadInput.
    """

    def __init__(
        self,
        provider: LLM | None = None,
        extraction_model: str | LLM | None = None,
        extraction: ExtractionMode = "schema",
        aliases: Mapping[str, str] | None = None,
    ):
        for name, model in (("provider", provider), ("extraction_model", extraction_model)):
            if model is not None and not isinstance(model, str):
                require_parts(model, ("name", "__call__"), f"{name} is a model, called with a Prompt")
        if isinstance(provider, str):
            raise BadInput(
                f"provider is a model: give connect({provider!r}), or the name as extraction_model"
            )
        if isinstance(extraction_model, str):
            check_spec(extraction_model)
        if extraction not in get_args(ExtractionMode):
            raise UnknownName("extraction", str(extraction), get_args(ExtractionMode))
        self.extraction, self.aliases = extraction, _checked_aliases(aliases)
        self._named = extraction_model if extraction_model is not None else provider
        self._model: LLM | None = None

    def extracted(self, text: str, *, repairs: int = 1, times: bool = False) -> Extraction:
        """What the model finds in a text, with what of its reply was refused; a bad reply is mended once if
        `repairs` is 1.

        With `times` a call by schema asks for dates too.
        """
        require(text, str, "what triples are taken from is a text")
        llm = self._extracting()
        if llm is None or not text.strip():
            return Extraction()
        grounded = self.extraction == "grounded"
        found = (
            extract_grounded(llm, text)
            if grounded
            else extract_by_schema(llm, text, repairs=repairs, times=times)
        )
        stated = {self.renamed(triple): times for triple, times in found.times.items()}
        return replace(found, triples=tuple(dict.fromkeys(map(self.renamed, found.triples))), times=stated)

    def renamed(self, triple: Triple) -> Triple:
        """A triple with its relation under the name that `aliases` gives."""
        require(triple, Triple, "a memory keeps Triple(subject, relation, object)")
        return (
            replace(triple, relation=self.aliases.get(triple.relation, triple.relation))
            if self.aliases
            else triple
        )

    def _extracting(self) -> LLM | None:
        if self._model is None:
            self._model = connect(self._named) if isinstance(self._named, str) else self._named
        return self._model


def _checked_aliases(aliases: Mapping[str, str] | None) -> dict[str, str]:
    if aliases is None:
        return {}
    if not isinstance(aliases, Mapping) or not all(
        isinstance(text, str) and text.strip() for pair in aliases.items() for text in pair
    ):
        raise BadInput('aliases name relations anew, such as {"headquartered_in": "located_in"}')
    if chained := sorted(set(aliases.values()) & set(aliases)):
        raise BadInput(f"aliases: {chained[0]!r} is a new name and has another itself; give the last one")
    return dict(aliases)
