"""What a fact of the graph was taken from: documents and sentences, noted on its edge, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgot_lab.types import Edge, Json

HIDDEN = {"source", "sentence"}  # provenance: for the reader and the evidence, not for the prompt


@dataclass(frozen=True)
class Support:
    """A document that says a fact, by its id, and the sentence that does; the id is "" for a text that has none."""

    source: str
    sentence: str


def noted(properties: Mapping[str, Json]) -> tuple[Support, ...]:
    """The supports noted among an edge's properties: a text each where there is one, lists side by side where there are several."""
    sources, said = _texts(properties.get("source")), _texts(properties.get("sentence"))
    longest = max(len(sources), len(said))
    return tuple(map(Support, sources + [""] * (longest - len(sources)), said + [""] * (longest - len(said))))


def note(supports: Iterable[Support]) -> dict[str, Json]:
    """The properties that note some supports, each once."""
    once = tuple(dict.fromkeys(supports))
    sources, said = [support.source for support in once], [support.sentence for support in once]
    return {"source": sources[0], "sentence": said[0]} if len(once) == 1 else {"source": sources, "sentence": said}


def sentence_of(properties: Mapping[str, Json]) -> str:
    """The latest sentence that says a fact; "" where none is noted."""
    return next((support.sentence for support in reversed(noted(properties)) if support.sentence), "")


def sentences_of(edges: Iterable[Edge]) -> frozenset[str]:
    """Every sentence that some facts were taken from."""
    return frozenset(support.sentence for edge in edges for support in noted(edge.properties) if support.sentence)


def _texts(value: Json) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
