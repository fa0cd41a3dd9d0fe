"""What a fact of the graph was taken from: documents and sentences, noted on its edge, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgot_lab.types import Diff, Edge, Json

HIDDEN = {"source", "sentence"}  # provenance: for the reader and the evidence, not for the prompt


@dataclass(frozen=True)
class Support:
    """A document that says a fact, by its id, and the sentence that does; the id is "" for a text that has
    none.
    """

    source: str
    sentence: str


def supports_of(properties: Mapping[str, Json]) -> tuple[Support, ...]:
    """The supports noted among an edge's properties: a text each where there is one, lists side by side where
    there are several.
    """
    sources, said = _texts(properties.get("source")), _texts(properties.get("sentence"))
    longest = max(len(sources), len(said))
    return tuple(map(Support, sources + [""] * (longest - len(sources)), said + [""] * (longest - len(said))))


def note(supports: Iterable[Support]) -> dict[str, Json]:
    """The properties that note some supports, each once."""
    once = tuple(dict.fromkeys(supports))
    sources, said = [support.source for support in once], [support.sentence for support in once]
    return (
        {"source": sources[0], "sentence": said[0]}
        if len(once) == 1
        else {"source": sources, "sentence": said}
    )


def sentence_of(properties: Mapping[str, Json]) -> str:
    """The latest sentence that says a fact; "" where none is noted."""
    return next((support.sentence for support in reversed(supports_of(properties)) if support.sentence), "")


def sentences_of(edges: Iterable[Edge]) -> frozenset[str]:
    """Every sentence that some facts were taken from."""
    return frozenset(
        support.sentence for edge in edges for support in supports_of(edge.properties) if support.sentence
    )


def merge_supports(diff: Diff) -> Diff:
    """The same change, but for supports that edges lost by it: they note what they had, and what they gained.

    Two pairs of texts may stand among an edge's properties in any order, as RDF has them: what was there is
    taken for what it was.
    """
    kept = [(before, after, _without_duplicates(before, after)) for before, after in diff.changed_edges]
    return replace(
        diff,
        changed_edges=tuple((before, now) for before, after, now in kept if now is after or now != before),
    )


def _without_duplicates(before: Edge, after: Edge) -> Edge:
    had = supports_of(before.properties)
    if set(had) <= set(supports_of(after.properties)):
        return after
    return replace(after, properties={**after.properties, **note((*had, *_gained(had, after.properties)))})


def _gained(had: Sequence[Support], now: Mapping[str, Json]) -> tuple[Support, ...]:
    """The supports that came to some, which may have been written over, or be mixed among the new ones."""
    sources, said = _texts(now.get("source")), _texts(now.get("sentence"))
    if not {support.source for support in had} <= set(sources) or not {
        support.sentence for support in had
    } <= set(said):
        return supports_of(now)
    one = sources[0] if len(set(sources)) == 1 else ""
    for support in had:
        for texts, text in ((sources, support.source), (said, support.sentence)):
            if text in texts:
                texts.remove(text)
    return supports_of({"source": sources or [one] * len(said), "sentence": said})


def _texts(value: Json) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
